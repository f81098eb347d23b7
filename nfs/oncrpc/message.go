package oncrpc

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// Numbers of RFC 5531, section 9.
const (
	rpcVersion = 2

	msgCall  = 0
	msgReply = 1

	replyAccepted = 0
	replyDenied   = 1

	rejectMismatch = 0
	rejectAuth     = 1
)

// Accept is the outcome of an accepted call (accept_stat).
type Accept uint32

const (
	Success      Accept = 0
	ProgUnavail  Accept = 1
	ProgMismatch Accept = 2
	ProcUnavail  Accept = 3
	GarbageArgs  Accept = 4
	SystemErr    Accept = 5
)

// String is the name of the outcome (RFC 5531, section 9).
func (a Accept) String() string {
	names := [...]string{"SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"}
	if int(a) < len(names) {
		return names[a]
	}
	return "accept_stat " + strconv.FormatUint(uint64(a), 10)
}

// AuthStat says why credentials or a verifier were refused (auth_stat).
type AuthStat uint32

const (
	AuthOK           AuthStat = 0
	AuthBadCred      AuthStat = 1
	AuthRejectedCred AuthStat = 2
	AuthBadVerf      AuthStat = 3
	AuthTooWeak      AuthStat = 5 // here: the connection has to be protected better (RFC 9289)
)

// Flavor is the kind of credentials.
type Flavor uint32

const (
	AuthNone Flavor = 0
	AuthSys  Flavor = 1
	AuthTLS  Flavor = 7 // no credentials: a question whether the server speaks TLS (RFC 9289, section 4.1)
)

// Bounds of RFC 5531 on what stands in credentials.
const (
	maxAuthBody = 400 // bytes
	maxMachine  = 255 // bytes
	maxGroups   = 16
)

// IDs are the numbers of AUTH_SYS credentials.
type IDs struct {
	UID, GID uint32
	GIDs     []uint32 // supplementary groups
}

// Cred is who calls. With AuthNone all else is zero.
type Cred struct {
	Flavor  Flavor
	Machine string // the name that the caller's machine gives itself
	IDs
}

// header is the part of a call before the arguments. The slices alias the record.
type header struct {
	xid              uint32
	prog, vers, proc uint32
	flavor           uint32
	cred             []byte
	verfFlavor       uint32 // of the verifier
	verf             []byte
}

// headerFault says what is wrong with a header.
type headerFault int

const (
	headerOK       headerFault = iota
	headerAlien                // not a call: there is nobody to answer
	headerMismatch             // another version of RPC
	headerShort                // ends too early
	headerCred                 // credentials too long
	headerVerf                 // verifier too long
)

// parseHeader decodes a call up to its arguments, which stay in d.
func parseHeader(d *Decoder) (h header, fault headerFault) {
	h.xid = d.Uint32()
	if d.Uint32() != msgCall || !d.Ok() {
		return h, headerAlien
	}
	version := d.Uint32()
	if !d.Ok() {
		return h, headerShort
	}
	if version != rpcVersion {
		return h, headerMismatch
	}
	h.prog, h.vers, h.proc = d.Uint32(), d.Uint32(), d.Uint32()
	if !d.Ok() {
		return h, headerShort
	}
	h.flavor = d.Uint32()
	credOK := peekLen(d) <= maxAuthBody
	h.cred = d.Opaque(maxAuthBody)
	verfOK := true
	if credOK && d.Ok() {
		h.verfFlavor = d.Uint32() // none is checked, but that of a probe for TLS
		verfOK = peekLen(d) <= maxAuthBody
		h.verf = d.Opaque(maxAuthBody)
	}
	switch {
	case !credOK:
		return h, headerCred
	case !verfOK:
		return h, headerVerf
	case !d.Ok():
		return h, headerShort
	}
	return h, headerOK
}

// peekLen returns the next word, 0 if there is none.
func peekLen(d *Decoder) uint32 {
	if len(d.b) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(d.b)
}

// parseCred decodes credentials into c.
func parseCred(flavor uint32, body []byte, c *Cred) AuthStat {
	*c = Cred{Flavor: Flavor(flavor)}
	switch c.Flavor {
	case AuthNone:
		return AuthOK
	case AuthSys:
		d := NewDecoder(body)
		d.Uint32() // stamp
		c.Machine = string(d.Opaque(maxMachine))
		c.UID, c.GID = d.Uint32(), d.Uint32()
		n := d.Uint32()
		if n > maxGroups || int(n)*4 != len(d.Rest()) || !d.Ok() {
			return AuthBadCred
		}
		for ; n > 0; n-- {
			c.GIDs = append(c.GIDs, d.Uint32())
		}
		return AuthOK
	}
	return AuthRejectedCred
}

// credCache remembers the last credentials of a connection, since the next are
// mostly the same.
type credCache struct {
	flavor uint32
	body   []byte
	cred   *Cred // never changed once made, because calls in flight hold it
}

func (k *credCache) get(flavor uint32, body []byte) (*Cred, AuthStat) {
	if k.cred != nil && k.flavor == flavor && bytes.Equal(k.body, body) {
		return k.cred, AuthOK
	}
	c := new(Cred)
	if stat := parseCred(flavor, body, c); stat != AuthOK {
		return nil, stat
	}
	k.flavor, k.cred = flavor, c
	k.body = append(k.body[:0], body...)
	return c, AuthOK
}

// lastFragment marks the last fragment of a record in its length word.
const lastFragment = 1 << 31

// beginReply appends the record mark, to be filled in by endReply, and the
// header of an accepted reply.
func beginReply(e *Encoder, xid uint32, stat Accept) { beginReplyWith(e, xid, "", stat) }

// beginReplyWith is beginReply with a verifier of the flavor AUTH_NONE that has a body.
func beginReplyWith(e *Encoder, xid uint32, verifier string, stat Accept) {
	e.Uint32(0)
	e.Uint32(xid)
	e.Uint32(msgReply)
	e.Uint32(replyAccepted)
	e.Uint32(uint32(AuthNone))
	e.Opaque([]byte(verifier))
	e.Uint32(uint32(stat))
}

// endReply fills in the mark of the reply that starts at start.
func endReply(e *Encoder, start int) {
	n := len(e.b) - start - 4 + (lenOf(e.data)+3)&^3
	binary.BigEndian.PutUint32(e.b[start:], lastFragment|uint32(n))
}

// refuse appends a whole reply to a call that was not accepted.
func refuse(e *Encoder, xid uint32, reject uint32, words ...uint32) {
	start := e.Len()
	e.Uint32(0)
	e.Uint32(xid)
	e.Uint32(msgReply)
	e.Uint32(replyDenied)
	e.Uint32(reject)
	for _, w := range words {
		e.Uint32(w)
	}
	endReply(e, start)
}
