package fs

import "testing"

// What a file has can be overwritten on a full volume, wherever it lies in the file and in the tree of its
// blocks, in part or as a whole, stable or not; not a byte of a hole beside it can be filled.
func TestOverwritingNeedsNoSpace(t *testing.T) {
	v := newFS(t)
	h := create(t, v, root, v.Root(), "f")
	data := [MaxIO]byte{}
	type piece struct{ off, len uint64 }
	pieces := []piece{{0, 3 * BlockSize}, {4*BlockSize + 1, 1}, {7*BlockSize - 1, 300_000}, {1 << 20, MaxIO},
		{3 << 30, 10_000}, {100 << 30, 1}, {MaxSize - 5000, 5000}}
	grown := create(t, v, root, v.Root(), "grown") // one block, in a file that was made longer
	_, _, _, err := v.Write(root, grown, 0, data[:100], FileSync)
	want(t, err, 0)
	size := uint64(10 * BlockSize)
	_, err = v.Setattr(root, grown, &SetAttr{Size: &size}, nil)
	want(t, err, 0)
	for _, p := range pieces {
		_, _, _, err := v.Write(root, h, p.off, data[:p.len], Unstable)
		want(t, err, 0)
	}
	for i, end := range []uint64{1 << 40, 12 * BlockSize} { // many blocks, and then those that need no indirect one
		other := create(t, v, root, v.Root(), string(rune('a'+i)))
		for off := uint64(0); off < end; {
			n := uint64(MaxIO)
			for {
				_, _, _, err := v.Write(root, other, off, data[:n], Unstable)
				if err == nil {
					break
				}
				want(t, err, ErrNoSpc)
				if n /= 2; n < BlockSize {
					end = 0
					break
				}
			}
			off += n
		}
	}
	again := func(h Handle, off, n uint64) {
		t.Helper()
		for _, how := range []Stability{Unstable, FileSync} {
			done, _, _, err := v.Write(root, h, off, data[:n], how)
			if err != nil || uint64(done) != n {
				t.Errorf("%d bytes at %d again: %d, %v", n, off, done, err)
			}
		}
	}
	full := func(h Handle, off, n uint64) {
		t.Helper()
		for _, how := range []Stability{Unstable, FileSync} {
			_, _, _, err := v.Write(root, h, off, data[:n], how)
			want(t, err, ErrNoSpc)
		}
	}
	for _, p := range pieces {
		first, end := p.off/BlockSize*BlockSize, min((p.off+p.len+BlockSize-1)/BlockSize*BlockSize, MaxSize)
		again(h, p.off, p.len)
		again(h, p.off+p.len/3, (p.len+1)/2)
		again(h, first, min(end-first, MaxIO))
		again(h, end-1, 1)
		if 0 < first {
			full(h, first-1, 2)
		}
		if end < MaxSize {
			full(h, end-1, 2)
			full(h, end, BlockSize)
		}
	}
	again(grown, 4000, 96)
	full(grown, BlockSize, 1)
}
