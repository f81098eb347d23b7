package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/test/kit/replay"
)

const (
	small    = 8 << 20 / disk.BlockSize  // blocks of a new volume
	grown    = 64 << 20 / disk.BlockSize // of its device
	farBelow = 1 << 40 / disk.BlockSize  // what it may become as large as
)

// growing is a volume that may become as large as most blocks (0: it cannot grow), with some files.
func growing(t testing.TB, most uint64) *disk.Mem {
	t.Helper()
	d := disk.NewMem(grown * disk.BlockSize)
	o := fs.MkfsOptions{MaxBytes: most * disk.BlockSize, Inodes: 500, LogBytes: 5 << 20}
	if err := fs.Mkfs(disk.NewPrefix(d, small), o); err != nil {
		t.Fatal(err)
	}
	fill(t, d, "before", 10)
	return d
}

// fill makes n files of 100,000 bytes.
func fill(t testing.TB, d disk.Disk, name string, n int) {
	t.Helper()
	v, err := fs.Open(d, fs.Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		f, err := v.Create(&fs.Cred{}, v.Root(), fmt.Appendf(nil, "%s%d", name, i), fs.Guarded, nil, 0)
		if err == nil {
			_, _, _, err = v.Write(&fs.Cred{}, f.Handle, 0, bytes.Repeat([]byte(name[:2]), 50000), fs.FileSync)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
}

// superOf is the superblock of the volume on d.
func superOf(t testing.TB, d disk.Disk) *superblock {
	t.Helper()
	sb, err := parseSuper(get(t, d, 0))
	if err != nil {
		t.Fatal(err)
	}
	return sb
}

// TestGrowing: a volume that can grow far is checked with about the reads of one that cannot, before and after it grew.
func TestGrowing(t *testing.T) {
	reads := map[uint64]uint64{}
	for _, most := range []uint64{0, 10 * small, farBelow} {
		d := disk.NewStats(growing(t, most))
		rep, err := Volume(d, Options{Data: true})
		if err != nil || !rep.Clean() || rep.Others != 10 || rep.DataChecked == 0 {
			t.Fatalf("may have %d blocks: %+v, %v", most, rep, err)
		}
		if rep.DataBlocks > small {
			t.Errorf("may have %d blocks: %d data blocks", most, rep.DataBlocks)
		}
		reads[most] = d.Counts().ReadBlocks
		if most == 0 {
			continue
		}
		if reads[most] > 2*reads[0] {
			t.Errorf("may have %d blocks: %d are read, of a volume that cannot grow %d", most, reads[most], reads[0])
		}
		if _, err := fs.Grow(d, fs.GrowOptions{}); err != nil {
			t.Fatal(err)
		}
		mustClean(t, d)
		fill(t, d, "after", 100)
		if rep = mustClean(t, d); rep.Others != 110 {
			t.Errorf("may have %d blocks: %+v", most, rep)
		}
	}
}

// TestBehindTheEnds: what a volume has not yet is not in use, whatever says so.
func TestBehindTheEnds(t *testing.T) {
	whole := growing(t, farBelow)
	sb := superOf(t, whole)
	bit := func(start, n uint64) (a uint64, edit func(b []byte)) {
		return start + n/pageBits, func(b []byte) { b[n%pageBits/8] |= 1 << (n % 8) }
	}
	inodeAt := func(ino uint64, off int, x uint64) (a uint64, edit func(b []byte)) {
		return sb.itab + ino/inodesBlock, func(b []byte) {
			binary.LittleEndian.PutUint64(b[ino%inodesBlock*inodeSize+uint64(off):], x)
		}
	}
	name := func(ino uint64) (a uint64, edit func(b []byte)) {
		c := newChecker(Options{MaxProblems: 1})
		c.v = newView(c.use(sb, whole), nil)
		root, err := c.readInode(rootIno)
		if err != nil {
			t.Fatal(err)
		}
		return root.blks[0], func(b []byte) {
			at := slices.IndexFunc(slices.Collect(slices.Chunk(b, shortSlot)), func(s []byte) bool { return u64(s, 0) != 0 })
			w := u64(b, at*shortSlot)
			binary.LittleEndian.PutUint64(b[at*shortSlot:], w&^(1<<inoBits-1)|ino)
		}
	}
	for _, c := range []struct {
		what string
		at   func() (uint64, func(b []byte))
		want string
	}{
		{"the last data block", func() (uint64, func([]byte)) { return bit(sb.bbm, sb.dataEnd-1) },
			fmt.Sprintf("block %d: marked in use, but in no file", sb.dataEnd-1)},
		{"bit of a block", func() (uint64, func([]byte)) { return bit(sb.bbm, sb.dataEnd) },
			fmt.Sprintf("block %d: marked in use, but outside of the data", sb.dataEnd)},
		{"pointer", func() (uint64, func([]byte)) { return inodeAt(3, 136+8*13, sb.dataEnd) },
			fmt.Sprintf("%d is no data block", sb.dataEnd)},
		{"bit of an inode", func() (uint64, func([]byte)) { return bit(sb.ibm, sb.inodeEnd) },
			fmt.Sprintf("inodes %d to %d do not exist, but are marked", sb.inodeEnd, sb.inodeEnd)},
		{"name of an inode", func() (uint64, func([]byte)) { return name(sb.inodeEnd) },
			fmt.Sprintf("inode number %d is not possible", sb.inodeEnd)},
		{"name of the last inode", func() (uint64, func([]byte)) { return name(sb.inodeEnd - 1) },
			fmt.Sprintf("it names inode %d, which is free", sb.inodeEnd-1)},
	} {
		d := newOverlay(whole)
		a, edit := c.at()
		l := sb.layout(d)
		b := get(t, l, a)
		edit(b)
		commit(t, l, sb, map[uint64][]byte{a: b})
		found(t, c.what, d, c.want)
	}
}

// found checks that the check of the volume on d has a problem with the given text.
func found(t *testing.T, what string, d disk.Disk, text string) {
	t.Helper()
	r, err := Volume(d, Options{})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !slices.ContainsFunc(r.Problems, func(p Problem) bool { return strings.Contains(p.String(), text) }) {
		t.Errorf("%s: want %q in %v", what, text, r.Problems)
	}
}

// TestNotYetInodes: inodes that are not the volume's yet, though their block is there, are zeros.
func TestNotYetInodes(t *testing.T) {
	d := growing(t, farBelow)
	b := get(t, d, 0)
	sb := superOf(t, d)
	binary.LittleEndian.PutUint64(b[200:], sb.inodeEnd-1) // as if there were one less, whose block is there
	sealTo(t, d, b, 0, sb.room-1)
	mustClean(t, d)
	l := sb.layout(d)
	a := sb.itab + (sb.inodeEnd-1)/inodesBlock
	x := get(t, l, a)
	x[(sb.inodeEnd-1)%inodesBlock*inodeSize+inodeSize-1] = 1
	commit(t, l, sb, map[uint64][]byte{a: x})
	found(t, "an inode", d, fmt.Sprintf("inode %d is not zeros, but the volume has none from %d on",
		sb.inodeEnd-1, sb.inodeEnd-1))
}

// sealTo writes a superblock with its checksum.
func sealTo(t testing.TB, d disk.Disk, b []byte, at ...uint64) {
	t.Helper()
	sum := sha256.Sum256(b[:superSum])
	copy(b[superSum:], sum[:])
	for _, a := range at {
		put(t, d, a, b)
	}
}

// TestExtentFields: a superblock that says something impossible of what is there is not used.
func TestExtentFields(t *testing.T) {
	whole := growing(t, farBelow)
	if _, err := fs.Grow(whole, fs.GrowOptions{}); err != nil { // so that there are more runs
		t.Fatal(err)
	}
	sb := superOf(t, whole)
	last := len(sb.runs) - 1
	run := func(i int) int { return atRuns + runBytes*i }
	data := slices.IndexFunc(sb.runs, func(r extentRun) bool { return r.from <= sb.data0 && sb.data0 < r.from+r.n })
	for _, c := range []struct {
		what string
		at   int
		x    uint64
		want string
	}{
		{"version", 8, wholeVersion, "format version 4 with"},
		{"no runs", 208, 0, "format version 5 with 0 runs"},
		{"too many runs", 208, maxRuns + 1, "241 runs of blocks are more than"},
		{"a run less", 208, uint64(last), "but its runs and the copy of the superblock have"},
		{"room", 184, sb.room - 1, fmt.Sprintf("the volume uses %d blocks, but its runs", sb.room-1)},
		{"room for all", 184, sb.size, fmt.Sprintf("the volume uses %d blocks, and may have %d", sb.size, sb.size)},
		{"no data", 192, sb.data0, "the data end at block"},
		{"too much data", 192, sb.data1 + 1, "the data end at block"},
		{"data that are not there", 192, sb.dataEnd + 1, fmt.Sprintf("block %d, of the data, is not there", sb.dataEnd)},
		{"no inodes", 200, 16, "the inodes end at 16"},
		{"too many inodes", 200, sb.ninode + 1, "the inodes end at"},
		{"inodes that are not there", 200, (sb.inodeEnd+15)/16*16 + 1, "of the inodes, is not there"},
		{"the first block", run(0), 1, "the first run begins with block 1"},
		{"an empty run", run(last) + 8, 0, "does not lie before the copy"},
		{"a long run", run(last) + 8, 1 << 63, "does not lie before the copy"},
		{"a run far away", run(last), 1 << 63, "does not lie before the copy"},
		{"a run with the copy", run(last), sb.size - sb.runs[last].n, "does not lie before the copy"},
		{"a run twice", run(last), sb.runs[data].from, "is in two runs"},
		{"an overlap of one block", run(data), sb.runs[data].from - 1, "is in two runs"},
		{"data gone", run(data), sb.runs[data].from + 1, "is not there"},
	} {
		d := newOverlay(whole)
		b := get(t, d, 0)
		binary.LittleEndian.PutUint64(b[c.at:], c.x)
		sealTo(t, d, b, 0, sb.room-1)
		if _, err := parseSuper(b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.what, err, c.want)
		}
		found(t, c.what, d, "block 0: the superblock cannot be used")
	}
}

// TestExtentNeeds: nothing that is there for a reason may be missing, and what is in no run is not needed.
func TestExtentNeeds(t *testing.T) {
	sb := superOf(t, growing(t, farBelow))
	all := slices.Clone(sb.sorted)
	for i, r := range all {
		for _, cut := range []extentRun{{r.from, r.at, r.n - 1}, {r.from + 1, r.at + 1, r.n - 1}} {
			sb.sorted = slices.Clone(all)
			if sb.sorted[i] = cut; cut.n == 0 {
				sb.sorted = slices.Delete(sb.sorted, i, i+1)
			}
			if a := r.from + r.n - 1; i > 0 && i < len(all)-1 && sb.complete() == nil {
				t.Errorf("blocks %d to %d: one is missing, and nobody needs it", r.from, a)
			}
		}
	}
	if sb.sorted = all; sb.complete() != nil {
		t.Error(sb.complete())
	}
	for _, other := range []uint64{sb.pages - 1, sb.pages - 2} {
		if sb.pages = other; sb.complete() == nil || !strings.Contains(sb.complete().Error(), "a tree of codes of") {
			t.Errorf("a tree of %d pages: %v", other, sb.complete())
		}
	}
}

// TestGrowingSuperblocks: either superblock is enough, and both are looked at where the device has them.
func TestGrowingSuperblocks(t *testing.T) {
	whole := growing(t, farBelow)
	sb := superOf(t, whole)
	for at, want := range map[uint64]string{
		0:           "superblock: block 0: the superblock cannot be used",
		sb.room - 1: fmt.Sprintf("superblock: block %d: the copy of the superblock cannot be used", sb.size-1),
	} {
		d := newOverlay(whole)
		put(t, d, at, make([]byte, disk.BlockSize))
		r, err := Volume(d, Options{Data: true})
		if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), want) || r.Others != 10 {
			t.Errorf("without block %d: %v, %+v", at, err, r)
		}
	}
	short := disk.NewPrefix(whole, sb.room-1)
	found(t, "a device that is too short", short, fmt.Sprintf("the volume has %d blocks, but the device only %d",
		sb.room, sb.room-1))
}

// TestGrowingRandomDamage: whatever the superblock says of what is there, the check ends, and without a panic.
func TestGrowingRandomDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 0))
	whole := growing(t, farBelow)
	sb := superOf(t, whole)
	for range 200 {
		d := newOverlay(whole)
		b := get(t, d, 0)
		for range 1 + r.IntN(3) {
			off := []int{24, 48, 80, 88, 168, 184, 192, 200, 208, atRuns + 8*r.IntN(2*len(sb.runs))}[r.IntN(10)]
			x := r.Uint64() >> r.IntN(64)
			if r.IntN(2) == 0 {
				x = u64(b, off) + r.Uint64N(5) - 2
			}
			binary.LittleEndian.PutUint64(b[off:], x)
		}
		sealTo(t, d, b, 0, sb.room-1)
		_, _ = Volume(d, Options{MaxProblems: 20, Data: true})
	}
}

// TestDumpGrowing: a dump says how much there is, and where.
func TestDumpGrowing(t *testing.T) {
	d := growing(t, farBelow)
	sb := superOf(t, d)
	p, err := NewDumper(d)
	if err != nil {
		t.Fatal(err)
	}
	_, data0, _ := sb.locate(sb.data0)
	for _, c := range []struct {
		show func(w io.Writer) error
		want []string
	}{
		{p.Super, []string{
			fmt.Sprintf("size        %d blocks", sb.room), fmt.Sprintf("inodes      %d\n", sb.inodeEnd),
			fmt.Sprintf("most        %d blocks, %d inodes", sb.size, sb.ninode),
			fmt.Sprintf("data        so far before block %d\n", sb.dataEnd),
			fmt.Sprintf("runs        %d of 240", len(sb.runs)),
			fmt.Sprintf("blocks %d to %d, from block %d of the device on", sb.size-1, sb.size-1, sb.room-1),
		}},
		{func(w io.Writer) error { return p.Block(w, sb.data0) }, []string{
			fmt.Sprintf("block       %d, data\n", sb.data0), fmt.Sprintf("device      block %d\n", data0),
			"contents    read\n"}},
		{func(w io.Writer) error { return p.Block(w, sb.dataEnd) }, []string{
			"none there yet", "device      not there yet", "contents    read, zeros\n"}},
		{func(w io.Writer) error { return p.Block(w, sb.size-1) }, []string{
			"copy of the superblock", fmt.Sprintf("device      block %d\n", sb.room-1)}},
	} {
		var b bytes.Buffer
		if err := c.show(&b); err != nil {
			t.Error(err)
		}
		for _, x := range c.want {
			if !strings.Contains(b.String(), x) {
				t.Errorf("%q is not in\n%s", x, b.String())
			}
		}
	}
	if p.Block(io.Discard, sb.size) == nil {
		t.Error("no error for what is not there")
	}
	if err := p.Inode(io.Discard, sb.inodeEnd); err == nil {
		t.Error("an inode that is not there yet is shown")
	}
	whole := newSample(t)
	img := whole.image()
	if p, err = NewDumper(img); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	damaged := get(t, img, whole.geo.InodeTable())
	damaged[0] ^= 1
	put(t, img, whole.geo.InodeTable(), damaged)
	err = p.Block(&b, whole.geo.InodeTable())
	if err != nil || !strings.Contains(b.String(), "not what was last written") {
		t.Error(err, b.String())
	}
}
