package dlog

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"tansy/internal/extern/dbytes"
	"tansy/internal/extern/ddisk"
)

// The records of the log, numbers little-endian.
//
// Header, within the first sector of its block, zeros after it:
//
//	0   8  "TansyHd3"
//	8  16  UUID of the volume
//	24  8  first live sequence number
//	32 16  tag: GMAC of bytes 0..31, nonce (sequence number, 2^32-3)
//
// Descriptor:
//
//	0   8  "TansyLog"
//	8  16  UUID of the volume
//	24  8  sequence number
//	32  8  position of the first data block on the ring, if they lie there
//	40  4  number n of data blocks in the log
//	44  4  number m of direct blocks, whose data lie at home; n + m is at most 500
//	48 16  tag
//	64 8n  home addresses of the blocks in the log
//	.. 8m  addresses of the direct blocks
//
// The tag of a descriptor is the GMAC, nonce (sequence number, 0), of the descriptor's
// block with a zero tag followed by the tags of the data blocks, direct ones last; data
// block i's tag, which is not stored, is the GMAC of its 4096 bytes, nonce (sequence
// number, i+1). A nonce is the number's 8 bytes and the index's 4. No nonce is used for
// two messages, because no sequence number is given to two groups, whatever crashes (verified).
const (
	descMagic = "TansyLog"
	hdrMagic  = "TansyHd3"
	hdrIndex  = 1<<32 - 3
	tagSize   = 16
	descTag   = 48 // offset of a descriptor's tag
	descAddrs = 64 // offset of its addresses
	hdrTag    = 32 // offset of a header's tag
	// GroupMax is the number of blocks a descriptor has room for.
	GroupMax = 500
)

var le = binary.LittleEndian

// Seal seals and checks the records of one volume. Sign is called by one goroutine at
// a time; the rest by any.
type Seal struct {
	aead cipher.AEAD
	uuid [16]byte
}

// NewSeal returns the seal of the volume with a key and a UUID. The key is the
// volume's random key; the one used here is derived from it.
func NewSeal(key [32]byte, uuid [16]byte) *Seal {
	k := sha256.Sum256(append([]byte("tansy journal seal v1"), key[:]...))
	b, err := aes.NewCipher(k[:])
	if err != nil {
		panic(err) // the length is right
	}
	aead, err := cipher.NewGCM(b)
	if err != nil {
		panic(err)
	}
	return &Seal{aead, uuid}
}

// mac appends the tag of msg to dst.
func (s *Seal) mac(dst []byte, sq uint64, index uint32, msg []byte) []byte {
	var nonce [12]byte
	le.PutUint64(nonce[:], sq)
	le.PutUint32(nonce[8:], index)
	return s.aead.Seal(dst, nonce[:], nil, msg)
}

// Sign returns the descriptor block of the group with the blocks bm in the log and the
// direct blocks hm.
func (s *Seal) Sign(sq, pos uint64, bm, hm *BMap) *dbytes.Blk {
	buf := dbytes.NewBytes(dbytes.BlkSize)
	b := buf.Data
	copy(b, descMagic)
	copy(b[8:], s.uuid[:])
	le.PutUint64(b[24:], sq)
	le.PutUint64(b[32:], pos)
	le.PutUint32(b[40:], uint32(len(bm.addrs)))
	le.PutUint32(b[44:], uint32(len(hm.addrs)))
	at := b[descAddrs:]
	for _, l := range [2][]uint64{bm.addrs, hm.addrs} {
		for _, a := range l {
			le.PutUint64(at, a)
			at = at[8:]
		}
	}
	tag := s.recordTag(sq, b, bm.blks, hm.blks)
	copy(b[descTag:], tag[:])
	return dbytes.Freeze(buf)
}

// recordTag is the tag of the descriptor in b with the data blocks of all parts.
func (s *Seal) recordTag(sq uint64, b []byte, parts ...[]*dbytes.Blk) [tagSize]byte {
	blks := slices.Concat(parts...)
	msg := make([]byte, dbytes.BlkSize+tagSize*len(blks))
	copy(msg, b)
	clear(msg[descTag : descTag+tagSize])
	s.dataTags(msg[dbytes.BlkSize:], sq, blks)
	var tag [tagSize]byte
	s.mac(tag[:0], sq, 0, msg)
	return tag
}

// tagShare is the least number of blocks that is worth a goroutine.
const tagShare = 64

// dataTags puts the tags of a record's data blocks into dst, one behind the other. The
// record waits for them, so all processors help with a long one.
func (s *Seal) dataTags(dst []byte, sq uint64, blks []*dbytes.Blk) {
	shares := max(1, min(len(blks)/tagShare, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for k := range shares {
		from, to := k*len(blks)/shares, (k+1)*len(blks)/shares
		share := func() {
			for i := from; i < to; i++ {
				s.mac(dst[i*tagSize:i*tagSize], sq, uint32(i+1), blks[i].Data())
			}
		}
		if k < shares-1 {
			wg.Go(share)
		} else {
			share()
		}
	}
	wg.Wait()
}

// Check says whether d with the data blocks x, then y, then z was sealed with this key
// for this volume.
func (s *Seal) Check(d *DescR, x, y, z *ddisk.BList) bool {
	b := d.b.Data()
	tag := s.recordTag(d.Sq(), b, x.Blks, y.Blks, z.Blks)
	return string(b[8:24]) == string(s.uuid[:]) && string(tag[:]) == string(b[descTag:descTag+tagSize])
}

// EncHdr returns the header block for the first sequence number q.
func (s *Seal) EncHdr(q uint64) *dbytes.Blk {
	buf := dbytes.NewBytes(dbytes.BlkSize)
	b := buf.Data
	copy(b, hdrMagic)
	copy(b[8:], s.uuid[:])
	le.PutUint64(b[24:], q)
	s.mac(b[:hdrTag], q, hdrIndex, b[:hdrTag])
	return dbytes.Freeze(buf)
}

// DecHdr returns the first sequence number in a header block; false = it is none.
func (s *Seal) DecHdr(x *dbytes.Blk) (bool, uint64) {
	b := x.Data()
	q := le.Uint64(b[24:])
	if string(b[:8]) != hdrMagic || string(b[8:24]) != string(s.uuid[:]) || q >= 1<<62 {
		return false, 0
	}
	var tag [tagSize]byte
	s.mac(tag[:0], q, hdrIndex, b[:hdrTag])
	return string(tag[:]) == string(b[hdrTag:hdrTag+tagSize]), q
}

// DescR is a block that looks like a descriptor.
type DescR struct{ b *dbytes.Blk }

// Parse returns b as a descriptor, or nil if it does not look like one.
func Parse(b *dbytes.Blk) *DescR {
	d := &DescR{b}
	if string(b.Data()[:8]) != descMagic || d.N()+d.M() > GroupMax {
		return nil
	}
	return d
}

// Sq is the sequence number.
func (d *DescR) Sq() uint64 { return d.b.U64(24) }

// Pos is the position of the first data block.
func (d *DescR) Pos() uint64 { return d.b.U64(32) }

// N is the number of data blocks in the log.
func (d *DescR) N() uint64 { return uint64(d.b.U32(40)) }

// Addr is the home address of block i in the log.
func (d *DescR) Addr(i uint64) uint64 { return d.b.U64(descAddrs + 8*i) }

// M is the number of direct blocks.
func (d *DescR) M() uint64 { return uint64(d.b.U32(44)) }

// Dir is the address of direct block i.
func (d *DescR) Dir(i uint64) uint64 { return d.Addr(d.N() + i) }
