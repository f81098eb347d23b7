package main

import "golang.org/x/sys/unix"

// memory is the main memory of this machine in bytes; 0: not known.
func memory() uint64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return n
}
