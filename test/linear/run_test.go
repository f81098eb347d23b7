package linear

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// clockBase is the second in which the clock of the tests begins. It goes on a microsecond
// whenever an operation asks, so that each has a time of its own, by which the checker knows it
// again. The nanoseconds in between are for stamps of files whose ctime the clock is not after.
const (
	clockBase = 1_000_000_000
	clockTick = 1000 // nanoseconds
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// served is a volume being served.
type served struct {
	fs   *fs.FS
	addr string
	srv  *server.Server
}

// serve opens the volume on d and serves it, with the fault if there is one.
func serve(t testing.TB, d disk.Disk, k *clock, bug fault) *served {
	t.Helper()
	s, err := tryServe(t, d, k, bug)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tryServe is serve for a volume that may be damaged.
func tryServe(t testing.TB, d disk.Disk, k *clock, bug fault) (*served, error) {
	t.Helper()
	v, err := fs.Open(d, fs.Options{CacheBytes: 4 << 20, Clock: k.now, Log: quiet})
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var f fs.FileSystem = v
	if bug != nil {
		f = bug(v)
		if _, ok := f.(fs.Lister); !ok {
			f = withLists{f, v}
		}
	}
	id := v.VolumeID()
	s := server.New(server.Config{Volumes: []server.Volume{{FS: f, ID: [8]byte(id[:8]), Key: v.HandleKey()}}, Log: quiet})
	go s.Serve(l)
	return &served{v, l.Addr().String(), s}, nil
}

// stop ends the server. Errors do not matter: the device may be dead.
func (s *served) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s.srv.Shutdown(ctx)
	s.fs.Close()
}

// slow is a device whose barriers take a moment, as those of real ones do: the
// operations of many clients then overlap.
type slow struct {
	disk.Disk
	max time.Duration
}

func (s slow) Barrier() error {
	time.Sleep(rand.N(s.max)) // load, not synchronisation
	return s.Disk.Barrier()
}

// history collects what several clients did below one directory.
type history struct {
	seed    uint64
	clock   *clock
	started time.Time
	top     fs.Node
	pool    *pool
	mix     []uint32 // of procedures
	mixHere []uint32 // of system calls on a mount
	cached  bool     // the kernel keeps sizes of files there, which change

	// answered, if not nil, is called for every answer, one at a time.
	answered func()
	// down says whether the server's machine or process has met its end: from then on,
	// operations may fail. nil: it never does.
	down func() bool

	mu    sync.Mutex
	calls []*call
	ops   []porcupine.Operation
	lost  []int // operations without an answer since the last crash
	early []int // those of them that had none when nothing was down
	// verifiers are those of unstable writes and COMMITs, by incarnation of the
	// server.
	verifiers []map[uint64]bool
	ends      []moment // the crashes
}

// moment is a time: since the start of the history, and by its clock.
type moment struct {
	since int64
	clock uint64
}

// begin makes the directory that the history works in, with two files.
func begin(c *nfsclient.Client, k *clock, seed uint64, name string) (*history, error) {
	n, err := c.Mkdir(root, c.Root(), []byte(name), &fs.SetAttr{Mode: u32(0o777)})
	if err != nil {
		return nil, err
	}
	n.Attr.Gen = n.Handle.Gen
	h := &history{
		seed: seed, clock: k, started: time.Now(), top: n, pool: &pool{top: n.Handle, all: []fs.Handle{n.Handle}},
		verifiers: []map[uint64]bool{{}}, mix: mixes[seed%uint64(len(mixes))],
	}
	for _, name := range []string{"a", "b"} {
		if r, ok := h.do(0, c, &call{proc: nfs3.ProcCreate, cred: root, h: n.Handle, name: name, how: fs.Guarded, set: fs.SetAttr{Mode: u32(0o666)}}); !ok {
			return nil, r.err
		}
	}
	return h, nil
}

// open adds a call to the history, which is not yet made.
func (h *history) open(c *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.id, c.life, c.clock = len(h.calls), len(h.ends), h.clock
	c.begun = h.clock.bound(true)
	c.ended = ^uint64(0)
	h.calls = append(h.calls, c)
	h.ops = append(h.ops, porcupine.Operation{Input: c, Call: int64(time.Since(h.started))})
}

// close adds what the call returned.
func (h *history) close(client int, c *call, r *reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	op := &h.ops[c.id]
	op.ClientId, op.Output, op.Return = client, r, int64(time.Since(h.started))
	r.late = h.down != nil && h.down()
	switch {
	case r.lost && c.former:
		return
	case r.lost && c.life < len(h.ends): // it waited for a server that another has taken over from: since then it cannot have happened
		op.Return, c.ended = h.ends[c.life].since, h.ends[c.life].clock
		return
	case r.lost:
		h.lost = append(h.lost, c.id)
		if !r.late || !excusable(r.err) {
			h.early = append(h.early, c.id)
		}
		return
	}
	c.ended = h.clock.bound(false)
	h.clock.maybeJump()
	if h.answered != nil {
		h.answered()
	}
	if r.err == nil && (c.proc == nfs3.ProcWrite || c.proc == nfs3.ProcCommit) {
		h.verifiers[c.life][r.verf] = true
	}
}

// crashed adds a crash, before which all that got no answer happened or did not; also what is still waited for, and
// gets none.
func (h *history) crashed() {
	c := &call{proc: crash}
	h.mu.Lock()
	end := moment{int64(time.Since(h.started)), h.clock.bound(false)}
	for _, id := range h.lost {
		h.ops[id].Return, h.calls[id].ended = end.since, end.clock
	}
	h.lost = nil
	h.ends = append(h.ends, end)
	h.verifiers = append(h.verifiers, map[uint64]bool{})
	h.mu.Unlock()
	h.open(c)
	h.ops[c.id].Call = end.since + 1
	h.close(0, c, &reply{})
}

// excusable says whether a call may end so when the server's machine or process
// does: with the errors of a dead device, or of a connection that was cut. That the
// call was not carried out, or a result that makes no sense, is neither.
func excusable(err error) bool {
	_, isErrno := err.(fs.Errno)
	return isErrno || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, new(*net.OpError))
}

// do makes one call and records it. It tells if there was an answer.
func (h *history) do(client int, f fs.FileSystem, c *call) (*reply, bool) {
	h.open(c)
	r := c.do(f)
	switch r.err.(type) {
	case nil:
	case fs.Errno:
		// The device is dead: what was asked for may be on it or not.
		r.lost = r.err == fs.ErrIO || r.err == fs.ErrROFS || r.err == fs.ErrServerFault
	default:
		r.lost = true
	}
	return h.settle(client, c, &r)
}

// settle records what the call returned, and what is learnt from it. It tells if there was an answer.
func (h *history) settle(client int, c *call, r *reply) (*reply, bool) {
	h.close(client, c, r)
	if r.lost || c.isLocal() {
		return r, !r.lost
	}
	if r.err == nil && r.node.Handle != (fs.Handle{}) {
		h.pool.add(r.node.Handle)
	}
	for _, e := range r.list {
		if e.Attr != nil && string(e.Name) != ".." {
			h.pool.add(e.Handle)
		}
	}
	return r, true
}

// work makes n random calls, one after the other, until one gets no answer.
func (h *history) work(client int, f fs.FileSystem, n int) {
	r := rand.New(rand.NewPCG(h.seed, uint64(client)))
	var last reply // of a READDIR of a page
	var page call
	for i := range n {
		c := choose(r, h.pool, h.mix, client*1000+i)
		if len(last.list) > 0 && r.IntN(2) == 0 {
			next := page
			next.cookie = last.list[len(last.list)-1].Cookie
			c = &next
		}
		if r.IntN(6) == 0 && c.proc == nfs3.ProcSetattr {
			if got, ok := h.do(client, f, &call{proc: nfs3.ProcGetattr, h: c.h}); !ok {
				return
			} else if got.attr != nil {
				c.guard = &got.attr.Ctime
			}
		}
		got, ok := h.do(client, f, c)
		if !ok {
			return
		}
		last = reply{}
		if c.page && got.err == nil && !got.eof {
			last, page = *got, *c
		}
	}
}

// audit looks at everything that is left, from one client.
func (h *history) audit(f fs.FileSystem) bool {
	seen := map[fs.Handle]bool{}
	var visit func(n fs.Handle, a fs.Type) bool
	visit = func(n fs.Handle, typ fs.Type) bool {
		if seen[n] {
			return true
		}
		seen[n] = true
		switch typ {
		case fs.Directory:
			r, ok := h.do(0, f, &call{proc: nfs3.ProcReaddir, cred: root, h: n, plus: true, count: 16 << 10})
			for _, e := range r.list {
				if ok && string(e.Name) != ".." {
					ok = visit(e.Handle, e.Attr.Type)
				}
			}
			return ok
		case fs.Regular:
			_, ok := h.do(0, f, &call{proc: nfs3.ProcRead, cred: root, h: n, count: 16 << 10})
			return ok
		case fs.Symlink:
			_, ok := h.do(0, f, &call{proc: nfs3.ProcReadlink, cred: root, h: n})
			return ok
		}
		return true
	}
	return visit(h.top.Handle, fs.Directory)
}

// verdict checks the history. An error tells why it is not allowed.
func (h *history) verdict(limit time.Duration) (porcupine.CheckResult, error) {
	if err := h.facts(); err != nil {
		return porcupine.Illegal, err
	}
	k := &checker{calls: h.calls, top: h.top, cached: h.cached, mixed: slices.ContainsFunc(h.calls, (*call).isLocal)}
	m := k.model()
	ops := h.ops
	result := porcupine.CheckOperationsTimeout(m, ops, limit)
	if result != porcupine.Illegal {
		return result, nil
	}
	_, info := porcupine.CheckOperationsVerbose(m, ops, limit)
	var longest []int
	for _, p := range info.PartialLinearizations() {
		for _, l := range p {
			if len(l) > len(longest) {
				longest = l
			}
		}
	}
	return result, h.explain(k, longest)
}

// facts checks what needs no order: nothing failed while the server was up; within
// one life of the server the write verifier stays, over a crash it changes; and
// every new file has a new handle.
func (h *history) facts() error {
	if len(h.early) > 0 {
		id := h.early[0]
		return fmt.Errorf("operation %d, %v, failed before any crash: %v", id, h.calls[id], h.ops[id].Output.(*reply).err)
	}
	seen := map[uint64]bool{}
	for life, all := range h.verifiers {
		if len(all) > 1 {
			return fmt.Errorf("write verifiers %v in one life of the server", all)
		}
		for v := range all {
			if seen[v] {
				return fmt.Errorf("the write verifier %x after crash %d was there before", v, life)
			}
			seen[v] = true
		}
	}
	made := map[fs.Handle]int{}
	for i, op := range h.ops {
		c, r := h.calls[i], op.Output.(*reply)
		switch c.proc {
		case nfs3.ProcCreate, nfs3.ProcMkdir, nfs3.ProcSymlink, nfs3.ProcMknod:
			if c.proc == nfs3.ProcCreate && c.how != fs.Guarded || r.lost || r.err != nil {
				continue
			}
			if first, again := made[r.node.Handle]; again {
				return fmt.Errorf("operations %d and %d made files with one handle %s", first, i, handleName(r.node.Handle))
			}
			made[r.node.Handle] = i
		}
	}
	return nil
}

// explain shows the longest order of operations that the model allows, and why
// none of the others can follow.
func (h *history) explain(k *checker, order []int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "no order of the operations explains their results; the longest that explains %d of %d:\n",
		len(order), len(h.ops))
	state := []*world{k.start()}
	show := func(i int) string {
		op := h.ops[i]
		return fmt.Sprintf("%3d client %d [%d, %d] %v: %v", i, op.ClientId, op.Call/1000, op.Return/1000,
			h.calls[i], op.Output)
	}
	done := map[int]bool{}
	for _, i := range order {
		fmt.Fprintf(&b, "  %s\n", show(i))
		state, _ = k.step(state, h.calls[i], h.ops[i].Output.(*reply))
		done[i] = true
	}
	var rest []int
	first := int64(1) << 62 // return of the first that is left
	for i, op := range h.ops {
		if !done[i] {
			rest = append(rest, i)
			first = min(first, op.Return)
		}
	}
	slices.SortFunc(rest, func(i, j int) int { return int(h.ops[i].Call - h.ops[j].Call) })
	fmt.Fprintf(&b, "then none of these can follow:\n")
	for _, i := range rest {
		if h.ops[i].Call <= first {
			_, why := k.step(state, h.calls[i], h.ops[i].Output.(*reply))
			fmt.Fprintf(&b, "  %s\n      model: %v\n", show(i), strings.ReplaceAll(fmt.Sprint(why), "\n", "\n      or: "))
		}
	}
	return fmt.Errorf("%s", b.String())
}
