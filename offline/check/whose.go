package check

import (
	"fmt"
	"slices"

	"tansy/disk"
	"tansy/internal/volumeend"
)

// Whose returns the paths of the files that the given blocks belong to, quoted and sorted. A block belongs to a file as
// data, as an indirect block, or with its inode. A file without a name is "inode N". The blocks of the bitmaps belong
// to no file. Blocks have the addresses of the layout.
func Whose(d disk.Disk, blocks []uint64) ([]string, error) {
	c, err := newNamer(d)
	if err != nil {
		return nil, err
	}
	c.rep, c.concerns, c.opt.MaxProblems = Report{}, map[int][]uint64{}, 1<<30
	blocks = slices.Clone(blocks)
	slices.Sort(blocks)
	for _, b := range slices.Compact(blocks) {
		switch {
		case b >= c.geo.itab && b < c.geo.data0:
			c.problem(0, b, "inodes")
			for i := range uint64(inodesBlock) {
				if ino := (b-c.geo.itab)*inodesBlock + i; ino != orphansIno && c.tab.get(ino) != nil {
					c.hits(ino)
				}
			}
		case b >= c.geo.data0 && b < c.geo.dataEnd:
			c.problem(0, b, "data")
			c.ownersWanted(b, b+1)
		}
	}
	if err := c.findOwners(); err != nil {
		return nil, err
	}
	owners := map[uint64]bool{}
	for _, inos := range c.concerns {
		for _, ino := range inos {
			owners[ino] = true
		}
	}
	named, err := c.pathsOf(owners)
	var paths []string
	for _, p := range named {
		paths = append(paths, p...)
	}
	slices.Sort(paths)
	return paths, err
}

// Paths returns the paths of files by their inodes, quoted: at most a few of each. A file without a
// name is "inode N".
func Paths(d disk.Disk, inos []uint64) (map[uint64][]string, error) {
	c, err := newNamer(d)
	if err != nil {
		return nil, err
	}
	wanted := map[uint64]bool{}
	for _, ino := range inos {
		wanted[ino] = true
	}
	return c.pathsOf(wanted)
}

// newNamer returns a checker that knows the inodes and directories of the volume on d.
func newNamer(d disk.Disk) (*checker, error) {
	d = volumeend.Bound(d, nil)
	c := newChecker(Options{MaxProblems: 1})
	sb, err := c.superblock(d)
	if err != nil {
		return nil, err
	}
	if sb == nil || c.short {
		return nil, ErrNotVolume
	}
	c.v = c.openLog(c.use(sb, d), sb)
	c.begin()
	if err := c.inodes(); err != nil {
		return nil, err
	}
	return c, c.directories()
}

// pathsOf returns the paths of the given files.
func (c *checker) pathsOf(inos map[uint64]bool) (map[uint64][]string, error) {
	wanted := map[uint64][]place{}
	for ino := range inos {
		if ino != rootIno {
			wanted[ino] = nil
		}
	}
	if err := c.findPlaces(wanted); err != nil {
		return nil, err
	}
	n := namer{places: wanted, paths: map[uint64]string{rootIno: ""}}
	paths := map[uint64][]string{}
	for ino := range inos {
		n.none = fmt.Sprintf("inode %d", ino)
		paths[ino] = n.of(ino)
	}
	return paths, nil
}
