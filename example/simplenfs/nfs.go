package simplenfs

import (
	"errors"
	"fmt"

	"tansy/example/internal/gen/simplenfs/simpleops"
	"tansy/fs"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
	"tansy/nfs/nfs3"
)

// The directory of the files, which never changes, and is not on disk: file f is called file<f>, and has the number f +
// file0.
const (
	files = 16 // FILES of the specification
	root  = 1
	file0 = 2
)

// call runs a procedure of file h as one transaction. It returns the attributes that the file has then, or the status
// as an error. work is run again if another transaction is in the way. What it changed is durable when call returns, if
// it is to be stable.
func (v *Volume) call(h fs.Handle, change, stable bool, work func(t *dtxn.Txn, f uint64) uint32) (*fs.Attr, error) {
	if h.Ino == root {
		return nil, fs.ErrIsDir
	}
	a := &fs.Attr{Type: fs.Regular, Mode: 0666, Nlink: 1, Used: fs.BlockSize, Ino: h.Ino}
	err := v.sys.Run(stable, !change, func(t *dtxn.Txn) error {
		if st := work(t, h.Ino-file0); st != 0 {
			return fs.Errno(st)
		}
		_, size, mtime := simpleops.Getattr(t, v.first, h.Ino-file0)
		a.Size, a.Mtime = size, fs.Time{Sec: mtime / 1e9, Nsec: uint32(mtime % 1e9)}
		a.Atime, a.Ctime = a.Mtime, a.Mtime
		return nil
	})
	refused := fs.Errno(0)
	switch {
	case err == nil:
		return a, nil
	case errors.As(err, &refused):
		return nil, refused
	case errors.Is(err, fs.ErrClosed):
		return nil, fs.ErrClosed
	}
	return nil, fs.ErrIO // what failed is the device
}

var rootAttr = fs.Attr{Type: fs.Directory, Mode: 0555, Nlink: 2, Size: fs.BlockSize, Used: fs.BlockSize, Ino: root}

// Root implements fs.FileSystem.
func (v *Volume) Root() fs.Handle { return fs.Handle{Ino: root} }

// Verifier implements fs.FileSystem.
func (v *Volume) Verifier() uint64 { return v.verifier }

// Getattr implements fs.FileSystem.
func (v *Volume) Getattr(h fs.Handle) (fs.Attr, error) {
	if h.Ino == root {
		return rootAttr, nil
	}
	a, err := v.call(h, false, false, v.getattr)
	if err != nil {
		return fs.Attr{}, err
	}
	return *a, nil
}

func (v *Volume) getattr(t *dtxn.Txn, f uint64) uint32 {
	st, _, _ := simpleops.Getattr(t, v.first, f)
	return st
}

// Read implements fs.FileSystem.
func (v *Volume) Read(_ *fs.Cred, h fs.Handle, off uint64, n uint32) (data []byte, eof bool, a *fs.Attr, err error) {
	a, err = v.call(h, false, false, func(t *dtxn.Txn, f uint64) (st uint32) {
		var b *dbytes.Bytes
		st, b, eof = simpleops.Read(t, v.first, f, off, uint64(n))
		data = b.Data
		return st
	})
	return data, eof, a, err
}

// Write implements fs.FileSystem.
func (v *Volume) Write(_ *fs.Cred, h fs.Handle, off uint64, data []byte,
	how fs.Stability) (uint32, fs.Stability, fs.WCC, error) {
	a, err := v.call(h, true, how != fs.Unstable, func(t *dtxn.Txn, f uint64) uint32 {
		return simpleops.Write(t, v.first, f, off, &dbytes.Bytes{Data: data}, uint64(v.now().UnixNano()))
	})
	return uint32(len(data)), how, fs.WCC{After: a}, err
}

// Setattr implements fs.FileSystem, but of all attributes only the size can be set, and the times are always the
// server's.
func (v *Volume) Setattr(_ *fs.Cred, h fs.Handle, s *fs.SetAttr, guard *fs.Time) (fs.WCC, error) {
	if s.Size == nil || s.Mode != nil || s.UID != nil || s.GID != nil || guard != nil {
		return fs.WCC{}, fs.ErrNotSupp
	}
	a, err := v.call(h, true, true, func(t *dtxn.Txn, f uint64) uint32 {
		return simpleops.Setattr(t, v.first, f, *s.Size, uint64(v.now().UnixNano()))
	})
	return fs.WCC{After: a}, err
}

// Commit implements fs.FileSystem: it makes durable what all have written. It looks at the attributes first, so what it
// shows is durable, too.
func (v *Volume) Commit(h fs.Handle, _ uint64, _ uint32) (fs.WCC, error) {
	a, err := v.call(h, false, false, v.getattr)
	if failed := v.sys.Flush(); errors.Is(failed, fs.ErrClosed) {
		return fs.WCC{}, failed
	} else if failed != nil {
		return fs.WCC{}, fs.ErrIO
	}
	return fs.WCC{After: a}, err
}

// entries are the directory. An entry's cookie is the place of the next.
var entries = []fs.Entry{{Ino: root, Name: []byte("."), Cookie: 1}, {Ino: root, Name: []byte(".."), Cookie: 2}}

func init() {
	for f := range uint64(files) {
		entries = append(entries, fs.Entry{Ino: file0 + f, Name: fmt.Append(nil, "file", f), Cookie: f + 3})
	}
}

// Lookup implements fs.FileSystem.
func (v *Volume) Lookup(_ *fs.Cred, dir fs.Handle, name []byte) (n fs.Node, err error) {
	if dir.Ino != root {
		return n, fs.ErrNotDir
	}
	n.Parent = rootAttr
	for _, e := range entries {
		if string(e.Name) == string(name) {
			n.Handle.Ino = e.Ino
			n.Attr, err = v.Getattr(n.Handle)
			return n, err
		}
	}
	return n, fs.ErrNoEnt
}

// Readdir implements fs.FileSystem.
func (v *Volume) Readdir(_ *fs.Cred, dir fs.Handle, cookie, _ uint64, _ bool, lim fs.Limit) (fs.Listing, error) {
	if dir.Ino != root {
		return fs.Listing{}, fs.ErrNotDir
	}
	l := fs.Listing{Dir: &rootAttr, Entries: entries[min(cookie, uint64(len(entries))):], EOF: true}
	for i, e := range l.Entries {
		if !lim.Take(len(e.Name)) {
			l.Entries, l.EOF = l.Entries[:i], false
			break
		}
	}
	if len(l.Entries) == 0 && !l.EOF {
		return l, fs.ErrTooSmall
	}
	return l, nil
}

// Access implements fs.FileSystem: everybody may do what can be done.
func (v *Volume) Access(_ *fs.Cred, h fs.Handle, want uint32) (uint32, fs.Attr, error) {
	if h.Ino == root {
		return want & (nfs3.AccessRead | nfs3.AccessLookup), rootAttr, nil
	}
	a, err := v.Getattr(h)
	return want & (nfs3.AccessRead | nfs3.AccessModify | nfs3.AccessExtend), a, err
}

const most = 64 << 10 // clients may ask for more than a file holds; some insist on it

var info = fs.Info{RtMax: most, RtPref: most, RtMult: 1, WtMax: most, WtPref: most, WtMult: 1, DtPref: most,
	MaxFileSize: 4096, TimeDelta: fs.Time{Nsec: 1}, Properties: fs.PropHomogeneous}

// Fsinfo implements fs.FileSystem.
func (v *Volume) Fsinfo(fs.Handle) (fs.Info, *fs.Attr, error) { return info, nil, nil }

var stat = fs.Stat{TotalBytes: files * fs.BlockSize, TotalFiles: files}

// Fsstat implements fs.FileSystem.
func (v *Volume) Fsstat(fs.Handle) (fs.Stat, *fs.Attr, error) { return stat, nil, nil }

var limits = fs.Pathconf{LinkMax: 1, NameMax: fs.MaxName, NoTrunc: true, ChownRestricted: true, CasePreserving: true}

// Pathconf implements fs.FileSystem.
func (v *Volume) Pathconf(fs.Handle) (fs.Pathconf, *fs.Attr, error) { return limits, nil, nil }
