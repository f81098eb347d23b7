package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"tansy/tools/load"
)

// What new clients get beside attacks: each connects, makes a call or a few, and leaves. The server has limits
// that the peers reach.

// siege is an attack that keeps new clients out.
type siege struct {
	attack
	clients     int      // at a time
	flags       []string // of the server
	descriptors int      // that its process may have; 0: any number
	does        string   // of newcomers
}

var sieges = []siege{
	{attack{"48 that never read, for 64 connections", 48, "never read", 4}, 80,
		[]string{"--max-connections", "64"}, 0, newReads},
	{attack{"1,100 that never read", 1100, "never read", 10}, 16, nil, 0, newReads},
	{attack{"8 half-sent WRITEs", 8, "write half", 0}, 1, nil, 0, newWrite},
	{attack{"32 half-sent WRITEs", 32, "write half", 0}, 1, nil, 0, newWrite},
	{attack{"1,060 idle connections, 1,024 descriptors", 1060, "idle", 9}, 1, nil, 1024, newProbe},
	{attack{"1,060 idle connections, 1,024 descriptors", 1060, "idle", 9}, 1, nil, 1024, newGetattr},
}

const (
	newReads   = "READs of new clients"
	newWrite   = "first WRITE of 4 KiB"
	newGetattr = "first GETATTR"
	newProbe   = "GET /healthz"
)

const (
	newIO = 4 << 10 // size of a first WRITE in bytes

	// patience is how long a newcomer tries.
	patience = 10 * time.Second
)

func (b *bench) besiege() error {
	for _, s := range sieges {
		if !strings.Contains(s.name, b.attack) || b.child == nil && s.does == newProbe {
			continue
		}
		s.peers = min(s.peers, b.peers)
		if err := b.compareSiege(s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// compareSiege measures newcomers beside the attack and beside honest peers in turns, each time with a new server.
func (b *bench) compareSiege(s siege) error {
	honest := s.attack
	honest.do = "behave"
	var got [2][]figures
	var lost [2][]float64
	for r := range b.rounds {
		for k := range 2 {
			i := (r + k) % 2
			f, cut, err := b.siegeRound(s, []attack{s.attack, honest}[i])
			if err != nil {
				return err
			}
			got[i] = append(got[i], f)
			lost[i] = append(lost[i], cut)
		}
	}
	ours, floor := median(got[0]), median(got[1])
	b.table.row(s.does+" beside "+s.name, ours.rate, max(floor.rate, 1/patience.Seconds()), "/s", 0.5, false)
	if floor.p99 < 10 {
		b.table.row("  slowest hundredth, against 100 ms", ours.p99, 100, "ms", 1, true)
	} else {
		b.table.row("  slowest hundredth", ours.p99, floor.p99, "ms", 0, true)
	}
	if s.does == newReads {
		slices.Sort(lost[0])
		slices.Sort(lost[1])
		b.table.row("  cut in the midst of calls, against 1 %", lost[0][len(lost[0])/2], 1, "%", 1, true)
		b.table.note("  cut beside as many honest ones", lost[1][len(lost[1])/2], "%")
	}
	return nil
}

// siegeRound measures newcomers beside one kind of peers, and tells how many in a hundred lost their connection after
// an answer.
func (b *bench) siegeRound(s siege, a attack) (f figures, cut float64, err error) {
	own := *b
	if b.child != nil {
		if own.dir, err = os.MkdirTemp(b.dir, "siege-"); err != nil {
			return f, 0, err
		}
		defer os.RemoveAll(own.dir)
		o := b.options
		o.server = b.child.cmd.Path
		o.flags = append([]string{"--status", "127.0.0.1:0"}, s.flags...)
		o.descriptors = s.descriptors
		if own.child, err = startServer(o, own.dir); err != nil {
			return f, 0, err
		}
		defer own.child.stop()
		own.addr = own.child.addr
	}
	conns, dirs, done, err := own.clients("siege", 1)
	if err != nil {
		return f, 0, err
	}
	defer done()
	v := &victim{c: conns[0], dir: dirs[0], data: make([]byte, attackIO)}
	if v.file, err = newFile(v.c, v.dir, "file", v.data); err != nil {
		return f, 0, err
	}
	defer func() { // the connection may be idle for the longest
		if c, err := load.Dial(own.addr, true); err == nil {
			defer c.Close()
			c.StartRemove(v.dir, "file")
			c.Wait(0)
		}
	}()
	stop, err := own.launch(a, v)
	if err != nil {
		return f, 0, err
	}
	defer stop()
	time.Sleep(min(b.duration, 2*time.Second)) // they get under way
	n := &newcomers{addr: own.addr, file: v.file, does: s.does}
	if own.child != nil {
		n.status = own.child.status
	}
	f, cut = n.measure(s.clients, b.duration)
	return f, cut, nil
}

// newcomers are clients that come, make their calls, and go.
type newcomers struct {
	addr, status string
	file         load.Handle
	does         string
	cut          atomic.Int64
}

// measure has some of them come one after the other, for d and until each has tried once. Of a hundred connections that
// were served so many were cut.
func (n *newcomers) measure(clients int, d time.Duration) (f figures, cut float64) {
	var mu sync.Mutex
	var times []float64
	succeeded := 0
	begin := time.Now()
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for first := true; first || time.Since(begin) < d; first = false {
				at := time.Now()
				ok := n.succeeds(at.Add(patience))
				mu.Lock()
				times = append(times, time.Since(at).Seconds()*1000)
				if ok {
					succeeded++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(times)
	f = figures{float64(succeeded) / time.Since(begin).Seconds(), times[len(times)*99/100]}
	if lost := float64(n.cut.Load()); lost > 0 {
		cut = 100 * lost / (lost + float64(succeeded))
	}
	return f, cut
}

// succeeds tries until it has done what newcomers do, or until the time given.
func (n *newcomers) succeeds(until time.Time) bool {
	for time.Now().Before(until) {
		if n.try(until) == nil {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func (n *newcomers) try(until time.Time) error {
	if n.does == newProbe {
		return probe(n.status+"healthz", until)
	}
	tcp, err := net.DialTimeout("tcp", n.addr, time.Until(until))
	if err != nil {
		return err
	}
	late := time.AfterFunc(time.Until(until), func() { tcp.Close() })
	defer late.Stop()
	v := victim{c: load.NewConn(tcp), file: n.file}
	defer v.c.Close()
	switch n.does {
	case newGetattr:
		return v.do(opGetattr)
	case newWrite:
		v.c.StartWrite(v.file, 0, make([]byte, newIO), load.Unstable, func(uint64) error { return nil })
		return v.c.Wait(0)
	}
	for i := range 8 {
		if err := v.do(opRead); err != nil {
			if i > 0 && time.Now().Before(until) {
				n.cut.Add(1)
			}
			return err
		}
	}
	return nil
}

// probe asks once, on a connection of its own.
func probe(url string, until time.Time) error {
	c := http.Client{Timeout: time.Until(until), Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Get(url)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New(r.Status))
	}
	return nil
}
