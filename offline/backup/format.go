package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"tansy/disk"
)

// A file of a backup is blocks of 4096 bytes. All numbers are little-endian. docs/design/backup.md has the format.
//
//	header    whose it is
//	segments  each a head, with up to perHead entries in the order of the volume's blocks, and the data of these
//	index     the first block of each segment, and where it lies
//	end       where the index begins
//
// Each of these blocks, but the data, begins with what it is and ends with SHA-256 of all before. The end has SHA-256
// of these sums, of all blocks before it. So it is written as it comes, and read so, or at any place.
const (
	headerMagic = "TansyBackup1\n\x00\x00\x00"
	headMagic   = "TansySeg"
	indexMagic  = "TansyIdx"
	endMagic    = "TansyEnd"

	sumAt   = disk.BlockSize - sha256.Size
	entryAt = 48                                   // where rows begin in a head, or in a block of the index
	perHead = (sumAt - entryAt) / (8 * entryWords) // how many entries a head has at most
)

// kind is what a backup has of a block.
type kind uint32

const (
	stored     kind = iota + 1 // its contents
	gone                       // some blocks that were stored before mean nothing any more, and read as zeros
	notWritten                 // contents that are not what was last written there, as they were read
	unreadable                 // nothing: the device could not read it
	lost                       // in no file: some blocks that one may have, and has not as they were written
)

// entry is what a segment has of a block, or of some that are gone.
type entry struct {
	block uint64 // of the layout
	kind  kind
	sum   uint32 // CRC-32C of the contents; of what is gone, or lost, the number of blocks
}

// end is the block behind those of the entry.
func (e entry) end() uint64 {
	if e.kind == gone || e.kind == lost {
		return e.block + uint64(e.sum)
	}
	return e.block + 1
}

// hasData tells whether a block of the file has the contents.
func (e entry) hasData() bool { return e.kind == stored || e.kind == notWritten }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func crc(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// An ID is of a backup: random.
type ID [16]byte

// Info says whose a backup is.
type Info struct {
	Volume [16]byte  // its UUID
	ID     ID        // of the backup
	Parent ID        // of the backup that it adds to; zeros: it is full
	Number uint64    // one more than that of the backup before, in its folder
	When   time.Time // of the state
	Size   uint64    // blocks of the volume's layout
	Room   uint64    // blocks of a device that it needs
	Root   [2]uint64 // code of the root of its tree of codes
}

// Full tells whether the backup needs no other.
func (i Info) Full() bool { return i.Parent == ID{} }

// ErrDamaged is wrapped by errors about what a file of a backup has not as it was written.
var ErrDamaged = errors.New("the backup is damaged")

// ErrNotBackup is wrapped by the error of opening something else.
var ErrNotBackup = errors.New("not a backup of a Tansy volume")

// seal puts the sum at the end of a block.
func seal(b []byte) {
	sum := sha256.Sum256(b[:sumAt])
	copy(b[sumAt:], sum[:])
}

// sealed tells whether the block has its sum, and begins with magic.
func sealed(b []byte, magic string) bool {
	sum := sha256.Sum256(b[:sumAt])
	return string(b[:len(magic)]) == magic && bytes.Equal(sum[:], b[sumAt:])
}

// put writes i to b.
func (i Info) put(b []byte) {
	copy(b, i.Volume[:])
	copy(b[16:], i.ID[:])
	copy(b[32:], i.Parent[:])
	for k, x := range []uint64{i.Number, uint64(i.When.Unix()), uint64(i.When.Nanosecond()), i.Size, i.Room,
		i.Root[0], i.Root[1]} {
		binary.LittleEndian.PutUint64(b[48+8*k:], x)
	}
}

// infoIn reads what put has written. ok is false if it contradicts itself.
func infoIn(b []byte) (i Info, ok bool) {
	u64 := func(k int) uint64 { return binary.LittleEndian.Uint64(b[48+8*k:]) }
	i = Info{
		Volume: [16]byte(b), ID: ID(b[16:]), Parent: ID(b[32:]), Number: u64(0),
		When: time.Unix(int64(u64(1)), int64(u64(2))), Size: u64(3), Room: u64(4), Root: [2]uint64{u64(5), u64(6)},
	}
	return i, i.Size >= 2 && i.Size <= maxSize && i.Room >= 2 && i.Room <= i.Size && u64(2) < 1e9
}

func encodeHeader(i Info) []byte {
	b := make([]byte, disk.BlockSize)
	copy(b, headerMagic)
	i.put(b[len(headerMagic):])
	seal(b)
	return b
}

func decodeHeader(b []byte) (i Info, err error) {
	if string(b[:len(headerMagic)]) != headerMagic {
		return i, ErrNotBackup
	}
	i, ok := infoIn(b[len(headerMagic):])
	if !ok || !sealed(b, headerMagic) {
		return i, fmt.Errorf("%w: the checksum of its header is wrong", ErrDamaged)
	}
	return i, nil
}

// maxSize bounds the blocks of a layout.
const maxSize = 1 << 48

// table is a head, or a block of the index: rows of numbers.
type table struct {
	magic string
	id    ID
	at    uint64 // the block of the file
}

// span is a segment as the index has it.
type span struct {
	first, end uint64 // its blocks are of [first, end)
	at         uint64 // where its head lies in the file
}

// What a row has: an entry, or a span.
const entryWords, spanWords = 2, 3

// perIndex is how many spans a block of the index has at most.
const perIndex = (sumAt - entryAt) / (8 * spanWords)

// encode makes the block: the rows' words one behind the other.
func (t table) encode(rows int, words []uint64) []byte {
	b := make([]byte, disk.BlockSize)
	copy(b, t.magic)
	copy(b[8:], t.id[:])
	binary.LittleEndian.PutUint64(b[24:], t.at)
	binary.LittleEndian.PutUint64(b[32:], uint64(rows))
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[entryAt+8*i:], w)
	}
	seal(b)
	return b
}

// decode returns how many rows of so many words there are in b, and these; ok is false if b is another table, or none.
func (t table) decode(b []byte, words uint64) (rows int, w func(row, word int) uint64, ok bool) {
	n := binary.LittleEndian.Uint64(b[32:])
	if !sealed(b, t.magic) || ID(b[8:]) != t.id || binary.LittleEndian.Uint64(b[24:]) != t.at ||
		n > (sumAt-entryAt)/(8*words) {
		return 0, nil, false
	}
	return int(n), func(row, word int) uint64 {
		return binary.LittleEndian.Uint64(b[entryAt+8*(row*int(words)+word):])
	}, true
}

// encodeIndex is a block of the index, in block at of the file.
func encodeIndex(id ID, at uint64, spans []span) []byte {
	var words []uint64
	for _, s := range spans {
		words = append(words, s.first, s.end, s.at)
	}
	return table{indexMagic, id, at}.encode(len(spans), words)
}

// decodeIndex returns the spans of a block of the index.
func decodeIndex(b []byte, id ID, at uint64) (spans []span, ok bool) {
	n, w, ok := table{indexMagic, id, at}.decode(b, spanWords)
	for i := range n {
		spans = append(spans, span{w(i, 0), w(i, 1), w(i, 2)})
	}
	return spans, ok
}

// encodeHead is the head of a segment in block at of the file.
func encodeHead(id ID, at uint64, entries []entry) []byte {
	var words []uint64
	for _, e := range entries {
		words = append(words, e.block, uint64(e.kind)|uint64(e.sum)<<32)
	}
	return table{headMagic, id, at}.encode(len(entries), words)
}

// decodeHead returns the entries of a head, which is in block at, of a backup of a layout of size blocks.
func decodeHead(b []byte, id ID, at, size uint64) ([]entry, bool) {
	n, w, ok := table{headMagic, id, at}.decode(b, entryWords)
	if !ok || n == 0 {
		return nil, false
	}
	entries, next := make([]entry, n), uint64(0)
	for i := range entries {
		e := entry{w(i, 0), kind(w(i, 1) & (1<<32 - 1)), uint32(w(i, 1) >> 32)}
		if e.kind < stored || e.kind > unreadable || e.block < next || e.block >= size || e.end() <= e.block ||
			e.end() > size {
			return nil, false
		}
		entries[i], next = e, e.end()
	}
	return entries, true
}

// ending is the last block of a file. It has what the header has, too.
type ending struct {
	info     Info
	index    uint64 // the block where the index begins
	segments uint64
	stored   uint64 // blocks with their contents
	damaged  uint64 // blocks that were not as they were written, or not readable
	digest   [sha256.Size]byte
}

// Where the end has its parts.
const digestAt, infoAt = 56, 96

func (e ending) encode(at uint64) []byte {
	b := make([]byte, disk.BlockSize)
	copy(b, endMagic)
	for k, x := range []uint64{at, e.index, e.segments, e.stored, e.damaged} {
		binary.LittleEndian.PutUint64(b[8+8*k:], x)
	}
	copy(b[digestAt:], e.digest[:])
	e.info.put(b[infoAt:])
	seal(b)
	return b
}

// decodeEnding returns the end in b, which is block at of the file.
func decodeEnding(b []byte, at uint64) (e ending, ok bool) {
	u64 := func(k int) uint64 { return binary.LittleEndian.Uint64(b[8+8*k:]) }
	info, ok := infoIn(b[infoAt:])
	e = ending{info, u64(1), u64(2), u64(3), u64(4), [sha256.Size]byte(b[digestAt:])}
	blocks := (e.segments + perIndex - 1) / perIndex
	return e, ok && sealed(b, endMagic) && u64(0) == at && e.segments <= at && e.index <= at && e.index+blocks == at
}
