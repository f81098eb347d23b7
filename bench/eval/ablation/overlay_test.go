package ablation

import (
	"os/exec"
	"testing"
)

// A program with the overlay can be built: the product's files still have the texts that are replaced.
func TestOverlay(t *testing.T) {
	overlay, err := Overlay("../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", overlay, "tansy/journal", "tansy/internal/runtime/dtxn")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Nothing is taken out unless that is asked for.
func TestOff(t *testing.T) {
	for _, name := range []string{OneLock, NoGroupCommit, NoOverlap, TwoBarriers, NoDirect, NoCodes} {
		if On(name) {
			t.Errorf("%s is taken out", name)
		}
	}
}
