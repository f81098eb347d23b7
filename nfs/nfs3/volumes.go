package nfs3

import "tansy/nfs/oncrpc"

// Volumes is NFS version 3, and NFSACL, on several volumes. Each has a Service with its own file system, exports, and
// handles. The first handle of a call says which Service answers it; a second handle of another Service is
// NFS3ERR_XDEV.
type Volumes struct {
	list    []*Service
	missing bool
}

// Join makes one of several Services, at least one, none of which was joined before. missing says that some volumes
// cannot be served for now. A handle of none of the Services may belong to those, and is answered with NFS3ERR_IO in
// place of NFS3ERR_STALE.
func Join(list []*Service, missing bool) *Volumes {
	v := &Volumes{list, missing}
	for _, s := range list {
		s.joined = v
	}
	return v
}

// find returns the Service that a handle is of, or nil.
func (v *Volumes) find(h handle) *Service {
	if len(h) == HandleSize {
		for _, s := range v.list {
			if s.owns(h) {
				return s
			}
		}
	}
	return nil
}

// Program is the table of procedures.
func (v *Volumes) Program() oncrpc.Program { return v.program((*Service).Program) }

// ACLProgram is the table of procedures of NFSACL. ok: all volumes have access lists.
func (v *Volumes) ACLProgram() (p oncrpc.Program, ok bool) {
	ok = true
	p = v.program(func(s *Service) oncrpc.Program {
		p, has := s.ACLProgram()
		ok = ok && has
		return p
	})
	return p, ok
}

// program is a table of all Services: the first procedure does nothing, and the arguments of the others begin with a
// handle.
func (v *Volumes) program(of func(*Service) oncrpc.Program) oncrpc.Program {
	p := of(v.list[0])
	if len(v.list) == 1 {
		return p
	}
	tables := map[*Service][]oncrpc.Proc{}
	for _, s := range v.list {
		tables[s] = of(s).Procs
	}
	for i := ProcNull + 1; i < len(p.Procs); i++ {
		first := p.Procs[i].Serve // answers what is of no volume, too
		p.Procs[i].Serve = func(c *oncrpc.Call) oncrpc.Accept {
			d := c.Args
			if s := v.find(getHandle(&d)); s != nil {
				return tables[s][i].Serve(c)
			}
			return first(c)
		}
	}
	return p
}
