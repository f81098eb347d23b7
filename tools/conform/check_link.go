package conform

// LINK (RFC 1813, section 3.3.15).

func linkChecks() []Check {
	simple := func(t *T, c *cred, dir fh, name string) status {
		l := t.lookup(super, t.dir(), "source")
		h := l.obj
		if l.st != ok {
			h = t.fileAs(super, t.dir(), "source", 0o666)
		}
		st := t.link(c, h, dir, name).st
		if st == errNotSupp {
			t.skip("the server has no hard links")
		}
		return st
	}
	checks := []Check{
		must("new", "a second name leads to the same file, which has a link more", func(t *T) {
			h := t.put("f", "data")
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			t.leads(t.dir(), "g", h)
			same(t, "nlink", t.attr(h).nlink, 2)
		}),
		must("other-directory", "the second name may be in another directory", func(t *T) {
			h, d := t.put("f", "data"), t.sub("d")
			t.prepared("LINK", t.link(super, h, d, "g").st)
			t.leads(d, "g", h)
		}),
		must("one-content", "what is written by one name is read by the other", func(t *T) {
			h := t.put("f", "data")
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			l := t.lookup(super, t.dir(), "g")
			t.ok(l.st)
			t.ok(t.write(super, l.obj, 0, "DA", fileSync).st)
			t.text("content", t.content(h), "DAta")
		}),
		must("attributes", "the attributes LINK gives are those of the file afterwards", func(t *T) {
			h := t.put("f", "data")
			l := t.link(super, h, t.dir(), "g")
			t.prepared("LINK", l.st)
			if l.attr != nil {
				same(t, "attributes", *l.attr, t.attr(h))
			}
		}),
		must("exists", "LINK to a name that is there is EXIST, and the file has no link more", func(t *T) {
			h := t.put("f", "data")
			g := t.put("g", "other")
			t.is(t.link(super, h, t.dir(), "g").st, errExist)
			same(t, "nlink", t.attr(h).nlink, 1)
			t.leads(t.dir(), "g", g)
			t.is(t.link(super, h, t.dir(), "f").st, errExist)
		}),
		must("directory", "LINK of a directory is refused: it would make a cycle", func(t *T) {
			d := t.sub("d")
			t.refused(t.link(super, d, t.dir(), "e").st, errIsDir, errPerm, errInval)
			t.refused(t.link(super, t.dir(), d, "up").st, errIsDir, errPerm, errInval)
			same(t, "entries", len(t.names(d)), 0)
		}),
		should("symlink", "LINK of a symbolic link makes a second name of the link, not of its target", func(t *T) {
			f := t.put("f", "data")
			h := t.symlinkTo("l", "f")
			t.ok(t.link(super, h, t.dir(), "m").st)
			t.leads(t.dir(), "m", h)
			same(t, "nlink of the target", t.attr(f).nlink, 1)
		}),
		should("fifo", "LINK of a FIFO works as of a file", func(t *T) {
			h := t.fifo("p")
			t.ok(t.link(super, h, t.dir(), "q").st)
			same(t, "nlink", t.attr(h).nlink, 2)
		}),
		must("many", "a file may have 100 names, and lose them again", func(t *T) {
			h := t.put("f", "data")
			if t.s.path.linkMax < 101 {
				t.skip("linkmax is %d", t.s.path.linkMax)
			}
			for i := range 100 {
				t.prepared("LINK", t.link(super, h, t.dir(), string(rune(0x4e00+i))).st)
			}
			same(t, "nlink", t.attr(h).nlink, 101)
			for i := range 100 {
				t.ok(t.remove(super, t.dir(), string(rune(0x4e00+i))).st)
			}
			same(t, "nlink", t.attr(h).nlink, 1)
		}),
		must("ctime", "the file's ctime moves, its mtime does not", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			a := t.attr(h)
			t.that(!a.ctime.before(before.ctime), "ctime not before "+before.ctime.String(), "%v", a.ctime)
			same(t, "mtime", a.mtime, before.mtime)
		}),
		must("removed-source", "LINK of a file that was removed is STALE", func(t *T) {
			h := t.put("f", "data")
			t.ok(t.remove(super, t.dir(), "f").st)
			t.refused(t.link(super, h, t.dir(), "g").st, errStale)
			t.gone(t.dir(), "g")
		}),
	}
	names := nameRules(func(t *T, dir fh, name string) status {
		d := t.dirIn(super, t.s.dir, t.dirName()+"-source", 0o777)
		defer t.removeTree(t.s.dir, t.dirName()+"-source")
		return t.link(super, t.fileAs(super, d, "source", 0o644), dir, name).st
	})
	checks = append(checks, names...)
	for _, c := range dirRules(simple) {
		if c.Name != "owner" && c.Name != "setgid-directory" { // a link has no owner of its own
			checks = append(checks, c)
		}
	}
	checks = append(checks, takenRules(simple)...)
	return group("link", "RFC 1813, 3.3.15", checks...)
}
