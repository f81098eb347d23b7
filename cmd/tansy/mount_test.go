//go:build linux || darwin

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Options come as mount(8) passes them; one that is not known is named.
func TestMountOptions(t *testing.T) {
	var m mounting
	if err := m.Set("rw,nosuid,noatime,allow_other,noxattr,x-systemd.requires=/srv,nofail,user=me,cache=16M,_netdev,comment=a b"); err != nil {
		t.Fatal(err)
	}
	if err := m.Set("ro,sync,discard=off,defaults"); err != nil {
		t.Fatal(err)
	}
	if !m.readOnly || !m.sync || !m.allowOther || !m.noXattr || m.cache != 16<<20 || m.discard != "off" || !slices.Equal(m.flags, []string{"nosuid", "noatime"}) {
		t.Errorf("%+v", m)
	}
	for option, what := range map[string]string{
		"nonsense": `"nonsense"`, "ro,cache=x": `"cache=x"`, "discard=perhaps": "auto, on or off", "size=3": `"size=3"`,
		"uid=5": `"uid=5": files have owners of their own`, "ro,gid=5": "--owner", "umask=022": "chmod", "loop": "loop device",
	} {
		if err := new(mounting).Set(option); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", option, err)
		}
	}
	if err := m.Set("sloppy,nonsense"); err != nil {
		t.Error(err)
	}
}

func TestMountMisused(t *testing.T) {
	for _, args := range [][]string{{}, {"v.img"}, {"v.img", "dir", "more"}, {"v.img", "dir", "--cache", "1K"}, {"v.img", "dir", "-o", "nonsense"}} {
		if code := run(append([]string{"mount"}, args...)); code != exitUsage {
			t.Errorf("tansy mount %v: exit code %d", args, code)
		}
	}
	for want, args := range map[int][]string{1: {"v.img", "dir", "-x"}, 0: {"v.img", "dir", "-fv"}} {
		if code := mountHelper(args); code != want {
			t.Errorf("mount.tansy %v: exit code %d", args, code)
		}
	}
}

// A mistake in the directory's name leaves the volume alone: to open it would write to it.
func TestMountOnNothing(t *testing.T) {
	img := filepath.Join(t.TempDir(), "v.img")
	if code := run([]string{"mkfs", img, "--size", "6M"}); code != exitOK {
		t.Fatalf("mkfs: exit code %d", code)
	}
	before, err := os.ReadFile(img)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "nothing"), img} {
		if code := run([]string{"mount", img, dir}); code == exitOK {
			t.Errorf("%s: exit code %d", dir, code)
		}
	}
	if after, err := os.ReadFile(img); err != nil || !bytes.Equal(before, after) {
		t.Error("the volume is not what it was", err)
	}
}
