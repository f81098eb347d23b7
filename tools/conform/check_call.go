package conform

import (
	"fmt"
	"strings"
)

// The header of a call (RFC 5531, section 9): versions, programs, procedures,
// and transaction numbers.

func callChecks() []Check {
	return group("call", "RFC 5531, 9",
		must("xid", "a reply carries the xid of its call, whatever the number", func(t *T) {
			for _, xid := range []uint32{1, 0x7fffffff, 0x80000000, 0xffffffff} {
				nullAnswered(t, func(h *header) { h.xid = xid })
			}
		}),
		must("xid-repeated", "an xid may be used again once its reply came", func(t *T) {
			c := t.dial()
			for range 3 {
				h := newHeader(nfsProg, nfsVers, procNull, nil)
				h.xid = 77
				if p := t.rpcOn(c, h, nil); p.denied || p.stat != success {
					t.wrong("SUCCESS", p.String())
				}
			}
		}),
		must("rpc-version", "another version of RPC is denied with RPC_MISMATCH", func(t *T) {
			for _, v := range []uint32{0, 1, 3, 0xffffffff} {
				p := nullAnswered(t, func(h *header) { h.rpcvers = v })
				t.that(p.denied && p.stat == rpcMismatch, "denied, RPC_MISMATCH", "%s", p)
			}
		}),
		must("rpc-version-range", "RPC_MISMATCH says that version 2 is the one supported", func(t *T) {
			p := nullAnswered(t, func(h *header) { h.rpcvers = 3 })
			t.that(p.denied && p.low == 2 && p.high == 2, "denied, RPC_MISMATCH (2 to 2)", "%s", p)
		}),
		must("program", "a program that is not there is PROG_UNAVAIL", func(t *T) {
			for _, n := range []uint32{0, 200001, 0xffffffff} {
				p := nullAnswered(t, func(h *header) { h.prog = n })
				t.that(!p.denied && p.stat == progUnavail, "PROG_UNAVAIL", "%s", p)
			}
		}),
		must("nfs-version", "an unknown version of NFS is PROG_MISMATCH", func(t *T) {
			for _, v := range []uint32{0, 1, 99, 0xffffffff} {
				p := nullAnswered(t, func(h *header) { h.vers = v })
				t.that(!p.denied && p.stat == progMismatch, "PROG_MISMATCH", "%s", p)
			}
		}),
		must("nfs-version-range", "PROG_MISMATCH tells a range of versions that holds 3", func(t *T) {
			p := nullAnswered(t, func(h *header) { h.vers = 99 })
			t.that(!p.denied && p.stat == progMismatch && p.low <= 3 && p.high >= 3, "PROG_MISMATCH, a range with 3", "%s", p)
		}),
		must("mount-version", "an unknown version of MOUNT is PROG_MISMATCH with a range that holds 3", func(t *T) {
			p := t.rpcOn(t.dialTo(t.s.cfg.MountAddr), newHeader(mountProg, 99, 0, nil), nil)
			t.that(!p.denied && p.stat == progMismatch && p.low <= 3 && p.high >= 3, "PROG_MISMATCH, a range with 3", "%s", p)
		}),
		must("procedure", "a procedure that NFS version 3 does not have is PROC_UNAVAIL", func(t *T) {
			for _, n := range []uint32{procCount, 0x7fffffff, 0xffffffff} {
				p := nullAnswered(t, func(h *header) { h.proc = n })
				t.that(!p.denied && p.stat == procUnavail, "PROC_UNAVAIL", "%s", p)
			}
		}),
		must("mount-procedure", "a procedure that MOUNT version 3 does not have is PROC_UNAVAIL", func(t *T) {
			p := t.mountCall(6, super, nil)
			t.that(!p.denied && p.stat == procUnavail, "PROC_UNAVAIL", "%s", p)
		}),
		should("version-before-procedure", "of a wrong version and a wrong procedure, the version is told", func(t *T) {
			p := nullAnswered(t, func(h *header) { h.vers, h.proc = 99, 99 })
			t.that(!p.denied && p.stat == progMismatch, "PROG_MISMATCH", "%s", p)
		}),
	)
}

// callMessageChecks are about messages that are no calls.
func callMessageChecks() []Check {
	return group("call", "RFC 5531, 9",
		must("reply-not-call", "a message of type REPLY is not carried out or answered", func(t *T) {
			c := t.dial()
			h := newHeader(nfsProg, nfsVers, procNull, nil)
			h.xid, h.kind = t.xid(), msgReply
			t.sendRaw(c, "NULL with msg_type REPLY", mark(h.encode()))
			t.closedOrAlive(c)
		}),
		must("unknown-message-type", "a message of type 2 is not carried out or answered", func(t *T) {
			c := t.dial()
			h := newHeader(nfsProg, nfsVers, procNull, nil)
			h.xid, h.kind = t.xid(), 2
			t.sendRaw(c, "NULL with msg_type 2", mark(h.encode()))
			t.closedOrAlive(c)
		}),
		must("short-header", "a call that ends within its header is not carried out, and the server goes on", func(t *T) {
			rec := newHeader(nfsProg, nfsVers, procNull, super).encode()
			for n := 4; n < len(rec); n += 4 {
				c := t.dial()
				t.sendRaw(c, fmt.Sprintf("the first %d bytes of NULL", n), mark(rec[:n]))
				c.nc.(interface{ CloseWrite() error }).CloseWrite()
				if b, err := c.recv(); err == nil {
					p, err := parseReply(b)
					if err == nil && !p.denied && p.stat == success {
						t.wrong("an error or the end of the connection", p.String())
					}
				}
			}
			t.serving()
		}),
		should("after-errors", "a connection goes on working after calls that were refused", func(t *T) {
			c := t.dial()
			for _, h := range []header{
				newHeader(1, 1, 1, nil), newHeader(nfsProg, 9, 0, nil),
				newHeader(nfsProg, nfsVers, 99, nil), newHeader(nfsProg, nfsVers, procGetattr, super),
			} {
				t.rpcOn(c, h, nil)
				t.alive(c)
			}
		}),
	)
}

// callOrderChecks are about several calls at once, and calls that come again.
func callOrderChecks() []Check {
	return group("call", "RFC 5531, 9",
		should("interleaved", "a slow call does not hold up the ones behind it for ever: all are answered", func(t *T) {
			h := t.file("f")
			c := t.dial()
			var b []byte
			var xids []uint32
			for i := range 40 {
				hd := newHeader(nfsProg, nfsVers, procWrite, super)
				hd.xid = t.xid()
				data := strings.Repeat(string(rune('a'+i%26)), 100)
				b = append(b, record(hd, writeArgs(h, uint64(i)*100, 100, fileSync, data))...)
				g, x := t.getattrCall(h)
				b = append(b, mark(g)...)
				xids = append(xids, hd.xid, x)
			}
			t.sendRaw(c, "40 WRITEs FILE_SYNC and 40 GETATTRs in turn, at once", b)
			t.expectAll(c, xids)
			got := t.content(h)
			for i := range 40 {
				if got[i*100] != byte('a'+i%26) || got[i*100+99] != byte('a'+i%26) {
					t.wrong("all WRITEs stored", fmt.Sprintf("not number %d", i))
				}
			}
		}),
		should("retransmitted", "a REMOVE sent twice with one xid on one connection is answered twice as the first time",
			func(t *T) {
				t.file("f")
				c := t.dial()
				h := newHeader(nfsProg, nfsVers, procRemove, super)
				h.xid = t.xid()
				a := newArgs().dirop(t.dir(), "f")
				for range 2 {
					p := t.rpcOn(c, h, a)
					t.that(!p.denied && p.stat == success && statusOf(p) == ok, "OK", "%s", statusOf(p))
				}
			}).at("RFC 1813, 4.5"),
		should("retransmitted-create", "a guarded CREATE sent twice with one xid is answered twice with the same file",
			func(t *T) {
				c := t.dial()
				h := newHeader(nfsProg, nfsVers, procCreate, super)
				h.xid = t.xid()
				a := createArgs(t.dir(), "f", guarded, mode(0o644), 0)
				var first string
				for i := range 2 {
					p := t.rpcOn(c, h, a)
					t.that(!p.denied && p.stat == success && statusOf(p) == ok, "OK", "%s", statusOf(p))
					r := &reader{b: p.body} // attributes may be those of now, or left out
					r.u32()
					file := string(r.postFH())
					if i == 0 {
						first = file
					}
					same(t, "the handle", file == first, true)
				}
			}).at("RFC 1813, 4.5"),
		should("same-xid-other-call", "a call that is not the last one is carried out even if it has its xid", func(t *T) {
			t.file("f")
			t.file("g")
			c := t.dial()
			for _, name := range []string{"f", "g"} {
				h := newHeader(nfsProg, nfsVers, procRemove, super)
				h.xid = 4711
				p := t.rpcOn(c, h, newArgs().dirop(t.dir(), name))
				t.that(!p.denied && p.stat == success && statusOf(p) == ok, "OK", "%s", statusOf(p))
			}
			t.gone(t.dir(), "f")
			t.gone(t.dir(), "g")
		}),
	)
}

// nullAnswered makes a NULL whose header was changed, on a connection of its own.
func nullAnswered(t *T, change func(*header)) *rpcReply {
	h := newHeader(nfsProg, nfsVers, procNull, nil)
	change(&h)
	c := t.dial()
	p := t.rpcOn(c, h, newArgs().say("(rpcvers %d, xid %#x)", h.rpcvers, h.xid))
	t.alive(c)
	return p
}
