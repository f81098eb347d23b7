package oncrpc

import "syscall"

// inputQueue is the ioctl that tells how many bytes a socket has to read (FIONREAD).
const inputQueue = 0x4004667f

// limitUnsent does nothing: here a socket takes as much as its buffer holds, whatever is said.
func limitUnsent(syscall.RawConn, int) {}
