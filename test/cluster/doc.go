// Package cluster tries the ways in which the address of a volume moves to the server that took over, in network name
// spaces: two hosts and a client on a bridge, each with an interface eth0 of its own. The servers are real; instead of
// Ceph there is the stand-in of test/kit/rbdtest. Clients keep a TCP connection to the one address, and send calls
// without a reply again, as mounts with the option hard do.
//
//	go test ./test/cluster -v -takeovers 20 -seed 7 -timeout 15m    # as root
package cluster
