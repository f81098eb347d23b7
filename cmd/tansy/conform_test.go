package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestConformArguments(t *testing.T) {
	for _, x := range []struct {
		want int
		args []string
	}{
		{exitOK, []string{"--help"}},
		{exitOK, []string{"--list", "--run", "null/"}},
		{exitUsage, nil},
		{exitUsage, []string{"localhost", "more"}},
		{exitUsage, []string{"localhost", "--run", "("}},
		{exitUsage, []string{"127.0.0.1:1"}},
	} {
		if got := run(append([]string{"conform"}, x.args...)); got != x.want {
			t.Errorf("tansy conform %q: exit code %d, want %d", x.args, got, x.want)
		}
	}
	for in, want := range map[string]string{"host": "host:2049", "host:1": "host:1", "::1": "[::1]:2049", "[::1]": "[::1]:2049", "[::1]:1": "[::1]:1"} {
		if got, err := hostPort(in, nfsPort); got != want || err != nil {
			t.Errorf("%s: %s (%v), want %s", in, got, err, want)
		}
	}
}

// listening takes connections on loopback, and hands each to serve, until the end of the test.
func listening(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// What is no NFS server is said, and what to do.
func TestConformWithoutServer(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", t.TempDir()+"/v.img", "--size", "64M", "--cache", "8M")
	from, err := net.Dial("tcp", p.addr) // nobody listens on its port, nor can meanwhile
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	closed := from.LocalAddr().String()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	go http.Serve(web, http.NotFoundHandler())
	mute := listening(t, func(c net.Conn) { io.Copy(io.Discard, c) })
	ends := listening(t, func(c net.Conn) { c.Read(make([]byte, 1)) })
	greets := listening(t, func(c net.Conn) { io.WriteString(c, "SSH-2.0-x\r\n"); io.Copy(io.Discard, c) })
	reply := func(stat string) func(net.Conn) { // to call 1, accepted
		return func(c net.Conn) {
			c.Read(make([]byte, 100))
			io.WriteString(c, "\x80\x00\x00\x18\x00\x00\x00\x01\x00\x00\x00\x01"+strings.Repeat("\x00", 12)+stat)
			io.Copy(io.Discard, c)
		}
	}
	other := listening(t, reply("\x00\x00\x00\x01"))
	const start = ": start an NFS server there, or give HOST:PORT of one (rpcinfo -p HOST lists the ports)\n"
	_, port, _ := net.SplitHostPort(closed)
	for _, x := range []struct{ says, addr, flag string }{
		{"NFS: nothing listens there (connection refused)" + start, closed, "--export=/"},
		{`NFS: it answers as an HTTP server: "HTTP/1.0 404 Not Found"` + start, web.Addr().String(), "--timeout=300ms"},
		{"NFS: a connection is taken, and nothing is answered within 300ms" + start, mute, "--timeout=300ms"},
		{"NFS: a connection is taken, and closed without an answer" + start, ends, "--export=/"},
		{`NFS: it answers what is no reply of RPC: "SSH-2.0-x"` + start, greets, "--export=/"},
		{"NFS: the server there has RPC, and not this program in version 3: PROG_UNAVAIL" + start, other, "--export=/"},
		{"MOUNT: nothing listens there (connection refused): give the port of MOUNT with --mount-port", p.addr,
			"--mount-port=" + port},
	} {
		at := x.addr
		if strings.HasPrefix(x.says, "MOUNT") {
			at = "127.0.0.1:" + port
		}
		code, said := tool(t, "conform", x.addr, x.flag)
		if want := "tansy conform: " + at + ": " + x.says; code != exitUsage || !strings.HasPrefix(said, want) {
			t.Errorf("exit code %d, %s, want %s", code, said, want)
		}
	}
	p.stop(t)
}
