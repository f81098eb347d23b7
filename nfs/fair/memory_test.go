package fair

import (
	"math/rand"
	"sync"
	"testing"

	"tansy/test/kit/replay"
)

// bench is a memory of 64 bytes: for proven ones, of which fresh ones may hold 56, and slow
// ones 32. A host may hold 48, 42, and 24.
func bench() *Memory { return NewMemory(64, 16, Parts{Slow: 4, Fresh: 7, Proven: 8}) }

func opened(m *Memory, h *Share, k Class) *Account { a := NewAccount(m, h, k); return &a }

// fill takes n bytes by accounts of one byte each, and returns how many it could get.
func fill(m *Memory, h *Share, k Class) (n int) {
	for opened(m, h, k).Try(Claim{Bytes: 1}) > 0 {
		n++
	}
	return n
}

func TestMemoryShares(t *testing.T) {
	for _, x := range []struct {
		what string
		do   func(m *Memory) int
		want int
	}{
		{"a connection", func(m *Memory) int {
			a := opened(m, new(Share), Proven)
			for a.Try(Claim{Bytes: 1}) > 0 {
			}
			return a.held
		}, 16},
		{"a host", func(m *Memory) int { return fill(m, new(Share), Proven) }, 48},
		{"a host of which nothing is known", func(m *Memory) int { return fill(m, new(Share), Fresh) }, 42},
		{"a slow host", func(m *Memory) int { return fill(m, new(Share), Slow) }, 24},
		{"a slow host beside two slow ones", func(m *Memory) int {
			fill(m, new(Share), Slow)
			fill(m, new(Share), Slow)
			return fill(m, new(Share), Slow)
		}, 1},
		{"the next host", func(m *Memory) int {
			fill(m, new(Share), Proven)
			return fill(m, new(Share), Proven)
		}, 12},
		{"the one after it", func(m *Memory) int {
			fill(m, new(Share), Proven)
			fill(m, new(Share), Proven)
			return fill(m, new(Share), Proven)
		}, 3},
		{"a host beside slow connections of its own", func(m *Memory) int {
			h := new(Share)
			fill(m, h, Slow)
			return fill(m, h, Proven)
		}, 24},
		{"a host beside its own connections that have become slow", func(m *Memory) int {
			h := new(Share)
			for range 40 {
				a := opened(m, h, Fresh)
				a.Try(Claim{Bytes: 1})
				a.Judge(Slow)
			}
			return fill(m, h, Slow)*100 + fill(m, h, Fresh)*10 + fill(m, h, Proven)
		}, 26},
	} {
		if got := x.do(bench()); got != x.want {
			t.Errorf("%s gets %d bytes, want %d", x.what, got, x.want)
		}
	}
}

// TestMemoryLarge: a claim that is above a limit is met when nothing else is held.
func TestMemoryLarge(t *testing.T) {
	for k := Slow; k < classes; k++ {
		m := bench()
		a := opened(m, new(Share), k)
		if a.Take(Claim{Bytes: 100}) != 100 || a.Try(Claim{Bytes: 1}) != 0 {
			t.Errorf("class %d: holds %d bytes", k, a.held)
		}
		a.Give(100)
		if opened(m, new(Share), Slow).Try(Claim{Bytes: 1}) != 1 {
			t.Error("not given back")
		}
	}
}

// queue starts a claim that has to wait, and returns where it is told what it got.
func queue(t *testing.T, a *Account, c Claim) chan int {
	t.Helper()
	n := a.m.Waiting()
	got := make(chan int, 1)
	go func() { got <- a.Take(c) }()
	for a.m.Waiting() == n {
		select {
		case <-got:
			t.Fatal("did not wait")
		default:
		}
	}
	return got
}

func waits(t *testing.T, what string, got chan int) {
	t.Helper()
	select {
	case n := <-got:
		t.Errorf("%s was given %d bytes", what, n)
	default:
	}
}

// TestMemoryOrder: who waits is not overtaken, unless by those who do not wait for the same.
func TestMemoryOrder(t *testing.T) {
	m := bench()
	busy, other := new(Share), new(Share)
	a := opened(m, busy, Proven)
	a.Take(Claim{Bytes: 48}) // all that the host may have
	large := queue(t, opened(m, busy, Proven), Claim{Bytes: 10})
	small := queue(t, opened(m, busy, Proven), Claim{Bytes: 1})
	if o := opened(m, other, Proven); o.Try(Claim{Bytes: 4}) != 4 {
		t.Error("another host has to wait for one that has its share")
	} else {
		o.Give(4)
	}
	a.Give(5)
	if n := m.Waiting(); n != 2 {
		t.Fatalf("%d wait: a small claim has overtaken a large one", n)
	}
	if opened(m, busy, Slow).Try(Claim{Bytes: 1}) != 0 {
		t.Error("a waiter was overtaken")
	}
	a.Give(5)
	if <-large != 10 {
		t.Error("wrong amount")
	}
	waits(t, "a host that has its share", small)
	a.Give(1)
	<-small

	// Slow ones wait for each other, not the rest for them.
	m = bench()
	b := opened(m, new(Share), Slow)
	b.Take(Claim{Bytes: 30})
	first := queue(t, opened(m, new(Share), Slow), Claim{Bytes: 8})
	next := queue(t, opened(m, new(Share), Slow), Claim{Bytes: 1})
	if opened(m, new(Share), Fresh).Try(Claim{Bytes: 8}) != 8 {
		t.Error("a peer that is not slow waits for those that are")
	}
	b.Judge(Fresh) // which makes room for slow ones
	if <-first != 8 || <-next != 1 {
		t.Error("wrong amount")
	}
}

// TestMemoryShort: while memory is scarce because of slow ones, who is not proven gets
// little rather than nothing.
func TestMemoryShort(t *testing.T) {
	m := bench()
	h := new(Share)
	want := Claim{Bytes: 14, Least: 2}
	quick := opened(m, h, Fresh)
	if n := quick.Try(want); n != 14 {
		t.Errorf("%d bytes at first", n)
	}
	got := queue(t, opened(m, h, Fresh), want) // above 12, which is a quarter of what a host gets
	if n := opened(m, h, Slow).Try(want); n != 0 {
		t.Errorf("a slow one overtakes a fresh one, with %d bytes", n)
	}
	quick.Judge(Slow)
	if n := <-got; n != 2 {
		t.Errorf("%d bytes instead of 14 beside a slow one", n)
	}
	if n := quick.Try(want); n != 0 {
		t.Errorf("%d bytes more for one that has some", n)
	}
	if n := opened(m, h, Proven).Try(want); n != 14 {
		t.Errorf("%d bytes for one that is proven", n)
	}
	quick.Give(14)
	if n := opened(m, new(Share), Slow).Try(want); n != 14 {
		t.Errorf("%d bytes when there is enough", n)
	}
}

// TestMemoryByHost: who waits does so for one claim of each other host, not for all that these have asked
// for before, and those of one host wait in order.
func TestMemoryByHost(t *testing.T) {
	m := bench()
	all := opened(m, new(Share), Proven)
	all.Take(Claim{Bytes: 64})
	crowd := new(Share)
	var behind []chan int
	for range 8 {
		behind = append(behind, queue(t, opened(m, crowd, Proven), Claim{Bytes: 1}))
	}
	late := queue(t, opened(m, new(Share), Proven), Claim{Bytes: 1})
	all.Give(2)
	<-behind[0]
	<-late
	for _, b := range behind[1:] {
		waits(t, "the crowd", b)
	}
	all.Give(62)
	for _, b := range behind[1:] {
		<-b
	}
}

// TestMemoryPortions: of scarce memory a host that has little gets more at a time than one that has much.
func TestMemoryPortions(t *testing.T) {
	m := NewMemory(6400, 1600, Parts{Slow: 4, Fresh: 7, Proven: 8})
	want := Claim{Bytes: 1400, Least: 10}
	h := new(Share)
	for range 2 {
		a := opened(m, h, Fresh)
		a.Try(want)
		a.Judge(Slow)
	}
	for _, x := range []struct {
		host *Share
		want int
	}{
		{h, 10},
		{new(Share), (5600 - 1420) / 4},
		{new(Share), (5600 - 1420 - 1045) / 4},
	} {
		if n := opened(m, x.host, Fresh).Try(want); n != x.want {
			t.Errorf("%d bytes, want %d", n, x.want)
		}
	}
}

// TestMemoryClosed: who waits on a connection that breaks gets nothing.
func TestMemoryClosed(t *testing.T) {
	m := bench()
	h := new(Share)
	a := opened(m, h, Proven)
	a.Take(Claim{Bytes: 48})
	b := opened(m, h, Proven)
	got := queue(t, b, Claim{Bytes: 10})
	behind := queue(t, opened(m, h, Proven), Claim{Bytes: 1})
	b.Close()
	if n := <-got; n != 0 {
		t.Errorf("%d bytes", n)
	}
	if b.Take(Claim{Bytes: 1}) != 0 || b.Try(Claim{Bytes: 1}) != 0 {
		t.Error("a closed account takes memory")
	}
	a.Give(1)
	<-behind
}

// TestMemoryRandom: whatever comes, everybody gets what he waits for, no bound is broken,
// and in the end all is given back.
func TestMemoryRandom(t *testing.T) {
	seed := int64(replay.Seed(t))
	m := bench()
	hosts := make([]Share, 5)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewSource(seed + int64(i)))
			a := opened(m, &hosts[rnd.Intn(len(hosts))], Fresh)
			for range 300 {
				want := Claim{Bytes: 1 + rnd.Intn(16)}
				if rnd.Intn(2) == 0 && want.Bytes > 2 {
					want.Least = 1 + rnd.Intn(2)
				}
				n := a.Try(want)
				if n == 0 {
					n = a.Take(want)
				}
				if n != want.Bytes && (want.Least == 0 || n < want.Least || n > want.Bytes) {
					t.Errorf("%d bytes for a claim of %d, or of %d at least", n, want.Bytes, want.Least)
				}
				if all := m.Held(); all > m.all {
					t.Errorf("%d of %d bytes are held", all, m.all)
				}
				a.Judge(Class(rnd.Intn(int(classes))))
				a.Give(n)
			}
		}()
	}
	wg.Wait()
	if m.Held() != 0 || m.Waiting() != 0 {
		t.Errorf("%d bytes held, %d wait", m.Held(), m.Waiting())
	}
	for i := range hosts {
		if hosts[i].upTo(Proven) != 0 {
			t.Errorf("host %d: %v", i, hosts[i].held)
		}
	}
}
