package main

import "golang.org/x/sys/unix"

// executable is a path of this program, even if its file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// dup2 is dup2(2), which not all of Linux's processors have.
func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// inMemory tells whether a file lies in memory alone.
func inMemory(file string) bool {
	var st unix.Statfs_t
	err := unix.Statfs(file, &st)
	return err == nil && (st.Type == unix.TMPFS_MAGIC || st.Type == unix.RAMFS_MAGIC)
}
