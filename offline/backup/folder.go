package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/volumeend"
)

// Suffix is the end of the name of each file of a backup.
const Suffix = ".backup"

// unfinished is the end of the name of a file that is being written.
const unfinished = ".unfinished"

// nameLayout is how the rest of the name has the time.
const nameLayout = "2006-01-02T15-04-05Z"

// Is tells whether there is a backup at a path: a folder with some, or the file of one.
func Is(path string) bool {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return false
	case st.IsDir():
		names, err := filesIn(path)
		return err == nil && len(names) > 0
	case !st.Mode().IsRegular():
		return false
	}
	named := strings.HasSuffix(path, Suffix) // so it is one, also if it is damaged
	f, err := os.Open(path)
	if err != nil {
		return named
	}
	defer f.Close()
	b := make([]byte, disk.BlockSize)
	n, _ := f.ReadAt(b, 0)
	if strings.HasPrefix(string(b[:n]), headerMagic) {
		return true
	}
	return named && !superblocked(f, st.Size())
}

// superblocked tells whether a file of so many bytes begins or ends with a superblock: somebody calls his volume so.
func superblocked(f *os.File, size int64) bool {
	b := make([]byte, disk.BlockSize)
	for _, at := range []int64{0, size/disk.BlockSize*disk.BlockSize - disk.BlockSize} {
		if _, err := f.ReadAt(b, at); err == nil {
			if why, _ := superblockformat.Decode(&dbytes.Bytes{Data: b}); why == 0 {
				return true
			}
		}
	}
	return false
}

// filesIn are the names of the files of backups in a folder, in order.
func filesIn(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), Suffix) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// A Listed is the file of a backup in a folder.
type Listed struct {
	Info
	Path   string
	Bytes  uint64
	Stored uint64 // blocks
	Err    error  // why it cannot be used; then the rest may be zeros
	Flaw   error  // what is damaged of it, though it can be used
}

// List returns the backups in a folder, the first made first; those that cannot be used are behind the others.
func List(folder string) ([]Listed, error) {
	names, err := filesIn(folder)
	if err != nil {
		return nil, err
	}
	var all []Listed
	for _, name := range names {
		all = append(all, listed(filepath.Join(folder, name)))
	}
	ids := map[ID]string{}
	for i, l := range all {
		if other, twice := ids[l.ID]; twice && l.Err == nil {
			all[i].Err = fmt.Errorf("%s: %w: it is the backup that %s is, too", l.Path, ErrDamaged, other)
		}
		ids[l.ID] = l.Path
	}
	slices.SortStableFunc(all, func(a, b Listed) int {
		switch {
		case (a.Err == nil) != (b.Err == nil):
			if a.Err == nil {
				return -1
			}
			return 1
		case a.Number != b.Number:
			if a.Number < b.Number {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Path, b.Path)
	})
	return all, nil
}

// listed is the file of a backup.
func listed(path string) Listed {
	l := Listed{Path: path}
	f, err := openPath(path)
	if err == nil {
		l.Info, l.Stored, l.Bytes, l.Flaw = f.Info, f.end.stored, f.bytes, f.flaw
		err = f.close()
	}
	if l.Err = err; errors.Is(err, ErrNotBackup) {
		l.Err = fmt.Errorf("%s: %w: it does not begin as a backup does", path, ErrDamaged)
	}
	return l
}

// openPath opens a file of a backup.
func openPath(path string) (*file, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := r.Stat()
	var f *file
	if err == nil {
		f, err = openFile(r, path, uint64(st.Size()))
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return f, nil
}

// Open opens the last backup in a folder, or that in a file, with those that it adds to, which lie in the same folder.
// The error wraps ErrDamaged if one is damaged or missing, ErrNotBackup if there is none. Of a folder in which any file
// cannot be used it is not known which is the last: one has to be named.
func Open(path string) (*Chain, error) {
	folder := path
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		folder = filepath.Dir(path)
	}
	all, err := List(folder)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return open(all, Listed{Path: path})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrNotBackup)
	}
	last := all[len(all)-1]
	if last.Err != nil {
		return nil, fmt.Errorf("%w; an earlier backup may be sound: name its file", last.Err)
	}
	return open(all, last)
}

// open opens one of all with those that it adds to.
func open(all []Listed, l Listed) (*Chain, error) {
	if l.Err != nil {
		return nil, l.Err
	}
	var files []*file
	undo := func(err error) (*Chain, error) {
		return nil, errors.Join(err, (&Chain{files}).Close())
	}
	for {
		f, err := openPath(l.Path)
		if err != nil {
			return undo(err)
		}
		files = append(files, f)
		if f.Full() {
			break
		}
		i := slices.IndexFunc(all, func(x Listed) bool { return x.Err == nil && x.ID == f.Parent })
		if i < 0 || len(files) > len(all) {
			return undo(fmt.Errorf("%s: %w: the backup that it adds to is missing, or damaged%s", l.Path, ErrDamaged,
				damagedOf(all)))
		}
		l = all[i]
	}
	c, err := chainOf(files)
	if err != nil {
		return undo(err)
	}
	return c, nil
}

// damagedOf names what is damaged of all.
func damagedOf(all []Listed) (what string) {
	for _, l := range all {
		if l.Err != nil {
			what += fmt.Sprintf(" (%v)", l.Err)
		}
	}
	return what
}

// A Folder is one that backups are written to. One process has it at a time.
type Folder struct {
	path string
	lock *os.File
}

// ErrBusy is wrapped by the error of a folder that another process writes to.
var ErrBusy = errors.New("another backup to this folder is under way")

// OpenFolder opens a folder, and makes it if it is missing and its parent is not. What an earlier backup left that was
// killed is removed.
func OpenFolder(path string) (*Folder, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) { // the superblock has a secret
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	x := &Folder{path, f}
	if err := x.claim(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return x, nil
}

// claim locks the folder. Some file systems have no locks of folders: there nothing keeps two backups apart.
func (x *Folder) claim() error {
	if st, err := x.lock.Stat(); err != nil {
		return err
	} else if !st.IsDir() {
		return fmt.Errorf("%s is no folder: backups go to one", x.path)
	}
	if errors.Is(unix.Flock(int(x.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return fmt.Errorf("%s: %w", x.path, ErrBusy)
	}
	var all error
	for _, end := range []string{Suffix, partEnd} {
		left, err := filepath.Glob(filepath.Join(escaped(x.path), "*"+end+unfinished))
		for _, l := range left {
			err = errors.Join(err, os.Remove(l))
		}
		all = errors.Join(all, err)
	}
	return all
}

// escaped is a path as a pattern that matches it.
func escaped(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Close lets others write to the folder.
func (x *Folder) Close() error { return x.lock.Close() }

// Backup writes a backup of the volume at rest on d (Write). It adds to the last one of the folder that can be used,
// unless there is none, or full is set. The file has its name, which is in the report, when it is durable; after an
// error there is none. The error wraps ErrDamaged if nothing can be added to what there is.
func (x *Folder) Backup(ctx context.Context, d disk.Disk, full bool, o Options) (path string, r Report, err error) {
	all, err := List(x.path)
	if err != nil {
		return "", r, err
	}
	all = slices.DeleteFunc(all, func(l Listed) bool { return l.Err != nil })
	var base *Chain
	o.Number = 1
	if n := len(all); n > 0 {
		if err := x.same(d, all); err != nil {
			return "", r, err
		}
		o.Number = all[n-1].Number + 1
		if !full {
			if base, err = baseIn(all); err != nil {
				return "", r, err
			}
			defer base.Close()
		}
	}
	if o.When.IsZero() {
		o.When = time.Now()
	}
	path = x.name(o.When)
	err = x.put(path, disk.Rename, func(f *os.File) error {
		r, err = Write(ctx, f, d, base, o)
		return err
	})
	return path, r, err
}

// baseIn is the last of some backups, to be added to.
func baseIn(all []Listed) (*Chain, error) {
	c, err := open(all, all[len(all)-1])
	if err != nil {
		return nil, fmt.Errorf("nothing can be added to the last backup, but there can be another full one: %w", err)
	}
	if flaws := c.Flaws(); len(flaws) > 0 {
		return nil, errors.Join(unusable(c, flaws[0]), c.Close())
	}
	return c, nil
}

// same is an error if some of the backups are of another volume.
func (x *Folder) same(d disk.Disk, all []Listed) error {
	s, err := superOf(d)
	if err != nil {
		return err
	}
	for _, l := range all {
		if id := volumeend.UUID(s); l.Volume != id {
			return fmt.Errorf("%s: %w: its UUID is %x, and that of this volume %x", l.Path, ErrOtherVolume, l.Volume, id)
		}
	}
	return nil
}

// name is that of a file that is not there yet.
func (x *Folder) name(when time.Time) string {
	base := filepath.Join(x.path, when.UTC().Format(nameLayout))
	path := base + Suffix
	for i := 2; exists(path) || exists(partOf(path)); i++ {
		path = fmt.Sprintf("%s.%d%s", base, i, Suffix)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// put makes a file that write fills. It has its name, by rename, when it is durable; after an error it is not there.
func (x *Folder) put(path string, rename func(from, to string) error, write func(f *os.File) error) error {
	tmp := path + unfinished
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = rename(tmp, path)
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = fmt.Errorf("%w: %s is full: nothing of this is left, and all backups are as they were", err, x.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return nil
}
