package dtxn

// A commit needs every block that it writes a part of in memory at the same time. Several
// that need many could go on pushing each other's blocks out of the cache, none of them
// ever coming to an end. So those go one by one.

// manyParts is the number of partly written blocks from which on a transaction commits
// alone among its like. The least cache has room for one with MaxBlocks of them and for
// several with fewer.
const manyParts = 64

// admit waits until the transaction may commit; Ended lets the next one. False: it is too large.
func (t *Txn) admit() bool {
	n := t.t.Buffer.Parts()
	if n > MaxBlocks {
		return false
	}
	t.wrote = t.t.Buffer.Len() > 0
	if n >= manyParts {
		t.s.large.Lock()
		t.large = true
	}
	return true
}
