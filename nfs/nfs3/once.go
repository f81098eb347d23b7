package nfs3

import (
	"net"

	"tansy/fs"
)

// once is the file system for one call, which the client may send again when it has got no reply: over
// another connection, or when the server has been started anew.
func (s *Service) once(c call) fs.FileSystem {
	o, ok := s.fs.(fs.OnceFileSystem)
	if !ok {
		return s.fs
	}
	peer, ok := c.Peer.(*net.TCPAddr)
	if !ok {
		return s.fs
	}
	var via fs.Via
	if r := c.Receipt(); r != nil {
		via = r
	}
	return o.Once(fs.NewCallID(peer.AddrPort().Addr(), c.Cred.Machine, c.XID, c.proc, c.cred, c.args, via))
}
