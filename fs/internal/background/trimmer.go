package background

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"tansy/disk"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/dtxn"
	"tansy/journal"
)

// Spares is what a trimmer needs of a file system.
type Spares interface {
	others
	// Zero writes zeros to those of the blocks in runs that are free, in one transaction.
	Zero(runs []dtxn.Run) error
	// Closing tells that the file system is being closed.
	Closing() bool
	// InMoments tells that moments of the file system are open: of a block that is discarded they may need what it held.
	InMoments() bool
}

// Trimmer gives the room of free blocks back to the host of the volume: holes in an image,
// unmapped blocks of a thin device. It writes zeros to free blocks, in transactions that are proved to
// change nothing else, and the device discards instead of storing them (disk.Discarder). So a
// crash meets nothing that it would not meet otherwise, and the codes of blocks stay right.
//
// It waits until the transactions that freed the blocks are home. Then the log has nothing of them any more, and the
// zeros go straight home; until they would, nobody trims.
type Trimmer struct {
	v     Spares
	sys   *dtxn.System
	host  disk.Host // nil: the device does not say what has room
	first uint64    // block for data; where they end may grow
	log   *slog.Logger
	quit  chan struct{}
	end   sync.Once // closes quit
	ended sync.WaitGroup

	mu    lockorder.Mutex[lockorder.Trimming] // one round at a time; all below
	paced bool                                // others come first
	watch commitWatch
	part  []dtxn.Run // to be trimmed in the next transaction
	size  uint64     // blocks in part
	wait  []uint64   // pieces whose blocks may not be home
	since int        // turns that they have waited
	need  uint64     // commits that have to be durable before
	group uint64     // ... and then this group has to be home
	known bool       // what that is
	sweep uint64     // blocks from here on were not looked at since the start
}

const (
	trimEvery    = time.Second
	trimPatience = 30             // turns to wait for an installation that would come anyway
	trimRun      = 64 << 10 >> 12 // runs of fewer free blocks stay what they are
	trimStep     = 240            // blocks in one transaction: others have room in the same group
	trimHeld     = 8192           // blocks that are kept from others at a time
	trimShare    = 8              // the trimmer works an eighth of the time at most while others commit, else half of it
	sweepStep    = 1024           // pieces of an image looked at in a turn
	sweepCodes   = 128            // ... of a device, which does not say what has room: codes tell what was written
)

// errYield ends a round: others need the blocks that it holds.
var errYield = errors.New("others need the blocks")

// errNoDiscard ends the trimmer.
var errNoDiscard = errors.New("the device does not take room back")

// NewTrimmer is of file system v, on transactions sys of a device that host lends room, with blocks for data from first
// on. It does nothing by itself before Start.
func NewTrimmer(v Spares, sys *dtxn.System, host disk.Host, first uint64, log *slog.Logger) *Trimmer {
	return &Trimmer{v: v, sys: sys, host: host, first: first, log: log, quit: make(chan struct{}), sweep: first}
}

// Start begins to trim in the background. What is freed from then on is remembered.
func (t *Trimmer) Start() {
	t.sys.Freed()
	t.ended.Go(t.loop)
}

// Close ends the background. It may be called again.
func (t *Trimmer) Close() {
	t.end.Do(func() { close(t.quit) })
	t.ended.Wait()
}

func (t *Trimmer) loop() {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.quit:
			return
		case <-tick.C:
		}
		switch err := t.turn(); {
		case err == nil:
		case err == errNoDiscard:
			t.log.Info("the room of removed files is not given back: " + err.Error())
			return
		default:
			t.log.Error("giving back the room of removed files stops", "err", err)
			return
		}
	}
}

// turn trims what is ready to be trimmed.
func (t *Trimmer) turn() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.v.InMoments() { // what is remembered waits
		return nil
	}
	t.paced = true
	sys := t.sys
	if len(t.wait) == 0 {
		t.wait = sys.Freed()
		t.need, t.known, t.since = sys.Position().Commits, false, 0
	}
	at := sys.Position()
	if !t.known && at.Durable >= t.need {
		t.group, t.known = at.Logged, true
	}
	ready := t.known && at.Home >= t.group
	if t.since++; len(t.wait) > 0 && !ready && t.since >= trimPatience {
		if err := sys.Settle(); err != nil {
			return err
		}
		ready = true
	}
	if ready {
		n, err := t.pieces(t.wait)
		t.wait = t.wait[n:]
		if err != nil {
			return err
		}
	}
	return t.look()
}

// look goes on with the pieces that had room when the volume was opened.
func (t *Trimmer) look() error {
	var found []uint64
	end, steps := t.sys.End(dtxn.Blocks), sweepStep
	if t.host == nil {
		end, steps = min(end, t.sweep+sweepCodes*dtxn.Piece), sweepCodes
	}
	for range steps {
		lo, hi := t.backed(dtxn.Run{Start: t.sweep, End: end})
		if lo >= hi {
			t.sweep = end
			break
		}
		p := lo / dtxn.Piece
		found = append(found, p)
		t.sweep = (p + 1) * dtxn.Piece
	}
	n, err := t.pieces(found)
	if n < len(found) {
		t.sweep = found[n] * dtxn.Piece
	}
	return err
}

// pieces trims the free blocks of pieces, and returns how many of these are done.
func (t *Trimmer) pieces(ps []uint64) (n int, err error) {
	done := 0
	for i, p := range ps {
		if err = t.piece(p); err == nil && t.sys.Held() >= trimHeld {
			if err = t.settle(); err == nil {
				done = i + 1
			}
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		if err = t.settle(); err == nil {
			done = len(ps)
		}
	}
	t.part, t.size = nil, 0
	t.sys.LetGo()
	if err == errYield {
		err = nil
	}
	return done, err
}

// settle waits until all that was trimmed is home, and lets go of it.
func (t *Trimmer) settle() error {
	if err := t.write(); err != nil {
		return err
	}
	if t.sys.Held() == 0 {
		return nil
	}
	err := t.sys.Settle()
	t.sys.LetGo()
	return err
}

// piece trims what is free in a piece, and has room.
func (t *Trimmer) piece(p uint64) error {
	runs, err := t.sys.Hold(p, trimRun)
	if err != nil {
		return err
	}
	for _, r := range runs {
		for r.Start < r.End {
			lo, hi := t.backed(r)
			if lo >= hi {
				break
			}
			hi = min(hi, lo+trimStep-t.size)
			t.part = append(t.part, dtxn.Run{Start: lo, End: hi})
			t.size += hi - lo
			r.Start = hi
			if t.size == trimStep {
				if err := t.write(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// backed is the first part of a run that may have room; empty if there is none. Of a device it is what was written, or,
// when somebody waits for all the room there is, everything: it may have had something else before there was a volume.
func (t *Trimmer) backed(r dtxn.Run) (lo, hi uint64) {
	switch {
	case r.Start >= r.End || t.host == nil && !t.paced:
		return r.Start, r.End
	case t.host == nil:
		return t.sys.Written(r.Start, r.End)
	}
	lo, hi, ok := t.host.Backed(r.Start)
	if !ok {
		return r.End, r.End
	}
	return max(lo, r.Start), min(hi, r.End)
}

// write trims the runs that were collected.
func (t *Trimmer) write() error {
	if t.size == 0 {
		return nil
	}
	sys := t.sys
	if sys.Held() == 0 {
		return errYield
	}
	select {
	case <-t.quit:
		return errYield
	default:
	}
	if t.v.Closing() {
		return errYield
	}
	begin := time.Now()
	part := t.part[:0]
	for _, r := range t.part {
		err := sys.MayWrite(r)
		if err == nil {
			part = append(part, r)
		} else if !errors.Is(err, disk.ErrNoRoom) {
			return err
		}
	}
	_, before := sys.Spared()
	err := t.v.Zero(part)
	t.part, t.size = nil, 0
	if err != nil {
		return err
	}
	switch cannot, kept := sys.Spared(); {
	case cannot:
		return errNoDiscard
	case kept != before: // not now
		return errYield
	}
	if t.paced {
		t.pause(time.Since(begin))
	}
	return nil
}

// pause rests after a transaction that took so long.
func (t *Trimmer) pause(worked time.Duration) {
	rest := worked
	if t.watch.seesOthers(t.v) {
		rest *= trimShare - 1
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-t.quit:
	case <-timer.C:
	}
}

// All gives the room of all free blocks back to the host, at once. The error wraps disk.ErrNoDiscard if it takes none,
// and journal.ErrClosed if the file system is being closed. progress, if not nil, is told of blocks looked at, of all.
func (t *Trimmer) All(progress func(done, all uint64)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paced = false
	first, end := t.first, t.sys.End(dtxn.Blocks)
	for at := first; at < end; {
		if t.v.Closing() {
			return journal.ErrClosed
		}
		var ps []uint64
		for len(ps) < trimHeld/dtxn.Piece {
			lo, hi := t.backed(dtxn.Run{Start: at, End: end})
			if lo >= hi {
				at = end
				break
			}
			ps = append(ps, lo/dtxn.Piece)
			at = (lo/dtxn.Piece + 1) * dtxn.Piece
		}
		if _, err := t.pieces(ps); err == errNoDiscard {
			return disk.ErrNoDiscard
		} else if err != nil {
			return err
		}
		if progress != nil {
			progress(min(at, end)-first, end-first)
		}
	}
	if t.v.Closing() { // the last pieces may have been left
		return journal.ErrClosed
	}
	return nil
}
