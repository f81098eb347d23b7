package oncrpc

import "golang.org/x/sys/unix"

// inputQueue is the ioctl that tells how many bytes a socket has to read (FIONREAD).
const inputQueue = unix.TIOCINQ
