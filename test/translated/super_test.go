package translated

import (
	"bytes"
	"testing"

	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/runtime/checksum"
	"tansy/internal/runtime/dbytes"
)

// What Encode writes, Decode reads; any change of a byte is noticed, and a
// superblock with a right checksum but wrong contents is refused for its reason.
func TestSuperblock(t *testing.T) {
	r := random(t)
	ok, g := volumegeometry.Layout(100000, 200, 1000, 100)
	if !ok {
		t.Fatal("no layout")
	}
	x := r.Uint64
	s := superblockformat.CreateSuper(100000, 5, 108, g, x(), x(), 5, 6, x(), x(), x(), x(), x(), x(), 5,
		superblockformat.All(100000, g))
	b := superblockformat.Encode(s).Data
	decode := func(p []byte) (uint32, superblockformat.Super) {
		return superblockformat.Decode(&dbytes.Bytes{Data: p})
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
	}{
		{0, 1}, {8, 3}, {12, 4}, {24, 5}, {32, 5}, {40, 5}, {48, 5}, {56, 5}, {64, 5}, {72, 5}, {80, 5}, {88, 5}, {96, 0},
		{104, 0}, {116, 0}, {120, 0}, {136, 0}, {168, 5}, {200, 0}, {208, 3},
	} {
		p := bytes.Clone(b)
		if p[c.off+7]++; c.off < 24 { // for numbers: too large
			p[c.off]++
		}
		copy(p[4064:], checksum.Sum(&dbytes.Bytes{Data: p}, 4064).Data)
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
	for range 10000 {
		size, log, n, slots := r.Uint64()>>r.Intn(60), r.Uint64()>>r.Intn(60), r.Uint64()>>r.Intn(60), r.Uint64()>>r.Intn(60)
		if r.Intn(2) == 0 {
			n, log = volumegeometry.DefaultInodes(size), size/64+1
		}
		ok, g := volumegeometry.Layout(size, log, n, slots)
		if !ok {
			continue
		}
		ceil := func(a, b uint64) uint64 { return (a + b - 1) / b }
		if g.InodeBitmap() != 1+log || g.BlockBitmap()-g.InodeBitmap() != ceil(n, 32768) ||
			g.InodeTable()-g.BlockBitmap() != ceil(size, 32768) ||
			g.Slot0()-g.InodeTable() != ceil(n, 16) || g.Data0()-g.Slot0() != ceil(slots, 16) ||
			g.Data0() >= g.Data1() || g.Data1() != size-1 || !volumegeometry.CheckGeo(g) {
			t.Fatalf("%d %d %d: %v", size, log, n, g)
		}
	}
	for _, size := range []uint64{0, 1, 2, 100, 1 << 52, 1<<64 - 1} {
		if ok, _ := volumegeometry.Layout(size, 64, 64, 0); ok != (size == 100) {
			t.Errorf("%d blocks: %v", size, ok)
		}
	}
	if ok, g := volumegeometry.Layout(1<<32, 1<<14, volumegeometry.DefaultInodes(1<<32), 4096); !ok || g.Ninode() != 1<<30 {
		t.Errorf("16 TiB: %v %v", ok, g)
	}
}
