// The installer's steps: it freezes the logged groups, writes their newest contents home, then
// the header, from which on recovery starts behind them, and puts them into the cache.
include "facts.dfy"
include "policy.dfy"

module JournalInstaller {
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
  import opened JournalPolicy
  import opened TreeModel
  import opened TreeOfCodes
  import opened TreeSaid

  // [L] freeze the logged groups for installation, if there is enough of them
  method StartInstall(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.Inside() && j.ins.ip == 0
    modifies j`inm, j`lgm, j`iho, j`lho, j`repr, j`ilo, j`ieq, j`icnr, j`cached, j`k, j`im, j.ins, j.d`owner
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures j.ins.ip == (if ok then 1 else 0) && (ok ==> j.ins.list == null && j.ins.wn == 0 && j.icnr == 0 && j.ins.hph == 0 && j.ins.wr == map[])
    ensures fresh(j.repr - old(j.repr))
  {
    Counters(j);
    ok := WantInstall(j);
    if ok { FreezeLogged(j); }
  }
  // [L] ... they are what is being installed
  method FreezeLogged(j: Journal)
    requires j.Inv() && j.mu.Inside() && j.ins.ip == 0
    modifies j`inm, j`lgm, j`iho, j`lho, j`repr, j`ilo, j`ieq, j`icnr, j`cached, j`k, j`im, j.ins, j.d`owner
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures j.ins.ip == 1 && j.ins.list == null && j.ins.wn == 0 && j.icnr == 0 && j.ins.hph == 0 && j.ins.wr == map[]
    ensures fresh(j.repr - old(j.repr))
  {
    var r := NewBMap(); var f := NewBMap();
    ghost var g1 := IStarted(j.g());
    StartG(j);
    reveal j.Inv();
    ghost var pages := set a | j.tree.first as int <= a < j.at as int;
    j.d.Take(Installing, pages + {j.at as int, j.home as int - 1} + g1.im.Keys);
    StartInstallFields(j, r, f);
    assert j.g() == g1;
    AmongKeep(old(j.g()), g1, j.vs, j.lb, j.cl);
    OwnBegun(j);
    LogFrame(j); RdFrame(j); InsNone(j); CacheBegun(j); HoldBegun(j); TreeBegun(j);
    assert j.PagesI() by { reveal j.PagesI(); }
  }
  // what starting means for the protocol's state; and nobody owns what the installer needs
  lemma StartG(j: Journal)
    requires j.Inv() && j.ins.ip == 0
    ensures var g1 := IStarted(j.g()); Full(j.d.poss, g1) && DurState(g1) == DurState(j.g()) && g1.gs[g1.k..] == [] && SameForLog(j.g(), g1)
    ensures j.k == 0 && j.im == map[] && j.lgm.m == Merge(j.gs)
    ensures forall a :: j.tree.first as int <= a < j.at as int || a == j.at as int || a == j.home as int - 1 || a in Merge(j.gs) ==> a !in j.d.owner
  {
    reveal j.Inv();
    IStartPres(j.d.poss, j.g());
    assert j.gs[j.k..] == j.gs && j.gs[..0] == [];
    DirApart(j); Owned(j);
  }
  // what the beginning of an installation means for OwnI, HoldI, CacheI
  twostate lemma OwnBegun(j: Journal)
    requires old(j.OwnI()) && old(j.ins.ip) == 0 && j.ins.ip == 1 && j.lg.ph == old(j.lg.ph) && j.lg.ps == old(j.lg.ps) && j.cdm == old(j.cdm) && unchanged(j.cdm)
    requires forall x, a :: Owns(j.d.owner, x, a) <==> Owns(old(j.d.owner), x, a) || (x == Installing && (j.tree.first as int <= a < j.geo.at || a == j.geo.at || a == Copy(j.geo) || a in j.im))
    ensures j.OwnI()
  { reveal j.OwnI(); }
  method StartInstallFields(j: Journal, r: BMap, f: BMap)
    modifies j`inm, j`lgm, j`iho, j`lho, j`repr, j`ilo, j`ieq, j`icnr, j`cached, j`k, j`im, j.ins
    ensures j.inm == old(j.lgm) && j.lgm == r && j.iho == old(j.lho) && j.lho == f && j.repr == old(j.repr) + {r, f}
    ensures j.ilo == j.wp && j.ieq == j.eq && j.icnr == 0 && j.cached == {} && j.k == |j.gs| && j.im == Merge(j.gs)
    ensures j.ins.ip == 1 && j.ins.list == null && j.ins.wn == 0 && j.ins.hph == 0 && j.ins.wr == map[] && j.ins.lost == old(j.ins.lost)
    ensures j.ins.r == old(j.ins.r) && j.ins.tb == old(j.ins.tb) && j.ins.r2 == old(j.ins.r2) && j.ins.tb2 == Over(j.base, Merge(j.gs))
  {
    j.inm := j.lgm;
    j.lgm := r; j.iho := j.lho; j.lho := f; j.repr := j.repr + {r, f};
    j.ilo := j.wp; j.ieq := j.eq; j.icnr := 0; j.cached := {};
    j.k := |j.gs|; j.im := Merge(j.gs);
    j.ins.ip := 1; j.ins.list := null; j.ins.wn := 0; j.ins.hph := 0; j.ins.tb2 := Over(j.base, Merge(j.gs)); j.ins.wr := map[];
  }
  twostate lemma HoldBegun(j: Journal)
    requires old(j.HoldI()) && old(j.LogI()) && Full(j.d.poss, old(j.g())) && old(j.k) == 0 && j.g() == IStarted(old(j.g())) && j.cdm.m == old(j.cdm.m) && j.iho.m == old(j.lho.m) && j.lho.m == map[]
    ensures j.HoldI()
  {
    reveal j.HoldI(); reveal j.LogI(); FullD(j.d.poss, old(j.g()));
    assert j.hs[..j.k] == j.hs && old(j.hs)[0..] == j.hs && j.hs[j.k..] == [];
    forall a | Direct(j.seal.signed, j.hq as int + j.k, a) ensures a in j.cdm.m {
      var r :| r in j.seal.signed && DirectOf(r, j.hq as int + j.k, a);
      assert !Below(r, End(old(j.g())));
      var i :| 0 <= i < |j.lg.ps| && IsPend(j.lg.ps[i], r);
      assert a in j.lg.ps[i].h;
      MergeHas(Hs(j.lg.ps), i, a);
    }
  }
  twostate lemma TreeBegun(j: Journal)
    requires old(j.TreeI()) && old(j.HoldI()) && old(j.k) == 0 && j.iho.m == old(j.lho.m) && j.lho.m == map[] && j.base == old(j.base) && j.ins.r == old(j.ins.r) && j.ins.tb == old(j.ins.tb)
    requires unchanged(j.tree.pages)
    ensures j.TreeI()
  { reveal j.TreeI(); reveal j.HoldI(); assert old(j.hs)[..0] == []; }
  twostate lemma CacheBegun(j: Journal)
    requires j.cdm.m == old(j.cdm.m)
    requires old(j.CacheI()) && j.cache.m == old(j.cache.m) && old(j.im) == map[] && j.base == old(j.base) && j.cached == {}
    ensures j.CacheI()
  { reveal j.CacheI(); }
  // the beginning and the end of an installation
  lemma InsNone(j: Journal)
    requires 0 <= j.ins.ip <= 1 && j.ins.list == null && j.icnr == 0 && j.ins.wn == 0 && j.ins.hph == 0 && GeoOk(j.geo) && |j.d.cur| == |j.d.poss| >= Home(j.geo)
    ensures j.InsI()
  { reveal j.InsI(); }
  // [F] sort the frozen map by address
  method InstSort(j: Journal) returns (l: BList)
    requires j.Inv() && j.mu.settled == j.ins && j.ins.ip == 1 && j.ins.list == null
    modifies j.ins`list, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures j.ins.list == l && j.ins.wn == 0 && j.icnr == 0 && |l.blks| == |l.addrs|
  {
    reveal j.Inv(); reveal j.InsI();
    l := j.inm.Sorted();
    SortedLen(l.addrs, j.sz as int);
    j.ins.list := l;
  }
  // [F] write blocks of the frozen map home, from the i-th on as long as their addresses are adjacent
  method InstWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mu.settled == j.ins && j.ins.ip == 1 && j.ins.list != null && i as int == j.ins.wn < |j.ins.list.addrs|
    modifies j.ins`wn, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.ins.wn <= |j.ins.list.addrs|
    ensures !ok ==> j.d.bad
  {
    reveal j.Inv();
    InsLists(j);
    var a;
    a, n := Adjacent(j.ins.list, i);
    InstRun(j, i as int, a as int, n as int);
    Elsewhere(j.d.owner, Installing, Logging, a as int, n as int);
    ok := j.d.WriteRun(Installing, a, j.ins.list, i, n);
    if ok { j.ins.wn := j.ins.wn + n as int; }
    InstWroteI(j, a as int, n as int, ok);
    LogFrame(j); PagesFrame(j);
  }
  // what it means to write home n blocks of the frozen map, from the i-th on
  lemma InstRun(j: Journal, i: int, a: int, n: int)
    requires j.Inv() && j.ins.ip == 1 && j.ins.list != null && 0 <= i && 1 <= n && i + n <= |j.ins.list.addrs|
    requires forall y :: i <= y < i + n ==> j.ins.list.addrs[y] == a + (y - i)
    ensures j.home as int <= a && a + n <= |j.d.cur| == |j.d.poss| && forall x :: a <= x < a + n ==> Owns(j.d.owner, Installing, x)
    ensures |j.ins.list.blks| == |j.ins.list.addrs| && forall x :: i <= x < i + n ==> |j.ins.list.blks[x]| == 4096
    ensures Full(Fuzzy(j.d.poss, a, n), j.g()) && forall s :: CrashImg(Fuzzy(j.d.poss, a, n), s) ==> s in j.d.ok
  {
    reveal j.Inv(); reveal j.OwnI();
    InsLists(j);
    ghost var last := i + n - 1;
    assert j.ins.list.addrs[last] == a + (n - 1) < |j.d.cur|;
    assert j.home as int <= j.ins.list.addrs[i];
    forall x | a <= x < a + n ensures x in j.im { assert j.ins.list.addrs[i + (x - a)] == x; }
    InstWritePres(j.d.poss, j.g(), a, n);
    LogFacts(j);
    CrashAll(Fuzzy(j.d.poss, a, n), j.g(), j.vs, j.lb, j.cl);
  }
  twostate lemma InstWroteI(j: Journal, a: int, n: int, ok: bool)
    requires old(j.InsI()) && j.g() == old(j.g()) && j.ins.ip == 1 && j.ins.list != null && j.ins.list == old(j.ins.list) && j.icnr == old(j.icnr) && j.cached == old(j.cached) && j.ins.hph == old(j.ins.hph)
    requires 0 <= old(j.ins.wn) && 0 < n && old(j.ins.wn) + n <= |j.ins.list.addrs| == |j.ins.list.blks| && j.ins.wn == if ok then old(j.ins.wn) + n else old(j.ins.wn)
    requires |j.d.cur| == |j.d.poss| == |old(j.d.cur)| == |old(j.d.poss)| && j.home as int == Home(j.geo) <= a && a + n <= |j.d.cur|
    requires 0 <= j.geo.at < Copy(j.geo) < Home(j.geo) && j.d.poss[j.geo.at] == old(j.d.poss)[j.geo.at] && j.d.poss[Copy(j.geo)] == old(j.d.poss)[Copy(j.geo)]
    requires forall y :: old(j.ins.wn) <= y < old(j.ins.wn) + n ==> j.ins.list.addrs[y] == a + (y - old(j.ins.wn))
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    requires ok ==> forall x :: a <= x < a + n ==> j.d.cur[x] == j.ins.list.blks[old(j.ins.wn) + (x - a)]
    requires ok ==> forall x :: 0 <= x < |j.d.cur| && !(a <= x < a + n) ==> j.d.cur[x] == old(j.d.cur)[x]
    ensures j.InsI()
  {
    reveal j.InsI();
    if ok && !j.d.bad {
      forall x | 0 <= x < j.ins.wn ensures j.d.cur[j.ins.list.addrs[x]] == j.ins.list.blks[x] {
        if x >= old(j.ins.wn) { assert j.ins.list.addrs[x] == a + (x - old(j.ins.wn)); }
        else { assert j.ins.list.addrs[x] < j.ins.list.addrs[old(j.ins.wn)]; }
      }
    }
  }
  // [F] the page of the tree with the codes of c from the i-th on, as far as they belong there, and where it
  // goes; !ok = a page that it depends on cannot be read, or is damaged
  method NextPage(j: Journal, c: Codes, i: uint64) returns (ok: bool, p: uint64, a: uint64, b: Blk, i1: uint64)
    requires j.Inv() && j.mu.settled == j.ins && i as int < |c.s| && j.tree.np > 0 && ListOk(j.tree.seal.t, c.s)
    modifies j.ins`lost, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono() && (!ok ==> j.ins.lost)
    ensures j.tree.Ok() && |b.v| == 4096 && i <= i1 && i1 as int <= |c.s| && |j.tree.pages.vs| == |j.tree.pages.rs| > 0 && IsTree(j.tree.seal.t, j.tree.Now(), j.tree.Root())
    ensures ok ==> p < j.tree.np && NewPlace(j, p, a, b.v) && Wrote(c.s, i as int, i1 as int, p as int, j.tree.Now()[p], b.v)
  {
    reveal j.Inv();
    reveal j.PagesI();
    ok, p, a, b, i1 := Changed(j.tree, c, i);
    if !ok { j.notes.Damaged(a); j.ins.lost := true; }
    reveal j.InsI();
  }
  // a is where contents b of page p say that they are to be; and not where the newest version was found, nor, if the device is sound, where that says it is
  predicate NewPlace(j: Journal, p: uint64, a: uint64, b: BV) reads j.tree.pages`vs {
    Spares(j.tree, p, a) && |b| == 4096 && a as int == PlaceOf(j.tree.first as int, p as int, b) &&
    (j.Sound() ==> |j.tree.Now()[p]| == 4096 && a as int != PlaceOf(j.tree.first as int, p as int, j.tree.Now()[p]))
  }
  // [F] page p, with contents b, is to change in the page above it; or it is the root, whose code is c0, c1
  method PageUp(j: Journal, c: Codes, p: uint64, b: Blk) returns (root: bool, c0: uint64, c1: uint64)
    requires j.Inv() && j.mu.settled == j.ins && p < j.tree.np && |b.v| == 4096
    modifies c
    ensures Vouches(j.tree.seal.key, j.tree.n as int + p as int, CV(c0, c1), b.v) && root == (p as int == j.tree.np as int - 1)
    ensures c.s == if root then old(c.s) else old(c.s) + [Code(j.tree.n as int + p as int, CV(c0, c1))]
  {
    reveal j.Inv();
    root, c0, c1 := Upwards(j.tree, c, p, b);
  }
  // [F] the code of the tree's root
  method TreeRoot(j: Journal) returns (r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires j.Inv() && j.mu.settled == j.ins
    ensures j.tree.Ok() && j.tree.seal == j.seal && |j.tree.pages.vs| == |j.tree.pages.rs| > 0 && j.tree.Root() == CV(r0, r1) && pg == j.tree.Now() && (j.tree.np > 0 ==> IsTree(j.tree.seal.t, j.tree.Now(), j.tree.Root()))
  {
    reveal j.Inv();
    j.tree.pages.Trees();
    var version;
    version, r0, r1 := j.tree.pages.Root();
    pg := j.tree.Now();
  }
  // [F] write page p of the tree of codes; not where its newest version was seen, which counts until the header is written
  method PageWrite(j: Journal, p: uint64, a: uint64, b: Blk) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.ins && j.ins.ip == 1 && p < j.tree.np && NewPlace(j, p, a, b.v)
    modifies j.ins`wr, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono() && j.ins.wr == old(j.ins.wr)[p as int := b.v]
    ensures !ok ==> j.d.bad
  {
    reveal j.Inv(); reveal j.OwnI();
    LogFacts(j);
    TreeWritePres(j.d.poss, j.g(), a as int, 1);
    CrashAll(Fuzzy(j.d.poss, a as int, 1), j.g(), j.vs, j.lb, j.cl);
    Elsewhere(j.d.owner, Installing, Logging, a as int, 1);
    ok := j.d.Write(Installing, a, b);
    j.ins.wr := j.ins.wr[p as int := b.v];
    PageWroteI(j, a as int, ok);
    PageWrotePages(j, p as int, a as int, b.v, ok);
    LogFrame(j);
  }
  twostate lemma PageWrotePages(j: Journal, p: int, a: int, b: BV, ok: bool)
    requires old(j.PagesI()) && j.tree.Ok() && unchanged(j.tree.pages) && j.ins.ip == old(j.ins.ip) == 1 && 0 <= p < j.tree.np as int && |b| == 4096 && j.ins.wr == old(j.ins.wr)[p := b]
    requires a == PlaceOf(j.tree.first as int, p, b) && (j.Sound() && |j.tree.pages.vs| > 0 && p < |j.tree.Now()| ==> |j.tree.Now()[p]| == 4096 && a != PlaceOf(j.tree.first as int, p, j.tree.Now()[p]))
    requires a < |j.d.cur| == |j.d.poss| == |old(j.d.cur)| == |old(j.d.poss)| && forall x :: 0 <= x < |j.d.cur| && x != a ==> j.d.poss[x] == old(j.d.poss)[x] && (ok ==> j.d.cur[x] == old(j.d.cur)[x])
    requires if ok then j.d.bad == old(j.d.bad) && j.d.cur[a] == b else j.d.bad
    ensures j.PagesI()
  {
    reveal j.PagesI();
    if j.Sound() && j.tree.np > 0 {
      var t, first, pg, r := j.tree.seal.t, j.tree.first as int, j.tree.Now(), j.tree.Root();
      forall q | 0 <= q < t.np ensures Sits(first, j.d.poss, q, PageCode(t, pg, r, q), pg[q]) { assert Sits(first, old(j.d.poss), q, PageCode(t, pg, r, q), pg[q]); }
    }
  }
  twostate lemma PageWroteI(j: Journal, a: int, ok: bool)
    requires old(j.InsI()) && unchanged(j, j.ins`list, j.ins`ip, j.ins`wn, j.ins`hph, j.ins`r2) && j.ins.ip == 1 && 0 <= a < j.geo.at < Copy(j.geo) < Home(j.geo) == j.home as int
    requires |j.d.cur| == |j.d.poss| == |old(j.d.cur)| == |old(j.d.poss)| && forall x :: 0 <= x < |j.d.cur| && x != a ==> j.d.poss[x] == old(j.d.poss)[x] && (ok ==> j.d.cur[x] == old(j.d.cur)[x])
    requires if ok then j.d.bad == old(j.d.bad) else j.d.bad
    ensures j.InsI()
  { reveal j.InsI(); }
  // the codes s are those with which the tree says what it is to say after the installation
  predicate CodesNext(j: Journal, s: seq<Code>) reads j.ins { Restates(s, j.home as int, j.seal.key, j.ins.tb, j.ins.tb2) }
  // [F] the codes that the installation changes: of the blocks it writes, and of those that went straight home
  method ChangedCodes(j: Journal) returns (c: Codes)
    requires j.Inv() && j.mu.settled == j.ins && j.ins.ip == 1 && j.ins.list != null && |j.ins.list.addrs| == |j.ins.list.blks|
    modifies j.mu`settled
    ensures fresh(c) && j.tree.Ok() && j.Inv() && j.LKeep() && j.Mono()
    ensures j.tree.np > 0 ==> ListOk(j.tree.seal.t, c.s) && CodesNext(j, c.s) && forall k :: 0 <= k < |c.s| ==> c.s[k].x < j.tree.n as int
  {
    reveal j.Inv();
    InsLists(j);
    c := NewCodes();
    if j.tree.np == 0 { return; }
    AddList(j.tree, c, j.ins.list);
    ghost var s := c.s;
    HeldCodes(j, c);
    Covered(j, s, c.s);
    OneEach(j, s, c.s);
    ghost var s2 := c.s;
    c.Sort();
    SameCodes(j, s2, c.s);
    SortedRises(s2, c.s);
    CodesFit(j, c.s);
  }
  // no block is in the list twice, nor among those that went straight home, and in the list as well
  lemma OneEach(j: Journal, s: seq<Code>, s2: seq<Code>)
    requires j.Inv() && j.ins.ip == 1 && j.ins.list != null && |s2| == |s| + |j.iho.addrs| && s2[..|s|] == s
    requires |s| == |j.ins.list.addrs| && forall i :: 0 <= i < |s| ==> s[i].x == j.ins.list.addrs[i] - j.home as int
    requires forall k :: 0 <= k < |j.iho.addrs| ==> s2[|s| + k].x == j.iho.addrs[k] - j.home as int
    ensures Single(s2)
  {
    reveal j.Inv();
    InsLists(j);
    j.iho.Distinct();
    forall k, l | 0 <= k < l < |s2| ensures s2[k].x != s2[l].x {
      if l < |s| { assert s2[k] == s[k] && s2[l] == s[l]; }
      else {
        assert s2[l].x == s2[|s| + (l - |s|)].x == j.iho.addrs[l - |s|] - j.home as int;
        if k < |s| { assert s2[k] == s[k]; HeldLive(j, j.iho.addrs[l - |s|]); assert j.ins.list.addrs[k] in j.im; }
        else { assert s2[k].x == s2[|s| + (k - |s|)].x; }
      }
    }
  }
  // they are all of home blocks
  lemma CodesFit(j: Journal, s: seq<Code>)
    requires j.Inv() && j.ins.ip == 1 && CodesNext(j, s)
    ensures forall k :: 0 <= k < |s| ==> 0 <= s[k].x < j.tree.n as int
  {
    reveal j.Inv();
    NextHome(j); FullD(j.d.poss, j.g());
    forall k | 0 <= k < |s| ensures 0 <= s[k].x < j.tree.n as int { assert s[k] in s; assert s[k].x + j.home as int in j.base; }
  }
  lemma SameCodes(j: Journal, s: seq<Code>, s2: seq<Code>)
    requires CodesNext(j, s) && forall e :: e in s <==> e in s2
    ensures CodesNext(j, s2)
  {}
  // ... the latter
  method HeldCodes(j: Journal, c: Codes)
    requires j.Inv() && j.ins.ip == 1 && j.tree.np > 0
    modifies c
    ensures |old(c.s)| <= |c.s| && c.s[..|old(c.s)|] == old(c.s)
    ensures forall k :: |old(c.s)| <= k < |c.s| ==> var a := c.s[k].x + j.home as int; a in j.iho.m && a in j.base && Vouches(j.seal.key, c.s[k].x, c.s[k].c, j.base[a])
    ensures forall a :: a in j.iho.m ==> exists e :: e in c.s && e.x == a - j.home as int
    ensures |c.s| == |old(c.s)| + |j.iho.addrs| && forall k :: 0 <= k < |j.iho.addrs| ==> c.s[|old(c.s)| + k].x == j.iho.addrs[k] - j.home as int
  {
    reveal j.Inv(); reveal j.TreeI();
    var n := j.iho.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && |old(c.s)| + i as int == |c.s| && c.s[..|old(c.s)|] == old(c.s)
      invariant forall k :: |old(c.s)| <= k < |c.s| ==> var a := c.s[k].x + j.home as int; a in j.iho.m && a in j.base && Vouches(j.seal.key, c.s[k].x, c.s[k].c, j.base[a])
      invariant forall k :: 0 <= k < i as int ==> c.s[|old(c.s)| + k].x == j.iho.addrs[k] - j.home as int
    {
      var a := j.iho.AddrAt(i);
      HeldLive(j, a as int);
      assert a as int in j.base;
      var has, c0, c1, v, r0, r1 := j.tree.pages.Look(a - j.home);
      assert a as int - j.home as int in j.tree.pages.held;
      c.Add(a - j.home, c0, c1);
      i := i + 1;
    }
    forall a | a in j.iho.m ensures exists e :: e in c.s && e.x == a - j.home as int {
      assert a in j.iho.addrs; var k :| 0 <= k < |j.iho.addrs| && j.iho.addrs[k] == a;
      assert c.s[|old(c.s)| + k] in c.s;
    }
  }
  // s are the codes of the blocks being installed, and s2 has those of the blocks that went straight home as well
  lemma Covered(j: Journal, s: seq<Code>, s2: seq<Code>)
    requires j.Inv() && j.ins.ip == 1 && j.ins.list != null && |s| <= |s2| && s2[..|s|] == s && j.tree.np > 0
    requires |s| == |j.ins.list.addrs| == |j.ins.list.blks| && forall i :: 0 <= i < |s| ==> s[i].x == j.ins.list.addrs[i] - j.home as int && Vouches(j.seal.key, s[i].x, s[i].c, j.ins.list.blks[i])
    requires forall k :: |s| <= k < |s2| ==> var a := s2[k].x + j.home as int; a in j.iho.m && a in j.base && Vouches(j.seal.key, s2[k].x, s2[k].c, j.base[a])
    requires forall a :: a in j.iho.m ==> exists e :: e in s2 && e.x == a - j.home as int
    ensures CodesNext(j, s2)
  {
    reveal j.Inv();
    InsLists(j); NextHome(j);
    forall e | e in s2 ensures e.x + j.home as int in j.ins.tb2 && Vouches(j.seal.key, e.x, e.c, j.ins.tb2[e.x + j.home as int]) {
      var k :| 0 <= k < |s2| && s2[k] == e;
      if k < |s| { assert s[k] == e; var a := j.ins.list.addrs[k]; assert a in j.im && a in j.base; }
    }
    forall a | a in j.ins.tb2 && (forall e :: e in s2 ==> e.x != a - j.home as int) ensures a in j.ins.tb && j.ins.tb2[a] == j.ins.tb[a] {
      if a in j.im { assert a in j.ins.list.addrs; var k :| 0 <= k < |s| && j.ins.list.addrs[k] == a; assert s2[k] == s[k]; assert s2[k] in s2; }
    }
  }
  // [F] what is being installed is home
  method InstBarrier(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.ins && j.ins.ip == 1 && j.ins.list != null && j.ins.wn == |j.ins.list.addrs|
    modifies j.ins`ip, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures j.ins.ip == (if ok then 2 else 1)
    ensures !ok ==> j.d.bad
  {
    reveal j.Inv();
    InsLists(j);
    ghost var P := j.d.poss;
    ok := j.d.Barrier(Installing);
    BarrierPres(j.d.poss, P, j.g());
    InsFrame(j);
    if ok {
      InstDone(j);
      j.ins.ip := 2;
      InstDoneI(j);
      PagesDone(j);
      assert j.OwnI() by { reveal j.OwnI(); }
    } else { PagesFrame(j); }
    AmongKeep(old(j.g()), j.g(), j.vs, j.lb, j.cl);
    LogFrame(j);
  }
  // the pages that were written are durable
  twostate lemma PagesDone(j: Journal)
    requires old(j.PagesI()) && old(j.OwnI()) && j.GeoI() && unchanged(j.tree.pages) && old(j.ins.ip) == 1 && j.ins.ip == 2 && j.ins.wr == old(j.ins.wr) && !old(j.d.bad) && j.d.cur == old(j.d.cur)
    requires |j.d.poss| == |j.d.cur| == |old(j.d.poss)| && (forall a :: 0 <= a < |j.d.poss| ==> j.d.poss[a] <= old(j.d.poss)[a])
    requires forall a :: 0 <= a < |j.d.cur| && Owns(old(j.d.owner), Installing, a) ==> j.d.poss[a] == iset{j.d.cur[a]}
    ensures j.PagesI()
  {
    reveal j.PagesI(); reveal j.OwnI();
    if j.Sound() && j.tree.np > 0 { PagesLess(j.tree.seal.t, j.tree.first as int, old(j.d.poss), j.d.poss, j.tree.Now(), j.tree.Root()); }
  }
  // all blocks being installed are home, and durable
  lemma InstDone(j: Journal)
    requires j.InsI() && j.OwnI() && j.ins.ip == 1 && !j.d.bad && j.ins.list != null && j.ins.wn == |j.ins.list.addrs| && Full(j.d.poss, j.g()) && |j.d.poss| == |j.d.cur|
    requires j.home as int == Home(j.geo) && forall a :: 0 <= a < |j.d.cur| && Owns(j.d.owner, Installing, a) ==> j.d.poss[a] == iset{j.d.cur[a]}
    ensures Full(j.d.poss, j.g().(ip := 2))
  {
    reveal j.InsI(); reveal j.OwnI();
    forall a | a in j.im && Home(j.geo) <= a < |j.d.poss| ensures j.d.poss[a] <= iset{j.im[a]} {
      assert a in j.ins.list.addrs;
      var i :| 0 <= i < |j.ins.list.addrs| && j.ins.list.addrs[i] == a;
      assert j.d.cur[a] == j.ins.list.blks[i];
    }
    InstBarrierPres(j.d.poss, j.g());
  }
  twostate lemma InstDoneI(j: Journal)
    requires old(j.InsI()) && old(j.ins.ip) == 1 && j.g() == old(j.g()).(ip := 2) && j.ins.list != null && j.ins.list == old(j.ins.list) && j.ins.wn == old(j.ins.wn) && j.icnr == old(j.icnr) && j.cached == old(j.cached) && j.ins.hph == old(j.ins.hph)
    requires j.home as int == Home(j.geo) && |j.d.cur| == |j.d.poss| == |old(j.d.cur)|
    ensures j.InsI()
  { reveal j.InsI(); }
  // what it means to write the header, or its copy
  lemma HdrReady(j: Journal, a: int, v: BV, r2: CV)
    requires j.Inv() && 2 <= j.ins.ip && (a == j.geo.at || a == Copy(j.geo)) && HdrTail(v) && DecHdr(j.geo.key, v) == Hdr(j.hq as int + j.k, j.geo.ep, r2)
    requires Says(j.geo, r2, j.ins.tb2) && (j.ins.ip == 3 ==> r2 == j.ins.r2)
    ensures 0 <= a < |j.d.poss| == |j.d.cur| && j.d.Valid() && Owns(j.d.owner, Installing, a) && Full(AddHdr(j.d.poss, a, v), j.g().(ip := 3, r2 := r2))
    ensures forall x :: x in j.d.poss[a] ==> SameTail(x, v)
    ensures forall s :: CrashImg(AddHdr(j.d.poss, a, v), s) ==> s in j.d.ok
  {
    reveal j.Inv(); reveal j.OwnI();
    HdrWritePres(j.d.poss, j.g(), a, v, r2);
    ghost var g1 := j.g().(ip := 3, r2 := r2);
    assert DurState(g1) == DurState(j.g());
    LogFacts(j);
    AmongKeep(j.g(), g1, j.vs, j.lb, j.cl);
    CrashAll(AddHdr(j.d.poss, a, v), g1, j.vs, j.lb, j.cl);
  }
  lemma HdrPhase(j: Journal, copy: bool)
    requires j.Inv() && if copy then j.ins.hph == 2 else j.ins.ip == 2
    ensures 2 <= j.ins.ip && (!copy ==> j.ins.ip == 2) && j.ieq as int == j.hq as int + j.k && j.geo.ep == j.seal.ep && j.geo.key == j.seal.key && j.geo.tree == j.seal.t
    ensures j.at as int == j.geo.at && j.home as int - 1 == Copy(j.geo) && j.at < j.home
  { reveal j.Inv(); reveal j.InsI(); }
  twostate lemma HdrWroteI(j: Journal, copy: bool, a: int, v: BV, ok: bool)
    requires old(j.InsI()) && j.ins.ip == 3 && j.ins.list == old(j.ins.list) && j.ins.wn == old(j.ins.wn) && unchanged(j)
    requires if copy then old(j.ins.hph) == 2 else old(j.ins.ip) == 2
    requires j.ins.hph == if ok then (if copy then 3 else 1) else old(j.ins.hph)
    requires a == (if copy then Copy(j.geo) else j.geo.at) && 0 <= a < |j.d.cur| == |j.d.poss| == |old(j.d.cur)| == |old(j.d.poss)| && j.home as int == Home(j.geo)
    requires DecHdr(j.geo.key, v) == Hdr(j.hq as int + j.k, j.geo.ep, j.ins.r2) && (copy ==> j.ins.r2 == old(j.ins.r2))
    requires forall x :: 0 <= x < |j.d.poss| && x != a ==> j.d.poss[x] == old(j.d.poss)[x] && j.d.cur[x] == old(j.d.cur)[x]
    requires if ok then j.d.bad == old(j.d.bad) && j.d.cur[a] == v else j.d.bad
    ensures j.InsI()
  { reveal j.InsI(); }
  twostate lemma HdrOwnI(j: Journal)
    requires old(j.OwnI()) && old(j.ins.ip) > 0 && j.ins.ip > 0 && unchanged(j) && j.cdm.m == old(j.cdm.m) && j.lg.ph == old(j.lg.ph) && j.lg.ps == old(j.lg.ps) && j.d.owner == old(j.d.owner)
    ensures j.OwnI()
  { reveal j.OwnI(); }
  twostate lemma HdrPages(j: Journal, pg: seq<BV>)
    requires old(j.PagesI()) && j.tree.Ok() && old(j.ins.ip) >= 2 && j.ins.ip == 3 && j.ins.wr == old(j.ins.wr) && unchanged(j.tree.pages) && |j.d.cur| == |j.d.poss| == |old(j.d.poss)|
    requires j.tree.np > 0 ==> NextPages(j.tree, j.ins.wr, pg, j.ins.r2) && IsTree(j.tree.seal.t, pg, j.ins.r2)
    requires forall x :: 0 <= x < j.tree.first as int + 2 * j.tree.np as int && x < |j.d.poss| ==> j.d.poss[x] == old(j.d.poss)[x]
    ensures j.PagesI()
  {
    reveal j.PagesI();
    if j.Sound() && j.tree.np > 0 { PagesLess(j.tree.seal.t, j.tree.first as int, old(j.d.poss), j.d.poss, j.tree.Now(), j.tree.Root()); }
  }
  // [F] the header: from here on recovery may start after the installed groups. Then, when it
  // is durable, its copy: so there is always a header that is not being written.
  method HdrWrite(j: Journal, copy: bool, r0: uint64, r1: uint64, ghost pg: seq<BV>) returns (ok: bool)
    requires j.tree.np > 0 ==> NextPages(j.tree, j.ins.wr, pg, CV(r0, r1)) && IsTree(j.tree.seal.t, pg, CV(r0, r1))
    requires Says(j.geo, CV(r0, r1), j.ins.tb2) && (copy ==> j.ins.r2 == CV(r0, r1))
    requires j.Inv() && j.mu.settled == j.ins && if copy then j.ins.hph == 2 else j.ins.ip == 2
    modifies j.ins`ip, j.ins`hph, j.ins`r2, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures j.ins.ip == 3 && (ok ==> j.ins.hph == if copy then 3 else 1) && j.ins.r2 == CV(r0, r1)
    ensures !ok ==> j.d.bad
  {
    HdrPhase(j, copy);
    assert IsRoot(j.seal.t, CV(r0, r1)) by { IsRootOf(j.geo, CV(r0, r1), j.ins.tb2); }
    var b := j.seal.EncHdr(j.ieq, r0, r1);
    var a := if copy then j.home - 1 else j.at;
    HdrReady(j, a as int, b.v, CV(r0, r1));
    reveal j.Inv();
    Elsewhere(j.d.owner, Installing, Logging, a as int, 1);
    ok := j.d.WriteSector(Installing, a, b);
    j.ins.ip := 3; j.ins.r2 := CV(r0, r1);
    if ok { j.ins.hph := if copy then 3 else 1; }
    AmongKeep(old(j.g()), j.g(), j.vs, j.lb, j.cl);
    HdrWroteI(j, copy, a as int, b.v, ok);
    HdrOwnI(j);
    LogFrame(j);
    HdrPages(j, pg);
  }
  // [F] what was written of the headers is durable
  method HdrBarrier(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled == j.ins && (j.ins.hph == 1 || j.ins.hph == 3)
    modifies j.ins`hph, j.d`poss, j.d`cur, j.d`bad, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures ok ==> j.ins.hph == old(j.ins.hph) + 1
    ensures !ok ==> j.d.bad
  {
    reveal j.Inv(); reveal j.InsI(); reveal j.OwnI();
    ghost var P := j.d.poss;
    ok := j.d.Barrier(Installing);
    BarrierPres(j.d.poss, P, j.g());
    if ok { j.ins.hph := j.ins.hph + 1; }
    LogFrame(j); PagesFrame(j);
  }
  // [F] Does the header bear our epoch still? Who opens the volume puts another there. If so,
  // the device is taken to have failed: nothing is acknowledged any more. If the header is none, its
  // copy tells. (What cannot be read tells nothing: writes and barriers fail of their own.)
  method HeaderIsOurs(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mu.settled != null
    modifies j.d`bad, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures ok ==> j.d.bad == old(j.d.bad)
    ensures !ok ==> j.d.bad
  {
    ok := BearsOurs(j);
    if !ok { Halt(j); }
  }
  // ... what the header says
  method BearsOurs(j: Journal) returns (ok: bool)
    requires j.Inv()
    modifies {}
  {
    reveal j.Inv();
    var io, b; ghost var honest;
    io, b, honest := j.d.Read(j.at);
    var is := false;
    if io { var q; is, q := j.seal.DecHdrM(b); }
    if !is { io, b, honest := j.d.Read(j.home - 1); }
    ok := true;
    if io { ok := j.seal.Ours(b); }
  }
  // ... as if the device had failed
  method Halt(j: Journal)
    requires j.Inv()
    modifies j.d`bad
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono() && j.d.bad
  {
    reveal j.Inv();
    j.d.Stop();
    LogFrame(j); InsFrame(j); PagesFrame(j);
  }
  // [L] put one of the installed blocks into the cache
  method CacheInst(j: Journal)
    requires j.Inv() && j.mu.Inside() && j.ins.ip == 3 && j.ins.list != null && j.icnr as int < |j.ins.list.addrs|
    modifies j`icnr, j`cached, j.cache
    ensures j.Inv() && j.LKeep() && j.Mono()
    ensures j.icnr == old(j.icnr) + 1
  {
    reveal j.Inv(); reveal j.InsI(); reveal j.CacheI();
    var i := j.icnr;
    var a := j.ins.list.AddrAt(i);
    var b := j.ins.list.BlkAt(i);
    DirApart(j);
    j.cache.Put(a, b);
    j.cached := j.cached + {a as int};
    j.icnr := j.icnr + 1;
  }
  // the pages pg, with the root r, are the tree's next version, with the changes of c
  predicate NextVersion(j: Journal, c: Codes, r: CV, pg: seq<BV>) reads j.ins, j.tree.pages`vs, j.tree.pages`rs, c {
    NextTree(j.tree, c, r, pg) && j.tree.seal == j.seal && (j.tree.np > 0 ==> TreeSays(j.geo, pg, r, j.ins.tb2) && NextPages(j.tree, j.ins.wr, pg, r))
  }
  // [L] the log space is free, and the tree's next version counts. (What readers see of it, who do not hold the mutex, happens at once: in Advance.)
  method FinishInstall(j: Journal, c: Codes, r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires j.Inv() && j.mu.Inside() && j.ins.hph == 4 && j.ins.list != null && j.icnr as int == |j.ins.list.addrs| && j.trims < 0x3FFF_FFFF_FFFF_0000
    requires NextVersion(j, c, CV(r0, r1), pg) && j.ins.r2 == CV(r0, r1)
    modifies j`inm, j`iho, j`repr, j`hq, j`lo, j`icnr, j`cached, j`trims, j`gs, j`hs, j`ds, j`k, j`base, j`im, j`torn, j.ins, j.inm, j.tree.pages, j.d`owner
    ensures j.Inv() && j.LKeep() && j.Mono() && j.ins.ip == 0
    ensures fresh(j.repr - old(j.repr))
  {
    var was := j.inm;
    Installed(j, c, r0, r1, pg);
    was.Clear();
  }
  // [L] ... all of it, but that the map of what was installed is not empty yet
  method Installed(j: Journal, c: Codes, r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires j.Inv() && j.mu.Inside() && j.ins.hph == 4 && j.ins.list != null && j.icnr as int == |j.ins.list.addrs| && j.trims < 0x3FFF_FFFF_FFFF_0000
    requires NextVersion(j, c, CV(r0, r1), pg) && j.ins.r2 == CV(r0, r1)
    modifies j`inm, j`iho, j`repr, j`hq, j`lo, j`icnr, j`cached, j`trims, j`gs, j`hs, j`ds, j`k, j`base, j`im, j`torn, j.ins, j.tree.pages, j.d`owner
    ensures j.Inv() && j.LKeep() && j.Mono() && j.ins.ip == 0
    ensures fresh(j.repr - old(j.repr)) && var was := old(j.inm); was !in {j.running, j.lgm, j.cgm, j.cdm, j.inm, j.lho, j.iho} && was != j.lg.ring && was != j.lg.dir
  {
    FinishInstallG(j);
    reveal j.Inv();
    var e := NewBMap(); var f := NewBMap();
    ghost var g1 := IFinished(j.g());
    j.d.Leave(Installing);
    Advance(j.tree, c, r0, r1, j.iho, pg);
    FinishInstallFields(j, e, f);
    assert j.g() == g1;
    AmongKeep(old(j.g()), g1, j.vs, j.lb, j.cl);
    assert j.OwnI() by { reveal j.OwnI(); }
    LogFrame(j); InsNone(j); CacheDone(j); RdNext(j); HoldDone(j); TreeDone(j, pg); PagesNewest(j, pg);
    NoteInstall(j);
  }
  // what finishing means for the protocol's state
  lemma FinishInstallG(j: Journal)
    requires j.Inv() && j.ins.hph == 4
    ensures j.ins.ip == 3 && |j.gs| == |j.ds| == |j.hs| && 0 <= j.k <= |j.gs|
    ensures var g1 := IFinished(j.g()); Full(j.d.poss, g1) && DurState(g1) == DurState(j.g()) && g1.gs[g1.k..] == j.gs[j.k..]
    ensures forall a :: a in j.lho.m || a in j.iho.m ==> a in j.base && a !in j.im && (a in j.iho.m ==> a !in j.lho.m)
  {
    reveal j.Inv();
    HdrFacts(j);
    IFinishPres(j.d.poss, j.g());
    var g1 := IFinished(j.g());
    assert g1.gs[g1.k..] == j.gs[j.k..];
    forall a | a in j.lho.m || a in j.iho.m ensures a in j.base && a !in j.im && (a in j.iho.m ==> a !in j.lho.m) { HeldLive(j, a); }
  }
  twostate lemma TreeDone(j: Journal, pg: seq<BV>)
    requires old(j.TreeI()) && j.base == Over(old(j.base), old(j.im)) && j.ins.r == old(j.ins.r2) && j.ins.tb == old(j.ins.tb2) && j.lho == old(j.lho) && j.lho.m == old(j.lho.m) && j.iho.m == map[]
    requires forall a :: a in j.lho.m || a in old(j.iho.m) ==> a !in old(j.im) && (a in old(j.iho.m) ==> a !in j.lho.m)
    requires j.tree.np > 0 ==> TreeSays(j.geo, pg, j.ins.r, j.ins.tb)
    requires j.tree.pages.vs == old(j.tree.pages.vs) + [pg] && j.tree.pages.rs == old(j.tree.pages.rs) + [j.ins.r]
    requires j.tree.home == j.home && j.tree.pages.held == map x | x in old(j.tree.pages.held) && x + j.home as int !in old(j.iho.m) :: old(j.tree.pages.held)[x]
    ensures j.TreeI()
  { reveal j.TreeI(); }
  twostate lemma PagesNewest(j: Journal, pg: seq<BV>)
    requires old(j.PagesI()) && old(j.ins.ip) == 3 && j.ins.ip == 0 && j.ins.wr == old(j.ins.wr) && (j.tree.np > 0 ==> old(NextPages(j.tree, j.ins.wr, pg, j.ins.r2)))
    requires unchanged(j.d`poss, j.d`cur) && j.tree.pages.vs == old(j.tree.pages.vs) + [pg] && j.tree.pages.rs == old(j.tree.pages.rs) + [old(j.ins.r2)]
    ensures j.PagesI()
  {
    reveal j.PagesI();
    if j.Sound() && j.tree.np > 0 {
      var t, first := j.tree.seal.t, j.tree.first as int;
      forall q | 0 <= q < t.np ensures Sits(first, j.d.poss, q, PageCode(t, pg, j.tree.Root(), q), pg[q]) {
        assert Sits(first, j.d.poss, q, PageCode(t, old(j.tree.Now()), old(j.tree.Root()), q), old(j.tree.Now())[q]);
      }
    }
  }
  method FinishInstallFields(j: Journal, e: BMap, f: BMap)
    requires j.trims < 0x3FFF_FFFF_FFFF_0000 && |j.gs| == |j.ds| == |j.hs| && 0 <= j.k <= |j.gs|
    modifies j`inm, j`iho, j`repr, j`hq, j`lo, j`icnr, j`cached, j`trims, j`gs, j`hs, j`ds, j`k, j`base, j`im, j`torn, j.ins
    ensures j.torn == old(j.torn) - old(j.im).Keys && j.ins.r == j.ins.r2 == old(j.ins.r2) && j.ins.tb == j.ins.tb2 == old(j.ins.tb2)
    ensures j.inm == e && j.iho == f && j.repr == old(j.repr) + {e, f} && j.trims == old(j.trims) + 1
    ensures j.hq == j.ieq && j.lo == j.ilo && j.icnr == 0 && j.cached == {} && j.k == 0
    ensures j.gs == old(j.gs[j.k..]) && j.hs == old(j.hs[j.k..]) && j.ds == old(j.ds[j.k..]) && j.base == Over(old(j.base), old(j.im)) && j.im == map[]
    ensures j.ins.ip == 0 && j.ins.list == null && j.ins.wn == 0 && j.ins.hph == 0 && j.ins.wr == old(j.ins.wr) && j.ins.lost == old(j.ins.lost)
  {
    j.inm := e; j.iho := f; j.repr := j.repr + {e, f};
    j.hq := j.ieq; j.lo := j.ilo; j.icnr := 0; j.cached := {};
    j.trims := j.trims + 1;
    j.gs := j.gs[j.k..]; j.hs := j.hs[j.k..]; j.ds := j.ds[j.k..];
    j.base := Over(j.base, j.im); j.torn := j.torn - j.im.Keys; j.im := map[]; j.k := 0;
    j.ins.ip := 0; j.ins.list := null; j.ins.wn := 0; j.ins.hph := 0; j.ins.r := j.ins.r2; j.ins.tb := j.ins.tb2;
  }
  twostate lemma HoldDone(j: Journal)
    requires old(j.HoldI()) && j.seal.signed == old(j.seal.signed) && j.hq as int == old(j.hq) as int + old(j.k) && j.k == 0 && j.lho.m == old(j.lho.m) && j.cdm.m == old(j.cdm.m)
    requires 0 <= old(j.k) <= |old(j.hs)| && j.hs == old(j.hs[j.k..]) && j.iho.m == map[]
    ensures j.HoldI()
  { reveal j.HoldI(); assert j.hs[..0] == [] && j.hs[0..] == j.hs; }
  twostate lemma CacheDone(j: Journal)
    requires old(j.CacheI()) && old(j.InsI()) && j.cache.m == old(j.cache.m) && j.cdm.m == old(j.cdm.m) && |old(j.gs)| == |old(j.ds)| == |old(j.hs)| && 0 <= old(j.k) <= |old(j.gs)| && j.g() == IFinished(old(j.g()))
    requires old(j.ins.list) != null && old(j.ins.ip) == 3 && old(j.icnr) as int == |old(j.ins.list).addrs|
    ensures j.CacheI()
  {
    reveal j.CacheI(); reveal j.InsI();
    forall a | a in j.cache.m && a !in j.cdm.m ensures a in j.base && j.cache.m[a] == j.base[a] {
      if a in old(j.im) {
        assert a in old(j.ins.list).addrs;
        var i :| 0 <= i < |old(j.ins.list).addrs| && old(j.ins.list).addrs[i] == a;
      }
    }
  }
  twostate lemma RdNext(j: Journal)
    requires old(j.RdI()) && j.rds == old(j.rds) && j.trims as int == old(j.trims) as int + 1 && forall a :: a in old(j.base) ==> a in j.base
    ensures j.RdI()
  { reveal j.RdI(); }
}
