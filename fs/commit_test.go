package fs_test

import (
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// COMMIT costs no barrier when all is durable. Of many there are fewer barriers than one for each: the
// journal itself may need some in the meantime.
func TestCommitOfNothingCostsNoBarrier(t *testing.T) {
	d := disk.NewStats(disk.NewMem(6000 * disk.BlockSize))
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{})
	defer closeFS(t, v)
	f, err := v.Create(root, v.Root(), []byte("f"), fs.Guarded, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	commits := func(how fs.Stability) uint64 {
		t.Helper()
		before := d.Counts().Barriers
		for i := range n {
			if i == 0 || how == fs.Unstable {
				if _, _, _, err := v.Write(root, f.Handle, 0, []byte("data"), how); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := v.Commit(f.Handle, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		return d.Counts().Barriers - before
	}
	if b := commits(fs.FileSync); b > n/10 {
		t.Errorf("%d barriers for %d COMMITs of what was durable", b, n)
	}
	if b := commits(fs.Unstable); b < n {
		t.Errorf("%d barriers for %d COMMITs of something", b, n)
	}
}

// COMMIT is of regular files, by anybody.
func TestCommitOfWhat(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{})
	defer closeFS(t, v)
	if _, err := v.Commit(v.Root(), 0, 0); err != fs.ErrInval {
		t.Errorf("a directory: %v", err)
	}
	l, err := v.Symlink(root, v.Root(), []byte("l"), nil, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Commit(l.Handle, 0, 0); err != fs.ErrInval {
		t.Errorf("a symbolic link: %v", err)
	}
	if _, err := v.Commit(fs.Handle{Ino: 200, Gen: 1}, 0, 0); err != fs.ErrStale {
		t.Errorf("no file: %v", err)
	}
}
