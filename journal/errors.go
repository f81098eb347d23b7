package journal

import (
	"errors"
	"fmt"

	"tansy/disk"
	"tansy/internal/runtime/ddisk"
)

// The errors of a journal, and why it has them.
var (
	// ErrTooLarge is the error of a commit of more than MaxBlocks blocks.
	ErrTooLarge = errors.New("journal: too many blocks for one commit")
	// ErrReadOnly is, or is wrapped by, the error of everything but Read after the device failed.
	ErrReadOnly = errors.New("journal: read-only after a device error")
	// ErrRange is the error for an address that is no home block.
	ErrRange = errors.New("journal: not a home block")
	// ErrClosed is the error of whatever begins after Close has begun, also in the layers above.
	ErrClosed = errors.New("journal: closed")
	// ErrParams is the error for a journal that does not fit its device.
	ErrParams = errors.New("journal: bad parameters")
	// ErrDamaged is the error for a device that does not hold the journal it should: both
	// headers are damaged, or a group in the midst of the log is.
	ErrDamaged = errors.New("journal: damaged")
	// ErrNotAsWritten is wrapped by the error of a Read of a block at home that is not what was last written
	// there, or whose code cannot be known because of such a block.
	ErrNotAsWritten = errors.New("the device does not hold what was last written there")
	// ErrNotOwner is, or is wrapped by, the error of everything but Read after it was seen that
	// another server has opened the journal.
	ErrNotOwner = ddisk.ErrNotOwner
)

// Refusal says why a commit was refused that is not too large: Failure, or ErrClosed.
func (j *Journal) Refusal() error {
	j.core.Mutex.Lock()
	defer j.core.Mutex.Unlock()
	if j.core.Closed {
		return ErrClosed
	}
	return j.Failure()
}

// ReadFailure is the error of the device's last read that failed. If no read failed, but a block was found damaged, the
// error wraps ErrNotAsWritten.
func (j *Journal) ReadFailure() error {
	if err := j.d.ReadErr(); err != nil {
		return err
	}
	if found := j.Damaged(); len(found) > 0 {
		return fmt.Errorf("%d damaged blocks, the first is block %d: %w", len(found), found[0], ErrNotAsWritten)
	}
	return nil
}

// Damaged lists the blocks that were read since Open and are not what was last written there. Those before the first
// home block are pages of the tree of codes.
func (j *Journal) Damaged() []uint64 { return j.core.Notes.DamagedBlocks() }

// readError is why block a could not be read.
func (j *Journal) readError(a uint64) error {
	if j.core.Notes.IsDamaged(a) {
		return ErrNotAsWritten
	}
	for b := range j.p.TreeBlocks(a, j.size) {
		if j.core.Notes.IsDamaged(b) {
			return fmt.Errorf("the block's code, in block %d or %d, is not known: %w", b, b+1, j.why(b))
		}
	}
	if err := j.d.ReadErr(); err != nil {
		return err
	}
	return ErrNotAsWritten
}

// why is what is wrong with a page of the tree of codes whose first place is block a: the device cannot
// read it, or it is damaged.
func (j *Journal) why(a uint64) error {
	err := j.d.ReadErr()
	if e := new(disk.Error); errors.As(err, &e) && (e.Block == a || e.Block == a+1) {
		return err
	}
	return ErrNotAsWritten
}

func (j *Journal) tellDamage(a uint64) {
	if a < j.home {
		j.log.Error("a page of the tree of codes is damaged: what it stands for cannot be read",
			"block", a, "error", j.why(a), "advice", "stop the server; tansy repair makes the page anew")
		return
	}
	j.log.Error("a block is damaged: "+ErrNotAsWritten.Error()+"; reading it fails",
		"block", a, "advice", "when it suits, stop the server and run tansy check, which says whose it is")
}
