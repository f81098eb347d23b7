package fstest

import (
	"fmt"
	"sort"

	"tansy/fs"
)

// Comparing directories and whole trees.

// list compares whole directories, read in pages of different sizes.
func (c *Comparer) list(cred *fs.Cred, i int) error {
	o := c.objs[i]
	plus := c.rnd.Intn(2) == 0
	size := func(n int) int { return 160 + n }
	c.note("list %d plus %v as %v", i, plus, *cred)
	small := fs.Limit{Bytes: 600 + c.rnd.Intn(2000), Size: size}
	if plus && c.rnd.Intn(2) == 0 {
		small.DirBytes, small.DirSize = c.rnd.Intn(300), func(n int) int { return 24 + n }
	}
	x, errA := listAll(c.a, cred, o.a, plus, fs.Limit{Bytes: 1 << 20, Size: size})
	y, errB := listAll(c.b, cred, o.b, plus, small)
	if errA != nil || errB != nil {
		return sameErr(errA, errB)
	}
	if len(x) != len(y) {
		return fmt.Errorf("list: %d and %d entries", len(x), len(y))
	}
	byName := func(l []fs.Entry) {
		sort.Slice(l, func(i, j int) bool { return string(l[i].Name) < string(l[j].Name) })
	}
	byName(x)
	byName(y)
	for k := range x {
		if string(x[k].Name) != string(y[k].Name) {
			return fmt.Errorf("list: name %q and %q", x[k].Name, y[k].Name)
		}
		if !plus {
			continue
		}
		if err := c.sameAttr(x[k].Attr, y[k].Attr); err != nil {
			return fmt.Errorf("list: %q: %w", x[k].Name, err)
		}
		if y[k].Attr != nil {
			if y[k].Attr.Ino != y[k].Ino {
				return fmt.Errorf("list: %q: inode %d, attributes of %d", y[k].Name, y[k].Ino, y[k].Attr.Ino)
			}
			if err := c.learn(x[k].Handle, y[k].Handle); err != nil {
				return fmt.Errorf("list: %q: %w", x[k].Name, err)
			}
		}
	}
	return nil
}

// oddList asks for a page that is too small, or with a strange verifier. Of the
// entries only the first can be compared: the order is not specified.
func (c *Comparer) oddList(cred *fs.Cred, i int) error {
	o := c.objs[i]
	cookie, verf, plus, maxBytes := uint64(c.rnd.Intn(3)), uint64(c.rnd.Intn(2)), c.rnd.Intn(2) == 0, []int{-1, 0, 10,
		4096}[c.rnd.Intn(4)]
	c.note("list %d from cookie %d, verifier %d, %d bytes, plus %v, as %v", i, cookie, verf, maxBytes, plus, *cred)
	size := func(n int) int { return 24 + n }
	x, errA := c.a.Readdir(cred, o.a, cookie, verf, plus, fs.Limit{Bytes: maxBytes, Size: size})
	y, errB := c.b.Readdir(cred, o.b, cookie, verf, plus, fs.Limit{Bytes: maxBytes, Size: size})
	if err := first(sameErr(errA, errB), c.sameAttr(x.Dir, y.Dir)); err != nil || errA != nil {
		return err
	}
	if (len(x.Entries) > 0) != (len(y.Entries) > 0) {
		return fmt.Errorf("list: %d and %d entries", len(x.Entries), len(y.Entries))
	}
	if cookie < 2 && len(x.Entries) > 0 && (x.Entries[0].Cookie != y.Entries[0].Cookie || string(x.Entries[0].Name) != string(y.Entries[0].Name)) {
		return fmt.Errorf("list: starts with %q and %q", x.Entries[0].Name, y.Entries[0].Name)
	}
	return nil
}

// listAll reads a directory page by page and checks that it makes progress.
func listAll(f fs.FileSystem, cred *fs.Cred, dir fs.Handle, plus bool, lim fs.Limit) (all []fs.Entry, err error) {
	cookie, verf := uint64(0), uint64(0)
	seen := map[string]bool{}
	for {
		l, err := f.Readdir(cred, dir, cookie, verf, plus, lim)
		if err != nil {
			return nil, err
		}
		names := 0
		for i, e := range l.Entries {
			if lim.DirSize != nil {
				names += lim.DirSize(len(e.Name))
				if i > 0 && names > lim.DirBytes {
					return nil, fmt.Errorf("list: %d bytes of names within %d", names, lim.DirBytes)
				}
			}
			if seen[string(e.Name)] {
				return nil, fmt.Errorf("list: %q twice", e.Name)
			}
			seen[string(e.Name)] = true
			all = append(all, e)
			cookie = e.Cookie
		}
		verf = l.Verf
		if l.EOF {
			return all, nil
		}
		if len(l.Entries) == 0 {
			return nil, fmt.Errorf("list: an empty page before the end")
		}
	}
}

// CompareTrees walks both file systems from the root as user 0 and compares
// every attribute and every byte.
func (c *Comparer) CompareTrees() error {
	root := &fs.Cred{}
	done := map[int]bool{}
	queue := []int{0}
	for len(queue) > 0 {
		i := queue[0]
		queue = queue[1:]
		if done[i] {
			continue
		}
		done[i] = true
		o := c.objs[i]
		x, errA := c.a.Getattr(o.a)
		y, errB := c.b.Getattr(o.b)
		if err := first(sameErr(errA, errB), c.sameAttr(&x, &y)); err != nil {
			return err
		}
		switch x.Type {
		case fs.Regular:
			size := min(x.Size, uint64(c.opt.MaxOffset+c.opt.MaxWrite))
			for off := uint64(0); off < size; off += 1 << 16 {
				if err := c.read(root, i, off, 1<<16); err != nil {
					return err
				}
			}
		case fs.Symlink:
			s, _, errA := c.a.Readlink(root, o.a)
			t, _, errB := c.b.Readlink(root, o.b)
			if err := first(sameErr(errA, errB), sameBytes(s, t)); err != nil {
				return err
			}
		case fs.Directory:
			if err := c.list(root, i); err != nil {
				return err
			}
			names, err := listAll(c.a, root, o.a, false, fs.Limit{Bytes: 1 << 20, Size: func(int) int { return 1 }})
			if err != nil {
				return err
			}
			for _, e := range names {
				x, errA := c.a.Lookup(root, o.a, e.Name)
				y, errB := c.b.Lookup(root, o.b, e.Name)
				if err := c.sameNode(x, y, errA, errB); err != nil {
					return fmt.Errorf("%q in object %d: %w", e.Name, i, err)
				}
				queue = append(queue, c.index[x.Handle])
			}
		}
	}
	return nil
}
