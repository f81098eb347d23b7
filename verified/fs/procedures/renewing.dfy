include "base.dfy"
// Blocks written anew: the device has lost what a block holds, or the page of the tree of codes that has its code, and
// memory still has it.
module Renewing {
  import opened Machine
  import opened ByteSlice
  import opened TxnSpec
  import opened TxnS
  import opened VolumeGeometry
  import opened Directories
  import opened ProcedureBase
  import BlockStore

  // The file system has something in block a that it may read.
  predicate InUse(d: DirFs, a: uint64) reads d, d.fs, d.fs.trees, d.fs.trees.store {
    var g := d.fs.geometry;
    g.inodeBitmap <= a < g.slot0 || (g.data0 <= a < g.data1 && a in d.fs.trees.store.used && d.fs.trees.store.used[a])
  }
  // Writes something of block a as it is, if the block is in use. So nothing changes, and the block goes home again,
  // and its code into new pages.
  method Renew(txn: Txn, d: DirFs, a: uint64) returns (wrote: bool)
    modifies d.fs.volume
    requires Sound(d) && txn.volume == d.fs.volume
    ensures Sound(d) && AbsOf(d) == old(AbsOf(d))
    ensures d.fs.volume.data == old(d.fs.volume.data)
    ensures wrote ==> exists off :: d.fs.volume.written == old(d.fs.volume.written) + {Addr(a, off)}
    ensures !wrote ==> !InUse(d, a)
  {
    var g := d.fs.geometry;
    var s := d.fs.trees.store;
    if g.inodeBitmap <= a && a < g.inodeTable {
      var bit := txn.ReadBit(a, 0, true);
      txn.WriteBit(a, 0, bit);
    } else if g.inodeTable <= a && a < g.slot0 {
      var ino := txn.ReadInode(a, 0, true);
      txn.WriteInode(a, 0, ino);
    } else if g.data0 <= a && a < g.data1 {
      var unused := s.FreeBit(txn, a);
      if unused { return false; }
      var b := txn.ReadBlock(a, true);
      var y := b.Thaw();
      txn.WriteBlock(a, y);
    } else { return false; }
    assert d.fs.volume.data == old(d.fs.volume.data);
    wrote := true;
  }
}
