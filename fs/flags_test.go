package fs_test

import (
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
)

// Flags are what was set of them, also when the volume is opened again; who may set which; and what the server keeps
// for itself in spite of them.
func TestFlags(t *testing.T) {
	d := disk.NewSim(6000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Zeroed: true, Inodes: 256})
	v := open(t, d, fs.Options{})
	ann, eve := &fs.Cred{UID: 10, GID: 20}, &fs.Cred{UID: 12, GID: 22}
	root := &fs.Cred{}
	n, err := v.Create(root, v.Root(), []byte("f"), fs.Unchecked, &fs.SetAttr{UID: some(ann.UID)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	set := func(who *fs.Cred, flags uint32, want error) {
		t.Helper()
		if err := v.SetFlags(who, n.Handle, flags); err != want {
			t.Errorf("user %d sets %#x: %v, want %v", who.UID, flags, err, want)
		}
	}
	shows := func(want uint32) {
		t.Helper()
		if flags, err := v.Flags(n.Handle); err != nil || flags != want {
			t.Errorf("flags %#x, %v, want %#x", flags, err, want)
		}
	}
	shows(0)
	set(ann, fs.FlagNoDump|fs.FlagNoAtime, nil)
	set(eve, 0, fs.ErrPerm)
	set(ann, fs.FlagImmutable, fs.ErrPerm)
	set(ann, fs.FlagAppendOnly, fs.ErrPerm)
	set(root, 1, fs.ErrInval)
	set(root, 0x100, fs.ErrInval)
	shows(0xc0)
	before, err := v.Getattr(n.Handle)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.SetXattr(n.Handle, []byte("security.capability"), []byte("all"), false, false); err != nil {
		t.Error(err)
	}
	set(root, fs.AllFlags, nil)
	set(root, fs.FlagImmutable, fs.ErrPerm)
	after, err := v.Getattr(n.Handle)
	if err != nil || after.Ctime == before.Ctime || after.Mtime != before.Mtime {
		t.Errorf("times %v and %v, then %v and %v, %v", before.Mtime, before.Ctime, after.Mtime, after.Ctime, err)
	}

	closeFS(t, v)
	v = open(t, d, fs.Options{})
	shows(fs.AllFlags)
	if _, _, _, err := v.Write(root, n.Handle, 0, []byte("x"), fs.FileSync); err != fs.ErrPerm {
		t.Errorf("WRITE: %v", err)
	}
	if _, err := v.GetXattr(n.Handle, []byte("security.capability")); err != nil {
		t.Errorf("a WRITE that was refused took the capabilities away: %v", err)
	}
	if err := v.SetXattr(n.Handle, []byte("user.x"), []byte("v"), false, false); err != fs.ErrPerm {
		t.Errorf("setxattr: %v", err)
	}
	if err := v.RemoveXattr(n.Handle, []byte("security.capability")); err != fs.ErrPerm {
		t.Errorf("removexattr: %v", err)
	}
	if granted, _, err := v.Access(root, n.Handle, 0x3f); err != nil || granted&0x0c != 0 {
		t.Errorf("ACCESS: %#x, %v", granted, err)
	}
	// the server's own notes stand with the root directory, whatever flags that has
	if err := v.SetFlags(root, v.Root(), fs.FlagImmutable); err != nil {
		t.Error(err)
	}
	if err := v.SetNote("n", []byte("value")); err != nil {
		t.Errorf("a note: %v", err)
	}
	if _, err := v.Mkdir(root, v.Root(), []byte("d"), &fs.SetAttr{}); err != fs.ErrPerm {
		t.Errorf("MKDIR: %v", err)
	}
	closeFS(t, v)
	r, err := check.Volume(d, check.Options{Data: true})
	if err != nil || !r.Clean() {
		t.Errorf("check: %v, %v", err, r.Problems)
	}
}
