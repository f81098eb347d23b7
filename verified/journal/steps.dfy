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
    requires g.com ==> g2.com && g2.ch == g.ch
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
  // what live groups have to do with the one that is being committed
  lemma LiveCom(g: G, n: int, x: int)
    requires GInv(g, n) && PInv(g) && g.com && 0 <= x < |g.gs|
    ensures g.cd.sq == End(g) && g.ds[x].sq == g.hq + x && g.ds[x].sq < g.cd.sq < g.ds[x].sq + g.p.nd
    ensures g.ds[x].pos + |g.ds[x].addrs| <= g.cd.pos && g.cd.pos + |g.cd.addrs| <= g.ds[x].pos + g.p.nr
  {}
  // n data blocks of the committing group, from the i-th on, are being written
  lemma LogWritePres(poss: Poss, g: G, i: int, n: int)
    requires Full(poss, g) && g.com && Side(g.p, g.cd, i, n) && n > 0
    ensures Full(Fuzzy(poss, At(g.p, g.cd, i), n), g)
  {
    reveal Full();
    var a := At(g.p, g.cd, i);
    assert At(g.p, g.cd, i + (n - 1)) == a + (n - 1) by { if |g.cd.addrs| > 15 { SlotRun(g.cd.pos + i, n - 1, g.p.nr); assert g.cd.pos + i + (n - 1) == g.cd.pos + (i + (n - 1)); } }
    var p := Fuzzy(poss, a, n);
    assert p[g.p.at] == poss[g.p.at] && p[Copy(g.p)] == poss[Copy(g.p)];
    forall x | 0 <= x < |g.gs| ensures Logged(p, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      var d := g.ds[x];
      LiveCom(g, |poss|, x);
      forall j | 0 <= j < |d.addrs| ensures p[At(g.p, d, j)] == poss[At(g.p, d, j)] { NotInData(g.p, d, j, g.cd, i, n); }
      NotInDesc(g.p, d.sq, g.cd, i, n);
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
  // direct blocks of the committing group are being written
  lemma DirWritePres(poss: Poss, g: G, a: int, n: int)
    requires Full(poss, g) && g.com && Home(g.p) <= a && 0 <= n && a + n <= |poss| && forall x :: a <= x < a + n ==> x in g.ch
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
  lemma DescWritePres(poss: Poss, g: G)
    requires Full(poss, g) && g.com
    ensures Full(Fuzzy(poss, DSlot(g.p, End(g)), 1), g)
  {
    reveal Full();
    var a := DSlot(g.p, End(g));
    var p := Fuzzy(poss, a, 1);
    assert p[g.p.at] == poss[g.p.at] && p[Copy(g.p)] == poss[Copy(g.p)];
    forall x | 0 <= x < |g.gs| ensures Logged(p, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LiveDesc(g, |poss|, x);
      LoggedFrame(p, poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    forall b | Home(g.p) <= b < |p| ensures HomePoss(p[b], g, b) { assert p[b] == poss[b]; assert HomePoss(poss[b], g, b); }
  }
  // the committing group is small, and all of its unit is being written
  lemma UnitWritePres(poss: Poss, g: G)
    requires Full(poss, g) && g.com && |g.cd.addrs| <= 15
    ensures g.cd.sq == End(g) && DSlot(g.p, End(g)) + 1 + |g.cd.addrs| <= |poss|
    ensures Full(Fuzzy(poss, DSlot(g.p, End(g)), 1 + |g.cd.addrs|), g)
  {
    FullD(poss, g);
    var a := DSlot(g.p, End(g)); var n := |g.cd.addrs|;
    DescWritePres(poss, g);
    var q := Fuzzy(poss, a, 1);
    if n > 0 { LogWritePres(q, g, 0, n); assert At(g.p, g.cd, 0) == a + 1; }
    assert Fuzzy(poss, a, 1 + n) == if n == 0 then q else Fuzzy(q, a + 1, n);
  }
  // the committing group's descriptor is nothing of a live group
  lemma LiveDesc(g: G, n: int, x: int)
    requires GInv(g, n) && PInv(g) && g.com && 0 <= x < |g.gs|
    ensures DSlot(g.p, g.hq + x) != DSlot(g.p, End(g))
    ensures forall j :: 0 <= j < |g.ds[x].addrs| ==> At(g.p, g.ds[x], j) != DSlot(g.p, End(g))
  {
    LiveCom(g, n, x);
    UnitApart(g.p, g.hq + x, End(g));
    forall j | 0 <= j < |g.ds[x].addrs| ensures At(g.p, g.ds[x], j) != DSlot(g.p, End(g)) { NotInData(g.p, g.ds[x], j, g.cd, 0, 0); }
  }
  function Started(g: G, m: BM, h: BM, d: Desc, b: BV, r: Rec): G { g.(com := true, cg := m, ch := h, cd := d, cb := b, sg := g.sg + {r}) }
  // h may go straight home: it is free, and nobody needs it; and no live group has m or h direct
  predicate Ready(g: G, m: BM, h: BM) {
    (forall a :: a in h ==> FreeIn(g.p, DurState(g), a) && a !in m && !Direct(g.sg, g.hq, a)) &&
    (forall i, a {:trigger a in g.gs[i]} :: 0 <= i < |g.gs| && a in g.gs[i] ==> a !in h) &&
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
    requires Full(poss, g) && !g.com && Ready(g, m, h)
    requires GroupWf(g.p, m, h, d, End(g), |poss|) && DecDesc(b) == SomeDesc(d) && d.pos == g.wp
    requires |g.gs| < g.p.nd && g.wp + |d.addrs| <= g.lo + g.p.nr
    ensures Full(poss, Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    reveal Full();
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    KeepHome(poss, g, g');
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall x | 0 <= x < |g.gs| ensures Logged(poss, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x) {
      assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      LoggedSg(poss, g, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x);
    }
    forall r | r in g'.sg ensures Below(r, End(g')) || IsCom(g', r) { if r in g.sg { assert Below(r, End(g)); } }
    assert Sealed(g');
    StartKept(g, m, h, d, b, |poss|);
    TreesKept(g, g');
  }
  lemma StartKept(g: G, m: BM, h: BM, d: Desc, b: BV, n: int)
    requires GInv(g, n) && !g.com && Ready(g, m, h) && GroupWf(g.p, m, h, d, End(g), n) && DecDesc(b) == SomeDesc(d)
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
    forall a, i | 0 <= i < |[m]| && a in [m][i] ensures !Direct(g'.sg, g.hq, a) { assert i == 0 && a in m; }
    forall a | a in h ensures Direct(g'.sg, End(g), a) { assert rec in g'.sg && DirectOf(rec, End(g), a); }
    forall i, a | 0 <= i < |g.hs| && a in g.hs[i] ensures a !in h && Direct(g'.sg, g.hq + i, a) {
      assert Direct(g.sg, g.hq + i, a);
      DirectFrom(g.sg, g.hq, g.hq + i, a);
    }
  }
  function Finished(g: G): G {
    g.(com := false, cg := map[], ch := map[], gs := g.gs + [g.cg], hs := g.hs + [g.ch], ds := g.ds + [g.cd],
       base := Over(g.base, g.ch), wp := g.wp + |g.cd.addrs|, torn := g.torn - g.ch.Keys)
  }
  lemma FinishPres(poss: Poss, g: G)
    requires Full(poss, g) && g.com && Logged(poss, g, g.cg, g.ch, g.cd, End(g)) && DirHome(poss, g)
    requires End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000
    ensures Full(poss, Finished(g)) && DurState(Finished(g)) == ComState(g)
  {
    reveal Full();
    var g' := Finished(g);
    assert g'.gs[..g'.k] == g.gs[..g.k];
    forall a | Home(g.p) <= a < |poss| ensures HomePoss(poss[a], g', a) {
      assert HomePoss(poss[a], g, a);
      if a in g.ch { ComHome(g, |poss|, a); }
    }
    forall x | x in poss[g.p.at] + poss[Copy(g.p)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall x | 0 <= x < |g'.gs| ensures Logged(poss, g', g'.gs[x], g'.hs[x], g'.ds[x], g.hq + x) {
      if x < |g.gs| {
        assert Logged(poss, g, g.gs[x], g.hs[x], g.ds[x], g.hq + x);
        LoggedSg(poss, g, g', g.gs[x], g.hs[x], g.ds[x], g.hq + x);
      } else { LoggedSg(poss, g, g', g.cg, g.ch, g.cd, End(g)); }
    }
    forall r | r in g'.sg ensures Below(r, End(g')) {}
    assert Sealed(g');
    FinishKept(g, |poss|);
    FinishTrees(g, |poss|);
    FinishState(g, |poss|);
  }
  // the direct blocks of the committing group are at home
  predicate DirHome(poss: Poss, g: G) { forall a :: a in g.ch ==> 0 <= a < |poss| && poss[a] <= iset{g.ch[a]} }
  lemma FinishKept(g: G, n: int)
    requires GInv(g, n) && g.com
    ensures Kept(Finished(g))
  {
    var g' := Finished(g);
    forall i, a | 0 <= i < |g'.hs| && a in g'.hs[i] ensures a in g'.base && g'.base[a] == g'.hs[i][a] && Direct(g.sg, g.hq + i, a) {
      if i < |g.hs| { assert a in g.hs[i]; assert a !in g.ch; }
    }
    ClearCat(g.gs, [g.cg], g.sg, g.hq);
  }
  lemma FinishTrees(g: G, n: int)
    requires GInv(g, n) && g.com
    ensures Trees(Finished(g))
  {
    reveal Trees();
    var g' := Finished(g);
    assert g'.hs[..|g.hs|] == g.hs;
    OverOv(g.tb, Merge(g.hs), g.ch);
    var t := g.hs[g.k..];
    assert g'.hs[g.k..] == t + [g.ch] && (t + [g.ch])[..|t|] == t && g'.hs[..g.k] == g.hs[..g.k];
    OverOv(g.tb2, Merge(t), g.ch);
    if g.ip >= 1 {
      var x := Over(g'.base, g.im); var y := Over(Over(g.base, g.im), g.ch);
      forall a | a in x ensures x[a] == y[a] { if a in g.ch { ComHome(g, n, a); } }
      assert x == y;
    }
    forall i, j, a | 0 <= i < j < |g'.hs| && a in g'.hs[i] ensures a !in g'.hs[j] { assert a in g.hs[i]; }
    forall i, a | 0 <= i < |g'.hs| && a in g'.hs[i] ensures a !in g'.torn { if i < |g.hs| { assert a in g.hs[i]; } }
  }
  lemma FinishState(g: G, n: int)
    requires GInv(g, n) && g.com
    ensures DurState(Finished(g)) == ComState(g)
  {
    var g' := Finished(g);
    assert g'.gs[..|g'.gs|-1] == g.gs;
    assert Merge(g'.gs) == Ov(Merge(g.gs), g.cg);
    OverOv(g'.base, Merge(g.gs), g.cg);
    forall a | a in g.base ensures Over(g'.base, Merge(g.gs))[a] == Over(DurState(g), g.ch)[a] {
      if a in g.ch { ComHome(g, n, a); }
    }
    assert Over(g'.base, Merge(g.gs)) == Over(DurState(g), g.ch);
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
    assert Sealed(g');
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
    assert Sealed(g');
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
      ensures a in g'.base && g'.base[a] == g'.hs[i][a] && (g.com ==> a !in g.ch) && Direct(g.sg, g'.hq + i, a)
    {
      assert a in g.hs[g.k + i];
      KeptHome(g, |poss|, g.k + i, a);
      assert g.hq + (g.k + i) == g'.hq + i;
    }
    ClearTail(g.gs, g.sg, g.hq, g.k);
    if g.com { ClearFrom([g.cg], g.sg, g.hq, g'.hq); }
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
