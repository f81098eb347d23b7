//go:build !linux && !darwin

package main

import (
	"io"

	tansyfs "tansy/fs"
	"tansy/nfs/nlm"
)

// localMount is nothing here: Linux and macOS alone have mounts.
type localMount struct{}

func (localMount) flags(*flagSet)           {}
func (localMount) wrong([]place) string     { return "" }
func (localMount) find() error              { return nil }
func (localMount) memory() int64            { return 0 }
func (localMount) print(io.Writer, *volume) {}
func (localMount) end(*volume) bool         { return true }
func (localMount) lockBeside(*nlm.Local)    {}
func (localMount) start(v *volume, _, _ bool) (tansyfs.OnceFileSystem, error) {
	return v.fs, nil
}
