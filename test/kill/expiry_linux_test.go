package kill

import (
	"syscall"
	"testing"
	"time"

	"tansy/test/kit/nfsclient"
)

// TestBlocklistExpires: the cluster lets a former owner write again that stood still for longer than its entry on the
// blocklist lasts. It still answers nothing, as it looks at the mark in the log first; here, with what was on its way
// to its helper when that stood still, it changed nothing either, which nothing promises.
func TestBlocklistExpires(t *testing.T) {
	c, s := begin(t)
	c.Run(t, "ceph", "tell", "mon.a", "config", "set", "mon_osd_blocklist_default_expire", "5")
	for _, asleep := range []time.Duration{
		0,                // the helper does what it is asked for
		40 * time.Second, // the helper ends
	} {
		next := c.launch(t, "--standby")
		next.Until(t, next.Waits)
		late, err := nfsclient.Mount(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		wait := c.work(s)
		time.Sleep(1500 * time.Millisecond) // the moment of the fault, not a synchronisation
		f := fault{server: syscall.SIGSTOP, helper: syscall.SIGSTOP, exit: taken}
		f.strike(t, s)
		stood := time.Now()
		c.serving(t, next)
		known := c.known()
		verify(t, next, known)
		for c.Blocklist(t) > 0 || time.Since(stood) < asleep {
			time.Sleep(time.Second) // nobody tells of it
		}
		answered := make(chan error, 1)
		go func() {
			_, err := late.Getattr(late.Root())
			answered <- err
		}()
		f.wake(t, s)
		wait(t)
		if err := <-answered; err == nil {
			t.Error("the former owner answered when its successor served")
		}
		late.Close()
		verify(t, next, known) // nothing changed
		verify(t, next, c.all)
		s = next
	}
	s.Signal(syscall.SIGINT)
	if exit := s.Wait(t); exit != "" {
		t.Errorf("told to stop, the server ended with %s", exit)
	}
	c.end(t)
}
