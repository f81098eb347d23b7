//go:build linux

package main

import (
	"errors"
	"fmt"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// bus is what a script expects of an access to a map beyond the pages that the file has.
const bus = "SIGBUS"

var errBus = errors.New(bus)

// mapOperations are the words about memory maps. Maps belong to all users: they are threads of one process.
var mapOperations = map[string]operation{
	// map M H OFFSET LENGTH shared|private r|rw
	"map": {6, 6, func(r *runner, _ *actor, a []string) error {
		how := map[string]int{"shared": unix.MAP_SHARED, "private": unix.MAP_PRIVATE}[a[4]]
		access := map[string]int{"r": unix.PROT_READ, "rw": unix.PROT_READ | unix.PROT_WRITE}[a[5]]
		if _, taken := r.mapped[a[0]]; taken { // it would stay after the check
			return fmt.Errorf("there is a map %s", a[0])
		}
		m, err := unix.Mmap(r.fd(a[1]), number(a[2]), int(number(a[3])), access, how)
		if err == nil {
			r.mapped[a[0]] = m
		}
		return err
	}},
	// peek M OFFSET DATA: what is there is DATA
	"peek": {3, 3, func(r *runner, _ *actor, a []string) error {
		got := make([]byte, len(a[2]))
		err := touch(r, a, func(m []byte) { copy(got, m) })
		if err != nil {
			return err
		}
		return equal(a[2], string(got))
	}},
	// poke M OFFSET DATA
	"poke": {3, 3, func(r *runner, _ *actor, a []string) error {
		return touch(r, a, func(m []byte) { copy(m, a[2]) })
	}},
	"msync": {1, 1, func(r *runner, _ *actor, a []string) error { return unix.Msync(r.mapped[a[0]], unix.MS_SYNC) }},
	"unmap": {1, 1, func(r *runner, _ *actor, a []string) error {
		m := r.mapped[a[0]]
		delete(r.mapped, a[0])
		return unix.Munmap(m)
	}},
}

// touch gives f as much of map a[0], from offset a[1], as data a[2] is long.
func touch(r *runner, a []string, f func([]byte)) (err error) {
	m, ok := r.mapped[a[0]]
	from := number(a[1])
	if !ok || from+int64(len(a[2])) > int64(len(m)) {
		return fmt.Errorf("no map %s, or none of that length", a[0])
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if _, fault := p.(interface{ Addr() uintptr }); !fault {
				panic(p)
			}
			err = errBus
		}
	}()
	f(m[from:][:len(a[2])])
	return nil
}
