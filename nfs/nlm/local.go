package nlm

import (
	"math"
	"sync"
	"syscall"

	"tansy/fs"
	"tansy/nfs/advisory"
	"tansy/nfs/reclaim"
)

// Local are the locks of programs on the server's own machine, which use one of the volumes through a mount. They are
// in one table with those of clients, of a host of their own (advisory.ThisMachine). Who waits is told by a channel in
// place of a call. The methods may be called concurrently.
type Local struct {
	table  *advisory.Table
	kept   *reclaim.Volume // nil: locks of the volume do not outlive the server
	volume [8]byte

	// mu is held over calls of table. These tell those who wait, as do those of clients, without mu: see offered.
	mu    sync.Mutex
	waits map[wanted]*localWait
}

// wanted is a lock that somebody waits for.
type wanted struct {
	file      advisory.File
	owner     advisory.Owner
	span      advisory.Range
	exclusive bool
}

// localWait is a lock that threads of one owner wait for: one for all who want the same, since the table has one wait
// of them. Nobody joins one that was told. The offer may not stand any more by then: another thread of the owner may
// have taken it, and unlocked.
type localWait struct {
	users int
	once  sync.Once // of the offer
	offer advisory.Offer
	told  chan struct{} // closed when there is the offer
}

// Local returns the locks of the mount of a volume. There is one mount of it.
func (s *Service) Local(volume [8]byte) *Local {
	return &Local{table: s.table, kept: s.kept[volume], volume: volume, waits: map[wanted]*localWait{}}
}

func (l *Local) file(h fs.Handle) advisory.File {
	return advisory.File{Volume: l.volume, Ino: h.Ino, Gen: h.Gen}
}

func mine(owner string) advisory.Owner { return advisory.Owner{Host: advisory.ThisMachine, ID: owner} }

// Test tells whether owner could have a lock of the bytes first to last, and if not what is in the way, which is of no
// owner here ("") if it is a client's. In the grace period, in which who has what is not known yet, it waits as Lock
// does, with its errors: NLM answers no TEST then, and Linux asks such a server again until a signal comes.
func (l *Local) Test(h fs.Handle, owner string, first, last uint64, exclusive bool, cancel <-chan struct{}) (
	free bool, by string, from, to uint64, byExclusive bool, err error,
) {
	if err := l.await(cancel); err != nil {
		return false, "", 0, 0, false, err
	}
	answer, c := l.table.Test(l.file(h), mine(owner), advisory.Range{First: first, Last: last}, exclusive)
	if c.Owner.Host == advisory.ThisMachine {
		by = c.Owner.ID
	}
	return answer == advisory.Granted, by, c.Range.First, c.Range.Last, c.Exclusive, nil
}

// Lock gives owner the lock. If somebody else has it, it waits until cancel is closed (EINTR); with cancel nil it does
// not wait (EAGAIN). ENOLCK says that there are too many locks, or that the server ends in the grace period.
func (l *Local) Lock(h fs.Handle, owner string, first, last uint64, exclusive bool, cancel <-chan struct{}) error {
	if err := l.await(cancel); err != nil {
		return err
	}
	want := wanted{l.file(h), mine(owner), advisory.Range{First: first, Last: last}, exclusive}
	for {
		w, err := l.ask(want, cancel != nil)
		if w == nil {
			return err
		}
		select {
		case <-w.told:
		case <-cancel:
		}
		if settled, err := l.settle(want, w); settled {
			return err
		}
	}
}

// ask asks for a lock. With w not nil it is waited for, and settle ends that.
func (l *Local) ask(want wanted, wait bool) (w *localWait, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w = l.waits[want]
	if w == nil || w.wasTold() {
		w = &localWait{told: make(chan struct{})}
	}
	switch answer, _ := l.table.Lock(want.file, want.owner, want.span, want.exclusive, wait, w); answer {
	case advisory.Granted:
		return nil, nil
	case advisory.Denied:
		return nil, syscall.EAGAIN
	case advisory.NoRoom:
		return nil, syscall.ENOLCK
	}
	w.users++
	l.waits[want] = w
	return w, nil
}

// await waits for the end of the grace period, in which clients reclaim locks. With cancel nil it does not (EAGAIN). If
// the server ends first, clients may still reclaim from the next one (ENOLCK: with EINTR, programs would ask again).
func (l *Local) await(cancel <-chan struct{}) error {
	if l.kept == nil || !l.kept.Grace() {
		return nil
	}
	if cancel == nil {
		return syscall.EAGAIN
	}
	select {
	case <-l.kept.Over():
		if l.kept.Grace() {
			return syscall.ENOLCK
		}
		return nil
	case <-cancel:
		return syscall.EINTR
	}
}

// settle ends a wait: with the lock, if it was offered, also if the wait was to end just then. If the offer does not
// stand any more, nothing is settled: who waited does not know who has the lock now, and has to ask again.
func (l *Local) settle(want wanted, w *localWait) (settled bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.users--; w.users == 0 && l.waits[want] == w {
		delete(l.waits, want)
	}
	if w.wasTold() {
		return l.table.Accept(w.offer), nil
	}
	if w.users == 0 {
		l.table.Cancel(want.file, want.owner, want.span, want.exclusive)
	}
	return true, syscall.EINTR
}

// offered tells those who wait. Service.offer calls it. A client's call may bring an offer late, when the table has
// made the next one of the same wait. The first makes all ask again, which takes the other.
func (w *localWait) offered(o advisory.Offer) {
	w.once.Do(func() {
		w.offer = o
		close(w.told)
	})
}

// wasTold tells whether there is the offer.
func (w *localWait) wasTold() bool {
	select {
	case <-w.told:
		return true
	default:
		return false
	}
}

// Unlock gives the bytes back, of which owner may hold some, all, or none. ENOLCK says that a lock would have to become
// two, and there are too many.
func (l *Local) Unlock(h fs.Handle, owner string, first, last uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.table.Unlock(l.file(h), mine(owner), advisory.Range{First: first, Last: last}) == advisory.NoRoom {
		return syscall.ENOLCK
	}
	return nil
}

// UnlockAll gives all bytes of a file back.
func (l *Local) UnlockAll(h fs.Handle, owner string) { l.Unlock(h, owner, 0, math.MaxUint64) }

// End takes all locks away: the mount has gone, and who used it.
func (l *Local) End() {
	l.table.Free(func(h advisory.Host) bool { return h == advisory.ThisMachine })
}
