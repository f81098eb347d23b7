package nfs3

import (
	"encoding/binary"
	"errors"
	"log/slog"

	"tansy/fs"
	"tansy/oncrpc"
)

// Config sets up a Service.
type Config struct {
	FS       fs.FileSystem
	VolumeID [8]byte  // in every handle, and the fsid of the attributes
	Key      [16]byte // of the handles
	Log      *slog.Logger

	// AnonUID and AnonGID are who a caller without credentials is.
	AnonUID, AnonGID uint32
	// RootSquash makes user 0 anonymous too.
	RootSquash bool
}

// Service is NFS version 3 on one file system.
type Service struct {
	fs         fs.FileSystem
	handles    *handles
	fsid       uint64
	log        *slog.Logger
	anon       fs.Cred
	rootSquash bool
}

// New makes a Service.
func New(cfg Config) *Service {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Service{
		fs: cfg.FS, handles: newHandles(cfg.VolumeID, cfg.Key), fsid: binary.BigEndian.Uint64(cfg.VolumeID[:]),
		log: cfg.Log, anon: fs.Cred{UID: cfg.AnonUID, GID: cfg.AnonGID}, rootSquash: cfg.RootSquash,
	}
}

// Program is the table of procedures.
func (s *Service) Program() oncrpc.Program {
	inline := func(name string, serve func(*call) oncrpc.Accept) oncrpc.Proc {
		return oncrpc.Proc{Name: name, Inline: true, Serve: s.adapt(name, serve)}
	}
	proc := func(name string, serve func(*call) oncrpc.Accept) oncrpc.Proc {
		return oncrpc.Proc{Name: name, Serve: s.adapt(name, serve)}
	}
	p := oncrpc.Program{Number: Program, Version: Version, Procs: []oncrpc.Proc{
		ProcNull:        oncrpc.NullProc,
		ProcGetattr:     inline("GETATTR", s.getattr),
		ProcSetattr:     proc("SETATTR", s.setattr),
		ProcLookup:      inline("LOOKUP", s.lookup),
		ProcAccess:      inline("ACCESS", s.access),
		ProcReadlink:    proc("READLINK", s.readlink),
		ProcRead:        proc("READ", s.read),
		ProcWrite:       proc("WRITE", s.write),
		ProcCreate:      proc("CREATE", s.create),
		ProcMkdir:       proc("MKDIR", s.mkdir),
		ProcSymlink:     proc("SYMLINK", s.symlink),
		ProcMknod:       proc("MKNOD", s.mknod),
		ProcRemove:      proc("REMOVE", s.remove),
		ProcRmdir:       proc("RMDIR", s.rmdir),
		ProcRename:      proc("RENAME", s.rename),
		ProcLink:        proc("LINK", s.link),
		ProcReaddir:     proc("READDIR", s.readdir),
		ProcReaddirplus: proc("READDIRPLUS", s.readdirplus),
		ProcFsstat:      proc("FSSTAT", s.fsstat),
		ProcFsinfo:      inline("FSINFO", s.fsinfo),
		ProcPathconf:    inline("PATHCONF", s.pathconf),
		ProcCommit:      proc("COMMIT", s.commit),
	}}
	p.Procs[ProcRead].Weight = readWeight
	p.Procs[ProcReaddir].Weight = func(oncrpc.Decoder) int { return maxListing }
	p.Procs[ProcReaddirplus].Weight = func(oncrpc.Decoder) int { return 4 * maxListing }
	return p
}

// RootHandle is the handle MOUNT gives out.
func (s *Service) RootHandle() []byte {
	b := make([]byte, HandleSize)
	s.handles.put(b, s.fs.Root(), new([64]byte))
	return b
}

// call is one call being served: an oncrpc.Call with the file system's view of
// the caller.
type call struct {
	*oncrpc.Call
	name string
	cred *fs.Cred
}

// adapt turns a method into what oncrpc calls.
func (s *Service) adapt(name string, serve func(*call) oncrpc.Accept) func(*oncrpc.Call) oncrpc.Accept {
	return func(c *oncrpc.Call) oncrpc.Accept {
		return serve(&call{Call: c, name: name, cred: s.caller(c.Cred)})
	}
}

// caller maps credentials to a user of the file system.
func (s *Service) caller(c *oncrpc.Cred) *fs.Cred {
	if c.Flavor != oncrpc.AuthSys || s.rootSquash && c.UID == 0 {
		return &s.anon
	}
	return (*fs.Cred)(&c.IDs)
}

// status is the number on the wire for an error of the file system. An error
// that is not an Errno is a fault below: it is logged here, since the client
// learns no more than that it is one.
func (s *Service) status(c *call, err error) uint32 {
	if err == nil {
		return 0
	}
	var errno fs.Errno
	if errors.As(err, &errno) {
		return uint32(errno)
	}
	s.log.Error("operation failed", "proc", c.name, "peer", c.Peer, "err", err)
	return uint32(fs.ErrIO)
}

// handle decodes a file handle. A handle of the wrong form is an error for the
// reply, not bad XDR; the rest of the arguments is still decoded.
func (s *Service) handle(c *call) (fs.Handle, error) {
	return s.handles.parse(c.Args.Opaque(maxHandle), &c.Scratch)
}
