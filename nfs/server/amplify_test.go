package server_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/exports"
	"tansy/nfs/mount3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// amplification is how many times the bytes of a call its reply over UDP may have. A call's sender is whoever it says
// it is, so what is sent there is sent to anybody.
const amplification = 3

// TestNoAmplification: no procedure that is there over UDP answers with much more than it is sent, however much the
// server exports and however many have mounted it.
func TestNoAmplification(t *testing.T) {
	rules := strings.Repeat("a", 200) + "(rw) *(ro,insecure)\n"
	var file strings.Builder
	for _, dir := range []string{"/a", "/b", "/c", "/d"} {
		file.WriteString(dir + " " + rules)
	}
	list, _, err := exports.Parse([]byte(file.String()))
	if err != nil {
		t.Fatal(err)
	}
	files := model.New(model.Options{})
	var paths []string
	if _, err := files.Mkdir(root, files.Root(), []byte("a"), &fs.SetAttr{}); err != nil {
		t.Fatal(err)
	}
	a, err := files.Lookup(root, files.Root(), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // what fits a datagram
		name := strings.Repeat(string(rune('a'+i)), 200)
		if _, err := files.Mkdir(root, a.Handle, []byte(name), &fs.SetAttr{}); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, "/a/"+name)
	}
	addr, s := startServer(t, server.Config{Volumes: []server.Volume{{
		FS: files, Exports: exports.NewPolicy(exports.NewTable(list, nil)),
	}}})
	c, err := nfsclient.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mountAll := func() { // UMNTALL is among what is called
		for _, path := range paths {
			args := func(e *oncrpc.Encoder) { e.Opaque([]byte(path)) }
			if d, err := c.Call(mount3.Program, 3, mount3.ProcMnt, root, args); err != nil || d.Uint32() != mount3.OK {
				t.Fatalf("%s cannot be mounted: %v", path, err)
			}
		}
	}
	listen := func() net.PacketConn {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return pc
	}
	mount, mapper := listen(), listen()
	go s.ServePacket(mount)
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p := server.NewPortmapper(s.Registered(tcp, mount.LocalAddr()), tcp, mapper.LocalAddr(),
		slog.New(slog.DiscardHandler))
	go p.ServePacket(mapper)
	defer p.Shutdown(context.Background())

	for _, c := range []struct {
		at       net.PacketConn
		program  uint32
		versions []uint32
	}{{mount, mount3.Program, mount3.Versions}, {mapper, portmap.Program, portmap.Versions}} {
		conn, err := net.Dial("udp", c.at.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, version := range c.versions {
			mountAll()
			for proc := range uint32(16) {
				for _, args := range [][]uint32{nil, {1, '/' << 24}, {c.program, version, 6, 0, 0, 0, 0}} {
					call, reply := exchange(t, conn, c.program, version, proc, args)
					if reply > amplification*call {
						t.Errorf("program %d version %d procedure %d answers %d bytes with %d", c.program, version, proc, call, reply)
					}
				}
			}
		}
	}
	// What is not there over UDP is there over TCP.
	mountAll()
	if d, err := c.Call(mount3.Program, 3, mount3.ProcDump, root, nil); err != nil || len(d.Rest()) < 4*200 {
		t.Errorf("DUMP over TCP: %d bytes, %v", len(d.Rest()), err)
	}
	if d, err := c.Call(mount3.Program, 3, mount3.ProcExport, root, nil); err != nil || !d.Bool() || len(d.Rest()) < 800 {
		t.Errorf("EXPORT over TCP: %v", err)
	}
}

// exchange makes a call over UDP until it is answered, and returns the lengths of both in bytes.
func exchange(t *testing.T, conn net.Conn, program, version, proc uint32, args []uint32) (call, reply int) {
	t.Helper()
	e := oncrpc.NewEncoder(nil)
	for _, word := range append([]uint32{1, 0, 2, program, version, proc, 0, 0, 0, 0}, args...) {
		e.Uint32(word)
	}
	b := make([]byte, 64<<10)
	for range 60 {
		if _, err := conn.Write(e.Bytes()); err != nil {
			t.Fatal(err)
		}
		conn.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := conn.Read(b); err == nil {
			return len(e.Bytes()), n
		}
	}
	t.Fatalf("program %d version %d procedure %d is not answered", program, version, proc)
	return 0, 0
}
