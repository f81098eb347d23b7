package fs

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"tansy/disk"
	"tansy/internal/gen/fs/exec/calls"
	"tansy/test/kit/replay"
)

// TestRecordsRandom compares what calls are told with a model that has no table: the record that the last call with a
// key left is found in its place and looked for as long as it counts, until its place has another's.
func TestRecordsRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	d := disk.NewMem(4096 * BlockSize)
	now := time.Unix(1_700_000_000, 0)
	clock := func() time.Time { return now }
	if err := Mkfs(d, MkfsOptions{Zeroed: true, Replies: 256}); err != nil {
		t.Fatal(err)
	}
	v, err := Open(d, Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	type record struct {
		key [32]byte
		at  time.Time
		via *line
	}
	there := map[uint64]record{}   // by place
	where := map[[32]byte]uint64{} // the place of what a key has left
	busy := map[uint64]*place{}
	lines := make([]line, 4)
	found := 0
	for range 20_000 {
		now = now.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
		for i, p := range busy { // any of them ends
			if len(busy) < 5 {
				break
			}
			kept := !p.look && r.IntN(8) > 0
			c := &calls.Call{Record: true}
			if !kept && !p.look {
				c.Refuse(uint32(ErrNoEnt))
			}
			v.replies.end(p, c, p.look)
			delete(busy, i)
			via := p.id.via.(*line)
			switch old, ok := there[i]; {
			case p.look:
				old.via = via
				there[i] = old
			case kept:
				if ok {
					delete(where, old.key)
				}
				if other, ok := where[p.id.key]; ok {
					delete(there, other)
				}
				there[i], where[p.id.key] = record{p.id.key, time.Unix(int64(p.record.U64(8)), 0), via}, i
			}
		}
		lines[r.IntN(len(lines))].got = r.IntN(2) == 0
		id := &CallID{via: &lines[r.IntN(len(lines))]}
		id.client[15] = byte(r.IntN(6))
		binary.LittleEndian.PutUint64(id.key[8*r.IntN(2):], uint64(r.IntN(60))<<33) // some in one list
		id.key[31] = id.client[15]
		if v.replies.underway[id.key] != nil {
			continue
		}
		p := v.replies.begin(id)
		if p == nil {
			t.Fatal("a call got no place")
		}
		if busy[p.index] != nil {
			t.Fatalf("two calls have place %d", p.index)
		}
		i, ok := where[id.key]
		rec := there[i]
		ok = ok && busy[i] == nil
		counts := ok && now.Unix()-rec.at.Unix() <= int64(recordWindow/time.Second) &&
			!(rec.via.got && rec.via != id.via)
		if ok && p.index != i || p.look != counts {
			t.Fatalf("a call is told place %d (%v), and has left a record in %d (%v)", p.index, p.look, i, counts)
		}
		if counts {
			found++
		}
		busy[p.index] = p
	}
	if found < 1000 {
		t.Errorf("%d calls of 20,000 were to find their records", found)
	}
}
