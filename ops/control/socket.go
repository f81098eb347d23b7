package control

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// listen makes a socket of that name in a folder, which nobody else may use.
func listen(dir, name string) (*socket, error) {
	if err := private(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, name)
	if answers(path) {
		return nil, fmt.Errorf("another server answers on %s", path)
	}
	// In a folder of its own nobody can open it before it has its mode; and what is moved replaces what is there.
	hidden, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(hidden)
	first := filepath.Join(hidden, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: first, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(first, 0o600), os.Rename(first, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	st, err := os.Lstat(path)
	if err == nil && !answers(path) { // its name is longer than the one that it was made with
		err = errors.Join(fmt.Errorf("no socket can be reached at %s: the name is too long", path), os.Remove(path))
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socket{l, path, st}, nil
}

// private makes a folder, if it is not there, and looks whether anybody else may write to it.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is no folder", dir)
	case int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0:
		return fmt.Errorf("%s is not this user's alone: others may put a socket there", dir)
	}
	return nil
}

// answers tells whether somebody listens on a socket, whom the caller may reach.
func answers(path string) bool {
	c, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

// socket is a listener, and the name that it has.
type socket struct {
	*net.UnixListener
	path string
	file os.FileInfo
}

// remove takes the name away, if it still is this socket's, and ends the listener.
func (s *socket) remove() {
	if st, err := os.Lstat(s.path); err == nil && os.SameFile(st, s.file) {
		os.Remove(s.path)
	}
	s.Close()
}
