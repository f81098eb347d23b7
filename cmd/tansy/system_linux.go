package main

import "golang.org/x/sys/unix"

// executable is a path of this program, even if its file has been replaced.
func executable() (string, error) { return "/proc/self/exe", nil }

// dup2 is dup2(2), which not all of Linux's processors have.
func dup2(from, to int) error { return unix.Dup3(from, to, 0) }
