package dbytes

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH64.
const (
	p1 = 0x9E3779B185EBCA87
	p2 = 0xC2B2AE3D27D4EB4F
	p3 = 0x165667B19E3779F9
	p4 = 0x85EBCA77C2B2AE63
	p5 = 0x27D4EB2F165667C5
)

// NameHash is the hash of a directory entry's name: XXH64 with seed 0. It decides
// where entries lie on disk, so it can never change.
func NameHash(name *Bytes) uint64 { return XXH64(name.Data) }

// XXH64 is the XXH64 hash of s with seed 0
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md).
func XXH64(s []byte) uint64 {
	n := uint64(len(s))
	var h uint64
	if len(s) >= 32 {
		// Four lanes; the first lane's start, p1 + p2, wraps around, which a
		// constant expression must not.
		var a, b, c, d uint64 = p1, p2, 0, 0
		a += p2
		d -= p1
		for ; len(s) >= 32; s = s[32:] {
			a = round(a, binary.LittleEndian.Uint64(s))
			b = round(b, binary.LittleEndian.Uint64(s[8:]))
			c = round(c, binary.LittleEndian.Uint64(s[16:]))
			d = round(d, binary.LittleEndian.Uint64(s[24:]))
		}
		h = bits.RotateLeft64(a, 1) + bits.RotateLeft64(b, 7) + bits.RotateLeft64(c, 12) + bits.RotateLeft64(d, 18)
		for _, v := range [4]uint64{a, b, c, d} {
			h = (h^round(0, v))*p1 + p4
		}
	} else {
		h = p5
	}
	h += n
	for ; len(s) >= 8; s = s[8:] {
		h = bits.RotateLeft64(h^round(0, binary.LittleEndian.Uint64(s)), 27)*p1 + p4
	}
	if len(s) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(s))*p1, 23)*p2 + p3
		s = s[4:]
	}
	for _, x := range s {
		h = bits.RotateLeft64(h^uint64(x)*p5, 11) * p1
	}
	h = (h ^ h>>33) * p2
	h = (h ^ h>>29) * p3
	return h ^ h>>32
}

func round(acc, x uint64) uint64 { return bits.RotateLeft64(acc+x*p2, 31) * p1 }
