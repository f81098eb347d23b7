// The steps of the protocol, as pure mathematics: one lemma per kind of step says that
// it keeps the invariant.
include "model.dfy"

module LogSteps {
  import opened Machine
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened Ring
  import opened LogModel

  predicate {:opaque} Full(poss: Poss, g: Protocol)
    ensures Full(poss, g) ==>
      GeoOk(g.layout) && |poss| >= Home(g.layout) && 0 <= g.firstSeq && |g.descs| == |g.groups| == |g.directs| &&
        0 <= g.installCount <= |g.groups| <= g.layout.units &&
      g.installBlocks == Merge(g.groups[..g.installCount]) && (g.phase == NoInstall ==> g.installCount == 0) &&
      (forall a :: a in g.base <==> Home(g.layout) <= a < |poss|) &&
      0 <= g.logStart <= g.posAfterInstall <= g.logEnd <= g.logStart + g.layout.ringSize
  { DInv(poss, g) && PInv(g) }
  lemma FullD(poss: Poss, g: Protocol)
    requires Full(poss, g)
    ensures DInv(poss, g) && PInv(g)
  { reveal Full(); }

  // g changed to g2 in a way that says nothing new about logged groups and home blocks
  lemma KeepHome(poss: Poss, g: Protocol, g2: Protocol)
    requires DInv(poss, g) && g2.layout == g.layout && g2.base == g.base && g2.installBlocks == g.installBlocks &&
      g2.phase == g.phase && g2.torn == g.torn
    requires forall a :: InPend(g.pending, a) ==> InPend(g2.pending, a)
    ensures forall a :: Home(g.layout) <= a < |poss| ==> HomePoss(poss[a], g2, a)
  { forall a | Home(g.layout) <= a < |poss| ensures HomePoss(poss[a], g2, a) { assert HomePoss(poss[a], g, a); } }

  lemma HomeLess(s: iset<BV>, s2: iset<BV>, g: Protocol, a: int)
    requires a in g.base && s <= s2 && HomePoss(s2, g, a)
    ensures HomePoss(s, g, a)
  {}
  lemma BarrierPres(p: Poss, q: Poss, g: Protocol)
    requires SubPoss(p, q) && Full(q, g)
    ensures Full(p, g)
  {
    reveal Full();
    forall i | 0 <= i < |g.groups| ensures Logged(p, g, g.groups[i], g.directs[i], g.descs[i], g.firstSeq + i) {
      assert Logged(q, g, g.groups[i], g.directs[i], g.descs[i], g.firstSeq + i);
      LoggedFrame(p, q, g, g.groups[i], g.directs[i], g.descs[i], g.firstSeq + i);
    }
    forall a | Home(g.layout) <= a < |p| ensures HomePoss(p[a], g, a) {
      assert HomePoss(q[a], g, a); assert p[a] <= q[a]; HomeLess(p[a], q[a], g, a);
    }
    forall x | x in p[g.layout.headerAt] + p[Copy(g.layout)] ensures HdrOk(x, g) {
      assert x in q[g.layout.headerAt] + q[Copy(g.layout)];
    }
  }
  // a logged group is still logged when nothing more is possible where it lies
  lemma LoggedFrame(p: Poss, q: Poss, g: Protocol, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.layout) && |p| == |q| >= Home(g.layout) && Logged(q, g, m, h, d, sq)
    requires p[DSlot(g.layout, sq)] <= q[DSlot(g.layout, sq)]
    requires forall j :: 0 <= j < |d.addrs| ==> p[DataBlock(g.layout, d, j)] <= q[DataBlock(g.layout, d, j)]
    ensures Logged(p, g, m, h, d, sq)
  {
    forall j | 0 <= j < |d.addrs| ensures p[DataBlock(g.layout, d, j)] <= iset{m[d.addrs[j]]} {
      assert p[DataBlock(g.layout, d, j)] <= q[DataBlock(g.layout, d, j)];
    }
  }
  // position x is not among the n slots from position b on
  lemma NotInRun(p: Geo, x: int, b: int, n: int)
    requires GeoOk(p) && 0 <= n && Slot(b, p.ringSize) + n <= p.ringSize && x < b && b + n <= x + p.ringSize
    ensures !(LSlot(p, b) <= LSlot(p, x) < LSlot(p, b) + n)
  {
    if LSlot(p, b) <= LSlot(p, x) < LSlot(p, b) + n {
      var k := LSlot(p, x) - LSlot(p, b);
      SlotRun(b, k, p.ringSize);
      SlotDistinct(x, b + k, p.ringSize);
    }
  }
  lemma UnitApart(p: Geo, q: int, r: int)
    requires GeoOk(p) && q < r < q + p.units
    ensures DSlot(p, q) + 16 <= DSlot(p, r) || DSlot(p, r) + 16 <= DSlot(p, q)
  { SlotDistinct(q, r, p.units); }
  // the n blocks of group d from the i-th on lie side by side
  predicate Side(p: Geo, d: Desc, i: int, n: int) requires GeoOk(p) {
    0 <= i && 0 <= n && i + n <= |d.addrs| && (|d.addrs| <= 15 || Slot(d.pos + i, p.ringSize) + n <= p.ringSize)
  }
  // group e is live, and d the next or one after that: what d writes is not e's
  lemma NotInData(p: Geo, e: Desc, j: int, d: Desc, i: int, n: int)
    requires GeoOk(p) && 0 <= j < |e.addrs| && Side(p, d, i, n) && e.sq < d.sq < e.sq + p.units
    requires e.pos + |e.addrs| <= d.pos && d.pos + |d.addrs| <= e.pos + p.ringSize
    ensures !(DataBlock(p, d, i) <= DataBlock(p, e, j) < DataBlock(p, d, i) + n) && DSlot(p, d.sq) != DataBlock(p, e, j)
  {
    UnitApart(p, e.sq, d.sq);
    if |d.addrs| > 15 && |e.addrs| > 15 { NotInRun(p, e.pos + j, d.pos + i, n); }
  }
  lemma NotInDesc(p: Geo, q: int, d: Desc, i: int, n: int)
    requires GeoOk(p) && Side(p, d, i, n) && q <= d.sq < q + p.units
    ensures !(DataBlock(p, d, i) <= DSlot(p, q) < DataBlock(p, d, i) + n)
  { if q < d.sq { UnitApart(p, q, d.sq); } }
  // what live groups have to do with a pending one
  lemma LivePend(g: Protocol, n: int, x: int, j: int)
    requires GInv(g, n) && PInv(g) && 0 <= x < |g.groups| && 0 <= j < |g.pending|
    ensures var d := g.pending[j].desc; d.sq == End(g) + j && g.descs[x].sq == g.firstSeq + x &&
      g.descs[x].sq < d.sq < g.descs[x].sq + g.layout.units
    ensures var d := g.pending[j].desc; g.descs[x].pos + |g.descs[x].addrs| <= d.pos &&
      d.pos + |d.addrs| <= g.descs[x].pos + g.layout.ringSize
  { assert PendWf(g, g.pending[j], End(g) + j, n); }
  // n data blocks of the j-th pending group, from the i-th on, are being written
  lemma LogWritePres(poss: Poss, g: Protocol, j: int, i: int, n: int)
    requires Full(poss, g) && 0 <= j < |g.pending| && Side(g.layout, g.pending[j].desc, i, n) && n > 0
    ensures Full(Fuzzy(poss, DataBlock(g.layout, g.pending[j].desc, i), n), g)
  {
    reveal Full();
    var e := g.pending[j].desc;
    var a := DataBlock(g.layout, e, i);
    assert DataBlock(g.layout, e, i + (n - 1)) == a + (n - 1) by {
      if |e.addrs| > 15 {
        SlotRun(e.pos + i, n - 1, g.layout.ringSize); assert e.pos + i + (n - 1) == e.pos + (i + (n - 1));
      }
    }
    var p := Fuzzy(poss, a, n);
    assert p[g.layout.headerAt] == poss[g.layout.headerAt] && p[Copy(g.layout)] == poss[Copy(g.layout)];
    forall x | 0 <= x < |g.groups| ensures Logged(p, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      var d := g.descs[x];
      LivePend(g, |poss|, x, j);
      forall y | 0 <= y < |d.addrs| ensures p[DataBlock(g.layout, d, y)] == poss[DataBlock(g.layout, d, y)] {
        NotInData(g.layout, d, y, e, i, n);
      }
      NotInDesc(g.layout, d.sq, e, i, n);
      LoggedFrame(p, poss, g, g.groups[x], g.directs[x], d, g.firstSeq + x);
    }
    forall b | Home(g.layout) <= b < |p| ensures HomePoss(p[b], g, b) {
      assert p[b] == poss[b]; assert HomePoss(poss[b], g, b);
    }
  }
  // blocks before the header, which are none of the log's, are being written
  lemma TreeWritePres(poss: Poss, g: Protocol, a: int, n: int)
    requires Full(poss, g) && 0 <= a && 0 <= n && a + n <= g.layout.headerAt
    ensures Full(Fuzzy(poss, a, n), g)
  {
    reveal Full();
    var p := Fuzzy(poss, a, n);
    forall x | 0 <= x < |g.groups| ensures Logged(p, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LoggedFrame(p, poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
    }
    forall b | Home(g.layout) <= b < |p| ensures HomePoss(p[b], g, b) { assert HomePoss(poss[b], g, b); }
  }
  // direct blocks of pending groups are being written
  lemma DirWritePres(poss: Poss, g: Protocol, a: int, n: int)
    requires Full(poss, g) && Home(g.layout) <= a && 0 <= n && a + n <= |poss| &&
      forall x :: a <= x < a + n ==> InPend(g.pending, x)
    ensures Full(Fuzzy(poss, a, n), g)
  {
    reveal Full();
    var p := Fuzzy(poss, a, n);
    assert p[g.layout.headerAt] == poss[g.layout.headerAt] && p[Copy(g.layout)] == poss[Copy(g.layout)];
    forall x | 0 <= x < |g.groups| ensures Logged(p, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LoggedFrame(p, poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
    }
    forall b | Home(g.layout) <= b < |p| ensures HomePoss(p[b], g, b) { assert HomePoss(poss[b], g, b); }
  }
  lemma DescWritePres(poss: Poss, g: Protocol, j: int)
    requires Full(poss, g) && 0 <= j < |g.pending|
    ensures Full(Fuzzy(poss, DSlot(g.layout, End(g) + j), 1), g)
  {
    reveal Full();
    var a := DSlot(g.layout, End(g) + j);
    var p := Fuzzy(poss, a, 1);
    assert p[g.layout.headerAt] == poss[g.layout.headerAt] && p[Copy(g.layout)] == poss[Copy(g.layout)];
    forall x | 0 <= x < |g.groups| ensures Logged(p, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LiveDesc(g, |poss|, x, j);
      LoggedFrame(p, poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
    }
    forall b | Home(g.layout) <= b < |p| ensures HomePoss(p[b], g, b) {
      assert p[b] == poss[b]; assert HomePoss(poss[b], g, b);
    }
  }
  // a pending group is small, and all of its unit is being written
  lemma UnitWritePres(poss: Poss, g: Protocol, j: int, d: Desc)
    requires Full(poss, g) && 0 <= j < |g.pending| && d == g.pending[j].desc && |d.addrs| <= 15
    ensures d.sq == End(g) + j && DSlot(g.layout, d.sq) + 1 + |d.addrs| <= |poss|
    ensures Full(Fuzzy(poss, DSlot(g.layout, d.sq), 1 + |d.addrs|), g)
  {
    assert d.sq == End(g) + j && GeoOk(g.layout) && |poss| >= Home(g.layout) by {
      FullD(poss, g); assert PendWf(g, g.pending[j], End(g) + j, |poss|);
    }
    var a := DSlot(g.layout, d.sq); var n := |d.addrs|;
    DescWritePres(poss, g, j);
    var q := Fuzzy(poss, a, 1);
    if n > 0 { LogWritePres(q, g, j, 0, n); assert DataBlock(g.layout, d, 0) == a + 1; }
    assert Fuzzy(poss, a, 1 + n) == if n == 0 then q else Fuzzy(q, a + 1, n);
  }
  // a pending group's descriptor is nothing of a live group
  lemma LiveDesc(g: Protocol, n: int, x: int, j: int)
    requires GInv(g, n) && PInv(g) && 0 <= x < |g.groups| && 0 <= j < |g.pending|
    ensures DSlot(g.layout, g.firstSeq + x) != DSlot(g.layout, End(g) + j)
    ensures forall y :: 0 <= y < |g.descs[x].addrs| ==>
      DataBlock(g.layout, g.descs[x], y) != DSlot(g.layout, End(g) + j)
  {
    LivePend(g, n, x, j);
    UnitApart(g.layout, g.firstSeq + x, End(g) + j);
    forall y | 0 <= y < |g.descs[x].addrs| ensures DataBlock(g.layout, g.descs[x], y) != DSlot(g.layout, End(g) + j) {
      NotInData(g.layout, g.descs[x], y, g.pending[j].desc, 0, 0);
    }
  }
  function Started(g: Protocol, m: BM, h: BM, d: Desc, b: BV, r: Rec): Protocol {
    g.(pending := g.pending + [Pend(m, h, d, b)], signed := g.signed + {r})
  }
  // block a is free in the durable state, and after each of the pending groups
  predicate {:opaque} FreeAll(g: Protocol, a: int) {
    forall i :: 0 <= i <= |g.pending| ==> FreeIn(g.layout, PState(g, i), a)
  }
  // h may go straight home: it is free, and nobody needs it; and no live or pending group has m or h direct
  predicate Ready(g: Protocol, m: BM, h: BM) {
    (forall a :: a in h ==> FreeAll(g, a) && a !in m && !Direct(g.signed, g.firstSeq, a)) &&
    (forall i, a {:trigger a in g.groups[i]} :: 0 <= i < |g.groups| && a in g.groups[i] ==> a !in h) &&
    (forall i, a {:trigger a in g.pending[i].blocks} :: 0 <= i < |g.pending| && a in g.pending[i].blocks ==> a !in h) &&
    (forall a :: a in m ==> !Direct(g.signed, g.firstSeq, a))
  }
  lemma LoggedSg(poss: Poss, g: Protocol, g2: Protocol, m: BM, h: BM, d: Desc, sq: int)
    requires GeoOk(g.layout) && |poss| >= Home(g.layout) && g2.layout == g.layout && g.signed <= g2.signed &&
      Logged(poss, g, m, h, d, sq)
    ensures Logged(poss, g2, m, h, d, sq)
  {}
  lemma TreesKept(g: Protocol, g2: Protocol)
    requires Trees(g) && g2.layout == g.layout && g2.base == g.base && g2.directs == g.directs &&
      g2.installCount == g.installCount && g2.installBlocks == g.installBlocks && g2.treeState == g.treeState &&
      g2.nextTreeState == g.nextTreeState && g2.root == g.root && g2.torn == g.torn
    requires (g2.phase != NoInstall ==> g.phase != NoInstall) &&
      (g2.phase == HeaderWriting ==> (g.phase == HeaderWriting && g2.nextRoot == g.nextRoot) ||
      Says(g.layout, g2.nextRoot, g.nextTreeState))
    ensures Trees(g2)
  { reveal Trees(); }
  lemma StartPres(poss: Poss, g: Protocol, m: BM, h: BM, d: Desc, b: BV)
    requires Full(poss, g) && Ready(g, m, h) && |g.pending| < Window
    requires GroupWf(g.layout, m, h, d, End(g) + |g.pending|, |poss|) && DecDesc(b) == SomeDesc(d) &&
      d.pos == PendEnd(g) && d.dur <= End(g)
    requires |g.groups| + |g.pending| < g.layout.units && PendEnd(g) + |d.addrs| <= g.logStart + g.layout.ringSize
    ensures Full(poss, Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    reveal Full();
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    forall a | InPend(g.pending, a) ensures InPend(g'.pending, a) {
      var j :| 0 <= j < |g.pending| && a in g.pending[j].direct; assert a in g'.pending[j].direct;
    }
    KeepHome(poss, g, g');
    forall x | x in poss[g.layout.headerAt] + poss[Copy(g.layout)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall x | 0 <= x < |g.groups| ensures Logged(poss, g', g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LoggedSg(poss, g, g', g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
    }
    forall j | 0 <= j < |g'.pending| ensures PendWf(g', g'.pending[j], End(g') + j, |poss|) {
      if j < |g.pending| { assert PendWf(g, g.pending[j], End(g) + j, |poss|); }
    }
    StartSealed(g, m, h, d, b, |poss|);
    StartKept(g, m, h, d, b, |poss|);
    TreesKept(g, g');
  }
  lemma StartSealed(g: Protocol, m: BM, h: BM, d: Desc, b: BV, n: int)
    requires GInv(g, n) && GroupWf(g.layout, m, h, d, End(g) + |g.pending|, n) && DecDesc(b) == SomeDesc(d) &&
      d.dur <= End(g)
    ensures Sealed(Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    forall r | r in g'.signed ensures DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.dur <= End(g') &&
      (Below(r, End(g')) || exists i :: 0 <= i < |g'.pending| && IsPend(g'.pending[i], r)) {
      if r in g.signed {
        if !Below(r, End(g)) {
          var i :| 0 <= i < |g.pending| && IsPend(g.pending[i], r); assert IsPend(g'.pending[i], r);
        }
      } else { assert IsPend(g'.pending[|g.pending|], r); }
    }
  }
  lemma StartKept(g: Protocol, m: BM, h: BM, d: Desc, b: BV, n: int)
    requires GInv(g, n) && Ready(g, m, h) && GroupWf(g.layout, m, h, d, End(g) + |g.pending|, n) &&
      DecDesc(b) == SomeDesc(d)
    ensures Kept(Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    assert DurState(g') == DurState(g);
    forall a, q | Direct(g'.signed, q, a) ensures a in h || Direct(g.signed, q, a) {
      var r :| r in g'.signed && DirectOf(r, q, a);
      if r in g.signed { assert DirectOf(r, q, a); } else { assert a in d.dirs; }
    }
    forall a, q | Direct(g.signed, q, a) ensures Direct(g'.signed, q, a) {
      var r :| r in g.signed && DirectOf(r, q, a); assert DirectOf(r, q, a);
    }
    forall a, i | 0 <= i < |g.groups| && a in g.groups[i] ensures !Direct(g'.signed, g.firstSeq, a) {}
    forall a, i | 0 <= i < |BlockMaps(g'.pending)| && a in BlockMaps(g'.pending)[i]
      ensures !Direct(g'.signed, g.firstSeq, a) {
      if i < |g.pending| { assert a in g.pending[i].blocks; assert a in BlockMaps(g.pending)[i]; } else {
        assert a in m;
      }
    }
    forall i, a | 0 <= i < |g.directs| && a in g.directs[i] ensures !InPend(g'.pending, a) &&
      Direct(g'.signed, g.firstSeq + i, a) {
      assert Direct(g.signed, g.firstSeq + i, a);
      DirectFrom(g.signed, g.firstSeq, g.firstSeq + i, a);
      if InPend(g'.pending, a) {
        var j :| 0 <= j < |g'.pending| && a in g'.pending[j].direct;
        if j < |g.pending| { assert a in g.pending[j].direct; }
      }
    }
    StartFree(g, m, h, d, b, n);
  }
  lemma StartFree(g: Protocol, m: BM, h: BM, d: Desc, b: BV, n: int)
    requires GInv(g, n) && Ready(g, m, h) && GroupWf(g.layout, m, h, d, End(g) + |g.pending|, n) &&
      DecDesc(b) == SomeDesc(d)
    ensures Free(Started(g, m, h, d, b, Rec(b, GroupBlks(m, h, d))))
  {
    reveal Free(); reveal FreeAll();
    var rec := Rec(b, GroupBlks(m, h, d));
    var g' := Started(g, m, h, d, b, rec);
    forall j, a | DirPend(g'.pending, j, a) ensures Direct(g'.signed, End(g') + j, a) {
      MorePend(g.pending, Pend(m, h, d, b), j, a);
      if DirPend(g.pending, j, a) { var r :| r in g.signed && DirectOf(r, End(g) + j, a); assert r in g'.signed; }
      else { assert rec in g'.signed && DirectOf(rec, End(g) + j, a); }
    }
    forall i, j, a | 0 <= i <= j && DirPend(g'.pending, j, a) ensures FreeIn(g'.layout, PState(g', i), a) {
      MorePend(g.pending, Pend(m, h, d, b), j, a);
      StartState(g, g', i);
      assert i <= |g.pending|;
      assert FreeIn(g.layout, PState(g, i), a) by { if !DirPend(g.pending, j, a) { assert a in h && FreeAll(g, a); } }
      assert PState(g', i) == PState(g, i) && g'.layout == g.layout;
    }
    forall i, j, a | i < j && DirPend(g'.pending, i, a) ensures !DirPend(g'.pending, j, a) {
      MorePend(g.pending, Pend(m, h, d, b), i, a);
      MorePend(g.pending, Pend(m, h, d, b), j, a);
      if DirPend(g'.pending, j, a) {
        assert DirPend(g.pending, i, a) && Direct(g.signed, End(g) + i, a);
        DirectFrom(g.signed, g.firstSeq, End(g) + i, a);
        assert !DirPend(g.pending, j, a);
        assert a !in h;
      }
    }
  }
  lemma MorePend(ps: seq<Pend>, e: Pend, j: int, a: int)
    ensures DirPend(ps + [e], j, a) <==> DirPend(ps, j, a) || (j == |ps| && a in e.direct)
  {}
  lemma StartState(g: Protocol, g2: Protocol, i: int)
    requires 0 <= i <= |g.pending| && |g2.pending| == |g.pending| + 1 && g2.pending[..|g.pending|] == g.pending &&
      g2.base == g.base && g2.groups == g.groups
    ensures PState(g2, i) == PState(g, i)
  { reveal PState(); assert g2.pending[..i] == g.pending[..i]; assert DurState(g2) == DurState(g); }
  // the first pending group is durable
  function Finished(g: Protocol): Protocol requires g.pending != [] {
    var e := g.pending[0];
    g.(pending := g.pending[1..], groups := g.groups + [e.blocks], directs := g.directs + [e.direct],
      descs := g.descs + [e.desc],
       base := Over(g.base, e.direct), logEnd := e.desc.pos + |e.desc.addrs|, torn := g.torn - e.direct.Keys)
  }
  // the direct blocks h are at home
  predicate DirHome(poss: Poss, h: BM) { forall a :: a in h ==> 0 <= a < |poss| && poss[a] <= iset{h[a]} }
  lemma FinishPres(poss: Poss, g: Protocol)
    requires Full(poss, g) && g.pending != [] &&
      Logged(poss, g, g.pending[0].blocks, g.pending[0].direct, g.pending[0].desc, End(g)) &&
      DirHome(poss, g.pending[0].direct)
    requires End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.pending[0].desc.pos < 0x1FFF_FFFF_FFFF_0000
    ensures Full(poss, Finished(g)) && DurState(Finished(g)) == Applied(DurState(g), g.pending[..1]) &&
      ComState(Finished(g)) == ComState(g)
    ensures PendEnd(Finished(g)) == PendEnd(g)
  {
    FullD(poss, g);
    var g' := Finished(g);
    FinishRoom(g, |poss|);
    forall a | Home(g.layout) <= a < |poss| ensures a in g'.base && HomePoss(poss[a], g', a) { FinishHome(poss, g, a); }
    forall x | x in poss[g.layout.headerAt] + poss[Copy(g.layout)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    FinishLogged(poss, g);
    FinishPend(g, |poss|);
    FinishSealed(g, |poss|);
    FinishState(g, |poss|);
    FinishKept(g, |poss|);
    FinishTrees(g, |poss|);
    assert g'.groups[..g'.installCount] == g.groups[..g.installCount];
    assert GInv(g', |poss|);
    reveal Full();
  }
  // ... the log's space
  lemma FinishRoom(g: Protocol, n: int)
    requires GInv(g, n) && PInv(g) && g.pending != [] && g.pending[0].desc.pos < 0x1FFF_FFFF_FFFF_0000
    ensures PInv(Finished(g)) && PendEnd(Finished(g)) == PendEnd(g)
  {
    assert PendWf(g, g.pending[0], End(g) + 0, n);
    var g' := Finished(g);
    forall j | 0 <= j < |g'.pending| ensures g'.pending[j] == g.pending[j + 1] {}
  }
  // ... the groups that are logged
  lemma FinishLogged(poss: Poss, g: Protocol)
    requires DInv(poss, g) && g.pending != []
    requires var e := g.pending[0]; Logged(poss, g, e.blocks, e.direct, e.desc, End(g))
    ensures var g' := Finished(g);
      forall x :: 0 <= x < |g'.groups| ==> Logged(poss, g', g'.groups[x], g'.directs[x], g'.descs[x], g'.firstSeq + x)
  {
    var g' := Finished(g); var e := g.pending[0];
    forall x | 0 <= x < |g'.groups|
      ensures Logged(poss, g', g'.groups[x], g'.directs[x], g'.descs[x], g'.firstSeq + x)
    {
      if x < |g.groups| {
        assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
        LoggedSg(poss, g, g', g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      } else { LoggedSg(poss, g, g', e.blocks, e.direct, e.desc, End(g)); }
    }
  }
  // ... those that are pending
  lemma FinishPend(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != []
    ensures var g' := Finished(g);
      forall j :: 0 <= j < |g'.pending| ==> PendWf(g', g'.pending[j], End(g') + j, n)
  {
    var g' := Finished(g);
    forall j | 0 <= j < |g'.pending| ensures PendWf(g', g'.pending[j], End(g') + j, n) {
      assert PendWf(g, g.pending[j + 1], End(g) + (j + 1), n);
    }
  }
  lemma FinishHome(poss: Poss, g: Protocol, a: int)
    requires DInv(poss, g) && g.pending != [] && DirHome(poss, g.pending[0].direct) && Home(g.layout) <= a < |poss|
    ensures a in Finished(g).base && HomePoss(poss[a], Finished(g), a)
  {
    var g' := Finished(g); var e := g.pending[0];
    assert HomePoss(poss[a], g, a);
    if a in e.direct { PendHome(g, |poss|, 0, a); }
    else if InPend(g.pending, a) {
      var j :| 0 <= j < |g.pending| && a in g.pending[j].direct; assert a in g'.pending[j - 1].direct;
      assert InPend(g'.pending, a);
    }
  }
  lemma FinishSealed(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != []
    ensures Sealed(Finished(g))
  {
    var g' := Finished(g);
    forall r | r in g'.signed ensures DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.dur <= End(g') &&
      (Below(r, End(g')) || exists i :: 0 <= i < |g'.pending| && IsPend(g'.pending[i], r)) {
      if !Below(r, End(g)) {
        var i :| 0 <= i < |g.pending| && IsPend(g.pending[i], r);
        assert PendWf(g, g.pending[i], End(g) + i, n);
        if i > 0 { assert IsPend(g'.pending[i - 1], r); }
      }
    }
  }
  lemma FinishKept(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != [] && DurState(Finished(g)) == Applied(DurState(g), g.pending[..1])
    ensures Kept(Finished(g))
  {
    var g' := Finished(g);
    forall i, a | 0 <= i < |g'.directs| && a in g'.directs[i] ensures a in g'.base && g'.base[a] == g'.directs[i][a] &&
      !InPend(g'.pending, a) && Direct(g.signed, g.firstSeq + i, a) {
      FinishHeld(g, n, i, a);
    }
    FinishClear(g, n);
    FinishFree(g, n);
  }
  lemma FinishClear(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != []
    ensures var g' := Finished(g); Clear(BlockMaps(g'.pending), g.signed, g.firstSeq) &&
      Clear(g'.groups, g.signed, g.firstSeq)
  {
    var g' := Finished(g);
    forall i, a | 0 <= i < |BlockMaps(g'.pending)| && a in BlockMaps(g'.pending)[i]
      ensures !Direct(g.signed, g.firstSeq, a) {
      assert a in BlockMaps(g.pending)[i + 1];
    }
    forall i, a | 0 <= i < |g'.groups| && a in g'.groups[i] ensures !Direct(g.signed, g.firstSeq, a) {
      if i < |g.groups| { assert a in g.groups[i]; } else { assert a in BlockMaps(g.pending)[0]; }
    }
  }
  lemma FinishFree(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != [] && DurState(Finished(g)) == Applied(DurState(g), g.pending[..1])
    ensures Free(Finished(g))
  {
    var g' := Finished(g);
    reveal Free();
    forall j, a | DirPend(g'.pending, j, a) ensures Direct(g'.signed, End(g') + j, a) {
      LessPend(g.pending, j, a); assert DirPend(g.pending, j + 1, a); assert Direct(g.signed, End(g) + (j + 1), a);
      assert End(g') + j == End(g) + (j + 1);
    }
    forall i, j, a | 0 <= i <= j && DirPend(g'.pending, j, a) ensures FreeIn(g'.layout, PState(g', i), a) {
      LessPend(g.pending, j, a); FinishAfter(g, i); assert DirPend(g.pending, j + 1, a);
      assert FreeIn(g.layout, PState(g, i + 1), a); assert PState(g', i) == PState(g, i + 1) && g'.layout == g.layout;
    }
    forall i, j, a | i < j && DirPend(g'.pending, i, a) ensures !DirPend(g'.pending, j, a) {
      LessPend(g.pending, i, a); LessPend(g.pending, j, a);
      assert DirPend(g.pending, i + 1, a);
      assert !DirPend(g.pending, j + 1, a);
    }
  }
  lemma LessPend(ps: seq<Pend>, j: int, a: int)
    requires ps != []
    ensures 0 <= j && DirPend(ps[1..], j, a) ==> DirPend(ps, j + 1, a)
  {}
  lemma FinishAfter(g: Protocol, i: int)
    requires g.pending != [] && 0 <= i < |g.pending| && DurState(Finished(g)) == Applied(DurState(g), g.pending[..1])
    ensures PState(Finished(g), i) == PState(g, i + 1)
  {
    reveal PState();
    var t := g.pending[..i + 1];
    AfterFirst(DurState(g), t);
    assert t[1..] == g.pending[1..][..i];
    assert g.pending[..1] == [g.pending[0]] && [g.pending[0]][..0] == [];
    assert Applied(DurState(g), [g.pending[0]]) == Over(Over(DurState(g), g.pending[0].direct), g.pending[0].blocks);
  }
  lemma FinishHeld(g: Protocol, n: int, i: int, a: int)
    requires GInv(g, n) && g.pending != [] && 0 <= i < |Finished(g).directs| && a in Finished(g).directs[i]
    ensures var g' := Finished(g); a in g'.base && g'.base[a] == g'.directs[i][a] && !InPend(g'.pending, a) &&
      Direct(g.signed, g.firstSeq + i, a)
  {
    var g' := Finished(g); reveal Free();
    if i < |g.directs| {
      assert a in g.directs[i] && !InPend(g.pending, a);
      assert a !in g.pending[0].direct;
      if InPend(g'.pending, a) {
        var j :| 0 <= j < |g'.pending| && a in g'.pending[j].direct; assert a in g.pending[j + 1].direct;
      }
    } else {
      assert i == |g.directs| && g'.directs[i] == g.pending[0].direct;
      assert PendWf(g, g.pending[0], End(g) + 0, n);
      assert a in g.pending[0].desc.dirs && a in g.base;
      assert DirPend(g.pending, 0, a);
      if InPend(g'.pending, a) {
        var j :| 0 <= j < |g'.pending| && a in g'.pending[j].direct; assert DirPend(g.pending, j + 1, a);
      }
      assert End(g) + 0 == g.firstSeq + i;
    }
  }
  lemma FinishTrees(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != []
    ensures Trees(Finished(g))
  {
    reveal Trees();
    var g' := Finished(g); var h := g.pending[0].direct;
    assert g'.directs[..|g.directs|] == g.directs;
    OverOv(g.treeState, Merge(g.directs), h);
    assert g'.directs[..g.installCount] == g.directs[..g.installCount];
    if g.phase != NoInstall { FinishNext(g, n); }
    FinishApart(g, n);
    forall i, a | 0 <= i < |g'.directs| && a in g'.directs[i] ensures a !in g'.torn {
      if i < |g.directs| { assert a in g.directs[i]; }
    }
  }
  // ... what the next tree is to say
  lemma FinishNext(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != [] && g.phase != NoInstall
    ensures var g' := Finished(g);
      Over(g'.base, g.installBlocks) == Over(g.nextTreeState, Merge(g'.directs[g.installCount..]))
  {
    reveal Trees();
    var g' := Finished(g); var h := g.pending[0].direct;
    var t := g.directs[g.installCount..];
    assert g'.directs[g.installCount..] == t + [h] && (t + [h])[..|t|] == t;
    OverOv(g.nextTreeState, Merge(t), h);
    var x := Over(g'.base, g.installBlocks); var y := Over(Over(g.base, g.installBlocks), h);
    forall a | a in x ensures x[a] == y[a] { if a in h { PendHome(g, n, 0, a); } }
    assert x == y;
  }
  lemma FinishApart(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != []
    ensures Apart(Finished(g).directs)
  {
    reveal Trees();
    var g' := Finished(g);
    forall i, j, a | 0 <= i < j < |g'.directs| && a in g'.directs[i] ensures a !in g'.directs[j] {
      assert a in g.directs[i]; assert !InPend(g.pending, a); assert a !in g.pending[0].direct;
    }
  }
  lemma FinishState(g: Protocol, n: int)
    requires GInv(g, n) && g.pending != []
    ensures DurState(Finished(g)) == Applied(DurState(g), g.pending[..1]) && ComState(Finished(g)) == ComState(g)
  {
    var g' := Finished(g); var e := g.pending[0];
    assert g'.groups[..|g'.groups|-1] == g.groups;
    assert Merge(g'.groups) == Overlaid(Merge(g.groups), e.blocks);
    OverOv(g'.base, Merge(g.groups), e.blocks);
    forall a | a in g.base ensures Over(g'.base, Merge(g.groups))[a] == Over(DurState(g), e.direct)[a] {
      if a in e.direct { PendHome(g, n, 0, a); }
    }
    assert Over(g'.base, Merge(g.groups)) == Over(DurState(g), e.direct);
    assert g.pending[..1] == [e] && [e][..0] == [];
    AfterFirst(DurState(g), g.pending);
  }
  // what is pending is not the installer's business
  lemma PendKept(g: Protocol, g2: Protocol, n: int)
    requires GInv(g, n) && g2.layout == g.layout && g2.pending == g.pending && g2.signed == g.signed &&
      g2.firstSeq == g.firstSeq && g2.groups == g.groups && g2.directs == g.directs && g2.base == g.base
    ensures Sealed(g2) && Kept(g2) && forall j :: 0 <= j < |g.pending| ==> PendWf(g2, g2.pending[j], End(g2) + j, n)
  {
    assert End(g2) == End(g) && DurState(g2) == DurState(g);
    forall j | 0 <= j < |g.pending| ensures PendWf(g2, g2.pending[j], End(g2) + j, n) {
      assert PendWf(g, g.pending[j], End(g) + j, n);
    }
    FreeKept(g, g2);
  }
  lemma FreeKept(g: Protocol, g2: Protocol)
    requires Free(g) && g2.layout == g.layout && g2.pending == g.pending && g2.signed == g.signed &&
      End(g2) == End(g) && DurState(g2) == DurState(g)
    ensures Free(g2)
  {
    reveal Free();
    forall i, j, a | 0 <= i <= j && DirPend(g2.pending, j, a) ensures FreeIn(g2.layout, PState(g2, i), a) {
      assert PState(g2, i) == PState(g, i) by { reveal PState(); }
    }
  }
  function IStarted(g: Protocol): Protocol {
    g.(installCount := |g.groups|, installBlocks := Merge(g.groups), phase := HomeWriting, posAfterInstall := g.logEnd,
      nextTreeState := Over(g.base, Merge(g.groups)))
  }
  lemma StartTrees(g: Protocol)
    requires Trees(g) && g.phase == NoInstall && |g.groups| == |g.directs|
    ensures Trees(IStarted(g))
  {
    reveal Trees();
    var g' := IStarted(g);
    assert g.directs[|g.groups|..] == [] && g.directs[..|g.groups|] == g.directs;
    assert Over(g'.nextTreeState, map[]) == g'.nextTreeState;
  }
  lemma IStartPres(poss: Poss, g: Protocol)
    requires Full(poss, g) && g.phase == NoInstall
    ensures Full(poss, IStarted(g))
  {
    reveal Full();
    var g' := IStarted(g);
    assert g.groups[..|g.groups|] == g.groups;
    forall x | x in poss[g.layout.headerAt] + poss[Copy(g.layout)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall b | Home(g.layout) <= b < |poss| ensures HomePoss(poss[b], g', b) { assert HomePoss(poss[b], g, b); }
    forall x | 0 <= x < |g.groups| ensures Logged(poss, g', g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LoggedSg(poss, g, g', g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
    }
    StartTrees(g);
    PendKept(g, g', |poss|);
  }
  lemma InstWritePres(poss: Poss, g: Protocol, a: int, n: int)
    requires Full(poss, g) && g.phase == HomeWriting && Home(g.layout) <= a && 0 <= n && a + n <= |poss| &&
      forall x :: a <= x < a + n ==> x in g.installBlocks
    ensures Full(Fuzzy(poss, a, n), g)
  {
    reveal Full();
    var p := Fuzzy(poss, a, n);
    assert p[g.layout.headerAt] == poss[g.layout.headerAt] && p[Copy(g.layout)] == poss[Copy(g.layout)];
    forall x | 0 <= x < |g.groups| ensures Logged(p, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LoggedFrame(p, poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
    }
    forall b | Home(g.layout) <= b < |p| ensures HomePoss(p[b], g, b) { assert HomePoss(poss[b], g, b); }
  }
  // the same state with another phase of the installer; r2: the root of the next header
  lemma PhasePres(poss: Poss, poss2: Poss, g: Protocol, phase: InstallPhase, r2: CV)
    requires Full(poss, g) && g.phase != NoInstall && phase != NoInstall && |poss2| == |poss| &&
      (phase == HeaderWriting ==> Says(g.layout, r2, g.nextTreeState))
    requires forall a :: 0 <= a < |poss| && a != g.layout.headerAt && a != Copy(g.layout) ==> poss2[a] == poss[a]
    requires forall x :: x in poss2[g.layout.headerAt] || x in poss2[Copy(g.layout)] ==>
      HdrOk(x, g.(phase := phase, nextRoot := r2))
    requires forall b :: Home(g.layout) <= b < |poss| ==> HomePoss(poss[b], g.(phase := phase, nextRoot := r2), b)
    ensures Full(poss2, g.(phase := phase, nextRoot := r2))
  {
    reveal Full();
    var g' := g.(phase := phase, nextRoot := r2);
    TreesKept(g, g');
    forall x | 0 <= x < |g.groups| ensures Logged(poss2, g', g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x) {
      assert Logged(poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LoggedFrame(poss2, poss, g, g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
      LoggedSg(poss2, g, g', g.groups[x], g.directs[x], g.descs[x], g.firstSeq + x);
    }
    PendKept(g, g', |poss|);
  }
  lemma InstBarrierPres(poss: Poss, g: Protocol)
    requires Full(poss, g) && g.phase == HomeWriting
    requires forall a :: a in g.installBlocks && Home(g.layout) <= a < |poss| ==> poss[a] <= iset{g.installBlocks[a]}
    ensures Full(poss, g.(phase := HomeDurable))
  {
    FullD(poss, g);
    var g' := g.(phase := HomeDurable);
    forall b | Home(g.layout) <= b < |poss| ensures HomePoss(poss[b], g', b) { assert HomePoss(poss[b], g, b); }
    forall x | x in poss[g.layout.headerAt] + poss[Copy(g.layout)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    PhasePres(poss, poss, g, HomeDurable, g.nextRoot);
    assert g' == g.(phase := HomeDurable, nextRoot := g.nextRoot);
  }
  function AddHdr(poss: Poss, c: int, v: BV): Poss requires 0 <= c < |poss| { poss[c := poss[c] + iset{v}] }
  // header v is being written to c: to its place, or to that of its copy
  lemma HdrWritePres(poss: Poss, g: Protocol, c: int, v: BV, r2: CV)
    requires Full(poss, g) && IsHome(g.phase) && HdrTail(v) &&
      DecHdr(g.layout.key, v) == Hdr(g.firstSeq + g.installCount, g.layout.epoch, r2) &&
      (c == g.layout.headerAt || c == Copy(g.layout))
    requires Says(g.layout, r2, g.nextTreeState) && (g.phase == HeaderWriting ==> r2 == g.nextRoot)
    ensures Full(AddHdr(poss, c, v), g.(phase := HeaderWriting, nextRoot := r2))
    ensures forall x :: x in poss[c] ==> SameTail(x, v)
  {
    FullD(poss, g);
    var g' := g.(phase := HeaderWriting, nextRoot := r2);
    var p := AddHdr(poss, c, v);
    forall b | Home(g.layout) <= b < |poss| ensures HomePoss(poss[b], g', b) { assert HomePoss(poss[b], g, b); }
    forall x | x in p[g.layout.headerAt] + p[Copy(g.layout)] ensures HdrOk(x, g') {
      if x in poss[g.layout.headerAt] + poss[Copy(g.layout)] { assert HdrOk(x, g); }
    }
    forall x | x in poss[c] ensures SameTail(x, v) { assert HdrOk(x, g); }
    PhasePres(poss, p, g, HeaderWriting, r2);
  }
  function IFinished(g: Protocol): Protocol
    requires |g.descs| == |g.groups| == |g.directs| && 0 <= g.installCount <= |g.groups|
  {
    g.(firstSeq := g.firstSeq + g.installCount, groups := g.groups[g.installCount..],
      directs := g.directs[g.installCount..], descs := g.descs[g.installCount..], installCount := 0,
      base := Over(g.base, g.installBlocks), installBlocks := map[],
       phase := NoInstall, logStart := g.posAfterInstall, root := g.nextRoot, treeState := g.nextTreeState,
         torn := g.torn - g.installBlocks.Keys)
  }
  lemma IFinishHome(poss: Poss, g: Protocol, b: int)
    requires Full(poss, g) && g.phase == HeaderWriting && Home(g.layout) <= b < |poss|
    ensures b in IFinished(g).base && HomePoss(poss[b], IFinished(g), b)
  { reveal Full(); assert HomePoss(poss[b], g, b); }
  lemma IFinishTrees(poss: Poss, g: Protocol)
    requires Full(poss, g) && g.phase == HeaderWriting
    ensures Trees(IFinished(g))
  {
    FullD(poss, g);
    reveal Trees();
    var g' := IFinished(g);
    assert g'.directs[0..] == g'.directs && g'.directs[..0] == [];
    forall i, j, a | 0 <= i < j < |g'.directs| && a in g'.directs[i] ensures a !in g'.directs[j] {
      assert a in g.directs[g.installCount + i]; assert g'.directs[j] == g.directs[g.installCount + j];
    }
    forall i, a | 0 <= i < |g'.directs| && a in g'.directs[i] ensures a !in g'.torn {
      assert a in g.directs[g.installCount + i];
    }
  }
  lemma IFinishLogged(poss: Poss, g: Protocol, x: int)
    requires Full(poss, g) && g.phase == HeaderWriting && 0 <= x < |g.groups| - g.installCount
    ensures var g' := IFinished(g);
      GroupWf(g.layout, g'.groups[x], g'.directs[x], g'.descs[x], g'.firstSeq + x, |poss|) &&
      Logged(poss, g', g'.groups[x], g'.directs[x], g'.descs[x], g'.firstSeq + x)
    ensures var g' := IFinished(g); g'.descs[x] == g.descs[g.installCount + x] &&
      g.posAfterInstall <= g'.descs[x].pos && g'.descs[x].pos + |g'.descs[x].addrs| <= g.logEnd
  {
    reveal Full();
    assert Logged(poss, g, g.groups[g.installCount + x], g.directs[g.installCount + x], g.descs[g.installCount + x],
      g.firstSeq + (g.installCount + x));
    LoggedSg(poss, g, IFinished(g), g.groups[g.installCount + x], g.directs[g.installCount + x],
      g.descs[g.installCount + x], g.firstSeq + (g.installCount + x));
  }
  lemma IFinishStates(poss: Poss, g: Protocol)
    requires Full(poss, g) && g.phase == HeaderWriting
    ensures DurState(IFinished(g)) == DurState(g)
    ensures Merge(g.groups) == Overlaid(g.installBlocks, Merge(g.groups[g.installCount..]))
  {
    reveal Full();
    assert g.groups == g.groups[..g.installCount] + g.groups[g.installCount..];
    MergeCat(g.groups[..g.installCount], g.groups[g.installCount..]);
    OverOv(g.base, g.installBlocks, Merge(g.groups[g.installCount..]));
  }
  lemma IFinishKept(poss: Poss, g: Protocol)
    requires Full(poss, g) && g.phase == HeaderWriting
    ensures Kept(IFinished(g))
  {
    FullD(poss, g);
    var g' := IFinished(g);
    IFinishStates(poss, g);
    forall i, a | 0 <= i < |g'.directs| && a in g'.directs[i]
      ensures a in g'.base && g'.base[a] == g'.directs[i][a] && !InPend(g.pending, a) &&
        Direct(g.signed, g'.firstSeq + i, a)
    {
      assert a in g.directs[g.installCount + i];
      KeptHome(g, |poss|, g.installCount + i, a);
      assert g.firstSeq + (g.installCount + i) == g'.firstSeq + i;
    }
    ClearTail(g.groups, g.signed, g.firstSeq, g.installCount);
    ClearFrom(BlockMaps(g.pending), g.signed, g.firstSeq, g'.firstSeq);
    FreeKept(g, g');
  }
  // a header block, for certain the one that passes what is installed
  predicate HdrAll(s: iset<BV>, g: Protocol) {
    forall x :: x in s ==> DecHdr(g.layout.key, x) == Hdr(g.firstSeq + g.installCount, g.layout.epoch, g.nextRoot)
  }
  lemma IFinishPres(poss: Poss, g: Protocol)
    requires Full(poss, g) && g.phase == HeaderWriting && HdrAll(poss[g.layout.headerAt], g) &&
      HdrAll(poss[Copy(g.layout)], g)
    ensures Full(poss, IFinished(g)) && DurState(IFinished(g)) == DurState(g) && ComState(IFinished(g)) == ComState(g)
    ensures Merge(g.groups) == Overlaid(g.installBlocks, Merge(g.groups[g.installCount..]))
  {
    reveal Full();
    var g' := IFinished(g);
    forall b | Home(g.layout) <= b < |poss| ensures b in g'.base && HomePoss(poss[b], g', b) {
      IFinishHome(poss, g, b);
    }
    forall x | x in poss[g.layout.headerAt] + poss[Copy(g.layout)] ensures HdrOk(x, g') { assert HdrOk(x, g); }
    forall x | 0 <= x < |g'.groups|
      ensures GroupWf(g.layout, g'.groups[x], g'.directs[x], g'.descs[x], g'.firstSeq + x, |poss|) &&
        Logged(poss, g', g'.groups[x], g'.directs[x], g'.descs[x], g'.firstSeq + x)
      ensures g.posAfterInstall <= g'.descs[x].pos && g'.descs[x].pos + |g'.descs[x].addrs| <= g.logEnd
    { IFinishLogged(poss, g, x); }
    IFinishStates(poss, g);
    IFinishKept(poss, g);
    IFinishTrees(poss, g);
    assert g'.groups[..0] == [];
    assert Sealed(g');
    assert GInv(g', |poss|);
    assert PInv(g');
  }
}
