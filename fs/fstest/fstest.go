// Package fstest compares file systems: it does the same random operations on
// two of them and reports the first result that differs. The model (fs/model) is
// the oracle; the other may be the verified file system or a client at the other
// end of a socket.
package fstest

import (
	"bytes"
	"fmt"
	"math/rand"
	"sort"
	"time"

	"tansy/fs"
)

// Clock is a clock that stands still between operations, so that both file
// systems put down the same times.
type Clock struct{ now time.Time }

// NewClock starts at a fixed time.
func NewClock() *Clock { return &Clock{time.Unix(1_700_000_000, 5)} }

// Now is an fs.Clock.
func (c *Clock) Now() time.Time { return c.now }

func (c *Clock) step() { c.now = c.now.Add(1_000_003 * time.Microsecond) }

// Options of a Comparer.
type Options struct {
	Seed  int64
	Clock *Clock // both file systems must use it; nil: times are not compared
	// MaxOffset bounds the offsets of reads and writes, in bytes; default 256 KiB.
	MaxOffset int
	// MaxWrite bounds the data of one WRITE, in bytes; default 20,000.
	MaxWrite int
	// Far adds offsets around the limits of files.
	Far bool
}

// Comparer does operations on two file systems.
type Comparer struct {
	opt  Options
	rnd  *rand.Rand
	a, b fs.FileSystem
	// Objects are pairs of handles that mean the same, the root first. Some of
	// them are stale.
	objs  []pair
	index map[fs.Handle]int // by a's handle
	log   []string
}

type pair struct{ a, b fs.Handle }

// New makes a Comparer of two empty file systems.
func New(a, b fs.FileSystem, opt Options) *Comparer {
	if opt.MaxOffset == 0 {
		opt.MaxOffset = 256 << 10
	}
	if opt.MaxWrite == 0 {
		opt.MaxWrite = 20000
	}
	c := &Comparer{opt: opt, rnd: rand.New(rand.NewSource(opt.Seed)), a: a, b: b, index: map[fs.Handle]int{}}
	c.learn(a.Root(), b.Root())
	return c
}

// Run does n operations and then compares everything that can be reached. The
// error tells the seed and the last operations.
func (c *Comparer) Run(n int) error {
	for i := range n {
		if c.opt.Clock != nil {
			c.opt.Clock.step()
		}
		if err := c.step(); err != nil {
			return c.fail(fmt.Sprintf("operation %d", i), err)
		}
	}
	if err := c.CompareTrees(); err != nil {
		return c.fail("at the end", err)
	}
	return nil
}

func (c *Comparer) fail(where string, err error) error {
	s := ""
	for _, l := range c.log {
		s += "\n  " + l
	}
	return fmt.Errorf("seed %d, %s: %w; last operations:%s", c.opt.Seed, where, err, s)
}

// note records an operation for the report.
func (c *Comparer) note(format string, args ...any) {
	if len(c.log) > 30 {
		c.log = c.log[1:]
	}
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

// learn pairs two handles. It returns an error if one is known with another
// partner.
func (c *Comparer) learn(a, b fs.Handle) error {
	if i, ok := c.index[a]; ok {
		if c.objs[i].b != b {
			return fmt.Errorf("object %d has handles %v and %v, now %v", i, a, c.objs[i].b, b)
		}
		return nil
	}
	for i, o := range c.objs {
		if o.b == b {
			return fmt.Errorf("handle %v of object %d was given out for another object", b, i)
		}
	}
	c.index[a] = len(c.objs)
	c.objs = append(c.objs, pair{a, b})
	return nil
}

var creds = []*fs.Cred{
	{}, {}, {},
	{UID: 1000, GID: 1000, GIDs: []uint32{1000, 2000}},
	{UID: 1000, GID: 1000, GIDs: []uint32{1000, 2000}},
	{UID: 1001, GID: 1001, GIDs: []uint32{2000, 3000}},
	{UID: 65534, GID: 65534},
}

// obj picks an object, mostly a young one.
func (c *Comparer) obj() (int, pair) {
	n := len(c.objs)
	i := c.rnd.Intn(n)
	switch c.rnd.Intn(4) {
	case 0:
		i = 0
	case 1, 2:
		i = n - 1 - c.rnd.Intn(min(n, 12))
	}
	return i, c.objs[i]
}

var oddNames = [][]byte{
	{}, []byte("."), []byte(".."), []byte("a/b"), []byte("a\x00b"), []byte("/"),
	bytes.Repeat([]byte("n"), 255), bytes.Repeat([]byte("n"), 256), []byte("\xff\xfe"), []byte("..."),
}

func (c *Comparer) name() []byte {
	if c.rnd.Intn(25) == 0 {
		return oddNames[c.rnd.Intn(len(oddNames))]
	}
	return []byte(fmt.Sprintf("n%d", c.rnd.Intn(12)))
}

func (c *Comparer) setattr() *fs.SetAttr {
	s := &fs.SetAttr{}
	u32 := func(v uint32) *uint32 { return &v }
	if c.rnd.Intn(2) == 0 {
		s.Mode = u32([]uint32{0o644, 0o755, 0o777, 0o1777, 0o2775, 0o6755, 0o600, 0, 0o4711, 0o100777}[c.rnd.Intn(10)])
	}
	ids := []uint32{0, 1000, 1001, 2000, 3000}
	if c.rnd.Intn(8) == 0 {
		s.UID = u32(ids[c.rnd.Intn(len(ids))])
	}
	if c.rnd.Intn(8) == 0 {
		s.GID = u32(ids[c.rnd.Intn(len(ids))])
	}
	if c.rnd.Intn(6) == 0 {
		v := c.offset()
		s.Size = &v
	}
	how := func() (fs.TimeHow, fs.Time) {
		switch c.rnd.Intn(8) {
		case 0:
			return fs.ServerTime, fs.Time{}
		case 1:
			t := fs.Time{Sec: uint64(c.rnd.Uint32()), Nsec: uint32(c.rnd.Intn(1e9))}
			if c.rnd.Intn(10) == 0 {
				t.Nsec = 1e9
			}
			return fs.ClientTime, t
		}
		return fs.DontChange, fs.Time{}
	}
	s.AtimeHow, s.Atime = how()
	s.MtimeHow, s.Mtime = how()
	return s
}

func (c *Comparer) offset() uint64 {
	if c.opt.Far && c.rnd.Intn(10) == 0 {
		edges := []uint64{12 * 4096, (12 + 512) * 4096, (12 + 512 + 512*512) * 4096, 1 << 32, 1 << 38, fs.MaxSize}
		at := edges[c.rnd.Intn(len(edges))] + uint64(c.rnd.Intn(10000))
		return at - 5000
	}
	switch c.rnd.Intn(8) {
	case 0:
		return 0
	case 1:
		return uint64(c.rnd.Intn(c.opt.MaxOffset)) &^ 4095
	case 2:
		return ^uint64(0) - uint64(c.rnd.Intn(3))
	}
	return uint64(c.rnd.Intn(c.opt.MaxOffset))
}

// step does one operation on both and compares the results.
func (c *Comparer) step() error {
	cred := creds[c.rnd.Intn(len(creds))]
	i, o := c.obj()
	name := c.name()
	switch c.rnd.Intn(24) {
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
		c.note("lookup %d %q as %v", i, name, *cred)
		x, errA := c.a.Lookup(cred, o.a, name)
		y, errB := c.b.Lookup(cred, o.b, name)
		x.Dir.Before, y.Dir.Before = nil, nil
		return c.sameNode(x, y, errA, errB)
	case 5:
		want := uint32(c.rnd.Intn(64))
		c.note("access %d %x as %v", i, want, *cred)
		x, a, errA := c.a.Access(cred, o.a, want)
		y, b, errB := c.b.Access(cred, o.b, want)
		if x != y {
			return fmt.Errorf("access: %x and %x", x, y)
		}
		return first(sameErr(errA, errB), c.sameAttr(a, b))
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
		how := fs.CreateHow(c.rnd.Intn(3))
		s := c.setattr()
		verf := uint64(c.rnd.Intn(3))
		c.note("create %d %q how %d %s verf %d as %v", i, name, how, showSet(s), verf, *cred)
		x, errA := c.a.Create(cred, o.a, name, how, s, verf)
		y, errB := c.b.Create(cred, o.b, name, how, s, verf)
		return c.sameNode(x, y, errA, errB)
	case 14, 15:
		s := c.setattr()
		c.note("mkdir %d %q %s as %v", i, name, showSet(s), *cred)
		x, errA := c.a.Mkdir(cred, o.a, name, s)
		y, errB := c.b.Mkdir(cred, o.b, name, s)
		return c.sameNode(x, y, errA, errB)
	case 16:
		s := c.setattr()
		target := bytes.Repeat([]byte("t"), []int{0, 1, 30, 59, 60, 61, 136, 255, 4095, 4096}[c.rnd.Intn(10)])
		c.note("symlink %d %q, %d bytes, %s as %v", i, name, len(target), showSet(s), *cred)
		x, errA := c.a.Symlink(cred, o.a, name, s, target)
		y, errB := c.b.Symlink(cred, o.b, name, s, target)
		return c.sameNode(x, y, errA, errB)
	case 17:
		s := c.setattr()
		t := fs.Type(c.rnd.Intn(8))
		c.note("mknod %d %q type %d %s as %v", i, name, t, showSet(s), *cred)
		x, errA := c.a.Mknod(cred, o.a, name, t, s, 8, 1)
		y, errB := c.b.Mknod(cred, o.b, name, t, s, 8, 1)
		return c.sameNode(x, y, errA, errB)
	case 18:
		c.note("remove %d %q as %v", i, name, *cred)
		x, errA := c.a.Remove(cred, o.a, name)
		y, errB := c.b.Remove(cred, o.b, name)
		return first(sameErr(errA, errB), c.sameWCC(x, y))
	case 19:
		c.note("rmdir %d %q as %v", i, name, *cred)
		x, errA := c.a.Rmdir(cred, o.a, name)
		y, errB := c.b.Rmdir(cred, o.b, name)
		return first(sameErr(errA, errB), c.sameWCC(x, y))
	case 20, 21:
		j, p := c.obj()
		newName := c.name()
		c.note("rename %d %q to %d %q as %v", i, name, j, newName, *cred)
		x, x2, errA := c.a.Rename(cred, o.a, name, p.a, newName)
		y, y2, errB := c.b.Rename(cred, o.b, name, p.b, newName)
		return first(sameErr(errA, errB), c.sameWCC(x, y), c.sameWCC(x2, y2))
	case 22:
		j, p := c.obj()
		c.note("link %d to %d %q as %v", i, j, name, *cred)
		a, x, errA := c.a.Link(cred, o.a, p.a, name)
		b, y, errB := c.b.Link(cred, o.b, p.b, name)
		return first(sameErr(errA, errB), c.sameAttr(a, b), c.sameWCC(x, y))
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

// list compares whole directories, read in pages of different sizes.
func (c *Comparer) list(cred *fs.Cred, i int) error {
	o := c.objs[i]
	plus := c.rnd.Intn(2) == 0
	size := func(n int) int { return 160 + n }
	c.note("list %d plus %v as %v", i, plus, *cred)
	x, errA := listAll(c.a, cred, o.a, plus, 1<<20, size)
	y, errB := listAll(c.b, cred, o.b, plus, 600+c.rnd.Intn(2000), size)
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

// listAll reads a directory page by page and checks that it makes progress.
func listAll(f fs.FileSystem, cred *fs.Cred, dir fs.Handle, plus bool, maxBytes int, size func(int) int) (all []fs.Entry, err error) {
	cookie, verf := uint64(0), uint64(0)
	seen := map[string]bool{}
	for {
		l, err := f.Readdir(cred, dir, cookie, verf, plus, maxBytes, size)
		if err != nil {
			return nil, err
		}
		for _, e := range l.Entries {
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
			names, err := listAll(c.a, root, o.a, false, 1<<20, func(int) int { return 1 })
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
	return fmt.Errorf("data differs from byte %d of %d on: % x... and % x...", i, len(a), a[i:min(len(a), i+8)], b[i:min(len(b), i+8)])
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
	return c.sameWCC(x.Dir, y.Dir)
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

func showSet(s *fs.SetAttr) string {
	t := "{"
	if s.Mode != nil {
		t += fmt.Sprintf("mode %o ", *s.Mode)
	}
	if s.UID != nil {
		t += fmt.Sprintf("uid %d ", *s.UID)
	}
	if s.GID != nil {
		t += fmt.Sprintf("gid %d ", *s.GID)
	}
	if s.Size != nil {
		t += fmt.Sprintf("size %d ", *s.Size)
	}
	return t + fmt.Sprintf("atime %d %v mtime %d %v}", s.AtimeHow, s.Atime, s.MtimeHow, s.Mtime)
}
