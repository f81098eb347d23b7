//go:build linux

package peers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tansy/bench/internal/rig"
)

// A peer is one of those that are measured.
type peer struct {
	name, about string
	server      func(ctx context.Context, m *machine) (*served, error) // nil: the floor
}

// The names of those that others are compared with.
const (
	ours    = "tansy"
	ganesha = "ganesha"
	floor   = "floor"
)

var everyPeer = []peer{
	{name: ours, about: "Tansy", server: serveTansy("")},
	{name: ganesha,
		about:  "NFS-Ganesha on ext4 mounted dirsync: what it has answered is durable, as with Tansy",
		server: serveGanesha("data=ordered", unix.MS_DIRSYNC)},
	{name: "ganesha-ordered",
		about: "NFS-Ganesha on ext4 as it is usually mounted: " +
			"a crash may take back CREATEs, RENAMEs and REMOVEs that it has answered",
		server: serveGanesha("data=ordered", 0)},
	{name: "ganesha-journal", about: "the same on ext4 with data=journal", server: serveGanesha("data=journal", 0)},
	{name: floor, about: "no server: what the way over loopback, or ext4 or the device itself, allow at most"},
	{name: "tansy-64M", about: "Tansy with --cache 64M, in the workload caches", server: serveTansy("64M")},
	{name: "tansy-256M", about: "the same with 256M", server: serveTansy("256M")},
	{name: "tansy-1G", about: "the same with 1G", server: serveTansy("1G")},
	{name: "tansy-4G", about: "the same with 4G", server: serveTansy("4G")},
}

var (
	servers = []string{ours, ganesha, "ganesha-ordered", "ganesha-journal"}
	caches  = []string{"tansy-64M", "tansy-256M", "tansy-1G", "tansy-4G"}
)

// there tells whether a peer is installed here.
func (p peer) there() bool {
	if slices.Contains(servers[1:], p.name) {
		return ganeshaMissing() == nil
	}
	return true
}

// A machine has what all measurements share.
type machine struct {
	options
	scratch string // a folder beside the image
	device  *rig.Device
	tansy   string // the program
}

func newMachine(ctx context.Context, o options) (*machine, error) {
	if err := furnish(); err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(o.dir, "tansy-peers-")
	if err != nil {
		return nil, err
	}
	m := &machine{options: o, tansy: o.tansy}
	if m.scratch, err = filepath.Abs(scratch); err == nil && m.tansy == "" {
		m.tansy = filepath.Join(m.scratch, "tansy")
		_, err = rig.Command(ctx, "go", "build", "-o", m.tansy, "tansy/cmd/tansy")
	}
	if err == nil {
		m.device, err = rig.NewDevice(ctx, o.device, m.scratch, o.size)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return m, nil
}

func (m *machine) close() error { return errors.Join(m.device.Close(), os.RemoveAll(m.scratch)) }

// served is an export that clients can use, or of the floor what there is in its place.
type served struct {
	*machine
	addr, mountAddr, export string
	dir                     string // where it is mounted, if it is ext4
	end                     []func() error
}

// close ends it, the last thing begun first.
func (s *served) close() (err error) {
	for _, end := range slices.Backward(s.end) {
		err = errors.Join(err, end())
	}
	return err
}

// Ports in the name space.
const (
	nfsAddr   = "127.0.0.1:20490"
	mountPort = "20480"
	mountAddr = "127.0.0.1:" + mountPort
)

func serveTansy(cache string) func(context.Context, *machine) (*served, error) {
	return func(ctx context.Context, m *machine) (*served, error) {
		if _, err := rig.Command(ctx, m.tansy, "mkfs", m.device.Node, "--force"); err != nil {
			return nil, err
		}
		flags := []string{"serve", "--volume", m.device.Node, "--listen", nfsAddr, "--discard", "off"}
		if cache != "" {
			flags = append(flags, "--cache", cache)
		}
		server, err := rig.Start(nil, m.tansy, flags...)
		if err != nil {
			return nil, err
		}
		return &served{machine: m, addr: nfsAddr, export: "/", end: []func() error{server.Stop}}, nil
	}
}

// onExt4 makes ext4 on the device and mounts it.
func (m *machine) onExt4(ctx context.Context, options string, flags uintptr) (*served, error) {
	if err := m.device.MakeExt4(ctx); err != nil {
		return nil, err
	}
	s := &served{machine: m, dir: filepath.Join(m.scratch, "ext4")}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Mount(m.device.Node, s.dir, "ext4", flags|unix.MS_NOATIME, options); err != nil {
		return nil, fmt.Errorf("mount ext4: %w", err)
	}
	s.end = append(s.end, func() error { return rig.Unmount(s.dir) })
	return s, nil
}

// answers waits until somebody listens.
func answers(ctx context.Context, addr string) error {
	const longest = 20 * time.Second
	for begin := time.Now(); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			return c.Close()
		}
		if time.Since(begin) > longest || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("nobody listens there: %w", err), ctx.Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
}
