package linear

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"tansy/fs"
)

// errnosHere are the errors that mean the same as one of NFS under another number.
var errnosHere = map[unix.Errno]fs.Errno{
	unix.ENAMETOOLONG: fs.ErrNameTooLong, unix.ENOTEMPTY: fs.ErrNotEmpty, unix.ESTALE: fs.ErrStale,
	// There is no server any more.
	unix.ENOTCONN: fs.ErrIO, unix.ECONNABORTED: fs.ErrIO, unix.ECANCELED: fs.ErrIO, unix.ENODEV: fs.ErrIO,
}

func errnoOf(err error) error {
	e, ok := err.(unix.Errno)
	if !ok {
		return err
	}
	if x, ok := errnosHere[e]; ok {
		return x
	}
	return fs.Errno(e)
}

// mounted is a history's directory on a mount: what its clients have open. Every file is open once, so that its inode
// has no other file meanwhile.
//
// Files are open with O_DIRECT. In its cache the kernel shows what is being written byte for byte, and before the size,
// and zeros while a file is cut, on any file system: a read there is no one step.
type mounted struct {
	top string

	mu    sync.Mutex
	fds   map[uint64]int // by inode
	files []uint64       // the inodes of regular files, the oldest first
	dirs  []uint64       // those of directories, the top first; they are never removed
}

// retry makes a call again that a signal has interrupted before it did anything.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func (m *mounted) fd(ino uint64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fds[ino]
}

// keep has a file stay open, by its inode, and tells that.
func (m *mounted) keep(fd int, dir bool) (uint64, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		unix.Close(fd)
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, open := m.fds[st.Ino]; open {
		unix.Close(fd)
		return st.Ino, nil
	}
	m.fds[st.Ino] = fd
	if dir {
		m.dirs = append(m.dirs, st.Ino)
	} else {
		m.files = append(m.files, st.Ino)
	}
	return st.Ino, nil
}

// openDirs opens the directories of the history.
func (m *mounted) openDirs() error {
	m.fds = map[uint64]int{}
	m.files, m.dirs = nil, nil
	for _, p := range []string{m.top, filepath.Join(m.top, "sub")} {
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT && len(m.dirs) > 0 { // not yet
			return nil
		}
		if err == nil {
			_, err = m.keep(fd, true)
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", p, err)
		}
	}
	return nil
}

// closeAll closes what is open.
func (m *mounted) closeAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, fd := range m.fds {
		unix.Close(fd)
	}
	m.fds = nil
}

// do makes a call.
func (m *mounted) do(c *call) (r reply) {
	at := m.fd(c.h.Ino)
	err := retry(func() error { return m.once(c, &r, at) })
	r.err = errnoOf(err)
	if err == nil {
		r.err = nil
	}
	r.lost = r.err == fs.ErrIO || r.err == fs.ErrROFS || r.err == fs.ErrServerFault
	return r
}

func (m *mounted) once(c *call, r *reply, at int) (err error) {
	switch c.proc {
	case sysOpen, sysCreate:
		return m.open(c, r, at)
	case sysMkdir:
		return unix.Mkdirat(at, c.name, *c.set.Mode)
	case sysSymlink:
		return unix.Symlinkat(c.target, at, c.name)
	case sysSocket:
		return unix.Mknodat(at, c.name, unix.S_IFSOCK|*c.set.Mode, 0)
	case sysUnlink:
		return unix.Unlinkat(at, c.name, 0)
	case sysRmdir:
		return unix.Unlinkat(at, c.name, unix.AT_REMOVEDIR)
	case sysRename:
		flags := uint(0)
		if c.how == fs.Guarded {
			flags = unix.RENAME_NOREPLACE
		}
		return unix.Renameat2(at, c.name, m.fd(c.h2.Ino), c.name2, flags)
	case sysLink:
		return unix.Linkat(at, "", m.fd(c.h2.Ino), c.name, unix.AT_EMPTY_PATH)
	case sysList:
		r.list, err = list(at)
		return err
	case sysReadlink:
		b := make([]byte, 4096)
		n, err := unix.Readlinkat(at, c.name, b)
		r.data = string(b[:max(n, 0)])
		return err
	case sysStat:
		r.attr, err = status(at)
		return err
	case sysRead:
		b := make([]byte, c.count)
		n, err := unix.Pread(at, b, int64(c.off))
		r.data = string(b[:max(n, 0)])
		return err
	case sysWrite:
		n, err := unix.Pwrite(at, []byte(c.data), int64(c.off))
		r.n = uint32(max(n, 0))
		return err
	case sysTruncate:
		return unix.Ftruncate(at, int64(*c.set.Size))
	case sysMode:
		return unix.Fchmod(at, *c.set.Mode)
	case sysTimes:
		return m.times(c, at)
	case sysSync:
		return unix.Fsync(at)
	}
	panic("no such call")
}

func (m *mounted) open(c *call, r *reply, at int) error {
	flags := unix.O_RDWR | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_DIRECT
	if c.proc == sysCreate {
		flags |= unix.O_CREAT
	}
	if c.how == fs.Guarded {
		flags |= unix.O_EXCL
	}
	mode := uint32(0)
	if c.set.Mode != nil {
		mode = *c.set.Mode
	}
	fd, err := unix.Openat(at, c.name, flags, mode)
	if err == nil {
		r.node.Handle.Ino, err = m.keep(fd, false)
	}
	return err
}

// times sets the times of an open file: as the server's clock says, or the mtime alone.
func (m *mounted) times(c *call, at int) error {
	ts := [2]unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if c.set.MtimeHow == fs.ClientTime {
		ts[0].Nsec = unix.UTIME_OMIT
		ts[1] = unix.Timespec{Sec: int64(c.set.Mtime.Sec), Nsec: int64(c.set.Mtime.Nsec)}
	}
	_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(at), 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

var typesHere = map[uint32]fs.Type{unix.S_IFREG: fs.Regular, unix.S_IFDIR: fs.Directory, unix.S_IFLNK: fs.Symlink,
	unix.S_IFSOCK: fs.Socket}

// status is what the server says of an open file. The kernel may have something older: an answer that was on its way
// while a name of the file, or in the directory, was changed.
func status(fd int) (*fs.Attr, error) {
	var st unix.Statx_t
	how := unix.AT_EMPTY_PATH | unix.AT_STATX_FORCE_SYNC
	if err := unix.Statx(fd, "", how, unix.STATX_BASIC_STATS, &st); err != nil {
		return nil, err
	}
	at := func(t unix.StatxTimestamp) fs.Time { return fs.Time{Sec: uint64(t.Sec), Nsec: t.Nsec} }
	return &fs.Attr{Type: typesHere[uint32(st.Mode)&unix.S_IFMT], Mode: uint32(st.Mode) & 0o7777, Nlink: st.Nlink,
		UID: st.Uid, GID: st.Gid, Size: st.Size, Ino: st.Ino, Atime: at(st.Atime), Mtime: at(st.Mtime),
		Ctime: at(st.Ctime)}, nil
}

// list is a directory in one call, which all entries fit into.
func list(dir int) (all []fs.Entry, err error) {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	b := make([]byte, 32<<10)
	n, err := unix.Getdents(fd, b)
	if err != nil {
		return nil, err
	}
	for b = b[:n]; len(b) > 0; {
		size := binary.NativeEndian.Uint16(b[16:])
		name, _, _ := strings.Cut(string(b[19:size]), "\x00")
		e := fs.Entry{Ino: binary.NativeEndian.Uint64(b), Name: []byte(name), Cookie: uint64(len(all) + 1)}
		e.Attr = &fs.Attr{Type: typesHere[uint32(b[18])<<12]}
		all = append(all, e)
		b = b[size:]
	}
	return all, nil
}

// sysMixes are what histories are made of.
var sysMixes = [][]uint32{
	{
		sysOpen, sysOpen, sysOpen, sysCreate, sysCreate, sysCreate, sysMkdir, sysSymlink, sysSocket, sysUnlink, sysUnlink,
		sysRmdir, sysRename, sysRename, sysRename, sysLink, sysLink, sysList, sysList, sysReadlink, sysStat, sysStat, sysStat,
		sysRead, sysRead, sysWrite, sysWrite, sysWrite, sysTruncate, sysMode, sysTimes, sysSync, sysSync,
	},
	{
		sysWrite, sysWrite, sysWrite, sysWrite, sysWrite, sysRead, sysRead, sysRead, sysRead, sysStat, sysStat, sysTimes,
		sysMode, sysSync, sysSync,
	},
	{
		sysOpen, sysOpen, sysCreate, sysCreate, sysMkdir, sysMkdir, sysUnlink, sysUnlink, sysRmdir, sysRename, sysRename,
		sysRename, sysLink, sysLink, sysList, sysList, sysStat, sysStat, sysSync,
	},
}

// bytesMix is the mix that changes no names, of system calls as of NFS; of system calls, no sizes of files either.
const bytesMix = 1

// servedMix is that for a mount that is served, too.
var servedMix = append(slices.Clone(sysMixes[bytesMix]), sysTruncate, sysTruncate)

// choose makes up a call.
func (m *mounted) choose(r *rand.Rand, mix []uint32, tag int) *call {
	m.mu.Lock()
	defer m.mu.Unlock()
	dir := func() fs.Handle { return fs.Handle{Ino: pick(r, m.dirs...)} }
	file := func() fs.Handle { return fs.Handle{Ino: m.files[len(m.files)-1-r.IntN(min(len(m.files), 5))]} }
	nameHere := func() string {
		if r.IntN(60) == 0 {
			return strings.Repeat("n", 256)
		}
		return pick(r, "a", "b", "c", "d")
	}
	c := &call{proc: pick(r, mix...), name: nameHere(), h: dir()}
	if len(m.files) == 0 && c.proc >= sysStat {
		c.proc = sysStat
		return c
	}
	switch c.proc {
	case sysCreate:
		c.how, c.set.Mode = pick(r, fs.Guarded, fs.Unchecked), u32(pick(r, uint32(0o666), 0o640))
	case sysMkdir, sysSocket:
		c.set.Mode = u32(pick(r, uint32(0o777), 0o700))
	case sysSymlink:
		c.target = pick(r, "target", "a", strings.Repeat("t", 300))
	case sysRename:
		c.h2, c.name2, c.how = dir(), nameHere(), pick(r, fs.Unchecked, fs.Unchecked, fs.Guarded)
	case sysLink:
		if len(m.files) == 0 {
			c.proc = sysList
			break
		}
		c.h2, c.h = c.h, file()
	case sysStat, sysSync:
		if r.IntN(4) > 0 && len(m.files) > 0 {
			c.h = file()
		}
	case sysRead:
		c.h, c.off, c.count = file(), uint64(pick(r, 0, 0, 0, 10, 4090)), uint32(pick(r, 16<<10, 16<<10, 100))
	case sysWrite:
		c.h, c.off = file(), uint64(pick(r, 0, 0, 1, 10, 20, 4090, 5000))
		c.data = strings.Repeat(fmt.Sprintf("<%d>", tag), 1+r.IntN(5))
	case sysTruncate:
		c.h, c.set.Size = file(), u64(uint64(pick(r, 0, 1, 30, 4096, 6000)))
	case sysMode:
		c.h, c.set.Mode = file(), u32(pick(r, uint32(0o666), 0o600, 0o444))
	case sysTimes:
		c.h = file()
		if c.set.AtimeHow, c.set.MtimeHow = fs.ServerTime, fs.ServerTime; r.IntN(2) == 0 {
			c.set = fs.SetAttr{MtimeHow: fs.ClientTime, Mtime: fs.Time{Sec: 77, Nsec: uint32(r.IntN(1e9))}}
		}
	}
	return c
}

// call makes a call and records it. It tells if there was an answer.
func (h *history) call(client int, m *mounted, c *call) (*reply, bool) {
	h.open(c)
	r := m.do(c)
	return h.settle(client, c, &r)
}

// workHere makes n random calls on a mount, until one gets no answer.
func (h *history) workHere(client int, m *mounted, n int) {
	r := rand.New(rand.NewPCG(h.seed, uint64(client)))
	for i := range n {
		if _, ok := h.call(client, m, m.choose(r, h.mixHere, client*1000+i)); !ok {
			return
		}
	}
}

// auditHere looks at everything that is left on a mount.
func (h *history) auditHere(m *mounted) bool {
	for _, dir := range slices.Clone(m.dirs) {
		if _, ok := h.call(0, m, &call{proc: sysStat, h: fs.Handle{Ino: dir}}); !ok {
			return false
		}
		got, ok := h.call(0, m, &call{proc: sysList, h: fs.Handle{Ino: dir}})
		if !ok {
			return false
		}
		for _, e := range got.list {
			c := &call{proc: sysOpen, h: fs.Handle{Ino: dir}, name: string(e.Name)}
			switch e.Attr.Type {
			case fs.Symlink:
				c.proc = sysReadlink
			case fs.Directory:
				continue
			}
			got, ok := h.call(0, m, c)
			if ok && got.err == nil && e.Attr.Type == fs.Regular {
				file := got.node.Handle
				_, ok = h.call(0, m, &call{proc: sysStat, h: file})
				if ok {
					_, ok = h.call(0, m, &call{proc: sysRead, h: file, count: 16 << 10})
				}
			}
			if !ok {
				return false
			}
		}
	}
	return true
}
