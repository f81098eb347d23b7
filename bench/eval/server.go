//go:build linux

package main

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

// apart has a process not be told what is typed on the terminal: one behind a mount must go on until that is unmounted.
var apart = &syscall.SysProcAttr{Setpgid: true}

// A server is the process behind a mount through FUSE.
type server struct {
	process *exec.Cmd
	said    bytes.Buffer // on standard error; to be read after wait
	silent  chan struct{}
}

// startServer starts a program that says a line when its file system can be used.
func startServer(env []string, name string, args ...string) (*server, error) {
	s := &server{process: exec.Command(name, args...), silent: make(chan struct{})}
	s.process.SysProcAttr, s.process.Stderr, s.process.Env = apart, &s.said, append(os.Environ(), env...)
	out, err := s.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	r := bufio.NewReader(out)
	_, err = r.ReadString('\n')
	go func() {
		defer close(s.silent)
		io.Copy(io.Discard, r)
	}()
	if err != nil {
		return nil, fmt.Errorf("%s does not mount: %w", name, s.wait())
	}
	return s, nil
}

// endTime is how long a server may take to end when it is unmounted.
const endTime = time.Minute

// wait waits until it has ended, which it does when it is unmounted and nobody uses its files any more.
func (s *server) wait() error {
	late := time.AfterFunc(endTime, func() { s.process.Process.Kill() })
	defer late.Stop()
	<-s.silent
	if err := s.process.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", s.process, err, &s.said)
	}
	return nil
}
