package fs_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	"tansy/fs"
	"tansy/fs/model"
)

var (
	seedFlag = flag.Int64("seed", 0, "replay the random tests with this seed")
	opsFlag  = flag.Int("ops", 6000, "operations of a random test")
)

func seed(t testing.TB) *rand.Rand {
	s := *seedFlag
	if s == 0 {
		s = time.Now().UnixNano()
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewSource(s))
}

// twins are a file system under test and the model, driven with the same calls.
// A file is a pair of handles.
type twins struct {
	t     testing.TB
	r     *rand.Rand
	v     fs.FileSystem
	m     *model.Model
	now   *time.Time
	dirs  []pair
	files []pair // everything else
	log   []string
}

type pair struct{ v, m fs.Handle }

// newTwins takes a file system that was just made and whose clock is now.
func newTwins(t testing.TB, r *rand.Rand, v fs.FileSystem, now *time.Time) *twins {
	m := model.New(model.Options{Clock: func() time.Time { return *now }})
	w := &twins{t: t, r: r, v: v, m: m, now: now}
	w.dirs = []pair{{v.Root(), m.Root()}}
	for _, f := range []fs.FileSystem{v, m} { // the time stamps of mkfs
		mode := uint32(0o777)
		if _, err := f.Setattr(creds[0], f.Root(), &fs.SetAttr{Mode: &mode, AtimeHow: fs.ServerTime, MtimeHow: fs.ServerTime}, nil); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *twins) fail(format string, args ...any) {
	w.t.Helper()
	n := len(w.log)
	w.t.Fatalf("%s\nlast operations:\n%s", fmt.Sprintf(format, args...), strings.Join(w.log[max(0, n-12):], "\n"))
}

// attr checks that two sets of attributes are those of the same file.
func (w *twins) attr(what string, a, b *fs.Attr) {
	w.t.Helper()
	if a == nil || b == nil {
		if a != b {
			w.fail("%s: attributes %v, model %v", what, a, b)
		}
		return
	}
	x, y := *a, *b
	x.Ino, x.Gen, x.Used, y.Ino, y.Gen, y.Used = 0, 0, 0, 0, 0, 0
	if x.Type == fs.Directory {
		x.Size, y.Size = 0, 0
	}
	if !reflect.DeepEqual(x, y) {
		w.fail("%s:\n  %+v, model\n  %+v", what, x, y)
	}
}

func (w *twins) wcc(what string, a, b fs.WCC) {
	w.t.Helper()
	w.attr(what+" before", a.Before, b.Before)
	w.attr(what+" after", a.After, b.After)
}

// errs checks that both succeed or fail alike; ok is true when they succeed.
func (w *twins) errs(a, b error) (ok bool) {
	w.t.Helper()
	if a != b {
		w.fail("error %v, model %v", a, b)
	}
	return a == nil
}

func (w *twins) node(a, b fs.Node, ae, be error) {
	w.t.Helper()
	w.wcc("directory", a.Dir, b.Dir)
	if !w.errs(ae, be) {
		return
	}
	w.attr("node", &a.Attr, &b.Attr)
	p := pair{a.Handle, b.Handle}
	for _, l := range [][]pair{w.dirs, w.files} {
		for _, q := range l {
			if (q.v == p.v) != (q.m == p.m) {
				w.fail("handles %v and %v do not go together with %v and %v", p.v, p.m, q.v, q.m)
			}
			if q == p {
				return
			}
		}
	}
	l := &w.files
	if a.Attr.Type == fs.Directory {
		l = &w.dirs
	}
	if len(*l) < 30 {
		*l = append(*l, p)
	} else {
		(*l)[1+w.r.Intn(29)] = p
	}
}

func pick[T any](r *rand.Rand, l []T) T { return l[r.Intn(len(l))] }

func (w *twins) dir() pair {
	if w.r.Intn(60) == 0 && len(w.files) > 0 {
		return pick(w.r, w.files)
	}
	return pick(w.r, w.dirs)
}

func (w *twins) file() pair {
	if w.r.Intn(12) == 0 || len(w.files) == 0 {
		return pick(w.r, w.dirs)
	}
	return pick(w.r, w.files)
}

var oddNames = []string{"", ".", "..", "a/b", "\x00", strings.Repeat("x", 255), strings.Repeat("y", 256)}

func (w *twins) name() []byte {
	if w.r.Intn(25) == 0 {
		return []byte(pick(w.r, oddNames))
	}
	return []byte{'a' + byte(w.r.Intn(9))}
}

var creds = []*fs.Cred{{}, {}, {UID: 1, GID: 1, GIDs: []uint32{7, 8}}, {UID: 2, GID: 7}}

func (w *twins) cred() *fs.Cred { return pick(w.r, creds) }

func (w *twins) size() uint64 {
	switch w.r.Intn(12) {
	case 0:
		return fs.MaxSize - uint64(w.r.Intn(3)) + 1
	case 1:
		return uint64(w.r.Intn(300 << 20))
	case 2, 3:
		return uint64(w.r.Intn(400000))
	case 4:
		return 4096 * uint64(w.r.Intn(20))
	}
	return uint64(w.r.Intn(20000))
}

func (w *twins) setattr() *fs.SetAttr {
	r := w.r
	s := &fs.SetAttr{AtimeHow: fs.TimeHow(r.Intn(3)), MtimeHow: fs.TimeHow(r.Intn(3))}
	if r.Intn(2) == 0 {
		s.AtimeHow, s.MtimeHow = 0, 0
	}
	s.Atime = fs.Time{Sec: r.Uint64() >> uint(r.Intn(64)), Nsec: uint32(r.Intn(1e9 + 1e7))}
	s.Mtime = fs.Time{Sec: uint64(r.Intn(1000)), Nsec: uint32(r.Intn(1e9))}
	if r.Intn(2) == 0 {
		x := uint32(r.Intn(0o10000))
		if r.Intn(2) == 0 {
			x |= 0o777
		}
		s.Mode = &x
	}
	if r.Intn(6) == 0 {
		x := uint32(r.Intn(3))
		s.UID = &x
	}
	if r.Intn(6) == 0 {
		x := uint32(pick(r, []int{0, 1, 7, 8}))
		s.GID = &x
	}
	if r.Intn(5) == 0 {
		x := w.size()
		s.Size = &x
	}
	return s
}

// step does one random operation on both.
func (w *twins) step() {
	r, v, m := w.r, w.v, w.m
	*w.now = w.now.Add(time.Duration(1 + r.Intn(1e9)))
	c, d, f, name := w.cred(), w.dir(), w.file(), w.name()
	logf := func(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }
	switch k := r.Intn(20); k {
	case 0:
		if r.Intn(2) == 0 {
			f = d
		}
		logf("getattr %v", f)
		a, ae := v.Getattr(f.v)
		b, be := m.Getattr(f.m)
		if w.errs(ae, be) {
			w.attr("getattr", &a, &b)
		}
	case 1, 2:
		if r.Intn(4) == 0 {
			f = d
		}
		s := w.setattr()
		var guard *fs.Time
		if r.Intn(4) == 0 {
			guard = &fs.Time{Sec: 1}
			if a, err := v.Getattr(f.v); err == nil && r.Intn(3) > 0 {
				guard = &a.Ctime
			}
		}
		logf("setattr %v %v %+v guard %v", c, f, s, guard)
		a, ae := v.Setattr(c, f.v, s, guard)
		b, be := m.Setattr(c, f.m, s, guard)
		w.errs(ae, be)
		w.wcc("setattr", a, b)
	case 3, 4:
		logf("lookup %v %v %q", c, d, name)
		a, ae := v.Lookup(c, d.v, name)
		b, be := m.Lookup(c, d.m, name)
		w.node(a, b, ae, be)
	case 5:
		logf("access %v %v", c, f)
		bits := uint32(r.Intn(128))
		a, aa, ae := v.Access(c, f.v, bits)
		b, ba, be := m.Access(c, f.m, bits)
		w.errs(ae, be)
		w.attr("access", aa, ba)
		if a != b {
			w.fail("access %x, model %x", a, b)
		}
	case 6:
		logf("readlink %v", f)
		a, aa, ae := v.Readlink(c, f.v)
		b, ba, be := m.Readlink(c, f.m)
		w.errs(ae, be)
		w.attr("readlink", aa, ba)
		if !bytes.Equal(a, b) {
			w.fail("%q, model %q", a, b)
		}
	case 7, 8:
		off, n := w.size(), uint32(r.Intn(100000))
		logf("read %v %v %d+%d", c, f, off, n)
		a, aeof, aa, ae := v.Read(c, f.v, off, n)
		b, beof, ba, be := m.Read(c, f.m, off, n)
		w.errs(ae, be)
		w.attr("read", aa, ba)
		if !bytes.Equal(a, b) || aeof != beof {
			w.fail("read %d bytes, eof %v, model %d, %v", len(a), aeof, len(b), beof)
		}
	case 9, 10:
		off := w.size()
		data := make([]byte, r.Intn(9000))
		if r.Intn(10) == 0 {
			data = make([]byte, r.Intn(300000))
		}
		r.Read(data)
		logf("write %v %v %d+%d", c, f, off, len(data))
		n, _, a, ae := v.Write(c, f.v, off, data, fs.Stability(r.Intn(3)))
		if ae == nil {
			data = data[:n]
		}
		_, _, b, be := m.Write(c, f.m, off, data, fs.FileSync)
		w.errs(ae, be)
		w.wcc("write", a, b)
	case 11, 12:
		how, s, verf := fs.CreateHow(r.Intn(3)), w.setattr(), uint64(r.Intn(3))
		logf("create %v %v %q %d %+v %d", c, d, name, how, s, verf)
		a, ae := v.Create(c, d.v, name, how, s, verf)
		b, be := m.Create(c, d.m, name, how, s, verf)
		w.node(a, b, ae, be)
	case 13:
		s := w.setattr()
		logf("mkdir %v %v %q %+v", c, d, name, s)
		a, ae := v.Mkdir(c, d.v, name, s)
		b, be := m.Mkdir(c, d.m, name, s)
		w.node(a, b, ae, be)
	case 14:
		s, target := w.setattr(), bytes.Repeat([]byte{'t'}, pick(r, []int{0, 1, 50, 4095, 4096}))
		logf("symlink %v %v %q %+v", c, d, name, s)
		a, ae := v.Symlink(c, d.v, name, s, target)
		b, be := m.Symlink(c, d.m, name, s, target)
		w.node(a, b, ae, be)
	case 15:
		s, ty := w.setattr(), fs.Type(r.Intn(9))
		logf("mknod %v %v %q %d %+v", c, d, name, ty, s)
		a, ae := v.Mknod(c, d.v, name, ty, s, 5, 6)
		b, be := m.Mknod(c, d.m, name, ty, s, 5, 6)
		w.node(a, b, ae, be)
	case 16:
		if r.Intn(2) == 0 {
			logf("remove %v %v %q", c, d, name)
			a, ae := v.Remove(c, d.v, name)
			b, be := m.Remove(c, d.m, name)
			w.errs(ae, be)
			w.wcc("remove", a, b)
		} else {
			logf("rmdir %v %v %q", c, d, name)
			a, ae := v.Rmdir(c, d.v, name)
			b, be := m.Rmdir(c, d.m, name)
			w.errs(ae, be)
			w.wcc("rmdir", a, b)
		}
	case 17:
		e, to := w.dir(), w.name()
		logf("rename %v %v %q %v %q", c, d, name, e, to)
		a, a2, ae := v.Rename(c, d.v, name, e.v, to)
		b, b2, be := m.Rename(c, d.m, name, e.m, to)
		w.errs(ae, be)
		w.wcc("rename from", a, b)
		w.wcc("rename to", a2, b2)
	case 18:
		logf("link %v %v %v %q", c, f, d, name)
		aa, a, ae := v.Link(c, f.v, d.v, name)
		ba, b, be := m.Link(c, f.m, d.m, name)
		w.errs(ae, be)
		w.attr("link", aa, ba)
		w.wcc("link", a, b)
	case 19:
		logf("readdir %v %v", c, d)
		w.list(c, d)
	}
}

// list compares a directory page by page.
func (w *twins) list(c *fs.Cred, d pair) map[string]bool {
	w.t.Helper()
	size := func(n int) int { return n + 24 }
	all := func(f fs.FileSystem, h fs.Handle) (names []string, attrs map[string]*fs.Attr, dir *fs.Attr, err error) {
		attrs = map[string]*fs.Attr{}
		var cookie uint64
		for {
			l, err := f.Readdir(c, h, cookie, 0, true, 400, size)
			if err != nil {
				return nil, nil, l.Dir, err
			}
			for _, e := range l.Entries {
				names = append(names, string(e.Name))
				attrs[string(e.Name)] = e.Attr
				cookie = e.Cookie
			}
			if l.EOF {
				sort.Strings(names)
				return names, attrs, l.Dir, nil
			}
		}
	}
	an, aa, ad, ae := all(w.v, d.v)
	bn, ba, bd, be := all(w.m, d.m)
	w.attr("listed directory", ad, bd)
	if !w.errs(ae, be) {
		return nil
	}
	if !reflect.DeepEqual(an, bn) {
		w.fail("listing %q, model %q", an, bn)
	}
	set := map[string]bool{}
	for _, n := range an {
		w.attr("entry "+n, aa[n], ba[n])
		set[n] = true
	}
	return set
}

// same compares everything below the root: names, attributes, contents.
func (w *twins) same() {
	w.t.Helper()
	seen := map[fs.Handle]bool{}
	var walk func(d pair)
	walk = func(d pair) {
		for n := range w.list(creds[0], d) {
			if n == "." || n == ".." {
				continue
			}
			a, ae := w.v.Lookup(creds[0], d.v, []byte(n))
			b, be := w.m.Lookup(creds[0], d.m, []byte(n))
			if !w.errs(ae, be) {
				w.fail("%q: %v", n, ae)
			}
			w.attr(n, &a.Attr, &b.Attr)
			p := pair{a.Handle, b.Handle}
			if seen[p.v] {
				continue
			}
			seen[p.v] = true
			switch a.Attr.Type {
			case fs.Directory:
				walk(p)
			case fs.Regular:
				w.data(p, a.Attr.Size)
			case fs.Symlink:
				x, _, _ := w.v.Readlink(creds[0], p.v)
				y, _, _ := w.m.Readlink(creds[0], p.m)
				if !bytes.Equal(x, y) {
					w.fail("%q: target %q, model %q", n, x, y)
				}
			}
		}
	}
	walk(pair{w.v.Root(), w.m.Root()})
}

// data compares the beginning and the end of a file and random parts of it.
func (w *twins) data(p pair, size uint64) {
	w.t.Helper()
	offs := []uint64{0}
	for o := uint64(1 << 18); o < min(size, 1<<20); o += 1 << 18 {
		offs = append(offs, o)
	}
	if size > 1<<18 {
		offs = append(offs, size-1<<18, uint64(w.r.Int63n(int64(size))))
	}
	for _, o := range offs {
		x, _, _, ae := w.v.Read(creds[0], p.v, o, 1<<18)
		y, _, _, be := w.m.Read(creds[0], p.m, o, 1<<18)
		w.errs(ae, be)
		if !bytes.Equal(x, y) {
			w.fail("contents of %v at %d differ", p.v, o)
		}
	}
}

// Random operations do to the verified file system what they do to the model.
func TestModel(t *testing.T) {
	r := seed(t)
	now := time.Unix(1e9, 0)
	v := newVolume(t, fs.Options{Clock: func() time.Time { return now }})
	w := newTwins(t, r, v, &now)
	for i := range *opsFlag {
		w.step()
		if i%1000 == 999 {
			w.same()
		}
	}
	w.same()
}
