package fs

import (
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
	"tansy/internal/gen/fs/files/holeparts"
)

// What local mounts have beside the procedures of NFS (verified/fs/spec/local.s.dfy). A call with a range is as many
// transactions as that needs, so that a crash, and other callers, may come between two.

// Exchange has two names change places, in one transaction: each gets what the other had, also directories with
// entries (renameat2(2), RENAME_EXCHANGE). It takes no room. The error is ErrInval if a directory would come to lie in
// itself or below.
func (v *FS) Exchange(who *Cred, from Handle, fromName []byte, to Handle, toName []byte) error {
	vc, fn, tn := v.cred(new(vcred), who), bytesOf(fromName), bytesOf(toName)
	var c call
	return v.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.Exchange(&c.Call, t, v.dirs, vc, from.Ino, from.Gen, fn, to.Ino, to.Gen, tn)
	})
}

// Whiteout is Rename, and leaves a character device 0:0 of mode 0 under the old name, in the same transaction
// (renameat2(2), RENAME_WHITEOUT). The device is the owner's, and its group that of who, or of a directory with setgid.
// Nothing is done if both names are of one file. The error is ErrPerm if who is not root.
func (v *FS) Whiteout(who *Cred, owner uint32, from Handle, fromName []byte, to Handle, toName []byte) error {
	vc, fn, tn := v.cred(new(vcred), who), bytesOf(fromName), bytesOf(toName)
	var c call
	return v.run(&c, exec.LOCAL(), func(t *txn) {
		localcalls.Whiteout(&c.Call, t, v.dirs, vc, owner, from.Ino, from.Gen, fn, to.Ino, to.Gen, tn)
	})
}

// Seek is SEEK_DATA of lseek(2) or, with hole, SEEK_HOLE. The result is the offset of the first byte from off on that
// lies in a block of the file or, with hole, in none. The end of the file counts as a hole. The error is ErrNoEnt if
// off is not before the end, or if no data follow.
func (v *FS) Seek(who *Cred, h Handle, off uint64, hole bool) (uint64, error) {
	vc := v.cred(new(vcred), who)
	for {
		var c call
		at, found := off, false
		err := v.run(&c, procRead, func(t *txn) {
			at, found = localcalls.Seek(&c.Call, t, v.dirs, vc, h.Ino, h.Gen, off, hole)
		})
		if err != nil || found {
			return at, err
		}
		off = at // which is further on
	}
}

// PunchHole makes n bytes from off on zeros, up to the end of the file. It gives back the blocks that lie in them whole
// (fallocate(2), FALLOC_FL_PUNCH_HOLE).
func (v *FS) PunchHole(who *Cred, h Handle, off, n uint64) error {
	a, err := v.Getattr(h)
	if err != nil || off >= a.Size {
		return err
	}
	head, lo, hi, tail, end := holeparts.Of(off, n, a.Size)
	if err := v.zero(who, h, off, head); err != nil {
		return err
	}
	if err := v.zero(who, h, tail, end); err != nil {
		return err
	}
	return v.punch(who, h, lo, hi, nil)
}

// punch makes holes of the blocks lo to hi - 1 of a file. If guard is not nil, it is the ctime that the file has to
// have (else ErrNotSync), and then the one that it has.
func (v *FS) punch(who *Cred, h Handle, lo, hi uint64, guard *Time) (err error) {
	w, leave, err := v.together()
	if err != nil {
		return err
	}
	defer leave()
	vc := v.cred(new(vcred), who)
	since := w.changing(who, h)
	defer func() { w.changed(h, since, err) }()
	for lo < hi {
		var c call
		c.Make(exec.LOCAL(), 0, v.deferred, v.freeStep*BlockSize)
		at := lo
		var g, ctime Time
		if guard != nil {
			g = *guard
		}
		err := w.serve(&c, func(t *txn) {
			at, ctime.Sec, ctime.Nsec = localcalls.Punch(&c.Call, t, v.dirs,
				vc, h.Ino, h.Gen, lo, hi, guard != nil, g.Sec, g.Nsec)
		})
		if err != nil {
			return err
		}
		if guard != nil {
			*guard = ctime
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

// ZeroRange writes zeros to n bytes from off on (fallocate(2), FALLOC_FL_ZERO_RANGE). The file has room for them then,
// and is at least off+n bytes long. If the bytes are more than MaxIO and there is not enough room, nothing is done.
func (v *FS) ZeroRange(who *Cred, h Handle, off, n uint64) error {
	if v.calls.Closed() {
		return ErrClosed
	}
	if tooLong(off, n) {
		return ErrFBig
	}
	if n <= MaxIO {
		return v.writeZeros(who, h, off, n)
	}
	a, err := v.allocate(who, h, off, n)
	if err != nil {
		return err
	}
	end := off + n
	for _, hole := range a.holes { // which are zeros now
		if at := hole.lo * BlockSize; off < at {
			if err := v.writeZeros(who, h, off, at-off); err != nil {
				return err
			}
		}
		off = max(off, hole.hi*BlockSize)
	}
	if off >= end {
		return nil
	}
	return v.writeZeros(who, h, off, end-off)
}

func (v *FS) writeZeros(who *Cred, h Handle, off, n uint64) error {
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
