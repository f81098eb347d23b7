package nfs3

import (
	"errors"

	"tansy/fs"
	"tansy/nfs/exports"
	"tansy/nfs/oncrpc"
)

// Program is the table of procedures. Each row has three parts that know nothing of
// each other: what decodes the arguments, what calls the file system, and what
// encodes the result.
func (s *Service) Program() oncrpc.Program {
	p := oncrpc.Program{Name: "nfs3", Number: Program, Version: Version, Procs: []oncrpc.Proc{
		ProcNull:        oncrpc.NullProc,
		ProcGetattr:     row(s, "GETATTR", reads, getHandle, s.getattr, s.putGetattr),
		ProcSetattr:     row(s, "SETATTR", changes, getSetattr, s.setattr, s.putWCCOnly),
		ProcLookup:      row(s, "LOOKUP", reads, getDirop, s.lookup, s.putLookup),
		ProcAccess:      row(s, "ACCESS", reads, getAccess, s.access, s.putAccess),
		ProcReadlink:    row(s, "READLINK", reads, getHandle, s.readlink, s.putReadlink),
		ProcRead:        row(s, "READ", reads, getRead, s.read, s.putRead),
		ProcWrite:       row(s, "WRITE", changes, getWrite, s.write, s.putWrite),
		ProcCreate:      row(s, "CREATE", changes, getCreate, s.create, s.putCreated),
		ProcMkdir:       row(s, "MKDIR", changes, getMkdir, s.mkdir, s.putCreated),
		ProcSymlink:     row(s, "SYMLINK", changes, getSymlink, s.symlink, s.putCreated),
		ProcMknod:       row(s, "MKNOD", changes, getMknod, s.mknod, s.putCreated),
		ProcRemove:      row(s, "REMOVE", changes, getDirop, s.remove, s.putWCCOnly),
		ProcRmdir:       row(s, "RMDIR", changes, getDirop, s.rmdir, s.putWCCOnly),
		ProcRename:      row(s, "RENAME", changes, getRename, s.rename, s.putRename),
		ProcLink:        row(s, "LINK", changes, getLink, s.link, s.putLink),
		ProcReaddir:     row(s, "READDIR", reads, getReaddir, s.readdir, s.putReaddir),
		ProcReaddirplus: row(s, "READDIRPLUS", reads, getReaddirplus, s.readdirplus, s.putReaddirplus),
		ProcFsstat:      row(s, "FSSTAT", reads, getHandle, s.fsstat, s.putFsstat),
		ProcFsinfo:      row(s, "FSINFO", reads, getHandle, s.fsinfo, s.putFsinfo),
		ProcPathconf:    row(s, "PATHCONF", reads, getHandle, s.pathconf, s.putPathconf),
		ProcCommit:      row(s, "COMMIT", reads, getCommit, s.commit, s.putCommit),
	}}
	for _, proc := range []int{ProcGetattr, ProcLookup, ProcAccess, ProcFsinfo, ProcPathconf} {
		p.Procs[proc].Inline = true
	}
	p.Procs[ProcCommit].Changes = true // it waits as they do
	read := &p.Procs[ProcRead]
	read.Weight, read.Partial, read.Brief = readWeight, true, true
	p.Procs[ProcReaddir].Weight = func(oncrpc.Decoder) int { return maxListing }
	p.Procs[ProcReaddirplus].Weight = func(oncrpc.Decoder) int { return 4 * maxListing }
	return p
}

// Whether a procedure changes files, which an export may forbid. COMMIT does not: whoever
// could write a moment ago may see to it that it is durable.
const (
	reads   = false
	changes = true
)

// row makes a procedure of its parts. The status is encoded here, first; encode
// gets the error, too, since what follows the status depends on it. The arguments of all
// procedures begin with a handle.
func row[A, R any](
	s *Service, name string, changes bool,
	decode func(*oncrpc.Decoder) A, do func(call, A) (R, error), encode func(call, R, error),
) oncrpc.Proc {
	return oncrpc.Proc{Name: name, Changes: changes, Serve: func(oc *oncrpc.Call) oncrpc.Accept {
		d := oc.Args
		raw, first := d.Rest(), getHandle(&d)
		args := decode(&oc.Args)
		if !oc.Args.Ok() {
			return oncrpc.GarbageArgs
		}
		c := call{Call: oc, proc: name, args: raw}
		var result R
		err := s.admit(&c, first)
		if err == exports.ErrTooWeak {
			oc.Deny = oncrpc.AuthTooWeak
			return oncrpc.Success
		}
		if err == nil && changes && c.readOnly {
			if _, err = s.file(c, first); err == nil {
				err = fs.ErrROFS
			}
		}
		if err == nil {
			result, err = do(c, args)
		}
		oc.Status = s.status(oc, name, err)
		oc.Reply.Uint32(oc.Status)
		encode(c, result, err)
		return oncrpc.Success
	}}
}

// status is the number on the wire for an error of the file system. An error
// that is not an Errno is a fault below: it is logged here, since the client
// learns no more than that it is one. A volume that is closed is no fault.
func (s *Service) status(c *oncrpc.Call, proc string, err error) uint32 {
	if err == nil {
		return 0
	}
	var errno fs.Errno
	if errors.As(err, &errno) {
		return uint32(errno)
	}
	if errors.Is(err, fs.ErrClosed) {
		return uint32(fs.ErrIO)
	}
	s.log.Error("operation failed", "proc", proc, "peer", c.Peer, "err", err)
	return uint32(fs.ErrIO)
}
