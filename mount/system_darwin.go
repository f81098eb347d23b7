package mount

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// What is here was written from the documentation of macOS and the sources of go-fuse, and was never run.

// What mount(2) and renamex_np(2) call these.
const (
	noSUID, noDev, noExec = unix.MNT_NOSUID, unix.MNT_NODEV, unix.MNT_NOEXEC
	renameNoReplace       = unix.RENAME_EXCL
	renameExchange        = unix.RENAME_SWAP
	renameWhiteout        = 0 // there is none
)

// opens tells whether files and directories have to be opened. Nothing says that macFUSE takes ENOSYS for no.
const opens = true

// inGroup tells whether a caller is in a group, of which only the first is known.
func inGroup(who fuse.Caller, gid uint32) bool { return who.Gid == gid }

// ForgetsInOrder tells whether files need not be opened on this system.
func ForgetsInOrder() bool { return false }

func haveFUSE() error {
	if _, err := os.Stat("/Library/Filesystems/macfuse.fs"); err != nil {
		return fmt.Errorf("this machine has no macFUSE (%w): https://macfuse.github.io", err)
	}
	return nil
}

// system adds what macOS has to the options for the library and the kernel. There are no extended attributes: their
// names have no namespaces there. Whether setuid ends with a write is not known, so that it never counts.
func (o *Options) system(m *fuse.MountOptions) {
	m.FsName = m.Name + ":" + o.Source // the table of mounts has nothing else of ours
	m.DisableXAttrs = true
	m.Options = append(m.Options, "nosuid", "nodev")
	if o.ReadOnly {
		m.Options = append(m.Options, "rdonly")
	}
	if slices.Contains(o.Flags, "noexec") {
		m.Options = append(m.Options, "noexec")
	}
}

// waitMount waits until the file system is in the table of mounts, for which the kernel asks it first.
func waitMount(s *fuse.Server) error { return s.WaitMount() }

// readAhead has nothing to set.
func readAhead(Mounted) error { return nil }

// below is not looked for here.
func below(string) []string { return nil }

// On is what is mounted on a directory now. It asks no file system, for one may hang.
func On(dir string) (Mounted, error) {
	table, err := mounted()
	if err != nil {
		return Mounted{}, err
	}
	if m, ok := table[dir]; ok {
		return m, nil
	}
	return Mounted{}, fmt.Errorf("%s: %w", dir, ErrNotThere)
}

// Volumes are all volumes that are mounted now, by their directories.
func Volumes() (map[string]Mounted, error) {
	table, err := mounted()
	maps.DeleteFunc(table, func(_ string, m Mounted) bool { return !m.Ours() })
	return table, err
}

// mounted is all that is mounted now, by its directory.
func mounted() (map[string]Mounted, error) {
	n, err := unix.Getfsstat(nil, unix.MNT_NOWAIT)
	if err != nil {
		return nil, os.NewSyscallError("getfsstat", err)
	}
	table := make([]unix.Statfs_t, n+16) // there may be more by now
	if n, err = unix.Getfsstat(table, unix.MNT_NOWAIT); err != nil {
		return nil, os.NewSyscallError("getfsstat", err)
	}
	all := map[string]Mounted{}
	for _, at := range table[:n] { // the last one is on top
		m := Mounted{fmt.Sprint(at.Fsid), unix.ByteSliceToString(at.Fstypename[:]), unix.ByteSliceToString(at.Mntfromname[:])}
		if kind, source, _ := strings.Cut(m.Source, ":"); kind == name || kind == nameShared {
			m.Type, m.Source = typePrefix+kind, source
		}
		all[unix.ByteSliceToString(at.Mntonname[:])] = m
	}
	return all, nil
}

// Hidden are none that are known: the table has of each directory what is on top.
func Hidden() ([]Covered, error) { return nil, nil }

// Unmount takes a file system off a directory. macOS has no lazy unmounting: those that use the file system get errors
// from then on.
func Unmount(dir string, lazy bool) error {
	how := 0
	if lazy {
		how = unix.MNT_FORCE
	}
	return unmounted(dir, unix.Unmount(dir, how))
}

// Holders are none: macOS has no mount namespaces.
func Holders(string) []Holder { return nil }

// Remount has no way to do that here.
func Remount(dir, access string, options []string) error {
	return fmt.Errorf("%s: a volume that is mounted on macOS stays as it is: unmount it, and mount it again", dir)
}

// mountDevice has no way to do that here.
func (f *fileSystem) mountDevice(string, *Options) (serve func(), err error) {
	return nil, fmt.Errorf("macOS mounts no block device as a file system of FUSE: leave blkdev out")
}

// mountRings has no io_uring here.
func (f *fileSystem) mountRings(string, *Options) (serve func(), err error) {
	return nil, fmt.Errorf("%w: macOS has none", errNoRing)
}
