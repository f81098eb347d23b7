package locks

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"tansy/nfs/nlm"
	"tansy/nfs/oncrpc"
	"tansy/nfs/portmap"
)

// quiet is a log that nobody reads.
var quiet = slog.New(slog.DiscardHandler)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// ipOf is the address of a client machine.
func ipOf(address int8) string { return fmt.Sprintf("127.0.0.%d", 31+address) }

// peer is the lock manager and the status monitor of the hosts at an address, with their port mapper.
type peer struct {
	granted func(host string, w wanted) uint32 // what they answer to GRANTED
	started chan uint32                        // the numbers that they are told with the server's starts
}

func (p *peer) programs() []oncrpc.Program {
	procs := make([]oncrpc.Proc, nlm.ProcGranted+1)
	procs[nlm.ProcNull] = oncrpc.NullProc
	procs[nlm.ProcGranted] = oncrpc.Proc{Name: "GRANTED", Serve: func(c *oncrpc.Call) oncrpc.Accept {
		cookie, excl := c.Args.Opaque(1024), c.Args.Bool()
		host := string(c.Args.Opaque(1024))
		c.Args.Opaque(1024) // the file
		w := getWanted(&c.Args)
		w.exclusive = excl
		status := p.granted(host, w)
		c.Reply.Opaque(cookie)
		c.Reply.Uint32(status)
		return oncrpc.Success
	}}
	told := make([]oncrpc.Proc, nlm.StatusNotify+1)
	told[nlm.StatusNull] = oncrpc.NullProc
	told[nlm.StatusNotify] = oncrpc.Proc{Name: "NOTIFY", Serve: func(c *oncrpc.Call) oncrpc.Accept {
		c.Args.Opaque(1024)
		p.started <- c.Args.Uint32()
		return oncrpc.Success
	}}
	return []oncrpc.Program{
		{Number: nlm.Program, Version: 4, Procs: procs},
		{Number: nlm.StatusProgram, Version: nlm.StatusVersion, Procs: told},
	}
}

// getWanted decodes the owner and the bytes of a lock.
func getWanted(d *oncrpc.Decoder) (w wanted) {
	d.Opaque(1024)
	w.owner = int8(d.Uint32())
	first, length := d.Uint64(), d.Uint64()
	w.from, w.to = int8(first), spans-1
	if length > 0 {
		w.to = int8(first + length - 1)
	}
	return w
}

// putWanted encodes them.
func putWanted(e *oncrpc.Encoder, w wanted) {
	e.Opaque([]byte("owner"))
	e.Uint32(uint32(w.owner))
	e.Uint64(uint64(w.from))
	if w.to == spans-1 {
		e.Uint64(0)
	} else {
		e.Uint64(uint64(w.to - w.from + 1))
	}
}

// serveOn serves programs until the result is called.
func serveOn(l net.Listener, programs []oncrpc.Program) (stop func()) {
	s := oncrpc.NewServer(oncrpc.Config{Programs: programs, Log: quiet})
	go s.Serve(l)
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		s.Shutdown(ctx)
	}
}

// newPeers starts one at each address. Their port mappers have the same port.
func newPeers(t testing.TB) (all [addresses]*peer, port uint16, stop func()) {
	t.Helper()
	mappers := samePort(t)
	var stops []func()
	for a := range all {
		p := &peer{started: make(chan uint32, 1000)}
		l, err := net.Listen("tcp", net.JoinHostPort(ipOf(int8(a)), "0"))
		if err != nil {
			t.Fatal(err)
		}
		entries := portmap.Entries(nlm.Program, l.Addr(), 4)
		entries = append(entries, portmap.Entries(nlm.StatusProgram, l.Addr(), nlm.StatusVersion)...)
		stops = append(stops, serveOn(l, p.programs()), serveOn(mappers[a], portmap.New(entries).Programs()))
		all[a] = p
	}
	return all, uint16(mappers[0].Addr().(*net.TCPAddr).Port), func() {
		for _, f := range stops {
			f()
		}
	}
}

// samePort listens at each address on one port.
func samePort(t testing.TB) (all [addresses]net.Listener) {
	t.Helper()
	for range 100 { // others may have it elsewhere
		port := "0"
		var err error
		for a := range all {
			if all[a], err = net.Listen("tcp", net.JoinHostPort(ipOf(int8(a)), port)); err != nil {
				for _, l := range all[:a] {
					l.Close()
				}
				break
			}
			_, port, _ = net.SplitHostPort(all[a].Addr().String())
		}
		if err == nil {
			return all
		}
	}
	t.Fatal("no port is free at all addresses")
	panic("")
}

// lastStart takes what it was told of starts until now, and returns the largest number.
func (p *peer) lastStart() (last uint32) {
	for {
		select {
		case n := <-p.started:
			last = max(last, n)
		default:
			return last
		}
	}
}
