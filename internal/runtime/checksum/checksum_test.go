package checksum

import (
	"bytes"
	"crypto/sha256"
	"testing"
	"testing/quick"

	"tansy/internal/runtime/dbytes"
)

// Sum is a function of the first n bytes, leaves its argument alone, gives 32
// bytes of its own, and is SHA-256.
func TestSum(t *testing.T) {
	f := func(p []byte, tail byte, cut uint16) bool {
		n := uint64(cut) % uint64(len(p)+1)
		b := &dbytes.Bytes{Data: bytes.Clone(p)}
		s := Sum(b, n)
		want := sha256.Sum256(p[:n])
		if !bytes.Equal(b.Data, p) || !bytes.Equal(s.Data, want[:]) {
			return false
		}
		longer := &dbytes.Bytes{Data: append(bytes.Clone(p[:n]), tail)}
		again := Sum(longer, n)
		s.Data[0]++ // not shared with the next result
		return bytes.Equal(again.Data, want[:])
	}
	if err := quick.Check(f, nil); err != nil {
		t.Fatal(err)
	}
}
