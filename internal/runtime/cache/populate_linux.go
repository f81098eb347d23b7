package cache

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"tansy/internal/runtime/dbytes"
)

// populated is how many blocks of a cache get their memory at once: few enough that nobody waits for it.
const populated = 64

// populate has the system give blocks their memory in one call; else each takes a page fault when it is first filled,
// which is an eighth of the time in which a file is read that nobody has in memory. Huge pages would be faster still
// where they are at hand, but half as fast where a virtual machine's host has to find them first. Systems before Linux
// 5.14 refuse, and fault.
func populate(blocks []dbytes.Blk) {
	unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&blocks[0])), len(blocks)*dbytes.BlkSize), unix.MADV_POPULATE_WRITE)
}
