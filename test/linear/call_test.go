package linear

import (
	"fmt"
	"strings"

	"tansy/fs"
	"tansy/nfs/nfs3"
)

// call is one operation with its arguments: Porcupine's input. Which of the fields
// count depends on proc.
type call struct {
	id   int    // position in the history, from 0
	proc uint32 // NFS procedure, or crash
	cred *fs.Cred

	life   int  // so many crashes before it was called
	former bool // it was sent to a server that another had taken over from: an answer has to be right, and none is as well

	h, h2       fs.Handle
	name, name2 string
	set         fs.SetAttr
	guard       *fs.Time
	how         fs.CreateHow
	verf        uint64
	typ         fs.Type
	off         uint64
	count       uint32
	data        string
	stable      fs.Stability
	target      string
	plus        bool
	cookie      uint64 // READDIR of a page
	page        bool   // it may be any part of the directory
	want        uint32

	lists               fs.Lists // that are set: those that are named next
	setsAccess, setsDef bool

	// Its stamps lie between these, in nanoseconds since 1970, but for jumps of the clock.
	begun, ended uint64
	clock        *clock // of the history
}

// crash is the procedure number of an event that is none: the server stopped, and
// another one started on what was durable.
const crash = 100

// The procedures of NFSACL, with numbers that NFS has not.
const (
	getLists = 110
	setLists = 111
)

// reply is what an operation returned: Porcupine's output.
type reply struct {
	// lost: there was no answer, because the server crashed. The operation has
	// happened or not.
	lost bool
	// late: when the reply came, the server's machine had met its end.
	late bool

	err       error // nil or an fs.Errno
	node      fs.Node
	wcc, wcc2 fs.WCC
	attr      *fs.Attr
	data      string
	eof       bool
	n         uint32 // bytes written, or rights granted
	committed fs.Stability
	list      []fs.Entry
	verf      uint64
}

// do carries out the operation on f: a client of the server, or the model.
func (c *call) do(f fs.FileSystem) (r reply) {
	name, name2 := []byte(c.name), []byte(c.name2)
	switch c.proc {
	case nfs3.ProcGetattr:
		var a fs.Attr
		if a, r.err = f.Getattr(c.h); r.err == nil {
			r.attr = &a
		}
	case nfs3.ProcSetattr:
		r.wcc, r.err = f.Setattr(c.cred, c.h, &c.set, c.guard)
	case nfs3.ProcLookup:
		r.node, r.err = f.Lookup(c.cred, c.h, name)
	case nfs3.ProcAccess:
		var a fs.Attr
		r.n, a, r.err = f.Access(c.cred, c.h, c.want)
		r.attr = a.OrNil()
	case nfs3.ProcReadlink:
		var b []byte
		b, r.attr, r.err = f.Readlink(c.cred, c.h)
		r.data = string(b)
	case nfs3.ProcRead:
		var b []byte
		b, r.eof, r.attr, r.err = f.Read(c.cred, c.h, c.off, c.count)
		r.data = string(b)
	case nfs3.ProcWrite:
		r.n, r.committed, r.wcc, r.err = f.Write(c.cred, c.h, c.off, []byte(c.data), c.stable)
		r.verf = f.Verifier()
	case nfs3.ProcCreate:
		set := c.set
		r.node, r.err = f.Create(c.cred, c.h, name, c.how, &set, c.verf)
	case nfs3.ProcMkdir:
		set := c.set
		r.node, r.err = f.Mkdir(c.cred, c.h, name, &set)
	case nfs3.ProcSymlink:
		set := c.set
		r.node, r.err = f.Symlink(c.cred, c.h, name, &set, []byte(c.target))
	case nfs3.ProcMknod:
		set := c.set
		r.node, r.err = f.Mknod(c.cred, c.h, name, c.typ, &set, 0, 0)
	case nfs3.ProcRemove:
		r.wcc, r.err = f.Remove(c.cred, c.h, name)
	case nfs3.ProcRmdir:
		r.wcc, r.err = f.Rmdir(c.cred, c.h, name)
	case nfs3.ProcRename:
		r.wcc, r.wcc2, r.err = f.Rename(c.cred, c.h, name, c.h2, name2)
	case nfs3.ProcLink:
		r.attr, r.wcc, r.err = f.Link(c.cred, c.h, c.h2, name)
	case nfs3.ProcReaddir:
		var l fs.Listing
		l, r.err = f.Readdir(c.cred, c.h, c.cookie, 0, c.plus,
			fs.Limit{Bytes: int(c.count), Size: func(n int) int { return n }})
		r.list, r.eof, r.attr = l.Entries, l.EOF, l.Dir
	case nfs3.ProcFsstat:
		_, r.attr, r.err = f.Fsstat(c.h)
	case nfs3.ProcCommit:
		r.wcc, r.err = f.Commit(c.h, 0, 0)
		r.verf = f.Verifier()
	case getLists:
		r.attr, r.data, r.err = listsOf(f, c.h)
	case setLists:
		r.err = c.setListsOf(f)
	default:
		panic("no such call")
	}
	return r
}

// reads tells if the operation changes nothing, whatever it finds.
func (c *call) reads() bool {
	switch c.proc {
	case nfs3.ProcGetattr, nfs3.ProcLookup, nfs3.ProcAccess, nfs3.ProcReadlink, nfs3.ProcRead, nfs3.ProcReaddir, nfs3.ProcFsstat, nfs3.ProcCommit,
		getLists,
		sysOpen, sysReadlink, sysList, sysStat, sysRead, sysSync:
		return true
	}
	return false
}

func (c *call) String() string {
	if c.isLocal() {
		return c.showHere()
	}
	h, h2 := handleName(c.h), handleName(c.h2)
	u := ""
	if c.cred != nil && c.cred.UID != 0 {
		u = fmt.Sprintf(" as %d", c.cred.UID)
	}
	switch c.proc {
	case crash:
		return "CRASH"
	case nfs3.ProcGetattr:
		return "GETATTR " + h
	case nfs3.ProcSetattr:
		s := ""
		if c.guard != nil {
			s = fmt.Sprintf(" guard %s", stamp(*c.guard))
		}
		return fmt.Sprintf("SETATTR %s%s%s%s", h, showSet(&c.set), s, u)
	case nfs3.ProcLookup:
		return fmt.Sprintf("LOOKUP %s/%s%s", h, c.name, u)
	case nfs3.ProcAccess:
		return fmt.Sprintf("ACCESS %s %x%s", h, c.want, u)
	case nfs3.ProcReadlink:
		return "READLINK " + h
	case nfs3.ProcRead:
		return fmt.Sprintf("READ %s %d+%d%s", h, c.off, c.count, u)
	case nfs3.ProcWrite:
		return fmt.Sprintf("WRITE %s %d+%d %q stable %d%s", h, c.off, len(c.data), short(c.data), c.stable, u)
	case nfs3.ProcCreate:
		return fmt.Sprintf("CREATE %s/%s how %d verf %d%s%s", h, c.name, c.how, c.verf, showSet(&c.set), u)
	case nfs3.ProcMkdir:
		return fmt.Sprintf("MKDIR %s/%s%s%s", h, c.name, showSet(&c.set), u)
	case nfs3.ProcSymlink:
		return fmt.Sprintf("SYMLINK %s/%s %q%s", h, c.name, c.target, u)
	case nfs3.ProcMknod:
		return fmt.Sprintf("MKNOD %s/%s type %d%s", h, c.name, c.typ, u)
	case nfs3.ProcRemove:
		return fmt.Sprintf("REMOVE %s/%s%s", h, c.name, u)
	case nfs3.ProcRmdir:
		return fmt.Sprintf("RMDIR %s/%s%s", h, c.name, u)
	case nfs3.ProcRename:
		return fmt.Sprintf("RENAME %s/%s %s/%s%s", h, c.name, h2, c.name2, u)
	case nfs3.ProcLink:
		return fmt.Sprintf("LINK %s %s/%s%s", h, h2, c.name, u)
	case nfs3.ProcReaddir:
		return fmt.Sprintf("READDIR %s plus %v cookie %d count %d%s", h, c.plus, c.cookie, c.count, u)
	case nfs3.ProcFsstat:
		return "FSSTAT " + h
	case nfs3.ProcCommit:
		return "COMMIT " + h
	case getLists:
		return "GETACL " + h
	case setLists:
		return fmt.Sprintf("SETACL %s access %v %+v default %v %+v%s", h, c.setsAccess, c.lists.Access, c.setsDef,
			c.lists.Default, u)
	}
	return "?"
}

func (r *reply) String() string {
	if r.lost {
		return "no answer"
	}
	var b strings.Builder
	if r.err != nil {
		b.WriteString(r.err.Error())
	} else {
		b.WriteString("ok")
	}
	if r.node.Handle != (fs.Handle{}) {
		fmt.Fprintf(&b, " %s %s", handleName(r.node.Handle), showAttr(&r.node.Attr))
	}
	for _, a := range []*fs.Attr{r.node.Parent.OrNil(), r.attr} {
		if a == nil {
			continue
		}
		fmt.Fprintf(&b, " %s", showAttr(a))
	}
	if r.data != "" || r.eof {
		fmt.Fprintf(&b, " %d bytes %q eof %v", len(r.data), short(r.data), r.eof)
	}
	if r.n != 0 {
		fmt.Fprintf(&b, " n %d committed %d", r.n, r.committed)
	}
	for _, w := range []fs.WCC{r.node.Dir, r.wcc, r.wcc2} {
		if w.Before != nil {
			fmt.Fprintf(&b, " before{%d m%s c%s}", w.Before.Size, stamp(w.Before.Mtime), stamp(w.Before.Ctime))
		}
		if w.After != nil {
			fmt.Fprintf(&b, " after%s", showAttr(w.After))
		}
	}
	for _, e := range r.list {
		fmt.Fprintf(&b, " %s:%d", e.Name, e.Ino)
		if e.Attr != nil {
			b.WriteString(showAttr(e.Attr))
		}
	}
	return b.String()
}

func handleName(h fs.Handle) string {
	if standIn(h.Ino) {
		return fmt.Sprintf("?%d", h.Ino&^unknown)
	}
	return fmt.Sprintf("#%d.%d", h.Ino, h.Gen%10000)
}

// stamp shows a time of the clock of the tests, which counts.
func stamp(t fs.Time) string {
	if standIn(t.Sec) {
		return fmt.Sprintf("?%d", t.Sec&^unknown)
	}
	if t.Sec != clockBase {
		return fmt.Sprintf("%d.%09d", t.Sec, t.Nsec)
	}
	return fmt.Sprint(t.Nsec)
}

func showAttr(a *fs.Attr) string {
	return fmt.Sprintf("{#%d t%d %o n%d u%d:%d s%d a%s m%s c%s}", a.Ino, a.Type, a.Mode, a.Nlink, a.UID, a.GID, a.Size,
		stamp(a.Atime), stamp(a.Mtime), stamp(a.Ctime))
}

func showSet(s *fs.SetAttr) string {
	t := ""
	if s.Mode != nil {
		t += fmt.Sprintf(" mode %o", *s.Mode)
	}
	if s.UID != nil {
		t += fmt.Sprintf(" uid %d", *s.UID)
	}
	if s.GID != nil {
		t += fmt.Sprintf(" gid %d", *s.GID)
	}
	if s.Size != nil {
		t += fmt.Sprintf(" size %d", *s.Size)
	}
	if s.AtimeHow != 0 || s.MtimeHow != 0 {
		t += fmt.Sprintf(" atime %d mtime %d", s.AtimeHow, s.MtimeHow)
	}
	return t
}

func short(s string) string {
	if s = strings.Trim(s, "\x00"); len(s) > 24 {
		return s[:12] + ".." + s[len(s)-12:]
	}
	return s
}
