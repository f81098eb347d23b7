// TRUSTED: a cache of blocks. Go: internal/runtime/cache.
include "records.s.dfy"

module {:extern "cache"} Caches {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened RecordSpec

  // A bounded cache: it may forget at any time, and remembers nothing else than what was put there.
  class {:extern "Cache"} Cache {         // tested: cache.TestCache
    ghost var m: BM
    // b may be seen until this cache changes or the mutex is given back
    predicate Shows(b: Blk) reads this { Keeps(this, b) }
    method {:extern "Get"} Get(a: uint64) returns (b: Blk?)
      ensures b != null ==> a as int in m && b.v == m[a as int] && |b.v| == 4096 && Shows(b)
    // copies b, which k keeps
    method {:extern "Put"} Put(a: uint64, b: Blk, ghost k: object)
      requires |b.v| == 4096 && Keeps(k, b) modifies this
      ensures forall x :: x in m ==> if x == a as int then m[x] == b.v else x in old(m) && m[x] == old(m)[x]
    method {:extern "Forget"} Forget(a: uint64)
      modifies this ensures forall x :: x in m ==> x != a as int && x in old(m) && m[x] == old(m)[x]
  }
}
