package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// A pattern is the contents of a file: noise, with the file's number and the
// block's place stamped into every block of patternBlock bytes. So data that
// comes from elsewhere shows, and checking costs little more than a comparison.
type pattern struct {
	file uint64
}

const patternBlock = 4096

var noise = func() []byte {
	b := make([]byte, patternBlock)
	rand.NewChaCha8([32]byte{1}).Read(b)
	return b
}()

// fill writes the contents from off on, a multiple of patternBlock, to b.
func (p pattern) fill(b []byte, off uint64) {
	for len(b) > 0 {
		n := copy(b, noise)
		p.stamp(b[:16], off)
		b, off = b[n:], off+uint64(n)
	}
}

func (p pattern) stamp(b []byte, off uint64) {
	binary.LittleEndian.PutUint64(b, p.file)
	binary.LittleEndian.PutUint64(b[8:], off)
}

// check compares b with the contents from off on.
func (p pattern) check(b []byte, off uint64) error {
	var stamp [16]byte
	for len(b) > 0 {
		n := min(len(b), patternBlock)
		p.stamp(stamp[:], off)
		if n < 16 || !bytes.Equal(b[:16], stamp[:]) || !bytes.Equal(b[16:n], noise[16:n]) {
			return fmt.Errorf("WRONG DATA at byte %d", off)
		}
		b, off = b[n:], off+uint64(n)
	}
	return nil
}
