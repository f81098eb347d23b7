package ddir

import (
	"bytes"
	"math/rand"
	"testing"

	"tansy/internal/extern/dbytes"
	"tansy/internal/replay"
)

// The declarations of verified/trusted/dirlist.s.dfy: every call within its
// precondition returns, and what was accepted can be read back in order.

func TestList(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	for range 300 {
		max := r.Intn(20000) - 200
		size := func(n int) int { return 24 + (n+3)/4*4 }
		l := New(max, size)
		var want []Entry
		used := 0
		for i := range 200 {
			mem := make([]byte, dbytes.BlkSize)
			r.Read(mem)
			n := r.Intn(256)
			off := r.Intn(len(mem) - n + 1)
			e := Entry{Ino: r.Uint64(), Name: append([]byte{}, mem[off:off+n]...), Cookie: uint64(i)}
			fits := l.Offer(e.Ino, dbytes.BlkOf(mem), uint64(off), uint64(n), e.Cookie)
			if fits != (used+size(n) <= max) {
				t.Fatalf("entry of %d bytes with %d of %d used: fits = %v", size(n), used, max, fits)
			}
			if l.Fits() != (max >= 0) {
				t.Fatalf("%d of %d bytes used: Fits() = %v", used, max, l.Fits())
			}
			if !fits {
				continue
			}
			used += size(n)
			if r.Intn(2) == 0 {
				ip := &dbytes.Bytes{Data: make([]byte, 256)}
				r.Read(ip.Data)
				e.Attr = append([]byte{}, ip.Data...)
				l.AttrAt(l.Len()-1, ip)
				ip.Set(0, ^ip.Get(0)) // the list has its own copy
			}
			want = append(want, e)
		}
		if l.Len() != uint64(len(want)) || l.InoAt(l.Len()) != 0 {
			t.Fatalf("%d entries, want %d", l.Len(), len(want))
		}
		for i, e := range want {
			g := l.Entries[i]
			if g.Ino != e.Ino || l.InoAt(uint64(i)) != e.Ino || g.Cookie != e.Cookie || !bytes.Equal(g.Name, e.Name) || !bytes.Equal(g.Attr, e.Attr) {
				t.Fatalf("entry %d: %+v, want %+v", i, g, e)
			}
			ip := &dbytes.Bytes{Data: bytes.Repeat([]byte{byte(i)}, 256)}
			l.AttrAt(uint64(i), ip)
			if !bytes.Equal(l.Entries[i].Attr, ip.Data) {
				t.Fatalf("AttrAt(%d)", i)
			}
		}
		l.AttrAt(l.Len(), &dbytes.Bytes{Data: make([]byte, 256)})
		var names [][]byte
		for _, e := range l.Entries {
			names = append(names, e.Name)
		}
		l.Recycle()
		again := New(1<<20, size)
		if again.Len() != 0 || !again.Fits() {
			t.Fatalf("a new list has %d entries", again.Len())
		}
		again.Offer(1, dbytes.ZeroBlk(), 0, 255, 2)
		for i, e := range want {
			if !bytes.Equal(names[i], e.Name) {
				t.Fatalf("name %d changes when the list is used again", i)
			}
		}
		again.Recycle()
	}
	New(0, func(int) int { return 1 }).AttrAt(0, &dbytes.Bytes{Data: make([]byte, 256)})
}
