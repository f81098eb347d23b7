//go:build linux

package main

import (
	"testing"

	"tansy/test/kit/mounttest"
)

// TestMount runs the exerciser on a volume that is mounted by `tansy mount`, once with what the kernel has of it
// dropped now and then.
func TestMount(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "1G")
	m := mounttest.New(t, bin, image)
	for _, drop := range []bool{false, true} {
		c := &config{seed: *seedFlag, ops: *opsFlag / 2, procs: 6, worker: -1, size: 512 << 10, kinds: "all",
			dir: m.Dir, drop: drop}
		if code := lead(c); code != 0 {
			t.Errorf("exit status %d, seed %d", code, c.seed)
		}
	}
	m.Unmount(t, bin, image)
}
