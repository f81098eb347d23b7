// Package freelist keeps large pieces of memory for use again.
//
// A sync.Pool forgets what it has within two garbage collections. When the pieces in it are most of what
// is allocated, and memory is short, that goes round in a circle: they are forgotten, made anew, and so bring the next
// collection. A List forgets by the clock.
package freelist

import (
	"sync"
	"time"
)

// period is how long a value that nobody needs stays, at least; at most it is twice that.
const period = time.Second

// List holds values that are free. Its methods may be called concurrently.
type List[T any] struct {
	max int

	mu    sync.Mutex
	free  []T // the last is the next to be taken
	least int // how many there were at any time in this period
	aging bool
}

// New returns an empty list of at most max values.
func New[T any](max int) *List[T] { return &List[T]{max: max} }

// Get takes the value that was put last; it is not ok if there is none.
func (l *List[T]) Get() (x T, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.free) - 1
	if n < 0 {
		return x, false
	}
	x = l.free[n]
	clear(l.free[n:])
	l.free = l.free[:n]
	l.least = min(l.least, n)
	return x, true
}

// Put gives x back, which nobody uses any more. When the list is full, x is left to the garbage collector.
func (l *List[T]) Put(x T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) == l.max {
		return
	}
	l.free = append(l.free, x)
	if !l.aging {
		l.aging, l.least = true, 0
		time.AfterFunc(period, l.age)
	}
}

// age forgets values from period to period, until there are none.
func (l *List[T]) age() {
	if l.forget() {
		time.AfterFunc(period, l.age)
	}
}

// forget forgets the values that were not needed since it was last called, and tells if any are left.
func (l *List[T]) forget() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	keep := copy(l.free, l.free[l.least:]) // the first were put first
	clear(l.free[keep:])
	l.free = l.free[:keep]
	l.least = keep
	l.aging = keep > 0
	return l.aging
}
