package disk

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"sync/atomic"

	"tansy/internal/lockorder"
)

// Moments wraps a Disk of which somebody wants to read what it held at a moment, while it goes on to change. It gives
// out such moments (Take), several at once. While one is held, the first write or discard of each block that the moment
// needs reads the block before, and keeps what it held: in memory up to a bound, then in a file up to another. If that
// fails, the moment is lost, and says so; the write goes on. While none is held, a write costs a lock that it shares
// with all others.
//
// What a moment holds is what a crash at that instant may leave, in which every write that had begun is whole: a crash
// may keep or lose each block (Disk). So who recovers from every crash can recover from a moment.
type Moments struct {
	Disk
	gate  lockorder.RWMutex[lockorder.Moments] // shared by writes and discards
	held  atomic.Pointer[[]*Moment]            // nil: none; changes with Take, and when one ends
	spill spill
}

// MomentOptions bound what is kept for all moments of a Disk together. The zero value is fine.
type MomentOptions struct {
	Memory uint64 // bytes in memory; 0: DefaultMomentMemory
	Spill  uint64 // bytes in a file, when the memory is full; 0: DefaultMomentSpill
	// Dir is the folder of that file, which has no name there, and is made when it is needed; "": that which the
	// environment has as TMPDIR, or else /var/tmp, if it is there, as /tmp may be in memory.
	Dir string
}

// What is kept for moments at most, if nobody says else.
const (
	DefaultMomentMemory = 64 << 20
	DefaultMomentSpill  = 4 << 30
)

// ErrMomentLost: what the device held at a moment is not known any more.
var ErrMomentLost = errors.New("the view of a moment has ended")

// NewMoments returns d, of which moments can be taken. All writes have to go through it from then on.
func NewMoments(d Disk, o MomentOptions) *Moments {
	o.Memory, o.Spill = cmp.Or(o.Memory, DefaultMomentMemory), cmp.Or(o.Spill, DefaultMomentSpill)
	if o.Dir == "" {
		o.Dir = spillDir()
	}
	return &Moments{Disk: d, spill: spill{o: o}}
}

// spillDir is MomentOptions.Dir, if that is not given.
func spillDir() string {
	const large = "/var/tmp"
	if st, err := os.Stat(large); os.Getenv("TMPDIR") == "" && err == nil && st.IsDir() {
		return large
	}
	return os.TempDir()
}

// Unwrap returns the disk, for HostOf.
func (m *Moments) Unwrap() Disk { return m.Disk }

// Take returns what the device holds now, to be read until Close. It waits for writes and discards that are under way;
// others wait for it meanwhile.
func (m *Moments) Take() *Moment {
	m.gate.Lock()
	defer m.gate.Unlock()
	size := m.Disk.Size()
	t := &Moment{of: m, size: size, settled: newBlockSet(size), has: newBlockSet(size), kept: map[uint64]*old{}}
	m.change(func(held []*Moment) []*Moment { return append(held, t) })
	return t
}

// change replaces the list of moments that are held.
func (m *Moments) change(f func(held []*Moment) []*Moment) {
	for {
		was, held := m.held.Load(), []*Moment(nil)
		if was != nil {
			held = slices.Clone(*was)
		}
		now := &held
		if *now = f(held); len(*now) == 0 {
			now = nil
		}
		if m.held.CompareAndSwap(was, now) {
			return
		}
	}
}

// Held is the number of moments that are held.
func (m *Moments) Held() int { return len(m.list()) }

// list is the moments that are held.
func (m *Moments) list() []*Moment {
	if held := m.held.Load(); held != nil {
		return *held
	}
	return nil
}

// Kept is how many bytes are kept for moments: in memory, and in a file.
func (m *Moments) Kept() (memory, file uint64) { return m.spill.kept() }

// EndAll ends all moments that are held: they are lost, because of why.
func (m *Moments) EndAll(why error) {
	for _, t := range m.list() {
		t.lose(why)
	}
}

// WriteAt implements Disk.
func (m *Moments) WriteAt(a uint64, bufs [][]byte) error {
	m.gate.RLock()
	defer m.gate.RUnlock()
	m.save(a, uint64(len(bufs)))
	return m.Disk.WriteAt(a, bufs)
}

// discardStep is how many blocks are discarded at a time: Take, and the writes that wait for it, wait for no more.
const discardStep = 64 << 20 / BlockSize

// Discard implements Discarder.
func (m *Moments) Discard(a, n uint64) error {
	if size := m.Disk.Size(); a > size || n > size-a {
		return m.discard(a, n) // the device refuses it
	}
	for end := a + n; ; {
		next := min(end, (a/discardStep+1)*discardStep)
		if err := m.discard(a, next-a); err != nil || next == end {
			return err
		}
		a = next
	}
}

// discard is Discard for blocks that are discarded at once.
func (m *Moments) discard(a, n uint64) error {
	m.gate.RLock()
	defer m.gate.RUnlock()
	if _, can := m.Disk.(Discarder); can {
		m.save(a, n)
	}
	return Discard(m.Disk, a, n)
}

// NextData implements Holes.
func (m *Moments) NextData(a uint64) (uint64, error) { return NextData(m.Disk, a) }

// Close implements Disk. Moments that are held are lost.
func (m *Moments) Close() error {
	m.EndAll(os.ErrClosed)
	return m.Disk.Close()
}

// saveStep is the number of blocks that are read at a time to be kept, and the most that a moment looks at at a time.
const saveStep = 256

// save keeps the contents of n blocks from a on for the moments that need them. The caller shares the gate, and writes
// them next.
func (m *Moments) save(a, n uint64) {
	held := m.list()
	if len(held) == 0 {
		return
	}
	for end := min(a+n, m.Disk.Size()); a < end; a += saveStep { // the device refuses what is out of range
		m.saveSome(held, a, min(saveStep, end-a))
	}
}

// saveSome is save for few blocks.
func (m *Moments) saveSome(held []*Moment, a, n uint64) {
	var needed [saveStep]bool
	some := false
	for _, t := range held {
		some = t.needs(a, needed[:n]) || some
	}
	for lo := uint64(0); some && lo < n; {
		if !needed[lo] {
			lo++
			continue
		}
		hi := lo + 1
		for hi < n && needed[hi] {
			hi++
		}
		m.saveRun(held, a+lo, hi-lo)
		lo = hi
	}
}

// saveRun is save for few blocks, each of which a moment needs. What is read is what they held at the moment, as far as
// the moment has nothing of them yet when it gets that: nobody writes one of them before it has it.
func (m *Moments) saveRun(held []*Moment, a, n uint64) {
	lose := func(err error) {
		for _, t := range held {
			if t.needs(a, make([]bool, n)) {
				t.lose(err)
			}
		}
	}
	data, err := NextData(m.Disk, a)
	if err != nil {
		lose(err)
		return
	}
	hole := min(max(data, a)-a, n)
	for _, t := range held {
		t.settle(a, hole)
	}
	a, n = a+hole, n-hole
	bufs := make([][]byte, n)
	for i := range bufs {
		bufs[i] = make([]byte, BlockSize)
	}
	if err := m.Disk.ReadAt(a, bufs); err != nil {
		lose(err)
		return
	}
	for i, b := range bufs {
		if err := m.give(held, a+uint64(i), b); err != nil {
			lose(err)
			return
		}
	}
}

// give lets each moment have what block a held, if it needs that.
func (m *Moments) give(held []*Moment, a uint64, b []byte) error {
	if isZero(b) {
		for _, t := range held {
			t.settle(a, 1)
		}
		return nil
	}
	o, err := m.spill.keep(b)
	if err != nil {
		return err
	}
	defer m.spill.drop(o)
	for _, t := range held {
		t.keep(a, o)
	}
	return nil
}
