package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand"
	"slices"

	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/offline/check"
	"tansy/test/kit/fstest"
)

var seed = flag.Int64("seed", 0, "seed of the random tests; 0: draw one")

// drawn is a random source, whose seed is printed.
func drawn(t *testing.T) *rand.Rand {
	n := *seed
	if n == 0 {
		n = time.Now().UnixNano()
	}
	t.Logf("to repeat: -seed %d", n)
	return rand.New(rand.NewSource(n))
}

var quiet = slog.New(slog.DiscardHandler)

// tree is all that can be reached in a file system, by its path: type, mode, owner, size, times, links, contents.
func tree(t *testing.T, f fs.FileSystem) map[string]string {
	t.Helper()
	all := map[string]string{}
	root := &fs.Cred{}
	var visit func(path string, h fs.Handle)
	visit = func(path string, h fs.Handle) {
		a, err := f.Getattr(h)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		said := fmt.Sprintf("%d %o %d links %d:%d %d bytes %v %v %d,%d", a.Type, a.Mode, a.Nlink, a.UID, a.GID, a.Size,
			a.Mtime, a.Ctime, a.Major, a.Minor)
		switch a.Type {
		case fs.Regular:
			sum := sha256.New()
			for at := uint64(0); at < a.Size; {
				b, _, _, err := f.Read(root, h, at, 1<<16)
				if err != nil || len(b) == 0 {
					t.Fatalf("%s at %d of %d: %d bytes, %v", path, at, a.Size, len(b), err)
				}
				sum.Write(b)
				at += uint64(len(b))
			}
			said += fmt.Sprintf(" %x", sum.Sum(nil))
		case fs.Symlink:
			to, _, err := f.Readlink(root, h)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			said += fmt.Sprintf(" -> %q", to)
		case fs.Directory:
			for cookie, end := uint64(0), false; !end; {
				l, err := f.Readdir(root, h, cookie, 0, true, fs.Limit{Bytes: 1 << 20})
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				for _, e := range l.Entries {
					name := string(e.Name)
					if cookie = e.Cookie; name != "." && name != ".." {
						visit(path+"/"+name, e.Handle)
					}
				}
				end = l.EOF
			}
		}
		all[path] = said
	}
	visit("", f.Root())
	return all
}

// sameTree compares what was and what is.
func sameTree(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(want)) {
		if got[p] != want[p] {
			t.Errorf("%s: %q: %q, want %q", what, p, got[p], want[p])
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s: there is %q", what, p)
		}
	}
}

// place stands for the volume, which is opened again and again.
type place struct{ fs.FileSystem }

// worker does random operations on a volume, and on a model of it.
type worker struct {
	t     *testing.T
	d     *disk.Sim
	v     *fs.FS
	place *place
	model fs.FileSystem
	work  *fstest.Comparer
	clock *fstest.Clock
}

// newWorker makes a volume on a device of so many bytes.
func newWorker(t *testing.T, bytes uint64, o fs.MkfsOptions, seed int64) *worker {
	t.Helper()
	w := &worker{t: t, d: disk.NewSim(bytes), place: &place{}, clock: fstest.NewClock()}
	o.Zeroed, o.Clock = true, w.clock.Now
	if err := fs.Mkfs(w.d, o); err != nil {
		t.Fatal(err)
	}
	w.open()
	w.model = model.New(model.Options{Clock: w.clock.Now})
	w.work = fstest.New(w.model, w.place, fstest.Options{Seed: seed, Clock: w.clock})
	return w
}

func (w *worker) open() {
	w.t.Helper()
	v, err := fs.Open(w.d, fs.Options{Log: quiet, Clock: w.clock.Now})
	if err != nil {
		w.t.Fatal(err)
	}
	w.v, w.place.FileSystem = v, v
}

func (w *worker) close() {
	w.t.Helper()
	if err := w.v.Close(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) run(n int) {
	w.t.Helper()
	if err := w.work.Run(n); err != nil {
		w.t.Fatal(err)
	}
}

// killed is what the device has if the server is killed now: all that was acknowledged, some of it in the log.
func (w *worker) killed() disk.Disk {
	w.t.Helper()
	if err := w.v.Sync(); err != nil {
		w.t.Fatal(err)
	}
	return w.d.Crash(disk.LoseAll)
}

// rest is a volume at rest.
func rest(t *testing.T, d disk.Disk) disk.Disk {
	t.Helper()
	at, err := fs.AtRest(d, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// treeOf is that of the volume on d, which is not changed.
func treeOf(t *testing.T, d disk.Disk) map[string]string {
	t.Helper()
	v, err := fs.Open(d, fs.Options{ReadOnly: true, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	return tree(t, v)
}

// clean makes sure that the volume on d is sound, with all that is in its files.
func clean(t *testing.T, what string, d disk.Disk) {
	t.Helper()
	r, err := check.Volume(d, check.Options{Data: true})
	if err != nil || !r.Clean() || len(r.Unchecked) > 0 {
		t.Errorf("%s: %v, %v, not checked: %q", what, r.Problems, err, r.Unchecked)
	}
}

// restored is a device with the volume of a backup; dirty: it had something else before.
func restored(t *testing.T, b Backup, dirty bool) disk.Disk {
	t.Helper()
	d := disk.NewMem(b.Info().Room * disk.BlockSize)
	if dirty {
		junk := bytes.Repeat([]byte{0xa5}, disk.BlockSize)
		for a := range d.Size() {
			if err := d.WriteAt(a, [][]byte{junk}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if lost, err := Restore(context.Background(), d, b, RestoreOptions{Zeroed: !dirty}); err != nil || lost > 0 {
		t.Fatalf("%d blocks lost, %v", lost, err)
	}
	return d
}

// full is a full backup in memory.
func full(t *testing.T, d disk.Disk) []byte {
	t.Helper()
	var b bytes.Buffer
	r, err := Write(context.Background(), &b, d, nil, Options{})
	if err != nil || len(r.Damaged) > 0 {
		t.Fatal(r.Damaged, err)
	}
	if r.Bytes != uint64(b.Len()) {
		t.Errorf("%d bytes, and the report says %d", b.Len(), r.Bytes)
	}
	return b.Bytes()
}

// chain is what there is in a folder, or a file.
func chain(t *testing.T, path string) *Chain {
	t.Helper()
	c, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// add makes one more backup in a folder.
func add(t *testing.T, folder string, d disk.Disk, full bool) (string, Report) {
	t.Helper()
	f, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	path, r, err := f.Backup(context.Background(), d, full, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return path, r
}

func deviceIn(t *testing.T, c *Chain) disk.Disk {
	t.Helper()
	d, err := c.Device()
	if err != nil {
		t.Fatal(err)
	}
	return d
}
