package floor

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"tansy/tools/load"
)

// streamCount is how many clients write or read a large file each, side by side, with streamDepth
// calls in flight.
const (
	streamCount = 32
	streamDepth = 8
)

// streams has many clients write large files, and read them, when the cache is full. What it is about is the
// server's memory, which the last line of the table tells.
func streams(b *bench) error {
	each, done, err := b.streamFiles()
	defer done()
	if err != nil {
		return err
	}
	all := float64(len(each)) * each[0].megabytes()
	for _, w := range []struct {
		name string
		do   func(l *largeFile) error
	}{
		{fmt.Sprintf("%d clients write %d MB each, FILE_SYNC", streamCount, b.streamMB()),
			func(l *largeFile) error { return l.stream(load.FileSync) }},
		{fmt.Sprintf("%d clients write %d MB each, UNSTABLE", streamCount, b.streamMB()),
			func(l *largeFile) error { return l.stream(load.Unstable) }},
		{fmt.Sprintf("%d clients read %d MB each, twice", streamCount, b.streamMB()), (*largeFile).streamBack},
	} {
		v, err := b.inTurns(false, func(time.Duration) (float64, error) {
			begin := time.Now()
			err := together(each, w.do)
			return all / time.Since(begin).Seconds(), err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		b.table.note(w.name, v[0], "MB/s")
	}
	return nil
}

// streamMB is the size of one file: together they are larger than the cache.
func (b *bench) streamMB() int { return max(1, b.fileMB/streamCount) }

// streamFiles makes the clients.
func (b *bench) streamFiles() (each []*largeFile, done func(), err error) {
	conns, dirs, close, err := b.clients("stream", streamCount)
	if err != nil {
		return nil, func() {}, err
	}
	for i, c := range conns {
		each = append(each, &largeFile{bench: b, c: c, dir: dirs[i], depth: streamDepth,
			chunks: max(1, b.streamMB()*1_000_000/ioSize), buf: make([]byte, ioSize), serial: uint64(i) << 32})
	}
	return each, func() {
		together(each, (*largeFile).discard)
		close()
	}, nil
}

// together has all of them do the same side by side.
func together(each []*largeFile, do func(l *largeFile) error) error {
	errs := make([]error, len(each))
	var wg sync.WaitGroup
	for i, l := range each {
		wg.Go(func() { errs[i] = do(l) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// stream writes a new file in place of the last one.
func (l *largeFile) stream(stable uint32) error {
	if err := l.discard(); err != nil {
		return err
	}
	h, p, err := l.create("streamed")
	if err != nil {
		return err
	}
	l.kept, l.keptPattern = h, p
	return l.fillFile(h, p, stable, inOrder(l.chunks))
}

// streamBack reads the file twice.
func (l *largeFile) streamBack() error {
	order := inOrder(l.chunks)
	return l.readServer(l.kept, l.keptPattern, slices.Concat(order, order))
}

// discard removes the file that is there.
func (l *largeFile) discard() error {
	if l.kept == nil {
		return nil
	}
	l.kept = nil
	l.c.StartRemove(l.dir, "streamed")
	return l.c.Wait(0)
}
