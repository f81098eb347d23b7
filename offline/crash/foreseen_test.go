package crash

import (
	"math/rand/v2"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/replay"
)

// TestForeseen: what is foreseen of an image is what comes of it when it is recovered, and the checker finds nothing.
func TestForeseen(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	starts, err := startAll()
	if err != nil {
		t.Fatal(err)
	}
	s, images, foreseen := space(2), 0, 0
	for tried := 0; tried < 6; {
		blocks, steps := placed(s.at(r.Uint64N(s.size())), false, r)
		if refused(steps) >= 0 {
			continue
		}
		tried++
		sim, h, err := record(starts[blocks], steps, r.IntN(most), nil)
		if err != nil {
			t.Fatal(err)
		}
		same, err := newEquals(starts[blocks], sim.Varying())
		if err != nil {
			t.Fatal(err)
		}
		for n := h.begun[0]; n <= sim.Ops(); n++ {
			for image := range sim.At(n).Crashes(6, r.Uint64(), true) {
				images++
				want, ok := same.foresee(image)
				j := judge{h: h, moment: n, image: image, same: same, count: new(Count)}
				d := image.Crash(disk.KeepAll)
				if err := j.recovered(d); err != nil {
					t.Fatalf("%q, moment %d: %v", steps, n, err)
				}
				if !ok {
					continue
				}
				foreseen++
				v, err := fs.Open(d, options)
				if err != nil {
					t.Fatal(err)
				}
				got, err := Tree(v, v.Root())
				if err != nil || got != want {
					t.Errorf("%q, moment %d: foreseen is\n%s\nand not\n%s\n%v", steps, n, want, got, err)
				}
				if err := v.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("%d of %d images are foreseen", foreseen, images)
	if foreseen*10 < images {
		t.Error("that is too few")
	}
}

// TestForeseenWrong: an image in which a block differs that a recovery has read, or one that it has left alone, is not
// taken for the one that was recovered. One that was not found right is none to go by.
func TestForeseenWrong(t *testing.T) {
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	at := base.Size() - 1 // is free: a recovery has no use for it
	other := func(a uint64) *disk.Sim {
		d, b := base.Crash(disk.KeepAll), make([]byte, disk.BlockSize)
		if err := d.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		b[4000]++
		if err := d.WriteAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		return d
	}
	same, err := newEquals(base, []uint64{0, at})
	if err != nil {
		t.Fatal(err)
	}
	d := newTraced(base.Crash(disk.KeepAll), same.varying)
	v, err := fs.Open(d, options)
	if err != nil {
		t.Fatal(err)
	}
	sum := same.learn(d)
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	same.trees[sum] = "a tree"
	if _, ok := same.foresee(base); ok {
		t.Error("foreseen by one that was not found right")
	}
	same.clean[sum] = true
	if tree, ok := same.foresee(base); !ok || tree != "a tree" {
		t.Errorf("the same image is foreseen: %v, as %q", ok, tree)
	}
	for _, a := range same.varying {
		if _, ok := same.foresee(other(a)); ok {
			t.Errorf("foreseen although block %d is another one", a)
		}
	}
}
