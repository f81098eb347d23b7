// Package tlstest has certificates for tests, and the client's part of RPC-with-TLS (RFC 9289) byte by byte.
package tlstest

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"tansy/internal/certificate"
)

// Host is the name of the server in its certificate; it is 127.0.0.1 as well.
const Host = "localhost"

// Authority signs certificates for a test.
type Authority struct {
	t    testing.TB
	ca   *certificate.Authority
	PEM  certificate.Pair
	Pool *x509.CertPool
}

// New makes an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	ca, pair, err := certificate.NewAuthority("an authority of a test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authority{t: t, ca: ca, PEM: pair, Pool: x509.NewCertPool()}
	a.Pool.AppendCertsFromPEM(pair.Cert)
	return a
}

// Issue makes a certificate and its key, as PEM. It has expired if valid is below 0.
func (a *Authority) Issue(role certificate.Role, valid time.Duration, names ...string) certificate.Pair {
	a.t.Helper()
	pair, err := a.ca.Issue(role, names, valid)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}

// Cert is Issue for crypto/tls.
func (a *Authority) Cert(role certificate.Role, valid time.Duration, names ...string) tls.Certificate {
	a.t.Helper()
	p := a.Issue(role, valid, names...)
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// Server is the server's side: it verifies certificates that clients show.
func (a *Authority) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"sunrpc"}, SessionTicketsDisabled: true,
		Certificates: []tls.Certificate{a.Cert(certificate.Server, time.Hour, Host, "127.0.0.1")},
		ClientCAs:    a.Pool, ClientAuth: tls.VerifyClientCertIfGiven,
	}
}

// Client is the client's side, with a certificate for names if there are any.
func (a *Authority) Client(names ...string) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"sunrpc"}, RootCAs: a.Pool, ServerName: Host}
	if len(names) > 0 {
		c.Certificates = []tls.Certificate{a.Cert(certificate.Client, time.Hour, names...)}
	}
	return c
}

// Words are 32-bit numbers as they are on the wire.
func Words(w ...uint32) (b []byte) {
	for _, x := range w {
		b = binary.BigEndian.AppendUint32(b, x)
	}
	return b
}

// Probe is the record that asks a program for TLS (RFC 9289, section 4.1).
func Probe(program, version uint32) []byte {
	return Words(1<<31|40, 7, 0, 2, program, version, 0, 7, 0, 0, 0)
}

// Granted is the record that answers it.
func Granted() []byte {
	return append(append(Words(1<<31|32, 7, 1, 0, 0, 8), "STARTTLS"...), 0, 0, 0, 0)
}

// Ask asks for TLS, and tells what was answered if that is something else than yes.
func Ask(nc net.Conn, program, version uint32) error {
	if _, err := nc.Write(Probe(program, version)); err != nil {
		return err
	}
	reply := make([]byte, 4)
	if _, err := io.ReadFull(nc, reply); err != nil {
		return err
	}
	reply = append(reply, make([]byte, binary.BigEndian.Uint32(reply)&0xffff)...)
	if _, err := io.ReadFull(nc, reply[4:]); err != nil {
		return err
	}
	if !bytes.Equal(reply, Granted()) {
		return fmt.Errorf("answer % x", reply)
	}
	return nil
}

// Start asks for TLS, and makes the handshake.
func Start(nc net.Conn, program, version uint32, cfg *tls.Config) (*tls.Conn, error) {
	if err := Ask(nc, program, version); err != nil {
		return nil, err
	}
	c := tls.Client(nc, cfg)
	return c, c.Handshake()
}
