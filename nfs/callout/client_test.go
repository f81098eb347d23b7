package callout

import (
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// FuzzReply: whatever answers, the client takes a bounded record and gets a result only from a
// reply to a call that was carried out.
func FuzzReply(f *testing.F) {
	good := make([]byte, 28)
	binary.BigEndian.PutUint32(good, 1<<31|24)
	good[11] = 1
	f.Add(good)
	f.Add([]byte{0x80, 0, 0, 4, 1, 2, 3, 4})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, in []byte) {
		here, there := net.Pipe()
		defer here.Close()
		go func() {
			there.Write(in)
			there.Close()
		}()
		c := NewClient(here, false, time.Second)
		b, err := c.receive()
		if len(b) > MaxReply {
			t.Fatalf("%d bytes", len(b))
		}
		if err != nil {
			return
		}
		_, d, err := parseReply(b)
		if (err == nil) != (d != nil) {
			t.Fatal(d, err)
		}
		if err == nil && (binary.BigEndian.Uint32(b[4:]) != 1 || binary.BigEndian.Uint32(b[8:]) != 0) {
			t.Errorf("% x is taken for an accepted reply", b)
		}
	})
}
