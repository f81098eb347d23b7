package check

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

const (
	maxPaths   = 4    // of one problem
	maxPathLen = 4096 // bytes, more or less: behind that the beginning is left out
)

// A place is a name of a file.
type place struct {
	dir  uint64
	name string
}

// ownedRun is a run of blocks that a problem is about.
type ownedRun struct {
	from, to uint64
	problem  int
}

// ownersWanted says that the last problem is about the blocks [from, to).
func (c *checker) ownersWanted(from, to uint64) {
	if c.rep.Unlisted > 0 {
		return
	}
	last := len(c.owned) - 1
	if last < 0 || from < c.owned[last][len(c.owned[last])-1].to { // another pass
		c.owned = append(c.owned, nil)
		last++
	}
	c.owned[last] = append(c.owned[last], ownedRun{from, to, len(c.rep.Problems) - 1})
}

// names is the last pass: it finds the paths of the files that the problems concern.
// A volume without problems has nothing to be looked for.
func (c *checker) names() error {
	if err := c.findOwners(); err != nil {
		return err
	}
	wanted := map[uint64][]place{}
	for _, inos := range c.concerns {
		for _, ino := range inos {
			if ino != rootIno && ino != orphansIno {
				wanted[ino] = nil
			}
		}
	}
	if len(wanted) > 0 {
		if err := c.findPlaces(wanted); err != nil {
			return err
		}
	}
	n := namer{places: wanted, paths: map[uint64]string{rootIno: ""}, none: "(unreachable)"}
	if c.dirsLost {
		n.none = "(no name found)" // there may be one
	}
	files := map[uint64]bool{}
	for i := range c.rep.Problems {
		p := &c.rep.Problems[i]
		for _, ino := range c.concerns[i] {
			if ino == orphansIno {
				continue
			}
			files[ino] = true
			if len(p.Files) >= maxPaths {
				p.More++
			} else {
				p.Files = append(p.Files, n.of(ino)...)
			}
		}
	}
	c.rep.Files = len(files)
	return nil
}

// findOwners adds the inodes that have the blocks of c.owned to their problems. It
// walks over all block trees, as only inodes know which blocks they have.
func (c *checker) findOwners() error {
	if len(c.owned) == 0 {
		return nil
	}
	done := uint64(0)
	return c.tab.each(func(ino uint64, r *record) error {
		done++
		c.progress(done, c.rep.Inodes)
		n, err := c.readInode(ino)
		if asLost(err) != nil {
			return nil
		} else if err != nil {
			return err
		}
		return c.walk(&n, func(b uint64, level int, _ uint64) (bool, error) {
			if b < c.geo.data0 || b >= c.geo.dataEnd {
				return false, nil
			}
			for _, runs := range c.owned {
				i, ok := slices.BinarySearchFunc(runs, b, func(r ownedRun, b uint64) int {
					switch {
					case r.to <= b:
						return -1
					case r.from > b:
						return 1
					}
					return 0
				})
				if ok && !slices.Contains(c.concerns[runs[i].problem], ino) {
					c.concerns[runs[i].problem] = append(c.concerns[runs[i].problem], ino)
				}
			}
			return !c.dups.has(b), nil // a block used twice may lead in a circle
		}, func(uint64, int, uint64, error) {})
	})
}

// findPlaces looks for the names of the inodes in wanted, and of the directories that
// lead to them. Files do not know where they are named, so all directories are read;
// directories know their parents.
func (c *checker) findPlaces(wanted map[uint64][]place) error {
	done := uint64(0)
	var first []uint64 // the directories that name what is wanted
	err := c.tab.each(func(dir uint64, r *record) error {
		done++
		c.progress(done, c.rep.Inodes)
		if r.ty != typeDir {
			return nil
		}
		found, err := c.namesIn(dir, wanted)
		if found {
			first = append(first, dir)
		}
		return err
	})
	for err == nil && len(first) > 0 {
		above := map[uint64]map[uint64][]place{} // parent: the directories to be looked for in it
		for _, dir := range first {
			if _, ok := wanted[dir]; ok || dir == rootIno {
				continue
			}
			wanted[dir] = nil
			parent, ok := c.misplaced[dir]
			if !ok {
				parent = c.tab.get(dir).parent
			}
			if above[parent] == nil {
				above[parent] = map[uint64][]place{}
			}
			above[parent][dir] = nil
		}
		first = first[:0]
		for _, parent := range slices.Sorted(maps.Keys(above)) {
			if r := c.tab.get(parent); r == nil || r.ty != typeDir {
				continue
			}
			if _, err = c.namesIn(parent, above[parent]); err != nil {
				break
			}
			maps.Copy(wanted, above[parent])
			first = append(first, parent)
		}
	}
	return err
}

// namesIn adds the names that a directory has for the inodes in wanted.
func (c *checker) namesIn(dir uint64, wanted map[uint64][]place) (found bool, err error) {
	if c.tab.get(dir).state&stateTree != 0 {
		return false, nil
	}
	n, err := c.readInode(dir)
	if asLost(err) != nil {
		return false, nil
	} else if err != nil {
		return false, err
	}
	err = c.eachDirBlock(&n, func(k, _ uint64, buf []byte, _ error) {
		dirents(k, buf, func(e dirent) {
			if places, ok := wanted[e.ino]; ok && len(places) < maxPaths {
				wanted[e.ino] = append(places, place{dir, string(e.name)})
				found = true
			}
		}, func(int) {})
	})
	return found, err
}

// namer makes paths of places.
type namer struct {
	places map[uint64][]place
	paths  map[uint64]string // of directories; that of the root is empty
	none   string            // instead of a path
}

// of is the paths of a file, quoted.
func (n *namer) of(ino uint64) (paths []string) {
	if ino == rootIno {
		return []string{`"/"`}
	}
	for _, p := range n.places[ino] {
		paths = append(paths, strconv.Quote(n.dir(p.dir)+"/"+p.name))
	}
	if paths == nil {
		return []string{n.none}
	}
	return paths
}

// dir is the path of a directory.
func (n *namer) dir(ino uint64) string {
	if s, ok := n.paths[ino]; ok {
		return s
	}
	n.paths[ino] = fmt.Sprintf("(directory %d)", ino) // for what lies in itself, or nowhere
	if places := n.places[ino]; len(places) > 0 {
		s := n.dir(places[0].dir) + "/" + places[0].name
		if len(s) > maxPathLen {
			s = "(directory " + strconv.FormatUint(places[0].dir, 10) + ")/" + places[0].name
		}
		n.paths[ino] = s
	}
	return n.paths[ino]
}
