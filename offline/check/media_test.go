package check

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/fs/model"
	"tansy/test/kit/fstest"
	"tansy/test/kit/replay"
)

var damages = flag.Int("damages", 560, "how many damages TestMedia tries; docs/guide/damage.md has 10000")

// A kind of damage that a medium may do to a block.
type kind struct {
	name string
	// do damages block a; also is another one that is hit, or a. false: it would change nothing, or cannot be done to
	// a.
	do func(m *media, d *overlay, a uint64, r *rand.Rand) (also uint64, ok bool)
}

var kinds = []kind{
	{"bit flip", func(m *media, d *overlay, a uint64, r *rand.Rand) (uint64, bool) {
		b := bytes.Clone(m.now[a])
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		d.m[a] = b
		return a, true
	}},
	{"zeroed", func(m *media, d *overlay, a uint64, _ *rand.Rand) (uint64, bool) {
		d.m[a] = make([]byte, disk.BlockSize)
		return a, !zeros(m.now[a])
	}},
	{"exchanged", func(m *media, d *overlay, a uint64, r *rand.Rand) (uint64, bool) {
		b := m.other(a, r)
		d.m[a], d.m[b] = m.now[b], m.now[a]
		return b, !bytes.Equal(m.now[a], m.now[b])
	}},
	{"misdirected", func(m *media, d *overlay, a uint64, r *rand.Rand) (uint64, bool) {
		b := m.other(a, r) // what was written there last is in a now
		d.m[a] = m.now[b]
		if old := m.last(b); old != nil {
			d.m[b] = old
		}
		return b, !bytes.Equal(m.now[a], m.now[b])
	}},
	{"lost write", func(m *media, d *overlay, a uint64, _ *rand.Rand) (uint64, bool) {
		d.m[a] = m.last(a)
		return a, d.m[a] != nil
	}},
	{"stale", func(m *media, d *overlay, a uint64, r *rand.Rand) (uint64, bool) {
		old := pick(m.before, r)[a]
		d.m[a] = old
		return a, old != nil && !bytes.Equal(old, m.now[a])
	}},
	{"unreadable", func(_ *media, d *overlay, a uint64, _ *rand.Rand) (uint64, bool) {
		d.Disk = badBlocks(d.Disk, a)
		return a, true
	}},
}

// A damagePlace is what blocks are for.
type damagePlace struct {
	name   string
	files  bool // they belong to files
	blocks []uint64
}

const (
	inSuper = iota
	inCopy
	inTree
	inInodeMap
	inBlockMap
	inTable
	inIndirect
	inDirectory
	inSymlink
	inData
)

// media is a volume to be damaged, with something of everything.
type media struct {
	d       disk.Disk
	now     map[uint64][]byte   // by block
	before  []map[uint64][]byte // the same blocks, at earlier times
	places  []damagePlace
	placeOf map[uint64]int
	any     []uint64 // all of them
}

// other is a block to be mistaken for a, often one of the same kind.
func (m *media) other(a uint64, r *rand.Rand) uint64 {
	if r.IntN(2) == 0 {
		return pick(m.places[m.placeOf[a]].blocks, r)
	}
	return pick(m.any, r)
}

// last is what block a held before it was last seen to change, or nil.
func (m *media) last(a uint64) []byte {
	for i := len(m.before) - 1; i >= 0; i-- {
		if old := m.before[i][a]; old != nil && !bytes.Equal(old, m.now[a]) {
			return old
		}
	}
	return nil
}

func pick[T any](s []T, r *rand.Rand) T { return s[r.IntN(len(s))] }

// settled is a copy of d, of one moment, with everything at home: the server's threads go on when it answers.
func settled(t testing.TB, d *disk.Sim) *disk.Mem {
	t.Helper()
	now := d.Crash(disk.KeepAll)
	c := disk.NewMem(d.Size() * disk.BlockSize)
	for a := range d.Size() {
		if b := get(t, now, a); !zeros(b) {
			put(t, c, a, b)
		}
	}
	v, err := fs.Open(c, fs.Options{})
	if err == nil {
		err = v.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// contents is the blocks of d that are not zeros.
func contents(t testing.TB, d *disk.Mem) map[uint64][]byte {
	m := map[uint64][]byte{}
	for a, err := d.NextData(0); a < d.Size(); a, err = d.NextData(a + 1) {
		if err != nil {
			t.Fatal(err)
		}
		m[a] = get(t, d, a)
	}
	return m
}

// newMedia makes a volume by random operations, and keeps what it was on the way.
func newMedia(t *testing.T, seed uint64) *media {
	d := disk.NewSim(80_000 * disk.BlockSize)
	clock := fstest.NewClock()
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, LogBytes: 8 << 20, Inodes: 40_000, Clock: clock.Now}); err != nil {
		t.Fatal(err)
	}
	v, err := fs.Open(d, fs.Options{Clock: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	oracle := model.New(model.Options{Clock: clock.Now})
	cmp := fstest.New(oracle, v, fstest.Options{Seed: int64(seed), Clock: clock})
	m := &media{}
	for round := range 4 {
		for _, f := range []fs.FileSystem{oracle, v} {
			populate(t, f, rand.New(rand.NewPCG(seed, uint64(round))), round)
		}
		if err := cmp.Run(300); err != nil {
			t.Fatal(err)
		}
		s := settled(t, d)
		mustClean(t, s)
		m.d = s
		m.before = append(m.before, contents(t, s))
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	m.now, m.before = m.before[len(m.before)-1], m.before[:len(m.before)-1]
	m.sort(t)
	return m
}

// populate makes sure that there is something of everything, and that some of it has
// changed since the last round.
func populate(t *testing.T, f fs.FileSystem, r *rand.Rand, round int) {
	c := &fs.Cred{}
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		dir, err := f.Mkdir(c, f.Root(), fmt.Appendf(nil, "dir %d.%d", round, i), &fs.SetAttr{})
		try(err)
		for k := range 60 + r.IntN(200) {
			name := fmt.Appendf(nil, "%x %d", r.Uint64(), k)
			if k%10 == 0 {
				name = append(name, bytes.Repeat([]byte{'l'}, 100)...)
			}
			switch k % 12 {
			case 0:
				_, err := f.Symlink(c, dir.Handle, name, &fs.SetAttr{}, bytes.Repeat([]byte("to/"), 1+r.IntN(300)))
				try(err)
			case 1:
				_, err := f.Mkdir(c, dir.Handle, name, &fs.SetAttr{})
				try(err)
			default:
				n, err := f.Create(c, dir.Handle, name, fs.Guarded, &fs.SetAttr{}, 0)
				try(err)
				if k%4 != 0 {
					break
				}
				data := make([]byte, 1+r.IntN(100_000))
				for j := range data {
					data[j] = byte(j/1000 + k)
				}
				_, _, _, err = f.Write(c, n.Handle, uint64(r.IntN(100))*4096, data, fs.FileSync)
				try(err)
			}
		}
	}
	for k := range 100 { // changes of what was there, in a directory of its own
		dir, err := f.Lookup(c, f.Root(), []byte("changing"))
		if err != nil {
			dir, err = f.Mkdir(c, f.Root(), []byte("changing"), &fs.SetAttr{})
		}
		try(err)
		link := fmt.Appendf(nil, "link %d", k)
		f.Remove(c, dir.Handle, link)
		_, err = f.Symlink(c, dir.Handle, link, &fs.SetAttr{},
			bytes.Repeat([]byte{byte('a' + r.IntN(26)), '/'}, 1+r.IntN(1000)))
		try(err)
		n, err := f.Create(c, dir.Handle, fmt.Appendf(nil, "file %d", k%40), fs.Unchecked, &fs.SetAttr{}, 0)
		try(err)
		data := bytes.Repeat([]byte{byte(r.IntN(256))}, 20_000)
		_, _, _, err = f.Write(c, n.Handle, uint64(r.IntN(1000))*4096, data, fs.FileSync)
		try(err)
	}
}

// sort finds out what each block of the volume is for.
func (m *media) sort(t *testing.T) {
	c := newChecker(Options{MaxProblems: 1})
	if err := c.run(m.d); err != nil || c.rep.Replayed > 0 {
		t.Fatal("the log should be empty: ", c.rep.Replayed, err)
	}
	g := &c.geo
	m.places = []damagePlace{
		inSuper:     {name: "superblock"},
		inCopy:      {name: "its copy"},
		inTree:      {name: "tree of codes"},
		inInodeMap:  {name: "inode bitmap"},
		inBlockMap:  {name: "block bitmap"},
		inTable:     {name: "inodes"},
		inIndirect:  {name: "indirect block", files: true},
		inDirectory: {name: "directory", files: true},
		inSymlink:   {name: "symbolic link", files: true},
		inData:      {name: "file data", files: true},
	}
	m.placeOf = map[uint64]int{}
	in := func(place int, a uint64) {
		m.places[place].blocks = append(m.places[place].blocks, a)
		m.placeOf[a] = place
		m.any = append(m.any, a)
	}
	in(inSuper, 0)
	in(inCopy, g.data1)
	for p := range c.snap.Pages() {
		in(inTree, p.Block)
	}
	for a := g.ibm; a < g.data0; a++ {
		switch {
		case zeros(get(t, m.d, a)):
		case a < g.bbm:
			in(inInodeMap, a)
		case a < g.itab:
			in(inBlockMap, a)
		default:
			in(inTable, a)
		}
	}
	if err := c.tab.each(func(ino uint64, r *record) error {
		n, err := c.readInode(ino)
		if err != nil {
			return err
		}
		return c.walk(&n, func(b uint64, level int, _ uint64) (bool, error) {
			switch {
			case zeros(get(t, m.d, b)):
			case level > 0:
				in(inIndirect, b)
			case n.ty == typeDir:
				in(inDirectory, b)
			case n.ty == typeLnk:
				in(inSymlink, b)
			default:
				in(inData, b)
			}
			return true, nil
		}, nil)
	}); err != nil {
		t.Fatal(err)
	}
	for _, p := range m.places {
		if len(p.blocks) == 0 {
			t.Fatalf("the volume has no blocks of the kind %s", p.name)
		}
	}
}

// What a medium may do to a block in use, whatever it is for, a check of all data notices, and names the block and the
// files. More is tried with -damages.
func TestMedia(t *testing.T) {
	seed := replay.Seed(t)
	m := newMedia(t, seed)
	type cell struct{ tried, noticed int }
	table := make([][]cell, len(m.places))
	for i := range table {
		table[i] = make([]cell, len(kinds))
	}
	count := *damages
	if testing.Short() {
		count = min(count, 14)
	}
	var all cell
	for n := range count {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		place, k := n%len(m.places), n/len(m.places)%len(kinds)
		p := &m.places[place]
		var a, also uint64
		var d *overlay
		done := false
		for try := 0; try < 50 && !done; try++ { // not every block can be damaged in each way
			a, d = pick(p.blocks, r), newOverlay(m.d)
			also, done = kinds[k].do(m, d, a, r)
		}
		if !done {
			continue
		}
		rep, err := Volume(d, Options{MaxProblems: 20, Data: true})
		c := &table[place][k]
		c.tried, all.tried = c.tried+1, all.tried+1
		named := slices.ContainsFunc(rep.Problems, func(x Problem) bool {
			return (x.Block == a || x.Block == also) && (len(x.Files) > 0 || !p.files) ||
				// It hit a page of codes as well, in the first or the second of its places: what is below that cannot
				// be told.
				x.Pass == "codes" && (x.Block == also || x.Block == also-1) && slices.Contains(m.places[inTree].blocks, also)
		})
		if place == inTree { // if a page is lost, the first of its two places is named, and none of the pages below
			named = slices.ContainsFunc(rep.Problems, func(x Problem) bool {
				return x.Pass == "codes" && slices.Contains([]uint64{a, a - 1, also, also - 1}, x.Block)
			})
		}
		if err != nil || !named {
			t.Errorf("damage %d is not noticed, or not named: %s of block %d (%s), and block %d: %v, %v",
				n, kinds[k].name, a, p.name, also, rep.Problems, err)
			continue
		}
		c.noticed, all.noticed = c.noticed+1, all.noticed+1
	}
	head := fmt.Sprintf("| %-14s |", "noticed")
	for _, k := range kinds {
		head += fmt.Sprintf(" %11s |", k.name)
	}
	lines := []string{head, "|---|" + strings.Repeat("--:|", len(kinds))}
	for i, p := range m.places {
		line := fmt.Sprintf("| %-14s |", p.name)
		for _, c := range table[i] {
			s := "-"
			if c.tried > 0 {
				s = fmt.Sprintf("%d of %d", c.noticed, c.tried)
			}
			line += fmt.Sprintf(" %11s |", s)
		}
		lines = append(lines, line)
	}
	t.Logf("\n%s\nof %d damages %d were noticed", strings.Join(lines, "\n"), all.tried, all.noticed)
}
