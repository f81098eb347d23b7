// Package closing tells calls that may begin from those that come too late, and lets who closes a thing wait for the
// calls under way.
package closing

import (
	"math"
	"sync"
	"sync/atomic"
)

// Gate is open until Close begins. New makes one.
type Gate struct {
	in   atomic.Int64  // calls under way; shut is added when Close begins
	idle chan struct{} // closed when Close has begun and no call is under way
	shut sync.Once
	last sync.Once
}

const shut = math.MinInt64

// New returns an open gate.
func New() *Gate { return &Gate{idle: make(chan struct{})} }

// Enter begins a call, which Leave ends. False: Close has begun, and there is no call.
func (g *Gate) Enter() bool {
	if g.in.Add(1) > 0 {
		return true
	}
	g.Leave()
	return false
}

// Leave ends a call.
func (g *Gate) Leave() {
	if g.in.Add(-1) == shut {
		g.last.Do(func() { close(g.idle) })
	}
}

// Closed tells whether Close has begun.
func (g *Gate) Closed() bool { return g.in.Load() < 0 }

// Shut lets no call in from now on. It does not wait, and may be called again.
func (g *Gate) Shut() {
	g.shut.Do(func() {
		g.in.Add(1)
		g.in.Add(shut)
		g.Leave()
	})
}

// Close lets no call in from now on, and returns when those under way have ended. It may be called again.
func (g *Gate) Close() {
	g.Shut()
	<-g.idle
}
