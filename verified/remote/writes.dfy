// Writes to a device that does several requests at once and in any order, and keeps what it was sent where it may be
// lost until a flush (NBD): which of them are durable, when a barrier has to flush, and which write may begin.
//
// Go takes each step under one mutex, sends requests, and waits. Of the server it is believed that a flush which
// succeeds makes durable what was answered before the flush was sent, and that a write with FUA is durable if it
// succeeds. The ghost field `durable` says just that: `End` and `Answered` alone set it.
include "../lib/machine.dfy"

module RemoteWrites {
  import opened Machine

  const BEHIND: uint64 := 8   // so many writes are under way at most whose end nobody waits for: more would only wait

  // A write of `count` blocks from `from` on.
  class Write {
    const number: uint64
    const from: uint64
    const count: uint64
    const fua: bool
    var unanswered: uint64          // requests without an answer
    var next: Write?          // the one under way that began after it
    ghost var good: bool      // no request of it failed
    ghost var durable: bool   // it was done, and no crash of the server takes it back
    constructor (number0: uint64, from0: uint64, count0: uint64, fua0: bool, requests0: uint64)
      ensures number == number0 && from == from0 && count == count0 && fua == fua0 && unanswered == requests0
      ensures next == null && good && !durable
    {
      number, from, count, fua, unanswered, next := number0, from0, count0, fua0, requests0, null;
      good, durable := true, false;
    }
  }
  predicate Overlap(w: Write, from: uint64, count: uint64) {
    w.from as int < from as int + count as int && from as int < w.from as int + w.count as int
  }

  class Writes {
    const fua: bool           // the server knows FUA
    const behind: bool        // who writes does not wait for the end of it
    var begun: uint64         // so many; the last has this number
    var plain: uint64         // the last without FUA
    var flushed: uint64       // all up to this one are durable, as far as they have no FUA
    var since: uint64         // writes begun since the last barrier
    var single: bool          // there was one before the last barrier
    var failed: bool          // a flush failed, or a write with FUA, or one whose end nobody waits for: for good
    var first: Write?         // under way,
    var under: uint64         // so many
    ghost var all: seq<Write>     // by number
    ghost var list: seq<Write>    // those under way, in the order of their beginning

    constructor (fua0: bool, behind0: bool)
      ensures Inv() && all == [] && fua == fua0 && behind == behind0 && !failed
    {
      fua, behind, begun, plain, flushed, since, single, failed := fua0, behind0, 0, 0, 0, 0, false, false;
      first, under, all, list := null, 0, [], [];
    }
    predicate Linked() reads this, list {
      (first == if list == [] then null else list[0]) && under as int == |list| &&
      (forall i {:trigger list[i]} :: 0 <= i < |list| ==>
        list[i].next == if i + 1 < |list| then list[i + 1] else null) &&
      forall i, j :: 0 <= i < j < |list| ==> list[i].number < list[j].number
    }
    predicate Inv() reads this, all, list {
      Linked() && |all| == begun as int && flushed <= begun && plain <= begun &&
      (forall i {:trigger all[i]} :: 0 <= i < |all| ==> all[i].number as int == i + 1) &&
      (forall i {:trigger list[i]} :: 0 <= i < |list| ==> list[i] in all) &&
      (forall w {:trigger w in all} :: w in all ==> (w.unanswered > 0 <==> w in list)) &&
      (forall w {:trigger w in all} :: w in all && w.number > plain ==> w.fua) &&
      (forall w {:trigger w in all} :: w in all && w.number <= flushed ==> w.unanswered == 0) &&
      (plain > 0 ==> !all[plain - 1].fua) &&
      // what is known to be durable is
      (!failed ==> forall w {:trigger w in all} :: w in all && w.unanswered == 0 && w.good &&
        (w.fua || w.number <= flushed) ==> w.durable) &&
      // the server may do what is under way in any order
      (behind ==> forall i, j :: 0 <= i < j < |list| ==> !Overlap(list[j], list[i].from, list[i].count))
    }
    // May a read of these blocks be sent now: will it see what was last written there?
    method Apart(from: uint64, count: uint64) returns (yes: bool)
      requires Inv()
      ensures yes <==> behind ==> forall i :: 0 <= i < |list| ==> !Overlap(list[i], from, count)
    {
      yes := true;
      if !behind { return; }
      var w := first;
      ghost var i := 0;
      while w != null
        invariant 0 <= i <= |list| && w == if i < |list| then list[i] else null
        invariant forall j :: 0 <= j < i ==> !Overlap(list[j], from, count)
        decreases |list| - i
      {
        if Crosses(w.from, w.count, from, count) { return false; }
        w := w.next;
        i := i + 1;
      }
    }
    // May a write of them begin?
    method MayBegin(from: uint64, count: uint64) returns (yes: bool)
      requires Inv()
      ensures yes <==> behind ==> under < BEHIND && forall i :: 0 <= i < |list| ==> !Overlap(list[i], from, count)
    {
      yes := Apart(from, count);
      if behind && under >= BEHIND { yes := false; }
    }
    // It begins, with so many requests. One with a single request may get FUA: where the last barrier had a single
    // write before it, the next single write is durable when it is answered, and the barrier has nothing to do.
    method Begin(from: uint64, count: uint64, requests: uint64, may: bool) returns (w: Write)
      requires Inv() && begun < 0xFFFF_FFFF_FFFF_FFFF && since < 0xFFFF_FFFF_FFFF_FFFF
      requires under < 0xFFFF_FFFF_FFFF_FFFF
      requires behind ==> forall i :: 0 <= i < |list| ==> !Overlap(list[i], from, count)
      modifies this, list
      ensures Inv() && fresh(w) && all == old(all) + [w] && w.unanswered == requests && w.number == begun && w.good &&
        w.from == from && w.count == count && flushed == old(flushed) && failed == old(failed)
      ensures w.fua <==> fua && may && requests == 1 && old(single && since == 0 && plain <= flushed)
    {
      var f := fua && may && requests == 1 && single && since == 0 && plain <= flushed;
      w := new Write(begun + 1, from, count, f, requests);
      begun := begun + 1;
      since := since + 1;
      if !f { plain := begun; }
      if requests > 0 {
        if first == null { first := w; } else {
          var p := first;
          ghost var i := 0;
          while p.next != null
            invariant 0 <= i < |list| && p == list[i]
            decreases |list| - i
          { p := p.next; i := i + 1; }
          assert i == |list| - 1;
          p.next := w;
        }
        list := list + [w];
        under := under + 1;
      }
      all := all + [w];
    }
    // A request of it was answered, perhaps with an error, of which nobody else is told if it is unheard. A server
    // whose flush failed may drop what it held, tell of that once, and succeed the next time; FUA is a flush to most.
    method End(w: Write, erred: bool, unheard: bool) returns (ended: bool, ghost k: int)
      requires Inv() && w in all && w.unanswered > 0
      modifies this, list, w
      ensures Inv() && all == old(all) && flushed == old(flushed) && plain == old(plain) && begun == old(begun)
      ensures ended ==> 0 <= k < |old(list)| && old(list)[k] == w && list == old(list)[..k] + old(list)[k + 1..]
      ensures !ended ==> list == old(list)
      ensures w.unanswered == old(w.unanswered) - 1 && (ended <==> w.unanswered == 0)
      ensures w.good == (old(w.good) && !erred)
      ensures failed == (old(failed) || (erred && (w.fua || unheard)))
    {
      k := -1;
      w.unanswered := w.unanswered - 1;
      if erred {
        w.good := false;
        if w.fua || unheard { failed := true; }
      }
      ended := w.unanswered == 0;
      if ended {
        if w.fua && w.good { w.durable := true; }
        k := Remove(w);
      }
    }
    // takes a write from the list
    method Remove(w: Write) returns (ghost k: int)
      requires Linked() && w in list
      modifies this`first, this`under, this`list, list
      ensures Linked() && 0 <= k < |old(list)| && old(list)[k] == w
      ensures list == old(list)[..k] + old(list)[k + 1..]
      ensures forall i {:trigger list[i]} :: 0 <= i < |list| ==> list[i] == old(list)[if i < k then i else i + 1]
      ensures forall x :: x in list <==> x in old(list) && x != w
      ensures forall x {:trigger x.unanswered} :: x in old(list) ==> x.unanswered == old(x.unanswered) &&
        x.good == old(x.good) && x.durable == old(x.durable)
    {
      k := 0;
      under := under - 1;
      if first == w { first := w.next; } else {
        var p := first;
        while p.next != w
          invariant 0 <= k < |list| - 1 && p == list[k] && forall i :: 0 <= i <= k ==> list[i] != w
          decreases |list| - k
        { p := p.next; k := k + 1; }
        p.next := w.next;
        k := k + 1;
      }
      ghost var was := list;
      list := was[..k] + was[k + 1..];
      forall i | 0 <= i < |was| && i != k ensures was[i] in list && was[i] != w {
        assert was[i] == list[if i < k then i else i - 1];
      }
    }
    // the number of the first write under way, or of the next one
    method Oldest() returns (n: uint64)
      requires Inv() && begun < 0xFFFF_FFFF_FFFF_FFFF
      ensures n == if list == [] then begun + 1 else list[0].number
      ensures 1 <= n && forall w {:trigger w in all} :: w in all && w.number < n ==> w.unanswered == 0
    { if first == null { n := begun + 1; } else { n := first.number; } }

    // A barrier begins. It is for the writes up to number `covers`, of which `last` is the last without FUA.
    method Barrier() returns (covers: uint64, last: uint64)
      requires Inv()
      modifies this`single, this`since
      ensures Inv() && covers == begun && For(covers, last)
    {
      single, since, covers, last := since == 1, 0, begun, plain;
      forall i | last as int <= i < covers as int ensures all[i].fua { assert all[i] in all; }
    }
    predicate For(covers: uint64, last: uint64) reads this {
      last <= covers && covers as int <= |all| && (last > 0 ==> !all[last - 1].fua) &&
      forall i {:trigger all[i]} :: last as int <= i < covers as int ==> all[i].fua
    }
    // Does it go on? It waits for the end of writes that nobody else waits for.
    method Settled(covers: uint64) returns (yes: bool)
      requires Inv() && begun < 0xFFFF_FFFF_FFFF_FFFF && covers <= begun
      ensures yes ==> behind ==> forall w {:trigger w in all} :: w in all && w.number <= covers ==> w.unanswered == 0
      ensures !yes ==> behind && exists w :: w in all && w.number <= covers && w.unanswered > 0
    {
      var n := Oldest();
      yes := !behind || covers < n;
      if !yes { ghost var w := list[0]; assert w in list && w in all; }
    }
    // Has it to flush? If not, all that ended is durable, or it fails. A flush that is sent now has a ticket: what has
    // ended, to which all writes up to this number belong.
    method Flush(covers: uint64, last: uint64) returns (flush: bool, ticket: uint64, ghost ended: set<Write>)
      requires Inv() && begun < 0xFFFF_FFFF_FFFF_FFFF && For(covers, last)
      ensures !flush ==> failed || Durable(covers)
      ensures flush ==> !failed && last > flushed && Ticket(ticket, ended)
      ensures ended == set w | w in all && w.unanswered == 0
    {
      ended := set w | w in all && w.unanswered == 0;
      flush := !failed && last > flushed;
      var n := Oldest();
      ticket := if n <= covers then n - 1 else covers;
      forall w | w in all && w.number > last && w.number <= covers ensures w.fua {
        assert all[w.number - 1].number == w.number;
        assert all[w.number - 1] == w by { Numbered(w); }
      }
    }
    lemma Numbered(w: Write)
      requires Inv() && w in all
      ensures 1 <= w.number && all[w.number - 1] == w
    { var i :| 0 <= i < |all| && all[i] == w; assert all[i].number as int == i + 1; }
    // what ended well of the writes up to this number is durable
    predicate Durable(covers: uint64) reads this, all {
      forall w {:trigger w in all} :: w in all && w.number <= covers && w.unanswered == 0 && w.good ==> w.durable
    }
    predicate Ticket(ticket: uint64, ended: set<Write>) reads this, all {
      ticket <= begun && (forall w :: w in ended ==> w in all && w.unanswered == 0) &&
      forall w {:trigger w in all} :: w in all && w.number <= ticket ==> w in ended
    }
    // The flush with this ticket ended. The barrier succeeds if it did, and nothing else failed meanwhile.
    method Answered(ticket: uint64, erred: bool, ghost ended: set<Write>) returns (done: bool)
      requires Inv() && Ticket(ticket, ended)
      modifies this, all
      ensures Inv() && all == old(all) && list == old(list) && begun == old(begun) && plain == old(plain)
      ensures forall w :: w in all ==> w.unanswered == old(w.unanswered) && w.good == old(w.good)
      ensures (done <==> !old(failed) && !erred) && flushed >= old(flushed) && (done ==> flushed >= ticket)
      ensures done ==> forall w :: w in ended && w.good ==> w.durable
    {
      if erred { failed := true; } else {
        forall w | w in ended && w.good { w.durable := true; }
      }
      done := !failed;
      if done && ticket > flushed { flushed := ticket; }
    }
  }
  function method Crosses(a: uint64, n: uint64, b: uint64, m: uint64): (yes: bool)
    ensures yes <==> a as int < b as int + m as int && b as int < a as int + n as int
  { if a <= b then b - a < n && (m > 0 || a < b) else a - b < m }
}
