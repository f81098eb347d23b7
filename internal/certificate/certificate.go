// Package certificate makes certificates for RPC-with-TLS (RFC 9289): an authority, and what it signs for servers and
// clients. Keys are ECDSA on P-256. Nothing here touches a file.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"
)

// Pair is a certificate with its key, both as PEM. The key is PKCS #8, without a password.
type Pair struct{ Cert, Key []byte }

// Authority signs certificates. It may be used concurrently.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Role is what a certificate is for.
type Role int

const (
	Server Role = iota
	Client
)

// Purposes of RFC 9289, section 5.2.1, for those who look for them: who does not looks for those of the web.
var rpcPurpose = map[Role]asn1.ObjectIdentifier{
	Client: {1, 3, 6, 1, 5, 5, 7, 3, 33},
	Server: {1, 3, 6, 1, 5, 5, 7, 3, 34},
}

// skew is how long ago a new certificate begins to be valid: the clocks of others may be late.
const skew = time.Hour

// NewAuthority makes an authority that is valid so long from now on.
func NewAuthority(name string, valid time.Duration) (*Authority, Pair, error) {
	c := template(name, valid)
	c.IsCA, c.MaxPathLenZero = true, true
	c.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	pair, err := (&Authority{cert: c}).sign(c)
	if err != nil {
		return nil, Pair{}, err
	}
	a, err := Load(pair)
	return a, pair, err
}

// Load takes an authority that was made before.
func Load(p Pair) (*Authority, error) {
	cert, _ := pem.Decode(p.Cert)
	key, _ := pem.Decode(p.Key)
	if cert == nil || key == nil {
		return nil, errors.New("no certificate and key of an authority (PEM)")
	}
	c, err := x509.ParseCertificate(cert.Bytes)
	if err != nil {
		return nil, err
	}
	k, err := x509.ParsePKCS8PrivateKey(key.Bytes)
	if err != nil {
		return nil, err
	}
	secret, ok := k.(*ecdsa.PrivateKey)
	if !ok || !secret.PublicKey.Equal(c.PublicKey) {
		return nil, errors.New("the key is not that of the authority's certificate")
	}
	if !c.IsCA {
		return nil, errors.New("the certificate is not that of an authority")
	}
	return &Authority{c, secret}, nil
}

// Issue makes a certificate of a role for names, which are those of hosts or IP addresses; the first is the common
// name. It is not valid for longer than the authority is.
func (a *Authority) Issue(role Role, names []string, valid time.Duration) (Pair, error) {
	if len(names) == 0 {
		return Pair{}, errors.New("a certificate needs a name")
	}
	if time.Now().After(a.cert.NotAfter) {
		return Pair{}, fmt.Errorf("the authority's certificate has expired: %v", a.cert.NotAfter)
	}
	c := template(names[0], valid)
	if c.NotAfter.After(a.cert.NotAfter) {
		c.NotAfter = a.cert.NotAfter
	}
	c.KeyUsage = x509.KeyUsageDigitalSignature
	web := x509.ExtKeyUsageServerAuth
	if role == Client {
		web = x509.ExtKeyUsageClientAuth
	}
	c.ExtKeyUsage = []x509.ExtKeyUsage{web}
	c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{rpcPurpose[role]}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, n)
		}
	}
	return a.sign(c)
}

func template(name string, valid time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: now.Add(-skew), NotAfter: now.Add(valid),
	}
}

// sign makes a key, and has the authority sign c for it; the authority without a key signs itself.
func (a *Authority) sign(c *x509.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	by := a.key
	if by == nil {
		by = key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), by)
	if err != nil {
		return Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}
