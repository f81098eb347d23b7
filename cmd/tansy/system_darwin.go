package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// executable is the path of this program.
func executable() (string, error) { return os.Executable() }

// dup2 is dup2(2).
func dup2(from, to int) error { return unix.Dup2(from, to) }

// inMemory tells whether a file lies in memory alone.
func inMemory(file string) bool {
	var st unix.Statfs_t
	return unix.Statfs(file, &st) == nil && unix.ByteSliceToString(st.Fstypename[:]) == "tmpfs"
}
