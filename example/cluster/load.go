package main

import (
	"fmt"
	"net"
	"time"

	"tansy/test/kit/nfsclient"
	"tansy/test/kit/steady"
)

// perVolume is how many clients work on each volume.
const perVolume = 2

// load is the clients, which know what every call has to answer.
type load struct {
	c       *cluster
	clients []*steady.Client
}

// work has clients work on all volumes.
func (c *cluster) work(seed uint64) (*load, error) {
	l := &load{c: c}
	for i, v := range c.volumes {
		for j := range perVolume {
			m, err := nfsclient.MountOn(nfsclient.NewHard(func() (net.Conn, error) { return net.Dial("tcp", v.address) }))
			if err != nil {
				return nil, err
			}
			l.clients = append(l.clients, steady.Start(m, fmt.Sprint("client", j), seed+uint64(i*perVolume+j)))
		}
	}
	return l, nil
}

// progress waits until each client has done more since.
func (l *load) progress() error {
	for _, s := range l.clients {
		if err := s.Progress(3); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the load, and says what there was of it.
func (l *load) stop() error {
	calls, moves := 0, 0
	var longest time.Duration
	for _, s := range l.clients {
		if err := s.Stop(); err != nil {
			return err
		}
		n, pause := s.Calls()
		calls, longest = calls+n, max(longest, pause)
	}
	for _, v := range l.c.volumes {
		moves += v.moves
	}
	fmt.Printf("%d calls of %d clients, each answered as it must be, while volumes moved %d times; the longest took %v\n",
		calls, len(l.clients), moves, longest.Round(time.Millisecond))
	return nil
}
