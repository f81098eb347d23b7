// Package volumeend finds the end of the volume on a device. The device may be larger: a disk, or an image, that has
// grown since the volume was made, or one that the volume was copied to.
//
// The superblock says where the volume ends. If that in block 0 cannot be used, its copy says so, but the copy's place
// is the end. Find looks for it where block 0 says, damaged as it is, and then backwards from the end of the device,
// for a little; Search goes over all of the device. A copy lies where it says that it does. What was found backwards
// may all the same be of a volume that was there before: it counts only if a header of the journal that it describes
// bears the seal of its key. Of several such, one counts whose beginning is there: another volume may have been written
// over that of a larger one. What clients have written into files comes last, as the copy lies behind all of these.
package volumeend

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"tansy/disk"
	"tansy/internal/gen/fs/format/superblockformat"
	"tansy/internal/runtime/dbytes"
	"tansy/journal"
)

// What Decode says of a superblock (verified/fs/format/superblock.dfy).
const (
	sound    = 0
	noMagic  = 1
	badSum   = 2
	unread   = 100 // the block cannot be read
	sizeAt   = 24  // where the size of the layout lies in a superblock
	roomAt   = 184 // where the blocks of the device do, if the layout is not there as a whole; else 0
	stretch  = 256 // blocks that are read at once: 1 MiB
	nearby   = 64 * stretch
	mostLost = 64 // unreadable blocks after which Find gives up: the device is dying, and slow at it
)

// Find returns the number of blocks of the volume on d, from the first on, as d.Size() if d is not larger, or holds no
// volume of this version of the format. ok: it is known. If not, neither block 0 nor the end of d has a superblock of
// the volume, and the result is d.Size().
func Find(d disk.Disk) (end uint64, ok bool) {
	n := d.Size()
	if n < 2 {
		return n, true
	}
	b := make([]byte, disk.BlockSize)
	why, s := look(d, 0, b)
	switch why {
	case sound:
		return min(s.Extent().Room(), n), true
	case noMagic, unread:
	case badSum:
		end := cmp.Or(binary.LittleEndian.Uint64(b[roomAt:]), binary.LittleEndian.Uint64(b[sizeAt:]))
		if end < 2 || end > n {
			break
		}
		if why, s := look(d, end-1, b); why == sound && s.Extent().Room() == end {
			return end, true
		}
	default: // whoever reads it refuses it
		return n, true
	}
	x := search{d: d, lost: mostLost}
	if end, whole := x.back(n-min(n-1, nearby), n, func(uint64) {}); whole {
		return end, true
	}
	return n, false
}

// Search goes over all of d backwards for the copy of a superblock, where Find has not found one. If there is none of a
// volume whose beginning is there, the last one counts. lost is the number of blocks that could not be read. progress
// is called now and then with bytes.
func Search(d disk.Disk, progress func(done, total uint64)) (end, lost uint64, ok bool) {
	n := d.Size()
	if n < 2 {
		return n, 0, false
	}
	x := search{d: d, lost: n}
	end, _ = x.back(1, n, func(at uint64) { progress((n-at)*disk.BlockSize, n*disk.BlockSize) })
	return end, n - x.lost, end > 0
}

// Bound returns the part of d that its volume uses, or d. If d is larger, warn, unless nil, is told.
func Bound(d disk.Disk, warn func(error)) disk.Disk {
	if end, _ := Find(d); end < d.Size() {
		return Part(d, end, warn)
	}
	return d
}

// Part is the first blocks of d up to end, where its volume ends. warn, unless nil, is told what is behind.
func Part(d disk.Disk, end uint64, warn func(error)) *disk.Prefix {
	if warn != nil {
		warn(fmt.Errorf("the device has %d bytes more than the volume uses, which has %d: they are left alone "+
			"(tansy grow has a volume use them that was made to grow)", (d.Size()-end)*disk.BlockSize, end*disk.BlockSize))
	}
	return disk.NewPrefix(d, end)
}

// Layout is the layout of the volume whose superblock s is on d: d itself, if all of it is there.
func Layout(d disk.Disk, s superblockformat.Super) disk.Disk {
	if s.Extent().Runs().Is_NoRun() {
		return d
	}
	return disk.NewPieced(d, s.Size(), Locate(s))
}

// Locate says where the blocks of a volume lie.
func Locate(s superblockformat.Super) disk.Locate {
	return func(a uint64) (there bool, at, n uint64) { return superblockformat.Locate(s, a) }
}

// look reads block a into b, as a superblock.
func look(d disk.Disk, a uint64, b []byte) (why uint32, s superblockformat.Super) {
	if d.ReadAt(a, [][]byte{b}) != nil {
		return unread, s
	}
	return superblockformat.Decode(&dbytes.Bytes{Data: b})
}

// search is a search for the copy of a superblock.
type search struct {
	d    disk.Disk
	lost uint64 // how many more blocks may be unreadable
}

// back searches the blocks from lo on up to hi, backwards, for the copy of a volume whose beginning is there (whole).
// If there is none, it returns the end of the last volume that has a copy, or 0.
func (x *search) back(lo, hi uint64, progress func(at uint64)) (end uint64, whole bool) {
	memory, bufs := make([]byte, stretch*disk.BlockSize), make([][]byte, stretch)
	for i := range bufs {
		bufs[i] = memory[i*disk.BlockSize:][:disk.BlockSize]
	}
	for hi > lo && x.lost > 0 {
		from := hi - min(stretch, hi-lo)
		if data, err := disk.NextData(x.d, from); err != nil || data < hi {
			run := bufs[:hi-from]
			x.read(from, run)
			for a := hi; a > from; a-- {
				switch found, whole := x.copy(run[a-1-from], a); {
				case whole:
					return a, true
				case found && end == 0:
					end = a
				}
			}
		}
		hi = from
		progress(hi)
	}
	return end, false
}

// read reads the blocks from a on as far as it can; others become zeros.
func (x *search) read(a uint64, bufs [][]byte) {
	if x.d.ReadAt(a, bufs) == nil {
		return
	}
	for i := len(bufs) - 1; i >= 0; i-- {
		if x.lost == 0 || x.d.ReadAt(a+uint64(i), bufs[i:i+1]) != nil {
			clear(bufs[i])
			x.lost -= min(x.lost, 1)
		}
	}
}

// copy tells whether b, the last block before end, is the copy of a superblock, of a volume that is there, and whether
// all of that is, from its beginning on.
func (x *search) copy(b []byte, end uint64) (found, whole bool) {
	if binary.LittleEndian.Uint64(b) != superblockformat.MAGIC() {
		return false, false
	}
	why, s := superblockformat.Decode(&dbytes.Bytes{Data: b})
	if why != sound || s.Extent().Room() != end {
		return false, false
	}
	if layout := Layout(sized{x.d, end}, s); journal.Present(layout, Journal(s)) {
		return true, journal.Begins(layout, Journal(s))
	}
	return false, false
}

// sized is a disk that ends at a block for now.
type sized struct {
	disk.Disk
	size uint64
}

func (d sized) Size() uint64 { return d.size }

// UUID returns the UUID of a volume.
func UUID(s superblockformat.Super) (id [16]byte) {
	binary.LittleEndian.PutUint64(id[:], s.Uuid0())
	binary.LittleEndian.PutUint64(id[8:], s.Uuid1())
	return id
}

// Journal says where the journal of a volume lies.
func Journal(s superblockformat.Super) journal.Params {
	var key []byte
	for _, x := range []uint64{s.Key0(), s.Key1(), s.Key2(), s.Key3()} {
		key = binary.LittleEndian.AppendUint64(key, x)
	}
	g := s.Geometry()
	return journal.Params{
		Start: 1 + 2*s.Pages(), Pages: s.Pages(), Units: s.Lognd(), Ring: s.Lognr(), UUID: UUID(s),
		Key:    sha256.Sum256(append(key, "journal"...)),
		Bitmap: g.BlockBitmap(), First: g.Data0(), Limit: g.Data1(),
	}
}
