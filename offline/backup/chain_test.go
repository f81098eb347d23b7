package backup

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/journal"
)

// contents of a block in a random file; nil: nothing is said, empty: gone.
type said map[uint64][]byte

// randomFile is a file with some entries of a layout of size blocks.
func randomFile(t *testing.T, r *rand.Rand, size uint64, id, parent byte) (*file, said) {
	t.Helper()
	var b bytes.Buffer
	w, err := newWriter(&b, Info{ID: ID{id}, Parent: ID{parent}, Number: uint64(id), Size: size, Room: size})
	if err != nil {
		t.Fatal(err)
	}
	has := said{}
	dense := 1 + r.Intn(20)
	for a := uint64(0); a < size; a++ {
		switch r.Intn(2 * dense) {
		case 0, 1:
			data := bytes.Repeat([]byte{id, byte(a), byte(a >> 8), 1}, disk.BlockSize/4)
			copy(w.room(0), data)
			if err := w.add(entry{a, stored, crc(data)}, w.room(0)); err != nil {
				t.Fatal(err)
			}
			has[a] = data
		case 2:
			n := 1 + uint64(r.Int63n(int64(min(size-a, 60))))
			if err := w.addGone(a, n); err != nil {
				t.Fatal(err)
			}
			for range n {
				has[a] = []byte{}
				a++
			}
			a--
		}
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	return reopened(t, b.Bytes(), fmt.Sprint("file ", id)), has
}

func reopened(t *testing.T, b []byte, name string) *file {
	t.Helper()
	f, err := openFile(bytes.NewReader(b), name, uint64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// compareChain compares a chain of files with what they say, the last first.
func compareChain(t *testing.T, files []*file, has []said) {
	t.Helper()
	c, err := chainOf(files)
	if err != nil {
		t.Fatal(err)
	}
	want := func(a uint64) []byte {
		for _, s := range has {
			if data, ok := s[a]; ok {
				return data
			}
		}
		return nil
	}
	b, next := make([]byte, disk.BlockSize), c.Size()
	for a := c.Size(); a > 0; {
		a--
		if len(want(a)) > 0 {
			next = a
		}
		if got, err := c.NextData(a); err != nil || got != next {
			t.Fatalf("the next data behind %d: %d, %v, want %d", a, got, err, next)
		}
		if err := c.ReadAt(a, [][]byte{b}); err != nil {
			t.Fatal(err)
		}
		if data := want(a); len(data) > 0 && !bytes.Equal(b, data) || len(data) == 0 && !zero(b) {
			t.Fatalf("block %d: %x, want %x", a, b[:4], data[:min(4, len(data))])
		}
	}
	at := uint64(0)
	if err := c.each(func(e entry, data []byte) error {
		for ; at < e.block; at++ {
			if len(want(at)) > 0 {
				return fmt.Errorf("block %d is left out", at)
			}
		}
		if at++; !bytes.Equal(data, want(e.block)) {
			return fmt.Errorf("block %d is another", e.block)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Random chains have what their files say, the last first; and so they have with two files merged, again and again.
func TestChains(t *testing.T) {
	r := drawn(t)
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for range rounds {
		size := uint64(2 + r.Intn(3000))
		var files []*file
		var has []said
		for id := range byte(1 + r.Intn(5)) {
			f, s := randomFile(t, r, size, id+1, id)
			files, has = slices.Insert(files, 0, f), slices.Insert(has, 0, s)
		}
		compareChain(t, files, has)
		for len(files) > 1 {
			i := r.Intn(len(files) - 1)
			var b bytes.Buffer
			if err := merge(&b, files[i+1], files[i], nil); err != nil {
				t.Fatal(err)
			}
			f := reopened(t, b.Bytes(), "merged")
			if f.ID != files[i].ID || f.Parent != files[i+1].Parent {
				t.Errorf("%+v", f.Info)
			}
			for a := uint64(0); f.Full(); {
				e, ok, err := f.next(a)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					break
				}
				if a = e.end(); e.kind == gone {
					t.Errorf("block %d is gone from a full backup", e.block)
				}
			}
			files = slices.Replace(files, i, i+2, f)
			compareChain(t, files, has)
		}
	}
}

// Where a list is damaged, nothing is known of the blocks between its first and its last, and all is of others.
func TestDamagedList(t *testing.T) {
	var b bytes.Buffer
	w, err := newWriter(&b, Info{ID: ID{1}, Size: 5000, Room: 5000})
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte{7}, disk.BlockSize)
	for _, from := range []uint64{0, 1000, 3000} {
		for a := range uint64(perHead) {
			if err := w.add(entry{from + a, stored, crc(data)}, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.add(entry{4999, stored, crc(data)}, data); err != nil {
		t.Fatal(err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	b.Bytes()[w.segments[1].at*disk.BlockSize+100] ^= 1
	c, err := chainOf([]*file{reopened(t, b.Bytes(), "damaged")})
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, disk.BlockSize)
	for a, lost := range map[uint64]bool{0: false, 500: false, 999: false, 1000: true, 1250: true, 1251: false, 3000: false} {
		if err := c.ReadAt(a, [][]byte{buf}); errors.Is(err, ErrDamaged) != lost || (err != nil) != lost {
			t.Errorf("block %d: %v", a, err)
		}
	}
	if next, err := c.NextData(perHead); next != 1000 || err != nil {
		t.Errorf("the next data: %d, %v", next, err)
	}
	places, blocks := 0, 0
	if err := c.each(func(e entry, _ []byte) error {
		if e.kind == lost {
			places++
			if e.block != 1000 || e.end() != 1000+perHead {
				t.Errorf("lost: %+v", e)
			}
		} else {
			blocks++
		}
		return nil
	}); err != nil || places != 1 || blocks != 2*perHead+1 {
		t.Errorf("%d places are lost, and %d blocks are there (%v)", places, blocks, err)
	}
}

// A merge of what does not belong together is refused, and so is a chain.
func TestForeignChains(t *testing.T) {
	r := drawn(t)
	first, _ := randomFile(t, r, 100, 1, 0)
	third, _ := randomFile(t, r, 100, 3, 2)
	small, _ := randomFile(t, r, 90, 2, 1)
	for _, files := range [][]*file{{third}, {third, first}, {small, first}, {first, first}, {}} {
		if _, err := chainOf(files); !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotBackup) {
			t.Errorf("%d files: %v", len(files), err)
		}
	}
	for _, x := range [][2]*file{{first, third}, {first, small}, {third, first}} {
		if err := merge(&bytes.Buffer{}, x[0], x[1], nil); err == nil {
			t.Errorf("%s and %s are merged", x[0].name, x[1].name)
		}
	}
}

// Blocks are written in their order, or refused; what is gone may be more than one entry tells of.
func TestWriter(t *testing.T) {
	var b bytes.Buffer
	const size = 1 << 40
	w, err := newWriter(&b, Info{ID: ID{1}, Parent: ID{2}, Size: size, Room: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{1 << 31, 1 << 31, 1 << 31, 1<<34 + 5} {
		if err := w.addGone(w.next, n); err != nil {
			t.Fatal(err)
		}
	}
	end := w.next
	if err := w.add(entry{end - 1, stored, 0}, nil); !errors.Is(err, errOrder) {
		t.Errorf("an earlier block: %v", err)
	}
	if err := w.add(entry{size, stored, 0}, nil); !errors.Is(err, errOrder) {
		t.Errorf("a block behind the end: %v", err)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
	f := reopened(t, b.Bytes(), "gone")
	for a := uint64(0); a < end; {
		e, ok, err := f.next(a)
		if err != nil || !ok || e.block != a || e.kind != gone {
			t.Fatalf("behind block %d: %+v, %v, %v", a, e, ok, err)
		}
		a = e.end()
	}
	if _, ok, err := f.next(end); ok || err != nil {
		t.Error("there is more than was written")
	}
}

// The nodes of a page are its codes: those of home blocks first, which are where PageOf says.
func TestNodes(t *testing.T) {
	d := made(t, 64<<20, fs.MkfsOptions{}, func(v *fs.FS) {})
	super, err := superOf(d)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSource(rest(t, d), super)
	if err != nil {
		t.Fatal(err)
	}
	root, code, ok := s.snap.Root()
	if !ok || code == (journal.Code{}) {
		t.Fatal("no tree of codes")
	}
	homes, pages := map[uint64]bool{}, map[uint64]bool{}
	for p := range root + 1 {
		c, err := s.snap.Codes(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Len() {
			n, home, _ := c.Node(i)
			switch {
			case home && s.snap.PageOf(n) != p:
				t.Errorf("the code of block %d is in page %d, and not in %d", n, p, s.snap.PageOf(n))
			case home:
				homes[n] = true
			default:
				pages[n] = true
			}
		}
		if c.Block != 1+2*p && c.Block != 2+2*p {
			t.Errorf("page %d lies in block %d", p, c.Block)
		}
	}
	first := s.super.Geometry().InodeBitmap()
	if uint64(len(homes)) != d.Size()-first || uint64(len(pages)) != root || pages[root] {
		t.Errorf("%d home blocks and %d pages have codes", len(homes), len(pages))
	}
}
