// TRUSTED: the lock table of the transactions. Go: internal/runtime/dlock.
//
// A lock has a key and is held shared or exclusively. Lock never blocks: who may
// wait is queued where the lock is not free, and Await blocks; its
// contract speaks of the instant at which the lock is granted, which is that of the Release
// that makes room for it. Waiting is allowed only for a key above all those the owner
// holds (that no circle of waiting can close is proved: txn/waiting.dfy); waiters
// are served first come, first served.
//
// The table also remembers, per key, the number of the last commit that was
// noted for it, or a larger one: it may forget who wrote, never that somebody did.
include "../lib/machine.dfy"

module {:extern "dlock"} LockS {
  import opened Machine

  // A holder of locks: one running transaction.
  class {:extern "Owner"} Owner {}
  datatype Share = Share(k: uint64, o: Owner)
  datatype Wish = Wish(k: uint64, excl: bool, n: int)   // n: so many have waited before, ever

  class {:extern "Table"} Table {         // tested: dlock.TestDeclarations, TestExclusion, TestFair, TestWaiters
    ghost var ex: map<uint64, Owner>       // held exclusively
    ghost var sh: set<Share>               // held shared
    ghost var last: map<uint64, uint64>    // the last commit noted
    ghost var wants: map<Owner, Wish>      // who waits, and what for
    ghost var came: int

    // mutual exclusion; the queue is in the order of coming
    predicate Valid() reads this {
      (forall s :: s in sh ==> s.k !in ex) && forall o :: o in wants ==> wants[o].n < came
    }
    predicate Owns(o: Owner, k: uint64) reads this { k in ex && ex[k] == o }
    predicate Holds(o: Owner, k: uint64) reads this { Owns(o, k) || Share(k, o) in sh }

    // When the lock is not to be had at once: wait: o is queued, and Await comes next; not wait: neither ok nor queued.
    method {:extern "Lock"} Lock(o: Owner, k: uint64, excl: bool, wait: bool)
      returns (ok: bool, queued: bool, seen: uint64)
      requires Valid() && o !in wants
      requires wait ==> forall x :: Holds(o, x) ==> x < k
      modifies this
      ensures Valid() && last == old(last)
      ensures wait ==> ok || queued
      ensures queued ==> wait && !ok && wants == old(wants)[o := Wish(k, excl, old(came))] && came == old(came) + 1
      ensures !queued ==> wants == old(wants) && came == old(came)
      ensures !ok || old(Owns(o, k)) ==> ex == old(ex) && sh == old(sh)
      ensures ok && !old(Owns(o, k)) && excl ==> k !in old(ex) && ex == old(ex)[k := o] && sh == old(sh) - {Share(k, o)}
      ensures ok && !old(Owns(o, k)) && !excl ==> ex == old(ex) && sh == old(sh) + {Share(k, o)}
      ensures ok ==> (k in last ==> last[k] <= seen) && (seen == 0 || exists x :: x in last && seen <= last[x])

    // Waits until the lock is granted.
    method {:extern "Await"} Await(o: Owner) returns (seen: uint64)
      requires Valid() && o in wants && forall x :: Holds(o, x) ==> x < wants[o].k
      modifies this
      ensures Valid() && last == old(last) && came == old(came)
      ensures wants == map p | p in old(wants) && p != o :: old(wants)[p]
      ensures var w := old(wants)[o];
        if w.excl then w.k !in old(ex) && ex == old(ex)[w.k := o] && sh == old(sh)
        else ex == old(ex) && sh == old(sh) + {Share(w.k, o)}
      ensures var w := old(wants)[o]; forall p :: p in old(wants) && old(wants)[p].k == w.k ==> w.n <= old(wants)[p].n
      ensures var k := old(wants)[o].k;
        (k in last ==> last[k] <= seen) && (seen == 0 || exists x :: x in last && seen <= last[x])

    // Gives up all locks of o. With n > 0, n is noted for those held exclusively.
    method {:extern "Release"} Release(o: Owner, n: uint64)
      requires Valid()
      modifies this
      ensures Valid() && wants == old(wants) && came == old(came)
      ensures forall k :: k in ex <==> k in old(ex) && old(ex)[k] != o
      ensures forall k :: k in ex ==> k in old(ex) && ex[k] == old(ex)[k]
      ensures sh == set s | s in old(sh) && s.o != o
      ensures forall k :: k in last <==> k in old(last) || (n > 0 && k in old(ex) && old(ex)[k] == o)
      ensures forall k :: k in last && !(n > 0 && k in old(ex) && old(ex)[k] == o) ==> last[k] == old(last)[k]
      ensures forall k :: k in last && n > 0 && k in old(ex) && old(ex)[k] == o ==>
                last[k] == if k in old(last) && old(last)[k] > n then old(last)[k] else n
  }
  method {:extern "NewTable"} NewTable() returns (t: Table)       // tested: dlock.TestDeclarations
    ensures fresh(t) && t.Valid() && t.ex == map[] && t.sh == {} && t.last == map[] && t.wants == map[]
  method {:extern "NewOwner"} NewOwner() returns (o: Owner)       // tested: dlock.TestDeclarations
    ensures fresh(o)
}
