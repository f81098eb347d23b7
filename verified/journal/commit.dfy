// The steps of a commit under the mutex: a transaction is merged into the running group; the
// group is frozen, in two parts, for the log and straight home (whoever does that becomes the
// logger); when logger.dfy has written it, it is pending, and left so for the time being or made durable together with all that are:
// then they are logged.
include "facts.dfy"
include "policy.dfy"
include "../trusted/work.s.dfy"

module JournalCommit {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened WorkS
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened Bits
  import opened JournalM
  import opened JournalFacts
  import opened JournalPolicy
  import opened TreeOfCodes

  // results of Append
  const AOk: uint32 := 0
  const AFull: uint32 := 1         // wait for room and try again
  const ATooLarge: uint32 := 2     // larger than a group can be: never
  const AFailed: uint32 := 3       // the device failed, or the journal is closed: read-only for good

  // nothing can be committed any more: the journal has failed, or is closed, or so many commits were made as there are numbers for
  predicate Closed(j: Journal) reads j { j.failed || j.closed || |j.vs| > 0x3FFF_FFFF_FFFF_0000 }
  // The running group has no room for tx: it would have more blocks than a group can. Or else nobody waits for tx, and there is something in the group, which will be written.
  predicate Crowded(j: Journal, tx: BMap, waits: bool) reads j, j.running, tx
  { |j.running.addrs| + |tx.addrs| > GroupMax as int || (!waits && |j.running.addrs| > 0 && |j.running.addrs| + |tx.addrs| > Part as int) }
  // [L] merge a transaction into the running group; n is its index in the history. waits: somebody waits until it is durable. Only who may commit can take this step, and has then done so.
  method Append(j: Journal, tx: BMap, waits: bool, ghost p: Permit) returns (st: uint32, n: uint64)
    requires j.Inv() && j.mu.Inside() && j.TxOk(tx) && tx !in j.repr && p.may
    modifies j`vs, j`nvs, j.running, j.d`ok, p
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures st != AOk ==> j.vs == old(j.vs)
    ensures p.may <==> st != AOk
    ensures st == AOk ==> j.vs == old(j.vs) + [Over(old(j.Cur()), tx.m)] && n as int == |j.vs| - 1
    ensures st <= AFailed && (st == AFull ==> Crowded(j, tx, waits)) && (st == ATooLarge ==> |tx.addrs| > 500) && (st == AFailed ==> Closed(j))
    ensures j.closed ==> st == AFailed
  {
    Counters(j);
    var k := j.running.Len();
    var l := tx.Len();
    assert |j.vs| == j.nvs as int + 1 by { reveal j.Inv(); }
    if j.failed || j.closed || j.nvs >= 0x3FFF_FFFF_FFFF_0000 { return AFailed, 0; }
    if l > 500 { return ATooLarge, 0; }
    var most := Share(j);
    if k + l > GroupMax || (!waits && k > 0 && k + l > most) { return AFull, 0; }
    AppendTx(j, tx, p);
    if waits && l < Part { Haste(j); }
    if k < GroupMin && k + l >= GroupMin && !j.busy { j.mu.WakeOne(CLogger); }
    return AOk, j.nvs;
  }
  method AppendTx(j: Journal, tx: BMap, ghost p: Permit)
    requires j.Inv() && j.TxOk(tx) && tx !in j.repr && |j.running.addrs| + |tx.addrs| <= 500 && j.nvs < 0x3FFF_FFFF_FFFF_0000 && p.may && !j.closed
    modifies j`vs, j`nvs, j.running, j.d`ok, p
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures j.vs == old(j.vs) + [Over(old(j.Cur()), tx.m)] && j.nvs as int == |j.vs| - 1 && !p.may
  {
    p.Spend();
    reveal j.Inv();
    MergeInto(j.running, tx);
    OverOv(j.vs[j.cl], old(j.running.m), tx.m);
    j.vs := j.vs + [Over(old(j.Cur()), tx.m)];
    j.nvs := j.nvs + 1;
    LogFacts(j);
    AmongMore(j.g(), old(j.vs), j.lb, j.cl, j.vs, j.cl);
    CrashAll(j.d.poss, j.g(), j.vs, j.lb, j.cl);
    j.d.SetOk(OkSet(j.geo, j.vs, j.lb, j.seal.signed));
    RdFrame(j);
  }
  // [L] is commit n durable?
  method IsDurable(j: Journal, n: uint64) returns (b: bool)
    requires j.Inv() && j.mu.Inside()
    ensures b <==> n as int <= j.lb
  { reveal j.Inv(); b := n <= j.nlb; }
  // [L] index of the last commit
  method Newest(j: Journal) returns (n: uint64)
    requires j.Inv() && j.mu.Inside()
    ensures n as int == |j.vs| - 1
  { reveal j.Inv(); n := j.nvs; }
  // [L] The caller becomes the logger, if there is something to do that should not wait: all pending groups are to become durable (phase 4), because
  // somebody waits for that or there is no room for another one; or the running group is frozen, to be written.
  method StartCommit(j: Journal) returns (ok: bool, frozen: bool)
    requires j.Inv() && j.mu.Inside()
    modifies j`running, j`cgm, j`cdm, j`repr, j`busy, j`cl, j`ncl, j.lg, j.cache, j.d`owner, j.running, j.cgm, j.cdm
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> old(j.lg.ph) == 0 && j.lg.ph == if frozen then 1 else 4       // nobody was the logger
    ensures !ok ==> j.LKeep() && j.repr == old(j.repr)
    ensures fresh(j.repr - old(j.repr))
  {
    Counters(j);
    ok, frozen := false, false;
    if j.busy || j.failed { return; }
    var pending := j.lg.np > 0;
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
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0 && j.lg.np > 0
    modifies j`busy, j.lg`ph
    ensures j.Inv() && j.IKeep() && j.Mono() && j.lg.ph == 4
  {
    reveal j.Inv(); reveal j.LogI();
    j.lg.ph := 4; j.busy := true;
    assert j.OwnI() by { reveal j.OwnI(); }
  }
  // [L] the last pending group is written, and left as it is; who goes on is woken
  method Defer(j: Journal)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 4
    modifies j`busy, j.lg`ph
    ensures j.Inv() && j.IKeep() && j.Mono() && j.lg.ph == 0
  {
    Resign(j);
    NextLogger(j);
  }
  // [L] ... nobody is the logger
  method Resign(j: Journal)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 4
    modifies j`busy, j.lg`ph
    ensures j.Inv() && j.IKeep() && j.Mono() && j.lg.ph == 0
  {
    reveal j.Inv(); reveal j.LogI();
    j.lg.ph := 0; j.busy := false;
    assert j.OwnI() by { reveal j.OwnI(); }
  }
  // [L] is there room for the running group behind the pending ones, and nothing in its way?
  method Room(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0
    ensures ok ==> HasRoom(j) && forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.hq as int), a)
  {
    Counters(j);
    assert j.lg.np as int == |j.lg.ps| by { reveal j.Inv(); LogFacts(j); }
    var k := j.running.Len();
    var pinned := j.lgm.Len(); var c := j.cgm.Len();
    var n := j.lg.np;
    ok := n < WINDOW && j.eq < 0x1FFF_FFFF_FFFF_0000 && j.wp < 0x1FFF_FFFF_FFFF_0000 && j.lg.pos < 0x1FFF_FFFF_FFFE_0000 && j.eq - j.hq + n < j.nd && j.lg.pos + k <= j.lo + j.nr && pinned + c + k <= j.maxPin;
    if !ok { return; }
    var clash := Clash(j);
    ok := !clash;
  }
  predicate HasRoom(j: Journal) reads j, j.lg, j.running, j.lgm, j.cgm {
    |j.lg.ps| < Window && |j.gs| + |j.lg.ps| < j.geo.nd && j.lg.pos as int + |j.running.addrs| <= j.lo as int + j.geo.nr && |j.lgm.addrs| + |j.cgm.addrs| + |j.running.addrs| <= j.maxPin as int &&
    j.eq < 0x1FFF_FFFF_FFFF_0000 && j.lg.pos < 0x1FFF_FFFF_FFFE_0000
  }
  // [L] the running group is frozen
  method FreezeRunning(j: Journal)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0 && HasRoom(j) && forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.hq as int), a)
    modifies j`running, j`cgm, j`cdm, j`repr, j`busy, j`cl, j`ncl, j.lg, j.cache, j.d`owner, j.running, j.cgm, j.cdm
    ensures j.Inv() && j.IKeep() && j.Mono() && j.lg.ph == 1 && fresh(j.repr - old(j.repr))
  {
    var ring, dir := Split(j);
    var r := NewBMap();
    var was := j.running;
    assert Aside(j, was) by { reveal j.Inv(); }
    StartFields(j, r, ring, dir);
    NoteStart(j);
    assert Unused(j, was);
    was.Clear();
  }
  lemma HeldOne(j: Journal, a: int)
    requires j.Inv() && Direct(j.seal.signed, (j.hq as int), a)
    ensures a in j.lho.m || a in j.iho.m || a in j.cdm.m
  {
    reveal j.Inv();
    assert j.HoldI();
    HeldAny(j, a);
  }
  lemma HeldAny(j: Journal, a: int)
    requires j.HoldI() && Direct(j.seal.signed, (j.hq as int), a)
    ensures a in j.lho.m || a in j.iho.m || a in j.cdm.m
  { reveal j.HoldI(); }
  // [L] is a block of the running group one of the direct blocks that are held?
  method Clash(j: Journal) returns (b: bool)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0
    ensures !b ==> forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.hq as int), a)
  {
    var n := j.running.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && forall x :: 0 <= x < i as int ==> j.running.addrs[x] !in j.lho.m && j.running.addrs[x] !in j.iho.m && j.running.addrs[x] !in j.cdm.m
    {
      var a := j.running.AddrAt(i);
      var x := j.cdm.Get(a);
      if x != null { return true; }
      x := j.lho.Get(a);
      if x != null { return true; }
      x := j.iho.Get(a);
      if x != null { return true; }
      i := i + 1;
    }
    forall a | a in j.running.m ensures !Direct(j.seal.signed, (j.hq as int), a) {
      assert a in j.running.addrs;
      if Direct(j.seal.signed, (j.hq as int), a) { HeldOne(j, a); }
    }
    return false;
  }
  // [L] is block a of the running group to go straight home, if it may? Not if a live or pending group has it in the log.
  method Wished(j: Journal, a: uint64) returns (b: bool)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0
    ensures b ==> j.geo.flo <= a as int < j.geo.fhi && (forall i :: 0 <= i < |j.gs| ==> a as int !in j.gs[i]) && forall i :: 0 <= i < |j.lg.ps| ==> a as int !in j.lg.ps[i].m
  {
    var w := j.notes.Bulk(a);
    b := false;
    if !w || a < j.flo || j.fhi <= a { return; }
    var x := j.lgm.Get(a);
    if x != null { return; }
    x := j.inm.Get(a);
    if x != null { return; }
    x := j.cgm.Get(a);
    if x != null { return; }
    GeoFacts(j);
    InLive(j, a as int);
    InNone(j, a as int);
    b := true;
  }
  // l has what block bb, which is no direct one, is in the durable state and in each pending group that has it
  predicate Versions(j: Journal, bb: int, l: BList) reads j, j.lg, j.ins, j.seal, j.cdm {
    bb !in j.cdm.m && bb in DurState(j.g()) && DurState(j.g())[bb] in l.blks && |l.addrs| == |l.blks| < 0x8_0000_0000_0000 && (forall k :: 0 <= k < |l.blks| ==> |l.blks[k]| == 4096) &&
    forall i :: 0 <= i < |j.lg.ps| && bb in j.lg.ps[i].m ==> j.lg.ps[i].m[bb] in l.blks
  }
  // the map m is the list all
  predicate Listed(m: BMap, all: seq<BV>) reads m {
    m.Ok() && |m.addrs| == |all| && (forall k :: 0 <= k < |all| ==> m.addrs[k] == k && k in m.m && m.m[k] == all[k]) && forall k :: k in m.m ==> 0 <= k < |all|
  }
  // all has what block bb is in each pending group from the i-th on that has it
  predicate HasFrom(j: Journal, bb: int, i: int, all: seq<BV>) reads j.lg { forall k :: 0 <= i <= k < |j.lg.ps| && bb in j.lg.ps[k].m ==> j.lg.ps[k].m[bb] in all }
  // [L] Adds to the map m, which is a, what block bb is in the pending groups.
  method InPending(j: Journal, bb: uint64, m: BMap, ghost a: seq<BV>) returns (ghost all: seq<BV>)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0 && m !in j.repr && Listed(m, a) && |a| == 1
    modifies m
    ensures Listed(m, all) && |all| < 0x8_0000_0000_0000 && a <= all && HasFrom(j, bb as int, 0, all)
  {
    reveal j.Inv(); LogFacts(j);
    all := a;
    var n: uint64 := 1;
    var w := j.lg.newest;
    ghost var bs, ms := j.lg.bodies, j.lg.maps;
    while w != null
      invariant |bs| <= |j.lg.ps| && bs == j.lg.bodies[..|bs|] && Chain(w, bs, ms)
      invariant 1 <= n as int == |all| <= 1 + |j.lg.ps| - |bs| && Listed(m, all) && a <= all && HasFrom(j, bb as int, |bs|, all)
      decreases |bs|
    {
      ghost var i := |bs| - 1;
      PendFacts(j.d.poss, j.g(), i);
      var y := In(w.body, bb, j.lg.ps[i]);
      if y != null { m.Put(n, y); n := n + 1; all := all + [y.v]; }
      w := w.before; bs := bs[..i]; ms := ms[..|ms| - 2];
    }
  }
  // [L] these; null = they are not all in memory, or it is a direct block
  method Bitmap(j: Journal, bb: uint64) returns (l: BList?)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0
    ensures l != null ==> Versions(j, bb as int, l)
  {
    l := null;
    var x := j.cdm.Get(bb);
    if x != null { return; }
    var known, v := Durably(j, bb);
    if !known { return; }
    var m := NewBMap();
    m.Put(0, v);
    ghost var all := InPending(j, bb, m, [v.v]);
    l := m.List();
    assert l.blks == all && all[0] == v.v;
    m.Clear();
    reveal j.Inv();
  }
  // is the bit clear in all of l?
  method ClearIn(l: BList, bit: uint64) returns (ok: bool)
    requires bit < 32768 && |l.addrs| == |l.blks| < 0x8_0000_0000_0000 && forall k :: 0 <= k < |l.blks| ==> |l.blks[k]| == 4096
    ensures ok ==> forall k :: 0 <= k < |l.blks| ==> !BlockBit(l.blks[k], bit as int)
  {
    var n := l.Len();
    var i: uint64 := 0;
    ok := true;
    while i < n
      invariant i <= n && forall k :: 0 <= k < i as int ==> !BlockBit(l.blks[k], bit as int)
    {
      var b := l.BlkAt(i);
      var set_ := BitOf(b.Get(bit / 8), bit % 8);
      if set_ { ok := false; return; }
      assert BlockBit(l.blks[i as int], bit as int) == set_;
      i := i + 1;
    }
  }
  // [L] May block a of the running group go straight home, for which that is wished? It may if it is free in the durable state and after each
  // pending group. l: what its block of the bitmap is in these
  method Straight(j: Journal, a: uint64, l: BList) returns (b: bool)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0 && j.geo.flo <= a as int < j.geo.fhi && Versions(j, j.bit as int + a as int / 32768, l)
    ensures b ==> FreeAll(j.g(), a as int)
  {
    b := ClearIn(l, a % 32768);
    if b { FreeWith(j, a as int, l); }
  }
  lemma FreeWith(j: Journal, a: int, l: BList)
    requires j.Inv() && j.lg.ph == 0 && j.geo.flo <= a < j.geo.fhi && Versions(j, j.bit as int + a / 32768, l)
    requires forall k :: 0 <= k < |l.blks| ==> !BlockBit(l.blks[k], a % 32768)
    ensures FreeAll(j.g(), a)
  {
    GeoFacts(j);
    var s := DurState(j.g()); var bb := j.bit as int + a / 32768;
    assert |s[bb]| == 4096 && !BlockBit(s[bb], a % 32768);
    assert FreeIn(j.geo, s, a) by { reveal FreeIn(); }
    forall i | 0 <= i < |j.lg.ps| && bb in j.lg.ps[i].m ensures |j.lg.ps[i].m[bb]| == 4096 && !BlockBit(j.lg.ps[i].m[bb], a % 32768) { assert j.lg.ps[i].m[bb] in l.blks; }
    FreeAfter(j, a);
  }
  // block a of what pending group e has in the log, null if it has not
  method In(l: BList, a: uint64, ghost e: Pend) returns (b: Blk?)
    requires Body(l, e) && forall x :: x in e.m ==> x in e.d.addrs
    ensures (b == null) == (a as int !in e.m) && (b != null ==> b.v == e.m[a as int] && |b.v| == 4096)
  {
    b := null;
    var n := l.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && b == null && forall k :: 0 <= k < i as int ==> l.addrs[k] != a as int
    {
      var x := l.AddrAt(i);
      if x == a { b := l.BlkAt(i); return; }
      i := i + 1;
    }
  }
  lemma InNone(j: Journal, a: int)
    requires j.Inv() && j.lg.ph == 0 && a !in j.cgm.m
    ensures forall i :: 0 <= i < |j.lg.ps| ==> a !in j.lg.ps[i].m
  {
    reveal j.Inv(); LogFacts(j);
    forall i | 0 <= i < |j.lg.ps| ensures a !in j.lg.ps[i].m { if a in j.lg.ps[i].m { MergeHas(Ms(j.lg.ps), i, a); } }
  }
  // a is free in the durable state, and no pending group sets its bit
  lemma FreeAfter(j: Journal, a: int)
    requires j.Inv() && j.lg.ph == 0 && FreeIn(j.geo, DurState(j.g()), a)
    requires var bb := j.geo.bit + a / 32768; bb !in j.cdm.m && forall i :: 0 <= i < |j.lg.ps| && bb in j.lg.ps[i].m ==> |j.lg.ps[i].m[bb]| == 4096 && !BlockBit(j.lg.ps[i].m[bb], a % 32768)
    ensures FreeAll(j.g(), a)
  {
    reveal FreeAll();
    forall i | 0 <= i <= |j.lg.ps| ensures FreeIn(j.geo, PState(j.g(), i), a) { FreeAfterSome(j, a, i); }
  }
  lemma FreeAfterSome(j: Journal, a: int, i: int)
    requires j.Inv() && j.lg.ph == 0 && FreeIn(j.geo, DurState(j.g()), a) && 0 <= i <= |j.lg.ps|
    requires var bb := j.geo.bit + a / 32768; bb !in j.cdm.m && forall i :: 0 <= i < |j.lg.ps| && bb in j.lg.ps[i].m ==> |j.lg.ps[i].m[bb]| == 4096 && !BlockBit(j.lg.ps[i].m[bb], a % 32768)
    ensures FreeIn(j.geo, PState(j.g(), i), a)
    decreases i
  {
    if i == 0 { PStates(j.g()); return; }
    FreeAfterSome(j, a, i - 1);
    var g := j.g(); var bb := j.geo.bit + a / 32768; var e := g.ps[i - 1];
    assert bb !in e.h by { reveal j.Inv(); LogFacts(j); if bb in e.h { MergeHas(Hs(g.ps), i - 1, bb); } }
    assert PState(g, i) == Over(Over(PState(g, i - 1), e.h), e.m) by { reveal PState(); var t := g.ps[..i]; assert t[..|t|-1] == g.ps[..i - 1] && t[|t|-1] == e; }
    reveal FreeIn();
  }
  lemma InLive(j: Journal, a: int)
    requires j.Inv() && a !in j.lgm.m && a !in j.inm.m
    ensures forall i :: 0 <= i < |j.gs| ==> a !in j.gs[i]
  {
    reveal j.Inv();
    LiveMaps(j);
    forall i | 0 <= i < |j.gs| ensures a !in j.gs[i] { if a in j.gs[i] { MergeHas(j.gs, i, a); } }
  }
  lemma LiveMaps(j: Journal)
    requires j.Inv()
    ensures Merge(j.gs) == Ov(j.inm.m, j.lgm.m)
  {
    reveal j.Inv();
    assert j.gs == j.gs[..j.k] + j.gs[j.k..];
    MergeCat(j.gs[..j.k], j.gs[j.k..]);
  }
  // [L] what block a is in the durable state, if that is in memory
  method Durably(j: Journal, a: uint64) returns (known: bool, b: Blk)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0
    ensures known ==> a as int in DurState(j.g()) && b.v == DurState(j.g())[a as int] && |b.v| == 4096
  {
    reveal j.Inv(); reveal j.CacheI(); LogFacts(j); LiveMaps(j);
    var x := j.lgm.Get(a);
    if x == null { x := j.inm.Get(a); }
    if x == null {
      x := j.cdm.Get(a);     // the cache has what will be home
      if x == null { x := j.cache.Get(a); } else { x := null; }
    }
    known := x != null;
    if known { b := x; assert a as int in j.base; } else { b := ZeroBlk(); }
  }
  // [L] the running group in two parts: for the log, and straight home
  method Split(j: Journal) returns (ring: BMap, dir: BMap)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0
    requires forall a :: a in j.running.m ==> !Direct(j.seal.signed, (j.hq as int), a)
    ensures fresh(dir) && fresh(ring) && ring != dir && ring.Ok() && dir.Ok()
    ensures |ring.addrs| + |dir.addrs| <= |j.running.addrs|
    ensures Parts(j.running.m, ring.m, dir.m) && Ready(j.g(), ring.m, dir.m)
  {
    dir := NewBMap();
    ring := NewBMap();
    var n := j.running.Len();
    var i: uint64 := 0;
    var looked, bm: uint64 := false, 0; var l: BList? := null;     // the last block of the bitmap that was looked at
    while i < n
      invariant looked && l != null ==> Versions(j, bm as int, l)
      invariant i <= n && fresh(dir) && dir.Ok() && fresh(ring) && ring.Ok() && ring != dir && |ring.addrs| + |dir.addrs| <= i as int
      invariant forall a :: a in dir.m ==> a in j.running.m && dir.m[a] == j.running.m[a] && FreeAll(j.g(), a)
      invariant forall a :: a in ring.m ==> a in j.running.m && ring.m[a] == j.running.m[a]
      invariant forall a :: a in dir.m ==> a in j.running.addrs[..i as int] && a !in ring.m
      invariant forall a :: a in ring.m ==> a in j.running.addrs[..i as int]
      invariant forall a :: a in j.running.addrs[..i as int] ==> a in ring.m || a in dir.m
      invariant forall x, a {:trigger a in j.gs[x]} :: 0 <= x < |j.gs| && a in j.gs[x] ==> a !in dir.m
      invariant forall x, a {:trigger a in j.lg.ps[x].m} :: 0 <= x < |j.lg.ps| && a in j.lg.ps[x].m ==> a !in dir.m
    {
      var a := j.running.AddrAt(i);
      var b := j.running.BlkAt(i);
      assert j.running.addrs[..i as int + 1] == j.running.addrs[..i as int] + [a as int];
      NotBefore(j.running, i as int);
      var s := Wished(j, a);
      if s {
        GeoFacts(j);
        var bb := j.bit + a / 32768;
        if !looked || bb != bm { l := Bitmap(j, bb); bm := bb; looked := true; }
        if l == null { s := false; } else { s := Straight(j, a, l); }
      }
      if s { dir.Put(a, b); } else { ring.Put(a, b); }
      i := i + 1;
    }
    assert j.running.addrs[..n as int] == j.running.addrs;
  }
  lemma NotBefore(m: BMap, i: int)
    requires m.Ok() && 0 <= i < |m.addrs|
    ensures m.addrs[i] !in m.addrs[..i]
  { m.Distinct(); }
  // [L] the cache has nothing of the direct blocks: what is written in bulk is not worth a place
  method Uncache(j: Journal, dir: BMap)
    requires j.mu.Inside() && dir.Ok()
    modifies j.cache
    ensures forall a :: a in j.cache.m ==> a !in dir.m && a in old(j.cache.m) && j.cache.m[a] == old(j.cache.m)[a]
  {
    var n := dir.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n
      invariant forall a :: a in j.cache.m ==> a !in dir.addrs[..i as int] && a in old(j.cache.m) && j.cache.m[a] == old(j.cache.m)[a]
    {
      var a := dir.AddrAt(i);
      j.cache.Forget(a);
      assert dir.addrs[..i as int + 1] == dir.addrs[..i as int] + [a as int];
      i := i + 1;
    }
    assert dir.addrs[..n as int] == dir.addrs;
  }
  // [L] the two parts are the frozen group, and r is the running one
  method StartFields(j: Journal, r: BMap, ring: BMap, dir: BMap)
    requires j.Inv() && j.mu.Inside() && Unused(j, r) && Unused(j, dir) && Unused(j, ring) && r !in j.repr && dir !in j.repr && ring !in j.repr && r != ring && r != dir && ring != dir
    requires r.Ok() && r.m == map[] && r.addrs == [] && j.lg.ph == 0 && ring.Ok() && dir.Ok() && HasRoom(j)
    requires Parts(j.running.m, ring.m, dir.m) && Ready(j.g(), ring.m, dir.m) && |ring.addrs| + |dir.addrs| <= |j.running.addrs|
    modifies j`running, j`repr, j`busy, j`cl, j`ncl, j.lg, j.cache, j.d`owner, j.cgm, j.cdm
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures j.lg.ph == 1 && j.lg.ring == ring && j.lg.dir == dir && j.repr == old(j.repr) + {r, ring, dir} && j.running == r && j.cgm == old(j.cgm) && j.cdm == old(j.cdm)
  {
    reveal j.Inv();
    ghost var log := set a | j.at as int < a < j.home as int - 1;
    Ownable(j, log, ring.m, dir.m);
    NoneDirect(j);
    StartMaps(j, ring, dir);
    Uncache(j, dir);
    if j.lg.ps == [] { j.d.Take(Logging, log + dir.m.Keys); } else { j.d.Take(Logging, dir.m.Keys); }
    j.lg.ring := ring; j.lg.dir := dir;
    j.lg.dirs := null; j.lg.dn := 0;
    j.running := r; j.repr := j.repr + {r, ring, dir};
    j.lg.ph := 1; j.busy := true;
    j.cl := |j.vs| - 1; j.ncl := j.nvs;
    assert Over(j.vs[j.cl], map[]) == j.vs[j.cl];
    AmongMore(j.g(), j.vs, j.lb, old(j.cl), j.vs, j.cl);
    assert j.g() == old(j.g());
    StartLogI(j, ring, dir);
    RdFrame(j);
    StartOwnI(j, log, dir);
    assert j.CacheI() by { reveal j.CacheI(); }
    assert j.HoldI() by { reveal j.HoldI(); }
  }
  lemma NoneDirect(j: Journal)
    requires j.LogI() && j.lg.ph == 0
    ensures j.lg.ps == [] ==> j.cdm.m == map[]
  { LogFacts(j); }
  twostate lemma StartLogI(j: Journal, ring: BMap, dir: BMap)
    requires old(j.LogI()) && old(j.lg.ph) == 0 && j.lg.ph == 1 && j.lg.ring == ring && j.lg.dir == dir && ring != dir && ring.Ok() && dir.Ok() && |ring.addrs| + |dir.addrs| <= 500
    requires unchanged(j.lg`ps, j.lg`bodies, j.lg`maps, j.lg`newest, j.lg`np, j.lg`pos, j.lg`codes, j.lg.codes, j.d`cur, j.d`poss, j.d`bad, j.seal) && j.g() == old(j.g()) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm)
    requires j.cgm.m == Ov(old(j.cgm.m), ring.m) && j.cdm.m == Ov(old(j.cdm.m), dir.m) && |j.cgm.addrs| <= |old(j.cgm.addrs)| + |ring.addrs| && |j.cdm.addrs| <= |old(j.cdm.addrs)| + |dir.addrs|
    requires Ready(j.g(), ring.m, dir.m) && InHome(Home(j.geo), ring.m, |j.d.cur|) && InHome(Home(j.geo), dir.m, |j.d.cur|)
    requires |j.lg.ps| < Window && |j.gs| + |j.lg.ps| < j.geo.nd && j.lg.pos as int + |ring.addrs| <= j.lo as int + j.geo.nr && End(j.g()) < 0x1FFF_FFFF_FFFF_0000 && j.lg.pos < 0x1FFF_FFFF_FFFE_0000
    ensures j.LogI()
  { reveal j.LogI(); assert j.Frozen(ring, dir); }
  twostate lemma StartOwnI(j: Journal, log: set<int>, dir: BMap)
    requires old(j.OwnI()) && old(j.lg.ph) == 0 && j.lg.ph == 1 && unchanged(j.lg`ps) && j.im == old(j.im) && unchanged(j.ins`ip) && log == set a | j.geo.at < a < Copy(j.geo)
    requires j.cdm == old(j.cdm) && j.cdm.m == Ov(old(j.cdm.m), dir.m)
    requires forall x, a :: Owns(j.d.owner, x, a) <==> Owns(old(j.d.owner), x, a) || (x == Logging && (a in dir.m || (j.lg.ps == [] && a in log)))
    requires j.lg.ps == [] ==> old(j.cdm.m) == map[]
    ensures j.OwnI()
  { reveal j.OwnI(); }
  // [L] the frozen group joins the pending ones in memory
  method StartMaps(j: Journal, ring: BMap, dir: BMap)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 0 && ring.Ok() && dir.Ok() && Unused(j, dir) && Unused(j, ring) && ring != dir && |ring.addrs| + |dir.addrs| <= 500 && HasRoom(j)
    requires Parts(j.running.m, ring.m, dir.m) && Ready(j.g(), ring.m, dir.m)
    modifies j.cgm, j.cdm
    ensures j.cgm.Ok() && j.cdm.Ok() && j.cgm.m == Ov(old(j.cgm.m), ring.m) && j.cdm.m == Ov(old(j.cdm.m), dir.m) && |j.cgm.addrs| <= |old(j.cgm.addrs)| + |ring.addrs| && |j.cdm.addrs| <= |old(j.cdm.addrs)| + |dir.addrs|
    ensures 0 <= j.lb <= j.cl < |j.vs| && Over(j.vs[j.cl], j.running.m) == Over(Over(j.vs[j.lb], j.cdm.m), j.cgm.m)
  {
    reveal j.Inv(); LogFacts(j);
    forall a | a in dir.m ensures a !in j.cgm.m {
      if a in j.cgm.m { MergeKeys(Ms(j.lg.ps), a); var i :| 0 <= i < |j.lg.ps| && a in Ms(j.lg.ps)[i]; assert a in j.lg.ps[i].m; }
    }
    MergeInto(j.cgm, ring);
    MergeInto(j.cdm, dir);
    ghost var x := Over(j.vs[j.cl], j.running.m); ghost var y := Over(Over(j.vs[j.lb], j.cdm.m), j.cgm.m);
    assert x.Keys == y.Keys;
    assert x == y;
  }
  // nobody owns what a new logger needs
  lemma Ownable(j: Journal, log: set<int>, m: BM, h: BM)
    requires j.Inv() && j.lg.ph == 0 && Ready(j.g(), m, h) && Parts(j.running.m, m, h) && log == set a | j.at as int < a < j.home as int - 1
    ensures forall a :: a in h || (j.lg.ps == [] && a in log) ==> a !in j.d.owner
  {
    reveal j.Inv();
    Owned(j); LogFacts(j); FullD(j.d.poss, j.g());
    forall a | a in h || (j.lg.ps == [] && a in log) ensures a !in j.d.owner {
      if a in log && a in j.inm.m { assert j.home as int <= a; }
      if a in h && a in j.im { MergeKeys(j.gs[..j.k], a); }
      if a in h && a in j.cdm.m { MergeKeys(Hs(j.lg.ps), a); var i :| 0 <= i < |j.lg.ps| && a in Hs(j.lg.ps)[i]; PendDirect(j.g(), i, a); }
      if a in h { assert a in j.running.m; }
    }
  }
  predicate Unused(j: Journal, r: BMap) reads j { r != j.running && Aside(j, r) }
  predicate Aside(j: Journal, r: BMap) reads j { r != j.lgm && r != j.cgm && r != j.cdm && r != j.inm && r != j.lho && r != j.iho }
  // [L] the direct blocks are home: their addresses are held, and their codes c, until an installation puts these into the tree
  method HoldDirect(j: Journal, c: Codes)
    requires j.mu.Inside() && j.cdm.Ok() && j.lho.Ok() && j.lho != j.cdm
    modifies j.lho, j.tree.pages`held
    ensures j.lho.Ok() && forall a :: a in j.lho.m <==> a in old(j.lho.m) || a in j.cdm.m
    ensures j.tree.np > 0 ==> Kept(old(j.tree.pages.held), c.s, j.tree.pages.held)
  {
    var n := j.cdm.Len();
    var i: uint64 := 0;
    var z := ZeroBlk();
    while i < n
      invariant i <= n && j.lho.Ok() && j.tree.pages.held == old(j.tree.pages.held)
      invariant forall a :: a in j.lho.m <==> a in old(j.lho.m) || a in j.cdm.addrs[..i as int]
    {
      var a := j.cdm.AddrAt(i);
      j.lho.Put(a, z);
      assert j.cdm.addrs[..i as int + 1] == j.cdm.addrs[..i as int] + [a as int];
      i := i + 1;
    }
    assert j.cdm.addrs[..n as int] == j.cdm.addrs;
    if j.tree.np == 0 { return; }
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
  // [L] All pending groups are logged. (What readers see of it, who do not hold the mutex, happens at once: in HoldAll.)
  method FinishCommit(j: Journal)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 3 && j.trims < 0x3FFF_FFFF_FFFF_0000
    modifies j`cgm, j`cdm, j`lgm, j`repr, j`gs, j`hs, j`ds, j`base, j`torn, j`lb, j`nlb, j`eq, j`wp, j`trims, j`busy, j.lg, j.cgm, j.cdm, j.lgm, j.lho, j.tree.pages`held, j.d`ok, j.d`owner, j.repr
    ensures j.Inv() && j.IKeep() && j.Mono() && j.lb == old(j.cl) && j.lg.ph == 0
    ensures fresh(j.repr - old(j.repr))
  {
    MapsApart(j);
    var ring, dir, last := j.cgm, j.cdm, j.lg.newest;
    ghost var bodies, maps := j.lg.bodies, j.lg.maps;
    MadeDurable(j);
    NoteFinish(j);
    dir.Clear();
    if j.lgm != ring { ring.Clear(); }
    ClearAll(j, last, bodies, maps);
  }
  // the maps that the pending groups were made of are none of the seven
  lemma MapsApart(j: Journal)
    requires j.Inv()
    ensures Chain(j.lg.newest, j.lg.bodies, j.lg.maps) && forall m :: m in j.lg.maps ==> m in j.repr && Unused(j, m)
    ensures Others(j)
  { reveal j.Inv(); LogFacts(j); }
  // the seven are seven
  predicate Others(j: Journal) reads j { j.cgm in j.repr && j.cdm in j.repr && j.cgm != j.cdm && j.cgm !in {j.running, j.lgm, j.inm, j.lho, j.iho} && j.cdm !in {j.running, j.lgm, j.inm, j.lho, j.iho} }
  // [L] ... but that their memory is not given back yet
  method MadeDurable(j: Journal)
    requires j.Inv() && j.mu.Inside() && j.lg.ph == 3 && j.trims < 0x3FFF_FFFF_FFFF_0000
    modifies j`cgm, j`cdm, j`lgm, j`repr, j`gs, j`hs, j`ds, j`base, j`torn, j`lb, j`nlb, j`eq, j`wp, j`trims, j`busy, j.lg, j.cgm, j.cdm, j.lgm, j.lho, j.tree.pages`held, j.d`ok, j.d`owner
    ensures j.Inv() && j.IKeep() && j.Mono() && j.lb == old(j.cl) && j.lg.ph == 0
    ensures j.lg.ring == null && j.lg.dir == null && fresh(j.cgm) && fresh(j.cdm) && fresh(j.repr - old(j.repr)) && old(j.repr) <= j.repr && (j.lgm == old(j.lgm) || j.lgm == old(j.cgm))
  {
    reveal j.Inv();
    var e := NewBMap(); var f := NewBMap(); var z := NewCodes();
    ghost var g0 := j.g(); ghost var g1 := Flat(g0);
    FinishG(j); LogFacts(j); HeldApart(j);
    var l, h := FinishMaps(j, j.lg.codes);
    j.d.SetOk(OkSet(j.geo, j.vs, j.cl, j.seal.signed));
    j.d.Leave(Logging);
    FinishFields(j, e, f, l, z, h);
    assert j.g() == g1;
    OverNone(j.vs[j.cl]);
    AmongNone(j.g(), j.vs, j.lb);
    OwnFinish(j);
    CacheFinish(j); HoldFinish(j, Hs(g0.ps)); TreeFinish(j, old(j.lg.codes)); RdFinish(j); LogIdle(j);
  }
  // [L] gives back the memory of maps that nobody sees any more
  method ClearAll(j: Journal, last: InLog?, ghost bodies: seq<BList>, ghost maps: seq<BMap>)
    requires j.Inv() && j.lg.ring == null && j.lg.dir == null && Chain(last, bodies, maps) && forall m :: m in maps ==> m in j.repr && Unused(j, m)
    modifies j.repr - {j.running, j.lgm, j.cgm, j.cdm, j.inm, j.lho, j.iho}
    ensures j.Inv() && j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs)
  {
    var w := last;
    ghost var bs, ms := bodies, maps;
    while w != null
      invariant j.Inv() && j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs) && Chain(w, bs, ms) && forall m :: m in ms ==> m in maps
      invariant j.lg.ring == null && j.lg.dir == null && j.running == old(j.running) && j.lgm == old(j.lgm) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && j.inm == old(j.inm) && j.lho == old(j.lho) && j.iho == old(j.iho)
      decreases |bs|
    {
      assert w.ring in ms && w.dir in ms;
      w.ring.Clear(); w.dir.Clear();
      w := w.before; bs := bs[..|bs| - 1]; ms := ms[..|ms| - 2];
    }
  }
  // [L] ... its direct blocks are held, and the others join those of the groups that are logged
  method FinishMaps(j: Journal, c: Codes) returns (l: BMap, h: uint64)
    requires j.mu.Inside() && j.lgm.Ok() && j.cgm.Ok() && j.cdm.Ok() && j.lho.Ok() && j.lgm != j.cgm && j.lgm != j.cdm && j.lgm != j.lho && j.lho != j.cdm && j.lho != j.cgm
    requires |j.lgm.addrs| + |j.cgm.addrs| < 0x4_0000_0000_0000
    modifies j.lgm, j.lho, j.tree.pages`held
    ensures (l == j.lgm || (l == j.cgm && j.lgm.m == old(j.lgm.m))) && j.lgm.Ok() && l.Ok() && l.m == Ov(old(j.lgm.m), j.cgm.m) && |l.addrs| <= |old(j.lgm.addrs)| + |j.cgm.addrs|
    ensures h as int == |j.cdm.addrs| && (h == 0 ==> j.cdm.m == map[])
    ensures j.lho.Ok() && forall a :: a in j.lho.m <==> a in old(j.lho.m) || a in j.cdm.m
    ensures j.tree.np > 0 ==> Kept(old(j.tree.pages.held), c.s, j.tree.pages.held)
  {
    HoldDirect(j, c);
    l := MergeOrSwap(j.lgm, j.cgm);
    h := j.cdm.Len();
  }
  // the codes of the direct blocks join those that are held
  twostate lemma TreeFinish(j: Journal, c: Codes)
    requires old(j.TreeI()) && j.base == Over(old(j.base), old(j.cdm.m)) && j.ins.r == old(j.ins.r) && j.ins.tb == old(j.ins.tb) && j.iho == old(j.iho) && j.iho.m == old(j.iho.m)
    requires j.tree.pages.vs == old(j.tree.pages.vs) && j.tree.pages.rs == old(j.tree.pages.rs)
    requires forall a :: a in j.lho.m <==> a in old(j.lho.m) || a in old(j.cdm.m)
    requires forall a :: a in old(j.cdm.m) ==> a !in old(j.lho.m) && a !in j.iho.m && a in j.base
    requires j.tree.np > 0 ==> CodesOf(c.s, old(j.cdm.m), j.home as int, j.seal.key) && Kept(old(j.tree.pages.held), c.s, j.tree.pages.held)
    ensures j.TreeI()
  {
    reveal j.TreeI(); reveal Kept(); reveal CodesOf();
    if j.tree.np > 0 {
      forall x | x + j.home as int in old(j.cdm.m) ensures x in j.tree.pages.held { var a := x + j.home as int; var e :| e in c.s && e.x == a - j.home as int; }
    }
  }
  // what finishing means for the protocol's state
  lemma FinishG(j: Journal)
    requires j.Inv() && j.lg.ph == 3
    ensures 0 <= j.k <= |j.gs| && j.cgm.m == Merge(Ms(j.lg.ps)) && j.cdm.m == Merge(Hs(j.lg.ps)) && 0 <= j.cl < |j.vs|
    ensures var g1 := Flat(j.g()); Full(j.d.poss, g1) && DurState(g1) == j.vs[j.cl] && g1.gs[..g1.k] == j.gs[..j.k]
    ensures var g1 := Flat(j.g()); Merge(g1.gs[g1.k..]) == Ov(j.lgm.m, j.cgm.m)
    ensures forall a :: a in j.cdm.m ==> a !in j.im
    ensures forall s :: CrashImg(j.d.poss, s) ==> s in OkSet(j.geo, j.vs, j.cl, j.seal.signed)
  {
    reveal j.Inv(); LogFacts(j);
    assert AllHome(j.d.poss, j.g()) by { reveal j.LogI(); }
    FinishAll(j.d.poss, j.g());
    FullD(j.d.poss, j.g());
    ComAll(j.g(), |j.d.poss|);
    TailMerge(j.g(), Flat(j.g()));
    DirApart(j);
    AmongNone(Flat(j.g()), j.vs, j.cl);
    CrashAll(j.d.poss, Flat(j.g()), j.vs, j.cl, j.cl);
  }
  lemma OverNone(v: St)
    ensures Over(v, map[]) == v
  {}
  lemma LogIdle(j: Journal)
    requires j.lg.ph == 0 && j.lg.ps == [] && j.lg.np == 0 && j.lg.newest == null && j.lg.ring == null && j.lg.dir == null && j.lg.bodies == [] && j.lg.maps == [] && j.lg.codes.s == [] && j.cgm.m == map[] && j.cgm.addrs == [] && j.cdm.m == map[] && j.cdm.addrs == [] && GeoOk(j.geo) && |j.d.cur| == |j.d.poss| >= Home(j.geo)
    requires j.lg.pos == j.wp && End(j.g()) < 0x1FFF_FFFF_FFFF_FFFF && j.wp < 0x1FFF_FFFF_FFFF_0000
    ensures j.LogI()
  {
    reveal j.LogI();
    assert Hs(j.lg.ps) == [] && Ms(j.lg.ps) == [] && Merge([]) == map[];
    assert CodesOf([], map[], Home(j.geo), j.seal.key) by { reveal CodesOf(); }
  }
  // a read of a direct block that began before it was written is not valid: hence trims
  method FinishFields(j: Journal, e: BMap, f: BMap, l: BMap, z: Codes, h: uint64)
    requires j.eq as int + j.lg.np as int < 0x2000_0000_0000_0000 && j.trims < 0x3FFF_FFFF_FFFF_0000
    modifies j`cgm, j`cdm, j`lgm, j`repr, j`gs, j`hs, j`ds, j`base, j`torn, j`lb, j`nlb, j`eq, j`wp, j`trims, j`busy, j.lg
    ensures j.torn == old(j.torn) - Merge(Hs(old(j.lg.ps))).Keys
    ensures j.cgm == e && j.cdm == f && j.lgm == l && j.repr == old(j.repr) + {e, f} && j.lb == j.cl && j.nlb == j.ncl && j.eq as int == old(j.eq) as int + old(j.lg.np) as int && j.wp == old(j.lg.pos) && !j.busy
    ensures j.trims == if h > 0 then old(j.trims) + 1 else old(j.trims)
    ensures j.gs == old(j.gs) + Ms(old(j.lg.ps)) && j.hs == old(j.hs) + Hs(old(j.lg.ps)) && j.ds == old(j.ds) + Ds(old(j.lg.ps)) && j.base == Over(old(j.base), Merge(Hs(old(j.lg.ps))))
    ensures j.lg.ph == 0 && j.lg.ps == [] && j.lg.np == 0 && j.lg.newest == null && j.lg.bodies == [] && j.lg.maps == [] && j.lg.codes == z && j.lg.pos == old(j.lg.pos) && j.lg.ring == null && j.lg.dir == null
  {
    j.cgm := e; j.cdm := f; j.lgm := l; j.repr := j.repr + {e, f};
    j.lb := j.cl; j.nlb := j.ncl;
    j.eq := j.eq + j.lg.np; j.wp := j.lg.pos;
    if h > 0 { j.trims := j.trims + 1; }
    j.gs := j.gs + Ms(j.lg.ps); j.hs := j.hs + Hs(j.lg.ps); j.ds := j.ds + Ds(j.lg.ps); j.base := Over(j.base, Merge(Hs(j.lg.ps)));
    j.torn := j.torn - Merge(Hs(j.lg.ps)).Keys;
    j.lg.ps := []; j.lg.np := 0; j.lg.newest := null; j.lg.bodies := []; j.lg.maps := []; j.lg.codes := z;
    j.lg.desc := null; j.lg.body := null; j.lg.dirs := null; j.lg.ring := null; j.lg.dir := null; j.lg.dn := 0;
    j.lg.ph := 0; j.busy := false;
  }
  twostate lemma OwnFinish(j: Journal)
    requires old(j.OwnI()) && j.lg.ph == 0 && j.lg.ps == [] && j.im == old(j.im) && unchanged(j.ins`ip) && forall x, a :: Owns(j.d.owner, x, a) <==> x != Logging && Owns(old(j.d.owner), x, a)
    ensures j.OwnI()
  { reveal j.OwnI(); }
  twostate lemma CacheFinish(j: Journal)
    requires old(j.CacheI()) && j.cache.m == old(j.cache.m) && j.cdm.m == map[] && j.base == Over(old(j.base), old(j.cdm.m)) && j.im == old(j.im)
    requires j.cached == old(j.cached) && forall a :: a in old(j.cdm.m) ==> a !in j.im
    ensures j.CacheI()
  { reveal j.CacheI(); }
  twostate lemma HoldFinish(j: Journal, ts: seq<BM>)
    requires old(j.HoldI()) && j.seal.signed == old(j.seal.signed) && j.hq as int == old(j.hq) as int && j.k == old(j.k) && j.iho.m == old(j.iho.m)
    requires j.hs == old(j.hs) + ts && Merge(ts) == old(j.cdm.m)
    requires forall a :: a in j.lho.m <==> a in old(j.lho.m) || a in old(j.cdm.m)
    ensures j.HoldI()
  {
    reveal j.HoldI();
    var t := old(j.hs)[j.k..];
    assert j.hs[j.k..] == t + ts;
    MergeCat(t, ts);
    assert j.hs[..j.k] == old(j.hs)[..j.k];
  }
  twostate lemma RdFinish(j: Journal)
    requires old(j.RdI()) && j.rds == old(j.rds) && j.base == Over(old(j.base), old(j.cdm.m))
    requires (j.trims == old(j.trims) && old(j.cdm.m) == map[]) || j.trims as int == old(j.trims) as int + 1
    requires forall a :: old(j.Pending(a)) && a !in old(j.cdm.m) ==> j.Pending(a)
    ensures j.RdI()
  { reveal j.RdI(); }
}
