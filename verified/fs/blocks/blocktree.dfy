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
    const fs: BlockFs
    ghost var bm: BlkMap
    ghost var owner: Owner
    ghost var data: Data

    constructor Recover(fs: BlockFs)
      ensures this.fs == fs
    { this.fs := fs; }

    function Repr(): set<object> { {this} + fs.Repr() }

    predicate Valid() reads this, fs, fs.jrnl {
      && fs.Valid()
      && TreesOk(fs.geo, bm, owner, fs.used, fs.blocks, data)
      && RootsOk(fs.geo, bm, fs.inodes)
    }

    // Valid but for the indirect block pn, whose current content is in t
    predicate ValidBut(pn: uint64, t: Bytes) reads this, fs, fs.jrnl, t {
      && fs.Valid()
      && OkBlk(fs.geo, pn) && |t.data| == 4096
      && TreesOk(fs.geo, bm, owner, fs.used, fs.blocks[pn := t.data], data)
      && RootsOk(fs.geo, bm, fs.inodes)
    }

    // ip is the (current) serialized inode, and its count is right; that of the stored one may not be
    predicate IsInode(ino: uint64, ip: Bytes) reads this, fs, ip {
      OkIno(fs.geo, ino) && |ip.data| == 256 && ino in fs.inodes && Parse(ip.data).blks == fs.inodes[ino].blks &&
      SameMeta(M(ip.data), fs.inodes[ino].meta) && Counted(bm, ino, M(ip.data).used as int)
    }
    predicate SameMeta(m: Meta, n: Meta) { m == WithUsed(n, m.used) }

    // only the slots and the count of ino changed
    twostate predicate OnlySlots(ino: uint64) reads fs {
      ino in old(fs.inodes) && ino in fs.inodes && fs.inodes == old(fs.inodes)[ino := fs.inodes[ino]] &&
      SameMeta(fs.inodes[ino].meta, old(fs.inodes)[ino].meta)
    }

    lemma BlkOf(p: Pos)
      requires Valid() && OkPos(p)
      ensures p in bm && (bm[p] != 0 ==> OkBlk(fs.geo, bm[p]))
    { reveal OwnerOk(); }

    // the block at a position, 0 = none
    method Resolve(txn: Txn, ip: Bytes, ghost ino: uint64, k: uint64, lev: uint64, j: uint64, excl: bool) returns (bn: uint64)
      requires Valid() && txn.jrnl == fs.jrnl && IsInode(ino, ip)
      requires OkPos(Pos(ino, k, lev, j))
      ensures bn == bm[Pos(ino, k, lev, j)]
      ensures bn != 0 ==> OkBlk(fs.geo, bn)
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
    predicate IsNode(q: Pos, v: seq<byte>) reads this, fs
      requires q in bm
    { |v| == 4096 && (if bm[q] == 0 then v == Zeros(4096) else bm[q] in fs.blocks && v == fs.blocks[bm[q]]) }
    predicate IsParent(p: Pos, v: seq<byte>) reads this, fs
      requires IsDom(bm) && OkPos(p) && p.lev > 0 && OkPos(Parent(p))
    { IsNode(Parent(p), v) }

    lemma Child(p: Pos, v: seq<byte>)
      requires Valid() && OkPos(p) && p.lev > 0 && OkPos(Parent(p)) && IsParent(p, v)
      ensures bm[p] == U64At(v, 8 * (p.j % 512) as int)
      ensures bm[p] != 0 ==> OkBlk(fs.geo, bm[p])
    {
      reveal LinksOk();
      reveal OwnerOk();
      U64AtZeros(4096, 8 * (p.j % 512) as int);
    }

    method ReadParent(txn: Txn, ip: Bytes, ghost ino: uint64, k: uint64, lev: uint64, j: uint64, excl: bool) returns (pb: Blk)
      requires Valid() && txn.jrnl == fs.jrnl && IsInode(ino, ip)
      requires OkPos(Pos(ino, k, lev, j)) && lev > 0
      ensures OkPos(Parent(Pos(ino, k, lev, j))) && IsParent(Pos(ino, k, lev, j), pb.v)
      decreases lev, 0
    {
      ParentOk(Pos(ino, k, lev, j));
      var pn := Resolve(txn, ip, ino, k, lev - 1, j / 512, excl);
      if pn == 0 { pb := ZeroBlk(); } else { pb := fs.ReadBlock(txn, pn, excl); }
    }

    // hang a fresh block with contents b (taken over) at an inode slot
    method AllocRoot(txn: Txn, ip: Bytes, ino: uint64, k: uint64, near: uint64, b: Bytes) returns (ok: bool, bn: uint64)
      modifies Repr(), ip, b
      requires Valid() && txn.jrnl == fs.jrnl && IsInode(ino, ip) && k < 15 && b != ip && |b.data| == 4096
      requires OkPos(Pos(ino, k, 0, 0)) && bm[Pos(ino, k, 0, 0)] == 0
      requires IsData(Pos(ino, k, 0, 0)) || b.data == Zeros(4096)
      ensures ok ==> Valid() && IsInode(ino, ip) && OnlySlots(ino)
      ensures ok ==> data == (if IsData(Pos(ino, k, 0, 0)) then old(data)[Pos(ino, k, 0, 0) := old(b.data)] else old(data))
      ensures ok ==> bn != 0 && OkBlk(fs.geo, bn) && bm == old(bm)[Pos(ino, k, 0, 0) := bn]
    {
      ghost var p := Pos(ino, k, 0, 0);
      ghost var c := b.data;
      fs.Dom();
      ok, bn := fs.AllocBlock(txn, false, near, b);
      if !ok { return; }
      CountAlloc(old(bm), p, bn, M(ip.data).used as int);
      SetSlot(ip, k, bn);
      if k < 12 { IncUsed(ip); }
      fs.WriteInode(txn, ino, ip);
      fs.Dom();
      OwnerAlloc(fs.geo, old(bm), owner, old(fs.used), p, bn);
      RootsStep(fs.geo, old(bm), old(fs.inodes), p, bn, fs.inodes[ino]);
      LinksAlloc(fs.geo, old(bm), owner, old(fs.used), old(fs.blocks), fs.blocks, p, bn, c);
      DataAlloc(fs.geo, old(bm), owner, old(fs.used), old(fs.blocks), fs.blocks, data, p, bn, c);
      bm := bm[p := bn];
      owner := owner[bn := Some(p)];
      if IsData(p) { data := data[p := c]; }
    }

    // hang a fresh block with contents b (taken over) below the indirect block
    // pn, whose content t the caller stores later; leaf: it is a block of data
    method AddChild(txn: Txn, ip: Bytes, t: Bytes, pn: uint64, ghost ino: uint64, ghost k: uint64, ghost lev: uint64, j: uint64, leaf: bool, near: uint64, b: Bytes) returns (ok: bool, bn: uint64)
      modifies Repr(), ip, t, b
      requires ValidBut(pn, t) && txn.jrnl == fs.jrnl && IsInode(ino, ip) && t != ip && b != ip && b != t && |b.data| == 4096
      requires OkPos(Pos(ino, k, lev, j)) && lev > 0 && bm[Pos(ino, k, lev, j)] == 0
      requires OkPos(Pos(ino, k, lev - 1, j / 512)) && pn == bm[Pos(ino, k, lev - 1, j / 512)] && pn != 0
      requires leaf == IsData(Pos(ino, k, lev, j)) && (leaf || b.data == Zeros(4096))
      ensures ok ==> ValidBut(pn, t) && IsInode(ino, ip) && fs.inodes == old(fs.inodes)
      ensures ok ==> data == (if IsData(Pos(ino, k, lev, j)) then old(data)[Pos(ino, k, lev, j) := old(b.data)] else old(data))
      ensures ok ==> bn != 0 && OkBlk(fs.geo, bn) && bm == old(bm)[Pos(ino, k, lev, j) := bn]
      ensures ok ==> U64At(t.data, 8 * (j % 512) as int) == bn
      ensures ok ==> forall o: int {:trigger U64At(t.data, o)} | 0 <= o && o + 8 <= 4096 && (o + 8 <= 8 * (j % 512) as int || 8 * (j % 512) as int + 8 <= o) :: U64At(t.data, o) == U64At(old(t.data), o)
    {
      ghost var p := Pos(ino, k, lev, j);
      ghost var c := b.data;
      ghost var vb := fs.blocks[pn := t.data];
      fs.Dom();
      ok, bn := fs.AllocBlock(txn, false, near, b);
      if !ok { return; }
      assert pn != bn by { reveal OwnerOk(); assert OkPos(Parent(p)); }
      CountAlloc(old(bm), p, bn, M(ip.data).used as int);
      Put64(t, 8 * (j % 512), bn);
      if leaf { IncUsed(ip); }
      fs.Dom();
      ghost var vb' := fs.blocks[pn := t.data];
      assert Linked(fs.geo, vb[bn := c], vb', pn, j % 512, bn);
      OwnerAlloc(fs.geo, old(bm), owner, old(fs.used), p, bn);
      assert OkIno(fs.geo, ino);
      RootsStep(fs.geo, old(bm), old(fs.inodes), p, bn, old(fs.inodes)[ino]);
      assert old(fs.inodes)[ino := old(fs.inodes)[ino]] == old(fs.inodes);
      LinksAlloc(fs.geo, old(bm), owner, old(fs.used), vb, vb', p, bn, c);
      DataAlloc(fs.geo, old(bm), owner, old(fs.used), vb, vb', data, p, bn, c);
      bm := bm[p := bn];
      owner := owner[bn := Some(p)];
      if IsData(p) { data := data[p := c]; }
    }

    lemma ChildBut(p: Pos, pn: uint64, t: Bytes)
      requires ValidBut(pn, t) && OkPos(p) && p.lev > 0 && OkPos(Parent(p)) && pn != 0 && bm[Parent(p)] == pn
      ensures bm[p] == U64At(t.data, 8 * (p.j % 512) as int)
    { reveal LinksOk(); }

    // store the indirect block that ValidBut left open
    method CloseParent(txn: Txn, pn: uint64, t: Bytes)
      modifies fs.Repr(), t
      requires ValidBut(pn, t) && txn.jrnl == fs.jrnl
      ensures Valid() && data == old(data) && bm == old(bm) && fs.inodes == old(fs.inodes)
      ensures fs.blocks == old(fs.blocks)[pn := old(t.data)]
    {
      fs.WriteBlock(txn, pn, t);
    }

    // the indirect block at a position, made if it is not there yet
    method ResolveAlloc(txn: Txn, ip: Bytes, ino: uint64, k: uint64, lev: uint64, j: uint64) returns (ok: bool, bn: uint64)
      modifies Repr(), ip
      requires Valid() && txn.jrnl == fs.jrnl && IsInode(ino, ip)
      requires OkPos(Pos(ino, k, lev, j)) && !IsData(Pos(ino, k, lev, j))
      ensures ok ==> Valid() && IsInode(ino, ip) && data == old(data) && OnlySlots(ino)
      ensures ok ==> bn != 0 && OkBlk(fs.geo, bn) && bn == bm[Pos(ino, k, lev, j)]
      ensures ok ==> Grew(old(bm), bm, ino, NODATA, First(Pos(ino, k, lev, j)) + 1)
      decreases lev
    {
      ghost var p := Pos(ino, k, lev, j);
      ghost var b0, n := bm, First(p) + 1;
      GrewNone(b0, ino, NODATA, n);
      BlkOf(p);
      ok, bn := true, 0;
      if lev == 0 {
        bn := GetSlot(ip, k);
        assert bn == bm[p] by { reveal RootsOk(); }
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
      var pn: uint64;
      ok, pn := ResolveAlloc(txn, ip, ino, k, lev - 1, j / 512);
      if !ok { return; }
      ghost var b1 := bm;
      GrewNone(b1, ino, NODATA, n);
      GrewMore(b0, b1, b1, ino, NODATA, First(Parent(p)) + 1, NODATA, n);
      var pb := fs.ReadBlock(txn, pn, true);
      assert IsParent(p, pb.v);
      bn := pb.U64(8 * (j % 512));
      Child(p, pb.v);
      if bn == 0 {
        var t := txn.Copy(pb);
        var none := ZeroBlk();
        var z := txn.Copy(none);
        assert fs.blocks[pn := t.data] == fs.blocks;
        ok, bn := AddChild(txn, ip, t, pn, ino, k, lev, j, false, pn, z);
        if !ok { return; }
        CloseParent(txn, pn, t);
        GrewOne(b1, p, bn, NODATA, n);
        GrewMore(b0, b1, bm, ino, NODATA, n, NODATA, n);
      }
    }

    // store a new version of the inode with the same slots
    method SetMeta(txn: Txn, ip: Bytes, ino: uint64)
      modifies Repr()
      requires Valid() && txn.jrnl == fs.jrnl && OkIno(fs.geo, ino) && |ip.data| == 256
      requires ino in fs.inodes && Parse(ip.data).blks == fs.inodes[ino].blks && (M(ip.data).ty == 0 <==> fs.inodes[ino].meta.ty == 0)
      ensures Valid() && data == old(data) && bm == old(bm)
      ensures fs.inodes == old(fs.inodes)[ino := Parse(ip.data)]
    {
      fs.WriteInode(txn, ino, ip);
      assert RootsOk(fs.geo, bm, fs.inodes) by { reveal RootsOk(); }
    }
    // the same, and the inode changes between free and in use
    method SetInode(txn: Txn, ip: Bytes, ino: uint64, inuse: bool)
      modifies Repr()
      requires Valid() && txn.jrnl == fs.jrnl && OkIno(fs.geo, ino) && |ip.data| == 256
      requires ino in fs.inodes && Parse(ip.data).blks == fs.inodes[ino].blks && (inuse <==> M(ip.data).ty != 0)
      ensures Valid() && data == old(data) && bm == old(bm)
      ensures fs.inodes == old(fs.inodes)[ino := Parse(ip.data)]
    {
      fs.PutInode(txn, ino, ip, inuse);
      assert RootsOk(fs.geo, bm, fs.inodes) by { reveal RootsOk(); }
    }

    // overwrite the data block at p
    method WriteData(txn: Txn, bn: uint64, b: Bytes, ghost p: Pos)
      modifies Repr(), b
      requires Valid() && txn.jrnl == fs.jrnl && IsData(p) && p in bm && bn == bm[p] && bn != 0 && OkBlk(fs.geo, bn) && |b.data| == 4096
      ensures Valid() && data == old(data)[p := old(b.data)] && fs.inodes == old(fs.inodes) && bm == old(bm)
      ensures fs.blocks == old(fs.blocks)[bn := old(b.data)]
    {
      WriteOne(fs.geo, bm, owner, fs.used, fs.blocks, data, p, b.data);
      data := data[p := b.data];
      fs.WriteBlock(txn, bn, b);
    }

    // the data block at a position (a hole: the block of zeros), given its number
    method ReadAt(txn: Txn, bn: uint64, ghost p: Pos, excl: bool) returns (b: Blk)
      requires Valid() && txn.jrnl == fs.jrnl && IsData(p) && p in bm && bn == bm[p]
      ensures p in data && b.v == data[p] && |b.v| == 4096
    {
      assert OkPos(p);
      BlkOf(p);
      reveal DataOk();
      if bn == 0 { b := ZeroBlk(); } else { b := fs.ReadBlock(txn, bn, excl); }
    }

    // block n of the file
    method ReadData(txn: Txn, ip: Bytes, ghost ino: uint64, n: uint64, excl: bool) returns (b: Blk)
      requires Valid() && txn.jrnl == fs.jrnl && IsInode(ino, ip) && n < 134480396
      ensures PosOf(ino, n) in data && b.v == data[PosOf(ino, n)] && |b.v| == 4096
    {
      var k := FlatK(n);
      PosOfOk(ino, n);
      var bn := Resolve(txn, ip, ino, k, MaxLev(k), FlatJ(n), excl);
      b := ReadAt(txn, bn, PosOf(ino, n), excl);
    }
  }
}
