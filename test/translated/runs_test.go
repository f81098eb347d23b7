package translated

import (
	"bytes"
	"encoding/binary"
	"testing"

	"tansy/internal/gen/fs/format/deviceruns"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/runtime/checksum"
	"tansy/internal/runtime/dbytes"
)

// TestRuns: runs of a layout, as a superblock lists them, are read as they were written, and each block lies where it
// was put, whatever came later. What contradicts itself is refused.
func TestRuns(t *testing.T) {
	r := random(t)
	ok, g := volumegeometry.Layout(100000, 200, 1000, 100)
	if !ok {
		t.Fatal("no layout")
	}
	for range 200 {
		runs, at := deviceruns.CreateRun(0, 1, deviceruns.CreateNoRun()), map[uint64]uint64{0: 0}
		for range r.Intn(int(deviceruns.MAXRUNS())) {
			lo := uint64(r.Intn(90000))
			hi := lo + uint64(r.Intn(300))
			before := deviceruns.Blocks(runs)
			if ok, runs = deviceruns.Cover(runs, lo, hi); !ok {
				t.Fatal("too many blocks")
			}
			for a, next := lo, before; a < hi; a++ {
				if _, there := at[a]; !there {
					at[a], next = next, next+1
				}
			}
		}
		many := 0
		for x := runs; x.Is_Run(); x = x.Later() {
			many++
		}
		if many > int(deviceruns.MAXRUNS()) {
			continue
		}
		e := superblockformat.CreateExtent(uint64(len(at))+1, g.Data0()+1, 17, runs)
		s := superblockformat.CreateSuper(100000, 5, 108, g, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 5, e)
		b := superblockformat.Encode(s).Data
		why, got := superblockformat.Decode(&dbytes.Bytes{Data: bytes.Clone(b)})
		if why != 0 || !got.Equals(s) {
			t.Fatalf("%d: %v, expected %v", why, got, s)
		}
		for a := uint64(0); a < 100000; {
			there, place, n := superblockformat.Locate(got, a)
			for i := range n {
				want, known := at[a+i]
				if a+i == 99999 {
					want, known = uint64(len(at)), true
				}
				if known != there || there && want != place+i {
					t.Fatalf("block %d: %v, %d; want %v, %d", a+i, there, place+i, known, want)
				}
			}
			a += n
		}
		for off, wrong := range map[int]uint64{
			8: 4, 184: e.Room() + 1, 192: g.Data0(), 200: 16, 208: 241, 216: 1, 224: 1 << 48,
		} {
			p := bytes.Clone(b)
			if off == 8 {
				binary.LittleEndian.PutUint32(p[off:], uint32(wrong))
			} else {
				binary.LittleEndian.PutUint64(p[off:], wrong)
			}
			copy(p[4064:], checksum.Sum(&dbytes.Bytes{Data: p}, 4064).Data)
			if why, _ := superblockformat.Decode(&dbytes.Bytes{Data: p}); why != 5 && (off != 8 || why != 3) {
				t.Errorf("%d at %d: %d", wrong, off, why)
			}
		}
	}
}
