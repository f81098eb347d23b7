// Package release holds the test that packaging/release gives the same bytes for a commit, wherever it is run.
package release

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var runIt = flag.Bool("run-it", false, "build a release twice: some minutes, and nfpm from the module proxy")

// TestSameBytes builds the release in two clones. The second has a tag, other permissions, and an environment that says
// otherwise of all that may be seen in what is built.
func TestSameBytes(t *testing.T) {
	if !*runIt {
		t.Skip("without -run-it")
	}
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "elsewhere", "second")
	const identity = `git -c user.name=Nobody -c user.email=nobody@localhost`
	sh(t, nil, `mkdir "$1" && (cd ../.. && git ls-files -z -co --exclude-standard | tar --null -T - -c) | tar -x -C "$1" &&
		cd "$1" && git init -q && git add -A && `+identity+` commit -q -m "Test a release"`, first)
	sh(t, nil, `umask 077 && git clone -q "$1" "$2" && cd "$2" && `+
		identity+` tag -a v1.2.3 -m "Tansy 1.2.3"`, first, second)
	build := func(clone, umask string, env ...string) string {
		env = append(env, "ARCHITECTURES=amd64", "DIST="+filepath.Join(clone, "dist"))
		sh(t, env, `umask "$2" && "$1/packaging/release" 1.2.3`, clone, umask)
		sums, err := os.ReadFile(filepath.Join(clone, "dist", "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		return string(sums)
	}
	one := build(first, "002")
	two := build(second, "077",
		"TMPDIR="+t.TempDir(), "LC_ALL=C.UTF-8", "TZ=Asia/Tokyo", "GOAMD64=v3", "GOFLAGS=-tags=netgo")
	if one != two {
		t.Errorf("the sums are\n%s\nand\n%s", one, two)
	}
	for _, name := range []string{"linux-amd64", "linux-amd64.tar.gz", "oci.tar", "1.2.3_amd64.deb"} {
		if !strings.Contains(one, name) {
			t.Errorf("the release has no %s: %s", name, one)
		}
	}
	commit := strings.TrimSpace(sh(t, nil, `git -C "$1" rev-parse HEAD`, first))
	said := sh(t, nil, `"$1/dist/tansy-1.2.3-linux-amd64" version`, first)
	want := regexp.MustCompile(`^tansy 1\.2\.3\nrevision ` + commit + ` of \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n`)
	if !want.MatchString(said) {
		t.Errorf("it does not say of which revision it is:\n%s", said)
	}
}

// sh runs a script with arguments and what is added to the environment, and returns its output.
func sh(t *testing.T, env []string, script string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "bash", append([]string{"-c", script, "-"}, args...)...)
	c.Env = append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
