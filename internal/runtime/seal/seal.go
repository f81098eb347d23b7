// Package seal is the Go behind verified/trusted/seal.s.dfy: the records of the journal's log, and their seal.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

// The records of the log, numbers little-endian.
//
// Header, within the first sector of its block, zeros after it:
//
//	0   8  "TansyHd7"
//	8  16  UUID of the volume
//	24  8  first live sequence number
//	32 16  epoch: a random number, new for each opening of the volume
//	48 16  code of the root of the tree of codes
//	64 32  HMAC-SHA256 of bytes 0..63
//
// Descriptor:
//
//	0   8  "TansyLg5"
//	8  16  UUID of the volume
//	24  8  sequence number
//	32  8  position of the first data block on the ring, if they lie there
//	40  2  number n of data blocks in the log
//	42  2  lag, below 1000: all groups with numbers below the group's own less this were durable when it was sealed
//	44  4  number m of direct blocks, whose data lie at home; n + m is at most 500
//	48 16  epoch
//	64 16  tag of the data
//	80 16  tag of the descriptor
//	96 8n  home addresses of the blocks in the log
//	.. 8m  addresses of the direct blocks
//
// A tag is a GMAC under a key of the volume and the epoch. That of the data has the nonce (sequence
// number, 2^32-1) and is over the tags of the data blocks in the log and the codes of the direct ones (coder.go), one
// behind the other; block i's tag, which is not stored, is that of its 4096 bytes, nonce (sequence number,
// i+1). The tag of the descriptor, nonce (sequence number, 0), is over its block with zeros in
// place of this tag: so whether the descriptor is one can be told without the data. A nonce is the
// number's 8 bytes and the index's 4. No nonce is used for two messages, because no sequence
// number is given to two groups, whatever crashes (verified); and if the device lies about what it
// holds, so that a number is given again, it is in another epoch and so under another key.
//
// Before, each group was sealed when all before it were durable: n had four bytes, the upper two of them zero, so that
// the lag is 0. Such logs have headers that begin with "TansyHd6", and descriptors with "TansyLg4". Before that, the
// direct blocks had tags like the others, numbered behind them, in place of their codes: "TansyHd5" and "TansyLg3".
// Logs of both kinds are read. A header is replaced at the first opening, so that servers that know only these take
// none of the new descriptors for the end of the log.
const (
	descMagic     = "TansyLg5"
	hdrMagic      = "TansyHd7"
	noLagMagic    = "TansyLg4"
	noLagHdrMagic = "TansyHd6"
	tagsMagic     = "TansyLg3"
	tagsHdrMagic  = "TansyHd5"

	maxLag    = 1000 // no lag is as large
	dataIndex = 1<<32 - 1
	tagSize   = 16
	descEpoch = 48 // offset of a descriptor's epoch
	dataTag   = 64 // ... of the tag of its data
	descTag   = 80 // ... of its own
	descAddrs = 96 // ... of its addresses
	hdrEpoch  = 32 // offset of a header's epoch
	hdrRoot   = 48 // ... of the code of the root of the tree of codes
	hdrTag    = 64 // ... of its seal
	hdrEnd    = hdrTag + sha256.Size
	// GroupMax is the number of blocks a descriptor has room for.
	GroupMax = 500
)

var le = binary.LittleEndian

// Seal seals and checks the records of one volume. Sign and NewEpoch are called by one goroutine
// at a time; the rest by any, but not beside NewEpoch.
type Seal struct {
	key   [32]byte // the volume's
	uuid  [16]byte
	home  uint64      // where node 0 of the tree of codes lies
	hdr   [32]byte    // key of the headers
	epoch [16]byte    // of this opening
	aead  cipher.AEAD // its key
	life  uint64      // its write verifier
	code  coder
}

// New returns the seal of the volume with a key, a UUID, and a first home block, in epoch zero. The key is the
// volume's random key; those used here are derived from it.
func New(key [32]byte, uuid [16]byte, home uint64) *Seal {
	s := &Seal{key: key, uuid: uuid, home: home, hdr: sha256.Sum256(append([]byte("tansy journal header v3"), key[:]...))}
	s.begin()
	s.code = newCoder(key)
	return s
}

// NewEpoch begins an epoch: a random number of 128 bits.
func (s *Seal) NewEpoch() {
	rand.Read(s.epoch[:])
	s.begin()
}

// Continue goes on with the epoch of header h.
func (s *Seal) Continue(h *dbytes.Blk) {
	copy(s.epoch[:], h.Data()[hdrEpoch:hdrRoot])
	s.begin()
}

// begin makes what belongs to the epoch.
func (s *Seal) begin() {
	s.aead = s.epochKey(s.epoch[:])
	life := sha256.Sum256(slices.Concat([]byte("tansy write verifier"), s.key[:], s.epoch[:]))
	s.life = le.Uint64(life[:])
}

// Verifier is the write verifier of this epoch: clients see it, so it tells nothing of epoch and key.
func (s *Seal) Verifier() uint64 { return s.life }

// epochKey is the key of an epoch's tags.
func (s *Seal) epochKey(epoch []byte) cipher.AEAD {
	k := sha256.Sum256(slices.Concat([]byte("tansy journal seal v3"), s.key[:], epoch))
	return gcm(k[:])
}

func gcm(key []byte) cipher.AEAD {
	b, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the length is right
	}
	aead, err := cipher.NewGCM(b)
	if err != nil {
		panic(err)
	}
	return aead
}

// Sign returns the descriptor block of group sq, with the blocks bm in the log and the
// direct blocks hm, and the codes of these. All groups with numbers below dur are durable; sq - dur is below 1000.
func (s *Seal) Sign(sq, dur, pos uint64, bm, hm *blockmap.Map) (*dbytes.Blk, *codes.Codes) {
	buf := dbytes.NewBytes(dbytes.BlkSize)
	b := buf.Data
	copy(b, descMagic)
	copy(b[8:], s.uuid[:])
	le.PutUint64(b[24:], sq)
	le.PutUint64(b[32:], pos)
	le.PutUint16(b[40:], uint16(bm.Len()))
	le.PutUint16(b[42:], uint16(sq-dur))
	le.PutUint32(b[44:], uint32(hm.Len()))
	copy(b[descEpoch:], s.epoch[:])
	at := b[descAddrs:]
	for _, l := range [2][]uint64{bm.Addrs(), hm.Addrs()} {
		for _, a := range l {
			le.PutUint64(at, a)
			at = at[8:]
		}
	}
	prints := s.prints(s.aead, sq, bm.Blks(), hm.Blks(), hm.Addrs())
	tag := tagOf(s.aead, sq, dataIndex, prints)
	copy(b[dataTag:], tag[:])
	tag = tagOf(s.aead, sq, 0, b) // as tagOfDesc: where it goes there are zeros yet
	copy(b[descTag:], tag[:])
	c := codes.New()
	s.addCodes(c, hm.Addrs(), prints[tagSize*bm.Len():])
	return dbytes.Freeze(buf), c
}

// addCodes appends the codes of the blocks at some addresses, as they stand in codes, to c.
func (s *Seal) addCodes(c *codes.Codes, at []uint64, codes []byte) {
	c.Grow(len(at))
	for i, a := range at {
		k := codes[i*tagSize:]
		c.Add(a-s.home, le.Uint64(k), le.Uint64(k[8:]))
	}
}

func tagOf(key cipher.AEAD, sq uint64, index uint32, msg []byte) [tagSize]byte {
	w := works.Get().(*work)
	defer works.Put(w)
	w.mac(key, w.tag[:], sq, index, msg)
	return w.tag
}

// tagOfDesc is the tag of the descriptor in b.
func tagOfDesc(key cipher.AEAD, sq uint64, b []byte) [tagSize]byte {
	msg := slices.Clone(b)
	clear(msg[descTag : descTag+tagSize])
	return tagOf(key, sq, 0, msg)
}

// share is the least number of blocks that is worth a goroutine.
const share = 64

// prints are 16 bytes for each data block of a record, one behind the other: the tags of those in the log, ring, and
// the codes of the direct ones, which lie at the addresses at. The record waits for them, so all processors help with a
// long one.
func (s *Seal) prints(key cipher.AEAD, sq uint64, ring, direct []*dbytes.Blk, at []uint64) []byte {
	n := len(ring) + len(direct)
	all := make([]byte, tagSize*n)
	some := func(from, to int) {
		w := works.Get().(*work)
		defer works.Put(w)
		for i := from; i < to; i++ {
			dst := all[i*tagSize : (i+1)*tagSize]
			if i < len(ring) {
				w.mac(key, dst, sq, uint32(i+1), ring[i].Data())
			} else {
				k := i - len(ring)
				s.code.put(w, dst, at[k]-s.home, direct[k].Data())
			}
		}
	}
	shares := max(1, min(n/share, runtime.GOMAXPROCS(0)))
	var wg sync.WaitGroup
	for k := range shares - 1 {
		wg.Go(func() { some(k*n/shares, (k+1)*n/shares) })
	}
	some((shares-1)*n/shares, n)
	wg.Wait()
	return all
}

// Check says whether d, with the data blocks x and then y in the log and the direct blocks z, was sealed with this key
// for this volume, in whatever epoch. If so, c gets the codes of the direct blocks.
func (s *Seal) Check(d *Descriptor, x, y, z *ddisk.BList, c *codes.Codes) bool {
	if !s.Vouch(d) || uint64(len(z.Blks)) != d.M() {
		return false
	}
	at := make([]uint64, d.M())
	for i := range at {
		at[i] = d.Dir(uint64(i))
	}
	key, ring := s.epochKey(d.epoch()), slices.Concat(x.Blks, y.Blks)
	prints := s.prints(key, d.Sq(), ring, z.Blks, at)
	sealed := prints
	if d.tags() {
		sealed = s.prints(key, d.Sq(), slices.Concat(ring, z.Blks), nil, nil)
	}
	tag := tagOf(key, d.Sq(), dataIndex, sealed)
	if string(tag[:]) != string(d.b.Data()[dataTag:dataTag+tagSize]) {
		return false
	}
	s.addCodes(c, at, prints[tagSize*len(ring):])
	return true
}

// Vouch says whether d was sealed with this key for this volume, whatever became of its data.
func (s *Seal) Vouch(d *Descriptor) bool {
	b := d.b.Data()
	if string(b[8:24]) != string(s.uuid[:]) {
		return false
	}
	tag := tagOfDesc(s.epochKey(d.epoch()), d.Sq(), b)
	return string(tag[:]) == string(b[descTag:descTag+tagSize])
}

// EncHdr returns the header block for the first sequence number q, in this epoch, with a tree of codes
// whose root has the code r0, r1.
func (s *Seal) EncHdr(q, r0, r1 uint64) *dbytes.Blk {
	buf := dbytes.NewBytes(dbytes.BlkSize)
	b := buf.Data
	copy(b, hdrMagic)
	copy(b[8:], s.uuid[:])
	le.PutUint64(b[24:], q)
	copy(b[hdrEpoch:], s.epoch[:])
	le.PutUint64(b[hdrRoot:], r0)
	le.PutUint64(b[hdrRoot+8:], r1)
	copy(b[hdrTag:], s.sealOfHdr(b))
	return dbytes.Freeze(buf)
}

func (s *Seal) sealOfHdr(b []byte) []byte {
	h := hmac.New(sha256.New, s.hdr[:])
	h.Write(b[:hdrTag])
	return h.Sum(nil)
}

// DecHdr returns the first sequence number in a header block; false = it is none.
func (s *Seal) DecHdr(x *dbytes.Blk) (bool, uint64) {
	q := le.Uint64(x.Data()[24:])
	return q < 1<<62 && s.isHdr(x.Data()), q
}

func (s *Seal) isHdr(b []byte) bool {
	magic := string(b[:8])
	known := magic == hdrMagic || magic == noLagHdrMagic || magic == tagsHdrMagic
	return known && string(b[8:24]) == string(s.uuid[:]) && hmac.Equal(b[hdrTag:hdrEnd], s.sealOfHdr(b))
}

// Root returns the code of the root in a header.
func (s *Seal) Root(h *dbytes.Blk) (r0, r1 uint64) { return h.U64(hdrRoot), h.U64(hdrRoot + 8) }

// Under says whether h is a header, and of the epoch of d.
func (s *Seal) Under(d *Descriptor, h *dbytes.Blk) bool { return s.headerOf(h, d.epoch()) }

// Ours says whether h is a header of this opening's epoch.
func (s *Seal) Ours(h *dbytes.Blk) bool { return s.headerOf(h, s.epoch[:]) }

func (s *Seal) headerOf(h *dbytes.Blk, epoch []byte) bool {
	return s.isHdr(h.Data()) && string(h.Data()[hdrEpoch:hdrRoot]) == string(epoch)
}

// Descriptor is a block that looks like a descriptor.
type Descriptor struct{ b *dbytes.Blk }

// Parse returns b as a descriptor, or nil if it does not look like one.
func Parse(b *dbytes.Blk) *Descriptor {
	d := &Descriptor{b}
	most := uint64(0)
	switch d.magic() {
	case descMagic:
		most = min(d.Sq(), maxLag-1)
	case noLagMagic, tagsMagic:
	default:
		return nil
	}
	if d.lag() > most || d.N()+d.M() > GroupMax {
		return nil
	}
	return d
}

func (d *Descriptor) magic() string { return string(d.b.Data()[:8]) }

// tags says whether the direct blocks have tags, not codes, in d's tag of the data.
func (d *Descriptor) tags() bool { return d.magic() == tagsMagic }

func (d *Descriptor) lag() uint64 { return uint64(d.b.U32(40) >> 16) }

func (d *Descriptor) epoch() []byte { return d.b.Data()[descEpoch:dataTag] }

// Sq is the sequence number.
func (d *Descriptor) Sq() uint64 { return d.b.U64(24) }

// Dur is the number below which all groups were durable when this one was sealed.
func (d *Descriptor) Dur() uint64 { return d.Sq() - d.lag() }

// Pos is the position of the first data block.
func (d *Descriptor) Pos() uint64 { return d.b.U64(32) }

// N is the number of data blocks in the log.
func (d *Descriptor) N() uint64 { return uint64(d.b.U32(40) & 0xFFFF) }

// Addr is the home address of block i in the log.
func (d *Descriptor) Addr(i uint64) uint64 { return d.b.U64(descAddrs + 8*i) }

// M is the number of direct blocks.
func (d *Descriptor) M() uint64 { return uint64(d.b.U32(44)) }

// Dir is the address of direct block i.
func (d *Descriptor) Dir(i uint64) uint64 { return d.Addr(d.N() + i) }
