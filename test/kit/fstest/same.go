package fstest

import (
	"bytes"
	"fmt"

	"tansy/fs"
)

// What it means that two results are the same.

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func sameErr(a, b error) error {
	if a != b {
		return fmt.Errorf("results %v and %v", a, b)
	}
	return nil
}

func sameBytes(a, b []byte) error {
	if bytes.Equal(a, b) {
		return nil
	}
	if len(a) != len(b) {
		return fmt.Errorf("%d and %d bytes of data", len(a), len(b))
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	return fmt.Errorf("data differs from byte %d of %d on: % x and % x", i, len(a), a[i:min(len(a), i+8)],
		b[i:min(len(b), i+8)])
}

func (c *Comparer) sameNode(x, y fs.Node, errA, errB error) error {
	if err := sameErr(errA, errB); err != nil {
		return err
	}
	if errA == nil {
		if err := first(c.sameAttr(&x.Attr, &y.Attr), c.learn(x.Handle, y.Handle)); err != nil {
			return err
		}
		if y.Attr.Ino != y.Handle.Ino || y.Attr.Gen != y.Handle.Gen {
			return fmt.Errorf("handle %v with attributes of inode %d, generation %d", y.Handle, y.Attr.Ino, y.Attr.Gen)
		}
	}
	return first(c.sameWCC(x.Dir, y.Dir), c.sameAttr(x.Parent.OrNil(), y.Parent.OrNil()))
}

// sameWCC compares what both have; b may leave out the attributes before.
func (c *Comparer) sameWCC(a, b fs.WCC) error {
	if err := c.sameAttr(a.After, b.After); err != nil {
		return fmt.Errorf("after: %w", err)
	}
	if a.Before != nil && b.Before != nil {
		x, y := a.Before, b.Before
		if c.opt.Clock != nil && (x.Mtime != y.Mtime || x.Ctime != y.Ctime) {
			return fmt.Errorf("before: times %v %v and %v %v", x.Mtime, x.Ctime, y.Mtime, y.Ctime)
		}
		if a.After != nil && a.After.Type == fs.Regular && x.Size != y.Size {
			return fmt.Errorf("before: size %d and %d", x.Size, y.Size)
		}
	}
	return nil
}

// sameAttr compares all that is specified. Both may be nil; b alone may not.
func (c *Comparer) sameAttr(a, b *fs.Attr) error {
	if a == nil || b == nil {
		if (a == nil) != (b == nil) {
			return fmt.Errorf("attributes: %v and %v", a, b)
		}
		return nil
	}
	x, y := *a, *b
	if err := c.sameUsed(a, b); err != nil {
		return err
	}
	if x.Type == fs.Directory {
		x.Size, y.Size = 0, 0
	}
	for _, p := range []*fs.Attr{&x, &y} {
		p.Used, p.Ino, p.Gen = 0, 0, 0
		if c.opt.Clock == nil {
			p.Atime, p.Mtime, p.Ctime = fs.Time{}, fs.Time{}, fs.Time{}
		}
	}
	if x != y {
		return fmt.Errorf("attributes:\n    %+v\n    %+v", x, y)
	}
	return nil
}

// sameUsed checks what is specified of Used: of a file, the room of the blocks that it has, and after a cut up to that
// of those that were cut off, but not more than the size has. What a file has only the model tells exactly.
func (c *Comparer) sameUsed(a, b *fs.Attr) error {
	whole := (b.Size + fs.BlockSize - 1) / fs.BlockSize * fs.BlockSize
	least, most := uint64(0), whole
	m, ok := c.a.(interface{ Waiting(ino uint64) uint64 })
	switch {
	case b.Type == fs.Symlink:
		least = fs.BlockSize
	case b.Type == fs.Regular && ok:
		least, most = a.Used, min(whole, a.Used+m.Waiting(a.Ino)*fs.BlockSize)
	}
	if b.Used%fs.BlockSize != 0 || b.Used < least || b.Used > most {
		return fmt.Errorf("used is %d, not %d to %d, of %d bytes", b.Used, least, most, b.Size)
	}
	return nil
}
