//go:build linux

package main

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// What a file may be asked for beside read and write: memory maps, holes, zeros, room, and copies of ranges. Where the
// file system has one of these not, nothing may have changed.

// lacks tells if the error says that there is no such thing here.
func lacks(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOSYS)
}

// mapped maps the pages of n bytes at an offset, and has use look at those bytes.
func (f *fileExercise) mapped(what string, at, n, prot, how int, use func(b []byte) error) error {
	from := at &^ 4095
	m, err := unix.Mmap(f.fd, int64(from), at+n-from, prot, how)
	if lacks(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	err = use(m[at-from:])
	if err == nil && prot&unix.PROT_WRITE != 0 && f.chance(2) {
		err = unix.Msync(m, unix.MS_SYNC)
	}
	return errors.Join(err, unix.Munmap(m))
}

// within chooses a range that the file has; n is 0 if it is empty.
func (f *fileExercise) within() (at, n int) {
	if len(f.want) == 0 {
		return 0, 0
	}
	at = min(f.place(), len(f.want)-1)
	return at, min(f.length(at), len(f.want)-at)
}

func (f *fileExercise) mapRead() error {
	at, n := f.within()
	what := f.note("read %d bytes at %d of %d through memory", n, at, len(f.want))
	if n == 0 {
		return nil
	}
	how := unix.MAP_PRIVATE
	if f.chance(2) {
		how = unix.MAP_SHARED
	}
	return f.mapped(what, at, n, unix.PROT_READ, how, func(b []byte) error {
		if want := f.want[at : at+n]; string(b) != string(want) {
			return fmt.Errorf("%s: %s", what, difference(want, b, at))
		}
		return nil
	})
}

func (f *fileExercise) mapWrite() error {
	at, n := f.within()
	what := f.note("write %d bytes at %d of %d through memory", n, at, len(f.want))
	if n == 0 {
		return nil
	}
	return f.mapped(what, at, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED, func(b []byte) error {
		data := f.fresh(n)
		copy(b, data)
		f.apply(data, at)
		return nil
	})
}

// allocate makes a hole or zeros, or sets room aside.
func (f *fileExercise) allocate() error {
	at := f.place()
	n := f.length(at)
	modes := []uint32{unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE, unix.FALLOC_FL_ZERO_RANGE,
		unix.FALLOC_FL_ZERO_RANGE | unix.FALLOC_FL_KEEP_SIZE, 0}
	mode := modes[f.rnd.IntN(len(modes))]
	what := f.note("fallocate %#x of %d bytes at %d of %d", mode, n, at, len(f.want))
	err := unix.Fallocate(f.fd, mode, int64(at), int64(n))
	if lacks(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if mode&unix.FALLOC_FL_KEEP_SIZE == 0 && at+n > len(f.want) {
		f.want = append(f.want, make([]byte, at+n-len(f.want))...)
	}
	if mode != 0 && at < len(f.want) {
		clear(f.want[at:min(at+n, len(f.want))])
	}
	return nil
}

// copyRange copies a range of the file to another one that does not meet it.
func (f *fileExercise) copyRange() error {
	from, n := f.within()
	to := f.place()
	n = min(n, f.size-to)
	what := f.note("copy %d bytes at %d of %d to %d", n, from, len(f.want), to)
	if from < to+n && to < from+n {
		return nil
	}
	for n > 0 {
		in, out := int64(from), int64(to)
		done, err := unix.CopyFileRange(f.fd, &in, f.fd, &out, n, 0)
		if lacks(err) || errors.Is(err, unix.EXDEV) {
			return nil
		}
		if err != nil || done == 0 {
			return fmt.Errorf("%s: %d bytes are left, %v", what, n, err)
		}
		f.apply(f.want[from:from+done], to)
		from, to, n = from+done, to+done, n-done
	}
	return nil
}
