package exports

import (
	"errors"
	"fmt"
	"strings"

	"tansy/nfs/oncrpc"
)

// Transports are ways to protect a connection, as the option xprtsec= of exports(5) has them: a set.
type Transports uint8

const (
	Clear     Transports = 1 << iota // "none": without TLS
	TLS                              // "tls": the client has no certificate
	MutualTLS                        // "mtls": it has one of an authority that the server trusts
)

// AnyTransport is what exports(5) has for an export that says nothing.
const AnyTransport = Clear | TLS | MutualTLS

// ErrTooWeak is why a call is refused that comes over a connection with too little protection.
var ErrTooWeak = errors.New("the connection is not protected as the export asks for (option xprtsec)")

// names of transports, in the order of exports(5).
var transports = []struct {
	name string
	is   Transports
}{{"none", Clear}, {"tls", TLS}, {"mtls", MutualTLS}}

// ParseTransports understands a list such as "tls:mtls".
func ParseTransports(list string) (all Transports, err error) {
next:
	for word := range strings.SplitSeq(list, ":") {
		for _, t := range transports {
			if t.name == word {
				all |= t.is
				continue next
			}
		}
		return 0, fmt.Errorf("xprtsec=%s: %q is none of none, tls, and mtls, with colons between them", list, word)
	}
	return all, nil
}

// String is the set as in exports(5).
func (t Transports) String() string {
	var words []string
	for _, x := range transports {
		if t&x.is != 0 {
			words = append(words, x.name)
		}
	}
	return strings.Join(words, ":")
}

// Set implements flag.Value.
func (t *Transports) Set(list string) (err error) {
	*t, err = ParseTransports(list)
	return err
}

// transportOf is the way in which a connection is protected.
func transportOf(by *oncrpc.Security) Transports {
	switch {
	case by == nil:
		return Clear
	case by.Mutual:
		return MutualTLS
	}
	return TLS
}

// Default lets the rules that do not say it have these transports.
func Default(list []Export, t Transports) {
	for i := range list {
		for j := range list[i].Clients {
			if r := &list[i].Clients[j].Rule; r.Transports == 0 {
				r.Transports = t
			}
		}
	}
}

// Useless returns the first export, and its first client, whose rule lets nobody in where connections are protected in
// these ways alone; "" if there is none.
func Useless(list []Export, there Transports) (path, client string) {
	for _, e := range list {
		for _, c := range e.Clients {
			may := c.Rule.Transports
			if may == 0 {
				may = AnyTransport
			}
			if c.certified() {
				may &= MutualTLS
			}
			if may&there == 0 {
				return e.Path, c.Name
			}
		}
	}
	return "", ""
}
