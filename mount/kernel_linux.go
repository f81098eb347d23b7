package mount

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ForgetsInOrder tells whether files need not be opened on this kernel. Where they need not be, earlier ones let go of
// a file that is closed while they still read it ahead, or write to it what was mapped: a read could wait for memory
// that waits for the read, and a write could come behind FORGET (mended in 6.18.3: "fuse: fix readahead reclaim
// deadlock").
func ForgetsInOrder() bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	return mended(unix.ByteSliceToString(name.Release[:]))
}

// mended tells whether a kernel of that release is 6.18.3 or newer.
func mended(release string) bool {
	least := []int{6, 18, 3}
	for i, part := range strings.SplitN(release, ".", len(least)) {
		digits := len(part)
		if at := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); at >= 0 {
			digits = at
		}
		n, err := strconv.Atoi(part[:digits])
		if err != nil || n < least[i] {
			return false
		}
		if n > least[i] {
			return true
		}
		if digits < len(part) { // as 6.18-rc1
			return i == len(least)-1
		}
	}
	return strings.Count(release, ".") >= len(least)-1
}
