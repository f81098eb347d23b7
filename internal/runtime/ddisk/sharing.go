package ddisk

import (
	"slices"
	"sync/atomic"

	"tansy/internal/lockorder"
	"tansy/internal/runtime/dbytes"
)

// sharing has the device read once what several want at the same time: pages of codes and blocks of a file's tree above
// all, which all who read a file need at the same moments. On a device that takes its time these can be half of all
// requests.
//
// Who comes while the same blocks are being read has a copy of what is found, unless a change of the device was under
// way when that read began, or has begun since. So what is found is what the blocks hold after the other one came, too.
type sharing struct {
	begun, ended atomic.Uint64 // changes of the device, of whichever blocks

	mu    lockorder.Mutex[lockorder.Reads]
	reads []*read // that may be shared, and are under way: few
	free  []*read // to be used again
}

// read is a read of n blocks from a on.
type read struct {
	a, n    uint64
	changes uint64        // that had begun, and ended, when it began
	done    chan struct{} // nil: nobody waits
	ok      bool          // it succeeded; like lists, when it is done
	lists   []*BList      // for those who wait
}

// begin says that a read of n blocks from a on is about to begin, and r is what end is to be called with. If list is
// not nil, another one is under way instead: then r.wait says whether list is what that found.
func (s *sharing) begin(a, n uint64) (r *read, list *BList) {
	ended := s.ended.Load() // first: if as many have begun later on, none was under way
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.begun.Load()
	for _, r := range s.reads {
		if r.a == a && r.n == n && r.changes == changes {
			if r.done == nil {
				r.done = make(chan struct{})
			}
			list = &BList{}
			r.lists = append(r.lists, list)
			return r, list
		}
	}
	if ended != changes {
		return nil, nil
	}
	if k := len(s.free); k > 0 {
		r, s.free = s.free[k-1], s.free[:k-1]
	} else {
		r = &read{}
	}
	r.a, r.n, r.changes = a, n, changes
	s.reads = append(s.reads, r)
	return r, nil
}

// end says that r, if it is not nil, has read memory, or, if that is nil, has failed.
func (s *sharing) end(r *read, memory []dbytes.Blk) {
	if r == nil {
		return
	}
	s.mu.Lock()
	i := slices.Index(s.reads, r)
	s.reads = slices.Delete(s.reads, i, i+1)
	if r.done == nil {
		s.free = append(s.free, r)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	if r.ok = memory != nil; r.ok {
		for _, l := range r.lists {
			c := dbytes.AnyBlks(r.n)
			copy(c, memory)
			l.of(c)
		}
	}
	close(r.done)
}

// wait returns when r is done: true if it has succeeded.
func (r *read) wait() bool {
	lockorder.Wait[lockorder.Device]()
	<-r.done
	return r.ok
}
