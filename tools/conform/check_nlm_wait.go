package conform

import (
	"fmt"
	"time"
)

// Waiting for locks, and the calls back: GRANTED, and the results of messages.

func lockWaitChecks() []Check {
	return group("nlm-wait", "C702, NLM_GRANTED",
		must("granted", "who waits for a lock is called when it is free, and has it then", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{15, 10}, true)
			ann.gives(span{10, 20})
			bob.granted(span{15, 10}, true)
			t.locked(ann.lock(span{15, 1}), lockDenied)
			bob.gives(span{15, 10})
			ann.finds(span{15, 10}, true)
		}),
		must("shared", "who waits for a shared lock is called when the exclusive one becomes shared", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, false)
			t.locked(ann.share(span{10, 20}), lockGranted)
			bob.granted(span{10, 20}, false)
		}),
		must("part", "who waits for a part of a lock is called when that part is free", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{12, 3}, true)
			ann.gives(span{12, 3})
			bob.granted(span{12, 3}, true)
			bob.finds(span{10, 2}, false)
		}),
		must("all-shared", "all who wait for shared locks are called when an exclusive one is given back", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			carl := t.owner(ann.file)
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, false)
			carl.blocks(span{10, 20}, false)
			ann.gives(span{10, 20})
			for range 2 {
				t.next("GRANTED to both", func(e event) bool {
					return e.file == ann.file && (e.svid == bob.svid || e.svid == carl.svid)
				})
			}
			t.locked(ann.lock(span{10, 20}), lockDenied)
		}),
		should("order", "who waited first has the lock first", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			carl := t.owner(ann.file)
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			carl.blocks(span{10, 20}, true)
			ann.gives(span{10, 20})
			e := t.next("GRANTED", func(e event) bool { return e.file == ann.file })
			same(t, "svid", e.svid, bob.svid)
			bob.gives(span{10, 20})
			carl.granted(span{10, 20}, true)
		}),
		must("asked-again", "a LOCK that is sent again while it waits is BLOCKED, and granted when it is free", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			bob.blocks(span{10, 20}, true)
			ann.gives(span{10, 20})
			bob.granted(span{10, 20}, true)
			bob.gives(span{10, 20})
			ann.finds(span{10, 20}, true)
		}),
		must("refused", "a client that answers GRANTED with DENIED does not have the lock", func(t *T) {
			t.clientThat(func(event) lockStatus { return lockDenied })
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			ann.gives(span{10, 20})
			bob.granted(span{10, 20}, true)
			ann.eventually(span{10, 20})
		}),
		must("at-once", "a lock that is free is granted at once to who would wait", func(t *T) {
			ann, bob := t.twoOwners()
			t.locked(ann.wait(span{10, 20}, true), lockGranted)
			t.locked(bob.lock(span{10, 20}), lockDenied)
		}).at("C702, NLM_LOCK"),
		must("version-3", "who waits in version 3 is called in version 3", func(t *T) { waitIn(t, 3) }),
		must("version-1", "who waits in version 1 is called in version 1", func(t *T) { waitIn(t, 1) }),
	)
}

// waitIn waits for a lock in an old version.
func waitIn(t *T, vers uint32) {
	t.needOldVersion(vers)
	t.clientMachine()
	ann, bob := t.twoOwners()
	ann.has(span{10, 20})
	bob.vers = vers
	bob.blocks(span{15, 10}, true)
	ann.gives(span{10, 20})
	bob.granted(span{15, 10}, true)
}

// askPause is how long to wait between looks if a lock is free, which nobody tells.
const askPause = 20 * time.Millisecond

// eventually wants o to get a lock within the time of a reply.
func (o *owner) eventually(s span) {
	var st lockStatus
	for end := time.Now().Add(o.t.s.cfg.Timeout); time.Now().Before(end); time.Sleep(askPause) {
		if st = o.lock(s); st == lockGranted {
			return
		}
	}
	o.t.wrong(fmt.Sprintf("GRANTED within %v", o.t.s.cfg.Timeout), st.String())
}

// lockCancelChecks are about waits that end otherwise.
func lockCancelChecks() []Check {
	return group("nlm-wait", "C702, NLM_CANCEL",
		must("cancel", "a wait that is cancelled is over: the lock is free for others", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			t.locked(bob.cancel(span{10, 20}, true), lockGranted)
			ann.gives(span{10, 20})
			t.locked(t.owner(ann.file).lock(span{10, 20}), lockGranted)
		}),
		must("cancel-next", "when a wait is cancelled, those behind it wait on, and have the lock in the end", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			carl := t.owner(ann.file)
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			carl.blocks(span{10, 20}, true)
			t.locked(bob.cancel(span{10, 20}, true), lockGranted)
			ann.gives(span{10, 20})
			carl.granted(span{10, 20}, true)
		}),
		must("cancel-other", "CANCEL by another owner ends no wait", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			t.owner(ann.file).cancel(span{10, 20}, true)
			ann.gives(span{10, 20})
			bob.granted(span{10, 20}, true)
		}),
		should("cancel-nothing", "CANCEL where nobody waits is DENIED, and takes no lock away", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			st := ann.cancel(span{10, 20}, true)
			bob.finds(span{10, 20}, false)
			t.locked(st, lockDenied)
		}),
	)
}

// lockMessageChecks are about the calls that are answered by calls.
func lockMessageChecks() []Check {
	// answer sends a message, and waits for the call with its result.
	answer := func(o *owner, proc uint32, s span, exclusive, block bool) event {
		cookie := fmt.Sprintf("m%07d", o.t.xid()&0xffff)
		o.t.voidNLM(o.vers, proc, o.args(proc, cookie, s, exclusive, block))
		e := o.t.next(nlmNames[proc+fromMessageToRes], func(e event) bool { return e.cookie == cookie })
		same(o.t, "procedure", nlmNames[e.proc], nlmNames[proc+fromMessageToRes])
		same(o.t, "version of the call", e.vers, o.vers)
		return e
	}
	const lock, cancel, unlock = procLockTestMsg + 1, procLockTestMsg + 2, procLockTestMsg + 3
	return group("nlm-msg", "C702, NLM_LOCK_MSG",
		must("test", "TEST_MSG is answered by TEST_RES, with the holder", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			e := answer(bob, procLockTestMsg, span{29, 1}, true, false)
			t.locked(e.status, lockDenied)
			same(t, "svid", e.held.svid, ann.svid)
			same(t, "the bytes", e.held.span, span{10, 20})
			t.locked(answer(bob, procLockTestMsg, span{30, 1}, true, false).status, lockGranted)
		}).at("C702, NLM_TEST_MSG"),
		must("lock", "LOCK_MSG locks, and is answered by LOCK_RES", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			t.locked(answer(ann, lock, span{10, 20}, true, false).status, lockGranted)
			bob.finds(span{10, 20}, false)
			t.locked(answer(bob, lock, span{10, 20}, true, false).status, lockDenied)
		}),
		must("unlock", "UNLOCK_MSG unlocks, and is answered by UNLOCK_RES", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			t.locked(answer(ann, unlock, span{10, 20}, true, false).status, lockGranted)
			bob.finds(span{10, 20}, true)
		}).at("C702, NLM_UNLOCK_MSG"),
		must("wait", "a LOCK_MSG that waits is answered BLOCKED, and then the client is called", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.waits = append(bob.waits, wanted{span{10, 20}, true})
			t.locked(answer(bob, lock, span{10, 20}, true, true).status, lockBlocked)
			ann.gives(span{10, 20})
			bob.granted(span{10, 20}, true)
		}),
		must("cancel", "CANCEL_MSG ends a wait, and is answered by CANCEL_RES", func(t *T) {
			t.clientMachine()
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.blocks(span{10, 20}, true)
			t.locked(answer(bob, cancel, span{10, 20}, true, true).status, lockGranted)
			ann.gives(span{10, 20})
			t.locked(t.owner(ann.file).lock(span{10, 20}), lockGranted)
		}).at("C702, NLM_CANCEL_MSG"),
	)
}
