package load

import (
	"fmt"
	"strconv"
)

// nfsStatus are the names of the NFS statuses, without their beginning NFS3ERR_ (RFC 1813, section 2.6).
var nfsStatus = map[uint32]string{
	1: "PERM", 2: "NOENT", 5: "IO", 6: "NXIO", 13: "ACCES", 17: "EXIST", 18: "XDEV", 19: "NODEV",
	20: "NOTDIR", 21: "ISDIR", 22: "INVAL", 27: "FBIG", 28: "NOSPC", 30: "ROFS", 31: "MLINK",
	63: "NAMETOOLONG", 66: "NOTEMPTY", 69: "DQUOT", 70: "STALE", 71: "REMOTE",
	10001: "BADHANDLE", 10002: "NOT_SYNC", 10003: "BAD_COOKIE", 10004: "NOTSUPP",
	10005: "TOOSMALL", 10006: "SERVERFAULT", 10007: "BADTYPE", 10008: "JUKEBOX",
}

// mountStatus are the names of those of MOUNT, without MNT3ERR_ (RFC 1813, section 5.1.5).
var mountStatus = map[uint32]string{
	1: "PERM", 2: "NOENT", 5: "IO", 13: "ACCES", 20: "NOTDIR", 22: "INVAL", 63: "NAMETOOLONG",
	10004: "NOTSUPP", 10006: "SERVERFAULT",
}

// acceptStatus are the outcomes of a call that was accepted and not carried out (accept_stat; RFC 5531, section 9).
var acceptStatus = map[uint32]string{
	1: "PROG_UNAVAIL: the server has no such program",
	2: "PROG_MISMATCH: the server has no version 3 of the program",
	3: "PROC_UNAVAIL: the server has no such procedure",
	4: "GARBAGE_ARGS: the server does not understand the arguments",
	5: "SYSTEM_ERR: the server has no memory, for instance",
}

// authStatus are the reasons why credentials were refused (auth_stat; RFC 5531, section 9).
var authStatus = map[uint32]string{
	1: "AUTH_BADCRED", 2: "AUTH_REJECTEDCRED", 3: "AUTH_BADVERF", 4: "AUTH_REJECTEDVERF", 5: "AUTH_TOOWEAK",
	6: "AUTH_INVALIDRESP", 7: "AUTH_FAILED", 13: "RPCSEC_GSS_CREDPROBLEM", 14: "RPCSEC_GSS_CTXPROBLEM",
}

// named is the name of a status, or its number if it has none.
func named(names map[uint32]string, prefix string, status uint32) string {
	if n := names[status]; n != "" {
		return prefix + n
	}
	return prefix + "(status " + strconv.FormatUint(uint64(status), 10) + ")"
}

// status turns an NFS status into an error.
func status(what string, st uint32) error {
	if st == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", what, named(nfsStatus, "NFS3ERR_", st))
}

// denied is the error of a call that was denied, for this reason (reject_stat), of which a second word tells more.
func denied(reason, more uint32) error {
	if reason == 1 {
		return fmt.Errorf("the call was denied: %s", named(authStatus, "", more))
	}
	return fmt.Errorf("the call was denied: RPC_MISMATCH: the server wants versions of RPC from %d on", more)
}
