//go:build linux

package eval

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"tansy/bench/internal/figures"
)

// pieceSize is how much of the large file is written and read at once, in bytes.
const pieceSize = 64 << 10

// largefile is LFS's benchmark of a large file: written in order and fsync'ed, read when the kernel has it in its
// cache, and when nobody has. What is read is compared with what was written.
func largefile(o options) []experiment {
	about := func(what string) figures.Metric {
		return figures.Metric{Name: fmt.Sprintf("%s, %d MB", what, o.fileMB), Unit: "MB/s"}
	}
	return []experiment{{
		[]figures.Metric{about("written, one fsync"), about("read warm"), about("read cold")},
		func(ctx context.Context, s *site) ([]float64, error) {
			l := &large{path: filepath.Join(s.dir, "large"), pieces: max(1, s.fileMB*1_000_000/pieceSize)}
			written, err := l.write(ctx)
			if err != nil {
				return nil, err
			}
			warm, err := l.readWarm(ctx)
			if err != nil {
				return nil, err
			}
			if err := s.remount(); err != nil {
				return nil, err
			}
			cold, err := l.readCold(ctx)
			return []float64{written, warm, cold}, err
		},
	}}
}

// large is the file. Each of its pieces is the same noise, turned by its number.
type large struct {
	path   string
	pieces int
}

var noise = func() []byte {
	b := make([]byte, 2*pieceSize)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

func piece(i int) []byte {
	turned := i * 8 % pieceSize
	return noise[turned : turned+pieceSize]
}

func (l *large) rate(begin time.Time) float64 {
	return perSecond(float64(l.pieces)*pieceSize/1e6, begin)
}

func (l *large) write(ctx context.Context) (float64, error) {
	begin := time.Now()
	f, err := os.Create(l.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for i := 0; i < l.pieces && ctx.Err() == nil; i++ {
		if _, err := f.Write(piece(i)); err != nil {
			return 0, err
		}
	}
	if err := f.Sync(); err != nil {
		return 0, err
	}
	return l.rate(begin), ctx.Err()
}

// readWarm reads the file twice while it is open, so that the kernel may keep what it has read through FUSE; the second
// time counts.
func (l *large) readWarm(ctx context.Context) (float64, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := l.read(ctx, f); err != nil {
		return 0, err
	}
	return l.read(ctx, f)
}

func (l *large) readCold(ctx context.Context) (float64, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return l.read(ctx, f)
}

func (l *large) read(ctx context.Context, f *os.File) (float64, error) {
	buf := make([]byte, pieceSize)
	begin := time.Now()
	for i := 0; i < l.pieces && ctx.Err() == nil; i++ {
		if _, err := io.ReadFull(io.NewSectionReader(f, int64(i)*pieceSize, pieceSize), buf); err != nil {
			return 0, err
		}
		if !bytes.Equal(buf, piece(i)) {
			return 0, fmt.Errorf("piece %d of the large file is not what was written", i)
		}
	}
	return l.rate(begin), ctx.Err()
}
