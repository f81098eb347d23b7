package floor

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"tansy/disk"
)

// child is the server under test, with a fresh volume.
type child struct {
	peak   uint64 // of memory, in bytes, before it was reset
	cmd    *exec.Cmd
	addr   string // of NFS and MOUNT
	debug  string // of the profiler and counters
	status string // URL of the status page, if it has one
	log    string // path of its standard error
	exited chan struct{}
}

const (
	startTimeout = time.Minute
	stopTimeout  = 30 * time.Second
)

// startServer builds the server if need be, and starts it in dir.
func startServer(o options, dir string) (*child, error) {
	if o.server == "" {
		o.server = filepath.Join(dir, "tansy")
		build := exec.Command("go", "build", "-o", o.server, "tansy/cmd/tansy")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			return nil, fmt.Errorf("building the server: %w", err)
		}
	}
	debug, err := freeAddr()
	if err != nil {
		return nil, err
	}
	c := &child{debug: debug, log: filepath.Join(dir, "log"), exited: make(chan struct{})}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	volume := cmp.Or(o.volume, filepath.Join(dir, "volume"))
	if err := o.makeVolume(volume); err != nil {
		return nil, err
	}
	c.cmd = exec.Command(o.server, "serve", "--volume", volume,
		"--cache", o.cache, "--listen", "127.0.0.1:0", "--debug-listen", debug)
	c.cmd.Args = append(c.cmd.Args, o.flags...)
	if o.descriptors > 0 {
		limited := fmt.Sprintf("ulimit -n %d && exec \"$0\" \"$@\"", o.descriptors)
		c.cmd.Path, c.cmd.Args = "/bin/sh", append([]string{"sh", "-c", limited}, c.cmd.Args...)
	}
	c.cmd.Stderr = log
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, url, ok := strings.Cut(lines.Text(), "status on "); ok {
				c.status = url
			}
			if _, addr, ok := strings.Cut(lines.Text(), "listening on "); ok {
				ready <- strings.Fields(addr + " ?")[0]
			}
		}
		c.cmd.Wait()
		close(c.exited)
	}()
	select {
	case c.addr = <-ready:
	case <-c.exited:
		return nil, errors.New("the server ended at once" + c.lastWords())
	case <-time.After(startTimeout):
		c.stop()
		return nil, errors.New("the server did not say where it listens" + c.lastWords())
	}
	if o.debug {
		fmt.Fprintf(os.Stderr, "server: process %d, profiler at http://%s/debug/pprof/\n", c.cmd.Process.Pid, debug)
	}
	return c, nil
}

// makeVolume makes it, unless it is a file that is there. Servers of other releases have these commands, too.
func (o options) makeVolume(volume string) error {
	args := []string{"mkfs", volume, "--size", o.size}
	if o.volume != "" {
		args = []string{"mkfs", volume, "--force"}
	} else if _, err := os.Stat(volume); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	said, err := exec.Command(o.server, args...).CombinedOutput()
	if err != nil {
		if len(said) > 0 {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(said))
		}
		err = fmt.Errorf("making a volume: %w", err)
	}
	return err
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// stop ends the server; it is given some time to do it well.
func (c *child) stop() {
	c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.exited:
	case <-time.After(stopTimeout):
		c.cmd.Process.Kill()
		<-c.exited
	}
}

// lastWords is the end of the server's log.
func (c *child) lastWords() string {
	log, _ := os.ReadFile(c.log)
	log = bytes.TrimSpace(log)
	if len(log) == 0 {
		return ""
	}
	return "\nthe server's log ends:\n" + string(log[max(0, len(log)-2000):])
}

// peakMemory is the most physical memory that the server had so far, in bytes;
// 0 where the system does not tell.
func (c *child) peakMemory() uint64 {
	st, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	for line := range strings.SplitSeq(string(st), "\n") {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}

// takePeak is peakMemory since the last call, where the system can tell, else since the start.
func (c *child) takePeak() uint64 {
	peak := c.peakMemory()
	c.peak = max(c.peak, peak)
	os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.cmd.Process.Pid), []byte("5"), 0) // proc_pid_clear_refs(5)
	return peak
}

// memory adds the row about the server's memory.
func (b *bench) memory() {
	const overhead = 64 << 20 // what the server may need besides its cache
	cache, err := parseSize(b.cache)
	if peak := max(b.child.peak, b.child.peakMemory()); peak > 0 && err == nil {
		took, allowed := float64(peak)/(1<<20), float64(cache+overhead)/(1<<20)
		b.table.row("peak memory against cache + 64 MiB", took, allowed, "MiB", 1, true)
	}
}

// parseSize reads "64M" and the like.
func parseSize(s string) (uint64, error) {
	shift := 0
	if i := strings.IndexAny(s, "KMGT"); i >= 0 {
		shift = 10 * (1 + strings.IndexByte("KMGT", s[i]))
		s = s[:i]
	}
	n, err := strconv.ParseUint(s, 10, 64)
	return n << shift, err
}

// diskCounts are the server's counters of its device; ok is false if it has none.
func (b *bench) diskCounts() (n disk.Counts, ok bool) {
	v := b.vars()
	if v.Disk == nil {
		return n, false
	}
	return *v.Disk, true
}

// vars are numbers that the server has beside its profiler, as far as it has them.
type vars struct {
	Disk      *disk.Counts
	Collector *float64 // the garbage collector's time on the CPUs in seconds
}

func (b *bench) vars() (v vars) {
	if b.child == nil {
		return v
	}
	r, err := http.Get("http://" + b.child.debug + "/debug/vars")
	if err != nil {
		return v
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK || json.NewDecoder(r.Body).Decode(&v) != nil {
		return vars{}
	}
	return v
}

// collected runs w, and adds the row about the garbage collector's part of the time that the server had on the CPUs
// meanwhile.
func (b *bench) collected(w workload) error {
	const most = 0.03
	if b.child == nil {
		return w.run(b)
	}
	cpu, before := b.child.cpu(), b.vars().Collector
	err := w.run(b)
	after := b.vars().Collector
	if spent := (b.child.cpu() - cpu).Seconds(); err == nil && before != nil && after != nil && spent > 0 {
		b.table.row("collector, against 3 % of CPU, "+w.name, 100*(*after-*before)/spent, 100*most, "%", 1, true)
	}
	return err
}
