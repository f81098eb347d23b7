package fs

import (
	"tansy/internal/gen/fs/exec/exec"
	"tansy/internal/gen/fs/exec/localcalls"
	"tansy/internal/lockorder"
)

// NFS knows no open files: a file goes with its last name. Who has files open (a mount) has the volume keep them: that
// is a link more, which takes no room. Kept files are on a list on the volume; those that a crash leaves there are let
// go when it is opened (verified/fs/spec/local.s.dfy).

// keptHead is the inode that heads the list.
const keptHead = 2

// keptOrder is what precedes a kept file on the list, so that it is not looked for from the beginning. The verified
// code tells if it is not so any more.
type keptOrder struct {
	mu     lockorder.Mutex[lockorder.Kept]
	before map[uint64]uint64
}

func (k *keptOrder) set(ino, before uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.before == nil {
		k.before = map[uint64]uint64{}
	}
	k.before[ino] = before
}

// take returns what precedes a file, and forgets it.
func (k *keptOrder) take(ino uint64) uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	before, ok := k.before[ino]
	if !ok {
		return keptHead
	}
	delete(k.before, ino)
	return before
}

// came notes that a file is the first of the list, before the one that was.
func (v *FS) came(ino, first uint64, err error) {
	if err == nil && first != 0 {
		v.kept.set(first, ino)
	}
}

// Keep has the volume keep a file as if it had one link more, until LetGo. So the file lives on without a name. The
// error is ErrExist if the file is kept already.
func (v *FS) Keep(h Handle) error {
	var c call
	var first uint64
	err := v.run(&c, exec.LOCAL(), func(t *txn) {
		first = localcalls.Keep(&c.Call, t, v.dirs, h.Ino, h.Gen)
	})
	v.came(h.Ino, first, err)
	return err
}

// LetGo ends what Keep began. A file without names is removed then.
func (v *FS) LetGo(h Handle) error {
	w, leave, err := v.together()
	if err != nil {
		return err
	}
	defer leave()
	err = w.letGo(h, v.kept.take(h.Ino))
	if err == ErrNoEnt { // others came or went
		err = w.letGo(h, keptHead)
	}
	w.forget(h.Ino, err)
	return err
}

func (v *FS) letGo(h Handle, from uint64) error {
	var c call
	var at, next uint64
	err := v.run(&c, exec.LOCAL(), func(t *txn) {
		at, next = localcalls.LetGo(&c.Call, t, v.dirs, h.Ino, h.Gen, from)
	})
	if err == nil && next != 0 {
		v.kept.set(next, at)
	}
	return err
}

// RemoveOpen is Keep of the file open and Remove of its name, in one transaction.
func (v *FS) RemoveOpen(who *Cred, dir Handle, name []byte, open Handle) (WCC, error) {
	vc, vn := v.cred(new(vcred), who), bytesOf(name)
	var c call
	var first uint64
	err := v.run(&c, exec.LOCAL(), func(t *txn) {
		first = localcalls.RemoveOpen(&c.Call, t, v.dirs,
			vc, dir.Ino, dir.Gen, vn, open.Ino, open.Gen)
	})
	v.came(open.Ino, first, err)
	return c.wcc(dir.Ino), err
}

// RenameOpen is Keep of the file open and Rename, in one transaction.
func (v *FS) RenameOpen(
	who *Cred, from Handle, fromName []byte, to Handle, toName []byte, open Handle,
) (WCC, WCC, error) {
	vc, fn, tn := v.cred(new(vcred), who), bytesOf(fromName), bytesOf(toName)
	var c call
	var first uint64
	err := v.run(&c, exec.LOCAL(), func(t *txn) {
		first = localcalls.RenameOpen(&c.Call, t, v.dirs,
			vc, from.Ino, from.Gen, fn, to.Ino, to.Gen, tn, open.Ino, open.Gen)
	})
	v.came(open.Ino, first, err)
	return c.wcc(from.Ino), c.wcc2(to.Ino), err
}

// WhiteoutOpen is Keep of the file open and Whiteout, in one transaction.
func (v *FS) WhiteoutOpen(
	who *Cred, owner uint32, from Handle, fromName []byte, to Handle, toName []byte, open Handle,
) error {
	vc, fn, tn := v.cred(new(vcred), who), bytesOf(fromName), bytesOf(toName)
	var c call
	var first uint64
	err := v.run(&c, exec.LOCAL(), func(t *txn) {
		first = localcalls.WhiteoutOpen(&c.Call, t, v.dirs,
			vc, owner, from.Ino, from.Gen, fn, to.Ino, to.Gen, tn, open.Ino, open.Gen)
	})
	v.came(open.Ino, first, err)
	return err
}

// Tmpfile makes a regular file that has no name and is kept (Keep). Directory dir decides where the file lies on the
// volume, and gives it its group if dir is setgid.
func (v *FS) Tmpfile(who *Cred, dir Handle, s *SetAttr) (Node, error) {
	vc, a := v.cred(new(vcred), who), sattr(s)
	var c call
	var first uint64
	err := v.run(&c, exec.LOCAL(), func(t *txn) {
		first = localcalls.Tmpfile(&c.Call, t, v.dirs, vc, dir.Ino, dir.Gen, a)
	})
	v.came(c.Ino, first, err)
	return node(&c, dir, err)
}

// clearKept lets go, one by one, the files that were kept when the volume was last used. Nobody is served yet, and
// nobody waits for the device.
func (v *FS) clearKept() {
	d := v.Deferring()
	gone := 0
	for more := true; more; {
		var c call
		var first uint64
		err := d.run(&c, exec.LOCAL(), func(t *txn) {
			more, first = localcalls.Clear(&c.Call, t, d.dirs)
		})
		if err != nil {
			v.log.Error("files that were open when the volume was last used stay until it is opened again", "err", err)
			return
		}
		if more {
			d.forget(first, nil)
			gone++
		}
	}
	if gone > 0 {
		v.log.Info("let go of files that were open when the volume was last used", "count", gone)
	}
}
