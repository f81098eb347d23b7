package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// output is what a process writes, for others to wait for.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
	seen int // what says has passed
	more chan struct{}
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// next goes behind the next place where what stands, or returns a channel that is closed when there
// is more to look at.
func (o *output) next(what string) (more chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i := strings.Index(o.text.String()[o.seen:], what); i >= 0 {
		o.seen += i + len(what)
		return nil
	}
	if o.more == nil {
		o.more = make(chan struct{})
	}
	return o.more
}

// says waits until the process has said what, behind all it was waited for before.
func (p *process) says(t *testing.T, what string) {
	t.Helper()
	late := time.After(time.Minute)
	for more := p.stderr.next(what); more != nil; more = p.stderr.next(what) {
		select {
		case <-more:
		case <-late:
			t.Fatalf("no %q in\n%s", what, &p.stderr)
		}
	}
}
