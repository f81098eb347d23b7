//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// announce sends a gratuitous ARP reply: whoever knows the address takes it to be here from now on.
func announce(device, address string) {
	dev, err := net.InterfaceByName(device)
	check(err)
	addr := netip.MustParseAddr(address).As4()
	everybody := bytes.Repeat([]byte{0xff}, 6)

	reply := append([]byte{0, 1, 8, 0, 6, 4, 0, 2}, dev.HardwareAddr...) // Ethernet, IPv4, their lengths; a reply
	reply = append(reply, addr[:]...)
	reply = append(append(reply, everybody...), addr[:]...)

	const arp = unix.ETH_P_ARP
	s, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0)
	check(err)
	to := &unix.SockaddrLinklayer{Protocol: binary.BigEndian.Uint16([]byte{arp & 0xff, arp >> 8}),
		Ifindex: dev.Index, Halen: 6}
	copy(to.Addr[:], everybody)
	check(unix.Sendto(s, reply, 0, to))
}
