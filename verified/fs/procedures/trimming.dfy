include "base.dfy"
include "../blocks/crash.dfy"
// Room given back: the background writes zeros to free blocks, which the device then need not store.
module Trimming {
  import opened Machine
  import opened ByteSpec
  import opened TxnS
  import opened VolumeGeometry
  import opened Directories
  import opened ProcedureBase
  import BlockStore
  import Crash

  // Zeros in those of the n blocks from lo on that are free. No client sees that, and no block in use changes.
  method Trim(txn: Txn, d: DirFs, lo: uint64, n: uint64)
    modifies d.fs.trees.store.Repr()
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Sound(d) && AbsOf(d) == old(AbsOf(d))
    ensures d.fs.trees.store.inodes == old(d.fs.trees.store.inodes) &&
      d.fs.trees.store.used == old(d.fs.trees.store.used)
    ensures FreeOnly(d.fs.geometry, d.fs.trees.store.used, old(d.fs.trees.store.blocks), d.fs.trees.store.blocks)
  {
    var b := d.fs.trees.store;
    ghost var t := d.fs.trees;
    ghost var was := b.blocks;
    if n > d.fs.geometry.data1 || lo < d.fs.geometry.data0 || lo > d.fs.geometry.data1 - n { b.Dom(); return; }
    b.ZeroFree(txn, lo, n);
    b.Dom();
    Crash.FreeBlocksDoNotMatter(d.fs.geometry, t.blockMap, t.owner, b.used, was, b.blocks, t.data);
  }

  // every block holds what it held, or is free and holds zeros
  predicate FreeOnly(g: Geometry, used: map<uint64, bool>, was: BlockStore.Blocks, is: BlockStore.Blocks) {
    forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) :: b in used && b in was && b in is &&
      (is[b] == was[b] || (!used[b] && is[b] == Zeros(4096)))
  }
}
