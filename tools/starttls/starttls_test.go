package starttls

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/internal/certificate"
	"tansy/test/kit/tlstest"
)

// TestDowngrade: who wants TLS does not go on without it, whatever is answered to the question.
func TestDowngrade(t *testing.T) {
	other := tlstest.Granted()
	other[7] = 9 // another call's
	for what, answer := range map[string][]byte{
		"denied":            tlstest.Words(1<<31|20, 1, 1, 1, 1, 2),
		"no verifier":       tlstest.Words(1<<31|24, 1, 1, 0, 0, 0, 0),
		"another verifier":  append(append(tlstest.Words(1<<31|32, 1, 1, 0, 0, 8), "STARTTLZ"...), 0, 0, 0, 0),
		"of another flavor": append(append(tlstest.Words(1<<31|32, 1, 1, 0, 1, 8), "STARTTLS"...), 0, 0, 0, 0),
		"not carried out":   append(append(tlstest.Words(1<<31|32, 1, 1, 0, 0, 8), "STARTTLS"...), 0, 0, 0, 1),
		"another call":      other,
		"the end":           nil,
		"half of it":        tlstest.Granted()[:20],
		"much":              tlstest.Words(1<<31 | 1<<20),
		"a fragment":        append(tlstest.Words(32), tlstest.Granted()[4:]...),
	} {
		here, there := net.Pipe()
		said := make(chan []byte)
		go func() {
			b := make([]byte, 44)
			io.ReadFull(there, b)
			there.Write(answer)
			rest := make([]byte, 100)
			n := 0
			if strings.HasPrefix(what, "half") || answer == nil {
				there.Close()
			} else {
				n, _ = there.Read(rest)
			}
			said <- append(b, rest[:n]...)
		}()
		_, err := Start(here, 100003, 3, new(tls.Config), 20*time.Second)
		here.Close()
		if !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", what, err)
		}
		want := append(tlstest.Words(1<<31|40, 1), tlstest.Probe(100003, 3)[8:]...)
		if got := <-said; !bytes.Equal(got, want) {
			t.Errorf("%s: said % x, want % x", what, got, want)
		}
	}
}

// TestFiles: what they say decides whom a client believes, and how it is known.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	a, foreign := tlstest.New(t), tlstest.New(t)
	write := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	pair := a.Issue(certificate.Client, time.Hour, "host")
	f := Files{write("ca", a.PEM.Cert), write("cert", pair.Cert), write("key", pair.Key)}
	bad := write("foreign", foreign.PEM.Cert)
	for _, x := range []struct {
		f     Files
		addr  string
		names int // certificates of the client; below 0: refused
	}{
		{f, "localhost:1", 1}, {Files{CA: f.CA}, "127.0.0.1:1", 0}, {f, "elsewhere:1", -1},
		{Files{CA: bad}, "localhost:1", -1}, {Files{}, "localhost:1", -1},
	} {
		c, err := x.f.Config(x.addr)
		if err != nil {
			t.Fatal(err)
		}
		here, there := net.Pipe()
		seen := make(chan int)
		go func() {
			b := make([]byte, 44)
			io.ReadFull(there, b)
			granted := tlstest.Granted()
			copy(granted[4:8], b[4:8])
			there.Write(granted)
			s := tls.Server(there, a.Server())
			n := -1
			if s.Handshake() == nil {
				n = len(s.ConnectionState().PeerCertificates)
			}
			there.Close()
			seen <- n
		}()
		_, err = Start(here, 100003, 3, c, 20*time.Second)
		here.Close()
		if n := <-seen; n != x.names || (err == nil) != (x.names >= 0) {
			t.Errorf("%v, %s: %d certificates, %v", x.f, x.addr, n, err)
		}
	}
	for _, wrong := range []Files{{CA: f.Key}, {CA: f.CA + "x"}, {CA: f.CA, Cert: f.Cert, Key: f.Cert}} {
		if _, err := wrong.Config("localhost:1"); err == nil {
			t.Errorf("%v are taken", wrong)
		}
	}
}
