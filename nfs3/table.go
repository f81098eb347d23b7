package nfs3

import (
	"errors"

	"tansy/fs"
	"tansy/oncrpc"
)

// Program is the table of procedures. Each row has three parts that know nothing of
// each other: what decodes the arguments, what calls the file system, and what
// encodes the result.
func (s *Service) Program() oncrpc.Program {
	p := oncrpc.Program{Number: Program, Version: Version, Procs: []oncrpc.Proc{
		ProcNull:        oncrpc.NullProc,
		ProcGetattr:     row(s, "GETATTR", getHandle, s.getattr, s.putGetattr),
		ProcSetattr:     row(s, "SETATTR", getSetattr, s.setattr, s.putWCCOnly),
		ProcLookup:      row(s, "LOOKUP", getDirop, s.lookup, s.putLookup),
		ProcAccess:      row(s, "ACCESS", getAccess, s.access, s.putAccess),
		ProcReadlink:    row(s, "READLINK", getHandle, s.readlink, s.putReadlink),
		ProcRead:        row(s, "READ", getRead, s.read, s.putRead),
		ProcWrite:       row(s, "WRITE", getWrite, s.write, s.putWrite),
		ProcCreate:      row(s, "CREATE", getCreate, s.create, s.putCreated),
		ProcMkdir:       row(s, "MKDIR", getMkdir, s.mkdir, s.putCreated),
		ProcSymlink:     row(s, "SYMLINK", getSymlink, s.symlink, s.putCreated),
		ProcMknod:       row(s, "MKNOD", getMknod, s.mknod, s.putCreated),
		ProcRemove:      row(s, "REMOVE", getDirop, s.remove, s.putWCCOnly),
		ProcRmdir:       row(s, "RMDIR", getDirop, s.rmdir, s.putWCCOnly),
		ProcRename:      row(s, "RENAME", getRename, s.rename, s.putRename),
		ProcLink:        row(s, "LINK", getLink, s.link, s.putLink),
		ProcReaddir:     row(s, "READDIR", getReaddir, s.readdir, s.putReaddir),
		ProcReaddirplus: row(s, "READDIRPLUS", getReaddirplus, s.readdirplus, s.putReaddirplus),
		ProcFsstat:      row(s, "FSSTAT", getHandle, s.fsstat, s.putFsstat),
		ProcFsinfo:      row(s, "FSINFO", getHandle, s.fsinfo, s.putFsinfo),
		ProcPathconf:    row(s, "PATHCONF", getHandle, s.pathconf, s.putPathconf),
		ProcCommit:      row(s, "COMMIT", getCommit, s.commit, s.putCommit),
	}}
	for _, proc := range []int{ProcGetattr, ProcLookup, ProcAccess, ProcFsinfo, ProcPathconf} {
		p.Procs[proc].Inline = true
	}
	p.Procs[ProcRead].Weight, p.Procs[ProcRead].Partial = readWeight, true
	p.Procs[ProcReaddir].Weight = func(oncrpc.Decoder) int { return maxListing }
	p.Procs[ProcReaddirplus].Weight = func(oncrpc.Decoder) int { return 4 * maxListing }
	return p
}

// row makes a procedure of its parts. The status is encoded here, first; encode
// gets the error, too, since what follows the status depends on it.
func row[A, R any](s *Service, name string, decode func(*oncrpc.Decoder) A, do func(call, A) (R, error), encode func(*oncrpc.Call, R, error)) oncrpc.Proc {
	return oncrpc.Proc{Name: name, Serve: func(c *oncrpc.Call) oncrpc.Accept {
		args := decode(&c.Args)
		if !c.Args.Ok() {
			return oncrpc.GarbageArgs
		}
		result, err := do(call{c, s.caller(c.Cred)}, args)
		c.Reply.Uint32(s.status(c, name, err))
		encode(c, result, err)
		return oncrpc.Success
	}}
}

// call is one call being served: an oncrpc.Call with the file system's view of
// the caller.
type call struct {
	*oncrpc.Call
	cred *fs.Cred
}

// status is the number on the wire for an error of the file system. An error
// that is not an Errno is a fault below: it is logged here, since the client
// learns no more than that it is one.
func (s *Service) status(c *oncrpc.Call, proc string, err error) uint32 {
	if err == nil {
		return 0
	}
	var errno fs.Errno
	if errors.As(err, &errno) {
		return uint32(errno)
	}
	s.log.Error("operation failed", "proc", proc, "peer", c.Peer, "err", err)
	return uint32(fs.ErrIO)
}

// file checks a handle. One of the wrong form is an error for the reply, not bad
// XDR.
func (s *Service) file(c call, h handle) (fs.Handle, error) {
	return s.handles.parse(h, &c.Scratch)
}
