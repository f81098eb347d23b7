//go:build linux

package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"tansy/bench/eval/ablation"
	"tansy/bench/internal/rig"
	"tansy/mount"
)

// A machine has what all measurements share.
type machine struct {
	options
	scratch string // a folder beside the image
	device  *rig.Device
	tansy   string // the program
	self    string // this one
}

func newMachine(ctx context.Context, o options) (*machine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp(o.dir, "tansy-eval-")
	if err != nil {
		return nil, err
	}
	m := &machine{options: o, scratch: scratch, tansy: o.tansy, self: self}
	if err := m.prepare(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(scratch))
	}
	return m, nil
}

func (m *machine) prepare(ctx context.Context) (err error) {
	if m.scratch, err = filepath.Abs(m.scratch); err != nil {
		return err
	}
	// Others than root have to get at what is mounted in it.
	if err := os.Chmod(m.scratch, 0o755); err != nil {
		return err
	}
	if m.tansy == "" {
		m.tansy = filepath.Join(m.scratch, "tansy")
		if _, err := rig.Command(ctx, "go", "build", "-o", m.tansy, "tansy/cmd/tansy"); err != nil {
			return err
		}
	}
	m.device, err = rig.NewDevice(ctx, rig.Loop, m.scratch, m.size)
	return err
}

func (m *machine) close() error {
	return errors.Join(m.device.Close(), os.RemoveAll(m.scratch))
}

// A site is a fresh file system, mounted.
type site struct {
	*machine
	contender
	dir     string // where it can be used
	mounts  []*mounted
	program string   // of Tansy
	env     []string // for it
}

// build builds the program that parts can be taken out of, if one is to be.
func (s *site) build(ctx context.Context) error {
	s.program = s.tansy
	if !s.ablated {
		return nil
	}
	folder, err := s.prepared("ablation", func(folder string) error {
		root, err := rig.Command(ctx, "go", "list", "-m", "-f", "{{.Dir}}")
		if err != nil {
			return err
		}
		overlay, err := ablation.Overlay(strings.TrimSpace(root), folder)
		if err != nil {
			return err
		}
		_, err = rig.Command(ctx, "go", "build", "-overlay", overlay, "-o", filepath.Join(folder, "tansy"), "tansy/cmd/tansy")
		return err
	})
	s.program, s.env = filepath.Join(folder, "tansy"), []string{"TANSY_ABLATION=" + s.without}
	return err
}

// mounted is a mount, with the process behind it, if there is one.
type mounted struct {
	dir    string
	server *rig.Server
}

// site makes the file system of c on the device, and mounts it.
func (m *machine) site(ctx context.Context, c contender) (s *site, err error) {
	s = &site{machine: m, contender: c}
	switch c.kind {
	case "tansy":
		if err = s.build(ctx); err == nil {
			c := exec.CommandContext(ctx, s.program, "mkfs", m.device.Node, "--force")
			c.Env, c.SysProcAttr = append(os.Environ(), s.env...), rig.Apart
			_, err = rig.Output(c)
		}
	case "ext4":
		err = m.device.MakeExt4(ctx)
	case "btrfs":
		_, err = rig.Command(ctx, "mkfs.btrfs", "-q", "-f", "-K", m.device.Node)
	}
	if err != nil {
		return nil, err
	}
	if err := s.mount(); err != nil {
		return nil, errors.Join(err, s.unmount())
	}
	return s, nil
}

func (s *site) mount() error {
	below, err := s.mountPoint("below")
	if err != nil {
		return err
	}
	s.dir = below
	m := &mounted{dir: below}
	if s.kind == "tansy" {
		flags := []string{"mount", s.device.Node, below, "--allow-other", "--discard", "off"}
		if s.cache != "" {
			flags = append(flags, "--cache", s.cache)
		}
		if m.server, err = rig.Start(s.env, s.program, flags...); err != nil {
			return err
		}
	} else if err := unix.Mount(s.device.Node, below, s.kind, unix.MS_NOATIME, s.contender.options); err != nil {
		return fmt.Errorf("mount %s: %w", s.kind, err)
	}
	s.mounts = append(s.mounts, m)
	if s.through {
		return s.passThrough(below)
	}
	return nil
}

func (s *site) mountPoint(name string) (string, error) {
	dir := filepath.Join(s.scratch, name)
	return dir, os.MkdirAll(dir, 0o755)
}

// passThrough mounts what passes everything through to a directory.
func (s *site) passThrough(below string) (err error) {
	if s.dir, err = s.mountPoint("through"); err != nil {
		return err
	}
	server, err := rig.Start(nil, s.self, passCommand, below, s.dir)
	if err != nil {
		return err
	}
	s.mounts = append(s.mounts, &mounted{s.dir, server})
	return readAhead(s.dir)
}

// readAhead has the kernel read as much ahead as it does of Tansy's mount.
func readAhead(dir string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	m, ok := mount.At(string(table), dir)
	if !ok {
		return fmt.Errorf("%s is not mounted", dir)
	}
	return os.WriteFile("/sys/class/bdi/"+m.Device+"/read_ahead_kb", []byte(strconv.Itoa(1<<10)), 0)
}

// unmount takes all mounts of a site down, the last one first.
func (s *site) unmount() (err error) {
	for len(s.mounts) > 0 {
		last := s.mounts[len(s.mounts)-1]
		s.mounts = s.mounts[:len(s.mounts)-1]
		err = errors.Join(err, last.unmount())
	}
	return err
}

func (m *mounted) unmount() error {
	err := rig.Unmount(m.dir)
	if err != nil {
		err = errors.Join(err, unix.Unmount(m.dir, unix.MNT_DETACH))
	}
	if m.server != nil {
		err = errors.Join(err, m.server.Wait())
	}
	return err
}

// remount has the kernel and the file system forget all that they have cached.
func (s *site) remount() error {
	if err := s.unmount(); err != nil {
		return err
	}
	return s.mount()
}

// settle makes everything durable, whoever wrote it. FUSE passes no syncfs on: an fsync of any file
// does as much on Tansy, and of another file system the one below is asked.
func (s *site) settle() error {
	d, err := os.Open(filepath.Join(s.scratch, "below"))
	if err != nil {
		return err
	}
	defer d.Close()
	if s.kind == "tansy" {
		return d.Sync()
	}
	return unix.Syncfs(int(d.Fd()))
}
