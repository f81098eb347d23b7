//go:build linux

package mount

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

var copySeed = flag.Uint64("copies-seed", 0, "of the ranges that TestCopies copies; 0: another one each time")

// file is all that the kernel gets of a file.
func (k kernel) file(ino uint64, size int) []byte {
	k.t.Helper()
	var all []byte
	for len(all) < size {
		in := fuse.ReadIn{InHeader: fuse.InHeader{NodeId: ino}, Offset: uint64(len(all)), Size: maxIO}
		r, st := k.Read(nil, &in, nil)
		k.ok("read", st)
		b, _ := r.Bytes(nil)
		if all = append(all, b...); len(b) == 0 {
			break
		}
	}
	return all
}

// copy copies a range as copy_file_range(2) does, which comes again until nothing is copied. As the kernel does it asks
// for nothing behind the end that the first file has now: a copy within the file may move that.
func (k kernel) copy(from, to uint64, at, into, n int) {
	k.t.Helper()
	var a fuse.AttrOut
	k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: from}}, &a))
	n = min(n, int(a.Size)-at)
	for n > 0 {
		in := fuse.CopyFileRangeIn{
			InHeader: fuse.InHeader{NodeId: from}, NodeIdOut: to,
			OffIn: uint64(at), OffOut: uint64(into), Len: uint64(n),
		}
		done, st := k.CopyFileRange(nil, &in)
		if k.ok("copy", st); done == 0 {
			return
		}
		at, into, n = at+int(done), into+int(done), n-int(done)
	}
}

// Ranges of files are copied as bytes in memory are, whatever their ends, and also to another place of the same file.
func TestCopies(t *testing.T) {
	seed := *copySeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-copies-seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	d := emptyVolume(t, 40000)
	k, v := newKernel(t, d, true, false)
	files, models := []uint64{k.create("f"), k.create("g")}, [][]byte{make([]byte, 3*maxIO), nil}
	for i := range models[0] {
		models[0][i] = byte(random.Uint32())
	}
	for at := 0; at < len(models[0]); at += maxIO {
		in := fuse.WriteIn{InHeader: fuse.InHeader{NodeId: files[0]}, Offset: uint64(at)}
		if _, st := k.Write(nil, &in, models[0][at:at+maxIO]); st != fuse.OK {
			t.Fatal(st)
		}
	}
	for i := range 40 {
		from, to := random.IntN(2), random.IntN(2)
		at, into, n := random.IntN(len(models[0])), random.IntN(4*maxIO), 1+random.IntN(1<<random.IntN(22))
		switch i {
		case 0: // more than is read at once
			from, to, at, into, n = 0, 1, 5, 7, 2*maxIO+100
		case 1: // over the end, which is further on then, as often as it is asked for
			from, to, at, into, n = 0, 0, len(models[0])-100, len(models[0])+5000, 1000
		}
		if from == to && at < into+n && into < at+n { // the kernel refuses that
			continue
		}
		k.copy(files[from], files[to], at, into, n)
		part := models[from][min(at, len(models[from])):min(at+n, len(models[from]))]
		part = bytes.Clone(part)
		if len(part) > 0 && len(models[to]) < into+len(part) {
			models[to] = append(models[to], make([]byte, into+len(part)-len(models[to]))...)
		}
		copy(models[to][min(into, len(models[to])):], part)
		if got := k.file(files[to], len(models[to])); !bytes.Equal(got, models[to]) {
			t.Fatalf("%d bytes from %d of file %d at %d of file %d: wrong contents (%d bytes, want %d)",
				n, at, from, into, to, len(got), len(models[to]))
		}
	}
	closed(t, d, v)
}

// One request copies no more than a program can wait for, a signal ends it, and who may not leave setuid takes it away.
func TestCopyEnds(t *testing.T) {
	d := emptyVolume(t, 40000)
	k, v := newKernel(t, d, true, false)
	f, g := k.create("f"), k.create("g")
	in := fuse.InHeader{NodeId: f}
	size := fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{InHeader: in, Valid: fuse.FATTR_SIZE, Size: 1 << 30}}
	k.ok("extend", k.SetAttr(nil, &size, &fuse.AttrOut{}))
	all := fuse.CopyFileRangeIn{InHeader: in, NodeIdOut: g, Len: 1 << 40}
	if n, st := k.CopyFileRange(nil, &all); n != copyMax || st != fuse.OK {
		t.Errorf("a large copy: %d bytes, %v", n, st)
	}
	cancel := make(chan struct{})
	close(cancel)
	if n, st := k.CopyFileRange(cancel, &all); n != 0 || st != fuse.Status(syscall.EINTR) {
		t.Errorf("an interrupted copy: %d bytes, %v", n, st)
	}
	if interrupted(1) != fuse.OK {
		t.Error("a copy that was begun is not told")
	}
	far := all
	far.OffOut = 1 << 62
	if _, st := k.CopyFileRange(nil, &far); st != fuse.Status(syscall.EFBIG) {
		t.Errorf("beyond the longest file: %v", st)
	}
	for uid, want := range map[uint32]uint32{0: 0o4711, 7: 0o711} {
		mode := fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{
			InHeader: fuse.InHeader{NodeId: g}, Valid: fuse.FATTR_MODE, Mode: 0o4711,
		}}
		k.ok("chmod", k.SetAttr(nil, &mode, &fuse.AttrOut{}))
		one := fuse.CopyFileRangeIn{InHeader: in, NodeIdOut: g, Len: 1}
		one.Uid = uid
		if _, st := k.CopyFileRange(nil, &one); st != fuse.OK {
			t.Fatal(st)
		}
		var a fuse.AttrOut
		k.ok("getattr", k.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: g}}, &a))
		if a.Attr.Mode&0o7777 != want {
			t.Errorf("a copy of user %d into a file of mode 4711: %o", uid, a.Attr.Mode)
		}
	}
	closed(t, d, v)
}

// Few copies are made at a time, as each takes memory. Who waits for one can be interrupted.
func TestCopiesAtATime(t *testing.T) {
	d := emptyVolume(t, 6000)
	k, v := newKernel(t, d, true, false)
	f := k.create("f")
	var all [][]byte
	for range copiers {
		all = append(all, <-k.copying)
	}
	in := fuse.CopyFileRangeIn{InHeader: fuse.InHeader{NodeId: f}, NodeIdOut: f, Len: 1}
	stop := make(chan struct{})
	close(stop)
	if _, st := k.CopyFileRange(stop, &in); st != fuse.Status(syscall.EINTR) {
		t.Errorf("no memory is free: %v", st)
	}
	for _, b := range all {
		k.copying <- b
	}
	for range 2 * copiers {
		if _, st := k.CopyFileRange(nil, &in); st != fuse.OK {
			t.Errorf("copy: %v", st)
		}
	}
	closed(t, d, v)
}
