//go:build linux

package mount

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	tansyfs "tansy/fs"
	"tansy/test/kit/mounttest"
)

// What one face makes the other can show and work with. To the kernel 2^32-1 is no id: a file that had it as its owner
// could not be looked at, changed, or removed. A time before 1970 is none to NFS, and a device has 12 and 20 bits for
// its numbers.
func TestServedShown(t *testing.T) {
	bin := mounttest.Build(t)
	m, image, c, p := served(t, bin)
	must(t, os.Chmod(m.Dir, 0o777))
	n, err := c.Create(&tansyfs.Cred{UID: tansyfs.NoID, GID: tansyfs.NoID}, c.Root(), []byte("f"), tansyfs.Guarded,
		&tansyfs.SetAttr{}, 0)
	must(t, err)
	if n.Attr.UID != 65534 || n.Attr.GID != 65534 {
		t.Errorf("nobody's file belongs to %d:%d", n.Attr.UID, n.Attr.GID)
	}
	nobody := uint32(tansyfs.NoID)
	_, err = c.Setattr(root, n.Handle, &tansyfs.SetAttr{UID: &nobody, GID: &nobody}, nil)
	must(t, err)
	i, err := os.Lstat(p("f"))
	must(t, err)
	if s := i.Sys().(*syscall.Stat_t); s.Uid != 65534 || s.Gid != 65534 {
		t.Errorf("on the mount it belongs to %d:%d", s.Uid, s.Gid)
	}
	must(t, os.Chmod(p("f"), 0o600))

	must(t, unix.UtimesNanoAt(unix.AT_FDCWD, p("f"), []unix.Timespec{{Sec: -5, Nsec: 7}, {Sec: -1, Nsec: 8}}, 0))
	a, err := c.Getattr(n.Handle)
	must(t, err)
	if zero := (tansyfs.Time{}); a.Atime != zero || a.Mtime != zero {
		t.Errorf("times before 1970 are %v and %v by NFS", a.Atime, a.Mtime)
	}
	var st unix.Stat_t
	must(t, unix.Lstat(p("f"), &st))
	if zero := (unix.Timespec{}); st.Atim != zero || st.Mtim != zero {
		t.Errorf("and %v and %v on the mount", st.Atim, st.Mtim)
	}
	must(t, os.Remove(p("f")))

	for _, number := range [][2]uint32{{4096, 0}, {0, 1 << 20}} {
		if _, err := c.Mknod(root, c.Root(), []byte("device"), tansyfs.Char, &tansyfs.SetAttr{}, number[0], number[1]); err != tansyfs.ErrInval {
			t.Errorf("MKNOD of %d:%d: %v", number[0], number[1], err)
		}
	}
	_, err = c.Mknod(root, c.Root(), []byte("device"), tansyfs.Char, &tansyfs.SetAttr{}, 4095, 1<<20-1)
	must(t, err)
	must(t, unix.Lstat(p("device"), &st))
	if st.Rdev != unix.Mkdev(4095, 1<<20-1) {
		t.Errorf("the device is %d:%d on the mount", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	}
	if _, err := c.Symlink(root, c.Root(), []byte("link"), &tansyfs.SetAttr{}, []byte("a\x00b")); err != tansyfs.ErrInval {
		t.Errorf("SYMLINK to a target with a zero byte: %v", err)
	}
	stop(t, m, bin, image)
}
