//go:build linux

package mount

import (
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/disk"
	"tansy/fs"
)

// What RENAME_WHITEOUT leaves, and what it does not do.
func TestWhiteout(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Inodes: 256, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	k, v := newKernel(t, d, true, false)
	try := func(flags uint32, uid, gid uint32, name, to string) syscall.Errno {
		in := &fuse.RenameIn{InHeader: atRoot, Newdir: fuse.FUSE_ROOT_ID, Flags: flags}
		in.Uid, in.Gid = uid, gid
		return syscall.Errno(k.Rename(nil, in, name, to))
	}
	k.create("a")
	k.create("b")
	for _, c := range []struct {
		flags, uid, gid uint32
		name, to        string
		want            syscall.Errno
	}{
		{renameWhiteout | renameExchange, 0, 0, "a", "b", syscall.EINVAL},
		{renameNoReplace | renameExchange, 0, 0, "a", "b", syscall.EINVAL},
		{renameWhiteout | renameNoReplace, 0, 0, "a", "b", syscall.EEXIST},
		{renameWhiteout, fs.NoID, 0, "a", "b", syscall.EINVAL},
		{renameWhiteout, 0, fs.NoID, "a", "b", syscall.EINVAL},
		{renameWhiteout, 0, 0, "a", oldFolder, syscall.EACCES},
		{renameWhiteout, 0, 0, oldFolder, "b", syscall.EACCES},
		{renameWhiteout, 0, 0, "none", "b", syscall.ENOENT},
		{renameWhiteout | renameNoReplace, 7, 8, "a", "c", 0},
	} {
		if got := try(c.flags, c.uid, c.gid, c.name, c.to); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	n, err := v.Lookup(superuser, v.Root(), []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if a := n.Attr; a.Type != fs.Char || a.Major != 0 || a.Minor != 0 || a.Mode != 0 || a.UID != 7 || a.GID != 8 {
		t.Errorf("the whiteout: %+v", a)
	}

	// over a file that is open
	open := k.create("o")
	k.write(open, "data")
	k.whiteout("b", "o")
	if got := k.read(open); got != "data" {
		t.Errorf("the file that was replaced: %q", got)
	}
	k.release(open)
}
