package backup

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/volumeend"
	"tansy/journal"
)

// A Have says what a folder elsewhere has of a volume, so that what is sent there can leave that out: the codes of the
// pages of the tree of codes, and of each of these a digest of the blocks that are in use below it. It lists what was
// read and found as it was written, and nothing else. It has neither contents nor the key of the codes.
// docs/design/backup.md has the format.
type Have struct {
	Volume [16]byte // its UUID
	ID     ID       // of what a backup adds to that is made with it; zeros: there is nothing
	Number uint64   // the greatest in the folder
	Size   uint64   // blocks of the volume's layout

	key  [sha256.Size]byte // digest of what all backups of a volume have the same
	rows []haveRow         // in the order of their pages
}

// haveRow is what there is of a page, and below it.
type haveRow struct {
	page  uint64
	code  journal.Code
	below digest // of the home blocks in use; zeros: not all of these are there, or the page has the codes of none
}

// digest is the beginning of a SHA-256.
type digest [16]byte

// Empty tells that there is nothing to add to.
func (h *Have) Empty() bool { return h.ID == ID{} }

// row is that of a page, or zeros.
func (h *Have) row(page uint64) haveRow {
	i := sort.Search(len(h.rows), func(i int) bool { return h.rows[i].page >= page })
	if i == len(h.rows) || h.rows[i].page != page {
		return haveRow{}
	}
	return h.rows[i]
}

// HaveOf reads all that there is in a folder, also of a backup whose arrival was interrupted (Receive), and returns it.
// It locks nothing. A folder that is missing, or empty, has nothing. progress, unless nil, is called now and then with
// pages.
func HaveOf(ctx context.Context, folder string, progress func(done, total uint64)) (*Have, error) {
	t, err := tipOf(folder)
	if err != nil {
		return nil, err
	}
	h := &Have{Number: t.number}
	if t.chain == nil {
		return h, nil
	}
	defer t.chain.Close()
	s, now, err := t.source()
	if err != nil { // nothing can be told of it, so all is sent
		return h, nil
	}
	i := t.chain.Info()
	h.Volume, h.ID, h.Size, h.key = i.Volume, i.ID, i.Size, sha256.Sum256([]byte(key(s)))
	pages, err := now.walk(ctx, func(error) error { return nil })
	if err != nil {
		return nil, err
	}
	for k, p := range pages {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if progress != nil {
			progress(uint64(k), uint64(len(pages)))
		}
		c, err := now.codes(p.page, p.code)
		if err != nil {
			continue
		}
		h.rows = append(h.rows, haveRow{p.page, p.code, t.below(now, c)})
	}
	return h, nil
}

// below is the digest of the home blocks whose codes are in c, if all that are in use are there, as they were written.
func (t *tip) below(now *source, c *journal.Codes) digest {
	d, err := now.below(c)
	if err != nil || d == (digest{}) {
		return digest{}
	}
	buf := make([]byte, disk.BlockSize)
	for a, code := range now.homes(c) {
		used, err := now.used(a)
		if err != nil {
			return digest{}
		}
		if !used {
			continue
		}
		if _, e, _, err := t.chain.find(a); code == (journal.Code{}) && err == nil && e.kind == gone {
			continue
		}
		if t.chain.readBlock(a, buf) != nil {
			return digest{}
		}
		if ok, _ := now.snap.Genuine(a, buf); !ok {
			return digest{}
		}
	}
	return d
}

// pageCode is a page of the tree of codes that stands for more than zeros, and its code.
type pageCode struct {
	page uint64
	code journal.Code
}

// walk lists the pages of the tree of codes, in their order. What lies below a page that is lost is left out, if lost
// returns nil for its error.
func (s *source) walk(ctx context.Context, lost func(error) error) (all []pageCode, err error) {
	var down func(p pageCode) error
	down = func(p pageCode) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c, err := s.codes(p.page, p.code)
		if err != nil {
			return lost(err)
		}
		all = append(all, p)
		for i := range c.Len() {
			if n, home, code := c.Node(i); !home && code != (journal.Code{}) {
				if err := down(pageCode{n, code}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if root, code, _ := s.snap.Root(); code != (journal.Code{}) {
		err = down(pageCode{root, code})
	}
	slices.SortFunc(all, func(a, b pageCode) int {
		if a.page < b.page {
			return -1
		}
		return 1
	})
	return all, err
}

// homes yields the home blocks whose codes are in c, but for the superblock's copy.
func (s *source) homes(c *journal.Codes) func(yield func(a uint64, code journal.Code) bool) {
	return func(yield func(a uint64, code journal.Code) bool) {
		for i := range c.Len() {
			a, home, code := c.Node(i)
			if !home || a >= s.super.Size()-1 || !yield(a, code) {
				return
			}
		}
	}
}

// below is a digest of which home blocks are in use of those whose codes are in c, and of these codes. It is that of no
// blocks, zeros, if c has no codes of any. The error is that of a bitmap that is damaged.
func (s *source) below(c *journal.Codes) (d digest, err error) {
	sum, some := sha256.New(), false
	var b [24]byte
	for a, code := range s.homes(c) {
		some = true
		used, err := s.used(a)
		if err != nil {
			return d, err
		}
		if used {
			binary.LittleEndian.PutUint64(b[:], a)
			binary.LittleEndian.PutUint64(b[8:], code[0])
			binary.LittleEndian.PutUint64(b[16:], code[1])
			sum.Write(b[:])
		}
	}
	if some {
		copy(d[:], sum.Sum(nil))
	}
	return d, nil
}

// ---- what is written for one that has something ----

// beyond writes a backup that adds to what o.Have tells of. It tells of every block that is not the same there, so that
// it matters nowhere what else lies there of a backup that was interrupted.
func (b *run) beyond() error {
	pages, err := b.now.walk(b.ctx, func(err error) error { return err })
	if err != nil {
		return err
	}
	if err := b.take(0); err != nil {
		return err
	}
	b.at = 1
	j := volumeend.Journal(b.now.super)
	for _, p := range pages {
		if err := b.pageBeyond(p, j.Start-2*j.Pages); err != nil {
			return err
		}
	}
	for _, a := range []uint64{j.Start, j.Home() - 1} {
		if err := errors.Join(b.goneTo(a), b.take(a)); err != nil {
			return err
		}
		b.at = a + 1
	}
	for i, p := range pages {
		if b.o.Progress != nil {
			b.o.Progress(uint64(i), uint64(len(pages)))
		}
		if err := b.leafBeyond(p); err != nil {
			return err
		}
	}
	last := b.now.super.Size() - 1
	if err := errors.Join(b.goneTo(last), b.take(last)); err != nil {
		return err
	}
	return b.w.close()
}

// goneTo writes that the blocks from b.at on before a have nothing.
func (b *run) goneTo(a uint64) error {
	from := b.at
	if from >= a {
		return nil
	}
	b.at = a
	if err := b.read(); err != nil {
		return err
	}
	return b.w.addGone(from, a-from)
}

// pageBeyond writes a page of the tree of codes, whose first page begins at block tree.
func (b *run) pageBeyond(p pageCode, tree uint64) error {
	first := tree + 2*p.page
	if err := b.goneTo(first); err != nil {
		return err
	}
	if b.o.Have.row(p.page).code == p.code {
		b.at = first + 2
		return nil
	}
	c, err := b.now.codes(p.page, p.code)
	if err != nil || zero(c.Data) {
		return err
	}
	if err := b.goneTo(c.Block); err != nil {
		return err
	}
	b.at = c.Block + 1
	return b.w.add(entry{c.Block, stored, crc(c.Data)}, c.Data)
}

// leafBeyond writes the home blocks whose codes are in page p.
func (b *run) leafBeyond(p pageCode) error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	c, err := b.now.codes(p.page, p.code)
	if err != nil {
		return err
	}
	// Another version of the page may have the same codes of what is in use.
	if d, err := b.now.below(c); err == nil && d != (digest{}) && d == b.o.Have.row(p.page).below {
		for a := range b.now.homes(c) {
			if err := b.goneTo(a); err != nil {
				return err
			}
			b.at = a + 1
		}
		return nil
	}
	for a, code := range b.now.homes(c) {
		if used, err := b.now.used(a); code == (journal.Code{}) || !used && err == nil {
			continue
		}
		if err := b.goneTo(a); err != nil {
			return err
		}
		b.at = a + 1
		if err := b.want(a); err != nil {
			return err
		}
	}
	return nil
}

// of is an error if h is of another volume than that with superblock s.
func (h *Have) of(s superblockformat.Super) error {
	if id := volumeend.UUID(s); h.Volume != id || h.Size != s.Size() || h.key != sha256.Sum256([]byte(key(s))) {
		return fmt.Errorf("what is there already (--have): %w: its UUID is %x, and that of this volume %x", ErrOtherVolume,
			h.Volume, id)
	}
	return nil
}

// ---- how it is sent ----

const haveMagic = "TansyHave1\n\x00\x00\x00\x00\x00"

const (
	haveFixed = len(haveMagic) + 16 + 16 + 8 + 8 + sha256.Size + 8
	haveEach  = 8 + 16 + 16
)

// ErrNotHave is wrapped by the error of reading something else than what WriteTo has written, or not all of it.
var ErrNotHave = errors.New("what tansy receive --have prints is not here, or not all of it")

// WriteTo writes h, which ReadHave reads.
func (h *Have) WriteTo(w io.Writer) (n int64, err error) {
	sum := sha256.New()
	out := bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16)
	b := append([]byte(haveMagic), h.Volume[:]...)
	b = append(b, h.ID[:]...)
	b = binary.LittleEndian.AppendUint64(b, h.Number)
	b = binary.LittleEndian.AppendUint64(b, h.Size)
	b = append(b, h.key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(h.rows)))
	_, err = out.Write(b)
	for _, r := range h.rows {
		b = binary.LittleEndian.AppendUint64(b[:0], r.page)
		b = binary.LittleEndian.AppendUint64(b, r.code[0])
		b = binary.LittleEndian.AppendUint64(b, r.code[1])
		if _, e := out.Write(append(b, r.below[:]...)); err == nil {
			err = e
		}
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	if err == nil {
		_, err = w.Write(sum.Sum(nil))
	}
	return int64(haveFixed + haveEach*len(h.rows) + sha256.Size), err
}

// ReadHave reads what WriteTo has written, and nothing may follow. It takes as much memory as there is to read, about.
func ReadHave(r io.Reader) (*Have, error) {
	sum := sha256.New()
	in := bufio.NewReaderSize(r, 1<<16)
	b := make([]byte, haveFixed)
	read := func(b []byte) error {
		_, err := io.ReadFull(in, b)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return ErrNotHave
		}
		sum.Write(b)
		return err
	}
	if err := read(b); err != nil {
		return nil, err
	}
	if string(b[:len(haveMagic)]) != haveMagic {
		return nil, ErrNotHave
	}
	b = b[len(haveMagic):]
	u64 := binary.LittleEndian.Uint64
	h := &Have{Volume: [16]byte(b), ID: ID(b[16:]), Number: u64(b[32:]), Size: u64(b[40:]), key: [sha256.Size]byte(b[48:])}
	row := make([]byte, haveEach)
	for n := u64(b[48+sha256.Size:]); n > 0; n-- {
		if err := read(row); err != nil {
			return nil, err
		}
		r := haveRow{u64(row), journal.Code{u64(row[8:]), u64(row[16:])}, digest(row[24:])}
		if k := len(h.rows); k > 0 && h.rows[k-1].page >= r.page {
			return nil, ErrNotHave
		}
		h.rows = append(h.rows, r)
	}
	want := sum.Sum(nil)
	end := make([]byte, sha256.Size)
	if err := read(end); err != nil {
		return nil, err
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) || !bytes.Equal(want, end) {
		return nil, ErrNotHave
	}
	return h, nil
}
