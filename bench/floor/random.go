package floor

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tansy/bench/internal/rig"
	"tansy/tools/load"
)

const (
	randomIO   = 4096     // bytes of a WRITE
	randomMost = 32 << 20 // bytes of each client's file, or as many as the large file has
)

// randomFile is how many bytes each client's file has: some pieces of ioSize.
func (b *bench) randomFile() uint64 {
	return uint64(max(1, min(randomMost, b.fileMB*1_000_000)/ioSize)) * ioSize
}

// randomCounts are the numbers of clients that write at random.
var randomCounts = []int{2, 8, 32}

// random has clients write 4 KiB at random places, each durable before the next. The floor is a local file of each,
// written so, with fsync.
func random(b *bench) error {
	for _, n := range randomCounts {
		if err := b.randomRow(n); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) randomRow(n int) (err error) {
	w, done, err := b.randomWriters(n)
	defer done()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.remove()) }()
	ours := func(d time.Duration) (float64, error) {
		begin := time.Now()
		count, err := w.run(d, n)
		return count / time.Since(begin).Seconds(), err
	}
	locals := make([]*os.File, n)
	for i := range locals {
		if locals[i], err = fullFile(filepath.Join(b.dir, fmt.Sprint("random", i)), b.randomFile()); err != nil {
			return err
		}
		defer os.Remove(locals[i].Name())
		defer locals[i].Close()
	}
	floor := func(d time.Duration) (float64, error) {
		rate, _, err := rig.Repeat(context.Background(), d, n, func(i, _ int) error {
			off := randomPlace(b.randomFile())
			piece := make([]byte, randomIO)
			load.Pattern{File: uint64(i)}.Fill(piece, off)
			if _, err := locals[i].WriteAt(piece, int64(off)); err != nil {
				return err
			}
			return locals[i].Sync()
		})
		return rate, err
	}
	if err := b.compare(fmt.Sprintf("random, clients: %d", n), "/s", 0, ours, floor); err != nil {
		return err
	}
	b.table.note("  99 of 100 within", microseconds(w.tail()), "us")
	return nil
}

// fullFile makes a file that is as long as a client's, and durable.
func fullFile(path string, size uint64) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	piece := make([]byte, ioSize)
	for off := uint64(0); off < size && err == nil; off += ioSize {
		_, err = f.Write(piece)
	}
	return f, errors.Join(err, f.Sync())
}

func randomPlace(size uint64) uint64 { return rand.Uint64N(size/randomIO) * randomIO }

// randomWriters are clients with a full file each.
type randomWriters struct {
	conns []*load.Conn
	dirs  []load.Handle
	files []load.Handle
	size  uint64 // of each file, in bytes

	mu   sync.Mutex
	took load.Histogram // of the WRITEs since tail was called
}

// randomWriters makes n of them; done closes their connections, and is never nil.
func (b *bench) randomWriters(n int) (w *randomWriters, done func(), err error) {
	w = &randomWriters{files: make([]load.Handle, n), size: b.randomFile()}
	if w.conns, w.dirs, done, err = b.clients("random", n); err != nil {
		return nil, func() {}, err
	}
	for i, c := range w.conns {
		l := &largeFile{bench: b, c: c, dir: w.dirs[i], depth: largeDepth, chunks: int(w.size / ioSize),
			buf: make([]byte, ioSize), serial: uint64(i) - 1}
		h, p, err := l.create("random")
		if err == nil {
			w.files[i] = h
			err = l.fillFile(h, p, load.Unstable, inOrder(l.chunks))
		}
		if err != nil {
			return nil, done, err
		}
	}
	return w, done, nil
}

// run has the first n of them write for about d, and returns how many WRITEs there were.
func (w *randomWriters) run(d time.Duration, n int) (count float64, err error) {
	took := make([]load.Histogram, n)
	pieces := make([]byte, n*randomIO)
	_, count, err = rig.Repeat(context.Background(), d, n, func(i, _ int) error {
		off, piece := randomPlace(w.size), pieces[i*randomIO:][:randomIO]
		load.Pattern{File: uint64(i)}.Fill(piece, off)
		at := time.Now()
		w.conns[i].StartWrite(w.files[i], off, piece, load.FileSync, func(uint64) error {
			took[i].Add(time.Since(at))
			return nil
		})
		return w.conns[i].Wait(0)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range took {
		w.took.Merge(&took[i])
	}
	return count, err
}

// tail is how long 99 of 100 took at most since it was last called.
func (w *randomWriters) tail() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.took.Quantile(0.99)
	w.took = load.Histogram{}
	return d
}

// remove removes their files.
func (w *randomWriters) remove() (err error) {
	for i, c := range w.conns {
		c.StartRemove(w.dirs[i], "random")
		err = errors.Join(err, c.Wait(0))
	}
	return err
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
