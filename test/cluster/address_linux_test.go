package cluster

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var takeovers = flag.Int("takeovers", 0, "how often a server loses the volume, in each of the ways in turn")

// recipe returns what the expression's only group finds in a document.
func recipe(t *testing.T, file, expression string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(expression).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatalf("no %s in %s", expression, file)
	}
	return m[1]
}

// needTakeovers skips tests that take half a minute and more.
func needTakeovers(t *testing.T) {
	t.Helper()
	if *takeovers == 0 {
		t.Skip("without -takeovers")
	}
}

// TestAddress: the address moves by --on-active and a command after the end, as docs/guide/standby.md has them.
func TestAddress(t *testing.T) {
	needTakeovers(t)
	c := newCluster(t)
	c.flags = []string{"--on-active", recipe(t, "docs/guide/standby.md", `--on-active '([^']+)'`)}
	c.post = recipe(t, "docs/guide/standby.md", "ExecStopPost=-([^`]+)`")
	c.takeovers()
}

// TestKeepalived: the address moves by VRRP, to where a server says that it serves.
func TestKeepalived(t *testing.T) {
	needTakeovers(t)
	if _, err := exec.LookPath("keepalived"); err != nil {
		t.Skip("no keepalived here")
	}
	c := newCluster(t)
	c.flags = []string{"--status", "127.0.0.1:9049"}
	// It runs no programs from folders that others may write to, such as /tmp.
	dir, err := os.MkdirTemp("/run", "tansy-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c.run("cp", c.tansy, dir)
	text, err := os.ReadFile("../../packaging/keepalived.conf")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "keepalived.conf")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/local/bin", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"a", "b"} {
		c.in(place, "keepalived", "--config-test", "--use-file", file)
		pid := filepath.Join(dir, place)
		k := c.command(place, "keepalived", "--dont-fork", "--log-console", "--use-file", file, "--pid", pid+".pid",
			"--vrrp_pid", pid+".vrrp")
		if testing.Verbose() {
			k.Stdout, k.Stderr = os.Stderr, os.Stderr
		}
		if err := k.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			k.Process.Signal(os.Interrupt)
			k.Wait()
		})
	}
	c.takeovers()
}

// takeovers has the volume go from one place to the other under load: no client sees an error, and nothing is lost.
func (c *cluster) takeovers() {
	serving := c.launch("a", "--standby")
	serving.until(c.t, serving.serves)
	standby := c.launch("b", "--standby")
	c.underLoad(*takeovers, func(f fault) { serving, standby = c.succeed(serving, standby, f) })
	standby.stop(c.t)
	serving.stop(c.t)
	c.run(c.tansy, "check", "--data", c.volume)
}
