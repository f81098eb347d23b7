package linear

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tansy/fs"
	"tansy/fs/model"
)

// local is the number of the first system call on a mount; those of procedures are below it.
const local = 200

// System calls on a mount. Each is one step for all others: it works on an open file, or on a name in an open
// directory. A path is found in several steps, of which others may see the middle, on every file system.
const (
	sysOpen     = local + iota // open a file that is there
	sysCreate                  // open with O_CREAT, and O_EXCL if how is Guarded
	sysMkdir                   //
	sysSymlink                 //
	sysSocket                  // mknod
	sysUnlink                  //
	sysRmdir                   //
	sysRename                  // with RENAME_NOREPLACE if how is Guarded
	sysLink                    // of an open file
	sysList                    // getdents
	sysReadlink                //
	sysStat                    // fstat
	sysRead                    // pread
	sysWrite                   // pwrite
	sysTruncate                // ftruncate
	sysMode                    // fchmod
	sysTimes                   // futimens
	sysSync                    // fsync
)

var sysNames = []string{"open", "create", "mkdir", "symlink", "socket", "unlink", "rmdir", "rename", "link", "list",
	"readlink", "stat", "read", "write", "truncate", "chmod", "utimens", "fsync"}

func (c *call) isLocal() bool { return c.proc >= local }

// errLoop is ELOOP: the file is a symbolic link; errNoDevice is ENXIO: it is a socket.
const (
	errLoop     = fs.Errno(40)
	errNoDevice = fs.Errno(6)
)

// cannotOpen is why a file of a type cannot be opened.
func cannotOpen(t fs.Type) error {
	switch t {
	case fs.Directory:
		return fs.ErrIsDir
	case fs.Symlink:
		return errLoop
	case fs.Socket:
		return errNoDevice
	}
	return nil
}

// errGone is that the model does not have the file any more, which the mount keeps while it is open.
var errGone = errors.New("it has no name any more")

// tryHere is try for a system call.
func (k *checker) tryHere(w *world, c *call, r *reply) ([]*world, error) {
	switch {
	case r.err == fs.ErrStale && (c.proc == sysOpen || c.proc == sysReadlink):
		return []*world{w}, nil // what the name meant was replaced twice before it was opened
	case r.err == fs.ErrNoEnt && c.proc == sysLink:
		// The kernel links nothing that it thinks to have no name. It takes a name off the number that it has, which may
		// be the one after that already, if it has looked in between.
		return []*world{w}, nil
	}
	m, made := w.now.Model, false
	if !c.reads() {
		s := &stamps{call: c}
		m = m.Fork(model.Options{Clock: clockAt(unknownTime(c.id)), Stamp: s.next, NewHandle: func() fs.Handle {
			made = true
			if r.node.Handle.Ino != 0 {
				return r.node.Handle
			}
			return unknownHandle(c.id)
		}})
	}
	x := c.onModel(m)
	if k.cached && k.resized(c) {
		if c.proc == sysRead && r.err == nil {
			return []*world{w}, nil
		}
		if c.proc == sysStat && x.attr != nil && r.attr != nil {
			x.attr.Size = r.attr.Size
		}
	}
	if x.err == errGone {
		// Nothing is known of it but that it gets no name again.
		if c.proc == sysLink && r.err == nil {
			return nil, fmt.Errorf("a file without a name has one again")
		}
		return []*world{w}, nil
	}
	if made && w.now.Live(r.node.Handle.Ino) {
		return nil, fmt.Errorf("a new file has inode %d, which is another file's", r.node.Handle.Ino)
	}
	diff := match{calls: k.calls, top: k.top.Handle}
	if !diff.here(c, &x, r) {
		return nil, diff.why
	}
	after, older := w.now, w.older
	if !c.reads() {
		after = still(m)
	}
	switch changed := after.sum != w.now.sum; {
	case changed:
		older = append(older[:len(older):len(older)], w.now)
	case c.proc == sysSync:
		older = nil
	}
	return diff.learn(after, older)
}

// resized tells if the size of the call's file may change while it runs. The server has the new size first, and the
// kernel a moment later. So a read is then no one step: the kernel reads nothing behind the end that it knows, and what
// came meanwhile apart.
func (k *checker) resized(c *call) bool {
	return slices.ContainsFunc(k.calls, func(x *call) bool {
		return (x.proc == sysWrite || x.proc == sysTruncate) && x.h.Ino == c.h.Ino && x.begun <= c.ended && c.begun <= x.ended
	})
}

// here compares what the model and the mount say of a system call.
func (m *match) here(c *call, a, b *reply) bool {
	if a.err != b.err {
		m.fail("%v, not %v", b.err, a.err)
		return false
	}
	if a.err != nil {
		return true
	}
	if a.data != b.data {
		m.fail("data %q, not %q", short(b.data), short(a.data))
	}
	if a.n != b.n {
		m.fail("%d, not %d", b.n, a.n)
	}
	if b.node.Handle.Ino != 0 {
		m.handle("the file", a.node.Handle, b.node.Handle, false)
	}
	m.attr("attributes", a.attr, b.attr)
	if c.proc != sysList {
		return m.why == nil
	}
	m.list(c, a, b)
	types := map[string]fs.Type{}
	for _, e := range a.list {
		types[string(e.Name)] = e.Attr.Type
	}
	for _, e := range b.list {
		if types[string(e.Name)] != e.Attr.Type {
			m.fail("entry %q has type %d, not %d", e.Name, e.Attr.Type, types[string(e.Name)])
		}
	}
	return m.why == nil
}

// onModel makes a system call on the model, as root.
func (c *call) onModel(m *model.Model) (x reply) {
	at, ok := m.Named(c.h.Ino)
	if !ok {
		return reply{err: errGone}
	}
	name, set := []byte(c.name), c.set
	switch c.proc {
	case sysOpen, sysCreate:
		x.node, x.err = c.openModel(m, at)
	case sysMkdir:
		x.node, x.err = m.Mkdir(root, at, name, &set)
	case sysSymlink:
		x.node, x.err = m.Symlink(root, at, name, &fs.SetAttr{Mode: u32(0o777)}, []byte(c.target))
	case sysSocket:
		x.node, x.err = m.Mknod(root, at, name, fs.Socket, &set, 0, 0)
	case sysUnlink:
		_, x.err = m.Remove(root, at, name)
	case sysRmdir:
		_, x.err = m.Rmdir(root, at, name)
	case sysRename:
		x.err = c.renameModel(m, at)
	case sysLink:
		to, _ := m.Named(c.h2.Ino)
		_, _, x.err = m.Link(root, at, to, name)
	case sysReadlink:
		var n fs.Node
		if n, x.err = m.Lookup(root, at, name); x.err == nil && n.Attr.Type != fs.Symlink {
			x.err = fs.ErrInval
		}
		if x.err == nil {
			b, _, err := m.Readlink(root, n.Handle)
			x.data, x.err = string(b), err
		}
	default:
		c.fileModel(m, at, &x)
	}
	return x
}

// fileModel is onModel for what is done to an open file.
func (c *call) fileModel(m *model.Model, at fs.Handle, x *reply) {
	switch c.proc {
	case sysList:
		l, err := m.Readdir(root, at, 0, 0, true, fs.Limit{Bytes: math.MaxInt32})
		x.list, x.err = l.Entries, err
	case sysStat:
		var a fs.Attr
		a, x.err = m.Getattr(at)
		x.attr = &a
	case sysRead:
		b, _, _, err := m.Read(root, at, c.off, c.count)
		x.data, x.err = string(b), err
	case sysWrite:
		x.n, _, _, x.err = m.Write(root, at, c.off, []byte(c.data), fs.Unstable)
	case sysTruncate, sysMode, sysTimes:
		_, x.err = m.Setattr(root, at, &c.set, nil)
	}
}

func (c *call) openModel(m *model.Model, dir fs.Handle) (fs.Node, error) {
	n, err := m.Lookup(root, dir, []byte(c.name))
	switch {
	case err == fs.ErrNoEnt && c.proc == sysCreate:
		return m.Create(root, dir, []byte(c.name), fs.Guarded, &fs.SetAttr{Mode: c.set.Mode}, 0)
	case err != nil:
		return n, err
	case c.proc == sysCreate && c.how == fs.Guarded:
		return n, fs.ErrExist
	}
	return n, cannotOpen(n.Attr.Type)
}

func (c *call) renameModel(m *model.Model, from fs.Handle) error {
	to, _ := m.Named(c.h2.Ino)
	if _, err := m.Lookup(root, from, []byte(c.name)); err != nil { // whatever the new name is
		return err
	}
	if _, err := m.Lookup(root, to, []byte(c.name2)); err == nil && c.how == fs.Guarded {
		return fs.ErrExist
	}
	_, _, err := m.Rename(root, from, []byte(c.name), to, []byte(c.name2))
	return err
}

// showHere is String of a system call.
func (c *call) showHere() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s #%d", sysNames[c.proc-local], c.h.Ino)
	switch c.proc {
	case sysRead:
		fmt.Fprintf(&b, " %d+%d", c.off, c.count)
	case sysWrite:
		fmt.Fprintf(&b, " %d+%d %q", c.off, len(c.data), short(c.data))
	case sysRename:
		fmt.Fprintf(&b, "/%s #%d/%s how %d", c.name, c.h2.Ino, c.name2, c.how)
	case sysLink:
		fmt.Fprintf(&b, " #%d/%s", c.h2.Ino, c.name)
	case sysCreate:
		fmt.Fprintf(&b, "/%s how %d", c.name, c.how)
	case sysOpen, sysMkdir, sysSymlink, sysSocket, sysUnlink, sysRmdir, sysReadlink:
		fmt.Fprintf(&b, "/%s", c.name)
	}
	return b.String() + showSet(&c.set)
}
