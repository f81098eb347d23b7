// What of a volume is whose: the places that transactions are kept to, each of one kind of objects, and the journal's.
//
// On a sound volume the procedures ask for nothing outside (that is proved). On a damaged one a wild pointer must reach
// no other region, least of all the log or a superblock.
include "blockstore.dfy"
include "../format/superblock.dfy"
include "../../txn/places.dfy"
module Regions {
  import opened Machine
  import opened TxnSpec
  import opened VolumeGeometry
  import opened SuperblockFormat
  import BlockStore
  import P = Places

  function Ranges(g: Geometry): seq<P.Range>
  { [P.Range(g.data0, g.data1, P.BLOCKS), P.Range(g.inodeTable, g.slot0, P.INODES),
    P.Range(g.inodeBitmap, g.inodeTable, P.BITS),
    P.Range(g.slot0, g.data0, P.RECORDS)] }

  // the places of a volume, those that are asked for most first
  method Of(g: Geometry) returns (p: P.Place)
    ensures p.Valid() && p.all == Ranges(g)
  {
    p := new P.Place(g.slot0, g.data0, P.RECORDS, null);
    p := new P.Place(g.inodeBitmap, g.inodeTable, P.BITS, p);
    p := new P.Place(g.inodeTable, g.slot0, P.INODES, p);
    p := new P.Place(g.data0, g.data1, P.BLOCKS, p);
  }
  // the log begins behind the tree of codes
  function method Log(s: Super): uint64 requires SuperOk(s) { 1 + 2 * s.pages }

  lemma Each(g: Geometry, b: uint64)
    requires GeometryOk(g)
    ensures P.What(Ranges(g), b) ==
      if g.inodeBitmap <= b < g.inodeTable then P.BITS else if g.inodeTable <= b < g.slot0 then P.INODES
        else if g.slot0 <= b < g.data0 then P.RECORDS else if g.data0 <= b < g.data1 then P.BLOCKS else P.NOTHING
  {
    var l := Ranges(g);
    assert P.What(l[1..], b) == if l[1].start <= b < l[1].end then l[1].what else P.What(l[1..][1..], b);
    assert l[1..][1..] == l[2..] && l[2..][1..] == l[3..] && l[3..][1..] == [];
    assert P.What(l[2..], b) == if l[2].start <= b < l[2].end then l[2].what else P.What(l[3..], b);
    assert P.What(l[3..], b) == if l[3].start <= b < l[3].end then l[3].what else P.What([], b);
  }
  // None of them has a superblock, or a block of the tree or the log, which lie before them.
  lemma Apart(s: Super, b: uint64)
    requires SuperOk(s) && P.What(Ranges(s.geometry), b) != P.NOTHING
    ensures 1 < Log(s) as int + 2 + 16 * s.lognd as int + s.lognr as int <= b as int < s.size as int - 1
    ensures Log(s) as int + 2 + 16 * s.lognd as int + s.lognr as int == s.geometry.inodeBitmap as int
  { Each(s.geometry, b); }
  // They are home blocks of the journal, so that transactions are opened over them.
  lemma Fit(s: Super, sz: uint64)
    requires SuperOk(s) && s.size <= sz && s.size <= 0x1_0000_0000_0000
    ensures P.Within(Ranges(s.geometry), s.geometry.inodeBitmap, sz)
  {
    var l := Ranges(s.geometry);
    assert l[1..][1..] == l[2..] && l[2..][1..] == l[3..] && l[3..][1..] == [];
    assert P.Within(l[3..], s.geometry.inodeBitmap, sz);
    assert P.Within(l[2..], s.geometry.inodeBitmap, sz);
    assert P.Within(l[1..], s.geometry.inodeBitmap, sz);
  }
  // Their objects are of the kinds that the file system is verified with,
  lemma Kinds(g: Geometry)
    requires GeometryOk(g)
    ensures BlockStore.KindsOk(g, P.KindsOf(Ranges(g)))
  {
    forall b: uint64
      ensures P.What(Ranges(g), b) == if g.inodeBitmap <= b < g.inodeTable then P.BITS
        else if g.inodeTable <= b < g.slot0 then P.INODES
      else if g.slot0 <= b < g.data0 then P.RECORDS else if g.data0 <= b < g.data1 then P.BLOCKS else P.NOTHING
    { Each(g, b); }
  }
  // and hold what the procedures ask for.
  lemma Asked(g: Geometry, i: uint64, b: uint64)
    requires GeometryOk(g)
    ensures OkIno(g, i) ==> P.What(Ranges(g), BlockStore.InodeAddr(g, i).blkno) == P.INODES &&
      P.What(Ranges(g), BlockStore.InoBit(g, i).blkno) == P.BITS
    ensures OkBlk(g, b) ==> P.What(Ranges(g), b) == P.BLOCKS &&
      P.What(Ranges(g), BlockStore.BlkBit(g, b).blkno) == P.BITS
  {
    if OkIno(g, i) { Each(g, BlockStore.InodeAddr(g, i).blkno); Each(g, BlockStore.InoBit(g, i).blkno); }
    if OkBlk(g, b) { Each(g, b); Each(g, BlockStore.BlkBit(g, b).blkno); }
  }
}
