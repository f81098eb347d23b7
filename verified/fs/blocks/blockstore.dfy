// Inodes and blocks as maps. Hides the places on the volume, the bitmaps and
// the allocation hints.
//
// Promises: an inode's bit is set exactly when its type is not 0; `used` is the
// block bitmap; an allocation takes only what the bitmap says is free.
include "../../trusted/txn.s.dfy"
include "../format/geometry.dfy"
include "../format/inode.dfy"
module BlockStore {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened TxnS
  import opened Marshal
  import opened VolumeGeometry
  import opened InodeFormat

  type Blocks = map<uint64, seq<byte>>

  function InodeAddr(g: Geometry, i: uint64): Addr
    requires GeometryOk(g) && OkIno(g, i)
  { Addr(g.inodeTable + i / 16, (i % 16) * 2048) }
  function InoBit(g: Geometry, i: uint64): Addr
    requires GeometryOk(g) && OkIno(g, i)
  { Addr(g.inodeBitmap + i / 32768, i % 32768) }
  function BlkBit(g: Geometry, b: uint64): Addr
    requires GeometryOk(g) && OkBlk(g, b)
  { Addr(g.blockBitmap + b / 32768, b % 32768) }

  predicate KindsOk(g: Geometry, kinds: map<uint64, Kind>)
    requires GeometryOk(g)
  {
    && (forall b: uint64 | g.inodeBitmap <= b < g.inodeTable :: b in kinds && kinds[b] == KBit)
    && (forall b: uint64 | g.inodeTable <= b < g.slot0 :: b in kinds && kinds[b] == KInode)
    && (forall b: uint64 | g.data0 <= b < g.data1 :: b in kinds && kinds[b] == KBlock)
  }

  // the allocator gives what is free, but for inodes 0 to 2
  predicate BitmapsOk(g: Geometry, volume: VolumeObjects)
  {
    volume.blockBits == Bitmap(g.blockBitmap, g.data0, g.data1) &&
    volume.inodeBits == Bitmap(g.inodeBitmap, 3, g.ninode)
  }

  // how many blocks, and inodes, that were free when the transaction began it was given
  function GotBlocks(txn: Txn): int reads txn.blocks { |txn.blocks.given| }
  function GotInodes(txn: Txn): int reads txn.inodes { |txn.inodes.given| }
  lemma Fewer(a: set<uint64>, b: set<uint64>)
    requires a <= b
    ensures |a| <= |b|
  { assert b == a + (b - a); }
  lemma OneMore(given: set<uint64>, clear: set<uint64>, x: uint64)
    ensures |given| <= |given + {x} * clear| <= |given| + 1
    ensures x !in clear ==> given + {x} * clear == given
  {
    if x in clear { assert {x} * clear == {x}; } else { assert {x} * clear == {}; }
    if x in given { assert given + {x} == given; }
  }

  // the abstractions, as predicates over plain values
  predicate {:opaque} InodesMatch(g: Geometry, d: map<Addr, Object>, inodes: map<uint64, Inode>)
    requires GeometryOk(g)
  {
    forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) :: i in inodes &&
      var a := InodeAddr(g, i);
      a in d && d[a].ObjData? && |d[a].bytes| == 256 && inodes[i] == Parse(d[a].bytes)
  }
  predicate {:opaque} InoBitsMatch(g: Geometry, d: map<Addr, Object>, inodes: map<uint64, Inode>)
    requires GeometryOk(g)
  {
    forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) :: i in inodes &&
      InoBit(g, i) in d && d[InoBit(g, i)] == ObjBit(inodes[i].meta.ty != 0)
  }
  predicate {:opaque} BlocksMatch(g: Geometry, d: map<Addr, Object>, blocks: Blocks)
    requires GeometryOk(g)
  {
    forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) :: b in blocks && |blocks[b]| == 4096 &&
      Addr(b, 0) in d && d[Addr(b, 0)] == ObjData(blocks[b])
  }
  predicate {:opaque} UsedMatch(g: Geometry, d: map<Addr, Object>, used: map<uint64, bool>)
    requires GeometryOk(g)
  {
    forall b: uint64 {:trigger OkBlk(g, b)} | OkBlk(g, b) :: b in used &&
      BlkBit(g, b) in d && d[BlkBit(g, b)] == ObjBit(used[b])
  }

  // different things lie at different places
  lemma Apart(g: Geometry)
    requires GeometryOk(g)
    ensures forall i, j: uint64 {:trigger InodeAddr(g, i), InodeAddr(g, j)} | OkIno(g, i) && OkIno(g, j) && i != j ::
      InodeAddr(g, i) != InodeAddr(g, j)
    ensures forall i, j: uint64 {:trigger InoBit(g, i), InoBit(g, j)} | OkIno(g, i) && OkIno(g, j) && i != j ::
      InoBit(g, i) != InoBit(g, j)
    ensures forall i, j: uint64 {:trigger BlkBit(g, i), BlkBit(g, j)} | OkBlk(g, i) && OkBlk(g, j) && i != j ::
      BlkBit(g, i) != BlkBit(g, j)
    ensures forall i: uint64 {:trigger InodeAddr(g, i)} | OkIno(g, i) :: g.inodeTable <= InodeAddr(g, i).blkno < g.slot0
    ensures forall i: uint64 {:trigger InoBit(g, i)} | OkIno(g, i) ::
      g.inodeBitmap <= InoBit(g, i).blkno < g.blockBitmap
    ensures forall i: uint64 {:trigger BlkBit(g, i)} | OkBlk(g, i) :: g.blockBitmap <= BlkBit(g, i).blkno < g.inodeTable
  { }

  // byte i of what blocks side by side hold
  predicate HasByte(bs: Blocks, a: uint64, i: int, x: byte)
    requires 0 <= i && a as int + i / 4096 < 0x1_0000_0000_0000_0000
  { var b := a + (i / 4096) as uint64; b in bs && |bs[b]| == 4096 && x == bs[b][i % 4096] }
  lemma RunByte(d: map<Addr, Object>, bs: Blocks, a: uint64, n: uint64, i: int)
    requires a as int + n as int < 0x1_0000_0000_0000_0000 && 0 <= i < 4096 * n as int
    requires forall b: uint64 {:trigger Addr(b, 0)} :: a <= b < a + n ==>
      Addr(b, 0) in d && b in bs && |bs[b]| == 4096 && d[Addr(b, 0)] == ObjData(bs[b])
    ensures |Run(d, a, n)| == 4096 * n as int && HasByte(bs, a, i, Run(d, a, n)[i])
  {
    var last := 4096 * (n as int - 1);
    assert Addr(a + n - 1, 0) in d;
    if n > 1 { RunByte(d, bs, a, n - 1, if i < last then i else 0); }
    if i >= last { assert i / 4096 == n as int - 1 && i % 4096 == i - last; }
  }

  class BlockFs {
    const geometry: Geometry
    const volume: VolumeObjects
    ghost var inodes: map<uint64, Inode>
    ghost var blocks: Blocks
    ghost var used: map<uint64, bool>

    // the caller sets the ghost fields (2.3.0 rejects ghost arguments to `new`)
    constructor Recover(geometry: Geometry, volume: VolumeObjects)
      ensures this.geometry == geometry && this.volume == volume
    { this.geometry := geometry; this.volume := volume; }

    // The frame, here and in the layers above: the objects that a method which changes this one may modify. The
    // predicates that are asked everywhere (Valid, Sound) list what they read: with Repr() in its place the slowest
    // proofs take five times as long.
    function Repr(): set<object> { {this, volume} }

    predicate Valid() reads this, volume {
      && GeometryOk(geometry)
      && volume.Valid()
      && KindsOk(geometry, volume.kinds)
      && BitmapsOk(geometry, volume)
      && InodesMatch(geometry, volume.data, inodes)
      && InoBitsMatch(geometry, volume.data, inodes)
      && BlocksMatch(geometry, volume.data, blocks)
      && UsedMatch(geometry, volume.data, used)
    }

    lemma Dom()
      requires Valid()
      ensures forall i: uint64 {:trigger OkIno(geometry, i)} | OkIno(geometry, i) :: i in inodes &&
        |inodes[i].blks| == 15
      ensures forall b: uint64 {:trigger OkBlk(geometry, b)} | OkBlk(geometry, b) ::
        b in blocks && |blocks[b]| == 4096 && b in used
    { reveal InodesMatch(); reveal BlocksMatch(); reveal UsedMatch(); }

    method ReadInode(txn: Txn, ino: uint64, excl: bool) returns (b: Bytes)
      requires Valid() && txn.volume == volume && OkIno(geometry, ino)
      ensures fresh(b) && |b.data| == 256
      ensures ino in inodes && Parse(b.data) == inodes[ino]
    {
      reveal InodesMatch();
      assert InodeAddr(geometry, ino) in volume.data;
      b := txn.ReadInode(geometry.inodeTable + ino / 16, (ino % 16) * 2048, excl);
    }

    // store an inode that stays free, or stays in use
    method WriteInode(txn: Txn, ino: uint64, b: Bytes)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && |b.data| == 256
      requires ino in inodes && (MetaOf(b.data).ty == 0 <==> inodes[ino].meta.ty == 0)
      ensures Valid()
      ensures inodes == old(inodes)[ino := Parse(b.data)] && blocks == old(blocks) && used == old(used)
    {
      Apart(geometry);
      txn.WriteInode(geometry.inodeTable + ino / 16, (ino % 16) * 2048, b);
      inodes := inodes[ino := Parse(b.data)];
      assert InodesMatch(geometry, volume.data, inodes) by { reveal InodesMatch(); }
      assert InoBitsMatch(geometry, volume.data, inodes) by { reveal InoBitsMatch(); }
      assert BlocksMatch(geometry, volume.data, blocks) by { reveal BlocksMatch(); }
      assert UsedMatch(geometry, volume.data, used) by { reveal UsedMatch(); }
    }

    // store an inode and its bit
    method PutInode(txn: Txn, ino: uint64, b: Bytes, inuse: bool)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkIno(geometry, ino) && |b.data| == 256
      requires inuse <==> MetaOf(b.data).ty != 0
      ensures Valid()
      ensures inodes == old(inodes)[ino := Parse(b.data)] && blocks == old(blocks) && used == old(used)
    {
      Apart(geometry);
      txn.WriteInode(geometry.inodeTable + ino / 16, (ino % 16) * 2048, b);
      txn.WriteBit(geometry.inodeBitmap + ino / 32768, ino % 32768, inuse);
      inodes := inodes[ino := Parse(b.data)];
      assert InodesMatch(geometry, volume.data, inodes) by { reveal InodesMatch(); }
      assert InoBitsMatch(geometry, volume.data, inodes) by { reveal InoBitsMatch(); }
      assert BlocksMatch(geometry, volume.data, blocks) by { reveal BlocksMatch(); }
      assert UsedMatch(geometry, volume.data, used) by { reveal UsedMatch(); }
    }

    // find a free inode; ok = false: there is none
    method FindInode(txn: Txn, near: uint64) returns (ok: bool, ino: uint64)
      modifies txn.inodes
      requires Valid() && txn.volume == volume
      ensures ok ==> OkIno(geometry, ino) && 2 < ino < txn.inodes.end && ino in inodes && inodes[ino].meta.ty == 0
      ensures GotInodes(txn) <= old(GotInodes(txn)) + (if ok then 1 else 0) && (!ok ==> txn.inodes.Dry())
    {
      ok, ino := false, 0;
      while !ok
        invariant ok ==>
          OkIno(geometry, ino) && 2 < ino < txn.inodes.end && ino in inodes && inodes[ino].meta.ty == 0
        invariant Valid() && GotInodes(txn) <= old(GotInodes(txn)) + (if ok then 1 else 0)
        decreases if ok then 0 else 1, txn.inodes.left
      {
        var got: bool;
        ghost var given := txn.inodes.given;
        got, ino := txn.AllocHint(1, near);
        if !got { return false, 0; }
        OneMore(given, txn.inodes.clear, ino);
        if 2 < ino && OkIno(geometry, ino) {
          reveal InoBitsMatch();
          assert InoBit(geometry, ino) in volume.data && IsBit(InoBit(geometry, ino), volume.inodeBits, ino);
          var u := txn.ReadBit(geometry.inodeBitmap + ino / 32768, ino % 32768, true);
          ok := !u;
        }
      }
    }

    method ReadBlock(txn: Txn, bn: uint64, excl: bool) returns (b: Blk)
      requires Valid() && txn.volume == volume && OkBlk(geometry, bn)
      ensures bn in blocks && b.v == blocks[bn] && |b.v| == 4096
    {
      reveal BlocksMatch();
      assert blocks[bn] == blocks[bn];
      b := txn.ReadBlock(bn, excl);
    }

    // the n blocks from bn on, which are added to p
    method ReadBlocks(txn: Txn, bn: uint64, n: uint64, p: Pieces)
      modifies p
      requires Valid() && txn.volume == volume && geometry.data0 <= bn && bn as int + n as int <= geometry.data1 as int
      ensures |p.data| == |old(p.data)| + 4096 * n as int && p.data[..|old(p.data)|] == old(p.data)
      ensures forall i: int {:trigger p.data[i]} | |old(p.data)| <= i < |p.data| ::
        HasByte(blocks, bn, i - |old(p.data)|, p.data[i])
    {
      reveal BlocksMatch();
      forall b: uint64 {:trigger Addr(b, 0)} | bn <= b < bn + n
        ensures volume.Has(KBlock, b, 0) && b in blocks && |blocks[b]| == 4096 &&
        volume.data[Addr(b, 0)] == ObjData(blocks[b]) { assert OkBlk(geometry, b); }
      ghost var n0, d, bs := |p.data|, volume.data, blocks;
      txn.ReadBlocks(bn, n, p);
      if n > 0 { RunByte(d, bs, bn, n, 0); }
      forall i: int | n0 <= i < |p.data| ensures HasByte(bs, bn, i - n0, p.data[i]) { RunByte(d, bs, bn, n, i - n0); }
    }

    // takes b over
    method WriteBlock(txn: Txn, bn: uint64, b: Bytes)
      modifies Repr(), b
      requires Valid() && txn.volume == volume && OkBlk(geometry, bn) && |b.data| == 4096
      ensures Valid() && b.data == []
      ensures inodes == old(inodes) && blocks == old(blocks)[bn := old(b.data)] && used == old(used)
    {
      Apart(geometry);
      blocks := blocks[bn := b.data];
      txn.WriteBlock(bn, b);
      assert InodesMatch(geometry, volume.data, inodes) by { reveal InodesMatch(); }
      assert InoBitsMatch(geometry, volume.data, inodes) by { reveal InoBitsMatch(); }
      assert BlocksMatch(geometry, volume.data, blocks) by { reveal BlocksMatch(); }
      assert UsedMatch(geometry, volume.data, used) by { reveal UsedMatch(); }
    }

    method SetUsedBit(txn: Txn, bn: uint64, u: bool)
      modifies Repr()
      requires Valid() && txn.volume == volume && OkBlk(geometry, bn)
      ensures Valid()
      ensures inodes == old(inodes) && blocks == old(blocks) && used == old(used)[bn := u]
    {
      Apart(geometry);
      used := used[bn := u];
      txn.WriteBit(geometry.blockBitmap + bn / 32768, bn % 32768, u);
      assert InodesMatch(geometry, volume.data, inodes) by { reveal InodesMatch(); }
      assert InoBitsMatch(geometry, volume.data, inodes) by { reveal InoBitsMatch(); }
      assert BlocksMatch(geometry, volume.data, blocks) by { reveal BlocksMatch(); }
      assert UsedMatch(geometry, volume.data, used) by { reveal UsedMatch(); }
    }

    // take a free block, close to `near` if that is possible (0 = anywhere), and
    // give it its first contents b (taken over); ok = false: there is none. exchange: it is for the place of another,
    // and ok = false says nothing
    method AllocBlock(txn: Txn, exchange: bool, near: uint64, b: Bytes) returns (ok: bool, bn: uint64)
      modifies Repr(), b, txn.blocks
      requires Valid() && txn.volume == volume && |b.data| == 4096
      ensures Valid() && inodes == old(inodes)
      ensures !ok ==> blocks == old(blocks) && used == old(used)
      ensures ok ==> OkBlk(geometry, bn) && bn < txn.blocks.end && bn in old(used) && !old(used)[bn]
      ensures ok ==> used == old(used)[bn := true] && blocks == old(blocks)[bn := old(b.data)]
      ensures GotBlocks(txn) <= old(GotBlocks(txn)) + (if ok then 1 else 0)
      ensures !ok && !exchange ==> txn.blocks.Dry()
    {
      bn := TakeBlock(txn, exchange, near);
      ok := bn != 0;
      if ok {
        SetUsedBit(txn, bn, true);
        WriteBlock(txn, bn, b);
      }
    }

    // find a free block, 0: there is none
    method TakeBlock(txn: Txn, exchange: bool, near: uint64) returns (bn: uint64)
      modifies txn.blocks
      requires Valid() && txn.volume == volume
      ensures bn != 0 ==> OkBlk(geometry, bn) && bn < txn.blocks.end && bn in used && !used[bn]
      ensures GotBlocks(txn) <= old(GotBlocks(txn)) + (if bn != 0 then 1 else 0)
      ensures bn == 0 && !exchange ==> txn.blocks.Dry()
    {
      bn := 0;
      while bn == 0
        invariant bn != 0 ==> OkBlk(geometry, bn) && bn < txn.blocks.end && bn in used && !used[bn]
        invariant Valid() && GotBlocks(txn) <= old(GotBlocks(txn)) + (if bn != 0 then 1 else 0)
        decreases if bn != 0 then 0 else 1, txn.blocks.left
      {
        ghost var given := txn.blocks.given;
        var got, x := txn.AllocHint(if exchange then 2 else 0, near);
        if !got { return 0; }
        OneMore(given, txn.blocks.clear, x);
        if OkBlk(geometry, x) {
          reveal UsedMatch();
          assert BlkBit(geometry, x) in volume.data && IsBit(BlkBit(geometry, x), volume.blockBits, x);
          var u := txn.ReadBit(geometry.blockBitmap + x / 32768, x % 32768, true);
          if !u { bn := x; }
        }
      }
    }

    // zeros in those of the n blocks from lo on that are free. They may go straight home: what a free
    // block held nobody needs, not even a crash (crash.dfy).
    method ZeroFree(txn: Txn, lo: uint64, n: uint64)
      modifies Repr()
      requires Valid() && txn.volume == volume && geometry.data0 <= lo && lo as int + n as int <= geometry.data1 as int
      ensures Valid() && inodes == old(inodes) && used == old(used)
      ensures Zeroed(old(blocks), lo as int, lo as int + n as int)
    {
      // all bits first: bitmaps lie before data, and locks are waited for in the order of their places only
      var b := lo;
      while b < lo + n
        invariant lo <= b <= lo + n && Valid() && inodes == old(inodes) && used == old(used) && blocks == old(blocks)
      {
        var _ := FreeBit(txn, b);
        b := b + 1;
      }
      b := lo;
      Dom();
      while b < lo + n
        invariant lo <= b <= lo + n && Valid() && inodes == old(inodes) && used == old(used)
        invariant Zeroed(old(blocks), lo as int, b as int)
      {
        var is := FreeBit(txn, b);
        if is {
          txn.Bulk(b);
          var z := NewBytes(4096);
          WriteBlock(txn, b, z);
        }
        b := b + 1;
      }
    }

    method FreeBit(txn: Txn, b: uint64) returns (is: bool)
      requires Valid() && txn.volume == volume && OkBlk(geometry, b)
      ensures b in used && is == !used[b]
    {
      reveal UsedMatch();
      assert BlkBit(geometry, b) in volume.data;
      var u := txn.ReadBit(geometry.blockBitmap + b / 32768, b % 32768, false);
      is := !u;
    }

    // bs with zeros in the free blocks from lo up to hi, and nothing else changed
    predicate Zeroed(bs: Blocks, lo: int, hi: int) reads this
    {
      forall b: uint64 {:trigger OkBlk(geometry, b)} | OkBlk(geometry, b) :: b in used && b in bs && b in blocks &&
        blocks[b] == if lo <= b as int < hi && !used[b] then Zeros(4096) else bs[b]
    }
  }
}
