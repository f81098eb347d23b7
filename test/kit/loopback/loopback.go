// Package loopback has an address of this machine for each process of tests. A port of it that was closed is given to
// no other process meanwhile, as one of 127.0.0.1 may be when tests of several clones run.
package loopback

import (
	"net"
	"os"
	"runtime"
)

// Address is an IPv4 address of the loopback device. On Linux, which has all of 127.0.0.0/8, no other process that
// lives has the same.
func Address() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1"
	}
	pid := os.Getpid() // at most 22 bits
	return net.IPv4(127, byte(64|pid>>16), byte(pid>>8), byte(pid)).String()
}
