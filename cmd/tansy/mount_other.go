//go:build !linux && !darwin

package main

import (
	"errors"
	"math"
	"runtime"
)

func mountCommand() (*flagSet, action) { return elsewhere("mount") }
func umount() (*flagSet, action)       { return elsewhere("umount") }
func mountHelper(args []string) int    { return run(append([]string{"mount"}, args...)) }

// elsewhere is a sub-command that only Linux and macOS have.
func elsewhere(name string) (*flagSet, action) {
	f := newFlags(name, "", "  none: Linux and macOS alone have this command. Serve the volume (tansy serve), and "+
		"mount it by NFS.\n")
	return f, func(args []string) int {
		if _, code, done := parse(f, args, 0, math.MaxInt); done {
			return code
		}
		return fail(name, errors.New("there is no such command for "+runtime.GOOS+": serve the volume (tansy serve), and "+
			"mount it by NFS"))
	}
}
