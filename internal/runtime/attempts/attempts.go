// Package attempts is the Go behind verified/trusted/attempts.s.dfy: what the verified code that carries calls out is
// given. What the methods promise is there. They are functions, as what an interface calls is kept on the heap.
package attempts

import "tansy/internal/runtime/work"

// Attempt is the transaction of a call.
type Attempt struct {
	Do func() work.Work
}

// Service is what a call is carried out with.
type Service struct {
	Try    func() (next uint32)
	Shrink func() (status uint32, done bool)
	Room   func() (found bool)
	Usable func() (usable bool)
}
