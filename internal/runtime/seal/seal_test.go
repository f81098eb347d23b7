package seal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

func group(r *rand.Rand, n int) *blockmap.Map {
	m := blockmap.New()
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
func data(m, h *blockmap.Map, k int) (x, y, z *ddisk.BList) {
	return &ddisk.BList{Blks: m.Blks()[:k]}, &ddisk.BList{Blks: m.Blks()[k:]}, &ddisk.BList{Blks: h.Blks()}
}

// codesFit says whether c, behind what it had before, has the codes of the blocks h.
func codesFit(s *Seal, c []codes.Node, h *blockmap.Map) bool {
	for i, a := range h.Addrs() {
		c0, c1 := s.Code(a-s.home, h.Blks()[i])
		if i >= len(c) || c[i] != (codes.Node{X: a - s.home, C0: c0, C1: c1}) {
			return false
		}
	}
	return len(c) == len(h.Addrs())
}

// What was sealed is parsed as it was, and accepted with its data, those in the log in any two parts; and both times
// there are the codes of the direct blocks. Anything else is not: another bit anywhere, other data, another order,
// another key.
func TestSeal(t *testing.T) {
	for seed := uint64(1); seed <= 60; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		s := New([32]byte{byte(seed)}, [16]byte{1}, r.Uint64N(1000))
		n := []int{0, 1, 2, 17, GroupMax}[r.IntN(5)]
		direct := min([]int{0, 1, 3, 40, GroupMax}[r.IntN(5)], GroupMax-n)
		m, h := group(r, n), group(r, direct)
		sq, pos := r.Uint64(), r.Uint64()
		dur := sq - min(sq, r.Uint64N(maxLag))
		b, signed := s.Sign(sq, dur, pos, m, h)
		if !codesFit(s, signed.Nodes(), h) {
			t.Fatalf("seed %d: other codes", seed)
		}
		d := Parse(b)
		if d == nil || d.Sq() != sq || d.Dur() != dur || d.Pos() != pos || d.N() != uint64(n) || d.M() != uint64(direct) {
			t.Fatalf("seed %d: %+v", seed, d)
		}
		for i := range m.Addrs() {
			if d.Addr(uint64(i)) != m.Addrs()[i] {
				t.Fatalf("seed %d: address %d", seed, i)
			}
		}
		for i := range h.Addrs() {
			if d.Dir(uint64(i)) != h.Addrs()[i] {
				t.Fatalf("seed %d: direct address %d", seed, i)
			}
		}
		x, y, z := data(m, h, r.IntN(n+1))
		c := codes.New()
		c.Add(1, 2, 3)
		if !s.Check(d, x, y, z, c) || c.Nodes()[0] != (codes.Node{X: 1, C0: 2, C1: 3}) || !codesFit(s, c.Nodes()[1:], h) {
			t.Fatalf("seed %d: a sealed record is refused, or other codes", seed)
		}
		none := codes.New()
		if New([32]byte{byte(seed), 1}, [16]byte{1}, s.home).Check(d, x, y, z, none) {
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
	s := New([32]byte{1}, [16]byte{1}, 0)
	m := group(r, 6)
	part := func(n int) (x, y *blockmap.Map) {
		x, y = blockmap.New(), blockmap.New()
		for i, a := range m.Addrs() {
			if i < n {
				x.Put(a, m.Blks()[i])
			} else {
				y.Put(a, m.Blks()[i])
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
			x, y, z := data(m1, h1, len(m1.Blks())/2)
			if s.Check(Parse(dbytes.Freeze(o)), x, y, z, codes.New()) != (k == n) {
				t.Errorf("%d in the log, %d said", n, k)
			}
			if n < 6 && New([32]byte{1}, [16]byte{1}, 1).Check(Parse(b), x, y, z, codes.New()) {
				t.Errorf("%d in the log: the place of the tree does not matter", n)
			}
		}
	}
}

// A header says what was put there, differs from another only within the first sector, and
// is refused when a bit of it or the key is another.
func TestHeader(t *testing.T) {
	s := New([32]byte{1}, [16]byte{1}, 0)
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
		if ok, _ := New([32]byte{2}, [16]byte{1}, 0).DecHdr(b); ok {
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
	s := New([32]byte{1}, [16]byte{1}, 10)
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
		if s.Vouch(d) != same || s.Check(d, z, z, z, codes.New()) || s.Under(d, b) {
			t.Error("a descriptor that nobody sealed, or other data")
		}
		if x, y, z := data(m, h, 1); s.Check(d, x, y, z, codes.New()) != same {
			t.Error("a record that nobody sealed, or none of one")
		}
	})
}
