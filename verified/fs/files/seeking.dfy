// Which blocks a file has: runs of blocks that are there, and of holes.
//
// A whole missing subtree is passed in one step, so that a look at a large file without blocks takes few.
include "reading.dfy"
include "held.dfy"
include "shrinking.dfy"
module Seeking {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnS
  import opened InodeFormat
  import opened Positions
  import opened BlockTreeSpec
  import opened BlockTree
  import opened ByteMap
  import opened Reading
  import opened AllocatedRange
  import opened CountedBlocks
  import Shrinking

  // the blocks n to m - 1 of the file are there, as `there` says
  predicate Run(blockMap: BlkMap, ino: uint64, n: int, m: int, there: bool)
  { forall i: int {:trigger There(blockMap, ino, i)} | n <= i < m :: There(blockMap, ino, i) <==> there }

  // the first block behind the subtree that is missing d levels above block n
  function method Behind(n: uint64, d: uint64): uint64
    requires n < 134217728 && d <= 3
  { BaseOf(FlatK(n)) + First512(FlatJ(n), d) + Width(d) }
  lemma Subtree(n: uint64, i: uint64, d: uint64)
    requires n < 134217728 && d <= MaxLev(FlatK(n)) && n <= i < Behind(n, d)
    ensures i < 134480396 && FlatK(i) == FlatK(n) && Up512(FlatJ(i), d) == Up512(FlatJ(n), d)
  { }
  lemma Missing(x: BlockTreeFs, ino: uint64, n: uint64, m: uint64, d: uint64)
    requires Ok(x) && n < 134217728 && d <= 3 && m <= Behind(n, d)
    requires d <= PosOf(ino, n).level && OkPos(Shrinking.Above(PosOf(ino, n), d)) &&
      x.blockMap[Shrinking.Above(PosOf(ino, n), d)] == 0
    ensures Run(x.blockMap, ino, n as int, m as int, false)
  {
    var p := PosOf(ino, n);
    PosOfOk(ino, n);
    Shrinking.AboveIs(p, d);
    forall i: int | n as int <= i < m as int ensures !There(x.blockMap, ino, i)
    {
      var q := PosOf(ino, i as uint64);
      Subtree(n, i as uint64, d);
      PosOfOk(ino, i as uint64);
      Shrinking.AboveIs(q, d);
      Below(x.blockMap, x.store.blocks, Shrinking.Above(q, d), q);
    }
  }

  // Passes the blocks of the file from n on that are there, or those that are not, up to the first other one (found),
  // but not beyond `top`, and in at most max steps.
  method Pass(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, n: uint64, top: uint64, there: bool, max: uint64,
    excl: bool) returns (m: uint64, found: bool)
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && n <= top <= 134217728
    ensures n <= m <= top && Run(x.blockMap, ino, n as int, m as int, there)
    ensures found ==> m < top && (There(x.blockMap, ino, m as int) <==> !there)
    ensures n < top && 0 < max ==> found || n < m
  {
    m, found := n, false;
    var left := max;
    var ck: uint64, cj: uint64 := 15, 0;
    var pb := ZeroBlk();
    while m < top && 0 < left
      invariant n <= m <= top && AtHand(x, ino, ck, cj, pb.v) && Run(x.blockMap, ino, n as int, m as int, there)
      invariant left < max ==> n < m
      decreases top - m
    {
      var k, j := FlatK(m), FlatJ(m);
      PosOfOk(ino, m);
      var bn: uint64;
      bn, ck, cj, pb := Find(x, txn, ip, ino, m, excl, ck, cj, pb);
      assert There(x.blockMap, ino, m as int) <==> bn != 0;
      if (bn != 0) != there { found := true; return; }
      var next := m + 1;
      if bn == 0 && 12 <= k && (j % 512 == 0 || left == max) {
        var d := Shrinking.Missing(x, txn, ip, ino, k, j, excl);
        next := Behind(m, d);
        if top < next { next := top; }
        if 0 < d { Missing(x, ino, m, next, d); }
      }
      m := next;
      left := left - 1;
    }
  }
}
