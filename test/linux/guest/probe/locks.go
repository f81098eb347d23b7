//go:build linux

package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// locks does what a shell cannot with locks of bytes of a file:
//
//	hold FILE FROM LEN r|w MARK    wait for the lock, make the file MARK, and keep it until the process is killed
//	try FILE FROM LEN r|w ERRNO    take it without waiting, if it is free
//	add FILE N                     N times: lock, read a number, write one more, unlock
//	flock FILE MARK, tryflock FILE ERRNO    the same as hold and try by flock
func locks(verb string, a []string) {
	f, err := os.OpenFile(a[0], os.O_RDWR|os.O_CREATE, 0o666)
	check(err)
	fd := f.Fd()
	switch verb {
	case "hold":
		check(setLock(fd, syscall.F_SETLKW, a[1], a[2], a[3]))
		keep(a[4])
	case "try":
		expect(setLock(fd, syscall.F_SETLK, a[1], a[2], a[3]), a[4])
	case "add":
		for range number(a[1]) {
			add(f)
		}
	case "flock":
		check(syscall.Flock(int(fd), syscall.LOCK_EX))
		keep(a[1])
	case "tryflock":
		expect(syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB), a[1])
	default:
		fail("unknown verb locks " + verb)
	}
}

// keep says that there is a lock, and keeps it.
func keep(mark string) {
	check(os.WriteFile(mark, nil, 0o666))
	for {
		time.Sleep(time.Hour)
	}
}

// setLock asks for a lock of the bytes of a file; again if a signal of Go's runtime comes.
func setLock(fd uintptr, how int, from, length, mode string) error {
	l := syscall.Flock_t{Type: syscall.F_RDLCK, Start: int64(number(from)), Len: int64(number(length))}
	switch mode {
	case "w":
		l.Type = syscall.F_WRLCK
	case "u":
		l.Type = syscall.F_UNLCK
	}
	for {
		if err := syscall.FcntlFlock(fd, how, &l); err != syscall.EINTR {
			return err
		}
	}
}

// add adds 1 to the number in a file, which another process may do, too.
func add(f *os.File) {
	check(setLock(f.Fd(), syscall.F_SETLKW, "0", "0", "w"))
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 100))
	check(err)
	n := 0
	if text := strings.TrimSpace(string(b)); text != "" {
		n, err = strconv.Atoi(text)
		check(err)
	}
	_, err = f.WriteAt([]byte(fmt.Sprintf("%d\n", n+1)), 0)
	check(err)
	check(setLock(f.Fd(), syscall.F_SETLK, "0", "0", "u"))
}
