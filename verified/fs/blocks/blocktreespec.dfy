// Block trees: an imap from positions to block numbers in which no block is
// referenced twice, and the contents of every data block.
//
// The invariant consists of predicates over plain values; the lemmas say what
// one step of blocktree.dfy or unmapping.dfy does to them.
include "blockstore.dfy"
include "positions.dfy"
module BlockTreeSpec {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened VolumeGeometry
  import opened Marshal
  import opened InodeFormat
  import opened BlockStore
  import opened Positions

  type BlkMap = imap<Pos, uint64>
  type Owner = map<uint64, Option<Pos>>
  type Data = imap<Pos, seq<byte>>

  predicate IsDom(blockMap: BlkMap)
  { forall p: Pos {:trigger OkPos(p)} {:trigger blockMap[p]} | OkPos(p) :: p in blockMap }
  predicate BlocksDom(g: Geometry, bs: Blocks)
  { forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) :: b in bs && |bs[b]| == 4096 }

  // no block is referenced twice, and exactly the referenced ones are used
  predicate {:opaque} OwnerOk(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>)
    requires IsDom(blockMap)
  {
    && (forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) ::
          b in owner && b in used && (owner[b].Some? <==> used[b]) &&
          (owner[b].Some? ==> OkPos(owner[b].x) && blockMap[owner[b].x] == b))
    && (forall p: Pos {:trigger OkPos(p)} | OkPos(p) && blockMap[p] != 0 ::
          OkBlk(g, blockMap[p]) && blockMap[p] in owner && owner[blockMap[p]] == Some(p))
  }

  // the slots of the inodes
  predicate {:opaque} RootsOk(g: Geometry, blockMap: BlkMap, inodes: map<uint64, Inode>)
    requires IsDom(blockMap)
  {
    forall p: Pos {:trigger OkPos(p)} | OkPos(p) && p.level == 0 ::
      if OkIno(g, p.ino) then p.ino in inodes && |inodes[p.ino].blks| == 15 && blockMap[p] == inodes[p.ino].blks[p.slot]
      else blockMap[p] == 0
  }

  function Entry(bs: Blocks, bn: uint64, i: uint64): uint64
    requires i < 512
  { if bn == 0 || bn !in bs || |bs[bn]| != 4096 then 0 else U64At(bs[bn], 8 * i as int) }

  // the entries of the indirect blocks
  predicate {:opaque} LinksOk(blockMap: BlkMap, bs: Blocks)
    requires IsDom(blockMap)
  {
    forall p: Pos {:trigger OkPos(p)} | OkPos(p) && p.level > 0 ::
      OkPos(Parent(p)) && blockMap[p] == Entry(bs, blockMap[Parent(p)], p.index % 512)
  }

  function BlockOf(blockMap: BlkMap, bs: Blocks, p: Pos): seq<byte>
    requires p in blockMap
  { if blockMap[p] in bs then bs[blockMap[p]] else Zeros(4096) }

  predicate {:opaque} DataOk(blockMap: BlkMap, bs: Blocks, data: Data)
    requires IsDom(blockMap)
  {
    forall p: Pos {:trigger IsData(p)} | IsData(p) ::
      OkPos(p) && p in data && |data[p]| == 4096 &&
        data[p] == (if blockMap[p] == 0 then Zeros(4096) else BlockOf(blockMap, bs, p))
  }

  // the whole invariant over the blocks bs
  predicate TreesOk(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, data: Data) {
    IsDom(blockMap) && BlocksDom(g, bs) && OwnerOk(g, blockMap, owner, used) && LinksOk(blockMap, bs) &&
      DataOk(blockMap, bs, data)
  }

  // bs' is bs with nb holding c, and below the indirect block pn (0 = none) the
  // entry i changed to x
  predicate Linked(g: Geometry, bs: Blocks, bs': Blocks, pn: uint64, i: uint64, x: uint64)
    requires i < 512
  {
    && OkBlk(g, pn) && pn in bs
    && (forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) && b != pn :: b in bs && b in bs' && bs'[b] == bs[b])
    && Entry(bs', pn, i) == x
    && forall e: uint64 {:trigger Entry(bs', pn, e)} | e < 512 && e != i :: Entry(bs', pn, e) == Entry(bs, pn, e)
  }

  // --- the steps ---

  // a new block nb with contents c hung at p: the inode slot, or entry p.index%512 of its parent
  lemma OwnerAlloc(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>, p: Pos, nb: uint64)
    requires GeometryOk(g) && IsDom(blockMap) && OwnerOk(g, blockMap, owner, used)
    requires OkPos(p) && blockMap[p] == 0 && OkBlk(g, nb) && nb in used && !used[nb]
    ensures IsDom(blockMap[p := nb])
    ensures OwnerOk(g, blockMap[p := nb], owner[nb := Some(p)], used[nb := true])
  { reveal OwnerOk(); }

  // the roots after a change at p (x: the new block number, 0 when freed)
  lemma RootsStep(g: Geometry, blockMap: BlkMap, inodes: map<uint64, Inode>, p: Pos, x: uint64, i': Inode)
    requires IsDom(blockMap) && RootsOk(g, blockMap, inodes) && OkIno(g, p.ino)
    requires OkPos(p) && p.ino in inodes && |inodes[p.ino].blks| == 15
    requires p.level == 0 ==> i'.blks == inodes[p.ino].blks[p.slot as int := x]
    requires p.level != 0 ==> i'.blks == inodes[p.ino].blks
    ensures IsDom(blockMap[p := x])
    ensures RootsOk(g, blockMap[p := x], inodes[p.ino := i'])
  {
    reveal RootsOk();
    var blockMap' := blockMap[p := x];
    var inodes' := inodes[p.ino := i'];
    forall q: Pos | OkPos(q) && q.level == 0
      ensures if OkIno(g, q.ino) then q.ino in inodes' && |inodes'[q.ino].blks| == 15 &&
        blockMap'[q] == inodes'[q.ino].blks[q.slot] else blockMap'[q] == 0
    {
      if q.ino == p.ino && q.slot == p.slot && p.level == 0 { assert q.index == 0 && p.index == 0; assert q == p; }
    }
  }

  lemma LinksAlloc(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, bs': Blocks,
    p: Pos,
    nb: uint64, c: seq<byte>)
    requires GeometryOk(g) && IsDom(blockMap) && OwnerOk(g, blockMap, owner, used) && LinksOk(blockMap, bs) &&
      BlocksDom(g, bs)
    requires OkPos(p) && blockMap[p] == 0 && OkBlk(g, nb) && nb in used && !used[nb]
    requires |c| == 4096 && (IsData(p) || c == Zeros(4096))
    requires p.level == 0 ==> bs' == bs[nb := c]
    requires p.level > 0 ==> OkPos(Parent(p)) && blockMap[Parent(p)] != 0 && blockMap[Parent(p)] != nb &&
      Linked(g, bs[nb := c], bs', blockMap[Parent(p)], p.index % 512, nb)
    requires BlocksDom(g, bs')
    ensures IsDom(blockMap[p := nb])
    ensures LinksOk(blockMap[p := nb], bs')
  {
    var blockMap' := blockMap[p := nb];
    reveal LinksOk();
    reveal OwnerOk();
    if p.level > 0 { assert OkPos(Parent(p)); assert OkBlk(g, blockMap[Parent(p)]); assert blockMap[Parent(p)] != nb; }
    assert bs'[nb] == c;
    forall q: Pos | OkPos(q) && q.level > 0
      ensures OkPos(Parent(q)) && blockMap'[q] == Entry(bs', blockMap'[Parent(q)], q.index % 512)
    {
      ParentOk(q);
      assert blockMap[q] == Entry(bs, blockMap[Parent(q)], q.index % 512);
      if Parent(q) == p {
        assert blockMap[q] == 0;
        assert q != p;
        assert bs'[nb] == Zeros(4096);
        U64AtZeros(4096, 8 * (q.index % 512) as int);
      } else if q == p {
      } else if p.level > 0 && Parent(q) == Parent(p) {
        if q.index % 512 == p.index % 512 { Siblings(p, q); }
        var pn := blockMap[Parent(p)];
        assert Entry(bs', pn, q.index % 512) == Entry(bs[nb := c], pn, q.index % 512) == Entry(bs, pn, q.index % 512);
      } else {
        var b := blockMap[Parent(q)];
        if b != 0 {
          assert owner[b] == Some(Parent(q));
          assert b != nb;
          if p.level > 0 { assert owner[blockMap[Parent(p)]] == Some(Parent(p)); assert b != blockMap[Parent(p)]; }
          assert OkBlk(g, b);
          assert bs'[b] == bs[b];
        }
      }
    }
  }

  lemma DataAlloc(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, bs': Blocks,
    data: Data,
    p: Pos, nb: uint64, c: seq<byte>)
    requires GeometryOk(g) && IsDom(blockMap) && OwnerOk(g, blockMap, owner, used) && BlocksDom(g, bs) &&
      DataOk(blockMap, bs, data)
    requires OkPos(p) && blockMap[p] == 0 && OkBlk(g, nb) && nb in used && !used[nb] && |c| == 4096
    requires BlocksDom(g, bs')
    requires p.level == 0 ==> bs' == bs[nb := c]
    requires p.level > 0 ==> OkPos(Parent(p)) && blockMap[Parent(p)] != 0 && blockMap[Parent(p)] != nb &&
      Linked(g, bs[nb := c], bs', blockMap[Parent(p)], p.index % 512, nb)
    ensures IsDom(blockMap[p := nb])
    ensures DataOk(blockMap[p := nb], bs', if IsData(p) then data[p := c] else data)
  {
    var blockMap' := blockMap[p := nb];
    var data' := if IsData(p) then data[p := c] else data;
    reveal OwnerOk(); reveal DataOk();
    assert bs'[nb] == c;
    forall q: Pos | IsData(q)
      ensures OkPos(q) && q in data' && |data'[q]| == 4096 &&
        data'[q] == (if blockMap'[q] == 0 then Zeros(4096) else BlockOf(blockMap', bs', q))
    {
      assert OkPos(q);
      if p.level > 0 { ParentOk(p); assert q != Parent(p); assert OkPos(Parent(p)); }
      if q == p {
      } else if blockMap[q] != 0 {
        assert owner[blockMap[q]] == Some(q);
        assert blockMap[q] != nb;
        assert OkBlk(g, blockMap[q]);
        if p.level > 0 { assert owner[blockMap[Parent(p)]] == Some(Parent(p));
          assert blockMap[q] != blockMap[Parent(p)]; }
        assert bs'[blockMap[q]] == bs[blockMap[q]];
      }
    }
  }

  // the data block at p overwritten
  lemma WriteOne(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, data: Data, p: Pos,
    c: seq<byte>)
    requires GeometryOk(g) && TreesOk(g, blockMap, owner, used, bs, data)
    requires IsData(p) && p in blockMap && blockMap[p] != 0 && |c| == 4096
    ensures TreesOk(g, blockMap, owner, used, bs[blockMap[p] := c], data[p := c])
  {
    var bs' := bs[blockMap[p] := c];
    assert OkPos(p);
    assert DataOk(blockMap, bs', data[p := c]) by {
      reveal OwnerOk(); reveal DataOk();
      forall q: Pos | IsData(q) && q != p
        ensures blockMap[q] != 0 ==> blockMap[q] != blockMap[p]
      { assert OkPos(q); }
    }
    assert LinksOk(blockMap, bs') by {
      reveal OwnerOk(); reveal LinksOk();
      forall q: Pos | OkPos(q) && q.level > 0
        ensures OkPos(Parent(q)) && blockMap[q] == Entry(bs', blockMap[Parent(q)], q.index % 512)
      { ParentOk(q); assert Parent(q) != p; assert blockMap[Parent(q)] == blockMap[p] ==> blockMap[p] == 0; }
    }
  }
}
