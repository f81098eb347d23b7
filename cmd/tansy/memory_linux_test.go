package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The least limit of the control groups counts, and what is no limit does not.
func TestGroupMemory(t *testing.T) {
	const none = ^uint64(0)
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"nothing": {nil, none},
		"version 2": {map[string]string{
			"proc/self/cgroup":                      "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":          "max\n",
			"sys/fs/cgroup/a/memory.max":            "1000000\n",
			"sys/fs/cgroup/memory.max":              "3000000\n",
			"sys/fs/cgroup/memory/a/b/memory.limit": "1\n",
		}, 1000000},
		"version 2, in a container": {map[string]string{
			"proc/self/cgroup":         "0::/../../docker/x\n",
			"sys/fs/cgroup/memory.max": "2000000\n",
		}, 2000000},
		"version 1": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "500000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		}, 500000},
		"garbage": {map[string]string{
			"proc/self/cgroup":         "0::\n\nx\n1:memory\n",
			"sys/fs/cgroup/memory.max": "-5\n",
		}, none},
	} {
		root := t.TempDir()
		for at, text := range c.files {
			at = filepath.Join(root, at)
			if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if got := groupMemory(root); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
	if m := memory(); m < 1<<20 {
		t.Errorf("%d bytes of memory", m)
	}
}
