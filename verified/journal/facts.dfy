// What the invariant says in its parts, and when parts of it are kept by steps that change
// what they speak about and are not theirs: LogI by the installer's, InsI by the logger's.
// (What a step does not modify at all needs no lemma: each part names what it reads.)
include "state.dfy"

module JournalFacts {
  import opened Machine
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened TreeModel
  import opened TreeOfCodes
  import opened TreeSaid

  // what LogI says, without the disk
  lemma LogFacts(j: Journal)
    requires j.LogI()
    ensures 0 <= j.lg.ph <= 4 && |j.lg.bodies| == |j.lg.ps| == j.lg.np as int && Chain(j.lg.newest, j.lg.bodies, j.lg.maps) && (j.lg.ph != 1 ==> j.lg.ring == null && j.lg.dir == null) && (j.lg.ph >= 2 ==> j.lg.ps != []) && |j.cgm.addrs| + |j.cdm.addrs| <= 500 * (|j.lg.ps| + if j.lg.ph == 1 then 1 else 0) && j.lg.pos as int == PendEnd(j.g()) && End(j.g()) + |j.lg.ps| < 0x1FFF_FFFF_FFFF_FFFF && j.lg.pos < 0x1FFF_FFFF_FFFF_0000
    ensures j.lg.ph == 1 ==> j.lg.ring != null && j.lg.dir != null && j.Frozen(j.lg.ring, j.lg.dir)
    ensures j.lg.ph != 1 ==> j.cgm.m == Merge(Ms(j.lg.ps)) && j.cdm.m == Merge(Hs(j.lg.ps))
    ensures forall i :: 0 <= i < |j.lg.ps| ==> Body(j.lg.bodies[i], j.lg.ps[i])
    ensures CodesOf(j.lg.codes.s, Merge(Hs(j.lg.ps)), Home(j.geo), j.seal.key)
    ensures j.lg.ph == 2 ==> j.lg.ps != [] && j.lg.desc != null && j.lg.body != null && j.lg.dirs != null && |j.d.cur| >= Home(j.geo) && var e := j.lg.ps[|j.lg.ps|-1];
      j.lg.desc.v == e.b && |e.b| == 4096 && j.lg.body == j.lg.bodies[|j.lg.ps|-1] && Body(j.lg.body, e) && 0 <= j.lg.wn <= |e.d.addrs| && Lists(j.lg.dirs, e.h, Home(j.geo), |j.d.cur|) && 0 <= j.lg.dn <= |j.lg.dirs.addrs|
  { reveal j.LogI(); }
  // nobody but the logger writes the direct blocks of the frozen group and the pending ones
  lemma DirApart(j: Journal)
    requires j.LogI() && Full(j.d.poss, j.g())
    ensures forall a :: a in j.cdm.m ==> a !in j.cgm.m && a !in j.im && a !in Merge(j.gs)
  {
    LogFacts(j); FullD(j.d.poss, j.g());
    forall a | a in j.cdm.m ensures a !in j.cgm.m && a !in j.im && a !in Merge(j.gs) { DirOneApart(j, a); }
  }
  lemma DirOneApart(j: Journal, a: int)
    requires j.LogI() && DInv(j.d.poss, j.g()) && a in j.cdm.m
    ensures a !in j.cgm.m && a !in j.im && a !in Merge(j.gs)
  {
    LogFacts(j);
    if a in Merge(Hs(j.lg.ps)) {
      MergeKeys(Hs(j.lg.ps), a);
      var i :| 0 <= i < |j.lg.ps| && a in Hs(j.lg.ps)[i];
      PendHome(j.g(), |j.d.poss|, i, a);
      if j.lg.ph == 1 && a in j.lg.ring.m { PendDirect(j.g(), i, a); }
    } else {
      assert j.lg.ph == 1 && a in j.lg.dir.m;
      if a in Merge(j.gs) { MergeKeys(j.gs, a); }
      if a in j.im { MergeKeys(j.gs[..j.k], a); }
      if a in Merge(Ms(j.lg.ps)) { MergeKeys(Ms(j.lg.ps), a); var i :| 0 <= i < |j.lg.ps| && a in Ms(j.lg.ps)[i]; assert a in j.lg.ps[i].m; }
    }
  }
  lemma PendDirect(g: G, i: int, a: int)
    requires Free(g) && 0 <= i < |g.ps| && a in g.ps[i].h
    ensures Direct(g.sg, g.hq, a)
  { reveal Free(); assert DirPend(g.ps, i, a); DirectFrom(g.sg, g.hq, End(g) + i, a); }
  // what InsI says of the list of the installer
  lemma InsLists(j: Journal)
    requires j.InsI() && j.ins.ip > 0 && j.ins.list != null
    ensures |j.d.cur| >= Home(j.geo) && Lists(j.ins.list, j.im, j.home as int, |j.d.cur|) && 0 <= j.ins.wn <= |j.ins.list.addrs|
  { reveal j.InsI(); }
  // ... and of a durable header
  lemma HdrFacts(j: Journal)
    requires j.InsI() && j.ins.hph == 4
    ensures j.ins.ip == 3 && GeoOk(j.geo) && |j.d.poss| >= Home(j.geo)
    ensures j.Passes(j.d.poss[j.geo.at]) && j.Passes(j.d.poss[Copy(j.geo)])
  { reveal j.InsI(); }
  // the blocks that have an owner
  lemma Owned(j: Journal)
    requires j.OwnI()
    ensures forall a :: a in j.d.owner <==> ((j.lg.ph >= 1 || j.lg.ps != []) && (j.geo.at < a < Copy(j.geo) || a in j.cdm.m)) || (j.ins.ip > 0 && (j.tree.first as int <= a < j.geo.at || a == j.geo.at || a == Copy(j.geo) || a in j.im))
  {
    reveal j.OwnI();
    forall a | a in j.d.owner ensures Owns(j.d.owner, Logging, a) || Owns(j.d.owner, Installing, a) { assert !Owns(j.d.owner, Recovering, a); }
    forall a ensures Owns(j.d.owner, Logging, a) ==> a in j.d.owner {}
    forall a ensures Owns(j.d.owner, Installing, a) ==> a in j.d.owner {}
  }
  // blocks that one role owns are none of the other's
  lemma Elsewhere(o: map<int, Role>, r: Role, other: Role, a: int, n: int)
    requires r != other && forall x :: a <= x < a + n ==> Owns(o, r, x)
    ensures forall x :: Owns(o, other, x) ==> !(a <= x < a + n)
  { forall x | Owns(o, other, x) ensures !(a <= x < a + n) { if a <= x < a + n { assert Owns(o, r, x); } } }
  // the fields are what the ghost state says
  lemma GeoFacts(j: Journal)
    requires j.Inv()
    ensures GeoOk(j.geo) && j.geo.bit == j.bit as int && j.geo.flo == j.flo as int && j.geo.fhi == j.fhi as int
  { reveal j.Inv(); }
  lemma Counters(j: Journal)
    requires j.Inv()
    ensures j.hq <= j.eq && j.geo.nd == j.nd as int && j.geo.nr == j.nr as int && j.eq as int == End(j.g())
    ensures j.busy <==> j.lg.ph != 0
    ensures j.lo <= j.wp && j.nr < 0x1_0000_0000
    ensures |j.running.addrs| <= 500 && |j.lgm.addrs| < 0x1_0000_0000 && |j.gs| == j.eq as int - j.hq as int
  { reveal j.Inv(); }

  // no block that goes straight home is one of those that did and are held
  lemma HeldApart(j: Journal)
    requires j.LogI() && j.HoldI() && Full(j.d.poss, j.g()) && j.lg.ph != 1
    ensures forall a :: a in j.cdm.m ==> a !in j.lho.m && a !in j.iho.m
  {
    reveal j.HoldI(); FullD(j.d.poss, j.g()); LogFacts(j);
    forall a | a in j.lho.m || a in j.iho.m ensures a !in j.cdm.m {
      MergeCat(j.hs[..j.k], j.hs[j.k..]); assert j.hs == j.hs[..j.k] + j.hs[j.k..];
      MergeKeys(j.hs, a);
      var i :| 0 <= i < |j.hs| && a in j.hs[i];
      KeptHome(j.g(), |j.d.poss|, i, a);
      if a in Merge(Hs(j.lg.ps)) { MergeKeys(Hs(j.lg.ps), a); var x :| 0 <= x < |j.lg.ps| && a in Hs(j.lg.ps)[x]; assert a in j.lg.ps[x].h; }
    }
  }
  // what the blocks that are held have to do with an installation
  lemma HeldLive(j: Journal, a: int)
    requires j.HoldI() && Full(j.d.poss, j.g()) && (a in j.lho.m || a in j.iho.m)
    ensures a in j.base && a !in j.im && (a in j.iho.m ==> a !in j.lho.m)
  {
    reveal j.HoldI(); FullD(j.d.poss, j.g());
    MergeCat(j.hs[..j.k], j.hs[j.k..]); assert j.hs == j.hs[..j.k] + j.hs[j.k..];
    MergeKeys(j.hs, a);
    var i :| 0 <= i < |j.hs| && a in j.hs[i];
    KeptHome(j.g(), |j.d.poss|, i, a);
    if a in j.iho.m && a in j.lho.m {
      MergeKeys(j.hs[..j.k], a); var x :| 0 <= x < |j.hs[..j.k]| && a in j.hs[..j.k][x]; assert a in j.hs[x];
      MergeFrom(j.hs, j.k, a); var y :| j.k <= y < |j.hs| && a in j.hs[y];
      assert false by { reveal Trees(); }
    }
  }
  // what the next tree is to say
  lemma NextHome(j: Journal)
    requires j.HoldI() && Full(j.d.poss, j.g()) && j.ins.ip >= 1
    ensures j.ins.tb2.Keys == j.ins.tb.Keys == j.base.Keys
    ensures forall a :: a in j.base && a in j.im ==> j.ins.tb2[a] == j.im[a]
    ensures forall a :: a in j.iho.m ==> a in j.base && j.ins.tb2[a] == j.base[a]
    ensures forall a :: a in j.base && a !in j.im && a !in j.iho.m ==> j.ins.tb2[a] == j.ins.tb[a]
  {
    FullD(j.d.poss, j.g()); reveal Trees(); reveal j.HoldI();
    assert j.base.Keys == j.ins.tb2.Keys;
    var x := Over(j.base, j.im); var y := Over(j.ins.tb2, Merge(j.hs[j.k..]));
    assert x == y;
    forall a | a in j.base && a in j.im ensures j.ins.tb2[a] == j.im[a] {
      if a in j.lho.m { HeldLive(j, a); }
      assert a !in Merge(j.hs[j.k..]) && x[a] == y[a];
    }
    forall a | a in j.iho.m ensures a in j.base && j.ins.tb2[a] == j.base[a] {
      HeldLive(j, a);
      assert a !in Merge(j.hs[j.k..]) && x[a] == y[a];
    }
  }
  // a block that is what the code says that counts now is what it should be
  lemma Accepted(j: Journal, a: int, b: BV)
    requires j.Inv() && j.tree.np > 0 && j.tree.Ok() && j.home as int <= a < j.home as int + j.tree.n as int && |j.tree.pages.vs| > 0 && PagesOk(j.tree.seal.t, j.tree.Now())
    requires Vouches(j.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), b)
    ensures a in j.base && b == j.base[a]
  { Vouched(j, a); VouchOne(j.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), b, j.base[a]); }

  // LogI when nothing is changed of what the logger owns
  twostate lemma LogFrame(j: Journal)
    requires old(j.LogI()) && old(j.OwnI()) && DiskKept(j.d, Logging) && SameForLog(old(j.g()), j.g()) && j.wp == old(j.wp) && unchanged(j.lg, j.lg.codes)
    requires (j.lg.ring != null ==> unchanged(j.lg.ring)) && (j.lg.dir != null ==> unchanged(j.lg.dir)) && Full(old(j.d.poss), old(j.g()))
    requires j.cgm == old(j.cgm) && j.cdm == old(j.cdm) && unchanged(j.cgm, j.cdm) && |j.gs| == |j.ds| == |j.hs| && 0 <= j.k <= |j.gs|
    ensures j.LogI()
  {
    reveal j.LogI();
    assert PendEnd(j.g()) == old(PendEnd(j.g()));
    if j.lg.ph == 1 { ReadyKeep(old(j.g()), j.g(), j.lg.ring.m, j.lg.dir.m); assert j.Frozen(j.lg.ring, j.lg.dir); }
    OwnPend(j);
    if !j.d.bad { forall i | 0 <= i < (if j.lg.ph == 2 then |j.lg.ps| - 1 else |j.lg.ps|) ensures Written(j.geo, j.d.cur, j.lg.ps[i]) { assert Written(j.geo, old(j.d.cur), j.lg.ps[i]); } }
    if j.lg.ph == 3 { AllHomeKeep(j); }
  }
  // the logger owns the log and the direct blocks of all pending groups
  twostate lemma OwnPend(j: Journal)
    requires old(j.LogI()) && old(j.OwnI())
    ensures old(j.lg.ps) != [] ==> (forall a :: j.geo.at < a < Copy(j.geo) ==> Owns(old(j.d.owner), Logging, a)) && forall i, a {:trigger a in old(j.lg.ps)[i].h} :: 0 <= i < |old(j.lg.ps)| && a in old(j.lg.ps)[i].h ==> Owns(old(j.d.owner), Logging, a)
  {
    reveal j.OwnI(); reveal j.LogI();
    forall i, a | 0 <= i < |old(j.lg.ps)| && a in old(j.lg.ps)[i].h ensures a in old(j.cdm.m) { MergeHas(Hs(old(j.lg.ps)), i, a); }
  }
  twostate lemma AllHomeKeep(j: Journal)
    requires SameForLog(old(j.g()), j.g()) && AllHome(old(j.d.poss), old(j.g())) && |j.d.poss| == |old(j.d.poss)|
    requires j.lg.ps != [] ==> (forall a :: j.geo.at < a < Copy(j.geo) && a < |j.d.poss| ==> j.d.poss[a] <= old(j.d.poss)[a]) && forall i, a {:trigger a in j.lg.ps[i].h} :: 0 <= i < |j.lg.ps| && a in j.lg.ps[i].h && 0 <= a < |j.d.poss| ==> j.d.poss[a] <= old(j.d.poss)[a]
    ensures AllHome(j.d.poss, j.g())
  {
    forall i | 0 <= i < |j.lg.ps| ensures PendLogged(j.d.poss, j.g(), j.lg.ps[i], End(j.g()) + i) {
      var e := j.lg.ps[i]; var sq := End(j.g()) + i;
      assert PendLogged(old(j.d.poss), old(j.g()), e, sq);
      LoggedLess(j.d.poss, old(j.d.poss), j.g(), old(j.g()), e.m, e.h, e.d, sq);
      forall a | a in e.h ensures 0 <= a < |j.d.poss| && j.d.poss[a] <= iset{e.h[a]} { assert a in j.lg.ps[i].h; }
    }
  }
  // InsI when nothing is changed of what the installer owns
  twostate lemma InsFrame(j: Journal)
    requires old(j.InsI()) && old(j.OwnI()) && DiskKept(j.d, Installing) && SameForIns(old(j.g()), j.g()) && unchanged(j.ins)
    requires j.icnr == old(j.icnr) && j.cached == old(j.cached) && j.home as int == Home(j.geo)
    ensures j.InsI()
  { reveal j.InsI(); reveal j.OwnI(); }
  // PagesI when nothing is changed of the tree's blocks
  twostate lemma PagesFrame(j: Journal)
    requires old(j.PagesI()) && j.tree.Ok() && j.ins.wr == old(j.ins.wr) && (j.ins.ip == 1 ==> old(j.ins.ip) == 1) && (j.ins.ip >= 2 ==> j.ins.ip == old(j.ins.ip) && j.ins.r2 == old(j.ins.r2)) && unchanged(j.tree.pages)
    requires |j.d.cur| == |j.d.poss| == |old(j.d.poss)| == |old(j.d.cur)|
    requires forall x :: j.tree.first as int <= x < j.tree.first as int + 2 * j.tree.np as int && x < |j.d.poss| ==> j.d.poss[x] <= old(j.d.poss)[x] && (j.d.bad || (!old(j.d.bad) && j.d.cur[x] == old(j.d.cur)[x]))
    ensures j.PagesI()
  {
    reveal j.PagesI();
    if j.Sound() && j.tree.np > 0 { PagesLess(j.tree.seal.t, j.tree.first as int, old(j.d.poss), j.d.poss, j.tree.Now(), j.tree.Root()); }
  }
  // Whatever a crash leaves, the pages of each header's tree are where they say, if the device can be trusted.
  lemma CrashSits(j: Journal, s: Img)
    requires j.Inv() && j.Sound() && CrashImg(j.d.poss, s)
    ensures HeadersSit(j.geo, j.tree.first as int, s)
  {
    reveal j.Inv(); reveal j.PagesI(); FullD(j.d.poss, j.g());
    var t, first := j.tree.seal.t, j.tree.first as int;
    forall a | (a == j.geo.at || a == Copy(j.geo)) && DecHdr(j.geo.key, s[a]).Hdr? ensures SitsOn(t, first, s, DecHdr(j.geo.key, s[a]).root) {
      var r := DecHdr(j.geo.key, s[a]).root;
      assert s[a] in j.d.poss[a] && HdrOk(s[a], j.g());
      if j.tree.np > 0 { j.tree.pages.Trees(); if r == j.ins.r { CrashNow(j, s); } else { CrashNext(j, s); } }
    }
  }
  lemma CrashNow(j: Journal, s: Img)
    requires j.PagesI() && j.TreeI() && j.Sound() && j.tree.np > 0 && CrashImg(j.d.poss, s) && j.geo.tree == j.tree.seal.t
    ensures SitsOn(j.tree.seal.t, j.tree.first as int, s, j.ins.r)
  {
    reveal j.PagesI(); reveal j.TreeI();
    var t, first, pg, r := j.tree.seal.t, j.tree.first as int, j.tree.Now(), j.ins.r;
    forall p | 0 <= p < t.np && PageCode(t, pg, r, p) != CV(0, 0) ensures 0 <= PlaceOf(first, p, pg[p]) < |s| && s[PlaceOf(first, p, pg[p])] == pg[p] {
      assert Sits(first, j.d.poss, p, PageCode(t, pg, r, p), pg[p]);
      assert s[PlaceOf(first, p, pg[p])] in j.d.poss[PlaceOf(first, p, pg[p])];
    }
    assert IsTree(t, pg, r) && PagesOn(t, first, s, pg, r);
  }
  lemma CrashNext(j: Journal, s: Img)
    requires j.PagesI() && j.Sound() && j.tree.np > 0 && j.tree.Ok() && CrashImg(j.d.poss, s) && j.ins.ip == 3
    ensures SitsOn(j.tree.seal.t, j.tree.first as int, s, j.ins.r2)
  {
    reveal j.PagesI();
    var t, first, r := j.tree.seal.t, j.tree.first as int, j.ins.r2;
    var pg :| NextPages(j.tree, j.ins.wr, pg, r) && IsTree(t, pg, r);
    forall p | 0 <= p < t.np && PageCode(t, pg, r, p) != CV(0, 0) ensures 0 <= PlaceOf(first, p, pg[p]) < |s| && s[PlaceOf(first, p, pg[p])] == pg[p] {
      if p !in j.ins.wr { assert Sits(first, j.d.poss, p, PageCode(t, j.tree.Now(), j.tree.Root(), p), j.tree.Now()[p]); }
      assert s[PlaceOf(first, p, pg[p])] in j.d.poss[PlaceOf(first, p, pg[p])];
    }
    assert PagesOn(t, first, s, pg, r);
  }
  // the newest code of a block is that of what is at home
  lemma Vouched(j: Journal, a: int)
    requires j.Inv() && j.tree.np > 0 && j.tree.Ok() && j.home as int <= a < j.home as int + j.tree.n as int && |j.tree.pages.vs| > 0 && PagesOk(j.tree.seal.t, j.tree.Now())
    ensures a in j.base && Vouches(j.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), j.base[a])
  {
    reveal j.Inv(); reveal j.TreeI(); reveal j.HoldI();
    FullD(j.d.poss, j.g()); reveal Trees();
    var x := a - j.home as int;
    assert x + j.home as int == a;
    if x !in j.tree.pages.held {
      MergeCat(j.hs[..j.k], j.hs[j.k..]); assert j.hs == j.hs[..j.k] + j.hs[j.k..];
      assert a !in Merge(j.hs);
    }
  }
  twostate lemma RdFrame(j: Journal)
    requires old(j.RdI()) && j.base == old(j.base) && j.trims == old(j.trims) && j.rds == old(j.rds)
    requires forall a :: old(j.Pending(a)) ==> j.Pending(a)
    ensures j.RdI()
  { reveal j.RdI(); }
}
