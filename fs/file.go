package fs

import (
	"tansy/internal/extern/dbytes"
	"tansy/internal/gen/attributeops"
	"tansy/internal/gen/fileops"
	"tansy/internal/lockorder"
)

// Getattr implements FileSystem.
func (v *FS) Getattr(h Handle) (Attr, error) {
	var ip *buf
	err := v.run(procGetattr, 0, func(t *txn) (st uint32) {
		st, ip = attributeops.Companion_Default___.Getattr(t, v.dirs, h.Ino, h.Gen)
		return st
	})
	if err != nil {
		return Attr{}, err
	}
	return *decode(h.Ino, ip), nil
}

// Access implements FileSystem.
func (v *FS) Access(c *Cred, h Handle, want uint32) (uint32, *Attr, error) {
	vc := cred(c)
	var bits uint32
	var ip *buf
	err := v.run(procAccess, 0, func(t *txn) (st uint32) {
		st, bits, ip = attributeops.Companion_Default___.Access(t, v.dirs, vc, h.Ino, h.Gen)
		return st
	})
	if v.refusesChanges() {
		bits &^= accessChange
	}
	return bits & want, attrs(h.Ino, ip, err), err
}

// accessChange are the rights of ACCESS to change something: MODIFY, EXTEND, DELETE.
const accessChange = 0x04 | 0x08 | 0x10

// Setattr implements FileSystem.
func (v *FS) Setattr(c *Cred, h Handle, s *SetAttr, guard *Time) (WCC, error) {
	vc, a := cred(c), sattr(s)
	var g Time
	var id *CallID // else it may be done twice
	if guard != nil {
		g, id = *guard, v.call
	}
	var before, after *buf
	var later bool
	err := v.growing(h.Ino, func() error {
		return v.once(procSetattr, id, func(t *txn, p *place) (st uint32, again bool) {
			st, again, before, after, later = v.setattr(t, p, vc, h, a, guard != nil, g)
			return
		})
	})
	if err == nil && later {
		v.free.wake()
	}
	return wcc(h.Ino, before, after, err), final(err)
}

// growing runs op, which may want blocks of file ino freed first.
func (v *FS) growing(ino uint64, op func() error) error {
	for {
		err := op()
		if err != errShrinkFirst {
			return err
		}
		if err := v.shrink(ino); err != nil {
			return err
		}
	}
}

// Readlink implements FileSystem.
func (v *FS) Readlink(c *Cred, h Handle) ([]byte, *Attr, error) {
	var target, ip *buf
	err := v.run(procReadlink, 0, func(t *txn) (st uint32) {
		st, target, ip = fileops.Companion_Default___.Readlink(t, v.dirs, h.Ino, h.Gen)
		return st
	})
	if err != nil {
		return nil, attrs(h.Ino, ip, err), err
	}
	return target.Data, decode(h.Ino, ip), nil
}

// Read implements FileSystem. It returns at most MaxIO bytes.
func (v *FS) Read(c *Cred, h Handle, off uint64, count uint32) ([]byte, bool, *Attr, error) {
	vc := cred(c)
	var data, ip *buf
	var eof bool
	err := v.run(procRead, 0, func(t *txn) (st uint32) {
		st, data, eof, ip = fileops.Companion_Default___.Read(t, v.dirs, vc, h.Ino, h.Gen, off, min(uint64(count), MaxIO))
		return st
	})
	if err != nil {
		return nil, false, attrs(h.Ino, ip, err), err
	}
	return data.Data, eof, decode(h.Ino, ip), nil
}

// Recycle takes back what a Read returned, if nobody uses it any more: it may be what a later one returns.
// Who keeps it need not call this.
func Recycle(data []byte) { dbytes.Recycle(data) }

// Write implements FileSystem. It stores at most MaxIO bytes, and fewer when
// they do not fit one transaction of the journal; data is copied once, into the
// blocks that go to the device.
func (v *FS) Write(c *Cred, h Handle, off uint64, data []byte, how Stability) (uint32, Stability, WCC, error) {
	vc := cred(c)
	n := decisions.First(uint64(len(data)))
	src := bytesOf(data)
	done := Stability(decisions.Committed(uint32(how), v.deferred))
	if done == Unstable && n > freeStream {
		lockorder.Wait[lockorder.Streams]()
		v.streams <- struct{}{}
		var place lockorder.Held[lockorder.Streams]
		place.Take()
		defer func() { place.Drop(); <-v.streams }()
	}
	var before, after *buf
	for {
		err := v.growing(h.Ino, func() error {
			return v.run(procWrite, uint32(how), func(t *txn) (st uint32) {
				sec, nsec := v.now()
				st, before, after = fileops.Companion_Default___.Write(t, v.dirs, vc, h.Ino, h.Gen, off, src, 0, n, sec, nsec)
				return st
			})
		})
		if err == errTooLarge {
			if fewer := decisions.Fewer(n); fewer != 0 {
				n = fewer
				continue
			}
		}
		if err != nil {
			return 0, done, wcc(h.Ino, before, nil, err), final(err)
		}
		return uint32(n), done, wcc(h.Ino, before, after, nil), nil
	}
}

// Large unstable WRITEs are carried out a few at a time, which keeps all processors busy. Each holds
// a copy of its data until it is committed, and when the journal has no room they would all wait for
// that with theirs. (Stable ones share barriers, so that they have to be there together.)
const (
	maxStreams = 4
	freeStream = 64 << 10 // bytes; up to that a WRITE is not large
)

// final is an error as the client may see it.
func final(err error) error {
	if err == errTooLarge || err == errShrinkFirst {
		return ErrServerFault
	}
	return err
}
