package cluster

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"tansy/test/kit/rbdtest"
)

func TestHelperNbdkit(t *testing.T) { rbdtest.Helper(t) }

const image = "vol"

// cluster is a volume that servers at two places have in turn.
type cluster struct {
	*network
	tansy  string   // the program
	images string   // the folder of the stand-in
	volume string   // its name
	flags  []string // of its servers, by the recipe
	post   string   // for sh, when one has ended
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	n := newNetwork(t)
	c := &cluster{network: n, tansy: filepath.Join(t.TempDir(), "tansy")}
	n.run("go", "build", "-o", c.tansy, "tansy/cmd/tansy")
	c.images = rbdtest.Install(t, "TestHelperNbdkit")
	c.volume = rbdtest.Image(t, c.images, image, 256<<20)
	n.run(c.tansy, "mkfs", c.volume, "--force")
	return c
}

// server is one that serves, or stands by.
type server struct {
	place         string
	cmd           *exec.Cmd
	waits, serves chan struct{} // closed when it does
	ended         chan error    // when the recipe's command has run, too
}

// launch starts a server.
func (c *cluster) launch(place string, more ...string) *server {
	c.t.Helper()
	args := append([]string{"serve", "--volume", c.volume, "--listen", ":2049", "--lease", "1s", "--cache", "32M"},
		c.flags...)
	s := &server{place: place, waits: make(chan struct{}), serves: make(chan struct{}), ended: make(chan error, 1)}
	s.cmd = c.command(place, c.tansy, append(args, more...)...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	log, err := s.cmd.StderrPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { s.cmd.Process.Kill() })
	var readers sync.WaitGroup
	readers.Go(func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			if strings.HasPrefix(in.Text(), "listening on ") {
				close(s.serves)
			}
		}
	})
	readers.Go(func() {
		told := false
		for in := bufio.NewScanner(log); in.Scan(); {
			if testing.Verbose() {
				fmt.Fprintf(os.Stderr, "%s: %s\n", place, in.Text())
			}
			if !told && strings.Contains(in.Text(), "standing by") {
				close(s.waits)
				told = true
			}
		}
	})
	go func() {
		readers.Wait()
		err := s.cmd.Wait()
		if c.post != "" {
			c.command(place, "sh", "-c", c.post).Run() // it fails where there is nothing to undo
		}
		s.ended <- err
	}()
	return s
}

// until waits for something of a server that goes on.
func (s *server) until(t *testing.T, what chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case err := <-s.ended:
		t.Fatalf("the server at %s ended: %v", s.place, err)
	case <-time.After(time.Minute):
		t.Fatalf("the server at %s does not get there", s.place)
	}
}

// stop ends a server in order.
func (s *server) stop(t *testing.T) {
	t.Helper()
	s.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-s.ended; err != nil {
		t.Errorf("the server at %s ended: %v", s.place, err)
	}
}

// fault is what becomes of a server.
type fault struct {
	what string
	exit string // how it ends
	do   func(c *cluster, s *server)
}

const take = "taken by force"

var faults = []fault{
	{"killed", "signal: killed", func(c *cluster, s *server) { s.cmd.Process.Kill() }},
	{"host cut off", "exit status 75", func(c *cluster, s *server) {
		c.link(s.place, "down")
		rbdtest.Signal(c.t, c.images, image, syscall.SIGKILL) // that the storage gives the lock away some time later is the stand-in's part
	}},
	{take, "exit status 75", nil},
	{"told to stop", "", func(c *cluster, s *server) { s.cmd.Process.Signal(syscall.SIGTERM) }},
	{"stopped", "signal: killed", func(c *cluster, s *server) { s.cmd.Process.Signal(syscall.SIGSTOP) }}, // and killed by its helper, after 10 s
}

// succeed has a fault happen to the server s, and returns the one that took over from it, and the new standby.
func (c *cluster) succeed(s, standby *server, f fault) (*server, *server) {
	c.t.Helper()
	if f.what == take {
		standby.stop(c.t)
		standby = c.launch(standby.place, "--take")
	} else {
		standby.until(c.t, standby.waits)
		f.do(c, s)
	}
	standby.until(c.t, standby.serves)
	if err := <-s.ended; fmt.Sprint(err) != f.exit && (err != nil || f.exit != "") {
		c.t.Errorf("%s: the former owner ended with %v, want %q", f.what, err, f.exit)
	}
	c.link(s.place, "up")
	return standby, c.launch(s.place, "--standby")
}
