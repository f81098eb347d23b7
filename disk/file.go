package disk

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"tansy/internal/lockorder"
)

// File is a Disk in a regular file or on a raw block device. An open File holds an advisory lock on the file: an
// exclusive one, or a shared one if it is read-only. The kernel drops the lock when the process ends, in whatever way.
// An existing file is never truncated, and extended by Lengthen alone. A tail that is shorter than a block is ignored.
type File struct {
	path     string
	size     atomic.Uint64 // blocks; see Remeasure
	needed   atomic.Uint64 // of them, from the first on: what is behind may go (NewPrefix)
	readOnly bool
	device   bool     // not a regular file
	claim    *os.File // keeps others from mounting the device, until Unclaim; may be nil
	f        *os.File
	conn     syscall.RawConn // keeps the descriptor valid while a call uses it
	direct   *direct         // past the cache; may be nil
	id       identity        // of the file, for Check
	backing  []*backing      // the files under a loop device
	lost     atomic.Pointer[Error]
	room     *room // see lender
	roomOnce sync.Once
	thick    atomic.Bool // all its room is there, and stays

	// Held for reading by what changes the volume; Close keeps the lock for those that it does not find at an end.
	changing lockorder.RWMutex[lockorder.Changing]

	// A device that failed to flush may drop the data and report success the
	// next time; so the first failure is kept and returned for good.
	barrierMu  lockorder.Mutex[lockorder.FileBarrier]
	barrierErr error

	// The system calls; tests replace them.
	preadv  transferCall
	pwritev transferCall
	flush   func(fd int) error
	push    func(fd int, off, n int64, wait bool) error

	fallocate func(fd int, off, length int64) error
	punch     func(fd int, off, length int64) error
}

// FileOptions are options for OpenFile.
type FileOptions struct {
	// ReadOnly opens without the right to write and with a shared lock, so that
	// several readers, but no server, may have the volume at the same time.
	ReadOnly bool
	// Warn, if not nil, is told what could not be made sure but is no reason to fail.
	Warn func(error)
}

// maxIOV is the number of buffers that the kernel takes in one call (IOV_MAX).
const maxIOV = 1024

// OpenFile opens an existing image or block device, and locks it. Under a loop device, or what is made of one, the file
// is locked as well. A file is not opened for writing while a loop device is attached to it. The error wraps ErrLocked
// if another process or File has it, and fs.ErrNotExist if it is not there.
func OpenFile(path string, opts FileOptions) (*File, error) {
	// Looking first keeps us from waiting for the other end of a FIFO.
	st, err := os.Stat(path)
	if err != nil {
		return nil, &Error{Op: "open", Path: path, Err: cause(err)}
	}
	device, err := isDevice(st)
	if err != nil {
		return nil, &Error{Op: "open", Path: path, Err: err}
	}
	flags := os.O_RDWR
	var claim *os.File
	if opts.ReadOnly {
		flags = os.O_RDONLY
	} else if device {
		if claim, err = os.OpenFile(path, os.O_RDONLY|deviceFlags, 0); err != nil {
			return nil, &Error{Op: "open", Path: path, Err: busy(path, cause(err))}
		}
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		claim.Close()
		return nil, &Error{Op: "open", Path: path, Err: busy(path, cause(err))}
	}
	d, err := newFile(f, path, opts.ReadOnly)
	if err != nil {
		claim.Close()
		return nil, err
	}
	d.claim = claim
	op := "lock"
	if err = d.lockLoops(opts.Warn); err == nil {
		op, err = "open", d.settle()
	}
	if err != nil {
		d.Close()
		return nil, &Error{Op: op, Path: path, Err: err}
	}
	return d, nil
}

// settle makes what is read from now on be what the medium holds. A block whose write
// failed stays in the page cache as if it had been written, and who opens the file after
// somebody else was told of the failure hears nothing of it. A server that starts again
// must not take such a block for durable; nor must a reader show what a crash of the
// machine may take back. So what is in the cache is written, and then dropped. (What
// another process has mapped into its memory stays.)
func (d *File) settle() error {
	return withFD(d.conn, func(fd int) error {
		err := retry(func() error { return d.flush(fd) })
		if d.readOnly && (err == unix.EROFS || err == unix.EINVAL) {
			err = nil // nothing can have been written
		}
		if err != nil {
			return err
		}
		return retry(func() error { return dropCache(fd) })
	})
}

// CreateFile makes a new image of size bytes, a positive multiple of BlockSize, and opens it. All blocks read as zeros,
// and take no space yet. The file and its name are durable when it returns. The error wraps fs.ErrExist if the path is
// taken, and ErrLocked if RemoveAbandoned took the new file for an abandoned one. A failure leaves nothing behind.
func CreateFile(path string, size uint64) (_ *File, err error) {
	if size == 0 || size%BlockSize != 0 || size > math.MaxInt64 {
		return nil, &Error{Op: "create", Path: path,
			Err: fmt.Errorf("size of %d bytes is not a positive multiple of %d", size, BlockSize)}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, &Error{Op: "create", Path: path, Err: cause(err)}
	}
	d, err := newFile(f, path, false)
	if err == nil && !d.named() {
		f.Close()
		err = &Error{Op: "create", Path: path, Err: ErrLocked}
	}
	if err == nil {
		if err = growNew(f, path, size); err == nil {
			d.size.Store(size / BlockSize)
			d.needed.Store(d.Size())
			return d, nil
		}
		defer f.Close() // after the file is removed: who has the lock may
	}
	if !errors.Is(err, ErrLocked) { // else it is RemoveAbandoned that has it
		os.Remove(path)
	}
	return nil, err
}

// RemoveAbandoned removes an image that nobody has open, such as one whose maker was killed. The error wraps ErrLocked
// if somebody has it. Makers and removers of one path do not disturb each other, if makers rename or remove what they
// made before they close it.
func RemoveAbandoned(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return &Error{Op: "remove", Path: path, Err: cause(err)}
	}
	defer f.Close()
	d := &File{f: f, path: path}
	if d.conn, err = f.SyscallConn(); err == nil {
		err = d.lock()
	}
	if err == nil {
		err = d.measure()
	}
	switch {
	case err != nil:
	case d.device:
		err = errors.New("a device")
	case !d.named(): // what was opened has been renamed, or removed
		err = ErrLocked
	default:
		err = os.Remove(path)
	}
	if err != nil {
		return &Error{Op: "remove", Path: path, Err: cause(err)}
	}
	return nil
}

// named tells if the path of the image still leads to it.
func (d *File) named() bool {
	at, err := os.Lstat(d.path)
	if err != nil {
		return false
	}
	st, err := d.f.Stat()
	return err == nil && os.SameFile(at, st)
}

// growNew gives a new file its size and makes it and its name durable.
func growNew(f *os.File, path string, size uint64) error {
	err := f.Truncate(int64(size))
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return &Error{Op: "create", Path: path, Err: noRoom(cause(err))}
	}
	return nil
}

// Lengthen makes an image size bytes long, durably: a multiple of BlockSize, and no less than it has. It may be called
// beside all other methods, but not beside itself. The new blocks read as zeros, and take no space yet, but for those
// of a preallocated image: if the host has no room for these the error wraps ErrNoRoom, and the image is as long as it
// was. Size stays until Remeasure; those who open the image later find it longer.
func (d *File) Lengthen(size uint64) error {
	if e := d.lost.Load(); e != nil {
		return e
	}
	has, err := d.measured() // which may be more than Size
	if err == nil && (d.device || d.readOnly || size%BlockSize != 0 || size/BlockSize < has || size > math.MaxInt64) {
		err = ErrRange
	}
	if err == nil && d.lender() == nil && size/BlockSize > has {
		err = d.takeRoom(has, size/BlockSize)
	}
	if err == nil {
		err = d.f.Truncate(int64(size))
	}
	if err == nil {
		err = d.f.Sync()
	}
	if err != nil {
		return &Error{Op: "lengthen", Path: d.path, Err: noRoom(cause(err))}
	}
	return nil
}

// Rename gives an image a new name in the same directory, durably. It never
// replaces a file: the error wraps fs.ErrExist if to is taken.
func Rename(from, to string) error {
	err := renameNew(from, to)
	if err == nil {
		err = syncDir(filepath.Dir(to))
	}
	if err != nil {
		return &Error{Op: "rename", Path: to, Err: err}
	}
	return nil
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// newFile locks f and makes a File of it. It closes f on failure.
func newFile(f *os.File, path string, readOnly bool) (*File, error) {
	d := &File{path: path, readOnly: readOnly, f: f,
		preadv: unix.Preadv, pwritev: unix.Pwritev, flush: flushFD, push: push, fallocate: fallocate, punch: punch}
	op, err := "open", error(nil)
	if d.conn, err = f.SyscallConn(); err == nil {
		op, err = "lock", d.lock()
	}
	if err == nil {
		op, err = "open", d.measure()
	}
	if err != nil {
		f.Close()
		return nil, &Error{Op: op, Path: path, Err: cause(err)}
	}
	if !readOnly && !d.device { // what a device's node lies on says nothing about the device
		d.direct = newDirect(f)
	}
	return d, nil
}

func (d *File) lock() error { return lockFD(d.conn, d.readOnly) }

// lockFD takes the lock of a volume on an open file, without waiting.
func lockFD(conn syscall.RawConn, shared bool) error {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := withFD(conn, func(fd int) error {
		return retry(func() error { return unix.Flock(fd, how|unix.LOCK_NB) })
	})
	if err == unix.EWOULDBLOCK {
		id, _ := identify(conn)
		return lockedBy(id)
	}
	return err
}

// unlockFD gives up the lock of a volume.
func unlockFD(conn syscall.RawConn) {
	withFD(conn, func(fd int) error {
		return retry(func() error { return unix.Flock(fd, unix.LOCK_UN) })
	})
}

// isDevice tells block devices from regular files, and refuses all else.
func isDevice(st os.FileInfo) (bool, error) {
	switch m := st.Mode(); {
	case m.IsRegular():
		return false, nil
	case m&os.ModeDevice != 0 && m&os.ModeCharDevice == 0:
		return true, nil
	default:
		return false, errors.New("neither a regular file nor a block device")
	}
}

// measure finds out what the open file is, and its size.
func (d *File) measure() error {
	st, err := d.f.Stat()
	if err != nil {
		return err
	}
	if d.device, err = isDevice(st); err != nil {
		return err
	}
	size, err := d.measured()
	d.size.Store(size)
	d.needed.Store(size)
	if err == nil {
		d.id, err = identify(d.conn)
	}
	return err
}

// measured is the number of blocks that the file or device has now.
func (d *File) measured() (uint64, error) {
	if d.device {
		bytes, err := deviceSize(d.f)
		return bytes / BlockSize, err
	}
	st, err := d.f.Stat()
	if err != nil {
		return 0, err
	}
	return uint64(st.Size()) / BlockSize, nil
}

// ReadAt implements Disk.
func (d *File) ReadAt(a uint64, bufs [][]byte) error {
	return d.transfer("read", d.conn, d.preadv, a, bufs)
}

// WriteAt implements Disk.
func (d *File) WriteAt(a uint64, bufs [][]byte) error {
	if d.readOnly {
		return &Error{Op: "write", Path: d.path, Block: a, Err: ErrReadOnly}
	}
	if e := d.lost.Load(); e != nil {
		return &Error{Op: "write", Path: d.path, Block: a, Err: e.Err}
	}
	d.changing.RLock()
	defer d.changing.RUnlock()
	if ok, err := d.writeDirect(a, bufs); ok {
		return err
	}
	return d.transfer("write", d.conn, d.pwritev, a, bufs)
}

// A transferCall is preadv(2) or pwritev(2) of a file, or what stands for them.
type transferCall func(fd int, bufs [][]byte, off int64) (int, error)

// transfer moves all of bufs with call, which may move less than asked for or
// be interrupted.
func (d *File) transfer(op string, conn syscall.RawConn, call transferCall, a uint64, bufs [][]byte) error {
	if err := CheckTransfer(op, d.path, d.Size(), a, bufs); err != nil {
		return err
	}
	off := int64(a) * BlockSize
	err := withFD(conn, func(fd int) error {
		done := 0 // bytes of bufs[0] already moved
		for len(bufs) > 0 {
			batch := bufs[:min(len(bufs), maxIOV)]
			if done > 0 { // the caller's slice is not ours to change
				batch = append([][]byte{bufs[0][done:]}, batch[1:]...)
			}
			n, err := call(fd, batch, off)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				return err
			}
			if n <= 0 { // somebody cut the file short, or the device shrank
				return io.ErrUnexpectedEOF
			}
			off += int64(n)
			done += n
			bufs = bufs[done/BlockSize:]
			done %= BlockSize
		}
		return nil
	})
	if err != nil {
		return &Error{Op: op, Path: d.path, Block: uint64(off / BlockSize), Err: noRoom(err)}
	}
	return nil
}

// Barrier implements Disk with fdatasync. A failed Barrier is final: all later
// ones return its error.
func (d *File) Barrier() error {
	if d.readOnly {
		return &Error{Op: "barrier", Path: d.path, Err: ErrReadOnly}
	}
	if err := d.failed(nil); err != nil {
		return err
	}
	// Barriers may run side by side: one that started before another failed
	// must not report success either, hence the second look.
	err := withFD(d.conn, func(fd int) error {
		if err := retry(func() error { return d.flush(fd) }); err != nil {
			return err
		}
		return d.whole(fd)
	})
	if e := d.lost.Load(); e != nil {
		err = e.Err
	}
	if err != nil {
		return d.failed(&Error{Op: "barrier", Path: d.path, Err: noRoom(err)})
	}
	if r := d.lender(); r != nil {
		r.flushed()
	}
	return d.failed(nil)
}

// whole fails if somebody has cut the file short: a write behind its new end makes it
// longer again, and the blocks between read as zeros without an error.
func (d *File) whole(fd int) error {
	if d.device {
		return nil
	}
	// Not fstat: a file whose time stamps somebody has seen gets new ones with each
	// write that follows, and its inode is written again (Linux, multigrain time stamps).
	size, err := unix.Seek(fd, 0, io.SeekEnd)
	if err != nil {
		return err
	}
	if uint64(size)/BlockSize < d.needed.Load() {
		return fmt.Errorf("the file has been cut to %d bytes: %w", size, io.ErrUnexpectedEOF)
	}
	return nil
}

// failed records err if it is the first failure of a barrier, and returns the first.
func (d *File) failed(err error) error {
	d.barrierMu.Lock()
	defer d.barrierMu.Unlock()
	if d.barrierErr == nil {
		d.barrierErr = err
	}
	return d.barrierErr
}

// Forget implements Forgetter. On failure it does nothing.
func (d *File) Forget(a, n uint64) {
	_ = withFD(d.conn, func(fd int) error { return forget(fd, int64(a)*BlockSize, int64(n)*BlockSize) })
}

// Push implements Pusher. The system tells only once of a write that failed, here or at a barrier. So the error is kept
// for the barriers to come.
func (d *File) Push(a, n uint64, wait bool) {
	err := withFD(d.conn, func(fd int) error {
		return retry(func() error { return d.push(fd, int64(a)*BlockSize, int64(n)*BlockSize, wait) })
	})
	if err != nil {
		_ = d.failed(&Error{Op: "write", Path: d.path, Block: a, Err: noRoom(err)})
	}
}

// NextData implements Holes, by what the file system under the image says. A device, or a file system that does not
// say, counts as full of data.
func (d *File) NextData(a uint64) (uint64, error) {
	size := d.Size()
	if a >= size {
		return size, nil
	}
	var off int64
	err := withFD(d.conn, func(fd int) error {
		return retry(func() (err error) {
			off, err = unix.Seek(fd, int64(a)*BlockSize, unix.SEEK_DATA)
			return err
		})
	})
	switch {
	case err == unix.ENXIO && !d.device:
		return size, nil
	case err == os.ErrClosed:
		return 0, &Error{Op: "read", Path: d.path, Block: a, Err: err}
	case err != nil:
		return a, nil
	}
	return min(max(a, uint64(off)/BlockSize), size), nil // data may begin within a block
}

// Size implements Disk.
func (d *File) Size() uint64 { return d.size.Load() }

// Stat is what the system says of the file or device that is open, which its path may not lead to any more.
func (d *File) Stat() (os.FileInfo, error) {
	st, err := d.f.Stat()
	if err != nil {
		return nil, &Error{Op: "look at", Path: d.path, Err: cause(err)}
	}
	return st, nil
}

// Path is the path the File was opened with.
func (d *File) Path() string { return d.path }

// Close drops the lock and closes the file.
func (d *File) Close() error {
	d.direct.close()
	// A process that is just being started has a copy of every descriptor, and with it of the lock, until it becomes
	// another program; so to close the file is not enough. If a write is on its way yet, the lock goes when it ends.
	idle := d.changing.TryLock()
	if idle {
		defer d.changing.Unlock()
		unlockFD(d.conn)
	}
	for _, b := range d.backing {
		defer b.f.Close() // after the device
		if idle {
			unlockFD(b.conn)
		}
	}
	d.claim.Close() // which may be closed, or nil
	if err := d.f.Close(); err != nil {
		return &Error{Op: "close", Path: d.path, Err: cause(err)}
	}
	return nil
}

// Unclaim lets others mount the block device, as the caller is about to do: the File claims it from the kernel until
// then. The lock, which other servers heed, stays.
func (d *File) Unclaim() error {
	if !d.device {
		return &Error{Op: "unclaim", Path: d.path, Err: errors.New("no block device")}
	}
	d.claim.Close()
	return nil
}

// Unclaim calls Unclaim of d, or of the Disk that d wraps (Unwrap), if that is a File.
func Unclaim(d Disk) error {
	if x, ok := within[interface{ Unclaim() error }](d); ok {
		return x.Unclaim()
	}
	return &Error{Op: "unclaim", Err: errors.New("no block device of this machine")}
}

// withFD runs do with the descriptor, which cannot be closed and given to
// another file meanwhile.
func withFD(conn syscall.RawConn, do func(fd int) error) error {
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = do(int(fd)) }); err != nil {
		return os.ErrClosed // the only way to fail
	}
	return inner
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// cause strips the operation and path that *Error names itself.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
