package main

import (
	"cmp"
	"crypto/tls"

	"tansy/tools/load"
	"tansy/tools/starttls"
)

// clientTLS are the flags about TLS of commands that are a client.
type clientTLS struct {
	wanted bool
	files  starttls.Files
}

// clientTLSNeeds are those of them that mean nothing by themselves.
var clientTLSNeeds = []need{{"ca", "tls"}, {"cert", "tls"}, {"key", "cert"}, {"cert", "key"}}

func (c *clientTLS) flags(f *flagSet) {
	f.BoolVar(&c.wanted, "tls", false, "speak TLS with the server, or fail (RFC 9289)")
	f.StringVar(&c.files.CA, "ca", "", "`FILE` with the certificates of those who sign the server's (PEM; default those "+
		"that the system knows)")
	f.StringVar(&c.files.Cert, "cert", "", "`FILE` with a certificate to be known by")
	f.StringVar(&c.files.Key, "key", "", "`FILE` with its key")
	f.needs = append(f.needs, clientTLSNeeds...)
}

// config is how a connection to addr is protected; nil: not at all.
func (c *clientTLS) config(addr string) (*tls.Config, error) {
	if !c.wanted {
		return nil, nil
	}
	return c.files.Config(addr)
}

// dialMount connects to MOUNT as conform and bench do: a port of its own has no TLS.
func dialMount(addr, mountAddr string, with *tls.Config) (*load.Conn, error) {
	if with != nil && cmp.Or(mountAddr, addr) == addr {
		return load.DialTLS(addr, with)
	}
	return load.Dial(cmp.Or(mountAddr, addr), true)
}
