// The journal: one method is one atomic step. [L] runs under the mutex. [F] runs without
// it: it touches only fields that the calling role (logger, installer) owns, and does one
// operation of the device.
//
// A transaction is merged into the `running` group (Append). A group goes the way running ->
// committing (being written to the log) -> logged -> installing (being written home) ->
// clean. At most one is committing and at most one merged one is installing. A group that is
// committing or installing is frozen. The direct blocks of a group (model.dfy) are written home
// when it is committed; from then on only their addresses are held, until the header passes
// the group: blocks with these addresses cannot be committed before that.
//
// Roles. Whoever gets true from StartCommit is the logger until FinishCommit: a thread that
// waits for its commit, or the logger thread of the background. The installer is one thread.
include "groups.dfy"

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
  import opened Groups
  import opened Bits

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
  const NInstalls: uint32 := 7     // installations so far

  const HoldMax: uint64 := 16384   // so many direct blocks are read by a recovery, plus a group (policy)

  datatype Rd = Rd(a: int, t: int, v: BV)

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
    const bit: uint64      // the allocation bits: Geo
    const flo: uint64
    const fhi: uint64
    const home: uint64     // first home block
    const maxPin: uint64   // bound on the blocks logged but not installed
    const instAt: uint64   // install from so many on

    var running: BMap      // commits not yet being logged
    var cgm: BMap          // group being logged (frozen; replaced only by the logger, under the mutex)
    var cdm: BMap          // its direct blocks (likewise)
    var cbk: Blk?          // its descriptor block (logger's)
    var clist: BList?      // its blocks for the log (logger's)
    var dlist: BList?      // its direct blocks by address (logger's)
    var lgm: BMap          // logged groups not being installed, merged
    var inm: BMap          // being installed (frozen; replaced only by the installer, under the mutex)
    var ilist: BList?      // its blocks by address (installer's)
    var lho: BMap          // direct blocks of logged groups not being installed, and
    var iho: BMap          // of those being installed: their addresses
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
    ghost var ldn: int     // direct ones
    ghost var lwd: bool    // and the descriptor
    ghost var iwn: int     // installed blocks written so far
    ghost var icn: int     // ... and put into the cache: icnr
    ghost var hph: int     // header: 1 written 2 durable, 3 its copy written 4 and durable
    ghost var repr: set<BMap>    // every map this journal ever used

    predicate Shape() reads this, running, lgm, cgm, cdm, inm, lho, iho {
      running != lgm && running != cgm && running != cdm && running != inm && running != lho && running != iho &&
      lgm != cgm && lgm != cdm && lgm != inm && lgm != lho && lgm != iho && lho != cgm && lho != cdm && lho != inm && lho != iho &&
      cgm != cdm && cgm != inm && cgm != iho &&
      running in repr && lgm in repr && cgm in repr && cdm in repr && inm in repr && lho in repr && iho in repr &&
      running.Ok() && lgm.Ok() && cgm.Ok() && cdm.Ok() && inm.Ok() && lho.Ok() && iho.Ok() && InHome(home as int, cdm.m, sz as int) &&
      InHome(home as int, running.m, sz as int) && InHome(home as int, lgm.m, sz as int) &&
      InHome(home as int, cgm.m, sz as int) && InHome(home as int, inm.m, sz as int) &&
      (ilist != null ==> |ilist.addrs| == |ilist.blks| < 0x8_0000_0000_0000) &&
      |running.addrs| <= 500 && |cgm.addrs| + |cdm.addrs| <= 500 && |lgm.addrs| + |cgm.addrs| <= maxPin as int < 0x1_0000_0000
    }
    predicate GeoI() reads this, seal {
      g.p == Geo(at as int, nd as int, nr as int, seal.key, seal.ep, bit as int, flo as int, fhi as int) && GeoOk(g.p) && home as int == Home(g.p) <= sz as int
    }
    predicate DiskI() reads this, d, seal {
      GeoI() && d.Valid() && Full(d.poss, g) && |d.cur| == sz as int && 0 <= lb && g.sg == seal.signed &&
      d.ok == OkSet(g.p, vs, lb, g.sg) && forall a :: !Owns(d.owner, Recovering, a)
    }
    predicate Reals() reads this {
      |g.gs| == |g.ds| == |g.hs| && 0 <= g.k <= |g.gs| &&
      hq as int == g.hq && eq as int == End(g) && (g.ip > 0 ==> ieq as int == g.hq + g.k) &&
      lo as int == g.lo && ilo as int == g.ilo && wp as int == g.wp &&
      nvs as int == |vs| - 1 && ncl as int == cl && nlb as int == lb && nvs < 0x4000_0000_0000_0000 &&
      trims < 0x4000_0000_0000_0000 && (busy <==> lph != 0) && icnr as int == icn
    }
    predicate Abs() reads this, running, lgm, cgm, cdm, inm {
      0 <= lb <= cl < |vs| && 0 <= g.k <= |g.gs| &&
      vs[lb] == DurState(g) && vs[cl] == Over(Over(vs[lb], cdm.m), cgm.m) && vs[|vs|-1] == Over(vs[cl], running.m) &&
      lgm.m == Merge(g.gs[g.k..]) && inm.m == g.im
    }
    predicate {:opaque} LogI() reads this, d, cgm, cdm {
      GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p) &&
      (forall a :: Owns(d.owner, Logging, a) <==> lph >= 1 && (g.p.at < a < Copy(g.p) || a in cdm.m)) &&
      0 <= lph <= 3 && (g.com <==> lph >= 2) && (lph == 0 ==> cgm.m == map[] && cgm.addrs == [] && cdm.m == map[] && cdm.addrs == []) &&
      (lph == 1 ==> Ready(g, cgm.m, cdm.m)) &&
      (lph >= 1 ==> |g.gs| < g.p.nd && g.wp + |cgm.addrs| <= g.lo + g.p.nr &&
                    End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000) &&
      (lph >= 2 ==> g.cg == cgm.m && g.ch == cdm.m && g.cd.addrs == cgm.addrs && g.cd.dirs == cdm.addrs && g.cd.pos == g.wp &&
                    dlist != null && Lists(dlist, cdm.m, Home(g.p), |d.cur|) && 0 <= ldn <= |dlist.addrs| &&
                    cbk != null && cbk.v == g.cb && |g.cb| == 4096 && clist != null && 0 <= lwn <= |cgm.addrs| == |clist.blks| &&
                    (forall i :: 0 <= i < |cgm.addrs| ==> cgm.addrs[i] in cgm.m && clist.blks[i] == cgm.m[cgm.addrs[i]] && |clist.blks[i]| == 4096)) &&
      (lph == 2 && !d.bad ==> (forall i :: 0 <= i < lwn ==> d.cur[At(g.p, g.cd, i)] == clist.blks[i]) &&
                    (forall i :: 0 <= i < ldn ==> d.cur[dlist.addrs[i]] == dlist.blks[i]) &&
                    (lwd ==> d.cur[DSlot(g.p, End(g))] == g.cb)) &&
      (lph == 3 ==> Logged(d.poss, g, g.cg, g.ch, g.cd, End(g)) && DirHome(d.poss, g))
    }
    predicate {:opaque} InsI() reads this, d, inm {
      GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p) &&
      (forall a :: Owns(d.owner, Installing, a) <==> g.ip > 0 && (a == g.p.at || a == Copy(g.p) || a in g.im)) &&
      (ilist != null && g.ip > 0 ==> Lists(ilist, g.im, home as int, |d.cur|) && 0 <= iwn <= |ilist.addrs| && 0 <= icn <= |ilist.addrs|) &&
      (ilist == null ==> icn == 0 && iwn == 0) && (g.ip >= 2 ==> ilist != null) &&
      (g.ip == 1 && !d.bad ==> forall i :: 0 <= i < iwn ==> ilist != null && i < |ilist.addrs| && 0 <= ilist.addrs[i] < |d.cur| &&
                       d.cur[ilist.addrs[i]] == ilist.blks[i]) &&
      0 <= hph <= 4 && (hph > 0 ==> g.ip == 3) &&
      (hph >= 1 && !d.bad ==> DecHdr(g.p.key, d.cur[g.p.at]) == Hdr(g.hq + g.k, g.p.ep)) && (hph >= 2 ==> HdrAll(d.poss[g.p.at], g)) &&
      (hph >= 3 && !d.bad ==> DecHdr(g.p.key, d.cur[Copy(g.p)]) == Hdr(g.hq + g.k, g.p.ep)) && (hph >= 4 ==> HdrAll(d.poss[Copy(g.p)], g))
    }
    // What the cache holds of a block is its home contents. Of blocks being installed it
    // may hold the old contents until they are put there (icn counts); of direct blocks it
    // holds what they will be.
    predicate {:opaque} CacheI() reads this, cache, cdm {
      forall a :: a in cache.m ==> a in g.base &&
        if a in cdm.m then cache.m[a] == cdm.m[a]
        else if a in g.im then forall i :: ilist != null && 0 <= i < icn && i < |ilist.addrs| && ilist.addrs[i] == a ==> cache.m[a] == g.im[a]
        else cache.m[a] == g.base[a]
    }
    predicate Pending(a: int) reads this, running, lgm, cgm, cdm, inm {
      a in running.m || a in cgm.m || a in cdm.m || a in lgm.m || a in inm.m
    }
    // the direct blocks of all records from the header's number on are held
    predicate {:opaque} HoldI() reads this, cdm, lho, iho {
      (forall a :: Direct(g.sg, g.hq, a) ==> a in lho.m || a in iho.m || a in cdm.m) &&
      (forall a :: Direct(g.sg, g.hq + g.k, a) ==> a in lho.m || a in cdm.m)
    }
    predicate {:opaque} RdI() reads this, running, lgm, cgm, cdm, inm {
      forall r :: r in rds ==> r.t <= trims as int && r.a in g.base &&
                              (r.t == trims as int ==> r.v == g.base[r.a] || Pending(r.a))
    }
    predicate {:opaque} Inv() reads this, d, seal, cache, running, lgm, cgm, cdm, inm, lho, iho
      ensures Inv() ==> running.Ok() && cgm.Ok() && cdm.Ok() && inm.Ok() && lgm.Ok() && lho.Ok() && iho.Ok() && |vs| > 0
      ensures Inv() ==> running in repr && lgm in repr && cgm in repr && cdm in repr && inm in repr && lho in repr && iho in repr
      ensures Inv() ==> (g.ip > 0 && ilist != null ==> |ilist.addrs| < 0x8_0000_0000_0000)
    {
      Shape() && DiskI() && Reals() && Abs() && LogI() && InsI() && CacheI() && HoldI() && RdI()
    }
    // what LogI says, without the disk
    lemma LogFacts()
      requires LogI()
      ensures 0 <= lph <= 3 && (g.com <==> lph >= 2) && (lph == 0 ==> cgm.m == map[] && cgm.addrs == [] && cdm.m == map[] && cdm.addrs == [])
      ensures lph == 1 ==> Ready(g, cgm.m, cdm.m)
      ensures lph >= 2 ==> g.ch == cdm.m && g.cd.dirs == cdm.addrs && dlist != null && |d.cur| >= Home(g.p) && Lists(dlist, cdm.m, Home(g.p), |d.cur|) && 0 <= ldn <= |dlist.addrs|
      ensures lph >= 1 ==> |g.gs| < g.p.nd && g.wp + |cgm.addrs| <= g.lo + g.p.nr && End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000
      ensures lph >= 2 ==> g.cg == cgm.m && g.cd.addrs == cgm.addrs && g.cd.pos == g.wp && cbk != null && cbk.v == g.cb && |g.cb| == 4096 &&
                           clist != null && 0 <= lwn <= |cgm.addrs| == |clist.blks|
      ensures lph >= 2 ==> forall i :: 0 <= i < |clist.blks| ==> |clist.blks[i]| == 4096
      ensures lph >= 1 ==> forall a :: g.p.at < a < Copy(g.p) || a in cdm.m ==> Owns(d.owner, Logging, a)
    { reveal LogI(); }
    // the blocks that have an owner
    lemma Owned()
      requires DiskI() && LogI() && InsI()
      ensures forall a :: a in d.owner <==> (lph >= 1 && (g.p.at < a < Copy(g.p) || a in cdm.m)) || (g.ip > 0 && (a == g.p.at || a == Copy(g.p) || a in g.im))
      ensures forall a :: Owns(d.owner, Installing, a) <==> g.ip > 0 && (a == g.p.at || a == Copy(g.p) || a in g.im)
    {
      reveal LogI(); reveal InsI();
      forall a | a in d.owner ensures Owns(d.owner, Logging, a) || Owns(d.owner, Installing, a) { assert !Owns(d.owner, Recovering, a); }
      forall a ensures Owns(d.owner, Logging, a) ==> a in d.owner {}
      forall a ensures Owns(d.owner, Installing, a) ==> a in d.owner {}
    }
    // nobody but the logger writes the direct blocks of the committing group
    lemma DirApart()
      requires LogI() && Full(d.poss, g)
      ensures forall a :: a in cdm.m ==> a !in cgm.m && a !in g.im && a !in Merge(g.gs)
    {
      reveal LogI(); FullD(d.poss, g);
      forall a | a in cdm.m ensures a !in cgm.m && a !in g.im && a !in Merge(g.gs) {
        if lph == 1 {
          if a in Merge(g.gs) { MergeKeys(g.gs, a); }
          if a in g.im { MergeKeys(g.gs[..g.k], a); }
        } else if lph >= 2 { ComHome(g, |d.poss|, a); }
      }
    }
    lemma ComI()
      requires LogI() && Abs()
      ensures g.com ==> vs[cl] == ComState(g)
    { reveal LogI(); }
    // the logger's own steps
    twostate lemma LogEncI()
      requires d.owner == old(d.owner)
      requires old(LogI()) && old(lph) == 1 && lph == 2 && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs)
      requires cdm == old(cdm) && cdm.m == old(cdm.m) && cdm.addrs == old(cdm.addrs) && dlist != null && ldn == 0
      requires cbk != null && clist != null && lwn == 0 && !lwd && |cbk.v| == 4096 && cgm.Ok() && cdm.Ok() && clist.blks == BlksOf(cgm.m, cgm.addrs)
      requires DecDesc(cbk.v).SomeDesc? && var dd := DecDesc(cbk.v).d; dd.addrs == cgm.addrs && dd.dirs == cdm.addrs && dd.pos == g.wp &&
               g == Started(old(g), cgm.m, cdm.m, dd, cbk.v, Rec(cbk.v, GroupBlks(cgm.m, cdm.m, dd)))
      requires |d.cur| == |d.poss| == |old(d.cur)| && GeoOk(g.p) && End(g) == End(old(g)) && Lists(dlist, cdm.m, Home(g.p), |d.cur|)
      ensures LogI()
    { reveal LogI(); }
    twostate lemma LogWroteI(i: int, n: int, ok: bool)
      requires d.owner == old(d.owner)
      requires old(LogI()) && old(lph) == 2 && lph == 2 && g == old(g) && lwd == old(lwd) && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs)
      requires cdm == old(cdm) && cdm.m == old(cdm.m) && cdm.addrs == old(cdm.addrs) && dlist == old(dlist) && ldn == old(ldn)
      requires cbk == old(cbk) && clist == old(clist) && 0 <= i && 0 <= n && i + n <= |cgm.addrs| <= 500 && i == old(lwn) && clist != null && |clist.blks| == |cgm.addrs|
      requires lwn == if ok then i + n else i
      requires |d.cur| == |d.poss| == |old(d.cur)| && GeoOk(g.p) && |d.cur| >= Home(g.p) && Side(g.p, g.cd, i, n) && |cgm.addrs| > 15
      requires ok || d.bad
      requires ok ==> d.bad == old(d.bad)
      requires ok ==> forall x :: At(g.p, g.cd, i) <= x < At(g.p, g.cd, i) + n ==> 0 <= x < |d.cur| ==> d.cur[x] == clist.blks[i + (x - At(g.p, g.cd, i))]
      requires ok ==> forall x :: 0 <= x < |d.cur| && !(At(g.p, g.cd, i) <= x < At(g.p, g.cd, i) + n) ==> d.cur[x] == old(d.cur)[x]
      ensures LogI()
    {
      reveal LogI();
      if ok {
        LogWritten(g.p, g.cd, d.cur, clist.blks, i, n);
      }
    }
    twostate lemma UnitWroteI(blks: seq<BV>, ok: bool)
      requires d.owner == old(d.owner)
      requires old(LogI()) && old(lph) == 2 && lph == 2 && g == old(g) && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs)
      requires cdm == old(cdm) && cdm.m == old(cdm.m) && cdm.addrs == old(cdm.addrs) && dlist == old(dlist) && ldn == old(ldn)
      requires cbk == old(cbk) && clist == old(clist) && clist != null && cbk != null && |clist.blks| == |cgm.addrs| <= 15
      requires if ok then lwn == |cgm.addrs| && lwd else lwn == old(lwn) && lwd == old(lwd)
      requires |d.cur| == |d.poss| == |old(d.cur)| && GeoOk(g.p) && |d.cur| >= Home(g.p) && g.cd.sq == End(g) && blks == [cbk.v] + clist.blks
      requires ok || d.bad
      requires ok ==> d.bad == old(d.bad)
      requires ok ==> forall x :: DSlot(g.p, End(g)) <= x < DSlot(g.p, End(g)) + |blks| ==> d.cur[x] == blks[x - DSlot(g.p, End(g))]
      requires ok ==> forall x :: 0 <= x < |d.cur| && !(DSlot(g.p, End(g)) <= x < DSlot(g.p, End(g)) + |blks|) ==> d.cur[x] == old(d.cur)[x]
      ensures LogI()
    {
      reveal LogI();
      if ok {
        forall i | 0 <= i < lwn ensures d.cur[At(g.p, g.cd, i)] == clist.blks[i] { assert d.cur[At(g.p, g.cd, i)] == blks[1 + i]; }
      }
    }
    twostate lemma DirWroteI(a: int, n: int, ok: bool)
      requires d.owner == old(d.owner)
      requires old(LogI()) && old(lph) == 2 && lph == 2 && g == old(g) && lwd == old(lwd) && lwn == old(lwn) && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs)
      requires cdm == old(cdm) && cdm.m == old(cdm.m) && cdm.addrs == old(cdm.addrs) && dlist == old(dlist) && dlist != null
      requires cbk == old(cbk) && clist == old(clist) && 0 <= old(ldn) && 0 < n && old(ldn) + n <= |dlist.addrs| == |dlist.blks|
      requires ldn == if ok then old(ldn) + n else old(ldn)
      requires |d.cur| == |d.poss| == |old(d.cur)| && GeoOk(g.p) && Home(g.p) <= a && a + n <= |d.cur|
      requires forall y :: old(ldn) <= y < old(ldn) + n ==> dlist.addrs[y] == a + (y - old(ldn))
      requires ok || d.bad
      requires ok ==> d.bad == old(d.bad)
      requires ok ==> forall x :: a <= x < a + n ==> d.cur[x] == dlist.blks[old(ldn) + (x - a)]
      requires ok ==> forall x :: 0 <= x < |d.cur| && !(a <= x < a + n) ==> d.cur[x] == old(d.cur)[x]
      ensures LogI()
    {
      reveal LogI();
      if ok && !d.bad {
        forall i | 0 <= i < ldn ensures d.cur[dlist.addrs[i]] == dlist.blks[i] {
          if i >= old(ldn) { assert dlist.addrs[i] == a + (i - old(ldn)); }
          else { assert dlist.addrs[i] < dlist.addrs[old(ldn)]; }
        }
      }
    }
    // When parts of the invariant are kept: LogI by steps that are not the logger's, InsI by
    // those that are not the installer's, ...
    twostate lemma LogFrame()
      requires forall a :: Owns(d.owner, Logging, a) == Owns(old(d.owner), Logging, a)
      requires old(LogI()) && SameForLog(old(g), g) && lph == old(lph) && lwn == old(lwn) && lwd == old(lwd) && cgm == old(cgm)
      requires cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs) && cbk == old(cbk) && clist == old(clist)
      requires cdm == old(cdm) && cdm.m == old(cdm.m) && cdm.addrs == old(cdm.addrs) && dlist == old(dlist) && ldn == old(ldn)
      requires |d.cur| == |d.poss| == |old(d.poss)| == |old(d.cur)| >= Home(g.p)
      requires forall a :: 0 <= a < |d.poss| && (g.p.at < a < Copy(g.p) || a in cdm.m) ==> d.poss[a] <= old(d.poss)[a]
      requires d.bad || (!old(d.bad) && forall a :: 0 <= a < |d.poss| && (g.p.at < a < Copy(g.p) || a in cdm.m) ==> d.cur[a] == old(d.cur)[a])
      ensures LogI()
    {
      reveal LogI();
      if lph == 1 { ReadyKeep(old(g), g, cgm.m, cdm.m); }
      if lph == 3 { LoggedLess(d.poss, old(d.poss), g, old(g), g.cg, g.ch, g.cd, End(g)); }
    }
    twostate lemma InsFrame()
      requires forall a :: Owns(d.owner, Installing, a) == Owns(old(d.owner), Installing, a)
      requires old(InsI()) && SameForIns(old(g), g) && ilist == old(ilist) && iwn == old(iwn) && icn == old(icn) && hph == old(hph)
      requires |d.cur| == |d.poss| == |old(d.poss)| == |old(d.cur)| >= Home(g.p)
      requires 0 <= g.p.at < Copy(g.p) < Home(g.p) && d.poss[g.p.at] <= old(d.poss)[g.p.at] && d.poss[Copy(g.p)] <= old(d.poss)[Copy(g.p)]
      requires d.bad || (!old(d.bad) && d.cur[g.p.at] == old(d.cur)[g.p.at] && d.cur[Copy(g.p)] == old(d.cur)[Copy(g.p)] && forall a :: Home(g.p) <= a < |d.cur| && a in g.im ==> d.cur[a] == old(d.cur)[a])
      requires home as int == Home(g.p)
      ensures InsI()
    { reveal InsI(); }
    twostate lemma HoldFrame()
      requires old(HoldI()) && g.sg == old(g).sg && g.hq == old(g).hq && g.k == old(g).k
      requires cdm.m == old(cdm.m) && lho.m == old(lho.m) && iho.m == old(iho.m)
      ensures HoldI()
    { reveal HoldI(); }
    twostate lemma CacheFrame()
      requires cdm.m == old(cdm.m)
      requires old(CacheI()) && g.im == old(g).im && g.base == old(g).base && ilist == old(ilist) && icn == old(icn) && cache.m == old(cache.m)
      ensures CacheI()
    { reveal CacheI(); }
    twostate lemma RdFrame()
      requires old(RdI()) && g.base == old(g).base && trims == old(trims) && rds == old(rds)
      requires forall a :: old(Pending(a)) ==> Pending(a)
      ensures RdI()
    { reveal RdI(); }
    // the beginning and the end of an installation
    lemma InsNone()
      requires forall a :: Owns(d.owner, Installing, a) <==> g.ip > 0 && (a == g.p.at || a == Copy(g.p) || a in g.im)
      requires 0 <= g.ip <= 1 && ilist == null && icn == 0 && iwn == 0 && hph == 0 && GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p)
      ensures InsI()
    { reveal InsI(); }
    twostate lemma CacheBegun()
      requires cdm.m == old(cdm.m)
      requires old(CacheI()) && cache.m == old(cache.m) && old(g).im == map[] && g.base == old(g).base && icn == 0
      ensures CacheI()
    { reveal CacheI(); }
    lemma HdrFacts()
      requires InsI() && hph == 4
      ensures g.ip == 3 && GeoOk(g.p) && |d.poss| >= Home(g.p) && HdrAll(d.poss[g.p.at], g) && HdrAll(d.poss[Copy(g.p)], g)
    { reveal InsI(); }
    twostate lemma CacheDone()
      requires old(CacheI()) && old(InsI()) && cache.m == old(cache.m) && cdm.m == old(cdm.m) && |old(g).gs| == |old(g).ds| == |old(g).hs| && 0 <= old(g).k <= |old(g).gs| && g == IFinished(old(g))
      requires old(ilist) != null && old(g).ip == 3 && old(icn) == |old(ilist).addrs|
      ensures CacheI()
    {
      reveal CacheI(); reveal InsI();
      forall a | a in cache.m && a !in cdm.m ensures a in g.base && cache.m[a] == g.base[a] {
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
    twostate predicate LKeep() reads this, d, cgm, cdm {
      (forall a :: Owns(d.owner, Logging, a) == Owns(old(d.owner), Logging, a)) &&
      cdm == old(cdm) && cdm.m == old(cdm.m) && cdm.addrs == old(cdm.addrs) && dlist == old(dlist) && ldn == old(ldn) &&
      lph == old(lph) && lwn == old(lwn) && lwd == old(lwd) && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs) &&
      cbk == old(cbk) && clist == old(clist) && wp == old(wp) && eq == old(eq) && cl == old(cl)
    }
    twostate predicate IKeep() reads this, d, inm {
      (forall a :: Owns(d.owner, Installing, a) == Owns(old(d.owner), Installing, a)) &&
      g.ip == old(g.ip) && iwn == old(iwn) && icn == old(icn) && hph == old(hph) && inm == old(inm) && inm.m == old(inm.m) &&
      inm.addrs == old(inm.addrs) && hq == old(hq) && ieq == old(ieq) && ilist == old(ilist)
    }
    twostate predicate Mono() reads this {
      |old(vs)| <= |vs| && (forall i :: 0 <= i < |old(vs)| ==> vs[i] == old(vs)[i]) && old(lb) <= lb && old(trims) <= trims && old(rds) <= rds
    }
    function Cur(): St requires |vs| > 0 reads this { vs[|vs|-1] }
    predicate TxOk(tx: BMap) reads tx { tx.Ok() && InHome(home as int, tx.m, sz as int) }

    // after recovery: empty log, first sequence number q, state v
    constructor (d0: Disk, seal0: Seal, mu0: Mutex, cache0: Cache, n: uint64, at0: uint64, nd0: uint64, nr0: uint64, bit0: uint64, flo0: uint64, fhi0: uint64, q: uint64, maxPin0: uint64, instAt0: uint64)
      requires var p := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key, seal0.ep, bit0 as int, flo0 as int, fhi0 as int);
        GeoOk(p) && d0.Valid() && |d0.cur| == n as int && d0.ok == OkSet(p, [HomeOf(p, d0.cur)], 0, seal0.signed) &&
        Full(d0.poss, G0(p, seal0.signed, q as int, HomeOf(p, d0.cur)))
      requires forall a :: !Direct(seal0.signed, q as int, a)
      requires cache0.m == map[] && maxPin0 < 0x1_0000_0000 && forall x, a :: !Owns(d0.owner, x, a)
      ensures Inv() && d == d0 && seal == seal0 && mu == mu0 && cache == cache0
      ensures sz == n && at == at0 && nd == nd0 && nr == nr0 && home as int == at0 as int + 2 + 16 * nd0 as int + nr0 as int
      ensures bit == bit0 && flo == flo0 && fhi == fhi0
      ensures vs == [HomeOf(Geo(at0 as int, nd0 as int, nr0 as int, seal0.key, seal0.ep, bit0 as int, flo0 as int, fhi0 as int), d0.cur)] && lb == 0 && lph == 0 && g.ip == 0 && rds == {}
      ensures fresh(running) && fresh(lgm) && fresh(cgm) && fresh(cdm) && fresh(inm) && fresh(lho) && fresh(iho) && fresh(repr)
    {
      var nt := NewNotes();
      notes := nt;
      d := d0; seal := seal0; mu := mu0; cache := cache0; sz := n; at := at0; nd := nd0; nr := nr0;
      bit := bit0; flo := flo0; fhi := fhi0;
      home := at0 + 2 + 16 * nd0 + nr0; maxPin := maxPin0; instAt := instAt0;
      var m1 := NewBMap(); var m2 := NewBMap(); var m3 := NewBMap(); var m4 := NewBMap();
      var m5 := NewBMap(); var m6 := NewBMap(); var m7 := NewBMap();
      running := m1; lgm := m2; cgm := m3; inm := m4; cdm := m5; lho := m6; iho := m7;
      cbk := null; clist := null; dlist := null; ilist := null; icnr := 0;
      hq := q; eq := q; ieq := q; lo := 0; ilo := 0; wp := 0; trims := 0; nvs := 0; ncl := 0; nlb := 0;
      busy := false;
      ghost var p := Geo(at0 as int, nd0 as int, nr0 as int, seal0.key, seal0.ep, bit0 as int, flo0 as int, fhi0 as int);
      ghost var v := HomeOf(p, d0.cur);
      g := G0(p, seal0.signed, q as int, v); vs := [v]; lb := 0; cl := 0; rds := {};
      lph := 0; lwn := 0; ldn := 0; lwd := false; iwn := 0; icn := 0; icnr := 0; hph := 0;
      repr := {m1, m2, m3, m4, m5, m6, m7};
      new;
      Begun(v);
    }
    // an empty log
    lemma Begun(v: St)
      requires g == G0(g.p, seal.signed, hq as int, v) && vs == [v] && lb == 0 && cl == 0 && rds == {} && GeoI() && v == HomeOf(g.p, d.cur)
      requires d.Valid() && |d.cur| == sz as int && d.ok == OkSet(g.p, vs, 0, g.sg) && Full(d.poss, g)
      requires forall a :: !Direct(g.sg, g.hq, a)
      requires running.Ok() && lgm.Ok() && cgm.Ok() && cdm.Ok() && inm.Ok() && lho.Ok() && iho.Ok()
      requires running.m == lgm.m == cgm.m == cdm.m == inm.m == lho.m == iho.m == map[] && cache.m == map[]
      requires running.addrs == lgm.addrs == cgm.addrs == cdm.addrs == []
      requires running !in {lgm, cgm, cdm, inm, lho, iho} && lgm !in {cgm, cdm, inm, lho, iho} && lho !in {cgm, cdm, inm, iho} && cgm !in {cdm, inm, iho}
      requires repr == {running, lgm, cgm, cdm, inm, lho, iho} && maxPin < 0x1_0000_0000 && forall x, a :: !Owns(d.owner, x, a)
      requires eq == hq && lo == 0 && ilo == 0 && wp == 0 && trims == 0 && nvs == 0 && ncl == 0 && nlb == 0 && !busy && lph == 0
      requires ilist == null && iwn == 0 && icn == 0 && icnr == 0 && hph == 0
      ensures Inv()
    {
      reveal Inv(); reveal LogI(); reveal InsI(); reveal CacheI(); reveal RdI(); reveal HoldI();
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
      Counters();
      var k := running.Len();
      var l := tx.Len();
      var failed := notes.Get(NFailed);
      if failed != 0 || nvs >= 0x3FFF_FFFF_FFFF_0000 { return AFailed, 0; }
      if l > 500 { return ATooLarge, 0; }
      if k + l > 500 { return AFull, 0; }
      AppendTx(tx);
      if k < 250 && k + l >= 250 && !busy { mu.WakeOne(CLogger); }
      return AOk, nvs;
    }
    method AppendTx(tx: BMap)
      requires Inv() && TxOk(tx) && tx !in repr && |running.addrs| + |tx.addrs| <= 500 && nvs < 0x3FFF_FFFF_FFFF_0000
      modifies this, running, d
      ensures Inv() && LKeep() && IKeep() && Mono() && running == old(running)
      ensures lb == old(lb) && d.cur == old(d.cur) && repr == old(repr)
      ensures vs == old(vs) + [Over(old(Cur()), tx.m)] && nvs as int == |vs| - 1
    {
      reveal Inv();
      ComI();
      MergeInto(running, tx);
      OverOv(vs[cl], old(running.m), tx.m);
      vs := vs + [Over(old(Cur()), tx.m)];
      nvs := nvs + 1;
      CrashAll(d.poss, g, vs, lb, cl);
      d.SetOk(OkSet(g.p, vs, lb, g.sg));
      LogFrame(); InsFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [L]
    method IsDurable(n: uint64) returns (b: bool)
      requires Inv() && mu.held
      ensures b ==> n as int <= lb
    { reveal Inv(); b := n <= nlb; }
    // [L] index of the last commit
    method Newest() returns (n: uint64)
      requires Inv() && mu.held
      ensures n as int == |vs| - 1
    { reveal Inv(); n := nvs; }

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
      var k := lgm.Len(); var h := lho.Len();
      if k >= instAt || h >= HoldMax { mu.WakeOne(CInstaller); }
      var more := WantCommit();
      if more {
        if w == 0 { mu.WakeOne(CLogger); }
        else if even { mu.WakeOne(2); }
        else { mu.WakeOne(3); }
      }
      // after the one that goes on with the next group: the device should not wait
      if even { mu.WakeAll(3); } else { mu.WakeAll(2); }
    }
    // [L] is everything home?
    method Drained() returns (b: bool)
      requires Inv() && mu.held
    {
      var r := running.Len(); var c := cgm.Len(); var h := cdm.Len(); var l := lgm.Len(); var i := inm.Len();
      b := r == 0 && c == 0 && h == 0 && l == 0 && i == 0;
    }

    // ---------------- logger ----------------
    // [L] freeze the running group: the caller becomes the logger
    method StartCommit() returns (ok: bool)
      requires Inv() && mu.held
      modifies this, cache, d`owner
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures ok ==> lph == 1 && old(lph) == 0       // nobody was the logger
      ensures !ok ==> LKeep() && repr == old(repr)
      ensures fresh(repr - old(repr))
    {
      Counters();
      var w := WantCommit();
      var failed := notes.Get(NFailed);
      if busy || failed != 0 || !w { return false; }
      var k := running.Len();
      var pinned := lgm.Len();
      if eq >= 0x1FFF_FFFF_FFFF_0000 || wp >= 0x1FFF_FFFF_FFFF_0000 || eq - hq >= nd || wp + k > lo + nr || pinned + k > maxPin {
        Urge();
        return false;
      }
      var clash := Clash();
      if clash {
        Urge();
        return false;
      }
      var ring, dir := Split();
      var r := NewBMap();
      StartFields(r, ring, dir);
      NoteStart();
      return true;
    }
    lemma Counters()
      requires Inv()
      ensures hq as int == g.hq && eq as int == End(g) && hq <= eq && lo as int == g.lo && wp as int == g.wp && g.p.nd == nd as int && g.p.nr == nr as int
      ensures busy <==> lph != 0
      ensures lo <= wp && nr < 0x1_0000_0000
      ensures |running.addrs| <= 500 && |lgm.addrs| < 0x1_0000_0000 && |g.gs| == eq as int - hq as int
    { reveal Inv(); }
    lemma HeldOne(a: int)
      requires Inv() && lph == 0 && Direct(g.sg, g.hq, a)
      ensures a in lho.m || a in iho.m
    {
      reveal Inv();
      assert HoldI();
      LogFacts();
      assert cdm.m == map[];
      HeldAny(a);
    }
    lemma HeldAny(a: int)
      requires HoldI() && Direct(g.sg, g.hq, a)
      ensures a in lho.m || a in iho.m || a in cdm.m
    { reveal HoldI(); }
    // [L] is a block of the running group one of the direct blocks that are held?
    method Clash() returns (b: bool)
      requires Inv() && mu.held && lph == 0
      ensures !b ==> forall a :: a in running.m ==> !Direct(g.sg, g.hq, a)
    {
      var n := running.Len();
      var i: uint64 := 0;
      while i < n
        invariant i <= n && forall j :: 0 <= j < i as int ==> running.addrs[j] !in lho.m && running.addrs[j] !in iho.m
      {
        var a := running.AddrAt(i);
        var x := lho.Get(a);
        if x != null { return true; }
        x := iho.Get(a);
        if x != null { return true; }
        i := i + 1;
      }
      forall a | a in running.m ensures !Direct(g.sg, g.hq, a) {
        assert a in running.addrs;
        if Direct(g.sg, g.hq, a) { HeldOne(a); }
      }
      return false;
    }
    // [L] may block a of the running group go straight home? It may if it is free in the
    // durable state and in no live group; it shall if that is wished (w).
    method Straight(a: uint64) returns (w: bool, b: bool)
      requires Inv() && mu.held && lph == 0
      ensures b ==> FreeIn(g.p, DurState(g), a as int) && forall i :: 0 <= i < |g.gs| ==> a as int !in g.gs[i]
    {
      w := notes.Bulk(a);
      b := false;
      if !w || a < flo || fhi <= a { return; }
      var x := lgm.Get(a);
      if x != null { return; }
      x := inm.Get(a);
      if x != null { return; }
      GeoFacts();
      var known, v := Durably(bit + a / 32768);
      if !known { return; }
      var set_ := BitOf(v.Get(a % 32768 / 8), a % 8);
      if set_ { return; }
      InLive(a as int);
      ghost var s := DurState(g);
      assert BlockBit(s[bit as int + a as int / 32768], a as int % 32768) == set_;
      assert FreeIn(g.p, s, a as int) by { reveal FreeIn(); }
      b := true;
    }
    lemma GeoFacts()
      requires Inv()
      ensures GeoOk(g.p) && g.p.bit == bit as int && g.p.flo == flo as int && g.p.fhi == fhi as int
    { reveal Inv(); }
    lemma InLive(a: int)
      requires Inv() && a !in lgm.m && a !in inm.m
      ensures forall i :: 0 <= i < |g.gs| ==> a !in g.gs[i]
    {
      reveal Inv();
      LiveMaps();
      forall i | 0 <= i < |g.gs| ensures a !in g.gs[i] { if a in g.gs[i] { MergeHas(g.gs, i, a); } }
    }
    lemma LiveMaps()
      requires Inv()
      ensures Merge(g.gs) == Ov(inm.m, lgm.m)
    {
      reveal Inv();
      assert g.gs == g.gs[..g.k] + g.gs[g.k..];
      MergeCat(g.gs[..g.k], g.gs[g.k..]);
    }
    // [L] what block a is in the durable state, if that is in memory
    method Durably(a: uint64) returns (known: bool, b: Blk)
      requires Inv() && mu.held && lph == 0
      ensures known ==> a as int in DurState(g) && b.v == DurState(g)[a as int] && |b.v| == 4096
    {
      reveal Inv(); reveal CacheI(); LogFacts(); LiveMaps();
      var x := lgm.Get(a);
      if x == null { x := inm.Get(a); }
      if x == null { x := cache.Get(a); }
      known := x != null;
      if known { b := x; assert a as int in g.base; } else { b := ZeroBlk(); }
    }
    // The same block in memory of its own. What is wished to go straight home may share an
    // allocation with its neighbours, which must not live as long as the log.
    method Own(b: Blk) returns (c: Blk)
      requires |b.v| == 4096
      ensures c.v == b.v
    {
      var t := b.Thaw();
      c := Freeze(t);
    }
    // [L] the running group in two parts: for the log, and straight home
    method Split() returns (ring: BMap, dir: BMap)
      requires Inv() && mu.held && lph == 0
      requires forall a :: a in running.m ==> !Direct(g.sg, g.hq, a)
      ensures fresh(dir) && fresh(ring) && ring != dir && ring.Ok() && dir.Ok()
      ensures |ring.addrs| + |dir.addrs| <= |running.addrs|
      ensures Parts(running.m, ring.m, dir.m) && Ready(g, ring.m, dir.m)
    {
      dir := NewBMap();
      ring := NewBMap();
      var n := running.Len();
      var i: uint64 := 0;
      while i < n
        invariant i <= n && fresh(dir) && dir.Ok() && fresh(ring) && ring.Ok() && ring != dir && |ring.addrs| + |dir.addrs| <= i as int
        invariant forall a :: a in dir.m ==> a in running.m && dir.m[a] == running.m[a] && FreeIn(g.p, DurState(g), a)
        invariant forall a :: a in ring.m ==> a in running.m && ring.m[a] == running.m[a]
        invariant forall a :: a in dir.m ==> a in running.addrs[..i as int] && a !in ring.m
        invariant forall a :: a in ring.m ==> a in running.addrs[..i as int]
        invariant forall a :: a in running.addrs[..i as int] ==> a in ring.m || a in dir.m
        invariant forall x, a {:trigger a in g.gs[x]} :: 0 <= x < |g.gs| && a in g.gs[x] ==> a !in dir.m
      {
        var a := running.AddrAt(i);
        var b := running.BlkAt(i);
        assert running.addrs[..i as int + 1] == running.addrs[..i as int] + [a as int];
        NotBefore(running, i as int);
        var w, s := Straight(a);
        if s {
          dir.Put(a, b);
        } else {
          if w { b := Own(b); }
          ring.Put(a, b);
        }
        i := i + 1;
      }
      assert running.addrs[..n as int] == running.addrs;
    }
    lemma NotBefore(m: BMap, i: int)
      requires m.Ok() && 0 <= i < |m.addrs|
      ensures m.addrs[i] !in m.addrs[..i]
    { m.Distinct(); }
    // [L] the cache has nothing of the direct blocks: what is written in bulk is not worth a place
    method Uncache(dir: BMap)
      requires mu.held && dir.Ok()
      modifies cache
      ensures forall a :: a in cache.m ==> a !in dir.m && a in old(cache.m) && cache.m[a] == old(cache.m)[a]
    {
      var n := dir.Len();
      var i: uint64 := 0;
      while i < n
        invariant i <= n
        invariant forall a :: a in cache.m ==> a !in dir.addrs[..i as int] && a in old(cache.m) && cache.m[a] == old(cache.m)[a]
      {
        var a := dir.AddrAt(i);
        cache.Forget(a);
        assert dir.addrs[..i as int + 1] == dir.addrs[..i as int] + [a as int];
        i := i + 1;
      }
      assert dir.addrs[..n as int] == dir.addrs;
    }
    // [L]
    method StartFields(r: BMap, ring: BMap, dir: BMap)
      requires Inv() && mu.held && Unused(r) && Unused(dir) && Unused(ring) && r !in repr && dir !in repr && r != ring && r != dir && ring != dir
      requires r.Ok() && r.m == map[] && r.addrs == [] && lph == 0 && ring.Ok() && dir.Ok()
      requires Parts(running.m, ring.m, dir.m) && Ready(g, ring.m, dir.m) && |ring.addrs| + |dir.addrs| <= |running.addrs|
      requires |g.gs| < g.p.nd && g.wp + |running.addrs| <= g.lo + g.p.nr && End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000
      requires |lgm.addrs| + |running.addrs| <= maxPin as int
      modifies this, cache, d`owner
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures lph == 1 && repr == old(repr) + {r, ring, dir}
    {
      reveal Inv(); reveal LogI();
      ghost var log := set a | at as int < a < home as int - 1;
      Ownable(log, ring.m, dir.m);
      Uncache(dir);
      d.Take(Logging, log + dir.m.Keys);
      cgm := ring; cdm := dir; dlist := null; ldn := 0;
      running := r; repr := repr + {r, ring, dir};
      lph := 1; busy := true;
      cl := |vs| - 1; ncl := nvs;
      assert Over(vs[lb], map[]) == vs[lb];
      assert vs[cl] == Over(Over(vs[lb], dir.m), ring.m);
      assert Over(vs[cl], map[]) == vs[cl];
      InsFrame(); RdFrame();
      assert CacheI() by { reveal CacheI(); }
      assert HoldI() by { reveal HoldI(); }
    }
    // nobody owns what a new logger needs
    lemma Ownable(log: set<int>, m: BM, h: BM)
      requires Inv() && lph == 0 && Ready(g, m, h) && Parts(running.m, m, h) && log == set a | at as int < a < home as int - 1
      ensures forall a :: a in log || a in h ==> a !in d.owner
    {
      reveal Inv();
      Owned();
      forall a | a in log || a in h ensures a !in d.owner {
        if a in log && a in inm.m { assert home as int <= a; }
        if a in h && a in g.im { FullD(d.poss, g); MergeKeys(g.gs[..g.k], a); }
        if a in h { assert a in running.m; }
      }
    }
    predicate Unused(r: BMap) reads this { r != running && r != lgm && r != cgm && r != cdm && r != inm && r != lho && r != iho }
    // [F] seal the group (no operation of the device)
    method LogEnc()
      requires Inv() && lph == 1
      modifies this, seal, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures lph == 2 && lwn == 0 && ldn == 0 && !lwd && cgm == old(cgm) && cgm.addrs == old(cgm.addrs) && cl == old(cl)
      ensures dlist != null && |dlist.addrs| == |dlist.blks|
      ensures repr == old(repr)
    {
      var b, l, dl, g1 := Encode();
      reveal Inv();
      LogFacts();
      d.SetOk(OkSet(g1.p, vs, lb, g1.sg));
      LogEncFields(b, l, dl, g1);
      LogEncI();
      HoldMore(old(g), Rec(b.v, GroupBlks(cgm.m, cdm.m, DecDesc(b.v).d)));
      InsFrame(); CacheFrame(); RdFrame();
    }
    // its descriptor and its blocks
    method Encode() returns (b: Blk, l: BList, dl: BList, ghost g1: G)
      requires Inv() && lph == 1
      modifies seal
      ensures cgm.Ok() && cdm.Ok() && |b.v| == 4096 && DecDesc(b.v).SomeDesc? && l.blks == BlksOf(cgm.m, cgm.addrs)
      ensures Lists(dl, cdm.m, home as int, sz as int)
      ensures var dd := DecDesc(b.v).d; dd.addrs == cgm.addrs && dd.dirs == cdm.addrs && dd.pos == g.wp &&
        var rec := Rec(b.v, GroupBlks(cgm.m, cdm.m, dd)); g1 == Started(g, cgm.m, cdm.m, dd, b.v, rec) && seal.signed == old(seal.signed) + {rec} && seal.ep == old(seal.ep)
      ensures 0 <= lb && Full(d.poss, g1) && DurState(g1) == DurState(g) && forall s :: CrashImg(d.poss, s) ==> s in OkSet(g1.p, vs, lb, g1.sg)
    {
      reveal Inv();
      LogFacts();
      SealedBelow(d.poss, g);
      cdm.Distinct();
      b := seal.Sign(eq, wp, cgm, cdm);
      l := cgm.List();
      dl := cdm.Sorted();
      SortedLen(dl.addrs, sz as int);
      ghost var dd := DecDesc(b.v).d;
      g1 := Started(g, cgm.m, cdm.m, dd, b.v, Rec(b.v, GroupBlks(cgm.m, cdm.m, dd)));
      Encoded(d.poss, g, cgm.m, cdm.m, dd, b.v, vs, lb, cl);
    }
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
    method LogEncFields(b: Blk, l: BList, dl: BList, ghost g1: G)
      modifies this
      ensures g == g1 && cbk == b && clist == l && dlist == dl && lwn == 0 && ldn == 0 && !lwd && lph == 2
      ensures running == old(running) && lgm == old(lgm) && inm == old(inm) && cgm == old(cgm) && cdm == old(cdm) && lho == old(lho) && iho == old(iho) &&
              hq == old(hq) && eq == old(eq) && ieq == old(ieq) && lo == old(lo) && ilo == old(ilo) && wp == old(wp) && trims == old(trims) &&
              nvs == old(nvs) && ncl == old(ncl) && nlb == old(nlb) && busy == old(busy) && vs == old(vs) && lb == old(lb) && cl == old(cl) &&
              rds == old(rds) && iwn == old(iwn) && icn == old(icn) && icnr == old(icnr) && hph == old(hph) && ilist == old(ilist) && repr == old(repr)
    {
      cbk := b;
      clist := l; dlist := dl;
      lwn := 0; ldn := 0; lwd := false;
      lph := 2;
      g := g1;
    }
    twostate lemma HoldMore(g0: G, rec: Rec)
      requires old(HoldI()) && old(g) == g0 && g.sg == g0.sg + {rec} && g.hq == g0.hq && g.k == g0.k
      requires cdm.m == old(cdm.m) && lho.m == old(lho.m) && iho.m == old(iho.m)
      requires DecDesc(rec.b).SomeDesc? && forall a :: a in DecDesc(rec.b).d.dirs ==> a in cdm.m
      ensures HoldI()
    {
      reveal HoldI();
      forall a, q | Direct(g.sg, q, a) ensures a in cdm.m || Direct(g0.sg, q, a) {
        var r :| r in g.sg && DirectOf(r, q, a);
        if r in g0.sg { assert DirectOf(r, q, a); } else { assert r == rec; }
      }
    }
    // [F] does the group fit its unit, behind the descriptor?
    method Small() returns (b: bool)
      requires Inv() && lph == 2
      ensures b <==> |cgm.addrs| <= 15
    {
      reveal Inv(); LogFacts();
      var n := clist.Len();
      b := n <= 15;
    }
    // [F] the descriptor and behind it the blocks of a small group, as one list (the map is there to make it)
    method UnitList() returns (l: BList, n: uint64)
      requires Inv() && lph == 2 && |cgm.addrs| <= 15
      ensures cbk != null && clist != null && n as int == |cgm.addrs| == |clist.blks|
      ensures l.blks == [cbk.v] + clist.blks && forall i :: 0 <= i < |l.blks| ==> |l.blks[i]| == 4096
    {
      reveal Inv(); LogFacts();
      n := clist.Len();
      var m := NewBMap();
      m.Put(0, cbk);
      ghost var want := [cbk.v] + clist.blks;
      var i: uint64 := 0;
      while i < n
        invariant i <= n && m.Ok() && fresh(m) && |m.addrs| == i as int + 1
        invariant forall k :: 0 <= k <= i as int ==> m.addrs[k] == k && k in m.m && m.m[k] == want[k]
        invariant forall k :: k in m.m ==> 0 <= k <= i as int
      {
        var b := clist.BlkAt(i);
        m.Put(i + 1, b);
        i := i + 1;
      }
      l := m.List();
      assert l.blks == want;
    }
    // [F] write a small group, all of it
    method LogWriteUnit() returns (ok: bool)
      requires Inv() && lph == 2 && lwn == 0 && |cgm.addrs| <= 15
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == 2 && cgm == old(cgm) && cgm.addrs == old(cgm.addrs) && ldn == old(ldn) && dlist == old(dlist)
      ensures ok ==> lwd && lwn == |cgm.addrs|
      ensures repr == old(repr)
    {
      var l, n := UnitList();
      reveal Inv();
      LogFacts(); ComI(); ComFacts(d.poss, g);
      ghost var P := d.poss;
      var s := SlotOf(eq, nd);
      UnitWritePres(P, g);
      CrashAll(Fuzzy(P, DSlot(g.p, End(g)), 1 + n as int), g, vs, lb, cl);
      ok := d.WriteRun(Logging, at + 1 + 16 * s, l, 0, 1 + n);
      if ok { lwn := n as int; lwd := true; }
      UnitWroteI(l.blks, ok);
      InsFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [F] where a larger group's blocks from the i-th on belong, as many as lie side by side
    method DataRun(i: uint64) returns (a: uint64, n: uint64)
      requires Inv() && lph == 2 && i as int == lwn < |cgm.addrs| && |cgm.addrs| > 15
      ensures GeoOk(g.p) && g.com && g.cd.sq == End(g) && 0 < n && i as int + n as int <= |g.cd.addrs| == |cgm.addrs|
      ensures Side(g.p, g.cd, i as int, n as int) && a as int == At(g.p, g.cd, i as int) && a as int + n as int < home as int
    {
      reveal Inv();
      LogFacts(); ComFacts(d.poss, g);
      var len := clist.Len();
      n := len - i;
      var s := SlotOf(wp + i, nr);
      if n > nr - s { n := nr - s; }
      a := at + 1 + 16 * nd + s;
    }
    // [F] write blocks of a larger group to the ring, from the i-th on as many as lie side by side
    method LogWrite(i: uint64) returns (ok: bool, n: uint64)
      requires Inv() && lph == 2 && i as int == lwn < |cgm.addrs| && |cgm.addrs| > 15
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == 2 && cgm == old(cgm) && cgm.addrs == old(cgm.addrs) && lwd == old(lwd) && ldn == old(ldn) && dlist == old(dlist)
      ensures ok ==> 0 < n && i as int + n as int == lwn <= |cgm.addrs|
      ensures repr == old(repr)
    {
      var a;
      a, n := DataRun(i);
      reveal Inv();
      LogFacts(); ComI();
      ghost var P := d.poss;
      LogWritePres(P, g, i as int, n as int);
      CrashAll(Fuzzy(P, a as int, n as int), g, vs, lb, cl);
      ok := d.WriteRun(Logging, a, clist, i, n);
      if ok { lwn := lwn + n as int; }
      LogWroteI(i as int, n as int, ok);
      InsFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [F] write direct blocks of the group home, from the i-th on as long as their addresses are adjacent
    method DirWrite(i: uint64) returns (ok: bool, n: uint64)
      requires Inv() && lph == 2 && dlist != null && i as int == ldn < |dlist.addrs|
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == 2 && cgm == old(cgm) && cgm.addrs == old(cgm.addrs) && lwd == old(lwd) && lwn == old(lwn) && dlist == old(dlist)
      ensures ok ==> 0 < n && i as int + n as int == ldn <= |dlist.addrs|
      ensures repr == old(repr)
    {
      reveal Inv();
      LogFacts(); ComI(); DirApart();
      var a;
      a, n := Adjacent(dlist, i);
      assert dlist.addrs[i as int + n as int - 1] == a as int + (n as int - 1) < |d.cur|;
      assert home as int <= dlist.addrs[i as int];
      forall x | a as int <= x < a as int + n as int ensures x in g.ch { assert dlist.addrs[i as int + (x - a as int)] == x; }
      ghost var P := d.poss;
      DirWritePres(P, g, a as int, n as int);
      CrashAll(Fuzzy(P, a as int, n as int), g, vs, lb, cl);
      ok := d.WriteRun(Logging, a, dlist, i, n);
      if ok { ldn := ldn + n as int; }
      DirWroteI(a as int, n as int, ok);
      InsFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [F] the descriptor of a larger group
    method LogWriteDesc() returns (ok: bool)
      requires Inv() && lph == 2
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == 2 && lwn == old(lwn) && ldn == old(ldn) && dlist == old(dlist) && cgm == old(cgm) && cgm.addrs == old(cgm.addrs)
      ensures ok ==> lwd
      ensures repr == old(repr)
    {
      reveal Inv(); reveal LogI();
      DescWritePres(d.poss, g);
      CrashAll(Fuzzy(d.poss, DSlot(g.p, End(g)), 1), g, vs, lb, cl);
      var s := SlotOf(eq, nd);
      ok := d.Write(Logging, at + 1 + 16 * s, cbk);
      if ok { lwd := true; }
      InsFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [F] the one barrier of a group commit
    method LogBarrier() returns (ok: bool)
      requires Inv() && lph == 2 && lwd && lwn == |cgm.addrs| && dlist != null && ldn == |dlist.addrs|
      modifies this, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && cl == old(cl)
      ensures lph == (if ok then 3 else 2) && cgm == old(cgm) && cgm.addrs == old(cgm.addrs)
      ensures old(d.bad) ==> !ok       // once the device has failed, nothing more becomes durable
      ensures repr == old(repr)
    {
      reveal Inv();
      LogFacts();
      ghost var P := d.poss;
      ok := d.Barrier(Logging);
      BarrierPres(d.poss, P, g);
      LogFrame();
      if ok {
        LogDone();
        lph := 3;
      }
      if lph == 3 { LogDoneI(); }
      InsFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // all blocks of the group are written, and what the logger owns is durable
    lemma LogDone()
      requires LogI() && lph == 2 && !d.bad && lwd && lwn == |cgm.addrs| && dlist != null && ldn == |dlist.addrs| && Full(d.poss, g)
      requires |d.poss| == |d.cur| && forall a :: 0 <= a < |d.cur| && Owns(d.owner, Logging, a) ==> d.poss[a] == iset{d.cur[a]}
      ensures GeoOk(g.p) && |d.poss| >= Home(g.p) && Logged(d.poss, g, g.cg, g.ch, g.cd, End(g)) && DirHome(d.poss, g)
    {
      reveal LogI();
      ComFacts(d.poss, g);
      forall a | a in g.ch ensures 0 <= a < |d.poss| && d.poss[a] <= iset{g.ch[a]} {
        assert a in dlist.addrs;
        var i :| 0 <= i < |dlist.addrs| && dlist.addrs[i] == a;
        assert d.cur[a] == dlist.blks[i];
        assert Owns(d.owner, Logging, a);
      }
      forall i | 0 <= i < |g.cd.addrs| ensures d.poss[At(g.p, g.cd, i)] <= iset{g.cg[g.cd.addrs[i]]} {
        assert d.poss[At(g.p, g.cd, i)] == iset{d.cur[At(g.p, g.cd, i)]};
      }
      assert d.poss[DSlot(g.p, End(g))] == iset{d.cur[DSlot(g.p, End(g))]};
    }
    twostate lemma LogDoneI()
      requires d.owner == old(d.owner)
      requires old(LogI()) && old(lph) == 2 && lph == 3 && g == old(g) && cgm == old(cgm) && cgm.m == old(cgm.m) && cgm.addrs == old(cgm.addrs)
      requires cdm == old(cdm) && cdm.m == old(cdm.m) && cdm.addrs == old(cdm.addrs) && dlist == old(dlist) && ldn == old(ldn)
      requires cbk == old(cbk) && clist == old(clist) && lwn == old(lwn) && |d.cur| == |d.poss| == |old(d.cur)| && GeoOk(g.p) && |d.cur| >= Home(g.p)
      requires Logged(d.poss, g, g.cg, g.ch, g.cd, End(g)) && DirHome(d.poss, g)
      ensures LogI()
    { reveal LogI(); }
    // [L] the group is durable: its direct blocks are home, and their addresses held
    method HoldDirect()
      requires Inv() && mu.held && lph == 3
      modifies lho
      ensures Inv() && LKeep() && IKeep() && Mono() && forall a :: a in cdm.m ==> a in lho.m
    {
      reveal Inv();
      var n := cdm.Len();
      var i: uint64 := 0;
      var z := ZeroBlk();
      while i < n
        invariant i <= n && lho.Ok()
        invariant forall a :: a in lho.m <==> a in old(lho.m) || a in cdm.addrs[..i as int]
      {
        var a := cdm.AddrAt(i);
        lho.Put(a, z);
        assert cdm.addrs[..i as int + 1] == cdm.addrs[..i as int] + [a as int];
        i := i + 1;
      }
      assert cdm.addrs[..n as int] == cdm.addrs;
      LogFrame(); InsFrame(); CacheFrame(); RdFrame();
      assert HoldI() by { reveal HoldI(); }
    }
    // [L] the group is logged
    method FinishCommit()
      requires Inv() && mu.held && lph == 3 && trims < 0x3FFF_FFFF_FFFF_0000
      requires forall a :: a in cdm.m ==> a in lho.m
      modifies this, lgm, d
      ensures Inv() && IKeep() && Mono() && vs == old(vs) && lb == old(cl) && lph == 0
      ensures d.cur == old(d.cur)
      ensures fresh(repr - old(repr))
    {
      reveal Inv();
      var n := cgm.Len();
      var e := NewBMap(); var f := NewBMap();
      ghost var g1 := Finished(g);
      FinishG();
      d.SetOk(OkSet(g.p, vs, cl, g.sg));
      var l := MergeOrSwap(lgm, cgm);
      var h := cdm.Len();
      assert h == 0 ==> cdm.m == map[];
      d.Leave(Logging);
      FinishFields(e, f, l, n, h, g1);
      OverNone(vs[cl]);
      InsFrame(); CacheFinish(); HoldFinish(); RdFinish();
      LogIdle();
      NoteFinish();
    }
    // what finishing means for the protocol's state
    lemma FinishG()
      requires Inv() && lph == 3
      ensures g.com && 0 <= g.k <= |g.gs| && g.cg == cgm.m && g.ch == cdm.m && g.cd.addrs == cgm.addrs && 0 <= cl < |vs|
      ensures End(g) < 0x1FFF_FFFF_FFFF_FFFF && g.wp < 0x1FFF_FFFF_FFFF_0000
      ensures var g1 := Finished(g); Full(d.poss, g1) && DurState(g1) == vs[cl] && g1.gs[..g1.k] == g.gs[..g.k]
      ensures var g1 := Finished(g); Merge(g1.gs[g1.k..]) == Ov(lgm.m, cgm.m)
      ensures forall a :: a in cdm.m ==> a !in g.im
      ensures forall s :: CrashImg(d.poss, s) ==> s in OkSet(g.p, vs, cl, g.sg)
    {
      reveal Inv(); reveal LogI();
      FinishPres(d.poss, g);
      TailMerge(g);
      DirApart();
      CrashAll(d.poss, Finished(g), vs, cl, cl);
    }
    lemma OverNone(v: St)
      ensures Over(v, map[]) == v
    {}
    lemma LogIdle()
      requires forall a :: !Owns(d.owner, Logging, a)
      requires lph == 0 && !g.com && cgm.m == map[] && cgm.addrs == [] && cdm.m == map[] && cdm.addrs == [] && GeoOk(g.p) && |d.cur| == |d.poss| >= Home(g.p)
      ensures LogI()
    { reveal LogI(); }
    // a read of a direct block that began before it was written is not valid: hence trims
    method FinishFields(e: BMap, f: BMap, l: BMap, n: uint64, h: uint64, ghost g1: G)
      requires eq < 0x2000_0000_0000_0000 && wp < 0x2000_0000_0000_0000 && n <= 500 && trims < 0x3FFF_FFFF_FFFF_0000
      modifies this
      ensures cgm == e && cdm == f && lgm == l && repr == old(repr) + {e, f} && g == g1 && lb == cl && nlb == ncl && eq == old(eq) + 1 && wp == old(wp) + n && lph == 0 && !busy
      ensures trims == if h > 0 then old(trims) + 1 else old(trims)
      ensures running == old(running) && inm == old(inm) && hq == old(hq) && ieq == old(ieq) && lho == old(lho) && iho == old(iho) &&
              lo == old(lo) && ilo == old(ilo) && nvs == old(nvs) && ncl == old(ncl) && vs == old(vs) &&
              cl == old(cl) && rds == old(rds) && iwn == old(iwn) && icn == old(icn) && icnr == old(icnr) && hph == old(hph) && ilist == old(ilist)
    {
      cgm := e; cdm := f; lgm := l; repr := repr + {e, f};
      cbk := null; clist := null; dlist := null; ldn := 0;
      g := g1;
      lb := cl; nlb := ncl;
      eq := eq + 1; wp := wp + n;
      if h > 0 { trims := trims + 1; }
      lph := 0; busy := false;
    }
    twostate lemma CacheFinish()
      requires old(CacheI()) && cache.m == old(cache.m) && cdm.m == map[] && g.base == Over(old(g).base, old(cdm.m)) && g.im == old(g).im
      requires ilist == old(ilist) && icn == old(icn) && forall a :: a in old(cdm.m) ==> a !in g.im
      ensures CacheI()
    { reveal CacheI(); }
    twostate lemma HoldFinish()
      requires old(HoldI()) && g.sg == old(g).sg && g.hq == old(g).hq && g.k == old(g).k && iho.m == old(iho.m)
      requires lho.m == old(lho.m) && forall a :: a in old(cdm.m) ==> a in lho.m
      ensures HoldI()
    { reveal HoldI(); }
    twostate lemma RdFinish()
      requires old(RdI()) && rds == old(rds) && g.base == Over(old(g).base, old(cdm.m))
      requires (trims == old(trims) && old(cdm.m) == map[]) || trims as int == old(trims) as int + 1
      requires forall a :: old(Pending(a)) && a !in old(cdm.m) ==> Pending(a)
      ensures RdI()
    { reveal RdI(); }
    // ---------------- installer ----------------
    // [L] freeze the logged groups for installation
    method StartInstall() returns (ok: bool)
      requires Inv() && mu.held && g.ip == 0
      modifies this, d`owner
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == (if ok then 1 else 0) && (ok ==> ilist == null && iwn == 0 && icn == 0 && hph == 0)
      ensures fresh(repr - old(repr))
    {
      reveal Inv();
      var k := lgm.Len(); var h := lho.Len();
      var urge := notes.Get(NUrge);
      var failed := notes.Get(NFailed);
      if (k == 0 && h == 0) || failed != 0 || (urge == 0 && k < instAt && h < HoldMax && eq - hq < nd / 2 && wp - lo < nr / 2) { return false; }
      notes.Set(NUrge, 0);
      var r := NewBMap(); var f := NewBMap();
      IStartPres(d.poss, g);
      ghost var g1 := IStarted(g);
      assert g.gs[g.k..] == g.gs;
      assert g1.gs[g1.k..] == [];
      assert g.gs[..0] == [];
      DirApart(); Owned();
      d.Take(Installing, {at as int, home as int - 1} + g1.im.Keys);
      StartInstallFields(r, f, g1);
      LogFrame(); RdFrame(); InsNone(); CacheBegun();
      HoldBegun();
      return true;
    }
    method StartInstallFields(r: BMap, f: BMap, ghost g1: G)
      modifies this
      ensures inm == old(lgm) && lgm == r && iho == old(lho) && lho == f && repr == old(repr) + {r, f} && g == g1
      ensures ilo == wp && ieq == eq && ilist == null && iwn == 0 && icn == 0 && icnr == 0 && hph == 0
      ensures running == old(running) && cgm == old(cgm) && cdm == old(cdm) && cbk == old(cbk) && clist == old(clist) && dlist == old(dlist) &&
              hq == old(hq) && eq == old(eq) && lo == old(lo) && wp == old(wp) && trims == old(trims) && nvs == old(nvs) && ncl == old(ncl) && nlb == old(nlb) &&
              busy == old(busy) && vs == old(vs) && lb == old(lb) && cl == old(cl) && rds == old(rds) && lph == old(lph) && lwn == old(lwn) && ldn == old(ldn) && lwd == old(lwd)
    {
      inm := lgm;
      lgm := r; iho := lho; lho := f; repr := repr + {r, f};
      ilo := wp; ieq := eq; ilist := null;
      iwn := 0; icn := 0; icnr := 0; hph := 0;
      g := g1;
    }
    twostate lemma HoldBegun()
      requires old(HoldI()) && old(LogI()) && Full(d.poss, old(g)) && old(g).k == 0 && g == IStarted(old(g)) && cdm.m == old(cdm.m) && iho.m == old(lho.m)
      ensures HoldI()
    {
      reveal HoldI(); reveal LogI(); FullD(d.poss, old(g));
      forall a | Direct(g.sg, g.hq + g.k, a) ensures a in cdm.m {
        var r :| r in g.sg && DirectOf(r, g.hq + g.k, a);
        assert !Below(r, End(old(g)));
        assert IsCom(old(g), r);
      }
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
      LogFrame(); HoldFrame(); RdFrame();
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
      reveal Inv();
      InsLists();
      var a;
      a, n := Adjacent(ilist, i);
      InstRun(i as int, a as int, n as int);
      ok := d.WriteRun(Installing, a, ilist, i, n);
      if ok { iwn := iwn + n as int; }
      InstWroteI(a as int, n as int, ok);
      LogFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    lemma InsLists()
      requires InsI() && g.ip > 0 && ilist != null
      ensures |d.cur| >= Home(g.p) && Lists(ilist, g.im, home as int, |d.cur|) && 0 <= iwn <= |ilist.addrs|
      ensures forall a :: a in g.im ==> Owns(d.owner, Installing, a)
    { reveal InsI(); }
    // what it means to write home n blocks of the frozen map, from the i-th on
    lemma InstRun(i: int, a: int, n: int)
      requires Inv() && g.ip == 1 && ilist != null && 0 <= i && 1 <= n && i + n <= |ilist.addrs|
      requires forall y :: i <= y < i + n ==> ilist.addrs[y] == a + (y - i)
      ensures home as int <= a && a + n <= |d.cur| == |d.poss| && forall x :: a <= x < a + n ==> x !in cdm.m && Owns(d.owner, Installing, x)
      ensures |ilist.blks| == |ilist.addrs| && forall x :: i <= x < i + n ==> |ilist.blks[x]| == 4096
      ensures Full(Fuzzy(d.poss, a, n), g) && forall s :: CrashImg(Fuzzy(d.poss, a, n), s) ==> s in d.ok
    {
      reveal Inv();
      InsLists();
      ghost var last := i + n - 1;
      assert ilist.addrs[last] == a + (n - 1) < |d.cur|;
      assert home as int <= ilist.addrs[i];
      forall x | a <= x < a + n ensures x in g.im { assert ilist.addrs[i + (x - a)] == x; }
      DirApart();
      InstWritePres(d.poss, g, a, n);
      ComI();
      CrashAll(Fuzzy(d.poss, a, n), g, vs, lb, cl);
    }
    twostate lemma InstWroteI(a: int, n: int, ok: bool)
      requires d.owner == old(d.owner)
      requires old(InsI()) && g == old(g) && g.ip == 1 && ilist != null && ilist == old(ilist) && icn == old(icn) && hph == old(hph)
      requires 0 <= old(iwn) && 0 < n && old(iwn) + n <= |ilist.addrs| == |ilist.blks| && iwn == if ok then old(iwn) + n else old(iwn)
      requires |d.cur| == |d.poss| == |old(d.cur)| == |old(d.poss)| && home as int == Home(g.p) <= a && a + n <= |d.cur|
      requires 0 <= g.p.at < Copy(g.p) < Home(g.p) && d.poss[g.p.at] == old(d.poss)[g.p.at] && d.poss[Copy(g.p)] == old(d.poss)[Copy(g.p)]
      requires forall y :: old(iwn) <= y < old(iwn) + n ==> ilist.addrs[y] == a + (y - old(iwn))
      requires ok || d.bad
      requires ok ==> d.bad == old(d.bad)
      requires ok ==> forall x :: a <= x < a + n ==> d.cur[x] == ilist.blks[old(iwn) + (x - a)]
      requires ok ==> forall x :: 0 <= x < |d.cur| && !(a <= x < a + n) ==> d.cur[x] == old(d.cur)[x]
      ensures InsI()
    {
      reveal InsI();
      if ok && !d.bad {
        forall x | 0 <= x < iwn ensures d.cur[ilist.addrs[x]] == ilist.blks[x] {
          if x >= old(iwn) { assert ilist.addrs[x] == a + (x - old(iwn)); }
          else { assert ilist.addrs[x] < ilist.addrs[old(iwn)]; }
        }
      }
    }
    // [F]
    method InstBarrier() returns (ok: bool)
      requires Inv() && g.ip == 1 && ilist != null && iwn == |ilist.addrs|
      modifies this, d
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == (if ok then 2 else 1) && ilist == old(ilist) && icn == old(icn)
      ensures repr == old(repr)
    {
      reveal Inv();
      InsLists();
      ghost var P := d.poss;
      ok := d.Barrier(Installing);
      BarrierPres(d.poss, P, g);
      InsFrame();
      if ok {
        InstDone();
        g := g.(ip := 2);
        InstDoneI();
      }
      LogFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // all blocks being installed are home, and durable
    lemma InstDone()
      requires InsI() && g.ip == 1 && !d.bad && ilist != null && iwn == |ilist.addrs| && Full(d.poss, g) && |d.poss| == |d.cur|
      requires home as int == Home(g.p) && forall a :: 0 <= a < |d.cur| && Owns(d.owner, Installing, a) ==> d.poss[a] == iset{d.cur[a]}
      ensures Full(d.poss, g.(ip := 2))
    {
      reveal InsI();
      forall a | a in g.im && Home(g.p) <= a < |d.poss| ensures d.poss[a] <= iset{g.im[a]} {
        assert a in ilist.addrs;
        var i :| 0 <= i < |ilist.addrs| && ilist.addrs[i] == a;
        assert d.cur[a] == ilist.blks[i];
      }
      InstBarrierPres(d.poss, g);
    }
    twostate lemma InstDoneI()
      requires d.owner == old(d.owner)
      requires old(InsI()) && old(g).ip == 1 && g == old(g).(ip := 2) && ilist != null && ilist == old(ilist) && iwn == old(iwn) && icn == old(icn) && hph == old(hph)
      requires home as int == Home(g.p) && |d.cur| == |d.poss| == |old(d.cur)|
      ensures InsI()
    { reveal InsI(); }
    lemma HdrPhase(copy: bool)
      requires Inv() && if copy then hph == 2 else g.ip == 2
      ensures 2 <= g.ip && ieq as int == g.hq + g.k && g.p.ep == seal.ep && g.p.key == seal.key
      ensures at as int == g.p.at && home as int - 1 == Copy(g.p) && at < home
    { reveal Inv(); reveal InsI(); }
    // what it means to write the header, or its copy
    lemma HdrReady(a: int, v: BV)
      requires Inv() && 2 <= g.ip && (a == g.p.at || a == Copy(g.p)) && HdrTail(v) && DecHdr(g.p.key, v) == Hdr(g.hq + g.k, g.p.ep)
      ensures 0 <= a < |d.poss| == |d.cur| && d.Valid() && Owns(d.owner, Installing, a) && Full(AddHdr(d.poss, a, v), g.(ip := 3))
      ensures forall x :: x in d.poss[a] ==> SameTail(x, v)
      ensures forall s :: CrashImg(AddHdr(d.poss, a, v), s) ==> s in d.ok
    {
      reveal Inv(); reveal InsI();
      HdrWritePres(d.poss, g, a, v);
      ghost var g1 := g.(ip := 3);
      assert DurState(g1) == DurState(g) && ComState(g1) == ComState(g);
      ComI();
      CrashAll(AddHdr(d.poss, a, v), g1, vs, lb, cl);
    }
    twostate lemma HdrWroteI(copy: bool, a: int, v: BV, ok: bool)
      requires old(InsI()) && g == old(g).(ip := 3) && ilist == old(ilist) && iwn == old(iwn) && icn == old(icn) && d.owner == old(d.owner)
      requires if copy then old(hph) == 2 else old(g).ip == 2
      requires hph == if ok then (if copy then 3 else 1) else old(hph)
      requires a == (if copy then Copy(g.p) else g.p.at) && 0 <= a < |d.cur| == |d.poss| == |old(d.cur)| == |old(d.poss)| && home as int == Home(g.p) == old(home) as int
      requires DecHdr(g.p.key, v) == Hdr(g.hq + g.k, g.p.ep)
      requires forall x :: 0 <= x < |d.poss| && x != a ==> d.poss[x] == old(d.poss)[x] && d.cur[x] == old(d.cur)[x]
      requires if ok then d.bad == old(d.bad) && d.cur[a] == v else d.bad
      ensures InsI()
    { reveal InsI(); }
    // [F] the header: from here on recovery may start after the installed groups. Then, when it
    // is durable, its copy: so there is always a header that is not being written.
    method HdrWrite(copy: bool) returns (ok: bool)
      requires Inv() && if copy then hph == 2 else g.ip == 2
      modifies this, d
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 3 && ilist == old(ilist) && icn == old(icn) && (ok ==> hph == if copy then 3 else 1)
      ensures repr == old(repr)
    {
      HdrPhase(copy);
      var b := seal.EncHdr(ieq);
      var a := if copy then home - 1 else at;
      HdrReady(a as int, b.v);
      reveal Inv();
      ok := d.WriteSector(Installing, a, b);
      g := g.(ip := 3);
      if ok { hph := if copy then 3 else 1; }
      HdrWroteI(copy, a as int, b.v, ok);
      LogFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [F]
    method HdrBarrier() returns (ok: bool)
      requires Inv() && (hph == 1 || hph == 3)
      modifies this, d
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 3 && ilist == old(ilist) && icn == old(icn)
      ensures ok ==> hph == old(hph) + 1
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI();
      ghost var P := d.poss;
      ok := d.Barrier(Installing);
      BarrierPres(d.poss, P, g);
      if ok { hph := hph + 1; }
      LogFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [F] Does the header bear our epoch still? Who opens the volume puts another there. If so,
    // the device is taken to have failed: nothing is acknowledged any more. If the header is none, its
    // copy tells. (What cannot be read tells nothing: writes and barriers fail of their own.)
    method HeaderIsOurs() returns (ok: bool)
      requires Inv()
      modifies d
      ensures Inv() && LKeep() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures ok ==> d.bad == old(d.bad)
      ensures !ok ==> d.bad
      ensures repr == old(repr)
    {
      reveal Inv();
      var io, b := d.Read(at);
      var is := false;
      if io { var q; is, q := seal.DecHdrM(b); }
      if !is { io, b := d.Read(home - 1); }
      ok := true;
      if io { ok := seal.Ours(b); }
      if !ok { d.Stop(); }
      LogFrame(); InsFrame(); CacheFrame(); HoldFrame(); RdFrame();
    }
    // [L] put one of the installed blocks into the cache
    method CacheInst()
      requires Inv() && mu.held && g.ip == 3 && ilist != null && icn < |ilist.addrs|
      requires 0 <= icn
      modifies this, cache
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures g.ip == 3 && ilist == old(ilist) && icn == old(icn) + 1 && hph == old(hph)
      ensures repr == old(repr)
    {
      reveal Inv(); reveal InsI(); reveal CacheI();
      var i := icnr;
      var a := ilist.AddrAt(i);
      var b := ilist.BlkAt(i);
      DirApart();
      cache.Put(a, b);
      icn := icn + 1; icnr := icnr + 1;
      LogFrame(); HoldFrame(); RdFrame();
    }
    // [L] the log space is free
    method FinishInstall()
      requires Inv() && mu.held && hph == 4 && ilist != null && icn == |ilist.addrs| && trims < 0x3FFF_FFFF_FFFF_0000
      modifies this, d`owner
      ensures Inv() && LKeep() && Mono() && vs == old(vs) && lb == old(lb) && g.ip == 0
      ensures fresh(repr - old(repr))
    {
      reveal Inv();
      HdrFacts();
      var e := NewBMap(); var f := NewBMap();
      ghost var g1 := IFinished(g);
      IFinishPres(d.poss, g);
      assert g1.gs[g1.k..] == g.gs[g.k..];
      d.Leave(Installing);
      FinishInstallFields(e, f, g1);
      LogFrame(); InsNone(); CacheDone(); RdNext();
      HoldDone();
      NoteInstall();
    }
    // [L] an installation is over
    method NoteInstall()
      requires mu.held
    {
      var n := notes.Get(NInstalls);
      if n < 0xFFFF_FFFF_FFFF_FFFF { notes.Set(NInstalls, n + 1); }
      mu.WakeAll(CSpace);
      mu.WakeOne(CLogger);
    }

    method FinishInstallFields(e: BMap, f: BMap, ghost g1: G)
      requires trims < 0x3FFF_FFFF_FFFF_0000
      modifies this
      ensures inm == e && iho == f && repr == old(repr) + {e, f} && g == g1 && trims == old(trims) + 1
      ensures hq == ieq && lo == ilo && ilist == null && iwn == 0 && icn == 0 && icnr == 0 && hph == 0
      ensures running == old(running) && lgm == old(lgm) && lho == old(lho) && cgm == old(cgm) && cdm == old(cdm) && cbk == old(cbk) && clist == old(clist) && dlist == old(dlist) &&
              ieq == old(ieq) && eq == old(eq) && ilo == old(ilo) && wp == old(wp) && nvs == old(nvs) && ncl == old(ncl) && nlb == old(nlb) &&
              busy == old(busy) && vs == old(vs) && lb == old(lb) && cl == old(cl) && rds == old(rds) && lph == old(lph) && lwn == old(lwn) && ldn == old(ldn) && lwd == old(lwd)
    {
      inm := e; iho := f; repr := repr + {e, f};
      hq := ieq; lo := ilo; ilist := null; iwn := 0; icn := 0; icnr := 0;
      trims := trims + 1;
      hph := 0;
      g := g1;
    }
    twostate lemma HoldDone()
      requires old(HoldI()) && g.sg == old(g).sg && g.hq == old(g).hq + old(g).k && g.k == 0 && lho.m == old(lho.m) && cdm.m == old(cdm.m)
      ensures HoldI()
    { reveal HoldI(); }

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
      if b == null { b := cdm.Get(a); }
      if b == null { b := lgm.Get(a); }
      if b == null { b := inm.Get(a); }
      if b == null { b := cache.Get(a); }
    }
    // Block a was seen to hold v since the ticket t was given.
    predicate WasRead(a: int, t: uint64, v: BV) reads this { |v| == 4096 && exists r :: r in rds && r.a == a && r.v == v && r.t >= t as int }
    // [F] read n home blocks, from a on
    method ReadHome(a: uint64, n: uint64, t: uint64) returns (ok: bool, l: BList)
      requires Inv() && home <= a && a as int + n as int <= sz as int && t <= trims
      modifies this
      ensures Inv() && LKeep() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures ok ==> |l.blks| == n as int && forall i :: 0 <= i < n as int ==> WasRead(a as int + i, t, l.blks[i])
      ensures repr == old(repr)
    {
      OnDisk();
      ok, l := d.ReadRun(a, n);
      if ok { AllSeen(a as int, t, l.blks); }
    }
    ghost method AllSeen(a: int, t: uint64, v: seq<BV>)
      requires Inv() && home as int <= a && a + |v| <= sz as int == |d.poss| && t <= trims
      requires forall i :: 0 <= i < |v| ==> v[i] in d.poss[a + i] && |v[i]| == 4096
      modifies this
      ensures Inv() && LKeep() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && repr == old(repr)
      ensures forall i :: 0 <= i < |v| ==> WasRead(a + i, t, v[i])
    {
      var n := 0;
      while n < |v|
        invariant n <= |v| && Inv() && LKeep() && IKeep() && Mono() && vs == old(vs) && lb == old(lb) && repr == old(repr)
        invariant forall i :: 0 <= i < n ==> WasRead(a + i, t, v[i])
      {
        HomeRead(a + n, v[n]);
        var r := Rd(a + n, trims as int, v[n]);
        Seen(r);
        assert r in rds;
        n := n + 1;
      }
    }
    lemma OnDisk()
      requires Inv()
      ensures d.Valid() && |d.cur| == sz as int
    { reveal Inv(); }
    // what a home block may be found to hold
    lemma HomeRead(a: int, x: BV)
      requires Inv() && home as int <= a < sz as int == |d.poss| && x in d.poss[a]
      ensures a in g.base && (x == g.base[a] || Pending(a))
    {
      reveal Inv();
      LogFacts(); FullD(d.poss, g);
      assert HomePoss(d.poss[a], g, a);
    }
    ghost method Seen(r: Rd)
      requires Inv() && r.t == trims as int && r.a in g.base && (r.v == g.base[r.a] || Pending(r.a))
      modifies this
      ensures Inv() && LKeep() && IKeep() && Mono() && vs == old(vs) && lb == old(lb)
      ensures rds == old(rds) + {r} && repr == old(repr)
    {
      reveal Inv();
      rds := rds + {r};
      LogFrame(); InsFrame(); CacheFrame(); HoldFrame();
      assert RdI() by { reveal RdI(); }
    }
    // [L] validate the block read; null = retry
    method Lookup2(a: uint64, t: uint64, c: Blk) returns (b: Blk?)
      requires Inv() && mu.held && home <= a < sz && WasRead(a as int, t, c.v)
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
}
