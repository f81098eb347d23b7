// Package attempts is the Go behind verified/trusted/attempts.s.dfy: what the verified code that carries calls out is
// given. What the methods promise is there.
package attempts

import "tansy/internal/runtime/work"

// Attempt is the transaction of a call.
type Attempt interface {
	Do() work.Work
}

// Service is what a call is carried out with.
type Service interface {
	Try() (next uint32)
	Shrink() (status uint32, done bool)
	Room() (found bool)
	Usable() (usable bool)
}
