package locks

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tansy/disk"
	"tansy/fs"
	"tansy/nfs/nlm"
	"tansy/nfs/server"
	"tansy/test/kit/nfsclient"
)

// volumeBlocks is the size of the volumes here.
const volumeBlocks = 4000

// history is what clients of one volume do, and the servers of it, one after the other.
type history struct {
	r       *rand.Rand
	clients [owners]*client
	peers   [addresses]*peer
	port    uint16 // of their port mappers
	sim     *disk.Sim
	file    []byte // its handle
	server  *server.Server
	volume  *fs.FS
	addr    string

	clock  atomic.Int64
	starts [hosts]atomic.Int64 // how often a client's machine began or ended to say that it has started

	mu   sync.Mutex
	ops  []porcupine.Operation
	from int // the first of this life of the server
}

func (h *history) now() int64 { return h.clock.Add(1) }

// begin notes a call, and end what became of it.
func (h *history) begin(x *call, who int) (id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: who, Input: x, Call: h.now()})
	return len(h.ops) - 1
}

func (h *history) end(id int, r *reply) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops[id].Output, h.ops[id].Return = r, h.now()
}

// note notes a call that was made at some time since then.
func (h *history) note(x *call, r *reply, since int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: owners, Input: x, Output: r, Call: since, Return: h.now()})
}

// reboots counts what rebooted noted for an owner's host.
func (h *history) reboots(owner int8) int { return int(h.starts[hostOf[owner]].Load()) }

func (h *history) rebooted(host int8) {
	h.starts[host].Add(1)
	for _, c := range h.clients {
		if hostOf[c.owner] == host {
			c.doubtAll()
		}
	}
}

// dead tells whether the device has failed.
func (h *history) dead() bool { return h.sim.Frozen() }

// together has all clients do something at the same time.
func (h *history) together(do func(*client)) {
	var all sync.WaitGroup
	for _, c := range h.clients {
		all.Go(func() { do(c) })
	}
	all.Wait()
}

// start starts a server on what is on the device.
func (h *history) start(grace time.Duration) (err error) {
	if h.volume, err = fs.Open(h.sim, fs.Options{CacheBytes: 4 << 20, Log: quiet}); err != nil {
		return err
	}
	id := h.volume.VolumeID()
	h.server = server.New(server.Config{
		Volumes: []server.Volume{{FS: h.volume, ID: [8]byte(id[:8]), Key: h.volume.HandleKey(), Notes: h.volume}},
		Log:     quiet,
		Locks:   &nlm.Config{PortmapperPort: h.port, Grace: grace, Retry: time.Millisecond, Notify: time.Millisecond},
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	h.addr = l.Addr().String()
	go h.server.Serve(l)
	for _, c := range h.clients {
		c.gone = false
		err = errors.Join(err, c.connect(h.addr))
	}
	return err
}

// stop ends a server. Its errors do not matter where the device is dead.
func (h *history) stop() error {
	h.hangUp()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(h.server.Shutdown(ctx), h.volume.Close())
}

func (h *history) hangUp() {
	for _, c := range h.clients {
		if c.conn != nil {
			c.conn.Close()
		}
	}
}

// newHistory makes a volume with a file, and serves it.
func newHistory(t testing.TB, seed uint64) (h *history, done func()) {
	t.Helper()
	h = &history{r: rand.New(rand.NewPCG(seed, 0)), sim: disk.NewSim(volumeBlocks * disk.BlockSize)}
	if err := fs.Mkfs(h.sim, fs.MkfsOptions{Zeroed: true, Inodes: 64}); err != nil {
		t.Fatal(err)
	}
	h.peers, h.port, done = newPeers(t)
	for o := range h.clients {
		c := &client{h: h, owner: int8(o), told: make(chan struct{}, 1)}
		c.waits, c.first = map[wanted]*waiting{}, map[wanted]int64{}
		c.r, c.decides = rand.New(rand.NewPCG(seed, uint64(1+o))), rand.New(rand.NewPCG(seed, uint64(100+o)))
		h.clients[o] = c
	}
	for _, p := range h.peers {
		p.granted = func(host string, w wanted) uint32 {
			if w.owner < 0 || w.owner >= owners || hostName(hostOf[w.owner]) != host {
				return nlm.Denied
			}
			return h.clients[w.owner].isTold(w)
		}
	}
	if err := h.start(0); err != nil {
		t.Fatal(err)
	}
	c, err := nfsclient.Mount(h.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mode := uint32(0o666)
	n, err := c.Create(&fs.Cred{}, c.Root(), []byte("file"), fs.Unchecked, &fs.SetAttr{Mode: &mode}, 0)
	if err != nil {
		t.Fatal(err)
	}
	h.file = c.Raw(n.Handle)
	return h, done
}

// life is what clients do while a server is there. Some reclaim what they had at once, some later. All at an address
// may be silent.
func (h *history) life(again bool, calls int) {
	var silent [addresses]bool
	for a := range silent {
		silent[a] = again && h.r.IntN(4) == 0
	}
	h.together(func(c *client) {
		if silent[at(c.owner)] {
			return
		}
		if again {
			if c.r.IntN(4) == 0 {
				c.work(2)
			}
			c.reclaim()
		}
		c.work(calls)
	})
}

// restart ends the server, in order or not, and starts the next one. Clients that had locks have to be told.
func (h *history) restart(inOrder bool) (x *call, err error) {
	if inOrder {
		if err := h.stop(); err != nil {
			return nil, err
		}
	} else {
		h.sim.FreezeAfter(0, false)
		h.stop()
		h.sim = h.sim.Crash(disk.RandomChoice(h.r, true))
	}
	var holds [addresses]bool
	for _, c := range h.clients {
		for _, sure := range c.sure {
			holds[at(c.owner)] = holds[at(c.owner)] || sure
		}
	}
	x = &call{kind: crash, inOrder: inOrder}
	grace := time.Hour
	switch h.r.IntN(6) {
	case 0:
		x.noGrace, grace = true, 0
	case 1, 2:
		grace = time.Duration(5+h.r.IntN(40)) * time.Millisecond
	default:
		x.forever = true
	}
	for _, c := range h.clients {
		c.begins()
	}
	h.crashed(x)
	last := uint32(0)
	for _, p := range h.peers {
		last = max(last, p.lastStart())
	}
	if err := h.start(grace); err != nil {
		return nil, err
	}
	for a, p := range h.peers {
		for holds[a] {
			select {
			case state := <-p.started:
				holds[a] = state <= last || state%2 == 0 // it was told of an earlier one
			case <-time.After(patience):
				return nil, fmt.Errorf("address %d had locks, and is not told that the server has started", a)
			}
		}
	}
	return x, nil
}

// crashed notes that the server has ended. What got no answer was done before, or not at all.
func (h *history) crashed(x *call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	end := h.now()
	for i := range h.ops[h.from:] {
		if op := &h.ops[h.from+i]; op.Output.(*reply).lost {
			op.Return = end
		}
	}
	h.from = len(h.ops)
	op := porcupine.Operation{ClientId: owners, Input: x, Output: &reply{}, Call: h.now()}
	op.Return = h.now()
	h.ops = append(h.ops, op)
}

// doom has the device fail in a while, or not. Some machines lose their connections with it.
func (h *history) doom() (end func()) {
	ended := make(chan struct{})
	var cut sync.WaitGroup
	if h.r.IntN(3) > 0 {
		stopped := h.sim.FreezeAfter(h.sim.Ops()+uint64(h.r.IntN(15)), false)
		if h.r.IntN(2) == 0 {
			cut.Go(func() {
				select {
				case <-stopped:
					h.hangUp()
				case <-ended:
				}
			})
		}
	}
	return func() {
		close(ended)
		cut.Wait()
	}
}

// run runs a history. The error says what is wrong with it, apart from the order of its calls.
func (h *history) run() error {
	const calls = 6
	var x *call
	for left := 1 + h.r.IntN(3); ; left-- {
		inOrder, end := left == 0 || h.r.IntN(3) == 0, func() {}
		if !inOrder {
			end = h.doom()
		}
		h.life(x != nil, calls)
		if x != nil && !x.forever && h.graceEnded() {
			c := h.clients[h.r.IntN(owners)] // sees that it has ended, which brings nobody to the volume
			c.send(&call{kind: test, wanted: c.forSome()})
			if h.r.IntN(2) == 0 {
				h.life(false, calls)
			}
		}
		end()
		for _, c := range h.clients {
			if inOrder && c.gone {
				return fmt.Errorf("owner %d got no answer, and nothing has failed", c.owner)
			}
		}
		if left == 0 {
			return h.finish()
		}
		var err error
		if x, err = h.restart(inOrder); err != nil {
			return err
		}
	}
}

// graceEnded waits for the end of the grace period. It tells whether that came, or the device has failed.
func (h *history) graceEnded() bool {
	for late := time.Now().Add(patience); h.server.Locks().Grace; runtime.Gosched() {
		if h.dead() || time.Now().After(late) {
			return false
		}
	}
	return true
}

// finish has all clients give all back, and ends the server, which must know of nothing any more.
func (h *history) finish() error {
	failed := make(chan error, owners)
	h.together(func(c *client) { failed <- c.finish() })
	for range h.clients {
		if err := <-failed; err != nil {
			return fmt.Errorf("%w; the server has %+v; %v", err, h.server.Locks(), h.explain(nil))
		}
	}
	for late := time.Now().Add(patience); h.server.Locks().Size > 0; runtime.Gosched() {
		if time.Now().After(late) {
			return fmt.Errorf("clients have given all back, and the server has %+v; %v", h.server.Locks(), h.explain(nil))
		}
	}
	return h.stop()
}

// limit bounds the search for an order. One that reaches it counts as not decided.
const limit = 20 * time.Second

// verdict looks for an order of the calls. The error says why there is none.
func (h *history) verdict() (porcupine.CheckResult, error) {
	m := specification.ToModel()
	result := porcupine.CheckOperationsTimeout(m, h.ops, limit)
	if result != porcupine.Illegal {
		return result, nil
	}
	_, info := porcupine.CheckOperationsVerbose(m, h.ops, limit)
	var longest []int
	for _, p := range info.PartialLinearizations() {
		for _, l := range p {
			if len(l) > len(longest) {
				longest = l
			}
		}
	}
	return result, h.explain(longest)
}

// explain shows the longest order that the model allows, and what cannot follow.
func (h *history) explain(order []int) error {
	if order == nil {
		for i := h.from; i < len(h.ops); i++ {
			order = append(order, i)
		}
	}
	var b strings.Builder
	show := func(i int) {
		op := h.ops[i]
		fmt.Fprintf(&b, "  %3d owner %d [%d, %d] %v: %v\n", i, op.ClientId, op.Call, op.Return, op.Input, op.Output)
	}
	fmt.Fprintf(&b, "no order of the calls explains their answers; the longest that explains %d of %d:\n",
		len(order), len(h.ops))
	done, first := map[int]bool{}, int64(1)<<62
	for _, i := range order {
		show(i)
		done[i] = true
	}
	for i, op := range h.ops {
		if !done[i] {
			first = min(first, op.Return)
		}
	}
	fmt.Fprintf(&b, "then none of these can follow:\n")
	for i, op := range h.ops {
		if !done[i] && op.Call <= first {
			show(i)
		}
	}
	return errors.New(b.String())
}
