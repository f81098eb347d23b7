package backup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
)

// twoFiles is a folder with a full backup and one that adds to it, and the tree of the volume.
func twoFiles(t *testing.T) (folder string, want map[string]string) {
	t.Helper()
	folder = t.TempDir()
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		for _, name := range []string{"a", "b", "c"} {
			put(t, v, name, bytes.Repeat([]byte(name), 100_000))
		}
	})
	add(t, folder, rest(t, d), false)
	change(t, d, func(v *fs.FS) {
		remove(t, v, "b")
		put(t, v, "d", bytes.Repeat([]byte("d"), 100_000))
	})
	add(t, folder, rest(t, d), false)
	return folder, treeOf(t, d)
}

// judge is what is seen of a folder that may be damaged: an error of opening it, or what a check says, and what becomes
// of a restore. sound: none of these noticed anything. dev: all of it was restored; else nil.
func judge(t *testing.T, folder string) (sound bool, dev disk.Disk) {
	t.Helper()
	known := func(err error) {
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotBackup) {
			t.Errorf("an error that does not say that the backup is damaged: %v", err)
		}
	}
	c, err := Open(folder)
	if err != nil {
		known(err)
		return false, nil
	}
	defer c.Close()
	d := disk.NewMem(c.Info().Room * disk.BlockSize)
	lost, err := Restore(context.Background(), d, c, RestoreOptions{Zeroed: true})
	if err != nil {
		known(err)
		if _, err := fs.Open(d, fs.Options{ReadOnly: true, Log: quiet}); !errors.Is(err, fs.ErrNotVolume) {
			t.Errorf("a restore that failed left a volume: %v", err)
		}
	}
	if x, err2 := c.Device(); err2 != nil {
		known(err2)
	} else if r, err2 := check.Volume(x, check.Options{Data: true}); (err == nil && lost == 0) !=
		(err2 == nil && r.Clean()) {
		t.Errorf("restore: %d lost, %v; but a check says %v, %v", lost, err, r.Problems, err2)
	}
	if err != nil || lost > 0 {
		return false, nil
	}
	return len(c.Flaws()) == 0, d
}

// Any byte of a backup that changes is noticed, where it matters: or what is restored is what was there.
func TestEveryBlockFlipped(t *testing.T) {
	folder, want := twoFiles(t)
	r := drawn(t)
	all, err := List(folder)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	unnoticed, flaws := 0, 0
	for i, l := range all {
		sound, err := os.ReadFile(l.Path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(sound); at += disk.BlockSize {
			b := bytes.Clone(sound)
			b[at+r.Intn(disk.BlockSize)] ^= 1 << r.Intn(8)
			if err := os.WriteFile(l.Path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if blocks, err := Verify(l.Path, nil); err == nil && len(blocks) == 0 {
				t.Errorf("%s, block %d was changed, and Verify did not notice", l.Path, at/disk.BlockSize)
			}
			ok, d := judge(t, folder)
			switch {
			case ok && i == 0:
				unnoticed++
			case ok:
				t.Errorf("block %d of the last file was changed, and nobody noticed", at/disk.BlockSize)
			case d != nil:
				flaws++
			}
			if d != nil {
				sameTree(t, l.Path, want, treeOf(t, d))
			}
		}
		if err := os.WriteFile(l.Path, sound, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if flaws != 6 { // header, index, and end of each
		t.Errorf("%d changes were noticed, and nothing lost", flaws)
	}
	if unnoticed == 0 || unnoticed > 60 { // what the second has anew
		t.Errorf("%d changes to the first file were not noticed", unnoticed)
	}
	if ok, _ := judge(t, folder); !ok {
		t.Error("the backup is damaged without a change")
	}
	for _, l := range all {
		if blocks, err := Verify(l.Path, nil); err != nil || len(blocks) > 0 {
			t.Errorf("%s: %v, %v", l.Path, blocks, err)
		}
	}
}

// A file that was cut anywhere is noticed, in a folder and in a pipe, and so is one that is missing.
func TestCut(t *testing.T) {
	folder, _ := twoFiles(t)
	all, err := List(folder)
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(all[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	r := drawn(t)
	for n := 0; n < len(first); n += 1 + r.Intn(2*disk.BlockSize) {
		if err := os.WriteFile(all[0].Path, first[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if ok, _ := judge(t, folder); ok {
			t.Errorf("cut to %d bytes, and nobody noticed", n)
		}
		s, err := NewStream(bytes.NewReader(first[:n]))
		if err == nil {
			_, err = Restore(context.Background(), disk.NewMem(16<<20), s, RestoreOptions{})
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotBackup) {
			t.Errorf("a pipe that ends after %d bytes: %v", n, err)
		}
	}
	if err := os.Remove(all[0].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); !errors.Is(err, ErrDamaged) {
		t.Errorf("without the first file: %v", err)
	}
	if err := os.Remove(all[1].Path); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(folder); !errors.Is(err, ErrNotBackup) || Is(folder) {
		t.Errorf("without any file: %v", err)
	}
}

// Where a file is damaged, backups go on with those that are not, and which is the last has to be said.
func TestAddToDamaged(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", []byte("a")) })
	folder := t.TempDir()
	first, _ := add(t, folder, rest(t, d), false)
	if err := os.WriteFile(filepath.Join(folder, "9"+Suffix), make([]byte, 2*disk.BlockSize), 0o600); err != nil {
		t.Fatal(err)
	}
	second, r := add(t, folder, rest(t, d), false)
	if r.Full() || r.Number != 2 {
		t.Errorf("%+v", r)
	}
	if _, err := Open(folder); !errors.Is(err, ErrDamaged) {
		t.Errorf("which is the last is known: %v", err)
	}
	for _, p := range []string{first, second} {
		clean(t, p, deviceIn(t, chain(t, p)))
	}
	if err := os.Truncate(first, 3*disk.BlockSize); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Backup(context.Background(), rest(t, d), false, Options{}); !errors.Is(err, ErrDamaged) {
		t.Errorf("without the first: %v", err)
	}
	f.Close()
	third, r := add(t, folder, rest(t, d), true)
	if !r.Full() || r.Number != 3 {
		t.Errorf("%+v", r)
	}
	clean(t, third, deviceIn(t, chain(t, third)))
}

// Whatever has rotted in the last backup, what is added to it is whole, or has damage that is noticed; or nothing is
// added.
func TestAddToRotten(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		put(t, v, "a", bytes.Repeat([]byte("a"), 100_000))
		put(t, v, "b", bytes.Repeat([]byte("b"), 100_000))
	})
	folder, r := t.TempDir(), drawn(t)
	path, _ := add(t, folder, rest(t, d), false)
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	change(t, d, func(v *fs.FS) {
		remove(t, v, "a")
		put(t, v, "c", bytes.Repeat([]byte("c"), 100_000))
	})
	want, added := treeOf(t, d), 0
	for at := 0; at < len(sound); at += disk.BlockSize {
		b := bytes.Clone(sound)
		b[at+r.Intn(disk.BlockSize)] ^= 1 << r.Intn(8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFolder(folder)
		if err != nil {
			t.Fatal(err)
		}
		more, _, err := f.Backup(context.Background(), rest(t, d), false, Options{})
		f.Close()
		if err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("block %d: %v", at/disk.BlockSize, err)
			}
			continue
		}
		added++
		if _, now := judge(t, folder); now != nil {
			sameTree(t, more, want, treeOf(t, now))
		}
		if err := os.Remove(more); err != nil {
			t.Fatal(err)
		}
	}
	if blocks := len(sound) / disk.BlockSize; added < blocks/2 || added > blocks-5 {
		t.Errorf("of %d blocks that had rotted, %d did not matter", blocks, added)
	}
}

// What was changed in a pipe with all its checksums is noticed: there is one of all.
func TestStreamForged(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", bytes.Repeat([]byte("a"), 100_000)) })
	b := full(t, rest(t, d))
	i, err := decodeHeader(b[:disk.BlockSize])
	if err != nil {
		t.Fatal(err)
	}
	entries, ok := decodeHead(b[disk.BlockSize:2*disk.BlockSize], i.ID, 1, i.Size)
	if !ok {
		t.Fatal("no head")
	}
	data := b[(2+10)*disk.BlockSize:][:disk.BlockSize]
	data[0] ^= 1
	entries[10].sum = crc(data)
	copy(b[disk.BlockSize:], encodeHead(i.ID, 1, entries))
	s, err := NewStream(bytes.NewReader(b))
	if err == nil {
		_, err = Restore(context.Background(), disk.NewMem(16<<20), s, RestoreOptions{})
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("forged: %v", err)
	}
}

// Nothing may follow a backup in a pipe: a second one would be forgotten.
func TestStreamAndMore(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", []byte("a")) })
	b := full(t, rest(t, d))
	for what, more := range map[string][]byte{"a byte": {0}, "another backup": b} {
		s, err := NewStream(bytes.NewReader(append(bytes.Clone(b), more...)))
		if err == nil {
			_, err = Restore(context.Background(), disk.NewMem(16<<20), s, RestoreOptions{})
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "follows its end") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// In a pipe any byte that changes is noticed.
func TestStreamFlipped(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", bytes.Repeat([]byte("a"), 100_000)) })
	sound, r := full(t, rest(t, d)), drawn(t)
	for at := 0; at < len(sound); at += disk.BlockSize {
		b := bytes.Clone(sound)
		b[at+r.Intn(disk.BlockSize)] ^= 1 << r.Intn(8)
		s, err := NewStream(bytes.NewReader(b))
		var lost uint64
		if err == nil {
			lost, err = Restore(context.Background(), disk.NewMem(16<<20), s, RestoreOptions{})
		}
		if lost == 0 && err == nil {
			t.Errorf("block %d was changed, and nobody noticed", at/disk.BlockSize)
		}
	}
}

// An interrupted restore leaves no volume, wherever it is interrupted, not even that which was there before.
func TestInterruptedRestore(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", bytes.Repeat([]byte("a"), 3<<20)) })
	b := full(t, rest(t, d))
	path := filepath.Join(t.TempDir(), "b"+Suffix)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c, why := chain(t, path), errors.New("enough")
	for after := range 4 {
		over := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "old", []byte("old")) })
		ctx, cancel := context.WithCancelCause(context.Background())
		n := 0
		_, err := Restore(ctx, over, c, RestoreOptions{Progress: func(_, _ uint64) {
			if n++; n > after {
				cancel(why)
			}
		}})
		if !errors.Is(err, why) {
			t.Fatalf("after %d writes: %v", after, err)
		}
		if _, err := fs.Open(over, fs.Options{ReadOnly: true, Log: quiet}); !errors.Is(err, fs.ErrNotVolume) {
			t.Errorf("after %d writes there is a volume: %v", after, err)
		}
		if _, err := Restore(context.Background(), over, c, RestoreOptions{}); err != nil {
			t.Error(err)
		}
		clean(t, "restored after an interruption", over)
		sameTree(t, "restored after an interruption", treeOf(t, d), treeOf(t, over))
	}
}

// The log of the volume that a device had before does not come to life, also if that is the one that is restored.
func TestOlderLog(t *testing.T) {
	d := disk.NewSim(16 << 20)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	v := opened(t, d)
	defer v.Close()
	put(t, v, "a", []byte("a"))
	if err := v.Sync(); err != nil {
		t.Fatal(err)
	}
	then := d.Crash(disk.LoseAll)
	want := treeOf(t, then)
	s, err := NewStream(bytes.NewReader(full(t, rest(t, then))))
	if err != nil {
		t.Fatal(err)
	}
	put(t, v, "b", []byte("b"))
	later := d.Crash(disk.LoseAll) // with both in the log
	if _, err := Restore(context.Background(), later, s, RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	clean(t, "restored", later)
	sameTree(t, "restored", want, treeOf(t, later))
}

// A backup without its last block is none, though all its checksums are right.
func TestCutWithChecksums(t *testing.T) {
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", []byte("a")) })
	path, _ := add(t, t.TempDir(), rest(t, d), false)
	c := chain(t, path)
	var b bytes.Buffer
	w, err := newWriter(&b, c.Info())
	if err == nil {
		err = c.each(func(e entry, data []byte) error {
			if e.block == c.Size()-1 {
				return nil
			}
			return w.add(e, data)
		})
	}
	if err == nil {
		err = w.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	short, err := chainOf([]*file{reopened(t, b.Bytes(), "short")})
	if err == nil {
		_, err = Restore(context.Background(), disk.NewMem(16<<20), short, RestoreOptions{})
	}
	if !errors.Is(err, ErrDamaged) {
		t.Errorf("without its last block: %v", err)
	}
}
