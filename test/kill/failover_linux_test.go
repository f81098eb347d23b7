package kill

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tansy/internal/nfsclient"
)

var ceph = flag.Bool("ceph", false, "run TestFailover, on a Ceph cluster that it makes of Debian's ceph-mon, ceph-mgr, ceph-osd, ceph-common, python3-rbd, nbdkit and nbdkit-plugin-python")

// cluster is a Ceph cluster for a test, with a volume.
type cluster struct {
	t           *testing.T // of all its servers, at whose end they end
	dir, volume string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	for _, program := range []string{"ceph-mon", "ceph-mgr", "ceph-osd", "rbd", "nbdkit"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatal(err)
		}
	}
	c := &cluster{t: t, dir: t.TempDir()}
	t.Cleanup(func() { c.run(t, "../ceph/cluster", "down", c.dir) })
	begin := time.Now()
	t.Setenv("WATCH", "8")
	t.Log(c.run(t, "../ceph/cluster", "up", c.dir))
	t.Logf("the cluster is up after %v", time.Since(begin).Round(time.Second/10))
	query := url.Values{"id": {"tansy"}, "conf": {c.path("ceph.conf")}, "keyring": {c.path("tansy.keyring")}}
	c.volume = "rbd:tansy/vol?" + query.Encode()
	return c
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// run runs a command that knows the cluster, and returns what it printed.
func (c *cluster) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "CEPH_CONF="+c.path("ceph.conf"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// An heir is a server that serves the volume of a cluster, or waits for it.
type heir struct {
	server
	waits, serves chan struct{} // closed when it does
	ended         chan error
}

// launch starts a server with more flags.
func (c *cluster) launch(t *testing.T, bin string, flags ...string) *heir {
	t.Helper()
	h := &heir{waits: make(chan struct{}), serves: make(chan struct{}), ended: make(chan error, 1)}
	h.cmd = exec.Command(bin, append([]string{"serve", "--volume", c.volume, "--listen", "127.0.0.1:0", "--lease", "2s"}, flags...)...)
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := h.cmd.StderrPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	readers.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			if _, addr, ok := strings.Cut(s.Text(), "listening on "); ok {
				h.addr = strings.TrimSpace(addr)
				close(h.serves)
			}
		}
	})
	readers.Go(func() {
		told := false
		for s := bufio.NewScanner(log); s.Scan(); {
			fmt.Fprintln(os.Stderr, s.Text())
			if !told && strings.Contains(s.Text(), "standing by") {
				close(h.waits)
				told = true
			}
		}
	})
	go func() {
		readers.Wait()
		h.ended <- h.cmd.Wait()
	}()
	c.t.Cleanup(func() {
		h.cmd.Process.Signal(syscall.SIGCONT)
		h.cmd.Process.Kill()
	})
	return h
}

// until waits for something of a server that goes on.
func (h *heir) until(t *testing.T, what chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case err := <-h.ended:
		t.Fatalf("the server ended: %v", err)
	case <-time.After(2 * time.Minute):
		t.Fatal("the server does not get there")
	}
}

// helper is the process that holds the lock for h.
func (h *heir) helper(t *testing.T) int {
	t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", h.cmd.Process.Pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			return pid
		}
	}
	t.Fatal("the server has no helper")
	return 0
}

// A fault is what becomes of a server, or of its storage.
type fault struct {
	what           string
	server, helper syscall.Signal // 0: nothing
	exit           string         // how it ends
	take           bool
}

var faults = []fault{
	{"server killed", syscall.SIGKILL, 0, "signal: killed", false},
	{"helper killed", 0, syscall.SIGKILL, "exit status 75", false},
	{"both killed", syscall.SIGKILL, syscall.SIGKILL, "signal: killed", false},
	{"server stopped", syscall.SIGSTOP, 0, "signal: killed", false}, // by its helper
	{"helper stopped", 0, syscall.SIGSTOP, "exit status 75", false},
	{"both stopped", syscall.SIGSTOP, syscall.SIGSTOP, "exit status 75", false},
	{"taken by force", 0, 0, "exit status 75", true},
}

// TestFailover: on a Ceph cluster, whatever becomes of a server under load, its standby has all that was acknowledged; and
// who stood still and goes on changes nothing, and answers nothing.
func TestFailover(t *testing.T) {
	if !*ceph {
		t.Skip("only with -ceph: it takes minutes, and Ceph")
	}
	c := startCluster(t)
	bin := build(t)
	c.run(t, bin, "mkfs", c.volume, "--force")
	var all []*worker
	for i := range *workers {
		all = append(all, &worker{id: i, rnd: rand.New(rand.NewPCG(*seed, uint64(i+1))), files: map[string]state{}})
	}
	s := c.launch(t, bin)
	s.until(t, s.serves)
	verify(t, s, all) // makes the folders
	for _, f := range faults {
		ok := t.Run(f.what, func(t *testing.T) { s = c.fail(t, bin, s, f, all) })
		if !ok {
			return
		}
	}
	ok := t.Run("OSDs killed", func(t *testing.T) { c.killOSDs(t, s, all) })
	if !ok {
		return
	}
	if err := <-s.ended; err != nil { // killOSD told it to
		t.Error(err)
	}
	t.Log(c.run(t, bin, "check", "--data", c.volume))
	acked := 0
	for _, w := range all {
		acked += w.acked
	}
	t.Logf("%d operations acknowledged, nothing lost", acked)
}

// load has all workers work until their server is lost. The result waits for that.
func load(s *heir, all []*worker) (wait func(*testing.T)) {
	var working sync.WaitGroup
	errs := make([]error, len(all))
	for i, w := range all {
		working.Go(func() { errs[i] = w.run(&s.server) })
	}
	return func(t *testing.T) {
		t.Helper()
		working.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
}

// verify compares what a server has with what workers know.
func verify(t *testing.T, s *heir, all []*worker) {
	t.Helper()
	c, err := nfsclient.Mount(s.addr)
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

// fail has a fault happen to s under load, and returns the server that took over.
func (c *cluster) fail(t *testing.T, bin string, s *heir, f fault, all []*worker) *heir {
	var next *heir
	if !f.take {
		next = c.launch(t, bin, "--standby")
		next.until(t, next.waits)
	}
	late, err := nfsclient.Mount(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	wait := load(s, all)
	time.Sleep(1500 * time.Millisecond) // the moment of the fault, not a synchronisation
	helper := s.helper(t)
	s.killed.Store(true)
	begin := time.Now()
	signal := func(server, helper int, ss, hs syscall.Signal) {
		if ss != 0 {
			syscall.Kill(server, ss)
		}
		if hs != 0 {
			syscall.Kill(helper, hs)
		}
	}
	signal(s.cmd.Process.Pid, helper, f.server, f.helper)
	if f.take {
		next = c.launch(t, bin, "--take")
	}
	next.until(t, next.serves)
	t.Logf("the successor serves after %v", time.Since(begin).Round(time.Millisecond))
	answered := make(chan error, 1)
	go func() {
		_, err := late.Getattr(late.Root())
		answered <- err
	}()
	var known []*worker // with what they know now: some still wait for the former owner
	for _, w := range all {
		known = append(known, &worker{id: w.id, files: maps.Clone(w.files)})
	}
	verify(t, next, known)
	if f.server == syscall.SIGSTOP || f.helper == syscall.SIGSTOP {
		cont := func(s syscall.Signal) syscall.Signal {
			if s != 0 {
				return syscall.SIGCONT
			}
			return 0
		}
		signal(s.cmd.Process.Pid, helper, cont(f.server), cont(f.helper))
	}
	if err := <-s.ended; err == nil || err.Error() != f.exit {
		t.Errorf("the former owner ended with %v, want %s", err, f.exit)
	}
	wait(t)
	if err := <-answered; err == nil {
		t.Error("the former owner answered when its successor served")
	}
	verify(t, next, known) // nothing changed
	verify(t, next, all)
	return next
}

// killOSDs kills one of three OSDs under load, and then another one, with which writing stops, until the first is back: pauses, and no
// error. Then the server is told to stop.
func (c *cluster) killOSDs(t *testing.T, s *heir, all []*worker) {
	wait := load(s, all)
	p, err := nfsclient.Mount(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	probe := &worker{id: len(all), rnd: rand.New(rand.NewPCG(*seed, 0)), files: map[string]state{}}
	dir, err := probe.dir(p)
	if err != nil {
		t.Fatal(err)
	}
	works := func(when string) {
		begin, longest := time.Now(), time.Duration(0)
		for range 100 {
			at := time.Now()
			if err := probe.step(p, dir); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
			longest = max(longest, time.Since(at))
		}
		t.Logf("%s: 100 operations in %v, the longest %v", when, time.Since(begin).Round(time.Millisecond), longest.Round(time.Millisecond))
	}
	works("before")
	c.killOSD(t, 1)
	works("an OSD is gone")
	c.killOSD(t, 2)
	back := time.AfterFunc(8*time.Second, func() { c.run(t, "ceph-osd", "-c", c.path("ceph.conf"), "-i", "1") }) // longer than two leases
	defer back.Stop()
	works("two of three were gone")
	c.run(t, "ceph-osd", "-c", c.path("ceph.conf"), "-i", "2")
	works("all are back")
	s.killed.Store(true)
	s.cmd.Process.Signal(os.Interrupt)
	wait(t)
}

// killOSD kills an OSD.
func (c *cluster) killOSD(t *testing.T, n int) {
	t.Helper()
	text, err := os.ReadFile(c.path(fmt.Sprintf("run/osd.%d.pid", n)))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
}
