package conform

import "strings"

// READLINK (RFC 1813, section 3.3.5).

func readlinkChecks() []Check {
	return group("readlink", "RFC 1813, 3.3.5",
		must("target", "the target is what SYMLINK was given, whether it exists or not", func(t *T) {
			for i, target := range []string{"f", "/absolute/path", "../..//up", "no such thing"} {
				l := t.readlink(super, t.symlinkTo(string(rune('a'+i)), target))
				t.ok(l.st)
				t.text("target", l.target, target)
			}
		}),
		should("any-bytes", "a target may hold any bytes but zero", func(t *T) {
			target := "\xff\xfe\n\x01 é"
			l := t.readlink(super, t.symlinkTo("l", target))
			t.ok(l.st)
			t.text("target", l.target, target)
		}).at("RFC 1813, 3.3.10"),
		must("long", "a target of 1000 bytes comes back whole", func(t *T) {
			target := strings.Repeat("0123456789", 100)
			l := t.readlink(super, t.symlinkTo("l", target))
			t.ok(l.st)
			t.text("target", l.target, target)
		}),
		must("file", "READLINK of a file is INVAL", func(t *T) { t.refused(t.readlink(super, t.file("f")).st, errInval) }),
		must("directory", "READLINK of a directory is INVAL", func(t *T) {
			t.refused(t.readlink(super, t.sub("d")).st, errInval)
		}),
		must("fifo", "READLINK of a FIFO is INVAL", func(t *T) { t.refused(t.readlink(super, t.fifo("p")).st, errInval) }),
		must("attributes", "the attributes READLINK gives are those of GETATTR but for atime", func(t *T) {
			h := t.symlinkTo("l", "target")
			l := t.readlink(super, h)
			if l.attr != nil {
				want := t.attr(h)
				want.atime = l.attr.atime
				same(t, "attributes", *l.attr, want)
			}
		}),
		should("other", "any user reads a link whose directory they may search", func(t *T) {
			t.needUsers()
			l := t.readlink(bob, t.symlinkTo("l", "target"))
			t.ok(l.st)
			t.text("target", l.target, "target")
		}),
	)
}
