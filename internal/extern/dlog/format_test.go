package dlog

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

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
	for i, n := range []int{0, 1, 3, 60, GroupMax} {
		m := group(r, n)
		sq, pos := uint64(i)<<40+7, r.Uint64()
		head := le.AppendUint64(le.AppendUint64(le.AppendUint64(append([]byte("TansyLog"), uuid[:]...), sq), pos), uint64(n))
		var addrs, tags []byte
		for j, a := range m.addrs {
			addrs = le.AppendUint64(addrs, a)
			tags = append(tags, gmac(sq, uint32(j+1), m.blks[j].Data())...)
		}
		block := func(tag []byte) []byte {
			b := append(append(bytes.Clone(head), tag...), addrs...)
			return append(b, make([]byte, 4096-len(b))...)
		}
		want := block(gmac(sq, 0, append(block(make([]byte, 16)), tags...)))
		if !bytes.Equal(s.Sign(sq, pos, m).Data(), want) {
			t.Errorf("descriptor of %d blocks", n)
		}
		h := le.AppendUint64(append([]byte("TansyHdr"), uuid[:]...), sq)
		h = append(h, gmac(sq, 1<<32-1, h)...)
		if !bytes.Equal(s.EncHdr(sq).Data(), append(h, make([]byte, 4096-len(h))...)) {
			t.Errorf("header of %d", sq)
		}
	}
}

// TestOtherVolume: a record or header of another volume is refused, also under the
// same key.
func TestOtherVolume(t *testing.T) {
	a, b := NewSeal([32]byte{1}, [16]byte{1}), NewSeal([32]byte{1}, [16]byte{2})
	m := group(rand.New(rand.NewPCG(4, 0)), 3)
	d := Parse(a.Sign(9, 1, m))
	l := &ddisk.BList{Blks: m.blks}
	if !a.Check(d, l, &ddisk.BList{}) || b.Check(d, l, &ddisk.BList{}) {
		t.Error("record")
	}
	h := a.EncHdr(9)
	ok, _ := a.DecHdr(h)
	if other, _ := b.DecHdr(h); !ok || other {
		t.Error("header")
	}
}
