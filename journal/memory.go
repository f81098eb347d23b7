package journal

import "tansy/disk"

// How much memory is for what.

// pageShare is how many blocks of the cache there are for one page of the tree of codes in it.
const pageShare = 16

// DefaultCacheBytes is of Options.CacheBytes.
const DefaultCacheBytes = 64 << 20

// DefaultPinnedBytes and MinPinnedBytes are of Options.PinnedBytes.
const (
	DefaultPinnedBytes = 64 << 20 // the more are installed at once, the fewer pages of the tree are written for each
	MinPinnedBytes     = 4 << 20  // each half has to have room for a group
)

// pinned is how many blocks that are in the log may wait for the installer, and at how many it starts. As many
// again as may wait it may be busy with.
func pinned(bytes uint64) (most, start uint64) {
	most = bytes / 2 / disk.BlockSize
	return most, most / 2
}

// split is how many blocks of a cache are for blocks, and how many for pages of the tree of codes.
func split(cacheBytes uint64) (blocks, pages int) {
	all := int(min(cacheBytes/disk.BlockSize, 1<<31))
	return all - all/pageShare, all / pageShare
}
