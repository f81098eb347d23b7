package conform

import "strings"

// GETATTR (RFC 1813, section 3.3.1) and what attributes mean (section 2.5).

func getattrChecks() []Check {
	return group("getattr", "RFC 1813, 2.5",
		must("file", "a new file is of type REG, empty, with one link and its mode", func(t *T) {
			a := t.attr(t.file("f"))
			same(t, "type", a.typ, typeReg)
			same(t, "size", a.size, 0)
			same(t, "nlink", a.nlink, 1)
			t.mode(a, 0o644)
		}),
		must("directory", "a directory is of type DIR", func(t *T) { same(t, "type", t.attr(t.sub("d")).typ, typeDir) }),
		should("directory-links", "a new directory has two links", func(t *T) {
			same(t, "nlink", t.attr(t.sub("d")).nlink, 2)
		}),
		must("symlink", "a symbolic link is of type LNK", func(t *T) {
			same(t, "type", t.attr(t.symlinkTo("l", "target")).typ, typeLnk)
		}),
		should("symlink-size", "the size of a symbolic link is the length of its target", func(t *T) {
			same(t, "size", t.attr(t.symlinkTo("l", "target")).size, 6)
		}),
		must("fifo", "a FIFO is of type FIFO", func(t *T) { same(t, "type", t.attr(t.fifo("p")).typ, typeFIFO) }),
		must("socket", "a socket is of type SOCK", func(t *T) {
			same(t, "type", t.attr(t.node("s", typeSock, 0, 0)).typ, typeSock)
		}),
		must("size", "the size is what was written, to the byte", func(t *T) {
			for i, n := range []int{1, 511, 4096, 10001} {
				same(t, "size", t.attr(t.put(string(rune('a'+i)), strings.Repeat("x", n))).size, uint64(n))
			}
		}),
		should("used", "a file of 64 KiB takes between 1 byte and 1 MiB", func(t *T) {
			h := t.put("f", strings.Repeat("x", 64<<10))
			t.ok(t.commit(super, h, 0, 0).st)
			used := t.attr(h).used
			t.that(used > 0 && used <= 1<<20, "used between 1 and 1048576", "%d", used)
		}),
		should("hole-not-used", "a hole of 1 MiB takes less than 1 MiB", func(t *T) {
			h := t.file("f")
			t.ok(t.setattr(super, h, size(1<<20), nil).st)
			used := t.attr(h).used
			t.that(used < 1<<20, "used below 1048576", "%d", used)
		}),
		must("mode-bits", "the mode holds permission bits only, not the type", func(t *T) {
			for _, h := range []fh{t.file("f"), t.sub("d"), t.symlinkTo("l", "x")} {
				m := t.attr(h).mode
				t.that(m&^0o7777 == 0, "no bits above 07777", "mode %#o", m)
			}
		}),
		must("fsid", "all objects of the export below one directory have its fsid", func(t *T) {
			want := t.attr(t.dir()).fsid
			for _, h := range []fh{t.file("f"), t.sub("d"), t.symlinkTo("l", "x")} {
				same(t, "fsid", t.attr(h).fsid, want)
			}
		}),
		must("fileid", "different objects have different fileids", func(t *T) {
			seen := map[uint64]bool{t.attr(t.dir()).fileid: true}
			for _, h := range []fh{t.file("f"), t.file("g"), t.sub("d"), t.symlinkTo("l", "x")} {
				id := t.attr(h).fileid
				t.that(!seen[id], "a fileid not seen before", "%d", id)
				seen[id] = true
			}
		}),
		must("nanoseconds", "nanoseconds are below 10^9", func(t *T) {
			for _, h := range []fh{t.file("f"), t.sub("d"), t.s.root} {
				a := t.attr(h)
				for _, s := range []stamp{a.atime, a.mtime, a.ctime} {
					t.that(s.nsec < 1e9, "below 1000000000", "%d", s.nsec)
				}
			}
		}),
		must("unchanged", "attributes do not change while nothing is done", func(t *T) {
			h := t.put("f", "data")
			a := t.attr(h)
			for range 3 {
				same(t, "attributes", t.attr(h), a)
			}
		}),
		should("no-permission", "attributes need no permission on the object", func(t *T) {
			t.needUsers()
			h := t.fileAs(alice, t.dir(), "f", 0)
			_, st := t.getattrAs(bob, h)
			t.ok(st)
		}).at("RFC 1813, 3.3.1"),
		should("no-path-permission", "attributes need no permission on the directories above: a handle is enough",
			func(t *T) {
				t.needUsers()
				d := t.dirIn(alice, t.dir(), "d", 0o700)
				h := t.fileAs(alice, d, "f", 0o644)
				t.ok(t.setattr(alice, d, mode(0), nil).st)
				_, st := t.getattrAs(bob, h)
				t.ok(st)
			}).at("RFC 1813, 3.3.1"),
		must("hard-link", "both names of a file have the same attributes", func(t *T) {
			h := t.put("f", "data")
			t.prepared("LINK", t.link(super, h, t.dir(), "g").st)
			l := t.lookup(super, t.dir(), "g")
			t.ok(l.st)
			same(t, "attributes", t.attr(l.obj), t.attr(h))
		}),
		must("new-times", "the times of a new file are all about the same and not before its directory's last change",
			func(t *T) {
				d := t.attr(t.dir())
				a := t.attr(t.file("f"))
				t.that(!a.ctime.before(d.ctime), "ctime not before "+d.ctime.String(), "%v", a.ctime)
				t.that(!a.mtime.before(d.ctime), "mtime not before "+d.ctime.String(), "%v", a.mtime)
			}),
	)
}
