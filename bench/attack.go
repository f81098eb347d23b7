package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"tansy/tools/load"
)

// The attack workload: what a well-behaved client gets beside peers that are slow, broken, or
// hostile, compared with what it gets beside as many that behave as itself. All come from
// one address, which is the worst case: it has one share.

// attackIO is the size of READs and WRITEs in bytes.
const attackIO = 1 << 20

// attack is a number of peers that do the same.
type attack struct {
	name  string
	peers int
	do    string // of behaviours
	hosts int    // from so many addresses of this host; 0: as the server's
}

var attacks = []attack{
	{"5 readers at 128 KB/s", 5, "read slowly", 0},
	{"48 readers at 128 KB/s", 48, "read slowly", 0},
	{"8 half-sent WRITEs", 8, "write half", 0},
	{"16 writers at 20 KB/s", 16, "write slowly", 0},
	{"1,024 idle connections", 1024, "idle", manyHosts},
	{"900 that never read", 900, "never read", manyHosts},
	{"900 that flood", 900, "flood", manyHosts},
}

// manyHosts are enough that the limit of each does not matter.
const manyHosts = 8

const streamers = "32 streaming writers"

// behaviours are what peers do.
var behaviours = map[string]func(p *attacker){
	"read slowly":  func(p *attacker) { p.readSlowly(128_000) },
	"write half":   func(p *attacker) { p.sendAndStay(p.write[:attackIO/2]) },
	"write slowly": func(p *attacker) { p.writeSlowly(20_000) },
	"idle":         func(p *attacker) { p.sendAndStay(nil) },
	"never read":   func(p *attacker) { p.sendAndStay(slices.Concat(p.reads, p.getattrs)) },
	"flood":        func(p *attacker) { p.sendAndStay(slices.Concat(p.reads, bytes.Repeat(p.getattrs, 100))) },
	"behave":       (*attacker).behave,
	"stream":       (*attacker).stream,
	doMakeBeside:   func(p *attacker) { p.makeFiles(true) },
	doMakeHere:     func(p *attacker) { p.makeFiles(false) },
	doChange:       func(p *attacker) { p.change(false) },
	doChangeHere:   func(p *attacker) { p.change(true) },
}

func underAttack(b *bench) error {
	conns, dirs, done, err := b.clients("attack", 1)
	if err != nil {
		return err
	}
	defer done()
	v := &victim{c: conns[0], dir: dirs[0], data: make([]byte, attackIO)}
	if v.file, err = newFile(v.c, dirs[0], "file", v.data); err != nil {
		return err
	}
	defer func() {
		v.c.StartRemove(dirs[0], "file")
		v.c.Wait(0)
	}()
	for _, a := range attacks {
		if !strings.Contains(a.name, b.attack) {
			continue
		}
		a.peers = min(a.peers, b.peers)
		honest := attack{a.name, a.peers, "behave", a.hosts}
		if err := b.compareAttack(v, a, honest); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	if strings.Contains(streamers, b.attack) {
		if err := b.interactive(v); err != nil {
			return err
		}
	}
	if err := b.besiege(); err != nil {
		return err
	}
	return b.besideChanges()
}

// compareAttack measures v beside the attack and beside honest peers in turns.
func (b *bench) compareAttack(v *victim, a, honest attack) error {
	var got [2][len(victimOps)][]figures
	var peak [2]uint64
	for r := range b.rounds {
		for k := range 2 {
			i := (r + k) % 2
			stop, err := b.launch([]attack{a, honest}[i], v)
			if err != nil {
				return err
			}
			err = v.warmUp(min(b.duration, 2*time.Second))
			if err == nil {
				err = v.measure(b.duration, &got[i])
			}
			stop()
			if err != nil {
				return err
			}
			if b.child != nil {
				peak[i] = max(peak[i], b.child.takePeak())
			}
		}
	}
	for op, name := range victimOps {
		ours, floor := median(got[0][op]), median(got[1][op])
		b.table.row(name+" beside "+a.name, ours.rate, floor.rate, "/s", 0.5, false)
		if floor.p99 < 10 {
			b.table.row("  slowest hundredth, against 100 ms", ours.p99, 100, "ms", 1, true)
		} else {
			b.table.row("  slowest hundredth", ours.p99, floor.p99, "ms", 0, true)
		}
	}
	if peak[0] > 0 {
		b.table.row("peak memory beside "+a.name, float64(peak[0])/(1<<20), float64(peak[1])/(1<<20), "MiB", 0, true)
	}
	return nil
}

// interactive measures GETATTR beside 32 streaming writers.
func (b *bench) interactive(v *victim) error {
	stop, err := b.launch(attack{"", min(32, b.peers), "stream", 0}, v)
	if err != nil {
		return err
	}
	defer stop()
	if err := v.warmUp(min(b.duration, 2*time.Second)); err != nil {
		return err
	}
	var got [len(victimOps)][]figures
	for range b.rounds {
		if err := v.measure(b.duration, &got); err != nil {
			return err
		}
	}
	f := median(got[opGetattr])
	b.table.note("GETATTR beside "+streamers, f.rate, "/s")
	b.table.row("  slowest hundredth, against 10 ms", f.p99, 10, "ms", 1, true)
	return nil
}

// victim is the client whose calls are measured. It waits for each answer.
type victim struct {
	c         *load.Conn
	dir, file load.Handle
	data      []byte
}

const (
	opRead = iota
	opWrite
	opGetattr
)

var victimOps = [...]string{opRead: "READ 1 MiB", opWrite: "WRITE 1 MiB", opGetattr: "GETATTR"}

func (v *victim) do(op int) error {
	switch op {
	case opRead:
		return readWhole(v.c, v.file)
	case opWrite:
		v.c.StartWrite(v.file, 0, v.data, load.Unstable, func(uint64) error { return nil })
	case opGetattr:
		v.c.StartGetattr(v.file, func(uint64) error { return nil })
	}
	return v.c.Wait(0)
}

// figures are of calls of one kind: how many in a second, and the time in ms that one in a
// hundred takes at least.
type figures struct{ rate, p99 float64 }

// warmUp uses the connection for d, while the others get under way: of those from one address
// the longest idle is the first that a server gives up.
func (v *victim) warmUp(d time.Duration) error {
	for begin := time.Now(); time.Since(begin) < d; {
		if err := v.do(opGetattr); err != nil {
			return err
		}
	}
	return nil
}

// measure adds the figures of each kind of call, for d each, and of one call at least.
func (v *victim) measure(d time.Duration, got *[len(victimOps)][]figures) error {
	for op := range victimOps {
		var times []float64
		begin := time.Now()
		for len(times) == 0 || time.Since(begin) < d {
			at := time.Now()
			if err := v.do(op); err != nil {
				return fmt.Errorf("%s: %w", victimOps[op], err)
			}
			times = append(times, time.Since(at).Seconds()*1000)
		}
		elapsed := time.Since(begin).Seconds()
		slices.Sort(times)
		got[op] = append(got[op], figures{float64(len(times)) / elapsed, times[len(times)*99/100]})
	}
	return nil
}

// median is that of each figure by itself.
func median(f []figures) figures {
	pick := func(of func(figures) float64) float64 {
		v := make([]float64, len(f))
		for i := range f {
			v[i] = of(f[i])
		}
		slices.Sort(v)
		return v[len(v)/2]
	}
	return figures{pick(func(f figures) float64 { return f.rate }), pick(func(f figures) float64 { return f.p99 })}
}

// newFile makes a file with data.
func newFile(c *load.Conn, dir load.Handle, name string, data []byte) (h load.Handle, err error) {
	c.StartCreate(dir, name, func(n load.Handle) error {
		h = slices.Clone(n)
		return nil
	})
	if err := c.Wait(0); err != nil {
		return nil, err
	}
	c.StartWrite(h, 0, data, load.FileSync, func(uint64) error { return nil })
	return h, c.Wait(0)
}

// readWhole reads attackIO bytes, in as many pieces as the server makes of them.
func readWhole(c *load.Conn, h load.Handle) error {
	for off := uint64(0); off < attackIO; {
		var n int
		c.StartRead(h, off, uint32(attackIO-off), func(data []byte) error {
			n = len(data)
			return nil
		})
		if err := c.Wait(0); err != nil {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		off += uint64(n)
	}
	return nil
}

// attacker is one peer of an attack.
type attacker struct {
	addr      string
	dir, file load.Handle   // the victim's
	hosts     int           // addresses to come from
	opened    atomic.Int32  // connections
	peers     atomic.Int32  // that have a file of their own
	stop      chan struct{} // closed when it is over
	data      []byte

	// Calls as they are on the wire.
	write, reads, getattrs []byte
}

// peersCommand makes this program the peers of an attack; address, behaviour, number, hosts, and the
// victim's folder and file follow.
const peersCommand = "peers-process"

// launch starts an attack, in a process of its own: what slows the peers shall not slow the victim.
func (b *bench) launch(a attack, v *victim) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, peersCommand, b.addr, a.do, strconv.Itoa(a.peers), strconv.Itoa(a.hosts),
		hex.EncodeToString(v.dir), hex.EncodeToString(v.file))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		in.Close()
		cmd.Wait()
	}, nil
}

// peersMain is that process. It ends when its standard input does.
func peersMain(addr, do, count, hosts, dir, file string) int {
	n, err1 := strconv.Atoi(count)
	from, err2 := strconv.Atoi(hosts)
	d, err3 := hex.DecodeString(dir)
	f, err4 := hex.DecodeString(file)
	behave := behaviours[do]
	if err := errors.Join(err1, err2, err3, err4); err != nil || behave == nil {
		fmt.Fprintln(os.Stderr, "peers:", do, err)
		return 1
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGPIPE) // the other process says when it is over
	p := &attacker{addr: addr, hosts: from, dir: d, file: f, stop: make(chan struct{}), data: make([]byte, attackIO)}
	p.write = calls(1, func(c *load.Conn) { c.StartWrite(f, 0, p.data, load.Unstable, nil) })
	p.reads = calls(16, func(c *load.Conn) { c.StartRead(f, 0, attackIO, nil) })
	p.getattrs = calls(100, func(c *load.Conn) { c.StartGetattr(f, nil) })
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(p.stop)
	}()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for !p.stopped() { // a peer that was thrown out comes again
				behave(p)
				p.pause(time.Second)
			}
		})
	}
	wg.Wait()
	return 0
}

func (p *attacker) stopped() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

func (p *attacker) pause(d time.Duration) {
	select {
	case <-p.stop:
	case <-time.After(d):
	}
}

// dial connects, from the next of several addresses if the peers have such.
func (p *attacker) dial() (net.Conn, error) {
	var d net.Dialer
	if host, _, _ := net.SplitHostPort(p.addr); p.hosts > 0 && host == "127.0.0.1" {
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+int(p.opened.Add(1))%p.hosts))}
	}
	return d.Dial("tcp", p.addr)
}

// open connects, and closes the connection when the attack is over.
func (p *attacker) open() (net.Conn, error) {
	c, err := p.dial()
	if err != nil {
		return nil, err
	}
	go func() {
		<-p.stop
		c.Close()
	}()
	return c, nil
}

// calls are n calls as they are on the wire.
func calls(n int, start func(c *load.Conn)) []byte {
	c := load.NewConn(nil)
	for range n {
		start(c)
	}
	return c.Queued()
}

// readSlowly asks for much and takes so many bytes in a second.
func (p *attacker) readSlowly(rate int) {
	c, err := p.open()
	if err != nil {
		return
	}
	defer c.Close()
	go func() {
		for {
			if _, err := c.Write(p.reads); err != nil {
				return
			}
		}
	}()
	for {
		if _, err := io.CopyN(io.Discard, c, int64(rate/10)); err != nil {
			return
		}
		p.pause(100 * time.Millisecond)
	}
}

// writeSlowly sends WRITEs at so many bytes in a second.
func (p *attacker) writeSlowly(rate int) {
	c, err := p.open()
	if err != nil {
		return
	}
	defer c.Close()
	go io.Copy(io.Discard, c)
	call := p.write
	for left := call; ; p.pause(100 * time.Millisecond) {
		if len(left) == 0 {
			left = call
		}
		n := min(len(left), rate/10)
		if _, err := c.Write(left[:n]); err != nil {
			return
		}
		left = left[n:]
	}
}

// sendAndStay sends b and reads nothing until the server hangs up.
func (p *attacker) sendAndStay(b []byte) {
	c, err := p.open()
	if err != nil {
		return
	}
	defer c.Close()
	if _, err := c.Write(b); err != nil {
		return
	}
	if len(b) == 0 {
		io.Copy(io.Discard, c) // there is nothing to come but the end
	}
	<-p.stop
}

// withFile connects and makes a file, for as long as do runs.
func (p *attacker) withFile(do func(v *victim)) {
	tcp, err := p.dial()
	if err != nil {
		return
	}
	c := load.NewConn(tcp)
	defer c.Close()
	v := &victim{c: c, data: p.data}
	name := fmt.Sprintf("peer-%d", p.peers.Add(1))
	if v.file, err = newFile(c, p.dir, name, p.data); err != nil {
		return
	}
	do(v)
	if c.Wait(0) == nil {
		c.StartRemove(p.dir, name)
		c.Wait(0)
	}
}

// behave makes the calls of a victim.
func (p *attacker) behave() {
	p.withFile(func(v *victim) {
		for op := 0; !p.stopped(); op = (op + 1) % len(victimOps) {
			if v.do(op) != nil {
				return
			}
		}
	})
}

// stream writes as fast as it can, with some calls in flight.
func (p *attacker) stream() {
	p.withFile(func(v *victim) {
		for !p.stopped() {
			v.c.StartWrite(v.file, 0, v.data, load.Unstable, func(uint64) error { return nil })
			if v.c.Wait(3) != nil {
				return
			}
		}
	})
}
