//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// togetherOperations are words that have several at work at the same time. What they check holds in whatever order
// the steps of these happen. Each who is at work is in the check's directory by an open file of it.
var togetherOperations = map[string]operation{
	// appenders PATH WRITERS RECORDS SIZE own|one: each writer appends that many records, by an open file of its own
	// or all by one; then the file has every record, whole, and those of each writer in order
	"appenders": {5, 5, func(r *runner, _ *actor, a []string) error {
		return appenders(r.dirFD, a[0], int(number(a[1])), int(number(a[2])), int(number(a[3])), a[4] == "one")
	}},
	// churn DIR KEPT ROUNDS remove|rename|toggle: the directory has KEPT files while others come and go: every listing
	// has each of those once
	"churn": {4, 4, func(r *runner, _ *actor, a []string) error {
		return churn(r.dirFD, a[0], int(number(a[1])), int(number(a[2])), a[3])
	}},
	// orphans COUNT unlink|rename: that many open files lose their name, and are used
	"orphans": {2, 2, func(r *runner, _ *actor, a []string) error {
		return orphans(r.dirFD, int(number(a[0])), a[1])
	}},
	// takers COUNT ROUNDS: of several who create a name with O_EXCL, exactly one does, each time
	"takers": {2, 2, func(r *runner, _ *actor, a []string) error {
		return takers(r.dirFD, int(number(a[0])), int(number(a[1])))
	}},
}

// atOnce runs f n times at the same time, and returns what was wrong.
func atOnce(n int, f func(i int) error) error {
	problems := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { problems[i] = f(i) })
	}
	wg.Wait()
	return errors.Join(problems...)
}

func appenders(dir int, path string, writers, records, size int, one bool) error {
	open := func() (int, error) {
		return unix.Openat(dir, path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	}
	shared, err := open()
	if err != nil {
		return err
	}
	defer unix.Close(shared)
	err = atOnce(writers, func(i int) error {
		fd := shared
		if !one {
			var err error
			if fd, err = open(); err != nil {
				return err
			}
			defer unix.Close(fd)
		}
		for j := range records {
			if err := writeAll(fd, record(i, j, size), -1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	data, err := contentAt(dir, path)
	if err != nil {
		return err
	}
	if len(data) != writers*records*size {
		return fmt.Errorf("%d bytes, not %d", len(data), writers*records*size)
	}
	next := make([]int, writers)
	for at := 0; at < len(data); at += size {
		var i, j int
		if _, err := fmt.Sscanf(data[at:], "%d %d", &i, &j); err != nil || i >= writers || j != next[i] || data[at:at+size] != record(i, j, size) {
			return fmt.Errorf("no record, or the wrong one, at %d: %s", at, brief(data[at:at+size]))
		}
		next[i]++
	}
	return nil
}

// record is the jth of the ith writer.
func record(i, j, size int) string {
	s := fmt.Sprintf("%d %d ", i, j)
	return (s + strings.Repeat("x", size))[:size-1] + "\n"
}

func contentAt(dir int, path string) (string, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var b strings.Builder
	_, err = f.WriteTo(&b)
	return b.String(), err
}

func churn(dir int, path string, kept, rounds int, how string) error {
	d, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(d)
	for i := range kept {
		if err := makeAt(d, fmt.Sprintf("kept%d", i)); err != nil {
			return err
		}
	}
	// one changes the directory until the other has listed it as often as it should
	done := make(chan struct{})
	return atOnce(2, func(i int) error {
		if i == 0 {
			defer close(done)
			for range rounds {
				if err := listed(d, kept); err != nil {
					return err
				}
			}
			return nil
		}
		for n := 0; ; n++ {
			select {
			case <-done:
				return nil
			default:
			}
			if err := disturb(d, fmt.Sprintf("passing%d", n%50), how); err != nil {
				return err
			}
		}
	})
}

// disturb changes a directory, and leaves it with at most one name more for each that it is called with.
func disturb(d int, name, how string) error {
	switch how {
	case "remove":
		if err := makeAt(d, name); err != nil {
			return err
		}
		return unix.Unlinkat(d, name, 0)
	case "rename":
		if err := makeAt(d, name); err != nil {
			return err
		}
		return errors.Join(unix.Renameat(d, name, d, name+"{renamed}"), unix.Unlinkat(d, name+"{renamed}", 0))
	}
	err := makeAt(d, name)
	if err == unix.EEXIST {
		err = unix.Unlinkat(d, name, 0)
	}
	return err
}

func makeAt(d int, name string) error {
	fd, err := unix.Openat(d, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// listed looks through a directory, in small pieces so that it changes between them, for each name that was kept.
func listed(d, kept int) error {
	fd, err := unix.Openat(d, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	seen := map[string]int{}
	for buffer := make([]byte, 300); ; {
		n, err := unix.ReadDirent(fd, buffer)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		_, _, names := unix.ParseDirent(buffer[:n], -1, nil)
		for _, name := range names {
			seen[name]++
		}
	}
	for i := range kept {
		if n := seen[fmt.Sprintf("kept%d", i)]; n != 1 {
			return fmt.Errorf("kept%d is listed %d times", i, n)
		}
	}
	return nil
}

func orphans(dir, count int, how string) error {
	fds := make([]int, 0, count)
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	for i := range count {
		name := fmt.Sprintf("orphan%d", i)
		fd, err := unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		fds = append(fds, fd)
		if err := writeAll(fd, record(i, 0, 100), 0); err != nil {
			return err
		}
	}
	for i := range count {
		name := fmt.Sprintf("orphan%d", i)
		if how == "rename" {
			if err := errors.Join(makeAt(dir, "over"), unix.Renameat(dir, "over", dir, name)); err != nil {
				return err
			}
		} else if err := unix.Unlinkat(dir, name, 0); err != nil {
			return err
		}
	}
	return atOnce(count, func(i int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fds[i], &st); err != nil {
			return err
		}
		if st.Nlink != 0 || st.Size != 100 {
			return fmt.Errorf("file %d has %d links and %d bytes", i, st.Nlink, st.Size)
		}
		return errors.Join(
			readBack(fds[i], 200, 0, record(i, 0, 100)),
			writeAll(fds[i], record(i, 1, 100), 100),
			readBack(fds[i], 300, 0, record(i, 0, 100)+record(i, 1, 100)),
			unix.Ftruncate(fds[i], 7),
			readBack(fds[i], 300, 0, record(i, 0, 100)[:7]),
		)
	})
}

func takers(dir, count, rounds int) error {
	for range rounds {
		made := make([]bool, count)
		err := atOnce(count, func(i int) error {
			err := makeAt(dir, "taken")
			made[i] = err == nil
			if err == unix.EEXIST {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
		n := 0
		for _, m := range made {
			if m {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%d made the file", n)
		}
		if err := unix.Unlinkat(dir, "taken", 0); err != nil {
			return err
		}
	}
	return nil
}
