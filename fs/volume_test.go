package fs_test

import (
	"testing"

	"tansy/fs"
)

func newVolume(t testing.TB, o fs.Options) *fs.FS { return fs.MemFS(t, 200000, 4000, o) }
