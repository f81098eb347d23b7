package dtxn

import "testing"

// TestManyWindows: bits are handed out from more windows than are kept without need;
// all of them come back, and the count stays exact.
func TestManyWindows(t *testing.T) {
	const n = 3 * maxWindows
	a := newAlloc(Bitmap{Start: 1, First: 7, Limit: n * windowBits}, func(uint64) ([]byte, error) {
		return make([]byte, windowBits/8), nil
	})
	for range 2 {
		var took []uint64
		for w := range uint64(n) {
			want := w*windowBits + 9
			x, ok, err := a.take(want - 1)
			if err != nil || !ok || x != want {
				t.Fatalf("%d, %v, %v, want %d", x, ok, err, want)
			}
			took = append(took, x)
		}
		a.done(took[:n/2], nil)
		a.done(took[n/2:], nil)
		if free, err := a.count(); err != nil || free != n*windowBits-7 {
			t.Fatal(free, err)
		}
	}
	for w := range uint64(n) { // all come and go, so few are kept
		x, _, err := a.take(w*windowBits + 9)
		if err != nil {
			t.Fatal(err)
		}
		a.done([]uint64{x}, nil)
	}
	if len(a.win) > n {
		t.Error(len(a.win))
	}
}
