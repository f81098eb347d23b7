//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Random operations on a tree of the process's own, each predicted by the model.

// Sizes of the tree.
const (
	maxDirs     = 60
	maxDepth    = 8
	maxTreeFile = 20000 // bytes
)

// treeNames are the names in a directory; few, so that operations meet.
var treeNames = []string{
	"a", "b", "c", "d", "e", "f", "g", "...", "with space", "\xff\x01", "läng", strings.Repeat("long", 60),
	strings.Repeat("n", 255),
}

type treeExercise struct {
	*worker
	top    *node
	dirs   []*node // all directories
	shared *sharer
}

// exerciseTree does n operations, a quarter of them in the shared tree.
func exerciseTree(w *worker, n int, s *sharer) error {
	t := &treeExercise{worker: w, top: newDir(), shared: s}
	t.dirs = []*node{t.top}
	for w.done < n {
		var err error
		if t.chance(4) {
			err = s.step()
		} else {
			err = t.step()
		}
		if err != nil {
			return err
		}
		w.forget()
		if w.done%2000 == 0 {
			if err := t.verify(); err != nil {
				return err
			}
		}
	}
	return t.verify()
}

// dir chooses a directory.
func (t *treeExercise) dir() *node { return t.dirs[t.rnd.IntN(len(t.dirs))] }

// entry chooses a directory and a name, more often one that is there.
func (t *treeExercise) entry() (d *node, name string) {
	d = t.dir()
	if len(d.names) > 0 && t.rnd.IntN(10) < 6 {
		return d, d.names[t.rnd.IntN(len(d.names))]
	}
	return d, treeNames[t.rnd.IntN(len(treeNames))]
}

// at is the path of a name.
func (t *treeExercise) at(d *node, name string) string { return filepath.Join(d.path(t.dir0()), name) }

func (t *treeExercise) dir0() string { return t.worker.dir }

// show is at, shortened for messages.
func (t *treeExercise) show(d *node, name string) string {
	p := strings.TrimPrefix(t.at(d, name), t.dir0()+"/")
	p = strings.ReplaceAll(p, strings.Repeat("n", 255), "n*255")
	return strings.ReplaceAll(p, strings.Repeat("long", 60), "long*60")
}

func (t *treeExercise) step() error {
	switch r := t.rnd.IntN(100); {
	case r < 16:
		return t.create()
	case r < 22:
		return t.write()
	case r < 27:
		return t.truncate()
	case r < 35:
		return t.mkdir()
	case r < 40:
		return t.rmdir()
	case r < 48:
		return t.unlink()
	case r < 60:
		return t.rename()
	case r < 66:
		return t.link()
	case r < 70:
		return t.symlink()
	case r < 73:
		return t.mknod()
	case r < 77:
		return t.chmod()
	case r < 80:
		return t.chown()
	case r < 83:
		return t.utimens()
	case r < 85:
		return t.through()
	case r < 90:
		d, name := t.entry()
		t.note("lstat %s", t.show(d, name))
		return t.compare(d, name)
	case r < 95:
		d, name := t.entry()
		t.note("read %s", t.show(d, name))
		return t.contents(d, name)
	default:
		d := t.dir()
		t.note("readdir %s", t.show(d, ""))
		return t.listing(d)
	}
}

// confirm looks, after some of the operations, if what was changed is as it should be.
func (t *treeExercise) confirm(what string, d *node, name string) error {
	if !t.chance(3) {
		return nil
	}
	if err := t.compare(d, name); err != nil {
		return fmt.Errorf("after %s: %w", what, err)
	}
	return nil
}

// create makes or opens a file and writes into it.
func (t *treeExercise) create() error {
	d, name := t.entry()
	old := d.children[name]
	flags := unix.O_WRONLY | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC
	mode := t.mode()
	excl := t.chance(2) || old != nil && old.kind != unix.S_IFREG && old.kind != unix.S_IFDIR && old.kind != unix.S_IFLNK
	if excl {
		flags |= unix.O_EXCL
	}
	trunc := t.chance(3)
	if trunc {
		flags |= unix.O_TRUNC
	}
	b := t.bytes(t.rnd.IntN(2000))
	var want unix.Errno
	switch {
	case old == nil:
	case excl:
		want = unix.EEXIST
	case old.isDir():
		want = unix.EISDIR
	case old.kind == unix.S_IFLNK:
		want = unix.ELOOP
	}
	what := t.note("create %s mode %o excl %t trunc %t, %d bytes", t.show(d, name), mode, excl, trunc, len(b))
	fd, err := unix.Open(t.at(d, name), flags, mode)
	if err := expect(what, err, want); err != nil || want != 0 {
		return err
	}
	err = writeAll(fd, b, -1)
	if e := unix.Close(fd); err == nil {
		err = e
	}
	if err := expect(what, err, 0); err != nil {
		return err
	}
	if old == nil {
		old = &node{kind: unix.S_IFREG, mode: mode}
		old.inherit(d)
		d.put(name, old)
	}
	if trunc {
		old.data, old.mtime = nil, nil
	}
	old.overwrite(b, 0)
	return t.confirm(what, d, name)
}

// overwrite puts b into a regular file.
func (n *node) overwrite(b []byte, at int) {
	if len(b) == 0 {
		return
	}
	if end := at + len(b); end > len(n.data) {
		n.data = append(n.data, make([]byte, end-len(n.data))...)
	}
	copy(n.data[at:], b)
	n.mtime = nil
}

func (t *treeExercise) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(t.done + i*7 + i>>8)
	}
	return b
}

// mode chooses permission bits; never sticky and writable for others, because
// a kernel may be set to refuse opening for O_CREAT what is in such directories.
func (t *treeExercise) mode() uint32 {
	return []uint32{0o644, 0o600, 0o755, 0o777, 0, 0o1755, 0o2755, 0o6711, 0o2644, 0o444}[t.rnd.IntN(10)]
}

// file chooses a name that is a regular file, if it meets one.
func (t *treeExercise) file() (d *node, name string, n *node) {
	for range 5 {
		d, name = t.entry()
		if n = d.children[name]; n != nil && n.kind == unix.S_IFREG {
			return d, name, n
		}
	}
	return d, name, nil
}

func (t *treeExercise) write() error {
	d, name, n := t.file()
	at := t.rnd.IntN(maxTreeFile)
	b := t.bytes(1 + t.rnd.IntN(min(3000, maxTreeFile-at)))
	what := t.note("write %s, %d bytes at %d", t.show(d, name), len(b), at)
	if n == nil {
		return nil
	}
	fd, err := unix.Open(t.at(d, name), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err := expect(what, err, 0); err != nil {
		return err
	}
	err = writeAll(fd, b, int64(at))
	if e := unix.Close(fd); err == nil {
		err = e
	}
	n.overwrite(b, at)
	if err := expect(what, err, 0); err != nil {
		return err
	}
	return t.confirm(what, d, name)
}

func (t *treeExercise) truncate() error {
	d, name, n := t.file()
	size := t.rnd.IntN(maxTreeFile)
	what := t.note("truncate %s to %d", t.show(d, name), size)
	if n == nil {
		return nil
	}
	if err := expect(what, unix.Truncate(t.at(d, name), int64(size)), 0); err != nil {
		return err
	}
	n.mtime = nil
	if size <= len(n.data) {
		n.data = n.data[:size:size]
	} else {
		n.data = append(n.data, make([]byte, size-len(n.data))...)
	}
	return t.confirm(what, d, name)
}

func (t *treeExercise) mkdir() error {
	d, name := t.entry()
	mode := t.mode() &^ (unix.S_ISUID | unix.S_ISGID) // mkdir ignores these
	what := t.note("mkdir %s mode %o", t.show(d, name), mode)
	want := d.mayMake(name)
	if want == 0 && (len(t.dirs) >= maxDirs || d.depth() >= maxDepth) {
		return nil
	}
	if err := expect(what, unix.Mkdir(t.at(d, name), mode), want); err != nil || want != 0 {
		return err
	}
	n := newDir()
	n.mode = mode
	n.inherit(d)
	d.put(name, n)
	t.dirs = append(t.dirs, n)
	return t.confirm(what, d, name)
}

func (t *treeExercise) rmdir() error {
	d, name := t.entry()
	what := t.note("rmdir %s", t.show(d, name))
	want := d.mayRmdir(name)
	if err := expect(what, unix.Rmdir(t.at(d, name)), want); err != nil || want != 0 {
		return err
	}
	t.gone(d.take(name))
	return t.confirm(what, d, name)
}

// gone takes a removed directory off the list.
func (t *treeExercise) gone(n *node) {
	i := slices.Index(t.dirs, n)
	t.dirs = slices.Delete(t.dirs, i, i+1)
}

func (t *treeExercise) unlink() error {
	d, name := t.entry()
	what := t.note("unlink %s", t.show(d, name))
	want := d.mayUnlink(name)
	if err := expect(what, unix.Unlink(t.at(d, name)), want); err != nil || want != 0 {
		return err
	}
	d.take(name)
	return t.confirm(what, d, name)
}

func (t *treeExercise) rename() error {
	d, name := t.entry()
	to, toName := t.entry()
	what := t.note("rename %s to %s", t.show(d, name), t.show(to, toName))
	n, old := d.children[name], to.children[toName]
	want := d.mayRename(name, to, toName)
	if want == 0 && n.isDir() && to.depth() >= maxDepth-3 && to != d {
		return nil // what is below n must not get too deep
	}
	if err := expect(what, unix.Rename(t.at(d, name), t.at(to, toName)), want); err != nil || want != 0 {
		return err
	}
	d.rename(name, to, toName)
	if old != nil && old != n && old.isDir() {
		t.gone(old)
	}
	if err := t.confirm(what, d, name); err != nil {
		return err
	}
	return t.confirm(what, to, toName)
}

func (t *treeExercise) link() error {
	d, name := t.entry()
	to, toName := t.entry()
	what := t.note("link %s to %s", t.show(d, name), t.show(to, toName))
	want := d.mayLink(name, to, toName)
	err := unix.Link(t.at(d, name), t.at(to, toName))
	if n := d.children[name]; n != nil && n.isDir() {
		// an NFS client may leave it to the server to find that the new name exists
		if want == unix.EEXIST && err == unix.EEXIST {
			return nil
		}
		return expect(what, err, unix.EPERM)
	}
	if err := expect(what, err, want); err != nil || want != 0 {
		return err
	}
	to.put(toName, d.children[name])
	return t.confirm(what, to, toName)
}

func (t *treeExercise) symlink() error {
	d, name := t.entry()
	target := strings.Repeat("x/", t.rnd.IntN(100)) + "y"
	what := t.note("symlink %s, %d bytes", t.show(d, name), len(target))
	want := d.mayMake(name)
	if err := expect(what, unix.Symlink(target, t.at(d, name)), want); err != nil || want != 0 {
		return err
	}
	n := &node{kind: unix.S_IFLNK, mode: 0o777, target: target}
	n.inherit(d)
	d.put(name, n)
	return t.confirm(what, d, name)
}

func (t *treeExercise) mknod() error {
	d, name := t.entry()
	kind := []uint32{unix.S_IFIFO, unix.S_IFSOCK, unix.S_IFCHR, unix.S_IFBLK}[t.rnd.IntN(4)]
	what := t.note("mknod %s, kind %o", t.show(d, name), kind)
	want := d.mayMake(name)
	if err := expect(what, unix.Mknod(t.at(d, name), kind|0o640, int(unix.Mkdev(5, 250))), want); err != nil || want != 0 {
		return err
	}
	n := &node{kind: kind, mode: 0o640}
	n.inherit(d)
	d.put(name, n)
	return t.confirm(what, d, name)
}

func (t *treeExercise) chmod() error {
	d, name := t.entry()
	mode := t.mode()
	what := t.note("chmod %s %o", t.show(d, name), mode)
	n := d.children[name]
	if n != nil && n.kind == unix.S_IFLNK {
		return nil // it would follow
	}
	want := exists(n)
	if err := expect(what, unix.Chmod(t.at(d, name), mode), want); err != nil || want != 0 {
		return err
	}
	n.mode = mode
	return t.confirm(what, d, name)
}

func exists(n *node) unix.Errno {
	if n == nil {
		return unix.ENOENT
	}
	return 0
}

func (t *treeExercise) chown() error {
	d, name := t.entry()
	uid, gid := t.rnd.IntN(3)*1000, t.rnd.IntN(3)*1000
	what := t.note("lchown %s %d %d", t.show(d, name), uid, gid)
	n := d.children[name]
	want := exists(n)
	if err := expect(what, unix.Lchown(t.at(d, name), uid, gid), want); err != nil || want != 0 {
		return err
	}
	n.uid, n.gid = uid, gid
	if !n.isDir() { // it is no longer the program of its old owner
		n.mode &^= unix.S_ISUID
		if n.mode&0o10 != 0 {
			n.mode &^= unix.S_ISGID
		}
	}
	return t.confirm(what, d, name)
}

func (t *treeExercise) utimens() error {
	d, name := t.entry()
	ts := []unix.Timespec{{Sec: int64(t.rnd.IntN(1 << 31)), Nsec: 5},
		{Sec: int64(t.rnd.IntN(1 << 31)), Nsec: int64(t.rnd.IntN(1e9))}}
	what := t.note("utimensat %s %d.%09d", t.show(d, name), ts[1].Sec, ts[1].Nsec)
	n := d.children[name]
	want := exists(n)
	if err := expect(what, unix.UtimesNanoAt(unix.AT_FDCWD, t.at(d, name), ts, unix.AT_SYMLINK_NOFOLLOW), want); err != nil || want != 0 {
		return err
	}
	n.mtime = &ts[1]
	return t.confirm(what, d, name)
}

// through goes through a name as if it were a directory.
func (t *treeExercise) through() error {
	d, name := t.entry()
	what := t.note("lstat %s/nothing", t.show(d, name))
	n := d.children[name]
	want := unix.ENOENT
	if n != nil && !n.isDir() {
		if n.kind == unix.S_IFLNK {
			return nil
		}
		want = unix.ENOTDIR
	}
	var st unix.Stat_t
	return expect(what, unix.Lstat(t.at(d, name)+"/nothing", &st), want)
}
