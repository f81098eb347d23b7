//go:build !ablation

package ablation

import (
	"testing"

	"tansy/disk"
)

// Nothing is taken out of a program that is built without the tag, whatever its environment says.
func TestOff(t *testing.T) {
	for _, name := range []string{OneLock, NoGroupCommit, NoOverlap, TwoBarriers, NoDirect, NoCodes} {
		t.Setenv("TANSY_ABLATION", name)
		if On(name) {
			t.Errorf("%s is taken out", name)
		}
	}
	if d := disk.NewMem(10); Disk(d) != disk.Disk(d) {
		t.Error("the device is another one")
	}
}
