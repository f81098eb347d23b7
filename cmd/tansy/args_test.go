package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A small volume needs no flag but its size, and a mistake leaves nothing behind.
func TestSmallVolumesAndMistakes(t *testing.T) {
	dir := t.TempDir()
	img := filepath.Join(dir, "v.img")
	exit := func(want int, args ...string) {
		t.Helper()
		if got := run(args); got != want {
			t.Errorf("tansy %v: exit code %d, want %d", args, got, want)
		}
	}
	exit(exitOK, "help")
	exit(exitOK, "serve", "--help")
	exit(exitUsage)
	exit(exitUsage, "nothing")
	exit(exitUsage, "serve", "--nothing")
	exit(exitUsage, "serve", "more")
	exit(exitUsage, "serve", "--volume", img, "--cache", "0")
	exit(exitUsage, "serve", "--volume", img, "--cache", "3M")
	exit(exitUsage, "serve", "--volume", img, "--cache", "4E")
	exit(exitUsage, "serve", "--volume", "")
	exit(exitUsage, "mkfs", "", "--size", "6M")
	exit(exitUsage, "serve", "--volume", img, "--listen", "nowhere")
	exit(exitFailure, "serve", "--volume", img, "--listen", "127.0.0.1:0", "--read-only")
	exit(exitUsage, "mkfs", img)
	exit(exitUsage, "mkfs", img, "--size", "1M")
	exit(exitUsage, "mkfs", img, "--size", "10000001")
	exit(exitUsage, "mkfs", img, "--size", "64M", "--log-size", "64") // 64M was meant
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
	exit(exitOK, "mkfs", img, "--size", "6M")
	exit(exitOK, "check", img)
	exit(exitFailure, "mkfs", img, "--size", "6M")
	exit(exitUsage, "mkfs", img, "--size", "8M", "--force")
	exit(exitOK, "mkfs", img, "--force")
	exit(exitOK, "check", img)
	if st, err := os.Stat(img); err != nil || st.Size() != 6<<20 {
		t.Error(st, err)
	}
}
