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
