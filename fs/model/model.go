package model

import (
	"math"
	"sort"
	"sync"
	"time"

	"tansy/fs"
)

// Options are the limits and the clock of a Model. The zero value is fine.
type Options struct {
	Clock    fs.Clock // default time.Now
	MaxSize  uint64   // bytes in a file, default fs.MaxSize
	MaxLinks uint32   // default fs.MaxLinks
	Capacity uint64   // bytes of data in all, default 1 TiB
	MaxFiles uint64   // default 1e6
	Verifier uint64   // write verifier, default from the clock
	RootMode uint32   // mode of the root directory, default 0755

	// NewHandle names a new file, the root first. The default counts inode
	// numbers from 1, uses those of removed files again, and counts generations.
	NewHandle func() fs.Handle

	// Stamp is the time of a change made at now to the file h, whose ctime is was. The
	// default is the function Stamp.
	Stamp func(h fs.Handle, now, was fs.Time) fs.Time
}

// Model is a file system in memory. Its methods may be called concurrently.
type Model struct {
	opt Options

	mu      sync.Mutex
	inodes  map[uint64]*inode
	root    *inode
	free    []uint64 // inode numbers to use again
	nextIno uint64
	nextGen uint64
	pages   uint64 // in use
}

var _ fs.FileSystem = (*Model)(nil)

// page is a block of a file. It never changes once it is in a file, so that forks
// share it.
type page [fs.BlockSize]byte

// inode is a file of any type. attr.Size and attr.Used of a directory are made
// up when asked for.
type inode struct {
	attr   fs.Attr
	verf   uint64            // of the EXCLUSIVE create, or 0
	pages  map[uint64]*page  // regular file; a missing page is a hole
	gone   uint64            // pages that were ever cut off: so many may wait to be freed
	target []byte            // symbolic link
	parent *inode            // directory
	names  map[string]*entry // directory
	list   []*entry          // the same, in the order of cookies
	cookie uint64            // last one given out
	access *fs.AccessList    // or nil; neither list changes
	dflt   *fs.AccessList    // or nil
}

type entry struct {
	name   string
	node   *inode
	cookie uint64
}

// New returns a file system that holds an empty root directory.
func New(opt Options) *Model {
	if opt.Clock == nil {
		opt.Clock = time.Now
	}
	if opt.MaxSize == 0 {
		opt.MaxSize = fs.MaxSize
	}
	if opt.MaxLinks == 0 {
		opt.MaxLinks = fs.MaxLinks
	}
	if opt.Capacity == 0 {
		opt.Capacity = 1 << 40
	}
	if opt.MaxFiles == 0 {
		opt.MaxFiles = 1e6
	}
	if opt.Verifier == 0 {
		opt.Verifier = uint64(opt.Clock().UnixNano())
	}
	if opt.RootMode == 0 {
		opt.RootMode = 0o755
	}
	if opt.Stamp == nil {
		opt.Stamp = func(_ fs.Handle, now, was fs.Time) fs.Time { return Stamp(now, was) }
	}
	m := &Model{opt: opt, inodes: map[uint64]*inode{}, nextIno: 1, nextGen: 1}
	m.root = m.alloc(fs.Directory, m.now())
	m.root.attr.Mode = opt.RootMode
	m.root.attr.Nlink = 2
	m.root.parent = m.root
	return m
}

func (m *Model) now() fs.Time {
	t := m.opt.Clock()
	return fs.Time{Sec: uint64(t.Unix()), Nsec: uint32(t.Nanosecond())}
}

// newHandle is the default of Options.NewHandle: a number that may have been used
// before and a generation that was not.
func (m *Model) newHandle() fs.Handle {
	if m.opt.NewHandle != nil {
		return m.opt.NewHandle()
	}
	var ino uint64
	if n := len(m.free); n > 0 {
		ino, m.free = m.free[n-1], m.free[:n-1]
	} else {
		ino, m.nextIno = m.nextIno, m.nextIno+1
	}
	m.nextGen++
	return fs.Handle{Ino: ino, Gen: m.nextGen - 1}
}

// alloc makes an inode.
func (m *Model) alloc(t fs.Type, now fs.Time) *inode {
	h := m.newHandle()
	n := &inode{attr: fs.Attr{Type: t, Ino: h.Ino, Gen: h.Gen, Atime: now, Mtime: now, Ctime: now}}
	switch t {
	case fs.Directory:
		n.names = map[string]*entry{}
		n.cookie = 2
	case fs.Regular:
		n.pages = map[uint64]*page{}
	}
	m.inodes[h.Ino] = n
	return n
}

// drop frees an inode nothing names any more.
func (m *Model) drop(n *inode) {
	m.pages -= uint64(len(n.pages))
	delete(m.inodes, n.attr.Ino)
	m.free = append(m.free, n.attr.Ino)
}

func (m *Model) get(h fs.Handle) (*inode, error) {
	n := m.inodes[h.Ino]
	if n == nil || n.attr.Gen != h.Gen {
		return nil, fs.ErrStale
	}
	return n, nil
}

// dir is get for a directory, with its attributes for the WCC data.
func (m *Model) dir(h fs.Handle) (*inode, *fs.Attr, error) {
	d, err := m.get(h)
	if err != nil {
		return nil, nil, err
	}
	if d.attr.Type != fs.Directory {
		return d, d.snap(), fs.ErrNotDir
	}
	return d, d.snap(), nil
}

func (n *inode) handle() fs.Handle { return fs.Handle{Ino: n.attr.Ino, Gen: n.attr.Gen} }

// snap is a copy of the attributes as they are now.
func (n *inode) snap() *fs.Attr {
	a := n.attr
	switch a.Type {
	case fs.Directory:
		a.Size = fs.BlockSize
		a.Used = fs.BlockSize
	case fs.Regular:
		a.Used = uint64(len(n.pages)) * fs.BlockSize
	case fs.Symlink:
		a.Size = uint64(len(n.target))
		a.Used = fs.BlockSize
	}
	return &a
}

// Waiting returns how many blocks of a file a server may still have to free, at most: after a cut
// it does so in its own time, and until then they may count in Used. Of an inode that is not there it
// knows nothing.
func (m *Model) Waiting(ino uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.inodes[ino]; n != nil {
		return n.gone
	}
	return fs.MaxSize / fs.BlockSize
}

// wcc pairs attributes taken before with those of now. n may be nil.
func (n *inode) wcc(before *fs.Attr) fs.WCC {
	if n == nil {
		return fs.WCC{}
	}
	return fs.WCC{Before: before, After: n.snap()}
}

// add enters name in directory n at the end of its listing.
func (n *inode) add(name string, node *inode) {
	n.cookie++
	e := &entry{name: name, node: node, cookie: n.cookie}
	n.names[name] = e
	n.list = append(n.list, e)
}

// remove takes name out of directory n.
func (n *inode) remove(name string) {
	e := n.names[name]
	delete(n.names, name)
	i := sort.Search(len(n.list), func(i int) bool { return n.list[i].cookie >= e.cookie })
	n.list = append(n.list[:i], n.list[i+1:]...)
}

// Stamp is the time of a change made at now to a file whose ctime is was: later than that.
func Stamp(now, was fs.Time) fs.Time {
	switch {
	case now.Sec > was.Sec || now.Sec == was.Sec && now.Nsec > was.Nsec:
		return now
	case was.Nsec < 999_999_999:
		return fs.Time{Sec: was.Sec, Nsec: was.Nsec + 1}
	case was.Sec < math.MaxUint64:
		return fs.Time{Sec: was.Sec + 1}
	}
	return was
}

func (m *Model) stamp(n *inode, now fs.Time) fs.Time {
	return m.opt.Stamp(n.handle(), now, n.attr.Ctime)
}

// changed stamps n, of which more than the attributes was changed.
func (m *Model) changed(n *inode, now fs.Time) {
	t := m.stamp(n, now)
	n.attr.Mtime, n.attr.Ctime = t, t
}

// Root implements fs.FileSystem.
func (m *Model) Root() fs.Handle { return m.root.handle() }

// Verifier implements fs.FileSystem.
func (m *Model) Verifier() uint64 { return m.opt.Verifier }

// Getattr implements fs.FileSystem.
func (m *Model) Getattr(h fs.Handle) (fs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return fs.Attr{}, err
	}
	return *n.snap(), nil
}

// Fsstat implements fs.FileSystem.
func (m *Model) Fsstat(h fs.Handle) (fs.Stat, *fs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return fs.Stat{}, nil, err
	}
	return fs.Stat{
		TotalBytes: m.opt.Capacity, FreeBytes: m.opt.Capacity - m.pages*fs.BlockSize,
		TotalFiles: m.opt.MaxFiles, FreeFiles: m.opt.MaxFiles - uint64(len(m.inodes)),
	}, n.snap(), nil
}

// Fsinfo implements fs.FileSystem.
func (m *Model) Fsinfo(h fs.Handle) (fs.Info, *fs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return fs.Info{}, nil, err
	}
	return fs.Info{
		RtMax: fs.MaxIO, RtPref: fs.MaxIO, RtMult: fs.BlockSize, WtMax: fs.MaxIO, WtPref: fs.MaxIO, WtMult: fs.BlockSize,
		DtPref: fs.MaxListing, MaxFileSize: fs.MaxSize, TimeDelta: fs.Time{Nsec: 1},
		Properties: fs.PropLink | fs.PropSymlink | fs.PropHomogeneous | fs.PropCanSetTime,
	}, n.snap(), nil
}

// Pathconf implements fs.FileSystem.
func (m *Model) Pathconf(h fs.Handle) (fs.Pathconf, *fs.Attr, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return fs.Pathconf{}, nil, err
	}
	limits := fs.Pathconf{
		LinkMax: fs.MaxLinks, NameMax: fs.MaxName, NoTrunc: true, ChownRestricted: true, CasePreserving: true,
	}
	return limits, n.snap(), nil
}

// Commit implements fs.FileSystem. Memory is as stable as it gets.
func (m *Model) Commit(h fs.Handle, off uint64, count uint32) (fs.WCC, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.get(h)
	if err != nil {
		return fs.WCC{}, err
	}
	if n.attr.Type != fs.Regular {
		return fs.WCC{}, fs.ErrInval
	}
	return n.wcc(n.snap()), nil
}
