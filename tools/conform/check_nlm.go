package conform

import "strings"

// Locks (NLM): who excludes whom, and which bytes. Section 6.2 of RFC 1813 says that the procedures of version 4 mean
// what those of version 3 mean, which X/Open C702 describes.

func lockChecks() []Check {
	return group("nlm", "C702, NLM_LOCK",
		must("null", "NULL of NLM has an empty result", func(t *T) {
			t.voidNLM(nlmVers, procNull, nil)
		}).at("RFC 1813, 6.2.0"),
		must("lock", "bytes that nobody has are locked", func(t *T) {
			ann, _ := t.twoOwners()
			t.locked(ann.lock(span{10, 20}), lockGranted)
		}),
		must("exclusive", "an exclusive lock excludes exclusive and shared ones of others", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			t.locked(bob.lock(span{10, 20}), lockDenied)
			t.locked(bob.share(span{10, 20}), lockDenied)
		}),
		must("shared", "a shared lock excludes exclusive ones of others, and no shared one", func(t *T) {
			ann, bob := t.twoOwners()
			ann.shares(span{10, 20})
			t.locked(bob.lock(span{10, 20}), lockDenied)
			t.locked(bob.share(span{10, 20}), lockGranted)
		}),
		must("again", "the same lock is granted to its owner again", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			t.locked(ann.lock(span{10, 20}), lockGranted)
			ann.gives(span{10, 20})
			bob.finds(span{10, 20}, true)
		}),
		must("upgrade", "a shared lock becomes exclusive for its owner, if nobody shares it", func(t *T) {
			ann, bob := t.twoOwners()
			ann.shares(span{10, 20})
			t.locked(ann.lock(span{10, 20}), lockGranted)
			t.locked(bob.share(span{10, 20}), lockDenied)
		}),
		must("upgrade-denied", "a shared lock that others share does not become exclusive, and stays", func(t *T) {
			ann, bob := t.twoOwners()
			ann.shares(span{10, 20})
			bob.shares(span{10, 20})
			t.locked(ann.lock(span{10, 20}), lockDenied)
			bob.gives(span{10, 20})
			bob.finds(span{10, 20}, false)
		}),
		must("downgrade", "an exclusive lock becomes shared for its owner", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			t.locked(ann.share(span{10, 20}), lockGranted)
			t.locked(bob.share(span{10, 20}), lockGranted)
		}),
		must("not-queued", "a lock that is denied, and was not to be waited for, is not granted later", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			t.locked(bob.lock(span{10, 20}), lockDenied)
			ann.gives(span{10, 20})
			t.owner(ann.file).finds(span{10, 20}, true)
		}),
		must("non-monitored", "NM_LOCK locks as LOCK does", func(t *T) {
			ann, bob := t.twoOwners()
			t.locked(ann.plain(procLockNMLock, span{10, 20}, true, false), lockGranted)
			t.locked(bob.lock(span{10, 20}), lockDenied)
			t.locked(bob.plain(procLockNMLock, span{10, 20}, false, false), lockDenied)
		}).at("C702, NLM_NM_LOCK"),
		must("advisory", "a lock keeps nobody from writing and reading", func(t *T) {
			ann, _ := t.twoOwners()
			ann.has(whole)
			t.ok(t.write(super, ann.file, 0, "data", fileSync).st)
			t.text("content", t.content(ann.file), "data")
		}),
		must("test", "TEST of bytes that nobody else has is GRANTED, and locks nothing", func(t *T) {
			ann, bob := t.twoOwners()
			ann.finds(span{10, 20}, true)
			bob.finds(span{10, 20}, true)
			ann.has(span{10, 20})
			ann.finds(span{10, 20}, true)
		}).at("C702, NLM_TEST"),
		must("test-holder", "TEST tells the lock that is in the way", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			st, h := bob.test(span{29, 5}, false)
			t.locked(st, lockDenied)
			same(t, "svid", h.svid, ann.svid)
			same(t, "exclusive", h.exclusive, true)
			same(t, "the bytes", h.span, span{10, 20})
			t.prefer(h.oh == ann.oh, "owner "+short(ann.oh), short(h.oh))
		}).at("C702, NLM_TEST"),
		must("test-shared", "TEST tells that the lock in the way is shared, and finds no way barred to share it", func(t *T) {
			ann, bob := t.twoOwners()
			ann.shares(span{10, 20})
			st, h := bob.test(span{10, 20}, true)
			t.locked(st, lockDenied)
			same(t, "exclusive", h.exclusive, false)
			st, _ = bob.test(span{10, 20}, false)
			t.locked(st, lockGranted)
		}).at("C702, NLM_TEST"),
		should("granted-unasked", "GRANTED of a lock that the server does not wait for is DENIED", func(t *T) {
			ann, _ := t.twoOwners()
			t.locked(ann.plain(procLockGranted, span{10, 20}, true, false), lockDenied)
		}).at("C702, NLM_GRANTED"),
	)
}

// lockRangeChecks are about which bytes a lock is of.
func lockRangeChecks() []Check {
	return group("nlm", "C702, NLM_UNLOCK",
		must("unlock", "bytes that were given back are free", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			ann.gives(span{10, 20})
			t.locked(bob.lock(span{10, 20}), lockGranted)
		}),
		must("unlock-nothing", "UNLOCK of bytes that are not locked is GRANTED", func(t *T) {
			ann, _ := t.twoOwners()
			ann.gives(span{10, 20})
		}),
		must("unlock-others", "UNLOCK by another owner frees nothing", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			bob.unlock(span{10, 20})
			bob.finds(span{10, 20}, false)
		}),
		must("unlock-start", "the first bytes of a lock can be given back", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			ann.gives(span{5, 10})
			bob.finds(span{0, 15}, true)
			bob.finds(span{15, 1}, false)
			bob.finds(span{29, 1}, false)
		}),
		must("unlock-end", "the last bytes of a lock can be given back", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			ann.gives(span{20, 50})
			bob.finds(span{20, 0}, true)
			bob.finds(span{19, 1}, false)
			bob.finds(span{10, 1}, false)
		}),
		must("unlock-middle", "bytes within a lock can be given back, and those on both sides stay", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			ann.gives(span{15, 5})
			bob.finds(span{15, 5}, true)
			bob.finds(span{14, 1}, false)
			bob.finds(span{20, 1}, false)
			t.locked(bob.lock(span{15, 5}), lockGranted)
		}),
		must("downgrade-middle", "bytes within an exclusive lock can be shared, and those on both sides are not", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			t.locked(ann.share(span{15, 5}), lockGranted)
			t.locked(bob.share(span{15, 5}), lockGranted)
			t.locked(bob.share(span{14, 1}), lockDenied)
			t.locked(bob.share(span{20, 1}), lockDenied)
		}).at("C702, NLM_LOCK"),
		must("neighbours", "locks side by side are not in each other's way", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			t.locked(bob.lock(span{0, 10}), lockGranted)
			t.locked(bob.lock(span{30, 0}), lockGranted)
			t.locked(bob.lock(span{9, 2}), lockDenied)
			t.locked(bob.lock(span{29, 2}), lockDenied)
		}).at("C702, NLM_LOCK"),
		must("overlap", "one byte in common is enough", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 20})
			for _, s := range []span{{10, 1}, {29, 1}, {0, 11}, {29, 100}, {15, 2}, {0, 0}, {0, 100}} {
				t.locked(bob.lock(s), lockDenied)
			}
		}).at("C702, NLM_LOCK"),
		should("merge", "two locks side by side, of one owner and kind, are one for TEST", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 10})
			ann.has(span{20, 10})
			st, h := bob.test(span{29, 1}, true)
			t.locked(st, lockDenied)
			same(t, "the bytes", h.span, span{10, 20})
		}).at("C702, NLM_TEST"),
		must("several", "one UNLOCK gives back what several LOCKs took", func(t *T) {
			ann, bob := t.twoOwners()
			for _, s := range []span{{0, 5}, {10, 5}, {20, 5}, {24, 10}} {
				ann.has(s)
			}
			ann.gives(span{2, 30})
			bob.finds(span{2, 30}, true)
			bob.finds(span{1, 1}, false)
			bob.finds(span{33, 1}, false)
		}),
		must("to-the-end", "a length of 0 reaches to the end of any file", func(t *T) {
			ann, bob := t.twoOwners()
			ann.has(span{10, 0})
			t.locked(bob.lock(span{1 << 62, 1}), lockDenied)
			t.locked(bob.lock(span{0, 10}), lockGranted)
			ann.gives(span{1 << 40, 0})
			bob.finds(span{1 << 62, 1}, true)
			bob.finds(span{1<<40 - 1, 1}, false)
		}).at("C702, NLM_LOCK"),
		should("last-byte", "byte 2^64-1 can be locked, or is FBIG", func(t *T) {
			ann, bob := t.twoOwners()
			st := ann.lock(span{1<<64 - 1, 1})
			t.locked(st, lockGranted, lockBig)
			if st == lockGranted {
				bob.finds(span{1<<64 - 1, 1}, false)
				bob.finds(span{0, 1<<64 - 1}, true)
			}
		}).at("RFC 1813, 6.3.1"),
		must("beyond-2^64", "bytes that end beyond 2^64 are refused, and none is locked", func(t *T) {
			ann, bob := t.twoOwners()
			t.kept(ann.lock(span{1<<64 - 1, 2}), lockBig)
			t.kept(ann.lock(span{2, 1<<64 - 1}), lockBig)
			bob.finds(span{0, 100}, true)
		}).at("RFC 1813, 6.3.1"),
		must("files", "locks on different files are not in each other's way", func(t *T) {
			ann, _ := t.twoOwners()
			ann.has(whole)
			other := t.owner(t.fileAs(super, t.dir(), "g", 0o666))
			t.locked(other.lock(whole), lockGranted)
		}).at("C702, NLM_LOCK"),
		must("names", "a lock is on the file, whatever name leads to it", func(t *T) {
			ann, bob := t.twoOwners()
			t.prepared("LINK", t.link(super, ann.file, t.dir(), "g").st)
			ann.has(span{10, 20})
			l := t.lookup(super, t.dir(), "g")
			t.ok(l.st)
			bob.file = l.obj
			t.locked(bob.lock(span{10, 20}), lockDenied)
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "h").st)
			t.locked(bob.lock(span{10, 20}), lockDenied)
		}).at("C702, NLM_LOCK"),
	)
}

// lockOwnerChecks are about who is the same owner.
func lockOwnerChecks() []Check {
	// differing wants bob, who is as ann but for what change does, to be another owner.
	differing := func(change func(bob *owner)) func(t *T) {
		return func(t *T) {
			ann, bob := t.twoOwners()
			bob.svid, bob.oh = ann.svid, ann.oh
			change(bob)
			ann.has(span{10, 20})
			t.locked(bob.lock(span{10, 20}), lockDenied)
		}
	}
	return group("nlm", "C702, NLM_LOCK",
		must("owner-number", "owners with different numbers (svid) are different, also if they have one name",
			differing(func(bob *owner) { bob.svid += 1000 })),
		should("owner-name", "owners with different names (oh) are different, also if they have one number",
			differing(func(bob *owner) { bob.oh = "other@conform" })),
		should("owner-machine", "owners on machines with different names are different, also if all else is the same",
			differing(func(bob *owner) { bob.caller = "other-machine" })),
		must("owner-user", "an owner is the same whoever the credentials name", func(t *T) {
			ann, _ := t.twoOwners()
			ann.has(span{10, 20})
			ann.who = alice
			t.locked(ann.lock(span{10, 20}), lockGranted)
		}),
		should("owner-zeros", "a name of an owner does not end at a zero byte", func(t *T) {
			ann, bob := t.twoOwners()
			bob.svid, ann.oh, bob.oh = ann.svid, "a\x00b", "a\x00c"
			ann.has(span{10, 20})
			t.locked(bob.lock(span{10, 20}), lockDenied)
		}),
		should("owner-long", "names of owners of 255 bytes are told apart by their last one", func(t *T) {
			ann, bob := t.twoOwners()
			bob.svid, ann.oh, bob.oh = ann.svid, strings.Repeat("x", 254)+"a", strings.Repeat("x", 254)+"b"
			ann.has(span{10, 20})
			t.locked(bob.lock(span{10, 20}), lockDenied)
		}),
		should("owner-empty", "an owner may have an empty name", func(t *T) {
			ann, bob := t.twoOwners()
			ann.oh = ""
			t.locked(ann.lock(span{10, 20}), lockGranted)
			t.locked(bob.lock(span{10, 20}), lockDenied)
		}),
	)
}

// lockRightChecks are about what may be locked, and by whom.
func lockRightChecks() []Check {
	each := func(name, what string, change func(t *T, o *owner), usual ...lockStatus) Check {
		return must(name, what+" is refused by LOCK, TEST, UNLOCK, and CANCEL", func(t *T) {
			ann, _ := t.twoOwners()
			change(t, ann)
			t.kept(ann.lock(span{10, 20}), usual...)
			t.kept(ann.plain(procLockCancel, span{10, 20}, true, true), append(usual, lockDenied)...)
			st, _ := ann.test(span{10, 20}, true)
			t.kept(st, usual...)
			if st := ann.unlock(span{10, 20}); st != lockGranted { // which some say of what is not locked
				t.kept(st, usual...)
			}
		})
	}
	return group("nlm", "RFC 1813, 6.1.4",
		each("stale", "the handle of a file that was removed", func(t *T, o *owner) {
			t.prepared("REMOVE", t.remove(super, t.dir(), "f").st)
		}, lockStale),
		each("handle-empty", "a handle of 0 bytes", func(t *T, o *owner) { o.file = "" }, lockStale, lockFailed, lockGarbage),
		each("handle-made-up", "a handle of 64 bytes of 0xff", func(t *T, o *owner) {
			o.file = fh(strings.Repeat("\xff", 64))
		}, lockStale, lockFailed),
		should("handle-long", "a handle of 65 bytes is refused", func(t *T) {
			ann, _ := t.twoOwners()
			ann.file += fh(strings.Repeat("\x00", 65-len(ann.file)))
			t.kept(ann.lock(span{10, 20}), lockStale, lockFailed, lockGarbage)
		}),
		should("directory", "a directory is not locked", func(t *T) {
			t.kept(t.owner(t.sub("d")).lock(span{10, 20}), lockFailed, lockDenied, lockStale)
		}),
		should("no-right", "who may neither read nor write a file, and does not own it, does not lock it", func(t *T) {
			t.needUsers()
			ann := t.owner(t.fileAs(alice, t.dir(), "f", 0o600))
			ann.who = bob
			t.kept(ann.lock(span{10, 20}), lockFailed, lockDenied)
			ann.who = alice
			t.locked(ann.lock(span{10, 20}), lockGranted)
		}),
	)
}
