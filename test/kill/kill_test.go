// Package kill ends a real server with SIGKILL under load, again and again, and
// looks whether everything that was acknowledged is there.
//
//	go test ./test/kill -rounds 100 -seed 7
//	go test ./test/kill -run Failover -ceph -v               # a standby takes over, on a Ceph cluster
//	go test ./test/kill -run Failover -ceph -v -short        # the same with fewer faults, as where changes land
//	go test ./test/kill -run Failover -ceph -v -helper c     # with one of the two helpers alone
//	go test ./test/kill -run BlocklistExpires -ceph -v       # when the fence is lifted too early
package kill

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tansy/fs"
	"tansy/test/kit/cephtest"
	"tansy/test/kit/nfsclient"
)

var (
	rounds  = flag.Int("rounds", 3, "how often the server is killed")
	seed    = flag.Uint64("seed", uint64(time.Now().UnixNano()), "seed of the load")
	workers = flag.Int("workers", 8, "clients at a time")
)

var root = &fs.Cred{}

// server is a running tansy process.
type server struct {
	cmd    *exec.Cmd
	addr   string
	killed atomic.Bool // or about to be
}

func start(t *testing.T, bin, volume string) *server {
	t.Helper()
	cmd := exec.Command(bin, "serve", "--volume", volume, "--create", "--size", "1G", "--listen", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
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
			return &server{cmd: cmd, addr: strings.TrimSpace(addr)}
		}
	}
	t.Fatalf("the server did not start: %v", cmd.Wait())
	return nil
}

// kill ends the server, which must not have ended by itself.
func (s *server) kill(t *testing.T) {
	t.Helper()
	s.killed.Store(true)
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	err := s.cmd.Wait()
	if how, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || how.Signal() != syscall.SIGKILL {
		t.Fatalf("the server was not killed but ended by itself: %v", err)
	}
}

// lost says whether err is the end of a connection because the server was killed.
func (s *server) lost(err error) bool {
	return s.killed.Load() && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err,
		new(*net.OpError)))
}

// state is what a file may be: absent, or one of some contents.
type state struct {
	absent   bool
	contents [][]byte
}

// worker changes files in a directory of its own, and knows for each what a
// crash may have left: one state if the last operation was acknowledged, two if not.
type worker struct {
	id    int
	rnd   *rand.Rand
	files map[string]state
	acked int
}

func (w *worker) dir(c *nfsclient.Client) (fs.Handle, error) {
	name := fmt.Appendf(nil, "worker-%d", w.id)
	n, err := c.Lookup(root, c.Root(), name)
	if errors.Is(err, fs.ErrNoEnt) {
		n, err = c.Mkdir(root, c.Root(), name, &fs.SetAttr{})
	}
	return n.Handle, err
}

// run works until the server is killed.
func (w *worker) run(s *server) error {
	c, err := nfsclient.Mount(s.addr)
	if err == nil {
		defer c.Close()
		var dir fs.Handle
		dir, err = w.dir(c)
		for err == nil {
			err = w.step(c, dir)
		}
	}
	if s.lost(err) {
		return nil
	}
	return fmt.Errorf("worker %d: %w", w.id, err)
}

// step does one operation on one file.
func (w *worker) step(c *nfsclient.Client, dir fs.Handle) error {
	name := fmt.Sprintf("file-%d", w.rnd.IntN(20))
	now := w.files[name]
	if len(now.contents) == 0 { // certainly absent
		w.files[name] = state{absent: true, contents: [][]byte{{}}}
		n, err := c.Create(root, dir, []byte(name), fs.Guarded, &fs.SetAttr{}, 0)
		if err != nil {
			return err
		}
		w.files[name] = state{contents: [][]byte{{}}}
		return w.write(c, n.Handle, name)
	}
	switch w.rnd.IntN(4) {
	case 0:
		w.files[name] = state{absent: true, contents: now.contents}
		if _, err := c.Remove(root, dir, []byte(name)); err != nil {
			return err
		}
		w.files[name] = state{absent: true}
	case 1:
		other := fmt.Sprintf("file-%d", w.rnd.IntN(20))
		if other == name {
			return nil
		}
		was := w.files[other]
		absent := was.absent || len(was.contents) == 0
		w.files[other] = state{absent: absent, contents: append([][]byte{now.contents[0]}, was.contents...)}
		w.files[name] = state{absent: true, contents: now.contents}
		if _, _, err := c.Rename(root, dir, []byte(name), dir, []byte(other)); err != nil {
			return err
		}
		w.files[other] = state{contents: now.contents}
		w.files[name] = state{absent: true}
	default:
		n, err := c.Lookup(root, dir, []byte(name))
		if err != nil {
			return err
		}
		return w.write(c, n.Handle, name)
	}
	w.acked++
	return nil
}

// write overwrites the beginning of a file: stable, or unstable and then committed.
func (w *worker) write(c *nfsclient.Client, h fs.Handle, name string) error {
	old := w.files[name].contents[0]
	data := make([]byte, 1+w.rnd.IntN(20000))
	for i := range data {
		data[i] = byte(w.rnd.Uint32())
	}
	after := append(bytes.Clone(data), old[min(len(old), len(data)):]...)
	w.files[name] = state{contents: [][]byte{old, after}}
	how := []fs.Stability{fs.Unstable, fs.DataSync, fs.FileSync}[w.rnd.IntN(3)]
	n, committed, _, err := c.Write(root, h, 0, data, how)
	if err == nil && int(n) != len(data) {
		err = fmt.Errorf("%w: wrote %d of %d bytes", fs.ErrIO, n, len(data))
	}
	if err == nil && committed == fs.Unstable {
		_, err = c.Commit(h, 0, 0)
	}
	if err != nil {
		return err
	}
	w.files[name] = state{contents: [][]byte{after}}
	w.acked++
	return nil
}

// verify compares the directory with what the worker knows, and settles what was open.
func (w *worker) verify(c *nfsclient.Client) error {
	dir, err := w.dir(c)
	if err != nil {
		return err
	}
	for name, s := range w.files {
		n, err := c.Lookup(root, dir, []byte(name))
		if errors.Is(err, fs.ErrNoEnt) {
			if !s.absent && len(s.contents) > 0 {
				return fmt.Errorf("worker %d: %s is lost", w.id, name)
			}
			w.files[name] = state{absent: true}
			continue
		}
		if err != nil {
			return err
		}
		got, _, _, err := c.Read(root, n.Handle, 0, 1<<20)
		if err != nil {
			return err
		}
		ok := false
		for _, want := range s.contents {
			ok = ok || bytes.Equal(got, want)
		}
		if !ok {
			return fmt.Errorf("worker %d: %s has %d bytes that were never all of it", w.id, name, len(got))
		}
		w.files[name] = state{contents: [][]byte{got}}
	}
	return nil
}

func TestKill(t *testing.T) {
	t.Logf("-seed %d", *seed)
	bin := cephtest.Build(t)
	volume := filepath.Join(t.TempDir(), "test.img")
	rnd := rand.New(rand.NewPCG(*seed, 0))
	var all []*worker
	for i := range *workers {
		all = append(all, &worker{id: i, rnd: rand.New(rand.NewPCG(*seed, uint64(i+1))), files: map[string]state{}})
	}
	verifiers := map[uint64]bool{}
	for round := range *rounds {
		s := start(t, bin, volume)
		c, err := nfsclient.Mount(s.addr)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			if err := w.verify(c); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		n, err := c.Create(root, c.Root(), []byte("probe"), fs.Unchecked, &fs.SetAttr{}, 0)
		if err == nil {
			_, err = c.Commit(n.Handle, 0, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if v := c.Verifier(); verifiers[v] {
			t.Fatalf("round %d: write verifier %x was there before", round, v)
		} else {
			verifiers[v] = true
		}
		c.Close()
		var wg sync.WaitGroup
		errs := make(chan error, len(all))
		for _, w := range all {
			wg.Go(func() { errs <- w.run(s) })
		}
		time.Sleep(time.Duration(100+rnd.IntN(900)) * time.Millisecond) // the moment of the crash, not a synchronisation
		s.kill(t)
		wg.Wait()
		close(errs)
		for err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		if out, err := exec.Command(bin, "check", volume).CombinedOutput(); err != nil {
			t.Fatalf("round %d: check: %v\n%s", round, err, out)
		}
	}
	acked := 0
	for _, w := range all {
		acked += w.acked
	}
	t.Logf("%d operations acknowledged, %d kills, nothing lost", acked, *rounds)
	if acked == 0 {
		t.Fatal("no operation was acknowledged")
	}
}
