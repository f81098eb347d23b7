// Package credentials has the certificate by which a server is known, and the authorities whose clients it knows, as
// files say it now: they are read again when they change.
package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Protocol is what RPC over TLS is called in a handshake (ALPN; RFC 9289, section 5).
const Protocol = "sunrpc"

// Files are PEM. ClientCA may be empty: then no client is asked for a certificate.
type Files struct{ Cert, Key, ClientCA string }

// Store has what the files said when they were last read well. It may be used concurrently.
type Store struct {
	files Files
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	config *tls.Config
	looked time.Time     // when it was last looked whether files changed
	seen   []os.FileInfo // of the files when they were last read, well or not
}

const (
	lookEvery = time.Second         // files are looked at for a change at most that often
	soon      = 14 * 24 * time.Hour // a certificate that expires before that is warned of
)

// Open reads the files for the first time.
func Open(f Files, log *slog.Logger) (*Store, error) {
	s := &Store{files: f, log: log, now: time.Now}
	return s, s.Reload()
}

// Config is how a handshake is made that begins now: with TLS 1.3, and a client's certificate is verified if it shows
// one. A file that cannot be read, or is half written, leaves what was read before; the log has why.
func (s *Store) Config() *tls.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); now.Sub(s.looked) >= lookEvery {
		s.looked = now
		if s.changed(s.stat()) {
			if err := s.read(); err != nil {
				s.log.Error("certificates not read again: what was read before counts", "err", err)
			} else {
				s.log.Info("certificates read again", "file", s.files.Cert)
			}
		}
	}
	return s.config
}

// Page is how a page over HTTP is protected: by the same certificate, as it is when somebody connects. No client is
// asked for one.
func (s *Store) Page() *tls.Config {
	return &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := s.Config().Clone()
		c.NextProtos, c.ClientAuth, c.ClientCAs = []string{"http/1.1"}, tls.NoClientCert, nil
		return c, nil
	}}
}

// Reload reads the files now.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read()
}

// Expires is when the server's certificate does.
func (s *Store) Expires() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Certificates[0].Leaf.NotAfter
}

// stat looks at the files; one that is not there is nil.
func (s *Store) stat() (all []os.FileInfo) {
	for _, name := range []string{s.files.Cert, s.files.Key, s.files.ClientCA} {
		info, err := os.Stat(name)
		if err != nil {
			info = nil
		}
		all = append(all, info)
	}
	return all
}

// changed tells if files are not those that were read.
func (s *Store) changed(now []os.FileInfo) bool {
	for i, is := range now {
		was := s.seen[i]
		if is == nil || was == nil {
			if is != nil || was != nil {
				return true
			}
			continue
		}
		if !os.SameFile(is, was) || is.Size() != was.Size() || !is.ModTime().Equal(was.ModTime()) {
			return true
		}
	}
	return false
}

// read reads the files. The caller has s.mu.
func (s *Store) read() error {
	s.seen = s.stat() // before they are read: what changes meanwhile is seen later
	pair, err := tls.LoadX509KeyPair(s.files.Cert, s.files.Key)
	if err != nil {
		return fmt.Errorf("certificate %s and key %s: %w", s.files.Cert, s.files.Key, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{Protocol}, Certificates: []tls.Certificate{pair},
		SessionTicketsDisabled:      true, // so that each handshake looks at certificates as they are now
		DynamicRecordSizingDisabled: true,
	}
	if s.files.ClientCA != "" {
		text, err := os.ReadFile(s.files.ClientCA)
		if err != nil {
			return fmt.Errorf("authorities of clients: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("authorities of clients: %s: %w", s.files.ClientCA, errNoCertificate)
		}
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	s.config = config
	s.warn(pair.Leaf)
	return nil
}

var errNoCertificate = errors.New("there is no certificate in it (PEM)")

// warn tells what is odd about what was read.
func (s *Store) warn(leaf *x509.Certificate) {
	if left := leaf.NotAfter.Sub(s.now()); left < soon {
		s.log.Warn("the certificate expires soon, or has: clients refuse it then", "file", s.files.Cert,
			"expires", leaf.NotAfter.Format(time.RFC3339))
	}
	if key := s.seen[1]; key != nil && key.Mode()&0o007 != 0 {
		s.log.Warn("everybody on this machine may use the key: chmod 600 keeps it", "file", s.files.Key)
	}
}
