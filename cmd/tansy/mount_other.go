//go:build !linux

package main

import (
	"errors"
	"math"
	"runtime"
)

func mountCommand(args []string) int { return onLinux("mount", args) }
func umount(args []string) int       { return onLinux("umount", args) }
func mountHelper(args []string) int  { return onLinux("mount", args) }

// onLinux is a sub-command that only Linux has.
func onLinux(name string, args []string) int {
	f := newFlags(name, "", "  none: Linux alone has this command. Serve the volume (tansy serve), and mount it by NFS.\n")
	if _, code, done := parse(f, args, 0, math.MaxInt); done {
		return code
	}
	return fail(name, errors.New("there is no such command for "+runtime.GOOS+": serve the volume (tansy serve), and mount it by NFS"))
}
