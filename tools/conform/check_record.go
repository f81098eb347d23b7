package conform

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Record marking (RFC 5531, section 11): how calls lie in the stream.

// nullCall is a NULL of NFS as a record, and its xid.
func (t *T) nullCall() ([]byte, uint32) {
	h := newHeader(nfsProg, nfsVers, procNull, nil)
	h.xid = t.xid()
	return h.encode(), h.xid
}

// getattrCall is a GETATTR of h as a record, and its xid.
func (t *T) getattrCall(h fh) ([]byte, uint32) {
	hd := newHeader(nfsProg, nfsVers, procGetattr, super)
	hd.xid = t.xid()
	return append(hd.encode(), newArgs().fh("object", h).b...), hd.xid
}

// sendRaw sends bytes that text describes.
func (t *T) sendRaw(c *conn, text string, b []byte) {
	t.note("%s", text)
	if err := c.send(b); err != nil {
		t.broken("the server takes what is sent", err.Error())
	}
}

// expect wants the next reply to be a success with this xid.
func (t *T) expect(c *conn, xid uint32) *rpcReply {
	p, err := c.reply()
	if err != nil {
		t.wrong("a reply", err.Error())
	}
	same(t, "xid of the reply", p.xid, xid)
	if p.denied || p.stat != success {
		t.wrong("SUCCESS", p.String())
	}
	return p
}

// expectAll wants one success for each xid, in any order.
func (t *T) expectAll(c *conn, xids []uint32) map[uint32]*rpcReply {
	got := map[uint32]*rpcReply{}
	for range xids {
		p, err := c.reply()
		if err != nil {
			t.wrong(fmt.Sprintf("%d replies", len(xids)), fmt.Sprintf("%d, then: %v", len(got), err))
		}
		if got[p.xid] != nil {
			t.wrong("one reply for each call", fmt.Sprintf("two with xid %#x", p.xid))
		}
		if p.denied || p.stat != success {
			t.wrong("SUCCESS", p.String())
		}
		got[p.xid] = p
	}
	for _, x := range xids {
		if got[x] == nil {
			t.wrong(fmt.Sprintf("a reply with xid %#x", x), "replies to others only")
		}
	}
	return got
}

func recordChecks() []Check {
	return group("record", "RFC 5531, 11",
		must("two-fragments", "a call in two fragments is one call", func(t *T) {
			c := t.dial()
			rec, xid := t.getattrCall(t.s.root)
			t.sendRaw(c, "GETATTR in fragments of 40 bytes", fragments(rec, 40))
			t.expect(c, xid)
		}),
		must("byte-fragments", "fragments may be as small as one byte, and cut words", func(t *T) {
			c := t.dial()
			rec, xid := t.getattrCall(t.s.root)
			t.sendRaw(c, "GETATTR in fragments of 1 byte", fragments(rec, 1))
			t.expect(c, xid)
		}),
		must("empty-fragments", "empty fragments in front of and within a record add nothing to it", func(t *T) {
			c := t.dial()
			rec, xid := t.nullCall()
			empty := []byte{0, 0, 0, 0}
			first := append(binary.BigEndian.AppendUint32(nil, 8), rec[:8]...)
			b := append(append(append(append([]byte{}, empty...), first...), empty...), mark(rec[8:])...)
			t.sendRaw(c, "NULL with empty fragments", b)
			t.expect(c, xid)
		}),
		must("empty-last-fragment", "the last fragment of a record may be empty", func(t *T) {
			c := t.dial()
			rec, xid := t.nullCall()
			b := append(binary.BigEndian.AppendUint32(nil, uint32(len(rec))), rec...)
			t.sendRaw(c, "NULL, then an empty last fragment", append(b, 0x80, 0, 0, 0))
			t.expect(c, xid)
		}),
		must("byte-segments", "a record may come in as many TCP segments as it has bytes", func(t *T) {
			c := t.dial()
			rec, xid := t.nullCall()
			t.note("NULL, a byte at a time")
			for _, x := range mark(rec) {
				if err := c.send([]byte{x}); err != nil {
					t.broken("the server takes what is sent", err.Error())
				}
			}
			t.expect(c, xid)
		}),
		must("two-in-one", "two calls in one segment are both answered", func(t *T) {
			c := t.dial()
			one, x1 := t.nullCall()
			two, x2 := t.getattrCall(t.s.root)
			t.sendRaw(c, "NULL and GETATTR in one write", append(mark(one), mark(two)...))
			t.expectAll(c, []uint32{x1, x2})
		}),
		must("pipeline", "64 calls sent before the first reply is read are all answered, each with its xid", func(t *T) {
			c := t.dial()
			var b []byte
			var xids []uint32
			for range 64 {
				rec, xid := t.getattrCall(t.s.root)
				b, xids = append(b, mark(rec)...), append(xids, xid)
			}
			t.sendRaw(c, "64 GETATTRs at once", b)
			t.expectAll(c, xids)
		}),
		must("fragmented-pipeline", "fragmented calls one after the other do not run into each other", func(t *T) {
			c := t.dial()
			var b []byte
			var xids []uint32
			for i := range 8 {
				rec, xid := t.getattrCall(t.s.root)
				b, xids = append(b, fragments(rec, 5+i)...), append(xids, xid)
			}
			t.sendRaw(c, "8 fragmented GETATTRs at once", b)
			t.expectAll(c, xids)
		}),
		must("large-fragments", "a WRITE of 8 KiB in fragments of 1000 bytes stores what was sent", func(t *T) {
			h := t.file("f")
			data := strings.Repeat("0123456", 1171)[:8192]
			hd := newHeader(nfsProg, nfsVers, procWrite, super)
			hd.xid = t.xid()
			c := t.dial()
			t.sendRaw(c, "WRITE of 8192 bytes in fragments of 1000",
				fragments(append(hd.encode(), writeArgs(h, 0, uint32(len(data)), fileSync, data).b...), 1000))
			p := t.expect(c, hd.xid)
			t.is(statusOf(p), ok)
			t.text("content", t.content(h), data)
		}),
	)
}

// brokenRecordChecks are about several connections, and records that are no calls.
func brokenRecordChecks() []Check {
	return group("record", "RFC 5531, 11",
		must("same-xid-two-connections", "two connections may use the same xid, and each gets its own reply", func(t *T) {
			a, b := t.dial(), t.dial()
			f, d := t.put("f", "four"), t.dir()
			one, two := newHeader(nfsProg, nfsVers, procGetattr, super), newHeader(nfsProg, nfsVers, procGetattr, super)
			one.xid = t.xid()
			two.xid = one.xid
			t.sendRaw(a, "GETATTR of a file", record(one, newArgs().fh("object", f)))
			t.sendRaw(b, "GETATTR of a directory, same xid, other connection", record(two, newArgs().fh("object", d)))
			for _, x := range []struct {
				c    *conn
				want ftype
			}{{b, typeDir}, {a, typeReg}} {
				r := reader{b: t.expect(x.c, one.xid).body}
				r.u32()
				got := r.attr()
				same(t, "type", got.typ, x.want)
			}
		}),
		should("empty-record", "an empty record is no call: nothing answers it", func(t *T) {
			c := t.dial()
			t.sendRaw(c, "a record of 0 bytes", []byte{0x80, 0, 0, 0})
			t.closedOrAlive(c)
		}),
		should("short-record", "a record of two bytes is no call: nothing answers it", func(t *T) {
			c := t.dial()
			t.sendRaw(c, "a record of 2 bytes", []byte{0x80, 0, 0, 2, 1, 2})
			t.closedOrAlive(c)
		}),
		must("huge-fragment", "a fragment that says it has 2^31-1 bytes is not waited for, and hurts nobody else",
			func(t *T) {
				c := t.dial()
				part := append([]byte{0xff, 0xff, 0xff, 0xff}, make([]byte, 64)...)
				t.sendRaw(c, "a record mark of 2^31-1 bytes and 64 of them", part)
				t.serving()
			}),
		should("huge-fragment-closed", "a connection with a fragment of 2^31-1 bytes is closed", func(t *T) {
			c := t.dial()
			t.sendRaw(c, "a record mark of 2^31-1 bytes", []byte{0xff, 0xff, 0xff, 0xff})
			if _, err := c.recv(); err != errClosed {
				t.wrong(errClosed.Error(), fmt.Sprint(err))
			}
		}),
		must("endless",
			"fragments without a last one do not fill the server's memory: it ends the connection, and serves others",
			func(t *T) {
				c := t.dial()
				fragment := append([]byte{0, 0x10, 0, 0}, make([]byte, 1<<20)...)
				t.note("64 fragments of 1 MiB, none of them the last")
				var err error
				for i := 0; i < 64 && err == nil; i++ {
					err = c.send(fragment)
				}
				t.serving()
				t.prefer(err != nil, errClosed.Error(), "it takes all of 64 MiB")
			}),
		must("half-record", "a connection that ends within a record hurts nobody else", func(t *T) {
			c := t.dial()
			rec, _ := t.nullCall()
			t.sendRaw(c, "half of NULL, and the end", mark(rec)[:20])
			c.close()
			t.serving()
		}),
		must("many-connections", "32 connections at a time are all answered", func(t *T) {
			var conns []*conn
			for range 32 {
				conns = append(conns, t.dial())
			}
			var xids []uint32
			for _, c := range conns {
				rec, xid := t.nullCall()
				t.sendRaw(c, "NULL", mark(rec))
				xids = append(xids, xid)
			}
			for i := range conns {
				t.expect(conns[31-i], xids[31-i])
			}
		}),
	)
}
