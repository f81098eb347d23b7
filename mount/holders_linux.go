package mount

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tansy/internal/process"
)

// Holders are the processes that have a file system mounted, one for each mount namespace. device is its number in the
// table of mounts. The file system may be mounted in this process on another directory (mount --bind, mount --move), in
// a container that began while it was mounted, or in a service with a name space of its own. Unmounting it here does
// not unmount it there. A user who is not root sees only own processes.
func Holders(device string) (all []Holder) {
	seen := map[string]bool{}
	if table, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		if dir, ok := where(string(table), device); ok {
			all = append(all, Holder{Dir: dir})
		}
	}
	if own, err := os.Readlink("/proc/self/ns/mnt"); err == nil {
		seen[own] = true
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	slices.SortFunc(processes, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, p := range processes {
		space, err := os.Readlink(p + "/ns/mnt")
		if err != nil || seen[space] {
			continue // it has ended, or is not ours to look at
		}
		table, err := os.ReadFile(p + "/mountinfo")
		if err != nil {
			continue
		}
		seen[space] = true
		if dir, ok := where(string(table), device); ok {
			pid, _ := strconv.Atoi(filepath.Base(p))
			command, _ := os.ReadFile(p + "/comm")
			all = append(all, Holder{pid, strings.TrimSpace(string(command)), dir})
		}
	}
	return all
}

// where is the first directory that a file system of ours is mounted on, by a table of mounts.
func where(table, device string) (dir string, ok bool) {
	for line := range strings.Lines(table) {
		before, after, _ := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if len(b) > 4 && len(a) > 0 && b[2] == device && (Mounted{Type: a[0]}).Ours() {
			return process.Unescaped(b[4]), true
		}
	}
	return "", false
}
