// How far the block tree of a file reaches. A file holds no block beyond its end,
// or beyond what was cut off and is still to be freed, and no indirect block that
// only those would need. So a file of size 0 with nothing to free holds none at all.
include "blocktreespec.dfy"
module AllocatedRange {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened Positions
  import opened BlockTreeSpec

  // the first block of the file below slot k
  function method BaseOf(k: uint64): uint64
  { if k < 12 then k else if k == 12 then 12 else if k == 13 then 524 else 262668 }
  // the index d levels above, and the first index below the same block there
  function method Up512(j: uint64, d: uint64): uint64
  { if d == 0 then j else if d == 1 then j / 512 else if d == 2 then j / 262144 else j / 134217728 }
  function method First512(j: uint64, d: uint64): uint64 {
    if d == 0 then j else if d == 1 then j - j % 512 else if d == 2 then j - j % 262144 else j - j % 134217728
  }

  // the first block of the file at p or below
  function First(p: Pos): int
    requires OkPos(p)
  {
    var d := MaxLev(p.slot) - p.level;
    BaseOf(p.slot) as int + (if d == 0 then p.index as int else if d == 1 then 512 * p.index as int
      else if d == 2 then 262144 * p.index as int else 134217728 * p.index as int)
  }
  // q is p, or an indirect block above it
  predicate IsAbove(q: Pos, p: Pos)
  { q.ino == p.ino && q.slot == p.slot && q.level <= p.level && q.index == Up512(p.index, p.level - q.level) }

  lemma FirstOf(ino: uint64, n: uint64)
    requires n < 134480396
    ensures OkPos(PosOf(ino, n)) && First(PosOf(ino, n)) == n as int
  { }
  lemma DataAt(p: Pos)
    requires IsData(p)
    ensures 0 <= First(p) < 134480396 && p == PosOf(p.ino, First(p) as uint64)
  { }
  lemma FirstAbove(q: Pos, p: Pos)
    requires OkPos(p) && OkPos(q) && IsAbove(q, p)
    ensures First(q) <= First(p)
  { }
  lemma AboveParent(q: Pos, p: Pos)
    requires OkPos(p) && 0 < p.level && IsAbove(q, p) && q.level < p.level
    ensures IsAbove(q, Parent(p))
  { }

  // Block i of the file is at p or below. What begins between p and i is above p, or at p or below.
  lemma Place(p: Pos, q: Pos, i: uint64)
    requires OkPos(p) && OkPos(q) && p.ino == q.ino && i < 134480396 && FlatK(i) == p.slot &&
      Up512(FlatJ(i), MaxLev(p.slot) - p.level) == p.index
    requires First(p) <= First(q) <= i as int
    ensures if q.level < p.level then IsAbove(q, p) else IsAbove(p, q)
  {
    assert q.slot == p.slot;
  }

  // ---- the invariant ----

  // in blocks
  function Limit(m: Meta): int { ((if m.size < m.shrink then m.shrink else m.size) as int + 4095) / 4096 }
  predicate {:opaque} ReachOk(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>)
    requires IsDom(blockMap)
  {
    forall p: Pos {:trigger OkPos(p)} | OkPos(p) && OkIno(g, p.ino) && blockMap[p] != 0 ::
      p.ino in metas && First(p) < Limit(metas[p.ino])
  }
  // of one inode
  predicate {:opaque} Within(blockMap: BlkMap, ino: uint64, n: int)
    requires IsDom(blockMap)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && p.ino == ino && blockMap[p] != 0 :: First(p) < n }

  lemma ReachOf(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, ino: uint64)
    requires IsDom(blockMap) && ReachOk(g, blockMap, metas) && OkIno(g, ino) && ino in metas
    ensures Within(blockMap, ino, Limit(metas[ino]))
  { reveal ReachOk(); reveal Within(); }

  // ---- the steps ----

  // no block of data is given out, or given back, before this one: none at all
  ghost const NODATA: int := 134480396

  // blocks of ino were given out, or exchanged for others, all for blocks of the file before n, those for data from lo
  // on
  predicate {:opaque} Grew(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, lo: int, n: int)
    requires IsDom(blockMap0) && IsDom(blockMap)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && blockMap[p] != blockMap0[p] ::
    p.ino == ino && First(p) < n && blockMap[p] != 0 && (IsData(p) ==> lo <= First(p)) }
  // blocks of ino were given back, those of data from lo on
  predicate {:opaque} Shrank(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, lo: int)
    requires IsDom(blockMap0) && IsDom(blockMap)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && blockMap[p] != blockMap0[p] ::
    p.ino == ino && blockMap[p] == 0 && (IsData(p) ==> lo <= First(p)) }

  // blocks of data of ino were given back, of those m to n - 1 of the file
  predicate {:opaque} Emptied(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, m: int, n: int)
    requires IsDom(blockMap0) && IsDom(blockMap)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && blockMap[p] != blockMap0[p] ::
    p.ino == ino && blockMap[p] == 0 && IsData(p) && m <= First(p) < n }

  lemma GrewNone(blockMap: BlkMap, ino: uint64, lo: int, n: int)
    requires IsDom(blockMap)
    ensures Grew(blockMap, blockMap, ino, lo, n)
  { reveal Grew(); }
  lemma GrewOne(blockMap: BlkMap, p: Pos, x: uint64, lo: int, n: int)
    requires IsDom(blockMap) && OkPos(p) && First(p) < n && x != 0 && (IsData(p) ==> lo <= First(p))
    ensures IsDom(blockMap[p := x]) && Grew(blockMap, blockMap[p := x], p.ino, lo, n)
  { reveal Grew(); }
  lemma GrewMore(blockMap0: BlkMap, blockMap1: BlkMap, blockMap2: BlkMap, ino: uint64, lo: int, n: int, lo': int,
    n': int)
    requires IsDom(blockMap0) && IsDom(blockMap1) && IsDom(blockMap2) && Grew(blockMap0, blockMap1, ino, lo, n) &&
      Grew(blockMap1, blockMap2, ino, lo', n') && lo' <= lo && n <= n'
    ensures Grew(blockMap0, blockMap2, ino, lo', n')
  { reveal Grew(); }
  lemma ShrankNone(blockMap: BlkMap, ino: uint64, lo: int)
    requires IsDom(blockMap)
    ensures Shrank(blockMap, blockMap, ino, lo)
  { reveal Shrank(); }
  lemma ShrankOne(blockMap: BlkMap, p: Pos, lo: int)
    requires IsDom(blockMap) && OkPos(p) && (IsData(p) ==> lo <= First(p))
    ensures IsDom(blockMap[p := 0]) && Shrank(blockMap, blockMap[p := 0], p.ino, lo)
  { reveal Shrank(); }
  lemma ShrankMore(blockMap0: BlkMap, blockMap1: BlkMap, blockMap2: BlkMap, ino: uint64, lo: int, lo': int)
    requires IsDom(blockMap0) && IsDom(blockMap1) && IsDom(blockMap2) && Shrank(blockMap0, blockMap1, ino, lo) &&
      Shrank(blockMap1, blockMap2, ino, lo') && lo <= lo'
    ensures Shrank(blockMap0, blockMap2, ino, lo)
  { reveal Shrank(); }

  lemma EmptiedNone(blockMap: BlkMap, ino: uint64, m: int, n: int)
    requires IsDom(blockMap)
    ensures Emptied(blockMap, blockMap, ino, m, n)
  { reveal Emptied(); }
  lemma EmptiedOne(blockMap: BlkMap, p: Pos)
    requires IsDom(blockMap) && IsData(p)
    ensures IsDom(blockMap[p := 0]) && Emptied(blockMap, blockMap[p := 0], p.ino, First(p), First(p) + 1)
  { reveal Emptied(); }
  lemma EmptiedMore(blockMap0: BlkMap, blockMap1: BlkMap, blockMap2: BlkMap, ino: uint64, l: int, m: int, n: int)
    requires IsDom(blockMap0) && IsDom(blockMap1) && IsDom(blockMap2) && Emptied(blockMap0, blockMap1, ino, m, n) &&
      Emptied(blockMap1, blockMap2, ino, l, m) && l <= m <= n
    ensures Emptied(blockMap0, blockMap2, ino, l, n)
  { reveal Emptied(); }
  lemma EmptiedShrank(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, m: int, n: int, lo: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && Emptied(blockMap0, blockMap, ino, m, n) && lo <= m
    ensures Shrank(blockMap0, blockMap, ino, lo)
  { reveal Emptied(); reveal Shrank(); }

  lemma StillWithin(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, lo: int, n: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && Shrank(blockMap0, blockMap, ino, lo) && Within(blockMap0, ino, n)
    ensures Within(blockMap, ino, n)
  { reveal Shrank(); reveal Within(); }

  lemma ReachSame(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, ino: uint64, m: Meta)
    requires IsDom(blockMap) && ReachOk(g, blockMap, metas) && OkIno(g, ino) && ino in metas &&
      Limit(metas[ino]) <= Limit(m)
    ensures ReachOk(g, blockMap, metas[ino := m])
  { reveal ReachOk(); }
  lemma ReachGrown(g: Geometry, blockMap0: BlkMap, blockMap: BlkMap, metas: map<uint64, Meta>, ino: uint64, m: Meta,
    lo: int,
    n: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && ReachOk(g, blockMap0, metas) && OkIno(g, ino) && ino in metas
    requires Grew(blockMap0, blockMap, ino, lo, n) && n <= Limit(m) && Limit(metas[ino]) <= Limit(m)
    ensures ReachOk(g, blockMap, metas[ino := m])
  {
    reveal ReachOk(); reveal Grew();
    forall p: Pos | OkPos(p) && OkIno(g, p.ino) && blockMap[p] != 0
      ensures p.ino in metas[ino := m] && First(p) < Limit(metas[ino := m][p.ino])
    { if blockMap[p] == blockMap0[p] { assert blockMap0[p] != 0; } }
  }
  lemma ReachShrunk(g: Geometry, blockMap0: BlkMap, blockMap: BlkMap, metas: map<uint64, Meta>, ino: uint64, m: Meta,
    lo: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && ReachOk(g, blockMap0, metas) && OkIno(g, ino) && ino in metas
    requires Shrank(blockMap0, blockMap, ino, lo) && Within(blockMap, ino, Limit(m))
    ensures ReachOk(g, blockMap, metas[ino := m])
  { reveal ReachOk(); reveal Shrank(); reveal Within(); }

  // a file of no blocks has none in its slots
  lemma Bare(g: Geometry, blockMap: BlkMap, inodes: map<uint64, Inode>, metas: map<uint64, Meta>, ino: uint64)
    requires IsDom(blockMap) && RootsOk(g, blockMap, inodes) && ReachOk(g, blockMap, metas) && OkIno(g, ino) &&
      ino in metas && metas[ino].size == 0 && metas[ino].shrink == 0
    ensures ino in inodes && |inodes[ino].blks| == 15 && forall k: int | 0 <= k < 15 :: inodes[ino].blks[k] == 0
  {
    reveal RootsOk(); reveal ReachOk();
    assert OkPos(Pos(ino, 0, 0, 0));
    forall k: int | 0 <= k < 15 ensures inodes[ino].blks[k] == 0
    { var p := Pos(ino, k as uint64, 0, 0); assert OkPos(p); assert 0 <= First(p); }
  }

  // ---- from the top down ----

  // what is mapped from block n of the file on is p or above it
  predicate {:opaque} Chain(blockMap: BlkMap, p: Pos, n: int)
    requires IsDom(blockMap)
  { forall q: Pos {:trigger OkPos(q)} | OkPos(q) && q.ino == p.ino && blockMap[q] != 0 && n <= First(q) ::
    IsAbove(q, p) }

  // the data blocks l to m are not there, all below the lowest indirect block p
  lemma ChainLeaf(blockMap: BlkMap, p: Pos, l: uint64, m: uint64)
    requires IsDom(blockMap) && OkPos(p) && 12 <= p.slot && p.level + 1 == MaxLev(p.slot) &&
      Within(blockMap, p.ino, m as int) && l < m <= 134480396
    requires FlatK(m - 1) == p.slot && FlatJ(m - 1) / 512 == p.index && First(p) <= l as int
    requires forall i: uint64 {:trigger PosOf(p.ino, i)} | l <= i < m ::
      PosOf(p.ino, i) in blockMap && blockMap[PosOf(p.ino, i)] == 0
    ensures Chain(blockMap, p, l as int)
  {
    reveal Within(); reveal Chain();
    forall q: Pos | OkPos(q) && q.ino == p.ino && blockMap[q] != 0 && l as int <= First(q)
      ensures IsAbove(q, p)
    {
      Place(p, q, m - 1);
      if p.level < q.level {
        DataAt(q);
        assert l <= First(q) as uint64 < m;
        assert blockMap[PosOf(p.ino, First(q) as uint64)] == 0;
      }
    }
  }
  // p is not there, and block m - 1 of the file would be below
  lemma ChainHole(blockMap: BlkMap, bs: map<uint64, seq<byte>>, p: Pos, l: uint64, m: uint64)
    requires IsDom(blockMap) && LinksOk(blockMap, bs) && OkPos(p) && blockMap[p] == 0 &&
      Within(blockMap, p.ino, m as int) && l < m <= 134480396
    requires FlatK(m - 1) == p.slot && Up512(FlatJ(m - 1), MaxLev(p.slot) - p.level) == p.index && First(p) <= l as int
    ensures if p.level == 0 then Within(blockMap, p.ino, l as int) else OkPos(Parent(p)) &&
      Chain(blockMap, Parent(p), l as int)
  {
    reveal Within(); reveal Chain();
    if 0 < p.level { ParentOk(p); }
    forall q: Pos | OkPos(q) && q.ino == p.ino && blockMap[q] != 0 && l as int <= First(q)
      ensures 0 < p.level && IsAbove(q, Parent(p))
    {
      Place(p, q, m - 1);
      if q.level < p.level { AboveParent(q, p); } else { Below(blockMap, bs, p, q); }
    }
  }
  // nothing hangs below a hole
  lemma Below(blockMap: BlkMap, bs: map<uint64, seq<byte>>, p: Pos, q: Pos)
    requires IsDom(blockMap) && LinksOk(blockMap, bs) && OkPos(p) && OkPos(q) && IsAbove(p, q) && blockMap[p] == 0
    ensures blockMap[q] == 0
    decreases q.level
  {
    if p.level < q.level {
      ParentOk(q);
      AboveParent(p, q);
      Below(blockMap, bs, p, Parent(q));
      reveal LinksOk();
    } else { assert p == q; }
  }

  // the indirect block p is gone: what is left is above it
  lemma ChainUp(blockMap: BlkMap, p: Pos, n: int)
    requires IsDom(blockMap) && OkPos(p) && Chain(blockMap, p, n)
    ensures IsDom(blockMap[p := 0])
    ensures if p.level == 0 then Within(blockMap[p := 0], p.ino, n) else OkPos(Parent(p)) &&
      Chain(blockMap[p := 0], Parent(p), n)
  {
    reveal Chain(); reveal Within();
    if 0 < p.level { ParentOk(p); }
    forall q: Pos | OkPos(q) && q.ino == p.ino && blockMap[p := 0][q] != 0 && n <= First(q)
      ensures 0 < p.level && IsAbove(q, Parent(p))
    {
      assert q != p && blockMap[q] != 0 && IsAbove(q, p);
      if q.level == p.level { assert q == p; }
      AboveParent(q, p);
    }
  }
  // the indirect block p has an entry: then it is needed for a block before n
  lemma ChainEnd(blockMap: BlkMap, bs: map<uint64, seq<byte>>, p: Pos, n: int, at: uint64)
    requires IsDom(blockMap) && LinksOk(blockMap, bs) && OkPos(p) && !IsData(p) && Chain(blockMap, p, n) && at < 512 &&
      Entry(bs, blockMap[p], at) != 0
    ensures Within(blockMap, p.ino, n)
  {
    var c := Pos(p.ino, p.slot, p.level + 1, 512 * p.index + at);
    assert OkPos(c) && Parent(c) == p && c.index % 512 == at;
    assert blockMap[c] != 0 by { reveal LinksOk(); }
    assert First(p) <= First(c);
    reveal Chain(); reveal Within();
    assert First(p) < n;
    forall q: Pos | OkPos(q) && q.ino == p.ino && blockMap[q] != 0
      ensures First(q) < n
    { if n <= First(q) { assert IsAbove(q, p); FirstAbove(q, p); } }
  }
}
