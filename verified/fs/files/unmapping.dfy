// Giving blocks back: from the top of a file downwards, in bounded steps; and one in exchange for another.
//
// Unmapping a data block turns it into a hole, which reads as zeros. An indirect
// block whose entries are all zero is given back too, which changes no byte. A
// whole missing subtree is skipped in one step.
include "../blocks/blocktree.dfy"
include "bytemap.dfy"
module Unmapping {
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
  import opened AllocatedRange
  import opened CountedBlocks

  // no entry at all
  predicate Barren(bs: Blocks, bn: uint64)
  { forall i: uint64 {:trigger Entry(bs, bn, i)} | i < 512 :: Entry(bs, bn, i) == 0 }

  // the block at p taken away: bs' lacks its entry in the parent
  lemma FreeStep(g: Geometry, blockMap: BlkMap, owner: Owner, used: map<uint64, bool>, bs: Blocks, bs': Blocks,
    data: Data,
    p: Pos)
    requires GeometryOk(g) && TreesOk(g, blockMap, owner, used, bs, data) && BlocksDom(g, bs')
    requires OkPos(p) && blockMap[p] != 0 && (IsData(p) || Barren(bs, blockMap[p]))
    requires p.level == 0 ==> bs' == bs
    requires p.level > 0 ==> OkPos(Parent(p)) && blockMap[Parent(p)] != 0 &&
      Linked(g, bs, bs', blockMap[Parent(p)], p.index % 512, 0)
    ensures TreesOk(g, blockMap[p := 0], owner[blockMap[p] := None], used[blockMap[p] := false], bs',
      if IsData(p) then data[p := Zeros(4096)] else data)
  {
    var blockMap' := blockMap[p := 0];
    var data' := if IsData(p) then data[p := Zeros(4096)] else data;
    assert OwnerOk(g, blockMap', owner[blockMap[p] := None], used[blockMap[p] := false]) by { reveal OwnerOk(); }
    assert LinksOk(blockMap', bs') by {
      reveal LinksOk(); reveal OwnerOk();
      forall q: Pos | OkPos(q) && q.level > 0
        ensures OkPos(Parent(q)) && blockMap'[q] == Entry(bs', blockMap'[Parent(q)], q.index % 512)
      {
        ParentOk(q);
        assert blockMap[q] == Entry(bs, blockMap[Parent(q)], q.index % 512);
        if Parent(q) == p {
          assert blockMap[q] == 0;
          assert q != p;
        } else if q == p {
        } else if p.level > 0 && Parent(q) == Parent(p) {
          if q.index % 512 == p.index % 512 { Siblings(p, q); }
          assert Entry(bs', blockMap[Parent(p)], q.index % 512) == Entry(bs, blockMap[Parent(p)], q.index % 512);
        } else {
          var b := blockMap[Parent(q)];
          if b != 0 {
            assert owner[b] == Some(Parent(q)); assert OkBlk(g, b);
            if p.level > 0 { assert owner[blockMap[Parent(p)]] == Some(Parent(p)); assert b != blockMap[Parent(p)]; }
            assert bs'[b] == bs[b];
          }
        }
      }
    }
    assert DataOk(blockMap', bs', data') by {
      reveal OwnerOk(); reveal DataOk();
      forall q: Pos | IsData(q)
        ensures OkPos(q) && q in data' && |data'[q]| == 4096 &&
          data'[q] == (if blockMap'[q] == 0 then Zeros(4096) else BlockOf(blockMap', bs', q))
      {
        assert OkPos(q);
        if p.level > 0 { ParentOk(p); assert q != Parent(p); assert OkPos(Parent(p)); }
        if q != p && blockMap[q] != 0 {
          assert owner[blockMap[q]] == Some(q); assert OkBlk(g, blockMap[q]);
          if p.level > 0 { assert owner[blockMap[Parent(p)]] == Some(Parent(p));
            assert blockMap[q] != blockMap[Parent(p)]; }
          assert bs'[blockMap[q]] == bs[blockMap[q]];
        }
      }
    }
  }

  // --- the bytes ---

  // the bytes [a, b) of ino became zero, and nothing else changed
  predicate {:opaque} Cut(d0: Data, d: Data, ino: uint64, a: int, b: int) {
    && (forall i: int {:trigger ByteAt(d, ino, i)} | 0 <= i < 549755813888 ::
          ByteAt(d, ino, i) == (if a <= i < b then 0 else ByteAt(d0, ino, i)))
    && Others(d0, d, ino)
  }
  lemma CutMore(d0: Data, d1: Data, d2: Data, ino: uint64, a: int, b: int, c: int)
    requires Cut(d0, d1, ino, b, c) && Cut(d1, d2, ino, a, b) && a <= b <= c
    ensures Cut(d0, d2, ino, a, c)
  {
    reveal Cut();
    forall i: int {:trigger ByteAt(d2, ino, i)} | 0 <= i < 549755813888
      ensures ByteAt(d2, ino, i) == (if a <= i < c then 0 else ByteAt(d0, ino, i))
    { assert ByteAt(d1, ino, i) == ByteAt(d1, ino, i); }
    forall o: uint64, i: int {:trigger ByteAt(d2, o, i)} | o != ino && 0 <= i < 549755813888
      ensures ByteAt(d2, o, i) == ByteAt(d0, o, i)
    { assert ByteAt(d1, o, i) == ByteAt(d1, o, i); }
  }
  lemma CutNone(d: Data, ino: uint64, a: int)
    ensures Cut(d, d, ino, a, a)
  { reveal Cut(); }
  lemma CutBlock(d0: Data, ino: uint64, n: uint64)
    requires DataDom(d0) && n < 134217728
    ensures var d := d0[PosOf(ino, n) := Zeros(4096)];
      DataDom(d) && Cut(d0, d, ino, 4096 * n as int, 4096 * n as int + 4096)
  {
    PosOfOk(ino, n);
    assert (4096 * n as int) / 4096 == n as int && (4096 * n as int) % 4096 == 0;
    WroteBlock(d0, ino, 4096 * n as int, Zeros(4096), Zeros(4096));
    reveal Wrote(); reveal Cut();
  }
  // a block that reads as zeros already
  lemma CutHole(d: Data, ino: uint64, n: uint64)
    requires DataDom(d) && n < 134217728
    requires PosOf(ino, n) in d && d[PosOf(ino, n)] == Zeros(4096)
    ensures Cut(d, d, ino, 4096 * n as int, 4096 * n as int + 4096)
  {
    CutBlock(d, ino, n);
    assert d[PosOf(ino, n) := Zeros(4096)] == d;
  }
  lemma CutHoles(d: Data, ino: uint64, a: uint64, b: uint64)
    requires DataDom(d) && a <= b <= 134217728
    requires forall n: uint64 {:trigger PosOf(ino, n)} | a <= n < b ::
      PosOf(ino, n) in d && d[PosOf(ino, n)] == Zeros(4096)
    ensures Cut(d, d, ino, 4096 * a as int, 4096 * b as int)
  {
    reveal Cut();
    forall i: int {:trigger ByteAt(d, ino, i)} | 4096 * a as int <= i < 4096 * b as int
      ensures ByteAt(d, ino, i) == 0
    {
      BlockByte(d, ino, i);
      assert a <= (i / 4096) as uint64 < b;
      assert d[PosOf(ino, (i / 4096) as uint64)] == Zeros(4096);
    }
  }

  // --- the steps ---

  // whether the indirect block b has no entry; if it has, at is one
  method NoEntries(b: Blk) returns (e: bool, ghost at: uint64)
    requires |b.v| == 4096
    ensures e ==> forall i: int {:trigger U64At(b.v, 8 * i)} | 0 <= i < 512 :: U64At(b.v, 8 * i) == 0
    ensures !e ==> at < 512 && U64At(b.v, 8 * at as int) != 0
  {
    var i: uint64 := 0;
    while i < 512
      invariant i <= 512
      invariant forall k: int {:trigger U64At(b.v, 8 * k)} | 0 <= k < i as int :: U64At(b.v, 8 * k) == 0
      decreases 512 - i
    {
      if b.U64(8 * i) != 0 { return false, i; }
      i := i + 1;
    }
    e, at := true, 0;
  }

  // take away the block in an inode slot
  method FreeRoot(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, k: uint64)
    modifies x.Repr(), ip
    requires x.Valid() && txn.volume == x.store.volume && x.IsInode(ino, ip) && k < 15
    requires var p := Pos(ino, k, 0, 0); p in x.blockMap && x.blockMap[p] != 0 &&
      (IsData(p) || Barren(x.store.blocks, x.blockMap[p]))
    ensures x.Valid() && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures var p := Pos(ino, k, 0, 0); x.blockMap == old(x.blockMap)[p := 0] &&
      x.data == (if IsData(p) then old(x.data)[p := Zeros(4096)] else old(x.data))
  {
    ghost var p := Pos(ino, k, 0, 0);
    assert OkPos(p);
    x.BlkOf(p);
    x.store.Dom();
    var bn := x.Resolve(txn, ip, ino, k, 0, 0, true);
    CountFree(old(x.blockMap), p, MetaOf(ip.data).used as int);
    SetSlot(ip, k, 0);
    if k < 12 { DecUsed(ip); }
    x.store.WriteInode(txn, ino, ip);
    x.store.SetUsedBit(txn, bn, false);
    x.store.Dom();
    FreeStep(x.store.geometry, old(x.blockMap), x.owner, old(x.store.used), old(x.store.blocks), x.store.blocks, x.data,
      p);
    RootsStep(x.store.geometry, old(x.blockMap), old(x.store.inodes), p, 0, x.store.inodes[ino]);
    x.blockMap := x.blockMap[p := 0];
    x.owner := x.owner[bn := None];
    if IsData(p) { x.data := x.data[p := Zeros(4096)]; }
  }

  // take away the block bn at entry j%512 of the indirect block pn with contents t; leaf: it is a block of data
  method CutChild(x: BlockTreeFs, txn: Txn, ip: Bytes, t: Bytes, pn: uint64, bn: uint64, ghost ino: uint64,
    ghost k: uint64, ghost lev: uint64, j: uint64, leaf: bool)
    modifies x.Repr(), ip, t
    requires x.ValidBut(pn, t) && txn.volume == x.store.volume && x.IsInode(ino, ip) && t != ip
    requires OkPos(Pos(ino, k, lev, j)) && lev > 0 && x.blockMap[Pos(ino, k, lev, j)] == bn && bn != 0
    requires OkPos(Pos(ino, k, lev - 1, j / 512)) && pn == x.blockMap[Pos(ino, k, lev - 1, j / 512)] && pn != 0
    requires leaf == IsData(Pos(ino, k, lev, j)) && (leaf || Barren(x.store.blocks[pn := t.data], bn))
    ensures x.ValidBut(pn, t) && x.IsInode(ino, ip) && x.store.inodes == old(x.store.inodes)
    ensures var p := Pos(ino, k, lev, j); x.blockMap == old(x.blockMap)[p := 0] &&
      x.data == (if IsData(p) then old(x.data)[p := Zeros(4096)] else old(x.data))
  {
    ghost var p := Pos(ino, k, lev, j);
    ghost var vb := x.store.blocks[pn := t.data];
    assert OkBlk(x.store.geometry, bn) by { reveal OwnerOk(); }
    x.store.Dom();
    CountFree(old(x.blockMap), p, MetaOf(ip.data).used as int);
    Put64(t, 8 * (j % 512), 0);
    if leaf { DecUsed(ip); }
    x.store.SetUsedBit(txn, bn, false);
    x.store.Dom();
    ghost var vb' := x.store.blocks[pn := t.data];
    assert Linked(x.store.geometry, vb, vb', pn, j % 512, 0);
    FreeStep(x.store.geometry, old(x.blockMap), x.owner, old(x.store.used), vb, vb', x.data, p);
    assert OkIno(x.store.geometry, ino);
    RootsStep(x.store.geometry, old(x.blockMap), old(x.store.inodes), p, 0, old(x.store.inodes)[ino]);
    assert old(x.store.inodes)[ino := old(x.store.inodes)[ino]] == old(x.store.inodes);
    x.blockMap := x.blockMap[p := 0];
    x.owner := x.owner[bn := None];
    if IsData(p) { x.data := x.data[p := Zeros(4096)]; }
  }

  // Hang a fresh block with contents b (taken over) in the place of the block of data bn, at entry j%512 of the
  // indirect block pn with contents t, and give bn back. ok = false: there is none, and nothing has changed.
  method SwapChild(x: BlockTreeFs, txn: Txn, ghost ip: Bytes, t: Bytes, pn: uint64, bn: uint64, ghost ino: uint64,
    ghost k: uint64, ghost lev: uint64, j: uint64, near: uint64, b: Bytes) returns (ok: bool, nb: uint64)
    modifies x.Repr(), t, b, txn.blocks
    requires x.ValidBut(pn, t) && txn.volume == x.store.volume && x.IsInode(ino, ip) && t != ip && b != ip && b != t &&
      |b.data| == 4096
    requires OkPos(Pos(ino, k, lev, j)) && lev > 0 && IsData(Pos(ino, k, lev, j)) &&
      x.blockMap[Pos(ino, k, lev, j)] == bn && bn != 0
    requires OkPos(Pos(ino, k, lev - 1, j / 512)) && pn == x.blockMap[Pos(ino, k, lev - 1, j / 512)] && pn != 0
    ensures x.ValidBut(pn, t) && x.IsInode(ino, ip) && x.store.inodes == old(x.store.inodes)
    ensures ok ==> nb != 0 && x.blockMap == old(x.blockMap)[Pos(ino, k, lev, j) := nb] &&
      x.data == old(x.data)[Pos(ino, k, lev, j) := old(b.data)]
    ensures !ok ==> x.blockMap == old(x.blockMap) && x.data == old(x.data) && t.data == old(t.data)
    ensures GotBlocks(txn) <= old(GotBlocks(txn)) + (if ok then 1 else 0)
  {
    ghost var p := Pos(ino, k, lev, j);
    ghost var g, c, vb := x.store.geometry, b.data, x.store.blocks[pn := t.data];
    x.store.Dom();
    ok, nb := x.store.AllocBlock(txn, true, near, b);
    if !ok { return; }
    assert OkBlk(g, bn) && nb != bn && nb != pn by { reveal OwnerOk(); assert OkPos(p) && OkPos(Parent(p)); }
    // first the old one goes,
    CountFree(old(x.blockMap), p, MetaOf(ip.data).used as int);
    Put64(t, 8 * (j % 512), 0);
    ghost var blockMap1, owner1, used1, vb1, data1 := x.blockMap[p := 0], x.owner[bn := None],
      old(x.store.used)[bn := false], old(x.store.blocks)[pn := t.data], x.data[p := Zeros(4096)];
    assert Linked(g, vb, vb1, pn, j % 512, 0);
    FreeStep(g, x.blockMap, x.owner, old(x.store.used), vb, vb1, x.data, p);
    assert OkIno(g, ino);
    RootsStep(g, x.blockMap, x.store.inodes, p, 0, x.store.inodes[ino]);
    assert x.store.inodes[ino := x.store.inodes[ino]] == x.store.inodes;
    // then the new one comes
    CountAlloc(blockMap1, p, nb, MetaOf(ip.data).used as int - 1);
    Put64(t, 8 * (j % 512), nb);
    x.store.SetUsedBit(txn, bn, false);
    x.store.Dom();
    ghost var vb2 := x.store.blocks[pn := t.data];
    assert Linked(g, vb1[nb := c], vb2, pn, j % 512, nb);
    assert x.store.used == used1[nb := true];
    OwnerAlloc(g, blockMap1, owner1, used1, p, nb);
    RootsStep(g, blockMap1, x.store.inodes, p, nb, x.store.inodes[ino]);
    LinksAlloc(g, blockMap1, owner1, used1, vb1, vb2, p, nb, c);
    DataAlloc(g, blockMap1, owner1, used1, vb1, vb2, data1, p, nb, c);
    x.blockMap := blockMap1[p := nb];
    x.owner := owner1[nb := Some(p)];
    x.data := data1[p := c];
    assert x.blockMap == old(x.blockMap)[p := nb] && x.data == old(x.data)[p := c];
  }

  // take away an indirect block without entries
  method FreeNode(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, k: uint64, lev: uint64, j: uint64)
    modifies x.Repr(), ip
    requires x.Valid() && txn.volume == x.store.volume && x.IsInode(ino, ip)
    requires var p := Pos(ino, k, lev, j); OkPos(p) && !IsData(p) && x.blockMap[p] != 0 &&
      Barren(x.store.blocks, x.blockMap[p])
    ensures x.Valid() && x.IsInode(ino, ip) && x.OnlySlots(ino) && x.data == old(x.data)
    ensures x.blockMap == old(x.blockMap)[Pos(ino, k, lev, j) := 0]
    ensures lev > 0 ==> var q := Parent(Pos(ino, k, lev, j)); OkPos(q) && x.blockMap[q] != 0
  {
    ghost var p := Pos(ino, k, lev, j);
    if lev == 0 {
      FreeRoot(x, txn, ip, ino, k);
      return;
    }
    ParentOk(p);
    var pn := x.Resolve(txn, ip, ino, k, lev - 1, j / 512, true);
    assert pn != 0 by { reveal LinksOk(); }
    var pb := x.store.ReadBlock(txn, pn, true);
    assert x.IsParent(p, pb.v);
    x.Child(p, pb.v);
    var bn := pb.U64(8 * (j % 512));
    var t := txn.Copy(pb);
    assert x.store.blocks[pn := t.data] == x.store.blocks;
    CutChild(x, txn, ip, t, pn, bn, ino, k, lev, j, false);
    x.CloseParent(txn, pn, t);
  }

  // Take away an indirect block if it has no entries, and then those above it that have lost
  // their last one so. From block n of the file on, nothing else is mapped; then nothing is.
  method Prune(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, k: uint64, lev: uint64, j: uint64, ghost n: int)
    modifies x.Repr(), ip
    requires x.Valid() && txn.volume == x.store.volume && x.IsInode(ino, ip)
    requires var p := Pos(ino, k, lev, j); OkPos(p) && !IsData(p) && x.blockMap[p] != 0 && Chain(x.blockMap, p, n)
    ensures x.Valid() && x.IsInode(ino, ip) && x.OnlySlots(ino) && x.data == old(x.data)
    ensures Shrank(old(x.blockMap), x.blockMap, ino, NODATA) && Within(x.blockMap, ino, n)
    decreases lev
  {
    ghost var p, b0 := Pos(ino, k, lev, j), x.blockMap;
    var bn := x.Resolve(txn, ip, ino, k, lev, j, true);
    var b := x.store.ReadBlock(txn, bn, true);
    var e; ghost var at;
    e, at := NoEntries(b);
    if !e {
      assert Entry(x.store.blocks, x.blockMap[p], at) != 0;
      ChainEnd(x.blockMap, x.store.blocks, p, n, at);
      ShrankNone(b0, ino, NODATA);
      return;
    }
    ChainUp(b0, p, n);
    ShrankOne(b0, p, NODATA);
    FreeNode(x, txn, ip, ino, k, lev, j);
    if lev > 0 {
      ghost var b1 := x.blockMap;
      ParentOk(p);
      Prune(x, txn, ip, ino, k, lev - 1, j / 512, n);
      ShrankMore(b0, b1, x.blockMap, ino, NODATA, NODATA);
    }
  }
}
