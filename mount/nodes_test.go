//go:build linux

package mount

import (
	"errors"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/disk"
	"tansy/fs"
)

// Inode numbers are used again: the kernel knows what has one and what had it by numbers of their own, whichever it is
// told of first.
func TestNodes(t *testing.T) {
	root := fs.Handle{Ino: fuse.FUSE_ROOT_ID, Gen: 1}
	n := newNodes(root, true)
	if nodeID(root) != fuse.FUSE_ROOT_ID {
		t.Error("the root has another number than the kernel expects")
	}
	old, now := fs.Handle{Ino: 5, Gen: 1}, fs.Handle{Ino: 5, Gen: 2}
	was, is := nodeID(old), nodeID(now)
	if was == is || nodeID(fs.Handle{Ino: 1<<37 - 1, Gen: 1}) == nodeID(fs.Handle{Ino: 1<<37 - 1, Gen: 2}) {
		t.Error("two files have one number")
	}
	n.learn(old)
	if h, err := n.handle(was); h != old || err != nil {
		t.Error(h, err)
	}
	if err := n.open(was); err != nil {
		t.Error(err)
	}
	if open, _ := n.isOpen(was); !open {
		t.Error("not open")
	}
	n.setGone(fs.Attr{Ino: 5, Gen: 1, Nlink: 1})
	if err := n.open(was); err != fs.ErrStale || n.gone(was).Nlink != 0 {
		t.Error(err, n.gone(was))
	}
	n.learn(now)
	n.learn(old) // told late
	if h, err := n.handle(is); h != now || err != nil || n.gone(is) != nil {
		t.Error(h, err, n.gone(is))
	}
	if h, err := n.handle(was); h != old || err != nil || n.gone(was) == nil {
		t.Error(h, err, n.gone(was))
	}
	if open, _ := n.isOpen(is); open {
		t.Error("the new file is open")
	}
	n.forget(was, 1)
	if _, err := n.handle(was); err != nil {
		t.Error(err)
	}
	n.forget(was, 1)
	if _, err := n.handle(was); err != fs.ErrStale {
		t.Error(err)
	}
	if _, err := n.handle(is); err != nil {
		t.Error(err)
	}
	n.forget(is, 1)
	if _, err := n.handle(is); err != fs.ErrStale {
		t.Error(err)
	}
	n.forget(is, 1) // of nothing

	// What the kernel has forgotten is not waited for, though it could not be let go.
	n.learn(now)
	n.setKept(is, true)
	n.setKept(is, true)
	if n.kept.kept != 1 {
		t.Errorf("%d files are kept", n.kept.kept)
	}
	if n.forget(is, 1); n.kept.kept != 0 {
		t.Errorf("%d files are kept that are forgotten", n.kept.kept)
	}
}

func TestStatus(t *testing.T) {
	for err, want := range map[error]syscall.Errno{
		nil: 0, fs.ErrNoEnt: syscall.ENOENT, fs.ErrExist: syscall.EEXIST, fs.ErrNotEmpty: syscall.ENOTEMPTY,
		fs.ErrNameTooLong: syscall.ENAMETOOLONG,
		fs.ErrStale:       syscall.ESTALE, fs.ErrNoSpc: syscall.ENOSPC, fs.ErrROFS: syscall.EROFS, fs.ErrServerFault: syscall.EIO,
		fs.ErrMLink: syscall.EMLINK,
		fs.ErrFBig:  syscall.EFBIG, fs.ErrInval: syscall.EINVAL, fs.ErrIO: syscall.EIO, errors.New("other"): syscall.EIO,
	} {
		if got := status(err); syscall.Errno(got) != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

// What calls do on a device that does nothing by itself.
func TestCalls(t *testing.T) {
	d := disk.NewStats(disk.NewMem(6000 * disk.BlockSize))
	if err := fs.Mkfs(d, fs.MkfsOptions{Inodes: 256, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	k, v := newKernel(t, d, true, true)
	f := k.create("f")
	k.create("g")
	if st := k.Rename(nil, &fuse.RenameIn{InHeader: atRoot, Newdir: fuse.FUSE_ROOT_ID, Flags: 1}, "f", "g"); st != fuse.Status(syscall.EEXIST) {
		t.Errorf("RENAME_NOREPLACE: %v", st)
	}
	before := d.Counts().Barriers
	k.fsync()
	if d.Counts().Barriers == before {
		t.Error("fsync returned without a barrier")
	}

	// opened twice, closed once
	k.open(f)
	k.unlink("f")
	k.write(f, "data")
	var a fuse.AttrOut
	if k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: f}}, &a)); a.Nlink != 0 {
		t.Errorf("a file without a name has %d links", a.Nlink)
	}
	k.release(f)
	if got := k.read(f); got != "data" {
		t.Errorf("an open file without a name has %q", got)
	}
	k.release(f)
	if _, st := k.Read(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: f}, Size: 10}, nil); st != fuse.Status(syscall.ESTALE) {
		t.Errorf("when it is closed: %v", st)
	}

	// files of somebody else, in a folder that hands its group on
	var dir fuse.EntryOut
	k.ok("mkdir", k.Mkdir(nil, &fuse.MkdirIn{InHeader: atRoot, Mode: 0o2777}, "d", &dir))
	group := uint32(7)
	if _, err := v.Setattr(superuser, fs.Handle{Ino: dir.Ino, Gen: dir.Generation}, &fs.SetAttr{GID: &group}, nil); err != nil {
		t.Fatal(err)
	}
	who := fuse.InHeader{NodeId: dir.NodeId, Caller: fuse.Caller{Owner: fuse.Owner{Uid: 11, Gid: 12}}}
	for mode, in := range map[uint32]fuse.InHeader{0o640: who, 0o4750: who} {
		var out fuse.CreateOut
		k.ok("create", k.Create(nil, &fuse.CreateIn{InHeader: in, Mode: mode}, string(rune(mode)), &out))
		if out.Uid != 11 || out.Gid != 7 || out.Attr.Mode&0o7777 != mode {
			t.Errorf("a file of mode %o: mode %o, owner %d:%d", mode, out.Attr.Mode, out.Uid, out.Gid)
		}
	}
	who.NodeId = fuse.FUSE_ROOT_ID
	var out fuse.EntryOut
	k.ok("symlink", k.Symlink(nil, &who, "target", "l", &out))
	if out.Uid != 11 || out.Gid != 12 {
		t.Errorf("a symbolic link of %d:%d", out.Uid, out.Gid)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAt(t *testing.T) {
	const table = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
41 22 0:41 / /mnt/a\040b rw,nosuid - fuse.tansy /srv/a\134b.img rw,user_id=0
42 22 0:42 / /mnt/c rw master:3 shared:2 - fuse.tansy /srv/c.img rw
43 42 0:43 / /mnt/c rw - tmpfs over rw
`
	for dir, want := range map[string]Mounted{
		"/": {"254:0", "ext4", "/dev/vda"}, "/mnt/a b": {"0:41", Type, `/srv/a\b.img`}, "/mnt/c": {"0:43", "tmpfs", "over"},
	} {
		if m, ok := At(table, dir); !ok || m != want {
			t.Errorf("%s: %+v, %v", dir, m, ok)
		}
	}
	if m, ok := At(table, "/mnt"); ok {
		t.Errorf("%+v", m)
	}
}
