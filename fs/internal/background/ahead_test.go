package background

import (
	"sync"
	"testing"
	"time"
)

// asked is a device of which each read takes a second, and which notes what is read ahead.
type asked struct {
	mu    sync.Mutex
	reads int64
	ahead map[uint64]int // times, by the offset of a piece
	end   uint64         // of what was read ahead
}

func (d *asked) Reading() (int64, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	return d.reads, time.Duration(d.reads) * time.Second
}

func (d *asked) Prefetch(_ File, off, n uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ahead[off]++
	d.end = max(d.end, off+n)
	return nil
}

// What lies ahead of a reader in order is read once, up to the end of the file; nothing is on a device that is quick,
// or when it is closed.
func TestAheadOfOne(t *testing.T) {
	const size, n = 4 << 20, 64 << 10
	for _, c := range []struct {
		name   string
		slow   time.Duration
		closed bool
		want   bool
	}{
		{"slow", 0, false, true},
		{"quick", time.Hour, false, false},
		{"closed", 0, true, false},
	} {
		d := &asked{ahead: map[uint64]int{}}
		a := NewAhead(d, 0)
		a.Slow = c.slow
		if c.closed {
			a.Close()
		}
		f := File{Ino: 7, Gen: 1}
		for off := uint64(0); off < size; off += n {
			w := a.Watch()
			a.Await(f, off, n)
			a.Read(f, off, n, size, a.Waited(w))
			a.Wait()
		}
		for off, times := range d.ahead {
			if times != 1 {
				t.Errorf("%s: what is at %d was read ahead %d times", c.name, off, times)
			}
		}
		if c.want && d.end != size || !c.want && d.end != 0 {
			t.Errorf("%s: it was read ahead up to %d", c.name, d.end)
		}
		a.Close()
	}
}
