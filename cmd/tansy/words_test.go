package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// saying runs a command in this process, and returns its exit code and what it said on standard output and error.
func saying(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	read := func(f *os.File) string {
		defer f.Close()
		text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = open("out"), open("errs")
	defer func() { os.Stdout, os.Stderr = stdout, stderr }()
	code = run(args)
	return code, read(os.Stdout), read(os.Stderr)
}
