package main

import (
	"testing"

	"tansy/test/kit/replay"
)

// TestCluster: three hosts are upgraded, and one fails, and no client sees an error.
func TestCluster(t *testing.T) {
	if err := run(t.TempDir(), replay.Seed(t), testing.Verbose()); err != nil {
		t.Fatal(err)
	}
}

// TestRendezvous: volumes of a host that fails go to all others.
func TestRendezvous(t *testing.T) {
	hosts := []*host{{name: "a"}, {name: "b"}, {name: "c"}, {name: "d"}}
	first, next := map[string]int{}, map[[2]string]int{}
	for i := range 1200 {
		order := rendezvous(string(rune(i)), hosts)
		first[order[0].name]++
		next[[2]string{order[0].name, order[1].name}]++
	}
	for _, n := range first {
		if n < 240 || n > 360 {
			t.Errorf("%v", first)
		}
	}
	if len(next) != 12 {
		t.Errorf("%v", next)
	}
	for _, n := range next {
		if n < 60 || n > 140 {
			t.Errorf("%v", next)
		}
	}
}
