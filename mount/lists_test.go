//go:build linux || darwin

package mount

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/disk"
	"tansy/fs"
)

// What is written of a list is read as that list, and what Linux does not take for a list is none.
func TestListBytes(t *testing.T) {
	user := func(id, rights uint32) fs.AccessEntry { return fs.AccessEntry{ID: id, Rights: rights} }
	group := func(id, rights uint32) fs.AccessEntry { return fs.AccessEntry{Group: true, ID: id, Rights: rights} }
	for _, l := range []*fs.AccessList{
		{}, {Owner: 7, Group: 5, Other: 1}, {Owner: 6, Group: 4, Mask: 7, Masked: true},
		{
			Owner: 1, Group: 2, Mask: 3, Other: 4, Masked: true,
			Named: []fs.AccessEntry{user(9, 7), user(5, 0), group(5, 6)},
		},
		{Masked: true, Named: []fs.AccessEntry{group(0, 1), group(1<<32-2, 7)}},
	} {
		b := listBytes(l)
		if got, ok := listOf(b); !ok || !got.Equal(l) {
			t.Errorf("%+v, %v, want %+v", got, ok, *l)
		}
		if _, ok := listOf(b[:len(b)-1]); ok {
			t.Errorf("%+v, cut off", *l)
		}
	}
	if l, ok := listOf(binary.LittleEndian.AppendUint32(nil, listVersion)); l != nil || !ok {
		t.Errorf("no entries: %+v, %v", l, ok)
	}
	of := func(entries ...uint32) []byte {
		b := binary.LittleEndian.AppendUint32(nil, listVersion)
		for ; len(entries) > 0; entries = entries[3:] {
			b = binary.LittleEndian.AppendUint16(b, uint16(entries[0]))
			b = binary.LittleEndian.AppendUint16(b, uint16(entries[1]))
			b = binary.LittleEndian.AppendUint32(b, entries[2])
		}
		return b
	}
	const no = fs.NoID
	for what, b := range map[string][]byte{
		"nothing":         nil,
		"no owner":        of(4, 7, no, 32, 7, no),
		"no group":        of(1, 7, no, 32, 7, no),
		"no others":       of(1, 7, no, 4, 7, no),
		"others twice":    of(1, 7, no, 4, 7, no, 32, 7, no, 32, 7, no),
		"mask before":     of(1, 7, no, 16, 7, no, 4, 7, no, 32, 7, no),
		"a user, no mask": of(1, 7, no, 2, 7, 5, 4, 7, no, 32, 7, no),
		"of nobody":       of(1, 7, no, 2, 7, no, 4, 7, no, 16, 7, no, 32, 7, no),
		"too many rights": of(1, 8, no, 4, 7, no, 32, 7, no),
		"another entry":   of(1, 7, no, 4, 7, no, 32, 7, no, 64, 7, no),
		"another version": append([]byte{3}, of(1, 7, no, 4, 7, no, 32, 7, no)[1:]...),
	} {
		if l, ok := listOf(b); ok {
			t.Errorf("%s: %+v", what, l)
		}
	}
}

// listVolume is a volume of which access lists may be missing.
type listVolume struct {
	Volume
	missing bool
}

func (v *listVolume) GetAccess(h fs.Handle) (*fs.AccessList, error) {
	if v.missing {
		return nil, fs.ErrIO
	}
	return v.Volume.GetAccess(h)
}

// A file whose list is missing is its owner's alone, and root's: the kernel is told so, and of no error, by which it
// would refuse root as well. A list that it could not read into a page is not taken.
func TestListsForTheKernel(t *testing.T) {
	d := disk.NewMem(16 << 20)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, Inodes: 64}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{Log: slog.New(slog.DiscardHandler), Deferred: true})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	volume := &listVolume{Volume: v}
	f, err := newFileSystem(volume, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	f.forget = func(uint64, int64, int64) fuse.Status { return fuse.OK }
	long := func(n int) []byte {
		l := &fs.AccessList{Owner: 7, Mask: 7, Masked: true}
		for id := range n {
			l.Named = append(l.Named, fs.AccessEntry{ID: uint32(id), Rights: 4})
		}
		return listBytes(l)
	}
	root := &fuse.InHeader{NodeId: fuse.FUSE_ROOT_ID}
	if b := long(508); len(b) <= 4096 {
		t.Fatalf("%d bytes", len(b))
	}
	if status := f.setListBytes(root, false, long(508)); status != fuse.Status(syscall.E2BIG) {
		t.Errorf("a list that is too long: %v", status)
	}
	if status := f.setListBytes(root, false, long(507)); status != fuse.OK {
		t.Errorf("the longest list: %v", status)
	}
	volume.missing = true
	b, status := f.getList(fuse.FUSE_ROOT_ID, false)
	if l, ok := listOf(b); status != fuse.OK || !ok || !l.Equal(&fs.AccessList{Owner: 7, Masked: true}) {
		t.Errorf("a missing list: %+v, %v", l, status)
	}
	if names, err := f.listNames(v.Root(), nil); err != nil || !bytes.Contains(names, []byte(accessName)) {
		t.Errorf("names with a missing list: %q, %v", names, err)
	}
}

// watched is a volume that says when a client sets lists.
type watched struct {
	*fs.FS
	setting func()
}

func (w watched) SetLists(c *fs.Cred, h fs.Handle, l fs.Lists, access, dflt bool) error {
	w.setting()
	return w.FS.SetLists(c, h, l, access, dflt)
}

// A client gives a directory no other default list between the question whether the caller's mask counts, and the new
// file; an access list it may give.
func TestMaskCounts(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, true)
	free := func() bool {
		if !k.defaults.TryLock() {
			return false
		}
		k.defaults.Unlock()
		return true
	}
	made, set := 0, 0
	make := func(c *fs.Cred, dir fs.Handle, s *fs.SetAttr) (fs.Node, error) {
		if made++; free() {
			t.Error("while a file is made, its directory may get another default list")
		}
		return v.Create(c, dir, []byte("f"), fs.Guarded, s, 0)
	}
	_, err := k.fileSystem.create(&atRoot, "f", 0o666, 0o022, make)
	if err != nil || made != 1 || !free() {
		t.Errorf("%v, %d made", err, made)
	}
	for _, dflt := range []bool{true, false} {
		w := watched{v, func() {
			if set++; free() == dflt {
				t.Errorf("while a list is set, default %v, a file may be made: %v", dflt, !dflt)
			}
		}}
		if err := (beside{w, k.fileSystem}).SetLists(&fs.Cred{}, k.root, fs.Lists{}, !dflt, dflt); err != nil || !free() {
			t.Error(err)
		}
	}
	if set != 2 {
		t.Errorf("%d set", set)
	}
	closed(t, d, v)
}
