package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// An Echo is a process that answers every call of a fixed size with a reply of a
// fixed size: what the way over loopback costs between two Go programs.
type Echo struct {
	cmd         *exec.Cmd
	addr        string
	call, reply int // bytes
}

// echoCommand makes a program that calls BeEcho an echo process; the sizes follow.
const echoCommand = "echo-process"

// StartEcho starts one, of this program, whose main has to call BeEcho. The sizes are in bytes.
func StartEcho(call, reply int) (*Echo, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	e := &Echo{cmd: exec.Command(self, echoCommand, strconv.Itoa(call), strconv.Itoa(reply)), call: call, reply: reply}
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
		e.Stop()
		return nil, err
	}
	e.addr = strings.TrimSpace(e.addr)
	return e, nil
}

// Stop ends it.
func (e *Echo) Stop() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

// Measure returns round trips per second on so many connections, with so many calls in flight of each.
func (e *Echo) Measure(d time.Duration, connections, depth int) (float64, error) {
	conns := make([]net.Conn, connections)
	readers := make([]*bufio.Reader, connections)
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
	buf := make([][]byte, connections)
	rate, _, err := Repeat(context.Background(), d, connections, func(i, _ int) error {
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

// BeEcho makes this process an echo process, if it was started to be one.
func BeEcho() {
	if len(os.Args) == 4 && os.Args[1] == echoCommand {
		os.Exit(echoMain(os.Args[2], os.Args[3]))
	}
}

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
