package server_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/nfsclient"
)

// What the example starts serves, and has closed the volume when it is stopped.
func TestExampleServes(t *testing.T) {
	image := filepath.Join(t.TempDir(), "data.img")
	d, err := disk.CreateFile(image, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fs.Mkfs(d, fs.MkfsOptions{Zeroed: true}), d.Close()); err != nil {
		t.Fatal(err)
	}
	for round, how := range []error{nil, fs.ErrExist} {
		addr, stop, err := serveImage(image, "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c, err := nfsclient.Mount(addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mkdir(&fs.Cred{}, c.Root(), []byte("d"), &fs.SetAttr{}); err != how {
			t.Errorf("round %d: MKDIR: %v, want %v", round, err, how)
		}
		c.Close()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// The example runs in a module of somebody else's, which has this one by a replace directive, as README says.
func TestOtherModule(t *testing.T) {
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for from, to := range map[string]string{"example_test.go": "example_test.go", "../../go.sum": "go.sum"} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"mod", "init", "example.org/mine"},
		{"mod", "edit", "-require=tansy@v0.0.0", "-replace=tansy=" + here},
		{"test", "-mod=mod", "-v", "-run=^Example$", "."},
	} {
		c := exec.Command("go", args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
}
