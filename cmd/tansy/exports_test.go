package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	tansyfs "tansy/fs"
	"tansy/test/kit/nfsclient"
)

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestExportsCheck(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good"), filepath.Join(dir, "bad")
	writeFile(t, good, "/ 10.0.0.0/8(rw) *.example.org\n")
	writeFile(t, bad, "/ *(rw)\n/a b(rw,sec=krb5) c(nix)\n")
	for _, x := range []struct {
		args []string
		want int
	}{
		{[]string{"check", good}, exitOK},
		{[]string{"check", os.DevNull}, exitOK},
		{[]string{"check", bad}, exitFailure},
		{[]string{"check", filepath.Join(dir, "none")}, exitUsage},
		{[]string{"check", dir}, exitUsage},
		{[]string{"check"}, exitUsage},
		{[]string{"look", good}, exitUsage},
		{[]string{"--help"}, exitOK},
	} {
		if got := run(append([]string{"exports"}, x.args...)); got != x.want {
			t.Errorf("tansy exports %v: exit code %d, want %d", x.args, got, x.want)
		}
	}
	_, err := (&exportsSource{name: bad, volumes: []string{"/"}, tls: new(protection)}).read()
	if err == nil || !strings.Contains(err.Error(), bad+":2:9: sec=krb5") ||
		!strings.Contains(err.Error(), bad+`:2:21: unknown option "nix"`) {
		t.Errorf("mistakes are told as\n%v", err)
	}
	img := filepath.Join(dir, "v.img")
	for want, args := range map[int][]string{
		exitFailure: {"--exports", bad},
		exitUsage:   {"--exports", good, "--root-squash"},
	} {
		if got := run(append([]string{"serve", "--volume", img, "--create", "--listen", "127.0.0.1:0"}, args...)); got != want {
			t.Errorf("tansy serve %v: exit code %d, want %d", args, got, want)
		}
	}
	if _, err := os.Stat(img); !errors.Is(err, os.ErrNotExist) {
		t.Error("a volume was made for exports that cannot be used")
	}
}

// What changes nothing in a file is told once, however often it is read, and is no mistake.
func TestExportsWarnings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "exports")
	writeFile(t, file, "/ *(rw,fsid=0,async)\n")
	var told []string
	warn := func(err error) { told = append(told, err.Error()) }
	s := exportsSource{file, []string{"/"}, warn, map[string]bool{}, new(protection)}
	for range 2 {
		if tables, err := s.read(); err != nil || len(tables) != 1 {
			t.Error(tables, err)
		}
		writeFile(t, file, "# a line more\n/ *(rw,fsid=0,async)\n")
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], file+":1:8: fsid=0 changes nothing here") ||
		!strings.HasPrefix(told[1], file+":1:15: async changes nothing here") {
		t.Errorf("told: %q", told)
	}
	writeFile(t, file, "/ *(rw,crossmnt,async)\n")
	if _, err := s.read(); err != nil || len(told) != 3 || !strings.Contains(told[2], "crossmnt changes nothing here") {
		t.Errorf("told: %q, %v", told, err)
	}
	code, _, errs := saying(t, "exports", "check", file)
	want := "tansy exports: warning: " + file + ":1:8: crossmnt changes nothing here"
	if code != exitOK || !strings.HasPrefix(errs, want) || strings.Count(errs, "\n") != 2 {
		t.Errorf("exit code %d, %q, want 0 and %q", code, errs, want)
	}
}

// What is exported and is not there is told with its line, at the start and when the file is read again.
func TestExportsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "exports")
	writeFile(t, file, "/ *(rw,insecure)\n\n/none \\\n  *(ro)\n/none/below *(ro)\n")
	img := filepath.Join(dir, "v.img")
	p := startServe(t, "--volume", img, "--size", "8M", "--mode", "777", "--exports", file)
	const says = " is not in the volume "
	p.says(t, file+":3: /none"+says+img, file+":5: /none/below"+says+img)
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"none", "other"} {
		if _, err := c.Mkdir(&tansyfs.Cred{}, c.Root(), []byte(name), &tansyfs.SetAttr{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Create(&tansyfs.Cred{}, c.Root(), []byte("file"), tansyfs.Guarded, &tansyfs.SetAttr{}, 0); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, "/ *(rw,insecure)\n/other *(ro)\n/file *(ro)\n/file/below *(ro)\n")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	const no = " is no directory of the volume "
	p.says(t, file+":3: /file"+no+img, file+":4: /file/below"+no+img, "level=INFO msg=reloaded")
	p.stop(t)
	if log := p.stderr.String(); strings.Contains(log, "/other"+says) || strings.Count(log, "level=WARN") != 4 {
		t.Error(log)
	}
}

// A file that exports nothing keeps everybody out, and is warned of.
func TestNothingExported(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--exports", os.DevNull)
	p.stop(t)
	want := os.DevNull + " exports nothing of the volume at /: nobody may mount it"
	if !strings.Contains(p.stderr.String(), want) {
		t.Errorf("no %q in\n%s", want, &p.stderr)
	}
}

// SIGHUP reads the file again, and what cannot be read changes nothing.
func TestExportsReload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "exports")
	writeFile(t, file, "/ 127.0.0.1(ro,insecure)\n")
	p := startServe(t, "--volume", filepath.Join(dir, "v.img"), "--size", "8M", "--mode", "777", "--exports", file)
	c, err := nfsclient.Mount(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mkdir := func(name string) error {
		_, err := c.Mkdir(&tansyfs.Cred{}, c.Root(), []byte(name), &tansyfs.SetAttr{})
		return err
	}
	if err := mkdir("a"); err != tansyfs.ErrROFS {
		t.Errorf("MKDIR in ro: %v", err)
	}
	hangup := func(text, says string) {
		t.Helper()
		writeFile(t, file, text)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		p.says(t, says)
	}
	hangup("/ 127.0.0.1(rw,insecure)\n", "level=INFO msg=reloaded")
	if err := mkdir("a"); err != nil {
		t.Errorf("MKDIR in rw: %v", err)
	}
	hangup("/ 127.0.0.1(ro\n", "exports:1:15: the options of 127.0.0.1 have no closing bracket")
	if err := mkdir("b"); err != nil {
		t.Errorf("MKDIR after a bad file: %v", err)
	}
	hangup("/ 127.0.0.2\n", "reloaded")
	if err := mkdir("c"); err != tansyfs.ErrAcces {
		t.Errorf("MKDIR by a stranger: %v", err)
	}
	p.stop(t)
}

// Without exports the signal ends nothing.
func TestHangup(t *testing.T) {
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.says(t, "nothing to reload")
	p.stop(t)
}

// A server without rules that others reach says so.
func TestWarnOpen(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1": false, "::1": false, "0.0.0.0": true, "::": true, "192.0.2.1": true} {
		var b strings.Builder
		warnOpen(slog.New(slog.NewTextHandler(&b, nil)), &net.TCPAddr{IP: net.ParseIP(addr), Port: 2049})
		if got := strings.Contains(b.String(), "--exports"); got != want {
			t.Errorf("%s: warned %v", addr, got)
		}
	}
}

// With --manage-gids a user that this host does not know is in no supplementary group.
func TestManageGids(t *testing.T) {
	for _, manage := range []bool{false, true} {
		p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--owner", "0:4000000001", "--mode", "070", "--manage-gids="+fmt.Sprint(manage))
		c, err := nfsclient.Mount(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Mkdir(&tansyfs.Cred{UID: 4000000000, GID: 4000000002, GIDs: []uint32{4000000001}}, c.Root(), []byte("d"), &tansyfs.SetAttr{})
		if manage && err != tansyfs.ErrAcces || !manage && err != nil {
			t.Errorf("--manage-gids=%v: %v", manage, err)
		}
		c.Close()
		p.stop(t)
	}
}
