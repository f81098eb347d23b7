// What pages of READDIR (nfs3.s.dfy) are together: a scan, from cookie 0 to eof,
// has every name that is there throughout exactly once, whatever else happens to
// the directory between the pages, and however large they are.
include "nfs3.s.dfy"
module ScanM {
  import opened Machine
  import opened NfsState
  import opened NfsList

  // where page j of a scan starts
  function From(pages: seq<seq<Item>>, j: int): int
    requires 0 <= j <= |pages| && forall k: int {:trigger pages[k]} | 0 <= k < j :: pages[k] != []
  { if j == 0 then 0 else var p := pages[j - 1]; p[|p| - 1].cookie }

  // Page j is of the directory as it was then, bs[j]. The client goes on while there is no eof.
  predicate Scan(i: uint64, bs: seq<Body>, pages: seq<seq<Item>>)
  {
    |bs| == |pages| > 0 && (forall j: int {:trigger pages[j]} | 0 <= j < |pages| - 1 :: pages[j] != []) &&
    forall j: int {:trigger bs[j]} | 0 <= j < |bs| :: bs[j].Dir? && Page(i, bs[j], From(pages, j), pages[j], j == |bs| - 1)
  }
  // name n is there all the time, so its cookie is the same (Stay in nfs3.s.dfy)
  predicate Stays(bs: seq<Body>, n: Name, c: int)
  { 3 <= c && !Dots(n) && forall j: int {:trigger bs[j]} | 0 <= j < |bs| :: bs[j].Dir? && n in bs[j].names && n in bs[j].cookies && bs[j].cookies[n] == c }

  predicate At(pages: seq<seq<Item>>, j: int, k: int, n: Name) { 0 <= j < |pages| && 0 <= k < |pages[j]| && pages[j][k].name == n }

  lemma Once(i: uint64, bs: seq<Body>, pages: seq<seq<Item>>, n: Name, c: int) returns (j: int, k: int)
    requires Scan(i, bs, pages) && Stays(bs, n, c)
    ensures At(pages, j, k, n)
    ensures forall j': int, k': int {:trigger At(pages, j', k', n)} | At(pages, j', k', n) :: j' == j && k' == k
  {
    j := 0;
    while j < |bs| - 1 && From(pages, j + 1) < c
      invariant 0 <= j < |bs| && From(pages, j) < c
    { j := j + 1; }
    assert bs[j].Dir?;
    var e := Item(bs[j].names[n], n, c);
    assert Listed(i, bs[j], e);
    assert e in pages[j];
    k :| 0 <= k < |pages[j]| && pages[j][k] == e;
    forall j': int, k': int | At(pages, j', k', n)
      ensures j' == j && k' == k
    {
      assert bs[j'].Dir? && Listed(i, bs[j'], pages[j'][k']);
      assert pages[j'][k'].cookie == c;
      if j' < j { Apart(i, bs, pages, j', k', j, k); }
      if j < j' { Apart(i, bs, pages, j, k, j', k'); }
    }
  }

  // cookies ascend from page to page
  lemma Apart(i: uint64, bs: seq<Body>, pages: seq<seq<Item>>, a: int, k: int, b: int, l: int)
    requires Scan(i, bs, pages) && 0 <= a < b < |pages| && 0 <= k < |pages[a]| && 0 <= l < |pages[b]|
    ensures pages[a][k].cookie < pages[b][l].cookie
  {
    assert bs[a].Dir? && bs[b].Dir?;
    var p := pages[b - 1];
    assert p[|p| - 1].cookie == From(pages, b) < pages[b][l].cookie;
    if a < b - 1 { Apart(i, bs, pages, a, k, b - 1, |p| - 1); }
  }
}
