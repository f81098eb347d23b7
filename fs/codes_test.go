package fs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/journal"
)

// damagedVolume is a volume with files f0 to f59, of three blocks each, and a directory d with an entry; rot changes a
// block of it that was not written that way.
type damagedVolume struct {
	t   *testing.T
	d   *disk.Mem
	v   *fs.FS
	log bytes.Buffer // to be looked at when v is closed
}

func newDamagedVolume(t *testing.T) *damagedVolume {
	x := &damagedVolume{t: t, d: disk.NewMem(6000 * disk.BlockSize)}
	mkfs(t, x.d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	x.v = open(t, x.d, fs.Options{})
	for i := range 60 {
		n, err := x.v.Create(root, x.v.Root(), fmt.Appendf(nil, "f%d", i), fs.Guarded, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := x.v.Write(root, n.Handle, 0, rotContents(i), fs.Unstable); err != nil {
			t.Fatal(err)
		}
	}
	dir, err := x.v.Mkdir(root, x.v.Root(), []byte("d"), &fs.SetAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.v.Create(root, dir.Handle, []byte("in d"), fs.Guarded, nil, 0); err != nil {
		t.Fatal(err)
	}
	closeFS(t, x.v)
	return x
}

func rotContents(i int) []byte { return bytes.Repeat(fmt.Appendf(nil, "%07d\n", i), 3*fs.BlockSize/8) }

// inode is the inode that a path names, as the device has it.
func (x *damagedVolume) inode(ino uint64) []byte {
	table := binary.LittleEndian.Uint64(readBlock(x.t, x.d, 0)[64:])
	return readBlock(x.t, x.d, table+ino/16)[ino%16*256:][:256]
}

// rot changes a bit of block a, and opens the volume.
func (x *damagedVolume) rot(a uint64) {
	b := readBlock(x.t, x.d, a)
	b[77] ^= 4
	writeBlock(x.t, x.d, a, b)
	x.v = open(x.t, x.d, fs.Options{Log: slog.New(slog.NewTextHandler(&x.log, nil))})
}

func (x *damagedVolume) lookup(path ...string) (h fs.Handle, err error) {
	h = x.v.Root()
	for _, name := range path {
		n, err := x.v.Lookup(root, h, []byte(name))
		if err != nil {
			return h, err
		}
		h = n.Handle
	}
	return h, nil
}

// read reads file i, and fails the test if it has other contents.
func (x *damagedVolume) read(i int) error {
	h, err := x.lookup(fmt.Sprintf("f%d", i))
	if err != nil {
		return err
	}
	got, _, _, err := x.v.Read(root, h, 0, 1<<16)
	if err == nil && !bytes.Equal(got, rotContents(i)) {
		x.t.Errorf("file %d has other contents", i)
	}
	return err
}

// logged is how often the log has a text.
func (x *damagedVolume) logged(text string) int { return strings.Count(x.log.String(), text) }

func (x *damagedVolume) change(name string) error {
	_, err := x.v.Create(root, x.v.Root(), []byte(name), fs.Guarded, nil, 0)
	return err
}

func inoOf(t *testing.T, x *damagedVolume, path ...string) uint64 {
	t.Helper()
	x.v = open(t, x.d, fs.Options{ReadOnly: true})
	defer closeFS(t, x.v)
	h, err := x.lookup(path...)
	if err != nil {
		t.Fatal(err)
	}
	return h.Ino
}

// TestDamagedData: what is not as it was written is an error for the file that has it, told once, and nothing else
// stops.
func TestDamagedData(t *testing.T) {
	x := newDamagedVolume(t)
	a := binary.LittleEndian.Uint64(x.inode(inoOf(t, x, "f7"))[136+8:])
	x.rot(a)
	for range 3 {
		for i := range 60 {
			if err := x.read(i); i != 7 && err != nil || i == 7 && err != fs.ErrIO {
				t.Errorf("reading file %d: %v", i, err)
			}
		}
	}
	h, err := x.lookup("f7")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _, err := x.v.Read(root, h, 0, fs.BlockSize); err != nil || !bytes.Equal(got, rotContents(7)[:fs.BlockSize]) {
		t.Errorf("the block before it: %v", err)
	}
	if _, _, _, err := x.v.Write(root, h, fs.BlockSize+10, []byte("part"), fs.FileSync); err != fs.ErrIO {
		t.Errorf("changing a part of it: %v", err)
	}
	if err := x.change("new"); err != nil {
		t.Errorf("a change of something else: %v", err)
	}
	if _, _, _, err := x.v.Write(root, h, fs.BlockSize, rotContents(7)[fs.BlockSize:2*fs.BlockSize], fs.FileSync); err != nil {
		t.Errorf("writing it whole: %v", err)
	}
	if err := x.read(7); err != nil {
		t.Errorf("reading it when it was written again: %v", err)
	}
	closeFS(t, x.v)
	if n := x.logged(fmt.Sprintf("\"a block is damaged: %v; reading it fails\" block=%d", journal.ErrNotAsWritten, a)); n != 1 {
		t.Errorf("block %d is told of %d times:\n%s", a, n, &x.log)
	}
	mustCheck(t, x.d)
}

// TestDamagedDirectory and inodes: the same for what they hold.
func TestDamagedDirectory(t *testing.T) {
	x := newDamagedVolume(t)
	x.rot(binary.LittleEndian.Uint64(x.inode(inoOf(t, x, "d"))[136:]))
	if _, err := x.lookup("d", "in d"); err != fs.ErrIO {
		t.Errorf("a name in it: %v", err)
	}
	dir, err := x.lookup("d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.v.Readdir(root, dir, 0, 0, false, fs.Limit{Bytes: 4096, Size: func(n int) int { return n + 24 }}); err != fs.ErrIO {
		t.Errorf("listing it: %v", err)
	}
	if _, err := x.v.Create(root, dir, []byte("more"), fs.Guarded, nil, 0); err != fs.ErrIO {
		t.Errorf("a new name in it: %v", err)
	}
	if err := x.change("new"); err != nil {
		t.Errorf("a change of something else: %v", err)
	}
	for i := range 60 {
		if err := x.read(i); err != nil {
			t.Errorf("file %d: %v", i, err)
		}
	}
	closeFS(t, x.v)
}

func TestDamagedInodes(t *testing.T) {
	x := newDamagedVolume(t)
	ino := inoOf(t, x, "f40")
	x.rot(binary.LittleEndian.Uint64(readBlock(t, x.d, 0)[64:]) + ino/16)
	refused := 0
	for i := range 60 {
		if err := x.read(i); err != nil && err != fs.ErrIO {
			t.Errorf("file %d: %v", i, err)
		} else if err != nil {
			refused++
		}
	}
	if refused == 0 || refused > 16 {
		t.Errorf("%d files are refused", refused)
	}
	if err := x.change("new"); err != nil {
		t.Errorf("a change of something else: %v", err)
	}
	closeFS(t, x.v)
}

// TestDamagedBitmap: nothing is handed out by a bitmap that is not what was written, and from then on nothing is
// changed; the log says so, and reading goes on.
func TestDamagedBitmap(t *testing.T) {
	for what, off := range map[string]int{"inodes": 48, "blocks": 56} {
		x := newDamagedVolume(t)
		a := binary.LittleEndian.Uint64(readBlock(t, x.d, 0)[off:])
		whole := readBlock(t, x.d, a)
		x.rot(a)
		h, err := x.lookup("f3")
		if err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			if what == "inodes" {
				err = x.change(fmt.Sprint("new", k))
			} else {
				_, _, _, err = x.v.Write(root, h, uint64(100+k)*fs.BlockSize, make([]byte, 100), fs.FileSync)
			}
			if err != fs.ErrROFS {
				t.Errorf("%s: something new: %v", what, err)
			}
		}
		for i := range 50 {
			if err := x.read(i); err != nil {
				t.Errorf("%s: file %d: %v", what, i, err)
			}
		}
		if _, _, _, err := x.v.Write(root, h, 0, rotContents(3)[:fs.BlockSize], fs.FileSync); err != fs.ErrROFS {
			t.Errorf("%s: overwriting: %v", what, err)
		}
		closeFS(t, x.v) // the log is whole then
		if n := x.logged(fmt.Sprintf("block=%d", a)); n < 2 || x.logged("read-only from now on") != 1 || x.logged("tansy repair") != 1 || x.logged("transaction failed") > 0 {
			t.Errorf("%s: the log:\n%s", what, &x.log)
		}
		bad := slices.Clone(whole)
		bad[77] ^= 4
		if !bytes.Equal(readBlock(t, x.d, a), bad) {
			t.Errorf("%s: the damaged block was written", what)
		}
	}
}
