package advisory

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

var seed = flag.Uint64("seed", 0, "of TestModel; 0: another each time")

// model is one file, byte by byte: what each owner has of each byte (0: nothing, 1: shared, 2: exclusive), and who
// waits. The last byte stands for all from there on.
type model struct {
	has   [modelBytes]map[int]int
	waits []*modelWait
}

const modelBytes = 24

type modelWait struct {
	owner, from, to int
	exclusive       bool
	patient, told   bool
	isNew           bool // it was offered just now
}

func clash(a, b bool) bool { return a || b }

// free tells whether owner could have the bytes, were it in front of the waits from place i on.
func (m *model) free(owner, from, to int, exclusive, patient bool, i int) bool {
	for b := from; b <= to; b++ {
		for who, how := range m.has[b] {
			if who != owner && how > 0 && clash(how == 2, exclusive) {
				return false
			}
		}
	}
	for k, w := range m.waits {
		if w.owner != owner && (w.told || patient && k < i) && w.from <= to && from <= w.to && clash(w.exclusive, exclusive) {
			return false
		}
	}
	return true
}

func (m *model) set(owner, from, to, how int) {
	for b := from; b <= to; b++ {
		m.has[b][owner] = how
	}
}

// offers makes those that have become possible.
func (m *model) offers() {
	for i, w := range m.waits {
		if !w.told && m.free(w.owner, w.from, w.to, w.exclusive, w.patient, i) {
			w.told, w.isNew = true, true
		}
	}
}

// news are the offers that nobody was told of, in the order of the waits.
func (m *model) news() (list []*modelWait) {
	for _, w := range m.waits {
		if w.isNew {
			w.isNew = false
			list = append(list, w)
		}
	}
	return list
}

func (m *model) accept(w *modelWait) {
	m.waits = slices.DeleteFunc(m.waits, func(x *modelWait) bool { return x == w })
	how := 1
	if w.exclusive {
		how = 2
	}
	m.set(w.owner, w.from, w.to, how)
	m.offers()
}

// taken accepts what was offered of these bytes.
func (m *model) taken(owner, from, to int) {
	for _, w := range slices.Clone(m.waits) {
		if w.told && w.owner == owner && w.from <= to && from <= w.to {
			m.accept(w)
		}
	}
}

// run is a table and the models of its files, with what was offered and not answered.
type run struct {
	t      *testing.T
	table  *Table
	files  []*model
	open   []Offer
	came   []Offer
	random *rand.Rand
}

func modelOwner(i int) Owner {
	return Owner{Host{netip.AddrFrom4([4]byte{192, 0, 2, byte(i / 2)}), fmt.Sprint("host", i/2)}, fmt.Sprint("owner", i)}
}

func modelFile(i int) File { return File{Ino: uint64(i)} }

func modelRange(from, to int) Range {
	r := Range{uint64(from), uint64(to)}
	if to == modelBytes-1 {
		r.Last = math.MaxUint64
	}
	return r
}

// holds tells whether an owner holds something of any file.
func (r *run) holds(owner int) bool {
	for _, m := range r.files {
		for b := range m.has {
			if m.has[b][owner] > 0 {
				return true
			}
		}
	}
	return false
}

// settle compares the offers that came with those that the model makes.
func (r *run) settle(what string, m *model) {
	r.t.Helper()
	m.offers()
	want := m.news()
	if len(want) != len(r.came) {
		r.t.Fatalf("%s: %d offers, want %d", what, len(r.came), len(want))
	}
	for i, w := range want {
		if r.came[i].Data.(*modelWait) != w {
			r.t.Fatalf("%s: offer %d is of %+v, want %+v", what, i, r.came[i].Data, w)
		}
	}
	r.open = append(r.open, r.came...)
	r.came = nil
}

// step is one random call.
func (r *run) step() {
	f, owner := r.random.IntN(len(r.files)), r.random.IntN(6)
	m, file, o := r.files[f], modelFile(f), modelOwner(owner)
	from := r.random.IntN(modelBytes)
	to := from + r.random.IntN(modelBytes-from)
	exclusive, block := r.random.IntN(2) == 0, r.random.IntN(2) == 0
	span := modelRange(from, to)
	what := fmt.Sprint("file ", f, " owner ", owner, " ", from, "-", to, " exclusive ", exclusive, " block ", block)
	switch r.random.IntN(16) {
	default:
		what = "lock " + what
		m.taken(owner, from, to)
		patient := !r.holds(owner)
		want := Granted
		w := &modelWait{owner: owner, from: from, to: to, exclusive: exclusive, patient: patient}
		same := slices.ContainsFunc(m.waits, func(x *modelWait) bool {
			return x.owner == owner && x.from == from && x.to == to && x.exclusive == exclusive
		})
		switch {
		case block && same:
			want = Blocked // and the table has the newest data of the wait
			for i, x := range m.waits {
				if x.owner == owner && x.from == from && x.to == to && x.exclusive == exclusive {
					w.patient = x.patient
					m.waits[i] = w
				}
			}
		case m.free(owner, from, to, exclusive, patient, len(m.waits)):
			m.set(owner, from, to, map[bool]int{false: 1, true: 2}[exclusive])
		case block:
			want = Blocked
			m.waits = append(m.waits, w)
		default:
			want = Denied
		}
		if got, _ := r.table.Lock(file, o, span, exclusive, block, w); got != want {
			r.t.Fatalf("%s: %v, want %v", what, got, want)
		}
	case 0, 1, 2, 3, 4:
		what = "unlock " + what
		m.taken(owner, from, to)
		m.set(owner, from, to, 0)
		if got := r.table.Unlock(file, o, span); got != Granted {
			r.t.Fatalf("%s: %v", what, got)
		}
	case 5:
		what = "cancel " + what
		found := false
		for _, w := range slices.Clone(m.waits) {
			if w.owner == owner && !found && r.random.IntN(2) == 0 {
				found = true
				m.waits = slices.DeleteFunc(m.waits, func(x *modelWait) bool { return x == w })
				if !r.table.Cancel(file, o, modelRange(w.from, w.to), w.exclusive) {
					r.t.Fatalf("%s: not found", what)
				}
			}
		}
	case 6, 7:
		if len(r.open) > 0 {
			k := r.random.IntN(len(r.open))
			offer := r.open[k]
			r.open = slices.Delete(r.open, k, k+1)
			w := offer.Data.(*modelWait)
			if i := slices.IndexFunc(r.files, func(x *model) bool { return slices.Contains(x.waits, w) }); i >= 0 {
				m = r.files[i]
				if r.random.IntN(3) > 0 {
					what = "accept"
					m.accept(w)
					if !r.table.Accept(offer) {
						r.t.Fatalf("%s: the offer of %+v does not stand", what, w)
					}
				} else {
					what = "refuse"
					m.waits = slices.DeleteFunc(m.waits, func(x *modelWait) bool { return x == w })
					r.table.Refuse(offer)
				}
			} else if r.table.Accept(offer) { // it does nothing
				r.t.Fatalf("an offer is accepted that does not stand: %+v", w)
			}
		}
	case 8:
		if r.random.IntN(8) > 0 {
			return
		}
		r.free(owner / 2)
		return
	}
	r.settle(what, m)
}

// free ends all that a host has. Its owners go one after the other, in any order, so that what is offered may be, and
// nothing else could be offered in the end; but which of two is first depends.
func (r *run) free(host int) {
	gone := modelOwner(2 * host).Host
	r.table.Free(func(h Host) bool { return h == gone })
	for _, m := range r.files {
		m.waits = slices.DeleteFunc(m.waits, func(x *modelWait) bool { return x.owner/2 == host })
		for b := range m.has {
			delete(m.has[b], 2*host)
			delete(m.has[b], 2*host+1)
		}
	}
	for _, o := range r.came {
		w := o.Data.(*modelWait)
		if w.owner/2 == host {
			continue // it had not gone yet when the other one had
		}
		m := r.files[slices.IndexFunc(r.files, func(x *model) bool { return slices.Contains(x.waits, w) })]
		if w.told || !m.free(w.owner, w.from, w.to, w.exclusive, false, 0) {
			r.t.Fatalf("freeing host %d offers %+v", host, w)
		}
		w.told = true
		r.open = append(r.open, o)
	}
	for _, m := range r.files {
		if m.offers(); len(m.news()) > 0 {
			r.t.Fatalf("freeing host %d does not offer something to %+v", host, m.waits)
		}
	}
	r.came = nil
}

// compare asks the table, as a stranger and as each owner, what can be had of each byte.
func (r *run) compare() {
	for f, m := range r.files {
		for owner := range 7 { // the last is a stranger
			for b := range modelBytes {
				for _, exclusive := range []bool{false, true} {
					want := m.free(owner, b, b, exclusive, !r.holds(owner), len(m.waits))
					got, c := r.table.Test(modelFile(f), modelOwner(owner), modelRange(b, b), exclusive)
					if (got == Granted) != want {
						r.t.Fatalf("file %d byte %d for owner %d, exclusive %v: %v, want %v", f, b, owner, exclusive, got, want)
					}
					if got == Denied && (c.Owner == modelOwner(owner) || c.Range.First > modelRange(b, b).Last ||
						c.Range.Last < uint64(b) || !clash(c.Exclusive, exclusive)) {
						r.t.Fatalf("file %d byte %d for owner %d: in the way is %+v", f, b, owner, c)
					}
				}
			}
		}
	}
}

// TestModel: random calls of six owners on three hosts are answered as the model, byte by byte, has it.
func TestModel(t *testing.T) {
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("-seed %d", n)
	for round := range 40 {
		r := &run{t: t, random: rand.New(rand.NewPCG(n, uint64(round)))}
		limits := Limits{All: 1 << 20, Client: 1 << 20, File: 1 << 20, Waits: 1 << 20, FileWaits: 1 << 20, Hosts: 10}
		r.table = New(limits, func(o Offer) { r.came = append(r.came, o) })
		for range 2 {
			m := &model{}
			for b := range m.has {
				m.has[b] = map[int]int{}
			}
			r.files = append(r.files, m)
		}
		for i := range 150 {
			r.step()
			if i%10 == 0 {
				r.compare()
			}
		}
		r.compare()
		for host := range 3 {
			r.free(host)
		}
		if c := r.table.Counts(); c != (Counts{}) {
			t.Fatalf("%+v is left of nothing", c)
		}
		if len(r.table.sizes) != 0 || len(r.table.byID) != 0 {
			t.Fatal("addresses or numbers are left of nothing")
		}
	}
}
