package conform

import (
	"math"
	"strings"
)

// COMMIT (RFC 1813, section 3.3.21).

func commitChecks() []Check {
	return group("commit", "RFC 1813, 3.3.21",
		must("all", "COMMIT of offset 0 and count 0 commits the whole file, with the verifier of its WRITEs", func(t *T) {
			h := t.file("f")
			w := t.write(super, h, 0, strings.Repeat("x", 10000), unstable)
			t.ok(w.st)
			m := t.commit(super, h, 0, 0)
			t.ok(m.st)
			same(t, "verifier", m.verf, w.verf)
			same(t, "size", len(t.content(h)), 10000)
		}),
		must("range", "COMMIT of a part of a file is OK", func(t *T) {
			h := t.put("f", strings.Repeat("x", 10000))
			t.ok(t.commit(super, h, 4096, 4096).st)
			t.ok(t.commit(super, h, 1, 1).st)
		}),
		must("beyond-end", "COMMIT beyond the end of the file is OK and does not make it longer", func(t *T) {
			h := t.put("f", "data")
			t.ok(t.commit(super, h, 1000000, 10).st)
			t.ok(t.commit(super, h, 0, math.MaxUint32).st)
			same(t, "size", t.attr(h).size, 4)
		}),
		must("wrap-around", "COMMIT whose end is beyond 2^64 is answered: OK or INVAL", func(t *T) {
			h := t.put("f", "data")
			for _, off := range []uint64{math.MaxUint64, 1 << 63} {
				t.is(t.commit(super, h, off, 100).st, ok, errInval, errFBig)
			}
			same(t, "size", t.attr(h).size, 4)
		}),
		must("empty", "COMMIT of an empty file that nobody wrote to is OK", func(t *T) {
			t.ok(t.commit(super, t.file("f"), 0, 0).st)
		}),
		must("again", "COMMIT may be sent again, with the same verifier", func(t *T) {
			h := t.put("f", "data")
			a, b := t.commit(super, h, 0, 0), t.commit(super, h, 0, 0)
			t.ok(b.st)
			same(t, "verifier", b.verf, a.verf)
		}),
		must("keeps-times", "COMMIT changes neither mtime nor ctime of what was FILE_SYNC", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.ok(t.commit(super, h, 0, 0).st)
			same(t, "attributes", t.attr(h), before)
		}),
		should("symlink", "COMMIT of a symbolic link is refused", func(t *T) {
			t.is(t.commit(super, t.symlinkTo("l", "x"), 0, 0).st, errInval)
		}),
		should("fifo", "COMMIT of a FIFO is refused", func(t *T) {
			t.is(t.commit(super, t.fifo("p"), 0, 0).st, errInval)
		}),
		must("directory", "COMMIT of a directory is answered: OK, or an error that says what it is", func(t *T) {
			t.is(t.commit(super, t.sub("d"), 0, 0).st, ok, errInval, errIsDir)
		}),
	)
}
