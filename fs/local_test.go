package fs

import (
	"fmt"
	"math/rand"
	"testing"

	"tansy/disk"
	"tansy/test/kit/replay"
)

// A ranged is what a file is to be.
type ranged struct {
	size uint64
	data map[uint64][]byte // by number of the block; those that are there
}

func (r *ranged) block(b uint64) []byte {
	if r.data[b] == nil {
		r.data[b] = make([]byte, BlockSize)
	}
	return r.data[b]
}

// each calls f for the parts of blocks that the n bytes at off lie in.
func each(off, n uint64, f func(b, from, to uint64)) {
	for end := off + n; off < end; {
		next := min(end, (off/BlockSize+1)*BlockSize)
		f(off/BlockSize, off%BlockSize, off%BlockSize+next-off)
		off = next
	}
}

func (r *ranged) write(off uint64, data []byte) {
	each(off, uint64(len(data)), func(b, from, to uint64) { data = data[copy(r.block(b)[from:to], data):] })
	r.size = max(r.size, off)
}

func (r *ranged) zero(off, n uint64) {
	each(off, n, func(b, from, to uint64) { clear(r.block(b)[from:to]) })
	r.size = max(r.size, off+n)
}

func (r *ranged) allocate(off, n uint64) {
	each(off, n, func(b, _, _ uint64) { r.block(b) })
	r.size = max(r.size, off+n)
}

func (r *ranged) punch(off, n uint64) {
	end := min(r.size, off+n)
	for b, data := range r.data {
		from, to := max(off, b*BlockSize), min(end, (b+1)*BlockSize)
		switch all := from == b*BlockSize && (to == (b+1)*BlockSize || to == r.size); {
		case from >= to:
		case all:
			delete(r.data, b)
		default:
			clear(data[from-b*BlockSize : to-b*BlockSize])
		}
	}
}

func (r *ranged) cut(size uint64) {
	for b, data := range r.data {
		if b*BlockSize >= size {
			delete(r.data, b)
		} else if size < (b+1)*BlockSize {
			clear(data[size-b*BlockSize:])
		}
	}
	r.size = size
}

// seek is what Seek answers.
func (r *ranged) seek(off uint64, hole bool) (uint64, bool) {
	if off >= r.size {
		return 0, false
	}
	if hole {
		for r.data[off/BlockSize] != nil {
			off = (off/BlockSize + 1) * BlockSize
		}
		return min(off, r.size), true
	}
	at, ok := r.size, false
	for b := range r.data {
		if b >= off/BlockSize && max(off, b*BlockSize) < at {
			at, ok = max(off, b*BlockSize), true
		}
	}
	return at, ok
}

// Random ranges of a sparse file are written, set aside, made zeros and holes of, and cut, and all the time the file
// has the bytes, the length, the blocks and the holes that it should; on volumes with a journal that is too small for
// most of it, too.
func TestRanges(t *testing.T) {
	for _, blocks := range []uint64{40000, 3000} { // 3000: with the smallest journal
		t.Run(fmt.Sprintf("%d blocks", blocks), func(t *testing.T) {
			seed := replay.Seed(t)
			rnd := rand.New(rand.NewSource(int64(seed)))
			d := disk.NewMem(blocks * disk.BlockSize)
			if err := Mkfs(d, MkfsOptions{Zeroed: true, Inodes: 64}); err != nil {
				t.Fatal(err)
			}
			v, err := Open(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			h := create(t, v, root, v.Root(), "f")
			// at the limits of direct, indirect, twice and three times indirect blocks
			windows := []uint64{0, 500 * BlockSize, 262600 * BlockSize, MaxSize / 2}
			most := int(blocks) * BlockSize / 16 / len(windows) // bytes of each
			model := ranged{data: map[uint64][]byte{}}
			for i := range 400 {
				off := windows[rnd.Intn(len(windows))] + uint64(rnd.Intn(most))
				n := uint64(1 + rnd.Intn(min(most, 1<<(2+rnd.Intn(19)))))
				if rnd.Intn(2) == 0 {
					off = off / BlockSize * BlockSize
				}
				if rnd.Intn(3) == 0 {
					n = (n/BlockSize + 1) * BlockSize
				}
				var err error
				switch rnd.Intn(10) {
				case 0, 1:
					data := make([]byte, n)
					rnd.Read(data)
					for done := uint64(0); done < n && err == nil; {
						var m uint32
						m, _, _, err = v.Write(root, h, off+done, data[done:], Unstable)
						done += uint64(m)
					}
					model.write(off, data)
					model.size = max(model.size, off+n)
				case 2, 3:
					err = v.Allocate(root, h, off, n)
					model.allocate(off, n)
				case 4:
					err = v.ZeroRange(root, h, off, n)
					model.zero(off, n)
				case 5, 6, 7:
					if rnd.Intn(8) == 0 {
						n = 2 * MaxSize // far behind the end, and over all that is missing
					}
					err = v.PunchHole(root, h, off, n)
					model.punch(off, n)
				case 8:
					size := off
					_, err = v.Setattr(root, h, &SetAttr{Size: &size}, nil)
					model.cut(size)
				case 9:
					hole := rnd.Intn(2) == 0
					at, serr := v.Seek(root, h, off, hole)
					if want, ok := model.seek(off, hole); ok != (serr == nil) || ok && at != want {
						t.Fatalf("step %d: seek from %d, hole %v: %d, %v, not %d, %v", i, off, hole, at, serr, want, ok)
					}
				}
				want(t, err, 0)
				a, err := v.Getattr(h)
				want(t, err, 0)
				if a.Size != model.size {
					t.Fatalf("step %d: size %d, not %d", i, a.Size, model.size)
				}
				each(off/BlockSize*BlockSize, min(n, 2*MaxIO), func(b, _, _ uint64) {
					if b*BlockSize < model.size && rnd.Intn(8) == 0 {
						sameBlock(t, v, h, &model, b)
					}
				})
			}
			for b := range model.data {
				sameBlock(t, v, h, &model, b)
			}
			size := model.size + 1
			_, err = v.Setattr(root, h, &SetAttr{Size: &size}, nil) // what was cut off is freed first
			want(t, err, 0)
			wantUsed(t, v, h, uint64(len(model.data)), "in the end")
		})
	}
}

func sameBlock(t *testing.T, v *FS, h Handle, model *ranged, b uint64) {
	t.Helper()
	got, _, _, err := v.Read(root, h, b*BlockSize, BlockSize)
	want(t, err, 0)
	expect := make([]byte, BlockSize)
	copy(expect, model.data[b])
	if string(got) != string(expect[:min(BlockSize, model.size-b*BlockSize)]) {
		t.Fatalf("block %d is wrong", b)
	}
}

// What a range cannot have is refused, and then nothing has changed. Room that was set aside is there when there is no
// other.
func TestRangesRefused(t *testing.T) {
	d := disk.NewMem(3000 * disk.BlockSize)
	want(t, Mkfs(d, MkfsOptions{Zeroed: true, Inodes: 64}), 0)
	v, err := Open(d, Options{})
	want(t, err, 0)
	defer v.Close()
	h := create(t, v, root, v.Root(), "f")
	want(t, v.Allocate(root, h, 10, 3*BlockSize), 0)
	wantUsed(t, v, h, 4, "set aside")
	want(t, v.Allocate(root, h, MaxSize-1, 2), ErrFBig)
	want(t, v.Allocate(root, h, 1<<63, 1<<63), ErrFBig)
	want(t, v.ZeroRange(root, h, MaxSize, 1), ErrFBig)
	want(t, v.Allocate(root, h, MaxSize-MaxIO, 2*MaxIO), ErrFBig)
	wantUsed(t, v, h, 4, "refused as a whole")
	want(t, v.Allocate(root, h, 0, 0), ErrInval)
	want(t, v.Allocate(root, v.Root(), 0, 1), ErrInval)
	want(t, v.PunchHole(root, v.Root(), 0, 1), ErrInval)
	_, err = v.Seek(root, v.Root(), 0, true)
	want(t, err, ErrInval)
	stale := Handle{Ino: h.Ino, Gen: h.Gen + 1}
	want(t, v.Allocate(root, stale, 0, 1), ErrStale)
	want(t, v.PunchHole(root, stale, 0, 1), ErrStale)
	_, err = v.Seek(root, stale, 0, true)
	want(t, err, ErrStale)
	other := &Cred{UID: 7, GID: 7}
	want(t, v.Allocate(other, h, 0, 1), ErrAcces)
	want(t, v.PunchHole(other, h, 0, BlockSize), ErrAcces)

	a, err := v.Getattr(h)
	want(t, err, 0)
	g := create(t, v, root, v.Root(), "g")
	want(t, v.Allocate(root, g, 0, 3000*BlockSize), ErrNoSpc)
	_, err = v.Remove(root, v.Root(), []byte("g"))
	want(t, err, 0)
	full := create(t, v, root, v.Root(), "full")
	one := [BlockSize]byte{1}
	for off := uint64(0); err == nil; off += BlockSize {
		_, _, _, err = v.Write(root, full, off, one[:], Unstable)
	}
	want(t, err, ErrNoSpc)
	write(t, v, h, 2*BlockSize, "there is room for this")
	want(t, v.PunchHole(root, full, BlockSize, 1000*BlockSize), 0)
	want(t, v.Allocate(root, h, 4*BlockSize, 900*BlockSize), 0)
	after, err := v.Getattr(h)
	want(t, err, 0)
	if !after.Ctime.after(a.Ctime) || after.Size != 904*BlockSize {
		t.Errorf("from %+v to %+v", a, after)
	}
}
