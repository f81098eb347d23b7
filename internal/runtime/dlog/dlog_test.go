package dlog

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

func block(v byte) *dbytes.Blk {
	return dbytes.BlkOf(bytes.Repeat([]byte{v}, dbytes.BlkSize))
}

// BMap against a Go map and a slice: Put, Get, Len, AddrAt, BlkAt, Clear, List, Sorted.
func TestBMap(t *testing.T) {
	for seed := uint64(1); seed <= 200; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		m := NewBMap()
		want := map[uint64]*dbytes.Blk{}
		var order []uint64
		for n := r.IntN(60); n > 0; n-- {
			a := r.Uint64N(40)
			if r.IntN(50) == 0 {
				m.Clear()
				want, order = map[uint64]*dbytes.Blk{}, nil
			}
			b := block(byte(n))
			if _, ok := want[a]; !ok {
				order = append(order, a)
			}
			want[a] = b
			m.Put(a, b)
		}
		if m.Len() != uint64(len(order)) {
			t.Fatalf("seed %d: %d entries, want %d", seed, m.Len(), len(order))
		}
		for a := uint64(0); a < 40; a++ {
			if m.Get(a) != want[a] {
				t.Fatalf("seed %d: Get(%d)", seed, a)
			}
		}
		sorted := slices.Sorted(slices.Values(order))
		for name, c := range map[string]struct {
			l    *ddisk.BList
			want []uint64
		}{"List": {m.List(), order}, "Sorted": {m.Sorted(), sorted}} {
			if !slices.Equal(c.l.Addrs, c.want) || len(c.l.Blks) != len(c.want) {
				t.Fatalf("seed %d: %s: %v, want %v", seed, name, c.l.Addrs, c.want)
			}
			for i, a := range c.want {
				if c.l.BlkAt(uint64(i)) != want[a] {
					t.Fatalf("seed %d: %s: block %d", seed, name, a)
				}
			}
		}
		l := m.List()
		for i, a := range order {
			if m.AddrAt(uint64(i)) != a || m.BlkAt(uint64(i)) != want[a] {
				t.Fatalf("seed %d: entry %d", seed, i)
			}
		}
		if m.Put(order0(order), block(255)); len(order) > 0 && l.BlkAt(0) != want[order[0]] {
			t.Fatalf("seed %d: a list changed", seed)
		}
	}
}

func order0(o []uint64) uint64 {
	if len(o) == 0 {
		return 0
	}
	return o[0]
}

// The mutex excludes; a wake-up reaches one waiter, or all of its condition variable.
func TestMutex(t *testing.T) {
	m := NewMutex()
	var wg sync.WaitGroup
	n := 0
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := 0; k < 1000; k++ {
				m.Lock()
				n++
				m.Unlock()
			}
		}()
	}
	wg.Wait()
	if n != 8000 {
		t.Fatal(n)
	}
	var turn, seen [5]int
	for c := uint32(0); c < 5; c++ {
		for i := 0; i < 3; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				m.Lock()
				for turn[c] == 0 {
					m.Wait(c)
				}
				seen[c]++
				m.WakeOne(c) // the next one, if there is any
				m.Unlock()
			}()
		}
	}
	for c := uint32(0); c < 5; c++ {
		m.Lock()
		turn[c] = 1
		if c%2 == 0 {
			m.WakeOne(c)
		} else {
			m.WakeAll(c)
		}
		m.Unlock()
	}
	wg.Wait()
	if seen != [5]int{3, 3, 3, 3, 3} {
		t.Fatal(seen)
	}
}

func TestNotes(t *testing.T) {
	n := NewNotes()
	for i := range uint32(15) {
		n.Set(i, uint64(i)+5)
	}
	for i := range uint32(15) {
		if got := n.Get(i); got != uint64(i)+5 && i != age && i != since {
			t.Error(i, got)
		}
	}
}

// The last number is a large one before it is set, and grows from 0 then.
func TestAge(t *testing.T) {
	for _, number := range []uint32{age, since} {
		n := NewNotes()
		before := n.Get(number)
		n.Set(number, 1<<63)
		last := n.Get(number)
		if before < 1<<32 || last > 1<<32 {
			t.Error(before, last)
		}
		for range 1000 {
			x := n.Get(number)
			if x < last {
				t.Error(x, "after", last)
			}
			last = x
		}
		n.set[number-age] = n.set[number-age].Add(-time.Hour)
		if x := n.Get(number); x < 3600_000 || x > 2*3600_000 {
			t.Error("after an hour:", x)
		}
	}
}

// A wish is told once, and however many come, few are kept.
func TestWishes(t *testing.T) {
	n := NewNotes()
	var wg sync.WaitGroup
	for c := range uint64(4) {
		wg.Go(func() {
			for i := range uint64(1000) {
				n.Wish(4*i + c)
				if !n.Bulk(4*i+c) || n.Bulk(4*i+c) {
					t.Error(4*i + c)
				}
			}
		})
	}
	wg.Wait()
	for i := range uint64(3 * maxWishes) {
		n.Wish(i)
		if len(n.bulk) > maxWishes {
			t.Fatal(len(n.bulk))
		}
	}
	if !n.Bulk(3*maxWishes-1) || n.Bulk(0) {
		t.Error("the newest wish, or the oldest")
	}
}

func group(r *rand.Rand, n int) *BMap {
	m := NewBMap()
	for i := 0; i < n; i++ {
		b := new(dbytes.Blk)
		d := dbytes.Bytes{Data: make([]byte, dbytes.BlkSize)}
		for k := 0; k < 64; k++ {
			d.Data[r.IntN(len(d.Data))] = byte(r.Uint32())
		}
		b = dbytes.Freeze(&d)
		m.Put(r.Uint64(), b)
	}
	return m
}

func flip(b *dbytes.Blk, bit int) *dbytes.Blk {
	d := b.Thaw()
	d.Data[bit/8] ^= 1 << (bit % 8)
	return dbytes.Freeze(d)
}

// data is the blocks of a record: those in the log in two parts, split at k, and the direct ones.
func data(m, h *BMap, k int) (x, y, z *ddisk.BList) {
	return &ddisk.BList{Blks: m.blks[:k]}, &ddisk.BList{Blks: m.blks[k:]}, &ddisk.BList{Blks: h.blks}
}

// codesFit says whether c, behind what it had before, has the codes of the blocks h.
func codesFit(s *Seal, c []nodeCode, h *BMap) bool {
	for i, a := range h.addrs {
		c0, c1 := s.Code(a-s.home, h.blks[i])
		if i >= len(c) || c[i] != (nodeCode{a - s.home, c0, c1}) {
			return false
		}
	}
	return len(c) == len(h.addrs)
}

// What was sealed is parsed as it was, and accepted with its data, those in the log in any two parts; and both times
// there are the codes of the direct blocks. Anything else is not: another bit anywhere, other data, another order,
// another key.
func TestSeal(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		s := NewSeal([32]byte{byte(seed)}, [16]byte{1}, r.Uint64N(1000))
		n := []int{0, 1, 2, 17, GroupMax}[r.IntN(5)]
		direct := min([]int{0, 1, 3, 40, GroupMax}[r.IntN(5)], GroupMax-n)
		m, h := group(r, n), group(r, direct)
		sq, pos := r.Uint64(), r.Uint64()
		dur := sq - min(sq, r.Uint64N(maxLag))
		b, codes := s.Sign(sq, dur, pos, m, h)
		if !codesFit(s, codes.list, h) {
			t.Fatalf("seed %d: other codes", seed)
		}
		d := Parse(b)
		if d == nil || d.Sq() != sq || d.Dur() != dur || d.Pos() != pos || d.N() != uint64(n) || d.M() != uint64(direct) {
			t.Fatalf("seed %d: %+v", seed, d)
		}
		for i := range m.addrs {
			if d.Addr(uint64(i)) != m.addrs[i] {
				t.Fatalf("seed %d: address %d", seed, i)
			}
		}
		for i := range h.addrs {
			if d.Dir(uint64(i)) != h.addrs[i] {
				t.Fatalf("seed %d: direct address %d", seed, i)
			}
		}
		x, y, z := data(m, h, r.IntN(n+1))
		c := NewCodes()
		c.Add(1, 2, 3)
		if !s.Check(d, x, y, z, c) || c.list[0] != (nodeCode{1, 2, 3}) || !codesFit(s, c.list[1:], h) {
			t.Fatalf("seed %d: a sealed record is refused, or other codes", seed)
		}
		none := NewCodes()
		if NewSeal([32]byte{byte(seed), 1}, [16]byte{1}, s.home).Check(d, x, y, z, none) {
			t.Fatalf("seed %d: another key's record is accepted", seed)
		}
		for i := 0; i < 40; i++ {
			bit := r.IntN(8 * dbytes.BlkSize)
			if i < 20 {
				bit = r.IntN(8 * (descAddrs + 16))
			}
			if e := Parse(flip(b, bit)); e != nil && s.Check(e, x, y, z, none) {
				t.Fatalf("seed %d: bit %d of the descriptor does not matter", seed, bit)
			}
			for _, l := range []*ddisk.BList{x, y, z} {
				if len(l.Blks) == 0 {
					continue
				}
				v := r.IntN(len(l.Blks))
				was := l.Blks[v]
				l.Blks[v] = flip(was, bit)
				if s.Check(d, x, y, z, none) {
					t.Fatalf("seed %d: bit %d of block %d does not matter", seed, bit, v)
				}
				l.Blks[v] = was
			}
		}
		for _, l := range []*ddisk.BList{x, y, z} {
			if len(l.Blks) < 2 {
				continue
			}
			v := r.IntN(len(l.Blks) - 1)
			if l.Blks[v], l.Blks[v+1] = l.Blks[v+1], l.Blks[v]; s.Check(d, x, y, z, none) {
				t.Fatalf("seed %d: the order of the data does not matter", seed)
			}
			l.Blks[v], l.Blks[v+1] = l.Blks[v+1], l.Blks[v]
			less := *l
			if l.Blks = l.Blks[1:]; s.Check(d, x, y, z, none) {
				t.Fatalf("seed %d: a block less is accepted", seed)
			}
			*l = less
		}
		if none.Len() != 0 {
			t.Fatalf("seed %d: codes of what is refused", seed)
		}
	}
	if Parse(dbytes.ZeroBlk()) != nil {
		t.Error("zeros are a descriptor")
	}
}

// The same blocks at the same addresses, but not the same ones direct, are another record; and so are those of
// another place of the tree of codes.
func TestSealDirect(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	s := NewSeal([32]byte{1}, [16]byte{1}, 0)
	m := group(r, 6)
	part := func(n int) (x, y *BMap) {
		x, y = NewBMap(), NewBMap()
		for i, a := range m.addrs {
			if i < n {
				x.Put(a, m.blks[i])
			} else {
				y.Put(a, m.blks[i])
			}
		}
		return x, y
	}
	for n := range 7 {
		bm, hm := part(n)
		b, _ := s.Sign(5, 5, 8, bm, hm)
		for k := range 7 {
			o := b.Thaw()
			o.PutU32(40, uint32(k))
			o.PutU32(44, uint32(6-k))
			m1, h1 := part(k)
			x, y, z := data(m1, h1, len(m1.blks)/2)
			if s.Check(Parse(dbytes.Freeze(o)), x, y, z, NewCodes()) != (k == n) {
				t.Errorf("%d in the log, %d said", n, k)
			}
			if n < 6 && NewSeal([32]byte{1}, [16]byte{1}, 1).Check(Parse(b), x, y, z, NewCodes()) {
				t.Errorf("%d in the log: the place of the tree does not matter", n)
			}
		}
	}
}

// A header says what was put there, differs from another only within the first sector, and
// is refused when a bit of it or the key is another.
func TestHeader(t *testing.T) {
	s := NewSeal([32]byte{1}, [16]byte{1}, 0)
	r := rand.New(rand.NewPCG(1, 0))
	for i := 0; i < 200; i++ {
		q, r0, r1 := r.Uint64N(1<<62), r.Uint64(), r.Uint64()
		b := s.EncHdr(q, r0, r1)
		if got0, got1 := s.Root(b); got0 != r0 || got1 != r1 {
			t.Fatal("another root")
		}
		if ok, got := s.DecHdr(b); !ok || got != q {
			t.Fatal(ok, got, q)
		}
		if !bytes.Equal(b.Data()[512:], make([]byte, 3584)) {
			t.Fatal("not within the first sector")
		}
		if ok, _ := s.DecHdr(flip(b, r.IntN(8*hdrEnd))); ok {
			t.Fatal("a flipped bit does not matter")
		}
		if ok, _ := NewSeal([32]byte{2}, [16]byte{1}, 0).DecHdr(b); ok {
			t.Fatal("another key's header is accepted")
		}
	}
	if ok, _ := s.DecHdr(s.EncHdr(1<<62, 0, 0)); ok {
		t.Error("a header beyond the range is accepted")
	}
	if ok, _ := s.DecHdr(dbytes.ZeroBlk()); ok {
		t.Error("zeros are a header")
	}
}
