package conform

import "strings"

// CREATE (RFC 1813, section 3.3.8).

// nameRules are the rules of section 3.2 for a procedure that makes an entry,
// each a check of its own.
func nameRules(makes func(t *T, dir fh, name string) status) []Check {
	return []Check{
		must("name-empty", "an empty name is refused", func(t *T) {
			t.refused(makes(t, t.dir(), ""), errAcces, errInval)
		}).at("RFC 1813, 3.2"),
		must("name-dot", "`.` is refused", func(t *T) {
			t.refused(makes(t, t.dir(), "."), errExist, errInval, errIsDir, errAcces)
		}).at("RFC 1813, 3.2"),
		must("name-dot-dot", "`..` is refused", func(t *T) {
			t.refused(makes(t, t.sub("d"), ".."), errExist, errInval, errIsDir, errAcces)
		}).at("RFC 1813, 3.2"),
		must("name-slash", "a name with a slash is refused, and nothing is made", func(t *T) {
			d := t.sub("d")
			for _, n := range []string{"d/x", "/", "/x", "x/", "d/../x"} {
				t.refused(makes(t, t.dir(), n), errAcces, errInval, errNoEnt, errExist)
			}
			t.that(len(t.names(d)) == 0 && len(t.names(t.dir())) == 1, "nothing made", "%q and %q", t.names(d), t.names(t.dir()))
		}).at("RFC 1813, 3.2"),
		must("name-nul", "a name with a zero byte is refused or kept whole", func(t *T) {
			st := makes(t, t.dir(), "a\x00b")
			names := t.names(t.dir())
			if st != ok {
				t.that(len(names) == 0, "nothing made", "%q", names)
				return
			}
			t.that(len(names) == 1 && names[0] == "a\x00b", `"a\x00b"`, "%q", names)
		}).at("RFC 4506, 4.11"),
		must("name-longest", "a name of name_max bytes is taken", func(t *T) {
			n := strings.Repeat("n", int(t.nameMax()))
			t.ok(makes(t, t.dir(), n))
			names := t.names(t.dir())
			t.that(len(names) == 1 && names[0] == n, "the whole name", "%q", names)
		}).at("RFC 1813, 3.3.20"),
		must("name-too-long",
			"a name of name_max + 1 bytes is NAMETOOLONG where no_trunc is set, and never an entry of that name",
			func(t *T) {
				n := strings.Repeat("n", int(t.nameMax())+1)
				st := makes(t, t.dir(), n)
				if t.s.path.noTrunc {
					t.refused(st, errNameTooLong)
				}
				for _, got := range t.names(t.dir()) {
					t.that(len(got) <= int(t.nameMax()), "no longer name", "%d bytes", len(got))
				}
			}).at("RFC 1813, 3.2"),
		must("in-file", "in a file it is NOTDIR", func(t *T) { t.is(makes(t, t.file("f"), "x"), errNotDir) }),
		must("in-symlink", "in a symbolic link it is NOTDIR: the server does not follow it", func(t *T) {
			d := t.sub("d")
			t.refused(makes(t, t.symlinkTo("l", "d"), "x"), errNotDir)
			same(t, "entries of the target", len(t.names(d)), 0)
		}),
	}
}

// dirRules are the rules for the directory that a procedure enters a name in.
func dirRules(makes func(t *T, c *cred, dir fh, name string) status) []Check {
	return []Check{
		must("no-write", "a user who may not write the directory makes nothing", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o755)
			t.is(makes(t, bob, d, "x"), errAcces)
			t.gone(d, "x")
		}),
		must("no-search", "a user who may write but not search the directory makes nothing", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o766)
			t.is(makes(t, bob, d, "x"), errAcces)
			t.gone(d, "x")
		}),
		must("group-write", "a supplementary group gives the right", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o770)
			t.ok(makes(t, member(t.attr(d).gid), d, "x"))
		}),
		must("owner", "what is made belongs to the caller", func(t *T) {
			t.needUsers()
			t.ok(makes(t, bob, t.dir(), "x"))
			l := t.lookup(super, t.dir(), "x")
			t.ok(l.st)
			same(t, "uid", t.attr(l.obj).uid, bob.uid)
		}),
		should("setgid-directory", "in a directory with set-group-id it belongs to the directory's group", func(t *T) {
			t.needUsers()
			t.needRoot()
			d := t.dirIn(super, t.dir(), "d", 0o777)
			t.ok(t.setattr(super, d, sattr{gid: ptr(uint32(42424)), mode: ptr(uint32(0o2777))}, nil).st)
			t.ok(makes(t, bob, d, "x"))
			l := t.lookup(super, d, "x")
			t.ok(l.st)
			same(t, "gid", t.attr(l.obj).gid, 42424)
		}),
		must("directory-times", "mtime and ctime of the directory move", func(t *T) {
			t.ok(t.setattr(super, t.dir(), sattr{mtimeHow: 2, mtime: stamp{1, 0}}, nil).st)
			before := t.attr(t.dir())
			t.ok(makes(t, super, t.dir(), "x"))
			a := t.attr(t.dir())
			t.that(a.mtime.sec > 1, "a new mtime", "%v", a.mtime)
			t.that(!a.ctime.before(before.ctime), "ctime not before "+before.ctime.String(), "%v", a.ctime)
		}),
	}
}

// takenRules are the rules for a name that is there already, for a user who may
// not write the directory. The look-up comes first, and needs the right to search.
func takenRules(makes func(t *T, c *cred, dir fh, name string) status) []Check {
	taken := func(t *T, m uint32) (dir, file fh) {
		t.needUsers()
		dir = t.dirIn(alice, t.dir(), "d", m)
		return dir, t.fileAs(alice, dir, "x", 0o644)
	}
	return []Check{
		should("exists-no-write", "a name that is there is EXIST also for a user who may search, but not write the directory",
			func(t *T) {
				d, h := taken(t, 0o755)
				t.is(makes(t, bob, d, "x"), errExist)
				t.leads(d, "x", h)
				t.is(makes(t, bob, d, "y"), errAcces)
			}),
		must("exists-no-search", "a user who may not search the directory is not told which names it holds", func(t *T) {
			d, h := taken(t, 0o722)
			t.is(makes(t, bob, d, "x"), errAcces)
			t.is(makes(t, bob, d, "y"), errAcces)
			t.leads(d, "x", h)
		}),
	}
}

// idRules are the rules for the owner and the group that a caller wants for what is made.
func idRules(makes func(t *T, c *cred, dir fh, name string, s sattr) madeRes) []Check {
	ids := func(uid, gid *uint32) sattr { return sattr{mode: ptr(uint32(0o644)), uid: uid, gid: gid} }
	return []Check{
		must("foreign-owner", "a user makes nothing that belongs to another", func(t *T) {
			t.needUsers()
			n := makes(t, bob, t.dir(), "x", ids(&alice.uid, nil))
			if n.st == ok {
				same(t, "uid", t.attr(t.made(t.dir(), "x", n)).uid, bob.uid)
			}
		}),
		must("foreign-group", "a user makes nothing of a group that they are not in", func(t *T) {
			t.needUsers()
			s := ids(nil, ptr(uint32(42424)))
			s.mode = ptr(uint32(0o2755))
			n := makes(t, bob, t.dir(), "x", s)
			if n.st == ok {
				t.that(t.attr(t.made(t.dir(), "x", n)).gid != 42424, "another gid", "42424")
			}
		}),
		should("ids-ignored",
			"an owner and a group that a user may not give are ignored: some clients always send the directory's group",
			func(t *T) {
				t.needUsers()
				d := t.dirIn(alice, t.dir(), "d", 0o777)
				given := map[string]sattr{
					"gid":  ids(nil, ptr(t.attr(d).gid)),
					"uid":  ids(&alice.uid, nil),
					"both": ids(&alice.uid, &alice.gid),
				}
				for name, s := range given {
					n := makes(t, bob, d, name, s)
					t.ok(n.st)
					a := t.attr(t.made(d, name, n))
					same(t, "uid", a.uid, bob.uid)
					same(t, "gid", a.gid, bob.gid)
				}
			}),
		should("ids-by-root", "the superuser makes it for another owner and group", func(t *T) {
			t.needRoot()
			n := makes(t, super, t.dir(), "x", ids(&alice.uid, ptr(uint32(42424))))
			t.ok(n.st)
			a := t.attr(t.made(t.dir(), "x", n))
			same(t, "uid", a.uid, alice.uid)
			same(t, "gid", a.gid, 42424)
		}),
	}
}

func createChecks() []Check {
	return group("create", "RFC 1813, 3.3.8",
		must("guarded", "a guarded CREATE makes an empty file with the mode asked for", func(t *T) {
			n := t.create(super, t.dir(), "f", guarded, mode(0o640), 0)
			t.ok(n.st)
			a := t.attr(t.made(t.dir(), "f", n))
			same(t, "type", a.typ, typeReg)
			t.mode(a, 0o640)
			same(t, "size", a.size, 0)
		}),
		must("result", "handle and attributes of the result are those of the new file", func(t *T) {
			n := t.create(super, t.dir(), "f", guarded, mode(0o640), 0)
			t.ok(n.st)
			if n.obj != "" {
				t.leads(t.dir(), "f", n.obj)
			}
			if n.attr != nil {
				same(t, "attributes", *n.attr, t.attr(t.made(t.dir(), "f", n)))
			}
		}),
		should("has-result", "the result has handle and attributes", func(t *T) {
			n := t.create(super, t.dir(), "f", guarded, mode(0o640), 0)
			t.that(n.obj != "" && n.attr != nil, "both", "handle %v, attributes %v", n.obj != "", n.attr != nil)
		}).at("RFC 1813, 3.1"),
		must("guarded-exists", "a guarded CREATE of a name that is there is EXIST, and the file stays as it is", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			s := size(0)
			s.mode = ptr(uint32(0o600))
			t.is(t.create(super, t.dir(), "f", guarded, s, 0).st, errExist)
			same(t, "attributes", t.attr(h), before)
		}),
		must("guarded-directory", "a guarded CREATE of the name of a directory is EXIST", func(t *T) {
			t.sub("d")
			t.is(t.create(super, t.dir(), "d", guarded, mode(0o644), 0).st, errExist)
		}),
	)
}

// uncheckedChecks are about unchecked CREATEs, and what a new file is like.
func uncheckedChecks() []Check {
	return group("create", "RFC 1813, 3.3.8",
		must("unchecked-exists", "an unchecked CREATE of a name that is there is OK and the same file, with its content",
			func(t *T) {
				h := t.put("f", "data")
				n := t.create(super, t.dir(), "f", unchecked, sattr{}, 0)
				t.ok(n.st)
				t.leads(t.dir(), "f", h)
				t.text("content", t.content(h), "data")
			}),
		must("unchecked-truncates", "an unchecked CREATE with size 0 empties the file", func(t *T) {
			h := t.put("f", "data")
			t.ok(t.create(super, t.dir(), "f", unchecked, size(0), 0).st)
			same(t, "size", t.attr(h).size, 0)
		}),
		must("unchecked-no-write", "an unchecked CREATE does not empty a file that the caller may not write", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			t.create(bob, t.dir(), "f", unchecked, size(0), 0)
			t.text("content", t.content(h), "data")
		}),
		must("unchecked-foreign-mode", "an unchecked CREATE does not set the mode of another's file", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			t.create(bob, t.dir(), "f", unchecked, mode(0o666), 0)
			t.mode(t.attr(h), 0o644)
		}),
		should("unchecked-directory", "an unchecked CREATE of the name of a directory is refused", func(t *T) {
			t.sub("d")
			t.is(t.create(super, t.dir(), "d", unchecked, mode(0o644), 0).st, errExist, errIsDir)
		}),
		must("unchecked-symlink", "an unchecked CREATE of the name of a symbolic link does not make or change its target",
			func(t *T) {
				f := t.put("f", "data")
				t.symlinkTo("l", "f")
				t.symlinkTo("dangling", "nothing")
				t.create(super, t.dir(), "l", unchecked, size(0), 0)
				t.create(super, t.dir(), "dangling", unchecked, size(0), 0)
				t.text("content", t.content(f), "data")
				t.gone(t.dir(), "nothing")
			}),
		should("unchecked-fifo", "an unchecked CREATE of the name of a FIFO is EXIST", func(t *T) {
			t.fifo("p")
			t.is(t.create(super, t.dir(), "p", unchecked, mode(0o644), 0).st, errExist)
		}),
		must("undefined-bits", "bits of the mode above 07777 are refused or not kept", func(t *T) {
			n := t.create(super, t.dir(), "f", guarded, mode(0o040000|0o640), 0)
			if n.st == ok {
				a := t.attr(t.made(t.dir(), "f", n))
				same(t, "type", a.typ, typeReg)
				t.mode(a, 0o640)
			}
		}).at("RFC 1813, 2.5"),
		should("mode-as-asked", "the server has no mask of its own for modes", func(t *T) {
			h := t.fileAs(alice, t.dir(), "f", 0o666)
			t.mode(t.attr(h), 0o666)
		}),
		should("size", "an initial size is taken", func(t *T) {
			s := size(100)
			s.mode = ptr(uint32(0o644))
			n := t.create(super, t.dir(), "f", guarded, s, 0)
			t.ok(n.st)
			same(t, "size", t.attr(t.made(t.dir(), "f", n)).size, 100)
		}),
		should("times", "initial times are taken", func(t *T) {
			s := sattr{mode: ptr(uint32(0o644)), mtimeHow: 2, mtime: stamp{1234567, 0}}
			n := t.create(super, t.dir(), "f", guarded, s, 0)
			t.ok(n.st)
			same(t, "mtime", t.attr(t.made(t.dir(), "f", n)).mtime, stamp{1234567, 0})
		}),
		should("default-mode", "a CREATE without a mode makes a file that not everybody may write", func(t *T) {
			n := t.create(super, t.dir(), "f", guarded, sattr{}, 0)
			t.ok(n.st)
			same(t, "write permission for others", t.attr(t.made(t.dir(), "f", n)).mode&0o002, 0)
		}),
		should("group", "a new file is of the caller's group, where the directory has no set-group-id", func(t *T) {
			t.needUsers()
			same(t, "gid", t.attr(t.fileAs(bob, t.dir(), "f", 0o644)).gid, bob.gid)
		}),
		should("no-write-but-exists", "an unchecked CREATE of a file that is there needs no right to write the directory",
			func(t *T) {
				t.needUsers()
				d := t.dirIn(alice, t.dir(), "d", 0o755)
				t.fileAs(alice, d, "f", 0o666)
				t.ok(t.create(bob, d, "f", unchecked, sattr{}, 0).st)
			}),
	)
}

// createRuleChecks are about what CREATE has in common with what else makes names.
func createRuleChecks() []Check {
	simple := func(t *T, c *cred, dir fh, name string) status {
		return t.create(c, dir, name, unchecked, mode(0o644), 0).st
	}
	checks := nameRules(func(t *T, dir fh, name string) status { return simple(t, super, dir, name) })
	checks = append(checks, dirRules(simple)...)
	checks = append(checks, takenRules(func(t *T, c *cred, dir fh, name string) status {
		return t.create(c, dir, name, guarded, mode(0o644), 0).st
	})...)
	checks = append(checks, idRules(func(t *T, c *cred, dir fh, name string, s sattr) madeRes {
		return t.create(c, dir, name, guarded, s, 0)
	})...)
	return group("create", "RFC 1813, 3.3.8", checks...)
}

func exclusiveChecks() []Check {
	excl := func(t *T, name string, verf uint64) madeRes {
		n := t.create(super, t.dir(), name, exclusive, sattr{}, verf)
		if n.st == errNotSupp {
			t.skip("the server has no exclusive CREATE")
		}
		return n
	}
	return group("create-exclusive", "RFC 1813, 3.3.8",
		must("new", "an exclusive CREATE makes an empty regular file", func(t *T) {
			n := excl(t, "f", 0x1122334455667788)
			t.ok(n.st)
			a := t.attr(t.made(t.dir(), "f", n))
			same(t, "type", a.typ, typeReg)
			same(t, "size", a.size, 0)
		}),
		must("again", "an exclusive CREATE sent again with its verifier, as another call, is OK and gives the same file",
			func(t *T) {
				n := excl(t, "f", 0x1122334455667788)
				t.ok(n.st)
				h := t.made(t.dir(), "f", n)
				for range 3 {
					t.ok(excl(t, "f", 0x1122334455667788).st)
					t.leads(t.dir(), "f", h)
				}
				same(t, "entries", len(t.names(t.dir())), 1)
			}),
		must("again-after-write", "an exclusive CREATE sent again does not empty the file", func(t *T) {
			n := excl(t, "f", 99)
			t.ok(n.st)
			h := t.made(t.dir(), "f", n)
			t.fill(h, 0, "data")
			excl(t, "f", 99)
			t.text("content", t.content(h), "data")
		}),
		must("other-verifier", "an exclusive CREATE with another verifier is EXIST", func(t *T) {
			t.ok(excl(t, "f", 0x1122334455667788).st)
			t.is(excl(t, "f", 0x1122334455667789).st, errExist)
			t.is(excl(t, "f", 0x1122334555667788).st, errExist)
			t.is(excl(t, "f", 0x9122334455667788).st, errExist)
		}),
		must("existing", "an exclusive CREATE of a file made otherwise is EXIST", func(t *T) {
			h := t.put("f", "data")
			t.is(excl(t, "f", 1).st, errExist)
			t.text("content", t.content(h), "data")
		}),
		must("zero-verifier", "a verifier of zero fits no file that was made otherwise", func(t *T) {
			t.file("f")
			t.is(excl(t, "f", 0).st, errExist)
		}),
		should("zero-verifier-again", "a verifier of zero works as any other", func(t *T) {
			t.ok(excl(t, "f", 0).st)
			t.ok(excl(t, "f", 0).st)
			t.is(excl(t, "f", 1).st, errExist)
		}),
		must("directory", "an exclusive CREATE of the name of a directory is refused", func(t *T) {
			t.sub("d")
			t.refused(excl(t, "d", 1).st, errExist, errIsDir)
		}),
		must("symlink", "an exclusive CREATE of the name of a dangling symbolic link is EXIST, and its target is not made",
			func(t *T) {
				t.symlinkTo("l", "nothing")
				t.is(excl(t, "l", 1).st, errExist)
				t.gone(t.dir(), "nothing")
			}),
		must("valid-times", "the times of a file made with a strange verifier are valid", func(t *T) {
			n := excl(t, "f", 0xffffffffffffffff)
			t.ok(n.st)
			a := t.attr(t.made(t.dir(), "f", n))
			t.that(a.atime.nsec < 1e9 && a.mtime.nsec < 1e9, "nanoseconds below 10^9", "%v and %v", a.atime, a.mtime)
		}),
		must("settable", "the attributes of the new file can be set by who made it", func(t *T) {
			t.needUsers()
			n := t.create(alice, t.dir(), "f", exclusive, sattr{}, 7)
			t.prepared("exclusive CREATE", n.st)
			h := t.made(t.dir(), "f", n)
			t.ok(t.setattr(alice, h, sattr{mode: ptr(uint32(0o640)), atimeHow: 1, mtimeHow: 1}, nil).st)
			t.mode(t.attr(h), 0o640)
		}),
		should("not-after-rename", "the verifier belongs to the file, not to the name: another file under the name is EXIST",
			func(t *T) {
				t.ok(excl(t, "f", 5).st)
				t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
				t.file("f")
				t.is(excl(t, "f", 5).st, errExist)
			}),
	)
}
