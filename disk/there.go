package disk

import "iter"

// There yields the runs of the blocks [a, end) of d that are there: from lo on, before hi. Only of a Pieced, which d
// may wrap, some may be missing. Behind the end of d there are none.
func There(d Disk, a, end uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(lo, hi uint64) bool) {
		end := min(end, d.Size())
		p := PiecedOf(d)
		switch {
		case a >= end:
		case p == nil:
			yield(a, end)
		default:
			for r := range p.now().runs(a, end-a) {
				if r.there && !yield(r.a, r.a+r.n) {
					return
				}
			}
		}
	}
}

// CountThere is how many of the blocks [a, end) of d are there.
func CountThere(d Disk, a, end uint64) (n uint64) {
	for lo, hi := range There(d, a, end) {
		n += hi - lo
	}
	return n
}
