package conform

// Who may set what (RFC 1813, sections 3.3.2 and 4.4; what Unix does where the
// RFC leaves it to the server).

// member is bob with a supplementary group.
func member(gid uint32) *cred { return &cred{uid: bob.uid, gid: bob.gid, gids: []uint32{gid}} }

func setattrPermChecks() []Check {
	return group("setattr-perm", "RFC 1813, 4.4",
		must("mode-by-other", "only the owner and the superuser set the mode", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o666)
			t.refused(t.setattr(bob, h, mode(0o777), nil).st, errPerm, errAcces)
			t.mode(t.attr(h), 0o666)
			t.ok(t.setattr(alice, h, mode(0o600), nil).st)
		}),
		should("mode-by-other-perm", "the error of a mode set by another is PERM", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o666)
			t.is(t.setattr(bob, h, mode(0o777), nil).st, errPerm)
		}).at("RFC 1813, 2.6"),
		must("user-by-owner", "an owner does not give a file to another user where PATHCONF says chown_restricted",
			func(t *T) {
				t.needUsers()
				h := t.fileAs(alice, t.dir(), "f", 0o644)
				st := t.setattr(alice, h, sattr{uid: &bob.uid}, nil).st
				if t.s.path.chownRestricted {
					t.refused(st, errPerm)
				} else {
					t.ok(st)
				}
			}).at("RFC 1813, 3.3.20"),
		must("user-taken", "nobody but the superuser takes a file of another", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o666)
			t.refused(t.setattr(bob, h, sattr{uid: &bob.uid}, nil).st, errPerm, errAcces)
			same(t, "uid", t.attr(h).uid, alice.uid)
		}),
		should("group-by-owner", "an owner gives a file to a group that they are in", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o644)
			in := &cred{uid: alice.uid, gid: alice.gid, gids: []uint32{41111, 42222}}
			t.ok(t.setattr(in, h, sattr{gid: ptr(uint32(42222))}, nil).st)
			same(t, "gid", t.attr(h).gid, 42222)
		}),
		must("group-not-in", "an owner does not give a file to a group that they are not in", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o644)
			st := t.setattr(alice, h, sattr{gid: ptr(uint32(42222))}, nil).st
			if t.s.path.chownRestricted {
				t.refused(st, errPerm)
				same(t, "gid", t.attr(h).gid, alice.gid)
			}
		}).at("RFC 1813, 3.3.20"),
		should("same-owner", "an owner sets the user and group that the file has already", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o644)
			t.ok(t.setattr(alice, h, sattr{uid: &alice.uid, gid: ptr(t.attr(h).gid)}, nil).st)
		}),
	)
}

// setattrByOthersChecks are about who may set sizes and times, and what that takes away.
func setattrByOthersChecks() []Check {
	return group("setattr-perm", "RFC 1813, 4.4",
		must("size-by-other", "a user who may not write does not set the size", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			t.refused(t.setattr(bob, h, size(0), nil).st, errAcces, errPerm)
			same(t, "size", t.attr(h).size, 4)
		}),
		must("size-by-writer", "a user who may write sets the size", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o646, "data")
			t.ok(t.setattr(bob, h, size(1), nil).st)
			same(t, "size", t.attr(h).size, 1)
		}),
		should("size-by-owner", "an owner sets the size whatever the mode is", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			t.ok(t.setattr(alice, h, mode(0), nil).st)
			t.ok(t.setattr(alice, h, size(1), nil).st)
		}),
		must("client-time-by-writer", "a user who may write but does not own the file does not set its times to values",
			func(t *T) {
				t.needUsers()
				h := t.fileAs(alice, t.dir(), "f", 0o666)
				t.refused(t.setattr(bob, h, sattr{mtimeHow: 2, mtime: stamp{1, 0}}, nil).st, errPerm, errAcces)
				t.that(t.attr(h).mtime.sec != 1, "mtime as before", "%v", t.attr(h).mtime)
			}),
		should("server-time-by-writer", "a user who may write sets the times to the server's time", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o666)
			t.ok(t.setattr(bob, h, sattr{mtimeHow: 1, atimeHow: 1}, nil).st)
		}),
		must("server-time-by-other", "a user who may not write does not set the times to the server's time", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o644)
			t.refused(t.setattr(bob, h, sattr{mtimeHow: 1, atimeHow: 1}, nil).st, errAcces, errPerm)
		}),
		should("foreign-setgid", "set-group-id of a group that the owner is not in is not set", func(t *T) {
			t.needUsers()
			t.needRoot()
			h := t.fileAs(alice, t.dir(), "f", 0o755)
			t.ok(t.setattr(super, h, sattr{gid: ptr(uint32(42222))}, nil).st)
			t.setattr(alice, h, mode(0o2755), nil)
			t.mode(t.attr(h), 0o755)
		}),
		should("chgrp-clears-setuid", "a new group given by the owner takes set-user-id and set-group-id away", func(t *T) {
			t.needUsers()
			in := &cred{uid: alice.uid, gid: alice.gid, gids: []uint32{42222}}
			h := t.fileAs(alice, t.dir(), "f", 0o755)
			t.ok(t.setattr(in, h, mode(0o6755), nil).st)
			t.ok(t.setattr(in, h, sattr{gid: ptr(uint32(42222))}, nil).st)
			t.mode(t.attr(h), 0o755)
		}),
		should("truncate-clears-setuid", "a size set by a user other than the superuser takes set-user-id away", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o777, "data")
			t.ok(t.setattr(alice, h, mode(0o4777), nil).st)
			t.ok(t.setattr(bob, h, size(1), nil).st)
			t.mode(t.attr(h), 0o777)
		}),
		must("guard-needs-no-right", "a wrong guard does not let a user through who may not change the file", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0o644)
			c := t.attr(h).ctime
			t.refused(t.setattr(bob, h, mode(0o777), &c).st, errPerm, errAcces)
			t.refused(t.setattr(bob, h, mode(0o777), &stamp{1, 1}).st, errPerm, errAcces, errNotSync)
			t.mode(t.attr(h), 0o644)
		}),
		must("read-write-group", "a supplementary group gives the right to set the size", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o664, "data")
			t.refused(t.setattr(bob, h, size(1), nil).st, errAcces, errPerm)
			t.ok(t.setattr(member(t.attr(h).gid), h, size(1), nil).st)
		}),
	)
}
