package groups

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// This host knows the groups of who runs the test, and nothing of a user without a name.
func TestLookup(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	ids, err := me.GroupIds()
	if err != nil {
		t.Skip(err)
	}
	got, err := Lookup(uint32(os.Getuid()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range got {
		names = append(names, fmt.Sprint(g))
	}
	if !slices.Equal(names, ids) {
		t.Errorf("%v, want %v", names, ids)
	}
	if got, err := Lookup(1<<32 - 2); err != nil || got != nil {
		t.Errorf("nobody's groups: %v, %v", got, err)
	}
}

// host is what is looked up, with a clock.
type host struct {
	mu     sync.Mutex
	groups []uint32
	err    error
	asked  int
	now    time.Time
}

func (h *host) lookup(uint32) ([]uint32, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked++
	return h.groups, h.err
}

func (h *host) clock() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *host) set(later time.Duration, err error, groups ...uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now, h.err, h.groups = h.now.Add(later), err, groups
}

// Groups are looked up once, again after a while, and what was known holds while that is not possible.
func TestCache(t *testing.T) {
	h := &host{now: time.Unix(1000, 0)}
	c := New(h.lookup)
	c.now = h.clock
	is := func(want ...uint32) {
		t.Helper()
		if got := c.Of(7); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	becomes := func(want ...uint32) {
		t.Helper()
		for range 1 << 22 {
			if slices.Equal(c.Of(7), want) {
				return
			}
			runtime.Gosched()
		}
		t.Fatalf("%v, want %v", c.Of(7), want)
	}
	h.set(0, errors.New("down"))
	is()
	h.set(retry+1, nil, 1, 2)
	becomes(1, 2)
	h.set(fresh-1, nil, 3)
	is(1, 2)
	if h.asked != 2 {
		t.Errorf("asked %d times", h.asked)
	}
	h.set(2, nil, 3)
	becomes(3)
	h.set(fresh+1, errors.New("down"))
	is(3)
	for e := c.users[7]; ; runtime.Gosched() { // the look-up that failed has ended
		c.mu.RLock()
		ended := !e.again && e.until.After(h.clock())
		c.mu.RUnlock()
		if ended {
			break
		}
	}
	is(3)
}

// Many calls of a user make one look-up, and many users no more than so many entries.
func TestManyUsers(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	begin := make(chan struct{})
	c := New(func(uid uint32) ([]uint32, error) {
		<-begin
		mu.Lock()
		defer mu.Unlock()
		asked++
		return []uint32{uid}, nil
	})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := c.Of(7); !slices.Equal(got, []uint32{7}) {
				t.Error(got)
			}
		})
	}
	close(begin)
	all.Wait()
	if asked != 1 {
		t.Errorf("%d look-ups", asked)
	}
	for uid := range uint32(2*maxUsers + 5) {
		c.Of(uid)
	}
	if len(c.users) > maxUsers {
		t.Errorf("%d users remembered", len(c.users))
	}
}
