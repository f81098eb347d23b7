// What the file system asks of a volume after a crash: nothing about free blocks. A journal
// that writes new blocks straight home recovers to a state but for the blocks whose
// allocation bit is clear in it (Agree in journal/model.dfy); these may hold anything. The
// invariant of the block trees, and with it all contents of files, does not depend on them.
include "blocktreespec.dfy"
module Crash {
  import opened Machine
  import opened VolumeGeometry
  import opened BlockStore
  import opened Positions
  import opened BlockTreeSpec

  // bs' is bs but for free blocks
  lemma FreeBlocksDoNotMatter(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks,
    bs': Blocks,
    data: Data)
    requires TreesOk(g, blockMap, owner, used, bs, data) && BlocksDom(g, bs')
    requires forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) && b in used && used[b] ::
      b in bs && b in bs' && bs'[b] == bs[b]
    ensures TreesOk(g, blockMap, owner, used, bs', data)
  {
    forall p: Pos | OkPos(p) && blockMap[p] != 0
      ensures blockMap[p] in bs && blockMap[p] in bs' && bs'[blockMap[p]] == bs[blockMap[p]] {
      reveal OwnerOk();
      assert OkBlk(g, blockMap[p]);
    }
    assert LinksOk(blockMap, bs') by { reveal LinksOk(); }
    assert DataOk(blockMap, bs', data) by { reveal DataOk(); }
  }
}
