//go:build linux

package mount

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/test/kit/mounttest"
)

// has fails the test unless a directory is mounted with these flags, and without those.
func has(t *testing.T, dir string, with, without uintptr) {
	t.Helper()
	var st unix.Statfs_t
	must(t, unix.Statfs(dir, &st))
	if got := uintptr(st.Flags); got&with != with || got&without != 0 {
		t.Errorf("flags %#x, want %#x and none of %#x", got, with, without)
	}
}

// mount -o remount makes a mount read-only and back: as mount(8) calls its helper by /etc/fstab, and by the table of
// mounts, where no program can be found; and as the command has it.
func TestRemount(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image, "-o", "nosuid")
	f := filepath.Join(m.Dir, "f")
	folder := t.TempDir()
	helper := func(name string, args ...string) string {
		t.Helper()
		link := filepath.Join(folder, name)
		if err := os.Symlink(bin, link); err != nil && !errors.Is(err, os.ErrExist) {
			t.Fatal(err)
		}
		c := exec.Command(link, append([]string{image, m.Dir}, args...)...)
		c.Env = []string{"PATH=/nothing"}
		out, err := c.CombinedOutput()
		if err == nil {
			return ""
		}
		return string(out) + err.Error()
	}
	open := openWith(t, f, "data")
	if said := helper("mount.tansy", "-o", "ro,nosuid,remount,allow_other,nofail"); !strings.Contains(said, "open for writing") {
		t.Errorf("%q", said)
	}
	must(t, open.Close())
	for i, remount := range []func(access string) string{
		func(a string) string { return helper("mount.tansy", "-o", a+",nosuid,remount,allow_other,nofail") },
		func(a string) string {
			return helper("mount.fuse.tansy", "-o",
				a+",relatime,remount,user_id=0,group_id=0,default_permissions,max_read=1048576", "-t", "fuse.tansy")
		},
		func(a string) string { return mounttest.Run(t, bin, "mount", image, m.Dir, "-o", "remount,"+a) },
	} {
		if said := remount("ro"); said != "" {
			t.Fatalf("%d: %s", i, said)
		}
		has(t, m.Dir, unix.MS_RDONLY|unix.MS_NOSUID, unix.MS_NODEV|unix.MS_NOEXEC)
		if err := os.WriteFile(f, nil, 0o644); !errors.Is(err, unix.EROFS) {
			t.Errorf("%d: %v", i, err)
		}
		content(t, f, "data")
		if said := remount("rw"); said != "" {
			t.Fatalf("%d: %s", i, said)
		}
		has(t, m.Dir, unix.MS_NOSUID, unix.MS_RDONLY)
		must(t, os.WriteFile(f, []byte("data"), 0o644))
	}
	mounttest.Run(t, bin, "mount", image, m.Dir, "-o", "remount,suid,noexec")
	has(t, m.Dir, unix.MS_NOEXEC, unix.MS_RDONLY|unix.MS_NOSUID)
	fails(t, "no such option", bin, "mount", image, m.Dir, "-o", "remount,nonsense")
	fails(t, "not mounted there", bin, "mount", image, folder, "-o", "remount,ro")
	other := mounttest.Volume(t, bin, "64M")
	for _, name := range []string{other, image + "2", "nbd://127.0.0.1:1/x"} {
		fails(t, "the volume "+image+" is mounted on "+m.Dir+", and not "+name, bin, "mount", name, m.Dir, "-o", "remount,ro")
	}
	has(t, m.Dir, unix.MS_NOEXEC, unix.MS_RDONLY)
	// What was done before is durable when it is read-only.
	must(t, os.WriteFile(filepath.Join(m.Dir, "last"), []byte("data"), 0o644))
	mounttest.Run(t, bin, "mount", image, m.Dir, "-o", "remount,ro")
	m.Kill()
	mounttest.Run(t, bin, "umount", m.Dir)
	m = mounttest.New(t, bin, image, "--read-only")
	content(t, filepath.Join(m.Dir, "last"), "data")
	fails(t, "read only", bin, "mount", image, m.Dir, "-o", "remount,rw")
	has(t, m.Dir, unix.MS_RDONLY, 0)
	m.Unmount(t, bin, image)
}

// A mount of a volume that is served has nosuid and nodev, as NFS clients may plant programs there, unless options lift
// them.
func TestServedNoSUID(t *testing.T) {
	bin := mounttest.Build(t)
	for _, c := range []struct {
		options       string
		with, without uintptr
	}{
		{"sync", unix.MS_NOSUID | unix.MS_NODEV, unix.MS_NOEXEC}, {"suid", unix.MS_NODEV, unix.MS_NOSUID},
		{"dev,noexec", unix.MS_NOSUID | unix.MS_NOEXEC, unix.MS_NODEV},
		{"suid,dev", 0, unix.MS_NOSUID | unix.MS_NODEV}, {"suid,dev,nosuid", unix.MS_NOSUID, unix.MS_NODEV},
	} {
		m, image, _, _ := served(t, bin, "--mount-options", c.options)
		has(t, m.Dir, c.with, c.without)
		stop(t, m, bin, image)
	}
	m := mounttest.New(t, bin, mounttest.Volume(t, bin, "64M"))
	has(t, m.Dir, 0, unix.MS_NOSUID|unix.MS_NODEV)
}

// What nobody has asked to be durable is so after a while, by itself.
func TestCommitInterval(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	fails(t, "--commit-interval", bin, "mount", image, t.TempDir(), "--commit-interval", "0s")
	for _, flags := range [][]string{{"--commit-interval", "1ms"}, {"-o", "commit=0.01"}, nil} {
		m := mounttest.New(t, bin, image, flags...)
		name := fmt.Sprintf("f%d", len(flags))
		must(t, os.WriteFile(filepath.Join(m.Dir, name), []byte("data"), 0o644))
		for copied := filepath.Join(t.TempDir(), "copy"); !holds(t, image, copied, name); {
		}
		m.Unmount(t, bin, image)
	}
}

// holds tells whether a copy of an image that is in use has a name in its root directory.
func holds(t *testing.T, image, copied, name string) bool {
	t.Helper()
	b, err := os.ReadFile(image)
	must(t, err)
	must(t, os.WriteFile(copied, b, 0o600))
	d, err := disk.OpenFile(copied, disk.FileOptions{ReadOnly: true})
	must(t, err)
	defer d.Close()
	v, err := tansyfs.Open(d, tansyfs.Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return false // it was written to while it was copied
	}
	defer v.Close()
	_, err = v.Lookup(root, v.Root(), []byte(name))
	return err == nil
}

// There is no room for more than there is, which is said at once; and nothing has changed.
func TestFallocateTooMuch(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "64M")
	m := mounttest.New(t, bin, image)
	f := openWith(t, filepath.Join(m.Dir, "f"), "data")
	var before, after unix.Statfs_t
	must(t, unix.Statfs(m.Dir, &before))
	for _, n := range []int64{1 << 30, int64(before.Bavail) * before.Bsize, int64(before.Bavail+1) * before.Bsize} {
		if err := unix.Fallocate(int(f.Fd()), 0, 0, n); err != unix.ENOSPC {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	must(t, unix.Statfs(m.Dir, &after))
	if st, err := f.Stat(); err != nil || st.Size() != 4 || after.Bfree != before.Bfree {
		t.Errorf("%v, %v; %d free blocks, before %d", st, err, after.Bfree, before.Bfree)
	}
	must(t, unix.Fallocate(int(f.Fd()), 0, 0, int64(before.Bavail-100)*before.Bsize))
	at(t, f, "data", 1)
	must(t, f.Close())
	m.Unmount(t, bin, image)
}
