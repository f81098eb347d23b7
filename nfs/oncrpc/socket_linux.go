package oncrpc

import (
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// inputQueue is the ioctl that tells how many bytes a socket has to read (FIONREAD).
const inputQueue = unix.TIOCINQ

// limitUnsent lets a socket take no more for its peer while it has n bytes that the peer has no
// room for; 0: as much as its buffer holds. A buffer in the kernel grows to megabytes, which are the
// replies of tens of thousands of calls.
func limitUnsent(raw syscall.RawConn, n int) {
	if n == 0 {
		n = math.MaxInt32
	}
	raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n) })
}

// standing tells if the peer has not hung up.
func standing(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	_, err := unix.Poll(fds[:], 0)
	return err == nil && fds[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR) == 0
}

// unacknowledged is how many bytes were written to a socket whose arrival is not known (SIOCOUTQ), below 0 if that
// cannot be told.
func unacknowledged(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.TIOCOUTQ)
	if err != nil {
		return -1
	}
	return n
}
