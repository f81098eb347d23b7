package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tansy/test/kit/hosttest"
)

// withFstab runs the program where /etc/fstab has these lines, in a mount namespace of its own.
func withFstab(t *testing.T, table string, args ...string) (int, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fstab")
	writeFile(t, file, table)
	script := hosttest.Apart + `mount --bind "$0" /etc/fstab && exec "$@" -test.run=^TestHelperTansy\$`
	ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	c := exec.CommandContext(ctx, "unshare", "-m", "sh", "-c", script, file, os.Args[0])
	c.Env = append(os.Environ(), "TANSY_ARGS="+strings.Join(args, "\n"))
	out, _ := c.CombinedOutput()
	return c.ProcessState.ExitCode(), string(out)
}

// Where a disk should be mounted, and is not, no volume is made in its place unless that is asked for.
func TestDiskNotMounted(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, for another /etc/fstab")
	}
	if _, err := os.Stat("/etc/fstab"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	try := exec.Command("unshare", "-m", "mount", "--bind", "/etc/fstab", "/etc/fstab")
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces here: %v %s", err, out)
	}
	img := filepath.Join(dir, "v.img")
	table := "UUID=1234 " + dir + " ext4 defaults,nofail 0 2\n"
	for _, args := range [][]string{
		{"mkfs", img, "--size", "8M"},
		{"mkfs", img, "--size", "8M", "--if-missing"},
		{"serve", "--listen", "127.0.0.1:0", "--volume", img, "--create", "--size", "8M"},
		{"serve", "--listen", "127.0.0.1:0", "--volume", img},
		{"mount", img, t.TempDir()},
	} {
		code, text := withFstab(t, table, args...)
		if code != exitFailure || !strings.Contains(text, dir+" is in /etc/fstab and is not mounted now") {
			t.Errorf("tansy %q: exit code %d, %s", args, code, text)
		}
		if made := slices.Contains(args, "--size"); made != strings.Contains(text, "--ignore-fstab") {
			t.Errorf("tansy %q: %s", args, text)
		}
		if left := names(t, dir); len(left) != 0 {
			t.Fatalf("tansy %q has made %v", args, left)
		}
	}
	const warning = " may not be the volume that is meant"
	code, text := withFstab(t, table, "mkfs", img, "--size", "8M", "--ignore-fstab")
	if code != exitOK || !strings.Contains(text, "warning: "+img+warning+": "+dir+" is in /etc/fstab") {
		t.Errorf("--ignore-fstab: exit code %d, %s", code, text)
	}
	// A volume that is there is served, with a warning.
	broken := filepath.Join(dir, "broken.img")
	writeFile(t, broken, strings.Repeat("no volume", 4096))
	link := filepath.Join(t.TempDir(), "link.img")
	if err := os.Symlink(broken, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{broken, link} {
		_, text = withFstab(t, table, "serve", "--listen", "127.0.0.1:0", "--volume", name)
		if !strings.Contains(text, name+warning) {
			t.Errorf("no warning of %s: %s", name, text)
		}
	}
}

// A volume in memory is made and served, and it is said that it will be lost.
func TestVolumeInMemory(t *testing.T) {
	dir := hosttest.Mount(t, "tmpfs", 50<<20)
	img := filepath.Join(dir, "v.img")
	const warning = "lies in memory (tmpfs)"
	if code, text := said(t, dir, "mkfs", img, "--size", "8M"); code != exitOK || strings.Count(text, warning) != 1 {
		t.Errorf("mkfs: exit code %d, %s", code, text)
	}
	for _, file := range []string{img, filepath.Join(dir, "new.img")} {
		p := startServe(t, "--volume", file, "--size", "8M")
		p.stop(t)
		if text := p.stderr.String(); strings.Count(text, warning) != 1 {
			t.Errorf("serve %s: %s", file, text)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "v.img")
	if inMemory(filepath.Dir(elsewhere)) {
		t.Skip("folders for tests are in memory themselves")
	}
	if code, text := said(t, dir, "mkfs", elsewhere, "--size", "8M"); code != exitOK || text != "" {
		t.Errorf("mkfs elsewhere: exit code %d, %s", code, text)
	}
}
