package lists

import "testing"

// TestPush: a list has what was pushed, in order, and makes few larger copies of itself, none of them much too large.
func TestPush(t *testing.T) {
	var s []int
	copies, last := 0, 0
	for i := range 10_000 {
		s = Push(s, i)
		if cap(s) != last {
			copies, last = copies+1, cap(s)
		}
		if len(s) != i+1 || s[i] != i || s[0] != 0 || cap(s) > max(2*Short, 5*len(s)) {
			t.Fatalf("after %d: %d of %d, the last one %d", i, len(s), cap(s), s[i])
		}
	}
	if copies > 10 {
		t.Errorf("%d copies", copies)
	}
}

// TestLonger: a list of any length becomes a longer one.
func TestLonger(t *testing.T) {
	for n, want := range map[int]int{0: Short, 1: Short, 2: 8, 3: 12, 255: 1020, 256: 512, 1000: 2000} {
		if got := Longer(n); got != want || got <= n {
			t.Errorf("%d becomes %d, not %d", n, got, want)
		}
	}
}
