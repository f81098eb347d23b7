package fair

import "tansy/internal/lockorder"

// Limits of calls that change something. Such calls wait for each other: for locks, in the order of their coming, and
// for the barrier that makes a group of them durable. They need no processor while they wait, so turns do not share
// this out. Instead each host has a limited number of such calls under way, its places. The call of another host then
// waits for so many of them, and not for all that the first host has sent.
//
// A host that is alone has as many places as it takes to fill groups and processors. Beside others it has as many as
// any other host wants, and FewChanges at least. So hosts with many clients each get alike, and a host that floods gets
// little beside clients that wait for each answer. Connections of one host get places in turns.
const (
	MostChanges = 128 // of a host that is alone, or of all hosts that have more than FewChanges
	FewChanges  = 12  // of each host, whatever the others do
)

// Changes are the calls of a server that change something.
type Changes struct {
	mu    lockorder.Mutex[lockorder.Changes]
	limit int       // of each host
	hosts []*Places // that have such calls, or had some since the last look but one
}

// Places are those of a host, guarded by changes.mu.
type Places struct {
	taken    int        // calls under way
	forgiven int        // those of them that began before era, which count no more
	era      int        // how often none went on
	waiting  []chan int // connections that wait for a place, each with a call; they are told the era

	// Since the last look.
	most    int  // calls under way at a time
	crowded bool // some had to wait
	moved   bool // some have begun or ended

	listed bool // in changes.hosts
}

func NewChanges() *Changes { return &Changes{limit: MostChanges} }

// Begin takes a place. ok is false if none is free; then ready receives the era when the caller has a place. The era is
// for End.
func (c *Changes) Begin(p *Places, ready chan int) (era int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !p.listed {
		p.listed = true
		c.hosts = append(c.hosts, p)
		if len(c.hosts) > 1 {
			c.limit = min(c.limit, c.share(FewChanges))
		}
	}
	if p.count() < c.limit { // then none waits
		p.take()
		return p.era, true
	}
	p.crowded = true
	p.waiting = append(p.waiting, ready)
	return 0, false
}

// Waiting is how many calls are under way that count.
func (p *Places) count() int { return p.taken - p.forgiven }

func (p *Places) take() {
	p.taken++
	p.moved = true
	p.most = max(p.most, p.count())
}

// End gives back a place that was taken in era.
func (c *Changes) End(p *Places, era int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.taken--
	if era < p.era {
		p.forgiven--
	}
	p.moved = true
	p.admit(c.limit)
}

// admit gives places to those that wait, as long as the host has less than limit.
func (p *Places) admit(limit int) {
	for p.count() < limit && len(p.waiting) > 0 {
		p.waiting[0] <- p.era
		p.waiting[0] = nil
		p.waiting = p.waiting[1:]
		p.take()
	}
}

// Share is what a host may have that wants as much as all that are there, of which some other wants second.
func (c *Changes) share(second int) int {
	if len(c.hosts) < 2 {
		return MostChanges
	}
	return max(FewChanges, min(second, MostChanges/len(c.hosts)))
}

// Look sets the limit by what hosts did since the last Look. It is called now and then. Where calls wait and none goes
// on, those under way do not count any more: a volume whose device does not answer must not hold up calls for another
// volume.
func (c *Changes) Look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	first, second := 0, 0
	kept := c.hosts[:0]
	for _, p := range c.hosts {
		if p.listed = p.moved || p.taken > 0; !p.listed {
			continue
		}
		kept = append(kept, p)
		wants := p.most
		if p.crowded {
			wants *= 2
		}
		first, second = max(first, wants), max(second, min(first, wants))
	}
	clear(c.hosts[len(kept):])
	c.hosts = kept
	c.limit = c.share(second)
	for _, p := range c.hosts {
		stuck := !p.moved && len(p.waiting) > 0
		if stuck {
			p.forgiven = p.taken
			p.era++
		}
		p.moved, p.crowded, p.most = false, len(p.waiting) > 0, p.count()
		p.admit(c.limit)
	}
}
