package conform

import (
	"fmt"
	"math"
	"strings"
)

// READ (RFC 1813, section 3.3.6).

func readChecks() []Check {
	return group("read", "RFC 1813, 3.3.6",
		must("whole", "all of a file, in one call that asks for more, ends with eof", func(t *T) {
			readGives(t, t.put("f", "0123456789"), 0, 100, "0123456789", true)
		}),
		must("part", "a part in the middle has no eof", func(t *T) {
			readGives(t, t.put("f", "0123456789"), 2, 3, "234", false)
		}),
		must("up-to-end", "a READ that ends exactly at the end of the file has eof", func(t *T) {
			readGives(t, t.put("f", "0123456789"), 4, 6, "456789", true)
		}),
		must("one-before-end", "a READ that ends one byte before the end has no eof", func(t *T) {
			readGives(t, t.put("f", "0123456789"), 4, 5, "45678", false)
		}),
		must("at-end", "a READ at the end of the file gives no bytes and eof", func(t *T) {
			readGives(t, t.put("f", "0123456789"), 10, 5, "", true)
		}),
		must("beyond-end", "a READ beyond the end of the file gives no bytes and eof", func(t *T) {
			readGives(t, t.put("f", "0123456789"), 100000, 5, "", true)
		}),
		must("empty", "a READ of an empty file gives no bytes and eof", func(t *T) {
			readGives(t, t.file("f"), 0, 100, "", true)
		}),
		must("count-0", "a READ of 0 bytes is OK and gives none", func(t *T) {
			d := t.read(super, t.put("f", "0123456789"), 2, 0)
			t.ok(d.st)
			same(t, "count", d.count, 0)
		}),
		should("count-0-eof", "a READ of 0 bytes has eof at the end of the file only", func(t *T) {
			h := t.put("f", "0123456789")
			readGives(t, h, 2, 0, "", false)
			readGives(t, h, 10, 0, "", true)
		}),
	)
}

// readLimitChecks are about large offsets and counts.
func readLimitChecks() []Check {
	return group("read", "RFC 1813, 3.3.6",
		must("offset-2^63", "a READ at offset 2^63 is answered: no bytes, or an error", func(t *T) {
			d := t.read(super, t.put("f", "0123456789"), 1<<63, 10)
			if d.st == ok {
				t.that(d.count == 0 && d.eof, "no bytes and eof", "%d bytes, eof %v", d.count, d.eof)
			}
			t.prefer(d.st == ok, "OK, no bytes, eof", d.st.String())
		}),
		must("offset-2^64-1", "a READ whose end is beyond 2^64 is answered: no bytes, or an error", func(t *T) {
			d := t.read(super, t.put("f", "0123456789"), math.MaxUint64, 10)
			if d.st == ok {
				t.that(d.count == 0 && d.eof, "no bytes and eof", "%d bytes, eof %v", d.count, d.eof)
			}
			t.prefer(d.st == ok, "OK, no bytes, eof", d.st.String())
		}),
		must("wrap-around", "a READ whose end wraps around to the file's bytes does not give them", func(t *T) {
			d := t.read(super, t.put("f", "0123456789"), math.MaxUint64-3, 14)
			t.that(d.st != ok || d.count == 0, "no bytes, or an error", "%d bytes", d.count)
		}),
		must("count-huge", "a READ of 2^32-1 bytes gives the file, or as much of it as rtmax", func(t *T) {
			d := t.read(super, t.put("f", "0123456789"), 0, math.MaxUint32)
			t.ok(d.st)
			t.text("data", d.data, "0123456789")
		}),
		must("rtmax", "a READ of rtmax bytes of a larger file gives some, and no more than rtmax", func(t *T) {
			n := min(t.s.info.rtmax, 4<<20)
			h := t.file("f")
			t.ok(t.setattr(super, h, size(uint64(n)+10000), nil).st)
			for _, count := range []uint32{n, n + 1, n + 4096} {
				d := t.read(super, h, 0, count)
				t.ok(d.st)
				t.that(d.count > 0 && d.count <= count, fmt.Sprintf("1 to %d bytes", count), "%d", d.count)
				same(t, "eof", d.eof, false)
			}
		}).at("RFC 1813, 3.3.19"),
		should("rtmax-whole", "a READ of rtmax bytes is not cut short", func(t *T) {
			n := min(t.s.info.rtmax, 4<<20)
			h := t.file("f")
			t.ok(t.setattr(super, h, size(uint64(n)+10000), nil).st)
			same(t, "count", t.read(super, h, 0, n).count, n)
		}).at("RFC 1813, 3.3.19"),
		must("unaligned", "every offset and length within two blocks gives the right bytes", func(t *T) {
			var b strings.Builder
			for i := range 9000 {
				b.WriteByte(byte('a' + i%23))
			}
			h := t.put("f", b.String())
			for _, r := range [][2]int{
				{0, 1}, {1, 1}, {3, 5}, {4095, 1}, {4095, 2}, {4096, 1}, {511, 4097}, {8191, 809}, {1, 8999},
			} {
				d := t.read(super, h, uint64(r[0]), uint32(r[1]))
				t.ok(d.st)
				t.text("data", d.data, b.String()[r[0]:r[0]+r[1]])
			}
		}),
		must("hole", "a hole reads as zeros", func(t *T) {
			h := t.file("f")
			t.fill(h, 100000, "end")
			d := t.read(super, h, 50000, 10)
			t.ok(d.st)
			t.text("data", d.data, strings.Repeat("\x00", 10))
		}),
	)
}

// readPermChecks are about what can be read, and by whom.
func readPermChecks() []Check {
	return group("read", "RFC 1813, 3.3.6",
		must("directory", "READ of a directory is refused", func(t *T) {
			t.refused(t.read(super, t.sub("d"), 0, 10).st, errIsDir, errInval)
		}),
		must("symlink", "READ of a symbolic link is refused", func(t *T) {
			t.refused(t.read(super, t.symlinkTo("l", "target"), 0, 10).st, errInval)
		}),
		must("fifo", "READ of a FIFO is refused at once, nobody waits for a writer", func(t *T) {
			t.refused(t.read(super, t.fifo("p"), 0, 10).st, errInval)
		}),
		must("device", "READ of a device is refused: the server's devices are not read", func(t *T) {
			t.refused(t.read(super, t.node("zero", typeChr, 1, 5), 0, 10).st, errInval)
		}),
		must("no-permission", "a user who may not read does not", func(t *T) {
			t.needUsers()
			d := t.read(bob, t.putAs(alice, "f", 0o620, "data"), 0, 4)
			t.is(d.st, errAcces)
		}),
		must("no-permission-count-0", "a READ of 0 bytes needs permission too", func(t *T) {
			t.needUsers()
			t.is(t.read(bob, t.putAs(alice, "f", 0o600, "data"), 0, 0).st, errAcces)
		}),
		must("group", "a supplementary group gives the right to read", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o640, "data")
			d := t.read(member(t.attr(h).gid), h, 0, 4)
			t.ok(d.st)
			t.text("data", d.data, "data")
		}),
		should("owner-without-mode", "an owner reads whatever the mode is: the file may be open", func(t *T) {
			t.needUsers()
			h := t.putAs(alice, "f", 0o600, "data")
			t.ok(t.setattr(alice, h, mode(0), nil).st)
			t.ok(t.read(alice, h, 0, 4).st)
		}).at("RFC 1813, 4.4"),
		should("execute-only", "a user who may execute may read: that is how a program is paged in", func(t *T) {
			t.needUsers()
			t.ok(t.read(bob, t.putAs(alice, "f", 0o711, "data"), 0, 4).st)
		}).at("RFC 1813, 4.4"),
		must("superuser", "the superuser reads whatever the mode is", func(t *T) {
			t.needRoot()
			h := t.putAs(alice, "f", 0o600, "data")
			t.ok(t.setattr(alice, h, mode(0), nil).st)
			t.ok(t.read(super, h, 0, 4).st)
		}).at("RFC 1813, 4.4"),
		must("attributes", "the attributes READ gives are those of GETATTR but for atime", func(t *T) {
			h := t.put("f", "data")
			d := t.read(super, h, 0, 4)
			t.ok(d.st)
			if d.attr != nil {
				want := t.attr(h)
				want.atime = d.attr.atime
				same(t, "attributes", *d.attr, want)
			}
		}),
		must("keeps-mtime", "READ changes neither mtime nor ctime", func(t *T) {
			h := t.put("f", "data")
			before := t.attr(h)
			t.ok(t.read(super, h, 0, 4).st)
			a := t.attr(h)
			same(t, "mtime", a.mtime, before.mtime)
			same(t, "ctime", a.ctime, before.ctime)
		}),
		must("after-write", "what was written UNSTABLE is read back before a COMMIT", func(t *T) {
			h := t.file("f")
			t.ok(t.write(super, h, 0, "unstable", unstable).st)
			readGives(t, h, 0, 100, "unstable", true)
		}).at("RFC 1813, 4.12"),
	)
}

// readGives wants READ to return exactly some bytes and eof.
func readGives(t *T, h fh, off uint64, count uint32, data string, eof bool) {
	d := t.read(super, h, off, count)
	t.ok(d.st)
	t.text("data", d.data, data)
	same(t, "eof", d.eof, eof)
}
