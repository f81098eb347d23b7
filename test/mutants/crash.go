package main

// exploring is a short exploration of what crashes leave, with a fixed seed.
var exploring = []string{"./offline/crash", "-run", "TestExplore", "-planted", "-timeout", "15m"}

// exploringClients is one of what several clients do at a time.
var exploringClients = []string{"./offline/crash", "-run", "TestClients$", "-planted", "-timeout", "15m"}

// crashes are faults that `tansy crash` must find: what decides whether data survives is not done. Most are in code
// that is proved, so their texts are those of the translation.
var crashes = []mutant{
	skipped("home blocks are written without a barrier behind", journalGen("installer"),
		"func InstBarrier(j *journalm.Journal) bool", "true"),
	skipped("a group has no barrier", journalGen("logger"),
		"func LogBarrier(j *journalm.Journal) bool", "true"),
	skipped("a group has no descriptor", journalGen("logger"),
		"func LogWriteDesc(j *journalm.Journal) bool", "true"),
	skipped("a page of codes is not written", journalGen("installer"),
		"func PageWrite(j *journalm.Journal, p uint64, a uint64, b *dbytes.Blk) bool", "true"),
	replaced("blocks of a group are not written", journalGen("logger"),
		"j.Disk.WriteRun(a, j.Logger.Body, i, n)", "true"),
	replaced("blocks that go straight home are not written", journalGen("logger"),
		"j.Disk.WriteRun(a, j.Logger.DirectList, i, n)", "true"),
	replaced("blocks are not installed", journalGen("installer"),
		"j.Disk.WriteRun(a, j.Installer.List, i, n)", "true"),
	replaced("the log begins one group too late", journalGen("installer"),
		"EncHdr(j.SeqAfterInstall, ", "EncHdr(j.SeqAfterInstall+1, "),
	replaced("what is committed counts as durable", journalGen("commit"),
		"b = n <= j.LastDurable", "b = n <= j.LastCommit"),
	skipped("recovery writes nothing home", recovery,
		"func InstallAll(d *ddisk.Disk, mm *blockmap.Map) bool", "true"),
	skipped("recovery writes no pages of codes", recovery,
		"func PutPage(d *ddisk.Disk, t *treeofcodes.Tree, x uint64, a uint64, b *dbytes.Blk) bool", "true"),
	skipped("recovery forgets the codes of what is in the log", recovery,
		"func LogCodes(t *treeofcodes.Tree, cs *codes.Codes, mm *blockmap.Map)", ""),
	skipped("recovery writes no header", recovery,
		"func WriteHead(d *ddisk.Disk, hb *dbytes.Blk, a uint64) bool", "true"),
	replaced("nobody waits for what is to be durable", "internal/gen/fs/exec/exec/exec.go",
		"return !ReadOnly(procedure) && procedure != FREE() && (", "return false && ("),
	replaced("sync makes nothing durable", "fs/fs.go",
		"if err := v.sys.Flush(); err != nil {", "if err := error(nil); err != nil {"),
	replaced("COMMIT makes nothing durable", "fs/file.go",
		"v.run(&c, procCommit,", "v.run(&c, procGetattr,"),
	replaced("barriers are not passed on", "internal/runtime/ddisk/ddisk.go",
		"if err := d.d.Barrier(); err != nil {", "if err := error(nil); err != nil {"),
	replaced("a freed block stays in use", blockstoreGen,
		"SetUsedBit(txn *dtxn.Txn, bn uint64, u bool) {",
		"SetUsedBit(txn *dtxn.Txn, bn uint64, u bool) {\n\tif !u {\n\t\treturn\n\t}"),
	replaced("a block that is taken stays free", blockstoreGen,
		"SetUsedBit(txn *dtxn.Txn, bn uint64, u bool) {",
		"SetUsedBit(txn *dtxn.Txn, bn uint64, u bool) {\n\tif u {\n\t\treturn\n\t}"),
	skipped("addresses of blocks are not kept", "internal/gen/fs/blocks/blocktree/blocktree.go",
		"func (_this *BlockTreeFs) CloseParent(txn *dtxn.Txn, pn uint64, t *dbytes.Bytes)", ""),
	skipped("a removed file keeps its inode", "internal/gen/fs/directories/directories/directories.go",
		"func (_this *DirFs) FreeInode(txn *dtxn.Txn, ino uint64) bool", "true"),
	skipped("RENAME counts no links", "internal/gen/fs/procedures/renameops/renameops.go",
		"func Recount(txn *dtxn.Txn, d *directories.DirFs, fino uint64, tino uint64, src uint64, dir bool, sub bool) uint32",
		"0"),
	skipped("blocks go straight home over what is in use", journalGen("commit"),
		"func Straight(j *journalm.Journal, a uint64, l *ddisk.BList) bool", "true"),
	skipped("codes of blocks that went straight home are not kept", journalGen("installer"),
		"func HeldCodes(j *journalm.Journal, c *codes.Codes)", ""),
	skipped("the header has no barrier", journalGen("installer"),
		"func HdrBarrier(j *journalm.Journal) bool", "true"),
	skipped("a list of addresses is not written", journalGen("logger"),
		"func LogWriteUnit(j *journalm.Journal) bool", "true"),
	replaced("a group counts with some of its blocks", "internal/runtime/seal/seal.go",
		"if string(tag[:]) != string(d.b.Data()[dataTag:dataTag+tagSize]) {", "if tag == [tagSize]byte{} {"),
	replaced("the last of some blocks is not written", "internal/runtime/ddisk/ddisk.go",
		"\tif err := d.d.WriteAt(a, bufs); err != nil {",
		"\tif err := d.d.WriteAt(a, bufs[:max(1, len(bufs)-1)]); err != nil {"),
	replaced("recovery ends a group too early", "internal/gen/journal/logscan/logscan.go",
		"\t\t\tgroups.MergeInto(mm, gm)\n\t\t\ti = i + uint64(1)\n",
		"\t\t\tdone = i > 0\n\t\t\tgroups.MergeInto(mm, gm)\n\t\t\ti = i + uint64(1)\n"),
	skipped("contents are not compared with their codes", "internal/gen/journal/treeofcodes/treeofcodes.go",
		"func Matches(t *Tree, x uint64, b *dbytes.Blk, c0 uint64, c1 uint64) bool", "true"),
	replaced("a group takes a unit of the log that is in use", journalGen("commit"),
		"j.NextSeq-j.FirstSeq+n < j.Units &&", "j.NextSeq-j.FirstSeq+n < j.Units+2 &&"),
	replaced("access list and default list are set one after the other", lists,
		"\treturn v.run(&c, exec.LOCAL(), func(t *txn) {\n"+
			"\t\tlocalcalls.SetLists(&c.Call, t, v.dirs, vc, h.Ino, h.Gen, n, sets, rights, d)\n\t})\n",
		"\t_, _ = vc, &c\n"+
			"\tif err := v.setList(who, h, false, n, sets, rights); err != nil {\n\t\treturn err\n\t}\n"+
			"\treturn v.setList(who, h, true, d, false, 0)\n"),
	replaced("a file has the number of an access list before the table has the list", lists,
		"\treturn v.newList(l)\n",
		"\tif err := v.setList(who, h, dflt, s.free(), false, 0); err != nil {\n\t\treturn 0, err\n\t}\n"+
			"\treturn v.newList(l)\n"),
	replaced("a mode has the rights of an access list before the file has the list", lists,
		"\treturn v.setList(who, h, false, n, sets, rights)\n",
		"\tif sets {\n\t\tif _, err := v.Setattr(who, h, &SetAttr{Mode: &rights}, nil); err != nil {\n"+
			"\t\t\treturn err\n\t\t}\n\t}\n\treturn v.setList(who, h, false, n, sets, rights)\n"),
	replaced("access lists are not written to their table", lists,
		"{ localcalls.NewList(&c.Call, t, v.dirs, at, vn, vv) }", "{ _, _, _ = at, vn, vv }"),
	beside("a lock is given for a change beside those who read", "internal/runtime/locks/locks.go",
		"!l.excl && (!excl || l.shared == 0)", "!l.excl"),
	beside("a lock is made one for a change beside those who read", "internal/runtime/locks/locks.go",
		"ok = l.shared == 1\n", "ok = true\n"),
	beside("who sees a change does not wait until it is durable", "internal/runtime/locks/locks.go",
		"b.last = max(b.last, n)", "_ = n"),
	beside("a RENAME does not wait until it is durable once there was an UNSTABLE WRITE", "fs/fs.go",
		"\troom, freed := v.search(), uint64(0)\n",
		"\tif c.Procedure == procWrite && Stability(c.Stability) == Unstable {\n\t\tv.chores.Or(1 << 63)\n\t}\n"+
			"\tc.Deferred = c.Deferred || c.Procedure == procRename && v.chores.Load()>>63 == 1\n"+
			"\troom, freed := v.search(), uint64(0)\n"),
	beside("flags are taken away, and others given, one after the other", flags,
		"\tvc := v.cred(new(vcred), who)\n",
		"\tif flags != 0 {\n\t\tif err := v.SetFlags(who, h, 0); err != nil {\n\t\t\treturn err\n\t\t}\n\t}\n"+
			"\tvc := v.cred(new(vcred), who)\n"),
	beside("who sets flags does not wait until they are durable", flags,
		"\treturn v.run(&c, exec.LOCAL(), func(t *txn) {\n\t\tlocalcalls.SetFlags(",
		"\treturn v.Deferring().run(&c, exec.LOCAL(), func(t *txn) {\n\t\tlocalcalls.SetFlags("),
}

const (
	lists         = "fs/lists.go"
	flags         = "fs/flags.go"
	recovery      = "internal/gen/journal/recoverm/recoverm.go"
	blockstoreGen = "internal/gen/fs/blocks/blockstore/blockstore.go"
)

// journalGen is the translation of a module of the journal.
func journalGen(name string) string {
	return "internal/gen/journal/journal" + name + "/journal" + name + ".go"
}

// skipped is a function that only returns result.
func skipped(what, file, signature, result string) mutant {
	return replaced(what, file, signature+" {", signature+" {\n\tif true {\n\t\treturn "+result+"\n\t}")
}

// beside is found only when several clients are at work.
func beside(what, file, old, new string) mutant {
	m := replaced(what, file, old, new)
	m.tests = exploringClients
	return m
}

func replaced(what, file, old, new string) mutant {
	return mutant{what: "crash: " + what, file: file, old: old, new: new, tests: exploring}
}
