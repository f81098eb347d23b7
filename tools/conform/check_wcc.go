package conform

// Weak cache consistency data (RFC 1813, sections 2.6 and 4.11): what an
// operation says the attributes were before and are after is what GETATTR says.

// agrees wants wcc_data to be the attributes as they were and are.
func (t *T) agrees(what string, w wcc, before attr, h fh) {
	if w.before != nil {
		same(t, what+": size before", w.before.size, before.size)
		same(t, what+": mtime before", w.before.mtime, before.mtime)
		same(t, what+": ctime before", w.before.ctime, before.ctime)
	}
	if w.after != nil {
		same(t, what+": attributes after", *w.after, t.attr(h))
	}
}

// whole notes a difference where wcc_data is not complete.
func (t *T) whole(what string, w wcc) {
	t.prefer(w.before != nil && w.after != nil, what+": attributes before and after", "not both")
}

func wccChecks() []Check {
	return group("wcc", "RFC 1813, 2.6",
		must("setattr", "SETATTR tells the file's attributes before and after", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			w := t.setattr(super, h, size(2), nil)
			t.ok(w.st)
			t.agrees("file", w.wcc, before, h)
			t.whole("file", w.wcc)
		}),
		must("setattr-failed", "a SETATTR that fails tells that nothing changed", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			w := t.setattr(super, h, size(2), &stamp{1, 1})
			t.is(w.st, errNotSync)
			t.agrees("file", w.wcc, before, h)
		}),
		must("write", "WRITE tells the file's attributes before and after", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			w := t.write(super, h, 2, "more", fileSync)
			t.ok(w.st)
			t.agrees("file", w.wcc, before, h)
			t.whole("file", w.wcc)
		}),
		must("write-unstable", "an UNSTABLE WRITE tells the file's attributes before and after too", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			w := t.write(super, h, 2, "more", unstable)
			t.ok(w.st)
			t.agrees("file", w.wcc, before, h)
		}),
		must("write-failed", "a WRITE that fails tells that nothing changed", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			before := t.attr(h)
			w := t.write(bob, h, 0, "more", fileSync)
			t.is(w.st, errAcces)
			t.agrees("file", w.wcc, before, h)
		}),
		must("commit", "COMMIT tells the file's attributes before and after", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			m := t.commit(super, h, 0, 0)
			t.ok(m.st)
			t.agrees("file", m.wcc, before, h)
		}),
	)
}

// wccDirectoryChecks are about changes of the entries of a directory.
func wccDirectoryChecks() []Check {
	return group("wcc", "RFC 1813, 2.6",
		wccOnDir("create", "CREATE tells the directory's attributes before and after", nil, func(t *T) (status, wcc) {
			n := t.create(super, t.dir(), "f", guarded, mode(0o644), 0)
			return n.st, n.dir
		}),
		wccOnDir("create-failed", "a CREATE that fails tells that the directory did not change",
			makeFile, func(t *T) (status, wcc) {
				n := t.create(super, t.dir(), "f", guarded, mode(0o644), 0)
				return n.st, n.dir
			}, errExist),
		wccOnDir("mkdir", "MKDIR tells the directory's attributes before and after", nil, func(t *T) (status, wcc) {
			n := t.mkdir(super, t.dir(), "d", mode(0o755))
			return n.st, n.dir
		}),
		wccOnDir("mkdir-failed", "a MKDIR that fails tells that the directory did not change",
			makeSub, func(t *T) (status, wcc) {
				n := t.mkdir(super, t.dir(), "d", mode(0o755))
				return n.st, n.dir
			}, errExist),
		wccOnDir("symlink", "SYMLINK tells the directory's attributes before and after", nil, func(t *T) (status, wcc) {
			n := t.symlink(super, t.dir(), "l", sattr{}, "x")
			return n.st, n.dir
		}),
		wccOnDir("mknod", "MKNOD tells the directory's attributes before and after", nil, func(t *T) (status, wcc) {
			n := t.mknod(super, t.dir(), "p", typeFIFO, mode(0o644), 0, 0)
			return n.st, n.dir
		}),
		wccOnDir("remove", "REMOVE tells the directory's attributes before and after", makeFile, func(t *T) (status, wcc) {
			w := t.remove(super, t.dir(), "f")
			return w.st, w.wcc
		}),
		wccOnDir("remove-failed", "a REMOVE that fails tells that the directory did not change",
			makeFile, func(t *T) (status, wcc) {
				w := t.remove(super, t.dir(), "g")
				return w.st, w.wcc
			}, errNoEnt),
		wccOnDir("rmdir", "RMDIR tells the directory's attributes before and after", makeSub, func(t *T) (status, wcc) {
			w := t.rmdir(super, t.dir(), "d")
			return w.st, w.wcc
		}),
		wccOnDir("rmdir-failed", "a RMDIR that fails tells that the directory did not change",
			makeFile, func(t *T) (status, wcc) {
				w := t.rmdir(super, t.dir(), "f")
				return w.st, w.wcc
			}, errNotDir),
		wccOnDir("link", "LINK tells the directory's attributes before and after", makeFile, func(t *T) (status, wcc) {
			l := t.link(super, t.lookup(super, t.dir(), "f").obj, t.dir(), "g")
			return l.st, l.dir
		}),
		wccOnDir("link-failed", "a LINK that fails tells that the directory did not change",
			makeFile, func(t *T) (status, wcc) {
				l := t.link(super, t.lookup(super, t.dir(), "f").obj, t.dir(), "f")
				return l.st, l.dir
			}, errExist),
	)
}

// wccRenameChecks are about RENAME, and how the attributes of calls fit together.
func wccRenameChecks() []Check {
	return group("wcc", "RFC 1813, 2.6",
		wccOnDir("rename", "RENAME within a directory tells its attributes before and after, for both sides alike",
			makeFile, func(t *T) (status, wcc) {
				r := t.rename(super, t.dir(), "f", t.dir(), "g")
				if r.from.after != nil && r.to.after != nil {
					same(t, "todir_wcc", *r.to.after, *r.from.after)
				}
				return r.st, r.from
			}),
		wccOnDir("rename-failed", "a RENAME that fails tells that the directory did not change",
			nil, func(t *T) (status, wcc) {
				r := t.rename(super, t.dir(), "f", t.dir(), "g")
				return r.st, r.from
			}, errNoEnt),
		must("rename-two", "RENAME between directories tells the attributes of each", func(t *T) {
			d := t.sub("d")
			t.file("f")
			from, to := t.attr(t.dir()), t.attr(d)
			r := t.rename(super, t.dir(), "f", d, "f")
			t.ok(r.st)
			t.agrees("fromdir", r.from, from, t.dir())
			t.agrees("todir", r.to, to, d)
			t.whole("fromdir", r.from)
			t.whole("todir", r.to)
		}),
		must("chain", "what each of ten WRITEs says was before is what the last one said was after", func(t *T) {
			h := t.file("f")
			var last *attr
			for i := range 10 {
				w := t.write(super, h, uint64(i)*3, "abc", fileSync)
				t.ok(w.st)
				if last != nil && w.wcc.before != nil {
					same(t, "size before", w.wcc.before.size, last.size)
					same(t, "mtime before", w.wcc.before.mtime, last.mtime)
					same(t, "ctime before", w.wcc.before.ctime, last.ctime)
				}
				last = w.wcc.after
			}
		}).at("RFC 1813, 4.11"),
	)
}

// wccOnDir checks the data of the check's directory around an operation in it.
func wccOnDir(name, what string, prepare func(t *T), do func(t *T) (status, wcc), want ...status) Check {
	return must(name, what, func(t *T) {
		if prepare != nil {
			prepare(t)
		}
		before := t.attr(t.dir())
		st, w := do(t)
		if st == errNotSupp {
			t.skip("the server does not do this")
		}
		t.is(st, append(want, ok)[0])
		t.agrees("directory", w, before, t.dir())
		t.whole("directory", w)
		if st != ok && w.before != nil && w.after != nil {
			same(t, "mtime, of which nothing changed", w.after.mtime, w.before.mtime)
			same(t, "ctime, of which nothing changed", w.after.ctime, w.before.ctime)
		}
	})
}

func makeFile(t *T) { t.file("f") }

func makeSub(t *T) { t.sub("d") }
