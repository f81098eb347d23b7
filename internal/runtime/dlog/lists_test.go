package dlog

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

// TestBMapLists: a list stays what it is, whatever happens to the map it came from.
func TestBMapLists(t *testing.T) {
	for seed := uint64(1); seed <= 50; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		m := NewBMap()
		for range 1 + r.IntN(30) {
			m.Put(r.Uint64(), block(byte(r.Uint32())))
		}
		lists := []*ddisk.BList{m.List(), m.Sorted()}
		var addrs [2][]uint64
		var blks [2][]*dbytes.Blk
		for i, l := range lists {
			addrs[i], blks[i] = slices.Clone(l.Addrs), slices.Clone(l.Blks)
		}
		if !slices.IsSorted(lists[1].Addrs) {
			t.Fatalf("seed %d: Sorted is not", seed)
		}
		m.Put(m.AddrAt(0), block(1))
		m.Put(r.Uint64(), block(2))
		m.Clear()
		for range 40 {
			m.Put(r.Uint64(), block(3))
		}
		for i, l := range lists {
			if !slices.Equal(l.Addrs, addrs[i]) || !slices.Equal(l.Blks, blks[i]) {
				t.Fatalf("seed %d: list %d has changed", seed, i)
			}
		}
	}
}

// A map keeps its blocks until they are replaced, or it is cleared or dropped; a Hold keeps what a map gave.
func TestBMapRetains(t *testing.T) {
	poison(t)
	src := dbytes.Source(make([]byte, 100*dbytes.BlkSize))
	base := dbytes.WritesHeld()
	held := func(want int) {
		t.Helper()
		if n := dbytes.WritesHeld() - base; n != want {
			t.Fatalf("%d blocks are held, not %d", n, want)
		}
	}
	copied := func(i, x uint64) *dbytes.Blk {
		c := src.CopyOf(i * dbytes.BlkSize)
		c.PutU64(0, x)
		return dbytes.Freeze(c)
	}
	m, m2 := NewBMap(), NewBMap()
	for i := range uint64(40) {
		b := copied(i, i)
		m.Put(i, b)
		if i < 10 {
			m2.Put(i, b)
		}
	}
	m.Put(100, block(1)) // not of the pool
	src.LetGo()
	held(40)
	for i := range uint64(20) {
		m.Put(i, copied(i, 1000+i))
	}
	src.LetGo()
	held(50) // the first ten are in m2 yet
	h, c := NewHold(), NewCache(16, nil)
	h.Keep(c, m2.Get(3))
	mark := h.Mark()
	h.Keep(c, m2.Get(4))
	h.Keep(c, m.Get(100))
	three, four := m2.Get(3), m2.Get(4)
	m2.Clear()
	held(42)
	h.EndSince(mark)
	held(41)
	if three.U64(0) != 3 || four.U64(0) == 4 || m.Get(5).U64(0) != 1005 {
		t.Error("not what nobody may see is used again")
	}
	h.End()
	held(40)
	if m.Get(100) == nil || three.U64(0) == 3 {
		t.Error("the Hold has not ended")
	}
	m2.Put(1, copied(1, 1))
	src.LetGo()
	held(41)
	runtime.KeepAlive(m)
	m = nil
	for n := 0; dbytes.WritesHeld()-base > 1; n++ { // until the garbage collector has found it
		if n == 1000 {
			t.Fatal("a map that was dropped keeps its blocks")
		}
		runtime.GC()
	}
	if m2.Get(1).U64(0) != 1 {
		t.Error("a map that was not dropped does not keep its blocks")
	}
	m2.Clear()
	held(0)
}

// TestParse: Parse takes any block, and says the same of the same bytes. What it
// returns has as many addresses as it says.
func TestParse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	for range 2000 {
		b := dbytes.NewBytes(dbytes.BlkSize)
		for i := range b.Data {
			b.Data[i] = byte(r.Uint32())
		}
		magic, n, m, sq, lag := r.IntN(4) > 0, r.Uint64N(600), r.Uint64N(300), r.Uint64N(2000), r.Uint64N(1200)
		if r.IntN(2) == 0 {
			lag = 0
		}
		most := uint64(0) // the largest lag that there may be
		if magic {
			k := r.IntN(3)
			copy(b.Data, []string{descMagic, noLagMagic, tagsMagic}[k])
			b.PutU64(24, sq)
			b.PutU32(40, uint32(lag<<16+n))
			b.PutU32(44, uint32(m))
			if k == 0 {
				most = min(sq, 999)
			}
		}
		blk := dbytes.Freeze(b)
		d, same := Parse(blk), Parse(dbytes.Freeze(blk.Thaw()))
		if (d != nil) != (magic && n+m <= GroupMax && lag <= most) || (d == nil) != (same == nil) {
			t.Fatal(magic, n, m, sq, lag, d, same)
		}
		if d == nil {
			continue
		}
		if d.N() != n || d.M() != m || d.Sq() != sq || d.Dur() != sq-lag || d.Pos() != same.Pos() {
			t.Fatal(n, d.N(), m, d.M())
		}
		for i := range n {
			if d.Addr(i) != same.Addr(i) {
				t.Fatal(i)
			}
		}
		for i := range m {
			if d.Dir(i) != same.Dir(i) {
				t.Fatal(i)
			}
		}
	}
}

// FuzzParse: whatever a block holds, it can be asked as a descriptor and as a header; what was not sealed is neither.
func FuzzParse(f *testing.F) {
	s := NewSeal([32]byte{1}, [16]byte{1}, 10)
	r := rand.New(rand.NewPCG(2, 0))
	m, h := group(r, 3), group(r, 2)
	signed, _ := s.Sign(5, 4, 6, m, h)
	header := s.EncHdr(5, 6, 7)
	old := signed.Thaw()
	copy(old.Data, tagsMagic)
	for _, b := range [][]byte{signed.Data(), header.Data(), old.Data, nil} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		buf := dbytes.NewBytes(dbytes.BlkSize)
		copy(buf.Data, in)
		b := dbytes.Freeze(buf)
		if ok, _ := s.DecHdr(b); ok != (string(b.Data()[:hdrEnd]) == string(header.Data()[:hdrEnd])) {
			t.Error("a header that nobody sealed, or none of one")
		}
		d := Parse(b)
		if d == nil {
			return
		}
		for i := range d.N() {
			d.Addr(i)
		}
		z := &ddisk.BList{}
		for i := range d.M() {
			d.Dir(i)
			z.Blks = append(z.Blks, dbytes.ZeroBlk())
		}
		same := *b == *signed
		if s.Vouch(d) != same || s.Check(d, z, z, z, NewCodes()) || s.Under(d, b) {
			t.Error("a descriptor that nobody sealed, or other data")
		}
		if x, y, z := data(m, h, 1); s.Check(d, x, y, z, NewCodes()) != same {
			t.Error("a record that nobody sealed, or none of one")
		}
	})
}
