package mount

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// ForgetsInOrder tells whether files need not be opened on this kernel. Where they need not be, earlier ones may let go
// of a file that is closed while they read it ahead, or still have to write what was mapped: a read could wait for
// memory that waits for the read, and FORGET could come before the write. The kernel's history says so (6.18.3: "fuse:
// fix readahead reclaim deadlock"); it was not seen here.
func ForgetsInOrder() bool {
	var name unix.Utsname
	return unix.Uname(&name) == nil && mended(unix.ByteSliceToString(name.Release[:]))
}

// mended tells whether a kernel of that release is 6.18.3 or newer.
func mended(release string) bool {
	var version [3]int
	n, _ := fmt.Sscanf(release, "%d.%d.%d", &version[0], &version[1], &version[2])
	return n >= 2 && slices.Compare(version[:], []int{6, 18, 3}) >= 0
}
