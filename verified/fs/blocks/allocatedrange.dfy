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
  function method BaseOf(k: uint64): uint64 { if k < 12 then k else if k == 12 then 12 else if k == 13 then 524 else 262668 }
  // the index d levels above, and the first index below the same block there
  function method Up512(j: uint64, d: uint64): uint64 { if d == 0 then j else if d == 1 then j / 512 else if d == 2 then j / 262144 else j / 134217728 }
  function method First512(j: uint64, d: uint64): uint64 {
    if d == 0 then j else if d == 1 then j - j % 512 else if d == 2 then j - j % 262144 else j - j % 134217728
  }

  // the first block of the file at p or below
  function First(p: Pos): int
    requires OkPos(p)
  {
    var d := MaxLev(p.k) - p.lev;
    BaseOf(p.k) as int + (if d == 0 then p.j as int else if d == 1 then 512 * p.j as int else if d == 2 then 262144 * p.j as int else 134217728 * p.j as int)
  }
  // q is p, or an indirect block above it
  predicate IsAbove(q: Pos, p: Pos) { q.ino == p.ino && q.k == p.k && q.lev <= p.lev && q.j == Up512(p.j, p.lev - q.lev) }

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
    requires OkPos(p) && 0 < p.lev && IsAbove(q, p) && q.lev < p.lev
    ensures IsAbove(q, Parent(p))
  { }

  // Block i of the file is at p or below. What begins between p and i is above p, or at p or below.
  lemma Place(p: Pos, q: Pos, i: uint64)
    requires OkPos(p) && OkPos(q) && p.ino == q.ino && i < 134480396 && FlatK(i) == p.k && Up512(FlatJ(i), MaxLev(p.k) - p.lev) == p.j
    requires First(p) <= First(q) <= i as int
    ensures if q.lev < p.lev then IsAbove(q, p) else IsAbove(p, q)
  {
    assert q.k == p.k;
  }

  // ---- the invariant ----

  // in blocks
  function Limit(m: Meta): int { ((if m.size < m.shrink then m.shrink else m.size) as int + 4095) / 4096 }
  predicate {:opaque} ReachOk(g: Geo, bm: BlkMap, metas: map<uint64, Meta>)
    requires IsDom(bm)
  {
    forall p: Pos {:trigger OkPos(p)} | OkPos(p) && OkIno(g, p.ino) && bm[p] != 0 :: p.ino in metas && First(p) < Limit(metas[p.ino])
  }
  // of one inode
  predicate {:opaque} Within(bm: BlkMap, ino: uint64, n: int)
    requires IsDom(bm)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && p.ino == ino && bm[p] != 0 :: First(p) < n }

  lemma ReachOf(g: Geo, bm: BlkMap, metas: map<uint64, Meta>, ino: uint64)
    requires IsDom(bm) && ReachOk(g, bm, metas) && OkIno(g, ino) && ino in metas
    ensures Within(bm, ino, Limit(metas[ino]))
  { reveal ReachOk(); reveal Within(); }

  // ---- the steps ----

  // no block of data is given out, or given back, before this one: none at all
  ghost const NODATA: int := 134480396

  // blocks of ino were given out, or exchanged for others, all for blocks of the file before n, those for data from lo on
  predicate {:opaque} Grew(bm0: BlkMap, bm: BlkMap, ino: uint64, lo: int, n: int)
    requires IsDom(bm0) && IsDom(bm)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && bm[p] != bm0[p] :: p.ino == ino && First(p) < n && bm[p] != 0 && (IsData(p) ==> lo <= First(p)) }
  // blocks of ino were given back, those of data from lo on
  predicate {:opaque} Shrank(bm0: BlkMap, bm: BlkMap, ino: uint64, lo: int)
    requires IsDom(bm0) && IsDom(bm)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && bm[p] != bm0[p] :: p.ino == ino && bm[p] == 0 && (IsData(p) ==> lo <= First(p)) }

  // blocks of data of ino were given back, of those m to n - 1 of the file
  predicate {:opaque} Emptied(bm0: BlkMap, bm: BlkMap, ino: uint64, m: int, n: int)
    requires IsDom(bm0) && IsDom(bm)
  { forall p: Pos {:trigger OkPos(p)} | OkPos(p) && bm[p] != bm0[p] :: p.ino == ino && bm[p] == 0 && IsData(p) && m <= First(p) < n }

  lemma GrewNone(bm: BlkMap, ino: uint64, lo: int, n: int)
    requires IsDom(bm)
    ensures Grew(bm, bm, ino, lo, n)
  { reveal Grew(); }
  lemma GrewOne(bm: BlkMap, p: Pos, x: uint64, lo: int, n: int)
    requires IsDom(bm) && OkPos(p) && First(p) < n && x != 0 && (IsData(p) ==> lo <= First(p))
    ensures IsDom(bm[p := x]) && Grew(bm, bm[p := x], p.ino, lo, n)
  { reveal Grew(); }
  lemma GrewMore(bm0: BlkMap, bm1: BlkMap, bm2: BlkMap, ino: uint64, lo: int, n: int, lo': int, n': int)
    requires IsDom(bm0) && IsDom(bm1) && IsDom(bm2) && Grew(bm0, bm1, ino, lo, n) && Grew(bm1, bm2, ino, lo', n') && lo' <= lo && n <= n'
    ensures Grew(bm0, bm2, ino, lo', n')
  { reveal Grew(); }
  lemma ShrankNone(bm: BlkMap, ino: uint64, lo: int)
    requires IsDom(bm)
    ensures Shrank(bm, bm, ino, lo)
  { reveal Shrank(); }
  lemma ShrankOne(bm: BlkMap, p: Pos, lo: int)
    requires IsDom(bm) && OkPos(p) && (IsData(p) ==> lo <= First(p))
    ensures IsDom(bm[p := 0]) && Shrank(bm, bm[p := 0], p.ino, lo)
  { reveal Shrank(); }
  lemma ShrankMore(bm0: BlkMap, bm1: BlkMap, bm2: BlkMap, ino: uint64, lo: int, lo': int)
    requires IsDom(bm0) && IsDom(bm1) && IsDom(bm2) && Shrank(bm0, bm1, ino, lo) && Shrank(bm1, bm2, ino, lo') && lo <= lo'
    ensures Shrank(bm0, bm2, ino, lo)
  { reveal Shrank(); }

  lemma EmptiedNone(bm: BlkMap, ino: uint64, m: int, n: int)
    requires IsDom(bm)
    ensures Emptied(bm, bm, ino, m, n)
  { reveal Emptied(); }
  lemma EmptiedOne(bm: BlkMap, p: Pos)
    requires IsDom(bm) && IsData(p)
    ensures IsDom(bm[p := 0]) && Emptied(bm, bm[p := 0], p.ino, First(p), First(p) + 1)
  { reveal Emptied(); }
  lemma EmptiedMore(bm0: BlkMap, bm1: BlkMap, bm2: BlkMap, ino: uint64, l: int, m: int, n: int)
    requires IsDom(bm0) && IsDom(bm1) && IsDom(bm2) && Emptied(bm0, bm1, ino, m, n) && Emptied(bm1, bm2, ino, l, m) && l <= m <= n
    ensures Emptied(bm0, bm2, ino, l, n)
  { reveal Emptied(); }
  lemma EmptiedShrank(bm0: BlkMap, bm: BlkMap, ino: uint64, m: int, n: int, lo: int)
    requires IsDom(bm0) && IsDom(bm) && Emptied(bm0, bm, ino, m, n) && lo <= m
    ensures Shrank(bm0, bm, ino, lo)
  { reveal Emptied(); reveal Shrank(); }

  lemma StillWithin(bm0: BlkMap, bm: BlkMap, ino: uint64, lo: int, n: int)
    requires IsDom(bm0) && IsDom(bm) && Shrank(bm0, bm, ino, lo) && Within(bm0, ino, n)
    ensures Within(bm, ino, n)
  { reveal Shrank(); reveal Within(); }

  lemma ReachSame(g: Geo, bm: BlkMap, metas: map<uint64, Meta>, ino: uint64, m: Meta)
    requires IsDom(bm) && ReachOk(g, bm, metas) && OkIno(g, ino) && ino in metas && Limit(metas[ino]) <= Limit(m)
    ensures ReachOk(g, bm, metas[ino := m])
  { reveal ReachOk(); }
  lemma ReachGrown(g: Geo, bm0: BlkMap, bm: BlkMap, metas: map<uint64, Meta>, ino: uint64, m: Meta, lo: int, n: int)
    requires IsDom(bm0) && IsDom(bm) && ReachOk(g, bm0, metas) && OkIno(g, ino) && ino in metas
    requires Grew(bm0, bm, ino, lo, n) && n <= Limit(m) && Limit(metas[ino]) <= Limit(m)
    ensures ReachOk(g, bm, metas[ino := m])
  {
    reveal ReachOk(); reveal Grew();
    forall p: Pos | OkPos(p) && OkIno(g, p.ino) && bm[p] != 0
      ensures p.ino in metas[ino := m] && First(p) < Limit(metas[ino := m][p.ino])
    { if bm[p] == bm0[p] { assert bm0[p] != 0; } }
  }
  lemma ReachShrunk(g: Geo, bm0: BlkMap, bm: BlkMap, metas: map<uint64, Meta>, ino: uint64, m: Meta, lo: int)
    requires IsDom(bm0) && IsDom(bm) && ReachOk(g, bm0, metas) && OkIno(g, ino) && ino in metas
    requires Shrank(bm0, bm, ino, lo) && Within(bm, ino, Limit(m))
    ensures ReachOk(g, bm, metas[ino := m])
  { reveal ReachOk(); reveal Shrank(); reveal Within(); }

  // a file of no blocks has none in its slots
  lemma Bare(g: Geo, bm: BlkMap, inodes: map<uint64, Inode>, metas: map<uint64, Meta>, ino: uint64)
    requires IsDom(bm) && RootsOk(g, bm, inodes) && ReachOk(g, bm, metas) && OkIno(g, ino) && ino in metas && metas[ino].size == 0 && metas[ino].shrink == 0
    ensures ino in inodes && |inodes[ino].blks| == 15 && forall k: int | 0 <= k < 15 :: inodes[ino].blks[k] == 0
  {
    reveal RootsOk(); reveal ReachOk();
    assert OkPos(Pos(ino, 0, 0, 0));
    forall k: int | 0 <= k < 15 ensures inodes[ino].blks[k] == 0
    { var p := Pos(ino, k as uint64, 0, 0); assert OkPos(p); assert 0 <= First(p); }
  }

  // ---- from the top down ----

  // what is mapped from block n of the file on is p or above it
  predicate {:opaque} Chain(bm: BlkMap, p: Pos, n: int)
    requires IsDom(bm)
  { forall q: Pos {:trigger OkPos(q)} | OkPos(q) && q.ino == p.ino && bm[q] != 0 && n <= First(q) :: IsAbove(q, p) }

  // the data blocks l to m are not there, all below the lowest indirect block p
  lemma ChainLeaf(bm: BlkMap, p: Pos, l: uint64, m: uint64)
    requires IsDom(bm) && OkPos(p) && 12 <= p.k && p.lev + 1 == MaxLev(p.k) && Within(bm, p.ino, m as int) && l < m <= 134480396
    requires FlatK(m - 1) == p.k && FlatJ(m - 1) / 512 == p.j && First(p) <= l as int
    requires forall i: uint64 {:trigger PosOf(p.ino, i)} | l <= i < m :: PosOf(p.ino, i) in bm && bm[PosOf(p.ino, i)] == 0
    ensures Chain(bm, p, l as int)
  {
    reveal Within(); reveal Chain();
    forall q: Pos | OkPos(q) && q.ino == p.ino && bm[q] != 0 && l as int <= First(q)
      ensures IsAbove(q, p)
    {
      Place(p, q, m - 1);
      if p.lev < q.lev {
        DataAt(q);
        assert l <= First(q) as uint64 < m;
        assert bm[PosOf(p.ino, First(q) as uint64)] == 0;
      }
    }
  }
  // p is not there, and block m - 1 of the file would be below
  lemma ChainHole(bm: BlkMap, bs: map<uint64, seq<byte>>, p: Pos, l: uint64, m: uint64)
    requires IsDom(bm) && LinksOk(bm, bs) && OkPos(p) && bm[p] == 0 && Within(bm, p.ino, m as int) && l < m <= 134480396
    requires FlatK(m - 1) == p.k && Up512(FlatJ(m - 1), MaxLev(p.k) - p.lev) == p.j && First(p) <= l as int
    ensures if p.lev == 0 then Within(bm, p.ino, l as int) else OkPos(Parent(p)) && Chain(bm, Parent(p), l as int)
  {
    reveal Within(); reveal Chain();
    if 0 < p.lev { ParentOk(p); }
    forall q: Pos | OkPos(q) && q.ino == p.ino && bm[q] != 0 && l as int <= First(q)
      ensures 0 < p.lev && IsAbove(q, Parent(p))
    {
      Place(p, q, m - 1);
      if q.lev < p.lev { AboveParent(q, p); } else { Below(bm, bs, p, q); }
    }
  }
  // nothing hangs below a hole
  lemma Below(bm: BlkMap, bs: map<uint64, seq<byte>>, p: Pos, q: Pos)
    requires IsDom(bm) && LinksOk(bm, bs) && OkPos(p) && OkPos(q) && IsAbove(p, q) && bm[p] == 0
    ensures bm[q] == 0
    decreases q.lev
  {
    if p.lev < q.lev {
      ParentOk(q);
      AboveParent(p, q);
      Below(bm, bs, p, Parent(q));
      reveal LinksOk();
    } else { assert p == q; }
  }

  // the indirect block p is gone: what is left is above it
  lemma ChainUp(bm: BlkMap, p: Pos, n: int)
    requires IsDom(bm) && OkPos(p) && Chain(bm, p, n)
    ensures IsDom(bm[p := 0])
    ensures if p.lev == 0 then Within(bm[p := 0], p.ino, n) else OkPos(Parent(p)) && Chain(bm[p := 0], Parent(p), n)
  {
    reveal Chain(); reveal Within();
    if 0 < p.lev { ParentOk(p); }
    forall q: Pos | OkPos(q) && q.ino == p.ino && bm[p := 0][q] != 0 && n <= First(q)
      ensures 0 < p.lev && IsAbove(q, Parent(p))
    {
      assert q != p && bm[q] != 0 && IsAbove(q, p);
      if q.lev == p.lev { assert q == p; }
      AboveParent(q, p);
    }
  }
  // the indirect block p has an entry: then it is needed for a block before n
  lemma ChainEnd(bm: BlkMap, bs: map<uint64, seq<byte>>, p: Pos, n: int, at: uint64)
    requires IsDom(bm) && LinksOk(bm, bs) && OkPos(p) && !IsData(p) && Chain(bm, p, n) && at < 512 && Entry(bs, bm[p], at) != 0
    ensures Within(bm, p.ino, n)
  {
    var c := Pos(p.ino, p.k, p.lev + 1, 512 * p.j + at);
    assert OkPos(c) && Parent(c) == p && c.j % 512 == at;
    assert bm[c] != 0 by { reveal LinksOk(); }
    assert First(p) <= First(c);
    reveal Chain(); reveal Within();
    assert First(p) < n;
    forall q: Pos | OkPos(q) && q.ino == p.ino && bm[q] != 0
      ensures First(q) < n
    { if n <= First(q) { assert IsAbove(q, p); FirstAbove(q, p); } }
  }
}
