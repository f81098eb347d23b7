package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tansy/disk"
	"tansy/internal/gen/journal/journalpolicy"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/seal"
)

// The tests here are those of crash_test.go for a volume with a bitmap, whose
// free blocks may be written straight home.

const (
	metas = 8   // home blocks behind the bitmap that are never free
	datas = 150 // and behind these, the blocks with a bit
)

// bitmapped is a log with descs groups, for a volume of one bitmap block, metas, and datas, with a tree of codes.
func bitmapped(descs uint64) Params { return bitmappedFor(descs, 1+metas+datas) }

// bitmappedFor is the same, with a tree of codes for n home blocks, or none.
func bitmappedFor(descs, n uint64) Params {
	p := Params{Start: 1, Units: descs, Ring: MinRing, Key: [32]byte{7}, UUID: [16]byte{9}}
	if n > 0 {
		p = coded(p, n)
	}
	p.Bitmap = p.Home()
	if p.Pages > 1 {
		p.Bitmap += 170 // its blocks are in two pages
	}
	p.First = p.Bitmap + 1 + metas
	p.Limit = p.First + datas
	return p
}

// deviceOf is the size of a device for p.
func deviceOf(p Params) uint64 { return max(p.Limit, sizeOf(p)) }

// A volume is the numbers in its blocks, and which of them are in use.
type volume struct {
	meta [metas]uint64
	used [datas]bool
	val  [datas]uint64
}

// sure is what no crash may change: all but the contents of free blocks.
func (v volume) sure() volume {
	for i, u := range v.used {
		if !u {
			v.val[i] = 0
		}
	}
	return v
}

// bitmap is the bitmap block.
func (v *volume) bitmap(p Params) []byte {
	b := make([]byte, disk.BlockSize)
	for i, u := range v.used {
		if a := p.First + uint64(i); u {
			b[a/8] |= 1 << (a % 8)
		}
	}
	return b
}

// some is up to n blocks that are in use, or not: a run around from if there is one.
func (v *volume) some(used bool, from, n int) (is []int) {
	for k := range datas {
		if i := (from + k) % datas; v.used[i] == used && len(is) < n {
			is = append(is, i)
		}
	}
	return is
}

// change makes up commit number id and tells what it writes and which of that is wished
// to go straight home. at is where blocks were taken or freed last: things happen there.
func (v *volume) change(r *rand.Rand, p Params, id uint64, at *int) (ws []Write, bulk []uint64) {
	set := func(is []int, used bool) {
		for _, i := range is {
			v.used[i] = used
		}
	}
	if r.IntN(4) == 0 {
		*at = r.IntN(datas)
	}
	var write []int
	n := 1 + r.IntN(12)
	switch r.IntN(12) {
	case 0, 1, 2, 3: // take free blocks
		write = v.some(false, *at, n)
		set(write, true)
	case 4: // many
		write = v.some(false, *at, 50)
		set(write, true)
	case 5, 6: // overwrite
		write = v.some(true, *at, n)
	case 7, 8, 9:
		set(v.some(true, *at, 2*n), false)
	case 10: // free some, take others
		write = v.some(false, r.IntN(datas), n)
		set(v.some(true, *at, n), false)
		set(write, true)
	case 11: // write into free blocks; nobody may rely on it
		write = v.some(false, *at, n)
	}
	wish := r.IntN(4) > 0
	for _, i := range write {
		a := p.First + uint64(i)
		v.val[i] = id
		ws = append(ws, Write{a, contents(id)})
		if wish {
			bulk = append(bulk, a)
		}
	}
	m := r.IntN(metas)
	v.meta[m] = id
	return append(ws, Write{p.Bitmap + 1 + uint64(m), contents(id)}, Write{p.Bitmap, v.bitmap(p)}), bulk
}

// readVolume reads all blocks, and fails the test if one in use is torn.
func readVolume(t *testing.T, j *Journal, p Params) (v volume) {
	t.Helper()
	buf := make([]byte, disk.BlockSize)
	if err := j.Read(p.Bitmap, buf); err != nil {
		t.Fatal(err)
	}
	for i := range v.used {
		a := p.First + uint64(i)
		v.used[i] = buf[a/8]>>(a%8)&1 == 1
	}
	if !bytes.Equal(v.bitmap(p), buf) {
		t.Fatal("the bitmap is torn")
	}
	number := func(a uint64, free bool) uint64 {
		if err := j.Read(a, buf); free && errors.Is(err, ErrNotAsWritten) {
			return 0 // a crash may have changed it
		} else if err != nil {
			t.Fatal(err)
		}
		x := binary.LittleEndian.Uint64(buf)
		if !free && !bytes.Equal(buf, contents(x)) {
			t.Fatalf("block %d is torn", a)
		}
		return x
	}
	for i := range v.meta {
		v.meta[i] = number(p.Bitmap+1+uint64(i), false)
	}
	for i, u := range v.used {
		v.val[i] = number(p.First+uint64(i), !u)
	}
	return v
}

// recoveredVolume opens d and returns what it finds.
func recoveredVolume(t *testing.T, d disk.Disk, p Params) volume {
	t.Helper()
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	return readVolume(t, j, p)
}

// A slow device takes its time, now and then, for writing the header and before it
// tells what it has read: so commits come in the middle of installations and reads.
type slow struct {
	disk.Disk
	p Params
}

func (s slow) WriteAt(a uint64, bufs [][]byte) error {
	if a == s.p.Start && rand.IntN(2) == 0 {
		time.Sleep(3 * time.Millisecond)
	}
	return s.Disk.WriteAt(a, bufs)
}

func (s slow) ReadAt(a uint64, bufs [][]byte) error {
	err := s.Disk.ReadAt(a, bufs)
	if a > s.p.Bitmap && rand.IntN(50) == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// commit commits ws, with the wishes, and now and then has what is in the log installed:
// the log is not often full here.
func commit(r *rand.Rand, j *Journal, ws []Write, bulk []uint64, wait bool) error {
	for _, a := range bulk {
		j.Bulk(a)
	}
	if r.IntN(6) == 0 {
		j.core.Mutex.Lock()
		journalpolicy.Urge(j.core)
		j.core.Mutex.Unlock()
	}
	return j.Commit(ws, wait)
}

// replays is the number of direct blocks that recovery finds in the groups of an image.
func replays(t *testing.T, d disk.Disk, p Params) (n uint64) {
	t.Helper()
	read := func(a uint64) *dbytes.Blk {
		b := make([]byte, disk.BlockSize)
		if err := d.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		return dbytes.BlkOf(b)
	}
	sealed := seal.New(p.Key, p.UUID, p.Home())
	ok, q := sealed.DecHdr(read(p.Start))
	if !ok {
		t.Fatal("no header")
	}
	for ; ; q++ {
		g := seal.Parse(read(p.Start + 1 + UnitBlocks*(q%p.Units)))
		if g == nil || g.Sq() != q {
			return n
		}
		ring, direct := &ddisk.BList{}, &ddisk.BList{}
		for i := range g.N() {
			a := p.Start + 2 + UnitBlocks*(q%p.Units) + i
			if g.N() >= UnitBlocks {
				a = p.Start + 1 + UnitBlocks*p.Units + (g.Pos()+i)%p.Ring
			}
			ring.Blks = append(ring.Blks, read(a))
		}
		for i := range g.M() {
			direct.Blks = append(direct.Blks, read(g.Dir(i)))
		}
		if !sealed.Check(g, ring, &ddisk.BList{}, direct, codes.New()) {
			return n
		}
		n += g.M()
	}
}

// TestCrash, with blocks that go straight home: every crash leaves a prefix of the
// history with all that was acknowledged, but for what free blocks say.
func TestCrashDirect(t *testing.T) {
	replayed := uint64(0)
	for seed := uint64(1); seed <= 4/few; seed++ {
		replayed += testCrashDirect(t, seed,
			bitmappedFor([]uint64{4, 16, 64}[seed%3], []uint64{0, 1 + metas + datas, 600, 70_000}[seed%4]))
	}
	if replayed < 5000/(3*few-2) {
		t.Errorf("recoveries found %d direct blocks", replayed)
	}
}

func testCrashDirect(t *testing.T, seed uint64, p Params) (replayed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	d := disk.NewSim(deviceOf(p) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	d.Record()
	j, err := Open(slow{d, p}, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	acked := map[uint64]int{} // after so many operations, so many commits were acknowledged
	first := d.Ops()
	history := []volume{readVolume(t, j, p)}
	at := 0
	for i := range 60 {
		v := history[i]
		ws, bulk := v.change(r, p, uint64(i+1), &at)
		history = append(history, v)
		wait := r.IntN(3) > 0
		if err := commit(r, j, ws, bulk, wait); err != nil {
			t.Fatal(err)
		}
		if wait {
			acked[d.Ops()] = i + 1
		}
		if r.IntN(4) == 0 && readVolume(t, j, p) != v {
			t.Fatalf("seed %d: after %d commits, reads say something else", seed, i+1)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	lo := 0
	for n := first; n <= d.Ops(); n++ {
		lo = max(lo, acked[n])
		for img := range d.At(n).Crashes(1+2/few, seed+n, true) {
			replayed += replays(t, img, p)
			img.Record()
			got := recoveredVolume(t, img, p).sure()
			found := -1
			for i := lo; i < len(history); i++ {
				if history[i].sure() == got {
					found = i
				}
			}
			if found < 0 {
				t.Fatalf("seed %d: crash after operation %d: recovered %v, which is no prefix from %d commits on", seed, n, got, lo)
			}
			again := img.At(r.Uint64N(img.Ops() + 1)).Crash(disk.RandomChoice(r, true))
			if recoveredVolume(t, again, p).sure() != got {
				t.Fatalf("seed %d: crash after operation %d: a recovery that crashed gives another state", seed, n)
			}
		}
	}
	return replayed
}

// Life goes on after a crash, again and again; what was acknowledged stays.
func TestCrashDirectLives(t *testing.T) {
	for seed := uint64(1); seed <= 40/few; seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		p := bitmappedFor([]uint64{4, 16, 64}[seed%3], []uint64{0, 1 + metas + datas, 600, 70_000}[seed%4])
		sim := disk.NewSim(deviceOf(p) * disk.BlockSize)
		if err := Format(sim, p); err != nil {
			t.Fatal(err)
		}
		var now volume
		id, at := uint64(0), 0
		for life := range 6 {
			history := []volume{now} // from the last one acknowledged on
			sim.FreezeAfter(sim.Ops()+1+r.Uint64N(150), false)
			j, err := Open(slow{sim, p}, p, quiet)
			if err == nil {
				_ = j.Read(p.Bitmap, make([]byte, disk.BlockSize)) // fails if the machine has stopped
				for err == nil {
					id++
					v := history[len(history)-1]
					ws, bulk := v.change(r, p, id, &at)
					wait := r.IntN(2) == 0
					history = append(history, v)
					if err = commit(r, j, ws, bulk, wait); err == nil && wait {
						history = history[len(history)-1:]
					}
				}
				j.Close()
			}
			if !errors.Is(err, disk.ErrFrozen) {
				t.Fatal(err)
			}
			sim = sim.Crash(disk.RandomChoice(r, true))
			now = recoveredVolume(t, sim.Crash(disk.KeepAll), p)
			ok := false
			for _, v := range history {
				ok = ok || v.sure() == now.sure()
			}
			if !ok {
				t.Fatalf("seed %d life %d: recovered %v, none of %d states", seed, life, now, len(history))
			}
		}
	}
}

// forget makes the journal forget n blocks from block a on, where it need not remember them.
func forget(j *Journal, a, n uint64) {
	j.core.Mutex.Lock()
	defer j.core.Mutex.Unlock()
	for i := range n {
		j.core.Cache.Forget(a + i)
	}
}

// Reads beside commits and installations, most of them of the device, never go back in time.
func TestDirectReads(t *testing.T) {
	p := bitmapped(64)
	d := disk.NewMem(deviceOf(p) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(slow{d, p}, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	var seen [datas]atomic.Uint64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for c := range uint64(3) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(c, 2))
			buf := make([]byte, disk.BlockSize)
			for !stop.Load() {
				i := r.Uint64N(datas)
				last := seen[i].Load()
				if r.IntN(2) == 0 {
					forget(j, p.First+i, 1)
				}
				if err := j.Read(p.First+i, buf); err != nil {
					t.Error(err)
					return
				}
				x := binary.LittleEndian.Uint64(buf)
				if x < last || !bytes.Equal(buf, contents(x)) {
					t.Errorf("block %d: %d after %d, or a mixture", i, x, last)
					return
				}
				for last < x && !seen[i].CompareAndSwap(last, x) {
					last = seen[i].Load()
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(9, 2))
	v := readVolume(t, j, p)
	at := 0
	for id := range uint64(4000 / few) {
		ws, bulk := v.change(r, p, id+1, &at)
		for _, a := range bulk {
			j.Bulk(a)
		}
		if err := j.Commit(ws, r.IntN(2) == 0); err != nil {
			t.Fatal(err)
		}
		for i, x := range v.val {
			if seen[i].Load() < x {
				seen[i].Store(x)
			}
		}
	}
	if readVolume(t, j, p) != v {
		t.Error("what was read at the end is not what was written")
	}
	stop.Store(true)
	wg.Wait()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if recoveredVolume(t, d, p) != v {
		t.Error("what is there at last is not what was written")
	}
}

// A gate holds up the answers to reads of one block.
type gate struct {
	disk.Disk
	block       uint64
	read, leave chan struct{}
}

func (g gate) ReadAt(a uint64, bufs [][]byte) error {
	err := g.Disk.ReadAt(a, bufs)
	if a == g.block {
		g.read <- struct{}{}
		<-g.leave
	}
	return err
}

// A read that the device answered before the block was written straight home, and that
// comes back when it is no more in memory, must not bring the old contents.
func TestDirectOvertakes(t *testing.T) {
	p := bitmapped(16)
	d := gate{disk.NewMem(deviceOf(p) * disk.BlockSize), p.First, make(chan struct{}), make(chan struct{})}
	if err := Format(d.Disk, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, disk.BlockSize)
	if err := j.Read(p.Bitmap, buf); err != nil {
		t.Fatal(err)
	}
	got := make(chan uint64)
	go func() {
		buf := make([]byte, disk.BlockSize)
		if err := j.Read(p.First, buf); err != nil {
			t.Error(err)
		}
		got <- binary.LittleEndian.Uint64(buf)
	}()
	<-d.read
	var ws []Write
	for a := p.First; a < p.Limit; a++ {
		j.Bulk(a)
		ws = append(ws, Write{a, contents(7)})
	}
	if err := j.Commit(ws, true); err != nil {
		t.Fatal(err)
	}
	forget(j, p.First, 1)
	d.leave <- struct{}{}
	select {
	case <-d.read: // it asks again
		d.leave <- struct{}{}
	case x := <-got:
		t.Fatalf("read %d without asking the device again", x)
	}
	if x := <-got; x != 7 {
		t.Errorf("read %d", x)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// Blocks that are free and wished straight home are written once, others twice.
func TestDirectOnce(t *testing.T) {
	p := bitmapped(16)
	for _, c := range []struct {
		what  string
		wish  bool
		used  bool
		times float64
	}{{"no wish", false, false, 2}, {"a wish", true, false, 1}, {"a wish for blocks in use", true, true, 2}} {
		d := disk.NewMem(deviceOf(p) * disk.BlockSize)
		if err := Format(d, p); err != nil {
			t.Fatal(err)
		}
		j, err := Open(d, p, quiet)
		if err != nil {
			t.Fatal(err)
		}
		var v volume
		readVolume(t, j, p)
		for i := range v.used {
			v.used[i] = c.used
		}
		if err := j.Commit([]Write{{p.Bitmap, v.bitmap(p)}}, true); err != nil {
			t.Fatal(err)
		}
		before := j.Stats().WrittenBlocks
		var ws []Write
		for i := range v.used {
			v.used[i] = true
			ws = append(ws, Write{p.First + uint64(i), contents(5)})
			if c.wish {
				j.Bulk(p.First + uint64(i))
			}
		}
		if err := j.Commit(append(ws, Write{p.Bitmap, v.bitmap(p)}), true); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		times := float64(j.Stats().WrittenBlocks-before) / datas
		if times < c.times || times > c.times+0.1 {
			t.Errorf("%s: every block is written %.2f times", c.what, times)
		}
		for i, x := range recoveredVolume(t, d, p).val {
			if x != 5 {
				t.Errorf("%s: block %d says %d", c.what, i, x)
			}
		}
	}
}

// A bitmap that cannot be is refused.
func TestBitmapParams(t *testing.T) {
	p := bitmapped(16)
	for i, change := range []func(*Params){
		func(p *Params) { p.Bitmap = p.Home() - 1 },
		func(p *Params) { p.Bitmap = p.First },
		func(p *Params) { p.Bitmap = 1 << 63 },
		func(p *Params) { p.Limit++ },
		func(p *Params) { p.Limit = 1 << 63 },
	} {
		q := p
		change(&q)
		if err := Format(disk.NewMem(deviceOf(p)*disk.BlockSize), q); !errors.Is(err, ErrParams) {
			t.Errorf("%d: %v", i, err)
		}
	}
	q := Params{Start: 1, Units: 4, Ring: MinRing, First: 1 << 60, Limit: 1 << 60}
	if err := Format(disk.NewMem(q.Home()*disk.BlockSize), q); err != nil {
		t.Error("no bitmap:", err)
	}
	// a bitmap of two blocks that begins right before what it is for
	q = Params{Start: 1, Units: 4, Ring: MinRing}
	q.Bitmap, q.First, q.Limit = q.Home(), q.Home()+1, 40000
	if err := Format(disk.NewMem(q.Limit*disk.BlockSize), q); !errors.Is(err, ErrParams) {
		t.Error("a bitmap over its blocks:", err)
	}
	q.First++
	if err := Format(disk.NewMem(q.Limit*disk.BlockSize), q); err != nil {
		t.Error(err)
	}
}
