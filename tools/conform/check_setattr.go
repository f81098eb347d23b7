package conform

import (
	"math"
	"strings"
)

// SETATTR (RFC 1813, section 3.3.2).

func setattrChecks() []Check {
	return group("setattr", "RFC 1813, 3.3.2",
		must("mode", "the mode is set, and nothing else but ctime changes", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.ok(t.setattr(super, h, mode(0o640), nil).st)
			after := t.attr(h)
			same(t, "mode", after.mode, 0o640)
			before.mode, before.ctime = after.mode, after.ctime
			same(t, "all else", after, before)
		}),
		should("special-bits", "set-user-id, set-group-id and sticky bits are kept", func(t *T) {
			t.needRoot()
			h := t.file("f")
			t.ok(t.setattr(super, h, mode(0o7755), nil).st)
			t.mode(t.attr(h), 0o7755)
		}),
		must("undefined-bits", "bits of the mode above 07777 are refused or not kept", func(t *T) {
			h := t.file("f")
			w := t.setattr(super, h, mode(0o170000|0o600), nil)
			a := t.attr(h)
			same(t, "type", a.typ, typeReg)
			if w.st == ok {
				t.mode(a, 0o600)
			} else {
				t.mode(a, 0o644)
			}
		}),
		must("owner", "the superuser sets user and group", func(t *T) {
			t.needRoot()
			h := t.file("f")
			t.ok(t.setattr(super, h, sattr{uid: ptr(uint32(12345)), gid: ptr(uint32(54321))}, nil).st)
			a := t.attr(h)
			same(t, "uid", a.uid, 12345)
			same(t, "gid", a.gid, 54321)
		}),
	)
}

// setattrSizeChecks are about the size.
func setattrSizeChecks() []Check {
	return group("setattr", "RFC 1813, 3.3.2",
		must("shrink", "a smaller size cuts the content", func(t *T) {
			h := t.put("f", "0123456789")
			t.ok(t.setattr(super, h, size(4), nil).st)
			same(t, "size", t.attr(h).size, 4)
			t.text("content", t.content(h), "0123")
		}),
		must("grow", "a larger size adds zeros", func(t *T) {
			h := t.put("f", "0123")
			t.ok(t.setattr(super, h, size(10), nil).st)
			t.text("content", t.content(h), "0123\x00\x00\x00\x00\x00\x00")
		}),
		must("shrink-grow", "what was cut off does not come back", func(t *T) {
			h := t.put("f", strings.Repeat("secret", 3000))
			t.ok(t.setattr(super, h, size(5), nil).st)
			t.ok(t.setattr(super, h, size(18000), nil).st)
			t.text("content", t.content(h), "secre"+strings.Repeat("\x00", 17995))
		}),
		must("shrink-to-zero", "a size of zero empties the file", func(t *T) {
			h := t.put("f", strings.Repeat("x", 10000))
			t.ok(t.setattr(super, h, size(0), nil).st)
			d := t.read(super, h, 0, 100)
			t.ok(d.st)
			t.that(d.count == 0 && d.eof, "0 bytes and eof", "%d bytes, eof %v", d.count, d.eof)
		}),
		must("size-of-directory", "the size of a directory cannot be set", func(t *T) {
			t.refused(t.setattr(super, t.sub("d"), size(0), nil).st, errIsDir, errInval)
		}),
		must("size-of-symlink", "the size of a symbolic link cannot be set", func(t *T) {
			h := t.symlinkTo("l", "target")
			t.refused(t.setattr(super, h, size(1), nil).st, errInval)
			t.text("target", t.readlink(super, h).target, "target")
		}),
		must("size-of-fifo", "the size of a FIFO cannot be set", func(t *T) {
			h := t.fifo("p")
			st := t.setattr(super, h, size(100), nil).st
			t.prefer(st == errInval, "INVAL", st.String())
			same(t, "size", t.attr(h).size, 0)
		}),
		must("size-2^63", "a size of 2^63 is refused, and the file is as before", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.refused(t.setattr(super, h, size(1<<63), nil).st, errFBig, errInval)
			same(t, "attributes", t.attr(h), before)
		}),
		must("size-2^64-1", "a size of 2^64-1 is refused, and the file is as before", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.refused(t.setattr(super, h, size(math.MaxUint64), nil).st, errFBig, errInval)
			same(t, "attributes", t.attr(h), before)
		}),
		should("size-beyond-maximum", "a size above FSINFO's maxfilesize is FBIG", func(t *T) {
			if t.s.info.maxFileSize >= math.MaxInt64 {
				t.skip("the server names no maximum below 2^63-1")
			}
			t.is(t.setattr(super, t.file("f"), size(t.s.info.maxFileSize+1), nil).st, errFBig)
		}),
		should("size-maximum", "a size of FSINFO's maxfilesize is taken", func(t *T) {
			h := t.file("f")
			t.ok(t.setattr(super, h, size(t.s.info.maxFileSize), nil).st)
			same(t, "size", t.attr(h).size, t.s.info.maxFileSize)
		}).at("RFC 1813, 3.3.19"),
		should("all-or-nothing", "of a mode and a size that is refused, neither is set", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			s := size(1 << 63)
			s.mode = ptr(uint32(0o600))
			t.refused(t.setattr(super, h, s, nil).st, errFBig, errInval)
			t.mode(t.attr(h), before.mode)
		}),
	)
}

// setattrTimeChecks are about times.
func setattrTimeChecks() []Check {
	return group("setattr", "RFC 1813, 3.3.2",
		must("client-times", "atime and mtime are set to what the client says", func(t *T) {
			if t.s.info.properties&propCanSetTime == 0 {
				t.skip("FSINFO has no FSF3_CANSETTIME")
			}
			h := t.file("f")
			s := sattr{atimeHow: 2, atime: stamp{1000000001, 123456789}, mtimeHow: 2, mtime: stamp{900000002, 987654321}}
			t.ok(t.setattr(super, h, s, nil).st)
			a := t.attr(h)
			t.that(t.near(a.atime, s.atime), "atime "+s.atime.String(), "%v", a.atime)
			t.that(t.near(a.mtime, s.mtime), "mtime "+s.mtime.String(), "%v", a.mtime)
		}),
		must("one-time", "setting mtime leaves atime alone", func(t *T) {
			h := t.file("f")
			before := t.attr(h).atime
			t.ok(t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{1234567, 0}}, nil).st)
			a := t.attr(h)
			same(t, "mtime", a.mtime.sec, 1234567)
			same(t, "atime", a.atime, before)
		}),
		should("late-times", "times after 2038 are kept", func(t *T) {
			h := t.file("f")
			t.ok(t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{0x80000010, 0}}, nil).st)
			same(t, "mtime", t.attr(h).mtime.sec, 0x80000010)
		}).at("RFC 1813, 2.5"),
		should("last-time", "the last time there is, in 2106, is kept", func(t *T) {
			h := t.file("f")
			t.ok(t.setattr(super, h, sattr{atimeHow: 2, atime: stamp{math.MaxUint32, 0}}, nil).st)
			same(t, "atime", t.attr(h).atime.sec, math.MaxUint32)
		}).at("RFC 1813, 2.5"),
		should("large-owner", "users and groups from 2^31 to 2^32-3 are kept", func(t *T) {
			t.needRoot()
			h := t.file("f")
			for _, id := range []uint32{1 << 31, math.MaxUint32 - 2} {
				t.ok(t.setattr(super, h, sattr{uid: ptr(id), gid: ptr(id - 1)}, nil).st)
				a := t.attr(h)
				same(t, "uid", a.uid, id)
				same(t, "gid", a.gid, id-1)
			}
		}).at("RFC 1813, 2.5"),
		should("nobodys-owner", "a user and a group of 2^32-1, which nobody has, are refused or change nothing", func(t *T) {
			t.needRoot()
			h := t.file("f")
			t.ok(t.setattr(super, h, sattr{uid: ptr(uint32(1000)), gid: ptr(uint32(1001))}, nil).st)
			t.setattr(super, h, sattr{uid: ptr(uint32(math.MaxUint32)), gid: ptr(uint32(math.MaxUint32))}, nil)
			a := t.attr(h)
			same(t, "uid", a.uid, 1000)
			same(t, "gid", a.gid, 1001)
		}).at("RFC 1813, 2.5"),
		must("server-time", "the server's time is not before the file's ctime", func(t *T) {
			h := t.file("f")
			t.ok(t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{1, 0}, atimeHow: 2, atime: stamp{1, 0}}, nil).st)
			before := t.attr(h).ctime
			t.ok(t.setattr(super, h, sattr{mtimeHow: 1, atimeHow: 1}, nil).st)
			a := t.attr(h)
			t.that(!a.mtime.before(before), "mtime not before "+before.String(), "%v", a.mtime)
			t.that(!a.atime.before(before), "atime not before "+before.String(), "%v", a.atime)
		}),
		should("nanoseconds", "a time with 10^9 nanoseconds is refused", func(t *T) {
			h := t.file("f")
			t.is(t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{5, 1e9}}, nil).st, errInval)
		}).at("RFC 1813, 2.5"),
		must("nanoseconds-kept-valid", "after a time with 2^32-1 nanoseconds was sent, GETATTR still gives a valid one",
			func(t *T) {
				h := t.file("f")
				t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{5, math.MaxUint32}, atimeHow: 2, atime: stamp{5, 1e9}}, nil)
				a := t.attr(h)
				t.that(a.mtime.nsec < 1e9 && a.atime.nsec < 1e9, "nanoseconds below 10^9", "%v and %v", a.atime, a.mtime)
			}).at("RFC 1813, 2.5"),
	)
}

// setattrGuardChecks are about the guard, and what moves the ctime.
func setattrGuardChecks() []Check {
	return group("setattr", "RFC 1813, 3.3.2",
		must("guard", "a guard that is the ctime lets the change through", func(t *T) {
			h := t.file("f")
			c := t.attr(h).ctime
			t.ok(t.setattr(super, h, mode(0o600), &c).st)
			t.mode(t.attr(h), 0o600)
		}),
		must("guard-wrong", "a guard that is not the ctime is NOT_SYNC, and nothing changes", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			s := size(0)
			s.mode = ptr(uint32(0o600))
			t.is(t.setattr(super, h, s, &stamp{1, 2}).st, errNotSync)
			same(t, "attributes", t.attr(h), before)
		}),
		should("guard-nanoseconds", "a guard that is one nanosecond off is NOT_SYNC", func(t *T) {
			h := t.file("f")
			c := t.attr(h).ctime
			c.nsec = (c.nsec + 1) % 1e9
			t.is(t.setattr(super, h, mode(0o600), &c).st, errNotSync)
		}),
		must("guard-used-up", "a guard does not fit any more after a change", func(t *T) {
			h := t.file("f")
			c := t.attr(h).ctime
			for n := 0; t.attr(h).ctime == c; n++ { // the server's clock may be coarse
				if n == 200 {
					t.skip("ctime is too coarse to tell two changes apart")
				}
				t.ok(t.setattr(super, h, mode(0o600), nil).st)
			}
			t.is(t.setattr(super, h, mode(0o644), &c).st, errNotSync)
		}),
		should("guard-each", "a guard does not fit any more after one change, however soon it is sent", func(t *T) {
			h := t.file("f")
			for range 50 {
				c := t.attr(h).ctime
				t.ok(t.setattr(super, h, mode(0o600), nil).st)
				t.is(t.setattr(super, h, mode(0o644), &c).st, errNotSync)
			}
		}),
		must("ctime", "a change of the mode moves ctime forward or leaves it, and leaves mtime", func(t *T) {
			h := t.file("f")
			before := t.attr(h)
			t.ok(t.setattr(super, h, mode(0o600), nil).st)
			a := t.attr(h)
			t.that(!a.ctime.before(before.ctime), "ctime not before "+before.ctime.String(), "%v", a.ctime)
			same(t, "mtime", a.mtime, before.mtime)
		}),
		should("size-moves-mtime", "a change of the size moves mtime", func(t *T) {
			h := t.put("f", "data")
			t.ok(t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{1, 0}}, nil).st)
			t.ok(t.setattr(super, h, size(2), nil).st)
			t.that(t.attr(h).mtime.sec > 1, "a new mtime", "%v", t.attr(h).mtime)
		}),
		must("nothing", "SETATTR of nothing is OK and changes no more than ctime", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.ok(t.setattr(super, h, sattr{}, nil).st)
			a := t.attr(h)
			before.ctime = a.ctime
			same(t, "attributes", a, before)
		}),
		must("directory-mode", "the mode of a directory is set, its entries stay", func(t *T) {
			d := t.sub("d")
			t.fileAs(super, d, "f", 0o644)
			t.ok(t.setattr(super, d, mode(0o711), nil).st)
			t.mode(t.attr(d), 0o711)
			t.that(len(t.names(d)) == 1, "one entry", "%d", len(t.names(d)))
		}),
	)
}

// near tells if a time is the one that was set, give or take what the server can
// tell apart (time_delta of FSINFO).
func (t *T) near(got, set stamp) bool {
	d := t.s.info.delta
	off := got.nanoseconds() - set.nanoseconds()
	return off == 0 || max(off, -off) < d.nanoseconds()
}
