package loopback

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort(Address(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
