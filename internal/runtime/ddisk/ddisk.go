// Package ddisk is the Go behind verified/trusted/disk.s.dfy: the device as the
// verified journal sees it.
//
// Errors become booleans here, and they stick: after the first write or barrier that
// failed, all later ones fail without touching the device, because what a device says
// after that cannot be trusted (the next barrier may well succeed although the writes
// before the failed one are lost). Err tells what happened.
package ddisk

import (
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/dbytes"
)

// BList is an immutable list of blocks and, where it has them, their addresses.
type BList struct {
	Addrs []uint64
	Blks  []*dbytes.Blk

	memory []dbytes.Blk // where they lie, if that may be used again when nobody sees them any more; else nil
}

// Take returns the memory of the list's blocks, or nil, and leaves it to the caller when to give it to RecycleBlks.
func (l *BList) Take() []dbytes.Blk {
	m := l.memory
	l.memory = nil
	return m
}

// of makes l, which is empty, the blocks of memory.
func (l *BList) of(memory []dbytes.Blk) {
	l.Blks, l.memory = make([]*dbytes.Blk, len(memory)), memory
	for i := range memory {
		l.Blks[i] = &memory[i]
	}
}

// Len is the number of blocks.
func (l *BList) Len() uint64 { return uint64(len(l.Blks)) }

// AddrAt is the address of block i.
func (l *BList) AddrAt(i uint64) uint64 { return l.Addrs[i] }

// BlkAt is block i.
func (l *BList) BlkAt(i uint64) *dbytes.Blk { return l.Blks[i] }

// Counts are the operations of a Disk since it was made.
type Counts struct {
	Reads, ReadBlocks, Writes, WrittenBlocks, Barriers uint64

	SharedReads uint64 // that had what another one found, and are not among Reads

	Discards, DiscardedBlocks uint64 // runs of zeros that were discarded instead of written, and their blocks
}

// Disk is a device.
type Disk struct {
	d       disk.Disk
	bad     atomic.Bool
	first   atomic.Pointer[error]              // first failed write or barrier
	read    atomic.Pointer[error]              // last failed read
	barrier lockorder.Mutex[lockorder.Barrier] // one barrier at a time, so that an error of one is seen by the next
	spare   spare
	pace    pace
	trial   trial
	past    bool // all writes go past the system's cache; see Judge
	sharing sharing

	reads, shared, readBlocks, writes, writtenBlocks, barriers atomic.Uint64

	runs, runTime atomic.Int64 // reads of runs that have ended, and their nanoseconds
}

// New returns d as the verified code sees it.
func New(d disk.Disk) *Disk { return &Disk{d: d} }

// NewAbove is New for a disk whose barriers are those of another Disk, which is below it.
func NewAbove(d disk.Disk) *Disk {
	above := New(d)
	above.barrier.Nth(-1)
	return above
}

// Err is the error of the first failed write or barrier, or nil.
func (d *Disk) Err() error { return load(&d.first) }

// ReadErr is the error of the last failed read, or nil.
func (d *Disk) ReadErr() error { return load(&d.read) }

func load(p *atomic.Pointer[error]) error {
	if e := p.Load(); e != nil {
		return *e
	}
	return nil
}

// Reading returns how many reads of runs of blocks have ended so far, and the time that these took together.
func (d *Disk) Reading() (reads int64, took time.Duration) {
	return d.runs.Load(), time.Duration(d.runTime.Load())
}

// Counts returns the operations so far.
func (d *Disk) Counts() Counts {
	return Counts{
		Reads: d.reads.Load(), ReadBlocks: d.readBlocks.Load(),
		Writes: d.writes.Load(), WrittenBlocks: d.writtenBlocks.Load(),
		Barriers: d.barriers.Load(), SharedReads: d.shared.Load(),
		Discards: d.spare.runs.Load(), DiscardedBlocks: d.spare.blocks.Load(),
	}
}

func (d *Disk) fail(err error) bool {
	d.first.CompareAndSwap(nil, &err)
	d.bad.Store(true)
	d.sharing.begun.Add(1) // a barrier that failed may change what is read; it never ends: reads are not shared any more
	return false
}

// Size is the number of blocks.
func (d *Disk) Size() uint64 { return d.d.Size() }

// There yields the runs of the blocks [a, end) that are there (disk.There).
func (d *Disk) There(a, end uint64) iter.Seq2[uint64, uint64] { return disk.There(d.d, a, end) }

// CountThere is how many of the blocks [a, end) are there.
func (d *Disk) CountThere(a, end uint64) uint64 { return disk.CountThere(d.d, a, end) }

// InHole tells whether n blocks from a on lie in a hole of the device: a read of them costs it nothing.
func (d *Disk) InHole(a, n uint64) bool {
	next, err := disk.NextData(d.d, a)
	return err == nil && next >= a+n
}

// ErrNotOwner is the error of everything after Stop.
var ErrNotOwner = fmt.Errorf("%w: the header of its log bears the mark of another server, or none", disk.ErrLost)

// Forget has the next read of n blocks from a on ask the medium, as far as that is possible.
func (d *Disk) Forget(a, n uint64) {
	d.sharing.begun.Add(1)
	disk.Forget(d.d, a, n)
	d.sharing.ended.Add(1)
}

// Stop makes all later writes and barriers fail.
func (d *Disk) Stop() { d.fail(ErrNotOwner) }

// Read reads block a, as the device has it now: not a copy of it that the operating system made before.
func (d *Disk) Read(a uint64) (bool, *dbytes.Blk) {
	disk.Forget(d.d, a, 1)
	d.reads.Add(1)
	d.readBlocks.Add(1)
	buf := dbytes.NewBytes(dbytes.BlkSize)
	lockorder.Wait[lockorder.Device]()
	if err := d.d.ReadAt(a, [][]byte{buf.Data}); err != nil {
		d.read.Store(&err)
		return false, dbytes.ZeroBlk()
	}
	return true, dbytes.Freeze(buf)
}

// ReadRun reads n blocks from a on.
func (d *Disk) ReadRun(a, n uint64) (bool, *BList) {
	l := &BList{}
	if n == 0 {
		return true, l
	}
	r, other := d.sharing.begin(a, n)
	if other != nil && r.wait() {
		d.shared.Add(1)
		return true, other
	}
	memory := d.get(a, n)
	if other == nil {
		d.sharing.end(r, memory)
	}
	if memory == nil {
		return false, l
	}
	l.of(memory)
	return true, l
}

// get reads n blocks from a on; nil if that failed.
func (d *Disk) get(a, n uint64) []dbytes.Blk {
	d.reads.Add(1)
	d.readBlocks.Add(n)
	memory := dbytes.AnyBlks(n)
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = memory[i].Data()
	}
	lockorder.Wait[lockorder.Device]()
	began := time.Now()
	err := d.d.ReadAt(a, bufs)
	d.runTime.Add(int64(time.Since(began)))
	d.runs.Add(1)
	if err != nil {
		d.read.Store(&err)
		dbytes.RecycleBlks(memory)
		return nil
	}
	return memory
}

// ReadAny is ReadRun, for those who believe nothing of what is read.
func (d *Disk) ReadAny(a, n uint64) (bool, *BList) { return d.ReadRun(a, n) }

// WriteRun writes blocks i to i+n-1 of l to the blocks from a on.
func (d *Disk) WriteRun(a uint64, l *BList, i, n uint64) bool {
	if n == 0 {
		return !d.bad.Load()
	}
	bufs := make([][]byte, n)
	for k := range bufs {
		bufs[k] = l.Blks[i+uint64(k)].Data()
	}
	return d.write(a, bufs)
}

// Write writes b to block a.
func (d *Disk) Write(a uint64, b *dbytes.Blk) bool { return d.write(a, [][]byte{b.Data()}) }

// WriteSector is Write where block a and b differ only within their first sector, so
// that the write is atomic.
func (d *Disk) WriteSector(a uint64, b *dbytes.Blk) bool { return d.Write(a, b) }

func (d *Disk) write(a uint64, bufs [][]byte) bool {
	if d.spare.any.Load() {
		return d.writeSpare(a, bufs)
	}
	return d.put(a, bufs)
}

// put writes bufs.
func (d *Disk) put(a uint64, bufs [][]byte) bool {
	if d.bad.Load() {
		return false
	}
	d.writes.Add(1)
	d.writtenBlocks.Add(uint64(len(bufs)))
	d.sharing.begun.Add(1)
	defer d.sharing.ended.Add(1)
	lockorder.Wait[lockorder.Device]()
	wrote := d.trial.writing()
	if err := d.d.WriteAt(a, bufs); err != nil {
		return d.fail(err)
	}
	wrote()
	d.push(a, uint64(len(bufs)))
	return true
}

// Barrier makes all writes that returned before durable.
func (d *Disk) Barrier() bool {
	d.barrier.Lock()
	defer d.barrier.Unlock()
	if d.bad.Load() {
		return false
	}
	d.barriers.Add(1)
	lockorder.Wait[lockorder.Device]()
	began := time.Now()
	if err := d.d.Barrier(); err != nil {
		return d.fail(err)
	}
	d.trial.barred(began)
	return !d.bad.Load()
}
