package fs

import "testing"

// What a file has can be overwritten on a full volume, wherever it lies in the file and in the tree of its
// blocks; a hole cannot be filled.
func TestOverwritingNeedsNoSpace(t *testing.T) {
	v := newFS(t)
	h := create(t, v, root, v.Root(), "f")
	data := [MaxIO]byte{}
	type piece struct{ off, len uint64 }
	pieces := []piece{{0, 300_000}, {1 << 20, MaxIO}, {3 << 30, 10_000}, {100 << 30, 1}, {MaxSize - 5000, 5000}}
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
	for _, p := range pieces {
		for _, q := range []piece{p, {p.off, 1}, {p.off + p.len - 1, 1}, {p.off + p.len/3, (p.len + 1) / 2}} {
			n, _, _, err := v.Write(root, h, q.off, data[:q.len], Unstable)
			if err != nil || uint64(n) != q.len {
				t.Errorf("%d bytes at %d again: %d, %v", q.len, q.off, n, err)
			}
		}
	}
	_, _, _, err := v.Write(root, h, 2<<30, data[:1], Unstable)
	want(t, err, ErrNoSpc)
}
