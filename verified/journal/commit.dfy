// The steps of a commit under the mutex: a transaction is merged into the running group; the
// group is frozen, in two parts, for the log and straight home (whoever does that becomes the
// logger); when logger.dfy has written it, it is pending, and left so for the time being or made durable together with
// all that are: then they are logged.
include "facts.dfy"
include "policy.dfy"
include "../trusted/work.s.dfy"

module JournalCommit {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened CodeLists
  import opened WorkS
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened Bits
  import opened Mutexes
  import opened JournalM
  import opened JournalFacts
  import opened JournalPolicy
  import opened TreeOfCodes

  // results of Append
  const AOk: uint32 := 0
  const AFull: uint32 := 1         // wait for room and try again
  const ATooLarge: uint32 := 2     // larger than a group can be: never
  const AFailed: uint32 := 3       // the device failed, or the journal is closed: read-only for good

  // nothing can be committed any more: the journal has failed, or is closed, or so many commits were made as there are
  // numbers for
  predicate Closed(j: Journal) reads j { j.failed || j.closed || |j.states| > 0x3FFF_FFFF_FFFF_0000 }
  // The running group has no room for tx: it would have more blocks than a group can. Or else nobody waits for tx, and
  // there is something in the group, which will be written.
  predicate Crowded(j: Journal, tx: BlockMap, waits: bool) reads j, j.running, tx
  {
    |j.running.addrs| + |tx.addrs| > GroupMax as int || (!waits && |j.running.addrs| > 0 &&
      |j.running.addrs| + |tx.addrs| > Part as int)
  }
  // [L] merge a transaction into the running group; n is its index in the history. waits: somebody waits until it is
  // durable. Only who may commit can take this step, and has then done so.
  method Append(j: Journal, tx: BlockMap, waits: bool, ghost p: Permit) returns (st: uint32, n: uint64)
    requires j.Inv() && j.mutex.Inside() && j.TxOk(tx) && tx !in j.repr && p.may
    modifies j`states, j`lastCommit, j.running, j.disk`ok, j.mutex`woken, p
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures st != AOk ==> j.states == old(j.states)
    // the logger is woken when there is enough for a group
    ensures old(|j.running.addrs|) < GroupMin as int <= |j.running.addrs| && !j.busy ==>
      One(CLogger) in j.mutex.woken
    ensures p.may <==> st != AOk
    ensures st == AOk ==> j.states == old(j.states) + [Over(old(j.Cur()), tx.m)] && n as int == |j.states| - 1
    ensures st <= AFailed && (st == AFull ==> Crowded(j, tx, waits)) && (st == ATooLarge ==> |tx.addrs| > 500) &&
      (st == AFailed ==> Closed(j))
    ensures j.closed ==> st == AFailed
  {
    Counters(j);
    var k := j.running.Len();
    var l := tx.Len();
    assert |j.states| == j.lastCommit as int + 1 by { reveal j.Inv(); }
    if j.failed || j.closed || j.lastCommit >= 0x3FFF_FFFF_FFFF_0000 { return AFailed, 0; }
    if l > 500 { return ATooLarge, 0; }
    var most := Share(j);
    if k + l > GroupMax || (!waits && k > 0 && k + l > most) { return AFull, 0; }
    AppendTx(j, tx, p);
    if waits && l < Part { Haste(j); }
    if k < GroupMin && k + l >= GroupMin && !j.busy { j.mutex.WakeOne(CLogger); }
    return AOk, j.lastCommit;
  }
  method AppendTx(j: Journal, tx: BlockMap, ghost p: Permit)
    requires j.Inv() && j.TxOk(tx) && tx !in j.repr && |j.running.addrs| + |tx.addrs| <= 500 &&
      j.lastCommit < 0x3FFF_FFFF_FFFF_0000 && p.may && !j.closed
    modifies j`states, j`lastCommit, j.running, j.disk`ok, p
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures j.states == old(j.states) + [Over(old(j.Cur()), tx.m)] && j.lastCommit as int == |j.states| - 1 && !p.may
    ensures |j.running.addrs| <= old(|j.running.addrs|) + |tx.addrs|
  {
    p.Spend();
    reveal j.Inv();
    MergeInto(j.running, tx);
    OverOv(j.states[j.frozenIndex], old(j.running.m), tx.m);
    j.states := j.states + [Over(old(j.Cur()), tx.m)];
    j.lastCommit := j.lastCommit + 1;
    LogFacts(j);
    AmongMore(j.protocol(), old(j.states), j.durableIndex, j.frozenIndex, j.states, j.frozenIndex);
    CrashAll(j.disk.poss, j.protocol(), j.states, j.durableIndex, j.frozenIndex);
    j.disk.SetOk(OkSet(j.layout, j.states, j.durableIndex, j.seal.signed));
    RdFrame(j);
  }
  // [L] is commit n durable?
  method IsDurable(j: Journal, n: uint64) returns (b: bool)
    requires j.Inv() && j.mutex.Inside()
    ensures b <==> n as int <= j.durableIndex
  { reveal j.Inv(); b := n <= j.lastDurable; }
  // [L] index of the last commit
  method Newest(j: Journal) returns (n: uint64)
    requires j.Inv() && j.mutex.Inside()
    ensures n as int == |j.states| - 1
  { reveal j.Inv(); n := j.lastCommit; }
  // [L] The caller becomes the logger, if there is something to do that should not wait: all pending groups are to
  // become durable (phase 4), because somebody waits for that or there is no room for another one; or the running group
  // is frozen, to be written.
  method StartCommit(j: Journal) returns (ok: bool, frozen: bool)
    requires j.Inv() && j.mutex.Inside()
    modifies j`running, j`frozen, j`frozenDirect, j`repr, j`busy, j`frozenIndex, j`lastFrozen, j.logger, j.cache,
      j.disk`owner, j.mutex`woken, j.running, j.frozen, j.frozenDirect
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    // nobody was the logger
    ensures ok ==> old(j.logger.phase) == NoLogger && j.logger.phase == if frozen then GroupFrozen else GroupsWritten
    ensures !ok ==> j.KeepsLogger() && j.repr == old(j.repr)
    ensures fresh(j.repr - old(j.repr))
    ensures frozen ==> ok && All(CSpace) in j.mutex.woken
    // what is to be written is; or there is no room for it, and the installer makes some
    ensures !ok ==> old(j.busy) || j.failed || (old(Heavy(j)) ==> j.logger.pendingCount == 0)
    ensures !ok ==> old(j.busy) || j.failed || (old(|j.running.addrs|) >= GroupMin as int ==>
      j.logger.pendingCount == 0 && One(CInstaller) in j.mutex.woken)
  {
    Counters(j);
    ok, frozen := false, false;
    if j.busy || j.failed { return; }
    var pending := j.logger.pendingCount > 0;
    var need := WantDurable(j);
    var w := WantCommit(j);
    if pending && need { ok := true; }
    else if w {
      frozen := Room(j);
      if frozen { FreezeRunning(j); return true, true; }
      if pending { ok := true; } else { Urge(j); }
    }
    if ok { TakeUp(j); }
  }
  // [L] the pending groups are to become durable
  method TakeUp(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger && j.logger.pendingCount > 0
    modifies j`busy, j.logger`phase
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && j.logger.phase == GroupsWritten
  {
    reveal j.Inv(); reveal j.LoggerInv();
    j.logger.phase := GroupsWritten; j.busy := true;
    assert j.OwnerInv() by { reveal j.OwnerInv(); }
  }
  // [L] the last pending group is written, and left as it is; who goes on is woken
  method Defer(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == GroupsWritten
    modifies j`busy, j.logger`phase, j.mutex`woken
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && j.logger.phase == NoLogger &&
      exists odd :: NextTold(j, odd)
  {
    Resign(j);
    var odd := j.notes.OddGroup();
    NextLogger(j, odd);
  }
  // [L] ... nobody is the logger
  method Resign(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == GroupsWritten
    modifies j`busy, j.logger`phase
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && j.logger.phase == NoLogger
  {
    reveal j.Inv(); reveal j.LoggerInv();
    j.logger.phase := NoLogger; j.busy := false;
    assert j.OwnerInv() by { reveal j.OwnerInv(); }
  }
  // [L] is there room for the running group behind the pending ones, and nothing in its way?
  method Room(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger
    ensures ok ==> HasRoom(j) && forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.firstSeq as int), a)
  {
    Counters(j);
    assert j.logger.pendingCount as int == |j.logger.pending| by { reveal j.Inv(); LogFacts(j); }
    var k := j.running.Len();
    var pinned := j.logged.Len(); var c := j.frozen.Len();
    var n := j.logger.pendingCount;
    ok := n < WINDOW && j.nextSeq < 0x1FFF_FFFF_FFFF_0000 && j.logEnd < 0x1FFF_FFFF_FFFF_0000 &&
      j.logger.endPos < 0x1FFF_FFFF_FFFE_0000 && j.nextSeq - j.firstSeq + n < j.units &&
      j.logger.endPos + k <= j.logStart + j.ringSize && pinned + c + k <= j.maxPin;
    if !ok { return; }
    var clash := Clash(j);
    ok := !clash;
  }
  predicate HasRoom(j: Journal) reads j, j.logger, j.running, j.logged, j.frozen {
    |j.logger.pending| < Window && |j.groups| + |j.logger.pending| < j.layout.units &&
      j.logger.endPos as int + |j.running.addrs| <= j.logStart as int + j.layout.ringSize &&
      |j.logged.addrs| + |j.frozen.addrs| + |j.running.addrs| <= j.maxPin as int &&
    j.nextSeq < 0x1FFF_FFFF_FFFF_0000 && j.logger.endPos < 0x1FFF_FFFF_FFFE_0000
  }
  // [L] the running group is frozen
  method FreezeRunning(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger && HasRoom(j) &&
      forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.firstSeq as int), a)
    modifies j`running, j`frozen, j`frozenDirect, j`repr, j`busy, j`frozenIndex, j`lastFrozen, j.logger, j.cache,
      j.disk`owner, j.mutex`woken, j.running, j.frozen, j.frozenDirect
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && j.logger.phase == GroupFrozen && fresh(j.repr - old(j.repr))
    ensures All(CSpace) in j.mutex.woken
  {
    var ring, dir := Split(j);
    var r := NewBlockMap();
    var was := j.running;
    assert Aside(j, was) by { reveal j.Inv(); }
    StartFields(j, r, ring, dir);
    NoteStart(j);
    assert Unused(j, was);
    was.Clear();
  }
  lemma HeldOne(j: Journal, a: int)
    requires j.Inv() && Direct(j.seal.signed, (j.firstSeq as int), a)
    ensures a in j.loggedDirect.m || a in j.installingDirect.m || a in j.frozenDirect.m
  {
    reveal j.Inv();
    assert j.HeldInv();
    HeldAny(j, a);
  }
  lemma HeldAny(j: Journal, a: int)
    requires j.HeldInv() && Direct(j.seal.signed, (j.firstSeq as int), a)
    ensures a in j.loggedDirect.m || a in j.installingDirect.m || a in j.frozenDirect.m
  { reveal j.HeldInv(); }
  // [L] is a block of the running group one of the direct blocks that are held?
  method Clash(j: Journal) returns (b: bool)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger
    ensures !b ==> forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.firstSeq as int), a)
  {
    var n := j.running.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && forall x :: 0 <= x < i as int ==> j.running.addrs[x] !in j.loggedDirect.m &&
        j.running.addrs[x] !in j.installingDirect.m && j.running.addrs[x] !in j.frozenDirect.m
    {
      var a := j.running.AddrAt(i);
      var x := j.frozenDirect.Get(a);
      if x != null { return true; }
      x := j.loggedDirect.Get(a);
      if x != null { return true; }
      x := j.installingDirect.Get(a);
      if x != null { return true; }
      i := i + 1;
    }
    forall a | a in j.running.m ensures !Direct(j.seal.signed, (j.firstSeq as int), a) {
      assert a in j.running.addrs;
      if Direct(j.seal.signed, (j.firstSeq as int), a) { HeldOne(j, a); }
    }
    return false;
  }
  // [L] is block a of the running group to go straight home, if it may? Not if a live or pending group has it in the
  // log.
  method Wished(j: Journal, a: uint64) returns (b: bool)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger
    ensures b ==> j.layout.allocFrom <= a as int < j.layout.allocEnd &&
      (forall i :: 0 <= i < |j.groups| ==> a as int !in j.groups[i]) && forall i :: 0 <= i < |j.logger.pending| ==>
      a as int !in j.logger.pending[i].blocks
  {
    var w := j.notes.Bulk(a);
    b := false;
    if !w || a < j.allocFrom || j.allocEnd <= a { return; }
    var x := j.logged.Get(a);
    if x != null { return; }
    x := j.installing.Get(a);
    if x != null { return; }
    x := j.frozen.Get(a);
    if x != null { return; }
    GeoFacts(j);
    InLive(j, a as int);
    InNone(j, a as int);
    b := true;
  }
  // l has what block bb, which is no direct one, is in the durable state and in each pending group that has it
  predicate Versions(j: Journal, bb: int, l: BList) reads j, j.logger, j.installer, j.seal, j.frozenDirect {
    bb !in j.frozenDirect.m && bb in DurState(j.protocol()) && DurState(j.protocol())[bb] in l.blks &&
      |l.addrs| == |l.blks| < 0x8_0000_0000_0000 && (forall k :: 0 <= k < |l.blks| ==> |l.blks[k]| == 4096) &&
    forall i :: 0 <= i < |j.logger.pending| && bb in j.logger.pending[i].blocks ==>
      j.logger.pending[i].blocks[bb] in l.blks
  }
  // the map m is the list all
  predicate Listed(m: BlockMap, all: seq<BV>) reads m {
    m.Ok() && |m.addrs| == |all| && (forall k :: 0 <= k < |all| ==> m.addrs[k] == k && k in m.m && m.m[k] == all[k]) &&
      forall k :: k in m.m ==> 0 <= k < |all|
  }
  // all has what block bb is in each pending group from the i-th on that has it
  predicate HasFrom(j: Journal, bb: int, i: int, all: seq<BV>) reads j.logger {
    forall k :: 0 <= i <= k < |j.logger.pending| && bb in j.logger.pending[k].blocks ==>
      j.logger.pending[k].blocks[bb] in all
  }
  // [L] Adds to the map m, which is a, what block bb is in the pending groups.
  method InPending(j: Journal, bb: uint64, m: BlockMap, ghost a: seq<BV>) returns (ghost all: seq<BV>)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger && m !in j.repr && Listed(m, a) && |a| == 1
    modifies m
    ensures Listed(m, all) && |all| < 0x8_0000_0000_0000 && a <= all && HasFrom(j, bb as int, 0, all)
  {
    reveal j.Inv(); LogFacts(j);
    all := a;
    var n: uint64 := 1;
    var w := j.logger.newest;
    ghost var bs, ms := j.logger.bodies, j.logger.maps;
    while w != null
      invariant |bs| <= |j.logger.pending| && bs == j.logger.bodies[..|bs|] && Chain(w, bs, ms)
      invariant 1 <= n as int == |all| <= 1 + |j.logger.pending| - |bs| && Listed(m, all) && a <= all &&
        HasFrom(j, bb as int, |bs|, all)
      decreases |bs|
    {
      ghost var i := |bs| - 1;
      PendFacts(j.disk.poss, j.protocol(), i);
      var y := In(w.body, bb, j.logger.pending[i]);
      if y != null { m.Put(n, y); n := n + 1; all := all + [y.v]; }
      w := w.before; bs := bs[..i]; ms := ms[..|ms| - 2];
    }
  }
  // [L] these; null = they are not all in memory, or it is a direct block
  method Bitmap(j: Journal, bb: uint64) returns (l: BList?)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger
    ensures l != null ==> Versions(j, bb as int, l)
  {
    l := null;
    var x := j.frozenDirect.Get(bb);
    if x != null { return; }
    var known, v := Durably(j, bb);
    if !known { return; }
    var m := NewBlockMap();
    m.Put(0, v);
    ghost var all := InPending(j, bb, m, [v.v]);
    l := m.List();
    assert l.blks == all && all[0] == v.v;
    m.Clear();
    reveal j.Inv();
  }
  // is the bit clear in all of l?
  method ClearIn(l: BList, bit: uint64) returns (ok: bool)
    requires bit < 32768 && |l.addrs| == |l.blks| < 0x8_0000_0000_0000 && forall k :: 0 <= k < |l.blks| ==>
      |l.blks[k]| == 4096
    ensures ok ==> forall k :: 0 <= k < |l.blks| ==> !BlockBit(l.blks[k], bit as int)
  {
    var n := l.Len();
    var i: uint64 := 0;
    ok := true;
    while i < n
      invariant i <= n && forall k :: 0 <= k < i as int ==> !BlockBit(l.blks[k], bit as int)
    {
      var b := l.BlkAt(i, null);
      var set_ := BitOf(b.Get(bit / 8), bit % 8);
      if set_ { ok := false; return; }
      assert BlockBit(l.blks[i as int], bit as int) == set_;
      i := i + 1;
    }
  }
  // [L] May block a of the running group go straight home, for which that is wished? It may if it is free in the
  // durable state and after each pending group. l: what its block of the bitmap is in these
  method Straight(j: Journal, a: uint64, l: BList) returns (b: bool)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger &&
      j.layout.allocFrom <= a as int < j.layout.allocEnd && Versions(j, j.bitmapAt as int + a as int / 32768, l)
    ensures b ==> FreeAll(j.protocol(), a as int)
  {
    b := ClearIn(l, a % 32768);
    if b { FreeWith(j, a as int, l); }
  }
  lemma FreeWith(j: Journal, a: int, l: BList)
    requires j.Inv() && j.logger.phase == NoLogger && j.layout.allocFrom <= a < j.layout.allocEnd &&
      Versions(j, j.bitmapAt as int + a / 32768, l)
    requires forall k :: 0 <= k < |l.blks| ==> !BlockBit(l.blks[k], a % 32768)
    ensures FreeAll(j.protocol(), a)
  {
    GeoFacts(j);
    var s := DurState(j.protocol()); var bb := j.bitmapAt as int + a / 32768;
    assert |s[bb]| == 4096 && !BlockBit(s[bb], a % 32768);
    assert FreeIn(j.layout, s, a) by { reveal FreeIn(); }
    forall i | 0 <= i < |j.logger.pending| && bb in j.logger.pending[i].blocks
      ensures |j.logger.pending[i].blocks[bb]| == 4096 && !BlockBit(j.logger.pending[i].blocks[bb], a % 32768) {
      assert j.logger.pending[i].blocks[bb] in l.blks;
    }
    FreeAfter(j, a);
  }
  // block a of what pending group e has in the log, null if it has not
  method In(l: BList, a: uint64, ghost e: Pend) returns (b: Blk?)
    requires Body(l, e) && forall x :: x in e.blocks ==> x in e.desc.addrs
    ensures (b == null) == (a as int !in e.blocks) && (b != null ==> b.v == e.blocks[a as int] && |b.v| == 4096)
  {
    b := null;
    var n := l.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && b == null && forall k :: 0 <= k < i as int ==> l.addrs[k] != a as int
    {
      var x := l.AddrAt(i);
      if x == a { b := l.BlkAt(i, null); return; }
      i := i + 1;
    }
  }
  lemma InNone(j: Journal, a: int)
    requires j.Inv() && j.logger.phase == NoLogger && a !in j.frozen.m
    ensures forall i :: 0 <= i < |j.logger.pending| ==> a !in j.logger.pending[i].blocks
  {
    reveal j.Inv(); LogFacts(j);
    forall i | 0 <= i < |j.logger.pending| ensures a !in j.logger.pending[i].blocks {
      if a in j.logger.pending[i].blocks { MergeHas(BlockMaps(j.logger.pending), i, a); }
    }
  }
  // a is free in the durable state, and no pending group sets its bit
  lemma FreeAfter(j: Journal, a: int)
    requires j.Inv() && j.logger.phase == NoLogger && FreeIn(j.layout, DurState(j.protocol()), a)
    requires var bb := j.layout.bitmapAt + a / 32768; bb !in j.frozenDirect.m &&
      forall i :: 0 <= i < |j.logger.pending| && bb in j.logger.pending[i].blocks ==>
      |j.logger.pending[i].blocks[bb]| == 4096 && !BlockBit(j.logger.pending[i].blocks[bb], a % 32768)
    ensures FreeAll(j.protocol(), a)
  {
    reveal FreeAll();
    forall i | 0 <= i <= |j.logger.pending| ensures FreeIn(j.layout, PState(j.protocol(), i), a) {
      FreeAfterSome(j, a, i);
    }
  }
  lemma FreeAfterSome(j: Journal, a: int, i: int)
    requires j.Inv() && j.logger.phase == NoLogger && FreeIn(j.layout, DurState(j.protocol()), a) &&
      0 <= i <= |j.logger.pending|
    requires var bb := j.layout.bitmapAt + a / 32768; bb !in j.frozenDirect.m &&
      forall i :: 0 <= i < |j.logger.pending| && bb in j.logger.pending[i].blocks ==>
      |j.logger.pending[i].blocks[bb]| == 4096 && !BlockBit(j.logger.pending[i].blocks[bb], a % 32768)
    ensures FreeIn(j.layout, PState(j.protocol(), i), a)
    decreases i
  {
    if i == 0 { PStates(j.protocol()); return; }
    FreeAfterSome(j, a, i - 1);
    var g := j.protocol(); var bb := j.layout.bitmapAt + a / 32768; var e := g.pending[i - 1];
    assert bb !in e.direct by {
      reveal j.Inv(); LogFacts(j); if bb in e.direct { MergeHas(DirectMaps(g.pending), i - 1, bb); }
    }
    assert PState(g, i) == Over(Over(PState(g, i - 1), e.direct), e.blocks) by {
      reveal PState(); var t := g.pending[..i]; assert t[..|t|-1] == g.pending[..i - 1] && t[|t|-1] == e;
    }
    reveal FreeIn();
  }
  lemma InLive(j: Journal, a: int)
    requires j.Inv() && a !in j.logged.m && a !in j.installing.m
    ensures forall i :: 0 <= i < |j.groups| ==> a !in j.groups[i]
  {
    reveal j.Inv();
    LiveMaps(j);
    forall i | 0 <= i < |j.groups| ensures a !in j.groups[i] { if a in j.groups[i] { MergeHas(j.groups, i, a); } }
  }
  lemma LiveMaps(j: Journal)
    requires j.Inv()
    ensures Merge(j.groups) == Overlaid(j.installing.m, j.logged.m)
  {
    reveal j.Inv();
    assert j.groups == j.groups[..j.installCount] + j.groups[j.installCount..];
    MergeCat(j.groups[..j.installCount], j.groups[j.installCount..]);
  }
  // [L] what block a is in the durable state, if that is in memory
  method Durably(j: Journal, a: uint64) returns (known: bool, b: Blk)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger
    ensures known ==> a as int in DurState(j.protocol()) && b.v == DurState(j.protocol())[a as int] && |b.v| == 4096
  {
    reveal j.Inv(); reveal j.CacheInv(); LogFacts(j); LiveMaps(j);
    var x := j.logged.Get(a);
    if x == null { x := j.installing.Get(a); }
    if x == null {
      x := j.frozenDirect.Get(a);     // the cache has what will be home
      if x == null { x := j.cache.Get(a); } else { x := null; }
    }
    known := x != null;
    if known { b := x; assert a as int in j.base; } else { b := ZeroBlk(); }
  }
  // [L] the running group in two parts: for the log, and straight home
  method Split(j: Journal) returns (ring: BlockMap, dir: BlockMap)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger
    requires forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.firstSeq as int), a)
    ensures fresh(dir) && fresh(ring) && ring != dir && ring.Ok() && dir.Ok()
    ensures |ring.addrs| + |dir.addrs| <= |j.running.addrs|
    ensures Parts(j.running.m, ring.m, dir.m) && Ready(j.protocol(), ring.m, dir.m)
  {
    dir := NewBlockMap();
    ring := NewBlockMap();
    var n := j.running.Len();
    var i: uint64 := 0;
    var looked, bm: uint64 := false, 0; var l: BList? := null;     // the last block of the bitmap that was looked at
    while i < n
      invariant looked && l != null ==> Versions(j, bm as int, l)
      invariant i <= n && fresh(dir) && dir.Ok() && fresh(ring) && ring.Ok() && ring != dir &&
        |ring.addrs| + |dir.addrs| <= i as int
      invariant forall a :: a in dir.m ==> a in j.running.m && dir.m[a] == j.running.m[a] && FreeAll(j.protocol(), a)
      invariant forall a :: a in ring.m ==> a in j.running.m && ring.m[a] == j.running.m[a]
      invariant forall a :: a in dir.m ==> a in j.running.addrs[..i as int] && a !in ring.m
      invariant forall a :: a in ring.m ==> a in j.running.addrs[..i as int]
      invariant forall a :: a in j.running.addrs[..i as int] ==> a in ring.m || a in dir.m
      invariant forall x, a {:trigger a in j.groups[x]} :: 0 <= x < |j.groups| && a in j.groups[x] ==> a !in dir.m
      invariant forall x, a {:trigger a in j.logger.pending[x].blocks} :: 0 <= x < |j.logger.pending| &&
        a in j.logger.pending[x].blocks ==> a !in dir.m
    {
      var a := j.running.AddrAt(i);
      var b := j.running.BlkAt(i);
      assert j.running.addrs[..i as int + 1] == j.running.addrs[..i as int] + [a as int];
      NotBefore(j.running, i as int);
      var s := Wished(j, a);
      if s {
        GeoFacts(j);
        var bb := j.bitmapAt + a / 32768;
        if !looked || bb != bm { l := Bitmap(j, bb); bm := bb; looked := true; }
        if l == null { s := false; } else { s := Straight(j, a, l); }
      }
      if s { dir.Put(a, b); } else { ring.Put(a, b); }
      i := i + 1;
    }
    assert j.running.addrs[..n as int] == j.running.addrs;
  }
  lemma NotBefore(m: BlockMap, i: int)
    requires m.Ok() && 0 <= i < |m.addrs|
    ensures m.addrs[i] !in m.addrs[..i]
  { m.Distinct(); }
  // [L] the cache has nothing of the direct blocks: what is written in bulk is not worth a place
  method Uncache(j: Journal, dir: BlockMap)
    requires j.mutex.Inside() && dir.Ok()
    modifies j.cache
    ensures forall a :: a in j.cache.m ==> a !in dir.m && a in old(j.cache.m) && j.cache.m[a] == old(j.cache.m)[a]
  {
    var n := dir.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n
      invariant forall a :: a in j.cache.m ==> a !in dir.addrs[..i as int] && a in old(j.cache.m) &&
        j.cache.m[a] == old(j.cache.m)[a]
    {
      var a := dir.AddrAt(i);
      j.cache.Forget(a);
      assert dir.addrs[..i as int + 1] == dir.addrs[..i as int] + [a as int];
      i := i + 1;
    }
    assert dir.addrs[..n as int] == dir.addrs;
  }
  // [L] the two parts are the frozen group, and r is the running one
  method StartFields(j: Journal, r: BlockMap, ring: BlockMap, dir: BlockMap)
    requires j.Inv() && j.mutex.Inside() && Unused(j, r) && Unused(j, dir) && Unused(j, ring) && r !in j.repr &&
      dir !in j.repr && ring !in j.repr && r != ring && r != dir && ring != dir
    requires r.Ok() && r.m == map[] && r.addrs == [] && j.logger.phase == NoLogger && ring.Ok() && dir.Ok() &&
      HasRoom(j)
    requires Parts(j.running.m, ring.m, dir.m) && Ready(j.protocol(), ring.m, dir.m) &&
      |ring.addrs| + |dir.addrs| <= |j.running.addrs|
    modifies j`running, j`repr, j`busy, j`frozenIndex, j`lastFrozen, j.logger, j.cache, j.disk`owner, j.frozen,
      j.frozenDirect
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures j.logger.phase == GroupFrozen && j.logger.ring == ring && j.logger.direct == dir &&
      j.repr == old(j.repr) + {r, ring, dir} && j.running == r && j.frozen == old(j.frozen) &&
      j.frozenDirect == old(j.frozenDirect)
  {
    ghost var log := set a | j.headerAt as int < a < j.home as int - 1;
    Ownable(j, log, ring.m, dir.m);
    StartReady(j);
    StartMaps(j, ring, dir);
    Uncache(j, dir);
    if j.logger.pending == [] { j.disk.Take(Logging, log + dir.m.Keys); } else { j.disk.Take(Logging, dir.m.Keys); }
    j.logger.ring := ring; j.logger.direct := dir;
    j.logger.directList := null; j.logger.directWritten := 0;
    j.running := r; j.repr := j.repr + {r, ring, dir};
    j.logger.phase := GroupFrozen; j.busy := true;
    j.frozenIndex := |j.states| - 1; j.lastFrozen := j.lastCommit;
    StartInv(j, r, ring, dir, log);
  }
  // what the steps of that require
  lemma StartReady(j: Journal)
    requires j.Inv() && j.logger.phase == NoLogger
    ensures AllDiffer(j.running, j.logged, j.frozen, j.frozenDirect, j.installing, j.loggedDirect,
      j.installingDirect) &&
      |j.running.addrs| <= 500 && (j.logger.pending == [] ==> j.frozenDirect.m == map[])
  { reveal j.Inv(); LogFacts(j); }
  // Inv after them
  twostate lemma StartInv(j: Journal, r: BlockMap, ring: BlockMap, dir: BlockMap, log: set<int>)
    requires old(j.Inv()) && old(j.logger.phase) == NoLogger && old(HasRoom(j)) &&
      log == set a | j.headerAt as int < a < j.home as int - 1
    requires unchanged(j`frozen, j`frozenDirect, j`logged, j`installing, j`loggedDirect, j`installingDirect,
      j`cachedCount, j`firstSeq, j`nextSeq, j`seqAfterInstall, j`logStart, j`posAfterInstall, j`logEnd, j`trims,
      j`lastCommit, j`lastDurable, j`failed, j`closed, j`groups, j`descs, j`directs, j`installCount, j`base,
      j`installBlocks, j`torn, j`states, j`durableIndex, j`observed, j`cached, j.logged, j.installing, j.loggedDirect,
      j.installingDirect, j.seal, j.tree.pages, j.installer, j.disk`cur, j.disk`poss, j.disk`bad, j.disk`ok,
      j.logger`pending, j.logger`bodies, j.logger`maps, j.logger`newest, j.logger`pendingCount, j.logger`endPos,
      j.logger`codes, j.logger.codes, j.logger`looked, j.logger`lookedAt, j.disk`guard)
    // the two parts, which were none of the journal's maps
    requires ring.Ok() && dir.Ok() && ring != dir && |ring.addrs| + |dir.addrs| <= |old(j.running.addrs)| <= 500 &&
      old(Unused(j, ring)) && old(Unused(j, dir)) && ring !in old(j.repr) && dir !in old(j.repr)
    requires Parts(old(j.running.m), ring.m, dir.m) && Ready(old(j.protocol()), ring.m, dir.m)
    // the running group is another map, which is empty
    requires j.running == r && old(Unused(j, r)) && r !in old(j.repr) && r != ring && r != dir && r.Ok() &&
      r.m == map[] && r.addrs == []
    // the device, the cache, and the maps
    requires forall x, a :: Owns(j.disk.owner, x, a) <==> Owns(old(j.disk.owner), x, a) ||
      (x == Logging && (a in dir.m || (j.logger.pending == [] && a in log)))
    requires j.logger.pending == [] ==> old(j.frozenDirect.m) == map[]
    requires forall a :: a in j.cache.m ==> a !in dir.m && a in old(j.cache.m) && j.cache.m[a] == old(j.cache.m)[a]
    requires j.frozen.Ok() && j.frozenDirect.Ok() && j.frozen.m == Overlaid(old(j.frozen.m), ring.m) &&
      j.frozenDirect.m == Overlaid(old(j.frozenDirect.m), dir.m) &&
      |j.frozen.addrs| <= |old(j.frozen.addrs)| + |ring.addrs| &&
      |j.frozenDirect.addrs| <= |old(j.frozenDirect.addrs)| + |dir.addrs|
    requires 0 <= j.durableIndex <= old(j.frozenIndex) < |j.states| &&
      Over(j.states[old(j.frozenIndex)], old(j.running.m)) ==
        Over(Over(j.states[j.durableIndex], j.frozenDirect.m), j.frozen.m)
    // the fields
    requires j.repr == old(j.repr) + {r, ring, dir} && j.logger.phase == GroupFrozen && j.busy &&
      j.logger.ring == ring && j.logger.direct == dir && j.frozenIndex == |j.states| - 1 && j.lastFrozen == j.lastCommit
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
  {
    reveal j.Inv();
    assert Over(j.states[j.frozenIndex], map[]) == j.states[j.frozenIndex];
    AmongMore(j.protocol(), j.states, j.durableIndex, old(j.frozenIndex), j.states, j.frozenIndex);
    assert j.protocol() == old(j.protocol());
    StartLogI(j, ring, dir);
    RdFrame(j);
    StartOwnI(j, log, dir);
    assert j.CacheInv() by { reveal j.CacheInv(); }
    assert j.HeldInv() by { reveal j.HeldInv(); }
  }
  twostate lemma StartLogI(j: Journal, ring: BlockMap, dir: BlockMap)
    requires old(j.LoggerInv()) && old(j.logger.phase) == NoLogger && j.logger.phase == GroupFrozen &&
      j.logger.ring == ring && j.logger.direct == dir && ring != dir && ring.Ok() && dir.Ok() &&
      |ring.addrs| + |dir.addrs| <= 500
    requires unchanged(j.logger`pending, j.logger`bodies, j.logger`maps, j.logger`newest, j.logger`pendingCount,
      j.logger`endPos, j.logger`codes, j.logger.codes, j.disk`cur, j.disk`poss, j.disk`bad, j.seal) &&
      j.protocol() == old(j.protocol()) && j.frozen == old(j.frozen) && j.frozenDirect == old(j.frozenDirect)
    requires j.frozen.m == Overlaid(old(j.frozen.m), ring.m) &&
      j.frozenDirect.m == Overlaid(old(j.frozenDirect.m), dir.m) &&
      |j.frozen.addrs| <= |old(j.frozen.addrs)| + |ring.addrs| &&
      |j.frozenDirect.addrs| <= |old(j.frozenDirect.addrs)| + |dir.addrs|
    requires Ready(j.protocol(), ring.m, dir.m) && InHome(Home(j.layout), ring.m, |j.disk.cur|) &&
      InHome(Home(j.layout), dir.m, |j.disk.cur|)
    requires |j.logger.pending| < Window && |j.groups| + |j.logger.pending| < j.layout.units &&
      j.logger.endPos as int + |ring.addrs| <= j.logStart as int + j.layout.ringSize &&
      End(j.protocol()) < 0x1FFF_FFFF_FFFF_0000 && j.logger.endPos < 0x1FFF_FFFF_FFFE_0000
    ensures j.LoggerInv()
  { reveal j.LoggerInv(); assert j.FrozenParts(ring, dir); }
  twostate lemma StartOwnI(j: Journal, log: set<int>, dir: BlockMap)
    requires old(j.OwnerInv()) && old(j.logger.phase) == NoLogger && j.logger.phase == GroupFrozen &&
      unchanged(j.logger`pending) && j.installBlocks == old(j.installBlocks) && unchanged(j.installer`phase) &&
      log == set a | j.layout.headerAt < a < Copy(j.layout)
    requires j.frozenDirect == old(j.frozenDirect) && j.frozenDirect.m == Overlaid(old(j.frozenDirect.m), dir.m)
    requires forall x, a :: Owns(j.disk.owner, x, a) <==> Owns(old(j.disk.owner), x, a) ||
      (x == Logging && (a in dir.m || (j.logger.pending == [] && a in log)))
    requires j.logger.pending == [] ==> old(j.frozenDirect.m) == map[]
    ensures j.OwnerInv()
  { reveal j.OwnerInv(); }
  // [L] the frozen group joins the pending ones in memory
  method StartMaps(j: Journal, ring: BlockMap, dir: BlockMap)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == NoLogger && ring.Ok() && dir.Ok() && Unused(j, dir) &&
      Unused(j, ring) && ring != dir && |ring.addrs| + |dir.addrs| <= 500 && HasRoom(j)
    requires Parts(j.running.m, ring.m, dir.m) && Ready(j.protocol(), ring.m, dir.m)
    modifies j.frozen, j.frozenDirect
    ensures j.frozen.Ok() && j.frozenDirect.Ok() && j.frozen.m == Overlaid(old(j.frozen.m), ring.m) &&
      j.frozenDirect.m == Overlaid(old(j.frozenDirect.m), dir.m) &&
      |j.frozen.addrs| <= |old(j.frozen.addrs)| + |ring.addrs| &&
      |j.frozenDirect.addrs| <= |old(j.frozenDirect.addrs)| + |dir.addrs|
    ensures 0 <= j.durableIndex <= j.frozenIndex < |j.states| &&
      Over(j.states[j.frozenIndex], j.running.m) == Over(Over(j.states[j.durableIndex], j.frozenDirect.m), j.frozen.m)
  {
    reveal j.Inv(); LogFacts(j);
    forall a | a in dir.m ensures a !in j.frozen.m {
      if a in j.frozen.m {
        MergeKeys(BlockMaps(j.logger.pending), a);
        var i :| 0 <= i < |j.logger.pending| && a in BlockMaps(j.logger.pending)[i];
        assert a in j.logger.pending[i].blocks;
      }
    }
    MergeInto(j.frozen, ring);
    MergeInto(j.frozenDirect, dir);
    ghost var x := Over(j.states[j.frozenIndex], j.running.m);
    ghost var y := Over(Over(j.states[j.durableIndex], j.frozenDirect.m), j.frozen.m);
    assert x.Keys == y.Keys;
    assert x == y;
  }
  // nobody owns what a new logger needs
  lemma Ownable(j: Journal, log: set<int>, m: BM, h: BM)
    requires j.Inv() && j.logger.phase == NoLogger && Ready(j.protocol(), m, h) && Parts(j.running.m, m, h) &&
      log == set a | j.headerAt as int < a < j.home as int - 1
    ensures forall a :: a in h || (j.logger.pending == [] && a in log) ==> a !in j.disk.owner
  {
    reveal j.Inv();
    Owned(j); LogFacts(j); FullD(j.disk.poss, j.protocol());
    forall a | a in h || (j.logger.pending == [] && a in log) ensures a !in j.disk.owner {
      if a in log && a in j.installing.m { assert j.home as int <= a; }
      if a in h && a in j.installBlocks { MergeKeys(j.groups[..j.installCount], a); }
      if a in h && a in j.frozenDirect.m {
        MergeKeys(DirectMaps(j.logger.pending), a);
        var i :| 0 <= i < |j.logger.pending| && a in DirectMaps(j.logger.pending)[i]; PendDirect(j.protocol(), i, a);
      }
      if a in h { assert a in j.running.m; }
    }
  }
  predicate Unused(j: Journal, r: BlockMap) reads j { r != j.running && Aside(j, r) }
  predicate Aside(j: Journal, r: BlockMap) reads j {
    r != j.logged && r != j.frozen && r != j.frozenDirect && r != j.installing && r != j.loggedDirect &&
      r != j.installingDirect
  }
  // [L] the direct blocks are home: their addresses are held, and their codes c, until an installation puts these into
  // the tree
  method HoldDirect(j: Journal, c: Codes)
    requires j.mutex.Inside() && j.frozenDirect.Ok() && j.loggedDirect.Ok() && j.loggedDirect != j.frozenDirect
    modifies j.loggedDirect, j.tree.pages`held
    ensures j.loggedDirect.Ok() && forall a :: a in j.loggedDirect.m <==> a in old(j.loggedDirect.m) ||
      a in j.frozenDirect.m
    ensures j.tree.pageCount > 0 ==> Kept(old(j.tree.pages.held), c.s, j.tree.pages.held)
  {
    var n := j.frozenDirect.Len();
    var i: uint64 := 0;
    var z := ZeroBlk();
    while i < n
      invariant i <= n && j.loggedDirect.Ok() && j.tree.pages.held == old(j.tree.pages.held)
      invariant forall a :: a in j.loggedDirect.m <==> a in old(j.loggedDirect.m) ||
        a in j.frozenDirect.addrs[..i as int]
    {
      var a := j.frozenDirect.AddrAt(i);
      j.loggedDirect.Put(a, z);
      assert j.frozenDirect.addrs[..i as int + 1] == j.frozenDirect.addrs[..i as int] + [a as int];
      i := i + 1;
    }
    assert j.frozenDirect.addrs[..n as int] == j.frozenDirect.addrs;
    if j.tree.pageCount == 0 { return; }
    reveal Kept();
    j.tree.pages.HoldAll(c);
    forall x | x in j.tree.pages.held ensures x in old(j.tree.pages.held) || exists e :: e in c.s && e.x == x {
      if x !in old(j.tree.pages.held) { var k :| 0 <= k < |c.s| && c.s[k].x == x; assert c.s[k] in c.s; }
    }
    forall e | e in c.s ensures e.x in j.tree.pages.held { var k :| 0 <= k < |c.s| && c.s[k] == e; }
  }
  // h2 is h and the codes s
  predicate {:opaque} Kept(h: map<int, CV>, s: seq<Code>, h2: map<int, CV>) {
    (forall x :: x in h ==> x in h2) && (forall e :: e in s ==> e.x in h2) &&
    forall x :: x in h2 ==> (x in h && h2[x] == h[x]) || exists e :: e in s && e.x == x && e.c == h2[x]
  }
  // [L] All pending groups are logged. (What readers see of it, who do not hold the mutex, happens at once: in
  // HoldAll.)
  method FinishCommit(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == GroupsDurable && j.trims < 0x3FFF_FFFF_FFFF_0000
    modifies j`frozen, j`frozenDirect, j`logged, j`repr, j`groups, j`directs, j`descs, j`base, j`torn, j`durableIndex,
      j`lastDurable, j`nextSeq, j`logEnd, j`trims, j`busy, j.logger, j.frozen, j.frozenDirect, j.logged, j.loggedDirect,
      j.tree.pages`held, j.disk`ok, j.disk`owner, j.mutex`woken, j.repr
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && j.durableIndex == old(j.frozenIndex) &&
      j.logger.phase == NoLogger
    ensures fresh(j.repr - old(j.repr))
    // who waits for the groups, who goes on with the next, and who installs, if it is time
    ensures exists odd :: DurableTold(j.mutex, odd) && NextTold(j, odd)
    ensures Filled(j) ==> One(CInstaller) in j.mutex.woken
  {
    MapsApart(j);
    var ring, dir, last := j.frozen, j.frozenDirect, j.logger.newest;
    ghost var bodies, maps := j.logger.bodies, j.logger.maps;
    MadeDurable(j);
    var odd := NoteFinish(j);
    dir.Clear();
    if j.logged != ring { ring.Clear(); }
    ClearAll(j, last, bodies, maps);
    assert DurableTold(j.mutex, odd) && NextTold(j, odd);
  }
  // the maps that the pending groups were made of are none of the seven
  lemma MapsApart(j: Journal)
    requires j.Inv()
    ensures Chain(j.logger.newest, j.logger.bodies, j.logger.maps) && forall m :: m in j.logger.maps ==> m in j.repr &&
      Unused(j, m)
    ensures Others(j)
  { reveal j.Inv(); LogFacts(j); }
  // the seven are seven
  predicate Others(j: Journal) reads j {
    j.frozen in j.repr && j.frozenDirect in j.repr && j.frozen != j.frozenDirect &&
      j.frozen !in {j.running, j.logged, j.installing, j.loggedDirect, j.installingDirect} &&
      j.frozenDirect !in {j.running, j.logged, j.installing, j.loggedDirect, j.installingDirect}
  }
  // [L] ... but that their memory is not given back yet
  method MadeDurable(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.logger.phase == GroupsDurable && j.trims < 0x3FFF_FFFF_FFFF_0000
    modifies j`frozen, j`frozenDirect, j`logged, j`repr, j`groups, j`directs, j`descs, j`base, j`torn, j`durableIndex,
      j`lastDurable, j`nextSeq, j`logEnd, j`trims, j`busy, j.logger, j.frozen, j.frozenDirect, j.logged, j.loggedDirect,
      j.tree.pages`held, j.disk`ok, j.disk`owner
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && j.durableIndex == old(j.frozenIndex) &&
      j.logger.phase == NoLogger
    ensures j.logger.ring == null && j.logger.direct == null && fresh(j.frozen) && fresh(j.frozenDirect) &&
      fresh(j.repr - old(j.repr)) && old(j.repr) <= j.repr && (j.logged == old(j.logged) || j.logged == old(j.frozen))
  {
    var e := NewBlockMap(); var f := NewBlockMap(); var z := NewCodes();
    FinishReady(j); FinishG(j); FinishHeld(j);
    var l, h := FinishMaps(j, j.logger.codes);
    j.disk.SetOk(OkSet(j.layout, j.states, j.frozenIndex, j.seal.signed));
    j.disk.Leave(Logging);
    FinishFields(j, e, f, l, z, h);
    FinishInv(j, h);
  }
  // what the steps of that require
  lemma FinishReady(j: Journal)
    requires j.Inv() && j.logger.phase == GroupsDurable
    ensures AllDiffer(j.running, j.logged, j.frozen, j.frozenDirect, j.installing, j.loggedDirect,
      j.installingDirect) &&
      |j.logged.addrs| + |j.frozen.addrs| < 0x4_0000_0000_0000
    ensures j.nextSeq as int + j.logger.pendingCount as int < 0x2000_0000_0000_0000 && j.disk.Valid() &&
      j.logger.endPos as int == PendEnd(j.protocol())
  { reveal j.Inv(); LogFacts(j); }
  // Inv after them: the pending groups are logged, and h direct blocks more are held
  twostate lemma FinishInv(j: Journal, h: uint64)
    requires old(j.Inv()) && old(j.logger.phase) == GroupsDurable && old(j.trims) < 0x3FFF_FFFF_FFFF_0000
    requires unchanged(j`running, j`installing, j`loggedDirect, j`installingDirect, j`cachedCount, j`firstSeq,
      j`seqAfterInstall, j`logStart, j`posAfterInstall, j`lastCommit, j`lastFrozen, j`failed, j`closed, j`installCount,
      j`installBlocks, j`states, j`frozenIndex, j`observed, j`cached, j.running, j.installing, j.installingDirect,
      j.seal, j.cache, j.tree.pages`vs, j.tree.pages`rs, j.installer, j.disk`cur, j.disk`poss, j.disk`bad,
      j.logger`looked, j.logger`lookedAt, j.disk`guard) && old(j.logger.codes).s == old(j.logger.codes.s)
    requires fresh(j.frozen) && fresh(j.frozenDirect) && fresh(j.logger.codes) && j.frozen != j.frozenDirect &&
      j.frozen.Ok() && j.frozenDirect.Ok() && j.frozen.m == j.frozenDirect.m == map[] &&
      j.frozen.addrs == j.frozenDirect.addrs == [] && j.logger.codes.s == []
    // the device
    requires 0 <= j.frozenIndex < |j.states| && j.disk.Valid() &&
      j.disk.ok == OkSet(j.layout, j.states, j.frozenIndex, j.seal.signed) &&
      forall x, a :: Owns(j.disk.owner, x, a) <==> Owns(old(j.disk.owner), x, a) && x != Logging
    // the maps
    requires (j.logged == old(j.logged) || j.logged == old(j.frozen)) && j.logged.Ok() &&
      j.logged.m == Overlaid(old(j.logged.m), old(j.frozen.m)) &&
      |j.logged.addrs| <= |old(j.logged.addrs)| + |old(j.frozen.addrs)|
    requires h as int == |old(j.frozenDirect.addrs)| && (h == 0 ==> old(j.frozenDirect.m) == map[])
    requires j.loggedDirect.Ok() && (forall a :: a in j.loggedDirect.m <==> a in old(j.loggedDirect.m) ||
      a in old(j.frozenDirect.m)) &&
      (j.tree.pageCount > 0 ==> Kept(old(j.tree.pages.held), old(j.logger.codes.s), j.tree.pages.held))
    // the fields
    requires j.repr == old(j.repr) + {j.frozen, j.frozenDirect} && !j.busy &&
      j.durableIndex == j.frozenIndex && j.lastDurable == j.lastFrozen && j.logEnd == old(j.logger.endPos) &&
      j.nextSeq as int == old(j.nextSeq) as int + old(j.logger.pendingCount) as int
    requires j.trims == if h > 0 then old(j.trims) + 1 else old(j.trims)
    requires j.logger.phase == NoLogger && j.logger.pending == [] && j.logger.pendingCount == 0 &&
      j.logger.newest == null && j.logger.bodies == [] && j.logger.maps == [] && j.logger.ring == null &&
      j.logger.direct == null && j.logger.endPos == old(j.logger.endPos)
    // the protocol's state (FinishG)
    requires j.protocol() == Flat(old(j.protocol())) && Full(j.disk.poss, j.protocol()) &&
      0 <= j.installCount <= |old(j.groups)| && DurState(j.protocol()) == j.states[j.frozenIndex] &&
      Merge(j.groups[j.installCount..]) == j.logged.m
    requires old(j.frozenDirect.m) == Merge(old(DirectMaps(j.logger.pending))) &&
      forall a :: a in old(j.frozenDirect.m) ==> a !in j.installBlocks && a !in old(j.loggedDirect.m) &&
        a !in j.installingDirect.m
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
  {
    reveal j.Inv();
    WasDurable(j);
    OverNone(j.states[j.frozenIndex]);
    AmongNone(j.protocol(), j.states, j.durableIndex);
    OwnFinish(j); CacheFinish(j); HoldFinish(j, old(DirectMaps(j.logger.pending)));
    TreeFinish(j, old(j.logger.codes)); RdFinish(j); LogIdle(j);
  }
  // what LoggerInv said before
  twostate lemma WasDurable(j: Journal)
    requires old(j.LoggerInv()) && old(j.logger.phase) == GroupsDurable
    ensures GeoOk(j.layout) && CodesOf(old(j.logger.codes.s), old(j.frozenDirect.m), Home(j.layout), old(j.seal.key)) &&
      old(End(j.protocol()) + |j.logger.pending|) < 0x1FFF_FFFF_FFFF_FFFF &&
      old(j.logger.endPos) < 0x1FFF_FFFF_FFFF_0000 && |old(j.logger.pending)| == old(j.logger.pendingCount) as int
  { reveal j.LoggerInv(); }
  lemma FinishHeld(j: Journal)
    requires j.Inv() && j.logger.phase == GroupsDurable
    ensures forall a :: a in j.frozenDirect.m ==> a !in j.loggedDirect.m && a !in j.installingDirect.m
  { reveal j.Inv(); HeldApart(j); }
  // [L] gives back the memory of maps that nobody sees any more
  method ClearAll(j: Journal, last: InLog?, ghost bodies: seq<BList>, ghost maps: seq<BlockMap>)
    requires j.Inv() && j.logger.ring == null && j.logger.direct == null && Chain(last, bodies, maps) &&
      forall m :: m in maps ==> m in j.repr && Unused(j, m)
    modifies j.repr - {j.running, j.logged, j.frozen, j.frozenDirect, j.installing, j.loggedDirect, j.installingDirect}
    ensures j.Inv() && j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs)
  {
    var w := last;
    ghost var bs, ms := bodies, maps;
    while w != null
      invariant j.Inv() && j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs) &&
        Chain(w, bs, ms) && forall m :: m in ms ==> m in maps
      invariant j.logger.ring == null && j.logger.direct == null && j.running == old(j.running) &&
        j.logged == old(j.logged) && j.frozen == old(j.frozen) && j.frozenDirect == old(j.frozenDirect) &&
        j.installing == old(j.installing) && j.loggedDirect == old(j.loggedDirect) &&
        j.installingDirect == old(j.installingDirect)
      decreases |bs|
    {
      assert w.ring in ms && w.direct in ms;
      w.ring.Clear(); w.direct.Clear();
      w := w.before; bs := bs[..|bs| - 1]; ms := ms[..|ms| - 2];
    }
  }
  // [L] ... its direct blocks are held, and the others join those of the groups that are logged
  method FinishMaps(j: Journal, c: Codes) returns (l: BlockMap, h: uint64)
    requires j.mutex.Inside() && j.logged.Ok() && j.frozen.Ok() && j.frozenDirect.Ok() && j.loggedDirect.Ok() &&
      j.logged != j.frozen && j.logged != j.frozenDirect && j.logged != j.loggedDirect &&
      j.loggedDirect != j.frozenDirect && j.loggedDirect != j.frozen
    requires |j.logged.addrs| + |j.frozen.addrs| < 0x4_0000_0000_0000
    modifies j.logged, j.loggedDirect, j.tree.pages`held
    ensures (l == j.logged || (l == j.frozen && j.logged.m == old(j.logged.m))) && j.logged.Ok() && l.Ok() &&
      l.m == Overlaid(old(j.logged.m), j.frozen.m) && |l.addrs| <= |old(j.logged.addrs)| + |j.frozen.addrs|
    ensures h as int == |j.frozenDirect.addrs| && (h == 0 ==> j.frozenDirect.m == map[])
    ensures j.loggedDirect.Ok() && forall a :: a in j.loggedDirect.m <==> a in old(j.loggedDirect.m) ||
      a in j.frozenDirect.m
    ensures j.tree.pageCount > 0 ==> Kept(old(j.tree.pages.held), c.s, j.tree.pages.held)
  {
    HoldDirect(j, c);
    l := MergeOrSwap(j.logged, j.frozen);
    h := j.frozenDirect.Len();
  }
  // the codes of the direct blocks join those that are held
  twostate lemma TreeFinish(j: Journal, c: Codes)
    requires old(j.TreeInv()) && j.base == Over(old(j.base), old(j.frozenDirect.m)) &&
      j.installer.root == old(j.installer.root) && j.installer.treeState == old(j.installer.treeState) &&
      j.installingDirect == old(j.installingDirect) && j.installingDirect.m == old(j.installingDirect.m)
    requires j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs)
    requires forall a :: a in j.loggedDirect.m <==> a in old(j.loggedDirect.m) || a in old(j.frozenDirect.m)
    requires forall a :: a in old(j.frozenDirect.m) ==> a !in old(j.loggedDirect.m) && a !in j.installingDirect.m &&
      a in j.base
    requires j.tree.pageCount > 0 ==> CodesOf(c.s, old(j.frozenDirect.m), j.home as int, j.seal.key) &&
      Kept(old(j.tree.pages.held), c.s, j.tree.pages.held)
    ensures j.TreeInv()
  {
    reveal j.TreeInv(); reveal Kept(); reveal CodesOf();
    if j.tree.pageCount > 0 {
      forall x | x + j.home as int in old(j.frozenDirect.m) ensures x in j.tree.pages.held {
        var a := x + j.home as int; var e :| e in c.s && e.x == a - j.home as int;
      }
    }
  }
  // what finishing means for the protocol's state
  lemma FinishG(j: Journal)
    requires j.Inv() && j.logger.phase == GroupsDurable
    ensures 0 <= j.installCount <= |j.groups| && j.frozen.m == Merge(BlockMaps(j.logger.pending)) &&
      j.frozenDirect.m == Merge(DirectMaps(j.logger.pending)) && 0 <= j.frozenIndex < |j.states|
    ensures var g1 := Flat(j.protocol()); Full(j.disk.poss, g1) && DurState(g1) == j.states[j.frozenIndex] &&
      g1.groups[..g1.installCount] == j.groups[..j.installCount]
    ensures var g1 := Flat(j.protocol()); Merge(g1.groups[g1.installCount..]) == Overlaid(j.logged.m, j.frozen.m)
    ensures forall a :: a in j.frozenDirect.m ==> a !in j.installBlocks
    ensures forall s :: CrashImg(j.disk.poss, s) ==> s in OkSet(j.layout, j.states, j.frozenIndex, j.seal.signed)
  {
    reveal j.Inv(); LogFacts(j);
    assert AllHome(j.disk.poss, j.protocol()) by { reveal j.LoggerInv(); }
    FinishAll(j.disk.poss, j.protocol());
    FullD(j.disk.poss, j.protocol());
    ComAll(j.protocol(), |j.disk.poss|);
    TailMerge(j.protocol(), Flat(j.protocol()));
    DirApart(j);
    AmongNone(Flat(j.protocol()), j.states, j.frozenIndex);
    CrashAll(j.disk.poss, Flat(j.protocol()), j.states, j.frozenIndex, j.frozenIndex);
  }
  lemma OverNone(v: St)
    ensures Over(v, map[]) == v
  {}
  lemma LogIdle(j: Journal)
    requires j.logger.phase == NoLogger && j.logger.pending == [] && j.logger.pendingCount == 0 &&
      j.logger.newest == null && j.logger.ring == null && j.logger.direct == null && j.logger.bodies == [] &&
      j.logger.maps == [] && j.logger.codes.s == [] && j.frozen.m == map[] && j.frozen.addrs == [] &&
      j.frozenDirect.m == map[] && j.frozenDirect.addrs == [] && GeoOk(j.layout) &&
      |j.disk.cur| == |j.disk.poss| >= Home(j.layout)
    requires j.logger.endPos == j.logEnd && End(j.protocol()) < 0x1FFF_FFFF_FFFF_FFFF &&
      j.logEnd < 0x1FFF_FFFF_FFFF_0000
    ensures j.LoggerInv()
  {
    reveal j.LoggerInv();
    assert DirectMaps(j.logger.pending) == [] && BlockMaps(j.logger.pending) == [] && Merge([]) == map[];
    assert CodesOf([], map[], Home(j.layout), j.seal.key) by { reveal CodesOf(); }
  }
  // a read of a direct block that began before it was written is not valid: hence trims
  method FinishFields(j: Journal, e: BlockMap, f: BlockMap, l: BlockMap, z: Codes, h: uint64)
    requires j.nextSeq as int + j.logger.pendingCount as int < 0x2000_0000_0000_0000 && j.trims < 0x3FFF_FFFF_FFFF_0000
    modifies j`frozen, j`frozenDirect, j`logged, j`repr, j`groups, j`directs, j`descs, j`base, j`torn, j`durableIndex,
      j`lastDurable, j`nextSeq, j`logEnd, j`trims, j`busy, j.logger
    ensures j.torn == old(j.torn) - Merge(DirectMaps(old(j.logger.pending))).Keys
    ensures j.frozen == e && j.frozenDirect == f && j.logged == l && j.repr == old(j.repr) + {e, f} &&
      j.durableIndex == j.frozenIndex && j.lastDurable == j.lastFrozen &&
      j.nextSeq as int == old(j.nextSeq) as int + old(j.logger.pendingCount) as int &&
      j.logEnd == old(j.logger.endPos) && !j.busy
    ensures j.trims == if h > 0 then old(j.trims) + 1 else old(j.trims)
    ensures j.groups == old(j.groups) + BlockMaps(old(j.logger.pending)) &&
      j.directs == old(j.directs) + DirectMaps(old(j.logger.pending)) &&
      j.descs == old(j.descs) + DescsOf(old(j.logger.pending)) &&
      j.base == Over(old(j.base), Merge(DirectMaps(old(j.logger.pending))))
    ensures j.logger.phase == NoLogger && j.logger.pending == [] && j.logger.pendingCount == 0 &&
      j.logger.newest == null && j.logger.bodies == [] && j.logger.maps == [] && j.logger.codes == z &&
      j.logger.endPos == old(j.logger.endPos) && j.logger.ring == null && j.logger.direct == null &&
      unchanged(j.logger`looked, j.logger`lookedAt)
  {
    j.frozen := e; j.frozenDirect := f; j.logged := l; j.repr := j.repr + {e, f};
    j.durableIndex := j.frozenIndex; j.lastDurable := j.lastFrozen;
    j.nextSeq := j.nextSeq + j.logger.pendingCount; j.logEnd := j.logger.endPos;
    if h > 0 { j.trims := j.trims + 1; }
    j.groups := j.groups + BlockMaps(j.logger.pending); j.directs := j.directs + DirectMaps(j.logger.pending);
    j.descs := j.descs + DescsOf(j.logger.pending); j.base := Over(j.base, Merge(DirectMaps(j.logger.pending)));
    j.torn := j.torn - Merge(DirectMaps(j.logger.pending)).Keys;
    j.logger.pending := []; j.logger.pendingCount := 0; j.logger.newest := null; j.logger.bodies := [];
    j.logger.maps := []; j.logger.codes := z;
    j.logger.desc := null; j.logger.body := null; j.logger.directList := null; j.logger.ring := null;
    j.logger.direct := null; j.logger.directWritten := 0;
    j.logger.phase := NoLogger; j.busy := false;
  }
  twostate lemma OwnFinish(j: Journal)
    requires old(j.OwnerInv()) && j.logger.phase == NoLogger && j.logger.pending == [] &&
      j.installBlocks == old(j.installBlocks) && unchanged(j.installer`phase) &&
      forall x, a :: Owns(j.disk.owner, x, a) <==> x != Logging && Owns(old(j.disk.owner), x, a)
    ensures j.OwnerInv()
  { reveal j.OwnerInv(); }
  twostate lemma CacheFinish(j: Journal)
    requires old(j.CacheInv()) && j.cache.m == old(j.cache.m) && j.frozenDirect.m == map[] &&
      j.base == Over(old(j.base), old(j.frozenDirect.m)) && j.installBlocks == old(j.installBlocks)
    requires j.cached == old(j.cached) && forall a :: a in old(j.frozenDirect.m) ==> a !in j.installBlocks
    ensures j.CacheInv()
  { reveal j.CacheInv(); }
  twostate lemma HoldFinish(j: Journal, ts: seq<BM>)
    requires old(j.HeldInv()) && j.seal.signed == old(j.seal.signed) && j.firstSeq as int == old(j.firstSeq) as int &&
      j.installCount == old(j.installCount) && j.installingDirect.m == old(j.installingDirect.m)
    requires j.directs == old(j.directs) + ts && Merge(ts) == old(j.frozenDirect.m)
    requires forall a :: a in j.loggedDirect.m <==> a in old(j.loggedDirect.m) || a in old(j.frozenDirect.m)
    ensures j.HeldInv()
  {
    reveal j.HeldInv();
    var t := old(j.directs)[j.installCount..];
    assert j.directs[j.installCount..] == t + ts;
    MergeCat(t, ts);
    assert j.directs[..j.installCount] == old(j.directs)[..j.installCount];
  }
  twostate lemma RdFinish(j: Journal)
    requires old(j.ReadsInv()) && j.observed == old(j.observed) && j.base == Over(old(j.base), old(j.frozenDirect.m))
    requires (j.trims == old(j.trims) && old(j.frozenDirect.m) == map[]) || j.trims as int == old(j.trims) as int + 1
    requires forall a :: old(j.Pending(a)) && a !in old(j.frozenDirect.m) ==> j.Pending(a)
    ensures j.ReadsInv()
  { reveal j.ReadsInv(); }
}
