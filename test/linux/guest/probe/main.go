//go:build linux

// Command probe does, in the guest, what a shell cannot: it expects an exact
// errno, changes user, and writes records that are fsync'ed one by one.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"tansy/fs"
	"tansy/test/kit/nfsclient"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: probe ping|announce|rename|rmdir|open|create|utimes|exclusive|nobody|unlinked|journal|storm|verify|locks|as ...")
	}
	run(os.Args[1], os.Args[2:])
}

func run(verb string, a []string) {
	switch verb {
	case "ping": // ADDR: somebody accepts connections
		c, err := net.DialTimeout("tcp", a[0], time.Second)
		check(err)
		c.Close()
	case "announce": // DEVICE ADDRESS: tell the others where the address is now
		announce(a[0], a[1])
	case "rename":
		expect(syscall.Rename(a[0], a[1]), a[2]) // os.Rename has rules of its own
	case "rmdir":
		expect(syscall.Rmdir(a[0]), a[1])
	case "open":
		_, err := os.OpenFile(a[0], os.O_CREATE|os.O_RDWR, 0o644)
		expect(err, a[1])
	case "read":
		_, err := os.ReadFile(a[0])
		expect(err, a[1])
	case "remove":
		expect(syscall.Unlink(a[0]), a[1])
	case "create":
		create(a)
	case "as": // UID GID VERB ...: as another user
		gid, _ := strconv.Atoi(a[1])
		uid, _ := strconv.Atoi(a[0])
		check(syscall.Setgroups(nil))
		check(syscall.Setgid(gid))
		check(syscall.Setuid(uid))
		run(a[2], a[3:])
	case "utimes":
		utimes(a[0])
	case "exclusive":
		exclusive(a[0])
	case "nobody": // ADDR DIR NAME
		nobody(a[0], a[1], a[2])
	case "unlinked":
		unlinked(a[0])
	case "journal":
		journal(a[0], number(a[1]))
	case "storm": // DIR WORKERS STOP
		storm(a[0], number(a[1]), a[2])
	case "locks":
		locks(a[0], a[1:])
	case "verify":
		verify(a[0], number(a[1]))
	default:
		fail("unknown verb " + verb)
	}
}

// create makes N files in a directory, or one file with an expected errno.
func create(a []string) {
	if n, err := strconv.Atoi(a[1]); err == nil {
		for i := 0; i < n; i++ {
			f, err := os.Create(fmt.Sprintf("%s/file-%d", a[0], i))
			check(err)
			check(f.Close())
		}
		return
	}
	f, err := os.OpenFile(a[0], os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err == nil {
		err = f.Close()
	}
	expect(err, a[1])
}

func utimes(path string) {
	at, mt := time.Unix(1, 23), time.Unix(4000000000, 999999999)
	check(os.Chtimes(path, at, mt))
	st, err := os.Stat(path)
	check(err)
	sys := st.Sys().(*syscall.Stat_t)
	if !st.ModTime().Equal(mt) || sys.Atim.Sec != 1 || sys.Atim.Nsec != 23 {
		fail(fmt.Sprint("time stamps read back as ", st.ModTime(), " ", sys.Atim))
	}
}

func exclusive(path string) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_RDWR
	f, err := os.OpenFile(path, flags, 0o640)
	check(err)
	check(f.Close())
	_, err = os.OpenFile(path, flags, 0o640)
	expect(err, "EEXIST")
	st, err := os.Stat(path)
	check(err)
	if st.Mode().Perm() != 0o640 || st.Size() != 0 {
		fail(fmt.Sprint("exclusive create left mode ", st.Mode(), " size ", st.Size()))
	}
}

// nobody makes a file in a directory of the root as a caller whose user and group are 2^32-1, which the kernel would
// not say.
func nobody(addr, dir, name string) {
	c, err := nfsclient.Mount(addr)
	check(err)
	defer c.Close()
	d, err := c.Lookup(&fs.Cred{}, c.Root(), []byte(dir))
	check(err)
	_, err = c.Create(&fs.Cred{UID: fs.NoID, GID: fs.NoID}, d.Handle, []byte(name), fs.Guarded, &fs.SetAttr{}, 0)
	check(err)
}

// unlinked keeps using a file after its last name is gone.
func unlinked(path string) {
	f, err := os.Create(path)
	check(err)
	check(os.Remove(path))
	_, err = f.WriteString("still here")
	check(err)
	check(f.Sync())
	b := make([]byte, 10)
	_, err = f.ReadAt(b, 0)
	check(err)
	if string(b) != "still here" {
		fail("an unlinked open file lost its data")
	}
	check(f.Close())
}

const recordSize = 1000

func record(i int) []byte { return bytes.Repeat([]byte(fmt.Sprintf("%09d\n", i)), recordSize/10) }

// journal appends n records, each fsync'ed before its number is printed.
func journal(path string, n int) {
	f, err := os.Create(path)
	check(err)
	for i := 1; i <= n; i++ {
		_, err := f.Write(record(i))
		check(err)
		check(f.Sync())
		fmt.Println(i)
	}
	check(f.Close())
}

// verify finds the first n records in path.
func verify(path string, n int) {
	b, err := os.ReadFile(path)
	check(err)
	for i := 1; i <= n; i++ {
		if len(b) < i*recordSize || !bytes.Equal(b[(i-1)*recordSize:i*recordSize], record(i)) {
			fail(fmt.Sprintf("record %d of %d, which was fsync'ed, is lost", i, n))
		}
	}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}

var names = map[string]syscall.Errno{
	"OK": 0, "EINVAL": syscall.EINVAL, "EISDIR": syscall.EISDIR, "ENOTDIR": syscall.ENOTDIR,
	"ENOTEMPTY": syscall.ENOTEMPTY,
	"EAGAIN":    syscall.EAGAIN,
	"EEXIST":    syscall.EEXIST, "ENAMETOOLONG": syscall.ENAMETOOLONG, "EACCES": syscall.EACCES, "EPERM": syscall.EPERM,
}

func expect(err error, name string) {
	want, ok := names[name]
	if !ok {
		fail("unknown errno name " + name)
	}
	var got syscall.Errno
	if err != nil && !errors.As(err, &got) {
		fail(err.Error())
	}
	if got != want {
		fail(fmt.Sprintf("got %v, want %v (%s)", err, want, name))
	}
}

func fail(s string) {
	fmt.Fprintln(os.Stderr, "probe:", s)
	os.Exit(1)
}
