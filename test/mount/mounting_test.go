//go:build linux

package mount

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	tansymount "tansy/mount"
	"tansy/test/kit/hosttest"
	"tansy/test/kit/mounttest"
)

// fails runs the program, which must fail and say what. One that serves instead is ended.
func fails(t *testing.T, what, bin string, args ...string) {
	t.Helper()
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(limited, bin, args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), what) {
		t.Errorf("tansy %s: %v, no %q in\n%s", strings.Join(args, " "), err, what, out)
	}
}

// One volume has one server, and a volume or directory that is not there is said.
func TestRefused(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	dir := t.TempDir()
	fails(t, "in use", bin, "mount", image, dir)
	fails(t, "in use", bin, "mount", image, dir, "--background")
	fails(t, "in use", bin, "serve", "--volume", image, "--listen", "127.0.0.1:0")
	fails(t, "tansy mkfs", bin, "mount", image+"2", dir)
	fails(t, "no volume is mounted", bin, "umount", dir+"/nothing")
	fails(t, "no volume is mounted", bin, "umount", dir)
	fails(t, `"nonsense": tansy mount has no such option`, bin, "mount", image, dir, "-o", "ro,nonsense")
	other := mounttest.Volume(t, bin, "64M")
	fails(t, "no directory", bin, "mount", other, image)
	fails(t, "hide", bin, "mount", other, filepath.Dir(other))
	fails(t, "no such file", bin, "mount", other, dir+"/nothing")
	m.Kill()
	fails(t, "tansy umount", bin, "mount", other, m.Dir)
	mounttest.Run(t, bin, "umount", m.Dir)
	m = mounttest.New(t, bin, image)
	m.Unmount(t, bin, image)
}

// A volume that is mounted is not covered by another one unless that is asked for, and is unmounted by its own name,
// too.
func TestCovered(t *testing.T) {
	bin := mounttest.Build(t)
	below, above := mounttest.Volume(t, bin, "64M"), mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, below)
	already := "the volume " + below + " is mounted on " + m.Dir + " already: tansy umount"
	fails(t, already, bin, "mount", above, m.Dir)
	fails(t, already, bin, "mount", above, m.Dir, "--background")
	fails(t, already, bin, "serve", "--volume", above, "--listen", "127.0.0.1:0", "--mount", m.Dir)
	mounttest.Run(t, bin, "check", "-q", above) // nobody has it open

	mounttest.Run(t, bin, "mount", above, m.Dir, "--background", "-o", "over")
	fails(t, "the volume "+above+" is mounted on "+m.Dir+" already", bin, "mount", below, m.Dir)
	hidden := "the volume " + below + " is mounted on " + m.Dir + ", but " + above + " (fuse.tansy) is mounted over it"
	fails(t, hidden, bin, "umount", below)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(above, link); err != nil {
		t.Fatal(err)
	}
	mounttest.Run(t, bin, "umount", link)
	mounttest.Run(t, bin, "check", "-q", above)
	mounttest.Run(t, bin, "umount", below)
	fails(t, below+" is not mounted: give the directory", bin, "umount", below)

	if os.Geteuid() != 0 {
		return
	}
	dir := t.TempDir()
	hosttest.Run(t, "mount", "-t", "tmpfs", "none", dir)
	t.Cleanup(func() { hosttest.Run(t, "umount", dir) })
	out, err := exec.Command(bin, "mount", above, dir, "--background").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "covers what is mounted there already") {
		t.Errorf("over a tmpfs: %v, %s", err, out)
	}
	hosttest.Run(t, "mount", "-t", "tmpfs", "none", dir)
	for _, name := range []string{above, dir} {
		fails(t, "is mounted on "+dir+", but none (tmpfs) is mounted over it: unmount that first", bin, "umount", name)
	}
	hosttest.Run(t, "umount", dir)
	mounttest.Run(t, bin, "umount", dir)
}

// A volume on a device that has grown is mounted as before, with one warning; so is one on the device cut back.
func TestGrown(t *testing.T) {
	bin := mounttest.Build(t)
	for kind, device := range map[string]func(image string) string{
		"image":       func(image string) string { return image },
		"loop device": func(image string) string { return hosttest.Loop(t, image) },
	} {
		image := mounttest.Volume(t, bin, "64M")
		volume := device(image)
		for _, more := range []int64{512 << 20, 5000, 0} {
			if err := os.Truncate(image, 64<<20+more); err != nil {
				t.Fatal(err)
			}
			if volume != image {
				hosttest.Run(t, "losetup", "-c", volume)
			}
			m := mounttest.New(t, bin, volume)
			if err := os.WriteFile(filepath.Join(m.Dir, "f"), make([]byte, 100000), 0o600); err != nil {
				t.Errorf("%s, %d more bytes: %v", kind, more, err)
			}
			m.Unmount(t, bin, volume)
			said, warned := m.Log.String(), 0
			if more > 0 {
				warned = 1
			}
			if strings.Count(said, "bytes more than the volume uses") != warned || strings.Contains(said, "damage") {
				t.Errorf("%s, %d more bytes: want %d warnings, and no word of damage\n%s", kind, more, warned, said)
			}
		}
	}
}

// A first signal does not take the file system from those who use it.
func TestBusy(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	f := openWith(t, filepath.Join(m.Dir, "f"), "data")
	fails(t, "in use", bin, "umount", m.Dir)
	signal := func(until func() bool) {
		t.Helper()
		must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
		for !until() {
			unix.Stat(m.Dir, new(unix.Stat_t))
		}
	}
	var here unix.Stat_t
	must(t, unix.Stat(m.Dir, &here))
	signal(func() bool { return strings.Contains(m.Log.String(), "a second signal") })
	at(t, f, "data", 1)
	signal(func() bool {
		var st unix.Stat_t
		return unix.Stat(m.Dir, &st) == nil && st.Dev != here.Dev
	})
	at(t, f, "data", 1)
	_, err := f.WriteAt([]byte("DATA"), 0)
	must(t, err)
	must(t, f.Close())
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	m = mounttest.New(t, bin, image)
	content(t, filepath.Join(m.Dir, "f"), "DATA")
	must(t, m.Cmd.Process.Signal(syscall.SIGINT))
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	mounttest.Run(t, bin, "check", image)
}

// What is mounted below a volume's directory is named to who unmounts the volume, also when its process has ended.
func TestBusyBelow(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	below := []string{filepath.Join(m.Dir, "a b")}
	for len(below) < 5 {
		below = append(below, filepath.Join(below[len(below)-1], "in"))
	}
	for _, dir := range below {
		must(t, os.Mkdir(dir, 0o755))
		if err := unix.Mount("none", dir, "tmpfs", 0, "size=1M"); err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) }) // what a failure leaves
	}
	first := "unmount what is mounted below it first: "
	fails(t, first+below[4]+", "+below[3]+", "+below[2]+", and 2 more\n", bin, "umount", m.Dir)
	for i := 4; i > 0; i-- {
		must(t, unix.Unmount(below[i], 0))
	}
	must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
	for begun := time.Now(); !strings.Contains(m.Log.String(), first+below[0]); {
		if m.Cmd.Process.Signal(syscall.Signal(0)) != nil || time.Since(begun) > 20*time.Second {
			t.Fatalf("it does not say where\n%s", &m.Log)
		}
	}
	m.Kill()
	fails(t, first+below[0]+"\n", bin, "umount", m.Dir)
	mounttest.Run(t, bin, "umount", m.Dir, "--lazy")
	mounttest.Run(t, bin, "check", image)
}

// What is mounted over a volume stays when the volume's own mount is to end.
func TestMountedOver(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	if err := unix.Mount("tmpfs", m.Dir, "tmpfs", 0, ""); err != nil {
		t.Skip(err)
	}
	covered := true
	t.Cleanup(func() {
		if covered {
			unix.Unmount(m.Dir, 0)
		}
	})
	over := filepath.Join(m.Dir, "over")
	must(t, os.WriteFile(over, []byte("data"), 0o600))
	must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
	for !strings.Contains(m.Log.String(), "is mounted over it") && !t.Failed() {
		content(t, over, "data")
	}
	content(t, over, "data")
	must(t, unix.Unmount(m.Dir, 0))
	covered = false
	must(t, m.Cmd.Process.Signal(syscall.SIGTERM))
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	mounttest.Run(t, bin, "check", image)
}

// When a volume is lost, what is written to its directory fails, and does not go to the directory below. The next mount
// of the volume takes the place, and that of another one does not.
func TestLostAndMountedAgain(t *testing.T) {
	bin := mounttest.Build(t)
	never := []string{"--commit-interval", "1h"} // only what was asked for is durable
	for what, start := range map[string]func(image, dir string) *mounttest.Mount{
		"mount": func(image, dir string) *mounttest.Mount { return mounttest.On(t, bin, image, dir, nil, never...) },
		"serve": func(image, dir string) *mounttest.Mount { return mounttest.Serve(t, bin, image, dir, nil, never...) },
	} {
		t.Run(what, func(t *testing.T) {
			image, dir := mounttest.Volume(t, bin, "64M"), t.TempDir()
			f := filepath.Join(dir, "f")
			m := start(image, dir)
			must(t, openWith(t, f, "data").Sync())
			must(t, os.Rename(image, image+".away"))
			if code := m.Wait(); code != 3 {
				t.Errorf("exit code %d\n%s", code, &m.Log)
			}
			err := os.WriteFile(f, []byte("lost"), 0o600)
			if !tansymount.Gone(err) {
				t.Errorf("a write after the volume was lost: %v", err)
			}
			must(t, os.Rename(image+".away", image))
			other := mounttest.Volume(t, bin, "64M")
			out, err := exec.Command(bin, "mount", other, dir, "--background").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "tansy umount") {
				t.Fatalf("another volume in its place: %v, %s", err, out)
			}
			start(image, dir)
			content(t, f, "data")
			mounttest.Run(t, bin, "umount", dir)
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("below: %v, %v", left, err)
			}
		})
	}
}

// Who unmounts a volume whose process has ended is told so. A process that only hangs is not asked, and nothing is said
// of it.
func TestUnmountEnded(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	told := func(m *mounttest.Mount) string {
		return m.Dir + ": unmounted; its process had ended, and " + image +
			" is recovered when it is next mounted or served\n"
	}
	for _, flags := range [][]string{nil, {"--lazy"}} {
		m := mounttest.New(t, bin, image)
		m.Kill()
		if said := mounttest.Run(t, bin, append([]string{"umount", m.Dir}, flags...)...); said != told(m) {
			t.Errorf("umount %q: %s", flags, said)
		}
	}
	mounttest.New(t, bin, mounttest.Volume(t, bin, "64M")) // another process that is a server of a mount
	for _, flags := range [][]string{nil, {"--read-only"}} {
		m := mounttest.New(t, bin, image, flags...)
		must(t, m.Cmd.Process.Signal(syscall.SIGSTOP))
		ctx, stop := context.WithTimeout(t.Context(), time.Minute) // what hangs now does so for ever
		out, err := exec.CommandContext(ctx, bin, "umount", m.Dir, "--lazy").CombinedOutput()
		stop()
		if err != nil || len(out) > 0 {
			t.Errorf("umount of a mount whose process hangs: %v, %s", err, out)
		}
		m.Kill()
	}
	m := mounttest.New(t, bin, image)
	m.Kill()
	other, err := mounttest.StartServer(bin, image, "127.0.0.1:0") // which has the volume meanwhile
	defer other.Kill()
	must(t, err)
	if said := mounttest.Run(t, bin, "umount", m.Dir); said != told(m) {
		t.Errorf("umount of a mount whose volume is served: %s", said)
	}
}

// A read-only mount changes nothing, also nothing on the volume.
func TestReadOnly(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	must(t, os.WriteFile(filepath.Join(m.Dir, "f"), []byte("data"), 0o644))
	m.Unmount(t, bin, image)
	before, err := os.ReadFile(image)
	must(t, err)
	for _, flags := range [][]string{{"--read-only"}, {"-o", "ro,noatime,nodev"}} {
		m := mounttest.New(t, bin, image, flags...)
		content(t, filepath.Join(m.Dir, "f"), "data")
		if err := os.Remove(filepath.Join(m.Dir, "f")); !errors.Is(err, unix.EROFS) {
			t.Error(err)
		}
		m.Unmount(t, bin, image)
	}
	after, err := os.ReadFile(image)
	must(t, err)
	if string(before) != string(after) {
		t.Error("the image is another one")
	}
}

// With --sync a change is durable when it returns: after a kill nothing is missing that was done.
func TestSync(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, "--sync")
	must(t, os.Mkdir(filepath.Join(m.Dir, "d"), 0o755))
	must(t, os.WriteFile(filepath.Join(m.Dir, "f"), []byte("data"), 0o644))
	must(t, os.Rename(filepath.Join(m.Dir, "f"), filepath.Join(m.Dir, "d/g")))
	m.Kill()
	mounttest.Run(t, bin, "umount", m.Dir)
	m = mounttest.New(t, bin, image)
	content(t, filepath.Join(m.Dir, "d/g"), "data")
	m.Unmount(t, bin, image)
}

// mount(8) and umount(8) know the type by a link to the program.
func TestHelper(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	helper, dir := filepath.Join(t.TempDir(), "mount.tansy"), t.TempDir()
	must(t, os.Symlink(bin, helper))
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	mounttest.Run(t, helper, image, dir, "-v", "-o", "rw,nosuid,noatime,allow_other,x-systemd.automount,nofail,cache=16M")
	table, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	if line := image + " " + dir + " fuse.tansy rw,nosuid,"; !strings.Contains(string(table), line) {
		t.Errorf("no %q in\n%s", line, table)
	}
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("data"), 0o644))
	if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mounttest.Run(t, helper, "-o", "ro", image, dir) // at once: it waits until the volume is closed
	content(t, filepath.Join(dir, "f"), "data")
	mounttest.Run(t, bin, "umount", dir)
	fails(t, "mount.tansy: -t nfs: tansy, fuse.tansy, fuseblk.tansy are the types of volumes",
		helper, "-t", "nfs", image, dir)
	mounttest.Run(t, helper, "-t", "fuse.tansy", image, dir)
	for _, tool := range [][]string{{"check"}, {"dump"}, {"repair"}, {"mkfs"}} {
		fails(t, dir+" is the directory on which the volume "+image+" is mounted", bin, append(tool, dir)...)
	}
	mounttest.Run(t, bin, "umount", dir, "-l")
	fails(t, "no such option", helper, image, dir, "-o", "nonsense")
	mounttest.Run(t, helper, "-s", image, dir, "-o", "nonsense")
	mounttest.Run(t, bin, "umount", dir)
	mounttest.Run(t, bin, "check", image)
}

// Somebody else than root mounts through fusermount3; others do not get in.
func TestOrdinaryUser(t *testing.T) {
	if _, err := exec.LookPath("fusermount3"); err != nil {
		t.Skip(err)
	}
	nobody, err := user.Lookup("nobody") // fusermount3 wants a user with a name
	if err != nil {
		t.Skip(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid)
	gid, _ := strconv.Atoi(nobody.Gid)
	owner := nobody.Uid + ":" + nobody.Gid
	who := &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	bin := mounttest.Build(t)
	folder, err := os.MkdirTemp("", "mount") // where others may go
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	must(t, os.Chmod(folder, 0o755))
	image, dir, tool := filepath.Join(folder, "v.img"), filepath.Join(folder, "dir"), filepath.Join(folder, "tansy")
	mounttest.Run(t, bin, "mkfs", image, "--size", "64M", "--owner", owner)
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.Chown(dir, uid, gid))
	must(t, os.Chown(image, uid, gid))
	program, err := os.ReadFile(bin)
	must(t, err)
	must(t, os.WriteFile(tool, program, 0o755))
	ofRoot := filepath.Join(folder, "root")
	must(t, os.Mkdir(ofRoot, 0o755))
	refused := exec.Command(tool, "mount", image, ofRoot)
	refused.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	out, err := refused.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no write access") ||
		!strings.Contains(string(out), "fusermount3 refused that; the line before this one has its reason") {
		t.Errorf("mounted where nobody may write: %v\n%s", err, out)
	}
	m := mounttest.On(t, tool, image, dir, who)
	if _, err := os.ReadDir(dir); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("root got in: %v", err)
	}
	as := func(script string) {
		t.Helper()
		c := exec.Command("sh", "-e", "-c", script)
		c.Dir, c.SysProcAttr = "/", &syscall.SysProcAttr{Credential: who}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
	as("cd " + dir + "; mkdir d; echo x >d/f; [ $(stat -c %u:%g d/f) = " + owner + " ]; exec 3<d/f; rm d/f; [ $(cat <&3) = x ]; ! chown 0 d 2>&-")
	as(tool + " umount " + dir)
	if code := m.Wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	mounttest.Run(t, bin, "check", image)
}

// A volume that is deleted while it is mounted ends the process, and who uses it gets errors.
func TestLost(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	f := openWith(t, filepath.Join(m.Dir, "f"), "data")
	must(t, os.Remove(image))
	if code := m.Wait(); code != 3 {
		t.Errorf("exit code %d\n%s", code, &m.Log)
	}
	if _, err := f.WriteString("more"); err == nil {
		t.Error("written to a volume that is gone")
	}
	if entries, err := os.ReadDir(m.Dir); !tansymount.Gone(err) {
		t.Errorf("the directory of a volume that is gone: %v, %v", entries, err)
	}
}
