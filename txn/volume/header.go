package volume

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"tansy/disk"
	"tansy/journal"
	"tansy/txn"
)

// Block 0. All numbers are little-endian; what is not listed is zero. It lies in one sector, which a crash never
// leaves written in part.
//
//	  0  magic, 8 bytes
//	  8  version, 32 bits
//	 16  key of the journal, 32 bytes
//	 48  UUID, 16 bytes
//	 64  bits, objects of 256 bytes, and blocks: 64 bits each
//	 88  units and ring of the journal: 64 bits each
//	104  name of the program, 64 bytes, zeros behind it
//	168  SHA-256 of the bytes before, 32 bytes
const (
	magic     = "TansyTxn"
	version   = 1
	atVersion = 8
	atKey     = 16
	atUUID    = 48
	atSizes   = 64
	atProgram = 104
	atSum     = 168
	headerEnd = atSum + sha256.Size
)

// MaxProgram is the length of the longest name of a program, in bytes.
const MaxProgram = atSum - atProgram

// DefaultLogBytes is of Sizes.LogBytes.
const DefaultLogBytes = 16 << 20

// Sizes are what a volume has room for.
type Sizes struct {
	Bits   uint64 // all of them handed out by the Allocator of the region
	Smalls uint64 // objects of txn.SmallSize bytes
	Blocks uint64
	// LogBytes is the size of the journal's log, 4 MiB at least: the larger, the more rarely is what was committed
	// written home; 0 = DefaultLogBytes.
	LogBytes uint64
}

// Bytes is the size of the disk that such a volume takes, for disk.CreateFile. It is math.MaxUint64, which no disk has,
// if there can be no such volume.
func (s Sizes) Bytes() uint64 {
	h, err := newHeader("", s)
	if err != nil {
		return math.MaxUint64
	}
	return h.size() * disk.BlockSize
}

// header is what block 0 says.
type header struct {
	key         [32]byte
	uuid        [16]byte
	sizes       Sizes // but for LogBytes
	units, ring uint64
	program     string
}

// newHeader returns the header of a new volume.
func newHeader(program string, s Sizes) (*header, error) {
	log := s.LogBytes / disk.BlockSize
	if s.LogBytes == 0 {
		log = DefaultLogBytes / disk.BlockSize
	}
	// Half of the log is for small groups, which go to the units, and half for large ones.
	h := &header{sizes: s, program: program, units: max(2, log/2/journal.UnitBlocks), ring: max(journal.MinRing, log/2)}
	h.sizes.LogBytes = 0
	rand.Read(h.key[:])
	rand.Read(h.uuid[:])
	return h, h.check()
}

// check is an error if there can be no such volume.
func (h *header) check() error {
	s := h.sizes
	switch {
	case len(h.program) > MaxProgram || bytes.IndexByte([]byte(h.program), 0) >= 0:
		return fmt.Errorf("%w: the name of the program is longer than %d bytes, or has a zero byte", ErrSizes, MaxProgram)
	case s.Bits == 0 && s.Smalls == 0 && s.Blocks == 0:
		return fmt.Errorf("%w: it has no objects", ErrSizes)
	case s.Bits > mostBits || s.Smalls > mostSmalls || s.Blocks > mostBlocks || h.units > mostLog || h.ring > mostLog:
		return fmt.Errorf("%w: it is too large", ErrSizes)
	}
	return nil
}

// Bounds: of objects, so that there is a tree of codes for all (some 2^39 home blocks); and of what the journal has
// 32 bits for.
const (
	mostBits   = 1 << 48
	mostSmalls = 1 << 41
	mostBlocks = 1 << 38
	mostLog    = 1<<32 - 1
)

// blocks is the number of blocks of n objects of which one has so many.
func blocks(n, perBlock uint64) uint64 { return (n + perBlock - 1) / perBlock }

// home is the number of home blocks: those of the objects, and one or two more if there can be no tree of codes for
// so many.
func (h *header) home() (n, pages uint64) {
	s := h.sizes
	n = blocks(s.Bits, 8*disk.BlockSize) + blocks(s.Smalls, disk.BlockSize/txn.SmallSize) + s.Blocks
	for {
		if pages, ok := journal.PagesFor(n); ok {
			return n, pages
		}
		n++
	}
}

// params are those of the journal.
func (h *header) params() journal.Params {
	_, pages := h.home()
	return journal.Params{Start: 1 + 2*pages, Pages: pages, Units: h.units, Ring: h.ring, Key: h.key, UUID: h.uuid}
}

// size is the number of blocks of the volume.
func (h *header) size() uint64 {
	n, _ := h.home()
	return h.params().Home() + n
}

// regions are those of the objects, one behind the other.
func (h *header) regions() (bits, smalls, whole txn.Region) {
	s := h.sizes
	bits = txn.Region{Start: h.params().Home(), Count: blocks(s.Bits, 8*disk.BlockSize), Kind: txn.Bits, Allocate: s.Bits}
	n := blocks(s.Smalls, disk.BlockSize/txn.SmallSize)
	smalls = txn.Region{Start: bits.Start + bits.Count, Count: n, Kind: txn.Smalls}
	whole = txn.Region{Start: smalls.Start + smalls.Count, Count: s.Blocks, Kind: txn.Blocks}
	return bits, smalls, whole
}

// fits is an error if d has not room for the volume.
func (h *header) fits(d disk.Disk) error {
	if d.Size() < h.size() {
		return fmt.Errorf("volume: %w: it has %d blocks, the volume takes %d", ErrTooSmall, d.Size(), h.size())
	}
	return nil
}

// fields are the numbers, in their order.
func (h *header) fields() []*uint64 {
	return []*uint64{&h.sizes.Bits, &h.sizes.Smalls, &h.sizes.Blocks, &h.units, &h.ring}
}

// encode is block 0.
func (h *header) encode() []byte {
	p := make([]byte, disk.BlockSize)
	copy(p, magic)
	binary.LittleEndian.PutUint32(p[atVersion:], version)
	copy(p[atKey:], h.key[:])
	copy(p[atUUID:], h.uuid[:])
	for i, x := range h.fields() {
		binary.LittleEndian.PutUint64(p[atSizes+8*i:], *x)
	}
	copy(p[atProgram:atSum], h.program)
	sum := sha256.Sum256(p[:atSum])
	copy(p[atSum:], sum[:])
	return p
}

// decode reads block 0.
func decode(p []byte) (*header, error) {
	if string(p[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrForeign, magic)
	}
	if v := binary.LittleEndian.Uint32(p[atVersion:]); v != version {
		return nil, fmt.Errorf("%w: %d; this program reads version %d", ErrVersion, v, version)
	}
	if sum := sha256.Sum256(p[:atSum]); !bytes.Equal(sum[:], p[atSum:headerEnd]) {
		return nil, fmt.Errorf("%w: the checksum is not that of the contents; restore the block from a copy", ErrDamaged)
	}
	h := &header{key: [32]byte(p[atKey:]), uuid: [16]byte(p[atUUID:])}
	for i, x := range h.fields() {
		*x = binary.LittleEndian.Uint64(p[atSizes+8*i:])
	}
	h.program = string(bytes.TrimRight(p[atProgram:atSum], "\x00"))
	if err := h.check(); err != nil { // somebody made it so: the checksum is right
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return h, nil
}
