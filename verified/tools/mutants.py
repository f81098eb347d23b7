#!/usr/bin/env python3
"""Break the verified journal and transactions on purpose, one change at a time, and see that it no
longer verifies: a dropped barrier, a wrong order, a missing check. A proof that
survives its mutants proves too little.
usage: mutants.py [-j N] [WORD...]     only mutants whose name contains a WORD
env: Z3 (path), DAFNY (command)
Each mutant verifies only the methods that the change can concern."""
import concurrent.futures as cf, getopt, os, re, shutil, signal, subprocess, sys, tempfile

opts, words = getopt.getopt(sys.argv[1:], "j:")
jobs = int(dict(opts).get("-j", "2"))
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(here)

# file, name, text, replacement, methods that must reject it
MUTANTS = [
    ("journal", "log: no barrier", "ok := d.Barrier(set a | at as int < a < home as int);", "ok := true;", "*Journal.LogBarrier"),
    ("journal", "install: no barrier", "ok := d.Barrier(set a | home as int <= a < |d.cur|);", "ok := true;", "*Journal.InstBarrier"),
    ("journal", "header: no barrier", "ok := d.Barrier({at as int});", "ok := true;", "*Journal.HdrBarrier"),
    ("journal", "log: a failed barrier counts", "        lph := 3;\n      }\n", "      }\n      lph := 3;\n", "*Journal.LogBarrier"),
    ("journal", "header: a failed barrier counts", "if ok { hdur := true; }", "hdur := true;", "*Journal.HdrBarrier"),
    ("journal", "log: a failed write counts", "if ok { lwn := lwn + n as int; }", "lwn := lwn + n as int; ok := true;", "*Journal.LogWrite"),
    ("journal", "log: no check of the ring's space", " || wp + k > lo + nr", "", "*Journal.StartCommit"),
    ("journal", "log: no check of the descriptor slots", " || eq - hq >= nd", "", "*Journal.StartCommit"),
    ("journal", "log: run over the end of the ring", "if n > nr - s { n := nr - s; }", "", "*Journal.LogWrite"),
    ("journal", "install: runs of blocks that are not adjacent", "if b != a + n { break; }", "", "*Adjacent"),
    ("journal", "install: header before the home barrier", "requires Inv() && g.ip == 2\n", "requires Inv() && g.ip == 1\n", "*Journal.HdrWrite"),
    ("journal", "trim too far", "hq := ieq; lo := ilo;", "hq := eq; lo := wp;", "*Journal.FinishInstall"),
    ("journal", "trim positions too far", "hq := ieq; lo := ilo;", "hq := ieq; lo := wp;", "*Journal.FinishInstall"),
    ("journal", "cache: stale after an install", "requires Inv() && mu.held && g.ip == 3 && hdur && ilist != null && icn == |ilist.addrs|", "requires Inv() && mu.held && g.ip == 3 && hdur && ilist != null", "*Journal.FinishInstall"),
    ("journal", "cache: a read is cached unvalidated", "if b == null && t == t2 { b := c; cache.Put(a, c); }", "if b == null { cache.Put(a, c); }", "*Journal.Lookup2"),
    ("journal", "read: no validation", "b == null && t == t2", "b == null", "*Journal.Lookup2"),
    ("journal", "look-up: old before new", "b := running.Get(a);\n      if b == null { b := cgm.Get(a); }", "b := cgm.Get(a);\n      if b == null { b := running.Get(a); }", "*Journal.Lookup"),
    ("journal", "look-up: cache before the log", "b := running.Get(a);", "b := cache.Get(a);\n      if b == null { b := running.Get(a); }", "*Journal.Lookup"),
    ("journal", "acknowledged: commits after the group", "lb := cl; nlb := ncl;", "lb := cl; nlb := nvs;", "*Journal.FinishFields"),
    ("recover", "recovery: seal not checked", "    if !ok { return; }\n    gm :=", "    gm :=", "*ReadAt"),
    ("recover", "recovery: addresses not checked", "    if !inside { return; }\n", "", "*ReadAt"),
    ("recover", "recovery: a torn group's number is used again", "io := WriteHdr(d, seal, at, h + i + 1,", "io := WriteHdr(d, seal, at, h + i,", "*Replay"),
    ("recover", "recovery: no barrier before the header", "    io := d.Barrier(set a | 0 <= a < |d.cur|);\n    if !io { return; }\n    forall a | Home(p)", "    forall a | Home(p)", "*InstallAll"),
    ("recover", "recovery: no barrier after the header", "    if !io { return; }\n    io := d.Barrier(set a | 0 <= a < |d.cur|);\n    if !io { return; }\n    assert HomeOf(p, d.cur) == HomeOf(p, c2);", "    if !io { return; }\n    assert HomeOf(p, d.cur) == HomeOf(p, c2);", "*WriteHdr"),
    ("recover", "recovery: no barrier before the scan", "    io := d.Barrier(set a | 0 <= a < |d.cur|);\n    if !io { return; }\n    assert CrashImg", "    io := true;\n    assert CrashImg", "*.Recover"),
    ("recover", "mkfs: no barrier", "    io := d.Barrier({at as int});\n", "", "*Format"),
    ("threads", "acknowledged without waiting", "      ok := j.IsDurable(n);\n      failed", "      ok := true;\n      failed", "*WaitDurable"),
    ("threads", "descriptor not written", "    if ok { LYield(j); ok := j.LogWriteDesc(); }\n", "", "*LogGroup"),
    ("threads", "home barrier left out", "    if ok { IYield(j); ok := j.InstBarrier(); }\n", "", "*WriteHome"),
    ("threads", "append without the mutex", "    j.mu.Lock(); CYield(j);\n    st, n := j.Append(tx);", "    CYield(j);\n    st, n := j.Append(tx);", "*.Commit"),
    ("threads", "mutex kept", "    j.mu.Unlock();\n    if st == AOk && wait {", "    if st == AOk && wait {", "*.Commit"),
    # the contracts must not contradict themselves: false must not follow
    ("journal", "vacuity: append", "      return AOk, nvs;", "      assert false; return AOk, nvs;", "*Journal.Append"),
    ("journal", "vacuity: log write", "      LogWroteI(i as int, n as int, ok);\n", "      LogWroteI(i as int, n as int, ok); assert ok ==> false;\n", "*Journal.LogWrite"),
    ("recover", "vacuity: recovery", "    j := new Journal", "    assert false; j := new Journal", "*Replay"),
    ("threads", "vacuity: logger", "if ok { j.FinishCommit(); }", "if ok { j.FinishCommit(); assert false; }", "*LogGroup"),
    ("threads", "vacuity: installer", "    j.FinishInstall();\n", "    j.FinishInstall(); assert false;\n", "*.Install"),
    # the transactions
    ("txn/txn", "locks: always wait", "var wait := k > top;", "var wait := true;", "*Txn.Grab"),
    ("txn/txn", "locks: top not raised", "if wait { top := k; }", "", "*Txn.Grab"),
    ("txn/txn", "locks: what was seen is forgotten", "if n > seen { seen := n; }", "", "*Txn.Grab"),
    ("txn/txn", "write: shared lock", "var ok := Lock(k, true);\n      if !ok { return CONFLICT; }\n      buf.PutBit", "var ok := Lock(k, false);\n      if !ok { return CONFLICT; }\n      buf.PutBit", "*Txn.WriteBit"),
    ("txn/txn", "write: without the lock", "if !ok { return CONFLICT; }\n      buf.PutBytes", "buf.PutBytes", "*Txn.WriteInode"),
    ("txn/txn", "read: without the lock", "if !ok { return CONFLICT, null; }\n      b := buf.GetBlk", "b := buf.GetBlk", "*Txn.ReadBlock"),
    ("txn/txn", "read: own write not seen", "if found { return OK, b; }", "", "*Txn.ReadBit"),
    ("txn/system", "read: device without validation", "b := s.j.Lookup2(a, t, c);", "b := c;", "*Fetch"),
    ("txn/commit", "splice: into zeros", "var w := c.Thaw();", "var w := NewBytes(4096);", "*Build"),
    ("txn/commit", "splice: a wrong place", "t.buf.CopyAt(i, w, off / 8);", "t.buf.CopyAt(i, w, 0);", "*Splice1"),
    ("txn/commit", "splice: only one object of a block", "go := KeyBlk(k2) == a;", "go := false;", "*Splice1"),
    ("txn/commit", "splice: objects of the next block too", "go := KeyBlk(k2) == a;", "go := true;", "*Splice1"),
    ("txn/commit", "commit: not sorted", "    t.buf.Sort();\n", "", "*Finish"),
    ("txn/commit", "commit: without the mutex", "j.mu.Lock(); TYield(t.s, t.own);\n    var ok;", "TYield(t.s, t.own);\n    var ok;", "*TryAppend"),
    ("txn/commit", "commit: mutex let go between splice and append", "ghost var v := j.vs;", "j.mu.Unlock(); TYield(t.s, t.own); j.mu.Lock(); TYield(t.s, t.own); ghost var v := j.vs;", "*TryAppend"),
    ("txn/commit", "commit: locks released before the append", "st, n := AppendAll(t, held);", "t.s.tbl.Release(t.own, 0); st, n := AppendAll(t, held);", "*Finish"),
    ("txn/commit", "end: locks kept", "    t.s.tbl.Release(t.own, n);\n", "", "*Drop"),
    ("txn/commit", "end: buffer kept", "    t.buf.Clear();\n", "", "*Drop"),
    ("txn/commit", "reply: own commit not waited for", "    if n > need { need := n; }\n", "", "*Finish"),
    ("txn/commit", "reply: what was seen not waited for", "need := t.seen;\n    at := 0;", "need := 0;\n    at := 0;", "*Finish"),
    ("txn/commit", "reply: not waited at all", "var ok := WaitDurable(t.s.j, need);", "var ok := true;", "*Commit"),
    ("txn/objects", "bit: a wrong one", "c := b + Pow2(i);", "c := b + 1;", "*PutBit"),
    ("txn/commit", "vacuity: append", "      st, n := j.Append(t.tx);", "      st, n := j.Append(t.tx); assert false;", "*TryAppend"),
    ("txn/commit", "vacuity: end", "    t.top := 0; t.seen := 0;", "    assert false; t.top := 0; t.seen := 0;", "*Drop"),
    ("txn/txn", "vacuity: lock", "if n > seen { seen := n; }", "assert false; if n > seen { seen := n; }", "*Txn.Grab"),
]

def run(m):
    f, name, a, b, proc = m
    tmp = tempfile.mkdtemp()
    try:
        for d in ("lib", "trusted", "journal", "txn"):
            shutil.copytree(os.path.join(root, d), os.path.join(tmp, d))
        path = os.path.join(tmp, f if "/" in f else "journal/" + f) + ".dfy"
        text = open(path).read()
        if a not in text:
            return name, "NOT APPLICABLE"
        open(path, "w").write(text.replace(a, b, 1))
        p = subprocess.Popen([os.environ.get("DAFNY", "dafny"), "/nologo", "/compile:0", "/z3exe:" + os.environ.get("Z3", "z3"),
                              "/noNLarith", "/timeLimit:60", "/vcsCores:1", "/definiteAssignment:3", "/proc:" + proc, path],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, start_new_session=True)
        try:
            out = p.communicate(timeout=200)[0]
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            return name, "rejected (no proof in 200 s)"
        r = re.search(r"finished with (\d+) verified, (\d+) errors?(.*)", out)
        if not r:
            return name, "NOT APPLICABLE: " + out.strip().splitlines()[-1]
        if r.group(2) != "0" or "time out" in r.group(3):
            return name, "rejected"
        return name, "SURVIVED" if r.group(1) != "0" else "NOT APPLICABLE: no method " + proc
    finally:
        shutil.rmtree(tmp)

bad = 0
todo = [m for m in MUTANTS if not words or any(w in m[1] for w in words)]
with cf.ThreadPoolExecutor(jobs) as ex:
    for name, verdict in ex.map(run, todo):
        print("%-50s %s" % (name, verdict), flush=True)
        bad += not verdict.startswith("rejected")
print("%d mutants, %d not rejected" % (len(todo), bad))
sys.exit(bad != 0)
