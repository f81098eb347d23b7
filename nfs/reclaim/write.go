package reclaim

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"

	"tansy/fs"
)

// What is written is what stays. A host that is not in it any more is not among the hosts from before the write on, so
// that nobody is admitted for what a write that is under way may take from the volume.

// beginWriting waits until nobody else writes to the volume, or decides what is written. The result ends it.
func (v *Volume) beginWriting() (end func()) {
	v.writing <- struct{}{}
	return func() { <-v.writing }
}

// list are the hosts, in the order in which they are written. The caller has mu.
func (v *Volume) list() []Host {
	list := make([]Host, 0, len(v.hosts))
	for h := range v.hosts {
		list = append(list, h)
	}
	slices.SortFunc(list, func(a, b Host) int {
		return cmp.Or(a.Local.Compare(b.Local), a.Addr.Compare(b.Addr))
	})
	return list
}

// drop takes hosts from the list that have no locks, and returns how many. The caller writes, and has mu.
func (v *Volume) drop() (n int) {
	holding := v.cfg.Holding() // a call that is not among the pins any more is seen here
	for h := range v.hosts {
		if _, waited := v.before[h.Addr]; !waited && v.pins[h.Addr] == 0 && !holding[h.Addr] {
			delete(v.hosts, h)
			n++
		}
	}
	return n
}

// add puts a host on the volume. It tells whether it is there, durable. The caller writes, and has mu.
func (v *Volume) add(h Host) bool {
	v.drop()
	if len(v.hosts) >= v.cfg.Hosts || v.neighbours(h.Addr) >= perNetwork {
		v.noRoom(h, nil)
		return false
	}
	if err := v.write(append(v.list(), h)); err != nil {
		v.noRoom(h, err)
		return false
	}
	v.hosts[h], v.full = struct{}{}, false
	return true
}

// neighbours is how many hosts of an IPv6 address's network there are. The caller has mu.
func (v *Volume) neighbours(at netip.Addr) (n int) {
	if !at.Is6() {
		return 0
	}
	network := netip.PrefixFrom(at, 64)
	for h := range v.hosts {
		if network.Contains(h.Addr) {
			n++
		}
	}
	return n
}

// write writes hosts to the volume. The caller writes, and has mu, which is given back meanwhile.
func (v *Volume) write(list []Host) error {
	b := encode(v.state, list)
	v.mu.Unlock()
	defer v.mu.Lock()
	return v.cfg.Store.SetNote(note, b)
}

// noRoom logs that a host cannot be put on the volume, once until one could. The caller has mu.
func (v *Volume) noRoom(h Host, err error) {
	if !v.full && !errors.Is(err, fs.ErrClosed) {
		v.full = true
		v.cfg.Log.Warn("a client gets no locks, as the volume cannot remember that it has any",
			"client", h.Addr, "remembered", len(v.hosts), "err", err)
	}
}

// forget takes hosts without locks from the volume.
func (v *Volume) forget() {
	defer v.beginWriting()()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.drop() == 0 {
		return
	}
	if err := v.write(v.list()); err != nil && !errors.Is(err, fs.ErrClosed) {
		v.cfg.Log.Warn("clients without locks stay on the volume", "err", err)
	}
}

// endGrace ends the grace period when the volume does not have those hosts any more that did not reclaim: what others
// get from then on, they could not claim again after the next crash. Nor does anybody get what a call that was admitted
// is about to take: it waits for those under way, which wait for nobody.
func (v *Volume) endGrace() {
	defer v.beginWriting()()
	v.mu.Lock()
	defer v.mu.Unlock()
	silent := len(v.before)
	v.before = nil
	v.drop()
	if err := v.write(v.list()); err != nil {
		v.cfg.Log.Error("the time in which clients reclaim locks goes on", "err", err)
		return
	}
	for v.late = true; len(v.pins) > 0; {
		v.idle.Wait()
	}
	v.grace = false
	v.cfg.Log.Info("clients may lock what they had not locked before", "reclaimed", len(v.hosts), "silent", silent)
}
