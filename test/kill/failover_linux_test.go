package kill

import (
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"tansy/test/kit/cephtest"
	"tansy/test/kit/nfsclient"
)

// An heir is a server that serves the volume of a cluster, or waits for it.
type heir struct {
	*cephtest.Server
	load server // the same, for workers
}

// A succession is a cluster, the servers of its volume, and who works on it.
type succession struct {
	*cephtest.Cluster
	bin   string
	all   []*worker
	probe *worker // one more, that works in steps
	rnd   *rand.Rand

	recovery time.Duration // the longest yet
}

func (c *succession) launch(t *testing.T, flags ...string) *heir {
	t.Helper()
	return &heir{Server: c.Launch(t, c.bin, flags...)}
}

// serving waits until h serves.
func (c *succession) serving(t *testing.T, h *heir) {
	t.Helper()
	h.Until(t, h.Serves)
	h.load.addr = h.Addr
	c.recovery = max(c.recovery, h.Recovered())
}

// A fault is what becomes of a server.
type fault struct {
	what           string
	server, helper syscall.Signal // 0: nothing
	exit           string         // how it ends
	take           bool
	short          bool // also with -short
}

const taken = "exit status 75"

var faults = []fault{
	{"server killed", syscall.SIGKILL, 0, "signal: killed", false, true},
	{"helper killed", 0, syscall.SIGKILL, taken, false, false},
	{"both killed", syscall.SIGKILL, syscall.SIGKILL, "signal: killed", false, false},
	{"server stopped", syscall.SIGSTOP, 0, "signal: killed", false, false}, // by its helper
	{"helper stopped", 0, syscall.SIGSTOP, taken, false, false},
	{"both stopped", syscall.SIGSTOP, syscall.SIGSTOP, taken, false, true},
	{"taken by force", 0, 0, taken, true, true},
}

// strike has the fault happen to h.
func (f *fault) strike(t *testing.T, h *heir) {
	t.Helper()
	helper := h.Helper(t)
	h.load.killed.Store(true)
	if f.server != 0 {
		h.Signal(f.server)
	}
	if f.helper != 0 {
		syscall.Kill(helper, f.helper)
	}
}

// wake has what was stopped go on, and waits for the end of h, which must be the one of the fault.
func (f *fault) wake(t *testing.T, h *heir) {
	t.Helper()
	if f.server == syscall.SIGSTOP {
		h.Signal(syscall.SIGCONT)
	}
	if f.helper == syscall.SIGSTOP {
		syscall.Kill(h.Helper(t), syscall.SIGCONT)
	}
	if exit := h.Wait(t); exit != f.exit {
		t.Errorf("the former owner ended with %q, want %q", exit, f.exit)
	}
}

// TestFailover: on a Ceph cluster, whatever becomes of a server or of the storage under load, the next server has all
// that was acknowledged; and who stood still and goes on changes nothing, and answers nothing.
func TestFailover(t *testing.T) {
	c, s := begin(t)
	run := func(what string, short bool, f func(*testing.T)) {
		if short || !testing.Short() {
			if !t.Run(what, f) {
				t.FailNow()
			}
		}
	}
	for _, f := range faults {
		run(f.what, f.short, func(t *testing.T) { s = c.whileItServes(t, s, f) })
	}
	for _, f := range faults {
		if !f.take {
			run(f.what+" before its first write", f.what == "helper killed",
				func(t *testing.T) { s = c.whileItTakesOver(t, s, f, false) })
			run(f.what+" in its recovery", f.what == "both stopped",
				func(t *testing.T) { s = c.whileItTakesOver(t, s, f, true) })
		}
	}
	run("the monitor is gone while another takes over", false, func(t *testing.T) { s = c.withoutMonitor(t, s) })
	run("the monitor is gone", true, func(t *testing.T) { c.underLoad(t, s, c.monitorGone) })
	run("OSDs are gone", true, func(t *testing.T) {
		s = c.launch(t)
		c.serving(t, s)
		verify(t, s, c.all)
		c.underLoad(t, s, c.killOSDs)
	})
	c.end(t)
}

// begin makes a cluster, and starts the first server of a new volume on it.
func begin(t *testing.T) (*succession, *heir) {
	c := &succession{Cluster: cephtest.Start(t), rnd: rand.New(rand.NewPCG(*seed, 1<<32))}
	t.Logf("-seed %d", *seed)
	c.bin = cephtest.Build(t)
	c.Run(t, c.bin, "mkfs", c.Volume, "--force")
	newWorker := func(i int) *worker {
		return &worker{id: i, rnd: rand.New(rand.NewPCG(*seed, uint64(i+1))), files: map[string]state{}}
	}
	for i := range *workers {
		c.all = append(c.all, newWorker(i))
	}
	c.probe = newWorker(*workers)
	s := c.launch(t)
	c.serving(t, s)
	verify(t, s, c.all) // makes the folders
	return c, s
}

// end checks a volume that nobody serves any more.
func (c *succession) end(t *testing.T) {
	t.Log(c.Run(t, c.bin, "check", "--data", c.Volume))
	acked := c.probe.acked
	for _, w := range c.all {
		acked += w.acked
	}
	t.Logf("%d operations acknowledged, nothing lost", acked)
}

// work has all workers work until their server is lost. The result waits for that.
func (c *succession) work(s *heir) (wait func(*testing.T)) {
	var working sync.WaitGroup
	errs := make([]error, len(c.all))
	for i, w := range c.all {
		working.Go(func() { errs[i] = w.run(&s.load) })
	}
	return func(t *testing.T) {
		t.Helper()
		working.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

// known are the workers with what they know now: some still wait for a former owner.
func (c *succession) known() (known []*worker) {
	for _, w := range c.all {
		known = append(known, &worker{id: w.id, files: maps.Clone(w.files)})
	}
	return known
}

// verify compares what a server has with what workers know.
func verify(t *testing.T, s *heir, all []*worker) {
	t.Helper()
	c, err := nfsclient.Mount(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, w := range all {
		if err := w.verify(c); err != nil {
			t.Fatal(err)
		}
	}
}

// whileItServes has a fault happen to s under load, and returns the server that took over.
func (c *succession) whileItServes(t *testing.T, s *heir, f fault) *heir {
	var next *heir
	if !f.take {
		next = c.launch(t, "--standby")
		next.Until(t, next.Waits)
	}
	late, err := nfsclient.Mount(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	wait := c.work(s)
	time.Sleep(1500 * time.Millisecond) // the moment of the fault, not a synchronisation
	begin := time.Now()
	f.strike(t, s)
	if f.take {
		next = c.launch(t, "--take")
	}
	c.serving(t, next)
	t.Logf("the successor serves after %v", time.Since(begin).Round(time.Millisecond))
	answered := make(chan error, 1)
	go func() {
		_, err := late.Getattr(late.Root())
		answered <- err
	}()
	known := c.known()
	verify(t, next, known)
	f.wake(t, s)
	wait(t)
	if err := <-answered; err == nil {
		t.Error("the former owner answered when its successor served")
	}
	verify(t, next, known) // nothing changed
	verify(t, next, c.all)
	return next
}

// whileItTakesOver kills s, has a fault happen to the server that takes over before it serves, and returns the third
// one. The fault comes as soon as that server has the lock, and has written nothing yet; or at some moment of its
// recovery.
func (c *succession) whileItTakesOver(t *testing.T, s *heir, f fault, recovering bool) *heir {
	heirs := [2]*heir{c.launch(t, "--standby"), c.launch(t, "--standby")}
	for _, h := range heirs {
		h.Until(t, h.Waits)
	}
	wait := c.work(s)
	time.Sleep(time.Second) // the moment of the fault, not a synchronisation
	s.load.killed.Store(true)
	s.Signal(syscall.SIGKILL)
	wait(t)
	var second, third *heir
	select {
	case <-heirs[0].Owns:
		second, third = heirs[0], heirs[1]
	case <-heirs[1].Owns:
		second, third = heirs[1], heirs[0]
	case <-time.After(5 * time.Minute):
		t.Fatal("nobody takes over")
	}
	if recovering {
		time.Sleep(cephtest.Lease + time.Duration(c.rnd.Int64N(max(int64(c.recovery), 1)))) // the moment of the fault, not a synchronisation
	}
	select {
	case <-second.Serves:
		t.Log("the fault came after the recovery")
	default:
	}
	begin := time.Now()
	f.strike(t, second)
	c.serving(t, third)
	t.Logf("the third server serves after %v", time.Since(begin).Round(time.Millisecond))
	known := c.known()
	verify(t, third, known)
	f.wake(t, second)
	verify(t, third, known) // nothing changed
	verify(t, third, c.all)
	return third
}

// withoutMonitor kills s and its helper when there is no monitor: the next server takes over when there is one again.
func (c *succession) withoutMonitor(t *testing.T, s *heir) *heir {
	next := c.launch(t, "--standby")
	next.Until(t, next.Waits)
	wait := c.work(s)
	time.Sleep(time.Second) // the moment of the fault, not a synchronisation
	c.Kill(t, "mon.a")
	f := fault{server: syscall.SIGKILL, helper: syscall.SIGKILL}
	f.strike(t, s)
	wait(t)
	time.Sleep(15 * time.Second) // longer than Ceph waits for an owner
	select {
	case <-next.Owns:
		t.Error("it took over without a fence")
	default:
	}
	begin := time.Now()
	c.Restart(t, "mon.a")
	c.serving(t, next)
	t.Logf("the successor serves %v after the monitor is back", time.Since(begin).Round(time.Millisecond))
	verify(t, next, c.all)
	return next
}

// underLoad has something happen to the storage while all work, and another one in steps, by works. Then s is told to
// stop, without an error so far.
func (c *succession) underLoad(t *testing.T, s *heir, do func(t *testing.T, works func(when string))) {
	wait := c.work(s)
	p, err := nfsclient.Mount(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dir, err := c.probe.dir(p)
	if err == nil {
		err = c.probe.verify(p)
	}
	if err != nil {
		t.Fatal(err)
	}
	do(t, func(when string) {
		t.Helper()
		begin, longest := time.Now(), time.Duration(0)
		for range 100 {
			at := time.Now()
			if err := c.probe.step(p, dir); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			longest = max(longest, time.Since(at))
		}
		t.Logf("%s: 100 operations in %v, the longest %v",
			when, time.Since(begin).Round(time.Millisecond), longest.Round(time.Millisecond))
	})
	s.load.killed.Store(true)
	s.Signal(syscall.SIGINT)
	wait(t)
	if exit := s.Wait(t); exit != "" {
		t.Errorf("told to stop, the server ended with %s", exit)
	}
}

// killOSDs kills one of three OSDs, and then another one, with which writing stops, until the first is back: pauses,
// and no error.
func (c *succession) killOSDs(t *testing.T, works func(string)) {
	works("before")
	c.Kill(t, "osd.1")
	works("an OSD is gone")
	c.Kill(t, "osd.2")
	back := time.AfterFunc(8*time.Second, func() { c.Restart(t, "osd.1") }) // longer than two leases
	works("two of three were gone")
	back.Stop()
	c.Restart(t, "osd.2")
	works("all are back")
}

// monitorGone takes the only monitor away for longer than leases and watches last: nothing is to be seen of it.
func (c *succession) monitorGone(t *testing.T, works func(string)) {
	works("before")
	c.Kill(t, "mon.a")
	for begin := time.Now(); time.Since(begin) < 10*time.Second; {
		works("the monitor is gone")
	}
	c.Restart(t, "mon.a")
	works("it is back")
}
