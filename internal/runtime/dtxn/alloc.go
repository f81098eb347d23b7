package dtxn

import (
	"math/bits"
	"sync/atomic"

	"tansy/internal/lockorder"
)

// An alloc gives hints where a bitmap on disk has clear bits, and counts them.
//
// It promises nothing that safety rests on: the bit in the bitmap, read and
// written inside the transaction, decides. What it does promise is service: no
// two running transactions get the same bit, what an aborted one took and what
// a committed one cleared is offered again, none is refused while one is left
// (Supply in verified/trusted/txn.s.dfy), and the count is exact.
//
// It keeps windows, copies of single bitmap blocks as last committed with the
// bits handed out set as well. They are loaded when a search needs them. A
// window with bits handed out stays; of the others only the most recent do.
type alloc struct {
	first uint64        // the bits handed out are [first, end)
	end   atomic.Uint64 // grows, with mu held; see ends.go
	limit uint64        // bits from there on are never handed out
	start uint64        // the block that holds bit 0
	read  func(blkno uint64) ([]byte, error)

	// commits of transactions that wrote bits hold it shared, from before their
	// append until they have reported to done; who reads the bitmap as committed
	// holds it exclusively and thus sees each commit wholly or not at all
	gate lockorder.RWMutex[lockorder.Gates]

	mu    lockorder.Mutex[lockorder.Allocator]
	next  uint64 // where the search without a wish goes on
	win   map[uint64]*window
	use   uint64  // ticks, for recency
	free  []int32 // clear bits within [first, end) per window, -1 = not counted yet
	todo  int     // windows not counted yet
	total uint64  // sum of the counts

	rotors    map[uint64]uint64 // by region, what was handed out last in the place of another
	stretches stretches

	streams []stream // maxStreams of them, once a file has grown
	recent  int      // the one used last

	freedBits atomic.Uint64 // cleared by transactions that committed, ever, and how often the end grew
	back      uint64        // how often a bit came back, or some that were held, or the end grew

	// see spare.go
	pieces  map[uint64]struct{} // with bits cleared, as far as nobody has asked; nil: nobody will
	held    []Run               // bits that are handed out only if there are no others
	unspare func()              // called before they are given back
}

// windowBits is the number of bits in a bitmap block.
const windowBits = 32768

// maxWindows bounds the windows kept without need: 4 KiB each.
const maxWindows = 64

type window struct {
	bits [windowBits / 64]uint64
	out  map[uint64]int // bits handed out: how often set since, less how often cleared
	held bool           // it has some that are held, which are set in bits and nowhere else
	used uint64
}

func newAlloc(b Bitmap, read func(uint64) ([]byte, error)) *alloc {
	a := &alloc{
		first: b.First, limit: b.Limit, start: b.Start, read: read, next: b.First,
		win: map[uint64]*window{}, rotors: map[uint64]uint64{},
	}
	end := b.End
	if end == 0 {
		end = b.Limit
	}
	a.grow(min(end, b.Limit))
	return a
}

// has reports whether block b belongs to the bitmap.
func (a *alloc) has(b uint64) bool { return b-a.start < windows(a.limit) }

// windows is the number of windows that bits up to end lie in.
func windows(end uint64) uint64 { return (end + windowBits - 1) / windowBits }

// none tells that there is no bit to be handed out, whatever the bitmap has.
func (a *alloc) none() bool { return a.first >= a.end.Load() }

// load returns window w; the caller holds gate exclusively and mu.
func (a *alloc) load(w uint64) (*window, error) {
	a.use++
	if x := a.win[w]; x != nil {
		x.used = a.use
		return x, nil
	}
	p, err := a.read(a.start + w)
	if err != nil {
		return nil, err
	}
	if len(a.win) >= maxWindows {
		old, oldest := ^uint64(0), ^uint64(0)
		for i, x := range a.win {
			if len(x.out) == 0 && !x.held && x.used < oldest {
				old, oldest = i, x.used
			}
		}
		delete(a.win, old)
	}
	x := &window{used: a.use, out: map[uint64]int{}}
	for i, c := range p {
		x.bits[i/8] |= uint64(c) << (i % 8 * 8)
	}
	a.win[w] = x
	if a.free[w] < 0 {
		n := x.clear(a.within(w))
		a.free[w] = int32(n)
		a.total += uint64(n)
		a.todo--
	}
	return x, nil
}

// within returns the part of window w that may be handed out.
func (a *alloc) within(w uint64) (lo, hi uint64) {
	if b := w * windowBits; b < a.first {
		lo = min(a.first-b, windowBits)
	}
	return lo, max(lo, min(windowBits, a.end.Load()-w*windowBits))
}

// clear counts the clear bits in [lo, hi).
func (x *window) clear(lo, hi uint64) (n int) {
	for i := lo; i < hi; i = i&^63 + 64 {
		v := ^x.bits[i/64] >> (i % 64)
		if k := hi - i; k < 64 {
			v &= 1<<k - 1
		}
		n += bits.OnesCount64(v)
	}
	return n
}

// find takes the first clear bit of window x in [lo, hi).
func (x *window) find(lo, hi uint64) (uint64, bool) {
	for i := lo; i < hi; i = i&^63 + 64 {
		if v := ^x.bits[i/64] >> (i % 64); v != 0 {
			i += uint64(bits.TrailingZeros64(v))
			if i >= hi {
				break
			}
			x.bits[i/64] |= 1 << (i % 64)
			x.out[i] = 0
			return i, true
		}
	}
	return 0, false
}

// take hands out a clear bit: the next one after near if near is not 0, else
// after the bit handed out last; from there on all around. ok is false when
// there is none.
func (a *alloc) take(near uint64) (x uint64, ok bool, err error) {
	if a.none() {
		return 0, false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.anywhere(near)
}

// anywhere is take for a caller that holds mu.
func (a *alloc) anywhere(near uint64) (x uint64, ok bool, err error) {
	return a.untilNone(func() (uint64, bool, error) { return a.search(near) })
}

// untilNone searches until a bit is found, or none is left: what is set aside or held comes back first. A search lets
// go of mu where it loads a window, and a bit that comes back meanwhile may lie behind it. The caller holds mu.
func (a *alloc) untilNone(search func() (uint64, bool, error)) (x uint64, ok bool, err error) {
	for {
		back := a.back
		if x, ok, err = search(); ok || err != nil {
			return x, ok, err
		}
		if !a.forgetAll() && !a.yield() && a.back == back {
			return 0, false, nil
		}
	}
}

// exchange hands out a clear bit in the place of another: the next one behind from; or if that is 0, one on a stretch
// of the file, or else behind where onward says.
func (a *alloc) exchange(p place, from uint64) (x uint64, ok bool, err error) {
	if a.none() {
		return 0, false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if from == 0 {
		if x, ok, err = a.inOrder(p); ok || err != nil {
			return x, ok, err
		}
		from = a.onward(p.near)
	}
	x, ok, err = a.anywhere(from)
	// Who goes on with what lies before the rotor does not turn it back.
	if r, some := a.rotors[from/rotorSpan]; ok && !(some && from < r && r-from < rotorRecent) {
		a.turned(from, x)
	}
	return x, ok, err
}

// A rotor is where the search for blocks in the place of others goes on in one region of the bitmap, all around. What
// was freed a moment ago is no place for new data before the journal is done with the old: the commit would have to
// wait for a whole installation, or the data would go to the log first.
const (
	// rotorSpan is the size of a region in bits: more than there are blocks that were written straight home and are
	// not installed.
	rotorSpan = 4 * windowBits

	rotorRoom   = rotorSpan / 4 // clear bits of a region that has room
	rotorRecent = 512           // how much is handed out in a moment, in bits
	rotorReach  = 64            // regions among which one is looked for that has room
	maxRotors   = 1024          // so many are remembered
)

// onward is where to look for a block in the place of one near the given: behind that one, if it was itself handed out
// a moment ago and the next bit is to be had, so that a file stays together; else where rotor says. The caller holds
// mu.
func (a *alloc) onward(near uint64) (from uint64) {
	r, ok := a.rotors[near/rotorSpan]
	if ok && near <= r && r-near < rotorRecent && a.isClear(near+1) && !a.stretches.begins(near+1) {
		return near
	}
	return a.rotor(near)
}

// rotor is what was handed out last in the region of near, or in the next one that has room; where nothing was yet,
// near. The caller holds mu.
func (a *alloc) rotor(near uint64) (from uint64) {
	region := near / rotorSpan
	r, ok := a.rotors[region]
	regions := (uint64(len(a.free)) + rotorSpan/windowBits - 1) / (rotorSpan / windowBits)
	for k := range min(rotorReach, regions) {
		if to := (region + k) % regions; a.hasRoom(to) {
			if to != region {
				near = to * rotorSpan
				r, ok = a.rotors[to]
			}
			break
		}
	}
	if ok {
		return r
	}
	return near
}

// hasRoom tells if that region has many clear bits, or nobody has counted them. The caller holds mu.
func (a *alloc) hasRoom(region uint64) bool {
	n := int32(0)
	for w := region * (rotorSpan / windowBits); w < min(uint64(len(a.free)), (region+1)*(rotorSpan/windowBits)); w++ {
		if a.free[w] < 0 {
			return true
		}
		n += a.free[w]
	}
	return n >= rotorRoom
}

// turned notes that x was handed out in the place of another, by a search from there on. The caller holds mu.
func (a *alloc) turned(from, x uint64) {
	if len(a.rotors) >= maxRotors {
		clear(a.rotors)
	}
	if region := from / rotorSpan; x/rotorSpan != region {
		a.rotors[region] = region * rotorSpan // its end was reached
	}
	a.rotors[x/rotorSpan] = x
}

// isClear reports whether bit x is known to be clear, and not handed out. The caller holds mu.
func (a *alloc) isClear(x uint64) bool {
	w := a.win[x/windowBits]
	return w != nil && a.first <= x && x < a.end.Load() && w.bits[x%windowBits/64]>>(x%64)&1 == 0
}

// search is take without what is held. The caller holds mu.
func (a *alloc) search(near uint64) (x uint64, ok bool, err error) {
	from := a.next
	if near != 0 {
		from = near + 1
	}
	if from < a.first || from >= a.end.Load() {
		from = a.first
	}
	n := uint64(len(a.free))
	// the window of `from` is visited twice: first behind it, at last before it
	for k := uint64(0); k <= n; k++ {
		w := (from/windowBits + k) % n
		if a.free[w] == 0 {
			continue
		}
		lo, hi := a.within(w)
		if k == 0 {
			lo = max(lo, from%windowBits)
		}
		if lo >= hi {
			continue
		}
		win := a.win[w]
		if win == nil {
			if win, err = a.reload(w); err != nil {
				return 0, false, err
			}
		}
		if i, ok := win.find(lo, hi); ok {
			return a.found(w, win, i), true, nil
		}
	}
	return 0, false, nil
}

// found notes that bit i of window w was handed out, and returns its number. The caller
// holds mu.
func (a *alloc) found(w uint64, win *window, i uint64) uint64 {
	a.use++
	win.used = a.use
	x := w*windowBits + i
	a.next = x + 1
	return x
}

// takeIn hands out the first clear bit of [lo, hi), which is within [first, end); ok is
// false when there is none.
func (a *alloc) takeIn(lo, hi uint64) (x uint64, ok bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.untilNone(func() (uint64, bool, error) { return a.searchIn(lo, hi) })
}

// searchIn is takeIn without what is held. The caller holds mu.
func (a *alloc) searchIn(lo, hi uint64) (x uint64, ok bool, err error) {
	for lo < hi {
		w := lo / windowBits
		end := min(hi, (w+1)*windowBits)
		if a.free[w] != 0 {
			win := a.win[w]
			if win == nil {
				if win, err = a.reload(w); err != nil {
					return 0, false, err
				}
			}
			if i, ok := win.find(lo-w*windowBits, end-w*windowBits); ok {
				return a.found(w, win, i), true, nil
			}
		}
		lo = end
	}
	return 0, false, nil
}

// giveBack takes back bit x, which was handed out and used by no transaction.
func (a *alloc) giveBack(x uint64) { a.done([]uint64{x}, nil) }

// reload loads window w for a caller that holds mu, but not the gate.
func (a *alloc) reload(w uint64) (*window, error) {
	a.mu.Unlock() // order: gate, then mu
	a.gate.Lock()
	a.mu.Lock()
	defer a.gate.Unlock()
	return a.load(w)
}

// A bitWrite is what a transaction does to a bit of the bitmap.
type bitWrite struct {
	x        uint64
	old, new bool
}

// done reports the end of a transaction: it had been handed out the bits took,
// and, if it committed, has changed the bits wrote.
//
// The locks are gone before this. So a transaction that freed a bit may report before the
// one that had been handed the bit. Whatever the order, the sum of the changes says what
// became of it.
func (a *alloc) done(took []uint64, wrote []bitWrite) {
	if len(took) == 0 && len(wrote) == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(wrote) == 0 {
		took = a.rewind(took)
	}
	a.ended(took, wrote)
}

// ended is done for a caller that holds mu.
func (a *alloc) ended(took []uint64, wrote []bitWrite) {
	for _, c := range wrote {
		if c.old == c.new {
			continue
		}
		if !c.new {
			a.back++
			a.freedBits.Add(1)
			if a.pieces != nil {
				a.pieces[c.x/Piece] = struct{}{}
			}
		}
		i := c.x / windowBits
		if w := a.win[i]; w != nil {
			w.change(c.x%windowBits, c.new)
		}
		if a.first <= c.x && c.x < a.end.Load() && a.free[i] >= 0 {
			if c.new {
				a.free[i]--
				a.total--
			} else {
				a.free[i]++
				a.total++
			}
		}
	}
	for _, x := range took {
		w, i := a.win[x/windowBits], x%windowBits
		a.back++
		if w.out[i] <= 0 {
			w.bits[i/64] &^= 1 << (i % 64)
		}
		delete(w.out, i)
	}
}

// change notes that bit i was set or cleared by a transaction that committed.
func (x *window) change(i uint64, set bool) {
	n, handedOut := x.out[i]
	switch {
	case handedOut && set:
		x.out[i] = n + 1
	case handedOut:
		x.out[i] = n - 1
	case set:
		x.bits[i/64] |= 1 << (i % 64)
	default:
		x.bits[i/64] &^= 1 << (i % 64)
	}
}

// count returns the number of clear bits in [first, end), as committed. The
// first call reads the bitmap blocks that have not been read yet.
func (a *alloc) count() (uint64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.todo > 0 { // while a window was loaded, the end may have grown
		for w := range uint64(len(a.free)) {
			if a.free[w] >= 0 {
				continue
			}
			if _, err := a.reload(w); err != nil { // lets go of mu
				return 0, err
			}
		}
	}
	return a.total, nil
}
