// Package server serves a file system over NFS: NFS version 3 and MOUNT version
// 3 on one port, with no portmapper.
package server

import (
	"context"
	"log/slog"
	"net"

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

	Export     string // path clients mount, default "/"
	RootSquash bool   // treat user 0 and group 0 as nobody

	// RPC holds the limits of the transport. Its Programs and Log are set here.
	RPC oncrpc.Config
}

// nobody is the user and group of a caller without credentials, and what RootSquash
// makes of user 0 and group 0.
const nobody = 65534

// Server is a file system being served.
type Server struct{ rpc *oncrpc.Server }

// New makes a Server that listens nowhere yet.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	nfs := nfs3.New(nfs3.Config{
		FS: cfg.FS, VolumeID: cfg.VolumeID, Key: cfg.Key, Log: cfg.Log,
		AnonUID: nobody, AnonGID: nobody, RootSquash: cfg.RootSquash,
	})
	mount := mount3.New(mount3.Config{Export: cfg.Export, Walk: nfs.Walk, Log: cfg.Log})
	rpc := cfg.RPC
	rpc.Programs = []oncrpc.Program{nfs.Program(), mount.Program()}
	rpc.Log = cfg.Log
	return &Server{rpc: oncrpc.NewServer(rpc)}
}

// ErrClosed is what Serve returns after Shutdown.
var ErrClosed = oncrpc.ErrClosed

// Serve answers on l until Shutdown or until l fails, and closes l. It may be
// called for several listeners at a time.
func (s *Server) Serve(l net.Listener) error { return s.rpc.Serve(l) }

// Shutdown stops accepting and reading, finishes the operations in progress and
// sends their replies. If ctx ends first it closes all connections and returns
// the error of ctx; the file system must then not be closed before its
// operations returned.
func (s *Server) Shutdown(ctx context.Context) error { return s.rpc.Shutdown(ctx) }

// Stats are the numbers of the transport since the Server was made.
func (s *Server) Stats() oncrpc.Stats { return s.rpc.Stats() }

// Conns is the number of open connections.
func (s *Server) Conns() int { return s.rpc.Conns() }
