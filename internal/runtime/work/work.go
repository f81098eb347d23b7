// Package work is the Go behind verified/trusted/work.s.dfy: what the verified runner of transactions is given.
package work

// Work is the work of a transaction. What its methods promise is there.
type Work interface {
	Admit() (ok bool)
	Ended(committed bool)
}
