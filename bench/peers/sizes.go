//go:build linux

package peers

import (
	"context"
	"fmt"
	"time"

	"tansy/bench/internal/figures"
	"tansy/tools/load"
)

// leastFile is the size of the smallest file, in bytes.
const leastFile = 4 << 10

// fileSizes are those of files, in bytes: each 16 times the last one, and the largest.
func fileSizes(o options) (ns []int64) {
	for n := int64(leastFile); n < o.largest; n *= 16 {
		ns = append(ns, n)
	}
	return append(ns, o.largest)
}

// bySize is whole files by their size.
func bySize(name, about string, read bool) workload {
	return workload{
		name: name, about: about + ", by one client, 16 calls of 64 KiB in flight", axis: "the size of the file",
		peers: servers, base: ganesha,
		metrics: func(o options) (ms []figures.Metric) {
			for _, n := range fileSizes(o) {
				ms = append(ms, figures.Metric{Name: figures.Amount(n), Unit: "MB/s", At: n})
			}
			return ms
		},
		run: func(ctx context.Context, s *served) (rates []float64, err error) {
			for _, n := range fileSizes(s.options) {
				rate, err := s.files(ctx, n, read)
				if err != nil {
					return nil, fmt.Errorf("files of %s: %w", figures.Amount(n), err)
				}
				rates = append(rates, rate)
			}
			return rates, nil
		},
	}
}

// files writes files of a size and removes them, until the time is over, and returns megabytes per second of the
// writing; or of reading one again and again.
func (s *served) files(ctx context.Context, size int64, read bool) (rate float64, err error) {
	c, dir, err := s.connect("files-" + figures.Amount(size))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	f := wholeFile{c: c, dir: dir, size: uint64(size), buf: make([]byte, min(streamIO, size))}
	step := f.write
	if read {
		if err := f.write(); err != nil {
			return 0, err
		}
		step = f.read
	}
	var took time.Duration
	done := int64(0)
	for took < s.duration && ctx.Err() == nil {
		if !read && done > 0 {
			if err := f.remove(); err != nil {
				return 0, err
			}
		}
		begin := time.Now()
		if err := step(); err != nil {
			return 0, err
		}
		took += time.Since(begin)
		done += size
	}
	if err := f.remove(); err != nil {
		return 0, err
	}
	return float64(done) / 1e6 / took.Seconds(), ctx.Err()
}

// wholeFile is a file that is written and read as a whole.
type wholeFile struct {
	c    *load.Conn
	dir  load.Handle
	file load.Handle
	size uint64
	buf  []byte
}

// wholeName is its name.
const wholeName = "file"

func (f *wholeFile) write() (err error) {
	if f.file, err = create(f.c, f.dir, wholeName); err != nil {
		return err
	}
	for off := uint64(0); off < f.size; off += uint64(len(f.buf)) {
		piece := f.buf[:min(uint64(len(f.buf)), f.size-off)]
		load.Pattern{}.Fill(piece, off)
		f.c.StartWrite(f.file, off, piece, load.Unstable, func(uint64) error { return nil })
		if err := f.c.Wait(streamDepth - 1); err != nil {
			return err
		}
	}
	if err := f.c.Wait(0); err != nil {
		return err
	}
	_, err = f.c.Commit(f.file)
	return err
}

func (f *wholeFile) read() error {
	for off := uint64(0); off < f.size; off += uint64(len(f.buf)) {
		f.c.StartReadAll(f.file, load.Pattern{}, off, min(off+uint64(len(f.buf)), f.size), func() {})
		if err := f.c.Wait(streamDepth - 1); err != nil {
			return err
		}
	}
	return f.c.Wait(0)
}

func (f *wholeFile) remove() error {
	f.c.StartRemove(f.dir, wholeName)
	return f.c.Wait(0)
}
