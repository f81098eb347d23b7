package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/server"
)

// lockedBuffer is what a log was told, by whomever.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// TestVolumeClosed: a volume that is closed while it is served answers its clients with an error of the device from
// then on. What it has acknowledged is there when it is opened again, and the log has no error.
func TestVolumeClosed(t *testing.T) {
	d := disk.NewMem(16384 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	var told lockedBuffer
	log := slog.New(slog.NewTextHandler(&told, &slog.HandlerOptions{Level: slog.LevelError}))
	v, err := fs.Open(d, fs.Options{Log: log})
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := startServer(t, server.Config{Volumes: []server.Volume{{FS: v}}, Log: log})
	var clients, begun sync.WaitGroup
	var made [4]int
	for k := range made {
		c := mount(t, addr)
		begun.Add(1)
		clients.Go(func() {
			for i := 0; ; i++ {
				_, err := c.Mkdir(root, c.Root(), fmt.Appendf(nil, "%d-%d", k, i), mode(0o755))
				if err != nil {
					if !errors.Is(err, fs.ErrIO) {
						t.Error(err)
					}
					return
				}
				if made[k] = i + 1; i == 5 {
					begun.Done()
				}
			}
		})
	}
	begun.Wait()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	clients.Wait()
	told.mu.Lock()
	if told.b.Len() > 0 {
		t.Errorf("the log has errors:\n%s", told.b.Bytes())
	}
	told.mu.Unlock()
	if v, err = fs.Open(d, fs.Options{}); err != nil {
		t.Fatal(err)
	}
	for k, n := range made {
		for i := range n {
			if _, err := v.Lookup(root, v.Root(), fmt.Appendf(nil, "%d-%d", k, i)); err != nil {
				t.Errorf("%d-%d: %v", k, i, err)
			}
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}
