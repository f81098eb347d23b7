// TRUSTED: a map from block addresses to blocks. Go: internal/runtime/blockmap.
include "records.s.dfy"

module {:extern "blockmap"} MapsOfBlocks {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened RecordSpec

  // A map from block addresses to blocks that remembers the order of insertion.
  class {:extern "Map"} BlockMap {        // tested: blockmap.TestMap, TestLists
    ghost var m: BM
    ghost var addrs: seq<int>
    predicate Ok() reads this {
      |addrs| < 0x8_0000_0000_0000 &&
      (forall i :: 0 <= i < |addrs| ==> addrs[i] in m && 0 <= addrs[i] < 0x1_0000_0000_0000_0000) &&
      (forall a :: a in m ==> a in addrs && |m[a]| == 4096)
    }
    lemma {:axiom} Distinct()           // it is a map
      requires Ok() ensures forall i, j :: 0 <= i < j < |addrs| ==> addrs[i] != addrs[j]
    // b may be seen until this map changes; if others may change it, until the mutex is given back
    predicate Shows(b: Blk) reads this { Keeps(this, b) }
    method {:extern "Put"} Put(a: uint64, b: Blk)
      requires Ok() && |b.v| == 4096
      modifies this
      ensures Ok() && m == old(m)[a as int := b.v]
      ensures addrs == if a as int in old(m) then old(addrs) else old(addrs) + [a as int]
    method {:extern "Get"} Get(a: uint64) returns (b: Blk?)
      requires Ok()
      ensures (b == null) == (a as int !in m)
      ensures b != null ==> b.v == m[a as int] && Shows(b)
    method {:extern "Len"} Len() returns (n: uint64)
      requires Ok() ensures n as int == |addrs|
    method {:extern "AddrAt"} AddrAt(i: uint64) returns (a: uint64)
      requires Ok() && i as int < |addrs| ensures a as int == addrs[i as int]
    method {:extern "BlkAt"} BlkAt(i: uint64) returns (b: Blk)
      requires Ok() && i as int < |addrs| ensures b.v == m[addrs[i as int]]
    method {:extern "Clear"} Clear()
      modifies this ensures Ok() && m == map[] && addrs == []
    // its blocks, in the order of insertion
    method {:extern "List"} List() returns (l: BList)
      requires Ok() ensures l.addrs == addrs && l.blks == BlksOf(m, addrs) && KeepsAll(this, l)
    // its blocks, in the order of their addresses
    method {:extern "Sorted"} Sorted() returns (l: BList)
      requires Ok()
      ensures |l.blks| == |l.addrs| && KeepsAll(this, l)
      ensures forall i :: 0 <= i < |l.addrs| ==> l.addrs[i] in m && l.blks[i] == m[l.addrs[i]]
      ensures forall a :: a in m ==> a in l.addrs
      ensures forall i, j :: 0 <= i < j < |l.addrs| ==> l.addrs[i] < l.addrs[j]
  }
  method {:extern "New"} NewBlockMap() returns (b: BlockMap)         // tested: blockmap.TestMap
    ensures fresh(b) && b.Ok() && b.m == map[] && b.addrs == []
}
