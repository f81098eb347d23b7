package conform

import "strings"

// FSSTAT, FSINFO, PATHCONF (RFC 1813, sections 3.3.18 to 3.3.20): numbers that
// hang together, and that the other procedures keep to.

func fsstatChecks() []Check {
	return group("fsstat", "RFC 1813, 3.3.18",
		must("bytes", "there is no more free than in all, and no more available than free", func(t *T) {
			s := t.fsstat(t.s.root)
			t.ok(s.st)
			t.that(s.free <= s.total && s.avail <= s.free, "avail <= free <= total", "%d, %d, %d", s.avail, s.free, s.total)
			t.that(s.total > 0, "some bytes", "0")
		}),
		must("files", "there are no more free files than in all, and no more available than free", func(t *T) {
			s := t.fsstat(t.s.root)
			t.that(s.ffree <= s.files && s.favail <= s.ffree, "avail <= free <= total", "%d, %d, %d", s.favail, s.ffree, s.files)
		}),
		must("anywhere", "FSSTAT works on any object of the file system", func(t *T) {
			for _, h := range []fh{t.file("f"), t.sub("d"), t.symlinkTo("l", "x")} {
				s := t.fsstat(h)
				t.ok(s.st)
				same(t, "total bytes", s.total, t.fsstat(t.s.root).total)
			}
		}),
		must("attributes", "the attributes FSSTAT gives are those of GETATTR", func(t *T) {
			h := t.file("f")
			if a := t.fsstat(h).attr; a != nil {
				same(t, "attributes", *a, t.attr(h))
			}
		}),
		should("used", "8 MiB that were written are missing from what is free, give or take half, unless others write too",
			func(t *T) {
				before := t.fsstat(t.s.root)
				if before.free < 64<<20 {
					t.skip("there is too little space")
				}
				h := t.file("f")
				t.fill(h, 0, strings.Repeat("0123456789abcdef", 8<<16))
				t.ok(t.commit(super, h, 0, 0).st)
				after := t.fsstat(t.s.root)
				used := int64(before.free) - int64(after.free)
				t.that(used >= 4<<20 && used <= 16<<20, "4 to 16 MiB less", "%d bytes less", used)
			}),
	)
}

func fsinfoChecks() []Check {
	info := func(t *T) fsinfo {
		i := t.fsinfo(t.s.root)
		t.ok(i.st)
		return i
	}
	return group("fsinfo", "RFC 1813, 3.3.19",
		must("sizes", "rtmax, wtmax, and dtpref are not 0", func(t *T) {
			i := info(t)
			t.that(i.rtmax > 0 && i.wtmax > 0 && i.dtpref > 0, "all above 0", "%d, %d, %d", i.rtmax, i.wtmax, i.dtpref)
		}),
		must("preferred", "rtpref and wtpref are at most rtmax and wtmax", func(t *T) {
			i := info(t)
			t.that(i.rtpref <= i.rtmax && i.rtpref > 0, "1 to rtmax", "rtpref %d, rtmax %d", i.rtpref, i.rtmax)
			t.that(i.wtpref <= i.wtmax && i.wtpref > 0, "1 to wtmax", "wtpref %d, wtmax %d", i.wtpref, i.wtmax)
		}),
		must("multiples", "rtmult and wtmult are not 0 and at most rtmax and wtmax", func(t *T) {
			i := info(t)
			t.that(i.rtmult > 0 && i.rtmult <= i.rtmax, "1 to rtmax", "%d", i.rtmult)
			t.that(i.wtmult > 0 && i.wtmult <= i.wtmax, "1 to wtmax", "%d", i.wtmult)
		}),
		must("file-size", "maxfilesize is at least 2^31-1", func(t *T) {
			n := info(t).maxFileSize
			t.that(n >= 1<<31-1, "2147483647 or more", "%d", n)
		}),
		must("time-delta", "time_delta is more than 0, and in its form", func(t *T) {
			d := info(t).delta
			t.that(d != stamp{} && d.nsec < 1e9, "a time above 0", "%v", d)
		}),
		must("properties", "no property is set that is not defined", func(t *T) {
			same(t, "undefined bits", info(t).properties&^(propLink|propSymlink|propHomogeneous|propCanSetTime), 0)
		}),
		must("link", "LINK works if and only if FSF3_LINK is set", func(t *T) {
			works := t.link(super, t.file("f"), t.dir(), "g").st == ok
			same(t, "FSF3_LINK", info(t).properties&propLink != 0, works)
		}),
		must("symlink", "SYMLINK works if and only if FSF3_SYMLINK is set", func(t *T) {
			works := t.symlink(super, t.dir(), "l", sattr{}, "x").st == ok
			same(t, "FSF3_SYMLINK", info(t).properties&propSymlink != 0, works)
		}),
		must("set-time", "times can be set if and only if FSF3_CANSETTIME is set", func(t *T) {
			h := t.file("f")
			works := t.setattr(super, h, sattr{mtimeHow: 2, mtime: stamp{1000, 0}}, nil).st == ok && t.attr(h).mtime.sec == 1000
			same(t, "FSF3_CANSETTIME", info(t).properties&propCanSetTime != 0, works)
		}),
		should("anywhere", "FSINFO of any object gives what it gives for the root", func(t *T) {
			for _, h := range []fh{t.file("f"), t.sub("d")} {
				i, want := t.fsinfo(h), info(t)
				i.attr, want.attr = nil, nil
				same(t, "the result", i, want)
			}
		}),
		must("attributes", "the attributes FSINFO gives are those of GETATTR", func(t *T) {
			h := t.file("f")
			if a := t.fsinfo(h).attr; a != nil {
				same(t, "attributes", *a, t.attr(h))
			}
		}),
	)
}

func pathconfChecks() []Check {
	conf := func(t *T) pathconf {
		p := t.pathconf(t.dir())
		t.ok(p.st)
		return p
	}
	return group("pathconf", "RFC 1813, 3.3.20",
		must("limits", "linkmax is at least 1, name_max at least 14", func(t *T) {
			p := conf(t)
			t.that(p.linkMax >= 1 && p.nameMax >= 14, "linkmax from 1, name_max from 14", "%d and %d", p.linkMax, p.nameMax)
		}),
		should("homogeneous", "where FSF3_HOMOGENEOUS is set, all objects have the same limits", func(t *T) {
			if t.s.info.properties&propHomogeneous == 0 {
				t.skip("FSF3_HOMOGENEOUS is not set")
			}
			want := conf(t)
			want.attr = nil
			for _, h := range []fh{t.file("f"), t.symlinkTo("l", "x"), t.s.root} {
				p := t.pathconf(h)
				p.attr = nil
				same(t, "the result", p, want)
			}
		}),
		must("case-preserving", "names keep their case where case_preserving is set", func(t *T) {
			if !conf(t).casePreserving {
				t.skip("case_preserving is not set")
			}
			t.file("MiXed")
			t.complete(t.scan(t.dir()), []string{"MiXed"})
		}),
		must("attributes", "the attributes PATHCONF gives are those of GETATTR", func(t *T) {
			h := t.file("f")
			if a := t.pathconf(h).attr; a != nil {
				same(t, "attributes", *a, t.attr(h))
			}
		}),
	)
}
