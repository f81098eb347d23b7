package fs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand"
	"strings"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/test/kit/fstest"
)

// copyDisk is a copy of d in memory.
func copyDisk(t testing.TB, d disk.Disk) *disk.Mem {
	t.Helper()
	c := disk.NewMem(d.Size() * disk.BlockSize)
	buf := make([]byte, fs.BlockSize)
	for a := range d.Size() {
		if err := d.ReadAt(a, [][]byte{buf}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf, make([]byte, fs.BlockSize)) {
			if err := c.WriteAt(a, [][]byte{buf}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// A wild pointer leads nowhere: it is an error, the volume is read-only from then
// on, and the next start finds the superblock, the log and the rest as they were.
func TestWildPointer(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	clean := disk.NewMem(6000 * disk.BlockSize)
	mkfs(t, clean, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, clean, fs.Options{})
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, fs.BlockSize)
	if _, _, _, err := v.Write(root, n.Handle, 0, data, fs.FileSync); err != nil {
		t.Fatal(err)
	}
	closeFS(t, v)
	super := make([]byte, fs.BlockSize)
	if err := clean.ReadAt(0, [][]byte{super}); err != nil {
		t.Fatal(err)
	}
	table := binary.LittleEndian.Uint64(super[64:]) // where the inodes are
	const pointers = 136                            // offset in an inode
	for _, wild := range []uint64{1, 2, table - 1, table, clean.Size() - 1, clean.Size(), 1 << 47, 1 << 63, 1<<64 - 1} {
		for what, do := range map[string]func(v *fs.FS) error{
			"read":  func(v *fs.FS) error { _, _, _, err := v.Read(root, n.Handle, 0, 4096); return err },
			"write": func(v *fs.FS) error { _, _, _, err := v.Write(root, n.Handle, 0, data, fs.FileSync); return err },
			"truncate": func(v *fs.FS) error {
				_, err := v.Setattr(root, n.Handle, &fs.SetAttr{Size: new(uint64)}, nil)
				return err
			},
		} {
			d := copyDisk(t, clean)
			buf := make([]byte, fs.BlockSize)
			at := table + n.Handle.Ino/16
			if err := d.ReadAt(at, [][]byte{buf}); err != nil {
				t.Fatal(err)
			}
			binary.LittleEndian.PutUint64(buf[n.Handle.Ino%16*256+pointers:], wild)
			tamper(t, d, map[uint64][]byte{at: buf})
			v := open(t, d, fs.Options{Log: quiet})
			err := do(v)
			if err == nil && what != "truncate" { // which frees no more than a bit of the bitmap, if there is one
				t.Errorf("%s of block %d succeeds", what, wild)
			}
			if _, err := v.Create(root, v.Root(), []byte("g"), fs.Guarded, nil, 0); err == nil && what != "truncate" {
				t.Errorf("after a %s of block %d the volume is written to", what, wild)
			}
			closeFS(t, v)
			closeFS(t, open(t, d, fs.Options{Log: quiet}))
			if err := d.ReadAt(0, [][]byte{buf}); err != nil || !bytes.Equal(buf, super) {
				t.Errorf("the superblock was changed by a %s of block %d", what, wild)
			}
		}
	}
}

// TestCircularLists: a volume whose list of files that were open, or of those whose blocks wait to be freed, comes back
// to where it began is opened all the same, and the log says what is wrong.
func TestCircularLists(t *testing.T) {
	clean := disk.NewMem(6000 * disk.BlockSize)
	mkfs(t, clean, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	table := binary.LittleEndian.Uint64(readBlock(t, clean, 0)[64:])     // where the inodes are
	const head = 2                                                       // the inode with the heads of both lists
	for name, off := range map[string]int{"open": 104, "waiting": 112} { // verified/fs/format/inode.dfy
		for _, first := range []uint64{1, head, 3, 1 << 40} { // 3: an inode that is free
			d := copyDisk(t, clean)
			b := readBlock(t, d, table)
			binary.LittleEndian.PutUint64(b[head*256+off:], first)
			tamper(t, d, map[uint64][]byte{table: b})
			told := make(advice, 1)
			v := open(t, d, fs.Options{Log: slog.New(slog.NewTextHandler(told, nil))})
			select {
			case <-told: // maybe by the background, which an end might come before
			case <-time.After(time.Minute):
				t.Errorf("%s: the list begins with inode %d, and nothing is said of it", name, first)
			}
			closeFS(t, v)
		}
	}
}

// advice gets a word when the log written to it says to run tansy check.
type advice chan struct{}

func (a advice) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("run tansy check")) {
		select {
		case a <- struct{}{}:
		default:
		}
	}
	return len(b), nil
}

// Whatever is on a volume, no operation panics or runs for ever, and it can be
// served again.
func TestRandomDamage(t *testing.T) {
	r := random(t)
	quiet := slog.New(slog.DiscardHandler)
	clean := disk.NewMem(6000 * disk.BlockSize)
	clock := fstest.NewClock()
	mkfs(t, clean, fs.MkfsOptions{Zeroed: true, Inodes: 256, Clock: clock.Now})
	v := open(t, clean, fs.Options{Clock: clock.Now})
	if err := fstest.New(model.New(model.Options{Clock: clock.Now}), v, fstest.Options{Seed: r.Int63(), Clock: clock}).Run(500); err != nil {
		t.Fatal(err)
	}
	closeFS(t, v)
	var used []uint64
	home := journalOf(t, clean).Home()
	buf := make([]byte, fs.BlockSize)
	for a := uint64(1); a < clean.Size()-1; a++ {
		if err := clean.ReadAt(a, [][]byte{buf}); err != nil {
			t.Fatal(err)
		}
		if a >= home && !bytes.Equal(buf, make([]byte, fs.BlockSize)) {
			used = append(used, a)
		}
	}
	rounds := 150
	if testing.Short() {
		rounds = 40
	}
	for range rounds {
		d := copyDisk(t, clean)
		changes := map[uint64][]byte{}
		for range 1 + r.Intn(8) {
			damage(t, r, d, used, changes)
		}
		if r.Intn(4) > 0 {
			tamper(t, d, changes)
		} else { // what no code is for
			for a, b := range changes {
				writeBlock(t, d, a, b)
			}
		}
		v, err := fs.Open(d, fs.Options{Log: quiet})
		if err != nil {
			continue
		}
		exercise(r, v)
		v.Close() // it may fail
		if _, err := fs.Open(d, fs.Options{Log: quiet, ReadOnly: true}); err != nil && !strings.Contains(err.Error(), "root") {
			t.Fatal("what was served cannot be opened any more:", err)
		}
	}
}

// damage makes up new contents of one of the blocks used.
func damage(t *testing.T, r *rand.Rand, d disk.Disk, used []uint64, changes map[uint64][]byte) {
	a := used[r.Intn(len(used))]
	b := changes[a]
	if b == nil {
		b = readBlock(t, d, a)
	}
	off := r.Intn(512) * 8
	switch r.Intn(6) {
	case 0:
		r.Read(b)
	case 1:
		r.Read(b[:off])
	case 2: // a plausible number
		binary.LittleEndian.PutUint64(b[off:], used[r.Intn(len(used))])
	case 3: // a number that is not
		binary.LittleEndian.PutUint64(b[off:], r.Uint64()>>r.Intn(64))
	case 4:
		b[r.Intn(len(b))] ^= 1 << r.Intn(8)
	case 5: // pointers to the superblocks and to the log
		for i := off; i < min(len(b), off+64); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], []uint64{0, 1, 2, d.Size() - 1, d.Size(), 1<<64 - 1}[r.Intn(6)])
		}
	}
	changes[a] = b
}

// exercise walks over the volume and changes what it finds.
func exercise(r *rand.Rand, v *fs.FS) {
	dirs, size := []fs.Handle{v.Root()}, func(n int) int { return n + 24 }
	for i := 0; i < len(dirs) && i < 30; i++ {
		dir := dirs[i]
		var cookie uint64
		for page := 0; page < 20; page++ {
			l, err := v.Readdir(root, dir, cookie, 0, true, fs.Limit{Bytes: 4096, Size: size})
			if err != nil {
				break
			}
			for _, e := range l.Entries {
				cookie = e.Cookie
				if string(e.Name) == "." || string(e.Name) == ".." {
					continue
				}
				v.Lookup(root, dir, e.Name)
				switch r.Intn(10) {
				case 0:
					v.Remove(root, dir, e.Name)
				case 1:
					v.Rmdir(root, dir, e.Name)
				case 2:
					v.Rename(root, dir, e.Name, v.Root(), fmt.Append(nil, "moved", i, cookie))
				case 3:
					v.Read(root, e.Handle, uint64(r.Intn(1<<22)), 1<<20)
				case 4:
					v.Write(root, e.Handle, uint64(r.Intn(1<<22)), make([]byte, 1+r.Intn(300000)), fs.FileSync)
				case 5:
					n := uint64(r.Int63n(1 << 40))
					v.Setattr(root, e.Handle, &fs.SetAttr{Size: &n}, nil)
				case 6:
					n := uint64(0)
					v.Create(root, dir, e.Name, fs.Unchecked, &fs.SetAttr{Size: &n}, 0)
				case 7:
					v.Link(root, e.Handle, v.Root(), fmt.Append(nil, "link", i, cookie))
				case 8:
					v.Readlink(root, e.Handle)
				case 9:
					v.Commit(e.Handle, 0, 0)
				}
				if e.Attr != nil && e.Attr.Type == fs.Directory {
					dirs = append(dirs, e.Handle)
				}
			}
			if l.EOF {
				break
			}
		}
		v.Mkdir(root, dir, []byte("sub"), nil)
		v.Create(root, dir, []byte("new"), fs.Guarded, nil, 0)
	}
	v.Fsstat(v.Root())
}

// A directory of an impossible size is refused, not walked through.
func TestImpossibleSize(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{})
	n, err := v.Mkdir(root, v.Root(), []byte("d"), &fs.SetAttr{})
	if err != nil {
		t.Fatal(err)
	}
	closeFS(t, v)
	b := make([]byte, fs.BlockSize)
	if err := d.ReadAt(0, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	a := binary.LittleEndian.Uint64(b[64:]) + n.Handle.Ino/16
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint64(b[n.Handle.Ino%16*256+32:], 1<<63)
	tamper(t, d, map[uint64][]byte{a: b})
	v = open(t, d, fs.Options{Log: slog.New(slog.DiscardHandler)})
	if _, err := v.Readdir(root, n.Handle, 0, 0, false, fs.Limit{Bytes: 4096, Size: func(n int) int { return n + 24 }}); err != fs.ErrIO {
		t.Errorf("listing it: %v", err)
	}
	v.Close() // it is read-only now, and may say so
}
