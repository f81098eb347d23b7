// What of a volume is whose: the regions that transactions are kept to, each of one kind of objects, and the journal's.
//
// On a sound volume the procedures ask for nothing outside (that is proved). On a damaged one a wild pointer must reach no other region, least
// of all the log or a superblock.
include "blockstore.dfy"
include "../format/superblock.dfy"
module Regions {
  import opened Machine
  import opened TxnSpec
  import opened VolumeGeometry
  import opened SuperblockFormat
  import BlockStore

  const BITS: uint32 := 0
  const INODES: uint32 := 1
  const RECORDS: uint32 := 2
  const DATA: uint32 := 3

  // region k is [Start, End)
  function method Start(g: Geo, k: uint32): uint64
  { if k == BITS then g.ibm else if k == INODES then g.itab else if k == RECORDS then g.slot0 else g.data0 }
  function method End(g: Geo, k: uint32): uint64
  { if k == BITS then g.itab else if k == INODES then g.slot0 else if k == RECORDS then g.data0 else g.data1 }
  predicate In(g: Geo, k: uint32, b: uint64) { Start(g, k) <= b < End(g, k) }
  // the log begins behind the tree of codes
  function method Log(s: Super): uint64 requires SuperOk(s) { 1 + 2 * s.pages }

  // A block is in one region at most; none has a superblock, or a block of the tree or the log, which lie before them.
  lemma Apart(s: Super, b: uint64, k: uint32, k': uint32)
    requires SuperOk(s) && k <= DATA && k' <= DATA
    ensures In(s.geo, k, b) && In(s.geo, k', b) ==> k == k'
    ensures In(s.geo, k, b) ==> 1 < Log(s) as int + 2 + 16 * s.lognd as int + s.lognr as int <= b as int < s.size as int - 1
    ensures Log(s) as int + 2 + 16 * s.lognd as int + s.lognr as int == Start(s.geo, BITS) as int
  { }
  // They hold what the procedures ask for, and there the objects are of that kind.
  lemma Kinds(g: Geo, kinds: map<uint64, Kind>, b: uint64)
    requires GeoOk(g) && BlockStore.KindsOk(g, kinds)
    ensures In(g, BITS, b) ==> b in kinds && kinds[b] == KBit
    ensures In(g, INODES, b) ==> b in kinds && kinds[b] == KInode
    ensures In(g, DATA, b) ==> b in kinds && kinds[b] == KBlock
  { }
  lemma Asked(g: Geo, i: uint64, b: uint64)
    requires GeoOk(g)
    ensures OkIno(g, i) ==> In(g, INODES, BlockStore.InodeAddr(g, i).blkno) && In(g, BITS, BlockStore.InoBit(g, i).blkno)
    ensures OkBlk(g, b) ==> In(g, DATA, b) && In(g, BITS, BlockStore.BlkBit(g, b).blkno)
  { }
}
