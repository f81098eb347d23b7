// Package server serves a file system over NFS: NFS version 3 and MOUNT on one port, with
// no port mapper needed; Portmapper is one for hosts that have none.
package server

import (
	"context"
	"log/slog"
	"net"

	"tansy/exports"
	"tansy/fs"
	"tansy/mount3"
	"tansy/nfs3"
	"tansy/oncrpc"
)

// Config sets up a Server. FS, VolumeID and Key are required; zero values of
// the rest stand for the defaults.
type Config struct {
	FS       fs.FileSystem
	VolumeID [8]byte  // part of every handle; stays with the volume
	Key      [16]byte // secret that authenticates handles; stays with the volume
	Log      *slog.Logger

	Export     string          // path of the volume's root for clients, default "/"
	Exports    *exports.Policy // who may do what; nil: everybody everything
	RootSquash bool            // without Exports: treat user 0 and group 0 as nobody

	// Groups, if not nil, returns the groups of a user in place of those that clients say.
	Groups func(uid uint32) []uint32

	// RPC holds the limits of the transport. Its Programs and Log are set here.
	RPC oncrpc.Config
}

// Server is a file system being served.
type Server struct {
	rpc   *oncrpc.Server
	mount *oncrpc.PacketServer // MOUNT over UDP
}

// New makes a Server that listens nowhere yet.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Exports == nil {
		rule := exports.Open()
		rule.Root = cfg.RootSquash
		cfg.Exports = exports.NewPolicy(exports.NewTable(exports.Everyone(rule), nil))
	}
	nfs := nfs3.New(nfs3.Config{FS: cfg.FS, VolumeID: cfg.VolumeID, Key: cfg.Key, Log: cfg.Log, Exports: cfg.Exports, Groups: cfg.Groups})
	mount := mount3.New(mount3.Config{Export: cfg.Export, Walk: nfs.Walk, Exports: cfg.Exports, Log: cfg.Log})
	rpc := cfg.RPC
	rpc.Programs = append(mount.Programs(), nfs.Program())
	rpc.Log = cfg.Log
	return &Server{
		rpc:   oncrpc.NewServer(rpc),
		mount: oncrpc.NewPacketServer(oncrpc.Config{Programs: mount.Programs(), Log: cfg.Log}),
	}
}

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = oncrpc.ErrClosed

// Serve answers on l until Shutdown or until l fails, and closes l. It may be
// called for several listeners at a time.
func (s *Server) Serve(l net.Listener) error { return s.rpc.Serve(l) }

// ServeMount answers MOUNT, and nothing else, over UDP on pc until Shutdown or until pc
// fails, and closes pc.
func (s *Server) ServeMount(pc net.PacketConn) error { return s.mount.Serve(pc) }

// Shutdown stops accepting and reading, finishes the operations in progress and
// sends their replies. If ctx ends first it closes all connections and returns
// the error of ctx; the file system must then not be closed before its
// operations returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mount.Stop()
	return s.rpc.Shutdown(ctx)
}

// Stats are the numbers of the transport since the Server was made.
func (s *Server) Stats() oncrpc.Stats { return s.rpc.Stats() }

// Conns is the number of open connections.
func (s *Server) Conns() int { return s.rpc.Conns() }
