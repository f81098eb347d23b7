package linear

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/mounttest"
	"tansy/test/kit/nbdtest"
)

// A place is where the histories of a test run: a volume, and the process that has it mounted.
type place struct {
	t   *testing.T
	dir string
	now *mounttest.Mount
	// start mounts the volume on dir again after a crash.
	start func() (*mounttest.Mount, error)
	// strike has the machine or the process end some time from now on; the channel says when. nil: nothing happens.
	strike func(r *rand.Rand) <-chan struct{}
	// left makes of what the process used what the crash leaves.
	left  func(r *rand.Rand)
	clock func(r *rand.Rand) *clock // of a history
}

// end ends the process, and takes its mount away.
func (p *place) end() {
	p.now.Kill()
	syscall.Unmount(p.dir, syscall.MNT_DETACH)
}

// starts has the volume mounted now, and after each crash, which must go well.
func (p *place) starts(start func() *mounttest.Mount) {
	p.start = func() (*mounttest.Mount, error) { return start(), nil }
	p.now = start()
}

func machineClock(*rand.Rand) *clock { return &clock{machine: true} }

// beginHere makes the directory that the history works in, with a directory and two files, all durable.
func beginHere(p *place, seed uint64, name string) (*history, *mounted, error) {
	r := rand.New(rand.NewPCG(seed, 7<<40))
	m := &mounted{top: filepath.Join(p.dir, name)}
	mix := seed % uint64(len(sysMixes))
	h := &history{seed: seed, clock: p.clock(r), started: time.Now(), pool: &pool{},
		verifiers: []map[uint64]bool{{}}, mixHere: sysMixes[mix], cached: mix != bytesMix}
	if err := unix.Mkdir(m.top, 0o777); err != nil {
		return nil, nil, err
	}
	if err := m.openDirs(); err != nil {
		return nil, nil, err
	}
	a, err := status(m.fd(m.dirs[0]))
	if err != nil {
		return nil, nil, err
	}
	h.top = fs.Node{Handle: fs.Handle{Ino: a.Ino}, Attr: *a}
	sub := &call{proc: sysMkdir, h: h.top.Handle, name: "sub", set: fs.SetAttr{Mode: u32(0o777)}}
	h.open(sub)
	made := m.do(sub)
	var st unix.Stat_t
	if err := unix.Fstatat(m.fd(a.Ino), "sub", &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil, nil, err
	}
	made.node.Handle.Ino = st.Ino
	h.settle(0, sub, &made)
	m.closeAll()
	if err := m.openDirs(); err != nil {
		return nil, nil, err
	}
	return h, m, h.makeFiles(m)
}

// makeFiles makes two files of two blocks, durable.
func (h *history) makeFiles(m *mounted) error {
	do := func(c *call) (*reply, error) {
		r, ok := h.call(0, m, c)
		if !ok || r.err != nil {
			return r, fmt.Errorf("%v: %w", c, r.err)
		}
		return r, nil
	}
	for _, name := range []string{"a", "b"} {
		r, err := do(&call{proc: sysCreate, h: h.top.Handle, name: name, how: fs.Guarded, set: fs.SetAttr{Mode: u32(0o666)}})
		if err == nil {
			_, err = do(&call{proc: sysWrite, h: r.node.Handle, data: strings.Repeat(name, 2*fs.BlockSize)})
		}
		if err != nil {
			return err
		}
	}
	_, err := do(&call{proc: sysSync, h: h.top.Handle})
	return err
}

// togetherHere runs the clients of a history at the same time.
func (h *history) togetherHere(m *mounted, workers, calls, round int) {
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() { h.workHere(round*100+i, m, calls) })
	}
	wg.Wait()
}

// run runs and checks one history on a mount.
func (p *place) run(seed uint64, name string) (*history, porcupine.CheckResult, error) {
	r := rand.New(rand.NewPCG(seed, 8<<40))
	h, m, err := beginHere(p, seed, name)
	if err != nil {
		return &history{seed: seed}, porcupine.Unknown, err
	}
	defer func() { m.closeAll() }()
	workers := 2 + r.IntN(4)
	err = h.togetherUntil(p, r, func() { h.togetherHere(m, workers, 40/workers, 0) }, func() { m.closeAll() })
	if err != nil {
		return h, porcupine.Illegal, err // the crash damaged the volume
	}
	if p.strike != nil {
		if err := m.openDirs(); err != nil {
			return h, porcupine.Illegal, err
		}
		if !h.auditHere(m) {
			return h, porcupine.Unknown, h.firstLost("after the crash")
		}
		h.togetherHere(m, workers, 16/workers, 9)
	}
	if !h.auditHere(m) || len(h.lost) > 0 {
		return h, porcupine.Unknown, h.firstLost("without a crash")
	}
	result, err := h.verdict(limit)
	return h, result, err
}

// togetherUntil has work done until it ends or the place is struck, and the volume mounted again after that. Clients
// let go of what they have on the old mount.
func (h *history) togetherUntil(p *place, r *rand.Rand, work, letGo func()) (err error) {
	if p.strike == nil {
		work()
		return nil
	}
	struck := p.strike(r)
	var down atomic.Bool
	h.down = down.Load
	last := 1 + r.IntN(25) // the answer after which the process is killed, whatever the device does
	late := make(chan struct{})
	h.answered = func() {
		if last--; last == 0 {
			close(late)
		}
	}
	ended, killed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(killed)
		if struck == nil {
			struck = late
		}
		select {
		case <-struck:
		case <-ended:
		}
		down.Store(true)
		p.now.Kill()
	}()
	work()
	close(ended)
	<-killed
	h.answered, h.down = nil, nil
	letGo()
	p.end()
	h.crashed()
	p.left(r)
	p.now, err = p.start()
	return err
}

// histories runs n histories, each of which must be allowed.
func (p *place) histories(n int) {
	first := seed(p.t)
	var sum totals
	for i := range n {
		h, result, err := p.run(first+uint64(i), fmt.Sprint("h", i))
		if err != nil {
			p.t.Fatalf("-seed %d: %v", h.seed, err)
		}
		sum.add(h, result)
	}
	sum.report(p.t)
}

// onMount is a place of `tansy mount` with an image.
func onMount(t *testing.T) *place {
	bin := mounttest.Build(t)
	unix.Umask(0)
	image := mounttest.Volume(t, bin, "256M")
	p := &place{t: t, dir: t.TempDir(), clock: machineClock, left: func(*rand.Rand) {}}
	p.starts(func() *mounttest.Mount { return mounttest.On(t, bin, image, p.dir, nil) })
	return p
}

// TestMount checks a mount that nothing happens to.
func TestMount(t *testing.T) { onMount(t).histories(count(60)) }

// never is of places where the device goes on, and the process alone is killed.
func never(*rand.Rand) <-chan struct{} { return nil }

// TestMountKill kills the process of the mount in the middle of every history.
func TestMountKill(t *testing.T) {
	p := onMount(t)
	p.strike = never
	p.histories(count(8))
}

// onCutDevice is a place of `tansy mount` on a device whose power is cut.
func onCutDevice(t *testing.T, device func(disk.Disk) disk.Disk) *place {
	bin := mounttest.Build(t)
	unix.Umask(0)
	var server nbdtest.Server
	sim := disk.NewSim(volumeBlocks * disk.BlockSize)
	newVolume(t, sim, &clock{})
	url := server.Start(t, device(sim))
	t.Cleanup(func() { sim.Close() })
	p := &place{t: t, dir: t.TempDir(), clock: machineClock}
	flags := []string{"--commit-interval", "5ms", "--cache", "16M"}
	p.start = func() (*mounttest.Mount, error) { return mounttest.Start(bin, url, p.dir, flags...) }
	p.strike = func(r *rand.Rand) <-chan struct{} { return sim.FreezeAfter(sim.Ops()+uint64(1+r.IntN(40)), true) }
	p.left = func(r *rand.Rand) {
		sim.FreezeAfter(0, true)
		next := sim.Crash(disk.RandomChoice(r, true))
		sim.Close()
		for r.IntN(3) == 0 {
			next = crashInRecovery(r, next)
		}
		sim = next
		server.SetDisk(device(sim))
	}
	p.now = mounttest.On(t, bin, url, p.dir, nil, flags...)
	t.Cleanup(func() { p.end() })
	return p
}

// TestMountCut cuts the power of the device below a mount: what no barrier has covered is lost or torn.
func TestMountCut(t *testing.T) {
	onCutDevice(t, func(d disk.Disk) disk.Disk { return d }).histories(count(8))
}

// TestServed checks histories on one volume by both faces at a time: clients of NFS and programs on the mount of `tansy
// serve --mount` work on the same bytes, and in every other history the process is killed.
func TestServed(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "256M")
	p := &place{t: t, dir: t.TempDir(), clock: machineClock, left: func(*rand.Rand) {}}
	p.starts(func() *mounttest.Mount { return mounttest.Serve(t, bin, image, p.dir, nil) })
	first := seed(t)
	var sum totals
	for i := range count(10) {
		if p.strike = nil; i%2 > 0 {
			p.strike = never
		}
		h, result, err := p.runServed(first+uint64(i), fmt.Sprint("h", i))
		if err != nil {
			t.Fatalf("-seed %d: %v", h.seed, err)
		}
		sum.add(h, result)
	}
	sum.report(t)
}

// openBoth opens the two files of a history on the mount.
func (h *history) openBoth(m *mounted) error {
	if err := m.openDirs(); err != nil {
		return err
	}
	for _, name := range []string{"a", "b"} {
		if r, ok := h.call(0, m, &call{proc: sysOpen, h: h.top.Handle, name: name}); !ok || r.err != nil {
			return fmt.Errorf("open %s: %w", name, r.err)
		}
	}
	return nil
}

// runServed runs and checks one history of both faces.
func (p *place) runServed(seed uint64, name string) (*history, porcupine.CheckResult, error) {
	r := rand.New(rand.NewPCG(seed, 9<<40))
	clients := dial(p.t, nil, p.now.Addr, 2)
	h, err := begin(clients[0], p.clock(r), seed, name)
	if err != nil {
		return &history{seed: seed}, porcupine.Unknown, err
	}
	h.mix, h.mixHere = mixes[bytesMix], servedMix
	m := &mounted{top: filepath.Join(p.dir, name)}
	defer func() { m.closeAll() }()
	if err := h.openBoth(m); err != nil {
		return h, porcupine.Unknown, err
	}
	both := func(calls, round int) {
		var wg sync.WaitGroup
		wg.Go(func() { h.together(clients, shape{connections: 2, threads: 1, calls: calls}, round) })
		wg.Go(func() { h.togetherHere(m, 2, calls, round+50) })
		wg.Wait()
	}
	if err := h.togetherUntil(p, r, func() { both(10, 0) }, func() { m.closeAll(); closeAll(clients) }); err != nil {
		return h, porcupine.Illegal, err
	}
	if p.strike != nil {
		clients = dial(p.t, clients[0], p.now.Addr, 2)
		if !h.audit(clients[0]) {
			return h, porcupine.Unknown, h.firstLost("after the crash")
		}
		if err := h.openBoth(m); err != nil {
			return h, porcupine.Illegal, err
		}
		both(4, 9)
	}
	ok := h.audit(clients[0]) && h.auditHere(m)
	closeAll(clients)
	if !ok || len(h.lost) > 0 {
		return h, porcupine.Unknown, h.firstLost("without a crash")
	}
	result, err := h.verdict(limit)
	return h, result, err
}
