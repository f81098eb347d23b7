package main

// mutants are the faults, by layer.
var mutants = []mutant{
	// Encoders and decoders.
	{what: "major number for minor", file: "nfs3/types.go", old: "e.Uint32(a.Minor)", new: "e.Uint32(a.Major)"},
	{what: "no fsid", file: "nfs3/types.go", old: "e.Uint64(s.fsid)", new: "e.Uint64(0)"},
	{what: "atime and mtime swapped", file: "nfs3/types.go", old: "putTime(e, a.Atime)\n\tputTime(e, a.Mtime)", new: "putTime(e, a.Mtime)\n\tputTime(e, a.Atime)"},
	{what: "seconds wrap in 2106", file: "nfs3/types.go", old: "min(t.Sec, math.MaxUint32)", new: "t.Sec"},
	{what: "owner cut to 16 bits", file: "nfs3/types.go", old: "s.uid = d.Uint32()", new: "s.uid = d.Uint32() & 0xffff"},
	{what: "size of SETATTR dropped", file: "nfs3/types.go", old: "s.Size = &s.size", new: "s.Size = nil"},
	{what: "unknown time_how taken", file: "nfs3/types.go", old: "\td.Fail()\n\treturn fs.DontChange, t", new: "\treturn fs.DontChange, t"},
	{what: "handles of 65 bytes taken", file: "nfs3/proto.go", old: "const maxHandle = 64", new: "const maxHandle = 65"},
	{what: "guard dropped", file: "nfs3/attrs.go", old: "a.guard = &t", new: "_ = t"},
	{what: "bytes for files in FSSTAT", file: "nfs3/attrs.go", old: "c.Reply.Uint64(r.stat.FreeFiles)\n\t\tc.Reply.Uint64(r.stat.FreeFiles)", new: "c.Reply.Uint64(r.stat.FreeFiles)\n\t\tc.Reply.Uint64(r.stat.FreeBytes)"},
	{what: "minor number for major of MKNOD", file: "nfs3/names.go", old: "a.major, a.minor = d.Uint32(), d.Uint32()", new: "a.minor, a.major = d.Uint32(), d.Uint32()"},
	{what: "GUARDED CREATE refused", file: "nfs3/names.go", old: "case fs.Unchecked, fs.Guarded:", new: "case fs.Unchecked:"},
	{what: "unknown createmode taken", file: "nfs3/names.go", old: "default:\n\t\td.Fail()\n", new: "default:\n"},
	{what: "directories of RENAME swapped", file: "nfs3/names.go", old: "s.putWCC(&c.Reply, r.from)\n\ts.putWCC(&c.Reply, r.to)", new: "s.putWCC(&c.Reply, r.to)\n\ts.putWCC(&c.Reply, r.from)"},
	{what: "dircount and maxcount swapped", file: "nfs3/list.go", old: "a.dirCount, a.count = d.Uint32(), d.Uint32()", new: "a.count, a.dirCount = d.Uint32(), d.Uint32()"},
	{what: "every page the last", file: "nfs3/list.go", old: "e.Bool(l.EOF)", new: "e.Bool(true)"},
	{what: "every WRITE called stable", file: "nfs3/data.go", old: "c.Reply.Uint32(uint32(r.committed))", new: "c.Reply.Uint32(2)"},
	{what: "WRITE of 2 MiB taken", file: "nfs3/data.go", old: "d.Opaque(fs.MaxIO)", new: "d.Opaque(2*fs.MaxIO)"},
	{what: "a bool of 2", file: "oncrpc/xdr.go", old: "if v > 1 {", new: "if v > 2 {"},
	{what: "no padding", file: "oncrpc/xdr.go", old: "padded := (n + 3) &^ 3", new: "padded := n"},
	{what: "reads beyond the end", file: "oncrpc/xdr.go", old: "if len(d.b) < 8 {", new: "if len(d.b) < 4 {"},
	{what: "17 groups", file: "oncrpc/message.go", old: "n > maxGroups ||", new: "n > 32 ||"},
	{what: "credentials without bound", file: "oncrpc/message.go", old: "credOK := peekLen(d) <= maxAuthBody", new: "credOK := true"},
	{what: "credentials with a tail", file: "oncrpc/message.go", old: "int(n)*4 != len(d.Rest())", new: "int(n)*4 > len(d.Rest())"},
	{what: "EXPORT without groups", file: "mount3/mount.go", old: "c.Reply.Bool(false) // groups: everyone\n", new: ""},
	{what: "files mounted", file: "nfs3/walk.go", old: "n.Attr.Type != fs.Directory", new: "false"},
	{what: "user 0 not squashed by MNT", file: "nfs3/walk.go", old: "s.fs.Root(), s.caller(c)", new: "s.fs.Root(), (*fs.Cred)(&c.IDs)"},
	{what: "supplementary group 0 stays", file: "nfs3/caller.go", old: "r.GIDs[i] = anon.GID", new: "_ = i"},
	{what: "squashing changes what calls share", file: "nfs3/caller.go", old: "slices.Clone(c.GIDs)", new: "c.GIDs"},

	// What the server does with calls.
	{what: "arguments received over while in use", file: "oncrpc/conn.go", old: "\tt.chunk.hold()\n", new: "", tests: []string{"./oncrpc"}},
	{what: "the first caller's credentials for all", file: "oncrpc/message.go", old: "if k.cred != nil && k.flavor == flavor && bytes.Equal(k.body, body) {", new: "if k.cred != nil && k.flavor == flavor && bytes.Equal(k.body[:0], body[:0]) {", tests: concurrent},
	{what: "RENAME removes what is in the way first", file: "nfs3/names.go", old: "\tr.from, r.to, err = s.fs.Rename(", new: "\ts.fs.Remove(c.cred, to, a.to.name)\n\tr.from, r.to, err = s.fs.Rename(", tests: concurrent},
	{what: "attributes after are those before", file: "fs/attr.go", old: "w.After = decode(ino, after)", new: "w.After = w.Before", tests: concurrent},

	// Locks.
	{what: "a lock made exclusive beside other readers", file: "internal/extern/dlock/dlock.go", old: "ok = l.shared == 1\n", new: "ok = true\n", tests: []string{"./internal/extern/dlock"}},
	{what: "an exclusive lock given beside shared ones", file: "internal/extern/dlock/dlock.go", old: "!l.excl && (!excl || l.shared == 0)", new: "!l.excl", tests: concurrent},

	// Durability.
	{what: "stable commits are not", file: "txn/dtxn/dtxn.go", old: "Finish(t.t, stable)", new: "Finish(t.t, false)", tests: concurrent},
	{what: "answers do not wait for what they saw", file: "txn/dtxn/dtxn.go", old: "\treturn t.s.await(need)\n}", new: "\tif wrote {\n\t\treturn t.s.await(need)\n\t}\n\treturn nil\n}", tests: concurrent},
	{what: "errors do not wait for what they saw", file: "txn/dtxn/dtxn.go", old: "\tif lost := t.s.await(seen); lost != nil {\n\t\treturn lost\n\t}\n", new: "\t_ = seen\n", tests: concurrent},
	{what: "commits are not noted in locks", file: "internal/extern/dlock/dlock.go", old: "b.last = max(b.last, n)", new: "_ = n", tests: concurrent},
	{what: "COMMIT does not flush", file: "fs/stat.go", old: "if err := v.sys.Flush(); err != nil {", new: "if err := error(nil); err != nil {", tests: concurrent},
	{what: "DATA_SYNC is not", file: "fs/file.go", old: "stable := how != Unstable\n", new: "stable := how == FileSync\n", tests: concurrent},
	{what: "one write verifier for ever", file: "fs/fs.go", old: "return binary.LittleEndian.Uint64(b[:])", new: "return 1 + 0*binary.LittleEndian.Uint64(b[:])", tests: concurrent},

	// Damage to the log, and another owner: faults that the model of the proof excludes.
	{what: "log: damage is taken for the end", file: "internal/gen/recoverm/recoverm.go", old: "found = true", new: "found = false", tests: damages},
	{what: "log: a descriptor without its data tells nothing", file: "internal/extern/dlog/seal.go", old: "func (s *Seal) Vouch(d *DescR) bool {\n", new: "func (s *Seal) Vouch(d *DescR) bool {\n\tif d.N() > 0 {\n\t\treturn false\n\t}\n", tests: damages},
	{what: "log: one epoch for ever", file: "internal/extern/dlog/seal.go", old: "\trand.Read(s.epoch[:])\n", new: "\trand.Read(nil)\n", tests: damages},
	{what: "log: groups of every epoch count", file: "internal/extern/dlog/seal.go", old: "func (s *Seal) Under(d *DescR, h *dbytes.Blk) bool { return s.headerOf(h, d.epoch()) }", new: "func (s *Seal) Under(_ *DescR, h *dbytes.Blk) bool { return s.isHdr(h.Data()) }", tests: damages},
	{what: "log: every header is ours", file: "internal/extern/dlog/seal.go", old: "return s.headerOf(h, s.epoch[:])", new: "return s.isHdr(h.Data())", tests: damages},
	{what: "log: who lost the volume goes on", file: "internal/extern/ddisk/ddisk.go", old: "func (d *Disk) Stop() { d.fail(ErrNotOwner) }", new: "func (d *Disk) Stop() {}", tests: damages},

	// Shares of peers.
	{what: "peers: one host takes all of the memory", file: "oncrpc/memory.go", old: "above(a.host.upTo(k), n, m.all*3/4*m.parts[k]/8)", new: "above(a.host.upTo(k), n, m.all)", tests: shares},
	{what: "peers: waiters are overtaken", file: "oncrpc/memory.go", old: "return a.class <= m.used.floor || a.class <= a.host.floor", new: "return a.class <= m.used.floor", tests: shares},
	{what: "peers: slow ones get large replies", file: "oncrpc/memory.go", old: "\t\tn = w.short\n", new: "", tests: shares},

	// The check of a volume.
	{what: "check: holes are not looked at, though something should be there", file: "check/view.go", old: "next = min(next, need(a))", new: "_ = need(a)", tests: checks},
	{what: "check: logged blocks in holes are passed over", file: "check/view.go", old: "next := min(data, v.nextLogged(a))", new: "next := data", tests: checks},
	{what: "check: unreadable blocks are tried again", file: "check/view.go", old: "v.lost[a] = cause", new: "_ = cause", tests: checks},
	{what: "check: a dead device is read to its end", file: "check/view.go", old: "v.failed > maxFailures", new: "v.failed < 0", tests: checks},
	{what: "check: links that cannot be found are missing", file: "check/links.go", old: "if r.nlink > r.refs && c.dirsLost {", new: "if r.nlink < r.refs && c.dirsLost {", tests: checks},
	{what: "check: files of unreadable directories have no name", file: "check/links.go", old: "if c.dirsLost && r.nlink != 0 {", new: "if c.treesLost && r.nlink != 0 {", tests: checks},
	{what: "check: blocks of unreadable files have no owner", file: "check/inode.go", old: "c.treesLost, c.dirsLost = true, true", new: "c.dirsLost = true", tests: checks},
	{what: "check: inodes without a readable bit are called free", file: "check/inode.go", old: "used != set && !c.bitLost(ino)", new: "used != set", tests: checks},
	{what: "check: the ends of files are not looked at", file: "check/inode.go", old: "return c.tails.flush(c)", new: "return nil", tests: checks},
	{what: "check: paths end at the directory", file: "check/names.go", old: "for err == nil && len(first) > 0 {", new: "for err == nil && len(first) < 0 {", tests: checks},
	{what: "dump: the log is needed for the superblock", file: "check/dump.go", old: "\treturn &Dumper{d, c}, nil", new: "\tif c.v = c.openLog(d, sb); c.logLost {\n\t\treturn nil, errNotVolume\n\t}\n\treturn &Dumper{d, c}, nil", tests: checks},
}
