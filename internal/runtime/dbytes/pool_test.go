package dbytes

import (
	"math/rand"
	"sync"
	"testing"

	"tansy/test/kit/replay"
)

// own has a test use a pool of n blocks of its own.
func own(t *testing.T, n int) *pool {
	was := writes
	writes = newPool(n)
	writes.aging = true // by hand
	t.Cleanup(func() { writes = was })
	return writes
}

// A block stays what it is, and nobody else's, while somebody may see it; and comes again when nobody may.
func TestPool(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	p := own(t, 200)
	type held struct {
		b    *Blk
		refs int
		x    uint64
	}
	var all []held
	for round := range 20000 {
		switch i := r.Intn(len(all) + 1); {
		case i == len(all) || len(all) < 20:
			b := p.get()
			if (b == nil) != (len(all) == 200) {
				t.Fatalf("%d of 200 are in use, and there is one: %v", len(all), b != nil)
			}
			if b == nil {
				continue
			}
			x := r.Uint64()
			for k := 0; k < BlkSize; k += 8 {
				(&Bytes{Data: b.v[:]}).PutU64(uint64(k), x)
			}
			all = append(all, held{b, 1, x})
		case r.Intn(3) == 0:
			if !Retain(all[i].b) {
				t.Fatal("a block of the pool is not its own")
			}
			all[i].refs++
		default:
			if k := uint64(8 * r.Intn(BlkSize/8)); all[i].b.U64(k) != all[i].x {
				t.Fatalf("round %d: a block has changed at %d", round, k)
			}
			Release(all[i].b)
			if all[i].refs--; all[i].refs == 0 {
				all[i] = all[len(all)-1]
				all = all[:len(all)-1]
			}
		}
		if r.Intn(500) == 0 {
			p.cool()
		}
		if p.inUse() != len(all) {
			t.Fatalf("%d are in use, not %d", p.inUse(), len(all))
		}
		if n := p.resident(); n < int64(len(all))*BlkSize || n > 200*BlkSize {
			t.Fatalf("%d bytes are resident, of %d blocks", n, len(all))
		}
	}
}

// What is not needed for a period gives its memory back; what is, keeps it.
func TestPoolCools(t *testing.T) {
	if raceDetector {
		t.Skip("the memory lies in Go's heap")
	}
	p := own(t, 1000)
	var all []*Blk
	for range 1000 {
		b := p.get()
		b.v[17] = 1
		all = append(all, b)
	}
	if p.get() != nil {
		t.Error("there are more than there are")
	}
	for _, b := range all[:900] {
		Release(b)
	}
	if !p.cool() || p.resident() != 1000*BlkSize { // it was empty within the period
		t.Fatalf("%d bytes", p.resident())
	}
	for range 200 { // in turn, so that these are needed
		var some []*Blk
		for range 50 {
			some = append(some, p.get())
		}
		for _, b := range some {
			Release(b)
		}
	}
	if !p.cool() || p.resident() != 150*BlkSize {
		t.Fatalf("%d bytes", p.resident())
	}
	if p.cool() || p.resident() != 100*BlkSize {
		t.Fatalf("%d bytes", p.resident())
	}
	for _, b := range all[900:] {
		if b.v[17] != 1 {
			t.Fatal("a block in use lost what it holds")
		}
	}
	if p.get(); p.resident() != 101*BlkSize {
		t.Errorf("%d bytes", p.resident())
	}
}

// What is no block of the pool is left alone; and who counts wrongly is stopped.
func TestRetain(t *testing.T) {
	p := own(t, 10)
	for _, b := range []*Blk{ZeroBlk(), new(Blk), Freeze(NewBytes(BlkSize))} {
		if Retain(b) {
			t.Error("it is counted")
		}
		Release(b)
		Release(b)
	}
	b := p.get()
	Release(b)
	for what, f := range map[string]func(){"kept": func() { Retain(b) }, "given back": func() { Release(b) }} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a free block is %s", what)
				}
			}()
			f()
		}()
		p.refs[0].Store(0)
	}
}

// The copies of a source are its own until it lets them go; what does not fit the pool is the garbage collector's.
func TestSource(t *testing.T) {
	p := own(t, 10)
	data := random(seeded(t), 16*BlkSize+5)
	s := Source(data)
	var copies []*Bytes
	for i := range uint64(16) {
		copies = append(copies, s.CopyOf(i*BlkSize+5))
	}
	if p.inUse() != 10 {
		t.Errorf("%d of 10 blocks are in use", p.inUse())
	}
	kept := Freeze(copies[3])
	if !Retain(kept) {
		t.Error("not in the pool")
	}
	for i, c := range copies {
		if i != 3 && string(c.Data) != string(data[i*BlkSize+5:][:BlkSize]) {
			t.Fatalf("copy %d", i)
		}
	}
	if s.LetGo(); p.inUse() != 1 || string(kept.Data()) != string(data[3*BlkSize+5:][:BlkSize]) {
		t.Error("what somebody may see is gone, or what nobody may is not")
	}
	if s.LetGo(); p.inUse() != 1 {
		t.Error("they were let go twice")
	}
	if Release(kept); p.inUse() != 0 {
		t.Error("the last one is still in use")
	}
}

// Many at once.
func TestPoolConcurrently(t *testing.T) {
	p := own(t, 64)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2000 {
				b := p.get()
				if b == nil {
					continue
				}
				(&Bytes{Data: b.v[:]}).PutU64(8*uint64(g), uint64(i))
				Retain(b)
				Release(b)
				if b.U64(8*uint64(g)) != uint64(i) {
					t.Error("it is another's")
				}
				Release(b)
				if i%100 == 0 {
					p.cool()
				}
			}
		})
	}
	wg.Wait()
	if p.inUse() != 0 {
		t.Errorf("%d are in use", p.inUse())
	}
}
