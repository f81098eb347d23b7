package conform

import "strings"

// LOOKUP (RFC 1813, section 3.3.3), and the rules for names (section 3.2).

func lookupChecks() []Check {
	return group("lookup", "RFC 1813, 3.3.3",
		must("found", "a name that is there gives its handle", func(t *T) {
			h := t.file("f")
			l := t.lookup(super, t.dir(), "f")
			t.ok(l.st)
			same(t, "fileid", t.attr(l.obj).fileid, t.attr(h).fileid)
		}),
		must("attributes", "the attributes LOOKUP gives, of object and directory, are those of GETATTR", func(t *T) {
			h := t.put("f", "data")
			l := t.lookup(super, t.dir(), "f")
			t.ok(l.st)
			if l.attr != nil {
				same(t, "obj_attributes", *l.attr, t.attr(h))
			}
			if l.dir != nil {
				same(t, "dir_attributes", *l.dir, t.attr(t.dir()))
			}
		}),
		should("has-attributes", "LOOKUP gives the attributes of object and directory", func(t *T) {
			t.file("f")
			l := t.lookup(super, t.dir(), "f")
			t.that(l.attr != nil && l.dir != nil, "both", "object %v, directory %v", l.attr != nil, l.dir != nil)
		}).at("RFC 1813, 3.1"),
		must("missing", "a name that is not there is NOENT", func(t *T) {
			t.is(t.lookup(super, t.dir(), "nothing").st, errNoEnt)
		}),
		should("missing-attributes", "NOENT comes with the directory's attributes", func(t *T) {
			t.that(t.lookup(super, t.dir(), "nothing").dir != nil, "dir_attributes", "none")
		}).at("RFC 1813, 3.1"),
		should("dot", "`.` is the directory itself", func(t *T) { t.leads(t.dir(), ".", t.dir()) }).at("RFC 1813, 3.2"),
		should("dot-dot", "`..` is the directory above", func(t *T) {
			t.leads(t.sub("d"), "..", t.dir())
		}).at("RFC 1813, 3.2"),
		must("above-the-export", "`..` of the root of the export does not lead out of it", func(t *T) {
			l := t.lookup(super, t.s.root, "..")
			if l.st == ok {
				same(t, "fileid", t.attr(l.obj).fileid, t.attr(t.s.root).fileid)
			}
		}),
		must("in-file", "LOOKUP in a file is NOTDIR", func(t *T) { t.is(t.lookup(super, t.file("f"), "x").st, errNotDir) }),
		must("in-symlink", "LOOKUP in a symbolic link is NOTDIR: the server does not follow it", func(t *T) {
			t.sub("d")
			t.refused(t.lookup(super, t.symlinkTo("l", "d"), "x").st, errNotDir)
		}),
		must("symlink-itself", "LOOKUP of a symbolic link gives the link, not its target", func(t *T) {
			t.file("f")
			t.symlinkTo("l", "f")
			l := t.lookup(super, t.dir(), "l")
			t.ok(l.st)
			same(t, "type", t.attr(l.obj).typ, typeLnk)
		}),
	)
}

// lookupNameChecks are about what names may be.
func lookupNameChecks() []Check {
	return group("lookup", "RFC 1813, 3.3.3",
		must("empty-name", "an empty name is refused", func(t *T) {
			t.refused(t.lookup(super, t.dir(), "").st, errAcces)
		}).at("RFC 1813, 3.2"),
		must("slash", "a name with a slash is not taken for a path", func(t *T) {
			t.fileAs(super, t.sub("d"), "f", 0o644)
			t.refused(t.lookup(super, t.dir(), "d/f").st, errAcces, errInval, errNoEnt)
			t.refused(t.lookup(super, t.dir(), "/").st, errAcces, errInval, errNoEnt)
			t.refused(t.lookup(super, t.dir(), "d/").st, errAcces, errInval, errNoEnt)
			t.refused(t.lookup(super, t.dir(), "../"+t.dirName()).st, errAcces, errInval, errNoEnt)
		}).at("RFC 1813, 3.2"),
		must("nul", "a name does not end at a zero byte", func(t *T) {
			t.file("f")
			t.refused(t.lookup(super, t.dir(), "f\x00x").st, errAcces, errInval, errNoEnt)
			t.refused(t.lookup(super, t.dir(), "f\x00").st, errAcces, errInval, errNoEnt)
		}).at("RFC 4506, 4.11"),
		must("longest", "a name of name_max bytes is found", func(t *T) {
			n := strings.Repeat("n", int(t.nameMax()))
			t.leads(t.dir(), n, t.file(n))
		}).at("RFC 1813, 3.3.20"),
		must("longest-missing", "a name of name_max bytes that is not there is NOENT", func(t *T) {
			t.is(t.lookup(super, t.dir(), strings.Repeat("n", int(t.nameMax()))).st, errNoEnt)
		}).at("RFC 1813, 3.3.20"),
		should("too-long", "a name of name_max + 1 bytes is NAMETOOLONG", func(t *T) {
			t.is(t.lookup(super, t.dir(), strings.Repeat("n", int(t.nameMax())+1)).st, errNameTooLong)
		}).at("RFC 1813, 3.2"),
		must("much-too-long", "a name of 8000 bytes is refused", func(t *T) {
			p := t.try(procLookup, super, newArgs().dirop(t.dir(), strings.Repeat("n", 8000)))
			t.that(!p.denied && (p.stat == garbageArgs || p.stat == success && statusOf(p) != ok), "NAMETOOLONG", "%s", p)
			t.prefer(p.stat == success && statusOf(p) == errNameTooLong, "NAMETOOLONG", p.String())
		}).at("RFC 1813, 3.2"),
		must("case", "upper and lower case are different names, unless PATHCONF says they are not", func(t *T) {
			h := t.file("Name")
			if t.s.path.caseInsensitive {
				t.leads(t.dir(), "nAME", h)
			} else {
				t.gone(t.dir(), "nAME")
			}
		}).at("RFC 1813, 3.3.20"),
		should("any-bytes", "names are bytes: neither UTF-8 nor printable, they are kept as they are", func(t *T) {
			for _, n := range []string{"\xff\xfe", "a\nb", "\x01", " ", "trailing ", "ä", "a\u0308", "*?", "\\", "...", "-"} {
				t.leads(t.dir(), n, t.file(n))
			}
			t.that(len(t.names(t.dir())) == 11, "11 names", "%q", t.names(t.dir()))
		}).at("RFC 1813, 4.6"),
	)
}

// lookupPermChecks are about who may look up.
func lookupPermChecks() []Check {
	return group("lookup", "RFC 1813, 3.3.3",
		must("no-search", "a user who may not search the directory does not look up", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o766)
			t.fileAs(alice, d, "f", 0o666)
			t.is(t.lookup(bob, d, "f").st, errAcces)
			t.ok(t.lookup(alice, d, "f").st)
		}),
		must("search-only", "to search is enough, to read is not needed", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o711)
			t.fileAs(alice, d, "f", 0o600)
			t.ok(t.lookup(bob, d, "f").st)
		}),
		should("no-search-hides", "a user who may not search does not learn what is there", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o700)
			t.is(t.lookup(bob, d, "nothing").st, errAcces)
		}),
		must("no-search-no-handle", "an ACCES has no handle in it: its form is that of an error", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o700)
			t.fileAs(alice, d, "f", 0o600)
			l := t.lookup(bob, d, "f")
			t.that(l.st != ok && l.obj == "", "an error", "%v", l.st)
		}),
		must("group-search", "a supplementary group gives the right to search", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o710)
			t.fileAs(alice, d, "f", 0o600)
			t.is(t.lookup(bob, d, "f").st, errAcces)
			t.ok(t.lookup(member(t.attr(d).gid), d, "f").st)
		}),
	)
}

// nameMax is the longest name, in bytes, according to PATHCONF.
func (t *T) nameMax() uint32 {
	n := t.s.path.nameMax
	if n == 0 || n > 4000 {
		t.skip("PATHCONF's name_max is %d", n)
	}
	return n
}
