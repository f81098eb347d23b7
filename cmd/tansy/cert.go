package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tansy/internal/certificate"
)

// What is issued is valid so many days, unless --days says it.
const (
	authorityDays = 3650
	issuedDays    = 397
	mostDays      = 36500
)

// mostNames is how many names a certificate has at most.
const mostNames = 64

// cert is `tansy cert`.
func cert() (*flagSet, action) {
	f := newFlags("cert", "ca|server|client [NAME...] [flags]", `
  tansy cert ca --dir /etc/tansy/tls
      an authority: ca-cert.pem, which servers and clients get, and ca-key.pem,
      which signs certificates and stays where it is
  tansy cert server nfs.example.org 192.0.2.7 --dir /etc/tansy/tls
      nfs.example.org-cert.pem and nfs.example.org-key.pem, for a server that
      clients mount by that name or that address
  tansy cert client host7.example.org --dir /etc/tansy/tls
      the same for a client, which the file of exports names as
      dns:host7.example.org

  tansy serve --tls-cert /etc/tansy/tls/nfs.example.org-cert.pem \
      --tls-key /etc/tansy/tls/nfs.example.org-key.pem \
      --tls-client-ca /etc/tansy/tls/ca-cert.pem

Keys are ECDSA on P-256, without a password; their files have mode 600. A file
that is there is never overwritten. docs/guide/tls.md has the rest, with what a
client of Linux needs.
`)
	dir := f.String("dir", ".", "directory `DIR` of the files; it is made if it is not there")
	days := f.Int("days", 0, fmt.Sprintf("`N` days for which the certificate is valid (default %d, of an authority %d)",
		issuedDays, authorityDays))
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1+mostNames)
		if done {
			return code
		}
		kind, names := pos[0], pos[1:]
		if wrong := wrongCert(kind, names, *days); wrong != "" {
			return misused(f, wrong)
		}
		if err := makeCert(*dir, kind, names, *days); err != nil {
			return fail("cert", err)
		}
		return exitOK
	}
}

// wrongCert says what is wrong with the arguments, or nothing.
func wrongCert(kind string, names []string, days int) string {
	switch {
	case kind != "ca" && kind != "server" && kind != "client":
		return fmt.Sprintf("there is no certificate %q: give ca, server, or client", kind)
	case kind == "ca" && len(names) > 0:
		return fmt.Sprintf("%q is one argument too many: an authority has no other name", names[0])
	case kind != "ca" && len(names) == 0:
		return fmt.Sprintf("a certificate of a %s needs a name: give that of its host, or its address", kind)
	case days < 0 || days > mostDays:
		return fmt.Sprintf("--days %d: give 1 to %d", days, mostDays)
	}
	for _, n := range names {
		if net.ParseIP(n) == nil && !isHostName(n) {
			return fmt.Sprintf("%q is neither the name of a host nor an IP address", n)
		}
	}
	return ""
}

// isHostName tells if a name may be that of a host in a certificate.
func isHostName(name string) bool {
	for label := range strings.SplitSeq(strings.ToLower(name), ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || label[0] == '-' {
			return false
		}
	}
	return len(name) <= 253
}

// makeCert makes a certificate, and its files.
func makeCert(dir, kind string, names []string, days int) error {
	if days == 0 && kind == "ca" {
		days = authorityDays
	} else if days == 0 {
		days = issuedDays
	}
	valid := time.Duration(days) * 24 * time.Hour
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := "ca"
	if kind != "ca" {
		name = names[0]
	}
	pair, err := issue(dir, kind, names, valid)
	if err != nil {
		return err
	}
	certFile, keyFile := filepath.Join(dir, name+"-cert.pem"), filepath.Join(dir, name+"-key.pem")
	if _, err := os.Lstat(certFile); err == nil {
		return alreadyThere(certFile)
	}
	if err := writeNew(keyFile, pair.Key, 0o600); err != nil {
		return err
	}
	if err := writeNew(certFile, pair.Cert, 0o644); err != nil {
		return errors.Join(err, os.Remove(keyFile))
	}
	fmt.Fprintf(stdout, "certificate %s\nkey         %s\nvalid for   %d days\n", certFile, keyFile, days)
	return nil
}

// issue makes a certificate: of an authority, or signed by the one in dir.
func issue(dir, kind string, names []string, valid time.Duration) (certificate.Pair, error) {
	if kind == "ca" {
		_, pair, err := certificate.NewAuthority("Tansy", valid)
		return pair, err
	}
	var ca certificate.Pair
	var err error
	if ca.Cert, err = os.ReadFile(filepath.Join(dir, "ca-cert.pem")); err == nil {
		ca.Key, err = os.ReadFile(filepath.Join(dir, "ca-key.pem"))
	}
	if err != nil {
		return ca, fmt.Errorf("no authority to sign with: %w: `tansy cert ca --dir %s` makes one", err, dir)
	}
	a, err := certificate.Load(ca)
	if err != nil {
		return ca, fmt.Errorf("the authority in %s: %w", dir, err)
	}
	role := certificate.Server
	if kind == "client" {
		role = certificate.Client
	}
	return a.Issue(role, names, valid)
}

// writeNew writes a file that is not there yet, or none.
func writeNew(name string, text []byte, mode os.FileMode) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, os.ErrExist) {
		return alreadyThere(name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		os.Remove(name)
	}
	return err
}

// alreadyThere is the error for a file that would be overwritten.
func alreadyThere(name string) error {
	return fmt.Errorf("%s is there already, and is not overwritten: remove it, or give another --dir", name)
}
