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

// TestMountServed runs the suite on a volume that is served as well.
func TestMountServed(t *testing.T) {
	bin := mounttest.Build(t)
	image := mounttest.Volume(t, bin, "4G")
	m := mounttest.Serve(t, bin, image, t.TempDir(), nil, "--mount-options", "allow_other")
	if code := run("mount", "", false, false, false, []string{m.Dir}); code != 0 {
		t.Errorf("exit status %d", code)
	}
	mounttest.Run(t, bin, "umount", m.Dir)
}
