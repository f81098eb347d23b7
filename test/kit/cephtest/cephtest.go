// Package cephtest makes a Ceph cluster of Debian's packages on loopback for a test, by test/ceph/cluster, starts
// servers on its volume, and has parts of it fail.
package cephtest

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var wanted = flag.Bool("ceph", false, "run the tests on a Ceph cluster, which they make of Debian's ceph-mon, ceph-mgr, ceph-osd, ceph-common, python3-rbd, nbdkit and nbdkit-plugin-python")

var wantedHelper = flag.String("helper", "both", "with -ceph: the helper of the servers, `python|c|both`: both has them take turns. The one in C is compiled, by gcc and Debian's nbdkit-plugin-dev, librbd-dev and librados-dev")

// watch is after how long without a word from the owner of a lock Ceph takes it for dead, in seconds. Its default is
// 30.
const watch = "8"

// Cluster is a Ceph cluster with an image.
type Cluster struct {
	Volume string // the image, as tansy calls it

	t       testing.TB // at whose end it ends
	script  string
	dir     string
	helpers []string // those of servers in turn, as package rbd wants them chosen
	servers int      // so many were started
}

// Start makes a cluster. Without the flag -ceph the test is skipped; with it, everything that it needs has to be there.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if !*wanted {
		t.Skip("only with -ceph: it takes minutes, and Ceph")
	}
	for _, program := range []string{"ceph-mon", "ceph-mgr", "ceph-osd", "rbd", "nbdkit"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("../ceph/cluster")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{t: t, script: script, dir: t.TempDir()}
	if *wantedHelper != "c" {
		c.helpers = append(c.helpers, "python")
	}
	if *wantedHelper != "python" {
		out, err := exec.Command("../../disk/rbd/plugin/build", t.TempDir()).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		c.helpers = append(c.helpers, strings.TrimSpace(string(out)))
	}
	query := url.Values{"id": {"tansy"}, "conf": {c.path("ceph.conf")}, "keyring": {c.path("tansy.keyring")}}
	c.Volume = "rbd:tansy/vol?" + query.Encode()
	t.Cleanup(func() { c.Run(t, c.script, "down", c.dir) })
	t.Setenv("WATCH", watch)
	begin := time.Now()
	c.Run(t, c.script, "up", c.dir)
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("the cluster is up after %v", time.Since(begin).Round(time.Second/10))
	return c
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// Run runs a command that knows the cluster, and returns what it printed. That it fails is an error of the test.
func (c *Cluster) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CEPH_CONF="+c.path("ceph.conf"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// Kill kills a part of the cluster: mon.a, or osd.0 to osd.2.
func (c *Cluster) Kill(t testing.TB, part string) {
	t.Helper()
	pid, err := c.pid(part)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	// It is no child of ours; whose it is may never ask for it.
	for text := []byte{0}; len(text) > 0; time.Sleep(10 * time.Millisecond) {
		text, _ = os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	}
}

func (c *Cluster) pid(part string) (int, error) {
	text, err := os.ReadFile(c.path("run/" + part + ".pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// Restart starts a part that was killed.
func (c *Cluster) Restart(t testing.TB, part string) {
	t.Helper()
	kind, id, _ := strings.Cut(part, ".")
	c.Run(t, "ceph-"+kind, "-c", c.path("ceph.conf"), "-i", id)
}

// Blocklist is how many addresses are on the blocklist.
func (c *Cluster) Blocklist(t testing.TB) (n int) {
	t.Helper()
	for line := range strings.Lines(c.Run(t, "ceph", "osd", "blocklist", "ls", "--connect-timeout", "60")) {
		if strings.Contains(line, ":") {
			n++
		}
	}
	return n
}

// Build makes the program.
func Build(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "tansy")
	if out, err := exec.Command("go", "build", "-o", bin, "tansy/cmd/tansy").CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("build: %w\n%s", err, out))
	}
	return bin
}
