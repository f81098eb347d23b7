package background

// readers is who reads files in order, or in steps, and is made to wait by the device; and what each of them will ask
// for next. It is policy alone: at worst something is read for nothing. One goroutine at a time may use it.
type readers struct {
	inOrder [32]inOrder
	inSteps [8]inSteps
	clock   uint64 // READs that were noted
	limit   uint64 // bytes that all who read in order are ahead
}

const (
	aheadSlack = 4 << 20   // bytes: calls come in any order, and end in any: so far from where a reader is
	aheadAfter = 128 << 10 // bytes that are read in order before anything is read ahead
	aheadBytes = 8 << 20   // how far ahead of one reader, at most: at 10 ms for a READ these are 800 MB/s
	aheadPiece = 128 << 10 // bytes that are read at a time
	aheadSteps = 16        // steps ahead
	aheadQuick = 8         // pieces in succession that were in memory: then nobody waits any more
	aheadIdle  = 512       // READs of others, after which a reader is forgotten
)

// A piece is what is to be read ahead.
type piece struct {
	h      File
	off, n uint64 // bytes
	who    *waiting
}

// waiting tells whether the device makes a reader wait.
type waiting struct {
	h     File
	used  uint64 // when it was noted last
	slow  bool
	quick int // pieces that were in memory, in succession
}

// fetched notes how a piece was read.
func (w *waiting) fetched(slow bool) {
	if w.quick++; slow {
		w.quick = 0
	}
	if w.quick == aheadQuick {
		w.slow = false
	}
}

// noted tells that a READ by w came at time clock.
func (w *waiting) noted(clock uint64, slow bool) {
	w.used = clock
	if slow {
		w.slow, w.quick = true, 0
	}
}

// inOrder is who reads from one byte on.
type inOrder struct {
	waiting
	next  uint64 // the byte behind what was read
	asked uint64 // what lies before that was read ahead
	bytes uint64 // that were read
	reads int
	even  bool   // of late it went forward by as much as it read, about
	since uint64 // bytes that were read since it was at mark
	mark  uint64
}

// inSteps is who reads as much each time, and as far from the time before.
type inSteps struct {
	waiting
	last  uint64 // where it read
	step  uint64 // back: so far below 0, modulo 2^64
	times int    // that it was this step
	asked int    // steps that were read ahead
}

// read notes a READ of n bytes of a file of size bytes, which waited for the device if it was slow. It appends to out
// what is to be read ahead: at most as many pieces as there is capacity.
func (t *readers) read(out []piece, h File, off, n, size uint64, slow bool) []piece {
	t.clock++
	out = t.ordered(h, off, n, slow).ahead(out, t, size)
	return t.stepped(h).ahead(out, t.clock, off, n, size, slow)
}

// ordered is who reads h around off, or a new reader in the place of who was not heard of for longest.
func (t *readers) ordered(h File, off, n uint64, slow bool) *inOrder {
	var r *inOrder
	oldest := &t.inOrder[0]
	for i := range t.inOrder {
		x := &t.inOrder[i]
		if x.about(h, off) && (r == nil || x.bytes > r.bytes) {
			r = x
		}
		if x.used < oldest.used {
			oldest = x
		}
	}
	if r == nil {
		r = oldest
		*r = inOrder{waiting: waiting{h: h}, mark: off, next: off}
	}
	if slow && !r.slow {
		r.asked = r.next // what lies ahead was read long ago
	}
	r.noted(t.clock, slow)
	r.reads++
	r.bytes += n
	r.since += n
	r.next = max(r.next, off+n)
	r.asked = max(r.asked, r.next)
	if way := r.next - r.mark; r.bytes < aheadSlack || r.since >= aheadSlack {
		r.even = way <= 2*r.since && r.since <= 2*way
	}
	if r.since >= aheadSlack {
		r.since, r.mark = 0, r.next
	}
	return r
}

// about tells that r reads h around off.
func (r *inOrder) about(h File, off uint64) bool {
	return r.reads > 0 && r.h == h && off <= r.next+aheadSlack && r.next <= off+aheadSlack
}

// going tells that r waits, and what it will ask for can be told.
func (r *inOrder) going() bool { return r.slow && r.even && r.reads >= 2 && r.bytes >= aheadAfter }

// ahead is what r asks for next: not more than it has read so far.
func (r *inOrder) ahead(out []piece, t *readers, size uint64) []piece {
	if !r.going() {
		return out
	}
	far := min(r.bytes, aheadBytes, t.room()+r.asked-r.next)
	end := min(r.next+far, size)
	for r.asked < end && len(out) < cap(out) {
		n := min(end-r.asked, aheadPiece)
		if end < size && n < min(aheadPiece, far/2) {
			break // not in crumbs
		}
		out = append(out, piece{r.h, r.asked, n, &r.waiting})
		r.asked += n
	}
	return out
}

// room is how many bytes more may be read ahead. Who waits no longer, or was forgotten, takes none.
func (t *readers) room() uint64 {
	used := uint64(0)
	for i := range t.inOrder {
		if r := &t.inOrder[i]; r.slow {
			used += r.asked - r.next
		}
	}
	return t.limit - min(t.limit, used)
}

// stepped is who reads h, in steps or not, or a new reader.
func (t *readers) stepped(h File) *inSteps {
	r := &t.inSteps[0]
	for i := range t.inSteps {
		x := &t.inSteps[i]
		if x.used > 0 && x.h == h {
			return x
		}
		if x.used < r.used {
			r = x
		}
	}
	*r = inSteps{waiting: waiting{h: h}}
	return r
}

// going tells that r waits, and what it will ask for can be told.
func (r *inSteps) going() bool { return r.slow && r.times >= 3 }

// ahead notes a READ, and is what comes next: not more steps than there were.
func (r *inSteps) ahead(out []piece, clock, off, n, size uint64, slow bool) []piece {
	r.noted(clock, slow)
	step := off - r.last
	if r.last = off; step == r.step {
		r.times++
		r.asked = max(0, r.asked-1)
	} else {
		r.step, r.times, r.asked = step, 0, 0
	}
	if !r.going() || n == 0 || step <= n { // else it reads in order
		return out
	}
	for r.asked < min(r.times, aheadSteps, int(max(1, aheadBytes/4/n))) && len(out) < cap(out) {
		at := off + step*uint64(r.asked+1)
		if at >= size {
			break
		}
		out = append(out, piece{r.h, at, n, &r.waiting})
		r.asked++
	}
	return out
}

// some tells whether there is a reader whom the device makes wait, and of whom it can be told what comes. It forgets
// those who stopped.
func (t *readers) some() bool {
	found := false
	for i := range t.inOrder {
		if r := &t.inOrder[i]; r.going() {
			r.slow = t.clock-r.used < aheadIdle
			found = found || r.slow
		}
	}
	for i := range t.inSteps {
		if r := &t.inSteps[i]; r.going() {
			r.slow = t.clock-r.used < aheadIdle
			found = found || r.slow
		}
	}
	return found
}
