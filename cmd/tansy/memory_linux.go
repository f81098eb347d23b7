package main

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory is the memory there is for this process in bytes: that of the machine, or what its control groups
// leave of it; 0: not known.
func memory() uint64 {
	var s unix.Sysinfo_t
	if unix.Sysinfo(&s) != nil {
		return 0
	}
	return min(uint64(s.Totalram)*uint64(s.Unit), groupMemory("/"))
}

// groupMemory is the least limit of the control groups of this process, of either version, in bytes. root is where
// the file system begins.
func groupMemory(root string) uint64 {
	least := ^uint64(0)
	list, _ := os.ReadFile(path.Join(root, "proc/self/cgroup"))
	for line := range strings.Lines(string(list)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(f) < 3 {
			continue
		}
		dir, name := "sys/fs/cgroup", "memory.max"
		if f[1] == "memory" {
			dir, name = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if f[1] != "" {
			continue
		}
		// In a container the path may be the one that its host sees; then the group is where the tree begins.
		for at := path.Clean("/" + f[2]); ; at = path.Dir(at) {
			text, _ := os.ReadFile(path.Join(root, dir, at, name))
			if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil { // else it is "max"
				least = min(least, n)
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}
