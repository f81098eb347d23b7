package main

import (
	"fmt"

	"tansy/journal"
)

// overhead is what the server needs besides its block cache: requests in
// flight, blocks not yet written home, the Go run time (bytes).
const overhead = 64 << 20

// slack is the part of overhead that Go's memory limit does not see or may
// overshoot: the program itself, and what is allocated while the garbage
// collector runs (bytes).
const slack = 19 << 20

// perVolume is what each volume but the first needs besides its cache: blocks not yet written
// home (bytes).
const perVolume = 32 << 20

// minCache is the least block cache: no smaller one is made.
var minCache = byteSize(4 << 20)

// smallCache says that a cache is too small, or nothing.
func smallCache(size, least byteSize) string {
	if size >= least {
		return ""
	}
	return fmt.Sprintf("--cache %v is too small: give %v or more", &size, &least)
}

// defaultCache is the size of the block cache, for so much memory; 0: not known.
func defaultCache(memory uint64) byteSize {
	if memory == 0 {
		return 64 << 20
	}
	return byteSize(memory / 4 &^ (1<<20 - 1))
}

// divide is what of a volume's cache is for blocks that are home, and what for those in the log that are not
// yet, in bytes: these get an eighth, but no more than they have use for, and no less than the journal needs. Half
// as much again is for blocks that are home and not durable yet.
func divide(cache uint64) (clean, pinned uint64) {
	pinned = min(cache/8, journal.DefaultPinnedBytes)
	return cache - pinned - pinned/2, max(pinned, journal.MinPinnedBytes)
}
