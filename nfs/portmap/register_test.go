package portmap

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tansy/nfs/oncrpc"
)

// mapper is a running port mapper: it notes what is registered.
type mapper struct {
	mu     sync.Mutex
	list   []string
	refuse string
}

func (m *mapper) change(what string, set bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if set {
		if what == m.refuse || slices.Contains(m.list, what) {
			return false
		}
		m.list = append(m.list, what)
		return true
	}
	before := len(m.list)
	m.list = slices.DeleteFunc(m.list, func(o string) bool { return o == what })
	return len(m.list) < before
}

func (m *mapper) String() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.list, ", ")
}

func (m *mapper) programs(versions ...uint32) (list []oncrpc.Program) {
	for _, v := range versions {
		proc := func(set bool) oncrpc.Proc {
			return oncrpc.Proc{Name: "SET or UNSET", Serve: func(c *oncrpc.Call) oncrpc.Accept {
				var what string
				if v == 2 {
					p := getMapping(&c.Args)
					what = fmt.Sprint(p.program, p.version, p.proto, p.port)
				} else {
					r := getRpcb(&c.Args)
					a, err := parseUniversal(r.addr)
					what = fmt.Sprint(r.program, " ", r.version, " ", r.netid, " ", a, " ", r.owner)
					if err != nil {
						return oncrpc.GarbageArgs
					}
				}
				c.Reply.Bool(m.change(what, set))
				return oncrpc.Success
			}}
		}
		list = append(list,
			oncrpc.Program{Number: Program, Version: v, Procs: []oncrpc.Proc{oncrpc.NullProc, proc(true), proc(false)}})
	}
	return list
}

// start runs m on a socket of its own until the test ends.
func (m *mapper) start(t *testing.T, network string, versions ...uint32) Dial {
	cfg := oncrpc.Config{Programs: m.programs(versions...), Log: slog.New(slog.DiscardHandler)}
	if network == "udp" {
		pc, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := oncrpc.NewPacketServer(cfg)
		go s.Serve(pc)
		t.Cleanup(s.Stop)
		return Dial{network, pc.LocalAddr().String()}
	}
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	s := oncrpc.NewServer(cfg)
	go s.Serve(l)
	t.Cleanup(func() { s.Shutdown(context.Background()) })
	return Dial{network, l.Addr().String()}
}

var mine = []Entry{{100003, 3, "tcp", at("0.0.0.0:2049")}, {100003, 3, "tcp6", at("[::]:2049")},
	{100005, 1, "udp", at("0.0.0.0:2050")}}

// What is registered is removed at the end, by the newest version that the port mapper has.
func TestRegister(t *testing.T) {
	four := "100003 3 tcp 0.0.0.0:2049 tansy, 100003 3 tcp6 [::]:2049 tansy, 100005 1 udp 0.0.0.0:2050 tansy"
	for _, network := range []string{"unix", "tcp", "udp"} {
		for _, versions := range [][]uint32{{2}, {2, 3}, {2, 3, 4}} {
			want := four
			if len(versions) == 1 {
				want = "100003 3 6 2049, 100005 1 17 2050"
			}
			m := new(mapper)
			r, err := Register([]Dial{{"tcp", "127.0.0.1:1"}, {"unix", "/nothing"}, m.start(t, network, versions...)}, mine)
			if err != nil {
				t.Fatal(network, err)
			}
			if got := m.String(); got != want {
				t.Errorf("%s, versions %v: %s, want %s", network, versions, got, want)
			}
			if err := r.Close(); err != nil || m.String() != "" {
				t.Errorf("%s, versions %v: left is %s, %v", network, versions, m, err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// What is taken by another is said, and nothing is left behind.
func TestRegisterRefused(t *testing.T) {
	m := &mapper{refuse: "100005 1 udp 0.0.0.0:2050 tansy"}
	_, err := Register([]Dial{m.start(t, "tcp", 2, 3, 4)}, mine)
	if err == nil || !strings.Contains(err.Error(), "program 100005 version 1 over udp was refused") || m.String() != "" {
		t.Errorf("%v; left is %s", err, m)
	}
	if _, err := Register([]Dial{{"tcp", "127.0.0.1:1"}}, mine); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Error(err)
	}
	if _, err := Register([]Dial{m.start(t, "tcp", 5)}, mine); err == nil {
		t.Error("registered with version 5")
	}
}

func TestLocal(t *testing.T) {
	if got := fmt.Sprint(Local(Port)); got != "[{unix "+Socket+"} {tcp 127.0.0.1:111} {udp 127.0.0.1:111}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(Local(9)); got != "[{tcp 127.0.0.1:9} {udp 127.0.0.1:9}]" {
		t.Error(got)
	}
}
