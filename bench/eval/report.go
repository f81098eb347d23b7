//go:build linux

package eval

import (
	"fmt"

	"tansy/bench/internal/figures"
	"tansy/bench/internal/rig"
)

// describe says when, where, and how it is measured.
func describe(o options, d *rig.Device) string {
	how := fmt.Sprintf("%d rounds of %v", o.rounds, o.duration)
	if o.quick {
		how += " (-quick: whether it runs, not how fast)"
	}
	return fmt.Sprintf("%s; %s; %s", figures.Describe(), d, how)
}

// report is docs/evidence/evaluation.md, if the folder is docs/evidence.
func report(folder string) *figures.Page {
	p := &figures.Page{Folder: folder, Name: "evaluation", Command: "go run ./bench eval -write docs/evidence"}
	for _, w := range workloads {
		p.Workloads = append(p.Workloads, w.name)
	}
	for _, c := range allContenders() {
		p.Contenders = append(p.Contenders, c.name)
	}
	p.Summary = func(s figures.Samples) string {
		return fmt.Sprintf("\n### Targets\n\n%s\n![Speed against native ext4](evaluation/ratios.svg)\n", targetTable(s))
	}
	p.Plots = func(s figures.Samples) map[string]string {
		ratios := p.Ratios(s, ours, native, "times as fast as native ext4 (data=ordered); the longer the better")
		return map[string]string{"ratios.svg": ratios}
	}
	return p
}
