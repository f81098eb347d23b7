package linear

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/fs"
	"tansy/mount"
	"tansy/test/kit/mounttest"
)

// Of a mount whose clock jumps, or that has a fault, the process is the test's own program: the command has neither.

// childVariable has, in the environment of such a process, the volume, the directory, the file with the clock's error,
// and a fault.
const childVariable = "TANSY_LINEAR_MOUNT"

func TestMain(m *testing.M) {
	if what := os.Getenv(childVariable); what != "" {
		err := child(strings.Split(what, "\n"))
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// child mounts the volume until it is killed.
func child(what []string) error {
	image, dir, errorFile, bug := what[0], what[1], what[2], what[3]
	off, err := shareOff(errorFile)
	if err != nil {
		return err
	}
	d, err := disk.OpenFile(image, disk.FileOptions{})
	if err != nil {
		return err
	}
	v, err := fs.Open(d, fs.Options{CacheBytes: 16 << 20, Deferred: true, Log: quiet,
		Clock: func() time.Time { return time.Now().Add(time.Duration(off.Load())) }})
	if err != nil {
		return err
	}
	var files mount.Volume = v
	for _, x := range mountFaults {
		if x.name == bug {
			files = x.bug(v)
		}
	}
	by := mount.Transport(os.Getenv(mounttest.TransportVariable))
	at, err := mount.New(files, dir, mount.Options{Source: image, Transport: by, Log: quiet})
	if err != nil {
		return err
	}
	fmt.Printf("%s is mounted on %s\n", image, dir)
	<-at.Done()
	return v.Close()
}

// shareOff is a number that this process and another one have in a file, in nanoseconds.
func shareOff(file string) (*atomic.Int64, error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(8); err != nil {
		return nil, err
	}
	b, err := unix.Mmap(int(f.Fd()), 0, 8, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*atomic.Int64)(unsafe.Pointer(&b[0])), nil
}

// onChild is a place of such a process, which is killed in every history if kills is set.
func onChild(t *testing.T, bug string, kills bool) (*place, *atomic.Int64) {
	bin := mounttest.Build(t)
	unix.Umask(0)
	image := mounttest.Volume(t, bin, "256M")
	errorFile := filepath.Join(t.TempDir(), "off")
	off, err := shareOff(errorFile)
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: t.TempDir(), clock: machineClock, left: func(*rand.Rand) {}}
	if kills {
		p.strike = never
	}
	p.starts(func() *mounttest.Mount {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), childVariable+"="+strings.Join([]string{image, p.dir, errorFile, bug}, "\n"))
		return mounttest.By(t, cmd, p.dir)
	})
	return p, off
}

// TestMountClock is TestMount and TestMountKill while the clock of the mount's machine is set forward and back.
func TestMountClock(t *testing.T) {
	for _, kills := range []bool{false, true} {
		p, off := onChild(t, "", kills)
		p.clock = func(r *rand.Rand) *clock {
			return &clock{machine: true, wild: r, tell: func(by time.Duration) { off.Store(int64(by)) },
				jumps: []jump{{0, off.Load()}}}
		}
		p.histories(count(6))
		if off.Load() == 0 {
			t.Error("the clock did not jump")
		}
	}
}

// mountFault is a volume that does something wrong.
type mountFault func(*fs.FS) mount.Volume

// lazySync makes nothing durable.
type lazySync struct{ *fs.FS }

func (lazySync) Sync() error { return nil }

// shortList leaves the last of many names out.
type shortList struct{ *fs.FS }

func (v shortList) Readdir(
	c *fs.Cred, dir fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit,
) (fs.Listing, error) {
	l, err := v.FS.Readdir(c, dir, cookie, verf, plus, lim)
	if n := len(l.Entries); n > 5 {
		l.Entries = l.Entries[:n-1]
	}
	return l, err
}

// leavesLinks removes no name of a file that has another.
type leavesLinks struct{ *fs.FS }

func (v leavesLinks) Remove(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	if n, err := v.Lookup(c, dir, name); err == nil && n.Attr.Nlink > 1 {
		return fs.WCC{}, nil
	}
	return v.FS.Remove(c, dir, name)
}

// wrongErrorHere says that what is not empty is not there.
type wrongErrorHere struct{ *fs.FS }

func (v wrongErrorHere) Rmdir(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	w, err := v.FS.Rmdir(c, dir, name)
	if err == nil {
		_, err = v.FS.Lookup(c, dir, name)
	}
	return w, err
}

// shortWrite stores all but the last byte, and says that it stored all.
type shortWrite struct{ *fs.FS }

func (v shortWrite) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	_, done, w, err := v.FS.Write(c, h, off, data[:len(data)-1], how)
	return uint32(len(data)), done, w, err
}

// stillTimes shows no change of attributes in the ctime.
type stillTimes struct{ *fs.FS }

func (v stillTimes) Getattr(h fs.Handle) (fs.Attr, error) {
	a, err := v.FS.Getattr(h)
	a.Ctime = a.Mtime
	return a, err
}

var mountFaults = []struct {
	name  string
	bug   mountFault
	kills bool // it shows after a crash
}{
	{name: "name left out", bug: func(v *fs.FS) mount.Volume { return shortList{v} }},
	{name: "link left", bug: func(v *fs.FS) mount.Volume { return leavesLinks{v} }},
	{name: "wrong error", bug: func(v *fs.FS) mount.Volume { return wrongErrorHere{v} }},
	{name: "short write", bug: func(v *fs.FS) mount.Volume { return shortWrite{v} }},
	{name: "ctime is mtime", bug: func(v *fs.FS) mount.Volume { return stillTimes{v} }},
	{name: "fsync does nothing", bug: func(v *fs.FS) mount.Volume { return lazySync{v} }, kills: true},
}

// TestMountFaults: each of these faults is found, within a few histories.
func TestMountFaults(t *testing.T) {
	const most = 500
	for _, x := range mountFaults {
		t.Run(x.name, func(t *testing.T) {
			p, _ := onChild(t, x.name, x.kills)
			p.findsWithin(most)
		})
	}
	t.Run("barrier does nothing", func(t *testing.T) {
		onCutDevice(t, func(d disk.Disk) disk.Disk { return hollow{d} }).findsWithin(most)
	})
}

// findsWithin runs histories until one is found not to be allowed.
func (p *place) findsWithin(most int) {
	first := seed(p.t)
	for i := range most {
		_, result, err := p.run(first+uint64(i), fmt.Sprint("h", i))
		if result == porcupine.Illegal {
			line, _, _ := strings.Cut(err.Error(), "\n")
			p.t.Logf("found in history %d: %s", i+1, line)
			return
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	p.t.Errorf("not found in %d histories", most)
}
