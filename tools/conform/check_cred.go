package conform

import "strings"

// Credentials and verifiers (RFC 5531, section 8, and appendix A).

// sysBody is the body of AUTH_SYS credentials with any machine name and number of groups.
func sysBody(machine string, groups int) []byte {
	var a args
	a.word(1)
	a.bytes(machine)
	a.word(0)
	a.word(0)
	a.word(uint32(groups))
	for i := range groups {
		a.word(uint32(50000 + i))
	}
	return a.b
}

func credChecks() []Check {
	return group("cred", "RFC 5531, A",
		must("reply-verifier", "the verifier of a reply to AUTH_SYS is AUTH_NONE or AUTH_SHORT", func(t *T) {
			p := getattrWith(t, "AUTH_SYS", func(*header) {})
			carriedOut(t, p)
			t.that(p.verf == authNone || p.verf == authShort, "AUTH_NONE or AUTH_SHORT", "flavor %d", p.verf)
		}),
		must("reply-verifier-empty", "an AUTH_NONE verifier in a reply is empty", func(t *T) {
			p := getattrWith(t, "AUTH_SYS", func(*header) {})
			if p.verf == authNone {
				same(t, "length of the verifier", len(p.verfText), 0)
			}
		}).at("RFC 5531, 10.1"),
		must("sixteen-groups", "credentials with 16 groups are taken", func(t *T) {
			carriedOut(t, getattrWith(t, "16 groups", func(h *header) { h.cred = sysBody("m", 16) }))
		}),
		must("seventeen-groups", "credentials with 17 groups are refused", func(t *T) {
			credRefused(t, getattrWith(t, "17 groups", func(h *header) { h.cred = sysBody("m", 17) }))
		}),
		must("huge-group-count", "credentials that say they have 2^32-1 groups are refused", func(t *T) {
			credRefused(t, getattrWith(t, "2^32-1 groups", func(h *header) {
				b := sysBody("m", 0)
				h.cred = append(b[:len(b)-4], 0xff, 0xff, 0xff, 0xff)
			}))
		}),
		should("large-user", "a user from 2^31 up is a user as any other", func(t *T) {
			t.needUsers()
			c := &cred{uid: 1<<31 + 5, gid: 1<<31 + 6}
			h := t.fileAs(c, t.dir(), "f", 0o600)
			same(t, "uid", t.attr(h).uid, c.uid)
			t.ok(t.write(c, h, 0, "x", fileSync).st)
			t.is(t.read(alice, h, 0, 1).st, errAcces)
		}),
		must("long-machine-name", "a machine name of 255 bytes is taken", func(t *T) {
			carriedOut(t, getattrWith(t, "machine name of 255 bytes", func(h *header) {
				h.cred = sysBody(strings.Repeat("m", 255), 0)
			}))
		}),
		should("too-long-machine-name", "a machine name of 256 bytes is refused", func(t *T) {
			credRefused(t, getattrWith(t, "machine name of 256 bytes", func(h *header) {
				h.cred = sysBody(strings.Repeat("m", 256), 0)
			}))
		}),
		must("truncated", "AUTH_SYS credentials that end too early are refused, wherever they end", func(t *T) {
			whole := sysBody("machine", 2)
			for n := 0; n < len(whole); n += 4 {
				credRefused(t, getattrWith(t, "credentials cut short", func(h *header) { h.cred = whole[:n] }))
			}
		}),
		should("trailing", "AUTH_SYS credentials with something behind the groups are refused", func(t *T) {
			credRefused(t, getattrWith(t, "4 bytes behind the groups", func(h *header) {
				h.cred = append(sysBody("m", 1), 0, 0, 0, 0)
			}))
		}),
	)
}

// credLimitChecks are about flavors and lengths.
func credLimitChecks() []Check {
	return group("cred", "RFC 5531, A",
		must("oversized", "credentials of more than 400 bytes are refused", func(t *T) {
			credRefusedOrClosed(t, "credentials of 404 bytes", func(h *header) { h.cred = make([]byte, 404) })
		}).at("RFC 5531, 8.2"),
		must("oversized-verifier", "a verifier of more than 400 bytes is refused", func(t *T) {
			credRefusedOrClosed(t, "verifier of 404 bytes", func(h *header) { h.verf = make([]byte, 404) })
		}).at("RFC 5531, 8.2"),
		must("unknown-flavor", "credentials of an unknown flavor are refused", func(t *T) {
			p := getattrWith(t, "flavor 390100", func(h *header) { h.flavor, h.cred = 390100, nil })
			t.that(p.denied && p.stat == authError, "denied, AUTH_ERROR", "%s", p)
		}).at("RFC 5531, 8.2"),
		must("unknown-short", "an AUTH_SHORT that the server never gave out is refused", func(t *T) {
			p := getattrWith(t, "AUTH_SHORT", func(h *header) { h.flavor, h.cred = authShort, []byte{1, 2, 3, 4} })
			t.that(p.denied && p.stat == authError, "denied, AUTH_ERROR", "%s", p)
		}),
		must("gss-garbage", "RPCSEC_GSS credentials without a context are refused", func(t *T) {
			h := newHeader(nfsProg, nfsVers, procGetattr, nil)
			h.flavor, h.cred = rpcsecGSS, []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0}
			p, err := t.tryOn(t.dial(), h, newArgs().fh("object", t.s.root).say("(RPCSEC_GSS without a context)"))
			if err == nil && !p.denied && p.stat == success && statusOf(p) == ok {
				t.wrong("denied, AUTH_ERROR", p.String())
			}
			t.prefer(err == nil && p.denied, "denied, AUTH_ERROR", "no such answer")
			t.serving()
		}).at("RFC 2203, 5.3.3.3"),
		should("stamp", "the stamp and the machine's name change nothing", func(t *T) {
			h := t.fileAs(alice, t.dir(), "f", 0o600)
			for _, name := range []string{"", "other", "\xff\xfe"} {
				hd := newHeader(nfsProg, nfsVers, procAccess, alice)
				var a args
				a.word(0xdeadbeef)
				a.bytes(name)
				for _, w := range []uint32{alice.uid, alice.gid, 0} {
					a.word(w)
				}
				hd.cred = a.b
				p := t.rpcOn(t.dial(), hd, newArgs().fh("object", h).u32("access", accessRead))
				carriedOut(t, p)
				t.is(statusOf(p), ok)
			}
		}),
	)
}

// credNoneChecks are about AUTH_NONE, and others.
func credNoneChecks() []Check {
	return group("cred", "RFC 5531, A",
		must("none-null", "NULL needs no credentials", func(t *T) {
			p := t.rpcOn(t.dial(), newHeader(nfsProg, nfsVers, procNull, nil), nil)
			carriedOut(t, p)
		}).at("RFC 1813, 3.3.0"),
		should("none-body", "what stands in AUTH_NONE credentials is ignored or refused, and the call is answered",
			func(t *T) {
				h := newHeader(nfsProg, nfsVers, procNull, nil)
				h.cred = []byte{1, 2, 3, 4, 5}
				p := t.rpcOn(t.dial(), h, newArgs().say("(AUTH_NONE with a body of 5 bytes)"))
				t.that(p.denied && p.stat == authError || !p.denied && p.stat == success, "SUCCESS or AUTH_ERROR", "%s", p)
			}).at("RFC 5531, 10.1"),
		should("sys-verifier",
			"a verifier that is not AUTH_NONE beside AUTH_SYS is ignored or refused, and the call is answered",
			func(t *T) {
				p := getattrWith(t, "verifier of flavor 1", func(h *header) { h.verfFlavor, h.verf = 1, sysBody("m", 0) })
				t.that(p.denied && p.stat == authError || !p.denied && p.stat == success, "SUCCESS or AUTH_ERROR", "%s", p)
			}),
		must("none-is-nobody", "a caller without credentials does not get the rights of the superuser or of an owner",
			func(t *T) {
				h := t.putAs(alice, "f", 0o600, "secret")
				hd := newHeader(nfsProg, nfsVers, procRead, nil)
				p := t.rpcOn(t.dial(), hd, newArgs().fh("file", h).u64("offset", 0).u32("count", 6).say("as AUTH_NONE"))
				if !p.denied && p.stat == success && statusOf(p) == ok {
					t.wrong("ACCES or AUTH_ERROR", "OK")
				}
			}).at("RFC 1813, 4.4"),
		must("none-makes", "what a caller without credentials makes does not belong to the superuser", func(t *T) {
			hd := newHeader(nfsProg, nfsVers, procMkdir, nil)
			p := t.rpcOn(t.dial(), hd, newArgs().dirop(t.dir(), "d").sattr(mode(0o755)))
			if p.denied || p.stat != success || statusOf(p) != ok {
				return
			}
			t.that(t.attr(t.find(t.dir(), "d").obj).uid != 0, "another uid", "0")
		}).at("RFC 1813, 4.4"),
		must("tls-probe", "a NULL that asks for TLS is refused, or answered with the verifier STARTTLS, or with an empty one",
			func(t *T) {
				h := newHeader(nfsProg, nfsVers, procNull, nil)
				h.flavor = authTLS
				p := t.rpcOn(t.dial(), h, newArgs().say("(AUTH_TLS)"))
				t.that(p.denied && p.stat == authError || !p.denied && p.stat == success, "AUTH_ERROR or SUCCESS", "%s", p)
				t.that(p.verfText == "" || p.verfText == "STARTTLS", "no verifier, or STARTTLS", "%q", p.verfText)
			}).at("RFC 9289, 4.1"),
		should("tls-probe-other", "a call other than NULL that asks for TLS is refused", func(t *T) {
			p := getattrWith(t, "AUTH_TLS", func(h *header) { h.flavor, h.cred = authTLS, nil })
			t.that(p.denied && p.stat == authError, "denied, AUTH_ERROR", "%s", p)
		}).at("RFC 9289, 4.1"),
		should("changing-users", "calls of different users on one connection are each judged by their own credentials",
			func(t *T) {
				t.needUsers()
				h := t.putAs(alice, "f", 0o600, "mine")
				for range 3 {
					t.ok(t.read(alice, h, 0, 4).st)
					t.is(t.read(bob, h, 0, 4).st, errAcces)
				}
			}).at("RFC 1813, 4.4"),
	)
}

// getattrWith makes a GETATTR of the root with a header that was changed.
func getattrWith(t *T, text string, change func(*header)) *rpcReply {
	h := newHeader(nfsProg, nfsVers, procGetattr, super)
	change(&h)
	return t.rpcOn(t.dial(), h, newArgs().fh("object", t.s.root).say("(%s)", text))
}

func credRefused(t *T, p *rpcReply) {
	t.that(p.denied && p.stat == authError || !p.denied && p.stat == garbageArgs, "denied, AUTH_ERROR", "%s", p)
	t.prefer(p.denied, "denied, AUTH_ERROR", p.String())
}

// credRefusedOrClosed allows the server to close the connection, too.
func credRefusedOrClosed(t *T, text string, change func(*header)) {
	h := newHeader(nfsProg, nfsVers, procGetattr, super)
	change(&h)
	p, err := t.tryOn(t.dial(), h, newArgs().fh("object", t.s.root).say("(%s)", text))
	if err == nil {
		credRefused(t, p)
		return
	}
	if err != errClosed {
		t.wrong("denied, AUTH_ERROR", err.Error())
	}
	t.prefer(false, "denied, AUTH_ERROR", err.Error())
	t.serving()
}

func carriedOut(t *T, p *rpcReply) {
	t.that(!p.denied && p.stat == success, "SUCCESS", "%s", p)
}
