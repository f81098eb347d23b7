package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"
	"syscall"

	"tansy/disk"
)

// headsKept is how many heads of a file are kept in memory.
const headsKept = 64

// file is a file of a backup, to be read at any place. Its methods may be called concurrently.
type file struct {
	Info
	r        io.ReaderAt
	name     string
	bytes    uint64
	end      ending
	segments []span
	part     bool  // the end never came
	flaw     error // what is damaged of what tells where the parts lie; nil: nothing

	mu    sync.Mutex
	heads map[int]*segment
	order []int // of heads, the oldest first
}

// segment is what a head says.
type segment struct {
	entries []entry
	places  []uint64 // the block of the file with the data of each
	err     error    // the head is damaged
}

// openFile reads the header, the end, and the index of a file, of so many bytes. One that lacks one of these is opened
// all the same, with a flaw.
func openFile(r io.ReaderAt, name string, bytes uint64) (*file, error) {
	f := &file{r: r, name: name, bytes: bytes, heads: map[int]*segment{}}
	first, last := make([]byte, disk.BlockSize), make([]byte, disk.BlockSize)
	if err := f.read(0, first); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, ErrNotBackup)
	} else if err != nil && !unreadableSpot(err) {
		return nil, err
	}
	at := bytes/disk.BlockSize - 1
	if err := f.read(at, last); err != nil && !unreadableSpot(err) {
		return nil, err
	}
	info, err := decodeHeader(first)
	end, ok := decodeEnding(last, at)
	ok = ok && bytes%disk.BlockSize == 0
	switch {
	case err != nil && !ok:
		return nil, fmt.Errorf("%s: %w", name, err)
	case err != nil:
		f.Info, f.end, f.flaw = end.info, end, f.damage("its header is not as it was written")
	case !ok || end.info != info:
		f.Info, f.flaw = info, f.damage("its end is missing, or not as it was written")
		return f, f.search(at)
	default:
		f.Info, f.end = info, end
	}
	if f.index(at) {
		return f, nil
	}
	f.flaw = f.damage("its index is not as it was written")
	return f, f.search(at)
}

// index reads the index, which ends before a block. ok: it is as it was written.
func (f *file) index(end uint64) (ok bool) {
	b := make([]byte, disk.BlockSize)
	for at := f.end.index; at < end; at++ {
		if f.read(at, b) != nil {
			return false
		}
		spans, ok := decodeIndex(b, f.ID, at)
		if !ok {
			return false
		}
		for _, s := range spans {
			if !f.follows(s, f.end.index) {
				return false
			}
			f.segments = append(f.segments, s)
		}
	}
	return uint64(len(f.segments)) == f.end.segments
}

// follows tells whether a segment, whose head lies before a block, may come behind those that there are.
func (f *file) follows(s span, end uint64) bool {
	before := span{}
	if n := len(f.segments); n > 0 {
		before = f.segments[n-1]
	}
	return s.first >= before.end && s.end > s.first && s.end <= f.Size && s.at > before.at && s.at < end
}

// search finds the segments without the index, before a block: each head says how long its segment is. If the last is
// missing, so may others be: that is an error.
func (f *file) search(end uint64) error {
	f.segments = nil
	b := make([]byte, disk.BlockSize)
	f.end.stored, f.end.damaged = 0, 0
	for at := uint64(1); at < end; at++ {
		if err := f.read(at, b); unreadableSpot(err) {
			continue
		} else if err != nil {
			return err
		}
		entries, ok := decodeHead(b, f.ID, at, f.Size)
		if !ok {
			continue
		}
		s := span{entries[0].block, entries[len(entries)-1].end(), at}
		if !f.follows(s, end) {
			return f.damage("its parts are not in their order")
		}
		f.segments = append(f.segments, s)
		for _, e := range entries {
			if e.hasData() {
				f.end.stored++
				at++
			}
			if e.kind == notWritten || e.kind == unreadable {
				f.end.damaged++
			}
		}
		if at >= end {
			return f.flaw
		}
	}
	if n := len(f.segments); n == 0 || f.segments[n-1].end != f.Size {
		return f.flaw
	}
	return nil
}

func (f *file) damage(what string) error { return fmt.Errorf("%s: %w: %s", f.name, ErrDamaged, what) }

// read reads block at of the file.
func (f *file) read(at uint64, b []byte) error {
	_, err := f.r.ReadAt(b, int64(at)*disk.BlockSize)
	return err
}

// contents reads those of an entry, which lie in block place of the file.
func (f *file) contents(e entry, place uint64, b []byte) error {
	err := f.read(place, b)
	if err == nil && crc(b) != e.sum {
		err = fmt.Errorf("%w: the checksum of this block is wrong", ErrDamaged)
	}
	if unreadableSpot(err) || errors.Is(err, io.EOF) { // or it was cut
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return &disk.Error{Op: "read", Path: f.name, Block: e.block, Err: err}
	}
	return nil
}

// unreadableSpot tells whether an error is that of a bad spot below the file: what lies there is damaged, and the rest
// of the file is not.
func unreadableSpot(err error) bool { return errors.Is(err, syscall.EIO) }

// segment returns segment i. It waits for other calls that read one.
func (f *file) segment(i int) *segment {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.heads[i]; s != nil {
		return s
	}
	s := f.load(i)
	if len(f.order) == headsKept {
		delete(f.heads, f.order[0])
		f.order = f.order[1:]
	}
	f.heads[i], f.order = s, append(f.order, i)
	return s
}

func (f *file) load(i int) *segment {
	b, at := make([]byte, disk.BlockSize), f.segments[i].at
	if err := f.read(at, b); unreadableSpot(err) {
		return &segment{err: fmt.Errorf("%w: %w", ErrDamaged, err)}
	} else if err != nil {
		return &segment{err: err}
	}
	entries, ok := decodeHead(b, f.ID, at, f.Size)
	if !ok || entries[0].block != f.segments[i].first || entries[len(entries)-1].end() != f.segments[i].end {
		return &segment{err: f.damage(fmt.Sprintf("the checksum of the list at byte %d is wrong", at*disk.BlockSize))}
	}
	s := &segment{entries: entries, places: make([]uint64, len(entries))}
	for k, e := range entries {
		if e.hasData() {
			at++
			s.places[k] = at
		}
	}
	return s
}

// from is the number of the first segment that ends behind block a.
func (f *file) from(a uint64) int {
	return sort.Search(len(f.segments), func(i int) bool { return f.segments[i].end > a })
}

// find returns the entry of block a, and where its data lie. ok: there is one. After an error there may be one, and e
// is lost, with blocks behind a of which the same is so.
func (f *file) find(a uint64) (e entry, place uint64, ok bool, err error) {
	i := f.from(a)
	if i == len(f.segments) || f.segments[i].first > a {
		return e, 0, false, nil
	}
	s := f.segment(i)
	if s.err != nil {
		return entry{a, lost, uint32(min(f.segments[i].end-a, 1<<32-1))}, 0, false, s.err
	}
	k := s.from(a)
	if s.entries[k].block > a {
		return e, 0, false, nil
	}
	return s.entries[k], s.places[k], true, nil
}

// next returns the first entry that ends behind block a; ok is false if there is none. After an error there may be any,
// in the block of e or behind it.
func (f *file) next(a uint64) (e entry, ok bool, err error) {
	i := f.from(a)
	if i == len(f.segments) {
		return e, false, nil
	}
	s := f.segment(i)
	if s.err != nil {
		return entry{block: max(a, f.segments[i].first)}, true, s.err
	}
	return s.entries[s.from(a)], true, nil
}

// from is the number of the first entry that ends behind block a, which there is.
func (s *segment) from(a uint64) int {
	return sort.Search(len(s.entries), func(k int) bool { return s.entries[k].end() > a })
}

// close closes the file, if it can be.
func (f *file) close() error {
	if c, ok := f.r.(*os.File); ok {
		return c.Close()
	}
	return nil
}
