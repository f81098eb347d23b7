package check

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
)

// badBlocks is a device that cannot read some blocks.
func badBlocks(d disk.Disk, bad ...uint64) disk.Disk {
	return disk.NewFault(d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Read && slices.ContainsFunc(bad, func(b uint64) bool { return op.Addr <= b && b < op.Addr+uint64(op.Blocks) }) {
			return disk.Harm{Err: syscall.EIO}
		}
		return disk.Harm{}
	})
}

// A block that cannot be read is one problem, which says what the block is for and whose
// it is; the rest is checked, and nothing that follows from it is called damaged.
func TestUnreadableBlock(t *testing.T) {
	s := newSample(t)
	clean := s.image()
	g := &s.geo
	file, holey, sub := s.parsed(clean, s.file), s.parsed(clean, s.holey), s.parsed(clean, s.sub)
	for _, c := range []struct {
		what  string
		block uint64
		want  string
		files []string
		notes int
	}{
		{"superblock", 0, "block 0: the superblock cannot be used: read block 0: input/output", nil, 0},
		{"its copy", s.sb.Size() - 1, "the copy of the superblock cannot be read", nil, 0},
		{"inode bitmap", g.InodeBitmap(), "the bitmap of the inodes from 0 on cannot be read", nil, 1},
		{"block bitmap", g.BlockBitmap(), "the bitmap of the blocks from 0 on cannot be read", nil, 1},
		{"first inodes", g.InodeTable(), "the inodes 0 to 15 cannot be read",
			[]string{`"/"`, `(no name found)`, `(no name found)`, `(no name found)`}, 3},
		{"inodes", g.InodeTable() + 5, "the inodes 80 to 95 cannot be read",
			[]string{`"/dir/f71"`, `"/dir/f72"`, `"/dir/f73"`, `"/dir/f74"`}, 0},
		{"inodes not in use", g.InodeTable() + 30, "the inodes 480 to 495 cannot be read", nil, 0},
		{"indirect block", file.blks[12], "an indirect block (level 1) of the file, with the blocks from 12 on cannot be read: input/output error", []string{`"/hard link"`, `"/dir/sub/file"`, fmt.Sprintf("%q", "/dir/sub/"+strings.Repeat("long", 50))}, 1},
		{"double indirect block", holey.blks[13], "an indirect block (level 2) of the file", []string{`"/dir/holey"`}, 1},
		{"end of a file", s.parsed(clean, s.symlink).blks[0], "the last block of the file cannot be read",
			[]string{`"/dir/symlink"`}, 0},
		{"directory block", sub.blks[0], "block 0 of the directory cannot be read", []string{`"/dir/sub"`}, 1},
		{"directory block with directories", s.parsed(clean, rootIno).blks[0], "block 0 of the directory cannot be read",
			[]string{`"/"`}, 1},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := badBlocks(clean, c.block)
			r, err := Volume(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), c.want) || !slices.Equal(r.Problems[0].Files, c.files) {
				t.Errorf("%v, want one of %q, files %v", r.Problems, c.want, c.files)
			}
			if r.Unreadable != 1 || len(r.Unchecked) != c.notes {
				t.Errorf("%d blocks unreadable, not checked: %q, want 1, %d lines", r.Unreadable, r.Unchecked, c.notes)
			}
			// something else that is wrong is found all the same
			both := newOverlay(d)
			at, off := s.inodeAt(s.fifo)
			if at == c.block {
				at, off = s.inodeAt(300)
			}
			b := get(t, both, at)
			b[off+6] ^= 1
			s.tamper(both, func(d disk.Disk) { put(t, d, at, b) })
			r, err = Volume(both, Options{})
			if err != nil || len(r.Problems) != 2 {
				t.Errorf("with a wrong mode besides: %v, %v", r.Problems, err)
			}
		})
	}
}

// The log cannot be read: what is at home is checked.
func TestUnreadableLog(t *testing.T) {
	s := newSample(t)
	d := badBlocks(s.image(), s.log(), s.log()+1, s.log()+2, s.log()+3, s.geo.InodeBitmap()-1)
	r, err := Volume(d, Options{})
	if err != nil || len(r.Problems) != 3 || r.Unreadable != 2 || r.Problems[0].Pass != "log" || len(r.Unchecked) != 1 || r.Entries != 309 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Neither superblock can be read, or no block can: there is nothing to be said about
// the volume.
func TestDeadDevice(t *testing.T) {
	s := newSample(t)
	if _, err := Volume(badBlocks(s.image(), 0, s.sb.Size()-1), Options{}); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	v := newView(badBlocks(disk.NewMem(10*disk.BlockSize), 1), nil)
	buf := make([]byte, disk.BlockSize)
	for range 3 {
		if err := v.read(1, buf); asLost(err) == nil {
			t.Error(err)
		}
	}
	if v.failed != 1 {
		t.Errorf("a block known to be bad is read again: %d failures", v.failed)
	}
	dead := disk.NewFault(disk.NewMem(1<<20*disk.BlockSize), 1, disk.FailFrom(1, syscall.EIO))
	err := newView(dead, nil).scan(0, 1<<20, nil, func(uint64, []byte) error { return nil })
	if asLost(err) != nil || !errors.Is(err, syscall.EIO) || dead.Ops() > 2*maxFailures {
		t.Errorf("%v after %d reads", err, dead.Ops())
	}
}

// A moment of a volume that is lost near the end of the check is no damage of the volume.
func TestMomentLost(t *testing.T) {
	s := newSample(t)
	d := disk.NewFault(s.image(), 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		bad := s.geo.InodeTable() + 5
		if op.Kind == disk.Read && op.Addr <= bad && bad < op.Addr+uint64(op.Blocks) {
			return disk.Harm{Err: disk.ErrMomentLost}
		}
		return disk.Harm{}
	})
	if r, err := Volume(d, Options{}); !errors.Is(err, disk.ErrMomentLost) || len(r.Problems) > 0 {
		t.Errorf("%v, %v", r.Problems, err)
	}
}

// What follows from one block that was overwritten is not told file by file.
func TestNoCascade(t *testing.T) {
	s := newSample(t)
	for _, c := range []struct {
		what string
		edit func(d disk.Disk)
		most int
	}{
		// the inodes 1 to 15 among them: the root, and the directory with 300 files
		{"inodes zeroed", func(d disk.Disk) { put(t, d, s.geo.InodeTable(), make([]byte, disk.BlockSize)) }, 60},
		{"a directory's block tree", func(d disk.Disk) {
			a, off := s.inodeAt(s.dir)
			b := get(t, d, a)
			b[off+136+7] = 1
			put(t, d, a, b)
		}, 4},
		{"the head of the orphan list", func(d disk.Disk) {
			a, off := s.inodeAt(orphansIno)
			b := get(t, d, a)
			b[off+113] ^= 0xff
			put(t, d, a, b)
		}, 1},
	} {
		d := s.image()
		s.tamper(d, c.edit)
		r, err := Volume(d, Options{})
		if err != nil || len(r.Problems) == 0 || len(r.Problems) > c.most || len(r.Unchecked) == 0 {
			t.Errorf("%s: %d problems, want 1 to %d: %v; not checked: %q, %v",
				c.what, len(r.Problems), c.most, r.Problems, r.Unchecked, err)
		}
	}
}
