// TRUSTED: a cache of blocks. Go: internal/runtime/cache.
include "records.s.dfy"

module {:extern "cache"} Caches {
  import opened Machine
  import opened ByteSlice
  import opened RecordSpec

  // A bounded cache: it may forget at any time, and remembers nothing else than what was put there.
  class {:extern "Cache"} Cache {         // tested: cache.TestCache
    ghost var m: BM
    predicate {:axiom} Shows(b: Blk) reads this     // b may be seen until this cache changes or the mutex is given back
    method {:extern "Get"} Get(a: uint64) returns (b: Blk?)
      ensures b != null ==> a as int in m && b.v == m[a as int] && |b.v| == 4096 && Shows(b)
    method {:extern "Put"} Put(a: uint64, b: Blk)
      requires |b.v| == 4096 modifies this
      ensures forall x :: x in m ==> if x == a as int then m[x] == b.v else x in old(m) && m[x] == old(m)[x]
    method {:extern "Forget"} Forget(a: uint64)
      modifies this ensures forall x :: x in m ==> x != a as int && x in old(m) && m[x] == old(m)[x]
  }
}
