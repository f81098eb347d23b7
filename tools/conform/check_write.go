package conform

import (
	"fmt"
	"math"
	"strings"
)

// WRITE (RFC 1813, section 3.3.7).

func writeChecks() []Check {
	return group("write", "RFC 1813, 3.3.7",
		must("file-sync", "a FILE_SYNC WRITE is committed FILE_SYNC, and read back", func(t *T) {
			h := t.file("f")
			w := t.write(super, h, 0, "hello", fileSync)
			t.ok(w.st)
			same(t, "count", w.count, 5)
			same(t, "committed", w.committed, fileSync)
			t.text("content", t.content(h), "hello")
		}),
		must("data-sync", "a DATA_SYNC WRITE is committed DATA_SYNC or FILE_SYNC", func(t *T) {
			w := t.write(super, t.file("f"), 0, "hello", dataSync)
			t.ok(w.st)
			t.that(w.committed >= dataSync, "DATA_SYNC or FILE_SYNC", "UNSTABLE")
		}),
		must("unstable", "an UNSTABLE WRITE is OK, committed whatever the server says", func(t *T) {
			h := t.file("f")
			w := t.write(super, h, 0, "hello", unstable)
			t.ok(w.st)
			same(t, "count", w.count, 5)
			t.text("content", t.content(h), "hello")
		}),
		must("verifier", "all WRITEs and COMMITs give the same verifier while the server runs", func(t *T) {
			h := t.file("f")
			verf := t.write(super, h, 0, "a", unstable).verf
			same(t, "verifier of a FILE_SYNC WRITE", t.write(super, h, 1, "b", fileSync).verf, verf)
			same(t, "verifier of another file", t.write(super, t.file("g"), 0, "c", unstable).verf, verf)
			same(t, "verifier of COMMIT", t.commit(super, h, 0, 0).verf, verf)
		}),
	)
}

// writeCountChecks are about counts and lengths.
func writeCountChecks() []Check {
	return group("write", "RFC 1813, 3.3.7",
		must("count-0", "a WRITE of 0 bytes is OK, and changes no byte and no size", func(t *T) {
			h := t.put("f", "data")
			w := t.write(super, h, 100, "", fileSync)
			t.ok(w.st)
			same(t, "count", w.count, 0)
			t.text("content", t.content(h), "data")
		}),
		must("count-below-length", "a WRITE with less count than data stores no more than count, or is refused", func(t *T) {
			h := t.put("f", "0123456789")
			p := t.try(procWrite, super, writeArgs(h, 0, 2, fileSync, "abcdef"))
			got := t.content(h)
			if !p.denied && p.stat == success && statusOf(p) == ok {
				t.text("content", got, "ab23456789")
			} else {
				t.text("content", got, "0123456789")
			}
		}),
		must("count-above-length", "a WRITE with more count than data is refused, or stores the data alone", func(t *T) {
			h := t.put("f", "0123456789")
			p := t.try(procWrite, super, writeArgs(h, 0, 100, fileSync, "abc"))
			got := t.content(h)
			if !p.denied && p.stat == success && statusOf(p) == ok {
				t.text("content", got, "abc3456789")
			} else {
				t.text("content", got, "0123456789")
			}
		}),
		should("count-mismatch", "a WRITE whose count is not the length of its data is INVAL or GARBAGE_ARGS", func(t *T) {
			h := t.file("f")
			for _, n := range []uint32{0, 2, 4, 1 << 20, math.MaxUint32} {
				p := t.try(procWrite, super, writeArgs(h, 0, n, fileSync, "abc"))
				refused := p.stat == garbageArgs || p.stat == success && statusOf(p) == errInval
				t.that(!p.denied && refused, "INVAL or GARBAGE_ARGS", "%s", answer(p))
			}
		}),
		should("stable-how", "a WRITE with a stable_how of 3 is refused", func(t *T) {
			h := t.put("f", "data")
			p := t.try(procWrite, super, writeArgs(h, 0, 3, 3, "abc"))
			refused := p.stat == garbageArgs || p.stat == success && statusOf(p) != ok
			t.that(!p.denied && refused, "GARBAGE_ARGS or INVAL", "%s", answer(p))
			t.text("content", t.content(h), "data")
		}),
	)
}

// writeOffsetChecks are about offsets.
func writeOffsetChecks() []Check {
	return group("write", "RFC 1813, 3.3.7",
		must("beyond-end", "a WRITE beyond the end makes the file longer, with zeros between", func(t *T) {
			h := t.put("f", "ab")
			t.ok(t.write(super, h, 8, "cd", fileSync).st)
			t.text("content", t.content(h), "ab\x00\x00\x00\x00\x00\x00cd")
		}),
		must("beyond-cut", "zeros between are zeros even where there was data before", func(t *T) {
			h := t.put("f", strings.Repeat("secret", 2000))
			t.ok(t.setattr(super, h, size(1), nil).st)
			t.ok(t.write(super, h, 9000, "end", fileSync).st)
			t.text("content", t.content(h), "s"+strings.Repeat("\x00", 8999)+"end")
		}),
		must("overwrite", "a WRITE in the middle leaves the rest and the size", func(t *T) {
			h := t.put("f", strings.Repeat("x", 9000))
			t.ok(t.write(super, h, 4094, "abcd", fileSync).st)
			t.text("content", t.content(h), strings.Repeat("x", 4094)+"abcd"+strings.Repeat("x", 9000-4098))
		}),
		must("unaligned", "WRITEs of 1 to 9 bytes at odd offsets store no padding", func(t *T) {
			h := t.file("f")
			want := []byte(strings.Repeat("\x00", 100))
			for n := 1; n <= 9; n++ {
				t.ok(t.write(super, h, uint64(n*10+n%3), strings.Repeat("z", n), fileSync).st)
				copy(want[n*10+n%3:], strings.Repeat("z", n))
			}
			t.text("content", t.content(h), string(want[:99]))
		}),
		must("beyond-4-gib", "bytes at 2^31 and 2^32, and across them, are where they were put", func(t *T) {
			if t.s.info.maxFileSize <= 1<<33 {
				t.skip("maxfilesize is %d", t.s.info.maxFileSize)
			}
			h := t.put("f", "start")
			for _, off := range []uint64{1<<31 - 3, 1<<32 - 3, 1 << 33} {
				t.ok(t.write(super, h, off, "abcdef", fileSync).st)
			}
			for _, off := range []uint64{1<<31 - 3, 1<<32 - 3, 1 << 33} {
				d := t.read(super, h, off, 6)
				t.ok(d.st)
				t.text(fmt.Sprintf("data at %d", off), d.data, "abcdef")
			}
			same(t, "size", t.attr(h).size, 1<<33+6)
			d := t.read(super, h, 0, 6)
			t.text("data at 0", d.data, "start\x00")
		}),
		must("offset-2^64-1", "a WRITE whose end is beyond 2^64 is refused, and the file is as before", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.refused(t.write(super, h, math.MaxUint64, "ab", fileSync).st, errFBig, errInval)
			same(t, "attributes", t.attr(h), before)
		}),
		must("offset-2^63", "a WRITE at 2^63 is refused, and the file is as before", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.refused(t.write(super, h, 1<<63, "ab", fileSync).st, errFBig, errInval)
			same(t, "attributes", t.attr(h), before)
		}),
		must("wrap-around", "a WRITE whose end wraps around does not reach the file's start", func(t *T) {
			h := t.put("f", "0123456789")
			t.refused(t.write(super, h, math.MaxUint64-1, "abcdef", fileSync).st, errFBig, errInval)
			t.text("content", t.content(h), "0123456789")
		}),
	)
}

// writeLimitChecks are about the largest file and the largest WRITE.
func writeLimitChecks() []Check {
	return group("write", "RFC 1813, 3.3.7",
		should("above-maximum", "a WRITE at FSINFO's maxfilesize is FBIG", func(t *T) {
			if t.s.info.maxFileSize >= math.MaxInt64 {
				t.skip("the server names no maximum below 2^63-1")
			}
			t.is(t.write(super, t.file("f"), t.s.info.maxFileSize, "x", fileSync).st, errFBig)
		}).at("RFC 1813, 3.3.19"),
		must("across-maximum", "a WRITE across maxfilesize is refused or cut short", func(t *T) {
			limit := t.s.info.maxFileSize
			if limit >= math.MaxInt64 || limit < 10 {
				t.skip("the server names no maximum below 2^63-1")
			}
			h := t.file("f")
			w := t.write(super, h, limit-2, "abcd", fileSync)
			if w.st == ok {
				same(t, "count", w.count, 2)
			} else {
				t.refused(w.st, errFBig)
			}
			t.that(t.attr(h).size <= limit, fmt.Sprintf("a size of at most %d", limit), "%d", t.attr(h).size)
		}).at("RFC 1813, 3.3.19"),
		must("wtmax", "a WRITE of wtmax bytes stores some of them, and what count says", func(t *T) {
			n := min(t.s.info.wtmax, 2<<20)
			h := t.file("f")
			data := strings.Repeat("0123456789abcdef", int(n/16)+1)[:n]
			w := t.write(super, h, 0, data, fileSync)
			t.ok(w.st)
			t.that(w.count > 0 && w.count <= n, fmt.Sprintf("1 to %d bytes", n), "%d", w.count)
			t.text("content", t.content(h), data[:w.count])
		}).at("RFC 1813, 3.3.19"),
		should("wtmax-whole", "a WRITE of wtmax bytes is not cut short", func(t *T) {
			n := min(t.s.info.wtmax, 2<<20)
			w := t.write(super, t.file("f"), 0, strings.Repeat("x", int(n)), fileSync)
			t.ok(w.st)
			same(t, "count", w.count, n)
		}).at("RFC 1813, 3.3.19"),
		must("above-wtmax", "a WRITE of more than wtmax bytes is cut short or refused, and the server goes on", func(t *T) {
			n := t.s.info.wtmax
			if n > 2<<20 {
				t.skip("wtmax is %d", n)
			}
			h := t.file("f")
			c := t.dial()
			hd := newHeader(nfsProg, nfsVers, procWrite, super)
			p, err := t.tryOn(c, hd, writeArgs(h, 0, n+4096, fileSync, strings.Repeat("x", int(n)+4096)))
			if err == nil && !p.denied && p.stat == success && statusOf(p) == ok {
				w := t.writeResult(ok, &reader{b: p.body[4:]})
				t.that(w.count <= n+4096 && t.attr(h).size == uint64(w.count),
					"a size of count", "count %d, size %d", w.count, t.attr(h).size)
			} else {
				same(t, "size", t.attr(h).size, 0)
			}
			t.prefer(err == nil, "an answer", fmt.Sprint(err))
			t.serving()
		}).at("RFC 1813, 3.3.19"),
	)
}

// writeFileChecks are about what can be written, and what else changes then.
func writeFileChecks() []Check {
	return group("write", "RFC 1813, 3.3.7",
		must("directory", "WRITE to a directory is refused", func(t *T) {
			t.refused(t.write(super, t.sub("d"), 0, "x", fileSync).st, errIsDir, errInval)
		}),
		must("symlink", "WRITE to a symbolic link is refused, and its target stays", func(t *T) {
			f := t.put("f", "data")
			h := t.symlinkTo("l", "f")
			t.refused(t.write(super, h, 0, "x", fileSync).st, errInval)
			t.text("content of the target", t.content(f), "data")
		}),
		must("fifo", "WRITE to a FIFO is refused at once, nobody waits for a reader", func(t *T) {
			t.refused(t.write(super, t.fifo("p"), 0, "x", fileSync).st, errInval)
		}),
		must("device", "WRITE to a device is refused: the server's devices are not written", func(t *T) {
			t.refused(t.write(super, t.node("null", typeChr, 1, 3), 0, "x", fileSync).st, errInval)
		}),
		should("ctime-each", "each of 100 WRITEs of the same bytes gives the file a later ctime", func(t *T) {
			h := t.put("f", "x")
			last := t.attr(h).ctime
			for range 100 {
				t.ok(t.write(super, h, 0, "x", unstable).st)
				c := t.attr(h).ctime
				t.that(last.before(c), "ctime after "+last.String(), "%v", c)
				last = c
			}
		}),
		must("times", "WRITE moves mtime and ctime", func(t *T) {
			h := t.file("f")
			t.ok(t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{1, 0}}, nil).st)
			before := t.attr(h)
			t.ok(t.write(super, h, 0, "x", fileSync).st)
			a := t.attr(h)
			t.that(a.mtime.sec > 1, "a new mtime", "%v", a.mtime)
			t.that(!a.ctime.before(before.ctime), "ctime not before "+before.ctime.String(), "%v", a.ctime)
		}),
		must("attributes", "the attributes after a WRITE are those of GETATTR", func(t *T) {
			h := t.file("f")
			w := t.write(super, h, 0, "data", fileSync)
			t.ok(w.st)
			if w.wcc.after != nil {
				same(t, "attributes", *w.wcc.after, t.attr(h))
			}
		}),
		must("concurrent", "WRITEs sent together to one file are all stored", func(t *T) {
			h := t.file("f")
			c := t.dial()
			var b []byte
			var xids []uint32
			data := func(i int) string { return strings.Repeat(string(rune('0'+i)), 1000) }
			for i := range 64 {
				hd := newHeader(nfsProg, nfsVers, procWrite, super)
				hd.xid = t.xid()
				b = append(b, record(hd, writeArgs(h, uint64(i)*1000, 1000, unstable, data(i)))...)
				xids = append(xids, hd.xid)
			}
			t.sendRaw(c, "64 WRITEs of 1000 bytes side by side, at once", b)
			for _, p := range t.expectAll(c, xids) {
				t.is(statusOf(p), ok)
			}
			got := t.content(h)
			same(t, "size", len(got), 64000)
			for i := range 64 {
				t.text(fmt.Sprintf("bytes %d to %d", i*1000, i*1000+999), got[i*1000:i*1000+1000], data(i))
			}
		}),
	)
}

// answer is what a call of NFS came to.
func answer(p *rpcReply) string {
	if !p.denied && p.stat == success && len(p.body) >= 4 {
		return statusOf(p).String()
	}
	return p.String()
}

func writePermChecks() []Check {
	return group("write-perm", "RFC 1813, 4.4",
		must("other", "a user who may not write does not", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			t.is(t.write(bob, h, 0, "x", fileSync).st, errAcces)
			t.text("content", t.content(h), "data")
		}),
		must("other-allowed", "a user who may write does, also without the right to read", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o642, "data")
			t.ok(t.write(bob, h, 0, "x", fileSync).st)
			t.text("content", t.content(h), "xata")
		}),
		must("group", "a supplementary group gives the right to write", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o660, "data")
			t.is(t.write(bob, h, 0, "x", fileSync).st, errAcces)
			t.ok(t.write(member(t.attr(h).gid), h, 0, "x", fileSync).st)
		}),
		should("owner-without-mode", "an owner writes whatever the mode is: the file may be open", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			t.ok(t.setattr(alice, h, mode(0o444), nil).st)
			t.ok(t.write(alice, h, 0, "x", fileSync).st)
		}),
		must("superuser", "the superuser writes whatever the mode is", func(t *T) {
			t.needRoot()
			h := t.putAs(alice, "f", 0o644, "data")
			t.ok(t.setattr(alice, h, mode(0), nil).st)
			t.ok(t.write(super, h, 0, "x", fileSync).st)
		}),
		should("count-0", "a WRITE of 0 bytes needs permission too", func(t *T) {
			t.needUsers()
			t.is(t.write(bob, t.putAs(alice, "f", 0o644, "data"), 0, "", fileSync).st, errAcces)
		}).at("RFC 1813, 3.3.7"),
		should("clears-setuid", "a WRITE by a user other than the superuser takes set-user-id away", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o777, "data")
			t.ok(t.setattr(alice, h, mode(0o4777), nil).st)
			t.ok(t.write(bob, h, 0, "x", fileSync).st)
			t.mode(t.attr(h), 0o777)
		}),
		should("clears-setgid", "a WRITE by a user other than the superuser takes set-group-id of an executable away",
			func(t *T) {
				t.needUsers()
				h := t.putAs(alice, "f", 0o777, "data")
				t.ok(t.setattr(alice, h, mode(0o2777), nil).st)
				t.ok(t.write(bob, h, 0, "x", fileSync).st)
				t.mode(t.attr(h), 0o777)
			}),
		should("failed-has-attributes", "a refused WRITE comes with the file's attributes", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o644, "data")
			w := t.write(bob, h, 0, "x", fileSync)
			t.that(w.wcc.after != nil, "file_wcc.after", "none")
			same(t, "attributes", *w.wcc.after, t.attr(h))
		}).at("RFC 1813, 3.1"),
	)
}
