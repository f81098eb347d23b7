package conform

// ACCESS (RFC 1813, section 3.3.4).

func accessChecks() []Check {
	const all = 0x3f
	// grants wants ACCESS to give exactly the bits want of all six.
	grants := func(t *T, c *cred, h fh, want uint32) {
		x := t.access(c, h, all)
		t.ok(x.st)
		if x.bits != want {
			t.wrong(accessText(want), accessText(x.bits))
		}
	}
	const (
		fileRW = accessRead | accessModify | accessExtend
		dirW   = accessModify | accessExtend | accessDelete
	)
	return group("access", "RFC 1813, 3.3.4",
		must("subset", "no bit is given that was not asked for", func(t *T) {
			h := t.file("f")
			for bit := uint32(1); bit <= accessExecute; bit <<= 1 {
				x := t.access(super, h, bit)
				t.ok(x.st)
				t.that(x.bits&^bit == 0, "no bit but "+accessText(bit), "%s", accessText(x.bits))
			}
		}),
		must("nothing", "who asks for nothing is given nothing", func(t *T) {
			x := t.access(super, t.file("f"), 0)
			t.ok(x.st)
			same(t, "bits", x.bits, 0)
		}),
		should("unknown-bits", "bits that mean nothing are not given", func(t *T) {
			x := t.access(super, t.dir(), 0xffffffff)
			t.ok(x.st)
			same(t, "bits above 0x3f", x.bits&^all, 0)
		}),
		must("attributes", "the attributes ACCESS gives are those of GETATTR", func(t *T) {
			h := t.file("f")
			x := t.access(super, h, all)
			if x.attr != nil {
				same(t, "attributes", *x.attr, t.attr(h))
			}
		}),
		must("owner", "rw for the owner of a file: READ, MODIFY, EXTEND", func(t *T) {
			t.needUsers()
			grants(t, alice, t.fileAs(alice, t.dir(), "f", 0o600), fileRW)
		}),
		must("owner-read-only", "r for the owner: READ alone", func(t *T) {
			t.needUsers()
			grants(t, alice, t.fileAs(alice, t.dir(), "f", 0o400), accessRead)
		}),
		must("other", "another user is judged by the bits for others", func(t *T) {
			t.needUsers()
			grants(t, bob, t.fileAs(alice, t.dir(), "f", 0o604), accessRead)
			grants(t, bob, t.fileAs(alice, t.dir(), "g", 0o640), 0)
		}),
		must("group", "a member of the group is judged by its bits", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o640)
			grants(t, &cred{uid: bob.uid, gid: t.attr(h).gid}, h, accessRead)
		}),
		must("supplementary", "a supplementary group counts as the first", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o660)
			grants(t, member(t.attr(h).gid), h, fileRW)
		}),
		must("sixteenth-group", "the last of 16 supplementary groups counts", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o640)
			c := &cred{uid: bob.uid, gid: bob.gid}
			for i := range uint32(15) {
				c.gids = append(c.gids, 61000+i)
			}
			c.gids = append(c.gids, t.attr(h).gid)
			grants(t, c, h, accessRead)
		}),
		should("owner-class", "an owner without rights has none even if others have", func(t *T) {
			t.needUsers()
			grants(t, alice, t.fileAs(alice, t.dir(), "f", 0o077), 0)
		}),
		should("group-class", "a member of the group without rights has none even if others have", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o604)
			grants(t, member(t.attr(h).gid), h, 0)
		}),
		must("execute", "x on a file: EXECUTE", func(t *T) {
			t.needUsers()
			grants(t, bob, t.fileAs(alice, t.dir(), "f", 0o701), accessExecute)
		}),
		must("superuser", "the superuser reads and writes whatever the mode is", func(t *T) {
			t.needRoot()
			x := t.access(super, t.fileAs(alice, t.dir(), "f", 0), all)
			t.ok(x.st)
			same(t, "READ, MODIFY, EXTEND", x.bits&fileRW, fileRW)
		}),
		should("superuser-execute", "the superuser executes only what somebody may execute", func(t *T) {
			t.needRoot()
			x := t.access(super, t.file("f"), all)
			same(t, "EXECUTE on mode 0644", x.bits&accessExecute, 0)
			x = t.access(super, t.fileAs(super, t.dir(), "g", 0o001), all)
			same(t, "EXECUTE on mode 0001", x.bits&accessExecute, accessExecute)
		}),
		must("directory", "rwx on a directory: READ, LOOKUP, MODIFY, EXTEND, DELETE", func(t *T) {
			t.needUsers()
			x := t.access(alice, t.dirIn(alice, t.dir(), "d", 0o700), all)
			t.ok(x.st)
			same(t, "all bits but EXECUTE", accessText(x.bits&^accessExecute), accessText(accessRead|accessLookup|dirW))
		}),
		must("directory-read", "r on a directory: READ without LOOKUP", func(t *T) {
			t.needUsers()
			grants(t, bob, t.dirIn(alice, t.dir(), "d", 0o704), accessRead)
		}),
		must("directory-search", "x on a directory: LOOKUP without READ", func(t *T) {
			t.needUsers()
			x := t.access(bob, t.dirIn(alice, t.dir(), "d", 0o701), all&^accessExecute)
			t.ok(x.st)
			same(t, "bits", accessText(x.bits), accessText(accessLookup))
		}),
		should("directory-execute", "EXECUTE is not given on a directory: that is LOOKUP", func(t *T) {
			x := t.access(super, t.sub("d"), all)
			same(t, "EXECUTE", x.bits&accessExecute, 0)
		}),
		should("file-lookup-delete", "LOOKUP and DELETE are not given on a file", func(t *T) {
			x := t.access(super, t.file("f"), accessLookup|accessDelete)
			same(t, "bits", accessText(x.bits), accessText(0))
		}),
		must("directory-closed", "a directory of mode 0700 gives another user nothing", func(t *T) {
			t.needUsers()
			grants(t, bob, t.dirIn(alice, t.dir(), "d", 0o700), 0)
		}),
		should("nobody", "a caller without credentials is judged as one of the others", func(t *T) {
			t.needUsers()
			a, b := t.fileAs(alice, t.dir(), "f", 0o604), t.fileAs(alice, t.dir(), "g", 0o600)
			hd := newHeader(nfsProg, nfsVers, procAccess, nil)
			for _, x := range []struct {
				h    fh
				want uint32
			}{{a, accessRead}, {b, 0}} {
				p := t.rpcOn(t.dial(), hd, newArgs().fh("object", x.h).u32("access", accessRead))
				if p.denied || statusOf(p) == errAcces {
					t.skip("the server wants credentials: %s", answer(p))
				}
				r := &reader{b: p.body}
				t.ok(status(r.u32()))
				r.postOp()
				got := r.u32()
				t.done(r)
				same(t, "bits", accessText(got), accessText(x.want))
			}
		}).at("RFC 1813, 4.4"),
		should("agrees-with-read", "who is given READ may read, who is not may not", func(t *T) {
			t.needUsers()
			for i, m := range []uint32{0o600, 0o604, 0o640, 0o644} {
				h := t.putAs(alice, string(rune('a'+i)), m, "data")
				for _, c := range []*cred{bob, member(t.attr(h).gid)} {
					granted := t.access(c, h, accessRead).bits == accessRead
					read := t.read(c, h, 0, 4).st == ok
					same(t, "READ works", read, granted)
				}
			}
		}),
	)
}

func accessText(bits uint32) string {
	s := ""
	for i, n := range []string{"READ", "LOOKUP", "MODIFY", "EXTEND", "DELETE", "EXECUTE"} {
		if bits&(1<<i) != 0 {
			s += " " + n
		}
	}
	if s == "" {
		return "nothing"
	}
	return s[1:]
}
