package dbytes

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The blocks that are written lie outside of Go's heap, where the garbage collector neither finds nor counts them: in
// a stream of writes they are nearly all of what is allocated, and a collector that has to keep up with the network
// needs a third of the processors, and all the memory that it may take.
//
// So it is counted who may see such a block, and when nobody may, its memory is used again. Those are
//   - who made it: of what a WRITE brings (Source), until the WRITE is over; of what a transaction changes
//     (hold.Hold.Copy), until the transaction is;
//   - each map of blocks that has it (blockmap.Map), until it is cleared or dropped: what is being written by the
//     logger or the installer lies in maps that do not change meanwhile;
//   - each Hold that it is kept for (hold.Hold): who has got it from such a map under the journal's mutex, and sees it
//     longer than that is held.
//
// Retain and Release take other blocks as well, and do nothing: these are the garbage collector's.

// pool is that memory. A block that is free was not used for long if it lies deep in the list of these.
type pool struct {
	blocks []Blk
	refs   []atomic.Int32 // of each block: who may see it

	mu    sync.Mutex
	free  []uint32 // the last is the next to be taken
	used  int      // blocks that were ever taken
	cold  int      // so many of free, from the first on, take no memory
	least int      // how many were free at any time in this period
	aging bool
}

// poolBlocks is the most blocks of the pool: so many as can wait to be brought home by some hundred volumes. They take
// memory as they are used.
const poolBlocks = 1 << 18

// poolPeriod is how long a block that nobody needs keeps its memory, at least; at most it is twice that.
const poolPeriod = time.Second

var writes = newPool(poolBlocks)

// newPool returns a pool of at most n blocks; of none, if the system gives no addresses for them.
func newPool(n int) *pool {
	if Poison {
		n = min(n, 2048)
		// Only there does the race detector see who reads them.
		return &pool{blocks: make([]Blk, n), refs: make([]atomic.Int32, n)}
	}
	const private = unix.MAP_ANON | unix.MAP_PRIVATE | unix.MAP_NORESERVE
	m, err := unix.Mmap(-1, 0, n*(BlkSize+4), unix.PROT_READ|unix.PROT_WRITE, private)
	if err != nil {
		return &pool{}
	}
	return &pool{
		blocks: unsafe.Slice((*Blk)(unsafe.Pointer(unsafe.SliceData(m))), n),
		refs:   unsafe.Slice((*atomic.Int32)(unsafe.Pointer(&m[n*BlkSize])), n),
	}
}

// index is the number of block b; it is not ok if b is no block of p.
func (p *pool) index(b *Blk) (i uintptr, ok bool) {
	i = (uintptr(unsafe.Pointer(b)) - uintptr(unsafe.Pointer(unsafe.SliceData(p.blocks)))) / BlkSize
	return i, i < uintptr(len(p.blocks))
}

// get returns a block that holds anything, retained once, or nil.
func (p *pool) get() *Blk {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.used
	if n := len(p.free) - 1; n >= 0 {
		i = int(p.free[n])
		p.free = p.free[:n]
		p.least, p.cold = min(p.least, n), min(p.cold, n)
	} else if i == len(p.blocks) {
		return nil
	} else {
		p.used++
	}
	p.refs[i].Store(1)
	return &p.blocks[i]
}

// put takes block i back.
func (p *pool) put(i uintptr) {
	Spoil(p.blocks[i : i+1])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, uint32(i))
	if !p.aging && !Poison {
		p.aging, p.least = true, 0
		time.AfterFunc(poolPeriod, p.age)
	}
}

// age gives the memory of blocks that were not needed back, from period to period, until none is left that could be.
func (p *pool) age() {
	if p.cool() {
		time.AfterFunc(poolPeriod, p.age)
	}
}

// cool gives the memory of the blocks back that were free since it was last called, and tells if there may be more to
// do.
func (p *pool) cool() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := p.least; n > p.cold {
		idle := slices.Clone(p.free[p.cold:n])
		slices.Sort(idle)
		for len(idle) > 0 {
			n := 1
			for n < len(idle) && idle[n] == idle[0]+uint32(n) {
				n++
			}
			run := p.blocks[idle[0]:][:n]
			unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&run[0])), n*BlkSize), unix.MADV_DONTNEED)
			idle = idle[n:]
		}
		p.cold = n
	}
	p.least = len(p.free)
	p.aging = len(p.free) > p.cold
	return p.aging
}

// resident is how many bytes p takes of the memory.
func (p *pool) resident() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.used-p.cold) * BlkSize
}

// inUse is how many blocks somebody may see.
func (p *pool) inUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used - len(p.free)
}

// Retain lets one more see b; it does nothing, and says so, if b is the garbage collector's.
func Retain(b *Blk) bool {
	i, ok := writes.index(b)
	if ok && writes.refs[i].Add(1) <= 1 {
		panic("dbytes: a block is kept that nobody may see any more")
	}
	return ok
}

// Release ends what Retain began. When it was the last one, the block's memory may be used again at once.
func Release(b *Blk) {
	i, ok := writes.index(b)
	if !ok {
		return
	}
	switch n := writes.refs[i].Add(-1); {
	case n == 0:
		writes.put(i)
	case n < 0:
		panic("dbytes: a block is given back that nobody has")
	}
}

// WriteMemory is how many bytes the blocks of WRITEs take that lie outside of Go's heap.
func WriteMemory() int64 { return writes.resident() }

// WritesHeld is how many of these blocks somebody may see.
func WritesHeld() int { return writes.inUse() }

// copies are blocks that were copied from a buffer, and are its own until they are let go.
type copies struct{ blocks []*Blk }

// Source returns a buffer of data, which CopyOf copies to memory outside of Go's heap. When all transactions that write
// the copies have ended, however they did, the caller has to call LetGo.
func Source(data []byte) *Bytes { return &Bytes{Data: data, copies: new(copies)} }

// LetGo ends the copies that b was the source of, but for those in maps and for Holds.
func (b *Bytes) LetGo() {
	for _, k := range b.copies.blocks {
		Release(k)
	}
	b.copies.blocks = nil
}

// CopyOf returns a mutable copy of the 4096 bytes from so on.
func (b *Bytes) CopyOf(so uint64) *Bytes {
	from := b.Data[so : so+BlkSize]
	if b.copies != nil {
		if k := Copy(BlkOf(from)); k != nil {
			b.copies.blocks = append(b.copies.blocks, k)
			return k.Melt()
		}
	}
	return &Bytes{Data: append([]byte(nil), from...)} // append does not clear it first
}

// Copy returns a copy of b outside of Go's heap, retained once, or nil if there is no room.
func Copy(b *Blk) *Blk {
	k := writes.get()
	if k != nil {
		*k = *b
	}
	return k
}

// Melt returns b as a buffer. Nobody else has it.
func (b *Blk) Melt() *Bytes { return &Bytes{Data: b.v[:]} }
