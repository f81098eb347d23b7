package mount

import (
	"log/slog"
	"testing"

	"tansy/fs"
)

func TestMendedKernels(t *testing.T) {
	for release, want := range map[string]bool{
		"6.18.3": true, "6.18.44-cloud-amd64": true, "6.18.3-1": true, "6.19.0": true, "6.19-rc1": true, "7.0": true,
		"10.1.2": true, "6.18.2": false, "6.18.2-300": false, "6.18": false, "6.18-rc3": false, "6.12.90": false,
		"5.19.0": false, "": false, "x": false, "6": false, "6.x": false,
	} {
		if mended(release) != want {
			t.Errorf("%q: %v, want %v", release, !want, want)
		}
	}
}

// Where the mount has the locks, the kernel has to tell of each file that is closed, as that ends some.
func TestLocksNeedOpens(t *testing.T) {
	d := emptyVolume(t, 6000)
	v, err := fs.Open(d, fs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := newFileSystem(v, Options{Locks: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil || !f.nodes.tracked {
		t.Errorf("files are not opened: %v", err)
	}
	closed(t, d, v)
}
