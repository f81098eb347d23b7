package dtxn

import "fmt"

// A volume may get more blocks and inodes while it is served. Its bitmaps are as large as they may ever become; what
// may be handed out ends before that, and the end only grows. A transaction has the end of when it first asked: what
// it is told of free bits is then as it was when it began (Supply in verified/trusted/txn.s.dfy).

// End is where what may be handed out of a bitmap ends: bits below it may be.
func (s *System) End(which uint64) uint64 { return s.alloc[which].end.Load() }

// Extend lets the bits up to end be handed out, from now on; those that are set stay what they are. It is an error if
// end is less than before, or above the bitmap's limit, and changes nothing then. It does not wait for the device.
func (s *System) Extend(which, end uint64) error {
	a := s.alloc[which]
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.end.Load(); end < old || end > a.limit {
		return fmt.Errorf("bitmap %d: its end is %d and may become up to %d, not %d", which, old, a.limit, end)
	}
	a.grow(end)
	return nil
}

// grow moves the end. The window that it was in has more bits then: they are counted at once if the window is in
// memory, where none of them is handed out or held; else the whole window is counted anew when it is read. The caller
// holds mu.
func (a *alloc) grow(end uint64) {
	old := a.end.Load()
	a.end.Store(end)
	if w := old / windowBits; w < uint64(len(a.free)) && a.free[w] >= 0 {
		if win := a.win[w]; win != nil {
			lo, hi := a.within(w)
			n := win.clear(max(lo, old-w*windowBits), hi)
			a.free[w] += int32(n)
			a.total += uint64(n)
		} else {
			a.total -= uint64(a.free[w])
			a.free[w] = -1
			a.todo++
		}
	}
	for n := windows(end); uint64(len(a.free)) < n; a.todo++ {
		a.free = append(a.free, -1)
	}
	a.back++           // a search that has found nothing looks again,
	a.freedBits.Add(1) // also one for what has room on the host
}
