//go:build linux

package eval

import (
	"slices"

	"tansy/bench/eval/ablation"
)

// whole is the contender of the ablations of which nothing is taken out.
const whole = "whole"

var everyAblation = []contender{
	{name: whole, about: "Tansy's mount with nothing taken out, built like those below"},
	{name: ablation.OneLock, without: ablation.OneLock, about: "one transaction at a time"},
	{name: ablation.NoGroupCommit, without: ablation.NoGroupCommit,
		about: "one transaction at a time, durable before the next one begins"},
	{name: ablation.NoOverlap, without: ablation.NoOverlap, about: "the log is not written while blocks are written home"},
	{name: ablation.TwoBarriers, without: ablation.TwoBarriers,
		about: "each barrier is followed by one more block and one more barrier"},
	{name: ablation.NoDirect, without: ablation.NoDirect, about: "large new data go through the log, too"},
	{name: "least-cache", cache: "4M", about: "a block cache of 4 MiB, the least that one transaction needs"},
	{name: ablation.NoCodes, without: ablation.NoCodes, about: "no tree of codes: what is read is believed"},
}

func ablationContenders(o options) []contender {
	cs := slices.Clone(everyAblation)
	for i := range cs {
		cs[i].kind, cs[i].ablated = "tansy", true
	}
	return among(o, cs)
}

// ablations are the workloads in which the parts that can be taken out do something.
func ablations(o options) []experiment {
	few, many := o, o
	few.clients, many.clients = []int{1, manyUsers}, []int{manyUsers}
	return slices.Concat(named("smallfile", smallfile(few)), named("mailbench", mailbench(many)),
		named("random", randomBy(manyUsers)), named("largefile", largefile(o)))
}

// named has the names of the metrics begin with that of the workload. They are no scale of clients.
func named(workload string, es []experiment) []experiment {
	for _, e := range es {
		for i := range e.metrics {
			e.metrics[i].Name = workload + ": " + e.metrics[i].Name
			e.metrics[i].At = 0
		}
	}
	return es
}
