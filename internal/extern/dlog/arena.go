package dlog

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"tansy/internal/extern/dbytes"
)

// arena is the part of a large cache that lies outside of Go's heap, where the garbage collector
// neither finds nor counts it: a collector that runs whenever so many MiB came in runs as often with
// a cache of 1 GiB as with one of 64 MiB, but has to go over all of it each time.
//
// What it gives is a copy, as nothing tells when the last reader of a block has let go of it.
// It forgets by the clock algorithm: a hand goes round, and takes the first block that was not
// asked for since it came by last.
type arena struct {
	memory []byte // of the system; all that follows lies in it, and takes no room until it is used
	blocks []dbytes.Blk
	addrs  []uint64 // of each slot
	state  []uint8  // of each slot
	tab    []uint32 // slots plus 1, by address: open addressing, linear probing, at most half full; 0: free
	next   []uint32 // of a slot that is free: the next one plus 1
	shift  uint     // 64 - log2 of the size of tab
	free   uint32   // the first free slot plus 1, of those that were in use before
	used   int      // slots that were ever in use
	len    int      // blocks
	hand   int
}

// States of a slot.
const (
	slotFree uint8 = iota
	slotIdle       // it has a block that was not asked for since the hand came by
	slotAsked
)

// newArena returns an arena that takes the memory of n blocks, or nil if the system does not give that much.
func newArena(n int) *arena {
	n -= n / 128 // for what is kept about them
	if n <= 0 {
		return nil
	}
	a := &arena{shift: 63}
	size := 2
	for size < 2*n {
		size *= 2
		a.shift--
	}
	// Larger elements first, so that each is aligned.
	memory, err := unix.Mmap(-1, 0, n*(dbytes.BlkSize+8+4+1)+4*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	a.memory = memory
	rest := memory
	a.blocks, rest = carve[dbytes.Blk](rest, n)
	a.addrs, rest = carve[uint64](rest, n)
	a.tab, rest = carve[uint32](rest, size)
	a.next, rest = carve[uint32](rest, n)
	a.state, _ = carve[uint8](rest, n)
	runtime.AddCleanup(a, func(m []byte) { unix.Munmap(m) }, memory)
	return a
}

// carve makes the first bytes of memory n elements without pointers.
func carve[T any](memory []byte, n int) (s []T, rest []byte) {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n), memory[n*int(unsafe.Sizeof(x)):]
}

// get returns a copy of the block at address at, or nil, and whether it was asked for before.
func (a *arena) get(at uint64) (b *dbytes.Blk, again bool) {
	i, ok := a.find(at)
	if !ok {
		return nil, false
	}
	s := a.tab[i] - 1
	again = a.state[s] == slotAsked
	a.state[s] = slotAsked
	c := a.blocks[s]
	return &c, again
}

// put remembers a copy of b as the block at address at.
func (a *arena) put(at uint64, b *dbytes.Blk) {
	a.forget(at)
	s := a.slot()
	a.blocks[s], a.addrs[s], a.state[s] = *b, at, slotIdle
	i, _ := a.find(at)
	a.tab[i] = s + 1
	a.len++
}

// slot finds a place for a block.
func (a *arena) slot() uint32 {
	if a.used < len(a.blocks) && a.free == 0 {
		a.used++
		return uint32(a.used - 1)
	}
	for a.free == 0 {
		switch a.state[a.hand] {
		case slotAsked:
			a.state[a.hand] = slotIdle
		case slotIdle:
			a.forget(a.addrs[a.hand])
		}
		if a.hand++; a.hand == len(a.blocks) {
			a.hand = 0
		}
	}
	s := a.free - 1
	a.free = a.next[s]
	return s
}

// forget drops the block at address at.
func (a *arena) forget(at uint64) {
	i, ok := a.find(at)
	if !ok {
		return
	}
	s := a.tab[i] - 1
	a.state[s], a.next[s], a.free = slotFree, a.free, s+1
	a.len--
	// Those behind it that would not be found any more move up.
	mask := len(a.tab) - 1
	for k := (i + 1) & mask; a.tab[k] != 0; k = (k + 1) & mask {
		if from := a.start(a.addrs[a.tab[k]-1]); (k-from)&mask >= (k-i)&mask {
			a.tab[i] = a.tab[k]
			i = k
		}
	}
	a.tab[i] = 0
}

// start is where the search for an address begins.
func (a *arena) start(at uint64) int { return int(at * 0x9E3779B97F4A7C15 >> a.shift) }

// find returns the entry of an address, or the free one that it would get.
func (a *arena) find(at uint64) (i int, ok bool) {
	for i = a.start(at); ; i = (i + 1) & (len(a.tab) - 1) {
		switch s := a.tab[i]; {
		case s == 0:
			return i, false
		case a.addrs[s-1] == at:
			return i, true
		}
	}
}
