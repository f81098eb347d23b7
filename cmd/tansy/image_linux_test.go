package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tansyfs "tansy/fs"
	"tansy/internal/hosttest"
)

// One image is not served twice, as a file and by a loop device, whichever is first.
func TestServeTwice(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	if code := run([]string{"mkfs", img, "--size", "8M"}); code != exitOK {
		t.Fatal(code)
	}
	other := func(volume string) {
		t.Helper()
		for _, args := range [][]string{
			{"serve", "--listen", "127.0.0.1:0", "--volume", volume},
			{"serve", "--listen", "127.0.0.1:0", "--volume", volume, "--read-only"},
			{"mkfs", volume, "--force"},
		} {
			if code := run(args); code != exitFailure {
				t.Errorf("tansy %v: exit code %d, want %d", args, code, exitFailure)
			}
		}
	}
	p := startServe(t, "--volume", img)
	dev := hosttest.Loop(t, img)
	other(dev)
	p.stop(t)
	p = startServe(t, "--volume", dev)
	other(img)
	other(hosttest.Loop(t, img))
	p.stop(t)
}

// An image that may outgrow its host is made with a warning; one that takes its room at
// once is made whole or not at all.
func TestImageOnSmallHost(t *testing.T) {
	const host = 50 << 20
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			dir := hosttest.Mount(t, kind, host)
			img := filepath.Join(dir, "v.img")
			for _, c := range []struct {
				size        uint64
				preallocate bool
				warned      bool
				fails       string
			}{
				{size: 20 << 20},
				{size: 20 << 20, preallocate: true},
				{size: 100 << 20, warned: true},
				{size: 100 << 20, preallocate: true, fails: "leave --preallocate out"},
				{size: 1 << 30, warned: true, fails: "--log-size"},
			} {
				warned := false
				i := image{c.size, c.preallocate, func(err error) {
					warned = true
					if !strings.Contains(err.Error(), img) {
						t.Error(err)
					}
				}}
				err := i.make(img, tansyfs.MkfsOptions{})
				if warned != c.warned {
					t.Errorf("%+v: warned %v", c, warned)
				}
				if c.fails != "" {
					if err == nil || !strings.Contains(err.Error(), c.fails) {
						t.Errorf("%+v: %v", c, err)
					}
					if left, _ := filepath.Glob(img + "*"); len(left) != 0 {
						t.Errorf("left behind: %v", left)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%+v: %v", c, err)
				}
				st, err := os.Stat(img)
				if err != nil {
					t.Fatal(err)
				}
				if whole := st.Sys().(*syscall.Stat_t).Blocks*512 >= int64(c.size); whole != c.preallocate {
					t.Errorf("%+v: takes %d blocks", c, st.Sys().(*syscall.Stat_t).Blocks)
				}
				if err := os.Remove(img); err != nil {
					t.Fatal(err)
				}
			}
			// an image that is there takes its room, too
			if code := run([]string{"mkfs", img, "--size", "20M"}); code != exitOK {
				t.Fatal(code)
			}
			if code := run([]string{"mkfs", img, "--force", "--preallocate"}); code != exitOK {
				t.Fatal(code)
			}
			st, err := os.Stat(img)
			if err != nil || st.Sys().(*syscall.Stat_t).Blocks*512 < 20<<20 {
				t.Error(st, err)
			}
		})
	}
}
