package conform

import (
	"fmt"
	"math"
)

// READDIRPLUS (RFC 1813, section 3.3.17).

func readdirplusChecks() []Check {
	return group("readdirplus", "RFC 1813, 3.3.17",
		must("all", "all names are listed, each once", func(t *T) {
			names := t.populate(30)
			listPlus(t, super, t.dir(), 4096, 8192)
			all, _, _ := t.paged(t.dir(), 8192, true, nil)
			t.complete(all, names)
		}),
		must("handles", "the handles lead to the objects that LOOKUP finds", func(t *T) {
			t.file("f")
			t.sub("d")
			t.symlinkTo("l", "f")
			l := listPlus(t, super, t.dir(), 4096, 8192)
			t.ok(l.st)
			for _, e := range l.entries {
				if e.obj != "" && e.name != "." && e.name != ".." {
					t.leads(t.dir(), e.name, e.obj)
				}
			}
		}),
		must("attributes", "the attributes of an entry are those of GETATTR", func(t *T) {
			t.put("f", "data")
			t.sub("d")
			t.symlinkTo("l", "f")
			l := listPlus(t, super, t.dir(), 4096, 8192)
			t.ok(l.st)
			for _, e := range l.entries {
				if e.attr != nil && e.name != "." && e.name != ".." {
					same(t, "attributes of "+e.name, *e.attr, t.attr(t.lookup(super, t.dir(), e.name).obj))
				}
			}
		}),
		should("has-both", "each entry has handle and attributes", func(t *T) {
			t.file("f")
			t.sub("d")
			l := listPlus(t, super, t.dir(), 4096, 8192)
			t.ok(l.st)
			for _, e := range l.entries {
				handle, attributes := e.obj != "", e.attr != nil
				t.that(e.name == ".." || handle && attributes,
					"both", "%s: handle %v, attributes %v", e.name, handle, attributes)
			}
		}).at("RFC 1813, 3.1"),
		must("dots", "the handles of `.` and `..`, where given, lead to the directory and the one above", func(t *T) {
			l := listPlus(t, super, t.dir(), 4096, 8192)
			t.ok(l.st)
			for _, e := range l.entries {
				if e.obj == "" {
					continue
				}
				switch e.name {
				case ".":
					same(t, "fileid of .", t.attr(e.obj).fileid, t.attr(t.dir()).fileid)
				case "..":
					same(t, "fileid of ..", t.attr(e.obj).fileid, t.attr(t.s.dir).fileid)
				}
			}
		}),
		must("fileids", "the fileid of an entry is that of its attributes", func(t *T) {
			t.populate(5)
			l := listPlus(t, super, t.dir(), 4096, 8192)
			t.ok(l.st)
			for _, e := range l.entries {
				if e.attr != nil {
					same(t, "fileid of "+short(e.name), e.fileid, e.attr.fileid)
				}
			}
		}),
	)
}

// readdirplusCountChecks are about dircount and maxcount.
func readdirplusCountChecks() []Check {
	return group("readdirplus", "RFC 1813, 3.3.17",
		must("maxcount", "no result is larger than maxcount, whatever that is", func(t *T) {
			names := t.populate(40)
			listPlus(t, super, t.dir(), 4096, 8192)
			for _, count := range []uint32{800, 1024, 2000, 4096} {
				all, _, largest := t.paged(t.dir(), count, true, nil)
				t.complete(all, names)
				t.that(largest <= int(count), fmt.Sprintf("at most %d bytes", count), "%d", largest)
			}
		}),
		should("dircount", "names, fileids and cookies of a page do not take more than dircount", func(t *T) {
			t.populate(40)
			for _, count := range []uint32{200, 400, 800} {
				l := listPlus(t, super, t.dir(), count, 32768)
				t.ok(l.st)
				n := 0
				for _, e := range l.entries {
					n += 8 + 4 + (len(e.name)+3)&^3 + 8
				}
				t.that(n <= int(count), fmt.Sprintf("at most %d bytes", count), "%d", n)
			}
		}),
		must("dircount-small", "a dircount that no entry fits in is TOOSMALL, or one entry is given all the same",
			func(t *T) {
				t.populate(3)
				for _, count := range []uint32{0, 1, 8} {
					l := listPlus(t, super, t.dir(), count, 8192)
					if l.st == ok {
						t.that(len(l.entries) > 0, "an entry or TOOSMALL", "no entry")
					} else {
						t.is(l.st, errTooSmall)
					}
				}
			}),
		must("dircount-progress", "pages of a dircount of 1 get on, if they are given at all", func(t *T) {
			names := t.populate(10)
			var all []entry
			var cookie, verf uint64
			for {
				l := t.readdirplus(super, t.dir(), cookie, verf, 1, 8192)
				if l.st == errTooSmall || l.st == errNotSupp {
					t.skip("dircount 1 is %v", l.st)
				}
				t.ok(l.st)
				all = append(all, l.entries...)
				if l.eof {
					break
				}
				t.that(len(l.entries) > 0 && len(all) < 100,
					"an entry, and an end", "%d entries, %d in all", len(l.entries), len(all))
				cookie, verf = all[len(all)-1].cookie, l.verf
			}
			t.complete(all, names)
		}),
		must("maxcount-small", "a maxcount that no entry fits in is TOOSMALL: no empty page without eof", func(t *T) {
			t.populate(3)
			for _, count := range []uint32{0, 1, 64, 150} {
				l := listPlus(t, super, t.dir(), 8192, count)
				if l.st == ok {
					t.that(len(l.entries) > 0 || l.eof, "TOOSMALL", "no entry and no eof")
				}
			}
		}),
		should("maxcount-0", "a maxcount of 0 is TOOSMALL", func(t *T) {
			t.is(listPlus(t, super, t.dir(), 8192, 0).st, errTooSmall)
		}),
		should("maxcount-not-exceeded", "a small maxcount is not exceeded: TOOSMALL instead", func(t *T) {
			t.populate(3)
			for _, count := range []uint32{100, 200, 300} {
				t.within(count, listPlus(t, super, t.dir(), 8192, count))
			}
			all := listPlus(t, super, t.dir(), 4096, 8192)
			t.within(100, t.readdirplus(super, t.dir(), t.lastCookie(all), all.verf, 8192, 100))
		}),
		must("counts-huge", "counts of 2^32-1 are answered with what the server likes to send", func(t *T) {
			names := t.populate(20)
			l := listPlus(t, super, t.dir(), math.MaxUint32, math.MaxUint32)
			t.ok(l.st)
			if l.eof {
				t.complete(l.entries, names)
			}
			t.that(len(l.entries) > 0, "entries", "none")
		}),
	)
}

// readdirplusPermChecks are about going on, and who may list.
func readdirplusPermChecks() []Check {
	return group("readdirplus", "RFC 1813, 3.3.17",
		should("verifier-wrong", "a cookie with a verifier that was not given out is BAD_COOKIE", func(t *T) {
			t.populate(5)
			l := listPlus(t, super, t.dir(), 8192, 8192)
			t.ok(l.st)
			t.that(len(l.entries) > 1, "two entries", "%d", len(l.entries))
			t.is(t.readdirplus(super, t.dir(), l.entries[1].cookie, l.verf^0x5a5a5a5a5a5a5a5a, 8192, 8192).st, errBadCookie)
		}),
		must("bad-cookie", "a cookie that was not given out does no harm: BAD_COOKIE, or a well-formed page", func(t *T) {
			t.populate(5)
			v := listPlus(t, super, t.dir(), 8192, 8192).verf
			for _, c := range []uint64{0x123456789abcdef0, math.MaxUint64, 1 << 63} {
				if l := t.readdirplus(super, t.dir(), c, v, 8192, 8192); l.st != ok {
					t.is(l.st, errBadCookie, errInval)
				}
			}
		}),
		must("file", "READDIRPLUS of a file is NOTDIR", func(t *T) {
			t.is(listPlus(t, super, t.file("f"), 4096, 8192).st, errNotDir)
		}),
		must("no-read", "a user who may not read the directory does not list it", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o711)
			t.is(listPlus(t, bob, d, 4096, 8192).st, errAcces)
		}),
		should("no-search", "a user who may read but not search the directory gets no handles from it", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o744)
			t.fileAs(alice, d, "f", 0o600)
			l := listPlus(t, bob, d, 4096, 8192)
			if l.st != ok {
				t.is(l.st, errAcces)
				return
			}
			for _, e := range l.entries {
				t.that(e.obj == "" || e.name == "." || e.name == "..", "no handle", "a handle of %s", e.name)
			}
		}).at("RFC 1813, 4.4"),
		must("removed-meanwhile", "a scan that removes what each page lists empties the directory", func(t *T) {
			t.populate(50)
			listPlus(t, super, t.dir(), 4096, 8192)
			t.paged(t.dir(), 1500, true, func(page []entry) {
				for _, e := range page {
					if e.name != "." && e.name != ".." {
						t.ok(t.remove(super, t.dir(), e.name).st)
					}
				}
			})
			same(t, "names left", len(t.names(t.dir())), 0)
		}),
	)
}

func listPlus(t *T, c *cred, dir fh, dirCount, maxCount uint32) listRes {
	l := t.readdirplus(c, dir, 0, 0, dirCount, maxCount)
	if l.st == errNotSupp {
		t.skip("the server has no READDIRPLUS")
	}
	return l
}
