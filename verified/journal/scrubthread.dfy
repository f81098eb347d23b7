// The thread programs of a scrub (scrub.dfy). What they do with a block is what Read does: a ticket under the mutex,
// reading and checking without it, and under the mutex again what was found is looked at in the light of what happened
// meanwhile. Before anything is called damaged the header is looked at: it may be another server that writes.
include "threads.dfy"
include "scrub.dfy"

module JournalScrubber {
  import opened Machine
  import opened ByteSlice
  import opened DiskS
  import opened JournalM
  import opened JournalLooks
  import opened JournalReader
  import opened JournalThreads
  import opened JournalScrub

  // Reads the n home blocks from a on from the device, and checks them in their order. m: the first of them that is not
  // well, and st what is with it; of those before it, good were checked, and the others, `pending`, are going to be
  // written. bad: the damaged block.
  method Scrub(j: Journal, a: uint64, n: uint64)
    returns (st: uint32, m: uint64, good: uint64, bad: uint64, ghost pending: set<int>)
    requires j.Inv() && j.home <= a && a as int + n as int <= j.size as int && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
    ensures good <= m <= n && (st == SGood ==> m == n)
    ensures good as int + |pending| == m as int
    ensures forall k {:trigger Checked(j.observed, k, old(j.trims))} :: a as int <= k < a as int + m as int ==>
      k in pending || Checked(j.observed, k, old(j.trims))
  {
    m := 0; good := 0; bad := a; st := SGood; pending := {};
    if n == 0 { return; }
    j.mutex.Lock(); CYield(j);
    var t := Ticket(j);
    j.mutex.Unlock(); CYield(j);
    var ok, l := ReadHome(j, a, n, t);
    if !ok {
      st := Judge(j, a, t, a, true);
      if n == 1 && st == SGood { m := 1; pending := {a as int}; }
      if n > 1 { st := SUnread; }
      return;
    }
    ghost var lost := j.torn;
    while m < n
      invariant good <= m <= n && j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr)) && st == SGood
      invariant |l.blks| == n as int && InHand(j, a, l, t, lost) && old(j.trims) <= t
      invariant good as int + |pending| == m as int && forall k :: k in pending ==> k < a as int + m as int
      invariant forall k {:trigger Checked(j.observed, k, old(j.trims))} :: a as int <= k < a as int + m as int ==>
        k in pending || Checked(j.observed, k, old(j.trims))
      decreases n - m
    {
      var k;
      ghost var seen := j.observed;
      st, k, bad := ScrubOn(j, a, l, m, t, lost);
      forall x | a as int <= x < a as int + k as int && x !in pending ensures Checked(j.observed, x, old(j.trims)) {
        if x < a as int + m as int { StillChecked(seen, j.observed, x, old(j.trims)); }
        else { assert j.WasRead(a as int + (x - a as int), t, l.blks[x - a as int]); }
      }
      good := good + (k - m);
      m := k;
      if st != SGood { return; }
      if m < n {
        assert a as int + m as int !in pending;
        pending := pending + {a as int + m as int};
        m := m + 1;
      }
    }
  }
  // block k was read since the ticket t was given, and is what it should be
  predicate Checked(seen: set<Observation>, k: int, t: uint64)
  { exists r :: r in seen && r.addr == k && r.ticket >= t as int && |r.contents| == 4096 }
  lemma StillChecked(before: set<Observation>, seen: set<Observation>, k: int, t: uint64)
    requires Checked(before, k, t) && before <= seen
    ensures Checked(seen, k, t)
  { }
  // the blocks l were read from a on, with ticket t
  predicate InHand(j: Journal, a: uint64, l: BList, t: uint64, lost: set<int>) reads j, l {
    t <= j.trims && (forall k :: 0 <= k < |l.blks| ==> |l.blks[k]| == 4096) && WereRead(j, a as int, t, l.blks, lost) &&
      KeepsAll(l, l)
  }
  // Checks the blocks l from the i-th on. m: the first that is not well, and st what is with it.
  method ScrubOn(j: Journal, a: uint64, l: BList, i: uint64, t: uint64, ghost lost: set<int>) returns (st: uint32,
    m: uint64, bad: uint64)
    requires j.Inv() && !j.mutex.held && j.home <= a && a as int + |l.blks| <= j.size as int && i as int <= |l.blks| &&
      InHand(j, a, l, t, lost)
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr)) && InHand(j, a, l, t, lost)
    ensures i <= m && m as int <= |l.blks| && (st != SGood ==> m as int < |l.blks|)
    ensures forall k :: i as int <= k < m as int ==> j.WasRead(a as int + k, t, l.blks[k])
  {
    CYield(j);
    m, bad := CheckHome(j, a, l, l, i, t, lost);
    st := SGood;
    var n := l.Len();
    if m < n { st := Judge(j, a + m, t, bad, false); }
  }
  // What is with block a, which was read with ticket t and is not well (or not read)?
  method Judge(j: Journal, a: uint64, t: uint64, bad: uint64, unread: bool) returns (st: uint32)
    requires j.Inv() && j.home <= a < j.size && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
  {
    j.mutex.Lock(); CYield(j);
    st := Verdict(j, a, t, bad);
    j.mutex.Unlock();
    if st != SGood && st != SAgain { st := Sentence(j, a, t, bad, unread); }
  }
  // The same, when it seems to be damaged.
  method Sentence(j: Journal, a: uint64, t: uint64, bad: uint64, unread: bool) returns (st: uint32)
    requires j.Inv() && j.home <= a < j.size && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
  {
    CYield(j);
    var ours := HeaderIsOurs(j);
    j.mutex.Lock(); CYield(j);
    st := Verdict(j, a, t, bad);
    st := Tell(j, st, ours, unread, bad);
    j.mutex.Unlock();
  }
  // Reads page p of the tree of codes from the device, and checks it. blank: it was never written, and not read.
  method ScrubPage(j: Journal, p: uint64) returns (st: uint32, blank: bool, bad: uint64)
    requires j.Inv() && p < j.tree.pageCount && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
  {
    j.mutex.Lock(); CYield(j);
    var t := Ticket(j);
    j.mutex.Unlock(); CYield(j);
    var ok, b, mem;
    ok, b, mem, blank, bad := CheckPage(j, p);
    st := SGood;
    if !ok { st := SentencePage(j, t, mem, bad); }
  }
  method SentencePage(j: Journal, t: uint64, mem: bool, bad: uint64) returns (st: uint32)
    requires j.Inv() && !j.mutex.held
    modifies j, j.logger, j.installer, j.disk, j.seal, j.cache, j.tree.pages, j.mutex, j.repr
    ensures j.Inv() && j.Mono() && !j.mutex.held && fresh(j.repr - old(j.repr))
  {
    CYield(j);
    var ours := HeaderIsOurs(j);
    j.mutex.Lock(); CYield(j);
    st := VerdictPage(j, t, mem);
    st := Tell(j, st, ours, false, bad);
    j.mutex.Unlock();
  }
}
