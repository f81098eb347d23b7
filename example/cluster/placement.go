package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path"
	"slices"
	"strings"
)

// host is one that may have servers.
type host struct {
	name   string
	binary string // the program that it has
	up     bool
}

// volume is one with its servers: one serves, and another one stands by.
type volume struct {
	name, address string
	order         []*host // the first that are up have the servers
	servers       map[*host]*server
	moves         int
}

// rendezvous is the order in which hosts are asked to have a volume: by a hash of both. So the volumes of a host that
// fails go to all others, and whoever knows the names knows the order.
func rendezvous(volume string, hosts []*host) []*host {
	weight := func(h *host) []byte {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s on %s", volume, h.name))
		return sum[:]
	}
	order := slices.Clone(hosts)
	slices.SortFunc(order, func(a, b *host) int { return bytes.Compare(weight(b), weight(a)) })
	return order
}

// owner is the server that serves, or nil: not to be asked while one that served ends.
func (v *volume) owner() *server {
	for _, s := range v.servers {
		if s.serving() {
			return s
		}
	}
	return nil
}

// place has a server that serves the volume, and one that stands by, on the first two hosts of its order that are up; a
// server that serves already stays where it is. Servers know no order by themselves: of those that stand by, the first
// to ask gets the volume. So there is one.
func (c *cluster) place(v *volume) error {
	var want []*host
	if o := v.owner(); o != nil {
		want = append(want, o.host)
	}
	for _, h := range v.order {
		if h.up && len(want) < 2 && !slices.Contains(want, h) {
			want = append(want, h)
		}
	}
	for h, s := range v.servers {
		if !slices.Contains(want, h) {
			if err := s.stop(); err != nil {
				return err
			}
			delete(v.servers, h)
		}
	}
	for _, h := range want {
		if v.servers[h] == nil {
			s, err := c.launch(v, h)
			if err != nil {
				return err
			}
			v.servers[h] = s
			if err := s.settle(); err != nil {
				return err
			}
		}
	}
	return nil
}

// handOver waits until o, which serves the volume, has ended, and the one that stands by has taken over.
func (c *cluster) handOver(v *volume, o *server, end func(*server) error) error {
	if err := end(o); err != nil {
		return err
	}
	delete(v.servers, o.host)
	for _, s := range v.servers {
		if err := s.takeOver(); err != nil {
			return err
		}
	}
	v.moves++
	return nil
}

// drain has nothing run on a host any more.
func (c *cluster) drain(h *host) error {
	h.up = false
	for _, v := range c.volumes {
		if s := v.servers[h]; s != nil && s.serving() {
			if err := c.handOver(v, s, (*server).stop); err != nil {
				return err
			}
		} else if s != nil {
			if err := s.stop(); err != nil {
				return err
			}
			delete(v.servers, h)
		}
		if err := c.place(v); err != nil { // another one to stand by
			return err
		}
	}
	return nil
}

// fail has all servers of a host end at once.
func (c *cluster) fail(h *host) error {
	h.up = false
	for _, v := range c.volumes {
		if s := v.servers[h]; s != nil {
			s.cmd.Process.Kill()
		}
	}
	for _, v := range c.volumes {
		if s := v.servers[h]; s != nil && s.serving() {
			if err := c.handOver(v, s, (*server).killed); err != nil {
				return err
			}
		} else if s != nil {
			s.killed()
			delete(v.servers, h)
		}
		if err := c.place(v); err != nil {
			return err
		}
	}
	return nil
}

// back has a host stand by again for the volumes that have it among their first.
func (c *cluster) back(h *host) error {
	h.up = true
	for _, v := range c.volumes {
		if err := c.place(v); err != nil {
			return err
		}
	}
	return nil
}

// home has every volume on the first host of its order.
func (c *cluster) home() error {
	for _, v := range c.volumes {
		if o := v.owner(); o.host != v.order[0] {
			if err := c.handOver(v, o, (*server).stop); err != nil {
				return err
			}
			if err := c.place(v); err != nil {
				return err
			}
		}
	}
	return nil
}

// retire ends the servers of a volume, that which stands by first.
func (c *cluster) retire(v *volume) error {
	o := v.owner()
	for _, s := range v.servers {
		if s != o {
			if err := s.stop(); err != nil {
				return err
			}
		}
	}
	return o.stop()
}

// show prints where volumes are: those who serve, and in parentheses those who stand by.
func (c *cluster) show(what string) {
	fmt.Printf("%-28s", what)
	for _, h := range c.hosts {
		var has []string
		for _, v := range c.volumes {
			name := path.Base(v.name)
			if s := v.servers[h]; s != nil && s.serving() {
				has = append(has, name)
			} else if s != nil {
				has = append(has, "("+name+")")
			}
		}
		fmt.Printf("  %s: %-28s", h.name, strings.Join(has, " "))
	}
	fmt.Println()
}
