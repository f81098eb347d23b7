// What the invariant says in its parts, and when parts of it are kept by steps that change
// what they speak about and are not theirs: LoggerInv by the installer's, InstallerInv by the logger's.
// (What a step does not modify at all needs no lemma: each part names what it reads.)
include "state.dfy"

module JournalFacts {
  import opened Machine
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened Ring
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened TreeModel
  import opened TreeOfCodes
  import opened TreeSaid

  // what LoggerInv says, without the disk
  lemma LogFacts(j: Journal)
    requires j.LoggerInv()
    ensures |j.logger.bodies| == |j.logger.pending| == j.logger.pendingCount as int &&
      Chain(j.logger.newest, j.logger.bodies, j.logger.maps) &&
      (j.logger.phase != GroupFrozen && j.logger.phase != GroupWriting ==>
      j.logger.ring == null && j.logger.direct == null) &&
      (j.logger.phase != NoLogger && j.logger.phase != GroupFrozen ==> j.logger.pending != []) &&
      |j.frozen.addrs| + |j.frozenDirect.addrs| <= 500 * (|j.logger.pending| + if j.logger.phase == GroupFrozen then 1
      else 0) && j.logger.endPos as int == PendEnd(j.protocol()) &&
      End(j.protocol()) + |j.logger.pending| < 0x1FFF_FFFF_FFFF_FFFF && j.logger.endPos < 0x1FFF_FFFF_FFFF_0000
    ensures j.logger.phase == GroupFrozen ==> j.logger.ring != null && j.logger.direct != null &&
      j.FrozenParts(j.logger.ring, j.logger.direct)
    ensures j.logger.phase != GroupFrozen ==> j.frozen.m == Merge(BlockMaps(j.logger.pending)) &&
      j.frozenDirect.m == Merge(DirectMaps(j.logger.pending))
    ensures forall i :: 0 <= i < |j.logger.pending| ==> Body(j.logger.bodies[i], j.logger.pending[i])
    ensures CodesOf(j.logger.codes.s, Merge(DirectMaps(j.logger.pending)), Home(j.layout), j.seal.key)
    ensures j.logger.phase == GroupWriting ==> j.logger.pending != [] && j.logger.desc != null &&
      j.logger.body != null && j.logger.directList != null && |j.disk.cur| >= Home(j.layout) &&
      j.logger.ring != null && j.logger.direct != null && KeepsAll(j.logger.ring, j.logger.body) &&
      KeepsAll(j.logger.direct, j.logger.directList) &&
      var e := j.logger.pending[|j.logger.pending|-1];
      j.logger.desc.v == e.descBlock && |e.descBlock| == 4096 &&
        j.logger.body == j.logger.bodies[|j.logger.pending|-1] && Body(j.logger.body, e) &&
        0 <= j.logger.blocksWritten <= |e.desc.addrs| &&
        Lists(j.logger.directList, e.direct, Home(j.layout), |j.disk.cur|) &&
        0 <= j.logger.directWritten <= |j.logger.directList.addrs|
  { reveal j.LoggerInv(); }
  // nobody but the logger writes the direct blocks of the frozen group and the pending ones
  lemma DirApart(j: Journal)
    requires j.LoggerInv() && Full(j.disk.poss, j.protocol())
    ensures forall a :: a in j.frozenDirect.m ==> a !in j.frozen.m && a !in j.installBlocks && a !in Merge(j.groups)
  {
    LogFacts(j); FullD(j.disk.poss, j.protocol());
    forall a | a in j.frozenDirect.m ensures a !in j.frozen.m && a !in j.installBlocks && a !in Merge(j.groups) {
      DirOneApart(j, a);
    }
  }
  lemma DirOneApart(j: Journal, a: int)
    requires j.LoggerInv() && DInv(j.disk.poss, j.protocol()) && a in j.frozenDirect.m
    ensures a !in j.frozen.m && a !in j.installBlocks && a !in Merge(j.groups)
  {
    LogFacts(j);
    if a in Merge(DirectMaps(j.logger.pending)) {
      MergeKeys(DirectMaps(j.logger.pending), a);
      var i :| 0 <= i < |j.logger.pending| && a in DirectMaps(j.logger.pending)[i];
      PendHome(j.protocol(), |j.disk.poss|, i, a);
      if j.logger.phase == GroupFrozen && a in j.logger.ring.m { PendDirect(j.protocol(), i, a); }
    } else {
      assert j.logger.phase == GroupFrozen && a in j.logger.direct.m;
      if a in Merge(j.groups) { MergeKeys(j.groups, a); }
      if a in j.installBlocks { MergeKeys(j.groups[..j.installCount], a); }
      if a in Merge(BlockMaps(j.logger.pending)) {
        MergeKeys(BlockMaps(j.logger.pending), a);
        var i :| 0 <= i < |j.logger.pending| && a in BlockMaps(j.logger.pending)[i];
        assert a in j.logger.pending[i].blocks;
      }
    }
  }
  lemma PendDirect(g: Protocol, i: int, a: int)
    requires Free(g) && 0 <= i < |g.pending| && a in g.pending[i].direct
    ensures Direct(g.signed, g.firstSeq, a)
  { reveal Free(); assert DirPend(g.pending, i, a); DirectFrom(g.signed, g.firstSeq, End(g) + i, a); }
  // what InstallerInv says of the list of the installer
  lemma InsLists(j: Journal)
    requires j.InstallerInv() && j.installer.phase != NoInstall && j.installer.list != null
    ensures |j.disk.cur| >= Home(j.layout) && Lists(j.installer.list, j.installBlocks, j.home as int, |j.disk.cur|) &&
      0 <= j.installer.blocksWritten <= |j.installer.list.addrs|
  { reveal j.InstallerInv(); }
  // ... and of a durable header
  lemma HdrFacts(j: Journal)
    requires j.InstallerInv() && j.installer.headerPhase == CopyDurable
    ensures j.installer.phase == HeaderWriting && GeoOk(j.layout) && |j.disk.poss| >= Home(j.layout)
    ensures j.Passes(j.disk.poss[j.layout.headerAt]) && j.Passes(j.disk.poss[Copy(j.layout)])
  { reveal j.InstallerInv(); }
  // the blocks that have an owner
  lemma Owned(j: Journal)
    requires j.OwnerInv()
    ensures forall a :: a in j.disk.owner <==> ((j.logger.phase != NoLogger || j.logger.pending != []) &&
      (j.layout.headerAt < a < Copy(j.layout) || a in j.frozenDirect.m)) || (j.installer.phase != NoInstall &&
      (j.tree.first as int <= a < j.layout.headerAt || a == j.layout.headerAt || a == Copy(j.layout) ||
      a in j.installBlocks))
  {
    reveal j.OwnerInv();
    forall a | a in j.disk.owner ensures Owns(j.disk.owner, Logging, a) || Owns(j.disk.owner, Installing, a) {
      assert !Owns(j.disk.owner, Recovering, a);
    }
    forall a ensures Owns(j.disk.owner, Logging, a) ==> a in j.disk.owner {}
    forall a ensures Owns(j.disk.owner, Installing, a) ==> a in j.disk.owner {}
  }
  // blocks that one role owns are none of the other's
  lemma Elsewhere(o: map<int, Role>, r: Role, other: Role, a: int, n: int)
    requires r != other && forall x :: a <= x < a + n ==> Owns(o, r, x)
    ensures forall x :: Owns(o, other, x) ==> !(a <= x < a + n)
  { forall x | Owns(o, other, x) ensures !(a <= x < a + n) { if a <= x < a + n { assert Owns(o, r, x); } } }
  // the fields are what the ghost state says
  lemma GeoFacts(j: Journal)
    requires j.Inv()
    ensures GeoOk(j.layout) && j.layout.bitmapAt == j.bitmapAt as int && j.layout.allocFrom == j.allocFrom as int &&
      j.layout.allocEnd == j.allocEnd as int
  { reveal j.Inv(); }
  lemma Counters(j: Journal)
    requires j.Inv()
    ensures j.firstSeq <= j.nextSeq && j.layout.units == j.units as int && j.layout.ringSize == j.ringSize as int &&
      j.nextSeq as int == End(j.protocol())
    ensures j.busy <==> j.logger.phase != NoLogger
    ensures j.logStart <= j.logEnd && j.ringSize < 0x1_0000_0000
    ensures |j.running.addrs| <= 500 && |j.logged.addrs| < 0x1_0000_0000 &&
      |j.groups| == j.nextSeq as int - j.firstSeq as int
  { reveal j.Inv(); }

  // no block that goes straight home is one of those that did and are held
  lemma HeldApart(j: Journal)
    requires j.LoggerInv() && j.HeldInv() && Full(j.disk.poss, j.protocol()) && j.logger.phase != GroupFrozen
    ensures forall a :: a in j.frozenDirect.m ==> a !in j.loggedDirect.m && a !in j.installingDirect.m
  {
    reveal j.HeldInv(); FullD(j.disk.poss, j.protocol()); LogFacts(j);
    forall a | a in j.loggedDirect.m || a in j.installingDirect.m ensures a !in j.frozenDirect.m {
      MergeCat(j.directs[..j.installCount], j.directs[j.installCount..]);
      assert j.directs == j.directs[..j.installCount] + j.directs[j.installCount..];
      MergeKeys(j.directs, a);
      var i :| 0 <= i < |j.directs| && a in j.directs[i];
      KeptHome(j.protocol(), |j.disk.poss|, i, a);
      if a in Merge(DirectMaps(j.logger.pending)) {
        MergeKeys(DirectMaps(j.logger.pending), a);
        var x :| 0 <= x < |j.logger.pending| && a in DirectMaps(j.logger.pending)[x];
        assert a in j.logger.pending[x].direct;
      }
    }
  }
  // what the blocks that are held have to do with an installation
  lemma HeldLive(j: Journal, a: int)
    requires j.HeldInv() && Full(j.disk.poss, j.protocol()) && (a in j.loggedDirect.m || a in j.installingDirect.m)
    ensures a in j.base && a !in j.installBlocks && (a in j.installingDirect.m ==> a !in j.loggedDirect.m)
  {
    reveal j.HeldInv(); FullD(j.disk.poss, j.protocol());
    MergeCat(j.directs[..j.installCount], j.directs[j.installCount..]);
    assert j.directs == j.directs[..j.installCount] + j.directs[j.installCount..];
    MergeKeys(j.directs, a);
    var i :| 0 <= i < |j.directs| && a in j.directs[i];
    KeptHome(j.protocol(), |j.disk.poss|, i, a);
    if a in j.installingDirect.m && a in j.loggedDirect.m {
      MergeKeys(j.directs[..j.installCount], a);
      var x :| 0 <= x < |j.directs[..j.installCount]| && a in j.directs[..j.installCount][x]; assert a in j.directs[x];
      MergeFrom(j.directs, j.installCount, a); var y :| j.installCount <= y < |j.directs| && a in j.directs[y];
      assert false by { reveal Trees(); }
    }
  }
  // what the next tree is to say
  lemma NextHome(j: Journal)
    requires j.HeldInv() && Full(j.disk.poss, j.protocol()) && j.installer.phase != NoInstall
    ensures j.installer.nextTreeState.Keys == j.installer.treeState.Keys == j.base.Keys
    ensures forall a :: a in j.base && a in j.installBlocks ==> j.installer.nextTreeState[a] == j.installBlocks[a]
    ensures forall a :: a in j.installingDirect.m ==> a in j.base && j.installer.nextTreeState[a] == j.base[a]
    ensures forall a :: a in j.base && a !in j.installBlocks && a !in j.installingDirect.m ==>
      j.installer.nextTreeState[a] == j.installer.treeState[a]
  {
    FullD(j.disk.poss, j.protocol()); reveal Trees(); reveal j.HeldInv();
    assert j.base.Keys == j.installer.nextTreeState.Keys;
    var x := Over(j.base, j.installBlocks);
    var y := Over(j.installer.nextTreeState, Merge(j.directs[j.installCount..]));
    assert x == y;
    forall a | a in j.base && a in j.installBlocks ensures j.installer.nextTreeState[a] == j.installBlocks[a] {
      if a in j.loggedDirect.m { HeldLive(j, a); }
      assert a !in Merge(j.directs[j.installCount..]) && x[a] == y[a];
    }
    forall a | a in j.installingDirect.m ensures a in j.base && j.installer.nextTreeState[a] == j.base[a] {
      HeldLive(j, a);
      assert a !in Merge(j.directs[j.installCount..]) && x[a] == y[a];
    }
  }
  // a block that is what the code says that counts now is what it should be
  lemma Accepted(j: Journal, a: int, b: BV)
    requires j.Inv() && j.tree.pageCount > 0 && j.tree.Ok() &&
      j.home as int <= a < j.home as int + j.tree.homeCount as int && |j.tree.pages.vs| > 0 &&
      PagesOk(j.tree.seal.t, j.tree.Now())
    requires Vouches(j.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), b)
    ensures a in j.base && b == j.base[a]
  { Vouched(j, a); VouchOne(j.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), b, j.base[a]); }

  // LoggerInv when nothing is changed of what the logger owns
  twostate lemma LogFrame(j: Journal)
    requires old(j.LoggerInv()) && old(j.OwnerInv()) && DiskKept(j.disk, Logging) &&
      SameForLog(old(j.protocol()), j.protocol()) && j.logEnd == old(j.logEnd) && unchanged(j.logger, j.logger.codes)
    requires (j.logger.ring != null ==> unchanged(j.logger.ring)) &&
      (j.logger.direct != null ==> unchanged(j.logger.direct)) && Full(old(j.disk.poss), old(j.protocol()))
    requires j.frozen == old(j.frozen) && j.frozenDirect == old(j.frozenDirect) &&
      unchanged(j.frozen, j.frozenDirect) && |j.groups| == |j.descs| == |j.directs| && 0 <= j.installCount <= |j.groups|
    ensures j.LoggerInv()
  {
    reveal j.LoggerInv();
    assert PendEnd(j.protocol()) == old(PendEnd(j.protocol()));
    if j.logger.phase == GroupFrozen {
      ReadyKeep(old(j.protocol()), j.protocol(), j.logger.ring.m, j.logger.direct.m);
      assert j.FrozenParts(j.logger.ring, j.logger.direct);
    }
    OwnPend(j);
    if !j.disk.bad {
      forall i | 0 <= i < (if j.logger.phase == GroupWriting then |j.logger.pending| - 1 else |j.logger.pending|)
        ensures Written(j.layout, j.disk.cur, j.logger.pending[i]) {
        assert Written(j.layout, old(j.disk.cur), j.logger.pending[i]);
      }
    }
    if j.logger.phase == GroupsDurable { AllHomeKeep(j); }
  }
  // the logger owns the log and the direct blocks of all pending groups
  twostate lemma OwnPend(j: Journal)
    requires old(j.LoggerInv()) && old(j.OwnerInv())
    ensures old(j.logger.pending) != [] ==>
      (forall a :: j.layout.headerAt < a < Copy(j.layout) ==> Owns(old(j.disk.owner), Logging, a)) &&
      forall i, a {:trigger a in old(j.logger.pending)[i].direct} :: 0 <= i < |old(j.logger.pending)| &&
      a in old(j.logger.pending)[i].direct ==> Owns(old(j.disk.owner), Logging, a)
  {
    reveal j.OwnerInv(); reveal j.LoggerInv();
    forall i, a | 0 <= i < |old(j.logger.pending)| && a in old(j.logger.pending)[i].direct
      ensures a in old(j.frozenDirect.m) {
      MergeHas(DirectMaps(old(j.logger.pending)), i, a);
    }
  }
  twostate lemma AllHomeKeep(j: Journal)
    requires SameForLog(old(j.protocol()), j.protocol()) && AllHome(old(j.disk.poss), old(j.protocol())) &&
      |j.disk.poss| == |old(j.disk.poss)|
    requires j.logger.pending != [] ==> (forall a :: j.layout.headerAt < a < Copy(j.layout) &&
      a < |j.disk.poss| ==> j.disk.poss[a] <= old(j.disk.poss)[a]) &&
      forall i, a {:trigger a in j.logger.pending[i].direct} :: 0 <= i < |j.logger.pending| &&
      a in j.logger.pending[i].direct && 0 <= a < |j.disk.poss| ==> j.disk.poss[a] <= old(j.disk.poss)[a]
    ensures AllHome(j.disk.poss, j.protocol())
  {
    forall i | 0 <= i < |j.logger.pending|
      ensures PendLogged(j.disk.poss, j.protocol(), j.logger.pending[i], End(j.protocol()) + i) {
      var e := j.logger.pending[i]; var sq := End(j.protocol()) + i;
      assert PendLogged(old(j.disk.poss), old(j.protocol()), e, sq);
      LoggedLess(j.disk.poss, old(j.disk.poss), j.protocol(), old(j.protocol()), e.blocks, e.direct, e.desc, sq);
      forall a | a in e.direct ensures 0 <= a < |j.disk.poss| && j.disk.poss[a] <= iset{e.direct[a]} {
        assert a in j.logger.pending[i].direct;
      }
    }
  }
  // InstallerInv when nothing is changed of what the installer owns
  twostate lemma InsFrame(j: Journal)
    requires old(j.InstallerInv()) && old(j.OwnerInv()) && DiskKept(j.disk, Installing) &&
      SameForIns(old(j.protocol()), j.protocol()) && unchanged(j.installer)
    requires j.cachedCount == old(j.cachedCount) && j.cached == old(j.cached) && j.home as int == Home(j.layout)
    ensures j.InstallerInv()
  { reveal j.InstallerInv(); reveal j.OwnerInv(); }
  // PagesInv when nothing is changed of the tree's blocks
  twostate lemma PagesFrame(j: Journal)
    requires old(j.PagesInv()) && j.tree.Ok() && j.installer.pagesWritten == old(j.installer.pagesWritten) &&
      (j.installer.phase == HomeWriting ==> old(j.installer.phase) == HomeWriting) &&
      (IsHome(j.installer.phase) ==> j.installer.phase == old(j.installer.phase) &&
      j.installer.nextRoot == old(j.installer.nextRoot)) && unchanged(j.tree.pages)
    requires |j.disk.cur| == |j.disk.poss| == |old(j.disk.poss)| == |old(j.disk.cur)|
    requires forall x :: j.tree.first as int <= x < j.tree.first as int + 2 * j.tree.pageCount as int &&
      x < |j.disk.poss| ==> j.disk.poss[x] <= old(j.disk.poss)[x] &&
      (j.disk.bad || (!old(j.disk.bad) && j.disk.cur[x] == old(j.disk.cur)[x]))
    ensures j.PagesInv()
  {
    reveal j.PagesInv();
    if j.Sound() && j.tree.pageCount > 0 {
      PagesLess(j.tree.seal.t, j.tree.first as int, old(j.disk.poss), j.disk.poss, j.tree.Now(), j.tree.Root());
    }
  }
  // Whatever a crash leaves, the pages of each header's tree are where they say, if the device can be trusted.
  lemma CrashSits(j: Journal, s: Img)
    requires j.Inv() && j.Sound() && CrashImg(j.disk.poss, s)
    ensures HeadersSit(j.layout, j.tree.first as int, s)
  {
    reveal j.Inv(); reveal j.PagesInv(); FullD(j.disk.poss, j.protocol());
    var t, first := j.tree.seal.t, j.tree.first as int;
    forall a | (a == j.layout.headerAt || a == Copy(j.layout)) && DecHdr(j.layout.key, s[a]).Hdr?
      ensures SitsOn(t, first, s, DecHdr(j.layout.key, s[a]).root) {
      var r := DecHdr(j.layout.key, s[a]).root;
      assert s[a] in j.disk.poss[a] && HdrOk(s[a], j.protocol());
      if j.tree.pageCount > 0 {
        j.tree.pages.Trees(); if r == j.installer.root { CrashNow(j, s); } else { CrashNext(j, s); }
      }
    }
  }
  lemma CrashNow(j: Journal, s: Img)
    requires j.PagesInv() && j.TreeInv() && j.Sound() && j.tree.pageCount > 0 && CrashImg(j.disk.poss, s) &&
      j.layout.tree == j.tree.seal.t
    ensures SitsOn(j.tree.seal.t, j.tree.first as int, s, j.installer.root)
  {
    reveal j.PagesInv(); reveal j.TreeInv();
    var t, first, pg, r := j.tree.seal.t, j.tree.first as int, j.tree.Now(), j.installer.root;
    forall p | 0 <= p < t.np && PageCode(t, pg, r, p) != CV(0, 0) ensures 0 <= PlaceOf(first, p, pg[p]) < |s| &&
      s[PlaceOf(first, p, pg[p])] == pg[p] {
      assert Sits(first, j.disk.poss, p, PageCode(t, pg, r, p), pg[p]);
      assert s[PlaceOf(first, p, pg[p])] in j.disk.poss[PlaceOf(first, p, pg[p])];
    }
    assert IsTree(t, pg, r) && PagesOn(t, first, s, pg, r);
  }
  lemma CrashNext(j: Journal, s: Img)
    requires j.PagesInv() && j.Sound() && j.tree.pageCount > 0 && j.tree.Ok() && CrashImg(j.disk.poss, s) &&
      j.installer.phase == HeaderWriting
    ensures SitsOn(j.tree.seal.t, j.tree.first as int, s, j.installer.nextRoot)
  {
    reveal j.PagesInv();
    var t, first, r := j.tree.seal.t, j.tree.first as int, j.installer.nextRoot;
    var pg :| NextPages(j.tree, j.installer.pagesWritten, pg, r) && IsTree(t, pg, r);
    forall p | 0 <= p < t.np && PageCode(t, pg, r, p) != CV(0, 0) ensures 0 <= PlaceOf(first, p, pg[p]) < |s| &&
      s[PlaceOf(first, p, pg[p])] == pg[p] {
      if p !in j.installer.pagesWritten {
        assert Sits(first, j.disk.poss, p, PageCode(t, j.tree.Now(), j.tree.Root(), p), j.tree.Now()[p]);
      }
      assert s[PlaceOf(first, p, pg[p])] in j.disk.poss[PlaceOf(first, p, pg[p])];
    }
    assert PagesOn(t, first, s, pg, r);
  }
  // the newest code of a block is that of what is at home
  lemma Vouched(j: Journal, a: int)
    requires j.Inv() && j.tree.pageCount > 0 && j.tree.Ok() &&
      j.home as int <= a < j.home as int + j.tree.homeCount as int && |j.tree.pages.vs| > 0 &&
      PagesOk(j.tree.seal.t, j.tree.Now())
    ensures a in j.base && Vouches(j.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), j.base[a])
  {
    reveal j.Inv(); reveal j.TreeInv(); reveal j.HeldInv();
    FullD(j.disk.poss, j.protocol()); reveal Trees();
    var x := a - j.home as int;
    assert x + j.home as int == a;
    if x !in j.tree.pages.held {
      MergeCat(j.directs[..j.installCount], j.directs[j.installCount..]);
      assert j.directs == j.directs[..j.installCount] + j.directs[j.installCount..];
      assert a !in Merge(j.directs);
    }
  }
  twostate lemma RdFrame(j: Journal)
    requires old(j.ReadsInv()) && j.base == old(j.base) && j.trims == old(j.trims) && j.observed == old(j.observed)
    requires forall a :: old(j.Pending(a)) ==> j.Pending(a)
    ensures j.ReadsInv()
  { reveal j.ReadsInv(); }
}
