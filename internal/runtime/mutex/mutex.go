// Package mutex is the Go behind verified/trusted/mutex.s.dfy: the journal's mutex.
package mutex

import (
	"sync"

	"tansy/internal/lockorder"
)

// Mutex is a mutex with condition variables.
type Mutex struct {
	mu lockorder.Mutex[lockorder.Journal]
	c  [5]sync.Cond
}

// New returns an unlocked mutex.
func New() *Mutex {
	m := &Mutex{}
	for i := range m.c {
		m.c[i].L = &m.mu
	}
	return m
}

// Lock takes the mutex.
func (m *Mutex) Lock() { m.mu.Lock() }

// Unlock gives it back.
func (m *Mutex) Unlock() { m.mu.Unlock() }

// Wait gives the mutex back, waits to be woken on c, and takes it again.
func (m *Mutex) Wait(c uint32) {
	if lockorder.On {
		mayWait(c)
	}
	m.c[c].Wait()
}

// mayWait checks what the caller holds beside the mutex, by what the conditions are for (verified/journal/state.dfy).
func mayWait(c uint32) {
	switch c {
	case 0, 1:
		lockorder.WaitWith[lockorder.Idle, lockorder.Journal]()
	case 2, 3:
		lockorder.WaitWith[lockorder.Durable, lockorder.Journal]()
	default:
		lockorder.WaitWith[lockorder.Room, lockorder.Journal]()
	}
}

// WakeOne wakes one that waits on c.
func (m *Mutex) WakeOne(c uint32) { m.c[c].Signal() }

// WakeAll wakes all that wait on c.
func (m *Mutex) WakeAll(c uint32) { m.c[c].Broadcast() }
