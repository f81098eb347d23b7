package locks

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"tansy/nfs/nlm"
)

// What calls are about.
type kind int

const (
	test kind = iota
	lock
	unlock
	cancel
	share
	unshare
	reboot  // the client's machine has started: NOTIFY or FREE_ALL
	granted // the server says that the client has what it waited for, and the client answers
	crash   // the server ends, and the next one starts
)

// call is a call, or a crash.
type call struct {
	kind kind
	wanted
	block, reclaim bool
	share          int8

	inOrder, forever, noGrace bool // of a crash
}

// reply is what became of it.
type reply struct {
	lost   bool // there is no answer
	status uint32
	holder wanted // of TEST that is denied
}

func (c *call) String() string {
	switch c.kind {
	case test:
		return fmt.Sprint("TEST ", c.wanted)
	case lock:
		return fmt.Sprint("LOCK ", c.wanted, " block ", c.block, " reclaim ", c.reclaim)
	case unlock:
		return fmt.Sprint("UNLOCK ", c.wanted)
	case cancel:
		return fmt.Sprint("CANCEL ", c.wanted)
	case share:
		return fmt.Sprintf("SHARE owner %d %05b reclaim %v", c.owner, c.share, c.reclaim)
	case unshare:
		return fmt.Sprint("UNSHARE owner ", c.owner)
	case reboot:
		return fmt.Sprint("NOTIFY host ", hostOf[c.owner])
	case granted:
		return fmt.Sprint("GRANTED ", c.wanted)
	}
	return fmt.Sprintf("CRASH in order %v, grace forever %v, none %v", c.inOrder, c.forever, c.noGrace)
}

var names = []string{"granted", "denied", "no room", "blocked", "grace", "deadlock", "read-only", "stale", "too big",
	"failed"}

func (r *reply) String() string {
	switch {
	case r.lost:
		return "no answer"
	case r.holder != (wanted{}):
		return fmt.Sprint(names[r.status], " for ", r.holder)
	}
	return names[r.status]
}

// do is what becomes of a call at one instant: the answer, and the state that it leaves, or one of two.
func (s state) do(c *call) (status uint32, list []state) {
	x := s
	switch c.kind {
	case test:
		switch {
		case s.grace != over:
			status = nlm.DeniedGrace
		case !s.could(c.wanted, s.n, s.patient(c.owner)):
			status = nlm.Denied
		}
	case lock, share:
		status = x.admit(at(c.owner), c.reclaim)
		if status == nlm.Granted && c.kind == lock {
			status = x.lock(c.wanted, c.block)
		} else if status == nlm.Granted {
			status = x.reserve(c.owner, c.share)
		}
	case unlock:
		x.take(c.wanted)
		x.put(c.wanted, free)
		x.offer()
	case cancel:
		if i := x.find(c.wanted); i >= 0 {
			x.leave(i)
			x.offer()
		} else {
			status = nlm.Denied
		}
	case unshare:
		x.shares[c.owner] = 0
	case reboot:
		var all []int8
		for o, h := range hostOf {
			if h == hostOf[c.owner] {
				all = append(all, int8(o))
			}
		}
		x.forget(all...)
		slices.Reverse(all) // they go in some order, which others may see by who is offered what
		s.forget(all...)
		list = append(list, s)
	}
	return status, append(list, x)
}

// answered are the states after the client has said whether it takes what it was told to have.
func (s state) answered(c *call, r *reply) []state {
	if r.status == nlm.DeniedGrace { // it is told again
		return []state{s}
	}
	i := s.find(c.wanted)
	there := i >= 0 && s.waits[i].offered
	if r.status != nlm.Granted { // it may have been offered to who does not want it any more
		if !there {
			return []state{s}
		}
		x := s
		x.waits[i].refused = true
		return []state{s, x}
	}
	if there {
		s.waits[i].accepted = true
		return []state{s}
	}
	for b := c.from; b <= c.to; b++ { // by another call that asked for it
		if s.has[c.owner][b] != c.how() {
			return nil
		}
	}
	return []state{s}
}

// step are the states that a call with this reply may leave, from one.
func step(s state, c *call, r *reply) (next []state) {
	for _, x := range s.later() {
		switch c.kind {
		case crash:
			next = append(next, x.restart(c)...)
			continue
		case granted:
			next = append(next, x.answered(c, r)...)
			continue
		}
		if status, list := x.do(c); r.lost || status == r.status && (c.kind != test || x.explains(c, r)) {
			next = append(next, list...)
		}
		if r.lost {
			next = append(next, x)
		}
	}
	return next
}

// explains tells whether the holder in an answer to TEST is in the way.
func (s *state) explains(c *call, r *reply) bool {
	others := s.inTheWay(c.wanted, s.n, s.patient(c.owner))
	return r.status != nlm.Denied || slices.ContainsFunc(others, func(w wanted) bool {
		return w.owner == r.holder.owner && w.exclusive == r.holder.exclusive && w.overlaps(r.holder)
	})
}

// specification is what Porcupine looks for an order with.
var specification = porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(s, input, output any) (next []any) {
		for _, x := range step(s.(state), input.(*call), output.(*reply)) {
			next = append(next, x)
		}
		return next
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%v: %v", input, output) },
}
