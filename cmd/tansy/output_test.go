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

// next goes behind the next places where all of these stand, in whatever order, or returns a channel
// that is closed when there is more to look at.
func (o *output) next(whats []string) (more chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, end := o.text.String()[o.seen:], 0
	for _, what := range whats {
		i := strings.Index(text, what)
		if i < 0 {
			if o.more == nil {
				o.more = make(chan struct{})
			}
			return o.more
		}
		end = max(end, i+len(what))
	}
	o.seen += end
	return nil
}

// says waits until the process has said all of these, in whatever order, behind all it was waited for before.
func (p *process) says(t *testing.T, whats ...string) {
	t.Helper()
	late := time.After(time.Minute)
	for more := p.stderr.next(whats); more != nil; more = p.stderr.next(whats) {
		select {
		case <-more:
		case <-late:
			t.Fatalf("not all of %q in\n%s", whats, &p.stderr)
		}
	}
}
