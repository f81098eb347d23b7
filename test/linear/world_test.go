package linear

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"tansy/fs"
	"tansy/fs/model"
	"tansy/nfs/nfs3"
)

// world is what the volume may look like at some point of a history. It never
// changes.
type world struct {
	now volume
	// older are the states that a crash may go back to, the oldest first: those
	// since the last operation that is durable. Only unstable writes add to them.
	older []volume
	sum   uint64 // of now and older
}

// volume is a model that does not change any more.
type volume struct {
	*model.Model
	sum uint64
}

var seedOfSums = maphash.MakeSeed()

func still(m *model.Model) volume { return volume{m, m.Sum(seedOfSums)} }

func newWorld(now volume, older []volume) *world {
	w := &world{now: now, older: older, sum: now.sum}
	for _, v := range older {
		w.sum = w.sum*1_000_003 + v.sum
	}
	return w
}

// checker is the sequential specification of one history.
type checker struct {
	calls  []*call
	top    fs.Node // the directory of the history, as it was made
	mixed  bool    // there are system calls on a mount
	cached bool    // of which the kernel keeps the sizes of files
}

// model is the specification for Porcupine. Its states are sets of worlds, because
// of the operations whose outcome nobody was told: []*world, sorted by sum.
func (k *checker) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return []*world{k.start()} },
		Step: func(state, input, output any) (bool, any) {
			next, _ := k.step(state.([]*world), input.(*call), output.(*reply))
			return len(next) > 0, next
		},
		Equal: func(a, b any) bool {
			return slices.EqualFunc(a.([]*world), b.([]*world), func(x, y *world) bool { return x.sum == y.sum })
		},
		Hash: func(a any) (h uint64) {
			for _, w := range a.([]*world) {
				h ^= w.sum
			}
			return h
		},
		DescribeOperation: func(input, output any) string {
			return fmt.Sprintf("%v: %v", input, output)
		},
		DescribeState: func(state any) string { return fmt.Sprintf("%d worlds", len(state.([]*world))) },
	}
}

// start is the empty directory that the history works in.
func (k *checker) start() *world {
	a := &k.top.Attr
	return newWorld(still(model.New(model.Options{
		Clock: clockAt(a.Ctime), NewHandle: func() fs.Handle { return k.top.Handle }, RootMode: a.Mode, Verifier: 1,
	})), nil)
}

func clockAt(t fs.Time) fs.Clock {
	return func() time.Time { return time.Unix(int64(t.Sec), int64(t.Nsec)) }
}

// step returns the worlds in which c with this reply may leave those of state. If
// there are none, the error tells why for each of them.
func (k *checker) step(state []*world, c *call, r *reply) (next []*world, why error) {
	for _, w := range state {
		after, err := k.from(w, c, r)
		if err != nil {
			why = errors.Join(why, err)
		}
		next = append(next, after...)
	}
	slices.SortFunc(next, func(x, y *world) int { return cmp.Compare(x.sum, y.sum) })
	return slices.CompactFunc(next, func(x, y *world) bool { return x.sum == y.sum }), why
}

func (k *checker) from(w *world, c *call, r *reply) ([]*world, error) {
	switch {
	case c.proc == crash:
		all := []*world{newWorld(w.now, nil)}
		for _, m := range w.older {
			all = append(all, newWorld(m, nil))
		}
		return all, nil
	case r.lost:
		return append([]*world{w}, k.maybe(w, c)...), nil
	case c.isLocal():
		return k.tryHere(w, c, r)
	case c.reads():
		return k.try(w, c, r, fs.Time{})
	}
	// The time that the operation took from the clock is that of a new file.
	now := unknownTime(c.id)
	if r.err == nil && r.node.Attr.Type != 0 {
		now = r.node.Attr.Ctime
	}
	return k.try(w, c, r, now)
}

// maybe is the world after an operation without an answer that did happen, if it
// can.
func (k *checker) maybe(w *world, c *call) []*world {
	s := &stamps{call: c}
	m := w.now.Fork(model.Options{Clock: clockAt(unknownTime(c.id)),
		NewHandle: func() fs.Handle { return unknownHandle(c.id) }, Stamp: s.next})
	do := func() reply { return c.do(m) }
	if c.isLocal() {
		do = func() reply { return c.onModel(m) }
	}
	if r := do(); r.err != nil {
		return nil
	}
	after := still(m)
	if after.sum == w.now.sum {
		return nil
	}
	if k.mixed || c.proc == nfs3.ProcWrite && c.stable == fs.Unstable { // the mount shows what is not durable yet
		return []*world{newWorld(after, append(slices.Clip(w.older), w.now))}
	}
	return []*world{newWorld(after, nil)}
}

// changes are the rights of ACCESS to change something: MODIFY, EXTEND, DELETE.
const changes = 0x04 | 0x08 | 0x10

// try does c on the model of w, with the choices that the reply shows the server
// to have made, and compares the replies.
func (k *checker) try(w *world, c *call, r *reply, now fs.Time) ([]*world, error) {
	m := w.now.Model
	made := false
	s := stampsIn(r, c)
	if !c.reads() {
		m = m.Fork(model.Options{Clock: clockAt(now), Stamp: s.next, NewHandle: func() fs.Handle {
			made = true
			s.given = append(s.given, given{t: now})
			return r.node.Handle
		}})
	}
	x := *c
	if c.proc == nfs3.ProcReaddir {
		x.cookie, x.count, x.plus = 0, math.MaxInt32, true
	}
	modelReply := x.do(m)
	if l := modelReply.list; len(l) > 0 && l[0].Attr == nil { // who may not search gets no handles; they are compared with the inode numbers
		x.cred = root
		for i, e := range x.do(m).list {
			l[i].Handle = e.Handle
		}
	}
	if refused := modelReply.n &^ changes; c.proc == nfs3.ProcAccess && r.late && r.n == refused {
		modelReply.n = refused // nothing can be changed any more, and the server may know
	}
	diff := match{calls: k.calls, top: k.top.Handle}
	if !diff.reply(c, &modelReply, r) {
		return nil, diff.why
	}
	if made && w.now.Live(r.node.Handle.Ino) {
		return nil, fmt.Errorf("a new file has the handle %s, which is another file's", handleName(r.node.Handle))
	}
	after, older := w.now, w.older
	if !c.reads() {
		after = still(m)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	switch changed := after.sum != w.now.sum; {
	case changed && c.proc == nfs3.ProcWrite && r.committed == fs.Unstable:
		older = append(slices.Clip(older), w.now)
	case changed || c.proc == nfs3.ProcCommit && r.err == nil:
		older = nil
	}
	return diff.learn(after, older)
}

// learn is the world of these volumes, with what stood for unknown values replaced
// by what was learnt.
func (m *match) learn(now volume, older []volume) ([]*world, error) {
	if len(m.times) == 0 && len(m.handles) == 0 {
		return []*world{newWorld(now, older)}, nil
	}
	all := append(slices.Clip(older), now)
	for i := range all {
		x := all[i].Fork(model.Options{})
		for old, t := range m.times {
			x.Restamp(old, t)
		}
		for old, h := range m.handles {
			if _, err := x.Getattr(old); err == nil && !x.Rehandle(old, h) {
				return nil, fmt.Errorf("handle %s is another file's", handleName(h))
			}
		}
		all[i] = still(x)
	}
	last := len(all) - 1
	return []*world{newWorld(all[last], all[:last:last])}, nil
}
