package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Limits of a Log.
const (
	logBurst  = 10               // times that a message about one peer is logged in logWindow
	logWindow = 10 * time.Second // then the rest is counted, and told once
	logKinds  = 1024             // pairs of message and peer that are told apart
	logRecent = 50               // warnings remembered
)

// Log is the log of a server. A caller never waits for the log's reader (Output). A message that is repeated for one
// peer is logged logBurst times in a logWindow; the others are counted, and their number is logged at the end of that
// time. The same holds for a message without a peer. Messages of level debug are not limited.
type Log struct {
	*slog.Logger
	out *Output

	mu      sync.Mutex
	kinds   map[kind]*tally
	held    uint64    // messages that were counted only
	recent  []Warning // oldest first
	now     func() time.Time
	handler slog.Handler
	quit    chan struct{}
	ended   sync.WaitGroup
}

// A Warning is a message of level warning or error.
type Warning struct {
	Time    time.Time
	Level   slog.Level
	Message string // with its attributes
}

// kind is what is limited together.
type kind struct{ message, peer string }

// tally is what came of a kind since start.
type tally struct {
	start  time.Time
	passed int
	held   uint64
	level  slog.Level
}

// NewLog returns a Log in a format, text or json, that is written to w.
func NewLog(w io.Writer, format string, level slog.Level) (*Log, error) {
	return newLog(w, format, level, time.Now)
}

func newLog(w io.Writer, format string, level slog.Level, now func() time.Time) (*Log, error) {
	var handler func(io.Writer) slog.Handler
	options := &slog.HandlerOptions{Level: level}
	switch format {
	case "text":
		handler = func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, options) }
	case "json":
		options.ReplaceAttr = asText
		handler = func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, options) }
	default:
		return nil, fmt.Errorf("log format %q: give text or json", format)
	}
	l := &Log{kinds: map[kind]*tally{}, now: now, quit: make(chan struct{})}
	l.out = NewOutput(w, func(dropped uint64) []byte {
		var b bytes.Buffer
		slog.New(handler(&b)).Warn("messages were lost: the reader of the log did not take them", "count", dropped)
		return b.Bytes()
	})
	l.handler = handler(l.out)
	l.Logger = slog.New(&limited{Handler: l.handler, log: l})
	l.ended.Go(l.run)
	return l, nil
}

// asText has JSON say a peer's address, or how long something takes, as the text format does: not by the fields of its
// type in Go, or by a number without a unit.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		a.Value = slog.StringValue(a.Value.String())
	case slog.KindAny:
		if v, ok := a.Value.Any().(fmt.Stringer); ok {
			a.Value = slog.StringValue(fmt.Sprint(v)) // which survives a nil pointer
		}
	}
	return a
}

// Write writes p as it is, for what is no message.
func (l *Log) Write(p []byte) (int, error) { return l.out.Write(p) }

// Close logs what was held back, and waits for the reader, but not longer than patience.
func (l *Log) Close(patience time.Duration) {
	close(l.quit)
	l.ended.Wait()
	l.sweep(time.Time{})
	l.out.Close(patience)
}

// Lost is the number of messages that the reader did not take, and of those that were only counted.
func (l *Log) Lost() (dropped, held uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Dropped(), l.held
}

// Recent returns the latest warnings and errors, the oldest first.
func (l *Log) Recent() []Warning {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Warning(nil), l.recent...)
}

// run tells in time what was held back.
func (l *Log) run() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-l.quit:
			return
		case <-t.C:
			l.sweep(l.now())
		}
	}
}

// sweep ends the windows that are over at now, all if now is zero.
func (l *Log) sweep(now time.Time) {
	l.mu.Lock()
	over := map[kind]*tally{}
	for k, t := range l.kinds {
		if now.IsZero() || now.Sub(t.start) >= logWindow {
			over[k] = t
			delete(l.kinds, k)
		}
	}
	l.mu.Unlock()
	for k, t := range over {
		if t.held == 0 {
			continue
		}
		r := slog.NewRecord(l.now(), t.level, "more of the same were not logged", 0)
		r.Add("message", k.message, "count", t.held)
		if k.peer != "" {
			r.Add("peer", k.peer)
		}
		l.handler.Handle(context.Background(), r) // an Output does not fail
	}
}

// pass tells if a record may be logged, and counts it.
func (l *Log) pass(r *slog.Record) bool {
	if r.Level < slog.LevelInfo {
		return true
	}
	k := kind{r.Message, peerOf(r)}
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.kinds[k]
	if t == nil && len(l.kinds) >= logKinds {
		k = kind{message: "messages of many kinds"}
		t = l.kinds[k]
	}
	now := l.now()
	if t == nil {
		t = &tally{start: now, level: r.Level}
		l.kinds[k] = t
	}
	if t.passed >= logBurst {
		t.held++
		l.held++
		return false
	}
	t.passed++
	if r.Level >= slog.LevelWarn {
		if len(l.recent) == logRecent {
			l.recent = append(l.recent[:0], l.recent[1:]...)
		}
		l.recent = append(l.recent, Warning{r.Time, r.Level, text(r)})
	}
	return true
}

// peerOf is the host that a record is about, or "".
func peerOf(r *slog.Record) (peer string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "peer" {
			peer = a.Value.String()
		}
		return a.Key != "peer"
	})
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}

// text is a record for people, in at most some hundred bytes.
func text(r *slog.Record) string {
	var b bytes.Buffer
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "stack" {
			fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		}
		return true
	})
	const most = 400
	t, end := b.Bytes(), ""
	if len(t) > most {
		t, end = t[:most], "…"
	}
	return strings.Map(printable, string(bytes.ToValidUTF8(t, nil))) + end
}

// printable replaces what a name that a client made up could do to a terminal.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '·'
}

// limited is the Handler of a Log.
type limited struct {
	slog.Handler
	log *Log
}

// Handle implements slog.Handler.
func (h *limited) Handle(ctx context.Context, r slog.Record) error {
	if !h.log.pass(&r) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *limited) WithAttrs(as []slog.Attr) slog.Handler {
	return &limited{h.Handler.WithAttrs(as), h.log}
}

// WithGroup implements slog.Handler.
func (h *limited) WithGroup(name string) slog.Handler {
	return &limited{h.Handler.WithGroup(name), h.log}
}
