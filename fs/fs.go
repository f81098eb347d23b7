package fs

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/fs/internal/background"
	"tansy/internal/gen/fs/directories/directories"
	"tansy/internal/gen/fs/exec/calls"
	"tansy/internal/gen/fs/exec/carrying"
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/format/volumegeometry"
	"tansy/internal/gen/txn/txnm"
	"tansy/internal/runtime/attempts"
	"tansy/internal/runtime/dtxn"
	"tansy/internal/runtime/work"
	"tansy/journal"
)

// FS is a volume in use: the verified file system over a device. Its methods may be called concurrently.
//
// Every method is one transaction of verified code (verified/fs). This package converts arguments and results. It runs
// a transaction that conflicts again, and makes one that is too large smaller. In the background it frees blocks that
// were cut off.
type FS struct {
	*volume
	id       *CallID // of the one call that it is for; nil: of any, which are not known
	deferred bool    // no call waits for the device, as with Options.Deferred
	inside   bool    // it is for parts of a call that has entered
}

// volume is what all calls use.
type volume struct {
	sys      *dtxn.System
	dirs     *directories.DirFs
	geo      volumegeometry.Geometry
	ident    identity
	clock    Clock
	log      *slog.Logger
	readOnly bool
	root     Handle
	free     *background.Freer
	trim     *background.Trimmer
	damaged  atomic.Bool // verified code met what cannot be on a sound volume
	failed   atomic.Bool // it was logged that the device failed
	ending
	stop    func() error
	streams chan struct{} // places for large unstable WRITEs
	host    disk.Host     // nil if the volume needs no room from one
	hostLog hostLog
	dmg     *background.Damage
	scrub   *background.Scrubber
	ahead   *background.Ahead

	replies *replies
	kept    keptOrder
	xattrs  xattrState
	extent  extent
	moments *disk.Moments // of the device

	freeStep uint64 // the constant, less in tests

	chores atomic.Uint64 // transactions of the background that may commit, begun so far
}

var _ OnceFileSystem = (*FS)(nil)

// identity is what the superblock says about the volume as a whole.
type identity struct {
	volume    [16]byte
	handleKey [16]byte
}

// Options say how to use a volume. The zero value is fine.
type Options struct {
	CacheBytes  uint64 // of the block cache; 0: 64 MiB
	PinnedBytes uint64 // of what is in the log and not home yet: see journal.Options
	ReadOnly    bool   // refuse every change, also those of recovery
	Clock       Clock  // of the time stamps; nil: time.Now

	// CommitInterval is how long it takes until what nobody waits for becomes durable all the same; 0:
	// DefaultCommitInterval.
	CommitInterval time.Duration

	Log   *slog.Logger
	Scrub ScrubOptions

	// Deferred has no method wait for the device but Commit and Sync: what changes something returns when it has taken
	// effect, also a stable WRITE. A crash leaves a beginning of all changes, in the order in which they took effect.
	Deferred bool

	// Discard gives the room of removed files back to the host of the volume, in the background: a few
	// seconds after they were removed, and what was not given back before the volume was opened.
	Discard bool

	// Grow has the volume use what its device has behind it, if it was made to become larger, as FS.Grow does, before Open
	// returns. If that fails, the volume stays as it is, and the log says so.
	Grow bool

	Moments disk.MomentOptions // of what is kept for FS.Moment

	host     disk.Host          // of the device
	moments  *disk.Moments      // likewise (above)
	dmg      *background.Damage // of the volume
	ofMoment bool               // the device is a moment of one that is in use
}

// DefaultCommitInterval is of Options.CommitInterval.
const DefaultCommitInterval = journal.DefaultLinger

// Deferring is the same volume for callers that do not wait for the device, as with Options.Deferred. Their changes and
// all others have one order. A caller that does wait, waits for all changes before its own.
func (v *FS) Deferring() *FS { return &FS{v.volume, v.id, true, v.inside} }

// Lost is an error that wraps disk.ErrLost if another server was seen to have opened the volume, or nil. The server
// looks every second. Nothing is acknowledged after that was seen.
func (v *FS) Lost() error { return v.sys.Lost() }

// Look reads from the device whether another server has opened the volume, and returns Lost.
func (v *FS) Look() error { return v.sys.Look() }

// Verifier implements FileSystem. The write verifier belongs to the epoch of the journal, and is new at every Open.
func (v *FS) Verifier() uint64 { return v.sys.Verifier() }

// errDamaged is the panic of verified code, as an error.
var errDamaged = background.ErrDamaged

// run is procedure p, as call c. op is its work: verified code puts what that comes to into c, an NFS status and the
// attributes for the reply. It may be called several times, and what it did counts only when run returns nil.
func (v *FS) run(c *call, p uint32, op func(t *txn)) error {
	c.Make(p, 0, v.deferred, 0)
	return v.serve(c, op)
}

// carry carries call c out, which has entered. What comes after what, and what the answer is, the verified code says.
func (v *FS) carry(c *call, op func(t *txn)) error {
	if v.readOnly && !exec.ReadOnly(c.Procedure) {
		c.Refuse(uint32(ErrROFS))
		return ErrROFS
	}
	room, freed := v.search(), uint64(0)
	carrying.Carry(&c.Call, attempts.Service{
		Try:    func() uint32 { freed = v.free.Steps(); return v.attempt(c, op) },
		Shrink: func() (uint32, bool) { return v.shrink(c) },
		Room:   func() bool { return room.found(freed) },
		Usable: func() bool { return v.sys.Broken() == nil },
	})
	if c.Later && c.Status == 0 {
		v.free.Wake()
	}
	return errorOf(c.Status)
}

// background is a transaction of the server's own, as a call that op is told of.
func (v *FS) background(p uint32, op func(c *calls.Call, t *txn)) error {
	if !exec.ReadOnly(p) {
		v.chores.Add(1)
	}
	var c call
	c.Make(p, 0, v.deferred, 0)
	v.attempt(&c, func(t *txn) { op(&c.Call, t) })
	return errorOf(c.Status)
}

func errorOf(status uint32) error {
	if status == 0 {
		return nil
	}
	return Errno(status)
}

// attempt has c done once, and returns what is next.
func (v *FS) attempt(c *call, op func(t *txn)) (next uint32) {
	readOnly := exec.ReadOnly(c.Procedure)
	if !readOnly && (v.damaged.Load() || v.dmg.Err() != nil) {
		c.Refuse(uint32(ErrROFS))
		return calls.ANSWER()
	}
	next, err := v.transact(c, op)
	switch {
	case errors.Is(err, dtxn.ErrDamaged):
		v.damaged.Store(true)
	case errors.Is(err, journal.ErrNotAsWritten) && !errors.Is(err, dtxn.ErrReadOnly) && !readOnly && v.dmg.Err() != nil:
		c.Refuse(uint32(ErrROFS))
		next = calls.ANSWER()
	}
	v.tell(c, err)
	return next
}

// transact turns a panic of verified code into an error. On a sound volume there
// is none (that is proved), so one means that the volume is damaged: from then
// on nothing is written to it.
func (v *FS) transact(c *call, op func(t *txn)) (next uint32, err error) {
	defer func() {
		if p := recover(); p != nil {
			v.damaged.Store(true)
			v.log.Error("verified code failed on this volume; it is read-only from now on, run tansy check",
				"panic", p, "stack", string(debug.Stack()))
			c.Refuse(uint32(ErrIO))
			next, err = calls.ANSWER(), fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	err = v.sys.Perform(exec.ReadOnly(c.Procedure), func(t *txnm.Txn, w *txn) (st uint32) {
		next, st = carrying.Perform(&c.Call, t, attempts.Attempt{Do: func() work.Work { return w.Do(op) }})
		c.decode()
		w.Seen()
		return st
	})
	return next, err
}

// The procedures, by their numbers in RFC 1813.
const (
	procGetattr, procSetattr, procLookup, procAccess     = 1, 2, 3, 4
	procReadlink, procRead, procWrite                    = 5, 6, 7
	procCreate, procMkdir, procSymlink, procMknod        = 8, 9, 10, 11
	procRemove, procRmdir, procRename, procLink          = 12, 13, 14, 15
	procReaddir, procReaddirplus, procFsstat, procFsinfo = 16, 17, 18, 19
	procPathconf, procCommit                             = 20, 21
)

// Sync makes everything durable that was changed so far. If all is durable already, it takes no barrier.
func (v *FS) Sync() error {
	if err := v.enter(); err != nil {
		return err
	}
	defer v.leave()
	if err := v.sys.Flush(); err != nil {
		v.log.Error("commit failed", "err", err)
		return ErrIO
	}
	return nil
}
