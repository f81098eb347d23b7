package mutex

import (
	"runtime"
	"sync"
	"testing"
)

// The mutex excludes; a wake-up reaches one waiter, or all of its condition variable.
func TestMutex(t *testing.T) {
	m := New()
	var wg sync.WaitGroup
	n := 0
	for i := 0; i < 8; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for k := 0; k < 1000; k++ {
				m.Lock()
				n++
				m.Unlock()
			}
		}()
	}
	wg.Wait()
	if n != 8000 {
		t.Fatal(n)
	}
	var turn, seen [5]int
	for c := uint32(0); c < 5; c++ {
		for i := 0; i < 3; i++ {
			wg.Add(1)
			go func() {
				defer wg.Done()
				m.Lock()
				for turn[c] == 0 {
					m.Wait(c)
				}
				seen[c]++
				m.WakeOne(c) // the next one, if there is any
				m.Unlock()
			}()
		}
	}
	for c := uint32(0); c < 5; c++ {
		m.Lock()
		turn[c] = 1
		if c%2 == 0 {
			m.WakeOne(c)
		} else {
			m.WakeAll(c)
		}
		m.Unlock()
	}
	wg.Wait()
	if seen != [5]int{3, 3, 3, 3, 3} {
		t.Fatal(seen)
	}
}

// TestWake: a wake-up reaches one, or all, of those that wait on its condition
// variable, however many wait on others; until then nobody goes on.
func TestWake(t *testing.T) {
	const vars, each = 5, 4
	m := New()
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
