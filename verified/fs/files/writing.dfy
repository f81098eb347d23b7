// Putting bytes into blocks: overwrite a block that is there, swap it for another, or fill a hole.
//
// A block overwritten as a whole is not read. The holes below one indirect block
// are filled together, so that it is rewritten once for all of them. What fills a hole
// as a whole, and is much, is wished to go straight home, not through the log. Only a block that
// is free can: so of much that is written over what is there, the blocks are swapped for free ones.
include "reading.dfy"
include "unmapping.dfy"
include "held.dfy"
include "../spec/room.s.dfy"
module Writing {
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
  import opened Reading
  import opened Unmapping
  import opened AllocatedRange
  import opened HeldBlocks
  import Room = NfsRoom

  // the blocks that n bytes take
  function BlocksFor(n: int): int { (n + 4095) / 4096 }

  // the blocks that m bytes at pos lie in
  function {:opaque} Spanned(pos: int, m: int): int { if m == 0 then 0 else BlocksFor(pos + m) - pos / 4096 }
  predicate Whole(pos: uint64, m: uint64)
    requires pos as int + m as int <= 549755813888
  { m == 0 || (pos + m) % 4096 == 0 }
  lemma SpanNone(pos: int) ensures Spanned(pos, 0) == 0 { reveal Spanned(); }
  // c bytes more, which lie in one block, or begin at one
  lemma SpanMore(pos: uint64, m: uint64, c: uint64)
    requires pos as int + m as int + c as int <= 549755813888 && Whole(pos, m)
    ensures Spanned(pos as int, m as int + c as int) == Spanned(pos as int, m as int)
      + Spanned(pos as int + m as int, c as int)
    ensures 0 < c && (pos + m) % 4096 + c <= 4096 ==> Spanned(pos as int + m as int, c as int) == 1
    ensures c % 4096 == 0 && Whole(pos + m, 0) && (pos + m) % 4096 == 0 ==>
      Spanned(pos as int + m as int, c as int) == c as int / 4096
    ensures 0 <= Spanned(pos as int + m as int, c as int) && (0 < c ==> 0 < Spanned(pos as int + m as int, c as int))
  { reveal Spanned(); }
  // what Store may take to have stored m bytes
  function Taken(off: int, m: int): int
    requires 0 <= off && 0 <= m
  { if m == 0 then 0 else Spanned(off, m) + Room.Leading(off / 4096, BlocksFor(off + m)) }
  lemma TakenAll(off: int, m: int)
    requires 0 <= off && 0 < m
    ensures Taken(off, m) == Room.Bytes(off, m)
  { reveal Spanned(); }
  // c bytes more, which took one for each block and lead for what leads to them
  lemma TakenMore(off: uint64, done: uint64, c: uint64, lead: int)
    requires off as int + done as int + c as int <= 549755813888 && Whole(off, done) && 0 < c
    requires var lo, n := off as int / 4096, (off + done) as int / 4096;
      Room.Leading(lo, n) + lead <= Room.Leading(lo, n + 1)
    ensures Taken(off as int, done as int) + lead + Spanned(off as int + done as int, c as int)
      <= Taken(off as int, done as int + c as int)
  {
    var lo, n := off as int / 4096, (off + done) as int / 4096;
    var top := BlocksFor(off as int + done as int + c as int);
    SpanMore(off, done, c);
    SpanNone(off as int);
    assert done == 0 ==> Room.Leading(lo, n) == 0;
    assert 0 < done ==> BlocksFor(off as int + done as int) == n;
    if n + 1 < top { Stretches(lo, n + 1, top); }
  }

  // how many blocks are missing of those that lead to block n of a file, at most
  function Lead(blockMap: BlkMap, ino: uint64, n: uint64): int
  {
    var p := PosOf(ino, n);
    if p.level > 0 && Parent(p) in blockMap && blockMap[Parent(p)] != 0 then 0 else p.level as int
  }
  lemma LeadStep(x: BlockTreeFs, ino: uint64, off: uint64, done: uint64)
    requires Ok(x) && off as int + done as int < 549755813888 && (0 < done ==> Mapped(x.blockMap, ino, off, done)) &&
      Whole(off, done)
    ensures var lo, n := off as int / 4096, (off + done) / 4096;
      Room.Leading(lo, n as int) + Lead(x.blockMap, ino, n) <= Room.Leading(lo, n as int + 1)
  {
    var lo, n := off as int / 4096, (off + done) / 4096;
    if lo < n as int && 12 < n && (n - 13) / 512 == (n - 12) / 512 {
      PosOfOk(ino, n - 1);
      PosOfOk(ino, n);
      assert 4096 * (n - 1) as int < off as int + done as int;
      assert x.blockMap[PosOf(ino, n - 1)] != 0;
      x.AboveThere(PosOf(ino, n - 1));
      SameStretch(ino, n);
      assert Lead(x.blockMap, ino, n) == 0;
    }
    Stretches(lo, n as int, n as int + 1);
  }
  lemma SameStretch(ino: uint64, n: uint64)
    requires 12 < n < 134480396 && (n - 13) / 512 == (n - 12) / 512
    ensures PosOf(ino, n - 1).level > 0 && PosOf(ino, n).level > 0 &&
      Parent(PosOf(ino, n - 1)) == Parent(PosOf(ino, n))
  { }
  lemma Stretches(lo: int, n: int, end: int)
    requires 0 <= lo <= n < end <= 134217728
    ensures Room.Leading(lo, n) <= Room.Leading(lo, end)
    ensures lo == n || n <= 12 || (n - 13) / 512 != (n - 12) / 512 ==>
      Room.Leading(lo, n) + MaxLev(FlatK(n as uint64)) as int <= Room.Leading(lo, end)
  { }

  // overwrite c bytes within one block that is there (number bn)
  method Overwrite(x: BlockTreeFs, txn: Txn, ghost ino: uint64, bn: uint64, pos: uint64, src: Bytes, so: uint64,
    c: uint64)
    modifies x.Repr()
    requires Ok(x) && txn.volume == x.store.volume && bn != 0 && OkBlk(x.store.geometry, bn)
    requires pos as int + c as int <= 549755813888 && 0 < c && pos % 4096 + c <= 4096
    requires so as int + c as int <= |src.data|
    requires PosOf(ino, pos / 4096) in x.blockMap && x.blockMap[PosOf(ino, pos / 4096)] == bn
    ensures Ok(x) && x.blockMap == old(x.blockMap) && x.store.inodes == old(x.store.inodes)
    ensures Wrote(old(x.data), x.data, ino, pos as int, src.data[so as int .. so as int + c as int])
    ensures forall q: Pos, v: seq<byte> {:trigger x.IsNode(q, v)} | OkPos(q) && !IsData(q) && q in x.blockMap &&
      old(x.IsNode(q, v)) :: x.IsNode(q, v)
  {
    var bo := pos % 4096;
    ghost var p := PosOf(ino, pos / 4096);
    PosOfOk(ino, pos / 4096);
    var b: Bytes;
    if c == 4096 {
      b := src.CopyOf(so);
    } else {
      var blk := x.ReadAt(txn, bn, p, true);
      b := txn.Copy(blk);
      b.CopyFrom(bo, src, so, c);
    }
    WroteBlock(x.data, ino, pos as int, src.data[so as int .. so as int + c as int], b.data);
    x.WriteData(txn, bn, b, p);
    forall q: Pos | OkPos(q) && !IsData(q) && x.blockMap[q] != 0
      ensures x.blockMap[q] != bn
    { reveal OwnerOk(); assert OkPos(p); }
  }

  // the first contents of a block that was a hole: c bytes of src, zeros around them
  method FirstBlock(txn: Txn, ghost d: Data, ghost ino: uint64, pos: uint64, src: Bytes, so: uint64, c: uint64)
    returns (b: Bytes)
    requires DataDom(d) && pos as int + c as int <= 549755813888 && 0 < c && pos % 4096 + c <= 4096
    requires so as int + c as int <= |src.data|
    requires PosOf(ino, pos / 4096) in d && d[PosOf(ino, pos / 4096)] == Zeros(4096)
    ensures fresh(b) && |b.data| == 4096
    ensures var d' := d[PosOf(ino, pos / 4096) := b.data];
      DataDom(d') && Wrote(d, d', ino, pos as int, src.data[so as int .. so as int + c as int])
  {
    if c == 4096 {
      b := src.CopyOf(so);
    } else {
      var none := ZeroBlk();
      b := txn.Copy(none);
      b.CopyFrom(pos % 4096, src, so, c);
    }
    WroteBlock(d, ino, pos as int, src.data[so as int .. so as int + c as int], b.data);
  }

  lemma Hole(x: BlockTreeFs, p: Pos)
    requires Ok(x) && IsData(p) && p in x.blockMap && x.blockMap[p] == 0
    ensures p in x.data && x.data[p] == Zeros(4096)
  { reveal DataOk(); assert OkPos(p); }
  lemma HoleBut(x: BlockTreeFs, p: Pos, pn: uint64, t: Bytes)
    requires x.ValidBut(pn, t) && IsData(p) && p in x.blockMap && x.blockMap[p] == 0
    ensures p in x.data && x.data[p] == Zeros(4096)
  { reveal DataOk(); assert OkPos(p); }

  // are there n whole blocks in the bytes?
  predicate method Much(off: uint64, len: uint64, n: uint64)
    requires off as int + len as int <= 549755813888 && n <= SWAP
  { (off + 4095) / 4096 + n <= (off + len) / 4096 }
  const BULK: uint64 := 8       // so many fill holes past the log
  // so many are not written over what is there: fewer would scatter a file that is written at random
  const SWAP: uint64 := 16

  // fill a hole in one of the direct slots; bulk: what is written is much
  method FillDirect(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, pos: uint64, src: Bytes, so: uint64, c: uint64,
    bulk: bool) returns (ok: bool)
    modifies x.Repr(), ip, txn.blocks
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && src != ip
    requires pos as int + c as int <= 549755813888 && 0 < c && pos % 4096 + c <= 4096 && pos / 4096 < 12
    requires so as int + c as int <= |src.data|
    requires PosOf(ino, pos / 4096) in x.blockMap && x.blockMap[PosOf(ino, pos / 4096)] == 0
    ensures ok ==> Ok(x) && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures ok ==> Wrote(old(x.data), x.data, ino, pos as int, src.data[so as int .. so as int + c as int])
    ensures ok ==> Grew(old(x.blockMap), x.blockMap, ino, pos as int / 4096, BlocksFor(pos as int + c as int)) &&
      Mapped(x.blockMap, ino, pos, c)
    ensures GotBlocks(txn) <= old(GotBlocks(txn)) + (if ok then 1 else 0) && (!ok ==> txn.blocks.Dry())
  {
    var k := pos / 4096;
    ghost var p := PosOf(ino, k);
    PosOfOk(ino, k);
    Hole(x, p);
    var b := FirstBlock(txn, x.data, ino, pos, src, so, c);
    var near: uint64 := 0;
    if 0 < k { near := GetSlot(ip, k - 1); }
    var bn: uint64;
    assert p == Pos(ino, k, 0, 0);
    txn.Position(k, false);
    ok, bn := x.AllocRoot(txn, ip, ino, k, near, b);
    if bulk && ok && c == 4096 { txn.Bulk(bn); }
    FirstOf(ino, k);
    if ok { GrewOne(old(x.blockMap), p, bn, k as int, BlocksFor(pos as int + c as int)); }
  }

  // fill the holes from pos on below one indirect block: m bytes, more than none
  method FillRun(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, pos: uint64, src: Bytes, so: uint64, len: uint64,
    bulk: bool) returns (ok: bool, m: uint64)
    modifies x.Repr(), ip, txn.blocks
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && src != ip
    requires pos as int + len as int <= 549755813888 && 0 < len && 12 <= pos / 4096
    requires so as int + len as int <= |src.data|
    requires PosOf(ino, pos / 4096) in x.blockMap && x.blockMap[PosOf(ino, pos / 4096)] == 0
    ensures ok ==> Ok(x) && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures ok ==> 0 < m <= len && Wrote(old(x.data), x.data, ino, pos as int,
      src.data[so as int .. so as int + m as int])
    ensures ok ==> Grew(old(x.blockMap), x.blockMap, ino, pos as int / 4096, BlocksFor(pos as int + len as int)) &&
      Mapped(x.blockMap, ino, pos, m)
    ensures ok ==> m == len || Whole(pos, m)
    ensures ok ==> GotBlocks(txn) <= old(GotBlocks(txn)) + Lead(old(x.blockMap), ino, pos / 4096)
      + Spanned(pos as int, m as int)
    ensures !ok ==> txn.blocks.Dry() && GotBlocks(txn) < old(GotBlocks(txn)) + Lead(old(x.blockMap), ino, pos / 4096)
      + Spanned(pos as int, len as int)
  {
    var k := FlatK(pos / 4096);
    var lev := MaxLev(k);
    var jp := FlatJ(pos / 4096) / 512;
    ghost var q := Pos(ino, k, lev - 1, jp);
    PosOfOk(ino, pos / 4096);
    ParentOk(PosOf(ino, pos / 4096));
    assert q == Parent(PosOf(ino, pos / 4096));
    ghost var d0 := x.data;
    ghost var i0 := x.store.inodes;
    m := 0;
    var pn: uint64;
    ghost var b0, lo, top := x.blockMap, pos as int / 4096, BlocksFor(pos as int + len as int);
    txn.Position(pos / 4096, true);
    ghost var got := GotBlocks(txn) + Lead(b0, ino, pos / 4096);
    ok, pn := x.ResolveAlloc(txn, ip, ino, k, lev - 1, jp);
    SpanMore(pos, 0, len);
    SpanNone(pos as int);
    if !ok { return; }
    assert x.blockMap[PosOf(ino, pos / 4096)] == 0 by { reveal Grew(); assert OkPos(PosOf(ino, pos / 4096)); }
    FirstOf(ino, pos / 4096);
    FirstAbove(q, PosOf(ino, pos / 4096));
    GrewNone(x.blockMap, ino, lo, top);
    GrewMore(b0, x.blockMap, x.blockMap, ino, NODATA, First(q) + 1, lo, top);
    var blk := x.store.ReadBlock(txn, pn, true);
    var t := txn.Copy(blk);
    assert x.store.blocks[pn := t.data] == x.store.blocks;
    WroteNone(d0, ino, pos as int);
    assert src.data[so as int .. so as int + m as int] == [];
    assert src.Len() as int == |src.data|;
    var near := pn;
    while m < len
      invariant m <= len && fresh(t) && t != ip
      invariant x.ValidBut(pn, t) && DataDom(x.data) && x.IsInode(ino, ip)
      invariant ino in i0 && x.store.inodes == i0[ino := x.store.inodes[ino]] &&
        x.SameMeta(x.store.inodes[ino].meta, i0[ino].meta)
      invariant pn != 0 && q in x.blockMap && x.blockMap[q] == pn
      invariant Grew(b0, x.blockMap, ino, lo, top)
      invariant Wrote(d0, x.data, ino, pos as int, src.data[so as int .. so as int + m as int])
      invariant 0 < m ==> Mapped(x.blockMap, ino, pos, m)
      invariant m == 0 ==> x.blockMap[PosOf(ino, pos / 4096)] == 0
      invariant m == len || Whole(pos, m)
      invariant GotBlocks(txn) <= got + Spanned(pos as int, m as int)
      decreases len - m
    {
      var at := pos + m;
      var n := at / 4096;
      if FlatK(n) != k || FlatJ(n) / 512 != jp { break; }
      var j := FlatJ(n);
      ghost var p := PosOf(ino, n);
      PosOfOk(ino, n);
      ParentOk(p);
      assert Parent(p) == q;
      var bn := t.U64(8 * (j % 512));
      x.ChildBut(p, pn, t);
      if bn != 0 { break; }
      var c := Min(4096 - at % 4096, len - m);
      HoleBut(x, p, pn, t);
      var b := FirstBlock(txn, x.data, ino, at, src, so + m, c);
      ghost var d1, b1 := x.data, x.blockMap;
      if j % 512 != 0 {
        var left := t.U64(8 * (j % 512 - 1));
        if left != 0 { near := left; }
      }
      txn.Position(n, false);
      ok, bn := x.AddChild(txn, ip, t, pn, ino, k, lev, j, true, near, b);
      SpanMore(pos, m, len - m);
      SpanMore(pos, m, c);
      if !ok { return; }
      if bulk && c == 4096 { txn.Bulk(bn); }
      FirstOf(ino, n);
      GrewOne(b1, p, bn, lo, top);
      GrewMore(b0, b1, x.blockMap, ino, lo, top, lo, top);
      WroteMore(d0, d1, x.data, ino, pos as int, src.data[so as int .. so as int + m as int],
        src.data[so as int + m as int .. so as int + m as int + c as int]);
      Joined(src.data, so as int, so as int + m as int, so as int + m as int + c as int);
      near := bn;
      MappedMore(b1, x.blockMap, ino, pos, m, c, lo, top);
      m := m + c;
    }
    x.CloseParent(txn, pn, t);
  }

  // Swap the blocks that are there from pos on, below one indirect block, for others: m bytes. If it is none, there is
  // no room.
  method SwapRun(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, pos: uint64, src: Bytes, so: uint64, len: uint64)
    returns (m: uint64)
    modifies x.Repr(), txn.blocks
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip)
    requires pos as int + len as int <= 549755813888 && 4096 <= len && 12 <= pos / 4096 && pos % 4096 == 0
    requires so as int + len as int <= |src.data|
    requires PosOf(ino, pos / 4096) in x.blockMap && x.blockMap[PosOf(ino, pos / 4096)] != 0
    ensures Ok(x) && x.IsInode(ino, ip) && x.store.inodes == old(x.store.inodes)
    ensures m <= len && Wrote(old(x.data), x.data, ino, pos as int, src.data[so as int .. so as int + m as int])
    ensures Grew(old(x.blockMap), x.blockMap, ino, pos as int / 4096, BlocksFor(pos as int + len as int)) &&
      (0 < m ==> Mapped(x.blockMap, ino, pos, m))
    ensures m == 0 ==> x.data == old(x.data) && x.blockMap == old(x.blockMap)
    ensures m % 4096 == 0 && GotBlocks(txn) <= old(GotBlocks(txn)) + m as int / 4096
  {
    var k := FlatK(pos / 4096);
    var lev := MaxLev(k);
    var jp := FlatJ(pos / 4096) / 512;
    ghost var q := Pos(ino, k, lev - 1, jp);
    PosOfOk(ino, pos / 4096);
    ParentOk(PosOf(ino, pos / 4096));
    ghost var d0, i0, b0 := x.data, x.store.inodes, x.blockMap;
    ghost var lo, top := pos as int / 4096, BlocksFor(pos as int + len as int);
    var pn := x.Resolve(txn, ip, ino, k, lev - 1, jp, true);
    assert pn != 0 && OkBlk(x.store.geometry, pn) by { reveal LinksOk(); reveal OwnerOk(); }
    var blk := x.store.ReadBlock(txn, pn, true);
    var t := txn.Copy(blk);
    assert x.store.blocks[pn := t.data] == x.store.blocks;
    GrewNone(b0, ino, lo, top);
    WroteNone(d0, ino, pos as int);
    m := 0;
    assert src.data[so as int .. so as int + m as int] == [];
    assert src.Len() as int == |src.data|;
    var near := pn;
    while m + 4096 <= len
      invariant m <= len && m % 4096 == 0 && fresh(t) && t != ip
      invariant x.ValidBut(pn, t) && DataDom(x.data) && x.IsInode(ino, ip) && x.store.inodes == i0
      invariant pn != 0 && q in x.blockMap && x.blockMap[q] == pn
      invariant Grew(b0, x.blockMap, ino, lo, top)
      invariant Wrote(d0, x.data, ino, pos as int, src.data[so as int .. so as int + m as int])
      invariant 0 < m ==> Mapped(x.blockMap, ino, pos, m)
      invariant m == 0 ==> x.data == d0 && x.blockMap == b0
      invariant GotBlocks(txn) <= old(GotBlocks(txn)) + m as int / 4096
      decreases len - m
    {
      var at := pos + m;
      var n := at / 4096;
      if FlatK(n) != k || FlatJ(n) / 512 != jp { break; }
      var j := FlatJ(n);
      ghost var p := PosOf(ino, n);
      PosOfOk(ino, n);
      ParentOk(p);
      assert Parent(p) == q;
      var bn := t.U64(8 * (j % 512));
      x.ChildBut(p, pn, t);
      if bn == 0 { break; }
      if m == 0 && j % 512 != 0 {
        var left := t.U64(8 * (j % 512 - 1));
        if left != 0 { near := left; }
      }
      var b := src.CopyOf(so + m);
      ghost var d1, b1, s := x.data, x.blockMap, b.data;
      txn.Position(n, false);
      var ok;
      ok, bn := SwapChild(x, txn, ip, t, pn, bn, ino, k, lev, j, near, b);
      if !ok { break; }
      txn.Bulk(bn);
      WroteBlock(d1, ino, at as int, src.data[so as int + m as int .. so as int + m as int + 4096], s);
      FirstOf(ino, n);
      GrewOne(b1, p, bn, lo, top);
      GrewMore(b0, b1, x.blockMap, ino, lo, top, lo, top);
      WroteMore(d0, d1, x.data, ino, pos as int, src.data[so as int .. so as int + m as int],
        src.data[so as int + m as int .. so as int + m as int + 4096]);
      Joined(src.data, so as int, so as int + m as int, so as int + m as int + 4096);
      near := bn;
      MappedMore(b1, x.blockMap, ino, pos, m, 4096, lo, top);
      m := m + 4096;
    }
    x.CloseParent(txn, pn, t);
  }

  // c bytes more, within one block that is there
  lemma MappedMore(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, off: uint64, done: uint64, c: uint64, lo: int,
    top: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && Grew(blockMap0, blockMap, ino, lo, top) &&
      off as int + done as int + c as int <= 549755813888
    requires 0 < done ==> Mapped(blockMap0, ino, off, done)
    requires 0 < c && Mapped(blockMap, ino, off + done, c)
    ensures Mapped(blockMap, ino, off, done + c)
  {
    reveal Grew();
    forall n: uint64 | off as int / 4096 <= n as int && 4096 * n as int < off as int + done as int + c as int
      ensures PosOf(ino, n) in blockMap && blockMap[PosOf(ino, n)] != 0
    { PosOfOk(ino, n); if 0 < done && 4096 * n as int < off as int + done as int
      { assert blockMap0[PosOf(ino, n)] != 0; } }
  }

  // what was there still is
  lemma StillMapped(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, off: uint64, len: uint64, lo: int, top: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && Grew(blockMap0, blockMap, ino, lo, top) &&
      off as int + len as int <= 549755813888 && Mapped(blockMap0, ino, off, len)
    ensures Mapped(blockMap, ino, off, len)
  {
    reveal Grew();
    forall n: uint64 | off as int / 4096 <= n as int && 4096 * n as int < off as int + len as int
      ensures PosOf(ino, n) in blockMap && blockMap[PosOf(ino, n)] != 0
    { PosOfOk(ino, n); assert blockMap0[PosOf(ino, n)] != 0; }
  }

  // put src[so..so+len] at off; ok = false: no space
  method Store(x: BlockTreeFs, txn: Txn, ip: Bytes, ino: uint64, off: uint64, src: Bytes, so: uint64, len: uint64)
    returns (ok: bool)
    modifies x.Repr(), ip, txn.blocks
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && src != ip
    requires off as int + len as int <= 549755813888 && so as int + len as int <= |src.data|
    ensures ok ==> Ok(x) && x.IsInode(ino, ip) && x.OnlySlots(ino)
    ensures ok ==> Wrote(old(x.data), x.data, ino, off as int, src.data[so as int .. so as int + len as int])
    ensures ok ==> Grew(old(x.blockMap), x.blockMap, ino, off as int / 4096, BlocksFor(off as int + len as int))
    ensures Mapped(old(x.blockMap), ino, off, len) ==> ok
    ensures ok && 0 < len ==> Mapped(x.blockMap, ino, off, len)
    ensures GotBlocks(txn) <= old(GotBlocks(txn)) + Taken(off as int, len as int) - (if ok then 0 else 1)
    ensures !ok ==> txn.blocks.Dry()
  {
    ghost var d0 := x.data;
    ghost var i0 := x.store.inodes;
    ghost var b0, lo, top := x.blockMap, off as int / 4096, BlocksFor(off as int + len as int);
    GrewNone(b0, ino, lo, top);
    var done: uint64 := 0;
    var ck: uint64, cj: uint64 := 15, 0;
    var pb := ZeroBlk();
    var bulk := Much(off, len, BULK);
    var swap := Much(off, len, SWAP);
    WroteNone(d0, ino, off as int);
    assert src.data[so as int .. so as int + done as int] == [];
    assert src.Len() as int == |src.data|;
    while done < len
      invariant done <= len
      invariant Ok(x) && x.IsInode(ino, ip) && AtHand(x, ino, ck, cj, pb.v)
      invariant ino in i0 && x.store.inodes == i0[ino := x.store.inodes[ino]] &&
        x.SameMeta(x.store.inodes[ino].meta, i0[ino].meta)
      invariant Wrote(d0, x.data, ino, off as int, src.data[so as int .. so as int + done as int])
      invariant Grew(b0, x.blockMap, ino, lo, top)
      invariant 0 < done ==> Mapped(x.blockMap, ino, off, done)
      invariant done == len || Whole(off, done)
      invariant GotBlocks(txn) <= old(GotBlocks(txn)) + Taken(off as int, done as int)
      decreases len - done
    {
      var pos := off + done;
      var n := pos / 4096;
      LeadStep(x, ino, off, done);
      ghost var lead := Lead(x.blockMap, ino, n);
      TakenMore(off, done, len - done, lead);
      SpanMore(off, done, len - done);
      var c := Min(4096 - pos % 4096, len - done);
      ghost var d1, b1 := x.data, x.blockMap;
      var bn: uint64;
      bn, ck, cj, pb := Find(x, txn, ip, ino, n, true, ck, cj, pb);
      if Mapped(b0, ino, off, len) { StillMapped(b0, b1, ino, off, len, lo, top); }
      var m: uint64 := 0;
      if bn != 0 && swap && c == 4096 && 12 <= n {
        ck := 15;
        m := SwapRun(x, txn, ip, ino, pos, src, so + done, len - done);
        swap := m != 0;
        GrewNone(x.blockMap, ino, lo, top);
        GrewMore(b1, x.blockMap, x.blockMap, ino, pos as int / 4096, top, lo, top);
      }
      if m != 0 {
        c := m;
      } else if bn != 0 {
        Overwrite(x, txn, ino, bn, pos, src, so + done, c);
        GrewNone(b1, ino, lo, top);
      } else if n < 12 {
        ck := 15;
        ok := FillDirect(x, txn, ip, ino, pos, src, so + done, c, bulk);
        if !ok { return; }
        GrewNone(x.blockMap, ino, lo, top);
        GrewMore(b1, x.blockMap, x.blockMap, ino, pos as int / 4096, BlocksFor(pos as int + c as int), lo, top);
      } else {
        ck := 15;
        ok, c := FillRun(x, txn, ip, ino, pos, src, so + done, len - done, bulk);
        if !ok { return; }
        GrewNone(x.blockMap, ino, lo, top);
        GrewMore(b1, x.blockMap, x.blockMap, ino, pos as int / 4096, top, lo, top);
      }
      GrewMore(b0, b1, x.blockMap, ino, lo, top, lo, top);
      MappedMore(b1, x.blockMap, ino, off, done, c, lo, top);
      WroteMore(d0, d1, x.data, ino, off as int, src.data[so as int .. so as int + done as int],
        src.data[so as int + done as int .. so as int + done as int + c as int]);
      Joined(src.data, so as int, so as int + done as int, so as int + done as int + c as int);
      TakenMore(off, done, c, lead);
      SpanMore(off, done, c);
      done := done + c;
    }
    ok := true;
  }

  lemma Joined(s: seq<byte>, a: int, b: int, c: int)
    requires 0 <= a <= b <= c <= |s|
    ensures s[a..b] + s[b..c] == s[a..c]
  {}

  // zero the rest of the block that holds byte sz (nothing if sz is a multiple of the block)
  method ZeroTail(x: BlockTreeFs, txn: Txn, ip: Bytes, ghost ino: uint64, sz: uint64)
    modifies x.Repr()
    requires Ok(x) && txn.volume == x.store.volume && x.IsInode(ino, ip) && sz < 549755813888
    ensures Ok(x) && x.IsInode(ino, ip) && x.store.inodes == old(x.store.inodes) && x.blockMap == old(x.blockMap)
    ensures Wrote(old(x.data), x.data, ino, sz as int, Zeros(Up(sz as int) - sz as int))
  {
    ghost var z := Zeros(Up(sz as int) - sz as int);
    if sz % 4096 == 0 {
      WroteNone(x.data, ino, sz as int);
      assert z == [];
      return;
    }
    var n := sz / 4096;
    var k := FlatK(n);
    ghost var p := PosOf(ino, n);
    PosOfOk(ino, n);
    var bn := x.Resolve(txn, ip, ino, k, MaxLev(k), FlatJ(n), true);
    assert p in x.data && (bn == 0 ==> x.data[p] == Zeros(4096)) by { reveal DataOk(); assert IsData(p) && OkPos(p); }
    assert |z| == 4096 - (sz % 4096) as int;
    if bn == 0 {
      WroteBlock(x.data, ino, sz as int, z, Zeros(4096));
      assert x.data[p := Zeros(4096)] == x.data;
      return;
    }
    var blk := x.ReadAt(txn, bn, p, true);
    var none := ZeroBlk();
    var b := txn.Copy(none);
    b.CopyBlk(0, blk, 0, sz % 4096);
    WroteBlock(x.data, ino, sz as int, z, b.data);
    x.WriteData(txn, bn, b, p);
  }
}
