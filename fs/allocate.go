package fs

import (
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
)

// Room is set aside for a long range in many transactions, which may find no room in the middle. So it is looked for
// first, and what was taken for all that is given back.

// Allocate reserves room in a file for n bytes from off on, and makes the file at least off+n bytes long. No byte
// changes (fallocate(2), mode 0). A later Write there needs no room.
//
// The error is ErrNoSpc if there is not enough room, and the file stays as it was. A crash, or another caller who
// changes the file meanwhile, may leave it with some of the room.
func (v *FS) Allocate(who *Cred, h Handle, off, n uint64) error {
	if v.calls.Closed() {
		return ErrClosed
	}
	if tooLong(off, n) {
		return ErrFBig
	}
	_, err := v.allocate(who, h, off, n)
	return err
}

// allocate is Allocate, and returns what the file was.
func (v *FS) allocate(who *Cred, h Handle, off, n uint64) (_ *allocation, err error) {
	if v.readOnly {
		return nil, ErrROFS
	}
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.leave()
	v = v.part() // so that what was taken is given back, though Close may have begun
	a := &allocation{v: v, h: h, alone: true}
	if err := a.look(off, n); err != nil {
		return nil, err
	}
	if !v.roomFor(a.need()) {
		return nil, ErrNoSpc
	}
	since := v.changing(who, h)
	defer func() { v.changed(h, since, err) }()
	return a, a.fill(who, off, n)
}

// An allocation is room that is being set aside.
type allocation struct {
	v     *FS
	h     Handle
	size  uint64 // of the file before, in bytes
	holes []run  // of it, in the range, in order
	ctime Time   // of the file when it was looked at, and after each step
	alone bool   // nobody else has changed the file since it was looked at
}

// A run is the blocks from lo up to hi, which is not among them.
type run struct{ lo, hi uint64 }

// superuser looks at files for the server.
var superuser = &Cred{}

// look finds what the file lacks of a range.
func (a *allocation) look(off, n uint64) error {
	was, err := a.v.Getattr(a.h)
	if err != nil {
		return err
	}
	if was.Type != Regular || n == 0 {
		return ErrInval
	}
	a.size, a.ctime = was.Size, was.Ctime
	end := off + n
	for off -= off % BlockSize; off < end; { // so that a block is a hole only if the file does not have it
		hole, data := off, end
		if off < a.size {
			if hole, err = a.v.Seek(superuser, a.h, off, true); err == ErrNoEnt {
				hole, err = off, nil
			}
			if err != nil {
				return err
			}
		}
		if hole < a.size {
			if data, err = a.v.Seek(superuser, a.h, hole, false); err == ErrNoEnt {
				data, err = end, nil
			}
			if err != nil {
				return err
			}
		}
		lo, hi := blocksFor(hole), blocksFor(min(data, end))
		if hole == off {
			lo = hole / BlockSize
		}
		if lo < hi {
			a.holes = append(a.holes, run{lo, hi})
		}
		off = max(data, off+1)
	}
	return nil
}

// perIndex is how many blocks one block of numbers tells of, and direct at least how many need none.
const perIndex, direct = 512, 32

// need is how many blocks the range takes at least: few less than it does.
func (a *allocation) need() (blocks uint64) {
	for _, r := range a.holes {
		n := r.hi - r.lo
		blocks += n
		if n > direct+2*perIndex { // those at both ends may be there
			index := (n - direct) / perIndex
			blocks += index - 1 + index/perIndex
		}
	}
	return blocks
}

// roomFor tells whether there are so many blocks, when what waits to be freed has been.
func (v *FS) roomFor(blocks uint64) bool {
	room := v.search()
	for {
		freed := v.free.Steps()
		free, _, err := v.countBy(v.sys.Count)
		if err != nil || blocks <= free { // who needs the blocks is told the error
			return true
		}
		if !room.found(freed) {
			return false
		}
	}
}

// fill sets the room aside, step by step.
func (a *allocation) fill(who *Cred, off, n uint64) error {
	v, vc := a.v, a.v.cred(new(vcred), who)
	for {
		var c call
		c.Make(exec.LOCAL(), 0, v.deferred, n)
		var before, after Time
		err := v.serve(&c, func(t *txn) {
			before.Sec, before.Nsec, after.Sec, after.Nsec = localcalls.Allocate(&c.Call, t, v.dirs,
				vc, a.h.Ino, a.h.Gen, off)
		})
		if err == ErrNoSpc {
			a.giveBack(off)
		}
		if err != nil {
			return err
		}
		a.alone = a.alone && before == a.ctime
		a.ctime = after
		if c.Bytes >= n {
			return nil
		}
		off, n = off+c.Bytes, n-c.Bytes
	}
}

// giveBack takes what was set aside before the byte at end from the file again, but for some of the blocks that have
// the numbers of others. Each step is done only if nobody has changed the file since the last one: what others write
// stays.
func (a *allocation) giveBack(end uint64) {
	v := a.v
	now, err := v.Getattr(a.h)
	if err != nil || !a.alone {
		return
	}
	if now.Size > a.size {
		w, err := v.Setattr(superuser, a.h, &SetAttr{Size: &a.size}, &a.ctime)
		if err != nil || w.After == nil {
			return
		}
		a.ctime = w.After.Ctime
	}
	size := blocksFor(min(end, a.size))
	for _, r := range a.holes {
		if hi := min(r.hi, size); r.lo < hi && v.punch(superuser, a.h, r.lo, hi, &a.ctime) != nil {
			return
		}
	}
}
