package fs_test

import (
	"flag"
	"math/rand"
	"testing"
	"time"

	"tansy/fs"
)

var (
	seedFlag = flag.Int64("seed", 0, "replay the random tests with this seed")
	opsFlag  = flag.Int("ops", 20000, "operations of a random test")
)

func seed(t testing.TB) int64 {
	s := *seedFlag
	if s == 0 {
		s = time.Now().UnixNano()
	}
	t.Logf("seed %d", s)
	return s
}

func random(t testing.TB) *rand.Rand { return rand.New(rand.NewSource(seed(t))) }

func newVolume(t testing.TB, o fs.Options) *fs.FS { return fs.MemFS(t, 200000, 4000, o) }
