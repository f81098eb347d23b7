// Package dtxn is the Go behind verified/trusted/txn.s.dfy: transactions over
// the objects of a volume, as the verified file system sees them. It is a thin
// cover of the code generated from verified/txn, to which it adds what needs no
// proof: unwinding, running again, recycling, and allocation hints (alloc.go).
// Since that code is above the journal, so is this package, unlike its neighbours in internal/runtime.
package dtxn

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/internal/gen/journal/journalm"
	"tansy/internal/gen/journal/journalthreads"
	"tansy/internal/gen/journal/lives"
	"tansy/internal/gen/txn/objectsm"
	"tansy/internal/gen/txn/places"
	"tansy/internal/gen/txn/txnm"
	"tansy/internal/gen/txn/txnrun"
	"tansy/internal/gen/txn/txnsysm"
	"tansy/internal/journalcore"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/hold"
	"tansy/internal/runtime/locks"
	"tansy/internal/runtime/work"
	"tansy/internal/runtime/writebuffer"
	"tansy/journal"
)

// Statuses of the verified code: verified/txn/txn.dfy, and run.dfy.
const (
	conflict = 1
	ioError  = 2 // it could not read the device
	tooLarge = 3
	readOnly = 4
	lost     = 5 // the device failed when it was waited for
	wild     = 9 // there is no such object (verified/txn/places.dfy)
)

// MaxBlocks is the number of blocks that one transaction can write.
const MaxBlocks = 500

// A Bitmap says where an allocation bitmap lies and which of its bits may be
// handed out: [First, End), where End may grow up to Limit (Extend). End 0 is Limit.
// Bit i is bit i%32768 of block Start+i/32768.
type Bitmap struct{ Start, First, Limit, End uint64 }

// Layout tells the transaction system about the volume: its allocation bitmaps,
// indexed by Blocks and Inodes, and the places where which objects lie.
type Layout struct {
	Maps   [2]Bitmap
	Places *places.Place // they begin with the first of a list

	// SmallOK, if not nil, tells whether a 256-byte object that was read can be
	// one; if not, the volume is damaged and the read fails like a wild pointer.
	SmallOK func(b *dbytes.Bytes) bool

	// Host, if not nil, gives blocks room as they are written; see room.go.
	Host disk.Host
	// Returns says that the room of free blocks goes back to the host: then more may be taken for a while.
	Returns bool
	// Beside, if not nil, names the first of two blocks that are written with block a, if there are any; b may
	// have some in turn.
	Beside func(a uint64) (b uint64, ok bool)
}

// Jrnl is the ghost state of a volume; nothing at run time.
type Jrnl struct{}

// Slots is the ghost state of the records of replies; nothing at run time.
type Slots struct{}

// System is the transactions of one volume. It may be used concurrently.
type System struct {
	j         *journal.Journal
	core      *journalm.Journal
	clock     func() time.Time
	sys       *txnsysm.System
	places    *places.Place // those of the layout
	base      uint64        // where block 0 of the volume lies; not 0 only in tests
	inodes    uint64        // the first block of inodes
	layout    Layout
	alloc     []*alloc // of the bitmaps of the layout, and those of AddBitmap
	host      host
	lent      atomic.Int64 // blocks
	lendable  int64        // the most of them
	refused   atomic.Uint64
	pool      sync.Pool                        // of *Txn, idle
	large     lockorder.Mutex[lockorder.Large] // see parts.go
	commits   atomic.Uint64
	conflicts atomic.Uint64
	close     func() error
	midst     lockorder.Place[lockorder.Midst] // of Run, and Perform
}

// New returns the transactions over j. All changes of j must go through it.
func New(j *journal.Journal, l Layout) (*System, error) { return newAt(j, l, 0) }

func newAt(j *journal.Journal, l Layout, base uint64) (*System, error) {
	s := &System{j: j, core: journalcore.Of(j), clock: time.Now, layout: l, places: l.Places, base: base}
	s.close = func() error { return nil }
	if s.sys = s.places.Open(s.core); s.sys == nil {
		return nil, fmt.Errorf("%w: the volume is not within the home blocks of its journal", ErrDamaged)
	}
	for i := range l.Maps {
		s.alloc = append(s.alloc, newAlloc(l.Maps[i], s.committed))
		s.alloc[i].unspare = j.Unspare
		s.alloc[i].gate.Nth(i)
	}
	s.lendable = int64(j.Stats().CacheLimit) / 4
	s.pool.New = func() any {
		t := &Txn{s: s, t: txnm.New_Txn_(), hold: hold.New()}
		t.took, t.bits, t.gated = make([][]uint64, len(s.alloc)), make([][]bitWrite, len(s.alloc)), make([]bool, len(s.alloc))
		t.t.Ctor__(s.sys, locks.NewOwner(), writebuffer.NewBuf(), blockmap.New(), t.hold, hold.New())
		return t
	}
	j.OnClose(s.closing)
	first, _ := s.places.First(places.INODES())
	s.inodes = first - base
	return s, nil
}

// committed reads a block as last committed.
func (s *System) committed(b uint64) ([]byte, error) {
	v := dbytes.NewBytes(dbytes.BlkSize)
	if !txnsysm.LatestTo(s.sys, s.base+b, v) {
		return nil, s.status(ioError)
	}
	return v.Data, nil
}

// Look reads from the device whether the volume is another server's now, and is Lost then.
func (s *System) Look() error { return s.j.Look() }

// Barrier is a barrier of the device, for who writes to blocks that are not the journal's. If it fails, so does all
// that follows.
func (s *System) Barrier() error { return s.j.Barrier() }

// Lost is an error if the volume was seen to be another server's now.
func (s *System) Lost() error { return s.j.Lost() }

// Verifier is the write verifier of this life of the server.
func (s *System) Verifier() uint64 { return lives.Verifier(s.core) }

// Flush makes everything committed so far durable.
func (s *System) Flush() error {
	if err := s.Enter(); err != nil {
		return err
	}
	defer s.Leave()
	if ok, _ := journalthreads.Flush(s.core); !ok {
		return fmt.Errorf("%w: %w", ErrIO, s.j.Failure())
	}
	return nil
}

// Free returns the number of clear bits that may be handed out (free blocks or
// inodes), as committed and durable.
func (s *System) Free(which uint64) (uint64, error) {
	n, err := s.Count(which)
	if err == nil {
		err = s.Flush()
	}
	return n, err
}

// Txn is a transaction. It belongs to one goroutine.
//
// When a method cannot do what it promises, it unwinds to Run by a panic with a
// value of a private type. (The methods of objects.go that begin with Try return errors instead.)
type Txn struct {
	s        *System
	t        *txnm.Txn
	hold     *hold.Hold // that of t
	readOnly bool
	failed   error        // why the transaction can only be aborted
	first    []want       // locks to take first: those met in conflicts
	took     [][]uint64   // hints taken, by the number of the allocator
	ends     [2]uint64    // what is proposed to it ends there; 0: it has not asked yet
	bits     [][]bitWrite // bits written in its bitmap, in this order
	lastKey  uint64       // the bit read last, and its value;
	lastBit  bool
	lastOK   bool   // if there is one
	block    uint64 // of the file, which the next block that is proposed is for,
	placed   bool   // if it is for one,
	leads    bool   // and as an indirect block
	owner    uint64 // key of the inode that was last read to be changed: whose blocks are allocated, most likely

	// of the runner, for which this is the work (verified/trusted/work.s.dfy)
	working bool   // it has not come to its end
	cause   error  // why it was cut short
	gated   []bool // the gates of the allocators that are held
	large   bool   // System.large is
	wrote   bool   // it has something to commit
}

// A want is a lock that was in the way.
type want struct {
	key  uint64
	excl bool
}

// unwind is what the methods of Txn panic with; the reason is in Txn.failed.
type unwind struct{ t *Txn }

// key is the key of the object at bit offset off of blkno.
func (s *System) key(blkno, off uint64) uint64 {
	return objectsm.Key(s.base+blkno, off)
}

// Begin starts a transaction, to be ended by Commit or Abort.
func (s *System) Begin() *Txn { return s.pool.Get().(*Txn) }

// Run runs f in a transaction, again and again while it conflicts with others,
// so f must have no other effect than on the transaction. Each conflict adds a lock to those
// taken first, so that a function that wants the same objects every time
// runs at most once more than it has objects. When f returns nil the
// transaction is committed, else aborted, and Run returns f's error. A stable
// transaction is durable when Run returns nil. In a read-only one, a write is an
// error. What f has seen of stable ones is durable when Run returns nil or f's error,
// which may tell of it.
//
// f must not call Run itself: it would wait for ever for what its own goroutine has locked. With the race detector, or
// the build tag lockorder, that ends the process. After the journal's Close has begun, Run returns ErrClosed; Close
// waits for a Run that has begun.
func (s *System) Run(stable, readOnly bool, f func(*Txn) error) error {
	if err := s.Enter(); err != nil {
		return err
	}
	defer s.Leave()
	var refused error
	err := s.Perform(readOnly, func(t *txnm.Txn, w *Txn) (st uint32) {
		for {
			w.Do(func(t *Txn) { refused = f(t) })
			r := uint32(0)
			if refused != nil {
				r = 1
			}
			if st = txnrun.Run(t, w, r, stable, readOnly); st != conflict {
				return st
			}
		}
	})
	if err != nil {
		return err
	}
	return refused
}

// A Runner is the verified code that does the work of a transaction (Do) and ends that, again while it is to: Run
// (verified/txn/run.dfy), or Perform (verified/fs/exec/carrying.dfy). What the work has come to it knows from
// elsewhere. The result is the status that the last one ended with.
type Runner func(t *txnm.Txn, w *Txn) (st uint32)

// Perform has run run a transaction. The status of the last one is the result, as an error. The caller sees to it that
// the journal is not closed meanwhile (Enter, as Run does); if it is all the same, nothing is committed.
func (s *System) Perform(readOnly bool, run Runner) error {
	s.enterOnly()
	t := s.begin(readOnly)
	defer func() {
		s.midst.Leave()
		switch {
		case t == nil:
		case t.working: // its work has left without an end, by a panic that is not of this package
			t.working = false
			t.Abort()
		default:
			if p := recover(); p != nil {
				halt(p)
			}
		}
	}()
	st := run(t.t, t)
	ended := t
	t = nil // it may be another's when this returns
	return ended.put(st)
}

func (s *System) begin(readOnly bool) *Txn {
	t := s.Begin()
	t.readOnly = readOnly
	return t
}

// put gives t back, which has ended with status st of the verified runner, and returns the error.
func (t *Txn) put(st uint32) error {
	err := t.result(st)
	t.first, t.readOnly = t.first[:0], false
	t.hold.DropSmall()
	t.s.pool.Put(t)
	return err
}

// result is the error for the status that t ended with.
func (t *Txn) result(st uint32) error {
	cause := t.cause
	t.cause = nil
	switch {
	case st == 0:
		return nil
	case cause != nil && st != lost:
		return cause
	}
	return t.s.status(st)
}

// halt ends the process, for the verified code failed with p in the midst of ending a transaction: nobody knows which
// locks that holds, so others would wait for ever, and nobody who recovers from panics may go on. What is durable a new
// start has.
func halt(p any) {
	stack := debug.Stack()
	go panic(fmt.Sprintf("verified code failed at the end of a transaction, and its locks may be held: %v; "+
		"start the server again\n%s", p, stack))
	select {}
}

// Do is the work f, once, for the verified code (verified/trusted/attempts.s.dfy). If it is cut short, the verified
// transaction knows that and never commits.
func (t *Txn) Do(f func(*Txn)) (w work.Work) {
	w, t.cause, t.working = t, nil, true
	defer func() {
		if !t.working {
			return
		}
		if p := recover(); p != nil {
			if u, ok := p.(unwind); !ok || u.t != t {
				panic(p) // not ours
			}
			t.cut()
		}
	}()
	for _, w := range t.first { // ascending, so these are waited for
		t.check(t.lock(w.key, w.excl))
	}
	f(t)
	if t.failed != nil { // the work has ignored it
		t.cut()
	}
	t.working = false
	return
}

// cut tells the verified transaction that the work cannot go on: it knows already if an answer of its own is why.
func (t *Txn) cut() {
	t.working, t.cause = false, t.failed
	st := uint32(ioError)
	switch {
	case t.failed == ErrConflict:
		t.s.conflicts.Add(1)
		st = conflict
	case errors.Is(t.failed, ErrReadOnly):
		st = readOnly
	}
	t.t.CutShort(st)
}

// Admit is called before a commit.
func (t *Txn) Admit() bool {
	if !t.admit() {
		return false
	}
	for i := range t.gated {
		if t.gated[i] = len(t.bits[i]) > 0; t.gated[i] {
			t.s.alloc[i].gate.RLock()
		}
	}
	return true
}

// Ended is called when the locks are gone.
func (t *Txn) Ended(committed bool) {
	if t.large {
		t.large = false
		t.s.large.Unlock()
	}
	if committed && t.wrote {
		t.s.commits.Add(1)
	}
	t.wrote = false
	t.end(committed)
	for i := range t.gated {
		if t.gated[i] {
			t.gated[i] = false
			t.s.alloc[i].gate.RUnlock()
		}
	}
}

func (t *Txn) lock(k uint64, excl bool) error {
	if !t.t.Lock(k, excl) {
		return t.conflict(k, excl)
	}
	return nil
}

// fail notes that the transaction cannot go on, because of an object that was to be read or written.
func (t *Txn) fail(st, what uint32, blkno, off uint64, excl bool) error {
	switch st {
	case 0:
		return nil
	case conflict:
		return t.conflict(t.s.key(blkno, off), excl)
	case wild:
		return t.refuse(t.s.wild(what, blkno))
	}
	return t.refuse(t.s.status(st))
}

// conflict notes that the lock of object k is in the way.
func (t *Txn) conflict(k uint64, excl bool) error {
	i, found := slices.BinarySearchFunc(t.first, k, func(w want, k uint64) int { return cmp.Compare(w.key, k) })
	if found {
		t.first[i].excl = t.first[i].excl || excl
	} else {
		t.first = slices.Insert(t.first, i, want{k, excl})
	}
	return t.refuse(ErrConflict)
}

// refuse notes that the transaction cannot go on, and returns why: err, unless that was so before.
func (t *Txn) refuse(err error) error {
	if t.failed == nil {
		t.failed = err
	}
	return t.failed
}

// check unwinds on an error.
func (t *Txn) check(err error) {
	if err != nil {
		t.refuse(err)
		panic(unwind{t})
	}
}

// end gives back what the transaction had. wrote: it was committed.
func (t *Txn) end(wrote bool) {
	for i, a := range t.s.alloc {
		if !wrote {
			t.bits[i] = t.bits[i][:0]
		}
		a.done(t.took[i], t.bits[i])
		t.took[i], t.bits[i] = t.took[i][:0], t.bits[i][:0]
	}
	t.lastOK, t.placed = false, false
	t.ends = [2]uint64{}
	t.failed = nil
}

// Abort ends the transaction without effect. It does not wait for what was read to
// be durable.
func (t *Txn) Abort() {
	txnrun.Undo(t.t, t)
}

// Commit ends the transaction: all its writes take effect at once, or none when it
// returns an error, with the exception of ErrIO. If stable, it returns when they are durable.
func (t *Txn) Commit(stable bool) error {
	if t.failed != nil {
		err := t.failed
		t.Abort()
		return err
	}
	return t.result(txnrun.Run(t.t, t, 0, stable, false))
}

// Seen says that nobody sees the inodes any more that t has read, so that their memory may be used again. Without it
// that stays theirs who see them.
func (t *Txn) Seen() { t.hold.EndSmall() }

// SeenLast is Seen for the inode that t has read last, if the memory of that inode is b.
func (t *Txn) SeenLast(b []byte) { t.hold.EndLast(b) }
