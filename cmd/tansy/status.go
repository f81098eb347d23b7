package main

import (
	"fmt"
	"io"
	"net"
	"runtime/debug"

	"tansy/daemon"
	"tansy/server"
	"tansy/status"
)

// startStatus answers on address, from now on, how the server that starts does.
func startStatus(out io.Writer, address, volume string, log *daemon.Log) (*status.Status, error) {
	port, err := daemon.Bind(address)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	l, err := port.Listen()
	if err != nil {
		port.Close()
		return nil, fmt.Errorf("status: %w", err)
	}
	fmt.Fprintf(out, "status on http://%s/\n", l.Addr())
	return newStatus(l, volume, log), nil
}

// newStatus answers on l.
func newStatus(l net.Listener, volume string, log *daemon.Log) *status.Status {
	info, _ := debug.ReadBuildInfo()
	release, revision := versionOf(info)
	s := status.New(status.Config{Release: release, Revision: revision, Volume: volume, Log: log})
	go s.Listen(l)
	return s
}

// sources are what the status of a server is made of.
func sources(address net.Addr, s *server.Server, volumes []*volume) status.Sources {
	from := status.Sources{Address: address.String(), RPC: s.Stats}
	for _, v := range volumes {
		from.Volumes = append(from.Volumes, v.source())
	}
	return from
}
