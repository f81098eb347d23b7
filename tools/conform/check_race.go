package conform

import "fmt"

// Calls that are under way at the same time. RFC 1813 wants each to be as if it
// had been alone (section 3.3.14 says so of RENAME, 3.3.8 of CREATE), so what all of
// them answer must fit one order.

// together sends calls of one procedure at once, each on a connection of its own,
// and returns their statuses.
func (t *T) together(proc uint32, calls ...*args) (all []status) {
	for _, p := range t.replies(proc, calls...) {
		all = append(all, statusOf(p))
	}
	return all
}

// replies is together with the whole replies.
func (t *T) replies(proc uint32, calls ...*args) (all []*rpcReply) {
	var conns []*conn
	for range calls {
		conns = append(conns, t.dial())
	}
	for i, c := range conns {
		h := newHeader(nfsProg, nfsVers, proc, super)
		h.xid = t.xid()
		t.sendRaw(c, describe(h, calls[i])+" at the same time", record(h, calls[i]))
	}
	for _, c := range conns {
		p, err := c.reply()
		if err != nil {
			t.broken("a reply", err.Error())
		}
		if p.denied || p.stat != success || len(p.body) < 4 {
			t.broken("the call is carried out", p.String())
		}
		all = append(all, p)
	}
	return all
}

// one wants exactly one of some calls to succeed, and all others to fail in some ways.
func (t *T) one(all []status, others ...status) {
	n := 0
	for _, st := range all {
		if st == ok {
			n++
		} else {
			t.is(st, others...)
		}
	}
	same(t, "calls that succeed", n, 1)
}

// racers is how many calls a race has.
const racers = 8

func raceChecks() []Check {
	return group("race", "RFC 1813, 3.3.8",
		must("guarded", "of several guarded CREATEs of one name, one succeeds", raceRounds(func(t *T, name string) {
			t.one(t.race(procCreate, func(int) *args { return createArgs(t.dir(), name, guarded, mode(0o644), 0) }), errExist)
		})),
		must("exclusive", "of several exclusive CREATEs of one name with different verifiers, one succeeds",
			raceRounds(func(t *T, name string) {
				t.one(t.race(procCreate, func(i int) *args {
					return createArgs(t.dir(), name, exclusive, sattr{}, uint64(i)*77+1)
				}), errExist)
			})),
		must("unchecked", "several unchecked CREATEs of one name all succeed, and make one file",
			raceRounds(func(t *T, name string) {
				before := len(t.names(t.dir()))
				all := t.race(procCreate, func(int) *args {
					return createArgs(t.dir(), name, unchecked, mode(0o644), 0)
				})
				for _, st := range all {
					t.ok(st)
				}
				same(t, "names more", len(t.names(t.dir()))-before, 1)
			})),
		must("mkdir", "of several MKDIRs of one name, one succeeds", raceRounds(func(t *T, name string) {
			t.one(t.race(procMkdir, func(int) *args { return newArgs().dirop(t.dir(), name).sattr(mode(0o755)) }), errExist)
		})).at("RFC 1813, 3.3.9"),
		must("remove", "of several REMOVEs of one name, one succeeds", raceRounds(func(t *T, name string) {
			t.file(name)
			t.one(t.race(procRemove, func(int) *args { return newArgs().dirop(t.dir(), name) }), errNoEnt, errStale)
		})).at("RFC 1813, 3.3.12"),
		must("rmdir", "of several RMDIRs of one name, one succeeds", raceRounds(func(t *T, name string) {
			t.sub(name)
			t.one(t.race(procRmdir, func(int) *args { return newArgs().dirop(t.dir(), name) }), errNoEnt, errStale)
		})).at("RFC 1813, 3.3.13"),
		must("rename", "of several RENAMEs of one name to different ones, one succeeds", raceRounds(func(t *T, name string) {
			h := t.file(name)
			t.one(t.together(procRename, raceCalls(func(i int) *args {
				return newArgs().dirop(t.dir(), name).dirop(t.dir(), fmt.Sprintf("%s-%d", name, i))
			})...), errNoEnt, errStale)
			same(t, "nlink", t.attr(h).nlink, 1)
		})).at("RFC 1813, 3.3.14"),
	)
}

// raceLinkChecks are about races for names that are there.
func raceLinkChecks() []Check {
	return group("race", "RFC 1813, 3.3.8",
		must("rename-onto-one", "several files renamed to one name: all succeed, and one file is left",
			raceRounds(func(t *T, name string) {
				for i := range racers {
					t.file(fmt.Sprintf("%s-%d", name, i))
				}
				before := len(t.names(t.dir()))
				all := t.race(procRename, func(i int) *args {
					return newArgs().dirop(t.dir(), fmt.Sprintf("%s-%d", name, i)).dirop(t.dir(), name)
				})
				for _, st := range all {
					t.ok(st)
				}
				same(t, "names less", before-len(t.names(t.dir())), racers-1)
			})).at("RFC 1813, 3.3.14"),
		must("link", "several LINKs of one file to different names all count", raceRounds(func(t *T, name string) {
			h := t.file(name)
			for _, st := range t.together(procLink, raceCalls(func(i int) *args {
				return newArgs().fh("file", h).dirop(t.dir(), fmt.Sprintf("%s-%d", name, i))
			})...) {
				t.ok(st)
			}
			same(t, "nlink", t.attr(h).nlink, racers+1)
		})).at("RFC 1813, 3.3.15"),
		must("link-remove", "a file whose last name is removed while it is linked either has the new name or is gone",
			raceRounds(func(t *T, name string) {
				h := t.file(name)
				c, d := t.dial(), t.dial()
				l, r := newHeader(nfsProg, nfsVers, procLink, super), newHeader(nfsProg, nfsVers, procRemove, super)
				l.xid, r.xid = t.xid(), t.xid()
				t.sendRaw(c, "LINK", record(l, newArgs().fh("file", h).dirop(t.dir(), name+"-new")))
				t.sendRaw(d, "REMOVE of the file's only name, at the same time", record(r, newArgs().dirop(t.dir(), name)))
				linked := statusOf(t.expect(c, l.xid)) == ok
				t.is(statusOf(t.expect(d, r.xid)), ok)
				if linked {
					t.leads(t.dir(), name+"-new", h)
					same(t, "nlink", t.attr(h).nlink, 1)
				} else {
					t.gone(t.dir(), name+"-new")
				}
			})).at("RFC 1813, 3.3.15"),
		must("make-remove-directory", "a directory that is removed while a file is made in it: one of the two fails",
			raceRounds(func(t *T, name string) {
				d := t.sub(name)
				c, e := t.dial(), t.dial()
				m, r := newHeader(nfsProg, nfsVers, procCreate, super), newHeader(nfsProg, nfsVers, procRmdir, super)
				m.xid, r.xid = t.xid(), t.xid()
				t.sendRaw(c, "CREATE in a directory", record(m, createArgs(d, "f", guarded, mode(0o644), 0)))
				t.sendRaw(e, "RMDIR of it, at the same time", record(r, newArgs().dirop(t.dir(), name)))
				made, removed := statusOf(t.expect(c, m.xid)), statusOf(t.expect(e, r.xid))
				if made == ok {
					t.is(removed, errNotEmpty, errExist)
					t.that(t.exists(d, "f"), "the file is there", "it is gone")
				} else {
					t.is(made, errStale, errNoEnt)
					t.is(removed, ok)
				}
			})).at("RFC 1813, 3.3.13"),
	)
}

// raceOrderChecks are about races whose order can be told.
func raceOrderChecks() []Check {
	return group("race", "RFC 1813, 3.3.8",
		should("guard", "of several SETATTRs with the guard of one ctime, one succeeds", raceRounds(func(t *T, name string) {
			h := t.file(name)
			c := t.attr(h).ctime
			t.one(t.together(procSetattr, raceCalls(func(i int) *args {
				a := newArgs().fh("object", h).sattr(mode(0o600+uint32(i))).u32("check", 1)
				a.word(c.sec)
				a.word(c.nsec)
				return a
			})...), errNotSync)
		})).at("RFC 1813, 3.3.2"),
		should("ctime", "each of eight WRITEs at once gives the file a ctime of its own, after the one that it found",
			raceRounds(func(t *T, name string) {
				h := t.file(name)
				had := map[stamp]bool{}
				calls := raceCalls(func(i int) *args { return writeArgs(h, uint64(i), 1, unstable, "x") })
				for _, p := range t.replies(procWrite, calls...) {
					r := &reader{b: p.body}
					w := t.writeResult(status(r.u32()), r)
					t.ok(w.st)
					if w.wcc.before == nil || w.wcc.after == nil {
						t.skip("attributes are missing in the reply")
					}
					before, after := w.wcc.before.ctime, w.wcc.after.ctime
					t.that(before.before(after), "ctime after "+before.String(), "%v", after)
					t.that(!had[after], "a ctime of its own", "%v again", after)
					had[after] = true
				}
			})).at("RFC 1813, 3.3.2"),
		must("crossing-renames", "two directories that are moved into each other do not both go", func(t *T) {
			for range 20 {
				a, b := t.sub("a"), t.sub("b")
				t.either(t.together(procRename,
					newArgs().dirop(t.dir(), "a").dirop(b, "a"),
					newArgs().dirop(t.dir(), "b").dirop(a, "b")))
				for _, n := range t.names(t.dir()) {
					t.removeTree(t.dir(), n)
				}
			}
		}).at("RFC 1813, 3.3.14"),
		must("swapped-renames", "files renamed to each other's names, over and over: each round leaves one of the two, whole",
			func(t *T) {
				for range 20 {
					t.put("a", "AAAA")
					t.put("b", "BBBB")
					all := t.together(procRename,
						newArgs().dirop(t.dir(), "a").dirop(t.dir(), "b"),
						newArgs().dirop(t.dir(), "b").dirop(t.dir(), "a"))
					for _, st := range all {
						t.is(st, ok, errNoEnt)
					}
					names := t.names(t.dir())
					if len(names) != 1 {
						t.wrong("one name", fmt.Sprintf("%q", names))
					}
					got := t.content(t.lookup(super, t.dir(), names[0]).obj)
					t.that(got == "AAAA" || got == "BBBB", "one of the contents", "%s", short(got))
					t.ok(t.remove(super, t.dir(), names[0]).st)
				}
			}).at("RFC 1813, 3.3.14"),
		must("writes-one-range", "of WRITEs to one range at the same time, one is the last, whole", func(t *T) {
			h := t.file("f")
			const size = 8192
			var calls []*args
			for i := range racers {
				calls = append(calls, writeArgs(h, 100, size, fileSync, string(repeated(byte('a'+i), size))))
			}
			for _, st := range t.together(procWrite, calls...) {
				t.ok(st)
			}
			got := t.content(h)[100:]
			t.text("the range", got, string(repeated(got[0], size)))
		}).at("RFC 1813, 3.3.7"),
	)
}

// raceRounds runs a race several times, each with a name of its own.
func raceRounds(run func(t *T, name string)) func(*T) {
	return func(t *T) {
		for i := range 5 {
			run(t, fmt.Sprintf("x%d", i))
		}
	}
}

// race is together with calls that build makes.
func (t *T) race(proc uint32, build func(i int) *args) []status {
	return t.together(proc, raceCalls(build)...)
}

// raceCalls are those that build makes, numbered.
func raceCalls(build func(i int) *args) (calls []*args) {
	for i := range racers {
		calls = append(calls, build(i))
	}
	return calls
}

// either wants one of two moves to be refused because the other came first.
func (t *T) either(all []status) {
	if (all[0] == ok) == (all[1] == ok) {
		t.wrong("one of the two is refused", fmt.Sprint(all))
	}
}

func repeated(b byte, n int) []byte {
	s := make([]byte, n)
	for i := range s {
		s[i] = b
	}
	return s
}
