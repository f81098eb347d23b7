package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/internal/gen/fs/blocks/regions"
	"tansy/internal/gen/fs/directories/directories"
	"tansy/internal/gen/fs/format/inodeformat"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
	"tansy/test/kit/memvolume"
	"tansy/test/kit/replay"
)

// builder makes a volume with the verified code, step by step, and without a log.
type builder struct {
	t   testing.TB
	sys *dtxn.System
	d   *directories.DirFs
	sb  superblockformat.Super
	geo volumegeometry.Geometry

	blocks map[uint64][]byte // of the first image: those that are not zeros
}

func newBuilder(t testing.TB, blocks, ninode uint64) *builder {
	const nd, nr = 4, journal.MinRing
	log := uint64(2 + journal.UnitBlocks*nd + nr)
	pages := uint64(1)
	for ; ; pages++ {
		if p, ok := journal.PagesFor(blocks - 1 - 2*pages - log); p == pages && ok {
			break
		}
	}
	ok, geo := volumegeometry.Layout(blocks, 2*pages+log, ninode, 64)
	if !ok {
		t.Fatal("no layout")
	}
	b := &builder{t: t, geo: geo}
	b.sb = superblockformat.CreateSuper(blocks, nd, nr, geo, 1, 1000, 7, 0, 1, 2, 3, 4, 5, 6, pages,
		superblockformat.All(blocks, geo))
	b.sys = dtxn.NewMem(blocks, dtxn.Layout{Maps: [2]dtxn.Bitmap{
		{Start: geo.BlockBitmap(), First: geo.Data0(), Limit: geo.Data1()},
		{Start: geo.InodeBitmap(), First: 3, Limit: geo.Ninode()},
	}, Places: regions.Of(geo)})
	t.Cleanup(func() { b.sys.Close() })
	b.do(func(tx *dtxn.Txn) bool {
		memvolume.Format(tx, geo, 1000, 7)
		return true
	})
	b.d = memvolume.Dirs(geo)
	return b
}

func (b *builder) do(f func(tx *dtxn.Txn) bool) {
	b.t.Helper()
	if err := b.sys.Run(false, false, func(tx *dtxn.Txn) error {
		if !f(tx) {
			return fmt.Errorf("no success")
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
}

// change changes the attributes of an inode.
func (b *builder) change(ino uint64, f func(ip *dbytes.Bytes)) {
	b.do(func(tx *dtxn.Txn) bool {
		ip := b.d.Fs.GetInode(tx, ino, true)
		f(ip)
		b.d.PutInode(tx, ino, ip)
		return true
	})
}

// make makes a file of type ty in directory dir.
func (b *builder) make(dir uint64, name string, ty uint32) (ino uint64) {
	b.do(func(tx *dtxn.Txn) (ok bool) {
		if ok, ino = b.d.AllocInode(tx, dir, ty); !ok {
			return false
		}
		ip := b.d.Fs.GetInode(tx, ino, true)
		inodeformat.SetNlink(ip, 1)
		if ty == typeDir {
			inodeformat.SetNlink(ip, 2)
			inodeformat.SetParent(ip, dir)
		}
		b.d.PutInode(tx, ino, ip)
		return b.d.Insert(tx, dir, dname(name), ino)
	})
	if ty == typeDir {
		b.change(dir, func(ip *dbytes.Bytes) { inodeformat.SetNlink(ip, inodeformat.GetNlink(ip)+1) })
	}
	return ino
}

func (b *builder) link(dir uint64, name string, ino uint64) {
	b.do(func(tx *dtxn.Txn) bool { return b.d.Insert(tx, dir, dname(name), ino) })
	b.change(ino, func(ip *dbytes.Bytes) { inodeformat.SetNlink(ip, inodeformat.GetNlink(ip)+1) })
}

func (b *builder) write(ino, off uint64, data []byte) {
	b.do(func(tx *dtxn.Txn) bool {
		return b.d.Write(tx, ino, off, &dbytes.Bytes{Data: bytes.Clone(data)}, 0, uint64(len(data)))
	})
}

func (b *builder) cut(ino, size uint64) {
	b.do(func(tx *dtxn.Txn) bool { return b.d.SetSize(tx, ino, size) })
}

// orphan puts a file at the head of the orphan list; unlink removes its only name too.
func (b *builder) orphan(ino uint64) {
	next := uint64(0)
	b.change(orphansIno, func(ip *dbytes.Bytes) { next = inodeformat.GetNext(ip); inodeformat.SetNext(ip, ino) })
	b.change(ino, func(ip *dbytes.Bytes) { inodeformat.SetNext(ip, next); inodeformat.SetFlags(ip, flagOrphan) })
}

func (b *builder) unlink(dir uint64, name string, ino uint64) {
	b.do(func(tx *dtxn.Txn) bool { return b.d.Remove(tx, dir, dname(name)) })
	b.change(ino, func(ip *dbytes.Bytes) { inodeformat.SetNlink(ip, 0) })
	b.cut(ino, 0)
	b.orphan(ino)
}

func dname(s string) *dbytes.Bytes { return &dbytes.Bytes{Data: []byte(s)} }

// image is the volume on a device, as it was at the first call.
func (b *builder) image() *disk.Mem {
	size := b.sb.Size()
	d := disk.NewMem(size * disk.BlockSize)
	if b.blocks != nil {
		for a, s := range b.blocks {
			put(b.t, d, a, s)
		}
		return d
	}
	home := map[uint64][]byte{}
	for a := b.geo.InodeBitmap(); a < size-1; a++ {
		s, err := b.sys.Committed(a)
		if err != nil {
			b.t.Fatal(err)
		}
		if !zeros(s) {
			home[a] = s
		}
	}
	s := superblockformat.Encode(b.sb).Data
	put(b.t, d, 0, s)
	put(b.t, d, size-1, s)
	sb, err := parseSuper(s)
	if err == nil {
		err = journal.Format(d, sb.journal())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	commit(b.t, d, sb, home)
	b.blocks = map[uint64][]byte{}
	for a := range size {
		if s := get(b.t, d, a); !zeros(s) {
			b.blocks[a] = s
		}
	}
	return d
}

// commit changes blocks through the journal, so that their codes fit.
func commit(t testing.TB, d disk.Disk, sb *superblock, blocks map[uint64][]byte) {
	t.Helper()
	j, err := journal.Open(d, sb.journal(), journal.Options{CacheBytes: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ws []journal.Write
	for a, b := range blocks {
		ws = append(ws, journal.Write{Addr: a, Data: b})
	}
	for batch := range slices.Chunk(ws, journal.MaxBlocks) {
		if err := j.Commit(batch, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// log is the block of the log's header.
func (b *builder) log() uint64 { return 1 + 2*b.sb.Pages() }

// tamper makes the changes that edit makes: to home blocks as if the server had made them, so that their codes
// fit and only what they say is wrong; else directly.
func (b *builder) tamper(d disk.Disk, edit func(d disk.Disk)) {
	b.t.Helper()
	o := newOverlay(d)
	edit(o)
	home := map[uint64][]byte{}
	maps.Copy(home, o.m)
	maps.DeleteFunc(home, func(a uint64, _ []byte) bool { return a < b.geo.InodeBitmap() || a >= b.geo.Data1() })
	if len(home) > 0 {
		sb, err := parseSuper(superblockformat.Encode(b.sb).Data)
		if err != nil {
			b.t.Fatal(err)
		}
		commit(b.t, d, sb, home)
	}
	for a, s := range o.m {
		if home[a] == nil {
			put(b.t, d, a, s)
		}
	}
}

func put(t testing.TB, d disk.Disk, a uint64, b []byte) {
	t.Helper()
	if err := d.WriteAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, d disk.Disk, a uint64) []byte {
	t.Helper()
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	return b
}

// sample is a volume with something of everything.
type sample struct {
	*builder
	dir, sub, file, holey, symlink, fifo, removed, shrunk uint64
}

func newSample(t testing.TB) *sample {
	b := newBuilder(t, 5000, 600)
	s := &sample{builder: b}
	s.dir = b.make(rootIno, "dir", typeDir)
	s.sub = b.make(s.dir, "sub", typeDir)
	s.file = b.make(s.sub, "file", typeReg)
	b.write(s.file, 0, bytes.Repeat([]byte("contents"), 10000)) // with an indirect block
	b.write(s.file, 80000, []byte("tail"))
	b.link(rootIno, "hard link", s.file)
	b.link(s.sub, strings.Repeat("long", 50), s.file)
	s.holey = b.make(s.dir, "holey", typeReg)
	for _, k := range []uint64{3, 300, 1000, 300000} { // every depth of the block tree
		b.write(s.holey, k*disk.BlockSize+5, []byte("x"))
	}
	s.symlink = b.make(s.dir, "symlink", typeLnk)
	b.write(s.symlink, 0, []byte("../target"))
	s.fifo = b.make(s.dir, "fifo", 7)
	for i := range 300 {
		b.make(s.dir, fmt.Sprintf("f%d", i), typeReg)
	}
	s.removed = b.make(s.dir, "removed", typeReg)
	b.write(s.removed, 0, make([]byte, 200000))
	b.unlink(s.dir, "removed", s.removed)
	s.shrunk = b.make(s.dir, "shrunk", typeReg)
	b.write(s.shrunk, 0, bytes.Repeat([]byte{1}, 100000))
	b.cut(s.shrunk, 10)
	b.orphan(s.shrunk)
	return s
}

func mustClean(t *testing.T, d disk.Disk) Report {
	t.Helper()
	r, err := Volume(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Problems {
		t.Error(p)
	}
	return r
}

func TestClean(t *testing.T) {
	mustClean(t, newBuilder(t, 1100, 32).image())
	r := mustClean(t, newSample(t).image())
	want := Report{Inodes: 310, Others: 305, Directories: 3, Entries: 309, Orphans: 2, Blocks: r.Blocks,
		DataBlocks: r.DataBlocks, Placement: r.Placement}
	if fmt.Sprint(r) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", r, want)
	}
}

// inodeAt is the place of an inode.
func (s *sample) inodeAt(ino uint64) (block uint64, off int) {
	return s.geo.InodeTable() + ino/inodesBlock, int(ino % inodesBlock * inodeSize)
}

func (s *sample) parsed(d disk.Disk, ino uint64) inode {
	a, off := s.inodeAt(ino)
	return parseInode(get(s.t, d, a)[off:])
}

// Every kind of damage is found, and named.
func TestDamage(t *testing.T) {
	s := newSample(t)
	size := s.sb.Size()
	data0 := s.geo.Data0()
	type edit func(d disk.Disk)
	// bytes xors bytes of a block
	poke := func(a uint64, off int, xor ...byte) edit {
		return func(d disk.Disk) {
			b := get(t, d, a)
			for i, x := range xor {
				b[off+i] ^= x
			}
			put(t, d, a, b)
		}
	}
	field := func(ino uint64, off int, xor ...byte) edit {
		a, o := s.inodeAt(ino)
		return poke(a, o+off, xor...)
	}
	// dirBlock is the first block of a directory's file
	dirBlock := func(ino uint64) uint64 { return s.parsed(s.image(), ino).blks[0] }
	both := func(es ...edit) edit {
		return func(d disk.Disk) {
			for _, e := range es {
				e(d)
			}
		}
	}
	free := uint64(400) // an inode not in use
	fileBlk := s.parsed(s.image(), s.file).blks
	holeyBlk := s.parsed(s.image(), s.holey).blks
	copyPtr := func(from [slots]uint64, k int, ino uint64, slot int) edit {
		a, o := s.inodeAt(ino)
		return func(d disk.Disk) {
			b := get(t, d, a)
			for i := range 8 {
				b[o+136+8*slot+i] = byte(from[k] >> (8 * i))
			}
			put(t, d, a, b)
		}
	}
	bit := func(start, n uint64) edit {
		return poke(start+n/pageBits, int(n%pageBits/8), 1<<(n%8))
	}
	number := func(x uint64) []byte { return binary.LittleEndian.AppendUint64(nil, x) }
	// sealBits changes a byte of a superblock, which stays one
	sealBits := func(a uint64, off int, xor byte) edit {
		return func(d disk.Disk) {
			b := get(t, d, a)
			b[off] ^= xor
			sum := sha256.Sum256(b[:superSum])
			copy(b[superSum:], sum[:])
			put(t, d, a, b)
		}
	}
	seal := func(a uint64, off int) edit { return sealBits(a, off, 1) }
	short, long := dirBlock(s.sub), s.parsed(s.image(), s.sub).blks[1]
	longOff := 0
	for b := get(t, s.image(), long); u64(b, longOff) == 0; {
		longOff += longSlot
	}
	for _, c := range []struct {
		what string
		edit edit
		want string
	}{
		{"superblock", poke(0, 30, 1), "superblock: block 0: the superblock cannot be used: the checksum"},
		{"superblock's copy", poke(size-1, 30, 1),
			fmt.Sprintf("superblock: block %d: the copy of the superblock cannot be used", size-1)},
		{"both superblocks", both(poke(0, 30, 1), poke(size-1, 31, 1)), "nor can its copy"},
		{"superblock and first page of codes", both(poke(0, 30, 1), poke(1, 30, 1), poke(2, 30, 1), poke(0, 25, 1)),
			"its copy may be of a volume that was here before"},
		{"superblock and copy differ", seal(size-1, 116),
			fmt.Sprintf("superblock: block %d: the superblock and its copy differ", size-1)},
		{"superblock's unused bytes", both(seal(0, 200), seal(size-1, 200)),
			"superblock: the superblock's unused bytes are not zeros"},
		{"superblock's unused word", both(seal(0, 16), seal(size-1, 16)),
			"superblock: the superblock's unused bytes are not zeros"},
		{"superblock's nanoseconds", both(sealBits(0, 115, 0x80), sealBits(size-1, 115, 0x80)),
			"the volume was made at a time with 2147483655 nanoseconds"},
		{"log block outside the regions", func(d disk.Disk) {
			sb, err := parseSuper(get(t, d, 0))
			if err != nil {
				t.Fatal(err)
			}
			j, err := journal.Open(d, sb.journal(), journal.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := j.Commit([]journal.Write{{Addr: sb.data1, Data: get(t, d, sb.data1)}}, true); err != nil {
				t.Fatal(err)
			}
			killed := d.(*overlay).blocks()
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			d.(*overlay).m = killed
		}, fmt.Sprintf("log: block %d: the log has a block that lies outside", size-1)},
		{"inode 0's bit", bit(s.geo.InodeBitmap(), 0), "inode 0 does not exist, but is marked"},
		{"bit of an inode behind the last", both(bit(s.geo.InodeBitmap(), 600), bit(s.geo.InodeBitmap(), 601)),
			"inodes 600 to 601 do not exist, but are marked"},
		{"last bit of the inode bitmap", bit(s.geo.InodeBitmap(), pageBits-1),
			"inodes 32767 to 32767 do not exist, but are marked"},
		{"inode bit lost", bit(s.geo.InodeBitmap(), s.fifo),
			fmt.Sprintf("inode %d: block %d: the inode is in use, but the inode bitmap says free", s.fifo, s.geo.InodeTable()+s.fifo/16)},
		{"inode bit set", bit(s.geo.InodeBitmap(), free), "the inode is free, but the inode bitmap says in use"},
		{"free inode with a size", field(free, 33, 1), "a free inode is not blank"},
		{"type", field(s.fifo, 0, 8), "type 15 does not exist"},
		{"root type", field(rootIno, 0, 3), "the root has type 1"},
		{"root generation", field(rootIno, 48, 2), "the root has generation 3"},
		{"orphan head type", field(orphansIno, 0, 9), "the head of the orphan list has type 1"},
		{"mode", field(s.file, 6, 1), "has bits beyond the permissions"},
		{"owner that is no user", field(s.file, 12, 0xff, 0xff, 0xff, 0xff), "the owner is 4294967295, which is no user"},
		{"group that is none", field(s.file, 16, 0xff, 0xff, 0xff, 0xff), "the group is 4294967295, which is no group"},
		{"generation", field(s.file, 48, byte(s.parsed(s.image(), s.file).gen)), "an inode in use has generation 0"},
		{"parent of a file", field(s.file, 105, 1), "parent 256 of a file of type 1"},
		{"verifier of a directory", field(s.sub, 96, 1), "verifier 0x1 of an exclusive CREATE in a file of type 2"},
		{"larger size of a directory", field(s.sub, 34, 1), "the last block of the file"},
		{"flags", field(s.file, 28, 0x80), "flags 0x80 are unknown"},
		{"a flag next to the known ones", field(s.file, 28, 4), "flags 0x4 are unknown"},
		{"a directory is kept", field(s.sub, 28, 2), "a file of type 2 with link count 2 is marked as kept open"},
		{"orphan head's link count", field(orphansIno, 8, 1), "the head of the orphan list has link count 1"},
		{"orphan head on its list", field(orphansIno, 28, 1), "the head of the orphan list has link count 0 and flags 0x1"},
		{"device number of a file", field(s.file, 20, 1), "device number 1, 0 of a file of type 1"},
		{"size of a removed file", field(s.removed, 33, 1), "size 256 of a removed file"},
		{"nanoseconds", field(s.file, 83, 0xff), "atime has"},
		{"marks", field(s.file, 92, 1), "of chattr"},
		{"huge size", field(s.file, 39, 0x10), "larger than a file can be"},
		{"smaller size", field(s.file, 34, 1), "lies beyond its end"},
		{"empty indirect block beyond the end", field(s.file, 136+8*13, number(size-5)...),
			"block 524 of the file (level 2) lies beyond its end"},
		{"size within the block", field(s.file, 32, 4), "behind the file's end"},
		{"symlink size", field(s.symlink, 33, 0x10), "of a symbolic link"},
		{"fifo size", field(s.fifo, 32, 1), "which has no contents"},
		{"directory size", field(s.sub, 32, 1), "is not whole blocks"},
		{"shrink of a file not listed", field(s.file, 122, 0x02), "wait to be freed, but the file is not on the orphan list"},
		{"entries in a file", field(s.file, 128, 1), "1 directory entries in a file"},
		{"next of a file not listed", field(s.file, 112, 1), "next is 1"},
		{"block count", field(s.file, 40, 1), "but its inode says"},
		{"pointer out of bounds", field(s.file, 136+7, 0x10), "is no data block"},
		{"pointer to metadata", copyPtr([slots]uint64{s.geo.InodeTable()}, 0, s.file, 0), "is no data block"},
		{"hole instead of a block", copyPtr([slots]uint64{0}, 0, s.file, 0), "but its inode says"},
		{"block used twice", copyPtr(fileBlk, 1, s.holey, 1), "is used more than once"},
		{"block twice in one file", copyPtr(holeyBlk, 3, s.holey, 4), "is used more than once"},
		{"indirect block as data", copyPtr(fileBlk, 12, s.symlink, 0), "is used more than once"},
		{"indirect block in itself", func(d disk.Disk) {
			b := get(t, d, fileBlk[12])
			copy(b[8:16], []byte{byte(fileBlk[12]), byte(fileBlk[12] >> 8), 0, 0, 0, 0, 0, 0})
			put(t, d, fileBlk[12], b)
		}, "is used more than once"},
		{"entry count", field(s.dir, 128, 1), "but its inode says"},
		{"entry's inode", poke(dirBlock(s.sub), entryOff(s, s.sub, "file")+1, 2), "which is free"},
		{"entry's inode beyond the last", poke(dirBlock(s.sub), entryOff(s, s.sub, "file")+3, 2), "is not possible"},
		{"entry's tag", poke(dirBlock(s.sub), entryOff(s, s.sub, "file")+7, 1), "the tag is"},
		{"entry's name", poke(dirBlock(s.sub), entryOff(s, s.sub, "file")+8, 2), "the tag is"},
		{"entry's length", poke(dirBlock(s.sub), entryOff(s, s.sub, "file")+6, 0x80), "the length of the name does not fit"},
		{"slash in a name", poke(dirBlock(s.sub), entryOff(s, s.sub, "file")+8, 'f'^'/'), "the name is not allowed"},
		{"bytes behind a name", poke(dirBlock(s.sub), entryOff(s, s.sub, "file")+40, 1), "are not zeros"},
		{"bytes in a free slot", poke(dirBlock(s.sub), 63*64+30, 1), "offset 4032: bytes outside of any entry are not zeros"},
		{"entry twice", func(d disk.Disk) {
			a := dirBlock(s.sub)
			b := get(t, d, a)
			off := entryOff(s, s.sub, "file")
			copy(b[50*64:51*64], b[off:off+64])
			put(t, d, a, b)
		}, "the name \"file\" is there twice"},
		{"entry in the wrong bucket", func(d disk.Disk) {
			a := dirBlock(s.dir) // its first block is full: the next level has entries
			n := s.parsed(d, s.dir)
			c := n.blks[2] // bucket 0 of level 1
			if c == 0 {
				c = n.blks[4]
			}
			b, e := get(t, d, a), get(t, d, c)
			for off := 0; off < 4096; off += 64 {
				if w := dbytes.XXH64(nameOf(b[off:])); u64(b, off) != 0 && !bucketOf(w, 1) && !bucketOf(w, 2) {
					for to := 0; to < 4096; to += 64 {
						if u64(e, to) == 0 {
							copy(e[to:to+64], b[off:off+64])
							clear(b[off : off+64])
							put(t, d, a, b)
							put(t, d, c, e)
							return
						}
					}
				}
			}
			t.Fatal("no entry to move")
		}, "where its hash"},
		{"link count", field(s.file, 8, 8), "but the count of names is 3"},
		{"link count of a directory", field(s.dir, 8, 8), "but a directory with 1 sub-directories has 3"},
		{"parent", field(s.sub, 104, 2), "whose parent is"},
		{"parent of the root", field(rootIno, 104, 2), "the parent of the root"},
		{"one of three names", poke(short, entryOff(s, s.sub, "file"), entryOf(s, s.sub, "file")...),
			"the link count is 3, but the count of names is 2"},
		{"the only name", poke(dirBlock(s.dir), entryOff(s, s.dir, "fifo"), entryOf(s, s.dir, "fifo")...),
			"the file has link count 1, but no directory names it"},
		{"the only name of a directory", poke(dirBlock(s.dir), entryOff(s, s.dir, "sub"), entryOf(s, s.dir, "sub")...),
			"the file has link count 2, but no directory names it"},
		{"two names of a directory", poke(dirBlock(s.dir), entryOff(s, s.dir, "holey"), byte(s.holey^s.sub), byte((s.holey^s.sub)>>8)),
			"the count of names of the directory is 2"},
		{"parents in a circle", field(s.dir, 104, number(rootIno^s.sub)...),
			fmt.Sprintf("inode %d: its parents lead to inode %d for the second time, not to the root", s.dir, s.dir)},
		{"parent that is no directory", field(s.sub, 104, number(s.dir^s.fifo)...),
			fmt.Sprintf("inode %d: its parents lead to inode %d, which is no directory", s.sub, s.fifo)},
		{"removed directory with a name", field(s.sub, 8, 2),
			"a removed directory is named by 1 entries and has 0 sub-directories"},
		{"removed directory with entries", field(s.sub, 8, 2), "a removed directory has 2 entries"},
		{"removed root", field(rootIno, 8, 3), "inode 1: the link count is 0, but a directory with 1 sub-directories has 3"},
		{"short name in a long slot", poke(long, longOff+6, 200^50), "a name of 50 bytes lies in a slot of the other size"},
		{"orphan list goes nowhere", field(orphansIno, 113, 0xff), "the orphan list goes on to inode"},
		{"orphan list in a circle", field(s.removed, 112, byte(s.shrunk), byte(s.shrunk>>8)), "it has no end"},
		{"orphan list too short", field(orphansIno, 112, byte(s.shrunk), byte(s.shrunk>>8)),
			"is marked to be on the orphan list, but is not"},
		{"kept, but not listed", field(s.file, 28, 2), "is marked as kept, but is not on the list of kept files"},
		{"list of kept files goes nowhere", field(orphansIno, 105, 0xff), "the list of kept files goes on to inode"},
		{"listed, but not kept", field(orphansIno, 104, byte(s.file), byte(s.file>>8)),
			"is on the list of kept files, but not marked as kept"},
		{"orphan mark", field(s.shrunk, 28, 1), "is on the orphan list, but not marked so"},
		{"block bit lost", bit(s.geo.BlockBitmap(), fileBlk[0]),
			fmt.Sprintf("blocks: block %d: marked free, but in a file", fileBlk[0])},
		{"block bits set", both(bit(s.geo.BlockBitmap(), size-5), bit(s.geo.BlockBitmap(), size-4)),
			fmt.Sprintf("blocks: block %d: 2 blocks from here on are marked in use, but in no file", size-5)},
		{"log block's bit", bit(s.geo.BlockBitmap(), 3), "blocks: block 3: marked in use, but outside of the data"},
		{"bit of the superblock's copy", bit(s.geo.BlockBitmap(), size-1),
			fmt.Sprintf("blocks: block %d: marked in use, but outside of the data", size-1)},
		{"last bit of the block bitmap", bit(s.geo.BlockBitmap(), pageBits-1),
			"blocks: block 32767: marked in use, but outside of the data"},
		{"first data block's bit", bit(s.geo.BlockBitmap(), data0), fmt.Sprintf("block %d: marked free", data0)},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := s.image()
			s.tamper(d, c.edit)
			r, err := Volume(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Problems {
				if strings.Contains(p.String(), c.want) {
					return
				}
			}
			t.Errorf("not found; want %q in %v", c.want, r.Problems)
		})
	}
}

func nameOf(slot []byte) []byte { return slot[8 : 8+min(slot[6], shortName)] }

// entryOff is the offset of a short name in the first block of a directory.
func entryOff(s *sample, dir uint64, name string) int {
	d := s.image()
	b := get(s.t, d, s.parsed(d, dir).blks[0])
	for off := 0; off < len(b); off += shortSlot {
		if u64(b, off) != 0 && string(nameOf(b[off:])) == name {
			return off
		}
	}
	s.t.Fatalf("%q not found", name)
	return 0
}

// entryOf is the whole slot: to xor it with itself removes the entry.
func entryOf(s *sample, dir uint64, name string) []byte {
	d := s.image()
	off := entryOff(s, dir, name)
	return get(s.t, d, s.parsed(d, dir).blks[0])[off : off+shortSlot]
}

// A root directory without links and entries is not one that was removed.
func TestRemovedRoot(t *testing.T) {
	s := &sample{builder: newBuilder(t, 1100, 32)}
	d := s.image()
	a, off := s.inodeAt(rootIno)
	b := get(t, d, a)
	b[off+8] = 0
	s.tamper(d, func(d disk.Disk) { put(t, d, a, b) })
	r, err := Volume(d, Options{})
	if err != nil || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), "inode 1: the link count is 0") {
		t.Error(r.Problems, err)
	}
}

func TestNotAVolume(t *testing.T) {
	for _, size := range []uint64{0, 1, 7, 8, 100} {
		if _, err := Volume(disk.NewMem(size*disk.BlockSize), Options{}); err == nil {
			t.Errorf("a device of %d zero blocks is a volume", size)
		}
	}
}

// Whatever is on the volume, the check ends, and without a panic.
func TestRandomDamage(t *testing.T) {
	r := rand.New(rand.NewSource(int64(replay.Seed(t))))
	s := newSample(t)
	clean := s.image()
	size := s.sb.Size()
	var used []uint64 // blocks that are not all zeros
	for a := range size {
		if !zeros(get(t, clean, a)) {
			used = append(used, a)
		}
	}
	found := 0
	const rounds = 400
	for range rounds {
		dev := s.image()
		d := newOverlay(dev)
		for range 1 + r.Intn(5) {
			a := used[r.Intn(len(used))]
			b := get(t, d, a)
			switch r.Intn(5) {
			case 0: // noise
				r.Read(b)
			case 1: // another block's contents
				b = get(t, d, used[r.Intn(len(used))])
			case 2: // a plausible number somewhere
				x := used[r.Intn(len(used))]
				off := r.Intn(512) * 8
				for i := range 8 {
					b[off+i] = byte(x >> (8 * i))
				}
			case 3:
				b[r.Intn(len(b))] ^= 1 << r.Intn(8)
			case 4:
				clear(b[r.Intn(len(b)):])
			}
			put(t, d, a, b)
		}
		if r.Intn(4) == 0 { // superblocks that are sealed, but lie
			b := get(t, d, 0)
			x := r.Uint64() >> r.Intn(64)
			off := []int{24, 32, 40, 48, 56, 64, 72, 80, 88, 168}[r.Intn(10)]
			if r.Intn(2) == 0 {
				x = u64(b, off) + uint64(r.Intn(5)) - 2
			}
			binary.LittleEndian.PutUint64(b[off:], x)
			sum := sha256.Sum256(b[:superSum])
			copy(b[superSum:], sum[:])
			put(t, d, 0, b)
			put(t, d, size-1, b)
		}
		edit := func(to disk.Disk) {
			for a, b := range d.m {
				put(t, to, a, b)
			}
		}
		if r.Intn(4) > 0 { // most of it would not be believed otherwise
			s.tamper(dev, edit)
		} else {
			edit(dev)
		}
		rep, err := Volume(dev, Options{MaxProblems: 20, Data: r.Intn(2) == 0})
		if err == nil && !rep.Clean() {
			found++
		}
	}
	if found < rounds/2 {
		t.Errorf("damage found in %d of %d images only", found, rounds)
	}
}
