// Package replay lets a random test run again as it ran when it failed: the test
// logs its seed, and `go test PACKAGE -run TEST -seed N` gives it that one. Only
// tests import it.
package replay

import (
	"flag"
	"math/rand/v2"
	"testing"
)

var seed = flag.Uint64("seed", 0, "replay the random tests with this seed; 0: a new one")

// Seed is for all that is random in the test.
func Seed(t testing.TB) uint64 {
	s := *seed
	for s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-seed %d", s)
	return s
}
