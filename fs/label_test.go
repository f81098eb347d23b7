package fs_test

import (
	"errors"
	"strings"
	"testing"

	"tansy/disk"
	"tansy/fs"
	"tansy/offline/check"
)

// A volume has the label that it was made with, then that which it was given last, through reopening; what cannot be
// one is refused, and changes nothing.
func TestLabel(t *testing.T) {
	d := disk.NewMem(4000 * disk.BlockSize)
	if err := fs.Mkfs(d, fs.MkfsOptions{Zeroed: true, Inodes: 64, Label: "first one"}); err != nil {
		t.Fatal(err)
	}
	has := func(want string) {
		t.Helper()
		v := open(t, d, fs.Options{ReadOnly: true})
		defer closeFS(t, v)
		if label, err := v.Label(); err != nil || label != want {
			t.Errorf("the label is %q, %v, want %q", label, err, want)
		}
		if names, err := v.ListXattr(v.Root()); err != nil || len(names) > 0 {
			t.Errorf("clients see the attributes %q, %v", names, err)
		}
		if err := v.SetLabel("x"); err != fs.ErrROFS {
			t.Errorf("of a volume that is read-only: %v", err)
		}
	}
	has("first one")
	for _, label := range []string{"backup 2", strings.Repeat("ä", fs.MostLabel/2), ""} {
		v := open(t, d, fs.Options{})
		if err := v.SetLabel(label); err != nil {
			t.Errorf("%q: %v", label, err)
		}
		for _, wrong := range []string{
			strings.Repeat("a", fs.MostLabel+1), "a/b", "..", " a", "a ", "a\nb", "a\x00", "\xff", "a\u202eb",
		} {
			if err := v.SetLabel(wrong); !errors.Is(err, fs.ErrLabel) {
				t.Errorf("%q: %v", wrong, err)
			}
		}
		closeFS(t, v)
		has(label)
	}
	if r, err := check.Volume(d, check.Options{Data: true}); err != nil || !r.Clean() {
		t.Errorf("%v, %v", r.Problems, err)
	}
	if err := fs.Mkfs(d, fs.MkfsOptions{Inodes: 64, Label: "a/b"}); !errors.Is(err, fs.ErrLabel) {
		t.Errorf("made with a label that is none: %v", err)
	}
	has("") // the volume is still there
}
