// What a tree of codes says of the home blocks, and that the pages that a change has written say what they are to say.
include "groups.dfy"
include "codes.dfy"

module TreeSaid {
  import opened Machine
  import opened DiskS
  import opened CodeTreeSpec
  import opened RecordSpec
  import opened CodeLists
  import opened LogModel
  import opened TreeModel
  import opened TreeOfCodes

  lemma IsRootOf(p: Geo, r: CV, w: St)
    requires Says(p, r, w)
    ensures IsRoot(p.tree, r)
  { if p.tree.np > 0 { var pg :| TreeSays(p, pg, r, w); assert IsTree(p.tree, pg, r); } }
  // the trees of both headers of image c sit in it
  predicate HeadersSit(p: Geo, first: int, c: Img) {
    Fits(p, c) && forall a :: 0 <= a < |c| && (a == p.headerAt || a == Copy(p)) &&
      DecHdr(p.key, c[a]).Hdr? ==> SitsOn(p.tree, first, c, DecHdr(p.key, c[a]).root)
  }
  // with the codes s a tree that says w says w2
  predicate Restates(s: seq<Code>, home: int, key: int, w: St, w2: St) {
    (forall e :: e in s ==> e.x + home in w2 && Vouches(key, e.x, e.c, w2[e.x + home])) &&
    forall a :: a in w2 && (forall e :: e in s ==> e.x != a - home) ==> a in w && w2[a] == w[a]
  }
  // s2 is s and codes of pages, which are nodes from n on
  predicate WithPages(s: seq<Code>, s2: seq<Code>, n: int) {
    (forall e :: e in s ==> e in s2) && forall e :: e in s2 && e.x < n ==> e in s
  }
  lemma WithPage(s: seq<Code>, s2: seq<Code>, s3: seq<Code>, n: int, root: bool, k: Code)
    requires WithPages(s, s2, n) && n <= k.x && s3 == if root then s2 else s2 + [k]
    ensures WithPages(s, s3, n)
  {}
  // all codes of the change are done: what the tree says of one block ...
  lemma RestatedOne(s: seq<Code>, s2: seq<Code>, n: int, home: int, key: int, w: St, w2: St, a: int, c: CV, c2: CV)
    requires Rising(s2) && WithPages(s, s2, n) && Restates(s, home, key, w, w2) && a in w2 && a - home < n
    requires (a in w ==> Vouches(key, a - home, c, w[a])) && c2 == if a - home in Done(s2) then Done(s2)[a - home]
      else c
    ensures Vouches(key, a - home, c2, w2[a])
  {
    var x := a - home;
    if x in Done(s2) {
      DoneOf(s2, x);
      var k :| 0 <= k < |s2| && s2[k].x == x;
      DoneHas(s2, k);
      assert s2[k] in s2 && s2[k] in s;
    } else {
      forall e | e in s ensures e.x != x {
        assert e in s2; if e.x == x { var k :| 0 <= k < |s2| && s2[k] == e; DoneHas(s2, k); }
      }
      assert a in w && w2[a] == w[a];
    }
  }
  // ... and of all
  lemma RestatedAll(p: Geo, s: seq<Code>, s2: seq<Code>, pg0: seq<BV>, r0: CV, pg: seq<BV>, r: CV, w: St, w2: St)
    requires TreeSays(p, pg0, r0, w) && IsTree(p.tree, pg, r) && Restates(s, Home(p), p.key, w, w2) && Rising(s2) &&
      WithPages(s, s2, p.tree.n)
    requires forall x :: 0 <= x < p.tree.n ==> CodeIn(p.tree, pg, x) == if x in Done(s2) then Done(s2)[x]
      else CodeIn(p.tree, pg0, x)
    requires forall a :: a in w2 ==> Home(p) <= a < Home(p) + p.tree.n
    ensures TreeSays(p, pg, r, w2)
  {
    forall a | a in w2 ensures 0 <= a - Home(p) < p.tree.n &&
      Vouches(p.key, a - Home(p), CodeIn(p.tree, pg, a - Home(p)), w2[a]) {
      var x := a - Home(p);
      RestatedOne(s, s2, p.tree.n, Home(p), p.key, w, w2, a, CodeIn(p.tree, pg0, x), CodeIn(p.tree, pg, x));
    }
  }
  // ... is what it is to say
  lemma Restated(p: Geo, t: Tree, c: Codes, s: seq<Code>, W: set<int>, pg: seq<BV>, r: CV, w: St, w2: St)
    requires t.Ok() && t.pageCount > 0 && p.tree == t.seal.t && t.home as int == Home(p) && p.key == t.seal.key &&
      |t.pages.rs| == |t.pages.vs| > 0 && TreeSays(p, t.Now(), t.Root(), w)
    requires Restates(s, Home(p), p.key, w, w2) && WithPages(s, c.s, t.homeCount as int) &&
      Halfway(t, c, |c.s|, W, pg, r)
    requires forall a :: a in w2 ==> Home(p) <= a < Home(p) + t.homeCount as int
    ensures NextTree(t, c, r, pg) && TreeSays(p, pg, r, w2)
  {
    AllDone(t, c, W, pg, r);
    RestatedAll(p, s, c.s, t.Now(), t.Root(), pg, r, w, w2);
  }
}
