// Package clients tests the whole server with many clients at once: random
// operations through sockets on a volume with a journal, compared with the
// model, and the same on names the clients fight for.
package clients

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand"
	"net"
	"sync"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/server"
	"tansy/offline/check"
	"tansy/test/kit/fstest"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/replay"
)

func seed(t *testing.T) int64 { return int64(replay.Seed(t)) }

var root = &fs.Cred{}

// volumeBlocks is the size of the volumes here.
const volumeBlocks = 64 << 10

// volume is a volume in memory that is being served.
type volume struct {
	t    *testing.T
	disk *disk.Mem
	fs   *fs.FS
	addr string
	stop func()
}

func newVolume(t *testing.T) *volume {
	v := &volume{t: t, disk: disk.NewMem(volumeBlocks * disk.BlockSize)}
	if err := fs.Mkfs(v.disk, fs.MkfsOptions{Zeroed: true, LogBytes: 16 << 20}); err != nil {
		t.Fatal(err)
	}
	v.start()
	t.Cleanup(func() {
		if v.stop != nil {
			v.stop()
		}
	})
	return v
}

// start opens and serves the volume.
func (v *volume) start() {
	f, err := fs.Open(v.disk, fs.Options{CacheBytes: 8 << 20})
	if err != nil {
		v.t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		v.t.Fatal(err)
	}
	id := f.VolumeID()
	s := server.New(server.Config{Volumes: []server.Volume{{FS: f, ID: [8]byte(id[:8]), Key: f.HandleKey()}},
		Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	go s.Serve(l)
	v.fs, v.addr = f, l.Addr().String()
	v.stop = func() {
		v.stop = nil
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			v.t.Errorf("shutdown: %v", err)
		}
		if err := f.Close(); err != nil {
			v.t.Errorf("close: %v", err)
		}
	}
}

// check stops the server and looks for damage.
func (v *volume) check() {
	v.t.Helper()
	v.stop()
	r, err := check.Volume(v.disk, check.Options{Data: true})
	if err != nil {
		v.t.Fatal(err)
	}
	for _, p := range r.Problems {
		v.t.Errorf("check: %v", p)
	}
}

func (v *volume) mount() *nfsclient.Client {
	v.t.Helper()
	c, err := nfsclient.Mount(v.addr)
	if err != nil {
		v.t.Fatal(err)
	}
	return c
}

// home is a file system whose root is a directory of another one. Nothing leads
// out of it.
type home struct {
	fs.FileSystem
	root fs.Handle
}

func newHome(t *testing.T, f fs.FileSystem, name string) home {
	t.Helper()
	mode := uint32(0o777)
	n, err := f.Mkdir(root, f.Root(), []byte(name), &fs.SetAttr{Mode: &mode})
	if err == fs.ErrExist {
		n, err = f.Lookup(root, f.Root(), []byte(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	return home{f, n.Handle}
}

func (h home) Root() fs.Handle { return h.root }

func (h home) Lookup(c *fs.Cred, dir fs.Handle, name []byte) (fs.Node, error) {
	if dir == h.root && string(name) == ".." {
		name = []byte(".")
	}
	return h.FileSystem.Lookup(c, dir, name)
}

func (h home) Readdir(c *fs.Cred, dir fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
	l, err := h.FileSystem.Readdir(c, dir, cookie, verf, plus, lim)
	if err == nil && dir == h.root {
		for i := range l.Entries {
			if e := &l.Entries[i]; string(e.Name) == ".." {
				e.Ino = h.root.Ino
				if plus {
					e.Handle, e.Attr = h.root, l.Dir
				}
			}
		}
	}
	return l, err
}

// TestHomes: each client works in a directory of its own and must see exactly
// what the model shows; the volume stays sound and is the same after a restart.
func TestHomes(t *testing.T) {
	s := seed(t)
	v := newVolume(t)
	const clients = 6
	ops := 1500
	if testing.Short() {
		ops = 300
	}
	comparers := make([]*fstest.Comparer, clients)
	later := make([]*lateClient, clients)
	var wg sync.WaitGroup
	for k := range clients {
		c := v.mount()
		defer c.Close()
		later[k] = &lateClient{FileSystem: c}
		a := newHome(t, model.New(model.Options{}), "home")
		b := newHome(t, later[k], fmt.Sprint("home", k))
		comparers[k] = fstest.New(a, b, fstest.Options{Seed: s + int64(k), Far: k%2 == 0})
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := comparers[k].Run(ops); err != nil {
				t.Errorf("client %d: %v", k, err)
			}
		}()
	}
	wg.Wait()
	v.check()
	if t.Failed() {
		return
	}

	// After a restart everything is as before, and old handles are good.
	v.start()
	for k := range clients {
		c := v.mount()
		defer c.Close()
		c.Learn(later[k].FileSystem.(*nfsclient.Client))
		later[k].FileSystem = c
		if err := comparers[k].Run(100); err != nil {
			t.Errorf("client %d after a restart: %v", k, err)
		}
	}
	v.check()
}

// lateClient is a client that can be replaced.
type lateClient struct{ fs.FileSystem }

// TestShared: all clients change the same few directories. What they see cannot
// be foretold, but nothing may fail in a way it should not, block, or damage the
// volume.
func TestShared(t *testing.T) {
	s := seed(t)
	v := newVolume(t)
	const clients = 8
	ops := 1200
	if testing.Short() {
		ops = 250
	}
	var wg sync.WaitGroup
	for k := range clients {
		c := v.mount()
		defer c.Close()
		w := &worker{f: c, rnd: rand.New(rand.NewSource(s + int64(k))), dirs: []fs.Handle{c.Root()}}
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range ops {
				if err := w.step(); err != nil {
					t.Errorf("client %d: %v", k, err)
					return
				}
			}
		}()
	}
	wg.Wait()
	v.check()
}

// worker does operations that may or may not succeed.
type worker struct {
	f     fs.FileSystem
	rnd   *rand.Rand
	dirs  []fs.Handle
	files []fs.Handle
}

// step does one operation. An error is one that no order of operations explains.
func (w *worker) step() error {
	dir := w.dirs[w.rnd.Intn(len(w.dirs))]
	name := fmt.Appendf(nil, "n%d", w.rnd.Intn(10))
	mode := uint32(0o755)
	attrs := &fs.SetAttr{Mode: &mode}
	fine := []error{nil, fs.ErrStale, fs.ErrNoEnt}
	var err error
	what := ""
	switch w.rnd.Intn(12) {
	case 0, 1:
		what = "create"
		var n fs.Node
		n, err = w.f.Create(root, dir, name, fs.CreateHow(w.rnd.Intn(2)), attrs, 0)
		if err == nil {
			w.files = append(w.files, n.Handle)
		}
		fine = append(fine, fs.ErrExist)
	case 2:
		what = "mkdir"
		var n fs.Node
		n, err = w.f.Mkdir(root, dir, name, attrs)
		if err == nil && len(w.dirs) < 30 {
			w.dirs = append(w.dirs, n.Handle)
		}
		fine = append(fine, fs.ErrExist)
	case 3:
		what = "remove"
		_, err = w.f.Remove(root, dir, name)
		fine = append(fine, fs.ErrIsDir)
	case 4:
		what = "rmdir"
		_, err = w.f.Rmdir(root, dir, name)
		fine = append(fine, fs.ErrNotDir, fs.ErrNotEmpty)
	case 5, 6, 7:
		what = "rename"
		to := w.dirs[w.rnd.Intn(len(w.dirs))]
		_, _, err = w.f.Rename(root, dir, name, to, fmt.Appendf(nil, "n%d", w.rnd.Intn(10)))
		fine = append(fine, fs.ErrNotDir, fs.ErrIsDir, fs.ErrNotEmpty, fs.ErrInval)
	case 8:
		what = "link"
		if len(w.files) > 0 {
			_, _, err = w.f.Link(root, w.files[w.rnd.Intn(len(w.files))], dir, name)
		}
		fine = append(fine, fs.ErrExist)
	case 9:
		what = "write"
		if len(w.files) > 0 {
			h := w.files[w.rnd.Intn(len(w.files))]
			_, _, _, err = w.f.Write(root, h, uint64(w.rnd.Intn(100000)), make([]byte, w.rnd.Intn(30000)),
				fs.Stability(w.rnd.Intn(3)))
		}
	case 10:
		what = "lookup"
		var n fs.Node
		n, err = w.f.Lookup(root, dir, name)
		if err == nil && n.Attr.Type == fs.Directory && len(w.dirs) < 30 {
			w.dirs = append(w.dirs, n.Handle)
		}
	case 11:
		what = "list"
		cookie := uint64(0)
		for err == nil {
			var l fs.Listing
			l, err = w.f.Readdir(root, dir, cookie, 0, w.rnd.Intn(2) == 0, fs.Limit{Bytes: 2000})
			if err != nil || l.EOF {
				break
			}
			if len(l.Entries) == 0 {
				return fmt.Errorf("list: an empty page before the end")
			}
			cookie = l.Entries[len(l.Entries)-1].Cookie
		}
	}
	for _, e := range fine {
		if err == e {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
