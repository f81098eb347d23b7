package journal

import (
	"errors"
	"math/rand/v2"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

// A lying device returns lie for block a, the first few times it is read.
type lying struct {
	disk.Disk
	a    uint64
	lie  []byte
	left int
}

func (l *lying) ReadAt(a uint64, bufs [][]byte) error {
	if err := l.Disk.ReadAt(a, bufs); err != nil {
		return err
	}
	if l.left > 0 && a <= l.a && l.a < a+uint64(len(bufs)) {
		copy(bufs[l.a-a], l.lie)
		l.left--
	}
	return nil
}

// TestLies: whatever recovery is told once of any block of the log or of a header, also of the last group, and of what
// lies behind the end, it finds all of the log or refuses it, and then it has written nothing. (If it is told the same
// whenever it asks, it cannot know of the last group: TestDamagedLastGroup.)
func TestLies(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	const groups = 8
	before := formatted(t, roomy)
	whole, h := crashed(t, r, groups)
	s, err := NewSurvey(whole, roomy)
	if err != nil || len(s.Groups) < 3 {
		t.Fatalf("%+v, %v", s, err)
	}
	last := s.Groups[len(s.Groups)-1]
	torn := whole.Crash(disk.KeepAll) // the last group has not got there
	put(t, torn, last.Block, make([]byte, disk.BlockSize))

	refused, told := 0, 0
	lie := func(what string, d *disk.Sim, a uint64, lie []byte, want [homeBlocks]uint64) {
		t.Helper()
		told++
		d = d.Crash(disk.KeepAll)
		was := d.Crash(disk.KeepAll)
		j, err := Open(&lying{d, a, lie, 1}, roomy, quiet)
		if err != nil {
			refused++
			if !errors.Is(err, ErrDamaged) {
				t.Fatalf("block %d %s: %v", a, what, err)
			}
			for a := range d.Size() {
				if string(block(t, d, a)) != string(block(t, was, a)) {
					t.Fatalf("block %d %s: refused, and block %d was written", a, what, a)
				}
			}
			return
		}
		defer j.Close()
		if got := readState(t, j, roomy); got != want {
			t.Fatalf("block %d %s: %v, not %v", a, what, got, want)
		}
	}
	blocks := []uint64{roomy.Start, roomy.copy()}
	for _, g := range s.Groups {
		blocks = append(blocks, g.Block, g.Block+1)
	}
	blocks = append(blocks, last.Block+UnitBlocks) // where the next group would be
	for _, a := range blocks {
		for _, m := range harms {
			lie(m.name, whole, a, m.do(r, block(t, whole, a), block(t, whole, last.Block+1), block(t, before, a)),
				h.state(groups))
		}
	}
	lie("never got there", torn, last.Block, block(t, whole, last.Block), h.state(groups-1))
	if refused == 0 || refused == told {
		t.Errorf("%d of %d lies were refused", refused, told)
	}
	t.Logf("%d of %d lies were refused, the others did no harm", refused, told)
}
