package portmap

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"

	"tansy/nfs/oncrpc"
)

// TestFind asks a port mapper for programs that it knows and for others, over TCP and UDP, at both kinds of addresses.
func TestFind(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "::1"} {
		tcp, err := net.Listen("tcp", net.JoinHostPort(ip, "0"))
		if err != nil {
			t.Logf("%s is not there: %v", ip, err)
			continue
		}
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		addr := netip.MustParseAddr(ip)
		entries := Entries(100021, &net.TCPAddr{IP: addr.AsSlice(), Port: 1001}, 4)
		entries = append(entries, Entries(100021, &net.UDPAddr{IP: addr.AsSlice(), Port: 1002}, 4)...)
		cfg := oncrpc.Config{Programs: New(entries).Programs()}
		s, p := oncrpc.NewServer(cfg), oncrpc.NewPacketServer(cfg)
		go s.Serve(tcp)
		go p.Serve(udp)
		at := tcp.Addr().(*net.TCPAddr).AddrPort()
		local := net.IP(addr.AsSlice())
		for _, overTCP := range []bool{true, false} {
			got, err := Find(t.Context(), at, local, 100021, 4, "tcp")
			if over := addr.Is4() || overTCP; over && got != 1001 || over != (err == nil) {
				t.Errorf("%s: %d, %v", ip, got, err)
			}
			if got, err := Find(t.Context(), at, nil, 100021, 4, "udp"); got != 1002 {
				t.Errorf("%s over UDP: %d, %v", ip, got, err)
			}
			if _, err := Find(t.Context(), at, local, 100099, 1, "udp"); !errors.Is(err, ErrNone) {
				t.Errorf("%s: a program that is not there: %v", ip, err)
			}
			s.Shutdown(context.Background())
		}
		p.Stop()
		if _, err := Find(t.Context(), at, local, 100021, 4, "tcp"); err == nil || errors.Is(err, ErrNone) {
			t.Errorf("%s: a port mapper that is not there: %v", ip, err)
		}
	}
}
