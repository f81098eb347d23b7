// TRUSTED: the lock table of the transactions. Go: internal/runtime/locks.
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

module {:extern "locks"} LockS {
  import opened Machine

  // A holder of locks: one running transaction.
  class {:extern "Owner"} Owner {}
  datatype Share = Share(key: uint64, owner: Owner)
  datatype Wish = Wish(key: uint64, exclusive: bool, turn: int)   // turn: so many have waited before, ever

  class {:extern "Table"} Table {         // tested: locks.TestDeclarations, TestExclusion, TestFair, TestWaiters
    ghost var exclusive: map<uint64, Owner>  // held exclusively
    ghost var shared: set<Share>           // held shared
    ghost var last: map<uint64, uint64>    // the last commit noted
    ghost var wants: map<Owner, Wish>      // who waits, and what for
    ghost var came: int

    // mutual exclusion; the queue is in the order of coming
    predicate Valid() reads this {
      (forall s :: s in shared ==> s.key !in exclusive) && forall o :: o in wants ==> wants[o].turn < came
    }
    predicate Owns(o: Owner, k: uint64) reads this { k in exclusive && exclusive[k] == o }
    predicate Holds(o: Owner, k: uint64) reads this { Owns(o, k) || Share(k, o) in shared }

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
      ensures !ok || old(Owns(o, k)) ==> exclusive == old(exclusive) && shared == old(shared)
      ensures ok && !old(Owns(o, k)) && excl ==> k !in old(exclusive) && exclusive == old(exclusive)[k := o] &&
        shared == old(shared) - {Share(k, o)}
      ensures ok && !old(Owns(o, k)) && !excl ==> exclusive == old(exclusive) && shared == old(shared) + {Share(k, o)}
      ensures ok ==> (k in last ==> last[k] <= seen) && (seen == 0 || exists x :: x in last && seen <= last[x])

    // Waits until the lock is granted.
    method {:extern "Await"} Await(o: Owner) returns (seen: uint64)
      requires Valid() && o in wants && forall x :: Holds(o, x) ==> x < wants[o].key
      modifies this
      ensures Valid() && last == old(last) && came == old(came)
      ensures wants == map p | p in old(wants) && p != o :: old(wants)[p]
      ensures var w := old(wants)[o];
        if w.exclusive then w.key !in old(exclusive) && exclusive == old(exclusive)[w.key := o] && shared == old(shared)
        else exclusive == old(exclusive) && shared == old(shared) + {Share(w.key, o)}
      ensures var w := old(wants)[o]; forall p :: p in old(wants) && old(wants)[p].key == w.key ==>
        w.turn <= old(wants)[p].turn
      ensures var k := old(wants)[o].key;
        (k in last ==> last[k] <= seen) && (seen == 0 || exists x :: x in last && seen <= last[x])

    // Gives up all locks of o. With n > 0, n is noted for those held exclusively.
    method {:extern "Release"} Release(o: Owner, n: uint64)
      requires Valid()
      modifies this
      ensures Valid() && wants == old(wants) && came == old(came)
      ensures forall k :: k in exclusive <==> k in old(exclusive) && old(exclusive)[k] != o
      ensures forall k :: k in exclusive ==> k in old(exclusive) && exclusive[k] == old(exclusive)[k]
      ensures shared == set s | s in old(shared) && s.owner != o
      ensures forall k :: k in last <==> k in old(last) || (n > 0 && k in old(exclusive) && old(exclusive)[k] == o)
      ensures forall k :: k in last && !(n > 0 && k in old(exclusive) && old(exclusive)[k] == o) ==>
        last[k] == old(last)[k]
      ensures forall k :: k in last && n > 0 && k in old(exclusive) && old(exclusive)[k] == o ==>
                last[k] == if k in old(last) && old(last)[k] > n then old(last)[k] else n
  }
  method {:extern "NewTable"} NewTable() returns (t: Table)       // tested: locks.TestDeclarations
    ensures fresh(t) && t.Valid() && t.exclusive == map[] && t.shared == {} && t.last == map[] && t.wants == map[]
  method {:extern "NewOwner"} NewOwner() returns (o: Owner)       // tested: locks.TestDeclarations
    ensures fresh(o)
}
