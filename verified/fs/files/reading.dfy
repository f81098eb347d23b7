// Getting bytes out of blocks.
//
// The indirect block above the data is kept at hand from one block to the next;
// a hole costs nothing but the look at its entry.
include "bytemap.dfy"
include "../blocks/blocktree.dfy"
module Reading {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened TxnSpec
  import opened TxnS
  import opened VolumeGeometry
  import opened InodeFormat
  import opened BlockStore
  import opened Positions
  import opened BlockTreeSpec
  import opened BlockTree
  import opened ByteMap

  predicate Ok(x: BlockTreeFs) reads x, x.fs, x.fs.jrnl { x.Valid() && DataDom(x.data) }

  method Min(a: uint64, b: uint64) returns (c: uint64)
    ensures c <= a && c <= b && (c == a || c == b)
  { if a < b { c := a; } else { c := b; } }

  // the cursor (ck, cj) names node cj at the lowest level of indirect blocks below
  // slot ck; its contents are v. ck = 15: none.
  predicate AtHand(x: BlockTreeFs, ino: uint64, ck: uint64, cj: uint64, v: seq<byte>)
    reads x, x.fs
  {
    ck < 15 ==> 12 <= ck && Pos(ino, ck, MaxLev(ck) - 1, cj) in x.bm && OkPos(Pos(ino, ck, MaxLev(ck) - 1, cj)) &&
      x.IsNode(Pos(ino, ck, MaxLev(ck) - 1, cj), v)
  }

  // the number of block n of the file (0 = hole), and the indirect block above it at hand
  method Find(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, n: uint64, excl: bool, ck: uint64, cj: uint64, pb: Blk) returns (bn: uint64, ck': uint64, cj': uint64, pb': Blk)
    requires Ok(x) && txn.jrnl == x.fs.jrnl && x.IsInode(ino, ip) && n < 134480396 && AtHand(x, ino, ck, cj, pb.v)
    ensures AtHand(x, ino, ck', cj', pb'.v) && (12 <= FlatK(n) ==> |pb'.v| == 4096)
    ensures PosOf(ino, n) in x.bm && bn == x.bm[PosOf(ino, n)] && (bn != 0 ==> OkBlk(x.fs.geo, bn))
  {
    var k, j := FlatK(n), FlatJ(n);
    ghost var p := PosOf(ino, n);
    PosOfOk(ino, n);
    ck', cj', pb' := ck, cj, pb;
    if k < 12 {
      bn := x.Resolve(txn, ip, ino, k, 0, 0, excl);
      return;
    }
    if ck != k || cj != j / 512 {
      pb' := x.ReadParent(txn, ip, ino, k, MaxLev(k), j, excl);
      ck', cj' := k, j / 512;
    }
    ParentOk(p);
    assert Parent(p) == Pos(ino, k, MaxLev(k) - 1, j / 512);
    assert x.IsParent(p, pb'.v);
    bn := pb'.U64(8 * (j % 512));
    x.Child(p, pb'.v);
  }

  const AheadMax: uint64 := 64     // blocks to ask for at a time (policy: the smallest cache has room for so many)

  // How many blocks of the file from block n on, which is bn on the device, lie side by side
  // there, as far as the inode or the indirect block at hand tells: at most max, and AheadMax.
  method Adjacent(ip: Bytes, pb: Blk, n: uint64, bn: uint64, max: uint64) returns (r: uint64)
    requires |ip.data| == 256 && n < 134480396 && (12 <= FlatK(n) ==> |pb.v| == 4096)
    ensures 1 <= r <= AheadMax
  {
    var k, j := FlatK(n), FlatJ(n) % 512;
    var room := if k < 12 then 12 - k else 512 - j;
    var m := Min(max, room);
    m := Min(m, AheadMax);
    r := 1;
    while r < m && bn < 0xFFFF_FFFF_FFFF_0000    // no overflow below
      invariant 1 <= r <= AheadMax
      decreases AheadMax - r
    {
      var e: uint64;
      if k < 12 { e := GetSlot(ip, k + r); } else { e := pb.U64(8 * (j + r)); }
      if e != bn + r { return; }
      r := r + 1;
    }
  }

  // n bytes at off, where they lie
  method Fetch(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, off: uint64, n: uint64) returns (b: Pieces)
    requires Ok(x) && txn.jrnl == x.fs.jrnl && x.IsInode(ino, ip) && off as int + n as int <= 549755813888
    ensures fresh(b) && |b.data| == n as int
    ensures forall i: int {:trigger b.data[i]} | 0 <= i < n as int :: b.data[i] == ByteAt(x.data, ino, off as int + i)
  {
    b := NewPieces();
    var done: uint64 := 0;
    var ahead: uint64 := 0;      // the file's blocks below this one have been asked for
    var ck: uint64, cj: uint64 := 15, 0;
    var pb := ZeroBlk();
    while done < n
      invariant done <= n && |b.data| == done as int && fresh(b)
      invariant x.IsInode(ino, ip) && AtHand(x, ino, ck, cj, pb.v)
      invariant forall i: int {:trigger b.data[i]} | 0 <= i < done as int :: b.data[i] == ByteAt(x.data, ino, off as int + i)
      decreases n - done
    {
      var pos := off + done;
      var bo := pos % 4096;
      var c := Min(4096 - bo, n - done);
      ghost var p := PosOf(ino, pos / 4096);
      PosOfOk(ino, pos / 4096);
      var bn: uint64;
      bn, ck, cj, pb := Find(x, txn, ip, ino, pos / 4096, false, ck, cj, pb);
      ghost var b0 := b.data;
      var blk := ZeroBlk();
      if bn != 0 {
        if ahead <= pos / 4096 {
          var left := (bo + (n - done) + 4095) / 4096;
          var r := Adjacent(ip, pb, pos / 4096, bn, left);
          if 1 < r { txn.Ahead(bn, r); }
          ahead := pos / 4096 + r;
        }
        blk := x.ReadAt(txn, bn, p, false);
      }
      b.Add(blk, bo, c);
      assert x.data[p] == blk.v by { reveal DataOk(); assert OkPos(p); }
      forall i: int {:trigger b.data[i]} | 0 <= i < (done + c) as int
        ensures b.data[i] == ByteAt(x.data, ino, off as int + i)
      { OneByte(x, p, b0, b.data, blk.v, ino, off, done, c, i); }
      done := done + c;
    }
  }

  // The blocks with the n bytes at off are about to be read: a wish (Ahead in txn.s.dfy), and no more.
  method Prefetch(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, off: uint64, n: uint64)
    requires Ok(x) && txn.jrnl == x.fs.jrnl && x.IsInode(ino, ip) && off as int + n as int <= 549755813888
  {
    var i, end := off / 4096, (off + n + 4095) / 4096;
    var ck: uint64, cj: uint64 := 15, 0;
    var pb := ZeroBlk();
    while i < end
      invariant x.IsInode(ino, ip) && AtHand(x, ino, ck, cj, pb.v)
      decreases end as int - i as int
    {
      var bn: uint64; var r: uint64 := 1;
      bn, ck, cj, pb := Find(x, txn, ip, ino, i, false, ck, cj, pb);
      if bn != 0 {
        r := Adjacent(ip, pb, i, bn, end - i);
        txn.Ahead(bn, r);
      }
      i := i + r;
    }
  }

  // one byte of a chunk fetched
  lemma OneByte(x: BlockTreeFs, p: Pos, b0: seq<byte>, b1: seq<byte>, s: seq<byte>, ino: uint64, off: uint64, done: uint64, c: uint64, i: int)
    requires Ok(x) && off as int + done as int + c as int <= 549755813888
    requires |b0| == done as int && 0 <= i < (done + c) as int && (off + done) % 4096 + c <= 4096
    requires p == PosOf(ino, (off + done) / 4096) && p in x.data && |s| == 4096 && x.data[p] == s
    requires i < done as int ==> b0[i] == ByteAt(x.data, ino, off as int + i)
    requires b1 == b0 + s[((off + done) % 4096) as int .. ((off + done) % 4096) as int + c as int]
    ensures b1[i] == ByteAt(x.data, ino, off as int + i)
  {
    var pos := (off + done) as int;
    if done as int <= i < (done + c) as int {
      var r := i - done as int;
      DivMod(pos, r);
      BlockByte(x.data, ino, pos + r);
      assert off as int + i == pos + r;
      assert b1[i] == s[pos % 4096 + r];
    }
  }
}
