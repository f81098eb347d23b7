// The locks that are held on one file, in the order of their owners and bytes: how a range is put among them.
include "locks.s.dfy"

module LockRanges {
  import opened Machine
  import opened Advisory

  predicate In(l: Lock, owner: uint64, byte: int, excl: bool) {
    l.owner == owner && l.excl == excl && l.first as int <= byte <= l.last as int
  }
  lemma HasJoin(a: seq<Lock>, b: seq<Lock>, owner: uint64, byte: int, excl: bool)
    ensures Has(a + b, owner, byte, excl) <==> Has(a, owner, byte, excl) || Has(b, owner, byte, excl)
  {
    var s := a + b;
    if Has(s, owner, byte, excl) {
      var k :| 0 <= k < |s| && In(s[k], owner, byte, excl);
      if k < |a| { assert a[k] == s[k]; } else { assert b[k - |a|] == s[k]; }
    }
    if Has(a, owner, byte, excl) {
      var k :| 0 <= k < |a| && In(a[k], owner, byte, excl);
      assert s[k] == a[k];
    }
    if Has(b, owner, byte, excl) {
      var k :| 0 <= k < |b| && In(b[k], owner, byte, excl);
      assert s[|a| + k] == b[k];
    }
  }

  // It lies in front of r, and no byte of it is r's, or beside one of r's.
  predicate method Left(a: Lock, r: Lock) {
    a.owner < r.owner || (a.owner == r.owner && a.last < r.first && r.first - a.last > 1)
  }
  predicate method Right(a: Lock, r: Lock) {
    r.owner < a.owner || (a.owner == r.owner && r.last < a.first && a.first - r.last > 1)
  }
  // the places from which on locks are not in front of r, and are behind it
  method Around(s: seq<Lock>, r: Lock) returns (i: uint64, j: uint64)
    requires Neat(s) && r.first <= r.last && |s| < 0x8000_0000_0000_0000
    ensures i <= j && j as int <= |s|
    ensures forall k :: 0 <= k < i as int ==> Left(s[k], r)
    ensures forall k :: i as int <= k < j as int ==> !Left(s[k], r) && !Right(s[k], r)
    ensures forall k :: j as int <= k < |s| ==> Right(s[k], r)
  {
    i := 0;
    while i < |s| as uint64 && Left(s[i as int], r)
      invariant i as int <= |s| && forall k :: 0 <= k < i as int ==> Left(s[k], r)
      decreases |s| - i as int
    { i := i + 1; }
    forall k | i as int <= k < |s| ensures !Left(s[k], r) {
      if k > i as int { assert Before(s[i], s[k]); assert s[i].first <= s[i].last; }
    }
    j := i;
    while j < |s| as uint64 && !Right(s[j as int], r)
      invariant i <= j && j as int <= |s| && forall k :: i as int <= k < j as int ==> !Right(s[k], r)
      decreases |s| - j as int
    { j := j + 1; }
    forall k | j as int <= k < |s| ensures Right(s[k], r) {
      if k > j as int { assert Before(s[j], s[k]); assert s[j].first <= s[j].last; }
    }
  }

  // They go no further to both sides than those of b and r do; where they go as far, they are alike.
  predicate Within(p: seq<Lock>, b: seq<Lock>, r: Lock) {
    forall k :: 0 <= k < |p| ==> p[k].owner == r.owner &&
      (p[k].first >= r.first || (|b| > 0 && p[k].first >= b[0].first &&
        (p[k].first == b[0].first ==> p[k].excl == b[0].excl))) &&
      (p[k].last <= r.last || (|b| > 0 && p[k].last <= b[|b| - 1].last &&
        (p[k].last == b[|b| - 1].last ==> p[k].excl == b[|b| - 1].excl)))
  }
  // What is left of the locks b, which touch r: what sticks out of them on both sides, and what r becomes, which takes
  // in those at its ends that are alike.
  function method LeftOf(b: seq<Lock>, r: Lock, on: bool): seq<Lock> requires r.first <= r.last {
    if |b| > 0 && b[0].first < r.first && !(on && b[0].excl == r.excl)
    then var a := b[0]; [Lock(r.owner, a.first, if a.last < r.first then a.last else r.first - 1, a.excl)] else []
  }
  function method RightOf(b: seq<Lock>, r: Lock, on: bool): seq<Lock>
    requires r.first <= r.last && |b| < 0x8000_0000_0000_0000
  {
    if |b| > 0 && b[|b| - 1].last > r.last && !(on && b[|b| - 1].excl == r.excl)
    then var c := b[|b| - 1]; [Lock(r.owner, if c.first > r.last then c.first else r.last + 1, c.last, c.excl)] else []
  }
  function method Middle(b: seq<Lock>, r: Lock): Lock requires |b| < 0x8000_0000_0000_0000 {
    Lock(r.owner,
      if |b| > 0 && b[0].first < r.first && b[0].excl == r.excl then b[0].first else r.first,
      if |b| > 0 && b[|b| - 1].last > r.last && b[|b| - 1].excl == r.excl
      then b[|b| - 1].last else r.last, r.excl)
  }
  function method Pieces(b: seq<Lock>, r: Lock, on: bool): seq<Lock>
    requires r.first <= r.last && |b| < 0x8000_0000_0000_0000
  { LeftOf(b, r, on) + (if on then [Middle(b, r)] else []) + RightOf(b, r, on) }

  predicate Touch(b: seq<Lock>, r: Lock) {
    Neat(b) && r.first <= r.last && |b| < 0x8000_0000_0000_0000 &&
    (forall k :: 0 <= k < |b| ==> !Left(b[k], r) && !Right(b[k], r)) &&
    (forall k :: 0 < k < |b| ==> b[k].first >= r.first) && forall k :: 0 <= k < |b| - 1 ==> b[k].last <= r.last
  }
  // They have what b had, but for r.
  lemma Byte(b: seq<Lock>, r: Lock, on: bool, owner: uint64, byte: int, excl: bool)
    requires Touch(b, r)
    ensures Has(Pieces(b, r, on), owner, byte, excl) <==> After(b, r, on, owner, byte, excl)
  {
    var left, m, right := LeftOf(b, r, on), Middle(b, r), RightOf(b, r, on);
    var middle := if on then [m] else [];
    HasJoin(left, middle, owner, byte, excl);
    HasJoin(left + middle, right, owner, byte, excl);
    assert Has(left, owner, byte, excl) <==> |left| > 0 && In(left[0], owner, byte, excl);
    assert Has(middle, owner, byte, excl) <==> |middle| > 0 && In(middle[0], owner, byte, excl);
    assert Has(right, owner, byte, excl) <==> |right| > 0 && In(right[0], owner, byte, excl);
    if owner != r.owner || r.first as int <= byte <= r.last as int { return; }
    if Has(b, owner, byte, excl) {
      var k :| 0 <= k < |b| && In(b[k], owner, byte, excl);
      assert k == if byte < r.first as int then 0 else |b| - 1;
    }
    if |b| > 0 && In(b[if byte < r.first as int then 0 else |b| - 1], owner, byte, excl) {
      assert Has(b, owner, byte, excl);
    }
  }
  lemma PiecesNeat(b: seq<Lock>, r: Lock, on: bool)
    requires Touch(b, r)
    ensures var p := Pieces(b, r, on); Neat(p) && Within(p, b, r) && |p| <= |b| + if on then 2 else 1
  {
    var left, m, right := LeftOf(b, r, on), Middle(b, r), RightOf(b, r, on);
    var p := Pieces(b, r, on);
    if |b| > 1 { assert Before(b[0], b[|b| - 1]); }
    assert p == left + (if on then [m] else []) + right;
    assert |left| <= 1 && |right| <= 1;
  }
  predicate After(b: seq<Lock>, r: Lock, on: bool, owner: uint64, byte: int, excl: bool) {
    if owner == r.owner && r.first as int <= byte <= r.last as int then on && excl == r.excl
    else Has(b, owner, byte, excl)
  }
  // Of locks that touch r, the first alone begins before it, and the last alone ends behind it.
  lemma Inner(b: seq<Lock>, r: Lock)
    requires Neat(b) && r.first <= r.last
    requires forall k :: 0 <= k < |b| ==> !Left(b[k], r) && !Right(b[k], r)
    ensures forall k :: 0 < k < |b| ==> b[k].first >= r.first
    ensures forall k :: 0 <= k < |b| - 1 ==> b[k].last <= r.last
  {
    forall k | 0 < k < |b| ensures b[k].first >= r.first { assert Before(b[0], b[k]); assert !Left(b[0], r); }
    forall k | 0 <= k < |b| - 1 ensures b[k].last <= r.last { assert Before(b[k], b[|b| - 1]); }
  }

  // The range r of its owner becomes r, or free.
  method Placed(s: seq<Lock>, r: Lock, on: bool) returns (t: seq<Lock>)
    requires Neat(s) && r.first <= r.last && |s| < 0x8000_0000_0000_0000
    ensures Neat(t) && Put(s, r, on, t) && |t| <= |s| + if on then 2 else 1
  {
    var i, j := Around(s, r);
    var p := Pieces(s[i as int..j as int], r, on);
    t := s[..i as int] + p + s[j as int..];
    Whole(s, i as int, j as int, r, on);
  }
  predicate Lefts(a: seq<Lock>, r: Lock) { forall k :: 0 <= k < |a| ==> Left(a[k], r) }
  predicate Rights(c: seq<Lock>, r: Lock) { forall k :: 0 <= k < |c| ==> Right(c[k], r) }
  lemma Whole(s: seq<Lock>, i: int, j: int, r: Lock, on: bool)
    requires Neat(s) && r.first <= r.last && |s| < 0x8000_0000_0000_0000 && 0 <= i <= j <= |s|
    requires forall k :: 0 <= k < i ==> Left(s[k], r)
    requires forall k :: i <= k < j ==> !Left(s[k], r) && !Right(s[k], r)
    requires forall k :: j <= k < |s| ==> Right(s[k], r)
    ensures var p := Pieces(s[i..j], r, on); var t := s[..i] + p + s[j..];
      Neat(t) && Put(s, r, on, t) && |t| <= |s| + if on then 2 else 1
  {
    Part(s, i, j);
    Inner(s[i..j], r);
    assert s == s[..i] + s[i..j] + s[j..];
    Replaced(s, s[..i], s[i..j], s[j..], r, on);
  }
  lemma Replaced(s: seq<Lock>, a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, r: Lock, on: bool)
    requires Neat(s) && s == a + b + c && Touch(b, r) && Lefts(a, r) && Rights(c, r)
    ensures var t := a + Pieces(b, r, on) + c; Neat(t) && Put(s, r, on, t) && |t| <= |s| + if on then 2 else 1
  {
    PiecesNeat(b, r, on);
    Swapped(a, b, c, r, on);
    Joined(s, a, b, c, Pieces(b, r, on), r);
  }
  lemma Swapped(a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, r: Lock, on: bool)
    requires Touch(b, r) && Lefts(a, r) && Rights(c, r)
    ensures Put(a + b + c, r, on, a + Pieces(b, r, on) + c)
  {
    var s, t := a + b + c, a + Pieces(b, r, on) + c;
    forall owner: uint64, byte: int, excl: bool ensures Has(t, owner, byte, excl) <==>
      if owner == r.owner && r.first as int <= byte <= r.last as int then on && excl == r.excl
      else Has(s, owner, byte, excl)
    {
      Swap(a, b, c, r, on, owner, byte, excl);
    }
  }
  lemma Part(s: seq<Lock>, i: int, j: int)
    requires Neat(s) && 0 <= i <= j <= |s|
    ensures Neat(s[i..j])
  {
    var b := s[i..j];
    forall k, l | 0 <= k < l < |b| ensures Before(b[k], b[l]) { assert b[k] == s[i + k] && b[l] == s[i + l]; }
    forall k, l | 0 <= k < l < |b| && l == k + 1 && b[k].owner == b[l].owner && b[k].excl == b[l].excl
      ensures b[k].last as int + 1 < b[l].first as int
    { assert b[k] == s[i + k] && b[l] == s[i + l]; }
  }
  lemma Swap(a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, r: Lock, on: bool, owner: uint64, byte: int, excl: bool)
    requires Touch(b, r) && Lefts(a, r) && Rights(c, r)
    ensures Has(a + Pieces(b, r, on) + c, owner, byte, excl) <==> After(a + b + c, r, on, owner, byte, excl)
  {
    var p := Pieces(b, r, on);
    Byte(b, r, on, owner, byte, excl);
    HasJoin(a, b, owner, byte, excl); HasJoin(a + b, c, owner, byte, excl);
    HasJoin(a, p, owner, byte, excl); HasJoin(a + p, c, owner, byte, excl);
  }
  lemma Joined(s: seq<Lock>, a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, p: seq<Lock>, r: Lock)
    requires Neat(s) && s == a + b + c && Neat(p) && r.first <= r.last
    requires Lefts(a, r) && Rights(c, r)
    requires forall k :: 0 <= k < |b| ==> b[k].owner == r.owner
    requires Within(p, b, r)
    ensures Neat(a + p + c)
  {
    var t := a + p + c;
    var n, m := |a|, |a| + |p|;
    forall i | 0 <= i < |t| ensures t[i].first <= t[i].last {
      if i < n { assert t[i] == s[i]; }
      else if i < m { assert t[i] == p[i - n]; }
      else { assert t[i] == c[i - m] == s[n + |b| + (i - m)]; }
    }
    forall i, j | 0 <= i < j < |t| ensures Before(t[i], t[j]) {
      Order(s, a, b, c, p, r, i, j);
    }
    forall i, j | 0 <= i < j < |t| && j == i + 1 && t[i].owner == t[j].owner && t[i].excl == t[j].excl
      ensures t[i].last as int + 1 < t[j].first as int
    {
      Gap(s, a, b, c, p, r, i);
    }
  }
  lemma Order(s: seq<Lock>, a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, p: seq<Lock>, r: Lock, i: int, j: int)
    requires Neat(s) && s == a + b + c && Neat(p)
    requires Lefts(a, r) && Rights(c, r)
    requires (forall k :: 0 <= k < |b| ==> b[k].owner == r.owner) && Within(p, b, r)
    requires 0 <= i < j < |a + p + c|
    ensures Before((a + p + c)[i], (a + p + c)[j])
  {
    var t := a + p + c;
    var n, m, d := |a|, |a| + |p|, |b| - |p|;
    if i < n { assert t[i] == s[i] == a[i]; }
    else if i < m { assert t[i] == p[i - n]; }
    else { assert t[i] == s[i + d] == c[i - m]; }
    if j < n { assert t[j] == s[j] == a[j]; }
    else if j < m { assert t[j] == p[j - n]; }
    else { assert t[j] == s[j + d] == c[j - m]; }
    if |b| > 0 { assert s[n] == b[0] && s[n + |b| - 1] == b[|b| - 1]; }
  }
  lemma Gap(s: seq<Lock>, a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, p: seq<Lock>, r: Lock, i: int)
    requires Neat(s) && s == a + b + c && Neat(p) && r.first <= r.last
    requires Lefts(a, r) && Rights(c, r)
    requires (forall k :: 0 <= k < |b| ==> b[k].owner == r.owner) && Within(p, b, r)
    requires 0 <= i < |a + p + c| - 1
    requires (a + p + c)[i].owner == (a + p + c)[i + 1].owner && (a + p + c)[i].excl == (a + p + c)[i + 1].excl
    ensures (a + p + c)[i].last as int + 1 < (a + p + c)[i + 1].first as int
  {
    var t := a + p + c;
    var n, m, d := |a|, |a| + |p|, |b| - |p|;
    if i + 1 < n {
      assert t[i] == s[i] && t[i + 1] == s[i + 1];
    } else if i < n {
      assert t[i] == a[n - 1];
      if |p| > 0 { assert t[i + 1] == p[0]; InFront(s, a, b, c, p[0], r); }
      else { assert t[i + 1] == c[0]; Across(a[n - 1], c[0], r); }
    } else if i + 1 < m {
      assert t[i] == p[i - n] && t[i + 1] == p[i - n + 1];
    } else if i < m {
      assert t[i] == p[|p| - 1] && t[i + 1] == c[0];
      Behind(s, a, b, c, p[|p| - 1], r);
    } else {
      assert t[i] == s[i + d] && t[i + 1] == s[i + 1 + d];
    }
  }
  lemma Across(x: Lock, y: Lock, r: Lock)
    requires Left(x, r) && Right(y, r) && x.owner == y.owner && r.first <= r.last
    ensures x.last as int + 1 < y.first as int
  {}
  lemma InFront(s: seq<Lock>, a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, y: Lock, r: Lock)
    requires Neat(s) && s == a + b + c && |a| > 0 && Lefts(a, r) && Within([y], b, r)
    requires forall k :: 0 <= k < |b| ==> b[k].owner == r.owner
    requires a[|a| - 1].owner == y.owner && a[|a| - 1].excl == y.excl
    ensures a[|a| - 1].last as int + 1 < y.first as int
  {
    var n := |a|;
    assert y == [y][0] && s[n - 1] == a[n - 1] && Left(a[n - 1], r);
    if y.first < r.first {
      assert s[n] == b[0] && Before(s[n - 1], s[n]);
      assert s[n - 1].owner == s[n].owner;
    }
  }
  lemma Behind(s: seq<Lock>, a: seq<Lock>, b: seq<Lock>, c: seq<Lock>, x: Lock, r: Lock)
    requires Neat(s) && s == a + b + c && |c| > 0 && Rights(c, r) && Within([x], b, r)
    requires forall k :: 0 <= k < |b| ==> b[k].owner == r.owner
    requires x.owner == c[0].owner && x.excl == c[0].excl
    ensures x.last as int + 1 < c[0].first as int
  {
    var n := |a| + |b|;
    assert x == [x][0] && s[n] == c[0] && Right(c[0], r);
    if x.last > r.last {
      assert s[n - 1] == b[|b| - 1] && Before(s[n - 1], s[n]);
      assert s[n - 1].owner == s[n].owner;
    }
  }
}
