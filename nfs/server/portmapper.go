package server

import (
	"context"
	"log/slog"
	"net"
	"time"

	"tansy/nfs/mount3"
	"tansy/nfs/nfs3"
	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
)

// Registered are the entries for a port mapper of a Server that listens on tcp. All but NFS and NFSACL is served on udp
// as well, unless that is nil.
func (s *Server) Registered(tcp, udp net.Addr) []portmap.Entry {
	list := portmap.Entries(nfs3.Program, tcp, nfs3.Version)
	if s.lists {
		list = append(list, portmap.Entries(nfs3.ACLProgram, tcp, nfs3.ACLVersion)...)
	}
	for _, addr := range []net.Addr{tcp, udp} {
		list = append(list, portmap.Entries(mount3.Program, addr, mount3.Versions...)...)
		if s.locks != nil {
			list = append(list, portmap.Entries(nlm.Program, addr, nlm.Versions...)...)
			list = append(list, portmap.Entries(nlm.StatusProgram, addr, nlm.StatusVersion)...)
		}
	}
	return list
}

// Portmapper is a port mapper for a fixed list of entries and itself.
type Portmapper struct {
	rpc    *oncrpc.Server
	packet *oncrpc.PacketServer
}

// NewPortmapper makes a Portmapper that is going to listen on tcp and udp.
func NewPortmapper(entries []portmap.Entry, tcp, udp net.Addr, log *slog.Logger) *Portmapper {
	for _, addr := range []net.Addr{tcp, udp} {
		entries = append(entries, portmap.Entries(portmap.Program, addr, portmap.Versions...)...)
	}
	// Its callers ask one question and go.
	cfg := oncrpc.Config{
		Programs: portmap.New(entries).Programs(), Log: log,
		MaxConns: 64, RecordBytes: 1 << 19, ReplyBytes: 1 << 20,
		IdleTimeout: 30 * time.Second, RecordTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
	}
	return &Portmapper{rpc: oncrpc.NewServer(cfg), packet: oncrpc.NewPacketServer(cfg)}
}

// Serve answers on l until Shutdown or until l fails, and closes l.
func (p *Portmapper) Serve(l net.Listener) error { return p.rpc.Serve(l) }

// ServePacket is Serve over UDP.
func (p *Portmapper) ServePacket(pc net.PacketConn) error { return p.packet.Serve(pc) }

// Shutdown stops both.
func (p *Portmapper) Shutdown(ctx context.Context) error {
	p.packet.Stop()
	return p.rpc.Shutdown(ctx)
}
