package nlm_test

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/exports"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
	"tansy/nfs/reclaim"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

var user = &fs.Cred{UID: 1000, GID: 1000}

// patience is how long a test waits for what has to come.
const patience = 30 * time.Second

// call is a call to a client, from the server.
type call struct {
	version, proc uint32
	cookie        []byte
	exclusive     bool
	status        uint32 // of a result
	lock          lock
}

// lock is nlm_lock without the name of its caller and the file.
type lock struct {
	svid           uint32
	owner          string
	offset, length uint64
}

// peer is the lock manager and the status monitor of a client machine, with its port mapper.
type peer struct {
	calls  chan call
	answer func(call) uint32 // status of GRANTED

	starts chan start
	deaf   atomic.Int32 // so many of these fail
}

// start is what the status monitor was told of the server's start.
type start struct {
	name  string
	state uint32
}

func get64(d *oncrpc.Decoder, version uint32) uint64 {
	if version == 4 {
		return d.Uint64()
	}
	return uint64(d.Uint32())
}

func put64(e *oncrpc.Encoder, version uint32, v uint64) {
	if version == 4 {
		e.Uint64(v)
	} else {
		e.Uint32(uint32(v))
	}
}

// programs are what it serves.
func (p *peer) programs() (list []oncrpc.Program) {
	for _, version := range nlm.Versions {
		procs := make([]oncrpc.Proc, nlm.ProcGrantedRes+1)
		procs[nlm.ProcNull] = oncrpc.NullProc
		procs[nlm.ProcGranted] = oncrpc.Proc{Name: "GRANTED", Serve: func(c *oncrpc.Call) oncrpc.Accept {
			d := &c.Args
			got := call{version: version, proc: nlm.ProcGranted, cookie: d.Opaque(1024), exclusive: d.Bool()}
			d.Opaque(1024)
			d.Opaque(1024)
			got.lock.owner, got.lock.svid = string(d.Opaque(1024)), d.Uint32()
			got.lock.offset, got.lock.length = get64(d, version), get64(d, version)
			status := p.answer(got)
			p.calls <- got
			c.Reply.Opaque(got.cookie)
			c.Reply.Uint32(status)
			return oncrpc.Success
		}}
		for proc := uint32(nlm.ProcTestRes); proc <= nlm.ProcGrantedRes; proc++ {
			procs[proc] = oncrpc.Proc{Name: "RES", Serve: func(c *oncrpc.Call) oncrpc.Accept {
				got := call{version: version, proc: proc, cookie: append([]byte(nil), c.Args.Opaque(1024)...)}
				got.status = c.Args.Uint32()
				p.calls <- got
				return oncrpc.Success
			}}
		}
		list = append(list, oncrpc.Program{Number: nlm.Program, Version: version, Procs: procs})
	}
	procs := make([]oncrpc.Proc, nlm.StatusNotify+1)
	procs[nlm.StatusNull] = oncrpc.NullProc
	procs[nlm.StatusNotify] = oncrpc.Proc{Name: "NOTIFY", Serve: func(c *oncrpc.Call) oncrpc.Accept {
		if p.deaf.Add(-1) >= 0 {
			return oncrpc.SystemErr
		}
		p.starts <- start{string(c.Args.Opaque(1024)), c.Args.Uint32()}
		return oncrpc.Success
	}}
	return append(list, oncrpc.Program{Number: nlm.StatusProgram, Version: nlm.StatusVersion, Procs: procs})
}

// next is the next call that comes.
func (p *peer) next(t *testing.T) call {
	t.Helper()
	select {
	case c := <-p.calls:
		return c
	case <-time.After(patience):
		t.Fatal("the server does not call")
		panic("")
	}
}

// serveOn serves programs on a port of its own until the test ends.
func serveOn(t *testing.T, programs []oncrpc.Program) net.Addr {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := oncrpc.NewServer(oncrpc.Config{Programs: programs, Log: slog.New(slog.DiscardHandler)})
	go s.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Shutdown(ctx)
	})
	return l.Addr()
}

// newPeer starts a lock manager and returns the port of its port mapper. With nowhere nobody listens where the port
// mapper says that it is.
func newPeer(t *testing.T, nowhere bool) (*peer, uint16) {
	p := &peer{calls: make(chan call, 100), starts: make(chan start, 100)}
	p.answer = func(call) uint32 { return nlm.Granted }
	at := serveOn(t, p.programs())
	if nowhere {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at = l.Addr()
		l.Close()
	}
	entries := portmap.Entries(nlm.Program, at, nlm.Versions...)
	entries = append(entries, portmap.Entries(nlm.StatusProgram, at, nlm.StatusVersion)...)
	mapper := serveOn(t, portmap.New(entries).Programs())
	return p, uint16(mapper.(*net.TCPAddr).Port)
}

// bench is a server with a file.
type bench struct {
	addr   string
	server *server.Server
	files  fs.FileSystem
	file   fs.Handle
	raw    []byte // handle of the file
	root   []byte // handle of the root
}

func newBench(t *testing.T, cfg nlm.Config, policy *exports.Policy) *bench {
	t.Helper()
	b := &bench{files: model.New(model.Options{})}
	b.serve(t, cfg, policy, nil)
	return b
}

// serve makes the file, if it is not there, and serves b.files.
func (b *bench) serve(t *testing.T, cfg nlm.Config, policy *exports.Policy, notes reclaim.Store) {
	t.Helper()
	mode := uint32(0o666)
	n, err := b.files.Create(&fs.Cred{}, b.files.Root(), []byte("file"), fs.Unchecked, &fs.SetAttr{Mode: &mode}, 0)
	if err != nil {
		t.Fatal(err)
	}
	b.file = n.Handle
	cfg.Retry = time.Millisecond
	b.server = server.New(server.Config{
		Volumes: []server.Volume{{FS: b.files, ID: [8]byte{1}, Key: [16]byte{2}, Exports: policy, Notes: notes}},
		Log:     slog.New(slog.DiscardHandler), Locks: &cfg,
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go b.server.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		b.server.Shutdown(ctx)
	})
	b.addr = l.Addr().String()
	c, err := nfsclient.Mount(b.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Lookup(user, c.Root(), []byte("file")); err != nil {
		t.Fatal(err)
	}
	b.raw, b.root = c.Raw(b.file), c.Raw(c.Root())
}

// host is a client machine with a name.
type host struct {
	t    *testing.T
	conn *nfsclient.Conn
	name string
	raw  []byte

	reclaim bool // its locks are from before
}

// client connects from an address, with a name.
func (b *bench) client(t *testing.T, from, name string) *host {
	t.Helper()
	nc, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	c := nfsclient.NewConn(nc)
	t.Cleanup(func() { c.Close() })
	return &host{t: t, conn: c, name: name, raw: b.raw}
}

func (h *host) putLock(e *oncrpc.Encoder, version uint32, l lock) {
	e.Opaque([]byte(h.name))
	e.Opaque(h.raw)
	e.Opaque([]byte(l.owner))
	e.Uint32(l.svid)
	put64(e, version, l.offset)
	put64(e, version, l.length)
}

// do makes a call about a lock, and returns what comes behind the cookie.
func (h *host) do(version, proc uint32, l lock, exclusive, block bool) *oncrpc.Decoder {
	h.t.Helper()
	d, err := h.conn.Call(nlm.Program, version, proc, user, func(e *oncrpc.Encoder) {
		e.Opaque([]byte("cookie"))
		plain := proc
		if proc >= nlm.ProcTestMsg && proc <= nlm.ProcGrantedMsg {
			plain = proc - nlm.ProcTestMsg + nlm.ProcTest
		}
		switch plain {
		case nlm.ProcLock, nlm.ProcNMLock, nlm.ProcCancel:
			e.Bool(block)
			e.Bool(exclusive)
		case nlm.ProcTest, nlm.ProcGranted:
			e.Bool(exclusive)
		}
		h.putLock(e, version, l)
		if plain == nlm.ProcLock || plain == nlm.ProcNMLock {
			e.Bool(h.reclaim)
			e.Uint32(1) // state
		}
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if proc < nlm.ProcTestMsg || proc > nlm.ProcGrantedMsg {
		if got := string(d.Opaque(1024)); got != "cookie" {
			h.t.Fatalf("the cookie is %q", got)
		}
	}
	return d
}

// want makes a call about a lock, which has to answer a status.
func (h *host) want(status uint32, version, proc uint32, l lock, exclusive, block bool) {
	h.t.Helper()
	if got := h.do(version, proc, l, exclusive, block).Uint32(); got != status {
		h.t.Errorf("version %d procedure %d of %s: status %d, want %d", version, proc, h.name, got, status)
	}
}

func (h *host) lock(status uint32, l lock) {
	h.t.Helper()
	h.want(status, 4, nlm.ProcLock, l, true, false)
}
func (h *host) wait(status uint32, l lock) {
	h.t.Helper()
	h.want(status, 4, nlm.ProcLock, l, true, true)
}
func (h *host) cancel(status uint32, l lock) {
	h.t.Helper()
	h.want(status, 4, nlm.ProcCancel, l, true, true)
}
func (h *host) unlock(l lock) { h.t.Helper(); h.want(nlm.Granted, 4, nlm.ProcUnlock, l, false, false) }

// share makes a call about a reservation, which has to answer a status.
func (h *host) share(proc, mode, access, want uint32) {
	h.t.Helper()
	d, err := h.conn.Call(nlm.Program, 3, proc, user, func(e *oncrpc.Encoder) {
		e.Opaque([]byte("cookie"))
		e.Opaque([]byte(h.name))
		e.Opaque(h.raw)
		e.Opaque([]byte("owner"))
		e.Uint32(mode)
		e.Uint32(access)
		e.Bool(h.reclaim)
	})
	if err != nil {
		h.t.Fatal(err)
	}
	d.Opaque(10)
	if got := d.Uint32(); got != want {
		h.t.Errorf("%s denies %d and does %d: %d, want %d", h.name, mode, access, got, want)
	}
}

// notify says that a machine of this name has started.
func (h *host) notify(program, version, proc uint32, name string) {
	h.t.Helper()
	_, err := h.conn.Call(program, version, proc, user, func(e *oncrpc.Encoder) {
		e.Opaque([]byte(name))
		e.Uint32(3)
	})
	if err != nil {
		h.t.Fatal(err)
	}
}
