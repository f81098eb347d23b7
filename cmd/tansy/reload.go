package main

import (
	"context"
	"log/slog"
	"os"
)

// reload is something that SIGHUP reads again. If do fails, what was read before counts.
type reload struct {
	what string
	do   func() error
}

// reloadOnHangup reads all of list again whenever hangup says so, until ctx ends.
func reloadOnHangup(ctx context.Context, hangup <-chan os.Signal, log *slog.Logger, list ...reload) {
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
}
