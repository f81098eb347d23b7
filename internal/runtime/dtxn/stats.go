package dtxn

import (
	"context"
	"time"

	"tansy/journal"
)

// What a volume is asked beside all transactions.

// Stats are numbers of transactions since the start.
type Stats struct {
	Commits   uint64 // with writes
	Conflicts uint64 // aborted because of others, and run again
}

// Stats returns the counters.
func (s *System) Stats() Stats { return Stats{s.commits.Load(), s.conflicts.Load()} }

// Journal returns the numbers of the journal below.
func (s *System) Journal() journal.Stats { return s.j.Stats() }

// Reading returns how many reads of the device have ended so far, and the time that these took together.
func (s *System) Reading() (reads int64, took time.Duration) { return s.j.Reading() }

// Count is Free, but what it counts need not be durable yet, so that it does not wait for the device
// once the bitmap has been read.
func (s *System) Count(which uint64) (uint64, error) {
	if err := s.Enter(); err != nil {
		return 0, err
	}
	defer s.Leave()
	return s.alloc[which].count()
}

// Size is the number of blocks that t would commit now: at most MaxBlocks can be.
func (t *Txn) Size() (n int) {
	last, b := ^uint64(0), t.t.Buffer
	for i := range b.Len() {
		if a := b.KeyAt(i) / windowBits; a != last {
			n, last = n+1, a
		}
	}
	return n
}

// Scrub makes a pass over the journal below.
func (s *System) Scrub(ctx context.Context, pass journal.Scrub) (journal.ScrubCounts, error) {
	return pass.Run(ctx, s.j)
}

// Scrubbed is how many blocks before end, and pages of the tree of codes, there are for a pass to deal with if all are
// in use.
func (s *System) Scrubbed(end uint64) uint64 { return s.j.Scrubbed(end) }

// Damaged lists the blocks that were found damaged so far.
func (s *System) Damaged() []uint64 { return s.j.Damaged() }

// Committed returns block b as last committed, which need not be durable yet, and beside all transactions.
func (s *System) Committed(b uint64) ([]byte, error) {
	if err := s.Enter(); err != nil {
		return nil, err
	}
	defer s.Leave()
	return s.committed(b)
}

// Broken is the error of the device after which nothing is written any more, or nil.
func (s *System) Broken() error { return s.j.Broken() }
