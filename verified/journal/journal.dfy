// The journal: one method is one atomic step. [L] runs under the mutex. [F] runs without
// it: it touches only fields that the calling role (logger, installer) owns, and does one
// operation of the device.
//
// A transaction is merged into the `running` group (Append). A group goes the way running ->
// committing (being written to the log) -> logged -> installing (being written home) ->
// clean. At most one is committing and at most one merged one is installing. A group that is
// committing or installing is frozen.
//
// Roles. Whoever gets true from StartCommit is the logger until FinishCommit: a thread that
// waits for its commit, or the logger thread of the background. The installer is one thread.
include "steps.dfy"

module JournalM {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened Ring
  import opened LogModel
  import opened LogSteps

  // condition variables of the mutex
  const CLogger: uint32 := 0       // the logger thread has something to do
  const CInstaller: uint32 := 1    // the installer has
                                   // 2, 3: durability, for groups of alternating parity
  const CSpace: uint32 := 4        // there is room for transactions again

  // results of Append
  const AOk: uint32 := 0
  const AFull: uint32 := 1         // wait for room and try again
  const ATooLarge: uint32 := 2     // larger than a group can be: never
  const AFailed: uint32 := 3       // the device failed: read-only for good

  // notes (policy: nothing that is proved depends on them)
  const NWant: uint32 := 0         // commits up to here are wanted durable now
  const NWaiters: uint32 := 1      // threads that wait for the running group (at least)
  const NParity: uint32 := 2       // of the running group: its condition variable is 2 + parity
  const NUrge: uint32 := 3         // 1: install now
  const NStop: uint32 := 4         // 1: the threads of the background should end
  const NFailed: uint32 := 5       // 1: the device failed
  const NGroups: uint32 := 6       // group commits so far

  datatype Rd = Rd(a: int, t: int, v: BV)

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
  function G0(p: Geo, sg: set<Rec>, q: int, v: St): G { G(p, sg, q, [], [], 0, false, map[], Desc(0, 0, []), [], v, map[], 0, 0, 0, 0) }
  lemma ComFacts(poss: Poss, g: G)
    requires Full(poss, g) && g.com
    ensures GroupWf(g.p, g.cg, g.cd, End(g), |poss|) && g.cd.pos == g.wp && DecDesc(g.cb) == SomeDesc(g.cd)
    ensures Rec(g.cb, BlksOf(g.cg, g.cd.addrs)) in g.sg
  { reveal Full(); }
  // a barrier keeps the committing group durable
  lemma LoggedKeep(P: Poss, p: Poss, g: G)
    requires SubPoss(p, P) && Full(P, g)
    ensures g.com && Logged(P, g, g.cg, g.cd, End(g)) ==> Logged(p, g, g.cg, g.cd, End(g))
  { if g.com && Logged(P, g, g.cg, g.cd, End(g)) { LoggedSub(p, P, g, g.cg, g.cd, End(g)); } }
  // so does a change elsewhere
  lemma LoggedElse(P: Poss, p: Poss, g: G, g2: G)
    requires GeoOk(g.p) && |P| == |p| >= Home(g.p) && forall a :: g.p.at < a < Home(g.p) ==> p[a] == P[a]
    requires g2.p == g.p && g2.sg == g.sg && g2.cg == g.cg && g2.cd == g.cd && End(g2) == End(g)
    ensures Logged(P, g, g.cg, g.cd, End(g)) ==> Logged(p, g2, g.cg, g.cd, End(g))
  {
    if Logged(P, g, g.cg, g.cd, End(g)) {
      LoggedFrame(p, P, g, g.cg, g.cd, End(g));
      LoggedSg(p, g, g2, g.cg, g.cd, End(g));
    }
  }
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
    a.p == b.p && a.sg == b.sg && a.com == b.com && a.cg == b.cg && a.cd == b.cd && a.cb == b.cb && End(a) == End(b) && a.wp == b.wp &&
    |b.gs| <= |a.gs| && a.lo <= b.lo
  }
  predicate SameForIns(a: G, b: G) { a.p == b.p && a.ip == b.ip && a.im == b.im && a.hq == b.hq && a.k == b.k }
  lemma LoggedLess(p: Poss, q: Poss, g: G, g0: G, m: BM, d: Desc, sq: int)
    requires GeoOk(g.p) && |p| == |q| >= Home(g.p) && g0.p == g.p && g0.sg == g.sg && Logged(q, g0, m, d, sq)
    requires forall a :: g.p.at < a < Home(g.p) ==> p[a] <= q[a]
    ensures Logged(p, g, m, d, sq)
  {
    forall j | 0 <= j < |d.addrs| ensures p[LSlot(g.p, d.pos + j)] <= iset{m[d.addrs[j]]} {
      assert p[LSlot(g.p, d.pos + j)] <= q[LSlot(g.p, d.pos + j)];
    }
    assert p[DSlot(g.p, sq)] <= q[DSlot(g.p, sq)];
  }
  // l lists the blocks of m in the order of their addresses
  predicate Lists(l: BList, m: BM, home: int, n: int) {
    |l.blks| == |l.addrs| && |l.addrs| < 0x8_0000_0000_0000 &&
    (forall i :: 0 <= i < |l.addrs| ==> l.addrs[i] in m && l.blks[i] == m[l.addrs[i]] && |l.blks[i]| == 4096 && home <= l.addrs[i] < n) &&
    (forall a :: a in m ==> a in l.addrs) &&
    (forall i, j :: 0 <= i < j < |l.addrs| ==> l.addrs[i] < l.addrs[j])
  }

  class Journal {
    const d: Disk
    const seal: Seal
    const mu: Mutex
    const cache: Cache
    const notes: Notes
    const sz: uint64       // blocks of the device
    const at: uint64       // the layout: Geo
    const nd: uint64
    const nr: uint64
    const home: uint64     // first home block
    const maxPin: uint64   // bound on the blocks logged but not installed
    const instAt: uint64   // install from so many on

    var running: BMap      // commits not yet being logged
    var cgm: BMap          // group being logged (frozen; replaced only by the logger, under the mutex)
    var cbk: Blk?          // its descriptor block (logger's)
    var clist: BList?      // its blocks (logger's)
    var lgm: BMap          // logged groups not being installed, merged
    var inm: BMap          // being installed (frozen; replaced only by the installer, under the mutex)
    var ilist: BList?      // its blocks by address (installer's)
    var icnr: uint64       // how many of them are in the cache
    var hq: uint64         // first live sequence number on disk
    var eq: uint64         // next sequence number
    var ieq: uint64        // sequence number after the groups being installed
    var lo: uint64         // log positions: live [lo, wp)
    var ilo: uint64
    var wp: uint64
    var trims: uint64      // number of completed installs
    var nvs: uint64        // index of the last commit
    var ncl: uint64        // ... last commit in the group being logged
    var nlb: uint64        // ... last durable commit
    var busy: bool         // somebody is the logger

    ghost var g: G
    ghost var vs: seq<St>  // abstract states: after 0, 1, 2, ... commits
    ghost var lb: int
    ghost var cl: int
    ghost var rds: set<Rd>
    ghost var lph: int     // logger: 0 idle 1 frozen 2 writing 3 durable
    ghost var lwn: int     // blocks of the group written so far
    ghost var lwd: bool    // and the descriptor
    ghost var iwn: int     // installed blocks written so far
    ghost var icn: int     // ... and put into the cache: icnr
    ghost var hdur: bool
    ghost var repr: set<BMap>    // every map this journal ever used

    predicate Shape() reads this, running, lgm, cgm, inm {
      running != lgm && running != cgm && running != inm && lgm != cgm && lgm != inm && cgm != inm &&
      {running, lgm, cgm, inm} <= repr &&
      running.Ok() && lgm.Ok() && cgm.Ok() && inm.Ok() &&
      InHome(home as int, running.m, sz as int) && InHome(home as int, lgm.m, sz as int) &&
      InHome(home as int, cgm.m, sz as int) && InHome(home as int, inm.m, sz as int) &&
      (ilist != null ==> |ilist.addrs| == |ilist.blks| < 0x8_0000_0000_0000) &&
      |running.addrs| <= 500 && |cgm.addrs| <= 500 && |lgm.addrs| + |cgm.addrs| <= maxPin as int < 0x1_0000_0000
    }
    predicate GeoI() reads this {
      g.p == Geo(at as int, nd as int, nr as int, seal.key) && GeoOk(g.p) && home as int == Home(g.p) <= sz as int
    }
    predicate DiskI() reads this, d, seal {
      GeoI() && d.Valid() && Full(d.poss, g) && |d.cur| == sz as int && 0 <= lb && g.sg == seal.signed &&
      d.ok == OkSet(g.p, vs, lb, g.sg)
    }
    predicate Reals() reads this {
      |g.gs| == |g.ds| && 0 <= g.k <= |g.gs| &&
      hq as int == g.hq && eq as int == End(g) && (g.ip > 0 ==> ieq as int == g.hq + g.k) &&
      lo as int == g.lo && ilo as int == g.ilo && wp as int == g.wp &&
      nvs as int == |vs| - 1 && ncl as int == cl && nlb as int == lb && nvs < 0x4000_0000_0000_0000 &&
      trims < 0x4000_0000_0000_0000 && (busy <==> lph != 0) && icnr as int == icn
    }
    predicate Abs() reads this, running, lgm, cgm, inm {
      0 <= lb <= cl < |vs| && 0 <= g.k <= |g.gs| &&
      vs[lb] == DurState(g) && vs[cl] == Over(vs[lb], cgm.m) && vs[|vs|-1] == Over(vs[cl], running.m) &&
      lgm.m == Merge(g.gs[g.k..]) && inm.m == g.im
    }
    predicate {:opaque} LogI() reads this, d, cgm {
      GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p) &&
      0 <= lph <= 3 && (g.com <==> lph >= 2) && (lph == 0 ==> cgm.m == map[] && cgm.addrs == []) &&
      (lph >= 1 ==> |g.gs| < g.p.nd && g.wp + |cgm.addrs| <= g.lo + g.p.nr &&
                    End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000) &&
      (lph >= 2 ==> g.cg == cgm.m && g.cd.addrs == cgm.addrs && g.cd.pos == g.wp &&
                    cbk != null && cbk.v == g.cb && |g.cb| == 4096 && clist != null && 0 <= lwn <= |cgm.addrs| == |clist.blks| &&
                    (forall i :: 0 <= i < |cgm.addrs| ==> cgm.addrs[i] in cgm.m && clist.blks[i] == cgm.m[cgm.addrs[i]] && |clist.blks[i]| == 4096)) &&
      (lph == 2 && !d.bad ==> (forall i :: 0 <= i < lwn ==> d.cur[LSlot(g.p, g.wp + i)] == clist.blks[i]) &&
                    (lwd ==> d.cur[DSlot(g.p, End(g))] == g.cb)) &&
      (lph == 3 ==> Logged(d.poss, g, g.cg, g.cd, End(g)))
    }
    predicate {:opaque} InsI() reads this, d, inm {
      GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p) &&
      (ilist != null && g.ip > 0 ==> Lists(ilist, g.im, home as int, |d.cur|) && 0 <= iwn <= |ilist.addrs| && 0 <= icn <= |ilist.addrs|) &&
      (ilist == null ==> icn == 0 && iwn == 0) && (g.ip >= 2 ==> ilist != null) &&
      (g.ip == 1 && !d.bad ==> forall i :: 0 <= i < iwn ==> ilist != null && i < |ilist.addrs| && 0 <= ilist.addrs[i] < |d.cur| &&
                       d.cur[ilist.addrs[i]] == ilist.blks[i]) &&
      (g.ip == 3 && !d.bad ==> DecHdr(g.p.key, d.cur[g.p.at]) == g.hq + g.k) &&
      (hdur ==> g.ip == 3 && forall x :: x in d.poss[g.p.at] ==> DecHdr(g.p.key, x) == g.hq + g.k)
    }
    // What the cache holds of a block is its home contents. Of blocks being installed it
    // may hold the old contents until they are put there (icn counts).
    predicate {:opaque} CacheI() reads this, cache {
      forall a :: a in cache.m ==> a in g.base &&
        if a in g.im then forall i :: ilist != null && 0 <= i < icn && i < |ilist.addrs| && ilist.addrs[i] == a ==> cache.m[a] == g.im[a]
        else cache.m[a] == g.base[a]
    }
    predicate Pending(a: int) reads this, running, lgm, cgm, inm {
      a in running.m || a in cgm.m || a in lgm.m || a in inm.m
    }
    predicate {:opaque} RdI() reads this, running, lgm, cgm, inm {
      forall r :: r in rds ==> r.t <= trims as int && r.a in g.base &&
                              (r.t == trims as int ==> r.v == g.base[r.a] || Pending(r.a))
    }
    predicate {:opaque} Inv() reads this, d, seal, cache, running, lgm, cgm, inm
      ensures Inv() ==> running.Ok() && cgm.Ok() && inm.Ok() && lgm.Ok() && |vs| > 0 && running in repr && lgm in repr && cgm in repr && inm in repr
      ensures Inv() ==> (g.ip > 0 && ilist != null ==> |ilist.addrs| < 0x8_0000_0000_0000)
    {
      Shape() && DiskI() && Reals() && Abs() && LogI() && InsI() && CacheI() && RdI()
    }
    // what LogI says, without the disk
    lemma LogFacts()
      requires LogI()
      ensures 0 <= lph <= 3 && (g.com <==> lph >= 2) && (lph == 0 ==> cgm.m == map[] && cgm.addrs == [])
      ensures lph >= 1 ==> |g.gs| < g.p.nd && g.wp + |cgm.addrs| <= g.lo + g.p.nr && End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000
      ensures lph >= 2 ==> g.cg == cgm.m && g.cd.addrs == cgm.addrs && g.cd.pos == g.wp && cbk != null && cbk.v == g.cb && |g.cb| == 4096 &&
                           clist != null && 0 <= lwn <= |cgm.addrs| == |clist.blks|
      ensures lph >= 2 ==> forall i :: 0 <= i < |clist.blks| ==> |clist.blks[i]| == 4096
    { reveal LogI(); }
    lemma ComI()
      requires LogI() && Abs()
      ensures g.com ==> vs[cl] == ComState(g)
    { reveal LogI(); }
    // the logger's own steps
    twostate lemma LogEncI()
      requires old(LogI()) && old(lph) == 1 && lph == 2 && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs)
      requires cbk != null && clist != null && lwn == 0 && !lwd && |cbk.v| == 4096 && cgm.Ok() && clist.blks == BlksOf(cgm.m, cgm.addrs)
      requires DecDesc(cbk.v).SomeDesc? && var dd := DecDesc(cbk.v).d; dd.addrs == cgm.addrs && dd.pos == g.wp &&
               g == Started(old(g), cgm.m, dd, cbk.v, Rec(cbk.v, BlksOf(cgm.m, cgm.addrs)))
      requires |d.cur| == |d.poss| == |old(d.cur)| && GeoOk(g.p) && End(g) == End(old(g))
      ensures LogI()
    { reveal LogI(); }
    twostate lemma LogWroteI(i: int, n: int, ok: bool)
      requires old(LogI()) && old(lph) == 2 && lph == 2 && g == old(g) && lwd == old(lwd) && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs)
      requires cbk == old(cbk) && clist == old(clist) && 0 <= i && 0 <= n && i + n <= |cgm.addrs| <= 500 && i == old(lwn) && clist != null && |clist.blks| == |cgm.addrs|
      requires lwn == if ok then i + n else i
      requires |d.cur| == |d.poss| == |old(d.cur)| && GeoOk(g.p) && |d.cur| >= Home(g.p) && Slot(g.wp + i, g.p.nr) + n <= g.p.nr
      requires ok || d.bad
      requires ok ==> d.bad == old(d.bad)
      requires ok ==> forall x :: LSlot(g.p, g.wp + i) <= x < LSlot(g.p, g.wp + i) + n ==> d.cur[x] == clist.blks[i + (x - LSlot(g.p, g.wp + i))]
      requires ok ==> forall x :: 0 <= x < |d.cur| && !(LSlot(g.p, g.wp + i) <= x < LSlot(g.p, g.wp + i) + n) ==> d.cur[x] == old(d.cur)[x]
      ensures LogI()
    {
      reveal LogI();
      if ok { LogWritten(g, d.cur, clist.blks, i, n); }
    }
    // When parts of the invariant are kept: LogI by steps that are not the logger's, InsI by
    // those that are not the installer's, ...
    twostate lemma LogFrame()
      requires old(LogI()) && SameForLog(old(g), g) && lph == old(lph) && lwn == old(lwn) && lwd == old(lwd) && cgm == old(cgm)
      requires cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs) && cbk == old(cbk) && clist == old(clist)
      requires |d.cur| == |d.poss| == |old(d.poss)| == |old(d.cur)| >= Home(g.p)
      requires forall a :: 0 <= g.p.at < a < Home(g.p) ==> d.poss[a] <= old(d.poss)[a]
      requires d.bad || (!old(d.bad) && forall a :: 0 <= g.p.at < a < Home(g.p) ==> d.cur[a] == old(d.cur)[a])
      ensures LogI()
    {
      reveal LogI();
      if lph == 3 { LoggedLess(d.poss, old(d.poss), g, old(g), g.cg, g.cd, End(g)); }
    }
    twostate lemma InsFrame()
      requires old(InsI()) && SameForIns(old(g), g) && ilist == old(ilist) && iwn == old(iwn) && icn == old(icn) && hdur == old(hdur)
      requires |d.cur| == |d.poss| == |old(d.poss)| == |old(d.cur)| >= Home(g.p)
      requires 0 <= g.p.at < Home(g.p) && d.poss[g.p.at] <= old(d.poss)[g.p.at]
      requires d.bad || (!old(d.bad) && d.cur[g.p.at] == old(d.cur)[g.p.at] && forall a :: Home(g.p) <= a < |d.cur| ==> d.cur[a] == old(d.cur)[a])
      requires home as int == Home(g.p)
      ensures InsI()
    { reveal InsI(); }
    twostate lemma CacheFrame()
      requires old(CacheI()) && g.im == old(g).im && g.base == old(g).base && ilist == old(ilist) && icn == old(icn) && cache.m == old(cache.m)
      ensures CacheI()
    { reveal CacheI(); }
    twostate lemma RdFrame()
      requires old(RdI()) && g.base == old(g).base && trims == old(trims) && rds == old(rds)
      requires forall a :: old(Pending(a)) ==> Pending(a)
      ensures RdI()
    { reveal RdI(); }
    // the beginning and the end of an installation
    lemma InsBegun()
      requires g.ip == 1 && ilist == null && icn == 0 && iwn == 0 && !hdur && GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p)
      ensures InsI()
    { reveal InsI(); }
    twostate lemma CacheBegun()
      requires old(CacheI()) && cache.m == old(cache.m) && old(g).im == map[] && g.base == old(g).base && icn == 0
      ensures CacheI()
    { reveal CacheI(); }
    lemma HdrFacts()
      requires InsI() && hdur
      ensures g.ip == 3 && GeoOk(g.p) && |d.poss| >= Home(g.p)
      ensures forall x :: x in d.poss[g.p.at] ==> DecHdr(g.p.key, x) == g.hq + g.k
    { reveal InsI(); }
    lemma InsIdle()
      requires g.ip == 0 && ilist == null && icn == 0 && iwn == 0 && !hdur && GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p)
      ensures InsI()
    { reveal InsI(); }
    twostate lemma CacheDone()
      requires old(CacheI()) && old(InsI()) && cache.m == old(cache.m) && |old(g).gs| == |old(g).ds| && 0 <= old(g).k <= |old(g).gs| && g == IFinished(old(g))
      requires old(ilist) != null && old(g).ip == 3 && old(icn) == |old(ilist).addrs|
      ensures CacheI()
    {
      reveal CacheI(); reveal InsI();
      forall a | a in cache.m ensures a in g.base && cache.m[a] == g.base[a] {
        if a in old(g).im {
          assert a in old(ilist).addrs;
          var i :| 0 <= i < |old(ilist).addrs| && old(ilist).addrs[i] == a;
        }
      }
    }
    twostate lemma RdNext()
      requires old(RdI()) && rds == old(rds) && trims as int == old(trims) as int + 1 && forall a :: a in old(g).base ==> a in g.base
      ensures RdI()
    { reveal RdI(); }
    // what a step must not change about the logger / the installer / the history
    twostate predicate LKeep() reads this, cgm {
      lph == old(lph) && lwn == old(lwn) && lwd == old(lwd) && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs) &&
      cbk == old(cbk) && clist == old(clist) && wp == old(wp) && eq == old(eq) && cl == old(cl)
    }
    twostate predicate IKeep() reads this, inm {
      g.ip == old(g.ip) && iwn == old(iwn) && icn == old(icn) && hdur == old(hdur) && inm == old(inm) && inm.m == old(inm.m) &&
      inm.addrs == old(inm.addrs) && hq == old(hq) && ieq == old(ieq) && ilist == old(ilist)
    }
    twostate predicate Mono() reads this {
      |old(vs)| <= |vs| && (forall i :: 0 <= i < |old(vs)| ==> vs[i] == old(vs)[i]) && old(lb) <= lb && old(trims) <= trims && old(rds) <= rds
    }
    function Cur(): St requires |vs| > 0 reads this { vs[|vs|-1] }
    predicate TxOk(tx: BMap) reads tx { tx.Ok() && InHome(home as int, tx.m, sz as int) }

    // after recovery: empty log, first sequence number q, state v
    constructor (d0: Disk, seal0: Seal, mu0: Mutex, cache0: Cache, n: uint64, at0: uint64, nd0: uint64, nr0: uint64, q: uint64, maxPin0: uint64, instAt0: uint64)
      requires var p := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key);
        GeoOk(p) && d0.Valid() && |d0.cur| == n as int && d0.ok == OkSet(p, [HomeOf(p, d0.cur)], 0, seal0.signed) &&
        Full(d0.poss, G0(p, seal0.signed, q as int, HomeOf(p, d0.cur)))
      requires cache0.m == map[] && maxPin0 < 0x1_0000_0000
      ensures Inv() && d == d0 && seal == seal0 && mu == mu0 && cache == cache0
      ensures sz == n && at == at0 && nd == nd0 && nr == nr0 && home as int == at0 as int + 1 + nd0 as int + nr0 as int
      ensures vs == [HomeOf(Geo(at0 as int, nd0 as int, nr0 as int, seal0.key), d0.cur)] && lb == 0 && lph == 0 && g.ip == 0 && rds == {}
      ensures fresh(running) && fresh(lgm) && fresh(cgm) && fresh(inm) && fresh(repr)
    {
      var nt := NewNotes();
      notes := nt;
      d := d0; seal := seal0; mu := mu0; cache := cache0; sz := n; at := at0; nd := nd0; nr := nr0;
      home := at0 + 1 + nd0 + nr0; maxPin := maxPin0; instAt := instAt0;
      var m1 := NewBMap(); var m2 := NewBMap(); var m3 := NewBMap(); var m4 := NewBMap();
      running := m1; lgm := m2; cgm := m3; inm := m4;
      cbk := null; clist := null; ilist := null; icnr := 0;
      hq := q; eq := q; ieq := q; lo := 0; ilo := 0; wp := 0; trims := 0; nvs := 0; ncl := 0; nlb := 0;
      busy := false;
      ghost var p := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key);
      ghost var v := HomeOf(p, d0.cur);
      g := G0(p, seal0.signed, q as int, v); vs := [v]; lb := 0; cl := 0; rds := {};
      lph := 0; lwn := 0; lwd := false; iwn := 0; icn := 0; icnr := 0; hdur := false;
      repr := {m1, m2, m3, m4};
      new;
      reveal Inv(); reveal LogI(); reveal InsI(); reveal CacheI(); reveal RdI();
      assert Merge([]) == map[]; assert g.gs[g.k..] == [];
      assert Over(v, map[]) == v;
    }

    // ---------------- commit ----------------
    // [L] merge a transaction into the running group; n is its index in the history
    method Append(tx: BMap) returns (st: uint32, n: uint64)
      requires Inv() && mu.held && TxOk(tx) && tx !in repr
      modifies this, running, d
      ensures Inv() && LKeep() && IKeep() && Mono() && running == old(running)
      ensures lb == old(lb) && d.cur == old(d.cur)
      ensures st != AOk ==> vs == old(vs)
      ensures st == AOk ==> vs == old(vs) + [Over(old(Cur()), tx.m)] && n as int == |vs| - 1
      ensures repr == old(repr)
    {
      reveal Inv();
      var k := running.Len();
      var l := tx.Len();
      var failed := notes.Get(NFailed);
      if failed != 0 || nvs >= 0x3FFF_FFFF_FFFF_0000 { return AFailed, 0; }
      if l > 500 { return ATooLarge, 0; }
      if k + l > 500 { return AFull, 0; }
      ComI();
      MergeInto(running, tx);
      OverOv(vs[cl], old(running.m), tx.m);
      vs := vs + [Over(old(Cur()), tx.m)];
      nvs := nvs + 1;
      CrashAll(d.poss, g, vs, lb, cl);
      d.SetOk(OkSet(g.p, vs, lb, g.sg));
      LogFrame(); InsFrame(); CacheFrame(); RdFrame();
      if k < 250 && k + l >= 250 && !busy { mu.WakeOne(CLogger); }
      return AOk, nvs;
    }
    // [L]
    method IsDurable(n: uint64) returns (b: bool)
      requires Inv() && mu.held
      ensures b ==> n as int <= lb
    { reveal Inv(); b := n <= nlb; }
    // [L] index of the last commit, and of the last durable one
    method Newest() returns (n: uint64)
      requires Inv() && mu.held
      ensures n as int == |vs| - 1
    { reveal Inv(); n := nvs; }
    method Durable() returns (n: uint64)
      requires Inv() && mu.held
      ensures n as int == lb
    { reveal Inv(); n := nlb; }

    // ---------------- policy: when things are done ----------------
    // [L] is there something to commit that should not wait?
    method WantCommit() returns (b: bool)
      requires Inv() && mu.held
    {
      var k := running.Len();
      var want := notes.Get(NWant);
      var stop := notes.Get(NStop);
      b := k > 0 && (want > ncl || k >= 250 || stop != 0);
    }
    // [L] commit n is wanted durable now
    method Want(n: uint64)
      requires mu.held
    {
      var want := notes.Get(NWant);
      if want < n { notes.Set(NWant, n); }
    }
    // [L] everything appended so far is wanted durable now
    method Nudge()
      requires mu.held
    {
      notes.Set(NWant, nvs);
      if !busy { mu.WakeOne(CLogger); }
    }
    // [L] somebody waits for room in the running group (after this: mu.Wait(CSpace))
    method AskSpace()
      requires mu.held
    { Nudge(); }
    // [L] the logged groups are wanted installed now
    method Urge()
      requires mu.held
    {
      notes.Set(NUrge, 1);
      mu.WakeOne(CInstaller);
    }
    // [L] the threads of the background should end
    method SetStop()
      requires mu.held
    {
      notes.Set(NStop, 1);
      mu.WakeAll(CLogger); mu.WakeAll(CInstaller);
    }
    // [L] should the thread go on?
    method Alive() returns (b: bool)
      requires mu.held
    {
      var stop := notes.Get(NStop);
      var failed := notes.Get(NFailed);
      b := stop == 0 && failed == 0;
    }
    // [L] did the device fail?
    method Failed() returns (b: bool)
      requires mu.held
    {
      var failed := notes.Get(NFailed);
      b := failed != 0;
    }
    // [L] the device failed: no commit is accepted any more
    method Fail()
      requires mu.held
    {
      notes.Set(NFailed, 1);
      mu.WakeAll(CLogger); mu.WakeAll(CInstaller); mu.WakeAll(2); mu.WakeAll(3); mu.WakeAll(CSpace);
    }
    // [L] the condition variable that tells of commit n
    method WaitOn(n: uint64) returns (c: uint32)
      requires mu.held
      ensures c < 5
    {
      var parity := notes.Get(NParity);
      if n <= ncl { parity := 1 - parity % 2; }
      else {
        var w := notes.Get(NWaiters);
        if w < 0x1_0000_0000 { notes.Set(NWaiters, w + 1); }
      }
      c := if parity % 2 == 0 then 2 else 3;
    }
    // [L] the running group becomes the committing one
    method NoteStart()
      requires mu.held
    {
      var parity := notes.Get(NParity);
      notes.Set(NParity, 1 - parity % 2);
      notes.Set(NWaiters, 0);
      mu.WakeAll(CSpace);
    }
    // [L] the committing group is durable
    method NoteFinish()
      requires Inv() && mu.held
    {
      var parity := notes.Get(NParity);
      var w := notes.Get(NWaiters);
      var groups := notes.Get(NGroups);
      if groups < 0xFFFF_FFFF_FFFF_FFFF { notes.Set(NGroups, groups + 1); }
      var even := parity % 2 == 0;
      if even { mu.WakeAll(3); } else { mu.WakeAll(2); }
      var k := lgm.Len();
      if k >= instAt { mu.WakeOne(CInstaller); }
      var more := WantCommit();
      if more {
        if w == 0 { mu.WakeOne(CLogger); }
        else if even { mu.WakeOne(2); }
        else { mu.WakeOne(3); }
      }
    }
    // [L] is everything home?
    method Drained() returns (b: bool)
      requires Inv() && mu.held
    {
      var r := running.Len(); var c := cgm.Len(); var l := lgm.Len(); var i := inm.Len();
      b := r == 0 && c == 0 && l == 0 && i == 0;
    }

    // ---------------- logger ----------------
    // [L] freeze the running group: the caller becomes the logger
    method StartCommit() returns (ok: bool)
      requires Inv() && mu.held
      modifies this
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures ok ==> lph == 1
      ensures !ok ==> LKeep() && repr == old(repr)
      ensures fresh(repr - old(repr))
    {
      reveal Inv();
      var w := WantCommit();
      var failed := notes.Get(NFailed);
      if busy || failed != 0 || !w { return false; }
      var k := running.Len();
      var pinned := lgm.Len();
      if eq >= 0x1FFF_FFFF_FFFF_0000 || wp >= 0x1FFF_FFFF_FFFF_0000 || eq - hq >= nd || wp + k > lo + nr || pinned + k > maxPin {
        Urge();
        return false;
      }
      var r := NewBMap();
      StartFields(r);
      NoteStart();
      return true;
    }
    method StartFields(r: BMap)
      requires Inv() && Unused(r) && r !in repr && r.Ok() && r.m == map[] && r.addrs == [] && lph == 0
      requires |g.gs| < g.p.nd && g.wp + |running.addrs| <= g.lo + g.p.nr && End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000
      requires |lgm.addrs| + |running.addrs| <= maxPin as int
      modifies this
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures lph == 1 && repr == old(repr) + {r}
    {
      reveal Inv(); reveal LogI();
      cgm := running;
      running := r; repr := repr + {r};
      lph := 1; busy := true;
      cl := |vs| - 1; ncl := nvs;
      assert Over(vs[cl], map[]) == vs[cl];
      assert Over(vs[lb], map[]) == vs[lb];
      InsFrame(); CacheFrame(); RdFrame();
    }
    predicate Unused(r: BMap) reads this { r != running && r != lgm && r != cgm && r != inm }
    // [F] seal the group (no operation of the device)
    method LogEnc()
      requires Inv() && lph == 1
      modifies this, seal, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures lph == 2 && lwn == 0 && !lwd && cgm == old(cgm) && cgm.addrs == old(cgm.addrs) && cl == old(cl)
      ensures repr == old(repr)
    {
      reveal Inv();
      LogFacts();
      SealedBelow(d.poss, g);
      var b := seal.Sign(eq, wp, cgm);
      var l := cgm.List();
      ghost var dd := DecDesc(b.v).d;
      StartPres(d.poss, g, cgm.m, dd, b.v);
      g := Started(g, cgm.m, dd, b.v, Rec(b.v, BlksOf(cgm.m, cgm.addrs)));
      assert DurState(g) == DurState(old(g)) && ComState(g) == Over(DurState(g), cgm.m);
      CrashAll(d.poss, g, vs, lb, cl);
      d.SetOk(OkSet(g.p, vs, lb, g.sg));
      cbk := b;
      clist := l;
      lwn := 0; lwd := false;
      lph := 2;
      LogEncI();
      InsFrame(); CacheFrame(); RdFrame();
    }
    // [F] write blocks of the group to the log, from the i-th to the last or to the end of the ring
    method LogWrite(i: uint64) returns (ok: bool, n: uint64)
      requires Inv() && lph == 2 && i as int == lwn < |cgm.addrs|
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == 2 && cgm == old(cgm) && cgm.addrs == old(cgm.addrs) && lwd == old(lwd)
      ensures ok ==> 0 < n && i as int + n as int == lwn <= |cgm.addrs|
      ensures repr == old(repr)
    {
      reveal Inv();
      LogFacts(); ComI();
      var len := clist.Len();
      var p := wp + i;
      var s := SlotOf(p, nr);
      n := len - i;
      if n > nr - s { n := nr - s; }
      ghost var P := d.poss;
      ghost var a := LSlot(g.p, p as int);
      LogWritePres(P, g, i as int, n as int);
      CrashAll(Fuzzy(P, a, n as int), g, vs, lb, cl);
      ok := d.WriteRun(at + 1 + nd + s, clist, i, n);
      if ok { lwn := lwn + n as int; }
      LogWroteI(i as int, n as int, ok);
      InsFrame(); CacheFrame(); RdFrame();
    }
    // [F]
    method LogWriteDesc() returns (ok: bool)
      requires Inv() && lph == 2
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == 2 && lwn == old(lwn) && cgm == old(cgm) && cgm.addrs == old(cgm.addrs)
      ensures ok ==> lwd
      ensures repr == old(repr)
    {
      reveal Inv(); reveal LogI();
      DescWritePres(d.poss, g);
      CrashAll(Fuzzy(d.poss, DSlot(g.p, End(g)), 1), g, vs, lb, cl);
      var s := SlotOf(eq, nd);
      ok := d.Write(at + 1 + s, cbk);
      if ok { lwd := true; }
      InsFrame(); CacheFrame(); RdFrame();
    }
    // [F] the one barrier of a group commit
    method LogBarrier() returns (ok: bool)
      requires Inv() && lph == 2 && lwd && lwn == |cgm.addrs|
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == (if ok then 3 else 2) && cgm == old(cgm) && cgm.addrs == old(cgm.addrs)
      ensures repr == old(repr)
    {
      reveal Inv(); reveal LogI();
      ghost var P := d.poss;
      ok := d.Barrier(set a | at as int < a < home as int);
      BarrierPres(d.poss, P, g);
      if ok {
        ComFacts(d.poss, g);
        forall i | 0 <= i < |g.cd.addrs| ensures d.poss[LSlot(g.p, g.cd.pos + i)] <= iset{g.cg[g.cd.addrs[i]]} {
          assert d.poss[LSlot(g.p, g.cd.pos + i)] == iset{d.cur[LSlot(g.p, g.cd.pos + i)]};
        }
        assert d.poss[DSlot(g.p, End(g))] == iset{d.cur[DSlot(g.p, End(g))]};
        lph := 3;
      }
      InsFrame(); CacheFrame(); RdFrame();
    }
    // [L] the group is durable
    method FinishCommit()
      requires Inv() && mu.held && lph == 3
      modifies this, lgm, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(cl) && lph == 0
      ensures d.cur == old(d.cur)
      ensures fresh(repr - old(repr))
    {
      reveal Inv(); reveal LogI();
      var n := cgm.Len();
      var e := NewBMap();
      ghost var g1 := Finished(g);
      FinishPres(d.poss, g);
      ComFacts(d.poss, g);
      TailMerge(g);
      CrashAll(d.poss, g1, vs, cl, cl);
      d.SetOk(OkSet(g.p, vs, cl, g.sg));
      lgm := MergeOrSwap(lgm, cgm);
      FinishFields(e, n, g1);
      assert Over(vs[cl], map[]) == vs[cl];
      assert g.gs[..g.k] == old(g).gs[..g.k];
      assert Abs();
      InsFrame(); CacheFrame(); RdFrame();
      assert LogI();
      NoteFinish();
    }
    method FinishFields(e: BMap, n: uint64, ghost g1: G)
      requires eq < 0x2000_0000_0000_0000 && wp < 0x2000_0000_0000_0000 && n <= 500
      modifies this
      ensures cgm == e && repr == old(repr) + {e} && g == g1 && lb == cl && nlb == ncl && eq == old(eq) + 1 && wp == old(wp) + n && lph == 0 && !busy
      ensures running == old(running) && lgm == old(lgm) && inm == old(inm) && hq == old(hq) && ieq == old(ieq) &&
              lo == old(lo) && ilo == old(ilo) && trims == old(trims) && nvs == old(nvs) && ncl == old(ncl) && vs == old(vs) &&
              cl == old(cl) && rds == old(rds) && iwn == old(iwn) && icn == old(icn) && icnr == old(icnr) && hdur == old(hdur) && ilist == old(ilist)
    {
      cgm := e; repr := repr + {e};
      cbk := null; clist := null;
      g := g1;
      lb := cl; nlb := ncl;
      eq := eq + 1; wp := wp + n;
      lph := 0; busy := false;
    }

    // ---------------- installer ----------------
    // [L] freeze the logged groups for installation
    method StartInstall() returns (ok: bool)
      requires Inv() && mu.held && g.ip == 0
      modifies this
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == (if ok then 1 else 0) && (ok ==> ilist == null && iwn == 0 && icn == 0 && !hdur)
      ensures fresh(repr - old(repr))
    {
      reveal Inv();
      var k := lgm.Len();
      var urge := notes.Get(NUrge);
      var failed := notes.Get(NFailed);
      if k == 0 || failed != 0 || (urge == 0 && k < instAt && eq - hq < nd / 2 && wp - lo < nr / 2) { return false; }
      notes.Set(NUrge, 0);
      var r := NewBMap();
      IStartPres(d.poss, g);
      ghost var g1 := IStarted(g);
      assert g.gs[g.k..] == g.gs;
      assert g1.gs[g1.k..] == [];
      assert g.gs[..0] == [];
      inm := lgm;
      lgm := r; repr := repr + {r};
      ilo := wp; ieq := eq; ilist := null;
      iwn := 0; icn := 0; icnr := 0; hdur := false;
      g := g1;
      LogFrame(); RdFrame(); InsBegun(); CacheBegun();
      return true;
    }
    // [F] sort the frozen map by address
    method InstSort() returns (l: BList)
      requires Inv() && g.ip == 1 && ilist == null
      modifies this
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 1 && ilist == l && iwn == 0 && icn == 0 && |l.blks| == |l.addrs|
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI(); reveal CacheI();
      l := inm.Sorted();
      SortedLen(l.addrs, sz as int);
      ilist := l;
      LogFrame(); RdFrame();
    }
    // [F] write blocks of the frozen map home, from the i-th on as long as their addresses are adjacent
    method InstWrite(i: uint64) returns (ok: bool, n: uint64)
      requires Inv() && g.ip == 1 && ilist != null && i as int == iwn < |ilist.addrs|
      modifies this, d
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 1 && ilist == old(ilist) && icn == old(icn)
      ensures ok ==> 0 < n && i as int + n as int == iwn <= |ilist.addrs|
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI();
      var a;
      a, n := Adjacent(ilist, i);
      assert Lists(ilist, g.im, home as int, |d.cur|);
      ghost var last := i as int + n as int - 1;
      assert ilist.addrs[last] == a as int + (n as int - 1) < |d.cur|;
      assert home as int <= ilist.addrs[i as int];
      forall x | a as int <= x < a as int + n as int ensures x in g.im {
        assert ilist.addrs[i as int + (x - a as int)] == x;
      }
      InstWritePres(d.poss, g, a as int, n as int);
      ghost var P := d.poss;
      ComI();
      CrashAll(Fuzzy(P, a as int, n as int), g, vs, lb, cl);
      ok := d.WriteRun(a, ilist, i, n);
      if ok {
        forall x | 0 <= x < iwn + n as int ensures d.cur[ilist.addrs[x]] == ilist.blks[x] {
          if x >= iwn { assert ilist.addrs[x] == a as int + (x - iwn); }
          else { assert ilist.addrs[x] < ilist.addrs[i as int]; }
        }
        iwn := iwn + n as int;
      }
      LogFrame(); CacheFrame(); RdFrame();
    }
    // [F]
    method InstBarrier() returns (ok: bool)
      requires Inv() && g.ip == 1 && ilist != null && iwn == |ilist.addrs|
      modifies this, d
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == (if ok then 2 else 1) && ilist == old(ilist) && icn == old(icn)
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI();
      ghost var P := d.poss;
      ok := d.Barrier(set a | home as int <= a < |d.cur|);
      BarrierPres(d.poss, P, g);
      if ok {
        forall a | a in g.im && home as int <= a < |d.poss| ensures d.poss[a] <= iset{g.im[a]} {
          assert a in ilist.addrs;
          var i :| 0 <= i < |ilist.addrs| && ilist.addrs[i] == a;
          assert d.cur[a] == ilist.blks[i];
        }
        InstBarrierPres(d.poss, g);
        g := g.(ip := 2);
      }
      LogFrame(); CacheFrame(); RdFrame();
    }
    // [F] the header: from here on recovery starts after the installed groups
    method HdrWrite() returns (ok: bool)
      requires Inv() && g.ip == 2
      modifies this, d
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 3 && ilist == old(ilist) && icn == old(icn)
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI();
      var b := seal.EncHdr(ieq);
      HdrWritePres(d.poss, g, b.v);
      ghost var g1 := g.(ip := 3);
      assert DurState(g1) == DurState(g) && ComState(g1) == ComState(g);
      ComI();
      CrashAll(AddHdr(d.poss, g, b.v), g1, vs, lb, cl);
      ok := d.WriteSector(at, b);
      g := g1;
      LogFrame(); CacheFrame(); RdFrame();
    }
    // [F]
    method HdrBarrier() returns (ok: bool)
      requires Inv() && g.ip == 3
      modifies this, d
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 3 && ilist == old(ilist) && icn == old(icn)
      ensures ok ==> hdur
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI();
      ghost var P := d.poss;
      ok := d.Barrier({at as int});
      BarrierPres(d.poss, P, g);
      if ok { hdur := true; }
      LogFrame(); CacheFrame(); RdFrame();
    }
    // [L] put one of the installed blocks into the cache
    method CacheInst()
      requires Inv() && mu.held && g.ip == 3 && ilist != null && icn < |ilist.addrs|
      requires 0 <= icn
      modifies this, cache
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 3 && ilist == old(ilist) && icn == old(icn) + 1 && hdur == old(hdur)
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI(); reveal CacheI();
      var i := icnr;
      var a := ilist.AddrAt(i);
      var b := ilist.BlkAt(i);
      cache.Put(a, b);
      icn := icn + 1; icnr := icnr + 1;
      LogFrame(); RdFrame();
    }
    // [L] the log space is free
    method FinishInstall()
      requires Inv() && mu.held && g.ip == 3 && hdur && ilist != null && icn == |ilist.addrs| && trims < 0x3FFF_FFFF_FFFF_0000
      modifies this
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb) && g.ip == 0
      ensures fresh(repr - old(repr))
    {
      reveal Inv();
      HdrFacts();
      var e := NewBMap();
      ghost var g1 := IFinished(g);
      IFinishPres(d.poss, g);
      assert g1.gs[g1.k..] == g.gs[g.k..];
      inm := e; repr := repr + {e};
      hq := ieq; lo := ilo; ilist := null; iwn := 0; icn := 0; icnr := 0;
      trims := trims + 1;
      hdur := false;
      g := g1;
      LogFrame(); InsIdle(); CacheDone(); RdNext();
      mu.WakeAll(CSpace);
      mu.WakeOne(CLogger);
    }

    // ---------------- readers ----------------
    lemma InCur(a: uint64)
      requires Inv() && home <= a < sz
      ensures a as int in Cur()
    { reveal Inv(); }
    // [L] the block if it is in memory, else a ticket for a disk read
    method Lookup(a: uint64) returns (b: Blk?, t: uint64)
      requires Inv() && mu.held && home <= a < sz
      ensures a as int in Cur()
      ensures b != null ==> b.v == Cur()[a as int] && |b.v| == 4096
      ensures b == null ==> a as int in g.base && !Pending(a as int) && g.base[a as int] == Cur()[a as int]
      ensures t == trims
    {
      reveal Inv(); reveal CacheI();
      t := trims;
      assert g.gs == g.gs[..g.k] + g.gs[g.k..];
      MergeCat(g.gs[..g.k], g.gs[g.k..]);
      b := running.Get(a);
      if b == null { b := cgm.Get(a); }
      if b == null { b := lgm.Get(a); }
      if b == null { b := inm.Get(a); }
      if b == null { b := cache.Get(a); }
    }
    // [F] read the home block
    method ReadDisk(a: uint64, t: uint64) returns (ok: bool, b: Blk)
      requires Inv() && home <= a < sz && t <= trims
      modifies this
      ensures Inv() && LKeep() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures ok ==> |b.v| == 4096 && exists r :: r in rds && r.a == a as int && r.v == b.v && r.t >= t as int
      ensures repr == old(repr)
    {
      reveal Inv(); reveal RdI();
      ok, b := d.Read(a);
      if !ok { return; }
      FullD(d.poss, g);
      assert HomePoss(d.poss[a as int], g, a as int);
      ghost var r := Rd(a as int, trims as int, b.v);
      rds := rds + {r};
      assert r in rds;
      LogFrame(); InsFrame(); CacheFrame();
    }
    // [L] validate the block read; null = retry
    method Lookup2(a: uint64, t: uint64, c: Blk) returns (b: Blk?)
      requires Inv() && mu.held && home <= a < sz && |c.v| == 4096
      requires exists r :: r in rds && r.a == a as int && r.v == c.v && r.t >= t as int
      modifies cache
      ensures Inv() && LKeep() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && repr == old(repr)
      ensures b != null ==> a as int in Cur() && b.v == Cur()[a as int] && |b.v| == 4096
    {
      var t2;
      b, t2 := Lookup(a);
      reveal Inv(); reveal RdI(); reveal CacheI();
      if b == null && t == t2 { b := c; cache.Put(a, c); }
    }
  }
  lemma SealedBelow(poss: Poss, g: G)
    requires Full(poss, g) && !g.com
    ensures forall r :: r in g.sg ==> DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < End(g)
  {
    FullD(poss, g);
    forall r | r in g.sg ensures DecDesc(r.b).SomeDesc? && DecDesc(r.b).d.sq < End(g) { assert Below(r, End(g)); }
  }
  lemma LogWritten(g: G, cur: Img, blks: seq<BV>, i: int, n: int)
    requires GeoOk(g.p) && |cur| >= Home(g.p) && 0 <= i && 0 <= n && i + n <= |blks| <= 500 && Slot(g.wp + i, g.p.nr) + n <= g.p.nr
    requires forall x :: LSlot(g.p, g.wp + i) <= x < LSlot(g.p, g.wp + i) + n ==> cur[x] == blks[i + (x - LSlot(g.p, g.wp + i))]
    ensures forall x :: i <= x < i + n ==> cur[LSlot(g.p, g.wp + x)] == blks[x]
    ensures forall x :: 0 <= x < i ==> !(LSlot(g.p, g.wp + i) <= LSlot(g.p, g.wp + x) < LSlot(g.p, g.wp + i) + n)
  {
    forall x | i <= x < i + n ensures cur[LSlot(g.p, g.wp + x)] == blks[x] {
      SlotRun(g.wp + i, x - i, g.p.nr);
      assert g.wp + i + (x - i) == g.wp + x;
    }
    forall x | 0 <= x < i ensures !(LSlot(g.p, g.wp + i) <= LSlot(g.p, g.wp + x) < LSlot(g.p, g.wp + i) + n) {
      NotInRun(g.p, g.wp + x, g.wp + i, n);
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
