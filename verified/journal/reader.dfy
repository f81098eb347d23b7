// Reads. A block is looked for in memory under the mutex; if it is not there it is read without
// it, and what was read counts if no block has been written home since (`trims`).
include "facts.dfy"

module JournalReader {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened CodeTreeSpec
  import opened MapsOfBlocks
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened JournalFacts
  import opened TreeOfCodes

  lemma InCur(j: Journal, a: uint64)
    requires j.Inv() && j.home <= a < j.size
    ensures a as int in j.Cur()
  { reveal j.Inv(); }
  // b may be seen while the mutex is held
  predicate Shown(j: Journal, b: Blk) reads j, j.repr, j.cache {
    j.cache.Shows(b) || exists m: BlockMap {:trigger m.Shows(b)} :: m in j.repr && m.Shows(b)
  }
  function KeeperOf(j: Journal, b: Blk): object requires Shown(j, b) reads j, j.repr, j.cache
    ensures Keeps(KeeperOf(j, b), b)
  { if j.cache.Shows(b) then j.cache else (var m: BlockMap :| m in j.repr && m.Shows(b); m) }
  // [L] the block if it is in memory, else a ticket for a disk read
  method Lookup(j: Journal, a: uint64) returns (b: Blk?, t: uint64)
    requires j.Inv() && j.mutex.Inside() && j.home <= a < j.size
    ensures a as int in j.Cur()
    ensures b != null ==> b.v == j.Cur()[a as int] && |b.v| == 4096 && Shown(j, b) &&
      (j.Pending(a as int) || a as int in j.cache.m)
    ensures b == null ==> a as int in j.base && !j.Pending(a as int) && j.base[a as int] == j.Cur()[a as int]
    ensures t == j.trims
  {
    reveal j.Inv(); reveal j.CacheInv();
    t := j.trims;
    assert j.groups == j.groups[..j.installCount] + j.groups[j.installCount..];
    MergeCat(j.groups[..j.installCount], j.groups[j.installCount..]);
    b := j.running.Get(a);
    if b == null { b := j.frozen.Get(a); }
    if b == null { b := j.frozenDirect.Get(a); }
    if b == null { b := j.logged.Get(a); }
    if b == null { b := j.installing.Get(a); }
    if b == null { b := j.cache.Get(a); }
  }
  // [F] read n home blocks, from a on. With a tree of codes the device may return anything, and
  // CheckHome decides what counts; without one, it is taken to return what it holds. A sound one does, but for what is
  // torn.
  method ReadHome(j: Journal, a: uint64, n: uint64, t: uint64) returns (ok: bool, l: BList)
    requires j.Inv() && j.mutex.settled != null && j.home <= a && a as int + n as int <= j.size as int && t <= j.trims
    modifies j`observed, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures ok ==> fresh(l) && !l.taken && KeepsAll(l, l)
    ensures ok ==> |l.blks| == n as int && forall i :: 0 <= i < n as int ==> |l.blks[i]| == 4096
    ensures ok ==> WereRead(j, a as int, t, l.blks, j.torn)
    ensures j.torn == old(j.torn) && (!ok ==> !j.Sound())
  {
    OnDisk(j);
    if j.tree.pageCount > 0 {
      ghost var honest;
      ok, l, honest := j.disk.ReadAny(a, n);
      if ok && honest { AllSeen(j, a as int, t, l.blks); }
      return;
    }
    ok, l := j.disk.ReadRun(a, n);
    if ok { AllSeen(j, a as int, t, l.blks); assert j.torn == {} by { NoneTorn(j); } }
  }
  // the blocks v were read from a on, with ticket t, if the device can be trusted; not those of lost
  predicate WereRead(j: Journal, a: int, t: uint64, v: seq<BV>, lost: set<int>) reads j {
    j.tree.pageCount == 0 || j.Sound() ==> forall k :: 0 <= k < |v| && (j.tree.pageCount == 0 || a + k !in lost) ==>
      j.WasRead(a + k, t, v[k])
  }
  // [F] How many of the blocks l, which were read at a, are what they should be by the tree of codes, from the i-th on?
  // m: the first that is not; for it block bad is damaged, or what was read was overtaken by an installation.
  // (Each block has its own instant, at which Genuine looks at what is in memory of the tree.)
  // If the device can be trusted, a block of lost is, or others wrote it (Late). k keeps the blocks.
  method CheckHome(j: Journal, a: uint64, l: BList, ghost k: object, i: uint64, t: uint64, ghost lost: set<int>)
    returns (m: uint64, bad: uint64)
    requires j.Inv() && j.mutex.settled != null && j.home <= a && a as int + |l.blks| <= j.size as int &&
      i as int <= |l.blks| && (forall k :: 0 <= k < |l.blks| ==> |l.blks[k]| == 4096) && t <= j.trims
    requires WereRead(j, a as int, t, l.blks, lost) && KeepsAll(k, l) && k != j && k != j.mutex
    modifies j`observed, j.mutex`settled
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures m as int < |l.blks| ==> !j.Sound() || a as int + m as int in lost || j.Late(a as int + m as int, t)
    ensures i <= m && m as int <= |l.blks| && forall k :: i as int <= k < m as int ==>
      j.WasRead(a as int + k, t, l.blks[k])
  {
    var n := l.Len();
    m := i; bad := a;
    while m < n
      invariant i <= m <= n && j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono() && t <= j.trims
      invariant forall k :: i as int <= k < m as int ==> j.WasRead(a as int + k, t, l.blks[k])
      invariant WereRead(j, a as int, t, l.blks, lost) && KeepsAll(k, l)
    {
      var b := l.BlkAt(m, k);
      var ok;
      ok, bad := CheckOne(j, a + m, b, t, lost);
      if !ok { return; }
      m := m + 1;
    }
  }
  method CheckOne(j: Journal, a: uint64, b: Blk, t: uint64, ghost lost: set<int>) returns (ok: bool, bad: uint64)
    requires j.Inv() && j.home <= a < j.size && |b.v| == 4096 && t <= j.trims &&
      (j.tree.pageCount > 0 && j.Sound() && a as int !in lost ==> j.WasRead(a as int, t, b.v))
    modifies j`observed
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures ok && j.tree.pageCount > 0 ==> j.WasRead(a as int, t, b.v)
    ensures !ok ==> !j.Sound() || a as int in lost || j.Late(a as int, t)
  {
    TreeFits(j);
    ok, bad := Genuine(j.tree, a, b);
    if !ok { NotNewest(j, a as int, b.v, t, lost); }
    if !ok || j.tree.pageCount == 0 { return; }
    Accepted(j, a as int, b.v);
    ghost var r := Observation(a as int, j.trims as int, b.v);
    Seen(j, r);
    assert r in j.observed;
  }
  // Block a was read, and v is not what its code says, although the device can be trusted: it was overtaken.
  ghost method NotNewest(j: Journal, a: int, v: BV, t: uint64, lost: set<int>)
    requires j.Inv() && j.home as int <= a < j.size as int && j.tree.pageCount > 0 && |v| == 4096 && t <= j.trims &&
      (j.Sound() && a !in lost ==> j.WasRead(a, t, v))
    requires j.tree.Ok() && j.tree.home == j.home && j.home as int + j.tree.homeCount as int == j.size as int &&
      j.tree.seal == j.seal
    requires Sitting(j.tree, j.disk.poss) ==> Erred(j.disk) ||
      !Vouches(j.tree.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), v)
    modifies j`observed
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures !j.Sound() || a in lost || j.Late(a, t)
  {
    TreeFits(j);
    if !j.Sound() || a in lost || t < j.trims { return; }
    assert Sitting(j.tree, j.disk.poss) by { reveal j.Inv(); reveal j.PagesInv(); }
    Vouched(j, a);
    ghost var r :| r in j.observed && r.addr == a && r.contents == v && r.ticket >= t as int;
    assert j.Pending(a) by { reveal j.Inv(); reveal j.ReadsInv(); }
    ghost var s := Observation(a, j.trims as int, []);
    Seen(j, s);
    assert r in j.observed && s in j.observed && r.contents != s.contents;
  }
  lemma TreeFits(j: Journal)
    requires j.Inv()
    ensures j.tree.Fits() && j.tree.home == j.home && j.home as int + j.tree.homeCount as int == j.size as int
    ensures j.tree.seal == j.seal && j.tree.disk == j.disk
  { reveal j.Inv(); }
  // [L] a read of block a with ticket t found block bad damaged: is it? Not if a is in memory now: it was
  // committed since, and may be on its way home.
  method Confirm(j: Journal, a: uint64, t: uint64, bad: uint64) returns (damaged: bool)
    requires j.Inv() && j.mutex.Inside() && j.home <= a < j.size
    ensures damaged ==> !j.Late(a as int, t)
    ensures !damaged ==> j.Overtaken(a as int, t)
  {
    var b, t2 := Lookup(j, a);
    damaged := b == null && t == t2;
    assert damaged ==> !j.Late(a as int, t) by { reveal j.Inv(); reveal j.ReadsInv(); }
    if damaged { j.notes.Damaged(bad); }
  }
  ghost method AllSeen(j: Journal, a: int, t: uint64, v: seq<BV>)
    requires j.Inv() && j.home as int <= a && a + |v| <= j.size as int == |j.disk.poss| && t <= j.trims
    requires forall i :: 0 <= i < |v| ==> v[i] in j.disk.poss[a + i] && |v[i]| == 4096
    modifies j`observed
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures forall i :: 0 <= i < |v| && a + i !in j.torn ==> j.WasRead(a + i, t, v[i])
  {
    var n := 0;
    while n < |v|
      invariant n <= |v| && j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
      invariant forall i :: 0 <= i < n && a + i !in j.torn ==> j.WasRead(a + i, t, v[i])
    {
      if a + n !in j.torn {
        HomeRead(j, a + n, v[n]);
        var r := Observation(a + n, j.trims as int, v[n]);
        Seen(j, r);
        assert r in j.observed;
      }
      n := n + 1;
    }
  }
  lemma OnDisk(j: Journal)
    requires j.Inv()
    ensures j.disk.Valid() && |j.disk.cur| == j.size as int
  { reveal j.Inv(); }
  // what a home block may be found to hold, if the device returns what it holds, and nothing is torn
  lemma HomeRead(j: Journal, a: int, x: BV)
    requires j.Inv() && j.home as int <= a < j.size as int == |j.disk.poss| && x in j.disk.poss[a] && a !in j.torn
    ensures a in j.base && (x == j.base[a] || j.Pending(a))
  {
    reveal j.Inv();
    LogFacts(j); FullD(j.disk.poss, j.protocol());
    assert HomePoss(j.disk.poss[a], j.protocol(), a);
    if InPend(j.logger.pending, a) {
      var i :| 0 <= i < |j.logger.pending| && a in j.logger.pending[i].direct;
      MergeHas(DirectMaps(j.logger.pending), i, a); assert a in j.frozenDirect.m;
    }
  }
  lemma NoneTorn(j: Journal)
    requires j.Inv() && j.tree.pageCount == 0
    ensures j.torn == {}
  { reveal j.Inv(); FullD(j.disk.poss, j.protocol()); reveal Trees(); }
  ghost method Seen(j: Journal, r: Observation)
    requires j.Inv() && r.ticket == j.trims as int && r.addr in j.base &&
      (r.contents == j.base[r.addr] || j.Pending(r.addr))
    modifies j`observed
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures j.observed == old(j.observed) + {r}
  {
    reveal j.Inv();
    j.observed := j.observed + {r};
    assert j.ReadsInv() by { reveal j.ReadsInv(); }
  }
  // [L] validate the block read, which k keeps; null: to be read again, as it was overtaken
  method Lookup2(j: Journal, a: uint64, t: uint64, c: Blk, ghost k: object) returns (b: Blk?)
    requires Keeps(k, c)
    requires j.Inv() && j.mutex.Inside() && j.home <= a < j.size && j.WasRead(a as int, t, c.v)
    modifies j.cache
    ensures j.Inv() && j.KeepsLogger() && j.KeepsInstaller() && j.Mono()
    ensures b != null ==> a as int in j.Cur() && b.v == j.Cur()[a as int] && |b.v| == 4096 && (b == c || Shown(j, b))
    ensures b == null ==> t != j.trims
  {
    var t2;
    b, t2 := Lookup(j, a);
    reveal j.Inv(); reveal j.ReadsInv(); reveal j.CacheInv();
    if b == null && t == t2 { b := c; j.cache.Put(a, c, k); }
  }
}
