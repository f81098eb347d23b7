package main

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tansy/test/kit/nfsclient"
)

func TestDescriptorsBoundConnections(t *testing.T) {
	for _, x := range []struct {
		conns       int
		descriptors uint64
		needed      int
		want        int
	}{
		{1024, math.MaxUint64, 100, 1024},
		{1024, 1124, 100, 1024},
		{1024, 1123, 100, 1023},
		{10, 1024, 100, 10},
		{1024, 120, 100, 30}, // a fourth
		{1024, 60, 100, 15},
		{1024, 0, 100, 1},
	} {
		l := limits{conns: x.conns}
		warning := l.fit(x.descriptors, x.needed)
		if l.conns != x.want || (warning != "") != (x.want < x.conns) {
			t.Errorf("%d connections with %d descriptors, of which %d are needed: %d, want %d; %q",
				x.conns, x.descriptors, x.needed, l.conns, x.want, warning)
		}
	}
	if n := descriptorsNeeded(3, true, false, true); n != 64+3*16+2*64 {
		t.Errorf("%d are needed for three volumes and two services", n)
	}
}

// A process with few descriptors, and more idle connections than these: it says how many it takes, lets new clients
// in, and answers probes.
func TestIdleConnectionsLeaveDescriptors(t *testing.T) {
	t.Parallel()
	const limit, idle = 256, 300
	p := newServe("--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--status", "127.0.0.1:0")
	limited := fmt.Sprint("ulimit -n ", limit, " && exec \"$0\" \"$@\"")
	p.cmd.Path, p.cmd.Args = "/bin/sh", append([]string{"sh", "-c", limited}, p.cmd.Args...)
	p.start(t)
	for i := range idle {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%8))}}
		c, err := d.Dial("tcp", p.addr)
		if err != nil {
			t.Skip("no other addresses of this host: ", err)
		}
		defer c.Close()
	}
	client := http.Client{Timeout: 10 * time.Second}
	for range 3 {
		c, err := nfsclient.Mount(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r, err := client.Get(p.status + "healthz")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
	}
	p.stop(t)
	const says = "at most 112 connections at a time, not 1024"
	if log := p.stderr.String(); !strings.Contains(log, says) || strings.Contains(log, "accept failed") {
		t.Errorf("the log:\n%s", log)
	}
}
