package nfs3

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"

	"tansy/fs"
)

// HandleSize is the length of a file handle in bytes:
//
//	0  volume      8 bytes, which volume the file is on
//	8  inode       8 bytes, big-endian
//	16 generation  8 bytes, big-endian
//	24 tag         8 bytes, AES-128(key, inode, generation), truncated
//
// The key is the volume's, so a handle stays good for as long as the file
// exists, wherever the volume is served; and a handle that was not given out by
// a server of the volume is refused, except with probability 2^-64.
const HandleSize = 32

// handles makes and checks file handles.
type handles struct {
	volume [8]byte
	mac    cipher.Block
}

func newHandles(volume [8]byte, key [16]byte) *handles {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // 16 bytes are a key
	}
	return &handles{volume: volume, mac: block}
}

// put stores the handle of h in dst, which has HandleSize bytes.
func (k *handles) put(dst []byte, h fs.Handle, scratch *[64]byte) {
	copy(dst, k.volume[:])
	binary.BigEndian.PutUint64(dst[8:], h.Ino)
	binary.BigEndian.PutUint64(dst[16:], h.Gen)
	copy(dst[24:HandleSize], k.tag(dst[8:24], scratch))
}

// tag returns the tag of 16 bytes of inode and generation. It lies in scratch,
// which saves an allocation per call.
func (k *handles) tag(id []byte, scratch *[64]byte) []byte {
	copy(scratch[:16], id)
	k.mac.Encrypt(scratch[16:32], scratch[:16])
	return scratch[16:24]
}

// parse checks a handle: NFS3ERR_BADHANDLE if it has the wrong length or was not
// made here, NFS3ERR_STALE if it is of another volume.
func (k *handles) parse(b []byte, scratch *[64]byte) (fs.Handle, error) {
	if len(b) != HandleSize {
		return fs.Handle{}, fs.ErrBadHandle
	}
	if [8]byte(b[:8]) != k.volume {
		return fs.Handle{}, fs.ErrStale
	}
	if subtle.ConstantTimeCompare(k.tag(b[8:24], scratch), b[24:]) != 1 {
		return fs.Handle{}, fs.ErrBadHandle
	}
	return fs.Handle{Ino: binary.BigEndian.Uint64(b[8:]), Gen: binary.BigEndian.Uint64(b[16:])}, nil
}
