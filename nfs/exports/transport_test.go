package exports

import (
	"fmt"
	"strings"
	"testing"

	"tansy/nfs/oncrpc"
)

// ways are those in which a connection may be protected.
var ways = map[string]*oncrpc.Security{
	"none": nil, "tls": {}, "mtls": {Mutual: true, DNSNames: []string{"any.example.net"}, CommonName: "any"},
}

// xprtsec says which ways lead in; without it all do, or what serve has for them.
func TestTransports(t *testing.T) {
	for option, want := range map[string]string{
		"rw": "none tls mtls", "xprtsec=none:tls:mtls": "none tls mtls", "xprtsec=none": "none", "xprtsec=tls": "tls",
		"xprtsec=mtls:tls": "tls mtls", "xprtsec=mtls": "mtls",
	} {
		e, _, err := Parse([]byte("/ *(" + option + ")"))
		if err != nil {
			t.Fatal(err)
		}
		for _, byDefault := range []Transports{0, MutualTLS} {
			if byDefault != 0 && option == "rw" {
				want = "mtls"
			}
			Default(e, byDefault)
			x := NewTable(e, nil)
			var in []string
			for _, way := range []string{"none", "tls", "mtls"} {
				if rule := x.Rules(from("10.0.0.1"), ways[way])[0]; !x.TooWeak(0, rule, ways[way]) {
					in = append(in, way)
				}
			}
			if got := strings.Join(in, " "); got != want {
				t.Errorf("%s, by default %v: %s come in, want %s", option, byDefault, got, want)
			}
		}
	}
	for list, want := range map[string]string{"mtls:none": "none:mtls", "tls": "tls", "none:tls:mtls": "none:tls:mtls"} {
		var s Transports
		if err := s.Set(list); err != nil || s.String() != want {
			t.Errorf("%s: %v %v", list, &s, err)
		}
	}
	e, _, _ := Parse([]byte("/ *(rw,xprtsec=mtls:tls)"))
	if got := e[0].Clients[0].Rule.String(); !strings.HasSuffix(got, ",xprtsec=tls:mtls") {
		t.Errorf("the rule is told as %s", got)
	}
}

// A name in a certificate goes before all that an address tells. It counts only with a certificate that was verified.
func TestCertificates(t *testing.T) {
	x := table(t, `
/     *(anonuid=1) 10.0.0.1(anonuid=2) cn:Host\040A(anonuid=3) dns:a.example.org(anonuid=4)
/all  dns:*.example.org(anonuid=1) cn:host-b(anonuid=2)
/none 10.0.0.0/8(anonuid=1)
`, nil)
	named := func(cn string, dns ...string) *oncrpc.Security {
		return &oncrpc.Security{Mutual: true, CommonName: cn, DNSNames: dns}
	}
	unverified := named("Host A", "a.example.org")
	unverified.Mutual = false
	for _, c := range []struct {
		peer string
		by   *oncrpc.Security
		want string
		weak string // exports for which the connection is too weak
	}{
		{"10.0.0.1", nil, "2 - 1", "1"},
		{"10.0.0.1", &oncrpc.Security{}, "2 - 1", "1"},
		{"10.0.0.1", unverified, "2 - 1", "1"},
		{"10.0.0.1", named("Host A"), "3 - 1", ""},
		{"10.0.0.1", named("host a"), "2 - 1", ""},
		{"192.0.2.1", named("Host A", "a.example.org"), "4 1 -", ""},
		{"192.0.2.1", named("", "b.example.org"), "1 1 -", ""},
		{"192.0.2.1", named("host-b", "other.example.net"), "1 2 -", ""},
		{"192.0.2.1", named("a.example.org"), "1 - -", ""},
		{"10.0.0.1", named("", "x.b.example.net"), "2 - 1", ""},
	} {
		for range 2 {
			rules := x.Rules(from(c.peer), c.by)
			var got, weak []string
			for i, r := range rules {
				said := "-"
				if r != nil {
					said = fmt.Sprint(r.AnonUID)
				}
				got = append(got, said)
				if x.TooWeak(i, r, c.by) {
					weak = append(weak, fmt.Sprint(i))
				}
			}
			if strings.Join(got, " ") != c.want || strings.Join(weak, " ") != c.weak {
				t.Errorf("%s with %+v: rules %v, too weak for %v; want %s and %s", c.peer, c.by, got, weak, c.want, c.weak)
			}
		}
	}
	if r := x.Certified(1); r == nil || r.AnonUID != 1 || x.Certified(2) != nil {
		t.Errorf("the first rule by certificate: %v, %v", r, x.Certified(2))
	}
}

// Useless finds the first rule that lets nobody in, where there is no TLS, and where no client has a certificate.
func TestUseless(t *testing.T) {
	for file, want := range map[string][2]string{
		"/ *(rw)\n/b *(xprtsec=none:mtls)":                     {" ", " "},
		"/ *\n/b 10.0.0.1(rw) *(xprtsec=tls:mtls)":             {"/b *", " "},
		"/a 10.0.0.1(xprtsec=tls)\n/ 10.0.0.1(xprtsec=mtls) *": {"/a 10.0.0.1", "/ 10.0.0.1"},
		"/ dns:a.b":                {"/ dns:a.b", "/ dns:a.b"},
		"/ cn:A(xprtsec=none:tls)": {"/ cn:A", "/ cn:A"},
	} {
		e, _, err := Parse([]byte(file))
		if err != nil {
			t.Fatal(err)
		}
		for i, there := range []Transports{Clear, Clear | TLS} {
			if path, client := Useless(e, there); path+" "+client != want[i] {
				t.Errorf("%q with %v: %s %s, want %s", file, there, path, client, want[i])
			}
		}
	}
}
