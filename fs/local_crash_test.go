package fs_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/replay"
)

// ranges describes a file: its size, what it takes, where its data begin and end, and their digest.
func ranges(t testing.TB, v *fs.FS, h fs.Handle) string {
	t.Helper()
	a, err := v.Getattr(h)
	if err != nil {
		t.Fatal(err)
	}
	said := fmt.Sprint(a.Size, a.Used)
	for at, hole := uint64(0), false; ; hole = !hole {
		at, err = v.Seek(root, h, at, hole)
		if err == fs.ErrNoEnt {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		said += fmt.Sprint(" ", at)
	}
	data, _, _, err := v.Read(root, h, 0, fs.MaxIO)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %x", said, sha256.Sum256(data))
}

// A crash of a volume where nobody waits leaves the ranges of a file as they were after one of the steps that were
// made, not before the last that a Sync came after.
func TestRangesCrash(t *testing.T) {
	seed := replay.Seed(t)
	rnd := rand.New(rand.NewSource(int64(seed)))
	sim := disk.NewSim(4000 * disk.BlockSize)
	mkfs(t, sim, fs.MkfsOptions{Zeroed: true, Inodes: 64})
	sim.Record()
	v := open(t, sim, fs.Options{Deferred: true})
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		state        string
		begun, acked uint64
		synced       bool
	}
	var steps []step
	note := func(op func() error, sync bool) {
		begun := sim.Ops()
		if err := op(); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, step{ranges(t, v, n.Handle), begun, sim.Ops(), sync})
	}
	note(v.Sync, true)
	first := steps[0].acked
	const blocks = 40 // of the file: some lie below an indirect block
	for range 60 {
		lo := uint64(rnd.Intn(blocks))
		off, size := lo*fs.BlockSize, uint64(1+rnd.Intn(blocks-int(lo)))*fs.BlockSize
		switch rnd.Intn(6) {
		case 0:
			data := make([]byte, size-uint64(rnd.Intn(fs.BlockSize)))
			rnd.Read(data)
			note(func() error { _, _, _, err := v.Write(root, n.Handle, off, data, fs.Unstable); return err }, false)
		case 1, 2:
			note(func() error { return v.Allocate(root, n.Handle, off, size) }, false)
		case 3, 4:
			note(func() error { return v.PunchHole(root, n.Handle, off, size) }, false)
		case 5:
			note(v.Sync, true)
		}
	}
	closeFS(t, v)
	images := 0
	for ops := first; ops <= sim.Ops(); ops += 1 + uint64(rnd.Intn(3)) {
		lo, hi := 0, 0
		for i, s := range steps {
			if s.acked <= ops && s.synced {
				lo = i
			}
			if s.begun <= ops {
				hi = i
			}
		}
		for image := range sim.At(ops).Crashes(3, rnd.Uint64(), true) {
			images++
			w := open(t, image, fs.Options{})
			got, err := w.Lookup(root, w.Root(), []byte("f"))
			if err != nil {
				t.Fatal(err)
			}
			state := ranges(t, w, got.Handle)
			if !slices.ContainsFunc(steps[lo:hi+1], func(s step) bool { return s.state == state }) {
				t.Fatalf("a crash after %d device operations leaves\n%s,\nwhich none of the steps %d to %d left",
					ops, state, lo, hi)
			}
			closeFS(t, w)
			mustCheck(t, image)
		}
	}
	t.Logf("%d images", images)
}
