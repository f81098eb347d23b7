package txn

import (
	"errors"
	"fmt"

	"tansy/internal/runtime/dtxn"
)

// ErrFull says that an Allocator has no bit to hand out: each is set, or was handed out to a transaction that runs.
// After it the transaction can go on.
var ErrFull = errors.New("no bit is free")

// Allocator hands out the clear bits of a region, and sets them. A bit may stand for a block, or for any number that is
// free or taken. It may be used concurrently. Its bits can be read and written like others, too. What it knows is in
// memory alone, and it relies on no more than the bits on disk.
//
// Two transactions that run never get the same bit, and neither waits for the other to get one. A bit is handed out
// again if an aborted transaction got it, a committed one cleared it, or a crash left it clear.
type Allocator struct {
	s      *System
	region Region
	which  uint64
}

// addAllocators adds those of the regions.
func (s *System) addAllocators() {
	for _, r := range s.regions {
		if r.Allocate > 0 {
			which := s.sys.AddBitmap(dtxn.Bitmap{Start: r.Start, Limit: r.Allocate})
			s.allocators = append(s.allocators, &Allocator{s, r, which})
		}
	}
}

// Allocator returns the allocator of a region with Allocate that was given to Open, each time the same one.
func (s *System) Allocator(r Region) (*Allocator, error) {
	for _, a := range s.allocators {
		if a.region == r {
			return a, nil
		}
	}
	return nil, fmt.Errorf("no bits are handed out of the %d blocks of %vs from block %d on", r.Count, r.Kind, r.Start)
}

// Addr is the address of bit n of the region.
func (a *Allocator) Addr(n uint64) Addr { return a.region.Object(n) }

// Take sets a clear bit in t, and returns its number, which is below Allocate. With near it is the next clear bit
// behind near. With near 0 it is the next one behind the bit that was handed out last, going round at the end. The
// error is ErrFull if there is none. A bit that t itself has cleared is not handed out before t has committed.
func (a *Allocator) Take(t *Txn, near uint64) (n uint64, err error) {
	if err := a.enter(t); err != nil {
		return 0, err
	}
	defer t.leave(false)
	for {
		n, ok, err := t.t.TryTake(a.which, near)
		if err != nil {
			return 0, err
		}
		if !ok {
			return 0, ErrFull
		}
		at := a.Addr(n)
		set, err := t.t.TryReadBit(at.Block, uint64(at.Index), true)
		if err != nil {
			return 0, err
		}
		if !set { // else WriteBit set it beside the allocator
			return n, t.t.TryWriteBit(at.Block, uint64(at.Index), true)
		}
	}
}

// GiveBack clears bit n in t. It is handed out again when t has committed. If the bit is clear, or none of the
// allocator's, the error is an AddrError.
func (a *Allocator) GiveBack(t *Txn, n uint64) error {
	if err := a.enter(t); err != nil {
		return err
	}
	defer t.leave(false)
	at := a.Addr(n)
	if n >= a.region.Allocate {
		return &AddrError{at, fmt.Sprintf("bit %d of the region is none of the %d that are handed out", n, a.region.Allocate)}
	}
	set, err := t.t.TryReadBit(at.Block, uint64(at.Index), true)
	if err != nil {
		return err
	}
	if !set {
		return &AddrError{at, fmt.Sprintf("bit %d of the region is not taken", n)}
	}
	return t.t.TryWriteBit(at.Block, uint64(at.Index), false)
}

// enter begins a call of t.
func (a *Allocator) enter(t *Txn) error {
	if t.s != a.s {
		return &AddrError{a.Addr(0), "the transaction is one of another System"}
	}
	return t.enter()
}

// Free is the number of clear bits, as committed. The first call reads the region.
func (a *Allocator) Free() (uint64, error) { return a.s.sys.Count(a.which) }
