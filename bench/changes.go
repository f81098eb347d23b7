package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tansy/tools/load"
)

// What a client that makes and removes files gets beside one other host that makes files as fast as it can; compared
// with what it gets beside as many hosts that do as itself. All of them are this machine, at several addresses.

const (
	changingPeers = 16
	doMakeBeside  = "make files in a directory beside"
	doMakeHere    = "make files in the victim's directory"
	doChange      = "make and remove a file"
	doChangeHere  = "make and remove a file in the victim's directory"
)

// madePerCall is how many calls a flood sends at a time.
const madePerCall = 100

// changeFloods are the floods, each with the honest peers that work where it does.
var changeFloods = []struct{ flood, honest attack }{
	{
		flood:  attack{name: "16 that flood CREATEs, another directory", peers: changingPeers, do: doMakeBeside},
		honest: attack{peers: changingPeers, do: doChange},
	},
	{
		flood:  attack{name: "16 that flood CREATEs, the same directory", peers: changingPeers, do: doMakeHere},
		honest: attack{peers: changingPeers, do: doChangeHere},
	},
}

// besideChanges measures CREATE and REMOVE, and GETATTR, beside the floods. What these make stays, so each has a server
// of its own, and one that is not ours is spared.
func (b *bench) besideChanges() error {
	if b.child == nil {
		return nil
	}
	for _, a := range changeFloods {
		name := a.flood.name
		if !strings.Contains(name, b.attack) {
			continue
		}
		a.flood.peers, a.honest.peers = min(a.flood.peers, b.peers), min(a.honest.peers, b.peers)
		var got [2]changeFigures
		for r := range b.rounds {
			for k := range 2 {
				i := (r + k) % 2
				if err := b.changeRound([]attack{a.flood, a.honest}[i], &got[i]); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		b.fairRow("CREATE, REMOVE beside "+name, got[0].change, got[1].change)
		b.fairRow("GETATTR beside "+name, got[0].look, got[1].look)
	}
	return nil
}

// fairRow adds the rows about one kind of call beside an attack, and beside honest peers.
func (b *bench) fairRow(what string, attacked, honest []figures) {
	ours, floor := median(attacked), median(honest)
	b.table.row(what, ours.rate, floor.rate, "/s", 0.5, false)
	if floor.p99 < 10 {
		b.table.row("  slowest hundredth, against 100 ms", ours.p99, 100, "ms", 1, true)
	} else {
		b.table.row("  slowest hundredth", ours.p99, floor.p99, "ms", 0, true)
	}
}

// changeFigures are those of a file made and removed, and of a GETATTR.
type changeFigures struct{ change, look []figures }

// changeRound measures beside one kind of peers.
func (b *bench) changeRound(a attack, got *changeFigures) error {
	own, end, err := b.withFreshServer()
	if err != nil {
		return err
	}
	defer end()
	conns, dirs, done, err := own.clients("changes", 1)
	if err != nil {
		return err
	}
	defer done()
	v := &victim{c: conns[0], dir: dirs[0], file: dirs[0]}
	stop, err := own.launch(a, v)
	if err != nil {
		return err
	}
	defer stop()
	n := 0
	change := func() error {
		n++
		return makeAndRemove(v.c, v.dir, fmt.Sprint("mine-", n))
	}
	if _, err := timed(min(b.duration, 2*time.Second), change); err != nil {
		return err
	}
	for range 2 {
		f, err := timed(b.duration/2, change)
		if err != nil {
			return err
		}
		got.change = append(got.change, f)
		if f, err = timed(b.duration/4, func() error { return v.do(opGetattr) }); err != nil {
			return err
		}
		got.look = append(got.look, f)
	}
	return nil
}

// floodedSize is that of a volume with more files than a flood makes while it is measured.
const floodedSize = "64G"

// withFreshServer is the same bench with a server of its own, like that of b, until end is called.
func (b *bench) withFreshServer() (own *bench, end func(), err error) {
	copied := *b
	own = &copied
	if own.dir, err = os.MkdirTemp(b.dir, "fresh-"); err != nil {
		return nil, nil, err
	}
	o := b.options
	o.server, o.size = b.child.cmd.Path, floodedSize
	if own.child, err = startServer(o, own.dir); err != nil {
		os.RemoveAll(own.dir)
		return nil, nil, err
	}
	own.addr = own.child.addr
	return own, func() {
		own.child.stop()
		os.RemoveAll(own.dir)
	}, nil
}

// timed repeats do for d, and once at least.
func timed(d time.Duration, do func() error) (figures, error) {
	var times []float64
	begin := time.Now()
	for len(times) == 0 || time.Since(begin) < d {
		at := time.Now()
		if err := do(); err != nil {
			return figures{}, err
		}
		times = append(times, time.Since(at).Seconds()*1000)
	}
	elapsed := time.Since(begin).Seconds()
	slices.Sort(times)
	return figures{float64(len(times)) / elapsed, times[len(times)*99/100]}, nil
}

// makeAndRemove makes a file and removes it.
func makeAndRemove(c *load.Conn, dir load.Handle, name string) error {
	c.StartCreate(dir, name, func(load.Handle) error { return nil })
	if err := c.Wait(0); err != nil {
		return err
	}
	c.StartRemove(dir, name)
	return c.Wait(0)
}

// changers are the peers of this file so far, for their names and addresses.
var changers atomic.Int32

// dialAs connects from address n of this machine if the server is here.
func (p *attacker) dialAs(n int) (net.Conn, error) {
	var d net.Dialer
	if host, _, _ := net.SplitHostPort(p.addr); host == "127.0.0.1" {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(n))}
	}
	return d.Dial("tcp", p.addr)
}

// change makes and removes a file again and again, as a host of its own, in a directory of its own or in the victim's.
func (p *attacker) change(here bool) {
	n := int(changers.Add(1))
	tcp, err := p.dialAs(2 + n%200)
	if err != nil {
		return
	}
	c := load.NewConn(tcp)
	defer c.Close()
	name := fmt.Sprint("peer-", n)
	if here {
		for !p.stopped() && makeAndRemove(c, p.dir, name) == nil {
		}
		return
	}
	dir, err := c.Mkdir(p.dir, name)
	if err != nil {
		return
	}
	for !p.stopped() && makeAndRemove(c, dir, "file") == nil {
	}
	c.StartRmdir(p.dir, name)
	c.Wait(0)
}

// makeFiles sends CREATEs as fast as they are taken, as one host over all connections. The names are new ones.
func (p *attacker) makeFiles(beside bool) {
	n := int(changers.Add(1))
	tcp, err := p.dialAs(1)
	if err != nil {
		return
	}
	defer tcp.Close()
	dir := p.dir
	if beside {
		if dir, err = load.NewConn(tcp).Mkdir(p.dir, fmt.Sprint("peer-", n)); err != nil {
			return
		}
	}
	go io.Copy(io.Discard, tcp)
	for i := 0; !p.stopped(); i++ {
		k := 0
		if _, err := tcp.Write(calls(madePerCall, func(c *load.Conn) {
			k++
			c.StartCreate(dir, fmt.Sprintf("made-%d-%d-%d", n, i, k), nil)
		})); err != nil {
			return
		}
	}
}
