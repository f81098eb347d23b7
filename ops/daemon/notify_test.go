package daemon

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// manager is what a service manager hears.
func manager(t *testing.T) *net.UnixConn {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // short: names of sockets are
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	name := filepath.Join(dir, "s")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	t.Setenv("NOTIFY_SOCKET", name)
	return c
}

func hear(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 1000)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	c := manager(t)
	if err := Notify("READY=1\nSTATUS=here"); err != nil {
		t.Fatal(err)
	}
	if got := hear(t, c); got != "READY=1\nSTATUS=here" {
		t.Errorf("%q", got)
	}
	c.Close()
	if err := Notify("READY=1"); err == nil {
		t.Error("a manager that is gone heard it")
	}
}

func TestWatchdogTimeout(t *testing.T) {
	me := strconv.Itoa(os.Getpid())
	for _, x := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"", "", 0}, {"x", me, 0}, {"-1", me, 0}, {"0", "", 0}, {"9223372036854775807", "", 0},
		{"30000000", "", 30 * time.Second}, {"30000000", me, 30 * time.Second}, {"30000000", "1", 0},
	} {
		t.Setenv("WATCHDOG_USEC", x.usec)
		t.Setenv("WATCHDOG_PID", x.pid)
		if got := WatchdogTimeout(); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// There is a sign of life for every probe that returns, and none while one does not.
func TestWatchdog(t *testing.T) {
	c := manager(t)
	t.Setenv("WATCHDOG_USEC", "2000")
	t.Setenv("WATCHDOG_PID", "")
	ctx, cancel := context.WithCancel(context.Background())
	probes, ended := make(chan bool), make(chan bool)
	go func() {
		Watchdog(ctx, func() { probes <- true })
		close(ended)
	}()
	for range 3 {
		<-probes
		if got := hear(t, c); got != "WATCHDOG=1" {
			t.Errorf("%q", got)
		}
	}
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // the next probe hangs
	if n, err := c.Read(make([]byte, 100)); err == nil {
		t.Errorf("a sign of life (%d bytes) without a probe", n)
	}
	cancel()
	<-probes
	<-ended
	os.Unsetenv("WATCHDOG_USEC")
	Watchdog(context.Background(), func() { t.Error("probed though nobody waits") })
}

func TestInheritNothing(t *testing.T) {
	me := strconv.Itoa(os.Getpid())
	for _, x := range []struct {
		pid, fds string
		bad      bool
	}{
		{"", "", false}, {"1", "1", false}, {me, "0", false}, {me, "", true}, {me, "-1", true}, {me, "1000", true},
		{"x", "1", false},
	} {
		t.Setenv("LISTEN_PID", x.pid)
		t.Setenv("LISTEN_FDS", x.fds)
		if ls, err := Inherit(); len(ls) > 0 || (err != nil) != x.bad {
			t.Errorf("%+v: %v, %v", x, ls, err)
		}
	}
}
