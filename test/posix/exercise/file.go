//go:build linux

package main

import (
	"bytes"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// One file, and what it should hold.

type fileExercise struct {
	*worker
	path string
	fd   int    // open for reading and writing
	want []byte // the contents
	buf  []byte
}

// exerciseFile does n operations on one file.
func exerciseFile(w *worker, n int) error {
	f := &fileExercise{worker: w, path: filepath.Join(w.dir, "file0"), buf: make([]byte, w.size+1)}
	fd, err := unix.Open(f.path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	f.fd = fd
	for w.done < n {
		if err := f.step(); err != nil {
			return err
		}
		w.forget()
	}
	if err := unix.Close(f.fd); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	f.fd, err = unix.Open(f.path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(f.fd)
	return f.compareAll()
}

// step does one operation, chosen at random.
func (f *fileExercise) step() error {
	switch r := f.rnd.IntN(100); {
	case r < 28:
		return f.write()
	case r < 56:
		return f.read()
	case r < 60:
		return f.mapRead()
	case r < 64:
		return f.mapWrite()
	case r < 68:
		return f.allocate()
	case r < 70:
		return f.copyRange()
	case r < 74:
		return f.append()
	case r < 80:
		return f.truncate()
	case r < 88:
		return f.status()
	case r < 91:
		return f.reopen()
	case r < 93:
		f.note("fsync")
		return expect("fsync", unix.Fsync(f.fd), 0)
	case r < 95:
		return f.rename()
	case r < 97:
		return f.evict()
	case r < 98:
		return f.compareAll()
	default:
		return f.writeElsewhere()
	}
}

// place chooses an offset, often at or beside the edge of a block or the end of the file.
func (f *fileExercise) place() int {
	at := f.rnd.IntN(f.size)
	switch f.rnd.IntN(6) {
	case 0:
		at = at &^ 4095
	case 1:
		at = at&^4095 + f.rnd.IntN(3) - 1
	case 2:
		at = len(f.want) + f.rnd.IntN(200) - 100
	}
	return min(max(at, 0), f.size-1)
}

// length chooses how much to read or write at an offset, most often a little.
func (f *fileExercise) length(at int) int {
	n := 1 + f.rnd.IntN(300)
	switch f.rnd.IntN(8) {
	case 0:
		n = 1 + f.rnd.IntN(64<<10)
	case 1, 2:
		n = 1 + f.rnd.IntN(6000)
	}
	return min(n, f.size-at)
}

// fresh is data no other operation writes.
func (f *fileExercise) fresh(n int) []byte {
	b := make([]byte, n)
	x := uint64(f.done)<<20 + uint64(f.number) + 1
	for i := range b {
		x = x*6364136223846793005 + 1442695040888963407
		b[i] = byte(x>>56) | 1 // never zero, so that lost data differs from holes
	}
	return b
}

// apply puts b into the model.
func (f *fileExercise) apply(b []byte, at int) {
	if end := at + len(b); end > len(f.want) {
		f.want = append(f.want, make([]byte, end-len(f.want))...)
	}
	copy(f.want[at:], b)
}

func (f *fileExercise) write() error {
	at := f.place()
	n := f.length(at)
	what := f.note("write %d bytes at %d of %d", n, at, len(f.want))
	b := f.fresh(n)
	if err := writeAll(f.fd, b, int64(at)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.apply(b, at)
	return nil
}

// writeElsewhere writes through another descriptor, as another program would.
func (f *fileExercise) writeElsewhere() error {
	at := f.place()
	n := f.length(at)
	what := f.note("write %d bytes at %d of %d through another descriptor", n, at, len(f.want))
	fd, err := unix.Open(f.path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b := f.fresh(n)
	err = writeAll(fd, b, int64(at))
	if e := unix.Close(fd); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.apply(b, at)
	return nil
}

func (f *fileExercise) append() error {
	n := min(1+f.rnd.IntN(5000), f.size-len(f.want))
	what := f.note("append %d bytes to %d", n, len(f.want))
	if n <= 0 {
		return nil
	}
	fd, err := unix.Open(f.path, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b := f.fresh(n)
	err = writeAll(fd, b, -1)
	if e := unix.Close(fd); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.apply(b, len(f.want))
	return nil
}

func (f *fileExercise) read() error {
	at := f.place()
	return f.compare(at, f.length(at))
}

func (f *fileExercise) compareAll() error { return f.compare(0, f.size+1) }

// compare reads n bytes at an offset and compares them with the model.
func (f *fileExercise) compare(at, n int) error {
	what := f.note("read %d bytes at %d of %d", n, at, len(f.want))
	got, err := readAll(f.fd, f.buf[:n], int64(at))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	want := f.want[min(at, len(f.want)):min(at+n, len(f.want))]
	if got != len(want) {
		return fmt.Errorf("%s: expected %d bytes, got %d", what, len(want), got)
	}
	if !bytes.Equal(want, f.buf[:got]) {
		return fmt.Errorf("%s: %s", what, difference(want, f.buf[:got], at))
	}
	return nil
}

// difference describes where two pieces of data of one length differ.
func difference(want, got []byte, at int) string {
	first, last, count, zeros := -1, 0, 0, 0
	for i := range want {
		if want[i] != got[i] {
			if first < 0 {
				first = i
			}
			last = i
			count++
			if got[i] == 0 {
				zeros++
			}
		}
	}
	return fmt.Sprintf("%d bytes differ between %d and %d, %d of them read as zero; the first is %#x and should be %#x",
		count, at+first, at+last, zeros, got[first], want[first])
}

func (f *fileExercise) truncate() error {
	n := f.place()
	if f.chance(3) { // mostly smaller, or the file stays large
		n = f.rnd.IntN(len(f.want) + 1)
	}
	var what string
	var err error
	if f.chance(2) {
		what = f.note("ftruncate to %d from %d", n, len(f.want))
		err = unix.Ftruncate(f.fd, int64(n))
	} else {
		what = f.note("truncate to %d from %d", n, len(f.want))
		err = unix.Truncate(f.path, int64(n))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n <= len(f.want) {
		f.want = f.want[:n:n]
	} else {
		f.want = append(f.want, make([]byte, n-len(f.want))...)
	}
	return nil
}

func (f *fileExercise) status() error {
	what := f.note("stat")
	var st unix.Stat_t
	var err error
	if f.chance(2) {
		err = unix.Fstat(f.fd, &st)
	} else {
		err = unix.Stat(f.path, &st)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if st.Size != int64(len(f.want)) || st.Nlink != 1 {
		return fmt.Errorf("%s: size %d, %d links; expected %d, 1", what, st.Size, st.Nlink, len(f.want))
	}
	return nil
}

// reopen closes the file and opens it again, once in a while truncating it, or
// for writes that are stable at once.
func (f *fileExercise) reopen() error {
	flags := unix.O_RDWR | unix.O_CLOEXEC
	how := ""
	switch f.rnd.IntN(12) {
	case 0:
		flags |= unix.O_TRUNC
		how = " with O_TRUNC"
	case 1, 2:
		flags |= unix.O_SYNC
		how = " with O_SYNC"
	}
	what := f.note("close and open%s", how)
	if err := unix.Close(f.fd); err != nil {
		return fmt.Errorf("%s: close: %w", what, err)
	}
	fd, err := unix.Open(f.path, flags, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.fd = fd
	if flags&unix.O_TRUNC != 0 {
		f.want = nil
	}
	return nil
}

func (f *fileExercise) rename() error {
	to := filepath.Join(f.dir, fmt.Sprintf("file%d", f.rnd.IntN(10)))
	what := f.note("rename %s to %s", filepath.Base(f.path), filepath.Base(to))
	if err := unix.Rename(f.path, to); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	f.path = to
	return nil
}

// evict writes the file back and drops its pages from the cache, so that the
// next reads come from the server.
func (f *fileExercise) evict() error {
	what := f.note("evict")
	if err := unix.Fdatasync(f.fd); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := unix.Fadvise(f.fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
