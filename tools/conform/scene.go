package conform

// What checks set the scene with: files, directories, and their content. A step
// that does not work ends the check.

// dirName is the name of the check's directory.
func (t *T) dirName() string { return t.check.Group + "-" + t.check.Name }

// dir is a new directory, which everybody may write to.
func (t *T) dir() fh {
	if t.scratch == "" {
		t.scratch = t.dirIn(super, t.s.dir, t.dirName(), 0o777)
	}
	return t.scratch
}

// made is the handle of an object that was just made.
func (t *T) made(dir fh, name string, m madeRes) fh {
	if m.obj != "" {
		return m.obj
	}
	l := t.lookup(super, dir, name)
	t.prepared("LOOKUP of what was made", l.st)
	return l.obj
}

// file makes an empty regular file as the superuser, mode 0644.
func (t *T) file(name string) fh { return t.fileAs(super, t.dir(), name, 0o644) }

// fileAs makes an empty regular file that belongs to c.
func (t *T) fileAs(c *cred, dir fh, name string, m uint32) fh {
	n := t.create(c, dir, name, guarded, mode(m), 0)
	t.prepared("CREATE", n.st)
	return t.made(dir, name, n)
}

// put makes a file that holds data.
func (t *T) put(name, data string) fh {
	h := t.file(name)
	t.fill(h, 0, data)
	return h
}

// putAs makes a file that belongs to c and holds data.
func (t *T) putAs(c *cred, name string, m uint32, data string) fh {
	h := t.fileAs(c, t.dir(), name, m)
	w := t.write(c, h, 0, data, fileSync)
	t.prepared("WRITE", w.st)
	return h
}

// fill writes data to a file, in as many calls as it takes.
func (t *T) fill(h fh, off uint64, data string) {
	limit := int(max(t.s.info.wtmax, 512))
	for len(data) > 0 {
		w := t.write(super, h, off, data[:min(len(data), limit)], fileSync)
		t.prepared("WRITE", w.st)
		if w.count == 0 {
			t.broken("a WRITE stores something", "count 0")
		}
		off, data = off+uint64(w.count), data[w.count:]
	}
}

// everybody is who looks at what a check did: where the superuser is nobody, the
// owner may see more.
var everybody = []*cred{super, alice, bob}

// find looks a name up as somebody who may.
func (t *T) find(dir fh, name string) (l lookupRes) {
	for _, c := range everybody {
		if l = t.lookup(c, dir, name); l.st != errAcces {
			break
		}
	}
	return l
}

// content is all that a file holds, read by somebody who may.
func (t *T) content(h fh) string {
	who := super
	for _, c := range everybody {
		if t.access(c, h, accessRead).bits == accessRead {
			who = c
			break
		}
	}
	var b []byte
	for {
		d := t.read(who, h, uint64(len(b)), 64<<10)
		t.prepared("READ", d.st)
		b = append(b, d.data...)
		if d.eof || d.count == 0 || len(b) > 64<<20 {
			return string(b)
		}
	}
}

// sub makes a directory as the superuser, mode 0755.
func (t *T) sub(name string) fh { return t.dirIn(super, t.dir(), name, 0o755) }

// dirIn makes a directory whose mode is m whatever the server masks.
func (t *T) dirIn(c *cred, dir fh, name string, m uint32) fh {
	n := t.mkdir(c, dir, name, mode(m))
	t.prepared("MKDIR", n.st)
	h := t.made(dir, name, n)
	if a := t.attr(h); a.mode != m {
		t.prepared("SETATTR", t.setattr(c, h, mode(m), nil).st)
	}
	return h
}

// symlinkTo makes a symbolic link.
func (t *T) symlinkTo(name, target string) fh {
	n := t.symlink(super, t.dir(), name, mode(0o777), target)
	t.prepared("SYMLINK", n.st)
	return t.made(t.dir(), name, n)
}

// node makes a FIFO, socket or device, or skips the check.
func (t *T) node(name string, typ ftype, major, minor uint32) fh {
	n := t.mknod(super, t.dir(), name, typ, mode(0o666), major, minor)
	if n.st == errPerm || n.st == errAcces || n.st == errNotSupp || n.st == errBadType {
		t.skip("the server does not make files of type %d here: %v", typ, n.st)
	}
	t.prepared("MKNOD", n.st)
	return t.made(t.dir(), name, n)
}

// fifo is a file of a kind that READ and WRITE do not work on.
func (t *T) fifo(name string) fh { return t.node(name, typeFIFO, 0, 0) }

// attr are the attributes of an object that is there.
func (t *T) attr(h fh) attr {
	a, st := t.getattr(h)
	t.prepared("GETATTR", st)
	return a
}

// stale is the handle of a directory that was removed.
func (t *T) stale() fh {
	h := t.sub("removed")
	t.prepared("RMDIR", t.rmdir(super, t.dir(), "removed").st)
	return h
}

// names lists a directory as the superuser, without "." and "..".
func (t *T) names(dir fh) (names []string) {
	for _, e := range t.scan(dir) {
		if e.name != "." && e.name != ".." {
			names = append(names, e.name)
		}
	}
	return names
}

// scan lists a directory with READDIR from the start to the end.
func (t *T) scan(dir fh) (all []entry) {
	var cookie, verf uint64
	for pages := 0; ; pages++ {
		l := t.readdir(super, dir, cookie, verf, 8192)
		if l.st != ok {
			t.broken("READDIR: OK", l.st.String())
		}
		all = append(all, l.entries...)
		if l.eof {
			return all
		}
		if len(l.entries) == 0 || pages > 100000 {
			t.broken("READDIR gets on", "no entry and no eof")
		}
		cookie, verf = l.entries[len(l.entries)-1].cookie, l.verf
	}
}

// exists tells if a name is there.
func (t *T) exists(dir fh, name string) bool {
	l := t.find(dir, name)
	if l.st != ok && l.st != errNoEnt {
		t.broken("LOOKUP: OK or NOENT", l.st.String())
	}
	return l.st == ok
}

// leads wants a name to lead to an object.
func (t *T) leads(dir fh, name string, to fh) {
	l := t.find(dir, name)
	if l.st != ok {
		t.wrong("LOOKUP of "+short(name)+": OK", l.st.String())
	}
	same(t, "fileid of "+short(name), t.attr(l.obj).fileid, t.attr(to).fileid)
}

// gone wants a name not to be there.
func (t *T) gone(dir fh, name string) {
	if st := t.find(dir, name).st; st != errNoEnt {
		t.wrong("LOOKUP of "+short(name)+": NOENT", st.String())
	}
}
