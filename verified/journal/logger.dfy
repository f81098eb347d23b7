// The logger's steps without the mutex: it seals the frozen group, which becomes the last of the pending ones, writes its blocks and its
// descriptor to the log and its direct blocks home, and makes all pending groups durable with one barrier.
include "facts.dfy"

module JournalLogger {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened JournalFacts
  import opened TreeOfCodes

  // the pending group that is being written
  function Last(j: Journal): Pend requires j.lg.ps != [] reads j`lg, j.lg`ps { j.lg.ps[|j.lg.ps|-1] }
  // [F] seal the frozen group (no operation of the device)
  method LogEnc(j: Journal)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 1
    modifies j.lg, j.seal, j.d`ok, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures j.lg.ph == 2 && j.lg.ps != [] && j.lg.wn == 0 && j.lg.dn == 0 && !j.lg.wd
    ensures j.lg.dirs != null && |j.lg.dirs.addrs| == |j.lg.dirs.blks|
  {
    reveal j.Inv();
    LogFacts(j);
    var ring, dir := j.lg.ring, j.lg.dir;
    ghost var g0 := j.g();
    var b, l, dl, c; ghost var e;
    b, l, dl, c, e := Encode(j, ring, dir);
    j.d.SetOk(OkSet(j.geo, j.vs, j.lb, j.seal.signed));
    LogEncFields(j.lg, ring, dir, b, l, dl, c, e);
    assert j.g() == Started(g0, e.m, e.h, e.d, e.b, Rec(e.b, GroupBlks(e.m, e.h, e.d)));
    LogEncI(j, ring, dir, e);
    assert j.OwnI() by { reveal j.OwnI(); }
    HoldMore(j, g0, Rec(b.v, GroupBlks(e.m, e.h, e.d)));
  }
  lemma Listed(s: seq<Code>, m: BMap, home: int, key: int)
    requires m.Ok() && |s| == |m.addrs| && forall i :: 0 <= i < |s| ==> s[i].x == m.addrs[i] - home && Vouches(key, s[i].x, s[i].c, m.m[m.addrs[i]])
    ensures CodesOf(s, m.m, home, key)
  {
    reveal CodesOf();
    forall a | a in m.m ensures exists e :: e in s && e.x == a - home { assert a in m.addrs; var i :| 0 <= i < |m.addrs| && m.addrs[i] == a; assert s[i] in s; }
    forall e | e in s ensures e.x + home in m.m && Vouches(key, e.x, e.c, m.m[e.x + home]) { var i :| 0 <= i < |s| && s[i] == e; }
  }
  lemma JoinedOf(s: seq<Code>, m: BM, t: seq<Code>, h: BM, home: int, key: int)
    requires CodesOf(s, m, home, key) && CodesOf(t, h, home, key) && forall a :: a in h ==> a !in m
    ensures CodesOf(s + t, Ov(m, h), home, key)
  {
    reveal CodesOf();
    var u := s + t; var o := Ov(m, h);
    forall e | e in u ensures e.x + home in o && Vouches(key, e.x, e.c, o[e.x + home]) { if e in s { assert e.x + home in m; } else { assert e in t; } }
    forall a | a in o ensures exists e :: e in u && e.x == a - home {
      if a in h { var e :| e in t && e.x == a - home; assert e in u; } else { var e :| e in s && e.x == a - home; assert e in u; }
    }
  }
  // its descriptor, its blocks, the direct ones, and the codes of those of all pending groups; e: the pending group that it becomes
  method Encode(j: Journal, ring: BMap, dir: BMap) returns (b: Blk, l: BList, dl: BList, c: Codes, ghost e: Pend)
    requires j.Inv() && j.lg.ph == 1 && ring == j.lg.ring && dir == j.lg.dir
    modifies j.seal
    ensures fresh(c) && CodesOf(c.s, Merge(Hs(j.lg.ps + [e])), Home(j.geo), j.seal.key) && e.b == b.v && |b.v| == 4096 && j.seal.ep == old(j.seal.ep)
    ensures Is(e, ring, dir) && e.d.pos == j.lg.pos as int && l.addrs == ring.addrs && l.blks == BlksOf(ring.m, ring.addrs) && Lists(dl, dir.m, Home(j.geo), |j.d.cur|)
    ensures j.seal.signed == old(j.seal.signed) + {Rec(e.b, GroupBlks(e.m, e.h, e.d))} && DecDesc(b.v) == SomeDesc(e.d)
    ensures var g1 := Started(old(j.g()), e.m, e.h, e.d, e.b, Rec(e.b, GroupBlks(e.m, e.h, e.d)));
      0 <= j.lb && Full(j.d.poss, g1) && AllAmong(g1, j.vs, j.lb, j.cl) && DurState(g1) == DurState(old(j.g())) && forall s :: CrashImg(j.d.poss, s) ==> s in OkSet(j.geo, j.vs, j.lb, j.seal.signed)
  {
    reveal j.Inv();
    ghost var g0 := j.g();
    LogFacts(j);
    SealedBelow(j.d.poss, g0);
    dir.Distinct();
    FrozenFacts(j, ring, dir);
    var cs;
    b, cs := j.seal.Sign(j.eq + j.lg.np, j.eq, j.lg.pos, ring, dir);
    Listed(cs.s, dir, Home(j.geo), j.seal.key);
    c := JoinCodes(j.lg.codes, cs);
    l := ring.List();
    dl := dir.Sorted();
    SortedLen(dl.addrs, j.sz as int);
    e := Pend(ring.m, dir.m, DecDesc(b.v).d, b.v);
    JoinedOf(j.lg.codes.s, Merge(Hs(g0.ps)), cs.s, dir.m, Home(j.geo), j.seal.key);
    HsMore(g0.ps, e);
    Sealing(j.d.poss, g0, e, j.vs, j.lb, j.cl);
  }
  // e is made of the frozen group
  predicate Is(e: Pend, ring: BMap, dir: BMap) reads ring, dir {
    e.m == ring.m && e.h == dir.m && e.d.addrs == ring.addrs && e.d.dirs == dir.addrs && (forall i :: 0 <= i < |e.d.addrs| ==> e.d.addrs[i] in e.m) && (forall i :: 0 <= i < |e.d.dirs| ==> e.d.dirs[i] in e.h)
  }
  lemma HsMore(ps: seq<Pend>, e: Pend)
    ensures Merge(Hs(ps + [e])) == Ov(Merge(Hs(ps)), e.h) && Merge(Ms(ps + [e])) == Ov(Merge(Ms(ps)), e.m)
  {
    var qs := ps + [e];
    assert qs[..|qs|-1] == ps;
    assert Hs(qs)[..|qs|-1] == Hs(ps) && Ms(qs)[..|qs|-1] == Ms(ps);
  }
  // what the frozen group is, and has to do with the pending ones
  lemma FrozenFacts(j: Journal, ring: BMap, dir: BMap)
    requires j.LogI() && j.lg.ph == 1 && ring == j.lg.ring && dir == j.lg.dir && Full(j.d.poss, j.g()) && j.GeoI() && j.eq as int == End(j.g())
    ensures ring.Ok() && dir.Ok() && |ring.addrs| + |dir.addrs| <= 500 && ring != dir && (forall a :: a in dir.m ==> j.seal.home <= a)
    ensures j.eq as int + |j.lg.bodies| < 0x1FFF_FFFF_FFFF_FFFF && |j.lg.bodies| < Window
    ensures forall a :: a in dir.m ==> a !in Merge(Hs(j.lg.ps))
  {
    LogFacts(j);
    FullD(j.d.poss, j.g());
    forall a | a in dir.m ensures a !in Merge(Hs(j.lg.ps)) {
      if a in Merge(Hs(j.lg.ps)) { MergeKeys(Hs(j.lg.ps), a); var i :| 0 <= i < |j.lg.ps| && a in Hs(j.lg.ps)[i]; PendDirect(j.g(), i, a); }
    }
  }
  // what sealing means for the protocol's state
  lemma Sealing(poss: Poss, g0: G, e: Pend, w: seq<St>, lb: int, cl: int)
    requires Full(poss, g0) && Ready(g0, e.m, e.h) && |g0.ps| < Window && GroupWf(g0.p, e.m, e.h, e.d, End(g0) + |g0.ps|, |poss|) && DecDesc(e.b) == SomeDesc(e.d)
    requires e.d.pos == PendEnd(g0) && e.d.dur <= End(g0) && |g0.gs| + |g0.ps| < g0.p.nd && PendEnd(g0) + |e.d.addrs| <= g0.lo + g0.p.nr
    requires AllAmong(g0, w, lb, cl) && 0 <= lb <= cl < |w| && w[lb] == DurState(g0)
    requires w[cl] == Over(Over(w[lb], Ov(Merge(Hs(g0.ps)), e.h)), Ov(Merge(Ms(g0.ps)), e.m))
    requires End(g0) + |g0.ps| + 1 < 0x1FFF_FFFF_FFFF_FFFF && PendEnd(g0) + |e.d.addrs| < 0x1FFF_FFFF_FFFF_0000
    ensures var g1 := Started(g0, e.m, e.h, e.d, e.b, Rec(e.b, GroupBlks(e.m, e.h, e.d)));
      Full(poss, g1) && AllAmong(g1, w, lb, cl) && DurState(g1) == DurState(g0) && forall s :: CrashImg(poss, s) ==> s in OkSet(g1.p, w, lb, g1.sg)
  {
    var g1 := Started(g0, e.m, e.h, e.d, e.b, Rec(e.b, GroupBlks(e.m, e.h, e.d)));
    StartPres(poss, g0, e.m, e.h, e.d, e.b);
    assert DurState(g1) == DurState(g0);
    HsMore(g0.ps, e);
    FullD(poss, g1);
    ComAll(g1, |poss|);
    AmongStart(g0, g1, w, lb, cl);
    CrashAll(poss, g1, w, lb, cl);
  }
  method LogEncFields(lg: Logger, ring: BMap, dir: BMap, b: Blk, l: BList, dl: BList, c: Codes, ghost e: Pend)
    requires lg.pos < 0x2000_0000_0000_0000 && lg.np < 0x2000_0000_0000_0000 && ring.Ok() && Chain(lg.newest, lg.bodies, lg.maps)
    modifies lg
    ensures lg.np as int == old(lg.np) as int + 1 && lg.maps == old(lg.maps) + [ring, dir] && Chain(lg.newest, lg.bodies, lg.maps)
    ensures lg.ps == old(lg.ps) + [e] && lg.bodies == old(lg.bodies) + [l] && lg.pos as int == old(lg.pos) as int + |ring.addrs| && lg.codes == c && lg.ring == null && lg.dir == null
    ensures lg.desc == b && lg.body == l && lg.dirs == dl && lg.wn == 0 && lg.dn == 0 && !lg.wd && lg.ph == 2
  {
    var n := ring.Len();
    lg.newest := new InLog(l, ring, dir, lg.newest); lg.np := lg.np + 1;
    lg.ps := lg.ps + [e]; lg.bodies := lg.bodies + [l]; lg.maps := lg.maps + [ring, dir]; lg.pos := lg.pos + n; lg.codes := c; lg.ring := null; lg.dir := null;
    lg.desc := b; lg.body := l; lg.dirs := dl;
    lg.wn := 0; lg.dn := 0; lg.wd := false; lg.ph := 2;
  }
  // the logger's own steps
  twostate lemma LogEncI(j: Journal, ring: BMap, dir: BMap, e: Pend)
    requires old(j.LogI()) && old(j.lg.ph) == 1 && ring == old(j.lg.ring) && dir == old(j.lg.dir) && unchanged(ring, dir, j.cgm, j.cdm) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm)
    requires j.lg.ph == 2 && j.lg.wn == 0 && j.lg.dn == 0 && !j.lg.wd && j.lg.desc != null && j.lg.body != null && j.lg.dirs != null && j.lg.desc.v == e.b && |e.b| == 4096
    requires j.lg.ps == old(j.lg.ps) + [e] && j.lg.bodies == old(j.lg.bodies) + [j.lg.body] && j.lg.pos as int == old(j.lg.pos) as int + |ring.addrs|
    requires j.lg.np as int == |j.lg.ps| && Chain(j.lg.newest, j.lg.bodies, j.lg.maps) && j.lg.ring == null && j.lg.dir == null
    requires Is(e, ring, dir) && e.d.pos == old(j.lg.pos) as int && j.lg.body.addrs == ring.addrs && j.lg.body.blks == BlksOf(ring.m, ring.addrs) && Lists(j.lg.dirs, dir.m, Home(j.geo), |j.d.cur|)
    requires CodesOf(j.lg.codes.s, Merge(Hs(j.lg.ps)), Home(j.geo), j.seal.key) && unchanged(j.d`cur, j.d`poss, j.d`bad)
    requires GeoOk(j.geo) && |j.d.cur| == |j.d.poss| >= Home(j.geo) && j.g() == old(j.g()).(ps := j.lg.ps, sg := j.seal.signed)
    ensures j.LogI()
  {
    reveal j.LogI();
    assert old(j.Frozen(ring, dir));
    HsMore(old(j.lg.ps), e);
    forall i | 0 <= i < |j.lg.ps| ensures Body(j.lg.bodies[i], j.lg.ps[i]) { if i < |old(j.lg.ps)| { assert Body(old(j.lg.bodies)[i], old(j.lg.ps)[i]); } }
    if !j.d.bad { forall i | 0 <= i < |j.lg.ps| - 1 ensures Written(j.geo, j.d.cur, j.lg.ps[i]) { assert Written(j.geo, old(j.d.cur), old(j.lg.ps)[i]); } }
  }
  // the new record's direct blocks are held
  twostate lemma HoldMore(j: Journal, g0: G, rec: Rec)
    requires old(j.HoldI()) && old(j.g()) == g0 && j.seal.signed == g0.sg + {rec} && j.hq as int == g0.hq && j.k == g0.k && j.hs == g0.hs
    requires j.cdm.m == old(j.cdm.m) && j.lho.m == old(j.lho.m) && j.iho.m == old(j.iho.m)
    requires DecDesc(rec.b).SomeDesc? && forall a :: a in DecDesc(rec.b).d.dirs ==> a in j.cdm.m
    ensures j.HoldI()
  {
    reveal j.HoldI();
    forall a, q | Direct(j.seal.signed, q, a) ensures a in j.cdm.m || Direct(g0.sg, q, a) {
      var r :| r in j.seal.signed && DirectOf(r, q, a);
      if r in g0.sg { assert DirectOf(r, q, a); } else { assert r == rec; }
    }
  }
  // [F] how many blocks of the group go to the log? Up to 15 fit its unit, behind the descriptor.
  method LogLen(j: Journal) returns (n: uint64)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2
    ensures j.lg.ps != [] && n as int == |Last(j).d.addrs|
  {
    reveal j.Inv(); LogFacts(j);
    n := j.lg.body.Len();
  }
  // what is to be written, and where
  lemma LastFacts(j: Journal)
    requires j.LogI() && j.GeoI() && j.Reals() && Full(j.d.poss, j.g()) && j.lg.ph == 2 && |j.d.cur| == |j.d.poss|
    ensures j.lg.ps != [] && var e := Last(j); PendWf(j.g(), e, End(j.g()) + |j.lg.ps| - 1, |j.d.poss|) && e.d.sq == j.eq as int + |j.lg.ps| - 1 && |e.d.addrs| <= 500
    ensures var e := Last(j); j.lg.pos as int == e.d.pos + |e.d.addrs| && 0 <= e.d.pos
    ensures j.geo.nd == j.nd as int && j.geo.nr == j.nr as int && j.geo.at == j.at as int && |j.lg.bodies| == |j.lg.ps|
  {
    LogFacts(j);
    PendFacts(j.d.poss, j.g(), |j.lg.ps| - 1);
  }
  // [F] the descriptor and behind it the blocks of a small group, as one list (the map is there to make it)
  method UnitList(j: Journal) returns (l: BList, n: uint64)
    requires j.Inv() && j.lg.ph == 2 && j.lg.ps != [] && |Last(j).d.addrs| <= 15
    ensures j.lg.desc != null && j.lg.body != null && n as int == |Last(j).d.addrs| == |j.lg.body.blks|
    ensures l.blks == [j.lg.desc.v] + j.lg.body.blks && forall i :: 0 <= i < |l.blks| ==> |l.blks[i]| == 4096
  {
    reveal j.Inv(); LogFacts(j);
    n := j.lg.body.Len();
    var m := NewBMap();
    m.Put(0, j.lg.desc);
    ghost var want := [j.lg.desc.v] + j.lg.body.blks;
    var i: uint64 := 0;
    while i < n
      invariant i <= n && m.Ok() && fresh(m) && |m.addrs| == i as int + 1
      invariant forall k :: 0 <= k <= i as int ==> m.addrs[k] == k && k in m.m && m.m[k] == want[k]
      invariant forall k :: k in m.m ==> 0 <= k <= i as int
    {
      var b := j.lg.body.BlkAt(i);
      m.Put(i + 1, b);
      i := i + 1;
    }
    l := m.List();
    assert l.blks == want;
    m.Clear();
  }
  // what pending group y writes to the log, m blocks from its i-th on or its descriptor, is nothing of an earlier one, x
  lemma PendNotIn(g: G, n: int, x: int, y: int, i: int, m: int)
    requires GInv(g, n) && PInv(g) && 0 <= x < y < |g.ps| && Side(g.p, g.ps[y].d, i, m)
    ensures var d := g.ps[x].d; var e := g.ps[y].d; DSlot(g.p, d.sq) != DSlot(g.p, e.sq) && !(At(g.p, e, i) <= DSlot(g.p, d.sq) < At(g.p, e, i) + m)
    ensures var d := g.ps[x].d; var e := g.ps[y].d; forall k :: 0 <= k < |d.addrs| ==> !(At(g.p, e, i) <= At(g.p, d, k) < At(g.p, e, i) + m) && DSlot(g.p, e.sq) != At(g.p, d, k)
  {
    assert PendWf(g, g.ps[x], End(g) + x, n) && PendWf(g, g.ps[y], End(g) + y, n);
    var d := g.ps[x].d; var e := g.ps[y].d;
    UnitApart(g.p, d.sq, e.sq);
    NotInDesc(g.p, d.sq, e, i, m);
    forall k | 0 <= k < |d.addrs| ensures !(At(g.p, e, i) <= At(g.p, d, k) < At(g.p, e, i) + m) && DSlot(g.p, e.sq) != At(g.p, d, k) { NotInData(g.p, d, k, e, i, m); }
  }
  // c2 is c, but for what pending group y writes to the log: the others are as they were
  lemma WrittenLog(g: G, n: int, x: int, y: int, i: int, m: int, c: Img, c2: Img)
    requires GInv(g, n) && PInv(g) && 0 <= x < y < |g.ps| && Side(g.p, g.ps[y].d, i, m) && |c| == |c2| == n && Written(g.p, c, g.ps[x])
    requires var e := g.ps[y].d; forall a :: 0 <= a < n && a != DSlot(g.p, e.sq) && !(At(g.p, e, i) <= a < At(g.p, e, i) + m) ==> c2[a] == c[a]
    requires At(g.p, g.ps[y].d, i) + m <= Home(g.p)
    ensures Written(g.p, c2, g.ps[x])
  {
    PendNotIn(g, n, x, y, i, m);
    assert PendWf(g, g.ps[x], End(g) + x, n);
    forall k | 0 <= k < |g.ps[x].d.addrs| ensures c2[At(g.p, g.ps[x].d, k)] == g.ps[x].m[g.ps[x].d.addrs[k]] { assert c2[At(g.p, g.ps[x].d, k)] == c[At(g.p, g.ps[x].d, k)]; }
    forall a | a in g.ps[x].h ensures 0 <= a < n && c2[a] == g.ps[x].h[a] { assert a in g.ps[x].d.dirs; }
  }
  lemma OthersWritten(g: G, n: int, y: int, i: int, m: int, c: Img, c2: Img)
    requires GInv(g, n) && PInv(g) && 0 <= y < |g.ps| && Side(g.p, g.ps[y].d, i, m) && |c| == |c2| == n && forall x :: 0 <= x < y ==> Written(g.p, c, g.ps[x])
    requires var e := g.ps[y].d; forall a :: 0 <= a < n && a != DSlot(g.p, e.sq) && !(At(g.p, e, i) <= a < At(g.p, e, i) + m) ==> c2[a] == c[a]
    requires At(g.p, g.ps[y].d, i) + m <= Home(g.p)
    ensures forall x :: 0 <= x < y ==> Written(g.p, c2, g.ps[x])
  { forall x | 0 <= x < y ensures Written(g.p, c2, g.ps[x]) { WrittenLog(g, n, x, y, i, m, c, c2); } }
  // [F] write a small group, all of it
  method LogWriteUnit(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && j.lg.wn == 0 && j.lg.ps != [] && |Last(j).d.addrs| <= 15
    modifies j.lg`wn, j.lg`wd, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> j.lg.wd && j.lg.wn == |Last(j).d.addrs|
    ensures !ok ==> j.d.bad
  {
    var l, n := UnitList(j);
    DescReady(j); UnitReady(j);
    reveal j.Inv();
    var s := SlotOf(j.eq + (j.lg.np - 1), j.nd);
    Elsewhere(j.d.owner, Logging, Installing, DSlot(j.geo, Last(j).d.sq), 1 + n as int);
    ok := j.d.WriteRun(Logging, j.at + 1 + 16 * s, l, 0, 1 + n);
    if ok { j.lg.wn := n as int; j.lg.wd := true; }
    FullD(j.d.poss, j.g());
    assert j.g() == old(j.g());
    UnitWroteI(j, l.blks, ok);
    InsFrame(j); PagesFrame(j);
  }
  // what it means to write a small group
  lemma UnitReady(j: Journal)
    requires j.Inv() && j.lg.ph == 2 && j.lg.ps != [] && |Last(j).d.addrs| <= 15 && GeoOk(j.geo)
    ensures var a := DSlot(j.geo, Last(j).d.sq); var n := 1 + |Last(j).d.addrs|; 0 <= a && a + n <= |j.d.cur| == |j.d.poss| && (forall x :: a <= x < a + n ==> Owns(j.d.owner, Logging, x)) &&
      Full(Fuzzy(j.d.poss, a, n), j.g()) && forall s :: CrashImg(Fuzzy(j.d.poss, a, n), s) ==> s in j.d.ok
  {
    reveal j.Inv(); LogFacts(j); LastFacts(j); OwnLog(j);
    var e := Last(j);
    UnitWritePres(j.d.poss, j.g(), |j.lg.ps| - 1, e.d);
    CrashAll(Fuzzy(j.d.poss, DSlot(j.geo, e.d.sq), 1 + |e.d.addrs|), j.g(), j.vs, j.lb, j.cl);
  }
  twostate lemma UnitWroteI(j: Journal, blks: seq<BV>, ok: bool)
    requires old(j.LogI()) && LogSame(j) && j.lg.dn == old(j.lg.dn) && GInv(j.g(), |j.d.cur|) && PInv(j.g())
    requires j.lg.body != null && j.lg.desc != null && |Last(j).d.addrs| <= 15 && blks == [j.lg.desc.v] + j.lg.body.blks
    requires if ok then j.lg.wn == |Last(j).d.addrs| && j.lg.wd else j.lg.wn == old(j.lg.wn) && j.lg.wd == old(j.lg.wd)
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires var a := DSlot(j.geo, Last(j).d.sq); ok ==> (forall x :: a <= x < a + |blks| ==> 0 <= x < |j.d.cur| ==> j.d.cur[x] == blks[x - a]) && forall x :: 0 <= x < |j.d.cur| && !(a <= x < a + |blks|) ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.LogI()
  {
    reveal j.LogI();
    var e := Last(j); var k := |j.lg.ps| - 1;
    if ok && !j.d.bad {
      assert PendWf(j.g(), e, End(j.g()) + k, |j.d.cur|);
      forall i | 0 <= i < j.lg.wn ensures j.d.cur[At(j.geo, e.d, i)] == j.lg.body.blks[i] { assert j.d.cur[At(j.geo, e.d, i)] == blks[1 + i]; }
      forall x | 0 <= x < k ensures Written(j.geo, j.d.cur, j.lg.ps[x]) { WrittenLog(j.g(), |j.d.cur|, x, k, 0, |e.d.addrs|, old(j.d.cur), j.d.cur); }
      forall i | 0 <= i < j.lg.dn ensures j.d.cur[j.lg.dirs.addrs[i]] == j.lg.dirs.blks[i] { assert Home(j.geo) <= j.lg.dirs.addrs[i]; }
    }
  }
  // nothing of the logger's state has changed but how much is written
  twostate predicate LogSame(j: Journal) reads j, j.lg, j.ins, j.seal, j.d, j.cgm, j.cdm, j.lg.codes {
    old(j.lg.ph) == 2 && j.lg.ph == 2 && j.lg.ps != [] && j.g() == old(j.g()) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && unchanged(j.cgm, j.cdm) &&
    j.lg.ps == old(j.lg.ps) && j.lg.bodies == old(j.lg.bodies) && j.lg.maps == old(j.lg.maps) && j.lg.newest == old(j.lg.newest) && j.lg.np == old(j.lg.np) && j.lg.ring == old(j.lg.ring) && j.lg.dir == old(j.lg.dir) && j.lg.pos == old(j.lg.pos) && j.lg.codes == old(j.lg.codes) && unchanged(j.lg.codes) &&
    j.lg.dirs == old(j.lg.dirs) && j.lg.desc == old(j.lg.desc) && j.lg.body == old(j.lg.body) && j.seal == old(j.seal) &&
    GeoOk(j.geo) && |j.d.cur| == |j.d.poss| == |old(j.d.cur)| && |j.d.cur| >= Home(j.geo)
  }
  // what the logger owns
  lemma OwnLog(j: Journal)
    requires j.OwnI() && (j.lg.ph >= 1 || j.lg.ps != [])
    ensures forall a :: j.geo.at < a < Copy(j.geo) || a in j.cdm.m ==> Owns(j.d.owner, Logging, a)
  { reveal j.OwnI(); }
  // [F] where a larger group's blocks from the i-th on belong, as many as lie side by side
  method DataRun(j: Journal, i: uint64) returns (a: uint64, n: uint64)
    requires j.Inv() && j.lg.ph == 2 && j.lg.ps != [] && i as int == j.lg.wn < |Last(j).d.addrs| && |Last(j).d.addrs| > 15
    ensures GeoOk(j.geo) && 0 < n && i as int + n as int <= |Last(j).d.addrs|
    ensures Side(j.geo, Last(j).d, i as int, n as int) && a as int == At(j.geo, Last(j).d, i as int) && a as int + n as int < j.home as int
  {
    reveal j.Inv();
    LogFacts(j); LastFacts(j);
    var len := j.lg.body.Len();
    n := len - i;
    var s := SlotOf(j.lg.pos - n, j.nr);
    assert j.lg.pos as int - n as int == Last(j).d.pos + i as int;
    if n > j.nr - s { n := j.nr - s; }
    a := j.at + 1 + 16 * j.nd + s;
  }
  // [F] write blocks of a larger group to the ring, from the i-th on as many as lie side by side
  method LogWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && j.lg.ps != [] && i as int == j.lg.wn < |Last(j).d.addrs| && |Last(j).d.addrs| > 15
    modifies j.lg`wn, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.lg.wn <= |Last(j).d.addrs|
    ensures !ok ==> j.d.bad
  {
    var a;
    a, n := DataRun(j, i);
    DataReady(j, i as int, a as int, n as int);
    reveal j.Inv();
    Elsewhere(j.d.owner, Logging, Installing, a as int, n as int);
    ok := j.d.WriteRun(Logging, a, j.lg.body, i, n);
    if ok { j.lg.wn := j.lg.wn + n as int; }
    FullD(j.d.poss, j.g());
    assert j.g() == old(j.g());
    LogWroteI(j, i as int, n as int, ok);
    InsFrame(j); PagesFrame(j);
  }
  // what it means to write n of its blocks to the ring, from the i-th on
  lemma DataReady(j: Journal, i: int, a: int, n: int)
    requires j.Inv() && j.lg.ph == 2 && j.lg.ps != [] && 0 <= i && 1 <= n && i + n <= |Last(j).d.addrs| && |Last(j).d.addrs| > 15
    requires GeoOk(j.geo) && Side(j.geo, Last(j).d, i, n) && a == At(j.geo, Last(j).d, i) && a + n < j.home as int
    ensures 0 <= a && a + n <= |j.d.cur| == |j.d.poss| && forall x :: a <= x < a + n ==> Owns(j.d.owner, Logging, x)
    ensures j.lg.body != null && |j.lg.body.blks| == |j.lg.body.addrs| == |Last(j).d.addrs| <= 500 && forall x :: i <= x < i + n ==> |j.lg.body.blks[x]| == 4096
    ensures Full(Fuzzy(j.d.poss, a, n), j.g()) && forall s :: CrashImg(Fuzzy(j.d.poss, a, n), s) ==> s in j.d.ok
  {
    reveal j.Inv(); LogFacts(j); LastFacts(j); OwnLog(j);
    LogWritePres(j.d.poss, j.g(), |j.lg.ps| - 1, i, n);
    CrashAll(Fuzzy(j.d.poss, a, n), j.g(), j.vs, j.lb, j.cl);
  }
  twostate lemma LogWroteI(j: Journal, i: int, n: int, ok: bool)
    requires old(j.LogI()) && LogSame(j) && j.lg.dn == old(j.lg.dn) && j.lg.wd == old(j.lg.wd) && GInv(j.g(), |j.d.cur|) && PInv(j.g())
    requires 0 <= i && 0 < n && i + n <= |Last(j).d.addrs| <= 500 && i == old(j.lg.wn) && j.lg.body != null && |j.lg.body.blks| == |Last(j).d.addrs| > 15
    requires j.lg.wn == if ok then i + n else i
    requires Side(j.geo, Last(j).d, i, n) && At(j.geo, Last(j).d, i) + n <= Home(j.geo)
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires var a := At(j.geo, Last(j).d, i); ok ==> (forall x :: a <= x < a + n ==> 0 <= x < |j.d.cur| ==> j.d.cur[x] == j.lg.body.blks[i + (x - a)]) && forall x :: 0 <= x < |j.d.cur| && !(a <= x < a + n) ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.LogI()
  {
    reveal j.LogI();
    if ok && !j.d.bad { RingWrote(j.g(), |j.d.cur|, |j.lg.ps| - 1, j.lg.body, j.lg.dirs, j.lg.dn, j.lg.wd, old(j.d.cur), j.d.cur, i, n); }
  }
  // i blocks of the last pending group, k, were in the ring, and dn of its direct ones at home; now n blocks more are in the ring
  lemma RingWrote(g: G, sz: int, k: int, body: BList, dirs: BList, dn: int, wd: bool, c: Img, c2: Img, i: int, n: int)
    requires GInv(g, sz) && PInv(g) && 0 <= k == |g.ps| - 1 && |c| == |c2| == sz && 0 <= i && 0 < n && i + n <= |body.blks| == |g.ps[k].d.addrs| <= 500 && |g.ps[k].d.addrs| > 15
    requires var e := g.ps[k]; Side(g.p, e.d, i, n) && At(g.p, e.d, i) + n <= Home(g.p) && Lists(dirs, e.h, Home(g.p), sz) && 0 <= dn <= |dirs.addrs|
    requires OnDisk(g, sz, k, body, dirs, i, dn, wd, c)
    requires var a := At(g.p, g.ps[k].d, i); (forall x :: a <= x < a + n ==> 0 <= x < sz ==> c2[x] == body.blks[i + (x - a)]) && forall x :: 0 <= x < sz && !(a <= x < a + n) ==> c2[x] == c[x]
    ensures OnDisk(g, sz, k, body, dirs, i + n, dn, wd, c2)
  {
    var e := g.ps[k];
    assert PendWf(g, e, End(g) + k, sz);
    LogWritten(g.p, e.d, c2, body.blks, i, n);
    NotInDesc(g.p, e.d.sq, e.d, i, n);
    OthersWritten(g, sz, k, i, n, c, c2);
    forall x | 0 <= x < dn ensures c2[dirs.addrs[x]] == dirs.blks[x] { assert Home(g.p) <= dirs.addrs[x]; }
  }
  // ... this is there
  predicate OnDisk(g: G, sz: int, k: int, body: BList, dirs: BList, wn: int, dn: int, wd: bool, c: Img)
    requires GInv(g, sz) && 0 <= k == |g.ps| - 1 && |c| == sz && 0 <= wn <= |body.blks| == |g.ps[k].d.addrs| && Lists(dirs, g.ps[k].h, Home(g.p), sz) && 0 <= dn <= |dirs.addrs|
  {
    var e := g.ps[k];
    (forall x :: 0 <= x < wn ==> 0 <= At(g.p, e.d, x) < sz && c[At(g.p, e.d, x)] == body.blks[x]) && (forall x :: 0 <= x < dn ==> c[dirs.addrs[x]] == dirs.blks[x]) &&
    (wd ==> 0 <= DSlot(g.p, e.d.sq) < sz && c[DSlot(g.p, e.d.sq)] == e.b) && forall x :: 0 <= x < k ==> Written(g.p, c, g.ps[x])
  }
  // [F] write direct blocks of the group home, from the i-th on as long as their addresses are adjacent
  method DirWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && j.lg.dirs != null && i as int == j.lg.dn < |j.lg.dirs.addrs|
    modifies j.lg`dn, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.lg.dn <= |j.lg.dirs.addrs|
    ensures !ok ==> j.d.bad
  {
    var a;
    a, n := DirsAt(j, i);
    DirRun(j, i as int, a as int, n as int);
    reveal j.Inv();
    Elsewhere(j.d.owner, Logging, Installing, a as int, n as int);
    ok := j.d.WriteRun(Logging, a, j.lg.dirs, i, n);
    if ok { j.lg.dn := j.lg.dn + n as int; }
    FullD(j.d.poss, j.g());
    assert j.g() == old(j.g());
    DirWroteI(j, a as int, n as int, ok);
    InsFrame(j); PagesFrame(j);
  }
  // where they go
  method DirsAt(j: Journal, i: uint64) returns (a: uint64, n: uint64)
    requires j.Inv() && j.lg.ph == 2 && j.lg.dirs != null && i as int < |j.lg.dirs.addrs|
    ensures 0 < n && i as int + n as int <= |j.lg.dirs.addrs| < 0x8_0000_0000_0000 && forall y :: i as int <= y < i as int + n as int ==> j.lg.dirs.addrs[y] == a as int + (y - i as int)
  {
    reveal j.Inv(); LogFacts(j);
    a, n := Adjacent(j.lg.dirs, i);
  }
  // what it means to write home n of the direct blocks, from the i-th on
  lemma DirRun(j: Journal, i: int, a: int, n: int)
    requires j.Inv() && j.lg.ph == 2 && j.lg.dirs != null && 0 <= i && 1 <= n && i + n <= |j.lg.dirs.addrs|
    requires forall y :: i <= y < i + n ==> j.lg.dirs.addrs[y] == a + (y - i)
    ensures j.lg.ps != [] && j.home as int <= a && a + n <= |j.d.cur| == |j.d.poss| && forall x :: a <= x < a + n ==> Owns(j.d.owner, Logging, x)
    ensures |j.lg.dirs.blks| == |j.lg.dirs.addrs| && forall x :: i <= x < i + n ==> |j.lg.dirs.blks[x]| == 4096
    ensures Full(Fuzzy(j.d.poss, a, n), j.g()) && forall s :: CrashImg(Fuzzy(j.d.poss, a, n), s) ==> s in j.d.ok
  {
    reveal j.Inv(); LogFacts(j); OwnLog(j);
    var k := |j.lg.ps| - 1;
    assert j.lg.dirs.addrs[i + n - 1] == a + (n - 1) < |j.d.cur|;
    assert Home(j.geo) <= j.lg.dirs.addrs[i];
    forall x | a <= x < a + n ensures InPend(j.lg.ps, x) && x in j.cdm.m {
      assert j.lg.dirs.addrs[i + (x - a)] == x;
      assert x in j.lg.ps[k].h;
      MergeHas(Hs(j.lg.ps), k, x);
    }
    DirWritePres(j.d.poss, j.g(), a, n);
    CrashAll(Fuzzy(j.d.poss, a, n), j.g(), j.vs, j.lb, j.cl);
  }
  twostate lemma DirWroteI(j: Journal, a: int, n: int, ok: bool)
    requires old(j.LogI()) && LogSame(j) && j.lg.wd == old(j.lg.wd) && j.lg.wn == old(j.lg.wn) && GInv(j.g(), |j.d.cur|) && PInv(j.g())
    requires 0 <= old(j.lg.dn) && 0 < n && j.lg.dirs != null && old(j.lg.dn) + n <= |j.lg.dirs.addrs| == |j.lg.dirs.blks|
    requires j.lg.dn == if ok then old(j.lg.dn) + n else old(j.lg.dn)
    requires Home(j.geo) <= a && a + n <= |j.d.cur|
    requires forall y :: old(j.lg.dn) <= y < old(j.lg.dn) + n ==> j.lg.dirs.addrs[y] == a + (y - old(j.lg.dn))
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires ok ==> (forall x :: a <= x < a + n ==> j.d.cur[x] == j.lg.dirs.blks[old(j.lg.dn) + (x - a)]) && forall x :: 0 <= x < |j.d.cur| && !(a <= x < a + n) ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.LogI()
  {
    reveal j.LogI();
    if ok && !j.d.bad {
      var k := |j.lg.ps| - 1; var o := old(j.lg.dn);
      forall i | 0 <= i < j.lg.dn ensures j.d.cur[j.lg.dirs.addrs[i]] == j.lg.dirs.blks[i] {
        if i >= o { assert j.lg.dirs.addrs[i] == a + (i - o); }
        else { assert j.lg.dirs.addrs[i] < j.lg.dirs.addrs[o]; }
      }
      forall x | a <= x < a + n ensures x in j.lg.ps[k].h { assert j.lg.dirs.addrs[o + (x - a)] == x; }
      forall x | 0 <= x < k ensures Written(j.geo, j.d.cur, j.lg.ps[x]) { WrittenDir(j.g(), |j.d.cur|, x, k, a, n, old(j.d.cur), j.d.cur); }
    }
  }
  // ... nor do its direct blocks
  lemma WrittenDir(g: G, n: int, x: int, y: int, a: int, m: int, c: Img, c2: Img)
    requires GInv(g, n) && 0 <= x < y < |g.ps| && |c| == |c2| == n && Written(g.p, c, g.ps[x]) && Home(g.p) <= a && forall z :: a <= z < a + m ==> z in g.ps[y].h
    requires forall z :: 0 <= z < n && !(a <= z < a + m) ==> c2[z] == c[z]
    ensures Written(g.p, c2, g.ps[x])
  {
    assert PendWf(g, g.ps[x], End(g) + x, n);
    forall z | z in g.ps[x].h ensures 0 <= z < n && c2[z] == g.ps[x].h[z] {
      if a <= z < a + m { reveal Free(); assert DirPend(g.ps, x, z) && DirPend(g.ps, y, z); }
    }
  }
  // [F] the descriptor of a larger group
  method LogWriteDesc(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2
    modifies j.lg`wd, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> j.lg.wd
    ensures !ok ==> j.d.bad
  {
    DescReady(j);
    reveal j.Inv();
    var s := SlotOf(j.eq + (j.lg.np - 1), j.nd);
    Elsewhere(j.d.owner, Logging, Installing, DSlot(j.geo, Last(j).d.sq), 1);
    ok := j.d.Write(Logging, j.at + 1 + 16 * s, j.lg.desc);
    if ok { j.lg.wd := true; }
    FullD(j.d.poss, j.g());
    assert j.g() == old(j.g());
    DescWroteI(j, ok);
    InsFrame(j); PagesFrame(j);
  }
  // what it means to write it
  lemma DescReady(j: Journal)
    requires j.Inv() && j.lg.ph == 2
    ensures j.lg.ps != [] && j.lg.desc != null && j.lg.desc.v == Last(j).b && |j.lg.desc.v| == 4096 && Last(j).d.sq == j.eq as int + j.lg.np as int - 1 && 0 < j.lg.np && GeoOk(j.geo)
    ensures j.eq as int + j.lg.np as int < 0x2000_0000_0000_0000 && j.geo.nd == j.nd as int && j.geo.at == j.at as int
    ensures var a := DSlot(j.geo, Last(j).d.sq); 0 <= a < |j.d.cur| == |j.d.poss| && Owns(j.d.owner, Logging, a) && Full(Fuzzy(j.d.poss, a, 1), j.g()) && forall s :: CrashImg(Fuzzy(j.d.poss, a, 1), s) ==> s in j.d.ok
  {
    reveal j.Inv(); LogFacts(j); LastFacts(j); OwnLog(j);
    DescWritePres(j.d.poss, j.g(), |j.lg.ps| - 1);
    CrashAll(Fuzzy(j.d.poss, DSlot(j.geo, Last(j).d.sq), 1), j.g(), j.vs, j.lb, j.cl);
  }
  // What else is on the device stays when the descriptor of the last pending group is written: its blocks, home blocks, and other groups.
  lemma DescAlone(g: G, c: Img, c2: Img)
    requires GeoOk(g.p) && GInv(g, |c|) && PInv(g) && g.ps != [] && |c2| == |c| >= Home(g.p)
    requires var a := DSlot(g.p, g.ps[|g.ps| - 1].d.sq); forall x :: 0 <= x < |c| && x != a ==> c2[x] == c[x]
    ensures var d := g.ps[|g.ps| - 1].d; forall i {:trigger At(g.p, d, i)} :: 0 <= i < |d.addrs| ==> c2[At(g.p, d, i)] == c[At(g.p, d, i)]
    ensures forall x :: Home(g.p) <= x < |c| ==> c2[x] == c[x]
    ensures (forall x :: 0 <= x < |g.ps| - 1 ==> Written(g.p, c, g.ps[x])) ==> forall x :: 0 <= x < |g.ps| - 1 ==> Written(g.p, c2, g.ps[x])
  {
    var k := |g.ps| - 1; var e := g.ps[k];
    assert PendWf(g, e, End(g) + k, |c|);
    forall i | 0 <= i < |e.d.addrs| ensures c2[At(g.p, e.d, i)] == c[At(g.p, e.d, i)] { DescApart(g.p, e.d, i); }
    if forall x :: 0 <= x < k ==> Written(g.p, c, g.ps[x]) { OthersWritten(g, |c|, k, 0, 0, c, c2); }
  }
  lemma DescApart(p: Geo, d: Desc, i: int)
    requires GeoOk(p) && 0 <= i
    ensures At(p, d, i) != DSlot(p, d.sq)
  { }
  twostate lemma DescWroteI(j: Journal, ok: bool)
    requires old(j.LogI()) && LogSame(j) && j.lg.wn == old(j.lg.wn) && j.lg.dn == old(j.lg.dn) && GInv(j.g(), |j.d.cur|) && PInv(j.g())
    requires j.lg.wd == (ok || old(j.lg.wd)) && if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires var a := DSlot(j.geo, Last(j).d.sq); ok ==> j.d.cur[a] == Last(j).b && forall x :: 0 <= x < |j.d.cur| && x != a ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.LogI()
  {
    reveal j.LogI();
    if ok && !j.d.bad { DescAlone(j.g(), old(j.d.cur), j.d.cur); }
  }
  // [F] the last pending group is written (no operation of the device)
  method LogWrote(j: Journal)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && j.lg.ps != [] && j.lg.wd && j.lg.wn == |Last(j).d.addrs| && j.lg.dirs != null && j.lg.dn == |j.lg.dirs.addrs|
    modifies j.lg`ph, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono() && j.lg.ph == 4
  {
    reveal j.Inv();
    LastWritten(j);
    j.lg.ph := 4;
    AllWritten(j);
    assert j.OwnI() by { reveal j.OwnI(); }
  }
  lemma LastWritten(j: Journal)
    requires j.LogI() && j.lg.ph == 2 && j.lg.ps != [] && j.lg.wd && j.lg.wn == |Last(j).d.addrs| && j.lg.dirs != null && j.lg.dn == |j.lg.dirs.addrs| && GeoOk(j.geo) && |j.d.cur| >= Home(j.geo)
    ensures !j.d.bad ==> Written(j.geo, j.d.cur, Last(j))
  {
    reveal j.LogI();
    var e := Last(j);
    if !j.d.bad {
      forall a | a in e.h ensures 0 <= a < |j.d.cur| && j.d.cur[a] == e.h[a] { assert a in j.lg.dirs.addrs; var i :| 0 <= i < |j.lg.dirs.addrs| && j.lg.dirs.addrs[i] == a; }
      assert Body(j.lg.body, e);
    }
  }
  twostate lemma AllWritten(j: Journal)
    requires old(j.LogI()) && old(j.lg.ph) == 2 && j.lg.ph == 4 && unchanged(j.lg`ps, j.lg`bodies, j.lg`maps, j.lg`newest, j.lg`np, j.lg`ring, j.lg`dir, j.lg`pos, j.lg`codes, j.cgm, j.cdm, j.lg.codes, j.d, j.seal) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && j.g() == old(j.g())
    requires j.lg.ps != [] && GeoOk(j.geo) && |j.d.cur| >= Home(j.geo) && (!j.d.bad ==> Written(j.geo, j.d.cur, Last(j)))
    ensures j.LogI()
  { reveal j.LogI(); }
  // [F] the barrier for all pending groups
  method LogBarrier(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 4
    modifies j.lg`ph, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures j.lg.ph == if ok then 3 else 4
    ensures old(j.d.bad) ==> !ok       // once the device has failed, nothing more becomes durable
    ensures !ok ==> j.d.bad
  {
    reveal j.Inv();
    LogFacts(j);
    ghost var P := j.d.poss;
    ok := j.d.Barrier(Logging);
    BarrierPres(j.d.poss, P, j.g());
    LogFrame(j);
    if ok {
      LogDone(j);
      j.lg.ph := 3;
      LogDoneI(j);
      assert j.OwnI() by { reveal j.OwnI(); }
    }
    InsFrame(j); PagesFrame(j);
  }
  // all pending groups are written, and what the logger owns is durable
  lemma LogDone(j: Journal)
    requires j.LogI() && j.OwnI() && j.lg.ph == 4 && !j.d.bad && Full(j.d.poss, j.g())
    requires |j.d.poss| == |j.d.cur| && forall a :: 0 <= a < |j.d.cur| && Owns(j.d.owner, Logging, a) ==> j.d.poss[a] == iset{j.d.cur[a]}
    ensures AllHome(j.d.poss, j.g())
  {
    var g := j.g();
    assert g.ps == j.lg.ps && GeoOk(g.p) && |j.d.poss| >= Home(g.p) by { reveal j.LogI(); FullD(j.d.poss, g); }
    forall i | 0 <= i < |g.ps| ensures PendLogged(j.d.poss, g, g.ps[i], End(g) + i) { PendDone(j, i); }
  }
  // so is each of them
  lemma PendDone(j: Journal, i: int)
    requires j.LogI() && j.OwnI() && j.lg.ph == 4 && !j.d.bad && Full(j.d.poss, j.g()) && 0 <= i < |j.lg.ps|
    requires |j.d.poss| == |j.d.cur| && forall a :: 0 <= a < |j.d.cur| && Owns(j.d.owner, Logging, a) ==> j.d.poss[a] == iset{j.d.cur[a]}
    requires GeoOk(j.geo) && |j.d.poss| >= Home(j.geo) && j.g().p == j.geo
    ensures PendLogged(j.d.poss, j.g(), j.lg.ps[i], End(j.g()) + i)
  {
    reveal j.LogI(); OwnLog(j); FullD(j.d.poss, j.g());
    var g, e := j.g(), j.lg.ps[i];
    var sq := End(g) + i;
    assert Written(j.geo, j.d.cur, e) && PendWf(g, e, sq, |j.d.poss|);
    assert j.d.poss[DSlot(j.geo, sq)] == iset{e.b};
    forall k | 0 <= k < |e.d.addrs| ensures j.d.poss[At(j.geo, e.d, k)] <= iset{e.m[e.d.addrs[k]]} { assert j.d.poss[At(j.geo, e.d, k)] == iset{j.d.cur[At(j.geo, e.d, k)]}; }
    assert Logged(j.d.poss, g, e.m, e.h, e.d, sq);
    forall a | a in e.h ensures 0 <= a < |j.d.poss| && j.d.poss[a] <= iset{e.h[a]} { MergeHas(Hs(j.lg.ps), i, a); assert Owns(j.d.owner, Logging, a); }
    assert DirHome(j.d.poss, e.h);
  }
  twostate lemma LogDoneI(j: Journal)
    requires old(j.LogI()) && old(j.lg.ph) == 4 && j.lg.ph == 3 && unchanged(j.lg`ps, j.lg`bodies, j.lg`maps, j.lg`newest, j.lg`np, j.lg`ring, j.lg`dir, j.lg`pos, j.lg`codes, j.cgm, j.cdm, j.lg.codes, j.seal) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && j.g() == old(j.g())
    requires |j.d.cur| == |j.d.poss| == |old(j.d.cur)| && GeoOk(j.geo) && |j.d.cur| >= Home(j.geo) && AllHome(j.d.poss, j.g()) && j.d.cur == old(j.d.cur) && (!j.d.bad ==> !old(j.d.bad))
    ensures j.LogI()
  { reveal j.LogI(); }
}
