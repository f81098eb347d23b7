package conform

// Reservations of files (SHARE), machines that have started again (FREE_ALL), and NSM.

// What a reservation does, and denies to others (fsh_access, fsh_mode).
const (
	shareNone  = 0
	shareRead  = 1
	shareWrite = 2
	shareBoth  = 3
)

// reserve makes a call about a reservation.
func (o *owner) reserve(proc, access, deny uint32) lockStatus {
	const cookie = "reserved"
	a := newArgs().opaque("cookie", cookie).opaque("caller", o.caller).fh("fh", o.file).opaque("oh", o.oh)
	a.u32("mode", deny).u32("access", access).bool("reclaim", false)
	st, r := o.t.nlm(o.vers, proc, o.who, cookie, a)
	r.u32() // the sequence number
	o.t.done(r)
	return st
}

func (o *owner) reserves(access, deny uint32) lockStatus {
	return o.reserve(procLockShare, access, deny)
}

func (o *owner) releases() lockStatus { return o.reserve(procLockUnshare, shareNone, shareNone) }

// sharers are owners of reservations, which are given back in the end.
func (t *T) sharers() (ann, bob *owner) {
	ann, bob = t.twoOwners()
	t.locks.sharers = []*owner{ann, bob}
	return ann, bob
}

func shareChecks() []Check {
	return group("nlm-share", "C702, NLM_SHARE",
		must("reserve", "a file is reserved, and denied to who wants what is denied", func(t *T) {
			ann, bob := t.sharers()
			t.locked(ann.reserves(shareRead, shareWrite), lockGranted)
			t.locked(bob.reserves(shareWrite, shareNone), lockDenied)
			t.locked(bob.reserves(shareBoth, shareNone), lockDenied)
			t.locked(bob.reserves(shareRead, shareNone), lockGranted)
		}),
		must("deny-what-is-done", "a file is denied to who would deny what another does", func(t *T) {
			ann, bob := t.sharers()
			t.locked(ann.reserves(shareRead, shareNone), lockGranted)
			t.locked(bob.reserves(shareRead, shareRead), lockDenied)
			t.locked(bob.reserves(shareRead, shareBoth), lockDenied)
			t.locked(bob.reserves(shareRead, shareWrite), lockGranted)
		}),
		must("compatible", "reservations that deny nothing are not in each other's way", func(t *T) {
			ann, bob := t.sharers()
			t.locked(ann.reserves(shareBoth, shareNone), lockGranted)
			t.locked(bob.reserves(shareBoth, shareNone), lockGranted)
		}),
		must("replace", "another reservation by its owner takes the place of the first", func(t *T) {
			ann, bob := t.sharers()
			t.locked(ann.reserves(shareRead, shareWrite), lockGranted)
			t.locked(ann.reserves(shareRead, shareNone), lockGranted)
			t.locked(bob.reserves(shareWrite, shareNone), lockGranted)
		}),
		must("release", "UNSHARE ends a reservation", func(t *T) {
			ann, bob := t.sharers()
			t.locked(ann.reserves(shareBoth, shareBoth), lockGranted)
			t.locked(ann.releases(), lockGranted)
			t.locked(bob.reserves(shareBoth, shareBoth), lockGranted)
		}).at("C702, NLM_UNSHARE"),
		must("release-others", "UNSHARE by another owner ends nothing", func(t *T) {
			ann, bob := t.sharers()
			t.locked(ann.reserves(shareBoth, shareBoth), lockGranted)
			bob.releases()
			t.locked(bob.reserves(shareRead, shareNone), lockDenied)
		}).at("C702, NLM_UNSHARE"),
		must("release-nothing", "UNSHARE of what is not reserved is GRANTED", func(t *T) {
			ann, _ := t.sharers()
			t.locked(ann.releases(), lockGranted)
		}).at("C702, NLM_UNSHARE"),
		must("locks-apart", "a reservation is in the way of no lock", func(t *T) {
			ann, bob := t.sharers()
			t.locked(ann.reserves(shareBoth, shareBoth), lockGranted)
			t.locked(bob.lock(whole), lockGranted)
		}),
		must("stale", "SHARE of a file that was removed is refused", func(t *T) {
			ann, _ := t.sharers()
			t.prepared("REMOVE", t.remove(super, t.dir(), "f").st)
			t.kept(ann.reserves(shareRead, shareNone), lockStale)
		}).at("RFC 1813, 6.1.4"),
		should("modes", "a mode, or an access, of 4 is refused", func(t *T) {
			ann, _ := t.sharers()
			t.kept(ann.reserves(4, shareNone), lockGarbage, lockDenied, lockFailed)
			t.kept(ann.reserves(shareNone, 4), lockGarbage, lockDenied, lockFailed)
		}),
	)
}

// freeAllChecks are about machines that have started again.
func freeAllChecks() []Check {
	started := func(t *T, name string) {
		t.voidNLM(nlmVers, procLockFreeAll, newArgs().opaque("name", name).u32("state", 3))
	}
	return group("nlm", "C702, NLM_FREE_ALL",
		must("free-all", "FREE_ALL frees the locks of a machine that has started", func(t *T) {
			ann, bob := t.twoOwners()
			ann.caller, bob.caller = "conform-a", "conform-b"
			ann.has(span{10, 20})
			started(t, ann.caller)
			t.locked(bob.lock(span{10, 20}), lockGranted)
		}),
		must("free-all-waits", "who waits for a lock of a machine that has started is called", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.caller, bob.caller = "conform-a", "conform-b"
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			started(t, ann.caller)
			bob.granted(span{10, 20}, true)
		}),
		should("free-all-others", "FREE_ALL of another machine frees nothing", func(t *T) {
			ann, bob := t.twoOwners()
			ann.caller, bob.caller = "conform-a", "conform-b"
			ann.has(span{10, 20})
			started(t, bob.caller)
			bob.finds(span{10, 20}, false)
		}),
		should("free-all-shares", "FREE_ALL ends the reservations of a machine that has started", func(t *T) {
			ann, bob := t.sharers()
			ann.caller, bob.caller = "conform-a", "conform-b"
			t.locked(ann.reserves(shareBoth, shareBoth), lockGranted)
			started(t, ann.caller)
			t.locked(bob.reserves(shareBoth, shareBoth), lockGranted)
		}),
		must("free-all-nobody", "FREE_ALL of a machine that has nothing is answered", func(t *T) {
			t.nlmConn()
			started(t, "conform-nobody")
		}),
	)
}

// statusMonitorChecks are about NSM, which tells who has started again.
func statusMonitorChecks() []Check {
	nsm := func(t *T, proc uint32, a *args, words int) (result []uint32) {
		addr, none := t.s.lookFor(nsmProg, nsmVers, "")
		if none != "" {
			t.skip("%s", none)
		}
		p := t.rpcOn(t.dialTo(addr), newHeader(nsmProg, nsmVers, proc, super), a)
		if p.denied || p.stat != success {
			t.broken("the call is carried out", p.String())
		}
		r := &reader{b: p.body}
		for range words {
			result = append(result, r.u32())
		}
		t.done(r)
		return result
	}
	me := func() *args {
		a := newArgs().opaque("host", "conform-host").opaque("caller", "conform-watcher")
		return a.u32("prog", 400100).u32("vers", 1).u32("proc", 1)
	}
	return group("nsm", "C702, SM_STAT",
		must("null", "NULL of NSM has an empty result", func(t *T) { nsm(t, procNull, nil, 0) }),
		must("stat", "STAT tells of success or failure, and a state", func(t *T) {
			got := nsm(t, procStatusStat, newArgs().opaque("name", "conform-host"), 2)
			t.that(got[0] <= 1, "0 or 1", "%d", got[0])
		}),
		should("mon-refused", "MON from another machine is refused: only the lock manager beside it may ask", func(t *T) {
			got := nsm(t, procStatusMon, me().raw("priv", make([]byte, 16)...), 2)
			if got[0] == 0 {
				nsm(t, procStatusUnmon, me(), 1)
			}
			same(t, "the result (1: refused)", got[0], 1)
		}).at("C702, SM_MON"),
		should("state", "the state is odd, as the server is up", func(t *T) {
			got := nsm(t, procStatusUnmon, me(), 1)
			same(t, "state modulo 2", got[0]%2, 1)
		}).at("C702, SM_UNMON"),
		must("notify", "NOTIFY of a machine that nobody knows is answered", func(t *T) {
			nsm(t, procStatusNotify, newArgs().opaque("name", "conform-nobody").u32("state", 3), 0)
		}).at("C702, SM_NOTIFY"),
	)
}
