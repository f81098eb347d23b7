// Positions in the block tree of an inode: slot k, depth lev below the inode's
// slot (0 = the slot itself), index j among the 512^lev blocks at that depth.
//
// Slots 0..11 hold data blocks; 12, 13, 14 hold trees of 1, 2, 3 levels of
// indirect blocks above the data.
include "../../lib/machine.dfy"
module Positions {
  import opened Machine

  datatype Pos = Pos(ino: uint64, slot: uint64, level: uint64, index: uint64)

  function method MaxLev(k: uint64): uint64 { if k < 12 then 0 else if k == 12 then 1 else if k == 13 then 2 else 3 }
  function method Width(lev: uint64): uint64
  { if lev == 0 then 1 else if lev == 1 then 512 else if lev == 2 then 262144 else 134217728 }

  // any inode number, so that positions do not depend on the volume's geometry
  predicate OkPos(p: Pos) { p.slot < 15 && p.level <= MaxLev(p.slot) && p.index < Width(p.level) }
  predicate IsData(p: Pos) { OkPos(p) && p.level == MaxLev(p.slot) }

  function Parent(p: Pos): Pos
    requires p.level > 0
  { Pos(p.ino, p.slot, p.level - 1, p.index / 512) }

  lemma ParentOk(p: Pos)
    requires OkPos(p) && p.level > 0
    ensures OkPos(Parent(p)) && !IsData(Parent(p))
  { }

  // siblings have different indices
  lemma Siblings(p: Pos, q: Pos)
    requires p.level > 0 && q.level > 0 && Parent(p) == Parent(q) && p.index % 512 == q.index % 512
    ensures p == q
  { }

  // block number in the file (below 134480396: 12 + 512 + 512^2 + 512^3) -> position
  function method FlatK(n: uint64): uint64
  { if n < 12 then n else if n < 524 then 12 else if n < 262668 then 13 else 14 }
  function method FlatJ(n: uint64): uint64
  { if n < 12 then 0 else if n < 524 then n - 12 else if n < 262668 then n - 524 else n - 262668 }
  function PosOf(ino: uint64, n: uint64): Pos { Pos(ino, FlatK(n), MaxLev(FlatK(n)), FlatJ(n)) }

  lemma PosOfOk(ino: uint64, n: uint64)
    requires n < 134480396
    ensures OkPos(PosOf(ino, n)) && IsData(PosOf(ino, n))
  { }
  lemma PosOfInj(i1: uint64, n1: uint64, i2: uint64, n2: uint64)
    requires PosOf(i1, n1) == PosOf(i2, n2)
    ensures i1 == i2 && n1 == n2
  { }
}
