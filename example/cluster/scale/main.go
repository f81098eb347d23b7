package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	c := config{}
	f := flag.CommandLine
	f.IntVar(&c.hosts, "hosts", 50, "hosts")
	f.IntVar(&c.volumes, "volumes", 1000, "volumes")
	f.IntVar(&c.racks, "racks", 5, "racks of hosts that fail together")
	f.Float64Var(&c.years, "years", 10, "time that is simulated")
	f.Uint64Var(&c.seed, "seed", 1, "seed of the failures")
	f.StringVar(&c.placement, "placement", "spread",
		"where the volumes of a host go: spread over all hosts, or pairs: to its neighbour")
	f.BoolVar(&c.failback, "failback", false, "volumes go back when their first host does")
	days := func(p *float64, name string, value float64, usage string) {
		f.Func(name, fmt.Sprintf("%s, in days (default %g)", usage, value), func(s string) error {
			_, err := fmt.Sscan(s, p)
			*p *= day
			return err
		})
		*p = value * day
	}
	days(&c.hostFails, "host-fails", 60, "mean time until a host fails")
	days(&c.hostDown, "host-down", 0.1, "mean time until it is back")
	days(&c.rackFails, "rack-fails", 1000, "mean time until a rack fails; 0: never")
	days(&c.rackDown, "rack-down", 0.1, "mean time until it is back")
	days(&c.upgrade, "upgrade", 30, "time between rolling upgrades; 0: none")
	f.Float64Var(&c.fence, "fence", 30, "seconds until the storage gives a silent owner's lock away")
	f.Float64Var(&c.poll, "poll", 1, "seconds between two attempts to get it")
	f.Float64Var(&c.lease, "lease", 5, "seconds that a successor waits")
	f.Float64Var(&c.recovery, "recovery", 0.5, "seconds to recover a volume")
	f.IntVar(&c.parallel, "parallel", 4, "recoveries at a time on a host")
	f.Float64Var(&c.handover, "handover", 5, "seconds when an owner stops in order")
	f.Usage = func() {
		fmt.Fprint(f.Output(), "Scale simulates many volumes on many hosts that stand by for each other.\n\n"+
			"usage: go run ./example/cluster/scale [flags]\n\n")
		f.PrintDefaults()
		fmt.Fprint(f.Output(), "\nexample: go run ./example/cluster/scale -fence 8 -placement pairs\n")
	}
	flag.Parse()
	if why := c.wrong(); why != "" || f.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "scale:", why, f.Args())
		os.Exit(2)
	}
	r := newCluster(c).run()
	r.print(os.Stdout, c)
}

// wrong says what cannot be simulated.
func (c *config) wrong() string {
	switch {
	case c.hosts < 1 || c.hosts > 1<<16 || c.volumes < 1 || c.volumes > 1<<24:
		return "-hosts 1 to 65536, -volumes 1 to 16777216"
	case c.racks < 0 || c.parallel < 1:
		return "-racks from 0, -parallel from 1"
	case c.placement != "spread" && c.placement != "pairs":
		return "-placement spread or pairs"
	case c.poll <= 0:
		return "-poll above 0"
	}
	return ""
}
