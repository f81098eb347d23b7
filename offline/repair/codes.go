package repair

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/layout"
	"tansy/internal/volumeend"
	"tansy/journal"
	"tansy/offline/check"
)

// codes makes pages of the tree of codes that are lost anew. The log is one that recovery accepts.
func (r *run) codes() error {
	done, err := journal.Rebuild(r.layout, volumeend.Journal(r.sb))
	if err != nil {
		return err
	}
	for _, a := range done.Misplaced {
		r.did(0, "the page of the tree of codes that belongs to block %d is put there", a)
	}
	if len(done.Lost) == 0 {
		return nil
	}
	text := fmt.Sprintf("pages of the tree of codes are damaged (%s): they are made anew from what is home",
		list(done.Lost))
	if len(done.Homes) == 0 {
		text += ", which is zeros"
	} else {
		text += ". Whether that is what was last written there is not known any more: blocks " + ranges(done.Homes)
	}
	return r.tell(text, "", members(done.Homes))
}

// maxNamed bounds the blocks whose files are looked for.
const maxNamed = 1 << 16

// members lists the blocks of ranges, or nothing if they are too many.
func members(rs []journal.Range) (blocks []uint64) {
	for _, r := range rs {
		for a := r.From; a < r.To; a++ {
			if blocks = append(blocks, a); len(blocks) > maxNamed {
				return nil
			}
		}
	}
	return blocks
}

// tell tells of something done, with the files that have some of blocks; if there are any, then is added.
func (r *run) tell(text, then string, blocks []uint64) error {
	a := Action{Text: text}
	if r.names && len(blocks) > 0 {
		files, err := check.Whose(r.d, blocks)
		if err != nil {
			return err
		}
		if a.Files = files; len(files) > 0 {
			a.Text += then
		}
	}
	r.actions = append(r.actions, a)
	return nil
}

// maxListed bounds lists of blocks in texts.
const maxListed = 20

func list(blocks []uint64) string {
	var s []string
	for _, a := range blocks[:min(len(blocks), maxListed)] {
		s = append(s, fmt.Sprint(a))
	}
	return some("block", s, len(blocks))
}

func ranges(rs []journal.Range) string {
	var s []string
	for _, r := range rs[:min(len(rs), maxListed)] {
		if r.To == r.From+1 {
			s = append(s, fmt.Sprint(r.From))
		} else {
			s = append(s, fmt.Sprintf("%d-%d", r.From, r.To-1))
		}
	}
	return some("", s, len(rs))
}

// some joins the first of n things.
func some(what string, first []string, n int) string {
	s := strings.Join(first, ", ")
	if n > len(first) {
		s += fmt.Sprintf(", and %d more", n-len(first))
	}
	if what == "" {
		return s
	}
	if n > 1 {
		what += "s"
	}
	return what + " " + s
}

// volume is the volume whose layout is r.layout, of which the log is empty.
func (r *run) volume() (*volume, error) {
	v := newVolume(r.layout, geometryIn(r.sb))
	p := volumeend.Journal(r.sb)
	if p.Pages == 0 {
		return v, nil
	}
	var err error
	if v.codes, err = journal.Inspect(r.layout, p); err != nil {
		return nil, err
	}
	v.coded = bitset{}
	for page := range v.codes.Pages() {
		for _, a := range page.Homes {
			if a < v.data0 {
				v.coded.add(a)
			}
		}
	}
	return v, nil
}

func geometryIn(s superblockformat.Super) geometry {
	g := s.Geometry()
	return geometry{
		ibm: g.InodeBitmap(), bbm: g.BlockBitmap(), itab: g.InodeTable(),
		slot0: g.Slot0(), data0: g.Data0(), dataEnd: s.Extent().DataEnd(),
		ninode: g.Ninode(), inodeEnd: s.Extent().InodeEnd(), rootgen: s.Rootgen(),
	}
}

// keepDamaged has the blocks that are not what was last written there, and that the repair has gone through, written
// anew: what they hold now counts.
func (r *round) keepDamaged() error {
	v := r.v
	kinds := []struct {
		what, then string
		from, to   uint64
		blocks     []uint64
	}{
		{
			what: "bitmaps",
			from: v.ibm, to: v.itab,
		}, {
			what: "inodes",
			then: "; these files may be others, or older ones, than they were",
			from: v.itab, to: v.slot0,
		}, {
			what: "records of replies",
			then: "; they are forgotten: calls that clients send again may be done twice",
			from: v.slot0, to: v.data0,
		}, {
			what: "directories or block numbers of files",
			then: "; these may lack or have what they should not",
			from: v.data0, to: v.dataEnd,
		},
	}
	for _, a := range slices.Sorted(maps.Keys(v.damaged)) {
		v.edit(a)
		for i := range kinds {
			if k := &kinds[i]; k.from <= a && a < k.to {
				k.blocks = append(k.blocks, a)
			}
		}
	}
	for _, k := range kinds {
		if len(k.blocks) == 0 {
			continue
		}
		text := fmt.Sprintf("%s with %s: not what was last written there; made sound, and taken for true from now on",
			list(k.blocks), k.what)
		named := k.blocks
		if k.to == v.itab {
			named = nil
		}
		if err := r.tell(text, k.then, named); err != nil {
			return err
		}
	}
	return nil
}

// acceptData takes the contents of files that are not what was last written as they are. some: there were any.
func (r *run) acceptData() (some bool, err error) {
	j, err := openJournal(r.layout, r.sb)
	if err != nil {
		return false, err
	}
	defer func() {
		if e := j.Close(); err == nil {
			err = e
		}
	}()
	v, err := r.volume()
	if err != nil {
		return false, err
	}
	buf := make([]byte, disk.BlockSize)
	e := v.scan(v.itab, v.slot0, nowhere, func(a uint64, b []byte) {
		for i := uint64(0); b != nil && i < layout.InodesBlock && err == nil; i++ {
			ino := (a-v.itab)*layout.InodesBlock + i
			n := v.inode(ino)
			if ty := n.w(layout.Type); ty != typeReg && ty != typeLnk {
				continue
			}
			var bad []uint64
			var ws []journal.Write
			v.walk(n, func(_, b uint64) {
				if err != nil || v.d.ReadAt(b, [][]byte{buf}) != nil || v.genuine(b, buf) {
					return
				}
				bad = append(bad, b)
				if ws = append(ws, journal.Write{Addr: b, Data: slices.Clone(buf)}); len(ws) == journal.MaxBlocks {
					err = j.Commit(ws, true)
					ws = nil
				}
			})
			if err == nil && len(ws) > 0 {
				err = j.Commit(ws, true)
			}
			if len(bad) > 0 {
				some = true
				r.did(ino, "contents of the file in %s, not what was last written there, are taken as they are", list(bad))
			}
		}
	})
	if err == nil {
		err = e
	}
	return some, err
}
