package oncrpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	x "tansy/test/kit/xdrspec"
)

// packets is a server of a small program: 1 says the number it gets twice, 2 has a result of
// as many bytes, 3 panics, 4 is for connections alone.
func packets() *PacketServer {
	return NewPacketServer(Config{Log: slog.New(slog.DiscardHandler), Programs: []Program{
		{Number: 7, Version: 2, Procs: []Proc{NullProc,
			{Name: "TWICE", Serve: func(c *Call) Accept {
				n := c.Args.Uint32()
				if !c.Args.Ok() {
					return GarbageArgs
				}
				c.Reply.Uint32(2 * n)
				return Success
			}},
			{Name: "LONG", Serve: func(c *Call) Accept {
				n := c.Args.Uint32() % 100_000
				if !c.Args.Ok() {
					return GarbageArgs
				}
				c.Reply.Data(Bytes(make([]byte, n)))
				return Success
			}},
			{Name: "PANIC", Serve: func(c *Call) Accept { panic("a fault") }},
			{Name: "LIST", Stream: true, Serve: func(c *Call) Accept { return Success }},
		}},
		{Number: 7, Version: 4},
	}})
}

// packetCall is a call without credentials.
func packetCall(xid, prog, vers, proc uint32, args ...uint32) []byte {
	e := NewEncoder(nil)
	for _, w := range append([]uint32{xid, 0, 2, prog, vers, proc, 0, 0, 0, 0}, args...) {
		e.Uint32(w)
	}
	return e.Bytes()
}

// packetReply is the reply to it.
func packetReply(xid uint32, stat Accept, result ...uint32) []byte {
	e := NewEncoder(nil)
	for _, w := range append([]uint32{xid, 1, 0, 0, 0, uint32(stat)}, result...) {
		e.Uint32(w)
	}
	return e.Bytes()
}

// A datagram is a call, and its reply is one, whatever the call is like.
func TestPacketAnswer(t *testing.T) {
	p := packets()
	for _, c := range []struct {
		what      string
		in, reply []byte
	}{
		{"NULL", packetCall(5, 7, 2, 0), packetReply(5, Success)},
		{"a call", packetCall(5, 7, 2, 1, 21), packetReply(5, Success, 42)},
		{"bad arguments", packetCall(6, 7, 2, 1), packetReply(6, GarbageArgs)},
		{"another program", packetCall(6, 8, 2, 1), packetReply(6, ProgUnavail)},
		{"another version", packetCall(6, 7, 3, 1), packetReply(6, ProgMismatch, 2, 4)},
		{"another procedure", packetCall(6, 7, 2, 9), packetReply(6, ProcUnavail)},
		{"a procedure for connections", packetCall(6, 7, 2, 4), packetReply(6, ProcUnavail)},
		{"a fault", packetCall(6, 7, 2, 3), packetReply(6, SystemErr)},
		{"a result too long", packetCall(6, 7, 2, 2, maxPacketReply), packetReply(6, SystemErr)},
		{"a reply", packetReply(5, Success), nil},
		{"nothing", nil, nil},
		{"half a header", packetCall(6, 7, 2, 1)[:20], packetReply(6, GarbageArgs)},
	} {
		if got := p.answer(c.in, &net.UDPAddr{}, nil); !bytes.Equal(got, c.reply) {
			t.Errorf("%s: % x, want % x", c.what, got, c.reply)
		}
	}
	if got := p.answer(packetCall(6, 7, 2, 2, maxPacketReply-28), &net.UDPAddr{}, nil); len(got) != maxPacketReply {
		t.Errorf("the longest result: %d bytes", len(got))
	}
}

// FuzzPacket: any datagram gets nothing, or a reply of the form that the RFC describes, which
// is not long; and what is no call gets nothing.
func FuzzPacket(f *testing.F) {
	mismatch := x.Struct(x.Uint32, x.Uint32)
	accepted := x.Struct(x.Uint32, x.Opaque(400),
		x.Union(map[uint32]x.Type{0: x.Void, 1: x.Void, 2: mismatch, 3: x.Void, 4: x.Void, 5: x.Void}, nil))
	denied := x.Union(map[uint32]x.Type{0: mismatch, 1: x.Uint32}, nil)
	reply := x.Struct(x.Uint32, x.Uint32, x.Union(map[uint32]x.Type{0: accepted, 1: denied}, nil))
	f.Add(packetCall(1, 7, 2, 1, 3))
	f.Add(packetCall(1, 7, 2, 2, 2000))
	f.Add(packetCall(1, 7, 3, 2))
	f.Add(packetReply(1, Success))
	p := packets()
	f.Fuzz(func(t *testing.T, in []byte) {
		out := p.answer(in, &net.UDPAddr{}, nil)
		call := len(in) >= 8 && binary.BigEndian.Uint32(in[4:]) == 0
		if (out != nil) != call {
			t.Fatalf("% x: % x", in, out)
		}
		if out == nil {
			return
		}
		if _, _, ok := reply.Decode(out); !ok || !bytes.Equal(out[:4], in[:4]) || out[7] != 1 || len(out) > maxPacketReply {
			t.Fatalf("% x is no reply to % x", out, in)
		}
	})
}

// Calls of many at once are answered, to whom they came from; a long datagram is none; Stop ends Serve.
func TestPacketServer(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := packets()
	served := make(chan error)
	go func() { served <- p.Serve(pc) }()
	var all sync.WaitGroup
	for i := range uint32(20) {
		all.Go(func() {
			c, err := net.Dial("udp", pc.LocalAddr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.Write(make([]byte, maxPacketCall+1))
			b := make([]byte, 100)
			for n := range uint32(50) {
				xid := i<<16 | n
				want := packetReply(xid, Success, 2*i)
				for try := 0; ; try++ { // a datagram may be lost: ask again
					c.Write(packetCall(xid, 7, 2, 1, i))
					c.SetReadDeadline(time.Now().Add(time.Second))
					got, err := c.Read(b)
					for err == nil && bytes.Equal(b[:got], packetReply(xid-1, Success, 2*i)) { // answered twice
						got, err = c.Read(b)
					}
					if bytes.Equal(b[:got], want) {
						break
					}
					if err == nil || try == 50 {
						t.Errorf("% x, %v", b[:got], err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	p.Stop()
	if err := <-served; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := p.Serve(pc); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// A socket that fails for good ends Serve with its error.
func TestPacketFailure(t *testing.T) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	broken := brokenPackets{pc, errors.New("broken")}
	if err := packets().Serve(broken); err != broken.err {
		t.Error(err)
	}
}

type brokenPackets struct {
	net.PacketConn
	err error
}

func (b brokenPackets) ReadFrom([]byte) (int, net.Addr, error) { return 0, nil, b.err }
