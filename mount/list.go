//go:build linux || darwin

package mount

import (
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"

	"tansy/fs"
)

// OpenDir implements fuse.RawFileSystem: there is nothing to open. The kernel does not ask again, and keeps listings,
// unless it is told that it was opened.
func (f *fileSystem) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status {
	if f.shared || opens {
		return fuse.OK
	}
	return fuse.ENOSYS
}

// direntSize is what an entry takes in a listing besides its name (struct fuse_dirent), in bytes.
const direntSize = 24

func entrySize(nameLen int) int { return direntSize + (nameLen+7)&^7 }

// entryPlusSize is the size of an entry in a listing with attributes (struct fuse_direntplus).
func entryPlusSize(nameLen int) int {
	return int(unsafe.Sizeof(fuse.EntryOut{})) + entrySize(nameLen)
}

// ReadDir implements fuse.RawFileSystem.
func (f *fileSystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, entrySize, func(_ *fs.Entry, d fuse.DirEntry) { out.AddDirEntry(d) })
}

// ReadDirPlus implements fuse.RawFileSystem. Of "." and ".." the kernel wants no attributes.
func (f *fileSystem) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.list(in, entryPlusSize, func(e *fs.Entry, d fuse.DirEntry) {
		if x := out.AddDirLookupEntry(d); x != nil && d.Name != "." && d.Name != ".." {
			f.entry(e.Handle, e.Attr, x)
		}
	})
}

// list calls add for the entries of a page of a directory. For programs that look at the types of entries alone
// these come with both kinds of listing.
func (f *fileSystem) list(in *fuse.ReadIn, size func(int) int, add func(*fs.Entry, fuse.DirEntry)) fuse.Status {
	dir, err := f.nodes.handle(in.NodeId)
	if err != nil {
		return status(err)
	}
	added, cookie := false, in.Offset
	for !added {
		l, err := f.volume.Readdir(superuser, dir, cookie, 0, true, fs.Limit{Bytes: int(in.Size), Size: size})
		if err != nil {
			return status(err)
		}
		for i := range l.Entries {
			e := &l.Entries[i]
			cookie = e.Cookie
			add(e, fuse.DirEntry{Name: string(e.Name), Ino: e.Ino, Off: e.Cookie, Mode: typeBits[e.Attr.Type]})
			added = true
		}
		if l.EOF { // else an empty page would mean that
			break
		}
	}
	return fuse.OK
}
