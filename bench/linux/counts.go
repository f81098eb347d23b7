//go:build linux

package linux

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A result is what one phase took.
type result struct {
	Workload, Phase, Contender string
	Seconds                    float64
	Counts                     counts
}

// counts are of all that the guest has done since some moment.
type counts struct {
	Calls   float64 // of the client to the server
	Flushes float64 // of the disk's cache
	Written float64 // to the disk, in bytes
	Read    float64 // from it

	// Busy is the time of a processor that the server took, in seconds: its process, or the kernel's threads for it and
	// for its journal and the programs beside it.
	Busy float64

	Idle float64 // time that processors were idle, in seconds
}

func (c counts) since(b counts) counts {
	return counts{
		Calls: c.Calls - b.Calls, Flushes: c.Flushes - b.Flushes, Written: c.Written - b.Written,
		Read: c.Read - b.Read, Busy: c.Busy - b.Busy, Idle: c.Idle - b.Idle,
	}
}

// ticks is how many the kernel counts in a second for programs to see.
const ticks = 100

func (s *server) counts() (c counts, err error) {
	block, err := fields(statistics) // Documentation/block/stat.rst
	if err != nil {
		return c, err
	}
	if len(block) < 17 {
		return c, fmt.Errorf("%s: %d numbers", statistics, len(block))
	}
	c.Read, c.Written, c.Flushes = number(block[2])*512, number(block[6])*512, number(block[15])
	all, err := fields("/proc/stat") // cpu user nice system idle iowait
	if err != nil {
		return c, err
	}
	c.Idle = (number(all[4]) + number(all[5])) / ticks
	for _, id := range s.processes() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
		if err != nil {
			return c, err
		}
		rest := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])) // proc(5): from the third one on
		c.Busy += (number(rest[14-3]) + number(rest[15-3])) / ticks
	}
	mounts, err := os.ReadFile("/proc/self/mountstats")
	if err != nil {
		return c, err
	}
	here := false
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		switch {
		case len(f) > 4 && f[0] == "device":
			here = f[4] == mountPoint
		case here && len(f) > 8 && f[0] == "xprt:": // xprt: tcp port binds connects connecting idle sent received ...
			c.Calls += number(f[7])
		}
	}
	return c, nil
}

func fields(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	return strings.Fields(string(text)), err
}

func number(s string) float64 {
	n, _ := strconv.ParseFloat(s, 64)
	return n
}
