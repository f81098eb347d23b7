//go:build linux

package peers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

func tailMetrics(options) (ms []figures.Metric) {
	for _, what := range []string{"GETATTR", "WRITE of 4 KiB, FILE_SYNC"} {
		for _, when := range []string{", alone", ", beside them"} {
			ms = append(ms, figures.Metric{Name: what + when + ", half within", Unit: "us", Lower: true},
				figures.Metric{Name: what + when + ", 99 of 100 within", Unit: "us", Lower: true})
		}
	}
	return ms
}

// writers are the clients that write large files meanwhile.
const writers = 8

// tail measures how long calls of one client take alone, and beside others that write as fast as they can.
func tail(ctx context.Context, s *served) (fs []float64, err error) {
	for _, workload := range []string{"getattr", "randwrite"} {
		alone, err := s.load(ctx, 1, workload)
		if err != nil {
			return nil, err
		}
		fs = append(fs, micros(alone.Latency.Half), micros(alone.Latency.Hundredth))
		stop, err := s.write()
		if err != nil {
			return nil, err
		}
		beside, err := s.load(ctx, 1, workload)
		if err := errors.Join(err, stop()); err != nil {
			return nil, err
		}
		fs = append(fs, micros(beside.Latency.Half), micros(beside.Latency.Hundredth))
	}
	return fs, nil
}

// settling is how long the writers need until all of them write.
const settling = 2 * time.Second

// write has the writers write, by another process, until they are stopped.
func (s *served) write() (stop func() error, err error) {
	size := strconv.FormatInt(min(clientFile, s.largest), 10)
	flags := []string{"bench", s.addr, "write", "--clients", strconv.Itoa(writers), "--time", "1h",
		"--file", size, "--export", s.export}
	if s.mountAddr != "" {
		flags = append(flags, "--mount-port", mountPort)
	}
	p, err := rig.Launch(s.tansy, flags...)
	if err != nil {
		return nil, err
	}
	if !s.quick {
		time.Sleep(settling)
	}
	return ended(p), nil // it says that it was interrupted
}
