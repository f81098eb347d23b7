// The logger's steps without the mutex: it seals the frozen group, writes its blocks and its
// descriptor to the log and its direct blocks home, and makes them durable with one barrier.
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

  // [F] seal the group (no operation of the device). c: the codes of its direct blocks
  method LogEnc(j: Journal) returns (c: Codes)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 1
    modifies j.lg, j.seal, j.d`ok, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures j.lg.ph == 2 && j.lg.wn == 0 && j.lg.dn == 0 && !j.lg.wd
    ensures j.lg.dirs != null && |j.lg.dirs.addrs| == |j.lg.dirs.blks|
    ensures fresh(c) && CodesOf(c.s, j.cdm.m, j.home as int, j.seal.key)
  {
    reveal j.Inv();
    LogFacts(j);
    var b, l, dl; ghost var g1;
    b, l, dl, c, g1 := Encode(j);
    j.d.SetOk(OkSet(g1.p, j.vs, j.lb, g1.sg));
    LogEncFields(j.lg, b, l, dl, g1);
    LogEncI(j);
    assert j.OwnI() by { reveal j.OwnI(); }
    HoldMore(j, old(j.g()), Rec(b.v, GroupBlks(j.cgm.m, j.cdm.m, DecDesc(b.v).d)));
  }
  lemma Listed(s: seq<Code>, m: BMap, home: int, key: int)
    requires m.Ok() && |s| == |m.addrs| && forall i :: 0 <= i < |s| ==> s[i].x == m.addrs[i] - home && Vouches(key, s[i].x, s[i].c, m.m[m.addrs[i]])
    ensures CodesOf(s, m.m, home, key)
  {
    reveal CodesOf();
    forall a | a in m.m ensures exists e :: e in s && e.x == a - home { assert a in m.addrs; var i :| 0 <= i < |m.addrs| && m.addrs[i] == a; assert s[i] in s; }
    forall e | e in s ensures e.x + home in m.m && Vouches(key, e.x, e.c, m.m[e.x + home]) { var i :| 0 <= i < |s| && s[i] == e; }
  }
  // its descriptor, its blocks, and the codes of the direct ones
  method Encode(j: Journal) returns (b: Blk, l: BList, dl: BList, c: Codes, ghost g1: G)
    requires j.Inv() && j.lg.ph == 1
    modifies j.seal
    ensures j.cgm.Ok() && j.cdm.Ok() && |b.v| == 4096 && DecDesc(b.v).SomeDesc? && l.blks == BlksOf(j.cgm.m, j.cgm.addrs)
    ensures Lists(dl, j.cdm.m, j.home as int, j.sz as int) && fresh(c) && CodesOf(c.s, j.cdm.m, j.home as int, j.seal.key)
    ensures var dd := DecDesc(b.v).d; dd.addrs == j.cgm.addrs && dd.dirs == j.cdm.addrs && dd.pos == j.wp as int &&
      var rec := Rec(b.v, GroupBlks(j.cgm.m, j.cdm.m, dd)); g1 == Started(old(j.g()), j.cgm.m, j.cdm.m, dd, b.v, rec) && j.seal.signed == old(j.seal.signed) + {rec} && j.seal.ep == old(j.seal.ep)
    ensures 0 <= j.lb && Full(j.d.poss, g1) && DurState(g1) == DurState(old(j.g())) && forall s :: CrashImg(j.d.poss, s) ==> s in OkSet(g1.p, j.vs, j.lb, g1.sg)
  {
    reveal j.Inv();
    ghost var g0 := j.g();
    LogFacts(j);
    SealedBelow(j.d.poss, j.g());
    j.cdm.Distinct();
    b, c := j.seal.Sign(j.eq, j.wp, j.cgm, j.cdm);
    Listed(c.s, j.cdm, j.home as int, j.seal.key);
    l := j.cgm.List();
    dl := j.cdm.Sorted();
    SortedLen(dl.addrs, j.sz as int);
    ghost var dd := DecDesc(b.v).d;
    g1 := Started(g0, j.cgm.m, j.cdm.m, dd, b.v, Rec(b.v, GroupBlks(j.cgm.m, j.cdm.m, dd)));
    Encoded(j.d.poss, g0, j.cgm.m, j.cdm.m, dd, b.v, j.vs, j.lb, j.cl);
  }
  // what sealing means for the protocol's state
  lemma Encoded(poss: Poss, g0: G, m: BM, h: BM, dd: Desc, b: BV, w: seq<St>, x: int, y: int)
    requires Full(poss, g0) && !g0.com && Ready(g0, m, h)
    requires GroupWf(g0.p, m, h, dd, End(g0), |poss|) && DecDesc(b) == SomeDesc(dd) && dd.pos == g0.wp
    requires |g0.gs| < g0.p.nd && g0.wp + |dd.addrs| <= g0.lo + g0.p.nr
    requires 0 <= x <= y < |w| && w[x] == DurState(g0) && w[y] == Over(Over(w[x], h), m)
    ensures var g1 := Started(g0, m, h, dd, b, Rec(b, GroupBlks(m, h, dd)));
      Full(poss, g1) && DurState(g1) == DurState(g0) && forall s :: CrashImg(poss, s) ==> s in OkSet(g1.p, w, x, g1.sg)
  {
    StartPres(poss, g0, m, h, dd, b);
    var g1 := Started(g0, m, h, dd, b, Rec(b, GroupBlks(m, h, dd)));
    CrashAll(poss, g1, w, x, y);
  }
  method LogEncFields(lg: Logger, b: Blk, l: BList, dl: BList, ghost g1: G)
    modifies lg
    ensures lg.com == g1.com && lg.cg == g1.cg && lg.ch == g1.ch && lg.cd == g1.cd && lg.cb == g1.cb
    ensures lg.desc == b && lg.body == l && lg.dirs == dl && lg.wn == 0 && lg.dn == 0 && !lg.wd && lg.ph == 2
  {
    lg.desc := b; lg.body := l; lg.dirs := dl;
    lg.wn := 0; lg.dn := 0; lg.wd := false; lg.ph := 2;
    lg.com := g1.com; lg.cg := g1.cg; lg.ch := g1.ch; lg.cd := g1.cd; lg.cb := g1.cb;
  }
  // the logger's own steps
  twostate lemma LogEncI(j: Journal)
    requires old(j.LogI()) && old(j.lg.ph) == 1 && j.lg.ph == 2 && j.cgm == old(j.cgm) && unchanged(j.cgm)
    requires j.cdm == old(j.cdm) && unchanged(j.cdm) && j.lg.dirs != null && j.lg.dn == 0
    requires j.lg.desc != null && j.lg.body != null && j.lg.wn == 0 && !j.lg.wd && |j.lg.desc.v| == 4096 && j.cgm.Ok() && j.cdm.Ok() && j.lg.body.blks == BlksOf(j.cgm.m, j.cgm.addrs)
    requires DecDesc(j.lg.desc.v).SomeDesc? && var dd := DecDesc(j.lg.desc.v).d; dd.addrs == j.cgm.addrs && dd.dirs == j.cdm.addrs && dd.pos == j.wp as int &&
             j.g() == Started(old(j.g()), j.cgm.m, j.cdm.m, dd, j.lg.desc.v, Rec(j.lg.desc.v, GroupBlks(j.cgm.m, j.cdm.m, dd)))
    requires unchanged(j.d`cur, j.d`poss, j.d`bad) && |j.d.cur| == |j.d.poss| == |old(j.d.cur)| && GeoOk(j.geo) && End(j.g()) == End(old(j.g())) && Lists(j.lg.dirs, j.cdm.m, Home(j.geo), |j.d.cur|)
    ensures j.LogI()
  { reveal j.LogI(); }
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
    ensures n as int == |j.cgm.addrs|
  {
    reveal j.Inv(); LogFacts(j);
    n := j.lg.body.Len();
  }
  // [F] the descriptor and behind it the blocks of a small group, as one list (the map is there to make it)
  method UnitList(j: Journal) returns (l: BList, n: uint64)
    requires j.Inv() && j.lg.ph == 2 && |j.cgm.addrs| <= 15
    ensures j.lg.desc != null && j.lg.body != null && n as int == |j.cgm.addrs| == |j.lg.body.blks|
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
  // [F] write a small group, all of it
  method LogWriteUnit(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && j.lg.wn == 0 && |j.cgm.addrs| <= 15
    modifies j.lg`wn, j.lg`wd, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> j.lg.wd && j.lg.wn == |j.cgm.addrs|
    ensures !ok ==> j.d.bad
  {
    var l, n := UnitList(j);
    reveal j.Inv();
    LogFacts(j); ComI(j); ComFacts(j.d.poss, j.g());
    ghost var P := j.d.poss;
    var s := SlotOf(j.eq, j.nd);
    UnitWritePres(P, j.g());
    CrashAll(Fuzzy(P, DSlot(j.geo, End(j.g())), 1 + n as int), j.g(), j.vs, j.lb, j.cl);
    OwnLog(j); Elsewhere(j.d.owner, Logging, Installing, DSlot(j.geo, End(j.g())), 1 + n as int);
    ok := j.d.WriteRun(Logging, j.at + 1 + 16 * s, l, 0, 1 + n);
    if ok { j.lg.wn := n as int; j.lg.wd := true; }
    UnitWroteI(j, l.blks, ok);
    InsFrame(j); PagesFrame(j);
  }
  twostate lemma UnitWroteI(j: Journal, blks: seq<BV>, ok: bool)
    requires old(j.LogI()) && old(j.lg.ph) == 2 && j.lg.ph == 2 && j.g() == old(j.g()) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && unchanged(j.cgm, j.cdm)
    && j.lg.dirs == old(j.lg.dirs) && j.lg.dn == old(j.lg.dn)
    requires j.lg.desc == old(j.lg.desc) && j.lg.body == old(j.lg.body) && j.lg.body != null && j.lg.desc != null && |j.lg.body.blks| == |j.cgm.addrs| <= 15
    requires if ok then j.lg.wn == |j.cgm.addrs| && j.lg.wd else j.lg.wn == old(j.lg.wn) && j.lg.wd == old(j.lg.wd)
    requires |j.d.cur| == |j.d.poss| == |old(j.d.cur)| && GeoOk(j.geo) && |j.d.cur| >= Home(j.geo) && j.lg.cd.sq == End(j.g()) && blks == [j.lg.desc.v] + j.lg.body.blks
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires ok ==> forall x :: DSlot(j.geo, End(j.g())) <= x < DSlot(j.geo, End(j.g())) + |blks| ==> j.d.cur[x] == blks[x - DSlot(j.geo, End(j.g()))]
    requires ok ==> forall x :: 0 <= x < |j.d.cur| && !(DSlot(j.geo, End(j.g())) <= x < DSlot(j.geo, End(j.g())) + |blks|) ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.LogI()
  {
    reveal j.LogI();
    if ok {
      forall i | 0 <= i < j.lg.wn ensures j.d.cur[At(j.geo, j.lg.cd, i)] == j.lg.body.blks[i] { assert j.d.cur[At(j.geo, j.lg.cd, i)] == blks[1 + i]; }
    }
  }
  // what the logger owns
  lemma OwnLog(j: Journal)
    requires j.OwnI() && j.lg.ph >= 1
    ensures forall a :: j.geo.at < a < Copy(j.geo) || a in j.cdm.m ==> Owns(j.d.owner, Logging, a)
  { reveal j.OwnI(); }
  // [F] where a larger group's blocks from the i-th on belong, as many as lie side by side
  method DataRun(j: Journal, i: uint64) returns (a: uint64, n: uint64)
    requires j.Inv() && j.lg.ph == 2 && i as int == j.lg.wn < |j.cgm.addrs| && |j.cgm.addrs| > 15
    ensures GeoOk(j.geo) && j.lg.com && j.lg.cd.sq == End(j.g()) && 0 < n && i as int + n as int <= |j.lg.cd.addrs| == |j.cgm.addrs|
    ensures Side(j.geo, j.lg.cd, i as int, n as int) && a as int == At(j.geo, j.lg.cd, i as int) && a as int + n as int < j.home as int
  {
    reveal j.Inv();
    LogFacts(j); ComFacts(j.d.poss, j.g());
    var len := j.lg.body.Len();
    n := len - i;
    var s := SlotOf(j.wp + i, j.nr);
    if n > j.nr - s { n := j.nr - s; }
    a := j.at + 1 + 16 * j.nd + s;
  }
  // [F] write blocks of a larger group to the ring, from the i-th on as many as lie side by side
  method LogWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && i as int == j.lg.wn < |j.cgm.addrs| && |j.cgm.addrs| > 15
    modifies j.lg`wn, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.lg.wn <= |j.cgm.addrs|
    ensures !ok ==> j.d.bad
  {
    var a;
    a, n := DataRun(j, i);
    reveal j.Inv();
    LogFacts(j); ComI(j);
    ghost var P := j.d.poss;
    LogWritePres(P, j.g(), i as int, n as int);
    CrashAll(Fuzzy(P, a as int, n as int), j.g(), j.vs, j.lb, j.cl);
    OwnLog(j); Elsewhere(j.d.owner, Logging, Installing, a as int, n as int);
    ok := j.d.WriteRun(Logging, a, j.lg.body, i, n);
    if ok { j.lg.wn := j.lg.wn + n as int; }
    LogWroteI(j, i as int, n as int, ok);
    InsFrame(j); PagesFrame(j);
  }
  twostate lemma LogWroteI(j: Journal, i: int, n: int, ok: bool)
    requires old(j.LogI()) && old(j.lg.ph) == 2 && j.lg.ph == 2 && j.g() == old(j.g()) && j.lg.wd == old(j.lg.wd) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && unchanged(j.cgm, j.cdm)
    && j.lg.dirs == old(j.lg.dirs) && j.lg.dn == old(j.lg.dn)
    requires j.lg.desc == old(j.lg.desc) && j.lg.body == old(j.lg.body) && 0 <= i && 0 <= n && i + n <= |j.cgm.addrs| <= 500 && i == old(j.lg.wn) && j.lg.body != null && |j.lg.body.blks| == |j.cgm.addrs|
    requires j.lg.wn == if ok then i + n else i
    requires |j.d.cur| == |j.d.poss| == |old(j.d.cur)| && GeoOk(j.geo) && |j.d.cur| >= Home(j.geo) && Side(j.geo, j.lg.cd, i, n) && |j.cgm.addrs| > 15
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires ok ==> forall x :: At(j.geo, j.lg.cd, i) <= x < At(j.geo, j.lg.cd, i) + n ==> 0 <= x < |j.d.cur| ==> j.d.cur[x] == j.lg.body.blks[i + (x - At(j.geo, j.lg.cd, i))]
    requires ok ==> forall x :: 0 <= x < |j.d.cur| && !(At(j.geo, j.lg.cd, i) <= x < At(j.geo, j.lg.cd, i) + n) ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.LogI()
  {
    reveal j.LogI();
    if ok {
      LogWritten(j.geo, j.lg.cd, j.d.cur, j.lg.body.blks, i, n);
    }
  }
  // [F] write direct blocks of the group home, from the i-th on as long as their addresses are adjacent
  method DirWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && j.lg.dirs != null && i as int == j.lg.dn < |j.lg.dirs.addrs|
    modifies j.lg`dn, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.lg.dn <= |j.lg.dirs.addrs|
    ensures !ok ==> j.d.bad
  {
    reveal j.Inv();
    LogFacts(j); ComI(j); DirApart(j);
    var a;
    a, n := Adjacent(j.lg.dirs, i);
    assert j.lg.dirs.addrs[i as int + n as int - 1] == a as int + (n as int - 1) < |j.d.cur|;
    assert j.home as int <= j.lg.dirs.addrs[i as int];
    forall x | a as int <= x < a as int + n as int ensures x in j.lg.ch { assert j.lg.dirs.addrs[i as int + (x - a as int)] == x; }
    ghost var P := j.d.poss;
    DirWritePres(P, j.g(), a as int, n as int);
    CrashAll(Fuzzy(P, a as int, n as int), j.g(), j.vs, j.lb, j.cl);
    OwnLog(j); Elsewhere(j.d.owner, Logging, Installing, a as int, n as int);
    ok := j.d.WriteRun(Logging, a, j.lg.dirs, i, n);
    if ok { j.lg.dn := j.lg.dn + n as int; }
    DirWroteI(j, a as int, n as int, ok);
    InsFrame(j); PagesFrame(j);
  }
  twostate lemma DirWroteI(j: Journal, a: int, n: int, ok: bool)
    requires old(j.LogI()) && old(j.lg.ph) == 2 && j.lg.ph == 2 && j.g() == old(j.g()) && j.lg.wd == old(j.lg.wd) && j.lg.wn == old(j.lg.wn) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && unchanged(j.cgm, j.cdm)
    && j.lg.dirs == old(j.lg.dirs) && j.lg.dirs != null
    requires j.lg.desc == old(j.lg.desc) && j.lg.body == old(j.lg.body) && 0 <= old(j.lg.dn) && 0 < n && old(j.lg.dn) + n <= |j.lg.dirs.addrs| == |j.lg.dirs.blks|
    requires j.lg.dn == if ok then old(j.lg.dn) + n else old(j.lg.dn)
    requires |j.d.cur| == |j.d.poss| == |old(j.d.cur)| && GeoOk(j.geo) && Home(j.geo) <= a && a + n <= |j.d.cur|
    requires forall y :: old(j.lg.dn) <= y < old(j.lg.dn) + n ==> j.lg.dirs.addrs[y] == a + (y - old(j.lg.dn))
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires ok ==> forall x :: a <= x < a + n ==> j.d.cur[x] == j.lg.dirs.blks[old(j.lg.dn) + (x - a)]
    requires ok ==> forall x :: 0 <= x < |j.d.cur| && !(a <= x < a + n) ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.LogI()
  {
    reveal j.LogI();
    if ok && !j.d.bad {
      forall i | 0 <= i < j.lg.dn ensures j.d.cur[j.lg.dirs.addrs[i]] == j.lg.dirs.blks[i] {
        if i >= old(j.lg.dn) { assert j.lg.dirs.addrs[i] == a + (i - old(j.lg.dn)); }
        else { assert j.lg.dirs.addrs[i] < j.lg.dirs.addrs[old(j.lg.dn)]; }
      }
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
    reveal j.Inv(); reveal j.LogI();
    DescWritePres(j.d.poss, j.g());
    CrashAll(Fuzzy(j.d.poss, DSlot(j.geo, End(j.g())), 1), j.g(), j.vs, j.lb, j.cl);
    var s := SlotOf(j.eq, j.nd);
    OwnLog(j);
    ok := j.d.Write(Logging, j.at + 1 + 16 * s, j.lg.desc);
    if ok { j.lg.wd := true; }
    InsFrame(j); PagesFrame(j);
  }
  // [F] the one barrier of a group commit
  method LogBarrier(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.lg && j.lg.ph == 2 && j.lg.wd && j.lg.wn == |j.cgm.addrs| && j.lg.dirs != null && j.lg.dn == |j.lg.dirs.addrs|
    modifies j.lg`ph, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.IKeep() && j.Mono()
    ensures j.lg.ph == if ok then 3 else 2
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
  // all blocks of the group are written, and what the logger owns is durable
  lemma LogDone(j: Journal)
    requires j.LogI() && j.OwnI() && j.lg.ph == 2 && !j.d.bad && j.lg.wd && j.lg.wn == |j.cgm.addrs| && j.lg.dirs != null && j.lg.dn == |j.lg.dirs.addrs| && Full(j.d.poss, j.g())
    requires |j.d.poss| == |j.d.cur| && forall a :: 0 <= a < |j.d.cur| && Owns(j.d.owner, Logging, a) ==> j.d.poss[a] == iset{j.d.cur[a]}
    ensures GeoOk(j.geo) && |j.d.poss| >= Home(j.geo) && Logged(j.d.poss, j.g(), j.lg.cg, j.lg.ch, j.lg.cd, End(j.g())) && DirHome(j.d.poss, j.g())
  {
    reveal j.LogI(); OwnLog(j);
    ComFacts(j.d.poss, j.g());
    forall a | a in j.lg.ch ensures 0 <= a < |j.d.poss| && j.d.poss[a] <= iset{j.lg.ch[a]} {
      assert a in j.lg.dirs.addrs;
      var i :| 0 <= i < |j.lg.dirs.addrs| && j.lg.dirs.addrs[i] == a;
      assert j.d.cur[a] == j.lg.dirs.blks[i];
      assert Owns(j.d.owner, Logging, a);
    }
    forall i | 0 <= i < |j.lg.cd.addrs| ensures j.d.poss[At(j.geo, j.lg.cd, i)] <= iset{j.lg.cg[j.lg.cd.addrs[i]]} {
      assert j.d.poss[At(j.geo, j.lg.cd, i)] == iset{j.d.cur[At(j.geo, j.lg.cd, i)]};
    }
    assert j.d.poss[DSlot(j.geo, End(j.g()))] == iset{j.d.cur[DSlot(j.geo, End(j.g()))]};
  }
  twostate lemma LogDoneI(j: Journal)
    requires old(j.LogI()) && old(j.lg.ph) == 2 && j.lg.ph == 3 && j.g() == old(j.g()) && j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && unchanged(j.cgm, j.cdm)
    && j.lg.dirs == old(j.lg.dirs) && j.lg.dn == old(j.lg.dn)
    requires j.lg.desc == old(j.lg.desc) && j.lg.body == old(j.lg.body) && j.lg.wn == old(j.lg.wn) && |j.d.cur| == |j.d.poss| == |old(j.d.cur)| && GeoOk(j.geo) && |j.d.cur| >= Home(j.geo)
    requires Logged(j.d.poss, j.g(), j.lg.cg, j.lg.ch, j.lg.cd, End(j.g())) && DirHome(j.d.poss, j.g())
    ensures j.LogI()
  { reveal j.LogI(); }
}
