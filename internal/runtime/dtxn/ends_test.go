package dtxn

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// ended is the layout of the tests with such ends.
func ended(blocks, inodes uint64) Layout {
	l := layout
	l.Maps[Blocks].End, l.Maps[Inodes].End = blocks, inodes
	return l
}

// often is f, which is an error from the attempt on that is given.
func often(attempts int, f func(*Txn) error) func(*Txn) error {
	return func(x *Txn) error {
		if attempts--; attempts == 0 {
			return errors.New("it begins again and again")
		}
		return f(x)
	}
}

// TestEnds: what is proposed lies below the end of when the transaction began; one that comes upon more begins again,
// and gets all there is then. An end that is too small or too large is refused.
func TestEnds(t *testing.T) {
	s := NewMem(size, ended(0, 10))
	defer s.Close()
	if s.End(Blocks) != layout.Maps[Blocks].Limit || s.End(Inodes) != 10 {
		t.Error(s.End(Blocks), s.End(Inodes))
	}
	var got []uint64
	attempts := 0
	must(t, s.Run(false, false, often(3, func(x *Txn) error {
		attempts++
		got = nil
		for ok, i := x.AllocHint(Inodes, 0); ok; ok, i = x.AllocHint(Inodes, 0) {
			if got = append(got, i); attempts == 1 && i >= 10 {
				t.Errorf("%d was proposed", i)
			}
		}
		if attempts == 1 {
			if len(got) != 7 {
				t.Errorf("%d hints", len(got))
			}
			must(t, s.Extend(Inodes, 20))
			x.AllocHint(Inodes, 0)
			t.Error("it went on")
		}
		return nil
	})))
	if attempts != 2 || len(got) != 17 || slices.Max(got) != 19 {
		t.Errorf("%d attempts, %d", attempts, got)
	}
	for _, end := range []uint64{19, 1001} {
		if err := s.Extend(Inodes, end); err == nil || s.End(Inodes) != 20 {
			t.Errorf("end %d: %v, now %d", end, err, s.End(Inodes))
		}
	}
	must(t, s.Extend(Inodes, 20))
	must(t, s.Extend(Inodes, 1000))
	if n, err := s.Count(Inodes); n != 997 || err != nil {
		t.Error(n, err)
	}
	all := NewMem(size, ended(layout.Maps[Blocks].Limit+1, 0))
	defer all.Close()
	if all.End(Blocks) != layout.Maps[Blocks].Limit {
		t.Error(all.End(Blocks))
	}
}

// TestEndsBeyond: bits beyond the end may be set; they count from when the end has grown.
func TestEndsBeyond(t *testing.T) {
	s := NewMem(size, ended(150, 0))
	defer s.Close()
	for i, end := range []uint64{150, 1000, 40000, 100000} {
		must(t, s.Extend(Blocks, end))
		if n, err := s.Count(Blocks); n != end-100-uint64(i) || err != nil {
			t.Errorf("end %d: %d, %v", end, n, err)
		}
		must(t, s.Run(false, false, func(x *Txn) error {
			b := []uint64{900, 39000, 99000, 0}[i]
			x.WriteBit(blockMap+b/windowBits, b%windowBits, true)
			return nil
		}))
	}
}

// TestEndsTogether: while transactions take and give back, the ends grow. None gets what lies beyond, all are told of
// free bits as long as there are some, and the counts are exact at last.
func TestEndsTogether(t *testing.T) {
	s := NewMem(size, ended(150, 10))
	defer s.Close()
	src := seeded(t)
	var wg sync.WaitGroup
	abort := errors.New("abort")
	sets := make([][2]int, 4)
	for w := range sets {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := src(w)
			for range 300 {
				which := r.Uint64N(2)
				n, fail := 0, r.IntN(2) == 0
				err := s.Run(false, false, often(1000, func(x *Txn) error {
					n = 0
					end := uint64(0)
					for range r.IntN(5) {
						how := which
						if how == Blocks && r.IntN(3) == 0 {
							how = Exchange
						}
						ok, i := x.AllocHint(how, r.Uint64N(layout.Maps[which].Limit))
						if end == 0 {
							end = s.End(which) // or less
						}
						if ok && (i < layout.Maps[which].First || i >= end) {
							t.Errorf("%d: %d was proposed, the end is %d", which, i, end)
						}
						if ok && r.IntN(3) > 0 {
							x.WriteBit(layout.Maps[which].Start+i/windowBits, i%windowBits, true)
							n++
						}
					}
					if fail {
						return abort
					}
					return nil
				}))
				if err == nil {
					sets[w][which] += n
				} else if err != abort {
					t.Error(err)
				}
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		r := src(len(sets))
		for range 200 {
			which := r.Uint64N(2)
			end, limit := s.End(which), layout.Maps[which].Limit
			must(t, s.Extend(which, end+r.Uint64N(1+(limit-end)/20)))
			_, err := s.Count(which)
			must(t, err)
		}
	}()
	wg.Wait()
	for which, m := range layout.Maps {
		free := s.End(uint64(which)) - m.First
		for _, n := range sets {
			free -= uint64(n[which])
		}
		if n, err := s.Count(uint64(which)); n != free || err != nil {
			t.Errorf("%d: %d free, not %d: %v", which, n, free, err)
		}
	}
	must(t, s.Run(false, false, often(3, func(x *Txn) error { // all that is free can be had
		free, err := s.Count(Inodes)
		must(t, err)
		for ; ; free-- {
			if ok, _ := x.AllocHint(Inodes, 0); !ok {
				break
			}
		}
		if free != 0 {
			t.Errorf("%d are left", free)
		}
		return nil
	})))
}

// endsModel is an allocator of a bitmap that grows, and what it should do.
type endsModel struct {
	t     *testing.T
	r     *rand.Rand
	a     *alloc
	clear map[uint64]bool   // as committed
	out   map[uint64]uint64 // handed out, and to whom
	trans [][]uint64        // that run: what each was handed out
}

const endsWindows = 2*maxWindows + 1 // so many that not all are kept

func newEndsModel(t *testing.T, r *rand.Rand) *endsModel {
	m := &endsModel{t: t, r: r, clear: map[uint64]bool{}, out: map[uint64]uint64{}, trans: make([][]uint64, 4)}
	for range 3 * endsWindows {
		m.clear[r.Uint64N(endsWindows*windowBits)] = true
	}
	at := r.Uint64N(endsWindows * windowBits / 2)
	for x := at; x < at+2*reach; x++ { // room for a stream
		m.clear[x] = true
	}
	limit := endsWindows*windowBits - r.Uint64N(windowBits)
	first := r.Uint64N(1000)
	m.a = newAlloc(Bitmap{Start: 7, First: first, Limit: limit, End: first + r.Uint64N(3*windowBits)}, m.read)
	m.a.unspare = func() {}
	return m
}

// read is a block of the bitmap, as committed.
func (m *endsModel) read(blkno uint64) ([]byte, error) {
	w := blkno - 7
	if w*windowBits >= m.a.end.Load() {
		m.t.Errorf("window %d was read, the end is %d", w, m.a.end.Load())
	}
	b := make([]byte, windowBits/8)
	for i := range b {
		b[i] = 0xFF
	}
	for x := range m.clear {
		if x/windowBits == w {
			b[x%windowBits/8] &^= 1 << (x % 8)
		}
	}
	return b, nil
}

// free is how many bits are clear and may be handed out, in all and without those that are handed out.
func (m *endsModel) free() (all, left int) {
	for x := range m.clear {
		if m.a.first <= x && x < m.a.end.Load() {
			if all++; m.out[x] == 0 {
				left++
			}
		}
	}
	return all, left
}

// take takes a bit for transaction i, in one of the ways that there are.
func (m *endsModel) take(i int) {
	near, owner := m.r.Uint64N(endsWindows*windowBits), 1+m.r.Uint64N(3)
	if m.r.IntN(2) == 0 {
		near = 0
	}
	var x uint64
	var ok bool
	var err error
	switch m.r.IntN(3) {
	case 0:
		x, ok, err = m.a.take(near)
	case 1:
		x, ok, err = m.a.takeFor(place{owner, near, m.r.Uint64N(2000), m.r.IntN(2) == 0})
	case 2:
		x, ok, err = m.a.exchange(place{owner, near, m.r.Uint64N(2000), true}, 0)
	}
	_, left := m.free()
	switch {
	case err != nil || ok != (left > 0):
		m.t.Fatalf("%v, %v, where %d are left", ok, err, left)
	case !ok:
	case !m.clear[x] || m.out[x] != 0 || x < m.a.first || x >= m.a.end.Load():
		m.t.Fatalf("bit %d was handed out: clear %v, out %v, end %d", x, m.clear[x], m.out[x], m.a.end.Load())
	default:
		m.out[x] = uint64(i + 1)
		m.trans[i] = append(m.trans[i], x)
	}
}

// end ends transaction i: it aborts, or sets most of what it was handed, and clears a bit that nobody has.
func (m *endsModel) end(i int) {
	var wrote []bitWrite
	if m.r.IntN(3) > 0 {
		for _, x := range m.trans[i] {
			if m.r.IntN(4) > 0 {
				wrote = append(wrote, bitWrite{x, false, true})
				delete(m.clear, x)
			}
		}
		end := m.a.end.Load()
		if x := m.a.first + m.r.Uint64N(end-m.a.first+1); x < end && !m.clear[x] && m.out[x] == 0 {
			wrote = append(wrote, bitWrite{x, true, false})
			m.clear[x] = true
		}
	}
	for _, x := range m.trans[i] {
		delete(m.out, x)
	}
	m.a.done(m.trans[i], wrote)
	m.trans[i] = nil
}

// grow moves the end, most often within a window.
func (m *endsModel) grow() {
	end := m.a.end.Load()
	by := m.r.Uint64N(windowBits / 2)
	if m.r.IntN(4) == 0 {
		by = m.r.Uint64N(20 * windowBits)
	}
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	m.a.grow(min(end+by, m.a.limit))
}

// TestEndsModel: whatever is taken, given back, and held while the end grows, each free bit below it is handed out
// once, none is refused while one is left, the count is exact, and nothing beyond is read or remembered.
func TestEndsModel(t *testing.T) {
	steps := 3000
	if testing.Short() {
		steps = 600
	}
	for n := range 6 {
		m := newEndsModel(t, seeded(t)(n))
		for range steps {
			switch i := m.r.IntN(len(m.trans)); m.r.IntN(12) {
			case 0:
				m.grow()
			case 1, 2:
				m.end(i)
			case 3:
				if _, err := m.a.hold(m.r.Uint64N(m.a.end.Load()+windowBits)/Piece*Piece, 1, func(Run) {}); err != nil {
					t.Fatal(err)
				}
			case 4:
				all, _ := m.free()
				if got, err := m.a.count(); err != nil || got != uint64(all) {
					t.Fatalf("%d are free, not %d: %v", got, all, err)
				}
			default:
				m.take(i)
			}
			if w := windows(m.a.end.Load()); uint64(len(m.a.free)) != w {
				t.Fatalf("%d windows are remembered, not %d", len(m.a.free), w)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// TestEndsNotInMemory: what comes to a part of the bitmap that was counted, and is not in memory any more, counts.
func TestEndsNotInMemory(t *testing.T) {
	const last = maxWindows + 5
	a := newAlloc(Bitmap{End: last*windowBits + 100, Limit: 2 * last * windowBits}, func(uint64) ([]byte, error) {
		return make([]byte, windowBits/8), nil
	})
	counts := func() {
		t.Helper()
		if n, err := a.count(); n != a.end.Load() || err != nil {
			t.Errorf("%d, the end is %d: %v", n, a.end.Load(), err)
		}
	}
	counts()
	for w := range uint64(last) {
		a.giveBack(mustTake(t, a, w*windowBits))
	}
	if a.win[last] != nil {
		t.Fatal("it is in memory")
	}
	a.grow(last*windowBits + 200)
	counts()
}

// TestEndsOfFile: a file that grows, or is written over, up to the end does not run on into what comes behind that,
// until the end has grown: it goes on there then.
func TestEndsOfFile(t *testing.T) {
	for _, c := range []struct {
		what string
		take func(a *alloc, n uint64) (uint64, bool, error)
	}{
		{"it grows", func(a *alloc, n uint64) (uint64, bool, error) {
			return a.takeFor(place{owner: 1, near: 10, at: n, known: true})
		}},
		{"it is written over", func(a *alloc, n uint64) (uint64, bool, error) {
			return a.exchange(place{owner: 1, near: 10, at: n, known: true}, 0)
		}},
	} {
		a := newAlloc(Bitmap{First: 10, End: 2000, Limit: windowBits}, func(uint64) ([]byte, error) {
			return make([]byte, windowBits/8), nil
		})
		n := uint64(0)
		for _, end := range []uint64{2000, 3000} {
			a.grow(end)
			for {
				x, ok, err := c.take(a, n)
				if err != nil || ok && x >= end {
					t.Fatalf("%s: block %d is bit %d, the end is %d: %v", c.what, n, x, end, err)
				}
				if !ok {
					break
				}
				n++
			}
			if n != end-10 {
				t.Errorf("%s: %d bits, the end is %d", c.what, n, end)
			}
		}
	}
}

// TestEndsUnderway: a search that is under way when the end grows finds what there is then; so does a count.
func TestEndsUnderway(t *testing.T) {
	for _, c := range []struct {
		what string
		find func(a *alloc) (uint64, error)
	}{
		{"take", func(a *alloc) (uint64, error) { x, _, err := a.take(1); return x, err }},
		{"take for a file", func(a *alloc) (uint64, error) {
			x, _, err := a.takeFor(place{owner: 1, near: 1})
			return x, err
		}},
		{"count", func(a *alloc) (uint64, error) { n, err := a.count(); return n, err }},
	} {
		const end = 2*windowBits + 8
		var a *alloc
		a = newAlloc(Bitmap{First: 1, End: end, Limit: 5 * windowBits}, func(w uint64) ([]byte, error) {
			b := make([]byte, windowBits/8)
			if w < 4 {
				for i := range b {
					b[i] = 0xFF
				}
			}
			if w == 1 { // mu is held here; while the window waited for it, it was not
				a.grow(4*windowBits + 9)
			}
			return b, nil
		})
		want := uint64(4 * windowBits)
		if c.what == "count" {
			want = 9
		}
		if x, err := c.find(a); x != want || err != nil {
			t.Errorf("%s: %d, not %d: %v", c.what, x, want, err)
		}
	}
}

// TestEndsOnHost: where the host gives no room, what has some is not looked for beyond the end, and found at once when
// that has grown.
func TestEndsOnHost(t *testing.T) {
	h := &meanHost{room: map[uint64]bool{memLog + blockMap: true, memLog + 250: true}}
	l := ended(200, 0)
	l.Host = h
	s := NewMem(size, l)
	defer s.Close()
	if x, ok := take(t, s, Blocks, 0); ok {
		t.Errorf("block %d has no room, or lies beyond the end", x)
	}
	must(t, s.Extend(Blocks, 251))
	if x, ok := take(t, s, Blocks, 0); !ok || x != 250 {
		t.Error(x, ok)
	}
	if _, ok := take(t, s, Blocks, 0); ok || s.Refused() != 2 {
		t.Errorf("%v; %d refused", ok, s.Refused())
	}
}
