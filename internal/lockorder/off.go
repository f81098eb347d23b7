//go:build !race && !lockorder

package lockorder

import "sync"

// On tells whether the order is checked.
const On = false

// Mutex is a sync.Mutex of class C.
type Mutex[C any] struct{ sync.Mutex }

// Nth says which of its class it is.
func (*Mutex[C]) Nth(int) {}

// RWMutex is a sync.RWMutex of class C.
type RWMutex[C any] struct{ sync.RWMutex }

// Nth says which of its class it is.
func (*RWMutex[C]) Nth(int) {}

// Held is what belongs to one goroutine while it is held, but is no mutex.
type Held[C any] struct{}

// Take notes that it is held from now on. It need not be the only one of its class.
func (*Held[C]) Take() {}

// Drop notes that it is held no longer.
func (*Held[C]) Drop() {}

// Place is where many goroutines may be at once, each of them once.
type Place[C any] struct{}

// Enter notes that this goroutine is there until Leave. If it is there already, that is a mistake, which again names.
func (*Place[C]) Enter(again string) {}

// Leave notes that this goroutine is there no longer.
func (*Place[C]) Leave() {}

// Wait is called before something of class C is waited for.
func Wait[C any]() {}

// WaitWith is Wait of one who holds a mutex of class M that is given back meanwhile.
func WaitWith[C, M any]() {}

// Wrong says that what the caller knows of an order among things of one class is not kept.
func Wrong(string) {}
