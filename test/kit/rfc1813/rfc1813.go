// Package rfc1813 describes the arguments and results of NFS version 3 as RFC 1813
// writes them down (sections 2.5, 2.6 and 3.3), for tests to compare with what
// package nfs3 decodes and encodes, and to make up calls.
package rfc1813

import (
	"math"

	x "tansy/test/kit/xdrspec"
)

// maxWrite is the most data of one WRITE in bytes; the RFC leaves it to the server.
const maxWrite = 1 << 20

var (
	fileHandle = x.Opaque(64)
	name       = x.Opaque(math.MaxInt32)
	nfsTime    = x.Struct(x.Uint32, x.Uint32)
	dirop      = x.Struct(fileHandle, name)
	setTime    = x.Union(map[uint32]x.Type{0: x.Void, 1: x.Void, 2: nfsTime}, nil)
	sattr      = x.Struct(x.Optional(x.Uint32), x.Optional(x.Uint32), x.Optional(x.Uint32), x.Optional(x.Uint64),
		setTime, setTime)
	specdata = x.Struct(x.Uint32, x.Uint32)
	fattr    = x.Struct(x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint64, x.Uint64, specdata, x.Uint64,
		x.Uint64, nfsTime, nfsTime, nfsTime)
	postOp     = x.Optional(fattr)
	preOp      = x.Optional(x.Struct(x.Uint64, nfsTime, nfsTime))
	wcc        = x.Struct(preOp, postOp)
	postHandle = x.Optional(fileHandle)
)

// Args are the arguments by procedure.
var Args = []x.Type{
	0:  x.Void,                                                                            // NULL
	1:  fileHandle,                                                                        // GETATTR
	2:  x.Struct(fileHandle, sattr, x.Optional(nfsTime)),                                  // SETATTR
	3:  dirop,                                                                             // LOOKUP
	4:  x.Struct(fileHandle, x.Uint32),                                                    // ACCESS
	5:  fileHandle,                                                                        // READLINK
	6:  x.Struct(fileHandle, x.Uint64, x.Uint32),                                          // READ
	7:  x.Struct(fileHandle, x.Uint64, x.Uint32, x.Uint32, x.Opaque(maxWrite)),            // WRITE
	8:  x.Struct(dirop, x.Union(map[uint32]x.Type{0: sattr, 1: sattr, 2: x.Uint64}, nil)), // CREATE
	9:  x.Struct(dirop, sattr),                                                            // MKDIR
	10: x.Struct(dirop, sattr, name),                                                      // SYMLINK
	11: x.Struct(dirop, x.Union(map[uint32]x.Type{ // MKNOD
		3: x.Struct(sattr, specdata), 4: x.Struct(sattr, specdata), 6: sattr, 7: sattr}, &x.Void)),
	12: dirop,                                                        // REMOVE
	13: dirop,                                                        // RMDIR
	14: x.Struct(dirop, dirop),                                       // RENAME
	15: x.Struct(fileHandle, dirop),                                  // LINK
	16: x.Struct(fileHandle, x.Uint64, x.Uint64, x.Uint32),           // READDIR
	17: x.Struct(fileHandle, x.Uint64, x.Uint64, x.Uint32, x.Uint32), // READDIRPLUS
	18: fileHandle,                                                   // FSSTAT
	19: fileHandle,                                                   // FSINFO
	20: fileHandle,                                                   // PATHCONF
	21: x.Struct(fileHandle, x.Uint64, x.Uint32),                     // COMMIT
}

// result is a union on the status.
func result(ok x.Type, fail x.Type) x.Type { return x.Union(map[uint32]x.Type{0: ok}, &fail) }

var (
	created = result(x.Struct(postHandle, postOp, wcc), wcc)
	onlyWCC = result(wcc, wcc)

	entry     = x.Struct(x.Uint64, name, x.Uint64)
	entryPlus = x.Struct(x.Uint64, name, x.Uint64, postOp, postHandle)
)

// Results are the results by procedure.
var Results = []x.Type{
	0:  x.Void,                                                                       // NULL
	1:  result(fattr, x.Void),                                                        // GETATTR
	2:  onlyWCC,                                                                      // SETATTR
	3:  result(x.Struct(fileHandle, postOp, postOp), postOp),                         // LOOKUP
	4:  result(x.Struct(postOp, x.Uint32), postOp),                                   // ACCESS
	5:  result(x.Struct(postOp, name), postOp),                                       // READLINK
	6:  result(x.Struct(postOp, x.Uint32, x.Bool, x.Opaque(math.MaxUint32)), postOp), // READ
	7:  result(x.Struct(wcc, x.Uint32, x.Uint32, x.Uint64), wcc),                     // WRITE
	8:  created,                                                                      // CREATE
	9:  created,                                                                      // MKDIR
	10: created,                                                                      // SYMLINK
	11: created,                                                                      // MKNOD
	12: onlyWCC,                                                                      // REMOVE
	13: onlyWCC,                                                                      // RMDIR
	14: result(x.Struct(wcc, wcc), x.Struct(wcc, wcc)),                               // RENAME
	15: result(x.Struct(postOp, wcc), x.Struct(postOp, wcc)),                         // LINK
	16: result(x.Struct(postOp, x.Uint64, x.List(entry), x.Bool), postOp),            // READDIR
	17: result(x.Struct(postOp, x.Uint64, x.List(entryPlus), x.Bool), postOp),        // READDIRPLUS
	18: result(x.Struct(postOp, x.Uint64, x.Uint64, x.Uint64, x.Uint64, x.Uint64, x.Uint64, // FSSTAT
		x.Uint32), postOp),
	19: result(x.Struct(postOp, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, // FSINFO
		x.Uint64, nfsTime, x.Uint32), postOp),
	20: result(x.Struct(postOp, x.Uint32, x.Uint32, x.Bool, x.Bool, x.Bool, x.Bool), postOp), // PATHCONF
	21: result(x.Struct(wcc, x.Uint64), wcc),                                                 // COMMIT
}
