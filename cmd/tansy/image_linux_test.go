package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	tansyfs "tansy/fs"
	"tansy/test/kit/hosttest"
	"tansy/test/kit/nfsclient"
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

// A server that filled its host and was killed there starts again, and removes and makes
// files.
func TestKilledOnFullHost(t *testing.T) {
	t.Parallel()
	for _, kind := range hosttest.Kinds {
		t.Run(kind, func(t *testing.T) {
			dir := hosttest.Mount(t, kind, 50<<20)
			img := filepath.Join(dir, "v.img")
			data := bytes.Repeat([]byte("0123456789abcdef"), 16<<10)
			cred := &tansyfs.Cred{}
			name := func(i int) []byte { return []byte(strconv.Itoa(i)) }
			add := func(c *nfsclient.Client, i int) error {
				n, err := c.Create(cred, c.Root(), name(i), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
				if err == nil {
					_, _, _, err = c.Write(cred, n.Handle, 0, data, tansyfs.FileSync)
				}
				return err
			}
			files, done := 0, 0
			for round := range 3 {
				p := startServe(t, "--volume", img, "--size", "200M")
				c, err := nfsclient.Mount(p.addr)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				for i := range done {
					n, err := c.Lookup(cred, c.Root(), name(i))
					if err != nil {
						t.Fatal(err)
					}
					got, _, _, err := c.Read(cred, n.Handle, 0, uint32(len(data)))
					if err != nil || !bytes.Equal(got, data) {
						t.Fatalf("round %d: file %d: %d bytes, %v", round, i, len(got), err)
					}
				}
				for ; files > done-3 && files > 0; files-- {
					if _, err := c.Remove(cred, c.Root(), name(files-1)); err != nil {
						t.Fatalf("round %d: removing file %d: %v", round, files-1, err)
					}
				}
				for done = files; err == nil; files++ {
					if err = add(c, files); err == nil {
						done++
					}
				}
				if err != tansyfs.ErrNoSpc || done < 5 {
					t.Fatalf("round %d: %d files, then %v", round, done, err)
				}
				if _, e := c.Lookup(cred, c.Root(), name(files-1)); e != nil {
					files-- // it was not made
				}
				hosttest.Fill(t, dir, 0)
				if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				p.wait(t)
			}
			if code := run([]string{"check", "-q", img}); code != exitOK {
				t.Errorf("check: exit code %d", code)
			}
		})
	}
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
				i := image{size: c.size, preallocate: c.preallocate, warn: func(err error) {
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
					if c.preallocate { // it looks before it takes room from others, so there is most of it
						var free float64
						if said := regexp.MustCompile(`and ([0-9.]+)M are free`).FindStringSubmatch(fmt.Sprint(err)); said != nil {
							free, _ = strconv.ParseFloat(said[1], 64)
						}
						if free < host>>20/2 {
							t.Errorf("%+v: %v: not as much as is free", c, err)
						}
					}
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
