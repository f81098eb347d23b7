package main

import (
	"cmp"
	"container/heap"
	"hash/fnv"
	"math/rand/v2"
	"slices"
)

// Times are in seconds.
const (
	hour = 3600.0
	day  = 24 * hour
	year = 365 * day
)

// config is what is simulated.
type config struct {
	hosts, volumes, racks int
	years                 float64
	seed                  uint64
	placement             string  // spread or pairs
	failback              bool    // volumes go back to where they are preferred
	hostFails, hostDown   float64 // mean time until a host fails, and until it is back
	rackFails, rackDown   float64 // of all hosts of a rack at once; rackFails 0: never
	upgrade               float64 // time between rolling upgrades; 0: none

	takeover
}

// takeover is what the steps of one take.
type takeover struct {
	fence    float64 // until the storage gives the lock of a silent owner away
	poll     float64 // between two attempts to get it
	lease    float64 // that the successor waits, so that the owner sends no reply any more
	recovery float64 // until the volume can be served
	parallel int     // recoveries that a host carries out at a time
	handover float64 // in place of all that, when the owner stops in order
}

// volume is served by a host, or by none.
type volume struct {
	prefer []int   // hosts, the best first
	owner  int     // or the one that takes it over; -1: all are down
	since  float64 // it is unavailable; below 0: it is available
	turn   int     // of takeovers: what an earlier one still wants is void
}

// host is up or down.
type host struct {
	up         bool
	down       int // reasons for that
	recovering int
	queue      []step // volumes that wait until it can recover them
	volumes    int    // that it serves
}

// step is one of a takeover.
type step struct{ volume, turn int }

// event is something that happens at a time.
type event struct {
	at float64
	do func()
	n  int // events at the same time are in the order in which they were made
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[k].at), cmp.Compare(e[i].n, e[k].n)) < 0
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

// cluster is the hosts and volumes at a time.
type cluster struct {
	config
	random  *rand.Rand
	now     float64
	events  events
	made    int
	hosts   []host
	volumes []volume
	result  result
	down    int // volumes that are unavailable

	homeless []step // volumes that nobody is up for
}

// newCluster has all hosts up and each volume where it is preferred.
func newCluster(c config) *cluster {
	s := &cluster{
		config: c, random: rand.New(rand.NewPCG(c.seed, 0)),
		hosts: make([]host, c.hosts), volumes: make([]volume, c.volumes),
	}
	for i := range s.hosts {
		s.hosts[i].up = true
	}
	for v := range s.volumes {
		p := s.preference(v)
		s.volumes[v] = volume{prefer: p, owner: p[0], since: -1}
		s.hosts[p[0]].volumes++
	}
	return s
}

// preference is the order in which hosts are to serve a volume: for each another one (rendezvous hashing), or always
// the neighbour next.
func (s *cluster) preference(v int) []int {
	hosts := make([]int, s.config.hosts)
	for i := range hosts {
		hosts[i] = i
	}
	if s.placement == "pairs" {
		first := v % len(hosts)
		return append(hosts[first:], hosts[:first]...)
	}
	weight := func(h int) uint64 {
		f := fnv.New64a()
		f.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(h), byte(h >> 8)})
		x := f.Sum64() // whose last bytes tell too little by themselves
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		return x ^ x>>33
	}
	slices.SortFunc(hosts, func(a, b int) int { return cmp.Compare(weight(b), weight(a)) })
	return hosts
}

func (s *cluster) after(d float64, do func()) {
	s.made++
	heap.Push(&s.events, event{s.now + d, do, s.made})
}

// run goes on for the time that is simulated.
func (s *cluster) run() result {
	for h := range s.hosts {
		s.fails(s.hostFails, s.hostDown, []int{h})
	}
	for r := range s.racks {
		var all []int
		for h := r; h < len(s.hosts); h += s.racks {
			all = append(all, h)
		}
		s.fails(s.rackFails, s.rackDown, all)
	}
	if s.upgrade > 0 {
		s.after(s.upgrade, s.upgradeAll)
	}
	for end := s.years * year; len(s.events) > 0 && s.events[0].at < end; {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
	s.now = s.years * year
	return s.finish()
}

// fails has hosts fail together and come back, again and again.
func (s *cluster) fails(every, down float64, hosts []int) {
	if every == 0 {
		return
	}
	s.after(s.random.ExpFloat64()*every, func() {
		for _, h := range hosts {
			s.stop(h, s.fence)
		}
		s.after(s.random.ExpFloat64()*down, func() {
			for _, h := range hosts {
				s.start(h)
			}
			s.fails(every, down, hosts)
		})
	})
}

// stop takes host h down: its volumes are free after a time.
func (s *cluster) stop(h int, free float64) {
	s.hosts[h].down++
	if !s.hosts[h].up {
		return
	}
	s.hosts[h].up, s.hosts[h].recovering, s.hosts[h].queue = false, 0, nil
	for v := range s.volumes {
		if s.volumes[v].owner == h {
			s.lose(v)
			s.after(free, s.step(v, s.seek))
		}
	}
}

// start brings it back.
func (s *cluster) start(h int) {
	if s.hosts[h].down--; s.hosts[h].down > 0 {
		return
	}
	s.hosts[h].up = true
	for _, x := range s.homeless {
		if s.volumes[x.volume].turn == x.turn {
			s.seek(x.volume)
		}
	}
	s.homeless = nil
	if !s.failback {
		return
	}
	late := 0.0 // one after the other
	for v := range s.volumes {
		if s.volumes[v].prefer[0] == h {
			late += s.handover
			s.after(late, s.step(v, s.goBack))
		}
	}
}

// step is f for volume v, unless another takeover has begun meanwhile.
func (s *cluster) step(v int, f func(v int)) func() {
	turn := s.volumes[v].turn
	return func() {
		if s.volumes[v].turn == turn {
			f(v)
		}
	}
}

// lose notes that nobody serves v.
func (s *cluster) lose(v int) {
	x := &s.volumes[v]
	x.turn++
	if x.since < 0 {
		x.since = s.now
		s.hosts[x.owner].volumes--
		s.down++
		s.result.most = max(s.result.most, s.down)
	}
	x.owner = -1
}

// seek has the best host that is up take the lock of v.
func (s *cluster) seek(v int) {
	x := &s.volumes[v]
	for _, h := range x.prefer {
		if s.hosts[h].up {
			x.owner = h
			s.after(s.random.Float64()*s.poll+s.lease, s.step(v, s.recover))
			return
		}
	}
	s.homeless = append(s.homeless, step{v, x.turn})
}

// recover has the owner of v recover it as soon as it can.
func (s *cluster) recover(v int) {
	h := &s.hosts[s.volumes[v].owner]
	if h.recovering == s.parallel {
		h.queue = append(h.queue, step{v, s.volumes[v].turn})
		return
	}
	h.recovering++
	s.after(s.recovery, s.step(v, func(v int) {
		s.serve(v)
		h.recovering--
		for len(h.queue) > 0 && h.recovering < s.parallel {
			next := h.queue[0]
			h.queue = h.queue[1:]
			if s.volumes[next.volume].turn == next.turn {
				s.recover(next.volume)
			}
		}
	}))
}

// serve notes that the owner of v serves it.
func (s *cluster) serve(v int) {
	x := &s.volumes[v]
	s.result.outages = append(s.result.outages, s.now-x.since)
	x.since = -1
	s.down--
	h := &s.hosts[x.owner]
	h.volumes++
	s.result.load = max(s.result.load, h.volumes)
}

// goBack moves v to the host that it prefers, in order.
func (s *cluster) goBack(v int) {
	x := &s.volumes[v]
	if x.since < 0 && x.owner != x.prefer[0] && s.hosts[x.prefer[0]].up {
		s.move(v, x.prefer[0])
	}
}

// move has host h serve v after its owner has stopped in order.
func (s *cluster) move(v, h int) {
	s.lose(v)
	s.volumes[v].owner = h
	s.after(s.handover, s.step(v, s.serve))
}

// upgradeAll takes one host after the other out of service, in order, for a minute each.
func (s *cluster) upgradeAll() {
	const restart = 60.0
	late := 0.0
	for h := range s.hosts {
		s.after(late, func() { s.stop(h, 0) })
		s.after(late+restart, func() { s.start(h) })
		late += 2 * restart
	}
	s.after(s.upgrade, s.upgradeAll)
}
