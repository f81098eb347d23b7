package disk

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Fault wraps a Disk and breaks operations as a Plan says. Operations that the
// plan leaves alone pass through unchanged.
type Fault struct {
	Disk
	mu   sync.Mutex // protects plan, n, and r
	plan Plan
	n    uint64
	r    *rand.Rand
}

// Kind of an operation.
type Kind int

// The kinds of operation that a Fault can break.
const (
	Read Kind = iota
	Write
	Barrier
)

// Op is an operation about to happen.
type Op struct {
	N      uint64 // its number, from 1 on, counting reads, writes, and barriers
	Kind   Kind
	Addr   uint64 // first block
	Blocks int    // number of blocks
}

// Harm is what happens to an operation. The zero Harm is none.
type Harm struct {
	// Delay before anything else.
	Delay time.Duration
	// Err, when not nil, is returned as the cause of an *Error. Nothing is read,
	// written, or made durable, except by a torn write.
	Err error
	// Torn makes a write reach the device in some sectors only, picked at random.
	// Without Err the device lies about it.
	Torn bool
	// Flip inverts one random bit of what is read, or of what is written. The
	// caller's buffers of a write stay as they are.
	Flip bool
}

// Plan decides about each operation. It is called by one goroutine at a time,
// in the order of the numbers; r is seeded.
type Plan func(op Op, r *rand.Rand) Harm

// Unwrap returns the disk that is harmed, for HostOf.
func (f *Fault) Unwrap() Disk { return f.Disk }

// NewFault returns d, harmed by plan, with all randomness from seed. A nil plan
// does no harm.
func NewFault(d Disk, seed uint64, plan Plan) *Fault {
	return &Fault{Disk: d, plan: plan, r: rand.New(rand.NewPCG(seed, 1))}
}

// SetPlan replaces the plan; nil ends all harm.
func (f *Fault) SetPlan(plan Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan = plan
}

// Ops is the number of operations so far.
func (f *Fault) Ops() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n
}

// FailAt fails operation number n with err, and no other.
func FailAt(n uint64, err error) Plan {
	return func(op Op, _ *rand.Rand) Harm {
		if op.N == n {
			return Harm{Err: err}
		}
		return Harm{}
	}
}

// FailFrom is a device that dies: every operation of one of kinds fails with err, from number n on. Without kinds, all
// do.
func FailFrom(n uint64, err error, kinds ...Kind) Plan {
	return func(op Op, _ *rand.Rand) Harm {
		if op.N >= n && (len(kinds) == 0 || slices.Contains(kinds, op.Kind)) {
			return Harm{Err: err}
		}
		return Harm{}
	}
}

// Sometimes does harm h, with probability p, to each operation of one of kinds. Without kinds, all of them count.
func Sometimes(p float64, h Harm, kinds ...Kind) Plan {
	return func(op Op, r *rand.Rand) Harm {
		if (len(kinds) == 0 || slices.Contains(kinds, op.Kind)) && r.Float64() < p {
			return h
		}
		return Harm{}
	}
}

// next numbers an operation and returns the harm to do, with a private source
// of randomness for it.
func (f *Fault) next(kind Kind, a uint64, bufs [][]byte) (Harm, *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.plan == nil {
		return Harm{}, nil
	}
	h := f.plan(Op{N: f.n, Kind: kind, Addr: a, Blocks: len(bufs)}, f.r)
	if !h.Torn && !h.Flip {
		return h, nil
	}
	return h, rand.New(rand.NewPCG(f.r.Uint64(), f.r.Uint64()))
}

// ReadAt implements Disk.
func (f *Fault) ReadAt(a uint64, bufs [][]byte) error {
	h, r := f.next(Read, a, bufs)
	time.Sleep(h.Delay)
	if h.Err != nil {
		return &Error{Op: "read", Block: a, Err: h.Err}
	}
	err := f.Disk.ReadAt(a, bufs)
	if err == nil && h.Flip {
		flip(bufs, r)
	}
	return err
}

// WriteAt implements Disk.
func (f *Fault) WriteAt(a uint64, bufs [][]byte) error {
	h, r := f.next(Write, a, bufs)
	return f.write(h, r, a, bufs)
}

// Discard implements Discarder: to the plan it is a write of zeros.
func (f *Fault) Discard(a, n uint64) error {
	bufs := zeroBlocks(n)
	h, r := f.next(Write, a, bufs)
	if h.Torn || h.Flip {
		return f.write(h, r, a, bufs)
	}
	time.Sleep(h.Delay)
	if h.Err != nil {
		return &Error{Op: "discard", Block: a, Err: h.Err}
	}
	return Discard(f.Disk, a, n)
}

// write is WriteAt, with harm h.
func (f *Fault) write(h Harm, r *rand.Rand, a uint64, bufs [][]byte) error {
	time.Sleep(h.Delay)
	if h.Err != nil && !h.Torn {
		return &Error{Op: "write", Block: a, Err: h.Err}
	}
	if h.Flip {
		bufs = cloneBlocks(bufs)
		flip(bufs, r)
	}
	if h.Torn {
		var err error
		if bufs, err = f.tear(a, bufs, r); err != nil {
			return err
		}
	}
	err := f.Disk.WriteAt(a, bufs)
	if err == nil && h.Err != nil {
		return &Error{Op: "write", Block: a, Err: h.Err}
	}
	return err
}

// Barrier implements Disk.
func (f *Fault) Barrier() error {
	h, _ := f.next(Barrier, 0, nil)
	time.Sleep(h.Delay)
	if h.Err != nil {
		return &Error{Op: "barrier", Err: h.Err}
	}
	return f.Disk.Barrier()
}

// tear returns bufs with a random half of the sectors as they are on the device.
func (f *Fault) tear(a uint64, bufs [][]byte, r *rand.Rand) ([][]byte, error) {
	torn := cloneBlocks(bufs)
	if err := f.Disk.ReadAt(a, torn); err != nil {
		return nil, err
	}
	for i, b := range bufs {
		for lo := 0; lo < len(b); lo += SectorSize {
			if r.IntN(2) == 0 {
				copy(torn[i][lo:lo+SectorSize], b[lo:])
			}
		}
	}
	return torn, nil
}

func flip(bufs [][]byte, r *rand.Rand) {
	if len(bufs) == 0 {
		return
	}
	b := bufs[r.IntN(len(bufs))]
	if len(b) > 0 {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
}

func cloneBlocks(bufs [][]byte) [][]byte {
	c := make([][]byte, len(bufs))
	for i, b := range bufs {
		c[i] = slices.Clone(b)
	}
	return c
}
