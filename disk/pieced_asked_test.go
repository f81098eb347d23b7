package disk_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
)

// asked is a disk that says what it was asked for.
type asked struct {
	disk.Disk
	what []string
}

func (d *asked) note(format string, args ...any) {
	d.what = append(d.what, fmt.Sprintf(format, args...))
}

func (d *asked) Forget(a, n uint64)           { d.note("forget %d %d", a, n) }
func (d *asked) Push(a, n uint64, wait bool)  { d.note("push %d %d %v", a, n, wait) }
func (d *asked) BarrierFollows(a, end uint64) { d.note("barrier follows %d %d", a, end) }
func (d *asked) Discard(a, n uint64) error    { d.note("discard %d %d", a, n); return nil }
func (d *asked) Unclaim() error               { d.note("unclaim"); return nil }
func (d *asked) Host() disk.Host              { return askedHost{d} }

// askedHost has room for blocks 4 to 7, 9 to 13, and 33 to 37.
type askedHost struct{ d *asked }

func (h askedHost) Reserve(a, n uint64) error {
	h.d.note("reserve %d %d", a, n)
	if a == 12 {
		return disk.ErrNoRoom
	}
	return nil
}
func (h askedHost) Keep(n uint64)       { h.d.note("keep %d", n) }
func (h askedHost) Room() (f, b uint64) { return 17, 4 }
func (h askedHost) Below(uint64) uint64 { panic("the layout knows what is there") }
func (h askedHost) Backed(a uint64) (lo, hi uint64, ok bool) {
	for _, r := range [][2]uint64{{4, 8}, {9, 14}, {33, 38}} {
		if a < r[1] {
			return max(a, r[0]), r[1], true
		}
	}
	return 0, 0, false
}

// All that is asked of a disk is asked of the device where it has the blocks, and of no other block.
func TestPiecedTranslates(t *testing.T) {
	locate := func(a uint64) (bool, uint64, uint64) { // whole runs
		for _, p := range fixed() {
			if p.a <= a && a < p.a+p.n {
				return p.there, p.at + (a - p.a), p.a + p.n - a
			}
		}
		panic(a)
	}
	in := &asked{Disk: disk.NewMem(40 * disk.BlockSize)}
	p := disk.NewPieced(disk.NewStats(in), 50, locate)
	d := disk.NewStats(p)
	h := disk.HostOf(d)
	const far = 1<<64 - 1
	var full error
	for _, c := range []struct {
		do   func()
		want string
	}{
		{func() { disk.Forget(d, 8, 20) }, "forget 8 2; forget 30 10; forget 12 3"},
		{func() { disk.Forget(d, 24, far) }, "forget 39 1; forget 12 5"},
		{func() { disk.Forget(d, 60, far) }, ""},
		{func() { disk.Push(d, 8, 20, true) }, "push 8 2 true; push 30 10 true; push 12 3 true"},
		{func() { disk.Push(d, 10, 6, false) }, "push 30 1 false"},
		{func() { disk.BarrierFollows(d, 3, 9) }, "barrier follows 3 9"},
		{func() { disk.BarrierFollows(d, 7, 22) }, "barrier follows 30 37"},
		{func() { disk.BarrierFollows(d, 16, 27) }, "barrier follows 31 40"},
		{func() { disk.BarrierFollows(d, 22, far) }, "barrier follows 12 17"},
		{func() { disk.BarrierFollows(d, 10, 15) }, ""},
		{func() { disk.BarrierFollows(d, 9, 3) }, ""},
		{func() { must(t, disk.Discard(d, 9, 8)) }, "discard 9 1; discard 30 2"},
		{func() { must(t, disk.Discard(d, 30, 20)) }, ""},
		{func() { must(t, disk.Unclaim(d)) }, "unclaim"},
		{func() { h.Keep(5) }, "keep 5"},
		{func() { must(t, h.Reserve(20, 4)) }, "reserve 35 4"},
		{func() { must(t, h.Reserve(26, 4)) }, "reserve 13 4"},
		{func() { full = h.Reserve(20, 10) }, "reserve 35 5; reserve 12 5"},
	} {
		in.what = nil
		if c.do(); strings.Join(in.what, "; ") != c.want {
			t.Errorf("asked for %q, want %q", in.what, c.want)
		}
	}
	for end, there := range map[uint64]uint64{0: 0, 9: 9, 12: 10, 20: 15, 27: 22, 50: 25, far: 25} {
		if n := h.Below(end); n != there {
			t.Errorf("%d blocks are there below %d, not %d", n, end, there)
		}
	}
	if !errors.Is(full, disk.ErrNoRoom) {
		t.Errorf("a host without room: %v", full)
	}
	in.what = nil
	for _, c := range []struct {
		a, n uint64
		want error
	}{{8, 3, disk.ErrNotThere}, {11, 2, disk.ErrNotThere}, {45, 6, disk.ErrRange}, {51, 0, disk.ErrRange}} {
		if err := h.Reserve(c.a, c.n); !errors.Is(err, c.want) || in.what != nil {
			t.Errorf("room for %d blocks at %d: %v, want %v; the host was asked for %q", c.n, c.a, err, c.want, in.what)
		}
	}
	if free, backed := h.Room(); free != 17 || backed != 4 {
		t.Errorf("room %d, %d", free, backed)
	}
	var runs [][2]uint64
	for a := uint64(0); ; {
		lo, hi, ok := h.Backed(a)
		if !ok {
			break
		}
		runs, a = append(runs, [2]uint64{lo, hi}), hi
	}
	if want := [][2]uint64{{4, 8}, {9, 10}, {18, 23}, {25, 27}}; !slices.Equal(runs, want) {
		t.Errorf("with room: %v, want %v", runs, want)
	}
	if _, _, ok := h.Backed(60); ok {
		t.Error("there is room behind the end")
	}
	if disk.HostOf(disk.NewPieced(disk.NewMem(40*disk.BlockSize), 50, locate)) != nil {
		t.Error("memory has a host")
	}
	if err := disk.Unclaim(disk.NewPieced(disk.NewMem(40*disk.BlockSize), 50, locate)); err == nil {
		t.Error("memory was given up")
	}
}

// A Pieced is found through what wraps it, and only where there is one.
func TestPiecedFound(t *testing.T) {
	mem := disk.NewMem(40 * disk.BlockSize)
	p := disk.NewPieced(mem, 50, fixed().locate())
	d := disk.NewPrefix(disk.NewStats(p), 48)
	if disk.PiecedOf(d) != p || disk.PiecedOf(disk.NewStats(mem)) != nil {
		t.Error("not the one that is there")
	}
	for a, want := range map[uint64]uint64{0: 0, 9: 9, 10: 15, 14: 15, 16: 16, 29: 29, 30: 48, 48: 48, 1 << 63: 48} {
		if got := disk.NextThere(d, a); got != want {
			t.Errorf("from block %d on, %d is there first, not %d", a, want, got)
		}
	}
	for _, a := range []uint64{3, 1 << 63} {
		if got := disk.NextThere(disk.NewStats(mem), a); got != a {
			t.Errorf("all of memory is there, and not block %d, but %d", a, got)
		}
		if got := p.NextThere(a | 32); got != 50 {
			t.Errorf("from block %d on, %d is there", a|32, got)
		}
	}
}

// broken fails what touches one block, and names that.
type broken struct {
	disk.Disk
	block uint64
	plain bool // with an error that names nothing
}

func (d broken) fail(op string, a, n uint64) error {
	switch {
	case d.block < a || d.block >= a+n:
		return nil
	case d.plain:
		return syscall.EIO
	}
	return &disk.Error{Op: op, Path: "x", Block: d.block, Err: syscall.EIO}
}
func (d broken) ReadAt(a uint64, bufs [][]byte) error  { return d.fail("read", a, uint64(len(bufs))) }
func (d broken) WriteAt(a uint64, bufs [][]byte) error { return d.fail("write", a, uint64(len(bufs))) }
func (d broken) Discard(a, n uint64) error             { return d.fail("discard", a, n) }
func (d broken) NextData(a uint64) (uint64, error)     { return a, d.fail("read", a, 1<<20) }

// An error names the layout's block, and keeps that of the device; where both are one, it stays as it is.
func TestPiecedErrors(t *testing.T) {
	mem := disk.NewMem(40 * disk.BlockSize)
	for _, plain := range []bool{false, true} {
		d := disk.NewPieced(broken{mem, 33, plain}, 50, fixed().locate())
		_, noData := d.NextData(16)
		for op, err := range map[string]error{
			"read":    d.ReadAt(16, disktest.Vector(8)),
			"write":   d.WriteAt(16, disktest.Vector(8)),
			"discard": d.Discard(16, 8),
			"search":  noData,
		} {
			e, in, name := new(disk.Error), new(disk.Error), op
			if op == "search" {
				name = "read"
			}
			block, text := uint64(18), name+" block 18: on the device: "+name+" block 33 x: input/output error"
			if plain {
				block, text = 16, name+" block 16: on the device: input/output error"
			}
			if !errors.Is(err, syscall.EIO) || !errors.As(err, &e) || e.Op != name || e.Block != block || err.Error() != text {
				t.Errorf("%s: %v, want %s", op, err, text)
			} else if !plain && (!errors.As(e.Err, &in) || in.Block != 33) {
				t.Errorf("%s: %v names no block of the device", op, err)
			}
		}
	}
	d := disk.NewPieced(broken{mem, 33, false}, 50, fixed().locate())
	e := new(disk.Error)
	if _, err := d.NextData(15); !errors.As(err, &e) || e.Block != 15 { // of which locate says nothing of block 18
		t.Errorf("%v, want an error of block 15, where the device was asked from", err)
	}
	d = disk.NewPieced(broken{mem, 5, false}, 50, fixed().locate())
	const want = "read block 5 x: input/output error"
	if err := d.ReadAt(3, disktest.Vector(4)); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// After Close, nothing can be done to what is not there either.
func TestPiecedClosed(t *testing.T) {
	d := disk.NewPieced(disk.NewMem(40*disk.BlockSize), 50, fixed().locate())
	must(t, d.ReadAt(10, disktest.Vector(2)), d.WriteAt(10, disktest.Vector(2)), d.Discard(10, 2), d.Close())
	for what, err := range map[string]error{
		"read":    d.ReadAt(10, disktest.Vector(2)),
		"write":   d.WriteAt(10, disktest.Vector(2)),
		"discard": d.Discard(10, 2),
		"barrier": d.Barrier(),
		"close":   d.Close(),
	} {
		if e := new(disk.Error); !errors.Is(err, os.ErrClosed) || !errors.As(err, &e) || e.Op != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A transfer within one run takes no memory.
func TestPiecedAllocates(t *testing.T) {
	d := disk.NewPieced(disk.NewMem(40*disk.BlockSize), 50, fixed().locate())
	bufs := disktest.Pattern(4, 1)
	must(t, d.WriteAt(16, bufs))
	if n := testing.AllocsPerRun(20, func() { must(t, d.WriteAt(16, bufs)) }); n > 0 {
		t.Errorf("a write: %v allocations", n)
	}
	if n := testing.AllocsPerRun(20, func() { must(t, d.ReadAt(16, bufs)) }); n > 0 {
		t.Errorf("a read: %v allocations", n)
	}
}

// An image may be cut behind the last block that is there, and not further; what comes is needed from then on.
func TestPiecedCut(t *testing.T) {
	f, err := disk.CreateFile(filepath.Join(t.TempDir(), "image"), 100*disk.BlockSize)
	must(t, err)
	defer f.Close()
	ps := pieces{{a: 0, at: 0, n: 10, there: true}, {a: 10, at: 60, n: 20}, {a: 30, at: 20, n: 20, there: true}}
	d := disk.NewPieced(disk.NewStats(f), 50, ps.locate())
	cut := func(blocks int64, lost bool) {
		t.Helper()
		must(t, os.Truncate(f.Path(), blocks*disk.BlockSize))
		if err := d.Barrier(); (err != nil) != lost {
			t.Errorf("a barrier with %d blocks: %v", blocks, err)
		}
		if err := f.Check(); errors.Is(err, disk.ErrLost) != lost {
			t.Errorf("a look at %d blocks: %v", blocks, err)
		}
	}
	cut(50, false)
	cut(40, false)
	cut(100, false)
	ps[1].there = true
	d.Extend(ps.locate())
	cut(80, false)
	cut(79, true)
}

// On a sparse image: reserved blocks have room, and others none; what is written is no hole, what is discarded is one
// again, and its neighbours on the device are not.
func TestPiecedSparse(t *testing.T) {
	const part = 1024 // as many as a host is asked for at once
	f, err := disk.CreateFile(filepath.Join(t.TempDir(), "image"), 6*part*disk.BlockSize)
	must(t, err)
	defer f.Close()
	if next, err := f.NextData(0); err != nil || next != f.Size() {
		t.Skip("this file system does not tell of holes")
	}
	d := disk.NewPieced(f, 4*part, pieces{
		{a: 0, at: 4 * part, n: part, there: true},
		{a: part, n: part},
		{a: 2 * part, at: part, n: part, there: true},
		{a: 3 * part, at: 0, n: part, there: true},
	}.locate())
	h := disk.HostOf(d)
	if h == nil {
		t.Fatal("a sparse image has no host")
	}
	must(t, h.Reserve(3*part+5, 1))
	if lo, hi, ok := disk.HostOf(f).Backed(0); !ok || lo > 5 || hi > part {
		t.Errorf("on the device %d to %d have room, %v", lo, hi, ok)
	}
	if lo, hi, ok := h.Backed(0); !ok || lo < 3*part || lo > 3*part+5 || hi <= lo || hi > 4*part {
		t.Errorf("%d to %d have room, %v", lo, hi, ok)
	}
	const at = 2*part + 100
	must(t, d.WriteAt(at, disktest.Pattern(64, 1)), d.Barrier())
	if next, err := d.NextData(0); err != nil || next > at || next < 2*part {
		t.Errorf("block %d is written first, not %d: %v", at, next, err)
	}
	must(t, d.Discard(at, 48), d.Barrier())
	got, want := disktest.Pattern(64, 2), append(disktest.Vector(48), disktest.Pattern(64, 1)[48:]...)
	must(t, f.ReadAt(part+100, got))
	if !sameBlocks(got, want) {
		t.Error("the device holds something else")
	}
	if next, err := d.NextData(at); err != nil || next < at+1 || next > at+48 {
		t.Errorf("the hole ends with block %d, not %d: %v", at+48, next, err)
	}
}
