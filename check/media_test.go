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
	"tansy/fs/fstest"
	"tansy/fs/model"
	"tansy/internal/replay"
)

var damages = flag.Int("damages", 450, "how many damages TestMedia tries; docs/damage.md has 10000")

// A kind of damage that a medium may do to a block.
type kind struct {
	name string
	// do damages block a. false: it would change nothing, or cannot be done to a.
	do func(m *media, d *overlay, a uint64, r *rand.Rand) bool
}

var kinds = []kind{
	{"bit flip", func(m *media, d *overlay, a uint64, r *rand.Rand) bool {
		b := bytes.Clone(m.now[a])
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		d.m[a] = b
		return true
	}},
	{"zeroed", func(m *media, d *overlay, a uint64, _ *rand.Rand) bool {
		d.m[a] = make([]byte, disk.BlockSize)
		return !zeros(m.now[a])
	}},
	{"exchanged", func(m *media, d *overlay, a uint64, r *rand.Rand) bool {
		b := m.any[r.IntN(len(m.any))] // of any kind, but no contents of files
		if r.IntN(2) == 0 {
			b = pick(m.places[m.placeOf[a]].blocks, r) // of the same kind
		}
		d.m[a], d.m[b] = m.now[b], m.now[a]
		return !bytes.Equal(m.now[a], m.now[b])
	}},
	{"stale", func(m *media, d *overlay, a uint64, r *rand.Rand) bool {
		old := pick(m.before, r)[a]
		d.m[a] = old
		return old != nil && !zeros(old) && !bytes.Equal(old, m.now[a])
	}},
	{"unreadable", func(_ *media, d *overlay, a uint64, _ *rand.Rand) bool {
		d.Disk = badBlocks(d.Disk, a)
		return true
	}},
}

// A damagePlace is what blocks are for, and the kinds of damage to it that must not go unnoticed.
type damagePlace struct {
	name   string
	must   string // names of kinds, or "all"
	blocks []uint64
}

const (
	inSuper = iota
	inCopy
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
	any     []uint64 // metadata of all kinds
}

func pick[T any](s []T, r *rand.Rand) T { return s[r.IntN(len(s))] }

// settled is a copy of d with everything at home.
func settled(t testing.TB, d *disk.Mem) *disk.Mem {
	t.Helper()
	c := disk.NewMem(d.Size())
	for a, err := d.NextData(0); a < d.Size(); a, err = d.NextData(a + 1) {
		if err != nil {
			t.Fatal(err)
		}
		put(t, c, a, get(t, d, a))
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
	d := disk.NewMem(80_000)
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
				data := make([]byte, 1+r.IntN(400_000))
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
		_, err = f.Symlink(c, dir.Handle, link, &fs.SetAttr{}, bytes.Repeat([]byte{byte('a' + r.IntN(26)), '/'}, 1+r.IntN(1000)))
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
		inSuper:     {name: "superblock", must: "all"},
		inCopy:      {name: "its copy", must: "all"},
		inInodeMap:  {name: "inode bitmap", must: "all"},
		inBlockMap:  {name: "block bitmap", must: "all"},
		inTable:     {name: "inodes", must: "zeroed, unreadable"},
		inIndirect:  {name: "indirect block", must: "bit flip, zeroed, unreadable"},
		inDirectory: {name: "directory", must: "zeroed, unreadable"},
		inSymlink:   {name: "symbolic link", must: "unreadable"},
		inData:      {name: "file data"},
	}
	m.placeOf = map[uint64]int{}
	in := func(place int, a uint64) {
		m.places[place].blocks = append(m.places[place].blocks, a)
		m.placeOf[a] = place
		if place != inData {
			m.any = append(m.any, a)
		}
	}
	in(inSuper, 0)
	in(inCopy, g.data1)
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

// What the check notices of what a medium may do to a block: a table of kinds and
// places, and some of it must not be missed. More is tried with -damages.
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
		count = min(count, 90)
	}
	for n := range count {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		place, k := n%len(m.places), n/len(m.places)%len(kinds)
		p := &m.places[place]
		var a uint64
		d := &overlay{m.d, map[uint64][]byte{}}
		done := false
		for try := 0; try < 50 && !done; try++ { // not every block can be damaged in each way
			a, d = pick(p.blocks, r), &overlay{m.d, map[uint64][]byte{}}
			done = kinds[k].do(m, d, a, r)
		}
		if !done {
			continue
		}
		rep, err := Volume(d, Options{MaxProblems: 20})
		c := &table[place][k]
		c.tried++
		if err == nil && rep.Clean() {
			if p.must == "all" || slices.Contains(strings.Split(p.must, ", "), kinds[k].name) {
				t.Errorf("damage %d is not noticed: %s of block %d (%s)", n, kinds[k].name, a, p.name)
			}
			if place != inData && count <= 1000 {
				t.Logf("damage %d is not noticed: %s of block %d (%s)", n, kinds[k].name, a, p.name)
			}
			continue
		}
		c.noticed++
	}
	head := fmt.Sprintf("| %-14s |", "noticed")
	for _, k := range kinds {
		head += fmt.Sprintf(" %11s |", k.name)
	}
	lines := []string{head, "|---|" + strings.Repeat("---|", len(kinds))}
	var all cell
	for i, p := range m.places {
		line := fmt.Sprintf("| %-14s |", p.name)
		for _, c := range table[i] {
			s := "-"
			if c.tried > 0 {
				s = fmt.Sprintf("%d of %d", c.noticed, c.tried)
			}
			line += fmt.Sprintf(" %11s |", s)
			if i != inData {
				all.tried, all.noticed = all.tried+c.tried, all.noticed+c.noticed
			}
		}
		lines = append(lines, line)
	}
	t.Logf("\n%s\nof %d damages of metadata %d were noticed", strings.Join(lines, "\n"), all.tried, all.noticed)
}
