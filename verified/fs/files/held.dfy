// Which blocks a file has: the set that the specification calls `held`, kept beside
// the bytes, and what the steps on the block trees do to it.
//
// Blocks of data alone count, and only those before the end of the file: what was cut
// off is not the file's any more, though it may wait to be freed. The inode counts these too
// (used), and so has the number of `held` when nothing waits.
include "../blocks/counted.dfy"
include "../spec/local.s.dfy"
module HeldBlocks {
  import opened Machine
  import opened VolumeGeometry
  import opened InodeFormat
  import opened Positions
  import opened BlockTreeSpec
  import opened AllocatedRange
  import opened CountedBlocks
  import C = NfsCommon
  import Local = NfsLocal

  type Helds = map<uint64, set<int>>

  // h: the blocks of a file of n bytes
  predicate IsHeld(blockMap: BlkMap, ino: uint64, n: int, h: set<int>)
  { forall b: int {:trigger b in h} {:trigger There(blockMap, ino, b)} :: b in h <==>
    4096 * b < n && There(blockMap, ino, b) }
  predicate {:opaque} HeldOk(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds)
  { forall i: uint64 {:trigger OkIno(g, i)} | OkIno(g, i) :: 
      i in metas && i in held && IsHeld(blockMap, i, metas[i].size as int, held[i]) &&
        Counted(blockMap, i, metas[i].used as int) }

  // all blocks that the bytes lie in are there: overwriting them needs no space
  predicate Mapped(blockMap: BlkMap, ino: uint64, off: uint64, len: uint64)
  {
    forall n: uint64 {:trigger PosOf(ino, n)} | off as int / 4096 <= n as int &&
      4096 * n as int < off as int + len as int ::
      PosOf(ino, n) in blockMap && blockMap[PosOf(ino, n)] != 0
  }

  lemma HeldOf(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64)
    requires HeldOk(g, blockMap, metas, held) && OkIno(g, ino)
    ensures ino in metas && ino in held && IsHeld(blockMap, ino, metas[ino].size as int, held[ino]) &&
      Counted(blockMap, ino, metas[ino].used as int)
  { reveal HeldOk(); }

  // What the count tells of these blocks: there are no more, and no fewer when nothing waits to be freed.
  lemma HeldCount(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64)
    requires IsDom(blockMap) && HeldOk(g, blockMap, metas, held) && ReachOk(g, blockMap, metas) && OkIno(g, ino)
    ensures ino in metas && ino in held && |held[ino]| <= metas[ino].used as int &&
      (metas[ino].shrink == 0 ==> |held[ino]| == metas[ino].used as int)
  {
    HeldOf(g, blockMap, metas, held, ino);
    var h, m := held[ino], metas[ino];
    var s := CountOf(blockMap, ino, m.used as int);
    forall b: int | b in h ensures b in s { assert There(blockMap, ino, b); }
    Subset(h, s);
    if m.shrink == 0 {
      forall b: int | b in s ensures b in h
      {
        assert There(blockMap, ino, b);
        FirstOf(ino, b as uint64);
        assert b < Limit(m) by { reveal ReachOk(); }
      }
      assert h == s;
    }
  }

  // what the file has of these blocks is there
  lemma HeldMapped(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64, off: uint64,
    len: uint64)
    requires HeldOk(g, blockMap, metas, held) && OkIno(g, ino) && ino in held &&
      C.Blocks(off as int, len as int) <= held[ino]
    ensures Mapped(blockMap, ino, off, len)
  {
    HeldOf(g, blockMap, metas, held, ino);
    forall n: uint64 | off as int / 4096 <= n as int && 4096 * n as int < off as int + len as int
      ensures PosOf(ino, n) in blockMap && blockMap[PosOf(ino, n)] != 0
    { assert n as int in C.Blocks(off as int, len as int); assert There(blockMap, ino, n as int); }
  }

  // ---- the steps: what concerns one inode leaves the others alone ----

  predicate Untouched(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64)
  { forall i: uint64, b: int {:trigger There(blockMap, i, b)} | i != ino :: There(blockMap, i, b) <==>
    There(blockMap0, i, b) }
  lemma HeldStep(g: Geometry, blockMap0: BlkMap, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64,
    m: Meta, h: set<int>)
    requires HeldOk(g, blockMap0, metas, held) && Untouched(blockMap0, blockMap, ino) &&
      IsHeld(blockMap, ino, m.size as int, h) && Counted(blockMap, ino, m.used as int)
    ensures HeldOk(g, blockMap, metas[ino := m], held[ino := h])
  {
    reveal HeldOk();
    forall i: uint64 | OkIno(g, i) && i != ino
      ensures i in metas && i in held && IsHeld(blockMap, i, metas[i].size as int, held[i]) &&
        Counted(blockMap, i, metas[i].used as int)
    {
      forall b: int
        ensures b in held[i] <==> 4096 * b < metas[i].size as int &&
        There(blockMap, i, b) { assert There(blockMap, i, b) <==> There(blockMap0, i, b); }
      CountSame(blockMap0, blockMap, i, metas[i].used as int);
    }
  }

  // other attributes
  lemma HeldSame(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64, m: Meta)
    requires HeldOk(g, blockMap, metas, held) && OkIno(g, ino) && ino in metas && m.size == metas[ino].size &&
      m.used == metas[ino].used
    ensures HeldOk(g, blockMap, metas[ino := m], held)
  {
    HeldOf(g, blockMap, metas, held, ino);
    HeldStep(g, blockMap, blockMap, metas, held, ino, m, held[ino]);
    assert held[ino := held[ino]] == held;
  }

  // len bytes at off were written
  lemma HeldWritten(g: Geometry, blockMap0: BlkMap, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds,
    ino: uint64,
    m: Meta, off: uint64, len: uint64)
    requires IsDom(blockMap0) && IsDom(blockMap) && HeldOk(g, blockMap0, metas, held) && ReachOk(g, blockMap0, metas) &&
      OkIno(g, ino) && ino in metas && ino in held
    requires 0 < len && off as int + len as int <= 549755813888
    requires Grew(blockMap0, blockMap, ino, off as int / 4096, (off as int + len as int + 4095) / 4096) &&
      Mapped(blockMap, ino, off, len)
    requires var end := off as int + len as int; if end <= metas[ino].size as int then m.size == metas[ino].size
      else m.size as int == end && metas[ino].shrink == 0
    requires Counted(blockMap, ino, m.used as int)
    ensures HeldOk(g, blockMap, metas[ino := m], held[ino := held[ino] + C.Blocks(off as int, len as int)])
    ensures m.used as int == metas[ino].used as int + |C.Blocks(off as int, len as int) - held[ino]|
  {
    HeldOf(g, blockMap0, metas, held, ino);
    var h, n := held[ino] + C.Blocks(off as int, len as int), metas[ino].size as int;
    ReachOf(g, blockMap0, metas, ino);
    reveal Grew();
    forall b: int ensures b in h <==> 4096 * b < m.size as int && There(blockMap, ino, b)
    {
      if 0 <= b < NODATA {
        var p := PosOf(ino, b as uint64);
        FirstOf(ino, b as uint64);
        assert There(blockMap0, ino, b) <==> blockMap0[p] != 0;
        if There(blockMap, ino, b) && !There(blockMap0, ino, b) { assert blockMap[p] != blockMap0[p]; }
        if There(blockMap0, ino, b) && n <= 4096 * b { assert blockMap0[p] != 0; reveal Within(); }
        if b in C.Blocks(off as int, len as int) { assert blockMap[p] != 0; }
      }
    }
    UntouchedGrew(blockMap0, blockMap, ino, off as int / 4096, (off as int + len as int + 4095) / 4096);
    HeldStep(g, blockMap0, blockMap, metas, held, ino, m, h);
    CountWritten(g, blockMap0, blockMap, metas, held, ino, m, off, len);
  }
  // the blocks that were given out are those that the file had not
  lemma CountWritten(g: Geometry, blockMap0: BlkMap, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds,
    ino: uint64,
    m: Meta, off: uint64, len: uint64)
    requires IsDom(blockMap0) && IsDom(blockMap) && HeldOk(g, blockMap0, metas, held) && ReachOk(g, blockMap0, metas) &&
      OkIno(g, ino) && ino in metas && ino in held
    requires Grew(blockMap0, blockMap, ino, off as int / 4096, (off as int + len as int + 4095) / 4096) &&
      Mapped(blockMap, ino, off, len)
    requires 0 < len && off as int + len as int <= 549755813888 &&
      (off as int + len as int <= metas[ino].size as int || metas[ino].shrink == 0)
    requires Counted(blockMap, ino, m.used as int)
    ensures m.used as int == metas[ino].used as int + |C.Blocks(off as int, len as int) - held[ino]|
  {
    HeldOf(g, blockMap0, metas, held, ino);
    var more := C.Blocks(off as int, len as int) - held[ino];
    var s0 := CountOf(blockMap0, ino, metas[ino].used as int);
    var s := CountOf(blockMap, ino, m.used as int);
    forall b: int ensures b in s <==> b in s0 || b in more
    {
      if 0 <= b < NODATA {
        var p := PosOf(ino, b as uint64);
        FirstOf(ino, b as uint64);
        PosOfOk(ino, b as uint64);
        assert There(blockMap0, ino, b) <==> blockMap0[p] != 0;
        assert There(blockMap, ino, b) <==> blockMap[p] != 0;
        reveal Grew();
        if blockMap0[p] != blockMap[p] { assert b in C.Blocks(off as int, len as int); }
      }
      if b in more { assert There(blockMap, ino, b); }
    }
    forall b: int | b in more ensures b !in s0
    { if b in s0 { assert There(blockMap0, ino, b); FirstOf(ino, b as uint64); assert metas[ino].shrink == 0 ==>
      b < Limit(metas[ino]) by { reveal ReachOk(); } } }
    assert s == s0 + more;
  }
  lemma UntouchedGrew(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, lo: int, n: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && Grew(blockMap0, blockMap, ino, lo, n)
    ensures Untouched(blockMap0, blockMap, ino)
  {
    reveal Grew();
    forall i: uint64, b: int | i != ino ensures There(blockMap, i, b) <==> There(blockMap0, i, b)
    { if 0 <= b < NODATA { PosOfOk(i, b as uint64); } }
  }

  // the file was cut to m.size, or grew to it
  lemma HeldResized(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64, m: Meta)
    requires IsDom(blockMap) && HeldOk(g, blockMap, metas, held) && ReachOk(g, blockMap, metas) && OkIno(g, ino) &&
      ino in metas && ino in held
    requires m.used == metas[ino].used && (metas[ino].size < m.size ==> metas[ino].shrink == 0)
    ensures HeldOk(g, blockMap, metas[ino := m], held[ino := C.HeldBelow(held[ino], m.size as int)])
  {
    HeldOf(g, blockMap, metas, held, ino);
    var h := C.HeldBelow(held[ino], m.size as int);
    forall b: int ensures b in h <==> 4096 * b < m.size as int && There(blockMap, ino, b)
    {
      if There(blockMap, ino, b) && metas[ino].size as int <= 4096 * b < m.size as int {
        FirstOf(ino, b as uint64);
        reveal ReachOk();
      }
    }
    HeldStep(g, blockMap, blockMap, metas, held, ino, m, h);
  }

  // blocks behind the end were freed
  lemma HeldFreed(g: Geometry, blockMap0: BlkMap, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64,
    m: Meta, lo: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && HeldOk(g, blockMap0, metas, held) && OkIno(g, ino) && ino in metas
    requires Shrank(blockMap0, blockMap, ino, lo) && m.size == metas[ino].size && m.size as int <= 4096 * lo &&
      Counted(blockMap, ino, m.used as int)
    ensures HeldOk(g, blockMap, metas[ino := m], held) && m.used <= metas[ino].used
  {
    HeldOf(g, blockMap0, metas, held, ino);
    var h := held[ino];
    reveal Shrank();
    forall i: uint64, b: int | 0 <= b < NODATA && (i != ino || b < lo)
      ensures There(blockMap, i, b) <==> There(blockMap0, i, b)
    { FirstOf(i, b as uint64); }
    forall b: int ensures b in h <==> 4096 * b < m.size as int && There(blockMap, ino, b)
    { assert There(blockMap0, ino, b) ==> 0 <= b < NODATA; }
    HeldStep(g, blockMap0, blockMap, metas, held, ino, m, h);
    assert held[ino := h] == held;
    forall b: int | There(blockMap, ino, b)
      ensures There(blockMap0, ino, b) { PosOfOk(ino, b as uint64); FirstOf(ino, b as uint64); }
    CountFewer(blockMap0, blockMap, ino, metas[ino].used as int, m.used as int);
  }

  // the blocks m to n - 1, none of which lies behind the end, are holes now
  lemma HeldPunched(g: Geometry, blockMap0: BlkMap, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds,
    ino: uint64,
    x: Meta, m: int, n: int)
    requires IsDom(blockMap0) && IsDom(blockMap) && HeldOk(g, blockMap0, metas, held) && OkIno(g, ino) &&
      ino in metas && ino in held
    requires 0 <= m <= n && 4096 * n < metas[ino].size as int + 4096 && x.size == metas[ino].size &&
      Counted(blockMap, ino, x.used as int)
    requires Emptied(blockMap0, blockMap, ino, m, n) && forall i: int {:trigger There(blockMap, ino, i)} | m <= i < n ::
      !There(blockMap, ino, i)
    ensures HeldOk(g, blockMap, metas[ino := x], held[ino := held[ino] - Local.Span(m, n)])
    ensures x.used as int == metas[ino].used as int - |held[ino] * Local.Span(m, n)|
  {
    HeldOf(g, blockMap0, metas, held, ino);
    var h, gone := held[ino], held[ino] * Local.Span(m, n);
    reveal Emptied();
    forall i: uint64, b: int | 0 <= b < NODATA && (i != ino || b < m || n <= b)
      ensures There(blockMap, i, b) <==> There(blockMap0, i, b)
    { FirstOf(i, b as uint64); }
    forall b: int ensures b in h - Local.Span(m, n) <==> 4096 * b < x.size as int && There(blockMap, ino, b)
    { assert There(blockMap0, ino, b) ==> 0 <= b < NODATA; assert There(blockMap, ino, b) ==> 0 <= b < NODATA; }
    HeldStep(g, blockMap0, blockMap, metas, held, ino, x, h - Local.Span(m, n));
    var s0 := CountOf(blockMap0, ino, metas[ino].used as int);
    var s := CountOf(blockMap, ino, x.used as int);
    forall b: int ensures b in s0 <==> b in s || b in gone
    { assert There(blockMap0, ino, b) ==> 0 <= b < NODATA; assert There(blockMap, ino, b) ==> 0 <= b < NODATA; }
    forall b: int | b in gone ensures b !in s { assert !There(blockMap, ino, b); }
    assert s0 == s + gone;
  }

  // no block lies behind the end
  lemma HeldAll(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64)
    requires HeldOk(g, blockMap, metas, held) && OkIno(g, ino) && ino in metas && ino in held
    ensures held[ino := C.HeldBelow(held[ino], metas[ino].size as int)] == held
  { HeldOf(g, blockMap, metas, held, ino); assert C.HeldBelow(held[ino], metas[ino].size as int) == held[ino]; }
  // a file of no bytes, of which nothing waits to be freed, has no blocks, and counts none
  lemma HeldNone(g: Geometry, blockMap: BlkMap, metas: map<uint64, Meta>, held: Helds, ino: uint64)
    requires IsDom(blockMap) && HeldOk(g, blockMap, metas, held) && ReachOk(g, blockMap, metas) && OkIno(g, ino) &&
      ino in metas && metas[ino].size == 0 && metas[ino].shrink == 0
    ensures ino in held && held[ino] == {} && metas[ino].used == 0
  { HeldCount(g, blockMap, metas, held, ino); HeldOf(g, blockMap, metas, held, ino); forall b: int
    ensures b !in held[ino] { if b in held[ino] { assert There(blockMap, ino, b); } } }
}
