package oncrpc

// inputQueue is the ioctl that tells how many bytes a socket has to read (FIONREAD).
const inputQueue = 0x4004667f
