package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// A Pattern is the contents of a file: noise, with the file's number and the
// block's place stamped into every block of PatternBlock bytes. So data that
// comes from elsewhere shows, and checking costs little more than a comparison.
type Pattern struct {
	File uint64
}

// PatternBlock is the size of a stamped block in bytes.
const PatternBlock = 4096

var noise = func() []byte {
	b := make([]byte, PatternBlock)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

// Fill writes the contents from off on, a multiple of PatternBlock, to b.
func (p Pattern) Fill(b []byte, off uint64) {
	for len(b) > 0 {
		n := copy(b, noise)
		p.stamp(b[:16], off)
		b, off = b[n:], off+uint64(n)
	}
}

func (p Pattern) stamp(b []byte, off uint64) {
	binary.LittleEndian.PutUint64(b, p.File)
	binary.LittleEndian.PutUint64(b[8:], off)
}

// Check compares b with the contents from off on.
func (p Pattern) Check(b []byte, off uint64) error {
	var stamp [16]byte
	for len(b) > 0 {
		n := min(len(b), PatternBlock)
		p.stamp(stamp[:], off)
		if n < 16 || !bytes.Equal(b[:16], stamp[:]) || !bytes.Equal(b[16:n], noise[16:n]) {
			return fmt.Errorf("WRONG DATA at byte %d", off)
		}
		b, off = b[n:], off+uint64(n)
	}
	return nil
}
