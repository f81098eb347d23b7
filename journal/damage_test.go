package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/journal/journalthreads"
	"tansy/test/kit/replay"
)

// roomy is a log with many groups before anything is installed.
var roomy = Params{Start: 1, Units: 128, Ring: MinRing, Key: [32]byte{7}, UUID: [16]byte{9}}

// crashed is a device whose server was killed with a log of some groups, each acknowledged
// before the next. It returns the device, and what was committed.
func crashed(t *testing.T, r *rand.Rand, groups int) (*disk.Sim, history) {
	t.Helper()
	h := newHistory(r, groups)
	d := formatted(t, roomy)
	j, err := Open(d, roomy, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range h {
		if err := j.Commit(h.writes(roomy, i), true); err != nil {
			t.Fatal(err)
		}
	}
	dead := d.Crash(disk.KeepAll)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dead, h
}

func block(t *testing.T, d disk.Disk, a uint64) []byte {
	t.Helper()
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, d disk.Disk, a uint64, b []byte) {
	t.Helper()
	if err := d.WriteAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
}

// harms are what a medium may do to a block of d: other is what another block of the log holds,
// and old what this block held when the log had gone round once less.
var harms = []struct {
	name string
	do   func(r *rand.Rand, b, other, old []byte) []byte
}{
	{"bit", func(r *rand.Rand, b, _, _ []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b }},
	{"zeroed", func(_ *rand.Rand, b, _, _ []byte) []byte { clear(b); return b }},
	{"misdirected", func(_ *rand.Rand, b, other, _ []byte) []byte { copy(b, other); return b }},
	{"stale", func(_ *rand.Rand, b, _, old []byte) []byte { copy(b, old); return b }},
}

// TestDamageInLog: a block of any live group but the last is damaged. Whatever it is and however,
// the journal is not opened, the error says so, and nothing is changed: with the
// block as it was, everything acknowledged is there.
func TestDamageInLog(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	const groups = 12
	before := formatted(t, roomy)
	d, h := crashed(t, r, groups)
	acked := h.state(groups)
	s, err := NewSurvey(d, roomy)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Groups) < 2 || s.Damaged() != nil || s.First == 0 {
		t.Fatalf("%+v", s)
	}
	for i, g := range s.Groups {
		if !g.Sealed || !g.Sound || g.Number != s.First+uint64(i) || len(g.Addrs) == 0 {
			t.Fatalf("group %d: %+v", i, g)
		}
	}
	for i, g := range s.Groups[:len(s.Groups)-1] {
		for _, h := range harms {
			a := g.Block
			if n := len(g.Addrs); n < UnitBlocks && r.IntN(2) == 0 {
				a += 1 + uint64(r.IntN(n))
			}
			whole := block(t, d, a)
			bad := h.do(r, block(t, d, a), block(t, d, s.Groups[len(s.Groups)-1].Block+1), block(t, before, a))
			if string(bad) == string(whole) {
				continue
			}
			put(t, d, a, bad)
			was := d.Crash(disk.KeepAll)
			_, err := Open(d, roomy, quiet)
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("group %d, block %d %s: opened: %v", i, a, h.name, err)
			}
			for a := range d.Size() {
				if string(block(t, d, a)) != string(block(t, was, a)) {
					t.Fatalf("group %d %s: block %d was changed by the attempt", i, h.name, a)
				}
			}
			if s2, err := NewSurvey(d, roomy); err != nil || s2.Damaged() == nil || s2.Damaged().Number != g.Number {
				t.Fatalf("group %d %s: survey: %+v, %v", i, h.name, s2, err)
			}
			put(t, d, a, whole)
		}
		boom := errors.New("boom")
		_, err := Open(unreadable(d.Crash(disk.KeepAll), g.Block, boom), roomy, quiet)
		if e := new(disk.Error); !errors.Is(err, boom) || !errors.As(err, &e) || e.Block != g.Block {
			t.Fatalf("group %d unreadable: %v", i, err)
		}
	}
	if got := recovered(t, d, roomy); got != acked {
		t.Fatalf("%v, acknowledged %v", got, acked)
	}
}

// unreadable is d, but that reads of block a fail.
func unreadable(d disk.Disk, a uint64, why error) disk.Disk {
	return disk.NewFault(d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Read && op.Addr <= a && a < op.Addr+uint64(op.Blocks) {
			return disk.Harm{Err: why}
		}
		return disk.Harm{}
	})
}

// TestDamagedDirectBlock: what a live group has at home only is a part of it like what it has in the log: no damage to
// it of any kind goes unnoticed, with a tree of codes or without; nor do two blocks of a group that are exchanged.
func TestDamagedDirectBlock(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	for _, p := range []Params{roomy, coded(roomy, homeBlocks)} {
		damageDirect(t, r, p)
	}
}

func damageDirect(t *testing.T, r *rand.Rand, p Params) {
	p.Bitmap, p.First, p.Limit = p.Home(), p.Home()+1, p.Home()+homeBlocks
	d := formatted(t, p)
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Read(p.Bitmap, make([]byte, disk.BlockSize)); err != nil { // so that it is known what is free
		t.Fatal(err)
	}
	before := d.Crash(disk.KeepAll)
	for i := range uint64(6) {
		a := p.First + 2*i
		j.Bulk(a)
		j.Bulk(a + 1)
		if err := j.Commit([]Write{{a, contents(i + 1)}, {a + 1, contents(i + 2)}, {p.First + 20, contents(i + 1)}}, true); err != nil {
			t.Fatal(err)
		}
	}
	dead := d.Crash(disk.KeepAll)
	s, err := NewSurvey(dead, p)
	if err != nil || len(s.Groups) < 2 {
		t.Fatalf("%+v, %v", s, err)
	}
	for _, g := range s.Groups[:len(s.Groups)-1] {
		if len(g.Direct) != 2 || !g.Sound {
			t.Fatalf("%+v", g)
		}
		refused := func(what string) {
			t.Helper()
			if _, err := Open(dead, p, quiet); !errors.Is(err, ErrDamaged) {
				t.Fatalf("group %d, direct blocks %d %s: %v", g.Number, g.Direct, what, err)
			}
		}
		whole := [2][]byte{block(t, dead, g.Direct[0]), block(t, dead, g.Direct[1])}
		for i, a := range g.Direct {
			for _, h := range harms {
				put(t, dead, a, h.do(r, slices.Clone(whole[i]), whole[1-i], block(t, before, a)))
				refused(h.name)
			}
			put(t, dead, a, whole[i])
		}
		put(t, dead, g.Direct[0], whole[1])
		put(t, dead, g.Direct[1], whole[0])
		refused("exchanged")
		put(t, dead, g.Direct[0], whole[0])
		put(t, dead, g.Direct[1], whole[1])
	}
	j, err = Open(dead, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, disk.BlockSize)
	for i := range uint64(12) {
		if err := j.Read(p.First+i, buf); err != nil || string(buf) != string(contents(i/2+1+i%2)) {
			t.Errorf("block %d: %v", i, err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedLastGroup: the last group cannot be told from one whose commit a crash interrupted. What
// is recovered is then all that came before it, and no mixture.
func TestDamagedLastGroup(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d, h := crashed(t, r, 8)
	s, err := NewSurvey(d, roomy)
	if err != nil {
		t.Fatal(err)
	}
	g := s.Groups[len(s.Groups)-1]
	b := block(t, d, g.Block)
	b[disk.BlockSize-1] ^= 1
	put(t, d, g.Block, b)
	if got := recovered(t, d, roomy); got != h.state(7) {
		t.Fatalf("%v, not the first 7 of 8 commits: %v", got, h.state(7))
	}
}

// TestOldGroupsStayDead: groups of a log that was emptied never come back to life, also if the medium gives
// them back, numbers and all, after newer ones have taken their places.
func TestOldGroupsStayDead(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	old, _ := crashed(t, r, 10)
	d := old.Crash(disk.KeepAll)
	newer := recovered(t, d, roomy) // replays, empties the log, closes
	for i := range uint64(3) {
		j, err := Open(d, roomy, quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Commit([]Write{{roomy.Home() + i, contents(1000 + i)}}, true); err != nil {
			t.Fatal(err)
		}
		newer[i] = 1000 + i
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for a := roomy.Start + 1; a < roomy.copy(); a++ {
		put(t, d, a, block(t, old, a))
	}
	if got := recovered(t, d, roomy); got != newer {
		t.Fatalf("%v came back, not %v", got, newer)
	}
}

// TestHiddenGroups: an opening does not see the last groups, which the medium gives back later, behind one
// that was given a number of theirs again. They are not taken for groups that follow the new one.
func TestHiddenGroups(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d, _ := crashed(t, r, window+10)
	s, err := NewSurvey(d, roomy)
	if err != nil || len(s.Groups) < window+4 {
		t.Fatalf("%+v, %v", s, err)
	}
	hidden := s.Groups[len(s.Groups)-window-3:]
	var was [][]byte
	for _, g := range hidden {
		was = append(was, block(t, d, g.Block))
		put(t, d, g.Block, make([]byte, disk.BlockSize))
	}
	j, err := Open(d, roomy, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Commit([]Write{{roomy.Home(), contents(1000)}}, true); err != nil {
		t.Fatal(err)
	}
	again := d.Crash(disk.KeepAll)
	j.Close()
	if s, err := NewSurvey(again, roomy); err != nil || len(s.Groups) != 1 || s.Groups[0].Number != hidden[window].Number {
		t.Fatalf("%+v, %v", s, err)
	}
	for i := window + 1; i < len(hidden); i++ {
		put(t, again, hidden[i].Block, was[i])
	}
	if _, err := Open(again, roomy, quiet); !errors.Is(err, ErrDamaged) {
		t.Fatalf("opened with groups of another epoch behind the newest: %v", err)
	}
}

// TestDamagedHeader: either header may be lost in any way, and everything is there; then both are
// sound again. If both are lost the error names them.
func TestDamagedHeader(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d, h := crashed(t, r, 8)
	acked := h.state(8)
	stale := formatted(t, roomy)
	at := [2]uint64{roomy.Start, roomy.copy()}
	for i, a := range at {
		for _, h := range harms {
			c := d.Crash(disk.KeepAll)
			b := block(t, c, a)
			if h.name == "bit" {
				b[r.IntN(80)] ^= 1 << r.IntN(8)
			} else {
				b = h.do(r, b, block(t, d, roomy.Start+1), block(t, stale, a))
			}
			put(t, c, a, b)
			if got := recovered(t, c, roomy); got != acked {
				t.Fatalf("header %d %s: %v, acknowledged %v", i, h.name, got, acked)
			}
			if s, err := NewSurvey(c, roomy); err != nil || !s.Headers[0].Sound || !s.Headers[1].Sound || s.Headers[0].First != s.Headers[1].First {
				t.Fatalf("header %d %s: %+v, %v", i, h.name, s, err)
			}
		}
		boom := errors.New("boom")
		if got := recovered(t, unreadable(d.Crash(disk.KeepAll), a, boom), roomy); got != acked {
			t.Fatalf("header %d unreadable: %v, acknowledged %v", i, got, acked)
		}
	}
	c := d.Crash(disk.KeepAll)
	for _, a := range at {
		put(t, c, a, make([]byte, disk.BlockSize))
	}
	_, err := Open(c, roomy, quiet)
	want := fmt.Sprintf("neither block %d nor block %d", at[0], at[1])
	if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), want) {
		t.Fatalf("%v", err)
	}
}

// TestTwoServers: a second server opens the journal behind the first one's back. The first notices
// as soon as it looks, and acknowledges nothing after that; what the second acknowledged stays.
func TestTwoServers(t *testing.T) {
	d := disk.NewMem((roomy.Home() + homeBlocks) * disk.BlockSize)
	if err := Format(d, roomy); err != nil {
		t.Fatal(err)
	}
	first, err := Open(d, roomy, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Commit([]Write{{roomy.Home(), contents(1)}}, true); err != nil {
		t.Fatal(err)
	}
	second, err := Open(d, roomy, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Commit([]Write{{roomy.Home() + 1, contents(2)}}, true); err != nil {
		t.Fatal(err)
	}
	if !journalthreads.Guard(second.core) {
		t.Error("the second does not know its own mark")
	}
	if journalthreads.Guard(first.core) {
		t.Fatal("the first does not see the mark of the second")
	}
	for range 3 {
		if err := first.Commit([]Write{{roomy.Home() + 2, contents(3)}}, true); !errors.Is(err, ErrNotOwner) || !errors.Is(err, ErrReadOnly) {
			t.Fatalf("acknowledged, or another error: %v", err)
		}
	}
	first.Close()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	got := recovered(t, d, roomy)
	if got[0] != 1 || got[1] != 2 || got[2] != 0 {
		t.Errorf("%v", got[:3])
	}
}

// TestNoDirectWriteOverAnother: who has lost the journal writes no large new data home either.
func TestNoDirectWriteOverAnother(t *testing.T) {
	p := bitmapped(64)
	d := disk.NewMem(deviceOf(p) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	first, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	readVolume(t, first, p) // so that it is known what is free
	second, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	first.Bulk(p.First)
	if err := first.Commit([]Write{{p.First, contents(3)}}, true); !errors.Is(err, ErrNotOwner) {
		t.Errorf("acknowledged, or another error: %v", err)
	}
	if string(block(t, d, p.First)) == string(contents(3)) {
		t.Error("the block was written")
	}
	first.Close()
}

// TestNoInstallationOverAnother: who has lost the journal writes nothing home and no header.
func TestNoInstallationOverAnother(t *testing.T) {
	d := disk.NewMem((roomy.Home() + homeBlocks) * disk.BlockSize)
	if err := Format(d, roomy); err != nil {
		t.Fatal(err)
	}
	first, err := Open(d, roomy, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Commit([]Write{{roomy.Home(), contents(1)}}, true); err != nil {
		t.Fatal(err)
	}
	second, err := Open(d, roomy, quiet) // what is in the log is home now
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Commit([]Write{{roomy.Home(), contents(2)}}, true); err != nil {
		t.Fatal(err)
	}
	if err := second.Close(); err != nil { // ... and now this is
		t.Fatal(err)
	}
	head := block(t, d, roomy.Start)
	journalthreads.Settle(first.core)
	journalthreads.Drain(first.core) // ends because the journal has failed
	if !errors.Is(first.Failure(), ErrNotOwner) {
		t.Errorf("%v", first.Failure())
	}
	first.Close()
	if string(block(t, d, roomy.Start)) != string(head) {
		t.Error("the header was overwritten")
	}
	if string(block(t, d, roomy.Home())) != string(contents(2)) {
		t.Error("a home block was overwritten")
	}
}
