package fs

import "testing"

// MemFS gives the external tests a volume without a journal.
func MemFS(t testing.TB, blocks, inodes uint64, o Options) *FS { return memFS(t, blocks, inodes, o) }
