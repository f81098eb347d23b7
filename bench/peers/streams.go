//go:build linux

package peers

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tansy/bench/internal/figures"
)

// streamClients are the numbers of clients that read or write in order.
var streamClients = []int{1, 8}

// Of a stream, in bytes and in calls.
const (
	streamIO    = 64 << 10
	streamDepth = 16
	streamFile  = 256 << 20 // of all clients together
)

// stream is one of package load's workloads with large files.
func stream(name, about string, floor func(context.Context, *served) ([]float64, error)) workload {
	return workload{
		name: name, about: about, peers: servers, base: ganesha, floor: floor,
		metrics: func(options) (ms []figures.Metric) {
			for _, n := range streamClients {
				of := fmt.Sprintf("clients: %d", n)
				ms = append(ms, figures.Metric{Name: of, Unit: "MB/s"},
					figures.Metric{Name: of + ", server's CPU for one", Unit: "us", Lower: true})
			}
			return ms
		},
		run: func(ctx context.Context, s *served) (fs []float64, err error) {
			for _, n := range streamClients {
				rate, cpu, err := s.stream(ctx, n, name)
				if err != nil {
					return nil, err
				}
				fs = append(fs, rate, cpu)
			}
			return fs, nil
		},
	}
}

// stream returns megabytes per second, and what a call takes of the processors, in microseconds.
func (s *served) stream(ctx context.Context, clients int, name string) (rate, cpu float64, err error) {
	c := s.config(clients, name)
	c.FileSize, c.IOSize, c.Depth = uint64(min(streamFile/int64(clients), s.largest)), streamIO, streamDepth
	r, err := s.run(ctx, c)
	return float64(r.Bytes) / 1e6 / r.Elapsed.Seconds(), each(r), err
}

// echoedReads is the floor of reading.
func echoedReads(_ context.Context, s *served) (fs []float64, err error) {
	for _, n := range streamClients {
		rate, err := echo(nullCall+16, streamIO, n, streamDepth, s.duration)
		if err != nil {
			return nil, err
		}
		fs = append(fs, rate*streamIO/1e6, math.NaN())
	}
	return fs, nil
}

// writtenPast is the floor of writing: the device itself, in pieces of 1 MiB.
func writtenPast(ctx context.Context, s *served) ([]float64, error) {
	const piece = 1 << 20
	d, err := os.OpenFile(s.device.Node, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	buf, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(buf)
	begin, n := time.Now(), int64(0)
	for ; time.Since(begin) < s.duration && ctx.Err() == nil; n++ {
		if _, err := d.WriteAt(buf, n*piece%min(streamFile, s.device.Bytes)); err != nil {
			return nil, err
		}
	}
	if err := d.Sync(); err != nil {
		return nil, err
	}
	rate := float64(n) * piece / 1e6 / time.Since(begin).Seconds()
	return []float64{rate, math.NaN(), rate, math.NaN()}, nil
}
