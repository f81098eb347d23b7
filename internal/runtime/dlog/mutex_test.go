package dlog

import (
	"runtime"
	"testing"
)

// TestWake: a wake-up reaches one, or all, of those that wait on its condition
// variable, however many wait on others; until then nobody goes on.
func TestWake(t *testing.T) {
	const vars, each = 5, 4
	m := NewMutex()
	var waiting, may, gone [vars]int
	for c := range uint32(vars) {
		for range each {
			go func() {
				m.Lock()
				waiting[c]++
				for may[c] == 0 {
					m.Wait(c)
				}
				may[c]--
				gone[c]++
				m.Unlock()
			}()
		}
	}
	// until waits for cond, and returns with the mutex held.
	until := func(cond func() bool) {
		for m.Lock(); !cond(); m.Lock() {
			m.Unlock()
			runtime.Gosched()
		}
	}
	for c := range uint32(vars) {
		until(func() bool { return waiting[c] == each })
		m.Unlock()
	}
	for c := range uint32(vars) {
		for i := 1; i <= 2; i++ {
			m.Lock()
			may[c] = 1
			m.WakeOne(c)
			m.Unlock()
			until(func() bool { return gone[c] == i })
			m.Unlock()
		}
		m.Lock()
		may[c] = each - 2
		m.WakeAll(c)
		m.Unlock()
		until(func() bool { return gone[c] == each })
		for x := range vars {
			if want := each; x > int(c) && gone[x] != 0 || x <= int(c) && gone[x] != want {
				t.Errorf("after %d: %v", c, gone)
			}
		}
		m.Unlock()
	}
}
