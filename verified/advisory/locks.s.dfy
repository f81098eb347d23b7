// Who holds which bytes of a file, and what a call for a lock answers: what clients of NLM may rely on, after POSIX
// (fcntl, F_SETLK) and the X/Open specification of NLM. It is of one file; Go has one of these for each.
//
// To read: a File is all there is to know. `Good` holds at any time. Each call has a predicate over the file before,
// the file after, and the answer.
include "../lib/machine.dfy"

module Advisory {
  import opened Machine

  // An owner has, or wants, the bytes first..last. An owner is a process of a client; Go numbers them.
  datatype Lock = Lock(owner: uint64, first: uint64, last: uint64, excl: bool)
  // Somebody waits. Once it could have the lock it is offered, and nobody else gets it, until it has said that it takes
  // it. Who held nothing anywhere when it came is patient: those in front of it have what they wait for first. Others
  // do not wait for those in front, who may be waiting for what they hold.
  datatype Wait = Wait(ticket: uint64, lock: Lock, patient: bool, offered: bool)
  // A reservation (NLM_SHARE) is for all of a file: what the owner does, and what it denies to others.
  datatype Share = Share(owner: uint64, read: bool, write: bool, denyRead: bool, denyWrite: bool)

  datatype File = File(held: seq<Lock>, waits: seq<Wait>, shares: seq<Share>)   // the waits by their age
  datatype Answer = Granted | Denied(other: Lock) | Blocked | NoRoom

  predicate Has(s: seq<Lock>, owner: uint64, byte: int, excl: bool) {
    exists k :: 0 <= k < |s| && s[k].owner == owner && s[k].excl == excl &&
      s[k].first as int <= byte <= s[k].last as int
  }
  predicate method Clash(a: Lock, b: Lock) {
    a.owner != b.owner && (a.excl || b.excl) && a.first <= b.last && b.first <= a.last
  }
  predicate method Conflict(a: Share, b: Share) {
    a.owner != b.owner && ((a.read && b.denyRead) || (a.write && b.denyWrite) ||
      (a.denyRead && b.read) || (a.denyWrite && b.write))
  }
  // Could who stands at place i, or comes as the next one, have the lock r now? Nobody else has what it excludes, or
  // was offered it, or, if it is patient, waits for that in front of it.
  predicate Could(f: File, i: int, r: Lock, patient: bool) {
    (forall k :: 0 <= k < |f.held| ==> !Clash(f.held[k], r)) &&
    forall k :: 0 <= k < |f.waits| && (f.waits[k].offered || (patient && k < i)) ==> !Clash(f.waits[k].lock, r)
  }
  predicate Next(f: File, r: Lock, patient: bool) { Could(f, |f.waits|, r, patient) }

  // What holds at any time: what is exclusive is nobody else's,
  predicate Exclusive(f: File) {
    (forall i, j :: 0 <= i < |f.held| && 0 <= j < |f.held| ==> !Clash(f.held[i], f.held[j])) &&
    (forall i :: 0 <= i < |f.waits| && f.waits[i].offered ==> Could(f, 0, f.waits[i].lock, false)) &&
    forall i, j :: 0 <= i < |f.shares| && 0 <= j < |f.shares| ==> !Conflict(f.shares[i], f.shares[j])
  }
  // nobody waits for what it could have,
  predicate Prompt(f: File) {
    forall i :: 0 <= i < |f.waits| && !f.waits[i].offered ==> !Could(f, i, f.waits[i].lock, f.waits[i].patient)
  }
  // and nothing is there twice: an owner has a byte in one way, neighbours that are alike are one lock, and an owner
  // has one reservation.
  predicate Before(a: Lock, b: Lock) { a.owner < b.owner || (a.owner == b.owner && a.last < b.first) }
  predicate Neat(s: seq<Lock>) {
    (forall i :: 0 <= i < |s| ==> s[i].first <= s[i].last) &&
    (forall i, j :: 0 <= i < j < |s| ==> Before(s[i], s[j])) &&
    forall i, j :: 0 <= i < j < |s| && j == i + 1 && s[i].owner == s[j].owner && s[i].excl == s[j].excl ==>
      s[i].last as int + 1 < s[j].first as int
  }
  predicate Once(f: File) {
    Neat(f.held) && (forall i :: 0 <= i < |f.waits| ==> f.waits[i].lock.first <= f.waits[i].lock.last) &&
    forall i, j :: 0 <= i < j < |f.shares| ==> f.shares[i].owner != f.shares[j].owner
  }
  predicate Good(f: File) { Exclusive(f) && Prompt(f) && Once(f) }

  // What the limits count: a wait may leave two locks more.
  function Size(f: File): int { |f.held| + 2 * |f.waits| + |f.shares| }

  // The owner's bytes first..last become those of r, or free; all else stays.
  predicate Put(s: seq<Lock>, r: Lock, on: bool, t: seq<Lock>) {
    forall owner: uint64, byte: int, excl: bool :: Has(t, owner, byte, excl) <==>
      if owner == r.owner && r.first as int <= byte <= r.last as int then on && excl == r.excl
      else Has(s, owner, byte, excl)
  }
  // From place i on, each that could have what it waits for is offered it, in their order.
  function Offer(f: File, i: nat): File decreases |f.waits| - i {
    if i >= |f.waits| then f
    else if !f.waits[i].offered && Could(f, i, f.waits[i].lock, f.waits[i].patient)
    then Offer(f.(waits := f.waits[i := f.waits[i].(offered := true)]), i + 1)
    else Offer(f, i + 1)
  }
  // After a change, all that has become free is offered.
  predicate Then(changed: File, g: File) { g == Offer(changed, 0) }

  // TEST
  predicate Test(f: File, r: Lock, patient: bool, a: Answer) {
    match a
    case Granted => Next(f, r, patient)
    case Denied(other) => !Next(f, r, patient) && Clash(other, r) && Known(f, other)
    case Blocked => false
    case NoRoom => false
  }
  predicate Known(f: File, x: Lock) { x in f.held || exists k :: 0 <= k < |f.waits| && f.waits[k].lock == x }

  // LOCK. Who blocks gets the ticket. The room is how much may be added.
  predicate Take(f: File, r: Lock, patient: bool, block: bool, ticket: uint64, room: uint64, g: File, a: Answer) {
    match a
    case Granted => Next(f, r, patient) && Put(f.held, r, true, g.held) && Then(f.(held := g.held), g) &&
      Size(g) <= Size(f) + room as int
    case Denied(other) => g == f && !block && Test(f, r, patient, a)
    case Blocked => block && !Next(f, r, patient) && room >= 2 &&
      g == f.(waits := f.waits + [Wait(ticket, r, patient, false)])
    case NoRoom => g == f && room < 2
  }
  // UNLOCK may need room for a lock that becomes two.
  predicate Give(f: File, r: Lock, room: uint64, g: File, a: Answer) {
    match a
    case Granted => Put(f.held, r, false, g.held) && Then(f.(held := g.held), g) && Size(g) <= Size(f) + room as int
    case NoRoom => g == f && room < 1
    case Denied(other) => false
    case Blocked => false
  }
  function Without(waits: seq<Wait>, i: nat): seq<Wait> requires i < |waits| { waits[..i] + waits[i + 1..] }

  // Who waits at place i and was offered the lock takes it,
  predicate Accept(f: File, i: nat, g: File) requires i < |f.waits| {
    Put(f.held, f.waits[i].lock, true, g.held) && Size(g) <= Size(f) &&
    Then(File(g.held, Without(f.waits, i), f.shares), g)
  }
  // or does not want it any more (CANCEL), offered or not. What it held before it has still.
  predicate Leave(f: File, i: nat, g: File) requires i < |f.waits| { Then(f.(waits := Without(f.waits, i)), g) }

  // SHARE: the owner's reservation becomes s, if that of nobody else is in conflict with it.
  predicate Reserve(f: File, s: Share, room: uint64, g: File, a: Answer) {
    match a
    case Granted => (forall k :: 0 <= k < |f.shares| ==> !Conflict(f.shares[k], s)) && g == f.(shares := g.shares) &&
      Size(g) <= Size(f) + room as int &&
      forall x :: x in g.shares <==> x == s || (x in f.shares && x.owner != s.owner)
    case Denied(other) => g == f && exists k :: 0 <= k < |f.shares| && Conflict(f.shares[k], s)
    case NoRoom => g == f && room < 1
    case Blocked => false
  }
  // UNSHARE
  predicate Release(f: File, owner: uint64, g: File) {
    g == f.(shares := g.shares) && forall x :: x in g.shares <==> x in f.shares && x.owner != owner
  }
  // The owner is gone, with all it had and waited for (NLM_FREE_ALL, SM_NOTIFY).
  predicate Forget(f: File, owner: uint64, g: File) {
    (forall x :: x in g.held <==> x in f.held && x.owner != owner) &&
    (forall x :: x in g.shares <==> x in f.shares && x.owner != owner) &&
    Then(File(g.held, Others(f.waits, owner), g.shares), g)
  }
  // those of others, in their order
  function Others(waits: seq<Wait>, owner: uint64): seq<Wait> {
    if waits == [] then [] else Others(waits[..|waits| - 1], owner) +
      if waits[|waits| - 1].lock.owner == owner then [] else [waits[|waits| - 1]]
  }
}
