package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tansy/test/kit/rbdtest"
)

// Exit codes of resource agents.
const (
	running       = 0
	failed        = 1
	unimplemented = 3
	notInstalled  = 5
	misconfigured = 6
	notRunning    = 7
)

// node runs resource agents, as Pacemaker does.
type node struct {
	c     *cluster
	place string
	dir   string // what agents keep there
}

func (c *cluster) node(place string) *node { return &node{c, place, c.t.TempDir()} }

// act has an agent do something, and returns its exit code.
func (n *node) act(agent, action string, parameters ...string) int {
	n.c.t.Helper()
	cmd := n.c.command(n.place, agent, action)
	cmd.Env = append(os.Environ(), "OCF_ROOT=/usr/lib/ocf", "OCF_RA_VERSION_MAJOR=1", "OCF_RA_VERSION_MINOR=0",
		"OCF_RESOURCE_INSTANCE="+filepath.Base(agent), "HA_RSCTMP="+n.dir)
	for _, p := range parameters {
		cmd.Env = append(cmd.Env, "OCF_RESKEY_"+p)
	}
	out, err := cmd.CombinedOutput()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		n.c.t.Fatal(err)
	}
	if testing.Verbose() {
		n.c.t.Logf("%s: %s %s: %d %s", n.place, filepath.Base(agent), action, cmd.ProcessState.ExitCode(), out)
	}
	return cmd.ProcessState.ExitCode()
}

// tansy has the agent do something with the server.
func (n *node) tansy(action string) int {
	n.c.t.Helper()
	agent, err := filepath.Abs("../../packaging/pacemaker/tansy")
	if err != nil {
		n.c.t.Fatal(err)
	}
	return n.act(agent, action, n.parameters()...)
}

func (n *node) parameters() []string {
	return []string{"binary=" + n.c.tansy, "volume=" + n.c.volume, "lease=1s", "options=--cache 32M",
		"log=" + n.dir + "/log"}
}

// address has Debian's agent do something with the moving address.
func (n *node) address(action string) int {
	n.c.t.Helper()
	return n.act(addressAgent, action, "ip="+moving, "cidr_netmask=24", "nic=eth0")
}

const addressAgent = "/usr/lib/ocf/resource.d/heartbeat/IPaddr2"

// pid is the process of the server.
func (n *node) pid() int {
	n.c.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.dir, "tansy-tansy.pid"))
	if err != nil {
		n.c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		n.c.t.Fatal(err)
	}
	return pid
}

func (n *node) want(what string, got, code int) {
	n.c.t.Helper()
	if got != code {
		n.c.t.Fatalf("%s at %s: exit code %d, want %d", what, n.place, got, code)
	}
}

func (n *node) start() {
	n.c.t.Helper()
	n.want("start", n.tansy("start"), running)
	n.want("start of the address", n.address("start"), running)
	n.want("monitor", n.tansy("monitor"), running)
}

func (n *node) stop() {
	n.c.t.Helper()
	n.want("stop of the address", n.address("stop"), running)
	n.want("stop", n.tansy("stop"), running)
	n.want("monitor", n.tansy("monitor"), notRunning)
}

func needAgents(t *testing.T) {
	if _, err := os.Stat(addressAgent); err != nil {
		t.Skip("no resource agents here (Debian's resource-agents)")
	}
}

// TestPacemaker: a server and the address are a group, which moves as Pacemaker has it move.
func TestPacemaker(t *testing.T) {
	needTakeovers(t)
	needAgents(t)
	c := newCluster(t)
	on, other := c.node("a"), c.node("b")
	t.Cleanup(func() { // also of a test that failed
		for _, n := range []*node{on, other} {
			n.tansy("stop")
		}
	})
	on.start()
	c.underLoad(*takeovers, func(f fault) {
		seen := notRunning // by monitor
		switch f.what {
		case "killed":
			syscall.Kill(on.pid(), syscall.SIGKILL)
		case "stopped":
			syscall.Kill(on.pid(), syscall.SIGSTOP)
			seen = failed
		case "host cut off":
			c.link(on.place, "down")
			rbdtest.Signal(t, c.images, image, syscall.SIGKILL)
			other.start() // nobody asks a node that is cut off
			on.want("monitor", on.tansy("monitor"), notRunning)
			on.stop()
			c.link(on.place, "up")
			on, other = other, on
			return
		default: // it is moved
			seen = running
		}
		on.want("monitor", on.tansy("monitor"), seen)
		on.stop()
		other.start()
		on, other = other, on
	})
	on.stop()
	c.run(c.tansy, "check", "--data", c.volume)
}

// TestAgent: Debian's own test finds no fault with the agent, and wrong parameters have the right exit codes.
func TestAgent(t *testing.T) {
	needAgents(t)
	for _, program := range []string{"ocf-tester", "xmllint"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here (Debian's resource-agents, libxml2-utils)", program)
		}
	}
	c := newCluster(t)
	n := c.node("a")
	for action, want := range map[string]int{
		"validate-all": running, "meta-data": running, "monitor": notRunning, "stop": running, "promote": unimplemented,
	} {
		n.want(action, n.tansy(action), want)
	}
	agent, _ := filepath.Abs("../../packaging/pacemaker/tansy")
	n.want("a file for a volume", n.act(agent, "validate-all", "binary="+c.tansy, "volume=v.img"), misconfigured)
	n.want("no volume", n.act(agent, "start", "binary="+c.tansy), misconfigured)
	n.want("no program", n.act(agent, "validate-all", "binary=/none", "volume="+c.volume), notInstalled)
	n.want("no such image", n.act(agent, "start", "binary="+c.tansy, "volume=rbd:pool/none", "log="+n.dir+"/log"), failed)

	// The test runs it as nobody, too, who may not look into a test's folder.
	dir, err := os.MkdirTemp("/run", "tansy-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	c.run("cp", agent, dir)
	c.run("chmod", "755", dir)
	args := []string{"-n", "tansy"}
	for _, p := range n.parameters() {
		args = append(args, "-o", p)
	}
	cmd := c.command("a", "ocf-tester", append(args, filepath.Join(dir, "tansy"))...)
	cmd.Env = append(os.Environ(), "HA_RSCTMP="+n.dir)
	out, err := cmd.CombinedOutput()
	if t.Logf("%s", out); err != nil {
		t.Error(err)
	}
}
