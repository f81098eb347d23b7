// Package txn gives atomic, isolated, durable transactions over the blocks of a
// disk, and over objects smaller than a block.
//
// A transaction reads and writes any objects, and then commits: all its writes
// take effect at one instant, and after a crash either all of them are there or
// none. Transactions that run at the same time behave as if they ran one after
// the other. The code is verified (verified/txn): that a transaction touches only what it
// has locked, that nobody else changes what it has locked, and that it commits at one
// instant; and, of a history of all reads and writes, that they are strictly serializable (verified/txn/serial.dfy).
//
// # Objects
//
// Every block of a Region is cut into objects of one Kind: it is one object of
// 4096 bytes, or 16 of 256 bytes, or 32768 bits. Two transactions may change
// different objects of one block at the same time. An Allocator hands out bits, as numbers of what is free.
//
// # Locks
//
// An object is locked, shared or exclusively, when it is first touched, and all
// locks are kept to the end (strict two-phase locking). There is no deadlock: a
// transaction waits for a lock only if it lies above all those it holds. Else
// it fails with ErrConflict, and Run runs it again. So it pays to touch objects in
// ascending order, and to read with ReadForUpdate what will be written.
//
// # Durability
//
// A stable transaction is durable when it returns. Others become so soon, in the
// order in which they committed; Flush waits for all of them. A transaction that
// has read what a stable one wrote does not return before that is durable: nothing
// that anybody was told is ever taken back.
//
// # One goroutine, one transaction
//
// What Run or View is given must not call Run or View of the same System, nor close the journal: the one within would
// wait for what the one around it has locked, and so for ever. A program that is built with the race detector, or with
// the build tag lockorder, ends with a message and both places when it does so.
//
// # The end
//
// Closing the journal (journal.Journal.Close) ends its transactions. Whatever begins after that has begun fails with
// ErrClosed. Close waits for each Run and View that has begun, and for the call of a transaction of Begin that is under
// way; these end as ever. A transaction of Begin of which no call is under way is aborted, and fails with ErrClosed
// from then on.
package txn

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// Errors of transactions, for errors.Is.
var (
	// ErrConflict: another transaction is in the way. Abort, and run it again;
	// Run does so itself.
	ErrConflict = dtxn.ErrConflict
	// ErrIO: the device failed. A Commit that returns it may have taken effect in memory;
	// whether the device has it is not known before the volume is opened again.
	ErrIO = dtxn.ErrIO
	// ErrTooLarge: the transaction writes more than MaxBlocks blocks.
	ErrTooLarge = dtxn.ErrTooLarge
	// ErrReadOnly: the device has failed before, or the transaction is a View.
	ErrReadOnly = dtxn.ErrReadOnly
	// ErrClosed: the journal is closed, or about to be.
	ErrClosed = journal.ErrClosed
	// ErrDone: the transaction has been committed or aborted.
	ErrDone = errors.New("transaction has ended")
)

// MaxBlocks is the number of blocks that one transaction can write.
const MaxBlocks = dtxn.MaxBlocks

// BlockSize and SmallSize are the sizes of the objects in bytes.
const (
	BlockSize = 4096
	SmallSize = 256
)

// Kind is the kind of the objects in a block.
type Kind int

const (
	Blocks Kind = iota // one object: the block, of BlockSize bytes
	Smalls             // 16 objects of SmallSize bytes
	Bits               // 32768 bits
)

// perBlock is how many objects of a kind a block holds, and how many bits each has.
func (k Kind) perBlock() (n int, bits uint64) {
	switch k {
	case Smalls:
		return BlockSize / SmallSize, SmallSize * 8
	case Bits:
		return BlockSize * 8, 1
	}
	return 1, BlockSize * 8
}

// what is the kind as the verified code has it.
func (k Kind) what() uint32 {
	return [...]uint32{places.BLOCKS(), places.INODES(), places.BITS()}[k]
}

// String names the kind.
func (k Kind) String() string { return [...]string{"block", "small object", "bit"}[k] }

// A Region is a run of blocks with objects of one kind.
type Region struct {
	Start, Count uint64 // blocks
	Kind         Kind
	// Allocate, of Bits: so many, from the first on, are handed out by the region's Allocator. 0: it has none.
	Allocate uint64
}

// check is an error if there is no such region in the blocks from home up to end.
func (r Region) check(home, end uint64) error {
	if r.Kind < Blocks || r.Kind > Bits {
		return fmt.Errorf("region from block %d: there is no kind %d of objects", r.Start, int(r.Kind))
	}
	n, _ := r.Kind.perBlock()
	switch {
	case r.Start < home || r.Start+r.Count < r.Start || r.Start+r.Count > end:
		return fmt.Errorf("region of blocks %d to %d is not within %d to %d", r.Start, r.Start+r.Count, home, end)
	case r.Allocate > 0 && r.Kind != Bits:
		return fmt.Errorf("region from block %d: %vs are not handed out, only bits", r.Start, r.Kind)
	case r.Allocate > r.Count*uint64(n):
		return fmt.Errorf("region from block %d: %d bits to hand out, but %d blocks", r.Start, r.Allocate, r.Count)
	}
	return nil
}

// Object is the address of object n of the region, counted from 0. The region need not have as many: what is behind it,
// Txn's methods refuse.
func (r Region) Object(n uint64) Addr {
	perBlock, _ := r.Kind.perBlock()
	return Addr{r.Start + n/uint64(perBlock), int(n % uint64(perBlock))}
}

// Addr is the address of an object: its block, and which of the objects in it,
// counted from 0.
type Addr struct {
	Block uint64
	Index int
}

// System is the transactions of one journal. It may be used concurrently.
type System struct {
	sys        *dtxn.System
	regions    []Region
	allocators []*Allocator

	mu    sync.Mutex
	begun map[*begun]struct{} // transactions of Begin that have not ended
}

// Open returns transactions over the blocks of j that lie in regions. The kind of
// a block is not stored: give the same regions every time. All changes of these blocks
// must go through this System.
func Open(j *journal.Journal, regions ...Region) (*System, error) {
	if err := j.Enter(); err != nil {
		return nil, err
	}
	defer j.Leave()
	home, end := j.Home()
	for i, r := range regions {
		if err := r.check(home, end); err != nil {
			return nil, err
		}
		for _, q := range regions[:i] {
			if r.Start < q.Start+q.Count && q.Start < r.Start+r.Count {
				return nil, fmt.Errorf("regions from block %d and from block %d overlap", q.Start, r.Start)
			}
		}
	}
	p := places.Before(0, 0, places.NOTHING(), nil)
	for _, r := range slices.Backward(regions) {
		p = places.Before(r.Start, r.Start+r.Count, r.Kind.what(), p)
	}
	sys, err := dtxn.New(j, dtxn.Layout{Places: p})
	if err != nil {
		return nil, err
	}
	s := &System{sys: sys, regions: append([]Region(nil), regions...), begun: map[*begun]struct{}{}}
	s.addAllocators()
	j.OnClose(s.close)
	return s, nil
}

// Txn is a transaction. It belongs to one goroutine. After an error from one of its
// methods other than an AddrError, or an Allocator's other than that and ErrFull, it can only be aborted.
type Txn struct {
	s *System
	t *dtxn.Txn
	b *begun // nil: of Run or View
}

// AddrError says that an address names no object of the kind wanted, or that the
// data are not of the object's size.
type AddrError struct {
	Addr   Addr
	Reason string
}

func (e *AddrError) Error() string {
	return fmt.Sprintf("block %d, object %d: %s", e.Addr.Block, e.Addr.Index, e.Reason)
}

// at checks an address and returns the object's kind and offset in bits.
func (t *Txn) at(a Addr) (Kind, uint64, error) {
	for _, r := range t.s.regions {
		if a.Block-r.Start < r.Count {
			n, bits := r.Kind.perBlock()
			if a.Index < 0 || a.Index >= n {
				return 0, 0, &AddrError{a, fmt.Sprintf("a block holds %d objects of kind %v", n, r.Kind)}
			}
			return r.Kind, uint64(a.Index) * bits, nil
		}
	}
	return 0, 0, &AddrError{a, "in no region"}
}

// Begin starts a transaction, which must be ended by Commit or Abort.
func (s *System) Begin() *Txn {
	t := s.sys.Begin()
	return &Txn{s, t, s.begin(t)}
}

// Run runs f in a transaction, again and again while it conflicts with others, so
// f must have no other effects. If f returns nil, the transaction is committed
// and, if stable, durable when Run returns nil. Else it is aborted, and Run
// returns f's error.
func (s *System) Run(stable bool, f func(*Txn) error) error {
	return s.run(stable, false, f)
}

// View runs f in a transaction that cannot write.
func (s *System) View(f func(*Txn) error) error { return s.run(false, true, f) }

func (s *System) run(stable, readOnly bool, f func(*Txn) error) error {
	return s.sys.Run(stable, readOnly, func(d *dtxn.Txn) error {
		t := Txn{s, d, nil}
		err := f(&t)
		t.t = nil // ended, if f has kept it
		return err
	})
}

// Flush makes all transactions committed so far durable.
func (s *System) Flush() error { return s.sys.Flush() }

// Size is the number of blocks that the transaction would write if it were committed now, at most MaxBlocks: a
// transaction that exceeds it fails with ErrTooLarge. Several objects of one block count once. An object that was only
// read does not count. Long work can be divided by it into large transactions that fit. After the end it is 0.
func (t *Txn) Size() int {
	if t.enter() != nil {
		return 0
	}
	defer t.leave(false)
	return t.t.Size()
}

// Commit ends the transaction. If it returns nil, all its writes have taken effect and, if stable, are durable. After
// any other error than ErrIO none has taken effect.
func (t *Txn) Commit(stable bool) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave(true)
	d := t.t
	t.t = nil
	return d.Commit(stable)
}

// Abort ends the transaction without effect. What it has read may still be lost in a
// crash. After the end it does nothing.
func (t *Txn) Abort() {
	if t.t == nil {
		return
	}
	if t.b == nil {
		t.t.Abort()
	} else {
		t.b.abort()
	}
	t.t = nil
}

// Read returns a copy of an object of bytes.
func (t *Txn) Read(a Addr) ([]byte, error) { return t.read(a, false) }

// ReadForUpdate is Read for an object that will probably be written.
func (t *Txn) ReadForUpdate(a Addr) ([]byte, error) { return t.read(a, true) }

func (t *Txn) read(a Addr, excl bool) ([]byte, error) {
	if err := t.enter(); err != nil {
		return nil, err
	}
	defer t.leave(false)
	kind, off, err := t.at(a)
	if err != nil {
		return nil, err
	}
	switch kind {
	case Blocks:
		b, err := t.t.TryReadBlock(a.Block, excl)
		if err != nil {
			return nil, err
		}
		return b.Thaw().Data, nil
	case Smalls:
		b, err := t.t.TryReadInode(a.Block, off, excl)
		if err != nil {
			return nil, err
		}
		return b.Data, nil
	}
	return nil, &AddrError{a, "is a bit, not bytes"}
}

// Write gives an object of bytes new contents, of its full size. It keeps no
// reference to p.
func (t *Txn) Write(a Addr, p []byte) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave(false)
	kind, off, err := t.at(a)
	if err != nil {
		return err
	}
	size := BlockSize
	switch kind {
	case Bits:
		return &AddrError{a, "is a bit, not bytes"}
	case Smalls:
		size = SmallSize
	}
	if len(p) != size {
		return &AddrError{a, fmt.Sprintf("has %d bytes, not %d", size, len(p))}
	}
	if kind == Smalls {
		return t.t.TryWriteInode(a.Block, off, &dbytes.Bytes{Data: p})
	}
	b := dbytes.NewBytes(BlockSize)
	copy(b.Data, p)
	return t.t.TryWriteBlock(a.Block, b)
}

// ReadBit returns a bit.
func (t *Txn) ReadBit(a Addr) (bool, error) {
	if err := t.enter(); err != nil {
		return false, err
	}
	defer t.leave(false)
	kind, off, err := t.at(a)
	if err != nil {
		return false, err
	}
	if kind != Bits {
		return false, &AddrError{a, "is bytes, not a bit"}
	}
	return t.t.TryReadBit(a.Block, off, false)
}

// WriteBit sets a bit.
func (t *Txn) WriteBit(a Addr, v bool) error {
	if err := t.enter(); err != nil {
		return err
	}
	defer t.leave(false)
	kind, off, err := t.at(a)
	if err != nil {
		return err
	}
	if kind != Bits {
		return &AddrError{a, "is bytes, not a bit"}
	}
	return t.t.TryWriteBit(a.Block, off, v)
}
