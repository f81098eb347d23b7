//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// localOperations are words for what Linux has and NFSv3 has not.
var localOperations = map[string]operation{
	// dup H NEW: another descriptor of the open file
	"dup": {2, 2, func(r *runner, _ *actor, a []string) error {
		return r.keep(a[1])(unix.FcntlInt(uintptr(r.fd(a[0])), unix.F_DUPFD_CLOEXEC, 0))
	}},
	// reopen H NEW FLAGS: open the file of an open file, by /proc
	"reopen": {3, 3, func(r *runner, _ *actor, a []string) error {
		flags, err := openFlags(a[2])
		if err != nil {
			return err
		}
		return r.keep(a[1])(unix.Open(r.procPath(a[0]), flags|unix.O_CLOEXEC, 0))
	}},
	// linkh H NEW: give an open file a name
	"linkh": {2, 2, func(r *runner, _ *actor, a []string) error {
		return unix.Linkat(unix.AT_FDCWD, r.procPath(a[0]), unix.AT_FDCWD, a[1], unix.AT_SYMLINK_FOLLOW)
	}},
	// openat H DIR NAME FLAGS [MODE], DIR an open directory
	"openat": {4, 5, func(r *runner, _ *actor, a []string) error {
		flags, err := openFlags(a[3])
		if err != nil {
			return err
		}
		mode := uint32(0)
		if len(a) > 4 {
			mode = octal(a[4])
		}
		return r.keep(a[0])(unix.Openat(r.fd(a[1]), a[2], flags|unix.O_CLOEXEC, mode))
	}},
	// fchdir H: for the rest of the check
	"fchdir": {1, 1, func(r *runner, _ *actor, a []string) error { return unix.Fchdir(r.fd(a[0])) }},
	// names H NAME...: what an open directory has now
	"names": {1, -1, func(r *runner, _ *actor, a []string) error {
		return listIs(r.procPath(a[0]), a[1:])
	}},
	// evict H: write everything of the file, and have the kernel forget it
	"evict": {1, 1, func(r *runner, _ *actor, a []string) error {
		return errors.Join(unix.Fsync(r.fd(a[0])), unix.Fadvise(r.fd(a[0]), 0, 0, unix.FADV_DONTNEED))
	}},
	"fdatasync": {1, 1, func(r *runner, _ *actor, a []string) error { return unix.Fdatasync(r.fd(a[0])) }},
	"syncfs":    {1, 1, func(r *runner, _ *actor, a []string) error { return unix.Syncfs(r.fd(a[0])) }},
	// syncrange H OFFSET LENGTH
	"syncrange": {3, 3, func(r *runner, _ *actor, a []string) error {
		const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
		return unix.SyncFileRange(r.fd(a[0]), number(a[1]), number(a[2]), all)
	}},
	// fallocate H MODE OFFSET LENGTH
	"fallocate": {4, 4, func(r *runner, _ *actor, a []string) error {
		mode := map[string]uint32{
			"allocate": 0, "keep": unix.FALLOC_FL_KEEP_SIZE, "punch": unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE,
			"zero": unix.FALLOC_FL_ZERO_RANGE, "collapse": unix.FALLOC_FL_COLLAPSE_RANGE, "insert": unix.FALLOC_FL_INSERT_RANGE,
			"unshare": unix.FALLOC_FL_UNSHARE_RANGE,
		}[a[1]]
		return unix.Fallocate(r.fd(a[0]), mode, number(a[2]), number(a[3]))
	}},
	// copyrange FROM OFFSET TO OFFSET LENGTH COPIED
	"copyrange": {6, 6, func(r *runner, _ *actor, a []string) error {
		from, to := number(a[1]), number(a[3])
		n, err := unix.CopyFileRange(r.fd(a[0]), &from, r.fd(a[2]), &to, int(number(a[4])), 0)
		if err != nil {
			return err
		}
		return equal(a[5], strconv.Itoa(n))
	}},
	// clone FROM TO: a reflink
	"clone": {2, 2, func(r *runner, _ *actor, a []string) error {
		return unix.IoctlFileClone(r.fd(a[1]), r.fd(a[0]))
	}},
	"setxattr": {3, 3, func(_ *runner, _ *actor, a []string) error { return unix.Setxattr(a[0], a[1], []byte(a[2]), 0) }},
	// getxattr PATH NAME VALUE
	"getxattr": {3, 3, func(_ *runner, _ *actor, a []string) error {
		b := make([]byte, 1000)
		n, err := unix.Getxattr(a[0], a[1], b)
		if err != nil {
			return err
		}
		return equal(a[2], string(b[:n]))
	}},
	"removexattr": {2, 2, func(_ *runner, _ *actor, a []string) error { return unix.Removexattr(a[0], a[1]) }},
	// listxattr PATH NAME...: there are exactly these
	"listxattr": {1, -1, func(_ *runner, _ *actor, a []string) error {
		b := make([]byte, 1000)
		n, err := unix.Listxattr(a[0], b)
		if err != nil {
			return err
		}
		return equal(strings.Join(a[1:], " "), strings.TrimSpace(strings.ReplaceAll(string(b[:n]), "\x00", " ")))
	}},
	// bind H PATH: a socket that listens at PATH; connect H PATH: one that is connected to it; accept H NEW
	"bind": {2, 2, func(r *runner, _ *actor, a []string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: a[1]})
		if err == nil {
			err = unix.Listen(fd, 5)
		}
		return errors.Join(err, r.keep(a[0])(fd, nil))
	}},
	"connect": {2, 2, func(r *runner, _ *actor, a []string) error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return errors.Join(unix.Connect(fd, &unix.SockaddrUnix{Name: a[1]}), r.keep(a[0])(fd, nil))
	}},
	"accept": {2, 2, func(r *runner, _ *actor, a []string) error {
		fd, _, err := unix.Accept4(r.fd(a[0]), unix.SOCK_CLOEXEC)
		return r.keep(a[1])(fd, err)
	}},
	// room PATH: the file system's numbers are plausible, and names have 255 bytes
	"room": {1, 1, func(_ *runner, _ *actor, a []string) error {
		var st unix.Statfs_t
		if err := unix.Statfs(a[0], &st); err != nil {
			return err
		}
		if st.Namelen != 255 || st.Bsize < 512 || st.Bfree > st.Blocks || st.Bavail > st.Bfree || st.Blocks == 0 || st.Ffree > st.Files {
			return fmt.Errorf("%+v", st)
		}
		return nil
	}},
	// direct H OFFSET LENGTH: write and read back by O_DIRECT, from memory that is aligned
	"direct": {3, 3, func(r *runner, _ *actor, a []string) error {
		n := int(number(a[2]))
		m, err := unix.Mmap(-1, 0, max(n, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		defer unix.Munmap(m)
		want := []byte(strings.Repeat("direct..", n/8+1)[:n])
		copy(m, want)
		if w, err := unix.Pwrite(r.fd(a[0]), m[:n], number(a[1])); err != nil || w != n {
			return errors.Join(err, equal(strconv.Itoa(n), strconv.Itoa(w)))
		}
		clear(m)
		got, err := unix.Pread(r.fd(a[0]), m[:n], number(a[1]))
		if err != nil {
			return err
		}
		return equal(string(want), string(m[:got]))
	}},
}

// procPath leads to an open file of the thread that uses it.
func (r *runner) procPath(handle string) string {
	return fmt.Sprintf("/proc/thread-self/fd/%d", r.fd(handle))
}
