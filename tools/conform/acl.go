package conform

import (
	"fmt"
	"slices"
)

// NFSACL, version 3: the access lists of POSIX 1003.1e, draft 17, for clients of NFS version 3. No RFC has it. What is
// checked is what the clients and servers of Linux and Solaris agree about (linux/nfsacl.h).

const (
	aclProg = 100227
	aclVers = 3
)

// Procedures of NFSACL.
const (
	procGetACL = 1
	procSetACL = 2
)

var aclNames = [...]string{"NULL", "GETACL", "SETACL"}

// Bits of a mask of NFSACL, and what an entry is for. aclDefaultEntry is added to that in a default list.
const (
	aclAccess       = 0x1
	aclAccessCount  = 0x2
	aclDefault      = 0x4
	aclDefaultCount = 0x8

	aclOwner        = 0x01
	aclUser         = 0x02
	aclGroup        = 0x04
	aclNamedGroup   = 0x08
	aclMask         = 0x10
	aclOther        = 0x20
	aclDefaultEntry = 0x1000

	aclBoth   = aclAccess | aclDefault
	aclCounts = aclAccessCount | aclDefaultCount
)

// ace is an entry of a list.
type ace struct{ what, id, rights uint32 }

// acl is a list as it is on the wire.
type acl struct {
	count   uint32
	entries []ace
}

// aclOf is a list of entries.
func aclOf(entries ...ace) acl { return acl{uint32(len(entries)), entries} }

// byDefault is l as a default list.
func (l acl) byDefault() acl {
	l.entries = slices.Clone(l.entries)
	for i := range l.entries {
		l.entries[i].what |= aclDefaultEntry
	}
	return l
}

// String has the rights of a list, in the order of what they are for, and of users and groups in that of their numbers.
func (l acl) String() string {
	sorted := slices.SortedFunc(slices.Values(l.entries), func(a, b ace) int {
		if a.what != b.what {
			return int(a.what) - int(b.what)
		}
		return int(a.id) - int(b.id)
	})
	text := ""
	for _, e := range sorted {
		switch e.what &^ aclDefaultEntry {
		case aclUser, aclNamedGroup:
			text += fmt.Sprintf(" %x(%d):%d", e.what, e.id, e.rights)
		default:
			text += fmt.Sprintf(" %x:%d", e.what, e.rights)
		}
	}
	return fmt.Sprintf("%d entries:%s", l.count, text)
}

func (a *args) acl(name string, l acl) *args {
	a.word(l.count)
	a.word(uint32(len(l.entries)))
	for _, e := range l.entries {
		a.word(e.what)
		a.word(e.id)
		a.word(e.rights)
	}
	return a.say("%s=(%v)", name, l)
}

func (r *reader) acl() (l acl) {
	l.count = r.u32()
	n := r.u32()
	if n > 1024 {
		r.bad("a list of %d entries", n)
		return l
	}
	for range n {
		l.entries = append(l.entries, ace{r.u32(), r.u32(), r.u32()})
	}
	return l
}

// aclCall makes a call of NFSACL. GARBAGE_ARGS counts as a status.
func (t *T) aclCall(proc uint32, c *cred, a *args) (status, *reader) {
	addr, none := t.s.lookFor(aclProg, aclVers, "")
	if none != "" {
		t.skip("%s", none)
	}
	return t.status(t.rpcOn(t.dialTo(addr), newHeader(aclProg, aclVers, proc, c), a))
}

type getACLRes struct {
	st           status
	attr         *attr
	mask         uint32
	access, dflt acl
}

func (t *T) getACL(c *cred, h fh, mask uint32) (g getACLRes) {
	st, r := t.aclCall(procGetACL, c, newArgs().fh("object", h).u32("mask", mask))
	g.st, g.attr = st, r.postOp()
	if st == ok {
		g.mask, g.access, g.dflt = r.u32(), r.acl(), r.acl()
	}
	t.done(r)
	return g
}

// lists are both lists of a file.
func (t *T) lists(h fh) (access, dflt acl) {
	g := t.getACL(super, h, aclBoth|aclCounts)
	t.prepared("GETACL", g.st)
	return g.access, g.dflt
}

func setACLArgs(h fh, mask uint32, access, dflt acl) *args {
	return newArgs().fh("object", h).u32("mask", mask).acl("access", access).acl("default", dflt)
}

func (t *T) setACL(c *cred, h fh, mask uint32, access, dflt acl) status {
	st, r := t.aclCall(procSetACL, c, setACLArgs(h, mask, access, dflt))
	a := r.postOp()
	t.done(r)
	if st == ok && a != nil {
		same(t, "attributes", *a, t.attr(h))
	}
	return st
}
