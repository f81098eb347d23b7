package fs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// moment is v as it is now.
func moment(t *testing.T, v *fs.FS) *fs.Moment {
	t.Helper()
	w, err := v.Moment(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// do carries operations out, one after the other.
func do(t *testing.T, v *fs.FS, ops ...op) {
	t.Helper()
	for _, o := range ops {
		if err := o.do(v); err != nil {
			t.Fatalf("%s: %v", o.what, err)
		}
	}
}

// A taken moment, and between which events it was taken.
type taken struct {
	*fs.Moment
	from, to uint64
}

// runBy is run, with the numbers of events in the place of device operations.
func (h *history) runBy(t *testing.T, events *atomic.Uint64, v *fs.FS, ops []op) {
	h.states = []string{tree(t, v, h.dir)}
	for _, o := range ops {
		h.begun = append(h.begun, events.Add(1))
		if err := o.do(v); err != nil {
			t.Errorf("%s: %v", o.what, err)
			return
		}
		h.acked = append(h.acked, events.Add(1))
		h.what = append(h.what, o.what)
		h.states = append(h.states, tree(t, v, h.dir))
	}
}

// mayBe tells whether a state is one that a moment may have that was taken between two events: all that was
// acknowledged before is there, and nothing that began behind it.
func (h *history) mayBe(state string, from, to uint64) bool {
	lo, hi := 0, 0
	for i := range h.acked {
		if h.acked[i] <= from {
			lo = i + 1
		}
		if h.begun[i] <= to {
			hi = i + 1
		}
	}
	for i := lo; i <= hi && i < len(h.states); i++ {
		if h.states[i] == state {
			return true
		}
	}
	return false
}

// Moments that are taken while clients change everything have all that was acknowledged before, and nothing that began
// later; their layout at rest is without fault. They stay so when all of that has been overwritten and removed.
func TestMomentUnderLoad(t *testing.T) {
	r := random(t)
	const clients = 3
	d := disk.NewMem(8000 * disk.BlockSize)
	mkfs(t, d, fs.MkfsOptions{Inodes: 256, Zeroed: true})
	v := open(t, d, fs.Options{
		Clock: fixed, Discard: true, Moments: disk.MomentOptions{Memory: 1 << 20, Dir: t.TempDir()},
	})
	var events atomic.Uint64
	var hs []*history
	var working sync.WaitGroup
	for i := range clients {
		h := &history{dir: client(i)}
		do(t, v, opMkdir(h.dir))
		hs = append(hs, h)
		ops := append(append(workload(h.dir), bulk(r, h.dir, 3, 25)...), opMkdir(h.dir+"/again"))
		ops = append(ops, workload(h.dir+"/again")...)
		working.Go(func() { h.runBy(t, &events, v, ops) })
	}
	over := make(chan struct{})
	go func() {
		working.Wait()
		close(over)
	}()
	var moments []taken
	for at := uint64(0); ; {
		select {
		case <-over:
		default:
			if now := events.Load(); now >= at { // a moment now and then
				at = now + 40
				from := events.Add(1)
				w := moment(t, v)
				moments = append(moments, taken{w, from, events.Add(1)})
				mustCheck(t, w.AtRest())
			}
			runtime.Gosched()
			continue
		}
		break
	}
	for i, w := range moments {
		for _, h := range hs {
			if !h.mayBe(tree(t, w.FS, h.dir), w.from, w.to) {
				t.Errorf("moment %d has a state of %s that it may not have", i, h.dir)
			}
		}
		mustCheck(t, w.AtRest())
		closeMoment(t, w.Moment)
	}
	if n := v.Moments(); len(moments) < 3 || n != (fs.Moments{}) {
		t.Errorf("of %d moments there is left %+v", len(moments), n)
	}
	closeFS(t, v)
	mustCheck(t, d)
}

func closeMoment(t *testing.T, w *fs.Moment) {
	t.Helper()
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// copied is a device with all that d holds.
func copied(t *testing.T, d disk.Disk) *disk.Mem {
	t.Helper()
	m := disk.NewMem(d.Size() * disk.BlockSize)
	b := [][]byte{make([]byte, disk.BlockSize)}
	for a := range d.Size() {
		if err := errors.Join(d.ReadAt(a, b), m.WriteAt(a, b)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// The layout at rest, copied, is a volume with all that the moment has; it needs no recovery, and can be used. It is so
// for volumes that can grow as well, also when they have grown since.
func TestMomentCopied(t *testing.T) {
	for _, grows := range []bool{false, true} {
		d := disk.NewMem(24 << 20)
		if grows {
			growable(t, d, 12<<20/disk.BlockSize, fs.MkfsOptions{})
		} else {
			mkfs(t, d, fs.MkfsOptions{})
		}
		v := open(t, d, fs.Options{Clock: fixed})
		do(t, v, opMkdir("/a"), opCreate("/a/f"), opWrite("/a/f", 0, 200000, fs.FileSync),
			opWrite("/a/f", 5000, 3000, fs.Unstable))
		want := tree(t, v, "/")
		w := moment(t, v)
		later := func() {
			do(t, v, opWrite("/a/f", 0, 300000, fs.FileSync), opRemove("/a/f"), opRmdir("/a"), opCreate("/b"),
				opWrite("/b", 0, 1<<20, fs.FileSync))
		}
		later()
		if grows {
			grow(t, v, fs.GrowOptions{})
			do(t, v, opRemove("/b"), opMkdir("/a"), opCreate("/a/f"))
			later()
		}
		image := copied(t, w.AtRest())
		mustCheck(t, image)
		again := open(t, image, fs.Options{Clock: fixed})
		if got := tree(t, again, "/"); got != want || tree(t, w.FS, "/") != want {
			t.Errorf("grows %v: the moment has\n%sand its copy\n%s, not\n%s", grows, tree(t, w.FS, "/"), got, want)
		}
		do(t, again, opWrite("/a/f", 100000, 300000, fs.FileSync))
		closeFS(t, again)
		mustCheck(t, image)
		ofView := moment(t, w.FS) // of one that changes no more
		if tree(t, ofView.FS, "/") != want {
			t.Error("a moment of a moment is another")
		}
		closeMoment(t, ofView)
		closeMoment(t, w)
		closeFS(t, v)
	}
}

// reads counts the blocks that are read.
type reads struct {
	disk.Disk
	blocks atomic.Uint64
}

func (d *reads) ReadAt(a uint64, bufs [][]byte) error {
	d.blocks.Add(uint64(len(bufs)))
	return d.Disk.ReadAt(a, bufs)
}

// What is written to the log, and to blocks that are free in a moment, is neither read before nor kept. What is
// overwritten is.
func TestMomentKeeps(t *testing.T) {
	d := &reads{Disk: patterned(t, 64<<20/disk.BlockSize)}
	mkfs(t, d, fs.MkfsOptions{})
	v := open(t, d, fs.Options{})
	do(t, v, opCreate("/old"), opWrite("/old", 0, 1<<20, fs.FileSync), opCreate("/new"))
	w := moment(t, v)
	before := d.blocks.Load()
	for i := range uint64(16) {
		do(t, v, opWrite("/new", i<<20, 1<<20, fs.FileSync), opWrite("/new", i<<20, 100, fs.FileSync))
	}
	if n, k := d.blocks.Load()-before, v.Moments(); n > 320 || k.Open != 1 || k.Memory > 1<<20 {
		t.Errorf("for 4096 new blocks %d were read, and %+v", n, k)
	}
	do(t, v, opRemove("/new"), opWrite("/old", 0, 1<<20, fs.FileSync))
	if err := v.Sync(); err != nil {
		t.Fatal(err)
	}
	h, err := find(w.FS, "/old")
	if err != nil {
		t.Fatal(err)
	}
	if b, _, _, err := w.Read(root, h, 1<<19, 10); err != nil || len(b) != 10 {
		t.Errorf("%d bytes: %v", len(b), err)
	}
	closeMoment(t, w)
	closeFS(t, v)
}

// A moment is lost, and the service is not, when there is no room for what is overwritten.
func TestMomentLost(t *testing.T) {
	d := disk.NewMem(64 << 20)
	mkfs(t, d, fs.MkfsOptions{})
	v := open(t, d, fs.Options{Moments: disk.MomentOptions{Memory: 1 << 16, Spill: 1 << 16, Dir: t.TempDir()}})
	do(t, v, opCreate("/f"), opWrite("/f", 0, 1<<20, fs.FileSync))
	w := moment(t, v)
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	do(t, v, opRemove("/f"), opCreate("/g"))
	for i := 0; w.Err() == nil; i++ {
		if i == 1000 {
			t.Fatal("nothing that the moment needs was overwritten")
		}
		do(t, v, opWrite("/g", uint64(i)<<16, 1<<16, fs.FileSync))
	}
	h, err := find(v, "/g")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.AtRest().ReadAt(0, [][]byte{make([]byte, disk.BlockSize)}); !errors.Is(err, disk.ErrMomentLost) {
		t.Errorf("the layout at rest: %v", err)
	}
	if _, err := v.Getattr(h); err != nil {
		t.Error(err)
	}
	closeMoment(t, w)
	closeFS(t, v)
	mustCheck(t, d)
}

// What nobody may do with a moment is refused, and so is a moment that comes too late; one that was open is lost with
// the volume.
func TestMomentRefused(t *testing.T) {
	d := disk.NewMem(24 << 20)
	mkfs(t, d, fs.MkfsOptions{})
	v := open(t, d, fs.Options{})
	w := moment(t, v)
	if err := opCreate("/f").do(w.FS); !errors.Is(err, fs.ErrROFS) {
		t.Errorf("a moment was changed: %v", err)
	}
	rest := w.AtRest()
	block := [][]byte{make([]byte, disk.BlockSize)}
	for what, err := range map[string]error{"write": rest.WriteAt(0, block), "barrier": rest.Barrier()} {
		if !errors.Is(err, disk.ErrReadOnly) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(rest.Close(), rest.ReadAt(0, block)); err != nil {
		t.Errorf("closed with the moment alone: %v", err)
	}
	disk.Release(rest, 0, 1)
	if err := rest.ReadAt(0, block); err != nil || !bytes.Equal(block[0], make([]byte, disk.BlockSize)) {
		t.Errorf("what was released is there: %v", err)
	}
	ctx, end := context.WithCancel(context.Background())
	end()
	if _, err := v.Moment(ctx); !errors.Is(err, context.Canceled) || v.Moments().Open != 1 {
		t.Errorf("nobody waits for it: %v, %+v", err, v.Moments())
	}
	closeFS(t, v)
	if _, err := v.Moment(context.Background()); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("of a volume that is closed: %v", err)
	}
	if err := w.Err(); !errors.Is(err, disk.ErrMomentLost) || !errors.Is(err, fs.ErrClosed) {
		t.Errorf("the moment is not lost with the volume: %v", err)
	}
	closeMoment(t, w)
}

// Where something else came to the device than the moment has, a read of it fails: it never returns what is later, or
// of another.
func TestMomentOfAnother(t *testing.T) {
	d := disk.NewMem(24 << 20)
	mkfs(t, d, fs.MkfsOptions{})
	v := open(t, d, fs.Options{Log: slog.New(slog.DiscardHandler)})
	do(t, v, opCreate("/f"))
	for i := range 30 { // more than the cache of a moment has read so far
		do(t, v, opWrite("/f", uint64(i)<<17, 1<<17, fs.FileSync))
	}
	h, err := find(v, "/f")
	if err != nil {
		t.Fatal(err)
	}
	w := moment(t, v)
	for a := range d.Size() { // below what keeps the old contents
		b := [][]byte{make([]byte, disk.BlockSize)}
		if err := d.ReadAt(a, b); err != nil {
			t.Fatal(err)
		}
		b[0][100]++
		if err := d.WriteAt(a, b); err != nil {
			t.Fatal(err)
		}
	}
	failed := 0
	for i := range 30 {
		if _, _, _, err := w.Read(root, h, uint64(i)<<17, 1<<17); err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("what the moment has not written was read")
	}
	closeMoment(t, w)
}
