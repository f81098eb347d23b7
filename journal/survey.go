package journal

import (
	"errors"
	"fmt"

	"tansy/disk"
	"tansy/internal/gen/journal/treeofcodes"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
	"tansy/internal/runtime/pages"
	"tansy/internal/runtime/seal"
)

// A Survey says what is in a journal, sound or not. It is for people; recovery is what the
// verified code does.
type Survey struct {
	Headers [2]Header // the header and its copy
	First   uint64    // first live sequence number, if one of the headers is sound
	Root    [2]uint64 // code of the root of the tree of codes, if one of the headers is sound
	Durable uint64    // groups of the log with numbers below this were durable: a sealed descriptor says so
	Groups  []Group   // from the first live number on, up to the last that anything is known of
}

// Sound tells whether one of the two headers is sound.
func (s *Survey) Sound() bool { return s.Headers[0].Sound || s.Headers[1].Sound }

// Last is the number of the last group that anything is known of; 0 if there is none.
func (s *Survey) Last() uint64 {
	if len(s.Groups) == 0 {
		return 0
	}
	return s.Groups[len(s.Groups)-1].Number
}

// Log is the groups that recovery finds: the whole ones, up to the first that is not whole. A group behind them is
// damaged, or was not known to be durable when a crash came.
func (s *Survey) Log() []Group {
	for i := range s.Groups {
		if !s.Groups[i].Sound {
			return s.Groups[:i]
		}
	}
	return s.Groups
}

// Damaged is the first group that is not whole, if a later group says that it was durable. Else it is nil.
func (s *Survey) Damaged() *Group {
	if n := len(s.Log()); n < len(s.Groups) && s.Groups[n].Number < s.Durable {
		return &s.Groups[n]
	}
	return nil
}

// A Header is what one of the two blocks for the header holds.
type Header struct {
	Block uint64
	Sound bool
	First uint64    // first live sequence number
	Root  [2]uint64 // code of the root of the tree of codes
	Err   error     // why the block could not be read
}

// window is how many groups may be written that are not known to be durable: those of the last ones that a crash
// leaves may have numbers larger by as much.
const window = 32

// A Group is what the log has of the blocks that became durable together.
type Group struct {
	Number uint64
	Block  uint64   // of its descriptor
	Sealed bool     // its descriptor is sound
	Sound  bool     // so are its data
	Addrs  []uint64 // if it is sealed: the home addresses of its blocks in the log
	Direct []uint64 // ... and of those that are at home only
	Err    error    // why it could not be read
}

// NewSurvey looks at the journal on d, and changes nothing.
func NewSurvey(d disk.Disk, p Params) (*Survey, error) {
	if err := p.Check(d); err != nil {
		return nil, err
	}
	v := &surveyor{ddisk.New(d), seal.New(p.Key, p.UUID, p.Home()), p}
	s := &Survey{}
	var from *dbytes.Blk
	for i, a := range [2]uint64{p.Start, p.copy()} {
		h, b := v.header(a)
		s.Headers[i] = h
		if h.Sound && (from == nil || h.First > s.First) {
			s.First, s.Root, from = h.First, h.Root, b
		}
	}
	if from == nil {
		return s, nil
	}
	found := map[uint64]Group{}
	last := s.First
	for u := range p.Units {
		g, d := v.descriptor(p.Start + 1 + UnitBlocks*u)
		if !g.Sealed || g.Number < s.First {
			continue
		}
		v.judge(&g, d)
		g.Sound = g.Sound && v.seal.Under(d, from)
		found[g.Number] = g
		s.Durable = max(s.Durable, d.Dur())
		last = max(last, g.Number+1)
	}
	for q := s.First; q < last; q++ {
		g, ok := found[q]
		if !ok {
			g, _ = v.descriptor(p.Start + 1 + UnitBlocks*(q%p.Units))
			g = Group{Number: q, Block: g.Block, Err: g.Err}
		}
		s.Groups = append(s.Groups, g)
		if uint64(len(s.Groups)) > 2*p.Units { // numbers of another life of the volume
			break
		}
	}
	return s, nil
}

// Present tells whether a sound header of journal p is on d. If so, the rest is of the same volume, and not of another.
func Present(d disk.Disk, p Params) bool {
	if p.Check(d) != nil {
		return false
	}
	v := &surveyor{ddisk.New(d), seal.New(p.Key, p.UUID, p.Home()), p}
	first, _ := v.header(p.Start)
	second, _ := v.header(p.copy())
	return first.Sound || second.Sound
}

// Begins tells whether the beginning of journal p is on d as well: the first page of the tree of codes of a sound
// header. A volume over which another, smaller one was written may still have its headers, but not this.
func Begins(d disk.Disk, p Params) bool {
	if p.Pages == 0 || p.Check(d) != nil {
		return Present(d, p)
	}
	dd, s := ddisk.New(d), seal.New(p.Key, p.UUID, p.Home())
	v := &surveyor{dd, s, p}
	for _, a := range []uint64{p.Start, p.copy()} {
		h, _ := v.header(a)
		if !h.Sound {
			continue
		}
		if h.Root == [2]uint64{} { // nothing has come home yet
			return true
		}
		inMemory := pages.New(codePages)
		tree := p.tree(dd, s, inMemory, d.Size())
		inMemory.Begin(h.Root[0], h.Root[1])
		version, r0, r1 := inMemory.Root()
		if ok, _, _, _ := treeofcodes.Page(tree, 0, version, r0, r1); ok {
			return true
		}
	}
	return false
}

type surveyor struct {
	d    *ddisk.Disk
	seal *seal.Seal
	p    Params
}

func (v *surveyor) header(a uint64) (Header, *dbytes.Blk) {
	h := Header{Block: a}
	ok, b := v.d.Read(a)
	if !ok {
		h.Err = v.d.ReadErr()
		return h, nil
	}
	h.Sound, h.First = v.seal.DecHdr(b)
	h.Root[0], h.Root[1] = v.seal.Root(b)
	return h, b
}

// descriptor looks at the first block of the unit that begins at block a.
func (v *surveyor) descriptor(a uint64) (g Group, d *seal.Descriptor) {
	g.Block = a
	ok, b := v.d.Read(a)
	if !ok {
		g.Err = v.d.ReadErr()
		return g, nil
	}
	d = seal.Parse(b)
	if d == nil || !v.seal.Vouch(d) {
		return g, nil
	}
	g.Number, g.Sealed = d.Sq(), true
	for i := range d.N() {
		g.Addrs = append(g.Addrs, d.Addr(i))
	}
	for i := range d.M() {
		g.Direct = append(g.Direct, d.Dir(i))
	}
	return g, d
}

// judge looks at the data of a group with descriptor d.
func (v *surveyor) judge(g *Group, d *seal.Descriptor) {
	ring, direct, err := v.data(d, g.Block)
	g.Err = err
	g.Sound = err == nil && v.seal.Check(d, ring, &ddisk.BList{}, direct, codes.New())
}

// data reads the blocks of a group whose descriptor is in block a: those in the log, and the direct ones.
func (v *surveyor) data(d *seal.Descriptor, a uint64) (ring, direct *ddisk.BList, err error) {
	at := make([]uint64, 0, d.N()+d.M())
	for i := range d.N() {
		if d.N() < UnitBlocks {
			at = append(at, a+1+i)
		} else {
			at = append(at, v.p.Start+1+UnitBlocks*v.p.Units+(d.Pos()+i)%v.p.Ring)
		}
	}
	for i := range d.M() {
		at = append(at, d.Dir(i))
	}
	l := &ddisk.BList{}
	for len(at) > 0 {
		n := 1
		for n < len(at) && at[n] == at[0]+uint64(n) {
			n++
		}
		if at[n-1] >= v.d.Size() {
			return nil, nil, fmt.Errorf("block %d lies behind the device's end", at[n-1])
		}
		ok, run := v.d.ReadRun(at[0], uint64(n))
		if !ok {
			return nil, nil, v.d.ReadErr()
		}
		l.Blks = append(l.Blks, run.Blks...)
		at = at[n:]
	}
	return &ddisk.BList{Blks: l.Blks[:d.N()]}, &ddisk.BList{Blks: l.Blks[d.N():]}, nil
}

// diagnose says why recovery refuses the journal on d; lied: for what it read of the log.
func diagnose(d disk.Disk, p Params, lied bool) error {
	s, err := NewSurvey(d, p)
	if err != nil {
		return err
	}
	if !s.Sound() {
		var why []error
		for _, h := range s.Headers {
			if h.Err != nil {
				why = append(why, h.Err)
			}
		}
		return errors.Join(append([]error{fmt.Errorf("%w: neither block %d nor block %d holds the header of the log",
			ErrDamaged, s.Headers[0].Block, s.Headers[1].Block)}, why...)...)
	}
	g := s.Damaged()
	switch {
	case g == nil && lied:
		return fmt.Errorf("%w: the device returned other contents of the log when it was read again; "+
			"nothing was changed: try once more, and mistrust the device", ErrDamaged)
	case g == nil:
		return fmt.Errorf("%w: the log's numbers are used up", ErrDamaged)
	}
	last := s.Last()
	err = fmt.Errorf("%w: group %d of the log, in block %d, cannot be read, but group %d behind it can: "+
		"%d group commits that were acknowledged would be lost; nothing was changed",
		ErrDamaged, g.Number, g.Block, last, last-g.Number+1)
	if g.Err != nil {
		err = fmt.Errorf("%w: %w", err, g.Err)
	}
	return err
}
