package journal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/journal/journalm"
	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/seal"
	"tansy/test/kit/replay"
)

// A written group is one whose blocks were handed to the device.
type written struct {
	number, durable uint64
	blocks          []uint64 // its descriptor, and its data
}

// The tools count with as many groups that are not known to be durable as the verified code lets there be.
func TestWindow(t *testing.T) {
	if want := journalm.WINDOW(); window != want {
		t.Errorf("%d groups, and in the verified code %d", window, want)
	}
}

// pendingLog writes groups to a log, as a server does that has up to window of them pending. It returns the device,
// what was committed, and the groups; those from number durable on were still pending at the end.
func pendingLog(t *testing.T, r *rand.Rand, groups int) (d *disk.Sim, h history, w []written, durable uint64) {
	t.Helper()
	h = newHistory(r, groups)
	d = formatted(t, roomy)
	s := seal.New(roomy.Key, roomy.UUID, roomy.Home())
	head := dbytes.BlkOf(block(t, d, roomy.Start))
	ok, first := s.DecHdr(head)
	if !ok {
		t.Fatal("no header")
	}
	s.Continue(head)
	durable, pos := first, uint64(0)
	for i := range h {
		g := written{number: first + uint64(i)}
		if n := g.number - durable; r.IntN(6) == 0 || n == window { // a barrier ends, which may have begun before the last ones
			durable += 1 + r.Uint64N(max(n, 1))
			durable = min(durable, g.number)
		}
		g.durable = durable
		m := blockmap.New()
		for _, b := range h.writes(roomy, i) {
			m.Put(b.Addr, dbytes.BlkOf(b.Data))
		}
		desc, _ := s.Sign(g.number, durable, pos, m, blockmap.New())
		at := roomy.Start + 1 + UnitBlocks*(g.number%roomy.Units)
		put(t, d, at, desc.Data())
		g.blocks = []uint64{at}
		n := m.Len()
		for k := range n {
			a := at + 1 + k
			if n >= UnitBlocks {
				a = roomy.Start + 1 + UnitBlocks*roomy.Units + (pos+k)%roomy.Ring
			}
			put(t, d, a, m.BlkAt(k).Data())
			g.blocks = append(g.blocks, a)
		}
		pos += n
		w = append(w, g)
	}
	return d, h, w, durable
}

// TestPending: of the groups that were pending when a crash came any may be there, whole or in part. Recovery finds
// those before the first that is not whole, and does not take what is behind for a sign of damage; and no later group
// gets a number of those that were there.
func TestPending(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	gaps := 0
	for range 60 {
		d, h, w, durable := pendingLog(t, r, 1+r.IntN(45))
		first := w[0].number
		end := first + uint64(len(w)) // where the log will end
		share := r.IntN(4)
		for _, g := range w {
			if g.number < durable || r.IntN(4) > share {
				continue
			}
			end = min(end, g.number)
			b := make([]byte, disk.BlockSize)
			a := g.blocks[r.IntN(len(g.blocks))]
			if r.IntN(2) == 0 {
				b = block(t, d, a)
				b[r.IntN(len(b))] ^= 1
			}
			put(t, d, a, b)
		}
		s, err := NewSurvey(d, roomy)
		if err != nil || s.Damaged() != nil || uint64(len(s.Log())) != end-first {
			t.Fatalf("%d groups, of which %d are whole, %d durable: %+v, %v", len(w), end-first, durable-first, s, err)
		}
		if len(s.Groups) > len(s.Log())+1 {
			gaps++
		}
		j, err := Open(d, roomy, quiet)
		if err != nil {
			t.Fatalf("%d groups, of which %d are whole, %d durable: %v", len(w), end-first, durable-first, err)
		}
		if got := readState(t, j, roomy); got != h.state(int(end-first)) {
			t.Fatalf("%d groups, of which %d are whole: %v", len(w), end-first, got)
		}
		if err := j.Commit([]Write{{roomy.Home(), contents(1000)}}, true); err != nil {
			t.Fatal(err)
		}
		dead := d.Crash(disk.KeepAll)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err := NewSurvey(dead, roomy); err != nil || s.First != end+window || len(s.Log()) != 1 {
			t.Fatalf("the log ended before %d: %+v, %v", end, s, err)
		}
		want := h.state(int(end - first))
		want[0] = 1000
		if got := recovered(t, dead, roomy); got != want {
			t.Fatalf("%v, not %v", got, want)
		}
	}
	if gaps == 0 {
		t.Error("no group was there without one before it")
	}
}

// TestDamageAmongPending: a group that a later one says was durable is damaged if it is not whole, whatever became of
// those between.
func TestDamageAmongPending(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	for range 20 {
		d, _, w, _ := pendingLog(t, r, window+8) // so many that some are said to be durable
		said := w[len(w)-1].durable
		g := w[r.Uint64N(said-w[0].number)]
		put(t, d, g.blocks[r.IntN(len(g.blocks))], make([]byte, disk.BlockSize))
		for _, g := range w[said-w[0].number : len(w)-1] {
			if r.IntN(2) == 0 {
				put(t, d, g.blocks[0], make([]byte, disk.BlockSize))
			}
		}
		was := d.Crash(disk.KeepAll)
		if _, err := Open(d, roomy, quiet); !errors.Is(err, ErrDamaged) {
			t.Fatalf("group %d of %d..%d, all before %d were durable: %v", g.number, w[0].number, w[len(w)-1].number, said, err)
		}
		for a := range d.Size() {
			if string(block(t, d, a)) != string(block(t, was, a)) {
				t.Fatalf("block %d was changed by the attempt", a)
			}
		}
		if s, err := NewSurvey(d, roomy); err != nil || s.Damaged() == nil || s.Damaged().Number != g.number {
			t.Fatalf("%+v, %v", s, err)
		}
	}
}

// TestPendingLies: a pending group that never got there is shown by the device all the same, once. Those behind it are
// there, as many as there may be; they are not taken for the log.
func TestPendingLies(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	refused := 0
	for range 20 {
		d, _, w, durable := pendingLog(t, r, 20+r.IntN(20))
		if durable == w[0].number+uint64(len(w)) {
			continue
		}
		g := w[durable-w[0].number]
		a := g.blocks[r.IntN(len(g.blocks))]
		lie := block(t, d, a)
		put(t, d, a, make([]byte, disk.BlockSize))
		was := d.Crash(disk.KeepAll)
		if _, err := Open(&lying{d, a, lie, 1}, roomy, quiet); !errors.Is(err, ErrDamaged) {
			t.Fatalf("group %d of %d..%d: %v", g.number, w[0].number, w[len(w)-1].number, err)
		}
		for a := range d.Size() {
			if string(block(t, d, a)) != string(block(t, was, a)) {
				t.Fatalf("block %d was changed by the attempt", a)
			}
		}
		refused++
	}
	if refused == 0 {
		t.Error("no group was pending")
	}
}

// TestEarlierLog: a log of which every descriptor and both headers are in the format before there were pending groups,
// with all before each group durable, is recovered; the headers become newer ones.
func TestEarlierLog(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d, h := crashed(t, r, 12)
	s, err := NewSurvey(d, roomy)
	if err != nil {
		t.Fatal(err)
	}
	older(t, d, s)
	was := d.Crash(disk.KeepAll)
	if got := recovered(t, d, roomy); got != h.state(12) {
		t.Fatal(got)
	}
	for _, h := range s.Headers {
		if b := block(t, d, h.Block); string(b[:8]) != "TansyHd7" {
			t.Errorf("the header is still %q", b[:8])
		}
	}
	g := s.Groups[len(s.Groups)-2]
	put(t, was, g.Block, make([]byte, disk.BlockSize))
	if _, err := Open(was, roomy, quiet); !errors.Is(err, ErrDamaged) {
		t.Errorf("a damaged group of an older log: %v", err)
	}
}

// older gives the headers of the log s, and all its descriptors, the format before there were pending groups.
func older(t *testing.T, d disk.Disk, s *Survey) {
	t.Helper()
	key := sha256.Sum256(append([]byte("tansy journal header v3"), roomy.Key[:]...))
	for _, h := range s.Headers {
		b := block(t, d, h.Block)
		copy(b, "TansyHd6")
		mac := hmac.New(sha256.New, key[:])
		mac.Write(b[:64])
		copy(b[64:], mac.Sum(nil))
		put(t, d, h.Block, b)
	}
	for _, g := range s.Groups {
		b := block(t, d, g.Block)
		copy(b, "TansyLg4")
		if binary.LittleEndian.Uint16(b[42:]) != 0 {
			t.Fatalf("group %d: not all before it were durable", g.Number)
		}
		key := sha256.Sum256(slices.Concat([]byte("tansy journal seal v3"), roomy.Key[:], b[48:64]))
		c, err := aes.NewCipher(key[:])
		if err != nil {
			t.Fatal(err)
		}
		gcm, err := cipher.NewGCM(c)
		if err != nil {
			t.Fatal(err)
		}
		clear(b[80:96])
		copy(b[80:], gcm.Seal(nil, append(slices.Clone(b[24:32]), 0, 0, 0, 0), nil, b))
		put(t, d, g.Block, b)
	}
}
