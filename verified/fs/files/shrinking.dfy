// Freeing the blocks of a file above a given one, from the top down, a bounded
// number of steps at a time.
include "unmapping.dfy"
module Shrinking {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened TxnS
  import opened Marshal
  import opened VolumeGeometry
  import opened InodeFormat
  import opened BlockStore
  import opened Positions
  import opened BlockTreeSpec
  import opened BlockTree
  import opened ByteMap
  import opened Unmapping
  import opened AllocatedRange

  // the position d levels above
  function Above(p: Pos, d: uint64): Pos
    requires d <= p.level
    decreases d
  { if d == 0 then p else Above(Parent(p), d - 1) }

  lemma AboveIs(p: Pos, d: uint64)
    requires OkPos(p) && d <= p.level <= 3
    ensures Above(p, d) == Pos(p.ino, p.slot, p.level - d, Up512(p.index, d)) && OkPos(Above(p, d))
  {
    assert p.level <= 3;
    if d == 1 { ParentOk(p); }
    if d == 2 { ParentOk(p); ParentOk(Parent(p)); assert Above(p, 2) == Parent(Parent(p));
      assert p.index / 512 / 512 == p.index / 262144; }
    if d == 3 {
      ParentOk(p); ParentOk(Parent(p)); ParentOk(Parent(Parent(p)));
      assert Above(p, 3) == Parent(Parent(Parent(p)));
      assert p.index / 512 / 512 == p.index / 262144; assert p.index / 512 / 512 / 512 == p.index / 134217728;
    }
  }

  // how many levels above the data block at j the tree ends: 0 = the block's
  // parent is there (or it needs none)
  method Missing(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, k: uint64, j: uint64, excl: bool)
    returns (d: uint64)
    requires x.Valid() && txn.volume == x.store.volume && x.IsInode(ino, ip)
    requires OkPos(Pos(ino, k, MaxLev(k), j))
    ensures d <= MaxLev(k)
    ensures d > 0 ==> var p := Pos(ino, k, MaxLev(k), j); OkPos(Above(p, d)) && x.blockMap[Above(p, d)] == 0
    ensures d < MaxLev(k) ==> var q := Pos(ino, k, MaxLev(k) - d - 1, Up512(j, d + 1)); OkPos(q) && x.blockMap[q] != 0
  {
    ghost var p := Pos(ino, k, MaxLev(k), j);
    AboveIs(p, MaxLev(k));
    d := MaxLev(k);
    while 0 < d
      invariant d <= MaxLev(k)
      invariant d < MaxLev(k) ==> OkPos(Pos(ino, k, MaxLev(k) - d - 1, Up512(j, d + 1))) &&
        x.blockMap[Pos(ino, k, MaxLev(k) - d - 1, Up512(j, d + 1))] != 0
      decreases d
    {
      AboveIs(p, d);
      var bn := x.Resolve(txn, ip, ino, k, MaxLev(k) - d, Up512(j, d), excl);
      if bn == 0 { return; }
      d := d - 1;
    }
  }

  // skip the hole that the missing block d levels above block n-1 leaves: back to m
  lemma Skip(x: BlockTreeFs, ino: uint64, n: uint64, m: uint64, d: uint64)
    requires x.Valid() && DataDom(x.data) && 0 < n <= 134217728 && m < n
    requires d <= PosOf(ino, n - 1).level && OkPos(Above(PosOf(ino, n - 1), d)) &&
      x.blockMap[Above(PosOf(ino, n - 1), d)] == 0
    requires m >= BaseOf(FlatK(n - 1)) + First512(FlatJ(n - 1), d)
    ensures Cut(x.data, x.data, ino, 4096 * m as int, 4096 * n as int)
  {
    forall i: uint64 | m <= i < n
      ensures PosOf(ino, i) in x.data && x.data[PosOf(ino, i)] == Zeros(4096)
    { SkipOne(x, ino, n, i, d); }
    CutHoles(x.data, ino, m, n);
  }
  lemma SkipOne(x: BlockTreeFs, ino: uint64, n: uint64, i: uint64, d: uint64)
    requires x.Valid() && DataDom(x.data) && 0 < n <= 134217728 && i < n
    requires d <= PosOf(ino, n - 1).level && OkPos(Above(PosOf(ino, n - 1), d)) &&
      x.blockMap[Above(PosOf(ino, n - 1), d)] == 0
    requires i >= BaseOf(FlatK(n - 1)) + First512(FlatJ(n - 1), d)
    ensures var q := PosOf(ino, i); q in x.blockMap && x.blockMap[q] == 0 && q in x.data && x.data[q] == Zeros(4096)
  {
    var p, q := PosOf(ino, n - 1), PosOf(ino, i);
    PosOfOk(ino, n - 1);
    PosOfOk(ino, i);
    AboveIs(p, d);
    SameSubtree(n - 1, i, d);
    AboveIs(q, d);
    assert Above(q, d) == Above(p, d);
    Below(x.blockMap, x.store.blocks, Above(q, d), q);
    assert x.blockMap[q] == 0;
    reveal DataOk();
    assert IsData(q);
  }
  lemma SameSubtree(n: uint64, i: uint64, d: uint64)
    requires n < 134217728 && d <= 3 && i <= n && i >= BaseOf(FlatK(n)) + First512(FlatJ(n), d)
    ensures FlatK(i) == FlatK(n) && Up512(FlatJ(i), d) == Up512(FlatJ(n), d)
  { }

  // free data blocks below one lowest indirect block pn, from block n-1 of the
  // file down to m >= lo, at most max of them
  method CutRun(x: BlockTreeFs, txn: Txn, ip: Bytes, pn: uint64, ino: uint64, n: uint64, lo: uint64, max: uint64)
    returns (m: uint64, freed: uint64)
    modifies x.Repr(), ip
    requires x.Valid() && DataDom(x.data) && txn.volume == x.store.volume && x.IsInode(ino, ip)
    requires lo < n <= 134217728 && 12 <= FlatK(n - 1) && 0 < max
    requires var q := Pos(ino, FlatK(n - 1), MaxLev(FlatK(n - 1)) - 1, FlatJ(n - 1) / 512);
      OkPos(q) && x.blockMap[q] == pn && pn != 0
    ensures x.Valid() && DataDom(x.data) && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures lo <= m < n && freed <= max && freed <= n - m
    // q has nothing for these blocks any more
    ensures x.blockMap[Pos(ino, FlatK(n - 1), MaxLev(FlatK(n - 1)) - 1, FlatJ(n - 1) / 512)] == pn
    ensures First(Pos(ino, FlatK(n - 1), MaxLev(FlatK(n - 1)) - 1, FlatJ(n - 1) / 512)) <= m as int
    ensures Emptied(old(x.blockMap), x.blockMap, ino, m as int, n as int) &&
      forall i: uint64 {:trigger PosOf(ino, i)} | m <= i < n ::
      PosOf(ino, i) in x.blockMap && x.blockMap[PosOf(ino, i)] == 0
    ensures Cut(old(x.data), x.data, ino, 4096 * m as int, 4096 * n as int)
  {
    var k := FlatK(n - 1);
    var lev := MaxLev(k);
    var jp := FlatJ(n - 1) / 512;
    ghost var q := Pos(ino, k, lev - 1, jp);
    ghost var d0 := x.data;
    ghost var i0 := x.store.inodes;
    x.BlkOf(q);
    var pb := x.store.ReadBlock(txn, pn, true);
    var t := txn.Copy(pb);
    assert x.store.blocks[pn := t.data] == x.store.blocks;
    m, freed := n, 0;
    ghost var b0 := x.blockMap;
    EmptiedNone(b0, ino, n as int, n as int);
    CutNone(d0, ino, 4096 * n as int);
    while lo < m && freed < max
      invariant lo <= m <= n && freed <= max && freed <= n - m && fresh(t) && t != ip
      invariant freed == 0 ==> x.store.blocks[pn := t.data] == old(x.store.blocks) == x.store.blocks
      invariant m == n ==> freed == 0
      invariant x.ValidBut(pn, t) && DataDom(x.data) && x.IsInode(ino, ip)
      invariant x.store.inodes == i0
      invariant q in x.blockMap && x.blockMap[q] == pn
      invariant m < n ==> First(q) <= m as int
      invariant Emptied(b0, x.blockMap, ino, m as int, n as int) &&
        forall i: uint64 {:trigger PosOf(ino, i)} | m <= i < n ::
        PosOf(ino, i) in x.blockMap && x.blockMap[PosOf(ino, i)] == 0
      invariant Cut(d0, x.data, ino, 4096 * m as int, 4096 * n as int)
      decreases m
    {
      var l := m - 1;
      if FlatK(l) != k || FlatJ(l) / 512 != jp { break; }
      var j := FlatJ(l);
      ghost var p := PosOf(ino, l);
      PosOfOk(ino, l);
      ParentOk(p);
      assert Parent(p) == q && IsData(p);
      FirstOf(ino, l);
      FirstAbove(q, p);
      ghost var d1, b1 := x.data, x.blockMap;
      var bn := t.U64(8 * (j % 512));
      x.ChildBut(p, pn, t);
      if bn == 0 {
        assert x.data[p] == Zeros(4096) by { reveal DataOk(); assert OkPos(p); }
        CutHole(x.data, ino, l);
        EmptiedNone(b1, ino, l as int, m as int);
      } else {
        CutChild(x, txn, ip, t, pn, bn, ino, k, lev, j, true);
        EmptiedOne(b1, p);
        CutBlock(d1, ino, l);
        freed := freed + 1;
      }
      EmptiedMore(b0, b1, x.blockMap, ino, l as int, m as int, n as int);
      CutMore(d0, d1, x.data, ino, 4096 * l as int, 4096 * m as int, 4096 * n as int);
      m := l;
    }
    if 0 < freed { x.CloseParent(txn, pn, t); }
  }

  // free the block in a direct slot, if there is one
  method FreeDirect(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, k: uint64)
    modifies x.Repr(), ip
    requires x.Valid() && DataDom(x.data) && txn.volume == x.store.volume && x.IsInode(ino, ip) && k < 12
    ensures x.Valid() && DataDom(x.data) && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures Emptied(old(x.blockMap), x.blockMap, ino, k as int, k as int + 1) && Pos(ino, k, 0, 0) in x.blockMap &&
      x.blockMap[Pos(ino, k, 0, 0)] == 0
    ensures Cut(old(x.data), x.data, ino, 4096 * k as int, 4096 * k as int + 4096)
  {
    ghost var p, d0, b0 := Pos(ino, k, 0, 0), x.data, x.blockMap;
    assert p == PosOf(ino, k) && OkPos(p) && IsData(p);
    var bn := GetSlot(ip, k);
    assert x.blockMap[p] == bn by { reveal RootsOk(); }
    if bn == 0 {
      assert x.data[p] == Zeros(4096) by { reveal DataOk(); }
      CutHole(d0, ino, k);
      EmptiedNone(b0, ino, k as int, k as int + 1);
    } else {
      FreeRoot(x, txn, ip, ino, k);
      CutBlock(d0, ino, k);
      FirstOf(ino, k);
      EmptiedOne(b0, p);
    }
  }

  // free blocks of the file from n-1 down to m >= lo, about max of them; holes
  // count as steps, so that the work is bounded. It stops before lo only if it has come past max blocks, or more.
  method CutDown(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, n: uint64, lo: uint64, max: uint64)
    returns (m: uint64)
    modifies x.Repr(), ip
    requires x.Valid() && DataDom(x.data) && txn.volume == x.store.volume && x.IsInode(ino, ip)
    requires lo <= n <= 134217728 && Within(x.blockMap, ino, n as int)
    ensures x.Valid() && DataDom(x.data) && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures lo <= m <= n && Shrank(old(x.blockMap), x.blockMap, ino, lo as int) && Within(x.blockMap, ino, m as int)
    ensures m == lo || m as int + max as int <= n as int
    ensures Cut(old(x.data), x.data, ino, 4096 * m as int, 4096 * n as int)
  {
    ghost var d0 := x.data;
    ghost var i0 := x.store.inodes;
    m := n;
    var left := max;
    ghost var b0 := x.blockMap;
    ShrankNone(b0, ino, lo as int);
    CutNone(d0, ino, 4096 * n as int);
    while lo < m && 0 < left
      invariant lo <= m <= n && left <= max && m as int + (max - left) as int <= n as int
      invariant x.Valid() && DataDom(x.data) && x.IsInode(ino, ip)
      invariant ino in i0 && x.store.inodes == i0[ino := x.store.inodes[ino]] &&
        x.SameMeta(x.store.inodes[ino].meta, i0[ino].meta)
      invariant Shrank(b0, x.blockMap, ino, lo as int) && Within(x.blockMap, ino, m as int)
      invariant Cut(d0, x.data, ino, 4096 * m as int, 4096 * n as int)
      decreases m
    {
      var k, j := FlatK(m - 1), FlatJ(m - 1);
      ghost var p := PosOf(ino, m - 1);
      PosOfOk(ino, m - 1);
      ghost var d1, b1 := x.data, x.blockMap;
      var l, freed: uint64 := 0, 1;
      var d := Missing(x, txn, ip, ino, k, j, true);
      if 0 < d || k < 12 {
        l := BaseOf(k) + First512(j, d);
        if l < lo { l := lo; }
        if d == 0 {
          FreeDirect(x, txn, ip, ino, k);
          EmptiedShrank(b1, x.blockMap, ino, k as int, k as int + 1, lo as int);
        } else {
          ShrankNone(b1, ino, lo as int);
          Skip(x, ino, m, l, d);
        }
        AboveIs(p, d);
        StillWithin(b1, x.blockMap, ino, lo as int, m as int);
        ChainHole(x.blockMap, x.store.blocks, Above(p, d), l, m);
      } else {
        var pn := x.Resolve(txn, ip, ino, k, MaxLev(k) - 1, j / 512, true);
        l, freed := CutRun(x, txn, ip, pn, ino, m, lo, left);
        if freed == 0 { freed := 1; }
        EmptiedShrank(b1, x.blockMap, ino, l as int, m as int, lo as int);
        StillWithin(b1, x.blockMap, ino, lo as int, m as int);
        ChainLeaf(x.blockMap, Pos(ino, k, MaxLev(k) - 1, j / 512), l, m);
      }
      ghost var b2 := x.blockMap;
      ShrankMore(b0, b1, b2, ino, lo as int, lo as int);
      if d < MaxLev(k) {
        AboveIs(p, d + 1);
        Prune(x, txn, ip, ino, k, MaxLev(k) - d - 1, Up512(j, d + 1), l as int);
        ShrankMore(b0, b2, x.blockMap, ino, lo as int, NODATA);
      }
      left := left - freed;
      CutMore(d0, d1, x.data, ino, 4096 * l as int, 4096 * m as int, 4096 * n as int);
      m := l;
    }
  }
}
