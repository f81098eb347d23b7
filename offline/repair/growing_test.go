package repair

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/layout"
	"tansy/internal/volumeend"
	"tansy/journal"
	"tansy/offline/check"
)

// done has the volume on d repaired, and checks that this does what want says, leaves nothing wrong, and can be undone.
// It leaves the volume repaired, and returns what undoes that.
func done(t *testing.T, d disk.Disk, want string) *Undo {
	t.Helper()
	damaged := contents(t, d)
	p, err := NewPlan(d, Options{})
	if err != nil || !has(p.Actions, want) {
		t.Fatalf("no %q in %v, %v", want, p, err)
	}
	same(t, d, damaged)
	var undo *Undo
	for n := range 2 {
		path := filepath.Join(t.TempDir(), fmt.Sprint(n))
		if left, err := p.Apply(d, path); err != nil || !left.Clean() {
			t.Fatalf("after %v: %v, %v", p.Actions, left.Problems, err)
		}
		if undo, err = LoadUndo(path); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			break
		}
		if err := undo.Apply(d); err != nil {
			t.Fatal(err)
		}
		same(t, d, damaged)
	}
	return undo
}

// TestGrowingDamage: what is damaged of a volume that can grow is repaired where it lies on the device, and what refers
// to something that is not there yet is taken away.
func TestGrowingDamage(t *testing.T) {
	zero := make([]byte, disk.BlockSize)
	params := func(s *small) journal.Params {
		super, _, err := superblocks(s.d)
		if err != nil {
			t.Fatal(err)
		}
		return volumeend.Journal(super)
	}
	bit := func(s *small, start, n uint64) {
		s.change(start+n/pageBits, func(b []byte) { b[n%pageBits/8] |= 1 << (n % 8) })
	}
	for what, c := range map[string]struct {
		harm func(s *small)
		want string
	}{
		"block 0": {func(s *small) { put(t, s.d, 0, zero) }, "the superblock in block 0 is restored from its copy"},
		"the copy": {func(s *small) { put(t, s.d, s.d.Size()-1, zero) },
			fmt.Sprintf("the copy of the superblock in block %d is made anew", uint64(farBelow/disk.BlockSize-1))},
		"a header of the log": {func(s *small) { put(t, s.l, params(s).Start, zero) }, "the header of the log in block"},
		"both headers": {func(s *small) {
			p := params(s)
			put(t, s.l, p.Start, zero)
			put(t, s.l, p.Home()-1, zero)
		}, "both headers of the log are lost"},
		"the root of the tree": {func(s *small) {
			p := params(s)
			put(t, s.l, p.Start-1, zero)
			put(t, s.l, p.Start-2, zero)
		}, "pages of the tree of codes are damaged"},
		"the bitmap of the blocks": {func(s *small) { put(t, s.l, s.v.bbm+s.v.data0/pageBits, zero) },
			"in the bitmap of the blocks"},
		"the bitmap of the inodes": {func(s *small) { put(t, s.l, s.v.ibm, zero) }, "in the bitmap of the inodes"},
		"bit of a block that is not there": {func(s *small) { bit(s, s.v.bbm, s.v.dataEnd) },
			"0 are marked in use, and 1 free"},
		"bit of an inode that is not there": {func(s *small) { bit(s, s.v.ibm, s.v.inodeEnd) },
			"0 are marked in use, and 1 free"},
		"pointer to what is not there": {func(s *small) { s.set(s.ino["/one"], layout.Pointers+8*13, s.v.dataEnd) },
			" is no data block"},
		"name of what is not there": {func(s *small) { s.enter(rootIno, "nobody", s.v.inodeEnd) },
			"there can be no such file"},
		"no name": {func(s *small) { s.leave(rootIno, "a") }, "becomes /lost+found/#"},
		"inode that is not there yet": {func(s *small) {
			end := s.v.inodeEnd - 1
			for _, a := range []uint64{0, s.d.Size() - 1} {
				b := block(t, s.d, a)
				binary.LittleEndian.PutUint64(b[200:], end)
				resealed(b)
				put(t, s.d, a, b)
			}
			s.v = newVolume(s.l, geometryOf(t, s.d))
			a, at := s.v.inodeBlock(end)
			s.change(a, func(b []byte) { b[at+layout.InodeSize-1] = 1 })
		}, "which the volume has not yet, becomes zeros"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newSmallUpTo(t, farBelow)
			was := filesOf(t, s.d)
			c.harm(s)
			done(t, s.d, c.want)
			now := filesOf(t, s.d)
			for ino, f := range was {
				if now[ino] != f && !strings.Contains(what, "pointer") {
					t.Errorf("inode %d is %+v, was %+v", ino, now[ino], f)
				}
			}
		})
	}
}

// resealed gives a superblock its checksum.
func resealed(b []byte) {
	sum := sha256.Sum256(b[:4064])
	copy(b[4064:], sum[:])
}

// TestUndoAfterGrowth: a repair is not undone when the volume has grown since, which changes nothing then.
func TestUndoAfterGrowth(t *testing.T) {
	s := newSmallUpTo(t, farBelow)
	put(t, s.d, 0, make([]byte, disk.BlockSize))
	d := onLarger(t, s.d, 3000)
	undo := done(t, d, "the superblock in block 0 is restored")
	if _, err := fs.Grow(d, fs.GrowOptions{}); err != nil {
		t.Fatal(err)
	}
	was := contents(t, d)
	if err := undo.Apply(d); !errors.Is(err, ErrGrown) {
		t.Error(err)
	}
	same(t, d, was)
	if r, err := check.Volume(d, check.Options{Data: true}); err != nil || !r.Clean() {
		t.Error(r.Problems, err)
	}
}

// TestGrownIsRepaired: files that lie in what a volume has grown by, too.
func TestGrownIsRepaired(t *testing.T) {
	s := newSmallUpTo(t, farBelow)
	d := onLarger(t, s.d, 3000)
	if _, err := fs.Grow(d, fs.GrowOptions{}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := v.Create(&fs.Cred{}, v.Root(), []byte("large"), fs.Guarded, &fs.SetAttr{}, 0)
	for off := 0; off < 10<<20 && err == nil; off += 1 << 20 {
		_, _, _, err = v.Write(&fs.Cred{}, n.Handle, uint64(off), bytes.Repeat([]byte("x"), 1<<20), fs.FileSync)
	}
	if err = errors.Join(err, v.Close()); err != nil {
		t.Fatal(err)
	}
	g := geometryOf(t, d)
	vol := newVolume(layoutOf(t, d), g)
	double := vol.peek(vol.inode(n.Handle.Ino).q(layout.Pointers + 8*13))
	a := uint64(0) // the last indirect block
	for k := 0; layout.Uint64(double, 8*k) != 0; k++ {
		a = layout.Uint64(double, 8*k)
	}
	if a < s.v.dataEnd {
		t.Fatalf("block %d was there before %d", a, s.v.dataEnd)
	}
	put(t, vol.d, g.bbm+a/pageBits, make([]byte, disk.BlockSize))
	put(t, vol.d, a, slices.Repeat([]byte{1}, disk.BlockSize))
	done(t, d, "are no block numbers")
}
