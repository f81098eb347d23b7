//go:build linux

package mount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/test/kit/mounttest"
	"tansy/test/kit/nfsclient"
)

// root is in whose name the client of NFS calls.
var root = &tansyfs.Cred{}

// client is one of the server of a mount.
func client(t *testing.T, m *mounttest.Mount) *nfsclient.Client {
	t.Helper()
	c, err := nfsclient.Mount(m.Addr)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// served is a new volume with both faces: the client of NFS, and p for paths in the mount.
func served(
	t *testing.T, bin string, flags ...string,
) (m *mounttest.Mount, image string, c *nfsclient.Client, p func(string) string) {
	t.Helper()
	image = mounttest.Volume(t, bin, "64M")
	m = mounttest.Serve(t, bin, image, t.TempDir(), nil, flags...)
	return m, image, client(t, m), func(name string) string { return filepath.Join(m.Dir, name) }
}

// stop stops the server as a service manager does. It must end well, with the mount, and leave a volume that is sound.
func stop(t *testing.T, m *mounttest.Mount, bin, image string) {
	t.Helper()
	must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	if entries, err := os.ReadDir(m.Dir); err != nil || len(entries) != 0 {
		t.Errorf("what was below the mount: %v, %v", entries, err)
	}
	mounttest.Run(t, bin, "check", image, "--data")
}

// put writes a file by NFS, which it makes if it is missing.
func put(t *testing.T, c *nfsclient.Client, name, data string) tansyfs.Handle {
	t.Helper()
	size := uint64(0)
	n, err := c.Create(root, c.Root(), []byte(name), tansyfs.Unchecked, &tansyfs.SetAttr{Size: &size}, 0)
	must(t, err)
	write(t, c, n.Handle, 0, data)
	return n.Handle
}

func write(t *testing.T, c *nfsclient.Client, h tansyfs.Handle, off uint64, data string) {
	t.Helper()
	n, _, _, err := c.Write(root, h, off, []byte(data), tansyfs.Unstable)
	if err != nil || int(n) != len(data) {
		t.Fatalf("%d bytes written: %v", n, err)
	}
}

// get is the content of a file, by NFS.
func get(t *testing.T, c *nfsclient.Client, h tansyfs.Handle) string {
	t.Helper()
	var all []byte
	for {
		b, eof, _, err := c.Read(root, h, uint64(len(all)), 1<<16)
		must(t, err)
		if all = append(all, b...); eof {
			return string(all)
		}
	}
}

// find is a file by NFS.
func find(t *testing.T, c *nfsclient.Client, name string) tansyfs.Node {
	t.Helper()
	n, err := c.Lookup(root, c.Root(), []byte(name))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func resize(t *testing.T, c *nfsclient.Client, h tansyfs.Handle, size uint64) {
	t.Helper()
	_, err := c.Setattr(root, h, &tansyfs.SetAttr{Size: &size}, nil)
	must(t, err)
}

// size fails the test unless an open file has this size.
func size(t *testing.T, f *os.File, want int64) {
	t.Helper()
	if st, err := f.Stat(); err != nil || st.Size() != want {
		t.Errorf("%s: %d bytes, %v, want %d", f.Name(), st.Size(), err, want)
	}
}

// What is done by NFS is seen on the mount when the call has been answered, also by who has looked just before.
func TestServedSeenOnMount(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)

	// names and contents
	if _, err := os.Stat(p("f")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	h := put(t, c, "f", "first")
	content(t, p("f"), "first")
	f, err := os.OpenFile(p("f"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	for i := range 20 {
		text := fmt.Sprint("text ", i, strings.Repeat(".", i*500))
		write(t, c, h, 0, text)
		at(t, f, text, 1)
		size(t, f, int64(len(text)))
		content(t, p("f"), text)
	}
	resize(t, c, h, 4)
	size(t, f, 4)
	content(t, p("f"), "text")
	resize(t, c, h, 6)
	content(t, p("f"), "text\x00\x00")

	// a listing, again with the same descriptor
	d, err := os.Open(m.Dir)
	must(t, err)
	defer d.Close()
	for _, names := range [][]string{{"f"}, {"f", "g"}, {"f"}} {
		_, err := d.Seek(0, 0)
		must(t, err)
		got, err := d.Readdirnames(-1)
		must(t, err)
		if slices.Sort(got); !slices.Equal(got, names) {
			t.Errorf("names: %q, want %q", got, names)
		}
		if len(names) == 1 {
			put(t, c, "g", "")
		} else {
			_, err := c.Remove(root, c.Root(), []byte("g"))
			must(t, err)
		}
	}
	if _, err := c.Remove(root, c.Root(), []byte("g")); err != nil {
		t.Error(err)
	}

	// attributes
	var st unix.Stat_t
	for mode := uint32(0o600); mode < 0o610; mode++ {
		uid := 1000 + mode
		_, err := c.Setattr(root, h,
			&tansyfs.SetAttr{Mode: &mode, UID: &uid, MtimeHow: tansyfs.ClientTime, Mtime: tansyfs.Time{Sec: uint64(mode)}}, nil)
		must(t, err)
		if must(t, unix.Stat(p("f"), &st)); st.Mode&0o7777 != mode || st.Uid != uid || st.Mtim.Sec != int64(mode) {
			t.Errorf("mode %o, user %d, mtime %d, want %o and %d", st.Mode, st.Uid, st.Mtim.Sec, mode, uid)
		}
	}

	// a name for another file, also of another kind
	for i := range 5 {
		put(t, c, "new", fmt.Sprint("new ", i))
		_, _, err := c.Rename(root, c.Root(), []byte("new"), c.Root(), []byte("name"))
		must(t, err)
		content(t, p("name"), fmt.Sprint("new ", i))
		if _, err := os.Stat(p("new")); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	_, err = c.Remove(root, c.Root(), []byte("name"))
	must(t, err)
	n, err := c.Mkdir(root, c.Root(), []byte("name"), &tansyfs.SetAttr{})
	must(t, err)
	if st, err := os.Stat(p("name")); err != nil || !st.IsDir() {
		t.Error(st, err)
	}
	_, _, err = c.Rename(root, c.Root(), []byte("f"), n.Handle, []byte("f"))
	must(t, err)
	content(t, p("name/f"), "text\x00\x00")
	at(t, f, "text", 1)
	_, _, err = c.Link(root, h, c.Root(), []byte("f"))
	must(t, err)
	at(t, f, "text", 2)

	// The same content and the same mtime again: who goes by that is fooled.
	must(t, unix.Stat(p("f"), &st))
	write(t, c, h, 0, "TEXT")
	_, err = c.Setattr(root, h, &tansyfs.SetAttr{MtimeHow: tansyfs.ClientTime,
		Mtime: tansyfs.Time{Sec: uint64(st.Mtim.Sec), Nsec: uint32(st.Mtim.Nsec)}}, nil)
	must(t, err)
	content(t, p("f"), "TEXT\x00\x00")

	must(t, f.Close())
	must(t, d.Close())
	stop(t, m, bin, image)
}

// What is done on the mount is seen by NFS when the system call has returned.
func TestServedSeenByNFS(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	f := openWith(t, p("f"), "first")
	h := find(t, c, "f").Handle
	for i := range 20 {
		text := fmt.Sprint("text ", i, strings.Repeat(".", i*500))
		_, err := f.WriteAt([]byte(text), 0)
		must(t, err)
		if got := get(t, c, h); got != text {
			t.Errorf("%q, want %q", got, text)
		}
	}
	must(t, f.Truncate(4))
	if got := get(t, c, h); got != "text" {
		t.Errorf("%q", got)
	}
	must(t, f.Chmod(0o640))
	must(t, os.Mkdir(p("d"), 0o755))
	must(t, os.Rename(p("f"), p("d/g")))
	if _, err := c.Lookup(root, c.Root(), []byte("f")); err != tansyfs.ErrNoEnt {
		t.Error(err)
	}
	n, err := c.Lookup(root, find(t, c, "d").Handle, []byte("g"))
	if err != nil || n.Handle != h || n.Attr.Mode != 0o640 || n.Attr.Size != 4 {
		t.Errorf("%+v, %v", n, err)
	}
	must(t, f.Close())
	must(t, os.Remove(p("d/g")))
	// The kernel says that a file was closed after close(2) has returned. Until then it is there for who has its
	// handle.
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := c.Getattr(h); err == tansyfs.ErrStale {
			break
		} else if time.Now().After(deadline) {
			t.Fatalf("a file that was removed: %v", err)
		}
	}
	stop(t, m, bin, image)
}

// What the kernel leaves to a file system whose contents it does not keep.
func TestServedWrites(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)

	// Appending is at the end that the file has, whoever moved it.
	h := put(t, c, "log", "")
	f, err := os.OpenFile(p("log"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	want := ""
	for i := range 10 {
		mine, other := fmt.Sprintln("here", i), fmt.Sprintln("there", i)
		_, err := f.WriteString(mine)
		must(t, err)
		write(t, c, h, uint64(len(want)+len(mine)), other)
		want += mine + other
	}
	content(t, p("log"), want)
	resize(t, c, h, 0)
	_, err = f.WriteString("cut")
	must(t, err)
	content(t, p("log"), "cut")
	must(t, f.Close())

	// setuid and setgid go with a write by somebody who may not set them.
	for mode, left := range map[uint32]uint32{0o6755: 0o755, 0o2744: 0o2744, 0o4700: 0o700} {
		h := put(t, c, "set", "")
		uid := uint32(1000)
		_, err := c.Setattr(root, h, &tansyfs.SetAttr{UID: &uid}, nil)
		must(t, err)
		must(t, unix.Chmod(p("set"), mode))
		var st unix.Stat_t
		if must(t, unix.Stat(p("set"), &st)); st.Mode&0o7777 != mode {
			t.Fatalf("mode %o, set to %o", st.Mode&0o7777, mode)
		}
		writeAs(t, int(uid), m.Dir, "set", "x")
		content(t, p("set"), "x")
		must(t, unix.Stat(p("set"), &st))
		if st.Mode&0o7777 != left {
			t.Errorf("mode %o, after a write %o, want %o", mode, st.Mode&0o7777, left)
		}
	}

	// O_SYNC waits for the device, and fsync does.
	for name, flag := range map[string]int{"sync": unix.O_SYNC, "dsync": unix.O_DSYNC, "fsync": 0} {
		fd, err := unix.Open(p(name), unix.O_CREAT|unix.O_WRONLY|flag, 0o644)
		must(t, err)
		_, err = unix.Write(fd, []byte(name))
		must(t, err)
		if flag == 0 {
			must(t, unix.Fsync(fd))
		}
		m.Kill()
		unix.Close(fd)
		must(t, unix.Unmount(m.Dir, unix.MNT_DETACH))
		m = mounttest.Serve(t, bin, image, m.Dir, nil)
		content(t, p(name), name)
	}
	stop(t, m, bin, image)
}

// writeAs writes to a file of a directory as somebody else, who may not see where that lies.
func writeAs(t *testing.T, uid int, dir, name, data string) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_PATH, 0)
	must(t, err)
	defer unix.Close(at)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Setfsuid(uid))
	defer unix.Setfsuid(0)
	fd, err := unix.Openat(at, name, unix.O_WRONLY, 0)
	must(t, err)
	_, err = unix.Write(fd, []byte(data))
	must(t, errors.Join(err, unix.Close(fd)))
}

// Memory that is mapped shows what was written by NFS, and what is written to it is seen by NFS after msync.
func TestServedMmap(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	const size = 64 << 10
	h := put(t, c, "f", strings.Repeat(".", size))
	f, err := os.OpenFile(p("f"), os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	shared, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if errors.Is(err, unix.ENODEV) {
		t.Skip("this kernel maps no files shared whose contents it does not keep: Linux 6.6 does")
	}
	must(t, err)
	private, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	must(t, err)
	if shared[5000] != '.' || private[5000] != '.' {
		t.Error("what is mapped is not the file's")
	}
	for i := range 20 {
		text := fmt.Sprint("text ", i)
		write(t, c, h, uint64(4090+i), text) // over the end of a page
		for name, b := range map[string][]byte{"shared": shared, "private": private} {
			if got := string(b[4090+i:][:len(text)]); got != text {
				t.Errorf("%s: %q, want %q", name, got, text)
			}
		}
	}
	resize(t, c, h, 10)
	resize(t, c, h, size)
	if !bytes.Equal(shared[:20], append([]byte(strings.Repeat(".", 10)), make([]byte, 10)...)) {
		t.Errorf("what was cut: %q", shared[:20])
	}
	put(t, c, "f", "cut")
	resize(t, c, h, size)
	if string(shared[:5]) != "cut\x00\x00" {
		t.Errorf("what was made anew: %q", shared[:5])
	}
	copy(shared[8192:], "mapped")
	b := make([]byte, 6) // on the mount it is seen at once
	if _, err := f.ReadAt(b, 8192); err != nil || string(b) != "mapped" {
		t.Errorf("%q, %v", b, err)
	}
	copy(shared[12288:], "synced")
	must(t, unix.Msync(shared, unix.MS_SYNC))
	if got := get(t, c, h)[12288:][:6]; got != "synced" {
		t.Errorf("by NFS after msync: %q", got)
	}
	// What is mapped and not written back yet is neither lost with a write elsewhere in the page, nor stays.
	copy(shared[20480:], "dirty")
	write(t, c, h, 20490, "clean")
	if got := string(shared[20480:][:15]); got != "dirty\x00\x00\x00\x00\x00clean" && got != "dirty\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" {
		t.Errorf("a page that both have written: %q", got)
	}
	if now := get(t, c, h); now[20480:][:15] != string(shared[20480:][:15]) {
		t.Errorf("a page that both have written: %q here, %q there", shared[20480:][:15], now[20480:][:15])
	}
	must(t, unix.Munmap(shared))
	must(t, unix.Munmap(private))
	must(t, f.Close())
	stop(t, m, bin, image)
}

// A file that is open on the mount lives on without a name, whoever takes that.
func TestServedOpenWithoutName(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	remove := func(name string) {
		_, err := c.Remove(root, c.Root(), []byte(name))
		must(t, err)
	}
	first, _, err := c.Fsstat(c.Root())
	must(t, err)
	var open []*os.File
	for name, lose := range map[string]func(name string){
		"removed here":  func(name string) { must(t, os.Remove(p(name))) },
		"removed there": remove,
		"replaced here": func(name string) {
			put(t, c, "new", "new")
			must(t, os.Rename(p("new"), p(name)))
			content(t, p(name), "new")
			remove(name)
		},
		"replaced there": func(name string) {
			put(t, c, "new", "new")
			_, _, err := c.Rename(root, c.Root(), []byte("new"), c.Root(), []byte(name))
			must(t, err)
			content(t, p(name), "new")
			remove(name)
		},
		"one name after the other": func(name string) {
			must(t, os.Link(p(name), p("second")))
			remove(name)
			remove("second")
		},
	} {
		f := openWith(t, p(name), "data")
		lose(name)
		at(t, f, "data", 0)
		_, err := f.WriteAt([]byte("more"), 4)
		must(t, err)
		must(t, f.Truncate(6))
		must(t, f.Sync())
		at(t, f, "datamo", 0)
		open = append(open, f)
	}
	for range 20 { // the same inode numbers, if they are free
		put(t, c, "fresh", "fresh")
		remove("fresh")
	}
	for _, f := range open {
		at(t, f, "datamo", 0)
	}

	// One that is renamed to itself keeps its name, and has no other.
	f := openWith(t, p("mine"), "data")
	_, _, err = c.Rename(root, c.Root(), []byte("mine"), c.Root(), []byte("mine"))
	must(t, err)
	if at(t, f, "data", 1); find(t, c, "mine").Attr.Nlink != 1 {
		t.Errorf("%d links by NFS", find(t, c, "mine").Attr.Nlink)
	}

	// Who may not remove it changes nothing.
	before := find(t, c, "mine").Attr
	if _, err := c.Remove(&tansyfs.Cred{UID: 1000, GID: 1000}, c.Root(), []byte("mine")); err != tansyfs.ErrAcces {
		t.Error(err)
	}
	if after := find(t, c, "mine").Attr; after != before {
		t.Errorf("%+v, before that %+v", after, before)
	}
	must(t, f.Close())

	// A directory goes; who is in it finds nothing.
	must(t, os.Mkdir(p("d"), 0o755))
	fd, err := unix.Open(p("d"), unix.O_PATH, 0)
	must(t, err)
	_, err = c.Rmdir(root, c.Root(), []byte("d"))
	must(t, err)
	if _, err := unix.Openat(fd, "f", unix.O_CREAT|unix.O_WRONLY, 0o644); err == nil {
		t.Error("a file in a directory that was removed")
	}
	must(t, unix.Close(fd))

	for _, f := range open {
		must(t, f.Close())
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		s, _, err := c.Fsstat(c.Root())
		must(t, err)
		if s.FreeFiles == first.FreeFiles-1 { // "mine" has a name
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d files are free, and were %d: open ones that had no name are left", s.FreeFiles, first.FreeFiles)
		}
	}
	stop(t, m, bin, image)
}
