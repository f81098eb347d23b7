package reclaim

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// The note has a byte for its version, the state number (4 bytes), and the hosts (docs/design/format.md). Each host is
// a byte, the client's address, and the address that it called, unless that is the one of the host before.
const version = 1

// Bits of a host's first byte.
const (
	longClient = 1 << iota // the client's address has 16 bytes, not 4
	longLocal              // likewise
	hasLocal               // there is an address that it called
	sameLocal              // which is that of the host before
	unknown                // this bit, and those above, mean nothing yet
)

// ErrNote is the error of Open for what no server of this version wrote. It stays until tansy repair takes it away.
var ErrNote = errors.New("what the volume has of hosts with locks is of a later version, or malformed")

// encode is the note.
func encode(state uint32, list []Host) []byte {
	b := binary.BigEndian.AppendUint32([]byte{version}, state)
	var last netip.Addr
	for _, h := range list {
		kind := byte(0)
		if h.Addr.Is6() {
			kind |= longClient
		}
		switch {
		case !h.Local.IsValid():
		case h.Local == last:
			kind |= hasLocal | sameLocal
		case h.Local.Is6():
			kind |= hasLocal | longLocal
		default:
			kind |= hasLocal
		}
		b = append(append(b, kind), h.Addr.AsSlice()...)
		if kind&hasLocal != 0 && kind&sameLocal == 0 {
			b = append(b, h.Local.AsSlice()...)
		}
		last = h.Local
	}
	return b
}

// decode is what a note says. A host at an address that no machine can have is left out, and so is such an address that
// a host called: nothing is sent there, whoever wrote the note.
func decode(b []byte) (state uint32, list []Host, err error) {
	if len(b) < 5 || b[0] != version {
		return 0, nil, ErrNote
	}
	state, b = binary.BigEndian.Uint32(b[1:]), b[5:]
	var last netip.Addr
	for len(b) > 0 {
		var h Host
		kind := b[0]
		var ok, found bool
		h.Addr, b, ok = address(b[1:], kind&longClient != 0)
		switch found = true; {
		case kind&hasLocal == 0:
		case kind&sameLocal != 0:
			h.Local = last
		default:
			h.Local, b, found = address(b, kind&longLocal != 0)
		}
		if kind >= unknown || !ok || !found {
			return 0, nil, ErrNote
		}
		last = h.Local
		if !unicast(h.Local) {
			h.Local = netip.Addr{}
		}
		if unicast(h.Addr) {
			list = append(list, h)
		}
	}
	return state, list, nil
}

// unicast tells whether an address may be that of one machine.
func unicast(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// address takes an address off b.
func address(b []byte, long bool) (a netip.Addr, rest []byte, ok bool) {
	n := 4
	if long {
		n = 16
	}
	if len(b) < n {
		return a, nil, false
	}
	a, ok = netip.AddrFromSlice(b[:n])
	return a, b[n:], ok
}
