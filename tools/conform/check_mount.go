package conform

import "strings"

// MOUNT version 3 (RFC 1813, section 5) and NULL.

// mountList decodes the result of DUMP.
func (t *T) mountList() (dirs []string) {
	p := t.mountCall(mountDump, super, nil)
	if p.denied || p.stat != success {
		t.wrong("SUCCESS", p.String())
	}
	r := &reader{b: p.body}
	for r.bool() {
		r.opaque(255)
		dirs = append(dirs, r.opaque(1024))
	}
	t.done(r)
	return dirs
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if strings.TrimRight(x, "/") == strings.TrimRight(s, "/") {
			return true
		}
	}
	return false
}

func mountChecks() []Check {
	return group("mount", "RFC 1813, 5.2.1",
		must("null", "NULL of MOUNT has an empty result", func(t *T) { voidMount(t, mountNull, nil) }).at("RFC 1813, 5.2.0"),
		must("handle", "MNT of the export gives a handle of 1 to 64 bytes", func(t *T) {
			m := t.mnt(super, t.s.cfg.Export)
			t.ok(m.st)
			t.that(len(m.root) > 0, "a handle", "0 bytes")
		}),
		must("directory", "what MNT gives is the handle of a directory that NFS knows", func(t *T) {
			m := t.mnt(super, t.s.cfg.Export)
			t.ok(m.st)
			same(t, "type", t.attr(m.root).typ, typeDir)
		}),
		should("flavors", "MNT names the flavors of authentication, AUTH_SYS among them", func(t *T) {
			m := t.mnt(super, t.s.cfg.Export)
			t.ok(m.st)
			found := false
			for _, f := range m.flavors {
				found = found || f == authSys
			}
			t.that(found, "a list with AUTH_SYS", "%v", m.flavors)
		}),
		should("same-handle", "MNT of the same path gives the same handle", func(t *T) {
			a, b := t.mnt(super, t.s.cfg.Export), t.mnt(alice, t.s.cfg.Export)
			t.ok(a.st)
			t.ok(b.st)
			same(t, "the handle", b.root, a.root)
		}),
		should("trailing-slash", "a slash at the end of the path changes nothing", func(t *T) {
			m := t.mnt(super, strings.TrimRight(t.s.cfg.Export, "/")+"/")
			t.ok(m.st)
			same(t, "fileid", t.attr(m.root).fileid, t.attr(t.s.root).fileid)
		}),
		must("nowhere", "MNT of a path that is not exported is refused", func(t *T) {
			t.refused(t.mnt(super, "/no/such/export").st, errNoEnt, errAcces)
		}),
		should("file", "MNT of a path that leads to a file is refused", func(t *T) {
			t.file("f")
			p := mountBelow(t, "f")
			st := t.mnt(super, p).st
			if st == ok {
				voidMount(t, mountUmnt, dirpath(p))
			}
			t.is(st, errNotDir, errNoEnt, errAcces)
		}),
	)
}

// mountBelowChecks are about directories below the export.
func mountBelowChecks() []Check {
	return group("mount", "RFC 1813, 5.2.1",
		should("subdirectory", "MNT of a directory below the export gives the handle of that directory", func(t *T) {
			mountGives(t, "a", t.sub("a"))
		}),
		should("sub-subdirectory", "a client may mount a directory as deep as it likes", func(t *T) {
			dir, name := t.sub("a"), "a"
			for range 20 {
				dir = t.dirIn(super, dir, "b", 0o755)
				name += "/b"
			}
			mountGives(t, name, dir)
		}),
		should("slashes", "empty names and `.` in the path of a subdirectory change nothing", func(t *T) {
			dir := t.dirIn(super, t.sub("a"), "b", 0o755)
			mountGives(t, "a//b", dir)
			mountGives(t, "./a/./b//.", dir)
		}),
		should("dotdot", "`..` in the path of a subdirectory leads to the directory above", func(t *T) {
			t.dirIn(super, t.sub("a"), "b", 0o755)
			mountGives(t, "a/b/../../c", t.sub("c"))
		}),
		should("dotdot-of-nothing",
			"MNT of a path through a directory that is not there is refused with NOENT, though `..` follows",
			func(t *T) {
				t.sub("a")
				t.is(t.mnt(super, mountBelow(t, "nothing/../a")).st, errNoEnt)
			}),
		must("removed", "MNT of a directory that was removed is refused", func(t *T) {
			t.sub("a")
			t.prepared("RMDIR", t.rmdir(super, t.dir(), "a").st)
			t.refused(t.mnt(super, mountBelow(t, "a")).st, errNoEnt)
		}),
		should("through-file", "MNT of a path through a file is refused with NOTDIR", func(t *T) {
			t.file("f")
			t.is(t.mnt(super, mountBelow(t, "f/a")).st, errNotDir)
		}),
		must("symlink", "MNT of a path through a symbolic link to `/` does not leave the export", func(t *T) {
			t.symlinkTo("s", "/")
			if m := t.mnt(super, mountBelow(t, "s")); m.st == ok {
				t.leads(m.root, t.s.name, t.s.dir)
			}
		}),
		should("no-search", "MNT of a path through a directory that the caller may not search is refused with ACCES",
			func(t *T) {
				t.needUsers()
				t.dirIn(super, t.dirIn(super, t.dir(), "a", 0o700), "b", 0o777)
				t.is(t.mnt(alice, mountBelow(t, "a/b")).st, errAcces)
			}),
		should("dump-subdirectory", "DUMP lists a subdirectory that was mounted under its own path, until UMNT", func(t *T) {
			t.sub("a")
			t.ok(t.mnt(super, mountBelow(t, "a")).st)
			dirs := t.mountList()
			t.that(contains(dirs, mountBelow(t, "a")), "a list with "+mountBelow(t, "a"), "%q", dirs)
			voidMount(t, mountUmnt, dirpath(mountBelow(t, "a")))
			dirs = t.mountList()
			t.that(!contains(dirs, mountBelow(t, "a")), "a list without "+mountBelow(t, "a"), "%q", dirs)
		}).at("RFC 1813, 5.2.2"),
	)
}

// mountPathChecks are about paths that are none.
func mountPathChecks() []Check {
	return group("mount", "RFC 1813, 5.2.1",
		must("escape", "MNT of a path with `..` does not leave the export", func(t *T) {
			m := t.mnt(super, t.s.cfg.Export+"/../../../../../..")
			if m.st == ok {
				t.leads(m.root, t.s.name, t.s.dir)
			}
		}),
		must("longest-path", "MNT of a path of 1024 bytes is well-formed, and gets an answer of MOUNT", func(t *T) {
			t.refused(t.mnt(super, strings.Repeat("/x", 512)).st, errNoEnt, errAcces, errNameTooLong)
		}).at("RFC 1813, 5.1.4"),
		must("too-long-path", "MNT of a path of 1025 bytes is refused", func(t *T) {
			p := t.mountCall(mountMnt, super, dirpath(strings.Repeat("/x", 512)+"y"))
			t.that(p.denied || p.stat != success || statusOf(p) != ok, "GARBAGE_ARGS or NAMETOOLONG", "%s", p)
		}).at("RFC 1813, 5.1.4"),
		must("long-name", "MNT of a path with a name of 600 bytes is refused", func(t *T) {
			t.refused(t.mnt(super, "/"+strings.Repeat("n", 600)).st, errNameTooLong, errNoEnt, errAcces)
		}),
		must("path-length", "MNT of a path that says it has 2^32-1 bytes is GARBAGE_ARGS", func(t *T) {
			p := t.mountCall(mountMnt, super, newArgs().raw("a path of 2^32-1 bytes", 0xff, 0xff, 0xff, 0xff, '/'))
			t.that(!p.denied && p.stat == garbageArgs, "GARBAGE_ARGS", "%s", p)
		}).at("RFC 5531, 9"),
		must("no-args", "MNT without a path is GARBAGE_ARGS", func(t *T) {
			p := t.mountCall(mountMnt, super, nil)
			t.that(!p.denied && p.stat == garbageArgs, "GARBAGE_ARGS", "%s", p)
		}).at("RFC 5531, 9"),
	)
}

// mountListChecks are about the list of mounts.
func mountListChecks() []Check {
	return group("mount", "RFC 1813, 5.2.1",
		must("dump", "DUMP is a well-formed list of hosts and paths", func(t *T) { t.mountList() }).at("RFC 1813, 5.2.2"),
		should("dump-mounted", "DUMP lists what was mounted", func(t *T) {
			t.ok(t.mnt(super, t.s.cfg.Export).st)
			dirs := t.mountList()
			t.that(contains(dirs, t.s.cfg.Export), "a list with "+t.s.cfg.Export, "%q", dirs)
		}).at("RFC 1813, 5.2.2"),
		should("dump-once", "DUMP lists a path that was mounted twice once for each host", func(t *T) {
			t.ok(t.mnt(super, t.s.cfg.Export).st)
			t.ok(t.mnt(super, t.s.cfg.Export).st)
			n := 0
			for _, d := range t.mountList() {
				if contains([]string{d}, t.s.cfg.Export) {
					n++
				}
			}
			t.that(n <= 1, "at most one entry", "%d", n)
		}).at("RFC 1813, 5.2.2"),
		must("umnt", "UMNT has an empty result", func(t *T) {
			t.ok(t.mnt(super, t.s.cfg.Export).st)
			voidMount(t, mountUmnt, dirpath(t.s.cfg.Export))
		}).at("RFC 1813, 5.2.3"),
		should("umnt-forgets", "DUMP no longer lists what was unmounted", func(t *T) {
			t.ok(t.mnt(super, t.s.cfg.Export).st)
			voidMount(t, mountUmnt, dirpath(t.s.cfg.Export))
			dirs := t.mountList()
			t.that(!contains(dirs, t.s.cfg.Export), "a list without "+t.s.cfg.Export, "%q", dirs)
		}).at("RFC 1813, 5.2.3"),
		must("umnt-unknown", "UMNT of what was never mounted has an empty result too", func(t *T) {
			voidMount(t, mountUmnt, dirpath("/never/mounted"))
		}).at("RFC 1813, 5.2.3"),
		must("umnt-keeps-handles", "handles stay good after UMNT: NFS has no state", func(t *T) {
			voidMount(t, mountUmnt, dirpath(t.s.cfg.Export))
			t.attr(t.s.root)
		}).at("RFC 1813, 5.2.3"),
		must("umntall", "UMNTALL has an empty result", func(t *T) { voidMount(t, mountUmntall, nil) }).at("RFC 1813, 5.2.4"),
		should("umntall-forgets", "DUMP lists nothing of this client after UMNTALL", func(t *T) {
			t.ok(t.mnt(super, t.s.cfg.Export).st)
			voidMount(t, mountUmntall, nil)
			dirs := t.mountList()
			t.that(!contains(dirs, t.s.cfg.Export), "a list without "+t.s.cfg.Export, "%q", dirs)
		}).at("RFC 1813, 5.2.4"),
		must("export", "EXPORT is a well-formed list that holds the export", func(t *T) {
			p := t.mountCall(mountExport, super, nil)
			t.that(!p.denied && p.stat == success, "SUCCESS", "%s", p)
			r := &reader{b: p.body}
			var dirs []string
			for r.bool() {
				dirs = append(dirs, r.opaque(1024))
				for r.bool() {
					r.opaque(255)
				}
			}
			t.done(r)
			t.that(contains(dirs, t.s.cfg.Export), "a list with "+t.s.cfg.Export, "%q", dirs)
		}).at("RFC 1813, 5.2.5"),
	)
}

// voidMount wants an empty result.
func voidMount(t *T, proc uint32, a *args) {
	p := t.mountCall(proc, super, a)
	t.that(!p.denied && p.stat == success, "SUCCESS", "%s", p)
	same(t, "bytes of the result", len(p.body), 0)
}

func dirpath(p string) *args { return newArgs().opaque("dirpath", p) }

// mountBelow is the path of what is called name in the directory of the check.
func mountBelow(t *T, name string) string {
	return strings.TrimRight(t.s.cfg.Export, "/") + "/" + t.s.name + "/" + t.dirName() + "/" + name
}

// mountGives wants MNT of that name to give the directory, and takes it back.
func mountGives(t *T, name string, directory fh) {
	m := t.mnt(super, mountBelow(t, name))
	t.ok(m.st)
	same(t, "fileid", t.attr(m.root).fileid, t.attr(directory).fileid)
	voidMount(t, mountUmnt, dirpath(mountBelow(t, name)))
}

func nullChecks() []Check {
	return group("null", "RFC 1813, 3.3.0",
		must("empty", "NULL has an empty result, with credentials or without", func(t *T) {
			for _, c := range []*cred{nil, super, bob} {
				p := t.rpcOn(t.dial(), newHeader(nfsProg, nfsVers, procNull, c), nil)
				t.that(!p.denied && p.stat == success && len(p.body) == 0, "SUCCESS with 0 bytes", "%s", p)
			}
		}),
	)
}
