package fs

import (
	"crypto/sha256"
	"encoding/binary"
	"net/netip"
)

// CallID names a call, so that it is done once although it comes again: after a reply was lost, or after a crash.
type CallID struct {
	client [16]byte // whose calls share places for records
	key    [sha256.Size]byte
	via    Via
}

// Via is how a call came, and its reply goes.
type Via interface {
	// Connection identifies the connection. It is compared.
	Connection() any
	// Delivered tells that the peer has the reply, and is still there.
	Delivered() bool
}

// NewCallID names a call by who makes it, from where, its number (RFC 5531, xid), procedure, and arguments. Two are the
// same if all of these are. The port is left out of client, as a client that connects again may have another one.
// machine is the name in the caller's credential (RFC 5531, authsys_parms), which tells clients behind one address
// apart; empty: it has none. Places for records go by the address alone: nobody gets more by giving himself many names.
// via may be nil: not known.
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
