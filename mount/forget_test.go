//go:build linux

package mount

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
)

// emptyVolume is a volume in memory, of so many blocks.
func emptyVolume(t *testing.T, blocks uint64) disk.Disk {
	t.Helper()
	d := disk.NewMem(blocks * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Inodes: 256, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	return d
}

// closed closes a volume, which must be sound then, and returns how many files it keeps.
func closed(t *testing.T, d disk.Disk, v *fs.FS) (kept uint64) {
	t.Helper()
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := check.Volume(d, check.Options{Data: true})
	if err != nil || !r.Clean() {
		t.Fatalf("check: %v, %v", err, r.Problems)
	}
	return uint64(r.Kept)
}

// A mount that has the volume for itself is asked for no file that is opened or closed. What loses its last name lives
// until the kernel has forgotten it as often as it was told of it.
func TestForgotten(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	if st := k.Create(nil, &fuse.CreateIn{InHeader: atRoot, Mode: 0o644}, "f", &fuse.CreateOut{}); st != fuse.ENOSYS {
		t.Errorf("CREATE: %v", st)
	}
	before, err := v.Space()
	if err != nil {
		t.Fatal(err)
	}
	f := k.create("f")
	in := fuse.InHeader{NodeId: f}
	if st := k.Open(nil, &fuse.OpenIn{InHeader: in}, &fuse.OpenOut{}); st != fuse.ENOSYS {
		t.Errorf("OPEN: %v", st)
	}
	if k.lookup("f") != f {
		t.Error("another file")
	}
	k.unlink("f")
	k.write(f, "data")
	k.Forget(f, 1) // what it was told first
	var a fuse.AttrOut
	if k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: in}, &a)); a.Nlink != 0 || k.read(f) != "data" {
		t.Errorf("a file without a name: %d links, %q", a.Nlink, k.read(f))
	}
	k.Forget(f, 1)
	if _, st := k.Read(nil, &fuse.ReadIn{InHeader: in, Size: 10}, nil); st != fuse.Status(syscall.ESTALE) {
		t.Errorf("when it is forgotten: %v", st)
	}
	if s, err := v.Space(); err != nil || k.nodes.kept.kept != 0 || s.FreeFiles != before.FreeFiles {
		t.Errorf("%d files are kept, %d free, %v", k.nodes.kept.kept, s.FreeFiles, err)
	}

	// Closing is nothing, also of what comes opened.
	var tmp fuse.CreateOut
	k.ok("tmpfile", k.Tmpfile(nil, &fuse.CreateIn{InHeader: atRoot, Mode: 0o644}, &tmp))
	k.Release(nil, &fuse.ReleaseIn{InHeader: fuse.InHeader{NodeId: tmp.NodeId}})
	k.write(tmp.NodeId, "nameless")
	k.link(tmp.NodeId, "named")
	k.Forget(tmp.NodeId, 2)
	named := k.lookup("named")
	if k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: named}}, &a)); a.Nlink != 1 {
		t.Errorf("a file with one name: %d links", a.Nlink)
	}

	// The kernel may not say what it forgets at the end.
	k.create("last")
	k.unlink("last")
	k.until(func() {})
	if n := closed(t, d, v); n != 0 {
		t.Errorf("%d files are kept at the end", n)
	}
}

// What finds no room waits for what was removed before to be forgotten: whatever makes something new, or longer.
func TestRoomOfForgotten(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	kept := &k.nodes.kept
	head := func(ino uint64) fuse.InHeader { return fuse.InHeader{NodeId: ino} }
	file, names := k.create("file"), 0
	long := func() string { // a name; a block of a directory has room for few
		names++
		return fmt.Sprintf("%0255d", names)
	}
	many := func(do func() fuse.Status) (st fuse.Status) {
		for i := 0; i < 40 && st == fuse.OK; i++ {
			st = do()
		}
		return st
	}
	fill := func() { // the volume
		for size := 1 << 20; size >= 4096; size /= 2 {
			data := make([]byte, size)
			for st := fuse.OK; st == fuse.OK; {
				var a fuse.AttrOut
				k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: head(file)}, &a))
				_, st = k.Write(nil, &fuse.WriteIn{InHeader: head(file), Offset: a.Size}, data)
			}
		}
	}
	for what, grow := range map[string]func() fuse.Status{
		"write": func() fuse.Status {
			n, st := k.Write(nil, &fuse.WriteIn{InHeader: head(file), Offset: 1 << 30}, make([]byte, 100<<10))
			if st == fuse.OK && n != 100<<10 {
				t.Errorf("%d bytes were written", n)
			}
			return st
		},
		"mkdir": func() fuse.Status {
			return many(func() fuse.Status {
				return k.Mkdir(nil, &fuse.MkdirIn{InHeader: atRoot, Mode: 0o755}, long(), &fuse.EntryOut{})
			})
		},
		"link": func() fuse.Status {
			return many(func() fuse.Status {
				return k.Link(nil, &fuse.LinkIn{InHeader: atRoot, Oldnodeid: file}, long(), &fuse.EntryOut{})
			})
		},
		"rename": func() fuse.Status {
			return many(func() fuse.Status {
				k.Link(nil, &fuse.LinkIn{InHeader: atRoot, Oldnodeid: file}, "a", &fuse.EntryOut{})
				return k.Rename(nil, &fuse.RenameIn{InHeader: atRoot, Newdir: fuse.FUSE_ROOT_ID}, "a", long())
			})
		},
		"setxattr": func() fuse.Status {
			return k.SetXAttr(nil, &fuse.SetXAttrIn{InHeader: head(file)}, "user.a", []byte("value"))
		},
		"allocate": func() fuse.Status {
			return k.Fallocate(nil, &fuse.FallocateIn{InHeader: head(file), Offset: 1 << 31, Length: 100 << 10})
		},
		"zeros": func() fuse.Status {
			return k.Fallocate(nil, &fuse.FallocateIn{
				InHeader: head(file), Offset: 1 << 32, Length: 100 << 10, Mode: unix.FALLOC_FL_ZERO_RANGE,
			})
		},
	} {
		old := k.create("old")
		k.ok(what, k.Fallocate(nil, &fuse.FallocateIn{InHeader: head(old), Length: 1 << 20}))
		kept.patience, kept.fewer = time.Millisecond, nil
		fill()
		if st := grow(); st != fuse.Status(unix.ENOSPC) {
			t.Errorf("%s: %v on a full volume", what, st)
		}
		if kept.fewer != nil {
			t.Errorf("%s: waited for files that nobody keeps", what)
		}
		k.unlink("old")
		if st := grow(); st != fuse.Status(unix.ENOSPC) {
			t.Errorf("%s: %v while the file may be open", what, st)
		}
		kept.patience, kept.fewer = time.Minute, nil
		done := make(chan fuse.Status)
		go func() { done <- grow() }()
		for waits := false; !waits; { // for a file to be forgotten
			kept.mu.Lock()
			waits = kept.fewer != nil
			kept.mu.Unlock()
			select {
			case st := <-done:
				t.Fatalf("%s: %v before that", what, st)
			default:
			}
		}
		k.Forget(old, 1)
		if st := <-done; st != fuse.OK {
			t.Fatalf("%s: %v when it is forgotten", what, st)
		}
		cut := fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: head(file), Valid: fuse.FATTR_SIZE}}
		k.ok("cut", k.SetAttr(nil, &cut, &fuse.AttrOut{}))
	}
	if n := closed(t, d, v); n != 0 {
		t.Errorf("%d files are kept at the end", n)
	}
}

// A file that was made without a name, and got one, is a file like others: its links are told as they are.
func TestNamedLater(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	var made fuse.CreateOut
	k.ok("tmpfile", k.Tmpfile(nil, &fuse.CreateIn{InHeader: atRoot, Mode: 0o644}, &made))
	var out fuse.EntryOut
	k.ok("link", k.Link(nil, &fuse.LinkIn{InHeader: atRoot, Oldnodeid: made.NodeId}, "f", &out))
	var a fuse.AttrOut
	k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: made.NodeId}}, &a))
	if _, kept := k.nodes.isOpen(made.NodeId); kept || out.Nlink != 1 || a.Nlink != 1 {
		t.Errorf("kept: %v; it has %d links, and then %d", kept, out.Nlink, a.Nlink)
	}
	if n := closed(t, d, v); n != 0 {
		t.Errorf("%d files are kept", n)
	}
}
