package oncrpc

import (
	"errors"
	"io"
	"net"
	"testing"
)

// Replies leave when they may, and not before; and if they never may, not a byte does.
func TestMayReply(t *testing.T) {
	for _, may := range []bool{true, false} {
		asked, answer := make(chan struct{}), make(chan bool)
		s, addr := serveEcho(t, Config{MayReply: func() bool { asked <- struct{}{}; return <-answer }}, nil)
		for _, proc := range []uint32{0, 1, 2} {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := nc.Write(mark(callBytes(5, proc, []byte("abcd")))); err != nil {
				t.Fatal(err)
			}
			<-asked
			answer <- may
			b := make([]byte, 8)
			if _, err := io.ReadFull(nc, b); may && err != nil || !may && !ended(err) {
				t.Errorf("procedure %d, may reply: %v: %v, % x", proc, may, err, b)
			}
			nc.Close()
		}
		_ = s
	}
}

// ended says that a connection ended without a byte.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.As(err, new(*net.OpError)) }

// The same for datagrams: what may not be answered is as if it had been lost.
func TestMayReplyPackets(t *testing.T) {
	p := packets()
	asked := make(chan bool)
	p.s.cfg.MayReply = func() bool { return <-asked }
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- p.Serve(pc) }()
	nc, err := net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for i, may := range []bool{false, true} {
		if _, err := nc.Write(packetCall(uint32(5+i), 7, 2, 0)); err != nil {
			t.Fatal(err)
		}
		asked <- may
	}
	b := make([]byte, 100)
	if n, err := nc.Read(b); err != nil || b[3] != 6 {
		t.Errorf("% x, %v: want the reply to the second call", b[:n], err)
	}
	p.Stop()
	<-served
}
