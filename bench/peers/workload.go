//go:build linux

package peers

import (
	"context"
	"errors"
	"io"
	"slices"

	"tansy/bench/internal/figures"
)

// A workload is measured of several peers.
type workload struct {
	name, about string
	axis        string // what its plot is by, if it has one
	peers       []string
	base        string // whom the others are compared with
	metrics     func(options) []figures.Metric
	run         func(context.Context, *served) ([]float64, error) // a figure for each of the metrics, NaN for none
	floor       func(context.Context, *served) ([]float64, error) // the same without a server; may be nil
	onExt4      bool                                              // the floor has a file system
}

var workloads = []workload{
	byClients("null", "NULL, which does nothing; 1 to 64 clients that wait for each reply", echoed),
	byClients("getattr", "GETATTR of a directory", nil),
	byClients("smallfile", "LOOKUP, CREATE, WRITE of 100 bytes FILE_SYNC, REMOVE: one file; "+
		"the floor is ext4 without a server, each step fsync'ed", smallFiles),
	byClients("create", "CREATE of one file after the other in a directory of each client", nil),
	byClients("mixed", "calls as an office makes them: LOOKUP 35, READ 20, GETATTR 15, WRITE UNSTABLE 10, "+
		"READDIRPLUS 10, COMMIT 5, CREATE or REMOVE 5 of 100; 16 KiB of data", nil),
	byClients("randwrite", "WRITE of 4 KiB at random, FILE_SYNC, into a file of 32 MiB of each client", nil),
	byClients("randread", "READ of 4 KiB at random of such files, in memory", nil),
	stream("write", "WRITEs of 64 KiB in order, UNSTABLE, with a COMMIT at the end, 16 in flight; "+
		"the floor is the device, written past the page cache, and a barrier", writtenPast),
	stream("writesync", "the same FILE_SYNC", nil),
	stream("read", "READs of 64 KiB in order, in memory, 16 in flight; "+
		"the floor is a process that answers with as many bytes", echoedReads),
	bySize("filewrite", "whole files written one after the other, each with its COMMIT", false),
	bySize("fileread", "the last of these files read again, in memory", true),
	{name: "directories", about: "large directories", peers: servers[:3], base: ganesha,
		metrics: directoryMetrics, run: directories},
	{name: "tail", about: "one client beside eight that write large files", peers: servers, base: ganesha,
		metrics: tailMetrics, run: tail},
	{name: "caches", about: "Tansy with a cache of 64 MiB to 4 GiB", peers: caches, base: caches[0],
		metrics: cacheMetrics, run: cacheFigures},
}

// measure has all peers do a workload, in turns. It is nil if there is none.
func (m *machine) measure(ctx context.Context, w workload, out io.Writer) (*figures.Measured, error) {
	all := &figures.Measured{About: w.about, Axis: w.axis}
	for _, p := range everyPeer {
		takesPart := slices.Contains(w.peers, p.name) || p.name == floor && w.floor != nil
		if takesPart && (len(m.peers) == 0 || slices.Contains(m.peers, p.name)) && p.there() {
			all.Contenders = append(all.Contenders, p.name)
		}
	}
	if len(all.Contenders) == 0 {
		return nil, nil
	}
	if slices.Contains(all.Contenders, w.base) {
		all.Base = w.base
	}
	all.PrintHeader(out)
	once := func(name string) ([]float64, error) { return m.once(ctx, w, name) }
	return all, all.Turns(m.rounds, w.metrics(m.options), once, out, m.verbose)
}

// once has a peer do a workload on a fresh device.
func (m *machine) once(ctx context.Context, w workload, name string) (reached []float64, err error) {
	p := everyPeer[slices.IndexFunc(everyPeer, func(p peer) bool { return p.name == name })]
	do, s := w.run, &served{machine: m}
	switch {
	case p.server != nil:
		s, err = p.server(ctx, m)
	case w.onExt4:
		do = w.floor
		s, err = m.onExt4(ctx, "data=ordered", 0)
	default:
		do = w.floor
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return do(ctx, s)
}
