package nbd

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tansy/disk"
	"tansy/disk/disktest"
	"tansy/test/kit/nbdtest"
)

// device opens an export until the end of the test.
func device(t testing.TB, name string, o Options) *Device {
	t.Helper()
	d, err := Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestConformance runs the suite of all disks by servers of many kinds.
func TestConformance(t *testing.T) {
	for name, set := range map[string]func(*nbdtest.Server){
		"plain":          func(*nbdtest.Server) {},
		"with a name":    func(s *nbdtest.Server) { s.Export = "a/b c" },
		"small requests": func(s *nbdtest.Server) { s.Least, s.Preferred, s.Most = 512, 4096, 12<<10+512 },
		"single blocks":  func(s *nbdtest.Server) { s.Least, s.Preferred, s.Most = 4096, 4096, 4096 },
		"large requests": func(s *nbdtest.Server) { s.Least, s.Preferred, s.Most = 1, 4096, 1<<32-1 },
		"without GO":     func(s *nbdtest.Server) { s.NoGo = true },
		"with padding":   func(s *nbdtest.Server) { s.NoGo, s.OldFlags = true, true },
		"flush alone":    func(s *nbdtest.Server) { s.Flags = nbdtest.HasFlags | nbdtest.Flush },
		"a tail":         func(s *nbdtest.Server) { s.Tail = disk.BlockSize - 1 },
	} {
		t.Run(name, func(t *testing.T) {
			disktest.Run(t, func(t *testing.T) disk.Disk {
				var s nbdtest.Server
				set(&s)
				d, err := Open(s.Start(t, disk.NewSim(disktest.Blocks*disk.BlockSize)), Options{})
				must(t, err)
				return d
			})
		})
		t.Run("behind, "+name, func(t *testing.T) {
			disktest.Run(t, func(t *testing.T) disk.Disk {
				var s nbdtest.Server
				set(&s)
				d, err := Open(s.Start(t, disk.NewSim(disktest.Blocks*disk.BlockSize)), Options{WriteBehind: true})
				must(t, err)
				return d
			})
		})
	}
	t.Run("TCP", func(t *testing.T) {
		disktest.Run(t, func(t *testing.T) disk.Disk {
			var s nbdtest.Server
			address := s.Listen(t, disk.NewMem(disktest.Blocks*disk.BlockSize), "tcp", "127.0.0.1:0")
			d, err := Open("nbd://"+address.String(), Options{})
			must(t, err)
			return d
		})
	})
}

// TestManyInFlight: 64 requests wait for their replies at a time, no more, and the replies come in any order.
func TestManyInFlight(t *testing.T) {
	s := nbdtest.Server{}
	m := disk.NewMem(1000 * disk.BlockSize)
	want := disktest.Pattern(256, 3)
	must(t, m.WriteAt(0, want))
	name := s.Start(t, m)
	d := device(t, name, Options{})
	s.Gather(64) // replies to fewer than that are never sent
	var wg sync.WaitGroup
	for i := range uint64(256) {
		wg.Go(func() {
			got := disktest.Vector(1)
			if err := d.ReadAt(i, got); err != nil {
				t.Error(err)
			} else if !bytes.Equal(got[0], want[i]) {
				t.Errorf("block %d is another one", i)
			}
		})
	}
	wg.Wait()
	if n := s.InFlight(); n != 64 {
		t.Errorf("%d requests were in flight", n)
	}
}

// TestRequestSizes: no request is longer than the server takes, and none so long that it keeps others waiting.
func TestRequestSizes(t *testing.T) {
	for _, most := range []uint32{0, 5000, 1 << 16, 1<<32 - 1} {
		s := nbdtest.Server{Least: 1, Preferred: 4096, Most: most}
		d := device(t, s.Start(t, disk.NewMem(disktest.Blocks*disk.BlockSize)), Options{})
		bufs := disktest.Pattern(700, 1)
		must(t, d.WriteAt(5, bufs))
		must(t, d.ReadAt(5, bufs))
		limit := uint32(1 << 20)
		if most != 0 {
			limit = min(limit, most)
		}
		longest := uint32(0)
		for _, r := range s.Requests() {
			longest = max(longest, r.Length)
		}
		if longest > limit || longest+disk.BlockSize <= limit {
			t.Errorf("the longest request had %d bytes, where %d are taken", longest, most)
		}
	}
}

// TestErrors: an error of the server is that of the operation, and the connection goes on.
func TestErrors(t *testing.T) {
	f := disk.NewFault(disk.NewMem(100*disk.BlockSize), 1, nil)
	var s nbdtest.Server
	d := device(t, s.Start(t, f), Options{})
	for given, want := range map[error]error{
		syscall.EIO: syscall.EIO, syscall.ENOSPC: disk.ErrNoRoom, syscall.EPERM: syscall.EPERM,
		syscall.ENOMEM: syscall.ENOMEM,
		syscall.EINVAL: syscall.EINVAL, syscall.Errno(4711): syscall.EIO, syscall.ESHUTDOWN: syscall.ESHUTDOWN,
	} {
		f.SetPlan(disk.FailFrom(0, given))
		for _, err := range []error{d.ReadAt(7, disktest.Vector(1)), d.WriteAt(7, disktest.Vector(1)), d.Discard(7, 1)} {
			var e *disk.Error
			if !errors.Is(err, want) || !errors.As(err, &e) || e.Block != 7 || e.Path != d.Path() {
				t.Errorf("error %v for %v", err, given)
			}
		}
		f.SetPlan(nil)
		must(t, d.ReadAt(7, disktest.Vector(1)))
		must(t, d.WriteAt(7, disktest.Vector(1)))
		must(t, d.Check())
	}
	// Of a long transfer the error is that of the part that failed.
	f.SetPlan(func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Addr == 0 {
			return disk.Harm{}
		}
		return disk.Harm{Err: syscall.EIO}
	})
	d.most = 4
	var e *disk.Error
	if err := d.ReadAt(0, disktest.Vector(10)); !errors.As(err, &e) || e.Block != 4 {
		t.Errorf("error %v, want one of block 4", err)
	}
}

// TestFailedFlush: a barrier that failed is final, whatever the server says after that; so is a write with FUA.
func TestFailedFlush(t *testing.T) {
	for _, what := range []string{"flush", "FUA"} {
		f := disk.NewFault(disk.NewMem(100*disk.BlockSize), 1, nil)
		var s nbdtest.Server
		d := device(t, s.Start(t, f), Options{})
		step := func() error { return errors.Join(d.WriteAt(1, disktest.Vector(1)), d.Barrier()) }
		if what == "FUA" {
			must(t, step())
		}
		f.SetPlan(disk.FailFrom(0, syscall.EIO, disk.Barrier))
		if err := step(); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", what, err)
		}
		f.SetPlan(nil)
		for range 3 {
			must(t, d.WriteAt(1, disktest.Vector(1)))
			if err := d.Barrier(); !errors.Is(err, syscall.EIO) {
				t.Errorf("a barrier after a %s that failed: %v", what, err)
			}
		}
		must(t, d.ReadAt(1, disktest.Vector(1)))
	}
}

// TestLost: when the connection is lost, what is in flight fails, and all that comes after.
func TestLost(t *testing.T) {
	s := nbdtest.Server{}
	d := device(t, s.Start(t, disk.NewMem(100*disk.BlockSize)), Options{})
	s.Gather(100) // no reply any more
	before := len(s.Requests())
	var wg sync.WaitGroup
	lost := func(err error) {
		if !errors.Is(err, ErrDisconnected) || errors.Is(err, disk.ErrLost) {
			t.Errorf("error %v, want ErrDisconnected", err)
		}
	}
	for i := range 80 { // more than are in flight at a time
		wg.Go(func() {
			switch i % 3 {
			case 0:
				lost(d.ReadAt(1, disktest.Vector(2)))
			case 1:
				lost(d.WriteAt(1, disktest.Vector(2)))
			case 2:
				lost(d.Discard(1, 2))
			}
		})
	}
	for len(s.Requests()) < before+64 {
		runtime.Gosched()
	}
	s.HangUp()
	ended := make(chan struct{})
	go func() { wg.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("what is in flight does not end")
	}
	lost(d.ReadAt(1, disktest.Vector(2)))
	lost(d.WriteAt(1, disktest.Vector(2)))
	lost(d.Barrier())
	lost(d.Check())
	must(t, d.Close())
	<-d.n.received
	if err := d.ReadAt(1, disktest.Vector(1)); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestLostWithNothingToFlush: a barrier says that the connection is lost although there is nothing to flush.
func TestLostWithNothingToFlush(t *testing.T) {
	var s nbdtest.Server
	d := device(t, s.Start(t, disk.NewMem(100*disk.BlockSize)), Options{})
	must(t, d.Barrier())
	s.HangUp()
	<-d.n.received
	if err := d.Barrier(); !errors.Is(err, ErrDisconnected) {
		t.Error(err)
	}
}

// TestHangUp: the server hangs up after any number of bytes. Nothing hangs or is taken for read, and nothing is left.
func TestHangUp(t *testing.T) {
	opened := 0
	for n := 0; ; n++ {
		s := nbdtest.Server{Least: 1, Preferred: 1, Most: 9000,
			Conn: func(c net.Conn) net.Conn { return nbdtest.CutAfter(c, n) }}
		m := disk.NewMem(10 * disk.BlockSize)
		want := disktest.Pattern(4, 1)
		must(t, m.WriteAt(0, want))
		d, err := Open(s.Start(t, m), Options{})
		if err != nil {
			continue
		}
		opened++
		got := disktest.Vector(4)
		rerr, werr := d.ReadAt(0, got), d.WriteAt(4, want)
		berr := d.Barrier()
		if rerr == nil && !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("cut after %d bytes: another block was read", n)
		}
		for _, err := range []error{rerr, werr, berr} {
			if err != nil && !errors.Is(err, ErrDisconnected) {
				t.Fatalf("cut after %d bytes: %v", n, err)
			}
		}
		must(t, d.Close())
		<-d.n.received
		if rerr == nil && werr == nil && berr == nil {
			break
		}
		if opened > 40 { // most is data, where one byte is as the other
			n += 60
		}
	}
	if opened < 20 {
		t.Errorf("the export was opened %d times", opened)
	}
}

// TestHangUpAtRequest: the server hangs up in place of any reply. A barrier that succeeded has been one.
func TestHangUpAtRequest(t *testing.T) {
	for n := range 12 {
		sim := disk.NewSim(100 * disk.BlockSize)
		s := nbdtest.Server{}
		s.Reply = func(_ nbdtest.Request, reply []byte) []byte {
			if len(s.Requests()) > n {
				return nil
			}
			return reply
		}
		d, err := Open(s.Start(t, sim), Options{})
		if err != nil {
			continue
		}
		done := uint64(0)
		for ; d.WriteAt(done, disktest.Pattern(1, done)) == nil && d.Barrier() == nil; done++ {
		}
		must(t, d.Close())
		after := sim.Crash(disk.LoseAll)
		for a := range done {
			got := disktest.Vector(1)
			must(t, after.ReadAt(a, got))
			if !bytes.Equal(got[0], disktest.Pattern(1, a)[0]) {
				t.Errorf("hung up at request %d: block %d is lost", n, a)
			}
		}
	}
}

// TestMalformedReplies: a server that sends what the protocol forbids is not listened to any more.
func TestMalformedReplies(t *testing.T) {
	for what, harm := range map[string]func(reply []byte) []byte{
		"magic":            func(b []byte) []byte { b[0]++; return b },
		"structured reply": func(b []byte) []byte { return append([]byte{0x66, 0x8e, 0x33, 0xef}, b[4:]...) },
		"unknown handle":   func(b []byte) []byte { b[9]++; return b },
		"twice":            func(b []byte) []byte { return append(slices.Clone(b), b...) },
		"a byte more":      func(b []byte) []byte { return append(b, 0) },
		"empty":            func(b []byte) []byte { return nil },
	} {
		t.Run(what, func(t *testing.T) {
			var s nbdtest.Server
			s.Reply = func(r nbdtest.Request, reply []byte) []byte {
				if r.Command == nbdtest.Read {
					reply = harm(reply)
				}
				return reply
			}
			d := device(t, s.Start(t, disk.NewMem(100*disk.BlockSize)), Options{})
			var err error
			for err == nil {
				err = d.ReadAt(0, disktest.Vector(1))
			}
			if !errors.Is(err, ErrDisconnected) {
				t.Error(err)
			}
		})
	}
}

// TestRepliesTwice: a second reply to a request, for which nobody waits any more, is the end.
func TestRepliesTwice(t *testing.T) {
	s := nbdtest.Server{Reply: func(r nbdtest.Request, reply []byte) []byte {
		if r.Command == nbdtest.Write {
			reply = append(reply, reply...)
		}
		return reply
	}}
	d := device(t, s.Start(t, disk.NewMem(10*disk.BlockSize)), Options{})
	var err error
	for n := 0; n < 1000 && err == nil; n++ {
		err = d.WriteAt(1, disktest.Vector(1))
	}
	if !errors.Is(err, ErrDisconnected) {
		t.Error(err)
	}
}

// TestFlags: an export on which nothing could be known to be durable is refused, and so is one that can only be read,
// unless it is to be read.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		flags uint16
		wrong string // of opening for writing
		all   bool   // and for reading
	}{
		{nbdtest.All, "", false},
		{nbdtest.All &^ nbdtest.Flush, "FLUSH", false},
		{nbdtest.All | nbdtest.ReadOnly, "can only be read", false},
		{nbdtest.HasFlags | nbdtest.ReadOnly, "can only be read", false},
		{nbdtest.Flush, "protocol", true},
	} {
		s := nbdtest.Server{Flags: c.flags}
		m := disk.NewMem(100 * disk.BlockSize)
		want := disktest.Pattern(1, 5)
		must(t, m.WriteAt(3, want))
		name := s.Start(t, m)
		d, err := Open(name, Options{})
		if err == nil {
			d.Close()
		}
		if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("flags %#x: error %v", c.flags, err)
		}
		d, err = Open(name, Options{ReadOnly: true})
		if c.all {
			if err == nil {
				t.Errorf("flags %#x: opened", c.flags)
			}
			continue
		}
		must(t, err)
		got := disktest.Vector(1)
		must(t, d.ReadAt(3, got))
		if !bytes.Equal(got[0], want[0]) {
			t.Error("another block was read")
		}
		n := len(s.Requests())
		for _, err := range []error{d.WriteAt(3, got), d.Discard(3, 1), d.Barrier()} {
			if !errors.Is(err, disk.ErrReadOnly) {
				t.Errorf("error %v, want ErrReadOnly", err)
			}
		}
		if d.Discards() || len(s.Requests()) != n {
			t.Error("the server is asked to change what is opened for reading")
		}
		must(t, d.Close())
	}
}

// TestDiscard: what is discarded reads as zeros, and a server that cannot do that is not asked.
func TestDiscard(t *testing.T) {
	s := nbdtest.Server{Least: 1, Preferred: 1, Most: 10 * disk.BlockSize}
	d := device(t, s.Start(t, disk.NewSim(100*disk.BlockSize)), Options{})
	must(t, d.WriteAt(0, disktest.Pattern(50, 1)))
	must(t, d.Discard(10, 35))
	must(t, d.Discard(100, 0))
	got, want := disktest.Vector(50), disktest.Pattern(50, 1)
	must(t, d.ReadAt(0, got))
	for i := 10; i < 45; i++ {
		clear(want[i])
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Error("wrong blocks after a discard")
	}
	for _, n := range []uint64{51, 1 << 60, 1<<64 - 1} {
		if err := d.Discard(50, n); !errors.Is(err, disk.ErrRange) {
			t.Error(err)
		}
	}
	if !d.Discards() || s.Count(nbdtest.Zeroing) != 4 {
		t.Errorf("%d requests", s.Count(nbdtest.Zeroing))
	}
	none := nbdtest.Server{Flags: nbdtest.HasFlags | nbdtest.Flush | nbdtest.Trim}
	d = device(t, none.Start(t, disk.NewMem(100*disk.BlockSize)), Options{})
	if err := d.Discard(1, 1); !errors.Is(err, disk.ErrNoDiscard) || d.Discards() {
		t.Error(err)
	}
}

// TestCloseBesideRequests: what is in flight when the device is closed fails, and nothing is left.
func TestCloseBesideRequests(t *testing.T) {
	s := nbdtest.Server{}
	d := device(t, s.Start(t, disk.NewMem(100*disk.BlockSize)), Options{})
	s.Gather(100)
	before := len(s.Requests())
	var wg sync.WaitGroup
	for range 70 {
		wg.Go(func() {
			if err := d.ReadAt(1, disktest.Vector(1)); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		})
	}
	for len(s.Requests()) < before+64 {
		runtime.Gosched()
	}
	must(t, d.Close())
	wg.Wait()
	<-d.n.received
}

// deaf is a connection from which nothing is read any more once it is told so.
type deaf struct {
	net.Conn
	told, end chan struct{}
}

func (c deaf) Read(b []byte) (int, error) {
	select {
	case <-c.told:
		<-c.end
		return 0, net.ErrClosed
	default:
		return c.Conn.Read(b)
	}
}

// TestStalledServer: a server that takes nothing any more does not keep Close waiting.
func TestStalledServer(t *testing.T) {
	told, end := make(chan struct{}), make(chan struct{})
	s := nbdtest.Server{Conn: func(c net.Conn) net.Conn { return deaf{c, told, end} }}
	name := s.Start(t, disk.NewMem(disktest.Blocks*disk.BlockSize))
	defer close(end)
	d := device(t, name, Options{})
	close(told)
	done := make(chan error)
	go func() {
		for {
			if err := d.WriteAt(0, disktest.Vector(disktest.Blocks)); err != nil {
				done <- err
				return
			}
		}
	}()
	for d.n.sending.TryLock() { // until a send does not end
		d.n.sending.Unlock()
		runtime.Gosched()
	}
	must(t, d.Close())
	if err := <-done; !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestSettle: at the beginning there is a flush, so that nothing is recovered that can get lost; and it is not waited
// for for ever.
func TestSettle(t *testing.T) {
	var s nbdtest.Server
	sim := disk.NewSim(10 * disk.BlockSize)
	must(t, sim.WriteAt(1, disktest.Pattern(1, 1)))
	d := device(t, s.Start(t, sim), Options{})
	if len(sim.Pending()) > 0 {
		t.Error("what was written before is not durable")
	}
	if s.Count(nbdtest.Flushing) != 1 {
		t.Errorf("%d flushes", s.Count(nbdtest.Flushing))
	}
	s.Gather(100)
	if err := d.settle(1); !errors.Is(err, ErrDisconnected) {
		t.Error(err)
	}
}

// TestSilent: a server that says nothing, or not enough, is waited for for a while.
func TestSilent(t *testing.T) {
	for _, says := range []string{"", "NBDMAGIC", "NBDMAGICIHAVEOPT\x00\x03"} {
		path := t.TempDir() + "/nbd"
		l, err := net.Listen("unix", path)
		must(t, err)
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				c.Write([]byte(says))
			}
		}()
		if _, err := Open("nbd+unix:///?socket="+path, Options{Timeout: 20e6}); err == nil || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%q: %v", says, err)
		}
	}
}
