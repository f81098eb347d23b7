package disk

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity is what tells one file from all others.
type identity struct{ dev, ino uint64 }

// status is what Check looks at.
type status struct {
	id    identity
	nlink uint64
	size  uint64 // bytes; of a regular file only
}

func identify(conn syscall.RawConn) (identity, error) {
	st, err := statusOf(conn)
	return st.id, err
}

func statusOf(conn syscall.RawConn) (st status, err error) {
	err = withFD(conn, func(fd int) error {
		st, err = statusFD(fd)
		return err
	})
	return st, err
}

// Check looks whether the volume is still what was opened: the file has its name and its length, the device is there.
// If not, the error wraps ErrLost, and every write and barrier fails from then on. A server should call it once a
// second, and not more often: it takes locks of the file system that the volume lies on.
func (d *File) Check() error {
	if e := d.lost.Load(); e != nil {
		return e
	}
	var err error
	if d.device {
		err = d.checkDevice()
	} else {
		err = checkOpen(d.conn, d.needed.Load()*BlockSize)
		if err == nil {
			err = checkName(d.path, d.id)
		}
	}
	if err == nil || errors.Is(err, os.ErrClosed) {
		return err
	}
	d.lost.CompareAndSwap(nil, &Error{Op: "check", Path: d.path, Err: fmt.Errorf("%w: %w", ErrLost, err)})
	return d.lost.Load()
}

func (d *File) checkDevice() error {
	var size int64
	err := withFD(d.conn, func(fd int) (err error) {
		size, err = unix.Seek(fd, 0, io.SeekEnd)
		return err
	})
	if err != nil {
		return fmt.Errorf("the device: %w", err)
	}
	if uint64(size)/BlockSize < d.needed.Load() {
		return fmt.Errorf("the device is gone or was cut to %d bytes", size)
	}
	for _, b := range d.backing {
		if err := checkOpen(b.conn, b.size); err != nil {
			return fmt.Errorf("%s under it: %w", b.f.Name(), err)
		}
	}
	return nil
}

// checkOpen looks at an open file that was size bytes long.
func checkOpen(conn syscall.RawConn, size uint64) error {
	st, err := statusOf(conn)
	switch {
	case err == unix.ENOMEM || err == unix.EINTR: // says nothing
		return nil
	case err == os.ErrClosed:
		return err
	case err != nil:
		return fmt.Errorf("the open file: %w", err)
	case st.nlink == 0:
		return errors.New("the file has been deleted")
	case st.size < size:
		return fmt.Errorf("the file has been cut to %d bytes", st.size)
	}
	return nil
}

// checkName looks whether path still names the file.
func checkName(path string, id identity) error {
	st, err := statusPath(path)
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP:
		return errors.New("the file has been renamed or deleted")
	case err != nil: // may not be looked at any more, which says nothing
		return nil
	case st.id != id:
		return errors.New("another file has taken its name")
	}
	return nil
}
