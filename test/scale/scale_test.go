package main

import (
	"math"
	"testing"

	"tansy/test/kit/replay"
)

// small is a cluster in which nothing happens.
var small = config{
	hosts: 10, volumes: 100, racks: 2, years: 1, placement: "spread",
	takeover: takeover{fence: 30, poll: 1e-9, lease: 5, recovery: 2, parallel: 4, handover: 3},
}

func TestNothingHappens(t *testing.T) {
	if r := newCluster(small).run(); len(r.outages) != 0 || r.total != 0 || r.most != 0 {
		t.Errorf("%+v", r)
	}
}

// TestOneFailure: what a takeover takes is the sum of its steps.
func TestOneFailure(t *testing.T) {
	c := small
	c.placement = "pairs" // 10 volumes go to one host, 4 at a time
	s := newCluster(c)
	s.after(100, func() { s.stop(3, s.fence) })
	r := s.run()
	want := []float64{37, 37, 37, 37, 39, 39, 39, 39, 41, 41}
	if len(r.outages) != len(want) || r.most != 10 || r.load != 20 {
		t.Fatalf("%+v", r)
	}
	for i := range want {
		if math.Abs(r.outages[i]-want[i]) > 1e-6 {
			t.Errorf("outage %d of %v s, want %v", i, r.outages[i], want[i])
		}
	}
}

// TestFailureOfSuccessors: a takeover begins anew when who takes over fails, and ends when all hosts were down.
func TestFailureOfSuccessors(t *testing.T) {
	c := small
	c.hosts, c.volumes, c.poll = 2, 1, 1e-3
	s := newCluster(c)
	first, second := s.volumes[0].prefer[0], s.volumes[0].prefer[1]
	s.after(100, func() { s.stop(first, s.fence) })
	s.after(132, func() { s.stop(second, s.fence) }) // in its lease
	s.after(200, func() { s.start(first) })
	r := s.run()
	if len(r.outages) != 1 || math.Abs(r.outages[0]-107) > 0.01 {
		t.Errorf("outages %v", r.outages)
	}
}

// TestConsistent: at any time a volume is served by one host that is up, or is unavailable, whatever happens.
func TestConsistent(t *testing.T) {
	seed := replay.Seed(t)
	for i := range uint64(20) {
		c := small
		c.seed, c.years, c.failback = seed+i, 0.2, i%2 == 0
		c.hostFails, c.hostDown, c.rackFails, c.rackDown, c.upgrade = 2*day, hour, 10*day, hour, 5*day
		s := newCluster(c)
		var look func()
		look = func() {
			served, down := make([]int, len(s.hosts)), 0
			for n, v := range s.volumes {
				switch {
				case v.since >= 0:
					down++
				case !s.hosts[v.owner].up:
					t.Fatalf("seed %d: volume %d is served by host %d, which is down", c.seed, n, v.owner)
				default:
					served[v.owner]++
				}
			}
			for h := range s.hosts {
				if served[h] != s.hosts[h].volumes {
					t.Fatalf("seed %d: host %d serves %d volumes, not %d", c.seed, h, served[h], s.hosts[h].volumes)
				}
			}
			if down != s.down {
				t.Fatalf("seed %d: %d volumes are down, not %d", c.seed, down, s.down)
			}
			s.after(hour/7, look)
		}
		look()
		if r := s.run(); len(r.outages) == 0 || r.at(1) < r.at(0.5) || r.total > r.served {
			t.Errorf("seed %d: %d outages", c.seed, len(r.outages))
		}
	}
}
