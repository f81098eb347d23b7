//go:build linux

package mount

import (
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
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
	if n := closed(t, d, v); n != 0 {
		t.Errorf("%d files are kept", n)
	}
}
