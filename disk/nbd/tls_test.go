package nbd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/disk"
	"tansy/disk/disktest"
	"tansy/test/kit/nbdtest"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate for name, of a new authority if a is nil, and writes it and its key as KIND-cert.pem and
// KIND-key.pem to dir.
func (a *authority) issue(t *testing.T, dir, kind, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: a == nil, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	by := &authority{c, key}
	if a != nil {
		by = a
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, key.Public(), by.key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for file, b := range map[string]*pem.Block{
		"-cert.pem": {Type: "CERTIFICATE", Bytes: der}, "-key.pem": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		must(t, os.WriteFile(filepath.Join(dir, kind+file), pem.EncodeToMemory(b), 0o600))
	}
	return by
}

// certificates makes a folder with those of an authority, a server called localhost, and a client.
func certificates(t *testing.T) (dir string) {
	dir = t.TempDir()
	var none *authority
	ca := none.issue(t, dir, "ca", "an authority")
	ca.issue(t, dir, "server", "localhost")
	ca.issue(t, dir, "client", "a client")
	return dir
}

// serverTLS is the server's side: it wants a certificate of its authority from clients.
func serverTLS(t *testing.T, dir string) *tls.Config {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server-cert.pem"), filepath.Join(dir, "server-key.pem"))
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "ca-cert.pem"))
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
}

// secure is the name of the export with TLS.
func secure(name, hostname, dir string) string {
	return "nbds" + strings.TrimPrefix(name,
		"nbd") + "&tls-hostname=" + hostname + "&tls-certificates=" + url.QueryEscape(dir)
}

func TestTLSConformance(t *testing.T) {
	dir := certificates(t)
	disktest.Run(t, func(t *testing.T) disk.Disk {
		s := nbdtest.Server{TLS: serverTLS(t, dir), WantsTLS: true}
		d, err := Open(secure(s.Start(t, disk.NewMem(disktest.Blocks*disk.BlockSize)), "localhost", dir), Options{})
		must(t, err)
		return d
	})
}

// TestTLSRefused: neither side talks to whom it does not know, nor in the clear where TLS was asked for.
func TestTLSRefused(t *testing.T) {
	ours, theirs, alone, half := certificates(t), certificates(t), t.TempDir(), t.TempDir()
	ca, err := os.ReadFile(filepath.Join(ours, "ca-cert.pem"))
	must(t, err)
	for _, dir := range []string{alone, half} {
		must(t, os.WriteFile(filepath.Join(dir, "ca-cert.pem"), ca, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(half, "client-cert.pem"), ca, 0o600))
	s := nbdtest.Server{TLS: serverTLS(t, ours), WantsTLS: true}
	name := s.Start(t, disk.NewMem(10*disk.BlockSize))
	var bare nbdtest.Server
	bareName := bare.Start(t, disk.NewMem(10*disk.BlockSize))
	for what, c := range map[string]struct{ name, wrong string }{
		"without TLS":              {name, "nbds://"},
		"another name":             {secure(name, "elsewhere", ours), "elsewhere"},
		"another authority":        {secure(name, "localhost", theirs), "unknown authority"},
		"no certificate":           {secure(name, "localhost", alone), "certificate required"},
		"half a pair":              {secure(name, "localhost", half), "client-key.pem"},
		"a server that has no TLS": {secure(bareName, "localhost", ours), "does not speak TLS"},
	} {
		d, err := Open(c.name, Options{})
		if err == nil { // of a certificate that is missing TLS 1.3 tells only after the handshake
			err = d.ReadAt(0, disktest.Vector(1))
			d.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: error %v, want one with %q", what, err, c.wrong)
		}
	}
	for _, r := range append(s.Requests(), bare.Requests()...) {
		t.Errorf("a request came through: %v", r)
	}
}
