package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"
	"time"

	"tansy/nfs/portmap"
	"tansy/nfs/server"
)

// finding is how clients that do not know the port find it: by a port mapper of our own, or
// by that of this host. In both cases MOUNT is there over UDP, too.
type finding struct {
	own, hosts bool // --portmapper, --rpcbind
	port       uint // of the port mapper

	mount     net.PacketConn
	mapper    net.Listener
	mapperUDP net.PacketConn
	log       *slog.Logger
}

func (f *finding) flags(s *flagSet) {
	s.BoolVar(&f.own, "portmapper", false, "be the port mapper of this host, too, so that clients need no port options "+
		"(port 111 over TCP and UDP: needs root)")
	s.BoolVar(&f.hosts, "rpcbind", false, "register with the port mapper that runs on this host, until the end")
	s.UintVar(&f.port, "portmapper-port", portmap.Port, "`PORT` of the port mapper in both cases; clients look on 111")
}

// wrong says what is wrong with the flags, or nothing.
func (f *finding) wrong() string {
	if f.own && f.hosts {
		return "--portmapper is one of our own, and --rpcbind another one: give one of them"
	}
	if f.port > math.MaxUint16 {
		return fmt.Sprintf("--portmapper-port %d is no port", f.port)
	}
	return ""
}

// listen opens the sockets that are needed beside that of the server, whose address is served.
func (f *finding) listen(served net.Addr) (err error) {
	if !f.own && !f.hosts {
		return nil
	}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	if f.mount, err = net.ListenPacket("udp", served.String()); err != nil {
		return fmt.Errorf("MOUNT over UDP: %w", err)
	}
	if !f.own { // one that does not answer should not cost a new volume, or a recovery
		return portmap.Answers(portmap.Local(int(f.port)))
	}
	host, _, err := net.SplitHostPort(served.String())
	if err != nil {
		return err
	}
	addr := net.JoinHostPort(host, strconv.Itoa(int(f.port)))
	if f.mapper, err = net.Listen("tcp", addr); err == nil {
		f.mapperUDP, err = net.ListenPacket("udp", f.mapper.Addr().String())
	}
	if err != nil {
		return fmt.Errorf("the port mapper (one that runs here already is told with --rpcbind): %w", err)
	}
	return nil
}

// close closes the sockets.
func (f *finding) close() {
	if f.mount != nil {
		f.mount.Close()
	}
	if f.mapper != nil {
		f.mapper.Close()
	}
	if f.mapperUDP != nil {
		f.mapperUDP.Close()
	}
}

// start makes s, which listens on l, found. stop ends that, before s is stopped.
func (f *finding) start(s *server.Server, l net.Listener) (stop func(), err error) {
	if f.mount == nil {
		return func() {}, nil
	}
	serve := func(what string, do func() error) {
		if err := do(); !errors.Is(err, server.ErrClosed) && !errors.Is(err, net.ErrClosed) {
			f.log.Error("not served any more", "what", what, "err", err)
		}
	}
	go serve("MOUNT over UDP", func() error { return s.ServePacket(f.mount) })
	entries := s.Registered(l.Addr(), f.mount.LocalAddr())
	if f.own {
		p := server.NewPortmapper(entries, f.mapper.Addr(), f.mapperUDP.LocalAddr(), f.log)
		f.log.Info("port mapper", "listen", f.mapper.Addr().String())
		go serve("port mapper", func() error { return p.Serve(f.mapper) })
		go serve("port mapper over UDP", func() error { return p.ServePacket(f.mapperUDP) })
		return func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			p.Shutdown(ctx)
		}, nil
	}
	r, err := portmap.Register(portmap.Local(int(f.port)), entries)
	if err != nil {
		return nil, err
	}
	f.log.Info("registered with the port mapper", "entries", len(entries))
	return func() {
		if err := r.Close(); err != nil {
			f.log.Warn("what was registered with the port mapper could not be removed", "err", err)
		}
	}, nil
}
