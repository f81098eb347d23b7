package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// oneCall sends a call that is encoded, over a connection of its own, and returns the reply's body.
func oneCall(t *testing.T, addr string, call []byte) []byte {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	if _, err := nc.Write(nfsclient.Mark(call)); err != nil {
		t.Fatal(err)
	}
	rec, err := nfsclient.ReadRecord(nc)
	if err != nil {
		t.Fatal(err)
	}
	d, err := nfsclient.ParseReply(rec[4:])
	if err != nil {
		t.Fatal(err)
	}
	return d.Rest()
}

// Each call that changes names is sent three times, byte for byte: over connections of their own, and after the server
// was started anew. It is done once, and answered three times with success and the same file.
func TestRetransmission(t *testing.T) {
	d := disk.NewMem(16384 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	var v *fs.FS
	serve := func() (addr string, stop func()) {
		var err error
		if v, err = fs.Open(d, fs.Options{}); err != nil {
			t.Fatal(err)
		}
		addr, s := startServer(t, server.Config{Volumes: []server.Volume{{FS: v}}})
		return addr, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			s.Shutdown(ctx)
			if err := v.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	addr, stop := serve()
	file := create(t, v, "file")
	guarded := create(t, v, "guarded")
	create(t, v, "old")
	create(t, v, "from")
	if _, err := v.Mkdir(root, v.Root(), []byte("sub"), mode(0o755)); err != nil {
		t.Fatal(err)
	}
	a, err := v.Getattr(guarded)
	if err != nil {
		t.Fatal(err)
	}
	c := mount(t, addr)
	for _, name := range []string{"file", "guarded"} { // learns the handles
		if _, err := c.Lookup(root, c.Root(), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	dirop := func(e *oncrpc.Encoder, name string) {
		e.Opaque(c.Raw(c.Root()))
		e.Opaque([]byte(name))
	}
	noAttrs := func(e *oncrpc.Encoder) {
		for range 6 {
			e.Uint32(0)
		}
	}
	calls := []struct {
		name  string
		proc  uint32
		args  func(e *oncrpc.Encoder)
		makes bool // a handle follows
		anew  fs.Errno
	}{
		{"CREATE", nfs3.ProcCreate, func(e *oncrpc.Encoder) { dirop(e, "f"); e.Uint32(1); noAttrs(e) }, true, fs.ErrExist},
		{"MKDIR", nfs3.ProcMkdir, func(e *oncrpc.Encoder) { dirop(e, "d"); noAttrs(e) }, true, fs.ErrExist},
		{"SYMLINK", nfs3.ProcSymlink,
			func(e *oncrpc.Encoder) { dirop(e, "s"); noAttrs(e); e.Opaque([]byte("to")) }, true, fs.ErrExist},
		{"MKNOD", nfs3.ProcMknod, func(e *oncrpc.Encoder) { dirop(e, "p"); e.Uint32(7); noAttrs(e) }, true, fs.ErrExist},
		{"REMOVE", nfs3.ProcRemove, func(e *oncrpc.Encoder) { dirop(e, "old") }, false, fs.ErrNoEnt},
		{"RMDIR", nfs3.ProcRmdir, func(e *oncrpc.Encoder) { dirop(e, "sub") }, false, fs.ErrNoEnt},
		{"RENAME", nfs3.ProcRename, func(e *oncrpc.Encoder) { dirop(e, "from"); dirop(e, "to") }, false, fs.ErrNoEnt},
		{"LINK", nfs3.ProcLink, func(e *oncrpc.Encoder) { e.Opaque(c.Raw(file)); dirop(e, "l") }, false, fs.ErrExist},
		{"SETATTR", nfs3.ProcSetattr, func(e *oncrpc.Encoder) {
			e.Opaque(c.Raw(guarded))
			e.Uint32(1)
			e.Uint32(0o600)
			for range 5 {
				e.Uint32(0)
			}
			e.Uint32(1)
			e.Uint32(uint32(a.Ctime.Sec))
			e.Uint32(a.Ctime.Nsec)
		}, false, fs.ErrNotSync},
	}
	encoded := func(i int, xid uint32) []byte {
		e := nfsclient.Header(xid, nfs3.Program, nfs3.Version, uint32(calls[i].proc), root)
		calls[i].args(&e)
		return e.Bytes()
	}
	handles := make([][]byte, len(calls))
	check := func(when string, again bool) {
		t.Helper()
		for i, k := range calls {
			body := oneCall(t, addr, encoded(i, 0xabcd+uint32(i)))
			dec := oncrpc.NewDecoder(body)
			if st := dec.Uint32(); st != 0 {
				t.Errorf("%s %s: %v", k.name, when, fs.Errno(st))
			}
			if !k.makes {
				continue
			}
			dec.Bool()
			switch h := dec.Opaque(64); {
			case !again:
				handles[i] = h
			case !bytes.Equal(h, handles[i]):
				t.Errorf("%s %s: another handle", k.name, when)
			}
		}
	}
	check("first", false)
	check("again", true)
	stop()
	addr, stop = serve()
	check("after a restart", true)
	for i, k := range calls {
		dec := oncrpc.NewDecoder(oneCall(t, addr, encoded(i, 0x1000+uint32(i))))
		if st := fs.Errno(dec.Uint32()); st != k.anew {
			t.Errorf("%s as a new call: %v, want %v", k.name, st, k.anew)
		}
	}
	stop()
}

// TestTwoMachinesOneAddress: two clients behind one address, which send the same bytes but for the names of their
// machines, over connections that are gone, make two calls: the second is told what is so when it comes. Each one's own
// call sent again is answered from its record, also after a restart.
func TestTwoMachinesOneAddress(t *testing.T) {
	d := disk.NewMem(16384 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	for restart := range 2 {
		v, err := fs.Open(d, fs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		addr, s := startServer(t, server.Config{Volumes: []server.Volume{{FS: v}}})
		c := mount(t, addr)
		call := func(machine, name string) fs.Errno {
			e := nfsclient.HeaderFrom(machine, 77, nfs3.Program, nfs3.Version, nfs3.ProcMkdir, root)
			e.Opaque(c.Raw(c.Root()))
			e.Opaque([]byte(name))
			for range 6 {
				e.Uint32(0)
			}
			dec := oncrpc.NewDecoder(oneCall(t, addr, e.Bytes()))
			return fs.Errno(dec.Uint32())
		}
		for i := range 9 {
			name := fmt.Sprint("lock", i)
			for _, x := range []struct {
				machine string
				want    fs.Errno
			}{{"one", 0}, {"two", fs.ErrExist}, {"", fs.ErrExist}, {"one", 0}, {"on", fs.ErrExist}, {"two", fs.ErrExist}} {
				if got := call(x.machine, name); got != x.want {
					t.Errorf("%s of machine %q, restarted %d times: %v, want %v", name, x.machine, restart, got, x.want)
				}
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		s.Shutdown(ctx)
		cancel()
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A client that holds a connection and has its reply is not taken for another one behind the same address that sends
// the same bytes.
func TestTwoClientsOneAddress(t *testing.T) {
	d := disk.NewMem(16384 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	addr := start(t, v)
	c := mount(t, addr)
	for i := range 20 {
		e := nfsclient.Header(77, nfs3.Program, nfs3.Version, nfs3.ProcMkdir, root)
		e.Opaque(c.Raw(c.Root()))
		e.Opaque(fmt.Append(nil, "lock", i))
		for range 6 {
			e.Uint32(0)
		}
		call := nfsclient.Mark(e.Bytes())
		var first net.Conn
		var got []fs.Errno
		for range 2 {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if first == nil {
				first = nc
			}
			if _, err := nc.Write(call); err != nil {
				t.Fatal(err)
			}
			rec, err := nfsclient.ReadRecord(nc)
			if err != nil {
				t.Fatal(err)
			}
			dec, err := nfsclient.ParseReply(rec[4:])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fs.Errno(dec.Uint32()))
		}
		if got[0] != 0 || got[1] != fs.ErrExist {
			t.Errorf("the first got %v, the second %v", got[0], got[1])
		}
		first.Close()
		body := oneCall(t, addr, e.Bytes())
		dec := oncrpc.NewDecoder(body)
		if st := fs.Errno(dec.Uint32()); st != 0 {
			t.Errorf("again, when the first has hung up: %v", st)
		}
	}
}
