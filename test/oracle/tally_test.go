package oracle

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"tansy/fs"
)

// tally counts what procedures returned.
type tally map[string]map[error]int

func (n tally) add(proc string, err error) {
	if n[proc] == nil {
		n[proc] = map[error]int{}
	}
	n[proc][err]++
}

// The statuses that the model can give, by procedure, and BADHANDLE, which the
// layer above it gives. Each must be reached. "also" are those the model cannot
// give but the server may: it needs space where the model needs none.
var statuses = []struct {
	proc string
	can  []error
	also []error
}{
	{proc: "GETATTR", can: []error{nil, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "SETATTR",
		can: []error{nil, fs.ErrPerm, fs.ErrAcces, fs.ErrInval, fs.ErrFBig, fs.ErrStale, fs.ErrBadHandle, fs.ErrNotSync}},
	{proc: "LOOKUP",
		can: []error{nil, fs.ErrNoEnt, fs.ErrAcces, fs.ErrNotDir, fs.ErrNameTooLong, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "ACCESS", can: []error{nil, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "READLINK", can: []error{nil, fs.ErrInval, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "READ", can: []error{nil, fs.ErrAcces, fs.ErrInval, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "WRITE", can: []error{nil, fs.ErrAcces, fs.ErrInval, fs.ErrFBig, fs.ErrNoSpc, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "CREATE", can: []error{nil, fs.ErrAcces, fs.ErrExist, fs.ErrNotDir, fs.ErrInval, fs.ErrFBig, fs.ErrNoSpc,
		fs.ErrNameTooLong, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "MKDIR", can: []error{nil, fs.ErrAcces, fs.ErrExist, fs.ErrNotDir, fs.ErrInval, fs.ErrNoSpc, fs.ErrMLink,
		fs.ErrNameTooLong, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "SYMLINK", can: []error{nil, fs.ErrAcces, fs.ErrExist, fs.ErrNotDir, fs.ErrInval, fs.ErrNoSpc,
		fs.ErrNameTooLong, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "MKNOD", can: []error{nil, fs.ErrPerm, fs.ErrAcces, fs.ErrExist, fs.ErrNotDir, fs.ErrInval, fs.ErrNoSpc,
		fs.ErrNameTooLong, fs.ErrStale, fs.ErrBadHandle, fs.ErrBadType}},
	{proc: "REMOVE", can: []error{nil, fs.ErrNoEnt, fs.ErrAcces, fs.ErrNotDir, fs.ErrIsDir, fs.ErrInval, fs.ErrNameTooLong,
		fs.ErrStale, fs.ErrBadHandle}},
	{proc: "RMDIR", can: []error{nil, fs.ErrNoEnt, fs.ErrAcces, fs.ErrExist, fs.ErrNotDir, fs.ErrInval, fs.ErrNameTooLong,
		fs.ErrNotEmpty, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "RENAME", can: []error{nil, fs.ErrNoEnt, fs.ErrAcces, fs.ErrNotDir, fs.ErrIsDir, fs.ErrInval, fs.ErrMLink,
		fs.ErrNameTooLong, fs.ErrNotEmpty, fs.ErrStale, fs.ErrBadHandle}, also: []error{fs.ErrNoSpc}},
	{proc: "LINK", can: []error{nil, fs.ErrAcces, fs.ErrExist, fs.ErrNotDir, fs.ErrInval, fs.ErrMLink, fs.ErrNameTooLong,
		fs.ErrStale, fs.ErrBadHandle}, also: []error{fs.ErrNoSpc}},
	{proc: "READDIR",
		can: []error{nil, fs.ErrAcces, fs.ErrNotDir, fs.ErrStale, fs.ErrBadHandle, fs.ErrBadCookie, fs.ErrTooSmall}},
	{proc: "READDIRPLUS",
		can: []error{nil, fs.ErrAcces, fs.ErrNotDir, fs.ErrStale, fs.ErrBadHandle, fs.ErrBadCookie, fs.ErrTooSmall}},
	{proc: "FSSTAT", can: []error{nil, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "FSINFO", can: []error{nil, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "PATHCONF", can: []error{nil, fs.ErrStale, fs.ErrBadHandle}},
	{proc: "COMMIT", can: []error{nil, fs.ErrInval, fs.ErrStale, fs.ErrBadHandle}},
}

// missing lists what should have been reached, and what should not have been.
func (n tally) missing() (all []string) {
	for _, s := range statuses {
		for _, err := range append(slices.Clip(s.can), s.also...) {
			if n[s.proc][err] == 0 {
				all = append(all, fmt.Sprintf("%s never gave %s", s.proc, label(err)))
			}
		}
		for err, k := range n[s.proc] {
			if !slices.Contains(s.can, err) && !slices.Contains(s.also, err) {
				all = append(all, fmt.Sprintf("%s gave %s, %d times", s.proc, label(err), k))
			}
		}
	}
	return all
}

func label(err error) string {
	if err == nil {
		return "OK"
	}
	return strings.TrimPrefix(err.Error(), "NFS3ERR_")
}

// table is the tally in Markdown: procedures down, statuses across.
func (n tally) table() string {
	code := map[error]uint32{nil: 0}
	var columns []error
	for _, s := range statuses {
		for _, err := range append(slices.Clip(s.can), s.also...) {
			if e, ok := err.(fs.Errno); ok {
				code[err] = uint32(e)
			}
			if !slices.Contains(columns, err) {
				columns = append(columns, err)
			}
		}
	}
	sort.Slice(columns, func(i, j int) bool { return code[columns[i]] < code[columns[j]] })
	var b strings.Builder
	b.WriteString("| |")
	for _, err := range columns {
		fmt.Fprintf(&b, " %s |", label(err))
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(columns)) + "\n")
	for _, s := range statuses {
		fmt.Fprintf(&b, "| %s |", s.proc)
		for _, err := range columns {
			switch k := n[s.proc][err]; {
			case k > 0:
				fmt.Fprintf(&b, " %d |", k)
			case slices.Contains(s.can, err) || slices.Contains(s.also, err):
				b.WriteString(" **0** |")
			default:
				b.WriteString(" |")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// counted is a file system whose results are counted.
type counted struct {
	fs.FileSystem
	n tally
}

func (f counted) Getattr(h fs.Handle) (fs.Attr, error) {
	a, err := f.FileSystem.Getattr(h)
	f.n.add("GETATTR", err)
	return a, err
}

func (f counted) Setattr(c *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
	w, err := f.FileSystem.Setattr(c, h, s, guard)
	f.n.add("SETATTR", err)
	return w, err
}

func (f counted) Lookup(c *fs.Cred, dir fs.Handle, name []byte) (fs.Node, error) {
	n, err := f.FileSystem.Lookup(c, dir, name)
	f.n.add("LOOKUP", err)
	return n, err
}

func (f counted) Access(c *fs.Cred, h fs.Handle, want uint32) (uint32, fs.Attr, error) {
	granted, a, err := f.FileSystem.Access(c, h, want)
	f.n.add("ACCESS", err)
	return granted, a, err
}

func (f counted) Readlink(c *fs.Cred, h fs.Handle) ([]byte, *fs.Attr, error) {
	b, a, err := f.FileSystem.Readlink(c, h)
	f.n.add("READLINK", err)
	return b, a, err
}

func (f counted) Read(c *fs.Cred, h fs.Handle, off uint64, count uint32) ([]byte, bool, *fs.Attr, error) {
	b, eof, a, err := f.FileSystem.Read(c, h, off, count)
	f.n.add("READ", err)
	return b, eof, a, err
}

func (f counted) Write(
	c *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (uint32, fs.Stability, fs.WCC, error) {
	n, done, w, err := f.FileSystem.Write(c, h, off, data, how)
	f.n.add("WRITE", err)
	return n, done, w, err
}

func (f counted) Create(
	c *fs.Cred, dir fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64,
) (fs.Node, error) {
	n, err := f.FileSystem.Create(c, dir, name, how, s, verf)
	f.n.add("CREATE", err)
	return n, err
}

func (f counted) Mkdir(c *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr) (fs.Node, error) {
	n, err := f.FileSystem.Mkdir(c, dir, name, s)
	f.n.add("MKDIR", err)
	return n, err
}

func (f counted) Symlink(c *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr, target []byte) (fs.Node, error) {
	n, err := f.FileSystem.Symlink(c, dir, name, s, target)
	f.n.add("SYMLINK", err)
	return n, err
}

func (f counted) Mknod(
	c *fs.Cred, dir fs.Handle, name []byte, t fs.Type, s *fs.SetAttr, major, minor uint32,
) (fs.Node, error) {
	n, err := f.FileSystem.Mknod(c, dir, name, t, s, major, minor)
	f.n.add("MKNOD", err)
	return n, err
}

func (f counted) Remove(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	w, err := f.FileSystem.Remove(c, dir, name)
	f.n.add("REMOVE", err)
	return w, err
}

func (f counted) Rmdir(c *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	w, err := f.FileSystem.Rmdir(c, dir, name)
	f.n.add("RMDIR", err)
	return w, err
}

func (f counted) Rename(
	c *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte,
) (fs.WCC, fs.WCC, error) {
	w, w2, err := f.FileSystem.Rename(c, from, fromName, to, toName)
	f.n.add("RENAME", err)
	return w, w2, err
}

func (f counted) Link(c *fs.Cred, file, dir fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
	a, w, err := f.FileSystem.Link(c, file, dir, name)
	f.n.add("LINK", err)
	return a, w, err
}

func (f counted) Readdir(c *fs.Cred, dir fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit) (fs.Listing, error) {
	l, err := f.FileSystem.Readdir(c, dir, cookie, verf, plus, lim)
	if plus {
		f.n.add("READDIRPLUS", err)
	} else {
		f.n.add("READDIR", err)
	}
	return l, err
}

func (f counted) Fsstat(h fs.Handle) (fs.Stat, *fs.Attr, error) {
	s, a, err := f.FileSystem.Fsstat(h)
	f.n.add("FSSTAT", err)
	return s, a, err
}

func (f counted) Fsinfo(h fs.Handle) (fs.Info, *fs.Attr, error) {
	i, a, err := f.FileSystem.Fsinfo(h)
	f.n.add("FSINFO", err)
	return i, a, err
}

func (f counted) Pathconf(h fs.Handle) (fs.Pathconf, *fs.Attr, error) {
	p, a, err := f.FileSystem.Pathconf(h)
	f.n.add("PATHCONF", err)
	return p, a, err
}

func (f counted) Commit(h fs.Handle, off uint64, count uint32) (fs.WCC, error) {
	w, err := f.FileSystem.Commit(h, off, count)
	f.n.add("COMMIT", err)
	return w, err
}
