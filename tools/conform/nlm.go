package conform

import (
	"fmt"
	"net"
	"slices"
)

// The lock protocols that go with NFS version 3: NLM (RFC 1813, section 6, for version 4; X/Open C702 for versions 1
// and 3, on which it builds) and NSM (C702). Servers have them on a port of their own, or on that of NFS.

// Programs, and the versions that clients of NFS version 3 use.
const (
	nlmProg     = 100021
	nlmVers     = 4
	nsmProg     = 100024
	nsmVers     = 1
	portmapProg = 100000
	portmapVers = 2
)

// Procedures of NLM. Those from procLockTestMsg on are answered by a call whose number is 5 higher.
const (
	procLockTest     = 1
	procLockLock     = 2
	procLockCancel   = 3
	procLockUnlock   = 4
	procLockGranted  = 5
	procLockTestMsg  = 6
	procGrantedMsg   = 10
	procLockTestRes  = 11
	procGrantedRes   = 15
	procLockShare    = 20
	procLockUnshare  = 21
	procLockNMLock   = 22
	procLockFreeAll  = 23
	procLockCount    = 24
	fromMessageToRes = procLockTestRes - procLockTestMsg
)

var nlmNames = [procLockCount]string{
	"NULL", "TEST", "LOCK", "CANCEL", "UNLOCK", "GRANTED",
	"TEST_MSG", "LOCK_MSG", "CANCEL_MSG", "UNLOCK_MSG", "GRANTED_MSG",
	"TEST_RES", "LOCK_RES", "CANCEL_RES", "UNLOCK_RES", "GRANTED_RES",
	"16", "17", "18", "19", "SHARE", "UNSHARE", "NM_LOCK", "FREE_ALL",
}

// Procedures of NSM and of the port mapper.
const (
	procStatusStat   = 1
	procStatusMon    = 2
	procStatusUnmon  = 3
	procStatusNotify = 6
	procGetport      = 3
)

// lockStatus is nlm4_stats (RFC 1813, 6.1.4). Versions 1 and 3 have those up to lockDeadlock.
type lockStatus uint32

const (
	lockGranted lockStatus = iota
	lockDenied
	lockNoLocks
	lockBlocked
	lockGrace
	lockDeadlock
	lockROFS
	lockStale
	lockBig
	lockFailed

	// lockGarbage is no status: the call was answered with GARBAGE_ARGS.
	lockGarbage lockStatus = 0xffffffff
)

var lockNames = []string{"GRANTED", "DENIED", "DENIED_NOLOCKS", "BLOCKED", "DENIED_GRACE_PERIOD", "DEADLCK", "ROFS",
	"STALE_FH", "FBIG", "FAILED"}

func (s lockStatus) String() string {
	switch {
	case s < lockStatus(len(lockNames)):
		return lockNames[s]
	case s == lockGarbage:
		return "GARBAGE_ARGS"
	}
	return fmt.Sprintf("nlm4_stats %d", uint32(s))
}

// locked wants one of some statuses of a lock.
func (t *T) locked(st lockStatus, want ...lockStatus) {
	if !slices.Contains(want, st) {
		t.wrong(anyOf(want), st.String())
	}
}

// kept wants a lock to be refused, usually with one of some statuses: another one is a difference.
func (t *T) kept(st lockStatus, usual ...lockStatus) {
	if st == lockGranted || st == lockBlocked {
		t.wrong(anyOf(usual), st.String())
	}
	t.prefer(slices.Contains(usual, st), anyOf(usual), st.String())
}

func anyOf(want []lockStatus) (text string) {
	for i, w := range want {
		if i > 0 {
			text += " or "
		}
		text += w.String()
	}
	return text
}

// lookFor says where the server has a program: where the configuration says, where NFS is, or where the port mapper of
// its host says; or why there is none. It is looked for once.
func (s *session) lookFor(prog, vers uint32, given string) (addr, none string) {
	if at, known := s.places[prog]; known {
		return at.addr, at.none
	}
	if s.places == nil {
		s.places = map[uint32]placeOf{}
	}
	at := s.look(prog, vers, given)
	s.places[prog] = at
	return at.addr, at.none
}

// placeOf is where a program is, or why there is none.
type placeOf struct{ addr, none string }

func (s *session) look(prog, vers uint32, given string) placeOf {
	if given != "" {
		if !s.cfg.has(given, prog, vers) {
			return placeOf{none: fmt.Sprintf("program %d version %d is not at %s", prog, vers, given)}
		}
		return placeOf{addr: given}
	}
	if s.cfg.has(s.cfg.Addr, prog, vers) {
		return placeOf{addr: s.cfg.Addr}
	}
	host, _, err := net.SplitHostPort(s.cfg.Addr)
	if err != nil {
		return placeOf{none: err.Error()}
	}
	mapper := net.JoinHostPort(host, mapperPort)
	port, err := s.cfg.mapped(mapper, prog, vers)
	at := net.JoinHostPort(host, fmt.Sprint(port))
	if err != nil || port == 0 || !s.cfg.has(at, prog, vers) {
		return placeOf{none: fmt.Sprintf("the server has no program %d version %d: neither beside NFS nor by the port "+
			"mapper at %s", prog, vers, mapper)}
	}
	return placeOf{addr: at}
}

// mapperPort is where a host has its port mapper (RFC 1833, section 3).
const mapperPort = "111"

// has tells whether a program answers at an address.
func (cfg *Config) has(addr string, prog, vers uint32) bool {
	p, err := cfg.ask(addr, newHeader(prog, vers, procNull, nil), nil)
	return err == nil && !p.denied && p.stat == success
}

// mapped is the port over TCP that a port mapper has for a program, or 0 if it has none.
func (cfg *Config) mapped(mapper string, prog, vers uint32) (port uint32, err error) {
	const tcp = 6
	a := newArgs().u32("prog", prog).u32("vers", vers).u32("prot", tcp).u32("port", 0)
	p, err := cfg.ask(mapper, newHeader(portmapProg, portmapVers, procGetport, nil), a.b)
	if err != nil || p.denied || p.stat != success {
		return 0, err
	}
	r := reader{b: p.body}
	return r.u32(), nil
}

// ask makes one call on a connection of its own.
func (cfg *Config) ask(addr string, h header, args []byte) (*rpcReply, error) {
	c, err := cfg.dial(addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	h.xid = 1
	return c.call(h, args)
}

// nlmConn is the check's connection to NLM; without one it is skipped.
func (t *T) nlmConn() *conn {
	if c := t.locks.conn; c != nil && !c.broken {
		return c
	}
	addr, none := t.s.lookFor(nlmProg, nlmVers, t.s.cfg.LockAddr)
	if none != "" {
		t.skip("%s", none)
	}
	t.locks.conn = t.dialTo(addr)
	return t.locks.conn
}

// needOldVersion skips where the server has not this version of NLM, or not for handles of NFS version 3: it went with
// NFS version 2, whose handles have 32 bytes.
func (t *T) needOldVersion(vers uint32) {
	p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, vers, procNull, nil), nil)
	if p.denied || p.stat != success {
		t.skip("the server has no version %d of NLM: %v", vers, p)
	}
	o := t.owner(t.fileAs(super, t.dir(), "old", 0o666))
	o.vers = vers
	if st, _ := o.call(procLockTest, whole, true, false); st == lockGarbage {
		t.skip("the server takes no handles of NFS version 3 in version %d of NLM", vers)
	}
}

// nlm makes a call of NLM, and checks that its cookie came back. Of GARBAGE_ARGS the result is empty.
func (t *T) nlm(vers, proc uint32, c *cred, cookie string, a *args) (lockStatus, *reader) {
	p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, vers, proc, c), a)
	if !p.denied && p.stat == garbageArgs {
		return lockGarbage, &reader{empty: true}
	}
	if !p.denied && p.stat == procUnavail {
		t.skip("the server has no %s in version %d of NLM", nlmNames[proc], vers)
	}
	if p.denied || p.stat != success {
		t.broken("the call is carried out", p.String())
	}
	r := &reader{b: p.body}
	if got := r.opaque(1024); got != cookie && r.err == "" {
		t.broken("the cookie of the call: "+short(cookie), short(got))
	}
	st := lockStatus(r.u32())
	t.then(st.String())
	if st == lockGrace {
		t.skip("the server is in its grace period: give it some time after its start")
	}
	if most := lockFailed; st > most || vers < 4 && st > lockDeadlock {
		t.broken(fmt.Sprintf("a status of version %d", vers), st.String())
	}
	return st, r
}

// voidNLM makes a call that has no result.
func (t *T) voidNLM(vers, proc uint32, a *args) {
	p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, vers, proc, super), a)
	if !p.denied && p.stat == procUnavail {
		t.skip("the server has no %s in version %d of NLM", nlmNames[proc], vers)
	}
	if p.denied || p.stat != success || len(p.body) > 0 {
		t.broken("SUCCESS with 0 bytes", p.String())
	}
}
