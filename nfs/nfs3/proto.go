// Package nfs3 speaks NFS version 3 (RFC 1813): it decodes the arguments of the
// 22 procedures, calls the fs.FileSystem method that does the work, and encodes
// the result. It holds no state of its own but the key of its file handles.
//
// The table in table.go lists the procedures, each with what decodes its arguments
// (get...), the method of Service that calls the file system, and what encodes the
// result (put...). Arguments that are not XDR are GARBAGE_ARGS to the caller, and so are
// values outside an enum that selects an arm of a union (createmode3, time_how). The
// union of MKNOD has a default arm, so any type decodes. Values outside other enums get
// the status the RFC has for them: NFS3ERR_BADTYPE for the type of MKNOD, NFS3ERR_INVAL
// for the stability of a WRITE.
package nfs3

import "tansy/fs"

// Program and version of NFS.
const (
	Program = 100003
	Version = 3
)

// Procedure numbers (RFC 1813, section 3.3).
const (
	ProcNull = iota
	ProcGetattr
	ProcSetattr
	ProcLookup
	ProcAccess
	ProcReadlink
	ProcRead
	ProcWrite
	ProcCreate
	ProcMkdir
	ProcSymlink
	ProcMknod
	ProcRemove
	ProcRmdir
	ProcRename
	ProcLink
	ProcReaddir
	ProcReaddirplus
	ProcFsstat
	ProcFsinfo
	ProcPathconf
	ProcCommit
	procCount
)

// Bits of ACCESS (RFC 1813, section 3.3.4).
const (
	AccessRead    = 0x01
	AccessLookup  = 0x02
	AccessModify  = 0x04
	AccessExtend  = 0x08
	AccessDelete  = 0x10
	AccessExecute = 0x20
	accessAll     = 0x3f
)

// maxHandle bounds the length of a handle on the wire, in bytes.
const maxHandle = 64

// maxListing bounds what one READDIR or READDIRPLUS returns, in bytes. Clients
// may ask for more.
const maxListing = fs.MaxListing
