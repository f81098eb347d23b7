package repair

import (
	"errors"
	"fmt"
	"time"

	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/gen/fs/directories/directories"
	"tansy/internal/gen/fs/format/inodeformat"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/fs/procedures/opening"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// lostFound is the directory, in the root, for files that no other names.
const lostFound = "lost+found"

// errFull: there is no room for a name in lost+found.
var errFull = errors.New("no room for another file")

// attach gives files without a name one in lost+found, each in a transaction of the verified
// directories, which need the rest of the volume to be sound. some: at least one got it.
func (r *round) attach(j *journal.Journal, s superblockformat.Super) (some bool, err error) {
	v, g, have := r.v, s.Geometry(), s.Extent()
	sys, err := dtxn.New(j, dtxn.Layout{
		Maps: [2]dtxn.Bitmap{
			dtxn.Blocks: {Start: v.bbm, First: v.data0, Limit: g.Data1(), End: have.DataEnd()},
			dtxn.Inodes: {Start: v.ibm, First: orphansIno + 1, Limit: g.Ninode(), End: have.InodeEnd()},
		},
		Places: regions.Of(g),
	})
	if err != nil {
		return false, err
	}
	l := &lost{sys: sys, d: directoriesOf(g)}
	for _, ino := range r.unnamed {
		err := l.attach(ino)
		if errors.Is(err, errFull) {
			r.did(ino, "no name for the file in %s: %v", lostFound, err)
			continue
		}
		if err != nil {
			return some, errors.Join(err, sys.Close())
		}
		some = true
		r.did(ino, "the file, which no directory names, becomes /%s/#%d", l.name, ino)
	}
	return some, sys.Close()
}

// steady is how many of a directory's first blocks stay when they are empty; others may be holes, also the last one.
var steady = directories.FirstLevels()

// directoriesOf is the verified directories of a volume.
func directoriesOf(g volumegeometry.Geometry) *directories.DirFs {
	return opening.Open(g, &dtxn.Jrnl{})
}

// lost is the directory for files without a name.
type lost struct {
	sys  *dtxn.System
	d    *directories.DirFs
	ino  uint64 // 0: not looked for yet
	name string
}

func bytesOf(s string) *dbytes.Bytes { return &dbytes.Bytes{Data: []byte(s)} }

func (l *lost) attach(ino uint64) error {
	return l.sys.Run(true, false, func(t *dtxn.Txn) error {
		dir, name, err := l.find(t)
		if err != nil {
			return err
		}
		f := l.d.Fs.GetInode(t, ino, true)
		if !l.d.Insert(t, dir, bytesOf(fmt.Sprintf("#%d", ino)), ino) {
			return errFull
		}
		if inodeformat.GetTy(f) == typeDir {
			inodeformat.SetParent(f, dir)
			l.d.PutInode(t, ino, f)
			p := l.d.Fs.GetInode(t, dir, true)
			inodeformat.SetNlink(p, inodeformat.GetNlink(p)+1)
			l.d.PutInode(t, dir, p)
		}
		l.ino, l.name = dir, name
		return nil
	})
}

// find is the directory, which is made if it is missing. If its name is that of a file of another
// kind, it gets another one.
func (l *lost) find(t *dtxn.Txn) (dir uint64, name string, err error) {
	if l.ino != 0 {
		return l.ino, l.name, nil
	}
	for n := 1; ; n++ {
		name = lostFound
		if n > 1 {
			name = fmt.Sprintf("%s.%d", lostFound, n)
		}
		found, ino := l.d.Lookup(t, rootIno, bytesOf(name), true)
		if !found {
			dir, err = l.make(t, name)
			return dir, name, err
		}
		if inodeformat.GetTy(l.d.Fs.GetInode(t, ino, true)) == typeDir {
			return ino, name, nil
		}
	}
}

func (l *lost) make(t *dtxn.Txn, name string) (uint64, error) {
	ok, ino := l.d.AllocInode(t, rootIno, typeDir)
	if !ok {
		return 0, errFull
	}
	f := l.d.Fs.GetInode(t, ino, true)
	now := time.Now()
	sec, nsec := uint64(now.Unix()), uint32(now.Nanosecond())
	inodeformat.SetMode(f, 0o700)
	inodeformat.SetNlink(f, 2)
	inodeformat.SetParent(f, rootIno)
	inodeformat.SetAtime(f, sec, nsec)
	inodeformat.SetMtime(f, sec, nsec)
	inodeformat.SetCtime(f, sec, nsec)
	l.d.PutInode(t, ino, f)
	if !l.d.Insert(t, rootIno, bytesOf(name), ino) {
		return 0, errFull
	}
	root := l.d.Fs.GetInode(t, rootIno, true)
	inodeformat.SetNlink(root, inodeformat.GetNlink(root)+1)
	l.d.PutInode(t, rootIno, root)
	return ino, nil
}
