package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tansyfs "tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/test/kit/nfsclient"
	"tansy/test/kit/tlstest"
)

// mustCert runs `tansy cert`.
func mustCert(t *testing.T, args ...string) {
	t.Helper()
	if code, said := tool(t, append([]string{"cert"}, args...)...); code != exitOK {
		t.Fatalf("tansy cert %v: exit code %d, %s", args, code, said)
	}
}

// certs makes an authority, a server called localhost, and a client called host.example.org.
func certs(t *testing.T) (dir string) {
	dir = filepath.Join(t.TempDir(), "tls")
	mustCert(t, "ca", "--dir", dir)
	mustCert(t, "server", "localhost", "127.0.0.1", "--dir", dir)
	mustCert(t, "client", "host.example.org", "--dir", dir)
	return dir
}

// knows is the client's side, by the files in a directory.
func knows(t *testing.T, dir string, certified bool) *tls.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ca-cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", NextProtos: []string{"sunrpc"}}
	c.RootCAs.AppendCertsFromPEM(text)
	if certified {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "host.example.org-cert.pem"),
			filepath.Join(dir, "host.example.org-key.pem"))
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// TestCert: keys are for their owner alone, and nothing is overwritten.
func TestCert(t *testing.T) {
	dir := certs(t)
	read := func() (all string) {
		for _, name := range []string{"ca", "localhost", "host.example.org"} {
			for kind, mode := range map[string]os.FileMode{"-cert.pem": 0o644, "-key.pem": 0o600} {
				file := filepath.Join(dir, name+kind)
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if got := info.Mode().Perm(); got&^mode != 0 {
					t.Errorf("%s has mode %o", file, got)
				}
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				all += string(text)
			}
		}
		return all
	}
	before := read()
	for _, args := range [][]string{
		{"ca"}, {"server", "localhost"}, {"client", "localhost"}, {"client", "host.example.org", "other"},
	} {
		code, _, errs := saying(t, append(append([]string{"cert"}, args...), "--dir", dir)...)
		if code != exitFailure || !strings.Contains(errs, "is there already, and is not overwritten") {
			t.Errorf("tansy cert %v: exit code %d, %s", args, code, errs)
		}
	}
	if after := read(); len(after) != len(before) {
		t.Error("files have changed")
	}
	// A key without its certificate is kept, too, and none is left behind.
	key, cert := filepath.Join(dir, "new-key.pem"), filepath.Join(dir, "new-cert.pem")
	for _, there := range []string{key, cert} {
		writeFile(t, there, "mine")
		if code, _, _ := saying(t, "cert", "client", "new", "--dir", dir); code != exitFailure {
			t.Errorf("exit code %d", code)
		}
		if text, _ := os.ReadFile(there); string(text) != "mine" {
			t.Errorf("%s was overwritten", there)
		}
		os.Remove(there)
	}
	for _, left := range []string{key, cert} {
		if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left behind: %v", left, err)
		}
	}
}

// TestServeTLS: the files that `tansy cert` makes let clients in by xprtsec, and by the names in them. SIGHUP has files
// read again. What the file of exports asks for and is not there is warned of.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir, other := certs(t), certs(t)
	file := filepath.Join(dir, "exports")
	writeFile(t, file, "/ *(rw,insecure,no_root_squash,xprtsec=tls:mtls)\n/named dns:*.example.org(rw,insecure)\n")
	serve := []string{"--volume", filepath.Join(dir, "v.img"), "--size", "8M", "--mode", "777", "--exports", file,
		"--tls-cert", filepath.Join(dir, "localhost-cert.pem"), "--tls-key", filepath.Join(dir, "localhost-key.pem")}
	p := startServe(t, append(serve, "--tls-client-ca", filepath.Join(dir, "ca-cert.pem"),
		"--status", "127.0.0.1:0", "--status-tls")...)
	mount := func(c *tls.Config, path string) (*nfsclient.Client, error) {
		nc, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		secure, err := tlstest.Start(nc, nfs3.Program, nfs3.Version, c)
		if err != nil {
			nc.Close()
			return nil, err
		}
		return nfsclient.MountDir(secure, path)
	}
	mkdir := func(c *nfsclient.Client, name string) error {
		_, err := c.Mkdir(&tansyfs.Cred{}, c.Root(), []byte(name), &tansyfs.SetAttr{})
		return err
	}
	c, err := mount(knows(t, dir, false), "/")
	if err != nil {
		t.Fatal(err)
	}
	if err := mkdir(c, "named"); err != nil {
		t.Fatal(err)
	}
	clear, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer clear.Close()
	if err := mkdir(clear, "no"); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("in the clear: %v", err)
	}
	if _, err := mount(knows(t, dir, true), "/named"); err != nil {
		t.Errorf("by name: %v", err)
	}
	if _, err := mount(knows(t, other, false), "/"); err == nil {
		t.Error("the server is known by an authority that it does not have")
	}
	watch := func(from string) (int, string) {
		var all strings.Builder
		top := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
		top.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join([]string{
			"top", p.status, "--once", "--ca", filepath.Join(from, "ca-cert.pem")}, "\n"))
		top.Stdout, top.Stderr = &all, &all
		top.Run()
		return top.ProcessState.ExitCode(), all.String()
	}
	if code, said := watch(dir); code != exitOK || !strings.HasPrefix(p.status, "https://") {
		t.Errorf("tansy top %s: exit code %d\n%s", p.status, code, said)
	}
	if code, said := watch(other); code != exitFailure || !strings.Contains(said, "certificate") {
		t.Errorf("tansy top, which knows another authority: exit code %d\n%s", code, said)
	}
	for _, path := range []string{"conform", "bench"} {
		args := []string{path, p.addr, "--tls", "--ca", filepath.Join(dir, "ca-cert.pem")}
		more := map[string][]string{
			"conform": {"--run", "null/"}, "bench": {"getattr", "--time", "100ms", "--clients", "1", "--file", "1M"},
		}[path]
		tool := exec.Command(os.Args[0], "-test.run=^TestHelperTansy$")
		tool.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(append(args, more...), "\n"))
		if out, err := tool.CombinedOutput(); err != nil {
			t.Errorf("tansy %s through TLS: %v\n%s", path, err, out)
		}
	}
	for _, name := range []string{"localhost-cert.pem", "localhost-key.pem", "ca-cert.pem"} {
		text, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(dir, name), string(text))
	}
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says(t, "level=INFO msg=reloaded what="+filepath.Join(dir, "localhost-cert.pem"))
	if _, err := mount(knows(t, other, true), "/named"); err != nil {
		t.Errorf("by the files read again: %v", err)
	}
	if err := mkdir(c, "later"); err != nil {
		t.Errorf("a connection from before: %v", err)
	}
	p.stop(t)
	p = startServe(t, serve...)
	p.says(t, file+": /named is exported to dns:*.example.org over connections that there are not without --tls-client-ca")
	p.stop(t)
	p = startServe(t, serve[:8]...)
	p.says(t, file+": / is exported to * over connections that there are not without --tls-cert and --tls-key")
	p.stop(t)
}
