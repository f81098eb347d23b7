// How many blocks of data a file's tree has: what the inode's count has to be. Indirect blocks do
// not count; those that were cut off and wait to be freed do.
include "allocatedrange.dfy"
module CountedBlocks {
  import opened Machine
  import opened Positions
  import opened BlockTreeSpec
  import opened AllocatedRange

  // block b of the file is there
  predicate There(bm: BlkMap, ino: uint64, b: int)
  { 0 <= b < NODATA && PosOf(ino, b as uint64) in bm && bm[PosOf(ino, b as uint64)] != 0 }
  predicate AllThere(bm: BlkMap, ino: uint64, s: set<int>)
  { forall b: int {:trigger b in s} {:trigger There(bm, ino, b)} :: b in s <==> There(bm, ino, b) }
  predicate {:opaque} Counted(bm: BlkMap, ino: uint64, n: int)
  { exists s: set<int> {:trigger AllThere(bm, ino, s)} :: AllThere(bm, ino, s) && |s| == n }

  lemma CountOf(bm: BlkMap, ino: uint64, n: int) returns (s: set<int>)
    requires Counted(bm, ino, n)
    ensures AllThere(bm, ino, s) && |s| == n
  { reveal Counted(); s :| AllThere(bm, ino, s) && |s| == n; }
  lemma CountIs(bm: BlkMap, ino: uint64, s: set<int>)
    requires AllThere(bm, ino, s)
    ensures Counted(bm, ino, |s|)
  { reveal Counted(); }

  // ---- the steps ----

  lemma CountAlloc(bm: BlkMap, p: Pos, x: uint64, n: int)
    requires IsDom(bm) && OkPos(p) && bm[p] == 0 && x != 0 && Counted(bm, p.ino, n)
    ensures Counted(bm[p := x], p.ino, if IsData(p) then n + 1 else n)
    ensures IsData(p) ==> 0 <= n < NODATA
  {
    var s := CountOf(bm, p.ino, n);
    var bm' := bm[p := x];
    var s' := if IsData(p) then s + {First(p)} else s;
    if IsData(p) { DataAt(p); assert !There(bm, p.ino, First(p)); }
    forall b: int ensures b in s' <==> There(bm', p.ino, b) { OneStep(bm, p, x, b); }
    CountIs(bm', p.ino, s');
    if IsData(p) { Few(s', NODATA); }
  }
  lemma CountFree(bm: BlkMap, p: Pos, n: int)
    requires IsDom(bm) && OkPos(p) && bm[p] != 0 && Counted(bm, p.ino, n)
    ensures Counted(bm[p := 0], p.ino, if IsData(p) then n - 1 else n)
    ensures IsData(p) ==> 0 < n
  {
    var s := CountOf(bm, p.ino, n);
    var bm' := bm[p := 0];
    var s' := if IsData(p) then s - {First(p)} else s;
    if IsData(p) { DataAt(p); assert There(bm, p.ino, First(p)); }
    forall b: int ensures b in s' <==> There(bm', p.ino, b) { OneStep(bm, p, 0, b); }
    CountIs(bm', p.ino, s');
  }
  lemma OneStep(bm: BlkMap, p: Pos, x: uint64, b: int)
    requires IsDom(bm) && OkPos(p)
    ensures There(bm[p := x], p.ino, b) <==> if IsData(p) && b == First(p) then x != 0 else There(bm, p.ino, b)
  {
    if 0 <= b < NODATA { FirstOf(p.ino, b as uint64); PosOfOk(p.ino, b as uint64); }
    if IsData(p) { DataAt(p); }
  }

  // the same blocks
  lemma CountSame(bm0: BlkMap, bm: BlkMap, ino: uint64, n: int)
    requires Counted(bm0, ino, n) && forall b: int {:trigger There(bm, ino, b)} :: There(bm, ino, b) <==> There(bm0, ino, b)
    ensures Counted(bm, ino, n)
  {
    var s := CountOf(bm0, ino, n);
    assert AllThere(bm, ino, s);
    CountIs(bm, ino, s);
  }
  // no others
  lemma CountFewer(bm0: BlkMap, bm: BlkMap, ino: uint64, n0: int, n: int)
    requires Counted(bm0, ino, n0) && Counted(bm, ino, n) && forall b: int {:trigger There(bm, ino, b)} | There(bm, ino, b) :: There(bm0, ino, b)
    ensures n <= n0
  {
    var s0 := CountOf(bm0, ino, n0);
    var s := CountOf(bm, ino, n);
    forall b: int | b in s ensures b in s0 { assert There(bm, ino, b); assert There(bm0, ino, b); }
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
