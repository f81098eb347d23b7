package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
	"tansy/test/kit/replay"
)

// A piece is a run of a layout: n blocks from a on, which lie from block at of a device on once it is there.
type piece struct {
	a, at, n uint64
	there    bool
}

// pieces are all runs of a layout, in order.
type pieces []piece

// locate returns where blocks lie. From an odd block on it says so of a few only.
func (ps pieces) locate() disk.Locate {
	ps = slices.Clone(ps)
	return func(a uint64) (there bool, at, n uint64) {
		for _, p := range ps {
			if p.a <= a && a < p.a+p.n {
				n = p.a + p.n - a
				if a%2 == 1 {
					n = min(n, 3)
				}
				return p.there, p.at + (a - p.a), n
			}
		}
		panic(fmt.Sprintf("block %d lies in no run of the layout", a))
	}
}

// place is where the device has block a, if it is there.
func (ps pieces) place(a uint64) (at uint64, there bool) {
	there, at, _ = ps.locate()(a)
	return at, there
}

// scatter cuts a layout of size blocks into runs of 40 at most, and gives them places on a device in random order, with
// gaps between. It returns the size of the device as well. None is there yet.
func scatter(r *rand.Rand, size uint64) (ps pieces, device uint64) {
	for a := uint64(0); a < size; {
		n := min(size-a, 1+r.Uint64N(40))
		ps = append(ps, piece{a: a, n: n})
		a += n
	}
	for _, i := range r.Perm(len(ps)) {
		device += r.Uint64N(4)
		ps[i].at = device
		device += ps[i].n
	}
	return ps, device + r.Uint64N(4)
}

// all has everything be there.
func (ps pieces) all() pieces {
	for i := range ps {
		ps[i].there = true
	}
	return ps
}

// fixed is a layout of 50 blocks on a device of 40, for tests that name blocks.
func fixed() pieces {
	return pieces{
		{a: 0, at: 0, n: 10, there: true},
		{a: 10, n: 5},
		{a: 15, at: 30, n: 10, there: true},
		{a: 25, at: 12, n: 5, there: true},
		{a: 30, n: 20},
	}
}

// newPieced is a layout all of which is there, for the suite.
func newPieced(t *testing.T) disk.Disk {
	ps, device := scatter(rand.New(rand.NewPCG(replay.Seed(t), 0)), disktest.Blocks)
	return disk.NewPieced(disk.NewMem(device*disk.BlockSize), disktest.Blocks, ps.all().locate())
}

// must fails the test if there is an error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// contents is all that d holds.
func contents(t *testing.T, d disk.Disk) [][]byte {
	t.Helper()
	bufs := disktest.Pattern(int(d.Size()), 99) // to be overwritten
	must(t, d.ReadAt(0, bufs))
	return bufs
}

func sameBlocks(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

var zeroBlock = make([]byte, disk.BlockSize)

func zero(b []byte) bool { return bytes.Equal(b, zeroBlock) }

// A model of a layout: what its device holds, and where it lies there.
type layoutModel struct {
	t      *testing.T
	r      *rand.Rand
	pieces pieces
	size   uint64
	device [][]byte

	mem *disk.Mem
	d   *disk.Pieced
}

// block is what block a of the layout holds.
func (m *layoutModel) block(a uint64) []byte {
	if at, there := m.pieces.place(a); there {
		return m.device[at]
	}
	return zeroBlock
}

// write writes to n blocks from a on: zeros to those that are not there, or anything to all.
func (m *layoutModel) write(a, n uint64, zeros bool) {
	bufs, bad := disktest.Pattern(int(n), m.r.Uint64()), n
	for i := range n {
		_, there := m.pieces.place(a + i)
		if !there && zeros || m.r.IntN(4) == 0 {
			clear(bufs[i])
		}
		if !there && !zero(bufs[i]) {
			bad = min(bad, i)
		}
	}
	err := m.d.WriteAt(a, bufs)
	e := new(disk.Error)
	refused := errors.Is(err, disk.ErrNotThere) && errors.As(err, &e) && e.Op == "write" && e.Block == a+bad
	if refused != (bad < n) || !refused && err != nil {
		m.t.Fatalf("a write of %d blocks at %d, of which block %d cannot be taken: %v", n, a, a+bad, err)
	}
	if bad < n {
		return
	}
	for i := range n {
		if at, there := m.pieces.place(a + i); there {
			m.device[at] = bufs[i]
		}
	}
}

// read compares n blocks from a on.
func (m *layoutModel) read(a, n uint64) {
	got := disktest.Pattern(int(n), 7)
	must(m.t, m.d.ReadAt(a, got))
	for i, b := range got {
		if !bytes.Equal(b, m.block(a+uint64(i))) {
			m.t.Fatalf("block %d of %d at %d differs", i, n, a)
		}
	}
}

// discard makes n blocks from a on zeros.
func (m *layoutModel) discard(a, n uint64) {
	must(m.t, m.d.Discard(a, n))
	for i := range n {
		if at, there := m.pieces.place(a + i); there {
			m.device[at] = zeroBlock
		}
	}
}

// search compares what is found from block a on.
func (m *layoutModel) search(a uint64) {
	there, data := a, a
	for ; there < m.size; there++ {
		if _, yes := m.pieces.place(there); yes {
			break
		}
	}
	for ; data < m.size && zero(m.block(data)); data++ {
	}
	if got := m.d.NextThere(a); got != there {
		m.t.Fatalf("from block %d on, %d is there first, not %d", a, there, got)
	}
	got, err := m.d.NextData(a)
	must(m.t, err)
	if got < there || got > data {
		m.t.Fatalf("from block %d on, %d is there first, and %d has data first, not %d", a, there, data, got)
	}
	if _, yes := m.pieces.place(min(got, m.size-1)); got < m.size && !yes {
		m.t.Fatalf("block %d is to have data, and is not there", got)
	}
}

// step does something at random.
func (m *layoutModel) step() {
	a := m.r.Uint64N(m.size)
	n := m.r.Uint64N(min(m.size-a, 60) + 1)
	switch m.r.IntN(8) {
	case 0, 1, 2:
		m.write(a, n, m.r.IntN(4) > 0)
	case 3, 4:
		m.read(a, n)
	case 5:
		m.discard(a, n)
	case 6:
		m.search(a)
	case 7:
		must(m.t, m.d.Barrier())
	}
}

// A Pieced is what a plain array of blocks is that is cut into runs, while more and more of these come. Nothing else on
// the device is touched, not by what is refused either.
func TestPiecedModel(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 1))
	const size = 400
	for range 4 {
		ps, device := scatter(r, size)
		m := &layoutModel{t: t, r: r, pieces: ps, size: size, device: disktest.Pattern(int(device), r.Uint64())}
		m.mem = disk.NewMem(device * disk.BlockSize)
		must(t, m.mem.WriteAt(0, m.device))
		m.d = disk.NewPieced(m.mem, size, ps.locate())
		for _, i := range append([]int{-1}, r.Perm(len(ps))...) {
			if i >= 0 {
				ps[i].there = true
				m.d.Extend(ps.locate())
			}
			for range 20 {
				m.step()
			}
			if !sameBlocks(contents(t, m.mem), m.device) {
				t.Fatal("the device differs")
			}
		}
	}
}

// Of a write that is refused, nothing is written, nor of one that ends behind the layout, though the device has more.
func TestPiecedRefuses(t *testing.T) {
	mem := disk.NewMem(100 * disk.BlockSize)
	before := disktest.Pattern(100, 1)
	must(t, mem.WriteAt(0, before))
	d := disk.NewPieced(mem, 50, fixed().locate())
	bufs := disktest.Pattern(50, 2)
	for _, b := range bufs[10:15] {
		clear(b)
	}
	clear(bufs[30])
	for _, c := range []struct {
		a, n, block uint64
		want        error
	}{
		{0, 50, 31, disk.ErrNotThere}, // much of it could be written before
		{12, 20, 31, disk.ErrNotThere},
		{49, 1, 49, disk.ErrNotThere},
		{49, 2, 50, disk.ErrRange},
		{1 << 63, 1, 1 << 63, disk.ErrRange},
	} {
		e := new(disk.Error)
		err := d.WriteAt(c.a, append(bufs, disktest.Vector(1)...)[min(c.a, 50):][:c.n])
		if !errors.Is(err, c.want) || !errors.As(err, &e) || e.Op != "write" || e.Block != c.block {
			t.Errorf("%d blocks at %d: %v, want %v at block %d", c.n, c.a, err, c.want, c.block)
		}
	}
	for what, err := range map[string]error{
		"a discard behind the end":       d.Discard(49, 2),
		"a discard far behind the end":   d.Discard(1<<63, 0),
		"a discard without end":          d.Discard(1, 1<<64-1),
		"a read behind the end":          d.ReadAt(49, disktest.Vector(2)),
		"a transfer of no blocks there":  d.ReadAt(51, nil),
		"the same with an end in itself": d.WriteAt(1<<64-1, disktest.Vector(2)),
	} {
		if !errors.Is(err, disk.ErrRange) {
			t.Errorf("%s: %v, want %v", what, err, disk.ErrRange)
		}
	}
	if !sameBlocks(contents(t, mem), before) {
		t.Error("the device was changed")
	}
	must(t, d.WriteAt(10, bufs[10:31])) // these can be taken
}

// While runs come, blocks that were there are read and written as before, those that come are zeros or what the device
// has, and once Extend has returned they can be written.
func TestPiecedExtendBeside(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 2))
	const size, workers = 800, 4
	ps, device := scatter(r, size)
	mem := disk.NewMem(device * disk.BlockSize)
	mark := slices.Repeat([]byte{7}, disk.BlockSize)
	must(t, mem.WriteAt(0, slices.Repeat([][]byte{mark}, int(device))))
	for i := range workers {
		ps[i].there = true
	}
	d := disk.NewPieced(mem, size, ps.locate())
	later := ps[workers].a
	var all sync.WaitGroup
	for w, own := range ps[:workers] {
		all.Go(func() {
			for i := range uint64(25) {
				want, got := disktest.Pattern(int(own.n), uint64(w)<<8|i), disktest.Vector(int(own.n))
				next, err := d.NextData(later)
				if err := errors.Join(err, d.WriteAt(own.a, want), d.Barrier(), d.ReadAt(own.a, got)); err != nil {
					t.Error(err)
				}
				if !sameBlocks(got, want) || next < later {
					t.Errorf("the blocks from %d on differ, or block %d comes behind %d", own.a, next, later)
				}
				got = disktest.Pattern(int(size-later), 1)
				if err := d.ReadAt(later, got); err != nil {
					t.Error(err)
				}
				for a, b := range got {
					if b[0] != 7 && b[0] != 9 && b[0] != 0 || !bytes.Equal(b[1:], b[:len(b)-1]) {
						t.Errorf("block %d is neither what it was nor what it is: %d", later+uint64(a), b[0])
						return
					}
				}
			}
		})
	}
	for i := workers; i < len(ps); i++ {
		ps[i].there = true
		d.Extend(ps.locate())
		got := disktest.Vector(int(ps[i].n))
		must(t, d.ReadAt(ps[i].a, got))
		if !bytes.Equal(got[0], mark) {
			t.Errorf("block %d is not what the device has there", ps[i].a)
		}
		must(t, d.WriteAt(ps[i].a, slices.Repeat([][]byte{slices.Repeat([]byte{9}, disk.BlockSize)}, len(got))))
	}
	all.Wait()
	for a := later; a < size; a++ {
		b := disktest.Vector(1)
		must(t, d.ReadAt(a, b))
		if b[0][0] != 9 {
			t.Fatalf("what was written to block %d is lost", a)
		}
	}
}

// What a barrier covers survives every crash, and what it does not cover may, block by block.
func TestPiecedCrash(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	const size = 100
	ps, device := scatter(r, size)
	sim := disk.NewSim(device * disk.BlockSize)
	d := disk.NewPieced(sim, size, ps.locate())
	may := make([][]byte, size) // what each block may hold after a crash: the first bytes, the durable one first
	for a := range may {
		may[a] = []byte{0}
	}
	for step := range 60 {
		if step < len(ps) {
			ps[step].there = true
			d.Extend(ps.locate())
		}
		a := r.Uint64N(size)
		n := 1 + r.Uint64N(min(size-a, 20))
		var bufs [][]byte
		for b := a; b < a+n; b++ {
			v := byte(0)
			if _, there := ps.place(b); there {
				v = byte(1 + step)
				may[b] = append(may[b], v)
			}
			bufs = append(bufs, slices.Repeat([]byte{v}, disk.BlockSize))
		}
		must(t, d.WriteAt(a, bufs))
		if r.IntN(5) == 0 {
			must(t, d.Barrier())
			for b := range may {
				may[b] = may[b][len(may[b])-1:]
			}
		}
		crashes := map[string]*disk.Sim{
			"the oldest": sim.Crash(func(uint64, int, int) int { return 0 }),
			"the newest": sim.Crash(func(_ uint64, _, versions int) int { return versions }),
		}
		for c := range sim.Crashes(3, seed, false) {
			crashes["some"] = c
		}
		for what, c := range crashes {
			for b, held := range contents(t, disk.NewPieced(c, size, ps.locate())) {
				v, of := held[0], may[b]
				if !slices.Contains(of, v) || what == "the oldest" && v != of[0] || what == "the newest" && v != of[len(of)-1] {
					t.Fatalf("step %d: block %d is %d after a crash that keeps %s of %v", step, b, v, what, of)
				}
			}
		}
	}
}
