//go:build linux

package linux

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"tansy/bench/internal/rig"
)

// Where things are in the guest. All but the disk is gone when the guest ends.
const (
	disk       = "/dev/vdb"
	statistics = "/sys/block/vdb/stat"
	scratch    = "/tmp/bench" // in memory
	mountPoint = "/mnt/nfs"
	exported   = "/srv/ext4"
	binTansy   = scratch + "/tansy"
	binSteps   = scratch + "/steps"
)

// A guest tells the host what happens.
type guest struct {
	plan
	port *os.File
	lock sync.Mutex
}

func (g *guest) say(l line) {
	text, _ := json.Marshal(l)
	g.lock.Lock()
	defer g.lock.Unlock()
	fmt.Fprintf(g.port, "%s\n", text)
}

// beGuest is the guest's first process: it makes the machine ready, measures, and switches it off.
func beGuest() {
	g := &guest{}
	err := g.start()
	if err == nil {
		err = g.measure()
	}
	switch {
	case g.port == nil:
		fmt.Fprintln(os.Stderr, "linux:", err)
	case err != nil:
		g.say(line{Error: err.Error()})
	default:
		g.say(line{Done: true})
	}
	if g.port != nil {
		unix.IoctlSetInt(int(g.port.Fd()), unix.TCSBRK, 1) // wait until it is said
	}
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

func (g *guest) start() error {
	if err := unix.Mount("dev", "/dev", "devtmpfs", 0, ""); err != nil {
		return err
	}
	var err error
	if g.port, err = os.OpenFile("/dev/ttyS1", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return err
	}
	text, err := os.ReadFile("/plan")
	if err == nil {
		err = json.Unmarshal(text, &g.plan)
	}
	if err != nil {
		return err
	}
	modules, _ := filepath.Glob("/modules/*")
	for _, m := range modules {
		if err := loadModule(m); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("%s: %w", m, err)
		}
	}
	if err := g.changeRoot(); err != nil {
		return err
	}
	os.Setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
	os.Setenv("HOME", scratch) // git's, too
	os.Setenv("LC_ALL", "C")
	if err := rig.LoopbackUp(); err != nil {
		return err
	}
	return runProgram("modprobe", "-a", "nfs", "nfsv3", "nfsd")
}

func loadModule(module string) error {
	f, err := os.Open(module)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.FinitModule(int(f.Fd()), "", 0)
}

// changeRoot goes into the root file system, with the programs from here.
func (g *guest) changeRoot() error {
	mount := func() error { return unix.Mount("/dev/vda", "/root", "ext4", unix.MS_NOATIME, "") }
	err := mount()
	for tries := 0; err != nil && tries < 100; tries++ { // the disk may take its time to be found
		time.Sleep(100 * time.Millisecond)
		err = mount()
	}
	if err != nil {
		return fmt.Errorf("the root file system does not come: %w", err)
	}
	mounts := []struct{ dir, kind string }{
		{"dev", "devtmpfs"}, {"proc", "proc"}, {"sys", "sysfs"}, {"tmp", "tmpfs"}, {"run", "tmpfs"},
	}
	for _, m := range mounts {
		if err := unix.Mount(m.kind, "/root/"+m.dir, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.dir, err)
		}
	}
	for _, dir := range []string{scratch, mountPoint, exported} {
		if err := os.MkdirAll("/root"+dir, 0o755); err != nil {
			return err
		}
	}
	if err := errors.Join(copyFile("/tansy", "/root"+binTansy), copyFile("/init", "/root"+binSteps)); err != nil {
		return err
	}
	if err := unix.Chroot("/root"); err != nil {
		return err
	}
	return os.Chdir("/")
}

// measure runs all workloads with all contenders, each round beginning with the next one.
func (g *guest) measure() error {
	for _, name := range g.Workloads {
		w := workloadNamed(name)
		if w.inputs != nil {
			if err := w.inputs(g.Quick); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
		// Once without measuring: what runs for the first time QEMU has to translate.
		if err := g.once(w, contenderNamed(g.Contenders[0]), true, func(*result) {}); err != nil {
			return fmt.Errorf("%s: rehearsal: %w", w.name, err)
		}
		for r := range g.Rounds {
			for k := range g.Contenders {
				c := contenderNamed(g.Contenders[(r+k)%len(g.Contenders)])
				g.say(line{Step: fmt.Sprintf("%s, round %d, %s", w.name, r+1, c.name)})
				if err := g.once(w, c, g.Quick, func(r *result) { g.say(line{Result: r}) }); err != nil {
					return fmt.Errorf("%s: %s: %w", w.name, c.name, err)
				}
			}
		}
	}
	return nil
}

// once measures the phases of a workload, one after the other, on a fresh file system.
func (g *guest) once(w *workload, c *contender, quick bool, tell func(*result)) (err error) {
	s, err := c.start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	if err := s.mount(); err != nil {
		return err
	}
	if err := warmUp(); err != nil {
		return fmt.Errorf("warming up: %w", err)
	}
	for _, p := range w.phases {
		if p.before != nil {
			if err := p.before(s, quick); err != nil {
				return fmt.Errorf("before %s: %w", p.name, err)
			}
		}
		unix.Sync()
		before, err := s.counts()
		if err != nil {
			return err
		}
		began := time.Now()
		if err := p.run(quick); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		took := time.Since(began)
		after, err := s.counts()
		if err != nil {
			return err
		}
		tell(&result{w.name, p.name, c.name, took.Seconds(), after.since(before)})
	}
	return nil
}

// warmUp has the server do a little of everything: what it does first, in a process just started, is slower, and most
// phases are short.
func warmUp() error {
	folder := filepath.Join(mountPoint, "warm-up")
	if err := errors.Join(os.Mkdir(folder, 0o755), makeMailbox(folder)); err != nil {
		return err
	}
	for k := range 20 {
		name := fmt.Sprint(k)
		if err := errors.Join(smallFile(folder, name), mailOnItsWay(folder, name)); err != nil {
			return err
		}
	}
	large := filepath.Join(folder, "large")
	if err := os.WriteFile(large, make([]byte, 4<<20), 0o644); err != nil {
		return err
	}
	if _, err := os.ReadFile(large); err != nil {
		return err
	}
	return os.RemoveAll(folder)
}

// runProgram runs a program that is to say nothing of interest.
func runProgram(name string, args ...string) error {
	_, err := rig.Command(context.Background(), name, args...)
	return err
}

// program is a phase that runs a program, quick or not.
func program(name string, args ...string) func(quick bool) error {
	return func(bool) error { return runProgram(name, args...) }
}
