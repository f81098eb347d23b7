package daemon

import (
	"errors"
	"io"
	"net"
	"syscall"
	"testing"

	"tansy/test/kit/loopback"
)

// A bound port is taken and silent, until it is listened on.
func TestPort(t *testing.T) {
	own := loopback.Address()
	for _, address := range []string{own + ":0", "127.0.0.1:0", "[::1]:0", ":0", "localhost:0"} {
		p, err := Bind(address)
		if err != nil {
			if address == "[::1]:0" {
				continue // no IPv6 here
			}
			t.Fatal(err)
		}
		defer p.Close()
		l, err := p.Listen()
		if err != nil {
			t.Fatal(err)
		}
		host, port, _ := net.SplitHostPort(l.Addr().String())
		if address == ":0" {
			host = own
		}
		if _, err := Bind(net.JoinHostPort(host, port)); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("bound twice: %v", err)
		}
		if _, err := p.Listen(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("listened twice: %v", err)
		}
		p.Close()
		c, err := net.Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		a.Close()
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Error(err)
		}
		c.Close()
		l.Close()
		if host != own { // another process may have the port by now
			continue
		}
		again, err := Bind(net.JoinHostPort(host, port)) // although there was a connection
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	}
}

// Who connects before the server listens is refused, and does not hang.
func TestPortSilent(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback.Address(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	p, err := Bind(address)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(c, err)
	}
}

func TestBindBad(t *testing.T) {
	for _, address := range []string{
		"", "nowhere", "127.0.0.1", "127.0.0.1:99999", "256.0.0.1:0", "[fe80::1%nothing]:0", "192.0.2.1:0",
	} {
		if p, err := Bind(address); err == nil {
			t.Errorf("%q is taken", address)
			p.Close()
		}
	}
}
