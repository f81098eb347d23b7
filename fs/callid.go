package fs

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// CallID names a call, so that it is done once although the client sends it again: after a lost reply, or after a
// crash.
type CallID struct {
	client [16]byte // whose calls share places for records
	key    [sha256.Size]byte
	via    Via
}

// Via is the way that a call came by, and its reply goes by.
type Via interface {
	// Connection identifies the connection. It is compared.
	Connection() any
	// Delivered tells that the peer has the reply, and is still there.
	Delivered() bool
}

// NewCallID names a call by its caller, the caller's address, its number (RFC 5531, xid), its procedure, and its
// arguments. Two calls are the same if all of these are. client is without the port, because a client that connects
// again may have another one.
//
// machine is the name in the caller's credential (RFC 5531, authsys_parms), which tells clients behind one address
// apart; it is empty if there is none. Room for records is shared out by the address alone, so that many names give
// nobody more. via may be nil, which is unknown.
func NewCallID(client netip.Addr, machine string, xid uint32, proc string, c *Cred, args []byte, via Via) *CallID {
	id := &CallID{client: client.Unmap().WithZone("").As16(), via: via}
	n := 16 + 6*4 + 4*len(c.GIDs) + len(machine) + len(proc)
	b := make([]byte, 0, n+len(args))
	b = append(b, id.client[:]...)
	for _, x := range [...]uint32{xid, c.UID, c.GID, uint32(len(machine)), uint32(len(proc)), uint32(len(c.GIDs))} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	for _, x := range c.GIDs {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	b = append(append(append(b, machine...), proc...), args...)
	id.key = sha256.Sum256(b)
	return id
}
