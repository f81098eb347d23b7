package ddisk

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

func block(v byte) *dbytes.Blk {
	return dbytes.BlkOf(bytes.Repeat([]byte{v}, dbytes.BlkSize))
}

// Disk.Write, WriteSector, WriteRun, Read, ReadRun, Size, and BList: the contents are
// those of a plain array.
func TestContents(t *testing.T) {
	const n = 50
	d := New(disk.NewMem(n * disk.BlockSize))
	if d.Size() != n {
		t.Fatal(d.Size())
	}
	var cur [n]byte
	for seed := uint64(1); seed <= 400; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		a := r.Uint64N(n)
		m := r.Uint64N(n - a + 1)
		switch r.IntN(4) {
		case 0:
			if cur[a] = byte(seed); !d.Write(a, block(cur[a])) {
				t.Fatal(d.Err())
			}
		case 1:
			if cur[a] = byte(seed); !d.WriteSector(a, block(cur[a])) {
				t.Fatal(d.Err())
			}
		case 2:
			skip := r.Uint64N(3)
			l := &BList{}
			for i := uint64(0); i < skip+m; i++ {
				l.Addrs = append(l.Addrs, 1000+i)
				l.Blks = append(l.Blks, block(byte(seed+i)))
			}
			if l.Len() != skip+m {
				t.Fatal(l.Len())
			}
			if !d.WriteRun(a, l, skip, m) {
				t.Fatal(d.Err())
			}
			for i := uint64(0); i < m; i++ {
				if l.AddrAt(skip+i) != 1000+skip+i {
					t.Fatal(l.AddrAt(skip + i))
				}
				cur[a+i] = l.BlkAt(skip + i).Get(0)
			}
		case 3:
			if !d.Barrier() {
				t.Fatal(d.Err())
			}
		}
		ok, l := d.ReadRun(a, m)
		if !ok || l.Len() != m {
			t.Fatal(ok, l.Len())
		}
		for i := uint64(0); i < m; i++ {
			if *l.BlkAt(i) != *block(cur[a+i]) {
				t.Fatalf("seed %d: block %d", seed, a+i)
			}
		}
		if ok, b := d.Read(a); !ok || *b != *block(cur[a]) {
			t.Fatalf("seed %d: block %d", seed, a)
		}
	}
}

// A barrier collapses what a crash may leave to what was written.
func TestBarrierIsADeviceBarrier(t *testing.T) {
	sim := disk.NewSim(4 * disk.BlockSize)
	d := New(sim)
	d.Write(1, block(1))
	if !d.Barrier() {
		t.Fatal(d.Err())
	}
	d.Write(2, block(2))
	after := New(sim.Crash(disk.LoseAll))
	_, b1 := after.Read(1)
	_, b2 := after.Read(2)
	if *b1 != *block(1) || *b2 != *block(0) {
		t.Fatal("wrong contents after a crash")
	}
}

// After Stop it is as if a barrier had failed: nothing is written or durable any more, and reads go on.
func TestStop(t *testing.T) {
	f := disk.NewFault(disk.NewMem(4*disk.BlockSize), 1, nil)
	d := New(f)
	if !d.Write(1, block(7)) || !d.Barrier() {
		t.Fatal(d.Err())
	}
	d.Stop()
	n := f.Ops()
	if d.Write(1, block(9)) || d.WriteSector(1, block(9)) || d.WriteRun(1, &BList{Blks: []*dbytes.Blk{block(9)}}, 0, 1) || d.Barrier() {
		t.Error("something succeeds")
	}
	if f.Ops() != n {
		t.Error("the device is still written")
	}
	if !errors.Is(d.Err(), ErrNotOwner) || !errors.Is(d.Err(), disk.ErrLost) {
		t.Error(d.Err())
	}
	if ok, b := d.Read(1); !ok || *b != *block(7) {
		t.Error("what was written before cannot be read")
	}
}

// After the first failed write or barrier all later ones fail, and do not reach the
// device; reads go on. A failed read spoils nothing.
func TestErrorsStick(t *testing.T) {
	boom := errors.New("boom")
	ops := map[string]func(*Disk) bool{
		"Write":       func(d *Disk) bool { return d.Write(1, block(9)) },
		"WriteSector": func(d *Disk) bool { return d.WriteSector(1, block(9)) },
		"WriteRun":    func(d *Disk) bool { return d.WriteRun(1, &BList{Blks: []*dbytes.Blk{block(9)}}, 0, 1) },
		"Barrier":     func(d *Disk) bool { return d.Barrier() },
	}
	for name, first := range ops {
		f := disk.NewFault(disk.NewMem(4*disk.BlockSize), 1, disk.FailAt(1, boom))
		d := New(f)
		if first(d) || !errors.Is(d.Err(), boom) {
			t.Fatalf("%s: no error, or the wrong one: %v", name, d.Err())
		}
		n := f.Ops()
		for later, op := range ops {
			if op(d) {
				t.Errorf("%s after a failed %s succeeds", later, name)
			}
		}
		if d.WriteRun(1, &BList{}, 0, 0) {
			t.Errorf("writing nothing after a failed %s succeeds", name)
		}
		if f.Ops() != n {
			t.Errorf("after a failed %s the device is still written", name)
		}
		if ok, _ := d.Read(1); !ok {
			t.Errorf("after a failed %s reads fail: %v", name, d.ReadErr())
		}
	}
	d := New(disk.NewFault(disk.NewMem(4*disk.BlockSize), 1, disk.FailFrom(1, boom, disk.Read)))
	if ok, _ := d.Read(1); ok || !errors.Is(d.ReadErr(), boom) {
		t.Error(d.ReadErr())
	}
	if ok, _ := d.ReadRun(1, 2); ok {
		t.Error("ReadRun succeeds")
	}
	if !d.Write(1, block(1)) || !d.Barrier() || d.Err() != nil {
		t.Error("a failed read made writes fail")
	}
}
