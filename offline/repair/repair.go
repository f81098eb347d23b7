// Package repair makes a damaged volume one that package check finds nothing wrong with, as far
// as what is left of it allows.
//
// A repair is tried in memory first. NewPlan does that, and says what a repair does, which files
// that concerns, and what it leaves. Plan.Apply does the same on the device, after it has
// written an undo file with the old contents of each block that it overwrites; Undo puts them back.
//
// The steps:
//
//	superblock    from its copy, and the reverse
//	log           its header from the copy, and the reverse; cut at a group that is damaged
//	codes         pages of the tree of codes that are lost are made anew from what is home
//	recovery      by the journal, as when the volume is served
//	inodes        impossible fields
//	block trees   pointers that lead nowhere; blocks of two files; extended attributes that are damaged, or of no file
//	directories   impossible entries; two names of a directory, circles
//	links         counts, the orphan list
//	bitmaps       made what was found
//	lost+found    gets the files without a name
//
// From recovery on, everything goes through the journal: what changes together is atomic, and a repair
// that a crash interrupts is finished by another one. Nothing is freed while some
// inode or block tree cannot be read, and no file loses its name for its neighbour's sake.
//
// A block that is not what was last written there is told by its code. Bitmaps are made anew, inodes, directories and
// indirect blocks are made sound, and count from then on. The contents of files are left alone: reading
// them fails, unless Options.AcceptDamaged takes them as they are.
//
// This is plain Go, tested and not proved, but for the journal and the directories that it uses.
// It takes memory for what it changes, a bit for every used block, and some 150 bytes for each inode
// in use.
package repair

import (
	"fmt"
	"log/slog"
	"strings"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/volumeend"
	"tansy/journal"
	"tansy/offline/check"
)

// An Action is one thing that a repair does.
type Action struct {
	Ino   uint64 // the inode concerned, or 0
	Text  string
	Files []string // the paths of the files concerned, quoted
}

// String is one line: where, what, and the files.
func (a Action) String() string {
	s := a.Text
	if a.Ino != 0 {
		s = fmt.Sprintf("inode %d: %s", a.Ino, s)
	}
	if len(a.Files) > 0 {
		s += " [" + strings.Join(a.Files, ", ") + "]"
	}
	return s
}

// A Plan is a repair that was tried in memory.
type Plan struct {
	Before  check.Report // what is wrong
	Actions []Action     // what is done about it, in this order
	After   check.Report // what is left
	blocks  []uint64     // of the device, that are written
	uuid    [16]byte
	head    uint64 // block of the device with the log's header
	opts    Options
}

// Options say what a repair may do.
type Options struct {
	// AcceptDamaged takes the contents of files as they are where they are not what was last written:
	// reading them succeeds from then on.
	AcceptDamaged bool
	// ForgetLists takes access lists away that no file has, so that others find room.
	ForgetLists bool
}

// NewPlan finds out what a repair of the volume on d does, and writes nothing. It reads all that is in use. A clean
// volume has no Actions. The error says why the volume cannot be repaired: it has no superblock, or the device fails
// every read.
func NewPlan(d disk.Disk, opts Options) (*Plan, error) {
	d = volumeend.Bound(d, nil)
	p := &Plan{opts: opts}
	var err error
	if p.Before, err = check.Volume(d, check.Options{Data: true}); err != nil {
		return nil, err
	}
	if p.Before.Clean() && p.Before.Leftovers == 0 && !opts.ForgetLists {
		p.After = p.Before
		return p, nil
	}
	o := newOverlay(d)
	r := &run{d: o, Options: opts, names: true}
	if err := r.steps(); err != nil {
		return nil, err
	}
	p.Actions, p.blocks, p.uuid, p.head = r.actions, o.written(), volumeend.UUID(r.sb), headOf(r.sb)
	if err := p.nameFiles(o); err != nil {
		return nil, err
	}
	p.After, err = check.Volume(o, check.Options{Data: true})
	return p, err
}

// nameFiles adds the paths, as the repair leaves them, to the actions.
func (p *Plan) nameFiles(d disk.Disk) error {
	var inos []uint64
	for _, a := range p.Actions {
		if a.Ino > orphansIno {
			inos = append(inos, a.Ino)
		}
	}
	if len(inos) == 0 {
		return nil
	}
	paths, err := check.Paths(d, inos)
	if err != nil {
		return err
	}
	for i, a := range p.Actions {
		if a.Ino > orphansIno {
			p.Actions[i].Files = paths[a.Ino]
		}
	}
	return nil
}

// Apply does the repair on d, which must be as it was for NewPlan. It writes the undo file first. The result is what is
// left. If it fails on the way, Undo goes back, and another repair goes on.
func (p *Plan) Apply(d disk.Disk, undo string) (check.Report, error) {
	d = volumeend.Bound(d, nil)
	u, err := newUndo(undo, p.uuid, p.head, d, p.blocks)
	if err != nil {
		return check.Report{}, err
	}
	r := &run{d: u, Options: p.opts}
	err = r.steps()
	if err == nil {
		err = u.finish()
	}
	if e := u.file.Close(); err == nil {
		err = e
	}
	if err != nil {
		return check.Report{}, err
	}
	return check.Volume(d, check.Options{Data: true})
}

// run is a repair under way, in memory or not.
type run struct {
	Options
	d       disk.Disk // the device
	layout  disk.Disk // of the volume on it
	names   bool      // the files that lost groups touch are wanted
	sb      superblockformat.Super
	actions []Action
}

func (r *run) did(ino uint64, format string, args ...any) {
	r.actions = append(r.actions, Action{Ino: ino, Text: fmt.Sprintf(format, args...)})
}

// openJournal recovers the journal of a volume, whose layout is d.
func openJournal(d disk.Disk, s superblockformat.Super) (*journal.Journal, error) {
	return journal.Open(d, volumeend.Journal(s), journal.Options{Log: slog.New(slog.DiscardHandler)})
}

// maxRounds bounds how often the volume is gone over: a repair may bring something to light.
const maxRounds = 4

func (r *run) steps() error {
	if err := r.superblock(); err != nil {
		return err
	}
	if err := r.log(); err != nil {
		return err
	}
	if err := r.codes(); err != nil {
		return err
	}
	if err := r.rounds(); err != nil || !r.AcceptDamaged {
		return err
	}
	some, err := r.acceptData()
	if err != nil || !some {
		return err
	}
	return r.rounds() // what was accepted may go on behind the end of its file
}

func (r *run) rounds() error {
	for range maxRounds {
		again, err := r.round()
		if err != nil || !again {
			return err
		}
	}
	return nil
}

// A round goes over the whole volume once.
type round struct {
	*run
	v     *volume
	nodes map[uint64]*node // the inodes in use

	inodesLost, treesLost, dirsLost bool // some cannot be read

	lists     map[uint32]bool // the access lists that the table has
	listsLost bool            // some of the table cannot be read
	used      map[uint32]bool // the access lists that files have, once they were looked for

	wanted, taken bitset            // blocks that trees refer to, before and after trees were made sound
	owner         map[uint64]uint64 // of the blocks that several claim
	nextFree      uint64
	unnamed       []uint64 // files for lost+found
}

func (r *run) round() (again bool, err error) {
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
	x := &round{run: r, nodes: map[uint64]*node{}, v: v, lists: map[uint32]bool{}}
	if err := x.inodes(); err != nil {
		return false, err
	}
	if x.nodes[rootIno] == nil {
		return false, fmt.Errorf("block %d, with the inode of the root directory, cannot be read", x.v.itab)
	}
	if err := x.records(); err != nil {
		return false, err
	}
	x.trees()
	x.missingLists()
	x.directories()
	x.parents()
	x.kept()
	x.links()
	x.orphans()
	if err := x.bitmaps(); err != nil {
		return false, err
	}
	if err := x.keepDamaged(); err != nil {
		return false, err
	}
	again, err = x.v.flush(j)
	if err != nil || len(x.unnamed) == 0 {
		return again, err
	}
	some, err := x.attach(j, r.sb)
	return again || some, err
}
