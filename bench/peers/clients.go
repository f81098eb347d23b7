//go:build linux

package peers

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
	"tansy/tools/load"
)

// clientFile is the size of each client's file, in bytes.
const clientFile = 32 << 20

// config is what a load is told of a server.
func (s *served) config(clients int, workload string) load.Config {
	return load.Config{
		Addr: s.addr, MountAddr: s.mountAddr, Export: s.export,
		Clients: clients, Workloads: []string{workload}, Duration: s.duration, FileSize: uint64(min(clientFile, s.largest)),
	}
}

// load runs one workload.
func (s *served) load(ctx context.Context, clients int, workload string) (load.Result, error) {
	return s.run(ctx, s.config(clients, workload))
}

func (s *served) run(ctx context.Context, c load.Config) (load.Result, error) {
	rs, err := load.Run(ctx, c)
	if err != nil {
		return load.Result{}, err
	}
	return rs[0], nil
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }

// each is what the server's process took of the processors for an operation, in microseconds; NaN if the system does
// not tell.
func each(r load.Result) float64 {
	if r.CPU == 0 || r.Ops == 0 {
		return math.NaN()
	}
	return micros(r.CPU) / float64(r.Ops)
}

// counts are the numbers of clients.
func counts(o options) []int {
	if o.quick {
		return []int{1, 4}
	}
	return []int{1, 8, 32, 64}
}

// byClients is one of package load's workloads by the number of clients: its rate, how long nearly all take, and what
// it takes of the processors.
func byClients(name, about string, floor func(context.Context, *served) ([]float64, error)) workload {
	return workload{
		name: name, about: about, axis: "the number of clients",
		peers: servers, base: ganesha, floor: floor, onExt4: name == "smallfile",
		metrics: func(o options) (ms []figures.Metric) {
			for _, n := range counts(o) {
				of := fmt.Sprintf("clients: %d", n)
				ms = append(ms, figures.Metric{Name: of, Unit: "/s", At: int64(n)},
					figures.Metric{Name: of + ", 99 of 100 within", Unit: "us", Lower: true},
					figures.Metric{Name: of + ", server's CPU for one", Unit: "us", Lower: true})
			}
			return ms
		},
		run: func(ctx context.Context, s *served) (fs []float64, err error) {
			for _, n := range counts(s.options) {
				r, err := s.load(ctx, n, name)
				if err != nil {
					return nil, err
				}
				fs = append(fs, float64(r.Ops)/r.Elapsed.Seconds(), micros(r.Latency.Hundredth), each(r))
			}
			return fs, nil
		},
	}
}

// ratesOnly are the figures of a floor, which has rates alone.
func ratesOnly(o options, rate func(clients int) (float64, error)) (fs []float64, err error) {
	for _, n := range counts(o) {
		r, err := rate(n)
		if err != nil {
			return nil, err
		}
		fs = append(fs, r, math.NaN(), math.NaN())
	}
	return fs, nil
}

// What NULL is on the wire, in bytes.
const (
	nullCall  = 44 + 28 // with the credential
	nullReply = 28
)

// echoed is the floor of NULL.
func echoed(_ context.Context, s *served) ([]float64, error) {
	return ratesOnly(s.options, func(n int) (float64, error) { return echo(nullCall, nullReply, n, 1, s.duration) })
}

func echo(call, reply, clients, depth int, d time.Duration) (float64, error) {
	e, err := rig.StartEcho(call, reply)
	if err != nil {
		return 0, err
	}
	defer e.Stop()
	return e.Measure(d, clients, depth)
}

// smallFiles is the floor of small files.
func smallFiles(ctx context.Context, s *served) ([]float64, error) {
	return ratesOnly(s.options, func(n int) (float64, error) {
		folders := make([]string, n)
		for i := range folders {
			folders[i] = filepath.Join(s.dir, fmt.Sprint("client", i))
			if err := os.MkdirAll(folders[i], 0o755); err != nil {
				return 0, err
			}
		}
		rate, _, err := rig.Repeat(ctx, s.duration, n, func(i, k int) error {
			return rig.SmallFile(folders[i], fmt.Sprint("file", k))
		})
		return rate, err
	})
}
