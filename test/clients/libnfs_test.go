package clients

import (
	"bytes"
	"fmt"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tansy/fs"
)

// TestLibnfs has the programs of libnfs, a client in user space that media players and
// hypervisors use, copy, list and print files. It mounts what is above a file, so
// that one in the root directory has two slashes in its URL.
func TestLibnfs(t *testing.T) {
	for _, program := range []string{"nfs-cp", "nfs-ls", "nfs-cat"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no libnfs-utils here: ", err)
		}
	}
	v := newVolume(t)
	_, port, err := net.SplitHostPort(v.addr)
	if err != nil {
		t.Fatal(err)
	}
	url := func(path string) string {
		return fmt.Sprintf("nfs://127.0.0.1/%s?nfsport=%s&mountport=%s", path, port, port)
	}
	run := func(name string, args ...string) []byte {
		t.Helper()
		var errs bytes.Buffer
		c := exec.CommandContext(t.Context(), name, args...)
		c.Stderr = &errs
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, &errs)
		}
		return out
	}
	mode := uint32(0o755)
	c := v.mount()
	if _, err := c.Mkdir(root, c.Root(), []byte("sub"), &fs.SetAttr{Mode: &mode}); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 3_000_000)
	rand.New(rand.NewSource(seed(t))).Read(data)
	local := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(local, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/top", "sub/below"} {
		run("nfs-cp", local, url(path))
		if got := run("nfs-cat", url(path)); !bytes.Equal(got, data) {
			t.Errorf("nfs-cat of %s gives %d bytes, and not those that were copied there", path, len(got))
		}
		back := filepath.Join(t.TempDir(), "back") // it has to be a new file
		run("nfs-cp", url(path), back)
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, data) {
			t.Errorf("nfs-cp of %s brings back %d bytes, %v", path, len(got), err)
		}
	}
	list := string(run("nfs-ls", "-R", url("")))
	for _, want := range []string{" 3000000 top\n", " sub\n", " 3000000 sub/below\n"} {
		if !strings.Contains(list, want) {
			t.Errorf("nfs-ls does not list %q:\n%s", want, list)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "nfs-cat", url("/none")).CombinedOutput(); err == nil || !strings.Contains(string(out), "NOENT") {
		t.Errorf("nfs-cat of a file that is not there: %v\n%s", err, out)
	}
	v.check()
}
