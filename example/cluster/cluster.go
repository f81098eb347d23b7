package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"tansy/test/kit/rbdtest"
)

const (
	numHosts = 3
	size     = 256 << 20 // of an image, in bytes
)

var names = []string{"home", "mail", "projects", "scratch"} // of images

// cluster is the hosts and the volumes.
type cluster struct {
	dir       string
	verbose   bool
	hosts     []*host
	volumes   []*volume
	processes []*os.Process // all that were ever started
}

// newCluster builds two releases of the program, and makes the volumes. Nothing runs then.
func newCluster(dir string, verbose bool) (*cluster, error) {
	c := &cluster{dir: dir, verbose: verbose}
	bin := filepath.Join(dir, "bin")
	for _, args := range [][]string{
		{"build", "-o", filepath.Join(dir, "old"), "-ldflags", "-X main.release=old", "tansy/cmd/tansy"},
		{"build", "-o", filepath.Join(dir, "new"), "-ldflags", "-X main.release=new", "tansy/cmd/tansy"},
		{"build", "-o", bin + "/", "tansy/test/kit/rbdtest/nbdkit"},
	} {
		if err := command("go", args...); err != nil {
			return nil, err
		}
	}
	images := filepath.Join(dir, "images")
	if err := os.Mkdir(images, 0o700); err != nil {
		return nil, err
	}
	os.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	os.Setenv(rbdtest.Folder, images)
	for i := range numHosts {
		c.hosts = append(c.hosts, &host{name: fmt.Sprint("host", i+1), binary: filepath.Join(dir, "old"), up: true})
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	for i, image := range names {
		file, err := os.Create(filepath.Join(images, image))
		if err == nil {
			err = file.Truncate(size)
			file.Close()
		}
		if err != nil {
			return nil, err
		}
		address := fmt.Sprintf("127.9.0.%d:%d", i+1, port)
		v := &volume{name: "rbd:pool/" + image, address: address, servers: map[*host]*server{}}
		v.order = rendezvous(v.name, c.hosts)
		if err := command(filepath.Join(dir, "old"), "mkfs", v.name, "--force"); err != nil {
			return nil, err
		}
		c.volumes = append(c.volumes, v)
	}
	return c, nil
}

// freePort is a port that nobody had a moment ago, at the first volume's address.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.9.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("the addresses of volumes are those of Linux' loopback device: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// command runs a program, and shows what it said if it fails.
func command(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", filepath.Base(name), args, err, out)
	}
	return nil
}

// kill ends what still runs.
func (c *cluster) kill() {
	for _, p := range c.processes {
		p.Kill() // an error if it has ended
	}
}

// allNew asks the servers that serve whether they are of the new release.
func (c *cluster) allNew() error {
	for _, v := range c.volumes {
		r, err := http.Get(v.owner().status + "status.json")
		if err != nil {
			return err
		}
		var report struct{ Release string }
		err = json.NewDecoder(r.Body).Decode(&report)
		r.Body.Close()
		if err == nil && report.Release != "new" {
			err = fmt.Errorf("%s is served by the release %q", v.name, report.Release)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
