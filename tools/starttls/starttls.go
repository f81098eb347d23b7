// Package starttls is the client's part of RPC-with-TLS (RFC 9289), for tools that speak to any server.
package starttls

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Files are those of a client, as PEM. CA is who signs certificates of servers; "": those that the system knows. Cert
// and Key may be empty, both: then the client has no certificate.
type Files struct{ CA, Cert, Key string }

// Config reads the files. The server at addr, HOST:PORT, has to be known by the name of its host.
func (f Files) Config(addr string) (*tls.Config, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"sunrpc"}, ServerName: host}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, err
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: no certificate (PEM)", f.CA)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s and key %s: %w", f.Cert, f.Key, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// ErrRefused is what a server without TLS is told by: its answer was no STARTTLS.
var ErrRefused = errors.New("the server does not speak TLS")

// Start asks a version of a program for TLS on a new connection, and makes the handshake, both within timeout. When it
// fails the connection is of no use: whoever wants TLS must not go on in the clear.
func Start(nc net.Conn, program, version uint32, cfg *tls.Config, timeout time.Duration) (*tls.Conn, error) {
	nc.SetDeadline(time.Now().Add(timeout))
	defer nc.SetDeadline(time.Time{})
	var call []byte
	// A record of 40 bytes: NULL, with the flavor AUTH_TLS, and a verifier of AUTH_NONE.
	for _, w := range []uint32{1<<31 | 40, xid, 0, 2, program, version, 0, 7, 0, 0, 0} {
		call = binary.BigEndian.AppendUint32(call, w)
	}
	if _, err := nc.Write(call); err != nil {
		return nil, err
	}
	if err := granted(nc); err != nil {
		return nil, err
	}
	c := tls.Client(nc, cfg)
	if err := c.Handshake(); err != nil {
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return c, nil
}

const (
	xid      = 1
	longest  = 1 << 10 // bytes of an answer
	verifier = "STARTTLS"
)

// granted reads the answer, which is nil if it is that TLS begins. Nothing behind it is read.
func granted(r io.Reader) error {
	var m [4]byte
	if _, err := io.ReadFull(r, m[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	n := binary.BigEndian.Uint32(m[:])
	if n>>31 == 0 || n&^(1<<31) > longest {
		return fmt.Errorf("%w: no answer to a NULL", ErrRefused)
	}
	answer := make([]byte, n&^(1<<31))
	if _, err := io.ReadFull(r, answer); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	var want []byte
	for _, w := range []uint32{xid, 1, 0, 0, uint32(len(verifier))} { // REPLY, accepted, a verifier of AUTH_NONE
		want = binary.BigEndian.AppendUint32(want, w)
	}
	want = append(append(want, verifier...), 0, 0, 0, 0) // SUCCESS
	if string(answer) != string(want) {
		return ErrRefused
	}
	return nil
}
