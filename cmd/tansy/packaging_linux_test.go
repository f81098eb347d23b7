package main

import (
	"errors"
	"net/netip"
	"os"
	osuser "os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/nfs/nlm"
	"tansy/nfs/portmap"
)

// The right that the drop-in for locks gives the user of the service is what the port mapper needs: by it NLM is found.
// Without it the server does not start.
func TestLocksDropIn(t *testing.T) {
	text := packaged(t, "packaging/locks.conf")
	for _, key := range []string{"AmbientCapabilities", "CapabilityBoundingSet"} {
		if !regexp.MustCompile(`(?m)^` + key + `=CAP_NET_BIND_SERVICE$`).MatchString(text) {
			t.Errorf("%s is not what this test tries", key)
		}
	}
	nobody, err := osuser.Lookup("nobody")
	if os.Getuid() != 0 || err != nil {
		t.Skip("needs root, to be somebody else, and the user nobody: ", err)
	}
	dir, err := os.MkdirTemp("", "locks") // where others may go
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	uid, _ := strconv.Atoi(nobody.Uid)
	img, program := filepath.Join(dir, "v.img"), filepath.Join(dir, "tansy")
	tansy(t, "mkfs", img, "--size", "8M")
	self, err := os.ReadFile("/proc/self/exe") // lies where others may not go
	if err == nil {
		err = errors.Join(os.WriteFile(program, self, 0o755), os.Chmod(dir, 0o755), os.Chown(img, uid, -1))
	}
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrFrom4([4]byte{127, byte(64 + os.Getpid()>>8%128), byte(os.Getpid()), 111}) // of this test alone
	serve := func(rights ...uintptr) *process {
		p := newServe("--volume", img, "--locks", "--portmapper", "--listen", at.String()+":0")
		p.cmd.Path, p.cmd.Dir = program, dir
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid)}, AmbientCaps: rights}
		return p
	}
	p := serve(unix.CAP_NET_BIND_SERVICE)
	p.start(t)
	port, err := portmap.Find(t.Context(), netip.AddrPortFrom(at, portmap.Port), nil, nlm.Program, 4, "tcp")
	if want := netip.MustParseAddrPort(p.addr).Port(); err != nil || port != want {
		t.Errorf("NLM is at port %d, %v; want %d", port, err, want)
	}
	p.stop(t)
	p = serve()
	if err := p.cmd.Run(); err == nil || !strings.Contains(p.stderr.String(), "permission denied") {
		t.Errorf("without the right: %v\n%s", err, &p.stderr)
	}
}
