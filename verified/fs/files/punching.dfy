// Holes made in the middle of a file: blocks of data are given back, in bounded steps, from the last one of the range
// down.
//
// Indirect blocks stay, also those that have no entry any more: they are given back when the file is cut.
include "shrinking.dfy"
include "seeking.dfy"
module Punching {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnS
  import opened Positions
  import opened BlockTreeSpec
  import opened BlockTree
  import opened ByteMap
  import opened Reading
  import opened AllocatedRange
  import opened CountedBlocks
  import opened Unmapping
  import opened Shrinking
  import opened Seeking

  lemma RunOf(x: BlockTreeFs, ino: uint64, m: uint64, n: uint64)
    requires Ok(x) && m <= n <= 134217728
    requires forall i: uint64 {:trigger PosOf(ino, i)} | m <= i < n ::
      PosOf(ino, i) in x.blockMap && x.blockMap[PosOf(ino, i)] == 0
    ensures Run(x.blockMap, ino, m as int, n as int, false)
  {
    forall i: int | m as int <= i < n as int
      ensures !There(x.blockMap, ino, i) { assert x.blockMap[PosOf(ino, i as uint64)] == 0; }
  }
  // what was a hole before is one
  lemma StillHoles(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, l: int, m: int, n: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && Emptied(blockMap0, blockMap, ino, l, m) &&
      Run(blockMap0, ino, m, n, false) && Run(blockMap, ino, l, m, false)
    ensures Run(blockMap, ino, l, n, false)
  {
    reveal Emptied();
    forall i: int | m <= i < n ensures !There(blockMap, ino, i)
    { assert !There(blockMap0, ino, i); if 0 <= i < NODATA { PosOfOk(ino, i as uint64); } }
  }

  // Makes holes of the blocks n - 1 down to m >= lo of the file, about max of them; holes count as steps, so that the
  // work is bounded.
  method Punch(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, n: uint64, lo: uint64, max: uint64) returns (m: uint64)
    modifies x.Repr(), ip
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip)
    requires lo <= n <= 134217728
    ensures Ok(x) && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures lo <= m <= n && (lo < n && 0 < max ==> m < n)
    ensures Emptied(old(x.blockMap), x.blockMap, ino, m as int, n as int) &&
      Run(x.blockMap, ino, m as int, n as int, false)
    ensures Cut(old(x.data), x.data, ino, 4096 * m as int, 4096 * n as int)
  {
    ghost var d0 := x.data;
    ghost var i0 := x.store.inodes;
    ghost var b0 := x.blockMap;
    m := n;
    var left := max;
    EmptiedNone(b0, ino, n as int, n as int);
    CutNone(d0, ino, 4096 * n as int);
    while lo < m && 0 < left
      invariant lo <= m <= n && left <= max && (left < max ==> m < n)
      invariant Ok(x) && x.IsInode(ino, ip)
      invariant ino in i0 && x.store.inodes == i0[ino := x.store.inodes[ino]] &&
        x.SameMeta(x.store.inodes[ino].meta, i0[ino].meta)
      invariant Emptied(b0, x.blockMap, ino, m as int, n as int) && Run(x.blockMap, ino, m as int, n as int, false)
      invariant Cut(d0, x.data, ino, 4096 * m as int, 4096 * n as int)
      decreases m
    {
      var k, j := FlatK(m - 1), FlatJ(m - 1);
      ghost var p := PosOf(ino, m - 1);
      PosOfOk(ino, m - 1);
      ghost var d1, b1 := x.data, x.blockMap;
      var l, freed: uint64 := 0, 1;
      var d := Shrinking.Missing(x, txn, ip, ino, k, j, true);
      if 0 < d {
        l := BaseOf(k) + First512(j, d);
        if l < lo { l := lo; }
        Skip(x, ino, m, l, d);
        Gone(x, ino, m, l, d);
        EmptiedNone(b1, ino, l as int, m as int);
      } else if k < 12 {
        l := m - 1;
        FreeDirect(x, txn, ip, ino, k);
        assert p == Pos(ino, k, 0, 0);
        assert There(x.blockMap, ino, l as int) <==> x.blockMap[p] != 0;
      } else {
        ParentOk(p);
        AboveIs(p, 1);
        var pn := x.Resolve(txn, ip, ino, k, MaxLev(k) - 1, j / 512, true);
        l, freed := CutRun(x, txn, ip, pn, ino, m, lo, left);
        RunOf(x, ino, l, m);
        if freed == 0 { freed := 1; }
      }
      StillHoles(b1, x.blockMap, ino, l as int, m as int, n as int);
      EmptiedMore(b0, b1, x.blockMap, ino, l as int, m as int, n as int);
      CutMore(d0, d1, x.data, ino, 4096 * l as int, 4096 * m as int, 4096 * n as int);
      left := left - freed;
      m := l;
    }
  }

  // below a missing subtree, which ends before block m, there is nothing from l on
  lemma Gone(x: BlockTreeFs, ino: uint64, m: uint64, l: uint64, d: uint64)
    requires Ok(x) && 0 < m <= 134217728 && l < m
    requires d <= PosOf(ino, m - 1).level && OkPos(Above(PosOf(ino, m - 1), d)) &&
      x.blockMap[Above(PosOf(ino, m - 1), d)] == 0
    requires l >= BaseOf(FlatK(m - 1)) + First512(FlatJ(m - 1), d)
    ensures Run(x.blockMap, ino, l as int, m as int, false)
  {
    forall i: int | l as int <= i < m as int ensures !There(x.blockMap, ino, i) { SkipOne(x, ino, m, i as uint64, d); }
  }
}
