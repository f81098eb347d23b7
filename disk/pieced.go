package disk

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"sync/atomic"
)

// Locate says of block a of a layout whether it is there, and where on the device (at). The same is so of n blocks from
// a on, one at least: all are there, one behind the other from at on, or none is. It is asked of blocks within the
// layout alone, by many goroutines at once, and answers always alike.
type Locate func(a uint64) (there bool, at, n uint64)

// Pieced is a layout of blocks of which some runs lie on a Disk, each somewhere. It is for a volume that is laid out
// for more than its device has.
//
// A block that is not there reads as zeros. Zeros that are written to it are taken, and have no effect. Anything else
// is refused: the error wraps ErrNotThere, and nothing is written then.
//
// All addresses are those of the layout, also in errors. Where the device has a block elsewhere, the error wraps that
// of the device, which names its own. Optional interfaces of the Disk stay, with addresses translated. So there is no
// Unwrap: what looks for an interface within the Disk would give it addresses of the layout.
type Pieced struct {
	d      Disk
	size   uint64 // blocks of the layout
	locate atomic.Pointer[Locate]
	closed atomic.Bool
}

// NewPieced returns a layout of size blocks, which lie on d where locate says. A File does without the blocks behind
// the last that is there: it is not lost (ErrLost) if they are cut off.
func NewPieced(d Disk, size uint64, locate Locate) *Pieced {
	p := &Pieced{d: d, size: size}
	p.Extend(locate)
	return p
}

// Extend has more blocks of the layout be there, for operations that begin later; one that is under way may take them
// for not there yet. What was there stays where it was. A block that comes reads as the device has it. All runs of the
// layout are gone through once, if the device is a File. It may be called beside all other methods, but not beside
// itself.
func (p *Pieced) Extend(locate Locate) {
	if f, ok := within[*File](p.d); ok {
		end := uint64(0)
		for r := range locate.runs(0, p.size) {
			if r.there {
				end = max(end, r.at+r.n)
			}
		}
		f.needed.Store(min(end, f.Size()))
	}
	p.locate.Store(&locate)
}

// PiecedOf returns d, or what d wraps (Unwrap), if that is a Pieced; else nil.
func PiecedOf(d Disk) *Pieced {
	p, _ := within[*Pieced](d)
	return p
}

// A run is n blocks from a on of a layout, which lie one behind the other from block at of the device on, or nowhere.
type run struct {
	there    bool
	a, at, n uint64
}

// runs are those of n blocks from a on, all within the layout.
func (l Locate) runs(a, n uint64) iter.Seq[run] {
	return func(yield func(run) bool) {
		for end := a + n; a < end; {
			there, at, k := l(a)
			k = min(k, end-a)
			if !yield(run{there, a, at, k}) {
				return
			}
			a += k
		}
	}
}

// now is where blocks lie at present. An operation asks once.
func (p *Pieced) now() Locate { return *p.locate.Load() }

// inside is how many of n blocks from a on lie in the layout.
func (p *Pieced) inside(a, n uint64) uint64 { return min(n, p.size-min(a, p.size)) }

// elsewhere is an error of the device in the run r, for those who know the layout alone.
func (r run) elsewhere(op string, err error) error {
	if err == nil || r.a == r.at {
		return err
	}
	block := r.a
	if e := new(Error); errors.As(err, &e) && e.Block >= r.at && e.Block-r.at < r.n {
		block += e.Block - r.at
	}
	return &Error{Op: op, Block: block, Err: fmt.Errorf("on the device: %w", err)}
}

// open fails after Close. The device would as well, but need not be asked.
func (p *Pieced) open(op string, a uint64) error {
	if p.closed.Load() {
		return &Error{Op: op, Block: a, Err: os.ErrClosed}
	}
	return nil
}

// ReadAt implements Disk.
func (p *Pieced) ReadAt(a uint64, bufs [][]byte) error {
	if err := p.open("read", a); err != nil {
		return err
	}
	if err := CheckTransfer("read", "", p.size, a, bufs); err != nil {
		return err
	}
	for r := range p.now().runs(a, uint64(len(bufs))) {
		part := bufs[r.a-a:][:r.n]
		if !r.there {
			for _, b := range part {
				clear(b)
			}
		} else if err := p.d.ReadAt(r.at, part); err != nil {
			return r.elsewhere("read", err)
		}
	}
	return nil
}

// WriteAt implements Disk.
func (p *Pieced) WriteAt(a uint64, bufs [][]byte) error {
	if err := p.open("write", a); err != nil {
		return err
	}
	if err := CheckTransfer("write", "", p.size, a, bufs); err != nil {
		return err
	}
	locate := p.now()
	for r := range locate.runs(a, uint64(len(bufs))) {
		for b := r.a; !r.there && b < r.a+r.n; b++ {
			if !isZero(bufs[b-a]) {
				return &Error{Op: "write", Block: b, Err: ErrNotThere}
			}
		}
	}
	for r := range locate.runs(a, uint64(len(bufs))) {
		if !r.there {
			continue
		}
		if err := p.d.WriteAt(r.at, bufs[r.a-a:][:r.n]); err != nil {
			return r.elsewhere("write", err)
		}
	}
	return nil
}

// Barrier implements Disk.
func (p *Pieced) Barrier() error { return p.d.Barrier() }

// Size implements Disk: it is that of the layout.
func (p *Pieced) Size() uint64 { return p.size }

// Close implements Disk. It closes the device.
func (p *Pieced) Close() error {
	p.closed.Store(true)
	return p.d.Close()
}

// NextThere returns the first block at or behind a that is there, or the size of the layout if there is none.
func (p *Pieced) NextThere(a uint64) uint64 {
	for r := range p.now().runs(a, p.inside(a, p.size)) {
		if r.there {
			return r.a
		}
	}
	return p.size
}

// NextThere asks d, or the Disk that d wraps (Unwrap), if that is a Pieced. All blocks of other Disks are there: the
// result is a.
func NextThere(d Disk, a uint64) uint64 {
	if p := PiecedOf(d); p != nil {
		return min(p.NextThere(a), d.Size())
	}
	return a
}

// NextData implements Holes. What is not there is passed over.
func (p *Pieced) NextData(a uint64) (uint64, error) {
	for r := range p.now().runs(a, p.inside(a, p.size)) {
		if !r.there {
			continue
		}
		next, err := NextData(p.d, r.at)
		if err != nil {
			return 0, r.elsewhere("read", err)
		}
		if next < r.at+r.n {
			return r.a + (next - r.at), nil
		}
	}
	return p.size, nil
}

// Discard implements Discarder. What is not there is zeros already.
func (p *Pieced) Discard(a, n uint64) error {
	if err := p.open("discard", a); err != nil {
		return err
	}
	if err := checkRange("discard", "", p.size, a, n); err != nil {
		return err
	}
	for r := range p.now().runs(a, n) {
		if !r.there {
			continue
		}
		if err := Discard(p.d, r.at, r.n); err != nil {
			return r.elsewhere("discard", err)
		}
	}
	return nil
}

// Forget implements Forgetter.
func (p *Pieced) Forget(a, n uint64) {
	for r := range p.now().runs(a, p.inside(a, n)) {
		if r.there {
			Forget(p.d, r.at, r.n)
		}
	}
}

// Push implements Pusher.
func (p *Pieced) Push(a, n uint64, wait bool) {
	for r := range p.now().runs(a, p.inside(a, n)) {
		if r.there {
			Push(p.d, r.at, r.n, wait)
		}
	}
}

// Release implements Releaser.
func (p *Pieced) Release(from, to uint64) {
	for r := range p.now().runs(from, p.inside(from, to-min(from, to))) {
		if r.there {
			Release(p.d, r.at, r.at+r.n)
		}
	}
}

// BarrierFollows implements BarrierFollower. A device remembers one range: that is the longest run of these blocks.
func (p *Pieced) BarrierFollows(a, end uint64) {
	longest := run{}
	for r := range p.now().runs(a, p.inside(a, end-min(a, end))) {
		if r.there && r.n > longest.n {
			longest = r
		}
	}
	if longest.there {
		BarrierFollows(p.d, longest.at, longest.at+longest.n)
	}
}

// PastCache implements PastCacher.
func (p *Pieced) PastCache() bool { return PastCache(p.d) }

// Unclaim is for the function Unclaim.
func (p *Pieced) Unclaim() error { return Unclaim(p.d) }

// Host returns the host of the device, for HostOf; nil if it has none.
func (p *Pieced) Host() Host {
	if h := HostOf(p.d); h != nil {
		return piecedHost{h, p}
	}
	return nil
}

// piecedHost is the host of a device, asked for blocks of a layout.
type piecedHost struct {
	Host
	p *Pieced
}

// Reserve implements Host. If one of the blocks is not there, the error wraps ErrNotThere, and none is reserved.
func (h piecedHost) Reserve(a, n uint64) error {
	if err := checkRange("reserve", "", h.p.size, a, n); err != nil {
		return err
	}
	locate := h.p.now()
	if there, at, have := locate(a); there && n <= have {
		return h.Host.Reserve(at, n)
	}
	for r := range locate.runs(a, n) {
		if !r.there {
			return &Error{Op: "reserve", Err: fmt.Errorf("block %d: %w", r.a, ErrNotThere)}
		}
	}
	for r := range locate.runs(a, n) {
		if err := h.Host.Reserve(r.at, r.n); err != nil {
			return err
		}
	}
	return nil
}

// Below implements Host.
func (h piecedHost) Below(end uint64) (there uint64) {
	for r := range h.p.now().runs(0, h.p.inside(0, end)) {
		if r.there {
			there += r.n
		}
	}
	return there
}

// Backed implements Host. A run of the result lies within one of the layout.
func (h piecedHost) Backed(a uint64) (lo, hi uint64, ok bool) {
	for r := range h.p.now().runs(a, h.p.inside(a, h.p.size)) {
		if !r.there {
			continue
		}
		if lo, hi, ok = h.Host.Backed(r.at); ok && lo < r.at+r.n {
			return r.a + (lo - r.at), r.a + (min(hi, r.at+r.n) - r.at), true
		}
	}
	return 0, 0, false
}
