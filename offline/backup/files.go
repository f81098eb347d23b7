package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/fs"
)

// FilesOptions say how to restore files. The zero value is fine.
type FilesOptions struct {
	MaxBytes uint64                   // how large the volume may ever become (fs.MkfsOptions)
	Zeroed   bool                     // the device reads as zeros: a new image file
	Log      *slog.Logger             // of the volumes; nil: nothing is logged
	Progress func(done, total uint64) // called now and then with bytes; may be nil
}

// Files says what was restored.
type Files struct {
	Files, Directories, Others uint64 // others: symbolic links, devices, FIFOs, sockets
	Left                       []string
	More                       uint64 // paths beyond those in Left
}

// errLeft is the error of a file of which something cannot be read.
var errLeft = errors.New("something of it cannot be read")

// RestoreFiles makes a new volume on d, of any size that holds the files of c, and copies all of them: names, contents,
// holes, hard links, owners, modes, all three times, flags, and extended attributes. It has an identity, and handles,
// of its own. A file that is damaged is left out, and so is what cannot be listed of a directory that is; its path,
// quoted, is in Left. The superblock comes last, so that whatever interrupts it leaves no volume. What d held is lost.
// When the error is nil, the volume is durable. The error wraps ErrTooSmall if the files do not fit.
func RestoreFiles(ctx context.Context, d disk.Disk, c *Chain, o FilesOptions) (r Files, err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	device, err := c.Device()
	if err != nil {
		return r, err
	}
	from, err := fs.Open(device, fs.Options{ReadOnly: true, Log: o.Log})
	if err != nil {
		return r, err
	}
	defer from.Close()
	stat, _, err := from.Fsstat(from.Root())
	if err != nil {
		return r, err
	}
	x := &copying{ctx: ctx, o: &o, from: from, links: map[uint64]linked{}, total: stat.TotalBytes - stat.FreeBytes}
	if need := x.total + stat.TotalBytes/everyOther; x.total > d.Size()*disk.BlockSize {
		return r, fmt.Errorf("%w: it has %d bytes, and the files take %d: give %d or so", ErrTooSmall,
			d.Size()*disk.BlockSize, x.total, need+x.total/8)
	}
	w := &withheld{Disk: d, held: map[uint64][]byte{}}
	if !o.Zeroed {
		if err := w.blank(); err != nil {
			return r, err
		}
	}
	if err := x.open(w, stat.TotalFiles-stat.FreeFiles); err != nil {
		return r, err
	}
	err = x.all()
	if e := x.to.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = w.finish()
	}
	return x.report, err
}

// everyOther: of so many bytes of a volume one is counted for what is not in files.
const everyOther = 64

// copying is a copy of files that is under way.
type copying struct {
	ctx         context.Context
	o           *FilesOptions
	from, to    *fs.FS
	now         atomic.Pointer[fs.Time] // what the clock of the new volume shows
	links       map[uint64]linked       // files with several names, by their inodes in from
	done, total uint64                  // bytes
	report      Files
}

// linked is a file with several names: where it is in both volumes, and the first of them.
type linked struct {
	from, to fs.Handle
	path     string
}

// open makes the volume, with room for so many inodes, and opens it.
func (x *copying) open(d disk.Disk, inodes uint64) error {
	x.now.Store(&fs.Time{})
	clock := func() time.Time { t := x.now.Load(); return time.Unix(int64(t.Sec), int64(t.Nsec)) }
	label, _ := x.from.Label() // it lies with the root directory's attributes: if these are damaged, that is told of them
	m := fs.MkfsOptions{MaxBytes: x.o.MaxBytes, Zeroed: x.o.Zeroed, Clock: clock, Label: label}
	if usual := d.Size() * disk.BlockSize / (16 << 10); inodes+inodes/8 > usual {
		m.Inodes = inodes + inodes/8
	}
	if m.MaxBytes <= d.Size()*disk.BlockSize {
		m.MaxBytes = 0
	}
	err := fs.Mkfs(d, m)
	if small := new(fs.TooSmallError); errors.As(err, &small) {
		err = fmt.Errorf("%w: %w", ErrTooSmall, err)
	}
	if err != nil {
		return err
	}
	v, err := fs.Open(d, fs.Options{Log: x.o.Log, Clock: clock})
	if err != nil {
		return err
	}
	x.to = v.Deferring()
	stat, _, err := x.to.Fsstat(x.to.Root())
	if err == nil && stat.FreeBytes < x.total {
		err = fmt.Errorf("%w: it has room for %d bytes in files, and these take %d", ErrTooSmall, stat.FreeBytes, x.total)
	}
	if err != nil {
		return errors.Join(err, v.Close())
	}
	return nil
}

// superuser is the caller of everything.
var superuser = &fs.Cred{}

// all copies everything.
func (x *copying) all() error {
	a, err := x.from.Getattr(x.from.Root())
	if err != nil {
		return err
	}
	private := a.Mode &^ 0o77
	_, err = x.to.Setattr(superuser, x.to.Root(), &fs.SetAttr{UID: &a.UID, GID: &a.GID, Mode: &private}, nil)
	if err != nil {
		return err
	}
	if err := x.leave("/", x.directory("", x.from.Root(), x.to.Root(), &a)); err != nil {
		return err
	}
	for _, l := range x.links { // which each name that was made has changed the ctime of
		a, err := x.from.Getattr(l.from)
		if err != nil {
			err = x.unread(err)
		} else {
			err = x.finish(l.from, l.to, &a)
		}
		if err := x.leave(l.path, err); err != nil {
			return err
		}
	}
	return x.to.Sync()
}

// leave notes what is left out, because of err, which it returns if that is not why.
func (x *copying) leave(path string, err error) error {
	if !errors.Is(err, errLeft) {
		return err
	}
	if len(x.report.Left) == mostNamed {
		x.report.More++
		return nil
	}
	x.report.Left = append(x.report.Left, strconv.Quote(path))
	return nil
}

// unread is the error of reading what is restored: all but that of the context is about the file.
func (x *copying) unread(err error) error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return fmt.Errorf("%w: %w", errLeft, err)
}

// directory copies what is in a directory, which there is in both, and then what there is about it.
func (x *copying) directory(path string, from, to fs.Handle, a *fs.Attr) error {
	x.report.Directories++
	for cookie, end := uint64(0), false; !end; {
		l, err := x.from.Readdir(superuser, from, cookie, 0, false, fs.Limit{Bytes: 64 << 10,
			Size: func(n int) int { return n + 64 }})
		if err != nil {
			if err := x.leave(path+"/", x.unread(err)); err != nil {
				return err
			}
			break
		}
		for _, e := range l.Entries {
			cookie = e.Cookie
			if name := string(e.Name); name == "." || name == ".." {
				continue
			}
			if err := x.leave(path+"/"+string(e.Name), x.entry(path+"/"+string(e.Name), from, to, e.Name)); err != nil {
				return err
			}
		}
		end = l.EOF
	}
	return x.finish(from, to, a)
}

// entry copies what a directory has under a name.
func (x *copying) entry(path string, fromDir, toDir fs.Handle, name []byte) error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	name = bytes.Clone(name)
	n, err := x.from.Lookup(superuser, fromDir, name)
	if err != nil {
		return x.unread(err)
	}
	a, several := n.Attr, n.Attr.Nlink > 1 && n.Attr.Type != fs.Directory
	if l, ok := x.links[a.Ino]; several && ok {
		_, _, err := x.to.Link(superuser, l.to, toDir, name)
		return x.room(err)
	}
	to, err := x.make(n.Handle, toDir, name, &a)
	if err != nil {
		return err
	}
	switch a.Type {
	case fs.Directory:
		return x.directory(path, n.Handle, to, &a)
	case fs.Regular:
		x.report.Files++
		if err = x.contents(n.Handle, to, &a); err == nil {
			break
		}
		x.report.Files--
		if errors.Is(err, errLeft) {
			_, e := x.to.Remove(superuser, toDir, name)
			return errors.Join(err, e)
		}
		return err
	default:
		x.report.Others++
	}
	if several {
		x.links[a.Ino] = linked{n.Handle, to, path}
		return nil
	}
	return x.finish(n.Handle, to, &a)
}

// make makes a file without contents.
func (x *copying) make(from, dir fs.Handle, name []byte, a *fs.Attr) (fs.Handle, error) {
	private := a.Mode &^ 0o77 // until finish knows who else may
	s := &fs.SetAttr{UID: &a.UID, GID: &a.GID, Mode: &private}
	var n fs.Node
	var err error
	switch a.Type {
	case fs.Regular:
		n, err = x.to.Create(superuser, dir, name, fs.Guarded, s, 0)
	case fs.Directory:
		n, err = x.to.Mkdir(superuser, dir, name, s)
	case fs.Symlink:
		target, _, e := x.from.Readlink(superuser, from)
		if e != nil {
			return fs.Handle{}, x.unread(e)
		}
		n, err = x.to.Symlink(superuser, dir, name, s, target)
	default:
		n, err = x.to.Mknod(superuser, dir, name, a.Type, s, a.Major, a.Minor)
	}
	return n.Handle, x.room(err)
}

// contents copies those of a regular file.
func (x *copying) contents(from, to fs.Handle, a *fs.Attr) error {
	for at := uint64(0); at < a.Size; {
		data, err := x.from.Seek(superuser, from, at, false)
		if errors.Is(err, fs.ErrNoEnt) {
			break
		}
		var end uint64
		if err == nil {
			end, err = x.from.Seek(superuser, from, data, true)
		}
		if err != nil {
			return x.unread(err)
		}
		if err := x.stretch(from, to, data, min(end, a.Size)); err != nil {
			return err
		}
		at = end
	}
	_, err := x.to.Setattr(superuser, to, &fs.SetAttr{Size: &a.Size}, nil)
	return x.room(err)
}

// stretch copies the bytes from at on before end.
func (x *copying) stretch(from, to fs.Handle, at, end uint64) error {
	for at < end {
		b, _, _, err := x.from.Read(superuser, from, at, uint32(min(end-at, fs.MaxIO)))
		if err != nil || len(b) == 0 {
			return x.unread(err)
		}
		for len(b) > 0 {
			n, _, _, err := x.to.Write(superuser, to, at, b, fs.Unstable)
			if err != nil {
				return x.room(err)
			}
			b, at, x.done = b[n:], at+uint64(n), x.done+uint64(n)
		}
		if x.o.Progress != nil {
			x.o.Progress(x.done, x.total)
		}
	}
	return nil
}

// finish gives a file what there is about it, with the ctime that it had: that of the last change, as all before were
// at the beginning of time.
func (x *copying) finish(from, to fs.Handle, a *fs.Attr) error {
	names, err := x.from.ListXattr(from)
	if err != nil {
		return x.unread(err)
	}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		if len(name) == 0 {
			continue
		}
		value, err := x.from.GetXattr(from, name)
		if err != nil {
			return x.unread(err)
		}
		if err := x.to.SetXattr(to, name, value, false, false); err != nil {
			return x.room(err)
		}
	}
	if err := x.lists(from, to); err != nil {
		return err
	}
	flags, err := x.from.Flags(from)
	if err != nil {
		return x.unread(err)
	}
	set := func() error {
		_, err := x.to.Setattr(superuser, to, &fs.SetAttr{Mode: &a.Mode, AtimeHow: fs.ClientTime, Atime: a.Atime,
			MtimeHow: fs.ClientTime, Mtime: a.Mtime}, nil)
		return err
	}
	last := set
	if flags != 0 {
		if err := set(); err != nil {
			return x.room(err)
		}
		last = func() error { return x.to.SetFlags(superuser, to, flags) }
	}
	x.now.Store(&a.Ctime)
	defer x.now.Store(&fs.Time{})
	return x.room(last())
}

// lists gives a file its access lists. A directory's default list comes after what is in it, which would inherit that.
func (x *copying) lists(from, to fs.Handle) error {
	access, err := x.from.GetAccess(from)
	if err != nil {
		return x.unread(err)
	}
	dflt, err := x.from.GetDefault(from)
	if err != nil {
		return x.unread(err)
	}
	if access != nil {
		err = x.to.SetAccess(superuser, to, access)
	}
	if err == nil && dflt != nil {
		err = x.to.SetDefault(superuser, to, dflt)
	}
	return x.room(err)
}

// room says of an error of the new volume that there is no room for more.
func (x *copying) room(err error) error {
	if errors.Is(err, fs.ErrNoSpc) {
		return fmt.Errorf("%w: its room, or its inodes, are used up, and not all files are copied: %w", ErrTooSmall, err)
	}
	return err
}

// withheld is a device whose first and last blocks, with the superblocks, are written in the end.
type withheld struct {
	disk.Disk
	mu   sync.Mutex
	held map[uint64][]byte
}

// ends are the blocks that are withheld.
func (w *withheld) ends() []uint64 { return []uint64{w.Size() - 1, 0} }

// blank makes the device no volume.
func (w *withheld) blank() error {
	for _, a := range w.ends() {
		if err := w.Disk.WriteAt(a, [][]byte{make([]byte, disk.BlockSize)}); err != nil {
			return err
		}
	}
	return w.Disk.Barrier()
}

// ReadAt implements disk.Disk.
func (w *withheld) ReadAt(a uint64, bufs [][]byte) error {
	if err := w.Disk.ReadAt(a, bufs); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range w.ends() {
		if b := w.held[end]; b != nil && end >= a && end < a+uint64(len(bufs)) {
			copy(bufs[end-a], b)
		}
	}
	return nil
}

// WriteAt implements disk.Disk.
func (w *withheld) WriteAt(a uint64, bufs [][]byte) error {
	size := w.Size()
	if err := disk.CheckTransfer("write", "", size, a, bufs); err != nil {
		return err
	}
	if a == 0 && len(bufs) > 0 {
		w.hold(0, bufs[0])
		a, bufs = 1, bufs[1:]
	}
	if n := uint64(len(bufs)); n > 0 && a+n == size {
		w.hold(size-1, bufs[n-1])
		bufs = bufs[:n-1]
	}
	if len(bufs) == 0 {
		return nil
	}
	return w.Disk.WriteAt(a, bufs)
}

// Unwrap returns the device, for disk.HostOf.
func (w *withheld) Unwrap() disk.Disk { return w.Disk }

// NextData implements disk.Holes. What is withheld may be data.
func (w *withheld) NextData(a uint64) (uint64, error) {
	next, err := disk.NextData(w.Disk, a)
	for _, end := range w.ends() {
		if end >= a {
			next = min(next, end)
		}
	}
	return next, err
}

// Discard implements disk.Discarder.
func (w *withheld) Discard(a, n uint64) error {
	if err := disk.Discard(w.Disk, a, n); err != nil {
		return err
	}
	for _, end := range w.ends() {
		if end >= a && end-a < n {
			w.hold(end, make([]byte, disk.BlockSize))
		}
	}
	return nil
}

// hold keeps what block a is to have.
func (w *withheld) hold(a uint64, b []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[a] = bytes.Clone(b)
}

// finish writes what was withheld, when all else is durable.
func (w *withheld) finish() error {
	if err := w.Disk.Barrier(); err != nil {
		return err
	}
	for _, a := range w.ends() {
		if b := w.held[a]; b != nil {
			if err := w.Disk.WriteAt(a, [][]byte{b}); err != nil {
				return err
			}
		}
		if err := w.Disk.Barrier(); err != nil {
			return err
		}
	}
	return nil
}
