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
	lists map[fs.Handle]fs.Lists
	grown *bool
}

// fork is a copy that changes on its own.
func (p possible) fork() possible {
	return possible{p.Fork(model.Options{}), maps.Clone(p.attrs), maps.Clone(p.lists), new(*p.grown)}
}

// attr is an extended attribute of a file.
type attr struct {
	file fs.Handle
	name string
}

// atFirst is what there is before the first step.
var atFirst = sync.OnceValue(func() possible {
	p := possible{model.New(model.Options{}), map[attr]bool{}, map[fs.Handle]fs.Lists{}, new(bool)}
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

// regular is an error if a file is no regular one.
func (p possible) regular(h fs.Handle) error {
	a, err := p.Getattr(h)
	if err == nil && a.Type != fs.Regular {
		err = fs.ErrInval
	}
	return err
}

// Allocate is done on a regular file, whatever it has there, and so are PunchHole and ZeroRange.
func (p possible) Allocate(_ *fs.Cred, h fs.Handle, _, _ uint64) error { return p.regular(h) }

// PunchHole is as Allocate.
func (p possible) PunchHole(_ *fs.Cred, h fs.Handle, _, _ uint64) error { return p.regular(h) }

// ZeroRange is as Allocate.
func (p possible) ZeroRange(_ *fs.Cred, h fs.Handle, _, _ uint64) error { return p.regular(h) }

// SetXattr notes that there is an attribute.
func (p possible) SetXattr(h fs.Handle, name, _ []byte, _, _ bool) error {
	p.attrs[attr{h, string(name)}] = true
	return nil
}

// RemoveXattr is refused if there is none.
func (p possible) RemoveXattr(h fs.Handle, name []byte) error {
	if !p.attrs[attr{h, string(name)}] {
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
