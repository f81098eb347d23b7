package linear

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/anishathalye/porcupine"

	"tansy/test/kit/cephtest"
)

// process is the program serving a volume.
type process struct {
	cmd    *exec.Cmd
	addr   string
	killed atomic.Bool // or about to be
}

func startProcess(t *testing.T, bin, volume string) *process {
	t.Helper()
	cmd := exec.Command(bin, "serve", "--volume", volume, "--create", "--size", "1G", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
			go func() { // the pipe must not fill
				for lines.Scan() {
				}
			}()
			return &process{cmd: cmd, addr: strings.TrimSpace(addr)}
		}
	}
	t.Fatalf("the server did not start: %v", cmd.Wait())
	return nil
}

func (p *process) kill() {
	p.killed.Store(true)
	p.cmd.Process.Kill()
}

// bury kills the process if it runs yet, and waits for its end, which must be that.
func (p *process) bury(t *testing.T) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	p.kill()
	err := p.cmd.Wait()
	if how, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || how.Signal() != syscall.SIGKILL {
		t.Fatalf("the server was not killed but ended by itself: %v", err)
	}
}

// TestKill is TestCrash with the program itself on a file: it is killed with
// SIGKILL in the middle of every history. The machine goes on, so what reached the
// file stays; what was in the server's memory is lost.
func TestKill(t *testing.T) {
	first := seed(t)
	bin := cephtest.Build(t)
	volume := filepath.Join(t.TempDir(), "test.img")
	p := startProcess(t, bin, volume)
	defer func() { p.bury(t) }()
	var sum totals
	for i := range count(8) {
		seed := first + uint64(i)
		r := rand.New(rand.NewPCG(seed, 3<<40))
		sh := shapeOf(r)
		sh.calls = 24 / (sh.connections * sh.threads)
		clients := dial(t, nil, p.addr, sh.connections)
		h, err := begin(clients[0], &clock{machine: true}, seed, fmt.Sprint("h", i))
		if err != nil {
			t.Fatal(err)
		}
		last := 1 + r.IntN(20) // the answer after which the server dies
		h.answered = func() {
			if last--; last == 0 {
				p.kill()
			}
		}
		h.down = p.killed.Load
		h.together(clients, sh, 0)
		h.answered = nil
		p.bury(t)
		closeAll(clients)
		h.crashed()

		p = startProcess(t, bin, volume)
		h.down = p.killed.Load
		clients = dial(t, clients[0], p.addr, sh.connections)
		ok := h.audit(clients[0])
		if ok {
			h.together(clients, sh, 9)
			ok = h.audit(clients[0])
		}
		closeAll(clients)
		if !ok || len(h.lost) > 0 {
			t.Fatalf("-seed %d: %v", seed, h.firstLost("after the server was killed"))
		}
		var result porcupine.CheckResult
		if result, err = h.verdict(limit); err != nil {
			t.Fatalf("-seed %d: %v", seed, err)
		}
		sum.add(h, result)
	}
	sum.report(t)
}
