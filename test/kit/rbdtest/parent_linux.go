package rbdtest

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has this process get SIGTERM when its parent ends.
func dieWithParent() { unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0) }
