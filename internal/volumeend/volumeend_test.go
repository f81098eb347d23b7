package volumeend_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/internal/volumeend"
	"tansy/journal"
)

const blocks = 5 << 20 / disk.BlockSize * 2 // of the volume

// grown is a device of more blocks than the volume on it, and the superblock of that.
func grown(t *testing.T, more uint64) (d *disk.Mem, super []byte) {
	t.Helper()
	d = disk.NewMem((blocks + more) * disk.BlockSize)
	volume(t, d, blocks)
	return d, block(t, d, 0)
}

// volume makes a volume of the first blocks of d.
func volume(t *testing.T, d disk.Disk, size uint64) {
	t.Helper()
	if err := tansyfs.Mkfs(disk.NewPrefix(d, size), tansyfs.MkfsOptions{}); err != nil {
		t.Fatal(err)
	}
}

func block(t *testing.T, d disk.Disk, a uint64) []byte {
	t.Helper()
	b := make([]byte, disk.BlockSize)
	if err := d.ReadAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t *testing.T, d disk.Disk, a uint64, b []byte) {
	t.Helper()
	if err := d.WriteAt(a, [][]byte{b}); err != nil {
		t.Fatal(err)
	}
}

// near and far are what a device may have grown by: within what Find looks at, and beyond.
const near, far = 1000, 20000

// superblocks are what may be left of the superblock in block 0.
var superblocks = map[string]func(t *testing.T, d disk.Disk, super []byte) disk.Disk{
	"sound": func(t *testing.T, d disk.Disk, _ []byte) disk.Disk { return d },
	"damaged, not where the size is": func(t *testing.T, d disk.Disk, super []byte) disk.Disk {
		super[100] ^= 1
		put(t, d, 0, super)
		return d
	},
	"damaged, with another size": func(t *testing.T, d disk.Disk, super []byte) disk.Disk {
		super[25] ^= 1
		put(t, d, 0, super)
		return d
	},
	"with a size beyond all": func(t *testing.T, d disk.Disk, super []byte) disk.Disk {
		binary.LittleEndian.PutUint64(super[24:], 1<<63)
		put(t, d, 0, super)
		return d
	},
	"with no size": func(t *testing.T, d disk.Disk, super []byte) disk.Disk {
		clear(super[24:32])
		put(t, d, 0, super)
		return d
	},
	"written over": func(t *testing.T, d disk.Disk, _ []byte) disk.Disk {
		put(t, d, 0, make([]byte, disk.BlockSize))
		return d
	},
	"unreadable": func(_ *testing.T, d disk.Disk, _ []byte) disk.Disk { return unreadable(d, 0, 1) },
}

// unreadable is d, of which the blocks from a on before end cannot be read.
func unreadable(d disk.Disk, a, end uint64) disk.Disk {
	return disk.NewFault(d, 1, func(op disk.Op, _ *rand.Rand) disk.Harm {
		if op.Kind == disk.Read && op.Addr < end && op.Addr+uint64(op.Blocks) > a {
			return disk.Harm{Err: disk.ErrInjected}
		}
		return disk.Harm{}
	})
}

// The end of a volume is found wherever its device ends, and whatever became of block 0.
func TestFind(t *testing.T) {
	for what, damage := range superblocks {
		for _, more := range []uint64{0, 1, near, far} {
			d, super := grown(t, more)
			harmed := damage(t, d, super)
			end, ok := volumeend.Find(harmed)
			known := more < far || what == "sound" || what == "damaged, not where the size is"
			if ok != known || known && end != blocks || !known && end != d.Size() {
				t.Errorf("%d more blocks, superblock %s: %d, %v; want %d, known %v", more, what, end, ok, blocks, known)
			}
			if known {
				continue
			}
			if end, lost, ok := volumeend.Search(harmed, func(_, _ uint64) {}); !ok || end != blocks || lost != 0 {
				t.Errorf("%d more blocks, superblock %s: the search: %d, %v, %d unreadable; want %d",
					more, what, end, ok, lost, blocks)
			}
		}
	}
}

// A copy that an earlier volume has left at the end of the device does not count, where another one was copied over its
// beginning; that one's own does.
func TestOlderCopies(t *testing.T) {
	d := disk.NewMem((blocks + near) * disk.BlockSize)
	volume(t, d, d.Size())
	other, _ := grown(t, 0)
	for a := range uint64(blocks) {
		put(t, d, a, block(t, other, a))
	}
	put(t, d, 0, make([]byte, disk.BlockSize))
	if end, ok := volumeend.Find(d); end != blocks || !ok {
		t.Errorf("%d, %v; want %d", end, ok, blocks)
	}
	put(t, d, blocks-1, make([]byte, disk.BlockSize))
	if end, ok := volumeend.Find(d); end != d.Size() || ok {
		t.Errorf("without a copy: %d, %v; want it not to be known", end, ok)
	}
	if end, _, ok := volumeend.Search(d, func(_, _ uint64) {}); ok {
		t.Errorf("without a copy: the search took that in block %d", end-1)
	}
}

// Nor does the copy of an earlier, much larger volume whose log lies behind the end of the one that was written over
// its beginning: its first pages are gone. Where that is the only copy, it counts in a search.
func TestLargerBefore(t *testing.T) {
	const large = 1 << 20
	d := disk.NewMem(large * disk.BlockSize)
	if err := tansyfs.Mkfs(d, tansyfs.MkfsOptions{Zeroed: true, Inodes: 256, LogBytes: 8 << 20}); err != nil {
		t.Fatal(err)
	}
	v, err := tansyfs.Open(d, tansyfs.Options{}) // something comes home
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Mkdir(&tansyfs.Cred{}, v.Root(), []byte("d"), &tansyfs.SetAttr{}); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	put(t, d, 0, make([]byte, disk.BlockSize))
	if end, ok := volumeend.Find(d); end != large || !ok {
		t.Errorf("with nothing written over it: %d, %v; want %d", end, ok, large)
	}
	other, _ := grown(t, 0)
	for a := range uint64(blocks) {
		put(t, d, a, block(t, other, a))
	}
	put(t, d, 0, make([]byte, disk.BlockSize))
	if end, ok := volumeend.Find(d); ok {
		t.Errorf("the copy of a volume whose beginning is gone counts: %d", end)
	}
	if end, _, ok := volumeend.Search(d, func(_, _ uint64) {}); end != blocks || !ok {
		t.Errorf("the search: %d, %v; want %d", end, ok, blocks)
	}
	put(t, d, blocks-1, make([]byte, disk.BlockSize))
	if end, _, ok := volumeend.Search(d, func(_, _ uint64) {}); end != large || !ok {
		t.Errorf("the search, with no other copy: %d, %v; want %d", end, ok, large)
	}
}

// A superblock in another place than it says is no copy.
func TestMisplacedCopy(t *testing.T) {
	d, super := grown(t, near)
	for _, a := range []uint64{blocks - 10, blocks, blocks + 1, blocks + 10} {
		put(t, d, a, super)
	}
	put(t, d, 0, make([]byte, disk.BlockSize))
	if end, ok := volumeend.Find(d); end != blocks || !ok {
		t.Errorf("%d, %v; want %d", end, ok, blocks)
	}
	put(t, d, blocks-1, make([]byte, disk.BlockSize))
	if end, _, ok := volumeend.Search(d, func(_, _ uint64) {}); ok {
		t.Errorf("the search took a misplaced copy, in block %d", end-1)
	}
	put(t, d, blocks-1, super)
	binary.LittleEndian.PutUint64(super[24:], blocks+11) // with a wrong checksum now
	put(t, d, 0, super)
	if end, ok := volumeend.Find(d); end != blocks || !ok {
		t.Errorf("%d, %v; want %d", end, ok, blocks)
	}
}

// One sound header of the log is enough to tell whose copy it is. Without any the copy is not known to be the volume's.
func TestHeaders(t *testing.T) {
	for _, damaged := range [][]int{{0}, {1}, {0, 1}} {
		d, super := grown(t, near)
		at := func(off int) uint64 { return binary.LittleEndian.Uint64(super[off:]) }
		first := 1 + 2*at(168)
		headers := [2]uint64{first, first + 1 + journal.UnitBlocks*at(32) + at(40)}
		for _, i := range damaged {
			put(t, d, headers[i], make([]byte, disk.BlockSize))
		}
		put(t, d, 0, make([]byte, disk.BlockSize))
		if end, ok := volumeend.Find(d); ok != (len(damaged) < 2) || ok && end != blocks {
			t.Errorf("without headers %v: %d, %v", damaged, end, ok)
		}
	}
}

// A volume that was made anew, when its device had grown, has its copy at the end: that of the former one is older.
func TestMadeAnew(t *testing.T) {
	d, _ := grown(t, near)
	volume(t, d, d.Size())
	for range 2 {
		if end, ok := volumeend.Find(d); end != d.Size() || !ok {
			t.Errorf("%d, %v; want %d", end, ok, d.Size())
		}
		put(t, d, 0, make([]byte, disk.BlockSize))
	}
}

// Blocks that cannot be read do not hide a copy behind them, but Find asks a dying device for few.
func TestUnreadable(t *testing.T) {
	d, _ := grown(t, near)
	put(t, d, 0, make([]byte, disk.BlockSize))
	some := unreadable(d, blocks+10, blocks+40)
	if end, ok := volumeend.Find(some); end != blocks || !ok {
		t.Errorf("with 30 unreadable blocks: %d, %v; want %d", end, ok, blocks)
	}
	dead := disk.NewFault(d, 1, disk.FailFrom(1, disk.ErrInjected))
	if end, ok := volumeend.Find(dead); end != d.Size() || ok {
		t.Errorf("a device that fails every read: %d, %v", end, ok)
	}
	if n := dead.Ops(); n > 200 {
		t.Errorf("a device that fails every read was asked %d times", n)
	}
	many := unreadable(d, blocks+10, blocks+510)
	if end, lost, ok := volumeend.Search(many, func(_, _ uint64) {}); end != blocks || lost != 500 || !ok {
		t.Errorf("the search with 500 unreadable blocks: %d, %d unreadable, %v; want %d", end, lost, ok, blocks)
	}
}

// What is no volume, or too small for one, is left as it is.
func TestNoVolume(t *testing.T) {
	for _, size := range []uint64{0, 1, 2, 3, 1000} {
		d := disk.NewMem(size * disk.BlockSize)
		if got := volumeend.Bound(d, func(err error) { t.Error(err) }); got != disk.Disk(d) {
			t.Errorf("%d empty blocks became %d", size, got.Size())
		}
		if end, _, ok := volumeend.Search(d, func(_, _ uint64) {}); ok {
			t.Errorf("the end of a volume is found in %d empty blocks: %d", size, end)
		}
	}
}
