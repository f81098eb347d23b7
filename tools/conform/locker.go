package conform

import "fmt"

// span is bytes of a file as NLM has them: length 0 reaches to the end of any file.
type span struct{ offset, length uint64 }

func (s span) String() string { return fmt.Sprintf("%d bytes from %d", s.length, s.offset) }

// lockScene is what a check has of locks.
type lockScene struct {
	conn    *conn
	manager *manager
	owners  []*owner
	sharers []*owner // with reservations
}

// owner is an owner of locks on one file: a process of a client machine.
type owner struct {
	t      *T
	vers   uint32
	file   fh
	who    *cred
	caller string // the machine
	svid   uint32
	oh     string

	waits []wanted // that are to be cancelled in the end
}

// wanted is a lock that is waited for.
type wanted struct {
	span
	exclusive bool
}

// callerName is the machine that owners are on, unless a check says otherwise.
const callerName = "tansy-conform"

// owner is another owner of locks on a file, on the same machine.
func (t *T) owner(file fh) *owner {
	t.nlmConn()
	n := uint32(len(t.locks.owners) + 1)
	o := &owner{t: t, vers: nlmVers, file: file, who: super, caller: callerName, svid: n, oh: fmt.Sprintf("%d@conform", n)}
	t.locks.owners = append(t.locks.owners, o)
	return o
}

// twoOwners are owners of locks on a new file that everybody may read and write.
func (t *T) twoOwners() (ann, bob *owner) {
	t.nlmConn()
	f := t.fileAs(super, t.dir(), "f", 0o666)
	return t.owner(f), t.owner(f)
}

// lockArgs appends to the arguments which bytes of which file, and for whom (nlm4_lock, nlm_lock).
func (o *owner) lockArgs(a *args, s span) *args {
	a.opaque("caller", o.caller).fh("fh", o.file).opaque("oh", o.oh).u32("svid", o.svid)
	if o.vers >= 4 {
		return a.u64("offset", s.offset).u64("len", s.length)
	}
	return a.u32("offset", uint32(s.offset)).u32("len", uint32(s.length))
}

// call makes a call about a lock.
func (o *owner) call(proc uint32, s span, exclusive, block bool) (lockStatus, *reader) {
	cookie := fmt.Sprintf("c%07d", o.t.xid()&0xffff)
	return o.t.nlm(o.vers, proc, o.who, cookie, o.args(proc, cookie, s, exclusive, block))
}

// args are the arguments of a call about a lock, or of the message of the same name.
func (o *owner) args(proc uint32, cookie string, s span, exclusive, block bool) *args {
	if proc >= procLockTestMsg && proc <= procGrantedMsg {
		proc -= fromMessageToRes
	}
	a := newArgs().opaque("cookie", cookie)
	if proc == procLockLock || proc == procLockNMLock || proc == procLockCancel {
		a.bool("block", block)
	}
	if proc != procLockUnlock {
		a.bool("exclusive", exclusive)
	}
	o.lockArgs(a, s)
	if proc == procLockLock || proc == procLockNMLock {
		a.bool("reclaim", false).u32("state", 1)
	}
	return a
}

// plain is a call whose result is a status alone.
func (o *owner) plain(proc uint32, s span, exclusive, block bool) lockStatus {
	st, r := o.call(proc, s, exclusive, block)
	o.t.done(r)
	return st
}

// lock asks for an exclusive lock, and does not wait.
func (o *owner) lock(s span) lockStatus { return o.plain(procLockLock, s, true, false) }

// share asks for a shared lock, and does not wait.
func (o *owner) share(s span) lockStatus { return o.plain(procLockLock, s, false, false) }

func (o *owner) unlock(s span) lockStatus { return o.plain(procLockUnlock, s, false, false) }

// wait asks for a lock, and waits if it cannot have it.
func (o *owner) wait(s span, exclusive bool) lockStatus {
	o.waits = append(o.waits, wanted{s, exclusive})
	return o.plain(procLockLock, s, exclusive, true)
}

func (o *owner) cancel(s span, exclusive bool) lockStatus {
	return o.plain(procLockCancel, s, exclusive, true)
}

// holder is who is in the way of a lock (nlm4_holder).
type holder struct {
	exclusive bool
	svid      uint32
	oh        string
	span
}

// test asks whether o could have a lock.
func (o *owner) test(s span, exclusive bool) (lockStatus, *holder) {
	st, r := o.call(procLockTest, s, exclusive, false)
	h := r.testHolder(o.vers, st)
	o.t.done(r)
	return st, h
}

// testHolder decodes what follows the status in the result of TEST.
func (r *reader) testHolder(vers uint32, st lockStatus) *holder {
	if st != lockDenied {
		return nil
	}
	h := &holder{exclusive: r.bool(), svid: r.u32(), oh: r.opaque(1024)}
	if vers >= 4 {
		h.span = span{r.u64(), r.u64()}
	} else {
		h.span = span{uint64(r.u32()), uint64(r.u32())}
	}
	return h
}

// has makes o lock bytes exclusively, which must be free.
func (o *owner) has(s span) {
	if st := o.lock(s); st != lockGranted {
		o.t.broken("LOCK, before the check: GRANTED", st.String())
	}
}

// shares is has, with a shared lock.
func (o *owner) shares(s span) {
	if st := o.share(s); st != lockGranted {
		o.t.broken("LOCK, before the check: GRANTED", st.String())
	}
}

// blocks makes o wait for bytes that somebody has.
func (o *owner) blocks(s span, exclusive bool) {
	if st := o.wait(s, exclusive); st != lockBlocked {
		o.t.wrong("BLOCKED", st.String())
	}
}

// gives makes o give bytes back.
func (o *owner) gives(s span) { o.t.locked(o.unlock(s), lockGranted) }

// finds wants bytes to be free for an exclusive lock of o, or not. Nothing is changed.
func (o *owner) finds(s span, free bool) {
	st, _ := o.test(s, true)
	want := lockDenied
	if free {
		want = lockGranted
	}
	if st != want {
		o.t.wrong(fmt.Sprintf("TEST of %v: %v", s, want), st.String())
	}
}

// whole is all bytes of any file.
var whole = span{0, 0}

// freeLocks gives back what a check has locked, and waits for.
func (t *T) freeLocks() {
	if t.locks.manager != nil {
		defer t.locks.manager.close()
	}
	for _, o := range t.locks.owners {
		for _, w := range o.waits {
			ignoring(func() { o.cancel(w.span, w.exclusive) })
		}
	}
	for _, o := range t.locks.owners {
		ignoring(func() { o.unlock(whole) })
	}
	for _, o := range t.locks.sharers {
		ignoring(func() { o.releases() })
	}
}

// ignoring calls f, whose verdict does not count.
func ignoring(f func()) {
	defer func() {
		if p := recover(); p != nil {
			if _, known := p.(verdict); !known {
				panic(p)
			}
		}
	}()
	f()
}
