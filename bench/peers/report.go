//go:build linux

package main

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

// report is docs/performance.md, if the folder is docs.
func report(folder string) *figures.Page {
	p := &figures.Page{Folder: folder, Name: "performance", Command: "go run ./bench/peers -write docs"}
	for _, w := range workloads {
		p.Workloads = append(p.Workloads, w.name)
	}
	for _, e := range everyPeer {
		p.Contenders = append(p.Contenders, e.name)
	}
	return p
}
