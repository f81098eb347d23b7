package dtxn

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"tansy/disk"
	"tansy/internal/runtime/dbytes"
)

// lostBarrier is a device whose barriers, once armed, wait for go and then fail.
type lostBarrier struct {
	disk.Disk
	entered, leave chan struct{} // nil: not armed
}

func (d *lostBarrier) Barrier() error {
	if d.entered == nil {
		return d.Disk.Barrier()
	}
	d.entered <- struct{}{}
	<-d.leave
	return errors.New("no power")
}

// A transaction that ends in an error tells about what it saw, too: that a name
// is gone, say. So Run waits for what it saw, and does not tell when that is lost.
func TestErrorsWaitForWhatWasSeen(t *testing.T) {
	gone := errors.New("it is gone")
	for name, then := range map[string]func(x *Txn) error{
		"its own": func(*Txn) error { return gone },
		"too large": func(x *Txn) error {
			for i := range uint64(MaxBlocks + 1) {
				x.WriteBlock(data+1+i, dbytes.NewBytes(4096))
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { seenIsLost(t, then) })
	}
}

// seenIsLost runs a transaction that ends in an error of then, while what it saw gets lost.
func seenIsLost(t *testing.T, then func(x *Txn) error) {
	d := &lostBarrier{Disk: disk.NewMem((memLog + size) * disk.BlockSize)}
	s, err := newOn(d, layout)
	must(t, err)
	d.entered, d.leave = make(chan struct{}, 100), make(chan struct{})
	wrote, told, seen := make(chan error), make(chan error, 1), make(chan struct{})
	go func() {
		wrote <- s.Run(true, false, func(x *Txn) error {
			x.WriteBlock(data, dbytes.NewBytes(4096))
			return nil
		})
	}()
	<-d.entered // committed in memory, and not durable
	go func() {
		told <- s.Run(false, false, func(x *Txn) error {
			x.ReadBlock(data, false)
			close(seen)
			return then(x)
		})
	}()
	<-seen
	for s.held() != 0 { // it has not ended
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-told:
		t.Errorf("it has not waited: %v", err)
		close(d.leave)
	case <-time.After(10 * time.Millisecond):
		close(d.leave)
		if err := <-told; !errors.Is(err, ErrIO) {
			t.Errorf("what was seen is lost, but the result is %v", err)
		}
	}
	if err := <-wrote; !errors.Is(err, ErrIO) {
		t.Errorf("a write that is lost: %v", err)
	}
	// What was not written by others is told without waiting.
	mine := errors.New("mine")
	err = s.Run(false, true, func(x *Txn) error {
		x.ReadBlock(data+1, false)
		return mine
	})
	if err != mine {
		t.Error(err)
	}
	if err := s.Close(); err == nil {
		t.Error("closed without an error")
	}
}

// A block that cannot be read is an error that names it, and no more: the others
// can still be read and written.
func TestReadError(t *testing.T) {
	f := disk.NewFault(disk.NewMem((memLog+size)*disk.BlockSize), 1, nil)
	s, err := newOn(f, layout)
	must(t, err)
	bad := errors.New("bad block")
	f.SetPlan(func(op disk.Op, _ *rand.Rand) (h disk.Harm) {
		if op.Kind == disk.Read && op.Addr == memLog+data {
			h.Err = bad
		}
		return h
	})
	err = s.Run(true, false, func(x *Txn) error {
		x.WriteBit(blockMap, 7, true)
		x.ReadBlock(data, false)
		return nil
	})
	if !errors.Is(err, ErrIO) || !errors.Is(err, bad) {
		t.Errorf("a block that cannot be read: %v", err)
	}
	must(t, s.Run(true, false, func(x *Txn) error {
		if x.ReadBit(blockMap, 7, true) {
			t.Error("the aborted write is there")
		}
		x.WriteBlock(data+1, dbytes.NewBytes(4096))
		return nil
	}))
	if s.held() != 0 {
		t.Error("locks are left")
	}
	must(t, s.Close())
}
