package main

import (
	"crypto/tls"
	"fmt"
	"log/slog"

	"tansy/nfs/exports"
	"tansy/ops/credentials"
)

// protection are the flags of serve about TLS.
type protection struct {
	files      credentials.Files
	transports exports.Transports // of exports that do not say it; 0: all

	status bool // the page has TLS, too

	store *credentials.Store // nil: no TLS
}

func (p *protection) flags(f *flagSet) {
	f.StringVar(&p.files.Cert, "tls-cert", "", "`FILE` with the server's certificate (PEM): clients that ask for TLS get "+
		"it (RFC 9289). SIGHUP and a change have this and the next two read again")
	f.StringVar(&p.files.Key, "tls-key", "", "`FILE` with its key")
	f.StringVar(&p.files.ClientCA, "tls-client-ca", "", "`FILE` with the certificates of those who sign certificates of "+
		"clients; who shows another one is refused")
	f.Var(&p.transports, "xprtsec", "how connections may be protected, a `LIST` of none, tls and mtls with colons "+
		"between them, where the file of --exports does not say it (default none:tls:mtls)")
}

// page is how the status is protected; nil: not at all.
func (p *protection) page() *tls.Config {
	if !p.status {
		return nil
	}
	return p.store.Page()
}

// wrong says what is wrong with the flags, or nothing.
func (p *protection) wrong() string {
	switch {
	case p.transports == 0 || p.transports&exports.Clear != 0:
		return ""
	case p.files.Cert == "":
		return fmt.Sprintf("--xprtsec %v keeps everybody out: it needs --tls-cert FILE and --tls-key FILE", &p.transports)
	case p.transports == exports.MutualTLS && p.files.ClientCA == "":
		return "--xprtsec mtls keeps everybody out: it needs --tls-client-ca FILE, who signs certificates of clients"
	}
	return ""
}

// open reads the files, if there are any.
func (p *protection) open(log *slog.Logger) (err error) {
	if p.files.Cert != "" {
		p.store, err = credentials.Open(p.files, log)
	}
	return err
}

// warnUseless warns of clients in the file of exports that cannot come, as nothing protects their connections.
func (p *protection) warnUseless(file string, list []exports.Export, warn func(error)) {
	without := exports.AnyTransport
	missing := "--tls-cert and --tls-key"
	switch {
	case p.files.Cert == "":
		without = exports.Clear
	case p.files.ClientCA == "":
		without, missing = exports.Clear|exports.TLS, "--tls-client-ca"
	}
	if path, client := exports.Useless(list, without); path != "" {
		warn(fmt.Errorf("%s: %s is exported to %s over connections that there are not without %s",
			file, path, client, missing))
	}
}

// keepsOut tells if nobody comes in without a certificate, where there is no file of exports.
func (p *protection) keepsOut() bool { return p.transports == exports.MutualTLS }

// mountOption is what mount commands of Linux need where calls may not come in the clear, and no file says otherwise.
func (p *protection) mountOption() string {
	switch {
	case p.transports == 0 || p.transports&exports.Clear != 0:
		return ""
	case p.transports&exports.TLS != 0:
		return ",xprtsec=tls"
	}
	return ",xprtsec=mtls"
}
