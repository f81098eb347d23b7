// Reads. A block is looked for in memory under the mutex; if it is not there it is read without
// it, and what was read counts if no block has been written home since (`trims`).
include "facts.dfy"

module JournalReader {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened LogSpec
  import opened LogS
  import opened LogModel
  import opened LogSteps
  import opened Groups
  import opened JournalM
  import opened JournalFacts
  import opened TreeOfCodes

  lemma InCur(j: Journal, a: uint64)
    requires j.Inv() && j.home <= a < j.sz
    ensures a as int in j.Cur()
  { reveal j.Inv(); }
  // b may be seen while the mutex is held
  predicate Shown(j: Journal, b: Blk) reads j, j.repr, j.cache { j.cache.Shows(b) || exists m: BMap {:trigger m.Shows(b)} :: m in j.repr && m.Shows(b) }
  // [L] the block if it is in memory, else a ticket for a disk read
  method Lookup(j: Journal, a: uint64) returns (b: Blk?, t: uint64)
    requires j.Inv() && j.mu.Inside() && j.home <= a < j.sz
    ensures a as int in j.Cur()
    ensures b != null ==> b.v == j.Cur()[a as int] && |b.v| == 4096 && Shown(j, b)
    ensures b == null ==> a as int in j.base && !j.Pending(a as int) && j.base[a as int] == j.Cur()[a as int]
    ensures t == j.trims
  {
    reveal j.Inv(); reveal j.CacheI();
    t := j.trims;
    assert j.gs == j.gs[..j.k] + j.gs[j.k..];
    MergeCat(j.gs[..j.k], j.gs[j.k..]);
    b := j.running.Get(a);
    if b == null { b := j.cgm.Get(a); }
    if b == null { b := j.cdm.Get(a); }
    if b == null { b := j.lgm.Get(a); }
    if b == null { b := j.inm.Get(a); }
    if b == null { b := j.cache.Get(a); }
  }
  // [F] read n home blocks, from a on. With a tree of codes the device may return anything, and
  // CheckHome decides what counts; without one, it is taken to return what it holds. A sound one does, but for what is torn.
  method ReadHome(j: Journal, a: uint64, n: uint64, t: uint64) returns (ok: bool, l: BList)
    requires j.Inv() && j.mu.settled != null && j.home <= a && a as int + n as int <= j.sz as int && t <= j.trims
    modifies j`rds, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures ok ==> fresh(l) && !l.taken && |l.blks| == n as int && forall i :: 0 <= i < n as int ==> |l.blks[i]| == 4096
    ensures ok ==> WereRead(j, a as int, t, l.blks, j.torn)
    ensures j.torn == old(j.torn) && (!ok ==> !j.Sound())
  {
    OnDisk(j);
    if j.tree.np > 0 {
      ghost var honest;
      ok, l, honest := j.d.ReadAny(a, n);
      if ok && honest { AllSeen(j, a as int, t, l.blks); }
      return;
    }
    ok, l := j.d.ReadRun(a, n);
    if ok { AllSeen(j, a as int, t, l.blks); assert j.torn == {} by { NoneTorn(j); } }
  }
  // the blocks v were read from a on, with ticket t, if the device can be trusted; not those of lost
  predicate WereRead(j: Journal, a: int, t: uint64, v: seq<BV>, lost: set<int>) reads j {
    j.tree.np == 0 || j.Sound() ==> forall k :: 0 <= k < |v| && (j.tree.np == 0 || a + k !in lost) ==> j.WasRead(a + k, t, v[k])
  }
  // [F] How many of the blocks l, which were read at a, are what they should be by the tree of codes, from the i-th on?
  // m: the first that is not; for it block bad is damaged, or what was read was overtaken by an installation.
  // (Each block has its own instant, at which Genuine looks at what is in memory of the tree.)
  // If the device can be trusted, a block of lost is, or others wrote it (Late).
  method CheckHome(j: Journal, a: uint64, l: BList, i: uint64, t: uint64, ghost lost: set<int>) returns (m: uint64, bad: uint64)
    requires j.Inv() && j.mu.settled != null && j.home <= a && a as int + |l.blks| <= j.sz as int && i as int <= |l.blks| && (forall k :: 0 <= k < |l.blks| ==> |l.blks[k]| == 4096) && t <= j.trims
    requires WereRead(j, a as int, t, l.blks, lost)
    modifies j`rds, j.mu`settled
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures m as int < |l.blks| ==> !j.Sound() || a as int + m as int in lost || j.Late(a as int + m as int, t)
    ensures i <= m && m as int <= |l.blks| && forall k :: i as int <= k < m as int ==> j.WasRead(a as int + k, t, l.blks[k])
  {
    var n := l.Len();
    m := i; bad := a;
    while m < n
      invariant i <= m <= n && j.Inv() && j.LKeep() && j.IKeep() && j.Mono() && t <= j.trims
      invariant forall k :: i as int <= k < m as int ==> j.WasRead(a as int + k, t, l.blks[k])
      invariant WereRead(j, a as int, t, l.blks, lost)
    {
      var b := l.BlkAt(m);
      var ok;
      ok, bad := CheckOne(j, a + m, b, t, lost);
      if !ok { return; }
      m := m + 1;
    }
  }
  method CheckOne(j: Journal, a: uint64, b: Blk, t: uint64, ghost lost: set<int>) returns (ok: bool, bad: uint64)
    requires j.Inv() && j.home <= a < j.sz && |b.v| == 4096 && t <= j.trims && (j.tree.np > 0 && j.Sound() && a as int !in lost ==> j.WasRead(a as int, t, b.v))
    modifies j`rds
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures ok && j.tree.np > 0 ==> j.WasRead(a as int, t, b.v)
    ensures !ok ==> !j.Sound() || a as int in lost || j.Late(a as int, t)
  {
    TreeFits(j);
    ok, bad := Genuine(j.tree, a, b);
    if !ok { NotNewest(j, a as int, b.v, t, lost); }
    if !ok || j.tree.np == 0 { return; }
    Accepted(j, a as int, b.v);
    ghost var r := Rd(a as int, j.trims as int, b.v);
    Seen(j, r);
    assert r in j.rds;
  }
  // Block a was read, and v is not what its code says, although the device can be trusted: it was overtaken.
  ghost method NotNewest(j: Journal, a: int, v: BV, t: uint64, lost: set<int>)
    requires j.Inv() && j.home as int <= a < j.sz as int && j.tree.np > 0 && |v| == 4096 && t <= j.trims && (j.Sound() && a !in lost ==> j.WasRead(a, t, v))
    requires j.tree.Ok() && j.tree.home == j.home && j.home as int + j.tree.n as int == j.sz as int && j.tree.seal == j.seal
    requires Sitting(j.tree, j.d.poss) ==> Erred(j.d) || !Vouches(j.tree.seal.key, a - j.home as int, CodeNow(j.tree, a - j.home as int), v)
    modifies j`rds
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures !j.Sound() || a in lost || j.Late(a, t)
  {
    TreeFits(j);
    if !j.Sound() || a in lost || t < j.trims { return; }
    assert Sitting(j.tree, j.d.poss) by { reveal j.Inv(); reveal j.PagesI(); }
    Vouched(j, a);
    ghost var r :| r in j.rds && r.a == a && r.v == v && r.t >= t as int;
    assert j.Pending(a) by { reveal j.Inv(); reveal j.RdI(); }
    ghost var s := Rd(a, j.trims as int, []);
    Seen(j, s);
    assert r in j.rds && s in j.rds && r.v != s.v;
  }
  lemma TreeFits(j: Journal)
    requires j.Inv()
    ensures j.tree.Fits() && j.tree.home == j.home && j.home as int + j.tree.n as int == j.sz as int
    ensures j.tree.seal == j.seal && j.tree.d == j.d
  { reveal j.Inv(); }
  // [L] a read of block a with ticket t found block bad damaged: is it? Not if a is in memory now: it was
  // committed since, and may be on its way home.
  method Confirm(j: Journal, a: uint64, t: uint64, bad: uint64) returns (damaged: bool)
    requires j.Inv() && j.mu.Inside() && j.home <= a < j.sz
    ensures damaged ==> !j.Late(a as int, t)
  {
    var b, t2 := Lookup(j, a);
    damaged := b == null && t == t2;
    assert damaged ==> !j.Late(a as int, t) by { reveal j.Inv(); reveal j.RdI(); }
    if damaged { j.notes.Damaged(bad); }
  }
  ghost method AllSeen(j: Journal, a: int, t: uint64, v: seq<BV>)
    requires j.Inv() && j.home as int <= a && a + |v| <= j.sz as int == |j.d.poss| && t <= j.trims
    requires forall i :: 0 <= i < |v| ==> v[i] in j.d.poss[a + i] && |v[i]| == 4096
    modifies j`rds
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures forall i :: 0 <= i < |v| && a + i !in j.torn ==> j.WasRead(a + i, t, v[i])
  {
    var n := 0;
    while n < |v|
      invariant n <= |v| && j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
      invariant forall i :: 0 <= i < n && a + i !in j.torn ==> j.WasRead(a + i, t, v[i])
    {
      if a + n !in j.torn {
        HomeRead(j, a + n, v[n]);
        var r := Rd(a + n, j.trims as int, v[n]);
        Seen(j, r);
        assert r in j.rds;
      }
      n := n + 1;
    }
  }
  lemma OnDisk(j: Journal)
    requires j.Inv()
    ensures j.d.Valid() && |j.d.cur| == j.sz as int
  { reveal j.Inv(); }
  // what a home block may be found to hold, if the device returns what it holds, and nothing is torn
  lemma HomeRead(j: Journal, a: int, x: BV)
    requires j.Inv() && j.home as int <= a < j.sz as int == |j.d.poss| && x in j.d.poss[a] && a !in j.torn
    ensures a in j.base && (x == j.base[a] || j.Pending(a))
  {
    reveal j.Inv();
    LogFacts(j); FullD(j.d.poss, j.g());
    assert HomePoss(j.d.poss[a], j.g(), a);
    if InPend(j.lg.ps, a) { var i :| 0 <= i < |j.lg.ps| && a in j.lg.ps[i].h; MergeHas(Hs(j.lg.ps), i, a); assert a in j.cdm.m; }
  }
  lemma NoneTorn(j: Journal)
    requires j.Inv() && j.tree.np == 0
    ensures j.torn == {}
  { reveal j.Inv(); FullD(j.d.poss, j.g()); reveal Trees(); }
  ghost method Seen(j: Journal, r: Rd)
    requires j.Inv() && r.t == j.trims as int && r.a in j.base && (r.v == j.base[r.a] || j.Pending(r.a))
    modifies j`rds
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures j.rds == old(j.rds) + {r}
  {
    reveal j.Inv();
    j.rds := j.rds + {r};
    assert j.RdI() by { reveal j.RdI(); }
  }
  // [L] validate the block read; null = retry
  method Lookup2(j: Journal, a: uint64, t: uint64, c: Blk) returns (b: Blk?)
    requires j.Inv() && j.mu.Inside() && j.home <= a < j.sz && j.WasRead(a as int, t, c.v)
    modifies j.cache
    ensures j.Inv() && j.LKeep() && j.IKeep() && j.Mono()
    ensures b != null ==> a as int in j.Cur() && b.v == j.Cur()[a as int] && |b.v| == 4096 && (b == c || Shown(j, b))
  {
    var t2;
    b, t2 := Lookup(j, a);
    reveal j.Inv(); reveal j.RdI(); reveal j.CacheI();
    if b == null && t == t2 { b := c; j.cache.Put(a, c); }
  }
}
