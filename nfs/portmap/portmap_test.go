package portmap

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"tansy/nfs/oncrpc"
	x "tansy/test/kit/xdrspec"
)

// The arguments and results as RFC 1833 has them, by version and procedure.
var (
	rfcMapping = x.Struct(x.Uint32, x.Uint32, x.Uint32, x.Uint32)
	rfcRpcb    = x.Struct(x.Uint32, x.Uint32, x.Opaque(maxString), x.Opaque(maxString), x.Opaque(maxString))
	rfcString  = x.Opaque(maxString)
	rfcBool    = x.Union(map[uint32]x.Type{0: x.Void, 1: x.Void}, nil)
	rfcThree   = map[uint32][2]x.Type{
		0: {x.Void, x.Void}, 1: {rfcRpcb, rfcBool}, 2: {rfcRpcb, rfcBool}, 3: {rfcRpcb, rfcString},
		4: {x.Void, x.List(rfcRpcb)}, 6: {x.Void, x.Uint32},
	}
	rfcProcs = map[uint32]map[uint32][2]x.Type{
		2: {0: {x.Void, x.Void}, 1: {rfcMapping, rfcBool}, 2: {rfcMapping, rfcBool}, 3: {rfcMapping, x.Uint32},
			4: {x.Void, x.List(rfcMapping)}},
		3: rfcThree,
		4: {0: rfcThree[0], 1: rfcThree[1], 2: rfcThree[2], 3: rfcThree[3], 4: rfcThree[4], 6: rfcThree[6], 9: rfcThree[3]},
	}
)

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// office has NFS on all addresses, MOUNT on one, and something on IPv6 alone.
var office = New([]Entry{
	{100003, 3, "tcp", at("0.0.0.0:2049")}, {100003, 3, "tcp6", at("[::]:2049")},
	{100005, 3, "tcp", at("192.0.2.1:700")}, {100005, 1, "udp", at("192.0.2.1:701")},
	{300000, 1, "udp6", at("[2001:db8::1]:65535")},
})

// serve calls a procedure of office.
func serve(t *testing.T, peer net.Addr, version, proc uint32, args []byte) (oncrpc.Decoder, oncrpc.Accept) {
	for _, p := range office.Programs() {
		if p.Number == Program && p.Version == version && int(proc) < len(p.Procs) && p.Procs[proc].Serve != nil {
			c := oncrpc.Call{Args: oncrpc.NewDecoder(args), Reply: oncrpc.NewEncoder(nil), Peer: peer, Cred: new(oncrpc.Cred)}
			accept := p.Procs[proc].Serve(&c)
			return oncrpc.NewDecoder(c.Reply.Whole()), accept
		}
	}
	return oncrpc.Decoder{}, oncrpc.ProcUnavail
}

func TestGetport(t *testing.T) {
	for _, c := range []struct{ program, version, proto, want uint32 }{
		{100003, 3, protoTCP, 2049}, {100003, 3, protoUDP, 0}, {100003, 3, 132, 0}, {100004, 3, protoTCP, 0},
		{300000, 1, protoUDP, 0},
		{100005, 3, protoTCP, 700}, {100005, 1, protoUDP, 701},
		{100003, 4, protoTCP, 2049}, {100005, 2, protoUDP, 701}, // the program says which versions it has
	} {
		m := rfcMapping.Encode([]any{uint64(c.program), uint64(c.version), uint64(c.proto), uint64(0)})
		if d, accept := serve(t, &net.TCPAddr{}, 2, ProcGetport, m); accept != oncrpc.Success || d.Uint32() != c.want || len(d.Rest()) > 0 {
			t.Errorf("%+v: %v", c, accept)
		}
	}
}

func TestGetaddr(t *testing.T) {
	tcp, tcp6 := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, &net.TCPAddr{IP: net.ParseIP("2001:db8::7"), Port: 5}
	udp, udp6 := &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, &net.UDPAddr{IP: net.ParseIP("2001:db8::7"), Port: 5}
	for _, c := range []struct {
		proc             uint32
		peer             net.Addr
		program, version uint64
		called, want     string
	}{
		{ProcGetaddr, tcp, 100003, 3, "", "0.0.0.0.8.1"},
		{ProcGetaddr, tcp, 100003, 3, "192.0.2.7.0.111", "192.0.2.7.8.1"},
		{ProcGetaddr, tcp, 100003, 3, "::1.0.111", "0.0.0.0.8.1"}, // of another family
		{ProcGetaddr, tcp, 100003, 3, "nonsense", "0.0.0.0.8.1"},
		{ProcGetaddr, tcp6, 100003, 3, "2001:db8::9.0.111", "2001:db8::9.8.1"},
		{ProcGetaddr, udp, 100003, 3, "", ""},
		{ProcGetaddr, tcp, 100005, 3, "192.0.2.7.0.111", "192.0.2.1.2.188"},
		{ProcGetaddr, udp, 100005, 3, "", "192.0.2.1.2.189"}, // version 1: see GETPORT
		{ProcGetversaddr, udp, 100005, 3, "", ""},
		{ProcGetversaddr, udp, 100005, 1, "", "192.0.2.1.2.189"},
		{ProcGetaddr, udp6, 300000, 1, "", "2001:db8::1.255.255"},
		{ProcGetaddr, udp, 300000, 1, "", ""},
		{ProcGetaddr, &net.UnixAddr{}, 100003, 3, "", ""},
	} {
		args := rfcRpcb.Encode([]any{c.program, c.version, "udp", c.called, "me"})
		d, accept := serve(t, c.peer, 4, c.proc, args)
		if got := string(d.Opaque(maxString)); accept != oncrpc.Success || got != c.want || len(d.Rest()) > 0 {
			t.Errorf("%+v: %q, %v", c, got, accept)
		}
	}
}

func TestDump(t *testing.T) {
	d, _ := serve(t, &net.TCPAddr{}, 2, ProcDump, nil)
	var two []string
	for d.Bool() {
		two = append(two, fmt.Sprint(d.Uint32(), d.Uint32(), d.Uint32(), d.Uint32()))
	}
	if got, want := strings.Join(two, ", "), "100003 3 6 2049, 100005 3 6 700, 100005 1 17 701"; got != want || !d.Ok() {
		t.Errorf("version 2: %s", got)
	}
	d, _ = serve(t, &net.TCPAddr{}, 3, ProcDump, nil)
	var three []string
	for d.Bool() {
		r := getRpcb(&d)
		three = append(three, fmt.Sprint(r.program, " ", r.version, " ", r.netid, " ", r.addr))
	}
	want := "100003 3 tcp 0.0.0.0.8.1, 100003 3 tcp6 ::.8.1, 100005 3 tcp 192.0.2.1.2.188, 100005 1 udp 192.0.2.1.2.189, 300000 1 udp6 2001:db8::1.255.255"
	if got := strings.Join(three, ", "); got != want || !d.Ok() {
		t.Errorf("version 3: %s", got)
	}
}

func TestEntries(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:9": "[{1 2 tcp 127.0.0.1:9} {1 3 tcp 127.0.0.1:9}]",
		"[::1]:9":     "[{1 2 tcp6 [::1]:9} {1 3 tcp6 [::1]:9}]",
		"0.0.0.0:9":   "[{1 2 tcp 0.0.0.0:9} {1 3 tcp 0.0.0.0:9}]",
		"[::]:9":      "[{1 2 tcp 0.0.0.0:9} {1 2 tcp6 [::]:9} {1 3 tcp 0.0.0.0:9} {1 3 tcp6 [::]:9}]",
	} {
		if got := fmt.Sprint(Entries(1, net.TCPAddrFromAddrPort(at(addr)), 2, 3)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
	if got := Entries(1, net.UDPAddrFromAddrPort(at("127.0.0.1:9")), 2); len(got) != 1 || got[0].Netid != "udp" {
		t.Error(got)
	}
	if Entries(1, nil, 2) != nil || Entries(1, &net.UnixAddr{}, 2) != nil {
		t.Error("entries without an address")
	}
}

// FuzzArguments gives every procedure arbitrary arguments: those that are not what the RFC
// describes are refused, and the result is what it describes. Nobody registers anything.
func FuzzArguments(f *testing.F) {
	f.Add(byte(0), byte(ProcGetport), rfcMapping.Encode([]any{uint64(100003), uint64(3), uint64(6), uint64(0)}))
	for version := range byte(3) {
		for proc := range byte(10) {
			f.Add(version, proc, rfcRpcb.Encode([]any{uint64(100005), uint64(3), "udp", "192.0.2.1.0.111", "me"}))
		}
	}
	f.Fuzz(func(t *testing.T, version, proc byte, args []byte) {
		version = 2 + version%3
		types, known := rfcProcs[uint32(version)][uint32(proc)]
		d, accept := serve(t, &net.UDPAddr{IP: net.IPv4(10, 0, 0, 1)}, uint32(version), uint32(proc), args)
		want := oncrpc.ProcUnavail
		if known {
			want = oncrpc.Success
			if _, _, ok := types[0].Decode(args); !ok {
				want = oncrpc.GarbageArgs
			}
		}
		if accept != want {
			t.Fatalf("%d, version %d: %v, want %v", proc, version, accept, want)
		}
		if accept != oncrpc.Success {
			return
		}
		v, rest, ok := types[1].Decode(d.Rest())
		if !ok || len(rest) > 0 {
			t.Fatalf("%d, version %d: the result is not what the RFC describes: % x", proc, version, d.Rest())
		}
		if (proc == ProcSet || proc == ProcUnset) && v[0] != uint64(0) {
			t.Fatalf("%d, version %d: done", proc, version)
		}
	})
}

// FuzzUniversal: what is read as a universal address is written as one of the same address.
func FuzzUniversal(f *testing.F) {
	for _, s := range []string{
		"192.0.2.1.8.1", "::.0.111", "2001:db8::1.255.255", "1.2.3.4.5", "..", "1.2.3.4.256.1", "::1%x.1.1",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseUniversal(s)
		if err != nil {
			return
		}
		if again, err := parseUniversal(universal(a)); err != nil || again != a {
			t.Errorf("%q is %v, and that is %v (%v)", s, a, again, err)
		}
	})
}
