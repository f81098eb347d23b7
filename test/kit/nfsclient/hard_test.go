package nfsclient

import (
	"encoding/binary"
	"net"
	"testing"
)

// TestHard: calls without a reply are sent again over the next connection, with their numbers; one whose reply comes
// twice has one.
func TestHard(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := NewHard(func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	c := NewConn(h)
	defer c.Close()
	accept := func() net.Conn {
		t.Helper()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	call := func(s net.Conn) (xid uint32) {
		t.Helper()
		rec, err := ReadRecord(s)
		if err != nil {
			t.Fatal(err)
		}
		return binary.BigEndian.Uint32(rec)
	}
	reply := func(s net.Conn, xid, what uint32) {
		t.Helper()
		var b []byte
		for _, w := range []uint32{xid, 1, 0, 0, 0, 0, what} { // a reply, accepted, no verifier, success
			b = binary.BigEndian.AppendUint32(b, w)
		}
		if _, err := s.Write(Mark(b)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(wait func() (uint32, error), what uint32) {
		t.Helper()
		if got, err := wait(); got != what || err != nil {
			t.Errorf("%d, %v, want %d", got, err, what)
		}
	}
	start := func() func() (uint32, error) {
		wait := c.Go(1, 1, 0, nil, nil)
		return func() (uint32, error) {
			d, err := wait()
			if err != nil {
				return 0, err
			}
			return d.Uint32(), nil
		}
	}

	s := accept()
	first := start()
	x := call(s)
	second := start()
	y := call(s)
	reply(s, x, 10)
	want(first, 10)
	s.Close()
	s = accept()
	if again := call(s); again != y {
		t.Errorf("call %d came, want %d again", again, y)
	}
	third := start()
	z := call(s)
	reply(s, y, 20)
	reply(s, y, 21)
	reply(s, z, 30)
	want(second, 20)
	want(third, 30)
	if n := h.Made(); n != 2 {
		t.Errorf("%d connections", n)
	}
	s.Close()
	accept().Close() // and so on
	c.Close()
	if _, err := start()(); err == nil {
		t.Error("a call on a closed connection was answered")
	}
}
