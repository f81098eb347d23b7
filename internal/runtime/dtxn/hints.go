package dtxn

// Hints and wishes of verified code, of which the contract (verified/trusted/txn.s.dfy) promises nothing.

// Which bitmap a hint is about, and what for.
const (
	Blocks   = 0
	Inodes   = 1
	Exchange = 2 // of Blocks: in the place of another
)

// AllocHint proposes a block or inode that is free, near the given one (0 = no wish); with Exchange a block to take in
// the place of another, which on a sparse image has room already, unless the host could hold all of it.
func (t *Txn) AllocHint(which, near uint64) (ok bool, x uint64) {
	x, ok, err := t.TryAllocHint(which, near)
	t.check(err)
	return ok, x
}

// Bulk wishes that what is written to block blkno goes straight home, not through the log.
func (t *Txn) Bulk(blkno uint64) { t.s.j.Bulk(t.s.base + blkno) }

// Position wishes that the next block that is proposed is for block n of the file that was read last to be changed;
// with leads, that those are for the indirect blocks above that.
func (t *Txn) Position(n uint64, leads bool) { t.block, t.placed, t.leads = n, true, leads }

// Ahead wishes that n blocks from blkno on, which are about to be read, are read at once.
func (t *Txn) Ahead(blkno, n uint64) {
	t.t.Ahead(t.s.base+blkno, n)
}

// TryAllocHint is AllocHint.
func (t *Txn) TryAllocHint(which, near uint64) (x uint64, ok bool, err error) {
	of := which
	if which == Exchange {
		of = Blocks
	}
	if t.ends[of] == 0 {
		t.ends[of] = t.s.End(of)
	}
	switch which {
	case Exchange:
		x, ok, err = t.s.exchange(place{t.owner, near, t.block, t.placed})
	case Blocks:
		x, ok, err = t.s.hint(of, place{t.owner, near, onLine(t.block, t.leads), t.placed})
	default:
		x, ok, err = t.s.hint(of, place{near: near})
	}
	t.placed = t.placed && t.leads
	switch {
	case err != nil:
		err = t.refuse(err)
	case ok && x >= t.ends[of]: // there was no such bit when it began, so it begins again
		t.s.alloc[of].giveBack(x)
		err = t.refuse(ErrConflict)
	case ok:
		t.took[of] = append(t.took[of], x)
	}
	return x, ok, err
}

// AddBitmap adds an allocator of the clear bits of one more bitmap, and returns its number, for TryTake and Count. It
// comes before the first transaction.
func (s *System) AddBitmap(b Bitmap) (which uint64) {
	a := newAlloc(b, s.committed)
	a.unspare = s.j.Unspare
	a.gate.Nth(len(s.alloc))
	s.alloc = append(s.alloc, a)
	return uint64(len(s.alloc) - 1)
}

// TryTake proposes a bit of a bitmap of AddBitmap that is clear, and that was not proposed to another transaction that
// runs: the next one behind near, or, if that is 0, behind the last that was proposed.
func (t *Txn) TryTake(which, near uint64) (x uint64, ok bool, err error) {
	x, ok, err = t.s.alloc[which].take(near)
	if err != nil {
		err = t.refuse(err)
	} else if ok {
		t.took[which] = append(t.took[which], x)
	}
	return x, ok, err
}
