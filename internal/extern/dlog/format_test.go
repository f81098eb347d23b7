package dlog

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/internal/extern/dbytes"
	"tansy/internal/extern/ddisk"
)

// TestFormat computes records as seal.go describes them, in another way: the format
// must never change, and no nonce may be used for two messages.
func TestFormat(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	key, uuid := [32]byte{3, 4}, [16]byte{5, 6}
	s := NewSeal(key, uuid)
	k := sha256.Sum256(append([]byte("tansy journal seal v1"), key[:]...))
	ac, err := aes.NewCipher(k[:])
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(ac)
	if err != nil {
		t.Fatal(err)
	}
	used := map[[12]byte]bool{}
	gmac := func(sq uint64, index uint32, msg []byte) []byte {
		nonce := le.AppendUint32(le.AppendUint64(nil, sq), index)
		if used[[12]byte(nonce)] {
			t.Fatalf("nonce (%d, %d) is used twice", sq, index)
		}
		used[[12]byte(nonce)] = true
		return gcm.Seal(nil, nonce, nil, msg)
	}
	for i, c := range [][2]int{{0, 0}, {1, 0}, {3, 0}, {60, 0}, {128, 0}, {130, 65}, {GroupMax, 0}, {0, 1}, {2, 3}, {0, GroupMax}, {1, GroupMax - 1}} {
		n, direct := c[0], c[1]
		m, h := group(r, n), group(r, direct)
		sq, pos := uint64(i)<<40+7, r.Uint64()
		// without direct blocks, n is as it was in the first format: 64 bits
		head := le.AppendUint64(le.AppendUint64(le.AppendUint64(append([]byte("TansyLog"), uuid[:]...), sq), pos), uint64(n)+uint64(direct)<<32)
		var addrs, tags []byte
		for j, a := range slices.Concat(m.addrs, h.addrs) {
			addrs = le.AppendUint64(addrs, a)
			tags = append(tags, gmac(sq, uint32(j+1), slices.Concat(m.blks, h.blks)[j].Data())...)
		}
		block := func(tag []byte) []byte {
			b := append(append(bytes.Clone(head), tag...), addrs...)
			return append(b, make([]byte, 4096-len(b))...)
		}
		want := block(gmac(sq, 0, append(block(make([]byte, 16)), tags...)))
		if !bytes.Equal(s.Sign(sq, pos, m, h).Data(), want) {
			t.Errorf("descriptor of %d and %d blocks", n, direct)
		}
		header := func(magic string, index uint32) []byte { // other numbers stood for other layouts of the log
			hdr := le.AppendUint64(append([]byte(magic), uuid[:]...), sq)
			hdr = append(hdr, gmac(sq, index, hdr)...)
			return append(hdr, make([]byte, 4096-len(hdr))...)
		}
		if !bytes.Equal(s.EncHdr(sq).Data(), header("TansyHd3", 1<<32-3)) {
			t.Errorf("header of %d", sq)
		}
		if ok, _ := s.DecHdr(dbytes.BlkOf(header("TansyHd2", 1<<32-2))); ok {
			t.Error("a header of another kind is accepted")
		}
	}
}

// TestOtherVolume: a record or header of another volume is refused, also under the
// same key.
func TestOtherVolume(t *testing.T) {
	a, b := NewSeal([32]byte{1}, [16]byte{1}), NewSeal([32]byte{1}, [16]byte{2})
	m := group(rand.New(rand.NewPCG(4, 0)), 3)
	d := Parse(a.Sign(9, 1, m, NewBMap()))
	l, none := &ddisk.BList{Blks: m.blks}, &ddisk.BList{}
	if !a.Check(d, l, none, none) || b.Check(d, l, none, none) {
		t.Error("record")
	}
	h := a.EncHdr(9)
	ok, _ := a.DecHdr(h)
	if other, _ := b.DecHdr(h); !ok || other {
		t.Error("header")
	}
}
