package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

// TestInspect: a snapshot, taken at any time, knows of every home block what was last committed to it, from the
// log or by its code, also of those that went straight home; and takes nothing else for it.
func TestInspect(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	const homes = 700
	pages, ok := PagesFor(homes)
	if !ok || pages < 3 {
		t.Fatal(pages, ok)
	}
	p := Params{Start: 1 + 2*pages, Pages: pages, Units: 4, Ring: MinRing, Key: [32]byte{7}, UUID: [16]byte{9}}
	p.Bitmap, p.First, p.Limit = p.Home(), p.Home()+350, p.Home()+homes // whose bits stay clear
	d := disk.NewSim((p.Home() + homes) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	zero := make([]byte, disk.BlockSize)
	if err := j.Read(p.Bitmap, make([]byte, disk.BlockSize)); err != nil {
		t.Fatal(err)
	}
	now, before := map[uint64][]byte{}, map[uint64][]byte{}
	last := func(m map[uint64][]byte, a uint64) []byte {
		if m[a] == nil {
			return zero
		}
		return m[a]
	}
	logged, sealed := 0, 0
	for round := range uint64(40) {
		var ws []Write
		for range 1 + r.IntN(30) {
			a := p.Home() + 1 + r.Uint64N(homes-1)
			if a >= p.First {
				j.Bulk(a)
			}
			ws = append(ws, Write{a, contents(1 + round)})
			before[a] = last(now, a)
			now[a] = contents(1 + round)
		}
		if err := j.Commit(ws, true); err != nil {
			t.Fatal(err)
		}
		s, err := Inspect(d.Crash(disk.KeepAll), p)
		if err != nil {
			t.Fatal(err)
		}
		logged, sealed = logged+len(s.Blocks), sealed+len(s.sealed)
		buf := make([]byte, disk.BlockSize)
		for a := p.Home(); a < d.Size(); a++ {
			if b := s.Blocks[a]; b != nil {
				if !bytes.Equal(b, last(now, a)) {
					t.Fatalf("round %d: the log has something else of block %d", round, a)
				}
				continue
			}
			if err := s.d.ReadAt(a, [][]byte{buf}); err != nil {
				t.Fatal(err)
			}
			if ok, bad := s.Genuine(a, buf); !ok || bad != a || !bytes.Equal(buf, last(now, a)) {
				t.Fatalf("round %d: block %d is not genuine, but %d is damaged", round, a, bad)
			}
			if s.sealed[a] {
				continue
			}
			bit := bytes.Clone(buf)
			bit[r.IntN(len(bit))] ^= 1 << r.IntN(8)
			for _, b := range [][]byte{bit, last(before, a), last(now, a^1)} {
				if ok, bad := s.Genuine(a, b); ok != bytes.Equal(b, buf) || bad != a {
					t.Fatalf("round %d: block %d: %v, block %d, of other contents", round, a, ok, bad)
				}
			}
		}
	}
	if logged == 0 || sealed == 0 {
		t.Errorf("%d blocks in the log, %d sealed at home", logged, sealed)
	}
	s, err := Inspect(d, p)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []uint64{0, p.Start, p.Home() - 1, d.Size(), 1 << 60} {
		if ok, bad := s.Genuine(a, zero); ok || bad != a {
			t.Errorf("block %d, which is not home, is genuine", a)
		}
	}
}

// TestPages: the pages of a snapshot's tree have the codes of all blocks but of zeros, each once; a damaged one is
// lost, with those below it.
func TestPages(t *testing.T) {
	const homes = 70_000 // three levels
	pages, ok := PagesFor(homes)
	if !ok {
		t.Fatal(pages)
	}
	p := Params{Start: 1 + 2*pages, Pages: pages, Units: 4, Ring: MinRing, Key: [32]byte{7}, UUID: [16]byte{9}}
	d := disk.NewMem((p.Home() + homes) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	s, err := Inspect(d, p)
	if err != nil {
		t.Fatal(err)
	}
	for p := range s.Pages() {
		t.Errorf("an empty journal's tree has a page: %+v", p)
	}
	want := []uint64{0, 1, 254, 255, 256, 10_000, 65_024, 65_025, 65_026, homes - 300, homes - 1}
	for i := range want {
		want[i] += p.Home()
	}
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range want {
		if err := j.Commit([]Write{{a, contents(a)}}, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Inspect(d, p); err != nil {
		t.Fatal(err)
	}
	var got, blocks []uint64
	for p := range s.Pages() {
		if p.Err != nil || p.Lost {
			t.Errorf("%+v", p)
		}
		got, blocks = append(got, p.Homes...), append(blocks, p.Block)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("codes of %v, want %v", got, want)
	}
	for range s.Pages() { // a caller may have seen enough
		break
	}
	for i, a := range blocks {
		whole := block(t, d, a)
		put(t, d, a, make([]byte, disk.BlockSize))
		if s, err = Inspect(d, p); err != nil {
			t.Fatal(err)
		}
		known, n := 0, 0
		for p := range s.Pages() {
			n++
			known += len(p.Homes)
			if p.Lost != (p.Block == a-(a-1)%2) || p.Lost != errors.Is(p.Err, ErrNotAsWritten) {
				t.Errorf("page %d: %+v", i, p)
			}
		}
		if i == 0 && n != 1 || i > 0 && n < 2 {
			t.Errorf("page %d lost: %d pages", i, n)
		}
		unknown := 0
		for _, x := range want {
			if ok, bad := s.Genuine(x, contents(x)); !ok {
				unknown++
				if bad != a-(a-1)%2 {
					t.Errorf("page %d: block %d is named", i, bad)
				}
			}
		}
		if known+unknown != len(want) {
			t.Errorf("page %d lost: %d codes known, %d not", i, known, unknown)
		}
		put(t, d, a, whole)
	}
}

// TestSurveyReads: of groups that are not live any more, which may be as many as the log has room for, only the
// descriptors are read.
func TestSurveyReads(t *testing.T) {
	d, h := crashed(t, rand.New(rand.NewPCG(replay.Seed(t), 0)), 40)
	if got := recovered(t, d, roomy); got != h.state(40) {
		t.Fatal(got)
	}
	counted := disk.NewStats(d)
	s, err := NewSurvey(counted, roomy)
	if err != nil || len(s.Groups) > 0 {
		t.Fatal(s, err)
	}
	if n := counted.Counts().ReadBlocks; n > roomy.Units+2 {
		t.Errorf("%d blocks were read of an empty log of %d units", n, roomy.Units)
	}
}
