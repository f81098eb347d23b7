package crash

import (
	"context"
	"maps"
	"slices"
	"sync"

	"tansy/fs"
	"tansy/fs/model"
)

// possible tells by the plain model of the file system which steps succeed. It has what a mount does beyond NFS, so far
// as that tells. A sequence with a step that is refused is not run.
type possible struct {
	*model.Model
	attrs map[attr]bool // that there are
	flags map[fs.Handle]uint32
	grown *bool
}

// fork is a copy that changes on its own.
func (p possible) fork() possible {
	return possible{p.Fork(model.Options{}), maps.Clone(p.attrs), maps.Clone(p.flags), new(*p.grown)}
}

// attr is an extended attribute of a file.
type attr struct {
	file fs.Handle
	name string
}

// atFirst is what there is before the first step.
var atFirst = sync.OnceValue(func() possible {
	p := possible{model.New(model.Options{}), map[attr]bool{}, map[fs.Handle]uint32{}, new(bool)}
	for _, s := range first {
		if err := s.do(p); err != nil {
			panic("a step that is always done is refused: " + err.Error())
		}
	}
	return p
})

// refused is the first step that does not succeed, or -1.
func refused(steps []Step) int {
	p := atFirst().fork()
	return slices.IndexFunc(steps, func(s Step) bool { return s.do(p) != nil })
}

// Allocate makes a file long enough for a range.
func (p possible) Allocate(who *fs.Cred, h fs.Handle, off, n uint64) error {
	a, err := p.Getattr(h)
	end := off + n
	switch {
	case err != nil:
	case a.Type != fs.Regular:
		err = fs.ErrInval
	case p.immutable(h):
		err = fs.ErrPerm
	case end > a.Size:
		_, err = p.Model.Setattr(who, h, &fs.SetAttr{Size: &end}, nil)
	}
	return err
}

// PunchHole makes zeros of what there is of a range. What is a hole already, fs punches whatever flags say; here they
// forbid that, too, and so the sequence is not run.
func (p possible) PunchHole(who *fs.Cred, h fs.Handle, off, n uint64) error {
	a, err := p.Getattr(h)
	switch {
	case err != nil || a.Type == fs.Regular && off >= a.Size:
		return err
	case a.Type == fs.Regular && p.fixed(h):
		return fs.ErrPerm
	}
	_, _, _, err = p.Model.Write(who, h, off, make([]byte, min(n, a.Size-off)), fs.Unstable)
	return err
}

// ZeroRange makes zeros of a range.
func (p possible) ZeroRange(who *fs.Cred, h fs.Handle, off, n uint64) error {
	_, _, _, err := p.Write(who, h, off, make([]byte, n), fs.Unstable)
	return err
}

// SetXattr notes that there is an attribute.
func (p possible) SetXattr(h fs.Handle, name, _ []byte, _, _ bool) error {
	if p.fixed(h) {
		return fs.ErrPerm
	}
	p.attrs[attr{h, string(name)}] = true
	return nil
}

// RemoveXattr is refused if there is none.
func (p possible) RemoveXattr(h fs.Handle, name []byte) error {
	switch {
	case p.fixed(h):
		return fs.ErrPerm
	case !p.attrs[attr{h, string(name)}]:
		return fs.ErrNoEnt
	}
	delete(p.attrs, attr{h, string(name)})
	return nil
}

// Grow is refused a second time: the device has no more.
func (p possible) Grow(context.Context, fs.GrowOptions) (g fs.Growth, err error) {
	if *p.grown {
		err = fs.ErrNoMore
	}
	*p.grown = true
	return g, err
}

// Sync is never refused.
func (p possible) Sync() error { return nil }
