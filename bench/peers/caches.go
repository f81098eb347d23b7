//go:build linux

package peers

import (
	"context"

	"tansy/bench/internal/figures"
)

func cacheMetrics(options) []figures.Metric {
	return []figures.Metric{
		{Name: "small files, clients: 8", Unit: "/s"},
		{Name: "small files, clients: 8, server's CPU for one", Unit: "us", Lower: true},
		{Name: "READ of 4 KiB at random, clients: 8", Unit: "/s"},
		{Name: "READ of 64 KiB in order, a file of 600 MB", Unit: "MB/s"},
		{Name: "WRITE of 64 KiB in order, UNSTABLE, the same file", Unit: "MB/s"},
	}
}

// cachedFile is larger than some of the caches, in bytes.
const cachedFile = 600 << 20

func cacheFigures(ctx context.Context, s *served) (fs []float64, err error) {
	small, err := s.load(ctx, 8, "smallfile")
	if err != nil {
		return nil, err
	}
	random, err := s.load(ctx, 8, "randread")
	if err != nil {
		return nil, err
	}
	fs = append(fs, float64(small.Ops)/small.Elapsed.Seconds(), each(small), float64(random.Ops)/random.Elapsed.Seconds())
	for _, name := range []string{"read", "write"} {
		c := s.config(1, name)
		c.FileSize, c.IOSize, c.Depth = uint64(min(cachedFile, s.largest)), streamIO, streamDepth
		r, err := s.run(ctx, c)
		if err != nil {
			return nil, err
		}
		fs = append(fs, float64(r.Bytes)/1e6/r.Elapsed.Seconds())
	}
	return fs, nil
}
