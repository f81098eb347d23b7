package conform

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// READDIR (RFC 1813, section 3.3.16): limits, cookies and verifiers here, whole
// scans of changing directories in scanChecks.

// populate makes n FIFOs or files in the check's directory and returns their names.
func (t *T) populate(n int) (names []string) {
	for i := range n {
		name := fmt.Sprintf("%s%03d", strings.Repeat("n", 1+i%20), i)
		t.file(name)
		names = append(names, name)
	}
	return names
}

// complete wants entries to hold each name exactly once, and nothing else but
// "." and "..".
func (t *T) complete(entries []entry, want []string) {
	seen := map[string]int{}
	for _, e := range entries {
		seen[e.name]++
		if seen[e.name] > 1 {
			t.wrong("each name once", short(e.name)+" twice")
		}
	}
	for _, n := range want {
		if seen[n] == 0 {
			t.wrong("all names", short(n)+" is missing")
		}
		delete(seen, n)
	}
	delete(seen, ".")
	delete(seen, "..")
	for n := range seen {
		t.wrong("no other name", short(n))
	}
}

// paged lists a directory with pages of count bytes; between, if not nil, runs
// after each page. largest is the size of the largest page in bytes.
func (t *T) paged(dir fh, count uint32, plus bool, between func(page []entry)) (all []entry, pages, largest int) {
	var cookie, verf uint64
	for {
		var l listRes
		if plus {
			l = t.readdirplus(super, dir, cookie, verf, count, count)
		} else {
			l = t.readdir(super, dir, cookie, verf, count)
		}
		t.ok(l.st)
		largest = max(largest, l.bytes)
		all = append(all, l.entries...)
		pages++
		if between != nil {
			between(l.entries)
		}
		if l.eof {
			return all, pages, largest
		}
		t.that(len(l.entries) > 0, "an entry, or eof", "neither")
		t.that(pages < 10000, "the end of the directory", "10000 pages")
		cookie, verf = l.entries[len(l.entries)-1].cookie, l.verf
	}
}

// within wants a page of at most count bytes, or TOOSMALL.
func (t *T) within(count uint32, l listRes) {
	if l.st == ok {
		t.that(l.bytes <= int(count), fmt.Sprintf("at most %d bytes", count), "%d", l.bytes)
	} else {
		t.is(l.st, errTooSmall)
	}
}

// lastCookie returns the cookie of the last entry of a page. A page without entries fails the check.
func (t *T) lastCookie(l listRes) uint64 {
	t.ok(l.st)
	t.that(len(l.entries) > 0, "entries", "none")
	return l.entries[len(l.entries)-1].cookie
}

func readdirChecks() []Check {
	return group("readdir", "RFC 1813, 3.3.16",
		must("empty", "an empty directory has no names but `.` and `..`, and eof", func(t *T) {
			l := t.readdir(super, t.dir(), 0, 0, 4096)
			t.ok(l.st)
			t.complete(l.entries, nil)
			same(t, "eof", l.eof, true)
		}),
		should("dots", "`.` and `..` are listed, with their fileids", func(t *T) {
			found := 0
			for _, e := range t.scan(t.dir()) {
				switch e.name {
				case ".":
					same(t, "fileid of .", e.fileid, t.attr(t.dir()).fileid)
					found++
				case "..":
					same(t, "fileid of ..", e.fileid, t.attr(t.s.dir).fileid)
					found++
				}
			}
			same(t, "dots found", found, 2)
		}),
		must("all", "all names are listed, each once", func(t *T) {
			names := t.populate(30)
			t.complete(t.scan(t.dir()), names)
		}),
		must("fileids", "the fileid of an entry is that of GETATTR", func(t *T) {
			t.populate(5)
			t.sub("d")
			t.symlinkTo("l", "x")
			for _, e := range t.scan(t.dir()) {
				if e.name != "." && e.name != ".." {
					same(t, "fileid of "+short(e.name), e.fileid, t.attr(t.lookup(super, t.dir(), e.name).obj).fileid)
				}
			}
		}),
		must("attributes", "the attributes READDIR gives are those of the directory but for atime", func(t *T) {
			l := t.readdir(super, t.dir(), 0, 0, 4096)
			t.ok(l.st)
			if l.dir != nil {
				want := t.attr(t.dir())
				want.atime = l.dir.atime
				same(t, "attributes", *l.dir, want)
			}
		}),
		must("count", "no result is larger than count, whatever that is", func(t *T) {
			names := t.populate(60)
			for _, count := range []uint32{300, 512, 777, 1024, 4096} {
				all, _, largest := t.paged(t.dir(), count, false, nil)
				t.complete(all, names)
				t.that(largest <= int(count), fmt.Sprintf("at most %d bytes", count), "%d", largest)
			}
		}),
		should("count-used", "a count of 8192 gives more than one entry at a time", func(t *T) {
			t.populate(40)
			l := t.readdir(super, t.dir(), 0, 0, 8192)
			t.ok(l.st)
			t.that(len(l.entries) > 5, "more than 5 entries", "%d", len(l.entries))
		}),
		must("count-small", "a count that no entry fits in is TOOSMALL, or an empty page without eof is never given",
			func(t *T) {
				t.populate(3)
				for _, count := range []uint32{0, 1, 16, 100} {
					l := t.readdir(super, t.dir(), 0, 0, count)
					if l.st == ok {
						t.that(len(l.entries) > 0 || l.eof, "TOOSMALL", "no entry and no eof")
					}
				}
			}),
		should("count-0", "a count of 0 is TOOSMALL", func(t *T) {
			t.is(t.readdir(super, t.dir(), 0, 0, 0).st, errTooSmall)
		}),
		should("count-not-exceeded", "a small count is not exceeded: TOOSMALL instead", func(t *T) {
			t.populate(3)
			for _, count := range []uint32{16, 100, 128} {
				t.within(count, t.readdir(super, t.dir(), 0, 0, count))
			}
			all := t.readdir(super, t.dir(), 0, 0, 4096)
			t.within(100, t.readdir(super, t.dir(), t.lastCookie(all), all.verf, 100))
		}),
		must("count-huge", "a count of 2^32-1 is answered with what the server likes to send", func(t *T) {
			names := t.populate(30)
			var all []entry
			for l := (listRes{}); !l.eof; {
				cookie := uint64(0)
				if len(all) > 0 {
					cookie = all[len(all)-1].cookie
				}
				l = t.readdir(super, t.dir(), cookie, l.verf, math.MaxUint32)
				t.ok(l.st)
				t.that(len(l.entries) > 0 || l.eof, "an entry, or eof", "neither")
				all = append(all, l.entries...)
			}
			t.complete(all, names)
		}),
	)
}

// readdirCookieChecks are about going on with a listing.
func readdirCookieChecks() []Check {
	return group("readdir", "RFC 1813, 3.3.16",
		must("cookies", "cookies are not 0, and no two entries have the same", func(t *T) {
			t.populate(20)
			seen := map[uint64]bool{0: true}
			for _, e := range t.scan(t.dir()) {
				t.that(!seen[e.cookie], "a cookie of its own, not 0", "%d", e.cookie)
				seen[e.cookie] = true
			}
		}),
		must("resume", "a scan goes on behind any cookie that was given out", func(t *T) {
			t.populate(20)
			l := t.readdir(super, t.dir(), 0, 0, 8192)
			t.ok(l.st)
			for i, e := range l.entries {
				rest := t.readdir(super, t.dir(), e.cookie, l.verf, 8192)
				t.ok(rest.st)
				var want, got []string
				for _, x := range l.entries[i+1:] {
					want = append(want, x.name)
				}
				for _, x := range rest.entries {
					got = append(got, x.name)
				}
				if l.eof && rest.eof && !slices.Equal(got, want) {
					t.wrong(fmt.Sprintf("%d names behind %s", len(want), short(e.name)), fmt.Sprintf("%q", got))
				}
			}
		}),
		must("after-last", "behind the last cookie there is nothing, and eof", func(t *T) {
			t.populate(3)
			l := t.readdir(super, t.dir(), 0, 0, 8192)
			t.ok(l.st)
			if !l.eof {
				t.skip("the directory does not fit one page")
			}
			rest := t.readdir(super, t.dir(), t.lastCookie(l), l.verf, 8192)
			t.ok(rest.st)
			t.that(len(rest.entries) == 0 && rest.eof, "no entry, eof", "%d entries, eof %v", len(rest.entries), rest.eof)
		}),
		must("bad-cookie", "a cookie that was not given out does no harm: BAD_COOKIE, or a well-formed page", func(t *T) {
			t.populate(5)
			v := t.readdir(super, t.dir(), 0, 0, 8192).verf
			for _, c := range []uint64{0x123456789abcdef0, math.MaxUint64, 1 << 63, math.MaxInt64} {
				l := t.readdir(super, t.dir(), c, v, 8192)
				if l.st != ok {
					t.is(l.st, errBadCookie, errInval)
				}
			}
		}),
		should("verifier-wrong", "a cookie with a verifier that was not given out is BAD_COOKIE", func(t *T) {
			t.populate(5)
			l := t.readdir(super, t.dir(), 0, 0, 8192)
			t.ok(l.st)
			t.that(len(l.entries) > 1, "two entries", "%d", len(l.entries))
			t.is(t.readdir(super, t.dir(), l.entries[1].cookie, l.verf^0x5a5a5a5a5a5a5a5a, 8192).st, errBadCookie)
		}),
		must("verifier-again", "the verifier of one page is good for the next", func(t *T) {
			names := t.populate(40)
			all, pages, _ := t.paged(t.dir(), 600, false, nil)
			t.that(pages > 1, "more than one page", "%d", pages)
			t.complete(all, names)
		}),
		should("verifier-at-start", "a verifier that is not zero does no harm at the start of a scan", func(t *T) {
			t.populate(2)
			st := t.readdir(super, t.dir(), 0, 0x1111, 8192).st
			t.is(st, ok, errBadCookie)
		}),
	)
}

// readdirPermChecks are about what can be listed, and by whom.
func readdirPermChecks() []Check {
	return group("readdir", "RFC 1813, 3.3.16",
		must("file", "READDIR of a file is NOTDIR", func(t *T) {
			t.is(t.readdir(super, t.file("f"), 0, 0, 4096).st, errNotDir)
		}),
		must("symlink", "READDIR of a symbolic link to a directory is NOTDIR", func(t *T) {
			t.sub("d")
			t.is(t.readdir(super, t.symlinkTo("l", "d"), 0, 0, 4096).st, errNotDir)
		}),
		must("no-read", "a user who may not read the directory does not list it", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o711)
			t.is(t.readdir(bob, d, 0, 0, 4096).st, errAcces)
		}),
		must("read-only", "to read is enough, to search is not needed", func(t *T) {
			t.needUsers()
			d := t.dirIn(alice, t.dir(), "d", 0o744)
			t.fileAs(alice, d, "f", 0o600)
			l := t.readdir(bob, d, 0, 0, 4096)
			t.ok(l.st)
			t.complete(l.entries, []string{"f"})
		}),
		must("names", "the longest names and any bytes are listed as they are", func(t *T) {
			names := []string{strings.Repeat("n", int(t.nameMax())), "\xff", "a b\n"}
			for i := 1; i < 9; i++ {
				names = append(names, strings.Repeat("é", i*10))
			}
			for _, n := range names {
				t.file(n)
			}
			t.complete(t.scan(t.dir()), names)
		}),
	)
}

func scanChecks() []Check {
	return group("readdir-scan", "RFC 1813, 3.3.16",
		must("removed-behind", "a scan goes on when the entry it stopped at is removed", func(t *T) {
			names := t.populate(60)
			var first []string
			all, _, _ := t.paged(t.dir(), 400, false, func(page []entry) {
				if first == nil {
					for _, e := range page {
						first = append(first, e.name)
						if e.name != "." && e.name != ".." {
							t.ok(t.remove(super, t.dir(), e.name).st)
						}
					}
				}
			})
			t.complete(all, names)
		}),
		must("remove-all", "removing all that each page lists empties the directory in one scan", func(t *T) {
			t.populate(80)
			t.paged(t.dir(), 500, false, func(page []entry) {
				for _, e := range page {
					if e.name != "." && e.name != ".." {
						t.ok(t.remove(super, t.dir(), e.name).st)
					}
				}
			})
			same(t, "names left", len(t.names(t.dir())), 0)
		}),
		must("made-meanwhile", "names that are made during a scan do not hide others or show them twice", func(t *T) {
			names := t.populate(60)
			n := 0
			all, _, _ := t.paged(t.dir(), 400, false, func([]entry) {
				if n++; n <= 20 {
					t.file(fmt.Sprintf("new%d", n))
				}
			})
			var old []entry
			seen := map[string]bool{}
			for _, e := range all {
				if strings.HasPrefix(e.name, "new") {
					t.that(!seen[e.name], "each name once", "%s twice", e.name)
					seen[e.name] = true
				} else {
					old = append(old, e)
				}
			}
			t.complete(old, names)
		}),
		must("renamed-meanwhile", "names that stay are listed once while others are renamed", func(t *T) {
			names := t.populate(60)
			t.file("moving0")
			n := 0
			all, _, _ := t.paged(t.dir(), 400, false, func([]entry) {
				t.ok(t.rename(super, t.dir(), fmt.Sprintf("moving%d", n), t.dir(), fmt.Sprintf("moving%d", n+1)).st)
				n++
			})
			all = slices.DeleteFunc(all, func(e entry) bool { return strings.HasPrefix(e.name, "moving") })
			t.complete(all, names)
		}),
	)
}

// manyScanChecks are about several listings, and long ones.
func manyScanChecks() []Check {
	return group("readdir-scan", "RFC 1813, 3.3.16",
		must("two-scans", "two scans at the same time do not disturb each other", func(t *T) {
			names := t.populate(50)
			var inner []entry
			var cookie, verf uint64
			done := false
			outer, _, _ := t.paged(t.dir(), 400, false, func([]entry) {
				if done {
					return
				}
				l := t.readdir(super, t.dir(), cookie, verf, 600)
				t.ok(l.st)
				inner = append(inner, l.entries...)
				if done = l.eof; !done {
					cookie, verf = t.lastCookie(l), l.verf
				}
			})
			t.complete(outer, names)
			if done {
				t.complete(inner, names)
			}
		}),
		must("large", "a directory of 1000 entries is listed completely, in pages of 4096 bytes", func(t *T) {
			names := t.populate(1000)
			all, pages, _ := t.paged(t.dir(), 4096, false, nil)
			t.complete(all, names)
			t.that(pages > 5, "more than 5 pages", "%d", pages)
		}),
		must("mixed", "a scan begun with READDIR and gone on with READDIRPLUS lists all once", func(t *T) {
			names := t.populate(40)
			l := t.readdir(super, t.dir(), 0, 0, 500)
			t.ok(l.st)
			all := l.entries
			t.that(len(all) > 0, "entries", "none")
			for !l.eof {
				l = t.readdirplus(super, t.dir(), all[len(all)-1].cookie, l.verf, 4096, 8192)
				if l.st == errNotSupp {
					t.skip("the server has no READDIRPLUS")
				}
				t.ok(l.st)
				t.that(len(l.entries) > 0 || l.eof, "an entry, or eof", "neither")
				all = append(all, l.entries...)
			}
			t.complete(all, names)
		}),
		should("removed-at-once", "after all entries are removed, a scan in the middle ends", func(t *T) {
			names := t.populate(60)
			l := t.readdir(super, t.dir(), 0, 0, 400)
			t.ok(l.st)
			for _, n := range names {
				t.ok(t.remove(super, t.dir(), n).st)
			}
			rest := t.readdir(super, t.dir(), t.lastCookie(l), l.verf, 4096)
			t.is(rest.st, ok, errBadCookie)
			if rest.st == ok {
				t.that(rest.eof, "eof", "%d entries, no eof", len(rest.entries))
			}
		}),
	)
}
