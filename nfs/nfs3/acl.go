package nfs3

import (
	"tansy/fs"
	"tansy/nfs/oncrpc"
)

// NFSACL, version 3: the access lists of files (ACLs), which NFS itself has no procedures for. It is a program of its
// own beside NFS, on the same port and with the same handles. Solaris has it, and Linux; no RFC does. Whatever is said
// here of form and meaning is what Linux's server and client do (fs/nfs_common/nfsacl.c, fs/nfsd/nfs3acl.c,
// fs/nfs/nfs3acl.c), but for three things. A list that SETACL's mask does not name stays: Linux's takes it away, and
// Linux's client names all that there may be. Both lists are set at one instant, or none. And what is no list is INVAL,
// where some of it is GARBAGE_ARGS there: other bits in the mask, another count than that of the entries, other rights.

// Program and version of NFSACL.
const (
	ACLProgram = 100227
	ACLVersion = 3
)

// Procedure numbers of NFSACL.
const (
	ProcACLNull = iota
	ProcGetACL
	ProcSetACL
)

// Bits of masks of NFSACL: what is asked for, or set. Who asks for a list gets the number of its entries, too.
const (
	ACLAccess       = 0x1
	ACLAccessCount  = 0x2
	ACLDefault      = 0x4
	ACLDefaultCount = 0x8
	aclAll          = 0xf
)

const (
	maxACL    = 1024   // entries of one list on the wire
	aclEntry  = 12     // bytes of an entry there
	ofDefault = 0x1000 // added to what an entry is for, in a default list
	maxACLs   = 2 * aclEntry * (fs.MaxNamed + 4)
)

// ACLProgram is the table of procedures of NFSACL. ok: the file system has access lists.
func (s *Service) ACLProgram() (p oncrpc.Program, ok bool) {
	lists, ok := s.fs.(fs.Lister)
	a := aclService{s, lists}
	p = oncrpc.Program{Name: "nfsacl3", Number: ACLProgram, Version: ACLVersion, Procs: []oncrpc.Proc{
		ProcACLNull: oncrpc.NullProc,
		ProcGetACL:  row(s, "GETACL", reads, getGetACL, a.getACL, s.putGetACL),
		ProcSetACL:  row(s, "SETACL", changes, getSetACL, a.setACL, s.putSetACL),
	}}
	p.Procs[ProcGetACL].Weight = func(oncrpc.Decoder) int { return maxACLs }
	return p, ok
}

// aclService is a Service whose file system has lists.
type aclService struct {
	*Service
	lists fs.Lister
}

type getACLArgs struct {
	file handle
	mask uint32
}

func getGetACL(d *oncrpc.Decoder) getACLArgs { return getACLArgs{getHandle(d), d.Uint32()} }

type getACLResult struct {
	attr  fs.Attr
	mask  uint32
	lists fs.Lists
}

// getACL needs no rights, as GETATTR needs none. A file without an access list has one that says what its mode says.
func (s aclService) getACL(c call, a getACLArgs) (r getACLResult, err error) {
	h, err := s.file(c, a.file)
	if err != nil {
		return r, err
	}
	r.mask = a.mask
	access, dflt := a.mask&(ACLAccess|ACLAccessCount) != 0, a.mask&(ACLDefault|ACLDefaultCount) != 0
	if r.lists, r.attr, err = s.lists.GetLists(h, access, dflt); err != nil {
		return r, err
	}
	if a.mask&^aclAll != 0 {
		return r, fs.ErrInval
	}
	if r.lists.Access == nil {
		m := r.attr.Mode
		r.lists.Access = &fs.AccessList{Owner: m >> 6 & 7, Group: m >> 3 & 7, Other: m & 7}
	}
	return r, nil
}

func (s *Service) putGetACL(c call, r getACLResult, err error) {
	s.putPostOp(&c.Reply, r.attr.OrNil())
	if err == nil {
		c.Reply.Uint32(r.mask)
		putACL(&c.Reply, r.lists.Access, &r.attr, r.mask, 0)
		putACL(&c.Reply, r.lists.Default, &r.attr, r.mask/ACLDefault, ofDefault)
	}
}

// putACL encodes a list of a file: how many entries it has, and an array of them, if ACLAccess is in wanted. Clients
// want a mask in each list. One that says what the group has already changes nothing, and they take it away again.
func putACL(e *oncrpc.Encoder, l *fs.AccessList, a *fs.Attr, wanted, of uint32) {
	var entries []fs.ListEntry
	if l != nil && wanted&(ACLAccess|ACLAccessCount) != 0 {
		masked := *l
		if !l.Masked {
			masked.Mask, masked.Masked = l.Group, true
		}
		entries = masked.Entries()
	}
	e.Uint32(uint32(len(entries)))
	if wanted&ACLAccess == 0 {
		entries = nil
	}
	e.Uint32(uint32(len(entries)))
	for _, x := range entries {
		e.Uint32(x.For | of)
		switch x.For {
		case fs.ForOwner:
			e.Uint32(a.UID)
		case fs.ForGroup:
			e.Uint32(a.GID)
		case fs.ForUser, fs.ForNamed:
			e.Uint32(x.ID)
		default:
			e.Uint32(0) // nobody's
		}
		e.Uint32(x.Rights)
	}
}

type setACLArgs struct {
	file         handle
	mask         uint32
	access, dflt wireACL
}

func getSetACL(d *oncrpc.Decoder) setACLArgs {
	return setACLArgs{getHandle(d), d.Uint32(), getACL(d), getACL(d)}
}

// wireACL is a list as it came: the number of its entries, and those that followed.
type wireACL struct {
	count   uint32
	entries []fs.ListEntry
}

func getACL(d *oncrpc.Decoder) (l wireACL) {
	l.count = d.Uint32()
	n := d.Uint32()
	if l.count > maxACL || n > maxACL || int(n)*aclEntry > len(d.Rest()) {
		d.Fail()
		return wireACL{}
	}
	for range n {
		what, id, rights := d.Uint32(), d.Uint32(), d.Uint32()
		l.entries = append(l.entries, fs.ListEntry{For: what &^ ofDefault, ID: id, Rights: rights})
	}
	return l
}

// list is the list that was sent; nil: one of no entries, which takes the list away. Entries come in any order, and the
// mask may have more bits than there are rights. The error is NFS3ERR_INVAL if it is none, and NFS3ERR_NOSPC if it is
// longer than the kernel reads one on a mount.
func (l *wireACL) list() (*fs.AccessList, error) {
	if int(l.count) != len(l.entries) {
		return nil, fs.ErrInval
	}
	if l.count == 0 {
		return nil, nil
	}
	for i := range l.entries {
		if e := &l.entries[i]; e.For == fs.ForMask {
			e.Rights &= 7
		}
	}
	fs.SortEntries(l.entries)
	list, ok := fs.ListOf(l.entries)
	switch {
	case !ok:
		return nil, fs.ErrInval
	case len(list.Named) > fs.MaxNamed:
		return nil, fs.ErrNoSpc
	case len(list.Named) == 0 && list.Masked && list.Mask == list.Group: // see putACL
		list.Mask, list.Masked = 0, false
	}
	return list, nil
}

// setACL may be done twice, as SETATTR without a guard may: the second time sets what is set already. So it needs no
// record by which a call that comes again is known.
func (s aclService) setACL(c call, a setACLArgs) (*fs.Attr, error) {
	h, err := s.file(c, a.file)
	if err != nil {
		return nil, err
	}
	err = s.setLists(c, h, &a)
	if at, failed := s.fs.Getattr(h); failed == nil {
		return &at, err
	}
	return nil, err
}

func (s aclService) setLists(c call, h fs.Handle, a *setACLArgs) error {
	var l fs.Lists
	access, dflt := a.mask&ACLAccess != 0, a.mask&ACLDefault != 0
	_, err := s.fs.Getattr(h) // a handle of nothing is worse than a list that is none
	if err == nil && a.mask&^aclAll != 0 {
		err = fs.ErrInval
	}
	if err == nil && access {
		l.Access, err = a.access.list()
	}
	if err == nil && dflt {
		l.Default, err = a.dflt.list()
	}
	if err != nil {
		return err
	}
	return s.lists.SetLists(c.cred, h, l, access, dflt)
}

func (s *Service) putSetACL(c call, a *fs.Attr, err error) { s.putPostOp(&c.Reply, a) }
