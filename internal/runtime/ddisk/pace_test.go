package ddisk

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"tansy/disk"
)

// pushed is a device that keeps account of what its cache has: blocks written, begun to be written to the medium, or
// neither.
type pushed struct {
	disk.Disk
	t      *testing.T
	mu     sync.Mutex
	dirty  map[uint64]bool
	begun  map[uint64]bool
	pushes int
	log    stretch // as it was told
}

func (p *pushed) BarrierFollows(a, end uint64) { p.log = stretch{a, end} }

func newPushed(t *testing.T, n uint64) *pushed {
	return &pushed{Disk: disk.NewMem(n * disk.BlockSize), t: t, dirty: map[uint64]bool{}, begun: map[uint64]bool{}}
}

func (p *pushed) WriteAt(a uint64, bufs [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range bufs {
		p.dirty[a+uint64(i)] = true
	}
	return p.Disk.WriteAt(a, bufs)
}

func (p *pushed) Push(a, n uint64, wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n == 0 || a+n > p.Size() {
		p.t.Errorf("pushes %d blocks from %d on of %d", n, a, p.Size())
	}
	if !wait {
		p.pushes++
	}
	for b := a; b < a+n; b++ {
		if wait {
			delete(p.begun, b)
		} else if p.dirty[b] {
			delete(p.dirty, b)
			p.begun[b] = true
		}
	}
}

func (p *pushed) Barrier() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.dirty)
	clear(p.begun)
	return p.Disk.Barrier()
}

func run(n uint64, v byte) *BList {
	l := &BList{}
	for range n {
		l.Blks = append(l.Blks, block(v))
	}
	return l
}

// However much is written in short pieces, a barrier finds no more than three waves of it: one that is being collected,
// and two on their way. A long write is on its way at once, and nobody waits for it. The blocks of the log are left
// alone.
func TestPace(t *testing.T) {
	const size, from, to = 4000, 1000, 2000
	for seed := uint64(1); seed <= 20; seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		p := newPushed(t, size)
		d := New(p)
		d.Pace(from, to)
		if p.log != (stretch{from, to}) {
			t.Fatal("the device does not know where the log is", p.log)
		}
		a := uint64(0) // of an installation, which goes up; now and then a new one begins
		for range 2000 {
			n := 1 + r.Uint64N(longWrite-1)
			if r.IntN(2) == 0 {
				n = 1
			}
			if a += r.Uint64N(8); a < to && a+n > from {
				a = to
			}
			if a+n > size {
				a = r.Uint64N(from / 2)
			}
			if !d.WriteRun(a, run(n, byte(seed)), 0, n) {
				t.Fatal(d.Err())
			}
			a += n
			if len(p.dirty) >= waveBlocks || len(p.begun) > 2*(waveBlocks+longWrite) {
				t.Fatalf("seed %d: %d blocks in the cache, %d on their way", seed, len(p.dirty), len(p.begun))
			}
			if r.IntN(300) == 0 && !d.Barrier() {
				t.Fatal(d.Err())
			}
		}
		if p.pushes == 0 {
			t.Error("nothing was pushed")
		}
		d.Barrier()
		pushes := p.pushes
		for range 200 {
			d.Write(from+r.Uint64N(to-from), block(1))
			d.WriteRun(from+r.Uint64N(to-from-longWrite), run(longWrite, 2), 0, longWrite)
		}
		if p.pushes != pushes {
			t.Error("the log was pushed")
		}
		d.Barrier()
		for i := range uint64(20) {
			n := longWrite + r.Uint64N(longWrite)
			d.WriteRun(to+i*2*longWrite, run(n, 3), 0, n)
			pushes++
		}
		if p.pushes != pushes || len(p.dirty) > 0 || len(p.begun) < 20*longWrite {
			t.Errorf("of 20 long writes %d blocks are left in the cache, %d on their way after %d pushes",
				len(p.dirty), len(p.begun), p.pushes-pushes+20)
		}
	}
}

// Nothing is pushed of a disk that has not been told to.
func TestNoPace(t *testing.T) {
	p := newPushed(t, 1000)
	d := New(p)
	for a := range uint64(1000) {
		d.Write(a, block(1))
	}
	if p.pushes != 0 {
		t.Errorf("%d pushes", p.pushes)
	}
}

// Writers side by side: the contents are what they wrote, whoever pushes.
func TestPaceSideBySide(t *testing.T) {
	const writers, each = 4, 500
	d := New(newPushed(t, writers*each))
	d.Pace(0, 0)
	var wg sync.WaitGroup
	for w := range uint64(writers) {
		wg.Go(func() {
			for i := range uint64(each) {
				d.Write(w*each+i, block(byte(w*31+i)))
				if i%100 == 99 {
					d.Barrier()
				}
			}
		})
	}
	wg.Wait()
	for w := range uint64(writers) {
		for i := range uint64(each) {
			if ok, b := d.Read(w*each + i); !ok || *b != *block(byte(w*31 + i)) {
				t.Fatalf("block %d", w*each+i)
			}
		}
	}
}

// A write that fails is not pushed, and nothing is written after it.
func TestPaceFails(t *testing.T) {
	p := newPushed(t, 1000)
	f := disk.NewFault(p, 1, nil)
	d := New(f)
	d.Pace(0, 0)
	for a := range uint64(waveBlocks - 1) {
		d.Write(a, block(1))
	}
	f.SetPlan(disk.FailFrom(1, errors.New("boom"), disk.Write))
	if d.Write(500, block(2)) || d.Write(501, block(2)) || d.Barrier() {
		t.Error("something succeeds after an error")
	}
	if p.pushes != 0 {
		t.Errorf("%d pushes", p.pushes)
	}
}
