package main

import (
	"net"

	"tansy/ops/daemon"
)

// ports are the addresses of a server: its own, or those that a service manager listens on for it.
type ports struct {
	own       *daemon.Port // nil if there are inherited ones
	inherited []net.Listener
	status    net.Listener // inherited under the name "status", or nil
}

// takePorts takes what the service manager passes, or else address, which is not listened on yet.
func takePorts(address string) (*ports, error) {
	ls, err := daemon.Inherit()
	if err != nil {
		return nil, err
	}
	p := &ports{}
	for _, l := range ls {
		if l.Name == "status" && p.status == nil {
			p.status = l.Listener
		} else {
			p.inherited = append(p.inherited, l.Listener)
		}
	}
	if len(p.inherited) == 0 {
		if p.own, err = daemon.Bind(address); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// listen returns what to serve NFS on.
func (p *ports) listen() ([]net.Listener, error) {
	if p.own == nil {
		return p.inherited, nil
	}
	l, err := p.own.Listen()
	return []net.Listener{l}, err
}

// addr is the address that is served first.
func (p *ports) addr() net.Addr {
	if p.own == nil {
		return p.inherited[0].Addr()
	}
	return p.own.Addr()
}

// close gives all up that was not listened on.
func (p *ports) close() {
	if p.own != nil {
		p.own.Close()
	}
	if p.status != nil {
		p.status.Close()
	}
	for _, l := range p.inherited {
		l.Close()
	}
}
