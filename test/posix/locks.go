//go:build linux

package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// lockOperations are the words about locks. None of them waits: what is locked by another is EAGAIN.
var lockOperations = map[string]operation{
	// flock H sh|ex|un
	"flock": {2, 2, func(r *runner, _ *actor, a []string) error {
		how := map[string]int{"sh": unix.LOCK_SH, "ex": unix.LOCK_EX, "un": unix.LOCK_UN}[a[1]]
		return unix.Flock(r.fd(a[0]), how|unix.LOCK_NB)
	}},
	// lock H read|write|un START LENGTH: a lock of the process
	"lock": {4, 4, func(r *runner, _ *actor, a []string) error {
		l := rangeOf(a)
		return unix.FcntlFlock(uintptr(r.fd(a[0])), unix.F_SETLK, &l)
	}},
	// ofdlock H read|write|un START LENGTH: a lock of the open file
	"ofdlock": {4, 4, func(r *runner, _ *actor, a []string) error {
		l := rangeOf(a)
		return unix.FcntlFlock(uintptr(r.fd(a[0])), unix.F_OFD_SETLK, &l)
	}},
	// locked H read|write START LENGTH RESULT: what is in the way of such a lock: none, or "read START LENGTH"
	"locked": {5, 5, func(r *runner, _ *actor, a []string) error {
		l := rangeOf(a)
		if err := unix.FcntlFlock(uintptr(r.fd(a[0])), unix.F_GETLK, &l); err != nil {
			return err
		}
		if l.Type == unix.F_UNLCK {
			return equal(a[4], "none")
		}
		name := map[int16]string{unix.F_RDLCK: "read", unix.F_WRLCK: "write"}[l.Type]
		return equal(a[4], fmt.Sprintf("%s %d %d", name, l.Start, l.Len))
	}},
}

func rangeOf(a []string) unix.Flock_t {
	kind := map[string]int16{"read": unix.F_RDLCK, "write": unix.F_WRLCK, "un": unix.F_UNLCK}[a[1]]
	return unix.Flock_t{Type: kind, Start: number(a[2]), Len: number(a[3])}
}
