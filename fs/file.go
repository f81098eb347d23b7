package fs

import (
	"bytes"

	"tansy/fs/internal/background"
	"tansy/internal/gen/fs/exec/answers"
	"tansy/internal/gen/fs/exec/oncecalls"
	"tansy/internal/gen/fs/exec/writecall"
	"tansy/internal/lockorder"
	"tansy/internal/runtime/dbytes"
)

// Getattr implements FileSystem.
func (v *FS) Getattr(h Handle) (Attr, error) {
	var c call
	err := v.run(&c, procGetattr, func(t *txn) {
		answers.Getattr(&c.Call, t, v.dirs, h.Ino, h.Gen)
	})
	if err != nil {
		return Attr{}, err
	}
	return *c.attr(h.Ino), nil
}

// Access implements FileSystem.
func (v *FS) Access(who *Cred, h Handle, want uint32) (uint32, Attr, error) {
	vc := v.cred(new(vcred), who)
	var c call
	var bits uint32
	err := v.run(&c, procAccess, func(t *txn) {
		bits = answers.Access(&c.Call, t, v.dirs, vc, h.Ino, h.Gen)
	})
	if v.refusesChanges() {
		bits &^= accessChange
	}
	return bits & want, orZero(c.attr(h.Ino)), err
}

// accessChange are the rights of ACCESS to change something: MODIFY, EXTEND, DELETE.
const accessChange = 0x04 | 0x08 | 0x10

// Setattr implements FileSystem.
func (v *FS) Setattr(who *Cred, h Handle, s *SetAttr, guard *Time) (_ WCC, err error) {
	if s.Size == nil && s.UID == nil && s.GID == nil {
		return v.setattr(who, h, s, guard)
	}
	w, leave, err := v.together()
	if err != nil {
		return WCC{}, err
	}
	defer leave()
	since := uint64(0)
	if guard == nil && (s.UID == nil || who.UID == 0) { // else a change before would make it fail, or it may fail
		since = w.changing(who, h)
	}
	defer func() { w.changed(h, since, err) }()
	return w.setattr(who, h, s, guard)
}

func (v *FS) setattr(who *Cred, h Handle, s *SetAttr, guard *Time) (WCC, error) {
	vc, a := v.cred(new(vcred), who), sattr(s)
	var g Time
	var id *CallID // else it may be done twice
	if guard != nil {
		g, id = *guard, v.id
	}
	var c call
	err := v.once(&c, procSetattr, id, func(t *txn, p *place) (again bool) {
		return oncecalls.Setattr(&c.Call, t, v.dirs,
			p.index, p.record, p.look, p.since,
			vc, h.Ino, h.Gen, a, guard != nil, g.Sec, g.Nsec)
	})
	return c.wcc(h.Ino), err
}

// Readlink implements FileSystem.
func (v *FS) Readlink(_ *Cred, h Handle) ([]byte, *Attr, error) {
	var c call
	var target *buf
	err := v.run(&c, procReadlink, func(t *txn) {
		target = answers.Readlink(&c.Call, t, v.dirs, h.Ino, h.Gen)
	})
	if err != nil {
		return nil, c.attr(h.Ino), err
	}
	return target.Data, c.attr(h.Ino), nil
}

// Read implements FileSystem. It returns at most MaxIO bytes.
func (v *FS) Read(who *Cred, h Handle, off uint64, count uint32) ([]byte, bool, *Attr, error) {
	d, eof, a, err := v.View(who, h, off, count)
	if err != nil {
		return nil, false, a, err
	}
	defer d.Done()
	return bytes.Join(d.Pieces(), nil), eof, a, nil
}

// View implements Viewer. It returns at most MaxIO bytes.
func (v *FS) View(who *Cred, h Handle, off uint64, count uint32) (*Data, bool, *Attr, error) {
	count = min(count, MaxIO)
	watch := v.ahead.Watch()
	v.ahead.Await(background.File(h), off, uint64(count))
	vc := v.cred(new(vcred), who)
	var c call
	var eof bool
	d := idleData.Get().(*Data)
	err := v.run(&c, procRead, func(t *txn) {
		var p *dbytes.Pieces
		p, eof = answers.Read(&c.Call, t, v.dirs, vc, h.Ino, h.Gen, off, uint64(count))
		d.drop() // of a transaction before, which did not end well
		if c.Result == 0 {
			d.take(t, p)
		}
	})
	if err != nil {
		d.Done()
		return nil, false, c.attr(h.Ino), err
	}
	a := c.attr(h.Ino)
	v.ahead.Read(background.File(h), off, uint64(d.Len()), a.Size, v.ahead.Waited(watch))
	return d, eof, a, nil
}

// Write implements FileSystem. It stores at most MaxIO bytes, and fewer if they do not fit one transaction of the
// journal. The data is copied once, into the blocks that go to the device.
func (v *FS) Write(who *Cred, h Handle, off uint64, data []byte, how Stability) (uint32, Stability, WCC, error) {
	if err := v.enter(); err != nil {
		return 0, how, WCC{}, err
	}
	defer v.leave()
	vc := v.cred(new(vcred), who)
	src := dbytes.Source(data)
	defer src.LetGo()
	var c call
	c.Make(procWrite, uint32(how), v.deferred, uint64(len(data)))
	done := Stability(writecall.Committed(&c.Call))
	if done == Unstable && c.Bytes > freeStream {
		lockorder.Wait[lockorder.Streams]()
		v.streams <- struct{}{}
		var place lockorder.Held[lockorder.Streams]
		place.Take()
		defer func() { place.Drop(); <-v.streams }()
	}
	since := v.changing(who, h)
	err := v.carry(&c, func(t *txn) {
		writecall.Store(&c.Call, t, v.dirs, vc, h.Ino, h.Gen, off, src)
	})
	v.changed(h, since, err)
	if err != nil {
		return 0, done, c.wcc(h.Ino), err
	}
	return writecall.Count(&c.Call), done, c.wcc(h.Ino), nil
}

// Large unstable WRITEs are carried out a few at a time, which keeps all processors busy. Each holds
// a copy of its data until it is committed, and when the journal has no room they would all wait for
// that with theirs. (Stable ones share barriers, so that they have to be there together.)
const (
	maxStreams = 4
	freeStream = 64 << 10 // bytes; up to that a WRITE is not large
)

// WriteMemory is the number of bytes that data of WRITEs take in memory before they are home, of all volumes of the
// process. They lie outside of Go's heap.
func WriteMemory() int64 { return dbytes.WriteMemory() }

// Commit implements FileSystem. Everything written so far becomes durable, not
// only the range named.
func (v *FS) Commit(h Handle, off uint64, count uint32) (WCC, error) {
	var c call
	err := v.run(&c, procCommit, func(t *txn) {
		answers.Commit(&c.Call, t, v.dirs, h.Ino, h.Gen)
	})
	if err != nil {
		return WCC{}, err
	}
	a := c.attr(h.Ino)
	return WCC{a, a}, nil
}

// refusesChanges tells that the volume is read-only, or became so.
func (v *FS) refusesChanges() bool {
	return v.readOnly || v.damaged.Load() || v.failed.Load() || v.dmg.Err() != nil
}
