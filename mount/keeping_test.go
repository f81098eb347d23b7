//go:build linux

package mount

import (
	"slices"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/fs"
)

// The kernel keeps attributes for long, but for those of a file whose blocks are still being given back.
func TestAttributesKept(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	f := k.create("f")
	in := fuse.InHeader{NodeId: f}
	k.ok("allocate", k.Fallocate(nil, &fuse.FallocateIn{InHeader: in, Length: 4 << 20}))
	cut := func(to uint64) fuse.AttrOut {
		t.Helper()
		var out fuse.AttrOut
		how := fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: in, Valid: fuse.FATTR_SIZE, Size: to}}
		k.ok("cut", k.SetAttr(nil, &how, &out))
		return out
	}
	now := func() (asked, lookedUp time.Duration) {
		t.Helper()
		var a fuse.AttrOut
		k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: in}, &a))
		var e fuse.EntryOut
		k.ok("lookup", k.Lookup(nil, &atRoot, "f", &e))
		return a.Timeout(), time.Duration(e.AttrValid)*time.Second + time.Duration(e.AttrValidNsec)
	}
	want := func(what string, want time.Duration) {
		t.Helper()
		if a, b := now(); a != want || b != want {
			t.Errorf("%s: kept for %v and %v, want %v", what, a, b, want)
		}
	}
	ago := func(d time.Duration, used uint64) {
		k.nodes.with(f, func(x *node) { x.cut, x.used = time.Now().Add(-d), used })
	}
	want("at first", attrTimeout)
	const size = 4<<20 - cutAtOnce
	if a := cut(size); a.Timeout() != attrTimeout || a.Blocks != size/512 {
		t.Errorf("cut by a little: kept for %v, %d blocks", a.Timeout(), a.Blocks)
	}
	if a := cut(8192); a.Timeout() != cutTimeout {
		t.Errorf("cut by much: kept for %v", a.Timeout())
	}
	k.fsync()
	want("after that", cutTimeout)
	ago(givesBack, 8192)
	want("long after that", attrTimeout)
	ago(givesBack, 16384)
	want("when blocks have gone since", cutTimeout)
	var dir fuse.AttrOut
	if k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: atRoot}, &dir)); dir.Timeout() != dirTimeout {
		t.Errorf("those of a directory are kept for %v", dir.Timeout())
	}
	if n := closed(t, d, v); n != 0 {
		t.Errorf("%d files are kept", n)
	}
}

// After a call that changes a file, and does not say what its attributes are now, the kernel asks for them, and takes
// no answer to what it asked before.
func TestAttributesForgotten(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	f, g := k.create("f"), k.create("g")
	var forgotten []uint64
	k.forget = func(id uint64, from, _ int64) fuse.Status {
		if from < 0 { // the attributes alone
			forgotten = append(forgotten, id)
		}
		return fuse.OK
	}
	file := fuse.InHeader{NodeId: f}
	rename := func(from, to string, flags uint32) fuse.Status {
		return k.Rename(nil, &fuse.RenameIn{InHeader: atRoot, Newdir: k.root.Ino, Flags: flags}, from, to)
	}
	var out fuse.EntryOut
	for _, c := range []struct {
		what string
		do   func() fuse.Status
		of   []uint64
	}{
		{"link", func() fuse.Status {
			return k.Link(nil, &fuse.LinkIn{InHeader: atRoot, Oldnodeid: f}, "f2", &out)
		}, []uint64{f}},
		{"unlink", func() fuse.Status { return k.Unlink(nil, &atRoot, "f2") }, []uint64{f}},
		{"rename", func() fuse.Status { return rename("f", "f3", 0) }, []uint64{f}},
		{"exchange", func() fuse.Status { return rename("f3", "g", renameExchange) }, []uint64{g, f}},
		{"set", func() fuse.Status {
			return k.SetXAttr(nil, &fuse.SetXAttrIn{InHeader: file}, "user.a", []byte("1"))
		}, []uint64{f}},
		{"remove", func() fuse.Status { return k.RemoveXAttr(nil, &file, "user.a") }, []uint64{f}},
		{"allocate", func() fuse.Status {
			return k.Fallocate(nil, &fuse.FallocateIn{InHeader: file, Length: 4096})
		}, []uint64{f}},
		{"copy", func() fuse.Status {
			_, st := k.CopyFileRange(nil, &fuse.CopyFileRangeIn{InHeader: file, NodeIdOut: g, Len: 4096})
			return st
		}, []uint64{g}},
		{"replace", func() fuse.Status { return rename("f3", "g", 0) }, []uint64{f, g}},
		{"unlink an open one", func() fuse.Status { return k.Unlink(nil, &atRoot, "g") }, []uint64{g}},
	} {
		forgotten = nil
		k.ok(c.what, c.do())
		if !slices.Equal(forgotten, c.of) {
			t.Errorf("%s: the kernel forgets attributes of %v, not of %v", c.what, forgotten, c.of)
		}
	}
	k.Forget(f, 1000)
	k.Forget(g, 1000)
	closed(t, d, v)
}

// Who writes to a file and may not leave its setuid and setgid takes them away; but setgid that lets nobody run anything
// stays if it is root, or somebody of the group.
func TestWithoutPrivileges(t *testing.T) {
	caller := func(uid, gid uint32) fuse.Caller { return fuse.Caller{Owner: fuse.Owner{Uid: uid, Gid: gid}} }
	for _, c := range []struct {
		mode, want uint32
		who        fuse.Caller
	}{
		{0o6755, 0o755, caller(0, 0)},
		{0o6745, 0o2745, caller(0, 0)},
		{0o6745, 0o2745, caller(7, 5)},
		{0o6745, 0o745, caller(7, 7)},
		{0o755, 0o755, caller(7, 7)},
	} {
		if mode := withoutPrivileges(&fs.Attr{Mode: c.mode, GID: 5}, c.who); mode != c.want {
			t.Errorf("%o, written to by %v: %o, want %o", c.mode, c.who.Owner, mode, c.want)
		}
	}
}
