package conform

import (
	"fmt"
	"strings"
)

// The form of calls of NLM, and what differs between its versions.

func lockFormChecks() []Check {
	cookie := func(name, what, text string) Check {
		return should(name, what+" comes back as it was", func(t *T) {
			ann, _ := t.twoOwners()
			st, r := t.nlm(nlmVers, procLockTest, super, text, ann.args(procLockTest, text, span{1, 1}, true, false))
			t.locked(st, lockGranted)
			t.done(r)
		})
	}
	return group("nlm", "RFC 4506, 4",
		cookie("cookie-empty", "a cookie of 0 bytes", "").at("C702, NLM_TEST"),
		cookie("cookie-padded", "a cookie of 5 bytes, with 3 zero bytes behind it,", "12345").at("RFC 4506, 4.10"),
		cookie("cookie-long", "a cookie of 1024 bytes", strings.Repeat("c\x00", 512)).at("C702, NLM_TEST"),
		must("cut", "arguments that end too early are GARBAGE_ARGS, wherever that is, and lock nothing", func(t *T) {
			ann, bob := t.twoOwners()
			for _, proc := range []uint32{procLockTest, procLockLock, procLockCancel, procLockUnlock, procLockNMLock} {
				whole := ann.args(proc, "cookie", span{10, 20}, true, false)
				for n := 0; n < len(whole.b); n += 4 {
					a := newArgs().raw(fmt.Sprintf("%d of %d bytes", n, len(whole.b)), whole.b[:n]...)
					p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, nlmVers, proc, super), a)
					if p.denied || p.stat != garbageArgs {
						t.wrong("GARBAGE_ARGS", p.String())
					}
				}
			}
			bob.finds(whole, true)
		}),
		should("bool", "a bool that is 2 is GARBAGE_ARGS, and locks nothing", func(t *T) {
			ann, bob := t.twoOwners()
			a := newArgs().opaque("cookie", "cookie").u32("block", 0).u32("exclusive", 2)
			ann.lockArgs(a, span{10, 20}).bool("reclaim", false).u32("state", 1)
			p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, nlmVers, procLockLock, super), a)
			t.that(!p.denied && p.stat == garbageArgs, "GARBAGE_ARGS", "%v", p)
			bob.finds(whole, true)
		}).at("RFC 4506, 4.4"),
		must("long-names", "names of 1025 bytes are refused, lock nothing, and the server goes on", func(t *T) {
			ann, bob := t.twoOwners()
			long := strings.Repeat("x", 1025)
			for _, change := range []func(o *owner){
				func(o *owner) { o.caller = long }, func(o *owner) { o.oh = long }, func(o *owner) { o.file = fh(long) },
			} {
				o := *ann
				change(&o)
				t.kept(o.lock(whole), lockGarbage, lockFailed, lockNoLocks)
			}
			bob.finds(whole, true)
		}).at("RFC 1813, 6.1.4"),
		must("length-lies", "a length of a name of 2^32-1 is GARBAGE_ARGS", func(t *T) {
			a := newArgs().raw("cookie of 2^32-1 bytes", 0xff, 0xff, 0xff, 0xff, 'a', 'b', 'c', 'd')
			p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, nlmVers, procLockLock, super), a)
			t.that(!p.denied && p.stat == garbageArgs, "GARBAGE_ARGS", "%v", p)
		}),
		must("procedure", "a procedure that NLM has not is PROC_UNAVAIL", func(t *T) {
			for _, proc := range []uint32{17, procLockCount, 1 << 31} {
				p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, nlmVers, proc, super), nil)
				t.that(!p.denied && p.stat == procUnavail, "PROC_UNAVAIL", "%v", p)
			}
		}).at("RFC 5531, 9"),
		must("version", "a version that NLM has not is PROG_MISMATCH, and the range tells of version 4", func(t *T) {
			p := t.rpcOn(t.nlmConn(), newHeader(nlmProg, 99, procNull, super), nil)
			t.that(!p.denied && p.stat == progMismatch && p.low <= 4 && p.high >= 4 && p.high < 99,
				"PROG_MISMATCH with 4 in it", "%v", p)
		}).at("RFC 5531, 9"),
	)
}

// lockVersionChecks are about versions 1 and 3, whose places in a file have 32 bits.
func lockVersionChecks() []Check {
	var checks []Check
	for _, vers := range []uint32{1, 3} {
		old := func(t *T) (ann, bob *owner) {
			t.needOldVersion(vers)
			ann, bob = t.twoOwners()
			ann.vers, bob.vers = vers, vers
			return ann, bob
		}
		name := func(what string) string { return fmt.Sprintf("version-%d-%s", vers, what) }
		checks = append(checks,
			must(name("locks"), fmt.Sprintf("version %d locks, tests, and unlocks", vers), func(t *T) {
				ann, bob := old(t)
				ann.has(span{10, 20})
				st, h := bob.test(span{29, 1}, true)
				t.locked(st, lockDenied)
				same(t, "svid", h.svid, ann.svid)
				same(t, "the bytes", h.span, span{10, 20})
				ann.gives(span{10, 20})
				bob.finds(span{10, 20}, true)
			}).at("C702, NLM_LOCK"),
			must(name("and-4"), fmt.Sprintf("locks of versions %d and 4 exclude each other", vers), func(t *T) {
				ann, bob := old(t)
				bob.vers = 4
				ann.has(span{10, 20})
				t.locked(bob.lock(span{10, 20}), lockDenied)
				bob.has(span{100, 20})
				t.locked(ann.lock(span{100, 20}), lockDenied)
			}).at("RFC 1813, 6"),
			must(name("stale"), fmt.Sprintf("a stale handle is refused in version %d with a status that it has", vers),
				func(t *T) {
					ann, _ := old(t)
					t.prepared("REMOVE", t.remove(super, t.dir(), "f").st)
					t.kept(ann.lock(span{10, 20}), lockNoLocks, lockDenied)
				}),
			must(name("beyond-2^32"), fmt.Sprintf("bytes that end beyond 2^32 are refused in version %d", vers), func(t *T) {
				ann, bob := old(t)
				t.kept(ann.lock(span{1<<32 - 1, 2}), lockNoLocks, lockDenied)
				bob.finds(span{0, 100}, true)
			}),
			must(name("holder"), fmt.Sprintf("version %d is told of a lock beyond its bytes with bytes that it has", vers),
				func(t *T) {
					ann, bob := old(t)
					ann.vers = 4
					ann.has(span{100, 1 << 40})
					st, h := bob.test(span{0, 0}, true)
					t.locked(st, lockDenied)
					same(t, "offset", h.offset, 100)
					t.that(h.length == 0 || h.offset+h.length >= 1<<31-1, "a length that reaches far, or 0", "%d", h.length)
				}),
		)
	}
	return group("nlm", "RFC 1813, 6.1.4", checks...)
}
