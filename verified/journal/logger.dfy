// The logger's steps without the mutex: it seals the frozen group, which becomes the last of the pending ones, writes
// its blocks and its descriptor to the log and its direct blocks home, and makes all pending groups durable with one
// barrier.
include "facts.dfy"

module JournalLogger {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened CodeLists
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened JournalFacts
  import opened TreeOfCodes

  // the pending group that is being written
  function Last(j: Journal): Pend requires j.logger.pending != [] reads j`logger, j.logger`pending {
    j.logger.pending[|j.logger.pending|-1]
  }
  // [F] seal the frozen group (no operation of the device)
  method LogEnc(j: Journal)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupFrozen
    modifies j.logger, j.seal, j.disk`ok, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures j.logger.phase == GroupWriting && j.logger.pending != [] && j.logger.blocksWritten == 0 &&
      j.logger.directWritten == 0 && !j.logger.descWritten
    ensures j.logger.directList != null && |j.logger.directList.addrs| == |j.logger.directList.blks|
  {
    reveal j.Inv();
    LogFacts(j);
    var ring, dir := j.logger.ring, j.logger.direct;
    ghost var g0 := j.protocol();
    var b, l, dl, c; ghost var e;
    b, l, dl, c, e := Encode(j, ring, dir);
    j.disk.SetOk(OkSet(j.layout, j.states, j.durableIndex, j.seal.signed));
    LogEncFields(j.logger, ring, dir, b, l, dl, c, e);
    assert j.protocol() == Started(g0, e.blocks, e.direct, e.desc, e.descBlock,
      Rec(e.descBlock, GroupBlks(e.blocks, e.direct, e.desc)));
    LogEncI(j, ring, dir, e);
    assert j.OwnerInv() by { reveal j.OwnerInv(); }
    HoldMore(j, g0, Rec(b.v, GroupBlks(e.blocks, e.direct, e.desc)));
  }
  lemma Listed(s: seq<Code>, m: BlockMap, home: int, key: int)
    requires m.Ok() && |s| == |m.addrs| && forall i :: 0 <= i < |s| ==> s[i].x == m.addrs[i] - home &&
      Vouches(key, s[i].x, s[i].c, m.m[m.addrs[i]])
    ensures CodesOf(s, m.m, home, key)
  {
    assert forall e :: e in s ==> e.x + home in m.m && Vouches(key, e.x, e.c, m.m[e.x + home]) by {
      forall e | e in s ensures e.x + home in m.m && Vouches(key, e.x, e.c, m.m[e.x + home]) {
        var i :| 0 <= i < |s| && s[i] == e;
        assert m.addrs[i] in m.addrs;
      }
    }
    assert forall a :: a in m.m ==> exists e :: e in s && e.x == a - home by {
      forall a | a in m.m ensures exists e :: e in s && e.x == a - home {
        var i :| 0 <= i < |m.addrs| && m.addrs[i] == a;
        assert s[i] in s && s[i].x == a - home;
      }
    }
    reveal CodesOf();
  }
  lemma JoinedOf(s: seq<Code>, m: BM, t: seq<Code>, h: BM, home: int, key: int)
    requires CodesOf(s, m, home, key) && CodesOf(t, h, home, key) && forall a :: a in h ==> a !in m
    ensures CodesOf(s + t, Overlaid(m, h), home, key)
  {
    reveal CodesOf();
    var u := s + t; var o := Overlaid(m, h);
    forall e | e in u ensures e.x + home in o && Vouches(key, e.x, e.c, o[e.x + home]) {
      if e in s { assert e.x + home in m; } else { assert e in t; }
    }
    forall a | a in o ensures exists e :: e in u && e.x == a - home {
      if a in h { var e :| e in t && e.x == a - home; assert e in u; } else {
        var e :| e in s && e.x == a - home; assert e in u;
      }
    }
  }
  // its descriptor, its blocks, the direct ones, and the codes of those of all pending groups; e: the pending group
  // that it becomes
  method Encode(j: Journal, ring: BlockMap, dir: BlockMap)
    returns (b: Blk, l: BList, dl: BList, c: Codes, ghost e: Pend)
    requires j.Inv() && j.logger.phase == GroupFrozen && ring == j.logger.ring && dir == j.logger.direct
    modifies j.seal
    ensures fresh(c) && CodesOf(c.s, Merge(DirectMaps(j.logger.pending + [e])), Home(j.layout), j.seal.key) &&
      e.descBlock == b.v && |b.v| == 4096 && j.seal.ep == old(j.seal.ep)
    ensures Is(e, ring, dir) && e.desc.pos == j.logger.endPos as int && l.addrs == ring.addrs &&
      l.blks == BlksOf(ring.m, ring.addrs) && KeepsAll(ring, l) && KeepsAll(dir, dl) &&
      Lists(dl, dir.m, Home(j.layout), |j.disk.cur|)
    ensures j.seal.signed == old(j.seal.signed) + {Rec(e.descBlock, GroupBlks(e.blocks, e.direct, e.desc))} &&
      DecDesc(b.v) == SomeDesc(e.desc)
    ensures var g1 := Started(old(j.protocol()), e.blocks, e.direct, e.desc, e.descBlock,
      Rec(e.descBlock, GroupBlks(e.blocks, e.direct, e.desc)));
      0 <= j.durableIndex && Full(j.disk.poss, g1) && AllAmong(g1, j.states, j.durableIndex, j.frozenIndex) &&
        DurState(g1) == DurState(old(j.protocol())) && forall s :: CrashImg(j.disk.poss, s) ==>
        s in OkSet(j.layout, j.states, j.durableIndex, j.seal.signed)
  {
    reveal j.Inv();
    ghost var g0 := j.protocol();
    LogFacts(j);
    SealedBelow(j.disk.poss, g0);
    dir.Distinct();
    FrozenFacts(j, ring, dir);
    var cs;
    b, cs := j.seal.Sign(j.nextSeq + j.logger.pendingCount, j.nextSeq, j.logger.endPos, ring, dir);
    Listed(cs.s, dir, Home(j.layout), j.seal.key);
    c := JoinCodes(j.logger.codes, cs);
    l := ring.List();
    dl := dir.Sorted();
    SortedLen(dl.addrs, j.size as int);
    e := Pend(ring.m, dir.m, DecDesc(b.v).d, b.v);
    JoinedOf(j.logger.codes.s, Merge(DirectMaps(g0.pending)), cs.s, dir.m, Home(j.layout), j.seal.key);
    HsMore(g0.pending, e);
    Sealing(j.disk.poss, g0, e, j.states, j.durableIndex, j.frozenIndex);
  }
  // e is made of the frozen group
  predicate Is(e: Pend, ring: BlockMap, dir: BlockMap) reads ring, dir {
    e.blocks == ring.m && e.direct == dir.m && e.desc.addrs == ring.addrs && e.desc.dirs == dir.addrs &&
      (forall i :: 0 <= i < |e.desc.addrs| ==> e.desc.addrs[i] in e.blocks) &&
      (forall i :: 0 <= i < |e.desc.dirs| ==> e.desc.dirs[i] in e.direct)
  }
  lemma HsMore(ps: seq<Pend>, e: Pend)
    ensures Merge(DirectMaps(ps + [e])) == Overlaid(Merge(DirectMaps(ps)), e.direct) &&
      Merge(BlockMaps(ps + [e])) == Overlaid(Merge(BlockMaps(ps)), e.blocks)
  {
    var qs := ps + [e];
    assert qs[..|qs|-1] == ps;
    assert DirectMaps(qs)[..|qs|-1] == DirectMaps(ps) && BlockMaps(qs)[..|qs|-1] == BlockMaps(ps);
  }
  // what the frozen group is, and has to do with the pending ones
  lemma FrozenFacts(j: Journal, ring: BlockMap, dir: BlockMap)
    requires j.LoggerInv() && j.logger.phase == GroupFrozen && ring == j.logger.ring && dir == j.logger.direct &&
      Full(j.disk.poss, j.protocol()) && j.LayoutInv() && j.nextSeq as int == End(j.protocol())
    ensures ring.Ok() && dir.Ok() && |ring.addrs| + |dir.addrs| <= 500 && ring != dir &&
      (forall a :: a in dir.m ==> j.seal.home <= a)
    ensures j.nextSeq as int + |j.logger.bodies| < 0x1FFF_FFFF_FFFF_FFFF && |j.logger.bodies| < Window
    ensures forall a :: a in dir.m ==> a !in Merge(DirectMaps(j.logger.pending))
  {
    LogFacts(j);
    FullD(j.disk.poss, j.protocol());
    forall a | a in dir.m ensures a !in Merge(DirectMaps(j.logger.pending)) {
      if a in Merge(DirectMaps(j.logger.pending)) {
        MergeKeys(DirectMaps(j.logger.pending), a);
        var i :| 0 <= i < |j.logger.pending| && a in DirectMaps(j.logger.pending)[i]; PendDirect(j.protocol(), i, a);
      }
    }
  }
  // what sealing means for the protocol's state
  lemma Sealing(poss: Poss, g0: Protocol, e: Pend, w: seq<St>, lb: int, cl: int)
    requires Full(poss, g0) && Ready(g0, e.blocks, e.direct) && |g0.pending| < Window &&
      GroupWf(g0.layout, e.blocks, e.direct, e.desc, End(g0) + |g0.pending|, |poss|) &&
      DecDesc(e.descBlock) == SomeDesc(e.desc)
    requires e.desc.pos == PendEnd(g0) && e.desc.dur <= End(g0) && |g0.groups| + |g0.pending| < g0.layout.units &&
      PendEnd(g0) + |e.desc.addrs| <= g0.logStart + g0.layout.ringSize
    requires AllAmong(g0, w, lb, cl) && 0 <= lb <= cl < |w| && w[lb] == DurState(g0)
    requires w[cl] == Over(Over(w[lb], Overlaid(Merge(DirectMaps(g0.pending)), e.direct)),
      Overlaid(Merge(BlockMaps(g0.pending)), e.blocks))
    requires End(g0) + |g0.pending| + 1 < 0x1FFF_FFFF_FFFF_FFFF && PendEnd(g0) + |e.desc.addrs| < 0x1FFF_FFFF_FFFF_0000
    ensures var g1 := Started(g0, e.blocks, e.direct, e.desc, e.descBlock,
      Rec(e.descBlock, GroupBlks(e.blocks, e.direct, e.desc)));
      Full(poss, g1) && AllAmong(g1, w, lb, cl) && DurState(g1) == DurState(g0) &&
        forall s :: CrashImg(poss, s) ==> s in OkSet(g1.layout, w, lb, g1.signed)
  {
    var g1 := Started(g0, e.blocks, e.direct, e.desc, e.descBlock,
      Rec(e.descBlock, GroupBlks(e.blocks, e.direct, e.desc)));
    StartPres(poss, g0, e.blocks, e.direct, e.desc, e.descBlock);
    assert DurState(g1) == DurState(g0);
    HsMore(g0.pending, e);
    FullD(poss, g1);
    ComAll(g1, |poss|);
    AmongStart(g0, g1, w, lb, cl);
    CrashAll(poss, g1, w, lb, cl);
  }
  method LogEncFields(lg: Logger, ring: BlockMap, dir: BlockMap, b: Blk, l: BList, dl: BList, c: Codes, ghost e: Pend)
    requires lg.endPos < 0x2000_0000_0000_0000 && lg.pendingCount < 0x2000_0000_0000_0000 && ring.Ok() &&
      Chain(lg.newest, lg.bodies, lg.maps)
    modifies lg
    ensures lg.pendingCount as int == old(lg.pendingCount) as int + 1 && lg.maps == old(lg.maps) + [ring, dir] &&
      Chain(lg.newest, lg.bodies, lg.maps)
    ensures lg.pending == old(lg.pending) + [e] && lg.bodies == old(lg.bodies) + [l] &&
      lg.endPos as int == old(lg.endPos) as int + |ring.addrs| && lg.codes == c && lg.ring == old(lg.ring) &&
      lg.direct == old(lg.direct)
    ensures lg.desc == b && lg.body == l && lg.directList == dl && lg.blocksWritten == 0 && lg.directWritten == 0 &&
      !lg.descWritten && lg.phase == GroupWriting && unchanged(lg`looked, lg`lookedAt)
  {
    var n := ring.Len();
    lg.newest := new InLog(l, ring, dir, lg.newest); lg.pendingCount := lg.pendingCount + 1;
    lg.pending := lg.pending + [e]; lg.bodies := lg.bodies + [l]; lg.maps := lg.maps + [ring, dir];
    lg.endPos := lg.endPos + n; lg.codes := c;
    lg.desc := b; lg.body := l; lg.directList := dl;
    lg.blocksWritten := 0; lg.directWritten := 0; lg.descWritten := false; lg.phase := GroupWriting;
  }
  // the logger's own steps
  twostate lemma LogEncI(j: Journal, ring: BlockMap, dir: BlockMap, e: Pend)
    requires old(j.LoggerInv()) && old(j.logger.phase) == GroupFrozen && ring == old(j.logger.ring) &&
      dir == old(j.logger.direct) && unchanged(ring, dir, j.frozen, j.frozenDirect) && j.frozen == old(j.frozen) &&
      j.frozenDirect == old(j.frozenDirect)
    requires j.logger.phase == GroupWriting && j.logger.blocksWritten == 0 && j.logger.directWritten == 0 &&
      !j.logger.descWritten && j.logger.desc != null && j.logger.body != null && j.logger.directList != null &&
      j.logger.desc.v == e.descBlock && |e.descBlock| == 4096
    requires j.logger.pending == old(j.logger.pending) + [e] &&
      j.logger.bodies == old(j.logger.bodies) + [j.logger.body] &&
      j.logger.endPos as int == old(j.logger.endPos) as int + |ring.addrs|
    requires j.logger.pendingCount as int == |j.logger.pending| &&
      Chain(j.logger.newest, j.logger.bodies, j.logger.maps) && j.logger.ring == ring && j.logger.direct == dir &&
      KeepsAll(ring, j.logger.body) && KeepsAll(dir, j.logger.directList)
    requires Is(e, ring, dir) && e.desc.pos == old(j.logger.endPos) as int && j.logger.body.addrs == ring.addrs &&
      j.logger.body.blks == BlksOf(ring.m, ring.addrs) &&
      Lists(j.logger.directList, dir.m, Home(j.layout), |j.disk.cur|)
    requires CodesOf(j.logger.codes.s, Merge(DirectMaps(j.logger.pending)), Home(j.layout), j.seal.key) &&
      unchanged(j.disk`cur, j.disk`poss, j.disk`bad)
    requires GeoOk(j.layout) && |j.disk.cur| == |j.disk.poss| >= Home(j.layout) &&
      j.protocol() == old(j.protocol()).(pending := j.logger.pending, signed := j.seal.signed)
    ensures j.LoggerInv()
  {
    reveal j.LoggerInv();
    assert old(j.FrozenParts(ring, dir));
    HsMore(old(j.logger.pending), e);
    forall i | 0 <= i < |j.logger.pending| ensures Body(j.logger.bodies[i], j.logger.pending[i]) {
      if i < |old(j.logger.pending)| { assert Body(old(j.logger.bodies)[i], old(j.logger.pending)[i]); }
    }
    if !j.disk.bad {
      forall i | 0 <= i < |j.logger.pending| - 1 ensures Written(j.layout, j.disk.cur, j.logger.pending[i]) {
        assert Written(j.layout, old(j.disk.cur), old(j.logger.pending)[i]);
      }
    }
  }
  // the new record's direct blocks are held
  twostate lemma HoldMore(j: Journal, g0: Protocol, rec: Rec)
    requires old(j.HeldInv()) && old(j.protocol()) == g0 && j.seal.signed == g0.signed + {rec} &&
      j.firstSeq as int == g0.firstSeq && j.installCount == g0.installCount && j.directs == g0.directs
    requires j.frozenDirect.m == old(j.frozenDirect.m) && j.loggedDirect.m == old(j.loggedDirect.m) &&
      j.installingDirect.m == old(j.installingDirect.m)
    requires DecDesc(rec.b).SomeDesc? && forall a :: a in DecDesc(rec.b).d.dirs ==> a in j.frozenDirect.m
    ensures j.HeldInv()
  {
    reveal j.HeldInv();
    forall a, q | Direct(j.seal.signed, q, a) ensures a in j.frozenDirect.m || Direct(g0.signed, q, a) {
      var r :| r in j.seal.signed && DirectOf(r, q, a);
      if r in g0.signed { assert DirectOf(r, q, a); } else { assert r == rec; }
    }
  }
  // [F] how many blocks of the group go to the log? Up to 15 fit its unit, behind the descriptor.
  method LogLen(j: Journal) returns (n: uint64)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupWriting
    ensures j.logger.pending != [] && n as int == |Last(j).desc.addrs|
  {
    reveal j.Inv(); LogFacts(j);
    n := j.logger.body.Len();
  }
  // what is to be written, and where
  lemma LastFacts(j: Journal)
    requires j.LoggerInv() && j.LayoutInv() && j.CounterInv() && Full(j.disk.poss, j.protocol()) &&
      j.logger.phase == GroupWriting && |j.disk.cur| == |j.disk.poss|
    ensures j.logger.pending != [] && var e := Last(j);
      PendWf(j.protocol(), e, End(j.protocol()) + |j.logger.pending| - 1, |j.disk.poss|) &&
      e.desc.sq == j.nextSeq as int + |j.logger.pending| - 1 && |e.desc.addrs| <= 500
    ensures var e := Last(j); j.logger.endPos as int == e.desc.pos + |e.desc.addrs| && 0 <= e.desc.pos
    ensures j.layout.units == j.units as int && j.layout.ringSize == j.ringSize as int &&
      j.layout.headerAt == j.headerAt as int && |j.logger.bodies| == |j.logger.pending|
  {
    LogFacts(j);
    PendFacts(j.disk.poss, j.protocol(), |j.logger.pending| - 1);
  }
  // [F] the descriptor and behind it the blocks of a small group, as one list, and what keeps them
  method UnitList(j: Journal) returns (l: BList, m: BlockMap, n: uint64)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && |Last(j).desc.addrs| <= 15
    ensures j.logger.desc != null && j.logger.body != null && n as int == |Last(j).desc.addrs| == |j.logger.body.blks|
    ensures fresh(m) && KeepsAll(m, l)
    ensures l.blks == [j.logger.desc.v] + j.logger.body.blks && forall i :: 0 <= i < |l.blks| ==> |l.blks[i]| == 4096
  {
    reveal j.Inv(); LogFacts(j);
    n := j.logger.body.Len();
    m := NewBlockMap();
    m.Put(0, j.logger.desc);
    ghost var want := [j.logger.desc.v] + j.logger.body.blks;
    var i: uint64 := 0;
    while i < n
      invariant i <= n && m.Ok() && fresh(m) && |m.addrs| == i as int + 1
      invariant forall k :: 0 <= k <= i as int ==> m.addrs[k] == k && k in m.m && m.m[k] == want[k]
      invariant forall k :: k in m.m ==> 0 <= k <= i as int
    {
      var b := j.logger.body.BlkAt(i, j.logger.ring);
      m.Put(i + 1, b);
      i := i + 1;
    }
    l := m.List();
    assert l.blks == want;
  }
  // what pending group y writes to the log, m blocks from its i-th on or its descriptor, is nothing of an earlier one,
  // x
  lemma PendNotIn(g: Protocol, n: int, x: int, y: int, i: int, m: int)
    requires GInv(g, n) && PInv(g) && 0 <= x < y < |g.pending| && Side(g.layout, g.pending[y].desc, i, m)
    ensures var d := g.pending[x].desc; var e := g.pending[y].desc; DSlot(g.layout, d.sq) != DSlot(g.layout, e.sq) &&
      !(DataBlock(g.layout, e, i) <= DSlot(g.layout, d.sq) < DataBlock(g.layout, e, i) + m)
    ensures var d := g.pending[x].desc; var e := g.pending[y].desc; forall k :: 0 <= k < |d.addrs| ==>
      !(DataBlock(g.layout, e, i) <= DataBlock(g.layout, d, k) < DataBlock(g.layout, e, i) + m) &&
      DSlot(g.layout, e.sq) != DataBlock(g.layout, d, k)
  {
    assert PendWf(g, g.pending[x], End(g) + x, n) && PendWf(g, g.pending[y], End(g) + y, n);
    var d := g.pending[x].desc; var e := g.pending[y].desc;
    UnitApart(g.layout, d.sq, e.sq);
    NotInDesc(g.layout, d.sq, e, i, m);
    forall k | 0 <= k < |d.addrs| ensures !(DataBlock(g.layout, e, i) <= DataBlock(g.layout, d, k) < DataBlock(g.layout,
      e, i) + m) && DSlot(g.layout, e.sq) != DataBlock(g.layout, d, k) {
      NotInData(g.layout, d, k, e, i, m);
    }
  }
  // c2 is c, but for what pending group y writes to the log: the others are as they were
  lemma WrittenLog(g: Protocol, n: int, x: int, y: int, i: int, m: int, c: Img, c2: Img)
    requires GInv(g, n) && PInv(g) && 0 <= x < y < |g.pending| && Side(g.layout, g.pending[y].desc, i, m) &&
      |c| == |c2| == n && Written(g.layout, c, g.pending[x])
    requires var e := g.pending[y].desc; forall a :: 0 <= a < n && a != DSlot(g.layout, e.sq) &&
      !(DataBlock(g.layout, e, i) <= a < DataBlock(g.layout, e, i) + m) ==> c2[a] == c[a]
    requires DataBlock(g.layout, g.pending[y].desc, i) + m <= Home(g.layout)
    ensures Written(g.layout, c2, g.pending[x])
  {
    PendNotIn(g, n, x, y, i, m);
    assert PendWf(g, g.pending[x], End(g) + x, n);
    forall k | 0 <= k < |g.pending[x].desc.addrs|
      ensures c2[DataBlock(g.layout, g.pending[x].desc, k)] == g.pending[x].blocks[g.pending[x].desc.addrs[k]] {
      assert c2[DataBlock(g.layout, g.pending[x].desc, k)] == c[DataBlock(g.layout, g.pending[x].desc, k)];
    }
    forall a | a in g.pending[x].direct ensures 0 <= a < n && c2[a] == g.pending[x].direct[a] {
      assert a in g.pending[x].desc.dirs;
    }
  }
  lemma OthersWritten(g: Protocol, n: int, y: int, i: int, m: int, c: Img, c2: Img)
    requires GInv(g, n) && PInv(g) && 0 <= y < |g.pending| && Side(g.layout, g.pending[y].desc, i, m) &&
      |c| == |c2| == n && forall x :: 0 <= x < y ==> Written(g.layout, c, g.pending[x])
    requires var e := g.pending[y].desc; forall a :: 0 <= a < n && a != DSlot(g.layout, e.sq) &&
      !(DataBlock(g.layout, e, i) <= a < DataBlock(g.layout, e, i) + m) ==> c2[a] == c[a]
    requires DataBlock(g.layout, g.pending[y].desc, i) + m <= Home(g.layout)
    ensures forall x :: 0 <= x < y ==> Written(g.layout, c2, g.pending[x])
  { forall x | 0 <= x < y ensures Written(g.layout, c2, g.pending[x]) { WrittenLog(g, n, x, y, i, m, c, c2); } }
  // [F] write a small group, all of it
  method LogWriteUnit(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupWriting && j.logger.blocksWritten == 0 &&
      j.logger.pending != [] && |Last(j).desc.addrs| <= 15
    modifies j.logger`blocksWritten, j.logger`descWritten, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures ok ==> j.logger.descWritten && j.logger.blocksWritten == |Last(j).desc.addrs|
    ensures !ok ==> j.disk.bad
  {
    assert j.LoggerInv() by { reveal j.Inv(); }
    var l, m, n := UnitList(j);
    DescReady(j); UnitReady(j); DiskFacts(j);
    var s := SlotOf(j.nextSeq + (j.logger.pendingCount - 1), j.units);
    Elsewhere(j.disk.owner, Logging, Installing, DSlot(j.layout, Last(j).desc.sq), 1 + n as int);
    ok := j.disk.WriteRun(Logging, j.headerAt + 1 + 16 * s, l, m, 0, 1 + n, null, null);
    m.Clear();
    if ok { j.logger.blocksWritten := n as int; j.logger.descWritten := true; }
    FullD(j.disk.poss, j.protocol());
    assert j.protocol() == old(j.protocol());
    UnitWroteI(j, l.blks, ok);
    Wrote(j);
  }
  // what Inv says of the device
  lemma DiskFacts(j: Journal)
    requires j.Inv()
    ensures j.disk.Valid() && GeoOk(j.layout) && Home(j.layout) <= |j.disk.cur| && Full(j.disk.poss, j.protocol()) &&
      j.layout.units == j.units as int && j.layout.headerAt == j.headerAt as int && j.home as int == Home(j.layout)
    ensures j.disk.guard == GuardOf(j.layout)
  { reveal j.Inv(); reveal j.LooksInv(); }
  // Inv after the logger has written to the device, and noted how much, if its own part of Inv holds
  twostate lemma Wrote(j: Journal)
    requires old(j.Inv()) && j.LoggerInv() && DiskKept(j.disk, Installing) && j.disk.Valid() &&
      Full(j.disk.poss, j.protocol()) && (old(j.disk.bad) ==> j.disk.bad)
    requires unchanged(j, j.installer, j.seal, j.cache, j.tree.pages, j.disk`owner, j.disk`ok, j.running, j.logged,
      j.frozen, j.frozenDirect, j.installing, j.loggedDirect, j.installingDirect)
    requires unchanged(j.logger`phase, j.logger`pending, j.logger`maps, j.logger`ring, j.logger`direct, j.logger`codes,
      j.logger`looked, j.logger`lookedAt, j.disk`guard)
    requires forall x :: 0 <= x < j.headerAt as int && x < |j.disk.cur| ==>
      j.disk.poss[x] == old(j.disk.poss)[x] && j.disk.cur[x] == old(j.disk.cur)[x]
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
  {
    reveal j.Inv();
    InsFrame(j); PagesFrame(j);
  }
  // what it means to write a small group
  lemma UnitReady(j: Journal)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && |Last(j).desc.addrs| <= 15 &&
      GeoOk(j.layout)
    ensures var a := DSlot(j.layout, Last(j).desc.sq); var n := 1 + |Last(j).desc.addrs|; 0 <= a &&
      a + n <= |j.disk.cur| == |j.disk.poss| && (forall x :: a <= x < a + n ==> Owns(j.disk.owner, Logging, x)) &&
      Full(Fuzzy(j.disk.poss, a, n), j.protocol()) && forall s :: CrashImg(Fuzzy(j.disk.poss, a, n), s) ==>
        s in j.disk.ok
  {
    reveal j.Inv(); LogFacts(j); LastFacts(j); OwnLog(j);
    var e := Last(j);
    UnitWritePres(j.disk.poss, j.protocol(), |j.logger.pending| - 1, e.desc);
    CrashAll(Fuzzy(j.disk.poss, DSlot(j.layout, e.desc.sq), 1 + |e.desc.addrs|), j.protocol(), j.states, j.durableIndex,
      j.frozenIndex);
  }
  twostate lemma UnitWroteI(j: Journal, blks: seq<BV>, ok: bool)
    requires old(j.LoggerInv()) && LogSame(j) && j.logger.directWritten == old(j.logger.directWritten) &&
      GInv(j.protocol(), |j.disk.cur|) && PInv(j.protocol())
    requires j.logger.body != null && j.logger.desc != null && |Last(j).desc.addrs| <= 15 &&
      blks == [j.logger.desc.v] + j.logger.body.blks
    requires if ok then j.logger.blocksWritten == |Last(j).desc.addrs| && j.logger.descWritten
      else j.logger.blocksWritten == old(j.logger.blocksWritten) && j.logger.descWritten == old(j.logger.descWritten)
    requires if ok then j.disk.bad == old(j.disk.bad) else j.disk.bad
    requires var a := DSlot(j.layout, Last(j).desc.sq);
      ok ==> (forall x :: a <= x < a + |blks| ==> 0 <= x < |j.disk.cur| ==> j.disk.cur[x] == blks[x - a]) &&
      forall x :: 0 <= x < |j.disk.cur| && !(a <= x < a + |blks|) ==> j.disk.cur[x] == old(j.disk.cur)[x]
    ensures j.LoggerInv()
  {
    reveal j.LoggerInv();
    var e := Last(j); var k := |j.logger.pending| - 1;
    if ok && !j.disk.bad {
      assert PendWf(j.protocol(), e, End(j.protocol()) + k, |j.disk.cur|);
      forall i | 0 <= i < j.logger.blocksWritten
        ensures j.disk.cur[DataBlock(j.layout, e.desc, i)] == j.logger.body.blks[i] {
        assert j.disk.cur[DataBlock(j.layout, e.desc, i)] == blks[1 + i];
      }
      forall x | 0 <= x < k ensures Written(j.layout, j.disk.cur, j.logger.pending[x]) {
        WrittenLog(j.protocol(), |j.disk.cur|, x, k, 0, |e.desc.addrs|, old(j.disk.cur), j.disk.cur);
      }
      forall i | 0 <= i < j.logger.directWritten
        ensures j.disk.cur[j.logger.directList.addrs[i]] == j.logger.directList.blks[i] {
        assert Home(j.layout) <= j.logger.directList.addrs[i];
      }
    }
  }
  // nothing of the logger's state has changed but how much is written
  twostate predicate LogSame(j: Journal)
    reads j, j.logger, j.installer, j.seal, j.disk, j.frozen, j.frozenDirect, j.logger.codes, j.logger.ring,
    j.logger.direct {
    old(j.logger.phase) == GroupWriting && j.logger.phase == GroupWriting && j.logger.pending != [] &&
      j.protocol() == old(j.protocol()) && j.frozen == old(j.frozen) && j.frozenDirect == old(j.frozenDirect) &&
      unchanged(j.frozen, j.frozenDirect) &&
    j.logger.pending == old(j.logger.pending) && j.logger.bodies == old(j.logger.bodies) &&
      j.logger.maps == old(j.logger.maps) && j.logger.newest == old(j.logger.newest) &&
      j.logger.pendingCount == old(j.logger.pendingCount) && j.logger.ring == old(j.logger.ring) &&
      j.logger.direct == old(j.logger.direct) && (j.logger.ring != null ==> unchanged(j.logger.ring)) &&
      (j.logger.direct != null ==> unchanged(j.logger.direct)) && j.logger.endPos == old(j.logger.endPos) &&
      j.logger.codes == old(j.logger.codes) && unchanged(j.logger.codes) &&
    j.logger.directList == old(j.logger.directList) && j.logger.desc == old(j.logger.desc) &&
      j.logger.body == old(j.logger.body) && j.seal == old(j.seal) &&
    GeoOk(j.layout) && |j.disk.cur| == |j.disk.poss| == |old(j.disk.cur)| && |j.disk.cur| >= Home(j.layout)
  }
  // what the logger owns
  lemma OwnLog(j: Journal)
    requires j.OwnerInv() && (j.logger.phase != NoLogger || j.logger.pending != [])
    ensures forall a :: j.layout.headerAt < a < Copy(j.layout) || a in j.frozenDirect.m ==>
      Owns(j.disk.owner, Logging, a)
  { reveal j.OwnerInv(); }
  // [F] where a larger group's blocks from the i-th on belong, as many as lie side by side
  method DataRun(j: Journal, i: uint64) returns (a: uint64, n: uint64)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] &&
      i as int == j.logger.blocksWritten < |Last(j).desc.addrs| && |Last(j).desc.addrs| > 15
    ensures GeoOk(j.layout) && 0 < n && i as int + n as int <= |Last(j).desc.addrs|
    ensures Side(j.layout, Last(j).desc, i as int, n as int) &&
      a as int == DataBlock(j.layout, Last(j).desc, i as int) && a as int + n as int < j.home as int
  {
    reveal j.Inv();
    LogFacts(j); LastFacts(j);
    var len := j.logger.body.Len();
    n := len - i;
    var s := SlotOf(j.logger.endPos - n, j.ringSize);
    assert j.logger.endPos as int - n as int == Last(j).desc.pos + i as int;
    if n > j.ringSize - s { n := j.ringSize - s; }
    a := j.headerAt + 1 + 16 * j.units + s;
  }
  // [F] write blocks of a larger group to the ring, from the i-th on as many as lie side by side
  method LogWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupWriting && j.logger.pending != [] &&
      i as int == j.logger.blocksWritten < |Last(j).desc.addrs| && |Last(j).desc.addrs| > 15
    modifies j.logger`blocksWritten, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.logger.blocksWritten <= |Last(j).desc.addrs|
    ensures !ok ==> j.disk.bad
  {
    assert j.LoggerInv() by { reveal j.Inv(); }
    var a;
    a, n := DataRun(j, i);
    DataReady(j, i as int, a as int, n as int); DiskFacts(j);
    Elsewhere(j.disk.owner, Logging, Installing, a as int, n as int);
    ok := j.disk.WriteRun(Logging, a, j.logger.body, j.logger.ring, i, n, null, null);
    if ok { j.logger.blocksWritten := j.logger.blocksWritten + n as int; }
    FullD(j.disk.poss, j.protocol());
    assert j.protocol() == old(j.protocol());
    LogWroteI(j, i as int, n as int, ok);
    Wrote(j);
  }
  // what it means to write n of its blocks to the ring, from the i-th on
  lemma DataReady(j: Journal, i: int, a: int, n: int)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.pending != [] && 0 <= i && 1 <= n &&
      i + n <= |Last(j).desc.addrs| && |Last(j).desc.addrs| > 15
    requires GeoOk(j.layout) && Side(j.layout, Last(j).desc, i, n) && a == DataBlock(j.layout, Last(j).desc, i) &&
      a + n < j.home as int
    ensures 0 <= a && a + n <= |j.disk.cur| == |j.disk.poss| && forall x :: a <= x < a + n ==>
      Owns(j.disk.owner, Logging, x)
    ensures j.logger.ring != null && j.logger.body != null && KeepsAll(j.logger.ring, j.logger.body)
    ensures |j.logger.body.blks| == |j.logger.body.addrs| == |Last(j).desc.addrs| <= 500 &&
      forall x :: i <= x < i + n ==> |j.logger.body.blks[x]| == 4096
    ensures Full(Fuzzy(j.disk.poss, a, n), j.protocol()) && forall s :: CrashImg(Fuzzy(j.disk.poss, a, n), s) ==>
      s in j.disk.ok
  {
    reveal j.Inv(); LogFacts(j); LastFacts(j); OwnLog(j);
    LogWritePres(j.disk.poss, j.protocol(), |j.logger.pending| - 1, i, n);
    CrashAll(Fuzzy(j.disk.poss, a, n), j.protocol(), j.states, j.durableIndex, j.frozenIndex);
  }
  twostate lemma LogWroteI(j: Journal, i: int, n: int, ok: bool)
    requires old(j.LoggerInv()) && LogSame(j) && j.logger.directWritten == old(j.logger.directWritten) &&
      j.logger.descWritten == old(j.logger.descWritten) && GInv(j.protocol(), |j.disk.cur|) && PInv(j.protocol())
    requires 0 <= i && 0 < n && i + n <= |Last(j).desc.addrs| <= 500 && i == old(j.logger.blocksWritten) &&
      j.logger.body != null && |j.logger.body.blks| == |Last(j).desc.addrs| > 15
    requires j.logger.blocksWritten == if ok then i + n else i
    requires Side(j.layout, Last(j).desc, i, n) && DataBlock(j.layout, Last(j).desc, i) + n <= Home(j.layout)
    requires if ok then j.disk.bad == old(j.disk.bad) else j.disk.bad
    requires var a := DataBlock(j.layout, Last(j).desc, i);
      ok ==> (forall x :: a <= x < a + n ==> 0 <= x < |j.disk.cur| ==>
      j.disk.cur[x] == j.logger.body.blks[i + (x - a)]) && forall x :: 0 <= x < |j.disk.cur| &&
      !(a <= x < a + n) ==> j.disk.cur[x] == old(j.disk.cur)[x]
    ensures j.LoggerInv()
  {
    reveal j.LoggerInv();
    if ok && !j.disk.bad {
      RingWrote(j.protocol(), |j.disk.cur|, |j.logger.pending| - 1, j.logger.body, j.logger.directList,
        j.logger.directWritten, j.logger.descWritten, old(j.disk.cur), j.disk.cur, i, n);
    }
  }
  // i blocks of the last pending group, k, were in the ring, and dn of its direct ones at home; now n blocks more are
  // in the ring
  lemma RingWrote(g: Protocol, sz: int, k: int, body: BList, dirs: BList, dn: int, wd: bool, c: Img, c2: Img, i: int,
    n: int)
    requires GInv(g, sz) && PInv(g) && 0 <= k == |g.pending| - 1 && |c| == |c2| == sz && 0 <= i && 0 < n &&
      i + n <= |body.blks| == |g.pending[k].desc.addrs| <= 500 && |g.pending[k].desc.addrs| > 15
    requires var e := g.pending[k]; Side(g.layout, e.desc, i, n) &&
      DataBlock(g.layout, e.desc, i) + n <= Home(g.layout) && Lists(dirs, e.direct, Home(g.layout), sz) &&
      0 <= dn <= |dirs.addrs|
    requires OnDisk(g, sz, k, body, dirs, i, dn, wd, c)
    requires var a := DataBlock(g.layout, g.pending[k].desc, i);
      (forall x :: a <= x < a + n ==> 0 <= x < sz ==> c2[x] == body.blks[i + (x - a)]) && forall x :: 0 <= x < sz &&
      !(a <= x < a + n) ==> c2[x] == c[x]
    ensures OnDisk(g, sz, k, body, dirs, i + n, dn, wd, c2)
  {
    var e := g.pending[k];
    assert PendWf(g, e, End(g) + k, sz);
    LogWritten(g.layout, e.desc, c2, body.blks, i, n);
    NotInDesc(g.layout, e.desc.sq, e.desc, i, n);
    OthersWritten(g, sz, k, i, n, c, c2);
    forall x | 0 <= x < dn ensures c2[dirs.addrs[x]] == dirs.blks[x] { assert Home(g.layout) <= dirs.addrs[x]; }
  }
  // ... this is there
  predicate OnDisk(g: Protocol, sz: int, k: int, body: BList, dirs: BList, wn: int, dn: int, wd: bool, c: Img)
    requires GInv(g, sz) && 0 <= k == |g.pending| - 1 && |c| == sz &&
      0 <= wn <= |body.blks| == |g.pending[k].desc.addrs| && Lists(dirs, g.pending[k].direct, Home(g.layout), sz) &&
      0 <= dn <= |dirs.addrs|
  {
    var e := g.pending[k];
    (forall x :: 0 <= x < wn ==> 0 <= DataBlock(g.layout, e.desc, x) < sz &&
      c[DataBlock(g.layout, e.desc, x)] == body.blks[x]) &&
      (forall x :: 0 <= x < dn ==> c[dirs.addrs[x]] == dirs.blks[x]) &&
    (wd ==> 0 <= DSlot(g.layout, e.desc.sq) < sz && c[DSlot(g.layout, e.desc.sq)] == e.descBlock) &&
      forall x :: 0 <= x < k ==> Written(g.layout, c, g.pending[x])
  }
  // [F] write direct blocks of the group home, from the i-th on as long as their addresses are adjacent
  method DirWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupWriting && j.logger.directList != null &&
      i as int == j.logger.directWritten < |j.logger.directList.addrs| && j.InTime(j.logger.looked, j.logger.reading)
    modifies j.logger`directWritten, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled, j.logger.reading
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.logger.directWritten <= |j.logger.directList.addrs|
    ensures !ok ==> j.disk.bad
  {
    assert j.LoggerInv() by { reveal j.Inv(); }
    var a;
    a, n := DirsAt(j, i);
    DirRun(j, i as int, a as int, n as int); DiskFacts(j);
    Elsewhere(j.disk.owner, Logging, Installing, a as int, n as int);
    reveal j.InTime();
    ok := j.disk.WriteRun(Logging, a, j.logger.directList, j.logger.direct, i, n, j.logger.looked, j.logger.reading);
    if ok { j.logger.directWritten := j.logger.directWritten + n as int; }
    FullD(j.disk.poss, j.protocol());
    assert j.protocol() == old(j.protocol());
    DirWroteI(j, a as int, n as int, ok);
    Wrote(j);
  }
  // where they go
  method DirsAt(j: Journal, i: uint64) returns (a: uint64, n: uint64)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.directList != null &&
      i as int < |j.logger.directList.addrs|
    ensures 0 < n && i as int + n as int <= |j.logger.directList.addrs| < 0x8_0000_0000_0000 &&
      forall y :: i as int <= y < i as int + n as int ==> j.logger.directList.addrs[y] == a as int + (y - i as int)
  {
    reveal j.Inv(); LogFacts(j);
    a, n := Adjacent(j.logger.directList, i);
  }
  // what it means to write home n of the direct blocks, from the i-th on
  lemma DirRun(j: Journal, i: int, a: int, n: int)
    requires j.Inv() && j.logger.phase == GroupWriting && j.logger.directList != null && 0 <= i && 1 <= n &&
      i + n <= |j.logger.directList.addrs|
    requires forall y :: i <= y < i + n ==> j.logger.directList.addrs[y] == a + (y - i)
    ensures j.logger.pending != [] && j.home as int <= a && a + n <= |j.disk.cur| == |j.disk.poss| &&
      forall x :: a <= x < a + n ==> Owns(j.disk.owner, Logging, x)
    ensures j.logger.direct != null && KeepsAll(j.logger.direct, j.logger.directList)
    ensures |j.logger.directList.blks| == |j.logger.directList.addrs| && forall x :: i <= x < i + n ==>
      |j.logger.directList.blks[x]| == 4096
    ensures Full(Fuzzy(j.disk.poss, a, n), j.protocol()) && forall s :: CrashImg(Fuzzy(j.disk.poss, a, n), s) ==>
      s in j.disk.ok
  {
    reveal j.Inv(); LogFacts(j); OwnLog(j);
    var k := |j.logger.pending| - 1;
    assert j.logger.directList.addrs[i + n - 1] == a + (n - 1) < |j.disk.cur|;
    assert Home(j.layout) <= j.logger.directList.addrs[i];
    forall x | a <= x < a + n ensures InPend(j.logger.pending, x) && x in j.frozenDirect.m {
      assert j.logger.directList.addrs[i + (x - a)] == x;
      assert x in j.logger.pending[k].direct;
      MergeHas(DirectMaps(j.logger.pending), k, x);
    }
    DirWritePres(j.disk.poss, j.protocol(), a, n);
    CrashAll(Fuzzy(j.disk.poss, a, n), j.protocol(), j.states, j.durableIndex, j.frozenIndex);
  }
  twostate lemma DirWroteI(j: Journal, a: int, n: int, ok: bool)
    requires old(j.LoggerInv()) && LogSame(j) && j.logger.descWritten == old(j.logger.descWritten) &&
      j.logger.blocksWritten == old(j.logger.blocksWritten) && GInv(j.protocol(), |j.disk.cur|) && PInv(j.protocol())
    requires 0 <= old(j.logger.directWritten) && 0 < n && j.logger.directList != null &&
      old(j.logger.directWritten) + n <= |j.logger.directList.addrs| == |j.logger.directList.blks|
    requires j.logger.directWritten == if ok then old(j.logger.directWritten) + n else old(j.logger.directWritten)
    requires Home(j.layout) <= a && a + n <= |j.disk.cur|
    requires forall y :: old(j.logger.directWritten) <= y < old(j.logger.directWritten) + n ==>
      j.logger.directList.addrs[y] == a + (y - old(j.logger.directWritten))
    requires if ok then j.disk.bad == old(j.disk.bad) else j.disk.bad
    requires ok ==> (forall x :: a <= x < a + n ==>
      j.disk.cur[x] == j.logger.directList.blks[old(j.logger.directWritten) + (x - a)]) &&
      forall x :: 0 <= x < |j.disk.cur| && !(a <= x < a + n) ==> j.disk.cur[x] == old(j.disk.cur)[x]
    ensures j.LoggerInv()
  {
    reveal j.LoggerInv();
    if ok && !j.disk.bad {
      DirsWrote(j.protocol(), |j.disk.cur|, |j.logger.pending| - 1, j.logger.body, j.logger.directList,
        j.logger.blocksWritten, j.logger.descWritten, old(j.disk.cur), j.disk.cur, old(j.logger.directWritten), n, a);
    }
  }
  // i direct blocks of the last pending group, k, were home, and wn of its blocks in the ring; now n direct blocks more
  // are home, from block a on
  lemma DirsWrote(g: Protocol, sz: int, k: int, body: BList, dirs: BList, wn: int, wd: bool, c: Img, c2: Img, i: int,
    n: int, a: int)
    requires GInv(g, sz) && PInv(g) && 0 <= k == |g.pending| - 1 && |c| == |c2| == sz && 0 <= i && 0 < n &&
      i + n <= |dirs.addrs| && Home(g.layout) <= a && a + n <= sz
    requires 0 <= wn <= |body.blks| == |g.pending[k].desc.addrs| &&
      Lists(dirs, g.pending[k].direct, Home(g.layout), sz)
    requires OnDisk(g, sz, k, body, dirs, wn, i, wd, c)
    requires forall y :: i <= y < i + n ==> dirs.addrs[y] == a + (y - i)
    requires (forall x :: a <= x < a + n ==> c2[x] == dirs.blks[i + (x - a)]) &&
      forall x :: 0 <= x < sz && !(a <= x < a + n) ==> c2[x] == c[x]
    ensures OnDisk(g, sz, k, body, dirs, wn, i + n, wd, c2)
  {
    var e := g.pending[k];
    assert PendWf(g, e, End(g) + k, sz);
    forall x | 0 <= x < i + n ensures c2[dirs.addrs[x]] == dirs.blks[x] {
      if x < i { assert dirs.addrs[x] < dirs.addrs[i] == a; } else { assert dirs.addrs[x] == a + (x - i); }
    }
    forall x | a <= x < a + n ensures x in e.direct { assert dirs.addrs[i + (x - a)] == x; }
    forall x | 0 <= x < wn ensures 0 <= DataBlock(g.layout, e.desc, x) < sz &&
      c2[DataBlock(g.layout, e.desc, x)] == body.blks[x] {
      assert DataBlock(g.layout, e.desc, x) < Home(g.layout);
    }
    forall x | 0 <= x < k ensures Written(g.layout, c2, g.pending[x]) { WrittenDir(g, sz, x, k, a, n, c, c2); }
  }
  // ... nor do its direct blocks
  lemma WrittenDir(g: Protocol, n: int, x: int, y: int, a: int, m: int, c: Img, c2: Img)
    requires GInv(g, n) && 0 <= x < y < |g.pending| && |c| == |c2| == n && Written(g.layout, c, g.pending[x]) &&
      Home(g.layout) <= a && forall z :: a <= z < a + m ==> z in g.pending[y].direct
    requires forall z :: 0 <= z < n && !(a <= z < a + m) ==> c2[z] == c[z]
    ensures Written(g.layout, c2, g.pending[x])
  {
    assert PendWf(g, g.pending[x], End(g) + x, n);
    forall z | z in g.pending[x].direct ensures 0 <= z < n && c2[z] == g.pending[x].direct[z] {
      if a <= z < a + m { reveal Free(); assert DirPend(g.pending, x, z) && DirPend(g.pending, y, z); }
    }
  }
  // [F] the descriptor of a larger group
  method LogWriteDesc(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupWriting
    modifies j.logger`descWritten, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures ok ==> j.logger.descWritten
    ensures !ok ==> j.disk.bad
  {
    assert j.LoggerInv() by { reveal j.Inv(); }
    DescReady(j); DiskFacts(j);
    var s := SlotOf(j.nextSeq + (j.logger.pendingCount - 1), j.units);
    Elsewhere(j.disk.owner, Logging, Installing, DSlot(j.layout, Last(j).desc.sq), 1);
    ok := j.disk.Write(Logging, j.headerAt + 1 + 16 * s, j.logger.desc, null, null);
    if ok { j.logger.descWritten := true; }
    FullD(j.disk.poss, j.protocol());
    assert j.protocol() == old(j.protocol());
    DescWroteI(j, ok);
    Wrote(j);
  }
  // what it means to write it
  lemma DescReady(j: Journal)
    requires j.Inv() && j.logger.phase == GroupWriting
    ensures j.logger.pending != [] && j.logger.desc != null && j.logger.desc.v == Last(j).descBlock &&
      |j.logger.desc.v| == 4096 && Last(j).desc.sq == j.nextSeq as int + j.logger.pendingCount as int - 1 &&
      0 < j.logger.pendingCount && GeoOk(j.layout)
    ensures j.nextSeq as int + j.logger.pendingCount as int < 0x2000_0000_0000_0000 &&
      j.layout.units == j.units as int && j.layout.headerAt == j.headerAt as int
    ensures var a := DSlot(j.layout, Last(j).desc.sq); 0 <= a < |j.disk.cur| == |j.disk.poss| &&
      Owns(j.disk.owner, Logging, a) && Full(Fuzzy(j.disk.poss, a, 1), j.protocol()) &&
      forall s :: CrashImg(Fuzzy(j.disk.poss, a, 1), s) ==> s in j.disk.ok
  {
    reveal j.Inv(); LogFacts(j); LastFacts(j); OwnLog(j);
    DescWritePres(j.disk.poss, j.protocol(), |j.logger.pending| - 1);
    CrashAll(Fuzzy(j.disk.poss, DSlot(j.layout, Last(j).desc.sq), 1), j.protocol(), j.states, j.durableIndex,
      j.frozenIndex);
  }
  // What else is on the device stays when the descriptor of the last pending group is written: its blocks, home blocks,
  // and other groups.
  lemma DescAlone(g: Protocol, c: Img, c2: Img)
    requires GeoOk(g.layout) && GInv(g, |c|) && PInv(g) && g.pending != [] && |c2| == |c| >= Home(g.layout)
    requires var a := DSlot(g.layout, g.pending[|g.pending| - 1].desc.sq); forall x :: 0 <= x < |c| &&
      x != a ==> c2[x] == c[x]
    ensures var d := g.pending[|g.pending| - 1].desc;
      forall i {:trigger DataBlock(g.layout, d, i)} :: 0 <= i < |d.addrs| ==>
      c2[DataBlock(g.layout, d, i)] == c[DataBlock(g.layout, d, i)]
    ensures forall x :: Home(g.layout) <= x < |c| ==> c2[x] == c[x]
    ensures (forall x :: 0 <= x < |g.pending| - 1 ==> Written(g.layout, c, g.pending[x])) ==>
      forall x :: 0 <= x < |g.pending| - 1 ==> Written(g.layout, c2, g.pending[x])
  {
    var k := |g.pending| - 1; var e := g.pending[k];
    assert PendWf(g, e, End(g) + k, |c|);
    forall i | 0 <= i < |e.desc.addrs| ensures c2[DataBlock(g.layout, e.desc, i)] == c[DataBlock(g.layout, e.desc, i)] {
      DescApart(g.layout, e.desc, i);
    }
    if forall x :: 0 <= x < k ==> Written(g.layout, c, g.pending[x]) { OthersWritten(g, |c|, k, 0, 0, c, c2); }
  }
  lemma DescApart(p: Geo, d: Desc, i: int)
    requires GeoOk(p) && 0 <= i
    ensures DataBlock(p, d, i) != DSlot(p, d.sq)
  { }
  twostate lemma DescWroteI(j: Journal, ok: bool)
    requires old(j.LoggerInv()) && LogSame(j) && j.logger.blocksWritten == old(j.logger.blocksWritten) &&
      j.logger.directWritten == old(j.logger.directWritten) && GInv(j.protocol(), |j.disk.cur|) && PInv(j.protocol())
    requires j.logger.descWritten == (ok || old(j.logger.descWritten)) && if ok then j.disk.bad == old(j.disk.bad)
      else j.disk.bad
    requires var a := DSlot(j.layout, Last(j).desc.sq); ok ==> j.disk.cur[a] == Last(j).descBlock &&
      forall x :: 0 <= x < |j.disk.cur| && x != a ==> j.disk.cur[x] == old(j.disk.cur)[x]
    ensures j.LoggerInv()
  {
    reveal j.LoggerInv();
    if ok && !j.disk.bad {
      DescWrote(j.protocol(), |j.disk.cur|, |j.logger.pending| - 1, j.logger.body, j.logger.directList,
        j.logger.blocksWritten, j.logger.directWritten, old(j.logger.descWritten), old(j.disk.cur), j.disk.cur);
    }
  }
  // wn blocks of the last pending group, k, were in the ring, and dn of its direct ones home; now its descriptor is in
  // its slot
  lemma DescWrote(g: Protocol, sz: int, k: int, body: BList, dirs: BList, wn: int, dn: int, wd: bool, c: Img, c2: Img)
    requires GeoOk(g.layout) && GInv(g, sz) && PInv(g) && 0 <= k == |g.pending| - 1 && |c| == |c2| == sz &&
      Home(g.layout) <= sz
    requires 0 <= wn <= |body.blks| == |g.pending[k].desc.addrs| &&
      Lists(dirs, g.pending[k].direct, Home(g.layout), sz) && 0 <= dn <= |dirs.addrs|
    requires OnDisk(g, sz, k, body, dirs, wn, dn, wd, c)
    requires var a := DSlot(g.layout, g.pending[k].desc.sq); c2[a] == g.pending[k].descBlock &&
      forall x :: 0 <= x < sz && x != a ==> c2[x] == c[x]
    ensures OnDisk(g, sz, k, body, dirs, wn, dn, true, c2)
  {
    var e := g.pending[k];
    assert PendWf(g, e, End(g) + k, sz);
    DescAlone(g, c, c2);
    forall x | 0 <= x < wn ensures 0 <= DataBlock(g.layout, e.desc, x) < sz &&
      c2[DataBlock(g.layout, e.desc, x)] == body.blks[x] {
      assert c2[DataBlock(g.layout, e.desc, x)] == c[DataBlock(g.layout, e.desc, x)];
    }
    forall x | 0 <= x < dn ensures c2[dirs.addrs[x]] == dirs.blks[x] { assert Home(g.layout) <= dirs.addrs[x]; }
  }
  // [F] the last pending group is written (no operation of the device)
  method LogWrote(j: Journal)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupWriting && j.logger.pending != [] &&
      j.logger.descWritten && j.logger.blocksWritten == |Last(j).desc.addrs| && j.logger.directList != null &&
      j.logger.directWritten == |j.logger.directList.addrs|
    modifies j.logger`phase, j.logger`ring, j.logger`direct, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono() && j.logger.phase == GroupsWritten
  {
    reveal j.Inv();
    LastWritten(j);
    j.logger.phase := GroupsWritten; j.logger.ring := null; j.logger.direct := null;
    AllWritten(j);
    assert j.OwnerInv() by { reveal j.OwnerInv(); }
  }
  lemma LastWritten(j: Journal)
    requires j.LoggerInv() && j.logger.phase == GroupWriting && j.logger.pending != [] && j.logger.descWritten &&
      j.logger.blocksWritten == |Last(j).desc.addrs| && j.logger.directList != null &&
      j.logger.directWritten == |j.logger.directList.addrs| && GeoOk(j.layout) && |j.disk.cur| >= Home(j.layout)
    ensures !j.disk.bad ==> Written(j.layout, j.disk.cur, Last(j))
  {
    reveal j.LoggerInv();
    var e := Last(j);
    if !j.disk.bad {
      forall a | a in e.direct ensures 0 <= a < |j.disk.cur| && j.disk.cur[a] == e.direct[a] {
        assert a in j.logger.directList.addrs;
        var i :| 0 <= i < |j.logger.directList.addrs| && j.logger.directList.addrs[i] == a;
      }
      assert Body(j.logger.body, e);
    }
  }
  twostate lemma AllWritten(j: Journal)
    requires old(j.LoggerInv()) && old(j.logger.phase) == GroupWriting && j.logger.phase == GroupsWritten &&
      unchanged(j.logger`pending, j.logger`bodies, j.logger`maps, j.logger`newest, j.logger`pendingCount,
      j.logger`endPos, j.logger`codes, j.frozen, j.frozenDirect, j.logger.codes, j.disk, j.seal) &&
      j.frozen == old(j.frozen) && j.frozenDirect == old(j.frozenDirect) && j.protocol() == old(j.protocol())
    requires j.logger.ring == null && j.logger.direct == null
    requires j.logger.pending != [] && GeoOk(j.layout) && |j.disk.cur| >= Home(j.layout) &&
      (!j.disk.bad ==> Written(j.layout, j.disk.cur, Last(j)))
    ensures j.LoggerInv()
  { reveal j.LoggerInv(); }
  // [F] the barrier for all pending groups
  method LogBarrier(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.logger && j.logger.phase == GroupsWritten
    modifies j.logger`phase, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsInstaller() && j.Mono()
    ensures j.logger.phase == if ok then GroupsDurable else GroupsWritten
    ensures old(j.disk.bad) ==> !ok       // once the device has failed, nothing more becomes durable
    ensures !ok ==> j.disk.bad
  {
    reveal j.Inv();
    LogFacts(j);
    ghost var P := j.disk.poss;
    ok := j.disk.Barrier(Logging);
    BarrierPres(j.disk.poss, P, j.protocol());
    LogFrame(j);
    if ok {
      LogDone(j);
      j.logger.phase := GroupsDurable;
      LogDoneI(j);
      assert j.OwnerInv() by { reveal j.OwnerInv(); }
    }
    InsFrame(j); PagesFrame(j);
  }
  // all pending groups are written, and what the logger owns is durable
  lemma LogDone(j: Journal)
    requires j.LoggerInv() && j.OwnerInv() && j.logger.phase == GroupsWritten && !j.disk.bad &&
      Full(j.disk.poss, j.protocol())
    requires |j.disk.poss| == |j.disk.cur| && forall a :: 0 <= a < |j.disk.cur| &&
      Owns(j.disk.owner, Logging, a) ==> j.disk.poss[a] == iset{j.disk.cur[a]}
    ensures AllHome(j.disk.poss, j.protocol())
  {
    var g := j.protocol();
    assert g.pending == j.logger.pending && GeoOk(g.layout) && |j.disk.poss| >= Home(g.layout) by {
      reveal j.LoggerInv(); FullD(j.disk.poss, g);
    }
    forall i | 0 <= i < |g.pending| ensures PendLogged(j.disk.poss, g, g.pending[i], End(g) + i) { PendDone(j, i); }
  }
  // so is each of them
  lemma PendDone(j: Journal, i: int)
    requires j.LoggerInv() && j.OwnerInv() && j.logger.phase == GroupsWritten && !j.disk.bad &&
      Full(j.disk.poss, j.protocol()) && 0 <= i < |j.logger.pending|
    requires |j.disk.poss| == |j.disk.cur| && forall a :: 0 <= a < |j.disk.cur| &&
      Owns(j.disk.owner, Logging, a) ==> j.disk.poss[a] == iset{j.disk.cur[a]}
    requires GeoOk(j.layout) && |j.disk.poss| >= Home(j.layout) && j.protocol().layout == j.layout
    ensures PendLogged(j.disk.poss, j.protocol(), j.logger.pending[i], End(j.protocol()) + i)
  {
    reveal j.LoggerInv(); OwnLog(j); FullD(j.disk.poss, j.protocol());
    var g, e := j.protocol(), j.logger.pending[i];
    var sq := End(g) + i;
    assert Written(j.layout, j.disk.cur, e) && PendWf(g, e, sq, |j.disk.poss|);
    assert j.disk.poss[DSlot(j.layout, sq)] == iset{e.descBlock};
    forall k | 0 <= k < |e.desc.addrs|
      ensures j.disk.poss[DataBlock(j.layout, e.desc, k)] <= iset{e.blocks[e.desc.addrs[k]]} {
      assert j.disk.poss[DataBlock(j.layout, e.desc, k)] == iset{j.disk.cur[DataBlock(j.layout, e.desc, k)]};
    }
    assert Logged(j.disk.poss, g, e.blocks, e.direct, e.desc, sq);
    forall a | a in e.direct ensures 0 <= a < |j.disk.poss| && j.disk.poss[a] <= iset{e.direct[a]} {
      MergeHas(DirectMaps(j.logger.pending), i, a); assert Owns(j.disk.owner, Logging, a);
    }
    assert DirHome(j.disk.poss, e.direct);
  }
  twostate lemma LogDoneI(j: Journal)
    requires old(j.LoggerInv()) && old(j.logger.phase) == GroupsWritten && j.logger.phase == GroupsDurable &&
      unchanged(j.logger`pending, j.logger`bodies, j.logger`maps, j.logger`newest, j.logger`pendingCount, j.logger`ring,
      j.logger`direct, j.logger`endPos, j.logger`codes, j.frozen, j.frozenDirect, j.logger.codes, j.seal) &&
      j.frozen == old(j.frozen) && j.frozenDirect == old(j.frozenDirect) && j.protocol() == old(j.protocol())
    requires |j.disk.cur| == |j.disk.poss| == |old(j.disk.cur)| && GeoOk(j.layout) && |j.disk.cur| >= Home(j.layout) &&
      AllHome(j.disk.poss, j.protocol()) && j.disk.cur == old(j.disk.cur) && (!j.disk.bad ==> !old(j.disk.bad))
    ensures j.LoggerInv()
  { reveal j.LoggerInv(); }
}
