package journal

import (
	"log/slog"
	"time"

	"tansy/internal/runtime/ddisk"
)

// Stats are counts since Open.
type Stats struct {
	Commits  uint64 // commits accepted
	Durable  uint64 // commits known to be durable
	Groups   uint64 // group commits
	Installs uint64 // times the log was emptied

	// The device, as the journal uses it. Blocks are of disk.BlockSize bytes.
	Reads, ReadBlocks         uint64 // reads, and the blocks that these asked for
	SharedReads               uint64 // reads that had what another one found, and are not among Reads
	Writes, WrittenBlocks     uint64 // writes, and the blocks that these gave
	Discards, DiscardedBlocks uint64 // runs of zeros that were discarded instead of written, and their blocks
	Barriers                  uint64

	// Of the opening: how long a write of a block and the barrier behind it took at least (0: not known), and whether all
	// writes go past the system's cache, as that was so short.
	TriedBarrier time.Duration
	PastCache    bool

	// The block cache. What is committed, but not home yet, is found elsewhere.
	Cached, CacheLimit     int    // clean blocks in the cache, and how many it has room for
	CacheHits, CacheMisses uint64 // reads of a block

	// The log: groups that are not home yet, of Units; and of the data blocks of large ones, of Ring.
	Units, UnitsUsed, Ring, RingUsed uint64
}

// Stats returns the counts so far.
func (j *Journal) Stats() Stats {
	c := j.core
	c.Mutex.Lock()
	defer c.Mutex.Unlock()
	d := j.d.Counts()
	s := Stats{
		Commits: c.LastCommit, Durable: c.LastDurable, Groups: c.Notes.Groups(), Installs: c.Notes.Installations(),
		Reads: d.Reads, ReadBlocks: d.ReadBlocks, SharedReads: d.SharedReads,
		Writes: d.Writes, WrittenBlocks: d.WrittenBlocks,
		Discards: d.Discards, DiscardedBlocks: d.DiscardedBlocks, Barriers: d.Barriers,
		Cached: c.Cache.Len(), CacheLimit: c.Cache.Limit(),
		Units: c.Units, UnitsUsed: c.NextSeq - c.FirstSeq, Ring: c.RingSize, RingUsed: c.LogEnd - c.LogStart,
	}
	s.CacheHits, s.CacheMisses = c.Cache.Asked()
	s.TriedBarrier, s.PastCache = j.d.Judgement()
	return s
}

// Reading returns how many reads of the device have ended so far, and the time that these took together.
func (j *Journal) Reading() (reads int64, took time.Duration) { return j.d.Reading() }

// slowness tells whether the device was slow of late. The caller has a mutex around it.
func slowness(d *ddisk.Disk) func() bool {
	const enough = 64 // reads
	var reads int64
	var took time.Duration
	slow := false
	return func() bool {
		if n, t := d.Reading(); n-reads >= enough {
			slow = (t-took)/time.Duration(n-reads) >= SlowRead
			reads, took = n, t
		}
		return slow
	}
}

// SlowRead is the time from which on a read of the device is slow: it is worth to wait for memory for what was read,
// and to read ahead.
const SlowRead = 500 * time.Microsecond

// recovering logs how far recovery is, every second until over is called. What it does with the device is what the
// device is judged by.
func recovering(d *ddisk.Disk, log *slog.Logger) (over func()) {
	quit := make(chan struct{})
	go func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-quit:
				return
			case <-t.C:
				c := d.Counts()
				log.Info("recovering the journal", "blocks_read", c.ReadBlocks, "blocks_written", c.WrittenBlocks)
			}
		}
	}()
	return func() {
		close(quit)
		d.Judge()
	}
}

// Broken is the error of the device after which nothing is written any more, or nil.
func (j *Journal) Broken() error { return j.d.Err() }
