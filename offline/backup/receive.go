package backup

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/volumeend"
)

// A part is the beginning of a backup whose arrival was interrupted. It lies beside the backups, and is none: its name
// has another end. What is sent next adds to it (Have), and may be interrupted, too. When one is whole, one backup is
// made of it and of the parts below it.
const partEnd = Suffix + ".part"

// partOf is the part of a backup with that name.
func partOf(path string) string { return strings.TrimSuffix(path, Suffix) + partEnd }

// tip is what the next backup that is sent to a folder adds to.
type tip struct {
	chain  *Chain // nil: nothing
	parts  int    // so many files of it are parts, the last first
	number uint64 // the greatest of all backups and parts
}

// tipOf finds it. Parts that nothing can be made of are left out: those that add to what is gone, and those older than
// the last backup.
func tipOf(folder string) (*tip, error) {
	all, err := List(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return &tip{}, nil
	}
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(l Listed) bool { return l.Err != nil })
	t := &tip{}
	if n := len(all); n > 0 {
		t.number = all[n-1].Number
	}
	parts, err := partsOf(folder, t.number)
	if err != nil {
		return nil, err
	}
	for _, p := range parts { // the last first
		t.number = max(t.number, p.Number)
		if t.chain == nil {
			t.chain, t.parts = chainOfParts(p, parts, all)
		}
		if t.chain == nil || !slices.Contains(t.chain.files, p) {
			p.close()
		}
	}
	if t.chain == nil && len(all) > 0 {
		t.chain, _ = open(all, all[len(all)-1]) // if it cannot be opened, nothing is added to it
	}
	return t, nil
}

// partsOf opens the parts in a folder whose numbers are greater than one, the last first.
func partsOf(folder string, number uint64) (parts []*file, err error) {
	paths, err := partPaths(folder)
	for _, path := range paths {
		if p := openPart(path); p != nil && p.Number > number {
			parts = append(parts, p)
		} else if p != nil {
			p.close()
		}
	}
	slices.SortFunc(parts, func(a, b *file) int { return cmp.Compare(b.Number, a.Number) })
	return parts, err
}

func partPaths(folder string) ([]string, error) {
	return filepath.Glob(filepath.Join(escaped(folder), "*"+partEnd))
}

// openPart opens a part, or returns nil if it is none that can be added to: such a one has all that comes before the
// blocks with files in them, the tree of codes among it.
func openPart(path string) *file {
	r, err := os.Open(path)
	if err != nil {
		return nil
	}
	f := &file{r: r, name: path, part: true, heads: map[int]*segment{}}
	b := make([]byte, disk.BlockSize)
	st, err := r.Stat()
	if err == nil {
		err = f.read(0, b)
	}
	if err == nil {
		f.bytes = uint64(st.Size())
		f.Info, err = decodeHeader(b)
	}
	if err == nil {
		err = f.search(f.bytes / disk.BlockSize)
	}
	if err != nil || !f.hasTree() {
		f.close()
		return nil
	}
	return f
}

// hasTree tells whether a part has the tree of codes.
func (f *file) hasTree() bool {
	e, place, ok, err := f.find(0)
	b := make([]byte, disk.BlockSize)
	if err != nil || !ok || !e.hasData() || f.contents(e, place, b) != nil {
		return false
	}
	why, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
	if why != 0 || s.Size() != f.Size {
		return false
	}
	_, _, ok, err = f.find(volumeend.Journal(s).Home() - 1)
	return ok && err == nil
}

// chainOfParts is the chain whose last file is part p, and how many parts are in it; nil if what it adds to is not
// there.
func chainOfParts(p *file, parts []*file, all []Listed) (*Chain, int) {
	files := []*file{p}
	for !p.Full() {
		i := slices.IndexFunc(parts, func(x *file) bool { return x.ID == p.Parent && x.Number < p.Number })
		if i < 0 {
			break
		}
		p = parts[i]
		files = append(files, p)
	}
	n := len(files)
	if !p.Full() {
		i := slices.IndexFunc(all, func(l Listed) bool { return l.ID == p.Parent })
		if i < 0 {
			return nil, 0
		}
		below, err := open(all, all[i])
		if err != nil {
			return nil, 0
		}
		files = append(files, below.files...)
	}
	c, err := chainOf(files)
	if err != nil {
		for _, f := range files[n:] {
			f.close()
		}
		return nil, 0
	}
	return c, n
}

// source is the volume of the tip.
func (t *tip) source() (s superblockformat.Super, now *source, err error) {
	if s, err = superOf(t.chain); err == nil {
		now, err = newSource(t.chain, s)
	}
	return s, now, err
}

// A Received says what came.
type Received struct {
	Info
	Bytes   uint64 // that came
	Whole   bool   // the backup is there, whatever the error
	Kept    bool   // after an error: what came is kept, so that the rest can be sent
	Parts   int    // of earlier, interrupted, runs that it was put together with
	Damaged uint64 // blocks of the volume that were damaged when they were sent
}

// ErrNotNext is wrapped by the error of a backup that does not add to the last one of a folder.
var ErrNotNext = errors.New("a backup made for what this folder has now is needed")

// ErrInterrupted is wrapped by the error of a backup that ends too early: who sends it was stopped, or the connection.
var ErrInterrupted = errors.New("the connection, or who sends, was interrupted")

// everyPart is how many bytes of a part come at most before what came is made durable.
const everyPart = 64 << 20

// Receive reads a backup, and makes a file of it in the folder, which is made if it is missing and its parent is not.
// Each part of it is compared with its checksums before it is written. The backup is full, and the folder has nothing;
// or it was made with HaveOf of the folder. If reading is interrupted, what came is kept, and is in HaveOf next time.
// It waits for the beginning of the backup before it locks the folder (ErrBusy), so that one command line can ask for
// HaveOf at the same time. progress, unless nil, is called with bytes. then, unless nil, is called when the backup is
// there, with the folder, which nobody else has come to meanwhile; its error is returned.
//
// After any other error all backups are as they were. It wraps ErrDamaged for what was changed on the way, and
// ErrInterrupted for what was cut short; ErrOtherVolume; or ErrNotNext.
func Receive(ctx context.Context, folder string, r io.Reader, progress func(bytes uint64), then func(*Folder) error) (
	path string, got Received, err error,
) {
	in := &receiving{in: bufio.NewReaderSize(r, atOnce), ctx: ctx, progress: progress}
	s, err := NewStream(in)
	if err != nil {
		return "", got, err
	}
	x, err := OpenFolder(folder)
	if err != nil {
		return "", got, err
	}
	defer x.Close()
	t, err := tipOf(folder)
	if err != nil {
		return "", got, err
	}
	if t.chain != nil {
		defer t.chain.Close()
	}
	if err := x.next(t, s.info); err != nil {
		return "", got, err
	}
	path = x.name(s.info.When)
	got.Info = s.info
	got.Kept, err = x.receive(path, s, in)
	got.Bytes = in.bytes
	if err == nil {
		got.Parts, got.Damaged, err = x.together(ctx, path, s.info, t)
	}
	if err == nil {
		got.Whole = true
		if then != nil {
			err = then(x)
		}
	}
	return path, got, err
}

// farApart is by how much the number of what comes may be greater than all before: so a sender cannot use numbers up,
// by which the order of backups is told.
const farApart = 1 << 32

// next is an error if a backup does not come next in the folder.
func (x *Folder) next(t *tip, i Info) error {
	all, err := List(x.path)
	if err != nil {
		return err
	}
	for _, l := range all {
		if l.Err == nil && l.Volume != i.Volume {
			return fmt.Errorf("%s: %w: its UUID is %x, and that of what comes %x", l.Path, ErrOtherVolume, l.Volume, i.Volume)
		}
	}
	switch {
	case i.Number <= t.number && !i.Full(), i.Number > t.number+farApart:
		return fmt.Errorf("%w: its number is %d, and the last one here %d", ErrNotNext, i.Number, t.number)
	case i.Full() && t.number == 0, i.Full() && i.Number > t.number:
		return nil
	case i.Full():
		return fmt.Errorf("%w: there is something of this volume: send what that has not (tansy backup --have)", ErrNotNext)
	case t.chain == nil || t.chain.Info().ID != i.Parent:
		return fmt.Errorf("%w: ask for that again (tansy receive --have)", ErrNotNext)
	case t.chain.Info().Volume != i.Volume || t.chain.Info().Size != i.Size:
		return ErrOtherVolume
	}
	return nil
}

// receive writes what comes to a part. kept: it stays after an error, as something can be added to it.
func (x *Folder) receive(path string, s *Stream, in *receiving) (kept bool, err error) {
	part := partOf(path)
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	in.out = f
	s.whole = in.whole
	err = s.walk(func(e entry, _ []byte) error {
		if e.kind == lost {
			return fmt.Errorf("%w: block %d was changed on the way", ErrDamaged, e.block)
		}
		return nil
	})
	if errors.Is(err, errCut) {
		err = ErrInterrupted
	}
	if err == nil {
		err = in.whole()
	}
	err = x.full(errors.Join(err, f.Sync(), f.Close()))
	if err == nil {
		return true, x.lock.Sync()
	}
	if p := openPart(part); p != nil {
		return true, errors.Join(err, p.close(), x.lock.Sync())
	}
	return false, errors.Join(err, os.Remove(part))
}

// full adds to an error that the folder has no room.
func (x *Folder) full(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %s is full: all backups are as they were", err, x.path)
	}
	return err
}

// together makes a backup of the part that has all that was sent and of the parts below it, and returns how many these
// are.
func (x *Folder) together(ctx context.Context, path string, i Info, t *tip) (parts int, damaged uint64, err error) {
	part := partOf(path)
	if !i.Full() {
		parts = t.parts
	}
	for k := range parts {
		older := t.chain.files[k]
		newer, err := openPath(part)
		if err != nil {
			return parts, 0, err
		}
		to := partOf(fmt.Sprintf("%s.%d%s", strings.TrimSuffix(path, Suffix), k, Suffix))
		err = x.put(to, os.Rename, func(f *os.File) error {
			out := bufio.NewWriterSize(newPaced(ctx, f, 0, false), atOnce)
			return errors.Join(merge(out, older, newer, nil), out.Flush())
		})
		if err = errors.Join(err, newer.close()); err != nil {
			return parts, 0, err
		}
		if err := os.Remove(part); err != nil {
			return parts, 0, err
		}
		part = to
	}
	f, err := openPath(part)
	if err != nil {
		return parts, 0, err
	}
	damaged = f.end.damaged
	if err := errors.Join(f.close(), disk.Rename(part, path), x.lock.Sync()); err != nil {
		return parts, damaged, err
	}
	left, err := partPaths(x.path)
	for _, l := range left {
		err = errors.Join(err, os.Remove(l))
	}
	return parts, damaged, err
}

// receiving is a reader that keeps what was read until it is known to be right.
type receiving struct {
	in       io.Reader
	ctx      context.Context
	progress func(bytes uint64)
	out      *os.File
	held     bytes.Buffer
	bytes    uint64
	unsynced uint64
}

// Read implements io.Reader.
func (r *receiving) Read(b []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.in.Read(b)
	r.held.Write(b[:n])
	r.bytes += uint64(n)
	return n, err
}

// whole writes what was read, which is right.
func (r *receiving) whole() error {
	n, err := r.held.WriteTo(r.out)
	if r.unsynced += uint64(n); err == nil && r.unsynced >= everyPart {
		r.unsynced = 0
		err = r.out.Sync()
	}
	if r.progress != nil {
		r.progress(r.bytes)
	}
	return err
}
