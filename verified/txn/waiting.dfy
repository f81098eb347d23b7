// No deadlock: transactions that wait for each other's objects never do so in a circle.
//
// A transaction waits (it is in `wants` of the lock table) from when Lock queues it to when Await ends. A holder is who
// has an object shared or exclusively. In the way of one that waits is
// - who holds the object and cannot share it with it: all others for one that wants it exclusively, else who holds it
// exclusively;
// - who came before it and waits for the same object, in whatever mode: a reader does not overtake a writer that waits.
// Who holds an object shared and wants it exclusively never waits: it gets that at once, or the transaction is run
// again (the step Grab does not wait for what is not above all that is held).
//
// All follows from one clause of System.Inv, Upward: whoever waits holds only what lies below. Every step of the
// running code keeps it, since System.Inv is what each of them ensures: Grab, which alone begins to wait, is the one
// that has to know why.
include "system.dfy"

module Waiting {
  import opened Machine
  import opened LockS
  import opened TxnSysM

  // p waits, and not before q has gone on
  predicate InTheWay(t: Table, p: Owner, q: Owner) reads t {
    p in t.wants && p != q && var w := t.wants[p];
      (if w.exclusive then t.Holds(q, w.key) else t.Owns(q, w.key)) || (q in t.wants && t.wants[q].key == w.key &&
        t.wants[q].turn < w.turn)
  }
  // waits for something above, or for the same and came before
  predicate Nearer(a: Wish, b: Wish) { a.key < b.key || (a.key == b.key && b.turn < a.turn) }
  lemma Ahead(s: System, p: Owner, q: Owner)
    requires s.Upward() && InTheWay(s.locks, p, q) && q in s.locks.wants
    ensures Nearer(s.locks.wants[p], s.locks.wants[q])
  {
    var k := s.locks.wants[p].key;
    if s.locks.Holds(q, k) {} else { assert !s.locks.Owns(q, k); }
  }

  // each of c has the next one in its way
  predicate Chain(t: Table, c: seq<Owner>) reads t {
    forall i {:trigger c[i]} :: 0 <= i < |c| - 1 ==> InTheWay(t, c[i], c[i + 1])
  }
  lemma Onward(s: System, c: seq<Owner>, n: int)
    requires s.Upward() && Chain(s.locks, c) && 0 < n < |c| && forall i :: 0 <= i < |c| ==> c[i] in s.locks.wants
    ensures Nearer(s.locks.wants[c[0]], s.locks.wants[c[n]])
  {
    if n > 1 { Onward(s, c, n - 1); }
    Ahead(s, c[n - 1], c[n]);
  }
  // THE LEMMA: there is no circle, of any length.
  lemma NoCircle(s: System, c: seq<Owner>)
    requires s.Inv() && Chain(s.locks, c)
    ensures |c| > 1 ==> c[0] != c[|c| - 1]
  {
    if |c| > 1 && c[0] == c[|c| - 1] {
      forall i | 0 <= i < |c| ensures c[i] in s.locks.wants {
        if i < |c| - 1 { assert InTheWay(s.locks, c[i], c[i + 1]); }
      }
      Onward(s, c, |c| - 1);
    }
  }

  // Of those that wait, one waits for nobody who waits: what is in its way goes on, and ends.
  lemma SomebodyGoesOn(s: System)
    requires s.Inv() && s.locks.wants != map[]
    ensures exists p :: p in s.locks.wants && forall q :: InTheWay(s.locks, p, q) ==> q !in s.locks.wants
  {
    var p := Nearest(s, s.locks.wants.Keys);
    forall q | InTheWay(s.locks, p, q) ensures q !in s.locks.wants { if q in s.locks.wants { Ahead(s, p, q); } }
  }
  lemma Nearest(s: System, those: set<Owner>) returns (p: Owner)
    requires those != {} && forall q :: q in those ==> q in s.locks.wants
    ensures p in those && forall q :: q in those ==> !Nearer(s.locks.wants[p], s.locks.wants[q])
    decreases |those|
  {
    p :| p in those;
    if those != {p} {
      var r := Nearest(s, those - {p});
      if !Nearer(s.locks.wants[p], s.locks.wants[r]) {} else { p := r; }
    }
  }
}
