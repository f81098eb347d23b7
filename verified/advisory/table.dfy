// The calls for locks, as locks.s.dfy has them.
include "ranges.dfy"
include "queue.dfy"

module LockTable {
  import opened Machine
  import opened Advisory
  import LockRanges
  import LockQueue

  // Nobody has as many.
  predicate Fits(f: File) {
    |f.held| < 0x4000_0000_0000_0000 && |f.waits| < 0x4000_0000_0000_0000 && |f.shares| < 0x4000_0000_0000_0000
  }

  method Empty() returns (f: File)
    ensures Good(f) && Size(f) == 0
  { f := File([], [], []); }

  // What the limits count: locks and reservations, and two for each wait.
  method Count(f: File) returns (n: uint64)
    requires Fits(f)
    ensures n as int == Size(f)
  { n := |f.held| as uint64 + |f.waits| as uint64 * 2 + |f.shares| as uint64; }

  // What is put where nobody else has what it excludes leaves it so.
  lemma PutExclusive(f: File, r: Lock, held: seq<Lock>)
    requires Exclusive(f) && Once(f) && Put(f.held, r, true, held) && Neat(held) && r.first <= r.last
    requires Could(f, 0, r, false)
    ensures Exclusive(f.(held := held))
  {
    var g := f.(held := held);
    forall i, j | 0 <= i < |held| && 0 <= j < |held| ensures !Clash(held[i], held[j]) {
      if Clash(held[i], held[j]) {
        var b := if held[i].first < held[j].first then held[j].first else held[i].first;
        Pair(f, r, true, held, i, held[j], b as int);
        if !(held[i].owner == r.owner && r.first <= b <= r.last) {
          var k :| 0 <= k < |f.held| && LockRanges.In(f.held[k], held[i].owner, b as int, held[i].excl);
          Pair(f, r, true, held, j, f.held[k], b as int);
        } else {
          assert Has(held, held[i].owner, b as int, held[i].excl);
          Pair(f, r, true, held, j, r, b as int);
        }
      }
    }
    forall i | 0 <= i < |g.waits| && g.waits[i].offered ensures Could(g, 0, g.waits[i].lock, false) {
      var w := g.waits[i].lock;
      forall k | 0 <= k < |held| ensures !Clash(held[k], w) {
        if Clash(held[k], w) {
          var b := if held[k].first < w.first then w.first else held[k].first;
          Pair(f, r, true, held, k, w, b as int);
        }
      }
    }
  }
  // Where a lock that is held afterwards clashes with another one at a byte, r does, or one that was held before.
  lemma Pair(f: File, r: Lock, on: bool, held: seq<Lock>, i: int, w: Lock, byte: int)
    requires Put(f.held, r, on, held) && 0 <= i < |held|
    requires held[i].owner != w.owner && (held[i].excl || w.excl)
    requires held[i].first as int <= byte <= held[i].last as int && w.first as int <= byte <= w.last as int
    ensures (held[i].owner == r.owner && r.first as int <= byte <= r.last as int && on && held[i].excl == r.excl &&
        Clash(r, w)) ||
      exists k :: 0 <= k < |f.held| && LockRanges.In(f.held[k], held[i].owner, byte, held[i].excl) &&
        Clash(f.held[k], w)
  {
    assert Has(held, held[i].owner, byte, held[i].excl);
    if !(held[i].owner == r.owner && r.first as int <= byte <= r.last as int) {
      assert Has(f.held, held[i].owner, byte, held[i].excl);
      var k :| 0 <= k < |f.held| && LockRanges.In(f.held[k], held[i].owner, byte, held[i].excl);
      assert Clash(f.held[k], w);
    }
  }
  // What is given back leaves it so, too.
  lemma GiveExclusive(f: File, r: Lock, held: seq<Lock>)
    requires Exclusive(f) && Once(f) && Put(f.held, r, false, held) && Neat(held)
    ensures Exclusive(f.(held := held))
  {
    var g := f.(held := held);
    forall i, j | 0 <= i < |held| && 0 <= j < |held| ensures !Clash(held[i], held[j]) {
      if Clash(held[i], held[j]) {
        var b := if held[i].first < held[j].first then held[j].first else held[i].first;
        Pair(f, r, false, held, i, held[j], b as int);
        var k :| 0 <= k < |f.held| && LockRanges.In(f.held[k], held[i].owner, b as int, held[i].excl) &&
          Clash(f.held[k], held[j]);
        Pair(f, r, false, held, j, f.held[k], b as int);
      }
    }
    forall i | 0 <= i < |g.waits| && g.waits[i].offered ensures Could(g, 0, g.waits[i].lock, false) {
      var w := g.waits[i].lock;
      forall k | 0 <= k < |held| ensures !Clash(held[k], w) {
        if Clash(held[k], w) {
          var b := if held[k].first < w.first then w.first else held[k].first;
          Pair(f, r, false, held, k, w, b as int);
        }
      }
    }
  }

  method Test(f: File, r: Lock, patient: bool) returns (a: Answer)
    requires Good(f) && Fits(f)
    ensures Advisory.Test(f, r, patient, a)
  {
    var could, other := LockQueue.Look(f, |f.waits| as uint64, r, patient);
    a := if could then Granted else Denied(other);
  }

  method Take(f: File, r: Lock, patient: bool, block: bool, ticket: uint64, room: uint64) returns (g: File, a: Answer)
    requires Good(f) && Fits(f) && r.first <= r.last
    ensures Good(g) && Advisory.Take(f, r, patient, block, ticket, room, g, a)
  {
    g := f;
    var could, other := LockQueue.Look(f, |f.waits| as uint64, r, patient);
    if !could && !block { return f, Denied(other); }
    if !could {
      if room < 2 { return f, NoRoom; }
      g := File(f.held, f.waits + [Wait(ticket, r, patient, false)], f.shares);
      Queued(f, r, patient, ticket, g);
      return g, Blocked;
    }
    var held := LockRanges.Placed(f.held, r, true);
    if |held| as uint64 > |f.held| as uint64 && |held| as uint64 - |f.held| as uint64 > room { return f, NoRoom; }
    assert Could(f, 0, r, false);
    PutExclusive(f, r, held);
    g := LockQueue.Offering(File(held, f.waits, f.shares));
    LockQueue.OfferKeeps(f.(held := held), 0);
    a := Granted;
  }
  lemma Queued(f: File, r: Lock, patient: bool, ticket: uint64, g: File)
    requires Good(f) && !Next(f, r, patient) && r.first <= r.last
    requires g == f.(waits := f.waits + [Wait(ticket, r, patient, false)])
    ensures Good(g)
  {
    forall i | 0 <= i < |g.waits| && !g.waits[i].offered ensures !Could(g, i, g.waits[i].lock, g.waits[i].patient) {
      var w := g.waits[i];
      if Could(g, i, w.lock, w.patient) {
        forall k | 0 <= k < |f.waits| && (f.waits[k].offered || (w.patient && k < i))
          ensures !Clash(f.waits[k].lock, w.lock)
        {
          assert g.waits[k] == f.waits[k];
        }
        assert Could(f, i, w.lock, w.patient);
      }
    }
  }

  method Give(f: File, r: Lock, room: uint64) returns (g: File, a: Answer)
    requires Good(f) && Fits(f) && r.first <= r.last
    ensures Good(g) && Advisory.Give(f, r, room, g, a)
  {
    var held := LockRanges.Placed(f.held, r, false);
    if |held| as uint64 > |f.held| as uint64 && room < 1 { return f, NoRoom; }
    GiveExclusive(f, r, held);
    g := LockQueue.Offering(File(held, f.waits, f.shares));
    LockQueue.OfferKeeps(f.(held := held), 0);
    a := Granted;
  }

  // without a wait, nobody has more than before
  lemma Fewer(f: File, i: nat, g: File)
    requires Exclusive(f) && Once(f) && i < |f.waits| && g == f.(waits := Without(f.waits, i))
    ensures Exclusive(g) && Once(g)
    ensures f.waits[i].offered ==> Could(g, 0, f.waits[i].lock, false)
  {
    forall k | 0 <= k < |g.waits| ensures g.waits[k] == f.waits[if k < i then k else k + 1] {}
  }
  method Accept(f: File, i: uint64) returns (g: File)
    requires Good(f) && Fits(f) && i as int < |f.waits| && f.waits[i].offered
    ensures Good(g) && Advisory.Accept(f, i as int, g)
  {
    var r := f.waits[i as int].lock;
    var left := f.waits[..i as int] + f.waits[i as int + 1..];
    var held := LockRanges.Placed(f.held, r, true);
    ghost var h := f.(waits := left);
    Fewer(f, i as int, h);
    PutExclusive(h, r, held);
    g := LockQueue.Offering(File(held, left, f.shares));
    LockQueue.OfferKeeps(File(held, left, f.shares), 0);
  }
  method Leave(f: File, i: uint64) returns (g: File)
    requires Good(f) && Fits(f) && i as int < |f.waits|
    ensures Good(g) && Advisory.Leave(f, i as int, g)
  {
    var left := f.waits[..i as int] + f.waits[i as int + 1..];
    Fewer(f, i as int, f.(waits := left));
    g := LockQueue.Offering(File(f.held, left, f.shares));
  }

  // the reservations but those of the owner
  method OtherShares(s: seq<Share>, owner: uint64) returns (t: seq<Share>)
    requires |s| < 0x4000_0000_0000_0000
    requires forall i, j :: 0 <= i < j < |s| ==> s[i].owner != s[j].owner
    ensures forall x :: x in t <==> x in s && x.owner != owner
    ensures forall i, j :: 0 <= i < j < |t| ==> t[i].owner != t[j].owner
    ensures |t| <= |s|
  {
    var i: uint64 := 0;
    while i < |s| as uint64 && s[i as int].owner != owner
      invariant i as int <= |s| && forall k :: 0 <= k < i as int ==> s[k].owner != owner
      decreases |s| - i as int
    { i := i + 1; }
    if i == |s| as uint64 { return s; }
    t := s[..i as int] + s[i as int + 1..];
    forall x ensures x in t <==> x in s && x.owner != owner {
      if x in s && x.owner != owner {
        var k :| 0 <= k < |s| && s[k] == x;
        assert t[if k < i as int then k else k - 1] == x;
      }
      if x in t {
        var k :| 0 <= k < |t| && t[k] == x;
        assert s[if k < i as int then k else k + 1] == x;
      }
    }
  }
  method Reserve(f: File, s: Share, room: uint64) returns (g: File, a: Answer)
    requires Good(f) && Fits(f)
    ensures Good(g) && Advisory.Reserve(f, s, room, g, a)
  {
    var i: uint64 := 0;
    while i < |f.shares| as uint64
      invariant i as int <= |f.shares| && forall k :: 0 <= k < i as int ==> !Conflict(f.shares[k], s)
      decreases |f.shares| - i as int
    {
      var x := f.shares[i as int];
      if Conflict(x, s) { return f, Denied(Lock(x.owner, 0, 0, true)); }
      i := i + 1;
    }
    var left := OtherShares(f.shares, s.owner);
    if |left| as uint64 == |f.shares| as uint64 && room < 1 { return f, NoRoom; }
    g, a := File(f.held, f.waits, left + [s]), Granted;
    forall k | 0 <= k < |left| ensures !Conflict(left[k], s) && !Conflict(s, left[k]) && left[k] in f.shares {
      assert left[k] in left;
    }
    forall i, j | 0 <= i < |g.shares| && 0 <= j < |g.shares| ensures !Conflict(g.shares[i], g.shares[j]) {
      if i < |left| && j < |left| { Both(f.shares, left[i], left[j]); }
    }
    Shared(f, g);
  }
  lemma Both(s: seq<Share>, a: Share, b: Share)
    requires a in s && b in s && forall i, j :: 0 <= i < |s| && 0 <= j < |s| ==> !Conflict(s[i], s[j])
    ensures !Conflict(a, b)
  {}
  // Reservations have nothing to do with locks.
  lemma Shared(f: File, g: File)
    requires Good(f) && g == f.(shares := g.shares)
    requires forall i, j :: 0 <= i < j < |g.shares| ==> g.shares[i].owner != g.shares[j].owner
    requires forall i, j :: 0 <= i < |g.shares| && 0 <= j < |g.shares| ==> !Conflict(g.shares[i], g.shares[j])
    ensures Good(g)
  {
    forall i, r, p ensures Could(f, i, r, p) <==> Could(g, i, r, p) {}
  }
  method Release(f: File, owner: uint64) returns (g: File)
    requires Good(f) && Fits(f)
    ensures Good(g) && Advisory.Release(f, owner, g)
  {
    var left := OtherShares(f.shares, owner);
    g := File(f.held, f.waits, left);
    forall i, j | 0 <= i < |left| && 0 <= j < |left| ensures !Conflict(left[i], left[j]) {
      assert left[i] in left && left[j] in left;
      Both(f.shares, left[i], left[j]);
    }
    Shared(f, g);
  }

  // What an owner holds lies together.
  method OtherLocks(s: seq<Lock>, owner: uint64) returns (t: seq<Lock>)
    requires Neat(s) && |s| < 0x4000_0000_0000_0000
    ensures Neat(t) && |t| <= |s| && forall x :: x in t <==> x in s && x.owner != owner
  {
    var i: uint64 := 0;
    while i < |s| as uint64 && s[i as int].owner < owner
      invariant i as int <= |s| && forall k :: 0 <= k < i as int ==> s[k].owner < owner
      decreases |s| - i as int
    { i := i + 1; }
    var j := i;
    while j < |s| as uint64 && s[j as int].owner == owner
      invariant i <= j && j as int <= |s| && forall k :: i as int <= k < j as int ==> s[k].owner == owner
      decreases |s| - j as int
    { j := j + 1; }
    t := s[..i as int] + s[j as int..];
    Cut(s, owner, i as int, j as int);
  }
  lemma Cut(s: seq<Lock>, owner: uint64, n: int, m: int)
    requires Neat(s) && 0 <= n <= m <= |s| && forall k :: 0 <= k < n ==> s[k].owner < owner
    requires (forall k :: n <= k < m ==> s[k].owner == owner) && (m < |s| ==> s[m].owner != owner)
    requires n < |s| ==> s[n].owner >= owner
    ensures var t := s[..n] + s[m..]; Neat(t) && forall x :: x in t <==> x in s && x.owner != owner
  {
    forall k | m <= k < |s| ensures s[k].owner > owner {
      if n < m { assert Before(s[n], s[k]); }
      if k > m { assert Before(s[m], s[k]); }
    }
    CutOut(s, owner, n, m);
    CutNeat(s, owner, n, m);
  }
  lemma CutOut(s: seq<Lock>, owner: uint64, n: int, m: int)
    requires 0 <= n <= m <= |s| && forall k :: 0 <= k < |s| ==> (s[k].owner == owner <==> n <= k < m)
    ensures forall x :: x in s[..n] + s[m..] <==> x in s && x.owner != owner
  {
    var t, d := s[..n] + s[m..], m - n;
    forall x ensures x in t <==> x in s && x.owner != owner {
      if x in s && x.owner != owner {
        var k :| 0 <= k < |s| && s[k] == x;
        assert t[if k < n then k else k - d] == x;
      }
      if x in t {
        var k :| 0 <= k < |t| && t[k] == x;
        assert s[if k < n then k else k + d] == x;
      }
    }
  }
  lemma CutNeat(s: seq<Lock>, owner: uint64, n: int, m: int)
    requires Neat(s) && 0 <= n <= m <= |s|
    requires (forall k :: 0 <= k < n ==> s[k].owner < owner) && forall k :: m <= k < |s| ==> s[k].owner > owner
    ensures Neat(s[..n] + s[m..])
  {
    var a, c := s[..n], s[m..];
    var t := a + c;
    forall i | 0 <= i < |t| ensures t[i].first <= t[i].last {
      if i < n { assert t[i] == s[i]; } else { assert t[i] == s[m + (i - n)]; }
    }
    forall i, j | 0 <= i < j < |t| ensures Before(t[i], t[j]) {
      if j < n { assert t[i] == s[i] && t[j] == s[j]; }
      else if i < n { assert t[i] == s[i] && t[j] == s[m + (j - n)]; }
      else { assert t[i] == s[m + (i - n)] && t[j] == s[m + (j - n)]; }
    }
    forall i, j | 0 <= i < j < |t| && j == i + 1 && t[i].owner == t[j].owner && t[i].excl == t[j].excl
      ensures t[i].last as int + 1 < t[j].first as int
    {
      if j < n { assert t[i] == s[i] && t[j] == s[j]; }
      else if i < n { assert t[i] == s[i] && t[j] == s[m]; }
      else { assert t[i] == s[m + (i - n)] && t[j] == s[m + (j - n)]; }
    }
  }
  method OtherWaits(w: seq<Wait>, owner: uint64) returns (t: seq<Wait>)
    requires |w| < 0x4000_0000_0000_0000
    ensures t == Others(w, owner)
  {
    t := [];
    var i: uint64 := 0;
    while i < |w| as uint64
      invariant i as int <= |w| && t == Others(w[..i], owner)
      decreases |w| - i as int
    {
      assert w[..i + 1][..i] == w[..i];
      var x := w[i as int];
      if x.lock.owner != owner { t := t + [x]; }
      i := i + 1;
    }
    assert w[..i] == w;
  }
  lemma OthersAre(w: seq<Wait>, owner: uint64)
    ensures |Others(w, owner)| <= |w| && forall x :: x in Others(w, owner) <==> x in w && x.lock.owner != owner
  {
    if w != [] {
      OthersAre(w[..|w| - 1], owner);
      assert w == w[..|w| - 1] + [w[|w| - 1]];
    }
  }
  method Forget(f: File, owner: uint64) returns (g: File)
    requires Good(f) && Fits(f)
    ensures Good(g) && Advisory.Forget(f, owner, g)
  {
    var held := OtherLocks(f.held, owner);
    var waits := OtherWaits(f.waits, owner);
    var shares := OtherShares(f.shares, owner);
    var h := File(held, waits, shares);
    OthersAre(f.waits, owner);
    Fewest(f, h);
    g := LockQueue.Offering(h);
    LockQueue.OfferKeeps(h, 0);
  }
  lemma Fewest(f: File, h: File)
    requires Good(f) && Neat(h.held)
    requires forall i, j :: 0 <= i < j < |h.shares| ==> h.shares[i].owner != h.shares[j].owner
    requires (forall x :: x in h.held ==> x in f.held) && (forall x :: x in h.waits ==> x in f.waits) &&
      forall x :: x in h.shares ==> x in f.shares
    ensures Exclusive(h) && Once(h)
  {
    forall i, j | 0 <= i < |h.held| && 0 <= j < |h.held| ensures !Clash(h.held[i], h.held[j]) {
      assert h.held[i] in h.held && h.held[j] in h.held;
    }
    forall i, j | 0 <= i < |h.shares| && 0 <= j < |h.shares| ensures !Conflict(h.shares[i], h.shares[j]) {
      assert h.shares[i] in h.shares && h.shares[j] in h.shares;
    }
    forall i | 0 <= i < |h.waits| ensures h.waits[i].lock.first <= h.waits[i].lock.last {
      assert h.waits[i] in h.waits;
    }
    forall i | 0 <= i < |h.waits| && h.waits[i].offered ensures Could(h, 0, h.waits[i].lock, false) {
      assert h.waits[i] in h.waits;
      var l :| 0 <= l < |f.waits| && f.waits[l] == h.waits[i];
      assert Could(f, 0, f.waits[l].lock, false);
      forall k | 0 <= k < |h.held| ensures !Clash(h.held[k], h.waits[i].lock) { assert h.held[k] in h.held; }
      forall k | 0 <= k < |h.waits| && h.waits[k].offered ensures !Clash(h.waits[k].lock, h.waits[i].lock) {
        assert h.waits[k] in h.waits;
      }
    }
  }
}
