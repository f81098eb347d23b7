//go:build linux

package mount

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/test/kit/mounttest"
	"tansy/test/kit/nfsclient"
)

var steps = flag.Int("steps", 2000, "random operations on a volume that is mounted and served")

// A file of the model: what it has, by whichever name.
type modelFile struct {
	data  []byte
	mode  uint32
	links int
}

// held is a file that is open on the mount, and mapped, whatever becomes of its name.
type held struct {
	file   *os.File
	of     *modelFile
	mapped []byte
}

// faces are the two faces of a volume, and the model of both.
type faces struct {
	t      *testing.T
	random *rand.Rand
	dir    string // of the mount
	c      *nfsclient.Client
	dirs   []tansyfs.Handle
	names  map[string]*modelFile // "0/name", in directory 0
	held   []*held
	did    []string
}

// fail ends the test with the last operations.
func (w *faces) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nafter %d operations (-seed %d), of which the last are\n%s",
		fmt.Sprintf(format, args...), len(w.did), *seed, w.did[max(0, len(w.did)-10):])
}

func (w *faces) path(name string) string { return filepath.Join(w.dir, name) }

// at is where NFS finds a name.
func (w *faces) at(name string) (dir tansyfs.Handle, base []byte) {
	return w.dirs[name[0]-'0'], []byte(name[2:])
}

func (w *faces) find(name string) tansyfs.Node {
	w.t.Helper()
	dir, base := w.at(name)
	n, err := w.c.Lookup(root, dir, base)
	if err != nil {
		w.fail("%s by NFS: %v", name, err)
	}
	return n
}

// anyName is a name, which may have no file.
func (w *faces) anyName() string {
	return fmt.Sprintf("%d/n%d", w.random.IntN(len(w.dirs)), w.random.IntN(6))
}

// anyFile is a name that has one, "" if there is none.
func (w *faces) anyFile() string {
	if len(w.names) == 0 {
		return ""
	}
	all := slices.Sorted(maps.Keys(w.names))
	return all[w.random.IntN(len(all))]
}

// drop takes a name from the file that has it.
func (w *faces) drop(name string) {
	if f := w.names[name]; f != nil {
		f.links--
		delete(w.names, name)
	}
}

// grow makes a file of the model at least so long.
func (f *modelFile) grow(n int) {
	if n > len(f.data) {
		f.data = append(f.data, make([]byte, n-len(f.data))...)
	}
}

// An operation by one of the faces: here, on the mount, or by NFS. It returns "" if there is nothing to do it to.
type operation func(w *faces, here bool) (what string, err error)

var operations = []operation{opWrite, opWrite, opWrite, opAppend, opCut, opMake, opRemove, opRename, opLink, opMode,
	opHold, opHold, opHeldWrite, opLetGo}

func opWrite(w *faces, here bool) (string, error) {
	name := w.anyFile()
	if name == "" {
		return "", nil
	}
	f := w.names[name]
	off, data := w.random.IntN(len(f.data)+5000), bytes.Repeat([]byte{byte('a' + w.random.IntN(26))},
		1+w.random.IntN(9000))
	f.grow(off + len(data))
	copy(f.data[off:], data)
	what := fmt.Sprintf("write %d at %d to %s", len(data), off, name)
	if here {
		file, err := os.OpenFile(w.path(name), os.O_WRONLY, 0)
		if err != nil {
			return what, err
		}
		defer file.Close()
		_, err = file.WriteAt(data, int64(off))
		return what, err
	}
	_, _, _, err := w.c.Write(root, w.find(name).Handle, uint64(off), data, tansyfs.Stability(w.random.IntN(3)))
	return what, err
}

func opAppend(w *faces, _ bool) (string, error) {
	name := w.anyFile()
	if name == "" {
		return "", nil
	}
	f := w.names[name]
	data := bytes.Repeat([]byte{byte('A' + w.random.IntN(26))}, 1+w.random.IntN(3000))
	f.data = append(f.data, data...)
	what := fmt.Sprintf("append %d to %s", len(data), name)
	file, err := os.OpenFile(w.path(name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return what, err
	}
	defer file.Close()
	_, err = file.Write(data)
	return what, err
}

func opCut(w *faces, here bool) (string, error) {
	name := w.anyFile()
	if name == "" {
		return "", nil
	}
	f := w.names[name]
	size := w.random.IntN(20000)
	f.data = slices.Clone(f.data[:min(size, len(f.data))])
	f.grow(size)
	what := fmt.Sprintf("cut %s to %d", name, size)
	if here {
		return what, os.Truncate(w.path(name), int64(size))
	}
	to := uint64(size)
	_, err := w.c.Setattr(root, w.find(name).Handle, &tansyfs.SetAttr{Size: &to}, nil)
	return what, err
}

// opMake makes a file, or cuts the one that is there to nothing.
func opMake(w *faces, here bool) (string, error) {
	name := w.anyName()
	f := w.names[name]
	if f == nil {
		f = &modelFile{mode: 0o640, links: 1}
		w.names[name] = f
	}
	f.data = nil
	what := "make " + name
	if here {
		file, err := os.OpenFile(w.path(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
		if err != nil {
			return what, err
		}
		return what, file.Close()
	}
	dir, base := w.at(name)
	mode, size := f.mode, uint64(0)
	_, err := w.c.Create(root, dir, base, tansyfs.Unchecked, &tansyfs.SetAttr{Mode: &mode, Size: &size}, 0)
	return what, err
}

func opRemove(w *faces, here bool) (string, error) {
	name := w.anyFile()
	if name == "" {
		return "", nil
	}
	w.drop(name)
	if here {
		return "remove " + name, os.Remove(w.path(name))
	}
	dir, base := w.at(name)
	_, err := w.c.Remove(root, dir, base)
	return "remove " + name, err
}

func opRename(w *faces, here bool) (string, error) {
	name, to := w.anyFile(), w.anyName()
	if name == "" {
		return "", nil
	}
	if f := w.names[name]; f != w.names[to] { // else nothing happens
		w.drop(to)
		delete(w.names, name)
		w.names[to] = f
	}
	what := "rename " + name + " to " + to
	if here {
		return what, os.Rename(w.path(name), w.path(to))
	}
	from, base := w.at(name)
	dir, newBase := w.at(to)
	_, _, err := w.c.Rename(root, from, base, dir, newBase)
	return what, err
}

func opLink(w *faces, here bool) (string, error) {
	name, to := w.anyFile(), w.anyName()
	if name == "" || w.names[to] != nil {
		return "", nil
	}
	f := w.names[name]
	f.links++
	w.names[to] = f
	what := "link " + name + " to " + to
	if here {
		return what, os.Link(w.path(name), w.path(to))
	}
	dir, base := w.at(to)
	_, _, err := w.c.Link(root, w.find(name).Handle, dir, base)
	return what, err
}

func opMode(w *faces, here bool) (string, error) {
	name := w.anyFile()
	if name == "" {
		return "", nil
	}
	mode := 0o600 | uint32(w.random.IntN(0o200))
	w.names[name].mode = mode
	what := fmt.Sprintf("chmod %o %s", mode, name)
	if here {
		return what, unix.Chmod(w.path(name), mode)
	}
	_, err := w.c.Setattr(root, w.find(name).Handle, &tansyfs.SetAttr{Mode: &mode}, nil)
	return what, err
}

// opHold opens a file on the mount for a while, and maps it.
func opHold(w *faces, _ bool) (string, error) {
	name := w.anyFile()
	if name == "" || len(w.held) == 6 {
		return "", nil
	}
	file, err := os.OpenFile(w.path(name), os.O_RDWR, 0)
	if err != nil {
		return "hold " + name, err
	}
	h := &held{file: file, of: w.names[name]}
	if n := len(h.of.data); n > 0 {
		if h.mapped, err = unix.Mmap(int(file.Fd()), 0, n, unix.PROT_READ, unix.MAP_PRIVATE); err != nil {
			return "map " + name, err
		}
	}
	w.held = append(w.held, h)
	return "hold " + name, nil
}

func opHeldWrite(w *faces, _ bool) (string, error) {
	if len(w.held) == 0 {
		return "", nil
	}
	h := w.held[w.random.IntN(len(w.held))]
	off, data := w.random.IntN(len(h.of.data)+100), bytes.Repeat([]byte{byte('0' + w.random.IntN(10))},
		1+w.random.IntN(5000))
	h.of.grow(off + len(data))
	copy(h.of.data[off:], data)
	_, err := h.file.WriteAt(data, int64(off))
	return fmt.Sprintf("write %d at %d to %s, which is held", len(data), off, h.file.Name()), err
}

func opLetGo(w *faces, _ bool) (string, error) {
	if len(w.held) == 0 {
		return "", nil
	}
	i := w.random.IntN(len(w.held))
	h := w.held[i]
	w.held = slices.Delete(w.held, i, i+1)
	return "let go of " + h.file.Name(), h.close()
}

func (h *held) close() (err error) {
	if h.mapped != nil {
		err = unix.Munmap(h.mapped)
	}
	return errors.Join(err, h.file.Close())
}

// check compares both faces with the model.
func (w *faces) check() {
	for name, f := range w.names {
		b, err := os.ReadFile(w.path(name))
		if err != nil || !bytes.Equal(b, f.data) {
			w.fail("%s on the mount: %d bytes, %v, want %d; the first other one is %d", name, len(b), err, len(f.data),
				differ(b, f.data))
		}
		var st unix.Stat_t
		if err := unix.Stat(w.path(name), &st); err != nil || st.Size != int64(len(f.data)) || st.Mode&0o7777 != f.mode || int(st.Nlink) != f.links {
			w.fail("%s on the mount: %d bytes, mode %o, %d links, %v; want %d, %o, %d", name, st.Size, st.Mode&0o7777, st.Nlink,
				err, len(f.data), f.mode, f.links)
		}
		n := w.find(name)
		if n.Attr.Size != uint64(len(f.data)) || n.Attr.Mode != f.mode || int(n.Attr.Nlink) != f.links {
			w.fail("%s by NFS: %+v; want %d bytes, mode %o, %d links", name, n.Attr, len(f.data), f.mode, f.links)
		}
		if got := get(w.t, w.c, n.Handle); got != string(f.data) {
			w.fail("%s by NFS: %d bytes, want %d; the first other one is %d", name, len(got), len(f.data),
				differ([]byte(got), f.data))
		}
	}
	for _, h := range w.held {
		st, err := h.file.Stat() // so that the kernel knows the size: beyond it there is no memory
		if err != nil || st.Size() != int64(len(h.of.data)) {
			w.fail("%s, which is held: %v, %v, want %d bytes", h.file.Name(), st, err, len(h.of.data))
		}
		b := make([]byte, len(h.of.data)+1)
		if n, _ := h.file.ReadAt(b, 0); n != len(h.of.data) || !bytes.Equal(b[:n], h.of.data) {
			w.fail("%s, which is held: %d bytes, want %d; the first other one is %d", h.file.Name(), n, len(h.of.data),
				differ(b[:n], h.of.data))
		}
		if n := min(len(h.mapped), len(h.of.data)); !bytes.Equal(h.mapped[:n], h.of.data[:n]) {
			w.fail("%s, which is mapped: another content; the first other byte is %d", h.file.Name(),
				differ(h.mapped[:n], h.of.data[:n]))
		}
	}
	for i, dir := range w.dirs {
		want := []string{}
		for name := range w.names {
			if name[0] == byte('0'+i) {
				want = append(want, name[2:])
			}
		}
		slices.Sort(want)
		here := []string{}
		entries, err := os.ReadDir(w.path(fmt.Sprint(i)))
		for _, e := range entries {
			here = append(here, e.Name())
		}
		l, err2 := w.c.Readdir(root, dir, 0, 0, false, tansyfs.Limit{Bytes: 1 << 16, Size: func(int) int { return 1 }})
		there := []string{}
		for _, e := range l.Entries {
			if string(e.Name) != "." && string(e.Name) != ".." {
				there = append(there, string(e.Name))
			}
		}
		slices.Sort(there)
		if err = errors.Join(err, err2); err != nil || !slices.Equal(here, want) || !slices.Equal(there, want) {
			w.fail("directory %d: %q here, %q there, %v, want %q", i, here, there, err, want)
		}
	}
}

// differ is the first byte in which two are not the same.
func differ(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// Random operations by either face: after each, both show what the model says, and so does what is open and mapped.
func TestServedRandom(t *testing.T) {
	t.Parallel() // beside TestServedBusy, which waits
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	w := &faces{t: t, random: rand.New(rand.NewPCG(*seed, 11)), dir: m.Dir, c: c, names: map[string]*modelFile{}}
	t.Logf("-seed %d", *seed)
	unix.Umask(0o022)
	for i := range 2 {
		must(t, os.Mkdir(p(fmt.Sprint(i)), 0o755))
		w.dirs = append(w.dirs, find(t, c, fmt.Sprint(i)).Handle)
	}
	for range *steps {
		here := w.random.IntN(2) == 0
		what, err := operations[w.random.IntN(len(operations))](w, here)
		if what == "" {
			continue
		}
		w.did = append(w.did, fmt.Sprintf("%s (here: %v)\n", what, here))
		if err != nil {
			w.fail("%v", err)
		}
		w.check()
	}
	for _, h := range w.held {
		must(t, h.close())
	}
	stop(t, m, bin, image)
}
