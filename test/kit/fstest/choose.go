package fstest

import (
	"bytes"
	"fmt"

	"tansy/fs"
)

// Choosing what to do: callers, objects, names, attributes, offsets. Small sets, so
// that operations meet, with the odd and the impossible among them.

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

// dir picks an object to make something in: mostly a directory.
func (c *Comparer) dir() (int, pair) {
	i, o := c.obj()
	for try := 0; try < 4 && c.rnd.Intn(4) > 0; try++ {
		if a, err := c.a.Getattr(o.a); err == nil && a.Type == fs.Directory {
			break
		}
		i, o = c.obj()
	}
	return i, o
}

// entry picks a directory and the name of something in it, which is of type of unless
// that is 0; now and then any object and any name.
func (c *Comparer) entry(of fs.Type) (int, pair, []byte) {
	for try := 0; try < 10 && c.rnd.Intn(4) > 0; try++ {
		i, o := c.obj()
		l, err := c.a.Readdir(&fs.Cred{}, o.a, 2, 0, true, fs.Limit{Bytes: 1 << 20, Size: func(n int) int { return n }})
		if err != nil {
			continue
		}
		var names [][]byte
		for _, e := range l.Entries {
			if of == 0 || e.Attr.Type == of {
				names = append(names, e.Name)
			}
		}
		if c.rnd.Intn(5) == 0 {
			names = oddNames
		}
		if len(names) > 0 {
			return i, o, names[c.rnd.Intn(len(names))]
		}
	}
	i, o := c.obj()
	return i, o, c.name()
}

var oddNames = [][]byte{
	{}, []byte("."), []byte(".."), []byte("a/b"), []byte("a\x00b"), []byte("/"),
	bytes.Repeat([]byte("n"), 255), bytes.Repeat([]byte("n"), 256), bytes.Repeat([]byte("n"), 256),
	[]byte("\xff\xfe"), []byte("..."),
}

func (c *Comparer) name() []byte {
	if c.rnd.Intn(15) == 0 {
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
	ids := []uint32{0, 1000, 1001, 2000, 3000, fs.NoID}
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
