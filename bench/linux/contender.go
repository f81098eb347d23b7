//go:build linux

package linux

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tansy/bench/internal/rig"
)

// A contender is a server that is measured.
type contender struct {
	name, about string
	start       func() (*server, error) // on a fresh file system, with nothing cached of it
}

const (
	ours    = "tansy"
	ordered = "knfsd-ordered"
	journal = "knfsd-journal"
)

var contenders = []contender{
	{ours, "tansy serve on the disk, as it comes", startTansy},
	{ordered, "the kernel's server, exporting ext4 with data=ordered, sync",
		func() (*server, error) { return startKernel("ordered") }},
	{journal, "the same with data=journal", func() (*server, error) { return startKernel("journal") }},
}

func contenderNames() (names []string) {
	for _, c := range contenders {
		names = append(names, c.name)
	}
	return names
}

func contenderNamed(name string) *contender {
	for i := range contenders {
		if contenders[i].name == name {
			return &contenders[i]
		}
	}
	panic("no contender " + name)
}

// A server is one that runs.
type server struct {
	export, ports string
	mounted       bool
	processes     func() []int // that work for it
	stop          func() error
}

// mountOptions are the same for all. The kernel's server would be asked for access control lists, which Tansy has not
// got; the sizes are the largest that both have here.
const mountOptions = "vers=3,proto=tcp,hard,nolock,noacl,rsize=524288,wsize=524288"

func (s *server) mount() error {
	err := runProgram("mount", "-t", "nfs", "-o", mountOptions+s.ports, "127.0.0.1:"+s.export, mountPoint)
	s.mounted = err == nil
	return err
}

// forget has the client forget all that it knows, and not the server.
func (s *server) forget() error {
	if err := rig.Unmount(mountPoint); err != nil {
		return err
	}
	s.mounted = false
	return s.mount()
}

// end leaves the disk to the next one.
func (s *server) end() error {
	var err error
	if s.mounted {
		err = rig.Unmount(mountPoint)
	}
	return errors.Join(err, s.stop())
}

const tansyPort = "20490"

func startTansy() (*server, error) {
	if err := runProgram(binTansy, "mkfs", disk, "--force"); err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + tansyPort
	p, err := rig.Launch(binTansy, "serve", "--volume", disk, "--listen", address)
	if err != nil {
		return nil, err
	}
	s := &server{
		export: "/", ports: ",port=" + tansyPort + ",mountport=" + tansyPort,
		stop: p.Stop, processes: func() []int { return []int{p.PID()} },
	}
	for tries := 0; ; tries++ {
		c, err := net.Dial("tcp", address)
		if err == nil {
			return s, c.Close()
		}
		if tries == 300 {
			return nil, errors.Join(err, s.stop())
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// kernelThreads is how many the kernel's server has: its default.
const kernelThreads = "8"

// kernelDaemons are the programs beside it.
var kernelDaemons = []string{"rpcbind", "rpc.mountd"}

func startKernel(data string) (_ *server, err error) {
	device := &rig.Device{Node: disk}
	if err := device.MakeExt4(context.Background()); err != nil {
		return nil, err
	}
	if err := unix.Mount(disk, exported, "ext4", unix.MS_NOATIME, "data="+data); err != nil {
		return nil, fmt.Errorf("mount ext4: %w", err)
	}
	stop := func() error {
		err := errors.Join(runProgram("rpc.nfsd", "0"), runProgram("exportfs", "-ua"), runProgram("exportfs", "-f"))
		return errors.Join(err, rig.Unmount(exported))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()
	if err := readyKernel(); err != nil {
		return nil, err
	}
	if err := runProgram("exportfs", "-ra"); err != nil {
		return nil, err
	}
	if err := runProgram("rpc.nfsd", "--no-nfs-version", "4", kernelThreads); err != nil {
		return nil, err
	}
	return &server{export: exported, stop: stop, processes: func() []int {
		return processesNamed(append([]string{"nfsd", "jbd2/" + filepath.Base(disk) + "-8"}, kernelDaemons...)...)
	}}, nil
}

// readyKernel starts what the kernel's server needs beside it, once.
func readyKernel() error {
	if _, err := os.Stat("/proc/fs/nfsd/threads"); err == nil {
		return nil
	}
	if err := unix.Mount("nfsd", "/proc/fs/nfsd", "nfsd", 0, ""); err != nil {
		return fmt.Errorf("mount nfsd: %w", err)
	}
	for name, text := range map[string]string{
		"/etc/nfs.conf": "", // Debian's has the groups of users looked up
		"/etc/exports":  exported + " 127.0.0.1(rw,sync,no_root_squash,no_subtree_check,fsid=7)\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll("/run/rpcbind", 0o755), os.MkdirAll("/var/lib/nfs", 0o755)); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	// The daemons go into the background: they get no pipe that they would hold open, and something at 0 to 2, or they
	// spin.
	how := &os.ProcAttr{Files: []*os.File{null, null, null}, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, daemon := range kernelDaemons {
		p, err := os.StartProcess("/sbin/"+daemon, []string{daemon}, how)
		if err != nil {
			return err
		}
		if state, err := p.Wait(); err != nil || !state.Success() {
			return fmt.Errorf("%s: %v %v", daemon, state, err)
		}
	}
	return nil
}

// processesNamed are all of these names; the kernel's threads are, too.
func processesNamed(names ...string) (ids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range all {
		comm, _ := os.ReadFile(path)
		for _, name := range names {
			if strings.TrimSpace(string(comm)) == name {
				id, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				ids = append(ids, id)
			}
		}
	}
	return ids
}
