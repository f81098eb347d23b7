package oncrpc

import (
	"errors"
	"io"
	"net"
	"testing"
)

// asked waits until MayReply is asked, and answers; it is an error if there is a reply without.
func asked(t *testing.T, question chan bool, may bool, reply chan error) {
	t.Helper()
	select {
	case question <- may:
	case err := <-reply:
		t.Fatalf("a reply that nobody was asked for: %v", err)
	}
}

// Replies leave when they may, and not before; and if they never may, not a byte does.
func TestMayReply(t *testing.T) {
	for _, may := range []bool{true, false} {
		question := make(chan bool)
		_, addr := serveEcho(t, Config{MayReply: func() bool { return <-question }}, nil)
		for _, proc := range []uint32{0, 1, 2} {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := nc.Write(mark(callBytes(5, proc, []byte("abcd")))); err != nil {
				t.Fatal(err)
			}
			reply := make(chan error, 1)
			go func() {
				_, err := io.ReadFull(nc, make([]byte, 8))
				reply <- err
			}()
			asked(t, question, may, reply)
			if err := <-reply; may && err != nil || !may && !ended(err) {
				t.Errorf("procedure %d, may reply: %v: %v", proc, may, err)
			}
		}
	}
}

// ended says that a connection ended without a byte.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.As(err, new(*net.OpError)) }

// The same for datagrams: what may not be answered is as if it had been lost.
func TestMayReplyPackets(t *testing.T) {
	p := packets()
	question := make(chan bool)
	p.s.cfg.MayReply = func() bool { return <-question }
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go p.Serve(pc)
	defer p.Stop()
	nc, err := net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	b := make([]byte, 100)
	reply := make(chan error, 1)
	go func() {
		_, err := nc.Read(b)
		reply <- err
	}()
	for i, may := range []bool{false, true} {
		if _, err := nc.Write(packetCall(uint32(5+i), 7, 2, 0)); err != nil {
			t.Fatal(err)
		}
		asked(t, question, may, reply)
	}
	if err := <-reply; err != nil || b[3] != 6 {
		t.Errorf("% x, %v: want the reply to the second call", b[:8], err)
	}
}
