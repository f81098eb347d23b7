package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"tansy/disk"
	"tansy/fs"
)

// have is what a folder has, as it comes through a pipe.
func have(t *testing.T, folder string) *Have {
	t.Helper()
	h, err := HaveOf(context.Background(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := h.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes, %v", n, b.Len(), err)
	}
	again, err := ReadHave(&b)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// sent is what is sent of a volume to one that has something.
func sent(t *testing.T, d disk.Disk, h *Have) []byte {
	t.Helper()
	var b bytes.Buffer
	r, err := Write(context.Background(), &b, d, nil, Options{Have: h, Number: h.Number + 1})
	if err != nil || len(r.Damaged) > 0 || r.Number != h.Number+1 || r.Parent != h.ID {
		t.Fatalf("%+v, %v", r, err)
	}
	return b.Bytes()
}

// receive is Receive of some bytes.
func receive(folder string, b []byte) (string, Received, error) {
	return Receive(context.Background(), folder, bytes.NewReader(b), nil, nil)
}

// Backups are sent of a volume that changes, again and again; what is sent is cut at random places, or changed on the
// way, and the machine that it goes to crashes. When one has come as a whole, it is what the volume was.
func TestSent(t *testing.T) {
	r := drawn(t)
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	d := made(t, 64<<20, fs.MkfsOptions{}, func(*fs.FS) {})
	folder := filepath.Join(t.TempDir(), "backups")
	put := 0
	for range rounds {
		files(t, r, d, 20)
		for breaks := r.Intn(6); ; breaks-- {
			b := sent(t, rest(t, d), have(t, folder))
			want := treeOf(t, d)
			spoilt := breaks > 0
			if spoilt {
				b = spoil(r, b)
			}
			path, got, err := receive(folder, b)
			if !spoilt {
				if err != nil {
					t.Fatal(err)
				}
				put += got.Parts
				c := chain(t, path)
				clean(t, path, deviceIn(t, c))
				sameTree(t, path, want, treeOf(t, deviceIn(t, c)))
				v := restored(t, c, false)
				clean(t, path+" restored", v)
				sameTree(t, path+" restored", want, treeOf(t, v))
				break
			}
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotBackup) && !errors.Is(err, ErrInterrupted) {
				t.Fatalf("of what was spoilt: %v", err)
			}
			if r.Intn(3) == 0 {
				crash(t, r, folder)
			}
			if r.Intn(2) == 0 {
				files(t, r, d, 5)
			}
		}
		if left, err := partPaths(folder); err != nil || len(left) > 0 {
			t.Fatalf("left: %q, %v", left, err)
		}
	}
	if all, err := List(folder); err != nil || len(all) != rounds {
		t.Errorf("%d backups, %v", len(all), err)
	}
	if put == 0 {
		t.Error("nothing was ever put together")
	}
}

// files makes, overwrites, and removes some files.
func files(t *testing.T, r *rand.Rand, d disk.Disk, n int) {
	t.Helper()
	change(t, d, func(v *fs.FS) {
		for range n {
			name := string(rune('a' + r.Intn(26)))
			if _, err := v.Lookup(root, v.Root(), []byte(name)); err == nil {
				remove(t, v, name)
			}
			if r.Intn(4) > 0 {
				b := make([]byte, r.Intn(1<<20))
				r.Read(b[:r.Intn(len(b)+1)])
				put(t, v, name, b)
			}
		}
	})
}

// spoil cuts what is sent, or changes a byte of it.
func spoil(r *rand.Rand, b []byte) []byte {
	if r.Intn(3) > 0 {
		return b[:r.Intn(len(b))]
	}
	b = bytes.Clone(b)
	b[r.Intn(len(b))] ^= 1 << r.Intn(8)
	return b
}

// crash has the end of the parts in a folder be what may be there after a crash.
func crash(t *testing.T, r *rand.Rand, folder string) {
	t.Helper()
	parts, err := partPaths(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		at := r.Intn(len(b) + 1)
		if r.Intn(2) == 0 {
			b = b[:at]
		} else {
			clear(b[at:])
		}
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// big is a volume with a file of 12 MiB, of blocks that differ.
func big(t *testing.T) disk.Disk {
	b := make([]byte, 12<<20)
	rand.New(rand.NewSource(1)).Read(b)
	return made(t, 32<<20, fs.MkfsOptions{}, func(v *fs.FS) { put(t, v, "big", b) })
}

// What came is not sent again, and of a whole backup only what changed.
func TestSentOnce(t *testing.T) {
	d, folder := big(t), t.TempDir()
	all := sent(t, rest(t, d), have(t, folder))
	if _, got, err := receive(folder, all[:len(all)*3/4]); err == nil || !got.Kept {
		t.Fatalf("%+v, %v", got, err)
	}
	more := sent(t, rest(t, d), have(t, folder))
	if len(more) > len(all)*2/5 {
		t.Errorf("after three quarters of %d bytes came, %d are sent", len(all), len(more))
	}
	if _, got, err := receive(folder, more[:len(more)/2]); err == nil || !got.Kept {
		t.Fatalf("%+v, %v", got, err)
	}
	last := sent(t, rest(t, d), have(t, folder))
	if len(last) > len(more)*4/5 {
		t.Errorf("after half of %d bytes came, %d are sent", len(more), len(last))
	}
	path, got, err := receive(folder, last)
	if err != nil || got.Parts != 2 || got.Damaged > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if c := chain(t, path); !c.Info().Full() {
		t.Error("what was put together is not full")
	}
	if again := sent(t, rest(t, d), have(t, folder)); len(again) > 16*disk.BlockSize {
		t.Errorf("%d bytes are sent though nothing has changed", len(again))
	}
}

// Before the tree of codes has come there is nothing to add to: what has come before stays what is added to.
func TestSentTooLittle(t *testing.T) {
	d, folder := big(t), t.TempDir()
	all := sent(t, rest(t, d), have(t, folder))
	if _, _, err := receive(folder, all[:len(all)/2]); err == nil {
		t.Fatal("half is taken for all")
	}
	before := have(t, folder)
	if _, got, err := receive(folder, sent(t, rest(t, d), before)[:2*disk.BlockSize]); err == nil || got.Kept {
		t.Fatalf("%+v, %v", got, err)
	}
	// A piece with the superblock alone, as of a larger volume.
	super := make([]byte, disk.BlockSize)
	if err := d.ReadAt(0, [][]byte{super}); err != nil {
		t.Fatal(err)
	}
	var part bytes.Buffer
	w, err := newWriter(&part, Info{Volume: before.Volume, ID: ID{9}, Parent: before.ID, Number: before.Number + 1,
		Size: before.Size, Room: d.Size()})
	if err := errors.Join(err, w.add(entry{0, stored, crc(super)}, super), w.flush()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "little"+partEnd), part.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if now := have(t, folder); now.ID != before.ID || len(now.rows) != len(before.rows) {
		t.Errorf("%d pages, then %d", len(before.rows), len(now.rows))
	}
}

// What does not come next is refused, and nothing changes.
func TestSentOutOfOrder(t *testing.T) {
	d, folder := big(t), t.TempDir()
	none := have(t, folder)
	all := sent(t, rest(t, d), none)
	if _, _, err := receive(folder, all); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, b []byte, want error) {
		t.Helper()
		if _, _, err := receive(folder, b); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if all, err := List(folder); err != nil || len(all) != 1 {
			t.Errorf("%s: %d backups, %v", what, len(all), err)
		}
	}
	refused("the same again", all, ErrNotNext)
	one := have(t, folder)
	next := sent(t, rest(t, d), one)
	other := big(t)
	refused("another volume", sent(t, rest(t, other), none), ErrOtherVolume)
	if _, err := Write(context.Background(), io.Discard, rest(t, other), nil, Options{Have: one}); !errors.Is(err,
		ErrOtherVolume) {
		t.Errorf("another volume with what there is: %v", err)
	}
	var far bytes.Buffer
	if _, err := Write(context.Background(), &far, rest(t, d), nil, Options{Have: one, Number: 1 << 63}); err != nil {
		t.Fatal(err)
	}
	refused("a number that leaves none", far.Bytes(), ErrNotNext)
	if _, _, err := receive(filepath.Join(t.TempDir(), "other"), endless(t, all)); !errors.Is(err, ErrDamaged) {
		t.Errorf("an index without an end: %v", err)
	}
	x, err := OpenFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	refused("while another writes", next, ErrBusy)
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := receive(folder, next); err != nil {
		t.Fatal(err)
	}
	if _, _, err := receive(folder, next); !errors.Is(err, ErrNotNext) {
		t.Errorf("what came before: %v", err)
	}
	// All of it again, if that is wanted, and over a part.
	if _, got, err := receive(folder, sent(t, rest(t, d), have(t, folder))[:5*disk.BlockSize]); err == nil {
		t.Fatalf("%+v", got)
	}
	again := sent(t, rest(t, d), &Have{Number: have(t, folder).Number})
	if path, got, err := receive(folder, again); err != nil || got.Parts > 0 || !chain(t, path).Info().Full() {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is sent adds to no block that has rotted since.
func TestSentToRotten(t *testing.T) {
	d, folder := big(t), t.TempDir()
	path, _, err := receive(folder, sent(t, rest(t, d), have(t, folder)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	path, _, err = receive(folder, sent(t, rest(t, d), have(t, folder)))
	if err != nil {
		t.Fatal(err)
	}
	clean(t, path, deviceIn(t, chain(t, path)))
}

// What is not the whole of what there is is refused.
func TestHaveSpoilt(t *testing.T) {
	h := &Have{Volume: [16]byte{1}, ID: ID{2}, Number: 3, Size: 4, rows: []haveRow{{page: 1}, {page: 5}}}
	var b bytes.Buffer
	if _, err := h.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for n := range b.Len() {
		if _, err := ReadHave(bytes.NewReader(b.Bytes()[:n])); !errors.Is(err, ErrNotHave) {
			t.Errorf("the first %d bytes: %v", n, err)
		}
		other := bytes.Clone(b.Bytes())
		other[n] ^= 4
		if _, err := ReadHave(bytes.NewReader(other)); !errors.Is(err, ErrNotHave) {
			t.Errorf("with byte %d changed: %v", n, err)
		}
	}
	if _, err := ReadHave(bytes.NewReader(append(b.Bytes(), 0))); !errors.Is(err, ErrNotHave) {
		t.Errorf("with more behind it: %v", err)
	}
}

// Blocks that were free when something was sent, and have the contents again that they had before, are sent, though the
// page with their codes is the same. And what was stored is not there where zeros have taken its place.
func TestSentAgain(t *testing.T) {
	const files, blocks = 80, 10
	fill := func(v *fs.FS, contents string) {
		for i := range files {
			put(t, v, fmt.Sprint("f", i), bytes.Repeat([]byte(contents), blocks*disk.BlockSize/len(contents)))
		}
	}
	empty := func(v *fs.FS) {
		for i := range files {
			remove(t, v, fmt.Sprint("f", i))
		}
	}
	folder := t.TempDir()
	d := made(t, 16<<20, fs.MkfsOptions{}, func(v *fs.FS) {
		fill(v, "same")
		crowd(t, v) // so that the same blocks are taken again
	})
	send := func() *Chain {
		t.Helper()
		path, _, err := receive(folder, sent(t, rest(t, d), have(t, folder)))
		if err != nil {
			t.Fatal(err)
		}
		c := chain(t, path)
		clean(t, path, deviceIn(t, c))
		lean(t, c)
		sameTree(t, path, treeOf(t, d), treeOf(t, deviceIn(t, c)))
		return c
	}
	for round := 0; ; round++ {
		change(t, d, empty)
		before := send()
		change(t, d, func(v *fs.FS) { fill(v, "same") })
		if unchanged(t, before, send()) || t.Failed() {
			break
		}
		if round == 50 {
			t.Fatal("no page with the codes of blocks that are in use again is the same")
		}
	}
	change(t, d, func(v *fs.FS) {
		empty(v)
		fill(v, "\x00")
	})
	send()
}

// Parts that a killed receiver left when the backup had its name already, or when some of them were put together, are
// in nobody's way, and go with the next.
func TestReceiveKilled(t *testing.T) {
	d, folder := big(t), t.TempDir()
	for range 2 {
		b := sent(t, rest(t, d), have(t, folder))
		if _, got, err := receive(folder, b[:len(b)*2/3]); err == nil || !got.Kept {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	paths, err := partPaths(folder)
	if err != nil || len(paths) != 2 {
		t.Fatalf("%q, %v", paths, err)
	}
	parts := map[string][]byte{}
	for _, p := range paths {
		if parts[p], err = os.ReadFile(p); err != nil {
			t.Fatal(err)
		}
	}
	back := func() {
		t.Helper()
		for p, b := range parts {
			if err := os.WriteFile(p, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := sent(t, rest(t, d), have(t, folder))
	path, got, err := receive(folder, last)
	if err != nil || got.Parts != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	// With its name.
	back()
	if h := have(t, folder); h.ID != got.ID || h.Number != got.Number {
		t.Errorf("%x with number %d, and not what came last, %+v", h.ID, h.Number, got.Info)
	}
	// Before it had its name, but put together with one of the parts, or with both.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for _, together := range [][]byte{last, whole} {
		back()
		if err := os.WriteFile(partOf(path), together, 0o600); err != nil {
			t.Fatal(err)
		}
		again, got, err := receive(folder, sent(t, rest(t, d), have(t, folder)))
		if err != nil {
			t.Fatal(err)
		}
		clean(t, again, deviceIn(t, chain(t, again)))
		sameTree(t, again, treeOf(t, d), treeOf(t, deviceIn(t, chain(t, again))))
		if got.Bytes > 20*disk.BlockSize {
			t.Errorf("%d bytes were sent again", got.Bytes)
		}
		if left, err := partPaths(folder); err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
		if err := os.Remove(again); err != nil {
			t.Fatal(err)
		}
	}
}

// A block that was changed on the way is refused, and what came before it is kept.
func TestSentFlipped(t *testing.T) {
	d, folder := big(t), filepath.Join(t.TempDir(), "to")
	b := sent(t, rest(t, d), have(t, folder))
	b[len(b)*3/4/disk.BlockSize*disk.BlockSize+1] ^= 1
	if _, got, err := receive(folder, b); !errors.Is(err, ErrDamaged) || !got.Kept {
		t.Errorf("%+v, %v", got, err)
	}
	if all, err := List(folder); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// endless is a backup that goes on with its index in place of its end.
func endless(t *testing.T, b []byte) []byte {
	t.Helper()
	end := len(b)/disk.BlockSize - 1
	e, ok := decodeEnding(b[end*disk.BlockSize:], uint64(end))
	if !ok {
		t.Fatal("there is no end")
	}
	b = bytes.Clone(b[:end*disk.BlockSize])
	for at := range uint64(1000) {
		b = append(b, encodeIndex(e.info.ID, uint64(end)+at, nil)...)
	}
	return b
}
