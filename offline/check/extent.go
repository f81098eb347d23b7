package check

import (
	"cmp"
	"fmt"
	"slices"

	"tansy/disk"
	"tansy/journal"
)

// extent is what of a volume's layout is there. verified/fs/format/superblock.dfy says where it lies in the superblock.
type extent struct {
	room     uint64      // blocks of the device that the volume uses; the copy of the superblock is the last
	dataEnd  uint64      // data blocks from here on are not there yet
	inodeEnd uint64      // nor are inodes from here on
	runs     []extentRun // in the order of the device, from block 0 on; none: all is there
	sorted   []extentRun // in the order of the layout, with the copy of the superblock
}

// extentRun is n blocks of the layout from block from on, which lie from block at of the device on.
type extentRun struct{ from, at, n uint64 }

const (
	maxRuns   = 240 // that a superblock has room for
	maxLayout = 1 << 48
	atRuns    = 216 // offset of the first run in a superblock; each has runBytes
	runBytes  = 16
)

// parseExtent reads what of a layout of size blocks is there, as superblock b says. s has its geometry already.
func (s *superblock) parseExtent(b []byte) error {
	count := u64(b, 208)
	if whole := u32(b, 8) == wholeVersion; whole != (count == 0) {
		return fmt.Errorf("format version %d with %d runs of blocks", u32(b, 8), count)
	}
	s.extent = extent{room: s.size, dataEnd: s.data1, inodeEnd: s.ninode}
	if count == 0 {
		return nil
	}
	if count > maxRuns {
		return fmt.Errorf("%d runs of blocks are more than the %d that there is room for", count, maxRuns)
	}
	s.room, s.dataEnd, s.inodeEnd = u64(b, 184), u64(b, 192), u64(b, 200)
	at := uint64(0)
	for i := range int(count) {
		r := extentRun{u64(b, atRuns+runBytes*i), at, u64(b, atRuns+runBytes*i+8)}
		if r.n == 0 || r.n >= maxLayout || r.from >= maxLayout || r.from+r.n >= s.size {
			return fmt.Errorf("run %d, of %d blocks from block %d on, does not lie before the copy of the superblock",
				i, r.n, r.from)
		}
		s.runs = append(s.runs, r)
		at += r.n
	}
	s.sorted = append(slices.Clone(s.runs), extentRun{s.size - 1, s.room - 1, 1})
	slices.SortFunc(s.sorted, func(a, b extentRun) int { return cmp.Compare(a.from, b.from) })
	return s.extentFits(at)
}

// extentFits says whether the runs, of total blocks, can be those of the volume, and the ends be where they are.
func (s *superblock) extentFits(total uint64) error {
	if s.runs[0].from != 0 {
		return fmt.Errorf("the first run begins with block %d, not with the superblock", s.runs[0].from)
	}
	for i, r := range s.sorted[1:] {
		if before := s.sorted[i]; before.from+before.n > r.from {
			return fmt.Errorf("block %d is in two runs", r.from)
		}
	}
	switch {
	case s.size > maxLayout || s.room >= s.size:
		return fmt.Errorf("the volume uses %d blocks, and may have %d", s.room, s.size)
	case s.room != total+1:
		return fmt.Errorf("the volume uses %d blocks, but its runs and the copy of the superblock have %d", s.room, total+1)
	case s.dataEnd <= s.data0 || s.dataEnd > s.data1:
		return fmt.Errorf("the data end at block %d, but are between %d and %d", s.dataEnd, s.data0, s.data1)
	case s.inodeEnd <= 16 || s.inodeEnd > s.ninode:
		return fmt.Errorf("the inodes end at %d, of %d", s.inodeEnd, s.ninode)
	}
	return nil
}

// complete says whether all is there that data and inodes up to their ends need.
func (s *superblock) complete() error {
	if len(s.runs) == 0 {
		return nil
	}
	if n, ok := journal.PagesFor(s.size - s.ibm); !ok || n != s.pages {
		return fmt.Errorf("a tree of codes of %d pages is not one for %d blocks", s.pages, s.size-s.ibm)
	}
	ceil := func(n, per uint64) uint64 { return (n + per - 1) / per }
	for _, r := range []struct {
		what     string
		from, to uint64
	}{
		{"the log", 1 + 2*s.pages, s.ibm},
		{"the bitmap of the inodes", s.ibm, s.ibm + ceil(s.inodeEnd, pageBits)},
		{"the bitmap of the blocks", s.bbm + s.data0/pageBits, s.bbm + ceil(s.dataEnd, pageBits)},
		{"the inodes", s.itab, s.itab + ceil(s.inodeEnd, inodesBlock)},
		{"the records of replies", s.slot0, s.data0},
		{"the data", s.data0, s.dataEnd},
	} {
		if a, ok := s.missing(r.from, r.to); ok {
			return fmt.Errorf("block %d, of %s, is not there", a, r.what)
		}
		if r.from < s.ibm || r.from == r.to { // the log has no codes
			continue
		}
		if a, ok := s.missingPage(r.from-s.ibm, r.to-s.ibm); ok {
			return fmt.Errorf("block %d, a page of the tree of codes that %s need, is not there", a, r.what)
		}
	}
	return nil
}

// missing is the first of the blocks [from, to) that is not there; ok: there is one.
func (s *superblock) missing(from, to uint64) (a uint64, ok bool) {
	for a = from; a < to; {
		there, _, n := s.locate(a)
		if !there {
			return a, true
		}
		a += n
	}
	return 0, false
}

// A page of the tree of codes has the codes of so many nodes. Nodes are the blocks behind the log, and behind them the
// pages, but for the last page, which is the root.
const pageNodes = 255

// missingPage is the first block that is not there, of a page that the codes of the nodes [lo, end) are in, or of one
// above these; ok: there is one. The tree must be one for the layout.
func (s *superblock) missingPage(lo, end uint64) (a uint64, ok bool) {
	for home, root := s.size-s.ibm, s.pages-1; ; {
		p, q := lo/pageNodes, (end-1)/pageNodes
		if a, ok = s.missing(1+2*p, 3+2*q); ok || p >= root {
			return a, ok
		}
		lo, end = home+p, home+min(q+1, root)
	}
}

// locate is the disk.Locate of the layout.
func (s *superblock) locate(a uint64) (there bool, at, n uint64) {
	if len(s.runs) == 0 {
		return true, a, s.size - a
	}
	i, found := slices.BinarySearchFunc(s.sorted, a, func(r extentRun, a uint64) int { return cmp.Compare(r.from, a) })
	if !found {
		i-- // the first run begins with block 0
	}
	if r := s.sorted[i]; a < r.from+r.n {
		return true, r.at + (a - r.from), r.from + r.n - a
	}
	return false, 0, s.sorted[i+1].from - a // the last one is the end of the layout
}

// layout is the layout of the volume on d.
func (s *superblock) layout(d disk.Disk) disk.Disk {
	if len(s.runs) == 0 {
		return d
	}
	return disk.NewPieced(d, s.size, s.locate)
}

// pagesThere is the number of pages of the tree of codes that are there.
func (s *superblock) pagesThere(layout disk.Disk) uint64 {
	return disk.CountThere(layout, 1, 1+2*s.pages) / 2
}
