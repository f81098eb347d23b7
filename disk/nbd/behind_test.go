package nbd

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"syscall"
	"testing"

	"tansy/disk"
	"tansy/disk/disktest"
	"tansy/internal/gen/remote/remotewrites"
	"tansy/test/kit/nbdtest"
)

var behindAtOnce = int(remotewrites.BEHIND())

// TestWriteBehind: writes return when they are sent, and a barrier flushes when they have ended.
func TestWriteBehind(t *testing.T) {
	var s nbdtest.Server
	sim := disk.NewSim(100 * disk.BlockSize)
	d := device(t, s.Start(t, sim), Options{WriteBehind: true})
	s.Gather(100)
	want := disktest.Pattern(behindAtOnce-1, 1)
	for i := range want {
		must(t, d.WriteAt(uint64(i), want[i:i+1]))
	}
	before := s.Count(nbdtest.Flushing)
	result := make(chan error)
	go func() { result <- d.Barrier() }()
	for called := false; !called; runtime.Gosched() {
		d.writes.mu.Lock()
		called = d.writes.known.Since == 0
		d.writes.mu.Unlock()
	}
	for range 1000 {
		runtime.Gosched()
	}
	if n := s.Count(nbdtest.Flushing); n != before {
		t.Errorf("%d flushes before the writes had ended", n-before)
	}
	s.Gather(0)
	must(t, d.ReadAt(50, disktest.Vector(1))) // now all are answered
	must(t, <-result)
	if n := s.Count(nbdtest.Flushing); n != before+1 {
		t.Errorf("%d flushes, want 1", n-before)
	}
	got := disktest.Vector(behindAtOnce - 1)
	must(t, sim.Crash(disk.LoseAll).ReadAt(0, got))
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("block %d is lost", i)
		}
	}
	for i := range uint64(100) {
		must(t, d.WriteAt(i, disktest.Vector(1)))
	}
	must(t, d.Barrier())
	if n := s.InFlight(); n > behindAtOnce {
		t.Errorf("%d writes were under way", n)
	}
}

// slow holds writes of block 5 up until it is told not to.
type slow struct {
	disk.Disk
	go5 chan struct{}
}

func (s slow) WriteAt(a uint64, bufs [][]byte) error {
	if a == 5 {
		<-s.go5
	}
	return s.Disk.WriteAt(a, bufs)
}

// TestWriteBehindInOrder: what is written twice, or written and read, is so in this order; what lies elsewhere does not
// wait.
func TestWriteBehindInOrder(t *testing.T) {
	for what, second := range map[string]func(d *Device, b [][]byte) error{
		"write": func(d *Device, b [][]byte) error { return d.WriteAt(5, b) },
		"part":  func(d *Device, b [][]byte) error { return d.WriteAt(4, [][]byte{make([]byte, disk.BlockSize), b[0]}) },
		"zeros": func(d *Device, b [][]byte) error { clear(b[0]); return d.Discard(5, 1) },
		"read":  func(d *Device, b [][]byte) error { return d.ReadAt(5, b) },
	} {
		var s nbdtest.Server
		x := slow{disk.NewMem(10 * disk.BlockSize), make(chan struct{})}
		d := device(t, s.Start(t, x), Options{WriteBehind: true})
		must(t, d.WriteAt(5, disktest.Pattern(1, 1)))
		b := disktest.Pattern(1, 2)
		result := make(chan error)
		for s.Count(nbdtest.Write) == 0 {
			runtime.Gosched()
		}
		before := len(s.Requests())
		go func() { result <- second(d, b) }()
		must(t, d.WriteAt(7, disktest.Pattern(1, 3)))
		must(t, d.ReadAt(7, disktest.Vector(1)))
		for range 1000 {
			runtime.Gosched()
		}
		if n := len(s.Requests()); n != before+2 {
			t.Errorf("%s: %d requests, want 2", what, n-before)
		}
		close(x.go5)
		must(t, <-result)
		if what == "read" && !bytes.Equal(b[0], disktest.Pattern(1, 1)[0]) {
			t.Error("what was written is not read")
		}
		got := disktest.Vector(1)
		must(t, d.ReadAt(5, got))
		if !bytes.Equal(got[0], b[0]) {
			t.Errorf("%s: block 5 holds what was written before", what)
		}
	}
}

// TestWriteBehindFails: the error of a write that nobody waits for is that of all writes and barriers to come.
func TestWriteBehindFails(t *testing.T) {
	for given, want := range map[error]error{syscall.EIO: syscall.EIO, syscall.ENOSPC: disk.ErrNoRoom} {
		f := disk.NewFault(disk.NewMem(100*disk.BlockSize), 1, nil)
		var s nbdtest.Server
		d := device(t, s.Start(t, f), Options{WriteBehind: true})
		must(t, d.WriteAt(1, disktest.Vector(1)))
		must(t, d.WriteAt(2, disktest.Vector(1))) // so that the next one has no FUA
		must(t, d.Barrier())
		f.SetPlan(func(op disk.Op, _ *rand.Rand) disk.Harm {
			if op.Addr == 7 {
				return disk.Harm{Err: given}
			}
			return disk.Harm{}
		})
		must(t, d.WriteAt(7, disktest.Vector(1)))
		d.WriteAt(8, disktest.Vector(1)) // which may know of it already
		for range 3 {
			for _, err := range []error{d.Barrier(), d.WriteAt(9, disktest.Vector(1))} {
				var e *disk.Error
				if !errors.Is(err, want) || !errors.As(err, &e) || e.Op != "write" || e.Block != 7 {
					t.Errorf("after a write that failed with %v: %v", given, err)
				}
			}
			f.SetPlan(nil)
		}
	}
	var s nbdtest.Server
	d := device(t, s.Start(t, disk.NewMem(100*disk.BlockSize)), Options{WriteBehind: true})
	s.Gather(10)
	must(t, d.WriteAt(7, disktest.Vector(1)))
	s.HangUp()
	if err := d.Barrier(); !errors.Is(err, ErrDisconnected) {
		t.Errorf("a barrier after a write without an answer: %v", err)
	}
	if err := d.WriteAt(8, disktest.Vector(1)); !errors.Is(err, ErrDisconnected) {
		t.Errorf("a write after that: %v", err)
	}
}
