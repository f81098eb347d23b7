package oncrpc

import (
	"math/rand"
	"sync"
	"testing"

	"tansy/test/kit/replay"
)

// held is what all connections hold of m.
func held(m *memory) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used.upTo(proven)
}

func waiting(m *memory) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiters)
}

// bench is a memory of 64 bytes: for proven ones, of which fresh ones may hold 56, and slow
// ones 32. A host may hold 48, 42, and 24.
func bench() *memory { return newMemory(64, 16, parts{slow: 4, fresh: 7, proven: 8}) }

func opened(m *memory, h *share, k class) *account { return &account{m: m, host: h, class: k} }

// fill takes n bytes by accounts of one byte each, and returns how many it could get.
func fill(m *memory, h *share, k class) (n int) {
	for opened(m, h, k).try(claim{n: 1}) > 0 {
		n++
	}
	return n
}

func TestMemoryShares(t *testing.T) {
	for _, x := range []struct {
		what string
		do   func(m *memory) int
		want int
	}{
		{"a connection", func(m *memory) int {
			a := opened(m, new(share), proven)
			for a.try(claim{n: 1}) > 0 {
			}
			return a.held
		}, 16},
		{"a host", func(m *memory) int { return fill(m, new(share), proven) }, 48},
		{"a host of which nothing is known", func(m *memory) int { return fill(m, new(share), fresh) }, 42},
		{"a slow host", func(m *memory) int { return fill(m, new(share), slow) }, 24},
		{"a slow host beside two slow ones", func(m *memory) int {
			fill(m, new(share), slow)
			fill(m, new(share), slow)
			return fill(m, new(share), slow)
		}, 1},
		{"the next host", func(m *memory) int {
			fill(m, new(share), proven)
			return fill(m, new(share), proven)
		}, 12},
		{"the one after it", func(m *memory) int {
			fill(m, new(share), proven)
			fill(m, new(share), proven)
			return fill(m, new(share), proven)
		}, 3},
		{"a host beside slow connections of its own", func(m *memory) int {
			h := new(share)
			fill(m, h, slow)
			return fill(m, h, proven)
		}, 24},
		{"a host beside its own connections that have become slow", func(m *memory) int {
			h := new(share)
			for range 40 {
				a := opened(m, h, fresh)
				a.try(claim{n: 1})
				a.judge(slow)
			}
			return fill(m, h, slow)*100 + fill(m, h, fresh)*10 + fill(m, h, proven)
		}, 26},
	} {
		if got := x.do(bench()); got != x.want {
			t.Errorf("%s gets %d bytes, want %d", x.what, got, x.want)
		}
	}
}

// TestMemoryLarge: a claim that is above a limit is met when nothing else is held.
func TestMemoryLarge(t *testing.T) {
	for k := slow; k < classes; k++ {
		m := bench()
		a := opened(m, new(share), k)
		if a.take(claim{n: 100}) != 100 || a.try(claim{n: 1}) != 0 {
			t.Errorf("class %d: holds %d bytes", k, a.held)
		}
		a.give(100)
		if opened(m, new(share), slow).try(claim{n: 1}) != 1 {
			t.Error("not given back")
		}
	}
}

// queue starts a claim that has to wait, and returns where it is told what it got.
func queue(t *testing.T, a *account, c claim) chan int {
	t.Helper()
	n := waiting(a.m)
	got := make(chan int, 1)
	go func() { got <- a.take(c) }()
	for waiting(a.m) == n {
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
	busy, other := new(share), new(share)
	a := opened(m, busy, proven)
	a.take(claim{n: 48}) // all that the host may have
	large := queue(t, opened(m, busy, proven), claim{n: 10})
	small := queue(t, opened(m, busy, proven), claim{n: 1})
	if o := opened(m, other, proven); o.try(claim{n: 4}) != 4 {
		t.Error("another host has to wait for one that has its share")
	} else {
		o.give(4)
	}
	a.give(5)
	if n := waiting(m); n != 2 {
		t.Fatalf("%d wait: a small claim has overtaken a large one", n)
	}
	if opened(m, busy, slow).try(claim{n: 1}) != 0 {
		t.Error("a waiter was overtaken")
	}
	a.give(5)
	if <-large != 10 {
		t.Error("wrong amount")
	}
	waits(t, "a host that has its share", small)
	a.give(1)
	<-small

	// Slow ones wait for each other, not the rest for them.
	m = bench()
	b := opened(m, new(share), slow)
	b.take(claim{n: 30})
	first := queue(t, opened(m, new(share), slow), claim{n: 8})
	next := queue(t, opened(m, new(share), slow), claim{n: 1})
	if opened(m, new(share), fresh).try(claim{n: 8}) != 8 {
		t.Error("a peer that is not slow waits for those that are")
	}
	b.judge(fresh) // which makes room for slow ones
	if <-first != 8 || <-next != 1 {
		t.Error("wrong amount")
	}
}

// TestMemoryShort: while memory is scarce because of slow ones, who is not proven gets
// little rather than nothing.
func TestMemoryShort(t *testing.T) {
	m := bench()
	h := new(share)
	want := claim{n: 14, short: 2}
	quick := opened(m, h, fresh)
	if n := quick.try(want); n != 14 {
		t.Errorf("%d bytes at first", n)
	}
	got := queue(t, opened(m, h, fresh), want) // above 12, which is a quarter of what a host gets
	if n := opened(m, h, slow).try(want); n != 0 {
		t.Errorf("a slow one overtakes a fresh one, with %d bytes", n)
	}
	quick.judge(slow)
	if n := <-got; n != 2 {
		t.Errorf("%d bytes instead of 14 beside a slow one", n)
	}
	if n := quick.try(want); n != 0 {
		t.Errorf("%d bytes more for one that has some", n)
	}
	if n := opened(m, h, proven).try(want); n != 14 {
		t.Errorf("%d bytes for one that is proven", n)
	}
	quick.give(14)
	if n := opened(m, new(share), slow).try(want); n != 14 {
		t.Errorf("%d bytes when there is enough", n)
	}
}

// TestMemoryByHost: who waits does so for one claim of each other host, not for all that these have asked
// for before, and those of one host wait in order.
func TestMemoryByHost(t *testing.T) {
	m := bench()
	all := opened(m, new(share), proven)
	all.take(claim{n: 64})
	crowd := new(share)
	var behind []chan int
	for range 8 {
		behind = append(behind, queue(t, opened(m, crowd, proven), claim{n: 1}))
	}
	late := queue(t, opened(m, new(share), proven), claim{n: 1})
	all.give(2)
	<-behind[0]
	<-late
	for _, b := range behind[1:] {
		waits(t, "the crowd", b)
	}
	all.give(62)
	for _, b := range behind[1:] {
		<-b
	}
}

// TestMemoryPortions: of scarce memory a host that has little gets more at a time than one that has much.
func TestMemoryPortions(t *testing.T) {
	m := newMemory(6400, 1600, parts{slow: 4, fresh: 7, proven: 8})
	want := claim{n: 1400, short: 10}
	h := new(share)
	for range 2 {
		a := opened(m, h, fresh)
		a.try(want)
		a.judge(slow)
	}
	for _, x := range []struct {
		host *share
		want int
	}{
		{h, 10},
		{new(share), (5600 - 1420) / 4},
		{new(share), (5600 - 1420 - 1045) / 4},
	} {
		if n := opened(m, x.host, fresh).try(want); n != x.want {
			t.Errorf("%d bytes, want %d", n, x.want)
		}
	}
}

// TestMemoryClosed: who waits on a connection that breaks gets nothing.
func TestMemoryClosed(t *testing.T) {
	m := bench()
	h := new(share)
	a := opened(m, h, proven)
	a.take(claim{n: 48})
	b := opened(m, h, proven)
	got := queue(t, b, claim{n: 10})
	behind := queue(t, opened(m, h, proven), claim{n: 1})
	b.close()
	if n := <-got; n != 0 {
		t.Errorf("%d bytes", n)
	}
	if b.take(claim{n: 1}) != 0 || b.try(claim{n: 1}) != 0 {
		t.Error("a closed account takes memory")
	}
	a.give(1)
	<-behind
}

// TestMemoryRandom: whatever comes, everybody gets what he waits for, no bound is broken,
// and in the end all is given back.
func TestMemoryRandom(t *testing.T) {
	seed := int64(replay.Seed(t))
	m := bench()
	hosts := make([]share, 5)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewSource(seed + int64(i)))
			a := opened(m, &hosts[rnd.Intn(len(hosts))], fresh)
			for range 300 {
				want := claim{n: 1 + rnd.Intn(16)}
				if rnd.Intn(2) == 0 && want.n > 2 {
					want.short = 1 + rnd.Intn(2)
				}
				n := a.try(want)
				if n == 0 {
					n = a.take(want)
				}
				if n != want.n && (want.short == 0 || n < want.short || n > want.n) {
					t.Errorf("%d bytes for a claim of %d, or of %d at least", n, want.n, want.short)
				}
				if all := held(m); all > m.all {
					t.Errorf("%d of %d bytes are held", all, m.all)
				}
				a.judge(class(rnd.Intn(int(classes))))
				a.give(n)
			}
		}()
	}
	wg.Wait()
	if held(m) != 0 || waiting(m) != 0 {
		t.Errorf("%d bytes held, %d wait", held(m), waiting(m))
	}
	for i := range hosts {
		if hosts[i].upTo(proven) != 0 {
			t.Errorf("host %d: %v", i, hosts[i].held)
		}
	}
}
