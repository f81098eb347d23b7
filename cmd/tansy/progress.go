package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

const clearLine = "\r\x1b[K"

// progress reports how far a command has come: on a terminal in one line, once a second;
// else in a line of its own, every five seconds.
type progress struct {
	w             io.Writer
	now           func() time.Time
	next          time.Time
	interval      time.Duration
	before, after string // a report
	clear         string // what to print after the last report
}

func newProgress(f *os.File, now func() time.Time) *progress {
	p := &progress{w: f, now: now, interval: 5 * time.Second, after: "\n"}
	if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
		p.interval, p.before, p.after, p.clear = time.Second, clearLine, "", clearLine
	}
	p.next = now().Add(p.interval)
	return p
}

// report may be called at any time; it prints when the interval is over.
func (p *progress) report(pass string, done, total uint64) {
	t := p.now()
	if t.Before(p.next) {
		return
	}
	p.next = t.Add(p.interval)
	fmt.Fprintf(p.w, "%s%s", p.before, pass)
	if total > 0 {
		fmt.Fprintf(p.w, ": %.1f %%", 100*float64(done)/float64(total))
	}
	fmt.Fprint(p.w, p.after)
}
