package nfsclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"tansy/fs"
	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
)

// Client is a file system on a server. It knows what a handle of Tansy looks
// like, because fs.Handle has inode and generation. Attr.Gen is not on the wire
// and zero, except in Node.
type Client struct {
	*Conn
	root  fs.Handle
	verf  atomic.Uint64
	known *handles
}

// handles are those seen, by one client or by several.
type handles struct {
	mu  sync.Mutex
	raw map[fs.Handle][]byte
}

var _ fs.FileSystem = (*Client)(nil)

var errReply = errors.New("nfsclient: malformed result")

// Mount connects to a server and mounts its root.
func Mount(addr string) (*Client, error) {
	return mount(addr, &handles{raw: map[fs.Handle][]byte{}})
}

// Sibling mounts as Mount does, another server of the same volume perhaps. The two
// clients share what they know of handles, now and later.
func (c *Client) Sibling(addr string) (*Client, error) { return mount(addr, c.known) }

func mount(addr string, known *handles) (*Client, error) {
	conn, err := Dial(addr)
	if err != nil {
		return nil, err
	}
	return mountOn(conn, "/", known)
}

// MountOn mounts on a connection that is there already.
func MountOn(nc io.ReadWriteCloser) (*Client, error) { return MountDir(nc, "/") }

// MountDir mounts a directory as MountOn mounts the root: it is the client's root. Its
// error is an fs.Errno if the server says so.
func MountDir(nc io.ReadWriteCloser, dir string) (*Client, error) {
	return mountOn(NewConn(nc), dir, &handles{raw: map[fs.Handle][]byte{}})
}

func mountOn(conn *Conn, dir string, known *handles) (*Client, error) {
	c := &Client{Conn: conn, known: known}
	d, err := conn.Call(mount3.Program, mount3.Version, mount3.ProcMnt, &fs.Cred{},
		func(e *oncrpc.Encoder) { e.Opaque([]byte(dir)) })
	if err == nil {
		if stat := d.Uint32(); stat != 0 {
			err = fmt.Errorf("mount: %w", fs.Errno(stat))
		} else {
			c.root = c.getHandle(d)
			err = c.end(d, nil)
		}
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// On is c over another connection, on which nothing was mounted. The two share what they know of handles.
func (c *Client) On(nc io.ReadWriteCloser) *Client {
	return &Client{Conn: NewConn(nc), root: c.root, known: c.known}
}

// Raw is the handle as it is on the wire.
func (c *Client) Raw(h fs.Handle) []byte {
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	if b := c.known.raw[h]; b != nil {
		return b
	}
	return make([]byte, nfs3.HandleSize) // no server takes that
}

func (c *Client) getHandle(d *oncrpc.Decoder) (h fs.Handle) {
	b := d.Opaque(64)
	if len(b) != nfs3.HandleSize {
		d.Fail()
		return h
	}
	h.Ino, h.Gen = binary.BigEndian.Uint64(b[8:]), binary.BigEndian.Uint64(b[16:])
	c.known.mu.Lock()
	c.known.raw[h] = append([]byte(nil), b...)
	c.known.mu.Unlock()
	return h
}

func (c *Client) putHandle(e *oncrpc.Encoder, h fs.Handle) { e.Opaque(c.Raw(h)) }

func getTime(d *oncrpc.Decoder) fs.Time { return fs.Time{Sec: uint64(d.Uint32()), Nsec: d.Uint32()} }

func putTime(e *oncrpc.Encoder, t fs.Time) {
	e.Uint32(uint32(t.Sec))
	e.Uint32(t.Nsec)
}

func getAttr(d *oncrpc.Decoder) (a fs.Attr) {
	a.Type = fs.Type(d.Uint32())
	a.Mode, a.Nlink, a.UID, a.GID = d.Uint32(), d.Uint32(), d.Uint32(), d.Uint32()
	a.Size, a.Used = d.Uint64(), d.Uint64()
	a.Major, a.Minor = d.Uint32(), d.Uint32()
	d.Uint64() // fsid
	a.Ino = d.Uint64()
	a.Atime, a.Mtime, a.Ctime = getTime(d), getTime(d), getTime(d)
	return a
}

func getPostOp(d *oncrpc.Decoder) *fs.Attr {
	if !d.Bool() {
		return nil
	}
	a := getAttr(d)
	return &a
}

// getWCC fills of Before only what is on the wire: size, mtime, ctime.
func getWCC(d *oncrpc.Decoder) (w fs.WCC) {
	if d.Bool() {
		w.Before = &fs.Attr{Size: d.Uint64(), Mtime: getTime(d), Ctime: getTime(d)}
	}
	w.After = getPostOp(d)
	return w
}

func putSattr(e *oncrpc.Encoder, s *fs.SetAttr) {
	for _, p := range []*uint32{s.Mode, s.UID, s.GID} {
		e.Bool(p != nil)
		if p != nil {
			e.Uint32(*p)
		}
	}
	e.Bool(s.Size != nil)
	if s.Size != nil {
		e.Uint64(*s.Size)
	}
	putHow := func(how fs.TimeHow, t fs.Time) {
		e.Uint32(uint32(how))
		if how == fs.ClientTime {
			putTime(e, t)
		}
	}
	putHow(s.AtimeHow, s.Atime)
	putHow(s.MtimeHow, s.Mtime)
}

// nfs makes a call of NFS and decodes its status. The decoder is never nil.
func (c *Client) nfs(proc uint32, cred *fs.Cred, args func(*oncrpc.Encoder)) (*oncrpc.Decoder, error) {
	return status(c.Call(nfs3.Program, nfs3.Version, proc, cred, args))
}

// status decodes the status of a result.
func status(d *oncrpc.Decoder, err error) (*oncrpc.Decoder, error) {
	if err != nil {
		failed := oncrpc.NewDecoder(nil)
		failed.Fail()
		return &failed, err
	}
	if stat := d.Uint32(); stat != 0 {
		return d, fs.Errno(stat)
	}
	return d, nil
}

// end checks that a result was decoded to its last byte. err is the outcome of
// the call.
func (c *Client) end(d *oncrpc.Decoder, err error) error {
	if _, isErrno := err.(fs.Errno); err != nil && !isErrno {
		return err
	}
	if !d.Ok() {
		return errReply
	}
	return err
}

// Null makes the call that does nothing.
func (c *Client) Null() error {
	_, err := c.Call(nfs3.Program, nfs3.Version, nfs3.ProcNull, nil, nil)
	return err
}

// Root implements fs.FileSystem.
func (c *Client) Root() fs.Handle { return c.root }

// Verifier is the write verifier of the last reply that had one.
func (c *Client) Verifier() uint64 { return c.verf.Load() }

// Getattr implements fs.FileSystem.
func (c *Client) Getattr(h fs.Handle) (a fs.Attr, err error) {
	d, err := c.nfs(nfs3.ProcGetattr, &fs.Cred{}, func(e *oncrpc.Encoder) { c.putHandle(e, h) })
	if err == nil {
		a = getAttr(d)
	}
	return a, c.end(d, err)
}

// Setattr implements fs.FileSystem.
func (c *Client) Setattr(cred *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
	d, err := c.nfs(nfs3.ProcSetattr, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, h)
		putSattr(e, s)
		e.Bool(guard != nil)
		if guard != nil {
			putTime(e, *guard)
		}
	})
	w := getWCC(d)
	return w, c.end(d, err)
}

func (c *Client) putDirop(e *oncrpc.Encoder, dir fs.Handle, name []byte) {
	c.putHandle(e, dir)
	e.Opaque(name)
}

// Lookup implements fs.FileSystem.
func (c *Client) Lookup(cred *fs.Cred, dir fs.Handle, name []byte) (n fs.Node, err error) {
	d, err := c.nfs(nfs3.ProcLookup, cred, func(e *oncrpc.Encoder) { c.putDirop(e, dir, name) })
	if err == nil {
		n.Handle = c.getHandle(d)
		if a := getPostOp(d); a != nil {
			n.Attr = *a
			n.Attr.Gen = n.Handle.Gen
		}
	}
	if a := getPostOp(d); a != nil {
		n.Parent = *a
	}
	return n, c.end(d, err)
}

// Access implements fs.FileSystem.
func (c *Client) Access(cred *fs.Cred, h fs.Handle, want uint32) (granted uint32, a fs.Attr, err error) {
	d, err := c.nfs(nfs3.ProcAccess, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, h)
		e.Uint32(want)
	})
	if known := getPostOp(d); known != nil {
		a = *known
	}
	if err == nil {
		granted = d.Uint32()
	}
	return granted, a, c.end(d, err)
}

// Readlink implements fs.FileSystem.
func (c *Client) Readlink(cred *fs.Cred, h fs.Handle) (target []byte, a *fs.Attr, err error) {
	d, err := c.nfs(nfs3.ProcReadlink, cred, func(e *oncrpc.Encoder) { c.putHandle(e, h) })
	a = getPostOp(d)
	if err == nil {
		target = d.Opaque(1 << 20)
	}
	return target, a, c.end(d, err)
}

// Read implements fs.FileSystem.
func (c *Client) Read(
	cred *fs.Cred, h fs.Handle, off uint64, count uint32,
) (data []byte, eof bool, a *fs.Attr, err error) {
	d, err := c.nfs(nfs3.ProcRead, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, h)
		e.Uint64(off)
		e.Uint32(count)
	})
	a = getPostOp(d)
	if err == nil {
		n := d.Uint32()
		eof = d.Bool()
		data = d.Opaque(1 << 20)
		if int(n) != len(data) {
			d.Fail()
		}
	}
	return data, eof, a, c.end(d, err)
}

// Write implements fs.FileSystem.
func (c *Client) Write(
	cred *fs.Cred, h fs.Handle, off uint64, data []byte, how fs.Stability,
) (n uint32, committed fs.Stability, w fs.WCC, err error) {
	d, err := c.nfs(nfs3.ProcWrite, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, h)
		e.Uint64(off)
		e.Uint32(uint32(len(data)))
		e.Uint32(uint32(how))
		e.Opaque(data)
	})
	w = getWCC(d)
	if err == nil {
		n, committed = d.Uint32(), fs.Stability(d.Uint32())
		c.verf.Store(d.Uint64())
	}
	return n, committed, w, c.end(d, err)
}

// made decodes the result of the operations that make a file.
func (c *Client) made(d *oncrpc.Decoder, err error) (n fs.Node, _ error) {
	if err == nil {
		if d.Bool() {
			n.Handle = c.getHandle(d)
		}
		if a := getPostOp(d); a != nil {
			n.Attr = *a
			n.Attr.Gen = n.Handle.Gen
		}
	}
	n.Dir = getWCC(d)
	return n, c.end(d, err)
}

// Create implements fs.FileSystem.
func (c *Client) Create(
	cred *fs.Cred, dir fs.Handle, name []byte, how fs.CreateHow, s *fs.SetAttr, verf uint64,
) (fs.Node, error) {
	return c.made(c.nfs(nfs3.ProcCreate, cred, func(e *oncrpc.Encoder) {
		c.putDirop(e, dir, name)
		e.Uint32(uint32(how))
		if how == fs.Exclusive {
			e.Uint64(verf)
		} else {
			putSattr(e, s)
		}
	}))
}

// Mkdir implements fs.FileSystem.
func (c *Client) Mkdir(cred *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr) (fs.Node, error) {
	return c.made(c.nfs(nfs3.ProcMkdir, cred, func(e *oncrpc.Encoder) {
		c.putDirop(e, dir, name)
		putSattr(e, s)
	}))
}

// Symlink implements fs.FileSystem.
func (c *Client) Symlink(cred *fs.Cred, dir fs.Handle, name []byte, s *fs.SetAttr, target []byte) (fs.Node, error) {
	return c.made(c.nfs(nfs3.ProcSymlink, cred, func(e *oncrpc.Encoder) {
		c.putDirop(e, dir, name)
		putSattr(e, s)
		e.Opaque(target)
	}))
}

// Mknod implements fs.FileSystem.
func (c *Client) Mknod(
	cred *fs.Cred, dir fs.Handle, name []byte, t fs.Type, s *fs.SetAttr, major, minor uint32,
) (fs.Node, error) {
	return c.made(c.nfs(nfs3.ProcMknod, cred, func(e *oncrpc.Encoder) {
		c.putDirop(e, dir, name)
		e.Uint32(uint32(t))
		switch t {
		case fs.Char, fs.Block:
			putSattr(e, s)
			e.Uint32(major)
			e.Uint32(minor)
		case fs.Socket, fs.FIFO:
			putSattr(e, s)
		}
	}))
}

func (c *Client) unlink(proc uint32, cred *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	d, err := c.nfs(proc, cred, func(e *oncrpc.Encoder) { c.putDirop(e, dir, name) })
	w := getWCC(d)
	return w, c.end(d, err)
}

// Remove implements fs.FileSystem.
func (c *Client) Remove(cred *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	return c.unlink(nfs3.ProcRemove, cred, dir, name)
}

// Rmdir implements fs.FileSystem.
func (c *Client) Rmdir(cred *fs.Cred, dir fs.Handle, name []byte) (fs.WCC, error) {
	return c.unlink(nfs3.ProcRmdir, cred, dir, name)
}

// Rename implements fs.FileSystem.
func (c *Client) Rename(
	cred *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte,
) (fs.WCC, fs.WCC, error) {
	d, err := c.nfs(nfs3.ProcRename, cred, func(e *oncrpc.Encoder) {
		c.putDirop(e, from, fromName)
		c.putDirop(e, to, toName)
	})
	w := getWCC(d)
	toW := getWCC(d)
	return w, toW, c.end(d, err)
}

// Link implements fs.FileSystem.
func (c *Client) Link(cred *fs.Cred, file, dir fs.Handle, name []byte) (*fs.Attr, fs.WCC, error) {
	d, err := c.nfs(nfs3.ProcLink, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, file)
		c.putDirop(e, dir, name)
	})
	a := getPostOp(d)
	w := getWCC(d)
	return a, w, c.end(d, err)
}

// Readdir implements fs.FileSystem. The sizes of entries are those of the protocol; the functions of lim are not
// called.
func (c *Client) Readdir(
	cred *fs.Cred, dir fs.Handle, cookie, verf uint64, plus bool, lim fs.Limit,
) (l fs.Listing, err error) {
	const rest = 104 // bytes of the result beside its entries
	count := uint32(rest + lim.Bytes)
	dirCount := count
	if lim.DirSize != nil {
		dirCount = uint32(lim.DirBytes)
	}
	proc := uint32(nfs3.ProcReaddir)
	if plus {
		proc = nfs3.ProcReaddirplus
	}
	d, err := c.nfs(proc, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, dir)
		e.Uint64(cookie)
		e.Uint64(verf)
		if plus {
			e.Uint32(dirCount)
		}
		e.Uint32(count)
	})
	l.Dir = getPostOp(d)
	if err != nil {
		return l, c.end(d, err)
	}
	l.Verf = d.Uint64()
	for d.Bool() {
		x := fs.Entry{Ino: d.Uint64(), Name: d.Opaque(1 << 20), Cookie: d.Uint64()}
		if plus {
			x.Attr = getPostOp(d)
			if d.Bool() {
				x.Handle = c.getHandle(d)
			}
		}
		l.Entries = append(l.Entries, x)
	}
	l.EOF = d.Bool()
	return l, c.end(d, nil)
}

// Fsstat implements fs.FileSystem.
func (c *Client) Fsstat(h fs.Handle) (st fs.Stat, a *fs.Attr, err error) {
	d, err := c.nfs(nfs3.ProcFsstat, &fs.Cred{}, func(e *oncrpc.Encoder) { c.putHandle(e, h) })
	a = getPostOp(d)
	if err == nil {
		st.TotalBytes, st.FreeBytes = d.Uint64(), d.Uint64()
		d.Uint64()
		st.TotalFiles, st.FreeFiles = d.Uint64(), d.Uint64()
		d.Uint64()
		d.Uint32()
	}
	return st, a, c.end(d, err)
}

// Fsinfo implements fs.FileSystem.
func (c *Client) Fsinfo(h fs.Handle) (i fs.Info, a *fs.Attr, err error) {
	d, err := c.nfs(nfs3.ProcFsinfo, &fs.Cred{}, func(e *oncrpc.Encoder) { c.putHandle(e, h) })
	a = getPostOp(d)
	if err == nil {
		for _, p := range []*uint32{&i.RtMax, &i.RtPref, &i.RtMult, &i.WtMax, &i.WtPref, &i.WtMult, &i.DtPref} {
			*p = d.Uint32()
		}
		i.MaxFileSize = d.Uint64()
		i.TimeDelta = getTime(d)
		i.Properties = d.Uint32()
	}
	return i, a, c.end(d, err)
}

// Pathconf implements fs.FileSystem.
func (c *Client) Pathconf(h fs.Handle) (p fs.Pathconf, a *fs.Attr, err error) {
	d, err := c.nfs(nfs3.ProcPathconf, &fs.Cred{}, func(e *oncrpc.Encoder) { c.putHandle(e, h) })
	a = getPostOp(d)
	if err == nil {
		p.LinkMax, p.NameMax = d.Uint32(), d.Uint32()
		p.NoTrunc, p.ChownRestricted, p.CaseInsensitive, p.CasePreserving = d.Bool(), d.Bool(), d.Bool(), d.Bool()
	}
	return p, a, c.end(d, err)
}

// Commit implements fs.FileSystem.
func (c *Client) Commit(h fs.Handle, off uint64, count uint32) (fs.WCC, error) {
	d, err := c.nfs(nfs3.ProcCommit, &fs.Cred{}, func(e *oncrpc.Encoder) {
		c.putHandle(e, h)
		e.Uint64(off)
		e.Uint32(count)
	})
	w := getWCC(d)
	if err == nil {
		c.verf.Store(d.Uint64())
	}
	return w, c.end(d, err)
}

// Learn takes over the handles that another client knows.
func (c *Client) Learn(from *Client) {
	from.known.mu.Lock()
	defer from.known.mu.Unlock()
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	for h, raw := range from.known.raw {
		c.known.raw[h] = raw
	}
}
