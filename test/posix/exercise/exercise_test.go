//go:build linux

package main

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The processes of a test are the test's own program.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

var (
	opsFlag  = flag.Int("ops", 20000, "operations")
	seedFlag = flag.Uint64("seed", 0, "seed, to repeat a failure")
)

// TestLocal runs the exerciser on the local file system, which shows that its
// models predict what a Linux kernel does.
func TestLocal(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make devices and change owners")
	}
	c := &config{seed: *seedFlag, ops: *opsFlag, procs: 6, worker: -1, size: 512 << 10, kinds: "all", dir: t.TempDir()}
	if code := lead(c); code != 0 {
		t.Errorf("exit status %d, seed %d", code, c.seed)
	}
}

func newWorker(t *testing.T) *worker {
	return &worker{config: &config{size: 100 << 10}, rnd: rand.New(rand.NewPCG(1, 2)), dir: t.TempDir()}
}

// TestFindsChangedFile changes a byte behind the exerciser's back.
func TestFindsChangedFile(t *testing.T) {
	w := newWorker(t)
	if err := exerciseFile(w, 200); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(w.dir, "*"))
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	fd, err := unix.Open(names[0], unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &fileExercise{worker: w, path: names[0], fd: fd, buf: make([]byte, w.size+1)}
	defer func() { unix.Close(f.fd) }()
	if err := f.write(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	f.want = b
	if err := f.compareAll(); err != nil {
		t.Fatal(err)
	}
	at := len(b) / 2
	if _, err := unix.Pwrite(f.fd, []byte{^b[at]}, int64(at)); err != nil {
		t.Fatal(err)
	}
	if err := f.compareAll(); err == nil || !strings.Contains(err.Error(), "1 bytes differ") {
		t.Errorf("a changed byte is reported as %v", err)
	}
}

// TestFindsChangedTree changes a tree behind the exerciser's back, one thing at a time.
func TestFindsChangedTree(t *testing.T) {
	for name, change := range map[string]func(top string) error{
		"a name more":     func(top string) error { return os.WriteFile(top+"/more", nil, 0o644) },
		"a name less":     func(top string) error { return os.Remove(top + "/f") },
		"another mode":    func(top string) error { return os.Chmod(top+"/f", 0o640) },
		"another link":    func(top string) error { return os.Link(top+"/f", top+"/../elsewhere") },
		"other data":      func(top string) error { return os.WriteFile(top+"/f", []byte("DATA"), 0) },
		"more data":       func(top string) error { return os.WriteFile(top+"/f", []byte("data "), 0) },
		"another target":  func(top string) error { return replace(top+"/s", "y") },
		"another mtime":   func(top string) error { return os.Chtimes(top+"/f", time.Unix(1, 0), time.Unix(1, 0)) },
		"a new directory": func(top string) error { return os.Mkdir(top+"/d/e", 0o755) },
	} {
		w := newWorker(t)
		w.dir = filepath.Join(w.dir, "top")
		if err := os.MkdirAll(w.dir+"/d", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(w.dir+"/f", []byte("data"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("x", w.dir+"/s"); err != nil {
			t.Fatal(err)
		}
		x := &treeExercise{worker: w, top: newDir()}
		d := newDir()
		x.top.put("d", d)
		x.top.put("f", &node{kind: unix.S_IFREG, mode: 0o644, data: []byte("data"), uid: os.Getuid(), gid: os.Getgid()})
		x.top.put("s", &node{kind: unix.S_IFLNK, mode: 0o777, target: "x", uid: os.Getuid(), gid: os.Getgid()})
		d.uid, d.gid = os.Getuid(), os.Getgid()
		x.dirs = []*node{x.top, d}
		var st unix.Stat_t
		if err := unix.Lstat(w.dir+"/f", &st); err != nil {
			t.Fatal(err)
		}
		x.top.children["f"].mtime = &st.Mtim
		if err := x.verify(); err != nil {
			t.Fatal(err)
		}
		if err := change(w.dir); err != nil {
			t.Fatal(err)
		}
		if err := x.verify(); err == nil {
			t.Errorf("%s was not found", name)
		}
	}
}

func replace(link, target string) error {
	if err := os.Remove(link); err != nil {
		return err
	}
	return os.Symlink(target, link)
}

// TestFindsDamageInSharedTree has a directory with a broken record in a file.
func TestFindsDamageInSharedTree(t *testing.T) {
	w := newWorker(t)
	w.seed = 3
	top := filepath.Join(w.dir, "shared")
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	s := newSharer(w, top)
	for range 2000 {
		if err := s.step(); err != nil {
			t.Fatal(err)
		}
	}
	n, err := verifyShared(top)
	if err != nil || n < 10 {
		t.Fatal(n, err)
	}
	b := make([]byte, 2*recordSize)
	b[recordSize+5] = 1
	b[recordSize] = 1
	if err := os.WriteFile(filepath.Join(top, "broken"), b, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyShared(top); err == nil {
		t.Error("a broken record was not found")
	}
}
