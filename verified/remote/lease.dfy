// A lease: until when the replies of a server may leave whose volume another server may take over, and how long the
// other one has to wait before it serves. Times are in nanoseconds, each by the clock of the server that it is of.
include "../lib/machine.dfy"

module Leases {
  import opened Machine

  // What may happen to a lease.
  datatype Event =
    | Renewal(sent: uint64)   // what was sent to the device at that time has succeeded
    | Lapse                   // what was sent so far does not count any more,
    | End                     // nor does anything else

  // What happened last counts most: a renewal is one that no lapse came after.
  predicate Counts(h: seq<Event>, i: int) {
    0 <= i < |h| && h[i].Renewal? && forall k :: i < k < |h| ==> h[k] != Lapse
  }
  // A reply may leave: something that was sent less than a lease ago has succeeded.
  predicate MayReply(h: seq<Event>, length: uint64, now: uint64) {
    End !in h && exists i :: Counts(h, i) && now as int < h[i].sent as int + length as int
  }

  // A lease is one number: the time until which it holds, at most LATEST, or OVER.
  const OVER: uint64 := 0xFFFF_FFFF_FFFF_FFFF
  const LATEST: uint64 := 0xFFFF_FFFF_FFFF_FFFE

  predicate Says(until: uint64, h: seq<Event>, length: uint64) {
    if End in h then until == OVER
    else until <= LATEST &&
      (forall i :: Counts(h, i) && until < LATEST ==> h[i].sent as int + length as int <= until as int) &&
      (until > 0 ==> exists i :: Counts(h, i) && until as int <= h[i].sent as int + length as int)
  }
  // a lease that was never renewed
  method New() returns (until: uint64)
    ensures forall length :: Says(until, [], length)
  { until := 0; }

  // What was sent at that time has succeeded.
  method Renew(until: uint64, sent: uint64, length: uint64, ghost h: seq<Event>) returns (next: uint64)
    requires Says(until, h, length)
    ensures Says(next, h + [Renewal(sent)], length)
  {
    ghost var h2 := h + [Renewal(sent)];
    next := until;
    var end := LATEST;
    if length < LATEST && sent < LATEST - length { end := sent + length; }
    if end > until { next := end; }   // which it is not if the lease is over
    if until != OVER {
      forall i | 0 <= i < |h| ensures Counts(h2, i) <==> Counts(h, i) { Kept(h, Renewal(sent), i); }
      assert Counts(h2, |h|);
    }
  }
  lemma Kept(h: seq<Event>, e: Event, i: int)
    requires 0 <= i < |h| && e != Lapse
    ensures Counts(h + [e], i) <==> Counts(h, i)
  {
    var h2 := h + [e];
    if Counts(h2, i) { forall k | i < k < |h| ensures h[k] != Lapse { assert h2[k] == h[k]; } }
  }
  method TakeBack(until: uint64, ghost length: uint64, ghost h: seq<Event>) returns (next: uint64)
    requires Says(until, h, length)
    ensures Says(next, h + [Lapse], length)
  {
    ghost var h2 := h + [Lapse];
    next := until;
    if until != OVER { next := 0; }
    assert h2[|h|] == Lapse;
  }
  method Finish(ghost length: uint64, ghost h: seq<Event>) returns (next: uint64)
    ensures Says(next, h + [End], length)
  {
    next := OVER;
    assert (h + [End])[|h|] == End;
  }
  // May a reply leave at this time?
  method Holds(until: uint64, now: uint64, ghost length: uint64, ghost h: seq<Event>) returns (yes: bool)
    requires Says(until, h, length) && now < LATEST
    ensures yes <==> MayReply(h, length, now)
  { yes := now < until && until != OVER; }

  // Is the lease over for good?
  method Over(until: uint64, ghost length: uint64, ghost h: seq<Event>) returns (yes: bool)
    requires Says(until, h, length)
    ensures yes <==> End in h
  { yes := until == OVER; }

  // How long has a successor to wait yet, who knew at that time that all of the storage does what it says, and not what
  // a former owner says?
  method ToWait(known: uint64, now: uint64, length: uint64) returns (wait: uint64)
    requires known <= now
    ensures wait > 0 ==> now as int + wait as int == known as int + length as int
    ensures wait == 0 <==> known as int + length as int <= now as int
  {
    var waited := now - known;
    wait := 0;
    if waited < length { wait := length - waited; }
  }

  // Two servers whose clocks are equally fast: one is ahead of true time by `own`, the other by `other`. What the owner
  // had sent when the other one knew may have succeeded, and nothing later. So the owner's last reply leaves before the
  // other one serves.
  lemma Apart(h: seq<Event>, length: uint64, own: int, other: int, reply: uint64, known: uint64, serves: uint64)
    requires MayReply(h, length, reply)
    requires forall i :: Counts(h, i) ==> h[i].sent as int - own <= known as int - other
    requires known as int + length as int <= serves as int
    ensures reply as int - own < serves as int - other
  {}
  // It does not wait for longer than it has to: before, the owner may reply.
  lemma NoSooner(length: uint64, own: int, other: int, sent: uint64, reply: uint64, known: uint64, serves: uint64)
    requires sent as int - own == known as int - other && reply as int - own == serves as int - other
    requires serves as int < known as int + length as int
    ensures MayReply([Renewal(sent)], length, reply)
  { assert Counts([Renewal(sent)], 0); }
}
