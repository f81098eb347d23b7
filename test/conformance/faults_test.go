package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"testing"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/tools/conform"
)

// A check that never fails checks nothing. Here servers with one fault each must
// be found out, by the check that is there for it.

var root = &fs.Cred{}

// fault is a file system with one method changed.
type fault struct {
	fs.FileSystem
	read    func(c *fs.Cred, h fs.Handle, off uint64, n uint32) ([]byte, bool, *fs.Attr, error)
	write   func(c *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability) (uint32, fs.Stability, fs.WCC, error)
	setattr func(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error)
	lookup  func(c *fs.Cred, d fs.Handle, name []byte) (fs.Node, error)
	create  func(c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (fs.Node, error)
	remove  func(c *fs.Cred, d fs.Handle, name []byte) (fs.WCC, error)
	rename  func(c *fs.Cred, f fs.Handle, fn []byte, t fs.Handle, tn []byte) (fs.WCC, fs.WCC, error)
	link    func(c *fs.Cred, f, d fs.Handle, name []byte) (*fs.Attr, fs.WCC, error)
	access  func(c *fs.Cred, h fs.Handle, want uint32) (uint32, fs.Attr, error)
	readdir func(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error)
	verf    func() uint64
}

func (f fault) Read(c *fs.Cred, h fs.Handle, off uint64, n uint32) ([]byte, bool, *fs.Attr, error) {
	return f.read(c, h, off, n)
}
func (f fault) Write(
	c *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	return f.write(c, h, off, b, how)
}
func (f fault) Setattr(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
	return f.setattr(c, h, s, guard)
}
func (f fault) Lookup(c *fs.Cred, d fs.Handle, name []byte) (fs.Node, error) {
	return f.lookup(c, d, name)
}
func (f fault) Create(
	c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64,
) (fs.Node, error) {
	return f.create(c, d, name, how, s, verf)
}
func (f fault) Remove(c *fs.Cred, d fs.Handle, name []byte) (fs.WCC, error) {
	return f.remove(c, d, name)
}
func (f fault) Rename(c *fs.Cred, from fs.Handle, fn []byte, to fs.Handle, tn []byte) (fs.WCC, fs.WCC, error) {
	return f.rename(c, from, fn, to, tn)
}
func (f fault) Link(c *fs.Cred, file, d fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
	return f.link(c, file, d, name)
}
func (f fault) Access(c *fs.Cred, h fs.Handle, want uint32) (uint32, fs.Attr, error) {
	return f.access(c, h, want)
}
func (f fault) Readdir(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
	return f.readdir(c, d, cookie, verf, plus, lim)
}
func (f fault) Verifier() uint64 { return f.verf() }

// sound is a fault without a fault.
func sound(m *model.Model) *fault {
	return &fault{
		FileSystem: m, read: m.Read, write: m.Write, setattr: m.Setattr, lookup: m.Lookup, create: m.Create, remove: m.Remove,
		rename: m.Rename, link: m.Link, access: m.Access, readdir: m.Readdir, verf: m.Verifier,
	}
}

// sameCtime is a WRITE that leaves the ctime.
func sameCtime(
	m *model.Model,
) func(c *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability) (uint32, fs.Stability, fs.WCC, error) {
	return func(c *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability) (uint32, fs.Stability, fs.WCC, error) {
		n, s, w, err := m.Write(c, h, off, b, how)
		if err == nil {
			m.Restamp(w.After.Ctime, w.Before.Ctime)
			w.After.Ctime = w.Before.Ctime
		}
		return n, s, w, err
	}
}

// faults are by the check that must find them.
var faults = []struct {
	check string
	spoil func(f *fault, m *model.Model)
}{
	{"read/up-to-end", func(f *fault, m *model.Model) {
		f.read = func(c *fs.Cred, h fs.Handle, off uint64, n uint32) ([]byte, bool, *fs.Attr, error) {
			b, _, a, err := m.Read(c, h, off, n)
			return b, len(b) < int(n), a, err
		}
	}},
	{"read/no-permission", func(f *fault, m *model.Model) {
		f.read = func(c *fs.Cred, h fs.Handle, off uint64, n uint32) ([]byte, bool, *fs.Attr, error) {
			return m.Read(root, h, off, n)
		}
	}},
	{"read/offset-2^63", func(f *fault, m *model.Model) {
		f.read = func(c *fs.Cred, h fs.Handle, off uint64, n uint32) ([]byte, bool, *fs.Attr, error) {
			return m.Read(c, h, off&(1<<63-1), n)
		}
	}},
	{"write-perm/other", func(f *fault, m *model.Model) {
		f.write = func(c *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability) (uint32, fs.Stability,
			fs.WCC, error) {
			return m.Write(root, h, off, b, how)
		}
	}},
	{"write/overwrite", func(f *fault, m *model.Model) {
		f.write = func(c *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability) (uint32, fs.Stability,
			fs.WCC, error) {
			end := off + uint64(len(b))
			n, s, w, err := m.Write(c, h, off, b, how)
			m.Setattr(root, h, &fs.SetAttr{Size: &end}, nil)
			return n, s, w, err
		}
	}},
	{"write/verifier", func(f *fault, m *model.Model) {
		n := uint64(0)
		f.verf = func() uint64 { n++; return n }
	}},
	{"wcc/write", func(f *fault, m *model.Model) {
		f.write = func(c *fs.Cred, h fs.Handle, off uint64, b []byte, how fs.Stability) (uint32, fs.Stability,
			fs.WCC, error) {
			n, s, w, err := m.Write(c, h, off, b, how)
			w.Before = w.After
			return n, s, w, err
		}
	}},
	{"write/ctime-each", func(f *fault, m *model.Model) { f.write = sameCtime(m) }},
	{"race/ctime", func(f *fault, m *model.Model) { f.write = sameCtime(m) }},
	{"setattr/guard-each", func(f *fault, m *model.Model) {
		f.setattr = func(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
			w, err := m.Setattr(c, h, s, guard)
			if err == nil {
				m.Restamp(w.After.Ctime, w.Before.Ctime)
			}
			return w, err
		}
	}},
	{"setattr/guard-wrong", func(f *fault, m *model.Model) {
		f.setattr = func(c *fs.Cred, h fs.Handle, s *fs.SetAttr, _ *fs.Time) (fs.WCC, error) {
			return m.Setattr(c, h, s, nil)
		}
	}},
	{"setattr/grow", func(f *fault, m *model.Model) {
		f.setattr = func(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
			if a, err := m.Getattr(h); err == nil && s.Size != nil && *s.Size > a.Size {
				m.Write(root, h, *s.Size-1, []byte("?"), fs.FileSync)
			}
			return m.Setattr(c, h, s, guard)
		}
	}},
	{"setattr/nobodys-owner", func(f *fault, m *model.Model) {
		f.setattr = func(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
			if s.UID != nil && *s.UID == fs.NoID {
				given, other := *s, uint32(65534)
				given.UID = &other
				s = &given
			}
			return m.Setattr(c, h, s, guard)
		}
	}},
	{"setattr-perm/user-by-owner", func(f *fault, m *model.Model) {
		f.setattr = func(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
			if s.UID != nil {
				c = root
			}
			return m.Setattr(c, h, s, guard)
		}
	}},
	{"lookup/slash", func(f *fault, m *model.Model) {
		f.lookup = func(c *fs.Cred, d fs.Handle, name []byte) (n fs.Node, err error) {
			for _, part := range bytes.Split(name, []byte("/")) {
				if n, err = m.Lookup(c, d, part); err != nil {
					return n, err
				}
				d = n.Handle
			}
			return n, err
		}
	}},
	{"lookup/no-search", func(f *fault, m *model.Model) {
		f.lookup = func(c *fs.Cred, d fs.Handle, name []byte) (fs.Node, error) { return m.Lookup(root, d, name) }
	}},
	{"lookup/above-the-export", func(f *fault, m *model.Model) {
		f.lookup = func(c *fs.Cred, d fs.Handle, name []byte) (fs.Node, error) {
			if d == m.Root() && string(name) == ".." {
				l, _ := m.Readdir(c, d, 2, 0, true, fs.Limit{Bytes: 4096, Size: func(int) int { return 1 }})
				name = l.Entries[0].Name
			}
			return m.Lookup(c, d, name)
		}
	}},
	{"create/ids-ignored", func(f *fault, m *model.Model) {
		f.create = func(c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (fs.Node, error) {
			if c.UID != 0 && s.GID != nil && *s.GID != c.GID {
				return fs.Node{}, fs.ErrPerm
			}
			return m.Create(c, d, name, how, s, verf)
		}
	}},
	{"create/foreign-group", func(f *fault, m *model.Model) {
		f.create = func(c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (fs.Node, error) {
			n, err := m.Create(c, d, name, how, s, verf)
			m.Setattr(root, n.Handle, &fs.SetAttr{GID: s.GID}, nil)
			return n, err
		}
	}},
	{"create/name-nul", func(f *fault, m *model.Model) {
		f.create = func(c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (fs.Node, error) {
			name, _, _ = bytes.Cut(name, []byte{0})
			return m.Create(c, d, name, how, s, verf)
		}
	}},
	{"create/guarded-exists", func(f *fault, m *model.Model) {
		f.create = func(c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (fs.Node, error) {
			return m.Create(c, d, name, min(how, fs.Unchecked), s, verf)
		}
	}},
	{"create-exclusive/other-verifier", func(f *fault, m *model.Model) {
		f.create = func(c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (fs.Node, error) {
			return m.Create(c, d, name, how, s, verf&0xffffffff)
		}
	}},
	{"create-exclusive/again", func(f *fault, m *model.Model) {
		f.create = func(c *fs.Cred, d fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64) (fs.Node, error) {
			return m.Create(c, d, name, min(how, fs.Guarded), &fs.SetAttr{}, 0)
		}
	}},
	{"remove/sticky", func(f *fault, m *model.Model) {
		f.remove = func(c *fs.Cred, d fs.Handle, name []byte) (fs.WCC, error) { return m.Remove(root, d, name) }
	}},
	{"handle/stale-remove", func(f *fault, m *model.Model) {
		f.remove = func(c *fs.Cred, d fs.Handle, name []byte) (fs.WCC, error) {
			w, err := m.Remove(c, d, name)
			if err == fs.ErrStale {
				err = fs.ErrNoEnt
			}
			return w, err
		}
	}},
	{"rename-dir/into-its-own", func(f *fault, m *model.Model) {
		f.rename = func(c *fs.Cred, from fs.Handle, fn []byte, to fs.Handle, tn []byte) (fs.WCC, fs.WCC, error) {
			a, b, err := m.Rename(c, from, fn, to, tn)
			if err == fs.ErrInval {
				err = nil
			}
			return a, b, err
		}
	}},
	{"rename/links-of-one-file", func(f *fault, m *model.Model) {
		f.rename = func(c *fs.Cred, from fs.Handle, fn []byte, to fs.Handle, tn []byte) (fs.WCC, fs.WCC, error) {
			m.Remove(c, to, tn)
			m.Remove(c, from, fn)
			return m.Rename(c, from, fn, to, tn)
		}
	}},
	{"link/exists-no-write", func(f *fault, m *model.Model) {
		f.link = func(c *fs.Cred, file, d fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
			if may, _, err := m.Access(c, d, 0x08); err == nil && may == 0 {
				return nil, fs.WCC{}, fs.ErrAcces
			}
			return m.Link(c, file, d, name)
		}
	}},
	{"link/exists-no-search", func(f *fault, m *model.Model) {
		f.link = func(c *fs.Cred, file, d fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
			if _, err := m.Lookup(root, d, name); err == nil {
				return nil, fs.WCC{}, fs.ErrExist
			}
			return m.Link(c, file, d, name)
		}
	}},
	{"link/attributes", func(f *fault, m *model.Model) {
		f.link = func(c *fs.Cred, file, d fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
			a, _ := m.Getattr(file)
			_, w, err := m.Link(c, file, d, name)
			return &a, w, err
		}
	}},
	{"access/supplementary", func(f *fault, m *model.Model) {
		f.access = func(c *fs.Cred, h fs.Handle, want uint32) (uint32, fs.Attr, error) {
			return m.Access(&fs.Cred{UID: c.UID, GID: c.GID}, h, want)
		}
	}},
	{"access/subset", func(f *fault, m *model.Model) {
		f.access = func(c *fs.Cred, h fs.Handle, want uint32) (uint32, fs.Attr, error) { return m.Access(c, h, 0x3f) }
	}},
	{"readdir/all", func(f *fault, m *model.Model) {
		f.readdir = func(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
			l, err := m.Readdir(c, d, cookie, verf, plus, lim)
			if len(l.Entries) > 20 {
				l.Entries = append(l.Entries[:10], l.Entries[11:]...)
			}
			return l, err
		}
	}},
	{"readdir-scan/removed-behind", func(f *fault, m *model.Model) { // cookies that count entries
		f.readdir = func(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
			l, err := m.Readdir(c, d, 0, 0, plus, fs.Limit{Bytes: 1 << 20, Size: lim.Size})
			for i := range l.Entries {
				l.Entries[i].Cookie = uint64(i + 1)
			}
			l.Entries = l.Entries[min(int(cookie), len(l.Entries)):]
			for i := range l.Entries {
				if !lim.Take(len(l.Entries[i].Name)) {
					l.Entries, l.EOF = l.Entries[:i], false
					break
				}
			}
			return l, err
		}
	}},
	{"readdir/fileids", func(f *fault, m *model.Model) {
		f.readdir = func(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
			l, err := m.Readdir(c, d, cookie, verf, plus, lim)
			for i := range l.Entries {
				l.Entries[i].Ino++
			}
			return l, err
		}
	}},
	{"readdir/no-read", func(f *fault, m *model.Model) {
		f.readdir = func(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
			return m.Readdir(root, d, cookie, verf, plus, lim)
		}
	}},
	{"readdir/count", func(f *fault, m *model.Model) {
		f.readdir = func(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
			lim.Bytes += 100
			return m.Readdir(c, d, cookie, verf, plus, lim)
		}
	}},
}

func run(t *testing.T, addr, check string) conform.Outcome {
	rep, err := conform.Run(context.Background(),
		conform.Config{Addr: addr, Run: regexp.MustCompile("^" + regexp.QuoteMeta(check) + "$")})
	if err != nil {
		t.Fatal(err)
	}
	return rep.Results[0].Outcome
}

func TestFaultsAreFound(t *testing.T) {
	for _, x := range faults {
		t.Run(x.check, func(t *testing.T) {
			m := model.New(model.Options{})
			f := sound(m)
			addr := serveFS(t, f)
			if got := run(t, addr, x.check); got != conform.Pass {
				t.Errorf("without the fault: %s", got)
			}
			x.spoil(f, m)
			if got := run(t, addr, x.check); got != conform.Fail && got != conform.Differ {
				t.Errorf("with the fault: %s", got)
			}
		})
	}
}

// A server whose pages are empty, whether or not it says that they are the last, is
// found out by the checks of listings; none of them ends the whole run.
func TestEmptyPages(t *testing.T) {
	for _, eof := range []bool{false, true} {
		m := model.New(model.Options{})
		f := sound(m)
		f.readdir = func(c *fs.Cred, d fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
			l, err := m.Readdir(c, d, cookie, verf, plus, lim)
			l.Entries, l.EOF = nil, eof
			return l, err
		}
		rep, err := conform.Run(context.Background(),
			conform.Config{Addr: serveFS(t, f), Run: regexp.MustCompile("^readdir")})
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, r := range rep.Results {
			if r.Outcome == conform.Fail || r.Outcome == conform.Differ {
				found++
			}
		}
		if found < 20 {
			t.Errorf("eof %v: %d of %d checks notice", eof, found, len(rep.Results))
		}
	}
}

// wireFaults change the records of replies.
var wireFaults = []struct {
	check string
	spoil func(rec []byte) []byte
}{
	{"null/empty", func(rec []byte) []byte { return append(rec, 0, 0, 0, 0) }},
	{"getattr/file", func(rec []byte) []byte { return append(rec, 0, 0, 0, 0) }},
	{"call/xid", func(rec []byte) []byte { rec[0] &= 0x7f; return rec }},
	{"args/reply-padding", func(rec []byte) []byte {
		if len(rec)%4 == 0 && rec[len(rec)-1] == 0 && len(rec) == 24+4+88+4+4+4+4 { // READ of 1 to 3 bytes
			rec[len(rec)-1] = 'X'
		}
		return rec
	}},
	{"call/rpc-version-range", func(rec []byte) []byte { rec[len(rec)-1]++; return rec }},
	{"cred/reply-verifier", func(rec []byte) []byte { rec[15] = 6; return rec }},
	{"read/whole", func(rec []byte) []byte {
		if len(rec) > 24 { // not of NULL, with which the client looks if the server is still there
			rec = rec[:len(rec)-4]
		}
		return rec
	}},
	{"record/pipeline", func() func(rec []byte) []byte { // every second reply is the one before it, again
		var last []byte
		n := 0
		return func(rec []byte) []byte {
			if n++; n > 12 && n%2 == 0 {
				return last
			}
			last = bytes.Clone(rec)
			return rec
		}
	}()},
}

func TestWireFaultsAreFound(t *testing.T) {
	for _, x := range wireFaults {
		t.Run(x.check, func(t *testing.T) {
			faithful := func(rec []byte) []byte { return rec }
			if got := run(t, spoil(t, serveFS(t, model.New(model.Options{})), faithful), x.check); got != conform.Pass {
				t.Errorf("without the fault: %s", got)
			}
			if got := run(t, spoil(t, serveFS(t, model.New(model.Options{})), x.spoil), x.check); got != conform.Fail {
				t.Errorf("with the fault: %s", got)
			}
		})
	}
}

// spoil is a proxy of a server that changes replies, once the session has set its scene.
func spoil(t *testing.T, addr string, change func([]byte) []byte) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	started := make(chan struct{}) // closed at that time
	seen := 0
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", addr)
			if err != nil {
				c.Close()
				return
			}
			go func() {
				io.Copy(s, c)
				s.(*net.TCPConn).CloseWrite()
			}()
			first := seen == 3 // the connection of the session: two of NULL and one of MNT came before
			seen++
			go pipe(c, s, first, started, change)
		}
	}()
	return l.Addr().String()
}

// sceneCalls is how many calls the session makes before the first check.
const sceneCalls = 8

func pipe(c, s net.Conn, session bool, started chan struct{}, change func([]byte) []byte) {
	defer c.Close()
	for n := 1; ; n++ {
		var mark [4]byte
		if _, err := io.ReadFull(s, mark[:]); err != nil {
			return
		}
		rec := make([]byte, binary.BigEndian.Uint32(mark[:])&0x7fffffff)
		if _, err := io.ReadFull(s, rec); err != nil {
			return
		}
		select {
		case <-started:
			rec = change(rec)
		default:
			if session && n == sceneCalls {
				close(started)
			}
		}
		c.Write(binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(rec))))
		c.Write(rec)
	}
}
