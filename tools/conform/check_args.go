package conform

import (
	"fmt"
	"strings"
)

// Arguments that are not what XDR (RFC 4506) or the procedure's type says.

// validArgs are arguments of a procedure in good form, with h wherever a handle goes.
func validArgs(proc uint32, h fh) *args {
	a := newArgs()
	switch proc {
	case procLookup, procRemove, procRmdir:
		return a.dirop(h, "name")
	case procSetattr:
		s := sattr{mode: ptr(uint32(0o644)), size: ptr(uint64(1)), mtimeHow: 2}
		return a.fh("object", h).sattr(s).bool("guard", false)
	case procAccess:
		return a.fh("object", h).u32("access", 1)
	case procRead, procCommit:
		return a.fh("file", h).u64("offset", 0).u32("count", 10)
	case procWrite:
		return writeArgs(h, 0, 5, unstable, "hello")
	case procCreate:
		return createArgs(h, "name", guarded, mode(0o644), 0)
	case procMkdir:
		return a.dirop(h, "name").sattr(mode(0o755))
	case procSymlink:
		return a.dirop(h, "name").sattr(sattr{}).opaque("target", "to")
	case procMknod:
		return mknodArgs(h, "name", typeFIFO, mode(0o644), 0, 0)
	case procRename:
		return a.dirop(h, "name").dirop(h, "other")
	case procLink:
		return a.fh("file", h).dirop(h, "name")
	case procReaddir:
		return a.fh("dir", h).u64("cookie", 0).u64("verf", 0).u32("count", 4096)
	case procReaddirplus:
		return a.fh("dir", h).u64("cookie", 0).u64("verf", 0).u32("dircount", 4096).u32("maxcount", 4096)
	}
	return a.fh("object", h)
}

// truncatedChecks are about arguments that end too early, in each procedure.
func truncatedChecks() []Check {
	var checks []Check
	for proc := uint32(procGetattr); proc < procCount; proc++ {
		name := strings.ToLower(procNames[proc])
		about := procNames[proc] + " with arguments that end too early, wherever they end, is GARBAGE_ARGS"
		checks = append(checks, must("truncated-"+name, about, func(t *T) {
			whole := validArgs(proc, t.dir())
			for n := 0; n < len(whole.b); n += 4 {
				part := fmt.Sprintf("the first %d of %d bytes of (%s)", n, len(whole.b), whole)
				t.refusedCall(proc, newArgs().raw(part, whole.b[:n]...))
			}
			t.that(len(t.names(t.dir())) == 0, "nothing was made", "%q", t.names(t.dir()))
		}).at("RFC 5531, 9"))
	}
	return group("args", "RFC 4506, 4.10", checks...)
}

// argsChecks are about lengths and numbers that the arguments may not have.
func argsChecks() []Check {
	tooLong := []byte{0xff, 0xff, 0xff, 0xff}
	return group("args", "RFC 4506, 4.10",
		must("handle-length", "a handle that says it has 2^32-1 bytes is GARBAGE_ARGS", func(t *T) {
			t.refusedCall(procGetattr, newArgs().raw("a handle of 2^32-1 bytes", append(tooLong, t.s.root...)...))
		}),
		must("handle-65", "a handle of more than 64 bytes is GARBAGE_ARGS", func(t *T) {
			t.refusedCall(procGetattr, newArgs().fh("object", fh(strings.Repeat("h", 65))))
		}).at("RFC 1813, 2.4"),
		must("name-length", "a name that says it has 2^32-1 bytes is GARBAGE_ARGS", func(t *T) {
			t.refusedCall(procLookup, newArgs().fh("dir", t.dir()).raw("a name of 2^32-1 bytes", append(tooLong, "name"...)...))
		}),
		must("name-length-sign", "a name that says it has 2^31 bytes is GARBAGE_ARGS", func(t *T) {
			t.refusedCall(procRemove, newArgs().fh("dir", t.dir()).
				raw("a name of 2^31 bytes", 0x80, 0, 0, 0, 'n', 'a', 'm', 'e'))
		}),
		must("data-length", "a WRITE whose data says it has 2^32-1 bytes is GARBAGE_ARGS", func(t *T) {
			h := t.put("f", "before")
			t.refusedCall(procWrite, newArgs().fh("file", h).
				u64("offset", 0).u32("count", 4).u32("stable", fileSync).
				raw("data of 2^32-1 bytes", append(tooLong, "data"...)...))
			t.text("content", t.content(h), "before")
		}),
		must("target-length", "a SYMLINK whose target says it has 2^32-1 bytes is GARBAGE_ARGS", func(t *T) {
			t.refusedCall(procSymlink, newArgs().dirop(t.dir(), "l").sattr(sattr{}).raw("a target of 2^32-1 bytes", tooLong...))
			t.gone(t.dir(), "l")
		}),
		should("bool", "a bool that is 2 is GARBAGE_ARGS", func(t *T) {
			h := t.file("f")
			t.refusedCall(procSetattr, newArgs().fh("object", h).
				raw("set_mode with discriminant 2", 0, 0, 0, 2, 0, 0, 1, 0xff).raw("rest", make([]byte, 24)...))
			t.mode(t.attr(h), 0o644)
		}).at("RFC 4506, 4.4"),
		should("guard-bool", "a guard whose discriminant is 2 is GARBAGE_ARGS, and nothing is set", func(t *T) {
			h := t.file("f")
			t.refusedCall(procSetattr, newArgs().fh("object", h).sattr(mode(0o600)).
				u32("check", 2).raw("a time", make([]byte, 8)...))
			t.mode(t.attr(h), 0o644)
		}).at("RFC 4506, 4.4"),
		must("time-how", "a time_how that is 3 is GARBAGE_ARGS", func(t *T) {
			h := t.file("f")
			before := t.attr(h)
			s := sattr{mode: ptr(uint32(0o600)), mtimeHow: 3}
			t.refusedCall(procSetattr, newArgs().fh("object", h).sattr(s).bool("guard", false))
			same(t, "attributes", t.attr(h), before)
		}).at("RFC 4506, 4.15"),
		must("create-mode", "a createmode3 that is 3 is GARBAGE_ARGS", func(t *T) {
			t.refusedCall(procCreate, newArgs().dirop(t.dir(), "f").u32("mode", 3).sattr(mode(0o644)))
			t.gone(t.dir(), "f")
		}).at("RFC 4506, 4.15"),
	)
}

// paddingChecks are about what is behind the arguments, and between them.
func paddingChecks() []Check {
	return group("args", "RFC 4506, 4.10",
		must("trailing", "a call with bytes behind its arguments is answered", func(t *T) {
			p := t.try(procGetattr, super, newArgs().fh("object", t.s.root).raw("and 8 bytes more", 1, 2, 3, 4, 5, 6, 7, 8))
			t.that(!p.denied && (p.stat == success || p.stat == garbageArgs), "SUCCESS or GARBAGE_ARGS", "%s", p)
			t.alive(t.nfsConn())
		}).at("RFC 5531, 9"),
		must("null-trailing", "NULL with arguments is answered", func(t *T) {
			p := t.try(procNull, super, newArgs().raw("and 8 bytes", 1, 2, 3, 4, 5, 6, 7, 8))
			t.that(!p.denied && (p.stat == success || p.stat == garbageArgs), "SUCCESS or GARBAGE_ARGS", "%s", p)
			t.alive(t.nfsConn())
		}).at("RFC 1813, 3.3.0"),
		must("padding", "padding that is not zero does not become part of a name", func(t *T) {
			p := t.try(procMkdir, super, newArgs().fh("dir", t.dir()).
				raw(`name="abc" padded with 'X'`, 0, 0, 0, 3, 'a', 'b', 'c', 'X').sattr(mode(0o755)))
			if p.denied || p.stat != garbageArgs && p.stat != success {
				t.wrong("SUCCESS or GARBAGE_ARGS", p.String())
			}
			if p.stat == success && statusOf(p) == ok {
				if names := t.names(t.dir()); len(names) != 1 || names[0] != "abc" {
					t.wrong(`a directory "abc"`, fmt.Sprintf("%q", names))
				}
			}
		}).at("RFC 4506, 4.10"),
		must("data-padding", "padding that is not zero does not get into a file", func(t *T) {
			h := t.file("f")
			p := t.try(procWrite, super, newArgs().fh("file", h).u64("offset", 0).u32("count", 5).u32("stable", fileSync).
				raw("data=\"hello\" padded with 'X'", 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 'X', 'X', 'X'))
			if p.denied || p.stat != garbageArgs && p.stat != success {
				t.wrong("SUCCESS or GARBAGE_ARGS", p.String())
			}
			if p.stat == success && statusOf(p) == ok {
				t.text("content", t.content(h), "hello")
				t.ok(t.setattr(super, h, size(8), nil).st)
				t.text("content after it was made longer", t.content(h), "hello\x00\x00\x00")
			}
		}).at("RFC 4506, 4.10"),
		must("missing-padding", "a name whose padding is missing at the end of the record is not taken with what follows it",
			func(t *T) {
				p := t.try(procLookup, super, newArgs().fh("dir", t.dir()).raw(`name="ab" without padding`, 0, 0, 0, 2, 'a', 'b'))
				if !p.denied && p.stat == success {
					t.that(statusOf(p) == errNoEnt, "GARBAGE_ARGS", "%s", statusOf(p))
					t.prefer(false, "GARBAGE_ARGS", statusOf(p).String())
				} else {
					t.that(!p.denied && p.stat == garbageArgs, "GARBAGE_ARGS", "%s", p)
				}
				t.serving()
			}).at("RFC 4506, 4.11"),
		must("reply-padding", "data in a reply is padded with zeros to a multiple of 4 bytes", func(t *T) {
			h := t.put("f", "abcdefgh")
			for n := range uint32(6) {
				t.ok(t.read(super, h, 1, n).st)
			}
			l := t.symlinkTo("l", "abcde")
			t.ok(t.readlink(super, l).st)
			t.scan(t.dir())
		}).at("RFC 4506, 4.10"),
	)
}
