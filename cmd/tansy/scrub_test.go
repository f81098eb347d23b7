package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	volcheck "tansy/offline/check"
	"tansy/ops/status"
	"tansy/test/kit/nfsclient"
)

// findMe is the contents of the block that writeNamed writes.
var findMe = bytes.Repeat([]byte("find me "), disk.BlockSize/8)

// writeNamed makes the file "named" with a block of data, its second.
func writeNamed(t *testing.T, c *nfsclient.Client) {
	t.Helper()
	cred := &tansyfs.Cred{}
	n, err := c.Create(cred, c.Root(), []byte("named"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := c.Write(cred, n.Handle, disk.BlockSize, findMe, tansyfs.FileSync); err != nil {
		t.Fatal(err)
	}
}

// settled makes a volume of 8 MiB that keeps its size, so that its blocks lie on the device where they are in the
// layout.
func settled(t *testing.T, img string) {
	t.Helper()
	if code := run([]string{"mkfs", img, "--size", "8M", "--max-size", "8M"}); code != exitOK {
		t.Fatal(code)
	}
}

// loseNamed damages that block in an image, and returns its address.
func loseNamed(t *testing.T, img string) (block int) {
	t.Helper()
	f, err := os.OpenFile(img, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image, err := os.ReadFile(img)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(image, findMe) // at home, not in the log
	if at < 0 || at%disk.BlockSize != 0 {
		t.Fatal(at)
	}
	if _, err := f.WriteAt([]byte("lose me"), int64(at)+100); err != nil {
		t.Fatal(err)
	}
	return at / disk.BlockSize
}

// TestScrub: `tansy scrub` has a server find what is damaged in its image, and say whose it is.
func TestScrub(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	settled(t, img)
	p := startServe(t, "--volume", img)
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	writeNamed(t, c)
	c.Close()
	p.stop(t)

	p = startServe(t, "--volume", img, "--status", "127.0.0.1:0") // nothing is in memory
	if code := run([]string{"scrub", p.status}); code != exitOK {
		t.Errorf("of a sound volume: exit code %d", code)
	}
	block := fmt.Sprintf("block=%d", loseNamed(t, img))
	for range 2 {
		if code := run([]string{"scrub", strings.TrimPrefix(p.status, "http://")}); code != exitFailure {
			t.Errorf("of a damaged one: exit code %d", code)
		}
	}
	metrics := get(t, p.status+"metrics")
	for _, want := range []string{
		`tansy_damaged_blocks{volume="/"} 1`, `tansy_scrub_damaged_blocks{volume="/"} 1`,
		`tansy_scrub_passes_total{volume="/"} 3`, `tansy_scrub_running{volume="/"} 0`, `tansy_healthy{volume="/"} 1`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("no %q in\n%s", want, metrics)
		}
	}
	if code := run([]string{"scrub", p.status, "--detach"}); code != exitOK {
		t.Errorf("without waiting: exit code %d", code)
	}
	p.says(t, `contents of a file" `+block)
	p.says(t, "offset=4096 file=/named")
	p.stop(t)
	if n := strings.Count(p.stderr.String(), "reading it fails\" "+block); n != 1 {
		t.Errorf("told %d times:\n%s", n, p.stderr.String())
	}
	if code := run([]string{"scrub", p.addr}); code != exitUsage {
		t.Errorf("without a server: exit code %d", code)
	}
}

// TestScrubFlag: with --scrub there is one from the start, and with a wrong one there is no server.
func TestScrubFlag(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	p := startServe(t, "--volume", img, "--size", "8M", "--scrub", "1G")
	p.says(t, "the scrub has found no damage")
	p.stop(t)
	for _, wrong := range [][]string{{"--scrub", "fast"}, {"--scrub-every", "0s"}, {"--scrub-every", "-1h"}} {
		if code := run(append([]string{"serve", "--volume", img, "--listen", "127.0.0.1:0"}, wrong...)); code != exitUsage {
			t.Errorf("%v: exit code %d", wrong, code)
		}
	}
}

// Several volumes: each is scrubbed, damage is told of the one that has it, and one that is gone is scrubbed no more,
// and is no sound one.
func TestScrubVolumes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.img"), filepath.Join(dir, "b.img")
	settled(t, a)
	settled(t, b)
	args := []string{"--volume", a + ":/a", "--volume", b + ":/b", "--status", "127.0.0.1:0"}
	p := startServe(t, args...)
	writeNamed(t, mustMountPath(t, p, "/b"))
	if code := run([]string{"scrub", p.status}); code != exitOK {
		t.Errorf("of sound volumes: exit code %d", code)
	}
	p.stop(t)

	p = startServe(t, append(args, "--scrub", "1G")...) // nothing is in memory
	// one beside the other: either may end first
	p.says(t, `the scrub has found no damage" volume=/a`, `the scrub has found no damage" volume=/b`)
	block := loseNamed(t, b)
	if code := run([]string{"scrub", p.status}); code != exitFailure {
		t.Errorf("with damage: exit code %d", code)
	}
	p.says(t, fmt.Sprintf("contents of a file\" volume=/b block=%d", block))
	metrics := get(t, p.status+"metrics")
	for _, want := range []string{
		`tansy_scrub_passes_total{volume="/a"} 2`, `tansy_scrub_damaged_blocks{volume="/a"} 0`, `tansy_damaged_blocks{volume="/a"} 0`,
		`tansy_scrub_passes_total{volume="/b"} 2`, `tansy_scrub_damaged_blocks{volume="/b"} 1`, `tansy_damaged_blocks{volume="/b"} 1`,
	} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("no %q in\n%s", want, metrics)
		}
	}
	if err := os.Remove(a); err != nil {
		t.Fatal(err)
	}
	unready(t, p)
	if code := run([]string{"scrub", p.status}); code != exitUsage {
		t.Errorf("of a volume that is gone: exit code %d", code)
	}
	if metrics := get(t, p.status+"metrics"); !strings.Contains(metrics, `tansy_scrub_passes_total{volume="/b"} 3`) {
		t.Errorf("the other one was not scrubbed:\n%s", metrics)
	}
}

// bitmapOf is the first block of the block bitmap of a volume.
func bitmapOf(t *testing.T, img string) (block int64) {
	t.Helper()
	d, err := disk.OpenFile(img, disk.FileOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p, err := volcheck.NewDumper(d)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := p.Super(&text); err != nil {
		t.Fatal(err)
	}
	_, at, _ := strings.Cut(text.String(), "\nblock bitmap")
	if _, err := fmt.Sscanf(at, " blocks %d", &block); err != nil {
		t.Fatal(err, text.String())
	}
	return block
}

// A bitmap of one of several volumes is damaged: that one is read-only from when the scrub has met it, and the server
// says so.
func TestScrubVolumeVital(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.img"), filepath.Join(dir, "b.img")
	settled(t, a)
	settled(t, b)
	block := bitmapOf(t, b)
	f, err := os.OpenFile(b, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte("damage"), block*disk.BlockSize+30)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	p := startServe(t, "--volume", a+":/a", "--volume", b+":/b", "--status", "127.0.0.1:0")
	if code := run([]string{"scrub", p.status}); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	if text := unready(t, p); !strings.HasPrefix(text, "/b: ") || !strings.Contains(text, "of the block bitmap") {
		t.Errorf("readyz: %q", text)
	}
	if text := get(t, p.status+"healthz"); text != "ok\n" {
		t.Errorf("healthz: %q", text)
	}
	for path, want := range map[string]error{"/a": nil, "/b": tansyfs.ErrROFS} {
		c := mustMountPath(t, p, path)
		if _, err := c.Mkdir(&tansyfs.Cred{}, c.Root(), []byte("d"), &tansyfs.SetAttr{}); err != want {
			t.Errorf("MKDIR in %s: %v, want %v", path, err, want)
		}
	}
}

// What is said at the end of a scrub that did not come to its own, and of several under way.
func TestScrubEnds(t *testing.T) {
	for name, v := range map[string]status.Volume{
		"not open":  {Path: "/b", Problem: "in use"},
		"cut short": {Path: "/b", Open: true, Scrub: status.Scrub{Passes: 3, Error: "boom"}},
	} {
		if code := scrubEnd(&v, 3, true); code != exitUsage {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
	for _, last := range []status.Scrub{{Running: true, Done: 5, Unchecked: 1}, {Running: true, Done: 5, Total: 10, Unchecked: 1}} {
		all := status.Scrub{}
		addScrub(&all, &status.Scrub{Running: true, Done: 1, Total: 100, Damaged: 2})
		addScrub(&all, &last)
		if want := (status.Scrub{Running: true, Done: 6, Damaged: 2, Unchecked: 1}); last.Total == 0 && all != want || last.Total > 0 && all.Total != 110 {
			t.Errorf("%+v", all)
		}
	}
}

func TestScrubLine(t *testing.T) {
	for want, s := range map[string]status.Scrub{
		"":                            {},
		"12 blocks; no damage":        {Running: true, Done: 12},
		"ended before its time: boom": {Error: "boom", Ended: 5},
		"3 blocks; 1 damaged, see the server's log; 2 could not be checked": {Running: true, Done: 3, Damaged: 1, Unchecked: 2},
	} {
		if got := scrubLine(&s); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := scrubLine(&status.Scrub{Running: true, Done: 5, Total: 10}); !strings.Contains(got, "5 of 10 blocks; no damage") {
		t.Error(got)
	}
	if got := scrubLine(&status.Scrub{Damaged: 1, Ended: 5, Last: status.ScrubEnds{Good: 7}}); !strings.HasPrefix(got, "7 blocks as they were written, no damage; ended ") {
		t.Error(got)
	}
}

// TestScrubUnderLoad: scrubs one after the other, on an image, while clients write large and small: nothing is called
// damaged.
func TestScrubUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	img := filepath.Join(t.TempDir(), "v.img")
	p := startServe(t, "--volume", img, "--size", "256M", "--scrub", "1T", "--scrub-every", "1ns", "--cache", "4M", "--status", "127.0.0.1:0")
	var clients sync.WaitGroup
	for i := range uint64(3) {
		clients.Go(func() {
			c, err := nfsclient.Mount(p.addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			r, cred, data := rand.New(rand.NewPCG(i, 0)), &tansyfs.Cred{}, make([]byte, 1<<20)
			for k := range rounds {
				name := fmt.Appendf(nil, "f%d", r.IntN(6))
				n, err := c.Create(cred, c.Root(), name, tansyfs.Unchecked, &tansyfs.SetAttr{}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				data[0] = byte(k)
				how := []tansyfs.Stability{tansyfs.Unstable, tansyfs.FileSync}[r.IntN(2)]
				size := len(data) >> r.IntN(12)
				if _, _, _, err := c.Write(cred, n.Handle, uint64(r.IntN(4<<20)), data[:size], how); err != nil && err != tansyfs.ErrStale && err != tansyfs.ErrNoSpc {
					t.Error(err)
				}
				if r.IntN(3) == 0 {
					c.Remove(cred, c.Root(), name) // another may have done so
				}
			}
		})
	}
	for range 2 { // beside them
		if code := run([]string{"scrub", p.status}); code != exitOK {
			t.Errorf("exit code %d", code)
		}
	}
	clients.Wait()
	var r status.Report
	if err := json.Unmarshal([]byte(get(t, p.status+"status.json")), &r); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	passes := r.Volumes[0].Scrub.Passes
	if passes < 2 || strings.Contains(p.stderr.String(), "level=ERROR") {
		t.Errorf("%d passes; the log:\n%s", passes, p.stderr.String())
	}
	t.Logf("%d passes", passes)
}
