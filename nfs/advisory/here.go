package advisory

import "net/netip"

// ThisMachine is the host of programs on the server's own machine. No client has its address, which is none.
var ThisMachine = Host{Name: "local"}

// most is how much an address may have in all: what a client may, or half of all for this machine, whose programs are
// many and known, so that clients have the other half.
func (t *Table) most(a netip.Addr) int {
	if a == ThisMachine.Addr {
		return t.limits.All / 2
	}
	return t.limits.Client
}

// mostWaits is how often an address may wait.
func (t *Table) mostWaits(a netip.Addr) int {
	if a == ThisMachine.Addr {
		return t.limits.All / 4 // each counts two
	}
	return t.limits.Waits
}
