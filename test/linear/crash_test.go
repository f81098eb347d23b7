package linear

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"tansy/disk"
	"tansy/fs"
)

// doomed is a device on which the machine stops at some point; died is closed when
// somebody notices.
type doomed struct {
	disk.Disk
	once sync.Once
	died chan struct{}
}

func newDoomed(d disk.Disk) *doomed { return &doomed{Disk: d, died: make(chan struct{})} }

func (d *doomed) note(err error) error {
	if errors.Is(err, disk.ErrFrozen) {
		d.once.Do(func() { close(d.died) })
	}
	return err
}

// dead says whether the machine has stopped.
func (d *doomed) dead() bool {
	select {
	case <-d.died:
		return true
	default:
		return false
	}
}

func (d *doomed) ReadAt(a uint64, b [][]byte) error  { return d.note(d.Disk.ReadAt(a, b)) }
func (d *doomed) WriteAt(a uint64, b [][]byte) error { return d.note(d.Disk.WriteAt(a, b)) }
func (d *doomed) Barrier() error                     { return d.note(d.Disk.Barrier()) }

// TestCrash stops the machine in the middle, once or twice, loses some of what no
// barrier covered (torn sectors, any order), stops it again in the recovery now and
// then, starts a new server on the rest and lets the clients go on with their handles. The whole must be durably
// linearizable: see the package comment.
func TestCrash(t *testing.T) {
	first := seed(t)
	var sum totals
	for i := range count(90) {
		h, result, err := runCrash(t, first+uint64(i), &clock{}, nil, false)
		if err != nil {
			t.Fatalf("-seed %d: %v", h.seed, err)
		}
		sum.add(h, result)
	}
	sum.report(t)
	if sum.lost == 0 && sum.histories > 10 {
		t.Error("every operation got an answer: the crashes came too late")
	}
}

// runCrash runs and checks one history with crashes on a volume of its own, whose
// clock is k. With noBarriers the device's do nothing.
func runCrash(
	t *testing.T, seed uint64, k *clock, bug fault, noBarriers bool,
) (*history, porcupine.CheckResult, error) {
	r := rand.New(rand.NewPCG(seed, 2<<40))
	sim := disk.NewSim(volumeBlocks * disk.BlockSize)
	newVolume(t, sim, k)
	d := newDoomed(sim)
	device := func(d disk.Disk) disk.Disk {
		if noBarriers {
			return hollow{d}
		}
		return slow{d, 200 * time.Microsecond}
	}
	s := serve(t, device(d), k, bug)
	sh := shapeOf(r)
	sh.calls = 24 / (sh.connections * sh.threads)
	clients := dial(t, nil, s.addr, sh.connections)
	h, err := begin(clients[0], k, seed, "h")
	if err != nil {
		t.Fatal(err)
	}
	h.down = func() bool { return d.dead() }
	for round := range 1 + r.IntN(2) {
		if r.IntN(5) > 0 {
			sim.FreezeAfter(sim.Ops()+uint64(r.IntN(25)), false)
		} // else in peace, and only then
		// The power may fail for the server alone, which then tells of errors, or
		// with all connections.
		ended := make(chan struct{})
		var cut sync.WaitGroup
		if r.IntN(2) == 0 {
			cut.Go(func() {
				select {
				case <-d.died:
					closeAll(clients)
				case <-ended:
				}
			})
		}
		h.together(clients, sh, round)
		sim.FreezeAfter(0, false)
		close(ended)
		cut.Wait()
		closeAll(clients)
		s.stop()
		h.crashed()

		sim = sim.Crash(disk.RandomChoice(r, true))
		for r.IntN(3) == 0 {
			sim = crashInRecovery(r, sim)
		}
		d = newDoomed(sim)
		if s, err = tryServe(t, device(d), k, bug); err != nil {
			return h, porcupine.Illegal, err // the crash damaged the volume
		}
		clients = dial(t, clients[0], s.addr, sh.connections)
		if !h.audit(clients[0]) {
			return h, porcupine.Unknown, h.firstLost("after the crash")
		}
	}
	h.together(clients, sh, 9)
	ok := h.audit(clients[0])
	closeAll(clients)
	s.stop()
	if !ok || len(h.lost) > 0 {
		return h, porcupine.Unknown, h.firstLost("without a crash")
	}
	result, err := h.verdict(limit)
	return h, result, err
}

// crashInRecovery stops the machine again while it recovers, or just after.
func crashInRecovery(r *rand.Rand, sim *disk.Sim) *disk.Sim {
	sim.FreezeAfter(sim.Ops()+uint64(r.IntN(15)), false)
	if v, err := fs.Open(sim, fs.Options{CacheBytes: 4 << 20, Log: quiet}); err == nil {
		v.Close()
	}
	return sim.Crash(disk.RandomChoice(r, true))
}

// firstLost is the error that an operation failed where it must not.
func (h *history) firstLost(when string) error {
	id := h.lost[0]
	return fmt.Errorf("operation %d, %v, failed %s: %v", id, h.calls[id], when, h.ops[id].Output.(*reply).err)
}
