package conform

import "strings"

// REMOVE and RMDIR (RFC 1813, sections 3.3.12 and 3.3.13).

// unlinkRules are the rules for names and rights that the two have in common.
// makes makes an entry that the procedure may remove, as some user.
func unlinkRules(
	makes func(t *T, c *cred, dir fh, name string) fh,
	removes func(t *T, c *cred, dir fh, name string) wccRes,
) []Check {
	return []Check{
		must("removed", "the name is gone, and cannot be removed again", func(t *T) {
			makes(t, super, t.dir(), "x")
			t.ok(removes(t, super, t.dir(), "x").st)
			t.gone(t.dir(), "x")
			same(t, "entries", len(t.names(t.dir())), 0)
			t.is(removes(t, super, t.dir(), "x").st, errNoEnt)
		}),
		must("again", "the name can be made again, and is another object", func(t *T) {
			old := makes(t, super, t.dir(), "x")
			t.ok(removes(t, super, t.dir(), "x").st)
			h := makes(t, super, t.dir(), "x")
			t.that(h != old, "another handle", "the same")
			t.ended(old)
		}),
		must("name-empty", "an empty name is refused", func(t *T) {
			t.refused(removes(t, super, t.dir(), "").st, errAcces, errInval, errNoEnt)
		}).at("RFC 1813, 3.2"),
		must("name-slash", "a name with a slash is not taken for a path", func(t *T) {
			d := t.sub("d")
			makes(t, super, d, "x")
			for _, n := range []string{"d/x", "./d/x", "/"} {
				t.refused(removes(t, super, t.dir(), n).st, errAcces, errInval, errNoEnt)
			}
			same(t, "entries", len(t.names(d)), 1)
		}).at("RFC 1813, 3.2"),
		must("name-nul", "a name does not end at a zero byte", func(t *T) {
			makes(t, super, t.dir(), "x")
			t.refused(removes(t, super, t.dir(), "x\x00y").st, errAcces, errInval, errNoEnt)
			t.that(t.exists(t.dir(), "x"), "the name still there", "it is gone")
		}).at("RFC 4506, 4.11"),
		should("name-too-long", "a name of name_max + 1 bytes is NAMETOOLONG", func(t *T) {
			t.is(removes(t, super, t.dir(), strings.Repeat("n", int(t.nameMax())+1)).st, errNameTooLong)
		}).at("RFC 1813, 3.2"),
		must("in-file", "in a file it is NOTDIR", func(t *T) { t.is(removes(t, super, t.file("f"), "x").st, errNotDir) }),
		must("no-write", "a user who may not write the directory removes nothing, not even what is theirs", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o777)
			makes(t, bob, d, "x")
			t.ok(t.setattr(alice, d, mode(0o755), nil).st)
			t.is(removes(t, bob, d, "x").st, errAcces)
			t.that(t.exists(d, "x"), "the name still there", "it is gone")
		}),
		must("others", "a user who may write the directory removes what belongs to others", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o777)
			makes(t, alice, d, "x")
			t.ok(removes(t, bob, d, "x").st)
		}),
		must("sticky", "from a sticky directory a user does not remove what belongs to others", func(t *T) {
			t.needUsers()
			d := t.dirIn(super, t.dir(), "d", 0o1777)
			makes(t, alice, d, "x")
			t.refused(removes(t, bob, d, "x").st, errAcces, errPerm)
			t.that(t.exists(d, "x"), "the name still there", "it is gone")
		}).at("RFC 1813, 4.4"),
		must("sticky-owner", "from a sticky directory a user removes what is theirs", func(t *T) {
			t.needUsers()
			d := t.dirIn(super, t.dir(), "d", 0o1777)
			makes(t, bob, d, "x")
			t.ok(removes(t, bob, d, "x").st)
		}).at("RFC 1813, 4.4"),
		must("sticky-directory-owner", "the owner of a sticky directory removes what belongs to others", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o1777)
			makes(t, bob, d, "x")
			t.ok(removes(t, alice, d, "x").st)
		}).at("RFC 1813, 4.4"),
		must("directory-times", "mtime and ctime of the directory move", func(t *T) {
			makes(t, super, t.dir(), "x")
			t.ok(t.setattr(super, t.dir(), sattr{mtimeHow: 2, mtime: stamp{1, 0}}, nil).st)
			before := t.attr(t.dir())
			t.ok(removes(t, super, t.dir(), "x").st)
			a := t.attr(t.dir())
			t.that(a.mtime.sec > 1, "a new mtime", "%v", a.mtime)
			t.that(!a.ctime.before(before.ctime), "ctime not before "+before.ctime.String(), "%v", a.ctime)
		}),
	}
}

func removeChecks() []Check {
	checks := []Check{
		must("second-link", "the other name of a file keeps it, with a link less and its content", func(t *T) {
			h := t.put("f", "data")
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			t.ok(t.remove(super, t.dir(), "f").st)
			t.leads(t.dir(), "g", h)
			same(t, "nlink", t.attr(h).nlink, 1)
			t.text("content", t.content(h), "data")
		}),
		should("second-link-ctime", "the file's ctime moves when it loses a link", func(t *T) {
			h := t.file("f")
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			before := t.attr(h)
			t.ok(t.remove(super, t.dir(), "f").st)
			a := t.attr(h)
			t.that(!a.ctime.before(before.ctime), "ctime not before "+before.ctime.String(), "%v", a.ctime)
			same(t, "mtime", a.mtime, before.mtime)
		}),
		must("symlink", "a symbolic link is removed, not its target", func(t *T) {
			f := t.put("f", "data")
			t.symlinkTo("l", "f")
			t.ok(t.remove(super, t.dir(), "l").st)
			t.gone(t.dir(), "l")
			t.text("content", t.content(f), "data")
		}),
		must("fifo", "a FIFO is removed", func(t *T) {
			t.fifo("p")
			t.ok(t.remove(super, t.dir(), "p").st)
			t.gone(t.dir(), "p")
		}),
		must("full-directory", "REMOVE does not remove a directory that is not empty", func(t *T) {
			d := t.sub("d")
			t.fileAs(super, d, "f", 0o644)
			t.refused(t.remove(super, t.dir(), "d").st, errIsDir, errPerm)
			t.that(t.exists(d, "f"), "the file in it still there", "it is gone")
		}),
		should("directory", "REMOVE of an empty directory is refused: that is RMDIR", func(t *T) {
			t.sub("d")
			t.is(t.remove(super, t.dir(), "d").st, errIsDir, errPerm)
		}),
		must("name-dot", "REMOVE of `.` is refused", func(t *T) {
			t.refused(t.remove(super, t.sub("d"), ".").st, errInval, errIsDir, errAcces, errPerm)
			t.that(t.exists(t.dir(), "d"), "the directory still there", "it is gone")
		}).at("RFC 1813, 3.2"),
		must("name-dot-dot", "REMOVE of `..` is refused", func(t *T) {
			t.refused(t.remove(super, t.sub("d"), "..").st, errInval, errIsDir, errAcces, errPerm, errExist)
			t.that(t.exists(t.s.dir, t.dirName()), "the directory still there", "it is gone")
		}).at("RFC 1813, 3.2"),
		should("large", "a file of 4 MiB is removed, and its handle is stale at once", func(t *T) {
			h := t.file("f")
			t.fill(h, 0, strings.Repeat("x", 4<<20))
			t.ok(t.remove(super, t.dir(), "f").st)
			t.is(t.read(super, h, 0, 10).st, errStale)
		}),
	}
	checks = append(checks, unlinkRules(
		func(t *T, c *cred, dir fh, name string) fh { return t.fileAs(c, dir, name, 0o644) },
		(*T).remove)...)
	return group("remove", "RFC 1813, 3.3.12", checks...)
}

func rmdirChecks() []Check {
	checks := []Check{
		must("full", "RMDIR of a directory that is not empty is NOTEMPTY, whatever is in it", func(t *T) {
			for i, fill := range []func(d fh){
				func(d fh) { t.fileAs(super, d, "f", 0o644) },
				func(d fh) { t.dirIn(super, d, "e", 0o755) },
				func(d fh) { t.fileAs(super, d, "\xff", 0) },
			} {
				n := string(rune('a' + i))
				d := t.sub(n)
				fill(d)
				t.refused(t.rmdir(super, t.dir(), n).st, errNotEmpty, errExist)
				same(t, "entries", len(t.names(d)), 1)
			}
		}),
		should("full-status", "the error for a directory that is not empty is NOTEMPTY", func(t *T) {
			t.fileAs(super, t.sub("d"), "f", 0o644)
			t.is(t.rmdir(super, t.dir(), "d").st, errNotEmpty)
		}).at("RFC 1813, 2.6"),
		must("emptied", "a directory that was emptied is removed", func(t *T) {
			d := t.sub("d")
			for _, n := range []string{"a", "b", "c"} {
				t.fileAs(super, d, n, 0o644)
			}
			for _, n := range []string{"b", "a", "c"} {
				t.ok(t.remove(super, d, n).st)
			}
			t.ok(t.rmdir(super, t.dir(), "d").st)
		}),
		must("file", "RMDIR of a file is NOTDIR", func(t *T) {
			t.file("f")
			t.is(t.rmdir(super, t.dir(), "f").st, errNotDir)
			t.that(t.exists(t.dir(), "f"), "the file still there", "it is gone")
		}),
		must("symlink", "RMDIR of a symbolic link to a directory is NOTDIR", func(t *T) {
			t.sub("d")
			t.symlinkTo("l", "d")
			t.is(t.rmdir(super, t.dir(), "l").st, errNotDir)
			t.that(t.exists(t.dir(), "d"), "the directory still there", "it is gone")
		}),
		must("name-dot", "RMDIR of `.` is refused, with INVAL", func(t *T) {
			t.refused(t.rmdir(super, t.sub("d"), ".").st, errInval)
			t.that(t.exists(t.dir(), "d"), "the directory still there", "it is gone")
		}),
		must("name-dot-dot", "RMDIR of `..` is refused, with EXIST", func(t *T) {
			t.refused(t.rmdir(super, t.sub("d"), "..").st, errExist, errNotEmpty)
			t.that(t.exists(t.s.dir, t.dirName()), "the directory still there", "it is gone")
		}),
		should("parent-links", "the directory above has a link less", func(t *T) {
			t.sub("d")
			before := t.attr(t.dir()).nlink
			t.ok(t.rmdir(super, t.dir(), "d").st)
			same(t, "nlink", t.attr(t.dir()).nlink, before-1)
		}),
		must("in-removed", "nothing can be made in a directory that was removed", func(t *T) {
			h := t.stale()
			t.refused(t.create(super, h, "f", unchecked, mode(0o644), 0).st, errStale, errNoEnt)
			t.refused(t.mkdir(super, h, "d", mode(0o755)).st, errStale, errNoEnt)
			same(t, "entries", len(t.names(t.dir())), 0)
		}),
	}
	checks = append(checks, unlinkRules(
		func(t *T, c *cred, dir fh, name string) fh { return t.dirIn(c, dir, name, 0o755) },
		(*T).rmdir)...)
	return group("rmdir", "RFC 1813, 3.3.13", checks...)
}
