package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"tansy/status"
)

func scrub(args []string) int {
	f := newFlags("scrub", "HOST:PORT [flags]", `  tansy scrub 127.0.0.1:9049            have the server with --status 127.0.0.1:9049 check its volume, and wait
  tansy scrub 127.0.0.1:9049 --detach   do not wait; tansy top shows how far it is

Everything in use is read from the device and checked, beside normal service, at the rate of serve --scrub
(without it, 20M per second). If a scrub runs already, that is the one. Ctrl-C ends the waiting, not the scrub.
Exit code: 0 no damage, 1 damage was found, 2 it did not come to its end. What is damaged is in the server's log, with
the files; for all of it at once stop the server and run tansy check --data.
`)
	detach := f.Bool("detach", false, "do not wait for its end")
	pos, code, done := parse(f, args, 1, 1)
	if done {
		return code
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	s, err := startScrub(ctx, strings.TrimSuffix(statusURL(pos[0]), "status.json")+"scrub")
	if err != nil {
		fail("scrub", err)
		return exitUsage
	}
	if *detach {
		return exitOK
	}
	_, _, terminal := window(os.Stderr)
	return awaitScrub(ctx, statusURL(pos[0]), s, terminal)
}

// startScrub asks for a scrub, and returns how it does.
func startScrub(ctx context.Context, url string) (*status.Scrub, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: give HOST:PORT", err)
	}
	a, err := http.DefaultClient.Do(q)
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
	var s status.Scrub
	if err := json.Unmarshal(answer, &s); err != nil {
		return nil, fmt.Errorf("%s is not of tansy serve: %w", url, err)
	}
	return &s, nil
}

// scrubPoll is how often the server is asked how far it is, but at the beginning.
const scrubPoll = time.Second

// awaitScrub waits for the end of a scrub that is under way, and shows on a terminal how far it is.
func awaitScrub(ctx context.Context, url string, s *status.Scrub, terminal bool) int {
	passes := s.Passes
	for wait := scrubPoll / 64; s.Running && s.Passes == passes; wait = min(2*wait, scrubPoll) {
		if terminal {
			fmt.Fprint(os.Stderr, "\r"+scrubLine(s)+clearEnd)
		}
		select {
		case <-ctx.Done():
			return exitUsage
		case <-time.After(wait):
		}
		r, err := fetch(ctx, url)
		if err == nil && r.State != status.Serving {
			err = fmt.Errorf("the server is %s", r.State)
		}
		if err != nil {
			fail("scrub", err)
			return exitUsage
		}
		s = &r.Scrub
	}
	if terminal {
		fmt.Fprint(os.Stderr, "\r"+clearEnd)
	}
	if s.Passes == passes {
		fail("scrub", fmt.Errorf("it ended before its time: %s", s.Error))
		return exitUsage
	}
	s.Running, s.Error = false, "" // of another that has begun since
	fmt.Println(scrubLine(s))
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
		return fmt.Sprintf("%d blocks; %s", s.Done, found)
	case s.Error != "":
		return "ended before its time: " + s.Error
	case s.Ended == 0:
		return ""
	}
	return fmt.Sprintf("%d blocks as they were written, %s; ended %s", s.Last.Good, found, time.Unix(s.Ended, 0).Format(time.DateTime))
}
