// Package checksum is the Go behind verified/trusted/checksum.s.dfy: the checksum of a
// superblock, SHA-256.
package checksum

import (
	"crypto/sha256"

	"tansy/internal/runtime/dbytes"
)

// Sum returns the SHA-256 of the first n bytes of b.
func Sum(b *dbytes.Bytes, n uint64) *dbytes.Bytes {
	s := sha256.Sum256(b.Data[:n])
	return &dbytes.Bytes{Data: s[:]}
}
