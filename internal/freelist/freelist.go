// Package freelist keeps large pieces of memory for use again.
//
// A sync.Pool forgets what it has within two garbage collections. When the pieces in it are most of what
// is allocated, and memory is short, that goes round in a circle: they are forgotten, made anew, and so bring the next
// collection. A List forgets by the clock.
package freelist

import (
	"sync"
	"sync/atomic"
	"time"
)

// period is how long a value that nobody needs stays, at least; at most it is twice that.
const period = time.Second

// Budget is how many bytes lists may keep together. A list for pieces of each size, each with bounds of its own, would
// keep in all what is much more than any one use of them needs.
type Budget struct {
	max  int64
	kept atomic.Int64
}

// NewBudget returns a budget of max bytes.
func NewBudget(max int) *Budget { return &Budget{max: int64(max)} }

func (b *Budget) take(n int) bool {
	if b.kept.Add(int64(n)) > b.max {
		b.give(n)
		return false
	}
	return true
}

func (b *Budget) give(n int) { b.kept.Add(-int64(n)) }

// List holds values that are free, all of one size. Its methods may be called concurrently.
type List[T any] struct {
	budget *Budget
	size   int // bytes of a value

	mu    sync.Mutex
	free  []T // the last is the next to be taken
	least int // how many there were at any time in this period
	aging bool
}

// New returns an empty list of values of size bytes.
func New[T any](budget *Budget, size int) *List[T] { return &List[T]{budget: budget, size: size} }

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
	l.budget.give(l.size)
	return x, true
}

// Put gives x back, which nobody uses any more. When the budget is spent, x is left to the garbage collector.
func (l *List[T]) Put(x T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.budget.take(l.size) {
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
	l.budget.give(l.least * l.size)
	clear(l.free[keep:])
	l.free = l.free[:keep]
	l.least = keep
	l.aging = keep > 0
	return l.aging
}
