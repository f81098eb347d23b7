package server_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"tansy/fs"
	"tansy/nfs/exports"
	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/tlstest"
)

// startTLSExports is startExports with TLS.
func startTLSExports(t testing.TB, file string, paths ...string) (*hosts, *tlstest.Authority) {
	m, _ := planted(t, paths...)
	a := tlstest.New(t)
	with := a.Server()
	s := server.New(server.Config{
		Volumes: []server.Volume{{FS: m, ID: [8]byte{1, 2, 3}, Exports: exports.NewPolicy(parse(t, file))}},
		Log:     slog.New(slog.NewTextHandler(io.Discard, nil)),
		RPC:     oncrpc.Config{TLS: func() *tls.Config { return with }},
	})
	l := &hosts{make(chan net.Conn), make(chan struct{})}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		close(l.done)
		s.Shutdown(context.Background())
		<-served
	})
	return l, a
}

// secureDial is dial with TLS. names are those of the client's certificate.
func (l *hosts) secureDial(t testing.TB, a *tlstest.Authority, peer string, names ...string) net.Conn {
	t.Helper()
	c, err := tlstest.Start(l.dial(t, peer), nfs3.Program, nfs3.Version, a.Client(names...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tooWeak tells if a call was denied because of how the connection is protected.
func tooWeak(err error) bool {
	var e *nfsclient.RPCError
	return errors.As(err, &e) && e.Denied && e.Stat == 1 && len(e.Rest) == 4 && binary.BigEndian.Uint32(e.Rest) == 5
}

// Each option xprtsec, with each way to come: MNT is answered in the clear, as clients of Linux ask it so. Of NFS all
// procedures are denied but NULL, and none where the option allows the way.
func TestXprtsec(t *testing.T) {
	l, a := startTLSExports(t, `
/none    *(rw,insecure,no_root_squash,xprtsec=none)
/any     *(rw,insecure,no_root_squash)
/tls     *(rw,insecure,no_root_squash,xprtsec=tls:mtls)
/mtls    *(rw,insecure,no_root_squash,xprtsec=mtls)
/named   dns:*.example.org(rw,insecure,no_root_squash)
/both    cn:host.example.org(rw,insecure,no_root_squash) 10.0.0.2(ro,insecure)
`, "/none/", "/any/", "/tls/", "/mtls/", "/named/", "/both/")
	dial := map[string]func() net.Conn{
		"none":    func() net.Conn { return l.dial(t, "10.0.0.1:4000") },
		"tls":     func() net.Conn { return l.secureDial(t, a, "10.0.0.1:4000") },
		"mtls":    func() net.Conn { return l.secureDial(t, a, "10.0.0.1:4000", "host.example.org") },
		"other":   func() net.Conn { return l.secureDial(t, a, "10.0.0.1:4000", "host.example.net") },
		"address": func() net.Conn { return l.dial(t, "10.0.0.2:4000") },
	}
	handles := map[string][]byte{} // as got in the clear
	for _, dir := range []string{"/none", "/any", "/tls", "/mtls", "/named", "/both"} {
		c, err := nfsclient.MountDir(dial["none"](), dir)
		if err != nil {
			t.Fatalf("MNT of %s in the clear: %v", dir, err)
		}
		handles[dir] = c.Raw(c.Root())
	}
	for _, x := range []struct{ dir, in, weak, out string }{ // out: NFS3ERR_ACCES
		{"/none", "none address", "tls mtls other", ""},
		{"/any", "none tls mtls other address", "", ""},
		{"/tls", "tls mtls other", "none address", ""},
		{"/mtls", "mtls other", "none tls address", ""},
		{"/named", "mtls", "none tls address", "other"},
		{"/both", "mtls address", "none tls", "other"},
	} {
		for _, way := range strings.Fields(x.in + " " + x.weak + " " + x.out) {
			c := nfsclient.NewConn(dial[way]())
			for proc := range uint32(22) {
				d, err := c.Call(nfs3.Program, nfs3.Version, proc, root, func(e *oncrpc.Encoder) {
					if proc != 0 {
						argumentsFor(e, proc, handles[x.dir])
					}
				})
				got := "in"
				switch {
				case tooWeak(err):
					got = "weak"
				case err != nil:
					t.Fatalf("%s over %s, procedure %d: %v", x.dir, way, proc, err)
				case proc != 0 && fs.Errno(d.Uint32()) == fs.ErrAcces:
					got = "out"
				}
				want := "in"
				if proc != 0 && strings.Contains(" "+x.weak+" ", " "+way+" ") {
					want = "weak"
				} else if proc != 0 && x.out == way {
					want = "out"
				}
				if got != want {
					t.Errorf("%s over %s, procedure %d: %s, want %s", x.dir, way, proc, got, want)
				}
			}
			c.Close()
		}
	}
	// MNT with TLS is by the rules, as certificates tell who asks.
	for way, want := range map[string]error{"tls": fs.ErrAcces, "mtls": nil, "other": fs.ErrAcces} {
		_, err := nfsclient.MountDir(dial[way](), "/named")
		is(t, "MNT of /named over "+way, err, want)
	}
	if _, err := nfsclient.MountDir(dial["none"](), "/"); !errors.Is(err, fs.ErrAcces) {
		t.Errorf("MNT of what nobody may mount: %v", err)
	}
}

// argumentsFor are some of a procedure, for a directory.
func argumentsFor(e *oncrpc.Encoder, proc uint32, h []byte) {
	e.Opaque(h)
	name := func() { e.Opaque([]byte(fmt.Sprint("n", proc))) }
	zeros := func(n int) {
		for range n {
			e.Uint32(0)
		}
	}
	switch proc {
	case nfs3.ProcSetattr:
		zeros(7)
	case nfs3.ProcLookup, nfs3.ProcRemove, nfs3.ProcRmdir:
		name()
	case nfs3.ProcAccess:
		zeros(1)
	case nfs3.ProcRead, nfs3.ProcCommit:
		zeros(3)
	case nfs3.ProcWrite:
		zeros(5)
	case nfs3.ProcCreate:
		name()
		zeros(7)
	case nfs3.ProcMkdir:
		name()
		zeros(6)
	case nfs3.ProcSymlink:
		name()
		zeros(6)
		name()
	case nfs3.ProcMknod:
		name()
		e.Uint32(7) // a pipe
		zeros(6)
	case nfs3.ProcRename:
		name()
		e.Opaque(h)
		name()
	case nfs3.ProcLink:
		e.Opaque(h)
		name()
	case nfs3.ProcReaddir:
		zeros(4)
		e.Uint32(4096)
	case nfs3.ProcReaddirplus:
		zeros(4)
		e.Uint32(4096)
		e.Uint32(4096)
	}
}

// Without a file of exports the server's own rule counts.
func TestTransportsOfAll(t *testing.T) {
	m, _ := planted(t)
	a := tlstest.New(t)
	with := a.Server()
	addr, _ := startServer(t, server.Config{
		Volumes: []server.Volume{{FS: m}}, Transports: exports.TLS,
		RPC: oncrpc.Config{TLS: func() *tls.Config { return with }},
	})
	c := mount(t, addr)
	if _, err := c.Getattr(c.Root()); !tooWeak(err) {
		t.Errorf("in the clear: %v", err)
	}
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	secure, err := tlstest.Start(nc, mount3.Program, mount3.Version, a.Client())
	if err != nil {
		t.Fatal(err)
	}
	s, err := nfsclient.MountOn(secure)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Create(root, s.Root(), []byte("f"), fs.Guarded, mode(0o644), 0)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 300_000)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	if _, _, _, err := s.Write(root, n.Handle, 0, data, fs.FileSync); err != nil {
		t.Fatal(err)
	}
	got, _, _, err := s.Read(root, n.Handle, 0, uint32(len(data)))
	if err != nil || string(got) != string(data) {
		t.Errorf("%d bytes come back: %v", len(got), err)
	}
}

// Where there is no TLS, those who ask for it are told so: by the port mapper, and over UDP.
func TestNoTLS(t *testing.T) {
	m, _ := planted(t)
	with := tlstest.New(t).Server()
	_, s := startServer(t, server.Config{
		Volumes: []server.Volume{{FS: m}}, RPC: oncrpc.Config{TLS: func() *tls.Config { return with }},
	})
	const refused = "00000007000000010000000100000001" + "00000002" // AUTH_REJECTEDCRED
	datagram := func(serve func(net.PacketConn) error, program, version uint32) {
		t.Helper()
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go serve(pc)
		c, err := net.Dial("udp", pc.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		c.Write(tlstest.Probe(program, version)[4:])
		b := make([]byte, 100)
		n, err := c.Read(b)
		if got := fmt.Sprintf("%x", b[:n]); got != refused || err != nil {
			t.Errorf("over UDP: %s, %v", got, err)
		}
	}
	datagram(s.ServePacket, mount3.Program, mount3.Version)
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 111}
	p := server.NewPortmapper(nil, here, here, slog.New(slog.NewTextHandler(io.Discard, nil)))
	defer p.Shutdown(t.Context())
	datagram(p.ServePacket, portmap.Program, 2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go p.Serve(l)
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 {
		err := tlstest.Ask(c, portmap.Program, 2)
		if err == nil || !strings.HasSuffix(err.Error(), "00 00 00 01 00 00 00 02") {
			t.Errorf("the port mapper: %v", err)
		}
	}
}
