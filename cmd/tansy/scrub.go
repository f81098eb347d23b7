package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"tansy/ops/status"
)

func scrub() (*flagSet, action) {
	f := newFlags("scrub", "HOST[:PORT] [flags]", `
  tansy scrub 127.0.0.1   have the server with --status 127.0.0.1:9049 check its
                          volumes, and wait
  tansy scrub 127.0.0.1:9049 --detach
                          do not wait; tansy top shows how far it is

exit codes:
  0  no damage
  1  damage was found
  2  it did not come to its end, or was not waited for to the end; or that there
     is no damage could not be printed

Everything in use is read from the device and checked, beside normal service, at
the rate of serve --scrub (without it, 20M per second); of several volumes each
at that rate. If a scrub runs already, that is the one. Ctrl-C ends the waiting,
not the scrub. What is damaged is in the server's log, with the files; for all
of it at once stop the server and run tansy check --data.
`)
	ca := f.String("ca", "", caUsage)
	detach := f.Bool("detach", false, "do not wait for its end")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		if wrong := noServer(pos[0]); wrong != "" {
			return misused(f, wrong)
		}
		url, err := statusURL(pos[0])
		if err != nil {
			return misused(f, wrongly(pos[0], err.Error()))
		}
		client, err := statusClient(*ca, url)
		if err != nil {
			return misused(f, err.Error())
		}
		ctx, stop := signal.NotifyContext(context.Background(), endings()...)
		defer stop()
		before, err := startScrub(ctx, client, strings.TrimSuffix(url, "status.json")+"scrub")
		if err != nil {
			fail("scrub", err)
			return exitUsage
		}
		if *detach {
			return exitOK
		}
		_, _, terminal := window(os.Stderr)
		return awaitScrub(ctx, client, url, before, terminal)
	}
}

// startScrub asks for a scrub of all volumes, and returns what there was of each before.
func startScrub(ctx context.Context, client *http.Client, url string) ([]status.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: give HOST:PORT", err)
	}
	a, err := client.Do(q)
	if err != nil {
		return nil, fmt.Errorf("%w (does tansy serve run there with --status?)", err)
	}
	defer a.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(a.Body, maxReport))
	if err != nil {
		return nil, err
	}
	if a.StatusCode != http.StatusAccepted {
		return nil, fmt.Errorf("%s: %s %s", url, a.Status, cut(string(answer), 200))
	}
	var before []status.Volume
	if err := json.Unmarshal(answer, &before); err != nil {
		return nil, fmt.Errorf("%s is not of tansy serve: %w", url, err)
	}
	return before, nil
}

// scrubPoll is how often the server is asked how far it is, but at the beginning.
const scrubPoll = time.Second

// awaitScrub waits for the end of the scrubs that were asked for, shows on a terminal how far they are together, and
// says what they have found. before is what there was of the volumes when they were asked for.
func awaitScrub(
	ctx context.Context, client *http.Client, url string, before []status.Volume, terminal bool,
) int {
	var now []status.Volume
	for wait, running := scrubPoll/64, true; running; wait = min(2*wait, scrubPoll) {
		select {
		case <-ctx.Done():
			fail("scrub", errors.New("interrupted: the scrub goes on, and tansy top shows how far it is"))
			return exitUsage
		case <-time.After(wait):
		}
		r, err := fetch(ctx, client, url)
		if err == nil && r.State != status.Serving {
			err = fmt.Errorf("the server is %s", r.State)
		}
		if err == nil && !slices.EqualFunc(before, r.Volumes, sameVolume) {
			err = errors.New("another server answers now: ask it for a scrub of its own")
		}
		if err != nil {
			fail("scrub", err)
			return exitUsage
		}
		now, running = r.Volumes, false
		var all status.Scrub
		for i := range now {
			if s := &now[i].Scrub; s.Running && s.Passes == before[i].Scrub.Passes {
				addScrub(&all, s)
				running = true
			}
		}
		if terminal && running {
			fmt.Fprint(os.Stderr, "\r"+scrubLine(&all)+clearEnd)
		}
	}
	if terminal {
		fmt.Fprint(os.Stderr, "\r"+clearEnd)
	}
	code := exitOK
	for i := range now {
		code = max(code, scrubEnd(&now[i], before[i].Scrub.Passes, len(now) > 1))
	}
	return code
}

// sameVolume tells whether a server that had the volume as it was before may have it as it is now.
func sameVolume(before, now status.Volume) bool {
	return before.Path == now.Path && before.Scrub.Passes <= now.Scrub.Passes
}

// addScrub adds to all, of scrubs that run, another one.
func addScrub(all, s *status.Scrub) {
	if known := !all.Running || all.Total > 0; known && s.Total > 0 {
		all.Total += s.Total
	} else {
		all.Total = 0
	}
	all.Running = true
	all.Done, all.Damaged, all.Unchecked = all.Done+s.Done, all.Damaged+s.Damaged, all.Unchecked+s.Unchecked
}

// scrubEnd says what the scrub of a volume has found, of which so many passes had come to their end before, and returns
// the exit code for it. named says that there are other volumes.
func scrubEnd(v *status.Volume, before uint64, named bool) int {
	name := ""
	if named {
		name = v.Path + ": "
	}
	s := v.Scrub
	switch {
	case !v.Open:
		fail("scrub", fmt.Errorf("%sthis volume is not served: %s", name, v.Problem))
		return exitUsage
	case s.Passes == before:
		fail("scrub", fmt.Errorf("%sit ended before its time: %s", name, cmp.Or(v.Problem, s.Error)))
		return exitUsage
	}
	s.Running, s.Error = false, "" // of another that has begun since
	stdout.conclude("%s%s", name, scrubLine(&s))
	if s.Last.Damaged+s.Last.Unchecked > 0 {
		return exitFailure
	}
	return exitOK
}

// scrubLine says how a scrub is doing, or nothing if there was none.
func scrubLine(s *status.Scrub) string {
	damaged, unchecked := s.Damaged, s.Unchecked
	if !s.Running {
		damaged, unchecked = s.Last.Damaged, s.Last.Unchecked
	}
	found := "no damage"
	if damaged > 0 {
		found = fmt.Sprintf("%d damaged, see the server's log", damaged)
	}
	if unchecked > 0 {
		found += fmt.Sprintf("; %d could not be checked", unchecked)
	}
	switch {
	case s.Running && s.Total > 0:
		return fmt.Sprintf("%s %d of %d blocks; %s", bar(min(s.Done, s.Total), s.Total), s.Done, s.Total, found)
	case s.Running:
		return fmt.Sprintf("%s; %s", count(s.Done, "block", "blocks"), found)
	case s.Error != "":
		return "ended before its time: " + s.Error
	case s.Ended == 0:
		return ""
	}
	return fmt.Sprintf("%s, %s; ended %s", count(s.Last.Good, "block as it was written", "blocks as they were written"),
		found, time.Unix(s.Ended, 0).Format(time.DateTime))
}
