package dbytes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"testing"

	"tansy/test/kit/replay"
)

// The tests check every declaration of verified/trusted/bytes.s.dfy against its
// contract, on random buffers. A mutable buffer is compared as a whole, so that a
// store outside its range is seen too.

func seeded(t *testing.T) *rand.Rand {
	return rand.New(rand.NewSource(int64(replay.Seed(t))))
}

func random(r *rand.Rand, n int) []byte {
	s := make([]byte, n)
	r.Read(s)
	return s
}

// dec and enc are Dec and Enc of verified/lib/numbers.dfy, written in another way.
func dec(s []byte) (x uint64) {
	for i := len(s) - 1; i >= 0; i-- {
		x = x<<8 | uint64(s[i])
	}
	return x
}

func enc(x uint64, n int) []byte {
	s := make([]byte, n)
	for i := range s {
		s[i] = byte(x >> (8 * i))
	}
	return s
}

func splice(dst []byte, off int, src []byte) []byte {
	return append(append(append([]byte{}, dst[:off]...), src...), dst[off+len(src):]...)
}

func TestEncDec(t *testing.T) { // Dec64, Enc64, Dec32, Enc32, Dec64Zero, Dec32Zero
	r := seeded(t)
	if dec(make([]byte, 8)) != 0 || dec(make([]byte, 4)) != 0 {
		t.Fatal("zeros")
	}
	for range 1000 {
		x := r.Uint64() >> r.Intn(64)
		if dec(enc(x, 8)) != x || dec(enc(uint64(uint32(x)), 4)) != uint64(uint32(x)) {
			t.Fatal(x)
		}
	}
}

func TestBytesReads(t *testing.T) { // Len, Get, U64, U32, EqualAt
	r := seeded(t)
	for range 2000 {
		s := random(r, 8+r.Intn(100))
		b := &Bytes{Data: append([]byte{}, s...)}
		i, o4, o8 := r.Intn(len(s)), r.Intn(len(s)-3), r.Intn(len(s)-7)
		if b.Len() != uint64(len(s)) || b.Get(uint64(i)) != s[i] ||
			b.U64(uint64(o8)) != dec(s[o8:o8+8]) || uint64(b.U32(uint64(o4))) != dec(s[o4:o4+4]) {
			t.Fatalf("%x %d %d %d", s, i, o4, o8)
		}
		checkEqualAt(t, r, s, b.EqualAt)
		if !bytes.Equal(b.Data, s) {
			t.Fatal("a read changed the buffer")
		}
	}
}

// checkEqualAt tries an equal range, an empty one, and one that differs in a byte.
func checkEqualAt(t *testing.T, r *rand.Rand, s []byte, equalAt func(uint64, *Bytes) bool) {
	off := r.Intn(len(s))
	n := r.Intn(len(s) - off + 1)
	o := append([]byte{}, s[off:off+n]...)
	if !equalAt(uint64(off), &Bytes{Data: o}) || !equalAt(uint64(len(s)), &Bytes{}) {
		t.Fatalf("%x: not equal at %d to %x", s, off, o)
	}
	if n > 0 {
		o[r.Intn(n)] ^= 1 << r.Intn(8)
		if equalAt(uint64(off), &Bytes{Data: o}) {
			t.Fatalf("%x: equal at %d to %x", s, off, o)
		}
	}
}

func TestBytesWrites(t *testing.T) { // Set, PutU64, PutU32, CopyFrom, CopyBlk
	r := seeded(t)
	for range 2000 {
		s := random(r, 8+r.Intn(100))
		check := func(what string, want []byte, f func(b *Bytes)) {
			t.Helper()
			// spare capacity after the buffer must stay as it is
			room := append(append([]byte{}, s...), 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5, 0xA5)
			b := &Bytes{Data: room[:len(s)]}
			f(b)
			if !bytes.Equal(b.Data, want) || !bytes.Equal(room[len(s):], bytes.Repeat([]byte{0xA5}, 8)) {
				t.Fatalf("%s: %x, want %x", what, room, want)
			}
		}
		x := r.Uint64()
		i, o4, o8 := r.Intn(len(s)), r.Intn(len(s)-3), r.Intn(len(s)-7)
		check("Set", splice(s, i, []byte{byte(x)}), func(b *Bytes) { b.Set(uint64(i), byte(x)) })
		check("PutU64", splice(s, o8, enc(x, 8)), func(b *Bytes) { b.PutU64(uint64(o8), x) })
		check("PutU32", splice(s, o4, enc(uint64(uint32(x)), 4)), func(b *Bytes) { b.PutU32(uint64(o4), uint32(x)) })

		n := r.Intn(len(s) + 1)
		dst := r.Intn(len(s) - n + 1)
		src := random(r, BlkSize)
		so := r.Intn(len(src) - n + 1)
		keep := append([]byte{}, src...)
		want := splice(s, dst, src[so:so+n])
		check("CopyFrom", want, func(b *Bytes) { b.CopyFrom(uint64(dst), &Bytes{Data: src}, uint64(so), uint64(n)) })
		check("CopyBlk", want, func(b *Bytes) { b.CopyBlk(uint64(dst), BlkOf(src), uint64(so), uint64(n)) })
		if !bytes.Equal(src, keep) {
			t.Fatal("a copy changed its source")
		}
	}
}

// CopyOf in any order, with writes of all kinds to the buffer and to the copies in
// between: each copy is what the buffer holds then, and has its own memory.
func TestCopyOf(t *testing.T) {
	r := seeded(t)
	for range 300 {
		n := BlkSize * (1 + r.Intn(40))
		s := random(r, n+r.Intn(BlkSize))
		b := &Bytes{Data: bytes.Clone(s)}
		var copies []*Bytes
		var want [][]byte
		so := r.Intn(n - BlkSize + 1)
		for range 60 {
			c := b.CopyOf(uint64(so))
			copies, want = append(copies, c), append(want, bytes.Clone(s[so:so+BlkSize]))
			if so += BlkSize; so > len(s)-BlkSize || r.Intn(10) == 0 {
				so = r.Intn(n - BlkSize + 1)
			}
			switch at := r.Intn(len(s) - 8); r.Intn(12) {
			case 0:
				b.Set(uint64(at), 1)
				s[at] = 1
			case 1:
				b.PutU64(uint64(at), 2)
				s = splice(s, at, enc(2, 8))
			case 2:
				b.PutU32(uint64(at), 3)
				s = splice(s, at, enc(3, 4))
			case 3:
				b.CopyFrom(uint64(at), &Bytes{Data: []byte("copied")}, 0, 6)
				s = splice(s, at, []byte("copied"))
			case 4:
				b.CopyBlk(uint64(at), ZeroBlk(), 0, 7)
				s = splice(s, at, make([]byte, 7))
			case 5:
				k := r.Intn(len(copies))
				copies[k].PutU64(uint64(r.Intn(2)*(BlkSize-8)), 4)
				want[k] = bytes.Clone(copies[k].Data)
			case 6:
				k := r.Intn(len(copies))
				copies[k].CopyOf(0)
			}
		}
		for k, c := range copies {
			if !bytes.Equal(c.Data, want[k]) || !bytes.Equal(Freeze(c).Data(), want[k]) {
				t.Fatalf("copy %d of %d", k, len(copies))
			}
		}
		if !bytes.Equal(b.Data, s) {
			t.Fatal("the buffer changed")
		}
	}
}

func TestNewBytes(t *testing.T) {
	for _, n := range []uint64{0, 1, 64, 256, 512, 4095, 4096, 4097, 1 << 20} {
		b, c := NewBytes(n), NewBytes(n)
		if !bytes.Equal(b.Data, make([]byte, n)) {
			t.Fatalf("NewBytes(%d) = %d bytes, not zeros", n, len(b.Data))
		}
		if n > 0 { // fresh: the two share nothing
			b.Set(n-1, 7)
			if c.Get(n-1) != 0 {
				t.Fatalf("NewBytes(%d) twice shares memory", n)
			}
		}
	}
}

func TestBlk(t *testing.T) { // Get, U64, U32, EqualAt, Thaw, ZeroBlk, Freeze
	r := seeded(t)
	for range 300 {
		s := random(r, BlkSize)
		b := NewBytes(BlkSize)
		copy(b.Data, s)
		mem := &b.Data[0]
		k := Freeze(b)
		if b.Len() != 0 {
			t.Fatal("Freeze left the caller its view")
		}
		if &k.Data()[0] != mem || !bytes.Equal(k.Data(), s) {
			t.Fatal("Freeze copied or changed the bytes")
		}
		i, o4, o8 := r.Intn(BlkSize), r.Intn(BlkSize-3), r.Intn(BlkSize-7)
		if k.Get(uint64(i)) != s[i] || k.U64(uint64(o8)) != dec(s[o8:o8+8]) || uint64(k.U32(uint64(o4))) != dec(s[o4:o4+4]) {
			t.Fatal("reads")
		}
		checkEqualAt(t, r, s, k.EqualAt)
		m := k.Thaw()
		if !bytes.Equal(m.Data, s) {
			t.Fatal("Thaw")
		}
		m.Set(uint64(i), ^s[i])
		if !bytes.Equal(k.Data(), s) {
			t.Fatal("a thawed copy shares memory with its block")
		}
	}
	z := ZeroBlk().Thaw()
	z.Set(0, 1)
	if !bytes.Equal(ZeroBlk().Data(), make([]byte, BlkSize)) {
		t.Fatal("ZeroBlk")
	}
}

func TestNameHash(t *testing.T) { // NameHash is a function of the bytes, the published one
	ramp := make([]byte, 255)
	for i := range ramp {
		ramp[i] = byte(i)
	}
	for _, c := range []struct {
		s string
		h uint64
	}{
		{"", 0xEF46DB3751D8E999},
		{"a", 0xD24EC4F1A98C6E5B},
		{"abc", 0x44BC2CF5AD770999},
		{"Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1},
	} {
		if h := NameHash(&Bytes{Data: []byte(c.s)}); h != c.h {
			t.Errorf("NameHash(%q) = %#x, want %#x", c.s, h, c.h)
		}
	}
	r := seeded(t)
	for n := 0; n < 256; n++ {
		s := random(r, n)
		h := NameHash(&Bytes{Data: s})
		if h != NameHash(&Bytes{Data: append([]byte{}, s...)}) {
			t.Fatalf("%x: two hashes", s)
		}
	}
}

// The low bits choose a bucket: names as programs make them must spread evenly.
func TestNameHashSpreads(t *testing.T) {
	const n, buckets = 1 << 16, 1 << 10
	for _, pattern := range []string{"%d", "file%06d", "img_%d.jpeg", "%08x"} {
		var load [buckets]int
		for i := range n {
			load[NameHash(&Bytes{Data: fmt.Appendf(nil, pattern, i)})%buckets]++
		}
		for b, k := range load { // the mean is 64, the standard deviation 8
			if k < 64-56 || k > 64+56 {
				t.Errorf("pattern %q: bucket %d has %d names", pattern, b, k)
			}
		}
	}
}

func BenchmarkNameHash(b *testing.B) {
	s := &Bytes{Data: []byte("file00012345.txt")}
	for i := 0; b.Loop(); i++ {
		binary.LittleEndian.PutUint64(s.Data, uint64(i))
		NameHash(s)
	}
}
