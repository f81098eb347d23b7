package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

// verify checks a certificate against an authority, for a purpose.
func verify(t *testing.T, ca, p Pair, name string, usage x509.ExtKeyUsage, at time.Time) error {
	t.Helper()
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca.Cert) {
		t.Fatal("no certificate of an authority")
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{
		Roots: pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{usage}, CurrentTime: at,
	})
	return err
}

func TestIssue(t *testing.T) {
	a, ca, err := NewAuthority("an authority", 48*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(ca)
	if err != nil {
		t.Fatal(err)
	}
	_, foreign, _ := NewAuthority("an authority", time.Hour)
	server, err := a.Issue(Server, []string{"nfs.example.org", "192.0.2.7", "fd00::7"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	client, err := again.Issue(Client, []string{"host.example.org"}, 100*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, c := range []struct {
		what  string
		ca, p Pair
		name  string
		usage x509.ExtKeyUsage
		at    time.Time
		wrong string
	}{
		{"a server", ca, server, "nfs.example.org", x509.ExtKeyUsageServerAuth, now, ""},
		{"its address", ca, server, "192.0.2.7", x509.ExtKeyUsageServerAuth, now, ""},
		{"its other address", ca, server, "fd00::7", x509.ExtKeyUsageServerAuth, now, ""},
		{"another name", ca, server, "host.example.org", x509.ExtKeyUsageServerAuth, now, "not host.example.org"},
		{"a server as client", ca, server, "", x509.ExtKeyUsageClientAuth, now, "incompatible key usage"},
		{"a client", ca, client, "host.example.org", x509.ExtKeyUsageClientAuth, now, ""},
		{"a client as server", ca, client, "host.example.org", x509.ExtKeyUsageServerAuth, now, "incompatible key usage"},
		{"another authority", foreign, client, "", x509.ExtKeyUsageClientAuth, now, "unknown authority"},
		{"expired", ca, server, "", x509.ExtKeyUsageServerAuth, now.Add(2 * time.Hour), "expired"},
		{"a clock that is late", ca, server, "", x509.ExtKeyUsageServerAuth, now.Add(-skew / 2), ""},
		{"no longer than the authority", ca, client, "", x509.ExtKeyUsageClientAuth, now.Add(49 * time.Hour), "expired"},
	} {
		err := verify(t, c.ca, c.p, c.name, c.usage, c.at)
		if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
			t.Errorf("%s: error %v, want %q", c.what, err, c.wrong)
		}
	}
	// The certificate itself says so, too: who looks at it alone renews it in time.
	if pair, err := tls.X509KeyPair(client.Cert, client.Key); err != nil || pair.Leaf.NotAfter.After(a.cert.NotAfter) {
		t.Errorf("valid until %v, %v; the authority until %v", pair.Leaf.NotAfter, err, a.cert.NotAfter)
	}
}

func TestRefuses(t *testing.T) {
	a, ca, _ := NewAuthority("an authority", time.Hour)
	_, other, _ := NewAuthority("another", time.Hour)
	server, _ := a.Issue(Server, []string{"localhost"}, time.Hour)
	for what, p := range map[string]Pair{
		"another's key": {ca.Cert, other.Key}, "no authority": server, "nothing": {}, "a key twice": {ca.Key, ca.Key},
	} {
		if _, err := Load(p); err == nil {
			t.Errorf("%s was taken for an authority", what)
		}
	}
	if _, err := a.Issue(Client, nil, time.Hour); err == nil {
		t.Error("a certificate for nobody")
	}
	late, _, _ := NewAuthority("an authority", -time.Second)
	if _, err := late.Issue(Client, []string{"host"}, time.Hour); err == nil {
		t.Error("an authority that has expired signs")
	}
}
