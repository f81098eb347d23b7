//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The users of the scripts. Linux keeps credentials per thread, so each user
// is a goroutine locked to a thread of its own, which has changed its user and
// groups with raw system calls (those of the Go library change all threads). One of them may be on another host, which
// is the name spaces of another process.

// Groups.
const (
	staff  = 3001
	guests = 3002
	extra  = 3003 // nobody's primary group
)

// user is who a script line is done as.
type user struct {
	name   string
	uid    int
	gid    int
	groups []int // supplementary
	apart  bool  // has open files of its own, as another process has
	far    bool  // is on another host, if there is one
}

// users are all of them. If an ordinary user runs the checks, it is root in those that do not name root.
var users = []user{
	{name: "root"},
	{name: "alice", uid: 2001, gid: staff, groups: []int{extra}},
	{name: "bob", uid: 2002, gid: guests},
	{name: "carol", uid: 2003, gid: staff},
	{name: "dave", uid: 2004, gid: guests, groups: []int{staff}},
	// AUTH_SYS carries 16 supplementary groups; staff is the last of these 20
	{name: "erin", uid: 2005, gid: guests, groups: append(series(1000, 19), staff)},
	// root again, in other processes
	{name: "second", apart: true},
	{name: "third", apart: true},
	{name: "far", apart: true, far: true},
}

func isUser(name string) bool {
	return slices.ContainsFunc(users, func(u user) bool { return u.name == name })
}

func series(first, n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = first + i
	}
	return s
}

// ids are the numbers for the names that chown and stat understand.
var ids = map[string]int{
	"-": -1, "root": 0, "alice": 2001, "bob": 2002, "carol": 2003, "dave": 2004, "erin": 2005,
	"staff": staff, "guests": guests, "extra": extra,
}

// actor is a thread that runs as a user.
type actor struct {
	jobs  chan func()
	done  chan struct{}
	check int // number of the check whose directory the thread is in
	umask bool
	apart bool

	handles map[string]int // open files, of those who are not apart together

	thread int         // its id
	waits  bool        // a call that waits was begun, and nobody has asked what became of it
	inCall atomic.Bool // the call is about to be made, or was made
	cut    atomic.Bool // a signal is sent that ends the call
	result error       // of the call, once done is told
}

// newActor starts the thread of u, with an umask of 0. If u is on another host, and far is not 0, then it is on that of
// the process far.
func newActor(u user, far int) (*actor, error) {
	a := &actor{jobs: make(chan func()), done: make(chan struct{}), check: -1, apart: u.apart}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		a.thread = unix.Gettid()
		err := become(u)
		if err == nil && u.far && far != 0 {
			err = moveTo(far)
		}
		started <- err
		if err != nil {
			return
		}
		for f := range a.jobs {
			f()
			a.done <- struct{}{}
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("becoming %s: %w", u.name, err)
	}
	return a, nil
}

// do runs f on the actor's thread and waits for it.
func (a *actor) do(f func()) {
	a.jobs <- f
	<-a.done
}

// stop ends the thread, which has left the directory of the checks before: that can be unmounted then.
func (a *actor) stop() {
	a.do(func() { unix.Chdir("/") })
	close(a.jobs)
}

// moveTo takes the calling thread to the host of a process: its mounts, its network, and its name.
func moveTo(process int) error {
	for _, space := range []string{"net", "uts", "mnt"} {
		name := fmt.Sprintf("/proc/%d/ns/%s", process, space)
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(unix.Setns(fd, 0), unix.Close(fd))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// become gives the calling thread, and no other, a directory and umask of its
// own and u's identity.
func become(u user) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	if u.apart { // fcntl locks belong to a table of descriptors, which a thread can have of its own
		if err := unix.Unshare(unix.CLONE_FILES); err != nil {
			return os.NewSyscallError("unshare", err)
		}
	}
	unix.Umask(0)
	if os.Getuid() != 0 {
		return nil
	}
	list := make([]uint32, len(u.groups)+1) // one more so that its address exists
	for i, g := range u.groups {
		list[i] = uint32(g)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(u.groups)), uintptr(unsafe.Pointer(&list[0])), 0); e != 0 {
		return os.NewSyscallError("setgroups", e)
	}
	id := uintptr(u.gid)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESGID, id, id, id); e != 0 {
		return os.NewSyscallError("setresgid", e)
	}
	id = uintptr(u.uid)
	if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, id, id, id); e != 0 {
		return os.NewSyscallError("setresuid", e)
	}
	return nil
}
