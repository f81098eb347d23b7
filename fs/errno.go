package fs

import "strconv"

var errnoNames = map[Errno]string{
	ErrPerm: "NFS3ERR_PERM", ErrNoEnt: "NFS3ERR_NOENT", ErrIO: "NFS3ERR_IO", ErrAcces: "NFS3ERR_ACCES",
	ErrExist: "NFS3ERR_EXIST", ErrXDev: "NFS3ERR_XDEV", ErrNotDir: "NFS3ERR_NOTDIR", ErrIsDir: "NFS3ERR_ISDIR",
	ErrInval: "NFS3ERR_INVAL", ErrFBig: "NFS3ERR_FBIG", ErrNoSpc: "NFS3ERR_NOSPC", ErrROFS: "NFS3ERR_ROFS",
	ErrMLink: "NFS3ERR_MLINK", ErrNameTooLong: "NFS3ERR_NAMETOOLONG", ErrNotEmpty: "NFS3ERR_NOTEMPTY",
	ErrStale: "NFS3ERR_STALE", ErrBadHandle: "NFS3ERR_BADHANDLE", ErrNotSync: "NFS3ERR_NOT_SYNC",
	ErrBadCookie: "NFS3ERR_BAD_COOKIE", ErrNotSupp: "NFS3ERR_NOTSUPP", ErrTooSmall: "NFS3ERR_TOOSMALL",
	ErrServerFault: "NFS3ERR_SERVERFAULT", ErrBadType: "NFS3ERR_BADTYPE",
}

func errnoName(e Errno) string {
	if s, ok := errnoNames[e]; ok {
		return s
	}
	return "NFS3 status " + strconv.FormatUint(uint64(e), 10)
}
