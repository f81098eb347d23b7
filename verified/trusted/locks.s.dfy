// TRUSTED: the lock table of the transactions. Go: internal/extern/dlock.
//
// A lock has a key and is held shared or exclusively. Lock may block; then its
// contract speaks of the instant at which the lock is granted. Waiting is
// allowed only for a key above all those the owner holds, so no circle of
// waiting can close; waiters are served first come, first served, so all of
// them end.
//
// The table also remembers, per key, the number of the last commit that was
// noted for it, or a larger one: it may forget who wrote, never that somebody did.
include "../lib/machine.dfy"

module {:extern "dlock"} LockS {
  import opened Machine

  // A holder of locks: one running transaction.
  class {:extern "Owner"} Owner {}
  datatype Share = Share(k: uint64, o: Owner)

  class {:extern "Table"} Table {         // tested: dlock.TestDeclarations, TestExclusion, TestFair, TestWaiters
    ghost var ex: map<uint64, Owner>       // held exclusively
    ghost var sh: set<Share>               // held shared
    ghost var last: map<uint64, uint64>    // the last commit noted

    // mutual exclusion
    predicate Valid() reads this { forall s :: s in sh ==> s.k !in ex }
    predicate Owns(o: Owner, k: uint64) reads this { k in ex && ex[k] == o }
    predicate Holds(o: Owner, k: uint64) reads this { Owns(o, k) || Share(k, o) in sh }

    // not wait: ok = false when the lock is not to be had at once
    method {:extern "Lock"} Lock(o: Owner, k: uint64, excl: bool, wait: bool) returns (ok: bool, seen: uint64)
      requires Valid()
      requires wait ==> forall x :: Holds(o, x) ==> x < k
      modifies this
      ensures Valid() && last == old(last)
      ensures wait ==> ok
      ensures !ok || old(Owns(o, k)) ==> ex == old(ex) && sh == old(sh)
      ensures ok && !old(Owns(o, k)) && excl ==> k !in old(ex) && ex == old(ex)[k := o] && sh == old(sh) - {Share(k, o)}
      ensures ok && !old(Owns(o, k)) && !excl ==> ex == old(ex) && sh == old(sh) + {Share(k, o)}
      ensures ok ==> (k in last ==> last[k] <= seen) && (seen == 0 || exists x :: x in last && seen <= last[x])

    // Gives up all locks of o. With n > 0, n is noted for those held exclusively.
    method {:extern "Release"} Release(o: Owner, n: uint64)
      requires Valid()
      modifies this
      ensures Valid()
      ensures forall k :: k in ex <==> k in old(ex) && old(ex)[k] != o
      ensures forall k :: k in ex ==> k in old(ex) && ex[k] == old(ex)[k]
      ensures sh == set s | s in old(sh) && s.o != o
      ensures forall k :: k in last <==> k in old(last) || (n > 0 && k in old(ex) && old(ex)[k] == o)
      ensures forall k :: k in last && !(n > 0 && k in old(ex) && old(ex)[k] == o) ==> last[k] == old(last)[k]
      ensures forall k :: k in last && n > 0 && k in old(ex) && old(ex)[k] == o ==>
                last[k] == if k in old(last) && old(last)[k] > n then old(last)[k] else n
  }
  method {:extern "NewTable"} NewTable() returns (t: Table)       // tested: dlock.TestDeclarations
    ensures fresh(t) && t.Valid() && t.ex == map[] && t.sh == {} && t.last == map[]
  method {:extern "NewOwner"} NewOwner() returns (o: Owner)       // tested: dlock.TestDeclarations
    ensures fresh(o)
}
