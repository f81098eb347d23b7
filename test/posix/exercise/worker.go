//go:build linux

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// worker is what the processes have in common: a number, a directory, a source
// of choices, and a memory of what was done last.
type worker struct {
	*config
	number int
	dir    string     // its own
	rnd    *rand.Rand // its choices, which do not depend on the other processes
	done   int        // operations
	trace  [40]string // the last ones
	tell   *os.File   // a byte here for every progressStep operations
}

// note starts an operation and remembers it.
func (w *worker) note(format string, args ...any) string {
	s := fmt.Sprintf(format, args...)
	w.trace[w.done%len(w.trace)] = fmt.Sprintf("%d: %s", w.done, s)
	w.done++
	if w.done%progressStep == 0 {
		w.tell.Write([]byte{0}) // if nobody listens any more, nobody misses it
	}
	return s
}

// explain tells how a process failed, what it did before, and how to repeat it.
func (w *worker) explain(err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "not ok process %d, operation %d: %v\n", w.number, w.done-1, err)
	fmt.Fprintf(&b, "# the last operations in %s:\n", w.dir)
	for i := max(0, w.done-len(w.trace)); i < w.done; i++ {
		fmt.Fprintf(&b, "#   %s\n", w.trace[i%len(w.trace)])
	}
	fmt.Fprintf(&b, "# to repeat: exercise %s DIRECTORY\n", strings.Join(w.flags(w.number), " "))
	fmt.Print(b.String())
}

// chance is true once in n times.
func (w *worker) chance(n int) bool { return w.rnd.IntN(n) == 0 }

// forget drops the kernel's caches now and then, if that was asked for.
func (w *worker) forget() {
	if w.drop && w.chance(3000) {
		dropCaches()
	}
}

// dropCaches makes the next reads come from the server. Only root may; for
// others it does nothing.
func dropCaches() {
	unix.Sync()
	os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

// expect compares an error with the errno that was predicted, 0 for success.
func expect(what string, err error, want unix.Errno) error {
	var got unix.Errno
	if err != nil && !errors.As(err, &got) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if got == want {
		return nil
	}
	return fmt.Errorf("%s: expected %s, got %s", what, errnoName(want), errnoName(got))
}

func errnoName(e unix.Errno) string {
	if e == 0 {
		return "ok"
	}
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return e.Error()
}

// writeAll writes b at an offset, or where the file is (-1).
func writeAll(fd int, b []byte, at int64) error {
	for len(b) > 0 {
		var n int
		var err error
		if at < 0 {
			n, err = unix.Write(fd, b)
		} else {
			n, err = unix.Pwrite(fd, b, at)
			at += int64(n)
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// readAll reads up to len(b) bytes at an offset, less only at the end of the file.
func readAll(fd int, b []byte, at int64) (int, error) {
	got := 0
	for got < len(b) {
		n, err := unix.Pread(fd, b[got:], at+int64(got))
		if err != nil {
			return got, err
		}
		if n == 0 {
			break
		}
		got += n
	}
	return got, nil
}
