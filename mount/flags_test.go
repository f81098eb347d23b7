//go:build linux

package mount

import (
	"encoding/binary"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/disk"
	"tansy/fs"
)

// The requests for flags: what they take, what they answer, and who may.
func TestIoctl(t *testing.T) {
	d := disk.NewMem(6000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Inodes: 256, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	k, v := newKernel(t, d, true, false)
	id := k.create("f")
	// ask is a request by a user, with so many bytes of results.
	ask := func(uid, cmd uint32, data []byte, size int) ([]byte, syscall.Errno) {
		in := &fuse.IoctlIn{InHeader: fuse.InHeader{NodeId: id}, Cmd: cmd}
		in.Uid = uid
		out := make([]byte, size)
		return out, syscall.Errno(k.Ioctl(nil, in, data, &fuse.IoctlOut{}, out))
	}
	words := func(size int, first uint32) []byte {
		b := make([]byte, size)
		binary.NativeEndian.PutUint32(b, first)
		return b
	}
	shown := func(cmd uint32, size int) uint32 {
		t.Helper()
		out, errno := ask(7, cmd, nil, size)
		if errno != 0 {
			t.Fatalf("%#x: %v", cmd, errno)
		}
		return binary.NativeEndian.Uint32(out)
	}
	n, err := v.Lookup(superuser, v.Root(), []byte("f"))
	if err != nil {
		t.Fatal(err)
	}
	owner := uint32(7)
	if _, err := v.Setattr(superuser, n.Handle, &fs.SetAttr{UID: &owner}, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		uid, cmd uint32
		data     []byte
		want     syscall.Errno
		flags, x uint32 // what the file has then
	}{
		{0, setFlags, words(4, 0x30), 0, 0x30, 0x18},
		{7, setFlags, words(4, 0xf0), syscall.EPERM, 0x30, 0x18}, // immutable stays, so all do
		{7, setFlags, words(4, 0), syscall.EPERM, 0x30, 0x18},
		{0, setFlags4, words(4, 0), 0, 0, 0},
		{8, setFlags, words(4, 0x40), syscall.EPERM, 0, 0},
		{7, setFlags, words(8, 0x40), 0, 0x40, 0x80},
		{7, setXflags, words(28, 0x40), 0, 0x80, 0x40},
		{7, setXflags, words(28, 0x08), syscall.EPERM, 0x80, 0x40},
		{0, setXflags, words(28, 0x10), 0, 0x20, 0x10},
		{0, setFlags, words(4, 0x04), syscall.EOPNOTSUPP, 0x20, 0x10},
		{0, setXflags, words(28, 0x01), syscall.EOPNOTSUPP, 0x20, 0x10},
		{0, setXflags, append(words(27, 0x40), 1), syscall.EOPNOTSUPP, 0x20, 0x10},
		{0, setFlags, words(4, 0)[:3], syscall.EINVAL, 0x20, 0x10},
		{0, setXflags, words(27, 0), syscall.EINVAL, 0x20, 0x10},
		{0, 0x5401, words(4, 0), syscall.ENOTTY, 0x20, 0x10}, // of a terminal
	} {
		if _, errno := ask(c.uid, c.cmd, c.data, 0); errno != c.want {
			t.Errorf("user %d, %#x, %x: %v, want %v", c.uid, c.cmd, c.data, errno, c.want)
		}
		f, g, x := shown(getFlags, 4), shown(getFlags4, 4), shown(getXflags, 28)
		if f != c.flags || g != f || x != c.x {
			t.Errorf("after %#x, %x: flags %#x, %#x, %#x, want %#x and %#x", c.cmd, c.data, f, g, x, c.flags, c.x)
		}
	}
	for cmd, size := range map[uint32]int{getFlags: 3, getXflags: 27} {
		if _, errno := ask(0, cmd, nil, size); errno != syscall.EINVAL {
			t.Errorf("%#x with %d bytes: %v", cmd, size, errno)
		}
	}
	k.unlinkFails("f")
	closed(t, d, v)
}

// unlinkFails fails the test unless the name may not be taken away.
func (k kernel) unlinkFails(name string) {
	k.t.Helper()
	if st := k.Unlink(nil, &atRoot, name); st != fuse.Status(syscall.EPERM) {
		k.t.Errorf("unlink %s: %v", name, st)
	}
}
