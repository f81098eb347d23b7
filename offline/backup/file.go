package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"

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

// openFile reads the header and the index of a file, of so many bytes.
func openFile(r io.ReaderAt, name string, bytes uint64) (*file, error) {
	f := &file{r: r, name: name, bytes: bytes, heads: map[int]*segment{}}
	b := make([]byte, disk.BlockSize)
	if err := f.read(0, b); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, ErrNotBackup)
	} else if err != nil {
		return nil, err
	}
	var err error
	if f.Info, err = decodeHeader(b); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	last := bytes/disk.BlockSize - 1
	if bytes%disk.BlockSize != 0 || last < 1 {
		return nil, f.damage("its end is missing")
	}
	if err := f.read(last, b); err != nil {
		return nil, err
	}
	var ok bool
	if f.end, ok = decodeEnding(b, f.ID, last); !ok {
		return nil, f.damage("its end is missing, or damaged")
	}
	return f, f.index(last)
}

// index reads the index, which ends before a block.
func (f *file) index(end uint64) error {
	b := make([]byte, disk.BlockSize)
	for at := f.end.index; at < end; at++ {
		if err := f.read(at, b); err != nil {
			return err
		}
		spans, ok := decodeIndex(b, f.ID, at)
		if !ok {
			return f.damage("the checksum of its index is wrong")
		}
		for _, s := range spans {
			before := span{}
			if n := len(f.segments); n > 0 {
				before = f.segments[n-1]
			}
			if s.first < before.end || s.end <= s.first || s.end > f.Size || s.at <= before.at || s.at >= f.end.index {
				return f.damage("its index contradicts itself")
			}
			f.segments = append(f.segments, s)
		}
	}
	if uint64(len(f.segments)) != f.end.segments {
		return f.damage("its index contradicts itself")
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
	if err != nil {
		return &disk.Error{Op: "read", Path: f.name, Block: e.block, Err: err}
	}
	return nil
}

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
	if err := f.read(at, b); err != nil {
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

// find returns the entry of block a, and where its data lie. ok: there is one.
func (f *file) find(a uint64) (e entry, place uint64, ok bool, err error) {
	i := f.from(a)
	if i == len(f.segments) || f.segments[i].first > a {
		return e, 0, false, nil
	}
	s := f.segment(i)
	if s.err != nil {
		return e, 0, false, s.err
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
