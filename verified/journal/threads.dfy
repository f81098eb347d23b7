// The thread programs. A Yield does nothing at run time; its specification says what
// the other threads may have done meanwhile (the rely). It is sound because every step of
// theirs is verified to keep to it (the guarantee). A Yield stands wherever others may run and
// a step comes next: after each Lock and Wait, and before each step that runs without the mutex. (None is
// needed before Lock: the one after it stands for all that others did since the last step, txn/rely.dfy.)
// It leaves its mark in the mutex (settled), without which no step verifies.
include "recover.dfy"
include "commit.dfy"
include "looks.dfy"
include "logger.dfy"
include "installer.dfy"
include "reader.dfy"
include "../trusted/hold.s.dfy"

module JournalThreads {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened MapsOfBlocks
  import opened JournalNotes
  import opened BlockHolds
  import opened CodeLists
  import opened WorkS
  import opened LogModel
  import opened JournalM
  import opened JournalPolicy
  import opened JournalCommit
  import opened JournalLooks
  import opened JournalLogger
  import opened JournalInstaller
  import opened JournalReader
  import opened TreeModel
  import opened TreeOfCodes
  import opened TreeSaid
  import opened JournalFacts

  method LYield(j: Journal)        // the logger's: nobody else changes j.logger
    requires j.Inv()
    modifies j, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono() && fresh(j.repr - old(j.repr)) && j.mutex.settled == j.logger
  { j.mutex.Yielded(j.logger); }
  method IYield(j: Journal)        // the installer's: nobody else changes j.installer
    requires j.Inv()
    modifies j, j.logger, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && fresh(j.repr - old(j.repr)) && j.mutex.settled == j.installer
  { j.mutex.Yielded(j.installer); }
  method CYield(j: Journal)        // everybody's
    requires j.Inv()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && j.mutex.settled == j
  { j.mutex.Yielded(j); }

  // what the logger's programs leave alone
  twostate predicate SameGroup(j: Journal) reads j, j.logger {
    j.logger.phase == GroupWriting && old(j.logger.phase) == GroupWriting && j.frozenIndex == old(j.frozenIndex) &&
      j.logger.pending == old(j.logger.pending) && j.logger.pending != [] &&
      j.logger.directList == old(j.logger.directList)
  }
  // Has the clock read for the logger's next write home. If the last look is too old for that, the header is looked at
  // again; and once more if the look itself took too long.
  method LogInTime(j: Journal) returns (ok: bool)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && SameGroup(j) &&
      unchanged(j.logger`blocksWritten, j.logger`directWritten, j.logger`descWritten)
    ensures if ok then j.InTime(j.logger.looked, j.logger.reading) && j.logger.reading != null &&
      fresh(j.logger.reading) else j.disk.bad
    decreases *
  {
    LYield(j);
    var late := LogReading(j);
    ok := true;
    while ok && late
      invariant j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && SameGroup(j) &&
        unchanged(j.logger`blocksWritten, j.logger`directWritten, j.logger`descWritten)
      invariant if ok then j.logger.reading != null && fresh(j.logger.reading) &&
        (late || j.InTime(j.logger.looked, j.logger.reading)) else j.disk.bad
      decreases *
    {
      LYield(j);
      ok := LogLook(j);
      if ok { LYield(j); late := LogReading(j); }
    }
  }
  // Writes the direct blocks of the last pending group home. look: only if the volume is ours still.
  method WriteDirect(j: Journal, look: bool) returns (ok: bool)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && j.logger.directList != null &&
      |j.logger.directList.addrs| == |j.logger.directList.blks| && j.logger.directWritten == 0 && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && SameGroup(j) &&
      j.logger.blocksWritten == old(j.logger.blocksWritten) && j.logger.descWritten == old(j.logger.descWritten)
    ensures ok ==> j.logger.directList != null && j.logger.directWritten == |j.logger.directList.addrs|
    ensures !ok ==> j.disk.bad
    decreases *
  {
    var l := j.logger.directList;
    var n := l.Len();
    var i: uint64 := 0;
    ok := true;
    if look { LYield(j); ok := LogLook(j); }
    while ok && i < n
      invariant i <= n && j.Inv() && j.Mono() && SameGroup(j) && j.logger.directList == l && n as int == |l.addrs| &&
        fresh(j.repr - old(j.repr))
      invariant j.logger.blocksWritten == old(j.logger.blocksWritten) &&
        j.logger.descWritten == old(j.logger.descWritten)
      invariant if ok then i as int == j.logger.directWritten else j.disk.bad
      decreases *
    {
      ok := LogInTime(j);
      if ok {
        LYield(j);
        var m;
        ok, m := DirWrite(j, i);
        if ok { i := i + m; }
      }
    }
  }
  // Writes the n blocks of the last pending group to the ring.
  method WriteRing(j: Journal, n: uint64) returns (ok: bool)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && j.logger.blocksWritten == 0 &&
      j.logger.directWritten == 0 && !j.mutex.held
    requires 15 < n as int == |Last(j).desc.addrs|
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && SameGroup(j) && j.logger.directWritten == 0
    ensures if ok then j.logger.blocksWritten == |Last(j).desc.addrs| else j.disk.bad
    decreases *
  {
    var i: uint64 := 0;
    ok := true;
    while ok && i < n
      invariant i <= n && j.Inv() && j.Mono() && SameGroup(j) && j.logger.directWritten == 0 &&
        n as int == |Last(j).desc.addrs| && fresh(j.repr - old(j.repr))
      invariant if ok then i as int == j.logger.blocksWritten else j.disk.bad
      decreases *
    {
      LYield(j);
      var m;
      ok, m := LogWrite(j, i);
      if ok { i := i + m; }
    }
  }
  // Writes the descriptor of the last pending group and what it has in the log.
  method WriteRecord(j: Journal) returns (ok: bool)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && j.logger.blocksWritten == 0 &&
      j.logger.directWritten == 0 && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && SameGroup(j) && j.logger.directWritten == 0
    ensures if ok then j.logger.descWritten && j.logger.blocksWritten == |Last(j).desc.addrs| else j.disk.bad
    decreases *
  {
    LYield(j);
    var n := LogLen(j);
    if n <= 15 { ok := LogWriteUnit(j); return; }
    ok := WriteRing(j, n);
    if !ok { return; }
    LYield(j);
    assert fresh(j.repr - old(j.repr));
    ok := LogWriteDesc(j);
  }
  // Writes the last pending group.
  method WriteGroup(j: Journal, look: bool) returns (ok: bool)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && j.logger.directList != null &&
      |j.logger.directList.addrs| == |j.logger.directList.blks| && j.logger.blocksWritten == 0 &&
      j.logger.directWritten == 0 && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && j.frozenIndex == old(j.frozenIndex)
    ensures if ok then j.logger.phase == GroupsWritten else j.disk.bad
    decreases *
  {
    ok := WriteRecord(j);
    if !ok { return; }
    ok := WriteDirect(j, look);
    if !ok { return; }
    LYield(j);
    assert fresh(j.repr - old(j.repr));
    LogWrote(j);
  }
  // Seals the frozen group and writes it. The caller is the logger and holds the mutex, at the
  // beginning and at the end.
  method WriteFrozen(j: Journal) returns (ok: bool)
    requires j.Inv() && j.logger.phase == GroupFrozen && j.mutex.Inside()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr)) &&
      j.frozenIndex == old(j.frozenIndex)
    ensures if ok then j.logger.phase == GroupsWritten else j.failed
    decreases *
  {
    var look := LookDue(j);
    j.mutex.Unlock(); LYield(j);
    LogEnc(j);
    assert fresh(j.repr - old(j.repr)) && j.Mono();
    ok := WriteGroup(j, look);
    assert fresh(j.repr - old(j.repr)) && j.Mono();
    j.mutex.Lock(); LYield(j);
    if !ok { Fail(j); }
  }
  // Makes all pending groups durable, likewise.
  method SealAll(j: Journal) returns (ok: bool)
    requires j.Inv() && j.logger.phase == GroupsWritten && j.mutex.Inside()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr))
    ensures if ok then j.durableIndex >= old(j.frozenIndex) else j.failed
    decreases *
  {
    ghost var c := j.frozenIndex;
    NoteBarrier(j);
    j.mutex.Unlock(); LYield(j);
    ok := LogBarrier(j);
    assert fresh(j.repr - old(j.repr)) && j.Mono();
    j.mutex.Lock(); LYield(j);
    assert fresh(j.repr - old(j.repr)) && j.Mono() && j.frozenIndex == c;
    if !ok || j.trims >= 0x3FFF_FFFF_FFFF_0000 { ok := false; Fail(j); return; }
    FinishCommit(j);
  }
  // What the logger does once: the group is written that it has frozen, and the pending groups become durable if that
  // is wanted; it always is if none was frozen. The caller holds the mutex, at the beginning and at the end.
  method LogGroup(j: Journal, frozen: bool)
    requires j.Inv() && j.logger.phase == (if frozen then GroupFrozen else GroupsWritten) && j.mutex.Inside()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr))
    decreases *
  {
    if frozen {
      var ok := WriteFrozen(j);
      if !ok { return; }
      var need := WantDurable(j);
      if !need { Defer(j); return; }
    }
    var ok := SealAll(j);
  }
  // The logger thread: commits what nobody waits for.
  method Logger(j: Journal)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures !j.mutex.held && MayEnd(j)
    decreases *
  {
    j.mutex.Lock(); CYield(j);
    var alive := Alive(j);
    while alive
      invariant j.Inv() && j.mutex.Inside() && fresh(j.repr - old(j.repr)) && (!alive ==> MayEnd(j))
      decreases *
    {
      var go, frozen := StartCommit(j);
      if go { LogGroup(j, frozen); }
      else { j.mutex.Wait(CLogger); CYield(j); }
      alive := Alive(j);
    }
    j.mutex.Unlock();
  }
  // Puts the installed blocks into the cache, in portions, so that nobody waits long for
  // the mutex (it is held at the beginning and at the end).
  method CacheAll(j: Journal, l: BList, n: uint64) returns (ok: bool)
    requires j.Inv() && j.installer.phase == HeaderWriting && j.installer.headerPhase == CopyDurable &&
      j.installer.list == l && n as int == |l.addrs| && j.cachedCount == 0 && j.mutex.Inside()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr)) && ok
    ensures j.installer.phase == HeaderWriting && j.installer.headerPhase == CopyDurable && j.installer.list == l &&
      j.cachedCount as int == |l.addrs| && j.installer.nextRoot == old(j.installer.nextRoot) &&
      j.installer.nextTreeState == old(j.installer.nextTreeState) &&
      j.installer.pagesWritten == old(j.installer.pagesWritten)
    ensures j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs)
    decreases *
  {
    var i: uint64 := 0;
    while i < n
      invariant i <= n && j.Inv() && j.Mono() && j.installer.phase == HeaderWriting &&
        j.installer.headerPhase == CopyDurable && j.installer.list == l && fresh(j.repr - old(j.repr)) &&
        j.mutex.Inside()
      invariant i == j.cachedCount && j.installer.nextRoot == old(j.installer.nextRoot) &&
        j.installer.nextTreeState == old(j.installer.nextTreeState) &&
        j.installer.pagesWritten == old(j.installer.pagesWritten) && j.tree.pages.vs == old(j.tree.pages.vs) &&
        j.tree.pages.rs == old(j.tree.pages.rs)
      decreases *
    {
      CacheInst(j);
      i := i + 1;
      if i % 128 == 0 {
        j.mutex.Unlock();
        j.mutex.Lock(); IYield(j);
      }
    }
    ok := true;
  }
  // what is being installed, and how far that is
  twostate predicate SameInstallation(j: Journal) reads j, j.installer, j.tree.pages {
    unchanged(j.installer`list, j.installer`phase, j.installer`blocksWritten, j.installer`headerPhase,
      j.installer`root, j.installer`treeState, j.installer`nextRoot, j.installer`nextTreeState, j.installer`lost,
      j.installer`pagesWritten) && j.cachedCount == old(j.cachedCount) &&
    j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs)
  }
  // As LogInTime, for the installer's next write.
  method InstInTime(j: Journal) returns (ok: bool)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && SameInstallation(j)
    ensures if ok then j.InTime(j.installer.looked, j.installer.reading) && j.installer.reading != null &&
      fresh(j.installer.reading) else j.disk.bad
    decreases *
  {
    IYield(j);
    var late := InstReading(j);
    ok := true;
    while ok && late
      invariant j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && SameInstallation(j)
      invariant if ok then j.installer.reading != null && fresh(j.installer.reading) &&
        (late || j.InTime(j.installer.looked, j.installer.reading)) else j.disk.bad
      decreases *
    {
      IYield(j);
      ok := InstLook(j);
      if ok { IYield(j); late := InstReading(j); }
    }
  }
  // Writes the pages of the tree that the installation changes. c: the codes that change; r0, r1: the new root's; pg:
  // the new tree
  method WritePages(j: Journal) returns (ok: bool, c: Codes, r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires j.Inv() && j.installer.phase == HomeWriting && j.installer.list != null &&
      |j.installer.list.addrs| == |j.installer.list.blks| && j.installer.pagesWritten == map[] && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && j.installer.phase == HomeWriting
    ensures j.installer.list == old(j.installer.list) && j.installer.blocksWritten == old(j.installer.blocksWritten) &&
      j.cachedCount == old(j.cachedCount)
    ensures if ok then NextVersion(j, c, CV(r0, r1), pg) else j.Cause()
    decreases *
  {
    IYield(j);
    c := ChangedCodes(j);
    ok := true;
    IYield(j);
    r0, r1, pg := TreeRoot(j);
    if j.tree.pageCount == 0 { return; }
    var i: uint64 := 0;
    var n := c.Len();
    ghost var W: set<int> := {};
    ghost var s := c.s;
    NothingWritten(j, c, pg);
    assert Wrote(j, W, pg);
    while ok && i < n
      invariant i <= n && n as int == |c.s| && fresh(c) && c != j.logger.codes && j.Inv() && j.Mono() &&
        j.installer.phase == HomeWriting && fresh(j.repr - old(j.repr))
      invariant j.installer.list == old(j.installer.list) &&
        j.installer.blocksWritten == old(j.installer.blocksWritten) && j.cachedCount == old(j.cachedCount)
      invariant if ok then Halfway(j.tree, c, i as int, W, pg, CV(r0, r1)) && Wrote(j, W, pg) &&
        WithPages(s, c.s, j.tree.homeCount as int) && CodesNext(j, s) else j.Cause()
      decreases *
    {
      ok, i, r0, r1, W, pg := WritePage(j, c, i, r0, r1, W, pg, s);
      n := c.Len();
    }
    if ok { PagesWritten(j, c, s, W, pg, CV(r0, r1)); }
  }
  // the pages W have been written, and they are those of pg
  predicate Wrote(j: Journal, W: set<int>, pg: seq<BV>) reads j.installer`pagesWritten {
    j.installer.pagesWritten.Keys == W && forall p :: p in W ==> 0 <= p < |pg| && pg[p] == j.installer.pagesWritten[p]
  }
  // One page of it: that of the i-th code.
  method WritePage(j: Journal, c: Codes, i: uint64, q0: uint64, q1: uint64, ghost W0: set<int>, ghost pg0: seq<BV>,
    ghost s0: seq<Code>) returns (ok: bool, i1: uint64, r0: uint64, r1: uint64, ghost W: set<int>, ghost pg: seq<BV>)
    requires j.Inv() && j.installer.phase == HomeWriting && !j.mutex.held && c != j.logger.codes && i as int < |c.s| &&
      Halfway(j.tree, c, i as int, W0, pg0, CV(q0, q1)) && Wrote(j, W0, pg0) &&
      WithPages(s0, c.s, j.tree.homeCount as int) && CodesNext(j, s0)
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled, c
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) && j.installer.phase == HomeWriting &&
      c != j.logger.codes && i1 as int <= |c.s|
    ensures j.installer.list == old(j.installer.list) && j.installer.blocksWritten == old(j.installer.blocksWritten) &&
      j.cachedCount == old(j.cachedCount)
    ensures if ok then Halfway(j.tree, c, i1 as int, W, pg, CV(r0, r1)) && Wrote(j, W, pg) &&
      WithPages(s0, c.s, j.tree.homeCount as int) && CodesNext(j, s0) else j.Cause()
    decreases *
  {
    r0, r1, W, pg := q0, q1, W0, pg0;
    IYield(j);
    var p, a, b;
    ok, p, a, b, i1 := NextPage(j, c, i);
    if !ok { return; }
    ok := InstInTime(j);
    if !ok { return; }
    IYield(j);
    ok := PageWrite(j, p, a, b);
    if !ok { return; }
    IYield(j);
    var root, c0, c1 := PageUp(j, c, p, b);
    if root { r0, r1 := c0, c1; }
    Further(j.tree, c, i as int, W0, pg0, CV(q0, q1), i1 as int, p as int, b.v, CV(c0, c1), CV(r0, r1));
    W := W0 + {p as int}; pg := pg0[p as int := b.v];
  }
  lemma NothingWritten(j: Journal, c: Codes, pg: seq<BV>)
    requires j.tree.Ok() && j.tree.pageCount > 0 && |j.tree.pages.vs| == |j.tree.pages.rs| > 0 && pg == j.tree.Now() &&
      IsTree(j.tree.seal.t, pg, j.tree.Root())
    requires ListOk(j.tree.seal.t, c.s) && forall k :: 0 <= k < |c.s| ==> c.s[k].x < j.tree.homeCount as int
    ensures Halfway(j.tree, c, 0, {}, pg, j.tree.Root())
  { reveal Halfway(); Begun(j.tree.seal.t, pg, j.tree.Root(), c.s); }
  lemma PagesWritten(j: Journal, c: Codes, s: seq<Code>, W: set<int>, pg: seq<BV>, r: CV)
    requires j.Inv() && j.tree.pageCount > 0 && j.installer.phase != NoInstall && Halfway(j.tree, c, |c.s|, W, pg, r) &&
      Wrote(j, W, pg) && WithPages(s, c.s, j.tree.homeCount as int) && CodesNext(j, s)
    ensures NextVersion(j, c, r, pg)
  {
    reveal j.Inv(); reveal j.TreeInv(); NextHome(j);
    Restated(j.layout, j.tree, c, s, W, pg, r, j.installer.treeState, j.installer.nextTreeState);
    AllDone(j.tree, c, W, pg, r);
  }
  // Writes the frozen groups home, and the tree's pages with them, durably; l lists them.
  method WriteHome(j: Journal) returns (ok: bool, l: BList, n: uint64, c: Codes, r0: uint64, r1: uint64,
    ghost pg: seq<BV>)
    requires j.Inv() && j.installer.phase == HomeWriting && j.installer.list == null &&
      j.installer.blocksWritten == 0 && j.cachedCount == 0 && j.installer.pagesWritten == map[] && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr))
    ensures if ok then NextVersion(j, c, CV(r0, r1), pg) else j.Cause()
    ensures ok ==> j.installer.phase == HomeDurable && j.installer.list == l && j.cachedCount == 0 &&
      n as int == |l.addrs| == |l.blks|
    decreases *
  {
    c := NewCodes(); r0 := 0; r1 := 0; pg := [];
    n := 0;
    IYield(j);
    l := InstSort(j);
    IYield(j);
    assert fresh(j.repr - old(j.repr));
    ok := InstLook(j);
    n := l.Len();
    var i: uint64 := 0;
    while ok && i < n
      invariant i <= n && j.Inv() && j.Mono() && j.installer.phase == HomeWriting && j.installer.list == l &&
        n as int == |l.addrs| == |l.blks| && fresh(j.repr - old(j.repr))
      invariant (if ok then i as int == j.installer.blocksWritten else j.Cause()) && j.cachedCount == 0 &&
        j.installer.pagesWritten == map[]
      decreases *
    {
      ok := InstInTime(j);
      if ok {
        IYield(j);
        var m;
        ok, m := InstWrite(j, i);
        if ok { i := i + m; }
      }
    }
    if ok { ok, c, r0, r1, pg := WritePages(j); }
    if ok { IYield(j); ok := InstBarrier(j); }
  }
  // The same, and the header after it.
  method WriteInst(j: Journal) returns (ok: bool, l: BList, n: uint64, c: Codes, r0: uint64, r1: uint64,
    ghost pg: seq<BV>)
    requires j.Inv() && j.installer.phase == HomeWriting && j.installer.list == null &&
      j.installer.blocksWritten == 0 && j.cachedCount == 0 && j.installer.pagesWritten == map[] && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr))
    ensures if ok then NextVersion(j, c, CV(r0, r1), pg) && j.installer.nextRoot == CV(r0, r1) else j.Cause()
    ensures ok ==> j.installer.phase == HeaderWriting && j.installer.headerPhase == CopyDurable &&
      j.installer.list == l && j.cachedCount == 0 && n as int == |l.addrs| == |l.blks|
    decreases *
  {
    ok, l, n, c, r0, r1, pg := WriteHome(j);
    if !ok { return; }
    SaidNext(j, c, CV(r0, r1), pg);
    ok := WriteHeader(j, false, r0, r1, pg);
    if !ok { return; }
    assert fresh(j.repr - old(j.repr)) && j.Mono();
    ok := WriteHeader(j, true, r0, r1, pg);
  }
  lemma SaidNext(j: Journal, c: Codes, r: CV, pg: seq<BV>)
    requires j.Inv() && NextVersion(j, c, r, pg)
    ensures Says(j.layout, r, j.installer.nextTreeState)
  { reveal j.Inv(); if j.tree.pageCount > 0 { assert TreeSays(j.layout, pg, r, j.installer.nextTreeState); } }
  // Writes the header, or its copy, durably.
  method WriteHeader(j: Journal, copy: bool, r0: uint64, r1: uint64, ghost pg: seq<BV>) returns (ok: bool)
    requires j.tree.pageCount > 0 ==> NextPages(j.tree, j.installer.pagesWritten, pg, CV(r0, r1)) &&
      IsTree(j.tree.seal.t, pg, CV(r0, r1))
    requires j.Inv() && !j.mutex.held && Says(j.layout, CV(r0, r1), j.installer.nextTreeState) &&
      (copy ==> j.installer.nextRoot == CV(r0, r1)) && if copy then j.installer.headerPhase == HeaderDurable
      else j.installer.phase == HomeDurable
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr)) &&
      j.installer.nextTreeState == old(j.installer.nextTreeState) &&
      j.installer.pagesWritten == old(j.installer.pagesWritten) && j.tree.pages.vs == old(j.tree.pages.vs) &&
      j.tree.pages.rs == old(j.tree.pages.rs)
    ensures !ok ==> j.Cause()
    ensures ok ==> j.installer.phase == HeaderWriting &&
      j.installer.headerPhase == (if copy then CopyDurable else HeaderDurable) &&
      j.installer.list == old(j.installer.list) && j.cachedCount == old(j.cachedCount) &&
      j.installer.nextRoot == CV(r0, r1)
    decreases *
  {
    IYield(j);
    ok := InstLook(j);
    if !ok { return; }
    ok := InstInTime(j);
    if !ok { return; }
    IYield(j);
    assert fresh(j.repr - old(j.repr));
    ok := HdrWrite(j, copy, r0, r1, pg);
    if !ok { return; }
    IYield(j);
    assert fresh(j.repr - old(j.repr));
    ok := HdrBarrier(j);
  }
  // Installs the frozen groups. The caller is the installer and holds the mutex, at the
  // beginning and at the end.
  method Install(j: Journal) returns (ok: bool)
    requires j.Inv() && j.installer.phase == HomeWriting && j.installer.list == null &&
      j.installer.blocksWritten == 0 && j.cachedCount == 0 && j.installer.pagesWritten == map[] && j.mutex.Inside()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr))
    ensures if ok then j.installer.phase == NoInstall else j.failed
    decreases *
  {
    j.mutex.Unlock();
    var l, n, c, r0, r1;
    ghost var pg;
    ok, l, n, c, r0, r1, pg := WriteInst(j);
    j.mutex.Lock(); IYield(j);
    assert fresh(j.repr - old(j.repr)) && j.Mono();
    if !ok { Fail(j); return; }
    ok := CacheAll(j, l, n);
    assert fresh(j.repr - old(j.repr)) && j.Mono();
    if j.trims >= 0x3FFF_FFFF_FFFF_0000 { ok := false; Fail(j); return; }
    FinishInstall(j, c, r0, r1, pg);
  }
  // The installer thread.
  method Installer(j: Journal)
    requires j.Inv() && j.installer.phase == NoInstall && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures !j.mutex.held && MayEnd(j)
    decreases *
  {
    j.mutex.Lock(); IYield(j);
    var alive := Alive(j);
    while alive
      invariant j.Inv() && j.installer.phase == NoInstall && j.mutex.Inside() && fresh(j.repr - old(j.repr)) &&
        (!alive ==> MayEnd(j))
      decreases *
    {
      var go := StartInstall(j);
      if go {
        var ok := Install(j);
        if !ok { break; }
      } else { j.mutex.Wait(CInstaller); IYield(j); }
      alive := Alive(j);
    }
    j.mutex.Unlock();
  }
  // Waits until there may be room for another transaction. The mutex is held, before and after.
  method WaitSpace(j: Journal)
    requires j.Inv() && j.mutex.Inside()
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled,
      j.mutex`woken
    ensures j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr))
    decreases *
  {
    AskSpace(j);
    j.mutex.Wait(CSpace); CYield(j);
  }
  // Waits until commit n is durable; true = it is. It may write the log itself, for all that wait.
  method WaitDurable(j: Journal, n: uint64) returns (ok: bool)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    ensures ok ==> n as int <= j.durableIndex
    ensures !ok ==> j.failed
    decreases *
  {
    j.mutex.Lock(); CYield(j);
    ok := IsDurable(j, n);
    var failed := Failed(j);
    while !ok && !failed
      invariant j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr))
      invariant (ok ==> n as int <= j.durableIndex) && failed == j.failed
      decreases *
    {
      Want(j, n);
      var go, frozen := StartCommit(j);
      if go { LogGroup(j, frozen); }
      else {
        var c := WaitOn(j, n);
        j.mutex.Wait(c); CYield(j);
      }
      ok := IsDurable(j, n);
      failed := Failed(j);
    }
    j.mutex.Unlock();
  }
  // Commits tx. On AOk it is in the history at n, and (if wait) durable. AFailed may also mean
  // that the device failed while the commit was waited for.
  method Commit(j: Journal, tx: BlockMap, wait: bool, ghost p: Permit) returns (st: uint32, n: uint64)
    requires j.Inv() && j.TxOk(tx) && tx !in j.repr && !j.mutex.held && p.may
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr, p
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    ensures st == AOk ==> |old(j.states)| <= n as int < |j.states| && j.states[n] == Over(j.states[n-1], tx.m)
    ensures st == AOk && wait ==> n as int <= j.durableIndex
    ensures st == AOk ==> !p.may
    ensures st == ATooLarge || (st == AFailed && !wait) ==> p.may
    ensures st == AOk || (st == ATooLarge && |tx.addrs| > 500) || (st == AFailed && Closed(j))
    ensures old(j.closed) ==> st == AFailed
    decreases *
  {
    j.mutex.Lock(); CYield(j);
    st, n := Append(j, tx, wait, p);
    while st == AFull
      invariant j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr)) && tx !in j.repr && j.TxOk(tx)
      invariant tx.m == old(tx.m) && tx.addrs == old(tx.addrs) && st <= AFailed &&
        (st == ATooLarge ==> |tx.addrs| > 500) && (st == AFailed ==> Closed(j))
      invariant st == AOk ==> |old(j.states)| <= n as int < |j.states| && j.states[n] == Over(j.states[n-1], tx.m)
      invariant p.may <==> st != AOk
      invariant old(j.closed) ==> st == AFailed
      decreases *
    {
      WaitSpace(j);
      st, n := Append(j, tx, wait, p);
    }
    j.mutex.Unlock();
    if st == AOk && wait {
      var ok := WaitDurable(j, n);
      if !ok { st := AFailed; }
    }
  }
  // Block a as the device has it, if that is what it should be. null = block bad is damaged, or what was read was
  // overtaken. If the device can be trusted it is that (Late), or the block was torn.
  method Fetch(j: Journal, h: Hold, a: uint64, t: uint64) returns (ok: bool, c: Blk?, bad: uint64)
    requires j.Inv() && j.home <= a < j.size && !j.mutex.held && t <= j.trims
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.repr, j.mutex`settled
    ensures j.Inv() && j.Mono() && fresh(j.repr - old(j.repr))
    ensures ok && c != null ==> j.WasRead(a as int, t, c.v) && Lasts(h, c)
    ensures !ok || c == null ==> !j.Sound() || a as int in old(j.torn) || (ok && j.Late(a as int, t))
  {
    c := null; bad := a;
    CYield(j);
    var l;
    ok, l := ReadHome(j, a, 1, t);
    if !ok { return; }
    h.Take(l);
    ghost var lost := j.torn;
    CYield(j);
    var m;
    m, bad := CheckHome(j, a, l, h, 0, t, lost);
    if m > 0 { c := l.BlkAt(0, h); }
  }
  // The latest contents of block a. false = the device cannot read it, or returns something else, or had not the tree
  // that it was to have at the beginning; or the block was torn, and has not been written since.
  method Read(j: Journal, h: Hold, a: uint64) returns (ok: bool, b: Blk?)
    requires j.Inv() && j.home <= a < j.size && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    // linearized at the last step
    ensures ok ==> b != null && a as int in j.Cur() && b.v == j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
    ensures !ok ==> !j.Sound() || a as int in old(j.torn)
    decreases *
  {
    while true
      invariant j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
      decreases *
    {
      var t;
      b, t := LookOnce(j, h, a);
      if b != null { return true, b; }
      var c, bad;
      ok, c, bad := Fetch(j, h, a, t);
      assert fresh(j.repr - old(j.repr)) && j.Mono();
      if !ok { return; }
      ok, b := Decide(j, h, a, t, c, bad);
      assert fresh(j.repr - old(j.repr)) && j.Mono();
      if b != null || !ok { return; }
    }
  }
  // The same, copied to dst; nothing of the journal's is seen after it.
  method ReadTo(j: Journal, a: uint64, dst: Bytes) returns (ok: bool)
    requires j.Inv() && j.home <= a < j.size && !j.mutex.held && |dst.data| == 4096
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr, dst
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    ensures ok ==> a as int in j.Cur() && dst.data == j.Cur()[a as int]
    ensures !ok ==> !j.Sound() || a as int in old(j.torn)
    decreases *
  {
    var h := NewHold();
    var b;
    ok, b := Read(j, h, a);
    if ok { h.CopyTo(dst, b); }
    h.End();
  }
  method LookOnce(j: Journal, h: Hold, a: uint64) returns (b: Blk?, t: uint64)
    requires j.Inv() && j.home <= a < j.size && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr)) && t <= j.trims
    ensures b != null ==> a as int in j.Cur() && b.v == j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
  {
    j.mutex.Lock(); CYield(j);
    b, t := Lookup(j, a);
    if b != null { h.Keep(j.mutex, j.cache, b); }
    j.mutex.Unlock();
  }
  // What a read of block a with ticket t found, c, counts if nothing came in between (null: try again); or block bad is
  // damaged.
  method Decide(j: Journal, h: Hold, a: uint64, t: uint64, c: Blk?, bad: uint64) returns (ok: bool, b: Blk?)
    requires j.Inv() && j.home <= a < j.size && !j.mutex.held &&
      (c != null ==> j.WasRead(a as int, t, c.v) && Lasts(h, c))
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    ensures b != null ==> ok && a as int in j.Cur() && b.v == j.Cur()[a as int] && |b.v| == 4096 && Lasts(h, b)
    ensures !ok ==> c == null && !old(j.Late(a as int, t))
    ensures ok && b == null ==> j.Overtaken(a as int, t)
  {
    j.mutex.Lock(); CYield(j);
    b := null; ok := true;
    if c != null {
      b := Lookup2(j, a, t, c, h);
      if b != null { h.Keep(j.mutex, j.cache, b); }
    } else {
      var damaged := Confirm(j, a, t, bad);
      ok := !damaged;
    }
    j.mutex.Unlock();
  }
  // Makes everything appended so far durable. n: its index.
  method Flush(j: Journal) returns (ok: bool, n: uint64)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    ensures ok ==> |old(j.states)| - 1 <= n as int <= j.durableIndex
    ensures !ok ==> j.failed
    decreases *
  {
    j.mutex.Lock(); CYield(j);
    n := Newest(j);
    j.mutex.Unlock();
    ok := WaitDurable(j, n);
  }
  // Asks the logger for what has been appended so far, without waiting.
  method Tick(j: Journal)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
  {
    j.mutex.Lock(); CYield(j);
    Nudge(j);
    j.mutex.Unlock();
  }
  // Waits until the log is empty (or the device failed).
  method Drain(j: Journal)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr)) && (Empty(j) || j.failed)
    decreases *
  {
    j.mutex.Lock(); CYield(j);
    var e := Drained(j);
    var failed := Failed(j);
    while !e && !failed
      invariant j.Inv() && j.Mono() && j.mutex.Inside() && fresh(j.repr - old(j.repr)) && e == Empty(j) &&
        failed == j.failed
      decreases *
    {
      Nudge(j); Urge(j);
      j.mutex.Wait(CSpace); CYield(j);
      e := Drained(j);
      failed := Failed(j);
    }
    j.mutex.Unlock();
  }
  // Looks whether the volume is still ours; if not, the journal fails for good.
  method Guard(j: Journal) returns (ok: bool)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    ensures !ok ==> j.failed
  {
    CYield(j);
    ok := HeaderIsOurs(j);
    if ok { return; }
    j.mutex.Lock(); CYield(j);
    Fail(j);
    j.mutex.Unlock();
  }
  // Wants what is logged installed, without waiting.
  method Settle(j: Journal)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
  {
    j.mutex.Lock(); CYield(j);
    Urge(j);
    j.mutex.Unlock();
  }
  // Closes the journal: nothing is committed any more, and if ok, all that was committed is durable.
  method Close(j: Journal) returns (ok: bool)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr)) && j.closed
    ensures if ok then |j.states| - 1 <= j.durableIndex else j.failed
    decreases *
  {
    j.mutex.Lock(); CYield(j);
    Shut(j);
    var n := Newest(j);
    j.mutex.Unlock();
    ok := WaitDurable(j, n);
  }
  // Ends the threads of the background.
  method Stop(j: Journal)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr)) && Told(j.notes)
  {
    j.mutex.Lock(); CYield(j);
    SetStop(j);
    j.mutex.Unlock();
  }
}
