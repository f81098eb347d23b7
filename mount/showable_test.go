//go:build linux

package mount

import (
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
)

// What NFS could not show of a file is not set on a mount: a time before 1970 is the first of 1970, as the kernel has
// it for file systems that begin there; an owner of 2^32-1 changes nothing, and makes no file of root's; devices have
// numbers that clients can take.
func TestBeforeNFS(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Inodes: 256, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	k, v := newKernel(t, d, true, true)
	f := k.create("f")
	h, err := k.nodes.handle(f)
	if err != nil {
		t.Fatal(err)
	}
	set := func(valid uint32, in fuse.SetAttrInCommon) (out fuse.AttrOut) {
		t.Helper()
		in.InHeader, in.Valid = fuse.InHeader{NodeId: f}, valid
		k.ok("setattr", k.SetAttr(nil, &fuse.SetAttrIn{SetAttrInCommon: in}, &out))
		return out
	}
	const before = 1<<64 - 5 // seconds, as the kernel sends what is 5 before 1970
	for _, x := range []struct {
		in          fuse.SetAttrInCommon
		atime, mtim fs.Time
	}{
		{fuse.SetAttrInCommon{Atime: before, Atimensec: 7, Mtime: 3, Mtimensec: 9}, fs.Time{}, fs.Time{Sec: 3, Nsec: 9}},
		{fuse.SetAttrInCommon{Atime: 4, Atimensec: 8, Mtime: 1 << 63, Mtimensec: 9}, fs.Time{Sec: 4, Nsec: 8}, fs.Time{}},
		{fuse.SetAttrInCommon{Mtime: 1<<32 - 1}, fs.Time{}, fs.Time{Sec: 1<<32 - 1}},
	} {
		out := set(fuse.FATTR_ATIME|fuse.FATTR_MTIME, x.in)
		a, err := v.Getattr(h)
		if err != nil || a.Atime != x.atime || a.Mtime != x.mtim || out.Attr.Atime != x.atime.Sec || out.Mtimensec != x.mtim.Nsec {
			t.Errorf("%+v: atime %v, mtime %v, %v", x.in, a.Atime, a.Mtime, err)
		}
	}

	set(fuse.FATTR_UID|fuse.FATTR_GID, fuse.SetAttrInCommon{Owner: fuse.Owner{Uid: 11, Gid: 12}})
	if out := set(fuse.FATTR_UID|fuse.FATTR_GID, fuse.SetAttrInCommon{Owner: fuse.Owner{Uid: fs.NoID, Gid: fs.NoID}}); out.Uid != 11 || out.Gid != 12 {
		t.Errorf("an owner that nobody is: %d:%d", out.Uid, out.Gid)
	}
	for _, who := range []fuse.Owner{{Uid: fs.NoID}, {Gid: fs.NoID}} {
		in := fuse.InHeader{NodeId: fuse.FUSE_ROOT_ID, Caller: fuse.Caller{Owner: who}}
		if st := k.Mkdir(nil, &fuse.MkdirIn{InHeader: in}, "nobody", &fuse.EntryOut{}); st != fuse.Status(syscall.EINVAL) {
			t.Errorf("mkdir by %+v: %v", who, st)
		}
	}

	var out fuse.EntryOut
	k.ok("mknod",
		k.Mknod(nil, &fuse.MknodIn{InHeader: atRoot, Mode: unix.S_IFCHR, Rdev: uint32(unix.Mkdev(4095, 1<<20-1))}, "c", &out))
	if out.Rdev != uint32(unix.Mkdev(4095, 1<<20-1)) {
		t.Errorf("a device is %#x", out.Rdev)
	}
	if st := k.Symlink(nil, &atRoot, "a\x00b", "l", &out); st != fuse.Status(syscall.EINVAL) {
		t.Errorf("a target with a zero byte: %v", st)
	}
}
