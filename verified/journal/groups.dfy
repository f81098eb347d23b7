// What the steps of the journal share and what is not about its fields: the images a crash
// may leave, maps of blocks that are merged or split in two, lists of blocks in the order of
// their addresses, and facts about the protocol's state.
include "steps.dfy"

module Groups {
  import opened Machine
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened Ring
  import opened LogModel
  import opened LogSteps

  function {:opaque} OkSet(p: Geo, vs: seq<St>, lb: int, sg: set<Rec>): iset<Img> requires 0 <= lb {
    iset s: Img | exists n :: lb <= n < |vs| && RecOK(p, s, vs[n], sg)
  }
  predicate InHome(home: int, m: BM, n: int) { forall a :: a in m ==> home <= a < n }

  lemma CrashAll(poss: Poss, g: G, vs: seq<St>, lb: int, cl: int)
    requires Full(poss, g) && 0 <= lb <= cl < |vs| && vs[lb] == DurState(g)
    requires g.com ==> vs[cl] == ComState(g)
    ensures forall s :: CrashImg(poss, s) ==> s in OkSet(g.p, vs, lb, g.sg)
  {
    reveal OkSet(); FullD(poss, g);
    forall s | CrashImg(poss, s) ensures s in OkSet(g.p, vs, lb, g.sg) {
      CrashLemma(poss, g, s);
      if RecOK(g.p, s, DurState(g), g.sg) { assert RecOK(g.p, s, vs[lb], g.sg); } else { assert RecOK(g.p, s, vs[cl], g.sg); }
    }
  }
  // an empty log; the tree with the root r says v
  function G0(p: Geo, sg: set<Rec>, q: int, v: St, r: CV): G {
    G(p, sg, q, [], [], [], 0, false, map[], map[], Desc(0, 0, 0, [], []), [], v, map[], 0, 0, 0, 0, r, v, r, v, p.torn)
  }
  lemma ComFacts(poss: Poss, g: G)
    requires Full(poss, g) && g.com
    ensures GroupWf(g.p, g.cg, g.ch, g.cd, End(g), |poss|) && g.cd.pos == g.wp && DecDesc(g.cb) == SomeDesc(g.cd)
    ensures Rec(g.cb, GroupBlks(g.cg, g.ch, g.cd)) in g.sg
  { reveal Full(); }
  method MergeInto(dst: BMap, src: BMap)
    requires dst != src && dst.Ok() && src.Ok()
    requires |dst.addrs| + |src.addrs| < 0x4_0000_0000_0000
    modifies dst
    ensures dst.Ok() && dst.m == Ov(old(dst.m), src.m) && |dst.addrs| <= |old(dst.addrs)| + |src.addrs|
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

  lemma TailMerge(g: G)
    requires 0 <= g.k <= |g.gs|
    ensures var g1 := Finished(g); Merge(g1.gs[g1.k..]) == Ov(Merge(g.gs[g.k..]), g.cg) && g1.gs[..g1.k] == g.gs[..g.k]
  {
    var g1 := Finished(g);
    assert g1.gs[g1.k..] == g.gs[g.k..] + [g.cg];
    assert g1.gs[g1.k..][..|g1.gs[g1.k..]|-1] == g.gs[g.k..];
  }
  method MergeOrSwap(dst: BMap, src: BMap) returns (r: BMap)
    requires dst != src && dst.Ok() && src.Ok()
    requires |dst.addrs| + |src.addrs| < 0x4_0000_0000_0000
    modifies dst
    ensures r == dst || (r == src && dst.m == old(dst.m) && dst.Ok())
    ensures r.Ok() && r.m == Ov(old(dst.m), src.m) && |r.addrs| <= |old(dst.addrs)| + |src.addrs|
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
  predicate SameForLog(a: G, b: G) {
    a.p == b.p && a.sg == b.sg && a.com == b.com && a.cg == b.cg && a.ch == b.ch && a.cd == b.cd && a.cb == b.cb && End(a) == End(b) && a.wp == b.wp &&
    |b.gs| <= |a.gs| && (b.gs == a.gs || b.gs == a.gs[|a.gs| - |b.gs|..]) && a.lo <= b.lo && DurState(a) == DurState(b)
  }
  lemma ReadyKeep(a: G, b: G, m: BM, h: BM)
    requires SameForLog(a, b) && Ready(a, m, h)
    ensures Ready(b, m, h)
  {
    assert a.hq <= b.hq;
    forall x | Direct(b.sg, b.hq, x) ensures Direct(a.sg, a.hq, x) { DirectFrom(a.sg, a.hq, b.hq, x); }
    forall i, x | 0 <= i < |b.gs| && x in b.gs[i] ensures x !in h { assert x in a.gs[|a.gs| - |b.gs| + i]; }
  }
  predicate SameForIns(a: G, b: G) { a.p == b.p && a.ip == b.ip && a.im == b.im && a.hq == b.hq && a.k == b.k }
  lemma LoggedLess(p: Poss, q: Poss, g: G, g0: G, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.p) && |p| == |q| >= Home(g.p) && g0.p == g.p && g0.sg == g.sg && Logged(q, g0, m, h, d, sq)
    requires forall a :: g.p.at < a < Copy(g.p) ==> p[a] <= q[a]
    ensures Logged(p, g, m, h, d, sq)
  {
    LoggedSg(q, g0, g, m, h, d, sq);
    LoggedFrame(p, q, g, m, h, d, sq);
  }
  // l lists the blocks of m in the order of their addresses
  predicate Lists(l: BList, m: BM, home: int, n: int) {
    |l.blks| == |l.addrs| && |l.addrs| < 0x8_0000_0000_0000 &&
    (forall i :: 0 <= i < |l.addrs| ==> l.addrs[i] in m && l.blks[i] == m[l.addrs[i]] && |l.blks[i]| == 4096 && home <= l.addrs[i] < n) &&
    (forall a :: a in m ==> a in l.addrs) &&
    (forall i, j :: 0 <= i < j < |l.addrs| ==> l.addrs[i] < l.addrs[j])
  }
  // ring and dir are the two parts of m
  predicate Parts(m: BM, ring: BM, dir: BM) {
    (forall a :: a in m ==> a in ring || a in dir) &&
    (forall a :: a in ring ==> a in m && a !in dir && ring[a] == m[a]) && (forall a :: a in dir ==> a in m && dir[a] == m[a])
  }
  lemma SealedBelow(poss: Poss, g: G)
    requires Full(poss, g) && !g.com
    ensures forall r :: r in g.sg ==> DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < End(g)
  {
    FullD(poss, g);
    forall r | r in g.sg ensures DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < End(g) { assert Below(r, End(g)); }
  }
  // n blocks from the i-th on were written where they belong, and none of those before them
  lemma LogWritten(p: Geo, d: Desc, cur: Img, blks: seq<BV>, i: int, n: int)
    requires GeoOk(p) && |cur| >= Home(p) && Side(p, d, i, n) && |d.addrs| <= |blks| && |d.addrs| <= 500
    requires forall x :: At(p, d, i) <= x < At(p, d, i) + n ==> 0 <= x < |cur| ==> cur[x] == blks[i + (x - At(p, d, i))]
    ensures forall x :: i <= x < i + n ==> cur[At(p, d, x)] == blks[x]
    ensures forall x :: 0 <= x < i ==> !(At(p, d, i) <= At(p, d, x) < At(p, d, i) + n)
  {
    forall x | i <= x < i + n ensures cur[At(p, d, x)] == blks[x] {
      if |d.addrs| > 15 { SlotRun(d.pos + i, x - i, p.nr); assert d.pos + i + (x - i) == d.pos + x; }
      assert At(p, d, x) == At(p, d, i) + (x - i);
    }
    forall x | 0 <= x < i ensures !(At(p, d, i) <= At(p, d, x) < At(p, d, i) + n) {
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
