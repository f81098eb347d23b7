package status

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// resident is the memory of this process in bytes, 0 where the system does not tell.
func resident() uint64 {
	b, err := os.ReadFile("/proc/self/statm")
	if f := bytes.Fields(b); err == nil && len(f) > 1 {
		if pages, err := strconv.ParseUint(string(f[1]), 10, 64); err == nil {
			return pages * uint64(os.Getpagesize())
		}
	}
	return 0
}

// processorTime is what this process used.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
