package load

import (
	"bytes"
	"fmt"
	"slices"
)

// Programs and procedures (RFC 1813); all of version 3.
const (
	mountProgram = 100005
	nfsProgram   = 100003

	procNull    = 0
	procGetattr = 1
	procLookup  = 3
	procRead    = 6
	procWrite   = 7
	procCreate  = 8
	procMkdir   = 9
	procRemove  = 12
	procRmdir   = 13
	procList    = 17 // READDIRPLUS
	procFsstat  = 18
	procCommit  = 21
)

// How durable a WRITE is to be (RFC 1813, section 3.3.7).
const (
	Unstable = 0
	FileSync = 2
)

const (
	errNoEnt = 2
	AttrSize = 84 // of a fattr3, in bytes
)

// Handle is an opaque file handle.
type Handle []byte

func skipAttr(d *decoder) {
	if d.u32() != 0 {
		d.take(AttrSize)
	}
}

func skipWCC(d *decoder) {
	if d.u32() != 0 {
		d.take(24)
	}
	skipAttr(d)
}

func dirop(dir Handle, name string) func(*encoder) {
	return func(e *encoder) {
		e.opaque(dir)
		e.opaque([]byte(name))
	}
}

// MountError is why a server does not give the handle of a directory.
type MountError struct {
	Path   string
	Status uint32 // mountstat3 (RFC 1813, section 5.1.5)
}

// Error has the status by its name.
func (e *MountError) Error() string {
	return fmt.Sprintf("MNT %s: %s", e.Path, named(mountStatus, "MNT3ERR_", e.Status))
}

// Mount returns the handle of an exported directory, from the MOUNT protocol. A server that refuses is a *MountError.
func (c *Conn) Mount(path string) (root Handle, err error) {
	err = c.call(mountProgram, 1, func(e *encoder) { e.opaque([]byte(path)) }, func(d *decoder) error {
		if st := d.u32(); st != 0 {
			return &MountError{path, st}
		}
		root = slices.Clone(d.opaque())
		for n := d.u32(); n > 0 && !d.short; n-- {
			d.u32() // authentication flavors
		}
		return nil
	})
	return root, err
}

// Exports returns the directories that a server says it exports, to whomever, from the MOUNT protocol.
func (c *Conn) Exports() (all []string, err error) {
	err = c.call(mountProgram, 5, nil, func(d *decoder) error {
		for d.u32() != 0 && !d.short {
			all = append(all, string(d.opaque()))
			for d.u32() != 0 && !d.short {
				d.opaque() // who may mount it
			}
		}
		return nil
	})
	return all, err
}

// StartNull queues the call that does nothing.
func (c *Conn) StartNull() { c.start(nfsProgram, procNull, nil, func(*decoder) error { return nil }) }

// StartGetattr passes the size to done.
func (c *Conn) StartGetattr(h Handle, done func(size uint64) error) {
	c.start(nfsProgram, procGetattr, func(e *encoder) { e.opaque(h) }, func(d *decoder) error {
		if err := status("GETATTR", d.u32()); err != nil {
			return err
		}
		a := decoder{b: d.take(AttrSize)}
		a.take(20) // type, mode, nlink, uid, gid
		return done(a.u64())
	})
}

// StartLookup passes nil to done if there is no such name. The handle is valid
// during the call of done only.
func (c *Conn) StartLookup(dir Handle, name string, done func(Handle) error) {
	c.start(nfsProgram, procLookup, dirop(dir, name), func(d *decoder) error {
		st := d.u32()
		var h Handle
		if st == 0 {
			h = d.opaque()
			skipAttr(d)
		} else if st != errNoEnt {
			return status("LOOKUP "+name, st)
		}
		skipAttr(d)
		return done(h)
	})
}

// StartCreate makes a new file (GUARDED). done may be nil; the handle is valid
// during the call of done only.
func (c *Conn) StartCreate(dir Handle, name string, done func(Handle) error) {
	c.start(nfsProgram, procCreate, func(e *encoder) {
		dirop(dir, name)(e)
		e.u32(1) // GUARDED
		sattr(e, 0o644)
	}, newNode("CREATE "+name, done))
}

// Mkdir makes a directory.
func (c *Conn) Mkdir(dir Handle, name string) (h Handle, err error) {
	err = c.call(nfsProgram, procMkdir, func(e *encoder) {
		dirop(dir, name)(e)
		sattr(e, 0o755)
	}, newNode("MKDIR "+name, func(n Handle) error {
		h = slices.Clone(n)
		return nil
	}))
	return h, err
}

// sattr sets the mode and nothing else.
func sattr(e *encoder, mode uint32) {
	e.u32(1)
	e.u32(mode)
	for range 5 { // uid, gid, size, atime, mtime
		e.u32(0)
	}
}

// newNode decodes the results of CREATE and MKDIR.
func newNode(what string, done func(Handle) error) func(*decoder) error {
	return func(d *decoder) error {
		st := d.u32()
		var h Handle
		if st == 0 {
			if d.u32() == 0 {
				return fmt.Errorf("%s: no handle in the reply", what)
			}
			h = d.opaque()
			skipAttr(d)
		}
		skipWCC(d)
		if st != 0 || done == nil {
			return status(what, st)
		}
		return done(h)
	}
}

// StartRemove removes a file.
func (c *Conn) StartRemove(dir Handle, name string) { c.remove(procRemove, "REMOVE ", dir, name) }

// StartRmdir removes a directory.
func (c *Conn) StartRmdir(dir Handle, name string) { c.remove(procRmdir, "RMDIR ", dir, name) }

func (c *Conn) remove(proc uint32, what string, dir Handle, name string) {
	c.start(nfsProgram, proc, dirop(dir, name), func(d *decoder) error {
		st := d.u32()
		skipWCC(d)
		return status(what+name, st)
	})
}

// StartWrite passes the write verifier to done.
func (c *Conn) StartWrite(h Handle, off uint64, data []byte, stable uint32, done func(verf uint64) error) {
	n := uint32(len(data))
	c.start(nfsProgram, procWrite, func(e *encoder) {
		e.opaque(h)
		e.u64(off)
		e.u32(n)
		e.u32(stable)
		e.opaque(data)
	}, func(d *decoder) error {
		st := d.u32()
		skipWCC(d)
		if st != 0 {
			return status("WRITE", st)
		}
		count, committed, verf := d.u32(), d.u32(), d.u64()
		if count != n || committed < stable {
			return fmt.Errorf("WRITE at %d: wrote %d of %d bytes, stability %d for %d", off, count, n, committed, stable)
		}
		return done(verf)
	})
}

// Commit makes the whole file durable, and returns the write verifier.
func (c *Conn) Commit(h Handle) (verf uint64, err error) {
	err = c.call(nfsProgram, procCommit, func(e *encoder) {
		e.opaque(h)
		e.u64(0)
		e.u32(0)
	}, func(d *decoder) error {
		st := d.u32()
		skipWCC(d)
		if st != 0 {
			return status("COMMIT", st)
		}
		verf = d.u64()
		return nil
	})
	return verf, err
}

// StartFsstat passes the bytes that are free to done.
func (c *Conn) StartFsstat(h Handle, done func(free uint64) error) {
	c.start(nfsProgram, procFsstat, func(e *encoder) { e.opaque(h) }, func(d *decoder) error {
		st := d.u32()
		skipAttr(d)
		if st != 0 {
			return status("FSSTAT", st)
		}
		d.u64() // in all
		free := d.u64()
		d.take(36) // what the caller may use, files, and for how long that holds
		return done(free)
	})
}

// StartRead passes the data to done; it is valid only during the call.
func (c *Conn) StartRead(h Handle, off uint64, n uint32, done func([]byte) error) {
	c.start(nfsProgram, procRead, func(e *encoder) {
		e.opaque(h)
		e.u64(off)
		e.u32(n)
	}, func(d *decoder) error {
		st := d.u32()
		skipAttr(d)
		if st != 0 {
			return status("READ", st)
		}
		count := d.u32()
		d.u32() // eof
		data := d.opaque()
		if int(count) != len(data) {
			return fmt.Errorf("READ at %d: count %d, but %d bytes", off, count, len(data))
		}
		return done(data)
	})
}

// Expect returns an error unless got is want.
func Expect(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("%s: WRONG DATA (%d bytes, want %d)", what, len(got), len(want))
}

// StartReadAll reads and checks a file from off on up to end, and calls done then. A server without room for a large
// reply may answer with a part; it is asked for the rest.
func (c *Conn) StartReadAll(h Handle, p Pattern, off, end uint64, done func()) {
	c.StartRead(h, off, uint32(end-off), func(data []byte) error {
		next := off + uint64(len(data))
		if next == off || next > end || next < end && next%PatternBlock != 0 {
			return fmt.Errorf("READ at %d: %d bytes of %d", off, len(data), end-off)
		}
		if next < end {
			c.StartReadAll(h, p, next, end, done)
		} else {
			done()
		}
		return p.Check(data, off)
	})
}
