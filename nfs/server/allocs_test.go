package server_test

import (
	"io"
	"net"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
)

// To receive a call that reads no data, to carry it out, and to send the reply takes nothing of the heap.
func TestAllocs(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, which runs with -short, pools lose things on purpose")
	}
	d := disk.NewMem(10000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, Inodes: 256}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	addr := start(t, v)
	c := mount(t, addr)
	if _, err := c.Mkdir(&fs.Cred{}, c.Root(), []byte("name"), &fs.SetAttr{}); err != nil {
		t.Fatal(err)
	}
	handle, attr := (4+len(c.Raw(c.Root()))+3)&^3, 4+84 // in replies
	for _, x := range []struct {
		name string
		proc uint32
		args func(e *oncrpc.Encoder)
		size int
	}{
		{"NULL", nfs3.ProcNull, func(*oncrpc.Encoder) {}, 28},
		{"GETATTR", nfs3.ProcGetattr, func(e *oncrpc.Encoder) { e.Opaque(c.Raw(c.Root())) }, 28 + attr},
		{"ACCESS", nfs3.ProcAccess, func(e *oncrpc.Encoder) { e.Opaque(c.Raw(c.Root())); e.Uint32(63) }, 28 + 4 + attr + 4},
		{"LOOKUP", nfs3.ProcLookup,
			func(e *oncrpc.Encoder) { e.Opaque(c.Raw(c.Root())); e.Opaque([]byte("name")) }, 28 + 4 + handle + 2*attr},
	} {
		e := nfsclient.Header(1, nfs3.Program, nfs3.Version, x.proc, &fs.Cred{})
		x.args(&e)
		request, reply := nfsclient.Mark(e.Bytes()), make([]byte, x.size)
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		once := func() {
			if _, err := nc.Write(request); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(nc, reply); err != nil {
				t.Fatal(err)
			}
		}
		for range 100 {
			once()
		}
		if n := testing.AllocsPerRun(1000, once); n >= 1 {
			t.Errorf("%s: %v allocations", x.name, n)
		}
	}
}
