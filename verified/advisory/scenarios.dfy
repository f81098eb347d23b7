// Cases of what the specification of locks demands and forbids: they fail if it comes to say something else.
include "queue.dfy"

module LockScenarios {
  import opened Machine
  import opened Advisory
  import LockQueue

  // Readers share, a writer is alone, each with its own bytes, and nobody is in its own way.
  lemma Clashes()
    ensures !Clash(Lock(1, 0, 9, false), Lock(2, 5, 5, false))
    ensures Clash(Lock(1, 0, 9, true), Lock(2, 9, 20, false)) && Clash(Lock(2, 9, 20, false), Lock(1, 0, 9, true))
    ensures !Clash(Lock(1, 0, 9, true), Lock(2, 10, 20, true)) && !Clash(Lock(2, 10, 20, true), Lock(1, 0, 9, true))
    ensures !Clash(Lock(1, 0, 9, true), Lock(1, 0, 9, true))
  {}
  lemma Conflicts()
    ensures Conflict(Share(1, true, false, false, true), Share(2, false, true, false, false))
    ensures Conflict(Share(2, false, true, false, false), Share(1, true, false, false, true))
    ensures Conflict(Share(1, false, false, true, false), Share(2, true, false, false, false))
    ensures Conflict(Share(2, true, false, false, false), Share(1, false, false, true, false))
    ensures !Conflict(Share(1, true, false, false, true), Share(2, true, false, false, true))
    ensures !Conflict(Share(1, true, true, true, true), Share(1, true, true, true, true))
  {}
  // What one has exclusively, no other has at all.
  lemma OneWriter(f: File, one: uint64, other: uint64, byte: int, excl: bool)
    requires Good(f) && Has(f.held, one, byte, true) && Has(f.held, other, byte, excl)
    ensures one == other
  {
    var i :| 0 <= i < |f.held| && f.held[i].owner == one && f.held[i].excl &&
      f.held[i].first as int <= byte <= f.held[i].last as int;
    var k :| 0 <= k < |f.held| && f.held[k].owner == other && f.held[k].excl == excl &&
      f.held[k].first as int <= byte <= f.held[k].last as int;
    assert !Clash(f.held[i], f.held[k]);
  }
  // Nor was it offered to another.
  lemma OneOffer(f: File, i: int, k: int)
    requires Good(f) && 0 <= i < |f.waits| && f.waits[i].offered && 0 <= k < |f.held|
    ensures !Clash(f.held[k], f.waits[i].lock)
  {}
  // An owner has a byte in one way.
  lemma OneWay(f: File, owner: uint64, byte: int)
    requires Good(f)
    ensures !(Has(f.held, owner, byte, true) && Has(f.held, owner, byte, false))
  {
    if Has(f.held, owner, byte, true) && Has(f.held, owner, byte, false) {
      var i :| 0 <= i < |f.held| && f.held[i].owner == owner && f.held[i].excl &&
        f.held[i].first as int <= byte <= f.held[i].last as int;
      var k :| 0 <= k < |f.held| && f.held[k].owner == owner && !f.held[k].excl &&
        f.held[k].first as int <= byte <= f.held[k].last as int;
      assert i != k;
      if i < k { assert Before(f.held[i], f.held[k]); } else { assert Before(f.held[k], f.held[i]); }
    }
  }

  // TEST of what is free says so, and else names what is in the way.
  lemma Tested(r: Lock, other: Lock, patient: bool, a: Answer)
    requires Clash(other, r)
    ensures Test(File([], [], []), r, patient, a) ==> a == Granted
    ensures Test(File([other], [], []), r, patient, a) ==> a == Denied(other)
  {
    var f := File([other], [], []);
    assert Clash(f.held[0], r);
  }
  lemma FreeIsFree(f: File, r: Lock, patient: bool, a: Answer)
    requires Test(f, r, patient, a)
    ensures Next(f, r, patient) <==> a == Granted
  {}
  // LOCK of what somebody else has is denied, or waits behind the others. There is room for a wait if there is for two.
  lemma Taken(f: File, r: Lock, patient: bool, block: bool, ticket: uint64, g: File, a: Answer)
    requires Take(f, r, patient, block, ticket, 2, g, a) && !Next(f, r, patient)
    ensures if block then a == Blocked && |g.waits| == |f.waits| + 1 && g.waits[..|f.waits|] == f.waits &&
        g.waits[|f.waits|].lock == r && !g.waits[|f.waits|].offered && g.held == f.held
      else a.Denied? && g == f
  {}
  lemma NotTaken(f: File, r: Lock, patient: bool, block: bool, ticket: uint64, g: File, a: Answer)
    requires Take(f, r, patient, block, ticket, 1, g, a)
    ensures a != Blocked && Size(g) <= Size(f) + 1
  {}
  lemma Had(f: File, r: Lock, patient: bool, block: bool, ticket: uint64, g: File, a: Answer)
    requires Take(f, r, patient, block, ticket, 2, g, a) && Next(f, r, patient) && r.first <= r.last
    ensures a == Granted && Has(g.held, r.owner, r.first as int, r.excl) && Has(g.held, r.owner, r.last as int, r.excl)
  {}
  // UNLOCK of the middle leaves both ends.
  lemma Given(g: File, a: Answer)
    requires Give(File([Lock(1, 0, 9, true)], [], []), Lock(1, 4, 5, false), 1, g, a)
    ensures a == Granted && !Has(g.held, 1, 4, true) && !Has(g.held, 1, 5, true) && !Has(g.held, 1, 4, false)
    ensures Has(g.held, 1, 3, true) && Has(g.held, 1, 6, true) && Size(g) <= 2
  {
    var s := [Lock(1, 0, 9, true)];
    assert s[0] == Lock(1, 0, 9, true);
    assert Has(s, 1, 3, true) && Has(s, 1, 6, true);
  }
  // Of two that wait for what becomes free, the first is offered it.
  lemma Order(g: File, a: Answer)
    requires Give(Waiting(), Lock(1, 0, 9, false), 1, g, a) && Neat(g.held)
    ensures |g.waits| == 2 && g.waits[0].offered && !g.waits[1].offered
  {
    var f := Waiting();
    forall k | 0 <= k < |g.held| ensures !Clash(g.held[k], f.waits[0].lock) {
      if Clash(g.held[k], f.waits[0].lock) {
        var l := g.held[k];
        assert Has(g.held, l.owner, l.first as int, l.excl);
        assert Has(f.held, l.owner, l.first as int, l.excl);
      }
    }
    var h := f.(held := g.held);
    assert h.waits[0] == f.waits[0];
    assert Could(h, 0, h.waits[0].lock, h.waits[0].patient);
    var h1 := LockQueue.Offered(h, 0);
    assert h1.waits[0].offered && Clash(h1.waits[0].lock, h1.waits[1].lock);
    assert Offer(h, 0) == Offer(h1, 1) == Offer(h1, 2) == h1;
  }
  function Waiting(): File {
    File([Lock(1, 0, 9, true)],
      [Wait(1, Lock(2, 0, 4, true), true, false), Wait(2, Lock(3, 4, 9, true), true, false)], [])
  }
  // Who does not want it any more has what it had.
  lemma Left(f: File, i: nat, g: File)
    requires i < |f.waits| && Leave(f, i, g)
    ensures g.held == f.held && |g.waits| == |f.waits| - 1
  { LockQueue.OfferKeeps(f.(waits := Without(f.waits, i)), 0); }
  // Who accepts has it, and waits no more.
  lemma Accepted(f: File, i: nat, g: File)
    requires i < |f.waits| && Accept(f, i, g) && f.waits[i].lock.first <= f.waits[i].lock.last
    ensures Has(g.held, f.waits[i].lock.owner, f.waits[i].lock.first as int, f.waits[i].lock.excl)
    ensures |g.waits| == |f.waits| - 1
  {
    LockQueue.OfferKeeps(File(g.held, Without(f.waits, i), f.shares), 0);
    PutThere(f.held, f.waits[i].lock, g.held);
  }
  lemma PutThere(s: seq<Lock>, r: Lock, t: seq<Lock>)
    requires Put(s, r, true, t) && r.first <= r.last
    ensures Has(t, r.owner, r.first as int, r.excl)
  {}
  // Who is gone has nothing; others have what they had.
  lemma Gone(f: File, owner: uint64, g: File, x: Lock)
    requires Forget(f, owner, g)
    ensures x.owner == owner ==> x !in g.held
    ensures x in f.held && x.owner != owner ==> x in g.held
    ensures forall s :: s in g.shares ==> s.owner != owner
    ensures Others([Wait(1, Lock(owner, 0, 0, true), true, false)], owner) == []
  {}
  lemma Reserved(f: File, s: Share, g: File, a: Answer)
    requires Reserve(f, s, 1, g, a)
    ensures if forall k :: 0 <= k < |f.shares| ==> !Conflict(f.shares[k], s) then a == Granted && s in g.shares
      else g == f
  {}
  lemma Released(f: File, owner: uint64, g: File)
    requires Release(f, owner, g)
    ensures forall s :: s in g.shares ==> s.owner != owner
    ensures forall s :: s in f.shares && s.owner != owner ==> s in g.shares
  {}
}
