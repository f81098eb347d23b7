package ablation

import (
	"os"
	"slices"
	"strings"

	"tansy/disk"
)

var names = strings.Split(os.Getenv("TANSY_ABLATION"), ",")

// On tells whether a part is taken out.
func On(name string) bool { return slices.Contains(names, name) }

// Disk is d, as it is to be used.
func Disk(d disk.Disk) disk.Disk {
	if On(NoOverlap) {
		d = &oneAtATime{Disk: d}
	}
	if On(TwoBarriers) {
		d = &twice{Disk: d}
	}
	return d
}
