//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Locks are those of a process (fcntl), of an open file (fcntl, OFD), or of flock. In the lines here, KIND is read,
// write, or un, and a range is START LENGTH [set|cur|end], where a length of 0 is up to the end of all numbers.

// lockOperations are the words about locks that do not wait: what is locked by another is EAGAIN.
var lockOperations = map[string]operation{
	// flock H sh|ex|un
	"flock": {2, 2, func(r *runner, _ *actor, a []string) error {
		return unix.Flock(r.fd(a[0]), flockHow[a[1]]|unix.LOCK_NB)
	}},
	// lock H KIND RANGE: a lock of the process
	"lock": {4, 5, func(r *runner, _ *actor, a []string) error { return r.setLock(unix.F_SETLK, a) }},
	// ofdlock H KIND RANGE: a lock of the open file
	"ofdlock": {4, 5, func(r *runner, _ *actor, a []string) error { return r.setLock(unix.F_OFD_SETLK, a) }},
	// locked H KIND START LENGTH RESULT: what is in the way of such a lock: none, or "read START LENGTH"
	"locked": {5, 5, func(r *runner, _ *actor, a []string) error {
		got, err := r.obstacle(a[0], a[1], number(a[2]), number(a[3]))
		if err != nil {
			return err
		}
		return equal(a[4], got)
	}},
	// bytes H START WHAT: of the bytes from START on, W is locked for writing by another, R for reading, - not at all
	"bytes": {3, 3, func(r *runner, _ *actor, a []string) error {
		got := ""
		for i := range int64(len(a[2])) {
			what, err := r.obstacle(a[0], "write", number(a[1])+i, 1)
			if err != nil {
				return err
			}
			got += map[byte]string{'n': "-", 'r': "R", 'w': "W"}[what[0]]
		}
		return equal(a[2], got)
	}},
}

// waitOperations are the same words when somebody is in the way: the call waits. Others go on meanwhile.
var waitOperations = map[string]operation{
	"waitflock": {2, 2, func(r *runner, who *actor, a []string) error {
		fd := r.fd(a[0])
		return who.wait(func() error { return unix.Flock(fd, flockHow[a[1]]) })
	}},
	"waitlock": {4, 5, func(r *runner, who *actor, a []string) error { return r.waitLock(who, unix.F_SETLKW, a) }},
	"waitofdlock": {4, 5, func(r *runner, who *actor, a []string) error {
		return r.waitLock(who, unix.F_OFD_SETLKW, a)
	}},
}

// waiterOperations are said of who waits.
var waiterOperations = map[string]operation{
	// waits: it waits still
	"waits": {0, 0, func(_ *runner, who *actor, _ []string) error { return who.waitsStill() }},
	// gets: its call ends, in this way
	"gets": {0, 0, func(_ *runner, who *actor, _ []string) error { return who.get() }},
	// interrupt: a signal ends the call
	"interrupt": {0, 0, func(_ *runner, who *actor, _ []string) error { return who.interrupt() }},
}

var flockHow = map[string]int{"sh": unix.LOCK_SH, "ex": unix.LOCK_EX, "un": unix.LOCK_UN}

func rangeOf(a []string) unix.Flock_t {
	kind := map[string]int16{"read": unix.F_RDLCK, "write": unix.F_WRLCK, "un": unix.F_UNLCK}[a[1]]
	l := unix.Flock_t{Type: kind, Start: number(a[2]), Len: number(a[3])}
	if len(a) > 4 {
		l.Whence = map[string]int16{"set": unix.SEEK_SET, "cur": unix.SEEK_CUR, "end": unix.SEEK_END}[a[4]]
	}
	return l
}

func (r *runner) setLock(how int, a []string) error {
	l := rangeOf(a)
	return unix.FcntlFlock(uintptr(r.fd(a[0])), how, &l)
}

func (r *runner) waitLock(who *actor, how int, a []string) error {
	fd, l := uintptr(r.fd(a[0])), rangeOf(a)
	return who.wait(func() error { return unix.FcntlFlock(fd, how, &l) })
}

// obstacle is what is in the way of a lock: none, or kind, start, and length.
func (r *runner) obstacle(handle, kind string, start, length int64) (string, error) {
	l := rangeOf([]string{handle, kind, "0", "0"})
	l.Start, l.Len = start, length
	if err := unix.FcntlFlock(uintptr(r.fd(handle)), unix.F_GETLK, &l); err != nil {
		return "", err
	}
	if l.Type == unix.F_UNLCK {
		return "none", nil
	}
	name := map[int16]string{unix.F_RDLCK: "read", unix.F_WRLCK: "write"}[l.Type]
	return fmt.Sprintf("%s %d %d", name, l.Start, l.Len), nil
}
