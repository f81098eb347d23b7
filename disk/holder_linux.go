package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"tansy/internal/process"
)

// Who has a file or device is told for people alone: the lock is what counts. What /proc does not show (another PID
// namespace, hidepid) is left out.

// lockedBy returns ErrLocked, with the processes that have the lock of the file, as far as that can be found out.
func lockedBy(id identity) error {
	return told(ErrLocked, process.Names(lockOwners(id)))
}

// told is err with who is the reason for it, if that is known.
func told(err error, who string) error {
	if who == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, who)
}

// lockOwners are the processes that have locked a file with flock. Where the device's number is not that of stat
// (Btrfs, overlayfs) the file has to be among those that the process has open.
func lockOwners(id identity) (pids []int) {
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return nil
	}
	dev := fmt.Sprintf("%02x:%02x", unix.Major(id.dev), unix.Minor(id.dev))
	for line := range strings.SplitSeq(string(locks), "\n") {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF
		if len(f) < 6 || f[1] != "FLOCK" {
			continue
		}
		at := strings.LastIndexByte(f[5], ':')
		pid, err := strconv.Atoi(f[4])
		if err != nil || pid <= 0 || at < 0 || f[5][at+1:] != strconv.FormatUint(id.ino, 10) {
			continue
		}
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
			continue // it has ended, and a child of it has the lock
		}
		if f[5][:at] == dev || process.HasOpen(pid, func(st os.FileInfo) bool { return sameIdentity(st, id) }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func sameIdentity(st os.FileInfo, id identity) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && uint64(s.Dev) == id.dev && s.Ino == id.ino
}

// UseOf says what a block device, or a partition of it, is in use for: where it is mounted, that it is swapped to, or
// what it is a part of. The result is "" for what is no block device, and where no use can be seen.
func UseOf(path string) string {
	st, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if device, err := isDevice(st); err != nil || !device {
		return ""
	}
	var uses []string
	for _, dev := range withPartitions(st) {
		uses = append(uses, usesOf(dev)...)
	}
	slices.Sort(uses)
	return strings.Join(slices.Compact(uses), ", ")
}

// number returns the number of a device as sysfs writes it: MAJOR:MINOR.
func number(rdev uint64) string { return fmt.Sprintf("%d:%d", unix.Major(rdev), unix.Minor(rdev)) }

// withPartitions are the numbers of a device and of its partitions.
func withPartitions(st os.FileInfo) []string {
	all := []string{number(uint64(st.Sys().(*syscall.Stat_t).Rdev))}
	parts, _ := filepath.Glob(deviceDir(st) + "/*/partition")
	for _, p := range parts {
		if n, err := os.ReadFile(filepath.Join(filepath.Dir(p), "dev")); err == nil {
			all = append(all, strings.TrimSpace(string(n)))
		}
	}
	return all
}

// usesOf says what the device of this number is in use for.
func usesOf(dev string) (uses []string) {
	is := func(path string) bool {
		st, err := os.Stat(path)
		return err == nil && st.Mode()&os.ModeDevice != 0 && number(uint64(st.Sys().(*syscall.Stat_t).Rdev)) == dev
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.SplitSeq(string(mounts), "\n") {
		f := strings.Fields(line) // ID PARENT MAJOR:MINOR ROOT DIR OPTIONS ... - TYPE SOURCE OPTIONS
		end := slices.Index(f, "-")
		if end < 5 || len(f) < end+3 {
			continue
		}
		if f[2] == dev || strings.HasPrefix(f[end+2], "/dev/") && is(process.Unescaped(f[end+2])) {
			uses = append(uses, "mounted on "+process.Unescaped(f[4]))
		}
	}
	swaps, _ := os.ReadFile("/proc/swaps")
	for line := range strings.SplitSeq(string(swaps), "\n") {
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "/") && is(process.Unescaped(name)) {
			uses = append(uses, "used for swapping")
		}
	}
	holders, _ := filepath.Glob("/sys/dev/block/" + dev + "/holders/*")
	for _, h := range holders {
		name := filepath.Base(h)
		if n, err := os.ReadFile(h + "/dm/name"); err == nil {
			name = "mapper/" + strings.TrimSpace(string(n))
		}
		uses = append(uses, "a part of /dev/"+name)
	}
	return uses
}

// busy is the error of the kernel about a device that somebody has for himself, with what for, or who, as far as that
// can be found out.
func busy(path string, err error) error {
	if err != unix.EBUSY {
		return err
	}
	if use := UseOf(path); use != "" {
		return told(err, use)
	}
	st, e := os.Stat(path)
	if e != nil {
		return err
	}
	device := number(uint64(st.Sys().(*syscall.Stat_t).Rdev))
	pids := process.WithOpen(func(f os.FileInfo) bool {
		return f.Mode()&os.ModeDevice != 0 && number(uint64(f.Sys().(*syscall.Stat_t).Rdev)) == device
	})
	if len(pids) == 0 {
		return err
	}
	return told(ErrLocked, process.Names(pids))
}
