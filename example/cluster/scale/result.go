package main

import (
	"fmt"
	"io"
	"slices"
)

// result is what a simulation tells.
type result struct {
	outages []float64 // how long each took
	most    int       // volumes that were unavailable at once
	load    int       // volumes that one host served
	total   float64   // volumes × time unavailable
	served  float64   // volumes × time simulated
}

// finish counts what is not over.
func (s *cluster) finish() result {
	r := s.result
	for _, v := range s.volumes {
		if v.since >= 0 {
			r.outages = append(r.outages, s.now-v.since)
		}
	}
	for _, o := range r.outages {
		r.total += o
	}
	r.served = float64(len(s.volumes)) * s.now
	slices.Sort(r.outages)
	return r
}

// at is the outage that a part of all are not longer than.
func (r *result) at(part float64) float64 {
	if len(r.outages) == 0 {
		return 0
	}
	return r.outages[min(len(r.outages)-1, int(part*float64(len(r.outages))))]
}

func (r *result) print(w io.Writer, c config) {
	years := float64(c.volumes) * c.years // of one volume
	fmt.Fprintf(w, "outages of a volume    %d, %.2f per volume and year\n",
		len(r.outages), float64(len(r.outages))/years)
	fmt.Fprintf(w, "length                 median %.1f s, 99 %% within %.1f s, longest %.1f s\n",
		r.at(0.5), r.at(0.99), r.at(1))
	fmt.Fprintf(w, "unavailable            %.0f s per volume and year: %.5f %% of the time\n",
		r.total/years, 100*r.total/r.served)
	fmt.Fprintf(w, "unavailable at once    at most %d of %d volumes\n", r.most, c.volumes)
	fmt.Fprintf(w, "volumes on one host    at most %d, %.1f on average\n", r.load, float64(c.volumes)/float64(c.hosts))
}
