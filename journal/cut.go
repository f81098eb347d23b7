package journal

import (
	"cmp"
	"slices"

	"tansy/disk"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/pages"
	"tansy/internal/runtime/seal"
)

// Sealed returns every group of the log on d whose descriptor is sound, in the order of the numbers. Live and old
// groups of any epoch are among them, and no header is needed. Entries with an Err and no Sealed are units whose first
// block cannot be read.
func Sealed(d disk.Disk, p Params) ([]Group, error) {
	if err := p.Check(d); err != nil {
		return nil, err
	}
	v := &surveyor{ddisk.New(d), seal.New(p.Key, p.UUID, p.Home()), p}
	var found []Group
	for u := range p.Units {
		g, d := v.descriptor(p.Start + 1 + UnitBlocks*u)
		if g.Sealed {
			v.judge(&g, d)
		}
		if g.Sealed || g.Err != nil {
			found = append(found, g)
		}
	}
	slices.SortFunc(found, func(a, b Group) int { return cmp.Compare(a.Number, b.Number) })
	return found, nil
}

// Cut makes the log on d end before group n, durably. Recovery finds no group with that number or a larger one, of any
// epoch. Their contents are lost, and so is what the log has in units that cannot be read. It is for repairs: the
// journal must not be open.
func Cut(d disk.Disk, p Params, n uint64) error {
	groups, err := Sealed(d, p)
	if err != nil {
		return err
	}
	zeros := [][]byte{make([]byte, disk.BlockSize)}
	for _, g := range groups {
		if g.Sealed && g.Number < n {
			continue
		}
		if err := d.WriteAt(g.Block, zeros); err != nil {
			return err
		}
	}
	return d.Barrier()
}

// Restart makes the log on d an empty one, durably. What the log had that is not home is lost. All of the tree of codes
// is made anew as by Rebuild, because its root was in the headers. It is for a log that has lost both headers: the
// journal must not be open.
func Restart(d disk.Disk, p Params) (Rebuilt, error) {
	var done Rebuilt
	groups, err := Sealed(d, p)
	if err != nil {
		return done, err
	}
	next := uint64(1)
	for _, g := range groups {
		if !g.Sealed { // recovery reads every unit
			if err := d.WriteAt(g.Block, [][]byte{make([]byte, disk.BlockSize)}); err != nil {
				return done, err
			}
		}
		next = max(next, g.Number+1)
	}
	s := seal.New(p.Key, p.UUID, p.Home())
	s.NewEpoch()
	var root [2]uint64
	if p.Pages > 0 {
		b := &rebuilder{d: d, t: p.tree(ddisk.New(d), s, pages.New(0), d.Size()), done: &done}
		if root, err = b.page(p.Pages - 1); err != nil {
			return done, err
		}
		done.Homes = joined(done.Homes)
	}
	// behind all numbers that a group may have: torn ones may have left nothing
	return done, writeHeaders(d, p, s.EncHdr(next+window, root[0], root[1]))
}
