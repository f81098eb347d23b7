package disk

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Sim is a Disk in memory that can crash.
//
// For every block it knows the last value that a barrier made durable and all
// values written since, in order. A crash may leave any one of these in each
// block, independently of the other blocks; crash.go makes such images. What is
// covered by a barrier is exactly what Disk promises: writes that returned
// before Barrier was called. A write that runs beside a barrier stays at risk.
//
// A test either stops the machine after a given number of operations
// (FreezeAfter), or records one run (Record) and goes back to every point of it
// (At). Operations are counted in the order of their effects: each write call
// and each barrier is one. Reads are not counted.
type Sim struct {
	mu     sync.Mutex
	thawed *sync.Cond // for callers blocked by a freeze; signalled by Close
	size   uint64     // blocks
	blocks map[uint64]*history
	ops    uint64
	closed bool

	limit   uint64        // no operation after this many; noLimit = never
	block   bool          // what a frozen operation does: block (until Close) or fail
	stopped chan struct{} // closed when limit is reached

	recording bool
	base      *Sim     // state when the recording began
	record    []effect // what happened since

	// For tests: called when a write has had its effect but not returned, and
	// between the two halves of a barrier.
	duringWrite, duringBarrier func()
}

const noLimit = ^uint64(0)

// history is what a block may hold after a crash: durable, or any of pending.
type history struct {
	durable *Content   // nil = zeros
	pending []*version // oldest first
}

// version is one write of one block. The data never changes.
type version struct {
	data     *Content    // nil = zeros
	returned atomic.Bool // the write has returned, so a barrier from now on covers it
}

func (h *history) latest() *Content {
	if n := len(h.pending); n > 0 {
		return h.pending[n-1].data
	}
	return h.durable
}

// effect is one recorded operation: a write (versions from address a on) or a
// barrier (the number of oldest pending versions that it made durable, per block).
type effect struct {
	a        uint64
	versions []*version
	barrier  map[uint64]int
}

// NewSim returns a device of size bytes, all zero and durable. A tail that is shorter than a block is ignored, as
// OpenFile does it.
func NewSim(size uint64) *Sim { return newSim(size / BlockSize) }

// newSim is NewSim with the size in blocks.
func newSim(blocks uint64) *Sim {
	s := &Sim{size: blocks, blocks: map[uint64]*history{}, limit: noLimit}
	s.thawed = sync.NewCond(&s.mu)
	return s
}

// FreezeAfter stops the machine once n operations in all have taken effect; with n = 0 it stops now. Later operations,
// also reads, have no effect: they fail with ErrFrozen or, if block is set, do not return before Close. The channel is
// closed when the machine has stopped.
func (s *Sim) FreezeAfter(n uint64, block bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.block, s.stopped = n, block, make(chan struct{})
	if s.ops >= s.limit {
		close(s.stopped)
	}
	return s.stopped
}

// Frozen reports whether the machine has stopped.
func (s *Sim) Frozen() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ops >= s.limit
}

// Ops is the number of operations that took effect so far.
func (s *Sim) Ops() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ops
}

// Record starts recording, so that At can go back to any later point. It keeps
// all that is written from now on in memory.
func (s *Sim) Record() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recording, s.base, s.record = true, s.copy(), nil
}

// At returns the machine as it was after n operations in all. n is at least the number at the call of Record, and at
// most Ops. The result is a copy that runs on its own. A test that notes Ops at each acknowledgement knows, for every
// n, what must have survived a crash after n operations.
func (s *Sim) At(n uint64) *Sim {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.recording || n < s.base.ops || n > s.ops {
		panic("disk: Sim.At outside the recording")
	}
	c := s.base.copy()
	for _, e := range s.record[:n-s.base.ops] {
		c.apply(e)
	}
	return c
}

// ReadAt implements Disk. It returns the newest value, durable or not.
func (s *Sim) ReadAt(a uint64, bufs [][]byte) error {
	if err := CheckTransfer("read", "", s.size, a, bufs); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return &Error{Op: "read", Block: a, Err: err}
	}
	for i, b := range bufs {
		fill(b, s.latest(a+uint64(i)))
	}
	return nil
}

// WriteAt implements Disk.
func (s *Sim) WriteAt(a uint64, bufs [][]byte) error {
	if err := CheckTransfer("write", "", s.size, a, bufs); err != nil {
		return err
	}
	e := effect{a: a, versions: make([]*version, len(bufs))}
	for i, b := range bufs {
		e.versions[i] = &version{}
		if !isZero(b) {
			e.versions[i].data = &Content{data: [BlockSize]byte(b)}
		}
	}
	s.mu.Lock()
	if err := s.alive(); err != nil {
		s.mu.Unlock()
		return &Error{Op: "write", Block: a, Err: err}
	}
	s.perform(e)
	s.mu.Unlock()
	// Here the write has had its effect but not returned: a barrier that begins
	// in this moment does not cover it.
	runtime.Gosched()
	if s.duringWrite != nil {
		s.duringWrite()
	}
	for _, v := range e.versions {
		v.returned.Store(true)
	}
	return nil
}

// WriteThrough writes bufs like WriteAt, and makes these blocks alone durable. NBD and SCSI call that FUA. It counts as
// two operations.
func (s *Sim) WriteThrough(a uint64, bufs [][]byte) error {
	if err := s.WriteAt(a, bufs); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return &Error{Op: "write", Block: a, Err: err}
	}
	e := effect{barrier: map[uint64]int{}}
	for i := range uint64(len(bufs)) {
		if n := len(s.at(a + i).pending); n > 0 { // a barrier may have been faster
			e.barrier[a+i] = n
		}
	}
	s.perform(e)
	return nil
}

// Barrier implements Disk.
func (s *Sim) Barrier() error {
	s.mu.Lock()
	if err := s.alive(); err != nil {
		s.mu.Unlock()
		return &Error{Op: "barrier", Err: err}
	}
	covered := map[uint64]*version{} // the newest covered version of each block
	for a, h := range s.blocks {
		for _, v := range h.pending {
			if v.returned.Load() {
				covered[a] = v
			}
		}
	}
	s.mu.Unlock()
	// Between its two halves other operations go on.
	runtime.Gosched()
	if s.duringBarrier != nil {
		s.duringBarrier()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.alive(); err != nil {
		return &Error{Op: "barrier", Err: err}
	}
	// A barrier beside this one may have dealt with some of the versions already.
	e := effect{barrier: map[uint64]int{}}
	for a, v := range covered {
		if i := slices.Index(s.blocks[a].pending, v); i >= 0 {
			e.barrier[a] = i + 1
		}
	}
	s.perform(e)
	return nil
}

// Size implements Disk.
func (s *Sim) Size() uint64 { return s.size }

// Close implements Disk. Nothing becomes durable by it. Crash images can still
// be made.
func (s *Sim) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &Error{Op: "close", Err: os.ErrClosed}
	}
	s.closed = true
	s.thawed.Broadcast()
	return nil
}

// alive returns nil if the next operation may take effect. The caller holds mu.
func (s *Sim) alive() error {
	for !s.closed && s.ops >= s.limit && s.block {
		s.thawed.Wait()
	}
	switch {
	case s.ops >= s.limit:
		return ErrFrozen
	case s.closed:
		return os.ErrClosed
	}
	return nil
}

// perform applies and records e. The caller holds mu.
func (s *Sim) perform(e effect) {
	s.apply(e)
	if s.recording {
		s.record = append(s.record, e)
	}
}

// apply counts e and changes the state. The caller holds mu.
func (s *Sim) apply(e effect) {
	if s.ops++; s.ops == s.limit {
		close(s.stopped)
	}
	for i, v := range e.versions {
		h := s.at(e.a + uint64(i))
		h.pending = append(h.pending, v)
	}
	for a, n := range e.barrier {
		h := s.at(a)
		h.durable = h.pending[n-1].data
		h.pending = slices.Clone(h.pending[n:])
	}
}

// at is the history of block a, made if need be. The caller holds mu.
func (s *Sim) at(a uint64) *history {
	h := s.blocks[a]
	if h == nil {
		h = &history{}
		s.blocks[a] = h
	}
	return h
}

func (s *Sim) latest(a uint64) *Content {
	if h := s.blocks[a]; h != nil {
		return h.latest()
	}
	return nil
}

// copy is the same state in a machine that is neither frozen nor recording. The
// caller holds mu.
func (s *Sim) copy() *Sim {
	c := s.like()
	c.ops = s.ops
	all := make([]history, 0, len(s.blocks))
	for a, h := range s.blocks {
		if h.durable != nil || len(h.pending) > 0 {
			all = append(all, history{h.durable, slices.Clip(h.pending)})
			c.blocks[a] = &all[len(all)-1]
		}
	}
	return c
}

// like is a device of the same size, with room for as many blocks.
func (s *Sim) like() *Sim {
	c := newSim(s.size)
	c.blocks = make(map[uint64]*history, len(s.blocks))
	return c
}

func fill(b []byte, c *Content) {
	if c == nil {
		clear(b)
	} else {
		copy(b, c.data[:])
	}
}
