//go:build linux

package main

import (
	"testing"

	"tansy/internal/mounttest"
)

// TestMount runs the suite on a volume that is mounted by `tansy mount`.
func TestMount(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "4G")
	m := mounttest.New(t, bin, image, "--allow-other")
	if code := run("mount", "", false, false, false, []string{m.Dir}); code != 0 {
		t.Errorf("exit status %d", code)
	}
	m.Unmount(t, bin, image)
}
