package disk

import (
	"sync/atomic"
	"time"
)

// Stats wraps a Disk, and counts and times what passes through.
type Stats struct {
	Disk
	reads, readBlocks, writes, writtenBlocks, barriers atomic.Uint64
	discards, discardedBlocks                          atomic.Uint64
	readTime, writeTime, barrierTime                   atomic.Int64 // nanoseconds
}

// Counts are the numbers of a Stats since it was made. Failed operations count.
type Counts struct {
	Reads, ReadBlocks     uint64 // calls of ReadAt, and the blocks they asked for
	Writes, WrittenBlocks uint64 // calls of WriteAt, and the blocks they gave
	Barriers              uint64

	Discards, DiscardedBlocks uint64 // calls of Discard that succeeded, and their blocks

	// Time spent within the calls; that of calls side by side adds up.
	ReadTime, WriteTime, BarrierTime time.Duration
}

// Plus returns the sums of both.
func (c Counts) Plus(o Counts) Counts {
	return Counts{
		Reads: c.Reads + o.Reads, ReadBlocks: c.ReadBlocks + o.ReadBlocks,
		Writes: c.Writes + o.Writes, WrittenBlocks: c.WrittenBlocks + o.WrittenBlocks,
		Barriers: c.Barriers + o.Barriers,
		Discards: c.Discards + o.Discards, DiscardedBlocks: c.DiscardedBlocks + o.DiscardedBlocks,
		ReadTime: c.ReadTime + o.ReadTime, WriteTime: c.WriteTime + o.WriteTime,
		BarrierTime: c.BarrierTime + o.BarrierTime,
	}
}

// NewStats returns d with counters.
func NewStats(d Disk) *Stats { return &Stats{Disk: d} }

// Unwrap returns the disk that is counted, for HostOf.
func (s *Stats) Unwrap() Disk { return s.Disk }

// Counts returns the present numbers, each exact but not all of one moment.
func (s *Stats) Counts() Counts {
	return Counts{
		Reads: s.reads.Load(), ReadBlocks: s.readBlocks.Load(),
		Writes: s.writes.Load(), WrittenBlocks: s.writtenBlocks.Load(),
		Barriers: s.barriers.Load(),
		Discards: s.discards.Load(), DiscardedBlocks: s.discardedBlocks.Load(),
		ReadTime: time.Duration(s.readTime.Load()), WriteTime: time.Duration(s.writeTime.Load()),
		BarrierTime: time.Duration(s.barrierTime.Load()),
	}
}

// ReadAt implements Disk.
func (s *Stats) ReadAt(a uint64, bufs [][]byte) error {
	defer timed(&s.readTime, time.Now())
	s.reads.Add(1)
	s.readBlocks.Add(uint64(len(bufs)))
	return s.Disk.ReadAt(a, bufs)
}

// NextData implements Holes. It is not counted.
func (s *Stats) NextData(a uint64) (uint64, error) { return NextData(s.Disk, a) }

// WriteAt implements Disk.
func (s *Stats) WriteAt(a uint64, bufs [][]byte) error {
	defer timed(&s.writeTime, time.Now())
	s.writes.Add(1)
	s.writtenBlocks.Add(uint64(len(bufs)))
	return s.Disk.WriteAt(a, bufs)
}

// Discard implements Discarder. Its time counts as that of a write.
func (s *Stats) Discard(a, n uint64) error {
	defer timed(&s.writeTime, time.Now())
	err := Discard(s.Disk, a, n)
	if err == nil {
		s.discards.Add(1)
		s.discardedBlocks.Add(n)
	}
	return err
}

// Barrier implements Disk.
func (s *Stats) Barrier() error {
	defer timed(&s.barrierTime, time.Now())
	s.barriers.Add(1)
	return s.Disk.Barrier()
}

func timed(total *atomic.Int64, begin time.Time) { total.Add(int64(time.Since(begin))) }
