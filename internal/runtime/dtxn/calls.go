package dtxn

// Calls that begin, and the end of the journal below.

// Enter begins a call, which the journal's Close waits for until Leave. It returns ErrClosed if Close has begun.
func (s *System) Enter() error { return s.j.Enter() }

// Leave ends what Enter has begun.
func (s *System) Leave() { s.j.Leave() }

// closing is called when the journal is about to be closed. A transaction within which it is would be waited for by its
// own goroutine.
func (s *System) closing() {
	s.midst.Enter("a journal is closed within a transaction of the same goroutine, which it waits for, for ever")
	s.midst.Leave()
}

// enterOnly begins the transaction of Perform: a goroutine has one at a time.
func (s *System) enterOnly() {
	s.midst.Enter("a transaction is run within another one of the same goroutine, and may wait for it, for ever")
}
