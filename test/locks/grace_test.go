package locks

import (
	"slices"

	"tansy/nfs/nlm"
)

// admit decides whether an address may have locks, and if so notes that it is on the volume.
func (s *state) admit(address int8, reclaim bool) uint32 {
	switch {
	case s.grace != over && !reclaim:
		return nlm.DeniedGrace
	case reclaim && (s.grace == over || !s.known[address]):
		return nlm.Denied
	}
	s.disk[address], s.before[address] = true, false
	return nlm.Granted
}

// later are the states that come about without a call from then on, and s itself.
func (s state) later() []state {
	list := []state{s}
	add := func(x state) {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	for k := 0; k < len(list); k++ {
		for i, w := range list[k].waits[:list[k].n] {
			x := list[k]
			switch {
			case w.accepted && w.offered:
				x.accept(int8(i))
				add(x)
			case w.refused:
				x.leave(int8(i))
				x.offer()
				add(x)
			}
		}
		for _, x := range list[k].graceEnds() {
			add(x)
		}
	}
	return list
}

// graceEnds are the states after the next step to the end of the grace period.
func (s state) graceEnds() []state {
	switch {
	case s.grace == lasting && !s.forever:
		s.grace = ending
		list := []state{s}
		for a := range int8(addresses) {
			silent, holds := s.before[a], s.hasSome(a) || s.waitsForSome(a)
			for i := range list {
				list[i].before[a] = false
				list[i].known[a] = s.known[a] && !silent
			}
			if s.known[a] && !silent && !holds { // it goes, unless a call of it is under way
				for _, x := range list {
					x.known[a] = false
					list = append(list, x)
				}
			}
		}
		return list
	case s.grace == ending:
		s.grace, s.disk, s.known = late, s.known, [addresses]bool{}
		return []state{s}
	case s.grace == late:
		s.grace = over
		return []state{s}
	}
	return nil
}

// restart are the states of the next server, with a grace period or none.
func (s state) restart(c *call) (list []state) {
	if c.inOrder && s.grace == ending {
		return nil // the server ends when that is durable
	}
	list = []state{{forever: c.forever}}
	for a := range int8(addresses) {
		if !s.disk[a] {
			continue
		}
		// A server that ends in order takes from the volume who has nothing. It offers to nobody any more, and so ends
		// waits. After a crash all may be there that was.
		stays := s.before[a] || s.hasSome(a) || !c.inOrder && s.waitsForSome(a)
		may := !c.inOrder || s.waitsForSome(a)
		var more []state
		for _, x := range list {
			if !stays {
				more = append(more, x)
			}
			if stays || may {
				x.disk[a] = true
				more = append(more, x)
			}
		}
		list = more
	}
	for i := range list {
		if x := &list[i]; !c.noGrace && x.disk != [addresses]bool{} {
			x.grace, x.before, x.known = lasting, x.disk, x.disk
		}
	}
	return list
}
