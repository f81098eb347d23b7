package server_test

import (
	"net"
	"testing"
	"time"

	"tansy/fs/model"
	"tansy/nfs/mount3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// TestStats: each version of MOUNT is counted as a program of its own, over TCP and UDP, failures
// included.
func TestStats(t *testing.T) {
	addr, s := startServer(t, server.Config{Volumes: []server.Volume{{FS: model.New(model.Options{})}}})
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.ServePacket(pc)
	args := func(e *oncrpc.Encoder) { e.Opaque([]byte("/none")) }
	for _, version := range mount3.Versions {
		c, err := nfsclient.Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := c.Call(mount3.Program, version, mount3.ProcMnt, root, args); err != nil || d.Uint32() != mount3.ErrNoEnt {
			t.Errorf("version %d over TCP: %v", version, err)
		}
		c.Close()
		udp, err := net.Dial("udp", pc.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer udp.Close()
		e := oncrpc.NewEncoder(nil)
		for _, word := range []uint32{1, 0, 2, mount3.Program, version, mount3.ProcMnt, 0, 0, 0, 0} {
			e.Uint32(word)
		}
		args(&e)
		udp.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := udp.Write(e.Bytes()); err != nil {
			t.Fatal(err)
		}
		if n, err := udp.Read(make([]byte, 100)); err != nil || n != 28 {
			t.Errorf("version %d over UDP: %d bytes, %v", version, n, err)
		}
	}
	type name struct{ program, proc string }
	seen := map[name]bool{}
	for _, p := range s.Stats().Procs {
		n := name{p.Program, p.Name}
		if seen[n] {
			t.Errorf("%v comes twice", n)
		}
		seen[n] = true
		want := uint64(0)
		if p.Name == "MNT" {
			want = 2
		}
		in := uint64(0)
		for _, k := range p.Latency {
			in += k
		}
		if p.Calls != want || p.Errors != want || p.Statuses[mount3.ErrNoEnt] != want || in != want {
			t.Errorf("%v: %+v", n, p)
		}
	}
	for _, program := range []string{"mount1", "mount2", "mount3"} {
		if !seen[name{program, "MNT"}] {
			t.Errorf("nothing is counted of %s", program)
		}
	}
}
