package main

import (
	"fmt"
	"os"
	"time"

	volcheck "tansy/check"
	"tansy/disk"
)

func check(args []string) int {
	f := newFlags("check", "VOLUME [flags]", `  tansy check data.img        0 = clean, 1 = damaged (what and where is printed), 2 = cannot be read
  tansy check /dev/sdb -q     only the exit code and the problems

The volume is only read, and must not be in use by a server.
`)
	quiet := f.Bool("q", false, "print nothing but problems")
	limit := f.Int("max-problems", 1000, "print at most so many problems")
	pos, code, done := parse(f, args, 1, 1)
	if done {
		return code
	}
	d, err := disk.OpenFile(pos[0], disk.FileOptions{ReadOnly: true, Warn: warning("check")})
	if err != nil {
		fail("check", err)
		return exitUsage
	}
	defer d.Close()
	o := volcheck.Options{MaxProblems: *limit}
	if !*quiet {
		o.Progress = progress(time.Second)
	}
	rep, err := volcheck.Volume(d, o)
	if o.Progress != nil {
		fmt.Fprint(os.Stderr, clearLine)
	}
	for _, p := range rep.Problems {
		fmt.Println(p)
	}
	if rep.Unlisted > 0 {
		fmt.Printf("%d more problems\n", rep.Unlisted)
	}
	if err != nil {
		fail("check", fmt.Errorf("%s: %w", pos[0], err))
		return exitUsage
	}
	if !rep.Clean() {
		fmt.Printf("%s: damaged, %d problems\n", pos[0], uint64(len(rep.Problems))+rep.Unlisted)
		return exitFailure
	}
	if !*quiet {
		fmt.Printf("%s: clean; %d inodes, %d directories with %d entries, %d of %d data blocks in use, %d files waiting to be freed, %d blocks in the log\n",
			pos[0], rep.Inodes, rep.Directories, rep.Entries, rep.Blocks, rep.DataBlocks, rep.Orphans, rep.Replayed)
	}
	return exitOK
}

const clearLine = "\r\x1b[K"

// progress returns a function that reports the progress of a check on standard
// error, on a terminal only and at most once per interval.
func progress(interval time.Duration) func(pass string, done, total uint64) {
	st, err := os.Stderr.Stat()
	if err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	next := time.Now().Add(interval)
	return func(pass string, done, total uint64) {
		if now := time.Now(); now.After(next) && total > 0 {
			next = now.Add(interval)
			fmt.Fprintf(os.Stderr, "%s%s: %.1f %%", clearLine, pass, 100*float64(done)/float64(total))
		}
	}
}
