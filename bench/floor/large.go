package floor

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tansy/tools/load"
)

// ioSize is the size of the READs and WRITEs of the large file in bytes.
const ioSize = 64 << 10

// largeDepth is the number of calls in flight: as many as Tansy takes of a connection. A
// kernel client that writes back may have more.
const largeDepth = 64

// large writes and reads a large file on one pipelined connection.
func large(b *bench) error {
	conns, dirs, done, err := b.clients("large", 1)
	if err != nil {
		return err
	}
	defer done()
	l := &largeFile{bench: b, c: conns[0], dir: dirs[0], depth: largeDepth,
		chunks: max(1, b.fileMB*1_000_000/ioSize), buf: make([]byte, ioSize)}
	return errors.Join(l.write(), l.read())
}

type largeFile struct {
	*bench
	c      *load.Conn
	depth  int // calls in flight
	dir    load.Handle
	chunks int
	buf    []byte
	serial uint64 // makes the contents of each file different

	kept        load.Handle // with -against: the file written last
	keptPattern load.Pattern
}

func (l *largeFile) megabytes() float64 { return float64(l.chunks*ioSize) / 1e6 }

// rate is megabytes per second for n pieces since begin.
func rate(n int, begin time.Time) float64 {
	return float64(n*ioSize) / 1e6 / time.Since(begin).Seconds()
}

func (l *largeFile) write() error {
	var written, blocks float64
	counted := func(stable uint32, order []int) measurement {
		return func(time.Duration) (float64, error) {
			before, _ := l.diskCounts()
			speed, err := l.writeServer(stable, order)
			if after, ok := l.diskCounts(); ok {
				blocks += float64(after.WrittenBlocks - before.WrittenBlocks)
				written += float64(l.chunks) * ioSize / load.PatternBlock
			}
			return speed, err
		}
	}
	// A local fsync for every piece takes long; a part of the file will do.
	next := inOrder(l.chunks)
	v, err := l.inTurns(false,
		l.writeLocal(l.chunks, l.chunks), counted(load.Unstable, next), counted(load.FileSync, next),
		l.writeLocal(max(1, l.chunks/16), 1), counted(load.Unstable, nearlyInOrder(l.chunks)))
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	name := fmt.Sprintf("write %d MB", l.fileMB)
	l.table.row(name+", UNSTABLE + COMMIT", v[1], v[0], "MB/s", 0.3, false)
	l.table.row(name+", FILE_SYNC", v[2], v[0], "MB/s", 0.3, false)
	l.table.row("  against a local fsync per 64 KiB", v[2], v[3], "MB/s", 0, false)
	l.table.row("  UNSTABLE out of order, against in order", v[4], v[1], "MB/s", 0.9, false)
	if blocks > 0 {
		l.table.note("  blocks to the device per block written", blocks/written, "")
	}
	return nil
}

// writeServer writes a new file, reads it back where the rate does not count,
// and removes it.
func (l *largeFile) writeServer(stable uint32, order []int) (float64, error) {
	h, p, err := l.create("written")
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := l.fillFile(h, p, stable, order); err != nil {
		return 0, err
	}
	written := rate(l.chunks, begin)
	if err := l.readServer(h, p, inOrder(l.chunks)); err != nil {
		return 0, err
	}
	l.c.StartRemove(l.dir, "written")
	return written, l.c.Wait(0)
}

func (l *largeFile) create(name string) (h load.Handle, p load.Pattern, err error) {
	l.serial++
	l.c.StartCreate(l.dir, name, func(n load.Handle) error {
		h = slices.Clone(n)
		return nil
	})
	return h, load.Pattern{File: l.serial}, l.c.Wait(0)
}

// fillFile writes the whole file, its pieces in that order, and makes it durable.
func (l *largeFile) fillFile(h load.Handle, p load.Pattern, stable uint32, order []int) error {
	var verf uint64
	first := true
	same := func(v uint64) error {
		if !first && v != verf {
			return errors.New("the write verifier changed: the server lost data")
		}
		first, verf = false, v
		return nil
	}
	for _, i := range order {
		off := uint64(i) * ioSize
		p.Fill(l.buf, off)
		l.c.StartWrite(h, off, l.buf, stable, same)
		if err := l.c.Wait(l.depth - 1); err != nil {
			return err
		}
	}
	if err := l.c.Wait(0); err != nil || stable != load.Unstable {
		return err
	}
	v, err := l.c.Commit(h)
	if err != nil {
		return err
	}
	return same(v)
}

// writeLocal writes a local file of n pieces, with an fsync after every `every`
// of them.
func (l *largeFile) writeLocal(n, every int) measurement {
	return func(time.Duration) (float64, error) {
		path := filepath.Join(l.bench.dir, "floor")
		defer os.Remove(path)
		begin := time.Now()
		f, err := l.localFile(path, n, every)
		if err != nil {
			return 0, err
		}
		return rate(n, begin), f.Close()
	}
}

func (l *largeFile) localFile(path string, n, every int) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	for i := range n {
		off := uint64(i) * ioSize
		load.Pattern{File: 0}.Fill(l.buf, off)
		if _, err = f.Write(l.buf); err == nil && ((i+1)%every == 0 || i+1 == n) {
			err = f.Sync()
		}
		if err != nil {
			f.Close()
			return nil, err
		}
	}
	return f, nil
}

func (l *largeFile) read() error {
	h, p, err := l.create("read")
	if err != nil {
		return err
	}
	if err := l.fillFile(h, p, load.Unstable, inOrder(l.chunks)); err != nil {
		return err
	}
	path := filepath.Join(l.bench.dir, "floor")
	f, err := l.localFile(path, l.chunks, l.chunks)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	defer f.Close()
	shuffled := shuffle(inOrder(l.chunks))
	for _, c := range []struct {
		name  string
		order []int
	}{{"in order", inOrder(l.chunks)}, {"at random", shuffled}} {
		if err := l.readServer(h, p, c.order); err != nil { // once to warm up
			return fmt.Errorf("read %s: %w", c.name, err)
		}
		ours := func(time.Duration) (float64, error) {
			begin := time.Now()
			err := l.readServer(h, p, c.order)
			return rate(l.chunks, begin), err
		}
		floor := func(time.Duration) (float64, error) {
			begin := time.Now()
			err := l.readLocal(f, c.order)
			return rate(l.chunks, begin), err
		}
		if err := l.compare(fmt.Sprintf("read %d MB %s, warm", l.fileMB, c.name), "MB/s", 0, ours, floor); err != nil {
			return err
		}
	}
	l.c.StartRemove(l.dir, "read")
	return l.c.Wait(0)
}

func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// nearlyInOrder is the order in which a client may send what several of its threads write back: each piece at most a
// few away from its place.
func nearlyInOrder(n int) []int {
	order := inOrder(n)
	for part := range slices.Chunk(order, 16) {
		copy(part, shuffle(part))
	}
	return order
}

func shuffle(order []int) []int {
	order = slices.Clone(order)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// readServer reads and checks the chunks in the given order.
func (l *largeFile) readServer(h load.Handle, p load.Pattern, order []int) error {
	for _, i := range order {
		off := uint64(i) * ioSize
		l.c.StartReadAll(h, p, off, off+ioSize, func() {})
		if err := l.c.Wait(l.depth - 1); err != nil {
			return err
		}
	}
	return l.c.Wait(0)
}

func (l *largeFile) readLocal(f *os.File, order []int) error {
	for _, i := range order {
		off := uint64(i) * ioSize
		if _, err := io.ReadFull(io.NewSectionReader(f, int64(off), ioSize), l.buf); err != nil {
			return err
		}
		if err := (load.Pattern{File: 0}).Check(l.buf, off); err != nil {
			return err
		}
	}
	return nil
}
