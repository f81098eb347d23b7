// Package codes is the Go behind verified/trusted/codes.s.dfy: lists of codes of nodes of the tree of codes.
package codes

import (
	"slices"

	"tansy/internal/runtime/lists"
)

// Codes is a list of codes of nodes. It belongs to one goroutine at a time; lists that were joined to others may be
// looked at by others meanwhile.
type Codes struct {
	list   []Node
	shared bool // others may have this memory, too
	ends   bool // so much of it as list has, and another one has what is behind
}

// Node is a node of the tree of codes with its code.
type Node struct{ X, C0, C1 uint64 }

// New returns an empty list.
func New() *Codes { return &Codes{} }

// Join returns the codes of x and behind them those of y. It is y if x has none; else it is in the memory of x
// where that goes on: lists that each are the last one and a little more would else take the square of what they have.
func Join(x, y *Codes) *Codes {
	if len(x.list) == 0 {
		return y
	}
	c := &Codes{list: x.list, shared: true, ends: x.ends}
	x.shared, x.ends = true, true
	c.Grow(len(y.list))
	c.list = append(c.list, y.list...)
	return c
}

// Grow makes room for n codes behind those of c.
func (c *Codes) Grow(n int) {
	if have := len(c.list); c.ends || cap(c.list)-have < n {
		list := make([]Node, have, max(lists.Longer(have), have+n))
		copy(list, c.list)
		c.list, c.shared, c.ends = list, false, false
	}
}

// Add appends the code of node x.
func (c *Codes) Add(x, c0, c1 uint64) {
	c.Grow(1)
	c.list = append(c.list, Node{x, c0, c1})
}

// Nodes are all of them, which the caller does not change; it looks at them as long as the list does not change.
func (c *Codes) Nodes() []Node { return c.list }

// Len is the number of codes.
func (c *Codes) Len() uint64 { return uint64(len(c.list)) }

// At returns code i and its node.
func (c *Codes) At(i uint64) (x, c0, c1 uint64) {
	e := c.list[i]
	return e.X, e.C0, e.C1
}

// Sort puts the codes in the order of their nodes.
func (c *Codes) Sort() {
	if c.shared {
		c.list, c.shared, c.ends = slices.Clone(c.list), false, false
	}
	slices.SortFunc(c.list, func(a, b Node) int {
		switch {
		case a.X < b.X:
			return -1
		case a.X > b.X:
			return 1
		}
		return 0
	})
}
