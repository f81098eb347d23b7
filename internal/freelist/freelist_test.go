package freelist

import "testing"

// TestList: the last value comes first, and no more than the most are kept.
func TestList(t *testing.T) {
	l := New[int](NewBudget(3), 1)
	if _, ok := l.Get(); ok {
		t.Error("an empty list gave something")
	}
	for i := range 5 {
		l.Put(i)
	}
	for want := 2; want >= 0; want-- {
		if got, ok := l.Get(); !ok || got != want {
			t.Errorf("got %d, %v, want %d", got, ok, want)
		}
	}
	if _, ok := l.Get(); ok {
		t.Error("more than the most were kept")
	}
}

// TestAge: what nobody needed for a period is forgotten, the rest stays.
func TestAge(t *testing.T) {
	l := New[int](NewBudget(10), 1)
	l.aging = true // by hand
	for i := range 6 {
		l.Put(i)
	}
	if !l.forget() || len(l.free) != 6 { // the list was empty within the period
		t.Fatalf("%d of 6 are left", len(l.free))
	}
	var used []int
	for range 4 { // two stay where they are
		x, _ := l.Get()
		used = append(used, x)
	}
	for _, x := range used {
		l.Put(x)
	}
	if !l.forget() || len(l.free) != 4 {
		t.Fatalf("%d of 4 are left", len(l.free))
	}
	for _, x := range l.free {
		if x < 2 {
			t.Errorf("%d was not needed and is there", x)
		}
	}
	if l.forget() || len(l.free) != 0 || l.aging {
		t.Errorf("%d are left, aging %v", len(l.free), l.aging)
	}
}

// TestBudget: lists share a budget, and what one gives, or forgets, another may have.
func TestBudget(t *testing.T) {
	b := NewBudget(100)
	small, large := New[int](b, 10), New[int](b, 60)
	small.aging, large.aging = true, true // by hand
	for i := range 5 {
		small.Put(i)
	}
	large.Put(1) // beyond it
	if _, ok := large.Get(); ok || b.kept.Load() != 50 {
		t.Errorf("%d bytes are kept, of 100, want 50", b.kept.Load())
	}
	small.Get()
	large.Put(2)
	if x, ok := large.Get(); !ok || x != 2 || b.kept.Load() != 40 {
		t.Errorf("%d bytes are kept, want 40", b.kept.Load())
	}
	small.forget()
	small.forget()
	if b.kept.Load() != 0 {
		t.Errorf("%d bytes are kept when all are forgotten", b.kept.Load())
	}
}

func TestAllocs(t *testing.T) {
	l := New[*int](NewBudget(4), 1)
	x := new(int)
	l.Put(x)
	if n := testing.AllocsPerRun(100, func() { y, _ := l.Get(); l.Put(y) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
