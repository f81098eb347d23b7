package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/journal"
)

var root = &fs.Cred{}

// put makes a file.
func put(t *testing.T, v *fs.FS, name string, contents []byte) {
	t.Helper()
	n, err := v.Create(root, v.Root(), []byte(name), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(contents); {
		k, _, _, err := v.Write(root, n.Handle, uint64(at), contents[at:], fs.FileSync)
		if err != nil {
			t.Fatal(err)
		}
		at += int(k)
	}
}

func remove(t *testing.T, v *fs.FS, name string) {
	t.Helper()
	if _, err := v.Remove(root, v.Root(), []byte(name)); err != nil {
		t.Fatal(err)
	}
}

// opened is a volume on d.
func opened(t *testing.T, d disk.Disk) *fs.FS {
	t.Helper()
	v, err := fs.Open(d, fs.Options{Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func closed(t *testing.T, v *fs.FS) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// made is a volume of so many bytes on a device, with what do does to it.
func made(t *testing.T, bytes uint64, o fs.MkfsOptions, do func(v *fs.FS)) *disk.Mem {
	t.Helper()
	d := disk.NewMem(bytes)
	o.Zeroed = true
	if err := fs.Mkfs(d, o); err != nil {
		t.Fatal(err)
	}
	change(t, d, do)
	return d
}

// change does something to the volume on d.
func change(t *testing.T, d disk.Disk, do func(v *fs.FS)) {
	t.Helper()
	v := opened(t, d)
	do(v)
	closed(t, v)
}

// A block that was free has the same code when the same contents are written there again: it is stored all the same.
// And what is free is not stored, though it has a code.
func TestSameContentsAgain(t *testing.T) {
	const files, blocks = 80, 10 // some pages have the codes of these alone; each is freed at once
	contents := bytes.Repeat([]byte("same"), blocks*disk.BlockSize/4)
	fill := func(v *fs.FS) {
		for i := range files {
			put(t, v, fmt.Sprint("f", i), contents)
		}
	}
	folder := t.TempDir()
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		fill(v)
		crowd(t, v) // so that the same blocks are taken again
	})
	_, first := add(t, folder, rest(t, d), false)
	for round := 0; ; round++ {
		change(t, d, func(v *fs.FS) {
			for i := range files {
				remove(t, v, fmt.Sprint("f", i))
			}
		})
		_, without := add(t, folder, rest(t, d), true)
		if without.Stored+files*blocks > first.Stored {
			t.Errorf("%d blocks with the files, and %d without", first.Stored, without.Stored)
		}
		before := chain(t, folder)
		change(t, d, fill)
		add(t, folder, rest(t, d), false)
		c := chain(t, folder)
		clean(t, "the backup", deviceIn(t, c))
		sameTree(t, "the backup", treeOf(t, d), treeOf(t, deviceIn(t, c)))
		if unchanged(t, before, c) || t.Failed() {
			return
		}
		if round == 50 { // pages change their places with each installation, which is in their codes
			t.Fatal("no page with the codes of blocks that are in use again is the same")
		}
	}
}

// unchanged tells whether a page has the codes of blocks that were free before, and are in use now, and is the same.
func unchanged(t *testing.T, before, now *Chain) bool {
	t.Helper()
	s, err := superOf(now)
	if err != nil {
		t.Fatal(err)
	}
	old, err := newSource(before, s)
	if err != nil {
		t.Fatal(err)
	}
	is, err := newSource(now, s)
	if err != nil {
		t.Fatal(err)
	}
	for a := s.Geometry().Data0(); a < s.Geometry().Data1(); a++ {
		was, err1 := old.used(a)
		used, err2 := is.used(a)
		p, err3 := old.snap.Codes(is.snap.PageOf(a))
		q, err4 := is.snap.Codes(is.snap.PageOf(a))
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		if !was && used && bytes.Equal(p.Data, q.Data) {
			return true
		}
	}
	return false
}

// A block that became zeros has none of its former contents, and is not stored.
func TestZerosAgain(t *testing.T) {
	folder := t.TempDir()
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", bytes.Repeat([]byte{1}, 120*disk.BlockSize)) })
	add(t, folder, rest(t, d), false)
	change(t, d, func(v *fs.FS) {
		n, err := v.Lookup(root, v.Root(), []byte("a"))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := v.Write(root, n.Handle, 0, make([]byte, 100*disk.BlockSize), fs.FileSync); err != nil {
			t.Fatal(err)
		}
	})
	if _, r := add(t, folder, rest(t, d), false); r.Stored > 50 {
		t.Errorf("%d blocks are stored", r.Stored)
	}
	c := chain(t, folder)
	clean(t, "zeros again", deviceIn(t, c))
	sameTree(t, "zeros again", treeOf(t, d), treeOf(t, restored(t, c, true)))
}

// crowd makes a file that takes all the room there is.
func crowd(t *testing.T, v *fs.FS) {
	t.Helper()
	n, err := v.Create(root, v.Root(), []byte("crowd"), fs.Guarded, nil, 0)
	for at := uint64(0); err == nil; at += disk.BlockSize {
		_, _, _, err = v.Write(root, n.Handle, at, bytes.Repeat([]byte{1}, disk.BlockSize), fs.Unstable)
	}
	if err != fs.ErrNoSpc {
		t.Fatal(err)
	}
}

// What did not change is not stored again, nor even read.
func TestSmallChange(t *testing.T) {
	folder := t.TempDir()
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		for i := range 40 {
			put(t, v, fmt.Sprint("f", i), bytes.Repeat([]byte{byte(i + 1)}, 100*disk.BlockSize))
		}
	})
	_, first := add(t, folder, rest(t, d), false)
	change(t, d, func(v *fs.FS) { put(t, v, "more", []byte("more")) })
	counted := disk.NewStats(rest(t, d))
	_, second := add(t, folder, counted, false)
	if first.Stored < 4000 || second.Stored > 40 || second.Parent != first.ID {
		t.Errorf("%d blocks, then %d", first.Stored, second.Stored)
	}
	if n := counted.Counts().ReadBlocks; n > 2000 {
		t.Errorf("%d blocks were read", n)
	}
	_, third := add(t, folder, rest(t, d), false)
	if third.Stored > 10 {
		t.Errorf("nothing changed, and %d blocks are stored", third.Stored)
	}
}

// A large volume with little in it is quick to back up, and to restore.
func TestSparse(t *testing.T) {
	for _, o := range []fs.MkfsOptions{{}, {MaxBytes: 1 << 50}} {
		d := made(t, 1<<40, o, func(v *fs.FS) { put(t, v, "a", make([]byte, 100_000)) })
		counted := disk.NewStats(rest(t, d))
		b := full(t, counted)
		if n := counted.Counts().ReadBlocks; n > 5000 || len(b) > 1<<20 {
			t.Errorf("%d blocks were read, and %d bytes are stored", n, len(b))
		}
		s, err := NewStream(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		v := restored(t, s, false)
		clean(t, "restored", v)
		sameTree(t, "restored", treeOf(t, d), treeOf(t, v))
	}
}

// A volume that has grown between two backups is restored as large as it was at each.
func TestGrown(t *testing.T) {
	folder := t.TempDir()
	size, file := uint64(256<<20), 100<<20
	if testing.Short() {
		size, file = 96<<20, 12<<20
	}
	whole := disk.NewMem(size)
	const before = 64 << 20 / disk.BlockSize
	d := disk.NewPrefix(whole, before)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, MaxBytes: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	change(t, d, func(v *fs.FS) { put(t, v, "a", make([]byte, 1<<20)) })
	trees := []map[string]string{treeOf(t, d)}
	first, _ := add(t, folder, rest(t, d), false)
	if _, err := fs.Grow(whole, fs.GrowOptions{}); err != nil {
		t.Fatal(err)
	}
	change(t, whole, func(v *fs.FS) { put(t, v, "b", bytes.Repeat([]byte{7}, file)) })
	trees = append(trees, treeOf(t, whole))
	second, _ := add(t, folder, rest(t, whole), false)
	for i, path := range []string{first, second} {
		c := chain(t, path)
		v := restored(t, c, true)
		if want := []uint64{before, whole.Size()}[i]; v.Size() != want {
			t.Errorf("%s needs %d blocks, want %d", path, v.Size(), want)
		}
		clean(t, path, v)
		sameTree(t, path, trees[i], treeOf(t, v))
	}
	larger := disk.NewMem(512 << 20)
	if _, err := Restore(context.Background(), larger, chain(t, second), RestoreOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Grow(larger, fs.GrowOptions{}); err != nil {
		t.Error(err)
	}
	clean(t, "on a larger device", larger)
	smaller := disk.NewMem(before*disk.BlockSize + 1<<20)
	if _, err := Restore(context.Background(), smaller, chain(t, second), RestoreOptions{}); !errors.Is(err, ErrTooSmall) {
		t.Errorf("on a smaller device: %v", err)
	}
}

// find returns the last block with these contents, which is behind the log.
func find(t *testing.T, d disk.Disk, contents []byte) uint64 {
	t.Helper()
	b := make([]byte, disk.BlockSize)
	for a := d.Size(); a > 0; a-- {
		if err := d.ReadAt(a-1, [][]byte{b}); err == nil && bytes.Equal(b, contents) {
			return a - 1
		}
	}
	t.Fatal("no such block")
	return 0
}

// A damaged block is named with its file, and the rest is backed up. What is restored has the same damage, and no
// other. When the block is mended, the next backup has it.
func TestDamagedSource(t *testing.T) {
	bad, unread := bytes.Repeat([]byte("bad!"), disk.BlockSize/4), bytes.Repeat([]byte("gone"), disk.BlockSize/4)
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		put(t, v, "sound", []byte("sound"))
		put(t, v, "bad", bad)
		put(t, v, "unread", unread)
	})
	a, u := find(t, d, bad), find(t, d, unread)
	if err := d.WriteAt(a, [][]byte{bytes.Repeat([]byte("rot!"), disk.BlockSize/4)}); err != nil {
		t.Fatal(err)
	}
	faulty := disk.NewFault(d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Read && op.Addr <= u && u < op.Addr+uint64(op.Blocks) {
			return disk.Harm{Err: disk.ErrInjected}
		}
		return disk.Harm{}
	})
	folder := t.TempDir()
	path, r := add(t, folder, rest(t, faulty), false)
	kinds := map[uint64]error{}
	for _, x := range r.Damaged {
		kinds[x.Block] = x.Err
	}
	if len(kinds) != 2 || !errors.Is(kinds[a], journal.ErrNotAsWritten) || !errors.Is(kinds[u], disk.ErrInjected) ||
		fmt.Sprint(r.Files) != `["/bad" "/unread"]` || r.Unnamed != nil {
		t.Errorf("damaged: %v, in %v (%v)", r.Damaged, r.Files, r.Unnamed)
	}
	c := chain(t, path)
	if n := c.Damaged(); n != 2 {
		t.Errorf("%d damaged blocks are in the backup", n)
	}
	v := opened(t, restored(t, c, true))
	for name, want := range map[string]error{"sound": nil, "bad": fs.ErrIO, "unread": fs.ErrIO} {
		n, err := v.Lookup(root, v.Root(), []byte(name))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := v.Read(root, n.Handle, 0, disk.BlockSize); err != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	closed(t, v)
	if err := d.WriteAt(a, [][]byte{bad}); err != nil {
		t.Fatal(err)
	}
	if _, r := add(t, folder, rest(t, d), false); len(r.Damaged) > 0 || r.Stored > 8 {
		t.Errorf("mended: %d blocks, damaged %v", r.Stored, r.Damaged)
	}
	c = chain(t, folder)
	clean(t, "mended", deviceIn(t, c))
	sameTree(t, "mended", treeOf(t, d), treeOf(t, restored(t, c, false)))
}

// A superblock, or its copy, that is damaged is sound in the backup.
func TestDamagedSuperblock(t *testing.T) {
	for _, which := range []uint64{0, 16<<20/disk.BlockSize - 1} {
		d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", []byte("a")) })
		want := treeOf(t, d)
		if err := d.WriteAt(which, [][]byte{make([]byte, disk.BlockSize)}); err != nil {
			t.Fatal(err)
		}
		if which == 0 { // a superblock yet, and a damaged one
			b := make([]byte, disk.BlockSize)
			if err := d.ReadAt(d.Size()-1, [][]byte{b}); err != nil {
				t.Fatal(err)
			}
			b[100] ^= 1
			if err := d.WriteAt(0, [][]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		path, _ := add(t, t.TempDir(), rest(t, d), false)
		clean(t, "the backup", deviceIn(t, chain(t, path)))
		v := restored(t, chain(t, path), true)
		clean(t, "restored", v)
		sameTree(t, "restored", want, treeOf(t, v))
	}
}

// A volume has its own folder. One that was restored goes on with the chain of the one it was.
func TestOtherVolume(t *testing.T) {
	folder := t.TempDir()
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", []byte("a")) })
	add(t, folder, rest(t, d), false)
	other := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) {})
	f, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, full := range []bool{false, true} {
		if _, _, err := f.Backup(context.Background(), rest(t, other), full, Options{}); !errors.Is(err, ErrOtherVolume) {
			t.Errorf("full %v: %v", full, err)
		}
	}
	if _, err := Write(context.Background(), &bytes.Buffer{}, rest(t, other), chain(t, folder),
		Options{}); !errors.Is(err, ErrOtherVolume) {
		t.Errorf("added to a chain: %v", err)
	}
	if _, err := OpenFolder(folder); !errors.Is(err, ErrBusy) {
		t.Errorf("a folder that is in use: %v", err)
	}
	f.Close()
	again := restored(t, chain(t, folder), false)
	change(t, again, func(v *fs.FS) { put(t, v, "b", []byte("b")) })
	if _, r := add(t, folder, rest(t, again), false); r.Full() {
		t.Error("a restored volume begins anew")
	}
	sameTree(t, "restored again", treeOf(t, again), treeOf(t, restored(t, chain(t, folder), true)))
}

// A folder that is full, or an interruption, leaves no part of a file, and what is there already stays.
func TestInterrupted(t *testing.T) {
	folder := t.TempDir()
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", make([]byte, 3<<20)) })
	path, _ := add(t, folder, rest(t, d), false)
	f, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	o := Options{Progress: func(_, _ uint64) { cancel(why) }}
	if _, _, err := f.Backup(ctx, rest(t, d), true, o); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
	if err := f.put(filepath.Join(folder, "x"+Suffix), disk.Rename, func(w *os.File) error {
		w.Write(make([]byte, 10))
		return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	}); !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "all backups are as they were") {
		t.Errorf("full: %v", err)
	}
	names, err := os.ReadDir(folder)
	if err != nil || len(names) != 1 || names[0].Name() != filepath.Base(path) {
		t.Errorf("left: %v, %v", names, err)
	}
	clean(t, path, deviceIn(t, chain(t, folder)))
}

// What a backup that was killed has left is removed by the next.
func TestLeftOver(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a[b]*c")
	f, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	left, other := filepath.Join(folder, "x"+Suffix+unfinished), filepath.Join(folder, "other")
	for _, name := range []string{left, other} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f, err = OpenFolder(folder); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if exists(left) || !exists(other) {
		t.Errorf("left over: %v, something else: %v", exists(left), exists(other))
	}
}

// releasing is a device that notes what is released, and refuses to read that.
type releasing struct {
	disk.Disk
	from, to uint64 // of [from, to)
	reads    int    // that were refused
}

func (r *releasing) ReadAt(a uint64, bufs [][]byte) error {
	if a < r.to && a+uint64(len(bufs)) > r.from {
		r.reads++
		return disk.ErrInjected
	}
	return r.Disk.ReadAt(a, bufs)
}

// Release implements disk.Releaser.
func (r *releasing) Release(from, to uint64) {
	if r.to != 0 && from != r.to || to <= from {
		r.reads++
	}
	if r.to == 0 {
		r.from = from
	}
	r.to = to
}

// Data are released, in their order, when they are stored, and not read again.
func TestReleased(t *testing.T) {
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		put(t, v, "a", bytes.Repeat([]byte("a"), 9<<20))
		put(t, v, "b", bytes.Repeat([]byte("b"), 9<<20))
		remove(t, v, "a")
		put(t, v, "c", bytes.Repeat([]byte("c"), 1<<20))
	})
	r := &releasing{Disk: rest(t, d)}
	b := full(t, r)
	if r.reads > 0 || r.to < r.from+10<<20/disk.BlockSize {
		t.Errorf("released: %d to %d, %d times not well", r.from, r.to, r.reads)
	}
	s, err := NewStream(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	sameTree(t, "restored", treeOf(t, d), treeOf(t, restored(t, s, true)))
}

// losing is a moment that is lost when its data are read.
type losing struct {
	disk.Disk
	from  uint64
	reads int // of data
}

func (l *losing) ReadAt(a uint64, bufs [][]byte) error {
	if a >= l.from {
		l.reads++
		return &disk.Error{Op: "read", Block: a, Err: disk.ErrMomentLost}
	}
	return l.Disk.ReadAt(a, bufs)
}

// A moment that is lost ends the backup, at once: that the rest cannot be read is no damage.
func TestMomentLost(t *testing.T) {
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", bytes.Repeat([]byte("a"), 9<<20)) })
	at := rest(t, d)
	s, err := superOf(at)
	if err != nil {
		t.Fatal(err)
	}
	l := &losing{Disk: at, from: s.Geometry().Data0()}
	r, err := Write(context.Background(), io.Discard, l, nil, Options{})
	if !errors.Is(err, disk.ErrMomentLost) || len(r.Damaged) > 0 || l.reads > 2 {
		t.Errorf("%v, with %d damaged blocks, after %d reads", err, len(r.Damaged), l.reads)
	}
}

// A rate is kept: so many bytes take so long, at least.
func TestRate(t *testing.T) {
	var b bytes.Buffer
	w := newPaced(context.Background(), &b, 1<<30, false)
	for range 64 {
		if _, err := w.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if b.Len() != 64<<20 {
		t.Errorf("%d bytes", b.Len())
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	w = newPaced(ctx, &b, 1, false)
	if _, err := w.Write(make([]byte, 1<<20)); !errors.Is(err, why) {
		t.Errorf("interrupted: %v", err)
	}
}
