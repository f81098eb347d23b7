package nlm_test

import (
	"errors"
	"math"
	"net"
	"testing"
	"time"

	"tansy/fs"
	"tansy/nfs/advisory"
	"tansy/nfs/callout"
	"tansy/nfs/exports"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/test/kit/nfsclient"
)

// TestVersions: each version locks, tells who is in the way, waits, is told, and unlocks.
func TestVersions(t *testing.T) {
	for _, v := range nlm.Versions {
		p, port := newPeer(t, false)
		b := newBench(t, nlm.Config{PortmapperPort: port}, nil)
		ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.1", "bob")
		a, o := lock{7, "a", 100, 50}, lock{7, "a", 149, 10}
		ann.want(nlm.Granted, v, nlm.ProcTest, a, true, false)
		ann.want(nlm.Granted, v, nlm.ProcLock, a, true, false)
		d := bob.do(v, nlm.ProcTest, o, false, false)
		if status, exclusive, svid := d.Uint32(), d.Bool(), d.Uint32(); status != nlm.Denied || !exclusive || svid != 7 {
			t.Errorf("version %d: TEST answers %d, exclusive %v, svid %d", v, status, exclusive, svid)
		}
		if owner, at, n := string(d.Opaque(1024)), get64(d, v), get64(d, v); owner != "a" || at != 100 || n != 50 {
			t.Errorf("version %d: the holder is %q, %d bytes from %d", v, owner, n, at)
		}
		bob.want(nlm.Denied, v, nlm.ProcLock, o, false, false)
		bob.want(nlm.Blocked, v, nlm.ProcLock, o, true, true)
		bob.want(nlm.Blocked, v, nlm.ProcLock, o, true, true) // sent again
		ann.want(nlm.Granted, v, nlm.ProcUnlock, a, false, false)
		if got := p.next(t); got.version != v || !got.exclusive || got.lock != o {
			t.Errorf("version %d: granted is %+v", v, got)
		}
		ann.want(nlm.Denied, v, nlm.ProcLock, a, false, false)
		bob.want(nlm.Granted, v, nlm.ProcUnlock, o, false, false)
		ann.want(nlm.Granted, v, nlm.ProcLock, a, true, false)
		ann.want(nlm.Denied, v, nlm.ProcGranted, a, true, false) // this server waits for nobody
	}
}

// TestRanges: a length of 0 reaches to the end, and what a version cannot say is refused, or told cut.
func TestRanges(t *testing.T) {
	b := newBench(t, nlm.Config{}, nil)
	ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.1", "bob")
	end := lock{1, "a", 1 << 40, 0}
	ann.lock(nlm.Granted, end)
	bob.lock(nlm.Denied, lock{1, "b", math.MaxUint64, 1})
	bob.lock(nlm.TooBig, lock{1, "b", math.MaxUint64, 2})
	bob.lock(nlm.Granted, lock{1, "b", 0, 1 << 40})
	bob.want(nlm.DeniedRoom, 3, nlm.ProcLock, lock{1, "b", math.MaxUint32, 2}, true, false)
	d := bob.do(3, nlm.ProcTest, lock{1, "b", 5, 0}, true, false)
	d.Uint32()
	d.Bool()
	d.Uint32()
	d.Opaque(1024)
	if at, n := d.Uint32(), d.Uint32(); at != math.MaxUint32 || n != 0 {
		t.Errorf("version 3 is told of %d bytes from %d", n, at)
	}
	ann.unlock(lock{1, "a", 1<<40 + 10, 10}) // two remain
	bob.lock(nlm.Granted, lock{2, "b", 1<<40 + 10, 10})
	bob.lock(nlm.Denied, lock{2, "b", 1<<40 + 9, 1})
	bob.lock(nlm.Denied, lock{2, "b", 1<<40 + 20, 1})
}

// TestOwners: owners are told apart by the machine's name, its address, the number, and the name of the owner.
func TestOwners(t *testing.T) {
	b := newBench(t, nlm.Config{}, nil)
	l := lock{1, "a", 0, 0}
	b.client(t, "127.0.0.1", "ann").lock(nlm.Granted, l)
	b.client(t, "127.0.0.1", "ann").lock(nlm.Granted, l) // another connection
	b.client(t, "127.0.0.1", "bob").lock(nlm.Denied, l)
	b.client(t, "127.0.0.2", "ann").lock(nlm.Denied, l)
	b.client(t, "127.0.0.1", "ann").lock(nlm.Denied, lock{2, "a", 0, 0})
	b.client(t, "127.0.0.1", "ann").lock(nlm.Denied, lock{1, "b", 0, 0})
}

// TestFiles: what is no file, or not the caller's to read or write, is not locked.
func TestFiles(t *testing.T) {
	b := newBench(t, nlm.Config{}, nil)
	ann := b.client(t, "127.0.0.1", "ann")
	l := lock{1, "a", 0, 0}
	ann.raw = b.root
	ann.lock(nlm.Failed, l)
	ann.want(nlm.DeniedRoom, 3, nlm.ProcLock, l, true, false)
	ann.raw = append([]byte(nil), b.raw...)
	ann.raw[31] ^= 1
	ann.lock(nlm.Stale, l)
	ann.raw = b.raw
	mode, other := uint32(0o600), uint32(1)
	if _, err := b.files.Setattr(&fs.Cred{}, b.file, &fs.SetAttr{Mode: &mode, UID: &other}, nil); err != nil {
		t.Fatal(err)
	}
	ann.lock(nlm.Failed, l)
	if _, err := b.files.Remove(&fs.Cred{}, b.files.Root(), []byte("file")); err != nil {
		t.Fatal(err)
	}
	ann.lock(nlm.Stale, l)
	ann.name = string(make([]byte, 256))
	ann.lock(nlm.Failed, l)
	if _, err := ann.conn.Call(nlm.Program, 4, nlm.ProcLock, user, func(e *oncrpc.Encoder) { e.Uint32(5) }); err == nil {
		t.Error("half a call is carried out")
	}
}

// TestReadOnly: of an export that is read-only nothing is locked exclusively.
func TestReadOnly(t *testing.T) {
	rule := exports.Open()
	rule.ReadOnly = true
	b := newBench(t, nlm.Config{}, exports.NewPolicy(exports.NewTable(exports.Everyone(rule), nil)))
	ann := b.client(t, "127.0.0.1", "ann")
	ann.lock(nlm.ReadOnly, lock{1, "a", 0, 0})
	ann.want(nlm.DeniedRoom, 3, nlm.ProcLock, lock{1, "a", 0, 0}, true, false)
	ann.want(nlm.Granted, 4, nlm.ProcLock, lock{1, "a", 0, 0}, false, false)
}

// TestTransports: where an export asks for TLS, calls for locks without it are denied, and lock nothing.
func TestTransports(t *testing.T) {
	rule := exports.Open()
	policy := exports.NewPolicy(exports.NewTable(exports.Everyone(rule), nil))
	b := newBench(t, nlm.Config{}, policy)
	ann := b.client(t, "127.0.0.1", "ann")
	rule.Transports = exports.TLS
	policy.Set(exports.NewTable(exports.Everyone(rule), nil))
	l := lock{1, "a", 0, 0}
	for _, proc := range []uint32{nlm.ProcTest, nlm.ProcLock, nlm.ProcCancel, nlm.ProcUnlock, nlm.ProcNMLock} {
		_, err := ann.conn.Call(nlm.Program, 4, proc, user, func(e *oncrpc.Encoder) {
			e.Opaque(nil)
			switch proc {
			case nlm.ProcLock, nlm.ProcNMLock, nlm.ProcCancel:
				e.Bool(false)
				e.Bool(true)
			case nlm.ProcTest:
				e.Bool(true)
			}
			ann.putLock(e, 4, l)
			e.Bool(false)
			e.Uint32(1)
		})
		var denied *nfsclient.RPCError
		if !errors.As(err, &denied) || !denied.Denied {
			t.Errorf("procedure %d: %v", proc, err)
		}
	}
	rule.Transports = 0
	policy.Set(exports.NewTable(exports.Everyone(rule), nil))
	b.client(t, "127.0.0.1", "bob").lock(nlm.Granted, l)
}

// TestMessages: each message is answered by a call.
func TestMessages(t *testing.T) {
	p, port := newPeer(t, false)
	b := newBench(t, nlm.Config{PortmapperPort: port}, nil)
	ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.1", "bob")
	l := lock{1, "a", 0, 0}
	for _, x := range []struct {
		who          *host
		proc, status uint32
	}{
		{ann, nlm.ProcTestMsg, nlm.Granted}, {ann, nlm.ProcLockMsg, nlm.Granted}, {bob, nlm.ProcTestMsg, nlm.Denied},
		{bob, nlm.ProcLockMsg, nlm.Blocked}, {bob, nlm.ProcCancelMsg, nlm.Granted}, {bob, nlm.ProcCancelMsg, nlm.Denied},
		{ann, nlm.ProcUnlockMsg, nlm.Granted}, {ann, nlm.ProcGrantedMsg, nlm.Denied},
	} {
		if proc := x.proc; proc == nlm.ProcGrantedMsg {
			_, err := x.who.conn.Call(nlm.Program, 4, proc, user, func(e *oncrpc.Encoder) {
				e.Opaque([]byte("cookie"))
				e.Bool(true)
				x.who.putLock(e, 4, l)
			})
			if err != nil {
				t.Fatal(err)
			}
		} else {
			x.who.do(4, proc, l, true, true)
		}
		if got := p.next(t); got.proc != x.proc+5 || got.status != x.status || string(got.cookie) != "cookie" {
			t.Errorf("message %d is answered with %+v, want status %d", x.proc, got, x.status)
		}
	}
}

// TestCallbacks: who refuses a lock does not get it, who does not answer is asked again, and keeps it until it says so.
func TestCallbacks(t *testing.T) {
	p, port := newPeer(t, false)
	b := newBench(t, nlm.Config{PortmapperPort: port}, nil)
	ann, bob, eve := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.1", "bob"), b.client(t, "127.0.0.1", "eve")
	l := lock{1, "a", 0, 0}
	ann.lock(nlm.Granted, l)
	p.answer = func(c call) uint32 {
		if c.lock.svid == 2 {
			return nlm.Denied
		}
		return nlm.Granted
	}
	bob.wait(nlm.Blocked, lock{2, "b", 0, 0})
	eve.wait(nlm.Blocked, lock{3, "e", 0, 0})
	ann.unlock(l)
	if first, second := p.next(t), p.next(t); first.lock.svid != 2 || second.lock.svid != 3 {
		t.Errorf("told are %d and %d", first.lock.svid, second.lock.svid)
	}
	bob.lock(nlm.Denied, lock{2, "b", 0, 0})
	eve.unlock(lock{3, "e", 0, 0})

	// One that is in its grace period is asked again.
	asked := 0
	p.answer = func(call) uint32 {
		if asked++; asked < 3 {
			return nlm.DeniedGrace
		}
		return nlm.Granted
	}
	ann.lock(nlm.Granted, l)
	bob.wait(nlm.Blocked, lock{2, "b", 0, 0})
	ann.unlock(l)
	for range 3 {
		p.next(t)
	}
	ann.lock(nlm.Denied, l)

	// What was offered and not taken can be cancelled, and what is asked for again is taken.
	p.answer = func(call) uint32 { return nlm.DeniedGrace }
	eve.wait(nlm.Blocked, lock{3, "e", 0, 0})
	bob.unlock(lock{2, "b", 0, 0})
	p.next(t)
	ann.lock(nlm.Denied, l)
	eve.cancel(nlm.Granted, lock{3, "e", 0, 0})
	ann.lock(nlm.Granted, l)
	eve.wait(nlm.Blocked, lock{3, "e", 0, 0})
	ann.unlock(l)
	p.next(t)
	eve.wait(nlm.Granted, lock{3, "e", 0, 0})
	eve.cancel(nlm.Denied, lock{3, "e", 0, 0})
	ann.lock(nlm.Denied, l)
}

// TestUnreachable: a lock that nobody was told of goes to the next one.
func TestUnreachable(t *testing.T) {
	_, port := newPeer(t, true)
	b := newBench(t, nlm.Config{PortmapperPort: port}, nil)
	ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.1", "bob")
	l := lock{1, "a", 0, 0}
	ann.lock(nlm.Granted, l)
	bob.wait(nlm.Blocked, l)
	ann.unlock(l)
	for end := time.Now().Add(patience); ; {
		if status := ann.do(4, nlm.ProcLock, l, true, false).Uint32(); status == nlm.Granted {
			break
		} else if status != nlm.Denied || time.Now().After(end) {
			t.Fatalf("status %d", status)
		}
	}
}

// TestStart: a machine that has started has no locks, which it alone may say.
func TestStart(t *testing.T) {
	for _, x := range []struct {
		program, version, proc uint32
	}{{nlm.StatusProgram, 1, nlm.StatusNotify}, {nlm.Program, 4, nlm.ProcFreeAll}, {nlm.Program, 3, nlm.ProcFreeAll}} {
		b := newBench(t, nlm.Config{}, nil)
		ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.1", "bob")
		far := b.client(t, "127.0.0.2", "ann")
		l := lock{1, "a", 0, 10}
		ann.lock(nlm.Granted, l)
		bob.lock(nlm.Granted, lock{1, "b", 20, 10})
		far.notify(x.program, x.version, x.proc, "ann")
		bob.lock(nlm.Denied, l)
		bob.notify(x.program, x.version, x.proc, "other.example")
		bob.lock(nlm.Denied, l)
		bob.notify(x.program, x.version, x.proc, "Ann.example")
		bob.lock(nlm.Granted, l)
		ann.lock(nlm.Denied, lock{1, "b", 20, 10})
		bob.notify(x.program, x.version, x.proc, "127.0.0.1")
		ann.lock(nlm.Granted, lock{1, "b", 20, 10})
	}
}

// TestShares: reservations keep out what they deny.
func TestShares(t *testing.T) {
	b := newBench(t, nlm.Config{}, nil)
	ann, bob := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.1", "bob")
	ann.share(nlm.ProcShare, 2, 1, nlm.Granted) // reads, denies writing
	bob.share(nlm.ProcShare, 0, 2, nlm.Denied)
	bob.share(nlm.ProcShare, 1, 1, nlm.Denied)
	bob.share(nlm.ProcShare, 2, 1, nlm.Granted)
	ann.share(nlm.ProcShare, 0, 3, nlm.Denied)
	bob.share(nlm.ProcUnshare, 2, 1, nlm.Granted)
	ann.share(nlm.ProcShare, 0, 3, nlm.Granted)
	bob.share(nlm.ProcShare, 0, 2, nlm.Granted)
	ann.lock(nlm.Granted, lock{1, "a", 0, 0}) // locks have nothing to do with them
}

// TestLimits: beyond each limit there are no more locks, and what is there goes on.
func TestLimits(t *testing.T) {
	limits := advisory.Limits{All: 12, Client: 8, File: 10, Waits: 1, FileWaits: 1, Hosts: 3}
	b := newBench(t, nlm.Config{Limits: limits}, nil)
	ann, far := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.2", "far")
	at := func(i int) lock { return lock{1, "a", uint64(10 * i), 1} }
	for i := range 8 {
		ann.lock(nlm.Granted, at(i))
	}
	ann.lock(nlm.DeniedRoom, at(8)) // of one address
	ann.lock(nlm.Granted, at(3))
	far.lock(nlm.Granted, at(8))
	far.lock(nlm.Granted, at(9))
	far.lock(nlm.DeniedRoom, at(10)) // of one file
	ann.unlock(at(3))
	far.wait(nlm.DeniedRoom, at(0)) // a wait counts two
	ann.lock(nlm.Granted, at(11))
}

// TestWaits: so many wait at an address.
func TestWaits(t *testing.T) {
	limits := advisory.Limits{All: 100, Client: 100, File: 100, Waits: 2, FileWaits: 3, Hosts: 4}
	b := newBench(t, nlm.Config{Limits: limits}, nil)
	ann, far := b.client(t, "127.0.0.1", "ann"), b.client(t, "127.0.0.2", "far")
	ann.lock(nlm.Granted, lock{1, "a", 0, 0})
	for i := range uint32(2) {
		far.wait(nlm.Blocked, lock{i, "f", 0, 0})
	}
	far.wait(nlm.DeniedRoom, lock{2, "f", 0, 0})
	far.lock(nlm.Denied, lock{2, "f", 0, 0})
	other := b.client(t, "127.0.0.3", "other")
	other.wait(nlm.Blocked, lock{1, "o", 0, 0})
	other.wait(nlm.DeniedRoom, lock{2, "o", 0, 0}) // of one file
	b.client(t, "127.0.0.4", "fourth").lock(nlm.Denied, lock{1, "x", 0, 0})
	far.cancel(nlm.Granted, lock{1, "f", 0, 0})
	other.wait(nlm.Blocked, lock{2, "o", 0, 0})
}

// TestPackets: NLM and NSM are there over UDP, too.
func TestPackets(t *testing.T) {
	b := newBench(t, nlm.Config{}, nil)
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go b.server.ServePacket(pc)
	c, err := callout.Dial(t.Context(), "udp", pc.LocalAddr().String(), nil, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, v := range nlm.Versions {
		if _, err := c.Call(nlm.Program, v, nlm.ProcNull, nil); err != nil {
			t.Errorf("version %d: %v", v, err)
		}
	}
	h := &host{t: t, name: "ann", raw: b.raw}
	d, err := c.Call(nlm.Program, 4, nlm.ProcTest, func(e *oncrpc.Encoder) {
		e.Opaque(nil)
		e.Bool(true)
		h.putLock(e, 4, lock{1, "a", 0, 0})
	})
	if err != nil {
		t.Fatal(err)
	}
	if d.Opaque(4); d.Uint32() != nlm.Granted {
		t.Error("TEST is not granted")
	}
	for proc := uint32(nlm.StatusStat); proc < nlm.StatusNotify; proc++ {
		d, err := c.Call(nlm.StatusProgram, 1, proc, func(e *oncrpc.Encoder) { e.Opaque([]byte("x")) })
		if proc == 5 {
			continue // SIMU_CRASH is for the machine itself
		}
		if err != nil || (proc <= nlm.StatusMon && d.Uint32() != 1) || d.Uint32() != 1 {
			t.Errorf("procedure %d of NSM: %v", proc, err)
		}
	}
}
