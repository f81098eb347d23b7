package background

import (
	"math/rand/v2"
	"testing"

	"tansy/test/kit/replay"
)

// Streams of READs, each a little out of order and all of them mixed up: what is read ahead lies ahead of its reader,
// within its file, was seldom asked for before, and is no more than all may be ahead; and after the first few READs
// everything that is asked for was read ahead.
func TestReadersInOrder(t *testing.T) {
	seed := replay.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		type stream struct {
			h     File
			order []uint64 // offsets that are still to come
			ahead map[uint64]bool
			seen  int
		}
		n := uint64(4096) << rnd.IntN(6)
		const size = 64 << 20 // long enough that no chance of the order of a few READs decides
		var streams []*stream
		for i := range 1 + rnd.IntN(6) {
			s := &stream{h: File{uint64(i/2 + 1), 7}, ahead: map[uint64]bool{}} // two of each file, the second in its second half
			for off := uint64(i%2) * size / 2; off < uint64(1+i%2)*size/2; off += n {
				s.order = append(s.order, off)
			}
			for i := 0; i+4 <= len(s.order); i += 4 {
				rnd.Shuffle(4, func(a, b int) { s.order[i+a], s.order[i+b] = s.order[i+b], s.order[i+a] })
			}
			streams = append(streams, s)
		}
		table := readers{limit: 16 << 20}
		late, again, total := 0, 0, 0
		for len(streams) > 0 {
			k := rnd.IntN(len(streams))
			s := streams[k]
			if len(s.order) == 0 {
				streams = append(streams[:k], streams[k+1:]...)
				continue
			}
			off := s.order[0]
			s.order = s.order[1:]
			s.seen++
			if total++; !s.ahead[off] && uint64(s.seen)*n > 2*aheadAfter {
				late++
			}
			for _, p := range table.read(make([]piece, 0, aheadPlaces), s.h, off, n, size, true) {
				if p.h != s.h || p.n == 0 || p.n > aheadPiece || p.off+p.n > size {
					t.Fatalf("READ of %d at %d: %+v", n, off, p)
				}
				for b := p.off / n * n; b < p.off+p.n; b += n {
					if s.ahead[b] && p.off%n == 0 {
						again++
					}
					s.ahead[b] = true
				}
			}
			var far uint64
			for _, r := range table.inOrder {
				if r.slow {
					far += r.asked - r.next
				}
			}
			if far > table.limit {
				t.Fatalf("%d bytes are ahead", far)
			}
		}
		if late*10 > total {
			t.Errorf("READs of %d bytes: %d of %d were not read ahead", n, late, total)
		}
		if again*8 > total { // two readers may come near each other
			t.Errorf("READs of %d bytes: %d of %d were read ahead again", n, again, total)
		}
	}
}

// Who reads here and there, or once, or what is in memory, has nothing read ahead.
func TestReadersAtRandom(t *testing.T) {
	seed := replay.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 2))
	var random, small, once, quick readers
	for _, r := range []*readers{&random, &small, &once, &quick} {
		r.limit = 1 << 30
	}
	chance := 0
	for i := range uint64(10000) {
		n := uint64(4096) << rnd.IntN(9)
		if p := random.read(make([]piece, 0, aheadPlaces), File{1, 1}, rnd.Uint64N(1<<40), n, 1<<40, true); len(p) > 0 {
			chance++
		}
		if p := small.read(make([]piece, 0, aheadPlaces), File{1, 1}, rnd.Uint64N(32<<20), 4096, 1<<40, true); len(p) > 0 {
			chance++
		}
		if p := once.read(make([]piece, 0, aheadPlaces), File{i, 1}, 0, n, 1<<40, true); len(p) > 0 {
			t.Fatalf("files that are read once: %+v", p)
		}
		if p := quick.read(make([]piece, 0, aheadPlaces), File{1, 1}, i<<16, 1<<16, 1<<40, false); len(p) > 0 {
			t.Fatalf("in memory: %+v", p)
		}
	}
	if chance > 40 { // that one comes near another
		t.Errorf("at random: read ahead %d times", chance)
	}
	if quick.some() || once.some() {
		t.Error("somebody waits who does not")
	}
}

// Steps of the same width are seen, of several files at a time, and also those back.
func TestReadersInSteps(t *testing.T) {
	table := readers{limit: 64 << 20}
	const n, step, size = 64 << 10, 3 << 20, 1 << 30
	ahead := map[piece]bool{}
	for i := range uint64(size / step) {
		for file := range uint64(4) {
			h, off := File{file, 1}, i*step
			if i > 4 && !ahead[piece{h: h, off: off, n: n}] {
				t.Fatalf("step %d of file %d was not read ahead", i, file)
			}
			for _, p := range table.read(make([]piece, 0, aheadPlaces), h, off, n, size, true) {
				p.who = nil
				if ahead[p] || p.off <= off || p.off%step != 0 || p.off >= size || p.n != n {
					t.Fatalf("at %d: %+v", off, p)
				}
				ahead[p] = true
			}
		}
	}
	const back = 5 << 20
	h := File{9, 1}
	for i := range uint64(100) {
		off := (100 - i) * back
		if i > 4 && !ahead[piece{h: h, off: off, n: n}] {
			t.Fatalf("step %d back was not read ahead", i)
		}
		for _, p := range table.read(make([]piece, 0, aheadPlaces), h, off, n, size, true) {
			p.who = nil
			if ahead[p] || p.off >= off || p.off%back != 0 {
				t.Fatalf("back at %d: %+v", off, p)
			}
			ahead[p] = true
		}
	}
}

// Who stops in the middle of a file takes nothing from others for long.
func TestReadersLeave(t *testing.T) {
	table := readers{limit: 16 << 20}
	const n, size = 64 << 10, 1 << 40
	read := func(file, off uint64) int {
		return len(table.read(make([]piece, 0, aheadPlaces), File{file, 1}, off, n, size, true))
	}
	for file := range uint64(4) {
		for off := uint64(0); off < 32<<20; off += n {
			read(file, off)
			table.some()
		}
	}
	pieces := 0
	for off := uint64(0); off < 64<<20; off += n {
		pieces += read(9, off)
		table.some()
	}
	if pieces*aheadPiece < 16<<20 {
		t.Errorf("%d pieces are read ahead while nobody else reads", pieces)
	}
}

// When what is read ahead was in memory, nobody waits, until a READ does again. Who stopped reading is forgotten.
func TestReadersStop(t *testing.T) {
	table := readers{limit: 64 << 20}
	off := uint64(0)
	read := func(slow bool) []piece {
		off += 64 << 10
		return table.read(make([]piece, 0, aheadPlaces), File{1, 1}, off, 64<<10, 1<<30, slow)
	}
	read(true)
	p := read(true)
	if len(p) == 0 || !table.some() {
		t.Fatal("nothing is read ahead")
	}
	for range aheadQuick - 1 {
		p[0].who.fetched(false)
	}
	p[0].who.fetched(true)
	for i := range aheadQuick {
		pieces := 0
		for range 8 {
			pieces += len(read(false))
		}
		if !table.some() || pieces == 0 {
			t.Fatalf("it stopped after %d pieces", i)
		}
		p[0].who.fetched(false)
	}
	if p[0].who.slow {
		t.Error("it goes on")
	}
	if read(false); table.some() {
		// the reader in steps waits, too, for a while
		for range aheadIdle {
			table.read(nil, File{2, 1}, 0, 1, 1<<30, false)
		}
	}
	if table.some() {
		t.Error("somebody waits still")
	}
	if p := read(false); len(p) > 0 {
		t.Errorf("read ahead of who does not wait: %+v", p)
	}
	if p := read(true); len(p) == 0 || p[0].off != off+64<<10 || !table.some() {
		t.Errorf("who waits again at %d has %+v read ahead", off, p)
	}
}
