package main

import (
	"bytes"
	"crypto/tls"
	"net"
	"path/filepath"
	"testing"

	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/tlstest"
)

// Peers that begin handshakes and never end them, 1,200 of ten addresses, in every way: the server stays below its cache
// and 64 MiB, those who have their TLS are answered, and whoever means it gets one.
func TestMemoryOfHandshakes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a while")
	}
	const cache, handshakes, addresses = 8 << 20, 1200, 10
	dir := certs(t)
	p := startServe(t, "--volume", filepath.Join(dir, "v.img"), "--size", "64M", "--cache", "8M", "--mode", "777",
		"--tls-cert", filepath.Join(dir, "localhost-cert.pem"), "--tls-key", filepath.Join(dir, "localhost-key.pem"),
		"--tls-client-ca", filepath.Join(dir, "ca-cert.pem"))
	from := func(address byte) net.Conn {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, address)}}
		nc, err := d.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	mount := func(address byte) *nfsclient.Client {
		secure, err := tlstest.Start(from(address), nfs3.Program, nfs3.Version, knows(t, dir, false))
		if err != nil {
			t.Fatal(err)
		}
		c, err := nfsclient.MountOn(secure)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	busy := mount(200)
	hello := clientHello(t, knows(t, dir, false))
	fragment := []byte{22, 3, 1, 0, 1, 1} // a record of TLS with one byte of a hello
	ways := [][]byte{
		nil,       // only asks
		hello[:6], // the beginning of a hello
		hello,     // all of it, and nothing after the server's certificate
		hello[:len(hello)-1],
		append([]byte{22, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb}, make([]byte, 16000)...), // a long one
		bytes.Repeat(fragment, 8000), // as many records as it takes
	}
	for i := range handshakes {
		nc := from(byte(i % addresses))
		if err := tlstest.Ask(nc, nfs3.Program, nfs3.Version); err != nil {
			t.Fatalf("handshake %d: %v", i, err)
		}
		nc.(*net.TCPConn).SetReadBuffer(4096)
		go nc.Write(ways[i/addresses%len(ways)]) // as much of it as the server takes
		if i%100 == 0 {
			if _, err := busy.Getattr(busy.Root()); err != nil {
				t.Fatalf("after %d handshakes: %v", i, err)
			}
			c := mount(201)
			if _, err := c.Create(&fs.Cred{}, c.Root(), []byte{'a' + byte(i/100)}, fs.Guarded, &fs.SetAttr{}, 0); err != nil {
				t.Fatalf("after %d handshakes: %v", i, err)
			}
			c.Close()
		}
	}
	p.within(t, cache+overhead)
}

// clientHello is the first that a client says in a handshake.
func clientHello(t *testing.T, c *tls.Config) []byte {
	t.Helper()
	here, there := net.Pipe()
	go tls.Client(there, c).Handshake()
	defer here.Close()
	b := make([]byte, 1<<14)
	n, err := here.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}
