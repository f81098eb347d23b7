package exports

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"tansy/nfs/oncrpc"
)

// Client says whom a rule is for.
type Client struct {
	Name string // as it stands in the file, but for brackets around an address
	Rule Rule

	kind kind
	addr netip.Addr   // of one address
	net  netip.Prefix // of a network
	host string       // a name or a pattern, in lower case; of cn: as it is written
}

// Anybody tells if the client is "*".
func (c *Client) Anybody() bool { return c.kind == anybody }

// kind is the form of a client. When several clients of an export fit a peer, the one with
// the first kind counts, and of these the first in the file (exports(5)).
type kind int

const (
	certificate kind = iota // with this name of a host (dns:)
	commonName              // with this common name (cn:)
	address
	hostname
	network
	pattern
	anybody
)

// maxName is the longest name of a client, in bytes: that of a group in the EXPORT of MOUNT.
const maxName = 255

// parseClient understands what stands before the options.
func parseClient(name string) (c Client, err error) {
	name = withoutBrackets(name)
	c.Name = name
	lower := strings.TrimSuffix(strings.ToLower(name), ".")
	switch {
	case len(name) > maxName:
		return c, fmt.Errorf("a client of %d bytes is too long: %d is the limit", len(name), maxName)
	case name == "*":
		c.kind = anybody
	case strings.HasPrefix(name, "@"):
		return c, fmt.Errorf("netgroup %s: netgroups are not supported; name its hosts, a network, or a pattern", name)
	case strings.HasPrefix(name, "gss/"):
		return c, fmt.Errorf("%s: there is no Kerberos", name)
	case strings.HasPrefix(lower, dnsPrefix):
		c.kind, c.host = certificate, strings.TrimPrefix(lower, dnsPrefix)
		return c, checkPattern(name, c.host)
	case strings.HasPrefix(lower, cnPrefix):
		c.kind = commonName
		c.host, err = unescape(name[len(cnPrefix):])
		if err == nil && c.host == "" {
			err = fmt.Errorf("%s: a name is missing", name)
		}
	case strings.Contains(name, "/"):
		c.kind = network
		c.net, err = parseNetwork(name)
	case strings.Contains(name, ":") || strings.Trim(name, "0123456789.") == "":
		c.kind = address
		if c.addr, err = netip.ParseAddr(name); err != nil || c.addr.Zone() != "" {
			return c, fmt.Errorf("%s is no IP address", name)
		}
		c.addr = c.addr.Unmap()
	case strings.ContainsAny(name, "*?["):
		if strings.Trim(name, "0123456789.*?") == "" {
			return c, fmt.Errorf("%s: a pattern is of host names; write a network, such as 10.0.0.0/8", name)
		}
		c.kind, c.host = pattern, lower
		return c, checkPattern(name, lower)
	default:
		c.kind, c.host = hostname, lower
		err = checkHost(name, lower)
	}
	return c, err
}

// What names in certificates begin with.
const (
	dnsPrefix = "dns:"
	cnPrefix  = "cn:"
)

// certified tells if the client is who has a certificate.
func (c *Client) certified() bool { return c.kind == certificate || c.kind == commonName }

// checkPattern says what is wrong with a pattern of host names.
func checkPattern(name, lower string) error {
	if _, err := path.Match(lower, "x"); err != nil {
		return fmt.Errorf("%s: the brackets of the pattern do not match", name)
	}
	return checkHost(name, strings.Map(func(r rune) rune {
		if strings.ContainsRune("*?[]^-!", r) {
			return 'x'
		}
		return r
	}, lower))
}

// withoutBrackets is the client [ADDRESS] or [ADDRESS]/LENGTH without them, and any other as it is.
func withoutBrackets(name string) string {
	inner, rest, ok := strings.Cut(strings.TrimPrefix(name, "["), "]")
	if !ok || !strings.HasPrefix(name, "[") || rest != "" && !strings.HasPrefix(rest, "/") {
		return name
	}
	if _, err := netip.ParseAddr(inner); err != nil {
		return name
	}
	return inner + rest
}

// parseNetwork understands ADDRESS/LENGTH and ADDRESS/NETMASK. Bits of the address behind
// the network's are ignored.
func parseNetwork(name string) (netip.Prefix, error) {
	a, mask, _ := strings.Cut(name, "/")
	addr, err := netip.ParseAddr(a)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%s: %q is no IP address", name, a)
	}
	p, err := netip.ParsePrefix(name)
	if err != nil && addr.Is4() && strings.Contains(mask, ".") {
		p, err = withNetmask(addr, mask)
	}
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%s: %q is neither the length of a network nor a netmask", name, mask)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, fmt.Errorf("%s: write IPv4 networks with IPv4 addresses", name)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

func withNetmask(addr netip.Addr, mask string) (netip.Prefix, error) {
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() {
		return netip.Prefix{}, errors.New("no netmask")
	}
	for bits := range 33 {
		if p, err := netip.AddrFrom4([4]byte{255, 255, 255, 255}).Prefix(bits); err == nil && p.Addr() == m {
			return netip.PrefixFrom(addr, bits), nil
		}
	}
	return netip.Prefix{}, errors.New("a netmask with holes")
}

// checkHost says what is wrong with a host name (RFC 952, 1123, and the underscore).
func checkHost(name, lower string) error {
	for label := range strings.SplitSeq(lower, ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return fmt.Errorf("%q is no address, network, host name, or pattern", name)
		}
	}
	return nil
}

// matches tells if the client is the peer with this address, whose confirmed names are
// names. addresses are those of a host name. by is what protects its connection, if the peer has shown a certificate.
func (c *Client) matches(
	peer netip.Addr, names []string, addresses map[string][]netip.Addr, by *oncrpc.Security,
) bool {
	switch c.kind {
	case certificate:
		return by != nil && matchesAny(c.host, by.DNSNames)
	case commonName:
		return by != nil && by.CommonName == c.host
	case address:
		return c.addr == peer
	case hostname:
		for _, a := range addresses[c.host] {
			if a == peer {
				return true
			}
		}
		return false
	case network:
		return c.net.Contains(peer)
	case pattern:
		return matchesAny(c.host, names)
	}
	return true
}

// matchesAny tells if one of names fits a pattern.
func matchesAny(pattern string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		ok, _ := path.Match(pattern, n)
		return ok
	})
}
