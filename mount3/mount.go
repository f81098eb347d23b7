// Package mount3 speaks MOUNT version 3 (RFC 1813, appendix I), which gives a
// client the handle it starts from. The one export is the root of the volume.
//
// The list of mounts (DUMP) is what clients said they mounted and not yet
// unmounted: RFC 1813 promises no more, and nothing depends on it. It is kept in
// memory and bounded.
package mount3

import (
	"log/slog"
	"net"
	"path"
	"sync"

	"tansy/oncrpc"
)

// Program and version of MOUNT.
const (
	Program = 100005
	Version = 3
)

// Procedure numbers (RFC 1813, section 5.2).
const (
	ProcNull = iota
	ProcMnt
	ProcDump
	ProcUmnt
	ProcUmntall
	ProcExport
)

// Status of MNT (mountstat3), as far as it is used.
const (
	OK       = 0
	ErrNoEnt = 2
)

const (
	maxPath   = 1024 // bytes (MNTPATHLEN)
	maxMounts = 1024 // remembered for DUMP
)

// Config sets up a Service.
type Config struct {
	Export string // path clients mount, default "/"
	Root   []byte // the handle they get
	Log    *slog.Logger
}

// Service is MOUNT version 3 with one export.
type Service struct {
	cfg Config

	mu     sync.Mutex
	mounts []mount // oldest first
}

type mount struct{ host, dir string }

// New makes a Service.
func New(cfg Config) *Service {
	cfg.Export = path.Clean("/" + cfg.Export)
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Service{cfg: cfg}
}

// Program is the table of procedures.
func (s *Service) Program() oncrpc.Program {
	return oncrpc.Program{Number: Program, Version: Version, Procs: []oncrpc.Proc{
		ProcNull:    oncrpc.NullProc,
		ProcMnt:     {Name: "MNT", Inline: true, Serve: s.mnt},
		ProcDump:    {Name: "DUMP", Inline: true, Serve: s.dump},
		ProcUmnt:    {Name: "UMNT", Inline: true, Serve: s.umnt},
		ProcUmntall: {Name: "UMNTALL", Inline: true, Serve: s.umntall},
		ProcExport:  {Name: "EXPORT", Inline: true, Serve: s.export},
	}}
}

func (s *Service) mnt(c *oncrpc.Call) oncrpc.Accept {
	dir := c.Args.Opaque(maxPath)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	if path.Clean("/"+string(dir)) != s.cfg.Export {
		s.cfg.Log.Warn("mount refused: no such export", "peer", c.Peer, "path", string(dir))
		c.Reply.Uint32(ErrNoEnt)
		return oncrpc.Success
	}
	s.mu.Lock()
	s.forget(host(c), s.cfg.Export)
	if len(s.mounts) == maxMounts {
		s.mounts = s.mounts[1:]
	}
	s.mounts = append(s.mounts, mount{host(c), s.cfg.Export})
	s.mu.Unlock()
	s.cfg.Log.Info("mounted", "peer", c.Peer)

	c.Reply.Uint32(OK)
	c.Reply.Opaque(s.cfg.Root)
	c.Reply.Uint32(2) // flavors, the preferred first
	c.Reply.Uint32(uint32(oncrpc.AuthSys))
	c.Reply.Uint32(uint32(oncrpc.AuthNone))
	return oncrpc.Success
}

func (s *Service) dump(c *oncrpc.Call) oncrpc.Accept {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.mounts {
		c.Reply.Bool(true)
		c.Reply.Opaque([]byte(m.host))
		c.Reply.Opaque([]byte(m.dir))
	}
	c.Reply.Bool(false)
	return oncrpc.Success
}

func (s *Service) umnt(c *oncrpc.Call) oncrpc.Accept {
	dir := c.Args.Opaque(maxPath)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	s.mu.Lock()
	s.forget(host(c), path.Clean("/"+string(dir)))
	s.mu.Unlock()
	s.cfg.Log.Info("unmounted", "peer", c.Peer)
	return oncrpc.Success
}

func (s *Service) umntall(c *oncrpc.Call) oncrpc.Accept {
	s.mu.Lock()
	s.forget(host(c), "")
	s.mu.Unlock()
	return oncrpc.Success
}

func (s *Service) export(c *oncrpc.Call) oncrpc.Accept {
	c.Reply.Bool(true)
	c.Reply.Opaque([]byte(s.cfg.Export))
	c.Reply.Bool(false) // groups: everyone
	c.Reply.Bool(false) // exports: no more
	return oncrpc.Success
}

// forget drops a host's mount of dir, or all of them if dir is empty.
func (s *Service) forget(host, dir string) {
	kept := s.mounts[:0]
	for _, m := range s.mounts {
		if m.host != host || dir != "" && m.dir != dir {
			kept = append(kept, m)
		}
	}
	s.mounts = kept
}

// host is the address of the caller without its port.
func host(c *oncrpc.Call) string {
	h, _, err := net.SplitHostPort(c.Peer.String())
	if err != nil {
		return c.Peer.String()
	}
	return h
}
