package nlm

import (
	"encoding/binary"
	"math"

	"tansy/nfs/advisory"
	"tansy/nfs/oncrpc"
)

// lock is nlm_lock or nlm4_lock: which bytes of which file for whom.
type lock struct {
	caller, handle, owner []byte
	svid                  uint32
	offset, length        uint64
}

// wide tells whether a version has 64 bits for places in a file.
func wide(version uint32) bool { return version == 4 }

func getLock(d *oncrpc.Decoder, version uint32) (l lock) {
	l.caller, l.handle, l.owner = d.Opaque(maxObject), d.Opaque(maxObject), d.Opaque(maxObject)
	l.svid = d.Uint32()
	if wide(version) {
		l.offset, l.length = d.Uint64(), d.Uint64()
	} else {
		l.offset, l.length = uint64(d.Uint32()), uint64(d.Uint32())
	}
	return l
}

func (l *lock) put(e *oncrpc.Encoder, version uint32) {
	e.Opaque(l.caller)
	e.Opaque(l.handle)
	e.Opaque(l.owner)
	e.Uint32(l.svid)
	if wide(version) {
		e.Uint64(l.offset)
		e.Uint64(l.length)
	} else {
		e.Uint32(uint32(l.offset))
		e.Uint32(uint32(l.length))
	}
}

// span is the bytes of a lock. A length of 0 reaches to the end of any file. It is not ok if the bytes reach beyond
// what the version can say.
func (l *lock) span(version uint32) (r advisory.Range, ok bool) {
	most := uint64(math.MaxUint64)
	if l.length == 0 {
		return advisory.Range{First: l.offset, Last: most}, true
	}
	if !wide(version) {
		most = math.MaxUint32
	}
	return advisory.Range{First: l.offset, Last: l.offset + l.length - 1}, l.length-1 <= most-l.offset
}

// lockArgs are the arguments of TEST, LOCK, CANCEL, UNLOCK, and GRANTED, which each have some of these.
type lockArgs struct {
	cookie           []byte
	block, exclusive bool
	lock             lock
	reclaim          bool
}

func getTest(d *oncrpc.Decoder, version uint32) lockArgs {
	return lockArgs{cookie: d.Opaque(maxObject), exclusive: d.Bool(), lock: getLock(d, version)}
}

func getLocking(d *oncrpc.Decoder, version uint32) lockArgs {
	a := lockArgs{cookie: d.Opaque(maxObject), block: d.Bool(), exclusive: d.Bool(), lock: getLock(d, version)}
	a.reclaim = d.Bool()
	d.Uint32() // the client's state
	return a
}

func getCancel(d *oncrpc.Decoder, version uint32) lockArgs {
	return lockArgs{cookie: d.Opaque(maxObject), block: d.Bool(), exclusive: d.Bool(), lock: getLock(d, version)}
}

func getUnlock(d *oncrpc.Decoder, version uint32) lockArgs {
	return lockArgs{cookie: d.Opaque(maxObject), lock: getLock(d, version)}
}

// shareArgs are the arguments of SHARE and UNSHARE.
type shareArgs struct {
	cookie                []byte
	caller, handle, owner []byte
	mode, access          uint32
	reclaim               bool
}

func getShare(d *oncrpc.Decoder) shareArgs {
	a := shareArgs{cookie: d.Opaque(maxObject)}
	a.caller, a.handle, a.owner = d.Opaque(maxObject), d.Opaque(maxObject), d.Opaque(maxObject)
	a.mode, a.access = d.Uint32(), d.Uint32()
	a.reclaim = d.Bool()
	if a.mode > 3 || a.access > 3 {
		d.Fail()
	}
	return a
}

// reservation is what modes say: 1 is reading, 2 is writing; mode is denied to others, access is done.
func (a *shareArgs) reservation() advisory.Share {
	return advisory.Share{Read: a.access&1 != 0, Write: a.access&2 != 0, DenyRead: a.mode&1 != 0, DenyWrite: a.mode&2 != 0}
}

// result is what a call answers.
type result struct {
	status uint32
	holder *advisory.Conflict // of TEST that is denied
}

// onWire is a status in a version: those that versions 1 and 3 do not have are what they say when they cannot.
func onWire(status, version uint32) uint32 {
	if !wide(version) && status > Deadlock {
		return DeniedRoom
	}
	return status
}

// put encodes nlm_res, or nlm_testres.
func (r result) put(e *oncrpc.Encoder, version uint32, cookie []byte) {
	e.Opaque(cookie)
	e.Uint32(onWire(r.status, version))
	if r.status == Denied && r.holder != nil {
		putHolder(e, version, r.holder)
	}
}

// putHolder encodes nlm_holder, what is in the way of a lock. Where 32 bits do not reach, the end of what they do is
// said.
func putHolder(e *oncrpc.Encoder, version uint32, c *advisory.Conflict) {
	svid, owner := processOf(c.Owner.ID)
	e.Bool(c.Exclusive)
	e.Uint32(svid)
	e.Opaque(owner)
	most := uint64(math.MaxUint64)
	if !wide(version) {
		most = math.MaxUint32
	}
	first, length := min(c.Range.First, most), uint64(0)
	if c.Range.Last < most {
		length = c.Range.Last - first + 1
	}
	if wide(version) {
		e.Uint64(first)
		e.Uint64(length)
	} else {
		e.Uint32(uint32(first))
		e.Uint32(uint32(length))
	}
}

// Owners of locks and of reservations have IDs that differ in the first byte.
const (
	lockOwner  = 'l'
	shareOwner = 's'
)

// process is the ID of the owner of a lock: a number and a name that the client chose.
func process(svid uint32, owner []byte) string {
	return string(append(binary.BigEndian.AppendUint32([]byte{lockOwner}, svid), owner...))
}

// processOf is what is in an ID.
func processOf(id string) (svid uint32, owner []byte) {
	if len(id) < 5 {
		return 0, nil
	}
	return binary.BigEndian.Uint32([]byte(id[1:5])), []byte(id[5:])
}
