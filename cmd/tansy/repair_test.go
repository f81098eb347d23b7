package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
)

// repair by its exit codes, on an image with a damaged superblock and a damaged bitmap: without --yes nothing
// is written, with it the volume is clean, and --undo-from gives back what was.
func TestRepair(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	exit := func(want int, args ...string) {
		t.Helper()
		if got := run(args); got != want {
			t.Errorf("tansy %v: exit code %d, want %d", args, got, want)
		}
	}
	read := func() []byte {
		t.Helper()
		b, err := os.ReadFile(img)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	exit(exitOK, "mkfs", img, "--size", "32M", "--log-size", "6M")
	whole := read()
	exit(exitOK, "repair", img)
	exit(exitOK, "repair", img, "--yes")
	if !bytes.Equal(read(), whole) {
		t.Error("repair has changed a volume that is clean")
	}
	exit(exitOK, "repair", "--help")
	exit(exitUsage, "repair")
	exit(exitUsage, "repair", img+".none")
	exit(exitUsage, "repair", img, "--undo", "x", "--undo-from", "y")
	exit(exitUsage, "repair", os.DevNull, "--yes")

	f, err := os.OpenFile(img, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{200, 4096 + 30, 6<<20 + 100} {
		if _, err := f.WriteAt([]byte("damage"), at); err != nil {
			t.Fatal(err)
		}
	}
	damaged := read()
	exit(exitFailure, "check", "-q", img)
	exit(exitOK, "repair", img)
	if !bytes.Equal(read(), damaged) {
		t.Error("without --yes something was written")
	}
	if err := os.WriteFile(img+".undo", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := img + ".link"
	if err := os.Symlink(img+".none", dangling); err != nil {
		t.Fatal(err)
	}
	for _, undo := range []string{"", img, os.DevNull, filepath.Join(img+".none", "undo"), dangling} {
		args := []string{"repair", img, "--yes"}
		if undo != "" {
			args = append(args, "--undo", undo)
		}
		if code, out, errs := saying(t, args...); code != exitUsage || strings.Contains(out, "repair:") ||
			!strings.Contains(errs, "nothing was written") || undo != "" && strings.Contains(errs, "move it away") {
			t.Errorf("%s: %d\n%s\n%s", args, code, out, errs)
		}
	}
	if !bytes.Equal(read(), damaged) {
		t.Error("something was written, although the undo file existed")
	}
	undo := img + ".2"
	exit(exitOK, "repair", img, "--yes", "--undo", undo)
	exit(exitOK, "check", img)
	exit(exitOK, "repair", img)
	exit(exitUsage, "repair", img, "--undo-from", img+".undo", "--yes") // it is empty
	exit(exitOK, "repair", img, "--undo-from", undo)
	exit(exitOK, "check", img)
	exit(exitOK, "repair", img, "--undo-from", undo, "--yes")
	if !bytes.Equal(read(), damaged) {
		t.Error("undo does not give back what was")
	}
	p := startServe(t, "--volume", img)
	exit(exitUsage, "repair", img, "--yes", "--undo", img+".3")
	exit(exitUsage, "repair", img)
	p.stop(t)
}

// TestRepairContents: contents of a file that are not what was last written are left alone, until it is said that they
// are to be taken as they are.
func TestRepairContents(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	exit := func(want int, args ...string) {
		t.Helper()
		if got := run(args); got != want {
			t.Errorf("tansy %v: exit code %d, want %d", args, got, want)
		}
	}
	exit(exitOK, "mkfs", img, "--size", "32M", "--log-size", "6M")
	data := bytes.Repeat([]byte("what was written"), 1000)
	d, err := disk.OpenFile(img, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := tansyfs.Open(d, tansyfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := v.Create(&tansyfs.Cred{}, v.Root(), []byte("f"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
	if err == nil {
		_, _, _, err = v.Write(&tansyfs.Cred{}, n.Handle, 0, data, tansyfs.FileSync)
	}
	if err := errors.Join(err, v.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(img)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(b, data[:disk.BlockSize]) // at home; it may be in the log, too
	b[at] ^= 1
	if err := os.WriteFile(img, b, 0o600); err != nil {
		t.Fatal(err)
	}
	exit(exitFailure, "check", "--data", img)
	exit(exitFailure, "repair", img, "--yes")
	exit(exitFailure, "check", "--data", img)
	exit(exitOK, "repair", img, "--accept-damaged")
	exit(exitFailure, "check", "--data", img)
	exit(exitOK, "repair", img, "--accept-damaged", "--yes")
	exit(exitOK, "check", "--data", img)
}

// A sound volume has nothing to repair; access lists that no file has go if that is asked for.
func TestRepairForgetsLists(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	said := func(want string, args ...string) {
		t.Helper()
		if code, text := tool(t, args...); code != exitOK || !strings.Contains(text, want) {
			t.Errorf("tansy %v: exit code %d, %s, no %q", args, code, text, want)
		}
	}
	said("", "mkfs", img, "--size", "32M", "--log-size", "6M")
	d, err := disk.OpenFile(img, disk.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := tansyfs.Open(d, tansyfs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for right := range uint32(2) {
		l := &tansyfs.AccessList{Masked: true, Group: right}
		if err := v.SetAccess(&tansyfs.Cred{}, v.Root(), l); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(v.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	said("clean, nothing to do", "repair", img)
	said("1 repair, 0 problems would be left; nothing was written", "repair", img, "--forget-lists")
	said("1 repair done, 0 problems left", "repair", img, "--forget-lists", "--yes")
	said("clean, nothing to do", "repair", img, "--forget-lists")
	said("clean", "check", "--data", img)
}
