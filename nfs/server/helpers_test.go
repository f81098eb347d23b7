package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"tansy/fs"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

var root = &fs.Cred{}

// startServer serves fsys on a port of its own until the test ends.
func startServer(t testing.TB, cfg server.Config) (string, *server.Server) {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	for i := range cfg.Volumes {
		cfg.Volumes[i].ID, cfg.Volumes[i].Key = [8]byte{1, 2, 3, byte(i)}, [16]byte{4, 5, 6}
	}
	s := server.New(cfg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; !errors.Is(err, server.ErrClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String(), s
}

func start(t testing.TB, fsys fs.FileSystem) string {
	addr, _ := startServer(t, server.Config{Volumes: []server.Volume{{FS: fsys}}})
	return addr
}

func mount(t testing.TB, addr string) *nfsclient.Client {
	t.Helper()
	c, err := nfsclient.Mount(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mode(m uint32) *fs.SetAttr { return &fs.SetAttr{Mode: &m} }

func create(t testing.TB, f fs.FileSystem, name string) fs.Handle {
	t.Helper()
	n, err := f.Create(root, f.Root(), []byte(name), fs.Guarded, mode(0o644), 0)
	if err != nil {
		t.Fatal(err)
	}
	return n.Handle
}
