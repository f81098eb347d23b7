package ddisk

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// held is a disk whose operations of one kind wait: each says that it has come, and goes on when it is told.
type held struct {
	disk.Disk
	reads, writes, discards bool
	barrier                 error
	came, proceed           chan struct{}
	fail                    atomic.Bool // the next read fails
}

func hold(d disk.Disk) *held {
	return &held{Disk: d, came: make(chan struct{}, 100), proceed: make(chan struct{})}
}

func (h *held) wait() {
	h.came <- struct{}{}
	<-h.proceed
}

func (h *held) ReadAt(a uint64, bufs [][]byte) error {
	err := h.Disk.ReadAt(a, bufs) // it has found what it found before others change it
	if h.reads {
		h.wait()
	}
	if h.fail.CompareAndSwap(true, false) {
		return errors.New("boom")
	}
	return err
}

func (h *held) WriteAt(a uint64, bufs [][]byte) error {
	if h.writes {
		h.wait()
	}
	return h.Disk.WriteAt(a, bufs)
}

func (h *held) Discard(a, n uint64) error {
	if h.discards {
		h.wait()
	}
	return disk.Discard(h.Disk, a, n)
}

func (h *held) Barrier() error { return h.barrier }

// found is what a read found.
type found struct {
	ok bool
	l  *BList
}

func (f found) is(v byte) bool { return f.ok && f.l.Len() == 2 && *f.l.BlkAt(0) == *block(v) }

// reading begins to read blocks 3 and 4.
func reading(d *Disk) chan found {
	c := make(chan found, 1)
	go func() {
		ok, l := d.ReadRun(3, 2)
		c <- found{ok, l}
	}()
	return c
}

// waiting is how many wait for reads of others.
func waiting(d *Disk) (n int) {
	d.sharing.mu.Lock()
	defer d.sharing.mu.Unlock()
	for _, r := range d.sharing.reads {
		n += len(r.lists)
	}
	return n
}

// joins returns when one more than n wait for reads of others, or another one has come to the device: then it fails.
func (h *held) joins(t *testing.T, d *Disk, n int) {
	t.Helper()
	for waiting(d) == n {
		select {
		case <-h.came:
			t.Error("it reads")
			return
		default:
			runtime.Gosched()
		}
	}
}

// comes returns when one has come to the device, or waits for another: then it fails.
func (h *held) comes(t *testing.T, d *Disk) {
	t.Helper()
	for waiting(d) == 0 {
		select {
		case <-h.came:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("it waits for another's read")
}

// Who wants blocks that are being read does not read them, and has memory of its own.
func TestReadsAreShared(t *testing.T) {
	h := hold(disk.NewMem(10 * disk.BlockSize))
	d := New(h)
	d.Write(3, block(7))
	h.reads = true
	first := reading(d)
	<-h.came
	second := reading(d)
	h.joins(t, d, 0)
	third := reading(d)
	h.joins(t, d, 1)
	close(h.proceed)
	x, y, z := <-first, <-second, <-third
	if !x.is(7) || !y.is(7) || !z.is(7) {
		t.Fatal("not what was written")
	}
	clear(x.l.Take()) // as if it were used again
	if dbytes.RecycleBlks(y.l.Take()); !z.is(7) {
		t.Error("what one has done with its memory has changed what another one has")
	}
	if c := d.Counts(); c.Reads != 1 || c.ReadBlocks != 2 || c.SharedReads != 2 {
		t.Errorf("%+v", c)
	}
	if len(d.sharing.reads) != 0 {
		t.Error("a read that is over is still there")
	}
}

// Other blocks, though some be the same, are read.
func TestOtherReadsAreNotShared(t *testing.T) {
	h := hold(disk.NewMem(10 * disk.BlockSize))
	d := New(h)
	h.reads = true
	first := reading(d)
	<-h.came
	go d.ReadRun(3, 1)
	h.comes(t, d)
	go d.ReadRun(2, 2)
	h.comes(t, d)
	close(h.proceed)
	<-first
}

// A read that failed is nothing to who has waited for it.
func TestFailedReadsAreNotShared(t *testing.T) {
	h := hold(disk.NewMem(10 * disk.BlockSize))
	d := New(h)
	d.Write(3, block(7))
	h.reads = true
	h.fail.Store(true)
	first := reading(d)
	<-h.came
	second := reading(d)
	h.joins(t, d, 0)
	close(h.proceed)
	if f := <-first; f.ok {
		t.Error("a failed read succeeds")
	}
	if f := <-second; !f.is(7) {
		t.Error("and others have failed with it")
	}
	if c := d.Counts(); c.SharedReads != 0 {
		t.Errorf("%+v", c)
	}
}

// What has begun to change since a read began, or was being changed then, is read anew.
func TestReadsAreNotSharedAcrossChanges(t *testing.T) {
	changes := map[string]func(*Disk){
		"a write":           func(d *Disk) { d.Write(3, block(8)) },
		"a write of others": func(d *Disk) { d.Write(9, block(8)) },
		"a discard":         func(d *Disk) { d.Spare(3, 1); d.Write(3, dbytes.ZeroBlk()); d.Unspare() },
		"what is forgotten": func(d *Disk) { d.Forget(3, 2) },
		"a failed barrier":  func(d *Disk) { d.Barrier() },
	}
	for name, change := range changes {
		h := hold(disk.NewMem(10 * disk.BlockSize))
		d := New(h)
		d.Write(3, block(7))
		h.reads = true
		h.barrier = errors.New("boom")
		first := reading(d)
		<-h.came
		change(d)
		second := reading(d)
		h.comes(t, d)
		close(h.proceed)
		<-first
		if f := <-second; !f.ok {
			t.Errorf("%s: %v", name, d.ReadErr())
		}
		if c := d.Counts(); c.Reads != 2 || c.SharedReads != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestReadsAreNotSharedDuringChanges(t *testing.T) {
	for name, change := range map[string]func(*held, *Disk){
		"a write":   func(h *held, d *Disk) { h.writes = true; d.Write(3, block(8)) },
		"a discard": func(h *held, d *Disk) { h.discards = true; d.Spare(3, 1); d.Write(3, dbytes.ZeroBlk()) },
	} {
		h := hold(disk.NewMem(10 * disk.BlockSize))
		d := New(h)
		ended := make(chan struct{})
		go func() { change(h, d); close(ended) }()
		<-h.came
		h.reads = true
		first := reading(d)
		<-h.came
		second := reading(d)
		h.comes(t, d)
		close(h.proceed)
		<-ended
		<-first
		<-second
		if c := d.Counts(); c.Reads != 2 || c.SharedReads != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// dawdling is a disk on which others run between what an operation does to one block and the next.
type dawdling struct{ disk.Disk }

func dawdle(n uint32) {
	for range n {
		runtime.Gosched()
	}
}

func (d dawdling) ReadAt(a uint64, bufs [][]byte) error {
	dawdle(rand.Uint32N(4))
	err := d.Disk.ReadAt(a, bufs)
	dawdle(rand.Uint32N(20))
	return err
}

func (d dawdling) WriteAt(a uint64, bufs [][]byte) error {
	dawdle(rand.Uint32N(4))
	err := d.Disk.WriteAt(a, bufs)
	dawdle(rand.Uint32N(4))
	return err
}

// Whatever many readers and a writer do: nobody reads what was overwritten before it came, nor what is older than what
// it has read.
func TestSharedReadsAreNotOld(t *testing.T) {
	d := New(dawdling{disk.NewMem(4 * disk.BlockSize)})
	var written atomic.Uint32
	var stop atomic.Bool
	var writer, readers sync.WaitGroup
	writer.Go(func() {
		for v := uint32(1); !stop.Load(); v++ {
			b := dbytes.NewBytes(dbytes.BlkSize)
			b.PutU32(0, v)
			d.Write(1, dbytes.Freeze(b))
			written.Store(v)
			dawdle(rand.Uint32N(60))
		}
	})
	for range 8 {
		readers.Go(func() {
			last := uint32(0)
			for range 3000 {
				least := max(written.Load(), last)
				_, l := d.ReadRun(1, 1)
				if last = l.BlkAt(0).U32(0); last < least {
					t.Errorf("%d read after %d", last, least)
					return
				}
			}
		})
	}
	readers.Wait()
	stop.Store(true)
	writer.Wait()
	if shared := d.Counts().SharedReads; shared < 100 {
		t.Errorf("only %d reads shared", shared)
	}
}
