//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Random operations on a tree that all processes change at the same time.
// Nobody knows what is there, so an operation may succeed or fail, but only
// with an error that some order of the others' operations explains.

type sharer struct {
	*worker
	rnd *rand.Rand // apart from the worker's, whose choices must not depend on others
	top string
}

func newSharer(w *worker, top string) *sharer {
	return &sharer{worker: w, rnd: rand.New(rand.NewPCG(w.seed, uint64(2*w.number+1))), top: top}
}

// missing is what every operation on a path may meet when others remove,
// replace and move what is on it. ESTALE is the kernel's answer if that happens
// twice between its looking a name up and using it.
var missing = []unix.Errno{0, unix.ENOENT, unix.ENOTDIR, unix.ESTALE}

// path chooses a path of up to three names.
func (s *sharer) path() string {
	p := s.top
	for {
		p = filepath.Join(p, string(rune('a'+s.rnd.IntN(6))))
		if s.rnd.IntN(2) == 0 || len(p) > len(s.top)+5 {
			return p
		}
	}
}

// allow checks that an error is one of those named or of the usual ones.
func allow(what string, err error, also ...unix.Errno) error {
	var e unix.Errno
	if err != nil && !errors.As(err, &e) {
		return fmt.Errorf("%s: %w", what, err)
	}
	if slices.Contains(missing, e) || slices.Contains(also, e) {
		return nil
	}
	return fmt.Errorf("%s, in the shared tree: unexpected %s", what, errnoName(e))
}

func (s *sharer) step() error {
	p, q := s.path(), s.path()
	show := func(p string) string { return p[len(s.top):] }
	switch r := s.rnd.IntN(100); {
	case r < 15:
		what := s.note("shared: create %s", show(p))
		flags := unix.O_RDWR | unix.O_CREAT | unix.O_NOFOLLOW | unix.O_CLOEXEC
		if r < 7 {
			flags |= unix.O_EXCL
		}
		return s.write(what, p, flags)
	case r < 22:
		what := s.note("shared: write %s", show(p))
		return s.write(what, p, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	case r < 34:
		what := s.note("shared: mkdir %s", show(p))
		return allow(what, unix.Mkdir(p, 0o755), unix.EEXIST)
	case r < 41:
		what := s.note("shared: rmdir %s", show(p))
		return allow(what, unix.Rmdir(p), unix.ENOTEMPTY, unix.EBUSY)
	case r < 51:
		what := s.note("shared: unlink %s", show(p))
		return allow(what, unix.Unlink(p), unix.EISDIR, unix.EBUSY)
	case r < 66:
		what := s.note("shared: rename %s to %s", show(p), show(q))
		return allow(what, unix.Rename(p, q), unix.EEXIST, unix.ENOTEMPTY, unix.EISDIR, unix.EINVAL, unix.EBUSY)
	case r < 74:
		what := s.note("shared: link %s to %s", show(p), show(q))
		return allow(what, unix.Link(p, q), unix.EEXIST, unix.EPERM)
	case r < 79:
		what := s.note("shared: symlink %s", show(p))
		return allow(what, unix.Symlink("nowhere", p), unix.EEXIST)
	case r < 81:
		return s.attribute(p, show(p))
	case r < 83:
		what := s.note("shared: chmod %s", show(p))
		return allow(what, unix.Chmod(p, 0o600|uint32(s.rnd.IntN(64))))
	case r < 86:
		what := s.note("shared: truncate %s", show(p))
		return allow(what, unix.Truncate(p, int64(s.rnd.IntN(recordSlots)*recordSize)), unix.EISDIR, unix.EINVAL)
	case r < 92:
		what := s.note("shared: lstat %s", show(p))
		var st unix.Stat_t
		if err := unix.Lstat(p, &st); err != nil {
			return allow(what, err)
		}
		return nil
	case r < 96:
		what := s.note("shared: readdir %s", show(filepath.Dir(p)))
		names, err := list(filepath.Dir(p))
		if err != nil {
			return allow(what, err)
		}
		// a directory with so few names comes in one piece, so no name may be there twice
		for i := 1; i < len(names); i++ {
			if names[i] == names[i-1] {
				return fmt.Errorf("%s lists %q twice", what, names[i])
			}
		}
		return nil
	default:
		what := s.note("shared: read %s", show(p))
		return allow(what, checkRecords(p), unix.EISDIR, unix.ELOOP, unix.EINVAL)
	}
}

// attribute sets an extended attribute, takes it away, or lists them, where the file system and the kind of file have
// any.
func (s *sharer) attribute(p, shown string) error {
	const name = "user.exercise"
	errs := []unix.Errno{unix.EOPNOTSUPP, unix.EPERM, unix.ENODATA, unix.ENOSPC}
	switch s.rnd.IntN(3) {
	case 0:
		what := s.note("shared: setxattr %s", shown)
		return allow(what, unix.Lsetxattr(p, name, make([]byte, s.rnd.IntN(200)), 0), errs...)
	case 1:
		what := s.note("shared: removexattr %s", shown)
		return allow(what, unix.Lremovexattr(p, name), errs...)
	}
	what := s.note("shared: listxattr %s", shown)
	_, err := unix.Llistxattr(p, make([]byte, 4096))
	return allow(what, err, errs...)
}

// A file in the shared tree holds records: the number of a process and of its
// operation, and a checksum.
const (
	recordSize  = 64
	recordSlots = 300 // more than a few pages
)

// write opens a file and writes a record.
func (s *sharer) write(what, path string, flags int) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Open(path, flags, 0o644)
	if err != nil {
		return allow(what, err, unix.EEXIST, unix.EISDIR, unix.ELOOP)
	}
	var b [recordSize]byte
	for i := 0; i < recordSize-4; i += 8 {
		binary.LittleEndian.PutUint64(b[i:], uint64(s.number)<<32|uint64(s.done))
	}
	binary.LittleEndian.PutUint32(b[recordSize-4:], crc32.ChecksumIEEE(b[:recordSize-4]))
	err = writeAll(fd, b[:], int64(s.rnd.IntN(recordSlots)*recordSize))
	if e := unix.Close(fd); err == nil {
		err = e
	}
	return allow(what, err)
}

// checkRecords reads a file and finds only whole records and holes.
func checkRecords(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	b := make([]byte, recordSize*recordSlots+1)
	n, err := readAll(fd, b, 0)
	if err != nil {
		return &os.PathError{Op: "read", Path: path, Err: err}
	}
	if n%recordSize != 0 {
		return fmt.Errorf("%s has %d bytes", path, n)
	}
	for i := 0; i < n; i += recordSize {
		r := b[i : i+recordSize]
		sum := binary.LittleEndian.Uint32(r[recordSize-4:])
		if sum != crc32.ChecksumIEEE(r[:recordSize-4]) && r[0]|r[recordSize-1] != 0 {
			return fmt.Errorf("%s holds a broken record at %d: %x", path, i, r)
		}
	}
	return nil
}
