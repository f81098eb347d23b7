//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// operation is a word of the scripts' language. It runs on the thread of a
// user, in the check's directory, and returns an errno, a mismatch, or nil.
type operation struct {
	least, most int // arguments; most is -1 if there is no limit
	do          func(r *runner, a *actor, args []string) error
}

// Where an operation takes a path, @H means the open file H.

var operations map[string]operation

func init() { // a variable would depend on itself through parse
	operations = map[string]operation{
		// open H PATH FLAGS [MODE]: as H, or closed at once if H is "-"
		"open": {3, 4, func(r *runner, _ *actor, a []string) error {
			flags, err := openFlags(a[2])
			if err != nil {
				return err
			}
			mode := uint32(0)
			if len(a) > 3 {
				mode = octal(a[3])
			}
			return r.keep(a[0])(unix.Open(a[1], flags|unix.O_CLOEXEC, mode))
		}},
		"creat": {2, 2, func(r *runner, _ *actor, a []string) error {
			return r.keep("-")(unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, octal(a[1])))
		}},
		// file PATH [MODE [DATA]]: make a file that is not there yet
		"file": {1, 3, func(r *runner, _ *actor, a []string) error {
			mode := uint32(0o644)
			if len(a) > 1 {
				mode = octal(a[1])
			}
			fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, mode)
			if err != nil {
				return err
			}
			if len(a) > 2 {
				err = writeAll(fd, a[2], -1)
			}
			return errors.Join(err, unix.Close(fd))
		}},
		"close": {1, 1, func(r *runner, _ *actor, a []string) error {
			fd, ok := r.handles[a[0]]
			if !ok {
				return fmt.Errorf("no file %s is open", a[0])
			}
			delete(r.handles, a[0])
			return unix.Close(fd)
		}},
		"write": {2, 2, func(r *runner, _ *actor, a []string) error { return writeAll(r.fd(a[0]), a[1], -1) }},
		// pwrite H OFFSET DATA
		"pwrite": {3, 3, func(r *runner, _ *actor, a []string) error { return writeAll(r.fd(a[0]), a[2], number(a[1])) }},
		// read H COUNT DATA: read that many bytes, expect DATA
		"read": {3, 3,
			func(r *runner, _ *actor, a []string) error { return readBack(r.fd(a[0]), int(number(a[1])), -1, a[2]) }},
		// pread H OFFSET COUNT DATA
		"pread": {4, 4, func(r *runner, _ *actor, a []string) error {
			return readBack(r.fd(a[0]), int(number(a[2])), number(a[1]), a[3])
		}},
		// seek H OFFSET set|cur|end|data|hole RESULT
		"seek": {4, 4, func(r *runner, _ *actor, a []string) error {
			whence := map[string]int{"set": unix.SEEK_SET, "cur": unix.SEEK_CUR, "end": unix.SEEK_END, "data": unix.SEEK_DATA,
				"hole": unix.SEEK_HOLE}[a[2]]
			at, err := unix.Seek(r.fd(a[0]), number(a[1]), whence)
			if err != nil {
				return err
			}
			return equal(a[3], strconv.FormatInt(at, 10))
		}},
		"fsync": {1, 1, func(r *runner, _ *actor, a []string) error { return unix.Fsync(r.fd(a[0])) }},
		// content PATH DATA: the whole file is DATA
		"content": {2, 2, func(_ *runner, _ *actor, a []string) error {
			fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return readBack(fd, len(a[1])+1000, -1, a[1])
		}},

		"mkdir":   {2, 2, func(_ *runner, _ *actor, a []string) error { return unix.Mkdir(a[0], octal(a[1])) }},
		"rmdir":   {1, 1, func(_ *runner, _ *actor, a []string) error { return unix.Rmdir(a[0]) }},
		"unlink":  {1, 1, func(_ *runner, _ *actor, a []string) error { return unix.Unlink(a[0]) }},
		"link":    {2, 2, func(_ *runner, _ *actor, a []string) error { return unix.Link(a[0], a[1]) }},
		"rename":  {2, 2, func(_ *runner, _ *actor, a []string) error { return unix.Rename(a[0], a[1]) }},
		"symlink": {2, 2, func(_ *runner, _ *actor, a []string) error { return unix.Symlink(a[0], a[1]) }},
		// linkf OLD NEW: link, following OLD if it is a symbolic link
		"linkf": {2, 2, func(_ *runner, _ *actor, a []string) error {
			return unix.Linkat(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.AT_SYMLINK_FOLLOW)
		}},
		// renamex OLD NEW noreplace|exchange|whiteout|both|neither: both leaves a whiteout and replaces nothing
		"renamex": {3, 3, func(_ *runner, _ *actor, a []string) error {
			flag := map[string]uint{
				"noreplace": unix.RENAME_NOREPLACE, "exchange": unix.RENAME_EXCHANGE, "whiteout": unix.RENAME_WHITEOUT,
				"both": unix.RENAME_NOREPLACE | unix.RENAME_WHITEOUT, "neither": unix.RENAME_EXCHANGE | unix.RENAME_WHITEOUT,
			}[a[2]]
			return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], flag)
		}},
		// readlink PATH TARGET
		"readlink": {2, 2, func(_ *runner, _ *actor, a []string) error {
			b := make([]byte, 8192)
			n, err := unix.Readlink(a[0], b)
			if err != nil {
				return err
			}
			return equal(a[1], string(b[:n]))
		}},
		"mkfifo": {2, 2, func(_ *runner, _ *actor, a []string) error { return unix.Mkfifo(a[0], octal(a[1])) }},
		// mknod PATH chr|blk|sock|fifo|file MODE [MAJOR MINOR]
		"mknod": {3, 5, func(_ *runner, _ *actor, a []string) error {
			kind, dev := typeBits[a[1]], uint64(0)
			if len(a) > 4 {
				dev = unix.Mkdev(uint32(number(a[3])), uint32(number(a[4])))
			}
			return unix.Mknod(a[0], kind|octal(a[2]), int(dev))
		}},

		"chmod": {2, 2, func(r *runner, _ *actor, a []string) error {
			if h, ok := strings.CutPrefix(a[0], "@"); ok {
				return unix.Fchmod(r.fd(h), octal(a[1]))
			}
			return unix.Chmod(a[0], octal(a[1]))
		}},
		// chown PATH USER GROUP, where "-" leaves one alone
		"chown": {3, 3, func(r *runner, _ *actor, a []string) error {
			if h, ok := strings.CutPrefix(a[0], "@"); ok {
				return unix.Fchown(r.fd(h), id(a[1]), id(a[2]))
			}
			return unix.Chown(a[0], id(a[1]), id(a[2]))
		}},
		"lchown": {3, 3, func(_ *runner, _ *actor, a []string) error { return unix.Lchown(a[0], id(a[1]), id(a[2])) }},
		"truncate": {2, 2, func(r *runner, _ *actor, a []string) error {
			if h, ok := strings.CutPrefix(a[0], "@"); ok {
				return unix.Ftruncate(r.fd(h), number(a[1]))
			}
			return unix.Truncate(a[0], number(a[1]))
		}},
		// utimens PATH ATIME MTIME, each SECONDS[.NANOSECONDS], now or omit
		"utimens":  {3, 3, func(r *runner, _ *actor, a []string) error { return setTimes(r, a, 0) }},
		"lutimens": {3, 3, func(r *runner, _ *actor, a []string) error { return setTimes(r, a, unix.AT_SYMLINK_NOFOLLOW) }},
		// access PATH [r][w][x], or f for existence
		"access": {2, 2, func(_ *runner, _ *actor, a []string) error {
			var want uint32
			for _, c := range a[1] {
				want |= map[rune]uint32{'r': unix.R_OK, 'w': unix.W_OK, 'x': unix.X_OK, 'f': 0}[c]
			}
			return unix.Access(a[0], want)
		}},
		// stat PATH [FIELD=VALUE...]
		"stat":  {1, -1, func(r *runner, _ *actor, a []string) error { return statIs(r, a, false) }},
		"lstat": {1, -1, func(r *runner, _ *actor, a []string) error { return statIs(r, a, true) }},
		"statfs": {1, 1, func(_ *runner, _ *actor, a []string) error {
			var st unix.Statfs_t
			return unix.Statfs(a[0], &st)
		}},
		// same PATH PATH: both are one file
		"same":   {2, 2, func(r *runner, _ *actor, a []string) error { return sameFile(r, a, true) }},
		"differ": {2, 2, func(r *runner, _ *actor, a []string) error { return sameFile(r, a, false) }},
		// list PATH NAME...: the directory has exactly these names, and . and ..
		"list": {1, -1, func(_ *runner, _ *actor, a []string) error { return listIs(a[0], a[1:]) }},
		// mark PATH: note the time stamps, and wait until the server's clock has moved on
		"mark": {1, 1, func(r *runner, _ *actor, a []string) error { return r.mark(a[0]) }},
		// moved PATH [STAMPS [MARK]]: compared with the mark, the stamps (letters of
		// "amc") are later and the others are not; "a?" leaves atime open
		"moved": {1, 3, func(r *runner, _ *actor, a []string) error { return r.moved(a) }},

		"umask": {1, 1, func(_ *runner, who *actor, a []string) error {
			unix.Umask(int(octal(a[0])))
			who.umask = true
			return nil
		}},
		// chdir PATH: for the rest of the check
		"chdir": {1, 1, func(_ *runner, _ *actor, a []string) error { return unix.Chdir(a[0]) }},
		// drop: forget what the kernel has cached
		"drop": {0, 0, func(_ *runner, _ *actor, _ []string) error { return dropCaches() }},
		// mkdirs PATH: make each directory of the path that is not there
		"mkdirs": {1, 1, func(_ *runner, _ *actor, a []string) error { return makeAll(a[0]) }},
		// files DIR COUNT: make files f1, f2, ...; dirs DIR COUNT: directories d1, d2, ...
		"files": {2, 2, func(_ *runner, _ *actor, a []string) error {
			return several(a, func(i int) error {
				fd, err := unix.Open(fmt.Sprintf("%s/f%d", a[0], i), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
				if err != nil {
					return err
				}
				return unix.Close(fd)
			})
		}},
		"dirs": {2, 2, func(_ *runner, _ *actor, a []string) error {
			return several(a, func(i int) error { return unix.Mkdir(fmt.Sprintf("%s/d%d", a[0], i), 0o755) })
		}},
		// links FILE COUNT: make links l1, l2, ...
		"links": {2, 2, func(_ *runner, _ *actor, a []string) error {
			return several(a, func(i int) error { return unix.Link(a[0], fmt.Sprintf("l%d", i)) })
		}},
		// chain TARGET COUNT: symbolic links s1 -> TARGET, s2 -> s1, ...
		"chain": {2, 2, func(_ *runner, _ *actor, a []string) error {
			return several(a, func(i int) error {
				to := fmt.Sprintf("s%d", i-1)
				if i == 1 {
					to = a[0]
				}
				return unix.Symlink(to, fmt.Sprintf("s%d", i))
			})
		}},
	}
	for _, more := range []map[string]operation{
		mapOperations, lockOperations, waitOperations, waiterOperations, localOperations, togetherOperations,
	} {
		maps.Copy(operations, more)
	}
}

func several(a []string, f func(int) error) error {
	for i := 1; i <= int(number(a[1])); i++ {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

func makeAll(path string) error {
	for i, c := range path {
		if c == '/' && i > 0 {
			if err := unix.Mkdir(path[:i], 0o777); err != nil && err != unix.EEXIST {
				return err
			}
		}
	}
	if err := unix.Mkdir(path, 0o777); err != nil && err != unix.EEXIST {
		return err
	}
	return nil
}

// keep stores the result of an open under a name, or closes it.
func (r *runner) keep(handle string) func(int, error) error {
	return func(fd int, err error) error {
		if err != nil {
			return err
		}
		if handle == "-" {
			return unix.Close(fd)
		}
		if _, taken := r.handles[handle]; taken { // it would stay open after the check
			return errors.Join(fmt.Errorf("a file %s is open already", handle), unix.Close(fd))
		}
		r.handles[handle] = fd
		return nil
	}
}

// fd is the descriptor of an open file, or an invalid one.
func (r *runner) fd(handle string) int {
	if fd, ok := r.handles[handle]; ok {
		return fd
	}
	return -1
}

var flagBits = map[string]int{
	"rdonly": unix.O_RDONLY, "wronly": unix.O_WRONLY, "rdwr": unix.O_RDWR, "creat": unix.O_CREAT, "excl": unix.O_EXCL,
	"trunc": unix.O_TRUNC, "append": unix.O_APPEND, "nofollow": unix.O_NOFOLLOW, "directory": unix.O_DIRECTORY,
	"nonblock": unix.O_NONBLOCK, "sync": unix.O_SYNC, "dsync": unix.O_DSYNC, "direct": unix.O_DIRECT, "path": unix.O_PATH,
	"noatime": unix.O_NOATIME, "tmpfile": unix.O_TMPFILE,
}

func openFlags(s string) (int, error) {
	bits := 0
	for _, f := range strings.Split(s, ",") {
		b, ok := flagBits[f]
		if !ok {
			return 0, fmt.Errorf("unknown flag %s", f)
		}
		bits |= b
	}
	return bits, nil
}

// writeAll writes at an offset, or at the file's own (-1).
func writeAll(fd int, data string, at int64) error {
	b := []byte(data)
	var n int
	var err error
	if at < 0 {
		n, err = unix.Write(fd, b)
	} else {
		n, err = unix.Pwrite(fd, b, at)
	}
	if err != nil {
		return err
	}
	return equal(strconv.Itoa(len(b))+" bytes written", strconv.Itoa(n)+" bytes written")
}

// readBack reads up to n bytes, from an offset or from the file's own (-1), and compares.
func readBack(fd, n int, at int64, want string) error {
	b := make([]byte, n)
	got := 0
	for got < n {
		var m int
		var err error
		if at < 0 {
			m, err = unix.Read(fd, b[got:])
		} else {
			m, err = unix.Pread(fd, b[got:], at+int64(got))
		}
		if err != nil {
			return err
		}
		if m == 0 {
			break
		}
		got += m
	}
	return equal(want, string(b[:got]))
}

func equal(want, got string) error {
	if want == got {
		return nil
	}
	return &mismatch{brief(want), brief(got)}
}

// brief quotes data for a message.
func brief(s string) string {
	if len(s) > 100 {
		return fmt.Sprintf("%q... (%d bytes)", s[:60], len(s))
	}
	return strconv.Quote(s)
}

func setTimes(r *runner, a []string, flags int) error {
	ts := []unix.Timespec{timespec(a[1]), timespec(a[2])}
	if h, ok := strings.CutPrefix(a[0], "@"); ok {
		_, _, e := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(r.fd(h)), 0, uintptr(unsafe.Pointer(&ts[0])), 0, 0, 0)
		if e != 0 {
			return e
		}
		return nil
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, a[0], ts, flags)
}

func timespec(s string) unix.Timespec {
	switch s {
	case "now":
		return unix.Timespec{Nsec: unix.UTIME_NOW}
	case "omit":
		return unix.Timespec{Nsec: unix.UTIME_OMIT}
	}
	sec, nsec, _ := strings.Cut(s, ".")
	t := unix.Timespec{Sec: number(sec)}
	if nsec != "" {
		t.Nsec = number((nsec + "000000000")[:9])
	}
	return t
}

func listIs(path string, want []string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	got, err := f.Readdirnames(-1)
	if err != nil && err != io.EOF {
		return err
	}
	// files that the NFS client keeps for programs that have them open are no names of anybody's
	got = slices.DeleteFunc(got, func(n string) bool { return strings.HasPrefix(n, ".nfs") })
	slices.Sort(got)
	want = slices.Clone(want)
	slices.Sort(want)
	return equal(strings.Join(want, " "), strings.Join(got, " "))
}

func dropCaches() error {
	unix.Sync()
	return os.WriteFile("/proc/sys/vm/drop_caches", []byte("3"), 0)
}

// errnos are the errors the scripts know by name.
var errnos = map[string]unix.Errno{}

func init() {
	for _, e := range []unix.Errno{
		unix.EACCES, unix.EBADF, unix.EBUSY, unix.EEXIST, unix.EFBIG, unix.EINVAL, unix.EIO, unix.EISDIR, unix.ELOOP,
		unix.EMLINK, unix.ENAMETOOLONG, unix.ENODEV, unix.ENOENT, unix.ENOSPC, unix.ENOTDIR, unix.ENOTEMPTY,
		unix.ENXIO, unix.EPERM,
		unix.EROFS, unix.ESTALE, unix.EXDEV, unix.EOPNOTSUPP, unix.ENOSYS, unix.ETXTBSY, unix.EOVERFLOW, unix.ENOTTY,
		unix.EADDRINUSE, unix.EAGAIN, unix.EINTR, unix.EDEADLK, unix.ENOLCK,
		unix.ECONNREFUSED, unix.ENODATA, unix.ERANGE, unix.ESPIPE,
	} {
		errnos[errnoName(e)] = e
	}
}

func errnoName(e unix.Errno) string {
	if e == unix.EOPNOTSUPP { // which is ENOTSUP, too
		return "EOPNOTSUPP"
	}
	if n := unix.ErrnoName(e); n != "" {
		return n
	}
	return strconv.Itoa(int(e))
}

// number reads a decimal number, or 2^N; scripts are part of the program, so
// a bad one is its fault.
func number(s string) int64 {
	if p, ok := strings.CutPrefix(s, "2^"); ok {
		base, off, _ := strings.Cut(p, "-")
		n := int64(1) << number(base)
		if off != "" {
			n -= number(off)
		}
		return n
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func octal(s string) uint32 {
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		panic(err)
	}
	return uint32(n)
}

func id(s string) int {
	if n, ok := ids[s]; ok {
		return n
	}
	return int(number(s))
}
