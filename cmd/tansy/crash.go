package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"tansy/offline/crash"
)

func crashes() (*flagSet, action) {
	f := newFlags("crash", "[STEPS] [flags]", `
  tansy crash              ten minutes: all sequences of one operation, then of
                           two, and samples of three
  tansy crash --length 2 --for 0
                           all sequences of two operations (hours)
  tansy crash --clients 3  three clients at a time, two operations each, drawn
                           at random, for ten minutes
  tansy crash steps.txt    the sequence in a file, a step a line, such as
                               create bar
                               write bar 0 5000
                               fsync bar
                               rename bar A/bar
  tansy crash --replay crash.json
                           what was found, step by step, and whether it is still
                           so

exit codes:
  0         nothing was found, or what was found once is no more
  1         something was found; it is saved
  2         wrong arguments, or no verdict
  129, 130, 143
            interrupted by SIGHUP, SIGINT (Ctrl-C), or SIGTERM; what was tried
            until then is printed

The machine crashes after each operation of a simulated device, in memory. What
no barrier covered is lost in part. Each image is recovered with the code of
this program, checked, and compared with what was acknowledged before. The
volume that the steps work on has files foo and A/foo, directories A and B, and
a link L.
`)
	seed := f.Uint64("seed", 1, "`NUMBER` by which sequences, images, and samples are chosen")
	duration := f.Duration("for", 10*time.Minute, "end after this `TIME`; 0: when all was tried")
	length := f.Int("length", 0, "only sequences of `N` operations, 1 to 3")
	clients := f.Int("clients", 0, "`N` clients at a time, 2 to 4, each with two operations, drawn at random")
	images := f.Int("images", 4, "at most `N` images for each moment, and some of crashes within recovery")
	save := f.String("save", "crash.json", "new `FILE` for what is found; the image goes to FILE.img")
	replay := f.String("replay", "", "show what was saved in `FILE`, and recover its image again")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 0, 1)
		if done {
			return code
		}
		switch {
		case *replay != "" && (len(pos) > 0 || given(f, "length") || given(f, "save")):
			return misused(f, "--replay takes its steps from FILE: leave STEPS, --length, and --save out")
		case len(pos) > 0 && given(f, "length"):
			return misused(f, "--length is for sequences that are made: leave it or STEPS out")
		case *length < 0 || *length > 3 || given(f, "length") && *length == 0:
			return misused(f, "--length has to be 1, 2, or 3")
		case given(f, "clients") && (*clients < 2 || *clients > 4):
			return misused(f, "--clients has to be from 2 to 4")
		case *clients > 0 && (len(pos) > 0 || *length > 0 || *replay != ""):
			return misused(f, "--clients is for steps that are drawn: leave STEPS, --length, --replay, or it out")
		case *clients > 0 && *duration == 0:
			return misused(f, "--clients never ends by itself: give a time with --for")
		case *images < 1 || *images > 1000:
			return misused(f, "--images has to be from 1 to 1000")
		case *duration < 0:
			return misused(f, "--for must not be below 0")
		}
		if *replay != "" {
			return replayed(*replay)
		}
		if _, err := os.Lstat(*save); err == nil {
			return misused(f, fmt.Sprintf("%s exists: give another FILE with --save, or remove it", shown(*save)))
		}
		if st, err := os.Stat(filepath.Dir(*save)); err != nil || !st.IsDir() {
			return misused(f, fmt.Sprintf("%s is no folder for what is found: give another FILE with --save",
				shown(filepath.Dir(*save))))
		}
		o := crash.Options{Seed: *seed, Images: *images, Clients: *clients}
		lengths := []int{1, 2, 3}
		switch {
		case *length > 0:
			lengths = []int{*length}
		case *clients > 0:
			lengths = []int{0}
		}
		if len(pos) > 0 {
			text, err := os.ReadFile(pos[0])
			if err == nil {
				o.Steps, err = crash.Parse(string(text))
			}
			if err != nil {
				fail("crash", fmt.Errorf("%s: %w", shown(pos[0]), err))
				return exitUsage
			}
			lengths = []int{0}
		}
		return explored(o, lengths, *duration, *save)
	}
}

// explored tries sequences of these lengths one after the other, until the time is over.
func explored(o crash.Options, lengths []int, duration time.Duration, save string) int {
	// Each image takes half a megabyte for a moment, and little stays: memory that is never touched makes collections
	// rare.
	debug.SetGCPercent(400)
	defer runtime.KeepAlive(make([]byte, 24<<20))
	ctx, stop := untilInterrupted()
	defer stop()
	within := ctx
	if duration > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, duration)
		defer cancel()
	}
	p := newProgress(os.Stderr, time.Now)
	o.Progress = func(c crash.Count) { p.report(counted(c)+" so far", 0, 0) }
	var all crash.Count
	begin := time.Now()
	for _, n := range lengths {
		o.Length = n
		c, found, err := crash.Explore(within, o)
		fmt.Fprint(os.Stderr, p.clear)
		all.Add(c)
		if c.Sequences == 0 {
			continue
		}
		if n > 0 {
			fmt.Fprintf(stdout, "%d of %d sequences of %s, of which %d would be refused: %s\n",
				c.Sequences, c.All, count(n, "operation", "operations"), c.Impossible, counted(c))
		}
		if found != nil {
			return faulty(found, o, save)
		}
		if err != nil && within.Err() == nil {
			fail("crash", err)
			return exitUsage
		}
	}
	if ctx.Err() != nil {
		return fail("crash", unfinishedRun(ctx, ctx.Err(), int(all.Sequences), int(all.All), "sequence", "sequences"))
	}
	stdout.conclude("%s, 0 faults (seed %d), %.0f images per second", counted(all), o.Seed,
		float64(all.Images)/time.Since(begin).Seconds())
	return exitOK
}

// counted is how much was tried.
func counted(c crash.Count) string {
	return fmt.Sprintf("%s, %d images, %d distinct states", count(c.Sequences-c.Impossible, "sequence", "sequences"),
		c.Images, c.States)
}

// faulty makes what was found shorter, saves, and shows it.
func faulty(found *crash.Finding, o crash.Options, save string) int {
	o.Progress = nil
	if short, err := found.Shorten(o); err == nil {
		found = short
	}
	found.Print(stdout)
	if err := found.Save(save); err != nil {
		return fail("crash", fmt.Errorf("what was found cannot be saved: %w", err))
	}
	return fail("crash", fmt.Errorf("a fault was found, and saved (seed %d): tansy crash --replay %s shows it again",
		o.Seed, quoted(save)))
}

// replayed shows what was saved, and whether it is still so.
func replayed(path string) int {
	found, err := crash.Load(path)
	if err != nil {
		fail("crash", err)
		return exitUsage
	}
	now := found.Again()
	if now != nil {
		found.Problem = now.Error()
	}
	found.Print(stdout)
	if now == nil {
		stdout.conclude("%s: the fault is no more: the image is recovered as it must be", shown(path))
		return exitOK
	}
	return fail("crash", errors.New("the fault is still there"))
}
