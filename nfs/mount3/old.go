package mount3

import (
	"fmt"

	"tansy/nfs/oncrpc"
)

// Versions 1 and 2 of MOUNT (RFC 1094, appendix A) are those of NFS version 2. They are here
// for clients that ask them what is exported or mounted, or say by them that they unmount.
// MNT gives the handle that version 3 gives, which has just the 32 bytes that a handle has in
// them; NFS version 2 itself is not there to take it. (Version 2 has PATHCONF besides: it is
// not available, as for a file system that knows no limits.)

// oldHandle is the length of a handle, in bytes.
const oldHandle = 32

func (s *Service) old(version uint32) oncrpc.Program {
	p := s.Program()
	p.Name, p.Version = fmt.Sprint("mount", version), version
	p.Procs[ProcMnt].Serve = s.oldMnt
	return p
}

// oldMnt is MNT with a handle of fixed length and no flavors.
func (s *Service) oldMnt(c *oncrpc.Call) oncrpc.Accept {
	dir := c.Args.Opaque(maxPath)
	if !c.Args.Ok() {
		return oncrpc.GarbageArgs
	}
	handle, err := s.mount(c, string(dir))
	if err == nil && len(handle) != oldHandle {
		return oncrpc.SystemErr
	}
	if err != nil {
		c.Status = status(err)
		if c.Status == ErrNotSupp || c.Status == ErrServerFault {
			c.Status = ErrIO // the numbers are those of Unix
		}
		c.Reply.Uint32(c.Status)
		return oncrpc.Success
	}
	c.Reply.Uint32(OK)
	c.Reply.Fixed(handle)
	return oncrpc.Success
}
