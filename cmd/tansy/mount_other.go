//go:build !linux && !darwin

package main

import (
	"errors"
	"math"
	"runtime"
)

func mountCommand(args []string) int { return elsewhere("mount", args) }
func umount(args []string) int       { return elsewhere("umount", args) }
func mountHelper(args []string) int  { return elsewhere("mount", args) }

// elsewhere is a sub-command that only Linux and macOS have.
func elsewhere(name string, args []string) int {
	f := newFlags(name, "", "  none: Linux and macOS alone have this command. Serve the volume (tansy serve), and "+
		"mount it by NFS.\n")
	if _, code, done := parse(f, args, 0, math.MaxInt); done {
		return code
	}
	return fail(name, errors.New("there is no such command for "+runtime.GOOS+": serve the volume (tansy serve), and "+
		"mount it by NFS"))
}
