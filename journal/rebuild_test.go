package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

// rebuild makes the tree of w anew where it is damaged, and has it judged: everything is there, and nothing refused.
func (w *lived) rebuild(t *testing.T, what string) Rebuilt {
	t.Helper()
	done, err := Rebuild(w.d, w.p)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	j := w.judge(t, what, nil, false)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return done
}

// TestRebuild: pages that are damaged are made anew, at rest and with something in the log. What is home is not
// touched.
func TestRebuild(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	for _, n := range []uint64{1 + metas + datas, 600, 70_000} {
		p := bitmappedFor(64, n)
		rest := live(t, r, p, 30)
		for _, w := range []*lived{rest, rest.crash(t, r, 12)} {
			if done, err := Rebuild(w.d.Crash(disk.KeepAll), p); err != nil || len(done.Lost)+len(done.Misplaced)+len(done.Homes) > 0 {
				t.Fatalf("of a sound tree: %+v, %v", done, err)
			}
			for q := range p.Pages {
				at := p.Start - 2*(p.Pages-q)
				c := *w
				c.d = w.d.Crash(disk.KeepAll)
				one, two := block(t, c.d, at), block(t, c.d, at+1)
				if bytes.Equal(one, two) {
					continue // no page yet
				}
				one[r.IntN(len(one))] ^= 1
				two[r.IntN(len(two))] ^= 1
				put(t, c.d, at, one)
				put(t, c.d, at+1, two)
				done := c.rebuild(t, "page rebuilt")
				if len(done.Lost) != 1 || done.Lost[0] != at || len(done.Homes) == 0 || done.Homes[0].From < p.Home() {
					t.Errorf("page %d: %+v", q, done)
				}
				for _, b := range done.Homes {
					for a := b.From; a < b.To; a++ {
						if !stands(p, c.d.Size(), a, []uint64{at}) {
							t.Errorf("page %d: block %d has a new code", q, a)
						}
					}
				}
				if done := c.rebuild(t, "again"); len(done.Lost) > 0 {
					t.Errorf("again: %+v", done)
				}
			}
		}
	}
}

// TestRebuildInterrupted: a crash in it leaves what another one finishes, and no other page is lost by it.
func TestRebuildInterrupted(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	rest := live(t, r, bitmappedFor(64, 600), 30)
	w := rest.crash(t, r, 12)
	p := w.p
	crashes := 16 // at each operation: four seldom have the header there and a page of its tree not
	if testing.Short() {
		crashes = 4
	}
	for q := range p.Pages {
		d := w.d.Crash(disk.KeepAll)
		for at := p.Start - 2*(p.Pages-q); at < p.Start-2*(p.Pages-q)+2; at++ {
			put(t, d, at, make([]byte, disk.BlockSize))
		}
		if err := d.Barrier(); err != nil {
			t.Fatal(err)
		}
		d.Record()
		first := d.Ops()
		if _, err := Rebuild(d, p); err != nil {
			t.Fatal(err)
		}
		for n := first; n <= d.Ops(); n++ {
			for img := range d.At(n).Crashes(crashes, seed, true) {
				c := *w
				c.d = img
				again := c.rebuild(t, "after a crash")
				if n := len(again.Lost); n > 1 || n == 1 && again.Lost[0] != p.Start-2*(p.Pages-q) {
					t.Errorf("page %d was lost, and after a crash %d", p.Start-2*(p.Pages-q), again.Lost)
				}
			}
		}
	}
}

// TestRebuildMisplaced: a page that lies where its next version would be written gets its own place.
func TestRebuildMisplaced(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	w := live(t, r, bitmappedFor(64, 600), 30)
	at := w.p.Start - 2
	counts := block(t, w.d, at)
	if s, err := Inspect(w.d, w.p); err != nil {
		t.Fatal(err)
	} else {
		for page := range s.Pages() { // the root is the first
			counts, at = block(t, w.d, page.Block), page.Block
			break
		}
	}
	other := at + 1
	if (w.p.Start-at)%2 == 1 {
		other = at - 1
	}
	put(t, w.d, other, counts)
	put(t, w.d, at, make([]byte, disk.BlockSize))
	if done := w.rebuild(t, "misplaced"); len(done.Misplaced) != 1 || done.Misplaced[0] != at || !bytes.Equal(block(t, w.d, at), counts) {
		t.Errorf("%+v", done)
	}
}

// A sparse is a large journal on a device that knows what is zeros, with a few blocks far apart.
type sparse struct {
	p      Params
	d      *disk.Mem
	blocks []uint64
}

// newSparse makes one of so many blocks of 4 KiB with count of them written.
func newSparse(t *testing.T, n, count uint64) *sparse {
	t.Helper()
	n = n / 254 * 254
	p := coded(small, n+1)
	s := &sparse{p: p, d: disk.NewMem((p.Home() + n + 1) * disk.BlockSize)}
	if err := Format(s.d, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(s.d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range count {
		a := p.Home() + i*(n/(count+1))
		s.blocks = append(s.blocks, a)
		if err := j.Commit([]Write{{a, contents(i + 1)}}, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return s
}

// read opens the journal and wants to find what was written.
func (s *sparse) read(t *testing.T, what string) {
	t.Helper()
	j, err := Open(s.d, s.p, quiet)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	buf := make([]byte, disk.BlockSize)
	for i, a := range s.blocks {
		if err := j.Read(a, buf); err != nil || !bytes.Equal(buf, contents(uint64(i)+1)) {
			t.Fatalf("%s: block %d: %v", what, a, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// lose overwrites both places of the page that lies in one of them.
func (s *sparse) lose(t *testing.T, page uint64) {
	t.Helper()
	first := page - (page-(s.p.Start-2*s.p.Pages))%2
	for _, at := range []uint64{first, first + 1} {
		put(t, s.d, at, make([]byte, disk.BlockSize))
	}
}

// TestRebuildSparse: what the device knows to be zeros costs next to nothing.
func TestRebuildSparse(t *testing.T) {
	s := newSparse(t, 10<<40/disk.BlockSize, 20)
	s.lose(t, s.p.Start-1)
	c := disk.NewStats(s.d)
	done, err := Rebuild(c, s.p)
	if err != nil || len(done.Lost) != 1 || len(done.Homes) != 20 {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := c.Counts().ReadBlocks; n > 10_000 {
		t.Errorf("%d blocks were read", n)
	}
	s.read(t, "rebuilt")
}

// TestRebuildLevels: of a tree of four levels any two pages are lost at once, also a page and one of a higher level
// that is not above it. Both are made anew.
func TestRebuildLevels(t *testing.T) {
	const blocks = 200 << 30 / disk.BlockSize
	for i := 0; ; i++ {
		for k := range i {
			s := newSparse(t, blocks, 3)
			snap, err := Inspect(s.d, s.p)
			if err != nil {
				t.Fatal(err)
			}
			var there []uint64
			for page := range snap.Pages() {
				there = append(there, page.Block)
			}
			if i == len(there) {
				return
			}
			s.lose(t, there[i])
			s.lose(t, there[k])
			what := fmt.Sprintf("pages in blocks %d and %d of %d", there[i], there[k], s.p.Start)
			if done, err := Rebuild(s.d, s.p); err != nil || len(done.Lost) == 0 {
				t.Fatalf("%s: %+v, %v", what, done, err)
			}
			s.read(t, what)
			if again, err := Rebuild(s.d, s.p); err != nil || len(again.Lost) > 0 {
				t.Fatalf("%s: again: %+v, %v", what, again, err)
			}
		}
	}
}
