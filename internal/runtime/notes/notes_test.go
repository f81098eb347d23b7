package notes

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// TestNotes: each note is what it was set to last, whatever others are set to.
func TestNotes(t *testing.T) {
	n := New()
	type note struct {
		name string
		set  func(x uint64)
		get  func() uint64
	}
	flag := func(name string, set func(bool), get func() bool) note {
		return note{name, func(x uint64) { set(x%2 == 1) }, func() uint64 {
			if get() {
				return 1
			}
			return 0
		}}
	}
	all := []note{
		{"WriteUpTo", n.SetWriteUpTo, n.WriteUpTo},
		{"DurableUpTo", n.RaiseDurableUpTo, n.DurableUpTo},
		{"RunningDurableUpTo", n.RaiseRunningDurableUpTo, n.RunningDurableUpTo},
		{"Waiters", n.SetWaiters, n.Waiters},
		{"RoomyGroups", n.SetRoomyGroups, n.RoomyGroups},
		{"BarrierBlocks", n.SetBarrierBlocks, n.BarrierBlocks},
		{"StreamBlocks", n.SetStreamBlocks, n.StreamBlocks},
		{"StreamBound", n.SetStreamBound, n.StreamBound},
		flag("OddGroup", n.SetOddGroup, n.OddGroup),
		flag("InstallNow", n.SetInstallNow, n.InstallNow),
		flag("Stopping", func(stop bool) {
			if stop {
				n.Stop()
			}
		}, n.Stopping),
		{"Groups", func(uint64) { n.CountGroup() }, n.Groups},
		{"Installations", func(uint64) { n.CountInstallation() }, n.Installations},
	}
	want := make([]uint64, len(all))
	check := func(when string) {
		t.Helper()
		for i, c := range all {
			if got := c.get(); got != want[i] {
				t.Errorf("%s: %s is %d, not %d", when, c.name, got, want[i])
			}
		}
	}
	check("at the beginning")
	for round := range uint64(3) {
		for i, c := range all {
			x := 100*round + uint64(i) + 5
			c.set(x)
			switch {
			case i < 8:
				want[i] = x
			case i < 10:
				want[i] = x % 2
			case c.name == "Stopping":
				want[i] = max(want[i], x%2)
			default:
				want[i]++
			}
			check("after " + c.name)
		}
	}
	n.SetInstallNow(false)
	n.SetWriteUpTo(3)
	n.SetWaiters(0)
	if n.InstallNow() || n.WriteUpTo() != 3 || n.Waiters() != 0 {
		t.Error("a note is not set to less than it was")
	}
}

// TestRaise: a commit that is raised never becomes an earlier one.
func TestRaise(t *testing.T) {
	n := New()
	for name, c := range map[string]struct {
		raise func(uint64)
		get   func() uint64
	}{
		"WriteUpTo":          {n.RaiseWriteUpTo, n.WriteUpTo},
		"DurableUpTo":        {n.RaiseDurableUpTo, n.DurableUpTo},
		"RunningDurableUpTo": {n.RaiseRunningDurableUpTo, n.RunningDurableUpTo},
	} {
		for _, x := range [][2]uint64{{7, 7}, {5, 7}, {7, 7}, {8, 8}, {0, 8}} {
			if c.raise(x[0]); c.get() != x[1] {
				t.Errorf("%s is %d after %d, not %d", name, c.get(), x[0], x[1])
			}
		}
	}
}

// TestClocks: the milliseconds since a look and since a barrier are many before there was any, and grow from 0 then.
func TestClocks(t *testing.T) {
	n := New()
	for name, c := range map[string]struct {
		get func() uint64
		now func()
		at  *time.Time
	}{"look": {n.SinceLook, n.LookNow, &n.look}, "barrier": {n.SinceBarrier, n.BarrierNow, &n.barrier}} {
		before := c.get()
		c.now()
		last := c.get()
		if before < 1<<32 || last > 1<<32 {
			t.Error(name, before, last)
		}
		for range 1000 {
			x := c.get()
			if x < last {
				t.Error(name, x, "after", last)
			}
			last = x
		}
		*c.at = c.at.Add(-time.Hour)
		if x := c.get(); x < 3600_000 || x > 2*3600_000 {
			t.Error(name, "after an hour:", x)
		}
	}
}

// A wish is told once, and however many come, few are kept.
func TestWishes(t *testing.T) {
	n := New()
	var wg sync.WaitGroup
	for c := range uint64(4) {
		wg.Go(func() {
			for i := range uint64(1000) {
				n.Wish(4*i + c)
				if !n.Bulk(4*i+c) || n.Bulk(4*i+c) {
					t.Error(4*i + c)
				}
			}
		})
	}
	wg.Wait()
	for i := range uint64(3 * maxWishes) {
		n.Wish(i)
		if len(n.bulk) > maxWishes {
			t.Fatal(len(n.bulk))
		}
	}
	if !n.Bulk(3*maxWishes-1) || n.Bulk(0) {
		t.Error("the newest wish, or the oldest")
	}
}

// TestDamaged: a block that is damaged is told of once and listed, as far as there is room.
func TestDamaged(t *testing.T) {
	n := New()
	n.Damaged(9)
	var told []uint64
	n.OnDamage(func(a uint64) { told = append(told, a) })
	for _, a := range []uint64{7, 9, 3, 7} {
		n.Damaged(a)
	}
	if !slices.Equal(told, []uint64{7, 3}) || !slices.Equal(n.DamagedBlocks(), []uint64{3, 7, 9}) {
		t.Error(told, n.DamagedBlocks())
	}
	if !n.IsDamaged(7) || n.IsDamaged(8) {
		t.Error("is block 7 damaged, or 8?")
	}
	for a := range uint64(maxDamaged + 10) {
		n.Damaged(a)
	}
	if len(n.DamagedBlocks()) != maxDamaged {
		t.Error(len(n.DamagedBlocks()))
	}
}
