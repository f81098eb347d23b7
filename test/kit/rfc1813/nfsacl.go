package rfc1813

import x "tansy/test/kit/xdrspec"

// NFSACL, version 3, which goes with NFS and has its handles and attributes. No RFC describes it; this is what Linux's
// client and server write.

// A list is the number of its entries, and those of them that come: what for, for whom, and rights.
var acl = x.Struct(x.Number(1024), x.Array(1024, x.Struct(x.Uint32, x.Uint32, x.Uint32)))

// ACLArgs are the arguments by procedure.
var ACLArgs = []x.Type{
	0: x.Void,                                   // NULL
	1: x.Struct(fileHandle, x.Uint32),           // GETACL
	2: x.Struct(fileHandle, x.Uint32, acl, acl), // SETACL
}

// ACLResults are the results by procedure.
var ACLResults = []x.Type{
	0: x.Void,                                               // NULL
	1: result(x.Struct(postOp, x.Uint32, acl, acl), postOp), // GETACL
	2: result(postOp, postOp),                               // SETACL
}
