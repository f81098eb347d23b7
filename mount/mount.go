//go:build linux || darwin

package mount

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"tansy/fs"
	"tansy/internal/lockorder"
	"tansy/internal/process"
)

// Volume is what a mount needs of one; fs.FS is it, opened with Deferred.
type Volume interface {
	fs.FileSystem
	fs.Viewer
	Space() (fs.Stat, error)
	Sync() error

	Seek(c *fs.Cred, h fs.Handle, off uint64, hole bool) (uint64, error)
	Allocate(c *fs.Cred, h fs.Handle, off, n uint64) error
	PunchHole(c *fs.Cred, h fs.Handle, off, n uint64) error
	ZeroRange(c *fs.Cred, h fs.Handle, off, n uint64) error
	Exchange(c *fs.Cred, from fs.Handle, fromName []byte, to fs.Handle, toName []byte) error
	Whiteout(c *fs.Cred, owner uint32, from fs.Handle, fromName []byte, to fs.Handle, toName []byte) error

	keeper
	xattrer
	flagger
	lister
}

// Options say how to mount.
type Options struct {
	Source     string // what mount(8) and df(1) show
	ReadOnly   bool   // nothing is changed through the mount
	Sync       bool   // the volume was not opened with Deferred: every change is durable when it returns
	AllowOther bool   // others than who mounts it may use it
	NoXattr    bool   // there are no extended attributes
	Shared     bool   // others change the volume, too, through Mount.Beside
	Locks      bool   // locks are where Mount.UseLocks says, if this is Linux; else the kernel has them
	Debug      bool   // each request of the kernel and its answer are logged, as messages of level debug
	Transport  Transport
	Flags      []string // of the mount, as mount(8) names them, see Flag

	// Unclaim, if not nil, says that Source is a block device and the volume is to be mounted as its file system
	// (Linux): then sync(2) makes all durable. It is called when the device is about to be mounted, and lets go of the
	// exclusive use of it.
	Unclaim func() error

	Log *slog.Logger
}

// A Transport is how requests of the kernel come.
type Transport string

// Transports. By rings (io_uring) they come faster, if the kernel is new enough and root has turned that on (Linux).
const (
	Auto Transport = ""      // by rings if that can be, else read
	Ring Transport = "uring" // by rings; New fails where that cannot be
	Read Transport = "read"  // read from FUSE's device, as ever
)

// flags are what the system has for the options of mount(8) that any file system takes. Those that do nothing here
// are 0: no reading changes an atime, and what is written goes to the volume at once.
var flags = map[string]uintptr{
	"nosuid": noSUID, "nodev": noDev, "noexec": noExec, "suid": 0, "dev": 0, "exec": 0, // which lift those: see lifts
	"noatime": 0, "nodiratime": 0, "relatime": 0, "norelatime": 0, "strictatime": 0, "nostrictatime": 0,
	"atime": 0, "diratime": 0, "lazytime": 0, "nolazytime": 0,
	"async": 0, "default_permissions": 0,
}

// lifts are the flags that an option takes away again.
var lifts = map[string]uintptr{"suid": noSUID, "dev": noDev, "exec": noExec}

// Flag tells whether there is such an option for Options.Flags.
func Flag(name string) bool { _, ok := flags[name]; return ok }

// apply is what becomes of flags with options, of which a later one counts more.
func apply(now uintptr, options []string) uintptr {
	for _, name := range options {
		now = now&^lifts[name] | flags[name]
	}
	return now
}

// maxIO is the largest READ and WRITE that the kernel sends, in bytes.
const maxIO = 1 << 20

// copiers is how many requests copy contents at a time: each has maxIO of memory. Others wait.
const copiers = 8

// MaxPending bounds the memory for requests of the kernel that are not answered yet, in bytes.
const MaxPending = 32<<20 + copiers*maxIO

// fileSystem answers the kernel. What is not here is answered with ENOSYS, which the kernel takes for: not supported,
// or as it says itself (locks, SEEK_DATA, copy_file_range).
type fileSystem struct {
	fuse.RawFileSystem
	volume    Volume
	root      fs.Handle
	stability fs.Stability
	nodes     *nodes
	log       *slog.Logger

	// What the kernel may keep of what it is told.
	keepNames, keepAttrs time.Duration
	openFlags            uint32 // of contents
	shared               bool
	locks                *locking                                   // nil: the kernel has them
	forget               func(id uint64, from, n int64) fuse.Status // has the kernel forget contents, if it has any
	copying              chan []byte                                // memory for copies; nil: none was needed yet
	defaults             lockorder.RWMutex[lockorder.Default]       // nobody sets a default list

	wait func() error // until the file system can be used, once it is being served
}

// Mount is a volume that is mounted.
type Mount struct {
	files  *fileSystem
	dir    string
	device string // its number in the table of mounts
	done   chan struct{}

	transport Transport
	why       error
}

// New mounts a volume on a directory. The file system can be used when it returns.
func New(v Volume, dir string, o Options) (*Mount, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := place(dir)
	if err != nil {
		return nil, err
	}
	if err := Replace(dir, o.Source, o.Log); err != nil {
		return nil, err
	}
	if err := Usable(dir); err != nil {
		return nil, err
	}
	f, err := newFileSystem(v, o)
	if err != nil {
		return nil, err
	}
	m := &Mount{files: f, dir: dir, done: make(chan struct{})}
	serve, err := m.connect(&o)
	if err != nil {
		return nil, fmt.Errorf("mount on %s: %w", dir, err)
	}
	go func() {
		defer close(m.done)
		f.until(serve)
	}()
	if err := f.wait(); err != nil {
		return nil, fmt.Errorf("mount on %s: %w", dir, err)
	}
	at, err := On(dir)
	if err != nil {
		return nil, errors.Join(err, Unmount(dir, true))
	}
	m.device = at.Device
	if err := readAhead(at); err != nil && os.Geteuid() == 0 {
		o.Log.Warn("the kernel reads no more ahead than it does by itself", "err", err)
	}
	return m, nil
}

// connect mounts a volume in the way that o wants, and returns what serves it until it is unmounted.
func (m *Mount) connect(o *Options) (serve func(), err error) {
	m.transport = Read
	switch {
	case o.Unclaim != nil && o.Transport == Ring:
		return nil, fmt.Errorf("%w: a block device's file system has none here: leave blkdev or uring out", errNoRing)
	case o.Unclaim != nil:
		return m.files.mountDevice(m.dir, o)
	case o.Transport == Read:
		return m.files.mount(m.dir, o)
	}
	serve, err = m.files.mountRings(m.dir, o)
	switch {
	case errors.Is(err, errNoRing) && o.Transport != Ring:
		m.why = err
		return m.files.mount(m.dir, o)
	case err == nil:
		m.transport = Ring
	}
	return serve, err
}

// Transport is how requests of the kernel come: Ring or Read. why says why not by rings, if none was given to New.
func (m *Mount) Transport() (by Transport, why error) { return m.transport, m.why }

// errNoRing is wrapped by the reason why requests do not come by io_uring.
var errNoRing = errors.New("no requests by io_uring")

// until serves the kernel, and puts in order what it leaves when nobody uses the file system any more.
func (f *fileSystem) until(serve func()) {
	serve()
	f.letAllGo()
	if f.locks != nil {
		f.locks.end()
	}
}

// mount mounts a volume through the library, and returns what serves it until it is unmounted.
func (f *fileSystem) mount(dir string, o *Options) (serve func(), err error) {
	server, err := fuse.NewServer(f, dir, o.fuse())
	if err != nil {
		return nil, byHelper(err)
	}
	f.forget = server.InodeNotify
	f.wait = func() error { return waitMount(server) }
	return server.Serve, nil
}

// helperStatus is how the library says that the helper failed, whose own words are on standard error.
var helperStatus = regexp.MustCompile(`^fusermount exited with code (\d+)`)

// byHelper is an error of the library, which tells the status of the helper that is set-user-ID as wait(2) has it.
func byHelper(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("others than root mount through fusermount3, which is missing: install fuse3 (%w)", err)
	}
	var exited *exec.ExitError
	var status syscall.WaitStatus
	if errors.As(err, &exited) {
		status = exited.Sys().(syscall.WaitStatus)
	} else {
		m := helperStatus.FindStringSubmatch(err.Error())
		if m == nil {
			return err
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return err
		}
		status = syscall.WaitStatus(n)
	}
	if status.Signaled() {
		return fmt.Errorf("fusermount3 was ended by a signal (%v)", status.Signal())
	}
	return errors.New("fusermount3 refused that; the line before this one has its reason")
}

// Mounted is a line of the table of mounts; On finds that of a directory.
type Mounted struct{ Device, Type, Source string }

// Covered is a volume on a directory on which something else is mounted, too, and seen.
type Covered struct {
	Dir        string
	Volume, By Mounted
}

// Types of volumes in the table of mounts. Who unmounts one that is Shared need not wait until it is closed.
const (
	Type       = typePrefix + name
	TypeShared = typePrefix + nameShared
	TypeDevice = "fuseblk." + name // see Options.Unclaim

	typePrefix       = "fuse."
	name, nameShared = "tansy", "tansy-served"
)

// place is a directory as the table of mounts has it, also if what is mounted there answers nothing.
func place(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if whole, err := filepath.EvalSymlinks(dir); err == nil {
		return whole, nil
	}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		return filepath.Join(parent, filepath.Base(dir)), nil
	}
	return dir, nil
}

// ended tells whether what is mounted on a directory has no server any more. Who asks for attributes may not see that,
// because the kernel keeps those.
func ended(dir string) bool {
	var st unix.Statfs_t
	return Gone(unix.Statfs(dir, &st))
}

// Gone tells whether an error is that of a file system whose server has ended. For a moment it may be ECANCELED if
// requests came by rings.
func Gone(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED) || errors.Is(err, unix.ECANCELED)
}

// Ended tells whether the server of a volume that is mounted on a directory has ended. Nothing is asked of a server
// that may live: if it hung, who asks would hang, and have the file system in use.
func Ended(dir string, m Mounted) bool {
	volume, err := os.Stat(m.Source)
	isVolume := func(st os.FileInfo) bool { return err != nil || os.SameFile(st, volume) } // any, if it is not to be seen
	lives := func(pid int) bool { return process.HasOpen(pid, isVolume) }
	return !slices.ContainsFunc(process.WithName("/dev/fuse"), lives) && ended(dir)
}

// Replace takes the mount of a volume off a directory if its server has ended: as long as that stays there, nothing is
// written by mistake to the directory below. The volume of another name, or what is no volume, is an error.
func Replace(dir, source string, log *slog.Logger) error {
	if !ended(dir) {
		return nil
	}
	dir, err := place(dir)
	if err != nil {
		return err
	}
	at, err := On(dir)
	if err != nil {
		return err
	}
	if !at.Ours() || at.Source != source {
		return fmt.Errorf("the process that had %s mounted on %s has ended: tansy umount %[2]s, first", at.Source, dir)
	}
	log.Warn("the process that had the volume mounted there has ended; its mount goes", "volume", source, "dir", dir)
	return Unmount(dir, true)
}

// Covers returns what is mounted on a directory, and would be covered by another mount there. ok is false if there is
// nothing. An automounter's file system does not count, because it is there to be covered. A mount whose server has
// ended does not count, because nothing can be mounted over it.
func Covers(dir string) (m Mounted, ok bool) {
	if _, err := os.Stat(dir); err != nil || ended(dir) {
		return m, false
	}
	dir, err := place(dir)
	if err == nil {
		m, err = On(dir)
	}
	return m, err == nil && m.Type != "autofs"
}

// Ours tells whether a volume is mounted there.
func (m Mounted) Ours() bool { return m.Type == Type || m.Type == TypeShared || m.Type == TypeDevice }

// newFileSystem returns what answers for a volume.
func newFileSystem(v Volume, o Options) (*fileSystem, error) {
	f := &fileSystem{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		volume:        v, root: v.Root(), log: o.Log, wait: func() error { return nil },
		forget:  func(uint64, int64, int64) fuse.Status { return fuse.OK },
		copying: make(chan []byte, copiers),
	}
	for range copiers {
		f.copying <- nil
	}
	if f.root.Ino != fuse.FUSE_ROOT_ID {
		return nil, fmt.Errorf("the root directory is inode %d, not %d", f.root.Ino, fuse.FUSE_ROOT_ID)
	}
	if o.Sync {
		f.stability = fs.FileSync
	}
	if f.shared = o.Shared; f.shared {
		f.openFlags = fuse.FOPEN_DIRECT_IO
	} else {
		f.keepNames, f.keepAttrs, f.openFlags = entryTimeout, attrTimeout, fuse.FOPEN_KEEP_CACHE
	}
	if o.Locks {
		f.locks = newLocking()
	}
	f.nodes = newNodes(f.root, f.shared || o.Locks || opens || !ForgetsInOrder())
	if o.ReadOnly {
		return f, nil
	}
	if err := removeOldFolder(v, o.Log); err != nil {
		return f, fmt.Errorf("%s: its root directory cannot be read (%w): tansy check says more, when nobody serves it",
			o.Source, err)
	}
	return f, nil
}

// Usable says what is wrong with a directory as a place to mount on, and with FUSE on this machine. New asks as well:
// who opens a volume for it may ask before.
func Usable(dir string) error {
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: mkdir %s makes it", err, dir)
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s is no directory", dir)
	}
	return haveFUSE()
}

// fuse are the options for the library and the kernel.
func (o *Options) fuse() *fuse.MountOptions {
	m := &fuse.MountOptions{
		Name: name, FsName: o.Source, AllowOther: o.AllowOther,
		Options:  []string{"default_permissions"},
		MaxWrite: maxIO, MaxReadAhead: maxIO, MaxBackground: 32, MaxInflightRequestBytes: MaxPending,
		ExplicitDataCacheControl: true, // nobody else changes contents
		DisableXAttrs:            o.NoXattr,
		DisableSplice:            true, // what is read is in memory
		Debug:                    o.Debug,
		Logger:                   slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	if o.Debug { // the library has one logger for all
		m.Logger = slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)
	}
	if o.Shared {
		m.Name = nameShared
		m.DisableReadDirPlus = true // the attributes would be asked for again
	}
	o.system(m)
	return m
}

// Done is closed when the file system is unmounted and nobody uses it any more.
func (m *Mount) Done() <-chan struct{} { return m.done }

// Unmount unmounts the file system from its directory. The error wraps ErrNotThere if it is not there any more, or if
// something else is mounted over it.
func (m *Mount) Unmount(lazy bool) error {
	at, err := On(m.dir)
	if err != nil {
		return err
	}
	if at.Device != m.device {
		return fmt.Errorf("%s: %s (%s) %w", m.dir, at.Source, at.Type, ErrCovered)
	}
	return Unmount(m.dir, lazy)
}

// ErrNotThere is wrapped by Unmount's error when something else is mounted on the directory, or nothing.
var ErrNotThere = errors.New("the file system is not mounted there")

// ErrCovered is wrapped by Mount.Unmount's error when something else is mounted over the file system.
var ErrCovered = fmt.Errorf("is mounted over it: %w", ErrNotThere)

// Holders are the others that have the file system mounted, as the function Holders finds them.
func (m *Mount) Holders() []Holder { return Holders(m.device) }

// A Holder is a process in whose mount namespace a file system is mounted. Other processes may share that namespace.
type Holder struct {
	PID     int    // 0: of this process's own namespace
	Command string // as ps(1) shows it
	Dir     string // where it is mounted for that process
}

func (h Holder) String() string {
	if h.PID == 0 {
		return "mounted on " + h.Dir + ", too"
	}
	return fmt.Sprintf("process %d (%s), mounted on %s in its mount namespace", h.PID, h.Command, h.Dir)
}

// ErrBusy is wrapped by Unmount's error when the file system is in use.
var ErrBusy = errors.New("the file system is in use")

// busy is Unmount's error for a file system that is in use, by those file systems if there are any: to look for open
// files would find none.
func busy(dir string, below []string) error {
	if n := len(below); n > 0 {
		const most = 3 // to name
		more := ""
		if n > most {
			more = fmt.Sprintf(", and %d more", n-most)
		}
		return fmt.Errorf("%s: %w: unmount what is mounted below it first: %s%s",
			dir, ErrBusy, strings.Join(below[:min(n, most)], ", "), more)
	}
	return fmt.Errorf("%s: %w: a file of it is open, or a process has its working directory there (fuser -vm tells)",
		dir, ErrBusy)
}

// unmounted is Unmount's error for that of unmount(2).
func unmounted(dir string, err error) error {
	switch err {
	case nil:
		return nil
	case unix.EBUSY:
		return busy(dir, below(dir))
	case unix.EINVAL:
		return fmt.Errorf("%s: %w", dir, ErrNotThere)
	}
	return fmt.Errorf("unmount %s: %w", dir, err)
}
