package credentials

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/internal/certificate"
	"tansy/test/kit/tlstest"
)

func write(t *testing.T, name string, text []byte, mode os.FileMode) string {
	t.Helper()
	if err := os.WriteFile(name, text, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

// shake makes a handshake, and returns the error of either side.
func shake(s *Store, client *tls.Config) error {
	here, there := net.Pipe()
	defer here.Close()
	failed := make(chan error, 1)
	go func() {
		c := tls.Server(there, s.Config())
		err := c.Handshake()
		if err == nil {
			_, err = c.Write([]byte("x"))
		}
		there.Close()
		failed <- err
	}()
	c := tls.Client(here, client)
	err := c.Handshake()
	if err == nil {
		_, err = c.Read(make([]byte, 1))
	}
	here.Close()
	return errors.Join(err, <-failed)
}

// TestChanges: what files say counts as soon as they say it, and what they said before while they say nothing of use.
func TestChanges(t *testing.T) {
	dir := t.TempDir()
	first, second := tlstest.New(t), tlstest.New(t)
	f := Files{filepath.Join(dir, "cert"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")}
	put := func(a *tlstest.Authority) {
		p := a.Issue(certificate.Server, time.Hour*24*30, tlstest.Host)
		write(t, f.Cert, p.Cert, 0o644)
		write(t, f.Key, p.Key, 0o600)
		write(t, f.ClientCA, a.PEM.Cert, 0o644)
	}
	put(first)
	var log bytes.Buffer
	s, err := Open(f, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	s.now = func() time.Time { return now }
	expect := func(what string, good, bad *tlstest.Authority) {
		t.Helper()
		for name, a := range map[string]*tlstest.Authority{"": good, "host": good} {
			names := []string{name}[:len(name)/4]
			if err := shake(s, a.Client(names...)); err != nil {
				t.Errorf("%s, client %q: %v", what, name, err)
			}
		}
		if err := shake(s, bad.Client()); err == nil {
			t.Errorf("%s: the server is known by another authority", what)
		}
		c := good.Client()
		foreign := bad.Cert(certificate.Client, time.Hour, "host")
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign, nil }
		if err := shake(s, c); err == nil {
			t.Errorf("%s: a client of another authority is known", what)
		}
	}
	expect("at the start", first, second)
	put(second)
	expect("before the next look", first, second)
	now = now.Add(lookEvery)
	expect("when they have changed", second, first)
	for what, change := range map[string]func(){
		"a key of another":    func() { write(t, f.Key, first.Issue(certificate.Server, time.Hour, "x").Key, 0o600) },
		"no key":              func() { os.Remove(f.Key) },
		"half a certificate":  func() { write(t, f.Cert, second.PEM.Cert[:100], 0o644) },
		"no authorities":      func() { write(t, f.ClientCA, nil, 0o644) },
		"authorities missing": func() { os.Remove(f.ClientCA) },
	} {
		put(second)
		now = now.Add(lookEvery)
		s.Config()
		log.Reset()
		change()
		for range 3 {
			now = now.Add(lookEvery)
			expect(what, second, first)
		}
		if n := strings.Count(log.String(), "not read again"); n != 1 {
			t.Errorf("%s: told %d times: %s", what, n, &log)
		}
		if err := s.Reload(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	put(first)
	if err := s.Reload(); err != nil { // SIGHUP waits for no look
		t.Fatal(err)
	}
	expect("when told to", first, second)
	if left := time.Until(s.Expires()); left < 50*time.Minute || left > time.Hour { // as the authority does
		t.Errorf("it expires in %v", left)
	}
}

// TestRefuses: old versions of TLS, and files that are of no use.
func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	a := tlstest.New(t)
	p := a.Issue(certificate.Server, time.Hour, tlstest.Host)
	cert, key := write(t, filepath.Join(dir, "cert"), p.Cert, 0o644), write(t, filepath.Join(dir, "key"), p.Key, 0o644)
	none, empty := filepath.Join(dir, "none"), write(t, filepath.Join(dir, "empty"), nil, 0o644)
	for _, x := range []struct {
		f    Files
		says string
	}{
		{Files{none, key, ""}, "none: no such file"}, {Files{cert, none, ""}, "none: no such file"},
		{Files{key, cert, ""}, "certificate"}, {Files{cert, key, none}, "none: no such file"},
		{Files{cert, key, empty}, "empty: there is no certificate"},
	} {
		if _, err := Open(x.f, slog.Default()); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%v: error %v, want one with %q", x.f, err, x.says)
		}
	}
	var log bytes.Buffer
	s, err := Open(Files{cert, key, ""}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "expires soon") || !strings.Contains(log.String(), "chmod 600") {
		t.Errorf("a certificate of an hour and a key for everybody: %s", &log)
	}
	old, other, asked := a.Client(), a.Client(), a.Client()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	other.NextProtos = []string{"h2"}
	asked.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		t.Error("a client is asked for a certificate that nobody can verify")
		return new(tls.Certificate), nil
	}
	if shake(s, old) == nil || shake(s, other) == nil {
		t.Error("TLS 1.2, or another protocol, is spoken")
	}
	if err := shake(s, asked); err != nil {
		t.Error(err)
	}
	// The page has the certificate, too, and asks nobody for one, though the server may.
	with, err := Open(Files{cert, key, write(t, filepath.Join(dir, "ca"), a.PEM.Cert, 0o644)}, slog.Default())
	if err != nil {
		t.Fatal(err)
	}
	page, err := with.Page().GetConfigForClient(nil)
	if err != nil || page.ClientAuth != tls.NoClientCert || page.NextProtos[0] != "http/1.1" ||
		len(page.Certificates) != 1 || page.MinVersion != tls.VersionTLS13 {
		t.Errorf("the page: %v, %v", page, err)
	}
	if c := with.Config(); c.ClientAuth != tls.VerifyClientCertIfGiven || c.NextProtos[0] != Protocol {
		t.Error("the server is protected as its page is")
	}
}
