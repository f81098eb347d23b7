package conform

import (
	"fmt"
	"strings"
)

// File handles (RFC 1813, sections 2.5 and 2.6): stale ones, for each procedure,
// whose errors all have another form; and ones the server never gave out.

// staleChecks are about the handle of what was removed, in each procedure.
func staleChecks() []Check {
	var checks []Check
	for proc := uint32(procGetattr); proc < procCount; proc++ {
		checks = append(checks, must("stale-"+strings.ToLower(procNames[proc]),
			procNames[proc]+" of a directory that was removed is STALE, and the error has the procedure's form", func(t *T) {
				h := t.stale()
				st, r := t.nfs(proc, super, validArgs(proc, h))
				t.failure(proc, r)
				t.refused(st, errStale)
			}))
	}
	return group("handle", "RFC 1813, 2.6", checks...)
}

// handleChecks are about handles that no server gives.
func handleChecks() []Check {
	bad := func(name, what string, change func(h string) string) Check {
		return must(name, what+" is refused, with BADHANDLE or STALE", func(t *T) {
			h := fh(change(string(t.put("f", "x"))))
			_, st := t.getattr(h)
			t.refused(st, errBadHandle, errStale)
			t.refused(t.lookup(super, h, "f").st, errBadHandle, errStale, errNotDir)
			t.refused(t.read(super, h, 0, 1).st, errBadHandle, errStale)
			t.refused(t.remove(super, h, "f").st, errBadHandle, errStale, errNotDir)
		}).at("RFC 1813, 2.6")
	}
	return group("handle", "RFC 1813, 2.6",
		bad("empty", "a handle of 0 bytes", func(string) string { return "" }),
		bad("one-byte", "a handle of 1 byte", func(h string) string { return h[:1] }),
		bad("cut", "a handle without its last byte", func(h string) string { return h[:len(h)-1] }),
		should("longer", "a handle with 4 bytes more is refused", func(t *T) {
			h := t.file("f")
			if len(h) > 60 {
				t.skip("the server's handles have %d bytes", len(h))
			}
			_, st := t.getattr(h + "\x00\x00\x00\x01")
			t.is(st, errBadHandle, errStale)
		}),
		bad("zeros", "a handle of zeros", func(h string) string { return strings.Repeat("\x00", len(h)) }),
		bad("ones", "a handle of 64 bytes of 0xff", func(string) string { return strings.Repeat("\xff", 64) }),
		should("forged", "a handle of which one bit was changed does not lead to another file", func(t *T) {
			h := string(t.put("f", "x"))
			mine := t.attr(fh(h)).fileid
			for bit := range len(h) * 8 {
				b := []byte(h)
				b[bit/8] ^= 1 << (bit % 8)
				p := t.try(procGetattr, super, newArgs().fh("object", fh(b)))
				if p.denied || p.stat != success || statusOf(p) != ok {
					continue
				}
				r := reader{b: p.body[4:]}
				if a := r.attr(); a.fileid != mine {
					t.wrong("BADHANDLE or STALE", fmt.Sprintf("the attributes of another file: fileid %d for %d", a.fileid, mine))
				}
			}
		}).at("RFC 1813, 4.2"),
		must("both-of-rename", "RENAME to a stale directory is STALE, and nothing moves", func(t *T) {
			f := t.file("f")
			t.refused(t.rename(super, t.dir(), "f", t.stale(), "g").st, errStale)
			t.leads(t.dir(), "f", f)
		}).at("RFC 1813, 3.3.14"),
		must("both-of-link", "LINK of a file into a stale directory is STALE", func(t *T) {
			f := t.file("f")
			t.refused(t.link(super, f, t.stale(), "g").st, errStale)
			same(t, "nlink", t.attr(f).nlink, 1)
		}).at("RFC 1813, 3.3.15"),
	)
}

// handleLifeChecks are about how long a handle is good, and of what.
func handleLifeChecks() []Check {
	return group("handle", "RFC 1813, 2.6",
		should("removed-file", "a file that was removed is STALE for all that use its handle", func(t *T) {
			h := t.put("f", "data")
			t.ok(t.remove(super, t.dir(), "f").st)
			_, st := t.getattr(h)
			t.is(st, errStale)
			t.is(t.read(super, h, 0, 4).st, errStale)
			t.is(t.write(super, h, 0, "x", fileSync).st, errStale)
			t.is(t.commit(super, h, 0, 0).st, errStale)
			t.is(t.setattr(super, h, mode(0o600), nil).st, errStale)
		}),
		must("reused", "the handle of a removed file does not come to lead to a new one", func(t *T) {
			var old []fh
			for range 8 {
				old = append(old, t.put("f", "old"))
				t.ok(t.remove(super, t.dir(), "f").st)
			}
			n := t.put("f", "new")
			for _, h := range old {
				if h == n {
					t.wrong("a new handle", "one that was used before")
				}
				d := t.read(super, h, 0, 4)
				t.that(d.st != ok || d.data != "new", "STALE", "the content of the new file")
			}
		}),
		must("long-lived", "a handle stays good while its file is renamed, moved, and has its first name removed",
			func(t *T) {
				h, d := t.put("f", "data"), t.sub("d")
				t.ok(t.rename(super, t.dir(), "f", t.dir(), "g").st)
				t.ok(t.rename(super, t.dir(), "g", d, "h").st)
				l := t.link(super, h, t.dir(), "second")
				t.prepared("LINK", l.st)
				t.ok(t.remove(super, d, "h").st)
				t.text("content", t.content(h), "data")
			}).at("RFC 1813, 3.3.14"),
		should("same", "LOOKUP gives the handle that CREATE gave", func(t *T) {
			h := t.file("f")
			l := t.lookup(super, t.dir(), "f")
			t.ok(l.st)
			same(t, "the handle", l.obj, h)
		}).at("RFC 1813, 2.5"),
		must("different", "different files have different handles", func(t *T) {
			seen := map[fh]string{}
			for _, n := range []string{"a", "b", "c", "d"} {
				h := t.file(n)
				if seen[h] != "" {
					t.wrong("a handle of its own for each", "the same for "+seen[h]+" and "+n)
				}
				seen[h] = n
			}
		}).at("RFC 1813, 2.5"),
	)
}

// failure checks the form of the failing arm of a procedure's result.
func (t *T) failure(proc uint32, r *reader) {
	switch proc {
	case procSetattr, procWrite, procCreate, procMkdir, procSymlink, procMknod, procRemove, procRmdir, procCommit:
		r.wcc()
	case procRename:
		r.wcc()
		r.wcc()
	case procLink:
		r.postOp()
		r.wcc()
	case procGetattr:
	default:
		r.postOp()
	}
	t.done(r)
}
