package fs

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"tansy/disk"
	"tansy/internal/extern/dbytes"
	"tansy/internal/gen/directories"
	"tansy/internal/gen/exec"
	"tansy/internal/gen/permissions"
	"tansy/internal/gen/txnm"
	"tansy/internal/gen/volumegeometry"
	"tansy/journal"
	"tansy/txn/dtxn"
)

// FS is a volume in use: the verified file system over a device. Its methods may
// be called concurrently.
//
// Every method is one transaction of verified code (verified/fs). What is here
// around it: arguments and results are converted, a transaction that conflicts
// is run again, one that is too large is made smaller, and cut-off blocks are
// freed in the background.
type FS struct {
	*volume
	call *CallID // of the one call that it is for; nil: of any, which are not known
}

// volume is what all calls use.
type volume struct {
	sys      *dtxn.System
	dirs     *directories.DirFs
	geo      volumegeometry.Geo
	ident    identity
	clock    Clock
	log      *slog.Logger
	readOnly bool
	deferred bool
	root     Handle
	verifier uint64
	free     *freer
	trim     *trimmer
	damaged  atomic.Bool // verified code met what cannot be on a sound volume
	failed   atomic.Bool // it was logged that the device failed
	stop     func() error
	streams  chan struct{} // places for large unstable WRITEs
	host     disk.Host     // nil if the volume needs no room from one
	hostLog  hostLog
	dmg      *damage
	scrub    *scrubber

	replies *replies

	freeStep uint64 // the constant, less in tests
}

var _ OnceFileSystem = (*FS)(nil)

// identity is what the superblock says about the volume as a whole.
type identity struct {
	volume    [16]byte
	handleKey [16]byte
}

// Options say how to use a volume. The zero value is fine.
type Options struct {
	CacheBytes uint64 // of the block cache; 0: 64 MiB
	ReadOnly   bool   // refuse every change, also those of recovery
	Clock      Clock  // of the time stamps; nil: time.Now
	Log        *slog.Logger
	Scrub      ScrubOptions

	// Deferred has no method wait for the device but Commit and Sync: what changes something returns when it has
	// taken effect, also a stable WRITE. A crash leaves a beginning of all changes, in the order in which they took effect.
	Deferred bool

	// Discard gives the room of removed files back to the host of the volume, in the background: a few
	// seconds after they were removed, and what was not given back before the volume was opened.
	Discard bool

	host disk.Host // of the device
	dmg  *damage   // of the volume
}

func newVerifier() uint64 {
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand never fails on the systems we run on
	}
	return binary.LittleEndian.Uint64(b[:])
}

// Lost is an error that wraps disk.ErrLost if another server was seen to have opened the volume, which
// is looked for every second. Nothing is acknowledged any more then.
func (v *FS) Lost() error { return v.sys.Lost() }

// VolumeID is the volume's UUID.
func (v *FS) VolumeID() [16]byte { return v.ident.volume }

// HandleKey is the key that file handles are authenticated with.
func (v *FS) HandleKey() [16]byte { return v.ident.handleKey }

// Root implements FileSystem.
func (v *FS) Root() Handle { return v.root }

// Verifier implements FileSystem: random, new at every Open.
func (v *FS) Verifier() uint64 { return v.verifier }

// Close waits for the background, makes everything durable, and stops. The
// device stays open: it is the caller's. No operation may be running or follow.
func (v *FS) Close() error {
	v.scrub.close()
	v.dmg.close()
	v.free.close()
	v.trim.close()
	return v.stop()
}

// now is the time for the stamps of one operation. Each attempt reads it anew: a stamp is the clock's
// if that is after the file's ctime, so a time from before the attempt had to wait would not be it.
func (v *FS) now() (sec uint64, nsec uint32) { return stamp(v.clock()) }

// stamp is a time as the file system has it. Its times begin with 1970: a clock from before shows that.
func stamp(t time.Time) (sec uint64, nsec uint32) {
	if t.Unix() < 0 {
		return 0, 0
	}
	return uint64(t.Unix()), uint32(t.Nanosecond())
}

// errDamaged is the panic of verified code, as an error.
var errDamaged = errors.New("the volume is damaged")

// run runs procedure p in a transaction; how is how stable a WRITE is to be. op returns an NFS status; it may be called several
// times, and what it did counts only when run returns nil.
func (v *FS) run(p, how uint32, op func(t *dtxn.Txn) uint32) error {
	readOnly := decisions.ReadOnly(p)
	if !readOnly && v.readOnly {
		return ErrROFS
	}
	refused, given := v.sys.Refused(), uint64(0)
	// What waits to be freed is space, too. Free more of it each time.
	for steps := 8; ; steps *= 2 {
		before := v.free.steps.Load()
		err := v.attempt(p, how, op)
		if err != ErrNoSpc {
			return err
		}
		if steps <= maxHelp {
			v.free.help(steps)
		}
		if steps > maxHelp || v.free.steps.Load() == before { // nothing was freed, here or in the background
			// Room that was given back may be the host's only after a barrier.
			if now := v.sys.Discarded(); now != given && v.sys.Flush() == nil {
				given = now
				continue
			}
			if v.sys.Refused() != refused {
				v.hostLog.full()
			}
			return err
		}
	}
}

// refusesChanges tells that the volume is read-only, or became so.
func (v *FS) refusesChanges() bool {
	return v.readOnly || v.damaged.Load() || v.failed.Load() || v.dmg.err() != nil
}

// attempt is run without another attempt. The answer is the verified code's; what is here tells the log of errors.
func (v *FS) attempt(p, how uint32, op func(t *dtxn.Txn) uint32) error {
	readOnly := decisions.ReadOnly(p)
	if !readOnly && (v.damaged.Load() || v.dmg.err() != nil) {
		return ErrROFS
	}
	status, err := v.transact(p, how, op)
	switch {
	case status == 0:
		return nil
	case err == nil:
		if Errno(status) == ErrServerFault {
			v.log.Error("the volume contradicts itself; run tansy check", "err", Errno(status))
		}
	case errors.Is(err, dtxn.ErrTooLarge), errors.Is(err, dtxn.ErrConflict): // that: others were in the way too often, and the client tries again
	case errors.Is(err, dtxn.ErrDamaged):
		v.damaged.Store(true)
		v.log.Error("the volume is damaged, and read-only from now on; run tansy check", "err", err)
	case errors.Is(err, dtxn.ErrReadOnly):
		if !v.failed.Swap(true) {
			v.log.Error("the volume is read-only until it is served again", "err", err, "advice", failureAdvice(err))
		}
	case !errors.Is(err, journal.ErrNotAsWritten): // else the journal has told of the block
		v.log.Error("transaction failed", "err", err)
	case !readOnly && v.dmg.err() != nil:
		return ErrROFS
	}
	return Errno(status)
}

// Statuses that do not go to the client.
const (
	errTooLarge    Errno = 20000 // TOOBIG in verified/fs/exec: the transaction does not fit the journal
	errShrinkFirst Errno = 20001 // as in verified/fs/procedures/permissions.dfy
)

// transact turns a panic of verified code into an error. On a sound volume there
// is none (that is proved), so one means that the volume is damaged: from then
// on nothing is written to it.
func (v *FS) transact(p, how uint32, op func(t *dtxn.Txn) uint32) (status uint32, err error) {
	defer func() {
		if p := recover(); p != nil {
			v.damaged.Store(true)
			v.log.Error("verified code failed on this volume; it is read-only from now on, run tansy check", "panic", p, "stack", string(debug.Stack()))
			status, err = uint32(ErrIO), fmt.Errorf("%w: %v", errDamaged, p)
		}
	}()
	return v.sys.Perform(decisions.ReadOnly(p), op, func(t *txnm.Txn, w *txn, cut, r uint32) (answer, st uint32) {
		return decisions.Exec(t, w, cut, r, p, how, v.deferred)
	})
}

// What the verified runner decides (verified/fs/exec).
var decisions = exec.Companion_Default___

// The procedures, by their numbers in RFC 1813.
const (
	procGetattr, procSetattr, procLookup, procAccess, procReadlink, procRead, procWrite        = 1, 2, 3, 4, 5, 6, 7
	procCreate, procMkdir, procSymlink, procMknod, procRemove, procRmdir, procRename, procLink = 8, 9, 10, 11, 12, 13, 14, 15
	procReaddir, procReaddirplus, procFsstat, procFsinfo, procPathconf, procCommit             = 16, 17, 18, 19, 20, 21
)

// Short names for what is called everywhere.
type (
	txn   = dtxn.Txn
	buf   = dbytes.Bytes
	vcred = permissions.Cred
)

func bytesOf(b []byte) *buf { return &buf{Data: b} }
