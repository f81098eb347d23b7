package fs_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
	"tansy/test/kit/replay"
)

// A keptFile is what a file is to be.
type keptFile struct {
	handle fs.Handle
	data   string
	names  map[string]bool
	kept   bool
}

func (f *keptFile) there() bool { return f.kept || len(f.names) > 0 }

// keptFiles is a volume of files in the root directory, beside what they are to be.
type keptFiles struct {
	t     *testing.T
	v     *fs.FS
	files map[fs.Handle]*keptFile
	gone  []fs.Handle
}

func (k *keptFiles) ok(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *keptFiles) of(name string) *keptFile {
	for _, f := range k.files {
		if f.names[name] {
			return f
		}
	}
	return nil
}

func (k *keptFiles) made(n fs.Node, err error, data string, f *keptFile) {
	k.t.Helper()
	k.ok(err)
	f.handle, f.data = n.Handle, data
	_, _, _, err = k.v.Write(root, n.Handle, 0, []byte(data), fs.Unstable)
	k.ok(err)
	k.files[n.Handle] = f
}

// lose takes a name from what is to have it.
func (k *keptFiles) lose(name string) {
	if f := k.of(name); f != nil {
		delete(f.names, name)
		k.settle(f)
	}
}

func (k *keptFiles) settle(f *keptFile) {
	if !f.there() {
		delete(k.files, f.handle)
		k.gone = append(k.gone, f.handle)
	}
}

// look compares all that can be seen.
func (k *keptFiles) look() {
	k.t.Helper()
	for _, f := range k.files {
		a, err := k.v.Getattr(f.handle)
		k.ok(err)
		links := len(f.names)
		if f.kept {
			links++
		}
		data, _, _, err := k.v.Read(root, f.handle, 0, 100)
		if k.ok(err); int(a.Nlink) != links || string(data) != f.data {
			k.t.Fatalf("a file of names %v, kept %v: %d links, %q; want %q",
				slices.Collect(maps.Keys(f.names)), f.kept, a.Nlink, data, f.data)
		}
		for name := range f.names {
			if n, err := k.v.Lookup(root, k.v.Root(), []byte(name)); err != nil || n.Handle != f.handle {
				k.t.Fatalf("%s is %v, %v; want %v", name, n.Handle, err, f.handle)
			}
		}
	}
	for _, h := range k.gone {
		if _, err := k.v.Getattr(h); err != fs.ErrStale {
			k.t.Fatalf("a file that is gone: %v", err)
		}
	}
}

// step does something at random.
func (k *keptFiles) step(rnd *rand.Rand, n int) {
	k.t.Helper()
	name, other := fmt.Sprint("f", rnd.Intn(6)), fmt.Sprint("f", rnd.Intn(6))
	dir, f := k.v.Root(), k.of(name)
	var any *keptFile // of all there are
	for _, h := range slices.SortedFunc(maps.Keys(k.files), func(a, b fs.Handle) int { return int(a.Ino) - int(b.Ino) }) {
		if any == nil || rnd.Intn(3) == 0 {
			any = k.files[h]
		}
	}
	switch op := rnd.Intn(9); {
	case op <= 1 && f == nil:
		n, err := k.v.Create(root, dir, []byte(name), fs.Guarded, nil, 0)
		k.made(n, err, name, &keptFile{names: map[string]bool{name: true}})
	case op == 2:
		node, err := k.v.Tmpfile(root, dir, nil)
		k.made(node, err, fmt.Sprint("nameless ", n), &keptFile{names: map[string]bool{}, kept: true})
	case op == 3 && f != nil:
		if _, err := k.v.RemoveOpen(root, dir, []byte(name), f.handle); f.kept {
			if err != fs.ErrExist {
				k.t.Fatalf("a file is kept twice: %v", err)
			}
			break
		} else {
			k.ok(err)
		}
		f.kept = true
		k.lose(name)
	case op == 4 && f != nil:
		_, err := k.v.Remove(root, dir, []byte(name))
		k.ok(err)
		k.lose(name)
	case op == 5 && f != nil && name != other:
		from := k.of(other)
		if from == nil || from == f || f.kept {
			break
		}
		_, _, err := k.v.RenameOpen(root, dir, []byte(other), dir, []byte(name), f.handle)
		k.ok(err)
		f.kept = true
		k.lose(name)
		delete(from.names, other)
		from.names[name] = true
	case op == 6 && f == nil && any != nil:
		_, _, err := k.v.Link(root, any.handle, dir, []byte(name))
		k.ok(err)
		any.names[name] = true
	case op == 7 && any != nil && !any.kept:
		if err := k.v.LetGo(any.handle); err != fs.ErrInval {
			k.t.Fatalf("a file is let go that is not kept: %v", err)
		}
		k.ok(k.v.Keep(any.handle))
		any.kept = true
	case op >= 7 && any != nil && any.kept:
		k.ok(k.v.LetGo(any.handle))
		any.kept = false
		k.settle(any)
	}
}

// Files keep their contents and handles while they are kept, whatever becomes of their names, and not longer; and the
// volume says so when it is opened again.
func TestKept(t *testing.T) {
	seed := replay.Seed(t)
	rnd := rand.New(rand.NewSource(int64(seed)))
	d := disk.NewMem(4000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 512})
	k := &keptFiles{t: t, v: open(t, d, fs.Options{Deferred: true}), files: map[fs.Handle]*keptFile{}}
	for round := range 8 {
		for n := range 120 {
			k.step(rnd, n)
			k.look()
		}
		kept := 0
		for _, f := range k.files {
			if f.kept {
				kept++
			}
		}
		closeFS(t, k.v)
		r, err := check.Volume(d, check.Options{Data: true})
		if err != nil || !r.Clean() || int(r.Kept) != kept {
			t.Fatalf("round %d: %d files are kept, and check says %d, %v, %v", round, kept, r.Kept, r.Problems, err)
		}
		if round%2 == 0 { // what is read-only lets nothing go
			k.v = open(t, d, fs.Options{ReadOnly: true})
			k.look()
			closeFS(t, k.v)
		}
		k.v = open(t, d, fs.Options{Deferred: true})
		for _, f := range k.files {
			f.kept = false
			k.settle(f)
		}
		k.look()
	}
	closeFS(t, k.v)
	mustCheck(t, d)
}

// However a list of kept files is let go, in whatever order, nothing is left of it.
func TestKeptOrder(t *testing.T) {
	seed := replay.Seed(t)
	rnd := rand.New(rand.NewSource(int64(seed)))
	d := disk.NewMem(4000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 512})
	v := open(t, d, fs.Options{Deferred: true})
	before, _, err := v.Fsstat(v.Root())
	if err != nil {
		t.Fatal(err)
	}
	var files []fs.Handle
	for range 300 {
		n, err := v.Tmpfile(root, v.Root(), nil)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, n.Handle)
	}
	rnd.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	for _, h := range files {
		if err := v.LetGo(h); err != nil {
			t.Fatal(err)
		}
	}
	if after, _, err := v.Fsstat(v.Root()); err != nil || after.FreeFiles != before.FreeFiles {
		t.Errorf("%d files are free, and were %d, %v", after.FreeFiles, before.FreeFiles, err)
	}
	closeFS(t, v)
	mustCheck(t, d)
}
