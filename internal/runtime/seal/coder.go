package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"sync"

	"tansy/internal/runtime/dbytes"
)

// coder makes the codes of the tree of codes: 128 bits of a node's number and contents. It is a GMAC with the
// number as its nonce, encrypted with AES under another key. A node has many contents in its life, all with the
// same nonce, which a GMAC alone would not forgive: two tags of one nonce tell of its key. Behind the
// encryption nobody sees the tags.
type coder struct {
	mac cipher.AEAD
	enc cipher.Block
}

func newCoder(key [32]byte) coder {
	mac := sha256.Sum256(append([]byte("tansy tree of codes: mac"), key[:]...))
	enc := sha256.Sum256(append([]byte("tansy tree of codes: encryption"), key[:]...))
	b, err := aes.NewCipher(enc[:])
	if err != nil {
		panic(err) // the length is right
	}
	return coder{mac: gcm(mac[:]), enc: b}
}

// Code returns the code of contents b of node x.
func (s *Seal) Code(x uint64, b *dbytes.Blk) (c0, c1 uint64) {
	w := works.Get().(*work)
	defer works.Put(w)
	s.code.put(w, w.tag[:], x, b.Data())
	return le.Uint64(w.tag[:]), le.Uint64(w.tag[8:])
}

// put makes the 16 bytes of dst the code of contents b of node x.
func (c coder) put(w *work, dst []byte, x uint64, b []byte) {
	w.mac(c.mac, dst, x, 0, b)
	c.enc.Encrypt(dst, dst)
	if le.Uint64(dst) == 0 && le.Uint64(dst[8:]) == 0 {
		le.PutUint64(dst[8:], 1) // 0 stands for zeros
	}
}

// work is the memory for one code or tag, of which one is made for every block that is read or written.
type work struct {
	nonce [12]byte
	tag   [tagSize]byte
}

var works = sync.Pool{New: func() any { return new(work) }}

// mac makes the 16 bytes of dst the GMAC of msg under a nonce of 8 and 4 bytes.
func (w *work) mac(key cipher.AEAD, dst []byte, n uint64, index uint32, msg []byte) {
	le.PutUint64(w.nonce[:], n)
	le.PutUint32(w.nonce[8:], index)
	key.Seal(dst[:0], w.nonce[:], nil, msg)
}
