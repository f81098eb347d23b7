package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// patience is how long a server may take for whatever it does. It is there to end what hangs.
const patience = time.Minute

// server is a process that serves a volume, or stands by for it.
type server struct {
	host   *host
	cmd    *exec.Cmd
	status string // where its status is; known when it stands by or serves

	waits, serves chan struct{} // closed when it does
	ended         chan struct{} // closed when it has
	err           error         // then: how
}

// launch starts a server of a volume on a host.
func (c *cluster) launch(v *volume, h *host) (*server, error) {
	s := &server{host: h, waits: make(chan struct{}), serves: make(chan struct{}), ended: make(chan struct{})}
	s.cmd = exec.Command(h.binary, "serve", "--standby", "--volume", v.name, "--listen", v.address,
		"--lease", "1s", "--cache", "32M", "--status", "127.0.0.1:0")
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	c.processes = append(c.processes, s.cmd.Process)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for in := bufio.NewScanner(out); in.Scan(); {
			if url, ok := strings.CutPrefix(in.Text(), "status on "); ok {
				s.status = url
			} else if strings.HasPrefix(in.Text(), "listening on ") {
				close(s.serves)
			}
		}
	}()
	go func() {
		last := s.listen(log, fmt.Sprintf("%s, %s: ", h.name, v.name), c.verbose)
		<-read
		if s.err = s.cmd.Wait(); s.err != nil {
			s.err = fmt.Errorf("the server of %s on %s ended: %w: %s", v.name, h.name, s.err, last)
		}
		close(s.ended)
	}()
	return s, nil
}

// listen reads what a server logs, and returns the last line of it.
func (s *server) listen(log io.Reader, name string, verbose bool) (last string) {
	told := false
	for in := bufio.NewScanner(log); in.Scan(); {
		last = in.Text()
		if verbose {
			fmt.Fprintln(os.Stderr, name+last)
		}
		if !told && strings.Contains(last, "standing by") {
			close(s.waits)
			told = true
		}
	}
	return last
}

// serving tells whether it serves.
func (s *server) serving() bool {
	select {
	case <-s.serves:
		return true
	default:
		return false
	}
}

// settle waits until the server serves, or stands by.
func (s *server) settle() error { return s.until(s.waits) }

// takeOver waits until the server serves.
func (s *server) takeOver() error { return s.until(nil) }

func (s *server) until(also chan struct{}) error {
	select {
	case <-s.serves:
		return nil
	case <-also:
		return nil
	case <-s.ended:
		return errors.Join(s.err, errors.New("the server has ended"))
	case <-time.After(patience):
		return fmt.Errorf("the server on %s does not get there", s.host.name)
	}
}

// stop ends the server in order.
func (s *server) stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.ended
	return s.err
}

// killed waits for the end of a server that was killed.
func (s *server) killed() error {
	<-s.ended
	return nil
}
