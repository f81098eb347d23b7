package server_test

import (
	"io"
	"net"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/internal/nfsclient"
	"tansy/nfs3"
	"tansy/oncrpc"
)

// To receive a call, to find out what it asks for, and to send the reply takes nothing of the heap. (What the file system
// takes, its own test says.)
func TestAllocs(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector, which runs with -short, pools lose things on purpose")
	}
	addr := start(t, model.New(model.Options{}))
	c := mount(t, addr)
	for _, x := range []struct {
		name string
		proc uint32
		args func(e *oncrpc.Encoder)
		size int
	}{
		{"NULL", nfs3.ProcNull, func(*oncrpc.Encoder) {}, 28},
		{"GETATTR", nfs3.ProcGetattr, func(e *oncrpc.Encoder) { e.Opaque(c.Raw(c.Root())) }, 28 + 4 + 84},
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
