//go:build race || lockorder

package lockorder

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

// caught runs f in a goroutine of its own and returns what was found to be out of order.
func caught(f func()) (found []string) {
	before := report
	defer func() { report = before }()
	report = func(what string) { found = append(found, what) }
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
	return found
}

// TestInversion: what is taken in the order of the list is fine; two locks in the other order are found, although
// nobody is in the way, and so is a wait under a lock that stands below it.
func TestInversion(t *testing.T) {
	var table Mutex[Replies]
	var alloc [2]Mutex[Allocator]
	var gates [2]RWMutex[Gates]
	var j Mutex[Journal]
	var o, o2 Held[Objects]
	for i := range gates {
		gates[i].Nth(i)
	}
	for _, c := range []struct {
		name string
		want string // nothing, or a part of what is found
		f    func()
	}{
		{"in order", "", func() {
			table.Lock()
			alloc[0].Lock()
			j.Lock()
			j.Unlock()
			alloc[0].Unlock()
			table.Unlock()
		}},
		{"inverted", "Replies 0 is waited for, although lockorder.Journal 0 is held",
			func() { j.Lock(); table.Lock(); table.Unlock(); j.Unlock() }},
		{"inverted, after others", "Allocator 0 is waited for, although lockorder.Journal 0 is held", func() {
			table.Lock()
			j.Lock()
			table.Unlock()
			alloc[1].Lock()
			alloc[1].Unlock()
			j.Unlock()
		}},
		{"released meanwhile", "", func() { j.Lock(); j.Unlock(); table.Lock(); table.Unlock() }},
		{"two of a class", "Allocator 0 is waited for, although lockorder.Allocator 0", func() {
			alloc[0].Lock()
			alloc[1].Lock()
			alloc[1].Unlock()
			alloc[0].Unlock()
		}},
		{"two of a class, in their order", "",
			func() { gates[0].RLock(); gates[1].RLock(); gates[0].RUnlock(); gates[1].RUnlock() }},
		{"two of a class, inverted", "Gates 0 is waited for, although lockorder.Gates 1",
			func() { gates[1].RLock(); gates[0].RLock(); gates[0].RUnlock(); gates[1].RUnlock() }},
		{"shared twice", "Gates 0 is waited for",
			func() { gates[0].RLock(); gates[0].RLock(); gates[0].RUnlock(); gates[0].RUnlock() }},
		{"tried", "", func() {
			j.Lock()
			if table.TryLock() {
				table.Unlock()
			}
			j.Unlock()
		}},
		{"under one that was tried", "Replies 0 is waited for", func() {
			if j.TryLock() {
				table.Lock()
				table.Unlock()
				j.Unlock()
			}
		}},
		{"objects", "", func() {
			o.Take()
			o2.Take()
			Wait[Objects]()
			o.Drop()
			j.Lock()
			j.Unlock()
			o2.Drop()
		}},
		{"an object under the mutex", "Objects 0 is waited for, although lockorder.Journal",
			func() { j.Lock(); Wait[Objects](); j.Unlock() }},
		{"the log with objects", "", func() {
			o.Take()
			gates[0].RLock()
			j.Lock()
			WaitWith[Room, Journal]()
			j.Unlock()
			gates[0].RUnlock()
			o.Drop()
		}},
		{"the device with objects", "Durable 0 is waited for, although lockorder.Objects",
			func() { o.Take(); j.Lock(); WaitWith[Durable, Journal](); j.Unlock(); o.Drop() }},
		{"the device under the mutex", "Device 0 is waited for, although lockorder.Journal",
			func() { j.Lock(); Wait[Device](); j.Unlock() }},
		{"given up by another", "", func() {
			j.Lock()
			var wg sync.WaitGroup
			wg.Go(j.Unlock)
			wg.Wait()
			table.Lock()
			table.Unlock()
		}},
	} {
		found := caught(c.f)
		switch {
		case c.want == "" && len(found) > 0:
			t.Errorf("%s: found %s", c.name, found[0])
		case c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want) || !strings.Contains(found[0], "on_test.go")):
			t.Errorf("%s: found %q, want one with %q", c.name, found, c.want)
		}
	}
	for i := range parts {
		if len(parts[i].held) != 0 {
			t.Fatal("something is held yet by a goroutine that has ended")
		}
	}
}

// TestConditions: a condition of a mutex gives it back and takes it again.
func TestConditions(t *testing.T) {
	var j Mutex[Journal]
	c := sync.NewCond(&j)
	woken := false
	if found := caught(func() {
		j.Lock()
		go func() { j.Lock(); woken = true; c.Signal(); j.Unlock() }()
		for !woken {
			c.Wait()
		}
		j.Unlock()
		var table Mutex[Replies]
		table.Lock()
		table.Unlock()
	}); len(found) > 0 {
		t.Fatal(found[0])
	}
}

// TestOrder: the order is that in which the classes are listed.
func TestOrder(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "lockorder.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, s := range f.Decls[0].(*ast.GenDecl).Specs {
		listed = append(listed, s.(*ast.TypeSpec).Name.Name)
	}
	var ordered []string
	for _, c := range order {
		ordered = append(ordered, reflect.TypeOf(c).Name())
	}
	if !slices.Equal(listed, ordered) {
		t.Errorf("listed: %v\nordered: %v", listed, ordered)
	}
}

func BenchmarkLock(b *testing.B) {
	var j Mutex[Journal]
	n := 0
	for range b.N {
		j.Lock()
		n++
		j.Unlock()
	}
}
