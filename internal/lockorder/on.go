//go:build race || lockorder

package lockorder

import (
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sync"
)

// On tells whether the order is checked.
const On = true

// order is the order of the classes, which lockorder.go explains.
var order = []any{
	Sources{}, Share{}, Admission{}, Turn{}, Fewer{}, Connections{}, Connection{}, Memory{}, Turns{},
	Changes{}, Around{}, HostNames{}, Exports{}, Groups{}, Naming{}, Nodes{}, Default{}, Trimming{}, Growing{}, Lists{},
	Underway{}, Ahead{}, Streams{}, Freeing{}, Kept{}, Replies{}, Midst{}, Idle{}, Durable{}, Objects{}, Large{},
	Gates{}, Room{}, Allocator{}, Spare{}, Barrier{}, Device{}, Moments{}, Changing{}, HostRoom{}, FileBarrier{},
	LockTable{}, Journal{}, Pages{}, Link{}, Readers{}, Reads{}, Notes{}, Damage{},
	Moment{}, Spill{},
}

var places = func() map[reflect.Type]int {
	m := map[reflect.Type]int{}
	for i, c := range order {
		m[reflect.TypeOf(c)] = i
	}
	return m
}()

func class[C any]() int {
	i, ok := places[reflect.TypeFor[C]()]
	if !ok {
		Wrong(fmt.Sprintf("%v is in no order", reflect.TypeFor[C]()))
	}
	return i
}

// A hold is a thing that a goroutine holds: what it is, and where it took it.
type hold struct {
	thing      any
	class, nth int
	at         []uintptr
}

func (h hold) String() string { return fmt.Sprintf("%T %d", order[h.class], h.nth) }

// where is where it was taken.
func (h hold) where() (lines string) {
	frames := runtime.CallersFrames(h.at)
	for f, more := frames.Next(); ; f, more = frames.Next() {
		lines += fmt.Sprintf("\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
		if !more {
			return lines
		}
	}
}

// before tells that h may be held while o is waited for.
func (h hold) before(o hold) bool {
	return h.class < o.class || h.class == o.class && h.nth < o.nth
}

// Goroutines by number, in parts so that they do not wait for each other much.
var parts [64]goroutines

type goroutines struct {
	mu   sync.Mutex
	held map[uintptr][]hold
}

func part(g uintptr) *goroutines {
	return &parts[g/64%uintptr(len(parts))]
}

func holds(g uintptr) []hold {
	p := part(g)
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held[g]
}

func add(g uintptr, h hold) {
	h.at = make([]uintptr, 6)
	h.at = h.at[:runtime.Callers(3, h.at)]
	p := part(g)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = map[uintptr][]hold{}
	}
	p.held[g] = append(p.held[g], h)
}

func remove(g uintptr, thing any) {
	p := part(g)
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.held[g]
	for i := len(l) - 1; i >= 0; i-- {
		if l[i].thing == thing {
			l = append(l[:i:i], l[i+1:]...)
			break
		}
	}
	if len(l) == 0 {
		delete(p.held, g)
		return
	}
	p.held[g] = l
}

// wait checks that goroutine g may wait for h. With same, it may hold others like it; what is of class but is given
// back meanwhile.
func wait(g uintptr, h hold, same bool, but int) {
	for _, x := range holds(g) {
		if x.before(h) || x.class == but || same && x.class == h.class {
			continue
		}
		Wrong(fmt.Sprintf("%v is waited for, although %v is held, which was taken here:\n%s", h, x, x.where()))
	}
}

// report is what becomes of a mistake: the process ends, as who recovers from panics is not to hide it.
var report = func(what string) {
	stack := make([]byte, 1<<16)
	fmt.Fprintf(os.Stderr, "lock order: %s\nNow at:\n%s\n", what, stack[:runtime.Stack(stack, false)])
	os.Exit(3)
}

// Wrong says that what the caller knows of an order among things of one class is not kept.
func Wrong(what string) { report(what) }

// Mutex is a sync.Mutex of class C.
type Mutex[C any] struct {
	mu    sync.Mutex
	nth   int
	owner uintptr
}

// Nth says which of its class it is.
func (m *Mutex[C]) Nth(i int) { m.nth = i }

// Lock is sync.Mutex's.
func (m *Mutex[C]) Lock() {
	g, h := self(), hold{thing: m, class: class[C](), nth: m.nth}
	wait(g, h, false, -1)
	m.mu.Lock()
	m.owner = g
	add(g, h)
}

// TryLock is sync.Mutex's.
func (m *Mutex[C]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.owner = self()
	add(m.owner, hold{thing: m, class: class[C](), nth: m.nth})
	return true
}

// Unlock is sync.Mutex's.
func (m *Mutex[C]) Unlock() {
	remove(m.owner, m)
	m.mu.Unlock()
}

// RWMutex is a sync.RWMutex of class C. To share it is to wait, too: for who waits for it alone.
type RWMutex[C any] struct {
	mu    sync.RWMutex
	nth   int
	owner uintptr
}

// Nth says which of its class it is.
func (m *RWMutex[C]) Nth(i int) { m.nth = i }

// Lock is sync.RWMutex's.
func (m *RWMutex[C]) Lock() {
	g, h := self(), hold{thing: m, class: class[C](), nth: m.nth}
	wait(g, h, false, -1)
	m.mu.Lock()
	m.owner = g
	add(g, h)
}

// TryLock is sync.RWMutex's.
func (m *RWMutex[C]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.owner = self()
	add(m.owner, hold{thing: m, class: class[C](), nth: m.nth})
	return true
}

// Unlock is sync.RWMutex's.
func (m *RWMutex[C]) Unlock() {
	remove(m.owner, m)
	m.mu.Unlock()
}

// RLock is sync.RWMutex's.
func (m *RWMutex[C]) RLock() {
	g, h := self(), hold{thing: m, class: class[C](), nth: m.nth}
	wait(g, h, false, -1)
	m.mu.RLock()
	add(g, h)
}

// RUnlock is sync.RWMutex's; by the goroutine that has it.
func (m *RWMutex[C]) RUnlock() {
	remove(self(), m)
	m.mu.RUnlock()
}

// Held is what belongs to one goroutine while it is held, but is no mutex.
type Held[C any] struct{ owner uintptr }

// Take notes that it is held from now on. It need not be the only one of its class.
func (t *Held[C]) Take() {
	t.owner = self()
	add(t.owner, hold{thing: t, class: class[C]()})
}

// Drop notes that it is held no longer.
func (t *Held[C]) Drop() { remove(t.owner, t) }

// Place is where many goroutines may be at once, each of them once.
type Place[C any] struct{ _ byte }

// Enter notes that this goroutine is there until Leave. If it is there already, that is a mistake, which again names.
func (p *Place[C]) Enter(again string) {
	g := self()
	for _, h := range holds(g) {
		if h.thing == p {
			Wrong(again + "; the first began here:\n" + h.where())
		}
	}
	add(g, hold{thing: p, class: class[C]()})
}

// Leave notes that this goroutine is there no longer.
func (p *Place[C]) Leave() { remove(self(), p) }

// Wait is called before something of class C is waited for. Others of that class may be held.
func Wait[C any]() { wait(self(), hold{class: class[C]()}, true, -1) }

// WaitWith is Wait of one who holds a mutex of class M that is given back meanwhile.
func WaitWith[C, M any]() { wait(self(), hold{class: class[C]()}, true, class[M]()) }
