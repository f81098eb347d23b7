//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// patience is how long what has to come may take: a client that was not called back asks again after half a minute.
const patience = 90 * time.Second

var errWaits = errors.New("the call waits still")

// begin has the actor make a call that waits, and returns when it does; or what became of the call if it did not.
func (a *actor) begin(act func() error) error {
	a.inCall.Store(false)
	a.cut.Store(false)
	a.waits = true
	a.jobs <- func() { a.result = act() }
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); ; {
		select {
		case <-a.done:
			a.waits = false
			if a.result == nil {
				return errors.New("the call did not wait")
			}
			return a.result
		case <-look.C:
			if a.inCall.Load() && asleep(a.thread) {
				return nil
			}
		case <-late:
			return errors.New("the call does not begin")
		}
	}
}

// wait makes a call on the actor's thread, again if a signal comes that is not the actor's: Go's runtime sends some.
func (a *actor) wait(call func() error) error {
	for {
		a.inCall.Store(true)
		if err := call(); err != unix.EINTR || a.cut.Load() {
			return err
		}
	}
}

// asleep tells that a thread waits for something that a signal may end.
func asleep(thread int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", thread))
	_, state, _ := strings.Cut(string(b), ") ") // behind the name, in parentheses
	return err == nil && strings.HasPrefix(state, "S")
}

// waitsStill is an error if the call has ended.
func (a *actor) waitsStill() error {
	select {
	case <-a.done:
		a.waits = false
		return fmt.Errorf("the call waits no more: %v", a.result)
	default:
		if !a.waits {
			return errors.New("nothing was begun")
		}
		return nil
	}
}

// get waits for the end of the call, and returns what became of it.
func (a *actor) get() error {
	if !a.waits {
		return errors.New("nothing was begun")
	}
	select {
	case <-a.done:
		a.waits = false
		return a.result
	case <-time.After(patience):
		return errWaits
	}
}

// interrupt sends a signal to the thread that waits.
func (a *actor) interrupt() error {
	if err := interruptible(); err != nil {
		return err
	}
	a.cut.Store(true)
	return unix.Tgkill(os.Getpid(), a.thread, unix.SIGUSR1)
}

// giveUp ends a call that waits when its check is over.
func (a *actor) giveUp() error {
	if !a.waits {
		return nil
	}
	if err := errors.Join(a.interrupt(), a.get()); a.waits { // nothing else can be done by this thread
		fmt.Println("not ok: a call that waits does not end:", err)
		os.Exit(1)
	}
	return errWaits
}

// interruptible has SIGUSR1 end calls with EINTR. Go's handlers ask for what can be begun again to be (SA_RESTART).
var interruptible = sync.OnceValue(func() error {
	signal.Notify(make(chan os.Signal, 1), unix.SIGUSR1)
	var action struct { // as the kernel has it
		handler, flags, restorer uintptr
		mask                     uint64
	}
	const restart = 0x10000000
	set := func(new, old unsafe.Pointer) error {
		_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR1), uintptr(new), uintptr(old), 8, 0, 0)
		if e != 0 {
			return os.NewSyscallError("rt_sigaction", e)
		}
		return nil
	}
	if err := set(nil, unsafe.Pointer(&action)); err != nil {
		return err
	}
	action.flags &^= restart
	return set(unsafe.Pointer(&action), nil)
})
