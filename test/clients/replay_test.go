package clients

import (
	"bytes"
	"testing"

	"tansy/fs"
	"tansy/test/kit/nfsclient"
)

// What the clients of macOS and Windows send that Linux's does not, as far as it is publicly
// known: these systems cannot be run here, so their calls are replayed.

// desk is a volume with a directory that belongs to an ordinary user, seen through a mount.
type desk struct {
	*nfsclient.Client
	t   *testing.T
	v   *volume
	dir fs.Handle
}

func newDesk(t *testing.T, owner *fs.Cred) *desk {
	v := newVolume(t)
	d := &desk{Client: v.mount(), t: t, v: v}
	mode, group := uint32(0o775), uint32(0)
	n, err := d.Mkdir(root, d.Root(), []byte("desk"), &fs.SetAttr{Mode: &mode, UID: &owner.UID, GID: &group})
	d.is("MKDIR by root", err, nil)
	d.dir = n.Handle
	return d
}

func (d *desk) is(what string, err, want error) {
	d.t.Helper()
	if err != want {
		d.t.Fatalf("%s: %v, want %v", what, err, want)
	}
}

// names are those that READDIRPLUS lists, in pieces of such a size.
func (d *desk) names(c *fs.Cred, size int) (names []string) {
	d.t.Helper()
	for cookie, verf := uint64(0), uint64(0); ; {
		l, err := d.Readdir(c, d.dir, cookie, verf, true, fs.Limit{Bytes: size, Size: func(n int) int { return n + 200 }})
		d.is("READDIRPLUS", err, nil)
		for _, e := range l.Entries {
			names = append(names, string(e.Name))
			cookie = e.Cookie
		}
		if verf = l.Verf; l.EOF {
			return names
		}
	}
}

// TestMacOS: the group of the directory with every new file, exclusive creation followed by the
// attributes, a second file for what NFS has no place for, all bits of ACCESS.
func TestMacOS(t *testing.T) {
	user := &fs.Cred{UID: 501, GID: 20, GIDs: []uint32{12, 61, 80}}
	d := newDesk(t, user)
	for _, h := range []fs.Handle{d.Root(), d.dir} {
		_, _, err := d.Fsinfo(h)
		d.is("FSINFO", err, nil)
		_, _, err = d.Fsstat(h)
		d.is("FSSTAT", err, nil)
		_, _, err = d.Pathconf(h)
		d.is("PATHCONF", err, nil)
	}
	const all = 0x3f
	if granted, _, err := d.Access(user, d.dir, all); err != nil || granted&^all != 0 || granted&0x0f == 0 {
		t.Fatalf("ACCESS grants %#x of all bits, %v", granted, err)
	}
	for _, name := range []string{".DS_Store", "._.", ".hidden", "._note.txt", "note.txt"} {
		_, err := d.Lookup(user, d.dir, []byte(name))
		d.is("LOOKUP "+name, err, fs.ErrNoEnt)
	}

	// touch: the group is that of the directory, in which the user is not.
	mode, group := uint32(0o644), uint32(0)
	n, err := d.Create(user, d.dir, []byte("note.txt"), fs.Unchecked, &fs.SetAttr{Mode: &mode, GID: &group}, 0)
	d.is("CREATE with the directory's group", err, nil)
	if a, err := d.Getattr(n.Handle); err != nil || a.UID != user.UID {
		t.Fatalf("the new file belongs to %d, %v", a.UID, err)
	}
	// O_EXCL
	n, err = d.Create(user, d.dir, []byte("._note.txt"), fs.Exclusive, nil, 0x1234)
	d.is("exclusive CREATE", err, nil)
	again, err := d.Create(user, d.dir, []byte("._note.txt"), fs.Exclusive, nil, 0x1234)
	d.is("the same CREATE again", err, nil)
	if again.Handle != n.Handle {
		t.Fatal("an exclusive CREATE that is sent again makes another file")
	}
	_, err = d.Create(user, d.dir, []byte("._note.txt"), fs.Exclusive, nil, 0x5678)
	d.is("exclusive CREATE by another", err, fs.ErrExist)
	then := fs.Time{Sec: 1_700_000_000, Nsec: 5}
	_, err = d.Setattr(user, n.Handle,
		&fs.SetAttr{Mode: &mode, AtimeHow: fs.ClientTime, Atime: then, MtimeHow: fs.ClientTime, Mtime: then}, nil)
	d.is("SETATTR behind it", err, nil)
	if a, err := d.Getattr(n.Handle); err != nil || a.Mtime != then || a.Mode != mode {
		t.Fatalf("mtime %v, mode %o, %v", a.Mtime, a.Mode, err)
	}

	data := bytes.Repeat([]byte("resource"), 4<<10)
	for off := range uint64(4) {
		_, _, _, err := d.Write(user, n.Handle, off*uint64(len(data)), data, fs.Unstable)
		d.is("WRITE", err, nil)
	}
	_, err = d.Commit(n.Handle, 0, 0)
	d.is("COMMIT of all", err, nil)
	// The file that is removed while it is open.
	_, _, err = d.Rename(user, d.dir, []byte("._note.txt"), d.dir, []byte(".nfs.20051001.0002"))
	d.is("RENAME", err, nil)
	got, eof, _, err := d.Read(user, n.Handle, 3*uint64(len(data)), uint32(len(data)))
	if err != nil || !eof || !bytes.Equal(got, data) {
		t.Fatalf("READ by the old handle: %d bytes, %v, %v", len(got), eof, err)
	}
	if names := d.names(user, 32<<10); len(names) != 4 {
		t.Fatalf("READDIRPLUS lists %q", names)
	}
	_, err = d.Remove(user, d.dir, []byte(".nfs.20051001.0002"))
	d.is("REMOVE", err, nil)
	d.v.check()
}

// TestWindows: a user that is nobody, names that are looked for in another case, and sizes that are
// set before the data come.
func TestWindows(t *testing.T) {
	const minusTwo = 1<<32 - 2
	nobody := &fs.Cred{UID: minusTwo, GID: minusTwo}
	d := newDesk(t, nobody)
	_, err := d.Mkdir(nobody, d.Root(), []byte("New folder"), &fs.SetAttr{})
	d.is("MKDIR where nobody may", err, fs.ErrAcces)

	mode := uint32(0o755)
	n, err := d.Create(nobody, d.dir, []byte("Report.TXT"), fs.Unchecked, &fs.SetAttr{Mode: &mode}, 0)
	d.is("CREATE", err, nil)
	if a, err := d.Getattr(n.Handle); err != nil || a.UID != minusTwo {
		t.Fatalf("the new file belongs to %d, %v", a.UID, err)
	}
	_, err = d.Lookup(nobody, d.dir, []byte("report.txt"))
	d.is("LOOKUP in another case", err, fs.ErrNoEnt) // and so it looks at all names
	for _, size := range []int{1 << 10, 8 << 10, 64 << 10} {
		if names := d.names(nobody, size); len(names) != 3 || names[2] != "Report.TXT" {
			t.Fatalf("READDIRPLUS in pieces of %d lists %q", size, names)
		}
	}
	if p, _, err := d.Pathconf(d.dir); err != nil || p.CaseInsensitive || !p.CasePreserving {
		t.Fatalf("PATHCONF: %+v, %v", p, err)
	}

	size := uint64(100_000)
	_, err = d.Setattr(nobody, n.Handle, &fs.SetAttr{Size: &size}, nil)
	d.is("SETATTR of the size", err, nil)
	data := bytes.Repeat([]byte{'x'}, 32<<10)
	for off := uint64(0); off < size; off += uint64(len(data)) {
		part := data[:min(uint64(len(data)), size-off)]
		_, committed, _, err := d.Write(nobody, n.Handle, off, part, fs.FileSync)
		d.is("WRITE", err, nil)
		if committed != fs.FileSync {
			t.Fatalf("WRITE FILE_SYNC is %d", committed)
		}
	}
	got, eof, _, err := d.Read(nobody, n.Handle, 0, uint32(size)+1)
	if err != nil || !eof || !bytes.Equal(got, bytes.Repeat([]byte{'x'}, int(size))) {
		t.Fatalf("READ: %d bytes, %v, %v", len(got), eof, err)
	}
	// Saving: a new file takes the place of the old one.
	_, err = d.Create(nobody, d.dir, []byte("~WRL0001.tmp"), fs.Guarded, &fs.SetAttr{Mode: &mode}, 0)
	d.is("guarded CREATE", err, nil)
	_, _, err = d.Rename(nobody, d.dir, []byte("~WRL0001.tmp"), d.dir, []byte("Report.TXT"))
	d.is("RENAME over a file", err, nil)
	_, err = d.Getattr(n.Handle)
	d.is("GETATTR of the old file", err, fs.ErrStale)
	d.v.check()
}
