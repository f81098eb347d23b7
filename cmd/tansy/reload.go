package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// reload is something that SIGHUP reads again. If do fails, what was read before counts.
type reload struct {
	what string
	do   func() error
}

// reloadOnHangup reads all of list again whenever SIGHUP comes, until ctx ends. When it
// returns, the signal does not end the process any more.
func reloadOnHangup(ctx context.Context, log *slog.Logger, list ...reload) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return // and SIGHUP stays ignored while the server stops
			case <-hangup:
			}
			for _, r := range list {
				if err := r.do(); err != nil {
					log.Error("not reloaded: what was read before counts", "what", r.what, "err", err)
				} else {
					log.Info("reloaded", "what", r.what)
				}
			}
			if len(list) == 0 {
				log.Info("nothing to reload")
			}
		}
	}()
}
