// Package mount3 speaks MOUNT version 3 (RFC 1813, appendix I), which gives a
// client the handle it starts from: that of an export, or of any directory below it.
//
// The list of mounts (DUMP) is what clients said they mounted and not yet
// unmounted: RFC 1813 promises no more, and nothing depends on it. It is kept in
// memory and bounded.
package mount3

import (
	"iter"
	"log/slog"
	"net"
	"path"
	"sync"

	"tansy/fs"
	"tansy/nfs/exports"
	"tansy/nfs/oncrpc"
)

// Program and version of MOUNT.
const (
	Program = 100005
	Version = 3
)

// Versions are the versions of MOUNT that are served. Those of NFS version 2 are among them (old.go).
var Versions = []uint32{1, 2, 3}

// Procedure numbers (RFC 1813, section 5.2).
const (
	ProcNull = iota
	ProcMnt
	ProcDump
	ProcUmnt
	ProcUmntall
	ProcExport
)

const (
	maxPath   = 1024     // bytes (MNTPATHLEN)
	maxMounts = 1024     // remembered for DUMP
	maxDump   = 64 << 10 // bytes of the result of DUMP, at most
)

// Config sets up a Service.
type Config struct {
	Volumes []Volume // at least one; the path of none is another's, or below it
	Log     *slog.Logger
}

// Volume is what can be mounted. Walk is required.
type Volume struct {
	Path string // of its root for clients, default "/"
	// Walk returns the handle of the directory that names lead to from the root of the
	// volume, for the caller of c. Its errors are fs.Errno; any other is a fault below.
	// It may be called concurrently.
	Walk func(c *oncrpc.Call, names []string) (handle []byte, err error)
	// Exports says what EXPORT lists; nil: the root, for everyone.
	Exports *exports.Policy

	names []string // in Path
}

// Service is MOUNT version 3.
type Service struct {
	volumes []Volume
	log     *slog.Logger

	mu     sync.Mutex
	mounts []mount // oldest first
	dump   int     // bytes of the result of DUMP
}

type mount struct{ host, dir string }

// New makes a Service.
func New(cfg Config) *Service {
	s := &Service{log: cfg.Log, dump: dumpEnd}
	if s.log == nil {
		s.log = slog.Default()
	}
	for _, v := range cfg.Volumes {
		v.Path = path.Clean("/" + v.Path)
		v.names = split(v.Path)
		if v.Exports == nil {
			v.Exports = exports.NewPolicy(exports.NewTable(exports.Everyone(exports.Open()), nil))
		}
		s.volumes = append(s.volumes, v)
	}
	return s
}

// Programs are the tables of procedures: version 3, and 1 and 2, by which some ask for
// what is exported and mounted (old.go).
func (s *Service) Programs() []oncrpc.Program {
	return []oncrpc.Program{s.Program(), s.old(1), s.old(2)}
}

// Program is the table of procedures of version 3.
func (s *Service) Program() oncrpc.Program {
	return oncrpc.Program{Name: "mount3", Number: Program, Version: Version, Procs: []oncrpc.Proc{
		ProcNull:    oncrpc.NullProc,
		ProcMnt:     {Name: "MNT", Serve: s.mnt},
		ProcDump:    {Name: "DUMP", Stream: true, Serve: s.dumpMounts, Weight: func(oncrpc.Decoder) int { return maxDump }},
		ProcUmnt:    {Name: "UMNT", Inline: true, Serve: s.umnt},
		ProcUmntall: {Name: "UMNTALL", Inline: true, Serve: s.umntall},
		ProcExport:  {Name: "EXPORT", Stream: true, Serve: s.exports, Weight: s.exportsWeight},
	}}
}

func (s *Service) mnt(c *oncrpc.Call) oncrpc.Accept {
	dir := c.Args.Opaque(maxPath)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	handle, err := s.mount(c, string(dir))
	if err != nil {
		c.Status = status(err)
		c.Reply.Uint32(c.Status)
		return oncrpc.Success
	}
	c.Reply.Uint32(OK)
	c.Reply.Opaque(handle)
	c.Reply.Uint32(2) // flavors, the preferred first
	c.Reply.Uint32(uint32(oncrpc.AuthSys))
	c.Reply.Uint32(uint32(oncrpc.AuthNone))
	return oncrpc.Success
}

// mount returns the handle of dir, and remembers that the caller has it.
func (s *Service) mount(c *oncrpc.Call, dir string) (handle []byte, err error) {
	v, names, place, err := s.below(dir)
	switch {
	case err != nil:
	case len(place) > maxPath: // with the slash that dir lacked in front
		err = fs.ErrNameTooLong
	default:
		handle, err = v.Walk(c, names)
	}
	if err != nil {
		s.log.Warn("mount refused", "peer", c.Peer, "path", dir, "err", err)
		return nil, err
	}
	s.remember(mount{host(c), place})
	s.log.Info("mounted", "peer", c.Peer, "path", place)
	return handle, nil
}

func (s *Service) dumpMounts(c *oncrpc.Call) oncrpc.Accept {
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
	if _, _, place, err := s.below(string(dir)); err == nil {
		s.mu.Lock()
		s.forget(host(c), place)
		s.mu.Unlock()
		s.log.Info("unmounted", "peer", c.Peer, "path", place)
	}
	return oncrpc.Success
}

func (s *Service) umntall(c *oncrpc.Call) oncrpc.Accept {
	s.mu.Lock()
	s.forget(host(c), "")
	s.mu.Unlock()
	return oncrpc.Success
}

// exports lists the exports with their clients as they stand in the file. That an export
// is for everyone is said by no client at all (RFC 1813, section 5.2.5).
func (s *Service) exports(c *oncrpc.Call) oncrpc.Accept {
	for at, x := range s.exported() {
		c.Reply.Bool(true)
		c.Reply.Opaque([]byte(at))
		if len(x.Clients) != 1 || !x.Clients[0].Anybody() {
			for _, client := range x.Clients {
				c.Reply.Bool(true)
				c.Reply.Opaque([]byte(client.Name))
			}
		}
		c.Reply.Bool(false) // groups: no more
	}
	c.Reply.Bool(false) // exports: no more
	return oncrpc.Success
}

// exported is what is exported now, with its paths for clients.
func (s *Service) exported() iter.Seq2[string, exports.Export] {
	return func(yield func(string, exports.Export) bool) {
		for _, v := range s.volumes {
			for _, x := range v.Exports.Table().Exports() {
				if !yield(path.Join(v.Path, x.Path), x) {
					return
				}
			}
		}
	}
}

// exportsWeight is about the size of the result of EXPORT, in bytes.
func (s *Service) exportsWeight(oncrpc.Decoder) (n int) {
	for at, x := range s.exported() {
		n += 16 + len(at)
		for _, client := range x.Clients {
			n += 12 + len(client.Name)
		}
	}
	return n
}

// remember adds a mount to those of DUMP, once, and drops the oldest if they are too many.
func (s *Service) remember(m mount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(m.host, m.dir)
	s.mounts = append(s.mounts, m)
	s.dump += m.size()
	for len(s.mounts) > maxMounts || s.dump > maxDump {
		s.dump -= s.mounts[0].size()
		s.mounts = s.mounts[1:]
	}
}

// forget drops a host's mount of dir, or all of them if dir is empty. The caller has s.mu.
func (s *Service) forget(host, dir string) {
	kept := s.mounts[:0]
	for _, m := range s.mounts {
		if m.host != host || dir != "" && m.dir != dir {
			kept = append(kept, m)
		} else {
			s.dump -= m.size()
		}
	}
	s.mounts = kept
}

// dumpEnd is the length of the result of DUMP without mounts, in bytes.
const dumpEnd = 4

// size is what a mount adds to the result of DUMP, in bytes.
func (m mount) size() int {
	opaque := func(s string) int { return 4 + (len(s)+3)&^3 }
	return 4 + opaque(m.host) + opaque(m.dir)
}

// host is the address of the caller without its port.
func host(c *oncrpc.Call) string {
	h, _, err := net.SplitHostPort(c.Peer.String())
	if err != nil {
		return c.Peer.String()
	}
	return h
}
