package conform

import "strings"

// RENAME (RFC 1813, section 3.3.14).

func renameChecks() []Check {
	// refusedAndKept wants RENAME within the check's directory to be refused, and
	// all entries to stay.
	refusedAndKept := func(t *T, from, to string, usual ...status) {
		before := t.names(t.dir())
		t.refused(t.rename(super, t.dir(), from, t.dir(), to).st, usual...)
		same(t, "entries", strings.Join(t.names(t.dir()), " "), strings.Join(before, " "))
	}
	return group("rename", "RFC 1813, 3.3.14",
		must("name", "a file gets another name, and stays the same object with the same content", func(t *T) {
			h := t.put("f", "data")
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
			t.gone(t.dir(), "f")
			t.leads(t.dir(), "g", h)
			t.text("content", t.content(h), "data")
		}),
		must("directory", "a file goes to another directory", func(t *T) {
			h, d := t.put("f", "data"), t.sub("d")
			t.ok(t.rename(super, t.dir(), "f", d, "g").st)
			t.gone(t.dir(), "f")
			t.leads(d, "g", h)
		}),
		must("replace", "an existing file of the new name is replaced: its handle is stale", func(t *T) {
			h, old := t.put("f", "new"), t.put("g", "old")
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
			t.gone(t.dir(), "f")
			t.leads(t.dir(), "g", h)
			t.ended(old)
		}),
		must("replace-link", "a replaced file that has another name keeps it, with a link less", func(t *T) {
			h, old := t.put("f", "new"), t.put("g", "old")
			t.prepared("LINK", t.link(super, old, t.dir(), "k").st)
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
			t.leads(t.dir(), "g", h)
			same(t, "nlink", t.attr(old).nlink, 1)
			t.text("content", t.content(old), "old")
		}),
		must("replace-symlink", "a symbolic link of the new name is replaced, not followed", func(t *T) {
			h, f := t.put("f", "new"), t.put("target", "old")
			t.symlinkTo("l", "target")
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "l").st)
			t.leads(t.dir(), "l", h)
			t.text("content", t.content(f), "old")
		}),
		must("symlink-itself", "a symbolic link is renamed, not its target", func(t *T) {
			f := t.put("f", "data")
			l := t.symlinkTo("l", "f")
			t.ok(t.rename(super, t.dir(), "l", t.dir(), "m").st)
			t.leads(t.dir(), "m", l)
			t.leads(t.dir(), "f", f)
		}),
		must("same-name", "a name renamed to itself is OK and stays", func(t *T) {
			h := t.put("f", "data")
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "f").st)
			t.leads(t.dir(), "f", h)
			same(t, "nlink", t.attr(h).nlink, 1)
		}),
		must("links-of-one-file", "a name renamed to another name of its file: OK, and the file is still there", func(t *T) {
			h := t.put("f", "data")
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
			t.leads(t.dir(), "g", h)
			same(t, "nlink", int(t.attr(h).nlink), len(t.names(t.dir())))
		}),
		should("links-of-one-file-stay", "a name renamed to another name of its file: nothing is done", func(t *T) {
			h := t.put("f", "data")
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
			same(t, "entries", len(t.names(t.dir())), 2)
		}),
		must("missing", "RENAME of what is not there is NOENT", func(t *T) {
			h := t.put("g", "data")
			t.is(t.rename(super, t.dir(), "f", t.dir(), "g").st, errNoEnt)
			t.leads(t.dir(), "g", h)
		}),
		must("missing-to-itself", "RENAME of what is not there to its own name is NOENT", func(t *T) {
			t.is(t.rename(super, t.dir(), "f", t.dir(), "f").st, errNoEnt)
		}),
		must("from-file", "RENAME from a file as if it were a directory is NOTDIR", func(t *T) {
			t.is(t.rename(super, t.file("f"), "x", t.dir(), "y").st, errNotDir)
		}),
		must("to-file", "RENAME into a file as if it were a directory is NOTDIR", func(t *T) {
			f := t.file("f")
			t.file("g")
			t.is(t.rename(super, t.dir(), "g", f, "x").st, errNotDir)
			t.that(t.exists(t.dir(), "g"), "the file still there", "it is gone")
		}),
		must("from-dot", "RENAME of `.` is refused", func(t *T) {
			d := t.sub("d")
			t.refused(t.rename(super, d, ".", t.dir(), "x").st, errInval)
			t.leads(t.dir(), "d", d)
		}),
		must("from-dot-dot", "RENAME of `..` is refused", func(t *T) {
			d := t.sub("d")
			t.refused(t.rename(super, d, "..", d, "x").st, errInval)
			same(t, "entries", len(t.names(d)), 0)
		}),
		must("to-dot", "RENAME to `.` is refused", func(t *T) {
			t.sub("d")
			t.file("f")
			refusedAndKept(t, "f", ".", errInval, errExist, errIsDir)
			refusedAndKept(t, "d", ".", errInval, errExist, errNotEmpty)
		}),
		must("to-dot-dot", "RENAME to `..` is refused", func(t *T) {
			t.file("f")
			refusedAndKept(t, "f", "..", errInval, errExist, errIsDir)
		}),
		must("empty-names", "an empty name is refused on both sides", func(t *T) {
			t.file("f")
			refusedAndKept(t, "", "g", errAcces, errInval, errNoEnt)
			refusedAndKept(t, "f", "", errAcces, errInval, errNoEnt)
		}).at("RFC 1813, 3.2"),
		must("slash", "a name with a slash is not taken for a path, on both sides", func(t *T) {
			d := t.sub("d")
			t.fileAs(super, d, "x", 0o644)
			t.file("f")
			refusedAndKept(t, "d/x", "g", errAcces, errInval, errNoEnt)
			refusedAndKept(t, "f", "d/y", errAcces, errInval, errNoEnt)
			same(t, "entries of d", len(t.names(d)), 1)
		}).at("RFC 1813, 3.2"),
		must("longest", "a new name of name_max bytes is taken", func(t *T) {
			h := t.file("f")
			n := strings.Repeat("n", int(t.nameMax()))
			t.ok(t.rename(super, t.dir(), "f", t.dir(), n).st)
			t.leads(t.dir(), n, h)
		}).at("RFC 1813, 3.3.20"),
		must("too-long", "a new name of name_max + 1 bytes is refused, with NAMETOOLONG, and the old one stays", func(t *T) {
			t.file("f")
			if !t.s.path.noTrunc {
				t.skip("PATHCONF says that names are cut")
			}
			refusedAndKept(t, "f", strings.Repeat("n", int(t.nameMax())+1), errNameTooLong)
		}).at("RFC 1813, 3.2"),
		must("no-write-from", "a user who may not write the directory it comes from renames nothing", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o755)
			t.fileAs(alice, d, "f", 0o666)
			t.is(t.rename(bob, d, "f", t.dir(), "g").st, errAcces)
			t.that(t.exists(d, "f") && !t.exists(t.dir(), "g"), "the file still there", "it moved")
		}),
		must("no-write-to", "a user who may not write the directory it goes to renames nothing", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o755)
			t.fileAs(bob, t.dir(), "f", 0o666)
			t.is(t.rename(bob, t.dir(), "f", d, "g").st, errAcces)
			t.that(!t.exists(d, "g") && t.exists(t.dir(), "f"), "the file still there", "it moved")
		}),
		must("sticky-from", "from a sticky directory a user does not rename what belongs to others", func(t *T) {
			t.needUsers()
			d := t.dirIn(super, t.dir(), "d", 0o1777)
			t.fileAs(alice, d, "f", 0o666)
			t.refused(t.rename(bob, d, "f", t.dir(), "g").st, errAcces, errPerm)
			t.that(t.exists(d, "f"), "the file still there", "it is gone")
			t.ok(t.rename(alice, d, "f", t.dir(), "g").st)
		}).at("RFC 1813, 4.4"),
		must("sticky-to", "in a sticky directory a user does not replace what belongs to others", func(t *T) {
			t.needUsers()
			d := t.dirIn(super, t.dir(), "d", 0o1777)
			h := t.fileAs(alice, d, "f", 0o666)
			t.fileAs(bob, t.dir(), "g", 0o666)
			t.refused(t.rename(bob, t.dir(), "g", d, "f").st, errAcces, errPerm)
			t.leads(d, "f", h)
		}).at("RFC 1813, 4.4"),
		must("times", "mtime and ctime of both directories move", func(t *T) {
			d := t.sub("d")
			t.file("f")
			for _, h := range []fh{t.dir(), d} {
				t.ok(t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{1, 0}}, nil).st)
			}
			t.ok(t.rename(super, t.dir(), "f", d, "g").st)
			for _, h := range []fh{t.dir(), d} {
				t.that(t.attr(h).mtime.sec > 1, "a new mtime", "%v", t.attr(h).mtime)
			}
		}),
		must("file-unchanged", "RENAME changes nothing of the file but ctime", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
			a := t.attr(h)
			before.ctime = a.ctime
			same(t, "attributes", a, before)
		}),
		must("chain", "names are exchanged with three RENAMEs, and all content stays", func(t *T) {
			a, b := t.put("a", "AAAA"), t.put("b", "BBBB")
			for _, r := range [][2]string{{"a", "tmp"}, {"b", "a"}, {"tmp", "b"}} {
				t.ok(t.rename(super, t.dir(), r[0], t.dir(), r[1]).st)
			}
			t.leads(t.dir(), "a", b)
			t.leads(t.dir(), "b", a)
			same(t, "entries", len(t.names(t.dir())), 2)
		}),
	)
}

func renameDirChecks() []Check {
	return group("rename-dir", "RFC 1813, 3.3.14",
		must("name", "a directory gets another name, with all that is in it", func(t *T) {
			d := t.sub("d")
			f := t.fileAs(super, d, "f", 0o644)
			t.ok(t.rename(super, t.dir(), "d", t.dir(), "e").st)
			t.gone(t.dir(), "d")
			t.leads(t.dir(), "e", d)
			t.leads(d, "f", f)
		}),
		must("dot-dot", "`..` of a directory that moved is where it went", func(t *T) {
			d, e := t.sub("d"), t.sub("e")
			t.ok(t.rename(super, t.dir(), "d", e, "d").st)
			l := t.lookup(super, d, "..")
			t.prefer(l.st == ok, "OK", l.st.String())
			if l.st == ok {
				same(t, "fileid of ..", t.attr(l.obj).fileid, t.attr(e).fileid)
			}
		}),
		should("dot-dot-listed", "READDIR of a directory that moved shows its new `..`", func(t *T) {
			d, e := t.sub("d"), t.sub("e")
			t.ok(t.rename(super, t.dir(), "d", e, "d").st)
			for _, x := range t.scan(d) {
				if x.name == ".." {
					same(t, "fileid of ..", x.fileid, t.attr(e).fileid)
				}
			}
		}).at("RFC 1813, 3.3.16"),
		should("links", "a directory that moves takes a link from one directory to the other", func(t *T) {
			t.sub("d")
			e := t.sub("e")
			from, to := t.attr(t.dir()).nlink, t.attr(e).nlink
			t.ok(t.rename(super, t.dir(), "d", e, "d").st)
			same(t, "nlink of the old place", t.attr(t.dir()).nlink, from-1)
			same(t, "nlink of the new place", t.attr(e).nlink, to+1)
		}),
		must("onto-empty", "a directory replaces an empty one", func(t *T) {
			d, e := t.sub("d"), t.sub("e")
			t.fileAs(super, d, "f", 0o644)
			t.ok(t.rename(super, t.dir(), "d", t.dir(), "e").st)
			t.leads(t.dir(), "e", d)
			t.gone(t.dir(), "d")
			t.ended(e)
		}),
		should("onto-empty-links", "a directory that replaces one in the same directory takes a link from that", func(t *T) {
			t.sub("d")
			t.sub("e")
			before := t.attr(t.dir()).nlink
			t.ok(t.rename(super, t.dir(), "d", t.dir(), "e").st)
			same(t, "nlink", t.attr(t.dir()).nlink, before-1)
		}),
		must("onto-full", "a directory does not replace one that is not empty", func(t *T) {
			d, e := t.sub("d"), t.sub("e")
			t.fileAs(super, e, "f", 0o644)
			t.refused(t.rename(super, t.dir(), "d", t.dir(), "e").st, errExist, errNotEmpty)
			t.leads(t.dir(), "d", d)
			same(t, "entries of the other", len(t.names(e)), 1)
		}),
		must("onto-file", "a directory does not replace a file", func(t *T) {
			t.sub("d")
			f := t.put("f", "data")
			t.refused(t.rename(super, t.dir(), "d", t.dir(), "f").st, errExist, errNotDir)
			t.leads(t.dir(), "f", f)
		}),
		must("file-onto-directory", "a file does not replace a directory, not even an empty one", func(t *T) {
			d := t.sub("d")
			t.put("f", "data")
			t.refused(t.rename(super, t.dir(), "f", t.dir(), "d").st, errExist, errIsDir)
			t.leads(t.dir(), "d", d)
		}),
		must("into-itself", "a directory does not go into itself", func(t *T) {
			d := t.sub("d")
			t.refused(t.rename(super, t.dir(), "d", d, "x").st, errInval)
			t.leads(t.dir(), "d", d)
			same(t, "entries", len(t.names(d)), 0)
		}),
		must("into-its-own", "a directory does not go into one below it, at any depth", func(t *T) {
			d := t.sub("d")
			e := d
			for range 5 {
				e = t.dirIn(super, e, "e", 0o755)
				t.refused(t.rename(super, t.dir(), "d", e, "x").st, errInval)
			}
			t.leads(t.dir(), "d", d)
		}),
		must("onto-ancestor", "a directory does not replace one above it", func(t *T) {
			d := t.sub("d")
			e := t.dirIn(super, d, "e", 0o755)
			f := t.dirIn(super, e, "f", 0o755)
			t.refused(t.rename(super, e, "f", t.dir(), "d").st, errExist, errNotEmpty)
			t.leads(e, "f", f)
			t.leads(t.dir(), "d", d)
		}),
		must("same-name", "a directory renamed to itself is OK and stays", func(t *T) {
			d := t.sub("d")
			t.ok(t.rename(super, t.dir(), "d", t.dir(), "d").st)
			t.leads(t.dir(), "d", d)
			same(t, "nlink", t.attr(d).nlink, 2)
		}),
		should("foreign", "a user does not move another's directory, which they may not write, to another place", func(t *T) {
			t.needUsers()
			t.dirIn(alice, t.dir(), "d", 0o755)
			e := t.dirIn(bob, t.dir(), "e", 0o755)
			t.is(t.rename(bob, t.dir(), "d", e, "d").st, errAcces)
		}).at("RFC 1813, 4.4"),
	)
}
