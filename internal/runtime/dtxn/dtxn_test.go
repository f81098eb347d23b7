package dtxn

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"tansy/internal/gen/txn/places"
	"tansy/internal/runtime/dbytes"
	"tansy/test/kit/replay"
)

// A volume for the tests: bitmaps of blocks and of inodes, an inode table, and
// whole blocks.
const (
	blockMap = 10
	inodeMap = 14
	inodeTab = 15
	data     = 110
	size     = 4010
)

var layout = Layout{Maps: [2]Bitmap{
	Blocks: {Start: blockMap, First: 100, Limit: 100000},
	Inodes: {Start: inodeMap, First: 3, Limit: 1000},
}, Places: placesOf(region{data, size, places.BLOCKS()}, region{inodeTab, data, places.INODES()}, region{blockMap, inodeTab, places.BITS()})}

// A region is the blocks from start up to end, and what lies there.
type region struct {
	start, end uint64
	what       uint32
}

func placesOf(rs ...region) (p *places.Place) {
	for _, r := range slices.Backward(rs) {
		p = places.Before(r.start, r.end, r.what, p)
	}
	return p
}

func newSystem(t testing.TB) *System {
	s := NewMem(size, layout)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func must(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Error(err)
	}
}

// seeded returns a source of randomness per worker.
func seeded(t testing.TB) func(worker int) *rand.Rand {
	seed := replay.Seed(t)
	return func(w int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(w))) }
}

// inodeAt is where inode i lies.
func inodeAt(i uint64) (blkno, off uint64) { return inodeTab + i/16, i % 16 * 2048 }

// TestDeclarations compares random transactions, one at a time, with the
// contract in txn.s.dfy: a plain map from objects to values, restored on abort.
func TestDeclarations(t *testing.T) {
	poison(t)
	r := seeded(t)(0)
	s := newSystem(t)
	type obj struct {
		kind       int
		blkno, off uint64
	}
	model := map[obj][]byte{}
	value := func(m map[obj][]byte, o obj) []byte {
		if v, ok := m[o]; ok {
			return v
		}
		return make([]byte, []int{4096, 256, 1}[o.kind])
	}
	for range 300 {
		m := map[obj][]byte{}
		for k, v := range model {
			m[k] = v
		}
		bad := errors.New("abort")
		abort := r.IntN(3) == 0
		err := s.Run(r.IntN(2) == 0, false, func(x *Txn) error {
			for range r.IntN(60) {
				o := obj{kind: r.IntN(3)}
				switch o.kind {
				case 0:
					o.blkno = data + r.Uint64N(5)
				case 1:
					o.blkno, o.off = inodeAt(r.Uint64N(50))
				case 2:
					o.blkno, o.off = blockMap+r.Uint64N(2), r.Uint64N(100)*31
				}
				v := make([]byte, len(value(m, o)))
				for i := range v {
					v[i] = byte(r.Uint32()) & 1
				}
				write, excl := r.IntN(2) == 0, r.IntN(2) == 0
				var got []byte
				switch o.kind {
				case 0:
					if r.IntN(3) == 0 {
						x.Ahead(o.blkno, r.Uint64N(9))
					}
					if r.IntN(3) == 0 {
						n := r.Uint64N(data + 6 - o.blkno)
						p := dbytes.NewPieces()
						x.ReadBlocks(o.blkno, n, p)
						all := p.Join().Data
						for i := range n {
							b := obj{0, o.blkno + i, 0}
							if string(all[i*dbytes.BlkSize:][:dbytes.BlkSize]) != string(value(m, b)) {
								t.Fatalf("block %v of %d from %d on: read something else than was written", b, n, o.blkno)
							}
						}
					}
					was := x.ReadBlock(o.blkno, excl)
					got = was.Thaw().Data
					if write {
						b := x.Copy(was)
						copy(b.Data, v)
						if r.IntN(2) == 0 {
							x.Bulk(o.blkno)
						}
						x.WriteBlock(o.blkno, b)
						if b.Len() != 0 {
							t.Fatal("WriteBlock left the caller its buffer")
						}
					}
				case 1:
					b := x.ReadInode(o.blkno, o.off, excl)
					got = append([]byte(nil), b.Data...)
					b.Data[7]++ // it is the caller's
					if write {
						copy(b.Data, v)
						x.WriteInode(o.blkno, o.off, b)
						b.Data[9]++ // so is this
					}
				case 2:
					got = []byte{0}
					if x.ReadBit(o.blkno, o.off, excl) {
						got[0] = 1
					}
					if write {
						x.WriteBit(o.blkno, o.off, v[0] == 1)
					}
				}
				if string(got) != string(value(m, o)) {
					t.Fatalf("object %v: read something else than was written", o)
				}
				if write {
					m[o] = v
				}
			}
			if abort {
				return bad
			}
			return nil
		})
		switch {
		case abort && err != bad || !abort && err != nil:
			t.Fatal(err)
		case !abort:
			model = m
		}
	}
	if held := s.held(); held != 0 {
		t.Fatalf("%d locks are held at the end", held)
	}
}

// TestBank moves money between accounts of 256 bytes, many of them in one block,
// from many goroutines, while others add everything up. No money may appear or
// vanish at any time.
func TestBank(t *testing.T) {
	const accounts, workers, rounds, each = 40, 8, 300, 1000
	s := newSystem(t)
	src := seeded(t)
	for i := range uint64(accounts) {
		must(t, s.Run(false, false, func(x *Txn) error {
			b := dbytes.NewBytes(256)
			b.PutU64(0, each)
			blk, off := inodeAt(i)
			x.WriteInode(blk, off, b)
			return nil
		}))
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := src(w)
			for i := range rounds {
				if w%4 == 3 {
					var sum uint64
					err := s.Run(false, true, func(x *Txn) error {
						sum = 0
						for _, i := range r.Perm(accounts) {
							blk, off := inodeAt(uint64(i))
							sum += x.ReadInode(blk, off, false).U64(0)
						}
						return nil
					})
					if err != nil || sum != accounts*each {
						t.Errorf("sum %d, %v", sum, err)
						return
					}
					continue
				}
				from, to, n := r.Uint64N(accounts), r.Uint64N(accounts), r.Uint64N(100)
				cancel := errors.New("cancelled")
				err := s.Run(i%10 == 0, false, func(x *Txn) error {
					blk, off := inodeAt(from)
					b := x.ReadInode(blk, off, r.IntN(2) == 0)
					have := b.U64(0)
					if have < n {
						return nil
					}
					b.PutU64(0, have-n)
					x.WriteInode(blk, off, b)
					blk, off = inodeAt(to)
					b = x.ReadInode(blk, off, true)
					b.PutU64(0, b.U64(0)+n)
					x.WriteInode(blk, off, b)
					if n%7 == 0 {
						return cancel
					}
					return nil
				})
				if err != nil && err != cancel {
					t.Error(err)
					return
				}
			}
		}()
	}
	wg.Wait()
	if held := s.held(); held != 0 {
		t.Fatalf("%d locks are held at the end", held)
	}
	t.Logf("%+v", s.Stats())
}

// TestStorm has every transaction lock many of few objects in random order, some
// shared first and exclusively later. All of them must finish.
func TestStorm(t *testing.T) {
	const objects, workers, rounds = 12, 16, 60
	s := newSystem(t)
	src := seeded(t)
	var total [objects]uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := src(w)
			for range rounds {
				order := r.Perm(objects)[:2+r.IntN(objects-2)]
				must(t, s.Run(false, false, func(x *Txn) error {
					for _, i := range order {
						blk, off := inodeAt(uint64(i))
						b := x.ReadInode(blk, off, i%3 == 0)
						b.PutU64(8, b.U64(8)+1)
						x.WriteInode(blk, off, b)
					}
					return nil
				}))
				mu.Lock()
				for _, i := range order {
					total[i]++
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	must(t, s.Run(false, true, func(x *Txn) error {
		for i, n := range total {
			blk, off := inodeAt(uint64(i))
			if got := x.ReadInode(blk, off, false).U64(8); got != n {
				t.Errorf("object %d was counted up to %d, not %d", i, got, n)
			}
		}
		return nil
	}))
	t.Logf("%+v", s.Stats())
}

// TestHints: no bit is handed out twice, aborts give back, frees are offered again,
// and the count is exact, from many goroutines.
func TestHints(t *testing.T) {
	s := newSystem(t)
	src := seeded(t)
	total, err := s.Free(Inodes)
	must(t, err)
	if total != 997 {
		t.Fatal(total)
	}
	var mu sync.Mutex
	used := map[uint64]int{} // by whom, as committed
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := src(w)
			var mine []uint64
			for range 200 {
				abort := errors.New("abort")
				var got, gone []uint64
				fail := r.IntN(3) == 0
				err := s.Run(false, false, func(x *Txn) error {
					got, gone = nil, nil
					for range r.IntN(4) {
						ok, i := x.AllocHint(Inodes, r.Uint64N(2)*500)
						if !ok {
							t.Error("full")
							continue
						}
						if i < 3 || i >= 1000 || x.ReadBit(inodeMap, i, true) {
							t.Errorf("hint %d is in use", i)
						}
						if r.IntN(5) == 0 {
							continue // not taken: it is offered again after this transaction
						}
						x.WriteBit(inodeMap, i, true)
						got = append(got, i)
					}
					if len(mine) > 20 {
						for _, i := range mine[:10] {
							x.WriteBit(inodeMap, i, false)
							gone = append(gone, i)
						}
					}
					if fail {
						return abort
					}
					mu.Lock() // what is freed may be taken by others as soon as f returns
					defer mu.Unlock()
					for _, i := range gone {
						if used[i] != w+1 {
							t.Errorf("%d belongs to %d, not to %d", i, used[i], w+1)
						}
						delete(used, i)
					}
					return nil
				})
				if err == abort {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mine = append(mine[len(gone):], got...)
				mu.Lock()
				for _, i := range got {
					if used[i] != 0 {
						t.Errorf("%d was given to two", i)
					}
					used[i] = w + 1
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	free, err := s.Free(Inodes)
	must(t, err)
	if free != total-uint64(len(used)) {
		t.Errorf("free %d, but %d of %d are used", free, len(used), total)
	}
	// everything that is free can be had, once
	must(t, s.Run(false, false, func(x *Txn) error {
		n := uint64(0)
		for {
			ok, i := x.AllocHint(Inodes, 0)
			if !ok {
				break
			}
			if used[i] != 0 {
				t.Errorf("hint %d is in use", i)
			}
			n++
		}
		if n != free {
			t.Errorf("%d hints, %d free", n, free)
		}
		return nil
	}))
	if n, _ := s.Free(Inodes); n != free {
		t.Errorf("hints not used changed the count from %d to %d", free, n)
	}
}

// TestNear: a wish is fulfilled with the next bits, across the windows.
func TestNear(t *testing.T) {
	s := newSystem(t)
	must(t, s.Run(false, false, func(x *Txn) error {
		for i, c := range []struct{ near, want uint64 }{
			{0, 100}, {0, 101}, {65535, 65536}, {0, 65537}, {99999, 102}, {101, 103}, {32766, 32767},
		} {
			if _, b := x.AllocHint(Blocks, c.near); b != c.want {
				t.Errorf("%d: near %d: %d, want %d", i, c.near, b, c.want)
			}
		}
		return nil
	}))
	if n, _ := s.Free(Blocks); n != 100000-100 {
		t.Error(n)
	}
}

// TestErrors: writes in read-only transactions, too large ones, panics of others.
func TestErrors(t *testing.T) {
	s := newSystem(t)
	if err := s.Run(true, true, func(x *Txn) error { x.WriteBit(blockMap, 5, true); return nil }); err != ErrReadOnly {
		t.Error(err)
	}
	err := s.Run(true, false, func(x *Txn) error {
		for i := range uint64(MaxBlocks + 1) {
			x.WriteBlock(data+i, dbytes.NewBytes(4096))
		}
		return nil
	})
	if err != ErrTooLarge {
		t.Error(err)
	}
	func() {
		defer func() {
			if fmt.Sprint(recover()) != "mine" {
				t.Error("a foreign panic did not pass")
			}
		}()
		_ = s.Run(true, false, func(x *Txn) error {
			x.WriteBit(blockMap, 5, true)
			panic("mine")
		})
	}()
	if s.held() != 0 {
		t.Error("locks are left")
	}
	must(t, s.Run(true, false, func(x *Txn) error {
		if x.ReadBit(blockMap, 5, false) {
			t.Error("an aborted write is there")
		}
		return nil
	}))
	// an error that is ignored still aborts
	a, x := s.Begin(), s.Begin()
	a.WriteBit(blockMap, 9, true)
	x.WriteBit(blockMap, 20, true)
	if _, err := x.TryReadBit(blockMap, 9, false); err != ErrConflict {
		t.Error(err)
	}
	if err := x.Commit(true); err != ErrConflict {
		t.Error(err)
	}
	must(t, a.Commit(true))
	if s.held() != 0 {
		t.Error("locks are left")
	}
}

// TestRefusedNeverCommits: the verified transaction knows that it was refused something, whatever the Go around it
// makes of that; and what Go refuses it is told. The first reason is the one that counts.
func TestRefusedNeverCommits(t *testing.T) {
	s := newSystem(t)
	undone := func(name string) {
		t.Helper()
		must(t, s.Run(true, false, func(x *Txn) error {
			if x.ReadBit(blockMap, 20, false) {
				t.Errorf("%s: what was written is there", name)
			}
			return nil
		}))
		if s.held() != 0 {
			t.Errorf("%s: locks are left", name)
		}
	}
	for name, c := range map[string]struct {
		refused func(x *Txn) error
		want    error
	}{
		"a lock":                {func(x *Txn) error { _, err := x.TryReadBit(blockMap, 9, false); return err }, ErrConflict},
		"a read where none is":  {func(x *Txn) error { _, err := x.TryReadBlock(0, false); return err }, ErrDamaged},
		"a write where none is": {func(x *Txn) error { return x.TryWriteBlock(0, dbytes.NewBytes(4096)) }, ErrDamaged},
	} {
		holder, x := s.Begin(), s.Begin()
		holder.WriteBit(blockMap, 9, true)
		x.WriteBit(blockMap, 20, true)
		if err := c.refused(x); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		x.failed = nil // nobody has seen it
		if err := x.Commit(true); err == nil {
			t.Errorf("%s: committed all the same", name)
		}
		holder.Abort()
		undone(name)
	}
	mine := errors.New("mine")
	for _, then := range []func(x *Txn) error{
		func(x *Txn) error { return nil },
		func(x *Txn) error { _, err := x.TryReadBlock(0, false); return err },
	} {
		if err := s.Run(true, false, func(x *Txn) error {
			x.WriteBit(blockMap, 20, true)
			x.refuse(mine)
			return then(x)
		}); err != mine {
			t.Errorf("refused by Go: %v", err)
		}
		undone("refused by Go")
	}
}

func BenchmarkGetattr(b *testing.B) {
	s := newSystem(b)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		i := uint64(0)
		for p.Next() {
			i++
			blk, off := inodeAt(i % 100)
			must(b, s.Run(false, true, func(x *Txn) error {
				_ = x.ReadInode(blk, off, false)
				return nil
			}))
		}
	})
}

// BenchmarkCommit5 is the CPU cost of an unstable commit of 5 objects in 4 blocks.
func BenchmarkCommit5(b *testing.B) {
	s := newSystem(b)
	b.ReportAllocs()
	p := dbytes.NewBytes(256)
	for i := range uint64(b.N) {
		p.PutU64(0, i)
		must(b, s.Run(false, false, func(x *Txn) error {
			x.WriteBit(blockMap, i%1000, true)
			x.WriteBit(inodeMap, i%500, true)
			blk, off := inodeAt(i % 500)
			x.WriteInode(blk, off, p)
			blk, off = inodeAt(i%500 + 1)
			x.WriteInode(blk, off, p)
			x.WriteBlock(data+i%10, dbytes.NewBytes(4096))
			return nil
		}))
	}
}

// BenchmarkWrite1M is the CPU cost of an unstable write of 256 blocks with their
// allocation.
func BenchmarkWrite1M(b *testing.B) {
	s := newSystem(b)
	b.ReportAllocs()
	for i := range uint64(b.N) {
		var got []uint64
		must(b, s.Run(false, false, func(x *Txn) error {
			got = got[:0]
			for k := range uint64(256) {
				_, h := x.AllocHint(Blocks, 0)
				w, o := blockMap+h/32768, h%32768
				x.ReadBit(w, o, true)
				x.WriteBit(w, o, true)
				x.WriteBlock(data+(i*256+k)%3000, dbytes.NewBytes(4096))
				got = append(got, h)
			}
			return nil
		}))
		b.StopTimer()
		must(b, s.Run(false, false, func(x *Txn) error {
			for _, h := range got {
				x.WriteBit(blockMap+h/32768, h%32768, false)
			}
			return nil
		}))
		b.StartTimer()
	}
}
