package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"tansy/disk/rbd"
	"tansy/ops/daemon"
	"tansy/ops/standby"
)

// succession are the flags of serve for a volume that goes from one server to another.
type succession struct {
	wait, take bool
	lease      time.Duration
	leased     bool // --lease was given
	onActive   string
}

const (
	leastLease = time.Second
	mostLease  = 10 * time.Minute
	// activation is how long the command of --on-active may take.
	activation = 30 * time.Second
)

func (s *succession) flags(f *flagSet) {
	f.BoolVar(&s.wait, "standby", false, "wait until the volume's server gives it up, dies, or is cut off; then take "+
		"over (a volume on Ceph; docs/guide/standby.md)")
	f.BoolVar(&s.take, "take", false, "take the volume from a server that lives, which then ends with exit code 75 (a "+
		"volume on Ceph)")
	f.DurationVar(&s.lease, "lease", 5*time.Second, "`TIME` for which a server may answer after it has last seen that "+
		"a volume on Ceph is its own; a successor waits for as long. The same for all servers of a volume")
	f.StringVar(&s.onActive, "on-active", "", "`COMMAND` for sh when the server listens and before it answers, such "+
		"as one that adds the address clients know; if it fails, the server ends")
}

// wrong says what is wrong with the flags for these volumes, or nothing.
func (s *succession) wrong(places []place) string {
	ceph := 0
	for _, p := range places {
		if rbd.IsName(p.image) {
			ceph++
		}
	}
	switch {
	case ceph > 0 && len(places) > 1:
		return "a volume on Ceph has a server of its own, as it moves from host to host: start one for each"
	case s.wait && ceph == 0:
		return "--standby is for volumes on Ceph (rbd:POOL/IMAGE): elsewhere nothing tells when the server has gone, and " +
			"nothing keeps it from writing when it comes back (docs/guide/standby.md)"
	case s.take && ceph == 0:
		return "--take is for volumes on Ceph (rbd:POOL/IMAGE): elsewhere there is no lock to take"
	case s.leased && ceph == 0:
		return "--lease is for volumes on Ceph (rbd:POOL/IMAGE): elsewhere there is no lock that a successor takes over"
	case s.lease < leastLease || s.lease > mostLease:
		return fmt.Sprintf("--lease %v: give %v to %v", s.lease, leastLease, mostLease)
	}
	return ""
}

// own makes v's device ours: it waits for the lock, if it may, and then until nothing of a former owner can be read or
// answered any more. A signal ends the waiting. standing is told when it begins to wait for a server that lives, and
// when that is over.
func (s *succession) own(v *volume, readOnly bool, standing func(bool), lost func(error)) error {
	stop, release := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer release()
	if s.wait {
		// To the service manager a standby is a service that runs.
		daemon.Notify("READY=1\nSTATUS=standing by")
		waiting, done := context.WithCancel(stop)
		defer done()
		go daemon.Watchdog(waiting, func() {})
	}
	d, err := rbd.Open(stop, v.image, rbd.Options{
		ReadOnly: readOnly, Wait: s.wait, Take: s.take, Patience: max(10*time.Second, 2*s.lease),
		Waiting: func(owner string) {
			standing(true)
			v.log.Info("standing by", "volume", v.image, "owner", owner)
		},
	})
	standing(false)
	if err != nil {
		return err
	}
	v.owner = standby.Own(d, s.lease, lost)
	v.log = slog.New(whileOurs{v.log.Handler(), v.owner})
	v.log.Info("the volume is ours; waiting until no former owner answers", "lease", s.lease)
	if err := v.owner.Settle(stop); err != nil {
		v.owner.Close()
		return err
	}
	return nil
}

// activate runs the command of --on-active. If the server is told to stop meanwhile, the command is killed, and that is
// no error.
func (s *succession) activate(stop context.Context, addr net.Addr, volume string) error {
	if s.onActive == "" {
		return nil
	}
	ctx, done := context.WithTimeout(stop, activation)
	defer done()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", s.onActive)
	cmd.Env = append(os.Environ(), "TANSY_ADDRESS="+addr.String(), "TANSY_VOLUME="+volume)
	// A group of its own, which Ctrl-C does not reach: only the server ends it, and all that it has started.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what it left running elsewhere
	out, err := cmd.CombinedOutput()
	if err == nil || stop.Err() != nil {
		return nil
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("ended, as it took longer than %v", activation)
	}
	if said := strings.TrimSpace(string(out)); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return fmt.Errorf("--on-active %q: %w", s.onActive, err)
}

// mayReply tells whether a reply may leave, of a volume that has an owner.
func (v *volume) mayReply() bool {
	if !v.owner.MayReply() {
		return false
	}
	if err := v.fs.Lost(); err != nil { // another server's mark is in the log
		v.owner.Lose(err)
		return false
	}
	return true
}

// awaitEnd does not return when the volume is another server's: the process is about to end for that, and says why.
func (v *volume) awaitEnd() {
	if v.owner != nil && v.owner.Lost() {
		select {}
	}
}

// whileOurs is a log that ends with the ownership of a volume: all that fails after that, fails for one reason, which
// is told once.
type whileOurs struct {
	slog.Handler
	owner *standby.Owner
}

// Enabled implements slog.Handler.
func (h whileOurs) Enabled(ctx context.Context, level slog.Level) bool {
	return !h.owner.Lost() && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (h whileOurs) WithAttrs(a []slog.Attr) slog.Handler {
	return whileOurs{h.Handler.WithAttrs(a), h.owner}
}

// WithGroup implements slog.Handler.
func (h whileOurs) WithGroup(name string) slog.Handler {
	return whileOurs{h.Handler.WithGroup(name), h.owner}
}
