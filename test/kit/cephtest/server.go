package cephtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Lease is that of all servers.
const Lease = 2 * time.Second

// patience is how long the slowest machine may need for what is waited for.
const patience = 5 * time.Minute

// Server is a tansy that serves the volume of a cluster, or waits for it.
type Server struct {
	Addr string // when it serves

	// Closed when it has got so far: it waits for the lock; has it, and waits for a lease; serves; has ended.
	Waits, Owns, Serves, Ended chan struct{}

	name   string
	cmd    *exec.Cmd
	helper int
	err    error // of its end
	// When it had the lock, and when it served.
	owned, served time.Time

	mu  sync.Mutex
	log []string
}

// Launch starts a server with more flags. It ends with the test that made the cluster.
func (c *Cluster) Launch(t testing.TB, bin string, flags ...string) *Server {
	t.Helper()
	helper := c.helpers[c.servers%len(c.helpers)]
	c.servers++
	s := &Server{
		Waits: make(chan struct{}), Owns: make(chan struct{}), Serves: make(chan struct{}), Ended: make(chan struct{}),
		name: fmt.Sprint("server ", c.servers),
	}
	s.cmd = exec.Command(bin,
		append([]string{"serve", "--volume", c.Volume, "--listen", "127.0.0.1:0", "--lease", Lease.String()}, flags...)...)
	s.cmd.Env = append(os.Environ(), "TANSY_RBD_HELPER="+helper)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	readers.Go(func() { s.readOutput(out) })
	readers.Go(func() { s.readLog(log) })
	go func() {
		readers.Wait()
		s.err = s.cmd.Wait()
		close(s.Ended)
	}()
	c.t.Cleanup(func() {
		s.Signal(syscall.SIGKILL)
		<-s.Ended
		if s.helper != 0 {
			syscall.Kill(s.helper, syscall.SIGCONT) // it ends with its parent, if it is let
		}
	})
	return s
}

func (s *Server) readOutput(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
			s.Addr, s.served = strings.TrimSpace(addr), time.Now()
			close(s.Serves)
		}
	}
}

func (s *Server) readLog(r io.Reader) {
	waits, owns := s.Waits, s.Owns
	for lines := bufio.NewScanner(r); lines.Scan(); {
		line := lines.Text()
		fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, line)
		s.mu.Lock()
		s.log = append(s.log, line)
		s.mu.Unlock()
		switch {
		case waits != nil && strings.Contains(line, "standing by"):
			close(waits)
			waits = nil
		case owns != nil && strings.Contains(line, "the volume is ours"):
			s.owned = time.Now()
			close(owns)
			owns = nil
		}
	}
}

// Log is what the server has logged.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, "\n")
}

// Signal sends a signal to the server.
func (s *Server) Signal(sig syscall.Signal) { s.cmd.Process.Signal(sig) }

// Until waits for something of a server that goes on.
func (s *Server) Until(t testing.TB, what chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-s.Ended:
		t.Fatalf("%s ended: %v", s.name, s.err)
	case <-time.After(patience):
		t.Fatalf("%s does not get there", s.name)
	}
}

// Wait waits for the end of the server, and says what it was: "exit status 75", "signal: killed"; "" for a good one.
func (s *Server) Wait(t testing.TB) string {
	t.Helper()
	select {
	case <-s.Ended:
	case <-time.After(patience):
		t.Fatalf("%s does not end", s.name)
	}
	if s.err == nil {
		return ""
	}
	return s.err.Error()
}

// Recovered is how long the server needed from the end of the lease that it waited for until it served.
func (s *Server) Recovered() time.Duration { return s.served.Sub(s.owned) - Lease }

// Helper is the process that holds the lock for a server.
func (s *Server) Helper(t testing.TB) int {
	t.Helper()
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			s.helper = pid
			return pid
		}
	}
	t.Fatalf("%s has no helper", s.name)
	return 0
}

// Name tells servers apart in logs.
func (s *Server) Name() string { return s.name }
