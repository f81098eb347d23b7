package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"tansy/load"
)

// rpcConnections is the number of connections of the rpc workload.
const rpcConnections = 8

// roundTrips measures calls that cost nothing but the way: NULL, and GETATTR of
// one file.
func roundTrips(b *bench) error {
	conns, dirs, done, err := b.clients("rpc", rpcConnections)
	if err != nil {
		return err
	}
	defer done()
	size := func(uint64) error { return nil }
	for _, c := range []struct {
		name  string
		reply int // bytes
		start func(i int)
	}{
		{"NULL", 28, func(i int) { conns[i].StartNull() }},
		{"GETATTR", 28 + 4 + load.AttrSize, func(i int) { conns[i].StartGetattr(dirs[0], size) }},
	} {
		c.start(0)
		call := len(conns[0].Queued())
		if err := conns[0].Wait(0); err != nil {
			return err
		}
		e, err := startEcho(call, c.reply)
		if err != nil {
			return err
		}
		ours := func(d time.Duration) (float64, error) {
			rate, _, err := forDuration(d, rpcConnections, func(i, _ int) error {
				for range 64 {
					c.start(i)
					if err := conns[i].Wait(b.rpcDepth - 1); err != nil {
						return err
					}
				}
				return nil
			})
			for _, c := range conns {
				if err == nil {
					err = c.Wait(0)
				}
			}
			return rate * 64, err
		}
		floor := func(d time.Duration) (float64, error) { return e.measure(d, b.rpcDepth) }
		name := fmt.Sprintf("%s, connections: %d, calls in flight: %d", c.name, rpcConnections, b.rpcDepth)
		err = b.compare(name, "/s", 0.5, ours, floor)
		e.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// echo is a process that answers every call of a fixed size with a reply of a
// fixed size: what the way over loopback costs between two Go programs.
type echo struct {
	cmd         *exec.Cmd
	addr        string
	call, reply int // bytes
}

// echoCommand makes this program an echo process; the sizes follow.
const echoCommand = "echo-process"

func startEcho(call, reply int) (*echo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	e := &echo{cmd: exec.Command(self, echoCommand, strconv.Itoa(call), strconv.Itoa(reply)), call: call, reply: reply}
	e.cmd.Stderr = os.Stderr
	if _, err := e.cmd.StdinPipe(); err != nil { // it ends when its standard input does
		return nil, err
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := e.cmd.Start(); err != nil {
		return nil, err
	}
	if e.addr, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		e.stop()
		return nil, err
	}
	e.addr = strings.TrimSpace(e.addr)
	return e, nil
}

func (e *echo) stop() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

// measure returns round trips per second.
func (e *echo) measure(d time.Duration, depth int) (float64, error) {
	conns := make([]net.Conn, rpcConnections)
	readers := make([]*bufio.Reader, rpcConnections)
	calls := make([]byte, e.call*depth)
	for i := range conns {
		c, err := net.Dial("tcp", e.addr)
		if err != nil {
			return 0, err
		}
		defer c.Close()
		conns[i], readers[i] = c, bufio.NewReader(c)
		if _, err := c.Write(calls[e.call:]); err != nil { // all in flight but one
			return 0, err
		}
	}
	buf := make([][]byte, rpcConnections)
	rate, _, err := forDuration(d, rpcConnections, func(i, _ int) error {
		if buf[i] == nil {
			buf[i] = make([]byte, e.reply)
		}
		unsent := 1
		for range 64 {
			if readers[i].Buffered() == 0 {
				if _, err := conns[i].Write(calls[:unsent*e.call]); err != nil {
					return err
				}
				unsent = 0
			}
			if _, err := io.ReadFull(readers[i], buf[i]); err != nil {
				return err
			}
			unsent++
		}
		_, err := conns[i].Write(calls[:(unsent-1)*e.call]) // again all but one
		return err
	})
	return rate * 64, err
}

// echoMain is the echo process.
func echoMain(callArg, replyArg string) int {
	call, err1 := strconv.Atoi(callArg)
	reply, err2 := strconv.Atoi(replyArg)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || err1 != nil || err2 != nil || call < 1 || reply < 1 {
		fmt.Fprintln(os.Stderr, "echo:", err, err1, err2)
		return 1
	}
	fmt.Println(l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return 1
		}
		go func() {
			defer c.Close()
			r, in := bufio.NewReader(c), make([]byte, call)
			var out []byte
			for {
				if _, err := io.ReadFull(r, in); err != nil {
					return
				}
				out = append(out, make([]byte, reply)...)
				if r.Buffered() < call {
					if _, err := c.Write(out); err != nil {
						return
					}
					out = out[:0]
				}
			}
		}()
	}
}
