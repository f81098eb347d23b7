package fstest

import (
	"bytes"
	"fmt"

	"tansy/fs"
)

// step does one operation on both and compares the results.
func (c *Comparer) step() error {
	cred := creds[c.rnd.Intn(len(creds))]
	i, o := c.obj()
	name := c.name()
	switch c.rnd.Intn(26) {
	case 0:
		c.note("getattr %d", i)
		x, errA := c.a.Getattr(o.a)
		y, errB := c.b.Getattr(o.b)
		return first(sameErr(errA, errB), c.sameAttr(&x, &y))
	case 1, 2:
		s := c.setattr()
		var ga, gb *fs.Time
		if c.rnd.Intn(4) == 0 {
			x, _ := c.a.Getattr(o.a)
			y, _ := c.b.Getattr(o.b)
			ga, gb = &x.Ctime, &y.Ctime
			if c.rnd.Intn(2) == 0 {
				ga.Nsec, gb.Nsec = 999_999_999, 999_999_999
			}
		}
		c.note("setattr %d %s guard %v as %v", i, showSet(s), ga, *cred)
		x, errA := c.a.Setattr(cred, o.a, s, ga)
		y, errB := c.b.Setattr(cred, o.b, s, gb)
		return first(sameErr(errA, errB), c.sameWCC(x, y))
	case 3, 4:
		if c.rnd.Intn(2) == 0 {
			i, o, name = c.entry(0)
		}
		c.note("lookup %d %q as %v", i, name, *cred)
		x, errA := c.a.Lookup(cred, o.a, name)
		y, errB := c.b.Lookup(cred, o.b, name)
		return c.sameNode(x, y, errA, errB)
	case 5:
		want := uint32(c.rnd.Intn(64))
		c.note("access %d %x as %v", i, want, *cred)
		x, a, errA := c.a.Access(cred, o.a, want)
		y, b, errB := c.b.Access(cred, o.b, want)
		if x != y {
			return fmt.Errorf("access: %x and %x", x, y)
		}
		return first(sameErr(errA, errB), c.sameAttr(a.OrNil(), b.OrNil()))
	case 6:
		c.note("readlink %d", i)
		x, a, errA := c.a.Readlink(cred, o.a)
		y, b, errB := c.b.Readlink(cred, o.b)
		return first(sameErr(errA, errB), sameBytes(x, y), c.sameAttr(a, b))
	case 7, 8:
		off, count := c.offset(), uint32(c.rnd.Intn(2*c.opt.MaxWrite))
		return c.read(cred, i, off, count)
	case 9, 10, 11:
		off := c.offset()
		data := make([]byte, c.rnd.Intn(c.opt.MaxWrite))
		if c.rnd.Intn(3) == 0 {
			data = data[:min(len(data), c.rnd.Intn(200))]
		}
		c.rnd.Read(data)
		how := fs.Stability(c.rnd.Intn(3))
		c.note("write %d at %d, %d bytes, how %d, as %v", i, off, len(data), how, *cred)
		n, _, x, errA := c.a.Write(cred, o.a, off, data, how)
		m, stable, y, errB := c.b.Write(cred, o.b, off, data, how)
		clear(data) // what was written must have been copied
		if n != m {
			return fmt.Errorf("write: %d and %d bytes (%v, %v)", n, m, errA, errB)
		}
		if errB == nil && stable < how {
			return fmt.Errorf("write: asked for stability %d, got %d", how, stable)
		}
		return first(sameErr(errA, errB), c.sameWCC(x, y))
	case 12, 13:
		i, o = c.dir()
		how := fs.CreateHow(c.rnd.Intn(3))
		s := c.setattr()
		verf := uint64(c.rnd.Intn(3))
		c.note("create %d %q how %d %s verf %d as %v", i, name, how, showSet(s), verf, *cred)
		x, errA := c.a.Create(cred, o.a, name, how, s, verf)
		y, errB := c.b.Create(cred, o.b, name, how, s, verf)
		return c.sameNode(x, y, errA, errB)
	case 14, 15:
		i, o = c.dir()
		s := c.setattr()
		c.note("mkdir %d %q %s as %v", i, name, showSet(s), *cred)
		x, errA := c.a.Mkdir(cred, o.a, name, s)
		y, errB := c.b.Mkdir(cred, o.b, name, s)
		return c.sameNode(x, y, errA, errB)
	case 16:
		i, o = c.dir()
		s := c.setattr()
		target := bytes.Repeat([]byte("t"), []int{0, 1, 30, 59, 60, 61, 136, 255, 4095, 4096}[c.rnd.Intn(10)])
		if len(target) > 0 && c.rnd.Intn(10) == 0 {
			target[c.rnd.Intn(len(target))] = 0
		}
		zero := bytes.IndexByte(target, 0)
		c.note("symlink %d %q, %d bytes, the first zero is %d, %s as %v", i, name, len(target), zero, showSet(s), *cred)
		x, errA := c.a.Symlink(cred, o.a, name, s, target)
		y, errB := c.b.Symlink(cred, o.b, name, s, target)
		return c.sameNode(x, y, errA, errB)
	case 17:
		i, o = c.dir()
		s := c.setattr()
		t := fs.Type(c.rnd.Intn(8))
		major, minor := []uint32{8, 8, 4095, 4096}[c.rnd.Intn(4)], []uint32{1, 1, 1<<20 - 1, 1 << 20}[c.rnd.Intn(4)]
		c.note("mknod %d %q type %d, %d:%d, %s as %v", i, name, t, major, minor, showSet(s), *cred)
		x, errA := c.a.Mknod(cred, o.a, name, t, s, major, minor)
		y, errB := c.b.Mknod(cred, o.b, name, t, s, major, minor)
		return c.sameNode(x, y, errA, errB)
	case 18:
		i, o, name = c.entry(0)
		c.note("remove %d %q as %v", i, name, *cred)
		x, errA := c.a.Remove(cred, o.a, name)
		y, errB := c.b.Remove(cred, o.b, name)
		return first(sameErr(errA, errB), c.sameWCC(x, y))
	case 19:
		i, o, name = c.entry(fs.Directory)
		c.note("rmdir %d %q as %v", i, name, *cred)
		x, errA := c.a.Rmdir(cred, o.a, name)
		y, errB := c.b.Rmdir(cred, o.b, name)
		return first(sameErr(errA, errB), c.sameWCC(x, y))
	case 20, 21:
		i, o, name = c.entry(0)
		j, p := c.dir()
		newName := c.name()
		if c.rnd.Intn(3) == 0 {
			j, p, newName = c.entry(0)
		}
		c.note("rename %d %q to %d %q as %v", i, name, j, newName, *cred)
		x, x2, errA := c.a.Rename(cred, o.a, name, p.a, newName)
		y, y2, errB := c.b.Rename(cred, o.b, name, p.b, newName)
		return first(sameErr(errA, errB), c.sameWCC(x, y), c.sameWCC(x2, y2))
	case 22:
		j, p := c.dir()
		c.note("link %d to %d %q as %v", i, j, name, *cred)
		a, x, errA := c.a.Link(cred, o.a, p.a, name)
		b, y, errB := c.b.Link(cred, o.b, p.b, name)
		return first(sameErr(errA, errB), c.sameAttr(a, b), c.sameWCC(x, y))
	case 23:
		if c.rnd.Intn(2) == 0 {
			return c.oddList(cred, i)
		}
		return c.about(i)
	default:
		if c.rnd.Intn(2) == 0 {
			c.note("commit %d", i)
			x, errA := c.a.Commit(o.a, 0, 0)
			y, errB := c.b.Commit(o.b, 0, 0)
			return first(sameErr(errA, errB), c.sameWCC(x, y))
		}
		return c.list(cred, i)
	}
}

// about asks for what FSSTAT, FSINFO, or PATHCONF says of object i.
func (c *Comparer) about(i int) error {
	o := c.objs[i]
	switch c.rnd.Intn(4) {
	case 0:
		c.note("fsinfo %d", i)
		x, a, errA := c.a.Fsinfo(o.a)
		y, b, errB := c.b.Fsinfo(o.b)
		if errA == nil && errB == nil && x != y {
			return fmt.Errorf("fsinfo: %+v and %+v", x, y)
		}
		return first(sameErr(errA, errB), c.sameAttr(a, b))
	case 1:
		c.note("pathconf %d", i)
		x, a, errA := c.a.Pathconf(o.a)
		y, b, errB := c.b.Pathconf(o.b)
		if errA == nil && errB == nil && x != y {
			return fmt.Errorf("pathconf: %+v and %+v", x, y)
		}
		return first(sameErr(errA, errB), c.sameAttr(a, b))
	default:
		c.note("fsstat %d", i)
		x, a, errA := c.a.Fsstat(o.a)
		y, b, errB := c.b.Fsstat(o.b)
		for _, s := range []fs.Stat{x, y} {
			if s.FreeBytes > s.TotalBytes || s.FreeFiles > s.TotalFiles {
				return fmt.Errorf("fsstat: more free than there is: %+v", s)
			}
		}
		return first(sameErr(errA, errB), c.sameAttr(a, b))
	}
}

func (c *Comparer) read(cred *fs.Cred, i int, off uint64, count uint32) error {
	o := c.objs[i]
	c.note("read %d at %d, %d bytes, as %v", i, off, count, *cred)
	x, eofA, a, errA := c.a.Read(cred, o.a, off, count)
	y, eofB, b, errB := c.b.Read(cred, o.b, off, count)
	if eofA != eofB && errA == nil && errB == nil {
		return fmt.Errorf("read: eof %v and %v", eofA, eofB)
	}
	return first(sameErr(errA, errB), sameBytes(x, y), c.sameAttr(a, b))
}
