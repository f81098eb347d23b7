package rig

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A Server is a process that serves something, such as that behind a mount through FUSE.
type Server struct {
	process *exec.Cmd
	said    bytes.Buffer // on standard error; to be read after Wait
	silent  chan struct{}
}

// Start starts a program that says a line when what it serves can be used, and waits for that.
func Start(env []string, name string, args ...string) (*Server, error) {
	return start(true, env, name, args...)
}

// Launch starts a program that says nothing.
func Launch(name string, args ...string) (*Server, error) { return start(false, nil, name, args...) }

func start(says bool, env []string, name string, args ...string) (*Server, error) {
	s := &Server{process: exec.Command(name, args...), silent: make(chan struct{})}
	s.process.SysProcAttr, s.process.Stderr, s.process.Env = Apart, &s.said, append(os.Environ(), env...)
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	r := bufio.NewReader(out)
	if says {
		_, err = r.ReadString('\n')
	}
	go func() {
		defer close(s.silent)
		io.Copy(io.Discard, r)
	}()
	if err != nil {
		return nil, fmt.Errorf("%s does not start: %w", name, s.Wait())
	}
	return s, nil
}

// endTime is how long a server may take to end.
const endTime = time.Minute

// Wait waits until it has ended, which one behind a mount does when that is unmounted and nobody uses its files any
// more.
func (s *Server) Wait() error {
	late := time.AfterFunc(endTime, func() { s.process.Process.Kill() })
	defer late.Stop()
	<-s.silent
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.process, err, &s.said)
	}
	return nil
}

// Stop has it end.
func (s *Server) Stop() error {
	s.process.Process.Signal(syscall.SIGTERM)
	return s.Wait()
}

// PID is the process's.
func (s *Server) PID() int { return s.process.Process.Pid }
