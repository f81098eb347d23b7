package volume

import (
	"encoding/binary"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/journal"
	"tansy/test/kit/replay"
	"tansy/txn"
)

const program = "test 1"

var (
	small = Sizes{Bits: 70, Smalls: 40, Blocks: 30, LogBytes: 4 << 20}
	quiet = journal.Options{Log: slog.New(slog.DiscardHandler)}
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, d disk.Disk) *Volume {
	t.Helper()
	v, err := Open(d, program, quiet)
	must(t, err)
	return v
}

func block(t *testing.T, d disk.Disk, a uint64) string {
	t.Helper()
	p := make([]byte, disk.BlockSize)
	must(t, d.ReadAt(a, [][]byte{p}))
	return string(p)
}

// allZero looks whether each object is zero.
func allZero(t *testing.T, v *Volume) {
	t.Helper()
	must(t, v.View(func(x *txn.Txn) error {
		for n := range small.Bits {
			if b, err := x.ReadBit(v.Bits.Object(n)); b || err != nil {
				t.Errorf("bit %d: %v, %v", n, b, err)
			}
		}
		for _, c := range []struct {
			r txn.Region
			n uint64
		}{{v.Smalls, small.Smalls}, {v.Blocks, small.Blocks}} {
			for n := range c.n {
				if p, err := x.Read(c.r.Object(n)); err != nil || !isZero(p) {
					t.Errorf("%v %d is not zero, or cannot be read: %v", c.r.Kind, n, err)
				}
			}
		}
		return nil
	}))
}

// used is a disk for a volume of small sizes that holds something everywhere but in block 0.
func used(t *testing.T, seed uint64) *disk.Sim {
	t.Helper()
	d := disk.NewSim(small.Bytes())
	r := rand.New(rand.NewPCG(seed, 1))
	for a := uint64(1); a < d.Size(); a++ {
		p := make([]byte, disk.BlockSize)
		binary.LittleEndian.PutUint64(p[r.IntN(500)*8:], r.Uint64())
		must(t, d.WriteAt(a, [][]byte{p}))
	}
	must(t, d.Barrier())
	return d
}

// TestCreateCrash crashes the machine in the midst of Create, on a disk that held something: there is no volume then,
// and one can be made; or there is one, and all of it is zero. When Create has returned, there is one.
func TestCreateCrash(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	d := used(t, seed)
	d.Record()
	first := d.Ops()
	must(t, Create(d, program, small))
	last := d.Ops()
	for n := first; n <= last; n++ {
		if last-n > 60 { // most are those that make what the disk held zero
			n += r.Uint64N(50)
		}
		choice := disk.RandomChoice(r, true)
		if n == last {
			choice = disk.LoseAll
		}
		img := d.At(n).Crash(choice)
		v, err := Open(img, program, quiet)
		switch {
		case err == nil:
		case n == last || !errors.Is(err, ErrForeign):
			t.Fatalf("after %d of %d operations: %v", n-first, last-first, err)
		default:
			must(t, Create(img, program, small))
			v = open(t, img)
		}
		allZero(t, v)
		must(t, v.Close())
	}
}

// TestCrash: after a crash at any point, each transaction is there wholly or not at all, and is there if it was
// acknowledged; and block 0 is what it was.
func TestCrash(t *testing.T) {
	seed := replay.Seed(t)
	d := disk.NewSim(small.Bytes())
	must(t, Create(d, program, small))
	before := block(t, d, 0)
	v := open(t, d)
	a, err := v.Allocator(v.Bits)
	must(t, err)
	d.Record()
	first := d.Ops()
	type witness struct{ ops, w, n uint64 }
	var mu sync.Mutex
	var seen []witness
	var wg sync.WaitGroup
	for w := range uint64(3) {
		wg.Go(func() {
			for n := uint64(1); n <= 15; n++ { // a bit, and the number of the worker's bits in an object and in a block
				err := v.Run(true, func(x *txn.Txn) error {
					if _, err := a.Take(x, 0); err != nil {
						return err
					}
					p := make([]byte, txn.BlockSize)
					binary.LittleEndian.PutUint64(p, n)
					return errors.Join(x.Write(v.Smalls.Object(w), p[:txn.SmallSize]), x.Write(v.Blocks.Object(w), p))
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				seen = append(seen, witness{d.Ops(), w, n})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	last := d.Ops()
	must(t, v.Close())
	r := rand.New(rand.NewPCG(seed, 2))
	for n := first; n <= last; n++ {
		img := d.At(n).Crash(disk.RandomChoice(r, true))
		if block(t, img, 0) != before {
			t.Fatal("block 0 has changed")
		}
		v := open(t, img)
		a, err := v.Allocator(v.Bits)
		must(t, err)
		sum, have := uint64(0), map[uint64]uint64{}
		must(t, v.View(func(x *txn.Txn) error {
			for w := range uint64(3) {
				p, err := x.Read(v.Smalls.Object(w))
				q, err2 := x.Read(v.Blocks.Object(w))
				if err := errors.Join(err, err2); err != nil {
					return err
				}
				have[w] = binary.LittleEndian.Uint64(p)
				if binary.LittleEndian.Uint64(q) != have[w] {
					t.Errorf("after %d operations: a transaction of worker %d in parts", n, w)
				}
				sum += have[w]
			}
			return nil
		}))
		if free, err := a.Free(); err != nil || free != small.Bits-sum {
			t.Errorf("after %d operations: %d bits are free, not %d: %v", n, free, small.Bits-sum, err)
		}
		for _, s := range seen {
			if s.ops <= n && have[s.w] < s.n {
				t.Errorf("after %d operations: worker %d is at %d, and was told %d", n, s.w, have[s.w], s.n)
			}
		}
		must(t, v.Close())
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestRefused: what is no volume, or another's, or does not fit, is refused, and stays as it is.
func TestRefused(t *testing.T) {
	size := small.Bytes()
	whole := disk.NewMem(size)
	must(t, Create(whole, program, small))
	header := []byte(block(t, whole, 0))
	with := func(bytes uint64, change func(p []byte)) disk.Disk {
		d := disk.NewMem(bytes)
		p := append([]byte(nil), header...)
		change(p)
		must(t, d.WriteAt(0, [][]byte{p}))
		return d
	}
	for _, c := range []struct {
		what string
		d    disk.Disk
		name string
		want error
	}{
		{"nothing", disk.NewMem(size), program, ErrForeign},
		{"something else", with(size, func(p []byte) { p[0] = 'X' }), program, ErrForeign},
		{"another program's", whole, "test 2", ErrForeign},
		{"a later version", with(size, func(p []byte) { p[atVersion]++ }), program, ErrVersion},
		{"a wrong key", with(size, func(p []byte) { p[atKey]++ }), program, ErrDamaged},
		{"a wrong size", with(size, func(p []byte) { p[atSizes]++ }), program, ErrDamaged},
		{"a wrong checksum", with(size, func(p []byte) { p[headerEnd-1]++ }), program, ErrDamaged},
		{"a volume that was cut", with(size-1, func([]byte) {}), program, ErrTooSmall},
		{"a disk of no blocks", disk.NewMem(0), program, disk.ErrRange},
	} {
		if v, err := Open(c.d, c.name, quiet); !errors.Is(err, c.want) || v != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	if err := Create(whole, program, small); !errors.Is(err, ErrInUse) || block(t, whole, 0) != string(header) {
		t.Errorf("a volume over another: %v", err)
	}
	if err := Create(disk.NewMem(size-disk.BlockSize), program, small); !errors.Is(err, ErrTooSmall) {
		t.Errorf("a volume on a disk that is too small: %v", err)
	}
	long := string(make([]byte, MaxProgram+1))
	for name, s := range map[string]Sizes{
		program:        {},
		long:           small,
		"a\x00":        small,
		"bits":         {Bits: math.MaxUint64},
		"smalls":       {Smalls: math.MaxUint64},
		"blocks":       {Blocks: math.MaxUint64},
		"a block more": {Blocks: mostBlocks + 1},
		"log":          {Blocks: 1, LogBytes: math.MaxUint64},
	} {
		if err := Create(disk.NewMem(size), name, s); !errors.Is(err, ErrSizes) {
			t.Errorf("%q, %+v: %v", name, s, err)
		}
	}
	for _, log := range []uint64{0, 1 << 43} {
		largest := Sizes{mostBits, mostSmalls, mostBlocks, log}
		if n := largest.Bytes(); n == math.MaxUint64 || n/disk.BlockSize > journal.MaxSize {
			t.Errorf("the largest volume takes %d bytes", n)
		}
	}
	if n := (Sizes{}).Bytes(); n != math.MaxUint64 {
		t.Errorf("no objects take %d bytes", n)
	}
}

// TestDamagedHeader: no change of a bit of block 0 is believed, but in what no one reads.
func TestDamagedHeader(t *testing.T) {
	h, err := newHeader(program, small)
	must(t, err)
	for bit := range 8 * headerEnd {
		p := h.encode()
		p[bit/8] ^= 1 << (bit % 8)
		if _, err := decode(p); err == nil {
			t.Errorf("bit %d of byte %d is flipped, and nobody notices", bit%8, bit/8)
		}
	}
}

// TestSizes: volumes of all sorts of sizes have their objects, on just as large a disk; what lies behind them on a
// larger one is left alone.
func TestSizes(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	for range 40 {
		s := Sizes{r.Uint64N(2) * r.Uint64N(100000), r.Uint64N(2) * r.Uint64N(100), r.Uint64N(300), 4 << 20}
		if s.Bits+s.Smalls+s.Blocks == 0 {
			continue
		}
		more := r.Uint64N(2) * r.Uint64N(1000)
		d := disk.NewMem(s.Bytes() + more*disk.BlockSize)
		full := make([]byte, disk.BlockSize)
		full[0] = 1
		for a := range more {
			must(t, d.WriteAt(d.Size()-1-a, [][]byte{full}))
		}
		must(t, Create(d, program, s))
		for range 2 {
			v := open(t, d)
			must(t, v.Run(true, func(x *txn.Txn) (err error) {
				if s.Bits > 0 {
					err = x.WriteBit(v.Bits.Object(s.Bits-1), true)
				}
				if s.Smalls > 0 {
					err = errors.Join(err, x.Write(v.Smalls.Object(s.Smalls-1), full[:txn.SmallSize]))
				}
				if s.Blocks > 0 {
					err = errors.Join(err, x.Write(v.Blocks.Object(s.Blocks-1), full))
				}
				return err
			}))
			must(t, v.Close())
		}
		for a := range more {
			if block(t, d, d.Size()-1-a) != string(full) {
				t.Errorf("%+v: what lies behind the volume has changed", s)
			}
		}
	}
}

// TestDeviceErrors: an error of the device at any operation is told, and leaves no volume in parts.
func TestDeviceErrors(t *testing.T) {
	for n := uint64(1); ; n++ {
		mem := disk.NewMem(small.Bytes())
		f := disk.NewFault(mem, 1, disk.FailAt(n, disk.ErrInjected))
		err := Create(f, program, small)
		if err == nil && f.Ops() < n {
			break
		}
		if !errors.Is(err, disk.ErrInjected) {
			t.Fatalf("operation %d failed: %v", n, err)
		}
		if v, err := Open(mem, program, quiet); err == nil { // only the last barrier failed
			allZero(t, v)
			must(t, v.Close())
		} else if !errors.Is(err, ErrForeign) {
			t.Fatalf("operation %d failed, and the volume cannot be opened: %v", n, err)
		}
	}
}
