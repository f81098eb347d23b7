package crash

import (
	"math/rand/v2"
	"slices"
	"testing"

	"tansy/test/kit/replay"
)

// TestFlagsBeside: what flags forbid beside the plain model, they forbid on a volume, and nothing else. Punching is
// left out: where there is a hole already it does nothing, and is not refused.
func TestFlagsBeside(t *testing.T) {
	r := rand.New(rand.NewPCG(replay.Seed(t), 1))
	base, err := start(roomy)
	if err != nil {
		t.Fatal(err)
	}
	flags, all := ofFlags(), slices.DeleteFunc(operations(true), func(o operation) bool {
		return o.steps[0].name() == "punch"
	})
	besides(t, base, []Step{
		"setflags foo ia", "setflags foo i", "setflags foo ia", "setflags foo a", "setflags foo iA", "setflags foo -",
		"setflags A i", "remove A/bar", "rmdir A/C", "rename A/bar bar",
	})
	for range 100 {
		var steps []Step
		for range 4 {
			steps = append(steps, flags[r.IntN(len(flags))].steps...)
			for range 3 {
				steps = append(steps, all[r.IntN(len(all))].steps...)
			}
		}
		besides(t, base, steps)
	}
}

// TestFlagsSeen: flags count in what is seen of what clients did.
func TestFlagsSeen(t *testing.T) {
	if treeAfter(t, "setflags foo i") == treeAfter(t) {
		t.Error("they are not seen")
	}
}
