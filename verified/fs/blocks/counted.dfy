// How many blocks of data a file's tree has: what the inode's count has to be. Indirect blocks do
// not count; those that were cut off and wait to be freed do.
include "allocatedrange.dfy"
module CountedBlocks {
  import opened Machine
  import opened Positions
  import opened BlockTreeSpec
  import opened AllocatedRange

  // block b of the file is there
  predicate There(blockMap: BlkMap, ino: uint64, b: int)
  { 0 <= b < NODATA && PosOf(ino, b as uint64) in blockMap && blockMap[PosOf(ino, b as uint64)] != 0 }
  predicate AllThere(blockMap: BlkMap, ino: uint64, s: set<int>)
  { forall b: int {:trigger b in s} {:trigger There(blockMap, ino, b)} :: b in s <==> There(blockMap, ino, b) }
  predicate {:opaque} Counted(blockMap: BlkMap, ino: uint64, n: int)
  { exists s: set<int> {:trigger AllThere(blockMap, ino, s)} :: AllThere(blockMap, ino, s) && |s| == n }

  lemma CountOf(blockMap: BlkMap, ino: uint64, n: int) returns (s: set<int>)
    requires Counted(blockMap, ino, n)
    ensures AllThere(blockMap, ino, s) && |s| == n
  { reveal Counted(); s :| AllThere(blockMap, ino, s) && |s| == n; }
  lemma CountIs(blockMap: BlkMap, ino: uint64, s: set<int>)
    requires AllThere(blockMap, ino, s)
    ensures Counted(blockMap, ino, |s|)
  { reveal Counted(); }

  // ---- the steps ----

  lemma CountAlloc(blockMap: BlkMap, p: Pos, x: uint64, n: int)
    requires IsDom(blockMap) && OkPos(p) && blockMap[p] == 0 && x != 0 && Counted(blockMap, p.ino, n)
    ensures Counted(blockMap[p := x], p.ino, if IsData(p) then n + 1 else n)
    ensures IsData(p) ==> 0 <= n < NODATA
  {
    var s := CountOf(blockMap, p.ino, n);
    var blockMap' := blockMap[p := x];
    var s' := if IsData(p) then s + {First(p)} else s;
    if IsData(p) { DataAt(p); assert !There(blockMap, p.ino, First(p)); }
    forall b: int ensures b in s' <==> There(blockMap', p.ino, b) { OneStep(blockMap, p, x, b); }
    CountIs(blockMap', p.ino, s');
    if IsData(p) { Few(s', NODATA); }
  }
  lemma CountFree(blockMap: BlkMap, p: Pos, n: int)
    requires IsDom(blockMap) && OkPos(p) && blockMap[p] != 0 && Counted(blockMap, p.ino, n)
    ensures Counted(blockMap[p := 0], p.ino, if IsData(p) then n - 1 else n)
    ensures IsData(p) ==> 0 < n
  {
    var s := CountOf(blockMap, p.ino, n);
    var blockMap' := blockMap[p := 0];
    var s' := if IsData(p) then s - {First(p)} else s;
    if IsData(p) { DataAt(p); assert There(blockMap, p.ino, First(p)); }
    forall b: int ensures b in s' <==> There(blockMap', p.ino, b) { OneStep(blockMap, p, 0, b); }
    CountIs(blockMap', p.ino, s');
  }
  lemma OneStep(blockMap: BlkMap, p: Pos, x: uint64, b: int)
    requires IsDom(blockMap) && OkPos(p)
    ensures There(blockMap[p := x], p.ino, b) <==>
      if IsData(p) && b == First(p) then x != 0 else There(blockMap, p.ino, b)
  {
    if 0 <= b < NODATA { FirstOf(p.ino, b as uint64); PosOfOk(p.ino, b as uint64); }
    if IsData(p) { DataAt(p); }
  }

  // the same blocks
  lemma CountSame(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, n: int)
    requires Counted(blockMap0, ino, n) && forall b: int {:trigger There(blockMap, ino, b)} ::
      There(blockMap, ino, b) <==> There(blockMap0, ino, b)
    ensures Counted(blockMap, ino, n)
  {
    var s := CountOf(blockMap0, ino, n);
    assert AllThere(blockMap, ino, s);
    CountIs(blockMap, ino, s);
  }
  // no others
  lemma CountFewer(blockMap0: BlkMap, blockMap: BlkMap, ino: uint64, n0: int, n: int)
    requires Counted(blockMap0, ino, n0) && Counted(blockMap, ino, n) &&
      forall b: int {:trigger There(blockMap, ino, b)} | There(blockMap, ino, b) :: There(blockMap0, ino, b)
    ensures n <= n0
  {
    var s0 := CountOf(blockMap0, ino, n0);
    var s := CountOf(blockMap, ino, n);
    forall b: int | b in s ensures b in s0 { assert There(blockMap, ino, b); assert There(blockMap0, ino, b); }
    Subset(s, s0);
  }

  // ---- sizes of sets ----

  lemma Subset(s: set<int>, t: set<int>)
    requires s <= t
    ensures |s| <= |t|
  { assert t == s + (t - s); }
  // numbers below n
  lemma Few(s: set<int>, n: int)
    requires 0 <= n && forall b: int {:trigger b in s} | b in s :: 0 <= b < n
    ensures |s| <= n
    decreases n
  {
    if n == 0 { assert s == {}; return; }
    var r := s - {n - 1};
    Few(r, n - 1);
    assert s <= r + {n - 1};
    Subset(s, r + {n - 1});
  }
}
