package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Notify tells the service manager a state of the service: "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=text", or
// several in lines, as sd_notify(3) has it. Without a manager that asked for it, it does nothing.
func Notify(state string) error {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return nil
	}
	addr := &net.UnixAddr{Name: name, Net: "unixgram"} // one that begins with @ is abstract
	c, err := net.DialUnix("unixgram", nil, addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetWriteDeadline(time.Now().Add(time.Second)) // a manager that hangs is not worth more
	_, err = c.Write([]byte(state))
	return err
}

// WatchdogTimeout is how long the service manager waits for a sign of life. It is 0 if it does not wait.
func WatchdogTimeout() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 || us > int64(24*time.Hour/time.Microsecond)*365 {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

// Watchdog gives the service manager two signs of life in each timeout until ctx is done, if it waits for them. Each
// comes after probe has returned. So a server that hangs in probe is restarted.
func Watchdog(ctx context.Context, probe func()) {
	timeout := WatchdogTimeout()
	if timeout == 0 {
		return
	}
	t := time.NewTicker(timeout / 2)
	defer t.Stop()
	for ctx.Err() == nil {
		probe()
		Notify("WATCHDOG=1")
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// An Inherited listener was opened by the service manager.
type Inherited struct {
	Name string // FileDescriptorName of the socket unit, or ""
	net.Listener
}

// firstInherited is the descriptor of the first listener (SD_LISTEN_FDS_START).
const firstInherited = 3

// Passed tells whether the service manager passes listeners, which Inherit has not taken over yet.
func Passed() bool { return os.Getenv("LISTEN_PID") == strconv.Itoa(os.Getpid()) }

// Inherit takes the listeners over that the service manager passes, as sd_listen_fds(3) has it. A second
// call finds none.
func Inherit() (ls []Inherited, err error) {
	pid, fds, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if pid != strconv.Itoa(os.Getpid()) {
		return nil, nil // they are for another process
	}
	n, err := strconv.Atoi(fds)
	if err != nil || n < 0 || n > 100 {
		return nil, errors.New("the sockets from the service manager: LISTEN_FDS is " + strconv.Quote(fds))
	}
	name := append(strings.Split(names, ":"), make([]string, n)...)
	for i := range n {
		f := os.NewFile(uintptr(firstInherited+i), name[i])
		l, e := net.FileListener(f)
		f.Close() // l has a descriptor of its own
		if e != nil {
			err = errors.Join(err, fmt.Errorf("socket %d from the service manager is none that can be listened on: %w", i+1, e))
			continue
		}
		ls = append(ls, Inherited{name[i], l})
	}
	if err != nil {
		for _, l := range ls {
			l.Close()
		}
		return nil, err
	}
	return ls, nil
}
