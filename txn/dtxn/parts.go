package dtxn

// A commit needs every block that it writes a part of in memory at the same time. Several
// that need many could go on pushing each other's blocks out of the cache, none of them
// ever coming to an end. So those go one by one.

// manyParts is the number of partly written blocks from which on a transaction commits
// alone among its like. The least cache has room for one with MaxBlocks of them and for
// several with fewer.
const manyParts = 64

// admit waits until the transaction may commit; then release is to be called.
func (t *Txn) admit() (release func(), err error) {
	n := t.t.Buf.Parts()
	if n > MaxBlocks {
		return nil, ErrTooLarge
	}
	if n < manyParts {
		return func() {}, nil
	}
	t.s.large.Lock()
	return t.s.large.Unlock, nil
}
