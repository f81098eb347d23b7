package journal

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/journal/journalthreads"
	"tansy/test/kit/replay"
)

// The tests here damage what is at home: every read gives the newest contents, or is refused, and what
// was not damaged can be read.

var long = flag.Bool("long", false, "damage every block in every way, on several trees of codes; minutes")

// A lived is a volume with a history.
type lived struct {
	p     Params
	d     *disk.Sim
	v     volume
	older disk.Disk // the same some time ago
	id    uint64
	at    int
}

// live makes a volume and changes it n times, several times over.
func live(t *testing.T, r *rand.Rand, p Params, n int) *lived {
	t.Helper()
	w := &lived{p: p, d: disk.NewSim(deviceOf(p) * disk.BlockSize)}
	if err := Format(w.d, p); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.older = w.d.Crash(disk.KeepAll)
		j, err := Open(w.d, p, quiet)
		if err != nil {
			t.Fatal(err)
		}
		readVolume(t, j, p) // so that it is known what is free
		if err := w.change(r, j, n); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// change commits n changes, durably.
func (w *lived) change(r *rand.Rand, j *Journal, n int) error {
	for range n {
		v := w.v
		w.id++
		ws, bulk := v.change(r, w.p, w.id, &w.at)
		for _, a := range bulk {
			j.Bulk(a)
		}
		if err := j.Commit(ws, true); err != nil {
			return err
		}
		w.v = v
	}
	return nil
}

// crash is the volume after n more changes, all in the log, and a crash.
func (w *lived) crash(t *testing.T, r *rand.Rand, n int) *lived {
	t.Helper()
	c := *w
	c.d = w.d.Crash(disk.KeepAll)
	c.older = w.d
	j, err := Open(c.d, c.p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	readVolume(t, j, c.p)
	if err := c.change(r, j, n); err != nil {
		t.Fatal(err)
	}
	dead := c.d.Crash(disk.KeepAll)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	c.d = dead
	return &c
}

// want is the contents that block a must have, or nil if no one may rely on them.
func (w *lived) want(a uint64) []byte {
	switch i := a - w.p.Bitmap; {
	case a < w.p.Bitmap || a >= w.p.Limit:
		return make([]byte, disk.BlockSize)
	case i == 0:
		return w.v.bitmap(w.p)
	case i <= metas:
		return contents(w.v.meta[i-1])
	case w.v.used[i-1-metas]:
		return contents(w.v.val[i-1-metas])
	}
	return nil
}

// stands says whether block a cannot be vouched for if the blocks hit are damaged.
func stands(p Params, size, a uint64, hit []uint64) bool {
	if slices.Contains(hit, a) {
		return true
	}
	for b := range p.TreeBlocks(a, size) {
		if slices.Contains(hit, b) || slices.Contains(hit, b+1) {
			return true
		}
	}
	return false
}

// judge opens the volume and reads all of it: what is hit may be refused, the rest may not. It returns nil if
// it cannot be opened, which it may not be if there is something in the log.
func (w *lived) judge(t *testing.T, what string, hit []uint64, logged bool) *Journal {
	t.Helper()
	j, err := Open(w.d, w.p, quiet)
	if err != nil {
		if !logged || !errors.Is(err, ErrDamaged) {
			t.Fatalf("%s: not opened: %v", what, err)
		}
		return nil
	}
	b := make([]byte, disk.BlockSize)
	for a := w.p.Home(); a < w.d.Size(); a++ {
		if a > w.p.Limit+600 { // nothing was ever written there
			a = min(a+500, w.d.Size()-1)
		}
		want := w.want(a)
		switch err := j.Read(a, b); {
		case err == nil && want != nil && !bytes.Equal(b, want):
			t.Fatalf("%s: block %d: other contents than were written", what, a)
		case err != nil && !errors.Is(err, ErrNotAsWritten):
			t.Fatalf("%s: block %d: %v", what, a, err)
		case err != nil && want != nil && !stands(w.p, w.d.Size(), a, hit):
			t.Fatalf("%s: block %d, which is not damaged, is refused: %v", what, a, err)
		}
	}
	return j
}

// endure has the volume judged, changed, crashed, and judged again.
func (w *lived) endure(t *testing.T, what string, r *rand.Rand, hit []uint64, logged bool) {
	t.Helper()
	for round := range 2 {
		j := w.judge(t, fmt.Sprintf("%s, opening %d", what, round+1), hit, logged || round > 0)
		if j == nil {
			return
		}
		err := w.change(r, j, 3)
		if err != nil && !(errors.Is(err, ErrReadOnly) && errors.Is(err, ErrNotAsWritten)) {
			t.Fatalf("%s: %v", what, err)
		}
		if err != nil { // it is not known whether the last change is there
			_ = j.Close()
			return
		}
		if round == 0 {
			next := w.d.Crash(disk.KeepAll)
			_ = j.Close() // fails if the tree is damaged
			w.d = next
			continue
		}
		_ = j.Close()
	}
}

// TestDamageAtHome: home blocks and pages of the tree of codes are damaged, one by one, at rest and after a crash.
func TestDamageAtHome(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	sizes := []uint64{600}
	if *long {
		sizes = []uint64{1 + metas + datas, 600, 2000}
	}
	for _, n := range sizes {
		p := bitmappedFor(64, n)
		rest := live(t, r, p, 30)
		for _, w := range []*lived{rest, rest.crash(t, r, 12)} {
			damageAll(t, r, w)
		}
	}
}

func damageAll(t *testing.T, r *rand.Rand, w *lived) {
	p := w.p
	s, err := NewSurvey(w.d, p)
	if err != nil || s.Damaged() != nil {
		t.Fatal(s, err)
	}
	var sealed []uint64 // a group in the log seals them
	for _, g := range s.Groups {
		sealed = append(sealed, g.Direct...)
	}
	logged := len(s.Groups) > 0
	harmed := 0
	for a := p.Start - 2*p.Pages; a < w.d.Size(); a++ {
		tree := a < p.Start
		if a >= p.Start && a < p.Bitmap || a >= p.Limit && a > p.Limit+3 { // the log; nothing was written there
			continue
		}
		for _, h := range harms {
			if few > 1 && r.IntN(few) > 0 || !tree && !*long && r.IntN(6) > 0 ||
				slices.Contains(sealed, a) { // tested in damage_test.go
				continue
			}
			c := *w
			c.d = w.d.Crash(disk.KeepAll)
			other := p.Bitmap + r.Uint64N(p.Limit-p.Bitmap)
			if tree {
				other = p.Start - 2*p.Pages + r.Uint64N(2*p.Pages)
			}
			whole, hit := block(t, c.d, a), []uint64{a}
			if h.name == "misdirected" && !slices.Contains(sealed, other) {
				put(t, c.d, other, whole) // exchanged
				hit = append(hit, other)
			}
			bad := h.do(r, slices.Clone(whole), block(t, w.d, other), block(t, w.older, a))
			if bytes.Equal(bad, whole) {
				continue
			}
			put(t, c.d, a, bad)
			if err := c.d.Barrier(); err != nil {
				t.Fatal(err)
			}
			harmed++
			c.endure(t, fmt.Sprintf("block %d %s, log %v", a, h.name, logged), r, hit, logged && tree)
		}
	}
	t.Logf("%d pages, %d groups in the log: %d damages", p.Pages, len(s.Groups), harmed)
}

// TestExchangedPlaces: a page of the tree counts wherever it is found, in the place that it says or in the other, and
// stays there until the header tells of the next version: with the places of every page exchanged nothing is lost,
// wherever the next installation crashes.
func TestExchangedPlaces(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	p := bitmappedFor(64, 600)
	w := live(t, r, p, 30)
	for a := p.Start - 2*p.Pages; a < p.Start; a += 2 {
		one, other := block(t, w.d, a), block(t, w.d, a+1)
		put(t, w.d, a, other)
		put(t, w.d, a+1, one)
	}
	if err := w.d.Barrier(); err != nil {
		t.Fatal(err)
	}
	j := w.judge(t, "exchanged", nil, false)
	w.d.Record()
	crashes := 0
	for round := range uint64(3) {
		w.v.meta[0] = 1000 + round
		if err := j.Commit([]Write{{p.Bitmap + 1, contents(w.v.meta[0])}}, true); err != nil {
			t.Fatal(err)
		}
		first := w.d.Ops()
		journalthreads.Drain(j.core)
		for n := first; n <= w.d.Ops(); n++ {
			for _, left := range []disk.Choice{disk.KeepAll, disk.RandomChoice(r, true)} {
				c := *w
				c.d = w.d.At(n).Crash(left)
				crashes++
				_ = c.judge(t, fmt.Sprintf("installation %d, crash after operation %d", round+1, n), nil, false).Close()
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d crashes", crashes)
}

// A liar is a device that loses one write of a block, or makes it elsewhere.
type liar struct {
	*disk.Sim
	p Params

	mu   sync.Mutex
	left int // writes before that, of blocks that are none of the log's
	to   uint64
	hit  []uint64
}

func (l *liar) WriteAt(a uint64, bufs [][]byte) error {
	for i, b := range bufs {
		at := a + uint64(i)
		if l.lies(at) {
			if at = l.to; at == 0 {
				continue
			}
		}
		if err := l.Sim.WriteAt(at, [][]byte{b}); err != nil {
			return err
		}
	}
	return nil
}

// lies says whether this is the write, of block a.
func (l *liar) lies(a uint64) bool {
	if a >= l.p.Start && a < l.p.Home() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left--
	if l.left != 0 {
		return false
	}
	l.hit = []uint64{a, l.to}
	return true
}

// lied says whether the write has come.
func (l *liar) lied() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.hit) > 0
}

// TestDamageByWrites: one write of a home block, or of a page of the tree, is lost, or changes another block.
func TestDamageByWrites(t *testing.T) {
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	p := bitmappedFor(64, 600)
	rest := live(t, r, p, 30)
	step := 5 * few
	if *long {
		step = 1
	}
	for misdirected := range 2 {
		lied := 0
		for n := 1 + r.IntN(step); ; n += step {
			w := *rest
			l := &liar{Sim: rest.d.Crash(disk.KeepAll), p: p, left: n}
			if misdirected == 1 {
				if l.to = p.Start - 2*p.Pages + r.Uint64N(2*p.Pages); r.IntN(3) > 0 {
					l.to = p.Bitmap + r.Uint64N(p.Limit-p.Bitmap)
				}
			}
			j, err := Open(l, p, quiet)
			if err != nil {
				t.Fatal(err)
			}
			readVolume(t, j, p)
			same := rand.New(rand.NewPCG(seed, 7)) // the same changes each time
			for range 3 {
				if err := w.change(same, j, 5); err != nil {
					break // the tree is damaged
				}
				journalthreads.Drain(j.core)
			}
			if len(j.Damaged()) == 0 {
				if err := w.change(same, j, 2); err != nil && !(l.lied() && errors.Is(err, ErrNotAsWritten)) { // it may be noticed only now
					t.Fatal(err)
				}
			}
			w.d = l.Crash(disk.KeepAll)
			_ = j.Close()
			if len(l.hit) == 0 {
				break // all writes were tried
			}
			s, err := NewSurvey(w.d, p)
			if err != nil {
				t.Fatal(err)
			}
			if k := len(s.Groups); k > 0 && !s.Groups[k-1].Sound {
				continue // looks like a commit that a crash interrupted: not noticed (README.md)
			}
			lied++
			w.endure(t, fmt.Sprintf("write %d, of block %d to %d", n, l.hit[0], l.to), r, l.hit, len(s.Groups) > 0)
		}
		t.Logf("%d writes, misdirected %v", lied, misdirected == 1)
	}
}

// TestPagesForgotten: a tree of more pages than there is room for in memory.
func TestPagesForgotten(t *testing.T) {
	const places = 1500 // each in a page of its own
	seed := replay.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	p := coded(roomy, places*255)
	d := disk.NewMem((p.Home() + places*255) * disk.BlockSize)
	if err := Format(d, p); err != nil {
		t.Fatal(err)
	}
	var val [places]uint64
	buf := make([]byte, disk.BlockSize)
	for round := range uint64(3) {
		j, err := Open(d, p, quiet) // with the least room for pages there is: 1024
		if err != nil {
			t.Fatal(err)
		}
		for k := range uint64(4000) {
			i := r.Uint64N(places)
			if k%3 == 0 {
				val[i] = round*4000 + k + 1
				if err := j.Commit([]Write{{p.Home() + 255*i, contents(val[i])}}, k%64 == 0); err != nil {
					t.Fatal(err)
				}
				continue
			}
			forget(j, p.Home()+255*i, 1)
			if err := j.Read(p.Home()+255*i, buf); err != nil || !bytes.Equal(buf, contents(val[i])) {
				t.Fatalf("block of page %d: %v", i, err)
			}
			if k%1000 == 999 {
				journalthreads.Drain(j.core)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(j.Damaged()); n > 0 {
			t.Fatalf("%d blocks are said to be damaged", n)
		}
	}
}

// TestReadBesideInstallation: what a read that began before a commit finds while that is installed is not yet
// what the tree says, and is no damage.
func TestReadBesideInstallation(t *testing.T) {
	p := coded(roomy, homeBlocks)
	read, written := newStop(), newStop()
	d := stopping{disk.NewMem(sizeOf(p) * disk.BlockSize), p, read, written}
	if err := Format(d.Disk, p); err != nil {
		t.Fatal(err)
	}
	j, err := Open(d.Disk, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Commit([]Write{{p.Home(), contents(1)}}, true); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = Open(d, p, quiet); err != nil {
		t.Fatal(err)
	}
	read.arm()
	got := make(chan error)
	buf := make([]byte, disk.BlockSize)
	go func() { got <- j.Read(p.Home(), buf) }()
	<-read.reached
	if err := j.Commit([]Write{{p.Home(), contents(2)}}, true); err != nil {
		t.Fatal(err)
	}
	written.arm()
	journalthreads.Settle(j.core)
	<-written.reached // it is home, the header is not written
	close(read.goOn)
	if err := <-got; err != nil || !bytes.Equal(buf, contents(2)) || len(j.Damaged()) > 0 {
		t.Errorf("%v, %d, damaged: %v", err, buf[0], j.Damaged())
	}
	close(written.goOn)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A stop holds up one operation once it is armed.
type stop struct {
	armed         atomic.Bool
	reached, goOn chan struct{}
}

func newStop() *stop { return &stop{reached: make(chan struct{}), goOn: make(chan struct{})} }

func (s *stop) arm() { s.armed.Store(true) }

func (s *stop) here() {
	if s.armed.CompareAndSwap(true, false) {
		close(s.reached)
		<-s.goOn
	}
}

// stopping is a device that can be held up before a read of the first home block, and before a write of the header.
type stopping struct {
	disk.Disk
	p             Params
	read, written *stop
}

func (d stopping) ReadAt(a uint64, bufs [][]byte) error {
	if a == d.p.Home() {
		d.read.here()
	}
	return d.Disk.ReadAt(a, bufs)
}

func (d stopping) WriteAt(a uint64, bufs [][]byte) error {
	if a == d.p.Start {
		d.written.here()
	}
	return d.Disk.WriteAt(a, bufs)
}

// TestUnreadablePlace: a page can be read as long as one of its places can, that which counts.
func TestUnreadablePlace(t *testing.T) {
	p := coded(roomy, homeBlocks)
	d := formatted(t, p)
	j, err := Open(d, p, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Commit([]Write{{p.Home(), contents(1)}}, true); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Inspect(d, p)
	if err != nil {
		t.Fatal(err)
	}
	counts := uint64(0)
	for page := range s.Pages() {
		counts = page.Block
	}
	boom := errors.New("boom")
	for at := p.Start - 2; at < p.Start; at++ {
		j, err := Open(unreadable(d.Crash(disk.KeepAll), at, boom), p, quiet)
		if err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, disk.BlockSize)
		err = j.Read(p.Home(), buf)
		if at == counts && !errors.Is(err, boom) || at != counts && (err != nil || !bytes.Equal(buf, contents(1))) {
			t.Errorf("block %d, block %d counts: %v", at, counts, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDepends: the codes of a range of blocks depend on the pages that one of its blocks needs, and on no others.
func TestDepends(t *testing.T) {
	for _, n := range []uint64{600, 2000, 70000, 200000} {
		p := bitmappedFor(64, n)
		size := p.Home() + n
		for _, r := range [][2]uint64{{0, 1}, {0, 300}, {200, 900}, {254, 255}, {500, n}, {n - 1, n}, {7, 7}} {
			a, end := p.Home()+r[0], min(p.Home()+r[1], size)
			needed := map[uint64]bool{}
			for b := a; b < end; b++ {
				for q := range p.TreeBlocks(b, size) {
					needed[q], needed[q+1] = true, true
				}
			}
			for q := p.Start - 2*p.Pages - 1; q <= p.Start; q++ {
				if p.Depends(q, a, end, size) != needed[q] {
					t.Errorf("%d blocks, %v: page in block %d: %v", n, r, q, !needed[q])
				}
			}
		}
	}
}
