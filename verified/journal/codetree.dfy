// The tree of codes, as pure mathematics: what is read of it is what was written, if its root's code is; and how
// a tree becomes one with other codes, page by page, from the leaves to the root.
include "../trusted/codes.s.dfy"

module TreeModel {
  import opened Machine
  import opened ByteSpec
  import opened ByteSlice
  import opened Numbers
  import opened DiskS
  import opened CodeTreeSpec
  import opened CodeLists

  lemma VouchOne(key: int, x: int, c: CV, b: BV, b2: BV)
    requires Vouches(key, x, c, b) && Vouches(key, x, c, b2)
    ensures b == b2
  { if c != CV(0, 0) { OneContents(key, x, b, b2, c); } }
  lemma ZeroTree(t: TreeGeo)
    requires TreeGeoOk(t)
    ensures IsRoot(t, CV(0, 0)) && IsTree(t, ZeroPages(t.np), CV(0, 0)) && forall x :: 0 <= x < t.n + t.np - 1 ==>
      CodeIn(t, ZeroPages(t.np), x) == CV(0, 0)
  {
    var pg := ZeroPages(t.np);
    forall x | 0 <= x < t.n + t.np - 1 ensures CodeIn(t, pg, x) == CV(0, 0) { ZeroCode(x % 255); }
    assert IsTree(t, pg, CV(0, 0));
  }
  function ZeroPages(n: int): (pg: seq<BV>)
    requires 0 <= n
    ensures |pg| == n && forall p :: 0 <= p < n ==> pg[p] == Zeros(4096)
  { if n == 0 then [] else ZeroPages(n - 1) + [Zeros(4096)] }
  lemma ZeroCode(k: int)
    requires 0 <= k < 255
    ensures CodeAt(Zeros(4096), k) == CV(0, 0)
  {
    var z := Zeros(4096);
    assert z[16 + 16 * k .. 24 + 16 * k] == [0, 0, 0, 0, 0, 0, 0, 0];
    assert z[24 + 16 * k .. 32 + 16 * k] == [0, 0, 0, 0, 0, 0, 0, 0];
    Dec64Zero();
  }
  // the place, of its two, that page contents b say they are for; and the block of page p
  function SaidPlace(b: BV): int requires |b| == 4096 { U64At(b, 0) as int % 2 }
  function PlaceOf(first: int, p: int, b: BV): int requires |b| == 4096 { first + 2 * p + SaidPlace(b) }
  lemma ZeroPlace()
    ensures SaidPlace(Zeros(4096)) == 0
  { assert Zeros(4096)[0..8] == [0, 0, 0, 0, 0, 0, 0, 0]; Dec64Zero(); }
  // the code of page p
  function PageCode(t: TreeGeo, pg: seq<BV>, r: CV, p: int): CV
    requires PagesOk(t, pg) && 0 <= p < t.np
  { if p == t.np - 1 then r else CodeIn(t, pg, t.n + p) }
  // the device has contents b of page p, whose code is c, in the place that they say, or the page was never written
  predicate Sits(first: int, poss: Poss, p: int, c: CV, b: BV) {
    |b| == 4096 && (c == CV(0, 0) || (0 <= PlaceOf(first, p, b) < |poss| && poss[PlaceOf(first, p, b)] <= iset{b}))
  }
  predicate PagesAt(t: TreeGeo, first: int, poss: Poss, pg: seq<BV>, r: CV) {
    PagesOk(t, pg) && forall p :: 0 <= p < t.np ==> Sits(first, poss, p, PageCode(t, pg, r, p), pg[p])
  }
  // the pages pg sit in the image s
  predicate PagesOn(t: TreeGeo, first: int, s: Img, pg: seq<BV>, r: CV) {
    PagesOk(t, pg) && forall p :: 0 <= p < t.np ==> PageCode(t, pg, r, p) == CV(0, 0) ||
      (0 <= PlaceOf(first, p, pg[p]) < |s| && s[PlaceOf(first, p, pg[p])] == pg[p])
  }
  // the tree with the root r does, if there is one
  predicate SitsOn(t: TreeGeo, first: int, s: Img, r: CV) {
    t.np <= 0 || exists pg :: IsTree(t, pg, r) && PagesOn(t, first, s, pg, r)
  }
  // ... that of any tree with this root
  lemma OnSits(t: TreeGeo, first: int, s: Img, poss: Poss, pg: seq<BV>, r: CV)
    requires 1 <= t.np && SitsOn(t, first, s, r) && IsTree(t, pg, r) && |poss| == |s| &&
      forall a :: 0 <= a < |s| ==> poss[a] == iset{s[a]}
    ensures PagesAt(t, first, poss, pg, r)
  {
    var g :| IsTree(t, g, r) && PagesOn(t, first, s, g, r);
    forall p | 0 <= p < t.np ensures g[p] == pg[p] { TreeOne(t, g, pg, r, p); }
    assert g == pg;
  }
  // a root has one tree
  lemma TreeOne(t: TreeGeo, pg: seq<BV>, pg2: seq<BV>, r: CV, p: int)
    requires IsTree(t, pg, r) && IsTree(t, pg2, r) && 0 <= p < t.np
    ensures pg[p] == pg2[p]
    decreases t.np - p
  {
    if p == t.np - 1 { VouchOne(t.key, t.n + p, r, pg[p], pg2[p]); }
    else { TreeOne(t, pg, pg2, r, Up(t, p)); VouchOne(t.key, t.n + p, CodeIn(t, pg, t.n + p), pg[p], pg2[p]); }
  }
  // page p is being written where the newest version does not lie
  lemma PagesSpare(t: TreeGeo, first: int, poss: Poss, pg: seq<BV>, r: CV, p: int, b: BV)
    requires PagesAt(t, first, poss, pg, r) && 0 <= p < t.np && |b| == 4096 && 0 <= PlaceOf(first, p, b) < |poss| &&
      PlaceOf(first, p, b) != PlaceOf(first, p, pg[p])
    ensures PagesAt(t, first, Fuzzy(poss, PlaceOf(first, p, b), 1), pg, r)
  {
    var q := Fuzzy(poss, PlaceOf(first, p, b), 1);
    forall x | 0 <= x < t.np ensures Sits(first, q, x, PageCode(t, pg, r, x), pg[x])
    {
      assert Sits(first, poss, x, PageCode(t, pg, r, x), pg[x]);
      if x != p { PlacesApart(first, x, pg[x], p, b); }
    }
  }
  lemma PlacesApart(first: int, x: int, bx: BV, p: int, b: BV)
    requires x != p && |bx| == 4096 && |b| == 4096
    ensures PlaceOf(first, x, bx) != PlaceOf(first, p, b)
  { }
  // ... and nothing more is possible where they lie
  lemma PagesLess(t: TreeGeo, first: int, poss: Poss, poss2: Poss, pg: seq<BV>, r: CV)
    requires PagesAt(t, first, poss, pg, r) && |poss2| == |poss| && forall x :: 0 <= x < |poss| &&
      first <= x < first + 2 * t.np ==> poss2[x] <= poss[x]
    ensures PagesAt(t, first, poss2, pg, r)
  {
    forall p | 0 <= p < t.np ensures Sits(first, poss2, p, PageCode(t, pg, r, p), pg[p]) {
      assert Sits(first, poss, p, PageCode(t, pg, r, p), pg[p]);
    }
  }
  // the page above page p
  function Up(t: TreeGeo, p: int): (q: int)
    requires TreeGeoOk(t) && 0 <= p < t.np - 1
    ensures p < q < t.np
  { (t.n + p) / 255 }
  // q is p, or above it
  predicate Above(t: TreeGeo, p: int, q: int)
    requires TreeGeoOk(t) && 0 <= p < t.np
    ensures Above(t, p, q) ==> p <= q < t.np
    decreases t.np - p
  { p == q || (p < t.np - 1 && Above(t, Up(t, p), q)) }
  lemma AboveUp(t: TreeGeo, p: int, q: int)
    requires TreeGeoOk(t) && 0 <= p < t.np && Above(t, p, q) && q < t.np - 1
    ensures Above(t, p, Up(t, q))
    decreases t.np - p
  { if p != q { AboveUp(t, Up(t, p), q); } }

  // the codes of a list, by node
  function Done(s: seq<Code>): map<int, CV> { if s == [] then map[] else Done(s[..|s|-1])[s[|s|-1].x := s[|s|-1].c] }
  // codes of nodes, in their order
  predicate ListOk(t: TreeGeo, s: seq<Code>) {
    (forall k :: 0 <= k < |s| ==> 0 <= s[k].x < t.n + t.np - 1) && Rising(s)
  }
  predicate Rising(s: seq<Code>) { forall k, l :: 0 <= k < l < |s| ==> s[k].x < s[l].x }
  // no node has two codes in the list
  predicate Single(s: seq<Code>) { forall k, l :: 0 <= k < l < |s| ==> s[k].x != s[l].x }
  // such a list, when it is sorted, has its nodes in order, none twice
  lemma SortedRises(s: seq<Code>, s2: seq<Code>)
    requires Single(s) && |s2| == |s| && (forall e :: e in s2 <==> e in s) && forall k, l :: 0 <= k < l < |s2| ==>
      s2[k].x <= s2[l].x
    ensures Rising(s2)
  {
    forall k, l | 0 <= k < l < |s2| ensures s2[k].x < s2[l].x {
      if s2[k].x == s2[l].x {
        assert s2[k] in s && s2[l] in s;
        var m :| 0 <= m < |s| && s[m] == s2[k]; var n :| 0 <= n < |s| && s[n] == s2[l];
        assert m == n;
        var u := s2[..l] + s2[l+1..];
        forall e | e in s2 ensures e in u {
          var o :| 0 <= o < |s2| && s2[o] == e;
          if o < l { assert u[o] == e; } else if o > l { assert u[o - 1] == e; } else { assert u[k] == e; }
        }
        assert Elems(s) == Elems(u);
        SingleCount(s); AtMost(u);
      }
    }
  }
  function Elems(s: seq<Code>): set<Code> { set e | e in s }
  lemma AtMost(s: seq<Code>)
    ensures |Elems(s)| <= |s|
  { if s != [] { AtMost(s[1..]); assert Elems(s) == {s[0]} + Elems(s[1..]); } else { assert Elems(s) == {}; } }
  lemma SingleCount(s: seq<Code>)
    requires Single(s)
    ensures |Elems(s)| == |s|
  {
    if s != [] {
      SingleCount(s[1..]);
      forall e | e in s[1..] ensures e != s[0] { var k :| 0 <= k < |s[1..]| && s[1..][k] == e; assert s[k + 1] == e; }
      assert Elems(s) == {s[0]} + Elems(s[1..]);
    } else { assert Elems(s) == {}; }
  }
  lemma DoneHas(s: seq<Code>, k: int)
    requires Rising(s) && 0 <= k < |s|
    ensures s[k].x in Done(s) && Done(s)[s[k].x] == s[k].c
  { if k < |s| - 1 { assert s[..|s|-1][k] == s[k]; DoneHas(s[..|s|-1], k); } }
  lemma DoneOf(s: seq<Code>, x: int)
    requires x in Done(s)
    ensures exists k :: 0 <= k < |s| && s[k].x == x
  {
    if s[|s|-1].x != x { DoneOf(s[..|s|-1], x); var k :| 0 <= k < |s| - 1 && s[..|s|-1][k].x == x; assert s[k].x == x; }
  }
  // Of the list s the codes s[..i] are done: the pages W, which they belong in, are written. pg: the pages
  // now, pg0 those before; r, r0: the roots.
  predicate Changing(t: TreeGeo, pg0: seq<BV>, r0: CV, s: seq<Code>, i: int, W: set<int>, pg: seq<BV>, r: CV) {
    PagesOk(t, pg0) && PagesOk(t, pg) && 0 <= i <= |s| && ListOk(t, s) && Work(t, s, i, W) &&
    (forall x :: 0 <= x < t.n + t.np - 1 ==> CodeIn(t, pg, x) == if x in Done(s[..i]) then Done(s[..i])[x]
      else CodeIn(t, pg0, x)) &&
    (forall p :: 0 <= p < t.np && p !in W ==> pg[p] == pg0[p]) &&
    (forall p :: p in W && p < t.np - 1 ==> Passed(t, s, p, pg[p])) &&
    (if t.np - 1 in W then Vouches(t.key, t.n + t.np - 1, r, pg[t.np - 1]) else r == r0)
  }
  // the list has the code of page p with contents b
  predicate Passed(t: TreeGeo, s: seq<Code>, p: int, b: BV) {
    exists m :: 0 <= m < |s| && s[m].x == t.n + p && Vouches(t.key, t.n + p, s[m].c, b)
  }
  predicate Work(t: TreeGeo, s: seq<Code>, i: int, W: set<int>) requires 0 <= i <= |s| {
    (forall k :: 0 <= k < i ==> s[k].x / 255 in W) &&
    (forall p :: p in W ==> 0 <= p < t.np && exists k :: 0 <= k < i && s[k].x / 255 == p) &&
    (forall k, p :: i <= k < |s| && p in W ==> p < s[k].x / 255) &&
    (forall m :: 0 <= m < |s| && s[m].x >= t.n ==> s[m].x - t.n in W)
  }
  lemma Begun(t: TreeGeo, pg0: seq<BV>, r0: CV, s: seq<Code>)
    requires PagesOk(t, pg0) && ListOk(t, s) && forall m :: 0 <= m < |s| ==> s[m].x < t.n
    ensures Changing(t, pg0, r0, s, 0, {}, pg0, r0)
  {}
  // page p becomes b, with the codes s[i..j]
  predicate Wrote(s: seq<Code>, i: int, j: int, p: int, old_: BV, b: BV) {
    0 <= i < j <= |s| && |b| == |old_| == 4096 &&
    (forall k :: i <= k < j ==> 0 <= s[k].x && s[k].x / 255 == p && CodeAt(b, s[k].x % 255) == s[k].c) &&
    (j < |s| ==> s[j].x / 255 != p) &&
    forall q :: 0 <= q < 255 && (forall k :: i <= k < j ==> s[k].x % 255 != q) ==> CodeAt(b, q) == CodeAt(old_, q)
  }
  // s2 is s with the code c of page p, unless that is the root
  predicate Passes(t: TreeGeo, s: seq<Code>, p: int, c: CV, r: CV, s2: seq<Code>, r2: CV) {
    if p < t.np - 1 then s2 == s + [Code(t.n + p, c)] && r2 == r else s2 == s && r2 == c
  }
  lemma Step(t: TreeGeo, pg0: seq<BV>, r0: CV, s: seq<Code>, i: int, W: set<int>, pg: seq<BV>, r: CV, j: int, p: int,
    b: BV, c: CV, s2: seq<Code>, r2: CV)
    requires Changing(t, pg0, r0, s, i, W, pg, r) && 0 <= p < t.np && Wrote(s, i, j, p, pg[p], b)
    requires Vouches(t.key, t.n + p, c, b) && Passes(t, s, p, c, r, s2, r2)
    ensures Changing(t, pg0, r0, s2, j, W + {p}, pg[p := b], r2)
  {
    StepWork(t, s, i, W, j, p, c, r, s2, r2);
    StepCodes(t, pg0, s, i, W, pg, j, p, b, s2);
    StepPassed(t, s, W, pg, p, b, c, r, s2, r2);
  }
  lemma StepCodes(t: TreeGeo, pg0: seq<BV>, s: seq<Code>, i: int, W: set<int>, pg: seq<BV>, j: int, p: int, b: BV,
    s2: seq<Code>)
    requires PagesOk(t, pg0) && PagesOk(t, pg) && 0 <= i <= |s| && ListOk(t, s) && Work(t, s, i, W) && 0 <= p < t.np &&
      Wrote(s, i, j, p, pg[p], b)
    requires |s| <= |s2| && s2[..|s|] == s
    requires forall x :: 0 <= x < t.n + t.np - 1 ==> CodeIn(t, pg, x) == if x in Done(s[..i]) then Done(s[..i])[x]
      else CodeIn(t, pg0, x)
    ensures forall x :: 0 <= x < t.n + t.np - 1 ==>
      CodeIn(t, pg[p := b], x) == if x in Done(s2[..j]) then Done(s2[..j])[x] else CodeIn(t, pg0, x)
  {
    assert s2[..j] == s2[..|s|][..j] == s[..j];
    forall x | 0 <= x < t.n + t.np - 1
      ensures CodeIn(t, pg[p := b], x) == if x in Done(s2[..j]) then Done(s2[..j])[x] else CodeIn(t, pg0, x)
    { StepCode(t, pg0, s, i, W, pg, j, p, b, x); }
  }
  lemma StepPassed(t: TreeGeo, s: seq<Code>, W: set<int>, pg: seq<BV>, p: int, b: BV, c: CV, r: CV, s2: seq<Code>,
    r2: CV)
    requires TreeGeoOk(t) && |pg| == t.np && (forall q :: q in W ==> 0 <= q < t.np) && 0 <= p < t.np
    requires (forall q :: q in W && q < t.np - 1 ==> Passed(t, s, q, pg[q])) && Vouches(t.key, t.n + p, c, b) &&
      Passes(t, s, p, c, r, s2, r2)
    ensures forall q :: q in W + {p} && q < t.np - 1 ==> Passed(t, s2, q, pg[p := b][q])
  {
    forall q | q in W + {p} && q < t.np - 1 ensures Passed(t, s2, q, pg[p := b][q]) {
      if q == p { assert s2[|s|] == Code(t.n + p, c); }
      else {
        assert Passed(t, s, q, pg[q]);
        var m :| 0 <= m < |s| && s[m].x == t.n + q && Vouches(t.key, t.n + q, s[m].c, pg[q]); assert s2[m] == s[m];
      }
    }
  }
  lemma StepWork(t: TreeGeo, s: seq<Code>, i: int, W: set<int>, j: int, p: int, c: CV, r: CV, s2: seq<Code>, r2: CV)
    requires TreeGeoOk(t) && 0 <= i < j <= |s| && ListOk(t, s) && Work(t, s, i, W) && 0 <= p < t.np &&
      Passes(t, s, p, c, r, s2, r2)
    requires (forall k :: i <= k < j ==> s[k].x / 255 == p) && (j < |s| ==> s[j].x / 255 != p)
    ensures ListOk(t, s2) && Work(t, s2, j, W + {p})
  {
    forall k | 0 <= k < |s| ensures s[k].x < t.n + p {
      if s[k].x >= t.n { assert s[k].x - t.n in W; assert s[k].x - t.n < s[i].x / 255; }
    }
    assert forall k :: 0 <= k < |s| ==> s2[k] == s[k];
    forall k, l | 0 <= k < l < |s2| ensures s2[k].x < s2[l].x { if l == |s| { assert s2[l].x == t.n + p; } }
    assert s[i].x / 255 == p;
    forall k, q | j <= k < |s2| && q in W + {p} ensures q < s2[k].x / 255 {
      if k < |s| { assert s[k].x >= s[j].x > s[i].x; } else { assert s2[k].x / 255 == Up(t, p); }
      if q != p { assert q < s[i].x / 255; }
    }
    forall q | q in W + {p} ensures 0 <= q < t.np && exists k :: 0 <= k < j && s2[k].x / 255 == q {
      if q == p { assert s2[i].x / 255 == p; } else {
        var k :| 0 <= k < i && s[k].x / 255 == q; assert s2[k].x / 255 == q;
      }
    }
  }
  lemma StepCode(t: TreeGeo, pg0: seq<BV>, s: seq<Code>, i: int, W: set<int>, pg: seq<BV>, j: int, p: int, b: BV,
    x: int)
    requires PagesOk(t, pg0) && PagesOk(t, pg) && 0 <= i <= |s| && ListOk(t, s) && Work(t, s, i, W) && 0 <= p < t.np &&
      Wrote(s, i, j, p, pg[p], b) && 0 <= x < t.n + t.np - 1
    requires CodeIn(t, pg, x) == if x in Done(s[..i]) then Done(s[..i])[x] else CodeIn(t, pg0, x)
    ensures CodeIn(t, pg[p := b], x) == if x in Done(s[..j]) then Done(s[..j])[x] else CodeIn(t, pg0, x)
  {
    if x in Done(s[..i]) {
      DoneOf(s[..i], x);
      var k :| 0 <= k < i && s[..i][k].x == x;
      assert s[k].x == x && x / 255 in W && s[i].x / 255 == p;
      DoneHas(s[..j], k); DoneHas(s[..i], k);
    } else if x / 255 == p && exists k :: i <= k < j && s[k].x == x {
      var k :| i <= k < j && s[k].x == x;
      assert s[..j][k] == s[k];
      DoneHas(s[..j], k);
    } else {
      if x in Done(s[..j]) {
        DoneOf(s[..j], x);
        var k :| 0 <= k < j && s[..j][k].x == x;
        assert s[k].x == x;
        if k < i { assert s[..i][k] == s[k]; DoneHas(s[..i], k); }
      }
      if x / 255 == p {
        forall k | i <= k < j ensures s[k].x % 255 != x % 255 { assert s[k].x / 255 == p; }
      }
    }
  }
  // all codes are done: the pages are a tree with them
  lemma Ended(t: TreeGeo, pg0: seq<BV>, r0: CV, s: seq<Code>, W: set<int>, pg: seq<BV>, r: CV)
    requires Changing(t, pg0, r0, s, |s|, W, pg, r) && IsTree(t, pg0, r0)
    ensures IsTree(t, pg, r)
    ensures forall x :: 0 <= x < t.n ==> CodeIn(t, pg, x) == if x in Done(s) then Done(s)[x] else CodeIn(t, pg0, x)
    ensures forall p :: 0 <= p < t.np && pg[p] != pg0[p] ==> exists k :: 0 <= k < |s| && s[k].x / 255 == p
    ensures forall p :: 0 <= p < t.np && p !in W ==> pg[p] == pg0[p] && PageCode(t, pg, r, p) == PageCode(t, pg0, r0, p)
  {
    assert s[..|s|] == s;
    forall p | 0 <= p < t.np - 1 && p !in W ensures CodeIn(t, pg, t.n + p) == CodeIn(t, pg0, t.n + p) {
      if t.n + p in Done(s) {
        DoneOf(s, t.n + p); var m :| 0 <= m < |s| && s[m].x == t.n + p; assert s[m].x - t.n in W;
      }
    }
    forall p | 0 <= p < t.np - 1 ensures Vouches(t.key, t.n + p, CodeIn(t, pg, t.n + p), pg[p]) {
      if p in W {
        assert Passed(t, s, p, pg[p]);
        var m :| 0 <= m < |s| && s[m].x == t.n + p && Vouches(t.key, t.n + p, s[m].c, pg[p]);
        DoneHas(s, m);
      } else {
        if t.n + p in Done(s) {
          DoneOf(s, t.n + p); var m :| 0 <= m < |s| && s[m].x == t.n + p; assert s[m].x - t.n in W;
        }
        assert pg[p] == pg0[p];
      }
    }
    if s != [] {
      var l := s[|s|-1]; var p := l.x / 255;
      assert p in W;
      if p < t.np - 1 {
        assert Passed(t, s, p, pg[p]);
        var m :| 0 <= m < |s| && s[m].x == t.n + p && Vouches(t.key, t.n + p, s[m].c, pg[p]);
        assert s[m].x <= l.x;
        assert Up(t, p) == (t.n + p) / 255;
      }
    } else { assert W == {} by { forall p | p in W ensures false {} } }
  }
}
