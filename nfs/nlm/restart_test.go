package nlm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/nlm"
	"tansy/nfs/reclaim"
)

// forever is a grace period that no test sees the end of.
const forever = time.Hour

// openVolume opens a volume on a device, which it makes if there is none.
func openVolume(t *testing.T, d disk.Disk, o fs.Options) *fs.FS {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	v, err := fs.Open(d, o)
	if err != nil {
		err = fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, Inodes: 64})
		if err == nil {
			v, err = fs.Open(d, o)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// serveVolume serves a volume, whose locks outlive the server.
func serveVolume(t *testing.T, v *fs.FS, cfg nlm.Config) *bench {
	t.Helper()
	b := &bench{files: v}
	cfg.Notify = time.Millisecond
	b.serve(t, cfg, nil, v)
	return b
}

// end ends a server in order.
func (b *bench) end(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.server.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// nextStart is the next that the status monitor of a client is told.
func (p *peer) nextStart(t *testing.T) start {
	t.Helper()
	select {
	case s := <-p.starts:
		return s
	case <-time.After(patience):
		t.Fatal("the client is not told that the server has started")
		panic("")
	}
}

// TestRestart: after a crash the host that had a lock is told, although it does not hear at first, and reclaims it;
// nobody else gets any lock until then, nor reclaims one.
func TestRestart(t *testing.T) {
	sim := disk.NewSim(4000 * disk.BlockSize)
	p, port := newPeer(t, false)
	cfg := nlm.Config{PortmapperPort: port, Grace: forever, Name: "nas"}
	first := serveVolume(t, openVolume(t, sim, fs.Options{}), cfg)
	ann, l := first.client(t, "127.0.0.1", "ann"), lock{1, "a", 0, 10}
	ann.lock(nlm.Granted, l)
	ann.share(nlm.ProcShare, 2, 1, nlm.Granted)
	first.client(t, "127.0.0.3", "eve").lock(nlm.Denied, l)
	last := uint32(0)
	for range 2 { // and again after a crash in the grace period
		sim = sim.Crash(disk.LoseAll)
		p.deaf.Store(3)
		b := serveVolume(t, openVolume(t, sim, fs.Options{}), cfg)
		one, other := p.nextStart(t), p.nextStart(t)
		if one.name != "127.0.0.1" || other.name != "nas" || one.state != other.state {
			t.Errorf("it is told %v and %v", one, other)
		}
		if one.state%2 != 1 || one.state <= last {
			t.Errorf("state %d after %d", one.state, last)
		}
		last = one.state
		if c := b.server.Locks(); !c.Grace || c.Kept == 0 {
			t.Errorf("the server counts %+v", c)
		}
		ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.2", "bob")
		far := lock{1, "b", 100, 10}
		for _, reclaim := range []bool{false, true} {
			bob.reclaim = reclaim
			want := map[bool]uint32{false: nlm.DeniedGrace, true: nlm.Denied}[reclaim]
			bob.lock(want, far)
			bob.wait(want, far)
			bob.want(want, 4, nlm.ProcNMLock, far, true, false)
			bob.want(want, 1, nlm.ProcLock, far, true, false)
			bob.want(nlm.DeniedGrace, 4, nlm.ProcTest, far, true, false)
			bob.share(nlm.ProcShare, 0, 1, want)
		}
		ann.lock(nlm.DeniedGrace, l)
		local, gone := b.server.LocalLocks([8]byte{1}), make(chan struct{})
		close(gone)
		if err := local.Lock(b.file, "me", 100, 109, true, nil); err != syscall.EAGAIN {
			t.Errorf("a program on this machine: %v", err)
		}
		if err := local.Lock(b.file, "me", 100, 109, true, gone); err != syscall.EINTR {
			t.Errorf("a program on this machine that waits: %v", err)
		}
		asks := func(cancel <-chan struct{}, want error) {
			t.Helper()
			if _, _, _, _, _, err := local.Test(b.file, "me", 100, 109, true, cancel); err != want {
				t.Errorf("a program on this machine asks who has a lock: %v, want %v", err, want)
			}
		}
		asks(nil, syscall.EAGAIN)
		asks(gone, syscall.EINTR)
		ann.reclaim = true
		ann.lock(nlm.Granted, l)
		ann.share(nlm.ProcShare, 2, 1, nlm.Granted)
		ann.unlock(lock{1, "a", 0, 5})
	}
}

// TestEndInGrace: a server that ends in the grace period gives a program on this machine nothing that a client may
// still reclaim.
func TestEndInGrace(t *testing.T) {
	sim := disk.NewSim(4000 * disk.BlockSize)
	_, port := newPeer(t, false)
	cfg := nlm.Config{PortmapperPort: port, Grace: forever}
	b := serveVolume(t, openVolume(t, sim, fs.Options{}), cfg)
	b.client(t, "127.0.0.1", "ann").lock(nlm.Granted, lock{1, "a", 0, 10})
	b = serveVolume(t, openVolume(t, sim.Crash(disk.LoseAll), fs.Options{}), cfg)
	local, done := b.server.LocalLocks([8]byte{1}), make(chan error, 2)
	go func() { done <- local.Lock(b.file, "me", 0, 9, true, make(chan struct{})) }()
	go func() {
		_, _, _, _, _, err := local.Test(b.file, "me", 0, 9, true, make(chan struct{}))
		done <- err
	}()
	b.end(t)
	ends(t, done, syscall.ENOLCK)
	ends(t, done, syscall.ENOLCK)
	if err := local.Lock(b.file, "me", 0, 9, true, nil); err != syscall.EAGAIN {
		t.Errorf("who does not wait: %v", err)
	}
}

// TestAfterGrace: when the grace period has ended, nothing is reclaimed, and what is free is had.
func TestAfterGrace(t *testing.T) {
	sim := disk.NewSim(4000 * disk.BlockSize)
	_, port := newPeer(t, false)
	b := serveVolume(t, openVolume(t, sim, fs.Options{}), nlm.Config{PortmapperPort: port})
	l := lock{1, "a", 0, 10}
	ann := b.client(t, "127.0.0.1", "ann")
	ann.reclaim = true
	ann.lock(nlm.Denied, l)
	ann.reclaim = false
	ann.lock(nlm.Granted, l)
	v := openVolume(t, sim.Crash(disk.LoseAll), fs.Options{})
	b = serveVolume(t, v, nlm.Config{PortmapperPort: port, Grace: time.Second})
	local, told := b.server.LocalLocks([8]byte{1}), make(chan error, 1)
	go func() { // a program here waits for the end of the grace period, and has its answer then
		free, _, _, _, _, err := local.Test(b.file, "me", 1000, 1009, true, make(chan struct{}))
		if !free && err == nil {
			err = errors.New("somebody has what nobody has locked")
		}
		if err == nil && b.server.Locks().Grace {
			err = errors.New("it was answered in the grace period")
		}
		told <- err
	}()
	ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.2", "bob")
	for end := time.Now().Add(patience); ; {
		if status := bob.do(4, nlm.ProcLock, l, true, false).Uint32(); status == nlm.Granted {
			break
		} else if status != nlm.DeniedGrace || time.Now().After(end) {
			t.Fatalf("status %d", status)
		}
	}
	ends(t, told, nil)
	ann.lock(nlm.Denied, l)
	ann.reclaim = true
	ann.lock(nlm.Denied, l)
	ann.lock(nlm.Denied, lock{1, "a", 100, 10})

	// A server that ends in order leaves those that have locks.
	bob.unlock(l)
	ann.reclaim = false
	ann.lock(nlm.Granted, l)
	b.end(t)
	if _, answer := claim(t, v, "127.0.0.2"); answer != reclaim.NotYours {
		t.Errorf("who had unlocked: %v", answer)
	}
	if _, answer := claim(t, v, "127.0.0.1"); answer != reclaim.Admitted {
		t.Errorf("who had a lock: %v", answer)
	}
	ann = serveVolume(t, v, nlm.Config{PortmapperPort: port, Grace: forever}).client(t, "127.0.0.1", "ann")
	ann.reclaim = true
	ann.lock(nlm.Granted, l)
}

// claim asks as a host would, of a server that opens the volume next. state is that of the one before.
func claim(t *testing.T, v *fs.FS, at string) (state uint32, a reclaim.Answer) {
	t.Helper()
	r, err := reclaim.Open(reclaim.Config{Store: v, Grace: forever, Hosts: 9,
		Holding: func() map[netip.Addr]bool { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	called := netip.MustParseAddr("127.0.0.1")
	_, a = r.Admit(reclaim.Host{Addr: netip.MustParseAddr(at), Local: called}, true)
	return r.State(), a
}

// TestGrantedIsDurable: once a lock is granted, a crash at whatever operation of the device leaves the host on the
// volume, also where others do not wait for the device.
func TestGrantedIsDurable(t *testing.T) {
	sim := disk.NewSim(4000 * disk.BlockSize)
	v := openVolume(t, sim, fs.Options{Deferred: true})
	sim.Record()
	b := serveVolume(t, v, nlm.Config{Grace: forever})
	begun := sim.Ops()
	type grant struct {
		at  string
		ops uint64
	}
	var grants []grant
	for i, at := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		h := b.client(t, at, "host")
		if i == 2 {
			h.share(nlm.ProcShare, 0, 1, nlm.Granted)
		} else {
			h.want(nlm.Granted, 4, []uint32{nlm.ProcLock, nlm.ProcNMLock}[i%2], lock{1, "a", uint64(i), 1}, true, false)
		}
		grants = append(grants, grant{at, sim.Ops()})
	}
	end := sim.Ops()
	for ops := begun; ops <= end; ops++ {
		image := openVolume(t, sim.At(ops).Crash(disk.LoseAll), fs.Options{ReadOnly: true})
		for _, g := range grants {
			state, a := claim(t, image, g.at)
			if ops >= g.ops && a != reclaim.Admitted {
				t.Errorf("after %d operations %s, whose lock was granted after %d, is not there", ops, g.at, g.ops)
			}
			if state%2 != 1 {
				t.Errorf("after %d operations the state is %d", ops, state)
			}
		}
		image.Close()
	}
}

// refusing is a Store that cannot be read, or written.
type refusing struct{ get, set error }

func (r refusing) Note(string) ([]byte, error)  { return nil, r.get }
func (r refusing) SetNote(string, []byte) error { return r.set }

// TestUnread: of a note that no server wrote the log says what takes it away; of a device that fails it does not.
func TestUnread(t *testing.T) {
	for _, c := range []struct {
		note   []byte
		fails  error
		advice bool
	}{{[]byte{2}, nil, true}, {nil, errors.New("damaged"), false}} {
		var log bytes.Buffer
		s := nlm.New(nlm.Config{
			Kept: map[[8]byte]reclaim.Store{{1}: unreadNote{refusing{c.fails, nil}, c.note}},
			Log:  slog.New(slog.NewTextHandler(&log, nil)),
		})
		s.Close()
		says := func(text string) bool { return strings.Contains(log.String(), text) }
		if !says("nobody gets locks") || says("tansy repair") != c.advice {
			t.Errorf("the log says: %s", &log)
		}
	}
}

// unreadNote is a Store with a note.
type unreadNote struct {
	refusing
	note []byte
}

func (u unreadNote) Note(string) ([]byte, error) { return u.note, u.get }

// TestNotKept: where a host cannot be kept it gets no locks, and may still give back and ask.
func TestNotKept(t *testing.T) {
	for _, notes := range []refusing{{errors.New("damaged"), nil}, {fs.ErrNoEnt, fs.ErrNoSpc}} {
		b := &bench{files: openVolume(t, disk.NewMem(4000*disk.BlockSize), fs.Options{})}
		b.serve(t, nlm.Config{}, nil, notes)
		ann, l := b.client(t, "127.0.0.1", "ann"), lock{1, "a", 0, 10}
		ann.lock(nlm.DeniedRoom, l)
		ann.share(nlm.ProcShare, 0, 1, nlm.DeniedRoom)
		ann.want(nlm.Granted, 4, nlm.ProcTest, l, true, false)
		ann.unlock(l)
	}
}
