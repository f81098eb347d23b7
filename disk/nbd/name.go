package nbd

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// defaultPort is the one that IANA has given NBD.
const defaultPort = "10809"

var schemes = regexp.MustCompile(`^nbds?(\+[a-z]+)?://`)

// IsName tells whether name is that of an export (nbd://..., for instance), and not that of a file.
func IsName(name string) bool { return schemes.MatchString(name) }

// target is what a name says.
type target struct {
	network, addr string // for net.Dial
	export        string
	tls           *tls.Config // nil: without TLS
}

// Check says what is wrong with the name of an export. Certificates that it refers to are not looked at.
func Check(name string) error {
	_, _, err := split(name)
	return err
}

// parse takes a name apart. It reads the certificates that the name refers to.
func parse(name string) (*target, error) {
	t, c, err := split(name)
	if err == nil && c != nil {
		t.tls, err = tlsConfig(c.host, c.hostname, c.dir)
	}
	return t, err
}

// certified is what a name says about TLS.
type certified struct{ host, hostname, dir string }

// split takes a name apart. c is nil without TLS.
func split(name string) (t *target, c *certified, err error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, nil, errors.Unwrap(err) // which has the name in it
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, nil, err
	}
	value := func(key string) string { // and takes it off
		v := query.Get(key)
		query.Del(key)
		return v
	}
	t = &target{network: "tcp", export: strings.TrimPrefix(u.Path, "/")}
	scheme, unix := strings.CutSuffix(u.Scheme, "+unix")
	switch {
	case scheme != "nbd" && scheme != "nbds":
		return nil, nil, fmt.Errorf("%s:// is not known here: nbd, nbds, nbd+unix and nbds+unix are", u.Scheme)
	case u.User != nil || u.Fragment != "":
		return nil, nil, errors.New("a name of an export has no user and no fragment " +
			"(pre-shared keys are not supported: give certificates)")
	case unix && u.Host != "":
		return nil, nil, fmt.Errorf("%s:///EXPORT?socket=PATH is meant: there is no host", u.Scheme)
	case unix:
		if t.network, t.addr = "unix", value("socket"); t.addr == "" {
			return nil, nil, fmt.Errorf("the socket is missing: %s:///EXPORT?socket=PATH", u.Scheme)
		}
	case u.Hostname() == "":
		return nil, nil, fmt.Errorf("the host is missing: %s://HOST:PORT/EXPORT", u.Scheme)
	default:
		port := u.Port()
		if port == "" {
			port = defaultPort
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return nil, nil, fmt.Errorf("%s is no port: 65535 is the highest", port)
		}
		t.addr = net.JoinHostPort(u.Hostname(), port)
	}
	if scheme == "nbds" {
		c = &certified{u.Hostname(), value("tls-hostname"), value("tls-certificates")}
	}
	for key := range query {
		return nil, nil, fmt.Errorf("%q means nothing for %s://", key, u.Scheme)
	}
	if len(t.export) > maxString {
		return nil, nil, fmt.Errorf("the name of the export is longer than %d bytes", maxString)
	}
	return t, c, nil
}

// tlsConfig is how the server is asked for its certificate, and shown ours. The files have the names that other
// NBD clients give them.
func tlsConfig(host, hostname, dir string) (*tls.Config, error) {
	if hostname == "" {
		hostname = host
	}
	if hostname == "" {
		return nil, errors.New("which name the server's certificate has to bear is not known: add tls-hostname=NAME")
	}
	c := &tls.Config{ServerName: hostname, MinVersion: tls.VersionTLS12}
	if dir == "" {
		return c, nil // the system's authorities, and no certificate of ours
	}
	ca := filepath.Join(dir, "ca-cert.pem")
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	c.RootCAs = x509.NewCertPool()
	if !c.RootCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate in it", ca)
	}
	cert, key := filepath.Join(dir, "client-cert.pem"), filepath.Join(dir, "client-key.pem")
	pair, err := tls.LoadX509KeyPair(cert, key)
	switch {
	case err == nil:
		c.Certificates = []tls.Certificate{pair}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s and client-key.pem: %w", cert, err)
	default: // both missing: the server need not know us; but one of them alone is a mistake
		for _, file := range []string{cert, key} {
			if _, e := os.Lstat(file); e == nil {
				return nil, err
			}
		}
	}
	return c, nil
}
