package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The addresses are those of the recipes in docs/guide/standby.md.
const (
	moving  = "192.0.2.9"
	service = moving + ":2049"
)

// network has name spaces on one bridge: "a" and "b" for hosts, "client" for the client. Each has an interface eth0.
type network struct {
	t      *testing.T
	prefix string
}

var places = []string{"a", "b", "client"}

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("makes network name spaces: needs root")
	}
	for _, program := range []string{"ip", "arping"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here (Debian's iproute2, iputils-arping)", program)
		}
	}
	n := &network{t, fmt.Sprintf("tansy%d-", os.Getpid())}
	if out, err := exec.Command("ip", "netns", "add", n.space("switch")).CombinedOutput(); err != nil {
		t.Skipf("network name spaces cannot be made here: %s", out)
	}
	t.Cleanup(func() { n.run("ip", "netns", "del", n.space("switch")) })
	n.in("switch", "ip", "link", "add", "br0", "type", "bridge")
	n.in("switch", "ip", "link", "set", "br0", "up")
	for i, place := range places {
		n.run("ip", "netns", "add", n.space(place))
		t.Cleanup(func() { n.run("ip", "netns", "del", n.space(place)) })
		n.in("switch", "ip", "link", "add", "to-"+place, "type", "veth", "peer", "name", "eth0", "netns", n.space(place))
		n.in("switch", "ip", "link", "set", "to-"+place, "master", "br0", "up")
		n.in(place, "ip", "link", "set", "lo", "up")
		n.in(place, "ip", "link", "set", "eth0", "up")
		n.in(place, "ip", "address", "add", fmt.Sprintf("192.0.2.%d/24", i+1), "dev", "eth0")
	}
	return n
}

func (n *network) space(place string) string { return n.prefix + place }

// run runs a command, which has to succeed.
func (n *network) run(name string, args ...string) string {
	n.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		n.t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// in runs a command at a place.
func (n *network) in(place, name string, args ...string) string {
	n.t.Helper()
	cmd := n.command(place, name, args...)
	return n.run(cmd.Args[0], cmd.Args[1:]...)
}

// command is one that runs at a place.
func (n *network) command(place, name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.space(place), name}, args...)...)
}

// link cuts a place off, or connects it again.
func (n *network) link(place, state string) {
	n.in("switch", "ip", "link", "set", "to-"+place, state)
}

// dial connects from the client's place to the moving address. The connection ends when nobody there knows of it, or
// nobody is there.
func (n *network) dial() (net.Conn, error) {
	space, err := os.Open("/run/netns/" + n.space("client"))
	if err != nil {
		return nil, err
	}
	defer space.Close()
	type result struct {
		c   net.Conn
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and the thread ends with this: nobody else may have it in that name space
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, err}
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Second,
			Interval: time.Second, Count: 3}}
		c, err := d.DialContext(ctx, "tcp", service)
		done <- result{c, err}
	}()
	r := <-done
	return r.c, r.err
}
