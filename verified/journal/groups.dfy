// What the steps of the journal share and what is not about its fields: the images a crash
// may leave, maps of blocks that are merged or split in two, lists of blocks in the order of
// their addresses, and facts about the protocol's state.
include "crashes.dfy"
include "../trusted/blockmap.s.dfy"

module Groups {
  import opened Machine
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened LogCrashes

  function {:opaque} OkSet(p: Geo, vs: seq<St>, lb: int, sg: set<Rec>): iset<Img> requires 0 <= lb {
    iset s: Img | exists n :: lb <= n < |vs| && RecOK(p, s, vs[n], sg)
  }
  predicate InHome(home: int, m: BM, n: int) { forall a :: a in m ==> home <= a < n }

  // x is one of the states from lb to cl
  predicate Among(vs: seq<St>, lb: int, cl: int, x: St) { exists n :: 0 <= lb <= n <= cl < |vs| && vs[n] == x }
  // each state that a crash may leave of the pending groups is
  predicate {:opaque} AllAmong(g: Protocol, vs: seq<St>, lb: int, cl: int) {
    forall j :: 0 <= j <= |g.pending| ==> Among(vs, lb, cl, PState(g, j))
  }
  lemma CrashAll(poss: Poss, g: Protocol, vs: seq<St>, lb: int, cl: int)
    requires Full(poss, g) && 0 <= lb <= cl < |vs| && AllAmong(g, vs, lb, cl) &&
      End(g) + |g.pending| < 0x1FFF_FFFF_FFFF_FFFF && PendEnd(g) < 0x1FFF_FFFF_FFFF_0000
    ensures forall s :: CrashImg(poss, s) ==> s in OkSet(g.layout, vs, lb, g.signed)
  {
    reveal OkSet(); reveal AllAmong();
    forall s | CrashImg(poss, s) ensures s in OkSet(g.layout, vs, lb, g.signed) {
      var j := CrashLemma(poss, g, s);
      assert Among(vs, lb, cl, PState(g, j));
      var n :| 0 <= lb <= n <= cl < |vs| && vs[n] == PState(g, j);
      assert RecOK(g.layout, s, vs[n], g.signed);
    }
  }
  lemma AmongMore(g: Protocol, vs: seq<St>, lb: int, cl: int, vs2: seq<St>, cl2: int)
    requires AllAmong(g, vs, lb, cl) && cl <= cl2 < |vs2| && |vs| <= |vs2| && forall i :: 0 <= i < |vs| ==>
      vs2[i] == vs[i]
    ensures AllAmong(g, vs2, lb, cl2)
  {
    reveal AllAmong();
    forall j | 0 <= j <= |g.pending| ensures Among(vs2, lb, cl2, PState(g, j)) {
      assert Among(vs, lb, cl, PState(g, j));
      var n :| 0 <= lb <= n <= cl < |vs| && vs[n] == PState(g, j);
      assert vs2[n] == PState(g, j);
    }
  }
  // none is pending: the durable state
  lemma AmongNone(g: Protocol, vs: seq<St>, lb: int)
    requires g.pending == [] && 0 <= lb < |vs| && vs[lb] == DurState(g)
    ensures AllAmong(g, vs, lb, lb)
  {
    reveal AllAmong(); PStates(g);
    forall j | 0 <= j <= |g.pending| ensures Among(vs, lb, lb, PState(g, j)) { assert vs[lb] == PState(g, 0); }
  }
  // the group that is sealed, after those that are pending
  lemma AmongStart(g: Protocol, g2: Protocol, vs: seq<St>, lb: int, cl: int)
    requires AllAmong(g, vs, lb, cl) && 0 <= cl < |vs| && |g2.pending| == |g.pending| + 1 &&
      g2.pending[..|g.pending|] == g.pending && g2.base == g.base && g2.groups == g.groups && vs[cl] == ComState(g2)
    ensures AllAmong(g2, vs, lb, cl)
  {
    reveal AllAmong(); PStates(g2);
    forall j | 0 <= j <= |g2.pending| ensures Among(vs, lb, cl, PState(g2, j)) {
      if j <= |g.pending| { StartState(g, g2, j); assert Among(vs, lb, cl, PState(g, j)); }
      else { assert Among(vs, lb, cl, PState(g, 0)); assert vs[cl] == PState(g2, j); }
    }
  }
  // all pending groups are durable
  function AllFinished(g: Protocol): Protocol decreases |g.pending| {
    if g.pending == [] then g else AllFinished(Finished(g))
  }
  // an empty log; the tree with the root r says v
  function G0(p: Geo, sg: set<Rec>, q: int, v: St, r: CV): Protocol {
    Protocol(p, sg, q, [], [], [], 0, [], v, map[], NoInstall, 0, 0, 0, r, v, r, v, p.torn)
  }
  lemma PendFacts(poss: Poss, g: Protocol, j: int)
    requires Full(poss, g) && 0 <= j < |g.pending|
    ensures PendWf(g, g.pending[j], End(g) + j, |poss|)
  { reveal Full(); }
  method MergeInto(dst: BlockMap, src: BlockMap)
    requires dst != src && dst.Ok() && src.Ok()
    requires |dst.addrs| + |src.addrs| < 0x4_0000_0000_0000
    modifies dst
    ensures dst.Ok() && dst.m == Overlaid(old(dst.m), src.m) && |dst.addrs| <= |old(dst.addrs)| + |src.addrs|
  {
    var n := src.Len();
    var i: uint64 := 0;
    while i < n
      invariant 0 <= i <= n && dst.Ok() && |dst.addrs| <= |old(dst.addrs)| + i as int
      invariant forall a :: a in old(dst.m) ==> a in dst.m
      invariant forall a :: a in dst.m ==> a in old(dst.m) || a in src.m
      invariant forall j :: 0 <= j < i as int ==> src.addrs[j] in dst.m
      invariant forall a :: a in dst.m ==> if a in src.addrs[..i as int] then a in src.m && dst.m[a] == src.m[a]
                                           else a in old(dst.m) && dst.m[a] == old(dst.m)[a]
    {
      var a := src.AddrAt(i);
      var b := src.BlkAt(i);
      assert src.addrs[..i as int + 1] == src.addrs[..i as int] + [src.addrs[i as int]];
      dst.Put(a, b);
      i := i + 1;
    }
    assert src.addrs[..n as int] == src.addrs;
  }

  // what finishing all pending groups means
  lemma FinishAll(poss: Poss, g: Protocol)
    requires Full(poss, g) && AllHome(poss, g)
    requires End(g) + |g.pending| < 0x1FFF_FFFF_FFFF_FFFF && PendEnd(g) < 0x1FFF_FFFF_FFFF_0000
    ensures Full(poss, AllFinished(g)) && DurState(AllFinished(g)) == ComState(g) && AllFinished(g) == Flat(g)
    decreases |g.pending|
  {
    if g.pending == [] {
      PStates(g);
      assert Over(g.base, map[]) == g.base && g.torn - {} == g.torn;
    } else {
      FullD(poss, g);
      var g1 := Finished(g);
      FirstHome(poss, g);
      FinishPres(poss, g);
      RestHome(poss, g);
      FinishAll(poss, g1);
      FinishedMore(g, g1, AllFinished(g));
    }
  }
  // all pending groups are where they belong
  predicate AllHome(poss: Poss, g: Protocol) {
    GeoOk(g.layout) && |poss| >= Home(g.layout) && forall j :: 0 <= j < |g.pending| ==>
      PendLogged(poss, g, g.pending[j], End(g) + j)
  }
  predicate PendLogged(poss: Poss, g: Protocol, e: Pend, sq: int) requires GeoOk(g.layout) && |poss| >= Home(g.layout) {
    Logged(poss, g, e.blocks, e.direct, e.desc, sq) && DirHome(poss, e.direct)
  }
  lemma FirstHome(poss: Poss, g: Protocol)
    requires AllHome(poss, g) && g.pending != [] && DInv(poss, g) && PInv(g)
    ensures Logged(poss, g, g.pending[0].blocks, g.pending[0].direct, g.pending[0].desc, End(g)) &&
      DirHome(poss, g.pending[0].direct) && g.pending[0].desc.pos <= PendEnd(g)
  { assert PendLogged(poss, g, g.pending[0], End(g) + 0); }
  lemma RestHome(poss: Poss, g: Protocol)
    requires AllHome(poss, g) && g.pending != []
    ensures AllHome(poss, Finished(g))
  {
    var g1 := Finished(g);
    forall j | 0 <= j < |g1.pending| ensures PendLogged(poss, g1, g1.pending[j], End(g1) + j) {
      assert g1.pending[j] == g.pending[j + 1] && End(g1) + j == End(g) + (j + 1);
      assert PendLogged(poss, g, g.pending[j + 1], End(g) + (j + 1));
      LoggedSg(poss, g, g1, g1.pending[j].blocks, g1.pending[j].direct, g1.pending[j].desc, End(g1) + j);
    }
  }
  function DescsOf(ps: seq<Pend>): (r: seq<Desc>) ensures |r| == |ps| && forall i :: 0 <= i < |ps| ==>
    r[i] == ps[i].desc {
    if ps == [] then [] else DescsOf(ps[..|ps|-1]) + [ps[|ps|-1].desc]
  }
  // g with all pending groups durable, at once
  function Flat(g: Protocol): Protocol {
    g.(pending := [], groups := g.groups + BlockMaps(g.pending), directs := g.directs + DirectMaps(g.pending),
      descs := g.descs + DescsOf(g.pending), base := Over(g.base, Merge(DirectMaps(g.pending))), logEnd := PendEnd(g),
      torn := g.torn - Merge(DirectMaps(g.pending)).Keys)
  }
  lemma FinishedMore(g: Protocol, g1: Protocol, g2: Protocol)
    requires g.pending != [] && g1 == Finished(g) && g2 == Flat(g1) && PendEnd(g1) == PendEnd(g)
    ensures g2 == Flat(g)
  {
    var e := g.pending[0]; var t := g.pending[1..];
    ListsOfFirst(g.pending);
    MergeFirst(e.direct, DirectMaps(t));
    Appended(g.groups, e.blocks, BlockMaps(t));
    Appended(g.directs, e.direct, DirectMaps(t));
    Appended(g.descs, e.desc, DescsOf(t));
    OverOv(g.base, e.direct, Merge(DirectMaps(t)));
    LessBoth(g.torn, e.direct, Merge(DirectMaps(t)));
  }
  // what the groups hold, the first one before the others
  lemma ListsOfFirst(ps: seq<Pend>)
    requires ps != []
    ensures BlockMaps(ps) == [ps[0].blocks] + BlockMaps(ps[1..])
    ensures DirectMaps(ps) == [ps[0].direct] + DirectMaps(ps[1..])
    ensures DescsOf(ps) == [ps[0].desc] + DescsOf(ps[1..])
  {
    FirstAndRest(BlockMaps(ps), BlockMaps(ps[1..]));
    FirstAndRest(DirectMaps(ps), DirectMaps(ps[1..]));
    FirstAndRest(DescsOf(ps), DescsOf(ps[1..]));
  }
  lemma FirstAndRest<T>(s: seq<T>, t: seq<T>)
    requires |s| == |t| + 1 && forall i :: 0 <= i < |t| ==> t[i] == s[i + 1]
    ensures s == [s[0]] + t
  {}
  lemma MergeFirst(m: BM, ms: seq<BM>)
    ensures Merge([m] + ms) == Overlaid(m, Merge(ms))
  {
    MergeCat([m], ms);
    assert [m][..0] == []; assert Overlaid(map[], m) == m;
  }
  lemma Appended<T>(s: seq<T>, x: T, t: seq<T>)
    ensures s + ([x] + t) == s + [x] + t
  {}
  lemma LessBoth(s: set<int>, x: BM, y: BM)
    ensures s - Overlaid(x, y).Keys == s - x.Keys - y.Keys
  {}
  lemma TailMerge(g: Protocol, g1: Protocol)
    requires 0 <= g.installCount <= |g.groups| && g1 == Flat(g)
    ensures Merge(g1.groups[g1.installCount..]) == Overlaid(Merge(g.groups[g.installCount..]),
      Merge(BlockMaps(g.pending))) && g1.groups[..g1.installCount] == g.groups[..g.installCount]
  {
    assert g1.groups[g1.installCount..] == g.groups[g.installCount..] + BlockMaps(g.pending);
    MergeCat(g.groups[g.installCount..], BlockMaps(g.pending));
  }
  method MergeOrSwap(dst: BlockMap, src: BlockMap) returns (r: BlockMap)
    requires dst != src && dst.Ok() && src.Ok()
    requires |dst.addrs| + |src.addrs| < 0x4_0000_0000_0000
    modifies dst
    ensures r == dst || (r == src && dst.m == old(dst.m) && dst.Ok())
    ensures r.Ok() && r.m == Overlaid(old(dst.m), src.m) && |r.addrs| <= |old(dst.addrs)| + |src.addrs|
  {
    var l := dst.Len();
    if l == 0 { assert dst.m == map[]; r := src; } else { MergeInto(dst, src); r := dst; }
  }

  // the n adjacent blocks that start with the i-th
  method Adjacent(l: BList, i: uint64) returns (a: uint64, n: uint64)
    requires |l.blks| == |l.addrs| < 0x8_0000_0000_0000 && i as int < |l.addrs|
    requires forall x :: 0 <= x < |l.addrs| ==> l.addrs[x] < 0x8_0000_0000_0000
    ensures 1 <= n <= 512 && i as int + n as int <= |l.addrs|
    ensures forall y :: i as int <= y < i as int + n as int ==> l.addrs[y] == a as int + (y - i as int)
  {
    var len := l.Len();
    a := l.AddrAt(i);
    n := 1;
    while i + n < len && n < 512
      invariant 1 <= n <= 512 && i as int + n as int <= len as int
      invariant forall y :: i as int <= y < i as int + n as int ==> l.addrs[y] == a as int + (y - i as int)
    {
      var b := l.AddrAt(i + n);
      if b != a + n { break; }
      n := n + 1;
    }
  }
  predicate SameForLog(a: Protocol, b: Protocol) {
    a.layout == b.layout && a.signed == b.signed && a.pending == b.pending && End(a) == End(b) &&
      a.logEnd == b.logEnd &&
    |b.groups| <= |a.groups| && (b.groups == a.groups || b.groups == a.groups[|a.groups| - |b.groups|..]) &&
      a.logStart <= b.logStart && DurState(a) == DurState(b)
  }
  lemma ReadyKeep(a: Protocol, b: Protocol, m: BM, h: BM)
    requires SameForLog(a, b) && Ready(a, m, h)
    ensures Ready(b, m, h)
  {
    assert a.firstSeq <= b.firstSeq;
    forall x | Direct(b.signed, b.firstSeq, x) ensures Direct(a.signed, a.firstSeq, x) {
      DirectFrom(a.signed, a.firstSeq, b.firstSeq, x);
    }
    forall i, x | 0 <= i < |b.groups| && x in b.groups[i] ensures x !in h {
      assert x in a.groups[|a.groups| - |b.groups| + i];
    }
    forall x | x in h ensures FreeAll(b, x) { FreeAllKeep(a, b, x); }
  }
  lemma FreeAllKeep(a: Protocol, b: Protocol, x: int)
    requires SameForLog(a, b) && FreeAll(a, x)
    ensures FreeAll(b, x)
  {
    reveal FreeAll();
    forall i | 0 <= i <= |b.pending| ensures FreeIn(b.layout, PState(b, i), x) {
      assert PState(b, i) == PState(a, i) by { reveal PState(); } assert FreeIn(a.layout, PState(a, i), x);
    }
  }
  lemma AmongKeep(a: Protocol, b: Protocol, vs: seq<St>, lb: int, cl: int)
    requires SameForLog(a, b) && AllAmong(a, vs, lb, cl)
    ensures AllAmong(b, vs, lb, cl)
  {
    reveal AllAmong();
    forall j | 0 <= j <= |b.pending| ensures Among(vs, lb, cl, PState(b, j)) {
      assert PState(b, j) == PState(a, j) by { reveal PState(); } assert Among(vs, lb, cl, PState(a, j));
    }
  }
  predicate SameForIns(a: Protocol, b: Protocol) {
    a.layout == b.layout && a.phase == b.phase && a.installBlocks == b.installBlocks && a.firstSeq == b.firstSeq &&
      a.installCount == b.installCount
  }
  lemma LoggedLess(p: Poss, q: Poss, g: Protocol, g0: Protocol, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.layout) && |p| == |q| >= Home(g.layout) && g0.layout == g.layout && g0.signed == g.signed &&
      Logged(q, g0, m, h, d, sq)
    requires forall a :: g.layout.headerAt < a < Copy(g.layout) ==> p[a] <= q[a]
    ensures Logged(p, g, m, h, d, sq)
  {
    LoggedSg(q, g0, g, m, h, d, sq);
    LoggedFrame(p, q, g, m, h, d, sq);
  }
  // l lists the blocks of m in the order of their addresses
  predicate Lists(l: BList, m: BM, home: int, n: int) {
    |l.blks| == |l.addrs| && |l.addrs| < 0x8_0000_0000_0000 &&
    (forall i :: 0 <= i < |l.addrs| ==> l.addrs[i] in m && l.blks[i] == m[l.addrs[i]] && |l.blks[i]| == 4096 &&
      home <= l.addrs[i] < n) &&
    (forall a :: a in m ==> a in l.addrs) &&
    (forall i, j :: 0 <= i < j < |l.addrs| ==> l.addrs[i] < l.addrs[j])
  }
  // ring and dir are the two parts of m
  predicate Parts(m: BM, ring: BM, dir: BM) {
    (forall a :: a in m ==> a in ring || a in dir) &&
    (forall a :: a in ring ==> a in m && a !in dir && ring[a] == m[a]) &&
      (forall a :: a in dir ==> a in m && dir[a] == m[a])
  }
  lemma SealedBelow(poss: Poss, g: Protocol)
    requires Full(poss, g)
    ensures forall r :: r in g.signed ==> DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < End(g) + |g.pending|
  {
    FullD(poss, g);
    forall r | r in g.signed ensures DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < End(g) + |g.pending| {
      if !Below(r, End(g)) {
        var i :| 0 <= i < |g.pending| && IsPend(g.pending[i], r); assert PendWf(g, g.pending[i], End(g) + i, |poss|);
      }
    }
  }
  // n blocks from the i-th on were written where they belong, and none of those before them
  lemma LogWritten(p: Geo, d: Desc, cur: Img, blks: seq<BV>, i: int, n: int)
    requires GeoOk(p) && |cur| >= Home(p) && Side(p, d, i, n) && |d.addrs| <= |blks| && |d.addrs| <= 500
    requires forall x :: DataBlock(p, d, i) <= x < DataBlock(p, d, i) + n ==> 0 <= x < |cur| ==>
      cur[x] == blks[i + (x - DataBlock(p, d, i))]
    ensures forall x :: i <= x < i + n ==> cur[DataBlock(p, d, x)] == blks[x]
    ensures forall x :: 0 <= x < i ==> !(DataBlock(p, d, i) <= DataBlock(p, d, x) < DataBlock(p, d, i) + n)
  {
    forall x | i <= x < i + n ensures cur[DataBlock(p, d, x)] == blks[x] {
      if |d.addrs| > 15 { SlotRun(d.pos + i, x - i, p.ringSize); assert d.pos + i + (x - i) == d.pos + x; }
      assert DataBlock(p, d, x) == DataBlock(p, d, i) + (x - i);
    }
    forall x | 0 <= x < i ensures !(DataBlock(p, d, i) <= DataBlock(p, d, x) < DataBlock(p, d, i) + n) {
      if |d.addrs| > 15 { NotInRun(p, d.pos + x, d.pos + i, n); }
    }
  }
  // an increasing sequence of addresses below n has at most n of them
  lemma SortedLen(s: seq<int>, n: int)
    requires 0 <= n && forall i :: 0 <= i < |s| ==> 0 <= s[i] < n
    requires forall i, j :: 0 <= i < j < |s| ==> s[i] < s[j]
    ensures |s| <= n
  {
    if s != [] {
      var l := s[|s|-1]; var t := s[..|s|-1];
      forall i | 0 <= i < |t| ensures 0 <= t[i] < l { assert s[i] < s[|s|-1]; }
      SortedLen(t, l);
    }
  }
}
