package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/disk"
)

// mkfs, check and dump on an image, by their exit codes.
func TestCheckAndDump(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	exit := func(want int, args ...string) {
		t.Helper()
		if got := run(args); got != want {
			t.Errorf("tansy %v: exit code %d, want %d", args, got, want)
		}
	}
	exit(exitOK, "mkfs", img, "--size", "64M", "--log-size", "8M")
	exit(exitOK, "check", img)
	if _, out, _ := saying(t, "check", img); !strings.Contains(out, ": clean; 0 files, 1 directory with 0 entries; ") {
		t.Errorf("of what nobody can see there is something: %s", out)
	}
	exit(exitOK, "check", "-q", img)
	exit(exitOK, "check", "--data", img)
	exit(exitOK, "dump", img)
	exit(exitOK, "dump", img, "log")
	exit(exitOK, "dump", img, "inode", "1")
	exit(exitOK, "dump", img, "dir", "1")
	exit(exitFailure, "dump", img, "dir", "3")
	exit(exitUsage, "dump", img, "dir")
	exit(exitUsage, "dump", img, "inode", "x")
	exit(exitUsage, "dump", img, "inode", "1", "2")
	exit(exitUsage, "dump", img, "everything")
	exit(exitUsage, "dump")
	exit(exitOK, "dump", "-h")
	exit(exitUsage, "check")
	exit(exitUsage, "check", img+".none")

	f, err := os.OpenFile(img, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	super := make([]byte, disk.BlockSize)
	if _, err := f.ReadAt(super, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("damage"), 200); err != nil { // the superblock in block 0
		t.Fatal(err)
	}
	exit(exitFailure, "check", img)
	exit(exitFailure, "check", "-q", img)
	exit(exitOK, "dump", img) // by the copy
	if _, err := f.WriteAt([]byte("damage"), headerOf(super)+30); err != nil {
		t.Fatal(err)
	}
	exit(exitFailure, "check", img)
	exit(exitOK, "dump", img)
	exit(exitOK, "dump", img, "log")
	exit(exitOK, "dump", img, "inode", "1")
	exit(exitOK, "dump", img, "dir", "1")
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	exit(exitUsage, "check", img)
	exit(exitFailure, "dump", img)
}

// printed runs a command, and returns what it prints to standard output, and the exit code.
func printed(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	code, out, errs := saying(t, args...)
	if errs != "" {
		t.Logf("tansy %q: %s", args, errs)
	}
	return out, code
}

// With -v a check says how fragmented the files are, and only then.
func TestCheckFragmentation(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	if code := run([]string{"mkfs", img, "--size", "64M", "--log-size", "8M"}); code != exitOK {
		t.Fatal(code)
	}
	for flag, want := range map[string]string{"-v": img + ": fragmentation: no file has blocks\n", "-v=false": ""} {
		out, code := printed(t, "check", "-q", flag, img)
		if code != exitOK || out != want {
			t.Errorf("%s: exit code %d, %q; want %q", flag, code, out, want)
		}
	}
}

// The progress of a check is reported once per interval.
func TestProgress(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	now := time.Unix(0, 0)
	p := newProgress(f, func() time.Time { return now })
	for i := range uint64(26) {
		p.report("inodes", i, 25)
		now = now.Add(time.Second)
	}
	now = now.Add(time.Minute)
	p.report("names", 0, 0)
	got, err := os.ReadFile(f.Name())
	if want := "inodes: 20.0 %\ninodes: 40.0 %\ninodes: 60.0 %\ninodes: 80.0 %\ninodes: 100.0 %\nnames\n"; err != nil || string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}
