package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pipe is a reader of a log: it takes nothing until it is told to, and fails on demand.
type pipe struct {
	gate sync.Mutex // held: it stalls
	mu   sync.Mutex
	got  bytes.Buffer
	err  error
}

func (p *pipe) Write(b []byte) (int, error) {
	p.gate.Lock()
	defer p.gate.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	return p.got.Write(b)
}

func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got.String()
}

// A reader that stalls gets what there is room for, later, and the number of what is lost.
func TestOutputStalls(t *testing.T) {
	p := &pipe{}
	p.gate.Lock()
	o := NewOutput(p, func(n uint64) []byte { return fmt.Appendf(nil, "%d lost\n", n) })
	line := []byte(strings.Repeat("x", 1023) + "\n")
	const writes = 3 * maxPending / 1024
	for range writes {
		if n, err := o.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	lost := o.Dropped()
	if kept := (writes - lost) * 1024; kept > 2*maxPending || kept < maxPending { // one batch may be under way
		t.Errorf("%d bytes kept", kept)
	}
	p.gate.Unlock()
	o.Close(time.Minute)
	got := p.String()
	if n := uint64(strings.Count(got, string(line))); n+lost != writes {
		t.Errorf("%d lines came, %d are lost, of %d", n, lost, writes)
	}
	if want := fmt.Sprintf("%d lost\n", lost); !strings.Contains(got, want) {
		t.Errorf("no %q", want)
	}
}

// What a reader that failed did not get is lost, and told when there is a reader again.
func TestOutputFails(t *testing.T) {
	p := &pipe{err: errors.New("gone")}
	o := NewOutput(p, func(n uint64) []byte { return fmt.Appendf(nil, "%d lost\n", n) })
	o.Write([]byte("first\n"))
	for deadline := time.Now().Add(10 * time.Second); o.Dropped() == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	p.fail(nil)
	o.Write([]byte("second\n"))
	o.Close(time.Minute)
	if got := p.String(); got != "second\n1 lost\n" {
		t.Errorf("%q", got)
	}
	o.Write([]byte("third\n"))
	if o.Dropped() != 2 {
		t.Errorf("%d dropped", o.Dropped())
	}
}

// Close does not wait for a reader that stalls.
func TestOutputCloseStalled(t *testing.T) {
	p := &pipe{}
	p.gate.Lock()
	defer p.gate.Unlock()
	o := NewOutput(p, nil)
	o.Write([]byte("x"))
	closed := make(chan bool)
	go func() {
		o.Close(time.Millisecond)
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("it waits")
	}
}

// newTestLog returns a Log with a clock that the test sets.
func newTestLog(t *testing.T, p *pipe, format string) (*Log, func(time.Duration)) {
	t.Helper()
	var at atomic.Int64 // nanoseconds
	l, err := newLog(p, format, slog.LevelInfo, func() time.Time { return time.Unix(1e9, at.Load()) })
	if err != nil {
		t.Fatal(err)
	}
	return l, func(d time.Duration) { at.Add(int64(d)) }
}

// A message is limited per peer, whatever its port, and what was held back is told.
func TestLogLimits(t *testing.T) {
	p := &pipe{}
	l, pass := newTestLog(t, p, "text")
	for i := range 3 * logBurst {
		l.Warn("slow", "peer", fmt.Sprintf("10.0.0.1:%d", 1000+i))
		l.Info("other", "peer", "10.0.0.1:99")
	}
	l.Warn("slow", "peer", "10.0.0.2:5")
	l.Warn("no peer")
	if _, held := l.Lost(); held != 4*logBurst {
		t.Errorf("%d held back", held)
	}
	pass(logWindow)
	l.sweep(l.now())
	for range logBurst {
		l.Warn("slow", "peer", "10.0.0.1:5")
	}
	l.Close(time.Minute)
	got := p.String()
	for want, n := range map[string]int{
		"msg=slow peer=10.0.0.1:": 2 * logBurst,
		"msg=other":               logBurst,
		"msg=slow peer=10.0.0.2:": 1,
		`msg="no peer"`:           1,
		`level=WARN msg="more of the same were not logged" message=slow count=20 peer=10.0.0.1`:  1,
		`level=INFO msg="more of the same were not logged" message=other count=20 peer=10.0.0.1`: 1,
	} {
		if c := strings.Count(got, want); c != n {
			t.Errorf("%d times %q, want %d, in\n%s", c, want, n, got)
		}
	}
	if r := l.Recent(); len(r) != 2*logBurst+2 || r[0].Message != "slow peer=10.0.0.1:1000" || r[0].Level != slog.LevelWarn {
		t.Errorf("%d recent warnings, %v", len(r), r)
	}
}

// However many kinds of messages there are, memory and log stay bounded.
func TestLogManyKinds(t *testing.T) {
	p := &pipe{}
	l, _ := newTestLog(t, p, "json")
	const n = 5 * logKinds
	for i := range n {
		l.Warn("m", "peer", fmt.Sprint("host", i))
	}
	if len(l.kinds) > logKinds+1 || len(l.Recent()) != logRecent {
		t.Errorf("%d kinds, %d recent", len(l.kinds), len(l.Recent()))
	}
	l.Close(time.Minute)
	if got := strings.Count(p.String(), `"msg":"m"`); got != logKinds+logBurst {
		t.Errorf("%d logged", got)
	}
	if want := fmt.Sprintf(`"message":"messages of many kinds","count":%d`, n-logKinds-logBurst); !strings.Contains(p.String(), want) {
		t.Errorf("no %s", want)
	}
}

// The number of lost messages has the format of the log.
func TestLogLost(t *testing.T) {
	p := &pipe{}
	p.gate.Lock()
	l, _ := newTestLog(t, p, "json")
	big := strings.Repeat("x", maxPending/4)
	for i := range 10 {
		l.Warn(fmt.Sprint(i, big))
	}
	p.gate.Unlock()
	l.Close(time.Minute)
	dropped, _ := l.Lost()
	if want := fmt.Sprintf(`"msg":"messages were lost: the reader of the log did not take them","count":%d`, dropped); dropped == 0 || !strings.Contains(p.String(), want) {
		t.Errorf("no %s", want)
	}
}

// What is remembered of a message fits a page, and does nothing to a terminal.
func TestLogRecent(t *testing.T) {
	l, _ := newTestLog(t, &pipe{}, "text")
	defer l.Close(time.Minute)
	l.Warn("mount refused", "path", "/\x1b[2J\n\u202eä", "stack", "unseen")
	l.Error(strings.Repeat("ä", 1000))
	r := l.Recent()
	if len(r) != 2 || r[0].Message != "mount refused path=/·[2J··ä" || len(r[1].Message) > 410 {
		t.Errorf("%q", r)
	}
}

// JSON has peers and times as text, as the other format has.
func TestLogJSON(t *testing.T) {
	p := &pipe{}
	l, _ := newTestLog(t, p, "json")
	peer := &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 700}
	l.Warn("m", "peer", peer, "lease", 5*time.Second, "none", (*net.UDPAddr)(nil), "n", 3, "err", errors.New("e"))
	l.Close(time.Minute)
	want := `"level":"WARN","msg":"m","peer":"[2001:db8::1]:700","lease":"5s","none":"<nil>","n":3,"err":"e"}` + "\n"
	if got := p.String(); !strings.HasSuffix(got, want) {
		t.Errorf("%s, want ...%s", got, want)
	}
}

func TestLogFormat(t *testing.T) {
	if _, err := NewLog(&pipe{}, "xml", slog.LevelInfo); err == nil {
		t.Error("xml is taken")
	}
	p := &pipe{}
	l, _ := newTestLog(t, p, "text")
	l.Debug("unseen")
	l.With("a", 1).WithGroup("g").Info("seen", "b", 2)
	l.Write([]byte("as it is\n"))
	l.Close(time.Minute)
	if got := p.String(); strings.Contains(got, "unseen") || !strings.Contains(got, "msg=seen a=1 g.b=2\n") || !strings.Contains(got, "as it is\n") {
		t.Errorf("%q", got)
	}
}
