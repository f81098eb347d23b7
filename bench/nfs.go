package main

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
	procCommit  = 21
)

const (
	unstable = 0
	fileSync = 2
)

const (
	errNoEnt = 2
	attrLen  = 84 // bytes of fattr3
)

// handle is an opaque file handle.
type handle []byte

// status turns an NFS status into an error.
func status(what string, st uint32) error {
	if st == 0 {
		return nil
	}
	return fmt.Errorf("%s: NFS status %d", what, st)
}

func skipAttr(d *decoder) {
	if d.u32() != 0 {
		d.take(attrLen)
	}
}

func skipWCC(d *decoder) {
	if d.u32() != 0 {
		d.take(24)
	}
	skipAttr(d)
}

func dirop(dir handle, name string) func(*encoder) {
	return func(e *encoder) {
		e.opaque(dir)
		e.opaque([]byte(name))
	}
}

// mount returns the root.
func (c *conn) mount() (root handle, err error) {
	err = c.call(mountProgram, 1, func(e *encoder) { e.opaque([]byte("/")) }, func(d *decoder) error {
		if st := d.u32(); st != 0 {
			return status("MNT /", st)
		}
		root = slices.Clone(d.opaque())
		for n := d.u32(); n > 0 && !d.short; n-- {
			d.u32() // authentication flavors
		}
		return nil
	})
	return root, err
}

func (c *conn) startNull() { c.start(nfsProgram, procNull, nil, func(*decoder) error { return nil }) }

// startGetattr passes the size to done.
func (c *conn) startGetattr(h handle, done func(size uint64) error) {
	c.start(nfsProgram, procGetattr, func(e *encoder) { e.opaque(h) }, func(d *decoder) error {
		if err := status("GETATTR", d.u32()); err != nil {
			return err
		}
		a := decoder{b: d.take(attrLen)}
		a.take(20) // type, mode, nlink, uid, gid
		return done(a.u64())
	})
}

// startLookup passes nil to done if there is no such name. The handle is valid
// during the call of done only.
func (c *conn) startLookup(dir handle, name string, done func(handle) error) {
	c.start(nfsProgram, procLookup, dirop(dir, name), func(d *decoder) error {
		st := d.u32()
		var h handle
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

// startCreate makes a new file (GUARDED). done may be nil; the handle is valid
// during the call of done only.
func (c *conn) startCreate(dir handle, name string, done func(handle) error) {
	c.start(nfsProgram, procCreate, func(e *encoder) {
		dirop(dir, name)(e)
		e.u32(1) // GUARDED
		sattr(e, 0o644)
	}, newNode("CREATE "+name, done))
}

func (c *conn) mkdir(dir handle, name string) (h handle, err error) {
	err = c.call(nfsProgram, procMkdir, func(e *encoder) {
		dirop(dir, name)(e)
		sattr(e, 0o755)
	}, newNode("MKDIR "+name, func(n handle) error {
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
func newNode(what string, done func(handle) error) func(*decoder) error {
	return func(d *decoder) error {
		st := d.u32()
		var h handle
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

// startRemove removes a file, or with proc = procRmdir a directory.
func (c *conn) startRemove(proc uint32, dir handle, name string) {
	c.start(nfsProgram, proc, dirop(dir, name), func(d *decoder) error {
		st := d.u32()
		skipWCC(d)
		return status("REMOVE "+name, st)
	})
}

// startWrite passes the write verifier to done.
func (c *conn) startWrite(h handle, off uint64, data []byte, stable uint32, done func(verf uint64) error) {
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

func (c *conn) commit(h handle) (verf uint64, err error) {
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

// startRead passes the data to done; it is valid only during the call.
func (c *conn) startRead(h handle, off uint64, n uint32, done func([]byte) error) {
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

// expect returns an error unless got is want.
func expect(what string, got, want []byte) error {
	if bytes.Equal(got, want) {
		return nil
	}
	return fmt.Errorf("%s: WRONG DATA (%d bytes, want %d)", what, len(got), len(want))
}
