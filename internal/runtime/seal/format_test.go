package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/internal/runtime/blockmap"
	"tansy/internal/runtime/codes"
	"tansy/internal/runtime/dbytes"
	"tansy/internal/runtime/ddisk"
)

// TestFormat computes records as seal.go describes them, in another way: the format
// must never change, and no nonce may be used for two messages. Records of the formats before are accepted, too.
func TestFormat(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	key, uuid := [32]byte{3, 4}, [16]byte{5, 6}
	s := New(key, uuid, 7)
	s.NewEpoch()
	if s.epoch == [16]byte{} {
		t.Fatal("the epoch is not random")
	}
	aesOf := func(parts ...[]byte) cipher.Block {
		k := sha256.Sum256(slices.Concat(parts...))
		b, err := aes.NewCipher(k[:])
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	gcmOf := func(b cipher.Block) cipher.AEAD {
		g, err := cipher.NewGCM(b)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	seal := gcmOf(aesOf([]byte("tansy journal seal v3"), key[:], s.epoch[:]))
	real := map[[12]byte]bool{}
	used := real
	gmac := func(sq uint64, index uint32, msg []byte) []byte {
		nonce := le.AppendUint32(le.AppendUint64(nil, sq), index)
		if used[[12]byte(nonce)] {
			t.Fatalf("nonce (%d, %d) is used twice", sq, index)
		}
		used[[12]byte(nonce)] = true
		return seal.Seal(nil, nonce, nil, msg)
	}
	codeMac := gcmOf(aesOf([]byte("tansy tree of codes: mac"), key[:]))
	codeEnc := aesOf([]byte("tansy tree of codes: encryption"), key[:])
	code := func(x uint64, msg []byte) []byte {
		c := codeMac.Seal(nil, le.AppendUint32(le.AppendUint64(nil, x), 0), nil, msg)
		codeEnc.Encrypt(c, c)
		return c
	}
	for i, c := range [][2]int{
		{0, 0}, {1, 0}, {3, 0}, {60, 0}, {128, 0}, {130, 65}, {GroupMax, 0}, {0, 1}, {2, 3}, {0, GroupMax}, {1, GroupMax - 1},
	} {
		n, direct := c[0], c[1]
		m, h := group(r, n), group(r, direct)
		sq, pos, lag := uint64(i)<<40+7, r.Uint64(), r.Uint64N(8)
		sealed := func(magic string, withCodes bool, lag uint64) []byte {
			head := le.AppendUint64(le.AppendUint64(append([]byte(magic), uuid[:]...), sq), pos)
			head = append(le.AppendUint32(le.AppendUint16(le.AppendUint16(head, uint16(n)), uint16(lag)), uint32(direct)),
				s.epoch[:]...)
			var addrs, tags []byte
			for j, a := range slices.Concat(m.Addrs(), h.Addrs()) {
				addrs = le.AppendUint64(addrs, a)
				b := slices.Concat(m.Blks(), h.Blks())[j]
				if withCodes && j >= n {
					tags = append(tags, code(a-7, b.Data())...)
				} else {
					tags = append(tags, gmac(sq, uint32(j+1), b.Data())...)
				}
			}
			head = append(head, gmac(sq, 1<<32-1, tags)...)
			block := func(tag []byte) []byte {
				b := append(append(bytes.Clone(head), tag...), addrs...)
				return append(b, make([]byte, 4096-len(b))...)
			}
			return block(gmac(sq, 0, block(make([]byte, 16))))
		}
		used = real
		if b, _ := s.Sign(sq, sq-lag, pos, m, h); !bytes.Equal(b.Data(), sealed("TansyLg5", true, lag)) {
			t.Errorf("descriptor of %d and %d blocks", n, direct)
		}
		for _, magic := range []string{"TansyLg5", "TansyLg4", "TansyLg3"} {
			lag := lag
			if magic != "TansyLg5" {
				lag = 0
			}
			for _, withCodes := range []bool{true, false} {
				x, y, z := data(m, h, n/2)
				c := codes.New()
				used = map[[12]byte]bool{} // the same messages again, and what was never sealed
				d := Parse(dbytes.BlkOf(sealed(magic, withCodes, lag)))
				if d.Dur() != sq-lag {
					t.Errorf("%s of %d: %d were durable, not %d", magic, sq, d.Dur(), sq-lag)
				}
				good := s.Check(d, x, y, z, c)
				if good != (direct == 0 || withCodes == (magic != "TansyLg3")) || good && !codesFit(s, c.Nodes(), h) {
					t.Errorf("%s of %d and %d blocks, with codes %v: %v", magic, n, direct, withCodes, good)
				}
			}
		}
		for _, magic := range []string{"TansyLg2", "TansyLg6"} {
			used = map[[12]byte]bool{}
			if Parse(dbytes.BlkOf(sealed(magic, true, 0))) != nil {
				t.Error("a descriptor of another format is parsed")
			}
		}
		for _, magic := range []string{"TansyLg3", "TansyLg4"} {
			used = map[[12]byte]bool{}
			if Parse(dbytes.BlkOf(sealed(magic, true, 1))) != nil {
				t.Error("a descriptor of a format before has a lag")
			}
		}
		header := func(magic string) []byte {
			hdr := append(le.AppendUint64(append([]byte(magic), uuid[:]...), sq), s.epoch[:]...)
			hdr = le.AppendUint64(le.AppendUint64(hdr, sq+1), sq+2)
			k := sha256.Sum256(append([]byte("tansy journal header v3"), key[:]...))
			mac := hmac.New(sha256.New, k[:])
			mac.Write(hdr)
			hdr = mac.Sum(hdr)
			return append(hdr, make([]byte, 4096-len(hdr))...)
		}
		if !bytes.Equal(s.EncHdr(sq, sq+1, sq+2).Data(), header("TansyHd7")) {
			t.Errorf("header of %d", sq)
		}
		for _, magic := range []string{"TansyHd5", "TansyHd6"} {
			ok, q := s.DecHdr(dbytes.BlkOf(header(magic)))
			if r0, r1 := s.Root(dbytes.BlkOf(header(magic))); !ok || q != sq || r0 != sq+1 || r1 != sq+2 {
				t.Error("a header of a format before is refused")
			}
		}
		for _, magic := range []string{"TansyHd4", "TansyHd8"} {
			if ok, _ := s.DecHdr(dbytes.BlkOf(header(magic))); ok {
				t.Error("a header of another format is accepted")
			}
		}
	}
}

// TestLife: an epoch has one write verifier, no two have the same, and it is neither part of the epoch nor another
// volume's.
func TestLife(t *testing.T) {
	s, other := New([32]byte{1}, [16]byte{1}, 0), New([32]byte{2}, [16]byte{1}, 0)
	seen := map[uint64]bool{s.Verifier(): true}
	for range 100 {
		s.NewEpoch()
		v := s.Verifier()
		if seen[v] {
			t.Fatal("two epochs have one verifier")
		}
		seen[v] = true
		if v != s.Verifier() {
			t.Fatal("an epoch has two verifiers")
		}
		if v == le.Uint64(s.epoch[:]) || v == le.Uint64(s.epoch[8:]) {
			t.Fatal("the verifier tells the epoch")
		}
		h := s.EncHdr(9, 0, 0)
		if other.Continue(h); other.Verifier() == v {
			t.Fatal("two volumes have one verifier")
		}
		s.Continue(h)
		if s.Verifier() != v {
			t.Fatal("an epoch that goes on has another verifier")
		}
	}
}

// TestEpochs: a record counts in whatever epoch, and it is known in which; a header is
// ours only in the epoch of this opening.
func TestEpochs(t *testing.T) {
	s := New([32]byte{1}, [16]byte{1}, 0)
	m := group(rand.New(rand.NewPCG(4, 0)), 3)
	l, none, c := &ddisk.BList{Blks: m.Blks()}, &ddisk.BList{}, codes.New()
	var descs []*Descriptor
	var heads []*dbytes.Blk
	for range 3 {
		s.NewEpoch()
		b, _ := s.Sign(9, 7, 1, m, blockmap.New())
		descs = append(descs, Parse(b))
		heads = append(heads, s.EncHdr(9, 0, 0))
	}
	for i, d := range descs {
		if !s.Vouch(d) || !s.Check(d, l, none, none, c) {
			t.Errorf("record of epoch %d is refused", i)
		}
		if s.Check(d, none, none, none, c) || !s.Vouch(d) {
			t.Errorf("epoch %d: a descriptor without its data is to be vouched for, and is no record", i)
		}
		if s.Ours(heads[i]) != (i == 2) {
			t.Errorf("epoch %d: is the header ours?", i)
		}
		for j, h := range heads {
			if s.Under(d, h) != (i == j) {
				t.Errorf("record of epoch %d, header of epoch %d", i, j)
			}
			if s.Under(d, flip(h, 8*20)) || s.Ours(flip(h, 8*20)) {
				t.Error("a damaged header counts")
			}
		}
		for bit := range 8 * (descAddrs + 24) {
			if e := Parse(flip(d.b, bit)); e != nil && s.Vouch(e) {
				t.Fatalf("bit %d of the descriptor does not matter", bit)
			}
		}
	}
	if New([32]byte{2}, [16]byte{1}, 0).Vouch(descs[0]) || New([32]byte{1}, [16]byte{2}, 0).Vouch(descs[0]) {
		t.Error("another volume's descriptor is vouched for")
	}
}

// TestOtherVolume: a record or header of another volume is refused, also under the
// same key.
func TestOtherVolume(t *testing.T) {
	a, b := New([32]byte{1}, [16]byte{1}, 0), New([32]byte{1}, [16]byte{2}, 0)
	m := group(rand.New(rand.NewPCG(4, 0)), 3)
	desc, _ := a.Sign(9, 7, 1, m, blockmap.New())
	d := Parse(desc)
	l, none, c := &ddisk.BList{Blks: m.Blks()}, &ddisk.BList{}, codes.New()
	if !a.Check(d, l, none, none, c) || b.Check(d, l, none, none, c) {
		t.Error("record")
	}
	h := a.EncHdr(9, 0, 0)
	ok, _ := a.DecHdr(h)
	if other, _ := b.DecHdr(h); !ok || other {
		t.Error("header")
	}
}
