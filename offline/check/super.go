package check

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"

	"tansy/disk"
	"tansy/journal"
)

// The superblock; verified/fs/format/superblock.dfy has the table of its bytes.
const (
	superMagic   = 0x0053_4679_736e_6154 // "TansyFS\0"
	superVersion = 5
	wholeVersion = 4    // of a volume that is there as a whole, and cannot grow
	superUsed    = 184  // bytes that mean something; of a volume that can grow, more: up to the last of its runs
	superSum     = 4064 // bytes before the checksum
	maxBlocks    = 1 << 52
	maxInodes    = 1 << 48
)

// geometry is where the regions lie: [1, ibm) tree of codes and log, [ibm, bbm) inode bitmap,
// [bbm, itab) block bitmap, [itab, slot0) inodes, [slot0, data0) records of replies, [data0, data1) data.
type geometry struct{ ibm, bbm, itab, slot0, data0, data1, ninode uint64 }

// bounds are the geometry of a volume, and where what may be in use of it ends.
type bounds struct {
	geometry
	dataEnd, inodeEnd uint64
}

type superblock struct {
	size         uint64 // blocks of the layout
	pages        uint64 // of the tree of codes, each with two blocks
	lognd, lognr uint64 // of the log: units, blocks of the ring
	geometry
	extent
	rootgen uint64
	ctime   uint64
	ctimens uint32
	compat  uint32
	uuid    [16]byte
	key     [32]byte
	junk    bool // there is something in bytes that mean nothing
}

// ErrNotVolume is the error of Volume for a device that holds something else, or nothing.
var ErrNotVolume = errors.New("not a Tansy volume")

// errForeign: a Tansy volume this program is too old for.
type errForeign string

func (e errForeign) Error() string { return string(e) }

// parseSuper reads a superblock. The error says why it cannot be used.
func parseSuper(b []byte) (*superblock, error) {
	if u64(b, 0) != superMagic {
		return nil, ErrNotVolume
	}
	if sum := sha256.Sum256(b[:superSum]); !bytes.Equal(sum[:], b[superSum:]) {
		return nil, errors.New("the checksum is wrong")
	}
	if v := u32(b, 8); v != superVersion && v != wholeVersion {
		return nil, errForeign(fmt.Sprintf("the volume has format version %d, this program knows %d and %d",
			v, wholeVersion, superVersion))
	}
	if f := u32(b, 12); f != 0 {
		return nil, errForeign(fmt.Sprintf("the volume uses features this program does not know (flags %#x)", f))
	}
	s := &superblock{
		size: u64(b, 24), lognd: u64(b, 32), lognr: u64(b, 40),
		geometry: geometry{
			ibm: u64(b, 48), bbm: u64(b, 56), itab: u64(b, 64), slot0: cmp.Or(u64(b, 176), u64(b, 72)),
			data0: u64(b, 72), data1: u64(b, 80), ninode: u64(b, 88),
		},
		rootgen: u64(b, 96), ctime: u64(b, 104), ctimens: u32(b, 112), compat: u32(b, 116),
	}
	copy(s.uuid[:], b[120:])
	copy(s.key[:], b[136:])
	s.pages = u64(b, 168)
	if err := s.consistent(); err != nil {
		return s, err
	}
	if err := s.parseExtent(b); err != nil {
		return s, err
	}
	used := superUsed
	if n := len(s.runs); n > 0 {
		used = atRuns + runBytes*n
	}
	s.junk = u64(b, 16) != 0 || !zeros(b[used:superSum])
	return s, s.complete()
}

// consistent says whether the regions follow each other, hold what they must, and
// fill the layout.
func (s *superblock) consistent() error {
	g := s.geometry
	ends := []uint64{2, g.ibm, g.bbm, g.itab, g.slot0, g.data1, maxBlocks}
	for i := 1; i < len(ends); i++ {
		if ends[i-1] > ends[i] || i > 1 && ends[i-1] == ends[i] {
			return fmt.Errorf("the regions overlap: they end at %v", ends[1:])
		}
	}
	switch {
	case g.slot0 > g.data0 || g.data0 >= g.data1:
		return fmt.Errorf("the records of replies from block %d on do not end before the data, blocks %d to %d",
			g.slot0, g.data0, g.data1)
	case s.size != g.data1+1:
		return fmt.Errorf("the volume has %d blocks, but its regions end at %d", s.size, g.data1)
	case !s.logFits():
		return fmt.Errorf("a tree of codes of %d pages and a log of %d units and %d blocks do not end at block %d",
			s.pages, s.lognd, s.lognr, g.ibm)
	case !g.inodesFit():
		return fmt.Errorf("%d inodes do not fit their regions", g.ninode)
	case g.data1 > pageBits*(g.itab-g.bbm):
		return fmt.Errorf("the block bitmap is too small for %d blocks", g.data1)
	}
	return nil
}

// logFits says whether the tree of codes and the log have possible sizes, and end where the bitmap of inodes begins.
func (s *superblock) logFits() bool {
	possible := s.pages <= maxBlocks && s.lognd >= 1 && s.lognr >= 1 && s.lognd <= maxBlocks && s.lognr <= maxBlocks
	return possible && 3+2*s.pages+journal.UnitBlocks*s.lognd+s.lognr == s.ibm
}

// inodesFit says whether there is a possible number of inodes, with room for them and for their bits.
func (g *geometry) inodesFit() bool {
	possible := g.ninode > 16 && g.ninode < maxInodes
	return possible && g.ninode <= pageBits*(g.bbm-g.ibm) && g.ninode <= inodesBlock*(g.slot0-g.itab)
}

// readSupers reads both copies: block 0 and the last block of the device. why says for each why it
// cannot be read, if so.
func readSupers(d disk.Disk) (raw [2][]byte, why [2]error, err error) {
	if d.Size() < 8 {
		return raw, why, ErrNotVolume
	}
	for i, a := range []uint64{0, d.Size() - 1} {
		raw[i] = make([]byte, disk.BlockSize)
		why[i] = d.ReadAt(a, [][]byte{raw[i]})
	}
	if why[0] != nil && why[1] != nil {
		err = why[0]
	}
	return raw, why, err
}

// doubt is what is wrong with a copy of a superblock that is believed, and whose volume is not there as a whole.
const doubt = "its copy may be of a volume that was here before: a header of its log or the beginning of its tree of " +
	"codes is gone (tansy repair searches the device for other copies)"

// superblock is the first pass. nil: there is none that can be used.
func (c *checker) superblock(d disk.Disk) (*superblock, error) {
	raw, why, err := readSupers(d)
	if err != nil {
		return nil, err
	}
	parse := func(i int) (*superblock, error) {
		if why[i] != nil {
			c.rep.Unreadable++
			return nil, why[i]
		}
		return parseSuper(raw[i])
	}
	first, err := parse(0)
	if errors.As(err, new(errForeign)) {
		return nil, err
	}
	if err != nil {
		copied, err2 := parse(1)
		if errors.As(err2, new(errForeign)) {
			return nil, err2
		}
		if errors.Is(err, ErrNotVolume) && errors.Is(err2, ErrNotVolume) {
			return nil, ErrNotVolume
		}
		c.problem(0, 0, "block 0: the superblock cannot be used: %v", err)
		if err2 != nil {
			c.problem(0, d.Size()-1, "nor can its copy: %v (if the device has grown since the volume was made, "+
				"tansy repair searches it for the copy)", err2)
			return nil, nil
		}
		first = copied
		if c.doubtful {
			c.problem(0, d.Size()-1, doubt)
		}
	}
	if first.junk && first.compat == 0 { // a feature may have a use for them
		c.problem(0, 0, "the superblock's unused bytes are not zeros")
	}
	if first.ctimens >= 1e9 {
		c.problem(0, 0, "the volume was made at a time with %d nanoseconds", first.ctimens)
	}
	if first.room > d.Size() {
		c.problem(0, 0, "the volume has %d blocks, but the device only %d", first.room, d.Size())
		c.short = true
		return first, nil
	}
	if err == nil { // the copy lies at the end of the volume
		if why := d.ReadAt(first.room-1, [][]byte{raw[1]}); why != nil {
			c.rep.Unreadable++
			c.problem(0, first.size-1, "the copy of the superblock cannot be read: %v", why)
		} else if _, err := parseSuper(raw[1]); err != nil {
			c.problem(0, first.size-1, "the copy of the superblock cannot be used: %v", err)
		} else if !bytes.Equal(raw[0], raw[1]) {
			c.problem(0, first.size-1, "the superblock and its copy differ")
		}
	}
	return first, nil
}
