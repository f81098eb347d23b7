package linear

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/anishathalye/porcupine"

	"tansy/nfs/nfs3"
	"tansy/test/kit/cephtest"
	"tansy/test/kit/nfsclient"
)

// takeovers are what becomes of a server, so that another takes over.
var takeovers = []struct {
	what           string
	server, helper syscall.Signal // 0: nothing
	take           bool
}{
	{"both stopped", syscall.SIGSTOP, syscall.SIGSTOP, false},
	{"server killed", syscall.SIGKILL, 0, false},
	{"taken by force", 0, 0, true},
	{"helper stopped", 0, syscall.SIGSTOP, false},
	{"helper killed", 0, syscall.SIGKILL, false},
	{"server stopped", syscall.SIGSTOP, 0, false},
	{"both killed", syscall.SIGKILL, syscall.SIGKILL, false},
}

// reads are what a former owner is asked for when it has a successor.
var reads = []uint32{nfs3.ProcGetattr, nfs3.ProcLookup, nfs3.ProcAccess, nfs3.ProcRead, nfs3.ProcReaddir}

// TestTakeover is TestCrash on a Ceph cluster, where another server takes over in the middle of every history. Clients
// of the former owner go on waiting for it, and others ask it anew, while those of the successor change what it may
// have in its cache: then what stood still goes on.
func TestTakeover(t *testing.T) {
	c := cephtest.Start(t)
	first := seed(t)
	bin := cephtest.Build(t)
	c.Run(t, bin, "mkfs", c.Volume, "--force")
	s := c.Launch(t, bin)
	s.Until(t, s.Serves)
	var sum totals
	for i := range count(7) {
		var h *history
		var result porcupine.CheckResult
		h, result, s = takeOver(t, c, bin, s, first+uint64(i), i)
		sum.add(h, result)
	}
	sum.report(t)
	s.Signal(syscall.SIGINT)
	if exit := s.Wait(t); exit != "" {
		t.Errorf("told to stop, the server ended with %s", exit)
	}
	t.Log(c.Run(t, bin, "check", "--data", c.Volume))
}

// takeOver runs and checks one history, and returns the server that has taken over.
func takeOver(
	t *testing.T, c *cephtest.Cluster, bin string, s *cephtest.Server, seed uint64, n int,
) (*history, porcupine.CheckResult, *cephtest.Server) {
	x := takeovers[n%len(takeovers)]
	t.Logf("%s: -seed %d", x.what, seed)
	r := rand.New(rand.NewPCG(seed, 4<<40))
	var next *cephtest.Server
	if !x.take {
		next = c.Launch(t, bin, "--standby")
		next.Until(t, next.Waits)
	}
	sh := shapeOf(r)
	sh.calls = 24 / (sh.connections * sh.threads)
	clients := dial(t, nil, s.Addr, sh.connections+1)
	late := clients[sh.connections]
	h, err := begin(clients[0], &clock{machine: true}, seed, fmt.Sprint("h", n))
	if err != nil {
		t.Fatal(err)
	}
	// The fault comes after some answer.
	helper := s.Helper(t)
	signal := func(server, helperToo syscall.Signal) {
		if server != 0 {
			s.Signal(server)
		}
		if helperToo != 0 {
			syscall.Kill(helper, helperToo)
		}
	}
	var down atomic.Bool
	struck := make(chan struct{})
	last := 1 + r.IntN(20)
	h.down = down.Load
	h.answered = func() {
		if last--; last == 0 {
			down.Store(true)
			signal(x.server, x.helper)
			close(struck)
		}
	}
	var former sync.WaitGroup
	former.Go(func() { h.together(clients[:sh.connections], sh, 0) })
	<-struck
	if x.take {
		next = c.Launch(t, bin, "--take")
	}
	next.Until(t, next.Serves)
	h.crashed()
	down.Store(false)

	heirs := dial(t, late, next.Addr, sh.connections)
	for i := range 4 {
		former.Go(func() { h.ask(700+i, late) })
	}
	ok := h.audit(heirs[0])
	if ok {
		h.together(heirs, sh, 8)
	}
	wake := map[syscall.Signal]syscall.Signal{syscall.SIGSTOP: syscall.SIGCONT}
	signal(wake[x.server], wake[x.helper])
	if ok {
		h.together(heirs, sh, 9) // beside what goes on
	}
	s.Wait(t)
	former.Wait()
	ok = ok && h.audit(heirs[0])
	closeAll(clients)
	closeAll(heirs)
	if !ok || len(h.lost) > 0 {
		t.Fatalf("-seed %d: %v", seed, h.firstLost("after another server took over"))
	}
	result, err := h.verdict(limit)
	if err != nil {
		t.Fatalf("-seed %d: %v", seed, err)
	}
	return h, result, next
}

// ask reads from a server that another has taken over from, until it gets no answer.
func (h *history) ask(client int, f *nfsclient.Client) {
	r := rand.New(rand.NewPCG(h.seed, uint64(client)))
	for i := 0; ; i++ {
		c := choose(r, h.pool, reads, client*1000+i)
		c.former = true
		if _, ok := h.do(client, f, c); !ok {
			return
		}
	}
}
