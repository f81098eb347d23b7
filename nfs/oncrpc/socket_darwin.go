package oncrpc

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// inputQueue is the ioctl that tells how many bytes a socket has to read (FIONREAD).
const inputQueue = 0x4004667f

// limitUnsent does nothing: here a socket takes as much as its buffer holds, whatever is said.
func limitUnsent(syscall.RawConn, int) {}

// standing tells if the peer has not hung up.
func standing(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd)}}
	_, err := unix.Poll(fds[:], 0)
	return err == nil && fds[0].Revents&(unix.POLLHUP|unix.POLLERR) == 0
}

// unacknowledged is how many bytes were written to a socket whose arrival is not known, below 0 if that cannot be told.
func unacknowledged(fd int) int {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NWRITE)
	if err != nil {
		return -1
	}
	return n
}
