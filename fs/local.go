package fs

import "tansy/internal/gen/localops"

// What local mounts have beside the procedures of NFS (verified/fs/spec/local.s.dfy). Each call is as many transactions as its range needs,
// so that a crash, and other callers, may come between two.
var local = localops.Companion_Default___

// Seek is SEEK_DATA of lseek(2), or (hole) SEEK_HOLE: the offset of the first byte from off on that lies in a block
// which the file has, or in a hole. The end of the file is one. It is ErrNoEnt if off is not before the end, or there are no more data.
func (v *FS) Seek(who *Cred, h Handle, off uint64, hole bool) (uint64, error) {
	vc := cred(new(vcred), who)
	for {
		var c call
		at, found := off, false
		err := v.run(&c, procRead, func(t *txn) (st uint32) {
			st, at, found = local.Seek(t, v.dirs, vc, h.Ino, h.Gen, off, hole)
			return st
		})
		if err != nil || found {
			return at, err
		}
		off = at // which is further on
	}
}

// Allocate has a file keep room for n bytes from off on, and makes it as long as that; no byte changes (fallocate(2), mode 0).
// A later Write there needs no room. If there is not enough, a first part of them may be set aside for all that.
func (v *FS) Allocate(who *Cred, h Handle, off, n uint64) (err error) {
	if v.calls.Closed() {
		return ErrClosed
	}
	if tooLong(off, n) {
		return ErrFBig
	}
	w, leave, err := v.together()
	if err != nil {
		return err
	}
	defer leave()
	vc := cred(new(vcred), who)
	since := w.changing(who, h)
	defer func() { w.changed(h, since, err) }()
	for {
		var c call
		c.Ino = h.Ino
		c.Make(decisions.LOCAL(), 0, v.deferred, n)
		err := w.serve(&c, func(t *txn) uint32 {
			sec, nsec := v.now()
			return local.Allocate(t, v.dirs, vc, h.Ino, h.Gen, off, c.N, sec, nsec)
		})
		if err != nil || c.N >= n {
			return err
		}
		off, n = off+c.N, n-c.N
	}
}

// PunchHole makes zeros of n bytes from off on, as far as the file has them, and gives back the blocks that they fill (fallocate(2),
// FALLOC_FL_PUNCH_HOLE).
func (v *FS) PunchHole(who *Cred, h Handle, off, n uint64) error {
	a, err := v.Getattr(h)
	if err != nil || off >= a.Size {
		return err
	}
	end := a.Size
	lo, hi := blocksFor(off), blocksFor(end)
	if n < end-off {
		end = off + n
		hi = end / BlockSize
	}
	if hi < lo { // all of it lies within one block
		return v.zero(who, h, off, end)
	}
	if err := v.zero(who, h, off, min(lo*BlockSize, end)); err != nil {
		return err
	}
	if err := v.zero(who, h, hi*BlockSize, end); err != nil {
		return err
	}
	return v.punch(who, h, lo, hi)
}

// punch makes holes of the blocks lo to hi - 1 of a file.
func (v *FS) punch(who *Cred, h Handle, lo, hi uint64) (err error) {
	w, leave, err := v.together()
	if err != nil {
		return err
	}
	defer leave()
	vc := cred(new(vcred), who)
	since := w.changing(who, h)
	defer func() { w.changed(h, since, err) }()
	for lo < hi {
		var c call
		c.Ino = h.Ino
		c.Make(decisions.LOCAL(), 0, v.deferred, v.freeStep*BlockSize)
		at := lo
		err := w.serve(&c, func(t *txn) (st uint32) {
			sec, nsec := v.now()
			st, at = local.Punch(t, v.dirs, vc, h.Ino, h.Gen, lo, hi, blocksFor(c.N), sec, nsec)
			return st
		})
		if err != nil {
			return err
		}
		hi = at
	}
	return nil
}

// zero writes zeros to the bytes from off to end - 1, of one block, unless that is a hole.
func (v *FS) zero(who *Cred, h Handle, off, end uint64) error {
	if off >= end {
		return nil
	}
	if at, err := v.Seek(who, h, off, false); err == ErrNoEnt || err == nil && at >= end {
		return nil
	} else if err != nil {
		return err
	}
	return v.ZeroRange(who, h, off, end-off)
}

// ZeroRange writes zeros to n bytes from off on (fallocate(2), FALLOC_FL_ZERO_RANGE): the file has room for them, and is as long as that.
func (v *FS) ZeroRange(who *Cred, h Handle, off, n uint64) error {
	if v.calls.Closed() {
		return ErrClosed
	}
	if tooLong(off, n) {
		return ErrFBig
	}
	zeros := make([]byte, min(n, MaxIO))
	for n > 0 {
		m, _, _, err := v.Write(who, h, off, zeros[:min(n, MaxIO)], FileSync)
		if err != nil {
			return err
		}
		off, n = off+uint64(m), n-uint64(m)
	}
	return nil
}

// tooLong tells whether no file can have n bytes at off: then nothing is done, rather than a part.
func tooLong(off, n uint64) bool { return off > MaxSize || n > MaxSize-off }

// blocksFor is how many blocks n bytes take.
func blocksFor(n uint64) uint64 { return (n + BlockSize - 1) / BlockSize }
