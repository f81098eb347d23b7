// Package locks is the Go behind verified/trusted/locks.s.dfy: the table of the
// transactions' locks.
//
// A key belongs to a bucket, a bucket to a shard, which has a mutex. A
// lock exists only while it is held or waited for. Per bucket the table keeps
// the highest commit number noted for any of its keys; two keys in one bucket
// only make somebody wait for a commit who need not.
package locks

import (
	"fmt"

	"tansy/internal/lockorder"
)

const (
	shards  = 64
	buckets = 1024 // per shard
	row     = 64   // buckets that are made together, when one of them is needed first
)

// Table is a lock table. It may be used concurrently.
type Table struct{ shards [shards]shard }

type shard struct {
	mu   lockorder.Mutex[lockorder.LockTable]
	free *lock                       // recycled locks
	rows [buckets / row]*[row]bucket // nil: nothing was locked there yet
	_    [64]byte                    // keep neighbours' mutexes off this cache line
}

type bucket struct {
	locks *lock
	last  uint64
}

// A lock is held by any number of shared holders or by one exclusive one, or
// waited for.
type lock struct {
	key    uint64
	shared int  // shared holders
	excl   bool // held exclusively
	queue  []*waiter
	next   *lock // in the bucket
}

type waiter struct {
	excl  bool
	ready chan uint64 // gets the bucket's last commit when the lock is granted
}

// Owner holds locks. It belongs to one goroutine.
type Owner struct {
	some  lockorder.Held[lockorder.Objects] // while it holds any
	top   uint64                            // with lockorder.On: the highest key that it holds, while it holds any
	held  []holding
	index map[uint64]int // positions of the first in held, when many were asked for again
	wait  waiter
	wants holding // what it waits for
}

type holding struct {
	key  uint64
	lock *lock
	seen uint64 // last commit noted when it was locked; stays so while it is
	excl bool
}

// recent is the number of holdings, of the last, that are looked through; a map finds the others.
const recent = 12

// NewTable returns a table in which nothing is held.
func NewTable() *Table { return &Table{} }

// NewOwner returns an owner that holds nothing.
func NewOwner() *Owner {
	return &Owner{wait: waiter{ready: make(chan uint64, 1)}}
}

// Len is the number of locks held.
func (o *Owner) Len() int { return len(o.held) }

// recently returns o's holding of key k if it is of the last, or nil.
func (o *Owner) recently(k uint64) *holding {
	for i := len(o.held) - 1; i >= max(0, len(o.held)-recent); i-- {
		if o.held[i].key == k {
			return &o.held[i]
		}
	}
	return nil
}

// before returns o's holding of key k if it is not of the last, or nil. Those that are new since it was called last go
// into the map: who locks many objects, each of them once, has none.
func (o *Owner) before(k uint64) *holding {
	n := len(o.held) - recent
	if n <= 0 {
		return nil
	}
	if o.index == nil {
		o.index = make(map[uint64]int, n)
	}
	for i := len(o.index); i < n; i++ {
		o.index[o.held[i].key] = i
	}
	if i, ok := o.index[k]; ok {
		return &o.held[i]
	}
	return nil
}

func (o *Owner) add(h holding) {
	if lockorder.On {
		if len(o.held) == 0 {
			o.some.Take()
			o.top = 0
		}
		o.top = max(o.top, h.key)
	}
	o.held = append(o.held, h)
}

// at returns the shard of key k, and the number of its bucket there. A transaction that locks neighbours
// (blocks or bits in a row) walks along the buckets, which spares it most cache
// misses. The objects in one block of 16 lie far from each other.
func (t *Table) at(k uint64) (s *shard, n uint64) {
	blkno, off := k>>15, k&(1<<15-1)
	i := blkno + off + off>>11
	return &t.shards[i/buckets%shards], i % buckets
}

// bucket is bucket n, made if need be: a small volume needs few of them. The caller holds mu.
func (s *shard) bucket(n uint64) *bucket {
	r := s.rows[n/row]
	if r == nil {
		r = new([row]bucket)
		s.rows[n/row] = r
	}
	return &r[n%row]
}

// Lock gives o the lock k, shared or exclusively; an owner of the shared lock may
// ask for the exclusive one. When the lock is not free it is queued, and Await comes
// next, or neither ok nor queued if wait is false. seen is at least the number of the last
// commit noted for k.
//
// To wait for a key that is not above all those held is an error in the caller,
// and may block for ever.
func (t *Table) Lock(o *Owner, k uint64, excl, wait bool) (ok, queued bool, seen uint64) {
	if lockorder.On && wait {
		o.mayWait(k)
	}
	h := o.recently(k)
	if h != nil && (h.excl || !excl) {
		return true, false, h.seen
	}
	s, n := t.at(k)
	s.mu.Lock()
	b := s.bucket(n)
	seen = b.last
	l := b.locks
	for l != nil && l.key != k {
		l = l.next
	}
	if l != nil && h == nil { // perhaps it is o's
		h = o.before(k)
	}
	switch {
	case h != nil && (h.excl || !excl):
		s.mu.Unlock()
		return true, false, h.seen
	case h != nil: // from shared to exclusive: only if alone
		ok = l.shared == 1
		if ok {
			l.shared, l.excl = 0, true
			h.excl = true
		}
		s.mu.Unlock()
		return ok, false, seen
	case l == nil:
		if l = s.free; l != nil {
			s.free = l.next
		} else {
			l = new(lock)
		}
		l.key, l.next = k, b.locks
		b.locks = l
		l.grant(excl)
	case len(l.queue) == 0 && !l.excl && (!excl || l.shared == 0):
		l.grant(excl)
	case !wait:
		s.mu.Unlock()
		return false, false, seen
	default:
		o.wait.excl = excl
		l.queue = append(l.queue, &o.wait)
		s.mu.Unlock()
		o.wants = holding{k, l, 0, excl}
		return false, true, 0
	}
	s.mu.Unlock()
	o.add(holding{k, l, seen, excl})
	return true, false, seen
}

// Await waits until o has the lock that it was queued for. seen is Lock's.
func (t *Table) Await(o *Owner) (seen uint64) {
	o.wants.seen = <-o.wait.ready
	o.add(o.wants)
	return o.wants.seen
}

// mayWait checks that key k is above all that o holds.
func (o *Owner) mayWait(k uint64) {
	lockorder.Wait[lockorder.Objects]()
	if len(o.held) > 0 && o.top >= k {
		lockorder.Wrong(fmt.Sprintf("object %d may be waited for, although %d is held", k, o.top))
	}
}

func (l *lock) grant(excl bool) {
	if excl {
		l.excl = true
	} else {
		l.shared++
	}
}

// Release gives up all locks of o. If n is not 0, it is noted as the number of
// the last commit of those held exclusively.
func (t *Table) Release(o *Owner, n uint64) {
	var locked *shard // neighbours in the order of locking often share one
	for i := range o.held {
		h := &o.held[i]
		s, place := t.at(h.key)
		if s != locked {
			if locked != nil {
				locked.mu.Unlock()
			}
			s.mu.Lock()
			locked = s
		}
		b := s.bucket(place)
		l := h.lock
		if h.excl {
			l.excl = false
			b.last = max(b.last, n)
		} else {
			l.shared--
		}
		for len(l.queue) > 0 && !l.excl {
			w := l.queue[0]
			if w.excl && l.shared > 0 {
				break
			}
			l.grant(w.excl)
			l.queue[0] = nil
			l.queue = l.queue[1:]
			w.ready <- b.last
		}
		if !l.excl && l.shared == 0 { // then nobody waits either
			p := &b.locks
			for *p != l {
				p = &(*p).next
			}
			*p = l.next
			l.queue = nil
			l.next, s.free = s.free, l
		}
		h.lock = nil
	}
	if locked != nil {
		locked.mu.Unlock()
	}
	if lockorder.On && len(o.held) > 0 {
		o.some.Drop()
	}
	clear(o.index)
	if cap(o.held) > 4096 { // do not keep what one large transaction needed
		o.held, o.index = nil, nil
	}
	o.held = o.held[:0]
}

// Held counts the keys that anybody holds, for tests.
func (t *Table) Held() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, r := range s.rows {
			if r == nil {
				continue
			}
			for j := range r {
				for l := r[j].locks; l != nil; l = l.next {
					n++
				}
			}
		}
		s.mu.Unlock()
	}
	return n
}
