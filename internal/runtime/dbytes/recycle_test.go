package dbytes

import (
	"bytes"
	"runtime"
	"testing"
)

// TestAnyBlks: the blocks are blocks of their own, side by side, and stay what they are made while others come and
// go, and go back.
func TestAnyBlks(t *testing.T) {
	if AnyBlks(0) != nil {
		t.Error("none are some")
	}
	var kept [][]Blk
	for round := range 400 {
		l := AnyBlks(1 + uint64(round%20))
		if len(l) != 1+round%20 {
			t.Fatal(len(l))
		}
		for i := range l {
			for k := range l[i].Data() {
				l[i].Data()[k] = byte(round + i)
			}
		}
		if round%3 == 0 {
			RecycleBlks(l)
			continue
		}
		if kept = append(kept, l); round%50 == 0 {
			runtime.GC()
		}
	}
	round := 0
	for _, l := range kept {
		if round%3 == 0 {
			round++
		}
		for i := range l {
			for _, c := range l[i].Data() {
				if c != byte(round+i) {
					t.Fatalf("block %d of list %d has changed", i, round)
				}
			}
		}
		round++
	}
}

// TestAnyBytes: they are bytes of their own, of any length, and stay what they are made while others come, and go back.
func TestAnyBytes(t *testing.T) {
	var kept []*Bytes
	for round := range 600 {
		n := uint64(round*977) % (1 << 17)
		b := AnyBytes(n)
		if b.Len() != n {
			t.Fatal(b.Len(), n)
		}
		for i := range b.Data {
			b.Data[i] = byte(round)
		}
		if round%2 == 0 {
			Recycle(b.Data)
			b = nil
		}
		kept = append(kept, b)
	}
	for round, b := range kept {
		if b == nil {
			continue
		}
		for i, c := range b.Data {
			if c != byte(round) {
				t.Fatalf("byte %d of buffer %d has changed", i, round)
			}
		}
	}
}

// What goes back comes again, and is spoiled in between if it is to be; what is not worth it does not.
func TestRecycle(t *testing.T) {
	defer func(p bool) { Poison = p }(Poison)
	Poison = true
	again := func(n uint64) bool {
		b := AnyBytes(n)
		b.Data[0] = 1
		first, all := &b.Data[0], b.Data[:cap(b.Data)]
		Recycle(b.Data)
		if n > BlkSize && len(all) == BlkSize<<4 && bytes.Count(all, []byte{0xDB}) != len(all) {
			t.Fatal("not spoiled")
		}
		return &AnyBytes(n).Data[0] == first
	}
	if !again(16*BlkSize) || !again(16*BlkSize-5) || !again(13*BlkSize) {
		t.Error("64 KiB are not used again")
	}
	if again(1000) || again(12*BlkSize) || again(2<<20) {
		t.Error("used again: what is small, takes much less than it is kept in, or is large")
	}
	long := make([]byte, 2*BlkSize+5)
	if SpoilBytes(long); bytes.Count(long, []byte{0xDB}) != len(long) {
		t.Error("spoiled in part")
	}
	Recycle(nil)
	Recycle(make([]byte, 0, 16*BlkSize))
	Recycle(make([]byte, 5000))
}

// To read a run or to answer with it takes no memory of the heap once it was done.
func TestRecycleAllocs(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { RecycleBlks(AnyBlks(16)) }); n != 0 {
		t.Error(n)
	}
	if n := testing.AllocsPerRun(100, func() { Recycle(AnyBytes(64 << 10).Data) }); n > 1 { // the Bytes
		t.Error(n)
	}
}
