//go:build linux

package main

import (
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"tansy/test/kit/mounttest"
)

// TestMount runs the suite on a volume that is mounted by `tansy mount`.
func TestMount(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "4G")
	m := mounttest.New(t, bin, image, "--allow-other")
	if code := run(options{on: "mount"}, []string{m.Dir}); code != 0 {
		t.Errorf("exit status %d", code)
	}
	m.Unmount(t, bin, image)
}

// TestMountServed runs the suite on a volume that is served as well.
func TestMountServed(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "4G")
	m := mounttest.Serve(t, bin, image, t.TempDir(), nil, "--mount-options", "allow_other,suid,dev")
	if code := run(options{on: "mount"}, []string{m.Dir}); code != 0 {
		t.Errorf("exit status %d", code)
	}
	mounttest.Run(t, bin, "umount", m.Dir)
}

// TestMountLocks runs what is about locks where the server has the locks of the mount, too.
func TestMountLocks(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "1G")
	m := mounttest.Serve(t, bin, image, t.TempDir(), nil, "--locks", "--portmapper", "--portmapper-port", "0",
		"--mount-options", "allow_other")
	if code := run(options{on: "served", only: "^lock"}, []string{m.Dir}); code != 0 {
		t.Errorf("exit status %d", code)
	}
	mounttest.Run(t, bin, "umount", m.Dir)
}

// TestOrdinaryMount has somebody else than root mount a volume, through fusermount3, and run what of the suite needs
// no root.
func TestOrdinaryMount(t *testing.T) {
	if _, err := exec.LookPath("fusermount3"); err != nil {
		t.Skip(err)
	}
	nobody, err := osuser.Lookup("nobody") // fusermount3 wants a user with a name
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	bin := mounttest.Build(t)
	folder, err := os.MkdirTemp("", "posix") // where others may go
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	in := func(name string) string { return filepath.Join(folder, name) }
	mounttest.Run(t, bin, "mkfs", in("v.img"), "--size", "4G", "--owner", nobody.Uid+":"+nobody.Gid)
	program, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	suite, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		os.Chmod(folder, 0o755), os.Mkdir(in("dir"), 0o755), os.Chown(in("dir"), uid, gid), os.Chown(in("v.img"), uid, gid),
		os.WriteFile(in("tansy"), program, 0o755), os.WriteFile(in("suite"), suite, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	who := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	as := func(name string, args ...string) {
		t.Helper()
		c := exec.Command(in(name), args...)
		c.Dir, c.Env, c.SysProcAttr = "/", append(os.Environ(), suiteOn+"="+in("dir")), &syscall.SysProcAttr{Credential: who}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	m := mounttest.On(t, in("tansy"), in("v.img"), in("dir"), who)
	as("suite", "-test.run", "TestSuite$")
	as("tansy", "umount", in("dir"))
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	mounttest.Run(t, bin, "check", in("v.img"))
}

// suiteOn names the directory of a mount for TestSuite, which TestOrdinaryMount starts as another user.
const suiteOn = "POSIX_SUITE_ON"

func TestSuite(t *testing.T) {
	dir := os.Getenv(suiteOn)
	if dir == "" {
		t.Skip("run by TestOrdinaryMount")
	}
	if code := run(options{on: "mount"}, []string{dir}); code != 0 {
		t.Errorf("exit status %d", code)
	}
}
