package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/internal/nfsclient"
	"tansy/status"
)

// TestScrub: `tansy scrub` has a server find what is damaged in its image, and say whose it is.
func TestScrub(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	p := startServe(t, "--volume", img, "--size", "8M")
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	cred := &tansyfs.Cred{}
	n, err := c.Create(cred, c.Root(), []byte("named"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("find me "), disk.BlockSize/8)
	if _, _, _, err := c.Write(cred, n.Handle, disk.BlockSize, data, tansyfs.FileSync); err != nil {
		t.Fatal(err)
	}
	c.Close()
	p.stop(t)

	p = startServe(t, "--volume", img, "--status", "127.0.0.1:0") // nothing is in memory
	if code := run([]string{"scrub", p.status}); code != exitOK {
		t.Errorf("of a sound volume: exit code %d", code)
	}
	f, err := os.OpenFile(img, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image, err := os.ReadFile(img)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.LastIndex(image, data) // at home, not in the log
	if at < 0 || at%disk.BlockSize != 0 {
		t.Fatal(at)
	}
	if _, err := f.WriteAt([]byte("lose me"), int64(at)+100); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if code := run([]string{"scrub", strings.TrimPrefix(p.status, "http://")}); code != exitFailure {
			t.Errorf("of a damaged one: exit code %d", code)
		}
	}
	metrics := get(t, p.status+"metrics")
	for _, want := range []string{"tansy_damaged_blocks 1", "tansy_scrub_damaged_blocks 1", "tansy_scrub_passes_total 3", "tansy_scrub_running 0", "tansy_healthy 1"} {
		if !strings.Contains(metrics, "\n"+want+"\n") {
			t.Errorf("no %q in\n%s", want, metrics)
		}
	}
	if code := run([]string{"scrub", p.status, "--detach"}); code != exitOK {
		t.Errorf("without waiting: exit code %d", code)
	}
	block := fmt.Sprintf("block=%d", at/disk.BlockSize)
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

// TestScrubUnderLoad: scrubs one after the other, on an image, while clients write large and small: nothing is called damaged.
func TestScrubUnderLoad(t *testing.T) {
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
	clients.Wait()
	if code := run([]string{"scrub", p.status}); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	var r status.Report
	if err := json.Unmarshal([]byte(get(t, p.status+"status.json")), &r); err != nil {
		t.Fatal(err)
	}
	p.stop(t)
	if r.Scrub.Passes < 2 || strings.Contains(p.stderr.String(), "level=ERROR") {
		t.Errorf("%d passes; the log:\n%s", r.Scrub.Passes, p.stderr.String())
	}
	t.Logf("%d passes", r.Scrub.Passes)
}
