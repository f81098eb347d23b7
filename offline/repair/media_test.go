package repair

import (
	"bytes"
	"flag"
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/internal/layout"
	"tansy/internal/volumeend"
	"tansy/offline/check"
	"tansy/test/kit/replay"
)

var damages = flag.Int("damages", 110, "how many damages TestMedia tries")

// A file is what a user sees of one.
type file struct {
	ty       fs.Type
	mode     uint32
	uid, gid uint32
	size     uint64
	contents uint64 // their hash in this process, if any
}

// A sample is a small volume with something of everything, its log empty.
type sample struct {
	d      *disk.Mem
	blocks map[uint64][]byte // that are not zeros
	before map[uint64][]byte // the same, some time earlier
	files  map[uint64]file   // by inode
	owner  map[uint64]uint64 // the inode that has a data or indirect block
	v      *volume
	at     disk.Locate // where the blocks of its layout lie
	places [][]uint64  // blocks of the layout by what they are for
}

func block(t testing.TB, d disk.Disk, a uint64) []byte {
	t.Helper()
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t testing.TB, d disk.Disk, a uint64, b []byte) {
	t.Helper()
	if err := d.WriteAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
}

// contents is the blocks of d that are not zeros.
func contents(t testing.TB, d disk.Disk) map[uint64][]byte {
	t.Helper()
	m := map[uint64][]byte{}
	for a := uint64(0); a < d.Size(); a++ {
		next, err := disk.NextData(d, a)
		if err != nil {
			t.Fatal(err)
		}
		if a = next; a < d.Size() {
			if b := block(t, d, a); !zeros(b) {
				m[a] = b
			}
		}
	}
	return m
}

// device is a new device with the given blocks.
func device(t testing.TB, size uint64, blocks map[uint64][]byte) *disk.Mem {
	t.Helper()
	d := disk.NewMem(size * disk.BlockSize)
	for a, b := range blocks {
		put(t, d, a, b)
	}
	return d
}

// geometryOf reads where the regions of a volume lie.
func geometryOf(t testing.TB, d disk.Disk) geometry {
	t.Helper()
	s, _, err := superblocks(d)
	if err != nil {
		t.Fatal(err)
	}
	return geometryIn(s)
}

// layoutOf is the layout of the volume on d.
func layoutOf(t testing.TB, d disk.Disk) disk.Disk {
	t.Helper()
	s, _, err := superblocks(volumeend.Bound(d, nil))
	if err != nil {
		t.Fatal(err)
	}
	return volumeend.Layout(d, s)
}

// inUse is the inodes of a sound volume, but the reserved one.
func (v *volume) inUse() (inos []uint64) {
	for ino := uint64(1); ino < v.inodeEnd; ino++ {
		if ino != orphansIno && v.inode(ino).w(layout.Type) != 0 {
			inos = append(inos, ino)
		}
	}
	return inos
}

// refused is the hash of contents that cannot be read.
const refused = 1

// hashed is the seed of all hashes.
var hashed = maphash.MakeSeed()

// filesOf reads all files of a volume through the server's code, by inode.
func filesOf(t testing.TB, d disk.Disk) map[uint64]file {
	t.Helper()
	f, err := fs.Open(d, fs.Options{ReadOnly: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	v := newVolume(layoutOf(t, d), geometryOf(t, d))
	files := map[uint64]file{}
	for _, ino := range v.inUse() {
		h := fs.Handle{Ino: ino, Gen: v.inode(ino).q(layout.Generation)}
		a, err := f.Getattr(h)
		if err != nil {
			continue // removed
		}
		x := file{ty: a.Type, mode: a.Mode, uid: a.UID, gid: a.GID, size: a.Size}
		var sum maphash.Hash // many times as quick as one that must stand attacks
		sum.SetSeed(hashed)
		switch a.Type {
		case fs.Regular:
			for off := uint64(0); off < a.Size; {
				data, _, _, err := f.Read(&fs.Cred{}, h, off, 1<<16)
				if err == fs.ErrIO {
					x.contents = refused
					break
				} else if err != nil {
					t.Fatalf("inode %d: %v", ino, err)
				}
				sum.Write(data)
				off += uint64(len(data))
			}
		case fs.Symlink:
			target, _, err := f.Readlink(&fs.Cred{}, h)
			if err == fs.ErrIO {
				x.contents = refused
				break
			} else if err != nil {
				t.Fatalf("inode %d: %v", ino, err)
			}
			sum.Write(target)
		case fs.Directory:
			x.size = 0 // may shrink when entries go
		}
		if x.contents != refused {
			x.contents = sum.Sum64()
		}
		files[ino] = x
	}
	return files
}

// newSample makes a sample of a volume that can grow up to so many bytes; 0: it cannot.
func newSample(t testing.TB, seed, most uint64) *sample {
	t.Helper()
	d := disk.NewMem(12_000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, LogBytes: 5 << 20, Inodes: 2000, MaxBytes: most}); err != nil {
		t.Fatal(err)
	}
	s := &sample{d: d}
	for round := range 2 {
		s.before = s.blocks
		v, err := fs.Open(d, fs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		populate(t, v, rand.New(rand.NewPCG(seed, uint64(round))), round)
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		s.blocks = contents(t, d)
	}
	if rep, err := check.Volume(d, check.Options{}); err != nil || !rep.Clean() {
		t.Fatal(rep.Problems, err)
	}
	s.files = filesOf(t, d)
	super, _, err := superblocks(d)
	if err != nil {
		t.Fatal(err)
	}
	l := volumeend.Layout(d, super)
	s.at = volumeend.Locate(super)
	s.v = newVolume(l, geometryOf(t, d))
	s.owner = map[uint64]uint64{}
	var indirect, dirs, links, data, maps1, maps2, table []uint64
	for _, ino := range s.v.inUse() {
		n := s.v.inode(ino)
		s.v.walk(n, func(_, b uint64) {
			s.owner[b] = ino
			switch n.w(layout.Type) {
			case typeDir:
				dirs = append(dirs, b)
			case typeLnk:
				links = append(links, b)
			default:
				data = append(data, b)
			}
		})
		var down func(b uint64, level int)
		down = func(b uint64, level int) {
			if b == 0 || level == 0 {
				return
			}
			s.owner[b] = ino
			indirect = append(indirect, b)
			for i := range layout.Fanout {
				down(layout.Uint64(s.v.peek(b), 8*i), level-1)
			}
		}
		pointers(func(off, level int, _ uint64) { down(n.q(off), level) })
	}
	p := journalParams(t, d)
	var pages []uint64
	for lo, hi := range disk.There(l, 1, s.v.data0) {
		for a := lo; a < hi; a++ {
			switch {
			case zeros(block(t, l, a)) || p.Start <= a && a < s.v.ibm:
			case a < p.Start:
				pages = append(pages, a)
			case a < s.v.bbm:
				maps1 = append(maps1, a)
			case a < s.v.itab:
				maps2 = append(maps2, a)
			default:
				table = append(table, a)
			}
		}
	}
	s.places = [][]uint64{{0}, {l.Size() - 1}, {p.Start}, {s.v.ibm - 1}, pages, maps1, maps2, table, indirect,
		dirs, links, data}
	for i, p := range s.places {
		if len(p) == 0 {
			t.Fatalf("there are no blocks of place %d", i)
		}
	}
	return s
}

func populate(t testing.TB, v *fs.FS, r *rand.Rand, round int) {
	c := &fs.Cred{}
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		dir, err := v.Mkdir(c, v.Root(), fmt.Appendf(nil, "dir %d.%d", round, i), &fs.SetAttr{})
		try(err)
		for k := range 60 {
			name := fmt.Appendf(nil, "%x %d", r.Uint64(), k)
			if k%10 == 0 {
				name = append(name, bytes.Repeat([]byte{'l'}, 100)...)
			}
			switch k % 6 {
			case 0:
				_, err := v.Symlink(c, dir.Handle, name, &fs.SetAttr{}, bytes.Repeat([]byte("to/"), 1+r.IntN(300)))
				try(err)
			case 1:
				sub, err := v.Mkdir(c, dir.Handle, name, &fs.SetAttr{})
				try(err)
				n, err := v.Create(c, sub.Handle, name, fs.Guarded, &fs.SetAttr{}, 0)
				try(err)
				_, _, err = v.Link(c, n.Handle, dir.Handle, append([]byte("link "), name...))
				try(err)
			case 2:
				_, err := v.Mknod(c, dir.Handle, name, fs.FIFO, &fs.SetAttr{}, 0, 0)
				try(err)
			default:
				n, err := v.Create(c, dir.Handle, name, fs.Guarded, &fs.SetAttr{}, 0)
				try(err)
				data := make([]byte, 1+r.IntN(20_000)*(k%2))
				for j := range data {
					data[j] = byte(j/1000 + k)
				}
				off := uint64(r.IntN(30)) * 4096
				if k%15 == 0 {
					off += 3000 * 4096
				}
				_, _, _, err = v.Write(c, n.Handle, off, data, fs.FileSync)
				try(err)
			}
		}
	}
}

// damage changes blocks of a copy of the sample, and says which.
func (s *sample) damage(t testing.TB, r *rand.Rand, place, kind int) (d *disk.Mem, hit []uint64, what string) {
	d = device(t, s.d.Size(), s.blocks)
	l := disk.NewPieced(d, s.v.d.Size(), s.at)
	blocks := s.places[place]
	a := blocks[r.IntN(len(blocks))]
	b := block(t, l, a)
	hit = []uint64{a}
	switch kind {
	case 0:
		bit := r.IntN(8 * len(b))
		b[bit/8] ^= 1 << (bit % 8)
		what = fmt.Sprintf("bit %d of block %d", bit, a)
	case 1:
		clear(b)
		what = fmt.Sprintf("block %d zeroed", a)
	case 2:
		other := s.places[r.IntN(len(s.places))]
		if r.IntN(2) == 0 {
			other = blocks
		}
		x := other[r.IntN(len(other))]
		if last := l.Size() - 1; a == 0 || a == last || x == 0 || x == last {
			x = a // both superblocks may be hit; that has a test of its own
		}
		put(t, l, x, b)
		b = block(t, s.v.d, x)
		hit = append(hit, x)
		what = fmt.Sprintf("blocks %d and %d exchanged", a, x)
	case 3:
		if _, at, _ := s.at(a); s.before[at] != nil {
			old := s.before[at]
			b = slices.Clone(old)
		}
		what = fmt.Sprintf("old contents of block %d", a)
	case 4:
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		what = fmt.Sprintf("block %d random", a)
	}
	put(t, l, a, b)
	return d, hit, what
}

// hitBy is the inodes whose inode or blocks are among the given ones.
func (s *sample) hitBy(blocks []uint64) map[uint64]bool {
	hit := map[uint64]bool{}
	for _, a := range blocks {
		if a >= s.v.itab && a < s.v.data0 {
			for i := range uint64(layout.InodesBlock) {
				hit[(a-s.v.itab)*layout.InodesBlock+i] = true
			}
		}
		hit[s.owner[a]] = true
	}
	return hit
}

func same(t testing.TB, d disk.Disk, blocks map[uint64][]byte) {
	t.Helper()
	now := contents(t, d)
	for _, a := range slices.Sorted(maps.Keys(blocks)) {
		if !bytes.Equal(now[a], blocks[a]) {
			t.Errorf("block %d differs", a)
		}
		delete(now, a)
	}
	for a := range now {
		t.Errorf("block %d is not zeros", a)
	}
}

// soundBut is the problems of a report but that contents of files are not what was last written, which a repair leaves.
func soundBut(rep check.Report) (left []check.Problem) {
	for _, x := range rep.Problems {
		if !strings.HasSuffix(x.Text, "not what was last written there") {
			left = append(left, x)
		}
	}
	return left
}

// TestMedia damages blocks of all kinds. The repair leaves a volume that check finds nothing wrong with, files that
// were not hit are what they were, a second repair finds nothing, and undoing it gives back each byte. What is left is
// contents of files that were hit, which are refused until a repair is told to accept them.
func TestMedia(t *testing.T) {
	t.Run("whole", func(t *testing.T) { testMedia(t, 0) })
	t.Run("growing", func(t *testing.T) { testMedia(t, farBelow) })
}

func testMedia(t *testing.T, most uint64) {
	seed := replay.Seed(t)
	s := newSample(t, seed, most)
	count := *damages
	if testing.Short() {
		count = min(count, 20)
	}
	noticed, left := 0, 0
	for n := range count {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		d, hit, what := s.damage(t, r, n%len(s.places), n/len(s.places)%5)
		damaged := contents(t, d)
		p, err := NewPlan(d, Options{})
		if err != nil {
			t.Fatalf("damage %d, %s: %v", n, what, err)
		}
		same(t, d, damaged)
		if len(p.Actions) == 0 {
			if len(soundBut(p.Before)) > 0 {
				t.Fatalf("damage %d, %s: nothing is done about %v", n, what, p.Before.Problems)
			}
			if !p.Before.Clean() {
				left++
				s.accept(t, d, hit, what)
				same(t, d, damaged)
			}
			continue
		}
		noticed++
		undo := filepath.Join(t.TempDir(), "undo")
		after, err := p.Apply(d, undo)
		if err != nil {
			t.Fatalf("damage %d, %s: %v", n, what, err)
		}
		tell := func() string {
			var lines []string
			for _, x := range p.Before.Problems {
				lines = append(lines, "before: "+x.String())
			}
			for _, x := range p.Actions {
				lines = append(lines, "action: "+x.String())
			}
			for _, x := range after.Problems {
				lines = append(lines, "after: "+x.String())
			}
			return strings.Join(lines, "\n")
		}
		if len(soundBut(after)) > 0 || len(soundBut(p.After)) > 0 {
			t.Fatalf("damage %d, %s: not repaired\n%s", n, what, tell())
		}
		if p2, err := NewPlan(d, Options{}); err != nil || len(p2.Actions) > 0 {
			t.Fatalf("damage %d, %s: a second repair does %v, %v", n, what, p2.Actions, err)
		}
		now := filesOf(t, d)
		skip := s.hitBy(hit)
		for ino, f := range s.files {
			if !skip[ino] && now[ino] != f {
				t.Fatalf("damage %d, %s: inode %d was not hit, but is %+v, was %+v\n%s", n, what, ino, now[ino], f, tell())
			}
		}
		if !after.Clean() {
			left++
			s.accept(t, d, hit, what)
		}
		u, err := LoadUndo(undo)
		if err == nil {
			err = u.Apply(d)
		}
		if err != nil {
			t.Fatalf("damage %d, %s: undo: %v", n, what, err)
		}
		same(t, d, damaged)
		if t.Failed() {
			t.Fatalf("damage %d, %s: undo does not give back what was\n%s", n, what, tell())
		}
	}
	t.Logf("%d of %d damages were noticed and repaired; of %d the contents of a file were left", noticed, count, left)
}

// accept has a repair take damaged contents of files, after which all is clean and can be read, and undoes it.
func (s *sample) accept(t *testing.T, d disk.Disk, hit []uint64, what string) {
	t.Helper()
	was := contents(t, d)
	files := filesOf(t, d)
	p, err := NewPlan(d, Options{AcceptDamaged: true})
	if err != nil {
		t.Fatal(err)
	}
	undo := filepath.Join(t.TempDir(), "undo")
	if after, err := p.Apply(d, undo); err != nil || !after.Clean() || !p.After.Clean() {
		t.Fatalf("%s: accepted: %v, %v", what, after.Problems, err)
	}
	now, skip := filesOf(t, d), s.hitBy(hit)
	for ino, f := range now {
		if f.contents == refused || !skip[ino] && f != files[ino] {
			t.Fatalf("%s: accepted: inode %d is %+v", what, ino, f)
		}
	}
	u, err := LoadUndo(undo)
	if err == nil {
		err = u.Apply(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	same(t, d, was)
}

// Of many damages at once, whatever they are, a repair makes a volume that check finds nothing wrong with, or says what
// is left; and it can be undone.
func TestManyDamages(t *testing.T) {
	seed := replay.Seed(t)
	s := newSample(t, seed, 0)
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	for n := range rounds {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		d := device(t, s.d.Size(), s.blocks)
		for range 2 + r.IntN(12) {
			place := 2 + r.IntN(len(s.places)-2) // one superblock is needed
			one, hit, _ := s.damage(t, r, place, r.IntN(5))
			for _, a := range hit {
				if a != 0 && a != s.d.Size()-1 {
					put(t, d, a, block(t, one, a))
				}
			}
		}
		damaged := contents(t, d)
		p, err := NewPlan(d, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", n, err)
		}
		same(t, d, damaged)
		if p.Before.Clean() {
			continue
		}
		undo := filepath.Join(t.TempDir(), "undo")
		after, err := p.Apply(d, undo)
		if err != nil {
			t.Fatalf("round %d: %v", n, err)
		}
		if left := soundBut(after); len(left) > 0 {
			t.Errorf("round %d: left: %v", n, left)
		}
		if p2, err := NewPlan(d, Options{AcceptDamaged: true}); err != nil || !p2.After.Clean() {
			t.Errorf("round %d: accepted: left: %v, %v", n, p2.After.Problems, err)
		}
		u, err := LoadUndo(undo)
		if err == nil {
			err = u.Apply(d)
		}
		if err != nil {
			t.Fatalf("round %d: undo: %v", n, err)
		}
		same(t, d, damaged)
	}
}

// TestZeroed: a block of inodes, or of a bitmap, that is zeros now is not passed over, although the device knows that
// it is zeros.
func TestZeroed(t *testing.T) {
	seed, step := replay.Seed(t), uint64(1)
	if testing.Short() {
		step = 4
	}
	s := newSample(t, seed, 0)
	for a := s.v.ibm + seed%step; a < s.v.data0; a += step {
		if s.blocks[a] == nil || a == s.v.itab { // the root's
			continue
		}
		rest := maps.Clone(s.blocks)
		delete(rest, a)
		d := device(t, s.d.Size(), rest)
		acts := repaired(t, d)
		if !has(acts, "not what was last written there; made sound") {
			t.Errorf("block %d: %v", a, acts)
		}
	}
}
