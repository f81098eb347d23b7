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
