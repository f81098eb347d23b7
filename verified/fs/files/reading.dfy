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

  predicate Ok(x: BlockTreeFs) reads x, x.store, x.store.volume { x.Valid() && DataDom(x.data) }

  method Min(a: uint64, b: uint64) returns (c: uint64)
    ensures c <= a && c <= b && (c == a || c == b)
  { if a < b { c := a; } else { c := b; } }

  // the cursor (ck, cj) names node cj at the lowest level of indirect blocks below
  // slot ck; its contents are v. ck = 15: none.
  predicate AtHand(x: BlockTreeFs, ino: uint64, ck: uint64, cj: uint64, v: seq<byte>)
    reads x, x.store
  {
    ck < 15 ==> 12 <= ck && Pos(ino, ck, MaxLev(ck) - 1, cj) in x.blockMap && OkPos(Pos(ino, ck, MaxLev(ck) - 1, cj)) &&
      x.IsNode(Pos(ino, ck, MaxLev(ck) - 1, cj), v)
  }

  // the number of block n of the file (0 = hole), and the indirect block above it at hand
  method Find(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, n: uint64, excl: bool, ck: uint64, cj: uint64,
    pb: Blk) returns (bn: uint64, ck': uint64, cj': uint64, pb': Blk)
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && n < 134480396 &&
      AtHand(x, ino, ck, cj, pb.v)
    ensures InHand(x, ino, ck', cj', pb'.v, n)
    ensures PosOf(ino, n) in x.blockMap && bn == x.blockMap[PosOf(ino, n)] && (bn != 0 ==> OkBlk(x.store.geometry, bn))
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
  method Adjacent(x: BlockTreeFs, ip: Bytes, ghost ino: uint64, ghost ck: uint64, ghost cj: uint64, pb: Blk, n: uint64,
    bn: uint64, max: uint64) returns (r: uint64)
    requires Ok(x) && x.IsInode(ino, ip) && n < 134480396 && InHand(x, ino, ck, cj, pb.v, n)
    requires bn != 0 && PosOf(ino, n) in x.blockMap && bn == x.blockMap[PosOf(ino, n)]
    ensures 1 <= r <= AheadMax && (1 < r ==> r <= max) && SideBySide(x, ino, n, bn, r)
  {
    var k, j := FlatK(n), FlatJ(n) % 512;
    var room := if k < 12 then 12 - k else 512 - j;
    var m := Min(max, room);
    m := Min(m, AheadMax);
    PosOfOk(ino, n);
    x.BlkOf(PosOf(ino, n));
    r := 1;
    while r < m && bn < 0xFFFF_FFFF_FFFF_0000    // no overflow below
      invariant 1 <= r <= AheadMax && (1 < r ==> r <= max) && SideBySide(x, ino, n, bn, r)
      decreases AheadMax - r
    {
      var e: uint64;
      if k < 12 { e := GetSlot(ip, k + r); } else { e := pb.U64(8 * (j + r)); }
      if e != bn + r { return; }
      Entry(x, ip, ino, ck, cj, pb, n, r, e);
      r := r + 1;
    }
  }
  // v is the indirect block above block n of the file, if there is one
  predicate InHand(x: BlockTreeFs, ino: uint64, ck: uint64, cj: uint64, v: seq<byte>, n: uint64)
    reads x, x.store, x.store.volume
  { AtHand(x, ino, ck, cj, v) && (12 <= FlatK(n) ==> |v| == 4096 && ck == FlatK(n) && cj == FlatJ(n) / 512) }
  // the r blocks of the file from n on are those from bn on
  predicate SideBySide(x: BlockTreeFs, ino: uint64, n: uint64, bn: uint64, r: uint64) reads x
  {
    n as int + r as int <= 134480396 && bn as int + r as int < 0x1_0000_0000_0000_0000 &&
    forall m: uint64 {:trigger PosOf(ino, m)} :: n <= m < n + r ==>
      PosOf(ino, m) in x.blockMap && x.blockMap[PosOf(ino, m)] == bn + (m - n)
  }
  // e is the entry for block n + r
  lemma Entry(x: BlockTreeFs, ip: Bytes, ino: uint64, ck: uint64, cj: uint64, pb: Blk, n: uint64, r: uint64, e: uint64)
    requires Ok(x) && x.IsInode(ino, ip) && n < 134480396 && InHand(x, ino, ck, cj, pb.v, n) && 0 < r < 512
    requires if FlatK(n) < 12 then FlatK(n) + r < 12 &&
      e == Parse(ip.data).blks[FlatK(n) + r] else FlatJ(n) % 512 + r < 512 &&
      e == U64At(pb.v, 8 * (FlatJ(n) % 512 + r) as int)
    ensures n + r < 134480396 && PosOf(ino, n + r) in x.blockMap && x.blockMap[PosOf(ino, n + r)] == e &&
      (e != 0 ==> OkBlk(x.store.geometry, e))
  {
    PosOfOk(ino, n);
    assert FlatK(n + r) == if FlatK(n) < 12 then FlatK(n) + r else FlatK(n);
    PosOfOk(ino, n + r);
    ghost var p := PosOf(ino, n + r);
    x.BlkOf(p);
    if FlatK(n) < 12 {
      reveal RootsOk();
    } else {
      ParentOk(p);
      assert Parent(p) == Pos(ino, ck, MaxLev(ck) - 1, cj);
      assert x.IsParent(p, pb.v);
      x.Child(p, pb.v);
    }
  }

  // n bytes at off, where they lie
  method Fetch(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, off: uint64, n: uint64) returns (b: Pieces)
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && off as int + n as int <= 549755813888
    ensures fresh(b) && |b.data| == n as int
    ensures forall i: int {:trigger b.data[i]} | 0 <= i < n as int :: b.data[i] == ByteAt(x.data, ino, off as int + i)
  {
    b := NewPieces();
    var done: uint64 := 0;
    var ck: uint64, cj: uint64 := 15, 0;
    var pb := ZeroBlk();
    while done < n
      invariant done <= n && |b.data| == done as int && fresh(b)
      invariant x.IsInode(ino, ip) && AtHand(x, ino, ck, cj, pb.v)
      invariant forall i: int {:trigger b.data[i]} | 0 <= i < done as int ::
        b.data[i] == ByteAt(x.data, ino, off as int + i)
      decreases n - done
    {
      var pos := off + done;
      var bn: uint64; var r: uint64 := 1;
      bn, ck, cj, pb := Find(x, txn, ip, ino, pos / 4096, false, ck, cj, pb);
      if bn != 0 { r := Adjacent(x, ip, ino, ck, cj, pb, pos / 4096, bn, (pos % 4096 + (n - done) + 4095) / 4096); }
      var whole: uint64 := 0;
      if pos % 4096 == 0 { whole := Min(r, (n - done) / 4096); }
      if 1 < r && whole < r { txn.Ahead(bn, r); }      // they are read in parts
      ghost var b0 := b.data;
      if bn != 0 && 1 < whole {
        ReadWhole(x, txn, ino, pos / 4096, bn, whole, b);
        done := done + 4096 * whole;
      } else {
        var c := Min(4096 - pos % 4096, n - done);
        ghost var p := PosOf(ino, pos / 4096);
        PosOfOk(ino, pos / 4096);
        var blk := x.ReadAt(txn, bn, p, false);
        b.Add(blk, pos % 4096, c);
        forall i: int {:trigger b.data[i]} | 0 <= i < (done + c) as int
          ensures b.data[i] == ByteAt(x.data, ino, off as int + i)
        { OneByte(x, p, b0, b.data, blk.v, ino, off, done, c, i); }
        done := done + c;
      }
    }
  }

  // adds r whole blocks of the file, from block n on, which lie side by side from bn on
  method ReadWhole(x: BlockTreeFs, txn: Txn, ghost ino: uint64, ghost n: uint64, bn: uint64, r: uint64, b: Pieces)
    modifies b
    requires Ok(x) && txn.volume == x.store.volume && 0 < r && bn != 0 && SideBySide(x, ino, n, bn, r) &&
      n as int + r as int <= 134217728
    ensures |b.data| == |old(b.data)| + 4096 * r as int && b.data[..|old(b.data)|] == old(b.data)
    ensures forall i: int {:trigger b.data[i]} | |old(b.data)| <= i < |b.data| ::
      b.data[i] == ByteAt(x.data, ino, 4096 * n as int + (i - |old(b.data)|))
  {
    ghost var n0 := |b.data|;
    forall m: uint64 | n <= m < n + r
      ensures OkBlk(x.store.geometry, bn + (m - n)) { PosOfOk(ino, m); x.BlkOf(PosOf(ino, m));
      assert x.blockMap[PosOf(ino, m)] == bn + (m - n); }
    assert OkBlk(x.store.geometry, bn + (n - n)) && OkBlk(x.store.geometry, bn + (n + r - 1 - n));
    x.store.ReadBlocks(txn, bn, r, b);
    forall i: int | n0 <= i < |b.data| ensures b.data[i] == ByteAt(x.data, ino, 4096 * n as int + (i - n0))
    {
      var m := n + ((i - n0) / 4096) as uint64;
      PosOfOk(ino, m);
      assert x.blockMap[PosOf(ino, m)] == bn + (m - n);
      x.BlkOf(PosOf(ino, m));
      BlockByte(x.data, ino, 4096 * n as int + (i - n0));
      assert (4096 * n as int + (i - n0)) / 4096 == m as int && (4096 * n as int + (i - n0)) % 4096 == (i - n0) % 4096;
      reveal DataOk();
      assert x.data[PosOf(ino, m)] == x.store.blocks[bn + (m - n)];
    }
  }

  // The blocks with the n bytes at off are about to be read: a wish (Ahead in txn.s.dfy), and no more.
  method Prefetch(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, off: uint64, n: uint64)
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && off as int + n as int <= 549755813888
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
        r := Adjacent(x, ip, ino, ck, cj, pb, i, bn, end - i);
        txn.Ahead(bn, r);
      }
      i := i + r;
    }
  }

  // one byte of a chunk fetched
  lemma OneByte(x: BlockTreeFs, p: Pos, b0: seq<byte>, b1: seq<byte>, s: seq<byte>, ino: uint64, off: uint64,
    done: uint64, c: uint64, i: int)
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
