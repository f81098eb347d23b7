//go:build linux || darwin

package mount

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
)

// With Options.Locks the kernel asks here for the locks of fcntl and flock, which it else has itself. Who has them is
// decided elsewhere (Locks), where others may want them, too.
//
// The kernel names an owner by a number: for fcntl that of a process, for flock that of an open file. A process loses
// its locks of a file when it closes the file, by whatever descriptor (FLUSH, which names the owner); an open file when
// its last descriptor is closed (RELEASE, which names the open file). Owners of both kinds are apart: flock and fcntl
// exclude each other, as they do on NFS.

// Locks are locks of bytes of files, of which a mount is one of several users. An owner is a name that the mount chose.
// Errors are of type syscall.Errno. The methods may be called concurrently.
type Locks interface {
	// Test tells whether owner could have the bytes first to last, and if not what is in the way: by is its owner, or ""
	// if that is none of the mount's. Until it is known who has what, it waits as Lock does.
	Test(h fs.Handle, owner string, first, last uint64, exclusive bool, cancel <-chan struct{}) (
		free bool, by string, from, to uint64, byExclusive bool, err error)
	// Lock gives owner the lock, or waits for it until cancel is closed (EINTR), unless that is nil (EAGAIN).
	Lock(h fs.Handle, owner string, first, last uint64, exclusive bool, cancel <-chan struct{}) error
	// Unlock gives bytes back, and UnlockAll all of a file.
	Unlock(h fs.Handle, owner string, first, last uint64) error
	UnlockAll(h fs.Handle, owner string)
	// End gives all back: the mount has gone.
	End()
}

// locking is what a mount knows of locks.
type locking struct {
	table Locks
	ready chan struct{} // closed when table is there

	mu    sync.Mutex
	opens uint64 // how many files were opened: the numbers of open files
	files map[uint64]map[uint64]*lockOwner
}

// lockOwner is an owner that may have locks of a file.
type lockOwner struct {
	pid uint32          // of who locked last
	via map[uint64]bool // by which open files
}

func newLocking() *locking {
	return &locking{ready: make(chan struct{}), files: map[uint64]map[uint64]*lockOwner{}}
}

// UseLocks says where the locks are. It is called once, of a mount that was made with Options.Locks; who wants a lock
// before waits for it.
func (m *Mount) UseLocks(l Locks) {
	m.files.locks.table = l
	close(m.files.locks.ready)
}

// end gives all locks back, if there are any.
func (l *locking) end() {
	select {
	case <-l.ready:
		l.table.End()
	default:
	}
}

// wait waits until the table is there.
func (l *locking) wait(cancel <-chan struct{}) error {
	select {
	case <-l.ready:
		return nil
	case <-cancel:
		return unix.EINTR
	}
}

// opened is the number of another open file.
func (l *locking) opened() uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opens++
	return l.opens
}

// has notes that an owner has locks of a file.
func (l *locking) has(node, owner, open uint64, pid uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files[node] == nil {
		l.files[node] = map[uint64]*lockOwner{}
	}
	o := l.files[node][owner]
	if o == nil {
		o = &lockOwner{via: map[uint64]bool{}}
		l.files[node][owner] = o
	}
	o.pid = pid
	o.via[open] = true
}

// closes notes that an owner has closed a file, and tells whether it may have locks of it.
func (l *locking) closes(node, owner uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files[node][owner] == nil {
		return false
	}
	l.forget(node, owner)
	return true
}

// released notes that an open file is there no more, and returns the owners that had locks by it alone.
func (l *locking) released(node, open uint64) (gone []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for owner, o := range l.files[node] {
		if delete(o.via, open); len(o.via) == 0 {
			gone = append(gone, owner)
			l.forget(node, owner)
		}
	}
	return gone
}

// forget forgets an owner of a file. The caller has mu.
func (l *locking) forget(node, owner uint64) {
	if delete(l.files[node], owner); len(l.files[node]) == 0 {
		delete(l.files, node)
	}
}

// pid is the process that an owner of a file is, or 0 for none that is known.
func (l *locking) pid(node uint64, name string) uint32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(name) != 8 {
		return 0
	}
	if o := l.files[node][binary.BigEndian.Uint64([]byte(name))]; o != nil {
		return o.pid
	}
	return 0
}

// ownerName is the name of an owner.
func ownerName(owner uint64) string { return string(binary.BigEndian.AppendUint64(nil, owner)) }

// lastByte is how the kernel says: to the end of any file.
const lastByte = math.MaxInt64

// lockSpan is which bytes the kernel means.
func lockSpan(l *fuse.FileLock) (first, last uint64) {
	if l.End == lastByte {
		return l.Start, math.MaxUint64
	}
	return l.Start, l.End
}

// lockStatus is the status for an error of Locks.
func lockStatus(err error) fuse.Status {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return fuse.Status(errno)
	}
	return status(err)
}

// lockable is the file and the name of the owner of a call for a lock.
func (f *fileSystem) lockable(cancel <-chan struct{}, in *fuse.LkIn) (h fs.Handle, owner string, err error) {
	if f.locks == nil {
		return h, "", unix.ENOSYS
	}
	if h, err = f.nodes.handle(in.NodeId); err != nil {
		return h, "", err
	}
	return h, ownerName(in.Owner), f.locks.wait(cancel)
}

// GetLk implements fuse.RawFileSystem: F_GETLK. It may wait, as SetLkw does.
func (f *fileSystem) GetLk(cancel <-chan struct{}, in *fuse.LkIn, out *fuse.LkOut) fuse.Status {
	h, owner, err := f.lockable(cancel, in)
	if err != nil {
		return lockStatus(err)
	}
	first, last := lockSpan(&in.Lk)
	free, by, from, to, exclusive, err := f.locks.table.Test(h, owner, first, last, in.Lk.Typ == unix.F_WRLCK, cancel)
	if err != nil {
		return lockStatus(err)
	}
	if free {
		out.Lk.Typ = unix.F_UNLCK
		return fuse.OK
	}
	out.Lk = fuse.FileLock{Start: min(from, lastByte), End: min(to, lastByte), Typ: unix.F_RDLCK}
	if exclusive {
		out.Lk.Typ = unix.F_WRLCK
	}
	out.Lk.Pid = f.locks.pid(in.NodeId, by)
	return fuse.OK
}

// SetLk implements fuse.RawFileSystem: F_SETLK, and flock with LOCK_NB.
func (f *fileSystem) SetLk(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return lockStatus(f.setLock(cancel, in, false))
}

// SetLkw implements fuse.RawFileSystem: F_SETLKW, and flock. It waits with nothing held. A signal ends that, and so
// does the end of the mount.
func (f *fileSystem) SetLkw(cancel <-chan struct{}, in *fuse.LkIn) fuse.Status {
	return lockStatus(f.setLock(cancel, in, true))
}

func (f *fileSystem) setLock(cancel <-chan struct{}, in *fuse.LkIn, wait bool) error {
	h, owner, err := f.lockable(cancel, in)
	if err != nil {
		return err
	}
	first, last := lockSpan(&in.Lk)
	table, exclusive := f.locks.table, in.Lk.Typ == unix.F_WRLCK
	if in.Lk.Typ == unix.F_UNLCK {
		return table.Unlock(h, owner, first, last)
	}
	err = table.Lock(h, owner, first, last, exclusive, nil)
	if err == unix.EAGAIN && in.LkFlags&fuse.LK_FLOCK != 0 {
		table.UnlockAll(h, owner) // flock gives it back, or two that share would wait for each other
	}
	if err == unix.EAGAIN && wait {
		err = table.Lock(h, owner, first, last, exclusive, cancel)
	}
	if err == nil {
		f.locks.has(in.NodeId, in.Owner, in.Fh, in.Lk.Pid)
	}
	return err
}

// flushLocks gives back what a process has of a file that it closes.
func (f *fileSystem) flushLocks(in *fuse.FlushIn) {
	if h, err := f.nodes.handle(in.NodeId); err == nil && f.locks.closes(in.NodeId, in.LockOwner) {
		f.locks.table.UnlockAll(h, ownerName(in.LockOwner))
	}
}

// releaseLocks gives back what is locked by an open file that nobody has any more.
func (f *fileSystem) releaseLocks(in *fuse.ReleaseIn) {
	h, err := f.nodes.handle(in.NodeId)
	if f.locks == nil || err != nil {
		return
	}
	for _, owner := range f.locks.released(in.NodeId, in.Fh) {
		f.locks.table.UnlockAll(h, ownerName(owner))
	}
}
