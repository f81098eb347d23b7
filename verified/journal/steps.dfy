// The steps of the protocol, as pure mathematics: one lemma per kind of step says that
// it keeps the invariant.
include "model.dfy"

module LogSteps {
  import opened Machine
  import opened DiskS
  import opened LogSpec
  import opened Ring
  import opened LogModel

  predicate {:opaque} Full(poss: Poss, g: G)
    ensures Full(poss, g) ==>
      GeoOk(g.p) && |poss| >= Home(g.p) && 0 <= g.hq && |g.ds| == |g.gs| == |g.hs| && 0 <= g.k <= |g.gs| <= g.p.nd &&
      g.im == Merge(g.gs[..g.k]) && 0 <= g.ip <= 3 && (g.ip == 0 ==> g.k == 0) &&
      (forall a :: a in g.base <==> Home(g.p) <= a < |poss|) &&
      0 <= g.lo <= g.ilo <= g.wp <= g.lo + g.p.nr
  { DInv(poss, g) && PInv(g) }
  lemma FullD(poss: Poss, g: G)
    requires Full(poss, g)
    ensures DInv(poss, g) && PInv(g)
  { reveal Full(); }

  // g changed to g2 in a way that says nothing new about logged groups and home blocks
  lemma KeepHome(poss: Poss, g: G, g2: G)
    requires DInv(poss, g) && g2.p == g.p && g2.base == g.base && g2.im == g.im && g2.ip == g.ip && g2.torn == g.torn
    requires forall a :: InPend(g.ps, a) ==> InPend(g2.ps, a)
    ensures forall a :: Home(g.p) <= a < |poss| ==> HomePoss(poss[a], g2, a)
  { forall a | Home(g.p) <= a < |poss| ensures HomePoss(poss[a], g2, a) { assert HomePoss(poss[a], g, a); } }

  lemma HomeLess(s: iset<BV>, s2: iset<BV>, g: G, a: int)
    requires a in g.base && s <= s2 && HomePoss(s2, g, a)
    ensures HomePoss(s, g, a)
  {}
  lemma BarrierPres(p: Poss, q: Poss, g: G)
    requires SubPoss(p, q) && Full(q, g)
    ensures Full(p, g)
  {
    reveal Full();
    forall i | 0 <= i < |g.gs| ensures Logged(p, g, g.gs[i], g.hs[i], g.ds[i], g.hq + i) {
      assert Logged(q, g, g.gs[i], g.hs[i], g.ds[i], g.hq + i);
      LoggedFrame(p, q, g, g.gs[i], g.hs[i], g.ds[i], g.hq + i);
    }
    forall a | Home(g.p) <= a < |p| ensures HomePoss(p[a], g, a) { assert HomePoss(q[a], g, a); assert p[a] <= q[a]; HomeLess(p[a], q[a], g, a); }
    forall x | x in p[g.p.at] + p[Copy(g.p)] ensures HdrOk(x, g) { assert x in q[g.p.at] + q[Copy(g.p)]; }
  }
  // a logged group is still logged when nothing more is possible where it lies
  lemma LoggedFrame(p: Poss, q: Poss, g: G, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.p) && |p| == |q| >= Home(g.p) && Logged(q, g, m, h, d, sq)
    requires p[DSlot(g.p, sq)] <= q[DSlot(g.p, sq)]
    requires forall j :: 0 <= j < |d.addrs| ==> p[At(g.p, d, j)] <= q[At(g.p, d, j)]
    ensures Logged(p, g, m, h, d, sq)
  {
    forall j | 0 <= j < |d.addrs| ensures p[At(g.p, d, j)] <= iset{m[d.addrs[j]]} {
      assert p[At(g.p, d, j)] <= q[At(g.p, d, j)];
    }
  }
  // position x is not among the n slots from position b on
  lemma NotInRun(p: Geo, x: int, b: int, n: int)
    requires GeoOk(p) && 0 <= n && Slot(b, p.nr) + n <= p.nr && x < b && b + n <= x + p.nr
    ensures !(LSlot(p, b) <= LSlot(p, x) < LSlot(p, b) + n)
  {
    if LSlot(p, b) <= LSlot(p, x) < LSlot(p, b) + n {
      var k := LSlot(p, x) - LSlot(p, b);
      SlotRun(b, k, p.nr);
      SlotDistinct(x, b + k, p.nr);
    }
  }
  lemma UnitApart(p: Geo, q: int, r: int)
    requires GeoOk(p) && q < r < q + p.nd
    ensures DSlot(p, q) + 16 <= DSlot(p, r) || DSlot(p, r) + 16 <= DSlot(p, q)
  { SlotDistinct(q, r, p.nd); }
  // the n blocks of group d from the i-th on lie side by side
  predicate Side(p: Geo, d: Desc, i: int, n: int) requires GeoOk(p) {
    0 <= i && 0 <= n && i + n <= |d.addrs| && (|d.addrs| <= 15 || Slot(d.pos + i, p.nr) + n <= p.nr)
  }
  // group e is live, and d the next or one after that: what d writes is not e's
  lemma NotInData(p: Geo, e: Desc, j: int, d: Desc, i: int, n: int)
    requires GeoOk(p) && 0 <= j < |e.addrs| && Side(p, d, i, n) && e.sq < d.sq < e.sq + p.nd
    requires e.pos + |e.addrs| <= d.pos && d.pos + |d.addrs| <= e.pos + p.nr
    ensures !(At(p, d, i) <= At(p, e, j) < At(p, d, i) + n) && DSlot(p, d.sq) != At(p, e, j)
  {
    UnitApart(p, e.sq, d.sq);
    if |d.addrs| > 15 && |e.addrs| > 15 { NotInRun(p, e.pos + j, d.pos + i, n); }
  }
  lemma NotInDesc(p: Geo, q: int, d: Desc, i: int, n: int)
    requires GeoOk(p) && Side(p, d, i, n) && q <= d.sq < q + p.nd
    ensures !(At(p, d, i) <= DSlot(p, q) < At(p, d, i) + n)
  { if q < d.sq { UnitApart(p, q, d.sq); } }
  // what live groups have to do with a pending one
  lemma LivePend(g: G, n: int, x: int, j: int)
    requires GInv(g, n) && PInv(g) && 0 <= x < |g.gs| && 0 <= j < |g.ps|
    ensures var d := g.ps[j].d; d.sq == End(g) + j && g.ds[x].sq == g.hq + x && g.ds[x].sq < d.sq < g.ds[x].sq + g.p.nd
    ensures var d := g.ps[j].d; g.ds[x].pos + |g.ds[x].addrs| <= d.pos && d.pos + |d.addrs| <= g.ds[x].pos + g.p.nr
  { assert PendWf(g, g.ps[j], End(g) + j, n); }
  // n data blocks of the j-th pending group, from the i-th on, are being written
  lemma LogWritePres(poss: Poss, g: G, j: int, i: int, n: int)
    requires Full(poss, g) && 0 <= j < |g.ps| && Side(g.p, g.ps[j].d, i, n) && n > 0
    ensures Full(Fuzzy(poss, At(g.p, g.ps[j].d, i), n), g)
  {
    reveal Full();
    var e := g.ps[j].d;
    var a := At(g.p, e, i);
    assert At(g.p, e, i + (n - 1)) == a + (n - 1) by { if |e.addrs| > 15 { SlotRun(e.pos + i, n - 1, g.p.nr); assert e.pos + i + (n - 1) == e.pos + (i + (n - 1)); } }
    var p := Fuzzy(poss, a, n);
    assert p[g.p.at] == poss[g.p.at] && p[Copy(g.p)] == poss[Copy(g.p)];
    forall x | 0 <= x < |g.gs| ensures Logged(p, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      var d := g.ds[x];
      LivePend(g, |poss|, x, j);
      forall y | 0 <= y < |d.addrs| ensures p[At(g.p, d, y)] == poss[At(g.p, d, y)] { NotInData(g.p, d, y, e, i, n); }
      NotInDesc(g.p, d.sq, e, i, n);
      LoggedFrame(p, poss, g, g.gs[x], g.hs[x], d, g.hq + x);
    }
    forall b | Home(g.p) <= b < |p| ensures HomePoss(p[b], g, b) { assert p[b] == poss[b]; assert HomePoss(poss[b], g, b); }
  }
  // blocks before the header, which are none of the log's, are being written
  lemma TreeWritePres(poss: Poss, g: G, a: int, n: int)
    requires Full(poss, g) && 0 <= a && 0 <= n && a + n <= g.p.at
    ensures Full(Fuzzy(poss, a, n), g)
  {
    reveal Full();
    var p := Fuzzy(poss, a, n);
    forall x | 0 <= x < |g.gs| ensures Logged(p, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedFrame(p, poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    forall b | Home(g.p) <= b < |p| ensures HomePoss(p[b], g, b) { assert HomePoss(poss[b], g, b); }
  }
  // direct blocks of pending groups are being written
  lemma DirWritePres(poss: Poss, g: G, a: int, n: int)
    requires Full(poss, g) && Home(g.p) <= a && 0 <= n && a + n <= |poss| && forall x :: a <= x < a + n ==> InPend(g.ps, x)
    ensures Full(Fuzzy(poss, a, n), g)
  {
    reveal Full();
    var p := Fuzzy(poss, a, n);
    assert p[g.p.at] == poss[g.p.at] && p[Copy(g.p)] == poss[Copy(g.p)];
    forall x | 0 <= x < |g.gs| ensures Logged(p, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedFrame(p, poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    forall b | Home(g.p) <= b < |p| ensures HomePoss(p[b], g, b) { assert HomePoss(poss[b], g, b); }
  }
  lemma DescWritePres(poss: Poss, g: G, j: int)
    requires Full(poss, g) && 0 <= j < |g.ps|
    ensures Full(Fuzzy(poss, DSlot(g.p, End(g) + j), 1), g)
  {
    reveal Full();
    var a := DSlot(g.p, End(g) + j);
    var p := Fuzzy(poss, a, 1);
    assert p[g.p.at] == poss[g.p.at] && p[Copy(g.p)] == poss[Copy(g.p)];
    forall x | 0 <= x < |g.gs| ensures Logged(p, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LiveDesc(g, |poss|, x, j);
      LoggedFrame(p, poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    forall b | Home(g.p) <= b < |p| ensures HomePoss(p[b], g, b) { assert p[b] == poss[b]; assert HomePoss(poss[b], g, b); }
  }
  // a pending group is small, and all of its unit is being written
  lemma UnitWritePres(poss: Poss, g: G, j: int, d: Desc)
    requires Full(poss, g) && 0 <= j < |g.ps| && d == g.ps[j].d && |d.addrs| <= 15
    ensures d.sq == End(g) + j && DSlot(g.p, d.sq) + 1 + |d.addrs| <= |poss|
    ensures Full(Fuzzy(poss, DSlot(g.p, d.sq), 1 + |d.addrs|), g)
  {
    assert d.sq == End(g) + j && GeoOk(g.p) && |poss| >= Home(g.p) by { FullD(poss, g); assert PendWf(g, g.ps[j], End(g) + j, |poss|); }
    var a := DSlot(g.p, d.sq); var n := |d.addrs|;
    DescWritePres(poss, g, j);
    var q := Fuzzy(poss, a, 1);
    if n > 0 { LogWritePres(q, g, j, 0, n); assert At(g.p, d, 0) == a + 1; }
    assert Fuzzy(poss, a, 1 + n) == if n == 0 then q else Fuzzy(q, a + 1, n);
  }
  // a pending group's descriptor is nothing of a live group
  lemma LiveDesc(g: G, n: int, x: int, j: int)
    requires GInv(g, n) && PInv(g) && 0 <= x < |g.gs| && 0 <= j < |g.ps|
    ensures DSlot(g.p, g.hq + x) != DSlot(g.p, End(g) + j)
    ensures forall y :: 0 <= y < |g.ds[x].addrs| ==> At(g.p, g.ds[x], y) != DSlot(g.p, End(g) + j)
  {
    LivePend(g, n, x, j);
    UnitApart(g.p, g.hq + x, End(g) + j);
    forall y | 0 <= y < |g.ds[x].addrs| ensures At(g.p, g.ds[x], y) != DSlot(g.p, End(g) + j) { NotInData(g.p, g.ds[x], y, g.ps[j].d, 0, 0); }
  }
  function Started(g: G, m: BM, h: BM, d: Desc, b: BV, r: Rec): G { g.(ps := g.ps + [Pend(m, h, d, b)], sg := g.sg + {r}) }
  // block a is free in the durable state, and after each of the pending groups
  predicate {:opaque} FreeAll(g: G, a: int) { forall i :: 0 <= i <= |g.ps| ==> FreeIn(g.p, PState(g, i), a) }
  // h may go straight home: it is free, and nobody needs it; and no live or pending group has m or h direct
  predicate Ready(g: G, m: BM, h: BM) {
    (forall a :: a in h ==> FreeAll(g, a) && a !in m && !Direct(g.sg, g.hq, a)) &&
    (forall i, a {:trigger a in g.gs[i]} :: 0 <= i < |g.gs| && a in g.gs[i] ==> a !in h) &&
    (forall i, a {:trigger a in g.ps[i].m} :: 0 <= i < |g.ps| && a in g.ps[i].m ==> a !in h) &&
    (forall a :: a in m ==> !Direct(g.sg, g.hq, a))
  }
  lemma LoggedSg(poss: Poss, g: G, g2: G, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.p) && |poss| >= Home(g.p) && g2.p == g.p && g.sg <= g2.sg && Logged(poss, g, m, h, d, sq)
    ensures Logged(poss, g2, m, h, d, sq)
  {}
  lemma TreesKept(g: G, g2: G)
    requires Trees(g) && g2.p == g.p && g2.base == g.base && g2.hs == g.hs && g2.k == g.k && g2.im == g.im && g2.tb == g.tb && g2.tb2 == g.tb2 && g2.r == g.r && g2.torn == g.torn
    requires (g2.ip >= 1 ==> g.ip >= 1) && (g2.ip == 3 ==> (g.ip == 3 && g2.r2 == g.r2) || Says(g.p, g2.r2, g.tb2))
    ensures Trees(g2)
  { reveal Trees(); }
  lemma StartPres(poss: Poss, g: G, m: BM, h: BM, d: Desc, b: BV)
    requires Full(poss, g) && Ready(g, m, h) && |g.ps| < Window
    requires GroupWf(g.p, m, h, d, End(g) + |g.ps|, |poss|) && DecDesc(b) == SomeDesc(d) && d.pos == PendEnd(g) && d.dur <= End(g)
    requires |g.gs| + |g.ps| < g.p.nd && PendEnd(g) + |d.addrs| <= g.lo + g.p.nr
    ensures Full(poss, Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    reveal Full();
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    forall a | InPend(g.ps, a) ensures InPend(g'.ps, a) { var j :| 0 <= j < |g.ps| && a in g.ps[j].h; assert a in g'.ps[j].h; }
    KeepHome(poss, g, g');
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall x | 0 <= x < |g.gs| ensures Logged(poss, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedSg(poss, g, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    forall j | 0 <= j < |g'.ps| ensures PendWf(g', g'.ps[j], End(g') + j, |poss|) { if j < |g.ps| { assert PendWf(g, g.ps[j], End(g) + j, |poss|); } }
    StartSealed(g, m, h, d, b, |poss|);
    StartKept(g, m, h, d, b, |poss|);
    TreesKept(g, g');
  }
  lemma StartSealed(g: G, m: BM, h: BM, d: Desc, b: BV, n: int)
    requires GInv(g, n) && GroupWf(g.p, m, h, d, End(g) + |g.ps|, n) && DecDesc(b) == SomeDesc(d) && d.dur <= End(g)
    ensures Sealed(Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    forall r | r in g'.sg ensures DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.dur <= End(g') && (Below(r, End(g')) || exists i :: 0 <= i < |g'.ps| && IsPend(g'.ps[i], r)) {
      if r in g.sg {
        if !Below(r, End(g)) { var i :| 0 <= i < |g.ps| && IsPend(g.ps[i], r); assert IsPend(g'.ps[i], r); }
      } else { assert IsPend(g'.ps[|g.ps|], r); }
    }
  }
  lemma StartKept(g: G, m: BM, h: BM, d: Desc, b: BV, n: int)
    requires GInv(g, n) && Ready(g, m, h) && GroupWf(g.p, m, h, d, End(g) + |g.ps|, n) && DecDesc(b) == SomeDesc(d)
    ensures Kept(Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    assert DurState(g') == DurState(g);
    forall a, q | Direct(g'.sg, q, a) ensures a in h || Direct(g.sg, q, a) {
      var r :| r in g'.sg && DirectOf(r, q, a);
      if r in g.sg { assert DirectOf(r, q, a); } else { assert a in d.dirs; }
    }
    forall a, q | Direct(g.sg, q, a) ensures Direct(g'.sg, q, a) { var r :| r in g.sg && DirectOf(r, q, a); assert DirectOf(r, q, a); }
    forall a, i | 0 <= i < |g.gs| && a in g.gs[i] ensures !Direct(g'.sg, g.hq, a) {}
    forall a, i | 0 <= i < |Ms(g'.ps)| && a in Ms(g'.ps)[i] ensures !Direct(g'.sg, g.hq, a) {
      if i < |g.ps| { assert a in g.ps[i].m; assert a in Ms(g.ps)[i]; } else { assert a in m; }
    }
    forall i, a | 0 <= i < |g.hs| && a in g.hs[i] ensures !InPend(g'.ps, a) && Direct(g'.sg, g.hq + i, a) {
      assert Direct(g.sg, g.hq + i, a);
      DirectFrom(g.sg, g.hq, g.hq + i, a);
      if InPend(g'.ps, a) { var j :| 0 <= j < |g'.ps| && a in g'.ps[j].h; if j < |g.ps| { assert a in g.ps[j].h; } }
    }
    StartFree(g, m, h, d, b, n);
  }
  lemma StartFree(g: G, m: BM, h: BM, d: Desc, b: BV, n: int)
    requires GInv(g, n) && Ready(g, m, h) && GroupWf(g.p, m, h, d, End(g) + |g.ps|, n) && DecDesc(b) == SomeDesc(d)
    ensures Free(Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    reveal Free(); reveal FreeAll();
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    forall j, a | DirPend(g'.ps, j, a) ensures Direct(g'.sg, End(g') + j, a) {
      MorePend(g.ps, Pend(m, h, d, b), j, a);
      if DirPend(g.ps, j, a) { var r :| r in g.sg && DirectOf(r, End(g) + j, a); assert r in g'.sg; }
      else { assert rec in g'.sg && DirectOf(rec, End(g) + j, a); }
    }
    forall i, j, a | 0 <= i <= j && DirPend(g'.ps, j, a) ensures FreeIn(g'.p, PState(g', i), a) {
      MorePend(g.ps, Pend(m, h, d, b), j, a);
      StartState(g, g', i);
      assert i <= |g.ps|;
      assert FreeIn(g.p, PState(g, i), a) by { if !DirPend(g.ps, j, a) { assert a in h && FreeAll(g, a); } }
      assert PState(g', i) == PState(g, i) && g'.p == g.p;
    }
    forall i, j, a | i < j && DirPend(g'.ps, i, a) ensures !DirPend(g'.ps, j, a) {
      MorePend(g.ps, Pend(m, h, d, b), i, a);
      MorePend(g.ps, Pend(m, h, d, b), j, a);
      if DirPend(g'.ps, j, a) {
        assert DirPend(g.ps, i, a) && Direct(g.sg, End(g) + i, a);
        DirectFrom(g.sg, g.hq, End(g) + i, a);
        assert !DirPend(g.ps, j, a);
        assert a !in h;
      }
    }
  }
  lemma MorePend(ps: seq<Pend>, e: Pend, j: int, a: int)
    ensures DirPend(ps + [e], j, a) <==> DirPend(ps, j, a) || (j == |ps| && a in e.h)
  {}
  lemma StartState(g: G, g2: G, i: int)
    requires 0 <= i <= |g.ps| && |g2.ps| == |g.ps| + 1 && g2.ps[..|g.ps|] == g.ps && g2.base == g.base && g2.gs == g.gs
    ensures PState(g2, i) == PState(g, i)
  { reveal PState(); assert g2.ps[..i] == g.ps[..i]; assert DurState(g2) == DurState(g); }
  // the first pending group is durable
  function Finished(g: G): G requires g.ps != [] {
    var e := g.ps[0];
    g.(ps := g.ps[1..], gs := g.gs + [e.m], hs := g.hs + [e.h], ds := g.ds + [e.d],
       base := Over(g.base, e.h), wp := e.d.pos + |e.d.addrs|, torn := g.torn - e.h.Keys)
  }
  // the direct blocks h are at home
  predicate DirHome(poss: Poss, h: BM) { forall a :: a in h ==> 0 <= a < |poss| && poss[a] <= iset{h[a]} }
  lemma FinishPres(poss: Poss, g: G)
    requires Full(poss, g) && g.ps != [] && Logged(poss, g, g.ps[0].m, g.ps[0].h, g.ps[0].d, End(g)) && DirHome(poss, g.ps[0].h)
    requires End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.ps[0].d.pos < 0x1FFF_FFFF_FFFF_0000
    ensures Full(poss, Finished(g)) && DurState(Finished(g)) == Applied(DurState(g), g.ps[..1]) && ComState(Finished(g)) == ComState(g)
    ensures PendEnd(Finished(g)) == PendEnd(g)
  {
    reveal Full();
    var g' := Finished(g); var e := g.ps[0];
    assert PendWf(g, e, End(g) + 0, |poss|);
    assert g'.gs[..g'.k] == g.gs[..g.k];
    forall a | Home(g.p) <= a < |poss| ensures HomePoss(poss[a], g', a) { FinishHome(poss, g, a); }
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall x | 0 <= x < |g'.gs| ensures Logged(poss, g', g'.gs[x], g'.hs[x], g'.ds[x], g.hq + x) {
      if x < |g.gs| {
        assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
        LoggedSg(poss, g, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      } else { LoggedSg(poss, g, g', e.m, e.h, e.d, End(g)); }
    }
    forall j | 0 <= j < |g'.ps| ensures PendWf(g', g'.ps[j], End(g') + j, |poss|) { assert PendWf(g, g.ps[j + 1], End(g) + (j + 1), |poss|); }
    FinishSealed(g, |poss|);
    FinishState(g, |poss|);
    FinishKept(g, |poss|);
    FinishTrees(g, |poss|);
  }
  lemma FinishHome(poss: Poss, g: G, a: int)
    requires DInv(poss, g) && g.ps != [] && DirHome(poss, g.ps[0].h) && Home(g.p) <= a < |poss|
    ensures a in Finished(g).base && HomePoss(poss[a], Finished(g), a)
  {
    var g' := Finished(g); var e := g.ps[0];
    assert HomePoss(poss[a], g, a);
    if a in e.h { PendHome(g, |poss|, 0, a); }
    else if InPend(g.ps, a) { var j :| 0 <= j < |g.ps| && a in g.ps[j].h; assert a in g'.ps[j - 1].h; assert InPend(g'.ps, a); }
  }
  lemma FinishSealed(g: G, n: int)
    requires GInv(g, n) && g.ps != []
    ensures Sealed(Finished(g))
  {
    var g' := Finished(g);
    forall r | r in g'.sg ensures DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.dur <= End(g') && (Below(r, End(g')) || exists i :: 0 <= i < |g'.ps| && IsPend(g'.ps[i], r)) {
      if !Below(r, End(g)) {
        var i :| 0 <= i < |g.ps| && IsPend(g.ps[i], r);
        assert PendWf(g, g.ps[i], End(g) + i, n);
        if i > 0 { assert IsPend(g'.ps[i - 1], r); }
      }
    }
  }
  lemma FinishKept(g: G, n: int)
    requires GInv(g, n) && g.ps != [] && DurState(Finished(g)) == Applied(DurState(g), g.ps[..1])
    ensures Kept(Finished(g))
  {
    var g' := Finished(g);
    forall i, a | 0 <= i < |g'.hs| && a in g'.hs[i] ensures a in g'.base && g'.base[a] == g'.hs[i][a] && !InPend(g'.ps, a) && Direct(g.sg, g.hq + i, a) { FinishHeld(g, n, i, a); }
    FinishClear(g, n);
    FinishFree(g, n);
  }
  lemma FinishClear(g: G, n: int)
    requires GInv(g, n) && g.ps != []
    ensures var g' := Finished(g); Clear(Ms(g'.ps), g.sg, g.hq) && Clear(g'.gs, g.sg, g.hq)
  {
    var g' := Finished(g);
    forall i, a | 0 <= i < |Ms(g'.ps)| && a in Ms(g'.ps)[i] ensures !Direct(g.sg, g.hq, a) { assert a in Ms(g.ps)[i + 1]; }
    forall i, a | 0 <= i < |g'.gs| && a in g'.gs[i] ensures !Direct(g.sg, g.hq, a) { if i < |g.gs| { assert a in g.gs[i]; } else { assert a in Ms(g.ps)[0]; } }
  }
  lemma FinishFree(g: G, n: int)
    requires GInv(g, n) && g.ps != [] && DurState(Finished(g)) == Applied(DurState(g), g.ps[..1])
    ensures Free(Finished(g))
  {
    var g' := Finished(g);
    reveal Free();
    forall j, a | DirPend(g'.ps, j, a) ensures Direct(g'.sg, End(g') + j, a) { LessPend(g.ps, j, a); assert DirPend(g.ps, j + 1, a); assert Direct(g.sg, End(g) + (j + 1), a); assert End(g') + j == End(g) + (j + 1); }
    forall i, j, a | 0 <= i <= j && DirPend(g'.ps, j, a) ensures FreeIn(g'.p, PState(g', i), a) { LessPend(g.ps, j, a); FinishAfter(g, i); assert DirPend(g.ps, j + 1, a); assert FreeIn(g.p, PState(g, i + 1), a); assert PState(g', i) == PState(g, i + 1) && g'.p == g.p; }
    forall i, j, a | i < j && DirPend(g'.ps, i, a) ensures !DirPend(g'.ps, j, a) {
      LessPend(g.ps, i, a); LessPend(g.ps, j, a);
      assert DirPend(g.ps, i + 1, a);
      assert !DirPend(g.ps, j + 1, a);
    }
  }
  lemma LessPend(ps: seq<Pend>, j: int, a: int)
    requires ps != []
    ensures 0 <= j && DirPend(ps[1..], j, a) ==> DirPend(ps, j + 1, a)
  {}
  lemma FinishAfter(g: G, i: int)
    requires g.ps != [] && 0 <= i < |g.ps| && DurState(Finished(g)) == Applied(DurState(g), g.ps[..1])
    ensures PState(Finished(g), i) == PState(g, i + 1)
  {
    reveal PState();
    var t := g.ps[..i + 1];
    AfterFirst(DurState(g), t);
    assert t[1..] == g.ps[1..][..i];
    assert g.ps[..1] == [g.ps[0]] && [g.ps[0]][..0] == [];
    assert Applied(DurState(g), [g.ps[0]]) == Over(Over(DurState(g), g.ps[0].h), g.ps[0].m);
  }
  lemma FinishHeld(g: G, n: int, i: int, a: int)
    requires GInv(g, n) && g.ps != [] && 0 <= i < |Finished(g).hs| && a in Finished(g).hs[i]
    ensures var g' := Finished(g); a in g'.base && g'.base[a] == g'.hs[i][a] && !InPend(g'.ps, a) && Direct(g.sg, g.hq + i, a)
  {
    var g' := Finished(g); reveal Free();
    if i < |g.hs| {
      assert a in g.hs[i] && !InPend(g.ps, a);
      assert a !in g.ps[0].h;
      if InPend(g'.ps, a) { var j :| 0 <= j < |g'.ps| && a in g'.ps[j].h; assert a in g.ps[j + 1].h; }
    } else {
      assert i == |g.hs| && g'.hs[i] == g.ps[0].h;
      assert PendWf(g, g.ps[0], End(g) + 0, n);
      assert a in g.ps[0].d.dirs && a in g.base;
      assert DirPend(g.ps, 0, a);
      if InPend(g'.ps, a) { var j :| 0 <= j < |g'.ps| && a in g'.ps[j].h; assert DirPend(g.ps, j + 1, a); }
      assert End(g) + 0 == g.hq + i;
    }
  }
  lemma FinishTrees(g: G, n: int)
    requires GInv(g, n) && g.ps != []
    ensures Trees(Finished(g))
  {
    reveal Trees();
    var g' := Finished(g); var h := g.ps[0].h;
    assert g'.hs[..|g.hs|] == g.hs;
    OverOv(g.tb, Merge(g.hs), h);
    var t := g.hs[g.k..];
    assert g'.hs[g.k..] == t + [h] && (t + [h])[..|t|] == t && g'.hs[..g.k] == g.hs[..g.k];
    OverOv(g.tb2, Merge(t), h);
    if g.ip >= 1 {
      var x := Over(g'.base, g.im); var y := Over(Over(g.base, g.im), h);
      forall a | a in x ensures x[a] == y[a] { if a in h { PendHome(g, n, 0, a); } }
      assert x == y;
    }
    forall i, j, a | 0 <= i < j < |g'.hs| && a in g'.hs[i] ensures a !in g'.hs[j] { assert a in g.hs[i]; assert !InPend(g.ps, a); assert a !in g.ps[0].h; }
    forall i, a | 0 <= i < |g'.hs| && a in g'.hs[i] ensures a !in g'.torn { if i < |g.hs| { assert a in g.hs[i]; } }
  }
  lemma FinishState(g: G, n: int)
    requires GInv(g, n) && g.ps != []
    ensures DurState(Finished(g)) == Applied(DurState(g), g.ps[..1]) && ComState(Finished(g)) == ComState(g)
  {
    var g' := Finished(g); var e := g.ps[0];
    assert g'.gs[..|g'.gs|-1] == g.gs;
    assert Merge(g'.gs) == Ov(Merge(g.gs), e.m);
    OverOv(g'.base, Merge(g.gs), e.m);
    forall a | a in g.base ensures Over(g'.base, Merge(g.gs))[a] == Over(DurState(g), e.h)[a] {
      if a in e.h { PendHome(g, n, 0, a); }
    }
    assert Over(g'.base, Merge(g.gs)) == Over(DurState(g), e.h);
    assert g.ps[..1] == [e] && [e][..0] == [];
    AfterFirst(DurState(g), g.ps);
  }
  // what is pending is not the installer's business
  lemma PendKept(g: G, g2: G, n: int)
    requires GInv(g, n) && g2.p == g.p && g2.ps == g.ps && g2.sg == g.sg && g2.hq == g.hq && g2.gs == g.gs && g2.hs == g.hs && g2.base == g.base
    ensures Sealed(g2) && Kept(g2) && forall j :: 0 <= j < |g.ps| ==> PendWf(g2, g2.ps[j], End(g2) + j, n)
  {
    assert End(g2) == End(g) && DurState(g2) == DurState(g);
    forall j | 0 <= j < |g.ps| ensures PendWf(g2, g2.ps[j], End(g2) + j, n) { assert PendWf(g, g.ps[j], End(g) + j, n); }
    FreeKept(g, g2);
  }
  lemma FreeKept(g: G, g2: G)
    requires Free(g) && g2.p == g.p && g2.ps == g.ps && g2.sg == g.sg && End(g2) == End(g) && DurState(g2) == DurState(g)
    ensures Free(g2)
  {
    reveal Free();
    forall i, j, a | 0 <= i <= j && DirPend(g2.ps, j, a) ensures FreeIn(g2.p, PState(g2, i), a) { assert PState(g2, i) == PState(g, i) by { reveal PState(); } }
  }
  function IStarted(g: G): G { g.(k := |g.gs|, im := Merge(g.gs), ip := 1, ilo := g.wp, tb2 := Over(g.base, Merge(g.gs))) }
  lemma StartTrees(g: G)
    requires Trees(g) && g.ip == 0 && |g.gs| == |g.hs|
    ensures Trees(IStarted(g))
  {
    reveal Trees();
    var g' := IStarted(g);
    assert g.hs[|g.gs|..] == [] && g.hs[..|g.gs|] == g.hs;
    assert Over(g'.tb2, map[]) == g'.tb2;
  }
  lemma IStartPres(poss: Poss, g: G)
    requires Full(poss, g) && g.ip == 0
    ensures Full(poss, IStarted(g))
  {
    reveal Full();
    var g' := IStarted(g);
    assert g.gs[..|g.gs|] == g.gs;
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall b | Home(g.p) <= b < |poss| ensures HomePoss(poss[b], g', b) { assert HomePoss(poss[b], g, b); }
    forall x | 0 <= x < |g.gs| ensures Logged(poss, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedSg(poss, g, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    StartTrees(g);
    PendKept(g, g', |poss|);
  }
  lemma InstWritePres(poss: Poss, g: G, a: int, n: int)
    requires Full(poss, g) && g.ip == 1 && Home(g.p) <= a && 0 <= n && a + n <= |poss| && forall x :: a <= x < a + n ==> x in g.im
    ensures Full(Fuzzy(poss, a, n), g)
  {
    reveal Full();
    var p := Fuzzy(poss, a, n);
    assert p[g.p.at] == poss[g.p.at] && p[Copy(g.p)] == poss[Copy(g.p)];
    forall x | 0 <= x < |g.gs| ensures Logged(p, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedFrame(p, poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    forall b | Home(g.p) <= b < |p| ensures HomePoss(p[b], g, b) { assert HomePoss(poss[b], g, b); }
  }
  // the same state with another phase of the installer; r2: the root of the next header
  lemma PhasePres(poss: Poss, poss2: Poss, g: G, ip: int, r2: CV)
    requires Full(poss, g) && g.ip > 0 && ip > 0 && |poss2| == |poss| && (ip == 3 ==> Says(g.p, r2, g.tb2))
    requires forall a :: 0 <= a < |poss| && a != g.p.at && a != Copy(g.p) ==> poss2[a] == poss[a]
    requires forall x :: x in poss2[g.p.at] || x in poss2[Copy(g.p)] ==> HdrOk(x, g.(ip := ip, r2 := r2))
    requires forall b :: Home(g.p) <= b < |poss| ==> HomePoss(poss[b], g.(ip := ip, r2 := r2), b)
    requires ip <= 3
    ensures Full(poss2, g.(ip := ip, r2 := r2))
  {
    reveal Full();
    var g' := g.(ip := ip, r2 := r2);
    TreesKept(g, g');
    forall x | 0 <= x < |g.gs| ensures Logged(poss2, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedFrame(poss2, poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedSg(poss2, g, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    PendKept(g, g', |poss|);
  }
  lemma InstBarrierPres(poss: Poss, g: G)
    requires Full(poss, g) && g.ip == 1
    requires forall a :: a in g.im && Home(g.p) <= a < |poss| ==> poss[a] <= iset{g.im[a]}
    ensures Full(poss, g.(ip := 2))
  {
    FullD(poss, g);
    var g' := g.(ip := 2);
    forall b | Home(g.p) <= b < |poss| ensures HomePoss(poss[b], g', b) { assert HomePoss(poss[b], g, b); }
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    PhasePres(poss, poss, g, 2, g.r2);
    assert g' == g.(ip := 2, r2 := g.r2);
  }
  function AddHdr(poss: Poss, c: int, v: BV): Poss requires 0 <= c < |poss| { poss[c := poss[c] + iset{v}] }
  // header v is being written to c: to its place, or to that of its copy
  lemma HdrWritePres(poss: Poss, g: G, c: int, v: BV, r2: CV)
    requires Full(poss, g) && 2 <= g.ip && HdrTail(v) && DecHdr(g.p.key, v) == Hdr(g.hq + g.k, g.p.ep, r2) && (c == g.p.at || c == Copy(g.p))
    requires Says(g.p, r2, g.tb2) && (g.ip == 3 ==> r2 == g.r2)
    ensures Full(AddHdr(poss, c, v), g.(ip := 3, r2 := r2))
    ensures forall x :: x in poss[c] ==> SameTail(x, v)
  {
    FullD(poss, g);
    var g' := g.(ip := 3, r2 := r2);
    var p := AddHdr(poss, c, v);
    forall b | Home(g.p) <= b < |poss| ensures HomePoss(poss[b], g', b) { assert HomePoss(poss[b], g, b); }
    forall x | x in p[g.p.at] + p[Copy(g.p)] ensures HdrOk(x, g') { if x in poss[g.p.at] + poss[Copy(g.p)] { assert HdrOk(x, g); } }
    forall x | x in poss[c] ensures SameTail(x, v) { assert HdrOk(x, g); }
    PhasePres(poss, p, g, 3, r2);
  }
  function IFinished(g: G): G
    requires |g.ds| == |g.gs| == |g.hs| && 0 <= g.k <= |g.gs|
  {
    g.(hq := g.hq + g.k, gs := g.gs[g.k..], hs := g.hs[g.k..], ds := g.ds[g.k..], k := 0, base := Over(g.base, g.im), im := map[],
       ip := 0, lo := g.ilo, r := g.r2, tb := g.tb2, torn := g.torn - g.im.Keys)
  }
  lemma IFinishHome(poss: Poss, g: G, b: int)
    requires Full(poss, g) && g.ip == 3 && Home(g.p) <= b < |poss|
    ensures b in IFinished(g).base && HomePoss(poss[b], IFinished(g), b)
  { reveal Full(); assert HomePoss(poss[b], g, b); }
  lemma IFinishTrees(poss: Poss, g: G)
    requires Full(poss, g) && g.ip == 3
    ensures Trees(IFinished(g))
  {
    FullD(poss, g);
    reveal Trees();
    var g' := IFinished(g);
    assert g'.hs[0..] == g'.hs && g'.hs[..0] == [];
    forall i, j, a | 0 <= i < j < |g'.hs| && a in g'.hs[i] ensures a !in g'.hs[j] { assert a in g.hs[g.k + i]; assert g'.hs[j] == g.hs[g.k + j]; }
    forall i, a | 0 <= i < |g'.hs| && a in g'.hs[i] ensures a !in g'.torn { assert a in g.hs[g.k + i]; }
  }
  lemma IFinishLogged(poss: Poss, g: G, x: int)
    requires Full(poss, g) && g.ip == 3 && 0 <= x < |g.gs| - g.k
    ensures var g' := IFinished(g); GroupWf(g.p, g'.gs[x], g'.hs[x], g'.ds[x], g'.hq + x, |poss|) && Logged(poss, g', g'.gs[x], g'.hs[x], g'.ds[x], g'.hq + x)
    ensures var g' := IFinished(g); g'.ds[x] == g.ds[g.k + x] && g.ilo <= g'.ds[x].pos && g'.ds[x].pos + |g'.ds[x].addrs| <= g.wp
  {
    reveal Full();
    assert Logged(poss, g, g.gs[g.k + x], g.hs[g.k + x], g.ds[g.k + x], g.hq + (g.k + x));
    LoggedSg(poss, g, IFinished(g), g.gs[g.k + x], g.hs[g.k + x], g.ds[g.k + x], g.hq + (g.k + x));
  }
  lemma IFinishStates(poss: Poss, g: G)
    requires Full(poss, g) && g.ip == 3
    ensures DurState(IFinished(g)) == DurState(g)
    ensures Merge(g.gs) == Ov(g.im, Merge(g.gs[g.k..]))
  {
    reveal Full();
    assert g.gs == g.gs[..g.k] + g.gs[g.k..];
    MergeCat(g.gs[..g.k], g.gs[g.k..]);
    OverOv(g.base, g.im, Merge(g.gs[g.k..]));
  }
  lemma IFinishKept(poss: Poss, g: G)
    requires Full(poss, g) && g.ip == 3
    ensures Kept(IFinished(g))
  {
    FullD(poss, g);
    var g' := IFinished(g);
    IFinishStates(poss, g);
    forall i, a | 0 <= i < |g'.hs| && a in g'.hs[i]
      ensures a in g'.base && g'.base[a] == g'.hs[i][a] && !InPend(g.ps, a) && Direct(g.sg, g'.hq + i, a)
    {
      assert a in g.hs[g.k + i];
      KeptHome(g, |poss|, g.k + i, a);
      assert g.hq + (g.k + i) == g'.hq + i;
    }
    ClearTail(g.gs, g.sg, g.hq, g.k);
    ClearFrom(Ms(g.ps), g.sg, g.hq, g'.hq);
    FreeKept(g, g');
  }
  // a header block, for certain the one that passes what is installed
  predicate HdrAll(s: iset<BV>, g: G) { forall x :: x in s ==> DecHdr(g.p.key, x) == Hdr(g.hq + g.k, g.p.ep, g.r2) }
  lemma IFinishPres(poss: Poss, g: G)
    requires Full(poss, g) && g.ip == 3 && HdrAll(poss[g.p.at], g) && HdrAll(poss[Copy(g.p)], g)
    ensures Full(poss, IFinished(g)) && DurState(IFinished(g)) == DurState(g) && ComState(IFinished(g)) == ComState(g)
    ensures Merge(g.gs) == Ov(g.im, Merge(g.gs[g.k..]))
  {
    reveal Full();
    var g' := IFinished(g);
    forall b | Home(g.p) <= b < |poss| ensures b in g'.base && HomePoss(poss[b], g', b) { IFinishHome(poss, g, b); }
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall x | 0 <= x < |g'.gs|
      ensures GroupWf(g.p, g'.gs[x], g'.hs[x], g'.ds[x], g'.hq + x, |poss|) && Logged(poss, g', g'.gs[x], g'.hs[x], g'.ds[x], g'.hq + x)
      ensures g.ilo <= g'.ds[x].pos && g'.ds[x].pos + |g'.ds[x].addrs| <= g.wp
    { IFinishLogged(poss, g, x); }
    IFinishStates(poss, g);
    IFinishKept(poss, g);
    IFinishTrees(poss, g);
    assert g'.gs[..0] == [];
    assert Sealed(g');
    assert GInv(g', |poss|);
    assert PInv(g');
  }
}
