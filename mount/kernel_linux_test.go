package mount

import "testing"

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
