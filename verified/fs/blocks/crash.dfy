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
  lemma FreeBlocksDoNotMatter(g: Geo, bm: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, bs': Blocks, data: Data)
    requires TreesOk(g, bm, owner, used, bs, data) && BlocksDom(g, bs')
    requires forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) && b in used && used[b] :: b in bs && b in bs' && bs'[b] == bs[b]
    ensures TreesOk(g, bm, owner, used, bs', data)
  {
    forall p: Pos | OkPos(p) && bm[p] != 0 ensures bm[p] in bs && bm[p] in bs' && bs'[bm[p]] == bs[bm[p]] {
      reveal OwnerOk();
      assert OkBlk(g, bm[p]);
    }
    assert LinksOk(bm, bs') by { reveal LinksOk(); }
    assert DataOk(bm, bs', data) by { reveal DataOk(); }
  }
}
