package backup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tansy/fs"
	"tansy/test/kit/hosttest"
)

// Where a folder elsewhere is full, what came is kept, and what there was; with room, the rest comes.
func TestReceiveFull(t *testing.T) {
	at := hosttest.Mount(t, "tmpfs", 8<<20)
	folder, d := filepath.Join(at, "to"), big(t)
	if _, got, err := receive(folder, sent(t, rest(t, d), have(t, folder))); !errors.Is(err, syscall.ENOSPC) || !got.Kept {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := syscall.Mount("tmpfs", at, "tmpfs", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	path, got, err := receive(folder, sent(t, rest(t, d), have(t, folder)))
	if err != nil || got.Parts != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	c := chain(t, path)
	clean(t, path, deviceIn(t, c))
	sameTree(t, path, treeOf(t, d), treeOf(t, deviceIn(t, c)))
	if err := c.Close(); err != nil { // the file system is unmounted before the end of the test
		t.Fatal(err)
	}
}

// Where the folder's file system is full, nothing of a backup is left, and the one before is whole; so it is where a
// prune finds no room.
func TestFolderFull(t *testing.T) {
	at := hosttest.Mount(t, "tmpfs", 12<<20)
	folder := filepath.Join(at, "backups")
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "a", bytes.Repeat([]byte("a"), 5<<20)) })
	first, _ := add(t, folder, rest(t, d), false)
	trees := []map[string]string{treeOf(t, d)}
	change(t, d, func(v *fs.FS) { put(t, v, "b", bytes.Repeat([]byte("b"), 3<<20)) })
	second, _ := add(t, folder, rest(t, d), false)
	trees = append(trees, treeOf(t, d))
	f, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Prune(context.Background(), keep(t, "last=1"), nil); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("prune: %v", err)
	}
	change(t, d, func(v *fs.FS) { put(t, v, "c", bytes.Repeat([]byte("c"), 20<<20)) })
	for _, full := range []bool{false, true} {
		if _, _, err := f.Backup(context.Background(), rest(t, d), full, Options{}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("full %v: %v", full, err)
		}
	}
	for i, path := range []string{first, second} {
		clean(t, path, deviceIn(t, chain(t, path)))
		sameTree(t, path, trees[i], treeOf(t, deviceIn(t, chain(t, path))))
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) != 2 {
		t.Errorf("left: %v, %v", left, err)
	}
}
