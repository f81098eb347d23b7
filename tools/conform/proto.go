package conform

import (
	"fmt"
	"hash/crc32"
)

// Numbers and structures of NFS version 3 and MOUNT version 3 (RFC 1813,
// sections 2.2 to 2.6, 3, and 5).

const (
	nfsProg   = 100003
	nfsVers   = 3
	mountProg = 100005
	mountVers = 3
)

// Procedures of NFS.
const (
	procNull = iota
	procGetattr
	procSetattr
	procLookup
	procAccess
	procReadlink
	procRead
	procWrite
	procCreate
	procMkdir
	procSymlink
	procMknod
	procRemove
	procRmdir
	procRename
	procLink
	procReaddir
	procReaddirplus
	procFsstat
	procFsinfo
	procPathconf
	procCommit
	procCount
)

var procNames = [...]string{
	"NULL", "GETATTR", "SETATTR", "LOOKUP", "ACCESS", "READLINK", "READ", "WRITE", "CREATE", "MKDIR", "SYMLINK", "MKNOD",
	"REMOVE", "RMDIR", "RENAME", "LINK", "READDIR", "READDIRPLUS", "FSSTAT", "FSINFO", "PATHCONF", "COMMIT",
}

// Procedures of MOUNT.
const (
	mountNull = iota
	mountMnt
	mountDump
	mountUmnt
	mountUmntall
	mountExport
)

var mountNames = [...]string{"NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"}

// status is nfsstat3 or mountstat3.
type status uint32

const (
	ok             status = 0
	errPerm        status = 1
	errNoEnt       status = 2
	errIO          status = 5
	errNXIO        status = 6
	errAcces       status = 13
	errExist       status = 17
	errXDev        status = 18
	errNoDev       status = 19
	errNotDir      status = 20
	errIsDir       status = 21
	errInval       status = 22
	errFBig        status = 27
	errNoSpc       status = 28
	errROFS        status = 30
	errMLink       status = 31
	errNameTooLong status = 63
	errNotEmpty    status = 66
	errDQuot       status = 69
	errStale       status = 70
	errRemote      status = 71
	errBadHandle   status = 10001
	errNotSync     status = 10002
	errBadCookie   status = 10003
	errNotSupp     status = 10004
	errTooSmall    status = 10005
	errServerFault status = 10006
	errBadType     status = 10007
	errJukebox     status = 10008

	// errGarbage is no status: the call was answered with GARBAGE_ARGS.
	errGarbage status = 0xffffffff
)

var statusNames = map[status]string{
	ok: "OK", errPerm: "PERM", errNoEnt: "NOENT", errIO: "IO", errNXIO: "NXIO", errAcces: "ACCES", errExist: "EXIST",
	errXDev: "XDEV", errNoDev: "NODEV", errNotDir: "NOTDIR", errIsDir: "ISDIR", errInval: "INVAL", errFBig: "FBIG",
	errNoSpc: "NOSPC", errROFS: "ROFS", errMLink: "MLINK", errNameTooLong: "NAMETOOLONG", errNotEmpty: "NOTEMPTY",
	errDQuot: "DQUOT", errStale: "STALE", errRemote: "REMOTE", errBadHandle: "BADHANDLE", errNotSync: "NOT_SYNC",
	errBadCookie: "BAD_COOKIE", errNotSupp: "NOTSUPP", errTooSmall: "TOOSMALL", errServerFault: "SERVERFAULT",
	errBadType: "BADTYPE", errJukebox: "JUKEBOX", errGarbage: "GARBAGE_ARGS",
}

func (s status) String() string {
	if n := statusNames[s]; n != "" {
		return n
	}
	return fmt.Sprintf("status %d", uint32(s))
}

// ftype is ftype3.
type ftype uint32

const (
	typeReg  ftype = 1
	typeDir  ftype = 2
	typeBlk  ftype = 3
	typeChr  ftype = 4
	typeLnk  ftype = 5
	typeSock ftype = 6
	typeFIFO ftype = 7
)

// Bits of ACCESS.
const (
	accessRead    = 0x01
	accessLookup  = 0x02
	accessModify  = 0x04
	accessExtend  = 0x08
	accessDelete  = 0x10
	accessExecute = 0x20
)

// stable_how, createmode3.
const (
	unstable = 0
	dataSync = 1
	fileSync = 2

	unchecked = 0
	guarded   = 1
	exclusive = 2
)

// fh is a file handle, a string so that handles can be compared.
type fh string

// String is a short name of the handle for the report.
func (h fh) String() string {
	if len(h) == 0 {
		return "fh()"
	}
	return fmt.Sprintf("fh(%d bytes, crc %08x)", len(h), crc32.ChecksumIEEE([]byte(h)))
}

type stamp struct{ sec, nsec uint32 }

func (t stamp) String() string { return fmt.Sprintf("%d.%09d", t.sec, t.nsec) }

func (t stamp) nanoseconds() int64 { return int64(t.sec)*1e9 + int64(t.nsec) }

// before tells if t is earlier than u.
func (t stamp) before(u stamp) bool { return t.sec < u.sec || t.sec == u.sec && t.nsec < u.nsec }

// attr is fattr3.
type attr struct {
	typ                   ftype
	mode, nlink, uid, gid uint32
	size, used            uint64
	major, minor          uint32
	fsid, fileid          uint64
	atime, mtime, ctime   stamp
}

func (a *attr) String() string {
	if a == nil {
		return "no attributes"
	}
	return fmt.Sprintf("{type %d mode %04o nlink %d uid %d gid %d size %d used %d rdev %d:%d fsid %#x fileid %d "+
		"atime %v mtime %v ctime %v}",
		a.typ, a.mode, a.nlink, a.uid, a.gid, a.size, a.used, a.major, a.minor, a.fsid, a.fileid,
		a.atime, a.mtime, a.ctime)
}

// preAttr is wcc_attr.
type preAttr struct {
	size         uint64
	mtime, ctime stamp
}

// wcc is wcc_data.
type wcc struct {
	before *preAttr
	after  *attr
}

func (r *reader) stamp() stamp { return stamp{r.u32(), r.u32()} }

func (r *reader) attr() (a attr) {
	a.typ = ftype(r.u32())
	if r.err == "" && (a.typ < typeReg || a.typ > typeFIFO) {
		r.bad("ftype3 is %d", a.typ)
	}
	a.mode, a.nlink, a.uid, a.gid = r.u32(), r.u32(), r.u32(), r.u32()
	a.size, a.used = r.u64(), r.u64()
	a.major, a.minor = r.u32(), r.u32()
	a.fsid, a.fileid = r.u64(), r.u64()
	a.atime, a.mtime, a.ctime = r.stamp(), r.stamp(), r.stamp()
	return a
}

func (r *reader) postOp() *attr {
	if !r.bool() {
		return nil
	}
	a := r.attr()
	return &a
}

func (r *reader) wcc() (w wcc) {
	if r.bool() {
		w.before = &preAttr{r.u64(), r.stamp(), r.stamp()}
	}
	w.after = r.postOp()
	return w
}

func (r *reader) fh() fh { return fh(r.opaque(64)) }

func (r *reader) postFH() fh {
	if !r.bool() {
		return ""
	}
	return r.fh()
}

// sattr is sattr3; nil leaves an attribute alone.
type sattr struct {
	mode, uid, gid     *uint32
	size               *uint64
	atimeHow, mtimeHow uint32 // time_how: 0 don't change, 1 the server's time, 2 the client's
	atime, mtime       stamp
}

func ptr[V any](v V) *V { return &v }

func mode(m uint32) sattr { return sattr{mode: &m} }
func size(n uint64) sattr { return sattr{size: &n} }

func (a *args) sattr(s sattr) *args {
	for _, f := range []struct {
		name   string
		format string
		v      *uint32
	}{{"mode", "%s=%#o", s.mode}, {"uid", "%s=%d", s.uid}, {"gid", "%s=%d", s.gid}} {
		if f.v == nil {
			a.word(0)
			continue
		}
		a.word(1)
		a.word(*f.v)
		a.say(f.format, f.name, *f.v)
	}
	if s.size == nil {
		a.word(0)
	} else {
		a.word(1)
		a.u64("size", *s.size)
	}
	a.setTime("atime", s.atimeHow, s.atime)
	a.setTime("mtime", s.mtimeHow, s.mtime)
	return a
}

func (a *args) setTime(name string, how uint32, t stamp) {
	a.word(how)
	switch how {
	case 0:
		return
	case 2:
		a.word(t.sec)
		a.word(t.nsec)
		a.say("%s=%v", name, t)
	case 1:
		a.say("%s=server", name)
	default:
		a.say("time_how(%s)=%d", name, how)
	}
}
