//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// smallData is what a small file has in it.
var smallData = make([]byte, 100)

// smallfile is LFS's benchmark of small files, as it became for file systems that are synchronous: each client, in a folder of its own,
// looks a name up, makes the file, writes to it, and removes it, and each change is durable before the next one begins.
func smallfile(o options) (es []experiment) {
	for _, n := range o.clients {
		es = append(es, sideBySide("files", "/s", n, func(folder string) func(int) error {
			return func(k int) error { return smallfileOnce(folder, fmt.Sprint("file", k)) }
		}))
	}
	return es
}

// sideBySide is an experiment with n clients, who each prepare what they do again and again in a folder of their own.
func sideBySide(what, unit string, n int, prepare func(folder string) func(k int) error) experiment {
	return experiment{
		[]metric{{Name: fmt.Sprintf("%s, clients: %d", what, n), Unit: unit, Clients: n}},
		func(ctx context.Context, s *site) ([]float64, error) {
			clients := make([]func(int) error, n)
			for i := range clients {
				folder := filepath.Join(s.dir, fmt.Sprint("client", i))
				if err := os.Mkdir(folder, 0o755); err != nil {
					return nil, err
				}
				clients[i] = prepare(folder)
			}
			if err := s.settle(); err != nil {
				return nil, err
			}
			once := func(i, k int) error { return clients[i](k) }
			rate, err := repeat(ctx, s.duration, n, once)
			return []float64{rate}, err
		},
	}
}

func smallfileOnce(folder, name string) error {
	path := filepath.Join(folder, name)
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is there already: %v", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := syncFolder(folder); err != nil {
		return err
	}
	if _, err := f.Write(smallData); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// perSecond is how many of n there were since begin.
func perSecond(n float64, begin time.Time) float64 { return n / time.Since(begin).Seconds() }
