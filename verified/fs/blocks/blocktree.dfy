// Block trees over the inodes and blocks of blockstore.dfy: find, hang, overwrite.
//
// A method that takes ip, the caller's copy of the inode, keeps ip current. The
// number of blocks of data is counted only there: the caller stores ip at its end.
include "blocktreespec.dfy"
include "counted.dfy"
module BlockTree {
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
  import opened AllocatedRange
  import opened CountedBlocks

  class BlockTreeFs {
    const store: BlockFs
    ghost var blockMap: BlkMap
    ghost var owner: Owner
    ghost var data: Data

    constructor Recover(store: BlockFs)
      ensures this.store == store
    { this.store := store; }

    function Repr(): set<object> { {this} + store.Repr() }

    predicate Valid() reads this, store, store.volume {
      && store.Valid()
      && TreesOk(store.geometry, blockMap, owner, store.used, store.blocks, data)
      && RootsOk(store.geometry, blockMap, store.inodes)
    }

    // Valid but for the indirect block pn, whose current content is in t
    predicate ValidBut(pn: uint64, t: Bytes) reads this, store, store.volume, t {
      && store.Valid()
      && OkBlk(store.geometry, pn) && |t.data| == 4096
      && TreesOk(store.geometry, blockMap, owner, store.used, store.blocks[pn := t.data], data)
      && RootsOk(store.geometry, blockMap, store.inodes)
    }

    // ip is the (current) serialized inode, and its count is right; that of the stored one may not be
    predicate IsInode(ino: uint64, ip: Bytes) reads this, store, ip {
      OkIno(store.geometry, ino) && |ip.data| == 256 && ino in store.inodes &&
        Parse(ip.data).blks == store.inodes[ino].blks &&
      SameMeta(MetaOf(ip.data), store.inodes[ino].meta) && Counted(blockMap, ino, MetaOf(ip.data).used as int)
    }
    predicate SameMeta(m: Meta, n: Meta) { m == WithUsed(n, m.used) }

    // only the slots and the count of ino changed
    twostate predicate OnlySlots(ino: uint64) reads store {
      ino in old(store.inodes) && ino in store.inodes && store.inodes == old(store.inodes)[ino := store.inodes[ino]] &&
      SameMeta(store.inodes[ino].meta, old(store.inodes)[ino].meta)
    }

    lemma BlkOf(p: Pos)
      requires Valid() && OkPos(p)
      ensures p in blockMap && (blockMap[p] != 0 ==> OkBlk(store.geometry, blockMap[p]))
    { reveal OwnerOk(); }

    // the block at a position, 0 = none
    method Resolve(txn: Txn, ip: Bytes, ghost ino: uint64, k: uint64, lev: uint64, j: uint64, excl: bool)
      returns (bn: uint64)
      requires Valid() && txn.volume == store.volume && IsInode(ino, ip)
      requires OkPos(Pos(ino, k, lev, j))
      ensures bn == blockMap[Pos(ino, k, lev, j)]
      ensures bn != 0 ==> OkBlk(store.geometry, bn)
      decreases lev
    {
      ghost var p := Pos(ino, k, lev, j);
      BlkOf(p);
      if lev == 0 {
        bn := GetSlot(ip, k);
        reveal RootsOk();
        return;
      }
      ParentOk(p);
      var pb := ReadParent(txn, ip, ino, k, lev, j, excl);
      bn := pb.U64(8 * (j % 512));
      Child(p, pb.v);
    }

    // v is the indirect block at position q: zeros if there is none
    predicate IsNode(q: Pos, v: seq<byte>) reads this, store
      requires q in blockMap
    { |v| == 4096 && (if blockMap[q] == 0 then v == Zeros(4096) else blockMap[q] in store.blocks &&
      v == store.blocks[blockMap[q]]) }
    predicate IsParent(p: Pos, v: seq<byte>) reads this, store
      requires IsDom(blockMap) && OkPos(p) && p.level > 0 && OkPos(Parent(p))
    { IsNode(Parent(p), v) }

    lemma Child(p: Pos, v: seq<byte>)
      requires Valid() && OkPos(p) && p.level > 0 && OkPos(Parent(p)) && IsParent(p, v)
      ensures blockMap[p] == U64At(v, 8 * (p.index % 512) as int)
      ensures blockMap[p] != 0 ==> OkBlk(store.geometry, blockMap[p])
    {
      reveal LinksOk();
      reveal OwnerOk();
      U64AtZeros(4096, 8 * (p.index % 512) as int);
    }

    method ReadParent(txn: Txn, ip: Bytes, ghost ino: uint64, k: uint64, lev: uint64, j: uint64, excl: bool)
      returns (pb: Blk)
      requires Valid() && txn.volume == store.volume && IsInode(ino, ip)
      requires OkPos(Pos(ino, k, lev, j)) && lev > 0
      ensures OkPos(Parent(Pos(ino, k, lev, j))) && IsParent(Pos(ino, k, lev, j), pb.v)
      decreases lev, 0
    {
      ParentOk(Pos(ino, k, lev, j));
      var pn := Resolve(txn, ip, ino, k, lev - 1, j / 512, excl);
      if pn == 0 { pb := ZeroBlk(); } else { pb := store.ReadBlock(txn, pn, excl); }
    }

    // hang a fresh block with contents b (taken over) at an inode slot
    method AllocRoot(txn: Txn, ip: Bytes, ino: uint64, k: uint64, near: uint64, b: Bytes) returns (ok: bool, bn: uint64)
      modifies Repr(), ip, b, txn.blocks
      requires Valid() && txn.volume == store.volume && IsInode(ino, ip) && k < 15 && b != ip && |b.data| == 4096
      requires OkPos(Pos(ino, k, 0, 0)) && blockMap[Pos(ino, k, 0, 0)] == 0
      requires IsData(Pos(ino, k, 0, 0)) || b.data == Zeros(4096)
      ensures ok ==> Valid() && IsInode(ino, ip) && OnlySlots(ino)
      ensures ok ==> data == (if IsData(Pos(ino, k, 0, 0)) then old(data)[Pos(ino, k, 0, 0) := old(b.data)]
        else old(data))
      ensures ok ==> bn != 0 && OkBlk(store.geometry, bn) && blockMap == old(blockMap)[Pos(ino, k, 0, 0) := bn]
      ensures GotBlocks(txn) <= old(GotBlocks(txn)) + (if ok then 1 else 0) && (!ok ==> txn.blocks.Dry())
    {
      ghost var p := Pos(ino, k, 0, 0);
      ghost var c := b.data;
      store.Dom();
      ok, bn := store.AllocBlock(txn, false, near, b);
      if !ok { return; }
      CountAlloc(old(blockMap), p, bn, MetaOf(ip.data).used as int);
      SetSlot(ip, k, bn);
      if k < 12 { IncUsed(ip); }
      store.WriteInode(txn, ino, ip);
      store.Dom();
      OwnerAlloc(store.geometry, old(blockMap), owner, old(store.used), p, bn);
      RootsStep(store.geometry, old(blockMap), old(store.inodes), p, bn, store.inodes[ino]);
      LinksAlloc(store.geometry, old(blockMap), owner, old(store.used), old(store.blocks), store.blocks, p, bn, c);
      DataAlloc(store.geometry, old(blockMap), owner, old(store.used), old(store.blocks), store.blocks, data, p, bn, c);
      blockMap := blockMap[p := bn];
      owner := owner[bn := Some(p)];
      if IsData(p) { data := data[p := c]; }
    }

    // hang a fresh block with contents b (taken over) below the indirect block
    // pn, whose content t the caller stores later; leaf: it is a block of data
    method AddChild(txn: Txn, ip: Bytes, t: Bytes, pn: uint64, ghost ino: uint64, ghost k: uint64, ghost lev: uint64,
      j: uint64, leaf: bool, near: uint64, b: Bytes) returns (ok: bool, bn: uint64)
      modifies Repr(), ip, t, b, txn.blocks
      requires ValidBut(pn, t) && txn.volume == store.volume && IsInode(ino, ip) && t != ip && b != ip && b != t &&
        |b.data| == 4096
      requires OkPos(Pos(ino, k, lev, j)) && lev > 0 && blockMap[Pos(ino, k, lev, j)] == 0
      requires OkPos(Pos(ino, k, lev - 1, j / 512)) && pn == blockMap[Pos(ino, k, lev - 1, j / 512)] && pn != 0
      requires leaf == IsData(Pos(ino, k, lev, j)) && (leaf || b.data == Zeros(4096))
      ensures ok ==> ValidBut(pn, t) && IsInode(ino, ip) && store.inodes == old(store.inodes)
      ensures ok ==> data == (if IsData(Pos(ino, k, lev, j)) then old(data)[Pos(ino, k, lev, j) := old(b.data)]
        else old(data))
      ensures ok ==> bn != 0 && OkBlk(store.geometry, bn) && blockMap == old(blockMap)[Pos(ino, k, lev, j) := bn]
      ensures ok ==> U64At(t.data, 8 * (j % 512) as int) == bn
      ensures ok ==> forall o: int {:trigger U64At(t.data, o)} | 0 <= o && o + 8 <= 4096 &&
        (o + 8 <= 8 * (j % 512) as int || 8 * (j % 512) as int + 8 <= o) :: U64At(t.data, o) == U64At(old(t.data), o)
      ensures GotBlocks(txn) <= old(GotBlocks(txn)) + (if ok then 1 else 0) && (!ok ==> txn.blocks.Dry())
    {
      ghost var p := Pos(ino, k, lev, j);
      ghost var c := b.data;
      ghost var vb := store.blocks[pn := t.data];
      store.Dom();
      ok, bn := store.AllocBlock(txn, false, near, b);
      if !ok { return; }
      assert pn != bn by { reveal OwnerOk(); assert OkPos(Parent(p)); }
      CountAlloc(old(blockMap), p, bn, MetaOf(ip.data).used as int);
      Put64(t, 8 * (j % 512), bn);
      if leaf { IncUsed(ip); }
      store.Dom();
      ghost var vb' := store.blocks[pn := t.data];
      assert Linked(store.geometry, vb[bn := c], vb', pn, j % 512, bn);
      OwnerAlloc(store.geometry, old(blockMap), owner, old(store.used), p, bn);
      assert OkIno(store.geometry, ino);
      RootsStep(store.geometry, old(blockMap), old(store.inodes), p, bn, old(store.inodes)[ino]);
      assert old(store.inodes)[ino := old(store.inodes)[ino]] == old(store.inodes);
      LinksAlloc(store.geometry, old(blockMap), owner, old(store.used), vb, vb', p, bn, c);
      DataAlloc(store.geometry, old(blockMap), owner, old(store.used), vb, vb', data, p, bn, c);
      blockMap := blockMap[p := bn];
      owner := owner[bn := Some(p)];
      if IsData(p) { data := data[p := c]; }
    }

    lemma ChildBut(p: Pos, pn: uint64, t: Bytes)
      requires ValidBut(pn, t) && OkPos(p) && p.level > 0 && OkPos(Parent(p)) && pn != 0 && blockMap[Parent(p)] == pn
      ensures blockMap[p] == U64At(t.data, 8 * (p.index % 512) as int)
    { reveal LinksOk(); }

    // store the indirect block that ValidBut left open
    method CloseParent(txn: Txn, pn: uint64, t: Bytes)
      modifies store.Repr(), t
      requires ValidBut(pn, t) && txn.volume == store.volume
      ensures Valid() && data == old(data) && blockMap == old(blockMap) && store.inodes == old(store.inodes)
      ensures store.blocks == old(store.blocks)[pn := old(t.data)]
    {
      store.WriteBlock(txn, pn, t);
    }

    // what is above a block is there
    lemma AboveThere(p: Pos)
      requires Valid() && OkPos(p) && p.level > 0
      ensures OkPos(Parent(p)) && (blockMap[p] != 0 ==> blockMap[Parent(p)] != 0)
    { ParentOk(p); reveal LinksOk(); }

    // the indirect block at a position, made if it is not there yet
    method ResolveAlloc(txn: Txn, ip: Bytes, ino: uint64, k: uint64, lev: uint64, j: uint64)
      returns (ok: bool, bn: uint64)
      modifies Repr(), ip, txn.blocks
      requires Valid() && txn.volume == store.volume && IsInode(ino, ip)
      requires OkPos(Pos(ino, k, lev, j)) && !IsData(Pos(ino, k, lev, j))
      ensures ok ==> Valid() && IsInode(ino, ip) && data == old(data) && OnlySlots(ino)
      ensures ok ==> bn != 0 && OkBlk(store.geometry, bn) && bn == blockMap[Pos(ino, k, lev, j)]
      ensures ok ==> Grew(old(blockMap), blockMap, ino, NODATA, First(Pos(ino, k, lev, j)) + 1)
      // none is taken if it is there, else at most those down to it
      ensures GotBlocks(txn) <= old(GotBlocks(txn)) + (if old(blockMap)[Pos(ino, k, lev, j)] != 0 then 0
        else lev as int + (if ok then 1 else 0))
      ensures !ok ==> txn.blocks.Dry() && old(blockMap)[Pos(ino, k, lev, j)] == 0
      decreases lev
    {
      ghost var p := Pos(ino, k, lev, j);
      ghost var b0, n := blockMap, First(p) + 1;
      GrewNone(b0, ino, NODATA, n);
      BlkOf(p);
      ok, bn := true, 0;
      if lev == 0 {
        bn := GetSlot(ip, k);
        assert bn == blockMap[p] by { reveal RootsOk(); }
        if bn == 0 {
          var near := GetSlot(ip, k - 1);
          var none := ZeroBlk();
          var z := txn.Copy(none);
          ok, bn := AllocRoot(txn, ip, ino, k, near, z);
          if ok { GrewOne(b0, p, bn, NODATA, n); }
        }
        return;
      }
      ParentOk(p);
      FirstAbove(Parent(p), p);
      AboveThere(p);
      var pn: uint64;
      ok, pn := ResolveAlloc(txn, ip, ino, k, lev - 1, j / 512);
      if !ok { return; }
      ghost var b1 := blockMap;
      assert b0[p] != 0 ==> b1[p] != 0 by { reveal Grew(); }
      GrewNone(b1, ino, NODATA, n);
      GrewMore(b0, b1, b1, ino, NODATA, First(Parent(p)) + 1, NODATA, n);
      var pb := store.ReadBlock(txn, pn, true);
      assert IsParent(p, pb.v);
      bn := pb.U64(8 * (j % 512));
      Child(p, pb.v);
      if bn == 0 {
        var t := txn.Copy(pb);
        var none := ZeroBlk();
        var z := txn.Copy(none);
        assert store.blocks[pn := t.data] == store.blocks;
        ok, bn := AddChild(txn, ip, t, pn, ino, k, lev, j, false, pn, z);
        if !ok { return; }
        CloseParent(txn, pn, t);
        GrewOne(b1, p, bn, NODATA, n);
        GrewMore(b0, b1, blockMap, ino, NODATA, n, NODATA, n);
      }
    }

    // store a new version of the inode with the same slots
    method SetMeta(txn: Txn, ip: Bytes, ino: uint64)
      modifies Repr()
      requires Valid() && txn.volume == store.volume && OkIno(store.geometry, ino) && |ip.data| == 256
      requires ino in store.inodes && Parse(ip.data).blks == store.inodes[ino].blks &&
        (MetaOf(ip.data).ty == 0 <==> store.inodes[ino].meta.ty == 0)
      ensures Valid() && data == old(data) && blockMap == old(blockMap)
      ensures store.inodes == old(store.inodes)[ino := Parse(ip.data)] && store.used == old(store.used)
    {
      store.WriteInode(txn, ino, ip);
      assert RootsOk(store.geometry, blockMap, store.inodes) by { reveal RootsOk(); }
    }
    // the same, and the inode changes between free and in use
    method SetInode(txn: Txn, ip: Bytes, ino: uint64, inuse: bool)
      modifies Repr()
      requires Valid() && txn.volume == store.volume && OkIno(store.geometry, ino) && |ip.data| == 256
      requires ino in store.inodes && Parse(ip.data).blks == store.inodes[ino].blks &&
        (inuse <==> MetaOf(ip.data).ty != 0)
      ensures Valid() && data == old(data) && blockMap == old(blockMap)
      ensures store.inodes == old(store.inodes)[ino := Parse(ip.data)]
    {
      store.PutInode(txn, ino, ip, inuse);
      assert RootsOk(store.geometry, blockMap, store.inodes) by { reveal RootsOk(); }
    }

    // overwrite the data block at p
    method WriteData(txn: Txn, bn: uint64, b: Bytes, ghost p: Pos)
      modifies Repr(), b
      requires Valid() && txn.volume == store.volume && IsData(p) && p in blockMap && bn == blockMap[p] && bn != 0 &&
        OkBlk(store.geometry, bn) && |b.data| == 4096
      ensures Valid() && data == old(data)[p := old(b.data)] && store.inodes == old(store.inodes) &&
        blockMap == old(blockMap)
      ensures store.blocks == old(store.blocks)[bn := old(b.data)]
    {
      WriteOne(store.geometry, blockMap, owner, store.used, store.blocks, data, p, b.data);
      data := data[p := b.data];
      store.WriteBlock(txn, bn, b);
    }

    // the data block at a position (a hole: the block of zeros), given its number
    method ReadAt(txn: Txn, bn: uint64, ghost p: Pos, excl: bool) returns (b: Blk)
      requires Valid() && txn.volume == store.volume && IsData(p) && p in blockMap && bn == blockMap[p]
      ensures p in data && b.v == data[p] && |b.v| == 4096
    {
      assert OkPos(p);
      BlkOf(p);
      reveal DataOk();
      if bn == 0 { b := ZeroBlk(); } else { b := store.ReadBlock(txn, bn, excl); }
    }

    // block n of the file
    method ReadData(txn: Txn, ip: Bytes, ghost ino: uint64, n: uint64, excl: bool) returns (b: Blk)
      requires Valid() && txn.volume == store.volume && IsInode(ino, ip) && n < 134480396
      ensures PosOf(ino, n) in data && b.v == data[PosOf(ino, n)] && |b.v| == 4096
    {
      var k := FlatK(n);
      PosOfOk(ino, n);
      var bn := Resolve(txn, ip, ino, k, MaxLev(k), FlatJ(n), excl);
      b := ReadAt(txn, bn, PosOf(ino, n), excl);
    }
  }
}
