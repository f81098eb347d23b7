package nfsclient

import (
	"tansy/fs"
	"tansy/nfs/nfs3"
	"tansy/nfs/oncrpc"
)

// ACLEntry is an entry of a list as it is on the wire.
type ACLEntry struct{ For, ID, Rights uint32 }

// ACL is a list as it is on the wire: how many entries it has, and those that came.
type ACL struct {
	Count   uint32
	Entries []ACLEntry
}

// ACLOf is a list of these entries: what for, for whom, and rights, one after the other.
func ACLOf(words ...uint32) (l ACL) {
	for ; len(words) > 0; words = words[3:] {
		l.Entries = append(l.Entries, ACLEntry{words[0], words[1], words[2]})
	}
	l.Count = uint32(len(l.Entries))
	return l
}

// GetACL is the call of NFSACL.
func (c *Client) GetACL(cred *fs.Cred, h fs.Handle, mask uint32) (
	a *fs.Attr, got uint32, access, dflt ACL, err error,
) {
	d, err := c.acl(nfs3.ProcGetACL, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, h)
		e.Uint32(mask)
	})
	a = getPostOp(d)
	if err == nil {
		got, access, dflt = d.Uint32(), getACL(d), getACL(d)
	}
	return a, got, access, dflt, c.end(d, err)
}

// SetACL is the call of NFSACL.
func (c *Client) SetACL(cred *fs.Cred, h fs.Handle, mask uint32, access, dflt ACL) (*fs.Attr, error) {
	d, err := c.acl(nfs3.ProcSetACL, cred, func(e *oncrpc.Encoder) {
		c.putHandle(e, h)
		e.Uint32(mask)
		putACL(e, access)
		putACL(e, dflt)
	})
	a := getPostOp(d)
	return a, c.end(d, err)
}

// acl makes a call of NFSACL and decodes its status. The decoder is never nil.
func (c *Client) acl(proc uint32, cred *fs.Cred, args func(*oncrpc.Encoder)) (*oncrpc.Decoder, error) {
	return status(c.Call(nfs3.ACLProgram, nfs3.ACLVersion, proc, cred, args))
}

func getACL(d *oncrpc.Decoder) (l ACL) {
	l.Count = d.Uint32()
	for n := d.Uint32(); n > 0 && d.Ok(); n-- {
		l.Entries = append(l.Entries, ACLEntry{d.Uint32(), d.Uint32(), d.Uint32()})
	}
	return l
}

func putACL(e *oncrpc.Encoder, l ACL) {
	e.Uint32(l.Count)
	e.Uint32(uint32(len(l.Entries)))
	for _, x := range l.Entries {
		e.Uint32(x.For)
		e.Uint32(x.ID)
		e.Uint32(x.Rights)
	}
}
