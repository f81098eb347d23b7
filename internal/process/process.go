// Package process tells about other processes of this machine, for messages: which have something open, and what they
// are. What /proc does not show (other systems than Linux, another PID namespace, no right) is left out.
package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// HasOpen tells whether a process has a file open that is the one, as far as it may be looked at.
func HasOpen(pid int, is func(os.FileInfo) bool) bool {
	dir := fmt.Sprintf("/proc/%d/fd/", pid)
	fds, _ := os.ReadDir(dir)
	return slices.ContainsFunc(fds, func(fd os.DirEntry) bool {
		st, err := os.Stat(dir + fd.Name())
		return err == nil && is(st)
	})
}

// WithOpen returns the processes that have a file open that is the one.
func WithOpen(is func(os.FileInfo) bool) (pids []int) {
	all, _ := os.ReadDir("/proc")
	for _, p := range all {
		if pid, err := strconv.Atoi(p.Name()); err == nil && pid != os.Getpid() && HasOpen(pid, is) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// WithName returns the processes that have a file of that name open, such as a device. No file is asked for its
// attributes, which one of a file system that hangs would not tell.
func WithName(name string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, l := range links {
		pid, err := strconv.Atoi(strings.Split(l, "/")[2])
		if to, e := os.Readlink(l); err == nil && e == nil && to == name && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return slices.Compact(pids)
}

// most bounds the processes that are told.
const most = 3

// Names says which these are, for people, with their commands; "" for none.
func Names(pids []int) string {
	slices.Sort(pids)
	pids = slices.Compact(pids)
	var all []string
	for _, pid := range pids {
		if len(all) == most {
			all = append(all, fmt.Sprintf("and %d more", len(pids)-most))
			break
		}
		what := "process " + strconv.Itoa(pid)
		if pid == os.Getpid() {
			what = "this process itself"
		} else if c := commandOf(pid); c != "" {
			what += " (" + c + ")"
		}
		all = append(all, what)
	}
	return strings.Join(all, ", ")
}

// commandOf is the command line of a process, as far as it fits a message, or "".
func commandOf(pid int) string {
	const longest = 60 // characters
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(line) == 0 {
		line, err = os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	}
	if err != nil {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if r == 0 {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '·'
		}
		return r
	}, strings.TrimRight(string(bytes.ToValidUTF8(line, []byte("·"))), "\x00\n"))
	if r := []rune(text); len(r) > longest {
		text = string(r[:longest]) + "…"
	}
	return text
}
