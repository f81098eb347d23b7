//go:build linux || darwin

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"tansy/disk"
	tansyfs "tansy/fs"
	"tansy/internal/nearest"
	"tansy/mount"
	volbackup "tansy/offline/backup"
	"tansy/ops/daemon"
)

// mounting are the flags of mount.
type mounting struct {
	readOnly, allowOther, sync, background, verbose bool
	readOnlyFlag                                    bool // --read-only

	cache    byteSize
	discard  discardMode
	control  controlling
	interval time.Duration // after which what was done is durable by itself
	flags    []string      // of the mount, as mount(8) names them
	noXattr  bool
	sloppy   bool // pass over options that are not known
	blkdev   bool // as the file system of the block device
	debug    bool // log each request of the kernel
	over     bool // also where something is mounted already
	by       transport
	remount  bool     // change how it is mounted
	fixed    []string // options that a remount cannot change
	access   string   // "ro", "rw", or "": as it is, for that
	both     bool     // ro and rw were given
}

func mountCommand() (*flagSet, action) {
	f := newFlags("mount", "VOLUME DIR [flags]", `
  tansy mount data.img /mnt      until Ctrl-C, SIGTERM, or tansy umount /mnt
  tansy mount /dev/sdb /srv --allow-other --background
                                 for all users; returns when /srv can be used
  tansy mount data.img /mnt -o ro,nosuid
                                 options as mount(8) has them
  tansy mount data.img /mnt -o remount,ro
                                 change a mount: ro, rw, and nosuid,nodev,noexec
                                 or suid,dev,exec
  ln -s /usr/local/bin/tansy /sbin/mount.tansy
  mount -t tansy data.img /mnt   with that link; in /etc/fstab, too:
                                 /srv/data.img /mnt tansy allow_other,nofail 0 0

What was done before an fsync, to whatever file, is durable when that returns;
without one, --commit-interval later. A crash leaves a beginning of all that was
done, in its order. Without --allow-other only who mounts may use the files;
others than root need "user_allow_other" in /etc/fuse.conf for it. The volume
must exist (tansy mkfs), and must not be served at the same time. On macOS it
needs macFUSE, and was never tried. docs/guide/mount.md says more.

exit codes:
  0  unmounted, and the volume is closed; with --background: it is mounted
  1  failed; or the connection to the NBD server was lost
  2  wrong arguments
  3  the volume was deleted, renamed, replaced or cut while it was mounted, or
     its device went away
`)
	m := mounting{cache: max(defaultCache(memory()), minCache), discard: "auto"}
	f.BoolVar(&m.readOnlyFlag, "read-only", false, "refuse changes; nothing is written to the volume")
	f.BoolVar(&m.allowOther, "allow-other", false, "let all users use the files, by the files' permissions")
	f.BoolVar(&m.sync, "sync", false, "have every change durable before it returns")
	f.BoolVar(&m.background, "background", false,
		"return when the file system can be used, and serve it on; the log goes to syslog then")
	f.Var(&m.cache, "cache", "size of the block cache, beside the kernel's (default a quarter of the memory there is)")
	f.Var(&m.discard, "discard", "give the room of removed files back to where the volume lies: `auto|on|off`; auto "+
		"does for a sparse image, and not for a block device")
	f.DurationVar(&m.interval, "commit-interval", tansyfs.DefaultCommitInterval,
		"`TIME` after which what was done is durable though nobody has asked for it")
	f.Var(&m, "o", "`OPTIONS` as mount(8) passes them, such as ro,nosuid; "+
		"also allow_other, sync, noxattr, cache=SIZE, discard=MODE, commit=SECONDS, over, and blkdev, with which sync(2) "+
		"is passed on for a block device")
	f.Var(&m.by, "transport", "how the kernel's requests come: `auto|uring|read`; uring is faster, on Linux 6.14 and "+
		"newer where root has turned it on (docs/guide/mount.md); auto is that where it is there")
	m.control.flags(f)
	f.BoolVar(&m.verbose, "v", false, "log more")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 2, 2)
		if done {
			return code
		}
		if what := cmp.Or(smallCache(m.cache, minCache), wrongInterval(m.interval), m.control.wrong(),
			m.wrongAccess(f)); what != "" {
			return misused(f, what)
		}
		if m.remount {
			if len(m.fixed) > 0 {
				fmt.Fprintf(os.Stderr, "tansy mount: %s: a remount leaves that as it is; unmount, and mount again to change it\n",
					strings.Join(m.fixed, ","))
			}
			err := otherVolume(pos[0], pos[1])
			if err == nil {
				err = mount.Remount(pos[1], m.access, m.flags)
			}
			if err != nil {
				return fail("mount", err)
			}
			return exitOK
		}
		if m.background && os.Getenv(readyVariable) == "" {
			return inBackground()
		}
		return m.run(pos[0], pos[1])
	}
}

// wrongAccess says what is wrong with whether the volume may be changed, or nothing. What mount(8) passes of a table is
// not ours: it is warned of.
func (m *mounting) wrongAccess(f *flagSet) string {
	if given(f, "read-only") && m.readOnlyFlag {
		if m.access == "rw" {
			return "--read-only and -o rw contradict each other: leave one of them out"
		}
		m.readOnly, m.access = true, "ro"
	}
	warn := warning("mount")
	if os.Getenv(readyVariable) != "" { // who started this has said it
		warn = func(error) {}
	}
	if m.both {
		warn(fmt.Errorf("-o has ro and rw, of which the last counts: %s", m.access))
	}
	if m.readOnly && m.discard == "on" {
		if given(f, "discard") {
			return uselessDiscard
		}
		warn(errors.New("-o discard means nothing for a mount that is read-only"))
	}
	return ""
}

// String is for flag.Value.
func (m *mounting) String() string { return "" }

// passedOver are options of mount(8) that are not for the file system, and those that the table of mounts shows of any
// file system of FUSE.
var passedOver = map[string]bool{
	"defaults": true, "auto": true, "noauto": true, "nofail": true, "_netdev": true,
	"comment": true, "user_id": true, "group_id": true, "max_read": true, "blksize": true,
	"user": true, "nouser": true, "users": true, "nousers": true, "owner": true, "noowner": true, "group": true,
	"nogroup": true,
}

// mountOptions are those that Set takes over, for who mistypes one.
var mountOptions = []string{
	"ro", "rw", "sync", "dirsync", "allow_other", "noxattr", "cache=", "discard=", "nodiscard", "nosuid", "nodev",
	"noexec", "noatime", "over", "debug", "transport=",
}

// refused are options that other file systems have, with what there is in place of each.
var refused = map[string]string{
	"uid": ownOwners, "gid": ownOwners, "umask": ownModes, "fmask": ownModes, "dmask": ownModes,
	"loop":       "an image is mounted without a loop device",
	"allow_root": "allow_other lets all in, as the permissions of the files say",
	"fsname":     "the table of mounts shows the volume", "subtype": "the type is fuse.tansy",
	"quota": "there are no quotas", "usrquota": "there are no quotas",
	"grpquota": "there are no quotas",
}

const (
	ownOwners = "files have owners of their own: change them by chown, and that of a new volume by tansy mkfs --owner"
	ownModes  = "files have permissions of their own: change them by chmod"
)

// atMount are options that count when a volume is mounted.
var atMount = map[string]bool{
	"sync": true, "dirsync": true, "noxattr": true, "cache": true, "commit": true, "discard": true,
	"nodiscard": true, "blkdev": true, "transport": true,
}

// transport is a flag for mount.Transport.
type transport mount.Transport

// String implements flag.Value.
func (t *transport) String() string { return cmp.Or(string(*t), "auto") }

// Set implements flag.Value.
func (t *transport) Set(name string) error {
	switch name {
	case "auto":
		*t = transport(mount.Auto)
	case string(mount.Ring), string(mount.Read):
		*t = transport(name)
	default:
		return errors.New("give auto, uring, or read")
	}
	return nil
}

// sayHow logs how the kernel's requests come, and returns it for who mounts; nothing if they are read as ever.
func sayHow(at *mount.Mount, log *slog.Logger) string {
	by, why := at.Transport()
	switch {
	case by == mount.Ring:
		log.Debug("the kernel's requests come by io_uring")
		return ", by io_uring"
	case why != nil:
		log.Debug("the kernel's requests are read", "why", why)
	}
	return ""
}

// seconds is the time that the option commit gives: 0 is the usual one, as ext4 has it.
func seconds(value string) (time.Duration, error) {
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < 0 || n > 1e9 {
		return 0, errors.New("give a number of seconds")
	}
	if n == 0 {
		return tansyfs.DefaultCommitInterval, nil
	}
	return time.Duration(n * float64(time.Second)), nil
}

// Set takes options over, as -o has them.
func (m *mounting) Set(list string) error {
	for option := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(option, "=")
		if atMount[name] {
			m.fixed = append(m.fixed, option)
		}
		var err error
		switch {
		case option == "ro" || option == "rw":
			m.both = m.both || m.access != "" && m.access != option
			m.readOnly, m.access = option == "ro", option
		case option == "blkdev":
			m.blkdev = true
		case option == "debug":
			m.debug, m.verbose = true, true
		case option == "over":
			m.over = true
		case option == "remount":
			m.remount = true
		case option == "sync" || option == "dirsync":
			m.sync = true
		case option == "sloppy":
			m.sloppy = true
		case option == "allow_other":
			m.allowOther = true
		case option == "noxattr":
			m.noXattr = true
		case option == "xattr" || option == "user_xattr" || option == "acl":
		case name == "cache":
			err = m.cache.Set(value)
		case name == "transport":
			err = m.by.Set(value)
		case name == "commit":
			m.interval, err = seconds(value)
		case name == "discard" && value != "":
			err = m.discard.Set(value)
		case option == "discard":
			m.discard = "on"
		case option == "nodiscard":
			m.discard = "off"
		case mount.Flag(option):
			m.flags = append(m.flags, option)
		case option == "" || passedOver[name] || strings.HasPrefix(strings.ToLower(name), "x-") || m.sloppy:
		case refused[name] != "":
			err = errors.New(refused[name])
		default:
			err = errors.New("tansy mount has no such option" + didYouMean(nearest.Of(name, mountOptions)))
		}
		if err != nil {
			return fmt.Errorf("%q: %w", option, err)
		}
	}
	return nil
}

// patience is how long a volume may still be in use that was unmounted or stopped a moment ago.
const patience = 3 * time.Second

// unlocked calls open until the volume is not another's any more, for as long as patience.
func unlocked(patience time.Duration, open func() error) error {
	late := time.Now().Add(patience)
	for {
		err := open()
		if !errors.Is(err, disk.ErrLocked) || time.Now().After(late) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// run mounts a volume and serves it until it is unmounted.
func (m *mounting) run(source, dir string) int {
	level := slog.LevelInfo
	if m.verbose {
		level = slog.LevelDebug
	}
	said := &errorOutput{w: os.Stderr}
	log, err := daemon.NewLog(said, "text", level)
	if err != nil {
		return fail("mount", err)
	}
	signal.Ignore(syscall.SIGPIPE)
	defer log.Close(lastWords)
	fail := func(err error) int {
		fmt.Fprint(log, worded("mount", err))
		return codeOf(err)
	}
	if err := exportedElsewhere(source, dir); err != nil {
		return fail(err)
	}
	// In the background the working directory is another one, and what is shown should mean something anywhere.
	if source, err = anywhere(source); err != nil {
		return fail(err)
	}
	if missing(source) {
		return fail(absent(source, "10G", ""))
	}
	if err := swapped(source, dir); err != nil {
		return fail(err)
	}
	if hides(dir, source) {
		return fail(errHides)
	}
	if err := m.covers(dir, log.Logger); err != nil {
		return fail(err)
	}
	// Before the volume is opened, which may change it.
	if err := mount.Replace(dir, source, log.Logger); err != nil {
		return fail(err)
	}
	if err := mount.Usable(dir); err != nil {
		return fail(err)
	}
	const heap = overhead - slack + mount.MaxPending
	tune(heap)
	v := &volume{place: place{source, "/"}, log: log.Logger}
	open := opening{
		new: image{warn: func(err error) { log.Warn(err.Error()) }}, readOnly: m.readOnly, cache: uint64(m.cache),
		discard: m.discard, interval: m.interval, deferred: !m.sync, control: m.control,
	}
	if err := unlocked(patience, func() error { return open.open(v) }); err != nil {
		return fail(err)
	}
	options := mount.Options{
		Source: source, ReadOnly: m.readOnly, Sync: m.sync, AllowOther: m.allowOther, NoXattr: m.noXattr,
		Debug: m.debug, Transport: mount.Transport(m.by), Flags: m.flags, Log: log.Logger,
	}
	if m.blkdev {
		options.Unclaim = func() error { return disk.Unclaim(v.device) }
	}
	at, err := mount.New(v.fs, dir, options)
	if err != nil {
		return fail(errors.Join(err, v.close()))
	}
	if err := said.ready(); err != nil {
		log.Warn("who started this in the background cannot be told that it is ready", "err", err)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, endings()...)
	how := sayHow(at, log.Logger)
	if !m.background {
		fmt.Fprintf(announcements{os.Stdout, log.Logger},
			"%s is mounted on %s%s\n\nUnmount with tansy umount %s, Ctrl-C or SIGTERM.\n",
			shown(source), shown(dir), how, quoted(dir))
	}
	daemon.Notify("READY=1\nSTATUS=mounted" + how)
	stop, end := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go watch(stop, watchEvery, func(err error) { gone <- err }, v.device.Check, v.fs.Lost)
	var background sync.WaitGroup
	background.Go(func() { balance(stop, heap, []*volume{v}) })
	background.Go(func() { daemon.Watchdog(stop, func() { alive([]*volume{v}) }) })
	lost := untilUnmounted(at, signals, gone, drain, log.Logger)
	daemon.Notify("STOPPING=1\nSTATUS=closing the volume")
	end()
	background.Wait()
	if errors.Is(lost, errHeld) {
		return m.abandon(v, log.Logger)
	}
	if lost != nil {
		deserted(log.Logger, dir)
		fail(lost)
		if !errors.Is(lost, disk.ErrLost) {
			return exitFailure
		}
		return exitLost // and nothing of it can be made durable
	}
	if err := v.close(); err != nil {
		return fail(err)
	}
	return exitOK
}

// abandon ends with a volume that is in use further: it cannot be closed, but all that was done is durable.
func (m *mounting) abandon(v *volume, log *slog.Logger) int {
	if !m.readOnly {
		if err := v.fs.Sync(); err != nil {
			log.Error("what was done is not all durable", "err", err)
			return exitFailure
		}
	}
	log.Warn("the file system is still in use, and whoever uses it gets errors from now on; all that was done is " +
		"durable, and the next mount recovers the volume")
	return exitOK
}

// covers returns an error if a volume is mounted on the directory already, unless that is to be covered. Something else
// is told.
func (m *mounting) covers(dir string, log *slog.Logger) error {
	at, ok := mount.Covers(dir)
	switch {
	case m.over || !ok:
	case at.Ours():
		return fmt.Errorf("the volume %s is mounted on %s already: tansy umount %[2]s ends that; "+
			"-o over lets another volume cover it", at.Source, dir)
	default:
		log.Warn("the mount covers what is mounted there already, until it ends",
			"dir", dir, "covered", at.Source, "type", at.Type)
	}
	return nil
}

// exportedElsewhere returns an error for what names a path of an NFS server, and no volume that is there.
func exportedElsewhere(source, dir string) error {
	host, path, ok := strings.Cut(source, ":")
	_, err := strconv.ParseUint(path, 10, 16)
	export := path == "" || path[0] == '/' || err == nil // or a port
	if !ok || !export || host == "" || strings.Contains(host, "/") || remote(source) || !missing(source) {
		return nil
	}
	return wrongArgument{fmt.Errorf("%s looks like what an NFS server exports, and no volume: "+
		"mount -t nfs -o vers=3,tcp,nolock %s:/ %s mounts that", source, host, quoted(dir))}
}

// swapped returns an error for a directory in the place of the volume: the two may have changed places.
func swapped(source, dir string) error {
	if st, err := os.Stat(source); remote(source) || err != nil || !st.IsDir() || volbackup.Is(source) {
		return nil
	}
	if st, err := os.Stat(dir); remote(dir) || err == nil && !st.IsDir() {
		return wrongArgument{fmt.Errorf("%s is a directory, and no volume: the volume comes first: tansy mount %s %s",
			source, quoted(dir), quoted(source))}
	}
	if err := mountedOn(source); err != nil {
		return err
	}
	return fmt.Errorf("%s is a directory, and no volume: give an image file or a block device, and then the directory",
		source)
}

var errHides = errors.New("the volume lies below the directory: mounted there, it would hide itself")

// hides tells whether what is mounted on dir hides the volume, which would be taken for deleted then.
func hides(dir, source string) bool {
	if remote(source) {
		return false
	}
	dir, err1 := filepath.EvalSymlinks(dir)
	source, err2 := filepath.EvalSymlinks(source)
	dir, err3 := filepath.Abs(dir)
	source, err4 := filepath.Abs(source)
	if errors.Join(err1, err2, err3, err4) != nil {
		return false // which others say
	}
	way, err := filepath.Rel(dir, source)
	return err == nil && filepath.IsLocal(way) && way != "."
}

// errHeld says that the file system is still in use, although it is unmounted here.
var errHeld = errors.New("the file system is still in use")

// untilUnmounted returns when the file system is unmounted, by whomever, or the volume is gone, which is the error. A
// first signal unmounts if nobody uses it; a second one takes it out of sight, and those who use it go on; a third one
// ends the process. What is unmounted and yet mounted in another mount namespace ends after patience, with errHeld.
func untilUnmounted(at *mount.Mount, signals chan os.Signal, gone <-chan error, patience time.Duration,
	log *slog.Logger) error {
	defer signal.Stop(signals)
	var late <-chan time.Time
	for lazy := false; ; {
		select {
		case <-at.Done():
			return nil
		case err := <-gone:
			return err // the mount stays, and answers ENOTCONN: what is written there must not go to the directory below
		case <-late:
			return errHeld
		case <-signals:
		}
		if late != nil {
			return errHeld
		}
		err := at.Unmount(lazy)
		switch {
		case err == nil && lazy:
			log.Warn("unmounted, but still in use: the volume is closed when those who use it end")
			signal.Stop(signals)
		case err == nil || errors.Is(err, mount.ErrNotThere) && !errors.Is(err, mount.ErrCovered):
			late = time.After(patience)
			for _, h := range at.Holders() {
				log.Warn("unmounted, but still mounted elsewhere; who uses it there has some time", "by", h, "time", patience)
			}
		case errors.Is(err, mount.ErrBusy):
			lazy = true
			log.Warn("not unmounted; a second signal takes the file system out of sight, and closes the volume when nobody "+
				"uses it any more", "err", err)
		default:
			log.Error("cannot unmount", "err", err)
		}
	}
}

// deserted tells what becomes of the directory of a volume that is lost.
func deserted(log *slog.Logger, dir string) {
	log.Error("the directory answers nothing any more, so that nothing is written below it: tansy umount makes it free",
		"dir", dir)
}

// ownTypes are what -t of mount(8) and /etc/fstab may have for a volume.
var ownTypes = []string{"tansy", "fuse.tansy", "fuseblk.tansy"}

// mountHelper is what mount(8) calls as mount.tansy: SPEC DIR [-sfnv] [-o OPTIONS] [-t TYPE] [-N NAMESPACE].
func mountHelper(args []string) int {
	const failed, misused = 32, 1 // as mount(8) has them
	var pos []string
	pass := []string{"mount", "--background"}
	for i := 0; i < len(args); i++ {
		a := args[i]
		value := func() string {
			if i++; i < len(args) {
				return args[i]
			}
			return ""
		}
		switch {
		case a == "-o":
			pass = append(pass, "-o", value())
		case a == "-t":
			if t := value(); !slices.Contains(ownTypes, t) {
				fmt.Fprintf(os.Stderr, "mount.tansy: -t %s: %s are the types of volumes\n", t, strings.Join(ownTypes, ", "))
				return misused
			}
		case a == "-N":
			value()
		case strings.HasPrefix(a, "-"):
			if strings.Trim(a, "-sfnv") != "" {
				fmt.Fprintf(os.Stderr, "mount.tansy: %s is no option\n", a)
				return misused
			}
			if strings.Contains(a, "f") { // as if
				return exitOK
			}
			if strings.Contains(a, "s") {
				pass = append(pass, "-o", "sloppy")
			}
		default:
			pos = append(pos, a)
		}
	}
	if passesOver(pass, pos) {
		return exitOK
	}
	switch run(append(pass, pos...)) {
	case exitOK:
		return exitOK
	case exitUsage:
		return misused
	}
	return failed
}

// passesOver tells whether a volume is not there, and the option nofail says that this is no error.
func passesOver(options, pos []string) bool {
	if len(pos) == 0 || remote(pos[0]) || !slices.Contains(strings.Split(strings.Join(options, ","), ","), "nofail") {
		return false
	}
	_, err := os.Stat(pos[0])
	return errors.Is(err, os.ErrNotExist)
}

func umount() (*flagSet, action) {
	f := newFlags("umount", "VOLUME|DIR [flags]", `
  tansy umount /mnt          and wait until the volume is closed
  tansy umount data.img      the same, by the volume
  tansy umount --lazy /mnt   take it out of sight although it is in use

umount(8) does the same, but does not wait for the volume. On macOS --lazy is by
force: those who use it get errors.
`)
	lazy := f.Bool("lazy", false, "take a file system that is in use out of sight; "+
		"the volume is closed when nobody uses it any more")
	f.BoolVar(lazy, "l", false, "the same as --lazy")
	return f, func(args []string) int {
		pos, code, done := parse(f, args, 1, 1)
		if done {
			return code
		}
		dir, err := mountPoint(pos[0])
		if err == nil {
			err = unmount(dir, *lazy)
		}
		if err != nil {
			return fail("umount", err)
		}
		return exitOK
	}
}

// mountPoint is the directory of a mounted volume that is named by it, or by what the volume lies on.
func mountPoint(name string) (string, error) {
	dir, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	for range 40 { // links, as many as the kernel follows; what they lead to may hang, or be dead, and is not looked into
		if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			dir = filepath.Join(parent, filepath.Base(dir))
		}
		to, err := os.Readlink(dir)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(dir), to)
		}
		dir = to
	}
	all, err := mount.Volumes()
	if err != nil {
		return "", err
	}
	if _, ok := all[dir]; ok {
		return dir, nil
	}
	var places []string
	for place, m := range all {
		if isSource(m, name, dir) {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	switch len(places) {
	case 0:
		return dir, outOfSight(name, dir)
	case 1:
		return places[0], nil
	}
	return "", fmt.Errorf("%s is mounted more than once: give one of %s", name, strings.Join(places, ", "))
}

// isSource tells whether name, which is path from the root on if it is one of this machine, is what m has mounted.
func isSource(m mount.Mounted, name, path string) bool {
	return m.Source == name || !remote(name) && !remote(m.Source) && sameFile(m.Source, path)
}

// outOfSight is the error for a volume, or the directory of one, over which something else is mounted, or nil.
func outOfSight(name, path string) error {
	hidden, err := mount.Hidden()
	if err != nil {
		return err
	}
	for _, c := range hidden {
		if c.Dir == path || isSource(c.Volume, name, path) {
			return fmt.Errorf("the volume %s is mounted on %s, but %s (%s) is mounted over it: unmount that first",
				c.Volume.Source, c.Dir, c.By.Source, c.By.Type)
		}
	}
	return nil
}

// otherVolume returns an error if another volume than the one of this name is mounted on a directory.
func otherVolume(name, dir string) error {
	if at, err := filepath.EvalSymlinks(dir); err == nil {
		dir = at
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	path, err := anywhere(name)
	if err != nil {
		return err
	}
	if m, err := mount.On(dir); err == nil && m.Ours() && !isSource(m, name, path) {
		return fmt.Errorf("the volume %s is mounted on %s, and not %s: name that one", m.Source, dir, name)
	}
	return nil // Remount says what else is wrong
}

// unmount unmounts the volume on a directory (mountPoint), and waits until it is closed, unless it is served, too.
func unmount(dir string, lazy bool) error {
	at, err := mount.On(dir)
	if err != nil && !errors.Is(err, mount.ErrNotThere) {
		return err
	}
	if err != nil || !at.Ours() {
		if st, err := os.Stat(dir); err == nil && !st.IsDir() {
			return fmt.Errorf("%s is not mounted: give the directory that a volume is mounted on, "+
				"or a volume that is mounted", dir)
		}
		return fmt.Errorf("%s: no volume is mounted there", dir)
	}
	ended := mount.Ended(dir, at)
	err = mount.Unmount(dir, lazy)
	if err == nil && ended {
		stdout.conclude("%s: unmounted; its process had ended, and %s is recovered when it is next mounted or served",
			shown(dir), shown(at.Source))
	}
	if err != nil || lazy || ended {
		return err
	}
	// Who has it may be about to end, or to let go of it, as a container does that begins with what is mounted outside;
	// and where the server has been killed, nobody keeps the volume open.
	for last := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		all := mount.Holders(at.Device)
		if len(all) == 0 {
			break
		}
		if !remote(at.Source) && !errors.Is(stillOpen(at.Source), disk.ErrLocked) {
			return nil
		}
		if time.Now().After(last) {
			return stillHeld(all)
		}
	}
	if at.Type == mount.TypeShared {
		return nil
	}
	if remote(at.Source) {
		fmt.Fprintf(os.Stderr, "tansy umount: unmounted; but the process that has %s open may have something to write "+
			"yet, and nothing tells when it ends\n", shown(at.Source))
		return nil
	}
	return unlocked(time.Minute, func() error { return stillOpen(at.Source) })
}

// stillOpen returns an error of disk.ErrLocked if a volume that was unmounted is still open, as far as it may be looked
// at.
func stillOpen(volume string) error {
	d, err := disk.OpenFile(volume, disk.FileOptions{ReadOnly: true})
	if err == nil {
		return d.Close()
	}
	if errors.Is(err, disk.ErrLocked) {
		return fmt.Errorf("unmounted, but not closed yet: %w", err)
	}
	return nil // it is not ours to look at
}

// stillHeld is the error of unmounting what others have mounted, too.
func stillHeld(all []mount.Holder) error {
	said := "unmounted there, but not everywhere, so the volume is not closed. It is when it is unmounted here, too " +
		"(in the mount namespace of a process: nsenter -t PROCESS -m umount DIR), or when the tansy process gets SIGTERM:"
	for _, h := range all {
		said += "\n  " + h.String()
	}
	return errors.New(said)
}
