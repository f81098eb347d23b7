package nfs3

import (
	"math"

	"tansy/fs"
	x "tansy/internal/xdrspec"
)

// The arguments and results of the 22 procedures as RFC 1813 writes them down
// (sections 2.5, 2.6 and 3.3), for comparison with what the table decodes and
// encodes.

var (
	rfcHandle  = x.Opaque(64)
	rfcName    = x.Opaque(math.MaxInt32)
	rfcTime    = x.Struct(x.Uint32, x.Uint32)
	rfcDirop   = x.Struct(rfcHandle, rfcName)
	rfcSetTime = x.Union(map[uint32]x.Type{0: x.Void, 1: x.Void, 2: rfcTime}, nil)
	rfcSattr   = x.Struct(x.Optional(x.Uint32), x.Optional(x.Uint32), x.Optional(x.Uint32), x.Optional(x.Uint64), rfcSetTime, rfcSetTime)
	rfcSpec    = x.Struct(x.Uint32, x.Uint32)
	rfcFattr   = x.Struct(x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint64, x.Uint64, rfcSpec, x.Uint64, x.Uint64, rfcTime, rfcTime, rfcTime)
	rfcPostOp  = x.Optional(rfcFattr)
	rfcPreOp   = x.Optional(x.Struct(x.Uint64, rfcTime, rfcTime))
	rfcWCC     = x.Struct(rfcPreOp, rfcPostOp)
	rfcPostFH  = x.Optional(rfcHandle)
)

// rfcArgs are the arguments by procedure.
var rfcArgs = map[int]x.Type{
	ProcNull:     x.Void,
	ProcGetattr:  rfcHandle,
	ProcSetattr:  x.Struct(rfcHandle, rfcSattr, x.Optional(rfcTime)),
	ProcLookup:   rfcDirop,
	ProcAccess:   x.Struct(rfcHandle, x.Uint32),
	ProcReadlink: rfcHandle,
	ProcRead:     x.Struct(rfcHandle, x.Uint64, x.Uint32),
	ProcWrite:    x.Struct(rfcHandle, x.Uint64, x.Uint32, x.Uint32, x.Opaque(fs.MaxIO)),
	ProcCreate:   x.Struct(rfcDirop, x.Union(map[uint32]x.Type{0: rfcSattr, 1: rfcSattr, 2: x.Uint64}, nil)),
	ProcMkdir:    x.Struct(rfcDirop, rfcSattr),
	ProcSymlink:  x.Struct(rfcDirop, rfcSattr, rfcName),
	ProcMknod: x.Struct(rfcDirop, x.Union(map[uint32]x.Type{
		3: x.Struct(rfcSattr, rfcSpec), 4: x.Struct(rfcSattr, rfcSpec), 6: rfcSattr, 7: rfcSattr}, &x.Void)),
	ProcRemove:      rfcDirop,
	ProcRmdir:       rfcDirop,
	ProcRename:      x.Struct(rfcDirop, rfcDirop),
	ProcLink:        x.Struct(rfcHandle, rfcDirop),
	ProcReaddir:     x.Struct(rfcHandle, x.Uint64, x.Uint64, x.Uint32),
	ProcReaddirplus: x.Struct(rfcHandle, x.Uint64, x.Uint64, x.Uint32, x.Uint32),
	ProcFsstat:      rfcHandle,
	ProcFsinfo:      rfcHandle,
	ProcPathconf:    rfcHandle,
	ProcCommit:      x.Struct(rfcHandle, x.Uint64, x.Uint32),
}

// result is a union on the status.
func result(ok x.Type, fail x.Type) x.Type { return x.Union(map[uint32]x.Type{0: ok}, &fail) }

var (
	rfcCreated = result(x.Struct(rfcPostFH, rfcPostOp, rfcWCC), rfcWCC)
	rfcOnlyWCC = result(rfcWCC, rfcWCC)
)

// rfcResults are the results by procedure.
var rfcResults = map[int]x.Type{
	ProcNull:        x.Void,
	ProcGetattr:     result(rfcFattr, x.Void),
	ProcSetattr:     rfcOnlyWCC,
	ProcLookup:      result(x.Struct(rfcHandle, rfcPostOp, rfcPostOp), rfcPostOp),
	ProcAccess:      result(x.Struct(rfcPostOp, x.Uint32), rfcPostOp),
	ProcReadlink:    result(x.Struct(rfcPostOp, rfcName), rfcPostOp),
	ProcRead:        result(x.Struct(rfcPostOp, x.Uint32, x.Bool, x.Opaque(math.MaxUint32)), rfcPostOp),
	ProcWrite:       result(x.Struct(rfcWCC, x.Uint32, x.Uint32, x.Uint64), rfcWCC),
	ProcCreate:      rfcCreated,
	ProcMkdir:       rfcCreated,
	ProcSymlink:     rfcCreated,
	ProcMknod:       rfcCreated,
	ProcRemove:      rfcOnlyWCC,
	ProcRmdir:       rfcOnlyWCC,
	ProcRename:      result(x.Struct(rfcWCC, rfcWCC), x.Struct(rfcWCC, rfcWCC)),
	ProcLink:        result(x.Struct(rfcPostOp, rfcWCC), x.Struct(rfcPostOp, rfcWCC)),
	ProcReaddir:     result(x.Struct(rfcPostOp, x.Uint64, x.List(x.Struct(x.Uint64, rfcName, x.Uint64)), x.Bool), rfcPostOp),
	ProcReaddirplus: result(x.Struct(rfcPostOp, x.Uint64, x.List(x.Struct(x.Uint64, rfcName, x.Uint64, rfcPostOp, rfcPostFH)), x.Bool), rfcPostOp),
	ProcFsstat:      result(x.Struct(rfcPostOp, x.Uint64, x.Uint64, x.Uint64, x.Uint64, x.Uint64, x.Uint64, x.Uint32), rfcPostOp),
	ProcFsinfo: result(x.Struct(rfcPostOp, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32, x.Uint32,
		x.Uint64, rfcTime, x.Uint32), rfcPostOp),
	ProcPathconf: result(x.Struct(rfcPostOp, x.Uint32, x.Uint32, x.Bool, x.Bool, x.Bool, x.Bool), rfcPostOp),
	ProcCommit:   result(x.Struct(rfcWCC, x.Uint64), rfcWCC),
}
