package mount

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/internal/process"
)

// What mount(2) and renameat2(2) call these.
const (
	noSUID, noDev, noExec = unix.MS_NOSUID, unix.MS_NODEV, unix.MS_NOEXEC
	renameNoReplace       = unix.RENAME_NOREPLACE
	renameExchange        = unix.RENAME_EXCHANGE
	renameWhiteout        = unix.RENAME_WHITEOUT
)

// opens tells whether files and directories have to be opened. Linux takes ENOSYS for no, and may keep contents and
// listings then.
const opens = false

func haveFUSE() error {
	if _, err := os.Stat("/dev/fuse"); err != nil {
		return fmt.Errorf("this machine has no FUSE (%w): modprobe fuse", err)
	}
	return nil
}

// system adds what Linux has to the options for the library and the kernel.
func (o *Options) system(m *fuse.MountOptions) {
	m.EnableSymlinkCaching = true
	m.EnableLocks = o.Locks
	m.ExtraCapabilities = fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_ASYNC_DIO | fuse.CAP_NO_OPENDIR_SUPPORT |
		fuse.CAP_HANDLE_KILLPRIV_V2 | fuse.CAP_DONT_MASK
	m.EnableAcl = !o.NoXattr
	if o.Shared {
		m.ExtraCapabilities |= fuse.CAP_DIRECT_IO_ALLOW_MMAP
	}
	if os.Geteuid() == 0 {
		m.DirectMountStrict = true
		m.DirectMountFlags = unix.MS_MGC_VAL // which means none: 0 would mean the library's own choice
		if o.ReadOnly {
			m.DirectMountFlags |= unix.MS_RDONLY
		}
		m.DirectMountFlags |= apply(0, o.Flags)
		return
	}
	if o.ReadOnly {
		m.Options = append(m.Options, "ro")
	}
	if apply(0, o.Flags)&noExec != 0 { // fusermount3 sets nosuid and nodev itself
		m.Options = append(m.Options, "noexec")
	}
}

// inGroup tells whether a caller is in a group. The kernel tells us the first group; /proc has the others, of a process
// that can be seen from here.
func inGroup(who fuse.Caller, gid uint32) bool {
	if who.Gid == gid {
		return true
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", who.Pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if groups, ok := strings.CutPrefix(line, "Groups:"); ok {
			return slices.Contains(strings.Fields(groups), strconv.FormatUint(uint64(gid), 10))
		}
	}
	return false
}

// waitMount waits until the kernel has mounted the file system, which it has when there is a server.
func waitMount(*fuse.Server) error { return nil }

// readAhead has the kernel read as much ahead as a request can ask for, not the eighth of it that is usual: a file
// that is read in order from the device is read several times as fast. Only root can say so.
func readAhead(at Mounted) error {
	device := at.Device
	if at.Type == TypeDevice {
		device += "-fuseblk"
	}
	return os.WriteFile("/sys/class/bdi/"+device+"/read_ahead_kb", []byte(strconv.Itoa(maxIO>>10)), 0)
}

// On is what is mounted on a directory now.
func On(dir string) (Mounted, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Mounted{}, err
	}
	m, ok := At(string(table), dir)
	if !ok {
		return m, fmt.Errorf("%s: %w", dir, ErrNotThere)
	}
	return m, nil
}

// At is what is mounted on a directory, by the table in /proc/self/mountinfo.
func At(table, dir string) (m Mounted, ok bool) {
	for line := range strings.Lines(table) {
		before, after, _ := strings.Cut(line, " - ")
		b, a := strings.Fields(before), strings.Fields(after)
		if len(b) > 4 && len(a) > 1 && process.Unescaped(b[4]) == dir { // the last one is on top
			m, ok = Mounted{b[2], a[0], process.Unescaped(a[1])}, true
		}
	}
	return m, ok
}

// Volumes are all volumes that are mounted now, by their directories.
func Volumes() (map[string]Mounted, error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	all := map[string]Mounted{}
	for line := range strings.Lines(string(table)) {
		before, _, _ := strings.Cut(line, " - ")
		if b := strings.Fields(before); len(b) > 4 {
			dir := process.Unescaped(b[4])
			if m, ok := At(line, dir); ok && m.Ours() {
				all[dir] = m
			} else { // it covers what was there before
				delete(all, dir)
			}
		}
	}
	return all, nil
}

// Hidden are the volumes over which something else is mounted now, on the same directory.
func Hidden() (hidden []Covered, err error) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	ours := map[string][]Mounted{}
	for line := range strings.Lines(string(table)) {
		before, _, _ := strings.Cut(line, " - ")
		if b := strings.Fields(before); len(b) > 4 {
			dir := process.Unescaped(b[4])
			if m, ok := At(line, dir); ok && m.Ours() {
				ours[dir] = append(ours[dir], m)
			}
		}
	}
	for dir, all := range ours {
		top, ok := At(string(table), dir)
		for _, m := range all {
			if ok && m.Device != top.Device {
				hidden = append(hidden, Covered{Dir: dir, Volume: m, By: top})
			}
		}
	}
	return hidden, nil
}

// below are the directories below dir on which something is mounted, those first that can be unmounted first.
func below(dir string) (all []string) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return mountedBelow(string(table), dir)
}

// mountedBelow is below by the table in /proc/self/mountinfo, in which a mount comes after what it is mounted on.
func mountedBelow(table, dir string) (all []string) {
	for line := range strings.Lines(table) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(process.Unescaped(f[4]), dir+"/") {
			all = append(all, process.Unescaped(f[4]))
		}
	}
	slices.Reverse(all)
	return all
}

// Unmount takes a file system off a directory. With lazy it is out of sight from then on, and those that use it go on.
func Unmount(dir string, lazy bool) error {
	if os.Geteuid() != 0 {
		return unmountAsUser(dir, lazy)
	}
	how := unix.UMOUNT_NOFOLLOW
	if lazy {
		how |= unix.MNT_DETACH
	}
	return unmounted(dir, unix.Unmount(dir, how))
}

// unmountAsUser asks the helper that is set-user-ID.
func unmountAsUser(dir string, lazy bool) error {
	args := []string{"-u", dir}
	if lazy {
		args = slices.Insert(args, 1, "-z")
	}
	var said bytes.Buffer
	c := exec.Command("fusermount3", args...)
	c.Env = append(os.Environ(), "LC_ALL=C")
	c.Stderr = &said
	err := c.Run()
	switch text := strings.TrimSpace(said.String()); {
	case err == nil:
		return nil
	case strings.Contains(text, "busy"):
		return busy(dir, below(dir))
	case text != "":
		return errors.New(text)
	}
	return fmt.Errorf("fusermount3: %w", err)
}
