//go:build linux

// Package mount tests volumes that are mounted by `tansy mount`, by what programs do with them. The POSIX suite and
// the exerciser (test/posix) run on such mounts, too.
package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tansy/test/kit/mounttest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// content fails the test unless the file has this content.
func content(t *testing.T, path, want string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		t.Errorf("%s: %q, %v, want %q", path, b, err, want)
	}
}

// openWith is an open file with this content.
func openWith(t *testing.T, path, data string) *os.File {
	t.Helper()
	must(t, os.WriteFile(path, []byte(data), 0o644))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// at fails the test unless an open file begins with data, and has so many links.
func at(t *testing.T, f *os.File, data string, links uint64) {
	t.Helper()
	b := make([]byte, len(data))
	if _, err := f.ReadAt(b, 0); err != nil || string(b) != data {
		t.Errorf("%s: %q, %v, want %q", f.Name(), b, err, data)
	}
	var st unix.Stat_t
	must(t, unix.Fstat(int(f.Fd()), &st))
	if uint64(st.Nlink) != links {
		t.Errorf("%s: %d links, want %d", f.Name(), st.Nlink, links)
	}
}

// Files that lose their last name while they are open live until they are closed, in whatever way they lose it.
func TestOpenWithoutName(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	p := func(name string) string { return filepath.Join(m.Dir, name) }

	must(t, os.Mkdir(p("d"), 0o755))
	removed := openWith(t, p("d/removed"), "removed")
	must(t, os.Remove(p("d/removed")))
	must(t, os.Remove(p("d"))) // which is empty
	at(t, removed, "removed", 0)

	replaced := openWith(t, p("replaced"), "old")
	must(t, os.WriteFile(p("new"), []byte("new"), 0o644))
	must(t, os.Rename(p("new"), p("replaced")))
	at(t, replaced, "old", 0)
	content(t, p("replaced"), "new")

	linked := openWith(t, p("one"), "linked")
	must(t, os.Link(p("one"), p("two")))
	must(t, os.Remove(p("one")))
	at(t, linked, "linked", 1)
	must(t, os.Remove(p("two")))
	at(t, linked, "linked", 0)

	for _, f := range []*os.File{removed, replaced, linked} {
		if _, err := f.WriteAt([]byte("changed"), 0); err != nil {
			t.Error(err)
		}
		must(t, f.Chmod(0o600))
		must(t, f.Sync())
		must(t, f.Truncate(100))
		at(t, f, "changed", 0)
		if err := os.Link("/proc/self/fd/"+f.Name(), p("again")); err == nil {
			t.Error("what has no name got one")
		}
	}
	// The same inode number for a new file is another file.
	for range 20 {
		must(t, os.WriteFile(p("fresh"), []byte("fresh"), 0o644))
		must(t, os.Remove(p("fresh")))
	}
	at(t, removed, "changed", 0)

	// A file without a name from the start, and one that gets a name.
	for _, name := range []string{"", "named"} {
		fd, err := unix.Open(m.Dir, unix.O_TMPFILE|unix.O_RDWR, 0o640)
		must(t, err)
		f := os.NewFile(uintptr(fd), "tmpfile")
		_, err = f.WriteString("nameless")
		must(t, err)
		at(t, f, "nameless", 0)
		if name != "" {
			must(t, unix.Linkat(fd, "", unix.AT_FDCWD, p(name), unix.AT_EMPTY_PATH))
			at(t, f, "nameless", 1)
		}
		f.Close()
	}
	content(t, p("named"), "nameless")

	// What is gone still says what it was, to who has it without having it open.
	must(t, os.Mkdir(p("gone"), 0o750))
	fd, err := unix.Open(p("gone"), unix.O_PATH, 0)
	must(t, err)
	must(t, os.Remove(p("gone")))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Nlink != 0 || st.Mode != unix.S_IFDIR|0o750 {
		t.Errorf("a removed folder: %v, %o, %d links", err, st.Mode, st.Nlink)
	}
	must(t, unix.Close(fd))

	// Earlier mounts had a folder for them; nobody else may have one of that name.
	if err := os.Mkdir(p(".tansy-open"), 0o755); !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	var names []string
	entries, err := os.ReadDir(m.Dir)
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) != 2 || names[0] != "named" || names[1] != "replaced" {
		t.Errorf("names: %q", names)
	}
	must(t, unix.Stat(m.Dir, &st))
	if st.Nlink != 2 {
		t.Errorf("the root has %d links", st.Nlink)
	}
	for _, f := range []*os.File{removed, replaced, linked} {
		must(t, f.Close())
	}
	m.Unmount(t, bin, image)
	if out := mounttest.Run(t, bin, "dump", image, "dir", "1"); strings.Contains(out, ".tansy-open") || !containsAll(out, "named", "replaced") {
		t.Errorf("the root directory:\n%s", out)
	}
}

// What a crash leaves of open files without a name goes with the next mount.
func TestCrashWithOpenFiles(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	const n = 100
	inodes := func() uint64 {
		var st unix.Statfs_t
		must(t, unix.Statfs(m.Dir, &st))
		return st.Ffree
	}
	free := inodes()
	var f *os.File
	for i := range n {
		name := filepath.Join(m.Dir, "f")
		f = openWith(t, name, "data")
		if i%2 == 0 {
			must(t, os.Remove(name))
		} else {
			must(t, os.WriteFile(filepath.Join(m.Dir, "new"), nil, 0o644))
			must(t, os.Rename(filepath.Join(m.Dir, "new"), name))
			must(t, os.Remove(name))
		}
	}
	for inodes() != free-n { // until the kernel has said that nobody has the others open
		runtime.Gosched()
	}
	must(t, f.Sync())
	m.Kill()
	must(t, unix.Unmount(m.Dir, unix.MNT_DETACH))
	if out := mounttest.Run(t, bin, "check", image, "--data"); !containsAll(out, "100 files that a mount had open") {
		t.Errorf("kept files are not counted:\n%s", out)
	}
	m = mounttest.New(t, bin, image)
	m.Unmount(t, bin, image)
	if want := "count=100"; !containsAll(m.Log.String(), want) {
		t.Errorf("no %q in\n%s", want, &m.Log)
	}
	if out := mounttest.Run(t, bin, "check", image); !containsAll(out, "0 files, 1 directory with 0 entries") {
		t.Errorf("something is left:\n%s", out)
	}
}

// A full volume does not keep open files from being removed.
func TestRemoveOpenOnFullVolume(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "16M")
	m := mounttest.New(t, bin, image)
	var open []*os.File
	for i := range 500 {
		open = append(open, openWith(t, filepath.Join(m.Dir, fmt.Sprint("f", i)), "data"))
	}
	f, err := os.Create(filepath.Join(m.Dir, "big"))
	must(t, err)
	defer f.Close()
	for chunk := 1 << 20; chunk > 0; chunk /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, chunk))
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
	}
	for _, f := range open {
		must(t, os.Remove(f.Name()))
		at(t, f, "data", 0)
	}
	must(t, os.Remove(f.Name()))
	if err := f.Sync(); err != nil {
		t.Error(err)
	}
	must(t, f.Close())
	for _, f := range open {
		must(t, f.Close())
	}
	// Its room is there once the kernel has said that nobody has "big" open; close(2) does not wait for that.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		err := os.WriteFile(filepath.Join(m.Dir, "small"), make([]byte, 4<<20), 0o644)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.ENOSPC) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	m.Unmount(t, bin, image)
}
