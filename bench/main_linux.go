package main

import (
	"tansy/bench/eval"
	"tansy/bench/linux"
	"tansy/bench/peers"
)

var ofLinux = []measurement{
	{"eval", "the mount beside other local file systems, with the workloads of papers, " +
		"and what parts of the design are worth", eval.Main},
	{"peers", "a server beside NFS-Ganesha", peers.Main},
	{"linux", "a server beside the kernel's own, both through the kernel's client, in an emulated machine", linux.Main},
}

// beChild makes this process one that a measurement has started, if it is.
func beChild() {
	eval.BeChild()
	linux.BeChild()
}
