package oncrpc

import "sync"

// budget bounds the bytes held by something over all connections.
type budget struct {
	mu      sync.Mutex
	cond    sync.Cond
	left    int
	all     int
	waiting int // in take
}

func newBudget(bytes int) *budget {
	b := &budget{left: bytes, all: bytes}
	b.cond.L = &b.mu
	return b
}

// try takes n bytes if they are there. A claim larger than the whole budget
// counts as the whole.
func (b *budget) try(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.all)
	if b.left < n {
		return false
	}
	b.left -= n
	return true
}

// take waits for n bytes.
func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.all)
	b.waiting++
	for b.left < n {
		b.cond.Wait()
	}
	b.waiting--
	b.left -= n
}

// used is the number of bytes that are taken.
func (b *budget) used() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all - b.left
}

// crowded tells if somebody waits.
func (b *budget) crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting > 0
}

func (b *budget) give(n int) {
	b.mu.Lock()
	b.left += min(n, b.all)
	b.mu.Unlock()
	b.cond.Broadcast()
}
