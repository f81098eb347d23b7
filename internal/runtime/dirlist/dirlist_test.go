package dirlist

import (
	"bytes"
	"math/rand"
	"testing"

	"tansy/internal/runtime/dbytes"
	"tansy/test/kit/replay"
)

// The declarations of verified/trusted/dirlist.s.dfy: every call within its
// precondition returns, and what was accepted can be read back in order.

func TestList(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	l := New()
	for range 300 {
		max := r.Intn(20000) - 200
		size := func(n int) int { return 24 + (n+3)/4*4 }
		left := max
		take := func(n int) bool {
			if size(n) > left {
				return false
			}
			left -= size(n)
			return true
		}
		attrs := map[uint64][]byte{}
		l.Fill(max >= 0, take, func(i uint64, inode []byte) { attrs[i] = inode })
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
			want = append(want, e)
		}
		if l.Len() != uint64(len(want)) || l.InoAt(l.Len()) != 0 {
			t.Fatalf("%d entries, want %d", l.Len(), len(want))
		}
		for i, e := range want {
			g := l.Entries[i]
			if g.Ino != e.Ino || l.InoAt(uint64(i)) != e.Ino || g.Cookie != e.Cookie || !bytes.Equal(g.Name, e.Name) {
				t.Fatalf("entry %d: %+v, want %+v", i, g, e)
			}
			inode := bytes.Repeat([]byte{byte(i)}, 256)
			ip := &dbytes.Bytes{Data: inode}
			l.AttrAt(uint64(i), ip)
			if &attrs[uint64(i)][0] != &inode[0] || len(attrs[uint64(i)]) != 256 || ip.Data != nil {
				t.Fatalf("AttrAt(%d) does not take it over", i)
			}
		}
		l.AttrAt(l.Len(), &dbytes.Bytes{Data: make([]byte, 256)})
		if len(attrs) != len(want) {
			t.Fatalf("attributes of %d entries, want %d", len(attrs), len(want))
		}
		l.Reset()
		if l.Len() != 0 || l.InoAt(0) != 0 || l.Fits() {
			t.Fatalf("an empty list has %d entries", l.Len())
		}
	}
	l = New()
	l.Fill(true, func(int) bool { return true }, nil)
	l.Offer(1, dbytes.ZeroBlk(), 0, 1, 3)
	l.AttrAt(0, &dbytes.Bytes{Data: make([]byte, 256)}) // nobody wants it
}
