//go:build linux

package figures

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Describe says when, of what, and on which machine it is measured.
func Describe() string {
	commit, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=10").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	return fmt.Sprintf("%s, commit %s; %d processors (%s), %d GiB of memory, Linux %s",
		time.Now().Format("2 January 2006"), strings.TrimSpace(string(commit)),
		runtime.NumCPU(), processor(), memory()>>30, kernel())
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

func memory() uint64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return uint64(i.Totalram) * uint64(i.Unit)
}

func kernel() string {
	var u unix.Utsname
	unix.Uname(&u)
	return unix.ByteSliceToString(u.Release[:])
}
