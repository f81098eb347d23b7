// Where the codes of blocks lie: the pages of the tree of codes that change with a block, and the blocks that a page
// vouches for. For whoever makes room for the tree, or asks whom the loss of one of its blocks hurts.
include "codes.dfy"

module CodePlaces {
  import opened Machine
  import opened CodeTreeSpec
  import opened TreeModel
  import opened TreeOfCodes

  // np pages from block first on, two blocks each, for the n blocks from home on; np = 0: no tree
  predicate Ok(first: uint64, np: uint64, home: uint64, n: uint64) {
    (np > 0 ==> PagesFit(n, np)) && first as int + 2 * np as int <= home as int &&
      home as int + n as int < 0x8_0000_0000_0000
  }
  function Tree(np: uint64, n: uint64): TreeGeo { TreeGeo(0, n as int, np as int) }
  // the page that block b is one of the two places of
  function PageOf(first: uint64, b: uint64): int requires first <= b { (b - first) as int / 2 }
  // page p has the code of home block x, or is above one that does
  predicate Vouching(np: uint64, home: uint64, n: uint64, x: int, p: int)
    requires np > 0 && PagesFit(n, np)
  { home as int <= x < home as int + n as int && Above(Tree(np, n), Leaf(np, home, n, x), p) }
  // it is so of a home block from a on, before end
  predicate Needed(np: uint64, home: uint64, n: uint64, a: int, end: int, p: int)
    requires np > 0 && PagesFit(n, np)
  { exists x: int {:trigger Vouching(np, home, n, x, p)} :: a <= x < end && Vouching(np, home, n, x, p) }
  function Leaf(np: uint64, home: uint64, n: uint64, x: int): (p: int)
    requires np > 0 && PagesFit(n, np) && home as int <= x < home as int + n as int
    ensures 0 <= p < np as int
  { (x - home as int) / 255 }

  // The first of the two places of the page that has the code of block a: of a home block, or of one of a page. The
  // root has none.
  method PageWith(first: uint64, np: uint64, home: uint64, n: uint64, a: uint64) returns (ok: bool, b: uint64)
    requires Ok(first, np, home, n)
    ensures ok <==> np > 0 && (home as int <= a as int < home as int + n as int ||
      (first <= a && PageOf(first, a) < np as int - 1))
    ensures ok && home <= a ==> b as int == first as int + 2 * Leaf(np, home, n, a as int)
    ensures ok && a < home ==> b as int == first as int + 2 * Up(Tree(np, n), PageOf(first, a))
  {
    ok, b := false, 0;
    if np == 0 || a < first { return; }
    if home <= a {
      if a - home < n { ok, b := true, first + 2 * ((a - home) / 255); }
    } else {
      var p := (a - first) / 2;
      if p < np - 1 { ok, b := true, first + 2 * ((n + p) / 255); }
    }
  }

  // Is the page that block q is a place of needed for the code of some home block from a on, before end?
  method Depends(first: uint64, np: uint64, home: uint64, n: uint64, q: uint64, a: uint64,
    end: uint64) returns (d: bool)
    requires Ok(first, np, home, n) && home <= a && end as int <= home as int + n as int
    ensures d <==> np > 0 && first <= q && PageOf(first, q) < np as int &&
      Needed(np, home, n, a as int, end as int, PageOf(first, q))
  {
    if np == 0 || q < first || 2 * np <= q - first || end <= a { return false; }
    ghost var t := Tree(np, n);
    var page, lo, hi := (q - first) / 2, (a - home) / 255, (end - 1 - home) / 255;
    Leaves(np, home, n, a as int, end as int, page as int);
    while hi < page
      invariant lo <= hi < np && page < np
      invariant Some(t, lo as int, hi as int, page as int) <==> Needed(np, home, n, a as int, end as int, page as int)
      decreases np - hi
    {
      Rise(t, lo as int, hi as int, page as int);
      lo, hi := (n + lo) / 255, (n + hi) / 255;
    }
    d := lo <= page;
    if d { assert Above(t, page as int, page as int); }
  }
  // the pages with the codes of blocks from a on, before end, are those between the first and the last
  lemma Leaves(np: uint64, home: uint64, n: uint64, a: int, end: int, page: int)
    requires np > 0 && PagesFit(n, np) && home as int <= a < end <= home as int + n as int
    ensures Some(Tree(np, n), Leaf(np, home, n, a), Leaf(np, home, n, end - 1), page) <==>
      Needed(np, home, n, a, end, page)
  {
    var t, lo, hi := Tree(np, n), Leaf(np, home, n, a), Leaf(np, home, n, end - 1);
    if Some(t, lo, hi, page) {
      var p: int :| lo <= p <= hi && Above(t, p, page);
      var first := home as int + 255 * p;
      var x := if a < first then first else a;
      assert a <= x < end && Leaf(np, home, n, x) == p;
      assert Vouching(np, home, n, x, page);
    }
    if Needed(np, home, n, a, end, page) {
      var x: int :| a <= x < end && Vouching(np, home, n, x, page);
      var p := Leaf(np, home, n, x);
      assert lo <= p <= hi && Above(t, p, page);
    }
  }
  // one of the pages from lo to hi is page p, or below it
  predicate Some(t: TreeGeo, lo: int, hi: int, p: int)
    requires TreeGeoOk(t) && 0 <= lo && hi < t.np
  { exists x: int {:trigger Above(t, x, p)} :: lo <= x <= hi && Above(t, x, p) }
  // pages side by side: so are those that have their codes, and what is further up is above one of these
  lemma Rise(t: TreeGeo, lo: int, hi: int, p: int)
    requires TreeGeoOk(t) && 0 <= lo <= hi < p < t.np
    ensures Up(t, lo) <= Up(t, hi)
    ensures Some(t, lo, hi, p) <==> Some(t, Up(t, lo), Up(t, hi), p)
  {
    if Some(t, lo, hi, p) {
      var x: int :| lo <= x <= hi && Above(t, x, p);
      assert Up(t, lo) <= Up(t, x) <= Up(t, hi) && Above(t, Up(t, x), p);
    }
    if Some(t, Up(t, lo), Up(t, hi), p) {
      var u: int :| Up(t, lo) <= u <= Up(t, hi) && Above(t, u, p);
      var x := if lo < 255 * u - t.n then 255 * u - t.n else lo;
      assert lo <= x <= hi && Up(t, x) == u;
      assert Above(t, x, p);
    }
  }

  // Some home blocks for whose codes page p is needed: all from x on, up to and with y.
  method Below(np: uint64, home: uint64, n: uint64, p: uint64) returns (x: uint64, y: uint64)
    requires np > 0 && PagesFit(n, np) && home as int + n as int < 0x8_0000_0000_0000 && p < np
    ensures home <= x <= y < home + n && forall b: int :: x as int <= b <= y as int ==>
      Vouching(np, home, n, b, p as int)
  {
    ghost var t := Tree(np, n);
    var nodes := n + np - 1;
    var lo, end := 255 * p, if nodes < 255 * (p + 1) then nodes else 255 * (p + 1);
    assert forall k: int :: lo as int <= k < end as int ==> k / 255 == p as int && Above(t, k / 255, p as int);
    while n < end
      invariant lo < end <= nodes
      invariant forall k: int :: lo as int <= k < end as int ==> k / 255 < np as int && Above(t, k / 255, p as int)
      decreases end
    {
      ghost var was, upto := lo as int, end as int;
      var from := if n < lo then lo - n else 0;
      lo, end := 255 * from, 255 * (end - n);
      forall k: int | lo as int <= k < end as int ensures k / 255 < np as int && Above(t, k / 255, p as int)
      {
        var q := k / 255;
        assert was <= n as int + q < upto;
        assert Up(t, q) == (n as int + q) / 255;
      }
    }
    x, y := home + lo, home + end - 1;
    forall b: int | x as int <= b <= y as int ensures Vouching(np, home, n, b, p as int)
    { assert (b - home as int) / 255 == Leaf(np, home, n, b); }
  }
}
