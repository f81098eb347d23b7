package conform

import "strings"

// MKDIR, SYMLINK, MKNOD (RFC 1813, sections 3.3.9 to 3.3.11).

func mkdirChecks() []Check {
	simple := func(t *T, c *cred, dir fh, name string) status { return t.mkdir(c, dir, name, mode(0o755)).st }
	checks := []Check{
		must("new", "MKDIR makes an empty directory with the mode asked for", func(t *T) {
			n := t.mkdir(super, t.dir(), "d", mode(0o750))
			t.ok(n.st)
			h := t.made(t.dir(), "d", n)
			a := t.attr(h)
			same(t, "type", a.typ, typeDir)
			t.mode(a, 0o750)
			same(t, "entries", len(t.names(h)), 0)
		}),
		must("result", "handle and attributes of the result are those of the new directory", func(t *T) {
			n := t.mkdir(super, t.dir(), "d", mode(0o750))
			t.ok(n.st)
			if n.obj != "" {
				t.leads(t.dir(), "d", n.obj)
			}
			if n.attr != nil {
				same(t, "attributes", *n.attr, t.attr(t.made(t.dir(), "d", n)))
			}
		}),
		must("exists", "MKDIR of a name that is there is EXIST, whatever it is", func(t *T) {
			t.sub("d")
			t.file("f")
			t.symlinkTo("l", "nothing")
			for _, n := range []string{"d", "f", "l"} {
				t.is(t.mkdir(super, t.dir(), n, mode(0o755)).st, errExist)
			}
			t.gone(t.dir(), "nothing")
		}),
		should("parent-links", "the directory above has a link more", func(t *T) {
			before := t.attr(t.dir()).nlink
			t.sub("d")
			same(t, "nlink", t.attr(t.dir()).nlink, before+1)
		}),
		should("sticky", "the sticky bit is taken", func(t *T) {
			n := t.mkdir(super, t.dir(), "d", mode(0o1777))
			t.ok(n.st)
			t.mode(t.attr(t.made(t.dir(), "d", n)), 0o1777)
		}),
		should("inherits-setgid", "a directory in one with set-group-id has it too", func(t *T) {
			t.needRoot()
			d := t.sub("d")
			t.ok(t.setattr(super, d, sattr{mode: ptr(uint32(0o2777)), gid: ptr(uint32(42424))}, nil).st)
			n := t.mkdir(super, d, "e", mode(0o755))
			t.ok(n.st)
			t.mode(t.attr(t.made(d, "e", n)), 0o2755)
		}),
		must("size-ignored", "a size among the attributes is refused or ignored", func(t *T) {
			s := size(1 << 40)
			s.mode = ptr(uint32(0o755))
			n := t.mkdir(super, t.dir(), "d", s)
			if n.st == ok {
				t.that(t.attr(t.made(t.dir(), "d", n)).size != 1<<40, "the size of an empty directory", "2^40")
			}
		}),
		must("dot-dot", "`..` of a new directory is the one it was made in", func(t *T) {
			l := t.lookup(super, t.sub("d"), "..")
			t.prefer(l.st == ok, "OK", l.st.String())
			if l.st == ok {
				same(t, "fileid", t.attr(l.obj).fileid, t.attr(t.dir()).fileid)
			}
		}),
		must("deep", "directories may be 40 deep, and be removed again", func(t *T) {
			d := t.dir()
			dirs := []fh{d}
			for range 40 {
				d = t.dirIn(super, d, "d", 0o755)
				dirs = append(dirs, d)
			}
			for i := 39; i >= 0; i-- {
				t.ok(t.rmdir(super, dirs[i], "d").st)
			}
		}),
	}
	checks = append(checks, nameRules(func(t *T, dir fh, name string) status { return simple(t, super, dir, name) })...)
	checks = append(checks, dirRules(simple)...)
	checks = append(checks, takenRules(simple)...)
	checks = append(checks, idRules(func(t *T, c *cred, dir fh, name string, s sattr) madeRes {
		return t.mkdir(c, dir, name, s)
	})...)
	return group("mkdir", "RFC 1813, 3.3.9", checks...)
}

// skipped ends the check where the server has no such files.
func skipped(t *T, what string, n madeRes) madeRes {
	if n.st == errNotSupp {
		t.skip("the server has no %s", what)
	}
	return n
}

func symlinkChecks() []Check {
	simple := func(t *T, c *cred, dir fh, name string) status {
		return skipped(t, "symbolic links", t.symlink(c, dir, name, mode(0o777), "target")).st
	}
	checks := []Check{
		must("new", "SYMLINK makes a symbolic link that holds the target", func(t *T) {
			h := t.symlinkTo("l", "to/here")
			same(t, "type", t.attr(h).typ, typeLnk)
			t.text("target", t.readlink(super, h).target, "to/here")
		}),
		must("result", "handle and attributes of the result are those of the new link", func(t *T) {
			n := t.symlink(super, t.dir(), "l", sattr{}, "target")
			t.prepared("SYMLINK", n.st)
			if n.obj != "" {
				t.leads(t.dir(), "l", n.obj)
			}
			if n.attr != nil {
				same(t, "attributes", *n.attr, t.attr(t.made(t.dir(), "l", n)))
			}
		}),
		must("exists", "SYMLINK of a name that is there is EXIST", func(t *T) {
			h := t.symlinkTo("l", "old")
			t.is(t.symlink(super, t.dir(), "l", sattr{}, "new").st, errExist)
			t.text("target", t.readlink(super, h).target, "old")
			t.file("f")
			t.is(t.symlink(super, t.dir(), "f", sattr{}, "new").st, errExist)
		}),
		should("empty-target", "an empty target is refused, or kept", func(t *T) {
			n := t.symlink(super, t.dir(), "l", sattr{}, "")
			if n.st == ok {
				l := t.readlink(super, t.made(t.dir(), "l", n))
				t.ok(l.st)
				t.text("target", l.target, "")
			} else {
				t.is(n.st, errInval, errNoEnt, errAcces)
			}
		}),
		must("zero-byte", "a target with a zero byte is refused or kept whole", func(t *T) {
			n := t.symlink(super, t.dir(), "l", sattr{}, "a\x00b")
			if n.st == ok {
				t.text("target", t.readlink(super, t.made(t.dir(), "l", n)).target, "a\x00b")
			} else {
				t.gone(t.dir(), "l")
			}
		}).at("RFC 4506, 4.11"),
		must("long-target", "a target of 100,000 bytes is refused, or comes back whole", func(t *T) {
			target := strings.Repeat("0123456789", 10000)
			p := t.try(procSymlink, super, newArgs().dirop(t.dir(), "l").sattr(sattr{}).opaque("target", target))
			if !p.denied && p.stat == success && statusOf(p) == ok {
				t.text("target", t.readlink(super, t.lookup(super, t.dir(), "l").obj).target, target)
			} else {
				t.gone(t.dir(), "l")
				t.prefer(answer(p) == "NAMETOOLONG", "NAMETOOLONG", answer(p))
			}
		}),
		must("size-ignored", "a size among the attributes is refused or ignored", func(t *T) {
			n := t.symlink(super, t.dir(), "l", size(1000), "target")
			if n.st == ok {
				t.text("target", t.readlink(super, t.made(t.dir(), "l", n)).target, "target")
			}
		}),
		must("itself", "a link to itself can be made, looked up, and removed", func(t *T) {
			h := t.symlinkTo("l", "l")
			t.leads(t.dir(), "l", h)
			t.ok(t.remove(super, t.dir(), "l").st)
		}),
		should("mode", "the mode asked for is taken or 0777", func(t *T) {
			n := t.symlink(super, t.dir(), "l", mode(0o755), "target")
			t.prepared("SYMLINK", n.st)
			m := t.attr(t.made(t.dir(), "l", n)).mode
			t.that(m == 0o755 || m == 0o777, "0755 or 0777", "%04o", m)
		}),
	}
	checks = append(checks, nameRules(func(t *T, dir fh, name string) status { return simple(t, super, dir, name) })...)
	checks = append(checks, dirRules(simple)...)
	checks = append(checks, takenRules(simple)...)
	checks = append(checks, idRules(func(t *T, c *cred, dir fh, name string, s sattr) madeRes {
		return skipped(t, "symbolic links", t.symlink(c, dir, name, s, "target"))
	})...)
	return group("symlink", "RFC 1813, 3.3.10", checks...)
}

func mknodChecks() []Check {
	simple := func(t *T, c *cred, dir fh, name string) status {
		return skipped(t, "MKNOD of FIFOs", t.mknod(c, dir, name, typeFIFO, mode(0o644), 0, 0)).st
	}
	badType := func(name string, typ uint32, what string) Check {
		return must(name, "MKNOD of "+what+" is BADTYPE, and nothing is made", func(t *T) {
			p := t.try(procMknod, super, newArgs().dirop(t.dir(), "n").u32("type", typ))
			t.that(!p.denied && (p.stat == garbageArgs || p.stat == success && statusOf(p) != ok), "BADTYPE", "%s", answer(p))
			t.prefer(p.stat == success && statusOf(p) == errBadType, "BADTYPE", answer(p))
			t.gone(t.dir(), "n")
		})
	}
	device := func(name string, typ ftype, what string) Check {
		return must(name, "MKNOD of a "+what+" device keeps its two numbers", func(t *T) {
			a := t.attr(t.node("n", typ, 8, 17))
			same(t, "type", a.typ, typ)
			same(t, "specdata1", a.major, 8)
			same(t, "specdata2", a.minor, 17)
		})
	}
	checks := []Check{
		must("fifo", "MKNOD makes a FIFO with the mode asked for", func(t *T) {
			n := t.mknod(super, t.dir(), "p", typeFIFO, mode(0o640), 0, 0)
			t.prepared("MKNOD of FIFOs", n.st)
			a := t.attr(t.made(t.dir(), "p", n))
			same(t, "type", a.typ, typeFIFO)
			t.mode(a, 0o640)
		}),
		must("socket", "MKNOD makes a socket", func(t *T) {
			same(t, "type", t.attr(t.node("s", typeSock, 0, 0)).typ, typeSock)
		}),
		device("character", typeChr, "character"),
		device("block", typeBlk, "block"),
		should("large-numbers", "device numbers of 12 and 20 bits are kept", func(t *T) {
			a := t.attr(t.node("n", typeChr, 4095, 1<<20-1))
			same(t, "specdata1", a.major, 4095)
			same(t, "specdata2", a.minor, 1<<20-1)
		}),
		must("device-by-user", "a user other than the superuser makes no device", func(t *T) {
			t.needUsers()
			t.refused(t.mknod(alice, t.dir(), "n", typeChr, mode(0o666), 1, 3).st, errPerm, errAcces)
			t.gone(t.dir(), "n")
		}),
		should("fifo-by-user", "any user makes FIFOs", func(t *T) {
			t.needUsers()
			t.ok(simple(t, bob, t.dir(), "p"))
		}),
		must("exists", "MKNOD of a name that is there is EXIST", func(t *T) {
			h := t.put("f", "data")
			t.is(simple(t, super, t.dir(), "f"), errExist)
			t.text("content", t.content(h), "data")
		}),
		must("result", "handle and attributes of the result are those of the new node", func(t *T) {
			n := t.mknod(super, t.dir(), "p", typeFIFO, mode(0o640), 0, 0)
			t.prepared("MKNOD of FIFOs", n.st)
			if n.obj != "" {
				t.leads(t.dir(), "p", n.obj)
			}
			if n.attr != nil {
				same(t, "attributes", *n.attr, t.attr(t.made(t.dir(), "p", n)))
			}
		}),
		badType("regular", uint32(typeReg), "a regular file"),
		badType("directory", uint32(typeDir), "a directory"),
		badType("link", uint32(typeLnk), "a symbolic link"),
		badType("type-0", 0, "type 0"),
		badType("type-8", 8, "type 8"),
	}
	checks = append(checks, nameRules(func(t *T, dir fh, name string) status { return simple(t, super, dir, name) })...)
	checks = append(checks, dirRules(simple)...)
	checks = append(checks, takenRules(simple)...)
	checks = append(checks, idRules(func(t *T, c *cred, dir fh, name string, s sattr) madeRes {
		return skipped(t, "MKNOD of FIFOs", t.mknod(c, dir, name, typeFIFO, s, 0, 0))
	})...)
	return group("mknod", "RFC 1813, 3.3.11", checks...)
}
