// Package oracle compares a served volume with the model (fs/model), one operation
// after the other, through the socket: long random sequences by several users, and
// the ends of what a volume can hold. It counts which procedure gave which status;
// every status that the model can give must have come up.
//
//	go test ./test/oracle                                # seconds
//	go test ./test/oracle -run Statuses -v               # prints the table
//	go test ./test/oracle -run Statuses -table FILE      # writes it
//	go test ./test/oracle -run Statuses -rounds 1000     # a long run
package oracle

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/offline/check"
	"tansy/test/kit/fstest"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/rfc1813"
)

var (
	seedFlag  = flag.Int64("seed", 0, "seed, to repeat a failure; 0: a random one")
	rounds    = flag.Int("rounds", 10, "sequences of 3,000 operations")
	tableFlag = flag.String("table", "", "write the table of statuses to this file")
)

var root = &fs.Cred{}

func seed(t *testing.T) int64 {
	s := *seedFlag
	if s == 0 {
		s = rand.Int64()
	}
	t.Logf("-seed %d", s)
	return s
}

// volume is a volume in memory that is being served.
type volume struct {
	t    testing.TB
	disk disk.Disk
	opt  fs.Options
	addr string
	stop func()

	clients []*nfsclient.Client // closed first when it stops
}

func newVolume(t testing.TB, blocks, inodes uint64, clock fs.Clock) *volume {
	t.Helper()
	v := &volume{t: t, disk: disk.NewMem(blocks * disk.BlockSize), opt: fs.Options{CacheBytes: 8 << 20, Clock: clock}}
	if err := fs.Mkfs(v.disk, fs.MkfsOptions{Zeroed: true, LogBytes: 5 << 20, Inodes: inodes, Clock: clock}); err != nil {
		t.Fatal(err)
	}
	v.start()
	t.Cleanup(func() { v.stop() })
	return v
}

func (v *volume) start() {
	v.t.Helper()
	f, err := fs.Open(v.disk, v.opt)
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
	v.addr = l.Addr().String()
	v.stop = func() {
		v.stop = func() {}
		for _, c := range v.clients {
			c.Close()
		}
		v.clients = nil
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

func (v *volume) mount() *nfsclient.Client {
	v.t.Helper()
	return v.opened(nfsclient.Mount(v.addr))
}

// again mounts a server that was started again, for a client that knows handles.
func (v *volume) again(c *nfsclient.Client) *nfsclient.Client {
	v.t.Helper()
	return v.opened(c.Sibling(v.addr))
}

func (v *volume) opened(c *nfsclient.Client, err error) *nfsclient.Client {
	v.t.Helper()
	if err != nil {
		v.t.Fatal(err)
	}
	v.clients = append(v.clients, c)
	return c
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

func want(t *testing.T, what string, got, want error) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// TestStatuses runs everything below and looks at the tally.
func TestStatuses(t *testing.T) {
	n := tally{}
	t.Run("handles", func(t *testing.T) { badHandles(t, n) })
	t.Run("full", func(t *testing.T) { full(t, n) })
	t.Run("links", func(t *testing.T) { manyLinks(t, n) })
	t.Run("random", func(t *testing.T) { random(t, n) })
	if !t.Failed() && !testing.Short() {
		for _, m := range n.missing() {
			t.Error(m)
		}
	}
	t.Logf("\n%s", n.table())
	if *tableFlag != "" {
		if err := os.WriteFile(*tableFlag, []byte(n.table()), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// random: whatever several users do, replies are the model's to the last time
// stamp; also after the server was started again in the middle. It goes on for a
// while if a rare status did not come up.
func random(t *testing.T, n tally) {
	s := seed(t)
	most := int64(*rounds)
	for i := int64(0); i < most || i < 8*most && len(n.missing()) > 0 && !testing.Short(); i++ {
		clock := fstest.NewClock()
		v := newVolume(t, 64<<10, 1<<16, clock.Now)
		served := &counted{v.mount(), n}
		c := fstest.New(model.New(model.Options{Clock: clock.Now}), served,
			fstest.Options{Seed: s + i, Clock: clock, Far: i%2 == 1})
		if err := c.Run(2000); err != nil {
			t.Fatal(err)
		}
		v.stop()
		v.start()
		served.FileSystem = v.again(served.FileSystem.(*nfsclient.Client))
		if err := c.Run(1000); err != nil {
			t.Fatalf("after a restart: %v", err)
		}
		v.check()
	}
}

// badHandles gives every procedure a handle that was not made by a server of the
// volume, one that is too short, and one of a file that is gone.
func badHandles(t *testing.T, n tally) {
	v := newVolume(t, 8000, 1000, time.Now)
	c := v.mount()
	f, err := c.Create(root, c.Root(), []byte("f"), fs.Guarded, &fs.SetAttr{}, 0)
	want(t, "create", err, nil)
	_, err = c.Remove(root, c.Root(), []byte("f"))
	want(t, "remove", err, nil)
	forged := slices.Clone(c.Raw(c.Root()))
	forged[15] ^= 1
	r := rand.New(rand.NewPCG(1, 1))
	for proc := nfs3.ProcGetattr; proc <= nfs3.ProcCommit; proc++ {
		for _, x := range []struct {
			handle []byte
			want   fs.Errno
		}{{forged, fs.ErrBadHandle}, {forged[:31], fs.ErrBadHandle}, {nil, fs.ErrBadHandle}, {c.Raw(f.Handle), fs.ErrStale}} {
			args := rfc1813.Args[proc].Random(r)
			args[0] = string(x.handle) // every procedure's first argument is a handle
			if proc == nfs3.ProcRename {
				args[2] = string(c.Raw(c.Root()))
			} else if proc == nfs3.ProcLink {
				args[1] = string(c.Raw(c.Root()))
			}
			d, err := c.Call(nfs3.Program, nfs3.Version, uint32(proc), root,
				func(e *oncrpc.Encoder) { e.Fixed(rfc1813.Args[proc].Encode(args)) })
			want(t, fmt.Sprint("procedure ", proc), err, nil)
			st := fs.Errno(d.Uint32())
			want(t, fmt.Sprintf("procedure %d, handle % x", proc, x.handle), st, x.want)
			n.add(statuses[proc-1].proc, st)
		}
	}
	_, _, err = c.Fsinfo(c.Root())
	want(t, "FSINFO", err, nil)
	n.add("FSINFO", err)
	_, _, err = c.Pathconf(c.Root())
	want(t, "PATHCONF", err, nil)
	n.add("PATHCONF", err)
}

// snapshot is what the root directory shows.
func snapshot(t *testing.T, f fs.FileSystem) string {
	t.Helper()
	l, err := f.Readdir(root, f.Root(), 0, 0, true, fs.Limit{Bytes: 60000})
	want(t, "READDIRPLUS", err, nil)
	s := ""
	for _, e := range l.Entries {
		s += fmt.Sprintf("%s %+v\n", e.Name, *e.Attr)
	}
	return s
}

// full fills a small volume, first its inodes and then its blocks. What fails with
// NOSPC changes nothing, and what is removed can be used again.
func full(t *testing.T, n tally) {
	v := newVolume(t, 3200, 64, time.Now)
	c := counted{v.mount(), n}
	r := c.Root()
	var err error
	var names [][]byte
	for i := 0; err == nil; i++ {
		name := fmt.Appendf(nil, "f%d", i)
		if _, err = c.Create(root, r, name, fs.Guarded, &fs.SetAttr{}, 0); err == nil {
			names = append(names, name)
		}
	}
	want(t, "the last CREATE", err, fs.ErrNoSpc)
	before := snapshot(t, c)
	_, err = c.Mkdir(root, r, []byte("d"), &fs.SetAttr{})
	want(t, "MKDIR", err, fs.ErrNoSpc)
	_, err = c.Symlink(root, r, []byte("s"), &fs.SetAttr{}, []byte("x"))
	want(t, "SYMLINK", err, fs.ErrNoSpc)
	_, err = c.Mknod(root, r, []byte("p"), fs.FIFO, &fs.SetAttr{}, 0, 0)
	want(t, "MKNOD", err, fs.ErrNoSpc)
	if after := snapshot(t, c); after != before {
		t.Errorf("a failed operation changed\n%s to\n%s", before, after)
	}
	for _, name := range names[2:] {
		_, err = c.Remove(root, r, name)
		want(t, "REMOVE", err, nil)
	}
	// Blocks: data until there is no space, in pieces that get smaller.
	file, err := c.Lookup(root, r, names[0])
	want(t, "LOOKUP", err, nil)
	off := uint64(0)
	for size := 256 << 10; size >= fs.BlockSize; {
		k, _, _, err := c.Write(root, file.Handle, off, make([]byte, size), fs.FileSync)
		switch err {
		case nil:
			off += uint64(k)
		case fs.ErrNoSpc:
			a, err := c.Getattr(file.Handle)
			want(t, "GETATTR", err, nil)
			if a.Size != off {
				t.Fatalf("the size is %d after a failed WRITE at %d", a.Size, off)
			}
			size /= 2
		default:
			t.Fatalf("WRITE: %v", err)
		}
	}
	// Names, until the directory needs another block.
	for _, op := range []struct {
		what string
		do   func(name []byte) error
	}{
		{"LINK", func(name []byte) error {
			_, _, err := c.Link(root, file.Handle, r, name)
			return err
		}},
		{"RENAME", func(name []byte) error {
			_, _, err := c.Rename(root, r, names[1], r, name)
			return err
		}},
	} {
		err = nil
		for i := 0; err == nil && i < 1000; i++ {
			before = snapshot(t, c)
			name := fmt.Appendf(nil, "%s%0200d", op.what, i)
			if err = op.do(name); err == nil && op.what == "RENAME" {
				names[1] = name
				break // takes a place and gives one back
			}
		}
		if op.what == "LINK" {
			want(t, "the last LINK", err, fs.ErrNoSpc)
		}
		if after := snapshot(t, c); err != nil && after != before {
			t.Errorf("a failed %s changed\n%s to\n%s", op.what, before, after)
		}
	}
	zero := uint64(0)
	_, err = c.Setattr(root, file.Handle, &fs.SetAttr{Size: &zero}, nil)
	want(t, "SETATTR", err, nil)
	_, _, _, err = c.Write(root, file.Handle, 0, make([]byte, 100<<10), fs.FileSync)
	want(t, "WRITE after the file was cut off", err, nil)
	v.check()
}

// manyLinks: link counts end at MaxLinks. Nobody can make two thousand million
// links in a test, so the counts are patched into the volume.
func manyLinks(t *testing.T, n tally) {
	v := newVolume(t, 8000, 1000, time.Now)
	c := counted{v.mount(), n}
	r := c.Root()
	mkdir := func(name string) fs.Node {
		d, err := c.Mkdir(root, r, []byte(name), &fs.SetAttr{})
		want(t, "MKDIR", err, nil)
		return d
	}
	wide, other := mkdir("wide"), mkdir("other")
	file, err := c.Create(root, r, []byte("file"), fs.Guarded, &fs.SetAttr{}, 0)
	want(t, "CREATE", err, nil)
	v.stop()
	v.patch(wide.Attr, fs.MaxLinks)
	v.patch(file.Attr, fs.MaxLinks)
	v.start()
	c.FileSystem = v.again(c.FileSystem.(*nfsclient.Client))
	before := snapshot(t, c)
	_, err = c.Mkdir(root, wide.Handle, []byte("one more"), &fs.SetAttr{})
	want(t, "MKDIR", err, fs.ErrMLink)
	_, _, err = c.Rename(root, r, []byte("other"), wide.Handle, []byte("one more"))
	want(t, "RENAME", err, fs.ErrMLink)
	_, _, err = c.Link(root, file.Handle, other.Handle, []byte("one more"))
	want(t, "LINK", err, fs.ErrMLink)
	if after := snapshot(t, c); after != before {
		t.Errorf("a failed operation changed\n%s to\n%s", before, after)
	}
	// What adds no link is allowed.
	_, _, err = c.Rename(root, r, []byte("file"), wide.Handle, []byte("file"))
	want(t, "RENAME of a file", err, nil)
}

// patch sets the link count of a file on the stopped volume, through its journal, which keeps a code of each block.
// Its inode is found by type, generation and times; docs/design/format.md has the layouts.
func (v *volume) patch(a fs.Attr, nlink uint32) {
	v.t.Helper()
	p, err := fstest.JournalOf(v.disk)
	if err != nil {
		v.t.Fatal(err)
	}
	found := map[uint64][]byte{}
	for at := p.Home(); at < v.disk.Size(); at++ {
		b := make([]byte, fs.BlockSize)
		if err := v.disk.ReadAt(at, [][]byte{b}); err != nil {
			v.t.Fatal(err)
		}
		for i := 0; i < len(b); i += 256 {
			p := b[i : i+256]
			if fs.Type(binary.LittleEndian.Uint32(p)) == a.Type && binary.LittleEndian.Uint64(p[48:]) == a.Gen && binary.LittleEndian.Uint32(p[80:]) == a.Atime.Nsec {
				binary.LittleEndian.PutUint32(p[8:], nlink)
				found[at] = b
			}
		}
	}
	if len(found) == 0 {
		v.t.Fatal("the inode is not on the volume")
	}
	if err := fstest.Tamper(v.disk, found); err != nil {
		v.t.Fatal(err)
	}
}
