// Package server serves file systems over NFS: NFS version 3 and MOUNT on one port, with
// no port mapper needed; Portmapper is one for hosts that have none. Access lists (NFSACL) are on the same port, where
// clients look for them, and so are locks between clients (NLM, NSM), if they are asked for; clients find these by a
// port mapper.
package server

import (
	"context"
	"log/slog"
	"net"
	"slices"

	"tansy/fs"
	"tansy/nfs/exports"
	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/nfs/reclaim"
)

// Config sets up a Server. Volumes is required; zero values of the rest stand for the
// defaults.
type Config struct {
	Volumes []Volume // the Path of none is another's, or below it; one has an FS, at least
	Log     *slog.Logger

	// Of volumes without Exports:
	RootSquash bool               // treat user 0 and group 0 as nobody
	Transports exports.Transports // over which calls may come; 0: all

	// Groups, if not nil, returns the groups of a user in place of those that clients say.
	Groups func(uid uint32) []uint32

	// NoLists has clients neither see nor set access lists (ACLs). Those that files have hold for them all the same.
	NoLists bool

	// Locks, if not nil, has locks between clients served. Its Files, Kept, and Log are set here.
	Locks *nlm.Config

	// RPC holds the limits of the transport, and TLS if there is any. Its Programs and Log are set here.
	RPC oncrpc.Config
}

// Volume is a file system to be served. FS, ID, and Key are required. A volume without FS cannot be served for now: it
// is there, and every call for it fails with an I/O error.
type Volume struct {
	Path string // of its root for clients, default "/"
	FS   fs.FileSystem
	ID   [8]byte  // part of every handle; stays with the volume, and no other has it
	Key  [16]byte // secret that authenticates handles; stays with the volume

	Exports *exports.Policy // who may do what, with paths in the volume; nil: everybody everything

	Notes reclaim.Store // where it is kept which clients have locks; nil: locks end with the Server
}

// Server is one or several file systems being served.
type Server struct {
	rpc   *oncrpc.Server
	udp   *oncrpc.PacketServer // what is not NFS
	locks *nlm.Service         // nil: none
	lists bool                 // clients see access lists
	nfs   []*nfs3.Service      // of each volume; nil where there is no FS
}

// New makes a Server that listens nowhere yet.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{nfs: make([]*nfs3.Service, len(cfg.Volumes))}
	var mounts []mount3.Volume
	var there []*nfs3.Service
	for i, v := range cfg.Volumes {
		if v.Exports == nil {
			rule := exports.Open()
			rule.Root, rule.Transports = cfg.RootSquash, cfg.Transports
			v.Exports = exports.NewPolicy(exports.NewTable(exports.Everyone(rule), nil))
		}
		walk := func(*oncrpc.Call, []string) ([]byte, error) { return nil, fs.ErrIO }
		if v.FS != nil {
			s.nfs[i] = nfs3.New(nfs3.Config{
				FS: v.FS, VolumeID: v.ID, Key: v.Key, Log: cfg.Log, Exports: v.Exports, Groups: cfg.Groups,
			})
			there, walk = append(there, s.nfs[i]), s.nfs[i].Walk
		}
		mounts = append(mounts, mount3.Volume{Path: v.Path, Walk: walk, Exports: v.Exports})
	}
	nfs := nfs3.Join(there, len(there) < len(cfg.Volumes))
	mount := mount3.New(mount3.Config{Volumes: mounts, Log: cfg.Log})
	programs := mount.Programs()
	if cfg.Locks != nil {
		locks := *cfg.Locks
		locks.Files, locks.Log, locks.Kept = nfs.File, cfg.Log, map[[8]byte]reclaim.Store{}
		for _, v := range cfg.Volumes {
			if v.FS != nil && v.Notes != nil {
				locks.Kept[v.ID] = v.Notes
			}
		}
		s.locks = nlm.New(locks)
		programs = append(programs, s.locks.Programs()...)
	}
	rpc := cfg.RPC
	rpc.Programs = append(slices.Clone(programs), nfs.Program())
	if lists, ok := nfs.ACLProgram(); ok && !cfg.NoLists {
		s.lists, rpc.Programs = true, append(rpc.Programs, lists)
	}
	rpc.Log = cfg.Log
	s.rpc = oncrpc.NewServer(rpc)
	s.udp = oncrpc.NewPacketServer(oncrpc.Config{Programs: programs, Log: cfg.Log, MayReply: cfg.RPC.MayReply})
	return s
}

// Fail says that volume i cannot be used any more. From now on every call for it fails with an I/O error. The other
// volumes go on.
func (s *Server) Fail(i int) {
	if s.nfs[i] != nil {
		s.nfs[i].Fail()
	}
}

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = oncrpc.ErrClosed

// Serve answers on l until Shutdown or until l fails, and closes l. It may be
// called for several listeners at a time. With the first call, clients that had locks are told that the server has
// started.
func (s *Server) Serve(l net.Listener) error {
	if s.locks != nil {
		s.locks.Start()
	}
	return s.rpc.Serve(l)
}

// ServePacket answers MOUNT, and NLM and NSM if there are locks, over UDP on pc until Shutdown or until pc
// fails, and closes pc. NFS is not served so.
func (s *Server) ServePacket(pc net.PacketConn) error { return s.udp.Serve(pc) }

// Shutdown stops accepting and reading, finishes the operations in progress, and sends their replies. If ctx ends
// first, it closes all connections and returns the error of ctx. The file system must not be closed then before its
// operations have returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.udp.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if s.locks != nil {
			s.locks.Close() // which may wait for a device
		}
	}()
	if err := s.rpc.Shutdown(ctx); err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stats are the numbers of the transport since the Server was made. Calls over UDP are in those of
// procedures alone.
func (s *Server) Stats() oncrpc.Stats {
	st := s.rpc.Stats()
	st.Add(s.udp.Procs())
	return st
}

// Locks are the numbers of the table of locks, and of what outlives it; all 0 if there are none.
func (s *Server) Locks() nlm.Counts {
	if s.locks == nil {
		return nlm.Counts{}
	}
	return s.locks.Counts()
}

// LocalLocks are the locks of programs that use a volume through a mount, beside those of clients; nil: there are none.
func (s *Server) LocalLocks(volume [8]byte) *nlm.Local {
	if s.locks == nil {
		return nil
	}
	return s.locks.Local(volume)
}

// Conns is the number of open connections.
func (s *Server) Conns() int { return s.rpc.Conns() }
