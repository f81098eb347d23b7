package main

import (
	"path/filepath"
	"strings"
	"testing"

	"tansy/test/kit/nfsclient"
)

func TestLimitsOutOfRange(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	for _, wrong := range []string{
		"max-connections=0", "max-connections-per-host=-1", "max-calls=0", "max-calls=x", "write-memory=1M", "reply-memory=2T",
		"idle-timeout=0s", "record-timeout=10", "reply-timeout=1ms", "crowded-timeout=-5s", "commit-interval=0s", "commit-interval=-1s",
		"max-connections=2000000", "max-calls=10001", "idle-timeout=9000h", "record-timeout=9000h", "crowded-timeout=61s",
		"commit-interval=61m",
	} {
		if code := run([]string{"serve", "--volume", img, "--" + wrong}); code != exitUsage {
			t.Errorf("--%s: exit code %d", wrong, code)
		}
	}
}

// The flags reach the server: the third connection makes it close one of the first two.
func TestLimitsAreSet(t *testing.T) {
	t.Parallel()
	p := startServe(t, "--volume", filepath.Join(t.TempDir(), "v.img"), "--size", "8M", "--max-connections-per-host", "2")
	var idle []*nfsclient.Client
	for range 2 {
		c, err := nfsclient.Mount(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		idle = append(idle, c)
	}
	c, err := nfsclient.Mount(p.addr)
	for err != nil { // as long as the other two have just been used
		c, err = nfsclient.Mount(p.addr)
	}
	defer c.Close()
	lost := 0
	for _, c := range idle {
		if c.Null() != nil {
			lost++
		}
	}
	if err := c.Null(); err != nil || lost != 1 {
		t.Errorf("the third connection: %v; %d of two are closed", err, lost)
	}
	p.stop(t)
	if log := p.stderr.String(); !strings.Contains(log, "room is needed") {
		t.Errorf("nothing in the log:\n%s", log)
	}
}
