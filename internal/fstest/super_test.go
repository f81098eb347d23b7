package fstest

import (
	"bytes"
	"testing"

	"tansy/internal/extern/dbytes"
	"tansy/internal/extern/dsum"
	"tansy/internal/gen/superblockformat"
	"tansy/internal/gen/volumegeometry"
)

// What Encode writes, Decode reads; any change of a byte is noticed, and a
// superblock with a right checksum but wrong contents is refused for its reason.
func TestSuperblock(t *testing.T) {
	r := random(t)
	ok, g := volumegeometry.Companion_Default___.Layout(100000, 200, 1000, 100)
	if !ok {
		t.Fatal("no layout")
	}
	x := r.Uint64
	s := superblockformat.Companion_Super_.Create_Super_(100000, 5, 108, g, x(), x(), 5, 6, x(), x(), x(), x(), x(), x(), 5)
	b := superblockformat.Companion_Default___.Encode(s).Data
	decode := func(p []byte) (uint32, superblockformat.Super) {
		return superblockformat.Companion_Default___.Decode(&dbytes.Bytes{Data: p})
	}
	why, got := decode(bytes.Clone(b))
	if why != 0 || got != s {
		t.Fatalf("%d: %v, expected %v", why, got, s)
	}
	for i := range b {
		p := bytes.Clone(b)
		p[i] ^= byte(1 + r.Intn(255))
		if why, _ := decode(p); why == 0 || i >= 8 && why != 2 {
			t.Fatalf("change of byte %d: %d", i, why)
		}
	}
	for _, c := range []struct {
		off  int
		want uint32
	}{{0, 1}, {8, 3}, {12, 4}, {24, 5}, {32, 5}, {40, 5}, {48, 5}, {56, 5}, {64, 5}, {72, 5}, {80, 5}, {88, 5}, {96, 0}, {104, 0}, {116, 0}, {120, 0}, {136, 0}, {168, 5}, {200, 0}} {
		p := bytes.Clone(b)
		if p[c.off+7]++; c.off < 24 { // for numbers: too large
			p[c.off]++
		}
		copy(p[4064:], dsum.Sum(&dbytes.Bytes{Data: p}, 4064).Data)
		if why, _ := decode(p); why != c.want {
			t.Errorf("byte %d changed: %d, expected %d", c.off, why, c.want)
		}
	}
	if why, _ := decode(make([]byte, 4096)); why != 1 {
		t.Errorf("zeros: %d", why)
	}
}

// A layout has the size asked for, its regions do not overlap and hold what
// they must; sizes out of range are refused.
func TestLayout(t *testing.T) {
	r := random(t)
	m := volumegeometry.Companion_Default___
	for range 10000 {
		size, log, n, slots := r.Uint64()>>r.Intn(60), r.Uint64()>>r.Intn(60), r.Uint64()>>r.Intn(60), r.Uint64()>>r.Intn(60)
		if r.Intn(2) == 0 {
			n, log = m.DefaultInodes(size), size/64+1
		}
		ok, g := m.Layout(size, log, n, slots)
		if !ok {
			continue
		}
		ceil := func(a, b uint64) uint64 { return (a + b - 1) / b }
		if g.Dtor_ibm() != 1+log || g.Dtor_bbm()-g.Dtor_ibm() != ceil(n, 32768) || g.Dtor_itab()-g.Dtor_bbm() != ceil(size, 32768) ||
			g.Dtor_slot0()-g.Dtor_itab() != ceil(n, 16) || g.Dtor_data0()-g.Dtor_slot0() != ceil(slots, 16) || g.Dtor_data0() >= g.Dtor_data1() || g.Dtor_data1() != size-1 || !m.CheckGeo(g) {
			t.Fatalf("%d %d %d: %v", size, log, n, g)
		}
	}
	for _, size := range []uint64{0, 1, 2, 100, 1 << 52, 1<<64 - 1} {
		if ok, _ := m.Layout(size, 64, 64, 0); ok != (size == 100) {
			t.Errorf("%d blocks: %v", size, ok)
		}
	}
	if ok, g := m.Layout(1<<32, 1<<14, m.DefaultInodes(1<<32), 4096); !ok || g.Dtor_ninode() != 1<<30 {
		t.Errorf("16 TiB: %v %v", ok, g)
	}
}
