// Who waits, in their order: who is offered what, and why nobody waits for what it could have.
include "locks.s.dfy"

module LockQueue {
  import opened Machine
  import opened Advisory

  // Something that keeps who stands at place i from having r, if anything does.
  method Look(f: File, i: uint64, r: Lock, patient: bool) returns (could: bool, other: Lock)
    requires |f.held| < 0x8000_0000_0000_0000 && |f.waits| < 0x8000_0000_0000_0000
    ensures could <==> Could(f, i as int, r, patient)
    ensures !could ==> Clash(other, r) && Known(f, other)
  {
    other := r;
    var k: uint64 := 0;
    while k < |f.held| as uint64
      invariant k as int <= |f.held| && forall l :: 0 <= l < k as int ==> !Clash(f.held[l], r)
      decreases |f.held| - k as int
    {
      var l := f.held[k as int];
      if Clash(l, r) { return false, l; }
      k := k + 1;
    }
    k := 0;
    while k < |f.waits| as uint64
      invariant k as int <= |f.waits|
      invariant forall l :: 0 <= l < k as int && (f.waits[l].offered || (patient && l < i as int)) ==>
        !Clash(f.waits[l].lock, r)
      decreases |f.waits| - k as int
    {
      var w := f.waits[k as int];
      if (w.offered || (patient && k < i)) && Clash(w.lock, r) { return false, w.lock; }
      k := k + 1;
    }
    could := true;
  }

  // the file once place i was offered what it waits for
  function Offered(f: File, i: nat): File requires i < |f.waits| {
    f.(waits := f.waits[i := f.waits[i].(offered := true)])
  }
  // An offer makes nothing free.
  lemma NoSooner(f: File, i: nat, k: nat, r: Lock, patient: bool)
    requires i < |f.waits| && Could(Offered(f, i), k, r, patient)
    ensures Could(f, k, r, patient)
  {
    var g := Offered(f, i);
    forall l | 0 <= l < |f.waits| && (f.waits[l].offered || (patient && l < k)) ensures !Clash(f.waits[l].lock, r) {
      assert g.waits[l].lock == f.waits[l].lock;
    }
  }
  predicate PromptUpTo(f: File, n: int) {
    forall i :: 0 <= i < |f.waits| && i < n && !f.waits[i].offered ==> !Could(f, i, f.waits[i].lock, f.waits[i].patient)
  }
  lemma OfferPrompt(f: File, i: nat)
    requires PromptUpTo(f, i)
    ensures Prompt(Offer(f, i))
    decreases |f.waits| - i
  {
    if i >= |f.waits| { return; }
    if !f.waits[i].offered && Could(f, i, f.waits[i].lock, f.waits[i].patient) {
      var g := Offered(f, i);
      forall k | 0 <= k < |g.waits| && k < i + 1 && !g.waits[k].offered
        ensures !Could(g, k, g.waits[k].lock, g.waits[k].patient)
      {
        assert k != i;
        if Could(g, k, g.waits[k].lock, g.waits[k].patient) { NoSooner(f, i, k, f.waits[k].lock, f.waits[k].patient); }
      }
      OfferPrompt(g, i + 1);
    } else { OfferPrompt(f, i + 1); }
  }
  lemma OfferExclusive(f: File, i: nat)
    requires Exclusive(f)
    ensures Exclusive(Offer(f, i))
    decreases |f.waits| - i
  {
    if i >= |f.waits| { return; }
    if !f.waits[i].offered && Could(f, i, f.waits[i].lock, f.waits[i].patient) {
      var g := Offered(f, i);
      forall k | 0 <= k < |g.waits| && g.waits[k].offered ensures Could(g, 0, g.waits[k].lock, false) {
        var r := g.waits[k].lock;
        forall l | 0 <= l < |g.waits| && g.waits[l].offered ensures !Clash(g.waits[l].lock, r) {
          if l == i && k != i {
            assert Could(f, 0, f.waits[k].lock, false);
            assert !Clash(f.waits[k].lock, f.waits[i].lock);
          }
        }
      }
      OfferExclusive(g, i + 1);
    } else { OfferExclusive(f, i + 1); }
  }
  // What offers leave as it was: all but that they are made.
  predicate Same(w: Wait, v: Wait) {
    v.ticket == w.ticket && v.lock == w.lock && v.patient == w.patient && (w.offered ==> v.offered)
  }
  predicate Kept(f: File, g: File) {
    g.held == f.held && g.shares == f.shares && |g.waits| == |f.waits| &&
    forall k :: 0 <= k < |f.waits| ==> Same(f.waits[k], g.waits[k])
  }
  lemma OfferKeeps(f: File, i: nat)
    ensures Kept(f, Offer(f, i))
    decreases |f.waits| - i
  {
    if i >= |f.waits| { return; }
    if !f.waits[i].offered && Could(f, i, f.waits[i].lock, f.waits[i].patient) {
      var g := Offered(f, i);
      OfferKeeps(g, i + 1);
      var h := Offer(g, i + 1);
      forall k | 0 <= k < |f.waits| ensures Same(f.waits[k], h.waits[k]) {
        assert Same(f.waits[k], g.waits[k]);
        assert Same(g.waits[k], h.waits[k]);
      }
    } else { OfferKeeps(f, i + 1); }
  }

  // After a change, what has become free is offered.
  method Offering(f: File) returns (g: File)
    requires |f.held| < 0x8000_0000_0000_0000 && |f.waits| < 0x8000_0000_0000_0000
    requires Exclusive(f) && Once(f)
    ensures g == Offer(f, 0) && Good(g) && Size(g) == Size(f)
  {
    g := f;
    var i: uint64 := 0;
    while i < |g.waits| as uint64
      invariant i as int <= |g.waits| == |f.waits| && g.held == f.held
      invariant Offer(g, i as int) == Offer(f, 0)
      decreases |g.waits| - i as int
    {
      var w := g.waits[i as int];
      if !w.offered {
        var could, _ := Look(g, i, w.lock, w.patient);
        if could {
          var x := Wait(w.ticket, w.lock, w.patient, true);
          assert g.waits[i as int := x] == g.waits[..i as int] + [x] + g.waits[i as int + 1..];
          g := File(g.held, g.waits[..i as int] + [x] + g.waits[i as int + 1..], g.shares);
        }
      }
      i := i + 1;
    }
    OfferPrompt(f, 0);
    OfferExclusive(f, 0);
    OfferKeeps(f, 0);
  }

  // Nobody starves: who comes and finds a lock it excludes wanted by somebody in front does not get ahead, if it is
  // patient; and who is first in front of all that it clashes with waits for what is held or offered, never for a wait.
  lemma NotOvertaken(f: File, r: Lock, i: nat)
    requires i < |f.waits| && Clash(f.waits[i].lock, r)
    ensures !Next(f, r, true)
  {}
  lemma FirstWaitsForHolders(f: File, i: nat)
    requires Good(f) && i < |f.waits| && !f.waits[i].offered
    requires forall k :: 0 <= k < i && !f.waits[k].offered ==> !Clash(f.waits[k].lock, f.waits[i].lock)
    ensures (exists k :: 0 <= k < |f.held| && Clash(f.held[k], f.waits[i].lock)) ||
      exists k :: 0 <= k < |f.waits| && f.waits[k].offered && Clash(f.waits[k].lock, f.waits[i].lock)
  {}
}
