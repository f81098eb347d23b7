// Package fs is the file system of a volume: the operations of NFSv3 as atomic,
// durable transactions.
//
// FileSystem is the whole interface. The verified file system (Open) and the
// plain in-memory model used as an oracle in tests (fs/model) both implement it.
// When a volume works unasked is decided in fs/internal/background.
package fs

import "time"

// Handle names a file for ever, by an inode number and the generation of that inode.
type Handle struct {
	Ino uint64
	Gen uint64
}

// Cred is the caller: AUTH_SYS user, group and supplementary groups. None of them is NoID (Squash).
type Cred struct {
	UID, GID uint32
	GIDs     []uint32
}

// Type is the type of a file (RFC 1813, ftype3).
type Type uint32

const (
	Regular   Type = 1
	Directory Type = 2
	Block     Type = 3
	Char      Type = 4
	Symlink   Type = 5
	Socket    Type = 6
	FIFO      Type = 7
)

// Time is a time stamp with nanoseconds.
type Time struct {
	Sec  uint64
	Nsec uint32
}

// Attr are the attributes of a file (RFC 1813, fattr3). There is no type 0: the zero Attr stands for those that are not
// known.
type Attr struct {
	Type                Type
	Mode                uint32 // permission bits only, 07777
	Nlink               uint32
	UID, GID            uint32
	Size                uint64 // bytes
	Used                uint64 // bytes
	Major, Minor        uint32 // device number
	Ino, Gen            uint64
	Atime, Mtime, Ctime Time
}

// OrNil returns a, or nil if a is the zero Attr.
func (a *Attr) OrNil() *Attr {
	if a.Type == 0 {
		return nil
	}
	return a
}

// WCC is weak cache consistency data: the attributes before and after the
// operation. Either is nil when it is not known.
type WCC struct {
	Before *Attr
	After  *Attr
}

// TimeHow says how SETATTR sets a time stamp.
type TimeHow int

const (
	DontChange TimeHow = iota
	ServerTime
	ClientTime
)

// SetAttr lists the attributes to set (RFC 1813, sattr3); nil leaves one alone.
// For a new file UID and GID count only if root makes it. NoID is as nil.
type SetAttr struct {
	Mode, UID, GID     *uint32
	Size               *uint64
	AtimeHow, MtimeHow TimeHow
	Atime, Mtime       Time
}

// CreateHow is the mode of CREATE (RFC 1813, createmode3).
type CreateHow uint32

const (
	Unchecked CreateHow = 0
	Guarded   CreateHow = 1
	Exclusive CreateHow = 2
)

// Node is the result of the operations that find or make a file.
type Node struct {
	Handle Handle
	Attr   Attr
	Dir    WCC  // the directory, of those that make one
	Parent Attr // the directory, of LOOKUP, which allocates nothing; zero if they are not known
}

// Entry is one directory entry.
type Entry struct {
	Ino    uint64
	Name   []byte
	Cookie uint64
	Handle Handle // READDIRPLUS only
	Attr   *Attr  // READDIRPLUS only; nil: there is no handle either
}

// Limit is how much is asked of a listing.
type Limit struct {
	Bytes int                   // at most so many,
	Size  func(nameLen int) int // of which an entry takes so many; nil: none
	// Beyond the first entry, if DirSize is not nil, at most DirBytes as well, of which an entry takes DirSize:
	// READDIRPLUS's dircount (RFC 1813, 3.3.17).
	DirBytes int
	DirSize  func(nameLen int) int

	some bool // taken
}

// Take tells whether one more entry is within l. If it is, l becomes what is left.
func (l *Limit) Take(nameLen int) bool {
	left, dirLeft := l.Bytes, 0
	if l.Size != nil {
		left -= l.Size(nameLen)
	}
	if l.DirSize != nil {
		dirLeft = l.DirBytes - l.DirSize(nameLen)
	}
	if left < 0 || dirLeft < 0 && l.some {
		return false
	}
	l.Bytes, l.DirBytes, l.some = left, dirLeft, true
	return true
}

// Listing is a page of a directory.
type Listing struct {
	Dir     *Attr
	Entries []Entry
	EOF     bool
	Verf    uint64 // cookie verifier

	page *page // the memory of the entries; nil: the garbage collector's
}

// Stat are the dynamic numbers of a volume (FSSTAT), in bytes and files.
type Stat struct {
	TotalBytes, FreeBytes uint64
	TotalFiles, FreeFiles uint64
}

// Info are the limits and properties of a file system (RFC 1813, FSINFO3resok).
type Info struct {
	RtMax, RtPref, RtMult uint32
	WtMax, WtPref, WtMult uint32
	DtPref                uint32
	MaxFileSize           uint64
	TimeDelta             Time
	Properties            uint32
}

// Properties of FSINFO (RFC 1813, section 3.3.19).
const (
	PropLink        = 0x01 // hard links
	PropSymlink     = 0x02
	PropHomogeneous = 0x08 // PATHCONF is the same for all files
	PropCanSetTime  = 0x10
)

// Pathconf are the limits of a file (RFC 1813, PATHCONF3resok).
type Pathconf struct {
	LinkMax, NameMax                                          uint32
	NoTrunc, ChownRestricted, CaseInsensitive, CasePreserving bool
}

// Stability of a WRITE (RFC 1813, stable_how).
type Stability uint32

const (
	Unstable Stability = 0
	DataSync Stability = 1
	FileSync Stability = 2
)

// Errno is an NFSv3 status (RFC 1813, nfsstat3), never OK.
type Errno uint32

const (
	ErrPerm        Errno = 1
	ErrNoEnt       Errno = 2
	ErrIO          Errno = 5
	ErrAcces       Errno = 13
	ErrExist       Errno = 17
	ErrXDev        Errno = 18
	ErrNotDir      Errno = 20
	ErrIsDir       Errno = 21
	ErrInval       Errno = 22
	ErrFBig        Errno = 27
	ErrNoSpc       Errno = 28
	ErrROFS        Errno = 30
	ErrMLink       Errno = 31
	ErrNameTooLong Errno = 63
	ErrNotEmpty    Errno = 66
	ErrStale       Errno = 70
	ErrBadHandle   Errno = 10001
	ErrNotSync     Errno = 10002
	ErrBadCookie   Errno = 10003
	ErrNotSupp     Errno = 10004
	ErrTooSmall    Errno = 10005
	ErrServerFault Errno = 10006
	ErrBadType     Errno = 10007
)

// Error names the status as RFC 1813 does.
func (e Errno) Error() string { return errnoName(e) }

// FileSystem is the set of operations. Every method is atomic, may be called
// concurrently, and returns an Errno as its error. Names are raw bytes as they
// came from the client. A method that returns nil after changing something has
// made the change durable, except Write with Unstable.
//
// The WCC and *Attr results are valid on errors too, where they could be had.
type FileSystem interface {
	Root() Handle
	Getattr(h Handle) (Attr, error)
	// Setattr: guard, when not nil, must equal the ctime (else ErrNotSync).
	Setattr(c *Cred, h Handle, s *SetAttr, guard *Time) (WCC, error)
	// Lookup returns the node, and with an error as well Node.Parent.
	// "." and ".." are looked up too (".." of the root is the root).
	Lookup(c *Cred, dir Handle, name []byte) (Node, error)
	// Access returns which of the ACCESS3 bits in want are granted. a is zero if the attributes are not known.
	Access(c *Cred, h Handle, want uint32) (granted uint32, a Attr, err error)
	Readlink(c *Cred, h Handle) (target []byte, a *Attr, err error)
	// Read returns at most count bytes. The slice is the caller's.
	Read(c *Cred, h Handle, off uint64, count uint32) (data []byte, eof bool, a *Attr, err error)
	// Write stores data, which it does not keep, and may store less of it than
	// given: n bytes. committed is how stable the data now is.
	Write(c *Cred, h Handle, off uint64, data []byte, how Stability) (n uint32, committed Stability, w WCC, err error)
	// Create makes a regular file; verf is used with Exclusive only.
	Create(c *Cred, dir Handle, name []byte, how CreateHow, s *SetAttr, verf uint64) (Node, error)
	Mkdir(c *Cred, dir Handle, name []byte, s *SetAttr) (Node, error)
	Symlink(c *Cred, dir Handle, name []byte, s *SetAttr, target []byte) (Node, error)
	// Mknod makes a device node, FIFO or socket.
	Mknod(c *Cred, dir Handle, name []byte, t Type, s *SetAttr, major, minor uint32) (Node, error)
	Remove(c *Cred, dir Handle, name []byte) (WCC, error)
	Rmdir(c *Cred, dir Handle, name []byte) (WCC, error)
	Rename(c *Cred, from Handle, fromName []byte, to Handle, toName []byte) (fromWCC, toWCC WCC, err error)
	Link(c *Cred, file, dir Handle, name []byte) (a *Attr, w WCC, err error)
	// Readdir lists a directory from after cookie (0 = start), as far as lim goes. ErrTooSmall: not even the first
	// entry fits, or lim.Bytes is below 0. With plus, entries have handles and attributes if c may search the
	// directory.
	Readdir(c *Cred, dir Handle, cookie, verf uint64, plus bool, lim Limit) (Listing, error)
	Fsstat(h Handle) (Stat, *Attr, error)
	Fsinfo(h Handle) (Info, *Attr, error)
	Pathconf(h Handle) (Pathconf, *Attr, error)
	// Commit makes all unstable writes durable. h is a regular file's.
	Commit(h Handle, off uint64, count uint32) (WCC, error)
	// Verifier is the write verifier: it differs for every start of the server.
	Verifier() uint64
}

// OnceFileSystem does calls that have names once, although they may come again.
type OnceFileSystem interface {
	FileSystem
	// Once returns the file system for one call. If a call of this name has been done, what it did is still there, and
	// it was not long ago, then it is not done again: the result is success, the file, and the attributes as they are
	// now. That goes for Create but Exclusive, Mkdir, Symlink, Mknod, Remove, Rmdir, Rename, Link, and Setattr with a
	// guard.
	Once(id *CallID) FileSystem
}

// Lister is a FileSystem whose files have access lists. FS.SetAccess and FS.SetDefault say what they are.
type Lister interface {
	// GetLists returns those lists of a file that are asked for, and its attributes, all of one instant. MissingList
	// stands for an access list that cannot be read; for a default list, the error is ErrIO.
	GetLists(h Handle, access, dflt bool) (Lists, Attr, error)
	// SetLists gives a file the access list of l, the default list, or both at one instant.
	SetLists(c *Cred, h Handle, l Lists, access, dflt bool) error
}

// Clock gives the time stamps; tests replace it.
type Clock func() time.Time
