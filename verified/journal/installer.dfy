// The installer's steps: it freezes the logged groups, writes their newest contents home, then
// the header, from which on recovery starts behind them, and puts them into the cache.
include "facts.dfy"
include "policy.dfy"

module JournalInstaller {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened MapsOfBlocks
  import opened CodeLists
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened Mutexes
  import opened JournalM
  import opened JournalFacts
  import opened JournalPolicy
  import opened TreeModel
  import opened TreeOfCodes
  import opened TreeSaid

  // [L] freeze the logged groups for installation, if there is enough of them
  method StartInstall(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.Inside() && j.installer.phase == NoInstall
    modifies j`installing, j`logged, j`installingDirect, j`loggedDirect, j`repr, j`posAfterInstall, j`seqAfterInstall,
      j`cachedCount, j`cached, j`installCount, j`installBlocks, j.installer, j.disk`owner
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.installer.phase == (if ok then HomeWriting else NoInstall) &&
      (ok ==> j.installer.list == null && j.installer.blocksWritten == 0 && j.cachedCount == 0 &&
      j.installer.headerPhase == HeaderUntouched && j.installer.pagesWritten == map[])
    ensures fresh(j.repr - old(j.repr))
    ensures !j.failed && old(Filled(j) && Installable(j)) ==> ok
  {
    Counters(j);
    ok := WantInstall(j);
    if ok { FreezeLogged(j); }
  }
  // [L] ... they are what is being installed
  method FreezeLogged(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.installer.phase == NoInstall
    modifies j`installing, j`logged, j`installingDirect, j`loggedDirect, j`repr, j`posAfterInstall, j`seqAfterInstall,
      j`cachedCount, j`cached, j`installCount, j`installBlocks, j.installer, j.disk`owner
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.installer.phase == HomeWriting && j.installer.list == null && j.installer.blocksWritten == 0 &&
      j.cachedCount == 0 && j.installer.headerPhase == HeaderUntouched && j.installer.pagesWritten == map[]
    ensures fresh(j.repr - old(j.repr))
  {
    var r := NewBlockMap(); var f := NewBlockMap();
    ghost var g1 := IStarted(j.protocol());
    StartG(j);
    reveal j.Inv();
    ghost var pages := set a | j.tree.first as int <= a < j.headerAt as int;
    j.disk.Take(Installing, pages + {j.headerAt as int, j.home as int - 1} + g1.installBlocks.Keys);
    StartInstallFields(j, r, f);
    assert j.protocol() == g1;
    AmongKeep(old(j.protocol()), g1, j.states, j.durableIndex, j.frozenIndex);
    OwnBegun(j);
    LogFrame(j); RdFrame(j); InsNone(j); CacheBegun(j); HoldBegun(j); TreeBegun(j);
    assert j.PagesInv() by { reveal j.PagesInv(); }
  }
  // what starting means for the protocol's state; and nobody owns what the installer needs
  lemma StartG(j: Journal)
    requires j.Inv() && j.installer.phase == NoInstall
    ensures var g1 := IStarted(j.protocol()); Full(j.disk.poss, g1) && DurState(g1) == DurState(j.protocol()) &&
      g1.groups[g1.installCount..] == [] && SameForLog(j.protocol(), g1)
    ensures j.installCount == 0 && j.installBlocks == map[] && j.logged.m == Merge(j.groups)
    ensures forall a :: j.tree.first as int <= a < j.headerAt as int || a == j.headerAt as int ||
      a == j.home as int - 1 || a in Merge(j.groups) ==> a !in j.disk.owner
  {
    reveal j.Inv();
    IStartPres(j.disk.poss, j.protocol());
    assert j.groups[j.installCount..] == j.groups && j.groups[..0] == [];
    DirApart(j); Owned(j);
  }
  // what the beginning of an installation means for OwnerInv, HeldInv, CacheInv
  twostate lemma OwnBegun(j: Journal)
    requires old(j.OwnerInv()) && old(j.installer.phase) == NoInstall && j.installer.phase == HomeWriting &&
      j.logger.phase == old(j.logger.phase) && j.logger.pending == old(j.logger.pending) &&
      j.frozenDirect == old(j.frozenDirect) && unchanged(j.frozenDirect)
    requires forall x, a :: Owns(j.disk.owner, x, a) <==> Owns(old(j.disk.owner), x, a) ||
      (x == Installing && (j.tree.first as int <= a < j.layout.headerAt || a == j.layout.headerAt ||
      a == Copy(j.layout) || a in j.installBlocks))
    ensures j.OwnerInv()
  { reveal j.OwnerInv(); }
  method StartInstallFields(j: Journal, r: BlockMap, f: BlockMap)
    modifies j`installing, j`logged, j`installingDirect, j`loggedDirect, j`repr, j`posAfterInstall, j`seqAfterInstall,
      j`cachedCount, j`cached, j`installCount, j`installBlocks, j.installer
    ensures j.installing == old(j.logged) && j.logged == r && j.installingDirect == old(j.loggedDirect) &&
      j.loggedDirect == f && j.repr == old(j.repr) + {r, f}
    ensures j.posAfterInstall == j.logEnd && j.seqAfterInstall == j.nextSeq && j.cachedCount == 0 && j.cached == {} &&
      j.installCount == |j.groups| && j.installBlocks == Merge(j.groups)
    ensures j.installer.phase == HomeWriting && j.installer.list == null && j.installer.blocksWritten == 0 &&
      j.installer.headerPhase == HeaderUntouched && j.installer.pagesWritten == map[] &&
      j.installer.lost == old(j.installer.lost) && unchanged(j.installer`looked, j.installer`lookedAt)
    ensures j.installer.root == old(j.installer.root) && j.installer.treeState == old(j.installer.treeState) &&
      j.installer.nextRoot == old(j.installer.nextRoot) && j.installer.nextTreeState == Over(j.base, Merge(j.groups))
  {
    j.installing := j.logged;
    j.logged := r; j.installingDirect := j.loggedDirect; j.loggedDirect := f; j.repr := j.repr + {r, f};
    j.posAfterInstall := j.logEnd; j.seqAfterInstall := j.nextSeq; j.cachedCount := 0; j.cached := {};
    j.installCount := |j.groups|; j.installBlocks := Merge(j.groups);
    j.installer.phase := HomeWriting; j.installer.list := null; j.installer.blocksWritten := 0;
    j.installer.headerPhase := HeaderUntouched; j.installer.nextTreeState := Over(j.base, Merge(j.groups));
    j.installer.pagesWritten := map[];
  }
  twostate lemma HoldBegun(j: Journal)
    requires old(j.HeldInv()) && old(j.LoggerInv()) && Full(j.disk.poss, old(j.protocol())) &&
      old(j.installCount) == 0 && j.protocol() == IStarted(old(j.protocol())) &&
      j.frozenDirect.m == old(j.frozenDirect.m) && j.installingDirect.m == old(j.loggedDirect.m) &&
      j.loggedDirect.m == map[]
    ensures j.HeldInv()
  {
    reveal j.HeldInv(); reveal j.LoggerInv(); FullD(j.disk.poss, old(j.protocol()));
    assert j.directs[..j.installCount] == j.directs && old(j.directs)[0..] == j.directs &&
      j.directs[j.installCount..] == [];
    forall a | Direct(j.seal.signed, j.firstSeq as int + j.installCount, a) ensures a in j.frozenDirect.m {
      var r :| r in j.seal.signed && DirectOf(r, j.firstSeq as int + j.installCount, a);
      assert !Below(r, End(old(j.protocol())));
      var i :| 0 <= i < |j.logger.pending| && IsPend(j.logger.pending[i], r);
      assert a in j.logger.pending[i].direct;
      MergeHas(DirectMaps(j.logger.pending), i, a);
    }
  }
  twostate lemma TreeBegun(j: Journal)
    requires old(j.TreeInv()) && old(j.HeldInv()) && old(j.installCount) == 0 &&
      j.installingDirect.m == old(j.loggedDirect.m) && j.loggedDirect.m == map[] && j.base == old(j.base) &&
      j.installer.root == old(j.installer.root) && j.installer.treeState == old(j.installer.treeState)
    requires unchanged(j.tree.pages)
    ensures j.TreeInv()
  { reveal j.TreeInv(); reveal j.HeldInv(); assert old(j.directs)[..0] == []; }
  twostate lemma CacheBegun(j: Journal)
    requires j.frozenDirect.m == old(j.frozenDirect.m)
    requires old(j.CacheInv()) && j.cache.m == old(j.cache.m) && old(j.installBlocks) == map[] &&
      j.base == old(j.base) && j.cached == {}
    ensures j.CacheInv()
  { reveal j.CacheInv(); }
  // the beginning and the end of an installation
  lemma InsNone(j: Journal)
    requires !IsHome(j.installer.phase) && j.installer.list == null && j.cachedCount == 0 &&
      j.installer.blocksWritten == 0 && j.installer.headerPhase == HeaderUntouched && GeoOk(j.layout) &&
      |j.disk.cur| == |j.disk.poss| >= Home(j.layout)
    ensures j.InstallerInv()
  { reveal j.InstallerInv(); }
  // [F] sort the frozen map by address
  method InstSort(j: Journal) returns (l: BList)
    requires j.Inv() && j.mutex.settled == j.installer && j.installer.phase == HomeWriting && j.installer.list == null
    modifies j.installer`list, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.installer.list == l && j.installer.blocksWritten == 0 && j.cachedCount == 0 && |l.blks| == |l.addrs|
  {
    reveal j.Inv(); reveal j.InstallerInv();
    l := j.installing.Sorted();
    SortedLen(l.addrs, j.size as int);
    j.installer.list := l;
  }
  // [F] write blocks of the frozen map home, from the i-th on as long as their addresses are adjacent
  method InstWrite(j: Journal, i: uint64) returns (ok: bool, n: uint64)
    requires j.Inv() && j.mutex.settled == j.installer && j.installer.phase == HomeWriting &&
      j.installer.list != null && i as int == j.installer.blocksWritten < |j.installer.list.addrs| &&
      j.InTime(j.installer.looked, j.installer.reading)
    modifies j.installer`blocksWritten, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled, j.installer.reading
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures ok ==> 0 < n && i as int + n as int == j.installer.blocksWritten <= |j.installer.list.addrs|
    ensures !ok ==> j.disk.bad
  {
    reveal j.Inv();
    InsLists(j);
    var a;
    a, n := Adjacent(j.installer.list, i);
    InstRun(j, i as int, a as int, n as int);
    Elsewhere(j.disk.owner, Installing, Logging, a as int, n as int);
    reveal j.InTime(); reveal j.LooksInv();
    ok := j.disk.WriteRun(Installing, a, j.installer.list, j.installing, i, n, j.installer.looked, j.installer.reading);
    if ok { j.installer.blocksWritten := j.installer.blocksWritten + n as int; }
    InstWroteI(j, a as int, n as int, ok);
    LogFrame(j); PagesFrame(j);
  }
  // what it means to write home n blocks of the frozen map, from the i-th on
  lemma InstRun(j: Journal, i: int, a: int, n: int)
    requires j.Inv() && j.installer.phase == HomeWriting && j.installer.list != null && 0 <= i && 1 <= n &&
      i + n <= |j.installer.list.addrs|
    requires forall y :: i <= y < i + n ==> j.installer.list.addrs[y] == a + (y - i)
    ensures j.home as int <= a && a + n <= |j.disk.cur| == |j.disk.poss| && forall x :: a <= x < a + n ==>
      Owns(j.disk.owner, Installing, x)
    ensures |j.installer.list.blks| == |j.installer.list.addrs| && forall x :: i <= x < i + n ==>
      |j.installer.list.blks[x]| == 4096
    ensures Full(Fuzzy(j.disk.poss, a, n), j.protocol()) && forall s :: CrashImg(Fuzzy(j.disk.poss, a, n), s) ==>
      s in j.disk.ok
  {
    reveal j.Inv(); reveal j.OwnerInv();
    InsLists(j);
    ghost var last := i + n - 1;
    assert j.installer.list.addrs[last] == a + (n - 1) < |j.disk.cur|;
    assert j.home as int <= j.installer.list.addrs[i];
    forall x | a <= x < a + n ensures x in j.installBlocks { assert j.installer.list.addrs[i + (x - a)] == x; }
    InstWritePres(j.disk.poss, j.protocol(), a, n);
    LogFacts(j);
    CrashAll(Fuzzy(j.disk.poss, a, n), j.protocol(), j.states, j.durableIndex, j.frozenIndex);
  }
  twostate lemma InstWroteI(j: Journal, a: int, n: int, ok: bool)
    requires old(j.InstallerInv()) && j.protocol() == old(j.protocol()) && j.installer.phase == HomeWriting &&
      j.installer.list != null && j.installer.list == old(j.installer.list) && j.cachedCount == old(j.cachedCount) &&
      j.cached == old(j.cached) && j.installer.headerPhase == old(j.installer.headerPhase)
    requires 0 <= old(j.installer.blocksWritten) && 0 < n &&
      old(j.installer.blocksWritten) + n <= |j.installer.list.addrs| == |j.installer.list.blks| &&
      j.installer.blocksWritten == if ok then old(j.installer.blocksWritten) + n else old(j.installer.blocksWritten)
    requires |j.disk.cur| == |j.disk.poss| == |old(j.disk.cur)| == |old(j.disk.poss)| &&
      j.home as int == Home(j.layout) <= a && a + n <= |j.disk.cur|
    requires 0 <= j.layout.headerAt < Copy(j.layout) < Home(j.layout) &&
      j.disk.poss[j.layout.headerAt] == old(j.disk.poss)[j.layout.headerAt] &&
      j.disk.poss[Copy(j.layout)] == old(j.disk.poss)[Copy(j.layout)]
    requires forall y :: old(j.installer.blocksWritten) <= y < old(j.installer.blocksWritten) + n ==>
      j.installer.list.addrs[y] == a + (y - old(j.installer.blocksWritten))
    requires if ok then j.disk.bad == old(j.disk.bad) else j.disk.bad
    requires ok ==> forall x :: a <= x < a + n ==>
      j.disk.cur[x] == j.installer.list.blks[old(j.installer.blocksWritten) + (x - a)]
    requires ok ==> forall x :: 0 <= x < |j.disk.cur| && !(a <= x < a + n) ==> j.disk.cur[x] == old(j.disk.cur)[x]
    ensures j.InstallerInv()
  {
    reveal j.InstallerInv();
    if ok && !j.disk.bad {
      forall x | 0 <= x < j.installer.blocksWritten
        ensures j.disk.cur[j.installer.list.addrs[x]] == j.installer.list.blks[x] {
        if x >= old(j.installer.blocksWritten) {
          assert j.installer.list.addrs[x] == a + (x - old(j.installer.blocksWritten));
        }
        else { assert j.installer.list.addrs[x] < j.installer.list.addrs[old(j.installer.blocksWritten)]; }
      }
    }
  }
  // [F] the page of the tree with the codes of c from the i-th on, as far as they belong there, and where it
  // goes; !ok = a page that it depends on cannot be read, or is damaged
  method NextPage(j: Journal, c: Codes, i: uint64) returns (ok: bool, p: uint64, a: uint64, b: Blk, i1: uint64)
    requires j.Inv() && j.mutex.settled == j.installer && i as int < |c.s| && j.tree.pageCount > 0 &&
      ListOk(j.tree.seal.t, c.s)
    modifies j.installer`lost, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono() && (!ok ==> j.installer.lost)
    ensures j.tree.Ok() && |b.v| == 4096 && i <= i1 && i1 as int <= |c.s| &&
      |j.tree.pages.vs| == |j.tree.pages.rs| > 0 && IsTree(j.tree.seal.t, j.tree.Now(), j.tree.Root())
    ensures ok ==> p < j.tree.pageCount && NewPlace(j, p, a, b.v) &&
      Wrote(c.s, i as int, i1 as int, p as int, j.tree.Now()[p], b.v)
  {
    reveal j.Inv();
    reveal j.PagesInv();
    ok, p, a, b, i1 := Changed(j.tree, c, i);
    if !ok { j.notes.Damaged(a); j.installer.lost := true; }
    reveal j.InstallerInv();
  }
  // a is where contents b of page p say that they are to be; and not where the newest version was found, nor, if the
  // device is sound, where that says it is
  predicate NewPlace(j: Journal, p: uint64, a: uint64, b: BV) reads j.tree.pages`vs {
    Spares(j.tree, p, a) && |b| == 4096 && a as int == PlaceOf(j.tree.first as int, p as int, b) &&
    (j.Sound() ==> |j.tree.Now()[p]| == 4096 && a as int != PlaceOf(j.tree.first as int, p as int, j.tree.Now()[p]))
  }
  // [F] page p, with contents b, is to change in the page above it; or it is the root, whose code is c0, c1
  method PageUp(j: Journal, c: Codes, p: uint64, b: Blk) returns (root: bool, c0: uint64, c1: uint64)
    requires j.Inv() && j.mutex.settled == j.installer && p < j.tree.pageCount && |b.v| == 4096
    modifies c
    ensures Vouches(j.tree.seal.key, j.tree.homeCount as int + p as int, CV(c0, c1), b.v) &&
      root == (p as int == j.tree.pageCount as int - 1)
    ensures c.s == if root then old(c.s) else old(c.s) + [Code(j.tree.homeCount as int + p as int, CV(c0, c1))]
  {
    reveal j.Inv();
    root, c0, c1 := Upwards(j.tree, c, p, b);
  }
  // [F] the code of the tree's root
  method TreeRoot(j: Journal) returns (r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires j.Inv() && j.mutex.settled == j.installer
    ensures j.tree.Ok() && j.tree.seal == j.seal && |j.tree.pages.vs| == |j.tree.pages.rs| > 0 &&
      j.tree.Root() == CV(r0, r1) && pg == j.tree.Now() &&
      (j.tree.pageCount > 0 ==> IsTree(j.tree.seal.t, j.tree.Now(), j.tree.Root()))
  {
    reveal j.Inv();
    j.tree.pages.Trees();
    var version;
    version, r0, r1 := j.tree.pages.Root();
    pg := j.tree.Now();
  }
  // [F] write page p of the tree of codes; not where its newest version was seen, which counts until the header is
  // written
  method PageWrite(j: Journal, p: uint64, a: uint64, b: Blk) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.installer && j.installer.phase == HomeWriting && p < j.tree.pageCount &&
      NewPlace(j, p, a, b.v) && j.InTime(j.installer.looked, j.installer.reading)
    modifies j.installer`pagesWritten, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled, j.installer.reading
    ensures j.Inv() && j.KeepsLogger() && j.Mono() &&
      j.installer.pagesWritten == old(j.installer.pagesWritten)[p as int := b.v]
    ensures !ok ==> j.disk.bad
  {
    reveal j.Inv(); reveal j.OwnerInv();
    LogFacts(j);
    TreeWritePres(j.disk.poss, j.protocol(), a as int, 1);
    CrashAll(Fuzzy(j.disk.poss, a as int, 1), j.protocol(), j.states, j.durableIndex, j.frozenIndex);
    Elsewhere(j.disk.owner, Installing, Logging, a as int, 1);
    reveal j.InTime(); reveal j.LooksInv();
    ok := j.disk.Write(Installing, a, b, j.installer.looked, j.installer.reading);
    j.installer.pagesWritten := j.installer.pagesWritten[p as int := b.v];
    PageWroteI(j, a as int, ok);
    PageWrotePages(j, p as int, a as int, b.v, ok);
    LogFrame(j);
  }
  twostate lemma PageWrotePages(j: Journal, p: int, a: int, b: BV, ok: bool)
    requires old(j.PagesInv()) && j.tree.Ok() && unchanged(j.tree.pages) &&
      j.installer.phase == old(j.installer.phase) == HomeWriting && 0 <= p < j.tree.pageCount as int && |b| == 4096 &&
      j.installer.pagesWritten == old(j.installer.pagesWritten)[p := b]
    requires a == PlaceOf(j.tree.first as int, p, b) &&
      (j.Sound() && |j.tree.pages.vs| > 0 && p < |j.tree.Now()| ==> |j.tree.Now()[p]| == 4096 &&
      a != PlaceOf(j.tree.first as int, p, j.tree.Now()[p]))
    requires a < |j.disk.cur| == |j.disk.poss| == |old(j.disk.cur)| == |old(j.disk.poss)| &&
      forall x :: 0 <= x < |j.disk.cur| && x != a ==> j.disk.poss[x] == old(j.disk.poss)[x] &&
      (ok ==> j.disk.cur[x] == old(j.disk.cur)[x])
    requires if ok then j.disk.bad == old(j.disk.bad) && j.disk.cur[a] == b else j.disk.bad
    ensures j.PagesInv()
  {
    reveal j.PagesInv();
    if j.Sound() && j.tree.pageCount > 0 {
      var t, first, pg, r := j.tree.seal.t, j.tree.first as int, j.tree.Now(), j.tree.Root();
      forall q | 0 <= q < t.np ensures Sits(first, j.disk.poss, q, PageCode(t, pg, r, q), pg[q]) {
        assert Sits(first, old(j.disk.poss), q, PageCode(t, pg, r, q), pg[q]);
      }
    }
  }
  twostate lemma PageWroteI(j: Journal, a: int, ok: bool)
    requires old(j.InstallerInv()) &&
      unchanged(j, j.installer`list, j.installer`phase, j.installer`blocksWritten, j.installer`headerPhase,
      j.installer`nextRoot) && j.installer.phase == HomeWriting &&
      0 <= a < j.layout.headerAt < Copy(j.layout) < Home(j.layout) == j.home as int
    requires |j.disk.cur| == |j.disk.poss| == |old(j.disk.cur)| == |old(j.disk.poss)| &&
      forall x :: 0 <= x < |j.disk.cur| && x != a ==> j.disk.poss[x] == old(j.disk.poss)[x] &&
      (ok ==> j.disk.cur[x] == old(j.disk.cur)[x])
    requires if ok then j.disk.bad == old(j.disk.bad) else j.disk.bad
    ensures j.InstallerInv()
  { reveal j.InstallerInv(); }
  // the codes s are those with which the tree says what it is to say after the installation
  predicate CodesNext(j: Journal, s: seq<Code>) reads j.installer {
    Restates(s, j.home as int, j.seal.key, j.installer.treeState, j.installer.nextTreeState)
  }
  // [F] the codes that the installation changes: of the blocks it writes, and of those that went straight home
  method ChangedCodes(j: Journal) returns (c: Codes)
    requires j.Inv() && j.mutex.settled == j.installer && j.installer.phase == HomeWriting &&
      j.installer.list != null && |j.installer.list.addrs| == |j.installer.list.blks|
    modifies j.mutex`settled
    ensures fresh(c) && j.tree.Ok() && j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.tree.pageCount > 0 ==> ListOk(j.tree.seal.t, c.s) && CodesNext(j, c.s) &&
      forall k :: 0 <= k < |c.s| ==> c.s[k].x < j.tree.homeCount as int
  {
    reveal j.Inv();
    InsLists(j);
    c := NewCodes();
    if j.tree.pageCount == 0 { return; }
    AddList(j.tree, c, j.installer.list, j.installing);
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
    requires j.Inv() && j.installer.phase == HomeWriting && j.installer.list != null &&
      |s2| == |s| + |j.installingDirect.addrs| && s2[..|s|] == s
    requires |s| == |j.installer.list.addrs| &&
      forall i :: 0 <= i < |s| ==> s[i].x == j.installer.list.addrs[i] - j.home as int
    requires forall k :: 0 <= k < |j.installingDirect.addrs| ==>
      s2[|s| + k].x == j.installingDirect.addrs[k] - j.home as int
    ensures Single(s2)
  {
    reveal j.Inv();
    InsLists(j);
    j.installingDirect.Distinct();
    forall k, l | 0 <= k < l < |s2| ensures s2[k].x != s2[l].x {
      if l < |s| { assert s2[k] == s[k] && s2[l] == s[l]; }
      else {
        assert s2[l].x == s2[|s| + (l - |s|)].x == j.installingDirect.addrs[l - |s|] - j.home as int;
        if k < |s| {
          assert s2[k] == s[k]; HeldLive(j, j.installingDirect.addrs[l - |s|]);
          assert j.installer.list.addrs[k] in j.installBlocks;
        }
        else { assert s2[k].x == s2[|s| + (k - |s|)].x; }
      }
    }
  }
  // they are all of home blocks
  lemma CodesFit(j: Journal, s: seq<Code>)
    requires j.Inv() && j.installer.phase == HomeWriting && CodesNext(j, s)
    ensures forall k :: 0 <= k < |s| ==> 0 <= s[k].x < j.tree.homeCount as int
  {
    reveal j.Inv();
    NextHome(j); FullD(j.disk.poss, j.protocol());
    forall k | 0 <= k < |s| ensures 0 <= s[k].x < j.tree.homeCount as int {
      assert s[k] in s; assert s[k].x + j.home as int in j.base;
    }
  }
  lemma SameCodes(j: Journal, s: seq<Code>, s2: seq<Code>)
    requires CodesNext(j, s) && forall e :: e in s <==> e in s2
    ensures CodesNext(j, s2)
  {}
  // ... the latter
  method HeldCodes(j: Journal, c: Codes)
    requires j.Inv() && j.installer.phase == HomeWriting && j.tree.pageCount > 0
    modifies c
    ensures |old(c.s)| <= |c.s| && c.s[..|old(c.s)|] == old(c.s)
    ensures forall k :: |old(c.s)| <= k < |c.s| ==> var a := c.s[k].x + j.home as int; a in j.installingDirect.m &&
      a in j.base && Vouches(j.seal.key, c.s[k].x, c.s[k].c, j.base[a])
    ensures forall a :: a in j.installingDirect.m ==> exists e :: e in c.s && e.x == a - j.home as int
    ensures |c.s| == |old(c.s)| + |j.installingDirect.addrs| && forall k :: 0 <= k < |j.installingDirect.addrs| ==>
      c.s[|old(c.s)| + k].x == j.installingDirect.addrs[k] - j.home as int
  {
    reveal j.Inv(); reveal j.TreeInv();
    var n := j.installingDirect.Len();
    var i: uint64 := 0;
    while i < n
      invariant i <= n && |old(c.s)| + i as int == |c.s| && c.s[..|old(c.s)|] == old(c.s)
      invariant forall k :: |old(c.s)| <= k < |c.s| ==> var a := c.s[k].x + j.home as int; a in j.installingDirect.m &&
        a in j.base && Vouches(j.seal.key, c.s[k].x, c.s[k].c, j.base[a])
      invariant forall k :: 0 <= k < i as int ==> c.s[|old(c.s)| + k].x == j.installingDirect.addrs[k] - j.home as int
    {
      var a := j.installingDirect.AddrAt(i);
      HeldLive(j, a as int);
      assert a as int in j.base;
      var has, c0, c1, v, r0, r1 := j.tree.pages.Look(a - j.home);
      assert a as int - j.home as int in j.tree.pages.held;
      c.Add(a - j.home, c0, c1);
      i := i + 1;
    }
    forall a | a in j.installingDirect.m ensures exists e :: e in c.s && e.x == a - j.home as int {
      assert a in j.installingDirect.addrs;
      var k :| 0 <= k < |j.installingDirect.addrs| && j.installingDirect.addrs[k] == a;
      assert c.s[|old(c.s)| + k] in c.s;
    }
  }
  // s are the codes of the blocks being installed, and s2 has those of the blocks that went straight home as well
  lemma Covered(j: Journal, s: seq<Code>, s2: seq<Code>)
    requires j.Inv() && j.installer.phase == HomeWriting && j.installer.list != null && |s| <= |s2| && s2[..|s|] == s &&
      j.tree.pageCount > 0
    requires |s| == |j.installer.list.addrs| == |j.installer.list.blks| && forall i :: 0 <= i < |s| ==>
      s[i].x == j.installer.list.addrs[i] - j.home as int &&
      Vouches(j.seal.key, s[i].x, s[i].c, j.installer.list.blks[i])
    requires forall k :: |s| <= k < |s2| ==> var a := s2[k].x + j.home as int; a in j.installingDirect.m &&
      a in j.base && Vouches(j.seal.key, s2[k].x, s2[k].c, j.base[a])
    requires forall a :: a in j.installingDirect.m ==> exists e :: e in s2 && e.x == a - j.home as int
    ensures CodesNext(j, s2)
  {
    reveal j.Inv();
    InsLists(j); NextHome(j);
    forall e | e in s2 ensures e.x + j.home as int in j.installer.nextTreeState &&
      Vouches(j.seal.key, e.x, e.c, j.installer.nextTreeState[e.x + j.home as int]) {
      var k :| 0 <= k < |s2| && s2[k] == e;
      if k < |s| { assert s[k] == e; var a := j.installer.list.addrs[k]; assert a in j.installBlocks && a in j.base; }
    }
    forall a | a in j.installer.nextTreeState && (forall e :: e in s2 ==> e.x != a - j.home as int)
      ensures a in j.installer.treeState && j.installer.nextTreeState[a] == j.installer.treeState[a] {
      if a in j.installBlocks {
        assert a in j.installer.list.addrs; var k :| 0 <= k < |s| && j.installer.list.addrs[k] == a;
        assert s2[k] == s[k]; assert s2[k] in s2;
      }
    }
  }
  // [F] what is being installed is home
  method InstBarrier(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.installer && j.installer.phase == HomeWriting &&
      j.installer.list != null && j.installer.blocksWritten == |j.installer.list.addrs|
    modifies j.installer`phase, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.installer.phase == (if ok then HomeDurable else HomeWriting)
    ensures !ok ==> j.disk.bad
  {
    reveal j.Inv();
    InsLists(j);
    ghost var P := j.disk.poss;
    ok := j.disk.Barrier(Installing);
    BarrierPres(j.disk.poss, P, j.protocol());
    InsFrame(j);
    if ok {
      InstDone(j);
      j.installer.phase := HomeDurable;
      InstDoneI(j);
      PagesDone(j);
      assert j.OwnerInv() by { reveal j.OwnerInv(); }
    } else { PagesFrame(j); }
    AmongKeep(old(j.protocol()), j.protocol(), j.states, j.durableIndex, j.frozenIndex);
    LogFrame(j);
  }
  // the pages that were written are durable
  twostate lemma PagesDone(j: Journal)
    requires old(j.PagesInv()) && old(j.OwnerInv()) && j.LayoutInv() && unchanged(j.tree.pages) &&
      old(j.installer.phase) == HomeWriting && j.installer.phase == HomeDurable &&
      j.installer.pagesWritten == old(j.installer.pagesWritten) && !old(j.disk.bad) && j.disk.cur == old(j.disk.cur)
    requires |j.disk.poss| == |j.disk.cur| == |old(j.disk.poss)| &&
      (forall a :: 0 <= a < |j.disk.poss| ==> j.disk.poss[a] <= old(j.disk.poss)[a])
    requires forall a :: 0 <= a < |j.disk.cur| && Owns(old(j.disk.owner), Installing, a) ==>
      j.disk.poss[a] == iset{j.disk.cur[a]}
    ensures j.PagesInv()
  {
    reveal j.PagesInv(); reveal j.OwnerInv();
    if j.Sound() && j.tree.pageCount > 0 {
      PagesLess(j.tree.seal.t, j.tree.first as int, old(j.disk.poss), j.disk.poss, j.tree.Now(), j.tree.Root());
    }
  }
  // all blocks being installed are home, and durable
  lemma InstDone(j: Journal)
    requires j.InstallerInv() && j.OwnerInv() && j.installer.phase == HomeWriting && !j.disk.bad &&
      j.installer.list != null && j.installer.blocksWritten == |j.installer.list.addrs| &&
      Full(j.disk.poss, j.protocol()) && |j.disk.poss| == |j.disk.cur|
    requires j.home as int == Home(j.layout) && forall a :: 0 <= a < |j.disk.cur| &&
      Owns(j.disk.owner, Installing, a) ==> j.disk.poss[a] == iset{j.disk.cur[a]}
    ensures Full(j.disk.poss, j.protocol().(phase := HomeDurable))
  {
    reveal j.InstallerInv(); reveal j.OwnerInv();
    forall a | a in j.installBlocks && Home(j.layout) <= a < |j.disk.poss|
      ensures j.disk.poss[a] <= iset{j.installBlocks[a]} {
      assert a in j.installer.list.addrs;
      var i :| 0 <= i < |j.installer.list.addrs| && j.installer.list.addrs[i] == a;
      assert j.disk.cur[a] == j.installer.list.blks[i];
    }
    InstBarrierPres(j.disk.poss, j.protocol());
  }
  twostate lemma InstDoneI(j: Journal)
    requires old(j.InstallerInv()) && old(j.installer.phase) == HomeWriting &&
      j.protocol() == old(j.protocol()).(phase := HomeDurable) && j.installer.list != null &&
      j.installer.list == old(j.installer.list) && j.installer.blocksWritten == old(j.installer.blocksWritten) &&
      j.cachedCount == old(j.cachedCount) && j.cached == old(j.cached) &&
      j.installer.headerPhase == old(j.installer.headerPhase)
    requires j.home as int == Home(j.layout) && |j.disk.cur| == |j.disk.poss| == |old(j.disk.cur)|
    ensures j.InstallerInv()
  { reveal j.InstallerInv(); }
  // what it means to write the header, or its copy
  lemma HdrReady(j: Journal, a: int, v: BV, r2: CV)
    requires j.Inv() && IsHome(j.installer.phase) && (a == j.layout.headerAt || a == Copy(j.layout)) && HdrTail(v) &&
      DecHdr(j.layout.key, v) == Hdr(j.firstSeq as int + j.installCount, j.layout.epoch, r2)
    requires Says(j.layout, r2, j.installer.nextTreeState) &&
      (j.installer.phase == HeaderWriting ==> r2 == j.installer.nextRoot)
    ensures 0 <= a < |j.disk.poss| == |j.disk.cur| && j.disk.Valid() && Owns(j.disk.owner, Installing, a) &&
      Full(AddHdr(j.disk.poss, a, v), j.protocol().(phase := HeaderWriting, nextRoot := r2))
    ensures forall x :: x in j.disk.poss[a] ==> SameTail(x, v)
    ensures forall s :: CrashImg(AddHdr(j.disk.poss, a, v), s) ==> s in j.disk.ok
  {
    reveal j.Inv(); reveal j.OwnerInv();
    HdrWritePres(j.disk.poss, j.protocol(), a, v, r2);
    ghost var g1 := j.protocol().(phase := HeaderWriting, nextRoot := r2);
    assert DurState(g1) == DurState(j.protocol());
    LogFacts(j);
    AmongKeep(j.protocol(), g1, j.states, j.durableIndex, j.frozenIndex);
    CrashAll(AddHdr(j.disk.poss, a, v), g1, j.states, j.durableIndex, j.frozenIndex);
  }
  lemma HdrPhase(j: Journal, copy: bool)
    requires j.Inv() && if copy then j.installer.headerPhase == HeaderDurable else j.installer.phase == HomeDurable
    ensures IsHome(j.installer.phase) && (!copy ==> j.installer.phase == HomeDurable) &&
      j.seqAfterInstall as int == j.firstSeq as int + j.installCount && j.layout.epoch == j.seal.ep &&
      j.layout.key == j.seal.key && j.layout.tree == j.seal.t
    ensures j.headerAt as int == j.layout.headerAt && j.home as int - 1 == Copy(j.layout) && j.headerAt < j.home
  { reveal j.Inv(); reveal j.InstallerInv(); }
  twostate lemma HdrWroteI(j: Journal, copy: bool, a: int, v: BV, ok: bool)
    requires old(j.InstallerInv()) && j.installer.phase == HeaderWriting && j.installer.list == old(j.installer.list) &&
      j.installer.blocksWritten == old(j.installer.blocksWritten) && unchanged(j)
    requires if copy then old(j.installer.headerPhase) == HeaderDurable else old(j.installer.phase) == HomeDurable
    requires j.installer.headerPhase == if ok then (if copy then CopyWritten else HeaderWritten)
      else old(j.installer.headerPhase)
    requires a == (if copy then Copy(j.layout) else j.layout.headerAt) &&
      0 <= a < |j.disk.cur| == |j.disk.poss| == |old(j.disk.cur)| == |old(j.disk.poss)| &&
      j.home as int == Home(j.layout)
    requires DecHdr(j.layout.key, v) == Hdr(j.firstSeq as int + j.installCount, j.layout.epoch, j.installer.nextRoot) &&
      (copy ==> j.installer.nextRoot == old(j.installer.nextRoot))
    requires forall x :: 0 <= x < |j.disk.poss| && x != a ==> j.disk.poss[x] == old(j.disk.poss)[x] &&
      j.disk.cur[x] == old(j.disk.cur)[x]
    requires if ok then j.disk.bad == old(j.disk.bad) && j.disk.cur[a] == v else j.disk.bad
    ensures j.InstallerInv()
  { reveal j.InstallerInv(); }
  twostate lemma HdrOwnI(j: Journal)
    requires old(j.OwnerInv()) && old(j.installer.phase) != NoInstall && j.installer.phase != NoInstall &&
      unchanged(j) && j.frozenDirect.m == old(j.frozenDirect.m) && j.logger.phase == old(j.logger.phase) &&
      j.logger.pending == old(j.logger.pending) && j.disk.owner == old(j.disk.owner)
    ensures j.OwnerInv()
  { reveal j.OwnerInv(); }
  twostate lemma HdrPages(j: Journal, pg: seq<BV>)
    requires old(j.PagesInv()) && j.tree.Ok() && IsHome(old(j.installer.phase)) && j.installer.phase == HeaderWriting &&
      j.installer.pagesWritten == old(j.installer.pagesWritten) && unchanged(j.tree.pages) &&
      |j.disk.cur| == |j.disk.poss| == |old(j.disk.poss)|
    requires j.tree.pageCount > 0 ==> NextPages(j.tree, j.installer.pagesWritten, pg, j.installer.nextRoot) &&
      IsTree(j.tree.seal.t, pg, j.installer.nextRoot)
    requires forall x :: 0 <= x < j.tree.first as int + 2 * j.tree.pageCount as int &&
      x < |j.disk.poss| ==> j.disk.poss[x] == old(j.disk.poss)[x]
    ensures j.PagesInv()
  {
    reveal j.PagesInv();
    if j.Sound() && j.tree.pageCount > 0 {
      PagesLess(j.tree.seal.t, j.tree.first as int, old(j.disk.poss), j.disk.poss, j.tree.Now(), j.tree.Root());
    }
  }
  // [F] the header: from here on recovery may start after the installed groups. Then, when it
  // is durable, its copy: so there is always a header that is not being written.
  method HdrWrite(j: Journal, copy: bool, r0: uint64, r1: uint64, ghost pg: seq<BV>) returns (ok: bool)
    requires j.tree.pageCount > 0 ==> NextPages(j.tree, j.installer.pagesWritten, pg, CV(r0, r1)) &&
      IsTree(j.tree.seal.t, pg, CV(r0, r1))
    requires Says(j.layout, CV(r0, r1), j.installer.nextTreeState) && (copy ==> j.installer.nextRoot == CV(r0, r1))
    requires j.Inv() && j.mutex.settled == j.installer && j.InTime(j.installer.looked, j.installer.reading) &&
      if copy then j.installer.headerPhase == HeaderDurable else j.installer.phase == HomeDurable
    modifies j.installer`phase, j.installer`headerPhase, j.installer`nextRoot, j.disk`poss, j.disk`cur, j.disk`bad,
      j.mutex`settled, j.installer.reading
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.installer.phase == HeaderWriting &&
      (ok ==> j.installer.headerPhase == if copy then CopyWritten else HeaderWritten) &&
      j.installer.nextRoot == CV(r0, r1)
    ensures !ok ==> j.disk.bad
  {
    HdrPhase(j, copy);
    assert IsRoot(j.seal.t, CV(r0, r1)) by { IsRootOf(j.layout, CV(r0, r1), j.installer.nextTreeState); }
    var b := j.seal.EncHdr(j.seqAfterInstall, r0, r1);
    var a := if copy then j.home - 1 else j.headerAt;
    HdrReady(j, a as int, b.v, CV(r0, r1));
    reveal j.Inv();
    Elsewhere(j.disk.owner, Installing, Logging, a as int, 1);
    reveal j.InTime(); reveal j.LooksInv();
    ok := j.disk.WriteSector(Installing, a, b, j.installer.looked, j.installer.reading);
    j.installer.phase := HeaderWriting; j.installer.nextRoot := CV(r0, r1);
    if ok { j.installer.headerPhase := if copy then CopyWritten else HeaderWritten; }
    AmongKeep(old(j.protocol()), j.protocol(), j.states, j.durableIndex, j.frozenIndex);
    HdrWroteI(j, copy, a as int, b.v, ok);
    HdrOwnI(j);
    LogFrame(j);
    HdrPages(j, pg);
  }
  // [F] what was written of the headers is durable
  method HdrBarrier(j: Journal) returns (ok: bool)
    requires j.Inv() && j.mutex.settled == j.installer &&
      (j.installer.headerPhase == HeaderWritten || j.installer.headerPhase == CopyWritten)
    modifies j.installer`headerPhase, j.disk`poss, j.disk`cur, j.disk`bad, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures ok ==> j.installer.headerPhase == Secured(old(j.installer.headerPhase))
    ensures !ok ==> j.disk.bad
  {
    reveal j.Inv(); reveal j.InstallerInv(); reveal j.OwnerInv();
    ghost var P := j.disk.poss;
    ok := j.disk.Barrier(Installing);
    BarrierPres(j.disk.poss, P, j.protocol());
    if ok { j.installer.headerPhase := Secured(j.installer.headerPhase); }
    LogFrame(j); PagesFrame(j);
  }
  // [L] put one of the installed blocks into the cache
  method CacheInst(j: Journal)
    requires j.Inv() && j.mutex.Inside() && j.installer.phase == HeaderWriting && j.installer.list != null &&
      j.cachedCount as int < |j.installer.list.addrs|
    modifies j`cachedCount, j`cached, j.cache
    ensures j.Inv() && j.KeepsLogger() && j.Mono()
    ensures j.cachedCount == old(j.cachedCount) + 1
  {
    reveal j.Inv(); reveal j.InstallerInv(); reveal j.CacheInv();
    var i := j.cachedCount;
    var a := j.installer.list.AddrAt(i);
    var b := j.installer.list.BlkAt(i, j.installing);
    DirApart(j);
    j.cache.Put(a, b, j.installing);
    j.cached := j.cached + {a as int};
    j.cachedCount := j.cachedCount + 1;
  }
  // the pages pg, with the root r, are the tree's next version, with the changes of c
  predicate NextVersion(j: Journal, c: Codes, r: CV, pg: seq<BV>)
    reads j.installer, j.tree.pages`vs, j.tree.pages`rs, c {
    NextTree(j.tree, c, r, pg) && j.tree.seal == j.seal &&
      (j.tree.pageCount > 0 ==> TreeSays(j.layout, pg, r, j.installer.nextTreeState) &&
      NextPages(j.tree, j.installer.pagesWritten, pg, r))
  }
  // [L] the log space is free, and the tree's next version counts. (What readers see of it, who do not hold the mutex,
  // happens at once: in Advance.)
  method FinishInstall(j: Journal, c: Codes, r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires j.Inv() && j.mutex.Inside() && j.installer.headerPhase == CopyDurable && j.installer.list != null &&
      j.cachedCount as int == |j.installer.list.addrs| && j.trims < 0x3FFF_FFFF_FFFF_0000
    requires NextVersion(j, c, CV(r0, r1), pg) && j.installer.nextRoot == CV(r0, r1)
    modifies j`installing, j`installingDirect, j`repr, j`firstSeq, j`logStart, j`cachedCount, j`cached, j`trims,
      j`groups, j`directs, j`descs, j`installCount, j`base, j`installBlocks, j`torn, j.installer, j.installing,
      j.tree.pages, j.disk`owner, j.mutex`woken
    ensures j.Inv() && j.KeepsLogger() && j.Mono() && j.installer.phase == NoInstall
    ensures fresh(j.repr - old(j.repr))
    ensures All(CSpace) in j.mutex.woken && One(CLogger) in j.mutex.woken
  {
    var was := j.installing;
    Installed(j, c, r0, r1, pg);
    was.Clear();
  }
  // [L] ... all of it, but that the map of what was installed is not empty yet
  method Installed(j: Journal, c: Codes, r0: uint64, r1: uint64, ghost pg: seq<BV>)
    requires j.Inv() && j.mutex.Inside() && j.installer.headerPhase == CopyDurable && j.installer.list != null &&
      j.cachedCount as int == |j.installer.list.addrs| && j.trims < 0x3FFF_FFFF_FFFF_0000
    requires NextVersion(j, c, CV(r0, r1), pg) && j.installer.nextRoot == CV(r0, r1)
    modifies j`installing, j`installingDirect, j`repr, j`firstSeq, j`logStart, j`cachedCount, j`cached, j`trims,
      j`groups, j`directs, j`descs, j`installCount, j`base, j`installBlocks, j`torn, j.installer, j.tree.pages,
      j.disk`owner, j.mutex`woken
    ensures j.Inv() && j.KeepsLogger() && j.Mono() && j.installer.phase == NoInstall
    ensures fresh(j.repr - old(j.repr)) && var was := old(j.installing);
      was !in {j.running, j.logged, j.frozen, j.frozenDirect, j.installing, j.loggedDirect, j.installingDirect} &&
      was != j.logger.ring && was != j.logger.direct
    ensures All(CSpace) in j.mutex.woken && One(CLogger) in j.mutex.woken
  {
    FinishInstallG(j);
    reveal j.Inv();
    var e := NewBlockMap(); var f := NewBlockMap();
    ghost var g1 := IFinished(j.protocol());
    j.disk.Leave(Installing);
    Advance(j.tree, c, r0, r1, j.installingDirect, pg);
    FinishInstallFields(j, e, f);
    assert j.protocol() == g1;
    AmongKeep(old(j.protocol()), g1, j.states, j.durableIndex, j.frozenIndex);
    assert j.OwnerInv() by { reveal j.OwnerInv(); }
    LogFrame(j); InsNone(j); CacheDone(j); RdNext(j); HoldDone(j); TreeDone(j, pg); PagesNewest(j, pg);
    NoteInstall(j);
  }
  // what finishing means for the protocol's state
  lemma FinishInstallG(j: Journal)
    requires j.Inv() && j.installer.headerPhase == CopyDurable
    ensures j.installer.phase == HeaderWriting && |j.groups| == |j.descs| == |j.directs| &&
      0 <= j.installCount <= |j.groups|
    ensures var g1 := IFinished(j.protocol()); Full(j.disk.poss, g1) && DurState(g1) == DurState(j.protocol()) &&
      g1.groups[g1.installCount..] == j.groups[j.installCount..]
    ensures forall a :: a in j.loggedDirect.m || a in j.installingDirect.m ==> a in j.base && a !in j.installBlocks &&
      (a in j.installingDirect.m ==> a !in j.loggedDirect.m)
  {
    reveal j.Inv();
    HdrFacts(j);
    IFinishPres(j.disk.poss, j.protocol());
    var g1 := IFinished(j.protocol());
    assert g1.groups[g1.installCount..] == j.groups[j.installCount..];
    forall a | a in j.loggedDirect.m || a in j.installingDirect.m ensures a in j.base && a !in j.installBlocks &&
      (a in j.installingDirect.m ==> a !in j.loggedDirect.m) {
      HeldLive(j, a);
    }
  }
  twostate lemma TreeDone(j: Journal, pg: seq<BV>)
    requires old(j.TreeInv()) && j.base == Over(old(j.base), old(j.installBlocks)) &&
      j.installer.root == old(j.installer.nextRoot) && j.installer.treeState == old(j.installer.nextTreeState) &&
      j.loggedDirect == old(j.loggedDirect) && j.loggedDirect.m == old(j.loggedDirect.m) &&
      j.installingDirect.m == map[]
    requires forall a :: a in j.loggedDirect.m || a in old(j.installingDirect.m) ==> a !in old(j.installBlocks) &&
      (a in old(j.installingDirect.m) ==> a !in j.loggedDirect.m)
    requires j.tree.pageCount > 0 ==> TreeSays(j.layout, pg, j.installer.root, j.installer.treeState)
    requires j.tree.pages.vs == old(j.tree.pages.vs) + [pg] &&
      j.tree.pages.rs == old(j.tree.pages.rs) + [j.installer.root]
    requires j.tree.home == j.home && j.tree.pages.held == map x | x in old(j.tree.pages.held) &&
      x + j.home as int !in old(j.installingDirect.m) :: old(j.tree.pages.held)[x]
    ensures j.TreeInv()
  { reveal j.TreeInv(); }
  twostate lemma PagesNewest(j: Journal, pg: seq<BV>)
    requires old(j.PagesInv()) && old(j.installer.phase) == HeaderWriting && j.installer.phase == NoInstall &&
      j.installer.pagesWritten == old(j.installer.pagesWritten) &&
      (j.tree.pageCount > 0 ==> old(NextPages(j.tree, j.installer.pagesWritten, pg, j.installer.nextRoot)))
    requires unchanged(j.disk`poss, j.disk`cur) && j.tree.pages.vs == old(j.tree.pages.vs) + [pg] &&
      j.tree.pages.rs == old(j.tree.pages.rs) + [old(j.installer.nextRoot)]
    ensures j.PagesInv()
  {
    reveal j.PagesInv();
    if j.Sound() && j.tree.pageCount > 0 {
      var t, first := j.tree.seal.t, j.tree.first as int;
      forall q | 0 <= q < t.np ensures Sits(first, j.disk.poss, q, PageCode(t, pg, j.tree.Root(), q), pg[q]) {
        assert Sits(first, j.disk.poss, q, PageCode(t, old(j.tree.Now()), old(j.tree.Root()), q), old(j.tree.Now())[q]);
      }
    }
  }
  method FinishInstallFields(j: Journal, e: BlockMap, f: BlockMap)
    requires j.trims < 0x3FFF_FFFF_FFFF_0000 && |j.groups| == |j.descs| == |j.directs| &&
      0 <= j.installCount <= |j.groups|
    modifies j`installing, j`installingDirect, j`repr, j`firstSeq, j`logStart, j`cachedCount, j`cached, j`trims,
      j`groups, j`directs, j`descs, j`installCount, j`base, j`installBlocks, j`torn, j.installer
    ensures j.torn == old(j.torn) - old(j.installBlocks).Keys &&
      j.installer.root == j.installer.nextRoot == old(j.installer.nextRoot) &&
      j.installer.treeState == j.installer.nextTreeState == old(j.installer.nextTreeState)
    ensures j.installing == e && j.installingDirect == f && j.repr == old(j.repr) + {e, f} &&
      j.trims == old(j.trims) + 1
    ensures j.firstSeq == j.seqAfterInstall && j.logStart == j.posAfterInstall && j.cachedCount == 0 &&
      j.cached == {} && j.installCount == 0
    ensures j.groups == old(j.groups[j.installCount..]) && j.directs == old(j.directs[j.installCount..]) &&
      j.descs == old(j.descs[j.installCount..]) && j.base == Over(old(j.base), old(j.installBlocks)) &&
      j.installBlocks == map[]
    ensures j.installer.phase == NoInstall && j.installer.list == null && j.installer.blocksWritten == 0 &&
      j.installer.headerPhase == HeaderUntouched && j.installer.pagesWritten == old(j.installer.pagesWritten) &&
      j.installer.lost == old(j.installer.lost) && unchanged(j.installer`looked, j.installer`lookedAt)
  {
    j.installing := e; j.installingDirect := f; j.repr := j.repr + {e, f};
    j.firstSeq := j.seqAfterInstall; j.logStart := j.posAfterInstall; j.cachedCount := 0; j.cached := {};
    j.trims := j.trims + 1;
    j.groups := j.groups[j.installCount..]; j.directs := j.directs[j.installCount..];
    j.descs := j.descs[j.installCount..];
    j.base := Over(j.base, j.installBlocks); j.torn := j.torn - j.installBlocks.Keys; j.installBlocks := map[];
    j.installCount := 0;
    j.installer.phase := NoInstall; j.installer.list := null; j.installer.blocksWritten := 0;
    j.installer.headerPhase := HeaderUntouched; j.installer.root := j.installer.nextRoot;
    j.installer.treeState := j.installer.nextTreeState;
  }
  twostate lemma HoldDone(j: Journal)
    requires old(j.HeldInv()) && j.seal.signed == old(j.seal.signed) &&
      j.firstSeq as int == old(j.firstSeq) as int + old(j.installCount) && j.installCount == 0 &&
      j.loggedDirect.m == old(j.loggedDirect.m) && j.frozenDirect.m == old(j.frozenDirect.m)
    requires 0 <= old(j.installCount) <= |old(j.directs)| && j.directs == old(j.directs[j.installCount..]) &&
      j.installingDirect.m == map[]
    ensures j.HeldInv()
  { reveal j.HeldInv(); assert j.directs[..0] == [] && j.directs[0..] == j.directs; }
  twostate lemma CacheDone(j: Journal)
    requires old(j.CacheInv()) && old(j.InstallerInv()) && j.cache.m == old(j.cache.m) &&
      j.frozenDirect.m == old(j.frozenDirect.m) && |old(j.groups)| == |old(j.descs)| == |old(j.directs)| &&
      0 <= old(j.installCount) <= |old(j.groups)| && j.protocol() == IFinished(old(j.protocol()))
    requires old(j.installer.list) != null && old(j.installer.phase) == HeaderWriting &&
      old(j.cachedCount) as int == |old(j.installer.list).addrs|
    ensures j.CacheInv()
  {
    reveal j.CacheInv(); reveal j.InstallerInv();
    forall a | a in j.cache.m && a !in j.frozenDirect.m ensures a in j.base && j.cache.m[a] == j.base[a] {
      if a in old(j.installBlocks) {
        assert a in old(j.installer.list).addrs;
        var i :| 0 <= i < |old(j.installer.list).addrs| && old(j.installer.list).addrs[i] == a;
      }
    }
  }
  twostate lemma RdNext(j: Journal)
    requires old(j.ReadsInv()) && j.observed == old(j.observed) && j.trims as int == old(j.trims) as int + 1 &&
      forall a :: a in old(j.base) ==> a in j.base
    ensures j.ReadsInv()
  { reveal j.ReadsInv(); }
}
