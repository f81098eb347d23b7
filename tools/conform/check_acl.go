package conform

// Access lists (NFSACL).

// listed gives everybody something else: the owner 6, bob 5, the group 1, group 42222 4, others 0.
var listed = aclOf(ace{aclOwner, 0, 6}, ace{aclUser, bob.uid, 5}, ace{aclGroup, 0, 1}, ace{aclNamedGroup, 42222, 4},
	ace{aclMask, 0, 7}, ace{aclOther, 0, 0})

// plainList says what mode 0640 says.
var plainList = aclOf(ace{aclOwner, 0, 6}, ace{aclGroup, 0, 4}, ace{aclMask, 0, 4}, ace{aclOther, 0, 0})

func aclChecks() []Check {
	return group("acl", "Linux, nfsacl.h",
		must("of-mode", "a file without a list has one that says what its mode says, and no default list", func(t *T) {
			h := t.fileAs(super, t.dir(), "f", 0o640)
			access, dflt := t.lists(h)
			same(t, "access list", access.String(), plainList.String())
			same(t, "default list", dflt.String(), aclOf().String())
		}),
		must("owner", "the entries of the owner and of the group have their numbers", func(t *T) {
			h := t.fileAs(alice, t.dir(), "f", 0o640)
			a := t.attr(h)
			access, _ := t.lists(h)
			for _, e := range access.entries {
				if e.what == aclOwner {
					same(t, "owner", e.id, a.uid)
				}
				if e.what == aclGroup {
					same(t, "group", e.id, a.gid)
				}
			}
		}),
		must("set", "a list that is set is there, and the mode has the rights of owner, mask, and others", func(t *T) {
			h := t.fileAs(super, t.dir(), "f", 0o640)
			t.ok(t.setACL(super, h, aclAccess, listed, aclOf()))
			access, _ := t.lists(h)
			same(t, "access list", access.String(), listed.String())
			t.mode(t.attr(h), 0o670)
		}),
		must("any-order", "the entries of a list come in any order", func(t *T) {
			h := t.file("f")
			back := aclOf()
			for i := range listed.entries {
				back.entries = append(back.entries, listed.entries[len(listed.entries)-1-i])
			}
			back.count = listed.count
			t.ok(t.setACL(super, h, aclAccess, back, aclOf()))
			access, _ := t.lists(h)
			same(t, "access list", access.String(), listed.String())
		}),
		must("asked", "of what is not asked for there are no entries, and the mask is that of the call", func(t *T) {
			h := t.sub("d")
			t.prepared("SETACL", t.setACL(super, h, aclBoth, listed, listed.byDefault()))
			for _, mask := range []uint32{aclAccess, aclDefault, aclCounts, aclBoth | aclCounts} {
				g := t.getACL(super, h, mask)
				t.ok(g.st)
				same(t, "mask", g.mask, mask)
				same(t, "entries of the access list", len(g.access.entries), int(6*(mask&aclAccess)))
				same(t, "entries of the default list", len(g.dflt.entries), int(6*(mask&aclDefault)/aclDefault))
				if mask&aclCounts != 0 {
					same(t, "counts", [2]uint32{g.access.count, g.dflt.count}, [2]uint32{6, 6})
				}
			}
		}),
		must("plain", "a list that says what a mode says sets the mode", func(t *T) {
			h := t.fileAs(super, t.dir(), "f", 0o777)
			t.ok(t.setACL(super, h, aclAccess, plainList, aclOf()))
			t.mode(t.attr(h), 0o640)
		}),
		must("chmod", "the group's bits of a mode that is set are the mask", func(t *T) {
			h := t.file("f")
			t.prepared("SETACL", t.setACL(super, h, aclAccess, listed, aclOf()))
			t.prepared("SETATTR", t.setattr(super, h, mode(0o721), nil).st)
			access, _ := t.lists(h)
			want := aclOf(ace{aclOwner, 0, 7}, listed.entries[1], listed.entries[2], listed.entries[3],
				ace{aclMask, 0, 2}, ace{aclOther, 0, 1})
			same(t, "access list", access.String(), want.String())
		}),
		should("ctime", "to set a list moves ctime, and mtime stays", func(t *T) {
			h := t.file("f")
			before := t.attr(h)
			t.ok(t.setACL(super, h, aclAccess, listed, aclOf()))
			after := t.attr(h)
			same(t, "mtime", after.mtime, before.mtime)
			t.that(before.ctime.before(after.ctime), "a later ctime than "+before.ctime.String(), "%v", after.ctime)
		}),
		must("stale", "a list of a file that is gone is STALE", func(t *T) {
			h := t.stale()
			t.refused(t.getACL(super, h, aclAccess).st, errStale)
			t.refused(t.setACL(super, h, aclAccess, listed, aclOf()), errStale)
		}),
		must("unknown-mask", "a mask with other bits is INVAL", func(t *T) {
			h := t.file("f")
			t.refused(t.getACL(super, h, 0x10).st, errInval)
			t.refused(t.setACL(super, h, 0x11, listed, aclOf()), errInval, errGarbage)
		}),
		must("no-list", "what is no list is refused, and changes nothing", func(t *T) {
			h := t.fileAs(super, t.dir(), "f", 0o640)
			o, g, r := ace{aclOwner, 0, 7}, ace{aclGroup, 0, 7}, ace{aclOther, 0, 7}
			for _, l := range []acl{
				aclOf(o, g), aclOf(o, r), aclOf(g, r), aclOf(o, o, g, r), aclOf(o, g, r, ace{0x40, 0, 7}),
				aclOf(o, g, ace{aclUser, 1, 7}, r), aclOf(ace{aclOwner, 0, 8}, g, r), {5, []ace{o, g, r}},
			} {
				t.refused(t.setACL(super, h, aclAccess, l, aclOf()), errInval, errGarbage)
			}
			access, _ := t.lists(h)
			same(t, "access list", access.String(), plainList.String())
		}),
		must("truncated", "arguments that end too early, wherever they end, are GARBAGE_ARGS", func(t *T) {
			h := t.file("f")
			whole := setACLArgs(h, aclAccess, listed, aclOf())
			for n := 0; n < len(whole.b); n += 4 {
				st, _ := t.aclCall(procSetACL, super, newArgs().raw("the first bytes of SETACL", whole.b[:n]...))
				t.is(st, errGarbage)
			}
		}).at("RFC 5531, 9"),
	)
}

func aclRightChecks() []Check {
	return group("acl", "Linux, nfsacl.h",
		must("decides", "ACCESS goes by the list: of a user, of the groups, of others", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o640)
			gid := t.attr(h).gid
			t.prepared("SETACL", t.setACL(alice, h, aclAccess, listed, aclOf()))
			accessGrants(t, alice, h, accessFileRW)
			accessGrants(t, bob, h, accessRead|accessExecute)
			accessGrants(t, member(gid), h, accessRead|accessExecute) // bob, for all that
			accessGrants(t, &cred{uid: 45555, gid: 42222}, h, accessRead)
			accessGrants(t, &cred{uid: 45555, gid: gid}, h, accessExecute)
			accessGrants(t, &cred{uid: 45555, gid: 45555}, h, 0)
		}),
		must("mask", "the mask bounds what users and groups have", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o640)
			t.prepared("SETACL", t.setACL(alice, h, aclAccess, listed, aclOf()))
			t.prepared("SETATTR", t.setattr(alice, h, mode(0o610), nil).st)
			accessGrants(t, bob, h, accessExecute)
			accessGrants(t, &cred{uid: 45555, gid: 42222}, h, 0)
		}),
		must("by-other", "only the owner and the superuser set a list", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o666)
			t.refused(t.setACL(bob, h, aclAccess, listed, aclOf()), errPerm, errAcces)
			t.mode(t.attr(h), 0o666)
			t.ok(t.setACL(alice, h, aclAccess, listed, aclOf()))
		}),
		must("default", "what is made in a directory has its default list, and directories have it as theirs", func(t *T) {
			d := t.sub("d")
			t.ok(t.setACL(super, d, aclBoth, plainList, listed.byDefault()))
			access, dflt := t.lists(d)
			same(t, "access list", access.String(), plainList.String())
			same(t, "default list", dflt.String(), listed.byDefault().String())
			f := t.made(d, "f", t.create(super, d, "f", guarded, mode(0o777), 0))
			access, _ = t.lists(f)
			same(t, "access list of a file", access.String(), listed.String())
			t.mode(t.attr(f), 0o670)
			s := t.made(d, "s", t.mkdir(super, d, "s", mode(0o740)))
			_, dflt = t.lists(s)
			same(t, "default list of a directory", dflt.String(), listed.byDefault().String())
			t.mode(t.attr(s), 0o640)
		}),
		must("default-removed", "a default list of no entries takes it away", func(t *T) {
			d := t.sub("d")
			t.prepared("SETACL", t.setACL(super, d, aclBoth, plainList, listed.byDefault()))
			t.ok(t.setACL(super, d, aclBoth, plainList, aclOf()))
			_, dflt := t.lists(d)
			same(t, "default list", dflt.String(), aclOf().String())
		}),
		must("default-of-file", "only directories have a default list", func(t *T) {
			h := t.file("f")
			t.refused(t.setACL(super, h, aclBoth, plainList, listed.byDefault()), errAcces)
			_, dflt := t.lists(h)
			same(t, "default list", dflt.String(), aclOf().String())
		}),
		should("both-or-none", "of two lists one of which is refused, none is set", func(t *T) {
			h := t.fileAs(super, t.dir(), "f", 0o644)
			t.refused(t.setACL(super, h, aclBoth, listed, listed.byDefault()), errAcces)
			t.mode(t.attr(h), 0o644)
		}),
	)
}
