package journal

import (
	"bytes"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"slices"

	"tansy/disk"
	"tansy/internal/gen/journal/treeofcodes"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/pages"
	"tansy/internal/runtime/seal"
)

// A Snapshot is what Open would find in a journal. Its methods may be called concurrently.
type Snapshot struct {
	Blocks map[uint64][]byte // newest contents of the blocks that are in the log and may not be home yet

	d      disk.Disk
	tree   *treeofcodes.Tree // as the header has it
	sealed map[uint64]bool   // blocks at home that a group in the log seals: their codes are not in the tree yet
}

// codePages is the number of pages of the tree of codes that a snapshot keeps in memory: 16 MiB.
const codePages = 4096

// Inspect looks at the journal on d, and changes nothing. It needs no sound tree of codes.
func Inspect(d disk.Disk, p Params) (*Snapshot, error) {
	o := &overlay{Disk: d, m: map[uint64][]byte{}}
	logOnly := p
	logOnly.Pages = 0 // what the log has is genuine, whatever became of the tree
	if _, err := recoverJournal(o, logOnly, Options{CacheBytes: 1, Log: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	maps.DeleteFunc(o.m, func(a uint64, _ []byte) bool { return a < p.Home() })
	survey, err := NewSurvey(d, p)
	if err != nil {
		return nil, err
	}
	inMemory := pages.New(codePages)
	s := &Snapshot{Blocks: o.m, d: d, sealed: map[uint64]bool{}}
	s.tree = p.tree(ddisk.New(d), seal.New(p.Key, p.UUID, p.Home()), inMemory, d.Size())
	inMemory.Begin(survey.Root[0], survey.Root[1])
	for _, g := range survey.Log() {
		for _, a := range g.Direct {
			s.sealed[a] = true
		}
	}
	return s, nil
}

// Genuine tells whether b, which was read from home block a, is what was last written there. It runs the verified code
// that Read runs. If b is not genuine, bad is the damaged block: a, or the first of the two blocks of the page of the
// tree that a depends on.
func (s *Snapshot) Genuine(a uint64, b []byte) (ok bool, bad uint64) {
	if a < s.tree.Home || a-s.tree.Home >= s.tree.HomeCount {
		return false, a
	}
	if s.sealed[a] || s.Blocks[a] != nil {
		return true, a
	}
	return treeofcodes.Genuine(s.tree, a, dbytes.BlkOf(b))
}

// A Page is one of the tree of codes.
type Page struct {
	Block uint64   // where it lies: one of two places, the first of them if it is lost
	Err   error    // what is wrong with it, or nil
	Lost  bool     // its contents are not known
	Homes []uint64 // home blocks whose codes it has, those left out that stand for zeros; the caller's until the next page
}

// ErrMisplaced is the error of a page that can be read, but not where it says that it lies.
var ErrMisplaced = errors.New("the page lies in the wrong one of its two places: the next change would overwrite it")

// Pages yields the pages of the tree of codes that count, each behind the page with its own code. Pages that stand for
// zeros, or lie below one that is lost, are left out.
func (s *Snapshot) Pages() iter.Seq[Page] {
	return func(yield func(Page) bool) {
		v := pageWalk{s, yield, make([]uint64, 0, 255)}
		if _, r0, r1 := s.tree.Pages.Root(); s.tree.PageCount > 0 && (r0 != 0 || r1 != 0) {
			v.down(s.tree.PageCount - 1)
		}
	}
}

type pageWalk struct {
	s     *Snapshot
	yield func(Page) bool
	homes []uint64
}

// newestPage returns page p of the newest version of the tree.
func newestPage(t *treeofcodes.Tree, p uint64) (ok bool, b *dbytes.Blk) {
	version, r0, r1 := t.Pages.Root()
	ok, b, _, _ = treeofcodes.Page(t, p, version, r0, r1)
	return ok, b
}

// down yields page p and those below it; false: no more are wanted.
func (v *pageWalk) down(p uint64) bool {
	const perPage = pages.PerPage
	t := v.s.tree
	first, end := perPage*p, min(perPage*(p+1), t.HomeCount+t.PageCount-1) // the nodes that it has the codes of
	ok, b := newestPage(t, p)
	page := Page{Block: t.First + 2*p, Lost: !ok}
	if !ok {
		page.Err = v.s.whyLost(page.Block)
		return v.yield(page)
	}
	page.Block += b.U64(0) % 2
	page.Err = v.s.inPlace(page.Block, b)
	v.homes = v.homes[:0]
	for x := first; x < min(end, t.HomeCount); x++ {
		if c0, c1 := b.U64(16+16*(x-first)), b.U64(24+16*(x-first)); c0 != 0 || c1 != 0 {
			v.homes = append(v.homes, t.Home+x)
		}
	}
	page.Homes = v.homes
	if !v.yield(page) {
		return false
	}
	for x := max(first, t.HomeCount); x < end; x++ {
		if c0, c1 := b.U64(16+16*(x-first)), b.U64(24+16*(x-first)); c0 != 0 || c1 != 0 {
			if !v.down(x - t.HomeCount) {
				return false
			}
		}
	}
	return true
}

// whyLost is why a page with two places from block a on is lost.
func (s *Snapshot) whyLost(a uint64) error {
	buf := make([]byte, disk.BlockSize)
	for _, place := range [2]uint64{a, a + 1} {
		if err := s.d.ReadAt(place, [][]byte{buf}); err != nil {
			return err
		}
	}
	return ErrNotAsWritten
}

// inPlace says whether block a holds page b, which says that it does.
func (s *Snapshot) inPlace(a uint64, b *dbytes.Blk) error {
	buf := make([]byte, disk.BlockSize)
	if err := s.d.ReadAt(a, [][]byte{buf}); err != nil {
		return err
	}
	if !bytes.Equal(buf, b.Data()) {
		return ErrMisplaced
	}
	return nil
}

// overlay keeps writes in memory.
type overlay struct {
	disk.Disk
	m map[uint64][]byte
}

func (o *overlay) ReadAt(a uint64, bufs [][]byte) error {
	if err := o.Disk.ReadAt(a, bufs); err != nil {
		return err
	}
	for i := range bufs {
		if b, ok := o.m[a+uint64(i)]; ok {
			copy(bufs[i], b)
		}
	}
	return nil
}

func (o *overlay) WriteAt(a uint64, bufs [][]byte) error {
	for i := range bufs {
		o.m[a+uint64(i)] = slices.Clone(bufs[i])
	}
	return nil
}

func (o *overlay) Barrier() error { return nil }
