package main

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// What the server needs of the process's descriptors beside those of connections, so that these do not
// take them from volumes and probes.
const (
	ownDescriptors    = 64 // itself, its listeners, a mount, names to look up, files to read again
	volumeDescriptors = 16 // each: the image and what is on the way to it, its helpers
	sideDescriptors   = 64 // connections to each other service: the status page, the profiler, the port mapper

	connectionShare = 4 // connections have one in so many, at least
)

// descriptorsNeeded is how many those are.
func descriptorsNeeded(volumes int, services ...bool) int {
	n := ownDescriptors + volumes*volumeDescriptors
	for _, on := range services {
		if on {
			n += sideDescriptors
		}
	}
	return n
}

// descriptorLimit is how many descriptors the process may have. Go's runtime has raised that as far as the hard limit
// allows.
func descriptorLimit() uint64 {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur)
}

// fit lowers the limit on connections to the descriptors that the process may have, less those that it needs itself.
// warning says that it did.
func (l *limits) fit(descriptors uint64, needed int) (warning string) {
	most := uint64(1)
	if descriptors > uint64(needed) {
		most = descriptors - uint64(needed)
	}
	most = max(most, descriptors/connectionShare)
	if uint64(l.conns) <= most {
		return ""
	}
	warning = fmt.Sprintf("at most %d connections at a time, not %d: "+
		"the process may have %d open files and needs up to %d for itself; raise its hard limit "+
		"(LimitNOFILE= of a systemd unit, --ulimit nofile= of a container, ulimit -Hn as root)",
		most, l.conns, descriptors, needed)
	l.conns = int(most)
	return warning
}
