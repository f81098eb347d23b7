package nbd

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"tansy/disk"
	"tansy/disk/disktest"
	"tansy/test/kit/nbdtest"
)

// scripted is a connection on which the server says what it says, whatever it is told, and then hangs up.
type scripted struct {
	io.Reader
	end chan struct{} // if not nil, it hangs up only when this is closed
}

func (c scripted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	if err != nil && c.end != nil {
		<-c.end
	}
	return n, err
}

func (scripted) Write(b []byte) (int, error)      { return len(b), nil }
func (scripted) LocalAddr() net.Addr              { return nil }
func (scripted) RemoteAddr() net.Addr             { return nil }
func (scripted) SetDeadline(time.Time) error      { return nil }
func (scripted) SetReadDeadline(time.Time) error  { return nil }
func (scripted) SetWriteDeadline(time.Time) error { return nil }
func (scripted) Close() error                     { return nil }

// hello is how a server begins.
const hello = "NBDMAGICIHAVEOPT\x00\x03"

// told is an answer to an option.
func told(option, kind uint32, body string) string {
	b := binary.BigEndian.AppendUint64(nil, magicAnswer)
	b = binary.BigEndian.AppendUint32(b, option)
	b = binary.BigEndian.AppendUint32(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return string(b) + body
}

// of is the description of an export.
func of(size uint64, flags uint16) string {
	b := binary.BigEndian.AppendUint64([]byte{0, infoExport}, size)
	return told(optGo, answerInfo, string(binary.BigEndian.AppendUint16(b, flags)))
}

// sized are block sizes.
func sized(least, most uint32) string {
	b := binary.BigEndian.AppendUint32([]byte{0, infoBlockSize}, least)
	b = binary.BigEndian.AppendUint32(b, 4096)
	return told(optGo, answerInfo, string(binary.BigEndian.AppendUint32(b, most)))
}

// TestNegotiation: what a server may say at the beginning.
func TestNegotiation(t *testing.T) {
	ack := told(optGo, answerAck, "")
	good := of(1<<20, hasFlags|hasFlush)
	for _, c := range []struct{ what, says, wrong string }{
		{"good", hello + good + ack, ""},
		{"with block sizes", hello + sized(512, 1<<20) + good + ack, ""},
		{"with what is not known", hello + told(optGo, answerInfo, "\x00\x63abc") + good + ack, ""},
		{"without GO", hello + told(optGo, errUnsupported, "") + "\x00\x00\x00\x00\x00\x10\x00\x00\x00\x05", ""},
		{"nothing", "", "hung up"},
		{"half of it", hello[:10], "in the middle"},
		{"SSH", "SSH-2.0-OpenSSH_9.2p1 Debian", "no NBD server"},
		{"oldstyle", "NBDMAGIC\x00\x00\x42\x02\x81\x86\x12\x53" + strings.Repeat("\x00", 136), "oldstyle"},
		{"not fixed", "NBDMAGICIHAVEOPT\x00\x00", "not fixed"},
		{"other magic", "NBDMAGICIHAVEOPS\x00\x03", "no NBD server"},
		{"no export", hello + told(optGo, errUnknown, "nix da"), `no such export ("nix da")`},
		{"no export by name", hello + told(optGo, errUnsupported, ""), `no export "x"`},
		{"TLS wanted", hello + told(optGo, errTLSRequired, ""), "nbds://"},
		{"forbidden", hello + told(optGo, errPolicy, ""), "may not be used"},
		{"stopping", hello + told(optGo, errShutdown, ""), "stopping"},
		{"another error", hello + told(optGo, answerError+77, ""), "error 77"},
		{"unknown answer", hello + told(optGo, 5, ""), "protocol"},
		{"end without export", hello + ack, "nothing of the export"},
		{"short answer", hello + told(optGo, answerInfo, "\x00"), "protocol"},
		{"short export", hello + told(optGo, answerInfo, "\x00\x00\x01"), "protocol"},
		{"long export", hello + told(optGo, answerInfo, "\x00\x00"+strings.Repeat("\x00", 11)) + ack, "protocol"},
		{"short block sizes", hello + told(optGo, answerInfo, "\x00\x03\x01"), "protocol"},
		{"large blocks", hello + sized(8192, 1<<20) + good + ack, "8192 bytes at least"},
		{"small requests", hello + sized(1, 4095) + good + ack, "4095 bytes at most"},
		{"too large", hello + of(1<<63, hasFlags|hasFlush) + ack, "too large"},
		{"no flags", hello + of(1<<20, hasFlush) + ack, "protocol"},
		{"answer to another option", hello + told(optStartTLS, answerInfo, ""), "protocol"},
		{"answer of another magic", hello + "?" + ack[1:], "protocol"},
		{"endless answer", hello + ack[:16] + "\xff\xff\xff\xff", "4294967295 bytes"},
		{"long answer", hello + told(optGo, answerInfo, strings.Repeat("\x00", 100<<10)) + good + ack, "102400 bytes"},
		{"answers without end", hello + strings.Repeat(good, 1000), "without end"},
		{"text without end", hello + told(optGo, errUnknown, strings.Repeat("x", 5000)), "no such export"},
	} {
		_, x, err := negotiate(scripted{Reader: strings.NewReader(c.says)}, &target{export: "x"})
		switch {
		case (err == nil) != (c.wrong == ""):
			t.Errorf("%s: error %v", c.what, err)
		case err != nil && (!strings.Contains(err.Error(), c.wrong) || len(err.Error()) > 400):
			t.Errorf("%s: error %v, want one with %q", c.what, err, c.wrong)
		case err == nil && (x.size != 1<<20 || x.flags != hasFlags|hasFlush):
			t.Errorf("%s: %+v", c.what, x)
		}
	}
}

// FuzzNegotiate: whatever a server says at the beginning, the outcome is an export that can be used or an error, and no
// more memory is taken than one answer may have.
func FuzzNegotiate(f *testing.F) {
	good := of(1<<20, hasFlags|hasFlush)
	f.Add([]byte(hello + sized(512, 1<<20) + good + told(optGo, answerAck, "")))
	f.Add([]byte(hello + told(optGo, errUnsupported, "") + "\x00\x00\x00\x00\x00\x10\x00\x00\x00\x05"))
	f.Add([]byte(hello + told(optGo, errUnknown, "none")))
	f.Add([]byte(hello + told(optGo, answerAck, "")[:16] + "\x00\x00\xff\xff"))
	f.Fuzz(func(t *testing.T, says []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, x, err := negotiate(scripted{Reader: bytes.NewReader(says)}, &target{export: "x"})
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 2*maxAnswer+uint64(2*len(says)) {
			t.Errorf("%d bytes were allocated for %d", n, len(says))
		}
		if err == nil && (x.least > disk.BlockSize || x.most < disk.BlockSize || x.flags&hasFlags == 0 || x.size>>63 != 0) {
			t.Errorf("%+v is taken", x)
		}
	})
}

// FuzzReplies: whatever comes for replies, every request ends, those that were not answered with the loss of the
// connection; what is said to be read is what came.
func FuzzReplies(f *testing.F) {
	reply := func(e uint32, handle uint64, data string) string {
		b := binary.BigEndian.AppendUint32(nil, magicReply)
		b = binary.BigEndian.AppendUint32(b, e)
		return string(binary.BigEndian.AppendUint64(b, handle)) + data
	}
	block := strings.Repeat("d", disk.BlockSize)
	f.Add([]byte(reply(0, 1, block) + reply(0, 2, "") + reply(5, 3, "")))
	f.Add([]byte(reply(0, 3, "") + reply(0, 1, block) + reply(28, 2, "")))
	f.Add([]byte(reply(0, 3, "") + reply(0, 3, "")))
	f.Add([]byte(reply(0, 1, block[:4000])))
	f.Fuzz(func(t *testing.T, says []byte) {
		c := scripted{bytes.NewReader(says), make(chan struct{})}
		gate := &gated{Conn: c, open: make(chan struct{})}
		n := newConnection(gate, gate)
		into := disktest.Vector(1)
		calls := []*call{
			n.start(commandRead, 0, 0, disk.BlockSize, nil, into, nil),
			n.start(commandWrite, 0, 0, disk.BlockSize, disktest.Vector(1), nil, nil),
			n.start(commandFlush, 0, 0, 0, nil, nil, nil),
		}
		close(gate.open)
		close(c.end)
		for i, k := range calls {
			err := <-k.done
			if i == 0 && err == nil && !bytes.Contains(says, into[0]) {
				t.Error("what was read did not come")
			}
		}
		<-n.received
		if err := <-n.start(commandFlush, 0, 0, 0, nil, nil, nil).done; !errors.Is(err, ErrDisconnected) {
			t.Error(err)
		}
		n.close()
	})
}

// gated is a connection from which nothing comes before it is opened.
type gated struct {
	net.Conn
	open chan struct{}
}

func (c *gated) Read(b []byte) (int, error) {
	<-c.open
	return c.Conn.Read(b)
}

// TestNames: what names mean, and what is wrong with them.
func TestNames(t *testing.T) {
	for _, c := range []struct{ name, network, addr, export, wrong string }{
		{"nbd://host/x", "tcp", "host:10809", "x", ""},
		{"nbd://host:7", "tcp", "host:7", "", ""},
		{"nbd://[::1]:7/a/b", "tcp", "[::1]:7", "a/b", ""},
		{"nbd://[::1]/%2Fa%20b", "tcp", "[::1]:10809", "/a b", ""},
		{"nbd+unix:///x?socket=/run/s", "unix", "/run/s", "x", ""},
		{"nbd+unix://?socket=s", "unix", "s", "", ""},
		{"nbds://host", "tcp", "host:10809", "", ""},
		{"nbds+unix:///x?socket=s&tls-hostname=h", "unix", "s", "x", ""},
		{"nbd+vsock://2:10809/", "", "", "", "not known"},
		{"nbd:///x", "", "", "", "host is missing"},
		{"nbd+unix:///x", "", "", "", "socket is missing"},
		{"nbd+unix://host/x?socket=s", "", "", "", "no host"},
		{"nbds+unix:///x?socket=s", "", "", "", "tls-hostname"},
		{"nbds://user@host/x", "", "", "", "pre-shared"},
		{"nbd://host/x?sokcet=y", "", "", "", `"sokcet"`},
		{"nbd://host/x?tls-certificates=/d", "", "", "", `"tls-certificates"`},
		{"nbds://host/x?tls-verify-peer=false", "", "", "", `"tls-verify-peer"`},
		{"nbds://host/x?tls-certificates=/does/not/exist", "", "", "", "no such file"},
		{"nbd://host/x#y", "", "", "", "fragment"},
		{"nbd://host:port/", "", "", "", "invalid port"},
		{"nbd://host:65536/", "", "", "", "65536 is no port"},
		{"nbd://host/x?a=%zz", "", "", "", "invalid URL escape"},
		{"nbd://host/" + strings.Repeat("x", 5000), "", "", "", "longer"},
	} {
		if !IsName(c.name) {
			t.Errorf("%s is taken for a file", c.name)
		}
		certificates := c.wrong == "no such file" || c.name == "nbds+unix:///x?socket=s" // which Check does not look at
		if err := Check(c.name); (err != nil) != (c.wrong != "" && !certificates) {
			t.Errorf("Check of %s: %v", c.name, err)
		}
		g, err := parse(c.name)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: error %v, want one with %q", c.name, err, c.wrong)
			}
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case g.network != c.network || g.addr != c.addr || g.export != c.export || (g.tls != nil) != strings.HasPrefix(c.name, "nbds"):
			t.Errorf("%s: %+v", c.name, g)
		}
	}
	for _, file := range []string{"nbd", "nbd.img", "/nbd://x", "nbd:x", "dir/nbd+unix://", "NBD://x", ""} {
		if IsName(file) {
			t.Errorf("%s is taken for an export", file)
		}
	}
	var s nbdtest.Server
	if _, err := Open(s.Start(t, disk.NewMem(1*disk.BlockSize))+"x", Options{}); err == nil {
		t.Error("a socket that is not there was opened")
	}
}
